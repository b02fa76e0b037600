"""LatticeFlow traces: conversations in the Open Responses format, bare or as rows of a data set.

Sources: the *Trace* document of LatticeFlow, and what `latticeflow-core` 3.8 to 3.17 writes and reads. Nothing upstream
writes a trace while it runs: a file of lines grows by finished rows, a single document is written whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.latticeflow import bodies, files, runs
from tracetui.formats.latticeflow.files import Document
from tracetui.formats.latticeflow.outline import outline
from tracetui.formats.latticeflow.records import Place
from tracetui.formats.latticeflow.spans import At, weave
from tracetui.model import Body, Operation, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import File, Stat
from tracetui.sources.versions import settled


class Mark(msgspec.Struct, frozen=True):
    """Cursor: which version of the file was read, which bytes of it, and a checksum of them all."""

    stat: Stat
    place: Place
    check: int
    current: bool
    """No change can leave the same stat behind."""


class LatticeFlow:
    """The format of LatticeFlow's `Trace`; see `tracetui.formats.base.Format`."""

    name = "latticeflow"
    title = "LatticeFlow Trace"

    def sniff(self, file: File) -> int:
        return CERTAIN if files.claims(file) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for found in files.documents(file):
            yield found if isinstance(found, Problem) else _summary(file, found, deep=deep)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        if cursor is not START and cursor.current and cursor.stat == file.stat:
            return Chunk(cursor=cursor)
        try:
            document = _same(file, ref, cursor) or files.find(file, ref.key)
        except FormatError:
            if cursor is not START and file.moving:
                return Chunk(cursor=cursor)  # caught while it is being written: what was read before stays
            raise
        place = document.place
        check = zlib.crc32(document.data or file.read(place.offset, place.size))
        mark = Mark(file.stat, place, check, settled(file.stat))
        if cursor is not START and (cursor.place, cursor.check) == (mark.place, mark.check):
            return Chunk(cursor=mark)
        return msgspec.structs.replace(_chunk(file, document, mark), reset=cursor is not START)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        at: At = span.at
        return bodies.body(file, at)


def _same(file: File, ref: RunRef, cursor: Any) -> Document | None:
    """The line that was read before, if a file of lines still has it where it was."""
    if cursor is START or ref.key is None:
        return None
    place: Place = cursor.place
    try:
        again = files.document(file.read(place.offset, place.size), place.offset)
    except FormatError:
        return None
    return again if again.place == place and zlib.crc32(again.data) == cursor.check else None


def _summary(file: File, document: Document, *, deep: bool) -> RunSummary:
    ref = RunRef(LatticeFlow.name, file.path, document.key)
    if not deep:
        header = runs.quick_header(document, runs.about(document, file.path))
        if header is not None:
            return summary_of(ref, header, None, modified_at=file.stat.mtime, moving=file.moving)
    chunk = _chunk(file, document, None, placed=False)
    if deep and any(span.operation is Operation.UNKNOWN for span in chunk.spans):
        chunk = _chunk(file, document, None)  # how many bytes they have is to be told
    if not deep and chunk.header is not None:
        return summary_of(ref, chunk.header, None, modified_at=file.stat.mtime, moving=file.moving)
    builder = RunBuilder(ref, lambda span: bodies.body(file, span.at))
    builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
    return builder.build(modified_at=file.stat.mtime, moving=file.moving).summary


def _chunk(file: File, document: Document, mark: Mark | None, *, placed: bool = True) -> Chunk:
    """The whole trace: there are no parts of one."""
    known = runs.about(document, file.path)
    sorted_out = outline(document, file.path, placed=placed)
    woven = weave(sorted_out, file.path, document.where, moving=file.moving, ended=known.ended)
    problems = list(woven.problems)
    if document.note is not None:
        problems.insert(0, Problem(file.path, document.where, f"read leniently: {document.note}"))
    return Chunk(
        spans=woven.spans,
        header=msgspec.structs.replace(runs.header(known, sorted_out, woven), size=document.place.size),
        body=runs.run_body(document, known, sorted_out, woven) if placed else None,
        problems=problems,
        cursor=mark,
    )
