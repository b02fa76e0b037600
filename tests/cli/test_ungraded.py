"""Which trials were not graded, and whose fault that is."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import Cli

TIMES = {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:10:00Z"}
PHASES = {
    "environment_setup": TIMES | {"finished_at": "2026-01-01T00:01:00Z"},
    "agent_execution": {"started_at": "2026-01-01T00:01:00Z", "finished_at": "2026-01-01T00:05:00Z"},
    "verifier": {"started_at": "2026-01-01T00:05:00Z", "finished_at": "2026-01-01T00:10:00Z"},
}
NO_UVX = "/tests/test.sh: line 3: uvx: command not found\n"


def write_trial(
    folder: Path, *, stdout: str = "", reward: float | None = 0.0, exception: tuple[str, str] | None = None
) -> None:
    result: dict[str, Any] = {"id": "a", "task_name": "a", "trial_name": "a", **TIMES, **PHASES}
    result["verifier_result"] = None if reward is None else {"rewards": {"reward": reward}}
    result["exception_info"] = None
    if exception is not None:
        kind, when = exception
        result["exception_info"] = {"exception_type": kind, "exception_message": "it broke", "occurred_at": when}
    (folder / "verifier").mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "verifier" / "test-stdout.txt").write_text(stdout)


@pytest.mark.parametrize(
    ("trial", "outcome", "failed", "who"),
    [
        ({"stdout": NO_UVX}, "ungraded", False, "grader"),
        ({"stdout": NO_UVX, "reward": 1.0}, "passed", False, None),
        ({"stdout": NO_UVX, "reward": 0.5}, None, False, None),
        ({"stdout": "scored\n"}, "failed", True, "agent"),
        ({"reward": None, "exception": ("VerifierTimeoutError", "2026-01-01T00:09:00Z")}, "ungraded", False, "grader"),
        ({"reward": None, "exception": ("OSError", "2026-01-01T00:00:30Z")}, "ungraded", False, "environment"),
        ({"reward": None, "exception": ("AgentTimeoutError", "2026-01-01T00:04:00Z")}, None, True, "agent"),
        ({"stdout": NO_UVX, "exception": ("AgentTimeoutError", "2026-01-01T00:04:00Z")}, "ungraded", True, "grader"),
    ],
)
def test_a_trial_is_ungraded_by_evidence_alone(
    cli: Cli, trial: dict[str, Any], outcome: str | None, failed: bool, who: str | None
) -> None:
    write_trial(Path("trial"), **trial)
    (run,) = cli("ls", "trial", "--json").data["runs"]
    assert run["outcome"] == outcome
    assert len(cli("ls", "trial", "--json", "-q", "is:failed").data["runs"]) == failed
    assert len(cli("ls", "trial", "--json", "-q", f"who:{who or 'none'}").data["runs"]) == 1
    assert cli("ls", "trial", "--fail-on", "ungraded").status == (3 if outcome == "ungraded" else 0)


def test_the_log_of_the_verifier_is_found_and_shown(cli: Cli) -> None:
    write_trial(Path("trial"), stdout=NO_UVX)
    assert "uvx: command not found" in cli("grep", "uvx: command", "trial").text
    assert "uvx: command not found" in cli("show", "trial/result.json").text


def test_a_timeout_of_the_agent_whose_tests_never_ran_stands_once_and_is_counted_as_both(cli: Cli) -> None:
    timeout = ("AgentTimeoutError", "2026-01-01T00:04:00Z")
    write_trial(Path("trials/both"), stdout=NO_UVX, exception=timeout)
    write_trial(Path("trials/late"), reward=None, exception=timeout)
    write_trial(Path("trials/stuck"), reward=None, exception=("VerifierTimeoutError", "2026-01-01T00:09:00Z"))
    write_trial(Path("trials/wrong"), stdout="1 failed in 0.1s\n")
    triage = cli("triage", "trials", "--json").data
    counts = triage["counts"]
    assert counts["who"] == {"agent": 2, "grader": 2}
    assert (counts["failed"], counts["ungraded"], counts["failed_ungraded"], counts["graded"]) == (3, 2, 1, 2)
    kinds = sorted((cause["kind"], cause["who"], cause["count"]) for cause in triage["causes"])
    assert kinds == [
        ("error", "agent", 1),
        ("ungraded", "grader", 1),
        ("ungraded", "grader", 1),
        ("wrong_answers", "agent", 1),
    ]


def test_the_text_of_triage_has_ungraded_runs_below_the_failures(cli: Cli) -> None:
    write_trial(Path("trials/a"), stdout=NO_UVX)
    write_trial(Path("trials/b"), stdout="1 failed in 0.1s\n")
    lines = cli("triage", "trials").text.splitlines()
    wrong, heading, missing = (
        next(number for number, line in enumerate(lines) if text in line)
        for text in ("wrong answers", "ungraded: the grader", "uvx: command not found")
    )
    assert wrong < heading < missing


@pytest.mark.parametrize(("ungraded", "verdict"), [(3, "inconclusive"), (0, None)])
def test_a_set_of_which_over_a_third_is_ungraded_has_no_verdict(cli: Cli, ungraded: int, verdict: str | None) -> None:
    for side in ("base", "new"):
        for number in range(6):
            missing = side == "new" and number < ungraded
            write_trial(Path(f"{side}/{number}"), stdout=NO_UVX if missing else "", reward=0.0 if missing else 1.0)
    value = cli("gate", "base", "new", "--json").data
    assert value["ungraded"] == {"base": 0, "candidate": ungraded}
    if verdict is not None:
        assert value["verdict"] == verdict
