"""The dashboard of live runs: what it shows of each, how it follows them, and what that costs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.sessions import TOOL, Session, session
from tests.ui.conftest import NOW, Opener, settle, text_of, until
from tracetui.live.jobs import WatchedRuns
from tracetui.live.readers import Readers
from tracetui.model import Run, RunRef
from tracetui.sources.local import LocalSource
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.today import LiveScreen, TodayScreen


def working(ident: str, ago: float, *results: str, cwd: str = "/home/me/shop") -> Session:
    """A session whose last call is open."""
    made = Session(ident, cwd=cwd).prompt(f"Work of {ident}").titled(f"Title of {ident}")
    for result in results:
        made.call("Read", file_path=f"{result}.py").result(result).answer(f"I have read {result}.")
    return made.call("Bash", command=f"make {ident}")


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """Three running sessions, one that waits, one that ended."""
    now = NOW.timestamp()
    for number, name in enumerate(("aaaa", "bbbb", "cccc")):
        working(name, 0, "parser").write(tmp_path, now, 5 + 8 * number)
    session("dddd", title="Waits").write(tmp_path, now, 600)
    session("eeee", title="Ended").write(tmp_path, now, 40 * 3600)
    return tmp_path / ".claude" / "projects"


async def dashboard(pilot: Pilot[int]) -> LiveScreen:
    app = pilot.app
    assert isinstance(app, TraceApp)
    await settle(pilot)
    await pilot.press("L")
    await until(pilot, lambda: isinstance(app.screen, LiveScreen) and "reading" not in text_of(app))
    assert isinstance(app.screen, LiveScreen)
    return app.screen


async def test_every_live_run_with_its_open_call_silence_and_last_line(opened: Opener, live: Path) -> None:
    async with opened(live) as (app, pilot):
        await dashboard(pilot)
        lines = text_of(app).split("\n")
    assert "3 running" in lines[1]
    assert "1 waiting for you" in lines[1]
    for number, name in enumerate(("aaaa", "bbbb", "cccc")):
        at = next(i for i, line in enumerate(lines) if f"Title of {name}" in line)
        assert f"{5 + 8 * number}s" in lines[at]
        assert f"running make {name} {5 + 8 * number}s" in lines[at + 1]
        assert "I have read parser." in lines[at + 1]
    assert not any("Ended" in line for line in lines)


async def test_enter_follows_and_esc_comes_back(opened: Opener, live: Path) -> None:
    async with opened(live) as (app, pilot):
        await dashboard(pilot)
        await pilot.press("j", "j", "enter")
        await until(pilot, lambda: app.screen is app.main and app.main.steps.following)
        opened_ref = app.main.state.ref
        assert opened_ref is not None
        assert app.store.runs[opened_ref].id == "bbbb"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and app.screen.ref == opened_ref)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main and not app.main.state.level)


async def test_it_follows_a_run_until_it_waits(
    opened: Opener, live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = NOW.timestamp()
    async with opened(live) as (app, pilot):
        await dashboard(pilot)
        working("bbbb", 0, "parser", "lexer", "tokens").write(tmp_path, now, 3)
        await until(pilot, lambda: "I have read tokens." in text_of(app))
        working("aaaa", 0, "parser").result("built").answer("All is built.").write(tmp_path, now, 1)
        await until(pilot, lambda: "All is built." in text_of(app))
        monkeypatch.setattr(TraceApp, "clock", lambda self: now + 60)
        await until(pilot, lambda: "2 running" in text_of(app) and "All is built." in text_of(app))
        assert "2 waiting for you" in text_of(app)


async def test_a_few_runs_show_more_of_their_last_lines(opened: Opener, tmp_path: Path) -> None:
    working("aaaa", 0, *(f"part{number}" for number in range(9))).write(tmp_path, NOW.timestamp(), 5)
    async with opened(tmp_path / ".claude" / "projects") as (app, pilot):
        screen = await dashboard(pilot)
        await until(pilot, lambda: text_of(app).count("I have read part") == 4, what="the last lines")
        lines = [line.strip() for line in text_of(app).split("\n")[5:15]]
        assert ["I have read part" in line for line in lines].count(True) == 4
        assert "make aaaa" in lines[1]
        assert "part8" in lines[1]
        assert "part5" in lines[8]
        await pilot.click(offset=(20, 10))
        assert screen.ref is not None
        await pilot.resize_terminal(120, 10)
        await until(pilot, lambda: "part7" not in text_of(app) and "part8" in text_of(app))


async def test_a_click_on_the_second_row_selects_the_run(opened: Opener, live: Path) -> None:
    async with opened(live) as (app, pilot):
        screen = await dashboard(pilot)
        first = screen.ref
        row = next(i for i, line in enumerate(text_of(app).split("\n")) if "make bbbb" in line)
        await pilot.click(offset=(20, row))
        assert screen.ref not in (None, first)


async def test_it_opens_from_today(opened: Opener, live: Path) -> None:
    async with opened(live) as (app, pilot):
        await settle(pilot)
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, TodayScreen) and "L live" in text_of(app))
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, TodayScreen))


async def test_a_page_without_live_runs_has_a_message(opened: Opener, tmp_path: Path) -> None:
    session("eeee", TOOL).write(tmp_path, NOW.timestamp(), 40 * 3600)
    async with opened(tmp_path / ".claude") as (app, pilot):
        await settle(pilot)
        await pilot.press("L")
        await until(pilot, lambda: "no live runs" in text_of(app))


def _seconds_of_news(path: Path, made: Session, steps: int) -> float:
    """Processor time to read 20 new steps of a session that has so many already."""
    for _ in range(steps):
        made.call("Read", file_path="a.py").result("ok")
    now = NOW.timestamp()
    file = made.write(path, now, 3)
    watched, readers, ref = WatchedRuns(), Readers(LocalSource()), RunRef("claude-code", str(file))

    def read() -> list[Run]:
        return [run for step in watched.job(readers, [ref]).work(LocalSource()) for run in step.new]

    (before,) = read()
    assert read() == []
    taken = 0.0
    for number in range(20):
        made.call("Read", file_path=f"{number}.py")
        with file.open("a") as tail:
            tail.write(made.last_line(now))
        began = time.process_time()
        (after,) = read()
        taken += time.process_time() - began
        assert len(after.spans) > len(before.spans)
        before = after
    return taken


def test_new_steps_cost_the_same_in_a_long_run(tmp_path: Path) -> None:
    short = min(_seconds_of_news(tmp_path / str(i), Session("aaaa"), 50) for i in range(3))
    long = min(_seconds_of_news(tmp_path / f"long-{i}", Session("bbbb"), 5_000) for i in range(2))
    assert long < 4 * short + 0.02, (short, long)
