"""Lines of two texts in rows: broken at blanks, tinted by side, the words that changed made strong."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from rich.cells import chop_cells

from tracetui.diff.sequence import Hunk
from tracetui.diff.sequence import Line as Words
from tracetui.text import Clean, cells, clean, count, pad
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Piece, fill, width_of

_LONG: Final = 1 << 14
"""Characters of a line up to which it is broken at blanks; a longer one is broken at the width, by arithmetic."""
_NUMBER: Final = 4
_UNWRAPPED: Final = 1 << 30


class Paper(NamedTuple):
    """How lines are laid out and drawn: side by side or unified, wrapped or not, in how many cells."""

    width: int
    side: bool
    wrap: bool
    glyphs: Glyphs

    @property
    def half(self) -> int:
        """Cells of the column of A."""
        return (self.width - 3) // 2

    @property
    def room(self) -> int:
        """Cells of the text of a line."""
        if not self.wrap:
            return _UNWRAPPED
        return max(4, self.half - _NUMBER - 2 if self.side else self.width - 2 * _NUMBER - 3)

    def pieces(self, lines: Lines, unit: int, row: int) -> Iterator[Piece]:
        """A row of a unit."""
        return (self._beside if self.side else self._unified)(lines, *lines.lines(unit), row)

    def _beside(self, lines: Lines, a: int | None, b: int | None, row: int) -> Iterator[Piece]:
        yield from fill(self._cell(lines, a, row, in_b=False), self.half)
        sign = self.glyphs.changed if not lines.of.same and a is not None and b is not None else Clean(" ")
        if not lines.of.same and (a is None or b is None):
            sign = self.glyphs.only_b if a is None else self.glyphs.only_a
        style = "diff.chg" if a is not None and b is not None else "diff.add" if a is None else "diff.rem"
        yield Piece(Clean(f" {sign if row == 0 else ' '} "), style)
        yield from fill(self._cell(lines, b, row, in_b=True), self.width - self.half - 3)

    def _cell(self, lines: Lines, number: int | None, row: int, *, in_b: bool) -> list[Piece]:
        if number is None:
            return [Piece(Clean(" " * self.half), "diff.gap")]
        words = (lines.of.b if in_b else lines.of.a)[number]
        at = (lines.of.at_b if in_b else lines.of.at_a) + number + 1
        shown = pad(count(at) if row == 0 else Clean(""), _NUMBER, right=True)
        what = "" if lines.of.same else "diff.add" if in_b else "diff.rem"
        sign = Clean(" ") if lines.of.same or row else self.glyphs.only_b if in_b else self.glyphs.only_a
        text = laid(words, self.room).row(row, what)
        pieces = [Piece(sign, what or "dim"), Piece(Clean(f"{shown} "), "dim"), *text]
        if not what:
            return pieces
        size = self.width - self.half - 3 if in_b else self.half
        missing = size - width_of(tuple(pieces))
        return [*pieces, Piece(Clean(" " * max(0, missing)), f"{what}.line")]

    def _unified(self, lines: Lines, a: int | None, b: int | None, row: int) -> Iterator[Piece]:
        of = lines.of
        if of.same:
            what, sign, words = "", Clean(" "), of.a[a if a is not None else 0]
        elif a is not None:
            what, sign, words = "diff.rem", self.glyphs.only_a, of.a[a]
        else:
            assert b is not None
            what, sign, words = "diff.add", self.glyphs.only_b, of.b[b]
        shown_a = count(of.at_a + a + 1) if a is not None and row == 0 else Clean("")
        shown_b = count(of.at_b + b + 1) if b is not None and row == 0 else Clean("")
        yield Piece(sign if row == 0 else Clean(" "), what or "dim")
        numbers = f"{pad(shown_a, _NUMBER, right=True)} {pad(shown_b, _NUMBER, right=True)} "
        yield Piece(Clean(numbers), "dim")
        text = laid(words, self.room).row(row, what)
        yield from text
        if what:
            missing = self.width - (2 * _NUMBER + 3) - width_of(tuple(text))
            yield Piece(Clean(" " * max(0, missing)), f"{what}.line")


class Lines:
    """Lines of a hunk: units `first` to `stop`, each a line of A, of B, or both, in as many rows as it takes."""

    def __init__(self, section: int, hunk: int, of: Hunk, first: int, stop: int, paper: Paper) -> None:
        self.section, self.hunk, self.of, self.first = section, hunk, of, first
        self._side, self._room = paper.side, paper.room
        heights = (self._height(*self.lines(unit)) for unit in range(first, stop))
        self.starts = list(accumulate(heights, initial=0))

    def _height(self, a: int | None, b: int | None) -> int:
        rows_a = 0 if a is None else len(laid(self.of.a[a], self._room).starts)
        if b is None or (self.of.same and a is not None):
            return rows_a
        return max(rows_a, len(laid(self.of.b[b], self._room).starts))

    def lines(self, unit: int) -> tuple[int | None, int | None]:
        """The lines of A and B that stand in that unit."""
        size_a, size_b = len(self.of.a), len(self.of.b)
        if self.of.same or self._side:
            return (unit if unit < size_a else None), (unit if unit < size_b else None)
        return (unit, None) if unit < size_a else (None, unit - size_a)

    def at(self, row: int) -> tuple[int, int]:
        """Unit, and row in it."""
        number = bisect_right(self.starts, row) - 1
        return self.first + number, row - self.starts[number]


class Laid(NamedTuple):
    """A line that passed the gate, and where its rows begin."""

    pieces: tuple[tuple[Clean, bool], ...]
    starts: Sequence[int]
    size: int

    def row(self, number: int, what: str) -> list[Piece]:
        """One of its rows; `what` is ``diff.add``, ``diff.rem`` or empty. Beyond its end: nothing."""
        if number >= len(self.starts):
            return []
        start = self.starts[number]
        stop = self.starts[number + 1] if number + 1 < len(self.starts) else self.size
        partly = not all(changed for _, changed in self.pieces)
        found: list[Piece] = []
        at = 0
        for text, changed in self.pieces:
            part = text[max(0, start - at) : max(0, stop - at)]
            at += len(text)
            if part:
                style = "sec" if not what else f"{what}.word bold" if changed and partly else f"{what}.line"
                found.append(Piece(Clean(part), style))
        return found


@lru_cache(2048)
def laid(line: Words, room: int) -> Laid:
    """A line in rows of at most `room` cells."""
    pieces = tuple((clean(piece.text), piece.changed) for piece in line)
    text = Clean("".join(piece for piece, _ in pieces))
    return Laid(pieces, breaks(text, room), len(text))


def breaks(text: Clean, width: int) -> Sequence[int]:
    """Where the rows of a text begin that is shown in `width` cells."""
    if cells(text) <= width:
        return (0,)
    if len(text) > _LONG:
        return range(0, len(text), width if text.isascii() else max(1, width // 2))
    starts, at = [0], 0
    ascii_only = text.isascii()
    while len(text) - at > (width if ascii_only else 0):
        stop = at + width if ascii_only else at + _fitting(text, at, width)
        if stop >= len(text):
            break
        blank = text.rfind(" ", at + (stop - at) // 3, stop)
        at = blank + 1 if blank > 0 else stop
        starts.append(at)
    return starts


def _fitting(text: Clean, at: int, width: int) -> int:
    """How many characters from `at` on fit."""
    part = text[at : at + 4 * width + 8]
    if cells(Clean(part)) <= width:
        return len(part)
    return max(1, len(chop_cells(part, width)[0]))
