"""Terminals that know ASCII only, and people who want no colours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.shared import SEARCHES
from tests.ui.conftest import Opener, press, settle, text_of, until
from tracetui.ui.theme import PALETTES


@pytest.mark.parametrize("size", [(80, 24), (160, 40)])
async def test_with_ascii_glyphs_english_traces_show_ascii_only(
    opened: Opener, samples: Path, size: tuple[int, int]
) -> None:
    async with opened(samples / "ccpa", samples / "paprika" / "v0", size=size, ascii_glyphs=True) as (app, pilot):
        assert text_of(app).isascii()
        refs = app.main.runs.refs()
        for ref in refs if SEARCHES else refs[size == (80, 24) :: 2]:
            app.main.enter(ref)
            await settle(pilot)
            for tab in app.main.detail.tabs:
                app.main.detail.choose(tab)
                await settle(pilot)
                screen_text = text_of(app)
                assert screen_text.isascii(), [line for line in screen_text.split("\n") if not line.isascii()]
            await press(pilot, "t")
            assert text_of(app).isascii()
            await press(pilot, "t")
        await pilot.press("?")
        await until(pilot, lambda: app.screen is not app.main)
        assert text_of(app).isascii()
        assert "Enter" in text_of(app)


async def test_without_colours_nothing_is_painted_but_text(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    async with opened(samples, palette="ansi") as (app, pilot):
        await press(pilot, "enter")
        strips = [strip for view in app.main.views.values() for strip in view.render_lines(view.size.region)]
        styles = [segment.style for strip in strips for segment in strip if segment.style is not None]
        assert styles
        for style in styles:
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
        assert any(style.reverse for style in styles), "the cursor must be seen"


@pytest.mark.parametrize("name", ["text", "dim", "status.error", "status.ok", "status.error bold"])
def test_the_cursor_row_is_reversed_under_each_text(name: str) -> None:
    assert PALETTES["ansi"].style(name, "sel").reverse


@pytest.mark.parametrize("ground", ["bg", "sel", "selq"])
@pytest.mark.parametrize("name", ["hit", "hit.current"])
def test_hits_differ_from_other_text_without_colors(name: str, ground: str) -> None:
    hit, text = (PALETTES["ansi"].style(style, ground).without_color for style in (name, "text"))
    assert hit != text


async def test_the_list_is_seen_below_the_column_chooser(opened: Opener, samples: Path) -> None:
    async with opened(samples / "ccpa", palette="ansi") as (app, pilot):
        name = app.main.runs.rows.plain(app.main.runs.position).split()[0]
        await pilot.press("W")
        await until(pilot, lambda: app.screen is not app.main)
        assert name in text_of(app)


async def test_the_keys_of_a_prompt_are_named_whole(opened: Opener, samples: Path) -> None:
    async with opened(samples / "paprika", size=(80, 24), ascii_glyphs=True) as (app, pilot):
        await press(pilot, "x")
        assert "Enter accept  Esc cancel" in text_of(app)
