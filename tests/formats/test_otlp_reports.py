"""Traces as people reported them: totals that prove where cached tokens are, tops without a parent, cut messages."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_otlp import CHAT, FORMAT, TRACE, request, run_of, span, used
from tests.formats.test_otlp_writers import AGENT, says
from tracetui.formats.otlp.cut_json import decode_cut
from tracetui.model import Operation, RunRef, RunSummary, Status, StatusSource, Usage, text_of
from tracetui.sources.local import LocalSource

STRANDS = {"gen_ai.usage.cache_read_input_tokens": 40, "gen_ai.usage.cache_write_input_tokens": 7}
GENERATION = {"langfuse.observation.type": "generation", "langfuse.observation.model.name": "leaf"}


# ---- cached tokens and reasoning, inside or outside


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        (used(100, 10) | STRANDS | {"gen_ai.usage.total_tokens": 157}, Usage(147, 10, 157, 40, 7)),
        (used(100, 10) | STRANDS | {"gen_ai.usage.total_tokens": 110}, Usage(100, 10, 110, 40, 7)),
        (used(100, 10) | STRANDS | {"gen_ai.usage.total_tokens": 150}, Usage(140, 10, 150, 40, 7)),
        (used(100, 10) | STRANDS, Usage(100, 10, None, 40, 7)),
        (used(3, 10) | STRANDS, Usage(50, 10, None, 40, 7)),
        (
            used(100, 10) | {"gen_ai.usage.reasoning_tokens": 25, "gen_ai.usage.total_tokens": 135},
            Usage(100, 35, 135, reasoning_tokens=25),
        ),
        (
            CHAT
            | {
                "llm.token_count.prompt": 9,
                "llm.token_count.completion": 4,
                "llm.token_count.prompt_details.cache_read": 6,
                "llm.token_count.total": 19,
            },
            Usage(15, 4, 19, 6),
        ),
    ],
)
def test_the_total_proves_what_is_apart(tmp_path: Path, attributes: dict[str, Any], usage: Usage) -> None:
    assert run_of(tmp_path, request(span(1, None, 0, 5, attributes=attributes))).summary.usage == usage


@pytest.mark.parametrize(
    ("details", "usage"),
    [
        ({"input": 11, "output": 3, "total": 14}, Usage(11, 3, 14)),
        ({"input": 11, "output": 3, "input_cached_tokens": 6}, Usage(17, 3, None, 6)),
        ({"input": 11, "output": 3, "input_cached_tokens": 6, "total": 14}, Usage(11, 3, 14, 6)),
        ({"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}, Usage(8, 2, 10)),
    ],
)
def test_usage_details_of_langfuse(tmp_path: Path, details: dict[str, int], usage: Usage) -> None:
    attributes = GENERATION | {"langfuse.observation.usage_details": json.dumps(details)}
    assert run_of(tmp_path, request(span(1, None, 0, 5, attributes=attributes))).summary.usage == usage


def test_observations_of_langfuse(tmp_path: Path) -> None:
    agent = {"langfuse.observation.type": "agent", "langfuse.trace.tags": '["soil"]', "session.id": "s-1"}
    answer = {
        "langfuse.observation.input": json.dumps([{"role": "user", "content": "Dig?"}]),
        "langfuse.observation.output": json.dumps({"role": "assistant", "content": "Yes."}),
        "langfuse.observation.cost_details": json.dumps({"input": 0.5, "output": 0.25}),
    }
    tool = {
        "langfuse.observation.type": "tool",
        "langfuse.observation.input": '{"depth": 3}',
        "langfuse.observation.output": '{"ok": true}',
        "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": "the spade broke",
    }
    run = run_of(
        tmp_path,
        request(
            span(1, None, 0, 9, attributes=agent),
            span(2, 1, 1, 3, attributes=GENERATION | answer),
            span(3, 1, 4, 5, name="dig", attributes=tool),
        ),
    )
    assert [span.operation for span in run.spans] == [Operation.INVOKE_AGENT, Operation.CHAT, Operation.EXECUTE_TOOL]
    assert (run.summary.prompt, run.summary.models, run.summary.tags) == ("Dig?", ("leaf",), ("soil", "s-1"))
    assert run.summary.usage == Usage(cost_usd=0.75)
    error = run.spans[2].error
    assert error is not None
    assert error.message == "the spade broke"
    assert run.load(run.spans[2]).input == {"depth": 3}
    assert run.body.last_assistant == "Yes."


# ---- agents of which only some have calls


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)])
def test_an_agent_without_calls_counts_beside_the_calls_of_others(tmp_path: Path, order: tuple[int, ...]) -> None:
    spans = [
        span(1, None, 0, 90, attributes=says(177, 17)),
        span(2, 1, 1, 20, attributes=used(120, 12)),
        span(3, 1, 21, 60, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask"}),
        span(4, 3, 22, 59, attributes=says(50, 4)),
        span(5, 1, 61, 80, attributes=says(7, 1)),
    ]
    assert run_of(tmp_path, *(request(spans[place]) for place in order)).summary.usage == Usage(177, 17)


def test_an_agent_within_one_that_counts_does_not_count_again(tmp_path: Path) -> None:
    spans = [
        span(1, None, 0, 90),
        span(2, 1, 1, 20, attributes=used(30, 3)),
        span(3, 1, 21, 60, attributes=says(50, 5)),
        span(4, 3, 22, 59, attributes=says(20, 2)),
    ]
    assert run_of(tmp_path, request(*spans)).summary.usage == Usage(80, 8)


def test_an_agent_counts_nothing_beside_its_own_calls(tmp_path: Path) -> None:
    spans = [
        span(1, None, 0, 90),
        span(2, 1, 1, 20, attributes=says(30, 3)),
        span(3, 1, 2, 19, attributes=used(30, 3)),
    ]
    assert run_of(tmp_path, request(*spans)).summary.usage == Usage(30, 3)


# ---- tops


def test_a_span_with_a_remote_parent_is_the_top(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        request(span(2, 99, 0, 9, name="GET /beds", flags=0x301), span(3, 2, 1, 5, attributes=AGENT | CHAT)),
    )
    assert (run.summary.name, run.summary.status, run.summary.problems) == ("GET /beds", Status.OK, 0)


def test_a_remote_parent_that_comes_is_above(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        request(span(2, 1, 0, 9, name="GET /beds", flags=0x301)),
        request(span(1, None, 0, 10, name="browser", status={"code": 2, "message": "lost"})),
    )
    assert (run.summary.name, run.summary.status, run.summary.problems) == ("browser", Status.ERROR, 0)


def test_a_failed_span_without_its_parent_fails_the_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, request(span(2, 99, 0, 9, name="job", status={"code": 2, "message": "drought"})))
    assert (run.summary.name, run.summary.status) == ("job", Status.ERROR)


def test_a_trace_may_get_its_top_while_its_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(request(span(2, 1, 0, 9, name="job"))) + "\n")
    for age, status in ((0, Status.RUNNING), (3600, Status.OK)):
        os.utime(path, (time.time() - age,) * 2)
        with LocalSource().open(str(path)) as file:
            (summary,) = FORMAT.summarize(file, deep=True)
        assert isinstance(summary, RunSummary)
        assert summary.status is status


# ---- status


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_an_unset_top_span_is_ok_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    spans = [
        span(1, None, 0, 90, name="request"),
        span(2, 1, 1, 20, attributes=used(3, 1)),
        span(3, 1, 21, 60, attributes=CHAT, status={"code": 2, "message": "429"}),
    ]
    summary = run_of(tmp_path, *(request(spans[place]) for place in order)).summary
    assert (summary.status, summary.status_source, summary.errors) == (Status.OK, StatusSource.DERIVED, 1)


@pytest.mark.parametrize(
    "reason",
    [
        {"ai.response.finishReason": "error"},
        {"gen_ai.response.finish_reasons": '["error"]'},
        {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [], "finish_reason": "error"}])},
    ],
)
def test_a_call_that_stopped_by_an_error_failed(tmp_path: Path, reason: dict[str, Any]) -> None:
    run = run_of(tmp_path, request(span(1, None, 0, 90, name="request"), span(2, 1, 1, 20, attributes=CHAT | reason)))
    assert (run.summary.status, run.summary.errors, run.spans[1].status) == (Status.ERROR, 1, Status.ERROR)


def test_a_call_that_was_repeated_does_not_fail_the_run(tmp_path: Path) -> None:
    failed = CHAT | {"ai.response.finishReason": "error"}
    run = run_of(
        tmp_path,
        request(span(1, None, 0, 90), span(2, 1, 1, 20, attributes=failed), span(3, 1, 21, 40, attributes=CHAT)),
    )
    assert (run.summary.status, run.summary.errors) == (Status.OK, 1)


# ---- messages that a limit cut


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[{"role": "user", "content": "How deep', [{"role": "user", "content": "How deep…"}]),
        ('[{"role": "user", "content": "a\\', [{"role": "user", "content": "a…"}]),
        ('[{"role": "user", "content": "a\\\\', [{"role": "user", "content": "a\\…"}]),
        ('[{"role": "user", "content": "a\\u00', [{"role": "user", "content": "a…"}]),
        ('[{"role": "user", "content": "a"}, {"ro', [{"role": "user", "content": "a"}]),
        ('[{"role": "user", "content": "a"}, {"role": "assis', [{"role": "user", "content": "a"}]),
        ('{"a": [1, 2, 34', {"a": [1, 2]}),
        ('[{"role": "user"}]', None),
        ("[sic] no JSON", []),
        ("no JSON", None),
    ],
)
def test_cut_json_is_read_up_to_the_cut(text: str, value: Any) -> None:
    assert decode_cut(text) == value


def test_cut_messages_are_text(tmp_path: Path) -> None:
    system, given = (
        json.dumps([{"type": "text", "content": "You are a gardener of old roses"}]),
        json.dumps([{"role": "user", "parts": [{"type": "text", "content": "When do I cut the hedge?"}]}]),
    )
    attributes = CHAT | {"gen_ai.system_instructions": system[:50], "gen_ai.input.messages": given[:-10]}
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=attributes)))
    body = run.load(run.spans[0])
    assert [text_of(message) for message in body.input_messages] == ["You are a gardener o…", "When do I cut the h…"]
    assert body.attributes["gen_ai.input.messages"] == "cut off in the trace"
    assert run.summary.prompt == "When do I cut the h…"


def test_a_cut_answer_and_cut_calls_of_the_ai_sdk(tmp_path: Path) -> None:
    calls = json.dumps([{"toolName": "dig", "input": {"depth": 3}}, {"toolName": "sow", "input": {"seed": "dill"}}])
    attributes = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": json.dumps([{"role": "user", "content": "Dig and sow dill in bed 3"}])[:-8],
        "ai.response.toolCalls": calls[:55],
    }
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=attributes)))
    body = run.load(run.spans[0])
    assert text_of(body.input_messages[0]) == "Dig and sow dill in …"
    assert run.spans[0].preview == "→ dig"
    assert RunRef("otlp", str(tmp_path / "x.jsonl"), TRACE) == run.summary.ref


# ---- where a failure arose


def failing(number: int, parent: int | None, begin: int, end: int, message: str = "", **attributes: Any) -> Any:
    return span(number, parent, begin, end, attributes=attributes, status={"code": 2, "message": message})


@pytest.mark.parametrize("order", [1, -1], ids=["top first", "top last"])
@pytest.mark.parametrize(
    ("spans", "arose"),
    [
        ([failing(1, None, 0, 9, "wilted"), failing(2, 1, 1, 9, "wilted"), failing(3, 2, 2, 9, "wilted")], 3),
        ([failing(1, None, 0, 9, "wilted"), failing(2, 1, 0, 9, "wilted"), failing(3, 2, 0, 9, "wilted")], 3),
        ([failing(1, None, 0, 9, "wilted"), span(2, 1, 1, 8), failing(3, 2, 2, 7, "wilted")], 3),
        ([failing(1, None, 0, 9, "wilted"), failing(2, 1, 1, 12, "wilted")], 2),  # the top did not wait for it
        ([failing(1, None, 0, 9, "Agent failed: wilted."), failing(2, 1, 1, 8, "wilted")], 2),
        (
            [
                failing(1, None, 0, 9, "Flow failed (Agent failed: wilted)"),
                failing(2, 1, 1, 8, "Agent failed: wilted"),
                failing(3, 2, 2, 7, "wilted", **{"error.type": "Drought"}),
            ],
            3,
        ),
        ([failing(1, None, 0, 9, "wilted"), failing(2, 1, 1, 4, "wilted"), failing(3, 1, 5, 8, "wilted")], 2),
        ([failing(1, None, 0, 9, "wilted"), failing(2, 1, 1, 4, "will"), failing(3, 1, 5, 8, "rain")], 1),
        ([failing(1, None, 0, 9), failing(2, 1, 1, 4, "a spade broke"), failing(3, 1, 5, 8, "wilted")], 3),
        ([failing(1, None, 0, 9), failing(2, 1, 1, 8), failing(3, 2, 2, 7, "wilted")], 3),
    ],
)
def test_an_error_is_that_of_the_span_where_it_arose(tmp_path: Path, spans: list[Any], arose: int, order: int) -> None:
    error = run_of(tmp_path, *map(request, spans[::order])).summary.first_error
    assert error is not None
    assert error.span == f"{arose:016x}"


def test_a_span_that_is_recorded_again_without_its_error_did_not_fail(tmp_path: Path) -> None:
    healed = span(2, 1, 1, 8, status={"code": 1})
    run = run_of(tmp_path, request(failing(2, 1, 1, 8, "wilted")), request(healed), request(span(1, None, 0, 9)))
    assert run.summary.first_error is None
