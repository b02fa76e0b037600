"""The state of the task matrix as one immutable value, and the functions that compute the next one. No Textual here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from tracetui.analysis.tasks import SORTS
from tracetui.ui.commands import TASKS
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
