"""Threads that make one run: a fork begins with the history of another, an agent's thread is below what spawned it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import START, Chunk
from tracetui.formats.codex.copies import Copies, copies_of
from tracetui.formats.codex.find import LISTED, PACKED, find
from tracetui.formats.codex.records import META, At, record_of
from tracetui.formats.codex.run import body_of_run, header_of
from tracetui.formats.codex.session import Session
from tracetui.formats.codex.tools import spawned
from tracetui.formats.codex.turns import leave
from tracetui.formats.fields import unknown_fields
from tracetui.formats.lines import BLOCK, Line, lines
from tracetui.formats.scalars import child, moment, string, whole
from tracetui.formats.tail import MAX_LINE, Place, Reader, parse, read_on, unfinished
from tracetui.model import INHERITED, Header, Operation, Problem, RunBody, Span
from tracetui.sources.base import MOVING_SECONDS, File

DEPTH: Final = 16
"""Forks of forks, and agents of agents, are followed so far."""


class Part(msgspec.Struct, frozen=True):
    """The thread of an agent, and how far it was read."""

    path: str
    """Relative to the folder of the run's file."""
    call: str
    """Id of the span that spawned it."""
    note: str = ""
    """``inherited`` where the history of a fork began it."""
    place: Place | None = None


class Reading(msgspec.Struct, frozen=True):
    """How far all threads of a run were read."""

    own: Place
    header: Header | None = None
    """As the thread itself told it last."""
    parts: dict[str, Part] = {}

    @property
    def taken(self) -> bool:
        """Whether there was any record."""
        return bool(self.own.session.records or (self.own.ahead is not None and self.own.ahead.taken))

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        before: int = self.own.session.before
        return before + sum(place.stat.size for place in self.places)

    @property
    def unfinished(self) -> tuple[Problem, ...]:
        """Last lines that are no record yet."""
        return unfinished(*(place.ahead for place in self.places))

    @property
    def places(self) -> list[Place]:
        """Of its own thread, and of those of its agents."""
        return [self.own, *(part.place for part in self.parts.values() if part.place is not None)]


# ---- which are told below others


def _first(file: File) -> bytes:
    """The first line, or as much of it as is there."""
    head = file.head
    line, newline, _ = head.partition(b"\n")
    if newline or file.stat.size <= len(head):
        return line
    return next((line.data for line in lines(file, limit=MAX_LINE, end=file.stat.size)), b"")


def whole_of(file: File) -> str | None:
    """Path of the file of the thread below which that of `file` is told; None where it stands for itself.

    What was packed and is there unpacked as well is told by that.
    """
    twin = file.sibling(file.name) if file.path.endswith(PACKED) else None
    if twin is None:
        return _above(file, ()) or None
    with file.other(file.name) as unpacked:
        return _above(unpacked, ()) or twin


def _above(file: File, seen: tuple[str, ...]) -> str | None:
    """The same; "" where threads spawned each other, or too many one another: then each stands for itself."""
    meta = _meta(file) or {}
    above, thread = _parent(meta), string(meta.get("id"))
    if above is None or thread is None or not file.name.endswith(f"-{thread}.jsonl"):  # it could not be found by its id
        return None
    if (found := find(file, above)) is None:
        return None
    if thread in seen or len(seen) >= DEPTH:
        return ""
    with file.other(found) as other:
        if not _is_young(file, meta) and not _spawns(other, thread):
            return None
        path = _above(other, (*seen, thread))
        return other.path if path is None else path


def _is_young(file: File, meta: dict[str, Any]) -> bool:
    """Whether a thread was spawned just now: the record that says so is written a moment after its first one."""
    began = moment(meta.get("timestamp"))
    spawn = child(child(meta, "source"), "subagent").get("thread_spawn")
    return spawn is not None and began is not None and file.stat.mtime - began < MOVING_SECONDS and file.moving


def _parent(meta: dict[str, Any]) -> str | None:
    spawn = child(child(child(meta, "source"), "subagent"), "thread_spawn")
    return string(meta.get("parent_thread_id")) or string(spawn.get("parent_thread_id"))


def _meta(file: File, about: bytes = b"parent_thread_id") -> dict[str, Any] | None:
    """What the first line says of the thread, if it says anything of that."""
    try:
        first = _first(file)
        value = parse(first)[0] if about in first else None
    except (FormatError, OSError):
        return None
    record = record_of(value) if isinstance(value, dict) else None
    return record.payload if record is not None and record.kind == META else None


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
        return any(name in line.data and thread in _spawned_on(line) for line in lines(file, limit=MAX_LINE))
    except OSError:
        return False


def _spawned_on(line: Line) -> list[str]:
    try:
        value = parse(line.data)[0]
    except FormatError:
        return []
    return spawned(record_of(value).payload) if isinstance(value, dict) else []


# ---- reading them as one


def read_all(file: File, reading: Reading | None) -> Chunk:
    """What came since `reading` in the file of a run and in those of its agents."""
    file.memo.pop(LISTED, None)
    again = False
    if reading is not None and reading.own.offset == 0 and reading.own.stat != file.stat:
        reading, again = None, True  # the first line, which says how the run begins, may be there only now
    chunk = read_on(_OWN, file, reading.own if reading is not None else START)
    parts = dict(reading.parts) if reading is not None and not chunk.reset else {}
    spans, problems, done, moved = list(chunk.spans), list(chunk.problems), chunk.done, False
    for thread, call, note in _agents(chunk.cursor.session, parts):
        part = parts.get(thread) or (_part(file, thread, call, note) if done else None)
        if part is None or not done:
            continue
        more = _read_part(file, thread, part)
        if more is None:
            continue
        if more.reset:
            return msgspec.structs.replace(read_all(file, None), reset=True)
        moved = moved or more.cursor is not part.place
        parts[thread] = msgspec.structs.replace(part, place=more.cursor)
        spans += more.spans
        problems += more.problems
        done = more.done
    told = chunk.header or (None if reading is None else reading.header)
    cursor, header = Reading(chunk.cursor, told, parts), told if moved else chunk.header
    if header is not None:
        fields = unknown_fields(*(place.session.strange for place in cursor.places))
        header = msgspec.structs.replace(header, size=cursor.size, unfinished=cursor.unfinished, fields=fields)
    reset = chunk.reset or again
    return Chunk(spans=spans, header=header, body=chunk.body, problems=problems, cursor=cursor, reset=reset, done=done)


def _read_part(file: File, thread: str, part: Part) -> Chunk | None:
    """What came in the thread of an agent; None where it cannot be read now."""
    with file.other(part.path) as other:
        try:
            file.other(part.path, other.stat)  # the run moves while an agent does
            return read_on(_reader(thread, part), other, part.place)
        except OSError:
            return None


def _agents(session: Session, parts: dict[str, Part]) -> Iterator[tuple[str, str, str]]:
    """(thread, id of the span that spawned it, note) of all agents, each before its own; `parts` fills meanwhile."""
    queue = [(thread, call, session.inherited.get(thread, ""), 1) for thread, call in session.threads.items()]
    seen = set() if session.meta is None else {string(session.meta.payload.get("id"))}
    for thread, call, note, depth in queue:
        if thread in seen or depth > DEPTH:
            continue
        seen.add(thread)
        yield thread, call, note
        part = parts.get(thread)
        if part is not None and part.place is not None:
            queue += [(one, below, note, depth + 1) for one, below in part.place.session.threads.items()]


def _part(file: File, thread: str, call: str, note: str) -> Part | None:
    found = find(file, thread)
    return None if found is None else Part(found, call, note)


def _reader(thread: str, part: Part) -> Reader:
    """Reads the thread of an agent: all that it did is below one span, and that below the call."""

    def begin(other: File) -> Session:
        session = Session(other.path, file=part.path, prefix=f"{thread}:", note=part.note)
        span = Span(
            id=f"{thread}:",
            name="agent",
            operation=Operation.INVOKE_AGENT,
            parent_id=part.call,
            note=part.note,
            at=At((), part.path),
        )
        session.agent = session.add(span)
        return session

    return Reader(begin, lambda session, other: (_NOBODY, RunBody()))


_NOBODY: Final = Header(id="", name="")


def _told(session: Session, file: File) -> tuple[Header, RunBody]:
    header = header_of(session, file)
    return header, body_of_run(session)


def _begin(file: File) -> Session:
    """A session that goes on from the history of another thread, or from copies of it, where the first line says so."""
    session = Session(file.path)
    with_base = _base(file)
    if with_base is None:
        session.copies = _copies(file)
        return session
    history, reason = _history(file, *with_base)
    if reason:
        session.problem(1, reason)
    if history is not None:
        _take_over(session, history)
    return session


_OWN: Final = Reader(_begin, _told)


# ---- the history of a fork


def copied_from(file: File) -> str | None:
    """Path of the thread of which `file` has copies, relative to its folder: an old fork's original that is there."""
    meta = _meta(file, b"forked_from_id") or {}
    thread = string(meta.get("forked_from_id"))
    if thread is None or thread == meta.get("id") or "history_base" in meta:
        return None
    return find(file, thread)


def _copies(file: File) -> Copies | None:
    """What an old fork may have copied. Where its original is gone nobody else tells what it cost."""
    found = copied_from(file)
    if found is None:
        return None
    try:
        with file.other(found) as original:
            return copies_of(original)
    except OSError:
        return None


def _base(file: File) -> tuple[str, dict[str, Any]] | None:
    """(thread, where it ends) of the history that a file goes on from; None where it begins by itself."""
    first = _first(file)
    if b"history_base" not in first:
        return None
    try:
        value = parse(first)[0]
    except FormatError:
        return None
    base = child(record_of(value).payload, "history_base") if isinstance(value, dict) else {}
    thread = string(base.get("thread_id"))
    return None if thread is None else (thread, base)


def _history(file: File, thread: str, base: dict[str, Any]) -> tuple[Session | None, str]:
    """The session of that thread up to there, and what is wrong with it."""
    chain: list[tuple[str, dict[str, Any], str]] = []
    while True:
        found = find(file, thread)
        if found is None:
            missing = f"the history in thread {thread[:64]} is missing: no file of it was found"
            break
        chain.append((thread, base, found))
        missing = ""
        with file.other(found) as other:
            before = _base(other)
        if before is None or len(chain) >= DEPTH or any(before[0] == known for known, _, _ in chain):
            break
        thread, base = before
    session: Session | None = None
    for thread, base, path in reversed(chain):
        one = Session(file.path, file=path, prefix=f"{thread}:", note=INHERITED)
        if session is not None:
            _take_over(one, session)
        with file.other(path) as other:
            if not _read_history(one, other, base):
                missing = missing or f"the history in thread {thread[:64]} ends before the fork"
        session = one
    return session, missing


def _read_history(session: Session, other: File, base: dict[str, Any]) -> bool:
    """Take in what came before the fork; False if not all of it is there."""
    end, last = whole(base.get("end_byte_offset")), whole(base.get("end_ordinal_exclusive"))
    size = other.stat.size
    for line in lines(other, limit=MAX_LINE, end=size if end is None else max(0, min(end, size))):
        session.before += line.next_offset - line.offset
        try:
            value = None if line.skipped else parse(line.data)[0]
        except FormatError:
            value = None
        if end is None and last is not None and isinstance(value, dict) and (whole(value.get("ordinal")) or 0) >= last:
            break
        if isinstance(value, dict):
            session.take(value, line)
        elif line.data.strip():
            session.problem(line.number, f"of the history in {other.name}: no record")
    return end is None or size >= end


def _take_over(session: Session, history: Session) -> None:
    """Go on from where `history` ends."""
    leave(history)
    session.spans.update(history.spans)
    session.problems.extend(history.problems)
    session.threads = dict(history.threads)
    session.inherited = dict.fromkeys(history.threads, INHERITED)
    session.turns, session.meter = history.turns, history.meter
    session.model = history.model
    session.before += history.before
    session.strange = dict(history.strange)
