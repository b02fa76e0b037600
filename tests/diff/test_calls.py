"""Ids of tool calls are compared by their place, up to a renaming that holds for the whole of both runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.diff.build import Step, kinds, run_of
from tracetui.diff.comparison import Comparison, Diff, compare
from tracetui.diff.values import names_call
from tracetui.model import Body, Message, Operation, Run, ToolCall, ToolResult

Ids = dict[str, Any]
FORMS = ["pyd_ai_{:04x}", "tooluse_{:08d}-aZ", "{:09d}", "functions.search:{}", "c{}", "{}"]


def conversation(calls: list[tuple[str, str]], ids: Ids, form: str, *, blank: str = "") -> list[Any]:
    """Messages in which each call is made and answered, as some API or other writes them."""
    messages: list[Any] = [{"role": "user", "content": "Find it."}]
    for own, query in calls:
        arguments = f'{{"q":{blank}{json.dumps(query)},{blank}"top":{blank}3}}'
        call, done = ids[own], f"found {query}"
        if form == "openai":
            function = {"name": "search", "arguments": arguments}
            messages.append(
                {"role": "assistant", "tool_calls": [{"id": call, "type": "function", "function": function}]}
            )
            messages.append({"role": "tool", "tool_call_id": call, "content": done})
        elif form == "anthropic":
            use = {"type": "tool_use", "id": call, "name": "search", "input": {"q": query}}
            messages.append({"role": "assistant", "content": [use]})
            result = {"type": "tool_result", "tool_use_id": call, "content": done}
            messages.append({"role": "user", "content": [result]})
        else:
            part = {"type": "tool-call", "toolCallId": call, "toolName": "search", "input": arguments}
            messages.append({"role": "assistant", "content": json.dumps([part])})
            messages.append(
                {"role": "tool", "content": json.dumps([{"type": "tool-result", "toolCallId": call, "output": done}])}
            )
    return messages


def recorded(calls: list[tuple[str, str]], ids: Ids, form: str, ident: str = "a", **more: Any) -> Run:
    """A run of model calls, each with the whole conversation, and of the tools that they called."""
    steps: list[Step] = []
    bodies: dict[str, Body] = {}
    for count, (own, query) in enumerate(calls):
        messages = conversation(calls[:count], ids, form, **more)
        bodies[f"s{len(steps)}"] = Body(
            input={"messages": messages}, output={"tool_calls": [{"id": ids[own], "name": "search"}]}
        )
        steps.append(Step(Operation.CHAT, "model", messages))
        attributes = {"gen_ai.tool.call.id": ids[own], "span": {"call_id": ids[own]}}
        bodies[f"s{len(steps)}"] = Body(input={"q": query}, output=f"found {query}", attributes=attributes)
        steps.append(Step(Operation.EXECUTE_TOOL, "search", query))
    return run_of(steps, ident=ident, bodies=bodies, hashed="hashed" in ident)


CALLS = st.lists(st.sampled_from(["Paris", "London", "KfW 442", "rates"]), min_size=1, max_size=5)
API = st.sampled_from(["openai", "anthropic", "vercel"])


@st.composite
def renamings(draw: st.DrawFn) -> tuple[list[tuple[str, str]], Ids, Ids]:
    """Calls, and what their ids are in A and in B: as often as not some of A's for other calls."""
    calls = [(str(i), query) for i, query in enumerate(draw(CALLS))]
    written = draw(st.sampled_from(FORMS))
    taken = st.lists(
        st.integers(0, 9 if draw(st.booleans()) else 9999), min_size=len(calls), max_size=len(calls), unique=True
    )
    left, right = ([written.format(number) for number in draw(taken)] for _ in range(2))
    return calls, dict(zip(dict(calls), left, strict=True)), dict(zip(dict(calls), right, strict=True))


@given(renamings(), API, st.sampled_from(["", " "]), st.sampled_from(["", " hashed"]))
def test_calls_with_other_ids_only_are_the_same(
    renamed: tuple[list[tuple[str, str]], Ids, Ids], form: str, blank: str, hashed: str
) -> None:
    calls, left, right = renamed
    a, b = recorded(calls, left, form, f"a{hashed}"), recorded(calls, right, form, f"b{hashed}", blank=blank)

    for diff in (compare(a, b), compare(b, a)):
        assert diff.same
        assert set(kinds(diff)) == {"same"}
        assert set(diff.ignored) <= {"ids", "JSON formatting", "input hashes"}
        assert bool(diff.ignored.get("ids")) == (left != right)


@given(renamings(), API, st.data())
def test_an_id_of_another_call_is_a_difference(
    renamed: tuple[list[tuple[str, str]], Ids, Ids], form: str, data: st.DataObject
) -> None:
    calls, left, right = renamed
    a, b = recorded(calls, left, form), recorded(calls, right, form, "b")
    place = data.draw(st.integers(0, len(calls) - 1))
    other = data.draw(st.sampled_from([*(ident for ident in right.values() if ident != right[str(place)]), "other"]))
    wrong = _with_attribute(b, f"s{2 * place + 1}", "gen_ai.tool.call.id", other)

    for diff in (compare(a, wrong), compare(wrong, a)):
        assert not diff.same
        assert diff.first is not None
        row = diff.rows[diff.first.row]
        *_, (comparison, last) = _watched(diff.a, diff.b)
        assert comparison.changes(last.rows[diff.first.row]).changes
        assert row.changes
    assert compare(a, b).same


def _watched(a: Run, b: Run) -> list[tuple[Comparison, Diff]]:
    comparison = Comparison(a, b)
    return [(comparison, diff) for diff in comparison.steps()]


def _with_attribute(run: Run, span: str, name: str, value: Any) -> Run:
    def load(candidate: Any) -> Body:
        body = run.load(candidate)
        return body if candidate.id != span else replace(body, attributes=body.attributes | {name: value})

    return replace(run, load=load)


# ---- one by one


def turn(calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> Body:
    """A model call of which the conversation holds calls (id, query) and results (id, text)."""
    asked = tuple(ToolCall(ident, "search", {"q": query}) for ident, query in calls)
    answered = tuple(Message("tool", (ToolResult(ident, text),)) for ident, text in results)
    return Body(input_messages=(Message("assistant", asked), *answered))


def compared(*bodies: tuple[Body, Body]) -> Diff:
    sides = [{f"s{i}": pair[side] for i, pair in enumerate(bodies)} for side in (0, 1)]
    steps = [Step(Operation.CHAT, "model") for _ in bodies]
    return compare(run_of(steps, bodies=sides[0]), run_of(steps, bodies=sides[1], ident="b"))


ASKED = [("c1", "x"), ("c2", "y")]


def test_results_that_are_attached_to_the_other_call_differ() -> None:
    right = turn([("d1", "x"), ("d2", "y")], [("d1", "X"), ("d2", "Y")])
    swapped = turn([("d1", "x"), ("d2", "y")], [("d2", "X"), ("d1", "Y")])
    original = turn(ASKED, [("c1", "X"), ("c2", "Y")])

    assert compared((original, right)).same
    assert not compared((original, swapped)).same


def test_swapped_results_of_calls_with_equal_ids_differ() -> None:
    original = turn(ASKED, [("c1", "X"), ("c2", "Y")])
    swapped = turn(ASKED, [("c2", "X"), ("c1", "Y")])

    assert not compared((original, swapped)).same
    assert not compared((turn(ASKED, []), turn(ASKED, [])), (turn([], [("c1", "X")]), turn([], [("c2", "X")]))).same


def test_a_single_changed_id_differs() -> None:
    diff = compared((turn([("c1", "x")], [("c1", "X")]), turn([("c9", "x")], [("c1", "X")])))

    assert not diff.same
    assert diff.first is not None
    assert (diff.first.path, diff.first.a, diff.first.b) == ("messages[1].content[0].id", "c1", "c1")


def test_calls_with_continued_id_numbers_are_the_same() -> None:
    original = turn([("c1", "x"), ("c2", "x")], [("c1", "X"), ("c2", "X")])
    later = turn([("c2", "x"), ("c3", "x")], [("c2", "X"), ("c3", "X")])

    assert compared((original, later)).same
    assert compared((later, original)).same


def test_ids_of_calls_are_found_in_texts_and_names() -> None:
    body = Body(input={"tool_calls": [{"id": "call-1", "name": "f"}]}, output="no tool answers call-1 .")
    other = Body(input={"tool_calls": [{"id": "xyz-99", "name": "f"}]}, output="no tool answers xyz-99 .")

    assert compared((body, other)).same
    assert not compared((body, replace(other, output="no tool answers xyz-98 ."))).same


def test_results_that_are_named_after_their_call_are_compared() -> None:
    def body(ident: str, text: str) -> Body:
        return Body(input={"tool_calls": [{"id": ident, "name": "f"}]}, output={ident: {"text": text}})

    assert compared((body("c12", "X"), body("d34", "X"))).same
    diff = compared((body("c12", "X"), body("d34", "Y")))
    assert diff.first is not None
    assert (diff.first.a, diff.first.b) == ("X", "Y")


def test_arguments_of_a_tool_are_no_call_ids() -> None:
    def body(number: str) -> Body:
        call = {"id": "call_1", "function": {"name": "recording", "arguments": json.dumps({"call_id": number})}}
        return Body(output={"tool_calls": [call]})

    diff = compared((body("A17"), body("B22")))

    assert diff.first is not None
    assert diff.first.path == "tool_calls[0].function.arguments.call_id"


@pytest.mark.parametrize(
    "field",
    [
        "tool_call_id", "tool_use_id", "call_id", "toolCallId", "toolUseID", "gen_ai.tool.call.id",
        "parent_tool_use_id", "source_call_id", "tool_call_ids",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id",
        "gen_ai.completion.0.tool_calls.0.id",
    ],
)  # fmt: skip
def test_these_fields_name_calls(field: str) -> None:
    assert names_call(field)


@pytest.mark.parametrize(
    "field", ["id", "run_id", "order_id", "message_id", "tool_id", "response_id", "calls", "recall"]
)
def test_other_fields_name_no_calls(field: str) -> None:
    assert not names_call(field)
