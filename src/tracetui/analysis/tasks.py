"""Matrix of tasks and trials: pass rates, pass^k, tokens, cost, time and instability, from the summaries of runs.

Runs of one task are its trials. The trace names the task (`RunSummary.task`); where it does not, runs with the same
name and first input (`RunSummary.repeats`) are trials of a derived task. A fork, retry or replay without a task of its
own belongs to the task of its original (`Relations.task`); if no trace names one, they and their original are a derived
task without rates.

Forks, retries and replays inherit steps, so they are no independent trials: they are listed, but count in no rate and
no test. The same applies to a second copy of a run and to further parts of a split trace.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.model import RunRef, RunSummary, TaskKey
from tracetui.model.run import GOING_ON
from tracetui.store.relations import COPY, Relations, copies_of, has_original, uncounted_parts

PART: Final = "part"
"""Why a run is excluded: another part of the same trace counts for it."""
ORIGINAL: Final = "original"
"""Why a run is excluded: it has no task, only runs that inherit steps from it."""
_INHERITING: Final = frozenset({"fork", "retry", "replay"})
_LARGEST: Final = 1e18
"""Metrics from here on, and those that are no numbers, are errors of the trace and count as not stated."""
_MOST_DIRECTORIES: Final = 8
_RECORDED: Final = "recorded in the trace"
_DERIVED: Final = "inferred: same name and first input"
_RELATED: Final = "inferred: replays, forks and retries of one run"
_DIGITS: Final = re.compile(r"(\d{1,18})")


class Result(StrEnum):
    """How a trial ended for the rates of its task."""

    PASSED = "passed"
    FAILED = "failed"
    """Its outcome is failed, or it ended with an error and has no outcome."""
    UNSCORED = "unscored"
    RUNNING = "running"
    """It has no outcome yet."""
    UNGRADED = "ungraded"
    """The grader did not grade it."""


def result_of(run: RunSummary) -> Result:
    """Return how a run ended for the rates of its task."""
    if run.rated is not None:
        return Result(run.rated.value)
    if run.is_ungraded:
        return Result.UNGRADED
    return Result.RUNNING if run.status in GOING_ON else Result.UNSCORED


class Group(NamedTuple):
    """A column group: trials of one agent with one model; of several directories, in one of them."""

    agent: str | None
    model: str | None
    directory: str | None = None
    """As given; None if the matrix doesn't compare directories."""


class Trial(msgspec.Struct, frozen=True, gc=False):
    """A run as a trial of its task."""

    run: RunSummary
    result: Result
    excluded: str | None = None
    """Why it counts in no rate and no test: ``fork``, ``retry``, ``replay``, ``original``, ``copy`` or ``part``.

    None: it counts.
    """
    group: Group = Group(None, None)


def as_trials(runs: Iterable[RunSummary]) -> tuple[Trial, ...]:
    """Return runs as trials of one task, in their order."""
    listed = list(runs)
    excluded = _exclusions(listed)
    return tuple(Trial(run, result_of(run), excluded.get(run.ref)) for run in listed)


class Counts(msgspec.Struct, frozen=True, gc=False):
    """Numbers of trials. `excluded` trials are in no other number but `runs`."""

    runs: int = 0
    passed: int = 0
    failed: int = 0
    unscored: int = 0
    running: int = 0
    excluded: int = 0
    ungraded: int = 0

    @property
    def scored(self) -> int:
        """Trials that passed or failed."""
        return self.passed + self.failed

    @property
    def pass_rate(self) -> float | None:
        """Share of the scored trials that passed; None without any."""
        return self.passed / self.scored if self.scored else None

    @property
    def pass_hat(self) -> dict[int, float]:
        """pass^k by k, for k up to the number of scored trials: ``C(passed, k) / C(scored, k)``, the chance that `k`
        trials drawn without replacement all pass.
        """
        factors = ((self.passed - i) / (self.scored - i) if i < self.passed else 0.0 for i in range(self.scored))
        return dict(enumerate(accumulate(factors, float.__mul__), 1))


class Spread(msgspec.Struct, frozen=True, gc=False):
    """A metric over the trials that recorded it."""

    trials: int
    total: float
    low: float
    high: float

    @property
    def mean(self) -> float:
        """Per trial."""
        return self.total / self.trials


class Rates(msgspec.Struct, frozen=True):
    """Rates over several tasks. Only tasks with at least k scored trials are in the mean of pass^k."""

    counts: Counts
    pass_hat: dict[int, float]
    """Mean of pass^k over the tasks, by k."""
    pass_hat_tasks: dict[int, int]
    """Number of those tasks, by k."""


METRICS: Final[Mapping[str, Callable[[RunSummary], float | None]]] = {
    "tokens": lambda run: None if run.usage is None else run.usage.all_tokens,
    "cost_usd": lambda run: None if run.usage is None else run.usage.cost_usd,
    "duration_ms": lambda run: run.duration_ms,
    "steps": lambda run: run.steps,
}
"""Metrics of a run by name; None where the trace does not state one."""


class Task(msgspec.Struct, frozen=True):
    """A row of the matrix: a task and its trials, in the order of their trial names, else of their start."""

    key: TaskKey
    name: str
    """As in the trace; of a derived task the first prompt, else the name of its runs. Not sanitized."""
    trials: tuple[Trial, ...]
    counts: Counts
    groups: dict[Group, Counts]
    """Counts by column group; groups without a trial of the task are absent."""
    spreads: dict[str, Spread]
    """By name of the metric (`METRICS`), over the trials that count and have ended; metrics in no trace are absent."""

    @property
    def source(self) -> str:
        """Where the identity of the task comes from, in words."""
        if not self.key.derived:
            return _RECORDED
        return _DERIVED if any(trial.run.task_key == self.key for trial in self.trials) else _RELATED

    @property
    def instability(self) -> float | None:
        """Share of the pairs of scored trials of one column group of which one passed and one failed; None without one.

        Trials of different agents or models are no pairs: their difference is no instability.
        """
        groups = self.groups.values()
        pairs = sum(counts.scored * (counts.scored - 1) // 2 for counts in groups)
        return sum(counts.passed * counts.failed for counts in groups) / pairs if pairs else None

    @property
    def counted(self) -> list[Trial]:
        """The trials that count in rates and tests."""
        return [trial for trial in self.trials if trial.excluded is None]

    def values(self, metric: str) -> list[float]:
        """The values of a metric (`METRICS`) of the trials that count, have ended and recorded it."""
        return _values(self.trials, metric)


class Matrix(msgspec.Struct, frozen=True):
    """Tasks and their trials, the least stable task first."""

    tasks: tuple[Task, ...]
    rates: Rates
    groups: dict[Group, Rates]
    """Rates of each column group: by directory in the given order, then by agent and model in alphabetical order."""
    without_task: tuple[RunSummary, ...] = ()
    """Runs that belong to no task: the trace states neither a task nor an input."""


def matrix(
    runs: Iterable[RunSummary], *, among: Iterable[RunSummary] | None = None, directories: Sequence[str] = ()
) -> Matrix:
    """Arrange runs as tasks and trials. The result does not depend on the order of `runs`.

    `among`: all runs, if `runs` are a selection. `directories`: column groups, of
    `compared_directories`; a run belongs to the innermost that contains its file.
    """
    listed = list(runs)
    keys = _keys(listed, listed if among is None else among)
    excluded = _originals(listed, keys) | _exclusions(listed)
    by_task: dict[TaskKey, list[RunSummary]] = defaultdict(list)
    without_task: list[RunSummary] = []
    for run, key in zip(listed, keys, strict=True):
        (without_task if key is None else by_task[key]).append(run)
    group_of = _grouping(directories)
    tasks = sorted((_task(key, runs, excluded, group_of) for key, runs in by_task.items()), key=_least_stable)
    places = {directory: i for i, directory in enumerate(directories)}
    groups = sorted({group for task in tasks for group in task.groups}, key=lambda group: _column_order(group, places))
    by_group: dict[Group, list[Counts]] = {group: [] for group in groups}
    for task in tasks:
        for group, counts in task.groups.items():
            by_group[group].append(counts)
    return Matrix(
        tuple(tasks),
        _rates([task.counts for task in tasks]),
        {group: _rates(counts) for group, counts in by_group.items()},
        tuple(sorted(without_task, key=_order)),
    )


def compared_directories(paths: Sequence[str]) -> Sequence[str]:
    """The paths to compare side by side: 2 to 8 of them; more are no directories of repeated runs, but runs."""
    return paths if 2 <= len(paths) <= _MOST_DIRECTORIES else ()


def _keys(runs: Sequence[RunSummary], among: Iterable[RunSummary]) -> list[TaskKey | None]:
    """The task of every run; without one, the original run `among` these instead."""
    if not any(map(has_original, runs)):
        return [run.task_key for run in runs]
    related = Relations(among)

    def key_of(run: RunSummary) -> TaskKey | None:
        key = related.task(run)
        if key is not None:
            return key
        root = related.root(run.ref)
        return None if root is None else TaskKey(root.address, derived=True)

    return list(map(key_of, runs))


def _originals(runs: Sequence[RunSummary], keys: Sequence[TaskKey | None]) -> dict[RunRef, str]:
    """The runs that stand for the task of those that inherit from them."""
    pairs = zip(runs, keys, strict=True)
    return {run.ref: ORIGINAL for run, key in pairs if key is not None and key.derived and key.name == run.ref.address}


def _grouping(directories: Sequence[str]) -> Callable[[RunSummary], Group]:
    """The function that returns the column group of a run."""
    if not directories:
        return lambda run: Group(run.agent, run.model)
    innermost = sorted(directories, key=len, reverse=True)  # of a path in another one

    def group_of(run: RunSummary) -> Group:
        return Group(
            run.agent,
            run.model,
            next((directory for directory in innermost if _contains(directory, run.ref.path)), None),
        )

    return group_of


def _contains(directory: str, path: str) -> bool:
    start = directory.rstrip("/")
    return path == directory or path.startswith(f"{start}/") or start == "."


def _exclusions(runs: Sequence[RunSummary]) -> dict[RunRef, str]:
    """Why runs count in no rate and no test."""
    inherited = {
        run.ref: run.relation or "replay"
        for run in runs
        if has_original(run) and (run.relation or "replay") in _INHERITING
    }
    return inherited | dict.fromkeys(uncounted_parts(runs), PART) | dict.fromkeys(copies_of(runs), COPY)


def _task(
    key: TaskKey,
    runs: list[RunSummary],
    excluded: Mapping[RunRef, str],
    group_of: Callable[[RunSummary], Group],
) -> Task:
    runs.sort(key=_order)
    trials = tuple(Trial(run, result_of(run), excluded.get(run.ref), group_of(run)) for run in runs)
    by_group: dict[Group, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_group[trial.group].append(trial)
    groups = {group: _counts(trials) for group, trials in by_group.items()}
    return Task(
        key=key,
        name=(runs[0].prompt or runs[0].name) if key.derived else key.name,
        trials=trials,
        counts=_counts(trials) if len(groups) > 1 else next(iter(groups.values())),
        groups=groups,
        spreads=_spreads(trials),
    )


def _counts(trials: Sequence[Trial]) -> Counts:
    results = Counter(trial.result for trial in trials if trial.excluded is None)
    return Counts(
        len(trials),
        results[Result.PASSED],
        results[Result.FAILED],
        results[Result.UNSCORED],
        results[Result.RUNNING],
        len(trials) - results.total(),
        results[Result.UNGRADED],
    )


def _spreads(trials: Sequence[Trial]) -> dict[str, Spread]:
    spreads: dict[str, Spread] = {}
    for name in METRICS:
        values = _values(trials, name)
        if values:
            spreads[name] = Spread(len(values), sum(values), min(values), max(values))
    return spreads


def _values(trials: Iterable[Trial], metric: str) -> list[float]:
    measure = METRICS[metric]
    ended = (trial.run for trial in trials if trial.excluded is None and trial.result is not Result.RUNNING)
    return [value for run in ended if (value := measure(run)) is not None and abs(value) < _LARGEST]


def _rates(counts: Sequence[Counts]) -> Rates:
    sums: dict[int, float] = defaultdict(float)
    tasks: dict[int, int] = defaultdict(int)
    for group_counts in counts:
        for k, value in group_counts.pass_hat.items():
            sums[k] += value
            tasks[k] += 1
    total = Counts(*(sum(column) for column in zip(*map(msgspec.structs.astuple, counts), strict=True)))
    order = sorted(tasks)
    return Rates(total, {k: sums[k] / tasks[k] for k in order}, {k: tasks[k] for k in order})


# ---- orders


def _least_stable(task: Task) -> tuple[object, ...]:
    counts = task.counts
    unstable = task.instability
    rate = counts.pass_rate
    return unstable is None, -(unstable or 0.0), rate is None, rate or 0.0, natural(task.name), task.key


def _column_order(group: Group, places: Mapping[str, int]) -> tuple[int, str, str]:
    return places.get(group.directory or "", len(places)), group.agent or "", group.model or ""


def _mean(metric: str) -> Callable[[Task], float | None]:
    return lambda task: task.spreads[metric].mean if metric in task.spreads else None


_SORTS: Final[Mapping[str, tuple[Callable[[Task], Any], bool]]] = {
    "instability": (lambda task: task.instability, True),
    "failures": (lambda task: task.counts.failed if task.counts.scored else None, True),
    "cost": (_mean("cost_usd"), True),
    "tokens": (_mean("tokens"), True),
    "time": (_mean("duration_ms"), True),
    "name": (lambda task: natural(task.name), False),
}
"""By name, the value to sort by and whether the largest comes first."""
SORTS: Final = tuple(_SORTS)
"""Names of the orders of tasks; the first is that of `Matrix.tasks`."""


def sortable(tasks: Iterable[Task]) -> tuple[str, ...]:
    """The orders for which at least one of the tasks has a value."""
    tasks = list(tasks)
    return tuple(name for name, (value, _) in _SORTS.items() if any(value(task) is not None for task in tasks))


def arrange(tasks: Sequence[Task], by: str, *, reverse: bool = False) -> list[Task]:
    """Sort the tasks of a matrix by one of `SORTS`. Tasks without a value come last, either way."""
    value, largest_first = _SORTS[by]
    values = [(value(task), task) for task in tasks]
    ranked = [pair for pair in values if pair[0] is not None]
    ranked.sort(key=itemgetter(0), reverse=largest_first is not reverse)
    return [task for _, task in ranked] + [task for rank, task in values if rank is None]


def _order(run: RunSummary) -> tuple[object, ...]:
    """By trial name, then by start; runs without one last."""
    ref = run.ref
    start = run.started_at
    return run.trial is None, natural(run.trial or ""), start is None, start or 0.0, ref.path, ref.key or ""


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Sort key of a name in which numbers are compared as numbers: ``trial 9`` before ``trial 10``."""
    pieces = _DIGITS.split(text)
    return tuple((word, int(number)) for word, number in zip(pieces[::2], [*pieces[1::2], "0"], strict=True))
