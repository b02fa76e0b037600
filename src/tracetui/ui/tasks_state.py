"""Immutable states of the task matrix and of the run tree of a task, and their transitions. No Textual here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from tracetui.analysis.tasks import SORTS
from tracetui.model import RunRef
from tracetui.ui.commands import TASKS, TREE
from tracetui.ui.state import PanesState


class TasksState(PanesState, frozen=True, repr_omit_defaults=True):
    """The state of the task matrix."""

    pane: str = TASKS
    sort: str = SORTS[0]
    """One of `tracetui.analysis.tasks.SORTS`."""
    reverse: bool = False
    cursor: Hashable = None
    """The task to go to when the screen opens again."""
    column: int = 0
    """The column of cells to go to then."""


def sort_by_next(state: TasksState, sortable: Sequence[str]) -> TasksState:
    """Sort by the next of the orders for which the tasks have values."""
    after = SORTS.index(state.sort) + 1
    order = [*SORTS[after:], *SORTS[:after]]
    return replace(state, sort=next((one for one in order if one in sortable), state.sort), reverse=False)


def sort_by(state: TasksState, sort: str) -> TasksState:
    """Sort by one of `SORTS`; the second time in reverse."""
    return replace(state, sort=sort, reverse=state.sort == sort and not state.reverse)


def reverse_order(state: TasksState) -> TasksState:
    """Reverse the order."""
    return replace(state, reverse=not state.reverse)


# ---- run tree


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
