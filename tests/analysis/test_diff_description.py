"""Comparisons in words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.diff.build import Step, run_of
from tracetui.analysis.diff_description import DiffDescription, describe, phrase_steps, text_change
from tracetui.diff.comparison import Comparison
from tracetui.model import Body, Message, Operation, Run, Text, ToolCall
from tracetui.redact import Redactor

CALL = Step(Operation.CHAT, "gpt-4o")


def description_of(a: Run, b: Run) -> DiffDescription:
    comparison = Comparison(a, b)
    return describe(comparison.result(), comparison.messages)


def model_call(
    prompt: str = "Answer.", *texts: str, answer: str = "Done.", call: ToolCall | None = None, **raw: Any
) -> Body:
    messages = [Message("system", (Text(prompt),)), *(Message("user", (Text(text),)) for text in texts)]
    parts = (Text(answer),) if call is None else (Text(answer), call)
    return Body(input_messages=tuple(messages), output_messages=(Message("assistant", parts),), **raw)


def phrases(a: Body, b: Body) -> list[tuple[str, str]]:
    runs = [run_of([CALL], ident=name, bodies={"s0": body}) for name, body in (("a", a), ("b", b))]
    return [(phrase.text, phrase.detail) for phrase in description_of(*runs).phrases]


def test_an_edited_system_prompt_is_named_with_its_new_words() -> None:
    changed = phrases(model_call("Be brief.", "Hi"), model_call("Be brief. Name two sources.", "Hi"))
    assert changed == [("system prompt changed", "“Name two sources.” added")]


def test_more_and_fewer_messages_are_counted() -> None:
    assert phrases(model_call("P", "one"), model_call("P", "one", "two"))[0][0] == "one message more"
    assert phrases(model_call("P", "one", "two", "six"), model_call("P", "one"))[0][0] == "2 messages fewer"


def test_a_message_with_other_words_throughout_is_changed_not_exchanged() -> None:
    assert phrases(model_call("P", "red"), model_call("P", "blue")) == [("user message changed", "“red” → “blue”")]


OPENAI = {"choices": [{"message": {"role": "assistant", "content": "{}"}, "finish_reason": "stop"}], "id": "x"}
RESPONSES = {"output": [{"type": "message", "content": [{"type": "output_text", "text": "{}"}]}]}
ANTHROPIC = {"role": "assistant", "content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"}
GEMINI = {"candidates": [{"content": {"parts": [{"text": "{}"}], "role": "model"}}]}
LANGCHAIN = {"generations": [[{"text": "{}", "message": {"kwargs": {"content": "{}"}}}]]}
VERCEL = {"text": "{}", "finishReason": "stop"}


@pytest.mark.parametrize("form", [OPENAI, RESPONSES, ANTHROPIC, GEMINI, LANGCHAIN, VERCEL])
def test_outputs_of_every_provider_are_compared_as_messages(form: dict[str, Any]) -> None:
    def filled(value: Any, text: str) -> Any:
        if isinstance(value, dict):
            return {name: filled(item, text) for name, item in value.items()}
        return [filled(item, text) for item in value] if isinstance(value, list) else text if value == "{}" else value

    a, b = (model_call(answer=text, output=filled(form, text)) for text in ("It is 12.", "It is 13."))
    assert phrases(a, b) == [("output differs", "“12” → “13”")]


def test_settings_beside_the_messages_are_named() -> None:
    a, b = (model_call(output={"text": "Done.", "finish_reason": reason}) for reason in ("stop", "length"))
    assert phrases(a, b) == [("finish_reason changed", "“stop” → “length”")]


def test_calls_of_a_model_are_compared_as_calls() -> None:
    search = ToolCall("c1", "search", {"query": "red", "top": 5})
    a, other = model_call(call=search), model_call(call=ToolCall("c2", "search", {"query": "blue", "top": 5}))
    assert phrases(a, other) == [("search called with another query", "“red” → “blue”")]
    assert phrases(a, model_call(call=ToolCall("c1", "fetch", {})))[0][0] == "model calls fetch instead of search"
    assert phrases(a, model_call())[0][0] == "model does not call search"


def test_steps_with_the_same_change_share_a_phrase() -> None:
    steps = [Step(input={"q": i}, output=f"a{i}") for i in range(4)]
    others = [Step(input={"q": i}, output=f"b{i}" if i else "a0") for i in range(4)]
    comparison = Comparison(run_of(steps), run_of(others, ident="b"))
    diff = comparison.result()
    (phrase,) = describe(diff, comparison.messages).phrases
    assert phrase.text == "3 results of search differ"
    assert phrase_steps(diff, phrase) == "step 2, 3, 4"


def test_steps_of_one_run_are_counted_by_name() -> None:
    described = description_of(
        run_of([Step(input=1), Step(input=2), Step(input=3)]), run_of([Step(input=1)], ident="b")
    )
    assert described.first == "2 search calls only in A"


def test_envelope_fields_are_ignored_and_named() -> None:
    bodies = [
        Body(input="x", attributes={"version": version, "userType": kind, "parentUuid": parent})
        for version, kind, parent in (("2.1.0", "external", "p1"), ("2.2.0", "internal", "p2"))
    ]
    a, b = (run_of([Step()], ident=name, bodies={"s0": body}) for name, body in zip("ab", bodies, strict=True))
    diff = Comparison(a, b).result()
    assert diff.same
    assert diff.ignored == {"envelope": 3}
    assert diff.envelope == ("version", "userType", "parentUuid")
    assert not Comparison(a, b, strict=True).result().same


def test_masked_secrets_are_called_the_same_or_another() -> None:
    redactor = Redactor(compared=True)
    first, second = "sk-proj-" + "a1B2" * 10, "sk-proj-" + "c3D4" * 10
    masked = [redactor.text(f"key {secret}{more}") for secret, more in ((first, ""), (second, ""), (first, " now"))]
    assert text_change(masked[0], masked[1]) == "another secret"
    assert text_change(masked[0], masked[2]) == "“now” added · same secret"


def test_a_huge_text_is_not_compared_for_its_words() -> None:
    assert text_change("x" * 200_000, "y") == "200k and 1 characters"
