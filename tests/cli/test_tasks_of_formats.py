"""``tracetui tasks --json`` of every format that has repeated runs: its tasks, trials and column groups."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import LONG_AGO, Cli
from tests.cli.test_tasks import write_set
from tests.formats import hypergraph_build, inspect_build, test_harbor, test_latticeflow, test_paprika, test_swe_agent
from tests.formats.test_claude_code_forks import Folder

RUNS = Path("runs")


@pytest.fixture(autouse=True)
def folder(cli: Cli) -> Path:
    """An empty folder for the runs."""
    RUNS.mkdir()
    return RUNS


def tasks(cli: Cli) -> dict[str, dict[str, Any]]:
    """The tasks by name."""
    for path in RUNS.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    data = cli("tasks", "runs", "--json").data
    assert data["problems"] == []
    return {task["task"]: task for task in data["tasks"]}


def rates(cli: Cli) -> dict[str, tuple[int, int, int]]:
    """Trials, passed and failed ones of each task."""
    return {name: (task["trials"], task["passed"], task["failed"]) for name, task in tasks(cli).items()}


def groups(task: dict[str, Any]) -> dict[tuple[str | None, str | None], tuple[int, int]]:
    """Passed trials of how many, by agent and model."""
    return {(group["agent"], group["model"]): (group["passed"], group["trials"]) for group in task["groups"]}


# ---- formats that state tasks


def test_harbor_trials(cli: Cli) -> None:
    """Tasks are those of `result.json`; agents are column groups; an exception without a reward failed."""
    for agent, rewards in (("gardener", (1, 0, 1)), ("forester", (0, None))):
        for i, reward in enumerate(rewards):
            name = f"prune__{agent}{i}"
            verified = None if reward is None else {"rewards": {"reward": reward}}
            raised = {"exception_type": "AgentTimeoutError"} if reward is None else None
            result = {"task_name": "prune", "trial_name": name, "verifier_result": verified, "exception_info": raised}
            log = {**test_harbor.TRAJECTORY, "session_id": name, "agent": {"name": agent, "model_name": "oak-2"}}
            test_harbor.trial(RUNS / name, result, data=log)
    (task,) = tasks(cli).values()
    assert (task["task"], task["source"], task["trials"], task["passed"], task["failed"]) == ("prune", "trace", 5, 2, 3)
    assert groups(task) == {("forester", "oak-2"): (0, 2), ("gardener", "oak-2"): (2, 3)}


def test_inspect_epochs_and_repeated_evals(cli: Cli) -> None:
    """A sample is a task; its epochs, and its samples in another log of the same eval, are trials."""
    wrong = {"scores": {"match": {"value": "I"}}}
    logs = {
        "first": [inspect_build.sample("dover", 1), inspect_build.sample("dover", 2, **wrong)],
        "second": [inspect_build.sample("dover", 1, uuid="u3"), inspect_build.sample("brest", 1, uuid="u4", **wrong)],
    }
    for name, samples in logs.items():
        value = {**inspect_build.ended(inspect_build.head(name), samples), "samples": samples}
        (RUNS / f"2026-03-02T09-00-00+00-00_tides_{name}.json").write_text(json.dumps(value))
    assert rates(cli) == {"tides/dover": (3, 2, 1), "tides/brest": (1, 0, 1)}
    assert groups(tasks(cli)["tides/dover"]) == {(None, inspect_build.MODEL): (2, 3)}


def test_penelope_tests(cli: Cli) -> None:
    write_set("runs/night", {"refund": [True, False, True], "appeal": [False]})
    assert rates(cli) == {"refund": (3, 2, 1), "appeal": (1, 0, 1)}


def test_latticeflow_rows(cli: Cli) -> None:
    """A row of the dataset is a task; each file, or another row with the same id, is a trial."""

    def row(task: str, text: str) -> str:
        items = [test_latticeflow.message("user", "Capital of Peru?"), test_latticeflow.message("assistant", text)]
        return json.dumps({"task_id": task, "trace": {"FORMAT": "open_responses", "items": items}})

    (RUNS / "monday.jsonl").write_text(row("geo/1", "Lima") + "\n" + row("geo/2", "Cusco") + "\n")
    (RUNS / "tuesday.jsonl").write_text(row("geo/1", "Lima") + "\n" + row("geo/1", "Quito") + "\n")
    by_name = tasks(cli)
    assert {name: (task["trials"], task["unscored"]) for name, task in by_name.items()} == {
        "geo/1": (3, 3),
        "geo/2": (1, 1),
    }
    assert by_name["geo/1"]["source"] == "trace"
    assert by_name["geo/1"]["pass_rate"] is None


def test_swe_agent_runs_of_one_instance_by_configuration(cli: Cli) -> None:
    document = json.loads(test_swe_agent.fixture("mini").read_bytes())
    issue = test_swe_agent.ISSUE
    for model, outcomes in (("oak-2", (True, False)), ("ash-1", (True,))):
        for i, resolved in enumerate(outcomes):
            trial = json.loads(json.dumps(document)) | {"instance_id": issue}
            trial["info"]["config"]["model"]["model_name"] = model
            place = RUNS / f"{model}-{i}" / issue
            place.mkdir(parents=True)
            (place / f"{issue}.traj.json").write_text(json.dumps(trial))
            (place / "report.json").write_text(json.dumps({issue: {"resolved": resolved}}))
    (task,) = tasks(cli).values()
    assert (task["task"], task["trials"], task["passed"], task["failed"]) == (issue, 3, 2, 1)
    assert {model: numbers for (_, model), numbers in groups(task).items()} == {"ash-1": (1, 1), "oak-2": (1, 2)}


# ---- families of runs without a task: trees without rates


def family(cli: Cli) -> dict[str, Any]:
    """The only task, which has no rate; its trials fork."""
    (task,) = tasks(cli).values()
    assert (task["passed"], task["failed"], task["unscored"], task["pass_rate"], task["pass_hat"]) == (
        0,
        0,
        0,
        None,
        {},
    )
    assert task["source"] == "derived"
    assert [*task["excluded"]] == task["runs"]
    family: dict[str, Any] = task
    return family


def test_paprika_replays(cli: Cli) -> None:
    step = test_paprika.tool(1)
    for name, original, last in (("first", None, "read"), ("second", "first", "read"), ("third", "first", "write")):
        steps = [step, test_paprika.tool(2, tool_name=last)]
        test_paprika.put(RUNS, test_paprika.record(steps, record_id=name, replay_of=original), f"{name}.json")
    task = family(cli)
    assert [*task["excluded"].values()] == ["original", "replay", "replay"]
    assert task["first_fork"]["step"] == 2
    assert sorted(len(branch["runs"]) for branch in task["first_fork"]["branches"]) == [1, 2]
    assert task["first_fork"]["p"] is None


def test_hypergraph_forks_and_retries(cli: Cli) -> None:
    hypergraph_build.v3(RUNS / "workflows.db")
    task = family(cli)
    assert [address.split("#")[1] for address in task["runs"]] == ["rag-1", "rag-1-retry-1", "rag-1-fork"]
    assert [*task["excluded"].values()] == ["original", "retry", "fork"]


def test_claude_code_forks(cli: Cli) -> None:
    shutil.rmtree(RUNS)
    sessions = Folder(RUNS)
    sessions.begin(3)
    sessions.fork(0, 2, "each", 2)
    sessions.fork(0, 1, "each", 1)
    task = family(cli)
    assert [Path(address).stem for address in task["runs"]] == ["s0", "s1", "s2"]
    assert [*task["excluded"].values()] == ["original", "fork", "fork"]
