"""The last column of a pane: where the view is in the whole, and where in the whole the marked rows are."""

from __future__ import annotations

from typing import Final

from tracetui.text import Clean
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Piece, Rows

MOST_TICKS: Final = 20_000
"""Rows up to which marks are shown: beyond, looking at every row would be felt."""
NO_MARK: Final = Piece(Clean(" "))


class Minimap:
    """Remembers what its cells stand for, until the rows or the page change."""

    def __init__(self) -> None:
        self._of = 0, 0
        self._ticks: dict[int, str | None] = {}

    def forget(self) -> None:
        """The rows are others."""
        self._ticks.clear()

    def cell(self, rows: Rows, index: int, top: int, page: int, glyphs: Glyphs) -> Piece:
        """What stands beside row `index`, where `top` is the first of `page` rows shown."""
        count = len(rows)
        if count <= page:
            mark = rows.mark(index)
            return Piece(glyphs.tick, mark) if mark else NO_MARK
        y = index - top
        mark = self._mark(rows, y, page) if count <= MOST_TICKS else None
        if mark:
            return Piece(glyphs.tick, mark)
        start = y * count // page
        inside = top <= start < top + page or (y == page - 1 and top + page >= count)
        return Piece(glyphs.thumb, "dim") if inside else Piece(glyphs.track, "line")

    def _mark(self, rows: Rows, y: int, page: int) -> str | None:
        """The mark of the last marked row that cell `y` of the page stands for."""
        count = len(rows)
        if self._of != (count, page):
            self._of = count, page
            self._ticks.clear()
        if y not in self._ticks:
            first, end = -(-y * count // page), -(-(y + 1) * count // page)
            self._ticks[y] = next(filter(None, map(rows.mark, reversed(range(first, end)))), None)
        return self._ticks[y]
