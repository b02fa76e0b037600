"""Steplog: one JSON line a step, ``{"step": 1, "tool": "search", "input": …, "output": …}``, and ``{"end": "ok"}``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.decode import decode
from tracetui.formats.lines import Line, lines
from tracetui.model import (
    Body,
    Error,
    Header,
    Operation,
    Problem,
    RunBody,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    status_of,
)
from tracetui.model.build import RunBuilder
from tracetui.sources.base import File


class Steplog:
    """The format; see `tracetui.formats.base.Format`."""

    name = "steplog"
    title = "Steplog lines"

    def sniff(self, file: File) -> int:
        record = parse(file.head.partition(b"\n")[0])
        return CERTAIN if "step" in record and "tool" in record else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        chunk = self.read(file, ref)
        builder = RunBuilder(ref, lambda span: self.body(file, ref, span))
        builder.add(chunk.spans, header=chunk.header, problems=chunk.problems)
        yield builder.build(modified_at=file.stat.mtime, moving=file.moving).summary

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        identity, offset, number = cursor or (file.stat.inode, 0, 1)
        again = identity != file.stat.inode or offset > file.stat.size
        if again:  # replaced or cut: forget what was read
            offset, number = 0, 1
        spans, problems, body = [], [], None
        header = header_of(file) if cursor is START or again else None
        for line in lines(file, offset, number):
            record = parse(line.data)
            if "step" in record:
                spans.append(span_of(record, line))
            elif "end" in record:
                header, body = header_of(file, record), RunBody(attributes=record)
            elif line.whole and line.data.strip():
                problems.append(Problem(file.path, f"line {line.number}", "neither a step nor an end"))
            if line.whole:  # a half line waits in the file, and is read again when there is more of it
                offset, number = line.next_offset, line.number + 1
        cursor = (file.stat.inode, offset, number)
        return Chunk(spans=spans, header=header, body=body, problems=problems, cursor=cursor, reset=again)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        raw = file.read(*span.at)
        record = parse(raw)
        if "step" not in record:
            raise FormatError("the file was changed meanwhile", f"byte {span.at[0]}")
        return Body(input=record.pop("input", None), output=record.pop("output", None), attributes=record, raw=raw)


def parse(data: bytes) -> dict[str, Any]:
    """The object on a line; an empty one for anything else."""
    try:
        value, _ = decode(data)
    except FormatError:
        return {}
    return value if isinstance(value, dict) else {}


def span_of(record: dict[str, Any], line: Line) -> Span:
    """One step. Nothing is said about the type of any field: whatever does not fit stays in the attributes."""
    step, tool, error, ms = (record.get(name) for name in ("step", "tool", "error", "ms"))
    return Span(
        id=str(line.number),
        name=tool if isinstance(tool, str) else "step",
        operation=Operation.EXECUTE_TOOL,
        step=step if isinstance(step, int) else None,
        is_step=True,
        status=Status.OK if error is None else Status.ERROR,
        status_source=StatusSource.EXPLICIT if "error" in record else StatusSource.DERIVED,
        duration_ms=float(ms) if isinstance(ms, int | float) else None,
        error=None if error is None else Error(str(error)),
        at=(line.offset, len(line.data)),
    )


def header_of(file: File, end: dict[str, Any] | None = None) -> Header:
    """What is known of the run as a whole: more, once there is an end line."""
    stem = PurePath(file.path).stem
    if end is None:
        return Header(id=stem, name=stem, ended=False)
    word = str(end["end"])
    return Header(id=stem, name=stem, status=status_of(word), status_word=word, status_source=StatusSource.EXPLICIT)
