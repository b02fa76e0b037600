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
    """Remembers which of its cells stand for a marked row, until the rows or the page change."""

    def __init__(self) -> None:
        self._ticks: tuple[tuple[int, int], dict[int, str]] | None = None

    def forget(self) -> None:
        """The rows are others."""
        self._ticks = None

    def cell(self, rows: Rows, index: int, top: int, page: int, glyphs: Glyphs) -> Piece:
        """What stands beside row `index`, where `top` is the first of `page` rows shown."""
        count = len(rows)
        if count <= page:
            mark = rows.mark(index)
            return Piece(glyphs.tick, mark) if mark else NO_MARK
        y = index - top
        mark = self._marks(rows, page).get(y)
        if mark:
            return Piece(glyphs.tick, mark)
        start = y * count // page
        inside = top <= start < top + page or (y == page - 1 and top + page >= count)
        return Piece(glyphs.thumb, "dim") if inside else Piece(glyphs.track, "line")

    def _marks(self, rows: Rows, page: int) -> dict[int, str]:
        count = len(rows)
        if self._ticks is None or self._ticks[0] != (count, page):
            marked = ((i, rows.mark(i)) for i in range(count)) if count <= MOST_TICKS else ()
            self._ticks = (count, page), {i * page // count: mark for i, mark in marked if mark}
        return self._ticks[1]
