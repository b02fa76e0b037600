"""The context page by keys: breaks, calls, contents, agents, empty states, and a run that grows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.context_build import ClaudeSession, filler, text, tool_use
from tests.ui.conftest import Opener, line, press, settle, text_of, until
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import BREAKS, CONTENTS
from tracetui.ui.screens.context import RunContextScreen
from tracetui.ui.screens.diff import ContextScreen


def session(path: Path) -> ClaudeSession:
    """Four calls; the cache of the third had expired, and the fourth is of another model."""
    made = ClaudeSession(path)
    made.prompt(filler(100))
    made.answer("m1", tool_use("t1", "Read", file_path="src/app.py"), written=20_000)
    made.result("t1", filler(4_000))
    made.answer("m2", text(filler(20)), read=20_000, written=4_200)
    made.prompt(filler(50), seconds=720)
    made.answer("m3", tool_use("t3", "Read", file_path="src/app.py"), written=24_300)
    made.result("t3", filler(4_000))
    made.answer("m4", text(filler(20)), written=28_500, model="claude-sonnet-4-5")
    return made


async def page_of(app: TraceApp, pilot: Pilot[int]) -> RunContextScreen:
    """The context of the run under the cursor, complete."""
    await press(pilot, "K")
    screen = app.screen
    assert isinstance(screen, RunContextScreen)
    await settle(pilot)
    return screen


def call_of(screen: RunContextScreen) -> int:
    call = screen.selected
    assert call is not None
    return call.number


async def test_calls_without_tokens_are_told_from_those_in_the_sums(opened: Opener, tmp_path: Path) -> None:
    made = session(tmp_path / "session.jsonl")
    made.answer("m5", text("No usage came."))
    del made.records[-1]["message"]["usage"]
    made.write()
    async with opened(tmp_path) as (app, pilot):
        await page_of(app, pilot)
        assert "4 of 5 calls · 97.0k in" in line(app, 0)


async def test_the_sentence_names_breaks_and_the_file_that_entered_most(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path) as (app, pilot):
        screen = await page_of(app, pilot)
        assert line(app, 1).strip().startswith("2 cache breaks missed 48.5k, 1 of them by idling")
        assert "src/app.py entered 2×" in line(app, 1)
        screen_text = text_of(app)
        assert "Read results" in screen_text
        assert "start (system, tools)" in screen_text
        assert call_of(screen) == 4


async def test_motions_between_breaks_and_calls(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path) as (app, pilot):
        screen = await page_of(app, pilot)
        visited = []
        for keys in (("]", "k"), ("]", "k"), ("[", "k"), ("h",), ("g",), ("G",)):
            await press(pilot, *keys)
            visited.append(call_of(screen))
        assert visited == [3, 4, 3, 2, 1, 4]
        await press(pilot, "]", "k")
        assert "no later breaks" in line(app, 1)


async def test_the_selected_break_is_explained(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path) as (app, pilot):
        screen = await page_of(app, pilot)
        await press(pilot, "2", "g")
        assert (screen.pane, call_of(screen)) == (BREAKS, 3)
        screen_text = " ".join(text_of(app).split())
        assert "idle 12m" in screen_text
        assert "5 minutes" in screen_text


async def test_contents_unfold_to_their_files(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path) as (app, pilot):
        screen = await page_of(app, pilot)
        await press(pilot, "3")
        assert screen.pane == CONTENTS
        assert "src/app.py 2×" not in text_of(app)
        await press(pilot, "j", "space")
        assert "src/app.py 2×" in text_of(app)


async def test_enter_goes_to_the_step_and_escape_back_to_the_page(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path) as (app, pilot):
        screen = await page_of(app, pilot)
        await press(pilot, "]", "k")
        span = screen.selected
        assert span is not None
        await press(pilot, "enter")
        assert app.screen is app.main
        assert app.main.steps.span is not None
        assert app.main.steps.span.id == span.span
        await press(pilot, "escape")
        assert isinstance(app.screen, RunContextScreen)
        assert call_of(app.screen) == 3
        await press(pilot, "enter")
        assert call_of(await page_of(app, pilot)) == 3  # that of the step


async def test_the_keys_of_a_run_work_on_the_call(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path) as (app, pilot):
        screen = await page_of(app, pilot)
        await press(pilot, "[", "m")
        assert call_of(screen) == 3
        await press(pilot, "c")
        assert isinstance(app.screen, ContextScreen)
        await press(pilot, "escape")
        assert call_of(screen) == 3
        await press(pilot, "g", "c")
        assert "no earlier context" in line(app, 1)


async def test_a_followed_run_grows(opened: Opener, tmp_path: Path) -> None:
    made = session(tmp_path / "session.jsonl")
    path = made.write()
    async with opened(tmp_path) as (app, pilot):
        screen = await page_of(app, pilot)
        before = len(made.records)
        made.prompt(filler(10))
        made.answer("m5", text(filler(20)), read=28_500, written=100, model="claude-sonnet-4-5")
        with path.open("a") as file:
            file.write("".join(json.dumps(record) + "\n" for record in made.records[before:]))
        await until(pilot, lambda: call_of(screen) == 5, what="the new call")


async def test_the_footer_names_the_next_break_only_with_breaks(opened: Opener, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    session(path).write()
    path.with_name("other.jsonl").write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    async with opened(path) as (app, pilot):
        await page_of(app, pilot)
        assert "]k next break" in line(app, -1)
    async with opened(path.with_name("other.jsonl")) as (app, pilot):
        screen = await page_of(app, pilot)
        assert call_of(screen) == 1
        assert "open" in line(app, -1)
        assert "]k" not in line(app, -1)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_it_fits_every_screen(opened: Opener, tmp_path: Path, size: tuple[int, int]) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path, size=size) as (app, pilot):
        screen = await page_of(app, pilot)
        screen_text = text_of(app)
        assert "Context by call" in screen_text
        assert "all, as recorded" in screen_text
        await press(pilot, "2")
        assert "Cache breaks" in text_of(app)
        assert screen.breaks.is_on_screen


async def test_without_colors_a_letter_stands_for_a_content(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path, ascii_glyphs=True) as (app, pilot):
        await page_of(app, pilot)
        screen_text = text_of(app)
        assert screen_text.isascii()
        assert "SSSS" in screen_text
        assert "RRRR" in screen_text


async def test_a_run_without_model_calls_has_a_message(opened: Opener, tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path / "session.jsonl")
    made.prompt("Hello")
    made.write()
    async with opened(tmp_path) as (app, pilot):
        await page_of(app, pilot)
        assert "No model call of this run records its input tokens." in text_of(app)
        assert text_of(app).count("Esc back") == 1
        await press(pilot, "]", "k", "h", "l", "space", "comma", "enter", "2", "3", "4", "z")
        assert isinstance(app.screen, RunContextScreen)


async def test_one_call_has_nothing_to_compare(opened: Opener, tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path / "session.jsonl")
    made.prompt("Hello")
    made.answer("m1", text("Hi"), plain=900)
    made.write()
    async with opened(tmp_path) as (app, pilot):
        await page_of(app, pilot)
        assert "1 model call, 900 input tokens" in line(app, 1)
        assert "One call: nothing to read from a cache." in text_of(app)


async def test_the_panel_of_the_run_has_the_largest_contents(opened: Opener, tmp_path: Path) -> None:
    session(tmp_path / "session.jsonl").write()
    async with opened(tmp_path, size=(200, 60)) as (app, pilot):
        await settle(pilot)
        screen_text = text_of(app)
        assert "Context 4 calls" in screen_text
        assert "2 breaks" in screen_text
        assert "K opens" in screen_text
