"""Keys that arrive in one write: on every screen, every key that opens or closes something, twice and in pairs.

Which screens and keys there are comes from the table of commands; which of them open or close something is tried out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from textual import events
from textual.keys import _character_to_key
from textual.message_pump import MessagePump
from textual.screen import Screen

from tests.shared import PATIENCE, SEARCHES
from tests.ui.conftest import CALM, Opener, rests, skip_painting, until
from tests.ui.test_keys import WAYS as LISTED
from tests.ui.test_keys import pressed, with_replays
from tracetui.model import RunRef
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import (
    BLAME,
    CONTEXT,
    DIFF,
    EVERYWHERE,
    FILES,
    HITS,
    LISTS,
    MAIN,
    PAIRS,
    QUEUE,
    REPLAYS,
    RIVER,
    RUNS,
    STATISTICS,
    TREE,
    TRIAGE,
    of_pane,
)
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.screens.overlay import ChoiceView, Palette
from tracetui.ui.state import arrange_runs, filter_runs
from tracetui.ui.widgets.prompt import Prompt
from tracetui.views.effects import EffectRows

SCREENS: Final = {RUNS: MAIN, QUEUE: TRIAGE, PAIRS: DIFF, RIVER: CONTEXT, **{pane: frozenset({pane}) for pane in LISTS}}
"""The first pane of every screen, and all of its panes."""
WAYS: Final = {
    QUEUE: ("T",),
    PAIRS: ("D",),
    RIVER: ("K",),
    **{pane: tuple("&" if key == "ampersand" else key for key in keys) for pane, keys in LISTED.items()},
}
"""Keys that lead from the list of runs to the other screens."""
SIZE: Final = (80, 16)
"""Of the terminal: each row takes time."""
BESIDE: Final = frozenset({"interrupt", "end-now", "suspend"})
"""Commands that Textual's own bindings or the terminal take before any screen."""


def test_every_screen_is_here() -> None:
    assert frozenset().union(*SCREENS.values()) == EVERYWHERE


@pytest.fixture(autouse=True)
def stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The app goes on where it would end; each time is noted."""
    ends: list[str] = []
    monkeypatch.setattr(TraceApp, "exit", lambda self, *args, **more: ends.append("exit"))
    monkeypatch.setattr(TraceApp, "edit", lambda self, text: None)
    monkeypatch.setattr(Screen, "_compositor_refresh", skip_painting)
    monkeypatch.chdir(tmp_path)  # what is exported goes here
    return ends


def burst(app: TraceApp, *keys: str) -> None:
    """Post keys as the thread does that reads them in one piece: before the first one is handled."""
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 else key
        app.post_message(events.Key(name, key if len(key) == 1 else None))


async def drain(app: TraceApp) -> None:
    """Wait until everything that was posted has been handled, also by screens that close meanwhile."""
    calm = 0
    pumps: set[MessagePump] = set()
    while calm < CALM:
        pumps.update((app, *app.screen_stack, *app.screen.walk_children()))
        await asyncio.sleep(0)
        calm = calm + 1 if all(map(rests, pumps)) else 0
        assert app._exception is None, "the app has crashed; what follows tells why"


async def type_alone(app: TraceApp, key: str) -> None:
    """Type one key, and let it be done."""
    burst(app, key)
    await drain(app)


def asking(screen: Screen[object]) -> bool:
    """Whether a prompt waits for an answer."""
    prompt = getattr(screen, "_prompt", None)
    return prompt is not None and bool(prompt.display)


async def come_to(app: TraceApp, pane: str) -> None:
    """Be on the screen of that pane, with nothing open over it, however keys have been pressed."""
    end = time.monotonic() + PATIENCE
    while app.stage:  # reading everything again delays a search, whose hits would open later
        assert time.monotonic() < end, "the list is never complete"
        await asyncio.sleep(0.005)
    await drain(app)
    for _ in range(20):
        screen = app.screen
        if asking(screen) or not isinstance(screen, BaseScreen):
            await type_alone(app, "escape")
        elif pane in screen.views and not (pane == RUNS and app.main.state.level):
            break
        elif screen is app.main and not app.main.state.level and pane != RUNS:
            app.main.focus_pane(RUNS)
            app.main.runs.move_to_key(start_of(app, pane))
            if pane == TREE:
                app.main.become(replace(app.main.state, marked=tuple(app.main.runs.refs()[:3])))
            for key in WAYS[FILES if pane == BLAME else pane]:
                await type_alone(app, key)
            while pane == HITS and HITS not in getattr(app.screen, "views", ()):  # a thread searches
                assert time.monotonic() < end, "the hits never open"
                await asyncio.sleep(0.005)
        elif pane == BLAME and FILES in screen.views:
            while not isinstance(screen.views[FILES].rows, EffectRows):
                assert time.monotonic() < end, "the files are never listed"
                await asyncio.sleep(0.005)
            for key in WAYS[BLAME]:
                await type_alone(app, key)
        else:
            await type_alone(app, "escape")
    assert isinstance(app.screen, BaseScreen)
    app.screen.views[pane].focus()
    arrangement = app.main.runs.arrangement
    if app.screen is app.main and (arrangement.query or arrangement.failures):
        app.main.become(filter_runs(arrange_runs(app.main.state, failures=False), ""))
        app.main.runs.rearrange()
    await drain(app)


def start_of(app: TraceApp, pane: str) -> RunRef:
    """The run under the cursor from which the way to a pane begins."""
    relations = app.store.relations
    if pane == PAIRS:
        return next(ref for ref in app.store.runs if relations.original(ref) is not None)
    many = (ref for ref in app.store.runs if len(relations.variants(ref)) > 1)
    return next(many) if pane == REPLAYS else app.main.runs.refs()[0]


async def turning_keys(app: TraceApp, pane: str, ends: list[str]) -> tuple[list[str], list[str]]:
    """The keys of a pane that open something over its screen, and those that leave the screen: tried out once."""
    if pane not in _turning:
        _turning[pane] = await _try_keys(app, pane, ends)
    return _turning[pane]


_turning: Final[dict[str, tuple[list[str], list[str]]]] = {}


async def _try_keys(app: TraceApp, pane: str, ends: list[str]) -> tuple[list[str], list[str]]:
    opening, closing = [], []
    for command in of_pane(pane, app.commands):
        key = command.keys[0]
        if command.id in BESIDE or len(pressed(key)) > 1:
            continue
        await come_to(app, pane)
        screen, before = app.screen, app.screen_stack
        ends.clear()
        await type_alone(app, key)
        if ends or len(app.screen_stack) < len(before):
            closing.append(key)
        elif app.screen is not screen or asking(screen):
            opening.append(key)
    return opening, closing


def pairs(opening: list[str], closing: list[str]) -> Iterator[tuple[str, str]]:
    """Every pair of keys with one that closes, every key twice, and each key that opens before the next one."""
    keys = [*opening, *closing]
    after = dict(zip(opening, [*opening[1:], *opening], strict=False))
    for key, other in product(keys, keys):
        if not {key, other}.isdisjoint(closing) or other in (key, after[key]):
            yield key, other


def part(pane: str) -> slice:
    """The part of the pairs of a pane that the suite tries: another one of each pane."""
    return slice(None) if SEARCHES else slice(sorted(SCREENS).index(pane) % 10, None, 10)


@pytest.mark.search
@pytest.mark.parametrize("pane", sorted(SCREENS))
async def test_two_keys_at_once_never_end_the_app(
    opened: Opener, samples: Path, pane: str, stays: list[str], tmp_path: Path
) -> None:
    folder = with_replays(samples, tmp_path) if pane == REPLAYS else samples
    async with opened(folder, size=SIZE) as (app, _):
        with app.batch_update():
            opening, closing = await turning_keys(app, pane, stays)
            assert "escape" in closing or pane == RUNS
            assert "q" in closing
            assert {"?", "ctrl+p"} <= set(opening)
            for keys in [*pairs(opening, closing)][part(pane)]:
                await come_to(app, pane)
                burst(app, *keys)
                await drain(app)
                assert app.screen_stack[0] is app.main, keys
            await come_to(app, pane)
            stays.clear()
            burst(app, *["q"] * len(app.screen_stack))
            await drain(app)
            assert (app.screen, stays) == (app.main, ["exit"])


@pytest.mark.parametrize("over", ["?", "ctrl+p"])
async def test_two_keys_at_once_in_help_and_palette(opened: Opener, samples: Path, over: str) -> None:
    closing = [command.keys[0] for command in of_pane(RUNS) if command.id in ("open", "back", "quit")]
    async with opened(samples, size=SIZE) as (app, pilot):
        for keys in product(closing, repeat=2):
            await come_to(app, RUNS)
            await type_alone(app, over)
            if over == "ctrl+p":
                await until(pilot, lambda: len(app.screen.query_one(ChoiceView).rows) > 1, what="commands")
            burst(app, *keys)
            await drain(app)
            assert app.screen_stack[0] is app.main, keys


async def test_a_key_means_the_same_however_quickly_it_follows(opened: Opener, samples: Path, stays: list[str]) -> None:
    async with opened(samples, size=SIZE) as (app, _):
        await come_to(app, STATISTICS)
        burst(app, "q", "T")
        await drain(app)
        assert QUEUE in views(app.screen)

        burst(app, "q", "S", "q", "q")
        await drain(app)
        assert app.screen is app.main
        assert stays == ["exit"]

        await come_to(app, RUNS)
        burst(app, "S", "q", "f", *"nothing-has-this", "enter")
        await drain(app)
        assert app.main.runs.arrangement.query == "nothing-has-this"

        await come_to(app, RUNS)
        burst(app, "&", *"refund", "enter", "?")  # the answer comes after the key that follows it
        await drain(app)
        assert [HITS in views(screen) for screen in app.screen_stack] == [False, True, False]

        await come_to(app, RUNS)
        burst(app, "f", "a", "escape", "ctrl+p", *"theme")  # no key overtakes another
        await drain(app)
        assert isinstance(app.screen, Palette)
        assert app.screen._text == "theme"


def views(screen: Screen[object]) -> list[str]:
    """The names of a screen's panes."""
    return list(screen.views) if isinstance(screen, BaseScreen) else []


@pytest.mark.parametrize("turns", range(0, 12, 1 if SEARCHES else 3))
async def test_text_typed_into_a_new_prompt_keeps_its_order(opened: Opener, samples: Path, turns: int) -> None:
    """So many turns of the loop lie between the first letter and the rest: the prompt opens before, or meanwhile."""
    async with opened(samples, size=SIZE) as (app, pilot):
        for pause, keys in ((turns, "fr"), (0, "outer")):
            for key in keys:
                app.post_message(events.Key(key, key))
            for _ in range(pause):
                await asyncio.sleep(0)
        await until(pilot, lambda: isinstance(app.focused, Prompt) and len(app.focused.value) == 6, what="the text")
        assert isinstance(app.focused, Prompt)
        assert app.focused.value == "router"
