"""Warm starts: what the cache of runs saves, and what it costs. CPU time in process, garbage collection off.

``python -m tests.bench.cache FOLDER`` opens a folder in a process of its own and prints seconds and peak memory.
"""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from tests.bench import data, home, references, screen, triage
from tests.bench.data import TextGenerator, cached_folder
from tests.bench.listing import decode_all, interleaved
from tests.bench.table import Row, median, say, timed
from tests.shared import ROOT
from tracetui.analysis.arrangement import Arrangement, arrange
from tracetui.live.scan import scan
from tracetui.live.scan_cache import open_cache
from tracetui.sources.local import LocalSource
from tracetui.store import query
from tracetui.store.run_cache import NAME, cache_folder
from tracetui.store.store import Store

LIMIT: Final = 512_000_000
OPENED: Final = 200_000
"""Runs that are opened, a thousand in a folder. The limits are for a million, of which making the files takes long."""


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about the cache; sizes are divided by `scale`."""
    place, before = tempfile.mkdtemp(prefix="tracetui-bench-cache-"), os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = place
    try:
        sessions = coding_sessions(1000 // scale, size=620_000)
        yield from _compared(sessions, f"{1000 // scale} sessions of 0.6 MB", rounds)
        runs = data.paprika_runs(10_000 // scale, size=20_000)
        yield from _compared(runs, f"{10_000 // scale} runs of 20 kB", rounds)
        yield from _opened(OPENED // scale)
        yield from _first_paint(runs, place, f"{10_000 // scale} runs of 20 kB", rounds)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
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
    """Open many runs with all results stored: read the list, put it into the store, arrange it."""
    folder = small_runs(count)
    _scan(folder, cached=True)
    base = min(_timed(lambda: _walk(folder)) for _ in range(3))
    command = [sys.executable, "-m", "tests.bench.cache"]
    none = _child([*command, str(folder / "000")])
    all_ = _child([*command, str(folder)])
    took, memory = all_[0] - none[0], (all_[1] - none[1]) * 1_000_000 / count + none[1]
    yield Row(
        f"opening {count} runs, warm", took / base, 2, "×", f"{took * 1000:.0f} ms; scan + stat {base * 1000:.0f} ms"
    )
    yield Row("  peak memory, for a million", memory, 700, "MB", f"{all_[1]:.0f} MB with these")


def _child(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak memory (MB) of opening a folder."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory)


def _open(folder: str) -> None:
    gc.disable()
    began = time.process_time()
    store, source = Store(), LocalSource()
    cache = open_cache(source, [folder], None, LIMIT)
    store.apply(scan(source, [folder], deep=True, cache=cache), time.time())
    cache.close()
    items = arrange(store.runs.values(), (), Arrangement(), now=time.time())
    took = time.process_time() - began
    assert len(items) > len(store.runs), "with headings"
    say(f"{took} {home.peak()}")


def small_runs(count: int) -> Path:
    """`count` records of one step, a thousand in a folder."""

    def write(folder: Path) -> None:
        generator = TextGenerator(f"small runs {count}")
        text = orjson.dumps(data.record(generator, 0, steps=1))
        first = orjson.loads(text)
        ident, began, question = (
            value.encode()
            for value in (first["record_id"], first["execution"]["started_at"], first["input"]["kwargs"]["question"])
        )
        for number in range(count):
            place = folder / f"{number // 1000:03}"
            place.mkdir(exist_ok=True)
            at = datetime.fromtimestamp(1_770_000_000 + 37 * number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            own = f"{number:032x}"
            asked = f"{own} {generator.text(70)}"
            run = text.replace(ident, own.encode()).replace(began, at.encode()).replace(question, asked.encode())
            (place / f"{own}.json").write_bytes(run)

    return cached_folder(f"small-{count}", write)


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


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
        generator = TextGenerator(f"sessions {count} {size}")
        for number in range(count):
            path = folder / f"project-{number // 100:03}" / f"{number:05}.ccpa-trace.jsonl"
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                file.writelines(data.session_lines(generator, size // 2_500, 2_000))

    return cached_folder(f"sessions-{count}x{size}", write)


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


if __name__ == "__main__":
    _open(sys.argv[1])
