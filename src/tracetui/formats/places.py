"""Records read again from their place in a file, for the body of a span: only if they are still what they were."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.kept import once
from tracetui.formats.lines import parse
from tracetui.sources.base import File

_PLACE: Final = Struct("<QII")
PLACE_SIZE: Final = _PLACE.size


def place_of(offset: int, data: bytes) -> bytes:
    """Offset, size and checksum (CRC-32) of the line `data`, packed for `LinesAt`."""
    return _PLACE.pack(offset, len(data), crc32(data))


class LinesAt(msgspec.Struct, frozen=True, gc=False):
    """Where a span is that has many lines: what `place_of` makes of each, one after the other."""

    lines: bytes = b""

    @property
    def places(self) -> list[int]:
        """Offset, size and checksum of the first line, then those of the next ones."""
        return [number for place in _PLACE.iter_unpack(self.lines) for number in place]

    @property
    def size(self) -> int:
        """Bytes of the lines."""
        return sum(self.places[1::3])


def changed(where: str = "") -> FormatError:
    """The error of a body whose record is not the one that was read; `where` as in ``byte 812``."""
    return FormatError("the file changed: another record is there now", where)


def record_at(file: File, offset: int, size: int, *, many: bool = False) -> tuple[dict[str, Any], bytes]:
    """The record on the line at byte `offset`, and its bytes. Raises `FormatError` for a line of another size.

    One that tells `many` spans is kept for the next of them.
    """
    if many:
        return once(file, (offset, size), lambda: record_at(file, offset, size))
    before = file.read(offset - 1, 1) if offset else b"\n"
    data = file.read(offset, size + 1)
    if before != b"\n" or len(data) < size or data[size:] not in (b"", b"\n"):
        raise changed(f"byte {offset}")
    record, _ = parse(data[:size])
    if not isinstance(record, dict):
        raise changed(f"byte {offset}")
    return record, data[:size]


def records_at(file: File, places: Sequence[int]) -> list[tuple[dict[str, Any], bytes]]:
    """The same for each of `places`: offset, size and CRC-32 of one line after the other."""
    found = []
    for i in range(0, len(places), 3):
        offset, size, check = places[i : i + 3]
        data = file.read(offset, size)
        record = parse(data)[0] if len(data) == size and crc32(data) == check else None
        if not isinstance(record, dict):
            raise changed(f"byte {offset}")
        found.append((record, data))
    return found


class Named:
    """Fields of several records, those of each under its name: ``reasoning 2`` is the second of that name."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self._times: dict[str, int] = {}

    def add(self, name: str, value: Any) -> None:
        """What one record says, if it says something."""
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
