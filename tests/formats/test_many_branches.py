"""Sessions in which somebody goes back thousands of times, or with thousands of sub-agents: read in linear time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracetui.formats import jsonl
from tracetui.formats.base import Format
from tracetui.formats.claude_code import ClaudeCode, parts
from tracetui.formats.pi import Pi
from tracetui.model import Operation, Run, RunRef, RunSummary, Span
from tracetui.sources.base import File
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing, read_run

MANY = 4_000
SECONDS = 20
"""Of the processor, for all that is asked of such a session. Measured: 2, on a very busy machine 8; quadratic it was
20 to 100."""
_USED = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
_PI_USED = {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0}


class Claude:
    """Records of a session of Claude Code, one after the other."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def put(self, kind: str, parent: str | None, message: dict[str, Any], **more: Any) -> str:
        number = len(self.records)
        when = f"2026-01-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
        head = {"type": kind, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s", "timestamp": when}
        self.records.append(head | {"isSidechain": False, "message": message} | more)
        return f"u{number}"

    def ask(self, parent: str | None, said: str, **more: Any) -> str:
        return self.put("user", parent, {"role": "user", "content": said}, **more)

    def answer(self, parent: str, **more: Any) -> str:
        message = {"role": "assistant", "id": f"m{len(self.records)}", "model": "m", "usage": _USED}
        return self.put("assistant", parent, message | {"content": [{"type": "text", "text": "so"}]}, **more)


class PiRecords:
    """Entries of a session of pi."""

    def __init__(self) -> None:
        head = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/p"}
        self.records: list[dict[str, Any]] = [head]

    def put(self, parent: str | None, message: dict[str, Any]) -> str:
        number = len(self.records)
        when = f"2026-01-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
        head = {"type": "message", "id": f"{number:08x}", "parentId": parent, "timestamp": when}
        self.records.append(head | {"message": message})
        return f"{number:08x}"

    def ask(self, parent: str | None, said: str) -> str:
        return self.put(parent, {"role": "user", "content": said})

    def answer(self, parent: str) -> str:
        said = [{"type": "text", "text": "so"}]
        return self.put(
            parent, {"role": "assistant", "content": said, "model": "m", "usage": _PI_USED, "stopReason": "stop"}
        )


def read(shape: Format, path: Path, records: list[dict[str, Any]]) -> tuple[Run, RunSummary]:
    """The run of a session, and what the deep pass says of it, both in time."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    began = time.process_time()
    run = read_run(shape, RunRef(shape.name, str(path)))
    with LocalSource().open(str(path)) as file:
        (summary,) = shape.summarize(file, deep=True)
    assert time.process_time() - began < SECONDS
    assert isinstance(summary, RunSummary)
    assert (summary.spans, summary.steps, summary.usage) == (
        run.summary.spans,
        run.summary.steps,
        run.summary.usage,
    )
    return run, summary


def branches(run: Run) -> Iterator[Span]:
    return (span for span in run.spans if span.name == "abandoned branch")


@pytest.mark.parametrize("shape", [ClaudeCode, Pi])
def test_a_prompt_that_is_taken_back_thousands_of_times(tmp_path: Path, shape: Callable[[], Format]) -> None:
    session = Claude() if shape is ClaudeCode else PiRecords()
    top = session.answer(session.ask(None, "begin"))
    for number in range(MANY):
        session.answer(session.ask(top, f"try {number}"))
    run, summary = read(shape(), tmp_path / "s.jsonl", session.records)
    assert sum(1 for _ in branches(run)) == MANY - 1
    assert summary.steps == 2
    assert summary.usage is not None
    assert summary.usage.output_tokens == 5 * (MANY + 1)


def test_thousands_of_sub_agents_within_a_session_of_claude_code(tmp_path: Path) -> None:
    session = Claude()
    top = session.answer(session.ask(None, "begin"))
    for number in range(MANY):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Task", "input": {"prompt": f"task {number}"}}
        message = {"role": "assistant", "id": f"c{number}", "model": "m", "content": [call]}
        top = session.put("assistant", top, message)
        inner = session.ask(None, f"task {number}", isSidechain=True)
        session.answer(inner, isSidechain=True)
    run, _ = read(ClaudeCode(), tmp_path / "s.jsonl", session.records)
    agents = [span for span in run.spans if span.operation is Operation.INVOKE_AGENT]
    assert [span.parent_id for span in agents] == [f"t{number}" for number in range(MANY)]


def test_a_session_of_pi_that_goes_back_and_forth_all_the_time(tmp_path: Path) -> None:
    session = PiRecords()
    top = first = other = session.answer(session.ask(None, "begin"))
    for number in range(MANY // 2):
        first = session.answer(session.ask(first, f"this {number}"))
    for number in range(MANY // 2):
        other = session.answer(session.ask(other, f"that {number}"))
    for number in range(MANY // 2):
        first = session.answer(session.ask(first, f"this again {number}"))
        other = session.answer(session.ask(other, f"that again {number}"))
    run, summary = read(Pi(), tmp_path / "s.jsonl", session.records)
    assert top != first
    assert [problem.reason for problem in run.problems] == [
        "too many returns to earlier entries: this line's abandoned entries are shown as normal"
    ]
    assert summary.usage is not None
    assert summary.usage.output_tokens == 5 * (1 + 2 * MANY)


def with_files(folder: Path, number: int) -> list[dict[str, Any]]:
    """A session, and files of so many sub-agents beside it; no call refers to every second one."""
    (folder / "s" / "subagents").mkdir(parents=True)
    session = Claude()
    top = session.answer(session.ask(None, "begin"))
    for i in range(number):
        call = {"type": "tool_use", "id": f"t{i}", "name": "Agent", "input": {"prompt": "measure"}}
        message = {"role": "assistant", "id": f"c{i}", "model": "m", "content": [call]}
        top = session.put("assistant", top, message)
        answer = {"type": "tool_result", "tool_use_id": f"t{i}", "content": "done"}
        result = {"toolUseResult": {"agentId": f"a{i}"}} if i % 2 else {}
        top = session.put("user", top, {"role": "user", "content": [answer]}, **result)
        agent = Claude()
        agent.answer(agent.ask(None, f"measure {i}", isSidechain=True, agentId=f"a{i}"), isSidechain=True)
        for record in agent.records:
            record["uuid"] += f"-{i}"
            record["message"] |= {"id": f"a{i}"} if record["type"] == "assistant" else {}
        lines = "".join(json.dumps(record) + "\n" for record in agent.records)
        (folder / "s" / "subagents" / f"agent-a{i}.jsonl").write_text(lines, encoding="utf-8")
    return session.records


def test_thousands_of_files_of_sub_agents(tmp_path: Path) -> None:
    run, summary = read(ClaudeCode(), tmp_path / "s.jsonl", with_files(tmp_path, 2_000))
    agents = [span for span in run.spans if span.operation is Operation.INVOKE_AGENT]
    assert sum(span.parent_id is None for span in agents) == 1_000
    assert summary.usage is not None
    assert summary.usage.output_tokens == 5 * 2_001


def test_files_of_sub_agents_are_not_looked_for_again_while_some_are_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def parts_of(file: File, session: str = "") -> list[parts.Part]:
        part_list = listed(file, session)
        seen.append(len(part_list))
        return part_list

    listed = parts.parts_of
    monkeypatch.setattr(parts, "parts_of", parts_of)
    monkeypatch.setattr(parts, "BUDGET", 0.0)
    monkeypatch.setattr(jsonl, "BUDGET", 0.0)  # one file a call
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in with_files(tmp_path, 40)), encoding="utf-8")
    run = read_run(ClaudeCode(), RunRef("claude-code", str(path)))
    assert sum(span.operation is Operation.CHAT for span in run.spans) == 1 + 40 + 40
    assert seen
    assert len(seen) < 5


def test_files_of_sub_agents_are_read_however_long_it_takes_to_see_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracetui.formats.jsonl.BUDGET", 0.0)
    run, _ = read(ClaudeCode(), tmp_path / "s.jsonl", with_files(tmp_path, 8))
    assert sum(span.operation is Operation.INVOKE_AGENT for span in run.spans) == 8
    assert sum(span.operation is Operation.CHAT for span in run.spans) == 1 + 8 + 8


def test_a_task_that_is_given_twice_is_done_below_the_call_that_gave_it_last(tmp_path: Path) -> None:
    session = Claude()
    top = session.answer(session.ask(None, "begin"))
    for number in range(2):
        call = {"type": "tool_use", "id": f"t{number}", "name": f"Task{number}", "input": {"prompt": "measure"}}
        message = {"role": "assistant", "id": f"c{number}", "model": "m", "content": [call]}
        top = session.put("assistant", top, message)
        if number == 0:
            session.answer(session.ask(None, "measure", isSidechain=True), isSidechain=True)
    path = tmp_path / "s.jsonl"
    run, _ = read(ClaudeCode(), path, session.records)
    growing = Growing(ClaudeCode(), RunRef("claude-code", str(path)))
    whole = path.read_bytes()
    path.write_bytes(b"")
    for line in whole.splitlines(keepends=True):
        with path.open("ab") as stream:
            stream.write(line)
        growing.read()
    assert growing.run().spans == run.spans
    (agent,) = (span for span in run.spans if span.operation is Operation.INVOKE_AGENT)
    assert agent.parent_id == "t1"


def test_only_a_change_of_the_model_tells_the_model_of_a_session_of_pi(tmp_path: Path) -> None:
    session = PiRecords()
    top = session.ask(None, "begin")
    for kind, model in (("label", "a"), ("session_info", "b"), ("model_change", "c")):
        session.records.append({**session.records[-1], "id": kind, "parentId": top, "type": kind, "modelId": model})
    run, summary = read(Pi(), tmp_path / "s.jsonl", session.records)
    assert (summary.model, run.summary.model) == ("c", "c")


# ---- what becomes of the rows of a branch


@pytest.mark.parametrize("shape", [ClaudeCode, Pi])
def test_a_prompt_that_follows_an_abandoned_response_takes_up_its_branch(
    tmp_path: Path, shape: Callable[[], Format]
) -> None:
    session = Claude() if shape is ClaudeCode else PiRecords()
    top = session.answer(session.ask(None, "begin"))
    first = session.answer(session.ask(top, "this"))
    session.answer(session.ask(top, "that"))
    session.answer(session.ask(first, "this again"))
    run, _ = read(shape(), tmp_path / "s.jsonl", session.records)
    assert [(span.preview, span.note) for span in branches(run)] == [
        ("this", "taken up again"),
        ("that", "1 response"),
    ]
    live = [span.preview for span in run.spans if span.parent_id is None and span.operation is Operation.MESSAGE]
    assert live == ["begin", "this", "this again"]
    assert [span.step for span in run.spans if span.is_step] == [1, 2, 3]


@pytest.mark.parametrize("shape", [ClaudeCode, Pi])
def test_a_branch_that_left_an_abandoned_branch_is_below_it(tmp_path: Path, shape: Callable[[], Format]) -> None:
    session = Claude() if shape is ClaudeCode else PiRecords()
    top = session.answer(session.ask(None, "begin"))
    first = session.answer(session.ask(top, "one"))
    session.answer(session.ask(first, "one, then this"))
    session.answer(session.ask(first, "one, then that"))
    session.answer(session.ask(top, "two"))
    run, _ = read(shape(), tmp_path / "s.jsonl", session.records)
    inner, outer = sorted(branches(run), key=lambda span: span.parent_id is None)
    assert (inner.preview, inner.parent_id) == ("one, then this", outer.id)
    assert (outer.preview, outer.note, outer.parent_id) == ("one", "2 responses", None)


def test_an_abandoned_row_keeps_its_other_notes(tmp_path: Path) -> None:
    session = PiRecords()
    top = session.ask(None, "begin")
    session.put(top, {"role": "assistant", "content": [], "model": "m", "stopReason": "aborted"})
    session.ask(top, "again")
    run, _ = read(Pi(), tmp_path / "s.jsonl", session.records)
    assert [span.notes for span in run.spans if span.operation is Operation.CHAT] == [["aborted", "abandoned"]]
