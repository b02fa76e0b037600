"""Files of OTLP JSON: requests as lines that are appended, or as documents over several lines; many traces in each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.agent_log import Rows
from tracetui.formats.base import Chunk
from tracetui.formats.bodies import cached
from tracetui.formats.decode import BLOCK, MAX_LINE, decode, lines, parse, record_on
from tracetui.formats.decode import Line as RawLine
from tracetui.formats.document import Fingerprint, fingerprint, unchanged
from tracetui.formats.jsonl import Line, LogReader, decode_line
from tracetui.formats.otlp.records import (
    NO_TRACE,
    OTHERS,
    REQUEST,
    Export,
    Surroundings,
    by_trace,
    damage_in,
    evaluated_trace,
    export_of,
    named,
    normal_id,
    request_spans,
)
from tracetui.formats.otlp.rows import Row, is_row, record_of, record_of_row
from tracetui.formats.otlp.trace import Trace
from tracetui.formats.scalars import word
from tracetui.formats.schema import Schema, Unknown
from tracetui.model import Problem, RunRef, RunSummary, Status, StatusSource, Usage
from tracetui.model.build import summary_of
from tracetui.sources.base import CACHE, MAX_DOCUMENT, File, Stat, settled

_COUNT: Final = "otlp count"
_LINE_INDEX: Final = "otlp lines"
LINES_AT_ONCE: Final = 4 << 20
"""Bytes of the lines of a trace that are read at once; a larger trace is read a little at a time."""
_AT_ONCE: Final = 32 << 20
"""Bytes of a file whose decoded documents are cached while several traces of it are read."""
_TRACE: Final = re.compile(rb'"trace(?:I|_i)d"\s*:\s*(?:"([^"\\]*)"|())')
_BOM: Final = b"\xef\xbb\xbf"
_INDENTED: Final = re.compile(rb"\s*\{[ \t\r]*\n[ \t]")
_END: Final = re.compile(rb"^\}[ \t\r]*(?:\n|(?=\{))", re.MULTILINE)
"""The end of an indented document: its only closing brace at the beginning of a line."""


# ---- one line or document


class Exports(Schema[Export]):
    """Decodes lines. With a trace `key`, most lines of other traces are found out before they are decoded."""

    def __init__(self, key: str | None = None) -> None:
        self._key, self._written = key, (key or "").encode("utf-8", "surrogatepass")
        self._surroundings: Surroundings = {}

    def strict(self, data: bytes) -> Export:
        if is_row(data):
            return Export([record_of(data, self._surroundings)])
        if self._key is None:
            return Export(request_spans(data, self._surroundings))
        if not self._may_have(data) and b"\0" not in data:
            return _OTHER_TRACE
        return Export(request_spans(data, self._surroundings, self._may_have))

    def decode_loosely(self, data: bytes, unknown: Unknown) -> tuple[Export, Any, str | None]:
        value, note = decode(data)
        return export_of(value), None, note

    def _may_have(self, data: bytes | msgspec.Raw) -> bool:
        """Whether a line or a span may be of the trace."""
        if self._written in bytes(data):
            return True
        names = set(line_traces(data))
        return self._key in names or None in names or self._key == NO_TRACE


_OTHER_TRACE: Final = Export()


# ---- one trace


class TraceReader(LogReader[Trace]):
    """Reads one trace and follows it as its file grows. Problems of lines are those of the file, not of the trace."""

    unfinished = ()

    def __init__(self, path: str, key: str) -> None:
        self._key, self._exports = key, Exports(key)
        super().__init__(self._exports, lambda file: Trace(path, key))
        self._begun = False
        self._document: Fingerprint | None = None
        """The version of a file of documents that was read."""

    def more(self, file: File) -> Chunk:
        if is_document(file):
            return self._read_documents(file)
        if not self._begun and (trace_lines := lines_of_trace(file, self._key)) is not None:
            self._begin_with(file)
            for offset, number, size in trace_lines:
                _take_line(self.session, self._exports, Line(offset, number, file.read(offset, size)))
            return self._chunk(reset=False)  # if the file grows, all of it is read again
        reset = self._begun and self.stat is None
        self._begun = True
        chunk = super().more(file)
        return msgspec.structs.replace(chunk, reset=True) if reset else chunk

    def take_problems(self) -> list[Problem]:
        self.session.problems.clear()
        return self.session.take_conflicts()

    def _read_documents(self, file: File) -> Chunk:
        if (same := unchanged(file, self._document)) is not None:
            self._document = same
            return Chunk()
        try:
            exports = [
                (line, document[self._key]) for line, document in documents_by_trace(file) if self._key in document
            ]
        except FormatError:
            if self._begun and file.moving:
                return Chunk()  # caught in the middle of a write: keep the last version
            raise
        reset = self._begun
        self._begin_with(file)
        for line, export in exports:
            self.session.take(export, Line(line.offset, line.number, line.data))
        self._document = fingerprint(file)
        return self._chunk(reset=reset)

    def _begin_with(self, file: File) -> None:
        self.stat, self.session, self._begun = None, self._begin(file), True

    def _chunk(self, *, reset: bool) -> Chunk:
        trace = self.session
        return Chunk(
            spans=trace.collect(),
            header=trace.header(),
            body=trace.run_body(),
            problems=self.take_problems(),
            reset=reset,
        )


def _take_line(session: Any, schema: Exports, line: Line) -> bool:
    """Take the records on a line or in a document; False if it is not JSON, which is reported."""
    export = decode_line(session, schema, line)
    if export is not None:
        session.take(export, line)
    return export is not None


FinishedLine = tuple[int, int, int]
"""Offset, number and size of a finished line."""


def line_traces(data: bytes | msgspec.Raw) -> Iterator[str | None]:
    """The traces that a line names; None for a name with escapes, or not in UTF-8."""
    for match in _TRACE.finditer(data):
        try:
            yield None if match[1] is None else normal_id(match[1].decode())
        except UnicodeDecodeError:
            yield None


class LineIndex(NamedTuple):
    """The lines of each trace in a version of a file; None if they must be decoded to find out."""

    stat: Stat
    lines: dict[str, list[FinishedLine]] | None


def lines_of_trace(file: File, key: str) -> list[FinishedLine] | None:
    """The lines of one trace, while many traces are read; None if all lines must be read."""
    cache = file.memo.get(CACHE)
    if cache is None or key == NO_TRACE:
        return None
    index = cache.get(_LINE_INDEX)
    if not isinstance(index, LineIndex) or index.stat != file.stat:
        index = cache[_LINE_INDEX] = LineIndex(file.stat, _index_lines(file))
    refs = index.lines.get(key) if index.lines is not None else None
    return None if refs is None or sum(size for _, _, size in refs) > LINES_AT_ONCE else refs


def _index_lines(file: File) -> dict[str, list[FinishedLine]] | None:
    lines_by_trace: dict[str, list[FinishedLine]] = {}
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        if line.skipped or not line.whole or b"\0" in line.data:
            return None
        ref = line.offset, line.number, len(line.data)
        for key in dict.fromkeys(line_traces(line.data)):
            if key is None:
                return None
            lines_by_trace.setdefault(key, []).append(ref)
    return lines_by_trace


# ---- documents


def is_document(file: File) -> bool:
    """Whether a file is JSON over several lines: its first line is only the beginning of a value."""
    first, newline, rest = file.head.removeprefix(_BOM).lstrip().partition(b"\n")
    return bool(newline) and _begins(first) and record_on(rest.lstrip().partition(b"\n")[0]) is None


def _begins(data: bytes) -> bool:
    try:
        parse(data)
    except FormatError as error:
        return error.reason.startswith("cut off")
    return False


def documents(file: File) -> Iterator[RawLine]:
    """The documents of a file, each as a `Line`. Several can be separated if they are indented.

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
            yield RawLine(offset + begin, number, bytes(buffer[begin : match.start() + 1]), True)
            number += buffer.count(b"\n", begin, match.end())
            begin = match.end()
        del buffer[:begin]
        offset += begin
        looked = buffer.rfind(b"\n") + 1 if may_end else looked
    rest = bytes(buffer)
    if rest.strip():
        yield RawLine(offset, number, rest, offset == 0 or rest.rstrip().endswith(b"\n}"))


def documents_by_trace(file: File) -> Iterable[tuple[RawLine, dict[str, Export]]]:
    """The records of each document, divided by trace. Raises `FormatError` where nothing can be read.

    Where many traces are read, each document is decoded once.
    """
    if file.stat.size <= _AT_ONCE and settled(file.stat):
        return cached(file, ("documents",), lambda: list(_decode_documents(file)))
    return _decode_documents(file)


def _decode_documents(file: File) -> Iterator[tuple[RawLine, dict[str, Export]]]:
    for line in documents(file):
        try:
            yield line, by_trace(export_of(decode(line.data)[0]))
        except FormatError:
            if line.offset == 0:
                raise  # a later one is a problem of the file


# ---- all traces of a file


class LateRecord(Exception):
    """A record of a trace reduced to its summary."""


class Count(Rows):
    """All traces of a file, as far as it was read."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.traces: dict[str, Trace | None] = {}
        """In order of arrival; None for a trace reduced to its summary, long after its end."""
        self.summaries: dict[str, RunSummary] = {}
        """Those of traces without new records."""
        self.touched: set[str] = set()
        """Traces with new records since the last count."""
        self.others = 0
        """Exports of which something is not read."""
        self.lost = 0
        """Bytes of that."""

    def take(self, export: Export, line: Line) -> None:
        """Take the records of one line or document. Raises `LateRecord`."""
        self.records += 1
        if export.value is not msgspec.UNSET:
            self._report(export, line)
        for log in export.logs:
            if log.trace is not None:
                self._trace(log.trace).take_log(log, line)
        for span in export.spans:
            self._trace(span.trace).take_span(span, line, export.value)
            if (evaluated := evaluated_trace(span)) != span.trace:
                self._trace(evaluated).take_evaluations(span)

    def _report(self, export: Export, line: Line) -> None:
        value = export.value
        for reason in dict.fromkeys(damage_in(value)):
            self.problem(line, reason)
        has_spans = named(value, *REQUEST) is not None
        if named(value, *OTHERS) is not None:
            unread = sum(log.span is None for log in export.logs) / len(export.logs) if export.logs else 1.0
            self.others += unread > 0
            self.lost += 0 if has_spans else round(len(line.data) * unread)
        elif not has_spans:
            self.problems.append(Problem(self.file.path, f"line {line.number}", "no spans found", len(line.data)))

    def _trace(self, key: str) -> Trace:
        trace = self.traces.get(key)
        if trace is not None and key in self.touched:
            return trace
        if trace is None and key in self.traces:
            raise LateRecord
        trace = self.traces[key] = trace or Trace(self.file.path, key, summary_only=True)
        self.touched.add(key)
        self.summaries.pop(key, None)
        return trace

    def keep(self, key: str, summary: RunSummary) -> None:
        """Keep the summary of a trace that has ended, and no more than that once nothing has come for a while."""
        self.summaries[key] = summary
        if key not in self.touched:
            self.traces[key] = None


def counted(file: File) -> tuple[Count, list[Problem]]:
    """Summarize every trace of a file, and its problems. Repeated counting reads only new lines."""
    shared = file.memo.get(CACHE)
    reader: LogReader[Any] = (shared.pop(_COUNT, None) if shared is not None else None) or LogReader(Exports(), Count)
    unfinished: tuple[Problem, ...] = ()
    if is_document(file):
        count = _count_documents(file)
    else:
        if reader.stat is not None:
            reader.session.touched = set()
        try:
            reader.advance(file, inf)
        except LateRecord:
            reader.advance(file, inf)  # from the start: the session may be half changed
        count, unfinished = reader.session, reader.unfinished
        if shared is not None:
            shared[_COUNT] = reader
    problems = [*count.problems, *(() if file.moving else unfinished)]
    early = sum(len(logs) for trace in count.traces.values() if trace is not None for logs in trace.early.values())
    if early and not file.moving:
        reason = f"{early} events in logs belong to spans that are not in the file"
        problems.append(Problem(file.path, "logs and metrics", reason))
    if count.others:
        reason = f"{count.others} exports of logs or metrics are not read"
        problems.append(Problem(file.path, "logs and metrics", reason, count.lost))
    return count, problems


def _count_documents(file: File) -> Count:
    count, schema = Count(file), Exports()
    for line in documents(file):
        if not _take_line(count, schema, Line(line.offset, line.number, line.data)) and not line.whole and file.moving:
            count.problems.pop()  # it is still being written
    return count


# ---- a trace in the list of a store: counts that the database made, and the root span
#
# Each value is the one that reading all spans gives, or it is left out until they are read.

_LISTED: Final = b'{"Listed":'


class _Root(Row, array_like=True):
    pass


class _Listed(msgspec.Struct, rename="pascal"):
    trace_id: str
    spans: int
    ids: int
    """Different ids of spans."""
    first_ns: str
    """The first start, ``0`` without one."""
    may_fail: int
    """Spans with something that may be an error."""
    may_be_scored: int
    """Spans with something that may be an evaluation."""
    roots: int
    root_first: bool
    """The root begins before all other spans."""
    root: _Root
    """One of the roots."""
    plain_tokens: bool
    """`input` and `output` are those of the trace, unless both are missing."""
    input: int | None
    output: int | None
    plain_models: bool
    """`model` is that of the trace, unless it is empty."""
    model: str
    plain_calls: bool
    """`calls` of models are those of the trace, and steps."""
    calls: int


class _Line(msgspec.Struct, rename="pascal"):
    listed: _Listed


_decode_listed: Final = msgspec.json.Decoder(_Line, strict=False).decode


def is_listed(data: bytes) -> bool:
    """Whether the head of a file is its row in the list of a store."""
    return data.startswith(_LISTED)


def summary_of_listed(file: File, ref: RunRef) -> RunSummary:
    """The summary of a trace from its row in the list. Raises `ValueError` if it is none."""
    row = _decode_listed(file.head).listed
    trace = Trace(file.path, file.name, summary_only=True)
    is_sure = row.roots == 1 and row.spans == row.ids
    if row.roots == 1:
        trace.take_span(record_of_row(row.root, {}, 0), Line(0, 1, b""), None)
    header = trace.header()
    status, status_word, source = header.status, header.status_word, header.status_source
    if (row.roots or not file.moving) and not (
        is_sure and (status is Status.ERROR or not row.may_fail + row.may_be_scored)
    ):
        status, status_word, source = Status.UNKNOWN, None, None
    elif header.ended and status is None:
        status, source = Status.OK, StatusSource.DERIVED
    is_unique, first = row.spans == row.ids, row.root_first and is_sure
    usage = Usage(row.input, row.output) if row.plain_tokens and is_unique else None
    header = msgspec.structs.replace(
        header,
        agent=header.agent if first and trace.agent.value is not None else None,
        model=word(row.model) if row.plain_models else None,
        status=status,
        status_word=status_word,
        status_source=source,
        started_at=int(row.first_ns) / 1e9 if row.first_ns != "0" else None,
        duration_ms=header.duration_ms if is_sure else None,
        usage=usage or None,
        repeats=header.repeats if is_sure else None,
        error=None,
        prompt=header.prompt if first else "",
        scores=(),
        tags=header.tags if is_sure else (),
        source=header.source if first and trace.source.value is not None else None,
        writer=None,
        fields=(),
    )
    summary = summary_of(ref, header, None, modified_at=file.stat.mtime, moving=file.moving)
    calls = row.calls if row.plain_calls and is_unique else None
    return summary.replace(
        spans=row.ids if is_unique else None,
        steps=calls,
        llm_calls=calls,
        errors=None if row.may_fail else 0,
    )
