"""Trajectories of SWE-agent and mini-swe-agent: steps, commands, what they cost, and how a run ended."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePath
from typing import Any

import pytest

from tests.shared import needs_shared, sample
from tracetui.formats import registry
from tracetui.formats.swe_agent import SweAgent
from tracetui.live.load import read_run
from tracetui.model import Operation, Run, RunRef, RunSummary, Span, Status, StatusSource, ToolCall
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing

HERE = Path(__file__).parent / "swe_agent"
SOURCE = LocalSource()
LONG_AGO = 1_600_000_000


def fixture(case: str) -> Path:
    return next(path for path in sorted((HERE / case / "input").rglob("*")) if path.is_file())


def read(path: Path) -> Run:
    return read_run(SOURCE, RunRef("swe-agent", str(path)))


def put(folder: Path, document: Any, name: str = "one.traj.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def listed(path: Path, *, deep: bool) -> RunSummary:
    with SOURCE.open(str(path)) as file:
        (summary,) = SweAgent().summarize(file, deep=deep)
    assert isinstance(summary, RunSummary)
    return summary


def commands(run: Run) -> list[Span]:
    return [span for span in run.spans if span.operation is Operation.EXECUTE_TOOL]


def responses(run: Run) -> list[Span]:
    return [span for span in run.spans if span.operation is Operation.CHAT]


# -- how a run ended ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "status", "word", "outcome", "cause"),
    [
        ("text", Status.OK, "submitted", "submitted", None),
        ("calls", Status.ERROR, "submitted (exit_cost)", "submitted (exit_cost)", ""),
        ("mini", Status.OK, "Submitted", "Submitted", None),
        ("limits", Status.ERROR, "LimitsExceeded", "LimitsExceeded", ""),
        ("broken", Status.ERROR, "AuthenticationError", "AuthenticationError", "no key for none/such"),
        ("demo", Status.UNKNOWN, None, "", None),
    ],
)
def test_the_exit_status_says_how_a_run_ended(
    case: str, status: Status, word: str | None, outcome: str, cause: str | None
) -> None:
    for deep in (False, True):
        summary = listed(fixture(case), deep=deep)
        assert (summary.status, summary.status_word, summary.result) == (status, word, outcome)
        if cause is not None:
            assert summary.first_error is not None
            assert (summary.first_error.type, summary.first_error.message) == (word, cause)


ISSUE = "acme__tides-7"


def evaluated(folder: Path, name: str, report: Any) -> list[RunSummary]:
    """A submitted run of `ISSUE`, in both stages, with that report at `name` relative to it."""
    (folder / "trajs").mkdir(exist_ok=True)
    document = json.loads(fixture("mini").read_bytes()) | {"instance_id": ISSUE}
    path = put(folder / "trajs", document)
    target = folder / "trajs" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(report if isinstance(report, str) else json.dumps(report), encoding="utf-8")
    return [listed(path, deep=False), listed(path, deep=True), read(path).summary]


TESTS = {
    "FAIL_TO_PASS": {"success": ["test_spring"], "failure": ["test_ebb"]},
    "PASS_TO_PASS": {"failure": ["test_flow"]},
    "FAIL_TO_FAIL": {"failure": ["test_neap"]},
}


@pytest.mark.parametrize(
    ("name", "report", "passed", "source"),
    [
        ("report.json", {ISSUE: {"resolved": True}}, True, f"report.json {ISSUE}.resolved"),
        (f"../logs/{ISSUE}/report.json", {ISSUE: {"resolved": False, "tests_status": TESTS}}, False, None),
        ("results.json", {"resolved_ids": [ISSUE], "completed_ids": [ISSUE]}, True, "results.json resolved_ids"),
        (
            "../results.json",
            {"resolved_ids": ["other"], "unresolved_ids": [ISSUE]},
            False,
            "../results.json resolved_ids",
        ),
        ("../results.json", {"resolved_ids": [], "error_ids": [ISSUE], "submitted_ids": [ISSUE]}, None, None),
        ("report.json", {"acme__tides-8": {"resolved": True}}, None, None),
        ("report.json", {ISSUE: {"resolved": "yes"}}, None, None),
        ("report.json", [ISSUE], None, None),
        ("report.json", "{", None, None),
    ],
)
def test_a_report_beside_a_trajectory_says_whether_it_is_resolved(
    tmp_path: Path, name: str, report: Any, passed: bool | None, source: str | None
) -> None:
    for summary in evaluated(tmp_path, name, report):
        assert [(score.name, score.value, score.passed) for score in summary.scores] == (
            [] if passed is None else [("resolved", passed, passed)]
        )
        assert summary.outcome == (None if passed is None else "passed" if passed else "failed")
        assert summary.status is Status.OK
        assert source is None or summary.scores[0].source == source


ERROR_ONLY = {"resolved_ids": [], "error_ids": [ISSUE]}
UNRESOLVED = {ISSUE: {"patch_successfully_applied": False, "resolved": False}}
STAMP = "2026-03-02 09:00:00,000 - INFO - "


@pytest.mark.parametrize(
    ("name", "log", "report", "outcome", "who", "text"),
    [
        ("run_instance.log", f"{STAMP}>>>>> Patch Apply Failed:\nerror: patch failed\n", ERROR_ONLY,
         "failed", "agent", ">>>>> Patch Apply Failed"),
        ("run_instance.log", f"{STAMP}Failed to apply patch\n{STAMP}>>>>> Applied Patch:\n"
         "EvaluationError: Test timed out after 1800 seconds.\n", ERROR_ONLY,
         "ungraded", "grader", "Test timed out after 1800 seconds"),
        ("run_instance.log", f"{STAMP}Error creating container for {ISSUE}: 500\n", ERROR_ONLY,
         "ungraded", "environment", f"Error creating container for {ISSUE}: 500"),
        ("run_instance.log", f"{STAMP}Cannot connect to the Docker daemon at unix:///x.sock\n", ERROR_ONLY,
         "ungraded", "environment", "Cannot connect to the Docker daemon at unix:///x.sock"),
        ("run_instance.log", f"{STAMP}>>>>> Applied Patch:\n", ERROR_ONLY, None, None, None),
        ("run_instance.log", "", ERROR_ONLY, None, None, None),
        ("test_output.txt", "+ pytest -rA\nbash: line 3: pytest: command not found\n", UNRESOLVED,
         "ungraded", "grader", "pytest: command not found"),
        ("test_output.txt", "\n\nTimeout error: 1800 seconds exceeded.", UNRESOLVED,
         "ungraded", "grader", "Timeout error: 1800 seconds exceeded"),
        ("test_output.txt", "FAILED tests/test_tide.py::test_ebb\n1 failed in 0.1s\n", UNRESOLVED,
         "failed", "agent", None),
        # tests succeeded: what the log says is no reason
        ("run_instance.log", "Test timed out after 9 seconds",
         {ISSUE: {"resolved": False, "tests_status": {"PASS_TO_PASS": {"success": ["test_flow"]}}}},
         "failed", "agent", None),
        ("run_instance.log", "Test timed out after 9 seconds", {ISSUE: {"resolved": True}}, "passed", None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", ["", f"../logs/{ISSUE}/"])
def test_the_logs_of_the_harness_say_whether_a_run_was_graded(
    tmp_path: Path,
    folder: str,
    name: str,
    log: str,
    report: Any,
    outcome: str | None,
    who: str | None,
    text: str | None,
) -> None:
    target = tmp_path / "trajs" / folder / name
    for parent in (tmp_path / "trajs", target.parent):
        parent.mkdir(parents=True, exist_ok=True)
    target.write_text(log, encoding="utf-8")
    report_name = f"{folder}report.json" if ISSUE in report else "../results.json"
    for run in evaluated(tmp_path, report_name, report):
        assert (run.outcome, run.who) == (outcome, who)
        assert (run.evidence and run.evidence.text) == text


def test_a_report_names_the_tests_that_failed(tmp_path: Path) -> None:
    (score,) = evaluated(tmp_path, "report.json", {ISSUE: {"resolved": False, "tests_status": TESTS}})[0].scores
    assert score.reason == "failed tests (2): test_ebb, test_flow"


@pytest.mark.parametrize("instance", ["../..", "a/b", "", "."])
def test_an_instance_id_that_is_no_name_leads_to_no_report(tmp_path: Path, instance: str) -> None:
    path = put(tmp_path, json.loads(fixture("mini").read_bytes()) | {"instance_id": instance})
    (tmp_path / "report.json").write_text(json.dumps({instance: {"resolved": True}}), encoding="utf-8")
    assert listed(path, deep=False).scores == ()


def test_the_task_is_the_instance_that_is_recorded(tmp_path: Path) -> None:
    document = json.loads(fixture("mini").read_bytes())
    document.pop("instance_id", None)
    assert listed(put(tmp_path, document), deep=False).task is None
    assert listed(put(tmp_path, document | {"instance_id": ISSUE}), deep=False).task == ISSUE
    assert listed(fixture("calls"), deep=False).outcome is None  # submitted is not resolved


def test_a_run_that_submitted_no_patch_says_so() -> None:
    path = HERE / "old" / "input" / "whole" / "ropes.traj.json"
    assert listed(path, deep=False).result == "Submitted, nothing"


def test_a_run_without_an_exit_status_goes_on_while_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "kite.traj"
    path.write_bytes(fixture("running").read_bytes())
    assert listed(path, deep=True).status is Status.RUNNING
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert listed(path, deep=True).status is Status.UNKNOWN


# -- SWE-agent ---------------------------------------------------------------------------------------------------------


def test_steps_are_those_of_the_trajectory_and_the_history_adds_what_was_called() -> None:
    run = read(fixture("calls"))
    document = json.loads(fixture("calls").read_bytes())
    top, calls = responses(run), commands(run)

    assert [span.step for span in top] == [1, 2, 3, 4]
    assert all(span.is_step for span in top)
    assert [call.name for call in calls] == ["open", "vim", "str_replace"]  # the second is in no item of the history
    assert [call.parent_id for call in calls] == ["1", "2", "3"]
    assert [call.duration_ms for call in calls] == [
        step["execution_time"] * 1000 for step in document["trajectory"] if step["action"]
    ]
    body = run.load(calls[0])
    assert body.input == {"path": "src/bridge.py"}
    assert body.output == document["trajectory"][0]["observation"]
    assert body.attributes["state"] == document["trajectory"][0]["state"]
    (message,) = run.load(top[0]).output_messages
    assert ToolCall("call_a1", "open", {"path": "src/bridge.py"}) in message.parts


def test_query_is_the_input_of_its_response() -> None:
    run = read(fixture("calls"))
    assert [message.role for message in run.load(responses(run)[0]).input_messages] == ["system", "user"]
    rich = run.load(responses(run)[2])  # a message in it holds calls: it is kept as it is
    assert not rich.input_messages
    assert len(rich.attributes["query"]) == 3


def test_the_exact_bytes_of_a_step_are_kept() -> None:
    data = fixture("text").read_bytes()
    run = read(fixture("text"))
    for span in (*responses(run), *commands(run)):
        assert run.load(span).raw in data
        assert (
            json.loads(run.load(span).raw)["action"].strip()
            == run.load(span).attributes.get("action", json.loads(run.load(span).raw)["action"]).strip()
        )


def test_tokens_and_cost_are_those_of_the_instance() -> None:
    stats = json.loads(fixture("text").read_bytes())["info"]["model_stats"]
    for deep in (False, True):
        usage = listed(fixture("text"), deep=deep).usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens) == (stats["tokens_sent"], stats["tokens_received"])
        assert usage.cost_usd == stats["instance_cost"] != stats["total_cost"]


def test_a_demonstration_is_no_step_and_no_prompt() -> None:
    run = read(fixture("text"))
    (demonstration,) = [span for span in run.spans if "demonstration" in span.notes]
    assert (demonstration.operation, demonstration.is_step) == (Operation.MESSAGE, False)
    assert run.summary.prompt.startswith("ISSUE:")


def test_the_problem_statement_and_the_model_are_in_the_configuration(tmp_path: Path) -> None:
    document = json.loads(fixture("calls").read_bytes())
    as_object = {**document, "replay_config": json.loads(document["replay_config"])}
    for path in (fixture("calls"), put(tmp_path, as_object)):
        summary = listed(path, deep=False)
        assert (summary.model, summary.id) == ("gpt-4o", "bridge__drawbridge-7")
        assert summary.prompt == "The drawbridge opens on Sundays only."


def test_a_history_alone_has_its_responses_as_steps() -> None:
    run = read(fixture("demo"))
    assert [(span.step, span.preview) for span in responses(run)] == [
        (1, "The timetable says it."),
        (2, "The one to the Island of Sheep."),
    ]
    assert [(call.name, call.status) for call in commands(run)] == [("bash", Status.OK), ("submit", Status.OK)]
    assert run.load(commands(run)[0]).output == "05:40 Island of Sheep\nbash-$"


# -- mini-swe-agent ----------------------------------------------------------------------------------------------------


def test_answers_belong_to_the_calls_that_they_name() -> None:
    run = read(fixture("mini"))
    assert [(call.preview, call.status, call.status_source) for call in commands(run)] == [
        ("wc -l gulls.csv", Status.OK, StatusSource.EXIT),
        ("cat gulls.txt", Status.ERROR, StatusSource.EXIT),
        ("sleep 99", Status.ERROR, StatusSource.EXPLICIT),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 37", Status.OK, StatusSource.DERIVED),
    ]
    failed, late = commands(run)[1:3]
    assert failed.error is not None
    assert failed.error.text == "exit 1: cat: gulls.txt: No such file"
    assert late.error is not None
    assert late.error.message.startswith("TimeoutExpired")
    assert [call.duration_ms for call in commands(run)] == [None, None, 30_000, None]  # of several, none is known


def test_each_response_says_what_it_used() -> None:
    document = json.loads(fixture("mini").read_bytes())
    extras = [message["extra"] for message in document["messages"] if message["role"] == "assistant"]
    run = read(fixture("mini"))

    usages = [span.usage for span in responses(run)]
    assert [usage and usage.input_tokens for usage in usages] == [
        extra["response"]["usage"]["prompt_tokens"] for extra in extras
    ]
    assert [usage and usage.cost_usd for usage in usages] == [extra["cost"] for extra in extras]
    total = run.summary.usage
    assert total is not None
    assert total.input_tokens == sum(extra["response"]["usage"]["prompt_tokens"] for extra in extras)
    assert total.cost_usd == document["info"]["model_stats"]["instance_cost"]
    assert not any(total.differs for total in run.body.totals)  # a refused response was paid for, and is no message


def test_a_refused_response_is_an_error() -> None:
    run = read(fixture("mini"))
    (refused,) = [span for span in run.spans if span.error and span.error.type == "FormatError"]
    assert refused.operation is Operation.MESSAGE
    assert run.load(refused).attributes["extra"]["model_response"] == "Thirty-seven."


def test_messages_of_the_responses_api_and_of_other_roles() -> None:
    run = read(fixture("limits"))
    (response,), (call,) = responses(run), commands(run)
    assert (response.preview, call.preview, call.status) == ("I look at the log.", "tail -1 light.log", Status.OK)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.cache_read_tokens, response.usage.reasoning_tokens) == (
        400,
        128,
        32,
    )
    (other,) = [span for span in run.spans if span.operation is Operation.UNKNOWN]
    assert other.name == "foghorn"
    assert run.summary.unread is not None
    assert run.summary.unread.kinds == (("foghorn", 1),)
    (cost,) = [total for total in run.body.totals if total.name == "instance_cost"]
    assert cost.differs


def test_version_1_found_the_only_block_of_a_response() -> None:
    folder = HERE / "old" / "input"
    for path in (folder / "bare" / "ropes.traj.json", folder / "whole" / "ropes.traj.json"):
        run = read(path)
        assert [call.preview for call in commands(run)] == [
            "sort -n ropes | tail -1",
            "echo MINI_SWE_AGENT_FINAL_OUTPUT",
        ]
        assert len(responses(run)) == 3
        assert all(call.status_source is StatusSource.DERIVED for call in commands(run))  # no text is read for it


def test_a_call_without_an_answer_goes_on(tmp_path: Path) -> None:
    document = json.loads(fixture("mini").read_bytes())
    document["info"].update(exit_status="", submission="")
    document["messages"] = document["messages"][:7]
    path = put(tmp_path, document)
    assert commands(read(path))[-1].status is Status.UNKNOWN
    os.utime(path)
    assert commands(read(path))[-1].status is Status.RUNNING


def test_a_run_is_followed_while_it_is_rewritten(tmp_path: Path) -> None:
    document = json.loads(fixture("mini").read_bytes())
    messages, info = document["messages"], document["info"]
    path, growing = tmp_path / "one.traj.json", None
    for count in range(2, len(messages) + 1):
        over = count == len(messages)
        now = {**document, "messages": messages[:count], "info": {**info, "exit_status": "Submitted" if over else ""}}
        path.write_text(json.dumps(now), encoding="utf-8")
        os.utime(path, (LONG_AGO + count, LONG_AGO + count))
        growing = growing or Growing(SweAgent(), RunRef("swe-agent", str(path)))
        growing.read()
        assert [span.id for span in growing.run().spans] == [span.id for span in read(path).spans]
    assert growing is not None
    assert growing.run().summary.status is Status.OK


# -- which files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        [{"role": "user", "content": "hello"}],
        {"messages": [{"role": "user", "content": "hello"}]},
        {"history": [{"role": "user", "content": "hello"}], "goal_achieved": True},
        {"messages": [{"role": "user", "content": 'it writes "mini_version" and "minisweagent.agents"'}]},
        {"trajectory": [{"x": 1.0, "y": 2.0}]},
        {"trajectory": "none", "note": "action, observation, thought"},
    ],
)
def test_other_documents_are_left_alone(tmp_path: Path, document: Any) -> None:
    with SOURCE.open(str(put(tmp_path, document))) as file:
        assert SweAgent().sniff(file) == 0


def test_the_order_of_keys_does_not_matter(tmp_path: Path) -> None:
    for case in ("text", "calls", "mini", "running"):
        document = json.loads(fixture(case).read_bytes())
        path = put(tmp_path, dict(reversed(document.items())))
        with SOURCE.open(str(path)) as file:
            assert SweAgent().sniff(file) == 100
        assert [span.id for span in read(path).spans] == [span.id for span in read(fixture(case)).spans]


def test_fields_that_are_not_known_are_counted() -> None:
    unread = listed(fixture("calls"), deep=True).unread
    assert unread is not None
    assert unread.fields == (("info.weather", 1),)
    assert listed(fixture("mini"), deep=True).unread is None


def test_the_last_run_is_in_the_configuration_of_mini_swe_agent() -> None:
    (home, *_) = SweAgent().homes({"MSWEA_GLOBAL_CONFIG_DIR": "/quay"}, PurePath("/home/x"))
    assert home == PurePath("/quay/last_mini_run.traj.json")


# -- real files --------------------------------------------------------------------------------------------------------


@needs_shared
def test_real_files_are_read_without_problems() -> None:
    paths = [*sample("swe-agent").rglob("*.traj"), *sample("mini-swe-agent").glob("*.traj.json")]
    assert len(paths) >= 7
    for path in paths:
        with SOURCE.open(str(path)) as file:
            scores, failures = registry.scores(file)
        assert not failures
        assert max(scores, key=lambda name: scores[name]) == "swe-agent"
        assert [name for name, score in scores.items() if score] == ["swe-agent"]
        run, document = read(path), json.loads(path.read_bytes())
        assert not run.problems
        assert run.summary.unread is None, (path, run.summary.unread)
        messages = document if isinstance(document, list) else document.get("messages") or document["history"]
        said = [message for message in messages if message["role"] == "assistant" and not message.get("is_demo")]
        assert run.summary.steps == run.summary.llm_calls == len(said)
        info = {} if isinstance(document, list) else document.get("info", {})
        assert run.summary.status_word == info.get("exit_status")
        if "model_stats" in info:
            assert run.summary.usage is not None
            assert run.summary.usage.cost_usd == info["model_stats"]["instance_cost"]
            assert not any(total.differs for total in run.body.totals)
        if "trajectory" in document:
            actions = [step["action"].strip() for step in document["trajectory"]]
            assert [call.preview for call in commands(run)] == [action[:120] for action in actions]
