"""Streams of ``codex exec --json``: turns, versions of items, the usage of a thread, outcomes, growth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.shared import needs_shared, sample
from tracetui.formats.codex.stream import CodexExec, thread_key
from tracetui.live.scan import scan
from tracetui.model import Operation, Run, RunRef, Span, Status, StatusSource, Usage
from tracetui.sources.local import LocalFile, LocalSource
from tracetui.store.relations import Relations
from tracetui.testing import read_run

FORMAT = CodexExec()
CASES = Path(__file__).parent / "codex_exec"
FIRST = CASES / "turns" / "input" / "first.jsonl"
RESUMED = CASES / "turns" / "input" / "resumed.jsonl"


def read(path: Path) -> Run:
    return read_run(FORMAT, RunRef(FORMAT.name, str(path)))


def named(run: Run, name: str, number: int = 0) -> Span:
    return [span for span in run.spans if span.name == name][number]


def test_the_last_version_of_an_item_counts() -> None:
    run = read(FIRST)
    calls = [(span.name, span.status, span.status_source) for span in run.spans
             if span.operation is Operation.EXECUTE_TOOL]  # fmt: skip
    assert calls == [
        ("command_execution", Status.OK, StatusSource.EXPLICIT),
        ("command_execution", Status.ERROR, StatusSource.EXIT),
        ("maps.find", Status.ERROR, StatusSource.EXPLICIT),
        ("file_change", Status.OK, StatusSource.EXPLICIT),
        ("web_search", Status.UNKNOWN, None),
    ]
    body = run.load(named(run, "command_execution"))
    assert (body.input, body.output) == ("/bin/sh -c 'wc -l trees.md'", "12 trees.md\n")
    assert body.attributes["events"] == ["item.started", "item.completed"]


def test_an_error_item_is_a_notice_and_no_failure() -> None:
    run = read(FIRST)
    assert (named(run, "notice").operation, named(run, "notice").status) == (Operation.META, Status.UNKNOWN)
    assert run.summary.status is Status.OK


def test_the_usage_is_that_of_the_thread_and_of_no_turn() -> None:
    run = read(RESUMED)
    assert run.summary.usage == Usage(3300, 60, None, 1900, 0, 10)
    assert all(span.usage is None for span in run.spans)


def test_streams_of_one_thread_count_once() -> None:
    runs = [run for file in scan(LocalSource(), [str(FIRST.parent)], deep=True) for run in file.runs]
    assert len(runs) == 2
    assert {run.identity for run in runs} == {thread_key(runs[0].id)}
    relations = Relations(runs)
    assert [relations.relation(run.ref) for run in runs].count("copy") == 1


def test_a_failed_turn_has_the_error_once() -> None:
    run = read(CASES / "failed" / "input" / "failed.jsonl")
    assert (run.summary.status, run.summary.status_word, run.summary.errors) == (Status.ERROR, "failed", 1)
    assert run.summary.first_error is not None
    assert run.summary.first_error.text == "the model refused"


def test_turns_that_were_appended_have_items_of_their_own() -> None:
    run = read(CASES / "failed" / "input" / "appended.jsonl")
    assert [span.preview for span in run.spans if span.name == "assistant"] == ["One.", "Two."]
    assert run.summary.steps == 2
    assert run.summary.usage == Usage(250, 11, None, 90, 0, 0)


def test_an_error_without_an_end_of_the_turn_is_no_end(tmp_path: Path) -> None:
    path = tmp_path / "retry.jsonl"
    lines = (CASES / "failed" / "input" / "failed.jsonl").read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]))
    summary = read(path).summary
    assert (summary.status, summary.errors) == (Status.UNKNOWN, 0)


def test_a_turn_that_never_ended_leaves_its_call_unknown() -> None:
    run = read(CASES / "live" / "input" / "live.jsonl")
    assert {run.summary.status, named(run, "turn").status, run.spans[-1].status} == {Status.UNKNOWN}


def test_unrecorded_facts_of_a_stream_are_unknown() -> None:
    summary = read(FIRST).summary
    assert (summary.started_at, summary.duration_ms, summary.model, summary.prompt) == (None, None, None, "")


@needs_shared
@pytest.mark.shared
def test_the_samples_have_the_counted_values() -> None:
    folder = sample("codex-exec-json")
    for name, facts in json.loads((folder / "facts.json").read_text()).items():
        run = read(folder / name)
        calls = [span for span in run.spans if span.operation is Operation.EXECUTE_TOOL]
        assert len(calls) == facts["tool_calls"], name
        if name == "live.jsonl":
            assert run.summary.status is Status.UNKNOWN
            continue
        assert run.summary.id == facts["thread_id"]
        assert run.summary.status.value == facts["status"], name
        assert run.summary.steps == facts["turns"], name
        assert sum(span.status is Status.ERROR for span in calls) == len(facts["failed_tools"]), name
        assert [span.preview for span in run.spans if span.name == "notice"] == [
            notice[:120] for notice in facts["notices"]
        ]
        reported, usage = facts["usage_as_reported"], run.summary.usage
        if reported is None:
            assert usage is None
            continue
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens) == (reported["input_tokens"], reported["output_tokens"]), name
        assert usage.cache_read_tokens == reported["cached_input_tokens"], name


def test_a_chat_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"type": "item.completed", "item": 3}\n{"note": "thread.started"}\n')
    with LocalFile(str(path)) as file:
        assert FORMAT.sniff(file) == 0
