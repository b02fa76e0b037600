"""The mouse: hints, headings and tabs react to clicks, and a drag resizes the list."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import MouseScrollDown
from textual.pilot import Pilot
from textual.widget import Widget

from tests.sessions import home
from tests.ui.conftest import NOW, Opener, press, settle, text_of, until
from tracetui.text import Clean
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import COMMANDS, KEY_LABELS, key_label, keys_of, of_pane
from tracetui.ui.screens.help import HelpScreen
from tracetui.ui.screens.lists import StatisticsScreen
from tracetui.ui.screens.triage import TriageScreen
from tracetui.ui.widgets.lines import LineWidget, key_at, word_at
from tracetui.views.rows import Piece


async def click(pilot: Pilot[int], widget: Widget, label: str, y: int = 0) -> None:
    """Click on words in a line of a widget."""
    assert isinstance(widget, LineWidget)
    text = widget.strip_at(y).text
    assert label in text, text
    await pilot.click(widget, offset=(text.index(label), y))


async def test_hints_of_the_footer_are_keys(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await click(pilot, app.main._footer, "?")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        await click(pilot, app.main._footer, "open")
        await settle(pilot)
        assert app.main.state.level == 1
        await click(pilot, app.main._footer, "filter")
        await pilot.press(*"tool", "enter")
        assert app.main.steps.filter_text == "tool"


async def test_hints_of_the_sentence_and_of_the_header_are_keys(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(160, 40)) as (app, pilot):
        at = app.main._header.strip_at(0).text.index("ignored · i") + len("ignored · ")
        await pilot.click(app.main._header, offset=(at, 0))
        assert "files ignored" in text_of(app) or "ignored, but looks like" in text_of(app)
        await press(pilot, "j")
        await click(pilot, app.main._sentence, "triage")
        await until(pilot, lambda: isinstance(app.screen, TriageScreen))


async def test_hints_of_a_message_are_keys(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "space", "j")
        assert len(app.main.state.marked) == 1
        await press(pilot, "space", "k", "space", "space")
        await click(pilot, app.main._sentence, "compares them")
        await until(pilot, lambda: app.screen is not app.main)


async def test_a_prefix_shows_what_can_follow_and_each_is_clickable(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await click(pilot, app.main._footer, "verdict")
        assert "flaky" in text_of(app)
        await click(pilot, app.main._footer, "flaky")
        await settle(pilot)
        assert "marked flaky" in text_of(app)
        await click(pilot, app.main._sentence, "u undo")
        await settle(pilot)
        assert "marked flaky" not in text_of(app)


async def test_the_keys_of_a_prompt_are_clickable(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await pilot.press("f", *"researcher")
        await click(pilot, app.main._footer, "accept")
        await settle(pilot)
        assert app.main.state.arrangement.query == "researcher"
        await pilot.press("f", *"x")
        await click(pilot, app.main._footer, "cancel")
        await settle(pilot)
        assert app.main.state.arrangement.query == ""


async def test_a_click_on_a_heading_sorts_and_the_second_reverses(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        runs = app.main.runs
        await click(pilot, runs, "time", len(runs.heading))
        times = [app.store.runs[ref].duration_ms or -1.0 for ref in runs.refs() if app.store.runs[ref].parent is None]
        assert times == sorted(times, reverse=True)
        await click(pilot, runs, "time", len(runs.heading))
        assert app.main.state.arrangement.reverse
        await click(pilot, runs, "name", len(runs.heading))
        assert (app.main.state.arrangement.sort, app.main.state.arrangement.reverse) == ("name", False)


async def test_headings_of_triage_tasks_and_statistics(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "T")
        assert isinstance(app.screen, TriageScreen)
        await until(pilot, lambda: bool(app.screen.queue.groups))  # type: ignore[attr-defined]
        await click(pilot, app.screen.queue, "runs ", 1)
        assert app.screen.state.arrangement.sort == "runs"
        await pilot.press("q", "S")
        await until(pilot, lambda: isinstance(app.screen, StatisticsScreen) and len(app.screen.list.rows) > 1)
        screen = app.screen
        assert isinstance(screen, StatisticsScreen)
        await until(pilot, lambda: bool(screen._progress and screen._progress.finished))
        await click(pilot, screen.list, "errors", 1)
        errors = [row.errors for i in range(len(screen.list.rows)) if (row := screen.list.rows.row(i)) is not None]
        assert errors == sorted(errors, reverse=True)
        assert errors[0] > 0
        await click(pilot, screen.list, "model")
        assert screen.by == "model"
        await pilot.press(",")
        assert screen._sort == "calls"


async def test_tabs_of_the_detail(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter")
        detail = app.main.detail
        other = next(tab for tab in detail.tabs if tab != detail.tab)
        await click(pilot, detail, f" {other}  " if f" {other}  " in detail.strip_at(0).text else other)
        if detail.tab != other:
            await pilot.click(detail, offset=(detail.strip_at(0).text.index(other), 0))
        assert detail.tab == other


async def drag(pilot: Pilot[int], app: TraceApp, to: int) -> None:
    edge = app.main.runs.region.right - 1
    await pilot.mouse_down(offset=(edge, 20))
    for column in (edge, (edge + to) // 2, to):
        await pilot.hover(offset=(column, 20))
    await pilot.mouse_up(offset=(to, 20))
    await pilot.pause()


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
async def test_a_drag_of_its_edge_resizes_the_list(opened: Opener, samples: Path, size: tuple[int, int]) -> None:
    async with opened(samples, size=size) as (app, pilot):
        before, cursor = app.main.runs.outer_size.width, app.main.runs.cursor
        await drag(pilot, app, before + 15)
        assert abs(app.main.runs.outer_size.width - (before + 16)) <= 1
        assert app.main.runs.cursor == cursor
        assert not app.screen.selections
        await drag(pilot, app, 2)
        assert app.main.runs.outer_size.width == 24
        await drag(pilot, app, size[0] - 3)
        assert app.main.runs.outer_size.width == size[0] - 40
        await press(pilot, "z", "z")
        assert app.main.runs.outer_size.width == size[0] - 40


async def test_the_wheel_scrolls_what_is_under_it(opened: Opener, tmp_path: Path) -> None:
    async with opened(home(tmp_path, NOW.timestamp()), size=(120, 12)) as (app, pilot):
        steps = app.main.steps
        await until(pilot, lambda: len(steps.rows) > steps.page)
        await pilot._post_mouse_events([MouseScrollDown], steps, (3, 3))
        assert steps.top > 0
        assert app.focused is app.main.runs


@pytest.mark.parametrize("pane", ["runs", "steps", "detail", "queue", "today"])
def test_every_shown_key_can_be_clicked(pane: str) -> None:
    bound = {key for command in of_pane(pane) for key in command.keys}
    for command in of_pane(pane):
        key = command.keys[0]
        if key.endswith("*"):
            continue
        pressed = "".join(name for name, _ in keys_of(key_label(key), bound))
        assert pressed == key, key


def test_keys_of_a_line() -> None:
    line = [
        Piece(Clean("x ")), Piece(Clean("T"), "key bold"), Piece(Clean(" triage  ")), Piece(Clean("· ok")),
        Piece(Clean("   yr"), "key bold"),
    ]  # fmt: skip
    text = "".join(piece.text for piece in line)
    keys_at = [key_at(line, x) for x in range(len(text) + 3)]
    assert [text[x] for x, key in enumerate(keys_at[: len(text)]) if key == "T"] == [*"T triage"]
    assert [text[x] for x, key in enumerate(keys_at[: len(text)]) if key == "yr"] == [*"yr"]
    assert {*keys_at} == {"", "T", "yr"}


def test_words_of_headings() -> None:
    line = [Piece(Clean("name      time  age"))]
    assert [word_at(line, x) for x in (0, 5, 12, 15, 18, 40)] == ["name", "name", "time", "age", "age", ""]


def test_names_of_keys_are_unambiguous() -> None:
    assert len({*KEY_LABELS.values()}) == len(KEY_LABELS)
    assert not {*KEY_LABELS.values()} & {key for command in COMMANDS for key in command.keys}
