"""What ``--json`` prints: exact values, no character that a terminal acts upon, and nothing that makes it fail."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sessions import ANSWER, OPEN, session
from tests.shared import examples
from tracetui.export.json import encode, moment, run_document, runs_document, span_value
from tracetui.formats.claude_code import ClaudeCode
from tracetui.model import (
    Binding,
    Body,
    Error,
    Header,
    Message,
    Problem,
    Reasoning,
    Run,
    RunBody,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    Usage,
)
from tracetui.model.build import RunBuilder
from tracetui.sources.local import LocalSource

RUN_FIELDS = """
address path format id name title agent model status status_word status_source outcome outcome_source scores
result task task_source trial started_at time_zone duration_ms
steps spans llm_calls tool_calls errors usage estimated_cost_usd replay_of replay_of_address relation repeats
identity counts_in parent
first_error tools models nodes tags source writer problems
""".split()  # noqa: SIM905 - easier to compare with the contract
USAGE_FIELDS = """
input_tokens output_tokens total_tokens cache_read_tokens cache_creation_tokens reasoning_tokens cost_usd
cache_write_1h_tokens output_at_least
""".split()  # noqa: SIM905 - easier to compare with the contract
SPAN_FIELDS = """
id parent_id depth step name operation status status_word status_source started_at duration_ms usage input
output error input_hash model attributes
""".split()  # noqa: SIM905 - easier to compare with the contract

KEYS = st.text(max_size=6)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["\x1b[31m", "\x7f", "\x9b", "\u202e", "\ud800", "\U000e0041", "\u2028"])
)
VALUES = st.recursive(LEAVES, lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS, below, max_size=4))


@settings(max_examples=examples(100))
@given(VALUES)
def test_values_survive_a_round_trip(value: Any) -> None:
    data = encode(value)

    assert json.loads(data) == value
    assert b"\n" not in data
    kept = {unicodedata.category(character) for character in data.decode()}
    assert kept.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


@pytest.mark.parametrize("depth", [200, 300, 5_000, 100_000])
def test_depth_is_no_limit(depth: int) -> None:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}

    data = encode(value)

    assert data.count(b"[") == depth // 2
    assert data.count(b'{"a":') == depth - depth // 2
    assert data.count(b"]") == depth // 2


def test_values_without_a_json_form_are_converted() -> None:
    assert encode([float("nan"), float("inf")]) == b"[null,null]"
    assert json.loads(encode([float("nan"), 2**70])) == [None, 2**70]
    assert json.loads(encode({"b": b"\xff"})) == {"b": {"base64": "/w=="}}
    assert json.loads(encode({1: {"x"}, "big": 2**70})) == {"1": ["x"], "big": 2**70}


def test_the_slow_way_writes_what_the_fast_way_writes() -> None:
    message = Message("user", (Text("é\x7f"), ToolCall("1", "f", {"a": (1, 2)})))
    value = {"message": message, "status": Status.OK, "numbers": [1.5, True, None, -3], "empty": [[], {}, ()]}

    slow = json.loads(encode({"value": value, "big": 2**70}))

    assert slow == {"value": json.loads(encode(value)), "big": 2**70}


@pytest.mark.parametrize(
    ("seconds", "zone", "text"),
    [
        (None, "UTC", None),
        (0.0, "UTC", "1970-01-01T00:00:00Z"),
        (1767225600.25, "UTC", "2026-01-01T00:00:00.250000Z"),
        (1767225600.0, None, "2026-01-01T00:00:00"),
        (-1.0, "UTC", "1969-12-31T23:59:59Z"),
        (1e30, "UTC", None),
        (float("nan"), "UTC", None),
    ],
)
def test_moments_are_iso_8601(seconds: float | None, zone: str | None, text: str | None) -> None:
    assert moment(seconds, zone=zone) == text


@pytest.fixture
def opened() -> Run:
    bodies = {"1": Body(input={"q": 1}, output_messages=(Message("assistant", (Text("hi"),)),), raw=b"{}")}
    builder = RunBuilder(RunRef("any", "a.db", "r/1"), lambda span: bodies.get(span.id, Body()))
    first = Span(id="1", name="chat", step=1, is_step=True, status=Status.OK, started_at=5.0, usage=Usage(2, 3))
    second = Span(id="2", name="tool", parent_id="1", status=Status.ERROR, error=Error("boom", "E"))
    header = Header(id="r/1", name="demo", started_at=1.0, status=Status.ERROR, status_source=StatusSource.EXPLICIT)
    builder.add(
        [first, second],
        header=header,
        body=RunBody(goal="win", layout="RunLog", extent=(1, 2)),
        problems=[Problem("a.db", "row 3", "odd")],
    )
    return builder.build()


@pytest.mark.parametrize(
    ("end", "ago", "state", "call"),
    [
        (OPEN, 190, "running", {"name": "Bash", "since": "2027-01-15T07:56:50Z"}),
        (ANSWER, 60, "waiting", None),
        (ANSWER, 90_000, "done", None),
        (OPEN, 90_000, "interrupted", None),
    ],
)
def test_a_listed_session_has_its_title_state_and_open_call(
    end: str, ago: float, state: str, call: Any, tmp_path: Path
) -> None:
    now = 1_800_000_000.0
    path = session("s", end, title="Fix the parser").write(tmp_path, now, ago)
    with LocalSource().open(str(path)) as file:
        (summary,) = ClaudeCode().summarize(file, deep=True)
    assert isinstance(summary, RunSummary)

    (run,) = json.loads(b"".join(runs_document([summary], [], {}, now=now)))["runs"]

    assert (run["title"], run["state"], run["state_source"]) == ("Fix the parser", state, "derived")
    assert run["open_call"] == call


def test_a_run_that_recorded_its_end_has_ended(opened: Run) -> None:
    (run,) = json.loads(b"".join(runs_document([opened.summary], [], {}, now=1e9)))["runs"]

    assert (run["state"], run["state_source"], run["open_call"]) == ("ended", "explicit", None)


def test_a_run_has_exactly_the_fields_of_the_contract(opened: Run) -> None:
    document = json.loads(
        b"".join(runs_document([opened.summary], opened.problems, {opened.summary.ref: "b.db"}, now=0))
    )

    assert list(document) == ["schema", "runs", "problems"]
    assert document["schema"] == "tracetui/runs/1"
    (run,) = document["runs"]
    assert list(run) == [*RUN_FIELDS, "state", "state_source", "open_call"]
    assert list(run["usage"]) == USAGE_FIELDS
    assert run["address"] == "a.db#r%2F1"
    assert run["started_at"] == "1970-01-01T00:00:01Z"
    assert run["replay_of_address"] == "b.db"
    assert run["first_error"] == {"span": "2", "name": "tool", "operation": "other", "type": "E", "message": "boom"}
    assert run["problems"] == 1
    assert document["problems"] == [{"path": "a.db", "where": "row 3", "reason": "odd"}]


def test_an_opened_run_has_exactly_the_fields_of_the_contract(opened: Run) -> None:
    document = json.loads(b"".join(run_document(opened, None, {"node_stats": {}})))

    assert list(document) == ["schema", "run", "steps", "spans", "problems"]
    assert document["schema"] == "tracetui/run/1"
    assert list(document["run"])[: len(RUN_FIELDS)] == RUN_FIELDS
    assert document["run"]["goal"] == "win"
    assert document["run"]["node_stats"] == {}
    assert {"layout", "extent"}.isdisjoint(document["run"])
    assert document["steps"] == [{"number": 1, "span": "1"}]
    assert [list(span) for span in document["spans"]] == [SPAN_FIELDS] * 2
    assert [span["depth"] for span in document["spans"]] == [0, 1]
    assert document["spans"][0]["input"] == {"q": 1}
    assert document["spans"][0]["output"][0]["parts"] == [{"type": "text", "text": "hi"}]
    assert document["spans"][1]["error"] == {"message": "boom", "type": "E"}
    assert document["problems"] == [{"path": "a.db", "where": "row 3", "reason": "odd"}]


def test_every_part_of_a_body_is_in_the_data() -> None:
    body = Body(
        input="said",
        output="made",
        input_messages=(Message("user", (Reasoning("thought-1"),)),),
        output_messages=(Message("assistant", (Text("text-1"),)),),
        attributes={"own": "kept"},
        state={"k": "state-1"},
        bindings=(Binding("name", 1, "bound-1"),),
        traceback="trace-1",
    )

    document = encode(span_value(Span(id="s", name="n", note="note-1"), 0, body)).decode()

    for piece in ("said", "made", "thought-1", "text-1", "kept", "state-1", "bound-1", "trace-1", "note-1"):
        assert piece in document


def test_documents_are_one_record_a_line(opened: Run) -> None:
    lines = b"".join(run_document(opened, None)).split(b"\n")

    assert [json.loads(line.rstrip(b",").removesuffix(b'],"problems":['))["id"] for line in lines[2:4]] == ["1", "2"]


def test_every_body_field_is_printed_or_explicitly_omitted() -> None:
    printed = {"input", "output", "input_messages", "output_messages", "attributes", "state", "bindings", "links"}
    printed |= {"checks", "traceback"}

    assert {field.name for field in msgspec.structs.fields(Body)} - printed == {"raw"}
