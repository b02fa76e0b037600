"""What failed or marked runs share that others lack, by keys; the error walk; comparing from the triage."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.night import Night
from tests.ui.conftest import Opener, line, press, settle, text_of, until
from tests.ui.test_triage import go_to_type, the_triage, triage
from tracetui.analysis import navigation
from tracetui.model import Status
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import DETAIL
from tracetui.ui.screens.diff import DiffScreen
from tracetui.ui.screens.lists import ContrastScreen, ReplaysScreen
from tracetui.views.triage import example_of


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough runs that chance does not explain what those of a cause share."""
    folder = tmp_path_factory.mktemp("night")
    Night(folder, seed=3).fill(48, 40)
    return folder


async def contrast(app: TraceApp, pilot: Pilot[int]) -> ContrastScreen:
    """The contrast, opened by its key and complete."""
    await press(pilot, "C")
    screen = app.screen
    assert isinstance(screen, ContrastScreen)
    await until(pilot, lambda: app.surveys.has_contrast(screen.refs), what="a complete contrast")
    return screen


async def open_example(app: TraceApp, pilot: Pilot[int], screen: ContrastScreen) -> None:
    """Open the example under the cursor, and see that it is the one that the row promises."""
    example = example_of(screen.list.cursor)
    assert example is not None
    ref, span = example
    await press(pilot, "enter")
    await until(pilot, lambda: app.main.state.ref == ref and app.main.settled, what="the example")
    if span is not None:
        assert app.main.steps.span is not None
        assert app.main.steps.span.id == span


async def test_contrast_has_as_many_failed_runs_as_the_list_says(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        failed = app.store.overview.failed
        assert line(app, 1).strip().startswith(f"{failed} of ")
        assert sum(run.failed for run in app.store.runs.values()) > failed, "a run inside another one failed too"
        await press(pilot, "C")
        assert f"the {failed} failed runs" in line(app, 0)


async def test_failed_runs_are_contrasted_with_the_others(opened: Opener, night: Path) -> None:
    async with opened(night) as (app, pilot):
        failed = sum(run.status is Status.ERROR for run in app.store.runs.values())
        screen = await contrast(app, pilot)
        assert f"the {failed} failed runs" in line(app, 0)
        assert f"/{failed}" in text_of(app)
        assert "these" in text_of(app)
        await open_example(app, pilot, screen)
        await press(pilot, "escape")
        reopened = app.screen
        assert isinstance(reopened, ContrastScreen)
        await settle(pilot)
        assert "compar" not in line(app, 1)  # known already
        await press(pilot, "escape")
        assert app.screen is app.main
        assert not app.main.state.level


async def test_the_cursor_is_where_it_was_when_an_example_is_left(opened: Opener, night: Path) -> None:
    async with opened(night) as (app, pilot):
        screen = await contrast(app, pilot)
        await press(pilot, "j")
        before = screen.list.cursor
        assert example_of(before) is not None
        await open_example(app, pilot, screen)
        await press(pilot, "escape")
        reopened = app.screen
        assert isinstance(reopened, ContrastScreen)
        await settle(pilot)
        assert reopened.list.cursor == before


async def test_marked_runs_are_contrasted_with_the_others(opened: Opener, night: Path) -> None:
    async with opened(night) as (app, pilot):
        marked = [run.ref for run in app.store.runs.values() if run.tools and "update" in run.tools]
        assert len(marked) == 4
        for ref in marked:
            assert app.main.runs.move_to_key(ref)
            await press(pilot, "space")
        await contrast(app, pilot)
        assert "4 marked runs" in line(app, 0)
        assert "update" in text_of(app)
        assert "4/4" in text_of(app)


async def test_a_cause_is_contrasted_with_the_others_and_leads_to_an_example(opened: Opener, night: Path) -> None:
    async with opened(night) as (app, pilot):
        queue = await triage(app, pilot)
        await go_to_type(queue, pilot, "KeyError")
        group = queue.queue.group
        assert group is not None
        screen = await contrast(app, pilot)
        assert group.id in line(app, 0)
        await open_example(app, pilot, screen)
        assert app.main.state.ref in group.runs
        await press(pilot, "escape")
        assert isinstance(app.screen, ContrastScreen)
        await press(pilot, "escape")
        assert the_triage(app).queue.group == group


async def test_the_shared_factors_of_a_cause_are_shown_beside_it(opened: Opener, night: Path) -> None:
    async with opened(night) as (app, pilot):
        queue = await triage(app, pilot)
        await go_to_type(queue, pilot, "KeyError")
        await until(pilot, lambda: "comparing" not in text_of(app) and "4/4" in text_of(app), what="the contrast")
        await press(pilot, "2", "G", "enter")
        assert app.screen is app.main
        assert app.main.state.level == 1
        await press(pilot, "escape")
        assert the_triage(app).queue.group is not None


async def test_a_contrast_without_runs_to_compare_has_a_message(opened: Opener, samples: Path) -> None:
    async with opened(samples / "latticeflow" / "trip.json") as (app, pilot):
        assert all(run.status is not Status.ERROR for run in app.store.runs.values())
        await press(pilot, "C")
        assert app.screen is app.main
        assert "Space marks runs" in line(app, 1)


# ---- from error to error


async def test_the_walk_counts_and_keeps_pane_and_tab(opened: Opener, samples: Path) -> None:
    async with opened(samples / "paprika") as (app, pilot):
        await press(pilot, "enter", "tab")
        assert app.main.pane == DETAIL
        await press(pilot, "greater_than_sign")
        tab = app.main.detail.tab
        visited = []
        for _ in range(20):
            await press(pilot, "e")
            await until(pilot, lambda: app.main.state.goal is None, what="the run")
            if "Last error" in line(app, 1):
                break
            run = app.main.steps.run
            assert run is not None
            errors = navigation.errors(run)
            if errors:
                assert app.main.steps.span is not None
                here = errors.index(app.main.steps.span.id) + 1
                assert f"e {here}/{len(errors)}" in line(app, 1)
            visited.append(app.main.state.ref)
            assert app.main.pane == DETAIL
            assert tab not in app.main.detail.tabs or app.main.detail.tab == tab
        else:
            raise AssertionError("the walk has no end")
        assert len(set(visited)) > 3
        last = app.main.state.ref
        await press(pilot, "E")
        await until(pilot, lambda: app.main.state.goal is None, what="the run before")
        run = app.main.steps.run
        assert run is not None
        if app.main.state.ref != last:  # from behind, a run is entered at its last error
            errors = navigation.errors(run)
            assert f"e {len(errors)}/{len(errors)}" in line(app, 1)


async def test_a_run_of_the_triage_is_compared_with_its_original(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        queue = await triage(app, pilot)
        replay = next(
            group
            for group in queue.queue.groups
            if any(app.store.runs[ref].replay_of is not None for ref in group.runs)
        )
        queue.queue.move_to_key(replay.digest)
        await settle(pilot)
        await press(pilot, "D")
        assert isinstance(app.screen, DiffScreen | ReplaysScreen)
        await press(pilot, "escape")
        assert the_triage(app) is queue


async def test_a_run_of_the_triage_without_replays_has_a_message(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        queue = await triage(app, pilot)
        await go_to_type(queue, pilot, "max_repeat_hashes")
        await press(pilot, "D")
        assert the_triage(app) is queue
        assert "replay" in line(app, 1)


async def test_a_contrast_is_drawn_for_the_new_size(opened: Opener, night: Path) -> None:
    async with opened(night, size=(120, 40)) as (app, pilot):
        await contrast(app, pilot)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.size.width == 80)
        assert "passed runs" in text_of(app)
