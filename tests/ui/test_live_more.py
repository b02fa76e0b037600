"""A live directory under a reader's hands: what is scrolled, folded, chosen and asked for stays as it is."""

from __future__ import annotations

import time
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from tests.live.sessions import Session, paprika
from tests.ui.conftest import Opener, press, until
from tests.ui.test_live import lacks, real_time, shows
from tracetui.ui.line_view import LineView

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


# ---- what the wheel scrolled


async def test_what_the_wheel_scrolled_stays_while_the_run_grows(opened: Opener, tmp_path: Path) -> None:
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


async def test_what_the_wheel_scrolled_stays_while_the_list_changes(opened: Opener, tmp_path: Path) -> None:
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
