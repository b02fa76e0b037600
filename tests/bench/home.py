"""A home directory full of sessions of Claude Code and Codex: how soon it can be used, how fast it is read through."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import orjson

from tests.bench import data, formats, process, references, screen
from tests.bench.data import TextGenerator, cached_folder
from tests.bench.table import Row, say, timed
from tracetui.live.scan import scan
from tracetui.sources.local import LocalSource
from tracetui.store.store import Store

SESSIONS: Final = 5_000
SIZE: Final = 3_000_000_000
_LARGE: Final = 3
"""Sessions of a size of their own."""
_LARGE_SIZE: Final = 200_000_000
_IMAGES: Final = 20
"""Lines that hold an image."""
_IMAGE_SIZE: Final = 10_000_000
_CALL: Final = 8_000
"""Bytes that a call takes."""
_ROOTS: Final = (".claude", ".codex")
WHY: Final = "a line is decoded into a schema, then its usage, times and calls are added up in Python"


def home(scale: int) -> Path:
    """The folder; sessions, their sizes and the number of images are divided by `scale`."""
    return cached_folder(f"home-{scale}", lambda folder: _fill(folder, SESSIONS // scale, SIZE // scale, scale))


def _fill(folder: Path, sessions: int, size: int, scale: int) -> None:
    generator, chance = TextGenerator("home"), random.Random(sessions)
    images = max(1, _IMAGES // scale)
    rest = size - _LARGE * _LARGE_SIZE // scale - images * _IMAGE_SIZE
    weights = [chance.lognormvariate(0, 1.2) for _ in range(sessions)]
    for number, weight in enumerate(weights):
        calls = max(1, round(rest * weight / sum(weights) / _CALL))
        if number < _LARGE:
            calls = _LARGE_SIZE // scale // _CALL
        drawn = int(number % (sessions // images) == 5)
        thread = f"019cadd4-5620-7001-8000-{number:012x}"
        write = formats.session if number % 2 else formats.rollout
        path = _path(folder, thread, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(write(generator, calls, thread, images=drawn, size=_IMAGE_SIZE))


def _path(folder: Path, thread: str, number: int) -> Path:
    if number % 2:
        return folder / ".claude" / "projects" / f"-home-ada-orchard{number % 40}" / f"{thread}.jsonl"
    day = f"2026/03/{1 + number % 28:02}"
    return folder / ".codex" / "sessions" / day / f"rollout-2026-03-{day[-2:]}T09-15-00-{thread}.jsonl"


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about a home directory; it is removed afterwards, since it is large."""
    needed = 1.2 * SIZE / scale
    if shutil.disk_usage(data.CACHE.parent).free < 2 * needed:
        say(f"no room for {needed / 1e9:.1f} GB in {data.CACHE.parent}: the home directory is not measured")
        return
    folder = home(scale)
    try:
        yield from _rows(folder, max(1, rounds // 3))
    finally:
        shutil.rmtree(folder)


def _rows(folder: Path, rounds: int) -> Iterator[Row]:
    size = sum(path.stat().st_size for path in folder.rglob("*.jsonl")) / 1e6
    shown = min(_first_row(folder) for _ in range(rounds + 1))
    yield timed(f"home of {size:,.0f} MB: first rows in the app", shown * 1000, 3, references.empty_app())
    listed, counted, decoded = (_best(way, folder, rounds) for way in (listing, counting, decoding))
    what, detail = f"  all {listed.result} sessions listed", f"{listed.peak:.0f} MB at most"
    yield timed(what, listed.seconds * 1000, 20, references.empty_app(), detail)
    speeds = f"{size / counted.cpu:,.0f} MB/s; orjson.loads a line: {size / decoded.cpu:,.0f} MB/s"
    yield Row("  all counted, against orjson.loads a line", counted.cpu / decoded.cpu, 2, "×", speeds, why=WHY)
    yield Row("  peak memory, counted", counted.peak, 150, "MB")


def _first_row(folder: Path) -> float:
    """Seconds from the start of the program to the first session on its screen."""
    with screen.tracetui(*(folder / name for name in _ROOTS)) as terminal:
        return terminal.wait_for(screen.A_RUN, timeout=120) - terminal.started


def _best(way: Callable[[str], int], folder: Path, rounds: int) -> process.Took:
    return min((process.in_own_process(way, folder) for _ in range(rounds)), key=lambda took: took.seconds)


# ---- in a process of its own


def listing(folder: str) -> int:
    """List the sessions; how many there are."""
    return _count(folder, deep=False)


def counting(folder: str) -> int:
    """List and count the sessions; how many there are."""
    return _count(folder, deep=True)


def _count(folder: str, *, deep: bool) -> int:
    store = Store()
    store.apply(scan(LocalSource(), [f"{folder}/{name}" for name in _ROOTS], deep=deep), 0.0)
    return len(store.runs)


def decoding(folder: str) -> int:
    """Decode every line; how many there are."""
    count = 0
    for path in Path(folder).rglob("*.jsonl"):
        with path.open("rb") as file:
            count += sum(1 for _ in map(orjson.loads, file))
    return count
