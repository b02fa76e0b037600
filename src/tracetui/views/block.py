"""Text of any length in rows of a given width.

Short text is broken at blanks. Long text is broken at the width, so that row `n` is found by arithmetic and nothing is
prepared but the lengths of the lines: 50 MB open at once, and everything can be read.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from tracetui.text import TAB_SIZE, Clean, clean, clean_lines, wrap

_WRAPPED: Final = 1 << 17
"""Characters up to which text is broken at blanks."""
_LONG_LINE: Final = 1 << 14
_UNEVEN: Final = re.compile("[^\x00-\x7f\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u0590\u2010-\u2027\u2030-\u205e€]")
"""Characters that may take another number of cells than one."""


class Block:
    """The rows of a text, at most `width` cells each.

    (In a long text a row may be wider where it holds characters that the gate spells out.)
    """

    def __init__(self, text: str, width: int) -> None:
        self._width = max(1, width)
        self._rows: list[Clean] | None = None
        self._lines: Sequence[str] = ()
        self._starts: Sequence[int] = (0,)
        if len(text) <= _WRAPPED and (lines := clean_lines(text)) and max(map(len, lines)) <= _LONG_LINE:
            self._rows = [row for line in lines for row in wrap(line, self._width)]
        else:
            self._measure(text)

    def _measure(self, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\t", " " * TAB_SIZE)
        self._lines = text.split("\n")
        width = self._width
        if text.isascii():
            counts = [-(-size // width) or 1 for size in map(len, self._lines)]
        else:
            counts = [-(-len(line) // self._step(line)) or 1 for line in self._lines]
        self._starts = array("Q", accumulate(counts, initial=0))

    def _step(self, line: str) -> int:
        """Characters of a line that surely fit into one row."""
        return self._width if line.isascii() or not _UNEVEN.search(line) else max(1, self._width // 2)

    def __len__(self) -> int:
        return len(self._rows) if self._rows is not None else self._starts[-1]

    def row(self, index: int) -> Clean:
        """The text of one row."""
        if self._rows is not None:
            return self._rows[index]
        number = bisect_right(self._starts, index) - 1
        line = self._lines[number]
        step = self._step(line)
        start = (index - self._starts[number]) * step
        return clean(line[start : start + step])
