"""Files of OTLP JSON: requests as lines that are appended, or as documents; many traces in each."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk, Cursor
from tracetui.formats.document import unchanged, whole
from tracetui.formats.lines import Line
from tracetui.formats.otlp.documents import is_document, parts_of
from tracetui.formats.otlp.header import body_of_run, header_of
from tracetui.formats.otlp.places import Finished, places_of, traces_on
from tracetui.formats.otlp.records import (
    NO_TRACE,
)
from tracetui.formats.otlp.trace import Trace
from tracetui.formats.tail import Place, Reader, parse, read_on
from tracetui.model import Header, RunBody
from tracetui.sources.base import File

_ONCE = "read once"
"""Cursor after a trace of which only its own lines were read: whoever reads on begins anew."""


# ---- one trace


def read_trace(file: File, key: str, cursor: Cursor) -> Chunk:
    """What came of a trace since `cursor`."""
    if is_document(file):
        return _read_document(file, key, cursor)
    if cursor is None and (places := places_of(file, key)) is not None:
        return _read_places(file, key, places)
    reader = Reader(lambda file: Trace(file.path, key), _told, wanted=_wanted(key))
    place = cursor if isinstance(cursor, Place) else None
    chunk = read_on(reader, file, place)
    if chunk.header is not None:  # of which trace an unfinished line is nobody knows: it is told of the file
        chunk = msgspec.structs.replace(chunk, header=msgspec.structs.replace(chunk.header, unfinished=()))
    if cursor is not None and place is None:  # it was a document
        return msgspec.structs.replace(chunk, reset=True)
    return chunk


def _read_places(file: File, key: str, places: list[Finished]) -> Chunk:
    """A trace of which it is known on which lines it is."""
    trace = Trace(file.path, key)
    for line in places:
        data = file.read(line.offset, line.size)
        try:
            record, note = parse(data)
        except FormatError:  # it is told of the file
            continue
        trace.take(record, Line(line.offset, line.number, data, True), note)
    header, body = _told(trace, file)
    return Chunk(spans=list(trace.spans.values()), header=header, body=body, problems=trace.problems, cursor=_ONCE)


def _told(trace: Trace, file: File) -> tuple[Header, RunBody]:
    return header_of(trace), body_of_run(trace)


def _read_document(file: File, key: str, cursor: Cursor) -> Chunk:
    known = unchanged(file, cursor)
    if known is not None:
        return Chunk(cursor=known)
    try:
        parts = parts_of(file, key)
    except FormatError:
        if cursor is not None and file.moving:
            return Chunk(cursor=cursor)  # caught while it is being written: what was read before stays
        raise
    trace = Trace(file.path, key)
    for part in parts:
        trace.take_part(part)
    header, body = _told(trace, file)
    return Chunk(
        spans=list(trace.spans.values()),
        header=header,
        body=body,
        problems=trace.problems,
        cursor=whole(file),
        reset=cursor is not None,
    )


def _wanted(key: str) -> Callable[[bytes], bool]:
    """Whether a line may tell of a trace: found out before it is decoded, since most lines are of others."""

    def wanted(data: bytes) -> bool:
        if key == NO_TRACE or b"\0" in data:
            return True
        return any(found is None or found == key for found in traces_on(data))

    return wanted
