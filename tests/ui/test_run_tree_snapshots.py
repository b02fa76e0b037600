"""How the run tree looks: pictures in ``snapshots/``, approved with ``python3 dev.py snapshots``."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from tests.trials import write_trials
from tests.ui.conftest import press, until
from tests.ui.test_run_tree import tree_of
from tests.ui.test_snapshots import Drive, Looks, looks
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.run_tree import RunTreeScreen

__all__ = ["looks"]

SIZES = [(80, 24), (120, 40)]


def tree(*keys: str) -> Drive:
    """Open the tree of all runs, and press keys."""

    async def drive(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, TraceApp)
        await tree_of(app, pilot)
        await press(pilot, *keys)

    return drive


@pytest.fixture
def trials(tmp_path: Path) -> str:
    write_trials(tmp_path)
    return str(tmp_path)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_first_fork(looks: Looks, trials: str, size: tuple[int, int]) -> None:
    assert looks(root=trials, size=size, drive=tree())


def test_unfolded_with_another_trial(looks: Looks, trials: str) -> None:
    assert looks(root=trials, drive=tree("z", "R", "left", "]", "f"))


def test_light(looks: Looks, trials: str) -> None:
    assert looks(root=trials, palette="light", drive=tree())


def test_ascii_without_colors(looks: Looks, trials: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert looks(root=trials, palette="ansi", ascii_glyphs=True, drive=tree())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_without_outcomes(looks: Looks, size: tuple[int, int]) -> None:
    """Marked forks and retries of a graph: a tree without rates."""

    async def drive(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, TraceApp)
        chosen = [ref for ref in sorted(app.store.runs) if (app.store.runs[ref].id or "").startswith("rag-")]
        app.main.become(replace(app.main.state, marked=tuple(chosen)))
        await pilot.press("d")
        screen = app.screen
        assert isinstance(screen, RunTreeScreen)
        await until(pilot, lambda: screen.settled and screen.branches.tree_rows is not None, what="the tree")
        previewed = screen._preview.run
        assert previewed is not None
        assert app.store.opened(previewed.summary.ref) in (None, previewed), "two screens would load the body in turn"

    assert looks(root="graphs", size=size, drive=drive)
