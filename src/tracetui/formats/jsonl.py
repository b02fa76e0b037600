"""JSON lines: one reader for logs that are appended to. The list stage, counting, the full read and tailing use it.

A format brings a `Schema` of its records and a `Session`, which takes one record after the other and has the
state of the run so far. A session is plain mutable state: nothing copies it. If the file was rewritten, or an exception
may have interrupted a record, a new session reads the file from its start.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from math import inf
from time import perf_counter
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import NO, Chunk, Reader
from tracetui.formats.bodies import ByteRange, as_json, pack_range
from tracetui.formats.decode import BLANK, MAX_LINE, lines, records_in, skippable, whole_records, without_marks
from tracetui.formats.decode import Line as RawLine
from tracetui.formats.schema import Schema, Unknown
from tracetui.model import LAST_LINE, Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import File, Stat, settled

BUDGET: Final = 0.05
"""Seconds that one `LogReader.more` may take."""
FIRST: Final = 0.2
"""Part of that for the first call, so that the first screen is filled at once."""
_BLOCK: Final = 1 << 17
"""Bytes that are split into lines at a time."""
_CHECK: Final = 1 << 14
"""Bytes after which the time is checked."""
_EDGE: Final = 4096
"""Bytes at each end of the part that was read, in `_edges_of`."""
_LAST: Final = 1024
"""Bytes at the end that the list stage takes first,"""
_FURTHER: Final = 4
"""and the growth factor of that window until the status is clear. Smaller files are read completely."""


class Line:
    """The line that a session is taking; the same object for every line."""

    __slots__ = ("check", "data", "number", "offset")  # set for each line: faster than fields of a Struct

    def __init__(self, offset: int = 0, number: int = 0, data: bytes = b"", check: int = 0) -> None:
        """`number` is from 1, and 0 in the list stage where the lines before it were not read; `check` is the CRC-32
        of `data`, not computed in the list stage.
        """
        self.offset, self.number, self.data, self.check = offset, number, data, check

    @property
    def byte_range(self) -> ByteRange:
        """Offset and size in bytes."""
        return self.offset, len(self.data)

    def packed(self) -> bytes:
        """The line, as in `SpanRef.lines`."""
        return pack_range(self.offset, len(self.data), self.check)


class Session(Protocol):
    """The state of one run. `file`, its current file, is set before records are taken."""

    file: File
    records: int
    """Records that were taken."""
    unknown: Unknown
    """Unknown fields that were met."""
    problems: list[Problem]
    """New problems; the caller that collects them clears the list."""

    @property
    def ended(self) -> bool:
        """The last record ended the run: a partial line after it is damage, not a line in progress."""
        ...

    @property
    def settled(self) -> bool:
        """No later record changes the list-stage result of the beginning of the file."""
        ...

    @property
    def begun(self) -> bool:
        """The records taken have what the list stage shows of the beginning."""
        ...

    @property
    def has_status(self) -> bool:
        """The records taken since `skip` determine the status of the run."""
        ...

    def take(self, record: Any, line: Line) -> None:
        """Interpret one record. Raises nothing for any record that the schema decodes."""
        ...

    def skip(self, left_out: bytes) -> None:
        """Records were left out here (list stage): `left_out`, as far as they are in the head of the file."""
        ...

    def collect(self) -> list[Span]:
        """Spans that are new or changed since the last call."""
        ...

    def header(self) -> Header:
        """The header so far."""
        ...

    def run_body(self) -> RunBody:
        """The body of the run."""
        ...


class _Partial(msgspec.Struct, frozen=True, gc=False):
    """The last line, which has no newline yet."""

    size: int
    hash: bytes
    taken: bool
    """It is a complete record and was taken: a complete JSON object is never the beginning of another one."""
    reported: bool
    """It is a problem."""
    blank: bool


S = TypeVar("S", bound=Session)


class LogReader(Generic[S]):
    """The `Reader` of a run that is one file of JSON lines. Used by one thread at a time."""

    def __init__(self, schema: Schema[Any], begin: Callable[[File], S]) -> None:
        """`begin` makes a session of a file of which nothing was read yet."""
        self._schema = schema
        self._begin = begin
        self.stat: Stat | None = None
        """The version of the file that was read last."""
        self._restarted = False
        """The file was read from its start again, and no chunk has said so yet."""
        self._reset()
        self.session: S
        self.path = ""
        self.done = True
        """False while the file has unread content."""

    def _reset(self) -> None:
        self._offset, self._number, self._check, self._edges = 0, 1, 0, b""
        """All lines before that offset were taken; checksum of all of them; hash of the first and last bytes."""
        self._partial: _Partial | None = None
        self._current = False
        """All of the version was read, and no later change can leave the same stat behind."""
        self._busy = False
        """A record is being taken: after an exception the session may be half changed."""

    def more(self, file: File) -> Chunk:
        return self.read(file, self.budget)

    @property
    def budget(self) -> float:
        """Seconds that the next read should take."""
        return BUDGET * (1 if self._offset else FIRST)

    @property
    def records(self) -> int:
        """Records that were taken."""
        return self.session.records

    def read(self, file: File, seconds: float) -> Chunk:
        """Read what is new, for about `seconds` at most."""
        if not self.advance(file, perf_counter() + seconds):
            return Chunk()
        session = self.session
        spans, problems, restarted = session.collect(), self.take_problems(), self.take_restart()
        header = msgspec.structs.replace(session.header(), unfinished=self.unfinished)
        return Chunk(
            spans=spans,
            header=header,
            body=session.run_body(),
            problems=problems,
            reset=restarted,
            done=self.done,
        )

    def take_problems(self) -> list[Problem]:
        """Problems that were met since the last call."""
        problems = list(self.session.problems)
        self.session.problems.clear()
        return problems

    def take_restart(self) -> bool:
        """Whether the file was read from its start again since the last call."""
        restarted, self._restarted = self._restarted, False
        return restarted

    @property
    def unfinished(self) -> tuple[Problem, ...]:
        """A last line that is not a record yet: a problem once the file is at rest."""
        partial = self._partial
        if partial is None or partial.taken or partial.reported or partial.blank:
            return ()
        return (
            Problem(self.path, LAST_LINE, f"cut off: {partial.size} bytes, not a complete record", partial.size, True),
        )

    def is_current(self, stat: Stat | None) -> bool:
        """Whether all of that version of the file was read."""
        return self._current and stat == self.stat

    def advance(self, file: File, deadline: float) -> bool:
        """Take new records until `deadline` (`perf_counter`); False if the file has no news."""
        stat = file.stat
        if self.stat is None or self._busy or not self._continues(file):
            self._restarted |= self.stat is not None
            self._reset()
            self.session, self.path = self._begin(file), file.path
        elif self._current and stat == self.stat:
            return False
        before = self.stat, self._offset, self._partial
        self.stat = stat
        self.session.file = file
        self.done = self._read(file, stat.size, deadline)
        self._current = self.done and settled(stat)
        return self._restarted or before != (stat, self._offset, self._partial)

    # ---- which version of the file

    def _continues(self, file: File) -> bool:
        """Whether the content read so far is unchanged. If the file changed without growing, compares every byte."""
        stat, before = file.stat, self.stat
        if before is None or (self._current and stat == before):
            return True
        if (stat.device, stat.inode) != (before.device, before.inode) or self._edges != _edges_of(file, self._offset):
            return False
        is_touched = (stat.mtime_ns, stat.ctime_ns) != (before.mtime_ns, before.ctime_ns)
        if stat.size == before.size and is_touched and self._check != _check_of(file, self._offset):
            return False
        partial = self._partial
        if partial is None or not (partial.taken or partial.reported):
            return True
        tail = next(lines(file, self._offset, limit=MAX_LINE, end=stat.size), None)
        if tail is None or _hash_of(tail.data[: partial.size]) != partial.hash:
            return False
        rest = tail.data[partial.size :]
        return not rest.strip() and not tail.skipped if partial.taken else not rest and not tail.whole

    # ---- lines

    def _read(self, file: File, end: int, deadline: float) -> bool:
        """Take the lines before `end`; False if `deadline` came first."""
        start, read = self._offset, True
        while self._offset < end and read:
            block = file.read(self._offset, min(_BLOCK, end - self._offset))
            cut = block.rfind(b"\n") + 1
            if cut:
                read = self._take_lines(block if cut == len(block) else block[:cut], deadline)
                continue
            line = next(lines(file, self._offset, self._number, limit=MAX_LINE, end=end), None)
            if line is None or not line.whole:
                self._look_ahead(line)
                break
            self._take_long(line)
            read = perf_counter() <= deadline
        else:
            if read:
                self._partial = None
        if self._offset != start:
            self._edges = _edges_of(file, self._offset)
        return read or self._offset >= end

    def _take_lines(self, block: bytes, deadline: float) -> bool:
        """Take the whole lines of `block`; False if `deadline` came first."""
        session, strict, line = self.session, self._schema.strict, Line()
        take, offset, number = session.take, self._offset, self._number
        parts = block.split(b"\n")
        del parts[-1]  # the beginning of the next line
        checked = _is_skippable(block)
        checks = list(map(crc32, parts))
        pairs = zip(parts, checks, strict=True)
        if self._partial is not None and self._partial.taken:
            offset, number = offset + len(next(pairs)[0]) + 1, number + 1
        self._busy, self._partial = True, None
        check, in_time = offset + _CHECK, True
        for data, line.check in pairs:
            if offset > check:
                if perf_counter() > deadline:
                    in_time = False
                    break
                check = offset + _CHECK
            line.offset, line.number, line.data = offset, number, data
            try:
                if not checked:
                    skippable(data)
                record = strict(data)
            except (ValueError, RecursionError):
                record = None if not data or data.isspace() else decode_line(session, self._schema, line, refused=True)
            if record is not None:
                take(record, line)
            offset += len(data) + 1
            number += 1
        self._busy = False
        self._check = _add_checks(self._check, checks[: number - self._number])
        self._offset, self._number = offset, number
        return in_time

    def _take_long(self, raw: RawLine) -> None:
        """Take a finished line that is longer than a block."""
        taken = self._partial is not None and self._partial.taken
        self._busy, self._partial = True, None
        line = Line(raw.offset, raw.number, raw.data, crc32(raw.data))
        if raw.skipped:
            size = len(raw.data) + raw.skipped
            _report_lost(self.session, line, f"line too long to read ({size} bytes)", size, torn=False)
        elif not taken and raw.data.strip():
            record = decode_line(self.session, self._schema, line)
            if record is not None:
                self.session.take(record, line)
        self._busy = False
        self._check = -1 if raw.skipped else _add_checks(self._check, [crc32(raw.data)])
        self._offset, self._number = raw.next_offset, raw.number + 1

    def _look_ahead(self, last: RawLine | None) -> None:
        """Take the last line, which has no newline, if it is a complete record."""
        if last is None:
            self._partial = None
            return
        size, digest, session = len(last.data) + last.skipped, _hash_of(last.data), self.session
        before = self._partial
        if before is not None and (before.taken or (before.size, before.hash) == (size, digest)):
            return
        line = Line(last.offset, last.number, last.data, crc32(last.data))
        record, blank, reported = None, not last.data.strip(BLANK), False
        self._busy = True
        if not blank and not last.skipped:
            record = _complete(session, self._schema, line)
        if record is not None:
            session.take(record, line)
        elif session.ended and not last.data.isspace():
            _report_lost(session, line, "cut off: incomplete line after the end of the session", size)
            reported = True
        self._busy = False
        self._partial = _Partial(size, digest, record is not None, reported, blank)


def _edges_of(file: File, offset: int) -> bytes:
    """Hash of the first and the last bytes before `offset`."""
    if offset == 0:
        return b""
    size = min(_EDGE, offset)
    return _hash_of(file.read(0, size) + file.read(offset - size, size))


def _hash_of(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()


def _check_of(file: File, offset: int) -> int:
    """Checksum of the lines before `offset`."""
    return _add_checks(0, [crc32(line.data) for line in lines(file, limit=MAX_LINE, end=offset)])


def _add_checks(check: int, checks: list[int]) -> int:
    """The checksum of lines, with further lines that have those checksums."""
    return crc32(array("I", checks), check)


def _is_skippable(block: bytes) -> bool:
    """Whether `skippable` accepts every line of a block."""
    try:
        skippable(block)
    except ValueError:
        return False
    return True


def decode_line(session: Session, schema: Schema[Any], line: Line, *, refused: bool = False) -> Any:
    """The record on a finished line that is not empty; None if it has none, which is reported. `refused`: strict
    decoding failed.

    Of several records on the line, and of whole ones after a torn one, it takes all but the last, and returns that;
    `line` is its part of the line then.
    """
    try:
        data, note = without_marks(line.data)
        is_refused = refused and len(data) == len(line.data)
        record, value, lenient = (schema.decode_loosely if is_refused else schema.decode)(data, session.unknown)
    except FormatError as error:
        records = _whole_records(session, schema, line)
        if not records:
            at = f" ({error.where} of the line)" if error.where else ""
            _report_lost(session, line, f"{error.reason}{at}", len(line.data))
            return None
        *others, (last, part) = records
        for record, other in others:
            session.take(record, other)
        line.offset, line.number, line.data, line.check = part.offset, part.number, part.data, part.check
        return last
    if note or lenient:
        report(session, line, f"read leniently: {note or lenient}")
    if record is None:
        report(session, line, f"not a JSON object: {as_json(value)}")
    return record


class _PartNumber(int):
    """The number of a line, for a further record on it: ``7b``."""

    letter = ""

    def __format__(self, spec: str) -> str:
        return f"{int(self)}{self.letter}"

    __str__ = __repr__ = lambda self: format(self)


def _whole_records(session: Session, schema: Schema[Any], line: Line) -> list[tuple[Any, Line]]:
    """The records on a line that is not one record, with their parts of the line; reports what is lost."""
    records: list[tuple[Any, Line]] = []
    end = 0
    for begin, stop in whole_records(line.data):
        data = line.data[begin:stop]
        try:
            record = schema.decode(data, session.unknown)[0]
        except FormatError:
            continue
        if record is None:
            continue
        number = _PartNumber(line.number)
        number.letter = chr(ord("a") + min(len(records), 25)) if records else ""
        records.append((record, Line(line.offset + begin, number, data, crc32(data))))
        if torn := len(line.data[end:begin].strip(BLANK)):
            _report_lost(session, line, f"cut off: {torn} bytes before a whole record", torn)
        end = stop
    if len(records) > 1:
        report(session, line, f"read leniently: {len(records)} records on one line")
    return records


def _complete(session: Session, schema: Schema[Any], line: Line) -> Any:
    """The record on an unfinished line; None if it is not one yet."""
    if not line.data.rstrip().endswith(b"}"):
        return None
    try:
        record, _, _ = schema.decode(without_marks(line.data)[0], {})
    except FormatError:
        return decode_line(session, schema, line) if whole_records(line.data) else None
    return None if record is None else decode_line(session, schema, line)


def report(session: Session, line: Line, reason: str) -> None:
    """Add a problem of one line."""
    session.problems.append(Problem(session.file.path, f"line {line.number}", reason))


def _report_lost(session: Session, line: Line, reason: str, size: int, *, torn: bool = True) -> None:
    """Report a line of which nothing can be shown."""
    session.problems.append(Problem(session.file.path, f"line {line.number}", reason, size, torn))


# ---- the other uses of a session


def skim(file: File, schema: Schema[Any], session: Session) -> None:
    """The list stage: take first lines until the session is settled, then last lines until the status is clear."""
    session.file = file
    line, end, size = Line(), 0, file.stat.size
    for line.number, (data, end) in enumerate(_first_lines(file), 1):  # noqa: B007
        _take(session, schema, line, data)
        if session.settled:
            break
    first = window = max(_LAST, size - end) if size - end <= _FURTHER * _LAST else _LAST
    while end < size:
        start = max(end, size - window)
        whole = start <= end
        parts = (file.head[start:] if size <= len(file.head) else file.read(start, size - start)).split(b"\n")
        if not whole or window > first:  # lines are left out, or taken a second time
            session.skip(b"" if whole else file.head[end : start + len(parts[0])])
            line.number = 0
        for data in parts if whole else parts[1:]:  # the first one is the end of a line
            line.number += line.number > 0
            _take(session, schema, line, data)
        if whole or session.has_status:
            break
        window *= _FURTHER


def _take(session: Session, schema: Schema[Any], line: Line, data: bytes) -> None:
    """Take the record on a line of the list stage, if any."""
    line.data = data
    if not data or data.isspace():
        return
    try:
        skippable(data)
        record = schema.strict(data)
    except (ValueError, RecursionError):
        record = _complete(session, schema, line)
    if record is not None:
        session.take(record, line)


def _first_lines(file: File) -> Iterator[tuple[bytes, int]]:
    """Each line, and where the next one begins: first those in the head, then the others as they are asked for."""
    head, size = file.head, file.stat.size
    end = len(head) if size <= len(head) else head.rfind(b"\n") + 1
    begin = 0
    while begin < end:
        newline = head.find(b"\n", begin, end)
        newline = end if newline < 0 else newline
        yield head[begin:newline], newline + 1
        begin = newline + 1
    for line in lines(file, end, limit=MAX_LINE, end=size) if end < size else ():
        yield (b"" if line.skipped else line.data), line.next_offset


def listed(ref: RunRef, file: File, session: Session) -> RunSummary:
    """The summary of a session that was skimmed."""
    return summary_of(ref, session.header(), None, modified_at=file.stat.mtime, moving=file.moving)


class Counting(Reader, Protocol):
    """A reader of which all that it reads can be counted."""

    @property
    def records(self) -> int:
        """Records that were taken."""
        ...

    def read(self, file: File, seconds: float) -> Chunk:
        """Read what is new, for about `seconds` at most."""
        ...


def counted(ref: RunRef, file: File, reader: Counting) -> RunSummary:
    """The summary of all records. Raises `FormatError` if there are problems and no record."""
    builder, chunk = RunBuilder(ref, lambda span: Body()), reader.read(file, inf)
    builder.add(chunk.spans, header=chunk.header, problems=chunk.problems)
    if not reader.records and (chunk.problems or not file.moving):
        first = next(iter(chunk.problems), None) or Problem(file.path, "line 1", "incomplete line")
        raise FormatError(f"no record could be read: {first.reason}", first.where)
    return builder.summary(modified_at=file.stat.mtime, moving=file.moving)


class LogFormat:
    """The frame of a format whose runs are files of JSON lines, one each."""

    name: str
    schema: ClassVar[Schema[Any]]
    session: ClassVar[type[Any]]
    """Makes the `Session` of a file."""
    signs: ClassVar[tuple[bytes, ...]]
    """One of these is in the head of each file."""
    looked_at: ClassVar[int] = 4
    """Lines of the head that `claim` is asked about."""

    def claim(self, record: dict[str, Any]) -> int:
        """How surely a record is one of this format, as in `Format.sniff`."""
        raise NotImplementedError

    def sniff(self, file: File) -> int:
        if not any(sign in file.head for sign in self.signs):
            return NO
        return max(map(self.claim, records_in(file.head, self.looked_at)), default=NO)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        """Skimmed for the list stage, if `Session.begun` says that this describes the run."""
        ref = RunRef(self.name, file.path)
        if not deep:
            skim(file, self.schema, session := self.session(file))
            if session.begun:
                yield listed(ref, file, session)
                return
        yield counted(ref, file, self.open(file, ref))

    def open(self, file: File, ref: RunRef) -> Counting:
        return LogReader(self.schema, self.session)
