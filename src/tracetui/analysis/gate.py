"""Gate: did a candidate set of runs regress against a base set of runs of the same tasks?

Tasks of both sets are paired by their identity. The verdict is about these tasks and depends on their pass rates alone;
tokens, cost, time and steps are tested and reported too. `gate_statistics` has the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from math import fsum
from typing import Final

import msgspec

from tracetui.analysis.contrast import ALPHA, Interval, holm
from tracetui.analysis.gate_statistics import (
    NONZERO,
    TaskCounts,
    Values,
    agree,
    change_interval,
    fewest_trials,
    lower_beyond_chance,
    mean,
    mean_change,
    metric_test,
    shuffle_test,
    smallest_p,
    trials_per_task,
    trials_to_exclude,
)
from tracetui.analysis.run_tree import run_tree
from tracetui.analysis.tasks import METRICS, Matrix, Result, Task, Trial, natural
from tracetui.errors import UsageError
from tracetui.model import Run, RunRef, Span, TaskKey
from tracetui.text import quantity

MIN_EFFECT: Final = 0.10
"""The smallest loss of pass rate that matters: 10 points."""
FALSE_DISCOVERIES: Final = 0.05
"""Share of the tasks named as regressed (or fixed) that on average are not."""
MOST_UNGRADED: Final = Fraction(1, 3)
"""Share of ungraded trials in a set above which the graded ones say too little about it."""
_COMPARED: Final = 8
"""Trials of each set in which the first divergence of a task is sought."""


class Verdict(StrEnum):
    """The conclusion of a gate."""

    REGRESSION = "regression"
    NO_REGRESSION = "no_regression"
    INCONCLUSIVE = "inconclusive"


class Pair(msgspec.Struct, frozen=True):
    """A task with scored trials in both sets."""

    base: Task
    candidate: Task

    @property
    def name(self) -> str:
        """Name of the task, not sanitized."""
        return self.base.name

    @property
    def counts(self) -> TaskCounts:
        """Scored and passed trials of both sets."""
        base, candidate = self.base.counts, self.candidate.counts
        return TaskCounts(base.passed, base.scored, candidate.passed, candidate.scored)

    @property
    def difference(self) -> Fraction:
        """Pass rate of the candidate less that of the base."""
        return self.counts.change


class MetricTest(msgspec.Struct, frozen=True):
    """A metric over the paired tasks that have it in both sets: means over tasks of the means over trials."""

    tasks: int
    base: float
    candidate: float
    interval: Interval
    """Of the mean difference, candidate less base."""
    p: float
    adjusted_p: float
    """With Holm's correction over the metrics."""

    @property
    def difference(self) -> float:
        """Candidate less base."""
        return self.candidate - self.base


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a gate. Rates are shares from 0 to 1: means over the paired tasks."""

    alpha: float
    min_effect: float
    pairs: tuple[Pair, ...]
    """In the order of their names."""
    base_rate: float
    candidate_rate: float
    interval: Interval
    """Of the difference of the rates, within -1 and 1; it contains 0 if and only if p is at least `alpha`."""
    p: float
    """Of the two-sided test that shuffles the results of each task over its trials."""
    verdict: Verdict
    reason: str
    trials_per_task: int | None = None
    """Trials of each task, in both sets, that would settle an inconclusive gate with an average chance of 80 %.

    None beyond `MOST_TRIALS`, and for other verdicts.
    """
    smallest_p: float
    """The smallest p that any results of the candidate could have given."""
    regressed: tuple[Pair, ...]
    """Pairs with a loss beyond chance (false discovery rate `FALSE_DISCOVERIES`), the greatest first."""
    lower: tuple[Pair, ...]
    """Other pairs with a lower pass rate in the candidate, which could be chance; the greatest loss first."""
    fixed: tuple[Pair, ...]
    """Pairs with a gain beyond chance, the greatest first."""
    higher: tuple[Pair, ...]
    """Other pairs with a higher pass rate in the candidate, the greatest gain first."""
    metrics: Mapping[str, MetricTest]
    """By name (`tracetui.analysis.tasks.METRICS`); metrics that no pair has are absent."""
    only_base: tuple[Task, ...] = ()
    """Tasks without a counterpart in the other set."""
    only_candidate: tuple[Task, ...] = ()
    unscored: tuple[tuple[Task, Task], ...] = ()
    """Tasks of both sets that have no scored trial in one of them."""
    base_ungraded: int = 0
    """Trials that the grader did not grade, in all tasks of the set: they are left out."""
    candidate_ungraded: int = 0
    lacks_grades: bool = False
    """Whether so many trials of a set are ungraded that there is no verdict."""

    @property
    def difference(self) -> float:
        """Pass rate of the candidate less that of the base."""
        return self.candidate_rate - self.base_rate

    @property
    def trials_needed(self) -> int | None:
        """`trials_per_task` over all paired tasks: trials of each set."""
        return None if self.trials_per_task is None else self.trials_per_task * len(self.pairs)

    @property
    def changes(self) -> list[tuple[str, tuple[Pair, ...]]]:
        """The kinds of changed tasks that there are, each with its word."""
        kinds = (("regressed", self.regressed), ("lower", self.lower), ("fixed", self.fixed), ("higher", self.higher))
        return [(word, pairs) for word, pairs in kinds if pairs]


def gate(base: Matrix, candidate: Matrix, *, alpha: float = ALPHA, min_effect: float = MIN_EFFECT) -> Gate:
    """Compare two sets of runs of the same tasks.

    The verdict is `regression` if p is below `alpha` and the candidate passes less; else `no_regression` if the lower
    end of the interval is above ``-min_effect`` and both sets have enough trials to exclude such a loss
    (`trials_to_exclude`); else `inconclusive`; also where over a third of the trials of a set are ungraded.

    Raises `UsageError` if no task has scored trials in both sets, and for an `alpha` or `min_effect` outside 0 to 1.
    """
    if not (0 < alpha < 1 and 0 < min_effect <= 1):
        raise UsageError("alpha must be between 0 and 1, the smallest effect between 0 and 100 points")
    sides = [{task.key: task for task in matrix.tasks} for matrix in (base, candidate)]
    left, right = sides
    both = [(left[key], right[key]) for key in _ordered(left) if key in right]
    scored = [(a, b) for a, b in both if a.counts.scored and b.counts.scored]
    if not scored:
        raise UsageError(_nothing_to_pair(len(both), len(left), len(right)))
    pairs = tuple(Pair(a, b) for a, b in scored)
    counts = [pair.counts for pair in pairs]
    p = shuffle_test(counts)
    interval = agree(change_interval(counts, alpha), p, mean_change(counts), alpha)
    rates = [sum((_rate(task) for task in side), Fraction(0)) / len(pairs) for side in zip(*scored, strict=True)]
    verdict, reason = judge(counts, p, interval, alpha, min_effect)
    if too_few := _too_few_graded(base, candidate):
        verdict, reason = Verdict.INCONCLUSIVE, too_few
    swapped = [count.swapped for count in counts]
    regressed = _by_change(pairs[i] for i in lower_beyond_chance(counts, FALSE_DISCOVERIES))
    fixed = _by_change(pairs[i] for i in lower_beyond_chance(swapped, FALSE_DISCOVERIES))[::-1]
    needed = None
    if verdict is Verdict.INCONCLUSIVE and not too_few:
        needed = trials_per_task(counts, alpha=alpha, min_effect=min_effect)
    return Gate(
        alpha=alpha,
        min_effect=min_effect,
        pairs=pairs,
        base_rate=float(rates[0]),
        candidate_rate=float(rates[1]),
        interval=interval,
        p=p,
        verdict=verdict,
        reason=reason,
        trials_per_task=needed,
        smallest_p=smallest_p(counts),
        regressed=regressed,
        lower=_by_change(pair for pair in pairs if pair.difference < 0 and pair not in regressed),
        fixed=fixed,
        higher=_by_change(pair for pair in pairs if pair.difference > 0 and pair not in fixed)[::-1],
        metrics=_metrics(both, alpha),
        only_base=tuple(left[key] for key in _ordered(left) if key not in right),
        only_candidate=tuple(right[key] for key in _ordered(right) if key not in left),
        unscored=tuple(pair for pair in both if pair not in scored),
        base_ungraded=base.rates.counts.ungraded,
        candidate_ungraded=candidate.rates.counts.ungraded,
        lacks_grades=bool(too_few),
    )


def _too_few_graded(base: Matrix, candidate: Matrix) -> str:
    """Why so many ungraded trials allow no verdict; empty otherwise."""
    for name, counts in (("base", base.rates.counts), ("candidate", candidate.rates.counts)):
        trials = counts.scored + counts.ungraded
        if counts.ungraded > MOST_UNGRADED * trials:
            return f"{counts.ungraded} of {trials} trials of the {name} were not graded, more than a third"
    return ""


def _ordered(tasks: Mapping[TaskKey, Task]) -> list[TaskKey]:
    return sorted(tasks, key=lambda key: (natural(tasks[key].name), key))


def _rate(task: Task) -> Fraction:
    return Fraction(task.counts.passed, task.counts.scored)


def _nothing_to_pair(both: int, base: int, candidate: int) -> str:
    if both:
        return f"no task to compare: none of {quantity(both, 'task')} in both sets has scored runs in both"
    sizes = f"base: {quantity(base, 'task')}, candidate: {quantity(candidate, 'task')}"
    return f"no task to compare: none is in both sets ({sizes})"


def _by_change(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(sorted(pairs, key=lambda pair: pair.difference))


def judge(
    counts: Sequence[TaskCounts], p: float, interval: Interval, alpha: float, min_effect: float
) -> tuple[Verdict, str]:
    """Return the verdict on the pairs with these counts, as `gate` states it, and its reason."""
    change = mean_change(counts)
    if p < alpha and change < 0:
        return Verdict.REGRESSION, f"pass rate fell by {_points(-change)} points ({p_text(p)})"
    fewest, needed = fewest_trials(counts), trials_to_exclude(min_effect, alpha)
    if fewest < needed:
        trials = f"{quantity(fewest, 'trial')} can't exclude a loss of {_points(min_effect)} points"
        return Verdict.INCONCLUSIVE, f"{trials}; at least {needed} in each set are needed"
    if interval.low > -min_effect:
        return (
            Verdict.NO_REGRESSION,
            f"a loss of {_points(min_effect)} points is outside the interval ({ends(interval)} points)",
        )
    return Verdict.INCONCLUSIVE, f"a loss of {_points(-interval.low)} points is possible ({p_text(p)})"


def ends(interval: Interval) -> str:
    """The interval in percentage points, ``-3.5 to +10``; an end just beside 0 is ``below 0`` or ``above 0``."""
    low = "above 0" if 0 < interval.low <= NONZERO else _points(interval.low, sign=True)
    high = "below 0" if -NONZERO <= interval.high < 0 else _points(interval.high, sign=True)
    return f"{low} to {high}"


def p_text(p: float) -> str:
    """``p = 0.039``; ``p < 1e-9``, beyond which it isn't computed exactly."""
    return "p < 1e-9" if p < 1e-9 else f"p = {p:.2g}"


def _points(share: float, *, sign: bool = False) -> str:
    """Percentage points: ``10``, ``-3.5``; with `sign` ``+10``."""
    rounded = round(100 * share, 1) + 0.0
    return f"{rounded:+g}" if sign and rounded else f"{rounded:g}"


def _metrics(both: Sequence[tuple[Task, Task]], alpha: float) -> dict[str, MetricTest]:
    tests: dict[str, MetricTest] = {}
    for name in METRICS:
        sides = [Values(base.values(name), candidate.values(name)) for base, candidate in both]
        tasks = [values for values in sides if values.base and values.candidate]
        if tasks:
            change = metric_test(tasks, alpha)
            before, after = (fsum(map(mean, column)) / len(tasks) for column in zip(*tasks, strict=True))
            tests[name] = MetricTest(len(tasks), before, after, change.interval, change.p, change.p)
    adjusted = holm([test.p for test in tests.values()])
    return {
        name: test if p is None else msgspec.structs.replace(test, adjusted_p=p)
        for (name, test), p in zip(tests.items(), adjusted, strict=True)
    }


# ---- the first divergence of a pair


class Divergence(msgspec.Struct, frozen=True):
    """Where a trial of the base and one of the candidate first do something different."""

    base: RunRef
    candidate: RunRef
    step: int
    """Number of the first different step, from 1."""
    base_span: Span | None
    """The span of that step; None where the run ends before."""
    candidate_span: Span | None


def first_divergence(pair: Pair, read: Callable[[RunRef], Run | None]) -> Divergence | None:
    """Compare the steps of a usual trial of the base with a usual one of the candidate that differs from it.

    Where the rates differ, the better set has trials that passed and the worse one trials that failed. None if all have
    the same steps, and if none of a set is readable.
    """
    worse = pair.difference < 0
    base, candidate = _with_result(pair.base, passed=worse), _with_result(pair.candidate, passed=not worse)
    tree = run_tree([*base, *candidate], read)
    fork = tree.first_fork
    if fork is None:
        return None
    numbers = {ref: i for i, ref in enumerate(trial.run.ref for trial in tree.trials)}
    of_base = {numbers[trial.run.ref] for trial in base if trial.run.ref in numbers}
    branches = [set(side.branch.runs) for side in fork.sides]
    sides = [(branch & of_base, branch - of_base) for branch in branches]
    choices = [(left, right) for i, (left, _) in enumerate(sides) for j, (_, right) in enumerate(sides) if i != j]
    left, right = max(choices, key=lambda choice: (bool(choice[0] and choice[1]), len(choice[0]) + len(choice[1])))
    if not (left and right):
        return None
    chosen = min(left), min(right)
    spans: list[Span | None] = []
    for i in chosen:
        steps = tree.steps(i)
        spans.append(tree.runs[i].spans[steps[fork.step - 1]] if len(steps) >= fork.step else None)
    from_base, from_candidate = (tree.trials[i].run.ref for i in chosen)
    return Divergence(from_base, from_candidate, fork.step, spans[0], spans[1])


def _with_result(task: Task, *, passed: bool) -> list[Trial]:
    """The first trials with that result, else the first ones that count."""
    wanted = Result.PASSED if passed else Result.FAILED
    matching = [trial for trial in task.counted if trial.result is wanted]
    return (matching or task.counted)[:_COMPARED]
