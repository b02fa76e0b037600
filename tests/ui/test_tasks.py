"""The task matrix by keys: trials of tasks, the cell cursor, column groups, orders, the filter."""

from __future__ import annotations

import re
from pathlib import Path

from textual.pilot import Pilot

from tests.formats.test_harbor import TRAJECTORY, trial
from tests.ui.conftest import Opener, line, press, settle, text_of, until
from tests.ui.test_keys import with_replays
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.run_tree import RunTreeScreen
from tracetui.ui.screens.tasks import TasksScreen
from tracetui.views.tasks import TaskRows

SET = {"book": "1100", "cancel": "1111", "refund": "0000", "upgrade": "1E?"}
"""Trials by task: ``1`` passed, ``0`` failed, ``E`` ended with an exception, ``?`` not evaluated."""


def write_set(folder: Path, tasks: dict[str, str], model: str | None = None) -> Path:
    for task, marks in tasks.items():
        for i, mark in enumerate(marks):
            write_trial(folder, task, i, mark, model)
    return folder


def write_trial(folder: Path, task: str, i: int, mark: str, model: str | None = None) -> None:
    name = f"{task}__{i}{model or ''}"
    failure = {"exception_type": "TimeoutError", "exception_message": "no reply"} if mark == "E" else None
    rewards = {"rewards": {"reward": int(mark)}} if mark in "01" else None
    result = {"task_name": task, "trial_name": name, "verifier_result": rewards, "exception_info": failure}
    agent = {"name": "gardener", **({"model_name": model} if model else {})}
    trial(folder / name, result, data={**TRAJECTORY, "session_id": name, "agent": agent})


async def tasks_of(app: TraceApp, pilot: Pilot[int]) -> TasksScreen:
    """The matrix, opened by its key."""
    await press(pilot, "M")
    await until(pilot, lambda: isinstance(app.screen, TasksScreen) and app.screen.tasks.is_on_screen, what="M")
    return the_matrix(app)


def the_matrix(app: TraceApp) -> TasksScreen:
    assert isinstance(app.screen, TasksScreen)
    return app.screen


def names(screen: TasksScreen) -> list[str]:
    """The tasks in the order of their rows; none while a filter is applied."""
    rows = screen.tasks.rows
    return [task.name for task in rows.tasks] if isinstance(rows, TaskRows) else []


def row(app: TraceApp, task: str) -> str:
    """The row of a task, without the cursor."""
    text_line = next(text for text in text_of(app).splitlines() if text[1:].startswith(task))
    return text_line[1:].replace("[", " ").replace("]", " ").strip(" ◂")


def cell(app: TraceApp) -> str:
    """The line about the run under the cell cursor."""
    return line(app, app.size.height - 2)


async def test_rows_have_a_sign_for_each_trial_and_rates(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_set(tmp_path, SET), size=(110, 24)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        assert names(screen) == ["upgrade", "book", "refund", "cancel"]
        assert row(app, "book").split() == [
            "book", *"✓✓⊗⊗", "━━━━━─────", "50%", "2/4", "17%", "0%", "0%", "2", "2–2", "Prune"
        ]  # fmt: skip
        assert row(app, "upgrade").split()[:7] == ["upgrade", *"✓✗—", "━━━━━─────", "50%", "1/2"]
        assert line(app, 1).strip() == "2 of 4 tasks passed sometimes  ·  1 always  ·  1 never"
        assert "1 trial not rated: no outcome" in text_of(app)
        assert row(app, "4 tasks").split() == ["4", "tasks", "50%", "7/14", "29%", "33%", "33%", "2"]
        assert line(app, 0).endswith("15 trials  ✓ 7  ⊗ 6  ✗ 1  — 1")


async def test_the_cell_cursor_shows_the_outcome_and_opens_the_run(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_set(tmp_path, SET), size=(110, 24)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        assert "trial 1 of 3  ✓ passed  reward 1" in cell(app)
        await press(pilot, "right")
        assert "trial 2 of 3  ✗ error" in cell(app)
        assert "no reply" in cell(app)
        await press(pilot, "l", "l")
        assert "trial 3 of 3  — no outcome  unknown" in cell(app)
        await press(pilot, "j", "l")
        assert "trial 4 of 4  ⊗ wrong answer  reward 0" in cell(app)
        await press(pilot, "k")
        assert "trial 3 of 3" in cell(app)  # the nearest
        await press(pilot, "j")
        assert "trial 4 of 4" in cell(app)  # and back in its column
        ref = screen.ref
        await press(pilot, "o")
        assert app.screen is app.main
        assert ref is not None
        assert app.main.state.ref == ref
        assert "book__3" in ref.path
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(app.screen, TasksScreen), what="the matrix again")
        assert the_matrix(app).ref == ref


async def test_the_tree_of_the_task_under_the_cursor_is_merged_ahead(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_set(tmp_path, SET)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        for task in names(screen)[:2]:
            await until(pilot, lambda: screen.merged_ahead is not None, what="the tree")
            await press(pilot, "enter")
            assert isinstance(app.screen, RunTreeScreen)
            assert app.screen.settled  # no trial is read again
            assert task in text_of(app)
            await press(pilot, "escape", "j")
            assert screen.merged_ahead is None


async def test_enter_opens_the_run_tree_with_the_run_of_the_cell(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_set(tmp_path, SET), size=(110, 24)) as (app, pilot):
        await tasks_of(app, pilot)
        await press(pilot, "j", "l", "l", "enter")
        tree = app.screen
        assert isinstance(tree, RunTreeScreen)
        await until(pilot, lambda: tree.settled, what="the tree")
        assert tree.state.selected is not None
        assert "book__2" in tree.state.selected.path
        assert "book" in line(app, 0)
        await press(pilot, "escape")
        assert "trial 3 of 4  ⊗ wrong answer" in cell(app)


async def test_orders_change_by_key_and_stay(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_set(tmp_path, SET)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        await press(pilot, "comma")
        assert names(screen) == ["refund", "book", "upgrade", "cancel"]
        assert "most failures first" in text_of(app)
        await press(pilot, "semicolon")
        assert names(screen) == ["cancel", "upgrade", "book", "refund"]
        assert "most failures first, reversed" in text_of(app)
        await press(pilot, "comma")  # there are no costs, tokens and times
        assert names(screen) == ["book", "cancel", "refund", "upgrade"]
        await press(pilot, "escape")
        assert app.screen is app.main
        assert names(await tasks_of(app, pilot)) == ["book", "cancel", "refund", "upgrade"]
        assert "by name" in text_of(app)


async def test_the_filter_is_that_of_the_list(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_set(tmp_path, SET)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        await press(pilot, "f", *"outcome", "colon", *"failed", "enter")
        await until(pilot, lambda: names(screen) == ["book", "refund"], what="the filter")
        assert row(app, "book").split()[:3] == ["book", *"⊗⊗"]
        await press(pilot, "escape")
        assert app.main.state.arrangement.query == "outcome:failed"
        assert len(app.main.runs.refs()) == 6
        screen = await tasks_of(app, pilot)
        await press(pilot, "f", "escape")
        await until(pilot, lambda: len(names(screen)) == 4, what="all tasks")
        await press(pilot, "f", *"nothing", "enter")
        await until(pilot, lambda: "No tasks match 'nothing'." in text_of(app), what="no tasks")


async def test_models_are_column_groups_with_rates_of_their_own(opened: Opener, tmp_path: Path) -> None:
    write_set(tmp_path, {"book": "11", "refund": "01"}, "oak-2")
    write_set(tmp_path, {"book": "00", "cancel": "1"}, "elm-1")
    async with opened(tmp_path, size=(110, 24)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        heads = [text.split() for text in text_of(app).splitlines()[3:7]]
        assert heads[1] == ["elm-1", "oak-2"]
        assert heads[3][:4] == ["3", "tasks", "50%", "75%"]
        assert row(app, "book").split()[:7] == ["book", *"⊗⊗", "0%", *"✓✓", "100%"]
        assert row(app, "cancel").split()[:4] == ["cancel", "✓", "100%", "━━━━━━━━━━"]
        screen.tasks.move_to(names(screen).index("book"))
        await press(pilot, "l", "l")
        assert "trial 1 of 2  ✓ passed" in cell(app)
        assert "oak-2" in cell(app)


async def test_two_directories_are_side_by_side(opened: Opener, tmp_path: Path) -> None:
    old, new = write_set(tmp_path / "old", {"book": "11"}), write_set(tmp_path / "new", {"book": "01", "refund": "1"})
    async with opened(old, new) as (app, pilot):
        await tasks_of(app, pilot)
        assert [text for text in text_of(app).splitlines() if text.split() == ["old", "new"]]
        assert row(app, "book").split()[:7] == ["book", *"✓✓", "100%", *"⊗✓", "50%"]
        assert row(app, "refund").split()[:3] == ["refund", "✓", "100%"]


async def test_many_trials_are_shown_a_page_at_a_time(opened: Opener, tmp_path: Path) -> None:
    write_set(tmp_path, {"many": "01" * 50, "one": "1"})
    async with opened(tmp_path, size=(80, 24)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        first = row(app, "many")
        assert "…" in first
        assert "50%" in first
        for _ in range(60):
            await pilot.press("l")
        await settle(pilot)
        assert "trial 61 of 100" in cell(app)
        assert row(app, "many") != first
        assert row(app, "many").endswith("50%")
        await press(pilot, "j")
        assert "trial 1 of 1" in cell(app)
        assert row(app, "many") == first
        await press(pilot, "k")
        assert screen.tasks.column == 60


async def test_runs_that_inherit_steps_are_marked(opened: Opener, samples: Path, tmp_path: Path) -> None:
    async with opened(with_replays(samples, tmp_path)) as (app, pilot):
        screen = await tasks_of(app, pilot)
        assert re.search(r"[—✗] ↺ ↺", row(app, names(screen)[0]).replace("  ", " "))
        assert "3 trials not rated: inherited or copied" in text_of(app)
        await press(pilot, "l")
        assert "replay, excluded from rates" in cell(app)


async def test_it_is_live_and_the_cursor_stays_on_its_task(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_set(tmp_path, {"book": "10", "refund": "1"})) as (app, pilot):
        screen = await tasks_of(app, pilot)
        await press(pilot, "j")
        assert screen.tasks.current_task is not None
        assert screen.tasks.current_task.name == "refund"
        write_set(tmp_path, {"alter": "1100"})
        await until(pilot, lambda: len(names(screen)) == 3, what="the new task")
        assert names(screen)[0] in ("alter", "book")
        assert screen.tasks.current_task.name == "refund"
        write_trial(tmp_path, "refund", 1, "0")
        await until(pilot, lambda: "✓ ⊗" in row(app, "refund"), what="the new trial")


async def test_a_list_without_tasks_has_a_message(opened: Opener, samples: Path) -> None:
    async with opened(samples / "penelope" / "appeal") as (app, pilot):
        screen = await tasks_of(app, pilot)
        assert "No run names a task or an input." in text_of(app)
        await press(pilot, "l", "comma", "o", "enter")
        assert (app.screen, screen.ref) == (screen, None)
