"""Who said what in Claude Code sessions: labels, two processes in one file, streams and their sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_claude_code import FORMAT, listed, read, write
from tracetui.model import Operation, RunRef, Span
from tracetui.testing.reading import Follower

SESSION = "5f0c1a2b-0000-4000-8000-000000000001"
USAGE = {"input_tokens": 10, "output_tokens": 2}


def record(kind: str, uuid: str, parent: str | None, second: int, message: dict[str, Any]) -> dict[str, Any]:
    shared = {"sessionId": SESSION, "version": "2.1.300", "cwd": "/home/ada/yew", "isSidechain": False}
    own = {"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": f"2026-01-01T00:00:{second:02}.000Z"}
    return own | shared | {"message": message}


def prompt(uuid: str, parent: str | None, second: int, text: str) -> dict[str, Any]:
    return record("user", uuid, parent, second, {"role": "user", "content": text})


def answer(uuid: str, parent: str, second: int, *content: dict[str, Any]) -> dict[str, Any]:
    message = {"id": f"m-{uuid}", "role": "assistant", "model": "m", "content": list(content), "usage": USAGE}
    return record("assistant", uuid, parent, second, message | {"stop_reason": "end_turn"})


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def command(name: str, arguments: str = "") -> str:
    return f"<command-name>{name}</command-name><command-args>{arguments}</command-args>"


# ---- labels


@pytest.mark.parametrize(
    ("texts", "label"),
    [
        (["Prune it", command("/review", "12")], "Prune it"),
        ([command("/review", "12"), "Now the other one"], "/review 12"),
        ([command("/clear"), "Prune it"], "Prune it"),
        ([command("/model", "opus"), command("/init"), "Prune it"], "/init"),
        ([command("/clear")], "/clear"),
    ],
)
def test_the_first_prompt_or_command_is_the_label_of_a_session(texts: list[str], label: str, tmp_path: Path) -> None:
    """Commands that set up the program say nothing about the session."""
    path = tmp_path / f"{SESSION}.jsonl"
    write(path, [prompt(f"u{n}", f"u{n - 1}" if n else None, n, text) for n, text in enumerate(texts)])
    assert [run.prompt for run in listed(tmp_path)] == [label]
    assert [run.prompt for run in listed(tmp_path, deep=False)] == [label]


# ---- two processes


def two_writers() -> list[dict[str, Any]]:
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": "a"}]}
    return [
        prompt("u1", None, 1, "Begin"),
        answer("a1", "u1", 2, said("Begun.")),
        prompt("u2", "a1", 3, "Ask A"),
        prompt("u3", "a1", 4, "Ask B"),
        answer("a2", "u2", 5, {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}}),
        answer("a3", "u3", 6, said("Told B.")),
        record("user", "r2", "a2", 7, result),
        answer("b2", "r2", 8, said("Told A.")),
    ]


def previews_below(spans: list[Span], text: str) -> list[str]:
    """Previews of the rows that share the parent of the prompt `words`, from that on."""
    at = next(n for n, span in enumerate(spans) if span.preview == text and span.name == "user")
    parent = spans[at].parent_id
    return [span.preview for span in spans[at:] if span.parent_id == parent and span.operation is Operation.CHAT]


def test_a_response_is_with_the_prompt_that_it_answers_where_two_processes_wrote(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    write(path, two_writers())
    run = read(path)
    spans = list(run.spans)
    assert previews_below(spans, "Ask B") == ["Told B."]
    assert "Told A." in previews_below(spans, "Ask A")
    assert "Told B." not in previews_below(spans, "Ask A")
    usage = run.summary.usage
    assert usage is not None
    assert usage.input_tokens == 40


def test_two_processes_are_followed_as_they_write(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.touch()
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(path)))
    for line in two_writers():
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        follower.read()
        follower.check(line["uuid"])


# ---- streams


def stream() -> list[dict[str, Any]]:
    """A stream whose sub-agent starts one of its own."""
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "uuid": "i1", "cwd": "/home/ada/yew", "model": "m", "tools": []}
    ]
    for ident, caller, call in (("m1", None, "t1"), ("m2", "t1", "t2"), ("m3", "t2", None)):
        content = [{"type": "tool_use", "id": call, "name": "Agent", "input": {}}] if call else [said("Seven.")]
        message = {"id": ident, "role": "assistant", "model": "m", "content": content, "usage": USAGE}
        kind = {"subagent_type": "digger", "agent_id": f"agent-{caller}"} if caller else {}
        lines.append({"type": "assistant", "uuid": ident, "parent_tool_use_id": caller, "message": message} | kind)
    lines.append({"type": "result", "uuid": "z", "subtype": "success", "is_error": False, "total_cost_usd": 0.25})
    return [line | {"session_id": SESSION} for line in lines]


def test_the_lines_of_a_sub_agent_are_below_the_call_that_started_it(tmp_path: Path) -> None:
    write(tmp_path / "run.jsonl", stream())
    run = read(tmp_path / "run.jsonl")
    parents = {span.id: span.parent_id or "" for span in run.spans}
    agents = [span for span in run.spans if span.operation is Operation.INVOKE_AGENT]
    assert [(agent.name, parents[agent.id].rpartition("/")[2]) for agent in agents] == [
        ("digger", "t1"),
        ("digger", "t2"),
    ]
    assert (run.summary.steps, run.summary.llm_calls) == (1, 3)


def test_a_stream_beside_the_file_of_its_session_is_no_run_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "run.jsonl", stream())
    assert [run.ref.path for run in listed(tmp_path)] == [str(tmp_path / "run.jsonl")]
    write(tmp_path / f"{SESSION}.jsonl", [prompt("u1", None, 1, "Dig"), answer("a1", "u1", 2, said("Seven."))])
    assert [run.ref.path for run in listed(tmp_path)] == [str(tmp_path / f"{SESSION}.jsonl")]


def test_two_streams_of_one_session_are_two_runs(tmp_path: Path) -> None:
    write(tmp_path / f"{SESSION}.jsonl", stream())
    write(tmp_path / "again.jsonl", stream())
    assert len(listed(tmp_path)) == 2
