"""The command palette: best match first, keys at the right, runs below, by keys and by mouse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import Opener, settle, text_of, until
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import COMMANDS, EVERYWHERE, match_score, of_pane
from tracetui.ui.screens.overlay import Palette
from tracetui.ui.screens.today import LiveScreen
from tracetui.ui.screens.triage import TriageScreen


async def palette(app: TraceApp, pilot: Pilot[int], text: str = "") -> list[str]:
    """Open the palette, type, and return its rows."""
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(app.screen, Palette) and len(app.screen._entries) > 0)
    await pilot.press(*text)
    return rows(app)


def rows(app: TraceApp) -> list[str]:
    assert isinstance(app.screen, Palette)
    view = app.screen._view
    return ["".join(piece.text for piece in view.rows.line(i, 94)) for i in range(len(view.rows))]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("T", "triage"),
        ("tri", "triage"),
        ("yr", "copy resume command"),
        ("live", "live runs"),
        ("resume", "copy resume command"),
        ("foll", "follow"),
        ("vf", "verdict: flaky"),
        ("gar", "grep all runs"),
        ("tokens by tool", "statistics"),
        ("expo", "export"),
        ("clumns", "columns"),
    ],
)
def test_the_best_match_is_first(text: str, title: str) -> None:
    commands = [command for command in of_pane("runs") if command.group != "move"]
    best = max(commands, key=lambda command: match_score(text, command))
    assert best.title == title


def test_every_command_is_found_by_its_title() -> None:
    for pane in EVERYWHERE:
        commands = of_pane(pane)
        for command in commands:
            best = max(match_score(command.title, other) for other in commands)
            assert match_score(command.title, command) == best, command.id


async def test_keys_are_at_the_right_and_enter_runs(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        entries = await palette(app, pilot, "triage")
        assert entries[0].startswith("triage ")
        assert entries[0].endswith(" T")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TriageScreen))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_no_help_is_cut(opened: Opener, samples: Path, size: tuple[int, int]) -> None:
    async with opened(samples, size=size) as (app, pilot):
        await palette(app, pilot)
        assert isinstance(app.screen, Palette)
        view = app.screen._view
        lines = [view.rows.line(i, size[0]) for i in range(len(view.rows))]
        help_text = re.sub(r"\s+", " ", " ".join(piece.text for line in lines for piece in line))
        assert "…" not in help_text.replace("dur>5s …", "")


async def test_a_click_runs(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        entries = await palette(app, pilot, "l")
        row = next(i for i, text in enumerate(entries) if text.startswith("live runs"))
        assert isinstance(app.screen, Palette)
        await pilot.click(app.screen._view, offset=(8, row + 3))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))


async def test_runs_follow_the_commands_and_take_queries(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await palette(app, pilot, "status:error researcher")
        await until(pilot, lambda: any("0690e0f0" in row for row in rows(app)))
        assert not any(row.startswith("✓") for row in rows(app))
        await pilot.press("down", "up", "enter")
        await until(pilot, lambda: app.screen is app.main)
        await settle(pilot)
        assert app.main.state.level == 1


async def test_in_ascii_the_enter_key_has_its_name(opened: Opener, samples: Path) -> None:
    async with opened(samples, ascii_glyphs=True, size=(80, 24)) as (app, pilot):
        await palette(app, pilot, "open")
        assert any(re.search(r"open .* Enter\W*$", text) for text in text_of(app).splitlines())


async def test_the_rows_are_fitted_to_a_new_size(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(120, 40)) as (app, pilot):
        await palette(app, pilot)
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        lines = [text.strip("▌┃│ ") for text in text_of(app).splitlines()]
        assert next(text for text in lines if text.startswith("failures only")).endswith("!")
        assert any(text.endswith("Esc close") for text in lines)


async def test_nothing_matches_and_esc_closes(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await palette(app, pilot, "qqqqzzzz")
        assert "nothing matches" in text_of(app)
        await pilot.press("enter", "ctrl+u")
        assert "nothing matches" not in text_of(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)


@pytest.mark.parametrize("name", ["light", "high-contrast", "ansi"])
async def test_it_is_drawn_in_every_theme_without_emoji(opened: Opener, samples: Path, name: str) -> None:
    async with opened(samples, palette=name) as (app, pilot):
        await palette(app, pilot, "theme")
        text = text_of(app)
        assert f"theme {name}" in text
        assert not re.search("[\u2600-\u26ff\u2728\U0001f000-\U0001faff]", text)
        assert isinstance(app.screen, Palette)
        await pilot.press(*" dark", "enter")
        assert app.look.palette.name == "dark"


def test_every_command_has_one_row() -> None:
    assert len({(command.title, *command.panes) for command in COMMANDS}) == len(COMMANDS)
