"""Keys of steps agree with comparisons of pairs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diff.build import VALUES
from tracetui.diff.noise import Noise
from tracetui.diff.step import InputKeys, header_key
from tracetui.diff.values import INPUT, SHELL, changes_of, encode_without_noise
from tracetui.model import Body, Message, Operation, Span, Text, ToolCall

FIELDS = st.sampled_from(
    ["q", "text", "created_at", "timestamp", "duration_ms", "cwd", "tool_call_id", "index", "usage"]
)
LEAVES = st.sampled_from([
    "a", " a ", "b", "call_1", "call_2", "2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z", "at 2026-01-01T10:00:00Z",
    "at 2026-01-03T10:00:00Z", '{"q": 1}', '{"q":1.0}', 1, 1.0, 2, True, 1_700_000_000, 1_700_000_001, None,
    "0b0e8d3c-7b1c-4c7e-9d57-0a54a5a1f4d1", "1b0e8d3c-7b1c-4c7e-9d57-0a54a5a1f4d2",
])  # fmt: skip
INPUTS = st.dictionaries(FIELDS, LEAVES, max_size=2) | st.fixed_dictionaries({"q": st.lists(LEAVES, max_size=2)})


def differ(a: Any, b: Any, place: int = 0) -> bool:
    return bool(changes_of(a, b, Noise(), side=INPUT, flags=place))


@given(INPUTS, INPUTS)
def test_equal_keys_mean_no_difference(a: Any, b: Any) -> None:
    ids_of_calls = "call_" in str(a)  # a comparison sees which id stands for which, a key does not
    if encode_without_noise(a) == encode_without_noise(b):
        assert not differ(a, b) or ids_of_calls


@pytest.mark.parametrize(
    ("a", "b", "place"),
    [
        ({"q": "a"}, {"q": " a\n"}, 0),
        ({"q": "a", "empty": None}, {"q": "a"}, 0),
        ({"created_at": "2026-01-01T10:00:00Z"}, {"created_at": "2026-02-01T10:00:00Z"}, 0),
        ({"timestamp": 1_700_000_000}, {"timestamp": 1_700_000_009}, 0),
        ({"q": "on 2026-01-01T10:00:00Z"}, {"q": "on 2026-01-02T10:00:00Z"}, 0),
        ({"tool_call_id": "x"}, {"tool_call_id": "y"}, 0),
        ({"q": "call_1"}, {"q": "call_2"}, 0),
        ({"q": '{"n": 1, "m": 2}'}, {"q": '{"m":2.0,"n":1}'}, 0),
        ({"timeout_duration": 3}, {"timeout_duration": 4}, 0),
        ({"command": "ls  -l\n"}, {"command": "ls -l"}, SHELL),
    ],
)
def test_inputs_that_differ_in_noise_have_equal_keys(a: Any, b: Any, place: int) -> None:
    assert not differ(a, b, place)
    assert encode_without_noise(a, place) == encode_without_noise(b, place)


@pytest.mark.parametrize(
    ("a", "b", "place"),
    [
        ({"q": "a"}, {"q": "b"}, 0),
        ({"q": 1}, {"q": True}, 0),
        ({"q": 1}, {"q": "1"}, 0),
        ({"date": "2024-05-20"}, {"date": "2024-05-21"}, 0),
        ({"q": "2026-01-01T10:00:00Z"}, {"q": "2026-01-02T10:00:00Z"}, 0),
        ({"q": [1, 2]}, {"q": [2, 1]}, 0),
        ({"command": "cat <<E\n a\nE"}, {"command": "cat <<E\n  a\nE"}, SHELL),
        ({"command": "echo 'a  b'"}, {"command": "echo 'a b'"}, SHELL),
        ({"id": "0b0e8d3c-7b1c-4c7e-9d57-0a54a5a1f4d1"}, {"id": "1b0e8d3c-7b1c-4c7e-9d57-0a54a5a1f4d2"}, 0),
    ],
)
def test_inputs_that_differ_have_different_keys(a: Any, b: Any, place: int) -> None:
    assert differ(a, b, place)
    assert encode_without_noise(a, place) != encode_without_noise(b, place)


@given(VALUES, VALUES)
def test_keys_of_plain_values_differ_exactly_if_the_values_do(a: Any, b: Any) -> None:
    assert (encode_without_noise({"x": a}) != encode_without_noise({"x": b})) == differ({"x": a}, {"x": b})


def test_the_working_directory_is_noise() -> None:
    keys = {encode_without_noise({"path": f"{folder}/a.py"}, folder=folder) for folder in ("/work/one", "/work/two")}
    assert len(keys) == 1


def input_key(span: Span, body: Body) -> bytes:
    return InputKeys().of(span, lambda _: body)


def test_keys_by_operation() -> None:
    tool = Span("1", "search", Operation.EXECUTE_TOOL)
    node, route = Span("2", "plan", Operation.NODE), Span("3", "plan", Operation.ROUTE)
    chat, other = Span("4", "gpt-a", Operation.CHAT), Span("5", "gpt-b", Operation.CHAT)
    assert header_key(chat) == header_key(other)
    assert header_key(node) == header_key(route)
    assert header_key(tool) != header_key(node)
    assert input_key(node, Body(input={"q": 1})) == input_key(node, Body(input={"q": 2}))
    assert input_key(tool, Body(input={"q": 1}, output=1)) == input_key(tool, Body(input={"q": 1}, output=2))
    bodies = [
        Body(output_messages=(Message("assistant", (Text(text), ToolCall("1", "x"))),)) for text in ("a", "a ", "b")
    ]
    assert [input_key(chat, body) == input_key(other, bodies[0]) for body in bodies] == [True, True, False]
    asked = [Body(input_messages=(Message("user", (Text(text),)),)) for text in ("a", "b")]
    assert input_key(tool, asked[0]) != input_key(tool, asked[1])


def test_inputs_of_any_depth_and_text_have_keys() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    tool, other = Span("1", "search", Operation.EXECUTE_TOOL), Span("2", "search", Operation.EXECUTE_TOOL)
    body = Body(input=deep)

    def load(_: Span) -> Body:
        return body

    keys = InputKeys()
    assert keys.of(tool, load) == keys.of(tool, load)
    assert keys.of(tool, load) != keys.of(other, load)
    assert input_key(tool, Body(input="\ud800")) == input_key(tool, Body(input="\ud800"))
    assert input_key(tool, Body(input={"n": 10**40})) != input_key(tool, Body(input={"n": 10**41}))
