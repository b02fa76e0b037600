"""Permutation tests against plain enumerations of what they count."""

from __future__ import annotations

from itertools import combinations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.analysis import contrast
from tracetui.analysis.contrast import (
    Side,
    holm,
    outcome_test,
    trials_to_decide,
)

SIDES = st.lists(st.integers(0, 4).flatmap(lambda n: st.builds(Side, st.just(n), st.integers(0, n))), max_size=4)


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
    values = [
        outcome_test([Side(a, c), Side(4 - a, d)]) for a in (1, 2, 3) for c in range(a + 1) for d in range(4 - a + 1)
    ]
    assert min(p for p in values if p is not None) == 0.25
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
