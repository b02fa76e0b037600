"""Files of OTLP JSON: requests as lines that are appended, or as documents over several lines; many traces in each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk
from tracetui.formats.decode import decode
from tracetui.formats.document import Whole, unchanged, whole
from tracetui.formats.jsonl import BUDGET, FIRST
from tracetui.formats.kept import once
from tracetui.formats.lines import BLOCK, MAX_LINE, Line, Position, continues, edges_of, lines, parse
from tracetui.formats.otlp.header import body_of_run, header_of
from tracetui.formats.otlp.records import (
    NO_TRACE,
    OTHERS,
    REQUEST,
    RecordRef,
    SpanRecord,
    Surroundings,
    damage_in,
    logs_in,
    named,
    normal_id,
    spans_in,
    spans_on,
    target_of,
)
from tracetui.formats.otlp.trace import Trace
from tracetui.model import Problem, RunSummary
from tracetui.sources.base import KEPT, MAX_DOCUMENT, File, Stat
from tracetui.sources.versions import settled

_COUNT: Final = "otlp count"
_PLACES: Final = "otlp places"
LINES_AT_ONCE: Final = 4 << 20
"""Bytes of the lines of a trace that is read at once; a larger one is read a little at a time."""
_AT_ONCE: Final = 32 << 20
"""Bytes of a file whose documents are kept decoded while several traces of it are read."""
_TRACE: Final = re.compile(rb'"trace(?:I|_i)d"\s*:\s*(?:"([^"\\]*)"|())')
_BOM: Final = b"\xef\xbb\xbf"
_INDENTED: Final = re.compile(rb"\s*\{[ \t\r]*\n[ \t]")
_END: Final = re.compile(rb"^\}[ \t\r]*(?:\n|(?=\{))", re.MULTILINE)
"""The end of an indented document: the only brace of it that begins a line, but for the first."""


# ---- one trace


class TraceReader:
    """Reads one trace and follows it as its file grows."""

    def __init__(self, path: str, key: str) -> None:
        self._path, self._key = path, key
        self._document: Whole | None = None
        """The version of a file of documents that was read."""
        self._begun = False
        self._begin()

    def more(self, file: File) -> Chunk:
        if is_document(file):
            return self._more_of_document(file)
        if not self._begun and (places := places_of(file, self._key)) is not None:
            self._begun = True
            for line in places:
                self._take(Line(line.offset, line.number, file.read(line.offset, line.size), True))
            return self._chunk(reset=False)  # where more is wanted, all is read again
        place, reset = self._place, False
        if place is not None and self._current and file.stat == place.stat:
            return Chunk()
        if place is None or not continues(file, place) or not self._keeps_last_line(file, place):
            reset = self._begun
            self._begin()
        return self._read_lines(file, reset=reset)

    def _begin(self) -> None:
        self._trace = Trace(self._path, self._key)
        self._surroundings: Surroundings = {}
        self._ahead = b""
        """A last line without newline that was taken in already."""
        self._place: Position | None = None
        self._current = False
        """All of that version was read, and no later change can leave the same stat behind."""

    def _keeps_last_line(self, file: File, place: Position) -> bool:
        """Whether the last line that was taken in still holds, if there was one."""
        data = file.read(place.offset, len(self._ahead) + 1) if self._ahead else b""
        return data in (self._ahead, self._ahead + b"\n")

    def _read_lines(self, file: File, *, reset: bool) -> Chunk:
        place = self._place or Position(file.stat)
        deadline = perf_counter() + BUDGET * (1 if place.offset else FIRST)
        offset, number, check, done = place.offset, place.number, place.check, True
        for line in lines(file, offset, number, limit=MAX_LINE, end=file.stat.size):
            if perf_counter() > deadline and offset > place.offset:
                done = False
                break
            taken, self._ahead = line.data == self._ahead, b""
            if not line.whole:
                if taken or self._take(line):
                    self._ahead = line.data
                break
            if not taken:
                self._take(line)
            check = crc32(b"\n", crc32(line.data, check)) if not line.skipped else -1
            offset, number = line.next_offset, line.number + 1
        edges = place.edges if offset == place.offset else edges_of(file, offset)
        self._begun = True
        self._place, self._current = Position(file.stat, offset, edges, check, number), done and settled(file.stat)
        return msgspec.structs.replace(self._chunk(reset=reset), done=done)

    def _take(self, line: Line) -> bool:
        """Take in what a line says of the trace; False if it is no record (problems are those of the file)."""
        if line.skipped or not line.data or line.data.isspace():
            return False
        names = set(traces_on(line.data))
        if not (self._key in names or None in names or self._key == NO_TRACE or b"\0" in line.data):
            return False  # found out before it is decoded, since most lines are of other traces
        trace, size = self._trace, len(line.data)
        try:
            records = spans_on(line.data, self._surroundings, self._may_be_of if len(names) > 1 else None)
            request: Any = None
        except (ValueError, RecursionError):
            try:
                request = parse(line.data)[0]
            except FormatError:
                return False
            records = [record for record in spans_in(request) if record.trace == self._key]
        logs = [(place, target[1], log) for place, log in logs_in(request) if (target := self._target(log))]
        check = crc32(line.data) if records or logs else 0
        for place, span, log in logs:
            trace.take_log(span, log, RecordRef(line.offset, size, check, *place))
        for record in records:
            if record.trace == self._key:
                trace.take_span(record, RecordRef(line.offset, size, check, *record.place), line.number, request)
        return request is None or isinstance(request, dict)

    def _target(self, log: dict[str, Any]) -> tuple[str, str] | None:
        target = target_of(log)
        return target if target is not None and target[0] == self._key else None

    def _may_be_of(self, span: msgspec.Raw) -> bool:
        names = set(traces_on(span))
        return self._key in names or None in names or self._key == NO_TRACE

    def _more_of_document(self, file: File) -> Chunk:
        if (same := unchanged(file, self._document)) is not None:
            self._document = same
            return Chunk()
        try:
            parts = parts_of(file, self._key)
        except FormatError:
            if self._begun and file.moving:
                return Chunk()  # caught while it is being written: what was read before stays
            raise
        reset, self._begun = self._begun, True
        self._begin()
        for part in parts:
            line, size = part.line, len(part.line.data)
            for place, span, log in part.logs:
                self._trace.take_log(span, log, RecordRef(line.offset, size, part.check, *place))
            for record in part.spans:
                at = RecordRef(line.offset, size, part.check, *record.place)
                self._trace.take_span(record, at, line.number, part.request)
        self._document = whole(file)
        return self._chunk(reset=reset)

    def _chunk(self, *, reset: bool) -> Chunk:
        spans, problems = self._trace.changes()
        header, body = header_of(self._trace), body_of_run(self._trace)
        return Chunk(spans=spans, header=header, body=body, problems=problems, reset=reset)


class Finished(NamedTuple):
    """A finished line."""

    offset: int
    number: int
    size: int


class Places(NamedTuple):
    """The lines of each trace, as a file was; None where that cannot be told without decoding them."""

    stat: Stat
    lines: dict[str, list[Finished]] | None


def traces_on(data: bytes | msgspec.Raw) -> Iterator[str | None]:
    """The traces that a line names; None for one that is written with escapes, or not in UTF-8."""
    for match in _TRACE.finditer(data):
        try:
            yield None if match[1] is None else normal_id(match[1].decode())
        except UnicodeDecodeError:
            yield None


def places_of(file: File, key: str) -> list[Finished] | None:
    """The lines of one trace, where somebody reads many of them; None where all lines must be looked at."""
    kept = file.memo.get(KEPT)
    if kept is None or key == NO_TRACE:
        return None
    known = kept.get(_PLACES)
    if not isinstance(known, Places) or known.stat != file.stat:
        known = kept[_PLACES] = Places(file.stat, _places(file))
    found = known.lines.get(key) if known.lines is not None else None
    return None if found is None or sum(place.size for place in found) > LINES_AT_ONCE else found


def _places(file: File) -> dict[str, list[Finished]] | None:
    found: dict[str, list[Finished]] = {}
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        if line.skipped or not line.whole or b"\0" in line.data:
            return None
        place = Finished(line.offset, line.number, len(line.data))
        for key in dict.fromkeys(traces_on(line.data)):
            if key is None:
                return None
            found.setdefault(key, []).append(place)
    return found


# ---- documents


class Part(NamedTuple):
    """What a document says of one trace."""

    line: Line
    check: int
    request: Any
    spans: list[SpanRecord]
    logs: list[tuple[tuple[int, int, int], str, dict[str, Any]]]
    """The events of spans in its logs: place, span, record."""


def is_document(file: File) -> bool:
    """Whether a file is JSON over several lines: its first line is only the beginning of a value."""
    first, newline, rest = file.head.removeprefix(_BOM).lstrip().partition(b"\n")
    return bool(newline) and _begins(first) and not _is_object(rest.lstrip().partition(b"\n")[0])


def _begins(data: bytes) -> bool:
    try:
        parse(data)
    except FormatError as error:
        return error.reason.startswith("cut off")
    return False


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(parse(data)[0], dict)
    except FormatError:
        return False


def documents(file: File) -> Iterator[Line]:
    """The documents of a file, each as a `Line`. Several are told apart where they are indented.

    A last one that does not end comes as a line without its newline, but not where it is the only one.
    """
    indented = _INDENTED.match(file.head.removeprefix(_BOM)) is not None
    buffer, offset, number = bytearray(), 0, 1
    position, end, looked = 0, file.stat.size, 0
    while block := file.read(position, max(0, min(8 * BLOCK, end - position))):
        position += len(block)
        buffer += block
        if len(buffer) > MAX_DOCUMENT:
            raise FormatError(f"not read: one document of more than {MAX_DOCUMENT >> 20} MiB", f"byte {offset}")
        begin = 0
        may_end = indented and (b"\n" in block or b"{" in block)
        for match in _END.finditer(buffer, looked) if may_end else ():
            yield Line(offset + begin, number, bytes(buffer[begin : match.start() + 1]), True)
            number += buffer.count(b"\n", begin, match.end())
            begin = match.end()
        del buffer[:begin]
        offset += begin
        looked = buffer.rfind(b"\n") + 1 if may_end else looked
    rest = bytes(buffer)
    if rest.strip():
        yield Line(offset, number, rest, offset == 0 or rest.rstrip().endswith(b"\n}"))


def parts_of(file: File, key: str) -> list[Part]:
    """What the documents of a file tell of a trace. Raises `FormatError` where nothing can be read.

    Where many traces are read, each document is decoded once.
    """
    if file.stat.size <= _AT_ONCE and settled(file.stat):
        return once(file, ("documents",), lambda: _by_trace(file)).get(key, [])
    return [part for line in documents(file) if (part := _by_key(file, line).get(key)) is not None]


def _by_trace(file: File) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for line in documents(file):
        for key, part in _by_key(file, line).items():
            found.setdefault(key, []).append(part)
    return found


def _by_key(file: File, line: Line) -> dict[str, Part]:
    """What a document tells, by trace; nothing for a later one that cannot be read, which is told of the file."""
    try:
        request, _ = decode(line.data)
    except FormatError:
        if line.offset == 0:
            raise
        return {}
    check, found = crc32(line.data), dict[str, Part]()
    for place, log in logs_in(request):
        if (of := target_of(log)) is not None:
            found.setdefault(of[0], Part(line, check, request, [], [])).logs.append((place, of[1], log))
    for record in spans_in(request):
        found.setdefault(record.trace, Part(line, check, request, [], [])).spans.append(record)
    return found


# ---- all traces of a file


class Late(Exception):
    """Something came of a trace of which no more than its summary was kept."""


class Count(msgspec.Struct):
    """What was counted of a file so far."""

    path: str
    traces: dict[str, Trace | None] = {}
    """In the order in which they came; None for one that ended long ago: its summary is kept."""
    summaries: dict[str, RunSummary] = {}
    """Those of traces to which nothing came since."""
    touched: set[str] = set()
    """Traces to which something came the last time."""
    problems: list[Problem] = []
    others: int = 0
    """Exports of which something is not read."""
    lost: int = 0
    """Bytes of that."""
    surroundings: Surroundings = {}
    place: Position | None = None
    """Where the last finished line ends; None where there is no going on from there."""

    def trace(self, key: str) -> Trace:
        """The trace to which something came. Raises `Late`."""
        trace = self.traces.get(key)
        if trace is not None and key in self.touched:
            return trace
        if trace is None and key in self.traces:
            raise Late
        trace = self.traces[key] = trace or Trace(self.path, key, summary_only=True)
        self.touched.add(key)
        self.summaries.pop(key, None)
        return trace

    def all_problems(self, *, moving: bool) -> list[Problem]:
        """What of the file cannot be read."""
        found = list(self.problems)
        told = (told for trace in self.traces.values() if trace is not None for told in trace.early.values())
        early = sum(map(len, told))
        if early and not moving:
            reason = f"{early} events in logs are of spans that are not there"
            found.append(Problem(self.path, "logs and metrics", reason))
        if self.others:
            reason = f"{self.others} exports of logs or metrics are not read"
            found.append(Problem(self.path, "logs and metrics", reason, self.lost))
        return found

    def keep(self, key: str, summary: RunSummary) -> None:
        """Keep the summary of a trace that has ended, and no more than that once nothing has come for a while."""
        self.summaries[key] = summary
        if key not in self.touched:
            self.traces[key] = None


def counted(file: File) -> Count:
    """Every trace of a file. Of one that is counted again and again, only what came is read."""
    kept = file.memo.get(KEPT)
    known = kept.pop(_COUNT, None) if kept is not None else None
    count = _go_on(file, known) if isinstance(known, Count) else None
    count = count or _count(file, Count(file.path), 0, 1)
    if kept is not None and count.place is not None:
        kept[_COUNT] = count
    return count


def _go_on(file: File, count: Count) -> Count | None:
    """The count with what came since; None where all must be counted again."""
    place = count.place
    if place is None or file.stat.size < place.offset or not continues(file, place):
        return None
    count.touched = set()
    try:
        return _count(file, count, place.offset, place.number)
    except Late:
        return None


def _count(file: File, count: Count, offset: int, number: int) -> Count:
    document = offset == 0 and is_document(file)
    ahead = False
    for line in documents(file) if document else lines(file, offset, number, limit=MAX_LINE, end=file.stat.size):
        if line.data and not line.data.isspace():
            ahead = _take_line(file, count, line) and not line.whole
        if line.whole:
            offset, number = line.next_offset, line.number + 1
    if document or ahead:  # what is no whole line yet may end otherwise
        count.place = None
    else:
        count.place = Position(file.stat, offset, edges_of(file, offset), -1, number)
    return count


def _take_line(file: File, count: Count, line: Line) -> bool:
    """Take in a line; False where nothing was made of it, since it is still being written."""
    try:
        if not line.skipped:
            for record in spans_on(line.data, count.surroundings):
                at = RecordRef(line.offset, len(line.data), 0, *record.place)
                count.trace(record.trace).take_span(record, at, line.number, None)
            return True
    except (ValueError, RecursionError):
        pass
    where, size = f"line {line.number}", len(line.data) + line.skipped
    try:
        if line.skipped:
            raise FormatError(f"a line of {size} bytes is too long to be read")
        value, note = parse(line.data)
    except FormatError as error:
        if not line.whole and file.moving:
            return False
        at_ = f" ({error.where} of the line)" if error.where else ""
        count.problems.append(Problem(count.path, where, f"{error.reason}{at_}", size, not line.skipped))
        return True
    reasons = [f"read leniently: {note}"] if note else []
    count.problems += [Problem(count.path, where, reason) for reason in (*reasons, *dict.fromkeys(damage_in(value)))]
    has_spans = named(value, *REQUEST) is not None
    if named(value, *OTHERS) is not None:
        unread = _take_logs(count, value, line)
        count.others += unread > 0
        count.lost += 0 if has_spans else round(len(line.data) * unread)
    elif not has_spans:
        count.problems.append(Problem(count.path, where, "no spans are in it", len(line.data)))
    for record in spans_in(value):
        at = RecordRef(line.offset, len(line.data), 0, *record.place)
        count.trace(record.trace).take_span(record, at, line.number, value)
    return True


def _take_logs(count: Count, value: object, line: Line) -> float:
    """Take in what logs say of spans; the part of the line that is something else is returned, 0 … 1."""
    records = taken = 0
    check = None
    for place, record in logs_in(value):
        records += 1
        if (target := target_of(record)) is not None:
            taken += 1
            check = crc32(line.data) if check is None else check
            count.trace(target[0]).take_log(target[1], record, RecordRef(line.offset, len(line.data), check, *place))
    return 1 - taken / records if records else 1.0
