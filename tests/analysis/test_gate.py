"""The gate: pairing, verdicts, metrics and divergences."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.build import calls, summary, trials_of
from tracetui.analysis.gate import Gate, Verdict, first_divergence, gate
from tracetui.analysis.gate_statistics import TaskCounts, shuffle_test
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
    result = compared([a for a, _ in rates], [b for _, b in rates], 3)
    assert result.base_rate == pytest.approx(sum(a for a, _ in rates) / 3 / len(rates))
    assert result.difference == pytest.approx(sum(b - a for a, b in rates) / 3 / len(rates), abs=1e-12)
    assert result.p == shuffle_test([TaskCounts(a, 3, b, 3) for a, b in rates])
    assert -1 <= result.interval.low <= result.interval.high <= 1
    assert (result.interval.low <= 0 <= result.interval.high) == (result.p >= result.alpha)
    names = {word: {pair.name for pair in pairs} for word, pairs in result.changes}
    lower, higher = (
        names.get(a, set()) | names.get(b, set()) for a, b in (("regressed", "lower"), ("fixed", "higher"))
    )
    assert lower == {f"t{i}" for i, (a, b) in enumerate(rates) if b < a}
    assert higher == {f"t{i}" for i, (a, b) in enumerate(rates) if b > a}


def test_identical_sets_of_50_tasks_show_no_regression() -> None:
    passed = [i % 5 for i in range(50)]
    result = compared(passed, passed)
    assert (result.verdict, result.p) == (Verdict.NO_REGRESSION, 1.0)
    assert result.interval.low == pytest.approx(-0.078, abs=0.001), "equal results are no certainty"
    assert result.reason == "a loss of 10 points is outside the interval (-7.8 to +7.8 points)"
    assert (result.trials_per_task, result.changes) == (None, [])


def test_few_trials_cannot_exclude_a_loss() -> None:
    result = compared([1] * 6, [1] * 6, 1)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason == "6 trials can't exclude a loss of 10 points; at least 35 in each set are needed"
    assert result.trials_per_task is not None
    assert result.trials_per_task >= 6
    assert result.trials_needed == 6 * result.trials_per_task


def test_three_single_trials_can_show_nothing() -> None:
    result = compared([1] * 3, [0] * 3, 1)
    assert (result.verdict, result.smallest_p) == (Verdict.INCONCLUSIVE, 0.25)


def test_one_task_can_show_a_regression() -> None:
    result = compared([8], [0], 8)
    assert (result.verdict, result.reason) == (Verdict.REGRESSION, "pass rate fell by 100 points (p = 0.00016)")
    assert [pair.name for pair in result.regressed] == ["t0"]


def test_tasks_are_named_beyond_chance_only() -> None:
    result = compared([4, 4, 4, 3, 2] * 10, [4, 4, 3, 2, 2] * 10)
    assert result.regressed == ()
    assert len(result.lower) == 20
    broken = compared([8] * 9 + [4], [8] * 7 + [0, 0, 5], 8)
    assert [(word, [pair.name for pair in pairs]) for word, pairs in broken.changes] == [
        ("regressed", ["t7", "t8"]),
        ("higher", ["t9"]),
    ]


def test_a_loss_is_a_regression_and_a_gain_is_none() -> None:
    loss = compared([4] * 10, [2] * 10)
    assert (loss.verdict, loss.reason) == (Verdict.REGRESSION, "pass rate fell by 50 points (p = 4.1e-07)")
    assert len(loss.lower) == 10
    gain = compared([2] * 10, [4] * 10)
    assert gain.verdict is Verdict.NO_REGRESSION
    assert gain.p == loss.p


def test_a_wide_interval_is_inconclusive() -> None:
    comparison = compared([2, 0, 2, 1, 2, 0, 1, 2] * 3, [0, 2, 1, 2, 2, 1, 0, 1] * 3, 2)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.interval.low < -0.1
    assert "points is possible" in comparison.reason
    assert comparison.trials_per_task is not None
    assert comparison.trials_per_task > 2
    assert compared([2, 0, 2, 1, 2, 0, 1, 2] * 3, [0, 2, 1, 2, 2, 1, 0, 1] * 3, 2, 0.9).verdict is Verdict.NO_REGRESSION


def test_tasks_without_a_counterpart_are_listed() -> None:
    base = [*trials_of("both", 1, 2), *trials_of("old", 1, 2), summary("unscored", 0), summary(None, 3)]
    candidate = [*trials_of("both", 2, 3), *trials_of("new10", 1, 1), *trials_of("new9", 1, 1)]
    candidate += trials_of("unscored", 1, 1)
    comparison = gate(matrix(base), matrix(candidate))
    assert [pair.name for pair in comparison.pairs] == ["both"]
    assert comparison.pairs[0].difference == Fraction(1, 6)
    assert [task.name for task in comparison.only_base] == ["old"]
    assert [task.name for task in comparison.only_candidate] == ["new9", "new10"]
    assert [(a.name, b.counts.scored) for a, b in comparison.unscored] == [("unscored", 1)]


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
    passed = [4, 4, 4, 4, 0] * 4
    base = set_of(passed, 4, usage=Usage(total_tokens=100), duration_ms=5.0)
    candidate = set_of(passed, 4, usage=Usage(total_tokens=200), duration_ms=5.0)
    comparison = gate(matrix(base), matrix(candidate))
    assert comparison.verdict is Verdict.NO_REGRESSION
    tokens, duration = comparison.metrics["tokens"], comparison.metrics["duration_ms"]
    assert (tokens.tasks, tokens.base, tokens.candidate, tokens.interval) == (20, 100, 200, (100, 100))
    assert tokens.p < 0.001
    assert tokens.adjusted_p == pytest.approx(2 * tokens.p)
    assert (duration.p, duration.adjusted_p) == (1.0, 1.0)
    assert [*comparison.metrics] == ["tokens", "duration_ms"]
    single = gate(matrix(base[:1]), matrix(candidate[:1]))
    assert single.metrics["tokens"].interval.low <= 0


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
    (pair,) = gate(base, matrix([scored("c0", False)])).lower
    assert first_divergence(pair, runs.get) is None, "the same steps"
    (pair,) = gate(base, matrix([scored("c1", False)])).lower
    divergence = first_divergence(pair, runs.get)
    assert divergence is not None
    assert (divergence.base.path, divergence.candidate.path) == ("/traces/b1.json", "/traces/c1.json")
    assert divergence.base_span is not None
    assert (divergence.step, divergence.base_span.id, divergence.candidate_span) == (3, "s2", None)
    (pair,) = gate(matrix([scored("b0", False)]), matrix([scored("d", True)])).higher
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
        summaries = [run.summary for ref, run in runs.items() if ref.path[8] == letter]
        return [summary.replace(task="t", trial=str(i), outcome=outcome) for i, summary in enumerate(summaries)]

    comparison = gate(matrix(scored("b", Outcome.PASSED)), matrix(scored("c", Outcome.FAILED)))
    divergence = first_divergence(comparison.pairs[0], runs.get)
    assert divergence is not None
    assert (divergence.base.path, divergence.candidate.path) == ("/traces/b1.json", "/traces/c1.json")
    assert divergence.step == 2
    only_base = {ref: run for ref, run in runs.items() if ref.path[8] == "b"}
    assert first_divergence(comparison.pairs[0], only_base.get) is None
