"""Codex rollouts: the sessions of OpenAI's Codex (command line, editor, desktop), one file a thread.

A rollout is appended to a line at a time and has no last record: a thread can be resumed at any time.

A run may be several threads: a fork begins with the history of another, an agent's thread is below its call.
Each thread is in a separate file, ``sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl``, which Codex may pack
(``.jsonl.zst``) when it was not used for long. A thread's id contains its start time (UUID version 7), and so in which
folder its file is. Today's forks name the history that they continue; an old fork copied it: Codex wrote the records
of the original again, at another time, before those of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePath
from time import perf_counter
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from tracetui.errors import FormatError
from tracetui.formats.agent_log import INVOKE_AGENT
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.codex.body import body_of
from tracetui.formats.codex.context import context_of
from tracetui.formats.codex.records import KINDS, SCHEMA, Base, Meta
from tracetui.formats.codex.session import Row, Session
from tracetui.formats.decode import BLANK, BLOCK, MAX_LINE, lines, parse
from tracetui.formats.jsonl import Line, LogFormat, LogReader
from tracetui.formats.scalars import moment
from tracetui.formats.schema import unknown_fields
from tracetui.model import INHERITED, Body, Problem, RunRef, RunSummary, Span
from tracetui.model.context import ContextFacts
from tracetui.sources.base import MOVING_SECONDS, Entry, File

DEPTH: Final = 16
"""Forks of forks and agents of agents that are read."""
PACKED: Final = ".zst"
_LISTED: Final = "codex.folders"
"""Key in the memo of a file, while it is read: the entries of the folders around it."""
_AHEAD: Final = 16
"""Records of the original that may be missing in a row: some versions keep records that others do not."""
_UUID: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


# ---- where the file of a thread is


def find(file: File, thread: str) -> str | None:
    """Path of a thread's file, relative to the folder of `file`; None if there is none."""
    if _UUID.fullmatch(thread) is None:
        return None
    ends = (f"-{thread}.jsonl", f"-{thread}.jsonl{PACKED}")
    listed: dict[str, list[Entry]] = file.memo.setdefault(_LISTED, {})
    for folder in _folders(thread):
        if folder not in listed:
            listed[folder] = file.folder(folder).entries
        paths = (entry.path for entry in listed[folder] if entry.stat is not None and entry.path.endswith(ends))
        names = [name for path in paths if (name := re.split(r"[/\\]", path)[-1]).startswith("rollout-")]
        if names:
            name = min(names, key=len)  # one that is packed and there unpacked as well is read unpacked
            return f"{folder}/{name}" if folder else name
    return None


def _folders(thread: str) -> Iterator[str]:
    """Where the file of a thread may be: in the folder of another, in the folder of its day, in the archive."""
    yield ""
    ident = _UUID.fullmatch(thread)
    try:
        began = datetime.fromtimestamp(int(ident[1] + ident[2], 16) / 1000, UTC) if ident else None
    except (ValueError, OverflowError, OSError):
        began = None
    for days in (0, -1, 1) if began is not None and began.year < 9999 else ():  # the folder is that of the local day
        assert began is not None
        day = (began + timedelta(days)).strftime("%Y/%m/%d")
        yield f"../{day[8:]}"  # the parent folders are unknown if they are the working folder
        yield f"../../{day[5:]}"
        yield f"../../../{day}"
        yield f"../sessions/{day}"
    yield "../../../../archived_sessions"


# ---- threads that are shown below others


def main_file_of(file: File) -> str | None:
    """Path of the file of the thread below which that of `file` is shown; None for a run of its own.

    A packed file that is there unpacked as well is part of that.
    """
    unpacked_path = file.sibling(file.name) if file.path.endswith(PACKED) else None
    if unpacked_path is None:
        return _parent_file(file, ()) or None
    with file.other(file.name) as unpacked:
        return _parent_file(unpacked, ()) or unpacked_path


def _parent_file(file: File, seen: tuple[str, ...]) -> str | None:
    """The same; "" where threads spawned each other, or too many one another: then each is a run of its own."""
    meta = _meta(file)
    if meta is None or meta.parent_thread_id is None or meta.id is None:
        return None
    thread = meta.id
    if not file.name.endswith(f"-{thread}.jsonl"):  # it could not be found by its id
        return None
    if (parent_path := find(file, meta.parent_thread_id)) is None:
        return None
    if thread in seen or len(seen) >= DEPTH:
        return ""
    began = moment(meta.timestamp)  # the record of the parent follows the first one of the agent by a moment
    young = meta.spawn is not None and began is not None and file.stat.mtime - began < MOVING_SECONDS and file.moving
    with file.other(parent_path) as other:
        if not young and not _spawns(other, thread):
            return None
        path = _parent_file(other, (*seen, thread))
        return other.path if path is None else path


def _meta(file: File) -> Meta | None:
    """The first record of the thread, if it names a parent."""
    first, newline, _ = file.head.lstrip(BLANK + b"\n").partition(b"\n")
    try:
        if not newline and file.stat.size > len(file.head):
            every = lines(file, limit=MAX_LINE, end=file.stat.size)
            first = next((line.data for line in every if line.data.strip(BLANK)), b"")
    except OSError:
        return None
    payload = _payload(first) if b"parent_thread_id" in first else None
    return payload if isinstance(payload, Meta) else None


def _payload(data: bytes) -> Any:
    """The payload of the record on a line; None if there is none."""
    try:
        return getattr(SCHEMA.decode(data, {})[0], "payload", None)
    except FormatError:
        return None


def _spawns(file: File, thread: str) -> bool:
    """Whether a record of `file` starts that thread."""
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
        payloads = (_payload(line.data) for line in lines(file, limit=MAX_LINE) if name in line.data)
        return any(payload is not None and thread in payload.threads() for payload in payloads)
    except OSError:
        return False


# ---- reading them as one


class Reader:
    """The `tracetui.formats.base.Reader` of a thread, its history and those of its agents."""

    def __init__(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self._own = LogReader(SCHEMA, partial(Session, look_back=inherit))
        self._agents: dict[str, tuple[str, LogReader[Session]]] = {}
        """By thread: the path of its file, relative to the folder of the run's file, and its reader."""

    @property
    def records(self) -> int:
        """Records of the thread itself that were taken."""
        return self._own.records

    def more(self, file: File) -> Chunk:
        return self.read(file, self._own.budget)

    def read(self, file: File, seconds: float) -> Chunk:
        """Read what is new, for about `seconds` at most."""
        file.memo.pop(_LISTED, None)
        own, deadline = self._own, perf_counter() + seconds
        moved, reset = own.advance(file, deadline), own.take_restart()
        if reset:
            self._agents = {}
        done = own.done
        for thread, call, note in self._spawned():
            if not done:
                break
            path, reader = self._agents.get(thread) or self._add(file, thread, call, note)
            if path is None:
                continue
            with file.other(path) as other:
                try:
                    file.other(path, other.stat)  # the run moves while an agent does
                    moved |= reader.advance(other, deadline)
                except OSError:
                    continue
            if reader.take_restart():
                self._restart()
                return msgspec.structs.replace(self.read(file, deadline - perf_counter()), reset=True)
            done = reader.done
        return self._chunk(done=done, reset=reset) if moved else Chunk(done=done)

    def _spawned(self) -> Iterator[tuple[str, str, str]]:
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
            reader = self._agents[thread][1] if thread in self._agents else None
            if reader is not None and reader.stat is not None:
                queue += [(spawned, below, note, depth + 1) for spawned, below in reader.session.threads.items()]

    def _add(self, file: File, thread: str, call: str, note: str) -> tuple[str | None, LogReader[Session]]:
        """Begin to read the thread of an agent, if its file is there: its work is below one span, and that below the
        call.
        """
        path = find(file, thread)

        def begin(other: File) -> Session:
            session = Session(other, path=path or "", prefix=f"{thread}:", origin=note, look_back=inherit)
            session.agent = Row(f"{thread}:", "agent", INVOKE_AGENT, call, None, None, b"", note=note, part=path or "")
            session.emit(session.agent)
            return session

        reader = LogReader(SCHEMA, begin)
        if path is not None:
            self._agents[thread] = path, reader
        return path, reader

    def _chunk(self, *, done: bool, reset: bool) -> Chunk:
        own = self._own.session
        readers = [self._own, *(reader for _, reader in self._agents.values() if reader.stat is not None)]
        spans: list[Span] = []
        problems: list[Problem] = []
        for reader in readers:
            spans += reader.session.collect()
            problems += reader.take_problems()
        header = msgspec.structs.replace(
            own.header(),
            size=own.before + sum(reader.session.file.stat.size for reader in readers),
            unfinished=tuple(problem for reader in readers for problem in reader.unfinished),
            fields=unknown_fields(*(reader.session.unknown for reader in readers)),
        )
        return Chunk(spans=spans, header=header, body=own.run_body(), problems=problems, reset=reset, done=done)


# ---- forks


def inherit(session: Session, meta: Meta, seen: tuple[str, ...] = ()) -> None:
    """Read inherited records of a fork: the history that it continues, or the records that it may have copied."""
    base, file, start = meta.history_base, session.file, meta.subagent_history_start_ordinal
    if start is not None:
        session.copies = lambda data, is_meta: is_meta or _is_before(session.record.ordinal, start)
        return
    if not isinstance(base, Base) or base.thread_id is None:
        session.copies = _copies(file, meta) if base is None else None
        return
    thread = base.thread_id
    if thread in seen or len(seen) >= DEPTH:
        return
    path = find(file, thread)
    if path is None:
        session.problem(session.line, f"history of thread {thread[:64]} is missing: no file found")
        return
    look_back = partial(inherit, seen=(*seen, thread))
    history = Session(file, path=path, prefix=f"{thread}:", origin=INHERITED, look_back=look_back)
    with file.other(path) as other:
        is_complete = _read_history(history, other, base)
    if not is_complete:
        session.problem(session.line, f"history of thread {thread[:64]} ends before the fork")
    session.continue_history(history)


def _is_before(ordinal: Any, start: int) -> bool:
    return isinstance(ordinal, int) and ordinal < start


def _read_history(session: Session, other: File, base: Base) -> bool:
    """Take the records before the fork; False if some are missing."""
    end, last = base.end_byte_offset, base.end_ordinal_exclusive
    size, line = other.stat.size, Line()
    for raw_line in lines(other, limit=MAX_LINE, end=size if end is None else max(0, min(end, size))):
        session.before += raw_line.next_offset - raw_line.offset
        line.offset, line.number, line.data, line.check = (
            raw_line.offset,
            raw_line.number,
            raw_line.data,
            crc32(raw_line.data),
        )
        try:
            record = None if raw_line.skipped else SCHEMA.decode(raw_line.data, session.unknown)[0]
        except FormatError:
            record = None
        if record is None:
            if raw_line.data.strip():
                session.problem(line, f"of the history in {other.name}: no record")
            continue
        ordinal = record.ordinal
        if end is None and last is not None and isinstance(ordinal, int) and ordinal >= last:
            break
        session.take(record, line)
    return end is None or size >= end


class _Content(Struct):
    """All of a record but when it was written."""

    type: str
    payload: Raw


_content: Final = msgspec.json.Decoder(_Content).decode


class Copies:
    """The records that an old fork copied: those of the original, by their checksums. Claims can't tell: rollouts have
    no ids of responses, and a fork has its own thread, new times, and leaves records out.
    """

    def __init__(self, original: File) -> None:
        contents = (line.data for line in lines(original, limit=MAX_LINE, end=original.stat.size) if not line.skipped)
        self._checks = [check for data in contents if (check := self._check(data)) is not None]
        self._met = 0

    def __call__(self, data: bytes, is_meta: bool) -> bool:
        """Whether the record on the next line was copied."""
        check = None if is_meta else self._check(data)
        if check is None:
            return True
        try:
            self._met = self._checks.index(check, self._met, self._met + _AHEAD) + 1
        except ValueError:
            return False
        return True

    @staticmethod
    def _check(data: bytes) -> int | None:
        """Checksum of the content of a record; None for no record, and for one about the thread as a whole."""
        try:
            content = _content(data)
        except (ValueError, RecursionError):
            return crc32(data) if data.strip() else None
        return None if content.type == "session_meta" else crc32(content.payload, crc32(content.type.encode()))


def _copies(file: File, meta: Meta) -> Copies | None:
    """The records that an old fork may have copied. If its original is deleted, no other thread counts them."""
    original = meta.forked_from_id or (None if meta.spawn is None else meta.parent_thread_id)
    path = find(file, original) if original and original != meta.id else None
    if path is None:
        return None
    try:
        with file.other(path) as other:
            return Copies(other)
    except OSError:
        return None


LIKELY: Final = 60
_CUT: Final = re.compile(rb'"type"\s*:\s*"session_meta"')
_LOOK: Final = 16
"""Lines that `sniff` decodes."""


class Codex(LogFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "codex"
    title = "Codex rollout"
    home_variables = ("CODEX_HOME",)
    schema, session = SCHEMA, Session

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"payload"' not in head and b'"instructions"' not in head:
            return NO
        lines = head.split(b"\n", _LOOK)
        for index, data in enumerate(lines[:_LOOK]):
            score = _claims(data, first=index == 0)
            if score:
                return score
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins == b"{" and _CUT.search(head) and b'"payload"' in head else NO

    def open(self, file: File, ref: RunRef) -> Reader:
        return Reader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return body_of(file, span)

    def whole_of(self, file: File) -> str | None:
        """The thread of an agent is shown below the call that spawned it."""
        return main_file_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        """The threads of agents are in the folder of the day on which they were spawned."""
        return [f"../{os.path.basename(os.path.dirname(path))}"]

    def context(self, span: Span, body: Body) -> ContextFacts | None:
        return context_of(span, body)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        there = PurePath(environ.get("CODEX_HOME") or home / ".codex")
        return (there / "sessions", there / "archived_sessions")

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["codex", "resume", run.id]


def _claims(data: bytes, *, first: bool) -> int:
    """How surely a line is one of a rollout."""
    try:
        record: Any = parse(data)[0] if data.strip() else None
    except FormatError:
        return NO
    if not isinstance(record, dict):
        return NO
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(kind, str) and kind in KINDS and isinstance(payload, dict):
        return CERTAIN if kind != "session_meta" or "id" in payload else LIKELY
    old = first and isinstance(record.get("id"), str) and "timestamp" in record and "instructions" in record
    return LIKELY if old and "kind" not in record else NO
