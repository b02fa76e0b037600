"""Claude Code sessions: lines are one response, files one run; forks, rewinds, tokens, growth, damage and drift."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.shared import SHARED, needs_shared, sample
from tracetui.analysis.search import Hit, Needle
from tracetui.diff.comparison import compare
from tracetui.formats.claude_code import ClaudeCode
from tracetui.live.scan import scan
from tracetui.live.search import grep, grep_runs
from tracetui.model import Operation, Reasoning, Run, RunRef, RunSummary, Span, Status, StatusSource, Usage
from tracetui.sources.local import LocalSource
from tracetui.store.claims import Claims
from tracetui.store.relations import pairs_of
from tracetui.testing import Growing
from tracetui.testing import read_run as run_of
from tracetui.testing.reading import MTIME, Follower, plain_run

CASES = Path(__file__).parent / "claude_code"
FORMAT = ClaudeCode()
SOURCE = LocalSource()


with_case = partial(pytest.mark.parametrize, "case", indirect=True)


def session(folder: Path, name: str = "") -> Path:
    """The file of the session that begins with `name`."""
    return next(path for path in sorted(folder.rglob(f"{name}*.jsonl")) if path.name[:6] not in ("agent-", "journa"))


def read(path: Path) -> Run:
    return run_of(FORMAT, RunRef(FORMAT.name, str(path)))


def listed(folder: Path, *, deep: bool = True) -> list[RunSummary]:
    """The runs that a directory is listed with, each with what no other counts."""
    runs = [run for file in scan(SOURCE, [str(folder)], deep=deep) for run in file.runs]
    return [*map(Claims(runs).net, runs)]


def claims_of(folder: Path, *, deep: bool = True) -> Claims:
    """The claims of the runs below a directory."""
    return Claims(run for file in scan(SOURCE, [str(folder)], deep=deep) for run in file.runs)


def span(run: Run, name: str) -> Span:
    """The first span of that id or name."""
    return next(span for span in run.spans if name in (span.id, span.name))


def parent(run: Run, span: Span) -> str | None:
    return span.parent_id


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------- one run


@with_case(["session"])
def test_the_lines_of_a_response_are_one_call_of_the_model_and_count_once(case: Path) -> None:
    run = read(session(case))
    chat = span(run, "msg_01")
    assert (chat.operation, chat.step, chat.preview) == (Operation.CHAT, 1, "I look for the photo.")
    assert chat.usage == Usage(1503, 61, cache_read_tokens=0, cache_creation_tokens=1500, cache_write_1h_tokens=0)
    parts = run.load(chat).output_messages[0].parts
    assert [type(part).__name__ for part in parts] == ["Reasoning", "Text", "ToolCall"]
    assert run.summary.steps == 7


@with_case(["session"])
def test_calls_that_are_made_at_once_are_one_turn(case: Path) -> None:
    run = read(session(case))
    assert [span.name for span in run.spans if span.parent_id == "msg_02"] == ["Read", "Bash"]
    assert (span(run, "toolu_read").status, span(run, "toolu_bash").status) == (Status.OK, Status.ERROR)
    assert span(run, "toolu_bash").status_source is StatusSource.EXPLICIT
    assert span(run, "PostToolUse").parent_id == "toolu_bash"
    assert not any(span.name == "abandoned branch" for span in run.spans)


@with_case(["session"])
def test_a_thought_of_which_only_the_seal_is_kept_is_no_message(case: Path) -> None:
    run = read(session(case))
    body = run.load(span(run, "msg_02"))
    assert not any(isinstance(part, Reasoning) for part in body.output_messages[0].parts)
    assert "c2VhbA==" in json.dumps(body.attributes)


@with_case(["session"])
def test_generated_messages_are_no_prompts(case: Path) -> None:
    run = read(session(case))
    said = [span.name for span in run.spans if span.operation is Operation.MESSAGE]
    assert said == ["command", "command output", "user", "compact summary", "meta", "user", "interrupted", "user"]
    assert run.summary.prompt == "Count the rings of the felled oak"
    assert span(run, "compaction").note == "manual"


@with_case(["session"])
def test_an_answer_that_was_too_long_is_found_beside_the_session(case: Path) -> None:
    run = read(session(case))
    body = run.load(span(run, "toolu_log"))
    assert body.output == "saw 1 cut\nsaw 2 cut\nsaw 3 stuck in a knot\n"
    assert "<persisted-output>" in body.attributes["result.content"]


@with_case(["session"])
def test_a_path_in_an_answer_leads_nowhere_else(case: Path) -> None:
    path = session(case)
    data = path.read_bytes().replace(b"tool-results/toolu_log.txt", b"tool-results/../../secret.txt")
    path.with_name("secret.txt").write_text("secret")
    path.write_bytes(data)
    run = read(path)
    assert "secret" not in str(run.load(span(run, "toolu_log")).output).replace("secret.txt", "")


@with_case(["session"])
def test_a_session_that_ends_with_a_failed_call_of_the_api_failed(case: Path) -> None:
    path = session(case)
    summary = read(path).summary
    assert (summary.status, summary.status_source) == (Status.ERROR, StatusSource.EXPLICIT)
    assert summary.first_error is not None
    assert summary.first_error.text == "invalid_request: API Error: the forest is closed"
    write(path, [*records(path), {**records(path)[5], "uuid": "again"}])
    assert read(path).summary.status is Status.UNKNOWN  # somebody goes on


@with_case(["plain"])
@pytest.mark.parametrize(
    ("said", "flag", "status"),
    [
        ("Error: no such file", None, Status.ERROR),
        ("Error: no such file", False, Status.OK),
        ("no Error: at all", None, Status.OK),
    ],
)
def test_a_result_that_is_only_an_error_is_a_failure_where_no_flag_says_more(
    case: Path, said: str, flag: bool | None, status: Status
) -> None:
    path = session(case)
    lines = records(path)
    record = next(record for record in lines if isinstance(record.get("toolUseResult"), dict))
    answer = next(block for block in record["message"]["content"] if block["type"] == "tool_result")
    answer.pop("is_error", None)
    if flag is not None:
        answer["is_error"] = flag
    record["toolUseResult"] = said
    before = read(path).summary.errors or 0
    write(path, lines)
    run = read(path)
    assert span(run, answer["tool_use_id"]).status is status
    (summary,) = FORMAT.summarize(SOURCE.open(str(path)), deep=True)
    assert isinstance(summary, RunSummary)
    assert summary.errors == run.summary.errors == before + (status is Status.ERROR)


@with_case(["session"])
def test_unknown_kinds_are_shown_and_no_problem(case: Path) -> None:
    run = read(session(case))
    assert [span.operation for span in run.spans if span.name == "weather-report"] == [Operation.UNKNOWN] * 2
    assert not any("weather-report" in problem.reason for problem in run.problems)


def test_every_kind_of_record_in_a_stream_is_known(tmp_path: Path) -> None:
    """What ``claude -p --output-format stream-json --include-partial-messages`` writes (2.1.332)."""
    others = [
        "auth_status",
        "prompt_suggestion",
        "rate_limit_event",
        "stream_event",
        "tool_progress",
        "tool_use_summary",
    ]
    facts: dict[str, Any] = {"session_id": "9d1f", "uuid": "a1", "timestamp": "2026-03-02T09:15:00Z"}
    started = {"subtype": "init", "tools": ["Bash"], "model": "claude-opus-5", "mcp_servers": [], "skills": []}
    task = {"subtype": "task_started", "task_id": "t1", "tool_use_id": "toolu_1", "description": "count apples"}
    path = tmp_path / "stream.jsonl"
    lines: list[dict[str, Any]] = [
        {"type": "system", **started},
        {"type": "system", **task},
        *({"type": kind} for kind in others),
    ]
    write(path, [line | facts for line in lines])
    ledger = read(path).summary.ledger
    assert (ledger.kinds, ledger.fields) == ((), ())


def test_a_stream_marks_the_response_that_is_an_error_of_the_api(tmp_path: Path) -> None:
    facts = {"session_id": "9d1f", "uuid": "a1", "timestamp": "2026-03-02T09:15:00Z", "error": "unknown"}
    message = {"id": "m1", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "400"}]}
    path = tmp_path / "stream.jsonl"
    write(path, [{"type": "assistant", "message": message, "is_api_error_message": True, **facts}])
    assert [span.status for span in read(path).spans] == [Status.ERROR]


@with_case(["rewind"])
def test_rewound_records_are_a_separate_branch(case: Path) -> None:
    run = read(session(case))
    branches = [span for span in run.spans if span.name == "abandoned branch"]
    assert [(branch.preview, branch.note) for branch in branches] == [
        ("In ink", "2 responses"),
        ("In chalk", "1 response"),
    ]
    assert span(run, "toolu_ink").parent_id == "msg_r2"
    assert span(run, "msg_r2").parent_id == branches[0].id
    assert [span.id for span in run.spans if span.is_step] == ["msg_r1", "msg_r5"]
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 1 + 2 + 3 + 4 + 5  # they were paid for all the same


@with_case(["plain"])
def test_a_session_is_counted_as_it_is_read(case: Path) -> None:
    path = session(case)
    os.utime(path, (MTIME, MTIME))
    (counted,), run = listed(case), read(path)
    assert counted == run.summary
    assert counted.errors == 6
    assert next(span.id for span in run.spans if span.error is not None) == "toolu_p2"


_PROMPT: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": "Dig"}}


def _said(uuid: str, ident: str, *calls: str) -> dict[str, Any]:
    content = [{"type": "tool_use", "id": call, "name": "Bash", "input": {}} for call in calls]
    usage = {"input_tokens": 3, "output_tokens": 2, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": ident, "role": "assistant", "model": "m", "content": content, "usage": usage}
    return {"type": "assistant", "uuid": uuid, "parentUuid": "u1", "message": message}


@pytest.mark.parametrize(
    "lines",
    [
        [_PROMPT | {"uuid": "u1"}, _said("u2", "u1"), _said("u3", "u1")],
        [_PROMPT | {"uuid": "u1"}, _said("u2", "m1"), _PROMPT | {"uuid": "m1", "parentUuid": "u2"}],
        [_PROMPT | {"uuid": "u1"}, _said("u2", "m1", "u1")],
        [_PROMPT | {"uuid": "u1"}, _said("u2", "m1", "m1")],
        [_PROMPT | {"uuid": "u1"}, _said("u2", "m1", "c1"), _PROMPT | {"uuid": "c1", "parentUuid": "u2"}],
        [_PROMPT | {"uuid": "u1"}, _said("u2", "m1", "c1"), _said("u3", "c1")],
        [_PROMPT | {"uuid": "l2"}, {"type": "mode", "mode": "normal"}],
        [_PROMPT | {"uuid": "u1"}, _said("u2", "m1", "l3"), {"type": "mode", "mode": "normal"}],
    ],
    ids=["response as prompt", "prompt as response", "call as prompt", "call as response", "prompt as call",
         "response as call", "prompt as line", "call as line"],
)  # fmt: skip
def test_ids_that_records_responses_and_calls_share_are_counted_as_they_are_read(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    path = tmp_path / "s.jsonl"
    envelope = {"sessionId": "s", "isSidechain": False, "timestamp": "2026-01-01T00:00:00.000Z", "parentUuid": None}
    write(path, [envelope | line for line in lines])
    os.utime(path, (MTIME, MTIME))
    (counted,) = listed(tmp_path)
    assert counted == read(path).summary


# -------------------------------------------------------------------------------------------------------- sub-agents


@with_case(["agents"])
def test_files_of_sub_agents_hang_under_the_calls_that_started_them(case: Path) -> None:
    run = read(session(case))
    parents = {span.id: span.parent_id for span in run.spans if span.operation is Operation.INVOKE_AGENT}
    assert parents == {
        "agent:owl01": "toolu_owl",
        "agent:mouse01": "owl01/toolu_mouse",
        "agent:bat01": "toolu_bat",
        "agent:ant01": "toolu_flow",
        "agent:newt9": None,
    }
    assert [span.name for span in run.spans if span.operation is Operation.INVOKE_AGENT][1:3] == ["owl", "mouse"]
    assert span(run, "agent:bat01").status is Status.UNKNOWN  # in the background: nobody says how it went
    assert span(run, "bat01/msg_m1").usage is None  # given along: it was paid for above
    assert run.load(span(run, "agent:owl01")).attributes["toolUseId"] == "toolu_owl"


@with_case(["agents", "old"])
def test_a_file_of_a_sub_agent_is_no_run_of_its_own_but_where_it_is_named(case: Path) -> None:
    main = session(case)
    agents = sorted(path for path in case.rglob("agent-*.jsonl") if "lone" not in path.name)
    files = {file.path: file for file in scan(SOURCE, [str(case)], deep=True)}
    for path in agents:
        assert (files[str(path)].kind, files[str(path)].part_of) == ("ignored", str(main))
        (alone,) = scan(SOURCE, [str(path)], deep=True)
        assert alone.runs[0].id == path.stem.removeprefix("agent-")
    runs = {run.ref.path for run in listed(case)}
    assert runs == {str(main)} | {str(path) for path in case.rglob("agent-lone*.jsonl")}


@with_case(["agents"])
def test_messages_of_a_sub_agent_are_in_its_session(case: Path) -> None:
    needle = Needle("Roots everywhere", ignore_case=False)
    main = session(case)
    ways = grep(SOURCE, [str(case)], needle), grep_runs(SOURCE, [RunRef(FORMAT.name, str(main))], needle)
    for hits in ways:
        (hit,) = [hit for hit in hits if isinstance(hit, Hit)]
        assert (hit.ref.path, hit.span) == (str(main), "ant01/msg_w1")


@with_case(["agents"])
def test_a_sub_agent_without_its_session_is_a_run(case: Path) -> None:
    session(case).write_bytes(b"")
    assert len(listed(case)) == len(list(case.rglob("agent-*.jsonl")))


@with_case(["old"])
def test_sub_agents_within_the_session_are_identified_by_their_task(case: Path) -> None:
    run = read(session(case))
    within = next(span for span in run.spans if span.operation is Operation.INVOKE_AGENT)
    assert within.parent_id == "toolu_task"
    below = run.children(run.index[within.id])
    assert [run.spans[i].preview for i in below] == ["Count all cones of the fir", "Counting.", "77 cones."]
    assert span(run, "agent:hedge1").parent_id == "toolu_hedge"
    assert run.summary.steps == 3


# ------------------------------------------------------------------------------------------------------------- forks


@with_case(["fork"])
def test_a_fork_and_its_original_are_a_pair_and_pay_once(case: Path) -> None:
    runs = listed(case)
    pairs = [(pair.replay.id[:2], pair.original.id[:2], pair.relation) for pair in pairs_of(runs) if pair.original]
    assert sorted(pairs) == [("f1", "f0", "fork"), ("f2", "f0", "fork")]
    assert tokens(runs) == raw_tokens(case.rglob("*.jsonl"))


@with_case(["fork"])
def test_the_comparison_with_a_fork_begins_where_it_went_another_way(case: Path) -> None:
    diff = compare(read(session(case, "f0")), read(session(case, "f1")))
    first = diff.first
    assert first is not None
    row = diff.rows[first.row]
    assert row.a is not None
    assert diff.a.spans[row.a].preview == "Then plant it"


@pytest.mark.parametrize("name", ["fork", "session", "agents"])
def test_the_list_stage_equals_reading(name: str) -> None:
    quick, deep = (listed(CASES / name / "input", deep=deep) for deep in (False, True))
    for summary, other in zip(quick, deep, strict=True):
        fields = (
            "id",
            "agent",
            "model",
            "started_at",
            "duration_ms",
            "prompt",
            "replay_of",
            "replay_of_path",
            "source",
        )
        assert [getattr(summary, key) for key in fields] == [getattr(other, key) for key in fields]


@pytest.mark.parametrize("before", [0, 12])
@pytest.mark.parametrize("between", [0, 2, 8, 50])
def test_the_list_stage_knows_a_record_that_was_written_twice(between: int, before: int, tmp_path: Path) -> None:
    lines = {line.get("uuid", "")[-2:]: line for line in records(session(CASES / "plain" / "input", "9e"))}
    failure, user, answer = lines["26"], lines["21"], lines["22"]
    path = tmp_path / "twice.jsonl"
    more = [
        {**answer, "uuid": f"u{i}", "message": {**answer["message"], "id": f"m{i}"}} for i in range(before + between)
    ]
    write(path, [user, *more[:before], failure, *more[before:], answer, failure])
    os.utime(path, (1e9, 1e9))  # nobody writes to it
    with SOURCE.open(str(path)) as file:
        (quick,) = FORMAT.summarize(file, deep=False)
    assert isinstance(quick, RunSummary)
    assert (quick.status, read(path).summary.status) == (Status.UNKNOWN, Status.UNKNOWN)


@pytest.mark.parametrize(
    ("uuid", "earlier", "status"),
    [
        ("7e", {"uuid": "7e"}, Status.UNKNOWN),
        ("7e", {"uuid": "7e", "isSidechain": True, "agentId": "yew"}, Status.ERROR),  # a record of a sub-agent
        ("7e", {"uuid": 1.5, "parentUuid": "7e"}, Status.ERROR),
        ("7e", {"uuid": "u", "toolUseResult": {"uuid": "7e"}}, Status.ERROR),
        ("\xe9\n", {"uuid": "\xe9\n"}, Status.UNKNOWN),  # escaped in JSON
        ("\xe9\n", {"uuid": "\xe8\n"}, Status.ERROR),
    ],
)
def test_the_list_stage_recognizes_an_id_that_was_left_out(
    uuid: str, earlier: dict[str, Any], status: Status, tmp_path: Path
) -> None:
    lines = {line.get("uuid", "")[-2:]: line for line in records(session(CASES / "plain" / "input", "9e"))}
    failure, user, answer = lines["26"], lines["21"], lines["22"]
    more = [{**answer, "uuid": f"u{i}", "message": {**answer["message"], "id": f"m{i}"}} for i in range(12)]
    path = tmp_path / "repeated.jsonl"
    write(path, [user, answer, {**user, **earlier}, *more, {**failure, "uuid": uuid}])
    os.utime(path, (1e9, 1e9))  # nobody writes to it
    with SOURCE.open(str(path)) as file:
        (quick,) = FORMAT.summarize(file, deep=False)
    assert isinstance(quick, RunSummary)
    assert (quick.status, read(path).summary.status) == (status, status)


def test_the_list_stage_of_a_long_session_reads_head_and_tail(tmp_path: Path) -> None:
    lines = records(session(CASES / "session" / "input"))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 3_000_000}}
    first = {**lines[5], "message": {"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}}
    path = tmp_path / "long.jsonl"
    write(path, [first, *lines[6:]])
    with SOURCE.open(str(path)) as file:
        assert FORMAT.sniff(file) > 0
        (quick,) = FORMAT.summarize(file, deep=False)
    assert isinstance(quick, RunSummary)
    deep = read(path).summary
    assert (quick.id, quick.prompt, quick.duration_ms) == (deep.id, "What is it?", deep.duration_ms)


# ------------------------------------------------------------------------------------------------------------ growth


def follow(folder: Path, target: Path, random: Random) -> None:
    """Write the files of a run piece by piece, the main one and those of sub-agents in turn, and follow it."""
    files = {path: path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))}
    main = session(folder)
    for path in folder.rglob("*"):
        if path.is_file() and path not in files:
            (target / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / path.relative_to(folder))
    ref = RunRef(FORMAT.name, str(target / main.relative_to(folder)))
    growing, follower, at = Growing(FORMAT, ref), Follower(FORMAT, ref), dict.fromkeys(files, 0)
    while any(at[path] < len(data) for path, data in files.items()):
        path = random.choice([path for path, data in files.items() if at[path] < len(data)])
        size = random.choice((3, 200, 5_000, 100_000))  # torn, and in bursts
        there = target / path.relative_to(folder)
        there.parent.mkdir(parents=True, exist_ok=True)
        with there.open("ab") as writer:
            writer.write(files[path][at[path] : at[path] + size])
        at[path] += size
        if Path(ref.path).exists():
            growing.read(whole=False)
            follower.read()
    growing.read()
    follower.read()
    _same_run(growing.run(), run_of(FORMAT, ref))


def _same_run(run: Run, right: Run) -> None:
    """Equal but for the order of sub-agents that no call is known of."""
    dumped, other = plain_run(run), plain_run(right)
    for document in (dumped, other):
        document["spans"] = sorted(document["spans"], key=lambda span: str(span["id"]))
    assert dumped == other


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["agents", "fork", "rewind", "session"])
def test_files_that_grow_in_any_order_end_in_the_same_run(tmp_path: Path, name: str, seed: int) -> None:
    folder = CASES / name / "input"
    if name == "fork":  # the original is there before anybody forks it
        shutil.copytree(session(folder, "f0").parent, tmp_path / "projects" / "-home-ada-ash", dirs_exist_ok=True)
        (tmp_path / "projects" / "-home-ada-ash" / session(folder, "f1").name).unlink()
        only = tmp_path / "only" / "projects" / "-home-ada-ash"
        only.mkdir(parents=True)
        folder = Path(shutil.copy(session(folder, "f1"), only)).parents[2]
    follow(folder, tmp_path, Random(seed))


@with_case(["agents"])
def test_a_sub_agents_file_that_is_written_anew_or_goes_begins_the_run_anew(case: Path) -> None:
    ref = RunRef(FORMAT.name, str(session(case)))
    follower = Follower(FORMAT, ref)
    follower.read()
    owl = next(case.rglob("agent-owl01.jsonl"))
    owl.write_bytes(owl.read_bytes().replace(b"Green leaves.", b"Brown leaves."))
    follower.read()
    follower.check("after writing anew")
    next(case.rglob("agent-newt9.jsonl")).unlink()
    follower.read()
    follower.check("after it went")
    assert follower.resets == 2


@with_case(["agents"])
def test_a_session_counts_as_moving_while_a_sub_agent_works(case: Path) -> None:
    main = session(case)
    for path in case.rglob("*"):  # those of sub-agents' metadata too: a fresh clone is new
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert [run.status for run in listed(case)] == [Status.UNKNOWN]
    os.utime(next(case.rglob("agent-owl01.jsonl")))
    with SOURCE.open(str(main)) as file:
        reader = FORMAT.open(file, RunRef(FORMAT.name, str(main)))
        while not reader.more(file).done:  # on a slow machine one read may not come to all of its files
            pass
        assert file.moving


# -------------------------------------------------------------------------------------------------- broken and hostile


def test_a_line_that_is_no_record_is_a_problem_and_a_half_one_at_rest(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = records(session(CASES / "rewind" / "input"))
    write(path, [lines[0], "just text", 7, lines[1]])
    with path.open("ab") as writer:
        writer.write(b'{"type":"user","mess')
    run = read(path)
    assert [problem.where for problem in run.problems] == ["line 2", "line 3", "last line"]
    assert len(run.spans) == 2


def test_sessions_of_a_relative_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = records(session(CASES / "rewind" / "input"))
    for line in lines:
        line["message"] = {"role": "model", "parts": [{"text": "I speak with another model."}]}
        del line["isSidechain"]
    write(path, lines)
    with SOURCE.open(str(path)) as file:
        assert FORMAT.sniff(file) == 0


def test_parents_that_are_not_there_or_run_in_a_circle_harm_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = records(session(CASES / "rewind" / "input"))
    for record, other in zip(lines, [*lines[3:], *lines[:3]], strict=True):
        record["parentUuid"] = other["uuid"]
    write(path, lines)
    assert {span.operation for span in read(path).spans} >= {Operation.CHAT, Operation.MESSAGE}


# -------------------------------------------------------------------------------------------------------- real files


def raw_tokens(paths: Iterator[Path]) -> dict[str, int]:
    """What the raw lines say that was used: once for each id of a response, in whatever files, the last line holds."""
    used: dict[str, dict[str, Any]] = {}
    for path in sorted(paths):
        for line in path.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            message = record.get("message") if isinstance(record, dict) else None
            if not isinstance(message, dict) or record.get("type") != "assistant":
                continue
            if isinstance(usage := message.get("usage"), dict):
                used[message.get("id") or record["uuid"]] = usage
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return {
        "input": sum(usage.get(name) or 0 for usage in used.values() for name in ("input_tokens", *cached)),
        "written": sum(usage.get(cached[0]) or 0 for usage in used.values()),
        "read": sum(usage.get(cached[1]) or 0 for usage in used.values()),
        "output": sum(usage.get("output_tokens") or 0 for usage in used.values()),
    }


def tokens(runs: list[RunSummary]) -> dict[str, int]:
    """The same sums by the runs."""
    usages = [run.usage for run in runs if run.usage is not None]
    return {
        "input": sum(usage.input_tokens or 0 for usage in usages),
        "written": sum(usage.cache_creation_tokens or 0 for usage in usages),
        "read": sum(usage.cache_read_tokens or 0 for usage in usages),
        "output": sum(usage.output_tokens or 0 for usage in usages),
    }


def real_folders() -> list[Path]:
    if SHARED is None:
        return []
    return [*sorted(sample("claude-code", "real_projects").iterdir()), sample("claude-code", "generated-2.1.197")]


@pytest.mark.parametrize("name", ["agents", "fork", "old", "plain", "rewind", "session"])
def test_tokens_are_those_of_the_raw_lines(name: str) -> None:
    folder = CASES / name / "input"
    assert tokens(listed(folder)) == raw_tokens(folder.rglob("*.jsonl"))


@needs_shared
@pytest.mark.parametrize("folder", real_folders(), ids=lambda path: path.name)
def test_tokens_of_real_sessions_are_those_of_the_raw_lines(folder: Path) -> None:
    assert tokens(listed(folder)) == raw_tokens(folder.rglob("*.jsonl"))


@needs_shared
def test_every_real_file_is_accounted_for() -> None:
    for file in scan(SOURCE, [str(sample("claude-code"))], deep=True):
        size = Path(file.path).stat().st_size
        known = file.path.endswith(".jsonl") and size and not file.path.endswith("journal.jsonl")
        assert bool(file.runs or file.part_of) == bool(known), file


@needs_shared
def test_a_real_fork_opens_where_it_went_another_way(tmp_path: Path) -> None:
    (folder,) = sample("claude-code", "generated-2.1.197", "projects").iterdir()
    sessions = read(session(folder, "723b78ff")), read(session(folder, "1b25fa54"))
    claims = Claims(run.summary for run in sessions)
    a, b = map(claims.mark, sessions)
    assert (b.summary.relation, b.summary.replay_of) == ("fork", a.summary.id)
    diff = compare(a, b)
    assert diff.first is not None
    row = diff.rows[diff.first.row]
    assert row.a is not None
    assert diff.a.spans[row.a].name == "compaction"


@needs_shared
@pytest.mark.parametrize("name", ["generated-2.1.197", "real_projects/-src-experiments-claude_p"])
def test_real_sessions_that_grow_end_in_the_same_run(tmp_path: Path, name: str) -> None:
    for main in sorted(sample("claude-code", *name.split("/")).rglob("*.jsonl")):
        if main.name.startswith("agent-"):
            continue
        source, target = tmp_path / main.stem / "from", tmp_path / main.stem / "to"
        source.mkdir(parents=True)
        shutil.copy(main, source)
        if (beside := main.with_suffix("")).is_dir():
            shutil.copytree(beside, source / main.stem)
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        follow(source, target, Random(1))


@pytest.mark.parametrize("named", ["acorn", "", None], ids=str)
def test_the_branch_is_a_tag(tmp_path: Path, named: str | None) -> None:
    path = tmp_path / "s.jsonl"
    lines = records(session(CASES / "session" / "input"))
    write(path, [line | {"gitBranch": named} if "gitBranch" in line else line for line in lines])
    expected = (named,) if named else ()
    assert {run.tags for deep in (False, True) for run in listed(tmp_path, deep=deep)} == {expected}
    assert read(path).summary.tags == expected
