"""How comparisons look: pictures in ``snapshots/``, approved with ``python3 dev.py snapshots``."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import settle, until
from tests.ui.test_diff import EXACT, MISMATCH, quiet, run_like, type_keys, wait_for_screen
from tests.ui.test_snapshots import Drive, Looks, looks
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.diff import DiffScreen

__all__ = ["looks"]

SIZES = [(80, 24), (120, 40), (200, 60)]


def comparison(ident: str, *keys: str, tab: str = "") -> Drive:
    """Compare a replay with its original, press keys, and wait for what comes of them."""

    async def drive(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, TraceApp)
        app.main.runs.move_to_key(run_like(app, ident).ref)
        await settle(pilot)
        await pilot.press("D")
        screen = await wait_for_screen(app, pilot, DiffScreen)
        await type_keys(pilot, screen, *keys)
        if tab:
            await until(pilot, lambda: screen.change.compared is not None and screen.change.compared.tab == tab)
        await quiet(pilot, screen)

    return drive


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_first_difference(looks: Looks, size: tuple[int, int]) -> None:
    assert looks(size=size, drive=comparison(MISMATCH))


def test_steps_at_80x24(looks: Looks) -> None:
    assert looks(size=(80, 24), drive=comparison(MISMATCH, "escape"))


def test_same_way(looks: Looks) -> None:
    assert looks(drive=comparison(EXACT))


def test_downstream(looks: Looks) -> None:
    assert looks(drive=comparison("rag-001-fork"))


def test_context(looks: Looks) -> None:
    assert looks(drive=comparison(MISMATCH, "c", tab="context"))


def test_state(looks: Looks) -> None:
    assert looks(drive=comparison("router-001-ck", ">", tab="state"))


def test_unified_with_everything_open(looks: Looks) -> None:
    assert looks(drive=comparison(MISMATCH, "s", "z", "R"))


def test_light(looks: Looks) -> None:
    assert looks(palette="light", drive=comparison(MISMATCH))


def test_ascii_without_colours(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert looks(palette="ansi", ascii_glyphs=True, drive=comparison(MISMATCH))
