"""Listing and counting, in process, against a loop that only decodes: CPU time, garbage collection off for both."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from tests.bench import data
from tests.bench.table import Row, median
from tracetui.live.scan import scan
from tracetui.sources.local import LocalSource
from tracetui.store.store import Store


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
        "decode": lambda: decode_all(folder),
        "list": lambda: _scan(folder, deep=False),
        "count": lambda: _scan(folder, deep=True),
    }
    times = interleaved(ways, rounds)
    base, listed, counted = (median(times[name]) for name in ways)
    floor = f"orjson.loads of all: {base:.0f} ms"
    yield Row(f"list {what}", listed / base, limit, "×", f"{listed:.0f} ms; {floor}")
    yield Row(f"count {what} (deep pass)", counted / base, 0.7, "×", f"{counted:.0f} ms; {floor}")


def interleaved(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of CPU time of each way, the ways taking turns; the first round only warms up."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, work in ways.items():
            gc.collect()
            gc.disable()
            began = time.process_time()
            work()
            if number:
                times[name].append((time.process_time() - began) * 1000)
            gc.enable()
    return times


def decode_all(folder: Path) -> None:
    """`orjson.loads` of every file, or of every line of one with lines."""
    for place, _, names in os.walk(folder):
        for name in names:
            with open(f"{place}/{name}", "rb") as file:  # noqa: PTH123 - the plainest loop there is
                for text in file if name.endswith(".jsonl") else (file.read(),):
                    orjson.loads(text)


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
