"""Whatever a trace says, the screen shows it as text: nothing acts, nothing links, nothing moves, nothing breaks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.content import Content
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Static

from tests import hostile
from tests.shared import SEARCHES
from tests.ui.conftest import NOW, Opener, press, settle, text_of, until
from tracetui.formats import registry
from tracetui.model import RunRef
from tracetui.text import UNSAFE
from tracetui.ui.app import TraceApp
from tracetui.ui.terminal.safety import CLIPBOARD_LIMIT, ControlFilter, clean_for_paste
from tracetui.ui.theme import PALETTES


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every sample and its hostile twin."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile.write(folder, NOW)
    return folder


@pytest.fixture
def gate_holds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The second wall has nothing to do: the gate before it let nothing through."""
    leaks: list[str] = []
    clean = ControlFilter.apply

    def watch(self: ControlFilter, segments: list[Segment], background: Color) -> list[Segment]:
        cleaned = clean(self, segments, background)
        if cleaned != segments:
            leaks.append("".join(segment.text for segment in segments))
        return cleaned

    monkeypatch.setattr(ControlFilter, "apply", watch)
    yield
    assert leaks == []


behind_the_gate = pytest.mark.usefixtures("gate_holds")


def hostile_runs(app: TraceApp) -> list[RunRef]:
    """One hostile run of every format."""
    refs: dict[str, RunRef] = {}
    for ref in app.store.runs:
        if not os.path.basename(ref.path).isascii() or UNSAFE.search(os.path.basename(ref.path)):
            refs.setdefault(ref.format, ref)
    return list(refs.values())


def assert_harmless(app: TraceApp) -> None:
    """Every cell of the screen is plain text of the right width, without links and actions."""
    width = app.size.width
    for strip in app.screen._compositor.render_strips():
        assert cell_len(strip.text) == width, strip.text
        unsafe = UNSAFE.search(strip.text)
        assert unsafe is None, (unsafe, strip.text)
        for segment in strip:
            assert segment.style is None or segment.style.link is None
            assert segment.style is None or "@click" not in (segment.style.meta or {})


async def see_everything(app: TraceApp, pilot: Pilot[int]) -> None:
    """Walk through the spans of the open run, every tab of the detail, the tree, folds, search, and back."""
    assert_harmless(app)
    for keys in (("t",), ("z", "M"), ("z", "R"), ("G",), ("t",), ("z",), ("z",), ("g",)):
        await press(pilot, *keys)
        assert_harmless(app)
    await see_steps(app, pilot)
    await press(
        pilot, "3", "j", "l", "l", "l", "pagedown", "G", "left", "/", *"owned", "enter", "n", "escape", "escape"
    )
    assert_harmless(app)


async def see_steps(app: TraceApp, pilot: Pilot[int]) -> None:
    """Walk through every tab of the first spans of the open run."""
    for _ in range(min(4, len(app.main.steps.rows))):
        for tab in app.main.detail.tabs:
            app.main.detail.choose(tab)
            await settle(pilot)
            assert_harmless(app)
        app.main.steps.action_move(1)
        await settle(pilot)


@behind_the_gate
@pytest.mark.parametrize("size", [(80, 24), (160, 40)] if SEARCHES else [(80, 24)])
async def test_every_pane_of_hostile_runs(opened: Opener, attack: Path, size: tuple[int, int]) -> None:
    async with opened(attack, size=size) as (app, pilot):
        assert_harmless(app)
        refs = hostile_runs(app)
        assert len(refs) == 5
        for ref in refs:
            app.main.enter(ref)
            await until(pilot, lambda: app.main.settled, what="the run")
            await settle(pilot)
            await see_everything(app, pilot)
            await press(pilot, "escape", "escape", "escape")
        await press(pilot, "home")
        while True:
            before = app.main.runs.position
            await press(pilot, "pagedown")
            assert_harmless(app)
            if app.main.runs.position == before:
                break


@behind_the_gate
@pytest.mark.parametrize("name", registry.BUILT_IN)
async def test_every_pane_of_hostile_cases(opened: Opener, tmp_path: Path, name: str) -> None:
    async with opened(*hostile.write_cases(tmp_path, [name])[name], size=(160, 40)) as (app, pilot):
        runs = [run for run in app.store.runs.values() if run.ref.format == name]
        assert runs
        await until(pilot, lambda: all(run.deep for run in app.store.runs.values()), what="the counts")
        assert_harmless(app)
        app.main.enter(max(runs, key=lambda run: app.store.runs[run.ref].spans or 0).ref)
        await until(pilot, lambda: app.main.settled, what="the run")
        await settle(pilot)
        assert len(app.main.steps.rows) > 1
        await press(pilot, "t")
        assert_harmless(app)
        await press(pilot, "t")
        await (see_everything if SEARCHES else see_steps)(app, pilot)


@behind_the_gate
@pytest.mark.parametrize(("palette", "ascii_glyphs"), zip(PALETTES, cycle([False, True])))
async def test_every_theme(opened: Opener, attack: Path, palette: str, ascii_glyphs: bool) -> None:
    async with opened(attack, palette=palette, ascii_glyphs=ascii_glyphs) as (app, pilot):
        for ref in hostile_runs(app)[list(PALETTES).index(palette) :: 1 if SEARCHES else len(PALETTES)]:
            app.main.enter(ref)
            await until(pilot, lambda: app.main.settled, what="the run")
            await settle(pilot)
            for tab in app.main.detail.tabs:
                app.main.detail.choose(tab)
                await settle(pilot)
                assert_harmless(app)


@behind_the_gate
async def test_the_list_sorted_grouped_and_filtered(opened: Opener, attack: Path) -> None:
    async with opened(attack, size=(160, 40)) as (app, pilot):
        for key in (",", ",", ",", ",", ";", "b", "b", "b", "b", "W", ">", ">", "!", "!"):
            await press(pilot, key)
            assert_harmless(app)
        await press(pilot, "f", *"[/]", "enter")
        assert_harmless(app)
        await press(pilot, "/", *"[@click=app.quit]", "enter")
        assert_harmless(app)
        assert app.is_running


@behind_the_gate
async def test_clicking_on_every_row_runs_no_action(opened: Opener, attack: Path) -> None:
    async with opened(attack) as (app, pilot):
        for ref in hostile_runs(app)[:2]:
            app.main.enter(ref)
            await until(pilot, lambda: app.main.settled, what="the run")
            await settle(pilot)
            for y in range(1, 40, 2):
                for x in (8, 100):
                    await pilot.click(offset=(x, y))
        assert app.is_running
        assert app.return_value is None
        assert_harmless(app)


@behind_the_gate
async def test_the_palette_shows_hostile_runs_as_text(opened: Opener, attack: Path) -> None:
    async with opened(attack) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: app.screen is not app.main)
        await pilot.press(*"click")
        await until(pilot, lambda: "[@click=app.quit]" in text_of(app), what="a hostile run among the hits")
        for strip in app.screen._compositor.render_strips():
            assert UNSAFE.search(strip.text) is None, strip.text
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.screen is app.main)


async def test_pasting_controls_into_the_prompt(opened: Opener, attack: Path) -> None:
    from textual.events import Paste

    async with opened(attack) as (app, pilot):
        await pilot.press("f")
        app.post_message(Paste("\x1b[2J\x9b\u202e[/][@click=app.quit]"))
        await pilot.pause()
        await pilot.pause()
        for strip in app.screen._compositor.render_strips():
            assert re.search("[\x00-\x1f\x7f-\x9f\u202e]", strip.text) is None
        await pilot.press("enter")
        await settle(pilot)
        assert_harmless(app)


# ---- the second wall


async def test_the_output_filter_covers_every_widget(opened: Opener, samples: Path) -> None:
    """Text that nobody cleaned, in a stock widget, loses its controls, and its link does not become one."""
    async with opened(samples) as (app, pilot):
        assert any(isinstance(line_filter, ControlFilter) for line_filter in app.get_line_filters())
        unclean = Static(Content("A\x1b]52;c;x\x07B\x9bC\u202eD").stylize("link='file:///etc/passwd'"), id="unclean")
        await app.main.mount(unclean)
        await pilot.pause()
        strips: list[Strip] = unclean.render_lines(unclean.size.region)
        text = "".join(strip.text for strip in strips)
        assert "A" in text
        assert "D" in text
        assert UNSAFE.search(text) is None
        assert all(segment.style is None or segment.style.link is None for strip in strips for segment in strip)


async def test_the_output_filter_covers_our_own_panes(opened: Opener, samples: Path) -> None:
    from textual.geometry import Region

    from tracetui.text import Clean
    from tracetui.views.rows import ListRows, Piece

    async with opened(samples) as (app, pilot):
        app.main.detail.show(ListRows([(Piece(Clean("A\x1b[2J\u202eB")),)]))
        await pilot.pause()
        lines = app.main.detail.render_lines(Region(0, 0, app.main.detail.size.width, 3))
        assert "A\ufffd[2J\ufffdB" in lines[1].text


# ---- what leaves by the clipboard


async def test_copied_text_is_safe_to_paste(opened: Opener, attack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    def copy(self: TraceApp, text: str) -> int:
        copied.append(clean_for_paste(text))
        return len(text)

    monkeypatch.setattr(TraceApp, "copy", copy)
    async with opened(attack) as (app, pilot):
        for ref in hostile_runs(app):
            app.main.enter(ref)
            await until(pilot, lambda: app.main.settled, what="the run")
            await settle(pilot)
            await press(pilot, "y", "y", "y", "l", "y", "p", "3", "G", "y", "y", "escape", "escape")
    assert len(copied) == 20
    assert not any(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text) for text in copied)
    assert any("␛" in text for text in copied)


def test_pasteable_keeps_lines_and_tabs() -> None:
    assert clean_for_paste("a\tb\r\nc\x1b[201~\rd") == "a\tb\nc␛[201~␍d"


async def test_text_too_long_for_the_clipboard_is_reported(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        assert app.copy("x" * CLIPBOARD_LIMIT) == CLIPBOARD_LIMIT
        assert app.copy("x" * (CLIPBOARD_LIMIT + 1)) == 0
        app.main.copy("é" * CLIPBOARD_LIMIT, "the row")
        await pilot.pause()
        assert "too long for the terminal's clipboard" in text_of(app)
