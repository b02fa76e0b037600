"""LatticeFlow traces: conversations in the Open Responses format, bare or as rows of a data set.

Sources: the *Trace* document of LatticeFlow, and what `latticeflow-core` 3.8 to 3.17 writes and reads. Nothing upstream
writes a trace while it runs: a file of lines grows by finished rows, a single document is written whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.latticeflow import files, runs
from tracetui.formats.latticeflow.body import body_of
from tracetui.formats.latticeflow.files import Document
from tracetui.formats.latticeflow.outline import outline
from tracetui.formats.latticeflow.records import Place
from tracetui.formats.latticeflow.spans import At, weave
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import File, Stat
from tracetui.sources.versions import settled


class LatticeFlow:
    """The format of LatticeFlow's `Trace`; see `tracetui.formats.base.Format`."""

    name = "latticeflow"
    title = "LatticeFlow Trace"

    def sniff(self, file: File) -> int:
        return CERTAIN if files.claims(file) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for found in files.documents(file):
            yield found if isinstance(found, Problem) else _summary(file, found, deep=deep)

    def open(self, file: File, ref: RunRef) -> LatticeFlowReader:
        return LatticeFlowReader(ref)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        at: At = span.at
        return body_of(file, at)


class Mark(msgspec.Struct, frozen=True):
    """Which version of the file was read, which bytes of it, and a checksum of them all."""

    stat: Stat
    place: Place
    check: int
    current: bool
    """No change can leave the same stat behind."""


class LatticeFlowReader:
    """Gives the whole trace whenever it has changed: there are no parts of one."""

    def __init__(self, ref: RunRef) -> None:
        self._key = ref.key
        self._mark: Mark | None = None

    def more(self, file: File) -> Chunk:
        before = self._mark
        if before is not None and before.current and before.stat == file.stat:
            return Chunk()
        try:
            document = self._same(file) or files.find(file, self._key)
        except FormatError:
            if before is not None and file.moving:
                return Chunk()  # caught while it is being written: what was read before stays
            raise
        place = document.place
        check = zlib.crc32(document.data or file.read(place.offset, place.size))
        self._mark = Mark(file.stat, place, check, settled(file.stat))
        if before is not None and (before.place, before.check) == (place, check):
            return Chunk()
        return msgspec.structs.replace(_chunk(file, document), reset=before is not None)

    def _same(self, file: File) -> Document | None:
        """The line that was read before, if a file of lines still has it where it was."""
        if self._mark is None or self._key is None:
            return None
        place = self._mark.place
        try:
            again = files.document(file.read(place.offset, place.size), place.offset)
        except FormatError:
            return None
        return again if again.place == place and zlib.crc32(again.data) == self._mark.check else None


def _summary(file: File, document: Document, *, deep: bool) -> RunSummary:
    ref, stat = RunRef(LatticeFlow.name, file.path, document.key), file.stat
    if not deep and (header := runs.quick_header(document, runs.about(document, file.path))) is not None:
        return summary_of(ref, header, None, modified_at=stat.mtime, moving=file.moving)
    chunk = _chunk(file, document)
    if not deep and chunk.header is not None:
        return summary_of(ref, chunk.header, None, modified_at=stat.mtime, moving=file.moving)
    builder = RunBuilder(ref, lambda span: Body())
    builder.add(chunk.spans, header=chunk.header, problems=chunk.problems)
    return builder.summary(modified_at=stat.mtime, moving=file.moving)


def _chunk(file: File, document: Document) -> Chunk:
    known = runs.about(document, file.path)
    sorted_out = outline(document, file.path)
    woven = weave(sorted_out, file.path, document.where, moving=file.moving, ended=known.ended)
    problems = list(woven.problems)
    if document.note is not None:
        problems.insert(0, Problem(file.path, document.where, f"read leniently: {document.note}"))
    return Chunk(
        spans=woven.spans,
        header=runs.header(known, sorted_out, woven, document),
        body=runs.run_body(document, known, sorted_out, woven),
        problems=problems,
    )
