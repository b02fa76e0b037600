"""Sessions of the Copilot CLI: turns, calls, sub-agents, tokens counted several ways, damage, drift, growth."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.copilot_build import (
    AGENT,
    NAMES,
    SESSION,
    Record,
    asks,
    begins,
    encoded,
    ends,
    event,
    says,
    shutdown,
    start,
    tokens,
    turn,
    turn_end,
    used,
    user,
)
from tests.live.replay import grown
from tests.shared import SHARED, needs_shared, sample
from tracetui.analysis.search import Hit, Needle
from tracetui.diff.comparison import compare
from tracetui.errors import FormatError
from tracetui.formats.bodies import SpanRef
from tracetui.formats.copilot import Copilot
from tracetui.live.scan import scan
from tracetui.live.search import grep, grep_runs
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
    Total,
    Usage,
)
from tracetui.sources.base import HEAD_SIZE
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing
from tracetui.testing import read_run as run_of
from tracetui.testing.reading import MTIME, plain

CASES = Path(__file__).parent / "copilot"
FORMAT = Copilot()
SOURCE = LocalSource()


def read(path: Path) -> Run:
    return run_of(FORMAT, RunRef("copilot", str(path)))


def file_of(case: str) -> Path:
    (path,) = (CASES / case / "input").rglob("*.jsonl")
    return path


def case(name: str) -> Run:
    return read(file_of(name))


def summary(path: Path, *, deep: bool) -> RunSummary:
    with SOURCE.open(str(path)) as file:
        (summary,) = FORMAT.summarize(file, deep=deep)
    assert isinstance(summary, RunSummary)
    return summary


def written(folder: Path, *records: Record) -> Path:
    path = folder / "session-state" / SESSION / "events.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(records))
    os.utime(path, (MTIME, MTIME))
    return path


def read_records(folder: Path, *records: Record) -> Run:
    return read(written(folder, *records))


def spans_of(run: Run, operation: Operation) -> list[Span]:
    return [span for span in run.spans if span.operation is operation]


def only(run: Run, operation: Operation) -> Span:
    (span,) = spans_of(run, operation)
    return span


def parent_of(run: Run, span: Span) -> Span | None:
    parent_index = run.parent(run.index[span.id])
    return None if parent_index is None else run.spans[parent_index]


# ------------------------------------------------------------------------------------------------------- what is a what


def test_a_run_has_the_names_that_people_know_it_by() -> None:
    summary = case("agents").summary
    assert (summary.id, summary.name, summary.agent, summary.model) == (SESSION, "orchard", "copilot", "gpt-5")
    assert (summary.prompt, summary.label) == ("Count the ripe pears and prune the rest", "The pears' day")
    assert (summary.tags, summary.source, summary.writer) == (("pears",), "/home/ada/orchard", "1.0.102")


def test_workspace_completes_the_first_event() -> None:
    run = case("live")
    assert (run.summary.name, run.summary.tags, run.summary.label) == ("bed", ("main",), None)
    assert run.body.attributes["workspace.yaml"]["name"] == "Dig over"


def test_turns_are_the_steps_and_stand_as_they_ended() -> None:
    turns = [span for span in case("agents").spans if span.is_step]
    assert [(span.step, span.status, span.status_word, span.preview) for span in turns] == [
        (1, Status.OK, None, "First the list, then the test."),
        (2, Status.OK, None, "Two helpers look at it."),
        (3, Status.CANCELLED, "user_initiated", "There are too many to"),
    ]
    assert turns[0].duration_ms == 15_000


def test_a_response_is_one_call_with_what_it_thought_said_asked_for_and_used() -> None:
    run = case("agents")
    first = spans_of(run, Operation.CHAT)[0]
    assert (first.model, first.duration_ms, first.usage) == ("gpt-5", 250, Usage(1200, 85, None, 900, 0, 30))
    body = run.load(first)
    assert body.output_messages == (
        Message(
            "assistant",
            (
                Reasoning("**Looking** at the list first."),
                Text("First the list, then the test."),
                ToolCall("call_a", "bash", {"command": "wc -l pears.csv"}),
                ToolCall("call_b", "bash", {"command": "pytest -q"}),
                ToolCall("call_c", "edit", {"path": "prune.py", "old_str": "x"}),
            ),
            finish_reason="tool_calls",
        ),
    )
    assert body.attributes["assistant.message"]["reasoningOpaque"] == "encrypted, 19 characters"
    assert body.raw.count(b"\n") == 1


def test_calls_stand_below_the_response_that_asked_for_them_and_say_how_they_went() -> None:
    run = case("agents")
    calls = [span for span in spans_of(run, Operation.EXECUTE_TOOL) if span.step == 1]
    assert [(span.name, span.preview, span.status, span.status_source, span.duration_ms) for span in calls] == [
        ("bash", "wc -l pears.csv", Status.OK, StatusSource.EXIT, 5000),
        ("bash", "pytest -q", Status.ERROR, StatusSource.EXIT, 3000),
        ("edit", "prune.py", Status.ERROR, StatusSource.EXPLICIT, 1000),
    ]
    assert {parent_of(run, span) for span in calls} == {spans_of(run, Operation.CHAT)[0]}
    assert [span.error for span in calls] == [
        None,
        Error("FAILED test_ripe: expected 7\n<exited with exit code 1>", "exit 1"),
        Error("old_str is not in the file", "failure"),
    ]
    body = run.load(calls[0])
    assert (body.input, body.output) == ({"command": "wc -l pears.csv"}, "9 pears.csv")


def test_sub_agents_are_distinguished_and_below_their_calls() -> None:
    run = case("agents")
    agents = spans_of(run, Operation.INVOKE_AGENT)
    assert [(span.name, span.preview, span.note, span.status, span.duration_ms) for span in agents] == [
        ("explore", "Look at the trees", "scout", Status.OK, 14_250),
        ("explore", "Look at the tools", "scout", Status.ERROR, 900),
    ]
    assert [getattr(parent_of(run, span), "preview", "") for span in agents] == [
        "Look at the trees",
        "Look at the tools",
    ]
    assert [span.usage for span in agents] == [Usage(total_tokens=2570), Usage(total_tokens=1285)]
    assert agents[1].error == Error("the whetstone is gone")
    for agent, said in zip(agents, (["I ask the trees.", "Seven are ripe."], ["They are blunt."]), strict=True):
        begin = run.index[agent.id]
        within = run.spans[begin : begin + run.sizes[begin]]
        assert [span.preview for span in within if span.operation is Operation.CHAT] == said
        assert not any(span.is_step for span in within)


def test_sub_agents_of_old_versions_are_known_by_their_call_alone() -> None:
    run = case("old")
    agent = only(run, Operation.INVOKE_AGENT)
    call = parent_of(run, agent)
    assert call is not None
    assert (agent.name, call.name, call.preview) == ("carrier", "task", "Fetch water")
    view = next(span for span in run.spans if span.name == "view")
    assert (view.status, view.status_word, view.error) == (Status.CANCELLED, "denied", None)
    begin = run.index[agent.id]
    assert run.index[view.id] in range(begin, begin + run.sizes[begin])


def test_a_call_that_began_before_its_response_was_recorded_is_below_it() -> None:
    run = case("old")
    call = spans_of(run, Operation.EXECUTE_TOOL)[0]
    assert (call.name, getattr(parent_of(run, call), "operation", None)) == ("bash", Operation.CHAT)
    first = run.load(spans_of(run, Operation.CHAT)[0]).output_messages[0].parts
    assert first[0] == Reasoning("Roses like mornings.")
    assert ToolCall("call_1", "bash", {"command": "date"}) in first


def test_messages_say_who_sent_them_and_what_was_attached() -> None:
    run = case("agents")
    messages = [span for span in spans_of(run, Operation.MESSAGE) if span.parent_id is None]
    assert [(span.name, span.note) for span in messages] == [
        ("user", ""),
        ("system", ""),
        ("meta", "skill-pruning"),
        ("user", ""),
    ]
    parts = run.load(messages[0]).input_messages[0].parts
    assert parts[1] == Blob("file", {"type": "file", "path": "/home/ada/orchard/pears.csv", "displayName": "pears.csv"})
    assert run.body.system_prompt == "You are a gardener."
    assert run.body.last_user == "Now the apples"


def test_hooks_permissions_and_compactions_are_one_row_each() -> None:
    run = case("agents")
    hooks = [(span.name, span.preview, span.status, span.error) for span in spans_of(run, Operation.HOOK)]
    assert hooks == [
        ("preToolUse", "bash", Status.OK, None),
        ("postToolUse", "edit", Status.ERROR, Error("lint.sh: not found")),
    ]
    asked = only(run, Operation.POLICY)
    assert (asked.status, asked.status_word, asked.duration_ms) == (Status.OK, "approved-for-session", 1000)
    assert getattr(parent_of(run, asked), "preview", "") == "pytest -q"
    compaction = next(span for span in run.spans if span.name == "compaction")
    assert (compaction.preview, compaction.note) == ("150000 → 20000 tokens", "threshold")
    assert compaction.usage == Usage(1200, 85, None, 900, 0, 30)


def test_unfinished_call_waits() -> None:
    run = case("live")
    waiting = [run.spans[position] for position in run.unended] + spans_of(run, Operation.POLICY)
    assert [(span.name, span.status) for span in waiting] == [
        ("turn", Status.UNKNOWN),
        ("task", Status.UNKNOWN),
        ("explore", Status.UNKNOWN),
        ("turn", Status.UNKNOWN),
        ("bash", Status.UNKNOWN),
        ("permission", Status.PAUSED),
    ]
    assert [problem.where for problem in run.problems] == ["last line"]


@pytest.mark.parametrize("last", [event("session.resume"), shutdown()], ids=["resumed", "shut down"])
def test_after_the_end_nothing_runs_any_more(tmp_path: Path, last: Record) -> None:
    lines = [json.loads(line) for line in file_of("live").read_bytes().split(b"\n")[:-1]]
    run = read_records(tmp_path, *lines, last)
    assert not any(span.status in (Status.RUNNING, Status.PAUSED) for span in run.spans)


# ------------------------------------------------------------------------------------------------------------ how it is


@pytest.mark.parametrize(
    ("records", "status", "word"),
    [
        ([shutdown()], Status.OK, "routine"),
        ([], Status.UNKNOWN, None),
        ([shutdown(), event("session.resume")], Status.UNKNOWN, None),
        ([shutdown(), event("hook.end", hookInvocationId="h")], Status.OK, "routine"),
        ([event("session.error", errorType="quota", message="no"), shutdown()], Status.ERROR, "routine"),
        ([event("session.error", message="no"), says("Yet"), shutdown()], Status.OK, "routine"),
        ([event("session.error", AGENT, message="no"), shutdown()], Status.OK, "routine"),
        ([event("abort", reason="user_initiated"), shutdown()], Status.CANCELLED, "user_initiated"),
        ([event("abort", reason="user_initiated"), user("On"), shutdown()], Status.OK, "routine"),
        ([event("abort", reason="x"), user("", source="skill-x"), shutdown()], Status.CANCELLED, "x"),
        ([shutdown(shutdownType="error", errorReason="out of memory")], Status.ERROR, "error"),
    ],
)
@pytest.mark.parametrize("long", [False, True])
def test_the_last_events_of_a_session_have_its_status(
    tmp_path: Path, records: list[Record], status: Status, word: str | None, *, long: bool
) -> None:
    filling = [record for n in range(60) for record in (begins(f"c{n}"), ends(f"c{n}", "x" * 2000))] if long else []
    path = written(tmp_path, start(), user("Prune"), turn(), *filling, says("So be it"), *records)
    assert (path.stat().st_size > HEAD_SIZE) == long
    quick, deep = summary(path, deep=False), summary(path, deep=True)
    assert (deep.status, deep.status_word) == (status, word)
    assert (quick.status, quick.status_word, quick.prompt, quick.model) == (status, word, "Prune", "gpt-5")
    assert plain(deep) == plain(read(path).summary)


def test_a_failed_run_names_what_failed(tmp_path: Path) -> None:
    error = event("session.error", errorType="quota", message="no requests left")
    run = read_records(tmp_path, start(), user("Prune"), turn(), ends("lost"), error, turn_end(), shutdown())
    cause = run.summary.first_error
    assert cause is not None
    assert (cause.text, cause.name, run.index.get(cause.span or "")) == ("quota: no requests left", "session.error", 3)
    failed = run.span(run.steps[0].span)
    assert failed is not None
    assert failed.status is Status.ERROR


@pytest.mark.parametrize(
    ("data", "status", "source"),
    [
        ({}, Status.OK, StatusSource.EXPLICIT),
        ({"success": None}, Status.OK, StatusSource.DERIVED),
        ({"success": False, "error": {"message": "no", "code": "rejected"}}, Status.CANCELLED, StatusSource.EXPLICIT),
        ({"success": False, "error": "no"}, Status.ERROR, StatusSource.EXPLICIT),
        ({"success": None, "error": {"message": "no"}}, Status.ERROR, StatusSource.EXPLICIT),
        ({"shellExecution": {"exitCode": 0}}, Status.OK, StatusSource.EXIT),
        ({"shellExecution": {"exitCode": -9}}, Status.ERROR, StatusSource.EXIT),
        ({"toolTelemetry": {"metrics": {"exit_code": 2.0}}}, Status.ERROR, StatusSource.EXIT),
        ({"result": {"content": "Exit code: 3"}}, Status.OK, StatusSource.EXPLICIT),
    ],
)
def test_the_result_of_a_call_is_its_status(tmp_path: Path, data: Record, status: Status, source: StatusSource) -> None:
    path = written(tmp_path, start(), turn(), says("", asks("c")), begins("c"), ends("c", **data))
    span = only(read(path), Operation.EXECUTE_TOOL)
    assert (span.status, span.status_source) == (status, source)
    assert (span.error is not None) == (status is Status.ERROR)
    assert summary(path, deep=True).errors == (status is Status.ERROR)


# --------------------------------------------------------------------------------------------------------------- tokens


def test_a_repeated_call_is_counted_once(tmp_path: Path) -> None:
    said = says("Hi", apiCallId="a", outputTokens=85)
    run = read_records(
        tmp_path, start(), turn(), said, used("a", 1), used("a", 1), used("b", 1), turn_end(), shutdown(1)
    )
    assert run.summary.usage == Usage(1200, 85, None, 900, 0, 30)
    assert not any(total.differs for total in run.body.totals)
    assert [span.preview for span in spans_of(run, Operation.META)[:2]] == ["counted before", "counted before"]


def test_old_sessions_have_the_tokens_that_each_shutdown_tells(tmp_path: Path) -> None:
    run = case("old")
    assert run.summary.usage == Usage(1157, 31, None, 850, 7)
    assert Total("output_tokens", 6, 6) in run.body.totals
    mixed = [start(), says("Hi", outputTokens=3), shutdown(2), event("session.resume"), turn(), used("c", 1)]
    assert read_records(tmp_path, *mixed, says("Ho", apiCallId="c", outputTokens=85)).summary.usage == Usage(
        3600, 255, None, 2700, 0, 90
    )
    cumulative = read_records(tmp_path, *mixed, shutdown(1)).body.totals
    assert not any(total.differs for total in cumulative)


def test_a_shutdown_that_tells_of_all_or_only_of_the_last_part_is_right_and_another_is_not(tmp_path: Path) -> None:
    parts = [start(), turn(), used("a", 1), turn_end(), shutdown(1), event("session.resume"), turn(), used("b", 2)]
    for calls, right in ((1, True), (2, True), (3, False)):
        totals = read_records(tmp_path, *parts, turn_end(), shutdown(calls)).body.totals
        assert {total.differs for total in totals if total.declared} == {not right}


def test_usage_of_a_compaction_counts_with_or_without_a_record(tmp_path: Path) -> None:
    done = event(
        "session.compaction_complete", success=True, compactionTokensUsed={"inputTokens": 9, "outputTokens": 1}
    )
    alone = read_records(tmp_path, start(), event("session.compaction_start"), done)
    assert alone.summary.usage == Usage(9, 1)
    record = used("a", 1, interactionType="conversation-compaction")
    both = read_records(tmp_path, start(), event("session.compaction_start"), record, done, shutdown(1))
    assert both.summary.usage == Usage(1200, 85, None, 900, 0, 30)
    assert both.summary.llm_calls == 0


def sessions() -> list[Path]:
    own = [path for path in CASES.rglob("*.jsonl") if path.name != "drift.jsonl"]
    return sorted(own if SHARED is None else [*own, *sample("copilot-cli").rglob("*.jsonl")])


@pytest.mark.parametrize("path", sessions(), ids=lambda path: f"{path.parent.name[:8]}-{path.stem}")
def test_tokens_are_those_of_the_raw_lines(path: Path) -> None:
    usage = read(path).summary.usage or Usage()
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_creation_tokens)
    counted = dict(zip(NAMES, [count or 0 for count in (*counts, usage.reasoning_tokens)], strict=True))
    assert counted == tokens(path)
    assert summary(path, deep=True).usage == read(path).summary.usage


@needs_shared
@pytest.mark.parametrize("ident", ["619ae85f-b4ba-49c8-a2d1-9df6189e8b8d", "e3e5cf71-2854-42b8-bfe8-1f30834fe664"])
def test_real_sessions_declare_what_is_counted(ident: str) -> None:
    path = sample("copilot-cli", "generated-1.0.102", "session-state", ident, "events.jsonl")
    run = read(path)
    assert [total.differs for total in run.body.totals] == [False] * 8
    assert all(total.counted is not None for total in run.body.totals)
    assert run.problems == ()


# -------------------------------------------------------------------------------------------------------- damage, drift


def test_unknown_kinds_are_rows_of_their_own_and_no_problem(tmp_path: Path) -> None:
    run = read_records(
        tmp_path, start(), event("session.gust", strength=7), {"type": "weather", "sky": "grey"}, shutdown()
    )
    unknown = spans_of(run, Operation.UNKNOWN)
    assert [span.name for span in unknown] == ["session.gust", "weather"]
    assert [run.load(span).attributes.get(name) for span, name in zip(unknown, ("strength", "sky"), strict=True)] == [
        7,
        "grey",
    ]
    assert run.problems == ()
    assert run.summary.status is Status.OK


def test_damage_is_reported_and_the_rest_is_read() -> None:
    run = case("drift")
    assert sorted((problem.where, problem.reason) for problem in run.problems) == [
        ("last line", "cut off: 49 bytes, not a complete record"),
        ("line 10", "call of rake has no id: its result can't be matched"),
        ("line 11", "result has no call id"),
        ("line 17", "not a JSON object: [1,2]"),
        ("line 9", "no open call 'call_lost' for this result"),
    ]
    assert run.summary.first_error is not None
    assert run.summary.first_error.message == "out of memory"


def test_a_file_without_any_event_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"nothing\n")
    os.utime(path, (MTIME, MTIME))
    with pytest.raises(FormatError, match="no record could be read"):
        summary(path, deep=True)


def test_a_changed_file_has_no_bodies_of_what_was_there(tmp_path: Path) -> None:
    path = written(tmp_path, start(), user("Prune"))
    run = read(path)
    path.write_bytes(path.read_bytes().replace(b"Prune", b"Water"))
    with pytest.raises(FormatError, match="the record was replaced"):
        run.load(run.spans[0])


def test_events_beyond_the_first_thousand_of_a_row_have_rows_of_their_own(tmp_path: Path) -> None:
    progress = [event("tool.execution_progress", toolCallId="c", progressMessage=f"{n} done") for n in range(1002)]
    run = read_records(tmp_path, start(), turn(), says("", asks("c")), begins("c"), *progress, ends("c"))
    call = only(run, Operation.EXECUTE_TOOL)
    assert (call.status, SpanRef.of(call.at).size) == (Status.OK, len(run.load(call).raw) - 999)
    assert run.load(call).attributes["tool.execution_progress 999"]["progressMessage"] == "998 done"
    alone = [run.load(span).attributes for span in run.spans if span.name == "tool.execution_progress"]
    assert [attributes["progressMessage"] for attributes in alone] == ["999 done", "1000 done", "1001 done"]
    assert any(span.name == "tool.execution_complete" for span in run.spans)


@pytest.mark.parametrize("text", ["name: [", "name", ": x", "name: 'it''s'\n", "\x00\xff", "cwd: /a/b\ncwd: ''\n", ""])
def test_a_strange_workspace_is_no_problem(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, start(context={}), user("Prune"))
    path.with_name("workspace.yaml").write_bytes(text.encode("latin-1") + b"x: y\n" * 5000)
    run = read(path)
    assert run.problems == ()
    assert run.summary.name == SESSION


def test_other_files_of_a_session_folder_are_ignored(tmp_path: Path) -> None:
    shutil.copytree(CASES / "agents" / "input", tmp_path / "in")
    files = {Path(file.path).name: file for file in scan(SOURCE, [str(tmp_path)], deep=True)}
    assert {name: file.format for name, file in files.items() if file.runs} == {"events.jsonl": "copilot"}
    rest = [file for name, file in files.items() if name != "events.jsonl"]
    assert [(bool(file.problems), bool(file.reason)) for file in rest] == [(False, True)] * len(rest)


# ----------------------------------------------------------------------------------------------------- ways to the same


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Sessions that are mostly as they should be."""
    random = Random(draw(st.integers(0, 1 << 32)))
    odd = draw(st.sampled_from([0.0, 0.05, 0.3]))
    records, number = [start()], 0
    for step in range(random.randint(1, 6)):
        records.append(user("Prune"))
        records.append(turn(step))
        asked = []
        for _ in range(random.randint(0, 3)):
            number += 1
            asked.append(f"c{number}")
        records.append(used(f"api-{step}", step, finishReason=random.choice(["stop", "length", None])))
        records.append(says("So", *[asks(call) for call in asked], apiCallId=f"api-{step}", model="gpt-5"))
        records += [begins(call) for call in asked]
        if asked and random.random() < 0.5:
            agent = f"agent-{step}"
            ended = random.choice(["completed", "failed"])
            records.append(event("subagent.started", agent, toolCallId=asked[0], agentName="scout"))
            records += [turn(0, agent), says("There", agent=agent, outputTokens=3), turn_end(0, agent)]
            records.append(event(f"subagent.{ended}", agent, toolCallId=asked[0], error="lost", durationMs=5))
        records += [ends(call, success=random.random() < 0.7) for call in asked]
        records.append(random.choice([event("session.error", message="no"), event("abort"), event("session.info")]))
        records += random.choice([[turn_end(step)], [], [turn_end(step), shutdown(step), event("session.resume")]])
    records.append(random.choice([shutdown(1), event("session.info", message="still there")]))
    mixed = [record for record in records[1:] if random.random() >= odd]
    if random.random() < odd:
        random.shuffle(mixed)
    return [
        record | {"timestamp": f"2026-03-02T09:{place // 60:02d}:{place % 60:02d}.000Z"}
        for place, record in enumerate([records[0], *mixed])
    ]


@given(records=histories())
def test_the_deep_summary_is_that_of_the_whole_run(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record]
) -> None:
    path = written(tmp_path_factory.mktemp("count"), *records)
    assert plain(summary(path, deep=True)) == plain(read(path).summary)


@given(
    records=histories(),
    cuts=st.lists(st.floats(0, 1), max_size=6),
    tail=st.sampled_from([b"", b'{"type":', b'{"type":"?"}', b"\n"]),
)
def test_torn_and_in_bursts_is_read_as_at_once(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], cuts: list[float], tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("grow") / "events.jsonl"
    data = encoded(records) + tail
    path.write_bytes(b"")
    growing = Growing(FORMAT, RunRef("copilot", str(path)))
    for size in (*sorted(round(cut * len(data)) for cut in cuts), len(data)):
        with path.open("ab") as stream:
            stream.write(data[path.stat().st_size : size])
        growing.read(whole=size == len(data))
    assert plain(growing.run().summary) == plain(read(path).summary)
    assert [plain(span) for span in growing.run().spans] == [plain(span) for span in read(path).spans]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["agents", "live", "old"])
def test_sessions_are_followed(tmp_path: Path, name: str, seed: int) -> None:
    source = CASES / name / "input"
    grown(source, tmp_path, seed, {path: path.read_bytes() for path in source.rglob("*.jsonl")})


@pytest.mark.parametrize("text", ["7 of 9", "spring", "the whetstone is gone", "lint.sh", "**Looking**", "pears.csv"])
def test_a_search_finds_what_is_shown(text: str) -> None:
    path = str(file_of("agents"))
    ways = grep(SOURCE, [path], Needle(text)), grep_runs(SOURCE, [RunRef("copilot", path)], Needle(text))
    hits = [[hit for hit in results if isinstance(hit, Hit)] for results in ways]
    assert hits[0]
    assert [hit.span for hit in hits[0]] == [hit.span for hit in hits[1]]


def test_two_sessions_are_compared_from_where_they_part(tmp_path: Path) -> None:
    begin = [start(), user("Prune"), turn(), says("First", asks("c")), begins("c")]
    a = read_records(
        tmp_path / "a", *begin, ends("c", "9 pears"), turn_end(), turn(1), says("Nine"), turn_end(1), shutdown()
    )
    b = read_records(
        tmp_path / "b", *begin, ends("c", "7 pears"), turn_end(), turn(1), says("Seven"), turn_end(1), shutdown()
    )
    diff = compare(a, b)
    assert diff.first is not None
    row = diff.rows[diff.first.row]
    assert row.a is not None
    assert diff.a.spans[row.a].name == "bash"


# -------------------------------------------------------------------------------------------------------------- samples


@needs_shared
@pytest.mark.shared
def test_every_line_of_a_real_session_is_shown() -> None:
    for path in sample("copilot-cli", "generated-1.0.102").rglob("events.jsonl"):
        run = read(path)
        raw = {line for span in run.spans for line in run.load(span).raw.split(b"\n")}
        assert all(line in raw for line in path.read_bytes().split(b"\n")[1:-1])
