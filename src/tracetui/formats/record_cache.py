"""References to records, and rereading them for bodies: checked for changes, and cached."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.lines import parse
from tracetui.sources.base import CACHE, File

ByteRange = tuple[int, int]
"""Offset and size of one line in bytes."""


_RANGE: Final = Struct("<QII")
PACKED_SIZE: Final = _RANGE.size
"""Bytes of a packed line."""


pack_range: Final[Callable[[int, int, int], bytes]] = _RANGE.pack
"""Offset, size and checksum (CRC-32) of a line, packed for `SpanRef`."""


def pack_block(block: int) -> bytes:
    """The number of a block, which precedes the packed lines in `SpanRef`: at most 15 bytes."""
    return block.to_bytes(1 if block < 256 else (block.bit_length() + 7) // 8, "little")


class SpanRef(msgspec.Struct, frozen=True, gc=False):
    """Location of a span's body: its lines, and a block of the first record. To save memory, `Span.at` is only `lines`
    unless the span has a `part` or is of an unknown kind.
    """

    lines: bytes
    """The concatenated `pack_range` of each line, after the `pack_block` of a block."""
    part: str = ""
    """Path of their file, relative to the folder of the main one; empty for the main file."""

    @classmethod
    def of(cls, at: Any) -> SpanRef:
        """The reference in a `Span.at`. Raises `FormatError` for that of another format."""
        if isinstance(at, bytes):
            return cls(at)
        if not isinstance(at, SpanRef):
            raise changed()
        return at

    @property
    def block(self) -> int:
        """Number of the block, -1 if the span is a whole record."""
        prefix = self.lines[: len(self.lines) % PACKED_SIZE]
        return int.from_bytes(prefix, "little") if prefix else -1

    @property
    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """Offset, size and checksum of each line, the first one first."""
        return tuple(_RANGE.iter_unpack(self.lines[len(self.lines) % PACKED_SIZE :]))

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return sum(size for _, size, _ in self.ranges)


def changed(where: str = "") -> FormatError:
    """The error of a body whose record was replaced; `where` as in ``byte 812``."""
    return FormatError("the file changed: the record was replaced", where)


def record_at(file: File, offset: int, size: int, *, many: bool = False) -> tuple[dict[str, Any], bytes]:
    """The record on the line at byte `offset`, and its bytes. Raises `FormatError` for a line of another size.

    A record with `many` spans is cached for the next of them.
    """
    if many:
        return cached(file, (offset, size), lambda: record_at(file, offset, size))
    before = file.read(offset - 1, 1) if offset else b"\n"
    data = file.read(offset, size + 1)
    if before != b"\n" or len(data) < size or data[size:] not in (b"", b"\n"):
        raise changed(f"byte {offset}")
    record, _ = parse(data[:size])
    if not isinstance(record, dict):
        raise changed(f"byte {offset}")
    return record, data[:size]


def records_at(file: File, at: Any) -> list[tuple[dict[str, Any], bytes]]:
    """The records of a `SpanRef`, with their bytes. Raises `FormatError` if the file has others there now.

    A record with several blocks is cached for the span of the next block.
    """
    ref = SpanRef.of(at)
    if ref.part:
        with open_part(file, ref.part) as other:
            return records_at(other, ref.lines)
    if ref.block > 0:
        return [cached(file, line, partial(_checked_record, file, *line)) for line in ref.ranges]
    return [_checked_record(file, *line) for line in ref.ranges]


def _checked_record(file: File, offset: int, size: int, check: int) -> tuple[dict[str, Any], bytes]:
    data = file.read(offset, size)
    record = parse(data)[0] if len(data) == size and crc32(data) == check else None
    if not isinstance(record, dict):
        raise changed(f"byte {offset}")
    return record, data


class Named:
    """Fields of several records, those of each under its name: ``reasoning 2`` is the second of that name."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self._times: dict[str, int] = {}

    def add(self, name: str, value: Any) -> None:
        """Add the fields of one record, unless empty."""
        if not value:
            return
        times = self._times.get(name, 0) + 1
        while (key := name if times == 1 else f"{name} {times}") in self.fields:
            times += 1
        self._times[name] = times
        self.fields[key] = value

    def flat(self, fields: dict[str, Any]) -> None:
        """Fields that need no name before them, unless theirs is taken."""
        for name, value in fields.items():
            self.add(name, value) if name in self.fields else self.fields.__setitem__(name, value)


# ---- cache

T = TypeVar("T")

CACHE_SIZE: Final = 3
"""Records per run: one may have the calls of a response, others their results."""
_RECORDS: Final = "records"


class _Cached(NamedTuple):
    key: tuple[Hashable, ...]
    value: Any


def cached(file: File, key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    """Return `make()`, cached by `key` and version of the file: the spans of a record share its decoded value.

    Caches the latest few values, and only while a run is open (`CACHE`). Callers must not modify the value.
    """
    shared = file.memo.get(CACHE)
    if shared is None:
        return make()
    version = (file.path, file.stat, *key)
    entries: tuple[_Cached, ...] = shared.get(_RECORDS, ())
    found = next((one for one in entries if one.key == version), None) or _Cached(version, make())
    if not entries or entries[0] is not found:  # one assignment: several threads may be here
        shared[_RECORDS] = (found, *(one for one in entries if one is not found))[:CACHE_SIZE]
    value: T = found.value
    return value


def open_part(file: File, path: str) -> File:
    """Open another file of the run, relative to the folder of `file`, with the same cache."""
    found = file.other(path)
    if CACHE in file.memo:
        found.memo[CACHE] = file.memo[CACHE]
    return found
