"""Inspect logs: samples and failed attempts as runs, trees of spans, what is shared, scores, limits, tokens, damage."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from tests.formats.inspect_build import (
    DEFLATED,
    ERROR,
    MODEL,
    QUESTION,
    STORED,
    ZSTANDARD,
    EventLog,
    agent,
    answer,
    archive,
    document,
    ended,
    every_kind,
    head,
    in_pieces,
    members,
    retried,
    sample,
    usage,
)
from tests.shared import SHARED, needs_shared, seeds
from tests.shared import sample as shared
from tracetui.analysis.search import Hit, Needle
from tracetui.diff.comparison import compare
from tracetui.errors import FormatError
from tracetui.formats.inspect_ai import Inspect
from tracetui.live.search import grep
from tracetui.model import (
    Error,
    Message,
    Operation,
    Problem,
    Run,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    Usage,
)
from tracetui.sources.local import LocalFile, LocalSource
from tracetui.store.relations import Relations
from tracetui.testing import hostile
from tracetui.testing import read_run as run_of
from tracetui.testing.reading import Follower

CASES = Path(__file__).parent / "inspect"
FORMAT = Inspect()


def written(folder: Path, data: Any, name: str = "log.eval") -> Path:
    """A log with these members, or these bytes; a document where its name says so."""
    path = folder / name
    if name.endswith(".json"):
        path.write_text(json.dumps(data), encoding="utf-8")
    else:
        path.write_bytes(data if isinstance(data, bytes) else archive(data))
    return path


def log_of(folder: Path, *samples: dict[str, Any], **more: Any) -> Path:
    return written(folder, members(head("evalOfTest"), list(samples), **more))


def listed(path: Path, *, deep: bool = True) -> dict[str, RunSummary]:
    """The runs of a log by key."""
    with LocalSource().open(str(path)) as file:
        runs = [run for run in FORMAT.summarize(file, deep=deep) if isinstance(run, RunSummary)]
    return {run.ref.key or "": run for run in runs}


def problems(path: Path) -> list[str]:
    """What could not be read in a log, and in its runs."""
    with LocalSource().open(str(path)) as file:
        reasons = [problem.reason for problem in FORMAT.summarize(file, deep=True) if isinstance(problem, Problem)]
    return reasons + [problem.reason for key in listed(path) for problem in read(path, key).problems]


def read(path: Path, key: str = "dover_epoch_1") -> Run:
    return run_of(FORMAT, RunRef("inspect", str(path), key))


def events(folder: Path, *entries: dict[str, Any], **fields: Any) -> Run:
    """A sample with these events."""
    return read(log_of(folder, sample("dover", events=list(entries), **fields)))


def span(run: Run, name: str) -> Span:
    """The first span of that id or name."""
    return next(span for span in run.spans if name in (span.id, span.name))


def tree(run: Run) -> list[str]:
    """Names of all spans, indented."""
    return ["  " * depth + span.name for depth, span in zip(run.depths, run.spans, strict=True)]


# ---------------------------------------------------------------------------------------------------------------- runs


def test_each_sample_and_epoch_is_a_run_of_the_task(tmp_path: Path) -> None:
    path = written(tmp_path, document(), "log.json")
    runs = listed(path)
    assert list(runs) == [
        "dover_epoch_1",
        "dover_epoch_2",
        "brest_epoch_1_attempt_1",
        "brest_epoch_1_attempt_2",
        "brest_epoch_1",
        "brest_epoch_2",
    ]
    assert {run.name for run in runs.values()} == {"tides"}
    assert [run.label for run in runs.values()][1:4] == [
        "dover #2",
        "brest #1 try 1",
        "brest #1 try 2",
    ]
    dover = runs["dover_epoch_2"]
    assert (dover.id, dover.model, dover.source, dover.tags, dover.writer) == (
        "evalOfDocument/dover_epoch_2",
        MODEL,
        "harbours",
        ("coast", "nightly"),
        "0.3.285",
    )
    assert (dover.prompt, dover.result, dover.started_at, dover.duration_ms) == (
        "When is high water at Dover?",
        "match C",
        1_772_442_001.0,
        24_500.0,
    )


def test_an_archive_and_a_document_of_the_same_log_say_the_same(tmp_path: Path) -> None:
    whole = document()
    spec, samples = whole["eval"], whole["samples"]
    logs = [listed(written(tmp_path, whole, "log.json"))]
    packed = (archive(members(spec, samples), method) for method in (STORED, DEFLATED, ZSTANDARD))
    logs += [listed(written(tmp_path, data)) for data in packed]
    pieces = members(spec, samples)
    pieces |= in_pieces(pieces.pop("samples/dover_epoch_1.json"))
    logs.append(listed(written(tmp_path, pieces)))
    listings = [
        [(run.id, run.status, run.usage, run.steps, run.spans, run.label) for run in log.values()] for log in logs
    ]
    assert listings[1:] == listings[:1] * 4


def test_the_list_stage_reads_no_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log_of(tmp_path, *(sample(f"port{number}") for number in range(100)))
    got: list[int] = []
    plain = LocalFile.read

    def counting(file: LocalFile, offset: int, size: int) -> bytes:
        data = plain(file, offset, size)
        got.append(len(data))
        return data

    monkeypatch.setattr(LocalFile, "read", counting)
    assert len(listed(path, deep=False)) == 100
    assert len(got) < 6  # its end, the list of members, what it says of the eval, summaries
    assert all(run.usage == Usage(280, 40, 320, 80) for run in listed(path, deep=False).values())


def test_failed_attempts_are_runs_that_the_next_one_retries(tmp_path: Path) -> None:
    path = log_of(tmp_path, retried("brest"))
    first, second, last = listed(path).values()
    assert [run.relation for run in (first, second, last)] == [None, "retry", "retry"]
    relations = Relations([first, second, last])
    assert [relations.original(run.ref) for run in (second, last)] == [first.ref, second.ref]
    assert first.first_error is not None
    assert second.first_error is not None
    assert (first.first_error.text, first.first_error.span) == ("RuntimeError('the almanac is gone')", "3")
    assert (second.first_error.text, second.first_error.span) == ("TimeoutError('fog')", "error")
    assert (first.usage, last.usage) == (Usage(30, 3, 33), None)
    run = read(path, "brest_epoch_1_attempt_1")
    assert tree(run) == ["pilot", f"  {MODEL}", "error"]
    assert run.load(span(run, MODEL)).output == "11:32 at springs"  # of what it shares with the other attempts
    assert run.body.attributes["traceback"] == "Traceback: line 3"
    run = read(path, "brest_epoch_1_attempt_2")  # of which there are no events
    assert tree(run) == ["error"]
    assert run.load(run.spans[0]).traceback == "Traceback: line 3"


def test_attempts_missing_from_the_summary_are_counted(tmp_path: Path) -> None:
    parts = members(head("e"), [retried("brest")])
    for name in ("summaries.json", "_journal/summaries/1.json"):
        del parts[name][0]["retries"]
    path = written(tmp_path, parts)
    assert list(listed(path)) == ["brest_epoch_1"]
    assert problems(path) == ["2 failed attempts are not listed: the summary of the sample does not count them"]


def test_a_summary_that_counts_too_many_attempts_lists_so_many_and_no_more(tmp_path: Path) -> None:
    parts = members(head("e"), [sample("dover")])
    parts["summaries.json"][0]["retries"] = 10**9
    runs = listed(written(tmp_path, parts))
    assert len(runs) == 1001
    assert runs["dover_epoch_1_attempt_1"].problems == 1
    assert runs["dover_epoch_1"].problems == 0


def test_epochs_and_files_of_one_task_are_repetitions(tmp_path: Path) -> None:
    path = written(tmp_path, document(), "one.json")
    other = written(
        tmp_path, members(head("evalOfOther", model="acme/gull"), [sample("dover", uuid="u")]), "other.eval"
    )
    runs = [*listed(path).values(), *listed(other).values()]
    assert len({run.repeats for run in runs}) == 2  # Dover and Brest
    first, second = listed(path)["dover_epoch_1"], listed(path)["dover_epoch_2"]
    assert {run.ref for run in runs if run.repeats == first.repeats} == {
        first.ref,
        second.ref,
        listed(other)["dover_epoch_1"].ref,
    }
    assert {*Relations(runs).repeats(first.ref)} == {second.ref, listed(other)["dover_epoch_1"].ref}
    assert first.repeats == listed(path, deep=False)["dover_epoch_1"].repeats


def test_an_eval_without_samples_is_a_run(tmp_path: Path) -> None:
    fault = {"message": "OSError('no sea')", "traceback": "Traceback", "traceback_ansi": ""}
    path = log_of(tmp_path, status="error", error=fault, results=None)
    (only,) = listed(path).values()
    assert (only.ref.key, only.name, only.label, only.status) == ("eval", "tides", "eval", Status.ERROR)
    assert only.first_error is not None
    assert only.first_error.text == "OSError('no sea')"
    assert read(path, "eval").body.attributes["plan"]["name"] == "plan"
    (only,) = listed(log_of(tmp_path)).values()
    assert (only.status, only.result) == (Status.OK, "no samples in the log · match accuracy 0.5")
    assert [(metric.name, metric.score) for metric in read(path, "eval").body.metrics] == [("match accuracy", 0.5)]


def test_an_eval_whose_samples_are_not_in_the_log_says_what_they_used(tmp_path: Path) -> None:
    stats = {"model_usage": {"leaf": usage(60, 6, 20), "oak": usage(5, 1)}}
    (only,) = listed(log_of(tmp_path, stats=stats)).values()
    assert only.usage is not None
    assert (only.usage.input_tokens, only.usage.output_tokens) == (85, 7)
    runs = listed(log_of(tmp_path, sample("dover"), status="cancelled", stats=stats))
    assert (runs["eval"].usage, len(runs)) == (None, 2)


@pytest.mark.parametrize(
    ("status", "failed", "is_listed"), [("success", False, False), ("cancelled", False, True), ("error", True, False)]
)
def test_an_eval_is_a_run_where_no_sample_tells_how_it_ended(
    tmp_path: Path, status: str, failed: bool, is_listed: bool
) -> None:
    path = log_of(tmp_path, retried("brest") if failed else sample("dover"), status=status)
    assert ("eval" in listed(path)) is is_listed


def test_complete_samples_of_a_running_eval_are_listed(tmp_path: Path) -> None:
    parts = members(head("evalGoing"), [sample("dover"), sample("brest")], over=False)
    path = written(tmp_path, parts)
    runs = listed(path)
    assert list(runs) == ["eval", "dover_epoch_1", "brest_epoch_1"]
    assert (runs["eval"].status, runs["eval"].status_source) == (Status.RUNNING, StatusSource.DERIVED)
    assert runs["eval"].result == "2/2 samples"
    assert runs["brest_epoch_1"].status is Status.OK
    del parts["_journal/summaries/2.json"]  # it comes after the sample
    assert listed(written(tmp_path, parts))["brest_epoch_1"].prompt == "When is high water at Dover?"
    whole = {**document(), "status": "started"}
    assert listed(written(tmp_path, whole, "log.json"))["eval"].status is Status.RUNNING


# --------------------------------------------------------------------------------------------------------------- spans


def test_the_tree_is_that_of_the_spans_and_a_call_is_one_of_them(tmp_path: Path) -> None:
    run = read(log_of(tmp_path, sample("dover")))
    assert tree(run) == [
        "init",
        "  sample_init",
        "solvers",
        "  react",
        "    pilot",
        f"      {MODEL}",
        "      tide",
        "        almanac",
        f"          {MODEL}",
        "          exec",
        "          store",
        f"      {MODEL}",
        "scorers",
        "  match",
        "    score match",
    ]
    assert [span.step for span in run.spans if span.is_step] == [1, 2, 3]
    call = span(run, "tide")
    assert (call.operation, call.preview, call.duration_ms) == (Operation.EXECUTE_TOOL, "Dover", 6000.0)
    body = run.load(call)
    assert (body.input, body.output) == ({"port": "Dover"}, "11:32 at springs")
    assert body.attributes["span_begin"]["type"] == "tool"
    assert body.attributes["span_end"]["event"] == "span_end"
    assert json.loads(body.raw)["event"] == "tool"
    assert span(run, "pilot").operation is span(run, "almanac").operation is Operation.INVOKE_AGENT


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 2, 3), (0, 2, 3, 1)])
def test_a_call_finds_its_span_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    log = EventLog("x")
    log.begin("a", "agent", "pilot")
    for ident in ("one", "two"):
        log.begin(ident, "tool", "tide", "a")
        log.add("tool", "a", id=ident, function="tide", arguments={"port": ident}, result=ident, events=[])
    for ident in ("one", "two"):
        log.add("info", ident, data=ident)
        log.end(ident)
    first, *rest = log.events
    run = events(tmp_path, first, *(rest[place] for place in order), *rest[4:])
    assert tree(run) == ["pilot", "  tide", "    info", "  tide", "    info"]
    pairs = [(span, run.spans[run.index[span.id] + 1]) for span in run.spans if span.name == "tide"]
    assert all(run.load(call).output == run.load(info).output for call, info in pairs)


def test_spans_side_by_side_and_those_without_an_end(tmp_path: Path) -> None:
    run = events(tmp_path, *every_kind()[:4])
    assert tree(run) == ["left", f"  {MODEL}", "right", f"  {MODEL}"]
    assert [span.status for span in run.spans] == [Status.UNKNOWN, Status.OK, Status.UNKNOWN, Status.ERROR]


def test_steps_of_early_logs_are_closed_in_the_order_of_a_stack() -> None:
    run = read(CASES / "early" / "input" / "early.json", "7_epoch_1")
    assert tree(run) == [
        "sample_init",
        "generate",
        "  acme/tern-1",
        "  moon",
        "    acme/tern-1",
        "    recall",
        "      info",
        "step",
        "match",
        "  score",
    ]
    assert span(run, "generate").duration_ms == 3000.0
    assert run.load(span(run, "acme/tern-1")).output == "Yes, it is."
    assert [span.step for span in run.spans if span.is_step] == [1, 2]
    assert run.summary.result == "score 1"


def test_every_kind_of_event_is_shown_for_what_it_is(tmp_path: Path) -> None:
    run = events(tmp_path, *every_kind())
    by_name = {span.name: span for span in run.spans}
    kinds = {name: (span.operation, span.status, span.preview, span.note) for name, span in by_name.items()}
    fine, failed = Status.OK, Status.ERROR
    assert kinds["approval"] == (Operation.POLICY, fine, "may it?", "auto")
    assert kinds["compaction"] == (Operation.META, fine, "9000 → 1200 tokens", "summary")
    assert kinds["info"] == (Operation.META, fine, '{"depth":4.5}', "pilot")
    assert kinds["logger"] == (Operation.META, fine, "shoal ahead", "warning")
    assert kinds["input"] == (Operation.MESSAGE, fine, "go on", "")
    assert kinds["state"] == (Operation.META, fine, "/messages/0", "")
    assert kinds["interrupt"] == (Operation.OTHER, Status.CANCELLED, "", "user_cancel")
    assert kinds["message limit"] == (Operation.POLICY, failed, "Exceeded message limit: 12", "")
    assert kinds["weather"] == (Operation.UNKNOWN, fine, "", "")
    assert run.load(by_name["weather"]).attributes["wind"] == {"knots": 31}
    assert [span.error for span in run.spans if span.name in ("tide", "moon", "error")] == [
        Error("tide did not answer", "timeout"),
        Error("moon did not answer", "parsing"),
        Error("ValueError('no tide')", "ValueError"),
    ]
    refused, allowed = (span for span in run.spans if span.name == "approval")
    assert (refused.status, refused.status_source, allowed.status) == (failed, StatusSource.POLICY, fine)
    assert run.load(span(run, "error")).traceback == "Traceback: line 9"
    assert run.summary.unread is not None
    assert run.summary.unread.kinds == (("weather", 1),)
    assert run.summary.problems == 0


def test_model_calls_have_their_status(tmp_path: Path) -> None:
    cut, failed = (span for span in events(tmp_path, *every_kind()).spans if span.operation is Operation.CHAT)
    assert (cut.status, cut.status_word, cut.note, cut.usage) == (
        Status.OK,
        "max_tokens",
        "max_tokens · grader",
        Usage(140, 20, 160, 40),
    )
    assert (failed.status, failed.error) == (Status.ERROR, Error("RateLimitError: try again", "RateLimitError"))
    run = read(log_of(tmp_path, sample("dover")))
    first, second, third = (span for span in run.spans if span.operation is Operation.CHAT)
    assert (first.preview, second.note, third.note, third.usage) == ("I look it up.", "2 retries", "cached", None)


def test_a_command_in_a_sandbox_says_by_its_exit_code_how_it_went(tmp_path: Path) -> None:
    run = read(log_of(tmp_path, sample("dover")))
    done = span(run, "exec")
    assert (done.status, done.status_source, done.error) == (Status.ERROR, StatusSource.EXIT, Error("", "exit 3"))
    assert run.load(done).output == "no such port\n"
    assert run.summary.status is Status.OK


# ---------------------------------------------------------------------------------------------------- what is shared


def test_messages_and_requests_that_events_share_are_put_in_their_place(tmp_path: Path) -> None:
    run = read(log_of(tmp_path, sample("dover")))
    first, _, third = (span for span in run.spans if span.operation is Operation.CHAT)
    body = run.load(first)
    assert body.input_messages == (
        Message("system", (Text("You pilot ships."),), "m0"),
        Message("user", (Text("When is high water at Dover?"),), "m1"),
    )
    assert body.attributes["call"]["request"] == {"model": "tern-2", "messages": [{"role": "user", "content": "wire"}]}
    assert body.output_messages[0].parts == (Text("I look it up."), ToolCall("c1", "tide", {"port": "Dover"}))
    assert [message.role for message in run.load(third).input_messages] == ["system", "user", "assistant", "tool"]


def test_a_reference_to_what_is_not_there_stays_as_it_is(tmp_path: Path) -> None:
    given = [[0, 10**9], [-5, 1], [3, 1], ["a", 2], None, 7]
    lost = {"role": "user", "content": "attachment://none"}
    log = EventLog("x")
    base: dict[str, Any] = {
        "model": MODEL,
        "tools": [],
        "tool_choice": "auto",
        "config": {},
        "output": answer("attachment://0"),
    }
    log.add("model", **base, input=[], input_refs=given)
    run = events(tmp_path, *log.events, events_data={"messages": [lost], "calls": []}, attachments={})
    body = run.load(run.spans[0])
    assert body.input_messages == (Message("user", (Text("attachment://none"),)),) * 2
    assert body.output == "attachment://0"


def test_missing_pieces_lose_no_shared_values(tmp_path: Path) -> None:
    whole = members(head("e"), [sample("dover")])
    pieces = in_pieces(whole.pop("samples/dover_epoch_1.json"))
    path = written(tmp_path, {**whole, **pieces})
    run = read(path)
    assert (len(run.spans), run.problems) == (15, ())
    assert run.load(span(run, "tide")).output == "11:32 at springs"
    assert [message["content"] for message in run.body.attributes["messages"]][:2] == [
        "You pilot ships.",
        QUESTION["content"],
    ]
    assert run.body.attributes["metadata"] == {"sea": "channel"}
    for name in ("events/7.json", "attachments/0.json", "messages/0.json"):
        kept = {key: value for key, value in pieces.items() if not key.endswith(name)}
        run = read(written(tmp_path, {**whole, **kept}))
        lost = [] if name != "events/7.json" else ["a piece of the sample is missing"]
        assert [problem.reason for problem in run.problems] == lost
        assert len(run.spans) == (0 if lost else 15)


# ----------------------------------------------------------------------------------------- how samples went, and tokens


def test_a_limit_cuts_a_sample_off(tmp_path: Path) -> None:
    cut: dict[str, Any] = {"limit": {"type": "message", "limit": 12}, "scores": {"match": {"value": "I"}}}
    path = log_of(tmp_path, sample("dover", events=every_kind(), **cut))
    dover = listed(path)["dover_epoch_1"]
    assert (dover.status, dover.status_source, dover.status_word) == (
        Status.ERROR,
        StatusSource.POLICY,
        "message limit",
    )
    assert (dover.result, dover.first_error and dover.first_error.name) == ("message limit · match I", "message limit")
    (limit,) = read(path).body.limits
    assert (limit.name, limit.limit, limit.violated) == ("message_limit", 12.0, True)
    path = log_of(tmp_path, sample("dover", limit={"type": "operator", "limit": 1}))
    assert listed(path)["dover_epoch_1"].status is Status.CANCELLED


def test_an_error_is_the_cause_of_a_sample(tmp_path: Path) -> None:
    path = log_of(tmp_path, sample("dover", events=every_kind(), error={**ERROR, "message": "ValueError('no tide')"}))
    for deep in (False, True):
        dover = listed(path, deep=deep)["dover_epoch_1"]
        assert dover.status is Status.ERROR
        assert dover.first_error is not None
        assert (dover.first_error.type, dover.first_error.message) == ("ValueError", "ValueError('no tide')")
        assert dover.first_error.span == ("25" if deep else None)
    assert read(path).body.error == Error("ValueError('no tide')", "ValueError")


@pytest.mark.parametrize(
    ("value", "score", "passed", "result"),
    [
        ("C", 1.0, True, "C"),
        ("I", 0.0, False, "I"),
        ("P", 0.5, None, "P"),
        ("fine", None, None, "fine"),
        (0.25, 0.25, None, "0.25"),
        (True, 1.0, True, "true"),
        (float("nan"), None, None, "NaN"),
        ([1, "C"], None, None, "1 C"),
        (None, None, None, ""),
    ],
)
@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_scores_are_metrics(
    tmp_path: Path, name: str, value: Any, score: float | None, passed: bool | None, result: str
) -> None:
    dover = sample("dover", scores={"match": {"value": value, "explanation": "so it is"}})
    whole = {**ended(head("e"), [dover]), "samples": [dover]}
    path = written(tmp_path, whole if name.endswith("json") else members(head("e"), [dover]), name)
    (metric,) = read(path).body.metrics
    assert (metric.name, metric.score, metric.passed, metric.reason) == ("match", score, passed, "so it is")
    assert listed(path)["dover_epoch_1"].result == (f"match {result}" if result else "")
    assert problems(path) == []  # Inspect writes NaN, which JSON does not allow


ACCURACY: list[Any] = [{"name": "inspect_ai/accuracy", "options": {}}]


@pytest.mark.parametrize(
    ("metrics", "value", "recorded", "passed"),
    [
        (None, "C", "C", True),
        (None, "I", "I", False),
        (None, "N", "N", False),
        (None, "P", "P", None),
        (None, "Yes", "Yes", True),
        (None, "no", "no", False),
        (None, "tide", "tide", None),
        (None, True, True, True),
        (None, False, False, False),
        (ACCURACY, 1, 1, True),
        (ACCURACY, 0.0, 0.0, False),
        (ACCURACY, 0.5, 0.5, None),
        ([{"name": "mean"}], 1.0, 1.0, None),
        ({"*": ACCURACY}, 1.0, 1.0, None),
        (None, 1, 1, None),
        (None, float("nan"), "NaN", None),
        (None, ["C", 0.5], "C 0.5", None),
        (None, None, None, None),
    ],
)
def test_a_score_passes_by_the_rule_of_its_value(
    tmp_path: Path, metrics: Any, value: Any, recorded: Any, passed: bool | None
) -> None:
    dover = sample("dover", scores={"grade": {"value": value, "explanation": "so it is"}})
    spec = head("evalOfTest") | {"scorers": [{"name": "grade", "metrics": metrics}]}
    path = written(tmp_path, members(spec, [dover]))
    for deep in (False, True):
        summary = listed(path, deep=deep)["dover_epoch_1"]
        (score,) = summary.scores
        assert (score.name, score.value, score.passed) == ("grade", recorded, passed)
        assert (score.source, score.reason) == ("scores.grade.value", "so it is")
        assert bool(score.rule) == (value in ("P", 0.5) or (passed is not None and not isinstance(value, bool)))
        assert summary.outcome == (None if passed is None else "passed" if passed else "failed")
    assert read(path).body.metrics[0].passed is passed


def scoring(*entries: dict[str, Any], scored: bool = False) -> list[dict[str, Any]]:
    """Events of a sample whose scorer does this, and then gives a score or none."""
    begun = [
        {"event": "span_begin", "id": "a", "type": "solvers", "name": "solvers"},
        {"event": "span_begin", "id": "s", "type": "scorers", "name": "scorers"},
        {"event": "span_begin", "id": "m", "type": "scorer", "name": "match", "parent_id": "s"},
    ]
    score = {"event": "score", "span_id": "m", "scorer": "match", "score": {"value": "I"}, "intermediate": False}
    return [*begun, *entries, *([score] if scored else [])]


RAISED = {"event": "error", "error": {"message": "KeyError('answer')", "traceback": ""}}
NO_PYTEST = {"event": "sandbox", "span_id": "m", "action": "exec", "cmd": "bash run.sh", "result": 127}
WRONG = {"match": {"value": "I"}}


@pytest.mark.parametrize(
    ("entries", "fields", "outcome", "failed", "who", "place"),
    [
        (scoring(RAISED), {"error": RAISED["error"]}, "ungraded", False, "grader", "events[3].error.message"),
        # the agent raised, whether or not it is scored
        ([*scoring()[:1], RAISED], {"error": RAISED["error"]}, None, True, "agent", None),
        ([*scoring()[:1], RAISED, *scoring()[1:]], {"error": RAISED["error"]}, None, True, "agent", None),
        # nothing had begun
        ([RAISED], {"error": RAISED["error"]}, "ungraded", False, "environment", "events[0].error.message"),
        ([], {"error": {"message": "RuntimeError('Error response from daemon: no such image')"}},
         "ungraded", False, "environment", "error.message"),
        ([], {"error": RAISED["error"]}, None, True, "agent", None),
        # a limit while the scorer worked, and while the agent did
        (scoring({"event": "sample_limit", "type": "time", "message": "Exceeded time limit: 60"}),
         {"limit": {"type": "time", "limit": 60}}, "ungraded", False, "grader", "events[3].message"),
        ([*scoring()[:1], {"event": "sample_limit", "type": "time", "message": "Exceeded time limit: 60"}],
         {"limit": {"type": "time", "limit": 60}}, None, True, "agent", None),
        # the last command of the scorer says that no test ran, or that one did
        (scoring(NO_PYTEST | {"output": "run.sh: line 2: pytest: command not found\n"}, scored=True),
         {"scores": WRONG}, "ungraded", False, "grader", "events[3].output line 1"),
        (scoring(NO_PYTEST | {"output": "bash: pip: command not found\n"}, NO_PYTEST | {"output": "1 failed in 0.1s\n"},
         scored=True), {"scores": WRONG}, "failed", True, "agent", None),
        (scoring(scored=True), {"scores": WRONG}, "failed", True, "agent", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_sample_is_ungraded_by_evidence_alone(
    tmp_path: Path,
    name: str,
    entries: list[dict[str, Any]],
    fields: dict[str, Any],
    outcome: str | None,
    failed: bool,
    who: str,
    place: str | None,
) -> None:
    dover = sample("dover", events=entries, **({"scores": {}} | fields))
    whole = {**ended(head("e"), [dover]), "samples": [dover]}
    path = written(tmp_path, whole if name.endswith("json") else members(head("e"), [dover]), name)
    run = listed(path)["dover_epoch_1"]
    assert (run.outcome, run.failed, run.who) == (outcome, failed, who)
    assert (run.evidence and run.evidence.place) == place


def test_a_failed_attempt_whose_scorer_raised_is_not_the_agents(tmp_path: Path) -> None:
    attempt = {"message": "KeyError('answer')", "traceback": "", "events": scoring(RAISED)}
    path = log_of(tmp_path, sample("dover", error_retries=[attempt]))
    runs = listed(path)
    assert [(run.outcome, run.failed) for run in runs.values()] == [("ungraded", False), ("passed", False)]


def test_values_of_one_scorer_pass_by_the_metrics_of_their_names(tmp_path: Path) -> None:
    dover = sample("dover", scores={"rubric": {"value": {"depth": 1, "style": 0}, "explanation": "short"}})
    spec = head("evalOfTest") | {"scorers": [{"name": "rubric", "metrics": [{"depth": ACCURACY}, {"style": []}]}]}
    scores = listed(written(tmp_path, members(spec, [dover])))["dover_epoch_1"].scores
    assert [(score.name, score.passed, score.source, score.reason) for score in scores] == [
        ("rubric depth", True, "scores.rubric.value.depth", "short"),
        ("rubric style", None, "scores.rubric.value.style", "short"),
    ]


def test_a_log_without_scorers_says_by_its_results_whose_accuracy_is_measured(tmp_path: Path) -> None:
    dover = listed(log_of(tmp_path, sample("dover", scores={"match": {"value": 1}})))["dover_epoch_1"]
    assert (dover.scores[0].passed, dover.outcome) == (True, "passed")


def test_the_explanation_is_as_long_in_a_summary_as_in_its_sample(tmp_path: Path) -> None:
    long = sample("dover", scores={"match": {"value": "I", "explanation": "wrong\n" * 400}})
    log = members(head("evalOfTest"), [long])
    log["summaries.json"][0]["scores"] = {"match": {"value": "I", "explanation": ("wrong " * 170).strip() + "..."}}
    path = written(tmp_path, log)
    reasons = {listed(path, deep=deep)["dover_epoch_1"].scores[0].reason for deep in (False, True)}
    assert len(reasons) == 1
    assert len(reasons.pop()) == 500
    assert len(read(path).body.metrics[0].reason) == 2400


def test_task_and_trial_are_the_sample_and_its_epoch(tmp_path: Path) -> None:
    path = written(tmp_path, document(), "log.json")
    assert {(run.task, run.trial) for run in listed(path).values()} == {
        (f"tides/{name}", epoch) for name in ("dover", "brest") for epoch in ("1", "2")
    }


def test_a_sample_that_calls_itself_by_another_id_is_the_one_of_its_summary(tmp_path: Path) -> None:
    log = members(head("evalOfTest"), [sample("dover")])
    log["samples/dover_epoch_1.json"] = log["samples/dover_epoch_1.json"] | {"id": "brest", "epoch": 3}
    path = written(tmp_path, log)
    runs = [listed(path, deep=deep)["dover_epoch_1"] for deep in (False, True)] + [read(path).summary]
    assert {(run.task, run.trial, run.label) for run in runs} == {("tides/dover", "1", "dover")}
    assert len({run.repeats for run in runs}) == 1


def test_a_score_of_several_values_is_several_metrics(tmp_path: Path) -> None:
    run = read(log_of(tmp_path, sample("dover", scores={"rubric": {"value": {"depth": 0.5, "style": "I"}}})))
    assert [(metric.name, metric.score, metric.passed) for metric in run.body.metrics] == [
        ("rubric depth", 0.5, None),
        ("rubric style", 0.0, False),
    ]
    assert run.summary.result == "rubric depth 0.5 style I"


def test_a_score_that_is_nested_very_deeply_is_read(tmp_path: Path) -> None:
    value: Any = "C"
    for _ in range(500):
        value = [value]
    run = read(log_of(tmp_path, sample("dover", scores={"rubric": {"value": value}})))
    assert run.summary.result == ""


@pytest.mark.parametrize(
    ("version", "given"), [("0.3.285", 140), ("0.3.184", 140), ("0.3.183.dev1+g1", 100), (None, 140), ("new", 140)]
)
def test_input_includes_what_came_from_a_cache(tmp_path: Path, version: str | None, given: int) -> None:
    """Since 0.3.184 Inspect never counts it in; before it did for providers whose total is input and output alone."""
    used = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, "input_tokens_cache_read": 40}
    spec = head("e", packages={} if version is None else {"inspect_ai": version})
    path = written(tmp_path, members(spec, [sample("dover", model_usage={MODEL: used})]))
    assert listed(path)["dover_epoch_1"].usage == Usage(given, 20, 120, 40)
    apart = {**used, "total_tokens": 160}
    path = written(tmp_path, members(spec, [sample("dover", model_usage={MODEL: apart})]))
    assert listed(path)["dover_epoch_1"].usage == Usage(140, 20, 160, 40)


def test_declared_usage_is_beside_the_sum_of_calls(tmp_path: Path) -> None:
    run = read(log_of(tmp_path, sample("dover", model_usage={MODEL: usage(200, 41, 80), "acme/gull": usage(5, 1)})))
    assert run.summary.usage == Usage(285, 42, 327, 80)
    assert [(total.name, total.declared, total.counted) for total in run.body.totals] == [
        ("input_tokens", 285, 280),
        ("output_tokens", 42, 40),
        ("total_tokens", 327, 320),
    ]


# ------------------------------------------------------------------------------------------------------- growth, damage


def states(tmp_path: Path) -> Iterator[bytes]:
    """A log as Inspect extends it: sample after sample, then its end."""
    parts = list(members(head("evalOfGrowth"), [sample("dover"), retried("brest"), sample("calais")]).items())
    for count in (1, 3, 5, 7, len(parts)):
        yield archive(parts[:count], ZSTANDARD)


@pytest.mark.parametrize("torn", [False, True])
def test_a_log_that_is_extended_is_read_as_one_that_was_there_at_once(tmp_path: Path, torn: bool) -> None:
    path = written(tmp_path, b"")
    keys = ["eval", "dover_epoch_1", "brest_epoch_1", "brest_epoch_1_attempt_1", "calais_epoch_1"]
    followers = [Follower(FORMAT, RunRef("inspect", str(path), key)) for key in keys]
    random = Random(1)
    for number, data in enumerate(states(tmp_path)):
        cuts = sorted(random.randrange(len(data)) for _ in range(4)) if torn else []
        for size in (*cuts, len(data)):
            path.write_bytes(data[:size])
            for follower in followers:
                follower.read()
                follower.check(f"state {number}, {size} bytes")
    if not torn:  # of a sample that is complete nothing is given again before the end of the eval is
        assert [follower.resets for follower in followers] == [4, 1, 1, 1, 1]
    before = [follower.given for follower in followers]
    for follower in followers:
        follower.read()
    assert [follower.given for follower in followers] == before


def test_a_log_that_says_nothing_new_of_a_sample_gives_nothing_again(tmp_path: Path) -> None:
    parts = list(members(head("e"), [sample("dover")]).items())
    path = written(tmp_path, archive(parts))
    follower = Follower(FORMAT, RunRef("inspect", str(path), "dover_epoch_1"))
    follower.read()
    path.write_bytes(archive(parts, ZSTANDARD))  # the same, packed in another way
    follower.read()
    assert (follower.given, follower.resets) == (15, 0)


def test_a_sample_that_cannot_be_read_is_listed_with_what_its_summary_says(tmp_path: Path) -> None:
    data = archive(members(head("e"), [sample("dover"), sample("brest")]), STORED)
    path = written(tmp_path, data.replace(b"as in the almanac", b"AS IN THE ALMANAC", 1))
    runs = listed(path)
    assert runs["dover_epoch_1"].result == "match C"
    assert runs["dover_epoch_1"].spans == 0
    assert read(path).body.attributes["uuid"] == "uuid-dover-1"
    (problem,) = read(path).problems
    assert (problem.where, problem.torn) == ("samples/dover_epoch_1.json", True)
    assert problem.reason.startswith("broken")
    assert runs["brest_epoch_1"].spans == 15


def test_an_unreadable_sample_without_a_summary_has_an_unknown_status(tmp_path: Path) -> None:
    parts = members(head("e"), [sample("dover")], over=False)
    del parts["_journal/summaries/1.json"]
    path = written(tmp_path, archive(parts, STORED).replace(b"as in the almanac", b"AS IN THE ALMANAC", 1))
    for deep in (False, True):
        dover = listed(path, deep=deep)["dover_epoch_1"]
        assert (dover.status, dover.status_source) == (Status.UNKNOWN, StatusSource.DERIVED)
    assert len(read(path).problems) == 1


def test_a_log_without_its_list_of_members_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = written(tmp_path, archive(members(head("e"), [sample("dover"), sample("brest")]), listed=False)[:-3000])
    assert "dover_epoch_1" in listed(path)
    assert problems(path) == ["truncated: the archive has no central directory: recovered from the members"]


@pytest.mark.parametrize("data", [b"{}", b'{"eval": {"task": "x"}}', b"PK\3\4", b"PK\3\4" + b"x" * 99, b"[]", b""])
def test_others_are_not_claimed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with LocalSource().open(str(tmp_path / "x")) as file:
        assert FORMAT.sniff(file) == 0


def test_other_archives_are_not_claimed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as zip_file:
        zip_file.writestr("word/document.xml", "<x/>")
    with LocalSource().open(str(tmp_path / "x.eval")) as file:
        assert FORMAT.sniff(file) == 0


def _junk(members_: dict[str, Any], random: Random) -> bytes:
    """An archive in which one value of one member is something else."""
    changed = json.loads(json.dumps(members_))
    where, key = random.choice(hostile.places(list(changed.values())))
    where[key] = random.choice(hostile.JUNK[:-2])
    return archive({name: json.dumps(value).encode() for name, value in changed.items()}, STORED)


@pytest.mark.search
@pytest.mark.parametrize("seed", seeds(12))
def test_hostile_members_become_problems(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    whole = members(head("e"), [sample("dover", events=agent() + every_kind()), retried("brest")])
    for _ in range(25):
        path = written(tmp_path, _junk(whole, random))
        try:
            quick, deep = listed(path, deep=False), listed(path)
        except FormatError:
            continue
        assert list(quick) == list(deep)
        for key in deep:
            run = read(path, key)
            for span in run.spans:
                run.load(span)


def test_events_within_events_end_somewhere(tmp_path: Path) -> None:
    entry: dict[str, Any] = {"event": "info", "data": "the last"}
    for _ in range(60):
        entry = {"event": "tool", "function": "deep", "arguments": {}, "events": [entry]}
    run = events(tmp_path, entry)
    assert 10 < len(run.spans) < 40
    assert [problem.reason for problem in run.problems] == ["more deeply nested events are not shown"]
    for span in run.spans:
        run.load(span)


# --------------------------------------------------------------------------------------------------- diff and search


def test_epochs_are_compared_up_to_where_they_part(tmp_path: Path) -> None:
    other = agent("y")
    call = next(event for event in other if event["event"] == "tool")
    call["arguments"] = {"port": "Calais"}
    path = log_of(tmp_path, sample("dover"), sample("dover", 2, events=other))
    diff = compare(read(path), read(path, "dover_epoch_2"))
    assert diff.relation == "repeat"
    assert diff.first is not None
    assert (diff.first.path, diff.first.a, diff.first.b) == ("port", "Dover", "Calais")
    assert diff.first.row == 6


def test_text_in_packed_members_is_found(tmp_path: Path) -> None:
    written(tmp_path, archive(members(head("e"), [sample("dover"), retried("brest")]), ZSTANDARD))
    hits = [hit for hit in grep(LocalSource(), [str(tmp_path)], Needle("at springs")) if isinstance(hit, Hit)]
    assert {(hit.ref.key, hit.name) for hit in hits} == {("dover_epoch_1", "tide"), ("brest_epoch_1_attempt_1", MODEL)}
    assert not [hit for hit in grep(LocalSource(), [str(tmp_path)], Needle("at neaps")) if isinstance(hit, Hit)]


# ---------------------------------------------------------------------------------------------------------- real files


def logs() -> list[Path]:
    if SHARED is None:
        return []
    paths = [path for path in shared("inspect-ai").rglob("*") if path.suffix in (".eval", ".json")]
    return sorted(path for path in paths if path.parent.name != "test_skeleton")  # parts of logs


def raw(path: Path) -> dict[str, Any]:
    """A log read independently of the program: its header, and its samples under ``samples``."""
    if path.suffix == ".json":
        document: dict[str, Any] = json.loads(path.read_bytes())
        return document
    data, parts = path.read_bytes(), {}
    with zipfile.ZipFile(path) as listed_:
        for info in listed_.infolist():
            start = info.header_offset + 30 + sum(data[info.header_offset + at] for at in (26, 28)) + 0
            start += 256 * sum(data[info.header_offset + at] for at in (27, 29))
            inner = data[start : start + info.compress_size]
            if info.compress_type == 93:
                plain = zstandard.ZstdDecompressor().stream_reader(inner, read_across_frames=True).read()
            else:
                plain = zlib.decompress(inner, -15)
            parts[info.filename] = json.loads(plain)
    samples = [value for name, value in parts.items() if name.startswith("samples/")]
    return {**parts.get("header.json", parts["_journal/start.json"]), "samples": samples}


every_log = partial(pytest.mark.parametrize, "path", logs(), ids=lambda path: path.name[26:60] or path.name)


@needs_shared
@every_log()
def test_real_logs_are_read_with_no_problem(path: Path) -> None:
    with LocalSource().open(str(path)) as file:
        assert FORMAT.sniff(file) == 100
    document = raw(path)
    runs = listed(path)
    samples = [key for key in runs if key != "eval" and "_attempt_" not in key]
    assert sorted(samples) == sorted(
        f"{record['id']}_epoch_{record['epoch']}" for record in document.get("samples") or []
    )
    assert problems(path) == []
    for key in runs:
        run = read(path, key)
        for span in run.spans:
            assert "problem" not in run.load(span).attributes
        assert not [total for total in run.body.totals if total.differs]
        assert not [span for span in run.spans if span.operation is Operation.UNKNOWN]


@needs_shared
@every_log()
def test_tokens_of_real_logs_are_those_of_their_own_stats(path: Path) -> None:
    document = raw(path)
    stats = (document.get("stats") or {}).get("model_usage") or {}
    if not stats:
        return
    stated = {
        name: sum(table.get(name) or 0 for table in stats.values())
        for name in ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read")
    }
    used = [run.usage for run in listed(path).values() if run.usage is not None]
    cached = sum(usage.cache_read_tokens or 0 for usage in used)
    assert sum(usage.input_tokens or 0 for usage in used) == stated["input_tokens"] + stated["input_tokens_cache_read"]
    assert cached == stated["input_tokens_cache_read"]
    assert sum(usage.output_tokens or 0 for usage in used) == stated["output_tokens"]
    assert sum(usage.total_tokens or 0 for usage in used) == stated["total_tokens"]


@needs_shared
@every_log()
def test_every_event_of_real_logs_is_a_span(path: Path) -> None:
    for record in raw(path).get("samples") or []:
        entries = record.get("events") or record.get("transcript", {}).get("events", [])
        calls = sum(event["event"] == "tool" for event in entries)
        spans = [event for event in entries if event["event"] == "span_begin" and event.get("type") == "tool"]
        ends = sum(event["event"] == "span_end" or event.get("action") == "end" for event in entries)
        run = read(path, f"{record['id']}_epoch_{record['epoch']}")
        assert len(run.spans) == len(entries) - ends - len(spans)
        assert run.summary.tool_calls == calls
        assert run.summary.llm_calls == sum(event["event"] == "model" for event in entries)
