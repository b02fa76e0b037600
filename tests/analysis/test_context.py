"""The context ledger: contents that sum to the recorded input, money that sums to its cost, and breaks with causes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context_build import ClaudeSession, filler, pi_answer, pi_result, pi_session, pi_user, text, tool_use
from tests.formats import codex_build as codex
from tracetui.analysis.context import Break, Call, Ledger
from tracetui.analysis.context_estimate import _PIECE, apportion, count_pieces
from tracetui.analysis.context_feed import GrowingLedger, ledger_of
from tracetui.analysis.context_hour import hour_cache
from tracetui.export.context import context_value
from tracetui.live.load import read_run
from tracetui.model import Run, RunRef
from tracetui.model.context import Cause
from tracetui.sources.local import LocalSource


def read(path: Path, name: str = "claude-code") -> Run:
    return read_run(LocalSource(), RunRef(name, str(path)))


def read_ledger(path: Path, name: str = "claude-code") -> Ledger:
    """The ledger of a session, after checking that it closes."""
    ledger = ledger_of(read(path, name))
    check_closes(ledger)
    return ledger


def check_closes(ledger: Ledger) -> None:
    totals, accounts = ledger.totals, ledger.accounts()
    for call in ledger.calls:
        assert sum(call.by.values()) == call.input
    assert sum(account.carried for account in accounts) == totals.input
    assert sum(account.now for account in accounts) == sum(last_inputs(ledger).values())
    if totals.usd is not None:
        for name in ("usd", "usd_new", "usd_carry", "usd_breaks"):
            assert sum(getattr(account, name) for account in accounts) == pytest.approx(getattr(totals, name), abs=1e-9)


def last_inputs(ledger: Ledger) -> dict[Any, int]:
    return {call.agent: call.input for call in ledger.calls}


def by_id(ledger: Ledger) -> dict[str, Call]:
    return {call.id: call for call in ledger.calls}


def only_break(ledger: Ledger) -> Break:
    (missed,) = ledger.breaks
    return missed


@pytest.fixture
def session(tmp_path: Path) -> ClaudeSession:
    return ClaudeSession(tmp_path / "session.jsonl")


# ---- contents


def test_the_only_result_of_a_step_has_what_the_recorded_answer_leaves(session: ClaudeSession) -> None:
    session.prompt("read it")
    session.answer("m1", tool_use("t1", "Read", file_path="/w/a.py"), written=10_000, output=60)
    session.result("t1", filler(1900))
    session.answer("m2", text("done"), read=10_000, written=2_060)
    ledger = read_ledger(session.write())
    assert by_id(ledger)["m2"].by == {
        "start": ledger.calls[0].by["start"],
        "prompt": ledger.calls[0].by["prompt"],
        "tool call": 60,
        "result:Read": 2_000,
    }
    assert [(file.file, file.times, file.entered) for file in ledger.files()] == [("/w/a.py", 1, 2_000)]


def test_growth_that_no_text_explains_is_not_recorded(session: ClaudeSession) -> None:
    session.prompt("hello")
    session.answer("m1", text("hello"), written=10_000)
    session.prompt("again")
    session.answer("m2", text("hello"), read=10_000, written=5_000)
    call = read_ledger(session.write()).calls[1]
    assert (call.growth, call.by["reply"]) == (5_000, 20)
    assert call.by["not recorded"] == call.not_recorded > 4_900


def test_an_unfinished_answer_is_estimated(session: ClaudeSession) -> None:
    session.prompt("hello")
    session.answer("m1", text(filler(500)), written=10_000, output=None)
    session.prompt("again")
    session.answer("m2", text("hello"), read=10_000, written=520)
    call = read_ledger(session.write()).calls[1]
    assert not any(arrival.exact for arrival in call.arrivals)
    assert call.by["reply"] > 480


def test_images_weigh_no_text(session: ClaudeSession) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 50_000}}
    session.prompt("hello")
    session.answer("m1", text("hello"), written=10_000)
    session.prompt([text("look"), image])
    session.answer("m2", text("hello"), read=10_000, written=1_550)
    assert 1_400 < read_ledger(session.write()).calls[1].by["image"] < 1_560


def test_memory_and_attachments_are_contents_of_their_own(session: ClaudeSession) -> None:
    memory = {"type": "nested_memory", "path": "/w/CLAUDE.md", "content": {"content": filler(400)}}
    session.prompt("hello")
    session.answer("m1", text("hello"), written=10_000)
    session.add("attachment", attachment=memory)
    session.prompt("again")
    session.answer("m2", text("hello"), read=10_000, written=470)
    ledger = read_ledger(session.write())
    assert ledger.calls[1].by["memory"] > 380
    assert [file.file for file in ledger.files()] == ["/w/CLAUDE.md"]


def test_a_compaction_replaces_all_but_the_start(session: ClaudeSession) -> None:
    session.prompt("hello")
    session.answer("m1", tool_use("t1", "Read", file_path="/w/a.py"), written=20_000, output=60)
    session.result("t1", filler(40_000))
    session.answer("m2", text("done"), read=20_000, written=40_060)
    session.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 60_063})
    session.prompt(filler(2_000), isCompactSummary=True)
    session.answer("m3", text("on"), read=15_000, written=10_000)
    ledger = read_ledger(session.write())
    call = ledger.calls[2]
    assert not {"result:Read", "tool call", "reply", "prompt"} & call.by.keys()
    assert 1_500 < call.by["summary"] < 2_500
    assert call.by["start"] == ledger.calls[0].by["start"]
    assert call.by["after compaction"] == 25_003 - call.by["summary"] - call.by["start"]
    assert only_break(ledger).cause == Cause.COMPACTION


def test_cleared_results_leave_the_context(session: ClaudeSession) -> None:
    session.prompt("hello")
    session.answer("m1", tool_use("t1", "Read", file_path="/w/a.py"), written=20_000, output=60)
    session.result("t1", filler(4_000))
    session.answer("m2", tool_use("t2", "Bash", command="ls"), read=20_000, written=4_060, output=50)
    cleared = {"compactedToolIds": ["t1"]}
    session.add("system", subtype="microcompact_boundary", microcompactMetadata=cleared)
    session.result("t2", filler(200))
    session.answer("m3", text("done"), read=18_000, written=2_300)
    ledger = read_ledger(session.write())
    assert "result:Read" in ledger.calls[1].by
    assert "result:Read" not in ledger.calls[2].by
    assert (only_break(ledger).cause, only_break(ledger).basis) == ("results cleared", "recorded")


def test_thinking_of_earlier_turns_leaves_if_that_explains_the_input(session: ClaudeSession) -> None:
    thought = {"type": "thinking", "thinking": filler(2_000), "signature": "x"}
    session.prompt("hello")
    session.answer("m1", thought, text("fine"), written=20_000, output=2_100)
    session.prompt("next")
    session.answer("m2", text("fine"), read=20_000, written=60)
    call = read_ledger(session.write()).calls[1]
    assert call.note == Cause.THINKING_DROPPED
    assert "thinking" not in call.by


def test_sub_agents_have_chains_of_their_own(session: ClaudeSession) -> None:
    session.prompt("hello")
    session.answer("m1", tool_use("t1", "Task", prompt="look around"), written=30_000, output=80)
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    session.prompt("look around", **side)
    session.answer("s1", tool_use("t2", "Grep", pattern="x"), written=9_000, output=50, **side)
    session.result("t2", filler(430), **side)
    session.answer("s2", text("found"), read=9_000, written=500, **side)
    session.result("t1", filler(90))
    session.answer("m2", text("done"), read=30_000, written=180)
    ledger = read_ledger(session.write())
    calls = by_id(ledger)
    assert calls["s2"].by["result:Grep"] == 450
    assert calls["m2"].by["report"] == 100
    assert calls["s1"].agent == calls["s2"].agent is not None
    assert ledger.breaks == []
    assert ledger.totals.input == 30_003 + 9_003 + 9_503 + 30_183


# ---- breaks


def two_calls(session: ClaudeSession, *, read: int, seconds: float = 2, hour: int = 0, **second: Any) -> Break:
    session.prompt("hello")
    session.answer("m1", text("hello"), written=30_000, hour=hour)
    session.prompt("again", seconds=seconds)
    session.answer("m2", text("hello"), read=read, written=30_100 - read, **second)
    return only_break(read_ledger(session.write()))


@pytest.mark.parametrize(
    ("facts", "cause", "basis"),
    [
        ({"read": 0, "seconds": 400}, "idle", "rule"),
        ({"read": 0, "seconds": 4000, "hour": 30_000}, "idle", "rule"),
        ({"read": 0, "seconds": 1200, "hour": 30_000}, "unknown", "unknown"),
        ({"read": 0, "model": "claude-haiku-4-5"}, "model", "rule"),
        ({"read": 0, "version": "2.1.201"}, "resume", "coincides"),
    ],
)
def test_the_cause_of_a_break_has_a_basis(
    session: ClaudeSession, facts: dict[str, Any], cause: str, basis: str
) -> None:
    missed = two_calls(session, **facts)
    assert (missed.cause, missed.basis, missed.missed, missed.where) == (cause, basis, 30_000, "everything")


def test_a_mode_that_changed_within_a_turn_coincides(session: ClaudeSession) -> None:
    session.prompt("hello", permissionMode="default")
    session.answer("m1", tool_use("t1", "Read", file_path="/w/a.py"), written=30_000)
    session.result("t1", filler(50))
    session.add("permission-mode", permissionMode="plan")
    session.answer("m2", text("hello"), written=30_100)
    missed = only_break(read_ledger(session.write()))
    assert (missed.cause, missed.basis) == (Cause.MODE, "coincides")


@pytest.mark.parametrize(
    ("read", "where"), [(0, "everything"), (12_000, "all after the start"), (28_900, "all after the start")]
)
def test_a_break_says_what_was_kept(session: ClaudeSession, read: int, where: str) -> None:
    missed = two_calls(session, read=read)
    assert (missed.kept, missed.missed, missed.where) == (read, 30_000 - read, where)


def test_a_small_miss_is_no_break(session: ClaudeSession) -> None:
    session.prompt("hello")
    session.answer("m1", text("hello"), written=30_000)
    session.prompt("again")
    session.answer("m2", text("hello"), read=28_976, written=1_124)
    assert read_ledger(session.write()).breaks == []


def test_a_rewind_goes_back_to_the_context_of_its_ancestor(session: ClaudeSession) -> None:
    session.prompt("hello")
    first = session.answer("m1", text("hello"), written=30_000)
    session.prompt("do this")
    session.answer("m2", text(filler(400)), read=30_000, written=10_000, output=400)
    session.prompt("do that", parent=first)
    session.answer("m3", text("fine"), read=20_000, written=10_100)
    ledger = read_ledger(session.write())
    assert ledger.calls[2].growth == 100
    assert only_break(ledger).cause == Cause.EDITED


def test_a_long_prompt_after_a_rewind_is_no_break(session: ClaudeSession) -> None:
    session.prompt("hello")
    first = session.answer("m1", text("hello"), written=30_000)
    session.prompt("do this")
    session.answer("m2", text(filler(400)), read=30_000, written=10_000, output=400)
    session.prompt(filler(3_600), parent=first)
    session.answer("m3", text("fine"), read=30_000, written=3_600)
    assert read_ledger(session.write()).breaks == []


def test_a_break_costs_what_writing_costs_more_than_reading(session: ClaudeSession) -> None:
    pytest.importorskip("genai_prices")
    assert two_calls(session, read=0, seconds=400).usd == pytest.approx(30_000 * (6.25 - 0.5) / 1e6)


def test_a_break_of_an_hour_cache_costs_its_price(session: ClaudeSession) -> None:
    pytest.importorskip("genai_prices")
    missed = two_calls(session, read=6_000, hour=30_000, seconds=1200)
    assert missed.usd == pytest.approx(24_000 * (6.25 - 0.5) / 1e6)  # the second call writes for five minutes


def test_a_cache_of_an_hour_saves_idle_breaks_and_makes_other_writes_dearer(session: ClaudeSession) -> None:
    pytest.importorskip("genai_prices")
    two_calls(session, read=0, seconds=1200)
    session.prompt("and more", seconds=4000)
    session.answer("m3", text("hello"), written=30_200)
    hour = hour_cache(read_ledger(session.write()).calls)
    assert hour is not None
    assert hour.breaks == 1
    assert hour.saved == pytest.approx(30_000 * (6.25 - 0.5) / 1e6)
    assert hour.extra == pytest.approx((30_000 + 100 + 30_200) * (10 - 6.25) / 1e6)


@pytest.mark.parametrize("facts", [{"seconds": 4000}, {"seconds": 20}, {"seconds": 4000, "hour": 30_000}])
def test_a_cache_of_an_hour_saves_nothing_else(session: ClaudeSession, facts: dict[str, Any]) -> None:
    two_calls(session, read=0, **facts)
    assert hour_cache(read_ledger(session.path).calls) is None


# ---- other formats


def test_codex_calls_close_and_name_their_instructions(tmp_path: Path) -> None:
    records = [
        codex.meta(),
        codex.record("turn_context", {"model": "gpt-5", "cwd": "/w"}),
        codex.message("user", f"# AGENTS.md instructions for /w\n{filler(300)}"),
        codex.message("user", "look around"),
        codex.call("c1", "ls"),
        codex.token_count(codex.counts(8_000, 0, 40), codex.counts(8_000, 0, 40)),
        codex.output("c1", filler(900)),
        codex.message("assistant", "done", 3),
        codex.token_count(codex.counts(9_000, 7_936, 20), codex.counts(17_000, 7_936, 60)),
    ]
    ledger = read_ledger(codex.rollout(tmp_path, codex.FIRST, records), "codex")
    first, second = ledger.calls
    assert (first.input, second.input, second.growth) == (8_000, 9_000, 1_000)
    assert first.by["memory"] > 270
    assert (second.by["tool call"], second.by["result:exec_command"]) == (40, 960)
    assert ledger.breaks == []


def test_pi_compactions_keep_the_entries_that_they_name(tmp_path: Path) -> None:
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "/w/a.py"}}
    entries = [
        pi_user("hello"),
        pi_answer("r1", call, plain=3, written=10_000, output=60),
        pi_result("c1", "read", filler(1_900)),
        pi_answer("r2", text("read"), plain=3, read=10_000, written=2_060),
        pi_user("keep this", id="kept"),
        pi_answer("r3", text("kept"), plain=3, read=12_060, written=60),
        {"type": "compaction", "summary": filler(900), "firstKeptEntryId": "kept", "tokensBefore": 12_123},
        pi_user("go on"),
        pi_answer("r4", text("on"), plain=3, read=9_000, written=2_000),
    ]
    ledger = read_ledger(pi_session(tmp_path / "session.jsonl", entries), "pi")
    calls = by_id(ledger)
    assert (calls["r2"].by["result:read"], calls["r2"].by["tool call"]) == (2_000, 60)
    assert not {"result:read", "tool call"} & calls["r4"].by.keys()
    assert calls["r4"].by["reply"] == 20  # of "kept", which came after the first kept entry
    assert calls["r4"].by["summary"] > 800
    assert only_break(ledger).cause == Cause.COMPACTION


# ---- parts


@pytest.mark.parametrize("total", [0, 1, 7, 1000])
def test_shares_sum_to_the_total(total: int) -> None:
    shares = apportion(total, [1.0, 2.5, 0.1])
    assert sum(shares) == total
    assert all(share >= 0 for share in shares)


# ---- runs that grow


def test_a_growing_run_has_the_same_ledger_at_every_length(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path / "session.jsonl")
    session.prompt(filler(100))
    size = 20_000
    for number in range(1, 120):
        session.answer(f"m{number}", tool_use(f"t{number}", "Read", file_path=f"f{number % 3}"), read=size, written=300)
        session.result(f"t{number}", filler(200))
        size += 300
        if number % 40 == 0:
            session.prompt(filler(30), seconds=1_000)
            size = 20_000
    lines = session.write().read_text().splitlines(keepends=True)
    growing = GrowingLedger()
    for count in (*range(1, len(lines), 23), len(lines)):
        session.path.write_text("".join(lines[:count]))
        run = read(session.path)
        *_, feed = growing.read(run)
        expected = ledger_of(run)
        assert context_value(run.summary, feed.ledger.copy()) == context_value(run.summary, expected)


def test_a_growing_run_is_not_read_again_from_its_start(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path / "session.jsonl")
    session.prompt(filler(100))
    for number in range(1, 200):
        session.answer(f"m{number}", text(filler(10)), read=20_000, written=100 * number)
        session.prompt(filler(30))
    growing = GrowingLedger()
    for _ in growing.read(read(session.write())):
        pass
    session.answer("last", text(filler(10)), read=20_000, written=20_000)
    run = read(session.write())
    first = next(growing.read(run))
    assert len(run.spans) - first.position < 40


# ---- sizes


@given(st.text(st.sampled_from("aaabZ159 \n\t.;_é日"), max_size=80).map(lambda text: text * 12))
def test_long_texts_have_as_many_pieces_as_their_matches(text: str) -> None:
    assert count_pieces(text) == len(_PIECE.findall(text))
