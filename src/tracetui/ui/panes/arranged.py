"""Lists that the user sorts, groups and filters by the same keys: runs and causes."""

from __future__ import annotations

from typing import Final

from textual.message import Message

from tracetui.analysis.arrangement import Arrangement
from tracetui.masking import one_line
from tracetui.text import Clean
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.rows import Line, Piece

MAX_WORDS: Final = 200
"""Cells of a query in the title of a list."""


class ArrangedView(LineView):
    """A list with an arrangement, which the screen owns."""

    class Arranged(Message):
        """Request to arrange the list; `how` as `state.rearrange` takes it."""

        def __init__(self, how: str) -> None:
            self.how = how
            super().__init__()

    async def action_arrange(self, how: str) -> None:
        """Reverse, group or filter the list, or show more columns."""
        await self.report(self.Arranged(how))

    async def action_sort(self) -> None:
        """Sort by the next column."""
        await self.report(self.Arranged("sort"))


def arrangement_title(arrangement: Arrangement, words: str, *, ungrouped: str, sort: str = "") -> Line:
    """The title of a list: how it is sorted, grouped and filtered.

    `words`: the query. `ungrouped`: the default group. `sort`: the sort order in words.
    """
    parts = [(sort or arrangement.sort) + (" reversed" if arrangement.reverse else "")]
    if arrangement.group not in (ungrouped, "none"):
        parts.append(f"by {arrangement.group}")
    if arrangement.failures:
        parts.append("failures only")
    if arrangement.new:
        parts.append("new only")
    pieces = [Piece(Clean(" · ".join(parts)), "sec")]
    if words:
        pieces += [Piece(Clean(" ")), Piece(Clean(f" f {one_line(words, MAX_WORDS)} "), "hit")]
    return tuple(pieces)
