"""Matrix of tasks and trials: pass rates, pass^k, tokens, cost, time and instability, from the summaries of runs.

Runs of one task are its trials. The trace names the task (`RunSummary.task`); where it does not, runs with the same
name and first input (`RunSummary.repeats`) are trials of a derived task. A fork, retry or replay without a task of its
own belongs to the task of its original. If that has none either, a run and those that inherit from it are a derived
task without rates (a family): their steps can be compared.

Forks, retries and replays inherit steps, so they are no independent trials: they are listed, but count in no rate and
no test. The same applies to a second copy of a run and to further parts of a split trace.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Final, NamedTuple

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
_RECORDED: Final = "recorded in the trace"
_DERIVED: Final = "inferred: same name and first input"
_FAMILY: Final = "inferred: one run, with its forks, retries and replays"
_DIGITS: Final = re.compile(r"(\d{1,18})")


class Result(StrEnum):
    """How a trial ended for the rates of its task."""

    PASSED = "passed"
    FAILED = "failed"
    """Its outcome is failed, or it ended with an error and has no outcome."""
    UNSCORED = "unscored"
    RUNNING = "running"
    """It has no outcome yet."""


def result_of(run: RunSummary) -> Result:
    """Return how a run ended for the rates of its task."""
    if run.rated is not None:
        return Result(run.rated.value)
    return Result.RUNNING if run.status in GOING_ON else Result.UNSCORED


class Trial(msgspec.Struct, frozen=True, gc=False):
    """A run as a trial of its task."""

    run: RunSummary
    result: Result
    excluded: str | None = None
    """Why it counts in no rate and no test: ``fork``, ``retry``, ``replay``, ``original``, ``copy`` or ``part``.

    None: it counts.
    """


class Group(NamedTuple):
    """A column group: trials of one agent with one model."""

    agent: str | None
    model: str | None


class Counts(msgspec.Struct, frozen=True, gc=False):
    """Numbers of trials. `excluded` trials are in no other number but `runs`."""

    runs: int = 0
    passed: int = 0
    failed: int = 0
    unscored: int = 0
    running: int = 0
    excluded: int = 0

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
        """pass^k by k, for k up to the number of scored trials (`tracetui.analysis.chance.pass_hat`)."""
        factors = ((self.passed - i) / (self.scored - i) if i < self.passed else 0.0 for i in range(self.scored))
        return dict(enumerate(accumulate(factors, float.__mul__), 1))

    @property
    def instability(self) -> float | None:
        """Share of the pairs of scored trials of which one passed and one failed; None with fewer than two."""
        pairs = self.scored * (self.scored - 1) // 2
        return self.passed * self.failed / pairs if pairs else None


class Spread(msgspec.Struct, frozen=True, gc=False):
    """A metric over the trials whose trace has it."""

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
    """Counts by column group, in the order of `Matrix.groups`."""
    spreads: dict[str, Spread]
    """By name of the metric (`METRICS`), over the trials that count and have ended; metrics in no trace are absent."""

    @property
    def source(self) -> str:
        """Where the identity of the task comes from, in words."""
        if self.key.derived and any(trial.run.ref.address == self.key.name for trial in self.trials):
            return _FAMILY
        return _DERIVED if self.key.derived else _RECORDED

    @property
    def counted(self) -> list[Trial]:
        """The trials that count in rates and tests."""
        return [trial for trial in self.trials if trial.excluded is None]


class Matrix(msgspec.Struct, frozen=True):
    """Tasks and their trials, the least stable task first."""

    tasks: tuple[Task, ...]
    rates: Rates
    groups: dict[Group, Rates]
    """Rates of each agent and model, in alphabetical order."""
    without_task: tuple[RunSummary, ...] = ()
    """Runs that belong to no task: the trace states neither a task nor an input."""


def matrix(runs: Iterable[RunSummary]) -> Matrix:
    """Arrange runs as tasks and trials. The result does not depend on the order of `runs`."""
    found = list(runs)
    keys = _keys(found)
    families = _families(found, keys)
    originals = (ref for ref, key in families.items() if key.name == ref.address)
    excluded = dict.fromkeys(originals, ORIGINAL) | _exclusions(found)
    by_task: dict[TaskKey, list[RunSummary]] = defaultdict(list)
    without_task: list[RunSummary] = []
    for run, key in zip(found, keys, strict=True):
        task = key or families.get(run.ref)
        (without_task if task is None else by_task[task]).append(run)
    tasks = sorted((_task(key, runs, excluded) for key, runs in by_task.items()), key=_least_stable)
    groups = sorted({group for task in tasks for group in task.groups}, key=_alphabetical)
    return Matrix(
        tuple(tasks),
        _rates([task.counts for task in tasks]),
        {group: _rates([task.groups[group] for task in tasks if group in task.groups]) for group in groups},
        tuple(sorted(without_task, key=_order)),
    )


def _keys(runs: Sequence[RunSummary]) -> list[TaskKey | None]:
    """The task of every run; without one of its own, that of the nearest original, which unlike in `Relations.task` may
    be that of a fork.
    """
    if not any(map(has_original, runs)):
        return [run.task_key for run in runs]
    relations, by_ref = Relations(runs), {run.ref: run for run in runs}

    def key_of(run: RunSummary) -> TaskKey | None:
        seen = {run.ref}
        while run.task is None and has_original(run):
            original = relations.original(run.ref)
            if original is None or original in seen:
                break
            seen.add(original)
            run = by_ref[original]
        return run.task_key

    return [key_of(run) for run in runs]


def _families(runs: Sequence[RunSummary], keys: Sequence[TaskKey | None]) -> dict[RunRef, TaskKey]:
    """The derived tasks of runs without one: an original, whose address is the key, and all that inherit from it."""
    without = {run.ref: run for run, key in zip(runs, keys, strict=True) if key is None}
    if not any(map(has_original, without.values())):
        return {}
    relations = Relations(runs)
    found: dict[RunRef, TaskKey] = {}
    for ref in without:
        root, seen = ref, {ref}
        while has_original(without[root]):
            original = relations.original(root)
            if original is None or original not in without:
                break
            if original in seen:  # they inherit from each other
                root = ref
                break
            seen.add(original)
            root = original
        if root != ref:
            found[ref] = found[root] = TaskKey(root.address, derived=True)
    return found


def _exclusions(runs: Sequence[RunSummary]) -> dict[RunRef, str]:
    """Why runs count in no rate and no test."""
    found = {
        run.ref: run.relation or "replay" for run in runs if has_original(run) and _inherits(run.relation or "replay")
    }
    return found | dict.fromkeys(uncounted_parts(runs), PART) | dict.fromkeys(copies_of(runs), COPY)


def _inherits(relation: str) -> bool:
    return relation in _INHERITING


def _task(key: TaskKey, runs: list[RunSummary], excluded: Mapping[RunRef, str]) -> Task:
    runs.sort(key=_order)
    trials = tuple(Trial(run, result_of(run), excluded.get(run.ref)) for run in runs)
    by_group: dict[Group, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_group[Group(trial.run.agent, trial.run.model)].append(trial)
    groups = {group: _counts(by_group[group]) for group in sorted(by_group, key=_alphabetical)}
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
    )


def _spreads(trials: Sequence[Trial]) -> dict[str, Spread]:
    ended = [trial.run for trial in trials if trial.excluded is None and trial.result is not Result.RUNNING]
    found: dict[str, Spread] = {}
    for name, measure in METRICS.items():
        values = [value for run in ended if (value := measure(run)) is not None and abs(value) < _LARGEST]
        if values:
            found[name] = Spread(len(values), sum(values), min(values), max(values))
    return found


def _rates(counts: Sequence[Counts]) -> Rates:
    sums: dict[int, float] = defaultdict(float)
    tasks: dict[int, int] = defaultdict(int)
    for one in counts:
        for k, value in one.pass_hat.items():
            sums[k] += value
            tasks[k] += 1
    total = Counts(*(sum(column) for column in zip(*map(msgspec.structs.astuple, counts), strict=True)))
    order = sorted(tasks)
    return Rates(total, {k: sums[k] / tasks[k] for k in order}, {k: tasks[k] for k in order})


# ---- orders


def _least_stable(task: Task) -> tuple[object, ...]:
    counts = task.counts
    unstable = counts.instability
    rate = counts.pass_rate
    return unstable is None, -(unstable or 0.0), rate is None, rate or 0.0, natural(task.name), task.key


def _alphabetical(group: Group) -> tuple[str, str]:
    return group.agent or "", group.model or ""


def _order(run: RunSummary) -> tuple[object, ...]:
    """By trial name, then by start; runs without one last."""
    ref = run.ref
    start = run.started_at
    return run.trial is None, natural(run.trial or ""), start is None, start or 0.0, ref.path, ref.key or ""


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Sort key of a name in which numbers are compared as numbers: ``trial 9`` before ``trial 10``."""
    pieces = _DIGITS.split(text)
    return tuple((word, int(number)) for word, number in zip(pieces[::2], [*pieces[1::2], "0"], strict=True))
