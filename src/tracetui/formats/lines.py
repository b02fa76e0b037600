"""Complete lines of a growing file, from a byte offset: shared by the formats that are JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tracetui.sources.base import HEAD_SIZE, MAX_DOCUMENT, File

BLOCK: Final = 1 << 20


class Line(NamedTuple):
    """One line without its newline: where it begins in the file (bytes), its number from 1, and its bytes."""

    offset: int
    number: int
    data: bytes
    whole: bool
    """False for a last line that has no newline yet."""
    skipped: int = 0
    """Bytes left out of `data` because the line is longer than the limit."""

    @property
    def next_offset(self) -> int:
        """Byte after this line and its newline."""
        return self.offset + len(self.data) + self.skipped + self.whole


def lines(
    file: File, offset: int = 0, number: int = 1, *, limit: int = MAX_DOCUMENT, end: int | None = None
) -> Iterator[Line]:
    """Lines of `file` from byte `offset`, the first of them being line `number`; nothing from byte `end` on.

    Split at ``\\n`` only (U+2028, U+0085 and ``\\x1c`` are content). The last one may be unfinished (``whole`` False).
    Memory is bounded by one block and the longest line, or by `limit` bytes of it: what a line has beyond (give or take
    a block) is passed over, and `Line.skipped` says how much. A hole that makes a line too long is not read.
    """
    rest: list[bytes] = []  # pieces of a line that is longer than a block
    skipped = kept = 0
    start = position = offset
    while block := file.read(position, BLOCK if end is None else max(0, min(BLOCK, end - position))):
        begin = 0
        while (newline := block.find(b"\n", begin)) >= 0:
            data = block[begin:newline]
            if rest:
                data = b"".join((*rest, data))
                rest.clear()
            yield Line(start, number, data, True, skipped)
            begin = newline + 1
            start = position + begin
            number += 1
            skipped = kept = 0
        if begin < len(block):
            if kept < limit:
                rest.append(block[begin:])
                kept += len(rest[-1])
            else:
                skipped += len(block) - begin
        position += len(block)
        if begin < len(block) and block[-1] == 0:  # perhaps the beginning of a hole
            hole = min(file.next_data(position), file.stat.size if end is None else end) - position
            if hole > limit:
                skipped += hole
                position += hole
    if rest:
        yield Line(start, number, b"".join(rest), False, skipped)


def batches(file: File, limit: int) -> Iterator[tuple[bytes, bool]]:
    """The finished lines of `file`, many at once and each with its newline, and then the unfinished one (False).

    Raises `ValueError` for a line of more than `limit` bytes, give or take a block.
    """
    position, end = 0, file.stat.size
    rest: list[bytes] = []
    while data := file.read(position, max(0, min(BLOCK, end - position))):
        position += len(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join((*rest, data[:cut])), True
            rest = []
        rest.append(data[cut:])
        if len(rest) * BLOCK > limit:
            raise ValueError("a line is too long")
    if any(rest):
        yield b"".join(rest), False


def first_lines(file: File, limit: int) -> Iterator[Line]:
    """The finished lines in the first `limit` bytes, read as they are asked for.

    Of a file that is no larger also the last one, finished or not.
    """
    offset, number, end = 0, 1, min(file.stat.size, limit)
    data = file.head
    while True:
        begin = 0
        while (newline := data.find(b"\n", begin)) >= 0:
            yield Line(offset + begin, number, data[begin:newline], True)
            begin, number = newline + 1, number + 1
        offset += begin
        if offset + len(data) - begin >= end:
            break
        data = data[begin:] + file.read(offset + len(data) - begin, HEAD_SIZE)
    if offset < file.stat.size <= limit:
        yield Line(offset, number, data[begin:], False)
