"""The run tree by keys: forks, folds, selected trials, comparisons and runs that open from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.trials import BOOK, BOOKING, FOUR, HUMAN, LOOKUP, write_trials
from tests.ui.conftest import NOW, Opener, line, press, settle, text_of, until
from tracetui.analysis.tasks import as_trials
from tracetui.live import jobs as job
from tracetui.model import RunSummary
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.diff import DiffScreen
from tracetui.ui.screens.run_tree import RunTreeScreen
from tracetui.views.run_tree import Kind, Node


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trials")
    write_trials(folder)
    for path in folder.rglob("*"):
        os.utime(path, (NOW.timestamp() - 3600,) * 2)
    return folder


def runs_of(app: TraceApp) -> list[RunSummary]:
    return sorted(app.store.runs.values(), key=lambda run: run.trial or run.id)


async def wait_for_tree(app: TraceApp, pilot: Pilot[int]) -> RunTreeScreen:
    """Wait until the run tree on top is complete."""
    screen = app.screen
    assert isinstance(screen, RunTreeScreen)
    await until(pilot, lambda: screen.settled and bool(screen.branches.tree_rows), what="the tree")
    return screen


async def tree_of(app: TraceApp, pilot: Pilot[int], selected: int = 0) -> RunTreeScreen:
    """The tree of all runs as the matrix opens it."""
    runs = runs_of(app)
    app.show_run_tree(as_trials(runs), title="rebook-flight", selected=runs[selected].ref)
    await pilot.pause()
    return await wait_for_tree(app, pilot)


def node(screen: RunTreeScreen) -> Node:
    current = screen.branches.node
    assert current is not None
    return current


async def test_it_begins_at_the_first_fork_with_its_chance(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)

        assert (node(screen).kind, node(screen).step) == (Kind.FORK, 2)
        said = "3 of 4 here, 1 of 3 passed · elsewhere 0 of 1 passed · could be chance"
        assert said in line(app, 1)
        assert "1 passed · 3 failed" in line(app, 0)
        assert "rebook-flight" in line(app, 0)
        assert "4 trials, 3 forks · none decisive" in text_of(app)
        rows, fork = screen.branches.tree_rows, node(screen).fork
        assert rows is not None
        assert fork is not None
        assert f"decisive at {rows.tree.trials_to_decide(fork)} trials" in text_of(app)


async def test_the_step_under_the_cursor_is_below_the_tree(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)
        preview = screen._preview

        async def shows(text: str) -> None:
            await until(pilot, lambda: preview.body is not None and text in text_of(app), what=text)

        assert preview.is_on_screen
        await shows(f"Trial 1 step 3 ■ {BOOKING[0]}")  # as the run counts: with the message of the user
        await press(pilot, "k")
        await shows(f"Trial 1 step 2 ■ {LOOKUP[0]}")
        assert preview.region.bottom == app.size.height - 1
        assert len(preview.rows) < preview.page  # complete


async def test_a_low_screen_shows_the_tree_only(opened: Opener, trials: Path) -> None:
    async with opened(trials, size=(80, 15)) as (app, pilot):
        screen = await tree_of(app, pilot)
        assert not screen._preview.is_on_screen


async def test_motions_between_forks(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)
        steps = [node(screen).step]
        for keys in (("]", "f"), ("]", "f"), ("[", "f")):
            await press(pilot, *keys)
            steps.append(node(screen).step)
        assert steps == [2, 3, 5, 3]
        await press(pilot, "[", "f", "[", "f")
        assert "no earlier forks" in line(app, 1)
        await press(pilot, "]", "d")
        assert "no later decisive forks" in line(app, 1)


async def test_a_fork_opens_the_comparison_of_two_representatives_there(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)
        await press(pilot, "]", "f", "enter")
        diff = app.screen
        assert isinstance(diff, DiffScreen)
        await until(pilot, lambda: diff.settled, what="the comparison")
        runs = runs_of(app)
        assert (diff.request.a, diff.request.b) == (runs[0].ref, runs[2].ref)
        row, compared = diff.pairs.row, diff.diff
        assert row is not None
        assert compared is not None
        spans = compared.span_a(row), compared.span_b(row)
        assert [span.name for span in spans if span is not None] == ["search_flights"] * 2
        assert "2026-05-20" in text_of(app)
        await press(pilot, "escape")
        assert app.screen is screen
        assert node(screen).step == 3


async def test_d_compares_the_branch_under_the_cursor(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        await tree_of(app, pilot)
        await press(pilot, "j", "d")
        diff = app.screen
        assert isinstance(diff, DiffScreen)
        await until(pilot, lambda: diff.settled, what="the comparison")
        assert diff.request.a == runs_of(app)[3].ref


async def test_a_step_opens_the_selected_run_there_and_leaving_it_comes_back(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot, selected=1)
        await press(pilot, "j", "j")
        assert node(screen).branch.runs == (0, 1, 2)
        before = screen.branches.cursor
        await press(pilot, "enter")
        await until(pilot, lambda: app.screen is app.main and app.main.settled, what="the run")
        assert app.main.state.ref == runs_of(app)[1].ref
        assert app.main.steps.span is not None
        assert app.main.steps.span.name == BOOKING[0]
        await press(pilot, "escape")
        reopened = await wait_for_tree(app, pilot)
        assert reopened.branches.cursor == before
        assert reopened.state.selected == runs_of(app)[1].ref


async def test_the_end_of_a_run_opens_its_last_step(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)
        await press(pilot, "]", "f", "]", "f", "j")
        assert node(screen).kind is Kind.END
        await press(pilot, "enter")
        await until(pilot, lambda: app.screen is app.main and app.main.settled, what="the run")
        assert app.main.state.ref == runs_of(app)[0].ref
        assert app.main.steps.span is not None
        assert app.main.steps.span.name == BOOK[0]


async def test_trials_are_selected_by_lane(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot, selected=3)
        refs = [run.ref for run in runs_of(app)]
        assert "trial 4 of 4" in text_of(app)
        assert "1 of 4 here, 0 of 1 passed · elsewhere 1 of 3 passed" in line(app, 1)
        order = []
        for key in ("right", "greater_than_sign", "right", "right", "left", "less_than_sign"):
            await press(pilot, key)
            assert screen.state.selected is not None
            order.append(refs.index(screen.state.selected))
        assert order == [2, 0, 1, 1, 0, 2]
        assert "trial 3 of 4" in text_of(app)


async def test_stretches_and_forks_fold(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)
        rows = len(screen.branches.rows)
        await press(pilot, "z", "R")
        assert len(screen.branches.rows) > rows
        assert "update_reservation" in text_of(app)
        await press(pilot, "z", "M")
        assert [_row(screen, i).kind for i in range(2)] == [Kind.BRANCH, Kind.FORK]
        assert len(screen.branches.rows) == 2
        await press(pilot, "G", "l")
        assert len(screen.branches.rows) > 2
        await press(pilot, "j", "h")
        assert node(screen).kind is Kind.FORK


async def test_a_decisive_fork_is_found_below_a_folded_one_and_the_sentence_follows(
    opened: Opener, tmp_path: Path
) -> None:
    good, bad = (LOOKUP, BOOKING, BOOK), (LOOKUP, BOOKING, HUMAN)
    write_trials(tmp_path, [((HUMAN,), True), *[(good, True)] * 6, *[(bad, False)] * 6])
    async with opened(tmp_path) as (app, pilot):
        screen = await tree_of(app, pilot, selected=1)
        assert "1 decisive" in text_of(app)
        await press(pilot, "]", "d")
        assert (node(screen).kind, node(screen).step) == (Kind.FORK, 3)
        assert "6 of 12 here, 6 of 6 passed · elsewhere 0 of 6 passed · decisive (p = 0.004)" in line(app, 1)
        await press(pilot, "z", "M")
        assert node(screen).step == 1
        assert "decisive (" not in line(app, 1)
        await press(pilot, "]", "d")
        assert (node(screen).kind, node(screen).step) == (Kind.FORK, 3)


def _row(screen: RunTreeScreen, index: int) -> Node:
    rows = screen.branches.tree_rows
    row_node = rows.node(index) if rows is not None else None
    assert row_node is not None
    return row_node


async def test_a_search_finds_folded_steps(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)
        await press(pilot, "slash", *"certificate")
        await pilot.press("enter")
        await settle(pilot)
        row_text = screen.branches.rows.plain(screen.branches.position)
        assert row_text.startswith("send_certificate")


async def test_with_model_texts_messages_are_steps(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        screen = await tree_of(app, pilot)
        await press(pilot, "i")
        await until(pilot, lambda: node(screen).step == 3, what="the tree with texts")
        assert "with model texts" in line(app, 0)
        await press(pilot, "g")
        assert "user" in text_of(app)
        await press(pilot, "i")
        await until(pilot, lambda: len(screen.branches.rows) > 0 and "with model texts" not in line(app, 0))


async def test_more_than_two_marked_runs_open_their_tree(opened: Opener, trials: Path) -> None:
    async with opened(trials) as (app, pilot):
        await press(pilot, "space", "j", "space")
        await press(pilot, "d")
        assert isinstance(app.screen, DiffScreen)
        await press(pilot, "escape", "j", "space")
        assert "d opens their tree" in line(app, 1)
        await press(pilot, "d")
        screen = await wait_for_tree(app, pilot)
        rows = screen.branches.tree_rows
        assert rows is not None
        assert len(rows.tree.runs) == 3
        assert "3 marked runs" in line(app, 0)


async def test_trees_without_outcomes_have_no_rates(opened: Opener, samples: Path) -> None:
    async with opened(samples / "graphs") as (app, pilot):
        runs = [run for run in app.store.runs.values() if run.parent is None][:4]
        app.show_run_tree(as_trials(runs), title="forks")
        await pilot.pause()
        await wait_for_tree(app, pilot)
        assert "passed" not in text_of(app)
        assert "chance" not in text_of(app)
        assert "here" in line(app, 1)


async def test_unreadable_and_left_out_trials_are_counted(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trials(tmp_path, [*FOUR, ((LOOKUP,), True)])
    monkeypatch.setattr(job, "MAX_TRIALS", 4)
    async with opened(tmp_path) as (app, pilot):
        runs = runs_of(app)
        path = Path(runs[1].ref.path)
        path.unlink()
        app.show_run_tree(as_trials(runs), title="task")
        await pilot.pause()
        await wait_for_tree(app, pilot)
        assert "1 unreadable · 1 not read" in line(app, 0)
        assert "1 unreadable: " in line(app, 1)
        await press(pilot, "right")
        assert "trial 3 of 4" in text_of(app)  # as in the matrix
