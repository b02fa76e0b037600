"""A live directory under a reader's hands: what is scrolled, folded, chosen and asked for stays as it is."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot

from tests.live.sessions import Session, paprika
from tests.ui.conftest import NOW, Opener, press, settle, text_of, until
from tests.ui.test_live import lacks, real_time, shows
from tests.views.build import make_run, make_span
from tracetui.analysis.liveness import State
from tracetui.live.mailbox import WatchState
from tracetui.model import Operation, Run, Status
from tracetui.store import address
from tracetui.store.store import Store
from tracetui.ui.app import TraceApp
from tracetui.ui.panes import run_list
from tracetui.ui.screens import main
from tracetui.ui.state import Goal
from tracetui.ui.widgets.frame import Vitals, header
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.glyphs import UNICODE

__all__ = ["real_time"]


def session_of(path: Path, steps: int, content: str = "done") -> Session:
    """A session that is going on, after so many steps."""
    session = Session(path)
    for _ in range(steps):
        session.step(content)
    return session


async def wheel(pilot: Pilot[int], view: LineView, notches: int) -> None:
    """Turn the wheel over a pane; negative is up."""
    kind = events.MouseScrollDown if notches > 0 else events.MouseScrollUp
    for _ in range(abs(notches)):
        view.post_message(kind(view, 5, 5, 0, 0, 0, False, False, False))
    await pilot.pause()


def later(path: Path) -> None:
    """A run that began after those that `paprika` writes."""
    path.write_bytes(paprika(path.with_suffix(".tmp"), path.stem).replace(b"T09:00", b"T09:30"))
    path.with_suffix(".tmp").unlink()


def agents(*work: list[str]) -> Run:
    """A run of agents side by side that each did such work, one after the other."""
    tool = Operation.EXECUTE_TOOL
    spans = [make_span("r", "root", Operation.INVOKE_AGENT)]
    for i, names in enumerate(work):
        spans.append(make_span(f"agent {i}", "agent", Operation.INVOKE_AGENT, parent_id="r"))
        spans += [make_span(name, name, tool, parent_id=f"agent {i}") for name in names]
    return make_run(spans)


# ---- what the wheel scrolled


async def test_the_scroll_position_of_the_wheel_stays_while_the_run_grows(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 60)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        steps = app.main.steps
        await wheel(pilot, steps, -10)
        await lacks(app, pilot, "FOLLOW")
        top, rows = steps.top, len(steps.rows)
        session.step()
        await until(pilot, lambda: len(steps.rows) > rows)
        assert steps.top == top
        steps.tick(time.time())
        assert steps.top == top


async def test_the_scroll_position_of_the_wheel_stays_while_the_list_changes(opened: Opener, tmp_path: Path) -> None:
    for i in range(60):
        paprika(tmp_path / f"r{i:02}.json", f"run-{i:02}")
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "live")
        runs = app.main.runs
        await wheel(pilot, runs, 5)
        first, cursor = runs.rows.key(runs.top), runs.cursor
        paprika(tmp_path / "zz.json", "another")
        await shows(app, pilot, "61 runs")
        assert (runs.rows.key(runs.top), runs.cursor) == (first, cursor)


# ---- following


async def test_visited_steps_are_not_counted_as_new(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 3)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        await press(pilot, "k")
        session.step()
        await shows(app, pilot, "2 new below")
        await press(pilot, "j", "j")
        await shows(app, pilot, "1 new below")
        await press(pilot, "j")
        await lacks(app, pilot, "new below")
        session.step()
        await shows(app, pilot, "2 new below")


async def test_new_steps_are_counted_the_same_in_both_views(opened: Opener, tmp_path: Path) -> None:
    """The row that says that there is no end yet goes when the run ends; it was no step."""
    session = session_of(tmp_path / "s.jsonl", 3)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        await press(pilot, "g")
        session.step()
        await shows(app, pilot, "2 new below")
        await press(pilot, "t")
        await shows(app, pilot, "2 new below")
        session.end()
        await lacks(app, pilot, "no end record")
        assert "2 new below" in text_of(app)


async def test_G_resumes_following_an_ended_run(opened: Opener, tmp_path: Path) -> None:
    paprika(tmp_path / "done.json", "done-run", steps=5)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "F", "k")
        await lacks(app, pilot, "FOLLOW")
        await press(pilot, "G")
        await shows(app, pilot, "FOLLOW")


async def test_the_end_of_a_followed_run_is_reported(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 3)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        assert "ended" not in text_of(app)
        session.end()
        await shows(app, pilot, "s-live ended")


async def test_following_moves_to_the_newest_step_anywhere(opened: Opener, tmp_path: Path) -> None:
    """Agents that work side by side: the newest step is not the last row."""
    session_of(tmp_path / "s.jsonl", 1)
    async with opened(tmp_path) as (app, _):
        steps = app.main.steps
        for as_tree in (False, True):
            steps.shown_as = "tree" if as_tree else "timeline"
            steps.show_run(agents(["a1"], ["b1"]), now=0)
            steps.attach()
            seen = [steps.cursor]
            for work in ((["a1", "a2"], ["b1"]), (["a1", "a2"], ["b1", "b2"]), (["a1", "a2", "a3"], ["b1", "b2"])):
                steps.show_run(agents(*work), now=0)
                seen.append(steps.cursor)
            assert seen == ["b1", "a2", "b2", "a3"]
            assert steps.at_newest


# ---- what is said


async def test_an_address_of_a_span_goes_there_though_the_run_is_going_on(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 30)
    async with opened(tmp_path) as (app, pilot):
        goal = Goal(address=address.parse(f"{session.path}/l7", os.path.isfile))
        app.main.state = replace(app.main.state, goal=goal)
        app.main.runs.rearrange()
        await until(pilot, lambda: app.main.steps.run is not None and app.main.state.level == 1)
        await settle(pilot)
        assert app.main.steps.cursor == "l7"
        assert "FOLLOW" not in text_of(app)


async def test_a_restored_file_is_not_reported_as_deleted(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 3)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        data = session.path.read_bytes()
        session.path.unlink()
        await shows(app, pilot, "file deleted")
        session.path.write_bytes(data)
        await lacks(app, pilot, "file deleted")
        session.step()
        await shows(app, pilot, "make 4")


async def test_the_reason_of_a_state_is_kept_current(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 3)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter", "i")
        await shows(app, pilot, "running:")
        session.end()
        await shows(app, pilot, "ended:")


async def test_reading_the_detail_stops_following(opened: Opener, tmp_path: Path) -> None:
    """What somebody scrolls or unfolds is not exchanged for the next step under their eyes."""
    session = session_of(tmp_path / "s.jsonl", 3, "line\n" * 60)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        await shows(app, pilot, "F stop following")
        await press(pilot, "3", ">", ">")
        assert "FOLLOW" in text_of(app)
        await wheel(pilot, app.main.detail, 2)
        await lacks(app, pilot, "FOLLOW")
        await shows(app, pilot, "F follow again")
        top = app.main.detail.top
        session.step()
        await shows(app, pilot, "2 new below ▾ F follows again")
        assert app.main.detail.top == top > 0
        await press(pilot, "F")
        await shows(app, pilot, "FOLLOW")


# ---- the header


def test_the_header_names_the_watch_method() -> None:
    def right(watching: WatchState, width: int) -> str:
        vitals = Vitals(watching, Counter(), State.ENDED)
        return "".join(piece.text for piece in header(["/d"], Store(), UNICODE, vitals, None, width)[1])

    assert right(WatchState("events", "", 3, 40), 120).endswith("● live 3 folders")
    assert right(WatchState("polling", "no watches left (ENOSPC)", 3, 40), 120).endswith("● live 3 folders polling")
    assert right(WatchState("polling", "a network", 1, 40), 200).endswith("● live 1 folder polling (a network)")
    assert right(WatchState("polling", "a network", 1, 40), 80).endswith("● live")


# ---- the list


async def test_runs_that_appear_above_are_counted(opened: Opener, tmp_path: Path) -> None:
    for i in range(60):
        paprika(tmp_path / f"r{i:02}.json", f"run-{i:02}")
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "live")
        await press(pilot, "pagedown")
        for i in range(3):
            later(tmp_path / f"zz{i}.json")
        await shows(app, pilot, "3 new above ▴ g")
        await press(pilot, "!", "!")
        await lacks(app, pilot, "new above")
        later(tmp_path / "zz3.json")
        await shows(app, pilot, "1 new above ▴ g")
        await press(pilot, "g")
        await lacks(app, pilot, "new above")


async def test_the_cursor_stays_on_a_run_whose_file_gets_another_name(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_list, "REUNION_SECONDS", 3600.0)
    folder = tmp_path / "m"
    folder.mkdir()
    for name in "abcdef":
        paprika(tmp_path / ("m" if name == "d" else ".") / f"{name}.json", f"run-{name}")
    async with opened(tmp_path) as (app, pilot):
        runs = app.main.runs
        runs.move_to_key(next(ref for ref in app.store.runs if ref.path.endswith("d.json")))
        await settle(pilot)
        folder.rename(tmp_path / "z")
        await until(pilot, lambda: runs.ref is not None and runs.ref.path == str(tmp_path / "z" / "d.json"))


async def test_the_cursor_returns_to_a_recreated_run(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_list, "REUNION_SECONDS", 3600.0)
    for name in "abc":
        paprika(tmp_path / f"{name}.json", f"run-{name}")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "j")
        ref = app.main.runs.ref
        assert ref is not None
        data = Path(ref.path).read_bytes()
        Path(ref.path).unlink()
        await shows(app, pilot, "2 runs")
        Path(ref.path).write_bytes(data)
        await shows(app, pilot, "3 runs")
        await until(pilot, lambda: app.main.runs.ref == ref)


async def test_a_quiet_run_stays_among_the_live_and_is_called_quiet_everywhere(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = NOW.timestamp()
    monkeypatch.setattr(TraceApp, "clock", lambda self: now)
    for name, age in (("s", 60), ("t", 90_000)):
        os.utime(session_of(tmp_path / f"{name}.jsonl", 3).path, (now - age, now - age))
    async with opened(tmp_path) as (app, pilot):
        lines = text_of(app).splitlines()
        live = next(i for i, line in enumerate(lines) if line.startswith(" live "))
        assert lines[live + 1].split()[:3] == ["▌◐", "claude-code", "quiet"]
        assert lines[live + 2].startswith(" today")
        assert "claude-code quiet · 3 steps" in text_of(app)
        await press(pilot, "enter")
        await shows(app, pilot, "i why quiet")
        assert "status unknown" not in text_of(app)


async def test_a_silent_run_has_the_same_state_everywhere(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = NOW.timestamp()
    monkeypatch.setattr(TraceApp, "clock", lambda self: now)
    path = tmp_path / "r.json"
    record = json.loads(paprika(path, "slow", steps=9, status="running"))
    for number, step in enumerate(record["steps"]):  # silent for two minutes, after a step every two seconds
        step["timestamp"] = datetime.fromtimestamp(now - 140 + 2 * number, UTC).isoformat()
    record["execution"] |= {"started_at": record["steps"][0]["timestamp"], "duration_ms": None}
    path.write_text(json.dumps(record))
    os.utime(path, (now - 122, now - 122))
    paprika(tmp_path / "ended.json", "ended")
    async with opened(tmp_path) as (app, pilot):
        app.main.runs.move_to_key(next(ref for ref in app.store.runs if ref.path == str(path)))
        await shows(app, pilot, "researcher stalled?")
        await settle(pilot)
        row = next(line for line in text_of(app).splitlines() if line.startswith("▌◐ researcher"))
        assert "stalled?" in row
        assert "quiet" not in text_of(app)
        await press(pilot, "enter")
        await shows(app, pilot, "stalled?")
        assert "quiet" not in text_of(app)


async def test_the_preview_of_a_run_that_was_left_does_not_jump_later(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 3)
    async with opened(tmp_path) as (app, pilot):
        before = text_of(app).splitlines()[3:6]
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        await press(pilot, "escape")
        await until(pilot, lambda: text_of(app).splitlines()[3:6] == before)
        session.step()
        await shows(app, pilot, "make 4")
        assert "claude-code running" in text_of(app)
        assert "· 4 steps" in text_of(app)


async def test_a_status_message_does_not_hide_a_deleted_file(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 3)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter", "e")
        await shows(app, pilot, "No errors")
        session.path.unlink()
        await shows(app, pilot, "file deleted")
        await press(pilot, "escape")
        await shows(app, pilot, "No traces in")
        assert "FOLLOW" not in text_of(app)


async def test_the_error_walk_unfolds_folds_around_an_error(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 2)
    session.step("it broke", ok=False)
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter", "z", "M", "g", "e")
        assert app.main.steps.span is not None
        assert app.main.steps.span.status is Status.ERROR
        await press(pilot, "e")
        await shows(app, pilot, "Last error")


async def test_the_list_summary_is_kept_current_without_events(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paprika(tmp_path / "ended.json", "ended")
    session = session_of(tmp_path / "s.jsonl", 3)
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # one of another day would be the copy of an old one
    session.path.write_text(session.path.read_text().replace("2026-11-21T09:00:00Z", began))
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "◐ 1")
        app.main.runs.move_to_key(next(ref for ref in app.store.runs if ref.path.endswith("ended.json")))
        await settle(pilot)
        assert "stalled?" not in text_of(app)
        monkeypatch.setattr(TraceApp, "clock", lambda self: time.time() + 400)
        await shows(app, pilot, "1 stalled?")


async def test_ages_are_kept_current_in_the_list_and_above_the_steps(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "AGE_TICKS", 1)
    start = json.loads(paprika(tmp_path / "ended.json", "ended"))["execution"]["started_at"]
    began = datetime.fromisoformat(start).timestamp()
    monkeypatch.setattr(TraceApp, "clock", lambda self: began + 3600)
    async with opened(tmp_path) as (app, pilot):
        await shows(app, pilot, "1h ago")
        monkeypatch.setattr(TraceApp, "clock", lambda self: began + 3 * 3600)
        await shows(app, pilot, "3h ago")
        await lacks(app, pilot, "1h")


async def test_the_end_row_of_a_run_comes_into_view_with_its_last_step(opened: Opener, tmp_path: Path) -> None:
    session = session_of(tmp_path / "s.jsonl", 30)
    async with opened(tmp_path, size=(80, 24)) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "no end record yet")
        session.step("it broke", ok=False)
        session.end("error")
        await shows(app, pilot, "run ends here")
        await press(pilot, "k", "k")
        await lacks(app, pilot, "FOLLOW")
        await press(pilot, "g", "G")
        assert "run ends here" in text_of(app)


async def test_no_row_is_hidden_above_blank_rows_while_a_run_is_followed(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        steps = app.main.steps
        for number in range(1, 25):
            session.step(f"answer {number}")
            await shows(app, pilot, f"make {number}")
            assert steps.top == max(0, len(steps.rows) - steps.page), f"after {number} steps"


async def test_the_next_pane_of_a_screen_without_room_for_any(opened: Opener, tmp_path: Path) -> None:
    paprika(tmp_path / "a.json", "run-a")
    async with opened(tmp_path, size=(20, 5)) as (app, pilot):
        await press(pilot, "tab", "shift+tab", "tab")
        assert app.is_running


async def test_an_unreachable_run_has_no_silence_strip(opened: Opener, tmp_path: Path) -> None:
    session = Session(tmp_path / "s.jsonl")
    session.step()
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "silent")
        app.liveness.watching = WatchState(mode="polling", lost="box does not answer")
        app.main.tick()
        await lacks(app, pilot, "silent")
        await shows(app, pilot, "connection lost  box does not answer")


async def test_no_body_is_loaded_for_an_unfollowed_step(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[bool] = []
    monkeypatch.setattr("tracetui.live.engine.Engine.follow", lambda self, on: calls.append(on))
    session = Session(tmp_path / "s.jsonl")
    for _ in range(3):
        session.step()
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "enter")
        await shows(app, pilot, "FOLLOW")
        assert calls[-1]
        await press(pilot, "k")
        session.step()
        await shows(app, pilot, "2 new below")
        assert not calls[-1]
