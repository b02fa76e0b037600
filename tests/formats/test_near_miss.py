"""What looks like a trace although no format claims it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from tracetui.formats.registry import shape_of, shape_of_tables
from tracetui.formats.stores import Store, companion_of, store_of, store_of_tables


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


@pytest.mark.parametrize(
    ("path", "store"),
    [
        ("/p/.langgraph_api/.langgraph_checkpoint.1.pckl", Store("LangGraph server state", "/p/.langgraph_api")),
        ("/w/conv/ab12/events/event-00000-1f.json", Store("OpenHands conversations", "/w/conv")),
        ("/w/conv/ab12/base_state.json", Store("OpenHands conversations", "/w/conv")),
        ("/h/tasks/17/ui_messages.json", Store("Cline tasks", "/h/tasks")),
        ("/h/events/event.json", None),
    ],
)  # fmt: skip
def test_the_store_of_a_path(path: str, store: Store | None) -> None:
    assert store_of(path) == store


@pytest.mark.parametrize(
    ("columns", "holds"),
    [
        ({"sessions": ["id"], "messages": ["id", "content_json"]}, "Goose sessions"),
        ({"sessions": ["id"], "messages": ["id", "session_id", "parts"]}, "Crush sessions"),
        ({"sessions": ["app_name", "id"], "events": ["id", "event_data"]}, "Google ADK sessions"),
        ({"sessions": ["id"], "messages": ["id"]}, None),
        ({"checkpoints": ["id"], "writes": []}, None),
    ],
)
def test_programs_with_the_same_tables_are_distinguished_by_columns(
    columns: dict[str, Collection[str]], holds: str | None
) -> None:
    store = store_of_tables(columns)
    assert (store and store.holds) == holds


def test_companions_of_sessions_are_no_traces() -> None:
    assert companion_of("/p/s1/subagents/agent-7.meta.json") == "describes a sub-agent of Claude Code"
    assert companion_of("/p/s1/subagents/workflows/wf_1/journal.jsonl") == "journal of a workflow of Claude Code"
    assert companion_of("/p/journal.jsonl") is None
