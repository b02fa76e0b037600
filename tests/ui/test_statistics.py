"""Statistics by keys, on the built-in samples: of a run, of a group of failures, of all runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import Opener, line, press, settle, text_of, until
from tests.ui.test_filtering import agents, keys
from tests.ui.test_triage import NIGHT, go_to_type, triage
from tracetui.analysis.statistics import By
from tracetui.live.engine import Engine
from tracetui.sources.local import LocalSource
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import RUNS
from tracetui.ui.screens.lists import StatisticsScreen
from tracetui.views.list.tables import StatisticRows


@asynccontextmanager
async def loading(folder: Path) -> AsyncIterator[tuple[TraceApp, Pilot[int], Engine]]:
    """The app before its engine starts to list a folder."""
    engine = Engine(LocalSource(), [str(folder)])
    app = TraceApp(engine, [str(folder)])
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            yield app, pilot, engine
    finally:
        engine.stop()


async def statistics(app: TraceApp, pilot: Pilot[int]) -> StatisticsScreen:
    """The statistics, opened by their key and complete."""
    await press(pilot, "S")
    screen = app.screen
    assert isinstance(screen, StatisticsScreen)
    await until(pilot, lambda: "reading" not in line(app, 1), what="complete statistics")
    return screen


def counts(screen: StatisticsScreen) -> dict[str, int]:
    """How often each name is there."""
    rows = screen.list.rows
    assert isinstance(rows, StatisticRows)
    return {row.name: row.count for i in range(len(rows)) if (row := rows.row(i)) is not None}


async def test_all_runs_are_counted_and_enter_shows_those_that_called_a_tool(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await statistics(app, pilot)
        whole = len(app.store.runs)
        assert "of all runs" in line(app, 0)
        assert line(app, 1).strip().startswith(f"{whole} runs, by tool")
        assert counts(screen)["search"] > 5
        assert screen.list.move_to_key("search")
        await press(pilot, "enter")
        assert app.screen is app.main
        assert app.main.pane == RUNS
        assert app.main.runs.arrangement.query == "tool:search"
        runs = [app.store.runs[ref] for ref in app.main.runs.refs()]
        assert 0 < len(runs) < whole
        assert all("search" in (run.tools or ()) for run in runs)


async def test_the_frame_is_fitted_to_a_new_size(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await statistics(app, pilot)
        await pilot.resize_terminal(60, 24)
        await settle(pilot)
        footer, _, _ = line(app, 23).partition("?")
        assert "search" in footer
        assert "…" not in footer
        assert line(app, 0).startswith(" tracetui  statistics")


@pytest.mark.parametrize("key", ["K", "a", "x"])
async def test_a_missing_run_is_reported_until_there_is_one(samples: Path, key: str) -> None:
    async with loading(samples) as (app, pilot, engine):
        await pilot.press(key)
        await pilot.pause()
        assert "no run under the cursor" in line(app, 1)
        engine.start()
        await until(pilot, lambda: app.main.ref is not None and app.listed, what="the list")
        await settle(pilot)
        assert "no run under the cursor" not in line(app, 1)


@pytest.mark.parametrize("key", ["S", "C"])
async def test_a_part_of_the_runs_is_not_called_all(samples: Path, key: str) -> None:
    async with loading(samples) as (app, pilot, engine):
        await pilot.press(key)
        await pilot.pause()
        assert app.screen is app.main
        assert "list still loading; wait until it is complete" in line(app, 1)
        engine.start()
        await until(pilot, lambda: app.listed, what="the list")
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.main, what="the screen")


async def test_the_rows_are_chosen_by_keys_around_the_end(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await statistics(app, pilot)
        seen = []
        for _ in By:
            await press(pilot, "greater_than_sign")
            seen.append(screen.by)
            assert f"by {screen.by.value}" in line(app, 1)
        assert set(seen) == set(By)
        assert screen.by is By.TOOL
        await press(pilot, "less_than_sign")
        assert screen.by is seen[-2]


async def test_statistics_count_only_the_filtered_runs(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "f", *keys("agent:deployer"), "enter")
        screen = await statistics(app, pilot)
        assert "filtered" in line(app, 0)
        assert line(app, 1).strip().startswith("1 run, by")
        while screen.by is not By.AGENT:
            await press(pilot, "greater_than_sign")
        assert list(counts(screen)) == ["deployer"]
        await press(pilot, "escape")
        assert agents(app) == {"deployer"}


async def test_statistics_of_a_run_count_it_alone_and_enter_leads_to_the_list(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter")
        ref = app.main.state.ref
        assert ref is not None
        screen = await statistics(app, pilot)
        assert "of run" in line(app, 0)
        assert line(app, 1).strip().startswith("1 run, by tool")
        assert set(counts(screen)) == set(app.store.runs[ref].tools or ())
        await press(pilot, "escape")
        assert app.screen is app.main
        assert (app.main.state.level, app.main.state.ref) == (1, ref)

        screen = await statistics(app, pilot)
        assert screen.list.move_to_key("search")
        await press(pilot, "enter")
        assert app.main.pane == RUNS
        assert app.main.runs.arrangement.query == "tool:search"


async def test_a_cause_is_counted_from_the_triage_and_enter_leads_to_the_list(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        queue = await triage(app, pilot)
        await go_to_type(queue, pilot, NIGHT)
        group = queue.queue.group
        assert group is not None
        screen = await statistics(app, pilot)
        assert group.id in line(app, 0)
        assert line(app, 1).strip().startswith(f"{len(group.runs)} runs")
        assert "search" in counts(screen)
        await press(pilot, "q")
        assert app.screen is queue
        assert queue.queue.group == group

        screen = await statistics(app, pilot)
        assert screen.list.move_to_key("search")
        await press(pilot, "enter")
        assert app.main.is_current
        assert app.main.runs.arrangement.query == "tool:search"
        assert "search" in text_of(app)


async def test_an_unrecorded_kind_has_a_message(opened: Opener, samples: Path) -> None:
    async with opened(next(samples.glob("paprika/2c77f4*.json"))) as (app, pilot):
        screen = await statistics(app, pilot)
        while screen.by is not By.NODE:
            await press(pilot, "greater_than_sign")
        assert "no node recorded" in text_of(app)
        await press(pilot, "enter", "j", "escape")
        assert app.screen is app.main
