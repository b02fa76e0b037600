"""Boxes above a screen: the screen below is dimmed, and that is cheap."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.css.stylesheet import Stylesheet
from textual.renderables.background_screen import BackgroundScreen
from textual.strip import Strip

from tests.ui.conftest import Opener, press, settle, text_of
from tracetui.ui.screens.overlay import Overlay, _tint


@pytest.mark.parametrize("key", ["ctrl+p", "W"])
async def test_the_screen_below_is_tinted(opened: Opener, samples: Path, key: str) -> None:
    async with opened(samples) as (app, pilot):
        below = app.screen
        await press(pilot, key)
        assert isinstance(app.screen, Overlay)
        strip = app.screen._compositor.render_strips()[3]
        rendered = BackgroundScreen(below, app.screen.styles.background)
        whole = below._compositor.render_strips()[3]
        expected = rendered.process_segments(whole, rendered.color)
        cells = [(sign, style.color, style.bgcolor) for text, style, _ in expected if style for sign in text]
        tinted = [(sign, style.color, style.bgcolor) for text, style, _ in strip if style for sign in text]
        assert tinted[:9] == cells[:9]


async def test_a_style_is_tinted_once(opened: Opener, samples: Path) -> None:
    _tint.cache_clear()
    async with opened(samples) as (_, pilot):
        await press(pilot, "ctrl+p")
        assert 0 < _tint.cache_info().misses < _tint.cache_info().hits / 10


async def test_no_box_makes_textual_reparse_its_css(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(samples) as (_, pilot):
        parsed: list[Stylesheet] = []
        monkeypatch.setattr(Stylesheet, "reparse", lambda self: parsed.append(self))
        for key in ("?", "ctrl+p", "W"):
            await press(pilot, key, "escape")
        assert not parsed


async def test_the_help_covers_the_screen(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "?")
        assert app.screen.styles.background.a == 1
        assert "Start here" in text_of(app).splitlines()[1]


async def test_a_screen_draws_no_line_below_one_that_covers_it_and_all_when_it_is_back(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(samples) as (app, pilot):
        runs = app.main.runs
        before, position = text_of(app), runs.position
        await press(pilot, "S")
        drawn: list[int] = []
        strip_at = runs.strip_at

        def note(y: int) -> Strip:
            drawn.append(y)
            return strip_at(y)

        monkeypatch.setattr(runs, "strip_at", note)
        runs.redraw_rows()
        runs.move_to(position + 1)
        await settle(pilot)
        assert not drawn
        runs.move_to(position)
        await press(pilot, "escape")
        assert set(drawn) == set(range(runs.size.height))
        assert text_of(app) == before
