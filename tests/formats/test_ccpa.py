"""ccpa traces: both dialects, answers and hooks that find their calls, endings, pairs, and files that others write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import SHARED, examples, needs_shared, sample
from tracetui.errors import FormatError
from tracetui.formats.ccpa import Ccpa
from tracetui.live.load import read_run
from tracetui.model import (
    Blob,
    Error,
    FirstError,
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
    excerpt,
)
from tracetui.sources.base import HEAD_SIZE
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing

FIXTURES = Path(__file__).parent / "ccpa"
SOURCE = LocalSource()
Record = dict[str, Any]


def ref(path: Path) -> RunRef:
    return RunRef("ccpa", str(path))


def read(path: Path) -> Run:
    return read_run(SOURCE, ref(path))


def case(name: str, file: str) -> Run:
    return read(FIXTURES / name / "input" / file)


def teacher() -> Run:
    return case("pair", "0042-rename/teacher.ccpa-trace.jsonl")


@pytest.mark.parametrize(
    ("meta", "task"),
    [
        (b'[fixture]\nid = "0042-rename"\n', "0042-rename"),
        (b"[fixture]\nid = 42\n", None),
        (b'fixture = "0042"\n', None),
        (b"[fixture\n", None),
        (b'[fixture]\nid = "\xff"\n', None),
        (b"# " + b"x" * (1 << 16) + b'\n[fixture]\nid = "0042"\n', None),
        (None, None),
    ],
)
def test_the_task_is_the_fixture_that_the_folder_records(tmp_path: Path, meta: bytes | None, task: str | None) -> None:
    path = tmp_path / "student.ccpa-trace.jsonl"
    path.write_bytes((FIXTURES / "pair/input/0042-rename/student.ccpa-trace.jsonl").read_bytes())
    if meta is not None:
        (tmp_path / "meta.toml").write_bytes(meta)
    with SOURCE.open(str(path)) as file:
        (summary,) = Ccpa().summarize(file, deep=False)
    assert isinstance(summary, RunSummary)
    assert (summary.task, read(path).summary.task) == (task, task)


def student() -> Run:
    return case("pair", "0042-rename/student.ccpa-trace.jsonl")


def summary(path: Path, *, deep: bool) -> RunSummary:
    with SOURCE.open(str(path)) as file:
        (summary,) = Ccpa().summarize(file, deep=deep)
        assert isinstance(summary, RunSummary)
        return summary


def encoded(*records: Record) -> bytes:
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def start(**fields: Any) -> Record:
    return {"v": 1, "kind": "session_start", "session_id": "s-1", "ts": "2026-05-11T09:30:00Z", **fields}


def turn(number: int, *blocks: Any, stop: str = "tool_use") -> Record:
    return {"v": 1, "kind": "assistant_turn", "turn": number, "blocks": list(blocks), "stop_reason": stop}


def call(ident: str, name: str = "Bash", **arguments: Any) -> Record:
    return {"type": "tool_use", "id": ident, "name": name, "input": arguments}


def result(ident: str, **fields: Any) -> Record:
    return {"v": 1, "kind": "tool_result", "turn": 2, "tool_use_id": ident, **fields}


def hook(**fields: Any) -> Record:
    return {"v": 1, "kind": "hook_event", "turn": 1, "event": "PreToolUse", **fields}


def end(reason: str = "end_turn", **fields: Any) -> Record:
    return {"v": 1, "kind": "session_end", "stop_reason": reason, **fields}


def session(folder: Path, *records: Record, name: str = "s.ccpa-trace.jsonl") -> Run:
    path = folder / name
    path.write_bytes(encoded(start(), *records))
    return read(path)


def named(run: Run, name: str, nth: int = 0) -> Span:
    return [span for span in run.spans if span.name == name][nth]


def parent(run: Run, span: Span) -> str | None:
    above = None if span.parent_id is None else run.span(span.parent_id)
    return None if above is None else above.name


# ------------------------------------------------------------------------------------------------ a session as a run


def test_the_header_is_what_the_first_and_last_record_say() -> None:
    original = teacher().summary
    assert (original.id, original.name, original.agent) == (
        "0195aa10-0000-7000-8000-000000000042",
        "claude-code",
        "claude-code",
    )
    assert (original.model, original.started_at, original.duration_ms) == (
        "claude-sonnet-4-6",
        1778491800.0,
        3270.0,
    )
    assert original.usage == Usage(input_tokens=1840, output_tokens=233, total_tokens=2073)
    assert (original.status, original.status_word, original.status_source) == (
        Status.OK,
        "end_turn",
        StatusSource.EXPLICIT,
    )
    assert (original.steps, original.llm_calls, original.tool_calls) == (5, 5, 6)
    assert original.prompt.startswith("Rename fetch_page")


def test_the_run_tab_has_every_field_of_the_first_and_last_record() -> None:
    run = case("documented", "fix-test.jsonl")
    assert run.body.attributes["cwd"] == "/home/ada/parser"
    assert run.body.attributes["git_commit"] == "9f2c1e07"
    assert run.body.attributes["session_end"] == {"kind": "session_end", "reason": "wall_timeout"}
    assert run.body.last_user == "Fix the failing test."
    assert run.body.last_assistant == "Run it first."
    assert run.body.system_prompt is None
    assert teacher().body.attributes["cwd_sha256"] == "5d" * 32


def test_a_field_called_as_the_last_record_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(start(session_end="mine"), turn(1), end()))
    attributes = read(path).body.attributes
    assert (attributes["session_end"], attributes["session_end record"]) == ("mine", end())


def test_a_turn_holds_its_blocks_and_is_the_step() -> None:
    run = teacher()
    first = named(run, "claude-sonnet-4-6")
    assert (first.operation, first.is_step, first.step) == (Operation.CHAT, True, 1)
    assert first.preview == "I'll look for callers first."
    body = run.load(first)
    (message,) = body.output_messages
    assert isinstance(message, Message)
    assert message.finish_reason == "tool_use"
    thought, text, grep, _ = message.parts
    assert thought == Reasoning("Two places at least: the crate and its examples.")
    assert text == Text("I'll look for callers first.")
    assert grep == ToolCall("toolu_71", "Grep", {"pattern": "fetch_page", "path": "."})
    assert body.attributes["blocks[0]"] == {"signature": "EqQBCgIYAhIM"}
    assert [step.number for step in run.steps] == [1, 3, 4, 6, 8]


def test_thinking_of_the_documented_dialect_is_read() -> None:
    run = case("documented", "fix-test.jsonl")
    (message,) = run.load(named(run, "assistant")).output_messages
    assert message.parts[0] == Reasoning("The name says which module.")


def test_a_call_and_its_result_are_one_span_below_the_turn() -> None:
    run = teacher()
    grep = named(run, "Grep")
    assert grep.operation is Operation.EXECUTE_TOOL
    assert (grep.status, grep.status_source) == (Status.OK, StatusSource.EXPLICIT)
    assert parent(run, grep) == "claude-sonnet-4-6"
    body = run.load(grep)
    assert body.input == {"pattern": "fetch_page", "path": "."}
    assert body.output == "src/fetch.rs:12\nexamples/crawl.rs:7"
    assert (body.attributes["exit_code"], body.attributes["ok"], body.attributes["turn"]) == (0, True, 2)
    lines = (FIXTURES / "pair/input/0042-rename/teacher.ccpa-trace.jsonl").read_bytes().split(b"\n")
    assert body.raw == lines[2] + b"\n" + lines[5]


def test_files_that_a_tool_touched_are_attributes() -> None:
    run = teacher()
    assert run.load(named(run, "Read")).attributes["files_read"] == ["src/fetch.rs"]
    assert run.load(named(run, "Bash", 1)).attributes["files_written"] == ["src/fetch.rs", "src/lib.rs"]


def test_an_agent_is_a_tool_call_that_shows_which_agent() -> None:
    agent = named(teacher(), "Agent")
    assert agent.operation is Operation.EXECUTE_TOOL
    assert agent.preview == "explore: find fetch_page in examples/"


def test_attachments_stay_with_the_prompt() -> None:
    run = case("documented", "fix-test.jsonl")
    body = run.load(run.spans[0])
    attached = {"name": "log.txt", "size": 812}
    assert body.attributes["attachments"] == [attached]
    assert body.input_messages == (Message("user", (Text("Fix the failing test."), Blob("attachment", attached))),)


def test_a_skill_shows_its_arguments_or_where_it_came_from(tmp_path: Path) -> None:
    run = case("documented", "fix-test.jsonl")
    skill = named(run, "skill explain")
    assert (skill.operation, run.load(skill).input) == (Operation.OTHER, {"depth": "medium"})
    live = case("live", "0007-recorder.ccpa-trace.jsonl")
    matched = named(live, "skill unicode-width")
    assert matched.note == "auto_matched"
    assert live.load(matched).attributes["instructions_injected"] is True


# ------------------------------------------------------------------------------------------------------- tool status


@pytest.mark.parametrize(
    ("fields", "status", "source", "word"),
    [
        ({"ok": True}, Status.OK, StatusSource.EXPLICIT, None),
        ({"is_error": False}, Status.OK, StatusSource.EXPLICIT, None),
        ({"ok": False}, Status.ERROR, StatusSource.EXPLICIT, None),
        ({"is_error": True}, Status.ERROR, StatusSource.EXPLICIT, None),
        ({"ok": True, "side_effects": {"exit_code": 3}}, Status.ERROR, StatusSource.EXIT, "exit 3"),
        ({"ok": False, "side_effects": {"exit_code": 3}}, Status.ERROR, StatusSource.EXPLICIT, "exit 3"),
        ({"side_effects": {"exit_code": 0}}, Status.OK, StatusSource.EXIT, None),
        ({}, Status.OK, StatusSource.DERIVED, None),
        ({"ok": "false"}, Status.OK, StatusSource.DERIVED, None),
    ],
)
def test_the_result_of_a_call_is_its_status(
    tmp_path: Path, fields: Record, status: Status, source: StatusSource, word: str | None
) -> None:
    run = session(tmp_path, turn(1, call("t")), result("t", content="42 passed", **fields), end())
    span = named(run, "Bash")
    assert (span.status, span.status_source, span.status_word) == (status, source, word)
    assert (span.error is not None) == (status is Status.ERROR)
    if span.error is not None:
        assert span.error.message == "42 passed"


def test_a_long_error_is_cut_in_the_header_only(tmp_path: Path) -> None:
    run = session(tmp_path, turn(1, call("t")), result("t", ok=False, content="x" * 5000), end())
    span = named(run, "Bash")
    assert span.error is not None
    assert span.error.message == excerpt("x" * 5000)
    assert run.load(span).output == "x" * 5000


def test_a_call_without_a_result_runs_while_nothing_came_after_it(tmp_path: Path) -> None:
    running = session(tmp_path, turn(1, call("t")))
    assert named(running, "Bash").status is Status.RUNNING
    assert running.summary.status is Status.RUNNING  # the file was written just now
    for later in (turn(2, stop="end_turn"), {"kind": "user_prompt", "text": "and?"}, end()):
        assert named(session(tmp_path, turn(1, call("t")), later), "Bash").status is Status.UNKNOWN


def test_a_session_without_an_end_that_does_not_move_is_unknown(tmp_path: Path) -> None:
    session(tmp_path, turn(1, call("t")))
    os.utime(tmp_path / "s.ccpa-trace.jsonl", (1_700_000_000, 1_700_000_000))
    assert summary(tmp_path / "s.ccpa-trace.jsonl", deep=False).status is Status.UNKNOWN


def test_an_error_that_the_run_recovered_from_does_not_fail_it(tmp_path: Path) -> None:
    run = session(tmp_path, turn(1, call("t")), result("t", ok=False, content="no"), turn(3, stop="end_turn"), end())
    assert (run.summary.status, run.summary.errors) == (Status.OK, 1)


# ------------------------------------------------------------------------------------------------------------- hooks


def test_hooks_are_below_the_call_that_they_name(tmp_path: Path) -> None:
    run = case("documented", "fix-test.jsonl")
    assert parent(run, named(run, "PreToolUse")) == "Bash"  # written before the turn
    assert parent(run, named(run, "PostToolUse")) == "Bash"  # written after the result
    assert parent(run, named(run, "Notification")) is None
    assert [problem.reason for problem in run.problems] == []


def test_a_hook_may_name_a_call_of_an_earlier_turn(tmp_path: Path) -> None:
    run = session(
        tmp_path,
        *(turn(1, call("t")), result("t", ok=True), turn(3, call("u", "Read")), result("u", ok=True)),
        *(hook(event="late", tool_use_id="t", turn=3), hook(event="lost", tool_use_id="nobody", turn=3), end()),
    )
    assert {name: parent(run, named(run, name)) for name in ("late", "lost")} == {"late": "Bash", "lost": None}
    assert summary(tmp_path / "s.ccpa-trace.jsonl", deep=True) == run.summary


def test_hooks_without_a_call_go_by_turn_and_matcher(tmp_path: Path) -> None:
    run = session(
        tmp_path,
        turn(1, call("a", "Bash"), call("b", "Read"), call("c", "Read")),
        hook(matcher="Bash", event="one"),
        hook(matcher="Edit|Bash", event="either"),
        hook(matcher="Read", event="two fit"),
        hook(event="none"),
        hook(turn=7, matcher="Bash", event="other turn"),
    )
    parents = {name: parent(run, named(run, name)) for name in ("one", "either", "two fit", "none", "other turn")}
    assert parents == {"one": "Bash", "either": "Bash", "two fit": "assistant", "none": "assistant", "other turn": None}


def test_a_blocked_call_never_ran(tmp_path: Path) -> None:
    run = teacher()
    blocked = named(run, "Bash")
    assert (blocked.status, blocked.status_word, blocked.note) == (Status.CANCELLED, "block", "blocked")
    block = named(run, "PreToolUse", 1)
    assert (block.status, block.status_word, block.note) == (Status.ERROR, "block", "block")
    assert block.error is not None
    assert block.error.message == "rm -rf is not allowed here"
    warned, allowed = named(run, "PreToolUse", 2), named(run, "PreToolUse", 0)
    assert (warned.status, warned.note) == (Status.OK, "warn")
    assert (allowed.status, allowed.note) == (Status.OK, "")


def test_a_blocked_call_that_was_answered_all_the_same_has_that_status(tmp_path: Path) -> None:
    run = session(
        tmp_path, turn(1, call("t")), hook(tool_use_id="t", decision="block"), result("t", ok=False, content="blocked")
    )
    assert named(run, "Bash").status is Status.ERROR


# ----------------------------------------------------------------------------------------------------------- endings


@pytest.mark.parametrize("reason", ["max_tokens", "max_turns", "wall_timeout", "driver_error", "Wall-Timeout"])
def test_a_limit_that_was_reached_is_the_cause(tmp_path: Path, reason: str) -> None:
    run = session(tmp_path, turn(1, call("t")), result("t", ok=False, content="recovered"), end(reason))
    summary = run.summary
    assert (summary.status, summary.status_word, summary.status_source) == (
        Status.ERROR,
        reason,
        StatusSource.EXPLICIT,
    )
    assert summary.first_error == FirstError(f"session ended: {reason}", reason)


def test_an_error_without_a_name_is_caused_by_the_call_that_failed(tmp_path: Path) -> None:
    failed = student().summary.first_error
    assert failed is not None
    assert (failed.name, failed.message) == ("PreToolUse", "rm -rf is not allowed here")
    silent = session(tmp_path, turn(1, stop="end_turn"), end("error")).summary.first_error
    assert silent == FirstError("session ended: error", "error")


@pytest.mark.parametrize("word", ["max_tokens", "MAX_TOKENS", "Max-Tokens"])
def test_a_turn_at_its_token_limit_is_marked_as_failed_and_the_run_may_recover(tmp_path: Path, word: str) -> None:
    went_on = session(tmp_path, turn(1, stop=word), turn(2, stop="END_TURN"), end())
    cut, whole = went_on.spans
    assert (cut.note, cut.status, cut.status_word, cut.error) == (
        word,
        Status.ERROR,
        word,
        Error(f"stopped: {word}", word),
    )
    assert (whole.note, whole.status) == ("", Status.OK)
    assert (went_on.summary.status, went_on.summary.errors) == (Status.OK, 1)
    path = tmp_path / "s.ccpa-trace.jsonl"
    assert summary(path, deep=True).first_error == went_on.summary.first_error

    ended = session(tmp_path, turn(1, stop=word), end(word)).summary
    assert (ended.status, ended.first_error) == (Status.ERROR, FirstError(f"session ended: {word}", word))


def test_an_end_without_a_reason_is_judged_by_what_came_last(tmp_path: Path) -> None:
    bare = {"kind": "session_end"}
    good = session(tmp_path, turn(1, stop="end_turn"), bare).summary
    assert (good.status, good.status_source) == (Status.OK, StatusSource.DERIVED)
    assert session(tmp_path, turn(1, call("t")), result("t", ok=False), bare).summary.status is Status.ERROR


def test_an_unknown_reason_is_not_guessed(tmp_path: Path) -> None:
    summary = session(tmp_path, end("moonset")).summary
    assert (summary.status, summary.status_word) == (Status.UNKNOWN, "moonset")


# ------------------------------------------------------------------------------------------------------------- pairs


@pytest.mark.parametrize(
    ("name", "relation", "original"),
    [
        ("0003-primes-teacher", None, None),
        ("0003-primes-student-capped", "student", "0003-primes-teacher.ccpa-trace.jsonl"),
        ("0009-alone-student", "student", None),
        ("alone", None, None),
    ],
)
def test_a_student_replays_the_teacher_beside_it(name: str, relation: str | None, original: str | None) -> None:
    folder = FIXTURES / "students/input"
    summary = read(folder / f"{name}.ccpa-trace.jsonl").summary
    assert summary.relation == relation
    assert summary.replay_of_path == (original and str(folder / original))
    assert summary.replay_of == (summary.id if relation else None)


def test_the_student_of_a_folder_shares_the_session_id_with_its_teacher() -> None:
    run_summary, original = student().summary, teacher().summary
    assert (run_summary.relation, run_summary.replay_of, run_summary.id) == ("student", original.id, original.id)
    assert run_summary.replay_of_path == original.ref.path
    assert original.relation is None


def test_an_actor_that_is_a_student_needs_no_name(tmp_path: Path) -> None:
    (tmp_path / "teacher.jsonl").write_bytes(encoded(start(actor="claude-code"), end()))
    (tmp_path / "run1.jsonl").write_bytes(encoded(start(actor="apr-code"), end()))
    (tmp_path / "students.jsonl").write_bytes(encoded(start(actor="claude-code"), end()))
    assert read(tmp_path / "run1.jsonl").summary.replay_of_path == str(tmp_path / "teacher.jsonl")
    assert read(tmp_path / "students.jsonl").summary.relation is None


# ---------------------------------------------------------------------------------------------------------- bad lines


def test_every_bad_line_is_named_and_hides_no_good_one() -> None:
    run = case("broken", "broken.jsonl")
    places = [(problem.where, problem.reason) for problem in run.problems]
    for where, part in [
        ("line 1", "not session_start"),
        ("line 2", "session_start is not the first record"),
        ("line 5", "does not end"),
        ("line 6", "not valid JSON"),
        ("line 7", "not a JSON object"),
        ("line 10", "'toolu_1' is reused"),
        ("line 11", "no open call 'toolu_9'"),
        ("line 13", "no open call 'toolu_1'"),
        ("line 14", "64 NUL bytes"),
        ("line 16", "user_prompt after session_end"),
        ("line 17", "a second session_start"),
        ("line 18", "a second session_end"),
    ]:
        assert any(place == where and part in reason for place, reason in places), (where, part)
    assert run.summary.id == "s-broken"
    assert run.summary.time_zone is None  # its time has no zone
    assert named(run, "telemetry").operation is Operation.UNKNOWN
    assert run.load(named(run, "telemetry")).attributes["rss_kb"] == 81920
    assert run.load(named(run, "tool_result")).output == "nobody asked"


def test_blank_lines_and_a_byte_order_mark_are_no_problems(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + encoded(start(), turn(1), end()).replace(b"\n", b"\r\n\n  \n"))
    run = read(path)
    assert (run.problems, len(run.spans), run.summary.id) == ((), 1, "s-1")
    assert run.load(run.spans[0]).raw.endswith(b"\r")  # as it is in the file


def test_a_line_that_is_too_long_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.formats.jsonl.MAX_LINE", 1 << 20)
    path = tmp_path / "s.jsonl"
    long = orjson.dumps(result("t", content="q" * (3 << 20)))
    path.write_bytes(encoded(start()) + long + b"\n" + encoded(turn(1, stop="end_turn"), end()))
    run = read(path)
    assert [problem.where for problem in run.problems] == ["line 2"]
    assert f"{len(long)} bytes" in run.problems[0].reason
    assert run.load(run.spans[0]).attributes["turn"] == 1


def test_records_on_one_line_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(start(), end()).replace(b"\n", b"\r"))
    run = read(path)
    assert (run.summary.id, run.summary.status) == ("s-1", Status.OK)
    assert [problem.reason for problem in run.problems] == ["read leniently: 2 records on one line"]


@pytest.mark.parametrize("newline", [b"\n", b""])
def test_an_array_of_records_is_claimed_and_refused(tmp_path: Path, newline: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(json.dumps([start(), turn(1), end()], indent=1).encode() + newline)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    with SOURCE.open(str(path)) as file:
        assert 0 < Ccpa().sniff(file) < 100
        with pytest.raises(FormatError, match="no record could be read"):
            list(Ccpa().summarize(file, deep=False))


def test_a_file_whose_first_line_is_still_written_is_a_running_session(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(start())[:50])
    for deep in (False, True):
        assert summary(path, deep=deep).status is Status.RUNNING


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"kind", b'{"kind": "Pod"}\n', b'# a page\n`"kind": "session_start"`\n', b"\0" * 99]
)
def test_other_files_are_not_claimed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with SOURCE.open(str(path)) as file:
        assert Ccpa().sniff(file) == 0


@pytest.mark.parametrize("order", [1, -1])
def test_detection_does_not_depend_on_the_order_of_keys(tmp_path: Path, order: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"not json\n" + encoded(dict(list(start().items())[::order])))
    with SOURCE.open(str(path)) as file:
        assert Ccpa().sniff(file) == 100


# ------------------------------------------------------------------------------------------------------------ counts


IDS = st.sampled_from(["a", "b", "c"])
TURNS = st.builds(
    turn,
    st.integers(1, 3),
    *[
        st.one_of(
            st.builds(call, IDS, st.sampled_from(["Bash", "Read"]), n=st.sampled_from([1, 10**400])),
            st.just({"type": "text", "text": "x"}),
        )
    ]
    * 2,
    stop=st.sampled_from(["tool_use", "END_TURN", "max_tokens", "Max-Tokens", "error", "?"]),
)
RESULTS = st.builds(
    result,
    IDS,
    ok=st.sampled_from([True, False, None]),
    content=st.sampled_from(["", "no", ["no"], None]),
    side_effects=st.sampled_from([None, {"exit_code": 0}, {"exit_code": 2}, {"files_read": ["x"]}, {"exit_code": "2"}]),
)
HOOKS = st.builds(
    hook,
    turn=st.sampled_from([1, 2, None]),
    tool_use_id=st.none() | IDS,
    matcher=st.sampled_from(["Bash", "Read|Bash", None]),
    decision=st.sampled_from(["allow", "block", "warn", None]),
    exit_code=st.sampled_from([0, 2, None]),
)
OTHERS = st.sampled_from(
    [
        {"kind": "user_prompt", "text": "go"},
        {"kind": "user_prompt", "text": ["go"]},
        {"kind": "skill_invocation", "name": "s"},
        {"kind": "telemetry"},
        start(session_id="s-2"),
        end("max_tokens"),
    ]
)
ENDS = st.sampled_from([end(), end("error"), end("max_tokens"), end("max_turns"), {"kind": "session_end"}, None])


@settings(max_examples=examples(100))
@given(
    records=st.lists(st.one_of(TURNS, TURNS, RESULTS, RESULTS, HOOKS, OTHERS), max_size=9),
    last=ENDS,
    newline=st.sampled_from([b"\n", b"", b"\n{", b"\n\n"]),
)
def test_the_deep_summary_is_that_of_the_whole_run(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], last: Record | None, newline: bytes
) -> None:
    path = tmp_path_factory.mktemp("count") / "s.jsonl"
    written = [json.dumps(record).encode() for record in (start(), *records, *([last] if last else []))]
    path.write_bytes(b"\n".join(written) + newline)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert summary(path, deep=True) == read(path).summary


# --------------------------------------------------------------------------------------------------- large and live


def long_session(turns: int, *, last: Record | None = None) -> bytes:
    records = [start(actor="claude-code", model="m"), {"kind": "user_prompt", "turn": 0, "text": "Go on."}]
    for i in range(turns):
        records += [
            turn(2 * i + 1, call(f"t{i}", command=f"echo {i}")),
            result(f"t{i}", ok=i % 50 != 7, content="-" * 300),
        ]
    return encoded(*records, *([last] if last else []))


@pytest.mark.parametrize(
    "last",
    [
        end("max_turns", elapsed_ms=5),
        end("error"),
        end(),
        {"kind": "session_end"},
        None,
        end(text="session_end " * 9000),
    ],
)
def test_the_list_stage_reads_the_ends_of_a_long_file_and_is_right(tmp_path: Path, last: Record | None) -> None:
    path = tmp_path / "student.ccpa-trace.jsonl"
    path.write_bytes(long_session(300, last=last))
    assert path.stat().st_size > HEAD_SIZE
    quick, deep = summary(path, deep=False), summary(path, deep=True)
    for name in ("id", "name", "model", "prompt", "started_at", "duration_ms", "status_word", "relation", "replay_of"):
        assert getattr(quick, name) == getattr(deep, name), name
    assert quick.status in (deep.status, Status.UNKNOWN)
    assert quick.first_error in (deep.first_error, None)
    assert deep.steps == 300


@pytest.mark.parametrize("place", ["head", "middle"])
def test_the_list_stage_is_right_about_odd_files(tmp_path: Path, place: str) -> None:
    lines = long_session(600).split(b"\n")
    if place == "head":
        lines.insert(0, lines.pop(5))  # session_start is not the first record
    else:
        lines.insert(300, orjson.dumps(end("max_turns")))  # the end is not at the end
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join(lines))
    quick, deep = summary(path, deep=False), summary(path, deep=True)
    assert (quick.id, quick.status, quick.status_word) == (deep.id, deep.status, deep.status_word)
    assert deep.problems > 0


def test_a_long_file_is_read_in_bounded_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.formats.jsonl.BUDGET", -1.0)
    monkeypatch.setattr("tracetui.formats.jsonl._CHECK", 0)  # one line a piece
    path = tmp_path / "s.jsonl"
    path.write_bytes(long_session(20, last=end()))
    with SOURCE.open(str(path)) as file:
        first = Ccpa().open(file, ref(path)).more(file)
    assert not first.done
    in_pieces = read(path)
    monkeypatch.undo()
    assert (in_pieces.spans, in_pieces.summary) == (read(path).spans, read(path).summary)


CONTENT = encoded(
    start(), turn(1, call("a"), {"type": "text", "text": "漢字 \u2028 é"}), result("a", ok=False), end("error")
)


@given(
    cuts=st.lists(st.integers(0, len(CONTENT)), max_size=8),
    tail=st.sampled_from([b"", b"{", b" x\n", b'{"kind":"?"}\n']),
)
def test_a_file_that_grows_by_any_bytes_is_read_as_at_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("grow") / "s.jsonl"
    whole = CONTENT[:-1] + tail  # its last line may turn out to be broken after all
    path.write_bytes(b"")
    growing = Growing(Ccpa(), ref(path))
    for size in (*sorted(cuts), len(CONTENT) - 1, len(whole)):
        with path.open("ab") as stream:
            stream.write(whole[path.stat().st_size : size])
        growing.read()
        growing.read()  # asking again changes nothing
    once = Growing(Ccpa(), ref(path))
    once.read()
    assert growing.run().spans == once.run().spans
    assert sorted(growing.run().problems, key=str) == sorted(once.run().problems, key=str)
    assert growing.run().summary == once.run().summary


def test_a_complete_record_without_a_newline_is_shown_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(start(), turn(1, call("a")), result("a", content="done"))[:-1])
    growing = Growing(Ccpa(), ref(path))
    growing.read()
    assert [span.status for span in growing.run().spans] == [Status.OK, Status.OK]
    with path.open("ab") as stream:
        stream.write(b"\n" + encoded(end()))
    growing.read()
    run = growing.run()
    assert (len(run.spans), run.summary.status, run.problems) == (2, Status.OK, ())


@pytest.mark.parametrize("same_size", [True, False])
def test_a_rewritten_file_is_read_anew(tmp_path: Path, same_size: bool) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(start(), result("a", content="old 1"), result("b", content="old 2")))
    stat = path.stat()
    with SOURCE.open(str(path)) as file:
        reader = Ccpa().open(file, ref(path))
        reader.more(file)
        unchanged = reader.more(file)
    assert (list(unchanged.spans), list(unchanged.problems), unchanged.reset) == ([], [], False)
    more = [] if same_size else [result("c", content="new 3")]
    path.write_bytes(encoded(start(), result("a", content="new 1"), result("b", content="new 2"), *more))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with SOURCE.open(str(path)) as file:
        later = reader.more(file)
    assert later.reset
    assert [span.preview[:3] for span in later.spans] == ["new"] * len(later.spans)


@pytest.mark.parametrize("data", [b"", encoded(start())])
def test_a_shrunk_file_is_read_anew(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(start(), turn(1, stop="end_turn"), end()))
    with SOURCE.open(str(path)) as file:
        reader = Ccpa().open(file, ref(path))
        reader.more(file)
    path.write_bytes(data)
    with SOURCE.open(str(path)) as file:
        later = reader.more(file)
    assert (later.reset, list(later.spans)) == (True, [])
    assert later.header is not None
    assert not later.header.ended


def test_the_body_of_a_changed_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(start(), turn(1, call("a", command="ls")), result("a", content="x")))
    run = read(path)
    path.write_bytes(encoded(start(), turn(1, call("a", command="rm")), result("b", content="x")))
    for span in (run.spans[1],):
        with SOURCE.open(str(path)) as file, pytest.raises(FormatError, match="was replaced"):
            Ccpa().body(file, ref(path), span)
    assert "problem" in run.load(run.spans[1]).attributes


# -------------------------------------------------------------------------------------------------------- real files


def real_files() -> list[Path]:
    return [] if SHARED is None else sorted(sample("ccpa").rglob("*.jsonl"))


@needs_shared
@pytest.mark.parametrize("path", real_files(), ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_real_records_come_back_byte_for_byte(path: Path) -> None:
    """Upstream's own promise: each record serialises, parses and re-serialises to an equal value."""
    run, torn = read(path), path.name.startswith("torn")
    assert [problem.where for problem in run.problems] == (["last line"] if torn else [])
    with SOURCE.open(str(path)) as file:
        assert Ccpa().sniff(file) == 100
    lines = {line for span in run.spans for line in run.load(span).raw.split(b"\n")}
    for line in path.read_bytes().split(b"\n")[: -1 if torn else None]:
        record = orjson.loads(line) if line else {"kind": "session_end"}
        if record["kind"] not in ("session_start", "session_end"):
            assert line in lines
            assert orjson.loads(orjson.dumps(record)) == record
    assert run.summary == summary(path, deep=True)


@needs_shared
def test_real_students_find_their_teachers() -> None:
    runs = [read(path).summary for path in sorted(sample("ccpa", "canonical").rglob("*.jsonl"))]
    students = [run for run in runs if run.relation == "student"]
    assert len(students) == len(runs) // 2
    by_path = {run.ref.path: run for run in runs}
    assert all(run.replay_of_path and by_path[run.replay_of_path].id == run.replay_of for run in students)
