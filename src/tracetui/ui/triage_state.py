"""The state of the triage as one immutable value, and the functions that compute the next one. No Textual here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable
from itertools import chain, islice

from msgspec.structs import replace

from tracetui.analysis.arrangement import Arrangement
from tracetui.analysis.triage import CAUSES, CauseOrder, Group, Task
from tracetui.model import RunRef
from tracetui.store.judgement import Judgement
from tracetui.ui.commands import QUEUE
from tracetui.ui.state import PanesState
from tracetui.views.triage import Item, Member, TaskRow, is_reviewed


class TriageState(PanesState, frozen=True, repr_omit_defaults=True):
    """The state of the triage."""

    pane: str = QUEUE
    unfolded: frozenset[Hashable] = frozenset()
    """Keys of the unfolded causes and tasks."""
    arrangement: Arrangement = CAUSES
    """Sort, group and filter of the queue."""
    marked: tuple[Hashable, ...] = ()
    """Keys of the marked causes and tasks, in the order in which they were marked."""
    cursor: Hashable = None
    """The row to go to when the screen opens again."""


def go_back(state: TriageState) -> TriageState | None:
    """The state that Esc leads to; None: it leaves the screen."""
    if state.zoom is not None:
        return replace(state, zoom=None)
    if state.marked:
        return replace(state, marked=())
    if state.pane != QUEUE:
        return replace(state, pane=QUEUE)
    return replace(state, arrangement=replace(state.arrangement, new=False)) if state.arrangement.new else None


def toggle_mark(state: TriageState, key: Hashable) -> TriageState:
    """Mark a cause or task, or unmark it."""
    marked = tuple(other for other in state.marked if other != key)
    return replace(state, marked=marked if key in state.marked else (*marked, key))


def fold_rows(state: TriageState, keys: Iterable[Hashable], *, open_: bool) -> TriageState:
    """Unfold or fold these rows."""
    unfolded = state.unfolded | {*keys} if open_ else state.unfolded - {*keys}
    return replace(state, unfolded=unfolded)


def step_failed(
    order: CauseOrder, item: Item | None, step: int, *, ungraded: bool = False
) -> tuple[Member | None, int]:
    """(The failed or `ungraded` run so many steps from the row of the cursor, whatever is folded, None past the ends;
    its number among them). A run that is both is among either.
    """
    full_order, order = order, order.half(ungraded=ungraded)
    number = _number_of(full_order, order, item, step) + step
    if not 0 <= number < order.runs_before[-1]:
        return None, number
    place = bisect_right(order.runs_before, number) - 1
    group, number_in = order.groups[place], number - order.runs_before[place]
    if not group.tasks:
        return Member(group, group.runs[number_in]), number
    for task in group.tasks:
        if number_in < len(task.runs):
            return Member(group, task.runs[number_in], task), number
        number_in -= len(task.runs)
    return None, number


def _number_of(full_order: CauseOrder, order: CauseOrder, item: Item | None, step: int) -> int:
    """The number, in `order`, of the run from which to step: the cursor may be on another row of `every`."""
    if item is None:
        return -1 if step > 0 else order.runs_before[-1]
    group = item if isinstance(item, Group) else item.group
    if group.digest not in order.places:
        places = [full_order.places[cause.digest] for cause in order.groups]
        return order.runs_before[bisect_left(places, full_order.places.get(group.digest, 0))] - (step > 0)
    place = order.places[group.digest]
    number = order.runs_before[place]
    if isinstance(item, Group):
        return number - (step > 0)
    if item.task is not None:
        tasks = group.tasks[: group.tasks.index(item.task)]
        number += sum(len(task.runs) for task in tasks)
    if isinstance(item, TaskRow):
        return number - (step > 0)
    runs = (order.groups[place] if item.task is None else item.task).runs
    if item.run in runs:
        return number + runs.index(item.run)
    above = {*group.runs[: group.runs.index(item.run)]}
    return number + sum(ref in above for ref in runs) - (step > 0)


def next_undecided(
    order: CauseOrder, item: Item | None, judgement_of: Callable[[Group | Task | RunRef], Judgement]
) -> Hashable:
    """The next row without a verdict: a run or task below the same row, else the next cause; None if all have."""
    if isinstance(item, Member):
        runs = item.group.runs if item.task is None else item.task.runs
        after = runs[runs.index(item.run) + 1 :] if item.run in runs else ()
        following = next((ref for ref in after if judgement_of(ref).verdict is None), None)
        if following is not None:
            return following
    group = item if item is None or isinstance(item, Group) else item.group
    if isinstance(item, TaskRow):
        here = item.group.tasks.index(item.task)
        tasks = [*item.group.tasks[here + 1 :], *item.group.tasks[:here]]
        following_task = next((task for task in tasks if judgement_of(task).verdict is None), None)
        if following_task is not None:
            return following_task.digest
    here = order.places[group.digest] if group is not None else -1
    groups = chain(islice(order.groups, here + 1, None), islice(order.groups, here + 1))
    following_group = next((cause for cause in groups if not is_reviewed(cause, judgement_of)), None)
    return following_group.digest if following_group is not None else None
