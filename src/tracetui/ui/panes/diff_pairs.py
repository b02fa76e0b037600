"""Pane 1 of a comparison: the steps of both runs, paired."""

from __future__ import annotations

from tracetui.diff.result import Diff, Row
from tracetui.text import Clean
from tracetui.ui.panes.folding import FoldingView
from tracetui.views.diff import PREFIX, Paired, PairRows, summary
from tracetui.views.masking import one_line
from tracetui.views.rows import Piece


class Pairs(FoldingView):
    """The cursor goes to the first difference as soon as that is known, and stays where the reader puts it.

    What both runs did alike before it is folded, unless the reader is in it already.
    """

    number = 1
    pane_name = "Steps"

    def __init__(self) -> None:
        super().__init__(id="pairs")
        self.chosen = False
        """True once the reader moved the cursor."""
        self.led: Paired | None = None
        """The row that the cursor was put on: the first difference, as far as it is known."""

    @property
    def diff(self) -> Diff | None:
        """The comparison that is shown."""
        return self.rows.diff if isinstance(self.rows, PairRows) else None

    @property
    def row(self) -> Row | None:
        """The pair under the cursor."""
        diff, place = self.diff, self.place
        return diff.rows[place] if diff is not None and place is not None else None

    @property
    def place(self) -> int | None:
        """Which pair of the comparison is under the cursor."""
        rows = self.rows
        return rows.pair(self.position) if isinstance(rows, PairRows) and self.position < len(rows) else None

    def go_to(self, pair: int) -> None:
        """Put the cursor on a pair, which is unfolded if it has to be."""
        rows = self.rows
        if not isinstance(rows, PairRows):
            return
        self.chosen = True
        if rows.pair(rows.row_of(pair)) != pair:
            self.opened |= {PREFIX}
            self.draw_rows(keep=True)
            rows = self.rows
            assert isinstance(rows, PairRows)
        self.move_to(rows.row_of(pair))

    def draw_rows(self, *, keep: bool) -> None:
        if (diff := self.diff) is not None:
            self.show(self._rows_of(diff), keep=keep)

    def reveal(self) -> None:
        needle = self.needle.lower()
        if needle and self.toggle(open_=True):
            self.move_to(next((i for i in range(1, len(self.rows)) if needle in self.rows.plain(i).lower()), 0))

    def _rows_of(self, diff: Diff) -> PairRows:
        return PairRows(diff, glyphs=self.look.glyphs, unfolded=PREFIX in self.opened)

    def show_diff(self, diff: Diff) -> None:
        """Show a comparison, or what more is known of it."""
        before = self.diff
        if before is not None and _goes_on(before, diff):
            self._go_on(before, diff)
            return
        rows, place = self._rows_of(diff), self.place
        if self.chosen and place is not None and rows.pair(rows.row_of(place)) != place:
            self.opened |= {PREFIX}
            rows = self._rows_of(diff)
        key = None
        if not self.chosen and diff.first is not None:
            first = diff.rows[diff.first.row]
            key = Paired(first.a, first.b)
        fresh = before is None
        self.show(
            rows,
            title=(Piece(Clean(f"paired by {one_line(diff.by, 80)}"), "sec"),),
            heading=lambda width: (summary(diff),),
            keep=not fresh,
        )
        if key is not None and (fresh or key != self.led):
            self.led, self.position = key, -1
            self.move_to_key(key, center=True)
        self._show_fold()

    def on_resize(self) -> None:
        super().on_resize()
        self._show_fold()

    def _show_fold(self) -> None:
        """Have what is folded in view as well, where the first difference leaves room for it."""
        if self.rows and self.cursor == self.led and self.rows.key(0) == PREFIX and self.position < self.page:
            self.top = 0
            self.refresh()

    def _go_on(self, before: Diff, diff: Diff) -> None:
        """The same comparison, farther: draw what is new, which is seldom in view."""
        assert isinstance(self.rows, PairRows)
        self.rows.diff = diff
        first, last = self.rows.row_of(before.compared), self.rows.row_of(diff.compared)
        for key in list(self._strips.keys()):
            if first <= key[0] < last:
                self._strips.discard(key)
        cell = max(1, len(diff.rows) // self.page)
        if diff.complete or before.compared // cell != diff.compared // cell:
            self._minimap.forget()
        self._heading = None
        self._make_heading = lambda width: (summary(diff),)
        self.refresh_changed()

    def step_to(self, step: int) -> bool:
        """Go to the next row that differs; False if there is none."""
        rows = self.rows
        if not isinstance(rows, PairRows):
            return False
        here = self.position
        differing = rows.differing()
        found = next((i for i in differing if i > here), None)
        if step < 0:
            found = next((i for i in reversed(differing) if i < here), None)
        if found is None:
            return False
        self.chosen = True
        self.move_to(found)
        return True

    @property
    def wanted_height(self) -> int:
        """Rows that all of it would take, with title and heading."""
        return len(self.rows) + 2


def _goes_on(before: Diff, diff: Diff) -> bool:
    """Whether it is the same comparison, with the same steps paired and nothing new of where it first differs."""
    same = before.a is diff.a and before.b is diff.b and before.strict == diff.strict and before.first is diff.first
    return same and len(before.rows) == len(diff.rows) and 0 < before.compared <= diff.compared
