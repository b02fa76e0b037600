"""Threads that make one run: a fork begins with the history of another, an agent's thread is below what spawned it.

Each thread is in a file of its own, ``sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl``, which Codex may pack
(``.jsonl.zst``) when it was not used for long. A thread's id tells when it began (UUID version 7), and so in which
folder its file is. Today's forks name the history that they go on from; an old fork copied it: Codex wrote the records
of the original again, at another time, before those of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk
from tracetui.formats.codex.records import SCHEMA, Base, Meta
from tracetui.formats.codex.session import Row, Session
from tracetui.formats.decode import skippable
from tracetui.formats.fields import unknown_fields
from tracetui.formats.jsonl import BUDGET, FIRST, Line, LogReader
from tracetui.formats.lines import BLOCK, MAX_LINE, lines
from tracetui.formats.scalars import moment
from tracetui.model import INHERITED, Body, Operation, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.sources.base import MOVING_SECONDS, Entry, File

DEPTH: Final = 16
"""Forks of forks, and agents of agents, are followed so far."""
PACKED: Final = ".zst"
_LISTED: Final = "codex.folders"
"""In the memo of a file, while it is read: what is in the folders around it."""
_AHEAD: Final = 16
"""So many records of the original may be missing in a row: what one version kept another did not."""
_UUID: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


# ---- where the file of a thread is


def find(file: File, thread: str) -> str | None:
    """Path of a thread's file, relative to the folder of `file`; None if there is none."""
    if _UUID.fullmatch(thread) is None:
        return None
    ends = (f"-{thread}.jsonl", f"-{thread}.jsonl{PACKED}")
    known: dict[str, list[Entry]] = file.memo.setdefault(_LISTED, {})
    for folder in _folders(thread):
        if folder not in known:
            known[folder] = file.folder(folder).entries
        paths = (one.path for one in known[folder] if one.stat is not None and one.path.endswith(ends))
        names = [name for path in paths if (name := re.split(r"[/\\]", path)[-1]).startswith("rollout-")]
        if names:
            name = min(names, key=len)  # one that is packed and there unpacked as well is read unpacked
            return f"{folder}/{name}" if folder else name
    return None


def _folders(thread: str) -> Iterator[str]:
    """Where the file of a thread may be: beside that of another, in the folder of its day, among what was put away."""
    yield ""
    found = _UUID.fullmatch(thread)
    try:
        began = datetime.fromtimestamp(int(found[1] + found[2], 16) / 1000, UTC) if found else None
    except (ValueError, OverflowError, OSError):
        began = None
    for days in (0, -1, 1) if began is not None and began.year < 9999 else ():  # the folder is that of the local day
        assert began is not None
        day = (began + timedelta(days)).strftime("%Y/%m/%d")
        yield f"../{day[8:]}"  # the way over the folders above is not known where they are the working folder
        yield f"../../{day[5:]}"
        yield f"../../../{day}"
        yield f"../sessions/{day}"
    yield "../../../../archived_sessions"


# ---- which are told below others


def whole_of(file: File) -> str | None:
    """Path of the file of the thread below which that of `file` is shown; None where it stands for itself.

    What was packed and is there unpacked as well is shown by that.
    """
    twin = file.sibling(file.name) if file.path.endswith(PACKED) else None
    if twin is None:
        return _above(file, ()) or None
    with file.other(file.name) as unpacked:
        return _above(unpacked, ()) or twin


def _above(file: File, seen: tuple[str, ...]) -> str | None:
    """The same; "" where threads spawned each other, or too many one another: then each stands for itself."""
    meta = _meta(file)
    above, thread = (None, None) if meta is None else (meta.parent, meta.id)
    if above is None or thread is None or not file.name.endswith(f"-{thread}.jsonl"):  # it could not be found by its id
        return None
    if (found := find(file, above)) is None:
        return None
    if thread in seen or len(seen) >= DEPTH:
        return ""
    with file.other(found) as other:
        if not (meta is not None and _is_young(file, meta)) and not _spawns(other, thread):
            return None
        path = _above(other, (*seen, thread))
        return other.path if path is None else path


def _meta(file: File) -> Meta | None:
    """What the first line says of the thread, if it names a parent."""
    head = file.head
    first, newline, _ = head.partition(b"\n")
    try:
        if not newline and file.stat.size > len(head):
            first = next((line.data for line in lines(file, limit=MAX_LINE, end=file.stat.size)), b"")
        record = SCHEMA.decode(first, {})[0] if b"parent_thread_id" in first else None
    except (FormatError, OSError):
        return None
    payload = getattr(record, "payload", None)
    return payload if isinstance(payload, Meta) else None


def _is_young(file: File, meta: Meta) -> bool:
    """Whether a thread was spawned just now: the record that says so is written a moment after its first one."""
    began = moment(meta.timestamp)
    return meta.spawn is not None and began is not None and file.stat.mtime - began < MOVING_SECONDS and file.moving


def _spawns(file: File, thread: str) -> bool:
    """Whether a record of `file` says that it began that thread."""
    name = thread.encode("utf-8", "surrogatepass")
    position, rest = 0, b""
    try:
        while block := file.read(position, BLOCK):
            if name in rest + block:
                break
            position, rest = position + len(block), block[-len(name) :]
            if block[-1] == 0:  # perhaps the beginning of a hole
                position = file.next_data(position)
        else:
            return False
        return any(name in line.data and thread in _spawned_on(line.data) for line in lines(file, limit=MAX_LINE))
    except OSError:
        return False


def _spawned_on(data: bytes) -> list[str]:
    try:
        record = SCHEMA.decode(data, {})[0]
    except FormatError:
        return []
    payload = getattr(record, "payload", None)
    return [] if payload is None else list(payload.threads())


# ---- reading them as one


class _Part(Struct):
    """The thread of an agent."""

    path: str
    """Relative to the folder of the run's file."""
    reader: LogReader[Session]

    @property
    def begun(self) -> bool:
        """Whether anything was read."""
        return hasattr(self.reader, "session")


class Reader:
    """The `tracetui.formats.base.Reader` of a thread, its history and those of its agents."""

    def __init__(self) -> None:
        self._own = LogReader(SCHEMA, partial(Session, look_back=inherit))
        self._parts: dict[str, _Part] = {}
        self._begun = False

    def more(self, file: File) -> Chunk:
        return self.read(file, perf_counter() + BUDGET * (1 if self._begun else FIRST))

    def read(self, file: File, deadline: float) -> Chunk:
        """What is new, until `deadline` (`perf_counter`)."""
        file.memo.pop(_LISTED, None)
        own, self._begun = self._own, True
        moved, reset = own.advance(file, deadline), own.take_restart()
        if reset:
            self._parts = {}
        done = own.done
        for thread, call, note in self._agents():
            if not done:
                break
            part = self._parts.get(thread) or self._add(file, thread, call, note)
            if part is None:
                continue
            with file.other(part.path) as other:
                try:
                    file.other(part.path, other.stat)  # the run moves while an agent does
                    moved |= part.reader.advance(other, deadline)
                except OSError:
                    continue
            if part.reader.take_restart():
                self.__init__()  # type: ignore[misc]
                return msgspec.structs.replace(self.read(file, deadline), reset=True)
            done = part.reader.done
        return self._chunk(done=done, reset=reset) if moved else Chunk(done=done)

    def _agents(self) -> Iterator[tuple[str, str, str]]:
        """(thread, id of the span that spawned it, note) of all agents, each before its own."""
        session = self._own.session
        queue = [
            (thread, call, INHERITED if thread in session.inherited else "", 1)
            for thread, call in session.threads.items()
        ]
        seen = set() if session.meta is None else {session.meta.id}
        for thread, call, note, depth in queue:
            if thread in seen or depth > DEPTH:
                continue
            seen.add(thread)
            yield thread, call, note
            part = self._parts.get(thread)
            if part is not None and part.begun:
                queue += [(one, below, note, depth + 1) for one, below in part.reader.session.threads.items()]

    def _add(self, file: File, thread: str, call: str, note: str) -> _Part | None:
        """Begin to read the thread of an agent, if its file is there: what it did is below one span, and that below
        the call.
        """
        path = find(file, thread)
        if path is None:
            return None

        def begin(other: File) -> Session:
            session = Session(other, path=path, prefix=f"{thread}:", origin=note)
            session.agent = Row(f"{thread}:", "agent", Operation.INVOKE_AGENT, call, None, None, note, b"", path)
            session.emit(session.agent)
            return session

        part = self._parts[thread] = _Part(path, LogReader(SCHEMA, begin))
        return part

    def _chunk(self, *, done: bool, reset: bool) -> Chunk:
        own = self._own.session
        readers = [self._own, *(part.reader for part in self._parts.values() if part.begun)]
        sessions = [one.session for one in readers]
        spans: list[Span] = []
        problems: list[Problem] = []
        for one in sessions:
            spans += one.collect()
            problems += one.problems
            one.problems = []
        header = msgspec.structs.replace(
            own.header(),
            size=own.before + sum(one.file.stat.size for one in sessions),
            unfinished=tuple(problem for one in readers for problem in one.unfinished),
            fields=unknown_fields(*(one.unknown for one in sessions)),
        )
        return Chunk(spans=spans, header=header, body=own.run_body(), problems=problems, reset=reset, done=done)

    def counted(self, file: File, ref: RunRef) -> RunSummary:
        """The summary of all records. Raises `FormatError` if there are problems and no record."""
        chunk, builder = self.read(file, inf), RunBuilder(ref, lambda span: Body())
        builder.add(chunk.spans, header=chunk.header, problems=chunk.problems)
        if not self._own.session.records and (chunk.problems or not file.moving):
            first = next(iter(chunk.problems), None) or Problem(file.path, "line 1", "it does not end")
            raise FormatError(f"no record could be read: {first.reason}", first.where)
        return builder.summary(modified_at=file.stat.mtime, moving=file.moving)


# ---- forks


def inherit(session: Session, meta: Meta, seen: tuple[str, ...] = ()) -> None:
    """Read what a fork has from others: the history that it goes on from, or what it may have copied."""
    base, file = meta.base, session.file
    if base is None:
        session.copies = _copies(file, meta)
        return
    thread = str(base.thread_id)
    if thread in seen or len(seen) >= DEPTH:
        return
    path = find(file, thread)
    if path is None:
        session.problem(session.line, f"the history in thread {thread[:64]} is missing: no file of it was found")
        return
    look_back = partial(inherit, seen=(*seen, thread))
    history = Session(file, path=path, prefix=f"{thread}:", origin=INHERITED, look_back=look_back)
    with file.other(path) as other:
        whole = _read_history(history, other, base)
    if not whole:
        session.problem(session.line, f"the history in thread {thread[:64]} ends before the fork")
    session.go_on_from(history)


def _read_history(session: Session, other: File, base: Base) -> bool:
    """Take what came before the fork; False if not all of it is there."""
    end, last = base.end_byte_offset, base.end_ordinal_exclusive
    size, line = other.stat.size, Line()
    for found in lines(other, limit=MAX_LINE, end=size if end is None else max(0, min(end, size))):
        session.before += found.next_offset - found.offset
        line.offset, line.number, line.data = found.offset, found.number, found.data
        record = None if found.skipped else _record(session, found.data)
        if record is None:
            if found.data.strip():
                session.problem(line, f"of the history in {other.name}: no record")
            continue
        ordinal = record.ordinal
        if end is None and last is not None and isinstance(ordinal, int) and ordinal >= last:
            break
        session.take(record, line)
    return end is None or size >= end


def _record(session: Session, data: bytes) -> Any:
    try:
        skippable(data)
        return SCHEMA.strict(data)
    except (ValueError, RecursionError):
        pass
    try:
        return SCHEMA.decode(data, session.unknown)[0]
    except FormatError:
        return None


class Copies:
    """What an old fork copied: the records of the original, by their checksums."""

    def __init__(self, original: File) -> None:
        found = (line.data for line in lines(original, limit=MAX_LINE, end=original.stat.size) if not line.skipped)
        self._checks = [check for data in found if (check := _check(data)) is not None]
        self._met = 0

    def __call__(self, data: bytes, is_meta: bool) -> bool:
        """Whether the record on the next line was copied."""
        check = None if is_meta else _check(data)
        if check is None:
            return True
        try:
            self._met = self._checks.index(check, self._met, self._met + _AHEAD) + 1
        except ValueError:
            return False
        return True


class _Said(Struct, gc=False):
    """What a record says, but for when it was written."""

    type: str
    payload: Raw


_said: Final = msgspec.json.Decoder(_Said).decode


def _check(data: bytes) -> int | None:
    """Checksum of what the record on a line says; None for what is no record, or is about the thread as a whole."""
    try:
        said = _said(data)
    except (ValueError, RecursionError):
        return crc32(data) if data.strip() else None
    return None if said.type == "session_meta" else crc32(said.payload, crc32(said.type.encode()))


def _copies(file: File, meta: Meta) -> Copies | None:
    """What an old fork may have copied. Where its original is gone no other thread says what it cost."""
    original = meta.forked_from_id
    if not original or original == meta.id or meta.history_base is not None:
        return None
    path = find(file, original)
    if path is None:
        return None
    try:
        with file.other(path) as other:
            return Copies(other)
    except OSError:
        return None
