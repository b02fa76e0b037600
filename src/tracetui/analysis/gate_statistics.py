"""Statistics of the gate: what the trials of the same tasks in two sets show about the difference of their pass rates.

The tasks are fixed and only their trials are random, so that a conclusion holds for these tasks. The difference is the
mean over the tasks of the candidate's rate less the base's, each task with the same weight. Pass rates need no random
numbers; metrics are shuffled with a fixed seed.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import acos, comb, cos, fsum, gcd, inf, lcm, pi, prod, sqrt, tan
from statistics import NormalDist
from typing import Final, NamedTuple

from tracetui.analysis.contrast import Interval

NONZERO: Final = 1e-9
"""Distance from 0 of an end of an interval that excludes 0 without a bound of its own."""
MOST_TRIALS: Final = 100
"""Trials of each task up to which `trials_per_task` searches."""
_POWER: Final = 0.8
"""Chance of a conclusion at the number of trials that `trials_per_task` returns."""
_CELLS: Final = 120
"""Cells per 100 points of a task's change where the exact lattice is finer than twice that; p is then right to .001."""
_SCALE: Final = 48
"""Bits of the weight 1 of a distribution: 12 hexadecimal digits."""
_SHUFFLES: Final = 256
"""Shuffles of the values of a task. A byte selects one."""
_DRAWS: Final = 4_000
"""Random combinations of the shuffles of all tasks."""
_SEED: Final = 15
_NORMAL: Final = NormalDist()


class TaskCounts(NamedTuple):
    """Scored trials of a task in both sets, and how many of them passed."""

    base_passed: int
    base: int
    candidate_passed: int
    candidate: int

    @property
    def change(self) -> Fraction:
        """Pass rate of the candidate less that of the base, -1 to 1."""
        return Fraction(self.candidate_passed, self.candidate) - Fraction(self.base_passed, self.base)

    @property
    def passed(self) -> int:
        """Passed trials of both sets."""
        return self.base_passed + self.candidate_passed

    @property
    def trials(self) -> int:
        """Scored trials of both sets."""
        return self.base + self.candidate

    @property
    def is_mixed(self) -> bool:
        """Whether some trials passed and some failed: otherwise each shuffle gives the same table."""
        return 0 < self.passed < self.trials

    @property
    def swapped(self) -> TaskCounts:
        """The same with base and candidate exchanged."""
        return TaskCounts(self.candidate_passed, self.candidate, self.base_passed, self.base)

    def passes_of_shuffles(self) -> range:
        """The possible numbers of passed trials in the candidate if the results are shuffled."""
        return range(max(0, self.passed - self.base), min(self.candidate, self.passed) + 1)

    def shuffles(self, candidate_passed: int) -> int:
        """In how many shuffles so many trials of the candidate pass, of ``comb(trials, passed)``."""
        return comb(self.candidate, candidate_passed) * comb(self.base, self.passed - candidate_passed)


def mean_change(tasks: Sequence[TaskCounts]) -> float:
    """Mean change of the pass rate over the tasks, -1 to 1."""
    return float(sum((task.change for task in tasks), Fraction(0)) / len(tasks))


# ---- test


def shuffle_test(tasks: Sequence[TaskCounts]) -> float:
    """Return the two-sided p of a permutation test that shuffles the results of each task over its trials.

    p is twice the share of shuffles with a mean change at least as low (or as high, whichever is rarer), at most 1. The
    distribution is computed by convolution of the hypergeometric distributions of the tasks: exactly, or on `_CELLS`
    cells where the sums are too many. Shares below 1e-12 count as 0.
    """
    cells = _cells_per_unit(tasks)
    observed = 0
    distributions: Counter[_Distribution] = Counter()
    for task in tasks:
        if task.is_mixed:
            step = Fraction(task.trials, task.base * task.candidate) * cells
            observed += round(task.candidate_passed * step)
            distributions[_distribution(task, step)] += 1
    if not distributions:
        return 1.0
    first, weights = _product([_power(factor, number) for factor, number in distributions.items()])
    at = observed - first
    rarer = min(sum(weights[: max(0, at + 1)]), sum(weights[max(0, at) :]))
    return min(1.0, 2 * rarer / sum(weights))


class _Distribution(NamedTuple):
    """Weights of consecutive cells, in units of ``2 ** -_SCALE``."""

    first: int
    weights: tuple[int, ...]


def _cells_per_unit(tasks: Iterable[TaskCounts]) -> Fraction:
    """Cells per change of 1, so that the changes of every task (multiples of ``1/base + 1/candidate``) lie on cells."""
    steps = {Fraction(task.trials, task.base * task.candidate) for task in tasks}
    scale = lcm(*(step.denominator for step in steps))
    exact = Fraction(scale, gcd(*(int(step * scale) for step in steps)))
    return exact if exact <= 2 * _CELLS else Fraction(_CELLS)


def _distribution(task: TaskCounts, step: Fraction) -> _Distribution:
    """The distribution of the passed trials of the candidate over the shuffles, `step` cells a trial."""
    passes, shuffles = task.passes_of_shuffles(), comb(task.trials, task.passed)
    cells = [round(number * step) for number in passes]
    weights = [0] * (cells[-1] - cells[0] + 1)
    for number, cell in zip(passes, cells, strict=True):
        weights[cell - cells[0]] += (task.shuffles(number) << _SCALE) // shuffles
    return _Distribution(cells[0], tuple(weights))


def _power(base: _Distribution, exponent: int) -> _Distribution:
    """The distribution of the sum of `exponent` independent values."""
    half = base if exponent == 1 else _power(base, exponent // 2)
    if exponent == 1:
        return half
    square = _convolution(half, half)
    return _convolution(square, base) if exponent % 2 else square


def _product(factors: list[_Distribution]) -> _Distribution:
    """The distribution of the sum of independent values: neighbors by size are combined, so that all stay small."""
    factors.sort(key=lambda factor: len(factor.weights))
    while len(factors) > 1:
        pairs = zip(factors[::2], factors[1::2], strict=False)
        factors = [*(_convolution(a, b) for a, b in pairs), *factors[len(factors) & ~1 :]]
    return factors[0]


def _convolution(a: _Distribution, b: _Distribution) -> _Distribution:
    """Multiply as polynomials: as two integers with a field of hexadecimal digits for each coefficient."""
    digits = 2 * _SCALE // 4 + 4
    size = len(a.weights) + len(b.weights) - 1
    left, right = (int("".join(f"{w:0{digits}x}" for w in side.weights), 16) for side in (a, b))
    product = f"{left * right:0{digits * size}x}"
    weights = [int(product[i : i + digits], 16) >> _SCALE for i in range(0, digits * size, digits)]
    kept = [i for i, weight in enumerate(weights) if weight]
    return _Distribution(a.first + b.first + kept[0], tuple(weights[kept[0] : kept[-1] + 1]))


def smallest_p(tasks: Sequence[TaskCounts]) -> float:
    """Return the smallest p that any results of the candidate could give, with the results of the base as they are.

    It is that of a candidate that never passes, or of one that always does.
    """
    never = [task._replace(candidate_passed=0) for task in tasks]
    always = [task._replace(candidate_passed=task.candidate) for task in tasks]
    shares = (
        prod(task.shuffles(task.candidate_passed) / comb(task.trials, task.passed) for task in extreme)
        for extreme in (never, always)
    )
    return min(1.0, 2 * min(shares))


# ---- interval


def change_interval(tasks: Sequence[TaskCounts], alpha: float) -> Interval:
    """Return the interval of the mean change at confidence ``1 - alpha``, within -1 and 1: the widest of three.

    1. Stratified score interval of Miettinen and Nurminen: right where every task changes alike, and never a point.
    2. Score interval whose task rates are free: right where a loss can hide in tasks with few trials.
    3. Where a task has more trials in one set: the interval from the spread of the trials.
    """
    strata, z = _Strata(tasks), _NORMAL.inv_cdf(1 - alpha / 2)
    low, high = (strata.end(sign, z) for sign in (-1, 1))
    return Interval(low, high)


def agree(interval: Interval, p: float, change: float, alpha: float) -> Interval:
    """Make an interval agree with its test: it contains 0 if p is at least `alpha`, and excludes 0 otherwise.

    Excluding 0 costs no coverage: the test rejects a true 0 in at most `alpha` of the cases.
    """
    low, high = interval
    if p >= alpha:
        return Interval(min(low, 0.0), max(high, 0.0))
    return Interval(low, min(high, -NONZERO)) if change < 0 else Interval(max(low, NONZERO), high)


class _Strata:
    """Tasks as strata; those with equal counts are computed once."""

    def __init__(self, tasks: Sequence[TaskCounts]) -> None:
        self.number = len(tasks)
        self.counts = Counter(tasks)
        self.change = mean_change(tasks)

    def end(self, sign: int, z: float) -> float:
        """The lower (-1) or upper (1) end of the widest interval, `z` standard errors from the change."""
        ends = [self._end_of_equal_changes(sign, z), self._end_of_free_rates(sign, z)]
        if any(task.base != task.candidate for task in self.counts):
            ends.append(self.change + sign * z * sqrt(self._mean(_spread)))
        return sign * min(1.0, max(sign * end for end in ends))

    def equal_variance(self, change: float) -> float:
        """Variance of the mean change if every task changes by `change`."""
        return self._mean(lambda task: _restricted_variance(task, change, task.base, task.candidate))

    def unit_variance(self, change: float) -> float:
        """The same with one trial of each task in each set."""
        return self._mean(lambda task: _restricted_variance(task, change, 1, 1))

    def _mean(self, variance_of: Callable[[TaskCounts], float]) -> float:
        """Variance of the mean of independent changes with these variances."""
        return fsum(number * variance_of(task) for task, number in self.counts.items()) / self.number**2

    def _end_of_equal_changes(self, sign: int, z: float) -> float:
        inside, outside = self.change, float(sign)
        for _ in range(30):
            middle = (inside + outside) / 2
            if (self.change - middle) ** 2 <= z * z * self.equal_variance(middle):
                inside = middle
            else:
                outside = middle
        return outside if abs(outside) == 1 else inside

    def _end_of_free_rates(self, sign: int, z: float) -> float:
        """Bisect the Lagrange multiplier, with which the distance in standard errors increases."""
        small, large = 1e-6, 1e6
        for _ in range(50):
            middle = sqrt(small * large)
            change, variance = self._likeliest(sign * middle)
            if (self.change - change) ** 2 <= z * z * variance:
                small = middle
            else:
                large = middle
        return self._likeliest(sign * large)[0]

    def _likeliest(self, multiplier: float) -> tuple[float, float]:
        """A mean change and its variance at the likeliest rates of all tasks that have this mean change.

        A positive Lagrange multiplier raises the change, where that costs the least likelihood.
        """
        change = variance = 0.0
        for task, number in self.counts.items():
            base = _pulled(task.base_passed, task.base, -multiplier)
            candidate = _pulled(task.candidate_passed, task.candidate, multiplier)
            change += number * (candidate - base)
            variance += number * (base * (1 - base) / task.base + candidate * (1 - candidate) / task.candidate)
        return change / self.number, variance / self.number**2


def _restricted_variance(task: TaskCounts, change: float, base: int, candidate: int) -> float:
    """Variance of the change of a task with so many trials, at its likeliest rates with that change.

    Corrected by N/(N-1) for N trials with both results, as the variance of shuffles is.
    """
    p, q = _restricted_rates(task, change)
    correction = task.trials / (task.trials - 1) if task.is_mixed else 1
    return correction * (p * (1 - p) / base + q * (1 - q) / candidate)


def _restricted_rates(task: TaskCounts, change: float) -> tuple[float, float]:
    """The likeliest rates of base and candidate that differ by `change` (Miettinen and Nurminen, 1985)."""
    a, n, m, trials = task.base_passed, task.base, task.candidate, task.trials
    square = ((m + 2 * n) * change - trials - task.passed) / trials
    linear = ((n * change - trials - 2 * a) * change + task.passed) / trials
    constant = a * change * (1 - change) / trials
    half = square**3 / 27 - linear * square / 6 + constant / 2
    radius = sqrt(max(0.0, square * square / 9 - linear / 3)) * (1 if half >= 0 else -1)
    ratio = half / radius**3 if radius else 0.0
    angle = (pi + acos(max(-1.0, min(1.0, ratio)))) / 3
    base = _share(2 * radius * cos(angle) - square / 3)
    rate = _share(base + change)
    return _share(rate - change), rate


def _pulled(passed: int, trials: int, multiplier: float) -> float:
    """The rate that maximizes the log-likelihood of the trials plus ``multiplier * rate``."""
    middle = multiplier - trials
    root = sqrt(max(0.0, middle * middle + 4 * multiplier * passed))
    # the same root of the quadratic in two forms: each loses digits where the other doesn't
    return _share((middle + root) / (2 * multiplier) if middle >= 0 else 2 * passed / (root - middle))


def _spread(task: TaskCounts) -> float:
    """Variance of the change from the spread of the trials; of a task with a single trial the square of its change."""
    if min(task.base, task.candidate) == 1:
        return float(task.change**2)
    return sum(
        passed * (trials - passed) / (trials * trials * (trials - 1))
        for passed, trials in ((task.base_passed, task.base), (task.candidate_passed, task.candidate))
    )


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


# ---- numbers of trials


def fewest_trials(tasks: Iterable[TaskCounts]) -> int:
    """Scored trials of the smaller set."""
    counts = list(tasks)
    return min(sum(task.base for task in counts), sum(task.candidate for task in counts))


def trials_to_exclude(min_effect: float, alpha: float) -> int:
    """Trials of a set from which one without a failed trial excludes a loss of `min_effect`: 35 for 10 points."""
    z = _NORMAL.inv_cdf(1 - alpha / 2)
    return int(z * z * (1 - min_effect) / min_effect) + 1


def trials_per_task(tasks: Sequence[TaskCounts], *, alpha: float, min_effect: float) -> int | None:
    """Return how many trials of each task, in both sets, give a conclusion with a chance of 80 %.

    The chance is averaged over the true change: a normal prior with the standard deviation `min_effect`, times the
    likelihood of the observed change. None beyond `MOST_TRIALS`.
    """
    strata, number, z = _Strata(tasks), len(tasks), _NORMAL.inv_cdf(1 - alpha / 2)
    # One more task with the overall rate, so that few and equal results don't look certain.
    overall = (sum(task.passed for task in tasks) + 1) / (sum(task.trials for task in tasks) + 2)
    extra = 2 * overall * (1 - overall) / number**2
    at_none, at_loss = ((strata.unit_variance(c) + extra) * number / (number + 1) for c in (0.0, -min_effect))
    noise = max(strata.equal_variance(0.0), strata.equal_variance(-min_effect))
    noise += 2 * extra * number / max(2, sum(task.trials for task in tasks))
    posterior = 1 / (1 / noise + 1 / min_effect**2)
    center = strata.change * posterior / noise
    changes = [center + sqrt(posterior) * _NORMAL.inv_cdf((i + 0.5) / 24) for i in range(24)]

    def chance(trials: int) -> float:
        """The chance of a conclusion. Results come in steps of one trial (`step`)."""
        none, loss, step = sqrt(at_none / trials), sqrt(at_loss / trials), 1 / (number * trials)
        total = 0.0
        for change in changes:
            lost_share = _share(-change / min_effect)
            error = (1 - lost_share) * none + lost_share * loss or NONZERO
            regression = _NORMAL.cdf((-change - step - z * none) / error)
            exclusion = _NORMAL.cdf((change + min_effect - step - z * loss) / error)
            total += min(1.0, regression + exclusion)
        return total / len(changes)

    now = min(max(task.base for task in tasks), max(task.candidate for task in tasks))
    least = max(now + 1, -(-trials_to_exclude(min_effect, alpha) // number))
    if least > MOST_TRIALS or chance(MOST_TRIALS) < _POWER:
        return None
    return least + bisect_left(range(least, MOST_TRIALS), True, key=lambda trials: chance(trials) >= _POWER)


# ---- single tasks


def lower_beyond_chance(tasks: Sequence[TaskCounts], alpha: float) -> list[int]:
    """Return the indices of tasks whose rate fell beyond chance, in order: on average at most `alpha` of them did not.

    One-sided Fisher test of each task; the limit of p is the highest at which the number of tasks that chance alone
    puts below it is at most `alpha` of the tasks below it (false discovery rate, step-down, with the attainable p of
    each task). Of equal agents, any task is named with a chance of at most `alpha`.
    """
    tails = {shape: _tails(shape) for shape in {_margins(task) for task in tasks}}
    p_values = [tails[_margins(task)][task.candidate_passed - task.passes_of_shuffles()[0]] for task in tasks]
    shapes = Counter(_margins(task) for task in tasks)
    named: list[int] = []
    order = sorted(range(len(tasks)), key=lambda i: p_values[i])
    for rank, i in enumerate(order, 1):
        limit = p_values[i] * (1 + NONZERO)
        if rank < len(order) and p_values[order[rank]] <= limit:
            continue
        if limit >= alpha or _below_by_chance(limit, shapes, tails) > alpha * rank:
            break
        named = order[:rank]
    return sorted(named)


_Margins = tuple[int, int, int]
"""Trials of the base, trials of the candidate, passed trials of both."""


def _margins(task: TaskCounts) -> _Margins:
    return task.base, task.candidate, task.passed


def _tails(margins: _Margins) -> list[float]:
    """One-sided p of each possible number of passed trials of the candidate: the share of shuffles up to it."""
    base, candidate, passed = margins
    first = max(0, passed - base)
    task = TaskCounts(passed - first, base, first, candidate)
    shuffles, total = 0, comb(task.trials, passed)
    tails = []
    for number in task.passes_of_shuffles():
        shuffles += task.shuffles(number)
        tails.append(shuffles / total)
    return tails


def _below_by_chance(limit: float, shapes: Counter[_Margins], tails: dict[_Margins, list[float]]) -> float:
    """Bound of the number of tasks with a p of at most `limit` if no rate changed."""
    total = 0.0
    for margins, number in shapes.items():
        chance = max((p for p in tails[margins] if p <= limit), default=0.0)
        total += number * (chance / (1 - chance) if chance < 1 else inf)
    return total


# ---- metrics


class Values(NamedTuple):
    """A metric of the trials of a task in both sets, in its own unit; neither is empty."""

    base: Sequence[float]
    candidate: Sequence[float]

    @property
    def change(self) -> float:
        """Mean of the candidate less that of the base."""
        return mean(self.candidate) - mean(self.base)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value."""
    return fsum(values) / len(values)


class MetricChange(NamedTuple):
    """The mean change of a metric over tasks, with p and interval as `metric_test` has them."""

    change: float
    interval: Interval
    p: float


def metric_test(tasks: Sequence[Values], alpha: float) -> MetricChange:
    """Test whether a metric changed: p by shuffling the values of each task over its trials, two-sided.

    The interval comes from the spread of the trials of each task (Welch; Student's t). For tasks with a single trial in
    a set it comes from the spread of their changes. `agree` holds. At least one task.
    """
    change = mean([task.change for task in tasks])
    p = _metric_p(tasks)
    half = _half_width(tasks, alpha)
    return MetricChange(change, agree(Interval(change - half, change + half), p, change, alpha), p)


def _metric_p(tasks: Sequence[Values]) -> float:
    """Combine shuffles of all tasks at random. p is at least that of one of all possible shuffles."""
    chance = random.Random(_SEED)  # noqa: S311 - statistics
    selections: dict[tuple[int, int], list[list[int]]] = {}
    shuffled = []
    for task in tasks:
        sizes = len(task.base), len(task.candidate)
        if sizes not in selections:
            selections[sizes] = [chance.sample(range(sum(sizes)), sizes[1]) for _ in range(_SHUFFLES)]
        if len({*task.base, *task.candidate}) > 1:
            shuffled.append(_changes(task, selections[sizes]))
    if not shuffled:
        return 1.0
    observed = fsum(task.change for task in tasks)
    tie = NONZERO * fsum(max(map(abs, changes)) for changes in shuffled)
    totals = [sum(map(list.__getitem__, shuffled, chance.randbytes(len(shuffled)))) for _ in range(_DRAWS)]
    rarer = min(sum(total <= observed + tie for total in totals), sum(total >= observed - tie for total in totals))
    all_shuffles = prod(comb(len(task.base) + len(task.candidate), len(task.base)) for task in tasks)
    return min(1.0, max(2 * (rarer + 1) / (_DRAWS + 1), 2 / all_shuffles))


def _changes(task: Values, selections: Sequence[Sequence[int]]) -> list[float]:
    """Changes of a task if the candidate had the selected values, centered and scaled to the exact variance."""
    values = [*task.base, *task.candidate]
    weight, center = 1 / len(task.base) + 1 / len(task.candidate), mean(values)
    deviations = [(value - center) * weight for value in values]
    changes = [sum([deviations[i] for i in selection]) for selection in selections]
    middle = mean(changes)
    drawn = mean([(change - middle) ** 2 for change in changes])
    exact = fsum([deviation * deviation for deviation in deviations]) / (len(values) - 1) / weight
    scale = sqrt(exact / drawn) if drawn else 0.0
    return [(change - middle) * scale for change in changes]


def _half_width(tasks: Sequence[Values], alpha: float) -> float:
    """Half of the interval of the mean change; infinite where nothing shows the spread."""
    parts: list[tuple[float, int]] = []
    single = [task.change for task in tasks if min(len(task.base), len(task.candidate)) == 1]
    for task in tasks:
        if min(len(task.base), len(task.candidate)) > 1:
            parts += [(_variance(side) / len(side), len(side) - 1) for side in task]
    if len(single) == 1:
        parts.append((single[0] ** 2, 1))
    elif single:
        parts.append((_variance(single) * len(single), len(single) - 1))
    total = fsum(part for part, _ in parts)
    if not total:
        return 0.0
    freedom = total**2 / fsum(part * part / number for part, number in parts)
    return student_quantile(1 - alpha / 2, freedom) * sqrt(total) / len(tasks)


def _variance(values: Sequence[float]) -> float:
    """Variance of a sample of at least two; `statistics.variance` is exact and forty times slower."""
    center = mean(values)
    return fsum([(value - center) ** 2 for value in values]) / (len(values) - 1)


def student_quantile(share: float, freedom: float) -> float:
    """Quantile of Student's t for a share above .5; `freedom`, at least 1, need not be whole.

    With t = sqrt(freedom) * tan(angle), the density is cos(angle) ** (freedom - 1); its integral is Simpson's.
    """
    if freedom > 100:  # the first term of the expansion around the normal quantile is right to .0001
        z = _NORMAL.inv_cdf(share)
        return z + (z**3 + z) / (4 * freedom)
    steps = 1_000
    width = pi / 2 / steps
    heights = [cos(i * width) ** (freedom - 1) for i in range(steps)] + [0.0 if freedom > 1 else 1.0]
    areas = [0.0]
    for i in range(0, steps, 2):
        areas.append(areas[-1] + heights[i] + 4 * heights[i + 1] + heights[i + 2])
    wanted = (2 * share - 1) * areas[-1]
    i = max(1, bisect_left(areas, wanted))
    angle = 2 * width * (i - 1 + (wanted - areas[i - 1]) / (areas[i] - areas[i - 1]))
    return sqrt(freedom) * tan(angle)
