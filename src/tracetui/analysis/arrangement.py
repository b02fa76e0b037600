"""Filters, sorts and groups the runs of a list, and nests children below their parent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise, starmap
from math import inf
from operator import eq
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from tracetui import masking
from tracetui.analysis import spending
from tracetui.model import RUNNING_STATES, Problem, RunRef, RunState, RunSummary, Status
from tracetui.store.facts import OutcomeCounts, recorded_state, run_time, start_of, total_tokens

if TYPE_CHECKING:
    from tracetui.store import query
    from tracetui.store.sidecar import Sidecar


Item = RunSummary | Problem | tuple[str, int]
"""A run, an unreadable file, or the (label, count) of a group heading."""


class Choices(NamedTuple):
    """The sort orders and group-by criteria of a list, each in the order in which its key cycles."""

    sorts: tuple[str, ...]
    groups: tuple[str, ...]


StateOf = Callable[[RunSummary], RunState | None]
"""Whether a run probably still runs."""


class Arrangement(msgspec.Struct, frozen=True):
    """The user's choice of filter, sort order and grouping, of runs or of causes (`analysis.triage`)."""

    sort: str = "newest"
    reverse: bool = False
    group: str = "day"
    failures: bool = False
    """Show only failed runs."""
    new: bool = False
    """Show only new causes (`Group.is_new`)."""
    query: str = ""
    """A query (docs/query.md). For an invalid one, the part before the error applies."""
    columns: tuple[str, ...] = ()
    """Columns of the list of runs, in order; empty: chosen by its width."""
    share: int = 0
    """Percent of the screen's columns that the list takes, as dragged; 0: chosen by the layout."""


class _Moment(NamedTuple):
    """What the label of a group depends on beside its run."""

    state: StateOf
    context: query.Context | None
    day: Callable[[float], str]
    """See `day_label`."""


class Group(NamedTuple):
    """A group-by criterion."""

    label: Callable[[RunSummary, _Moment], str]
    rated: bool = False
    """Whether groups have their pass rate, if any run has an outcome."""


class Order:
    """Caches the last sorted list, because filters change letter by letter. Thread-safe."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, bool], list[RunSummary], list[RunSummary]] = ("", False), [], []
        """Sort criterion, input, sorted output."""

    def of(self, runs: Iterable[RunSummary], arrangement: Arrangement) -> list[RunSummary]:
        """The sorted runs. The list is shared: don't modify it."""
        by, before, in_order = self._last
        runs, wanted = list(runs), (arrangement.sort, arrangement.reverse)
        if wanted != by or runs != before:
            in_order = _sorted(runs, *wanted)
            self._last = wanted, runs, in_order
        return in_order


def _sorted(runs: list[RunSummary], by: str, reverse: bool) -> list[RunSummary]:
    """The runs in order; those of one time by path, which is compared only if there are any."""
    key = SORTS[by]
    ordered = sorted(runs, key=key, reverse=reverse)
    if by == "newest" and any(starmap(eq, pairwise(map(key, ordered)))):
        ordered.sort(key=lambda run: (run.ref.path, run.ref.key or ""), reverse=reverse)
        ordered.sort(key=key, reverse=reverse)
    return ordered


def arrange(
    runs: Iterable[RunSummary],
    problems: Iterable[Problem],
    arrangement: Arrangement,
    *,
    now: float,
    state: StateOf = recorded_state,
    context: query.Context | None = None,
    columns: query.Columns[RunSummary] | None = None,
    order: Order | None = None,
    decisions: Sidecar | None = None,
) -> list[Item]:
    """Filter, sort and group the runs. Children follow their parent, except in groups by cause.

    `context` supplies verdicts and relations to the query, `decisions` the user's merges and splits of causes.
    `columns` and `order` are caches for repeated calls with nearly the same runs.
    """
    selected, broken = (order or Order()).of(runs, arrangement), list(problems)
    if arrangement.failures:
        selected, broken = [run for run in selected if run.failed], []
    if arrangement.query:
        wanted = _query(arrangement, now, state, context)
        selected = wanted.select(selected, columns)
        broken = [
            problem
            for problem in broken
            if wanted.matches_text(f"{problem.path} {masking.mask(problem.reason)} unreadable")
        ]
    if arrangement.group == "cause":
        return _by_cause(selected, broken, decisions)
    parent_of = parents(selected)
    nested = _nest(selected, parent_of)
    if arrangement.group == "none" or (arrangement.group == "day" and arrangement.sort != "newest"):
        return [*nested, *broken]
    group, moment = GROUPS[arrangement.group], _Moment(state, context, day_label(now))
    rated = group.rated and any(run.outcome is not None for run in nested)
    return _grouped(nested, broken, parent_of, lambda run: group.label(run, moment), rated=rated)


def row_key_of(
    arrangement: Arrangement, *, now: float, state: StateOf = recorded_state, context: query.Context | None = None
) -> Callable[[RunSummary], Any]:
    """A key of a run that decides its row: while no run's key changes, the arrangement stays the same."""
    wanted = _query(arrangement, now, state, context).matches if arrangement.query else None
    key, label, failures = SORTS[arrangement.sort], GROUPS[arrangement.group].label, arrangement.failures
    moment = _Moment(state, context, day_label(now))

    def is_listed(run: RunSummary) -> bool:
        return (not failures or run.failed) and (wanted is None or wanted(run))

    return lambda run: (is_listed(run), key(run), label(run, moment), run.parent, run.outcome, run.failed)


def _query(
    arrangement: Arrangement, now: float, state: StateOf, context: query.Context | None
) -> query.Query[RunSummary]:
    from tracetui.store import query

    parsed, _ = query.parse_prefix(arrangement.query, context or query.TraceContext(state=state), now=now)
    return parsed


def parents(runs: Collection[RunSummary]) -> dict[RunRef, RunRef]:
    """Map each run to its parent: a run of the same file, else of the same format."""
    started = [run for run in runs if run.parent is not None and run.parent != run.id]
    if not started:
        return {}
    by_id = {(run.ref.path, run.id): run.ref for run in runs}
    elsewhere = {(run.ref.format, run.id): run.ref for run in runs}
    parent_of: dict[RunRef, RunRef] = {}
    for run in started:
        parent = by_id.get((run.ref.path, run.parent or "")) or elsewhere.get((run.ref.format, run.parent or ""))
        if parent is not None:
            parent_of[run.ref] = parent
    return parent_of


def _nest(runs: list[RunSummary], parent_of: Mapping[RunRef, RunRef]) -> list[RunSummary]:
    """Put children below their parent, by start time, if both are in the list."""
    tops = [run for run in runs if run.ref not in parent_of] if parent_of else []
    if not tops:
        return runs
    children: dict[RunRef, list[RunSummary]] = {}
    for run in runs:
        if run.ref in parent_of:
            children.setdefault(parent_of[run.ref], []).append(run)
    nested: list[RunSummary] = []
    stack = list(reversed(tops))
    seen: set[RunRef] = set()
    while stack:
        run = stack.pop()
        if run.ref in seen:
            continue
        seen.add(run.ref)
        nested.append(run)
        below = children.get(run.ref, [])
        stack.extend(sorted(below, key=lambda child: (run_time(child), child.id), reverse=True))
    nested.extend(run for run in runs if run.ref not in seen)  # cycles of parents
    return nested


def _grouped(
    runs: list[RunSummary],
    problems: list[Problem],
    parent_of: Mapping[RunRef, RunRef],
    label_of: Callable[[RunSummary], str],
    *,
    rated: bool,
) -> list[Item]:
    groups: dict[str, list[RunSummary | Problem]] = {}
    children: Counter[str] = Counter()
    label, group = "", groups.setdefault("", [])
    for run in runs:
        is_child = run.shared.parent is not None and run.ref in parent_of
        if is_child and group:
            children[label] += 1  # a child stays in its parent's group
        elif (own_label := label_of(run)) != label:
            label, group = own_label, groups.setdefault(own_label, [])
            children[label] += is_child
        group.append(run)
    if not groups[""]:
        del groups[""]
    if problems:
        groups.setdefault("unreadable", []).extend(problems)
    order = list(groups)
    if "live" in groups:
        order.remove("live")
        order.insert(0, "live")
    items: list[Item] = []
    for name in order:
        tops = (run for run in groups[name] if isinstance(run, RunSummary) and run.parent is None)
        passes = OutcomeCounts.of(tops).passes if rated else ""
        items.append((f"{name} · {passes}" if passes else name, len(groups[name]) - children[name]))
        items.extend(groups[name])
    return items


def _by_cause(runs: list[RunSummary], problems: list[Problem], decisions: Sidecar | None) -> list[Item]:
    """The causes in the order of the triage, with its counts: each failed run, child or not, below its own cause.

    A copy is listed but not counted. Runs that did not fail come last.
    """
    from tracetui.analysis.cause import cause_digest
    from tracetui.analysis.triage import groups
    from tracetui.masking import excerpt

    causes = groups(runs, decisions)
    rows: dict[str | None, list[Item]] = {group.digest: [] for group in causes}
    others: list[Item] = []
    for run in runs:
        rows.get(cause_digest(run, decisions), others).append(run)
    items: list[Item] = []
    for group in causes:
        items += [(f"{group.id} {excerpt(group.title)}", len(group.runs)), *rows[group.digest]]
    if others:
        items += [("not failed", len(others)), *others]
    return [*items, ("unreadable", len(problems)), *problems] if problems else items


def _task_label(run: RunSummary, moment: _Moment) -> str:
    """The name of the task; of a derived one its first input and the name of the run."""
    key = run.task_key
    name = moment.context.task(run) if moment.context is not None else None if key is None else key.name
    if name is None:
        return "no task"
    if key is None or not key.derived or name != key.name:
        return name
    return f"{run.prompt or key.name} · {run.name} (derived)"


def _outcome_label(run: RunSummary, moment: _Moment) -> str:
    if run.is_wrong:
        return "wrong answer"
    if run.status is Status.ERROR:
        return "error"
    return "no outcome" if run.outcome is None else run.outcome.value


def _cause_label(run: RunSummary, moment: _Moment) -> str:
    from tracetui.analysis.cause import cause_digest

    return cause_digest(run) or ""


def _status_label(run: RunSummary, moment: _Moment) -> str:
    if run.status not in (Status.RUNNING, Status.UNKNOWN):
        return run.status.value
    return (Status.RUNNING if moment.state(run) in RUNNING_STATES else Status.UNKNOWN).value


UNDATED: Final = "undated"
"""Label of runs without a recorded start."""


def _day_label(run: RunSummary, moment: _Moment) -> str:
    """``live`` or the day of the run."""
    status = run.shared.status
    if (status is _RUNNING or status is _UNKNOWN) and moment.state(run) in RUNNING_STATES:
        return "live"
    start = start_of(run)
    return UNDATED if start is None else moment.day(start)


def day_label(now: float) -> Callable[[float], str]:
    """Label a time ``today`` (since 6:00), ``last night`` (18:00 to 6:00) or by date; local time."""
    local_now = datetime.fromtimestamp(now)
    morning = local_now.replace(hour=6, minute=0, second=0, microsecond=0)
    if local_now < morning:
        morning -= timedelta(days=1)
    today, night = morning.timestamp(), (morning - timedelta(hours=12)).timestamp()
    begin, end, date = 1.0, 0.0, ""  # the previous day: most runs share it, and formatting a date is slow

    def label(when: float) -> str:
        nonlocal begin, end, date
        if when >= today:
            return "today"
        if when >= night:
            return "last night"
        if not begin <= when < end:
            begin, end, date = _day(when)
        return date

    return label


def _day(when: float) -> tuple[float, float, str]:
    """The local day of `when`: begin, end (UTC seconds) and date."""
    try:
        midnight = datetime.fromtimestamp(when).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight.timestamp(), (midnight + timedelta(days=1)).timestamp(), midnight.strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return when, when, "time unknown"


_RUNNING: Final = Status.RUNNING
_UNKNOWN: Final = Status.UNKNOWN


def _descending(value: float | int | None) -> float:
    return inf if value is None else -value


_STATUS_ORDER: Final = {
    Status.ERROR: 0, Status.RUNNING: 1, Status.PAUSED: 2, Status.UNKNOWN: 3, Status.CANCELLED: 4, Status.OK: 5,
}  # fmt: skip
SORTS: Final[Mapping[str, Callable[[RunSummary], Any]]] = {
    "newest": lambda run: -run_time(run),
    "name": lambda run: (run.name.lower(), -run_time(run)),
    "outcome": lambda run: (
        _STATUS_ORDER[Status.ERROR] if run.failed else _STATUS_ORDER[run.status],
        run.is_wrong,
        run.outcome is not None,
        run.first_error.type or "" if run.first_error else "",
    ),
    "score": lambda run: (run.score is None, run.score or 0.0),
    "time": lambda run: _descending(run.duration_ms),
    "steps": lambda run: _descending(run.steps),
    "tokens": lambda run: _descending(total_tokens(run)),
    "cost": lambda run: _descending(spending.of_run(run).usd),
    "errors": lambda run: _descending(run.errors),
    "id": lambda run: run.id,
    "model": lambda run: (run.model is None, run.model or ""),
    "format": lambda run: run.ref.format,
}
"""Sort keys by name, in the order in which their key cycles; `Arrangement.reverse` reverses any of them."""
GROUPS: Final[Mapping[str, Group]] = {
    "day": Group(_day_label),
    "agent": Group(lambda run, _: run.agent or run.name, rated=True),
    "source": Group(lambda run, _: run.source or "no source"),
    "model": Group(lambda run, _: run.model or "no model"),
    "format": Group(lambda run, _: run.ref.format),
    "status": Group(_status_label),
    "task": Group(_task_label, rated=True),
    "outcome": Group(_outcome_label, rated=True),
    "cause": Group(_cause_label),
    "none": Group(lambda run, _: ""),
}
"""Group-by criteria by name, in the order in which their key cycles."""
RUN_CHOICES: Final = Choices(tuple(SORTS), tuple(GROUPS))
