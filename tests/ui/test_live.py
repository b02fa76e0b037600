"""A directory while agents work in it: what appears, what grows, what is followed, and what never moves."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.live.sessions import Session, paprika
from tests.ui.conftest import Opener, press, settle, text_of, until
from tracetui.ui.app import TraceApp


@pytest.fixture(autouse=True)
def real_time(fixed_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written now is seen now, and still is when a busy machine comes to it."""
    now = time.time() + 2
    monkeypatch.setattr(TraceApp, "clock", lambda self: now)


async def shows(app: TraceApp, pilot: Pilot[int], text: str) -> None:
    """Wait until the screen shows these words."""
    await until(pilot, lambda: text in text_of(app), what=f"{text!r} on the screen")


async def lacks(app: TraceApp, pilot: Pilot[int], text: str) -> None:
    """Wait until the screen does not show these words."""
    await until(pilot, lambda: text not in text_of(app), what=f"a screen without {text!r}")


async def test_runs_appear_grow_and_go(opened: Opener, tmp_path: Path) -> None:
    paprika(tmp_path / "first.json", "first-run")
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "live 1 folder")
        paprika(tmp_path / "second.json", "second-run")
        await shows(app, pilot, "2 runs")
        session = Session(tmp_path / "deep" / "down" / "s.jsonl", "s-deep")
        await shows(app, pilot, "3 runs")
        await shows(app, pilot, "live 3 folders")
        session.end("error")
        await shows(app, pilot, "✗ 1")
        (tmp_path / "second.json").unlink()
        await shows(app, pilot, "2 runs")
        session.path.rename(session.path.with_name("renamed.jsonl"))
        await until(pilot, lambda: {Path(ref.path).name for ref in app.store.runs} == {"first.json", "renamed.jsonl"})


async def test_the_cursor_stays_on_its_run_when_others_come_and_fail(opened: Opener, tmp_path: Path) -> None:
    for i in range(3):
        paprika(tmp_path / f"r{i}.json", f"run-{i}")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "j")
        ref = app.main.runs.ref
        paprika(tmp_path / "zz.json", "the-failed-one", status="error")
        await shows(app, pilot, "1 of 4 failed")
        assert app.main.runs.ref == ref


async def test_an_untouched_cursor_does_not_jump_to_a_new_failure(opened: Opener, tmp_path: Path) -> None:
    paprika(tmp_path / "a.json", "run-a")
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "live")
        ref = app.main.runs.ref
        paprika(tmp_path / "b.json", "run-b", status="error")
        await shows(app, pilot, "1 of 2 failed")
        assert app.main.runs.ref == ref


async def test_an_opened_run_that_is_going_on_is_followed(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    for _ in range(3):
        session.step()
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        session.step("the newest answer")
        await shows(app, pilot, "make 4")
        assert app.main.steps.at_newest
        await shows(app, pilot, "the newest answer")


async def test_scrolling_up_detaches_and_G_reattaches(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    for _ in range(3):
        session.step()
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        await press(pilot, "k")
        await lacks(app, pilot, "FOLLOW")
        here = app.main.steps.cursor
        session.step()
        await shows(app, pilot, "2 new below")
        assert app.main.steps.cursor == here
        await press(pilot, "G")
        await shows(app, pilot, "FOLLOW")
        await lacks(app, pilot, "new below")
        session.step()
        await shows(app, pilot, "make 5")
        assert app.main.steps.at_newest


async def test_F_follows_from_the_list_and_stops(opened: Opener, tmp_path: Path) -> None:
    paprika(tmp_path / "done.json", "done-run", steps=5)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "F")
        await shows(app, pilot, "FOLLOW")
        assert app.main.steps.at_newest
        paprika(tmp_path / "done.json", "done-run", steps=7)
        await shows(app, pilot, "q7")
        assert app.main.steps.at_newest
        await press(pilot, "F")
        await lacks(app, pilot, "FOLLOW")


async def test_text_that_streams_grows_in_place(opened: Opener, tmp_path: Path) -> None:
    """The body of the step under the cursor is read again when the step changes."""
    session = Session(tmp_path / "s.jsonl")
    call = session.call("Read", file_path="a.py")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        session.answer(call, "the answer of the call")
        await shows(app, pilot, "the answer of the call")


async def test_half_a_file_is_live_not_broken(opened: Opener, tmp_path: Path) -> None:
    whole = paprika(tmp_path / "whole.json", "whole-run")
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "live")
        half = tmp_path / "half.json"
        began = time.monotonic()
        half.write_bytes(whole[: len(whole) // 2])
        await shows(app, pilot, "unreadable")
        assert time.monotonic() - began >= 2.0
        half.write_bytes(whole)
        await lacks(app, pilot, "unreadable")
        await shows(app, pilot, "2 runs")


async def test_an_open_run_is_kept_while_its_file_is_rewritten_in_halves(opened: Opener, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    data = paprika(path, "rewritten", steps=4)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        path.write_bytes(data[:300])
        paprika(tmp_path / "other.json", "other")
        await until(pilot, lambda: len(app.store.runs) == 2)
        assert "q4" in text_of(app)
        paprika(path, "rewritten", steps=6)
        await shows(app, pilot, "q6")


async def test_the_strip_shows_the_silence_and_the_open_call(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    session.step()
    session.call("Bash", command="make check")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "silent")
        await shows(app, pilot, "open")
        await press(pilot, "i")
        await shows(app, pilot, "running:")
        session.end()
        await lacks(app, pilot, "silent")


async def test_a_failure_rings_only_when_wanted(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(TraceApp, "send", lambda self, sequence: sent.append(sequence))
    paprika(tmp_path / "a.json", "old-failure", status="error")
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "live")
        paprika(tmp_path / "b.json", "quiet-failure", status="error")
        await shows(app, pilot, "2 of 2 failed")
        assert sent == []
        app._notify = True
        paprika(tmp_path / "c.json", "loud\x1b]0;x\x07-failure", status="error")
        await shows(app, pilot, "3 of 3 failed")
        assert len(sent) == 1
        assert sent[0].startswith("\x07\x1b]9;researcher failed: it broke")
        assert sent[0].count("\x1b") == 1


async def test_a_run_whose_file_goes_stays_readable(opened: Opener, tmp_path: Path) -> None:
    paprika(tmp_path / "a.json", "run-a", steps=3)
    paprika(tmp_path / "b.json", "run-b", steps=3)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        assert app.main.state.ref is not None
        Path(app.main.state.ref.path).unlink()
        await shows(app, pilot, "file deleted")
        assert "q3" in text_of(app)


async def test_search_folds_and_scroll_stay_while_the_run_grows(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    for _ in range(60):
        session.step()
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter", "g")
        app.main.steps.search("make 7")
        await settle(pilot)
        top, cursor = app.main.steps.top, app.main.steps.cursor
        rows = len(app.main.steps.rows)
        session.step()
        await until(pilot, lambda: len(app.main.steps.rows) > rows)
        assert (app.main.steps.top, app.main.steps.cursor, app.main.steps.needle) == (top, cursor, "make 7")


async def test_a_root_that_is_deleted_and_comes_back(opened: Opener, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    paprika(root / "a.json", "run-a")
    async with opened(root) as (app, pilot):
        await shows(app, pilot, "live")
        (root / "a.json").unlink()
        root.rmdir()
        await until(pilot, lambda: not app.store.runs)
        root.mkdir()
        (root / "b.json").write_text(json.dumps({"schema_version": "1.0", "record_id": "run-b", "steps": []}))
        await until(pilot, lambda: len(app.store.runs) == 1)
