"""Immutable state of the run tree screen, and its transitions. No Textual here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from tracetui.model import RunRef
from tracetui.ui.commands import TREE
from tracetui.ui.state import PanesState


class RunTreeState(PanesState, frozen=True, repr_omit_defaults=True):
    """State of the run tree."""

    pane: str = TREE
    selected: RunRef | None = None
    """The run with the highlighted path."""
    texts: bool = False
    """Whether model answers and messages are steps."""
    cursor: Hashable = None
    """Row to go to when the screen opens again."""
    opened: frozenset[Hashable] = frozenset()
    """Toggled folds when the screen opens again."""


def select_next(state: RunTreeState, order: Sequence[RunRef], step: int) -> RunTreeState | None:
    """Select the next run in this order, or the one before; None past its ends."""
    here = order.index(state.selected) if state.selected in order else -1 if step > 0 else len(order)
    return replace(state, selected=order[here + step]) if 0 <= here + step < len(order) else None


def toggle_texts(state: RunTreeState) -> RunTreeState:
    """Toggle model answers and messages as steps."""
    return replace(state, texts=not state.texts)
