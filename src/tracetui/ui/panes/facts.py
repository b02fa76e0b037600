"""Pane 4, on wide screens: what the trace says about the run as a whole."""

from __future__ import annotations

from collections.abc import Hashable

from tracetui.model import Run
from tracetui.ui.line_view import LineView
from tracetui.views import detail
from tracetui.views.rows import ListRows


class Facts(LineView):
    """The *run* tab of the detail, beside it."""

    number = 4
    pane_name = "Run"

    def __init__(self) -> None:
        super().__init__(id="facts")
        self.opened: frozenset[Hashable] = frozenset()
        self._shown: Run | None = None

    def show_run(self, run: Run) -> None:
        """Show what is known of a run."""
        same = self._shown is not None and self._shown.summary.ref == run.summary.ref
        if not same:
            self.opened = frozenset()
        self._shown = run
        if self.display:
            self._draw_rows(keep=same)

    def nothing(self) -> None:
        """Show no run."""
        self._shown = None
        self.show(ListRows(()), keep=False)

    def toggle(self, *, open_: bool | None = None) -> bool:
        """Unfold or fold the row under the cursor; False if it does neither."""
        fold = detail.fold(self.rows, self.position) if self.position < len(self.rows) else None
        if fold is None or fold.open == open_:
            return False
        self.opened = self.opened ^ {fold.key}
        self._draw_rows(keep=True)
        return True

    @property
    def target_run(self) -> str | None:
        """Raw id of the run that the row under the cursor names."""
        return detail.target_run(self.rows, self.position) if self.position < len(self.rows) else None

    @property
    def target(self) -> str | None:
        """Id of the span that the row under the cursor names."""
        return detail.target(self.rows, self.position) if self.position < len(self.rows) else None

    def on_resize(self) -> None:
        super().on_resize()
        if self._shown is not None:
            self._draw_rows(keep=True)

    def _draw_rows(self, *, keep: bool) -> None:
        assert self._shown is not None
        width = max(20, self.outer_size.width - 2)
        look = self.look
        rows = detail.rows(
            self._shown, None, None, "run", width=width, opened=self.opened, glyphs=look.glyphs, zone=look.zone
        )
        self.show(rows, keep=keep)
