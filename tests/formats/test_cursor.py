"""Transcripts of Cursor: the ends of turns are recorded, results of tools are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracetui.formats.cursor import Cursor, time_in
from tracetui.model import Operation, Run, RunRef, Status, StatusSource
from tracetui.sources.local import LocalFile
from tracetui.testing import read_run

FORMAT = Cursor()
CASE = Path(__file__).parent / "cursor" / "transcripts" / "input" / "home-dev-p" / "agent-transcripts"
PREFIX = "c0000000-0000-4000-8000-00000000000"


def path_of(number: int) -> Path:
    return CASE / f"{PREFIX}{number}" / f"{PREFIX}{number}.jsonl"


CHILD = CASE / f"{PREFIX}4" / "subagents" / f"{PREFIX}5.jsonl"


def read(path: Path) -> Run:
    return read_run(FORMAT, RunRef(FORMAT.name, str(path)))


def score(path: Path) -> int:
    with LocalFile(str(path)) as file:
        return FORMAT.sniff(file)


def test_the_facts_of_the_samples() -> None:
    facts = {1: (5, 4, "ok"), 2: (2, 1, "ok"), 3: (1, 0, "error"), 4: (2, 1, "ok"), 6: (1, 1, "unknown")}
    for number, (replies, calls, status) in facts.items():
        run = read(path_of(number))
        tools = (Operation.EXECUTE_TOOL, Operation.INVOKE_AGENT)
        tool_calls = sum(span.operation in tools for span in run.spans)
        assert (run.summary.steps, tool_calls, run.summary.status.value) == (replies, calls, status), number
        assert run.summary.usage is None


def test_the_outcome_of_a_tool_is_unknown() -> None:
    calls = [span for span in read(path_of(2)).spans if span.operation is Operation.EXECUTE_TOOL]
    assert [(call.status, call.status_source) for call in calls] == [(Status.UNKNOWN, None)]


def test_a_failed_turn_is_the_status_with_its_error() -> None:
    summary = read(path_of(3)).summary
    assert (summary.status, summary.status_source) == (Status.ERROR, StatusSource.EXPLICIT)
    assert summary.first_error is not None
    assert "overloaded" in summary.first_error.message


def test_a_turn_that_goes_on_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(path_of(1).read_text() + json.dumps({"role": "user", "message": {"content": []}}) + "\n")
    assert read(path).summary.status is not Status.OK


def test_a_file_with_nothing_but_an_error_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"type":"turn_ended","status":"error","error":"usage limit"}\n')
    assert score(path) == 100
    assert read(path).summary.status is Status.ERROR


def test_a_sub_agent_has_its_parent() -> None:
    assert read(CHILD).summary.parent == f"{PREFIX}4"
    assert read(path_of(4)).summary.parent is None


@pytest.mark.parametrize(
    "line",
    [
        {"type": "user", "role": "user", "message": {"content": []}},
        {"role": "user", "content": "chat"},
        {"role": "user", "message": {"content": "text"}},
        {"role": "robot", "message": {"content": []}},
    ],
)
def test_messages_of_other_programs_are_not_claimed(tmp_path: Path, line: dict[str, object]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert score(path) == 0


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("Thursday, Sep 10, 2026, 9:00 AM (UTC+2)", 1_789_023_600.0),
        ("Thursday, Sep 10, 2026, 12:30 PM (UTC-3:30)", 1_789_056_000.0),
        ("Thursday, Sep 10, 2026, 12:00 AM (UTC)", 1_788_998_400.0),
        ("Thursday, Sep 99, 2026, 9:00 AM (UTC)", None),
    ],
)
def test_the_time_in_a_prompt(written: str, seconds: float | None) -> None:
    assert time_in(f"<timestamp>{written}</timestamp>\n<user_query>\nx\n</user_query>") == seconds
