"""Trials of Harbor: one run a directory, with what ``result.json`` and the verifier say about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from tests.shared import SHARED, needs_shared, sample
from tracetui import testing
from tracetui.analysis.search import Hit, Needle
from tracetui.formats import guard, registry
from tracetui.formats.atif import Atif
from tracetui.formats.harbor import Harbor
from tracetui.formats.harbor.files import InTrial, position
from tracetui.live.load import Reader, read_run
from tracetui.live.scan import ScannedFile, scan
from tracetui.live.search import grep, grep_runs
from tracetui.model import Outcome, Run, RunSummary, Status, StatusSource
from tracetui.sources.local import LocalSource
from tracetui.store.relations import Relations
from tracetui.testing import hostile

CASES = Path(__file__).parent / "harbor"
STEPS = [{"step_id": 1, "source": "user", "message": "Prune"}, {"step_id": 2, "source": "agent", "message": "Done"}]
TRAJECTORY = {"schema_version": "ATIF-v1.7", "session_id": "s-1", "agent": {"name": "gardener"}, "steps": STEPS}
SESSION = (
    b'{"type":"user","uuid":"u","parentUuid":null,"isSidechain":false,"sessionId":"%s",'
    b'"timestamp":"2026-03-04T09:03:00Z","message":{"role":"user","content":"Prune"}}\n'
)

PRINTED = b"""\
{"type":"system","subtype":"init","cwd":"/app","session_id":"5f0e","tools":["Bash"],"model":"oak-2","uuid":"u-1"}
{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"oak-2","content":[{"type":"text",\
"text":"Done"}]},"parent_tool_use_id":null,"session_id":"5f0e","uuid":"u-2"}
"""
"""What ``claude --output-format stream-json`` prints."""


def put(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else orjson.dumps(value))
    os.utime(path, (testing.reading.MTIME, testing.reading.MTIME))
    return path


def trial(folder: Path, result: Any = None, *, log: str = "agent/trajectory.json", data: Any = TRAJECTORY) -> Path:
    """A trial directory; returns the path of the agent log."""
    if result is not None:
        put(folder / "result.json", result)
    return put(folder / log, data)


def recorded(case: str = "checks") -> Any:
    """The result of a golden case."""
    return orjson.loads((CASES / case / "input" / "result.json").read_bytes())


def both_stages(path: Path) -> tuple[RunSummary, RunSummary]:
    summaries = []
    for deep in (False, True):
        with LocalSource().open(str(path)) as file:
            fmt = registry.detect(file)
            assert fmt is not None
            (summary,) = guard.summarize(fmt, file, deep=deep)
        assert isinstance(summary, RunSummary)
        summaries.append(summary)
    return summaries[0], summaries[1]


def listed(*roots: Path) -> dict[str, ScannedFile]:
    files = {os.path.relpath(file.path, roots[0]): file for file in scan(LocalSource(), map(str, roots), deep=True)}
    assert files == {
        os.path.relpath(file.path, roots[0]): file for file in scan(LocalSource(), map(str, reversed(roots)), deep=True)
    }
    return files


def runs(*roots: Path) -> list[str]:
    """Addresses of the runs that are listed, relative to the first of `roots`."""
    return [path for path, file in listed(*roots).items() for _ in file.runs]


def read(path: Path) -> Run:
    shallow, _ = both_stages(path)
    return read_run(LocalSource(), shallow.ref)


# ---- what the result says


@pytest.mark.parametrize(
    ("result", "said", "outcome"),
    [
        ({"verifier_result": {"rewards": {"reward": 1.0}}}, "reward 1", Outcome.PASSED),
        ({"verifier_result": {"rewards": {"reward": 0}}}, "reward 0", Outcome.FAILED),
        ({"verifier_result": {"rewards": {"reward": 0.25, "style": 1}}}, "reward 0.25 · style 1", None),
        ({"verifier_result": {"rewards": {"reward": 1, "style": 0}}}, "reward 1 · style 0", Outcome.PASSED),
        ({"verifier_result": {"rewards": {"taste": 1, "style": 0}}}, "taste 1 · style 0", Outcome.FAILED),
        ({"verifier_result": {"rewards": {"taste": 1, "style": True}}}, "taste 1", Outcome.PASSED),
        (
            {"verifier_result": None, "exception_info": {"exception_type": "AgentTimeoutError"}},
            "AgentTimeoutError",
            None,
        ),
        ({"verifier_result": {"rewards": {"reward": "high", "other": None}}}, "", None),
        ({"verifier_result": {"rewards": [1]}}, "", None),
        ({"verifier_result": {"rewards": {"reward": 1e999}}}, "", None),
        ({"reward": 1}, "", None),
        ([1], "", None),
        (b'{"verifier_result": {"rewa', "", None),
        (None, "", None),
    ],
)
def test_the_rewards_of_a_trial_are_the_scores_of_its_run(
    tmp_path: Path, result: Any, said: str, outcome: Outcome | None
) -> None:
    for summary in both_stages(trial(tmp_path / "trial", result)):
        assert (summary.result, summary.outcome) == (said, outcome)


def test_an_exception_is_an_error_whatever_the_reward(tmp_path: Path) -> None:
    path = trial(tmp_path, recorded("exception"))
    for summary in both_stages(path):
        assert (summary.status, summary.status_source) == (Status.ERROR, StatusSource.EXPLICIT)
        assert summary.outcome is Outcome.PASSED
        assert summary.result == "AgentTimeoutError · reward 1"
        assert summary.first_error is not None
        assert summary.first_error.text == "AgentTimeoutError: Agent execution timed out after 360.0 seconds"
        assert summary.first_error.span == "trial:agent_execution"


def test_a_cancelled_trial_is_cancelled(tmp_path: Path) -> None:
    path = trial(tmp_path, {"trial_name": "t", "exception_info": {"exception_type": "CancelledError"}})
    assert {run.status for run in both_stages(path)} == {Status.CANCELLED}


def test_failed_checks_are_the_reason_of_a_failed_reward(tmp_path: Path) -> None:
    shutil.copytree(CASES / "checks" / "input", tmp_path, dirs_exist_ok=True)
    path = trial(tmp_path)
    (score, _), run = both_stages(path)[1].scores, read(path)
    assert (score.name, score.value, score.passed) == ("reward", 0.0, False)
    assert score.source == "result.json verifier_result.rewards.reward"
    assert score.reason.startswith("3 of 7 checks failed: test_outputs.py::test_roses_have_three_buds: ")
    assert "an assertion error: AssertionError: 5 buds left; test_outputs.py::test_no_thorn" in score.reason
    assert score.reason.endswith("test_style.py::test_cut_is_slanted: slant of 3 degrees, expected 45")
    assert [criterion.met for criterion in run.body.criteria] == [True, False, None, False, False, True, None]
    assert run.body.attributes["verifier/ctrf.json"]["results"]["tool"]["name"] == "pytest"


@pytest.mark.parametrize("report", [b"", b"{", [], {}, {"results": []}, {"results": {"tests": [1, {}, {"name": 3}]}}])
def test_a_broken_report_of_checks_hides_no_reward(tmp_path: Path, report: Any) -> None:
    path = trial(tmp_path, recorded())
    put(tmp_path / "verifier" / "ctrf.json", report)
    assert both_stages(path)[1].result == "reward 0 · style 0.75"
    assert [problem.where for problem in read(path).problems] == ["verifier/ctrf.json"] * isinstance(report, bytes)


def test_phases_are_spans_around_the_log(tmp_path: Path) -> None:
    run = read(trial(tmp_path, recorded()))
    assert [(span.id, depth) for span, depth in zip(run.spans, run.depths, strict=True)] == [
        ("trial:environment_setup", 0),
        ("trial:agent_setup", 0),
        ("trial:agent_execution", 0),
        ("1", 1),
        ("2", 1),
        ("trial:verifier", 0),
    ]
    assert run.summary.duration_ms == 570_000
    assert [step.number for step in run.steps] == [1, 2]
    assert run.load(run.spans[-1]).attributes["verifier_result"] == {"rewards": {"reward": 0.0, "style": 0.75}}
    assert run.load(run.spans[4]).output == "Done"


def test_usage_that_the_log_lacks_is_what_the_agent_reported(tmp_path: Path) -> None:
    usage = read(trial(tmp_path / "a", recorded())).summary.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (18250, 731, 0.0425)
    steps = [*STEPS, {"step_id": 3, "source": "agent", "message": "x", "metrics": {"prompt_tokens": 7}}]
    usage = read(trial(tmp_path / "b", recorded(), data=TRAJECTORY | {"steps": steps})).summary.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (7, None)


def test_task_and_trial_are_those_of_harbor(tmp_path: Path) -> None:
    for summary in both_stages(trial(tmp_path, recorded())):
        assert (summary.task, summary.trial) == ("prune-roses@9f2c41d0", "prune-roses__Ab3dE9k")
        assert (summary.id, summary.agent, summary.source) == ("s-1", "gardener", "garden-bench")


def test_runs_of_one_task_repeat_each_other_and_another_version_does_not(tmp_path: Path) -> None:
    for number, checksum in enumerate(("aaaa", "aaaa", "bbbb")):
        prompt = TRAJECTORY | {"steps": [{"step_id": 1, "source": "user", "message": f"Hello {number}"}]}
        trial(tmp_path / f"t{number}", recorded() | {"task_checksum": checksum}, data=prompt)
    runs = [run for file in listed(tmp_path).values() for run in file.runs]
    assert [len(Relations(runs).repeats(run.ref)) for run in runs] == [1, 0, 0]


@pytest.mark.parametrize("case", ["checks", "exception"])
def test_the_run_of_a_log_keeps_what_a_format_must(tmp_path: Path, case: str) -> None:
    for source in sorted((Path(__file__).parent / "atif").glob("*/input/**/trajectory.json")):
        agent = tmp_path / "input" / source.parts[-3] / "agent"
        shutil.copytree(source.parent, agent)
        shutil.copytree(CASES / case / "input", agent.parent, dirs_exist_ok=True)
    fmt = InTrial(Atif())
    shutil.copy(CASES.parent / "atif" / "exceptions.txt", tmp_path.parent)
    testing.check_summaries(fmt, tmp_path)
    testing.check_ledger(fmt, tmp_path)
    testing.check_nothing_lost(fmt, tmp_path)
    testing.check_growth(fmt, tmp_path)
    testing.check_hostile(fmt, tmp_path, count=20)


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "pi"])
def test_logs_of_other_formats_agree_in_both_stages(tmp_path: Path, name: str) -> None:
    for case in testing.cases(CASES.parent / name.replace("-", "_")):
        folder = tmp_path / case.name
        shutil.copytree(case / "input", folder / "input" / "agent" / "sessions")
        shutil.copytree(CASES / "exception" / "input", folder / "input", dirs_exist_ok=True)
        testing.check_summaries(InTrial(registry.load(name)), folder)


@pytest.mark.parametrize("case", ["checks", "exception", "steps"])
def test_stages_agree_whatever_the_result_holds(tmp_path: Path, case: str) -> None:
    folder = tmp_path / "input"
    shutil.copytree(CASES / case / "input", folder)
    put(folder / ("steps/plant" if case == "steps" else "") / "agent" / "trajectory.json", TRAJECTORY)
    result = folder / "result.json"
    for _, label, data in hostile.variants([str(result)], Random(5), 40):
        result.write_bytes(data)
        try:
            testing.check_summaries(InTrial(Atif()), tmp_path)
        except Exception as error:
            raise AssertionError(label) from error


# ---- one run a directory


def test_a_trial_is_one_run_under_its_trajectory(tmp_path: Path) -> None:
    shutil.copytree(CASES / "checks" / "input", tmp_path, dirs_exist_ok=True)
    trial(tmp_path)
    put(tmp_path / "agent" / "sessions" / "projects" / "-app" / "s-1.jsonl", SESSION % b"s-1")
    put(tmp_path / "agent" / "claude-code.txt", SESSION % b"s-1")
    put(tmp_path / "config.json", {"trial_name": "t", "task": {"path": "x"}})
    assert runs(tmp_path) == ["agent/trajectory.json"]
    parts = {path for path, file in listed(tmp_path).items() if file.part_of}
    assert parts == {
        "agent/claude-code.txt",
        "agent/sessions/projects/-app/s-1.jsonl",
        "result.json",
        "verifier/ctrf.json",
    }
    assert {path for path, file in listed(tmp_path).items() if file.unclaimed} == {
        "agent/gardener-cli.txt",
        "config.json",
    }


def test_a_trial_that_has_begun_is_one_run_already(tmp_path: Path) -> None:
    trial(tmp_path, log="agent/sessions/s-1.jsonl", data=SESSION % b"s-1")
    put(tmp_path / "agent" / "claude-code.txt", PRINTED)
    assert runs(tmp_path) == ["agent/claude-code.txt", "agent/sessions/s-1.jsonl"]
    put(tmp_path / "config.json", {"trial_name": "t", "task": {"path": "x"}, "agent": {"name": "claude-code"}})
    assert runs(tmp_path) == ["agent/sessions/s-1.jsonl"]
    assert {run.outcome for run in both_stages(tmp_path / "agent/sessions/s-1.jsonl")} == {None}


def test_checks_of_a_trial_without_a_log_are_part_of_its_result(tmp_path: Path) -> None:
    shutil.copytree(CASES / "checks" / "input", tmp_path, dirs_exist_ok=True)
    files = listed(tmp_path)
    assert files["verifier/ctrf.json"].part_of == str(tmp_path / "result.json")
    put(tmp_path / "result.json", {"n_total_trials": 1})
    assert listed(tmp_path)["verifier/ctrf.json"].unclaimed


def test_checks_beside_a_result_that_no_format_claims_are_not_hidden_under_it(tmp_path: Path) -> None:
    put(tmp_path / "result.json", {name: value for name, value in recorded().items() if name != "task_name"})
    put(tmp_path / "verifier" / "ctrf.json", (CASES / "checks" / "input" / "verifier" / "ctrf.json").read_bytes())
    files = listed(tmp_path)
    assert {path: (file.part_of, file.unclaimed) for path, file in files.items()} == dict.fromkeys(files, ("", True))
    assert len(files) == 2


def test_facts_only_in_the_result_or_the_checks_are_read(tmp_path: Path) -> None:
    shutil.copytree(CASES / "checks" / "input", tmp_path, dirs_exist_ok=True)
    path = trial(tmp_path)
    for text in ("garden-bench", "test_cut_is_slanted"):
        for items in (
            grep(LocalSource(), [str(tmp_path)], Needle(text)),
            grep_runs(LocalSource(), [both_stages(path)[0].ref], Needle(text)),
        ):
            assert {item.ref.path for item in items if isinstance(item, Hit)} == {str(path)}, text


def test_without_a_trajectory_the_session_is_the_log(tmp_path: Path) -> None:
    log = "agent/sessions/projects/-app/s-1.jsonl"
    path = trial(tmp_path, recorded(), log=log, data=SESSION % b"s-1")
    put(tmp_path / "agent" / "claude-code.txt", SESSION % b"s-1")
    assert runs(tmp_path) == [log]
    run = read(path)
    assert (run.summary.ref.format, run.summary.task) == ("claude-code", "prune-roses@9f2c41d0")
    assert [span.id for span in run.spans if not span.id.startswith("trial:")]


def test_another_session_is_a_run_that_the_first_one_started(tmp_path: Path) -> None:
    for name in (b"s-1", b"s-2"):
        trial(tmp_path, recorded(), log=f"agent/sessions/{name.decode()}.jsonl", data=SESSION % name)
    first, second = (run for file in listed(tmp_path).values() for run in file.runs)
    assert (first.id, first.outcome, first.parent) == ("s-1", Outcome.FAILED, None)
    assert (second.id, second.outcome, second.parent) == ("s-2", None, "s-1")
    assert read(tmp_path / "agent/sessions/s-2.jsonl").summary.parent == "s-1"


def test_agent_output_is_the_log_without_another(tmp_path: Path) -> None:
    trial(tmp_path, recorded(), log="agent/claude-code.txt", data=PRINTED)
    (run,) = listed(tmp_path)["agent/claude-code.txt"].runs
    assert runs(tmp_path) == ["agent/claude-code.txt"]
    assert (run.ref.format, run.id, run.model) == ("claude-code", "5f0e", "oak-2")


@pytest.mark.parametrize("data", [b"", b"\x1b[31mno trace", b'{"schema_version": "ATIF-v1.7", "agent": {}, "steps": ['])
def test_a_trial_without_a_log_that_can_be_read_is_listed_by_its_result(tmp_path: Path, data: bytes) -> None:
    trial(tmp_path, recorded(), data=data)
    assert runs(tmp_path) == ["result.json"]
    (run,) = listed(tmp_path)["result.json"].runs
    assert (run.ref.format, run.outcome, run.id) == ("harbor", Outcome.FAILED, recorded()["id"])
    problem = next(problem for problem in read(tmp_path / "result.json").problems)
    assert (problem.where, problem.reason) == ("agent/", "read without the agent log: trajectory.json")
    for stage in both_stages(tmp_path / "result.json"):  # nobody counted them
        assert (stage.steps, stage.llm_calls, stage.tool_calls) == (None, None, None)


def test_each_step_of_a_trial_of_several_is_a_run_that_the_trial_started(tmp_path: Path) -> None:
    put(tmp_path / "result.json", recorded("steps"))
    for name in ("dig", "plant"):
        put(tmp_path / "steps" / name / "agent" / "trajectory.json", TRAJECTORY)
    runs_by_path = {path: run for path, file in listed(tmp_path).items() for run in file.runs}
    assert [*runs_by_path] == ["result.json", "steps/dig/agent/trajectory.json", "steps/plant/agent/trajectory.json"]
    whole, dig, plant = runs_by_path.values()
    assert (dig.outcome, plant.outcome) == (Outcome.PASSED, Outcome.FAILED)
    assert (dig.status, plant.status) == (Status.OK, Status.ERROR)
    assert {dig.parent, plant.parent} == {whole.id}
    assert (dig.task, plant.task) == ("prune-roses@9f2c41d0/dig", "prune-roses@9f2c41d0/plant")
    assert whole.usage is not None
    assert whole.usage.input_tokens == 1806


def test_a_log_that_is_asked_for_in_its_own_format_is_listed(tmp_path: Path) -> None:
    trial(tmp_path, recorded())
    put(tmp_path / "agent" / "sessions" / "s.jsonl", SESSION % b"s-1")
    only = registry.load("claude-code")
    paths = [run.ref.path for file in scan(LocalSource(), [str(tmp_path)], deep=True, only=only) for run in file.runs]
    assert str(tmp_path / "agent" / "sessions" / "s.jsonl") in paths


def test_a_job_is_its_trials(tmp_path: Path) -> None:
    put(tmp_path / "result.json", {"id": "j", "n_total_trials": 2, "stats": {"evals": {}}, "started_at": "2026-03-04"})
    trial(tmp_path / "a__1", recorded())
    trial(tmp_path / "b__1", recorded("exception"))
    assert runs(tmp_path) == ["a__1/agent/trajectory.json", "b__1/agent/trajectory.json"]


def test_a_result_beside_another_folder_is_not_a_trial_s(tmp_path: Path) -> None:
    path = trial(tmp_path, {"verifier_result": {"rewards": {"reward": 1}}}, log="runs/trajectory.json")
    assert {run.result for run in both_stages(path)} == {""}


def test_positions() -> None:
    assert position("jobs/t/agent/trajectory.json") == ("../", "", None)
    assert position("agent/sessions/a/b.jsonl") == ("../../../", "../../", None)
    assert position(r"C:\t\agent\x.txt") == ("../", "", None)
    assert position("t/steps/dig/agent/x.txt") == ("../../../", "", "dig")
    assert position("t/agents/x.txt") is None


# ---- results below the agent folder of another trial


def check_separate(root: Path, inner: str, outer: str = "result.json") -> None:
    """Each of two results is a run of its own, which the list, the count and the full read describe alike."""
    assert {*runs(root)} == {inner, outer}
    for path in (root / inner, root / outer):
        alone = put(root.parent / "alone" / "result.json", path.read_bytes())
        whole, expected = read(path).summary, read(alone).summary
        same = testing.reading.plain(whole) == testing.reading.plain(both_stages(path)[1])
        assert same, f"{path}: the count and the full read differ"
        testing.check_quick(*both_stages(path), "summary")
        facts = [
            (
                trial.trial,
                trial.status,
                trial.spans,
                trial.errors,
                trial.scores,
                trial.parent,
            )
            for trial in (whole, expected)
        ]
        assert facts[0] == facts[1]


@pytest.mark.parametrize("name", ["a-result.json", "z-result.json", "result.json", "trajectory.json"])
@pytest.mark.parametrize(("inner", "outer"), [("checks", "exception"), ("checks", "steps"), ("steps", "steps")])
def test_a_result_that_an_agent_left_is_a_trial_of_its_own(tmp_path: Path, name: str, inner: str, outer: str) -> None:
    root = tmp_path / "trial"
    put(root / "result.json", recorded(outer))
    put(root / "agent" / name, recorded(inner) | {"trial_name": "inner__1"})
    check_separate(root, f"agent/{name}")


def test_a_result_beside_a_trajectory_is_not_a_part_of_its_run(tmp_path: Path) -> None:
    trial(tmp_path, recorded("exception"))
    result = put(tmp_path / "agent" / "z-result.json", recorded())
    assert {*runs(tmp_path)} == {"agent/trajectory.json", "agent/z-result.json"}
    assert read(result).summary.status is Status.OK


def test_a_trial_within_a_trial_has_the_log_and_the_outer_one_its_result(tmp_path: Path) -> None:
    put(tmp_path / "result.json", recorded("exception"))
    inner = trial(tmp_path / "agent" / "jobs" / "inner__1", recorded())
    assert {*runs(tmp_path)} == {"agent/jobs/inner__1/agent/trajectory.json", "result.json"}
    assert read(inner).summary.trial == recorded()["trial_name"]
    assert read(tmp_path / "result.json").summary.status is Status.ERROR


def test_a_log_named_as_a_result_is_the_log_of_the_trial(tmp_path: Path) -> None:
    path = trial(tmp_path, recorded("exception"), log="agent/result.json")
    assert runs(tmp_path) == ["agent/result.json"]
    (summary,) = listed(tmp_path)["agent/result.json"].runs
    assert summary.status is Status.ERROR
    assert testing.reading.plain(summary) == testing.reading.plain(read(path).summary)


# ---- while it is written


def test_a_result_that_comes_later_is_read_then(tmp_path: Path) -> None:
    path = trial(tmp_path)
    reader = Reader(LocalSource(), both_stages(path)[0].ref)
    assert reader.read()
    assert not reader.read()
    put(tmp_path / "result.json", recorded())
    assert reader.read()
    assert reader.reset
    run = reader.build()
    assert run.summary.result == "reward 0 · style 0.75"
    assert run.body.attributes["result.json"]["trial_name"] == "prune-roses__Ab3dE9k"
    assert not reader.read()
    put(tmp_path / "result.json", recorded("exception"))
    assert reader.read()
    assert reader.build().summary.status is Status.ERROR


def test_long_token_lists_of_a_result_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    result = recorded()
    result["agent_result"]["rollout_details"] = [{"completion_token_ids": [[7] * 600_000]}]
    run = read(trial(tmp_path, result))
    assert "rollout_details" not in run.body.attributes["result.json"]["agent_result"]
    assert [(problem.where, problem.reason) for problem in run.problems] == [
        ("result.json", "rollout_details not shown: the file has 1 MiB")
    ]


def test_the_format_is_known_by_its_names_in_any_order(tmp_path: Path) -> None:
    result = recorded()
    for keys in (sorted(result), sorted(result, reverse=True)):
        path = put(tmp_path / "r.json", {key: result[key] for key in keys})
        with LocalSource().open(str(path)) as file:
            assert Harbor().sniff(file) == 100


# ---- real trials


@needs_shared
@pytest.mark.shared
def test_the_tau_bench_runs(tmp_path: Path) -> None:
    assert SHARED is not None
    tool = SHARED / "tools" / "tau_to_harbor.py"
    subprocess.run([sys.executable, tool, sample("tau-bench", "gpt-4o-airline-even.json"), tmp_path], check=True)
    for deep in (False, True):
        files = list(scan(LocalSource(), [str(tmp_path)], deep=deep))
        runs = [run for file in files for run in file.runs]
        assert len(runs) == 100
        assert not [problem for file in files for problem in file.problems]
        assert set(Counter(run.task for run in runs).values()) == {4}
        assert len({run.task for run in runs}) == 25
        assert sum(run.outcome is Outcome.FAILED for run in runs) == 51
        assert {run.trial for run in runs} == {os.path.basename(Path(run.ref.path).parents[1]) for run in runs}
        relations, by_ref = Relations(runs), {run.ref: run for run in runs}
        repeats = {run.ref: relations.original(run.ref) for run in runs if relations.relation(run.ref) == "repeat"}
        assert len(repeats) == 75
        assert all(first is not None and by_ref[ref].task == by_ref[first].task for ref, first in repeats.items())
