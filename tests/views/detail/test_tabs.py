"""The detail pane: tabs, facts, the whole run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tests.views.build import HOSTILE, START, check_rows, make_run, make_span, runs, texts
from tests.views.test_document import JSON
from tracetui.model import (
    Binding,
    Body,
    Check,
    Criterion,
    Error,
    FirstError,
    Limit,
    Link,
    Message,
    Metric,
    Operation,
    Problem,
    Run,
    RunBody,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    Total,
    Usage,
)
from tracetui.views import stack
from tracetui.views.detail.tabs import tab_names, tab_rows
from tracetui.views.glyphs import ASCII
from tracetui.views.rows import Rows


def failed() -> Span:
    """A search that timed out."""
    return make_span(
        "11", "search", Operation.EXECUTE_TOOL, 12.9, 30_000, step=11, status=Status.ERROR,
        status_source=StatusSource.EXPLICIT, error=Error("search timed out after 30s", "TimeoutError"),
        input_hash="9f0c21e4b7a65d13",
    )  # fmt: skip


def body_of_failed() -> Body:
    """What the trace says about it."""
    return Body(
        input={"query": "KfW 442 budget", "region": "DE", "timeout_s": 30},
        checks=(Check("input_hash", "9f0c21e4b7a65d13", "runtime", (("runtime", "9f0c21e4b7a65d13"),)),),
        raw=b'{"type": "tool"}\n\xff',
        links=(Link("asked by", span="4"),),
    )


def run_with(span: Span, **rest: Any) -> Run:
    return make_run([make_span("4", "gpt-4o", Operation.CHAT, 0, 100, step=4), span], **rest)


def rows_text(rows: Rows, width: int = 70) -> str:
    return "\n".join(texts(rows, width))


def test_a_span_has_tabs_for_its_contents_only() -> None:
    span = failed()
    run = run_with(span)
    assert tab_names(run, span, body_of_failed()) == ["error", "input", "raw", "run"]
    assert tab_names(run, span, None) == ["error", "run"]
    assert tab_names(run, None, None) == ["run"]
    chat = run.spans[0]
    body = Body(input_messages=(Message("user", (Text("hi"),)),), output="x", state={}, attributes={"a": 1})
    goal = run_with(span, body=RunBody(criteria=(Criterion("c", True),)))
    assert tab_names(goal, chat, body) == ["overview", "messages", "output", "state", "attributes", "goal", "run"]


def test_the_error_tab_shows_error_source_and_arguments() -> None:
    span = failed()
    run = run_with(span, body=RunBody(limits=(Limit("max_steps", 20, 11), Limit("repeats", 4, 4))))
    rows = tab_rows(run, span, body_of_failed(), "error", width=70)
    assert texts(rows, 70) == [
        "TimeoutError: search timed out after 30s",
        "status: recorded with the step's error",
        "",
        "time     30.0s  from 2025-11-21 13:09:34Z",
        'args     { query: "KfW 442 budget", region: "DE", timeout_s: 30 }',
        "hash     9f0c21e4b7a65d13 ✓ matches args  (runtime recipe)",
        "asked by → step 4 gpt-4o",
        "",
        "policy   max_steps  ━━━━━━━━━────────  11 / 20",
        "         repeats    ━━━━━━━━━━━━━━━━━  4 / 4  at limit",
    ]
    assert stack.target(rows, 6) == "4"
    assert stack.target(rows, 0) is None


def test_an_unmatched_hash_is_shown_with_the_recipes_tried() -> None:
    body = Body(checks=(Check("input_hash", "abc", None, (("documented", "d1"), ("runtime", "d2"))),))
    text = rows_text(tab_rows(run_with(failed()), failed(), body, "error", width=70))
    assert "hash     abc ✗ matches neither recipe\n         d1 documented\n         d2 runtime" in text


def test_an_error_without_a_message_has_no_reason_recorded() -> None:
    span = make_span("1", "x", Operation.CHAT, status=Status.ERROR, status_source=StatusSource.EXPLICIT)
    assert texts(tab_rows(make_run([span]), span, None, "error", width=70), 70)[0] == ("failed, no reason recorded")


def test_a_preview_stands_for_the_arguments_of_tool_calls_only() -> None:
    tool = make_span("1", "Bash", Operation.EXECUTE_TOOL, preview="ls -l")
    assert "args     ls -l" in rows_text(tab_rows(make_run([tool]), tool, Body(), "overview", width=70))
    reply = make_span("1", "API", Operation.CHAT, preview="Prompt is too long")
    body = Body(output="Prompt is too long for the model")
    text = rows_text(tab_rows(make_run([reply]), reply, body, "overview", width=70))
    assert "output   Prompt is too long for the model" in text
    assert "args" not in text


def test_the_overview_shows_a_dash_for_unrecorded_values() -> None:
    span = make_span("1", "gpt-4o", Operation.CHAT, usage=Usage(input_tokens=11_000, output_tokens=640))
    text = rows_text(tab_rows(make_run([span]), span, Body(), "overview", width=70))
    assert "time     —" in text
    assert "tokens   in 11.0k  out 640  reasoning —" in text
    assert "cost     —" in text


def test_raw_records_of_json_are_indented_in_the_styles_of_keys_and_values() -> None:
    body = Body(raw=b'{"id": 12345678901234567890123, "ok": true}\n{"text": "one two three four"}')
    rows = tab_rows(run_with(failed()), failed(), body, "raw", width=24)
    assert texts(rows, 24) == [
        "{",
        '  "id": 1234567890123456',
        "7890123,",
        '  "ok": true',
        "}",
        "{",
        '  "text": "one two three',
        'four"',
        "}",
    ]
    assert [piece.style for piece in rows.line(3, 24) if piece.text.strip()] == ["json.key", "json.punct", "json.word"]


def test_a_raw_record_of_several_lines_has_no_indentation_of_its_file() -> None:
    body = Body(raw=b'{\n      "id": 1,\n      "names": [\n        "a"\n      ]\n    }')
    rows = tab_rows(run_with(failed()), failed(), body, "raw", width=24)
    assert texts(rows, 24) == ["{", '  "id": 1,', '  "names": [', '    "a"', "  ]", "}"]


def test_an_output_that_is_the_error_is_shown_once() -> None:
    span = make_span("1", "Bash", Operation.EXECUTE_TOOL, status=Status.ERROR, error=Error("no such table"))
    outputs = [
        rows_text(tab_rows(make_run([span]), span, Body(output=output), "error", width=70))
        for output in ("no such table", "no such table: runs")
    ]
    assert [text.count("no such table") for text in outputs] == [1, 2]


def test_raw_shows_every_byte() -> None:
    assert texts(tab_rows(run_with(failed()), failed(), body_of_failed(), "raw", width=70)) == [
        '{"type": "tool"}',
        "\\xff",
    ]


def test_bindings_lead_to_their_writer() -> None:
    span = make_span("2", "generate", Operation.NODE, step=2)
    run = make_run([make_span("1", "retrieve", Operation.NODE, step=1), span])
    body = Body(bindings=(Binding("docs", 3, ["a"], writer="1"), Binding("query", None, known=False)))
    rows = tab_rows(run, span, body, "inputs", width=70)
    assert texts(rows) == [
        "docs v3  written by retrieve, step 1",
        '    0: "a"',
        "",
        "query  run input",
        "  — value not recorded",
        "",
    ]
    assert stack.target(rows, 0) == "1"


def evaluated_run() -> Run:
    turns = [make_span(str(i), f"turn {i}", Operation.TURN, step=i) for i in range(1, 6)]
    body = RunBody(
        goal="Verify what the plan covers",
        reason="two lookups failed",
        criteria=(
            Criterion("The coverage is stated", True, "Turn 1 names dental."),
            Criterion("A fact is confirmed", False, "policy_lookup failed twice", (3, 4)),
        ),
        metrics=(Metric("Goal Achievement", 0.33, 0.7, False), Metric("Sure", None)),
        findings=("never confirmed",),
        totals=(Total("turns", 10, 5), Total("criteria", 2, 2), Total("tokens", 12, None)),
        attributes={"environment": {"os": "linux"}},
        input={"plan": "B"},
    )
    return make_run(
        turns, status=Status.ERROR, status_word="failure", status_source=StatusSource.EXPLICIT, body=body,
        error=FirstError("A fact is confirmed: policy_lookup failed twice", "goal not met"),
        started_at=START, time_zone=None,
    )  # fmt: skip


def test_the_goal_tab_shows_each_criterion_with_its_turns() -> None:
    rows = tab_rows(evaluated_run(), evaluated_run().spans[0], Body(), "goal", width=60)
    text = rows_text(rows, 60)
    assert "Criteria 1 of 2 met ───" in text
    assert "✗ 2 A fact is confirmed\n         policy_lookup failed twice\nturns    · · 3 4 ·" in text
    assert "✗ Goal Achievement  ━━━━━─────┃────  0.33 ≥ 0.7" in text
    assert "· Sure              —" in text
    turns = texts(rows, 60).index("turns    · · 3 4 ·")
    assert stack.target(rows, turns) == "3"


def test_the_run_tab_shows_declared_beside_counted() -> None:
    text = rows_text(tab_rows(evaluated_run(), None, None, "run", width=70))
    assert "status   ✗ error  recorded as failure\nfirst ✗" in text
    assert "declared turns 10 declared, 5 counted" in text
    assert "criteria 2 ✓ matches count" in text
    assert "tokens 12 declared, — counted" in text
    assert "2025-11-21 13:09:22 local, zone unknown" in text
    assert 'os: "linux"' in text


def test_a_difference_is_yellow() -> None:
    rows = tab_rows(evaluated_run(), None, None, "run", width=70)
    line = rows.line(texts(rows, 70).index("declared turns 10 declared, 5 counted"), 70)
    assert line[-1].style == "status.warn"


def test_problems_show_location_and_reason() -> None:
    run = make_run([make_span("a", "x", Operation.CHAT, parent_id="gone")])
    assert run.problems == (Problem("/traces/a.json", "spans", "1 spans name a parent that is not in the trace"),)
    assert "! spans  1 spans name a parent" in rows_text(tab_rows(run, None, None, "run", width=80), 80)
    narrow = rows_text(tab_rows(run, None, None, "run", width=40), 40)
    assert "! spans  1 spans name a parent that is\n  not in the trace" in narrow


def test_other_runs_are_named_in_the_key() -> None:
    run = make_run([], replay_of="0690e0f0", relation="replay", status=Status.OK)
    rows = tab_rows(run, None, None, "run", width=70)
    row = texts(rows, 70).index("replay   ↺ 0690e0f0")
    assert stack.target_run(rows, row) == "0690e0f0"


def test_ascii_tabs_are_pure_ascii() -> None:
    for tab in ("error", "run", "goal"):
        for text in texts(tab_rows(evaluated_run(), failed(), body_of_failed(), tab, width=70, glyphs=ASCII), 70):
            assert text.isascii(), text


@pytest.mark.parametrize("size", [1 << 20])
def test_a_large_value_is_made_of_few_rows_until_it_is_opened(size: int) -> None:
    body = Body(input="x" * size, output={"a": "y\n" * size})
    span = make_span("1", "x", Operation.CHAT)
    assert len(tab_rows(make_run([span]), span, body, "overview", width=70)) < 30
    assert len(tab_rows(make_run([span]), span, body, "input", width=70)) == -(-size // 70)


BODIES = st.builds(
    Body,
    input=JSON,
    output=JSON,
    input_messages=st.lists(
        st.builds(Message, HOSTILE, st.tuples(st.builds(Text, HOSTILE), st.builds(ToolCall, st.none(), HOSTILE, JSON))),
        max_size=3,
    ).map(tuple),
    attributes=st.dictionaries(HOSTILE, JSON, max_size=3),
    state=st.none() | st.dictionaries(HOSTILE, JSON, max_size=3),
    bindings=st.lists(st.builds(Binding, HOSTILE, st.none() | st.integers(), JSON), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, HOSTILE, HOSTILE, HOSTILE), max_size=2).map(tuple),
    checks=st.lists(st.builds(Check, HOSTILE, HOSTILE, st.none() | HOSTILE), max_size=2).map(tuple),
    raw=st.binary(max_size=200),
    traceback=st.none() | HOSTILE,
)
NUMBERS = st.none() | st.floats() | st.integers(-5, 100)
RUN_BODIES = st.builds(
    RunBody,
    input=JSON,
    output=JSON,
    goal=st.none() | HOSTILE,
    criteria=st.lists(
        st.builds(Criterion, HOSTILE, st.none() | st.booleans(), HOSTILE, st.tuples(st.integers(0, 5))), max_size=3
    ).map(tuple),
    metrics=st.lists(
        st.builds(Metric, HOSTILE, NUMBERS, NUMBERS, st.none() | st.booleans(), HOSTILE, JSON), max_size=3
    ).map(tuple),
    findings=st.lists(HOSTILE, max_size=2).map(tuple),
    limits=st.lists(st.builds(Limit, HOSTILE, NUMBERS, NUMBERS, st.booleans(), HOSTILE, JSON), max_size=3).map(tuple),
    totals=st.lists(st.builds(Total, HOSTILE, NUMBERS, NUMBERS), max_size=3).map(tuple),
    system_prompt=st.none() | HOSTILE,
    attributes=st.dictionaries(HOSTILE, JSON, max_size=3),
)


@settings(max_examples=examples(25))
@given(runs(), BODIES, RUN_BODIES, st.integers(1, 200))
def test_any_tab_of_anything_fits_any_width(run: Run, body: Body, run_body: RunBody, width: int) -> None:
    run = make_run(list(run.spans), body=run_body, started_at=run.summary.started_at, model="m\x1b", replay_of="\u202e")
    span = run.spans[0] if run.spans else None
    for tab in tab_names(run, span, body):
        rows = tab_rows(run, span, body, tab, width=width, now=START)
        check_rows(rows, width)
        for i in range(len(rows)):
            stack.target(rows, i)
            stack.fold(rows, i)
            above = stack.parent(rows, i)
            assert above is None or above < i


def test_messages_show_the_usage_of_the_call() -> None:
    span = make_span("1", "gpt-4o", Operation.CHAT, 0, 900, step=1, usage=Usage(9000, 40, cache_read_tokens=8000))
    body = Body(input_messages=(Message("user", (Text("go on"),)),))
    rows = tab_rows(run_with(span), span, body, "messages", width=60)
    assert texts(rows, 60)[0].startswith("tokens   in 9.0k  out 40")
    assert "cache read 8.0k" in texts(rows, 60)[0]
    assert texts(rows, 60)[-1] == "user      ▎ go on"


@pytest.mark.parametrize("width", [30, 40, 48, 80])
def test_no_number_of_a_fact_is_cut(width: int) -> None:
    limit = Limit("max_tokens", current=6548, limit=50_000)
    used = Usage(486_000, 7_800, 493_800, cache_read_tokens=461_000, cache_creation_tokens=25_200, reasoning_tokens=5)
    span = make_span("1", "gpt-4o", Operation.CHAT, 0, 900, step=1, usage=used, status=Status.ERROR)
    run = make_run([span], body=RunBody(limits=(limit,)))
    for tab in ("error", "overview"):
        lines = texts(tab_rows(run, span, Body(), tab, width=width), width)
        assert not any(row[-2:-1].isdigit() and row.endswith("…") for row in lines), lines
    assert any("6 548 / 50 000" in row for row in texts(tab_rows(run, span, Body(), "error", width=width), width))
