"""Fixtures of UI tests: the app on a small directory with a fixed clock."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
import textual.app
import textual.pilot
from textual._context import active_app
from textual._queue import Queue
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation
from textual.geometry import Region
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input

from tests.shared import PATIENCE, SEARCHES
from tracetui import demo
from tracetui.analysis import prices
from tracetui.live.engine import Engine
from tracetui.sources.local import LocalSource
from tracetui.ui.app import TraceApp
from tracetui.views.glyphs import ASCII, UNICODE

CALM = 5
"""Turns of the loop with nothing to do after which everything was handled."""


async def handle_messages(min_sleep: float = 0, max_sleep: float = 0, *, turns: int = CALM) -> None:
    """Wait until every message is handled and everything is painted.

    Textual's own function waits until the process uses little of the processor, for up to a second: slow where
    nothing happens, and too short on a busy machine.
    """
    app, calm, end = active_app.get(), 0, time.perf_counter() + PATIENCE
    pumps: Iterable[MessagePump] = ()
    while calm < turns and app.is_running and app.screen_stack:
        assert time.perf_counter() < end, "the screen never rests"
        await asyncio.sleep(0)
        if calm in (0, turns - 1):
            pumps = app, *app.screen_stack, *app.screen.walk_children()
        calm = calm + 1 if all(map(rests, pumps)) else 0
        assert app._exception is None, "the app crashed; the reason follows"
        if calm == turns and app._resize_event is not None:
            app._check_resize()
            calm = 0
        elif calm == turns and must_paint(app.screen):
            app.screen._on_timer_update()
            calm = 0


async def wait_for_screen(pilot: Pilot[int], timeout: float = 0) -> bool:
    """Wait until every widget has handled its messages.

    Textual's own method sends each widget a message and counts the answers: five of six messages of a test.
    """
    await handle_messages(turns=1)
    return pilot.app._exception is None


def rests(pump: MessagePump) -> bool:
    """Whether a widget has ended, or waits for its next message and there is none."""
    queue: Queue[object] = pump._message_queue
    return pump._closed or (queue.empty() and bool(queue.ready_event._waiters))


def must_paint(screen: Screen[object]) -> bool:
    """Whether the next tick of the screen's own timer changes anything."""
    waits = screen._layout_required or screen._scroll_required or screen._repaint_required or screen._recompose_required
    changed = bool(waits or screen._dirty_widgets) and screen.is_current and not screen.app._batch_count
    return changed or bool(screen._callbacks)


Pilot._wait_for_screen = wait_for_screen  # type: ignore[method-assign, assignment]
textual.app.wait_for_idle = textual.pilot.wait_for_idle = handle_messages  # type: ignore[attr-defined]

_parse_rules = Stylesheet._parse_rules
_parsed: dict[object, list[RuleSet]] = {}
"""The rules of style sheets with their variables: parsing them takes an eighth of the time of a short test."""


def parse_rules_once(sheet: Stylesheet, css: str, read_from: CSSLocation, **options: Any) -> list[RuleSet]:
    """The rules of a style sheet, parsed by the first app that has it. Textual's own cache ends with its app."""
    key = css, read_from, *sorted(options.items()), *sorted(sheet._variables.items())
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, css, read_from, **options)
    return _parsed[key]


Stylesheet._parse_rules = parse_rules_once  # type: ignore[method-assign, assignment]
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the clock and the time zone."""
    monkeypatch.setattr(TraceApp, "clock", lambda self: NOW.timestamp())
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(prices.SWITCH, "off")  # prices change with the library
    time.tzset()


@pytest.fixture(autouse=True)
def still_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor of a prompt doesn't blink: else it is in half of the snapshots."""
    monkeypatch.setattr(Input, "_toggle_cursor", lambda self: None)


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder instead of ``~/.local/state``, for verdicts and settings."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


CACHE_LIMIT = 0 if SEARCHES else 100_000_000
"""Bytes of the cache of runs. Without it the deep pass over the samples takes a third of the time of a start."""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of all UI tests: they leave the shared folders as they are, and have folders of their own to change."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in samples, written at `NOW`."""
    folder = tmp_path_factory.mktemp("samples")
    demo.write(folder, NOW)
    old = NOW.timestamp() - 3600
    for path in folder.rglob("*"):
        os.utime(path, (old, old))
    return folder


class Opener(Protocol):
    """Runs the app until everything is listed and shown."""

    def __call__(
        self, *roots: Path, size: tuple[int, int] = (120, 40), palette: str = "dark", ascii_glyphs: bool = False
    ) -> AbstractAsyncContextManager[tuple[TraceApp, Pilot[int]]]: ...


@asynccontextmanager
async def _opened(
    *roots: Path, size: tuple[int, int] = (120, 40), palette: str = "dark", ascii_glyphs: bool = False
) -> AsyncIterator[tuple[TraceApp, Pilot[int]]]:
    paths = [str(root) for root in roots]
    engine = Engine(LocalSource(), paths, cache_limit=CACHE_LIMIT)
    engine.start()
    app = TraceApp(engine, paths, palette=palette, glyphs=ASCII if ascii_glyphs else UNICODE)
    try:
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            yield app, pilot
    finally:
        engine.stop()


@pytest.fixture
def opened() -> Opener:
    """``async with opened(folder, size=(80, 24)) as (app, pilot)``."""
    return _opened


def skip_painting(screen: Screen[object]) -> None:
    """Takes the place of painting, where it would take most of the time of a test."""
    screen._dirty_widgets.clear()
    if isinstance(screen.app, TraceApp):
        screen.app.frame_painted()


async def until(pilot: Pilot[int], condition: Callable[[], bool], *, what: str = "the condition") -> None:
    """Wait for a condition, then until everything is painted."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert pilot.app._exception is None, "the app crashed; the reason follows"
        assert time.monotonic() < end, f"{what} did not come about"
        await asyncio.sleep(0.005)
        if pilot.app.screen_stack and must_paint(pilot.app.screen):
            pilot.app.screen._on_timer_update()
    await pilot.pause()


async def settle(pilot: Pilot[int]) -> None:
    """Wait until the directory is scanned, and the run under the cursor and the screen over it are complete."""
    app = pilot.app
    assert isinstance(app, TraceApp)
    await pilot.pause()  # a message that is still queued, such as that of a moved cursor, asks for more
    await until(
        pilot,
        lambda: not app.stage and app.main.settled and getattr(app.screen, "settled", True) and watched(app),
        what="a complete screen",
    )


def watched(app: TraceApp) -> bool:
    """Whether the directory is watched, and the header says so."""
    return bool(app.liveness.watching.mode)


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press keys one after the other, each on a settled screen."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def line(app: TraceApp, row: int) -> str:
    """A row of the screen, counted from the top, or from the bottom if it is negative."""
    row %= app.size.height
    chops = app.screen._compositor._render_chops(Region(0, row, app.size.width, 1), row.__eq__)
    return Strip.join(chops[row].values()).text.rstrip()


def text_of(app: TraceApp) -> str:
    """The screen as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)
