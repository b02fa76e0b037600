"""JSON documents: read as a whole, and again whenever the file changes."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import msgspec

from tracetui.formats.base import Chunk, Cursor
from tracetui.sources.base import File, Stat
from tracetui.sources.versions import settled


class Whole(msgspec.Struct, frozen=True):
    """The version of a file that was read."""

    stat: Stat
    check: int | None
    """Checksum of its bytes while a change may leave the same stat behind, None once none can."""


def whole(file: File, data: bytes | None = None) -> Whole:
    """The cursor after `data`, which is all of `file`; read again for that where it is not given and takes it."""
    if settled(file.stat):
        return Whole(file.stat, None)
    return Whole(file.stat, crc32(file.read_all() if data is None else data))


def unchanged(file: File, cursor: Cursor) -> Whole | None:
    """The cursor to go on with if `file` is what was read before, None if it must be read (again)."""
    if not isinstance(cursor, Whole) or cursor.stat != file.stat:
        return None
    if cursor.check is None:
        return cursor
    found = whole(file, data := file.read_all())
    return found if crc32(data) == cursor.check else None


class DocumentReader:
    """The `Reader` of a run that is one document, which `read` makes a complete chunk of.

    `read` gets the file and all of its bytes; it raises `FormatError` for what cannot be read. What was read before
    stays until a later version can be read.
    """

    def __init__(self, read: Callable[[File, bytes], Chunk]) -> None:
        self._read = read
        self._version: Whole | None = None

    def more(self, file: File) -> Chunk:
        if (same := unchanged(file, self._version)) is not None:
            self._version = same
            return Chunk()
        data = file.read_all()
        chunk = msgspec.structs.replace(self._read(file, data), reset=self._version is not None)
        self._version = whole(file, data)
        return chunk
