"""What the limits of times are measured against: each once, in the same run as the times."""

from __future__ import annotations

import time
from functools import cache

import orjson

from tests.bench import data, screen
from tests.bench.table import Reference, median

ROUNDS = 5


@cache
def empty_app() -> Reference:
    """The first paint of an app that has one line of text."""
    starts = [screen._start(lambda: screen.start(*screen.EMPTY), "ready").ms for _ in range(ROUNDS + 1)]
    return Reference("an empty app", median(starts[1:]))


@cache
def key(name: str = "down") -> Reference:
    """A key that moves the cursor in a `LineView` of 1,000 rows, with nothing beside it."""
    with screen.start(*screen.APPS, "rows", "1000") as terminal:
        terminal.wait_for(r"step +0 ")
        terminal.wait_quiet(0.15)
        screen.press(terminal, name)
        what = "a key" if name == "down" else name
        return Reference(f"{what} in a bare LineView", median([screen.press(terminal, name).ms for _ in range(24)]))


@cache
def decoding() -> Reference:
    """`orjson.loads` of a record of 1 MB."""
    text = orjson.dumps(data.record(data.TextGenerator("reference"), 1, size=1_000_000))
    times = []
    for _ in range(4 * ROUNDS):
        began = time.perf_counter()
        orjson.loads(text)
        times.append((time.perf_counter() - began) * 1000)
    return Reference("orjson.loads of 1 MB", median(times))
