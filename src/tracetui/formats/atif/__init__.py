"""Agent Trajectory Interchange Format (ATIF): what an agent did as one JSON document, of versions 1.0 to 1.8.

Facts: Harbor's specification and files of its own models; NeMo and others write it too. A file is written anew as a
whole, if more than once. A run may go on in another file, and those of its sub-agents are within it or beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final

from tracetui.formats.atif.body import body_of
from tracetui.formats.atif.document import beginning
from tracetui.formats.atif.parts import whole_of
from tracetui.formats.atif.reading import Mark, Reading, read_again
from tracetui.formats.atif.run import counted, header_of, model_of, run_body
from tracetui.formats.atif.trial import result_of
from tracetui.formats.atif.words import opening_of
from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.decode import top_names
from tracetui.formats.document import whole
from tracetui.model import Body, Header, Operation, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, Tally, summary_of
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 60
_VERSION: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')
_OWN: Final = frozenset({b"schema_version", b"agent", b"steps"})


class Atif:
    """The format; see `tracetui.formats.base.Format` and `Composed`."""

    name = "atif"
    title = "ATIF trajectory"

    def sniff(self, file: File) -> int:
        head = file.head
        if _VERSION.search(head):
            found = _OWN.intersection(top_names(head))
            return CERTAIN if len(found) == len(_OWN) else LIKELY if b"schema_version" in found else NO
        if len(head) < HEAD_SIZE or b'"step_id"' not in head:
            return NO
        return LIKELY if b"steps" in set(top_names(head)) and b'"source"' in head else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        header = None if deep else _quick_header(file)
        if header is not None:
            yield summary_of(ref, header, None, modified_at=file.stat.mtime, moving=file.moving)
            return
        data = file.read_all()
        reading = Reading(file, data, placed=False)
        if any(span.operation is Operation.UNKNOWN for span in reading.spans):  # how many bytes they have is to be told
            reading = Reading(file, data)
        yield _summary(ref, reading, file)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """The whole run in one chunk, out of all its files. Nothing while they stay as they were."""
        if isinstance(cursor, Mark) and (same := read_again(file, cursor)) is not None and same.moving == cursor.moving:
            return Chunk(cursor=same)  # once the files are still, the run has ended
        data = file.read_all()
        reading = Reading(file, data)
        return Chunk(
            spans=reading.spans,
            header=_header(reading, file),
            body=run_body(reading),
            problems=reading.problems,
            cursor=reading.mark(whole(file, data)),
            reset=cursor is not START,
        )

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the step, or the trajectory, that tells the span; a call's `raw` is its step."""
        return body_of(file, span)

    def whole_of(self, file: File) -> str | None:
        return whole_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        return [f"../{os.path.basename(os.path.dirname(path))}"]


def _summary(ref: RunRef, reading: Reading, file: File) -> RunSummary:
    header = _header(reading, file)
    if reading.problems or any(told.copied for told in reading.told):  # copies stand together, wherever they are
        builder = RunBuilder(ref, lambda span: Body())
        builder.add(reading.spans, header=header, problems=reading.problems)
        return builder.summary(modified_at=file.stat.mtime, moving=file.moving)
    tally = Tally()
    for span in reading.spans:
        tally.add(span)
    return summary_of(ref, header, tally, modified_at=file.stat.mtime, moving=file.moving)


def _header(reading: Reading, file: File) -> Header:
    root = reading.doc.root
    opening = opening_of((record.value for record in reading.doc.steps), model_of(root))
    return counted(header_of(root, opening, file, reading.result), reading)


def _quick_header(file: File) -> Header | None:
    """The header from what a trajectory says of itself and its first steps; None where that is not strict JSON."""
    found = beginning(file.read_all())
    try:
        if found is None:
            return None
        return header_of(found[0], opening_of(found[1], model_of(found[0])), file, result_of(file)[0])
    except (ValueError, RecursionError):  # a step is not
        return None
