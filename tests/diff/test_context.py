"""What became of the messages between two model calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.diff.build import Step, run_of
from tracetui.diff.step import MessageChange, context_diff, message_pairs, previous_call
from tracetui.model import Message, Operation, Span, Text, ToolCall, ToolResult, Usage


def messages(*texts: str, role: str = "user") -> list[Message]:
    return [Message(role, (Text(text),)) for text in texts]


def counts(a: list[Message], b: list[Message]) -> dict[str, int]:
    return {fate.value: number for fate, number in context_diff(a, b).counts.items() if number}


def test_messages_are_kept_new_dropped_edited_and_moved() -> None:
    asked = "what is the weather in"
    a = messages("you are a careful agent", f"{asked} Paris", "first answer", "second", "third", "remember this")
    b = messages("you are a careful agent", "remember this", f"{asked} London", "second", "third", "brand new")

    diff = context_diff(a, b)

    assert counts(a, b) == {"kept": 3, "new": 1, "dropped": 1, "edited": 1, "moved": 1}
    assert (MessageChange.MOVED, 5, 1) in diff.pairs
    assert (MessageChange.EDITED, 1, 2) in diff.pairs
    assert diff.break_at == 1


def test_a_context_that_only_grew_breaks_no_cache() -> None:
    assert context_diff(messages("a", "b"), messages("a", "b", "c")).break_at is None
    assert context_diff(messages("a", "b"), messages("a")).break_at == 1
    assert context_diff([], messages("a")).break_at is None


def test_ids_of_calls_do_not_make_a_message_new() -> None:
    def messages(ident: str) -> list[Message]:
        call = Message("assistant", (ToolCall(ident, "search", {"q": 1}),), id=f"m-{ident}")
        return [call, Message("tool", (ToolResult(ident, "found"),))]

    assert counts(messages("toolu_1"), messages("toolu_2")) == {"kept": 2}
    assert context_diff(messages("toolu_1"), messages("toolu_2")).break_at == 0


def test_tokens_are_those_that_the_calls_say() -> None:
    def call(tokens: int | None) -> Span:
        return Span(id="s", name="m", usage=Usage(input_tokens=tokens))

    assert context_diff([], [], call(100), call(80)).tokens == -20
    assert context_diff([], [], call(100), call(None)).tokens is None
    assert context_diff([], []).tokens is None


@given(st.lists(st.sampled_from("abcd"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=8))
def test_every_message_has_one_change(left: list[str], right: list[str]) -> None:
    a, b = messages(*left), messages(*right)
    pairs = message_pairs(a, b)

    assert sorted(pair.a for pair in pairs if pair.a is not None) == list(range(len(a)))
    assert [pair.b for pair in pairs if pair.b is not None] == list(range(len(b)))
    for pair in pairs:
        assert (pair.a is None) == (pair.change is MessageChange.NEW)
        assert (pair.b is None) == (pair.change is MessageChange.DROPPED)
    assert {pair.change for pair in message_pairs(a, a)} <= {MessageChange.KEPT}


def test_the_previous_call_is_that_of_the_same_agent() -> None:
    run = run_of([
        Step(Operation.CHAT, "m"),
        Step(Operation.EXECUTE_TOOL, "task"),
        Step(Operation.INVOKE_AGENT, "helper", depth=1),
        Step(Operation.CHAT, "m", depth=2),
        Step(Operation.CHAT, "m", depth=2),
        Step(Operation.CHAT, "m"),
    ])  # fmt: skip

    assert [previous_call(run, i) for i in (0, 3, 4, 5)] == [None, None, 3, 0]
