"""Permutation tests: could a difference in outcomes or in a metric be chance?

Every test is two-sided. Tests are exact where the permutations can be counted; otherwise they use `DRAWS` random
permutations with a fixed seed, so that the same data give the same p.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from math import comb, erfc, exp, fsum, gcd, inf, lcm, lgamma, log, prod, sqrt
from typing import Final, NamedTuple

ALPHA: Final = 0.05
"""The level of significance: p below it is decisive."""
DRAWS: Final = 10_000
"""Random permutations of a test that is not exact. The smallest p is then 1 / (DRAWS + 1)."""
MOST_TRIALS: Final = 1_000
"""Trials up to which `trials_to_decide` searches."""
_SEED: Final = 15
_CELLS: Final = 20_000
"""Entries of the table of an exact test of outcomes up to which it is exact."""
_BITS: Final = 1 << 22
"""Bits of the counts of an exact sign-flip test of fractions up to which it is exact."""
_PAIRS: Final = 14
"""Pairs up to which all sign flips and all subsets are enumerated."""
_CHUNK: Final = 8
_TIE: Final = 1e-9
"""Relative difference of two sums of floats that counts as a tie."""


class Side(NamedTuple):
    """Scored trials of one branch or group, and how many of them passed."""

    scored: int
    passed: int


class Interval(NamedTuple):
    """A confidence interval; an end is infinite where the pairs are too few to bound it."""

    low: float
    high: float


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for multiple tests (Holm, step-down). None stands for no test and is not counted."""
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p, i) in enumerate(order):
        least = max(least, min(1.0, p * (len(order) - rank)))
        adjusted[i] = least
    return adjusted


# ---- outcome against branch


def outcome_test(sides: Iterable[Side]) -> float | None:
    """Return the two-sided p of a permutation test of outcome against branch, over all branches at once.

    The labels *passed* and *failed* are permuted over the trials: passed trials per branch then follow the multivariate
    hypergeometric distribution, and p is the chance of a table that is at most as likely as the observed one (Fisher,
    Freeman and Halton). None if fewer than two branches have a scored trial.
    """
    tested = _tested(sides)
    if len(tested) < 2:
        return None
    exact = _exact_p(tested)
    return _drawn_p(tested) if exact is None else exact


def _tested(sides: Iterable[Side]) -> tuple[Side, ...]:
    """The branches with scored trials, in an order that makes equal tests one cached test."""
    return tuple(sorted(side for side in sides if side.scored))


@lru_cache(4096)
def _exact_p(sides: tuple[Side, ...]) -> float | None:
    """None where the tables are too many to count."""
    sizes, passed = [side.scored for side in sides], sum(side.passed for side in sides)
    weights = _weights(sizes, passed)
    if weights is None:
        return None
    observed = _weight(sides)
    return float(Fraction(sum(w * n for w, n in weights.items() if w <= observed), comb(sum(sizes), passed)))


def _weight(sides: Iterable[Side]) -> int:
    """In how many ways the trials of each branch can be the passed ones: the likelihood of a table, not normalized."""
    return prod(comb(side.scored, side.passed) for side in sides)


def _weights(sizes: Sequence[int], passed: int) -> dict[int, int] | None:
    """Count the tables with these margins by weight, the product of ``C(size, passed)``; None if they are too many."""
    tables: dict[int, dict[int, int]] = {0: {1: 1}}
    rest = sum(sizes)
    for size in sizes:
        rest -= size
        grown: dict[int, dict[int, int]] = {}
        cells = 0
        for used, weights in tables.items():
            for c in range(max(0, passed - used - rest), min(size, passed - used) + 1):
                factor, into = comb(size, c), grown.setdefault(used + c, {})
                cells -= len(into)
                for weight, count in weights.items():
                    into[weight * factor] = into.get(weight * factor, 0) + count
                cells += len(into)
                if cells > _CELLS:
                    return None
        tables = grown
    return tables[passed]


@lru_cache(256)
def _drawn_p(sides: tuple[Side, ...]) -> float:
    branch_of = [branch for branch, side in enumerate(sides) for _ in range(side.scored)]
    weights = [[comb(side.scored, c) for c in range(side.scored + 1)] for side in sides]
    passed, observed = sum(side.passed for side in sides), _weight(sides)
    chance, extreme = random.Random(_SEED), 0  # noqa: S311 - statistics
    for _ in range(DRAWS):
        counts = [0] * len(sides)
        for branch in chance.sample(branch_of, passed):
            counts[branch] += 1
        extreme += prod(map(list.__getitem__, weights, counts)) <= observed
    return (extreme + 1) / (DRAWS + 1)


def trials_to_decide(sides: Iterable[Side], trials: int, tests: int = 1, alpha: float = ALPHA) -> int | None:
    """Return how many trials the same proportions need for a p below `alpha`.

    `trials` is the number of trials now, of which all or some reach the branches; `tests` is the number of tests of the
    family, for the strictest step of Holm's correction. None where all branches have equal pass rates, where there is
    nothing to test, and beyond `MOST_TRIALS`.
    """
    tested = [side for side in sides if side.scored]
    if len({Fraction(side.passed, side.scored) for side in tested}) < 2:
        return None
    unit = reduce(gcd, (number for side in tested for number in side))
    smallest = [Side(side.scored // unit, side.passed // unit) for side in tested]

    def is_enough(times: int) -> bool:
        return _planned_p(Side(side.scored * times, side.passed * times) for side in smallest) * tests < alpha

    low, high, most = 1, 1, max(1, MOST_TRIALS * unit // trials)
    while high < most and not is_enough(high):
        low, high = high + 1, min(2 * high, most)
    found = low + bisect_left(range(low, high + 1), True, key=is_enough)
    return -(-trials * found // unit) if found <= high else None


def _planned_p(sides: Iterable[Side]) -> float:
    """The exact p, or its chi-square approximation where the tables are too many to count: drawing takes too long."""
    tested = _tested(sides)
    exact = _exact_p(tested)
    return _chi_square_p(tested) if exact is None else exact


def _chi_square_p(sides: Sequence[Side]) -> float:
    """The p of Pearson's chi-square test. Neither all trials passed nor all failed."""
    scored, passed = sum(side.scored for side in sides), sum(side.passed for side in sides)
    rate, freedom = passed / scored, len(sides) - 1
    half = sum((s.passed - s.scored * rate) ** 2 / s.scored for s in sides) / (rate * (1 - rate)) / 2
    start = freedom % 2 / 2
    tail = erfc(sqrt(half)) if freedom % 2 else 0.0
    return tail + sum(exp((i + start) * log(half) - half - lgamma(i + start + 1)) for i in range(freedom // 2))


# ---- paired differences


def sign_flip_test(differences: Sequence[Fraction | float]) -> float | None:
    """Return the two-sided p of a sign-flip permutation test that the mean of paired differences is 0.

    Exact for fractions (pass rates) as far as their sums can be counted, and for up to 14 pairs. None without pairs.
    """
    if not differences:
        return None
    exact = _sign_flips_of_fractions(differences)
    if exact is not None:
        return exact
    values = [abs(float(d)) for d in differences]
    total = fsum(values)
    observed = abs(fsum(map(float, differences))) - _TIE * total
    flipped = [abs(2 * part - total) for part, _ in _subsets(values)]
    extreme = sum(one >= observed for one in flipped)
    return extreme / len(flipped) if len(values) <= _PAIRS else (extreme + 1) / (len(flipped) + 1)


def _sign_flips_of_fractions(differences: Sequence[Fraction | float]) -> float | None:
    """The exact p by counting the sums of all subsets; None for floats, and where the counts take too much memory.

    The coefficients of a polynomial count the subsets by their sum. It is one large integer, with a field for each.
    """
    fractions = [d for d in differences if isinstance(d, Fraction)]
    if len(fractions) < len(differences):
        return None
    scale = lcm(*(d.denominator for d in fractions))
    whole = [int(d * scale) for d in fractions if d]
    observed = abs(sum(whole))
    if not observed:
        return 1.0
    unit, width = gcd(*whole), len(whole) + 1
    sizes, observed = [abs(d) // unit for d in whole], observed // unit
    total = sum(sizes)
    if total * width > _BITS:
        return None
    counts = 1
    for size in sizes:
        counts += counts << width * size
    tail = counts >> width * ((total + observed) // 2)
    return float(Fraction(2 * (tail % ((1 << width) - 1)), 1 << len(sizes)))


def smallest_sign_flip_p(pairs: int) -> float:
    """Return the smallest p that `sign_flip_test` can give for so many pairs: all differ in the same direction."""
    return min(1.0, 2.0 ** (1 - pairs))


def sign_flip_interval(differences: Sequence[Fraction | float], alpha: float = ALPHA) -> Interval:
    """Return the interval of the mean difference at confidence ``1 - alpha``, by inverting `sign_flip_test`.

    A shift is rejected when the means of too few subsets of the pairs lie beyond it (Hartigan's typical values), so
    that the ends are order statistics of the means of subsets: of all subsets up to 14 pairs, else of random ones.
    """
    means = sorted(part / count for part, count in _subsets([float(d) for d in differences]) if count)
    rank = int(alpha / 2 * (len(means) + 1))
    return Interval(means[rank - 1], means[-rank]) if rank else Interval(-inf, inf)


def _subsets(values: Sequence[float]) -> Iterator[tuple[float, int]]:
    """Sum and size of all subsets of a few values, or of `DRAWS` random subsets of many."""
    if len(values) <= _PAIRS:
        yield from _all_subsets(values)
        return
    chunks = [[part for part, _ in _all_subsets(values[i : i + _CHUNK])] for i in range(0, len(values), _CHUNK)]
    chance = random.Random(_SEED)  # noqa: S311 - statistics
    for _ in range(DRAWS):
        bits = chance.getrandbits(len(values))
        yield sum(map(list.__getitem__, chunks, bits.to_bytes(len(chunks), "little"))), bits.bit_count()


def _all_subsets(values: Sequence[float]) -> list[tuple[float, int]]:
    """Sum and size of every subset; bit i of the position of one in the list says whether it has ``values[i]``."""
    found = [(0.0, 0)]
    for value in values:
        found += [(part + value, count + 1) for part, count in found]
    return found
