"""Reading a file of JSON lines on from where the last read stopped, while others may write, rewrite or replace it.

A format brings a `Session` that takes in one record after the other; all else is the same for every such format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from time import perf_counter
from typing import Any, Final, NamedTuple, Protocol, Self
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import START, Chunk, Cursor
from tracetui.formats.calls import as_json
from tracetui.formats.decode import MAX_LENIENT, decode
from tracetui.formats.lines import BLOCK, Line, lines
from tracetui.model import LAST_LINE, Body, Header, Problem, Run, RunBody, RunRef, Span
from tracetui.model.build import RunBuilder
from tracetui.sources.base import File, Stat
from tracetui.sources.versions import settled

BUDGET: Final = 0.05
"""Seconds that one read may take."""
FIRST: Final = 0.2
"""Part of that for the first read, which fills a screen at once."""
MAX_LINE: Final = MAX_LENIENT
"""Bytes of the longest line that is read; a longer one becomes a problem."""
_EDGE: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = _BOM + b" \t\r\0"
"""What may stand before a record."""


class Session(Protocol):
    """What must be remembered of a run between two reads, however long its file is."""

    @property
    def ended(self) -> bool:
        """The last record said so: half a line after it is damage, not the beginning of more."""
        ...

    @property
    def spans(self) -> dict[str, Span]:
        """New and changed spans by id since this session was copied."""
        ...

    @property
    def problems(self) -> list[Problem]:
        """New problems since this session was copied."""
        ...

    def copy(self) -> Self:
        """A session that goes on from here without changing this one; nothing is left to collect in it."""
        ...

    def take(self, record: Any, line: Line, note: str | None = None) -> None:
        """Take in the value on `line`; `note` says why it had to be read leniently. Never raises for any value."""
        ...

    def problem(self, line: int, reason: str) -> None:
        """Report one line."""
        ...


class Reader(NamedTuple):
    """How one format reads its lines."""

    begin: Callable[[File], Any]
    """A `Session` of a file of which nothing was read yet."""
    told: Callable[[Any, File], tuple[Header, RunBody]]
    """What a session says about the run as a whole."""
    wanted: Callable[[bytes], bool] | None = None
    """Whether a line need be decoded, where a file holds many runs; None: each must be."""


class Ahead(msgspec.Struct, frozen=True):
    """What was made of a last line that has no newline yet: it must be taken back if that line ends otherwise."""

    path: str
    size: int
    hash: bytes
    taken: bool
    """It was taken for a record."""
    told: bool
    """Problems of it were reported."""
    blank: bool
    """There is nothing but white space on it."""


def unfinished(*ahead: Ahead | None) -> tuple[Problem, ...]:
    """Last lines of which nothing was made yet: problems, unless somebody is writing them."""
    return tuple(
        Problem(one.path, LAST_LINE, f"cut off: {one.size} bytes that are no whole record", one.size, torn=True)
        for one in ahead
        if one is not None and not (one.taken or one.told or one.blank)
    )


class Place(msgspec.Struct, frozen=True):
    """Where a read stopped: all lines before `offset` are taken into `session`, which nobody changes any more."""

    stat: Stat
    """The version of the file that was read: no byte from its size on."""
    session: Any
    """A `Session`."""
    offset: int = 0
    line: int = 1
    edges: bytes = b""
    """Hash of the first and the last bytes before `offset`: other bytes there mean another file."""
    check: int = 0
    """Checksum of all bytes before `offset`."""
    ahead: Ahead | None = None
    current: bool = False
    """All of that version was read, and no change can leave the same stat behind."""


def parse(data: bytes) -> tuple[Any, str | None]:
    """The value on one line and a note if it had to be read leniently; raises `FormatError` if it is no JSON."""
    data = data.removeprefix(_BOM)
    if not data.startswith(b"\0"):
        return decode(data)
    rest = data.lstrip(b"\0")
    if not rest:
        raise FormatError(f"{len(data)} NUL bytes and no record")
    value, _ = decode(rest)
    return value, f"{len(data) - len(rest)} NUL bytes before the record"


def record_on(data: bytes) -> dict[str, Any] | None:
    """The object on one line, None if there is none."""
    try:
        value, _ = parse(data)
    except FormatError:
        return None
    return value if isinstance(value, dict) else None


def records_in(head: bytes, most: int) -> Iterator[dict[str, Any]]:
    """The objects on the first `most` lines of the head of a file; one without newline is read if it is whole."""
    for data in head.split(b"\n", most)[:most]:
        if data.lstrip(_BLANK)[:1] == b"{" and (record := record_on(data)) is not None:
            yield record


def object_of(session: Session, value: Any, line: Line, note: str | None) -> dict[str, Any] | None:
    """The object on a line, for `Session.take`: what is odd about it is reported, and None for what is no object."""
    if note:
        session.problem(line.number, f"read leniently: {note}")
    if isinstance(value, dict):
        return value
    session.problem(line.number, f"not a JSON object: {as_json(value)}")
    return None


def read_whole(read: Callable[[Cursor], Chunk], file: File, ref: RunRef) -> tuple[Run, Cursor]:
    """The run of all that `read` gives from one cursor on to the next, without bodies; and the cursor at its end."""
    builder = RunBuilder(ref, lambda span: Body())
    cursor, done = START, False
    while not done:
        chunk = read(cursor)
        if chunk.reset:
            builder.reset()
        builder.add(chunk.spans, header=chunk.header, problems=chunk.problems)
        cursor, done = chunk.cursor, chunk.done
    return builder.build(modified_at=file.stat.mtime, moving=file.moving), cursor


def nothing_in(run: Run, otherwise: str) -> FormatError:
    """Why nothing of a file could be read: its first problem, if it has one."""
    where, reason = "line 1", otherwise
    if run.problems:
        where, reason = run.problems[0].where, run.problems[0].reason
    return FormatError(f"no record could be read: {reason}", where)


def read_on(reader: Reader, file: File, place: Place | None) -> Chunk:
    """What came since `place` (None: all), about `BUDGET` seconds worth of it; anew if the file is another one."""
    stat = file.stat
    if place is None:
        return _anew(reader, file, reset=False)
    if place.current and stat == place.stat:
        return Chunk(cursor=place)
    if not goes_on(file, place):
        return _anew(reader, file, reset=True)
    if place.ahead is not None:
        tail = next(lines(file, place.offset, place.line, limit=MAX_LINE, end=stat.size), None)
        if tail is not None and not tail.whole and _hash(tail.data) == place.ahead.hash:
            return Chunk(cursor=msgspec.structs.replace(place, stat=stat, current=settled(stat)))
        if _taken_back(place.ahead, tail):
            return _anew(reader, file, reset=True)
    return _read(reader, file, place, place.session.copy(), reset=False)


def goes_on(file: File, place: Place) -> bool:
    """Whether what was read is still there. Of a file that was changed and did not grow, every byte is compared."""
    stat, before = file.stat, place.stat
    if (stat.device, stat.inode) != (before.device, before.inode) or place.edges != edges_of(file, place.offset):
        return False
    touched = (stat.mtime_ns, stat.ctime_ns) != (before.mtime_ns, before.ctime_ns)
    return stat.size != before.size or not touched or place.check == _check(file, place.offset)


def _taken_back(ahead: Ahead, tail: Line | None) -> bool:
    """Whether what was made of an unfinished line does not hold for what is there now."""
    if ahead.told:
        return True
    if not ahead.taken:
        return False
    return tail is None or _hash(tail.data[: ahead.size]) != ahead.hash or _object(tail) is None


def _anew(reader: Reader, file: File, *, reset: bool) -> Chunk:
    session = reader.begin(file)
    return _read(reader, file, Place(file.stat, session), session, reset=reset)


def _read(reader: Reader, file: File, place: Place, session: Session, *, reset: bool) -> Chunk:
    deadline = perf_counter() + BUDGET * (1 if place.offset else FIRST)
    stat = file.stat
    offset, number = place.offset, place.line
    check = place.check
    last: Line | None = None
    done = True
    for line in lines(file, offset, number, limit=MAX_LINE, end=stat.size):
        if perf_counter() > deadline and offset > place.offset:
            done = False
            break
        if not line.whole:
            last = line
            break
        if reader.wanted is None or reader.wanted(line.data):
            _take(session, line)
        check = crc32(b"\n", crc32(line.data, check)) if not line.skipped else -1
        offset, number = line.next_offset, line.number + 1
    spans, problems = session.spans, session.problems
    kept: Session = session.copy()
    ahead = None
    if last is not None:
        session, ahead = _look_ahead(kept, last, file.path)
        spans, problems = spans | session.spans, problems + session.problems
    edges = place.edges if offset == place.offset else edges_of(file, offset)
    header, body = reader.told(session, file)
    return Chunk(
        spans=list(spans.values()),
        header=msgspec.structs.replace(header, unfinished=unfinished(ahead)),
        body=body,
        problems=problems,
        cursor=Place(stat, kept, offset, number, edges, check, ahead, done and settled(stat)),
        reset=reset,
        done=done,
    )


def _take(session: Session, line: Line) -> None:
    """Take in a finished line; a blank one is nothing."""
    if line.skipped:
        size = len(line.data) + line.skipped
        _lose(session, line, f"a line of {size} bytes is too long to be read", torn=False)
        return
    data = line.data
    if not data or data.isspace():
        return
    try:
        record, note = parse(data)
    except FormatError as error:
        at = f" ({error.where} of the line)" if error.where else ""
        _lose(session, line, f"{error.reason}{at}")
        return
    session.take(record, line, note)


def _lose(session: Session, line: Line, reason: str, *, torn: bool = True) -> None:
    """Report a line of which nothing can be shown."""
    told = len(session.problems)
    session.problem(line.number, reason)
    size = len(line.data) + line.skipped
    lost = [msgspec.structs.replace(one, lost=size, torn=torn) for one in session.problems[told:]]
    session.problems[told:] = lost


def _look_ahead(before: Session, line: Line, path: str) -> tuple[Session, Ahead]:
    """The session as it will be if this line is finished, and what that says beyond the finished lines.

    A line that is only half there is live, unless the session ended before it.
    """
    session = before.copy()
    record = _object(line)
    if record is not None:
        session.take(record, line)
    elif before.ended and not line.data.isspace():
        _lose(session, line, "cut off: the line does not end, and it comes after the end of the session")
    told = bool(session.problems)
    size, blank = len(line.data) + line.skipped, not line.data.strip(_BLANK)
    return session, Ahead(path, size, _hash(line.data), record is not None, told, blank)


def _object(line: Line) -> dict[str, Any] | None:
    """The record on a line, None if there is none (yet)."""
    return None if line.skipped else record_on(line.data)


def edges_of(file: File, offset: int) -> bytes:
    """Hash of the first and the last bytes before `offset`."""
    if offset == 0:
        return b""
    size = min(_EDGE, offset)
    return _hash(file.read(0, size) + file.read(offset - size, size))


def _check(file: File, offset: int) -> int:
    """Checksum of all bytes before `offset`."""
    check = position = 0
    while block := file.read(position, min(BLOCK, offset - position)):
        check = crc32(block, check)
        position += len(block)
    return check


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()
