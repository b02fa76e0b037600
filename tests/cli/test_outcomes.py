"""Outcomes on the command line: lists, documents, queries, the user's own rule, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.scored import install, reward, write_run

FOLDER = Path("scored")


@pytest.fixture(autouse=True)
def runs(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six runs: two of task t1, one of them passed; an error without a score, one that passed; one half right."""
    install(monkeypatch)
    write_run(FOLDER, "right", scores=[reward(1.0, passed=True)], task="t1", trial="0")
    write_run(FOLDER, "wrong", scores=[reward(0.0, passed=False)], task="t1", trial="1")
    write_run(FOLDER, "half", scores=[reward(0.5, passed=None)], repeats="k2", prompt="book a flight")
    write_run(FOLDER, "broke", status="error", error="no credit", task="t3", trial="0")
    write_run(
        FOLDER, "lucky", scores=[reward(1.0, passed=True)], status="error", error="too late", task="t3", trial="1"
    )
    write_run(FOLDER, "again", replay_of="broke", relation="retry")


def matching_ids(cli: Cli, *arguments: str) -> str:
    """The ids of the runs that a query finds."""
    return " ".join(sorted(run["id"] for run in cli("ls", "scored", "--json", *arguments).data["runs"]))


def test_a_list_tells_wrong_answers_from_errors(cli: Cli) -> None:
    result = cli("ls", "scored")
    rows = {line.split("scored/")[1].split(".")[0]: line for line in result.text.splitlines()[1:]}
    assert result.text.splitlines()[0].split()[:2] == ["STATUS", "SCORE"]
    assert rows["wrong"].startswith("wrong answer  ⊗ 0")
    assert rows["right"].split()[:3] == ["ok", "✓", "1"]
    assert rows["lucky"].split()[:3] == ["error", "✓", "1"]
    assert rows["half"].split()[:2] == ["ok", "0.5"]
    assert rows["broke"].split()[:2] == ["error", "—"]
    assert result.err == "tracetui: 3 of 6 runs failed (2 errors, 1 wrong answer)\n"


def test_a_list_without_scores_has_no_column_for_them(cli: Cli) -> None:
    result = cli("ls", "traces/paprika")
    assert "SCORE" not in result.text
    assert result.err == ""


def test_the_data_has_scores_outcome_and_task(cli: Cli) -> None:
    runs = {run["id"]: run for run in cli("ls", "scored", "--json").data["runs"]}
    names = ("status", "outcome", "task", "task_source", "trial")
    assert {ident: tuple(run[name] for name in names) for ident, run in runs.items()} == {
        "right": ("ok", "passed", "t1", "trace", "0"),
        "wrong": ("ok", "failed", "t1", "trace", "1"),
        "half": ("ok", None, "k2", "derived", None),
        "broke": ("error", None, "t3", "trace", "0"),
        "lucky": ("error", "passed", "t3", "trace", "1"),
        "again": ("ok", None, "t3", "trace", None),
    }
    source = "result.json verifier_result.rewards.reward"
    score = {"name": "reward", "value": 0.0, "passed": False, "source": source, "rule": "1 passed, 0 failed"}
    assert runs["wrong"]["scores"] == [{**score, "reason": "", "evidence": None, "graded": True}]
    assert runs["wrong"]["outcome_source"] == f"{source} (1 passed, 0 failed)"
    assert (runs["broke"]["scores"], runs["broke"]["outcome_source"], runs["broke"]["result"]) == ([], None, None)


def test_show_says_what_the_list_says(cli: Cli) -> None:
    for listed in cli("ls", "scored", "--json").data["runs"]:
        run = cli("show", listed["address"], "--json").data["run"]
        assert {name: run[name] for name in listed} == listed

    lines = cli("show", "scored/wrong.json").text.splitlines()
    assert any(line.split()[:3] == ["outcome", "wrong", "answer:"] and "rewards.reward" in line for line in lines)
    assert any(line.split()[:4] == ["score", "reward", "0", "failed"] for line in lines)
    assert any(line.split() == ["task", "t1"] for line in lines)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("outcome:failed", "wrong"),
        ("outcome:passed", "lucky right"),
        ("outcome:none", "again broke half"),
        ("is:failed", "broke lucky wrong"),
        ("status:error", "broke lucky"),
        ("score:reward<0.5", "wrong"),
        ("score:reward", "half lucky right wrong"),
        ("task:t3", "again broke lucky"),
        ("task:k2", "half"),
        ("trial:1", "lucky wrong"),
    ],
)
def test_queries(cli: Cli, query: str, ids: str) -> None:
    assert matching_ids(cli, "-q", query) == ids


@pytest.mark.parametrize(
    "query", ["outcome:fail", "outcome:wrong", "score<1", "score:reward<", "score:reward<x", "score:<1"]
)
def test_wrong_queries_are_sentences(cli: Cli, query: str) -> None:
    result = cli("ls", "scored", "-q", query)
    assert (result.status, result.out) == (2, b"")
    assert query in result.err


def test_a_rule_turns_scores_into_outcomes(cli: Cli) -> None:
    assert matching_ids(cli, "--pass", "reward>=0.5", "-q", "outcome:passed") == "half lucky right"
    assert matching_ids(cli, "--pass", "reward>=1.5", "-q", "is:failed") == "broke half lucky right wrong"
    run = cli("show", "scored/half.json", "--pass", "Reward>=0.5", "--json").data["run"]
    assert (run["outcome"], run["scores"][0]["passed"]) == ("passed", True)
    assert run["outcome_source"].endswith("(pass rule Reward>=0.5)")
    assert cli("triage", "scored", "--pass", "reward>0.5").err.startswith(
        "tracetui: 4 of 6 runs failed (2 errors, 2 wrong answers)"
    )


def test_a_rule_that_decides_nothing_is_wrong_usage(cli: Cli) -> None:
    for command in (["ls", "scored"], ["triage", "scored"], ["stats", "scored"], ["show", "scored/half.json"]):
        result = cli(*command, "--pass", "rewrd>=1")
        assert (result.status, result.out) == (2, b"")
        assert result.err == "tracetui: no run has a score 'rewrd'; did you mean 'reward'?\n"
    assert "no run has scores" in cli("ls", "traces/paprika", "--pass", "reward>=1").err
    assert "is not a number" in cli("ls", "scored", "--pass", "reward>=C").err


def test_the_rule_may_be_a_setting(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "tracetui" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('pass = "reward>=0.5"\n')
    assert matching_ids(cli, "-q", "outcome:passed") == "half lucky right"
    assert matching_ids(cli, "-q", "outcome:passed", "--pass", "reward>=1") == "lucky right"
    assert cli("ls", "traces").status == 0

    file.write_text('pass = "reward"\n')
    result = cli("ls", "scored")
    assert result.status == 2
    assert "config.toml: pass: 'reward' compares no score" in result.err


@pytest.mark.parametrize(
    ("query", "flags", "status"),
    [
        ("id:wrong", ["failed"], 3),
        ("id:wrong", ["error"], 0),
        ("id:wrong", ["error", "failed"], 3),
        ("id:lucky", ["failed"], 3),
        ("id:lucky", ["error"], 3),
        ("id:right", ["error", "failed"], 0),
        ("id:half", ["failed"], 0),
    ],
)
def test_exit_statuses(cli: Cli, query: str, flags: list[str], status: int) -> None:
    options = [word for flag in flags for word in ("--fail-on", flag)]
    assert cli("ls", "scored", "-q", query, *options).status == status
    assert cli("show", query.replace("id:", "scored/") + ".json", *options).status == status


def test_conditions_that_there_are_not_yet(cli: Cli) -> None:
    result = cli("triage", "scored", "--fail-on", "new")
    assert (result.status, result.out) == (2, b"")
    assert "--fail-on new" in result.err
    assert cli("ls", "scored", "--fail-on", "wrong").status == 2


def test_an_unreadable_file_loses_to_a_wrong_answer(cli: Cli) -> None:
    (FOLDER / "torn.json").write_text('{"scored": [')
    assert cli("ls", "scored", "--fail-on", "failed").status == 3
    assert cli("ls", "scored", "-q", "id:right", "--fail-on", "failed").status == 1


def test_statistics_have_pass_rates(cli: Cli) -> None:
    data = cli("stats", "scored", "--by", "task", "--json").data
    rows = {row["name"]: row for row in data["rows"]}
    names = ("runs", "errors", "passed", "failed", "pass_rate", "prompt")
    assert {name: tuple(row[field] for field in names) for name, row in rows.items()} == {
        "t1": (2, 0, 1, 1, 0.5, ""),
        "t3": (3, 2, 1, 2, 0.5, ""),
        "k2": (1, 0, 0, 0, None, "book a flight"),
    }
    for by in ("model", "agent", "tool"):
        row = cli("stats", "scored", "--by", by, "--json").data["rows"][0]
        assert (row["runs"], row["passed"], row["failed"], row["pass_rate"]) == (6, 2, 3, 0.5)
    text = cli("stats", "scored", "--by", "task").text
    assert text.splitlines()[0].split()[-4:] == ["PASSED", "FAILED", "PASS", "RATE"]
    assert "book a flight" in text
    assert cli("stats", "scored", "--pass", "reward>=0.5", "--json").data["rows"][0]["passed"] == 3
    assert cli("stats", "traces/paprika", "--json").data["rows"][0]["passed"] is None
    assert "PASSED" not in cli("stats", "traces/paprika").text


def test_secrets_stay_out_of_text_and_redacted_data(cli: Cli) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 6
    score = {"name": "judge", "value": "I", "passed": False, "source": "scores.judge", "reason": f"it printed {secret}"}
    write_run(Path("leak"), "a", scores=[score], task=f"task {secret}")
    write_run(Path("leak"), "b", replay_of="a")
    for command in (
        ["ls", "leak"],
        ["show", "leak/a.json"],
        ["ls", "leak", "--json", "--redact"],
        ["show", "leak/a.json", "--json", "--redact"],
        ["show", "leak/b.json", "--json", "--redact"],
        ["stats", "leak", "--by", "task"],
    ):
        assert secret not in cli(*command).text
    assert secret in json.dumps(cli("show", "leak/b.json", "--json").data)


def test_hostile_scores_reach_a_terminal_cleaned(cli: Cli) -> None:
    evil = "\x1b]0;owned\x07\u202e"
    score = {"name": evil, "value": evil, "passed": False, "source": evil, "rule": evil, "reason": evil}
    write_run(Path("evil"), "a", scores=[score], task=evil, trial=evil)
    for command in (
        ["ls", "evil"],
        ["show", "evil/a.json"],
        ["stats", "evil", "--by", "task"],
        ["ls", "evil", "--json"],
    ):
        text = cli(*command).text
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\x1b" not in cli("ls", "evil", "--pass", "other=1").err
