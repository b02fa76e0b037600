"""Lines of a growing file, and the JSON on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tracetui.errors import FormatError
from tracetui.formats.decode import MAX_LENIENT, decode
from tracetui.sources.base import MAX_DOCUMENT, File

BLOCK: Final = 1 << 20
MAX_LINE: Final = MAX_LENIENT
"""Bytes of the longest a line that is read; a longer one becomes a problem."""
BLANK: Final = b"\xef\xbb\xbf \t\r\0"
"""Bytes allowed before a record."""


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
    Memory is bounded by one block and the longest line, or by `limit` bytes of it: the rest of a line (give or take a
    block) is skipped and counted in `Line.skipped`. A hole that makes a line too long is not read.
    """
    rest: list[bytes] = []  # pieces of a line that is longer than a block
    skipped = size = 0
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
            skipped = size = 0
        if begin < len(block):
            if size < limit:
                rest.append(block[begin:])
                size += len(rest[-1])
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


# ---- the JSON on a line


def without_marks(data: bytes) -> tuple[bytes, str | None]:
    """A line without a byte-order mark and the NUL bytes that a crash may leave, and a note of those.

    Raises `FormatError` for nothing but NUL bytes.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.startswith(b"\0"):
        return data, None
    rest = data.lstrip(b"\0")
    if not rest:
        raise FormatError(f"{len(data)} NUL bytes and no record")
    return rest, f"{len(data) - len(rest)} NUL bytes before the record"


def parse(data: bytes) -> tuple[Any, str | None]:
    """The value on one line and a note if it had to be read leniently; raises `FormatError` if it is not JSON."""
    data, note = without_marks(data)
    value, lenient = decode(data)
    return value, note or lenient


def record_on(data: bytes) -> dict[str, Any] | None:
    """The object on one line, None if there is none."""
    try:
        value, _ = parse(data)
    except FormatError:
        return None
    return value if isinstance(value, dict) else None


def records_in(head: bytes, most: int) -> Iterator[dict[str, Any]]:
    """The objects on the first `most` lines of the head of a file; one without newline is read if it is whole."""
    for data in head.split(b"\n", most)[:most]:
        if data.lstrip(BLANK)[:1] == b"{" and (record := record_on(data)) is not None:
            yield record
