"""Steplog: one JSON line a step, ``{"step": 1, "tool": "search", "input": …, "output": …}``, and ``{"end": "ok"}``."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, ClassVar, Final

from msgspec import UNSET, Raw, Struct

from tracetui.plugin import (
    CERTAIN,
    NO,
    NULL,
    Body,
    Error,
    File,
    Finite,
    Header,
    Integer,
    Line,
    LogFormat,
    Operation,
    Rows,
    RunBody,
    RunRef,
    Schema,
    Span,
    Status,
    StatusSource,
    record_on,
    records_at,
    status_of,
)


class Record(Struct, gc=False):
    """A line. A field of another type has its default here, and is shown with all others in the detail of its step."""

    other_fields: ClassVar = ""
    step: Integer | None = None
    tool: str | None = None
    input: Raw = NULL
    output: Raw = NULL
    error: Any = UNSET
    ms: Finite | None = None
    end: str | None = None


SCHEMA: Final[Schema[Record]] = Schema(Record)


class Session(Rows):
    """The state of a run so far, and the only code that interprets lines."""

    settled = has_status = False  # only the last line has the status: the list stage reads all lines
    end: str | None = None
    last = b""

    def take(self, record: Record, line: Line) -> None:
        self.records += 1
        if record.step is not None or record.tool is not None:
            self.emit(span_of(record, line))
        elif record.end is not None:
            self.end, self.last = record.end, line.data
        else:
            self.problem(line, "neither a step nor an end")

    def header(self) -> Header:
        stem = PurePath(self.file.path).stem
        if self.end is None:
            return Header(id=stem, name=stem, ended=False)
        status = status_of(self.end)
        return Header(id=stem, name=stem, status=status, status_word=self.end, status_source=StatusSource.EXPLICIT)

    def run_body(self) -> RunBody:
        return RunBody(attributes=record_on(self.last) or {})


class Steplog(LogFormat):
    """The format; see `tracetui.plugin.Format`."""

    name = "steplog"
    title = "Steplog lines"
    schema, session, signs = SCHEMA, Session, (b'"step"',)

    def claim(self, record: dict[str, Any]) -> int:
        return CERTAIN if "step" in record and "tool" in record else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        record, raw = records_at(file, span.at)[0]  # raises if the file was changed meanwhile
        return Body(input=record.pop("input", None), output=record.pop("output", None), attributes=record, raw=raw)


def span_of(record: Record, line: Line) -> Span:
    """One step."""
    failed = record.error is not UNSET and record.error is not None
    return Span(
        id=str(line.number),
        name=record.tool or "step",
        operation=Operation.EXECUTE_TOOL,
        step=record.step,
        is_step=True,
        status=Status.ERROR if failed else Status.OK,
        status_source=StatusSource.DERIVED if record.error is UNSET else StatusSource.EXPLICIT,
        duration_ms=record.ms,
        error=Error(str(record.error)) if failed else None,
        at=line.packed(),
    )
