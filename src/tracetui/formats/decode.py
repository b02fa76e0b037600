"""Decode JSON found on disk: strictly and fast, or leniently and with a note; and the lines of growing files."""

from __future__ import annotations

import json
import re
import threading
from codecs import utf_8_decode
from collections.abc import Iterator
from contextlib import suppress
from string import digits
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.sources.base import MAX_DOCUMENT, File
from tracetui.sources.file_views import utf16_of

STRUCTS: Final = threading.Lock()
"""Held where msgspec may meet a Struct for the first time: meanwhile other threads would take it for complete, and
decoding with it crashes the process.
"""
MAX_LENIENT: Final = 64 << 20
"""Bytes up to which the slow, lenient decoder is tried."""

_DIGITS: Final = 2000
"""Python reads numbers of at least twice as many digits."""
_DECIMALS: Final = digits.encode()
_PIECE: Final = 1 << 16
_BOMS: Final = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)


def strict(data: bytes) -> Any:
    """Decode one document of strict JSON, integers of any size exactly. Raises `orjson.JSONDecodeError`."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return orjson.loads(data)  # accepts a nesting depth of 1000, and reports the position of an error


def decode(data: bytes) -> tuple[Any, str | None]:
    """Decode one JSON document into (value, note); the note is the reason for lenient decoding, None if strict.

    Integers of any size are exact (one of thousands of digits becomes text). Lenient decoding accepts:
    byte-order marks, UTF-16, ``NaN`` and ``Infinity``, lone surrogates, invalid UTF-8. Raises `FormatError` with the
    byte where reading stopped.
    """
    try:
        return strict(data), None
    except orjson.JSONDecodeError as error:
        failure = error
    if not data.strip():
        raise FormatError("empty file" if not data else "nothing but white space", "byte 0")
    if len(data) > MAX_LENIENT:
        raise _failure(failure, data)
    text, note = _text(data)
    if data[:1] not in b'{["-0123456789tfn \t\r\n' and note.startswith("bytes"):
        raise FormatError("not text", "byte 0")
    try:
        return json.loads(text, parse_int=_integer), note or "values that JSON does not allow (NaN, lone surrogates)"
    except RecursionError:
        raise FormatError("nested too deeply", "") from None
    except ValueError as error:
        raise _failure(failure, data) from error


def decode_value(text: str) -> Any:
    """JSON that travels inside a string (tool arguments): its value, or the text itself where it is none."""
    stripped = text.lstrip()
    if not stripped or stripped[0] not in '{["-0123456789tfn':
        return text
    try:
        return strict(text.encode())
    except ValueError:
        return text


def skippable(line: bytes) -> None:
    """Raise `ValueError` if strict decoding refuses something in `line` that typed decoding may pass over: invalid
    UTF-8, and numbers of thousands of digits.
    """
    if not line.isascii():
        position, size = 0, len(line)
        while position < size:  # piece by piece: memory that is used again is faster, too
            position += utf_8_decode(line[position : position + _PIECE], "strict", position + _PIECE >= size)[1]
    if len(line) > 2 * _DIGITS and _has_digits(line):
        strict(line)


def _has_digits(line: bytes) -> bool:
    """Whether there may be a number of thousands of digits."""
    samples = line[::_DIGITS]
    if len(samples.translate(None, _DECIMALS)) == len(samples):  # most lines
        return False
    return any(47 < byte < 58 and line[i * _DIGITS : (i + 1) * _DIGITS].isdigit() for i, byte in enumerate(samples))


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # Python's limit of digits
        return digits


def _text(data: bytes) -> tuple[str, str]:
    encoding = next((encoding for bom, encoding in _BOMS if data.startswith(bom)), None) or utf16_of(data)
    if encoding is not None:
        with suppress(UnicodeDecodeError):
            return data.decode(encoding, "surrogatepass"), f"encoded as {encoding}"
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        offset = error.start
    try:
        return data.decode("utf-8", "surrogatepass"), "lone surrogates"
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), f"bytes that are not UTF-8, the first at byte {offset}"


def _failure(error: orjson.JSONDecodeError, data: bytes) -> FormatError:
    """Say where strict decoding stopped: at the end means that the file is cut."""
    offset = len(error.doc[: error.pos].encode("utf-8", "surrogatepass")) if isinstance(error.doc, str) else error.pos
    tail = len(data.rstrip())
    message = error.msg.split(": line")[0]
    if offset >= tail or "unexpected end" in message.lower() or "eof" in message.lower():
        return FormatError("cut off: the JSON document does not end", f"byte {tail}")
    return FormatError(f"not valid JSON ({message})", f"byte {offset}")


_TOKEN: Final = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*(:?)|[{}\[\]]')


def top_names(head: bytes) -> Iterator[bytes]:
    """Names at the top level of the JSON object that `head` begins with, as far as it reaches; as they are written."""
    depth = 0
    for match in _TOKEN.finditer(head):
        first = match.group()[:1]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
            if depth == 0:
                return  # another document follows
        elif depth == 1 and match.group(2):
            yield match.group(1)


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


_MOST_BEGINNINGS: Final = 64
"""Places on a damaged line where a whole record may begin that are tried."""


def whole_records(data: bytes) -> list[tuple[int, int]]:
    """Ranges (begin, end) of the JSON objects on a line that holds several, or a torn one before whole ones.

    A range is taken only if the line ends after it or another object follows. Empty if there are none.
    """
    try:
        text = data.decode("latin-1")  # a character a byte; a quote or brace is never part of another character
        decoder = json.JSONDecoder()
    except UnicodeDecodeError:
        return []
    ranges: list[tuple[int, int]] = []
    position, tries = text.find("{"), 0
    while position >= 0 and tries < _MOST_BEGINNINGS:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            value, end = None, position + 1
        rest = data[end : end + 256].lstrip(BLANK)[:1]
        if isinstance(value, dict) and value and rest in (b"", b"{"):
            ranges.append((position, end))
        else:
            tries, end = tries + 1, position + 1
        position = text.find("{", end)
    return ranges


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
