"""Garbage is collected while nothing is painted, and not within the response to a key."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.conftest import Opener, press, until


class Node:
    """Refers to itself: only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """Collection as in the app: enabled, and on its own only after very many new objects."""
    was_enabled, thresholds = gc.isenabled(), gc.get_threshold()
    gc.enable()
    yield
    gc.set_threshold(*thresholds)
    if not was_enabled:
        gc.disable()


async def test_garbage_is_collected_after_a_frame(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        gc.set_threshold(10_000_000, 1_000, 1_000)
        nodes = [Node() for _ in range(600)]
        last = weakref.ref(nodes[-1])
        del nodes
        await press(pilot, "j")

        await until(pilot, lambda: last() is None, what="a collection")
        assert app.is_running


async def test_nothing_is_collected_while_the_list_is_read(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        gc.disable()
        nodes = [Node() for _ in range(600)]
        last = weakref.ref(nodes[-1])
        del nodes
        app.garbage.frame_painted()
        await until(pilot, lambda: app.garbage.rests, what="the pause after the frame")

        assert last() is not None
