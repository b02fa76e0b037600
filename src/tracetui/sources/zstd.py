"""Compressed trace files (``.jsonl.zst``), presented as their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.sources.base import CACHE, HEAD_SIZE, File, FileView, Stat

if TYPE_CHECKING:
    from sqlite3 import Connection

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SUFFIX: Final = ".zst"
_NAME: Final = ".jsonl" + _SUFFIX
_WINDOW: Final = 128 << 20
"""Largest window of a Zstandard frame in bytes."""
_PIECE: Final = 4 << 20
_BEGIN: Final = 1 << 20
"""Compressed bytes read for the head."""
MAX_UNPACKED: Final = 256 << 20
"""Largest decompressed size. The file contains lines, decoded one by one: reading it takes twice as much."""
MAX_RATIO: Final = 1_000
"""Largest compression ratio: text never exceeds it."""
_LEAST: Final = 4 << 20
"""Decompressed size that any file may have, whatever its ratio."""
_CACHE_KEY: Final = "unpacked"
_MAX_CACHED: Final = 16 << 20
"""Largest decompressed file to cache between bodies of its run."""


def unpacked(file: File) -> File:
    """Return the contents of a compressed file, with its path, and its name without ``.zst``; any other file as is."""
    return UnpackedFile(file) if file.path.endswith(_NAME) else file


class UnpackedFile(FileView):
    """See `tracetui.sources.base.File`. Decompressed as a whole on first use; raises `OSError` if that fails.

    The size in its `stat` is the decompressed one.
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
        if self._data is None and self._head is None:  # most files are only checked, and are not traces
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
        raise OSError("a compressed file is not a database")

    def close(self) -> None:
        self._data = self._head = None
        super().close()

    def _all(self) -> bytes:
        if self._data is None:
            shared, stat = self.memo.get(CACHE, {}), self._file.stat
            cached = shared.get(_CACHE_KEY)
            if cached is not None and cached[:2] == (self.path, stat):
                self._data = cached[2]
            else:
                self._data = _unpack(self._file)
                if len(self._data) <= _MAX_CACHED:
                    shared[_CACHE_KEY] = (self.path, stat, self._data)
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
        raise OSError(f"not read: decompresses to more than {most >> 20} MiB, too much for a file of {size} bytes")
    return data


def _unpacked(packed: bytes, most: int) -> bytes:
    if packed and not packed.startswith(_MAGIC):
        raise OSError("broken: not a Zstandard file despite its name")
    try:
        return unpack_zstandard(packed, most)
    except FormatError as fault:
        raise OSError(fault.reason) from fault


def unpack_zstandard(packed: bytes, most: int) -> bytes:
    """Decompress the first `most` bytes of one frame or several. Raises `FormatError`."""
    from zstandard import ZstdDecompressor, ZstdError  # 10 ms, and most archives use another method

    try:
        with ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed, read_across_frames=True) as stream:
            return b"".join(_pieces(stream.read, most))
    except ZstdError as fault:
        raise FormatError(f"broken: cannot be decompressed ({fault})") from fault


def _pieces(read: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    """Read at most `most` bytes in pieces, allocated as they come."""
    while most > 0 and (data := read(min(most, _PIECE))):
        yield data
        most -= len(data)
