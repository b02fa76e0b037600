"""A session home in the app: where the cursor starts, how sessions stand, and the command that resumes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions import OPEN, home, session
from tests.ui.conftest import NOW, Opener, press, until
from tests.ui.conftest import text_of as screen
from tracetui.model import RunSummary
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.lists import HitsScreen
from tracetui.views.list.runs import RunRows
from tracetui.views.rows import Line


def text_of(line: Line) -> str:
    return "".join(piece.text for piece in line)


def list_text(app: TraceApp) -> str:
    rows = app.main.runs.rows
    return "\n".join(text_of(rows.line(i, 150)) for i in range(len(rows)))


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    return home(tmp_path, NOW.timestamp())


async def test_the_cursor_starts_on_the_newest_session_not_on_a_failed_one(opened: Opener, tmp_path: Path) -> None:
    session("old").fail().write(tmp_path, NOW.timestamp(), 9_000)
    session("new", OPEN).write(tmp_path, NOW.timestamp(), 20)
    async with opened(tmp_path / ".claude") as (app, _):
        assert app.store.overview.failed == 1
        assert app.store.runs[app.main.runs.ref].id == "new"  # type: ignore[index]


async def test_runs_of_sub_agents_on_the_first_page_change_nothing(opened: Opener, tmp_path: Path) -> None:
    session("old").fail().write(tmp_path, NOW.timestamp(), 9_000)
    path = session("new", OPEN).write(tmp_path, NOW.timestamp(), 20)
    agent = path.read_bytes().replace(b'"isSidechain": false', b'"isSidechain": true, "agentId": "1"')
    (path.parent / "agent-1.jsonl").write_bytes(agent)
    async with opened(tmp_path / ".claude") as (app, _):
        assert [run.parent for run in app.store.runs.values() if run.parent]
        assert app.store.runs[app.main.runs.ref].id == "new"  # type: ignore[index]


async def test_the_cursor_leaves_a_failure_beyond_the_first_page(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(120, 40)) as (app, _):
        rows = app.main.runs.rows
        assert isinstance(rows, RunRows)
        first = next(i for i in range(len(rows)) if isinstance(rows.item(i), RunSummary) and rows.mark(i))
        assert app.main.runs.position == first
        assert first < app.main.runs.page


async def test_the_list_shows_the_state_of_each_session(opened: Opener, sessions: Path) -> None:
    async with opened(sessions, size=(160, 40)) as (app, pilot):
        await until(pilot, lambda: all(run.deep for run in app.store.runs.values()))
        listing = list_text(app)
    for text in (
        "~running: Bash", "~waiting for you  Fix the parser", "~interrupted  Rename the columns",
        "~done  Publish the site", "~done  Write the changelog",
    ):  # fmt: skip
        assert text in listing, listing


async def test_a_silent_session_is_called_stalled_by_every_part_of_the_screen(opened: Opener, tmp_path: Path) -> None:
    session("s", OPEN).write(tmp_path, NOW.timestamp(), 600)
    async with opened(tmp_path / ".claude", size=(160, 40)) as (app, pilot):
        await until(pilot, lambda: "~stalled? Bash, 10m" in list_text(app), what="its state in the list")
        heading = "".join(text_of(line) for line in app.main.steps.heading)
        assert "~stalled? Bash, 10m" in heading
        assert "1 stalled?" in screen(app).splitlines()[1]
        assert "running" not in screen(app)
        await press(pilot, "enter")
        assert "~stalled? Bash, 10m" in screen(app).splitlines()[0]
        await press(pilot, "i")
        assert screen(app).splitlines()[1].startswith(" ~stalled?: no change for 10m00")


async def test_the_reason_of_an_interrupted_session_is_shown(opened: Opener, tmp_path: Path) -> None:
    session("s", OPEN).write(tmp_path, NOW.timestamp(), 2 * 3600)
    async with opened(tmp_path / ".claude", size=(160, 40)) as (app, pilot):
        await press(pilot, "enter")
        await until(pilot, lambda: "why ~interrupted" in screen(app), what="the hint")
        await press(pilot, "i")
        assert screen(app).splitlines()[1].startswith(" ~interrupted: ")


async def test_hits_show_the_state_of_a_session_like_the_list(opened: Opener, sessions: Path) -> None:
    async with opened(sessions, size=(160, 40)) as (app, pilot):
        await until(pilot, lambda: all(run.deep for run in app.store.runs.values()))
        rows = app.main.runs.rows
        listed = {
            ref.address: text_of(rows.line(i, 150))[0]
            for i in range(len(rows))
            if (ref := rows.key(i)) in app.store.runs
        }
        await press(pilot, "ampersand", *"make", "enter")
        hits = app.screen
        assert isinstance(hits, HitsScreen)
        await until(pilot, lambda: "searching" not in screen(app).splitlines()[1], what="the end of the search")
        rows = hits.list.rows
        headings = [i for i in range(len(rows)) if not rows.selectable(i)]
        assert len(headings) > 2
        for i in headings:
            assert text_of(rows.line(i, 150))[0] == listed[rows.plain(i)]


async def test_yr_copies_the_command(opened: Opener, sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    def copy(self: TraceApp, text: str) -> int:
        copied.append(text)
        return len(text)

    monkeypatch.setattr(TraceApp, "copy", copy)
    async with opened(sessions) as (_, pilot):
        await pilot.press("j", "y", "r")
    assert copied == ["cd /home/me/parser && claude --resume aaaa-2"]


async def test_a_run_that_cannot_be_resumed_has_a_message(opened: Opener, samples: Path) -> None:
    async with opened(samples / "harbor" if (samples / "harbor").exists() else samples) as (app, pilot):
        await pilot.press("y", "r")
        assert "no command resumes this run" in text_of(app.main.status_message)
