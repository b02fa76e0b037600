"""OTLP JSON as particular libraries write it: names, counts and messages of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.test_otlp import CHAT, request, run_of, span, spans_of, used
from tests.shared import examples
from tracetui.model import FirstError, Operation, Reasoning, Status, Text, ToolCall, ToolResult, Usage

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ada"}


def says(read: int, output: int) -> dict[str, Any]:
    return AGENT | {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": output}


def turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


# ------------------------------------------------------------------------------------------------- tokens


@settings(max_examples=examples(15))
@given(order=st.permutations(range(4)))
def test_agents_whose_models_say_nothing_count_the_outermost(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    spans = [
        span(1, None, 0, 90),
        span(2, 1, 1, 40, attributes=says(50, 5)),
        span(3, 2, 2, 30, attributes=says(20, 2)),
        span(4, 1, 41, 80, attributes=says(7, 1)),
    ]
    run = run_of(tmp_path_factory.mktemp("any"), *(request(spans[place]) for place in order))
    assert run.summary.usage == Usage(57, 6)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_usage_of_an_agent_does_not_count_beside_that_of_its_call(tmp_path: Path, order: tuple[int, ...]) -> None:
    spans = [span(1, None, 0, 90, attributes=says(500, 50)), span(2, 1, 1, 40, attributes=used(50, 5))]
    assert run_of(tmp_path, *(request(spans[place]) for place in order)).summary.usage == Usage(50, 5)


def test_agents_that_contain_each_other_end_somewhere(tmp_path: Path) -> None:
    spans = [span(1, 2, 0, 90, attributes=says(5, 1)), span(2, 3, 0, 90), span(3, 2, 0, 9)]
    assert run_of(tmp_path, request(*spans)).summary.usage == Usage(5, 1)


def test_counts_of_the_ai_sdk(tmp_path: Path) -> None:
    call = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.usage.inputTokens": 90,
        "ai.usage.outputTokens": 9,
        "ai.usage.inputTokenDetails.cacheReadTokens": 40,
        "ai.usage.inputTokenDetails.cacheWriteTokens": 20,
        "ai.usage.outputTokenDetails.reasoningTokens": 3,
        "ai.response.finishReason": "length",
    }
    embed = {"ai.operationId": "ai.embed.doEmbed", "ai.usage.tokens": 7}
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=call), span(2, 1, 1, 2, attributes=embed)))
    assert [span.usage for span in run.spans] == [Usage(90, 9, None, 40, 20, 3), Usage(7)]
    assert run.spans[0].note == "length"


def test_spans_of_claude_code_itself(tmp_path: Path) -> None:
    asked = {"span.type": "interaction", "user_prompt": "Water the fern", "user_prompt_length": 14}
    call = {
        "span.type": "llm_request",
        "model": "leaf",
        "gen_ai.system": "loam",
        "gen_ai.request.model": "leaf",
        "input_tokens": 200,
        "output_tokens": 12,
        "cache_read_tokens": 80,
        "cache_creation_tokens": 70,
    }
    tool = {"span.type": "tool", "tool_name": "Bash", "gen_ai.tool.call.id": "t1"}
    run = run_of(
        tmp_path,
        request(
            span(1, None, 0, 90, name="claude_code.interaction", attributes=asked),
            span(2, 1, 1, 40, name="claude_code.llm_request", attributes=call),
            span(3, 1, 41, 80, name="claude_code.tool", attributes=tool),
            span(4, 3, 42, 70, name="claude_code.tool.execution", attributes={"span.type": "tool.execution"}),
        ),
    )
    assert [(span.operation, span.name) for span in run.spans] == [
        (Operation.INVOKE_AGENT, "claude_code.interaction"),
        (Operation.CHAT, "leaf"),
        (Operation.EXECUTE_TOOL, "Bash"),
        (Operation.OTHER, "claude_code.tool.execution"),
    ]
    assert (run.summary.prompt, run.summary.usage) == ("Water the fern", Usage(350, 12, None, 80, 70))


# ------------------------------------------------------------------------------------------------- what spans are


@pytest.mark.parametrize("kind", ["create_agent", "plan"])
def test_naming_a_model_is_not_calling_it(tmp_path: Path, kind: str) -> None:
    kept = {"gen_ai.operation.name": kind, "gen_ai.request.model": "leaf", "gen_ai.provider.name": "loam"}
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=kept)))
    assert (run.summary.steps, run.summary.llm_calls, run.spans[0].operation) == (0, 0, Operation.OTHER)


def test_a_pending_span_of_logfire_is_no_call(tmp_path: Path) -> None:
    pending = CHAT | {"logfire.span_type": "pending_span", "logfire.pending_parent_id": "0" * 16}
    run = run_of(
        tmp_path,
        request(span(2, 1, 0, 0, attributes=pending)),
        request(span(1, None, 0, 5, attributes=used(3, 4) | {"logfire.span_type": "span"})),
    )
    assert [span.operation for span in run.spans] == [Operation.CHAT, Operation.META]
    assert (run.summary.steps, run.summary.llm_calls) == (1, 1)


# ------------------------------------------------------------------------------------------------- messages


def test_parts_as_bedrock_has_them(tmp_path: Path) -> None:
    heard = [{"text": "Water it?"}, {"toolResult": {"toolUseId": "t0", "content": [{"text": "dry"}], "status": "ok"}}]
    said = [
        {"reasoningContent": {"reasoningText": {"text": "It is dry.", "signature": "s"}}},
        {"text": "I water it."},
        {"toolUse": {"toolUseId": "t1", "name": "water", "input": {"pot": 3}}},
    ]
    events = [
        {
            "name": name,
            "timeUnixNano": "1772442900000000000",
            "attributes": [{"key": key, "value": {"stringValue": json.dumps(parts)}}],
        }
        for name, key, parts in (("gen_ai.user.message", "content", heard), ("gen_ai.choice", "message", said))
    ]
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=CHAT, events=events)))
    body = run.load(run.spans[0])
    (asked,), (answered,) = body.input_messages, body.output_messages
    assert asked.parts == (Text("Water it?"), ToolResult("t0", [{"text": "dry"}]))
    assert answered.parts == (Reasoning("It is dry."), Text("I water it."), ToolCall("t1", "water", {"pot": 3}))
    assert (run.summary.prompt, run.spans[0].preview) == ("Water it?", "I water it.")


def test_two_turns_of_a_conversation_are_neither_of_one_name_nor_repetitions(tmp_path: Path) -> None:
    turns = [turn("system", "Be brief."), turn("user", "Sow?"), turn("assistant", "Yes."), turn("user", "Rake?")]
    prompts = []
    for system, count in (("", 2), ("", 4), ("New. ", 4)):
        messages = [turn("system", system), *turns[1:count]]
        run = run_of(
            tmp_path, request(span(1, None, 0, 5, attributes=CHAT | {"gen_ai.input.messages": json.dumps(messages)}))
        )
        prompts.append((run.summary.prompt, run.summary.repeats))
    assert [prompt for prompt, _ in prompts] == ["Sow?", "Rake?", "Rake?"]
    assert prompts[0][1] != prompts[1][1] == prompts[2][1]


def test_a_run_of_pydantic_ai_is_called_by_its_own_question(tmp_path: Path) -> None:
    turns = [turn("user", "Sow?"), turn("assistant", "Yes."), turn("user", "Rake?"), turn("assistant", "No.")]
    kept = AGENT | {"pydantic_ai.all_messages": json.dumps(turns), "gen_ai.system_instructions": '["Be brief."]'}
    assert run_of(tmp_path, request(span(1, None, 0, 5, attributes=kept))).summary.prompt == "Sow?"
    later = kept | {"pydantic_ai.new_message_index": 2}
    assert run_of(tmp_path, request(span(1, None, 0, 5, attributes=later))).summary.prompt == "Rake?"


def test_answer_of_a_tool_is_no_question(tmp_path: Path) -> None:
    result = {"role": "user", "parts": [{"type": "tool_result", "tool_use_id": "t", "content": "dry"}]}
    turns = [turn("user", "Context."), turn("user", "Sow?"), turn("assistant", "…"), result]
    kept = CHAT | {"gen_ai.input.messages": json.dumps(turns)}
    assert run_of(tmp_path, request(span(1, None, 0, 5, attributes=kept))).summary.prompt == "Context."


# ------------------------------------------------------------------------------------------------- the top


def test_the_root_span_that_ended_last_has_the_status_of_the_run(tmp_path: Path) -> None:
    wilted = {"status": {"code": 2, "message": "wilted"}}
    run = run_of(
        tmp_path,
        request(span(2, None, 20, 30, attributes=AGENT, **wilted)),
        request(span(1, None, 0, 10, attributes=CHAT, status={"code": 1})),
    )
    assert (run.summary.status, run.summary.name) == (Status.ERROR, "leaf")
    assert run.summary.first_error == FirstError("wilted", None, f"{2:016x}", "ada", Operation.INVOKE_AGENT)
    assert run.summary.duration_ms == pytest.approx(30)
    healed = request(span(3, None, 40, 50, attributes=AGENT, status={"code": 1}))
    healed_run = run_of(tmp_path, healed, request(span(2, None, 20, 30, attributes=AGENT, **wilted)))
    assert (healed_run.summary.status, healed_run.summary.errors) == (Status.OK, 1)


def test_the_last_version_of_a_repeated_root_span_counts(tmp_path: Path) -> None:
    open_ = span(1, None, 0, None, attributes=AGENT)
    run = run_of(tmp_path, request(open_))
    assert (run.summary.status, run.summary.duration_ms) == (Status.UNKNOWN, None)
    ended = span(1, None, 0, 10, attributes=AGENT, status={"code": 2})
    run = run_of(tmp_path, request(open_), request(ended))
    assert (run.summary.status, run.summary.duration_ms) == (Status.ERROR, 10)
    assert spans_of(run, Operation.INVOKE_AGENT)[0].status is Status.ERROR
