"""Read new committed frames of a SQLite write-ahead log, verified by their checksums."""

from __future__ import annotations

import os
import sys
from array import array
from typing import Final

import msgspec

WAL_HEADER: Final = 32
MAX_FRAME_BYTES: Final = 1 << 20
"""Bytes of new frames to check here; SQLite is faster with more, although it reads the whole log."""
_FRAME_HEADER: Final = 24


class WalPosition(msgspec.Struct, frozen=True):
    """How far a write-ahead log was applied."""

    header: bytes
    offset: int
    """End of the last applied frame."""
    checksum: bytes
    """Checksum up to there, which the next frame's continues."""

    @classmethod
    def start(cls, header: bytes) -> WalPosition | None:
        """Return the position before the first frame; None for an invalid header."""
        size = int.from_bytes(header[8:12], "big")
        if len(header) < WAL_HEADER or not 512 <= size <= 65_536 or size & (size - 1):
            return None
        return cls(header, WAL_HEADER, header[24:32])

    @property
    def page_size(self) -> int:
        return int.from_bytes(self.header[8:12], "big")

    @property
    def frame_size(self) -> int:
        return _FRAME_HEADER + self.page_size

    @property
    def salts(self) -> bytes:
        return self.header[16:24]

    def restarted_as(self, header: bytes) -> bool:
        """True if `header` is what the log gets when it restarts once: SQLite increments the first salt."""
        following = (int.from_bytes(self.salts[:4], "big") + 1) & 0xFFFF_FFFF
        return header[:4] + header[8:12] == self.header[:4] + self.header[8:12] and (
            int.from_bytes(header[16:20], "big") == following
        )


class Frames(msgspec.Struct, frozen=True):
    """Committed frames of a log beyond a position."""

    pages: dict[int, bytes]
    page_count: int
    """Size of the database after them, in pages; 0 if there are none."""
    end: WalPosition


def new_frames(wal: int, position: WalPosition) -> list[Frames] | None:
    """Return the committed frames beyond `position`, even across a restart; None if some may be missing, or many."""
    frames = _frames_from(wal, position)
    if frames is None:
        return None
    header = os.pread(wal, WAL_HEADER, 0)
    if header == position.header:
        return [frames] if frames.page_count else []
    # The log restarted. Its new frames overwrite the old ones from the start. If the last applied frame is still there,
    # and what follows is not new, then no old frame was missed, and all of them are in the database.
    start = WalPosition.start(header)
    end = frames.end
    if start is None or end.offset == WAL_HEADER or not position.restarted_as(header):
        return None
    last = os.pread(wal, _FRAME_HEADER, end.offset - end.frame_size)
    following = os.pread(wal, _FRAME_HEADER, end.offset)
    if last[8:24] != end.salts + end.checksum or following[8:16] == start.salts or len(following) % _FRAME_HEADER:
        return None
    restarted = _frames_from(wal, start)
    if restarted is None or os.pread(wal, WAL_HEADER, 0) != header:
        return None
    return [frames, restarted]


def _frames_from(wal: int, position: WalPosition) -> Frames | None:
    """Return the committed frames of one round of a log beyond `position`; None if there are too many to check here."""
    size, offset, committed = position.frame_size, position.offset, position.offset
    while len(header := os.pread(wal, _FRAME_HEADER, offset)) == _FRAME_HEADER and header[8:16] == position.salts:
        offset += size
        if any(header[4:8]):
            committed = offset
    if committed - position.offset > MAX_FRAME_BYTES:
        return None
    data = memoryview(os.pread(wal, committed - position.offset, position.offset))
    word_type = "little" if position.header[3] == 0x82 else "big"
    pages: dict[int, bytes] = {}
    committed_pages: dict[int, bytes] = {}
    count, end, checksum = 0, position, position.checksum
    for at in range(0, len(data) - size + 1, size):
        header, page = bytes(data[at : at + _FRAME_HEADER]), bytes(data[at + _FRAME_HEADER : at + size])
        checksum = _checksum(header[:8] + page, checksum, word_type)
        number, after = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big")
        if header[8:16] != position.salts or header[16:24] != checksum or not number:
            break  # still being written
        pages[number] = page
        if after:
            committed_pages |= pages
            pages = {}
            count, end = after, WalPosition(position.header, position.offset + at + size, checksum)
    return Frames(committed_pages, count, end)


def _checksum(data: bytes, before: bytes, byte_order: str) -> bytes:
    """Return the checksum of a log: two sums over pairs of 32-bit words."""
    words = array("I", data)
    if byte_order != sys.byteorder:
        words.byteswap()
    first, second = int.from_bytes(before[:4], "big"), int.from_bytes(before[4:8], "big")
    pairs = iter(words)
    for one, two in zip(pairs, pairs, strict=True):
        first = (first + one + second) & 0xFFFF_FFFF
        second = (second + two + first) & 0xFFFF_FFFF
    return first.to_bytes(4, "big") + second.to_bytes(4, "big")
