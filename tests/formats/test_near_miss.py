"""What looks like a trace although no format claims it."""

from __future__ import annotations

from typing import Any

import pytest

from tracetui.formats.registry import shape_of, shape_of_tables


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"messages": [{"role": "user", "content": "hi"}]}, "chat messages"),
        ([{"task_id": 1, "traj": [{"role": "assistant", "tool_calls": []}]}], "chat messages"),
        ({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "chat messages"),
        ({"spans": [{"trace_id": "a", "span_id": "b", "name": "x"}]}, "spans"),
        ({"data": {"resourceSpans": []}}, "OpenTelemetry spans"),
        ({"trajectory": [{"action": "ls", "observation": "a"}]}, "agent steps"),
        ({"type": "thread.started", "thread_id": "x"}, "agent events"),
        ({"type": "tool_use", "name": "Bash"}, "agent events"),
        ({"type": "module", "name": "left-pad"}, ""),
        ({"name": "x", "role": "admin"}, ""),
        ({"content": "x", "title": "y"}, ""),
        ({"type": 5}, ""),
        ([1, "x", None, [[[[[{"role": 1, "content": 2}]]]]]], ""),
        ("chat", ""),
        (None, ""),
    ],
)
def test_the_shape_of_a_value(value: Any, shape: str) -> None:
    assert shape_of([value]) == shape


def test_the_first_value_with_a_shape_counts() -> None:
    assert shape_of([]) == ""
    assert shape_of([{"a": 1}, {"traceId": 1, "spanId": 2}, {"role": 1, "content": 2}]) == "spans"


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        (["messages", "sessions", "settings"], "tables messages, sessions"),
        (["agent_runs", "LLM_Spans"], "tables LLM_Spans, agent_runs"),
        (["messages", "users"], ""),
        ([], ""),
    ],
)
def test_the_shape_of_a_database(names: list[str], shape: str) -> None:
    assert shape_of_tables(names) == shape
