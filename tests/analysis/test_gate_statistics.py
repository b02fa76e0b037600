"""Statistics of the gate against plain enumerations of what they compute, and how often they are wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.analysis.contrast import Interval
from tracetui.analysis.gate_statistics import (
    TaskCounts,
    Values,
    agree,
    change_interval,
    lower_beyond_chance,
    mean_change,
    metric_test,
    shuffle_test,
    smallest_p,
    student_quantile,
    trials_per_task,
    trials_to_exclude,
)

SIDES = st.integers(1, 4).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))
TASKS = st.lists(st.builds(lambda base, candidate: TaskCounts(*base, *candidate), SIDES, SIDES), min_size=1, max_size=3)


def suite(
    rates: Sequence[float], trials: tuple[int, int], chance: random.Random, loss: float = 0.0
) -> list[TaskCounts]:
    """Draw the trials of both sets; every rate is lower by `loss` in the candidate, at least 0."""
    base, candidate = trials
    return [
        TaskCounts(
            sum(chance.random() < rate for _ in range(base)),
            base,
            sum(chance.random() < rate - loss for _ in range(candidate)),
            candidate,
        )
        for rate in rates
    ]


def shuffled_changes(tasks: Sequence[TaskCounts]) -> Iterator[float]:
    """The mean change of every shuffle of the results of each task over its trials."""
    selections = [list(combinations(range(task.trials), task.passed)) for task in tasks]
    for passed in product(*selections):
        changes = [
            sum(trial >= task.base for trial in scores) / task.candidate
            - sum(trial < task.base for trial in scores) / task.base
            for task, scores in zip(tasks, passed, strict=True)
        ]
        yield sum(changes) / len(tasks)


# ---- test


@given(TASKS)
def test_p_is_twice_the_share_of_shuffles_at_least_as_extreme(tasks: list[TaskCounts]) -> None:
    changes, observed = list(shuffled_changes(tasks)), mean_change(tasks)
    low = sum(change <= observed + 1e-9 for change in changes) / len(changes)
    high = sum(change >= observed - 1e-9 for change in changes) / len(changes)
    assert shuffle_test(tasks) == pytest.approx(min(1.0, 2 * min(low, high)), abs=1e-9)


def test_p_of_many_tasks_with_different_trials_is_right_to_a_thousandth() -> None:
    chance = random.Random(7)
    tasks = [TaskCounts(chance.randint(0, n), n, chance.randint(0, m), m) for n, m in ((11, 7), (13, 9), (5, 8)) * 4]
    trials = [[1] * task.passed + [0] * (task.trials - task.passed) for task in tasks]
    observed, draws, low = mean_change(tasks) * len(tasks), 20_000, 0
    for _ in range(draws):
        total = 0.0
        for task, results in zip(tasks, trials, strict=True):
            passed = sum(chance.sample(results, task.candidate))
            total += passed / task.candidate - (task.passed - passed) / task.base
        low += total <= observed
    share = low / draws
    assert shuffle_test(tasks) == pytest.approx(2 * min(share, 1 - share), abs=0.015)


def test_equal_results_give_no_evidence() -> None:
    assert shuffle_test([TaskCounts(4, 4, 4, 4), TaskCounts(0, 4, 0, 4)]) == 1.0
    assert shuffle_test([TaskCounts(2, 4, 2, 4)] * 5) == 1.0


def test_one_task_can_be_enough() -> None:
    assert shuffle_test([TaskCounts(8, 8, 0, 8)]) == pytest.approx(2 / 12870)


@given(TASKS)
def test_the_smallest_p_is_that_of_all_results_of_the_candidate(tasks: list[TaskCounts]) -> None:
    results = product(*(range(task.candidate + 1) for task in tasks))
    smallest = min(
        shuffle_test([task._replace(candidate_passed=passed) for task, passed in zip(tasks, result, strict=True)])
        for result in results
    )
    assert smallest_p(tasks) == pytest.approx(smallest)


# ---- interval


def test_the_interval_of_equal_results_is_no_point() -> None:
    low, high = change_interval([TaskCounts(4, 4, 4, 4)] * 50, 0.05)
    assert low < -0.015
    assert high > 0.015


def test_the_interval_of_a_task_is_that_of_miettinen_and_nurminen() -> None:
    """56 of 70 against 48 of 80, the example of Newcombe (1998): .0528 to .3382."""
    low, high = change_interval([TaskCounts(48, 80, 56, 70)], 0.05)
    assert low == pytest.approx(0.0528, abs=0.012)
    assert high == pytest.approx(0.3382, abs=0.012)


@given(TASKS)
def test_exchanging_the_sets_mirrors_the_interval(tasks: list[TaskCounts]) -> None:
    low, high = change_interval(tasks, 0.05)
    mirrored = change_interval([task.swapped for task in tasks], 0.05)
    assert mirrored.low == pytest.approx(-high, abs=1e-6)
    assert mirrored.high == pytest.approx(-low, abs=1e-6)
    assert -1 <= low <= mean_change(tasks) + 1e-9
    assert mean_change(tasks) - 1e-9 <= high <= 1


@pytest.mark.parametrize(
    ("p", "change", "interval"),
    [(0.2, -0.1, (-0.3, 0.0)), (0.01, -0.1, (-0.3, -1e-9)), (0.01, 0.1, (1e-9, 0.2))],
)
def test_interval_and_p_agree(p: float, change: float, interval: tuple[float, float]) -> None:
    given_interval = Interval(-0.3, -0.05) if p > 0.05 else Interval(-0.3, 0.2)
    low, high = agree(given_interval, p, change, 0.05)
    assert (low, high) == interval


# ---- how often a verdict is wrong


@pytest.mark.parametrize(("tasks", "trials"), [(20, (4, 4)), (20, (1, 8)), (10, (8, 1))])
def test_equal_agents_seldom_differ(tasks: int, trials: tuple[int, int]) -> None:
    """The test that flips signs calls one in four of the suites with 1 against 8 trials a regression."""
    chance = random.Random(f"{tasks} {trials}")
    alarms = 0
    for _ in range(400):
        counts = suite([0.95] * tasks, trials, chance)
        alarms += shuffle_test(counts) < 0.05 and mean_change(counts) < 0
    assert alarms / 400 <= 0.04


@pytest.mark.parametrize(("tasks", "trials"), [(6, (1, 1)), (6, (4, 4)), (10, (4, 4))])
def test_a_loss_of_ten_points_is_seldom_excluded(tasks: int, trials: tuple[int, int]) -> None:
    chance = random.Random(f"{tasks} {trials}")
    excluded = covered = 0
    for _ in range(300):
        counts = suite([1.0] * tasks, trials, chance, loss=0.1)
        low, high = change_interval(counts, 0.05)
        enough = min(trials) * tasks >= trials_to_exclude(0.1, 0.05)
        excluded += low > -0.1 and enough
        covered += low <= -0.1 <= high
    assert excluded / 300 <= 0.05
    assert covered / 300 >= 0.9


def test_concentrated_losses_show() -> None:
    """Two of ten tasks break: the tasks are fixed, so that their loss isn't taken for the spread between tasks."""
    chance, alarms = random.Random(3), 0
    for _ in range(100):
        counts = suite([0.9] * 8, (8, 8), chance) + suite([1.0] * 2, (8, 8), chance, loss=1.0)
        alarms += shuffle_test(counts) < 0.05
    assert alarms >= 85


# ---- single tasks


def test_tasks_are_named_beyond_chance_only() -> None:
    broken, steady = TaskCounts(8, 8, 0, 8), TaskCounts(6, 8, 4, 8)
    assert lower_beyond_chance([steady, broken, steady, broken], 0.05) == [1, 3]
    assert lower_beyond_chance([TaskCounts(4, 8, 1, 8)] * 20, 0.05) == []
    assert lower_beyond_chance([TaskCounts(1, 1, 0, 1)] * 50, 0.05) == [], "single trials name no task"
    assert lower_beyond_chance([task.swapped for task in (steady, broken)], 0.05) == []


def test_equal_agents_have_no_named_task() -> None:
    chance = random.Random(11)
    rates = [chance.random() for _ in range(50)]
    named = sum(bool(lower_beyond_chance(suite(rates, (8, 8), chance), 0.05)) for _ in range(200))
    assert named / 200 <= 0.05


# ---- numbers of trials


def test_trials_without_a_failure_that_exclude_a_loss() -> None:
    assert [trials_to_exclude(effect, 0.05) for effect in (0.2, 0.1, 0.05)] == [16, 35, 73]


def test_suites_with_the_trials_asked_for_settle() -> None:
    """Losses of 0, 5, 10 and 20 points, equally often; the hardest is half of the smallest effect."""
    chance = random.Random(5)
    first = suite([0.9] * 20, (1, 1), chance)
    trials = trials_per_task(first, alpha=0.05, min_effect=0.1)
    assert trials is not None
    settled = 0
    for loss in (0.0, 0.05, 0.1, 0.2) * 25:
        counts = suite([0.9] * 20, (trials, trials), chance, loss)
        low, _ = change_interval(counts, 0.05)
        settled += low > -0.1 or (shuffle_test(counts) < 0.05 and mean_change(counts) < 0)
    assert settled >= 60


def test_more_than_a_hundred_trials_are_no_advice() -> None:
    assert trials_per_task([TaskCounts(3, 3, 0, 3)], alpha=0.05, min_effect=0.1) is None


# ---- metrics


def test_metrics_are_shuffled_within_tasks() -> None:
    """Tasks differ by far more than the sets: only comparisons within tasks show the change."""
    chance = random.Random(2)
    tasks = [
        Values([level + chance.gauss(0, 1) for _ in range(6)], [level + 3 + chance.gauss(0, 1) for _ in range(6)])
        for level in (10, 100, 1_000)
    ]
    change, interval, p = metric_test(tasks, 0.05)
    assert change == pytest.approx(3, abs=1)
    assert 0 < interval.low < 3 < interval.high
    assert p < 0.001
    same = metric_test([Values(task.base, task.base) for task in tasks], 0.05)
    assert same.p > 0.9
    assert same.interval.low < 0 < same.interval.high


def test_few_values_cannot_have_a_small_p() -> None:
    change = metric_test([Values([1.0], [2.0]), Values([1.0], [2.0])], 0.05)
    assert change.p >= 0.5
    assert change.interval.low <= 0


def test_constant_metrics_do_not_change() -> None:
    assert metric_test([Values([5.0] * 4, [5.0] * 4)] * 3, 0.05) == (0.0, (0.0, 0.0), 1.0)


def test_skewed_metrics_of_equal_agents_seldom_differ() -> None:
    chance, alarms = random.Random(4), 0
    for _ in range(120):
        tasks = [
            Values([chance.lognormvariate(0, 1) for _ in range(n)], [chance.lognormvariate(0, 1) for _ in range(m)])
            for n, m in ((1, 6), (4, 4), (6, 2), (3, 3))
        ]
        alarms += metric_test(tasks, 0.05).p < 0.05
    assert alarms / 120 <= 0.1


@pytest.mark.parametrize(
    ("share", "freedom", "quantile"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.995, 7, 3.4995), (0.975, 3, 3.1824), (0.975, 120, 1.9799)],
)
def test_quantiles_of_students_t_are_those_of_tables(share: float, freedom: float, quantile: float) -> None:
    assert student_quantile(share, freedom) == pytest.approx(quantile, rel=2e-3)
