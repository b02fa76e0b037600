"""Immutable states of the screens, and their transitions as pure functions. No Textual here.

A screen owns its state, replaces it as a whole and renders it. Crash logs contain states by `describe`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tracetui.analysis import navigation
from tracetui.analysis.arrangement import Arrangement, Choices
from tracetui.analysis.tasks import SORTS
from tracetui.errors import UsageError
from tracetui.model import Run, RunRef, RunSummary
from tracetui.store import address
from tracetui.store.address import Address
from tracetui.store.facts import run_time
from tracetui.ui.commands import DETAIL, RUNS, STEPS, TASKS, TREE
from tracetui.ui.layout import Width


class PanesState(Struct, frozen=True, repr_omit_defaults=True):
    """Common state of all screens with panes."""

    pane: str
    """The focused pane."""
    zoom: str | None = None
    """The pane that fills the screen, if any."""


S = TypeVar("S", bound=PanesState)


def toggle_zoom(state: S) -> S:
    """Toggle the zoom of the focused pane."""
    return replace(state, zoom=None if state.zoom is not None else state.pane)


def focus(state: S, pane: str) -> S:
    """Focus a pane; an active zoom moves to it."""
    return replace(state, pane=pane, zoom=pane if state.zoom is not None else None)


_SAFE_FIELDS: Final = frozenset({"pane", "zoom", "tab", "sort", "group"})
"""Text fields whose values are program constants; other text may come from a trace or the user."""


def describe(state: Struct) -> str:
    """Describe a state in one line, without paths, ids, queries or other text from traces or the user."""
    fields = ((name, getattr(state, name)) for name in state.__struct_fields__)
    fields_text = (
        f"{name}={_describe_value(name, value)}" for name, value in fields if value not in (None, "", (), False)
    )
    return f"{type(state).__name__}({', '.join(fields_text)})"


def _describe_value(name: str, value: object) -> str:
    if isinstance(value, RunRef):
        return f"<a run of {value.format}>"
    if isinstance(value, Struct):
        return describe(value)
    if isinstance(value, bool | int) or name in _SAFE_FIELDS:
        return str(value)
    return f"<{len(value)}>" if isinstance(value, Sized) else "<set>"


# ---- the main screen


class Goal(Struct, frozen=True, repr_omit_defaults=True):
    """Pending navigation: pursued as soon as its run is listed and read."""

    ref: RunRef | None = None
    """None until the run of `address` or `newest` is listed."""
    span: str | None = None
    """Id of the span to go to."""
    uncover: bool = False
    """Whether to show the span even if it is filtered out, folded or not in the timeline."""
    walk: int = 0
    """Direction of the error walk: 1 goes to the first error, -1 to the last."""
    follow: bool | None = None
    """True: follow the run; False: follow it if it is running; None: don't."""
    address: Address | None = None
    """Address from the command line."""
    newest: bool = False
    """Whether to open the newest run."""
    sole: bool = False
    """Whether to open the run if it is the only one, apart from those that it started."""


class SearchTarget(NamedTuple):
    """Text to find in the detail of a span (None: of the run), preferably in `tabs`.

    `before` and `after`: the text around it.
    """

    ref: RunRef
    span: str | None
    needle: str
    tabs: tuple[str, ...] = ()
    before: str = ""
    after: str = ""

    def score(self, text: str) -> int:
        """Number of matching characters around the best occurrence of the needle in `text`; -1 without one."""
        text, needle = text.lower(), self.needle.lower()
        before, after = self.before.lower(), self.after.lower()
        best, at = -1, text.find(needle)
        while at >= 0:
            end = at + len(needle)
            prefix = _common_prefix(text[max(0, at - len(before)) : at][::-1], before[::-1])
            best = max(best, prefix + _common_prefix(text[end : end + len(after)], after))
            at = text.find(needle, end)
        return best


def _common_prefix(text: str, other: str) -> int:
    """Length of the common prefix."""
    return next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))


class MainState(PanesState, frozen=True, repr_omit_defaults=True):
    """The state of the main screen."""

    pane: str = RUNS
    level: int = 0
    """Navigation depth: 0 the list, 1 a run, 2 its detail (on narrow screens)."""
    ref: RunRef | None = None
    """Run in the steps and the detail: previewed (level 0) or open."""
    arrangement: Arrangement = Arrangement()
    """Sort, group, query and columns of the list."""
    marked: tuple[RunRef, ...] = ()
    """In the order of marking: of two runs, the first is A, the second B."""
    goal: Goal | None = None
    origin: tuple[Hashable, ...] = ()
    """Screens to reopen when the open run is left, outermost first."""


def first_state(
    arrangement: Arrangement,
    address: Address | None = None,
    *,
    follow: bool = False,
    newest: bool = False,
    sole: bool = False,
) -> MainState:
    """Initial state; without an `address`, `follow` follows the newest run."""
    goal = Goal(address=address, follow=follow) if address is not None else Goal(newest=True)
    wanted = address is not None or newest or follow
    return MainState(arrangement=arrangement, goal=goal if wanted else Goal(sole=True) if sole else None)


def focus_pane(state: MainState, pane: str, width: Width) -> MainState:
    """Focus a pane and show it."""
    level = state.level
    if pane == RUNS and width != "wide":
        level = 0
    elif width == "narrow" and pane != RUNS:
        level = 2 if pane == DETAIL and level == 2 else 1
    elif width == "narrow":
        level = min(level, 1)
    return replace(focus(state, pane), level=level)


def preview_run(state: MainState, ref: RunRef | None) -> MainState:
    """Preview the run under the cursor of the list; a goal that waits for the listing stays."""
    waiting = state.goal is not None and state.goal.ref is None
    return replace(state, ref=ref, goal=state.goal if waiting else None)


def enter_run(
    state: MainState,
    ref: RunRef,
    span: str | None = None,
    *,
    follow: bool | None = False,
    uncover: bool = False,
    walk: int = 0,
    origin: Sequence[Hashable] = (),
) -> MainState:
    """Open a run at a span; without one, `follow` applies (see `Goal.follow`)."""
    goal = Goal(ref, span, uncover, walk, follow if span is None else None)
    return _enter(state, replace(state, ref=ref, goal=goal, origin=tuple(origin) or state.origin))


def enter_listed(state: MainState, ref: RunRef) -> MainState:
    """Open the run of the goal, which is listed now."""
    goal = state.goal or Goal()
    to_span = goal.address is not None and bool(goal.address.parts) and not goal.follow
    follow = True if goal.newest else None if to_span else bool(goal.follow)
    return _enter(state, replace(state, ref=ref, goal=replace(goal, ref=ref, follow=follow, newest=False, sole=False)))


def _enter(before: MainState, state: MainState) -> MainState:
    return replace(state, level=max(1, before.level), pane=STEPS if before.pane == RUNS else before.pane)


def enter_problem(state: MainState) -> MainState:
    """Show the text of the unreadable file under the cursor."""
    return replace(state, level=1, pane=DETAIL)


def read_detail(state: MainState, width: Width) -> MainState:
    """Focus the detail from the steps."""
    return replace(state, pane=DETAIL, level=2 if width == "narrow" else state.level)


def go_back(state: MainState) -> MainState | None:
    """State after Esc; None if there is nothing to go back to."""
    if state.zoom is not None:
        return replace(state, zoom=None)
    if state.pane == DETAIL and state.level:
        return replace(state, level=1, pane=STEPS)
    if state.level or state.pane != RUNS:
        return replace(state, level=0, pane=RUNS, goal=None, origin=())
    if state.arrangement.query or state.arrangement.failures:
        return filter_runs(arrange_runs(state, failures=False), "")
    return None


def follow_run(state: MainState, *, always: bool) -> MainState:
    """Follow the shown run once it is read: `always`, or only if it is running."""
    return replace(state, goal=Goal(state.ref, follow=always))


def release_span(state: MainState) -> MainState:
    """Drop the span of the goal: the user moved the cursor of the steps."""
    goal = state.goal
    if goal is None or goal.span is None:
        return state
    return replace(state, goal=_without_span(goal))


def _without_span(goal: Goal) -> Goal | None:
    rest = replace(goal, span=None, uncover=False, address=None)
    return rest if rest.walk or rest.follow is not None else None


class Arrival(NamedTuple):
    """Part of a goal that the read part of its run allows."""

    span: str | None = None
    uncover: bool = False
    walk: int = 0
    follow: bool | None = None
    warning: str = ""
    """Error in the address."""


def pursue_goal(state: MainState, run: Run) -> tuple[MainState, Arrival]:
    """Pursue the goal with the part of the run that is read: go to a span once it is read, do the rest at the end."""
    goal = state.goal
    if goal is None or goal.ref != run.summary.ref:
        return state, Arrival()
    span, warning = (goal.span if goal.span in run.index else None), ""
    if goal.address is not None:
        span, warning = find_address(goal.address, run)
    uncover = goal.uncover or goal.address is not None
    if run.complete:
        return replace(state, goal=None), Arrival(span, uncover, goal.walk, goal.follow, warning)
    if span is not None or (goal.address is not None and not warning):
        return replace(state, goal=_without_span(goal)), Arrival(span, uncover)
    return state, Arrival(uncover=uncover)


def find_run(wanted: Address, runs: Iterable[RunSummary]) -> RunRef | None:
    """Find the run of an address; None while it isn't listed."""
    return next((r.ref for r in runs if r.ref.path == wanted.path and wanted.key in (None, r.ref.key, r.id)), None)


def find_address(wanted: Address, run: Run) -> tuple[str | None, str]:
    """Find the span of an address in its run; returns (id, error)."""
    if wanted.path != run.summary.ref.path or not wanted.parts:
        return None, ""
    try:
        span = address.target(run, wanted.parts).span
    except UsageError as error:
        return None, str(error)
    return (span.id if span is not None else None), ""


def find_goal_run(goal: Goal, runs: Mapping[RunRef, RunSummary], *, listing: bool) -> RunRef | None:
    """Find the run of a goal once it is listed; the newest and the only run once all are."""
    if goal.ref is not None or not runs:
        return None
    if goal.address is not None:
        return find_run(goal.address, runs.values())
    if goal.sole:
        top_level = [run.ref for run in runs.values() if run.parent is None]
        return top_level[0] if len(top_level) == 1 and not listing else None
    return max(runs.values(), key=lambda run: (run_time(run), run.parent is None)).ref if not listing else None


# ---- the list


def arrange_runs(state: MainState, **changes: object) -> MainState:
    """Change the arrangement of the list."""
    return replace(state, arrangement=replace(state.arrangement, **changes))


def row_order(state: MainState) -> Arrangement:
    """What decides the rows of the list and their order."""
    return replace(state.arrangement, columns=(), share=0)


def list_layout(state: MainState) -> tuple[object, ...]:
    """What decides the width of the list."""
    return state.arrangement.columns, state.arrangement.share


def filter_runs(state: MainState, query: str) -> MainState:
    """Filter the list by a query."""
    return arrange_runs(state, query=query)


def _next_value(value: str, order: Sequence[str]) -> str:
    return order[(order.index(value) + 1) % len(order)]


_ARRANGE_COMMANDS: Final[Mapping[str, Callable[[Arrangement, Choices], Arrangement]]] = {
    "sort": lambda a, choices: replace(a, sort=_next_value(a.sort, choices.sorts), reverse=False),
    "reverse": lambda a, choices: replace(a, reverse=not a.reverse),
    "group": lambda a, choices: replace(a, group=_next_value(a.group, choices.groups)),
    "failures": lambda a, choices: replace(a, failures=not a.failures),
    "new": lambda a, choices: replace(a, new=not a.new),
}


def rearrange(arrangement: Arrangement, change: str, choices: Choices) -> Arrangement:
    """The arrangement after a command of a list of runs or causes: sort, reverse, group, failures or new."""
    return _ARRANGE_COMMANDS[change](arrangement, choices)


A = TypeVar("A", Arrangement, "TasksState")


def toggle_sort(arranged: A, sort: str) -> A:
    """Sort after a click on the heading of a column: by it, the second time in reverse."""
    return replace(arranged, sort=sort, reverse=arranged.sort == sort and not arranged.reverse)


def toggle_mark(state: MainState, ref: RunRef) -> MainState:
    """Mark or unmark a run."""
    others = tuple(other for other in state.marked if other != ref)
    return replace(state, marked=others if ref in state.marked else (*others, ref))


def mark_label(state: MainState, ref: RunRef) -> str:
    """Label of a marked run: A or B of up to two, ``+`` of more; empty for an unmarked run."""
    if ref not in state.marked:
        return ""
    return "AB"[state.marked.index(ref)] if len(state.marked) <= len("AB") else "+"


# ---- the error walk


def next_error(run: Run, span: str | None, step: int) -> str | None:
    """Next or previous error of a run from a span; None past the last."""
    here = run.index[span] if span is not None else -1
    return next((error for error in navigation.errors(run)[::step] if (run.index[error] - here) * step > 0), None)


def next_failed(
    state: MainState, order: Sequence[RunRef], runs: Mapping[RunRef, RunSummary], step: int, *, here: bool = False
) -> RunRef | None:
    """Next or previous failed run of the list; `here` includes the run under the cursor."""
    at = order.index(state.ref) if state.ref is not None and state.ref in order else -1
    candidates = [*order[at + 1 :]] if step > 0 else [*order[: max(at, 0)]][::-1]
    if here and state.ref is not None:
        candidates.insert(0, state.ref)
    return next((ref for ref in candidates if ref in runs and runs[ref].failed), None)


def no_error(
    state: MainState, order: Sequence[RunRef], runs: Mapping[RunRef, RunSummary], step: int, *, walked: bool
) -> str:
    """What to say where there is no next or previous error: the way back, and how many failed runs lie there.

    `walked`: the open run has errors.
    """
    at = order.index(state.ref) if state.ref is not None and state.ref in order else 0
    failed = sum(ref in runs and runs[ref].failed for ref in (order[: at + 1] if step > 0 else order[at:]))
    if not failed and not walked:
        return "No errors"
    message = "Last error · E goes back" if step > 0 else "First error · e goes on"
    return message + (f" · {failed:,} failed runs {'above' if step > 0 else 'below'}" if failed > 1 else "")


def next_ungraded(
    state: MainState, order: Sequence[RunRef], runs: Mapping[RunRef, RunSummary], step: int
) -> RunRef | None:
    """Next or previous ungraded run of the list."""
    at = order.index(state.ref) if state.ref is not None and state.ref in order else -1
    candidates = [*order[at + 1 :]] if step > 0 else [*order[: max(at, 0)]][::-1]
    return next((ref for ref in candidates if ref in runs and runs[ref].is_ungraded), None)


# ---- the task matrix


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
    return replace(state, sort=next((sort for sort in order if sort in sortable), state.sort), reverse=False)


def reverse_order(state: TasksState) -> TasksState:
    """Reverse the order."""
    return replace(state, reverse=not state.reverse)


# ---- the run tree


class RunTreeState(PanesState, frozen=True, repr_omit_defaults=True):
    """State of the run tree."""

    pane: str = TREE
    selected: RunRef | None = None
    """The run with the highlighted path."""
    by_chance: float = 0.0
    """Decisive forks that chance alone gives over all tasks from which this one was opened; 0 for marked runs."""
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
