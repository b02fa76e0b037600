"""Listing and counting, in process, against a loop that only decodes: CPU time, garbage collection off for both."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import orjson

from tests.bench import data
from tests.bench.table import Row, interleaved, median
from tracetui.live.scan import scan
from tracetui.sources.local import LocalSource
from tracetui.store.store import Store

CHECKED = "two hashes of the input of each step are computed, and compared with the one that is recorded"


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about listing; sizes are divided by `scale`."""
    many, large = data.paprika_runs(10_000 // scale, size=20_000), data.paprika_runs(200 // scale, size=2_000_000)
    yield from _compared(many, f"{10_000 // scale} runs of 20 kB", 0.35, rounds)
    yield from _compared(large, f"{200 // scale} runs of 2 MB", 0.05, rounds)
    for deep in (False, True):
        size = _memory(many, deep=deep)
        yield Row(f"memory per run, {'counted' if deep else 'listed'}", size, 600, "B", "tracemalloc, all of the store")


def _compared(folder: Path, what: str, limit: float, rounds: int) -> Iterator[Row]:
    ways = {
        "decode": lambda: _decode_all(folder),
        "list": lambda: _scan(folder, deep=False),
        "count": lambda: _scan(folder, deep=True),
    }
    times = interleaved(ways, rounds)
    base, listed, counted = (median(times[name]) for name in ways)
    floor = f"orjson.loads of all: {base:.0f} ms"
    yield Row(f"list {what}", listed / base, limit, "×", f"{listed:.0f} ms; {floor}")
    detail = f"{counted:.0f} ms; {floor}"
    yield Row(f"count {what} (deep pass)", counted / base, 0.7, "×", detail, why=CHECKED)


def _decode_all(folder: Path) -> None:
    for name in os.listdir(folder):
        with open(f"{folder}/{name}", "rb") as file:  # noqa: PTH123 - the plainest loop there is
            orjson.loads(file.read())


def _scan(folder: Path, *, deep: bool) -> None:
    listed = sum(len(entry.runs) for entry in scan(LocalSource(), [str(folder)], deep=deep))
    assert listed == len(os.listdir(folder)), "every file holds a run"


def _memory(folder: Path, *, deep: bool) -> float:
    """Bytes that the store grows by for each run."""
    source = LocalSource()
    for _ in zip(range(3), scan(source, [str(folder)], deep=deep), strict=False):
        pass  # what is imported and cached once is not a run's
    gc.collect()
    tracemalloc.start()
    store = Store()
    store.apply(scan(source, [str(folder)], deep=deep), time.time())
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(store.runs)
