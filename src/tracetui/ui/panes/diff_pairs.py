"""Pane 1 of a comparison: the steps of both runs, paired."""

from __future__ import annotations

from tracetui.diff.result import Diff, Row
from tracetui.text import Clean
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.diff import Paired, PairRows, summary
from tracetui.views.masking import one_line
from tracetui.views.rows import Piece


class Pairs(LineView):
    """The cursor goes to the first difference as soon as that is known, and stays where the reader puts it."""

    number = 1
    pane_name = "Steps"

    def __init__(self) -> None:
        super().__init__(id="pairs")
        self.chosen = False
        """True once the reader moved the cursor."""

    @property
    def diff(self) -> Diff | None:
        """The comparison that is shown."""
        return self.rows.diff if isinstance(self.rows, PairRows) else None

    @property
    def row(self) -> Row | None:
        """The pair under the cursor."""
        diff = self.diff
        return diff.rows[self.position] if diff is not None and self.position < len(diff.rows) else None

    def show_diff(self, diff: Diff) -> None:
        """Show a comparison, or what more is known of it."""
        before = self.diff
        if before is not None and _goes_on(before, diff):
            self._go_on(before, diff)
            return
        rows = PairRows(diff, glyphs=self.look.glyphs)
        key = None
        if not self.chosen and diff.first is not None:
            first = diff.rows[diff.first.row]
            key = Paired(first.a, first.b)
        fresh = before is None
        self.show(
            rows,
            key=None if fresh else key,
            title=(Piece(Clean(f"paired by {one_line(diff.by, 80)}"), "sec"),),
            heading=lambda width: (summary(diff),),
            keep=not fresh,
        )
        if key is not None and fresh:
            self.position = -1
            self.move_to_key(key, center=True)

    def _go_on(self, before: Diff, diff: Diff) -> None:
        """The same comparison, farther: draw what is new, which is seldom in view."""
        assert isinstance(self.rows, PairRows)
        self.rows.diff = diff
        for key in list(self._strips.keys()):
            if before.compared <= key[0] < diff.compared:
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
