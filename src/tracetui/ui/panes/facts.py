"""Pane 4, on wide screens: what the trace says about the run as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetui.model import Run
from tracetui.ui.panes.folding import FoldingView
from tracetui.views import detail
from tracetui.views.rows import ListRows

if TYPE_CHECKING:
    from tracetui.views.assessment import Assessment


class Facts(FoldingView):
    """The *run* tab of the detail, beside it."""

    number = 4
    pane_name = "Run"

    def __init__(self) -> None:
        super().__init__(id="facts")
        self._shown: Run | None = None
        self.assessment: Assessment | None = None
        """How the run went, as far as that is known."""

    def show_run(self, run: Run) -> None:
        """Show what is known of a run."""
        same = self._shown is not None and self._shown.summary.ref == run.summary.ref
        if not same:
            self.opened = frozenset()
        self._shown = run
        if self.display:
            self.draw_rows(keep=same)

    def nothing(self) -> None:
        """Show no run."""
        self._shown = None
        self.show(ListRows(()), keep=False)

    def on_resize(self) -> None:
        super().on_resize()
        if self._shown is not None:
            self.draw_rows(keep=True)

    def draw_rows(self, *, keep: bool) -> None:
        """Show what is known of the run."""
        assert self._shown is not None
        width = max(20, self.outer_size.width - 2)
        look = self.look
        rows = detail.rows(
            self._shown,
            None,
            None,
            "run",
            width=width,
            opened=self.opened,
            glyphs=look.glyphs,
            zone=look.zone,
            assessment=self.assessment,
        )
        self.show(rows, keep=keep)
