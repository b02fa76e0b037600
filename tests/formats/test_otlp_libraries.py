"""Traces that the real libraries wrote (``tests/formats/otlp/<case>/SOURCE.txt`` says which): input, output, status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tracetui
from tests.formats.test_otlp import CHAT, request, run_of, span
from tests.formats.test_otlp_writers import AGENT, turn
from tracetui.model import Body, Message, Operation, Run, Status, StatusSource, ToolCall, ToolResult, text_of

HERE = Path(__file__).parent / "otlp"


def runs(case: str, name: str) -> list[Run]:
    return list(tracetui.load_all(HERE / case / "input" / f"{name}.otlp.jsonl"))


def messages_in_short(messages: tuple[Message, ...]) -> list[str]:
    """Each message in short: its text, the tools that it asks for, or what they answered."""
    texts = []
    for message in messages:
        parts = [f"→{part.name}" for part in message.parts if isinstance(part, ToolCall)]
        parts += ["←" for part in message.parts if isinstance(part, ToolResult)]
        texts.append(text_of(message) or "".join(parts))
    return texts


def agent_of(run: Run) -> Body:
    return run.load(next(span for span in run.spans if span.operation is Operation.INVOKE_AGENT))


def standing(run: Run) -> tuple[Status, StatusSource | None]:
    return run.summary.status, run.summary.status_source


# ------------------------------------------------------------------------------------------------- Pydantic AI


def test_an_agent_of_pydantic_ai_does_not_take_its_answer_for_input() -> None:
    tool, structured, history = (agent_of(run) for run in runs("pydantic_ai", "v5"))
    assert messages_in_short(tool.input_messages) == ["You are a gardener.", "Is bed 3 dry?"]
    assert messages_in_short(tool.output_messages) == ["→moisture", "←", "Bed 3 is dry."]
    assert tool.output == "Bed 3 is dry."
    assert messages_in_short(structured.input_messages) == ["Describe the fern."]
    assert structured.output == {"name": "fern", "height_cm": 40}
    assert messages_in_short(history.input_messages)[-2:] == ["Water it on Mondays.", "And the rose?"]
    assert messages_in_short(history.output_messages) == ["On Tuesdays then."]


def test_a_retry_is_no_question_of_the_user(tmp_path: Path) -> None:
    (run,) = runs("pydantic_ai", "v6")
    assert run.summary.prompt == "Is my bed wet?"
    assert messages_in_short(agent_of(run).output_messages) == ["→moisture", "←", "→moisture", "←", "Bed 2 is wet."]
    asked = [
        turn("user", "Sow?"),
        turn("assistant", "Maybe."),
        turn("user", "Decide.\n\nFix the errors and try again."),
    ]
    kept = {"agent_name": "ada", "pydantic_ai.all_messages": json.dumps(asked)}
    assert run_of(tmp_path, request(span(1, None, 0, 5, attributes=kept))).summary.prompt == "Sow?"


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_versions_without_an_index_ask_the_latest_question(name: str) -> None:
    run = runs("pydantic_ai", name)[0]
    assert run.summary.prompt == "And the rose?"
    assert messages_in_short(agent_of(run).output_messages) == ["On Tuesdays then."]


@pytest.mark.parametrize(("name", "place"), [("v1", 2), ("v2", 1)])
def test_a_streamed_run_without_a_result_ends_with_its_last_answer(name: str, place: int) -> None:
    run = runs("pydantic_ai", name)[place]
    assert run.body.output == "Water it daily."
    assert agent_of(run).output == "Water it daily."


def test_a_run_that_stopped_at_a_tool_has_no_output(tmp_path: Path) -> None:
    call = {
        "role": "assistant",
        "parts": [{"type": "text", "content": "Let me look."}, {"type": "tool_call", "name": "look"}],
    }
    kept = AGENT | {"pydantic_ai.all_messages": json.dumps([turn("user", "Sow?"), call])}
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=kept)))
    assert (run.body.output, run.load(run.spans[0]).output) == (None, None)
    assert messages_in_short(run.load(run.spans[0]).output_messages) == ["Let me look."]


def test_thoughts_in_events_are_no_answer() -> None:
    run = runs("pydantic_ai", "v1")[1]
    assert run.body.last_assistant == "In the shade."


# ------------------------------------------------------------------------------------------------- openai-agents


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "openinference",
            {
                "I cannot tell.": None,  # a tool failed, and the model went on
                "Is bed 5 dry?": "Gardener",
                "What eats the rose?": "Botanist",
                "poison": "turn",
                "Yes.": None,  # a second agent made up for the first
            },
        ),
        ("openllmetry", {"Is bed 5 dry?": "Gardener", "I do not know.": None}),
        ("logfire", {"poison": "turn", "What eats the rose?": "Botanist"}),  # says what its call said
    ],
)
def test_a_run_fails_with_its_last_agent_whatever_the_top_span_says(name: str, expected: dict[str, str | None]) -> None:
    listed = runs("openai_agents", name)
    assert len(listed) == len(expected)
    for run, failed in zip(listed, expected.values(), strict=True):
        assert run.spans[0].status is Status.OK
        if failed is None:
            assert standing(run) == (Status.OK, StatusSource.EXPLICIT)
            assert run.body.error is None
        else:
            assert standing(run) == (Status.ERROR, StatusSource.DERIVED)
            assert run.summary.first_error is not None
            assert run.body.error is not None
            assert run.summary.first_error.message in run.body.error.text
            is_passed_on = run.body.error.text != run.summary.first_error.text
            assert run.summary.first_error.name == ("Responses API" if is_passed_on else failed)
            says = [finding for finding in run.body.findings if failed in finding]
            assert len(says) == (run.spans[0].status_source is StatusSource.EXPLICIT)


def agent(number: int, parent: int | None, start: int, end: int, code: int, **attributes: Any) -> dict[str, Any]:
    kept = {"openinference.span.kind": "AGENT", **attributes}
    return span(
        number, parent, start, end, attributes=kept, status={"code": code, "message": "wilted" if code == 2 else ""}
    )


FAILED = agent(2, 1, 1, 5, 2)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_failure_of_the_only_agent_counts_in_any_order(tmp_path: Path, order: tuple[int, int]) -> None:
    spans = [agent(1, None, 0, 9, 1), FAILED]
    run = run_of(tmp_path, *(request(spans[place]) for place in order))
    assert standing(run) == (Status.ERROR, StatusSource.DERIVED)
    assert run.summary.status_word is None


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([agent(1, None, 0, 9, 1), FAILED, agent(3, 1, 5, 8, 1)], id="another agent after it"),
        pytest.param([agent(1, None, 0, 9, 1), FAILED, span(3, 1, 5, 8, attributes=CHAT)], id="a call after it"),
        pytest.param([agent(1, None, 0, 9, 1, **{"output.value": "done"}), FAILED], id="the top has an output"),
        pytest.param(
            [agent(1, None, 0, 9, 1), agent(3, 1, 0, 7, 0, **{"output.value": "done"}), agent(2, 3, 1, 5, 2)],
            id="what is around it has an output",
        ),
        pytest.param([span(1, None, 0, 9, status={"code": 1}), FAILED], id="the application says OK"),
        pytest.param(
            [
                agent(1, None, 0, 9, 1),
                span(3, 1, 0, 7, attributes={"openinference.span.kind": "TOOL"}),
                agent(2, 3, 1, 5, 2),
            ],
            id="it is below a tool",
        ),
    ],
)
def test_a_failure_that_was_recovered_from_does_not_count(tmp_path: Path, spans: list[dict[str, Any]]) -> None:
    run = run_of(tmp_path, request(*spans))
    assert standing(run) == (Status.OK, StatusSource.EXPLICIT)
    assert run.body.findings == ()


def test_a_guardrail_that_ran_does_not_make_up_for_a_failure(tmp_path: Path) -> None:
    check = span(3, 1, 6, 8, attributes={"openinference.span.kind": "GUARDRAIL"}, status={"code": 1})
    assert run_of(tmp_path, request(agent(1, None, 0, 9, 1), FAILED, check)).summary.status is Status.ERROR


def test_agents_that_contain_each_other_do_not_hang(tmp_path: Path) -> None:
    spans = [agent(1, None, 0, 9, 1), agent(2, 1, 0, 9, 1), agent(3, 2, 0, 9, 1), agent(2, 3, 0, 9, 1)]
    assert run_of(tmp_path, request(*spans)).summary.status is Status.OK


def test_logfire_names_spans_of_openai_agents_by_what_they_are() -> None:
    _, run = runs("openai_agents", "logfire")
    assert [(span.name, span.operation) for span in run.spans][:4] == [
        ("Agent workflow", Operation.INVOKE_WORKFLOW),
        ("Agent workflow", Operation.INVOKE_WORKFLOW),
        ("Gardener", Operation.INVOKE_AGENT),
        ("turn", Operation.TURN),
    ]
    call = next(span for span in run.spans if span.operation is Operation.CHAT)
    assert messages_in_short(run.load(call).output_messages) == ["→transfer_to_botanist"]
    assert messages_in_short(run.load(call).input_messages)[-1] == "What eats the rose?"


def test_an_agent_s_name_comes_before_that_of_the_workflow() -> None:
    assert {run.summary.agent for run in runs("openai_agents", "openllmetry")} == {"Gardener"}


# ------------------------------------------------------------------------------------------------- empty messages


def test_a_message_without_content_hides_no_output() -> None:
    plain, call, refusal, audio = (run.load(run.spans[0]) for run in runs("openinference_clients", "openai"))
    assert (plain.output, messages_in_short(plain.output_messages)) == ("Mondays.", ["Mondays."])
    assert messages_in_short(call.output_messages) == ["→moisture"]
    for body, said in ((refusal, "I will not say."), (audio, "UklGRg==")):
        assert body.output_messages == ()
        assert said in str(body.output)
        assert body.attributes["llm.output_messages.0.message.role"] == "assistant"


@pytest.mark.parametrize(
    "empty",
    [
        {"llm.output_messages.0.message.role": "assistant"},
        {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": ""},
        {"gen_ai.output.messages": '[{"role": "assistant", "parts": []}]'},
        {"gen_ai.completion.0.role": "assistant"},
    ],
)
def test_no_convention_s_empty_message_hides_another_s_value(tmp_path: Path, empty: dict[str, Any]) -> None:
    kept = CHAT | empty | {"output.value": "Mondays."}
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=kept)))
    assert run.load(run.spans[0]).output == "Mondays."
    assert run.spans[0].preview == "Mondays."


def test_an_empty_message_that_is_given_hides_no_input(tmp_path: Path) -> None:
    kept = CHAT | {"llm.input_messages.0.message.role": "user", "input.value": "When?"}
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=kept)))
    assert run.load(run.spans[0]).input == "When?"


def test_a_failure_that_a_chain_caught_is_none_of_the_run() -> None:
    caught, *_ = runs("openinference_clients", "langchain")
    assert standing(caught) == (Status.OK, StatusSource.EXPLICIT)
    assert caught.body.output == "I do not know."
