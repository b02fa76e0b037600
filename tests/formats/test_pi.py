"""pi sessions: branches in one file, forks, tokens and cost, how calls and sessions stand, growth, damage and drift."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import SHARED, needs_shared, sample, settled
from tracetui.analysis.search import Hit, Needle
from tracetui.diff.comparison import compare
from tracetui.formats.pi import Pi
from tracetui.live.scan import scan
from tracetui.live.search import grep, grep_runs
from tracetui.model import COUNTED_COPY, Blob, Operation, Run, RunRef, RunSummary, Span, Status, StatusSource, Usage
from tracetui.sources.local import LocalSource
from tracetui.store.claims import Claims
from tracetui.store.relations import pairs_of
from tracetui.testing import Growing
from tracetui.testing import read_run as run_of
from tracetui.testing.reading import Follower, plain, plain_run

CASES = Path(__file__).parent / "pi"
FORMAT = Pi()
SOURCE = LocalSource()


with_case = partial(pytest.mark.parametrize, "case", indirect=True)


def session(folder: Path, end: str = "") -> Path:
    """The first session whose name ends so."""
    return next(path for path in sorted(folder.rglob("*.jsonl")) if path.stem.endswith(end))


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


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, lines: Iterable[Any]) -> Path:
    """A file that nobody has written for long."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


# ---------------------------------------------------------------------------------------------------------- one run


@with_case(["session"])
def test_a_run_is_called_by_its_project_and_its_first_prompt(case: Path) -> None:
    summary = read(session(case)).summary
    assert (summary.name, summary.agent, summary.model) == ("lighthouse", "pi", "beam-4")
    assert (summary.prompt, summary.source) == ("Why is the lamp dark?", "/home/ada/lighthouse")
    assert summary.writer == "schema 3"


@with_case(["session"])
def test_input_includes_what_was_cached_and_cost_is_that_of_the_trace(case: Path) -> None:
    run = read(session(case))
    used = span(run, "aa000007").usage
    assert used == Usage(20, 6, cache_read_tokens=7, cache_creation_tokens=8, reasoning_tokens=4, cost_usd=0.5)
    assert used is not None
    assert used.all_tokens == 5 + 6 + 7 + 8
    assert span(run, "compaction").usage is not None  # summing up was paid for as well
    assert span(run, "usage").usage is not None


@with_case(["session"])
def test_calls_are_below_their_response_each_with_its_own_answer(case: Path) -> None:
    run = read(session(case))
    assert [span.id for span in run.spans if span.parent_id == "aa000004"] == ["call_fuse", "call_wire"]
    assert run.load(span(run, "call_fuse")).input == {"path": "fuse.txt"}
    assert run.load(span(run, "call_fuse")).output == "fuse: 10 A\n"
    assert (span(run, "aa000004").step, span(run, "call_fuse").step) == (1, 1)
    assert span(run, "aa000004").duration_ms == 2500


@with_case(["session"])
def test_a_call_failed_by_its_flag_or_by_its_exit_code(case: Path) -> None:
    run = read(session(case))
    statuses = {name: (span(run, name).status, span(run, name).status_source) for name in ("call_fuse", "call_wire")}
    assert statuses["call_fuse"] == (Status.OK, StatusSource.EXPLICIT)
    assert statuses["call_wire"] == (Status.ERROR, StatusSource.EXPLICIT)
    call_span = span(run, "call_exec")
    assert (call_span.status, call_span.status_source, call_span.duration_ms) == (Status.ERROR, StatusSource.EXIT, 250)
    by_hand = [(span.status, span.status_source) for span in run.spans if span.note == "by the user"]
    assert by_hand == [
        (Status.OK, StatusSource.EXIT),
        (Status.ERROR, StatusSource.EXIT),
        (Status.CANCELLED, StatusSource.EXPLICIT),
    ]


@with_case(["session"])
def test_the_stop_reason_of_a_response_is_its_status(case: Path) -> None:
    run = read(session(case))
    failed, cut, aborted = (span(run, name) for name in ("aa000011", "aa000012", "aa000016"))
    assert (failed.status, failed.error and failed.error.message) == (
        Status.ERROR,
        "529 overloaded: the sea is rough",
    )
    assert (cut.status, cut.error and cut.error.text) == (Status.ERROR, "length: stopped: length")
    assert (aborted.status, aborted.note) == (Status.CANCELLED, "aborted")
    assert span(run, "call_rope").status is Status.UNKNOWN  # nobody will ever answer it


@with_case(["session"])
def test_notes_of_the_program_are_one_row_and_unknown_kinds_are_no_problem(case: Path) -> None:
    run = read(session(case))
    meta = [span.preview for span in run.spans if span.operation is Operation.META]
    assert meta == [
        "model beam-4, thinking medium",
        "custom tide-table",
        "label where it began, session info The dark lamp",
    ]
    assert [span.name for span in run.spans if span.operation is Operation.UNKNOWN] == ["tide_gauge"]
    assert run.load(span(run, "tide_gauge")).attributes["level"] == 4.2
    assert not run.problems
    assert run.body.attributes["session_info.name"] == "The dark lamp"


@with_case(["session"])
def test_content_other_than_text_stays_as_recorded(case: Path) -> None:
    run = read(session(case))
    (message,) = run.load(span(run, "aa000003")).input_messages
    assert [type(part) for part in message.parts][:1] == [Blob]
    assert "c2VhbA==" in json.dumps(run.load(span(run, "aa000004")).attributes)


@with_case(["plain"])
def test_a_skill_is_what_was_typed_to_use_it(case: Path) -> None:
    path = session(case)
    lines = records(path)
    skill = '<skill name="tide" location="/tide/SKILL.md">\nReferences are relative to /tide.\n\nWait.\n</skill>'
    for content, prompt in ((f"{skill}\n\nat noon", "/skill:tide at noon"), (skill, "Go on")):
        lines[3]["message"]["content"] = content
        write(path, lines)
        for deep in (False, True):
            assert [run.prompt for run in listed(case, deep=deep)] == [prompt]
        assert read(path).summary.prompt == prompt
    assert span(read(path), "dd000003").preview == "/skill:tide"


@with_case(["session"])
def test_a_session_stands_as_its_last_response_does(case: Path) -> None:
    path = session(settled(case, case.with_name("settled")))
    lines = records(path)
    ends = {
        "aa000016": (Status.CANCELLED, "aborted"),
        "aa000015": (Status.UNKNOWN, None),  # the agent has yet to answer
        "aa000013": (Status.ERROR, "length"),  # summing up afterwards changes nothing
        "aa000011": (Status.ERROR, "error"),
        "aa000004": (Status.UNKNOWN, None),  # it called tools
    }
    for last, expected in ends.items():
        until = next(number for number, line in enumerate(lines) if line["id"] == last) + 1
        write(path, lines[:until])
        summary = read(path).summary
        assert (summary.status, summary.status_word) == expected, last
        (quick,) = listed(path, deep=False)
        assert quick.status is summary.status
    write(path, lines[: next(n for n, line in enumerate(lines) if line["id"] == "aa000011") + 1])
    error = read(path).summary.first_error
    assert error is not None
    assert (error.span, error.text) == ("aa000011", "529 overloaded: the sea is rough")


# ---------------------------------------------------------------------------------------------------------- branches


@with_case(["branches"])
def test_abandoned_branches_are_folded_and_resumed_ones_live(case: Path) -> None:
    run = read(session(case))
    branches = {
        span.id: (span.parent_id, span.preview, span.note) for span in run.spans if span.name == "abandoned branch"
    }
    assert branches == {
        "branch:bb000004": (None, "Red", "taken up again"),
        "branch:bb000008": (None, "White", "3 responses"),
        "branch:bb00000d": ("branch:bb000008", "Stripes", "1 response"),
    }
    assert [(span.id, span.step) for span in run.spans if span.is_step] == [
        ("bb000003", 1),
        ("bb000005", 2),
        ("bb000007", 3),
        ("bb000013", 4),
    ]
    assert (span(run, "call_red").step, span(run, "call_white").step) == (2, None)
    assert span(run, "call_white").parent_id == "bb00000a"
    assert span(run, "bb00000c").note == "abandoned"
    assert span(run, "bb000007").note == ""
    assert run.summary.llm_calls == 8
    assert run.load(span(run, "branch:bb000008")).attributes["went_back_to"] == "bb000003"


@with_case(["openclaw"])
def test_an_entry_without_a_parent_continues_the_last_one(case: Path) -> None:
    run = read(session(case))
    assert [span.id for span in run.spans] == ["l2", "m1", "m2", "tc1", "m4"]
    assert span(run, "tc1").status is Status.OK
    assert (span(run, "m4").operation, span(run, "m4").name) == (Operation.UNKNOWN, "message ship's bell")


KINDS = ("user", "assistant", "error", "call", "answer", "label")


def tree(steps: list[tuple[int, str]]) -> tuple[list[Any], dict[str, str | None]]:
    """Entries of these kinds, each following one that is so many back, and what each follows."""
    lines: list[Any] = [{"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-14T07:00:00Z", "cwd": "/"}]
    parents: dict[str, str | None] = {}
    called: list[str] = []
    for number, (back, kind) in enumerate(steps):
        ident = f"e{number}"
        parents[ident] = f"e{number - 1 - back}" if back < number else None
        entry = {"id": ident, "parentId": parents[ident], "timestamp": f"2026-03-14T07:00:{number + 1:02}Z"}
        usage = {"input": number, "cost": {"total": 0.1 * number}}
        message: dict[str, Any] = {"role": "assistant", "content": [], "usage": usage, "stopReason": "stop"}
        if kind == "error":
            message |= {"stopReason": "error", "errorMessage": ident}
        elif kind == "call":
            called.append(f"call_{number}")
            message |= {"content": [{"type": "toolCall", "id": called[-1], "name": "dig", "arguments": {}}]}
        elif kind == "answer" and called:
            message = {"role": "toolResult", "toolCallId": called.pop(), "isError": True, "content": ident}
        elif kind != "assistant":
            message = {"role": "user", "content": ident}
        lines.append(entry | ({"type": "label"} if kind == "label" else {"type": "message", "message": message}))
    return lines, parents


@given(steps=st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 2, 5, 9, 50]), st.sampled_from(KINDS)), max_size=40))
def test_the_live_branch_is_that_of_the_last_entry(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    lines, parents = tree(steps)
    path = write(tmp_path_factory.mktemp("tree") / "x.jsonl", lines)
    live: list[str] = []
    at = f"e{len(steps) - 1}" if steps else None
    while at is not None:
        live.append(at)
        at = parents[at]
    run = read(path)
    said = [span.id for span in run.spans if span.operation in (Operation.CHAT, Operation.MESSAGE)]
    tops = [span.id for span in run.spans if span.parent_id is None and span.id in said]
    assert tops == [ident for ident in live[::-1] if ident in said]
    numbers = [span.step for span in run.spans if span.is_step]
    assert numbers == list(range(1, sum(span(run, ident).operation is Operation.CHAT for ident in tops) + 1))
    for row in run.spans:
        if row.name == "abandoned branch":
            below = [run.spans[place] for place in run.children(run.index[row.id])]
            count_of = sum(child.operation is Operation.CHAT for child in below)
            assert row.note == ("taken up again" if not below else f"{count_of} response{'s' * (count_of != 1)}")
    with SOURCE.open(str(path)) as file:
        (counted,) = FORMAT.summarize(file, deep=True)
    assert isinstance(counted, RunSummary)
    assert plain(counted) == plain(run.summary)


# ------------------------------------------------------------------------------------------------------------- forks


@with_case(["fork"])
def test_a_fork_and_its_original_are_a_pair_and_pay_once(case: Path) -> None:
    runs = listed(case)
    pairs = [(pair.replay.id[-2:], pair.original.id[-2:], pair.relation) for pair in pairs_of(runs) if pair.original]
    assert sorted(pairs) == [("f1", "f0", "fork"), ("f2", "f0", "fork")]
    (onward,) = [run for run in runs if run.id.endswith("f3")]  # nothing was copied: it only goes on elsewhere
    assert (onward.relation, onward.parent and onward.parent[-2:]) == (None, "f0")
    assert tokens(runs) == raw_tokens(case.rglob("*.jsonl"))


@with_case(["fork"])
@pytest.mark.parametrize("gone", [("f0",), ("f0", "f1"), ("f0", "f2"), ("f1",)])
def test_copies_of_a_missing_original_count_once(case: Path, gone: tuple[str, ...]) -> None:
    for end in gone:
        session(case, end).unlink()
    claims = claims_of(case)
    runs = [*map(claims.net, claims.runs)]
    assert tokens(runs) == raw_tokens(case.rglob("*.jsonl"))
    for run in runs:
        full = claims.mark(read(Path(run.ref.path)))
        assert plain(full.summary) == plain(run)
        copied = [span for span in full.spans if span.taken_over and span.operation is Operation.CHAT]
        assert {copy.usage is not None for copy in copied} <= {any(copy.note == COUNTED_COPY for copy in copied)}


@with_case(["fork"])
def test_the_comparison_with_a_fork_begins_where_it_went_another_way(case: Path) -> None:
    diff = compare(read(session(case, "f0")), read(session(case, "f1")))
    assert diff.first is not None
    row = diff.rows[diff.first.row]
    assert row.a is not None
    assert diff.a.spans[row.a].preview == "And boats?"
    copied = [span.id for span in diff.b.spans if span.taken_over]
    assert copied == ["cc000002", "cc000003", "call_count", "cc000005"]


@with_case(["fork"])
def test_the_path_of_an_original_leads_nowhere_else(case: Path) -> None:
    path = session(case, "f1")
    (case / "secret.jsonl").write_text('{"type":"session","id":"secret"}\n')
    lines = records(path)
    for original in ("/etc/passwd", "../secret.jsonl", f"{case}/secret.jsonl", "", "..", str(path), "--a--/../x.jsonl"):
        write(path, [lines[0] | {"parentSession": original}, *lines[1:]])
        summary = read(path).summary
        assert summary.replay_of_path is None, original
        assert summary.replay_of != "secret" or original.endswith("secret.jsonl")


@with_case(["old"])
def test_the_first_version_has_no_ids_and_is_read_line_by_line(case: Path) -> None:
    run, later = read(session(case, "_buoy")), read(session(case, "_again"))
    assert [span.id for span in run.spans] == ["l2", "l3", "l4", "l5", "l6", "toolu_1", "l8"]
    assert (run.summary.prompt, run.summary.model) == ("Ring the buoy", "beam-1")
    later = claims_of(case).mark(later)
    assert (later.summary.relation, later.summary.replay_of) == ("fork", "buoy")  # as its file is named
    assert [span.note for span in later.spans][-2:] == ["", ""]
    assert later.summary.usage is not None
    assert later.summary.usage.output_tokens == 12


# ------------------------------------------------------------------------------------------------- list stage, counts


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def test_the_list_stage_equals_reading(name: str) -> None:
    quick, deep = (listed(CASES / name / "input", deep=deep) for deep in (False, True))
    fields = ("id", "name", "agent", "model", "started_at", "duration_ms", "prompt", "replay_of", "replay_of_path")
    for summary, other in zip(quick, deep, strict=True):
        for key in (*fields, "source", "status", "status_word", "relation", "parent", "writer"):
            assert getattr(summary, key) == getattr(other, key), (summary.ref.path, key)


@with_case(["plain"])
def test_the_list_stage_of_a_long_session_reads_head_and_tail(case: Path) -> None:
    path = session(case)
    lines = records(path)
    image = {"type": "image", "mimeType": "image/png", "data": "A" * 3_000_000}
    large = {**lines[5], "id": "large", "message": {**lines[5]["message"], "content": [image]}}
    for place in (4, 12, len(lines)):  # before the first prompt is answered, in the middle, at the end
        write(path, [*lines[:place], large, *lines[place:]])
        with SOURCE.open(str(path)) as file:
            assert FORMAT.sniff(file) > 0
            (quick,) = FORMAT.summarize(file, deep=False)
        assert isinstance(quick, RunSummary)
        deep = read(path).summary
        assert (quick.id, quick.prompt, quick.duration_ms) == (deep.id, "Chart the reef", deep.duration_ms)
        assert quick.status_word == deep.status_word


@with_case(["plain"])
def test_the_first_error_is_that_of_the_tree(case: Path) -> None:
    summary = read(session(case)).summary
    assert summary.errors == 4
    assert summary.first_error is not None
    assert summary.first_error.span == "call_1a"


@with_case(["plain", "session", "fork"])
def test_a_session_is_counted_as_it_is_read_wherever_it_stops(case: Path) -> None:
    for path in sorted(case.rglob("*.jsonl")):
        lines = records(path)
        for until in range(1, len(lines) + 1):
            write(path, lines[:until])
            with SOURCE.open(str(path)) as file:
                (counted,) = FORMAT.summarize(file, deep=True)
            assert isinstance(counted, RunSummary)
            assert plain(counted) == plain(read(path).summary)


@with_case(["branches"])
def test_message_texts_can_be_searched(case: Path) -> None:
    needle, path = Needle("too loud", ignore_case=False), session(case)
    for hits in (grep(SOURCE, [str(case)], needle), grep_runs(SOURCE, [RunRef(FORMAT.name, str(path))], needle)):
        (hit,) = [hit for hit in hits if isinstance(hit, Hit)]
        assert (hit.ref.path, hit.span) == (str(path), "bb000008")


# ------------------------------------------------------------------------------------------------------------ growth


def follow(path: Path, target: Path, random: Random) -> None:
    """Write a session piece by piece, torn and in bursts, and follow it."""
    data, at = path.read_bytes(), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    ref = RunRef(FORMAT.name, str(target))
    growing, follower = Growing(FORMAT, ref), Follower(FORMAT, ref)
    while at < len(data):
        size = random.choice((3, 200, 5_000, 100_000))
        with target.open("ab") as writer:
            writer.write(data[at : at + size])
        at += size
        growing.read(whole=False)
        follower.read()
    growing.read()
    follower.read()
    assert plain_run(growing.run()) == plain_run(read(target))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["branches", "fork", "old", "session"])
def test_a_session_that_grows_ends_in_the_same_run(tmp_path: Path, name: str, seed: int) -> None:
    folder = CASES / name / "input"
    for path in sorted(folder.rglob("*.jsonl")):  # the original before its forks
        follow(path, tmp_path / path.relative_to(folder), Random(seed))


def test_a_line_that_is_no_record_is_a_problem_and_a_half_one_at_rest(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = records(session(CASES / "branches" / "input"))
    write(path, [lines[0], "just text", 7, lines[2]])
    with path.open("ab") as writer:
        writer.write(b'{"type":"message","mess')
    run = read(path)
    assert [problem.where for problem in run.problems] == ["line 2", "line 3", "last line"]
    assert len(run.spans) == 1


def test_ids_that_come_again_or_belong_to_others_harm_nothing(tmp_path: Path) -> None:
    lines = records(session(CASES / "branches" / "input"))
    for line in lines[1:]:
        line["id"] = "l5" if line["type"] != "message" else "same"
    run = read(write(tmp_path / "x.jsonl", [*lines, *lines]))
    assert len({span.id for span in run.spans}) == len(run.spans)
    assert run.summary.llm_calls == 16


@pytest.mark.parametrize(
    "data", [b"{}", b'{"type":"session"}', b'{"type":"session","id":"a"}', b"[]", b"\xff", b"", b'{"parentId":1}']
)
def test_other_json_is_not_claimed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.jsonl").write_bytes(data)
    with SOURCE.open(str(tmp_path / "x.jsonl")) as file:
        assert FORMAT.sniff(file) == 0


def test_a_session_that_begins_as_another_programs_is_left_to_that(tmp_path: Path) -> None:
    lines = records(session(CASES / "plain" / "input"))
    start = {"type": "session_start", "id": "d1", "cwd": "/tmp"}
    path = write(tmp_path / "x.jsonl", [start, *lines[1:]])
    with SOURCE.open(str(path)) as file:
        assert FORMAT.sniff(file) == 0


def test_a_session_without_its_first_line_is_read(tmp_path: Path) -> None:
    lines = records(session(CASES / "plain" / "input"))
    path = write(tmp_path / "x.jsonl", lines[1:])
    with SOURCE.open(str(path)) as file:
        assert 0 < FORMAT.sniff(file) < 100
    (deep,) = listed(path)
    assert (deep.id, deep.prompt, deep.steps) == ("x", "Chart the reef", 6)


# -------------------------------------------------------------------------------------------------------- real files


def raw_tokens(paths: Iterable[Path]) -> dict[str, float]:
    """What the raw lines say that was used: once for each entry, in whatever files; those of v1 have no ids."""
    used: dict[str, dict[str, Any]] = {}
    for path in sorted(paths):
        for number, line in enumerate(path.read_bytes().split(b"\n")):
            record = json.loads(line) if line else {}
            usage = record.get("usage") or record.get("message", {}).get("usage")
            if usage:
                used[record.get("id") or f"{path} {number}"] = usage
    sums = {
        name: sum(usage[name] for usage in used.values()) for name in ("input", "output", "cacheRead", "cacheWrite")
    }
    cost = sum(usage["cost"]["total"] for usage in used.values())
    cached = sums["cacheRead"] + sums["cacheWrite"]
    return {**sums, "input": sums["input"] + cached, "cost": round(cost, 9)}


def tokens(runs: list[RunSummary]) -> dict[str, float]:
    """The same sums by the runs."""
    usages = [run.usage for run in runs if run.usage is not None]
    return {
        "input": sum(usage.input_tokens or 0 for usage in usages),
        "output": sum(usage.output_tokens or 0 for usage in usages),
        "cacheRead": sum(usage.cache_read_tokens or 0 for usage in usages),
        "cacheWrite": sum(usage.cache_creation_tokens or 0 for usage in usages),
        "cost": round(sum(usage.cost_usd or 0 for usage in usages), 9),
    }


def real_folders() -> list[Path]:
    if SHARED is None:
        return []
    return [path for path in sorted(sample("pi").iterdir()) if path.is_dir()]


@pytest.mark.parametrize("name", ["branches", "openclaw", "plain", "session"])
def test_tokens_are_those_of_the_raw_lines(name: str) -> None:
    folder = CASES / name / "input"
    assert tokens(listed(folder)) == raw_tokens(folder.rglob("*.jsonl"))


@needs_shared
@pytest.mark.parametrize("folder", real_folders(), ids=lambda path: path.name)
def test_tokens_of_real_sessions_are_those_of_the_raw_lines(folder: Path) -> None:
    runs = listed(folder)
    assert runs
    assert tokens(runs) == raw_tokens(folder.rglob("*.jsonl"))


@needs_shared
def test_a_real_fork_opens_where_it_went_another_way() -> None:
    (folder,) = sample("pi", "generated-0.74.2", "sessions").iterdir()
    a, b = (read(path) for path in sorted(folder.iterdir()))
    assert (b.summary.relation, b.summary.replay_of) == ("fork", a.summary.id)
    diff = compare(a, b)
    assert diff.first is not None
    row = diff.rows[diff.first.row]
    assert row.a is not None
    assert diff.a.spans[row.a].preview == "Now FLAKY: say the number"
    assert all(row.kind == "same" for row in diff.rows[: diff.first.row])


@needs_shared
def test_real_sessions_that_grow_end_in_the_same_run(tmp_path: Path) -> None:
    for path in sorted(sample("pi").rglob("*.jsonl")):
        follow(path, tmp_path / path.relative_to(sample("pi")), Random(1))
