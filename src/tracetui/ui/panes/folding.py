"""What panes have in common that have rows which fold and lead somewhere."""

from __future__ import annotations

from collections.abc import Hashable

from tracetui.ui.widgets.line_view import LineView
from tracetui.views import stack


class FoldingView(LineView):
    """Remembers which folds were toggled; a subclass draws its rows by them."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.opened: frozenset[Hashable] = frozenset()
        """Folds that differ from how they come."""

    def draw_rows(self, *, keep: bool) -> None:
        """Draw the rows again; the cursor stays on its row if `keep`."""
        raise NotImplementedError

    def toggle(self, *, open_: bool | None = None) -> bool:
        """Unfold or fold the row under the cursor; False if it does neither."""
        fold = stack.fold(self.rows, self.position) if self.position < len(self.rows) else None
        if fold is None or fold.open == open_:
            return False
        self.opened = self.opened ^ {fold.key}
        self.draw_rows(keep=True)
        return True

    def to_parent(self) -> bool:
        """Go to the row that the one under the cursor is in; False at the top."""
        parent = stack.parent(self.rows, self.position) if self.position < len(self.rows) else None
        if parent is None or parent == self.position:
            return False
        self.move_to(parent)
        return True

    async def action_fold(self) -> None:
        """Fold the row under the cursor, or go to the one that it is in; else scroll."""
        if not self.toggle(open_=False) and not self.to_parent():
            await super().action_fold()

    async def action_unfold(self) -> None:
        """Unfold the row under the cursor; else scroll."""
        if not self.toggle(open_=True):
            await super().action_unfold()

    @property
    def target(self) -> str | None:
        """Id of the span that the row under the cursor names."""
        return stack.target(self.rows, self.position) if self.position < len(self.rows) else None

    @property
    def target_run(self) -> str | None:
        """Raw id of the run that the row under the cursor names."""
        return stack.target_run(self.rows, self.position) if self.position < len(self.rows) else None
