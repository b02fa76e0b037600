"""Gemini CLI and Qwen Code: messages written again, replaced and taken back, tokens, how calls ended, real files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.shared import needs_shared, sample
from tracetui.formats.gemini import Gemini
from tracetui.formats.gemini.qwen import Qwen
from tracetui.live.scan import scan
from tracetui.model import Operation, Run, RunRef, Span, Status, StatusSource
from tracetui.sources.local import LocalSource
from tracetui.testing import read_run

HERE = Path(__file__).parent
GEMINI, QWEN = Gemini(), Qwen()
SESSION, SUB = sorted((HERE / "gemini" / "session").rglob("*.jsonl"), key=lambda path: "session-" not in path.name)
CHANGES = HERE / "gemini" / "changes" / "input" / "changes.jsonl"
(DOCUMENT,) = (HERE / "gemini" / "document" / "input").rglob("*.json")
(QWEN_SESSION,) = (HERE / "qwen" / "session").rglob("*.jsonl")
(BRANCHES,) = (HERE / "qwen" / "branches").rglob("*.jsonl")
HEAD = {"sessionId": "s", "projectHash": "p", "startTime": "2026-03-14T08:00:00Z"}


def read(path: Path, fmt: Gemini | Qwen = GEMINI) -> Run:
    return read_run(fmt, RunRef(fmt.name, str(path)))


def span(run: Run, name: str) -> Span:
    return next(span for span in run.spans if name in (span.id, span.name))


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, lines: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def last_versions(path: Path) -> dict[str, Any]:
    """The responses of a log by id, as the last line of each has them."""
    return {record["id"]: record for record in records(path) if record.get("type") == "gemini"}


def counts(messages: Iterable[Any]) -> tuple[int, int, int]:
    """Input, output with thoughts, and cached input of messages."""
    tokens = [message["tokens"] for message in messages]
    given = sum(count["input"] + count["tool"] for count in tokens)
    return given, sum(count["output"] + count["thoughts"] for count in tokens), sum(count["cached"] for count in tokens)


def test_a_message_that_is_written_again_counts_once() -> None:
    run, last = read(SESSION), last_versions(SESSION)
    usage = run.summary.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == counts(last.values())
    assert usage.total_tokens == sum(message["tokens"]["total"] for message in last.values())
    assert [span.id for span in run.spans if span.operation is Operation.CHAT] == list(last)
    calls = sum(len(message.get("toolCalls", ())) for message in last.values())
    assert (run.summary.steps, run.summary.tool_calls) == (len(last), calls)


def test_a_command_that_succeeded_failed_by_its_exit_code() -> None:
    run = read(SESSION)
    failed, edit, agent = span(run, "count_1"), span(run, "edit_0"), span(run, "help_0")
    assert (failed.status_word, failed.status, failed.status_source) == ("success", Status.ERROR, StatusSource.EXIT)
    assert failed.error is not None
    assert failed.error.type == "exit 1"
    assert (edit.status, edit.status_source) == (Status.ERROR, StatusSource.EXPLICIT)
    assert agent.error is not None
    assert (agent.error.type, agent.note) == ("MAX_TURNS", "sub-agent")
    assert span(run, "count_0").status is Status.OK


def test_exit_code_lines_of_other_tools_are_text(tmp_path: Path) -> None:
    result = [{"functionResponse": {"response": {"output": "Exit Code: 3"}}}]
    call = {"id": "r", "name": "read_file", "args": {}, "result": result, "status": "success"}
    lines = [HEAD, {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}]
    assert span(read(write(tmp_path / "a.jsonl", lines)), "r").status is Status.OK


def test_a_sub_agent_names_its_session() -> None:
    runs = {run.id: run for file in scan(LocalSource(), [str(SESSION.parents[3])], deep=True) for run in file.runs}
    main, sub = records(SESSION)[0]["sessionId"], records(SUB)[0]["sessionId"]
    assert runs.keys() == {main, sub}
    assert (runs[main].name, runs[main].prompt) == ("orchard", "How many pears are there?")
    assert (runs[sub].parent, runs[sub].prompt) == (main, "Taste one pear")


def test_rewound_messages_are_below_their_branch() -> None:
    run = read(CHANGES)
    branches = [span for span in run.spans if span.name == "abandoned branch"]
    gone = {span.id: span for span in run.spans if span.parent_id == branches[0].id}
    assert list(gone) == ["u2", "g2"]
    assert all(span.note == "abandoned" and not span.is_step for span in gone.values())
    assert run.summary.usage is not None
    assert run.summary.usage.total_tokens == sum(
        message["tokens"]["total"] for message in last_versions(CHANGES).values() if "tokens" in message
    )


def test_a_list_of_messages_keeps_what_is_known_and_adds_the_rest(tmp_path: Path) -> None:
    tokens = {"input": 5, "output": 2, "cached": 0, "thoughts": 1, "tool": 0, "total": 8}
    first = {"id": "g", "type": "gemini", "content": "one", "tokens": tokens}
    record = {"id": "x", "type": "user", "content": "left out"}
    copy = {"id": "g", "type": "gemini", "content": [{"text": "one, copied"}]}
    new = {"id": "n", "type": "user", "content": "new"}
    lines = [
        HEAD,
        record,
        first,
        {"$set": {"messages": [new]}},
        {"$set": {"messages": [copy, new]}},
        {"$rewindTo": "g"},
    ]
    path = write(tmp_path / "a.jsonl", lines[:-1])
    run = read(path)
    assert [span.id for span in run.spans if span.operation is not Operation.META] == ["x", "g", "n"]
    assert span(run, "g").preview == "one"
    assert run.summary.usage is not None
    assert run.summary.usage.all_tokens == 8
    gone = [span.id for span in read(write(path, lines)).spans if span.note == "abandoned"]
    assert gone == ["g", "n"]


def test_an_error_ends_a_run_until_it_goes_on(tmp_path: Path) -> None:
    lines = [HEAD, {"id": "u", "type": "user", "content": "go"}, {"id": "e", "type": "error", "content": "away"}]
    failed = read(write(tmp_path / "a.jsonl", lines)).summary
    assert failed.first_error is not None
    assert (failed.status, failed.first_error.message) == (Status.ERROR, "away")
    lines.append({"id": "g", "type": "gemini", "content": "here"})
    assert read(write(tmp_path / "b.jsonl", lines)).summary.status is Status.UNKNOWN


def test_a_document_has_the_same_messages() -> None:
    run, document = read(DOCUMENT), json.loads(DOCUMENT.read_text(encoding="utf-8"))
    assert run.summary.id == document["sessionId"]
    assert run.summary.usage is not None
    said = [message for message in document["messages"] if message["type"] == "gemini"]
    assert (run.summary.usage.input_tokens, run.summary.usage.output_tokens) == counts(said)[:2]
    assert span(run, "glance").status is Status.CANCELLED


def test_unknown_kinds_and_fields_are_counted(tmp_path: Path) -> None:
    run = read(CHANGES)
    assert run.summary.unread is not None
    assert dict(run.summary.unread.kinds) == {"drone": 1}
    assert span(run, "drone").operation is Operation.UNKNOWN
    lines = [HEAD, {"id": "u", "type": "user", "content": "go", "wings": 2}]
    unread = read(write(tmp_path / "a.jsonl", lines)).summary.unread
    assert unread is not None
    assert dict(unread.fields) == {"record.wings": 1}


def test_a_message_that_is_written_very_often_is_bounded(tmp_path: Path) -> None:
    line = {"id": "g", "type": "gemini", "content": "again"}
    run = read(write(tmp_path / "a.jsonl", [HEAD, *[line | {"content": f"{n}"} for n in range(300)]]))
    assert span(run, "g").preview == "299"
    assert len(run.problems) == 300 - 256


def test_thoughts_within_the_total_of_qwen_are_output_already() -> None:
    run = read(QWEN_SESSION, QWEN)
    inside, outside = [span.usage for span in run.spans if span.operation is Operation.CHAT][:2]
    assert inside is not None
    assert outside is not None
    assert (inside.output_tokens, inside.reasoning_tokens, inside.all_tokens) == (30, 12, 530)
    assert (outside.output_tokens, outside.reasoning_tokens, outside.all_tokens) == (25, 5, 625)


def test_pieces_of_one_qwen_message_are_one_response() -> None:
    run = read(QWEN_SESSION, QWEN)
    ids = {record["uuid"] for record in records(QWEN_SESSION) if record["type"] == "assistant"}
    chats = [span for span in run.spans if span.operation is Operation.CHAT]
    assert {chat.id for chat in chats} == ids
    assert chats[-1].preview == "There is no list,\nso there are no plums."
    assert [span(run, number).status for number in ("q1", "q2", "q3")] == [Status.ERROR, Status.ERROR, Status.CANCELLED]
    assert (run.summary.status, run.summary.tags, run.summary.writer) == (Status.ERROR, ("harvest",), "0.21.13")


def test_a_qwen_rewind_abandons_what_came_after() -> None:
    run = read(BRANCHES, QWEN)
    gone = [span.preview for span in run.spans if span.note == "abandoned"]
    assert gone == ["Only the red ones", "Done.", "Picked."]
    assert run.summary.steps == 1


@needs_shared
@pytest.mark.parametrize("folder", ["gemini-cli", "qwen-code"])
def test_real_files_have_no_problems(folder: str) -> None:
    fmt = GEMINI if folder == "gemini-cli" else QWEN
    seen = 0
    for file in scan(LocalSource(), [str(sample(folder))], deep=True):
        for summary in file.runs:
            assert summary.ref.format == fmt.name
            assert not read_run(fmt, summary.ref).problems
            seen += 1
    assert seen == (6 if folder == "gemini-cli" else 5)


@needs_shared
def test_the_tokens_of_real_files_are_those_of_their_responses() -> None:
    for path in sample("gemini-cli", "generated-0.61.0").rglob("*.jsonl"):
        usage = read(path).summary.usage
        assert usage is not None
        last = [message for message in last_versions(path).values() if "tokens" in message]
        assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == counts(last)
