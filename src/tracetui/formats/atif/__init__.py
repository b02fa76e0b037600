"""Agent Trajectory Interchange Format (ATIF): what an agent did as one JSON document, of versions 1.0 to 1.8.

Facts: Harbor's specification and files of its own models; NeMo and others write it too. A file is written as a
whole each time. A run may go on in another file, and those of its sub-agents are within it or beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from tracetui.formats.atif.reading import Reading, body_of, header_of, opening_of
from tracetui.formats.atif.records import Mark, document, mark_if_unchanged, whole_of
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.decode import top_names
from tracetui.formats.document import summary
from tracetui.model import Body, Operation, Problem, RunRef, RunSummary, Span, ToolCall, text_of
from tracetui.model.context import RESULT, TOOL_CALL, ContextFacts, ContextItem
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 60
_NOTE: Final = re.compile(r"\n\n(?:\[error\] tool reported failure\b|\[metadata\] \{)")
_EXECUTED: Final = re.compile(r"Executed \S+ \S+$")
_VERSION: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')
_OWN: Final = frozenset({b"schema_version", b"agent", b"steps"})


class Atif:
    """The format; see `tracetui.formats.base.Format` and `Composed`."""

    name = "atif"
    title = "ATIF trajectory"

    def sniff(self, file: File) -> int:
        head = file.head
        if _VERSION.search(head):
            names = _OWN.intersection(top_names(head))
            return CERTAIN if len(names) == len(_OWN) else LIKELY if b"schema_version" in names else NO
        if len(head) < HEAD_SIZE or b'"step_id"' not in head:
            return NO
        return LIKELY if b"steps" in set(top_names(head)) and b'"source"' in head else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        if deep:
            chunk = Reading(file, file.read_all()).chunk
        else:
            doc = document(file.read_all(), {})
            chunk = Chunk(header=header_of(doc, opening_of(doc), file))
        yield summary(RunRef(self.name, file.path), file, chunk, deep=deep)

    def open(self, file: File, ref: RunRef) -> AtifReader:
        return AtifReader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the step, or the trajectory, that holds the span; a call's `raw` is its step."""
        return body_of(file, span)

    def context(self, span: Span, body: Body) -> ContextFacts | None:
        """Without what Harbor adds to sessions of Claude Code: notes behind results, and a text for each tool call."""
        output = body.output
        if span.operation is Operation.EXECUTE_TOOL and isinstance(output, str):
            return ContextFacts((ContextItem(f"{RESULT}{span.name}", _NOTE.split(output, 1)[0], key=span.id),))
        if (
            span.operation is Operation.CHAT
            and span.usage is None
            and _EXECUTED.match("".join(map(text_of, body.output_messages)))
        ):
            calls = (part for message in body.output_messages for part in message.parts if isinstance(part, ToolCall))
            return ContextFacts(tuple(ContextItem(TOOL_CALL, call.arguments) for call in calls))
        return None

    def whole_of(self, file: File) -> str | None:
        return whole_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        return [f"../{os.path.basename(os.path.dirname(path))}"]


class AtifReader:
    """Gives the whole run, out of all its files, whenever one of them has changed."""

    def __init__(self) -> None:
        self._mark: Mark | None = None

    def more(self, file: File) -> Chunk:
        before = self._mark
        if before is not None and (same := mark_if_unchanged(file, before)) is not None:
            self._mark = same
            return Chunk()
        reading = Reading(file, file.read_all())
        self._mark = reading.mark
        return replace(reading.chunk, body=reading.body, reset=before is not None)
