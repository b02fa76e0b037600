"""The search pattern: matches decoded text, and prefilters the raw bytes of files.

JSON can encode a value in many ways: any character as ``\\u…`` (in either case), ``/`` as ``\\/``, and all of that
again for JSON inside a string. `Needle.may_match` allows for all of them: it may have false positives, but never
false negatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Final, Protocol

from tracetui.errors import UsageError

_SIMPLE: Final = {'"': '"', "\\": "", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
"""Characters with a short escape, and the text after its backslashes."""
_FOLDED: Final = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}
"""Non-ASCII letters equal to an ASCII letter when case is ignored."""
_ESCAPED_ROOM: Final = 64
"""Longest encoding of a character in bytes: a surrogate pair after the backslashes of JSON in JSON in JSON."""
MIN_ANCHOR: Final = 3
MAX_SECONDS: Final = 2.0
"""Time limit of a regular expression on one text."""
_ASCII: Final = re.compile("[\x20-\x7f]+")


class Needle:
    """A text or regular expression to search for, the same for every file. Immutable."""

    def __init__(self, pattern: str, *, regex: bool = False, ignore_case: bool = False) -> None:
        """`regex`: in the syntax of Python's `re` and more, ``^`` and ``$`` at every line. Raises `UsageError`."""
        if not pattern:
            raise UsageError("empty search pattern")
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._find = (_expression if regex else _literal)(pattern, flags)
        self._plain = pattern if not regex and not ignore_case else None
        required = _required(pattern, flags) if regex else pattern
        self._scan = _Scan(required, fold=ignore_case)
        self.overlap: Final = _ESCAPED_ROOM * (len(required) + 1)
        """Bytes by which consecutive pieces of a file must overlap to miss no match."""

    def may_match(self, data: bytes) -> bool:
        """Whether the needle may occur in JSON text (a file, or a piece of it) once decoded."""
        return self._scan.may_match(data)

    def matches(self, text: str) -> Iterator[Match]:
        """Yield the non-empty matches in decoded text.

        Raises `UsageError` for an expression that exceeds `MAX_SECONDS`.
        """
        if self._plain is not None and self._plain not in text:
            return
        try:
            for match in self._find(text):
                if match.start() < match.end():
                    yield match
        except TimeoutError as error:
            raise UsageError(
                f"the expression took more than {MAX_SECONDS:g} s on a text of {len(text)} characters; "
                "avoid nested repeats"
            ) from error


class Match(Protocol):
    """A match, like `re.Match`."""

    def start(self) -> int: ...
    def end(self) -> int: ...
    def group(self) -> str: ...


def _literal(text: str, flags: int) -> Callable[[str], Iterator[Match]]:
    return re.compile(re.escape(text), flags).finditer


def _expression(pattern: str, flags: int) -> Callable[[str], Iterator[Match]]:
    """Compile an expression with a library that supports timeouts and releases the GIL."""
    import regex  # 20 ms, and most searches are for plain text

    try:
        found = regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError) as error:
        raise UsageError(f"invalid regular expression: {error}; without -e the pattern is plain text") from error
    return partial(found.finditer, timeout=MAX_SECONDS, concurrent=True)


class _Scan:
    """Prefilter on raw bytes: searches for the longest part of the text that is usually not escaped."""

    def __init__(self, text: str, *, fold: bool) -> None:
        self._text, self._fold = text, fold
        anchor = _anchor(text, fold=fold)
        self._anchor = (anchor.lower() if fold else anchor).encode()
        self._complete = anchor == text
        self._odd = tuple(odd.encode() for c in sorted({*anchor.lower()}) for odd in _FOLDED.get(c, "") if fold)
        if fold:
            unusual = {*anchor.lower(), *anchor.upper(), *"".join(_FOLDED.get(c, "") for c in anchor.lower())}
        else:
            unusual = {*anchor, *(c for c in text if c.isascii() and not _is_variable(c))}
        self._escapes = re.compile(rb"\\u(?:" + b"|".join(sorted(_hex(c)[0] for c in unusual)) + rb")")
        """Escapes that are optional, or part of the anchor: without any, the anchor occurs literally or not at all."""

    @cached_property
    def _near(self) -> re.Pattern[bytes]:
        """All usual encodings of the text."""
        return re.compile(b"".join(_forms(c, plain=not _is_variable(c)) for c in self._text), re.DOTALL)

    @cached_property
    def _far(self) -> re.Pattern[bytes]:
        """All encodings of the text."""
        return re.compile(b"".join(_forms(c) for c in self._text), re.DOTALL)

    def may_match(self, data: bytes) -> bool:
        if self._fold:
            data = data.lower()
        if data.find(self._anchor) >= 0:
            return self._complete or self._fold or self._near.search(data) is not None or self._escaped(data)
        return self._escaped(data) or any(odd in data for odd in self._odd)

    def _escaped(self, data: bytes) -> bool:
        """Whether the text may occur with optional escapes."""
        first = data.find(b"\\")  # instant; most files with a backslash are scanned once more
        if first < 0 or self._escapes.search(data, first) is None:
            return False
        return self._fold or self._far.search(data) is not None


def _is_variable(c: str) -> bool:
    """Whether a character is usually escaped, or encoded in varying bytes."""
    return c in _SIMPLE or c < " " or c == "\ufffd" or "\ud800" <= c <= "\udfff"


def _anchor(text: str, *, fold: bool) -> str:
    """Return the longest part that is usually literal: of ASCII if long enough, as many writers escape other
    characters.
    """
    runs = [*_runs(text, fold=fold)]
    plain = max((part for run in runs for part in _ASCII.findall(run)), key=len, default="")
    return plain if len(plain) >= MIN_ANCHOR else max(runs, key=len)


def _runs(text: str, *, fold: bool) -> Iterator[str]:
    """Yield the parts of the text that are usually literal."""
    begin = 0
    for i, c in enumerate(text):
        if _is_variable(c) or (fold and c > "\x7f" and (c.lower() != c or c.upper() != c or c.casefold() != c)):
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]


def _forms(c: str, *, plain: bool = False) -> bytes:
    """Return a pattern of all encodings of a character; `plain`: literal, or escaped if not ASCII."""
    raw = re.escape(c.encode("utf-8", "surrogatepass"))
    if plain and c.isascii():
        return raw
    ways = [raw, b"".join(rb"\\+u" + unit for unit in _hex(c))]
    if c in _SIMPLE:
        ways.append((rb"\\*" if c in '"/' else rb"\\+") + re.escape(_SIMPLE[c].encode()))
    if c == "\ufffd" or "\ud800" <= c <= "\udfff":
        ways.append(rb"[\x80-\xff]{1,4}")  # bytes that are not UTF-8, or half a character
    return b"(?:" + b"|".join(ways) + b")"


def _hex(c: str) -> list[bytes]:
    """Return patterns of the digits after ``\\u``, in either case: one, or two for a surrogate pair."""
    units = c.encode("utf-16-be", "surrogatepass").hex()
    digits = [f"[{d}{d.upper()}]" if d.isalpha() else d for d in units]
    return ["".join(digits[i : i + 4]).encode() for i in range(0, len(digits), 4)]


def _required(pattern: str, flags: int) -> str:
    """Return the longest text contained in every match of an expression; empty if not obvious."""
    parser = re._parser  # type: ignore[attr-defined]
    try:
        tree = parser.parse(pattern, flags)
    except (re.error, RecursionError, OverflowError):
        return ""  # valid for `regex` only
    if tree.state.flags & re.IGNORECASE and not flags & re.IGNORECASE:
        return ""  # an inline flag
    found = [""]
    for kind, value in tree.data:
        if kind is parser.LITERAL:
            found[-1] += chr(value)
        else:
            found.append("")
    return max(found, key=len)
