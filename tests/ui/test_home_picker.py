"""Which of the trace directories on this machine is to be opened: asked where nobody named a place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import pytest_textual_snapshot  # type: ignore[import-untyped]
from textual.pilot import Pilot

from tests.ui.conftest import NOW
from tests.ui.test_snapshots import Pictures
from tracetui.formats.homes import Home
from tracetui.ui.base_app import BaseApp
from tracetui.ui.commands import COMMANDS
from tracetui.ui.home_picker import HomePickerApp, commands_for
from tracetui.ui.screens.help import HelpScreen
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs

HOMES = [
    Home("Claude Code session", "/home/me/.claude/projects", 5213, False, NOW.timestamp() - 130),
    Home("Codex rollout", "/home/me/.codex/sessions", 50_000, True, NOW.timestamp() - 86400 * 3),
    Home("Codex rollout", "/elsewhere/\x1b[31mred\u202e", 1, False, NOW.timestamp() + 99),
]
ALL = [home.path for home in HOMES]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseApp, "clock", lambda self: NOW.timestamp())
    monkeypatch.setenv("HOME", "/home/me")


def app_of(homes: Sequence[Home] = HOMES, glyphs: Glyphs = UNICODE) -> HomePickerApp:
    return HomePickerApp(homes, "~/.paprika/traces", glyphs=glyphs)


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (["enter"], ALL[:1]),
        (["j", "enter"], ALL[1:2]),
        (["down", "down", "enter"], ALL[2:]),
        (["2"], ALL[1:2]),
        (["9", "3"], ALL[2:]),
        (["a"], ALL),
        (["G", "enter"], ALL),
        (["j", "space", "j", "space", "g", "enter"], ALL[1:]),
        (["j", "space", "space", "g", "enter"], ALL[:1]),
        (["G", "space", "g", "space", "enter"], ALL[1:]),
        (["q"], []),
        (["space", "escape"], []),
        (["ctrl+c"], []),
    ],
)
async def test_keys_choose(keys: list[str], chosen: list[str]) -> None:
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
    assert app.paths == chosen
    assert app.return_code == 0


async def test_a_double_click_opens() -> None:
    app = app_of()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.click("#places", offset=(10, 3), times=2)
        await pilot.pause()
    assert app.paths == ALL[1:2]


async def test_one_place_is_not_offered_with_all() -> None:
    app = app_of(HOMES[:1])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert len(app.screen.query_one("#places").rows) == 1  # type: ignore[attr-defined]
        await pilot.press("a")
    assert app.paths == ALL[:1]


async def test_help_tells_every_key_of_it() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        rows = app.screen.query_one("HelpView").rows  # type: ignore[attr-defined]
        told = "\n".join(rows.plain(i) for i in range(len(rows)))
        assert "Open ~/.claude/projects." in told
        assert "Open all of them together." in told
        assert "\x1b" not in told
        await pilot.press("escape", "q")
    keys = [key for command in commands_for(HOMES, COMMANDS) for key in command.keys]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("ascii_glyphs", [False, True], ids=["unicode", "ascii"])
def test_looks(
    size: tuple[int, int], ascii_glyphs: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if ascii_glyphs and size != (80, 24):
        pytest.skip("one picture will do")
    monkeypatch.setattr(pytest_textual_snapshot, "SVGImageExtension", Pictures)
    compare = request.getfixturevalue("snap_compare")

    async def run(pilot: Pilot[int]) -> None:
        await pilot.pause()
        await pilot.press("j", "space")
        await pilot.pause()

    app = app_of(glyphs=ASCII if ascii_glyphs else UNICODE)
    assert compare(app, terminal_size=size, run_before=run)
