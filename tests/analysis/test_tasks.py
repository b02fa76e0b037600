"""The matrix: task identity, counts, pass^k, spreads and column groups."""

from __future__ import annotations

import json
import random
from itertools import combinations
from math import comb, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.build import summary, trials_of
from tests.shared import needs_shared, sample
from tracetui.analysis.tasks import (
    SORTS,
    Counts,
    Group,
    Result,
    arrange,
    compared_directories,
    matrix,
    natural,
    result_of,
    sortable,
)
from tracetui.model import Status, TaskKey, Usage

SCORES = st.lists(st.integers(0, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=6)


@given(st.integers(0, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_pass_hat_by_k_equals_its_definition(numbers: tuple[int, int]) -> None:
    passed, scored = numbers
    rates = Counts(scored, passed, scored - passed).pass_hat
    assert [*rates] == [*range(1, scored + 1)]
    assert all(isclose(value, comb(passed, k) / comb(scored, k), abs_tol=1e-12) for k, value in rates.items())


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_pass_hat_is_the_share_of_draws_that_all_pass(numbers: tuple[int, int]) -> None:
    passed, scored = numbers
    for k, value in Counts(scored, passed, scored - passed).pass_hat.items():
        draws = list(combinations([i < passed for i in range(scored)], k))
        assert isclose(value, sum(map(all, draws)) / len(draws), abs_tol=1e-12)


@given(SCORES)
def test_overall_pass_hat_is_the_mean_over_tasks_with_enough_trials(scores: list[tuple[int, int]]) -> None:
    runs = [run for i, (passed, scored) in enumerate(scores) for run in trials_of(f"t{i}", passed, scored)]
    rates = matrix(runs).rates
    for k in range(1, 6):
        values = [comb(c, k) / comb(n, k) for c, n in scores if n >= k]
        assert rates.pass_hat_tasks.get(k, 0) == len(values)
        assert not values or isclose(rates.pass_hat[k], sum(values) / len(values))


@needs_shared
@pytest.mark.shared
def test_pass_hat_of_tau_bench_equals_the_share_of_all_draws() -> None:
    records = json.loads(sample("tau-bench", "gpt-4o-airline-even.json").read_bytes())
    passed: dict[str, list[bool]] = {}
    for record in records:
        passed.setdefault(str(record["task_id"]), []).append(record["reward"] == 1)
    rates = matrix(summary(task, i, passed=p) for task, trials in passed.items() for i, p in enumerate(trials)).rates
    assert rates.pass_hat_tasks == dict.fromkeys(range(1, 5), 25)
    for k in range(1, 5):
        draws = [list(combinations(trials, k)) for trials in passed.values()]
        assert isclose(rates.pass_hat[k], sum(sum(map(all, draw)) / len(draw) for draw in draws) / 25)


def test_the_matrix_does_not_depend_on_the_order_of_runs() -> None:
    runs = [run for i in range(4) for run in trials_of(f"t{i}", i, 5, repeats=f"r{i}")]
    runs += [summary(None, i, repeats="x", passed=True) for i in range(3)] + [summary(None, 9)]
    shuffled = runs[:]
    random.Random(1).shuffle(shuffled)
    assert matrix(shuffled) == matrix(runs)


def test_a_task_is_recorded_or_derived() -> None:
    runs = [summary("a", 0, repeats="r"), summary("a", 1, repeats="s"), summary(None, 0, repeats="r", prompt="Book it")]
    runs.append(summary(None, 5))
    by_task = matrix(runs)
    assert [(task.key, task.name, task.source, len(task.trials)) for task in by_task.tasks] == [
        (TaskKey("r", derived=True), "Book it", "inferred: same name and first input", 1),
        (TaskKey("a"), "a", "recorded in the trace", 2),
    ]
    assert by_task.without_task == (runs[-1],)


def test_forks_belong_to_the_task_of_their_original_and_count_in_no_rate() -> None:
    first = summary("a", 0, passed=True, started_at=1.0)
    fork = summary(None, 1, passed=False, replay_of=first.id, relation="fork", repeats="other")
    retry = summary(None, 2, passed=False, replay_of=fork.id, relation="retry")
    replay = summary("a", 3, passed=False, replay_of="gone")
    student = summary("a", 4, passed=False, replay_of=first.id, relation="student")
    lost = summary(None, 6, replay_of="gone", relation="fork")
    by_task = matrix([lost, student, replay, retry, fork, first])
    (task,) = by_task.tasks
    assert [trial.excluded for trial in task.trials] == [None, "fork", "retry", "replay", None]
    assert task.counts == by_task.rates.counts == Counts(runs=5, passed=1, failed=1, excluded=3)
    assert by_task.without_task == (lost,)
    assert task.counted == [task.trials[0], task.trials[4]]


def test_runs_without_a_task_that_inherit_from_each_other_are_a_family_without_rates() -> None:
    passed = summary(None, 0, passed=True).replace(id="first", prompt="Plant an ash")
    runs = [
        passed,
        summary(None, 1).replace(id="fork", replay_of="first", relation="fork"),
        summary(None, 2).replace(id="again", replay_of="fork", relation="retry", status=Status.ERROR),
        summary(None, 3).replace(id="alone"),
        summary(None, 4).replace(id="lost", replay_of="gone", relation="fork"),
        summary(None, 5).replace(id="later", replay_of="lost", relation="fork"),
    ]
    by_task = matrix(runs)
    assert by_task == matrix(runs[::-1])
    families = {tuple(trial.run.id for trial in task.trials): task for task in by_task.tasks}
    assert {*families} == {("first", "fork", "again"), ("lost", "later")}
    family = families["first", "fork", "again"]
    assert (family.name, family.source) == ("Plant an ash", "inferred: replays, forks and retries of one run")
    assert [trial.excluded for trial in family.trials] == ["original", "fork", "retry"]
    assert (family.counts.scored, by_task.rates.counts.pass_rate) == (0, None)
    assert [run.id for run in by_task.without_task] == ["alone"]


def test_a_selected_fork_keeps_the_task_of_its_unselected_original() -> None:
    first = summary("a", 0, passed=True)
    fork = summary(None, 1, replay_of=first.id, relation="fork")
    assert matrix([fork]).without_task == (fork,)
    (task,) = matrix([fork], among=[first, fork]).tasks
    assert (task.name, task.counts) == ("a", Counts(runs=1, excluded=1))


def test_directories_are_column_groups() -> None:
    runs = trials_of("a", 1, 2, "new/") + trials_of("a", 2, 2, "old/") + trials_of("a", 1, 1, "old/inner/")
    by_task = matrix(runs, directories=["/traces/old", "/traces/new/", "/traces/old/inner"])
    assert [group.directory for group in by_task.groups] == ["/traces/old", "/traces/new/", "/traces/old/inner"]
    assert [rates.counts.pass_rate for rates in by_task.groups.values()] == [1.0, 0.5, 1.0]
    (task,) = by_task.tasks
    assert sum(counts.runs for counts in task.groups.values()) == len(task.trials) == 5


@pytest.mark.parametrize(("paths", "compared"), [(0, 0), (1, 0), (2, 2), (8, 8), (9, 0)])
def test_two_to_eight_paths_are_compared(paths: int, compared: int) -> None:
    assert len(compared_directories([str(i) for i in range(paths)])) == compared


def test_tasks_are_sorted_by_any_column_and_those_without_a_value_come_last() -> None:
    rates = {"t2": (4, 4), "t10": (1, 4), "t9": (2, 4)}
    runs = [run for task, (passed, scored) in rates.items() for run in trials_of(task, passed, scored)]
    runs += trials_of("t9", 0, 1, "x/", usage=Usage(cost_usd=2.0)) + trials_of(
        "t2", 1, 1, "x/", usage=Usage(cost_usd=3.0)
    )
    runs.append(summary("u", 0))
    tasks = matrix(runs).tasks

    def order(by: str, *, reverse: bool = False) -> str:
        return " ".join(task.name for task in arrange(tasks, by, reverse=reverse))

    assert [task.name for task in arrange(tasks, SORTS[0])] == [task.name for task in tasks]
    assert order("name") == "t2 t9 t10 u"
    assert order("name", reverse=True) == "u t10 t9 t2"
    assert order("failures") == "t9 t10 t2 u"
    assert order("failures", reverse=True) == "t2 t9 t10 u"
    assert order("cost") == "t2 t9 t10 u"
    assert order("cost", reverse=True) == "t9 t2 t10 u"
    assert sortable(tasks) == ("instability", "failures", "cost", "name")


def test_a_run_in_two_files_counts_once() -> None:
    runs = [summary("a", i, passed=True, identity="same") for i in range(2)]
    (task,) = matrix(runs).tasks
    assert task.counts == Counts(runs=2, passed=1, excluded=1)
    assert task.trials[1].excluded == "copy"


@pytest.mark.parametrize(
    ("status", "passed", "result"),
    [
        (Status.ERROR, None, Result.FAILED),
        (Status.ERROR, True, Result.PASSED),
        (Status.OK, None, Result.UNSCORED),
        (Status.CANCELLED, None, Result.UNSCORED),
        (Status.RUNNING, None, Result.RUNNING),
        (Status.PAUSED, None, Result.RUNNING),
        (Status.RUNNING, False, Result.FAILED),
        (Status.OK, True, Result.PASSED),
    ],
)
def test_the_result_of_a_trial(status: Status, passed: bool | None, result: Result) -> None:
    assert result_of(summary("a", 0, passed=passed, status=status)) is result


def test_unscored_and_running_trials_are_counted_apart() -> None:
    runs = [*trials_of("a", 1, 2), summary("a", 2), summary("a", 3, status=Status.RUNNING), summary("b", 0)]
    unstable, unscored = matrix(runs).tasks
    assert unstable.counts == Counts(runs=4, passed=1, failed=1, unscored=1, running=1)
    assert (unstable.counts.pass_rate, unstable.instability) == (0.5, 1.0)
    assert (unscored.counts.pass_rate, unscored.instability, unscored.counts.pass_hat) == (None, None, {})


def test_the_least_stable_task_comes_first() -> None:
    rates = {"stable": (4, 4), "broken": (0, 4), "mixed": (2, 4), "nearly": (3, 4)}
    by_task = matrix(run for task, (passed, scored) in rates.items() for run in trials_of(task, passed, scored))
    assert [task.name for task in by_task.tasks] == ["mixed", "nearly", "broken", "stable"]
    assert [task.instability for task in by_task.tasks] == [pytest.approx(4 / 6), 0.5, 0.0, 0.0]


def test_the_difference_of_two_models_is_no_instability() -> None:
    apart = trials_of("apart", 3, 3, model="m") + trials_of("apart", 0, 3, folder="n/", model="n")
    mixed = trials_of("mixed", 2, 3, model="m") + trials_of("mixed", 3, 3, folder="n/", model="n")
    by_task = matrix(apart + mixed + trials_of("single", 1, 1, model="m") + trials_of("single", 0, 1, "n/", model="n"))
    assert [(task.name, task.instability) for task in by_task.tasks] == [
        ("mixed", pytest.approx(2 / 6)),
        ("apart", 0.0),
        ("single", None),
    ]


def test_metrics_are_spread_over_the_trials_that_have_them() -> None:
    used = [Usage(input_tokens=10, cost_usd=0.5), Usage(total_tokens=30), None]
    runs = [summary("a", i, usage=usage, duration_ms=5.0 * i) for i, usage in enumerate(used)]
    runs.append(summary("a", 8, usage=Usage(total_tokens=99), status=Status.RUNNING))
    (task,) = matrix(runs).tasks
    tokens = task.spreads["tokens"]
    assert (tokens.trials, tokens.total, tokens.low, tokens.mean, tokens.high) == (2, 40, 10, 20, 30)
    assert task.spreads["cost_usd"].trials == 1
    assert task.spreads["duration_ms"].total == 15
    assert "steps" not in task.spreads


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300])
def test_metrics_that_are_no_sensible_numbers_count_as_not_stated(value: float) -> None:
    runs = [summary("a", 0, duration_ms=value, usage=Usage(total_tokens=10**400)), summary("a", 1, duration_ms=2.0)]
    (task,) = matrix(runs).tasks
    assert task.spreads["duration_ms"].total == 2.0
    assert "tokens" not in task.spreads


def test_agents_and_models_have_rates_of_their_own() -> None:
    runs = trials_of("a", 2, 2, agent="x", model="m") + trials_of("a", 0, 2, folder="o/", agent="x", model="n")
    runs += trials_of("b", 1, 3, agent="x", model="n")
    by_task = matrix(runs)
    first, second = Group("x", "m"), Group("x", "n")
    assert [*by_task.groups] == [first, second]
    assert by_task.groups[first].pass_hat == {1: 1.0, 2: 1.0}
    assert by_task.groups[second].pass_hat_tasks == {1: 2, 2: 2, 3: 1}
    assert by_task.groups[second].counts.pass_rate == 1 / 5
    assert next(task for task in by_task.tasks if task.name == "a").groups[first].passed == 2


def test_numbers_in_trial_names_sort_as_numbers() -> None:
    names = ["t10", "t9", "", "t9b2", "10", "t"]
    assert sorted(names, key=natural) == ["", "10", "t", "t9", "t9b2", "t10"]
    runs = [summary("a", i) for i in (10, 9, 1)]
    assert [trial.run.trial for trial in matrix(runs).tasks[0].trials] == ["1", "9", "10"]
