"""Files that are packed by themselves, ``.jsonl.zst``: what they hold, as if that were the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.sources.base import HEAD_SIZE, KEPT, File, Stat, View

if TYPE_CHECKING:
    from sqlite3 import Connection

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SUFFIX: Final = ".zst"
_NAME: Final = ".jsonl" + _SUFFIX
_WINDOW: Final = 128 << 20
"""Bytes that Zstandard may look back."""
_PIECE: Final = 4 << 20
_BEGIN: Final = 1 << 20
"""Packed bytes in which the beginning of what they hold is."""
MAX_UNPACKED: Final = 256 << 20
"""Bytes that a file may become. It holds lines, which are decoded one by one: reading it takes twice as much."""
MAX_RATIO: Final = 1_000
"""So many times as large as it is packed a file may become: text never does."""
_LEAST: Final = 4 << 20
"""Bytes that any packed file may become."""
_KEPT: Final = "unpacked"
_KEPT_BYTES: Final = 16 << 20
"""So much of a file is kept from one body of its run to the next."""


def unpacked(file: File) -> File:
    """What a packed file holds, under its path, and its name without ``.zst``; any other file as it is."""
    return Unpacked(file) if file.path.endswith(_NAME) else file


class Unpacked(View):
    """See `tracetui.sources.base.File`. All of it is unpacked on first use; what cannot be raises `OSError`.

    The size in its `stat` is that of what it holds.
    """

    __slots__ = ("_data", "_head")

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._data: bytes | None = None
        self._head: bytes | None = None

    @property
    def name(self) -> str:
        return self._file.name.removesuffix(_SUFFIX)

    @property
    def stat(self) -> Stat:
        return msgspec.structs.replace(self._file.stat, size=len(self._all()))

    @property
    def head(self) -> bytes:
        if self._data is None and self._head is None:  # most files are looked at and are nothing to us
            packed = self._file.read(0, _BEGIN)
            self._head = _unpacked(packed, HEAD_SIZE)
        return self._head if self._data is None and self._head is not None else self._all()[:HEAD_SIZE]

    def read(self, offset: int, size: int) -> bytes:
        found = self.head if offset + size <= len(self.head) else self._all()
        return found[offset : offset + size]

    def read_all(self) -> bytes:
        return self._all()

    def next_data(self, offset: int) -> int:
        return offset

    @property
    def tables(self) -> frozenset[str]:
        return frozenset()

    def database(self) -> AbstractContextManager[Connection]:
        raise OSError("a packed file is no database")

    def close(self) -> None:
        self._data = self._head = None
        super().close()

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
    from tracetui.sources.budget import left, spend  # it imports this module

    size = file.stat.size
    most = min(MAX_UNPACKED, max(_LEAST, MAX_RATIO * size))
    if size > most:
        raise OSError(f"not read: {size} bytes, more than {most >> 20} MiB")
    spend(file.memo, size)
    affordable = left(file.memo, most)
    data = _unpacked(file.read(0, size), affordable + 1)
    spend(file.memo, len(data))
    if len(data) > most:
        raise OSError(f"not read: it becomes more than {most >> 20} MiB, too much for a file of {size} bytes")
    return data


def _unpacked(packed: bytes, most: int) -> bytes:
    if packed and not packed.startswith(_MAGIC):
        raise OSError("broken: it is not packed as its name says")
    try:
        return unpack_zstandard(packed, most)
    except FormatError as fault:
        raise OSError(fault.reason) from fault


def unpack_zstandard(packed: bytes, most: int) -> bytes:
    """The first `most` bytes of what is packed in one frame or several, one after the other. Raises `FormatError`."""
    from zstandard import ZstdDecompressor, ZstdError  # 10 ms, and most archives are packed in another way

    try:
        with ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed, read_across_frames=True) as stream:
            return b"".join(_pieces(stream.read, most))
    except ZstdError as fault:
        raise FormatError(f"broken: cannot be unpacked ({fault})") from fault


def _pieces(read: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    """At most so many bytes, room for which is made as they come."""
    while most > 0 and (data := read(min(most, _PIECE))):
        yield data
        most -= len(data)
