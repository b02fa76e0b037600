"""Every kind of event, in one write with the key that closes what it was meant for."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from textual import events
from textual.geometry import Size

from tests.shared import SEARCHES
from tests.ui.conftest import Opener
from tests.ui.test_bursts import SCREENS, SIZE, asking, burst, come_to, drain, turning_keys, type_alone
from tests.ui.test_bursts import stays as stays
from tests.ui.test_keys import with_replays
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import REPLAYS, RUNS

Event = events.Event


def mouse(kind: type[events.MouseEvent], x: int, y: int, button: int = 1) -> events.MouseEvent:
    return kind(None, x, y, 0, 0, button, False, False, False, x, y)


def clicks(x: int, y: int) -> tuple[Event, ...]:
    """What the driver posts for a click: `Click` is made from the last two."""
    return mouse(events.MouseMove, x, y, 0), mouse(events.MouseDown, x, y), mouse(events.MouseUp, x, y)


def scrolls(x: int, y: int) -> tuple[Event, ...]:
    return mouse(events.MouseScrollDown, x, y, 0), mouse(events.MouseScrollUp, x, y, 0)


def drags(x: int, y: int) -> tuple[Event, ...]:
    moved = mouse(events.MouseMove, max(0, x - 9), y)
    return mouse(events.MouseDown, x, y), moved, mouse(events.MouseUp, max(0, x - 9), y)


KINDS: Final[dict[str, Callable[[int, int], tuple[Event, ...]]]] = {
    "paste": lambda x, y: (events.Paste(f"status:error {x}\nmore\x1b[31m"),),
    "empty paste": lambda x, y: (events.Paste(""),),
    "click": clicks,
    "scroll": scrolls,
    "drag": drags,
    "right button": lambda x, y: (mouse(events.MouseDown, x, y, 3), mouse(events.MouseUp, x, y, 3)),
    "resize": lambda x, y: tuple(events.Resize(Size(*to), Size(*to)) for to in ((30, 5), (200, 60), (1, 1), SIZE)),
    "focus": lambda x, y: (events.AppBlur(), events.AppFocus()),
}
"""Events by kind, at a cell of the terminal."""


def storm(app: TraceApp, key: str, kind: str, x: int, y: int, *, first: bool) -> None:
    """Post a key, then events of a kind, or the other way round, before the first of them is handled."""
    if first:
        burst(app, key)
    for event in KINDS[kind](x, y):
        app.post_message(event)
    if not first:
        burst(app, key)


PLACES: Final = ((SIZE[0] // 2, SIZE[1] // 2), (10, SIZE[1] - 1))
"""A row of what is open, and a hint of its footer."""


@pytest.mark.parametrize("over", ["?", "ctrl+p", "W", "f", "P"])
async def test_a_closed_overlay_gets_no_event(opened: Opener, samples: Path, over: str) -> None:
    async with opened(samples, size=SIZE) as (app, _):
        with app.batch_update():
            for closing, (x, y) in product(("escape", "enter"), PLACES):
                await come_to(app, RUNS)
                await type_alone(app, over)
                burst(app, closing)
                for kind in KINDS.values():
                    for event in kind(x, y):
                        app.post_message(event)
                await drain(app)
                assert app.screen_stack[0] is app.main


async def test_text_that_follows_the_closing_key_goes_where_it_would_if_pasted_later(
    opened: Opener, samples: Path
) -> None:
    async with opened(samples, size=SIZE) as (app, _):
        await come_to(app, RUNS)
        await type_alone(app, "ctrl+p")
        burst(app, "escape", "f")
        app.post_message(events.Paste("nothing-has-this"))
        burst(app, "enter")
        await drain(app)
        assert app.main.runs.arrangement.query == "nothing-has-this"


async def test_a_click_on_a_closed_column_chooser_changes_nothing(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=SIZE) as (app, _):
        await come_to(app, RUNS)
        before = app.main.runs.arrangement
        for y in range(5, 8):
            await type_alone(app, "W")
            storm(app, "escape", "click", SIZE[0] // 2, y, first=True)
            await drain(app)
            assert app.main.runs.arrangement.columns == before.columns


@pytest.mark.search
@pytest.mark.parametrize("pane", sorted(SCREENS))
async def test_no_storm_ends_the_app(
    opened: Opener, samples: Path, pane: str, stays: list[str], tmp_path: Path
) -> None:
    folder = with_replays(samples, tmp_path) if pane == REPLAYS else samples
    chance = random.Random(pane)
    async with opened(folder, size=SIZE) as (app, _):
        with app.batch_update():
            opening, closing = await turning_keys(app, pane, stays)
            keys = [*opening, *closing]
            for _ in range(200 if SEARCHES else 3):
                await come_to(app, pane)
                for _ in range(chance.randint(1, 4)):
                    x, y = chance.randrange(SIZE[0]), chance.randrange(SIZE[1])
                    storm(app, chance.choice(keys), chance.choice([*KINDS]), x, y, first=chance.random() < 0.5)
                await drain(app)
                assert app.screen_stack[0] is app.main
            if asking(app.screen):
                await type_alone(app, "escape")
