"""Penelope: both dialects, both tellings of a turn, and whatever else a JSON object may hold."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import SEARCHES, examples, needs_shared, sample
from tracetui.errors import FormatError
from tracetui.formats.penelope import Penelope
from tracetui.live.load import read_run
from tracetui.model import (
    Body,
    Error,
    Operation,
    Reasoning,
    Run,
    RunRef,
    RunSummary,
    Status,
    StatusSource,
    ToolCall,
    text_of,
)
from tracetui.model.summary import FIELDS
from tracetui.sources.local import LocalSource
from tracetui.views.list.result import result_phrase

FIXTURES = Path(__file__).parent / "penelope"
SOURCE = LocalSource()


def read(path: Path) -> Run:
    return read_run(SOURCE, RunRef("penelope", str(path)))


def fixture(case: str) -> Path:
    return next((FIXTURES / case / "input").rglob("*.json"))


def loaded(case: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(fixture(case).read_bytes())
    return document


def written(folder: Path, document: Any, name: str = "test_result.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def summary(path: Path, *, deep: bool) -> RunSummary:
    with SOURCE.open(str(path)) as file:
        (summary,) = Penelope().summarize(file, deep=deep)
    assert isinstance(summary, RunSummary)
    return summary


def sniffed(path: Path) -> int:
    with SOURCE.open(str(path)) as file:
        return Penelope().sniff(file)


# -- what the fixtures are, in the words of the list -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "run_id", "status", "word", "counts", "outcome", "cause"),
    [
        (
            "failure",
            "refund",
            Status.ERROR,
            "failure",
            (3, 5, 1, 0),
            "goal not met 1/2 · 0.50",
            "The target agrees to a refund: Turn 3: it offers the replacement only",
        ),
        (
            "documented",
            "7c1f2a44-6a0e-4d53-9b7e-0d2f61c7a001",
            Status.OK,
            "success",
            (2, 2, 0, 1),
            "goal met 1/1 · 1.00",
            None,
        ),
        ("summary_only", "discount", Status.ERROR, "max_turns", (2, 1, 1, 0), "goal not met", "Error: rate limited"),
        ("error", "nightly", Status.ERROR, "error", (0, 0, 0, 0), "", "Target ep_9 is not reachable"),
        (
            "early",
            "contract",
            Status.ERROR,
            "max_iterations",
            (1, 1, 0, 0),
            "goal not met 0/1 · 0.00",
            'The contract is cancelled: Turn 1: "Please call us."',
        ),
    ],
)
def test_a_fixture_is_listed_as_what_it_is(
    case: str,
    run_id: str,
    status: Status,
    word: str,
    counts: tuple[int, int, int, int],
    outcome: str,
    cause: str | None,
) -> None:
    run_summary = summary(fixture(case), deep=True)
    assert (run_summary.id, run_summary.status, run_summary.status_word, run_summary.result) == (
        run_id,
        status,
        word,
        outcome,
    )
    assert run_summary.status_source is StatusSource.EXPLICIT
    assert (run_summary.steps, run_summary.tool_calls, run_summary.errors, run_summary.problems) == counts
    assert (run_summary.first_error.message if run_summary.first_error else None) == cause


@pytest.mark.parametrize("case", sorted(path.name for path in FIXTURES.iterdir()))
def test_the_list_stage_says_what_the_full_read_says(case: str) -> None:
    quick, deep, run = summary(fixture(case), deep=False), summary(fixture(case), deep=True), read(fixture(case))
    assert run.summary == deep
    for name in FIELDS:
        if name != "deep" and getattr(quick, name) is not None:
            assert getattr(quick, name) == getattr(deep, name), name


def test_a_run_in_progress_is_running_only_while_its_file_moves(tmp_path: Path) -> None:
    path = written(tmp_path, loaded("in_progress"))
    run_summary = summary(path, deep=True)
    assert (run_summary.status, run_summary.status_word, run_summary.result) == (Status.RUNNING, "in_progress", "")
    os.utime(path, (1, 1))
    assert summary(path, deep=True).status is Status.UNKNOWN
    assert summary(path, deep=True).status_source is StatusSource.DERIVED


def test_naive_times_have_no_zone_and_documented_ones_do() -> None:
    naive, documented = summary(fixture("failure"), deep=False), summary(fixture("documented"), deep=False)
    assert (naive.started_at, naive.time_zone, naive.duration_ms) == (1772442901.0, None, 14024.61)
    assert (documented.started_at, documented.time_zone, documented.duration_ms) == (1705314600.0, "UTC", 5200.0)
    blank = summary(fixture("summary_only"), deep=False)
    assert (blank.started_at, blank.time_zone, blank.duration_ms) == (1772442920.0, None, 4500.0)


@pytest.mark.parametrize(
    ("name", "test_id", "expected"),
    [
        ("test_result.json", None, "folder"),
        ("trace.json", "", "folder"),
        ("execution_trace.json", ["x"], "folder"),
        ("refund-7.json", None, "refund-7"),
        ("refund-7.json", "t-1", "t-1"),
        ("trace.json", 12, "12"),
    ],
)
def test_the_id_is_the_test_id_else_what_the_path_says(tmp_path: Path, name: str, test_id: Any, expected: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert summary(written(folder, {**loaded("error"), "test_id": test_id}, name), deep=False).id == expected


def test_placeholders_are_no_tokens_and_real_counts_are() -> None:
    assert summary(fixture("failure"), deep=True).usage is None
    usage = summary(fixture("documented"), deep=True).usage
    assert usage is not None
    assert (usage.total_tokens, usage.input_tokens) == (1250, None)


# -- turns -------------------------------------------------------------------------------------------------------------


def test_target_interaction_is_not_counted_twice() -> None:
    run = read(fixture("failure"))
    assert [(span.id, span.name, depth) for span, depth in zip(run.spans, run.depths, strict=True)] == [
        ("1", "turn 1", 0),
        ("1.1", "send_message_to_target", 1),
        ("1.1.t1", "lookup_order", 2),
        ("2", "turn 2", 0),
        ("2.1", "analyze_response", 1),
        ("2.2", "send_message_to_target", 1),
        ("3", "turn 3", 0),
        ("3.1", "send_message_to_target", 1),
    ]
    assert [step.number for step in run.steps] == [1, 2, 3]


def test_target_interaction_alone_and_one_unlike_all_executions_are_shown(tmp_path: Path) -> None:
    document = loaded("failure")
    first, second = document["history"][:2]
    del first["executions"]
    second["executions"].pop()
    run = read(written(tmp_path, document))
    assert [span.id for span in run.spans if span.name == "send_message_to_target"] == ["1.1", "2.2", "3.1"]
    assert not run.problems


def test_a_failed_call_fails_itself_and_is_noted_at_its_turn() -> None:
    run = read(fixture("failure"))
    turn, call = run.spans[run.index["2"]], run.spans[run.index["2.2"]]
    assert (call.status, call.status_source, call.error) == (
        Status.ERROR,
        StatusSource.EXPLICIT,
        Error("HTTP 502 from target"),
    )
    assert (turn.status, turn.note, turn.duration_ms) == (Status.OK, "call failed", 4220.0)


def test_turns_are_read_from_the_conversation_alone() -> None:
    run = read(fixture("summary_only"))
    first, second = (run.spans[run.index[name]] for name in ("1", "2"))
    assert (first.status, second.status, second.status_source) == (Status.OK, Status.ERROR, StatusSource.EXPLICIT)
    assert second.error == Error("Error: rate limited")
    assert run.spans[run.index["1.t1"]].name == "greet"
    assert run.load(run.spans[run.index["1.t1"]]).input == {"tone": "warm"}
    assert (run.body.last_user, run.body.last_assistant) == ("May I have a discount?", "Error: rate limited")


def test_contradicting_records_are_both_shown_and_reported() -> None:
    run = read(fixture("documented"))
    assert [(problem.where, problem.reason) for problem in run.problems] == [
        ("conversation_summary", "turn 2: target_response differs from the history")
    ]
    assert run.load(run.spans[run.index["2"]]).output == "Liability, collision and theft."
    assert run.load(run.spans[run.index["2.1"]]).output == "Liability and collision."


def test_turns_of_only_one_record_are_shown_in_order(tmp_path: Path) -> None:
    document = loaded("failure")
    del document["history"][0], document["conversation_summary"][2]
    run = read(written(tmp_path, document))
    assert [step.number for step in run.steps] == [1, 2, 3]
    assert {problem.reason for problem in run.problems} == {
        "turn 1: not in the history",
        "turn 3: only in the history",
    }


def test_repeated_turn_numbers_keep_all_turns(tmp_path: Path) -> None:
    document = loaded("failure")
    for turn in document["history"]:
        turn["turn_number"] = 2
    document["conversation_summary"] = []
    run = read(written(tmp_path, document))
    assert [(step.number, step.span) for step in run.steps] == [(2, "2"), (2, "2~2"), (2, "2~3")]


@pytest.mark.parametrize("success", [True, False])
def test_success_of_the_conversation_counts_where_the_tool_says_nothing(tmp_path: Path, success: bool) -> None:
    document = loaded("documented")
    document["conversation_summary"][0]["success"] = success
    run = read(written(tmp_path, document))
    call = run.spans[run.index["1.1"]]
    assert (call.status, call.status_source) == (Status.OK if success else Status.ERROR, StatusSource.EXPLICIT)
    assert call.error == (None if success else Error("Auto and home."))


def test_a_turn_reads_as_a_conversation_and_its_call_as_a_call() -> None:
    run = read(fixture("failure"))
    turn, call = (run.load(run.spans[run.index[name]]) for name in ("1", "1.1"))
    (said,), (heard,) = turn.input_messages, turn.output_messages
    assert (said.name, heard.name) == ("penelope", "target")
    assert (turn.input, turn.output) == (text_of(said), text_of(heard))
    assert turn.attributes["context"] == [{"source": "refunds.md"}]
    (asked,) = call.input_messages
    assert [type(part) for part in asked.parts] == [Reasoning, ToolCall]
    assert call.input == {"message": turn.input}
    assert call.output["response"] == turn.output


@pytest.mark.parametrize("case", sorted(path.name for path in FIXTURES.iterdir()))
def test_raw_is_what_stands_in_the_file(case: str) -> None:
    data = fixture(case).read_bytes()
    run = read(fixture(case))
    for span in run.spans:
        raw = run.load(span).raw
        assert raw.startswith(b"{")
        assert raw in data


# -- the run as a whole ------------------------------------------------------------------------------------------------


def test_criteria_name_their_turns_and_totals_are_recounted() -> None:
    body = read(fixture("documented")).body
    (criterion,) = body.criteria
    assert (criterion.met, criterion.steps) == (True, (2,))
    assert {total.name for total in body.totals if total.differs} == {"total_turns", "criteria_total"}
    assert "Penelope Goal Evaluation criteria_total" in {total.name for total in body.totals}
    (limit,) = body.limits
    assert (limit.name, limit.limit, limit.current, limit.violated) == ("turns", 10, 2, False)
    assert [(metric.name, metric.score, metric.passed) for metric in body.metrics] == [
        ("Penelope Goal Evaluation", 1.0, True)
    ]


def test_criteria_are_recounted_wherever_they_are_declared_and_turns_may_be_text(tmp_path: Path) -> None:
    document = loaded("documented")
    document["metrics"]["Penelope Goal Evaluation"].update(criteria_met=7, criteria_total=1)
    document["goal_evaluation"]["criteria_evaluations"][0]["relevant_turns"] = [1, "2", "no turn", None]
    body = read(written(tmp_path, document)).body
    differs = {total.name: (total.declared, total.counted) for total in body.totals if total.differs}
    assert differs["Penelope Goal Evaluation criteria_met"] == (7, 1)
    assert "Penelope Goal Evaluation criteria_total" not in differs
    assert body.criteria[0].steps == (1, 2)


def test_nothing_differs_in_a_result_that_adds_up() -> None:
    body = read(fixture("failure")).body
    assert not [total for total in body.totals if total.differs]
    assert {"turns_used", "criteria_met", "send_message_to_target failed_calls"} <= {t.name for t in body.totals}


def test_the_violated_limit_is_said() -> None:
    assert [limit.violated for limit in read(fixture("summary_only")).body.limits] == [True]


def _with_status(word: str, *, last_call_fails: bool, evaluated: bool) -> dict[str, Any]:
    document = loaded("failure")
    document["status"] = word
    if last_call_fails:
        document["history"].pop()
        document["conversation_summary"].pop()
    if not evaluated:
        document["goal_evaluation"], document["findings"] = None, ["✗ Test failed", "Completed in 3 turn(s)"]
    return document


@pytest.mark.parametrize(
    ("word", "last_call_fails", "evaluated", "kind", "span"),
    [
        ("failure", True, True, "goal not met", None),
        ("failure", True, False, None, "2.2"),
        ("error", False, True, None, "2.2"),
        ("timeout", True, True, None, "2.2"),
        ("timeout", False, True, "goal not met", None),
        ("timeout", False, False, "timeout", None),
        ("max_turns", False, False, "max_turns", None),
        ("FAILURE", True, True, "goal not met", None),
        ("Max-Turns", True, True, None, "2.2"),
        (" Max Turns", False, False, " Max Turns", None),
    ],
)
def test_the_cause_of_a_failed_run(
    tmp_path: Path, word: str, last_call_fails: bool, evaluated: bool, kind: str | None, span: str | None
) -> None:
    path = written(tmp_path, _with_status(word, last_call_fails=last_call_fails, evaluated=evaluated))
    cause = summary(path, deep=True).first_error
    assert cause is not None
    assert (cause.type, cause.span) == (kind, span)
    assert read(path).summary.first_error == cause
    if kind == word:
        assert cause.message == "ended after 3 of 10 turns"


@pytest.mark.parametrize(
    ("findings", "evaluation", "message"),
    [
        (["✗ Test error", "Error: no route to host"], None, "no route to host"),
        (
            ["Error: no route to host"],
            {"criteria_evaluations": [{"criterion": "Polite", "met": False}]},
            "no route to host",
        ),
        (["Error: no route to host"], {"reason": "There is no conversation.", "score": 0.0}, "no route to host"),
        ([], {"reason": "There is no conversation."}, "There is no conversation."),
    ],
)
def test_a_test_that_broke_down_before_its_first_turn_says_its_error(
    tmp_path: Path, findings: list[str], evaluation: Any, message: str
) -> None:
    document = {**loaded("error"), "findings": findings, "goal_evaluation": evaluation, "goal_achieved": False}
    path = written(tmp_path, document)
    for run_summary in (summary(path, deep=False), summary(path, deep=True), read(path).summary):
        assert (run_summary.result, run_summary.scores, run_summary.outcome) == ("", (), None)
        assert "".join(piece.text for piece in result_phrase(run_summary)) == message
        assert run_summary.first_error is not None
        assert run_summary.first_error.type is None


def test_the_goal_and_every_metric_are_scores(tmp_path: Path) -> None:
    document = loaded("failure")
    document["metrics"] |= {"Tone": 0.5, "Length": "short"}
    path = written(tmp_path, document)
    for run_summary in (summary(path, deep=False), summary(path, deep=True), read(path).summary):
        assert [(score.name, score.value, score.passed) for score in run_summary.scores] == [
            ("goal", 0.5, False),
            ("Goal Achievement", 0.5, False),
            ("Turn Relevancy", 0.8, True),
            ("Tone", 0.5, None),
            ("Length", None, None),
        ]
        assert run_summary.scores[0].reason == "The target never agreed to a refund."
        assert (run_summary.outcome, run_summary.outcome_source) == ("failed", "goal_achieved (recorded in the trace)")
        assert run_summary.task is None


@pytest.mark.parametrize(
    ("status", "outcome", "failed"),
    [("failure", "ungraded", False), ("max_turns", "ungraded", False), ("timeout", "ungraded", True)],
)
def test_a_judge_that_raised_leaves_the_run_ungraded(tmp_path: Path, status: str, outcome: str, failed: bool) -> None:
    error = {"error": "Error evaluating with goal: no model", "exception_type": "ConnectionError", "score": 0.0}
    document = loaded("failure") | {"status": status, "goal_evaluation": error | {"is_successful": False}}
    path = written(tmp_path, document)
    for run in (summary(path, deep=False), summary(path, deep=True), read(path).summary):
        assert (run.outcome, run.failed, run.who) == (outcome, failed, "grader")
        assert run.evidence is not None
        assert (run.evidence.place, run.evidence.type) == ("goal_evaluation.error", "ConnectionError")


def test_a_metric_that_raised_is_no_grade_and_decides_nothing(tmp_path: Path) -> None:
    document = loaded("failure")
    document["metrics"]["Tone"] = {"score": 0, "is_successful": False, "error": "no model"}
    run = summary(written(tmp_path, document), deep=False)
    assert [(score.passed, score.graded) for score in run.scores if score.name == "Tone"] == [(None, False)]
    assert run.outcome == "failed"


def test_the_goal_is_met_by_its_evaluation_where_the_result_does_not_say(tmp_path: Path) -> None:
    document = loaded("documented")
    del document["goal_achieved"]
    listed = summary(written(tmp_path, document), deep=False)
    assert (listed.outcome, listed.scores[0].source) == ("passed", "goal_evaluation.all_criteria_met")
    assert listed.task == document["test_id"]


def test_a_test_that_goes_on_has_no_scores(tmp_path: Path) -> None:
    assert summary(written(tmp_path, loaded("failure") | {"status": "in_progress"}), deep=True).scores == ()


def test_a_good_run_has_no_cause_of_its_own(tmp_path: Path) -> None:
    document = {**loaded("failure"), "status": "success", "goal_achieved": True}
    run = read(written(tmp_path, document))
    assert (run.summary.status, run.summary.errors, run.body.error) == (Status.OK, 1, None)


# -- detection ---------------------------------------------------------------------------------------------------------


def test_detection_does_not_depend_on_order_or_length(tmp_path: Path) -> None:
    document = loaded("failure")
    backwards = dict(reversed(document.items()))
    assert sniffed(written(tmp_path, backwards, "a.json")) == 100
    backwards["metadata"] = {"padding": "x" * 100_000}
    assert sniffed(written(tmp_path, {"goal_evaluation": None, "target_info": {}, **backwards}, "b.json")) > 50


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        "goal_achieved turns_used",
        {"trace": {"goal_achieved": True, "turns_used": 2}},
        {"note": '"goal_achieved": 1, "turns_used": 2'},
        {"goal_achieved": True},
        [{"goal_achieved": True, "turns_used": 1}],
    ],
)
def test_other_files_are_not_claimed(tmp_path: Path, document: Any) -> None:
    assert sniffed(written(tmp_path, document)) == 0


@given(st.binary(max_size=200))
def test_sniffing_survives_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "sniffed.json"
    path.write_bytes(b'{"goal_achieved' + data + b'"turns_used":')
    assert sniffed(path) >= 0


# -- broken and hostile ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"goal_achieved": true, "turns_used": 1, "history": [{', b"\x00\xff"]
)
def test_unreadable_file_is_an_error_with_a_reason(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    for deep in (False, True):
        with pytest.raises(FormatError):
            summary(path, deep=deep)
    assert read(path).problems


def test_values_that_json_forbids_are_read_and_noted(tmp_path: Path) -> None:
    document = loaded("failure")
    document["metrics"]["Turn Relevancy"]["score"] = float("nan")
    call = document["history"][0]["executions"][0]["tool_message"]
    call["content"] = '{"success": false, "output": NaN, "error": "no number"}'
    path = written(tmp_path, document)
    run = read(path)
    assert run.summary == summary(path, deep=False)
    assert any("leniently" in problem.reason for problem in run.problems)
    assert run.spans[run.index["1.1"]].error == Error("no number")
    assert json.loads(run.load(run.spans[0]).raw)["turn_number"] == 1


def test_bad_entries_are_problems_and_hide_nothing(tmp_path: Path) -> None:
    document = loaded("failure")
    document["history"].insert(0, "not a turn")
    document["history"][1]["executions"].append(17)
    document["conversation_summary"].append(None)
    document["goal_evaluation"]["criteria_evaluations"].append({"met": False})
    run = read(written(tmp_path, document))
    assert [problem.where for problem in run.problems] == [
        "goal_evaluation.criteria_evaluations[2]",
        "history[0]",
        "conversation_summary[3]",
        "history[1].executions[1]",
    ]
    assert len(run.steps) == 3
    assert run.body.attributes["history[0]"] == "not a turn"
    assert run.load(run.spans[0]).attributes["executions[1]"] == 17


def test_a_rewritten_file_begins_anew_and_an_unchanged_one_says_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, loaded("in_progress"))
    ref = RunRef("penelope", str(path))
    with SOURCE.open(str(path)) as file:
        reader = Penelope().open(file, ref)
        first, second = reader.more(file), reader.more(file)
    assert (len(first.spans), first.reset, second.spans, second.reset) == (3, False, (), False)
    written(tmp_path, loaded("failure"))
    with SOURCE.open(str(path)) as file:
        new = reader.more(file)
    assert (len(new.spans), new.reset, new.done) == (8, True, True)


# Whole numbers stay within 64 bits: orjson reads longer ones as floats.
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.just("2026-03-02T09:15:01"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document at which something else might stand."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(*path, key), *_places(item, (*path, key))]]


PLACES = {case: _places(loaded(case)) for case in ("failure", "documented", "summary_only", "early")}


@st.composite
def mangled(draw: st.DrawFn) -> dict[str, Any]:
    """A fixture with some of its values replaced by anything, or taken out."""
    case = draw(st.sampled_from(sorted(PLACES)))
    document = copy.deepcopy(loaded(case))
    for path in draw(st.lists(st.sampled_from(PLACES[case]), min_size=1, max_size=4)):
        holder: Any = document
        for key in path[:-1]:
            holder = _child(holder, key)
        if _child(holder, path[-1]) is None:
            continue
        if isinstance(holder, dict) and draw(st.booleans()) and draw(st.booleans()):
            del holder[path[-1]]
        else:
            holder[path[-1]] = draw(JSON)
    return document


def _child(holder: Any, key: Any) -> Any:
    known = key in holder if isinstance(holder, dict) else isinstance(holder, list) and isinstance(key, int)
    return holder[key] if known and (isinstance(holder, dict) or key < len(holder)) else None


@given(mangled())
@settings(max_examples=examples(100))
def test_any_type_anywhere_is_read_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    path = written(tmp_path_factory.getbasetemp(), document, "mangled.json")
    os.utime(path, (1, 1))
    quick, deep, run = summary(path, deep=False), summary(path, deep=True), read(path)
    assert repr(run.summary) == repr(deep)
    for name in ("id", "name", "model", "status_word", "started_at", "time_zone", "prompt", "result"):
        assert repr(getattr(quick, name)) == repr(getattr(deep, name)), name
    bodies = [run.load(span) for span in run.spans]
    assert not [body for body in bodies if "problem" in body.attributes]
    displayed = _leaves([_fields(run.body), *map(_fields, bodies), run.summary.id, run.summary.prompt])
    assert _leaves(document) - displayed == set()


MARKERS = ("a mark", 7.25, ["a mark"], {"of": "a mark"}, '{"of": "a mark"}')


@pytest.mark.search
@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("case", sorted(PLACES))
def test_a_value_at_any_place_reappears(tmp_path: Path, case: str, marker: Any) -> None:
    for place in PLACES[case] if SEARCHES else PLACES[case][MARKERS.index(marker) % 2 :: 2]:
        document = copy.deepcopy(loaded(case))
        holder: Any = document
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = marker
        run = read(written(tmp_path, document))
        displayed = _leaves([_fields(run.body), *(_fields(run.load(span)) for span in run.spans)])
        assert _leaves(marker) <= displayed, place


def _fields(value: Any) -> Any:
    """A struct as plain data, without the raw bytes (in which everything is)."""
    if isinstance(value, Body):
        return [_fields(getattr(value, name)) for name in Body.__struct_fields__ if name != "raw"]
    names = getattr(value, "__struct_fields__", None)
    if names is not None:
        return [_fields(getattr(value, name)) for name in names]
    if isinstance(value, list | tuple):
        return [_fields(item) for item in value]
    return value


def _leaves(value: Any) -> set[str]:
    """Every value that is no container, texts that hold JSON taken apart; null and empty text say nothing."""
    if isinstance(value, dict):
        return set().union(*map(_leaves, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(_leaves, value))
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return _leaves(json.loads(value))
        except ValueError:
            return {repr(value)}
    return set() if value in (None, "") else {repr(value)}


def test_deep_nesting_is_read_or_refused(tmp_path: Path) -> None:
    for depth in (500, 1010, 100_000):
        text = json.dumps({**loaded("error"), "history": [{"turn_number": 1, "x": "DEEP"}]})
        path = tmp_path / f"{depth}.json"
        path.write_text(text.replace('"DEEP"', "[" * depth + "]" * depth), encoding="utf-8")
        run = read(path)
        assert run.problems or run.load(run.spans[0]).attributes["x"]


# -- real files --------------------------------------------------------------------------------------------------------


@needs_shared
@pytest.mark.parametrize(
    ("name", "steps", "calls", "errors", "problems"),
    [
        ("success_3turns", 3, 3, 0, 0),
        ("success_internal_tools", 6, 15, 0, 0),
        ("failure_toolerror", 3, 3, 1, 0),
        ("timeout", 2, 2, 0, 0),
        ("long_40turns", 40, 60, 0, 0),
        ("seed_dialect", 1, 1, 0, 2),
    ],
)
def test_real_results_add_up(name: str, steps: int, calls: int, errors: int, problems: int) -> None:
    path = sample("penelope", name, "test_result.json")
    assert sniffed(path) == 100
    run = read(path)
    summary = run.summary
    assert (summary.steps, summary.tool_calls, summary.errors, summary.problems) == (
        steps,
        calls,
        errors,
        problems,
    )
    assert [total.name for total in run.body.totals if total.differs] == (
        ["total_turns"] if name == "seed_dialect" else []
    )
    assert sum(span.operation is Operation.TURN for span in run.spans) == steps
    data = path.read_bytes()
    assert all(run.load(span).raw in data for span in run.spans)


def test_the_list_stage_reports_a_problem_once(tmp_path: Path) -> None:
    """Without a start time the list stage reads the turns, which it would not otherwise."""
    path = tmp_path / "test_result.json"
    path.write_text(
        json.dumps(
            {
                "status": "error",
                "goal_achieved": False,
                "turns_used": 0,
                "findings": [],
                "history": [],
                "conversation_summary": "../../x",
                "test_configuration": {"goal": "Book a table"},
                "execution_stats": {},
            }
        )
    )
    with LocalSource().open(str(path)) as file:
        runs = [run for deep in (False, True) for run in Penelope().summarize(file, deep=deep)]
    assert [run.problems for run in runs if isinstance(run, RunSummary)] == [1, 1]
