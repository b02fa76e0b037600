"""Pane 3 of a comparison: both runs as wholes."""

from __future__ import annotations

from tracetui.diff.result import Diff
from tracetui.ui.panes.folding import FoldingView
from tracetui.views.diff_runs import left_out, run_rows


class Sides(FoldingView):
    """How both runs ended, what they took, how they were judged; what was ignored."""

    number = 3
    pane_name = "Both runs"

    def __init__(self) -> None:
        super().__init__(id="sides")
        self._diff: Diff | None = None
        self._drawn_width = 0

    def show_diff(self, diff: Diff) -> None:
        """Show what is known of both runs."""
        fresh, self._diff = self._diff is None, diff
        self.draw_rows(keep=not fresh)

    def draw_rows(self, *, keep: bool) -> None:
        if self._diff is None:
            return
        self._drawn_width = width = max(24, self.outer_size.width - 2)
        diff, glyphs = self._diff, self.look.glyphs
        rows = run_rows(diff, width=width, opened=self.opened, glyphs=glyphs)
        self.show(rows, heading=lambda width: left_out(diff, glyphs), keep=keep)

    def on_resize(self) -> None:
        super().on_resize()
        if self._drawn_width != max(24, self.outer_size.width - 2):
            self.draw_rows(keep=True)
