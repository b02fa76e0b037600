"""Permutation tests against plain enumerations of what they count."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, product
from math import inf, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.analysis import contrast
from tracetui.analysis.contrast import (
    Side,
    holm,
    outcome_test,
    sign_flip_interval,
    sign_flip_test,
    smallest_sign_flip_p,
    trials_to_decide,
)

SIDES = st.lists(st.integers(0, 4).flatmap(lambda n: st.builds(Side, st.just(n), st.integers(0, n))), max_size=4)
QUARTERS = st.integers(-4, 4).map(lambda n: Fraction(n, 4))


@given(SIDES)
def test_the_outcome_test_counts_every_permutation_of_labels(sides: list[Side]) -> None:
    sides = [side for side in sides if side.scored]
    p = outcome_test(sides)
    if len(sides) < 2:
        assert p is None
        return
    branch_of = [i for i, side in enumerate(sides) for _ in range(side.scored)]
    tables: dict[tuple[int, ...], int] = {}
    for passed in combinations(range(len(branch_of)), sum(side.passed for side in sides)):
        table = tuple(sum(branch_of[trial] == i for trial in passed) for i in range(len(sides)))
        tables[table] = tables.get(table, 0) + 1
    observed = tables[tuple(side.passed for side in sides)]
    assert p is not None
    assert isclose(p, sum(n for n in tables.values() if n <= observed) / sum(tables.values()))


def test_no_four_trials_are_decisive() -> None:
    found = [
        outcome_test([Side(a, c), Side(4 - a, d)]) for a in (1, 2, 3) for c in range(a + 1) for d in range(4 - a + 1)
    ]
    assert min(p for p in found if p is not None) == 0.25
    assert outcome_test([Side(3, 1), Side(1, 1)]) == 1.0


def test_drawn_labels_agree_with_counted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [Side(9, 7), Side(7, 2), Side(4, 1)]
    exact = outcome_test(sides)
    assert exact is not None
    assert contrast._drawn_p(tuple(sides)) == pytest.approx(exact, abs=0.01)
    assert contrast._chi_square_p([Side(n * 20, c * 20) for n, c in sides]) < 1e-6


@pytest.mark.parametrize(
    ("x", "freedom", "p"), [(3.841459, 1, 0.05), (5.991465, 2, 0.05), (7.814728, 3, 0.05), (18.307038, 10, 0.05)]
)
def test_the_chi_square_approximation_has_the_tabulated_quantiles(x: float, freedom: int, p: float) -> None:
    # two trials a branch, one of the branches all passed and another all failed: chi-square is 4 times the scale
    sides = [Side(2, 2), Side(2, 0), *[Side(2, 1)] * (freedom - 1)]
    scaled = [Side(round(n * 10**6 * x / 4), round(c * 10**6 * x / 4)) for n, c in sides]
    diluted = [Side(n, round(n / 2 + (c - n / 2) / 1000)) for n, c in scaled]
    assert contrast._chi_square_p(diluted) == pytest.approx(p, abs=1e-3)


def test_holm_steps_down_and_skips_missing_tests() -> None:
    assert holm([0.04, None, 0.01, 0.03]) == [pytest.approx(0.06), None, pytest.approx(0.03), pytest.approx(0.06)]
    assert holm([]) == []


def test_trials_to_decide_is_the_first_number_of_trials_that_decides() -> None:
    assert trials_to_decide([Side(2, 2), Side(2, 0)], 4) == 8
    assert outcome_test([Side(4, 4), Side(4, 0)]) == pytest.approx(2 / 70)
    assert trials_to_decide([Side(2, 2), Side(2, 0)], 4, tests=3) == 10
    assert trials_to_decide([Side(2, 1), Side(4, 2)], 6) is None, "equal rates"
    assert trials_to_decide([Side(4, 0)], 4) is None
    assert trials_to_decide([Side(100, 51), Side(100, 50)], 200) is None, "beyond the limit"
    assert trials_to_decide([Side(3, 1), Side(1, 1)], 4) == 20


@given(st.lists(QUARTERS, min_size=1, max_size=8))
def test_sign_flips_of_fractions_and_floats_are_counted(differences: list[Fraction]) -> None:
    sums = [
        sum((s * d for s, d in zip(signs, differences, strict=True)), Fraction(0))
        for signs in product((1, -1), repeat=len(differences))
    ]
    observed = sum(differences, Fraction(0))
    expected = sum(abs(one) >= abs(observed) for one in sums) / len(sums)
    assert sign_flip_test(differences) == pytest.approx(expected)
    assert sign_flip_test([float(d) for d in differences]) == pytest.approx(expected)


def test_drawn_sign_flips_agree_with_counted_ones() -> None:
    draw = random.Random(3)
    differences = [Fraction(draw.randint(-3, 4), 4) for _ in range(40)]
    exact = sign_flip_test(differences)
    assert exact is not None
    assert sign_flip_test([float(d) for d in differences]) == pytest.approx(exact, abs=0.015)


def test_the_interval_inverts_the_test() -> None:
    draw = random.Random(4)
    for size in (8, 12, 30):
        differences = [draw.gauss(0.3, 1) for _ in range(size)]
        low, high = sign_flip_interval(differences)
        for shift, inside in ((low - 0.02, False), (low + 0.02, True), (high - 0.02, True), (high + 0.02, False)):
            p = sign_flip_test([d - shift for d in differences])
            assert p is not None
            assert (p > 0.05) == inside, (size, shift, p)


def test_few_pairs_have_no_interval() -> None:
    assert sign_flip_interval([0.1] * 5) == (-inf, inf)
    assert sign_flip_interval([0.1] * 6) == pytest.approx((0.1, 0.1))
    assert smallest_sign_flip_p(5) == 0.0625
    assert sign_flip_test([]) is None
    assert sign_flip_test([Fraction(0)] * 3) == 1.0
