"""The help: columns, a search that swallows keys, and the sentence of the selected command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import Opener, line, settle, text_of
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import COMMANDS, RUNS, allowed_in_browser, of_pane, unbound_reason
from tracetui.ui.screens.help import FIRST, HelpScreen, arrange


async def open_help(app: TraceApp, pilot: Pilot[int]) -> HelpScreen:
    await pilot.press("question_mark")
    await settle(pilot)
    assert isinstance(app.screen, HelpScreen)
    return app.screen


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_every_command_has_one_slot_below_its_group(columns: int) -> None:
    slots = arrange(RUNS, COMMANDS, columns)
    commands = [slot.command for slot in slots if slot.command is not None]
    assert sorted(command.id for command in commands[FIRST:]) == sorted(command.id for command in of_pane(RUNS))
    assert len({(slot.column, slot.row) for slot in slots}) == len(slots)
    assert {slot.column for slot in slots} <= set(range(columns))


async def test_letters_search_and_run_nothing(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(120, 40)) as (app, pilot):
        screen = await open_help(app, pilot)
        await pilot.press(*"cost q")
        await settle(pilot)
        assert "0 of" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert screen.is_current
        await pilot.press("escape")
        await settle(pilot)
        assert not screen.is_attached


async def test_the_bar_says_which_rows_of_a_long_page_are_in_view(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(80, 24)) as (app, pilot):
        await open_help(app, pilot)
        assert re.search(r"keys in Runs  rows 1–18/\d\d$", line(app, 0))
        await pilot.press(*["down"] * 30)
        await settle(pilot)
        assert re.search(r"rows (?!1–)\d+–\d+/\d\d$", line(app, 0))
        await pilot.resize_terminal(200, 60)
        await settle(pilot)
        assert "rows" not in line(app, 0)


async def test_the_selected_command_has_its_sentence_and_enter_runs_it(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(120, 40)) as (app, pilot):
        await open_help(app, pilot)
        await pilot.press(*"failures")
        await settle(pilot)
        assert "Toggle failed runs only." in text_of(app)
        await pilot.press("enter")
        await settle(pilot)
        assert app.screen is app.main
        assert app.main.runs.arrangement.failures


async def test_a_command_of_another_pane_says_where_it_works(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(120, 40)) as (app, pilot):
        await open_help(app, pilot)
        await pilot.press("tab", *"next break", "enter")
        await settle(pilot)
        assert app.screen is app.main
        assert "]k (next break) works in: context" in text_of(app)


async def test_arrows_move_between_columns_and_keep_the_selection_in_view(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(80, 24)) as (app, pilot):
        screen = await open_help(app, pilot)
        await pilot.press("right", "end")
        await settle(pilot)
        slot = screen._page.selected
        assert slot is not None
        assert slot.column == 1
        assert screen._page.top <= slot.row < screen._page.top + screen._page.outer_size.height


def test_a_key_without_effect_names_what_would_make_it_work() -> None:
    served = [command for command in COMMANDS if allowed_in_browser(command, write=False)]
    rebound = [command._replace(keys=("Q",)) if command.id == "export" else command for command in COMMANDS]
    assert unbound_reason("x", served) == "x (export) is off: read-only; start with --allow-write"
    assert unbound_reason("R", served).endswith("isn't available in a browser")
    assert unbound_reason("x", rebound) == "x is not bound"
    assert unbound_reason("]k", COMMANDS) == "]k (next break) works in: context"
