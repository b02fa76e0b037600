"""Files that are packed by themselves, ``.jsonl.zst``: what they hold, as if that were the file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tracetui.sources.base import HEAD_SIZE, KEPT, Closing, File, Folder, Stat

if TYPE_CHECKING:
    from sqlite3 import Connection

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SUFFIX: Final = ".zst"
_NAME: Final = ".jsonl" + _SUFFIX
_LEAST: Final = 4 << 20
"""Bytes that any packed file may become."""
_KEPT: Final = "unpacked"
_KEPT_BYTES: Final = 16 << 20
"""So much of a file is kept from one body of its run to the next."""


def unpacked(file: File) -> File:
    """What a packed file holds, under its path, and its name without ``.zst``; any other file as it is."""
    return Unpacked(file) if file.path.endswith(_NAME) else file


class Unpacked(Closing):
    """See `tracetui.sources.base.File`. All of it is unpacked on first use; what cannot be raises `OSError`.

    The size in its `stat` is that of what it holds.
    """

    __slots__ = ("_data", "_file")

    def __init__(self, file: File) -> None:
        self._file = file
        self._data: bytes | None = None

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def name(self) -> str:
        return self._file.name.removesuffix(_SUFFIX)

    @property
    def stat(self) -> Stat:
        return msgspec.structs.replace(self._file.stat, size=len(self._all()))

    @property
    def moving(self) -> bool:
        return self._file.moving

    @property
    def memo(self) -> dict[str, Any]:
        return self._file.memo

    @property
    def head(self) -> bytes:
        return self._all()[:HEAD_SIZE]

    def read(self, offset: int, size: int) -> bytes:
        return self._all()[offset : offset + size]

    def read_all(self) -> bytes:
        return self._all()

    def sibling(self, name: str) -> str | None:
        return self._file.sibling(name)

    def folder(self, path: str = "") -> Folder:
        return self._file.folder(path)

    def other(self, path: str, stat: Stat | None = None) -> File:
        return self._file.other(path, stat)

    @property
    def tables(self) -> frozenset[str]:
        return frozenset()

    def database(self, *, follow: bool = False) -> AbstractContextManager[Connection]:
        raise OSError("a packed file is no database")

    def close(self) -> None:
        self._data = None
        self._file.close()

    def _all(self) -> bytes:
        if self._data is None:
            shared, stat = self.memo.get(KEPT, {}), self._file.stat
            known = shared.get(_KEPT)
            if known is not None and known[:2] == (self.path, stat):
                self._data = known[2]
            else:
                self._data = _unpack(self._file)
                if len(self._data) <= _KEPT_BYTES:
                    shared[_KEPT] = (self.path, stat, self._data)
        return self._data


def _unpack(file: File) -> bytes:
    from tracetui.errors import FormatError
    from tracetui.sources.archive import MAX_MEMBER, MAX_RATIO, unpack_zstandard  # few files are packed

    size = file.stat.size
    most = min(MAX_MEMBER, max(_LEAST, MAX_RATIO * size))
    if size > most:
        raise OSError(f"not read: {size} bytes, more than {MAX_MEMBER >> 20} MiB")
    packed = file.read_all()
    if packed and not packed.startswith(_MAGIC):
        raise OSError("broken: it is not packed as its name says")
    try:
        data = unpack_zstandard(packed, most + 1)
    except FormatError as fault:
        raise OSError(fault.reason) from fault
    if len(data) > most:
        raise OSError(f"not read: it becomes more than {most >> 20} MiB, too much for a file of {size} bytes")
    return data
