"""How the screens look: pictures in ``snapshots/``, approved with ``python3 dev.py snapshots``."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_textual_snapshot  # type: ignore[import-untyped]
from textual.pilot import Pilot

from tests.shared import ROOT
from tests.ui.conftest import press, settle, until
from tracetui.live.engine import Engine
from tracetui.sources.local import LocalSource
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.triage import TriageScreen
from tracetui.views.glyphs import ASCII, UNICODE

Drive = Callable[[Pilot[int]], Awaitable[None]]
Compare = Callable[..., bool]


class Pictures(pytest_textual_snapshot.SVGImageExtension):  # type: ignore[misc] # the plug-in has no types
    """One SVG a screen, in the top-level folder."""

    @classmethod
    def dirname(cls, *, test_location: Any) -> str:
        return str(ROOT / "snapshots" / test_location.basename)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch, samples: Path, request: pytest.FixtureRequest) -> Callable[..., bool]:
    """Compare the app after some keys with its picture."""
    monkeypatch.setattr(pytest_textual_snapshot, "SVGImageExtension", Pictures)
    monkeypatch.chdir(samples)
    compare: Compare = request.getfixturevalue("snap_compare")

    def check(
        *keys: str,
        root: str = ".",
        size: tuple[int, int] = (120, 40),
        palette: str = "dark",
        ascii_glyphs: bool = False,
        drive: Drive | None = None,
    ) -> bool:
        engine = Engine(LocalSource(), [root])
        engine.start()
        app = TraceApp(engine, ["traces"], palette=palette, glyphs=ASCII if ascii_glyphs else UNICODE)

        async def run(pilot: Pilot[int]) -> None:
            folders = sum(1 for _ in os.walk(root))
            await settle(pilot)
            await until(pilot, lambda: app.liveness.watching.folders == folders, what="all folders in the header")
            await press(pilot, *keys)
            if drive is not None:
                await drive(pilot)
            await pilot.pause()

        try:
            return compare(app, terminal_size=size, run_before=run)
        finally:
            engine.stop()

    return check


def tab(name: str) -> Drive:
    """Show a tab of the detail, and wait for it."""

    async def choose(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, TraceApp)
        assert app.main.detail.choose(name), app.main.detail.tabs
        await settle(pilot)

    return choose


Looks = Callable[..., bool]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_main(looks: Looks, size: tuple[int, int]) -> None:
    assert looks(size=size)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_failed_run(looks: Looks, size: tuple[int, int]) -> None:
    assert looks("enter", size=size)


def test_policy_violation(looks: Looks) -> None:
    assert looks("f", *"max_steps", "enter", "enter")


def test_nested_run_as_a_tree(looks: Looks) -> None:
    assert looks("enter", "t", "j", "j", root="latticeflow/trip.json")


def test_goal(looks: Looks) -> None:
    assert looks("enter", root="penelope/appeal", drive=tab("goal"))


def test_nodes(looks: Looks) -> None:
    assert looks("enter", root="graphs", drive=tab("run"))


def test_messages(looks: Looks) -> None:
    assert looks("enter", "g", root="paprika", drive=tab("messages"))


def test_raw(looks: Looks) -> None:
    assert looks("enter", "r", root="paprika")


def test_detail_zoomed_at_80x24(looks: Looks) -> None:
    assert looks("enter", "enter", size=(80, 24))


def test_unreadable_file(looks: Looks) -> None:
    assert looks("f", *"unreadable", "enter")


def test_empty_directory(looks: Looks, samples: Path) -> None:
    os.makedirs(samples.parent / "nothing", exist_ok=True)
    assert looks(root=str(samples.parent / "nothing"))


def test_filter(looks: Looks) -> None:
    assert looks("f", *"!ok rag")


def test_filter_without_a_hit(looks: Looks) -> None:
    assert looks("f", *"zzzz", "enter")


def test_help(looks: Looks) -> None:
    async def ask(pilot: Pilot[int]) -> None:
        await pilot.press("?")
        await until(pilot, lambda: len(pilot.app.screen_stack) > 1)

    assert looks(drive=ask)


def test_grouped_failures(looks: Looks) -> None:
    assert looks("b", "b", "!")


@pytest.mark.parametrize("palette", ["light", "high-contrast", "ansi"])
def test_theme(looks: Looks, palette: str) -> None:
    assert looks("enter", palette=palette)


def test_ascii_without_colours(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert looks("enter", palette="ansi", ascii_glyphs=True)


def test_too_small(looks: Looks) -> None:
    assert looks(size=(34, 8))


# ---- the triage and what is asked of many runs

SIZES = ((80, 24), (120, 40), (200, 60))


async def quiet(pilot: Pilot[int]) -> None:
    """Wait until what was asked of many runs is answered."""
    app = pilot.app
    assert isinstance(app, TraceApp)

    def answered() -> bool:
        latest = app.surveys.latest
        return latest is not None and latest.finished

    await until(pilot, answered, what="the answer")
    await settle(pilot)


async def second(pilot: Pilot[int]) -> None:
    """Go to the second signature, of which several runs share something."""
    await quiet(pilot)
    await press(pilot, "j")
    app = pilot.app
    assert isinstance(app, TraceApp)
    screen = app.screen
    assert isinstance(screen, TriageScreen)
    contrast = app.surveys.contrast_of
    await until(
        pilot, lambda: screen.queue.group is not None and bool(contrast(screen.queue.group.runs)), what="contrast"
    )
    await quiet(pilot)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_triage(looks: Callable[..., bool], size: tuple[int, int]) -> None:
    assert looks("T", size=size, drive=second)


def test_triage_judged_and_unfolded(looks: Callable[..., bool]) -> None:
    async def drive(pilot: Pilot[int]) -> None:
        await second(pilot)
        await press(pilot, "v", "k", "k", "l", "j")
        await quiet(pilot)

    assert looks("T", drive=drive)


def test_triage_light(looks: Callable[..., bool]) -> None:
    assert looks("T", palette="light", drive=second)


def test_filter_being_completed(looks: Callable[..., bool]) -> None:
    assert looks("f", *"status:error agent:", "tab")


def test_a_wrong_filter(looks: Callable[..., bool]) -> None:
    assert looks("f", *"status:error agnt:x")


def test_pick(looks: Callable[..., bool]) -> None:
    assert looks("P", "j", "space")


def test_hits(looks: Callable[..., bool]) -> None:
    assert looks("ampersand", *"timed out", "enter", drive=quiet)


def test_statistics(looks: Callable[..., bool]) -> None:
    assert looks("S", drive=quiet)


def test_contrast(looks: Callable[..., bool]) -> None:
    assert looks("C", drive=quiet)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_story(looks: Callable[..., bool], size: tuple[int, int]) -> None:
    root = ROOT / "tests" / "formats" / "claude_code" / "agents" / "input"
    assert looks("enter", root=str(root), size=size)
