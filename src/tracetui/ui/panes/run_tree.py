"""The pane of the run tree."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from tracetui.live.aggregate import TreeResult
from tracetui.model import RunRef
from tracetui.text import Clean
from tracetui.ui.commands import TREE
from tracetui.ui.widgets.line_view import FoldingView
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.run_tree import Kind, Node, TreeRows, is_fork, tree_sentence

_BELOW: Final = 4
"""Rows below a fork that should be visible: its branches."""


class TreePane(FoldingView):
    """Lanes of runs with their steps; the cursor starts at the first fork."""

    number = 1
    pane_name = "Run tree"

    def __init__(self) -> None:
        super().__init__(id=TREE)
        self.result: TreeResult | None = None
        self._selected: RunRef | None = None

    @property
    def tree_rows(self) -> TreeRows | None:
        """The rows, once there is a tree."""
        return self.rows if isinstance(self.rows, TreeRows) else None

    @property
    def node(self) -> Node | None:
        """The step under the cursor."""
        rows = self.tree_rows
        return rows.node(self.position) if rows is not None else None

    def show_tree(self, result: TreeResult, selected: RunRef | None, cursor: Hashable = None) -> None:
        """Show a tree with the path of the selected run; the cursor goes to `cursor`, else to the first fork."""
        if not result.tree.runs:
            self.show_message(Clean("none of the trials could be read"))
            return
        fresh = result is not self.result
        self.result, self._selected = result, selected
        self.draw_rows(keep=not fresh)
        rows = self.tree_rows
        if not fresh or rows is None:
            return
        forks = rows.forks()
        if not (cursor is not None and self.move_to_key(cursor)) and forks:
            self.move_to(forks[0])
            self.top = 0 if self.position < self.page else self.top
        self.refresh()

    def show_message(self, words: Clean) -> None:
        """Show a message in place of a tree."""
        self.result = None
        self.show(ListRows([(Piece(words, "dim"),)], headings=[0]), heading=lambda width: [], keep=False)

    def draw_rows(self, *, keep: bool) -> None:
        result, before = self.result, self.cursor
        if result is None:
            return
        refs = [run.summary.ref for run in result.tree.runs]
        selected = refs.index(self._selected) if self._selected in refs else None
        rows = TreeRows(
            result.tree,
            result.arguments,
            result.decisive_at,
            numbers=result.numbers,
            selected=selected,
            opened=self.opened,
            glyphs=self.look.glyphs,
        )
        self.show(rows, heading=lambda width: rows.headings(width), title=self._summary(result), keep=keep)
        if self.cursor != before:  # its row was folded
            self.post_moved()

    def _summary(self, result: TreeResult) -> Line:
        keys = (Piece(Clean("  ]d"), "key bold"), Piece(Clean(" goes there"), "sec"))
        return (
            *tree_sentence(result.tree, self.look.glyphs),
            *(keys if any(fork.is_decisive for fork in result.tree.forks) else ()),
        )

    def fold_all(self, *, open_: bool) -> None:
        """Unfold or fold all stretches and forks."""
        rows = self.tree_rows
        if rows is not None:
            self.opened = rows.toggles(open_=open_)
            self.draw_rows(keep=True)

    def step_to_fork(self, step: int, *, decisive: bool) -> bool:
        """Go to the next fork, or the one before; False if there is none. Finds folded forks only if `decisive`."""
        found = self._forks(step, decisive=decisive)
        if decisive and not found:
            self.opened = frozenset(key for key in self.opened if not is_fork(key))
            self.draw_rows(keep=True)
            found = self._forks(step, decisive=True)
        if not found:
            return False
        fork = found[0] if step > 0 else found[-1]
        self.move_to(fork, center=not self.top <= fork < self.top + self.page - _BELOW)
        return True

    def _forks(self, step: int, *, decisive: bool) -> list[int]:
        """The rows of forks below the cursor, or above it."""
        rows = self.tree_rows
        forks = rows.forks(decisive=decisive) if rows is not None else []
        return [i for i in forks if (i - self.position) * step > 0]

    def reveal(self) -> None:
        needle, node = self.needle.lower(), self.node
        if needle and node is not None and node.kind is Kind.BRANCH and self.toggle(open_=True):
            inside = range(self.position, min(len(self.rows), self.position + len(node.branch.steps)))
            self.move_to(next((i for i in inside if needle in self.rows.plain(i).lower()), self.position))
