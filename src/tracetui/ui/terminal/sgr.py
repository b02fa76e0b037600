"""Fewer bytes for the same screen: of each style only what differs from the one before is written.

Textual writes every stretch of text with its whole style and a reset after it, some 40 bytes each. A move of the cursor
in a list of many colours is mostly that. Blanks have no ink, and moving the cursor shows nothing at all.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_PARTS: Final = re.compile(r"\x1b\[([0-9;]*)m")
_RESET: Final = "\x1b[0m"
_MOVES: Final = re.compile(r"(?:\r?\n|\x1b\[[0-9;]*H)+")
"""Text that only moves the cursor. Nobody ends the last line of the screen, which would scroll the ground in."""
_INK_ONLY: Final = frozenset("123")
"""Bold, dim, italic: what is not seen in blanks."""


class Style(NamedTuple):
    """What SGR codes have set, each as the codes that set it."""

    ink: str = ""
    ground: str = ""
    attributes: frozenset[str] = frozenset()
    """Everything but colours. Only a reset takes them back, as Textual does; it never takes back one of them."""


PLAIN: Final = Style()


class Shortener:
    """Knows the style that the terminal is in. Everything that is written goes through it, in order."""

    def __init__(self) -> None:
        self._is = PLAIN

    def shorten(self, data: str) -> str:
        """The same, with fewer SGR sequences. At its end the terminal is in the style that `data` leaves it in."""
        if "\x1b[" not in data:
            return data
        parts = _PARTS.split(data)
        out: list[str] = []
        wanted = self._is
        for at, part in enumerate(parts):
            if at % 2:
                wanted = _after(wanted, part)
            elif part:
                if wanted != self._is and not _looks_alike(part, self._is, wanted):
                    out.append(_change(self._is, wanted))
                    self._is = wanted
                out.append(part)
        if wanted != self._is:
            out.append(_change(self._is, wanted))
            self._is = wanted
        return "".join(out)


def _looks_alike(text: str, one: Style, other: Style) -> bool:
    """Whether text is surely the same to the eye in both styles."""
    if text[0] not in " \r\n\x1b":
        return False
    if text.strip(" "):
        return _MOVES.fullmatch(text) is not None
    return one.ground == other.ground and one.attributes | other.attributes <= _INK_ONLY


@lru_cache(4096)
def _after(style: Style, codes: str) -> Style:
    """The style after one sequence."""
    ink, ground, attributes = style
    numbers = (codes or "0").split(";")
    at = 0
    while at < len(numbers):
        code = numbers[at].lstrip("0") or "0"
        if code == "0":
            ink, ground, attributes = PLAIN
        elif code in ("38", "48") and at + 1 < len(numbers):
            length = {"2": 5, "5": 3}.get(numbers[at + 1], 0)
            if not length or at + length > len(numbers):
                return Style(ink, ground, attributes | {";".join(numbers[at:])})
            value = ";".join(numbers[at : at + length])
            ink, ground = (value, ground) if code == "38" else (ink, value)
            at += length - 1
        elif code.isdigit() and (30 <= int(code) <= 37 or 90 <= int(code) <= 97):
            ink = code
        elif code.isdigit() and (40 <= int(code) <= 47 or 100 <= int(code) <= 107):
            ground = code
        elif code == "39":
            ink = ""
        elif code == "49":
            ground = ""
        else:
            attributes |= {code}
        at += 1
    return Style(ink, ground, attributes)


@lru_cache(4096)
def _change(before: Style, after: Style) -> str:
    """The shortest sequence from one style to the other."""
    if after == PLAIN:
        return _RESET
    whole = [*sorted(after.attributes), *filter(None, (after.ink, after.ground))]
    from_nothing = f"\x1b[0;{';'.join(whole)}m"
    if before.attributes - after.attributes:
        return from_nothing
    codes = sorted(after.attributes - before.attributes)
    if after.ink != before.ink:
        codes.append(after.ink or "39")
    if after.ground != before.ground:
        codes.append(after.ground or "49")
    step = f"\x1b[{';'.join(codes)}m"
    return min(step, from_nothing, key=len)
