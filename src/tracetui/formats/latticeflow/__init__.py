"""LatticeFlow traces: conversations in the Open Responses format, bare or as rows of a data set.

Sources: the *Trace* document of LatticeFlow, and the files of `latticeflow-core` 3.8 to 3.17. Nothing upstream
writes a trace while it runs: a file of lines grows by finished rows, a single document is written whole.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.document import summary
from tracetui.formats.latticeflow import files
from tracetui.formats.latticeflow.files import Document, Origin
from tracetui.formats.latticeflow.records import Records
from tracetui.formats.latticeflow.spans import Spans, body_of, has_ended, header, quick_header, run_body
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import File


class LatticeFlow:
    """The format of LatticeFlow's `Trace`; see `tracetui.formats.base.Format`."""

    name = "latticeflow"
    title = "LatticeFlow Trace"

    def sniff(self, file: File) -> int:
        return CERTAIN if files.claims(file) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for document in files.documents(file):
            yield document if isinstance(document, Problem) else _summary(file, document, deep=deep)

    def open(self, file: File, ref: RunRef) -> LatticeFlowReader:
        return LatticeFlowReader(ref)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return body_of(file, span.at)


class LatticeFlowReader:
    """Gives the whole trace whenever it has changed: there are no parts of one."""

    def __init__(self, ref: RunRef) -> None:
        self._key = ref.key
        self._origin: Origin | None = None

    def more(self, file: File) -> Chunk:
        before = self._origin
        if before is not None:
            if before.settled and before.stat == file.stat:
                return Chunk()
            if self._key is not None and before.has_bytes(file):
                return Chunk()  # the row is where it was
        try:
            document = files.find(file, self._key)
        except FormatError:
            if before is not None and file.moving:
                return Chunk()  # caught in the middle of a write: keep the last version
            raise
        self._origin = now = document.origin
        if before is not None and (before.offset, before.size, before.check) == (now.offset, now.size, now.check):
            return Chunk()
        return msgspec.structs.replace(_chunk(file, document), reset=before is not None)


def _summary(file: File, document: Document, *, deep: bool) -> RunSummary:
    quick = None if deep else quick_header(document)
    chunk = Chunk(header=quick) if quick is not None else _chunk(file, document, body=False)
    return summary(RunRef(LatticeFlow.name, file.path, document.key), file, chunk, deep=deep)


def _chunk(file: File, document: Document, *, body: bool = True) -> Chunk:
    records = Records(document.trace)
    spans = Spans(document, records, moving=file.moving, ended=has_ended(document))
    return Chunk(
        spans=spans.spans,
        header=header(document, records, spans),
        body=run_body(document, records, spans) if body else None,
        problems=document.trace.problems,
    )
