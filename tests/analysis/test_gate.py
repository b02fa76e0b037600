"""The gate: pairing, verdicts, metrics and divergences, and how often it is wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.build import calls, summary, trials_of
from tracetui.analysis.contrast import sign_flip_test
from tracetui.analysis.gate import Gate, Verdict, first_divergence, gate, smallest_p
from tracetui.analysis.tasks import matrix
from tracetui.errors import UsageError
from tracetui.model import Outcome, RunSummary, Usage

SETS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8)


def set_of(passed: Sequence[int], trials: int, **fields: object) -> list[RunSummary]:
    """A set of tasks with so many passed trials each."""
    return [run for i, c in enumerate(passed) for run in trials_of(f"t{i}", c, trials, **fields)]  # type: ignore[arg-type]


def compared(base: Sequence[int], candidate: Sequence[int], trials: int = 4, min_effect: float = 0.1) -> Gate:
    return gate(matrix(set_of(base, trials)), matrix(set_of(candidate, trials)), min_effect=min_effect)


@given(SETS)
def test_the_numbers_are_those_of_the_pairs(rates: list[tuple[int, int]]) -> None:
    found = compared([a for a, _ in rates], [b for _, b in rates], 3)
    assert found.base_rate == pytest.approx(sum(a for a, _ in rates) / 3 / len(rates))
    assert found.difference == pytest.approx(sum(b - a for a, b in rates) / 3 / len(rates), abs=1e-12)
    assert found.p == sign_flip_test([Fraction(b - a, 3) for a, b in rates])
    assert -1 <= found.interval.low <= found.interval.high <= 1
    assert {pair.name for pair in found.regressed} == {f"t{i}" for i, (a, b) in enumerate(rates) if b < a}
    assert {pair.name for pair in found.fixed} == {f"t{i}" for i, (a, b) in enumerate(rates) if b > a}
    assert (found.trials_needed is not None) == (found.verdict is Verdict.INCONCLUSIVE)


def test_identical_sets_of_50_tasks_show_no_regression() -> None:
    passed = [i % 5 for i in range(50)]
    found = compared(passed, passed)
    assert (found.verdict, found.p, found.interval) == (Verdict.NO_REGRESSION, 1.0, (0.0, 0.0))
    assert found.reason == "a loss of 10 points is outside the interval (0 to 0 points)"
    assert found.trials_needed is None
    assert found.smallest_loss == pytest.approx(6 * 0.25 / 50)


def test_five_tasks_are_too_few_whatever_the_outcome() -> None:
    for candidate in ([1] * 5, [0] * 5, [1, 1, 1, 0, 0]):
        found = compared([1] * 5, candidate, 1)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.reason == "5 tasks can't give a p below 0.05: the smallest is 0.062"
        assert found.trials_needed is not None
        assert found.trials_needed >= 6
    mixed = compared([1, 1, 0, 0, 1], [1, 0, 0, 1, 1], 1)
    assert mixed.trials_needed is not None
    assert 100 < mixed.trials_needed < 1000


def test_pairs_that_could_never_be_significant_are_inconclusive() -> None:
    """With half of ten tasks passed in single trials, at most five can change in one direction: p is 0.0625 at best."""
    half = [1, 0] * 5
    assert all(compared(half, [i >> k & 1 for k in range(10)], 1).p >= 0.05 for i in range(1 << 10))
    found = compared(half, half, 1)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "10 tasks can't give a p below 0.05: the smallest is 0.062"
    assert found.smallest_loss is None
    six = compared([1] * 6, [1] * 6, 1)
    assert (six.verdict, six.smallest_loss) == (Verdict.NO_REGRESSION, 1.0), "p = 0.031 if all fail"


@given(SETS)
def test_the_smallest_p_is_that_of_all_results_of_the_candidate(rates: list[tuple[int, int]]) -> None:
    base = [a for a, _ in rates[:5]]
    found = compared(base, base, 3)
    worst, best = compared(base, [0] * len(base), 3), compared(base, [3] * len(base), 3)
    assert smallest_p(found.pairs) == min(worst.p, best.p)


def test_the_smallest_loss_is_the_first_that_is_significant() -> None:
    base = [4, 4, 4, 4, 4, 4, 4, 1, 0, 0]
    found = compared(base, base)
    assert found.smallest_loss == pytest.approx(6 * 0.25 / 10)
    loss = compared(base, [3, 3, 3, 3, 3, 3, 4, 1, 0, 0])
    assert loss.verdict is Verdict.REGRESSION
    assert loss.difference == pytest.approx(-(found.smallest_loss or 0))
    assert compared(base, [3, 3, 3, 3, 3, 4, 4, 1, 0, 0]).p >= 0.05
    uneven = gate(matrix(set_of([1] * 6, 2)), matrix(set_of([1] * 6, 3)))
    assert uneven.smallest_loss == pytest.approx(1 / 2 - 1 / 3)


def test_a_loss_is_a_regression_and_a_gain_is_none() -> None:
    loss = compared([4] * 10, [2] * 10)
    assert (loss.verdict, loss.reason) == (Verdict.REGRESSION, "pass rate fell by 50 points (p = 0.002)")
    assert len(loss.regressed) == 10
    gain = compared([2] * 10, [4] * 10)
    assert gain.verdict is Verdict.NO_REGRESSION
    assert gain.p == loss.p


def test_a_wide_interval_is_inconclusive() -> None:
    found = compared([2, 0, 2, 1, 2, 0, 1, 2], [0, 2, 1, 2, 2, 1, 0, 1], 2)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.interval.low < -0.1
    assert "points is possible" in found.reason
    assert found.trials_needed is not None
    assert found.trials_needed > 16
    assert compared([2, 0, 2, 1, 2, 0, 1, 2], [0, 2, 1, 2, 2, 1, 0, 1], 2, 0.9).verdict is Verdict.NO_REGRESSION


def test_tasks_without_a_counterpart_are_listed() -> None:
    base = [*trials_of("both", 1, 2), *trials_of("old", 1, 2), summary("unscored", 0), summary(None, 3)]
    candidate = [*trials_of("both", 2, 3), *trials_of("new10", 1, 1), *trials_of("new9", 1, 1)]
    candidate += trials_of("unscored", 1, 1)
    found = gate(matrix(base), matrix(candidate))
    assert [pair.name for pair in found.pairs] == ["both"]
    assert found.pairs[0].difference == Fraction(1, 6)
    assert [task.name for task in found.only_base] == ["old"]
    assert [task.name for task in found.only_candidate] == ["new9", "new10"]
    assert [(a.name, b.counts.scored) for a, b in found.unscored] == [("unscored", 1)]


@pytest.mark.parametrize(
    ("base", "candidate", "message"),
    [
        ([], [], "base: 0 tasks"),
        (trials_of("a", 1, 2), trials_of("b", 1, 2), "none is in both"),
        ([summary("a", 0)], trials_of("a", 1, 2), "none of 1 task in both sets has scored runs"),
    ],
)
def test_nothing_to_pair(base: list[RunSummary], candidate: list[RunSummary], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gate(matrix(base), matrix(candidate))


@pytest.mark.parametrize(("alpha", "effect"), [(0, 0.1), (1, 0.1), (0.05, 0), (0.05, 1.1)])
def test_limits_of_the_options(alpha: float, effect: float) -> None:
    runs = matrix(trials_of("a", 1, 2))
    with pytest.raises(UsageError, match="between 0 and 1"):
        gate(runs, runs, alpha=alpha, min_effect=effect)


def test_metrics_are_reported_and_never_set_the_verdict() -> None:
    passed = [i % 5 for i in range(20)]
    base = set_of(passed, 4, usage=Usage(total_tokens=100), duration_ms=5.0)
    candidate = set_of(passed, 4, usage=Usage(total_tokens=200), duration_ms=5.0)
    found = gate(matrix(base), matrix(candidate))
    assert found.verdict is Verdict.NO_REGRESSION
    tokens, duration = found.metrics["tokens"], found.metrics["duration_ms"]
    assert (tokens.tasks, tokens.base, tokens.candidate, tokens.interval) == (20, 100, 200, (100, 100))
    assert tokens.p < 0.001
    assert tokens.adjusted_p == pytest.approx(2 * tokens.p)
    assert (duration.p, duration.adjusted_p) == (1.0, 1.0)
    assert [*found.metrics] == ["tokens", "duration_ms"]
    few = gate(matrix(base[:4]), matrix(candidate[:4]))
    assert few.metrics["tokens"].interval == (-inf, inf)


def test_the_first_divergence_compares_a_passed_with_a_failed_trial() -> None:
    runs = {
        run.summary.ref: run
        for run in (calls("b0", "ax"), calls("b1", "abc"), calls("c0", "abc"), calls("c1", "ab"), calls("d", "abc"))
    }
    summaries = {ref.path[8:-5]: run.summary for ref, run in runs.items()}

    def scored(name: str, passed: bool) -> RunSummary:
        outcome = Outcome.PASSED if passed else Outcome.FAILED
        return summaries[name].replace(task="t", trial=name, outcome=outcome)

    base = matrix([scored("b0", False), scored("b1", True)])
    (pair,) = gate(base, matrix([scored("c0", False)])).regressed
    assert first_divergence(pair, runs.get) is None, "the same steps"
    (pair,) = gate(base, matrix([scored("c1", False)])).regressed
    found = first_divergence(pair, runs.get)
    assert found is not None
    assert (found.base.path, found.candidate.path) == ("/traces/b1.json", "/traces/c1.json")
    assert found.base_span is not None
    assert (found.step, found.base_span.id, found.candidate_span) == (3, "s2", None)
    (pair,) = gate(matrix([scored("b0", False)]), matrix([scored("d", True)])).fixed
    divergence = first_divergence(pair, runs.get)
    assert divergence is not None
    assert divergence.base_span is not None
    assert (divergence.step, divergence.base_span.id) == (2, "s1")
    assert first_divergence(pair, lambda ref: None) is None


def test_the_first_divergence_is_that_of_usual_trials() -> None:
    """Two of three passed trials of the base do `abc`, two of three failed ones of the candidate `ax`."""
    steps = {"b0": "ax", "b1": "abc", "b2": "abc", "c0": "abc", "c1": "ax", "c2": "ax"}
    runs = {run.summary.ref: run for run in (calls(name, path) for name, path in steps.items())}

    def scored(letter: str, outcome: Outcome) -> list[RunSummary]:
        found = [run.summary for ref, run in runs.items() if ref.path[8] == letter]
        return [one.replace(task="t", trial=str(i), outcome=outcome) for i, one in enumerate(found)]

    found = gate(matrix(scored("b", Outcome.PASSED)), matrix(scored("c", Outcome.FAILED)))
    divergence = first_divergence(found.pairs[0], runs.get)
    assert divergence is not None
    assert (divergence.base.path, divergence.candidate.path) == ("/traces/b1.json", "/traces/c1.json")
    assert divergence.step == 2
    only_base = {ref: run for ref, run in runs.items() if ref.path[8] == "b"}
    assert first_divergence(found.pairs[0], only_base.get) is None


def test_false_alarms_and_power_of_the_test() -> None:
    chance = random.Random(5)
    rates = [chance.choice([0, 0.25, 0.5, 0.75, 1]) for _ in range(50)]

    def alarms(drop: float, times: int) -> float:
        factor = 1 - drop / (sum(rates) / len(rates))

        def passed(rate: float) -> int:
            return sum(chance.random() < rate for _ in range(4))

        found = 0
        for _ in range(times):
            p = sign_flip_test([Fraction(passed(rate * factor) - passed(rate), 4) for rate in rates])
            assert p is not None
            found += p < 0.05
        return found / times

    assert alarms(0, 400) <= 0.075
    assert alarms(0.2, 100) >= 0.97
