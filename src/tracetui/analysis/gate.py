"""Gate: did a candidate set of runs regress against a base set of runs of the same tasks?

Tasks of both sets are paired by their identity. The verdict depends on the pass rates of the pairs alone; tokens, cost,
time and steps are tested and reported too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from math import ceil, fsum
from statistics import NormalDist
from typing import Final

import msgspec

from tracetui.analysis.contrast import (
    ALPHA,
    Interval,
    holm,
    sign_flip_interval,
    sign_flip_test,
    smallest_sign_flip_p,
)
from tracetui.analysis.run_tree import run_tree
from tracetui.analysis.tasks import METRICS, Matrix, Result, Task, Trial, natural
from tracetui.errors import UsageError
from tracetui.model import Run, RunRef, Span, TaskKey

MIN_EFFECT: Final = 0.10
"""The smallest loss of pass rate that matters: 10 points."""
MOST_UNGRADED: Final = Fraction(1, 3)
"""Share of ungraded trials in a set above which the graded ones say too little about it."""
_POWER: Final = 0.8
"""Chance that the number of trials that the gate asks for settles the question."""
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
    def difference(self) -> Fraction:
        """Pass rate of the candidate less that of the base."""
        base, candidate = self.base.counts, self.candidate.counts
        return Fraction(candidate.passed, candidate.scored) - Fraction(base.passed, base.scored)


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
    """Of the difference of the rates, within -1 and 1, by inversion of the sign-flip test."""
    p: float
    """Of the two-sided sign-flip permutation test over the pairs."""
    verdict: Verdict
    reason: str
    trials_needed: int | None = None
    """Estimated trials of each set, over all tasks, that would settle an inconclusive gate with a chance of 80 %."""
    smallest_loss: float | None
    """The smallest loss that could have given a p below `alpha`, see `smallest_loss`."""
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

    @property
    def difference(self) -> float:
        """Pass rate of the candidate less that of the base."""
        return self.candidate_rate - self.base_rate

    @property
    def regressed(self) -> list[Pair]:
        """Pairs with a lower pass rate in the candidate, the greatest loss first."""
        return sorted((pair for pair in self.pairs if pair.difference < 0), key=lambda pair: pair.difference)

    @property
    def fixed(self) -> list[Pair]:
        """Pairs with a higher pass rate in the candidate, the greatest gain first."""
        return sorted((pair for pair in self.pairs if pair.difference > 0), key=lambda pair: -pair.difference)


def gate(base: Matrix, candidate: Matrix, *, alpha: float = ALPHA, min_effect: float = MIN_EFFECT) -> Gate:
    """Compare two sets of runs of the same tasks.

    The verdict is `regression` if p is below `alpha` and the candidate passes less; else `no_regression` if the
    lower end of the interval is above ``-min_effect`` and these pairs could have given a p below `alpha`
    (`smallest_p`); else `inconclusive`; also where over a third of the trials of a set are ungraded. Raises
    `UsageError` if no task has scored trials in both sets, and for an `alpha` or `min_effect` outside 0 to 1.
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
    differences = [pair.difference for pair in pairs]
    p = sign_flip_test(differences)
    assert p is not None
    low, high = sign_flip_interval(differences, alpha)
    interval = Interval(max(low, -1.0), min(high, 1.0))
    rates = [sum((_rate(task) for task in side), Fraction(0)) / len(pairs) for side in zip(*scored, strict=True)]
    verdict, reason = _judge(pairs, p, interval, alpha, min_effect)
    if too_few := _too_few_graded(base, candidate):
        verdict, reason = Verdict.INCONCLUSIVE, too_few
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
        trials_needed=_trials_needed(pairs, alpha, min_effect) if verdict is Verdict.INCONCLUSIVE else None,
        smallest_loss=smallest_loss(pairs, alpha),
        metrics=_metrics(both, alpha),
        only_base=tuple(left[key] for key in _ordered(left) if key not in right),
        only_candidate=tuple(right[key] for key in _ordered(right) if key not in left),
        unscored=tuple(one for one in both if one not in scored),
        base_ungraded=base.rates.counts.ungraded,
        candidate_ungraded=candidate.rates.counts.ungraded,
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
        return f"no task to compare: none of {_tasks(both)} in both sets has scored runs in both"
    return f"no task to compare: none is in both sets (base: {_tasks(base)}, candidate: {_tasks(candidate)})"


def _tasks(number: int) -> str:
    return f"{number} task{'' if number == 1 else 's'}"


def smallest_p(pairs: Sequence[Pair]) -> float:
    """Return the smallest p that any results of the candidate could have given, with this base.

    It is that of the most tasks that can all change in one direction: a task that the base never passes can only
    improve, one that it always passes can only get worse.
    """
    can_lose = sum(pair.base.counts.passed > 0 for pair in pairs)
    can_gain = sum(pair.base.counts.failed > 0 for pair in pairs)
    return smallest_sign_flip_p(max(can_lose, can_gain))


def smallest_loss(pairs: Sequence[Pair], alpha: float) -> float | None:
    """Return the smallest loss of pass rate that gives a p below `alpha`, with the results of the base as they are.

    As many tasks as the test needs fail one trial more, the others don't change. None if the base passes too few tasks.
    """
    needed = 1
    while smallest_sign_flip_p(needed) >= alpha:
        needed += 1
    losses = sorted(_smallest_loss(pair) for pair in pairs if pair.base.counts.passed)
    return float(sum(losses[:needed], Fraction(0)) / len(pairs)) if len(losses) >= needed else None


def _smallest_loss(pair: Pair) -> Fraction:
    rate, trials = _rate(pair.base), pair.candidate.counts.scored
    return rate - Fraction(ceil(rate * trials) - 1, trials)


def _judge(pairs: Sequence[Pair], p: float, interval: Interval, alpha: float, min_effect: float) -> tuple[Verdict, str]:
    change = float(sum((pair.difference for pair in pairs), Fraction(0)) / len(pairs))
    if p < alpha and change < 0:
        return Verdict.REGRESSION, f"pass rate fell by {_points(-change)} points (p = {p:.2g})"
    smallest = smallest_p(pairs)
    if smallest >= alpha:
        paired = f"{_tasks(len(pairs))} can't give a p below {alpha:g}"
        return Verdict.INCONCLUSIVE, f"{paired}: the smallest is {smallest:.2g}"
    if interval.low > -min_effect:
        ends = f"{_points(interval.low, sign=True)} to {_points(interval.high, sign=True)} points"
        return Verdict.NO_REGRESSION, f"a loss of {_points(min_effect)} points is outside the interval ({ends})"
    return Verdict.INCONCLUSIVE, f"a loss of {_points(-interval.low)} points is possible (p = {p:.2g})"


def _points(share: float, *, sign: bool = False) -> str:
    """Percentage points: ``10``, ``-3.5``; with `sign` ``+10``."""
    rounded = round(100 * share, 1) + 0.0
    return f"{rounded:+g}" if sign and rounded else f"{rounded:g}"


def _trials_needed(pairs: Sequence[Pair], alpha: float, min_effect: float) -> int:
    """Estimate the trials of each set that distinguish the observed loss from none, or exclude a loss of `min_effect`.

    Normal approximation from the variance between trials of a task, pooled over both sets. One more task with the
    overall pass rate is added to the tasks, so that few and equal results do not look certain.
    """
    counts = [(pair.base.counts, pair.candidate.counts) for pair in pairs]
    pooled = [(a.passed + b.passed, a.scored + b.scored) for a, b in counts]
    passed, scored = (sum(column) for column in zip(*pooled, strict=True))
    overall = (passed + 1) / (scored + 2)
    variances = [2 * c * (n - c) / (n * (n - 1)) for c, n in pooled]
    variance: float = (fsum(variances) + 2 * overall * (1 - overall)) / (len(pairs) + 1)
    change = float(sum((pair.difference for pair in pairs), Fraction(0)) / len(pairs))
    gap = max(-change, min_effect + change)
    reach: float = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(_POWER)
    now = max(sum(a.scored for a, _ in counts), sum(b.scored for _, b in counts))
    more = 1
    while smallest_p([*pairs] * more) >= alpha:
        more += 1
    return max(ceil(variance * reach * reach / (gap * gap)), now * more, now + 1)


def _metrics(both: Sequence[tuple[Task, Task]], alpha: float) -> dict[str, MetricTest]:
    found: dict[str, MetricTest] = {}
    for name in METRICS:
        means = [
            (a.spreads[name].mean, b.spreads[name].mean) for a, b in both if name in a.spreads and name in b.spreads
        ]
        differences = [after - before for before, after in means]
        p = sign_flip_test(differences)
        if p is not None:
            before, after = (fsum(column) / len(means) for column in zip(*means, strict=True))
            found[name] = MetricTest(len(means), before, after, sign_flip_interval(differences, alpha), p, p)
    adjusted = holm([test.p for test in found.values()])
    return {
        name: test if p is None else msgspec.structs.replace(test, adjusted_p=p)
        for (name, test), p in zip(found.items(), adjusted, strict=True)
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
    found = [trial for trial in task.counted if trial.result is wanted]
    return (found or task.counted)[:_COMPARED]
