"""Terminals that know ASCII only, and people who want no colours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.ui.conftest import Opener, press, settle, text_of, until


@pytest.mark.parametrize("size", [(80, 24), (160, 40)])
async def test_with_ascii_glyphs_english_traces_show_ascii_only(
    opened: Opener, samples: Path, size: tuple[int, int]
) -> None:
    async with opened(samples / "ccpa", samples / "paprika" / "v0", size=size, ascii_glyphs=True) as (app, pilot):
        assert text_of(app).isascii()
        for ref in app.main.runs.refs():
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


async def test_the_keys_of_a_prompt_are_named_whole(opened: Opener, samples: Path) -> None:
    async with opened(samples / "paprika", size=(80, 24), ascii_glyphs=True) as (app, pilot):
        await press(pilot, "x")
        assert "Enter accept  Esc cancel" in text_of(app)
