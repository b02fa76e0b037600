"""OTLP JSON: traces of OpenTelemetry, of any framework that is instrumented, one run a trace.

Facts: the OpenTelemetry protocol 1.x, and files of its Python exporter and collector. A span is written when it has
ended, so that the spans of a trace come after their children, over many lines, among those of other traces. No record
marks a trace as complete: it has ended when its root span is there. A file of a store is one trace, as rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.decode import record_on, top_names
from tracetui.formats.otlp.files import Count, TraceReader, counted, is_listed, summary_of_listed
from tracetui.formats.otlp.records import OTHERS, REQUEST
from tracetui.formats.otlp.rows import is_row
from tracetui.formats.otlp.trace import body_of
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.sources.base import HEAD_SIZE, File

_SPANS: Final = re.compile(rb'"resource(?:S|_s)pans"')
POSSIBLE: Final = 40
"""Spans may come after exports of logs or metrics that fill the head."""
_LOOK: Final = 64
"""Lines that are looked at: those before may be exports of logs or metrics."""


class Otlp:
    """The format; see `tracetui.formats.base.Format`."""

    name = "otlp"
    title = "OpenTelemetry trace"

    def sniff(self, file: File) -> int:
        head = file.head
        if is_row(head) or is_listed(head):
            return CERTAIN
        if not _SPANS.search(head):
            return POSSIBLE if len(head) == HEAD_SIZE and _begins_with(head, OTHERS) else NO
        if _begins_with(head, REQUEST):
            return CERTAIN
        records = (record_on(data) or {} for data in head.split(b"\n", _LOOK)[:_LOOK] if _SPANS.search(data))
        return CERTAIN if any(not record.keys().isdisjoint(REQUEST) for record in records) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        """Both stages read all: any line may begin a trace, end one or name it. A store lists what it counted."""
        if not deep and is_listed(file.head):
            yield summary_of_listed(file, RunRef(self.name, file.path))
            return
        count, problems = counted(file)
        listed = [key for key, trace in count.traces.items() if trace is None or trace.spans]
        if not listed and (problems or not file.moving):
            first = problems[0] if problems else Problem(file.path, "line 1", "no spans found")
            raise FormatError(f"no span could be read: {first.reason}", first.where)
        for key in listed:
            yield self._listed(file, count, key)
        yield from problems

    def open(self, file: File, ref: RunRef) -> TraceReader:
        return TraceReader(file.path, ref.key or file.name)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the line that the span is on; `raw` is the span's own part of that."""
        return body_of(file, span)

    def _listed(self, file: File, count: Count, key: str) -> RunSummary:
        """The summary of a trace, made once until new spans of it come."""
        cached, trace = count.summaries.get(key), count.traces[key]
        if cached is not None:
            summary = msgspec.structs.replace(cached, modified_at=file.stat.mtime)
        else:
            assert trace is not None
            is_own = is_row(file.head) or is_listed(file.head)
            ref = RunRef(self.name, file.path, None if is_own else trace.key)
            builder = RunBuilder(ref, lambda span: Body())
            header = trace.header()
            builder.add(trace.spans.values(), header=header, problems=trace.conflicts)
            summary = builder.summary(modified_at=file.stat.mtime, moving=file.moving)
            if not header.ended:
                return summary  # its status depends on whether the file is still being written
        count.keep(key, summary)
        return summary


def _begins_with(head: bytes, names: tuple[str, ...]) -> bool:
    """Whether one of these names is at the top level of the beginning of a file."""
    wanted = {name.encode() for name in names}
    return any(name in wanted for name in top_names(head))
