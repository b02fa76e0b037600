"""Warm starts: what the cache of runs saves, and what it costs. CPU time, garbage collection off."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.bench import data, process, references, screen, triage
from tests.bench.table import Row, cpu_ms, interleaved, median, timed
from tracetui.analysis.arrangement import Arrangement, arrange
from tracetui.live.scan import scan
from tracetui.live.scan_cache import open_cache
from tracetui.sources.local import LocalSource
from tracetui.store.run_cache import NAME, cache_folder
from tracetui.store.store import Store

LIMIT: Final = 512_000_000
OPENED: Final = 200_000
"""Runs that are opened, a thousand in a folder. The limits are for a million, of which making the files takes long."""


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about the cache; sizes are divided by `scale`."""
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, XDG_CACHE_HOME=home):
        runs, what = data.paprika_runs(10_000 // scale, size=20_000), f"{10_000 // scale} runs of 20 kB"
        yield from _compared(runs, what, rounds)
        yield from _opened(OPENED // scale)
        yield from _first_paint(runs, home, what, rounds)
    yield from _arranged(1_000_000 // scale)


def _first_paint(folder: Path, home: str, what: str, rounds: int) -> Iterator[Row]:
    """From the start to the first row, and until all counts stand, with all results stored."""
    painted, settled = [], []
    for _ in range(rounds + 1):
        with screen.start("-m", "tracetui", str(folder), cache=home) as terminal:
            painted.append((terminal.wait_for(screen.A_RUN, timeout=60) - terminal.started) * 1000)
            settled.append((terminal.wait_for(screen.LOADING, gone=True, timeout=180) - terminal.started) * 1000)
    empty = references.empty_app()
    yield timed(f"{what}: first paint, warm", median(painted[1:]), 1.3, empty)
    yield timed(f"{what}: final numbers, warm", median(settled[1:]), 1.3, empty)


def _opened(count: int) -> Iterator[Row]:
    """Many runs, beside those of one folder; the floor is to scan and stat."""
    folder = data.small_runs(count)
    _scan(folder, cached=True)
    base = cpu_ms(lambda: _walk(folder), 3)
    few, every = (process.in_own_process(opening, path) for path in (folder / "000", folder))
    took, memory = (every.cpu - few.cpu) * 1000, (every.peak - few.peak) * 1_000_000 / count + few.peak
    yield Row(f"opening {count} runs, warm", took / base, 2, "×", f"{took:.0f} ms; scan + stat {base:.0f} ms")
    yield Row("  peak memory, for a million", memory, 700, "MB", f"{every.peak:.0f} MB with these")


def opening(folder: str) -> None:
    """Open a folder with all results stored: read the list, put it into the store, arrange it."""
    gc.disable()
    store, source = Store(), LocalSource()
    cache = open_cache(source, [folder], None, LIMIT)
    store.apply(scan(source, [folder], deep=True, cache=cache), time.time())
    cache.close()
    items = arrange(store.runs.values(), (), Arrangement(), now=time.time())
    assert len(items) > len(store.runs), "with headings"


def _arranged(count: int) -> Iterator[Row]:
    """Sort and group many runs; the limit is for a million."""
    runs = triage.summaries(count)
    ways = {
        "sort by tokens": Arrangement(sort="tokens", group="none"),
        "group by status": Arrangement(group="status"),
    }
    for name, way in ways.items():
        took = cpu_ms(lambda way=way: arrange(runs, (), way, now=triage.NOW), 1)  # type: ignore[misc]
        yield Row(f"{count} runs: {name}", took / 1000, 2 * count / 1_000_000, "s", "CPU time")


def _compared(folder: Path, what: str, rounds: int) -> Iterator[Row]:
    _scan(folder, cached=True)
    ways = {
        "floor": lambda: _floor(folder),
        "warm": lambda: _scan(folder, cached=True),
        "cold": lambda: _scan(folder, cached=False),
        "first": lambda: _first(folder),
    }
    times = interleaved(ways, rounds)
    floor, warm, cold, first = (median(times[name]) for name in ways)
    yield Row(f"{what}: counts, warm", warm / floor, 1.5, "×", f"{warm:.1f} ms; scan + stat + rows {floor:.1f} ms")
    yield Row(f"{what}: warm against cold", warm / cold, 0.1, "×", f"{cold:.1f} ms cold")
    yield Row(f"{what}: cold with storing, against cold", first / cold, 1.1, "×", f"{first - cold:.1f} ms")


def _scan(folder: Path, *, cached: bool) -> None:
    source, roots = LocalSource(), [str(folder)]
    cache = open_cache(source, roots, None, LIMIT) if cached else None
    runs = sum(len(entry.runs) for entry in scan(source, roots, deep=True, cache=cache))
    assert runs, "there are runs"
    if cache is not None:
        cache.close()


def _first(folder: Path) -> None:
    """A deep pass that stores its results."""
    shutil.rmtree(cache_folder())
    _scan(folder, cached=True)


def _floor(folder: Path) -> None:
    """Scan, stat, and fetch the same pages with nothing but the system and SQLite."""
    _walk(folder)
    with closing(sqlite3.connect(cache_folder() / NAME)) as connection:
        connection.execute("SELECT id, value FROM pages").fetchall()


def _walk(folder: Path) -> None:
    """Scan and stat."""
    folders = [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as names:
            for name in names:
                if name.is_dir(follow_symlinks=False):
                    folders.append(name.path)
                else:
                    name.stat(follow_symlinks=False)
