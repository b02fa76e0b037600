"""Warm starts: what the cache of runs saves, and what it costs. CPU time in process, garbage collection off."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.bench import data, references, screen, triage
from tests.bench.data import Words, made
from tests.bench.listing import decode_all, interleaved
from tests.bench.table import Row, median, timed
from tracetui.analysis.arrangement import Arrangement, arrange
from tracetui.live.scan import scan
from tracetui.live.scan_cache import open_cache
from tracetui.sources.local import LocalSource
from tracetui.store import query
from tracetui.store.run_cache import NAME, cache_folder

LIMIT: Final = 512_000_000


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about the cache; sizes are divided by `scale`."""
    home, before = tempfile.mkdtemp(prefix="tracetui-bench-cache-"), os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = home
    try:
        sessions = coding_sessions(1000 // scale, size=620_000)
        yield from _compared(sessions, f"{1000 // scale} sessions of 0.6 MB", rounds)
        runs = data.paprika_runs(10_000 // scale, size=20_000)
        yield from _compared(runs, f"{10_000 // scale} runs of 20 kB", rounds)
        yield from _first_paint(runs, home, f"{10_000 // scale} runs of 20 kB", rounds)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
    yield from _arranged(1_000_000 // scale)


def _first_paint(folder: Path, home: str, what: str, rounds: int) -> Iterator[Row]:
    """From the start to the first row, and until all counts stand, with all results stored."""
    shown, settled = [], []
    for _ in range(rounds + 1):
        with screen.start("-m", "tracetui", str(folder), cache=home) as terminal:
            shown.append((terminal.wait_for(screen.A_RUN, timeout=60) - terminal.started) * 1000)
            settled.append((terminal.wait_for(screen.LOADING, gone=True, timeout=180) - terminal.started) * 1000)
    empty = references.empty_app()
    yield timed(f"{what}: first paint, warm", median(shown[1:]), 1.3, empty)
    yield timed(f"{what}: final numbers, warm", median(settled[1:]), 1.3, empty)


def _arranged(count: int) -> Iterator[Row]:
    """Sort, group and filter many runs; the limit is for a million."""
    runs = triage.summaries(count)
    text = query.for_runs("timed out", now=triage.NOW)
    ways: dict[str, Callable[[], object]] = {
        "sort by tokens": lambda: arrange(runs, (), Arrangement(sort="tokens", group="none"), now=triage.NOW),
        "group by status": lambda: arrange(runs, (), Arrangement(group="status"), now=triage.NOW),
        "filter: timed out": lambda: text.select(runs),
    }
    for name, work in ways.items():
        gc.disable()
        began = time.process_time()
        work()
        took = time.process_time() - began
        gc.enable()
        yield Row(f"{count} runs: {name}", took, 2 * count / 1_000_000, "s", "CPU time")


def coding_sessions(count: int, *, size: int) -> Path:
    """`count` ccpa sessions of about `size` bytes, a hundred in a folder."""

    def write(folder: Path) -> None:
        words = Words(f"sessions {count} {size}")
        for number in range(count):
            path = folder / f"project-{number // 100:03}" / f"{number:05}.ccpa-trace.jsonl"
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                file.writelines(data.session_lines(words, size // 2_500, 2_000))

    return made(f"sessions-{count}x{size}", write)


def _compared(folder: Path, what: str, rounds: int) -> Iterator[Row]:
    _scan(folder, cached=True)
    ways = {
        "floor": lambda: _floor(folder),
        "warm": lambda: _scan(folder, cached=True),
        "cold": lambda: _scan(folder, cached=False),
        "first": lambda: _first(folder),
        "decode": lambda: decode_all(folder),
    }
    times = interleaved(ways, rounds)
    floor, warm, cold, first, decoding = (median(times[name]) for name in ways)
    yield Row(f"{what}: counts, warm", warm / floor, 1.5, "×", f"{warm:.1f} ms; scan + stat + rows {floor:.1f} ms")
    yield Row(f"{what}: warm against cold", warm / cold, 0.1, "×", f"{cold:.1f} ms cold")
    yield Row(f"{what}: warm against decoding", warm / decoding, 0.1, "×", f"orjson.loads of all {decoding:.1f} ms")
    yield Row(f"{what}: storing", (first - cold) / cold, 0.1, "×", f"{first - cold:.1f} ms")


def _scan(folder: Path, *, cached: bool) -> None:
    source, roots = LocalSource(), [str(folder)]
    cache = open_cache(source, roots, None, LIMIT) if cached else None
    found = sum(len(one.runs) for one in scan(source, roots, deep=True, cache=cache))
    assert found, "there are runs"
    if cache is not None:
        cache.close()


def _first(folder: Path) -> None:
    """A deep pass that stores its results."""
    shutil.rmtree(cache_folder())
    _scan(folder, cached=True)


def _floor(folder: Path) -> None:
    """Scan, stat, and fetch the same rows with nothing but the system and SQLite."""
    folders = [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as names:
            for name in names:
                if name.is_dir(follow_symlinks=False):
                    folders.append(name.path)
                else:
                    name.stat(follow_symlinks=False)
    with closing(sqlite3.connect(cache_folder() / NAME)) as connection:
        connection.execute("SELECT id, value FROM pages").fetchall()
