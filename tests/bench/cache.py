"""Warm starts: what the cache of runs saves, and what it costs. CPU time in process, garbage collection off."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.bench import data
from tests.bench.data import Words, made
from tests.bench.listing import decode_all, interleaved
from tests.bench.table import Row, median
from tracetui.live.scan import scan
from tracetui.live.scan_cache import open_cache
from tracetui.sources.local import LocalSource
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
    finally:
        shutil.rmtree(home)
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


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
        connection.execute("SELECT name, value FROM rows").fetchall()
