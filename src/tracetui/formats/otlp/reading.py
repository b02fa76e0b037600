"""Files of OTLP JSON: requests as lines that are appended, or one request as a document; many traces in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk, Cursor
from tracetui.formats.decode import decode
from tracetui.formats.lines import Line, lines
from tracetui.formats.otlp.header import body_of_run, header_of
from tracetui.formats.otlp.lean import Around, Irregular, spans_on
from tracetui.formats.otlp.logs import whose
from tracetui.formats.otlp.records import (
    NO_TRACE,
    OTHERS,
    REQUEST,
    At,
    damage_in,
    is_sound,
    logs_in,
    named,
    normal_id,
    told_in,
    trace_id,
)
from tracetui.formats.otlp.trace import Trace
from tracetui.formats.tail import MAX_LINE, Place, Reader, parse, read_on
from tracetui.formats.whole import unchanged, whole
from tracetui.model import Header, Problem, RunBody
from tracetui.sources.base import File

_BOM = b"\xef\xbb\xbf"
_TRACE = re.compile(rb'"trace(?:I|_i)d"\s*:\s*(?:"([^"\\]*)"|())')


def is_document(file: File) -> bool:
    """Whether a file is one JSON document over several lines: its first line is only the beginning of a value."""
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


# ---- one trace


def read_trace(file: File, key: str, cursor: Cursor) -> Chunk:
    """What came of a trace since `cursor`."""
    if is_document(file):
        return _read_document(file, key, cursor)
    reader = Reader(lambda file: Trace(file.path, key), _told, wanted=_wanted(key))
    place = cursor if isinstance(cursor, Place) else None
    chunk = read_on(reader, file, place)
    if chunk.header is not None:  # of which trace an unfinished line is nobody knows: it is told of the file
        chunk = msgspec.structs.replace(chunk, header=msgspec.structs.replace(chunk.header, unfinished=0))
    if cursor is not None and place is None:  # it was a document
        return msgspec.structs.replace(chunk, reset=True)
    return chunk


def _told(trace: Trace, file: File) -> tuple[Header, RunBody]:
    return header_of(trace), body_of_run(trace)


def _read_document(file: File, key: str, cursor: Cursor) -> Chunk:
    known = unchanged(file, cursor)
    if known is not None:
        return Chunk(cursor=known)
    data = file.read_all()
    try:
        value, _ = decode(data)
    except FormatError:
        if cursor is not None and file.moving:
            return Chunk(cursor=cursor)  # caught while it is being written: what was read before stays
        raise
    trace = Trace(file.path, key)
    trace.take(value, Line(0, 1, data, True))
    header, body = _told(trace, file)
    return Chunk(
        spans=list(trace.spans.values()),
        header=header,
        body=body,
        problems=trace.problems,
        cursor=whole(file, data),
        reset=cursor is not None,
    )


def _wanted(key: str) -> Callable[[bytes], bool]:
    """Whether a line may tell of a trace: found out before it is decoded, since most lines are of others."""

    def wanted(data: bytes) -> bool:
        if key == NO_TRACE or b"\0" in data:
            return True
        plain = True
        for match in _TRACE.finditer(data):
            if match[1] is None:
                plain = False  # written with escapes
            elif normal_id(match[1].decode("utf-8", "replace")) == key:
                return True
        return not plain

    return wanted


# ---- all traces


def all_traces(file: File) -> tuple[dict[str, Trace], list[Problem]]:
    """Every trace of a file, in the order in which they come, and what of it cannot be read."""
    try:
        return _all(file, lean=True)
    except Irregular:
        return _all(file, lean=False)


def _all(file: File, *, lean: bool) -> tuple[dict[str, Trace], list[Problem]]:
    traces: dict[str, Trace] = {}
    problems: list[Problem] = []
    around: Around = {}
    others = lost = 0
    for line in _records(file):
        if lean and not line.skipped and _take_lean(traces, line, file.path, around):
            continue
        where = f"line {line.number}"
        try:
            value, note = _value(line)
        except FormatError as error:
            if line.whole or not file.moving:  # else it is being written
                at = f" ({error.where} of the line)" if error.where else ""
                size = len(line.data) + line.skipped
                problems.append(Problem(file.path, where, f"{error.reason}{at}", size, not line.skipped))
            continue
        if lean and any(told_in(value)):
            raise Irregular
        if note:
            problems.append(Problem(file.path, where, f"read leniently: {note}"))
        if not is_sound(value):
            problems += [Problem(file.path, where, reason) for reason in dict.fromkeys(damage_in(value))]
        if named(value, *OTHERS) is not None:
            unread = _take_logs(traces, value, line, file.path)
            others, lost = others + (unread > 0), lost + round(_size_of(value, line) * unread)
        elif named(value, *REQUEST) is None:
            problems.append(Problem(file.path, where, "no spans are in it", len(line.data)))
        _take(traces, value, line, file.path)
    early = sum(map(len, (told for trace in traces.values() for told in trace.early.values())))
    if early and not file.moving:
        reason = f"{early} events in logs are of spans that are not there"
        problems.append(Problem(file.path, "logs and metrics", reason))
    if others:
        reason = f"{others} exports of logs or metrics are not read"
        problems.append(Problem(file.path, "logs and metrics", reason, lost))
    return {key: trace for key, trace in traces.items() if trace.spans}, problems


def _size_of(value: object, line: Line) -> int:
    """Bytes of what a line has besides spans, where that can be told."""
    return 0 if named(value, *REQUEST) is not None else len(line.data)


def _take_logs(traces: dict[str, Trace], value: object, line: Line, path: str) -> float:
    """Take in what logs tell of spans; the part of the line that is something else is returned, 0 … 1."""
    count = taken = 0
    check = None
    for place, record in logs_in(value):
        count += 1
        if (of := whose(record)) is not None:
            taken += 1
            check = crc32(line.data) if check is None else check
            at = At(line.offset, len(line.data), check, *place)
            _trace_of(traces, of[0], path).take_log(of[1], record, at)
    return 1 - taken / count if count else 1.0


def _take_lean(traces: dict[str, Trace], line: Line, path: str, around: Around) -> bool:
    """Take in a line of which only what counts is decoded; False for one that is not as it should be."""
    try:
        spans = list(spans_on(line.data, around))
    except (ValueError, RecursionError):
        return False
    for lean in spans:
        _trace_of(traces, trace_id(lean.told.span), path).take_lean(
            lean, At(line.offset, len(line.data), 0, *lean.told.place), line.number
        )
    return True


def _take(traces: dict[str, Trace], value: object, line: Line, path: str) -> None:
    for told in told_in(value):
        _trace_of(traces, trace_id(told.span), path).take_span(
            told, At(line.offset, len(line.data), 0, *told.place), line.number, value
        )


def _trace_of(traces: dict[str, Trace], key: str, path: str) -> Trace:
    trace = traces.get(key)
    if trace is None:
        trace = traces[key] = Trace(path, key, lean=True)
    return trace


def _records(file: File) -> Iterator[Line]:
    if is_document(file):
        yield Line(0, 1, file.read_all(), True)
        return
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        if line.data and not line.data.isspace():
            yield line


def _value(line: Line) -> tuple[object, str | None]:
    if line.skipped:
        raise FormatError(f"a line of {len(line.data) + line.skipped} bytes is too long to be read")
    return parse(line.data)
