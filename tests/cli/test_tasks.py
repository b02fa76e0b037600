"""``tracetui tasks`` and ``tracetui gate``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.canaries import CANARY, SHAPED
from tests.cli.run import LONG_AGO, Cli

SAMPLE = Path("traces/penelope/refund/test_result.json")


def write_set(folder: str, passed: dict[str, list[bool]]) -> None:
    """Trials of tasks; failed ones ask something else in their second turn."""
    sample: dict[str, Any] = json.loads(SAMPLE.read_text())
    for task, trials in passed.items():
        for i, good in enumerate(trials):
            run = json.loads(json.dumps(sample))
            run |= {"test_id": task, "goal_achieved": good, "status": "success" if good else "failure"}
            run["goal_evaluation"]["all_criteria_met"] = good
            for criterion in run["goal_evaluation"]["criteria_evaluations"]:
                criterion["met"] = good
            if not good:
                run["conversation_summary"][1]["penelope_message"] = "Something else."
                run["history"][1]["assistant_message"]["content"] = "Something else."
            path = Path(folder, f"{task}-{i}", "test_result.json")
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(run))
            os.utime(path, (LONG_AGO, LONG_AGO))


def test_people_get_a_table_and_sentences(cli: Cli) -> None:
    write_set("runs", {"easy": [True, True], "mixed": [True, False, True, False], "single": [False]})
    result = cli("tasks", "runs")
    assert result.status == 0
    assert result.text.splitlines() == [
        "TRIALS  PASSED  FAILED  RATE  PASS^2  PASS^3  PASS^4  TOKENS  COST  TIME  TASK",
        "     4       2       2   50%     17%      0%      0%     310     —  5.2s  mixed",
        "     2       2       0  100%    100%       —       —     310     —  5.2s  easy",
        "     1       0       1    0%       —       —       —     310     —  5.2s  single",
    ]
    assert result.err.splitlines() == [
        "tracetui: 3 tasks, 7 trials · pass^1 50% (3 tasks) · pass^2 58% (2 tasks) · pass^3 0% (1 task) · "
        "pass^4 0% (1 task)",
        "tracetui: 1 task with 1 scored trial: stability unknown",
    ]


def test_scripts_get_the_first_fork_too(cli: Cli) -> None:
    write_set("runs", {"easy": [True, True], "mixed": [True, False, True, False]})
    data = cli("tasks", "runs", "--json").data
    assert data["schema"] == "tracetui/tasks/1"
    assert data["pass_hat"] == {"1": 0.75, "2": pytest.approx(7 / 12), "3": 0, "4": 0}
    assert data["pass_hat_tasks"] == {"1": 2, "2": 2, "3": 1, "4": 1}
    mixed, easy = data["tasks"]
    assert (mixed["task"], mixed["source"], mixed["trials"], mixed["passed"], mixed["failed"]) == (
        "mixed",
        "trace",
        4,
        2,
        2,
    )
    assert mixed["pass_rate"] == 0.5
    fork = mixed["first_fork"]
    assert fork["step"] == 2
    assert sorted((len(branch["runs"]), branch["passed"], branch["failed"]) for branch in fork["branches"]) == [
        (2, 0, 2),
        (2, 2, 0),
    ]
    assert fork["p"] == pytest.approx(1 / 3)
    assert (fork["decisive"], fork["trials_to_decide"]) == (False, 8)
    assert easy["first_fork"] is None


def test_directories_are_compared_side_by_side(cli: Cli) -> None:
    write_set("old", {"a": [True, True], "b": [False]})
    write_set("new", {"a": [True, False], "c": [True]})
    lines = cli("tasks", "old", "new").text.splitlines()
    assert lines[0].split()[:6] == ["TRIALS", "PASSED", "FAILED", "RATE", "old", "new"]
    assert lines[1].split()[:8] == ["4", "3", "1", "75%", "100%", "2/2", "50%", "1/2"]
    groups = cli("tasks", "old", "new", "--json").data["groups"]
    assert [(group["directory"], group["pass_rate"]) for group in groups] == [("old", 2 / 3), ("new", 2 / 3)]
    assert cli("tasks", "old", "--json").data["groups"][0]["directory"] is None


def test_a_query_chooses_runs(cli: Cli) -> None:
    write_set("runs", {"a": [True, True]})
    assert cli("tasks", "runs", "-q", "status:running", "--json").data["tasks"] == []


def test_runs_outside_all_rates_are_counted(cli: Cli) -> None:
    result = cli("tasks", "traces")
    assert result.status == 0
    assert "6 runs without a task" in result.err
    assert "1 unreadable file; `tracetui doctor` lists them" in result.err


def test_no_regression_regression_and_inconclusive(cli: Cli) -> None:
    stable = {f"t{i}": [i % 2 == 0] * 4 for i in range(24)}
    write_set("base", stable)
    write_set("worse", {task: [False] * 4 for task in stable})
    write_set("few", {task: stable[task] for task in ("t0", "t1", "t3")})

    same = cli("gate", "base", "base", "--json")
    assert (same.status, same.data["verdict"], same.data["p"]) == (0, "no_regression", 1)
    low, high = same.data["interval"]
    assert -0.1 < low < 0 < high < 0.1
    worse = cli("gate", "base", "worse", "--json")
    assert (worse.status, worse.data["verdict"], worse.data["paired_tasks"]) == (1, "regression", 24)
    assert worse.data["candidate"] == {"pass_rate": 0}
    first = worse.data["regressed"][0]
    assert (first["base_passed"], first["candidate_passed"]) == (4, 0)
    assert first["first_divergence"]["step"] == 2
    assert set(worse.data["metrics"]) >= {"tokens", "steps"}
    few = cli("gate", "base", "few", "--json")
    assert (few.status, few.data["verdict"]) == (4, "inconclusive")
    assert few.data["trials_per_task"] > 4
    assert few.data["trials_needed"] == 3 * few.data["trials_per_task"]
    assert len(few.data["only_base"]) == 21


def test_people_get_the_verdict_first(cli: Cli) -> None:
    write_set("base", {f"t{i}": [True, True] for i in range(8)})
    write_set("worse", {f"t{i}": [False, True] for i in range(8)} | {"new": [True]})
    result = cli("gate", "base", "worse")
    lines = result.text.splitlines()
    assert lines[0] == "Regression: pass rate fell by 50 points (p = 0.0078)"
    assert lines[3].split() == ["pass", "rate", "100%", "50%", "-50.0", "points", "(-74.6", "to", "-20.4)", "0.008"]
    assert "lower   2 of 2     1 of 2  step 2            t0" in lines
    assert lines[-1].split() == ["only", "in", "candidate", "new"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["base"], "gate takes two paths"),
        (["base", "gone"], "gone"),
        (["base", "other"], "none is in both"),
        (["base", "base", "--alpha", "2"], "between 0 and 1"),
    ],
)
def test_trouble_ends_in_2(cli: Cli, arguments: list[str], message: str) -> None:
    write_set("base", {"a": [True]})
    write_set("other", {"b": [True]})
    result = cli("gate", *arguments)
    assert (result.status, result.out) == (2, b"")
    assert message in result.err


def test_a_command_wins_over_a_folder_of_its_name(cli: Cli) -> None:
    write_set("tasks", {"a": [True]})
    assert "tasks is a command; `tracetui ./tasks` opens the folder" in cli("tasks").err
    Path("gate").mkdir()
    assert "gate is a command; `tracetui ./gate` opens the folder" in cli("gate").err
    assert "a" in cli("./tasks").text


def test_names_of_tasks_pass_the_text_gate(cli: Cli) -> None:
    write_set("runs", {"evil": [True, False]})
    for path in Path("runs").rglob("*.json"):
        path.write_text(path.read_text().replace('"evil"', '"ev\\u001b[31mil"'))
    for arguments in (["tasks", "runs"], ["tasks", "runs", "--json"], ["gate", "runs", "runs"]):
        assert b"\x1b" not in cli(*arguments).out


def test_secrets_in_names_of_tasks_are_masked(cli: Cli) -> None:
    write_set("runs", {"plain": [True, False]})
    for path in Path("runs").rglob("*.json"):
        path.write_text(path.read_text().replace('"plain"', f'"use {SHAPED["github"]}"'))
    assert CANARY in cli("tasks", "runs", "--json").text
    for arguments in (["tasks", "runs"], ["gate", "runs", "runs"]):
        for options in ([], ["--json", "--redact"]):
            result = cli(*arguments, *options)
            assert result.text
            assert CANARY not in result.text + result.err
