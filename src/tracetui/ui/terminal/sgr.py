"""Shorter output for the same screen: writes only the difference between consecutive styles.

Textual writes each segment with its full style and a reset, some 40 bytes: most of a cursor move in a colorful list.
Blanks don't show the foreground, and cursor moves show no style at all.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_PARTS: Final = re.compile(r"\x1b\[([0-9;]*)m")
_RESET: Final = "\x1b[0m"
_MOVES: Final = re.compile(r"(?:\r?\n|\x1b\[[0-9;]*H)+")
"""Text that only moves the cursor. Textual never ends the last line, which would scroll the background in."""
_INVISIBLE_IN_BLANKS: Final = frozenset("123")
"""Bold, dim, italic: invisible in blanks."""


class Style(NamedTuple):
    """Style set by SGR codes, as the codes."""

    foreground: str = ""
    background: str = ""
    attributes: frozenset[str] = frozenset()
    """All but colors. Only a reset clears them: Textual never clears a single one."""


PLAIN: Final = Style()


class Shortener:
    """Tracks the terminal's current style. All output must pass through it, in order."""

    def __init__(self) -> None:
        self._style = PLAIN

    def shorten(self, data: str) -> str:
        """Shorten `data` to equivalent output with fewer SGR sequences, ending in the same style."""
        if "\x1b[" not in data:
            return data
        parts = _PARTS.split(data)
        out: list[str] = []
        wanted = self._style
        for at, part in enumerate(parts):
            if at % 2:
                wanted = _after(wanted, part)
            elif part:
                if wanted != self._style and not _looks_alike(part, self._style, wanted):
                    out.append(_change(self._style, wanted))
                    self._style = wanted
                out.append(part)
        if wanted != self._style:
            out.append(_change(self._style, wanted))
            self._style = wanted
        return "".join(out)


def _looks_alike(text: str, one: Style, other: Style) -> bool:
    """Whether text certainly looks the same in both styles."""
    if text[0] not in " \r\n\x1b":
        return False
    if text.strip(" "):
        return _MOVES.fullmatch(text) is not None
    return one.background == other.background and one.attributes | other.attributes <= _INVISIBLE_IN_BLANKS


@lru_cache(4096)
def _after(style: Style, codes: str) -> Style:
    """The style after one sequence."""
    foreground, background, attributes = style
    numbers = (codes or "0").split(";")
    at = 0
    while at < len(numbers):
        code = numbers[at].lstrip("0") or "0"
        if code == "0":
            foreground, background, attributes = PLAIN
        elif code in ("38", "48") and at + 1 < len(numbers):
            length = {"2": 5, "5": 3}.get(numbers[at + 1], 0)
            if not length or at + length > len(numbers):
                return Style(foreground, background, attributes | {";".join(numbers[at:])})
            value = ";".join(numbers[at : at + length])
            foreground, background = (value, background) if code == "38" else (foreground, value)
            at += length - 1
        elif code.isdigit() and (30 <= int(code) <= 37 or 90 <= int(code) <= 97):
            foreground = code
        elif code.isdigit() and (40 <= int(code) <= 47 or 100 <= int(code) <= 107):
            background = code
        elif code == "39":
            foreground = ""
        elif code == "49":
            background = ""
        else:
            attributes |= {code}
        at += 1
    return Style(foreground, background, attributes)


@lru_cache(4096)
def _change(before: Style, after: Style) -> str:
    """The shortest sequence from one style to the other."""
    if after == PLAIN:
        return _RESET
    codes = [*sorted(after.attributes), *filter(None, (after.foreground, after.background))]
    from_reset = f"\x1b[0;{';'.join(codes)}m"
    if before.attributes - after.attributes:
        return from_reset
    codes = sorted(after.attributes - before.attributes)
    if after.foreground != before.foreground:
        codes.append(after.foreground or "39")
    if after.background != before.background:
        codes.append(after.background or "49")
    step = f"\x1b[{';'.join(codes)}m"
    return min(step, from_reset, key=len)
