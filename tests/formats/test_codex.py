"""Codex rollouts: records of the same thing are one span; turns, calls, their outcomes, tokens, damage and drift."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.codex_build import (
    FIRST,
    NAMES,
    Record,
    call,
    counts,
    done,
    encoded,
    event,
    item,
    message,
    meta,
    output,
    record,
    token_count,
    used,
)
from tests.shared import SHARED, needs_shared, sample
from tracetui.errors import FormatError
from tracetui.formats.codex import Codex
from tracetui.model import (
    Blob,
    Error,
    Message,
    Operation,
    Reasoning,
    Run,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    Usage,
)
from tracetui.sources.base import HEAD_SIZE
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing
from tracetui.testing import read_run as run_of
from tracetui.testing.reading import MTIME

CASES = Path(__file__).parent / "codex"
FORMAT = Codex()


def read(path: Path) -> Run:
    return run_of(FORMAT, RunRef("codex", str(path)))


def case(name: str, number: int = 0) -> Run:
    return read(sorted((CASES / name / "input").rglob("*.jsonl"))[number])


def summary(path: Path, *, deep: bool) -> RunSummary:
    with LocalSource().open(str(path)) as file:
        (summary,) = FORMAT.summarize(file, deep=deep)
    assert isinstance(summary, RunSummary)
    return summary


def read_records(tmp_path: Path, *records: Record) -> Run:
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(encoded(records))
    return read(path)


def spans_of(run: Run, operation: Operation) -> list[Span]:
    return [span for span in run.spans if span.operation is operation]


def only(run: Run, operation: Operation) -> Span:
    (span,) = spans_of(run, operation)
    return span


def parent(run: Run, span: Span) -> str:
    parent_index = run.parent(run.index[span.id])
    return "" if parent_index is None else run.spans[parent_index].id


# ------------------------------------------------------------------------------------------ recorded twice, shown once


def test_each_model_call_is_there_once_with_what_it_thought_said_and_asked_for() -> None:
    run = case("turns")
    responses = spans_of(run, Operation.CHAT)
    assert [(span.preview, span.usage and span.usage.input_tokens) for span in responses] == [
        ("I look at the file and run the test.", 2100),
        ("", 2600),
        ("(only its tokens were recorded)", 900),
        ("Seven are ripe, and the test passes.", 3000),
        ("Pears.", 3100),
    ]
    body = run.load(responses[0])
    assert body.output_messages == (
        Message(
            "assistant",
            (
                Reasoning("**Looking**\n\nFirst the file, then the test."),
                Text("I look at the file and run the test."),
                ToolCall("call_a", "exec_command", {"cmd": "wc -l trees.csv"}),
                ToolCall("call_b", "exec_command", {"cmd": "pytest -q"}),
            ),
            finish_reason="completed",
        ),
    )
    assert body.attributes["reasoning"]["encrypted_content"] == "encrypted, 25 characters"
    assert b"gAAAAABsealed" in body.raw


def test_each_tool_call_is_there_once_below_the_response_that_asked_for_it() -> None:
    run = case("turns")
    calls = spans_of(run, Operation.EXECUTE_TOOL)
    assert [(span.name, span.preview, span.status, span.status_source, span.status_word) for span in calls] == [
        ("exec_command", "wc -l trees.csv", Status.OK, StatusSource.EXPLICIT, "completed"),
        ("exec_command", "pytest -q", Status.ERROR, StatusSource.EXPLICIT, "failed"),
        ("apply_patch", "ripe.py", Status.OK, StatusSource.EXPLICIT, "completed"),
        ("docs__lookup", '{"topic":"pruning"}', Status.ERROR, StatusSource.EXPLICIT, "failed"),
        ("web_search", "when are apples ripe", Status.OK, StatusSource.DERIVED, "completed"),
        ("exec_command", "sleep 600", Status.CANCELLED, StatusSource.EXPLICIT, None),
    ]
    responses = [span.id for span in spans_of(run, Operation.CHAT)]
    assert [responses.index(parent(run, span)) for span in calls] == [0, 0, 1, 1, 1, 4]
    assert calls[1].error == Error("FAILED test_ripe: expected 7", "exit 1")
    assert calls[3].error == Error("no such topic: pruning")
    body = run.load(calls[1])
    assert body.input == {"cmd": "pytest -q"}
    assert isinstance(body.output, str)
    assert body.output.endswith("Output:\nFAILED test_ripe: expected 7\n")
    assert body.attributes["CommandExecution"]["item"]["exit_code"] == 1


def test_turns_are_the_steps_and_end_as_they_say() -> None:
    run = case("turns")
    turns = spans_of(run, Operation.TURN)
    assert [step.number for step in run.steps] == [1, 2, 3]
    assert [(span.status, span.status_word, span.duration_ms) for span in turns] == [
        (Status.OK, "task_complete", 900),
        (Status.CANCELLED, "interrupted", 2500),
        (Status.ERROR, "error", 900),
    ]
    assert turns[2].error is not None
    assert turns[2].error.type == "usage_limit_exceeded"
    assert (run.summary.status, run.summary.status_word) == (Status.ERROR, "error")


def test_the_run_is_called_by_its_prompt_folder_branch_and_model() -> None:
    summary = case("turns").summary
    assert (summary.name, summary.agent, summary.tags, summary.model) == (
        "orchard",
        "codex",
        ("prune-apples",),
        "gpt-5.1-codex",
    )
    assert summary.prompt == "Count the ripe apples in trees.csv and fix the failing test"
    assert summary.source == "/home/ada/projects/orchard"
    assert case("turns").body.system_prompt == "You are a careful gardener of code."


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", "environment_context"),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>", "AGENTS.md"),
        ("<turn_aborted>\nstop\n</turn_aborted>", "turn_aborted"),
        ("<b>fat</b> and more", "user"),
        ("prune", "user"),
    ],
)
def test_generated_messages_are_no_prompt(tmp_path: Path, text: str, name: str) -> None:
    run = read_records(tmp_path, meta(), message("user", text), message("user", "the prompt"))
    assert [span.name for span in spans_of(run, Operation.MESSAGE)] == [name, "user"]
    assert run.summary.prompt == (text if name == "user" else "the prompt")


def test_an_event_that_says_a_user_wrote_it_is_believed(tmp_path: Path) -> None:
    text = "<p>all of it marked up</p>"
    run = read_records(
        tmp_path, meta(), message("user", text), done("UserMessage", content=[{"type": "text", "text": text}])
    )
    assert [(span.name, span.preview) for span in spans_of(run, Operation.MESSAGE)] == [("user", text)]
    assert run.summary.prompt == text


@pytest.mark.parametrize("event_first", [True, False])
def test_old_events_repeat_too(tmp_path: Path, event_first: bool) -> None:
    prompt = [message("user", "Hi"), event("user_message", message="Hi", kind="plain")]
    thought = [
        item("reasoning", summary=[{"type": "summary_text", "text": "Greet."}]),
        event("agent_reasoning", text="Greet."),
    ]
    said = [message("assistant", "Hello"), event("agent_message", message="Hello")]
    pairs = [pair[::-1] if event_first else pair for pair in (prompt, thought, said)]
    run = read_records(
        tmp_path, meta(), *(record for pair in pairs for record in pair), token_count(counts(9, 0, 2), counts(9, 0, 2))
    )
    assert [span.operation for span in run.spans] == [Operation.TURN, Operation.MESSAGE, Operation.CHAT]
    assert run.load(run.spans[2]).output_messages == (Message("assistant", (Reasoning("Greet."), Text("Hello"))),)


def test_images_are_kept_by_kind() -> None:
    run = case("old")
    (drawn,) = [span for span in spans_of(run, Operation.MESSAGE) if span.preview == "Draw them"]
    (message,) = run.load(drawn).input_messages
    assert message.parts[1] == Blob(
        "input_image", {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    )


# ---------------------------------------------------------------------------------------------------- outcomes of calls


def exec_end(ident: str, **fields: Any) -> Record:
    return done("CommandExecution", 3, id=ident, aggregated_output="seen", **fields)


@pytest.mark.parametrize(
    ("records", "status", "source", "word"),
    [
        ([output("c")], Status.OK, StatusSource.DERIVED, "completed"),
        ([output("c", "Exit code: 0\nOutput:\nx")], Status.OK, StatusSource.EXIT, "completed"),
        ([output("c", "Exit code: 3\nOutput:\nx")], Status.ERROR, StatusSource.EXIT, "completed"),
        (
            [output("c", "Chunk ID: 1\nProcess exited with code 3\nOutput:\n")],
            Status.ERROR,
            StatusSource.EXIT,
            "completed",
        ),
        ([output("c", "Chunk ID: 1\nOutput:\nExit code: 3\n")], Status.OK, StatusSource.DERIVED, "completed"),
        ([output("c", "I met\nExit code: 3\n")], Status.OK, StatusSource.DERIVED, "completed"),
        ([output("c", '{"output":"x","metadata":{"exit_code":3}}')], Status.ERROR, StatusSource.EXIT, "completed"),
        ([output("c", {"content": "x", "success": False})], Status.ERROR, StatusSource.EXPLICIT, "completed"),
        ([exec_end("c", exit_code=3, status="completed"), output("c")], Status.ERROR, StatusSource.EXIT, "completed"),
        ([output("c"), exec_end("c", exit_code=3, status="completed")], Status.ERROR, StatusSource.EXIT, "completed"),
        ([exec_end("c", exit_code=0, status="failed")], Status.ERROR, StatusSource.EXPLICIT, "failed"),
        ([exec_end("c", exit_code=1, status="declined")], Status.CANCELLED, StatusSource.EXPLICIT, "declined"),
        ([done("McpToolCall", id="c", result={"isError": True})], Status.ERROR, StatusSource.EXPLICIT, "completed"),
        (
            [event("mcp_tool_call_end", call_id="c", result={"Err": "no"})],
            Status.ERROR,
            StatusSource.EXPLICIT,
            "completed",
        ),
        ([event("exec_command_begin", call_id="c")], Status.UNKNOWN, StatusSource.DERIVED, None),  # no longer written
        ([event("task_complete")], Status.UNKNOWN, None, None),
        ([event("turn_aborted", reason="interrupted")], Status.CANCELLED, StatusSource.EXPLICIT, None),
    ],
)
def test_outcome_of_a_call(
    tmp_path: Path, records: list[Record], status: Status, source: StatusSource | None, word: str | None
) -> None:
    run = read_records(tmp_path, meta(), event("task_started"), message("user", "go"), call("c"), *records)
    span = only(run, Operation.EXECUTE_TOOL)
    assert (span.status, span.status_source, span.status_word) == (status, source, word)
    assert (span.error is not None) == (status is Status.ERROR)
    assert run.problems == ()


def test_a_call_is_timed_by_its_event_else_by_its_output(tmp_path: Path) -> None:
    plain = read_records(tmp_path, meta(), call("c", second=1), output("c", second=3.5))
    assert only(plain, Operation.EXECUTE_TOOL).duration_ms == 2500
    exact = event(
        "item_completed", item={"type": "FileChange", "id": "c"}, started_at_ms=1e12, completed_at_ms=1e12 + 40
    )
    span = only(read_records(tmp_path, meta(), call("c"), exact, output("c")), Operation.EXECUTE_TOOL)
    assert (span.started_at, span.duration_ms) == (1e9, 40)


def test_a_call_with_nothing_but_an_event_is_shown(tmp_path: Path) -> None:
    run = read_records(
        tmp_path, meta(), event("mcp_tool_call_end", call_id="x", invocation={"server": "docs", "tool": "find"})
    )
    assert [(span.name, span.status) for span in run.spans] == [("docs.find", Status.OK)]


# --------------------------------------------------------------------------------------------------------------- tokens


def test_tokens_are_counted_once_however_often_they_are_recorded(tmp_path: Path) -> None:
    first, both = counts(100, 80, 10), counts(220, 180, 15)
    run = read_records(
        tmp_path,
        meta(),
        message("user", "Hi"),
        message("assistant", "Hello"),
        token_count(first, first),
        token_count(first, first),
        message("assistant", "There"),
        record("token_usage_record", {"usage": counts(120, 100, 5), "thread_token_usage": both}),
        token_count(counts(120, 100, 5), both),
        token_count(None, None),
    )
    assert run.summary.usage == Usage(220, 15, 235, 180, None, 0)
    assert [span.usage and span.usage.input_tokens for span in spans_of(run, Operation.CHAT)] == [100, 120]


def test_tokens_are_the_difference_where_only_totals_are_recorded(tmp_path: Path) -> None:
    totals = [token_count(None, counts(100, 0, 10)), token_count(None, counts(150, 20, 12))]
    run = read_records(tmp_path, meta(), message("assistant", "a"), totals[0], message("assistant", "b"), totals[1])
    assert [span.usage and span.usage.input_tokens for span in spans_of(run, Operation.CHAT)] == [100, 50]


def rollouts() -> list[Path]:
    own = list(CASES.rglob("*.jsonl"))
    return sorted(own if SHARED is None else [*own, *sample("codex").rglob("*.jsonl")])


@pytest.mark.parametrize("path", rollouts(), ids=lambda path: f"{path.parent.name}-{path.stem[-12:]}")
def test_tokens_are_those_of_the_raw_lines(path: Path) -> None:
    with LocalSource().open(str(path)) as file:
        if FORMAT.sniff(file) == 0:
            return
    run = read(path)
    agents = {span.at.part for span in spans_of(run, Operation.INVOKE_AGENT) if not span.note}
    files = [path, *(path.parent / name for name in agents)]
    expected = {name: sum(used(path)[name] for path in files) for name in NAMES}
    usage = run.summary.usage or Usage()
    tokens = (
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
        usage.total_tokens,
    )
    assert dict(zip(NAMES, (count or 0 for count in tokens), strict=True)) == expected


# ----------------------------------------------------------------------------------------------------- damage and drift


def test_unknown_kinds_are_shown_and_no_problem(tmp_path: Path) -> None:
    unknown = [event("gust", strength=n) for n in range(3)]
    run = read_records(tmp_path, meta(), *unknown, record("weather", {"sky": "grey"}))
    assert [span.name for span in run.spans] == ["gust", "gust", "gust", "weather"]
    assert {span.operation for span in run.spans} == {Operation.UNKNOWN}
    assert run.problems == ()
    assert [run.load(span).attributes.get("strength") for span in run.spans] == [0, 1, 2, None]


def test_the_metadata_beside_a_payload_is_a_known_field(tmp_path: Path) -> None:
    """Codex 0.169 writes it in about every second record."""
    known, unknown = (
        event("error", message="No.") | {"metadata": {"history_sequence": 1}},
        event("error", message="No."),
    )
    assert read_records(tmp_path, meta(), known).summary.unread is None
    ledger = read_records(tmp_path, meta(), unknown | {"gale": 1}).summary.unread
    assert ledger is not None
    assert ledger.fields == (("event_msg.gale", 1),)


def test_a_torn_last_line_waits() -> None:
    run = case("drift")
    assert not any("line 19" in problem.where for problem in run.problems)
    assert run.summary.status is Status.UNKNOWN


def test_outputs_without_a_call_and_calls_without_an_id_are_reported(tmp_path: Path) -> None:
    nameless = item("function_call", name="exec_command", arguments="{")
    run = read_records(tmp_path, meta(), output("lost"), nameless)
    assert [(problem.where, problem.reason) for problem in run.problems] == [
        ("line 2", "no open call 'lost' for this result"),
        ("line 3", "call of exec_command has no id: its result can't be matched"),
    ]


def test_nothing_at_all_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(b"[1]\n")
    with pytest.raises(FormatError, match="no record"):
        summary(path, deep=True)


def test_spans_are_named_by_their_lines_in_a_long_file_too(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    said = [message("assistant", "é" * 100_000, second) for second in range(1, 30)]
    path.write_bytes(encoded([meta()]) + b"\n" + encoded([*said, event("error", 30, message="overloaded")]))
    run_summary = summary(path, deep=True)
    assert run_summary.first_error is not None
    assert run_summary.first_error.span == "l32"


def test_a_body_of_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(encoded([meta(), message("user", "Hi")]))
    run = read(path)
    path.write_bytes(encoded([meta(), message("user", "Ho")]))
    with pytest.raises(FormatError, match="changed"):
        run.load(only(run, Operation.MESSAGE))


# ----------------------------------------------------------------------------------------------------------- list stage


def long_one(*last: Record, prompt: str = "Prune") -> list[Record]:
    filling = [record for n in range(60) for record in (call(f"c{n}"), output(f"c{n}", "x" * 2000))]
    return [meta(), event("task_started"), message("user", prompt), *filling, *last]


@pytest.mark.parametrize(
    ("last", "status", "word"),
    [
        ([event("task_complete")], Status.OK, "task_complete"),
        ([event("turn_aborted", reason="replaced")], Status.CANCELLED, "replaced"),
        ([event("error", message="no"), event("task_complete")], Status.ERROR, "error"),
        ([event("error", message="no"), call("z"), event("task_complete")], Status.OK, "task_complete"),
        ([event("task_complete"), event("task_started")], Status.UNKNOWN, None),
        ([], Status.UNKNOWN, None),
    ],
)
def test_the_last_lines_of_a_long_thread_have_its_status(
    tmp_path: Path, last: list[Record], status: Status, word: str | None
) -> None:
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(encoded(long_one(*last)))
    os.utime(path, (MTIME, MTIME))
    assert path.stat().st_size > HEAD_SIZE
    quick, deep = summary(path, deep=False), summary(path, deep=True)
    assert (deep.status, deep.status_word) == (status, word)
    assert (quick.status, quick.status_word, quick.prompt) == (status, word, "Prune")


def test_work_that_is_recorded_after_the_end_of_its_turn_is_not_a_new_turn(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    late = [record for n in range(20) for record in (call(f"z{n}"), output(f"z{n}", "y" * 2000))]
    begun = [record("turn_context", {"turn_id": "t", "model": "bigmodel"})]
    path.write_bytes(encoded([*long_one()[:3], *begun, *long_one(event("task_complete"), *late)[3:]]))
    os.utime(path, (MTIME, MTIME))
    quick, deep = summary(path, deep=False), summary(path, deep=True)
    assert (deep.status, deep.status_source) == (Status.OK, StatusSource.EXPLICIT)
    assert (quick.status, quick.status_source) == (Status.UNKNOWN, None)  # not known yet


def test_a_prompt_after_long_instructions_is_found(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(encoded([meta(base_instructions={"text": "x" * 200_000}), *long_one()[1:]]))
    assert summary(path, deep=False).prompt == "Prune"


# ----------------------------------------------------------------------------------------------------------------- live


WHOLE = next((CASES / "turns").rglob("*.jsonl")).read_bytes()


@given(
    cuts=st.lists(st.integers(0, len(WHOLE)), max_size=8), tail=st.sampled_from([b"", b"{", b"\n", b'{"type":"?"}\n'])
)
def test_a_file_that_grows_by_any_bytes_is_read_as_at_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("grow") / f"rollout-{FIRST}.jsonl"
    whole = WHOLE[:-1] + tail
    path.write_bytes(b"")
    growing = Growing(FORMAT, RunRef("codex", str(path)))
    for size in (*sorted(cuts), len(WHOLE) - 1, len(whole)):
        with path.open("ab") as stream:
            stream.write(whole[path.stat().st_size : size])
        growing.read()
        growing.read()  # asking again changes nothing
    once = read(path)
    assert growing.run().spans == once.spans
    assert growing.run().summary == once.summary
    assert sorted(growing.run().problems, key=str) == sorted(once.problems, key=str)


@needs_shared
@pytest.mark.parametrize(
    "path", [path for path in rollouts() if "generated" in str(path)], ids=lambda path: path.stem[-4:]
)
def test_real_records_are_all_there_and_nothing_is_reported(path: Path) -> None:
    run = read(path)
    assert run.problems == ()
    raw = {line for span in run.spans for line in run.load(span).raw.split(b"\n")}
    for line in path.read_bytes().split(b"\n")[1:-1]:
        assert line in raw, json.loads(line)["type"]
    deep = summary(path, deep=True)
    assert deep.usage == run.summary.usage
