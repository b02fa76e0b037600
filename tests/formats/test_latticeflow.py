"""LatticeFlow traces: every layout, what is derived, what is linked, and what hostile or growing files do."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples, needs_shared, sample
from tracetui.errors import FormatError
from tracetui.formats.base import Chunk, Reader
from tracetui.formats.latticeflow import LatticeFlow
from tracetui.live.load import read_run
from tracetui.live.scan import Scanner
from tracetui.model import Operation, Problem, Run, RunSummary, Span, Status, StatusSource, Text, ToolCall, text_of
from tracetui.model.build import part_of
from tracetui.sources.base import Entry
from tracetui.sources.local import LocalSource

CASES = Path(__file__).parent / "latticeflow"
SOURCE = LocalSource()
FORMAT = LatticeFlow()
OLD = 1_700_000_000


def summarize(path: Path, *, deep: bool = True) -> list[RunSummary | Problem]:
    with SOURCE.open(str(path)) as file:
        return list(FORMAT.summarize(file, deep=deep))


def summaries(path: Path, *, deep: bool = True) -> list[RunSummary]:
    return [item for item in summarize(path, deep=deep) if isinstance(item, RunSummary)]


def problems(path: Path) -> list[tuple[str, str]]:
    return [(item.where, item.reason) for item in summarize(path) if isinstance(item, Problem)]


def opened(path: Path, number: int = 0) -> Run:
    return read_run(SOURCE, summaries(path)[number].ref)


def case(name: str) -> Run:
    return opened(next((CASES / name / "input").iterdir()))


def written(folder: Path, trace: Any, name: str = "run.json") -> Path:
    path = folder / name
    path.write_text(trace if isinstance(trace, str) else json.dumps(trace))
    os.utime(path, (OLD, OLD))
    return path


def sniffed(path: Path) -> int:
    with SOURCE.open(str(path)) as file:
        return FORMAT.sniff(file)


def message(role: str, text: str, name: str = "") -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "message",
        "id": name,
        "role": role,
        "status": "completed",
        "content": [{"type": kind, "text": text}],
    }


def model_call(context: list[Any], produced: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": "model_call_event", "model": "m", "input_context": context, "output_items": produced, **more}


def shape(run: Run) -> list[str]:
    """The tree in words: depth, operation, name."""
    return [f"{'.' * depth}{span.operation} {span.name}" for span, depth in zip(run.spans, run.depths, strict=True)]


def by_id(run: Run, span_id: str) -> Span:
    span = run.span(span_id)
    assert span is not None
    return span


# -- what the fixtures are -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "run_id", "agent", "model", "status", "counts", "prompt"),
    [
        ("items", "booking-118", "concierge", "gpt-4o-mini", Status.OK, (2, 10, 0, 3, 0), "Book a table for two"),
        ("events", "trip-1", "planner", "gpt-4o", Status.OK, (2, 18, 4, 2, 2), "Plan a day"),
        ("failed", "deploy-77", "deployer", "gpt-4o", Status.ERROR, (1, 3, 1, 0, 2), "Deploy build 77."),
        ("lean", "stream-1", None, "gpt-4o", Status.OK, (2, 14, 4, 2, 2), "Plan a day"),
    ],
)
def test_a_summary_says(
    name: str, run_id: str, agent: str | None, model: str, status: Status, counts: tuple[int, ...], prompt: str
) -> None:
    summary = case(name).summary
    counted = (summary.steps, summary.spans, summary.llm_calls, summary.tool_calls, summary.errors)
    assert (summary.id, summary.agent, summary.model, summary.status) == (run_id, agent, model, status)
    assert summary.name == (agent or "trace")
    assert counted == counts
    assert summary.prompt.startswith(prompt)


@pytest.mark.parametrize("path", sorted(CASES.glob("*/input/*")), ids=lambda path: path.name)
def test_both_stages_agree_with_the_full_read(path: Path) -> None:
    assert sniffed(path) == 100
    for quick, deep in zip(summaries(path, deep=False), summaries(path), strict=True):
        assert deep == read_run(SOURCE, deep.ref).summary
        for name in ("ref", "id", "name", "agent", "model", "started_at", "time_zone", "prompt", "status_word"):
            assert getattr(quick, name) == getattr(deep, name), name


def test_nested_agents_hang_under_the_call_that_started_them() -> None:
    assert shape(case("events"))[1:14] == [
        "turn turn 1",
        ".chat gpt-4o",
        ".execute_tool research",
        "..invoke_agent research_agent",
        "...message user",
        "...other web_search",
        "....execute_tool web_search",
        "....other error",
        "...other compaction",
        "...chat gpt-4o-mini",
        "...message assistant",
        ".other approval",
        ".chat gpt-4o",
    ]


def test_a_sub_agent_opens_as_a_trace_of_its_own() -> None:
    run = case("events")

    part = part_of(run, run.index["span-research"])

    assert part.summary.ref.address == f"{run.summary.ref.address}/span-research"
    assert (part.summary.name, part.summary.parent, part.summary.status) == ("research_agent", "trip-1", Status.OK)
    assert [(step.number, step.span) for step in part.steps] == [(1, "e4")]
    assert (part.summary.model, part.summary.llm_calls, part.summary.tool_calls) == ("gpt-4o-mini", 1, 1)
    assert [span.id for span in part.spans] == ["e4", "span-search", "e6", "e7", "e9", "e10", "e11"]
    assert (part.body.input, part.body.output) == (part.body.last_user, part.body.last_assistant)
    assert part.body.input
    assert part.body.output
    assert part.load(part.spans[0]).input_messages[0].role == "user"


def test_a_hand_off_begins_with_its_agent_and_says_so() -> None:
    run = case("events")
    call, agent = by_id(run, "e13"), by_id(run, "span-research")
    assert call.note == "hand-off → research_agent"
    assert call.started_at == agent.started_at
    assert agent.duration_ms == 1700.0
    assert call.duration_ms == 1800.0
    assert [(link.label, link.span) for link in run.load(agent).links] == [("started by", "e13")]


def test_model_calls_are_linked_with_messages_and_calls_both_ways() -> None:
    run = case("events")
    links = {span.id: [(link.label, link.span) for link in run.load(span).links] for span in run.spans}
    assert links["e2"] == [("tool call research", "e13")]
    assert links["e13"] == [("model call", "e2"), ("sub-agent", "span-research")]
    assert links["e15"] == [("message", "e16")]
    assert links["e16"] == [("model call", "e15")]


def test_a_model_call_shows_its_effective_context_against_its_output() -> None:
    run = case("events")
    span = by_id(run, "e15")
    body = run.load(span)
    assert [message.role for message in body.input_messages] == ["system", "user", "assistant", "tool"]
    assert body.input_messages[2].parts == (ToolCall("call_1", "research", {"city": "Zürich"}),)
    assert [text_of(message) for message in body.output_messages] == ["Morning: old town. Afternoon: lake."]
    assert body.attributes["tools"] == ["research"]
    assert body.attributes["usage"]["reasoning_effort"] == "low"
    assert span.usage is not None
    assert (span.usage.input_tokens, span.usage.output_tokens, span.duration_ms) == (210, 40, 1100.0)


def test_the_id_of_a_message_is_shown_once(tmp_path: Path) -> None:
    item = {"type": "message", "id": "m1", "role": "user", "status": "completed", "content": "dig"}
    events = [
        {"id": "e1", "type": "message_event", "span_id": None, "item": item},
        {"id": "e2", "type": "model_call_event", "span_id": None, "input_context": [item], "output_items": [item]},
    ]
    run = opened(written(tmp_path, {"events": events}))
    for span in run.spans:
        body = run.load(span)
        assert {message.id for message in (*body.input_messages, *body.output_messages)} == {"m1"}
        assert "m1" not in json.dumps(body.attributes)


def test_errors_compactions_and_payloads_are_shown() -> None:
    run = case("events")
    error, compaction, approval = by_id(run, "e7"), by_id(run, "e9"), by_id(run, "e14")
    assert error.status is Status.ERROR
    assert error.status_source is StatusSource.EXPLICIT
    assert (run.load(error).traceback or "").endswith("HTTPError: 503")
    assert compaction.preview == "summary: 9000 → 1200 tokens"
    assert run.load(approval).output == {"approved": True, "by": "ops"}
    assert by_id(run, "e6").error is not None
    assert by_id(run, "e6").status_word == "incomplete"
    assert by_id(run, "span-search").note == "ended in an error"


def test_the_run_tab_has_what_upstreams_helpers_extract_and_recounts() -> None:
    run = case("items")
    body = run.body
    assert body.system_prompt == "You book tables. Ask before you cancel anything."
    assert body.last_user == "21:15, please."
    assert body.last_assistant == "Booked for 21:15 as R-118."
    assert run.summary.tags == ("booking", "smoke")
    assert body.attributes["metadata"]["extra"] == {"commit": "4e1c9aa", "cwd": "/srv/concierge"}
    assert [(total.name, total.declared, total.counted) for total in body.totals if total.differs] == [
        ("message_count", 7, 6)
    ]
    assert [total.name for total in case("events").body.totals if total.differs] == ["total_tokens"]


def test_calls_without_output_and_outputs_without_call() -> None:
    run = case("items")
    lone, stray = by_id(run, "f3"), by_id(run, "o9")
    assert (lone.note, lone.status, lone.status_word) == ("no output", Status.UNKNOWN, "incomplete")
    assert (stray.note, run.load(stray).output) == ("no call", "nobody asked")
    assert [problem.where for problem in run.problems] == ["items[10]"]
    assert run.load(by_id(run, "f1")).output == {"free": ["19:00", "21:15"]}
    assert run.load(by_id(run, "f2")).output == [{"type": "input_text", "text": "booked as R-118"}]


def test_a_failed_run_says_why_and_where() -> None:
    summary = case("failed").summary
    assert summary.status_source is StatusSource.EXPLICIT
    assert summary.first_error is not None
    assert (summary.first_error.message, summary.first_error.span) == ("rate limited", "d3")
    assert summary.time_zone is None
    assert summary.duration_ms == 31000.0


def test_roles_of_a_lean_dump_are_inferred_and_marked() -> None:
    run = case("lean")
    marked = {span.id: (span.name, span.note) for span in run.spans if span.note.startswith("role")}
    assert marked == {
        "m0": ("unknown", "role unknown"),
        "m1": ("turn 1", "role inferred"),
        "m3": ("turn 2", "role inferred"),
    }
    order = [span.id for span in run.spans]
    assert order.index("m1") < order.index("e2") < order.index("m3") < order.index("e18")


# -- rows ------------------------------------------------------------------------------------------------------------


def test_rows_are_runs_and_bad_lines_are_problems() -> None:
    path = CASES / "rows" / "input" / "geo.jsonl"
    assert [(run.ref.key, run.id) for run in summaries(path)] == [
        ("qa-1", "qa-1"),
        ("L3", "geo#3"),
        ("L4", "geo#4"),
        ("qa-1~L6", "qa-1"),
        ("L7", "geo#7"),
    ]
    assert [where for where, _ in problems(path)] == ["line 5", "line 6"]
    assert [opened(path, i).body.last_assistant for i in range(4)] == ["Tokyo", "Wien", "Lima", "Santiago"]
    assert opened(path, 3).body.attributes["task_id"] == "geo/3"
    custom = opened(path, 4)
    assert (custom.body.input, custom.body.output) == ({"rows": [1, 2]}, {"sum": 3})


def test_rows_that_hold_no_trace_are_problems(tmp_path: Path) -> None:
    row = json.dumps({"trace": {"items": [message("user", "hi")]}})
    path = written(tmp_path, "\n".join([row, '{"row": 1}', "", "[]", "null", '{"trace": {}}', row]), "t.jsonl")
    assert [run.ref.key for run in summaries(path)] == ["L1", "L7"]
    assert problems(path) == [(f"line {number}", "no trace found") for number in (2, 4, 5, 6)]


@pytest.mark.parametrize("first", ["{oops", "not JSON at all", '{"header": 1}', "null", "{"])
def test_a_bad_first_row_hides_no_good_one(tmp_path: Path, first: str) -> None:
    rows = [json.dumps({"trace": {"items": [message("user", "hi")]}, "task": n}) for n in (2, 3)]
    path = written(tmp_path, "\n".join([first, *rows, ""]), "rows.jsonl")
    assert sniffed(path) == 100
    assert [run.ref.key for run in summaries(path)] == ["L2", "L3"]
    assert [where for where, _ in problems(path)] == ["line 1"]


def test_a_bad_first_element_hides_no_good_one(tmp_path: Path) -> None:
    trace = {"items": [message("user", "hi")]}
    for text in (json.dumps([17, trace, {"trace": trace}]), "[\n17,\n" + json.dumps(trace) + "\n]"):
        path = written(tmp_path, text, "rows.json")
        assert sniffed(path) == 100
        assert summaries(path)[0].ref.key == "L2"
        assert [where for where, _ in problems(path)] == ["row 1"]


def test_rows_in_one_json_document() -> None:
    folder = CASES / "row_json" / "input"
    (row,) = summaries(folder / "row.json")
    assert row.ref.key is None
    assert opened(folder / "row.json").body.attributes["target"] == "Madrid"
    assert [run.ref.key for run in summaries(folder / "array.json")] == ["two", "L2"]
    assert opened(folder / "array.json", 1).body.last_assistant == "Nairobi"


def test_a_half_last_line_is_live_while_the_file_moves(tmp_path: Path) -> None:
    row = json.dumps({"trace": {"items": [message("user", "hi")]}})
    path = written(tmp_path, f"{row}\n{row[:30]}", "t.jsonl")
    assert [where for where, _ in problems(path)] == ["line 2"]
    os.utime(path, (time.time(), time.time()))
    assert problems(path) == []
    path.write_text(f"{row}\n{row}")  # whole, though without its newline
    assert [run.ref.key for run in summaries(path)] == ["L1", "L2"]


def more(reader: Reader, path: Path) -> Chunk:
    with SOURCE.open(str(path)) as file:
        return reader.more(file)


def test_a_row_is_found_again_however_the_file_grows(tmp_path: Path) -> None:
    rows = [{"trace": {"items": [message("user", f"q{i}")], "metadata": {"trace_id": f"id/{i}é"}}} for i in range(5)]
    path = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "t.jsonl")
    reader = FORMAT.open(SOURCE.open(str(path)), summaries(path)[3].ref)
    first = more(reader, path)
    with path.open("a") as out:
        out.write(json.dumps(rows[0]) + "\n")
    second = more(reader, path)
    assert [span.preview for span in first.spans] == ["q3"]
    assert (list(second.spans), second.reset) == ([], False)
    path.write_text(json.dumps(rows[3]) + "\n" + json.dumps(rows[1]) + "\n")
    third = more(reader, path)
    assert [span.preview for span in third.spans] == ["q3"]
    assert third.reset


def test_a_body_is_of_its_row_however_the_file_grows(tmp_path: Path) -> None:
    rows = [{"trace": {"items": [message("user", f"q{i}")]}} for i in range(3)]
    path = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "t.jsonl")
    ref = summaries(path)[1].ref
    (span,) = more(FORMAT.open(SOURCE.open(str(path)), ref), path).spans
    with path.open("a") as out:
        out.write(json.dumps(rows[0]) + "\n")
    with SOURCE.open(str(path)) as file:
        assert [text_of(message) for message in FORMAT.body(file, ref, span).input_messages] == ["q1"]
    path.write_text(json.dumps(rows[2]) + "\n" + json.dumps(rows[0]) + "\n" + json.dumps(rows[1]) + "\n")
    with SOURCE.open(str(path)) as file, pytest.raises(FormatError):
        FORMAT.body(file, ref, span)


def test_invalid_records_are_problems_and_attributes_of_the_run(tmp_path: Path) -> None:
    run = opened(written(tmp_path, {"items": [message("user", "hi"), 17], "events": {"no": "list"}}))
    assert shape(run) == ["turn turn 1"]
    assert [(problem.where, problem.reason) for problem in run.problems] == [
        ("events", "not a list"),
        ("items[1]", "not an object"),
    ]
    assert (run.body.attributes["items[1]"], run.body.attributes["events"]) == (17, {"no": "list"})


def test_the_payload_of_a_custom_task_is_shown_with_all_its_fields(tmp_path: Path) -> None:
    payload = [{"text": "rows", "weight": 3}, {"weight": 4}]
    run = opened(written(tmp_path, {"items": [{"type": "custom_task_input_message", "content": payload}]}))
    assert run.body.input == payload
    assert run.load(run.spans[0]).input == payload


def test_a_rewritten_document_is_read_anew(tmp_path: Path) -> None:
    path = written(tmp_path, {"items": [message("user", "one")]})
    ref = summaries(path)[0].ref
    reader = FORMAT.open(SOURCE.open(str(path)), ref)
    first = more(reader, path)
    path.write_text('{"items": [{"type": "mess')
    assert list(more(reader, path).spans) == []  # half written: what was read stays
    with SOURCE.open(str(path)) as file, pytest.raises(FormatError):
        FORMAT.body(file, ref, first.spans[0])
    path.write_text(json.dumps({"items": [message("user", "one"), message("assistant", "two")]}))
    second = more(reader, path)
    assert (len(second.spans), second.reset) == (2, True)


def test_the_context_of_a_mistyped_call_in_a_row_is_found_again(tmp_path: Path) -> None:
    call = {"type": "model_call_event", "id": "c", "model": "m", "output_items": {"no": "list"}, "gale": 9}
    row = {"target": "t", "trace": {"events": [call | {"input_context": [message("user", "hi")]}]}}
    path = written(tmp_path, json.dumps(row) + "\n", "t.jsonl")
    (summary,) = summaries(path, deep=True)
    assert summary.unread is not None
    assert summary.unread.fields == (("event.gale", 1), ("event.output_items", 1))
    run = read_run(SOURCE, summary.ref)
    assert [text_of(run.load(span).input_messages[0]) for span in run.spans if span.preview == "hi"] == ["hi"]


# -- what is derived, and what wins ----------------------------------------------------------------------------------


def test_given_items_win_over_derived_ones(tmp_path: Path) -> None:
    event = {"type": "message_event", "id": "e", "item": message("user", "as it was sent", "m1")}
    said = message("user", "as it was kept", "m1")
    run = opened(written(tmp_path, {"items": [said, message("assistant", "later")], "events": [event]}))
    assert run.summary.prompt == "as it was kept"
    assert run.body.last_user == "as it was kept"
    assert run.body.last_assistant == "later"
    assert shape(run) == ["turn turn 1", ".message assistant"]
    assert run.load(run.spans[0]).attributes["message"]["content"] == said["content"]


def test_items_come_from_the_last_context_and_what_compactions_removed(tmp_path: Path) -> None:
    u1, a1, u2, a2, u3, a3 = (message("user" if i % 2 == 0 else "assistant", f"t{i}", f"m{i}") for i in range(6))
    events = [
        model_call([u1], [a1]),
        model_call([u1, a1, u2], [a2]),
        {"type": "compaction", "strategy": "trim"},
        model_call([u2, a2, u3], [a3]),
    ]
    run = opened(written(tmp_path, {"events": events}))
    assert [run.span(step.span).preview for step in run.steps if run.span(step.span)] == ["t0", "t2", "t4"]  # type: ignore[union-attr]
    assert shape(run) == [
        "turn turn 1",
        ".chat m",
        "turn turn 2",
        ".chat m",
        ".other compaction",
        "turn turn 3",
        ".chat m",
    ]
    assert run.body.last_assistant == "t5"


def test_calls_that_only_the_items_hold_stand_after_the_model_call_that_asked(tmp_path: Path) -> None:
    asked = {
        "type": "function_call",
        "id": "f",
        "call_id": "c",
        "name": "look",
        "arguments": "{}",
        "status": "completed",
    }
    answer = {"type": "function_call_output", "id": "o", "call_id": "c", "output": "[1]", "status": "completed"}
    user, last = message("user", "go", "u"), message("assistant", "done", "a")
    events = [model_call([user], [asked], id="e1"), model_call([user, asked, answer], [last], id="e2")]
    run = opened(written(tmp_path, {"items": [user, asked, answer, last], "events": events}))
    assert shape(run) == ["turn turn 1", ".chat m", ".execute_tool look", ".chat m"]
    assert run.load(by_id(run, "f")).output == [1]


def test_one_span_around_everything_holds_the_conversation(tmp_path: Path) -> None:
    events = [
        {"type": "span_begin", "span_id": "root", "name": "solver", "span_type": "agent"},
        {"type": "message_event", "span_id": "root", "item": message("user", "hi")},
        {"type": "message_event", "span_id": "root", "item": message("assistant", "ho")},
        {"type": "span_end", "span_id": "root"},
    ]
    run = opened(written(tmp_path, {"events": events}))
    assert shape(run) == ["invoke_agent solver", ".turn turn 1", "..message assistant"]
    assert (run.summary.steps, run.summary.agent, run.body.last_assistant) == (1, "solver", "ho")


def test_open_spans_are_in_progress(tmp_path: Path) -> None:
    events = [
        {"type": "message_event", "item": message("user", "hi")},
        {"type": "span_begin", "span_id": "s", "name": "agent", "span_type": "agent"},
        {"type": "function_call_event", "span_id": "s", "call_id": "c", "function": "f", "status": "in_progress"},
    ]
    path = written(tmp_path, {"events": events})
    stale = opened(path)
    assert (stale.summary.status, by_id(stale, "s").status, by_id(stale, "s").note) == (
        Status.UNKNOWN,
        Status.UNKNOWN,
        "open",
    )
    os.utime(path, (time.time(), time.time()))
    live = opened(path)
    assert (live.summary.status, by_id(live, "s").status) == (Status.RUNNING, Status.RUNNING)
    assert live.spans[-1].status is Status.RUNNING
    assert live.spans[-1].note == "no output"
    ended = opened(written(tmp_path, {"events": events, "metadata": {"total_time": 1}}))
    assert ended.summary.status is Status.OK


_ASKED = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": "{}", "status": "completed"}
_ANSWERED = {"type": "function_call_output", "id": "o", "call_id": "c", "output": "[1]", "status": "completed"}
_AGENT = [
    {"type": "span_begin", "span_id": "s", "name": "agent", "span_type": "agent"},
    {"type": "function_call_event", "span_id": "s", "call_id": "c", "function": "f", "result": 1},
    {"type": "span_end", "span_id": "s"},
]


@pytest.mark.parametrize(
    ("trace", "ended"),
    [
        ({"items": [message("user", "go")]}, False),
        ({"items": [message("user", "go"), _ASKED]}, False),
        ({"items": [message("user", "go"), _ASKED, _ANSWERED]}, False),
        ({"items": [message("user", "go"), message("assistant", "done"), message("user", "and now?")]}, False),
        ({"items": [{"type": "custom_task_input_message", "content": {"a": 1}}]}, False),
        ({"events": [model_call([message("user", "go")], [_ASKED])]}, False),
        ({"events": [{"type": "message_event", "item": message("user", "hi")}, _AGENT[1]]}, False),
        ({"items": [message("user", "go"), message("assistant", "done")]}, True),
        ({"items": [message("user", "go")], "metadata": {"total_time": 1.5}}, True),
        ({"items": [{"type": "custom_task_output_message", "content": {"a": 1}}]}, True),
        ({"events": [model_call([message("user", "go")], [message("assistant", "done")])]}, True),
        ({"events": _AGENT}, True),
    ],
)
def test_a_trace_without_an_end_is_not_ok(tmp_path: Path, trace: dict[str, Any], ended: bool) -> None:
    path = written(tmp_path, {"FORMAT": "x", **trace})
    expected = Status.OK if ended else Status.UNKNOWN
    run, (listed,) = opened(path), summaries(path)
    for summary in (run.summary, listed):
        assert (summary.status, summary.status_source) == (expected, StatusSource.DERIVED)
    os.utime(path, (time.time(), time.time()))
    assert opened(path).summary.status is (Status.OK if ended else Status.RUNNING)


def test_an_incomplete_last_item_leaves_the_status_open(tmp_path: Path) -> None:
    cut = {**message("assistant", "and th"), "status": "incomplete"}
    summary = opened(written(tmp_path, {"items": [message("user", "go on"), cut]})).summary
    assert (summary.status, summary.status_word) == (Status.UNKNOWN, "incomplete")


def test_a_recovered_error_does_not_fail_the_run(tmp_path: Path) -> None:
    failed = {"type": "function_call_event", "call_id": "c", "function": "f", "status": "incomplete", "error": "no"}
    events = [{"type": "message_event", "item": message("user", "hi")}, failed]
    assert opened(written(tmp_path, {"events": events})).summary.status is Status.ERROR
    summary = opened(written(tmp_path, {"events": [*events, model_call([], [message("assistant", "ok")])]})).summary
    assert (summary.status, summary.status_source, summary.errors) == (Status.OK, StatusSource.DERIVED, 1)


# -- detection -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        {"name": "left-pad", "version": "1.3.0", "dependencies": {}},
        {"graph_name": "rag", "total_duration_ms": 1, "restored_count": 0, "items": [{"run_id": "r", "steps": []}]},
        {"graph_name": "rag", "items": []},
        {"run_id": "r", "agent_name": "a", "events": [{"event_type": "llm_call", "timestamp": "t"}]},
        {"items": [{"id": 7, "name": "screw", "price": 2}], "total": 1},
        {"items": [], "page": 2},
        {"events": [{"date": "2026-01-01", "title": "fair"}]},
        {"trace": {"steps": []}},
        {"trace": "items"},
        [],
        [1, 2],
        "items",
        None,
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_other_files_are_not_claimed(tmp_path: Path, other: object, indent: int | None) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(other, indent=indent))
    assert sniffed(path) == 0


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("strip", [False, True])
@pytest.mark.parametrize("order", [("items", "metadata", "events"), ("events", "metadata", "items")])
def test_long_files_are_claimed_whatever_the_order_of_their_keys(
    tmp_path: Path, indent: int | None, strip: bool, order: tuple[str, ...]
) -> None:
    long = message("user", "x" * 100_000, "m")
    if strip:
        long = {"id": "m", "status": "completed", "content": [{"text": "x" * 100_000}]}
    event = {"id": "e", "item": long} if strip else {"type": "message_event", "id": "e", "item": long}
    trace = {"items": [long], "events": [event], "metadata": {"trace_id": "t"}}
    path = written(tmp_path, json.dumps({name: trace[name] for name in order}, indent=indent))
    assert sniffed(path) == 100
    row = json.dumps({"prompt": "y" * 10, "trace": {name: trace[name] for name in order}})
    path = written(tmp_path, row + "\n" + row + "\n", "t.jsonl")
    assert sniffed(path) == 100
    assert len(summaries(path)) == 2


def test_text_that_strict_json_refuses_is_read_and_said(tmp_path: Path) -> None:
    text = json.dumps({"items": [message("user", "PLACE", "m")], "metadata": {"total_tokens": 1}})
    path = written(tmp_path, text.replace("PLACE", "\\ud800 lone").replace(": 1}", ": NaN}"))
    run = opened(path)
    assert run.problems[0].reason.startswith("read leniently")
    assert run.load(run.spans[0]).input_messages[0].parts == (Text("\ud800 lone"),)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert sniffed(path) == 100
    assert opened(path).summary.steps == 1


# -- properties ------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def document(name: str) -> Any:
    return json.loads(next((CASES / name / "input").iterdir()).read_text())


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value below `value` is."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, nested in inside:
        yield (*prefix, key)
        yield from paths(nested, (*prefix, key))


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    changed = copy.deepcopy(value)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = by
    return changed


def everything(run: Run) -> str:
    """All that a reader of the run can see, except for the raw bytes."""
    seen: list[str] = [repr(run.body), repr(run.problems), repr(run.summary)]
    for span in run.spans:
        body = run.load(span)
        assert "problem" not in body.attributes
        seen.append(repr((body.input, body.output, body.attributes, body.input_messages, body.output_messages)))
        seen.append(repr(body.traceback))
    return "".join(seen)


DOCUMENTS = {name: document(name) for name in ("items", "events", "lean", "failed")}
PATHS = [(name, path) for name, document in DOCUMENTS.items() for path in paths(document)]


@settings(max_examples=examples(100))
@given(where=st.sampled_from(PATHS), junk=json_values)
def test_any_value_in_any_place_is_survived(tmp_path: Path, where: tuple[str, tuple[Any, ...]], junk: Any) -> None:
    name, path = where
    file = written(tmp_path, replaced(DOCUMENTS[name], path, junk), "any.json")
    if sniffed(file):
        list(summarize(file, deep=False))
        for summary in summaries(file):
            run = read_run(SOURCE, summary.ref)
            assert run.summary == summary
            everything(run)


@settings(max_examples=examples(100))
@given(where=st.sampled_from(PATHS))
def test_every_value_of_the_source_reappears(tmp_path: Path, where: tuple[str, tuple[Any, ...]]) -> None:
    name, path = where
    mark = "Zx81mark"
    file = written(tmp_path, replaced(DOCUMENTS[name], path, mark), "any.json")
    if sniffed(file):
        assert mark in everything(opened(file))


@given(cut=st.floats(0, 1), name=st.sampled_from(["items", "events", "rows", "lean"]))
def test_a_cut_file_is_a_problem_or_runs(tmp_path: Path, cut: float, name: str) -> None:
    data = next((CASES / name / "input").iterdir()).read_bytes()
    path = tmp_path / ("cut.jsonl" if name == "rows" else "cut.json")
    path.write_bytes(data[: int(len(data) * cut)])
    os.utime(path, (OLD, OLD))
    if sniffed(path):
        scanned = Scanner(SOURCE, only=FORMAT).look(Entry(str(path), SOURCE.open(str(path)).stat), deep=True)
        assert scanned.kind in ("listed", "problem")


# -- scores and tasks ------------------------------------------------------------------------------------------------


def row(**columns: Any) -> dict[str, Any]:
    return {"trace": {"FORMAT": "open_responses", "items": [message("user", "Roma?")]}, **columns}


SCORES = [
    {"scorer_key": "equal", "values": {"is_correct": False}, "scorer_purpose": "score"},
    {"scorer_key": "calls", "scorer_name": "Calls", "values": {"required_calls_coverage": 0.5, "is_refusal": True}},
    {"scorer_key": "sane", "values": {"is_correct": True}, "scorer_purpose": "qa"},
    {"values": {"grade": "A", "parts": [1]}},
    "nothing",
]


def test_scores_of_a_row_are_those_of_the_run(tmp_path: Path) -> None:
    path = written(tmp_path, row(scores=SCORES))
    for summary in (summaries(path, deep=False)[0], summaries(path)[0], opened(path).summary):
        assert [(score.name, score.value, score.passed) for score in summary.scores] == [
            ("equal is_correct", False, False),
            ("Calls required_calls_coverage", 0.5, None),
            ("Calls is_refusal", True, None),
            ("score grade", "A", None),
            ("score parts", None, None),
        ]
        assert summary.scores[0].source == "scores[0].values.is_correct"
        assert summary.outcome == "failed"


@pytest.mark.parametrize("scores", [None, {}, "C", [None], [{"values": [1]}]])
def test_columns_that_are_no_scores_are_none(tmp_path: Path, scores: Any) -> None:
    (summary,) = summaries(written(tmp_path, row(scores=scores)))
    assert (summary.scores, summary.outcome) == ((), None)


@pytest.mark.parametrize(
    ("columns", "task", "trial"),
    [
        ({"sample_id": 7, "task_id": "geo/1", "trial": 0}, "7", "0"),
        ({"task_id": "geo/1", "trial": "b"}, "geo/1", "b"),
        ({"sample_id": True, "trial": 1.5}, None, None),
        ({"id": "9"}, None, None),
    ],
)
def test_the_task_is_the_sample_of_the_data_set(
    tmp_path: Path, columns: dict[str, Any], task: str | None, trial: str | None
) -> None:
    (summary,) = summaries(written(tmp_path, row(**columns)), deep=False)
    assert (summary.task, summary.trial) == (task, trial)


# -- real files ------------------------------------------------------------------------------------------------------


@needs_shared
@pytest.mark.parametrize(
    ("name", "steps", "tools"),
    [
        ("items_only.model_dump_json.json", [1], [1]),
        ("nested.include_unset.json", [1], [2]),
        ("recorded_qa_traces.jsonl", [1, 1, 2, 1], [0, 0, 2, 0]),
        ("seed_events_only.json", [1], [1]),
        ("seed_items.json", [1], [1]),
    ],
)
def test_real_traces_are_read(name: str, steps: list[int], tools: list[int]) -> None:
    read = summaries(sample("latticeflow", name))
    assert [run.steps for run in read] == steps
    assert [run.tool_calls for run in read] == tools
    assert {run.status for run in read} == {Status.OK}


@needs_shared
def test_every_row_of_a_real_data_set_is_a_run() -> None:
    path = sample("latticeflow", "tutorial-samples-first9.jsonl")
    assert len(summaries(path)) == 9
    assert problems(path) == []
    run = opened(path, 8)
    assert set(run.body.attributes) >= {"task_id", "evaluation_criteria", "initial_state"}
    assert {span.operation for span in run.spans} == {Operation.MESSAGE, Operation.TURN, Operation.EXECUTE_TOOL}
