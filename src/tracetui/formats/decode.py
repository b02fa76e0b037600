"""Decode JSON found on disk: strictly and fast, or leniently and with a note."""

from __future__ import annotations

import json
import re
from codecs import utf_8_decode
from collections.abc import Iterator
from string import digits
from typing import Any, Final

import msgspec
import orjson

from tracetui.errors import FormatError

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
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
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
    found = line[::_DIGITS]
    if len(found.translate(None, _DECIMALS)) == len(found):  # most lines
        return False
    return any(47 < byte < 58 and line[i * _DIGITS : (i + 1) * _DIGITS].isdigit() for i, byte in enumerate(found))


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # Python's limit of digits
        return digits


def _text(data: bytes) -> tuple[str, str]:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return data.decode(encoding, "surrogatepass"), f"encoded as {encoding}"
            except UnicodeDecodeError:
                break
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
