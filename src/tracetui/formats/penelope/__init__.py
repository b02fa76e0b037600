"""Penelope: the result of one multi-turn test as one JSON object, today's and the documented dialect.

The object is built in memory and written once; no file name is prescribed and no id is in it (the document's
``test_id`` is read where it is there). Times are naive local ones. `tracetui.formats.penelope.records` has the sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.decode import top_names
from tracetui.formats.document import DocumentReader, Outline, summary
from tracetui.formats.penelope.records import milliseconds
from tracetui.formats.penelope.result import Test, header_of, run_body
from tracetui.formats.penelope.turns import body_of, spans_of, turns_of
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 70
_REQUIRED: Final = (b"goal_achieved", b"turns_used")
_TYPICAL: Final = frozenset(
    {b"goal_evaluation", b"conversation_summary", b"test_configuration", b"execution_stats", b"target_info", *_REQUIRED}
)
"""Top-level names of a result; two of them claim a file whose head holds no more."""


class Penelope:
    """The format; see `tracetui.formats.base.Format`."""

    name = "penelope"
    title = "Penelope test result"

    def sniff(self, file: File) -> int:
        head = file.head
        if not any(name in head for name in _TYPICAL):
            return NO
        found: set[bytes] = set()
        for name in top_names(head):
            found.add(name)
            if name in _REQUIRED and found.issuperset(_REQUIRED):
                return CERTAIN
        return LIKELY if len(head) >= HEAD_SIZE and len(found & _TYPICAL) > 1 else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        data = file.read_all()
        test = Test(Outline(data, file.path))
        header = None if deep or test.outline.problems else header_of(test, file.path)
        deep = header is None or header.started_at is None  # the start may be that of the first turn
        chunk = _chunk(test, file.path, len(data)) if deep else Chunk(header=header)
        yield summary(RunRef(self.name, file.path), file, chunk, deep=deep)

    def open(self, file: File, ref: RunRef) -> Reader:
        return DocumentReader(_read)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From what the reader saw; `raw` holds the exact bytes, a rendering where the file is not strict JSON."""
        return body_of(span.at)


def _read(file: File, data: bytes) -> Chunk:
    test = Test(Outline(data, file.path))
    chunk = _chunk(test, file.path, len(data))
    return msgspec.structs.replace(chunk, body=run_body(test, chunk.header.error if chunk.header else None))


def _chunk(test: Test, path: str, size: int) -> Chunk:
    """The whole run, but for its body."""
    test.turns = turns_of(test.outline)
    timings = {one.turn_number: milliseconds(one.duration_seconds) for one in test.stats.turn_timings or () if one}
    spans = [span for turn in test.turns for span in spans_of(turn, timings)]
    header = msgspec.structs.replace(header_of(test, path), size=size)
    return Chunk(spans=spans, header=header, problems=test.outline.problems)
