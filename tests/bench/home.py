"""A home directory full of sessions of Claude Code and Codex: how soon it can be used, how fast it is read through.

``python -m tests.bench.home WAY FOLDER`` does one thing in a process of its own and prints seconds and peak memory.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from tests.bench import data, formats, references, screen
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
_RUN: Final = r"orchard"
_BLOCK: Final = 1 << 20


class Took(NamedTuple):
    """What one thing took: seconds, most memory (MB) and how many there were."""

    seconds: float
    cpu: float
    peak: float
    sessions: int


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
    what = f"home of {size:,.0f} MB"
    seconds = min(_first_row(folder) for _ in range(rounds + 1))
    listed, counted, decoded, read, cold = (
        _best(way, folder, rounds) for way in ("list", "count", "decode", "read", "cold")
    )
    speeds = ", ".join(
        f"{name} {size / passes.seconds:,.0f} MB/s"
        for name, passes in (
            ("counted", counted),
            ("orjson.loads a line", decoded),
            ("read", read),
            ("read cold", cold),
        )
    )
    yield timed(f"{what}: first rows in the app", seconds * 1000, 3, references.empty_app())
    beside = references.empty_app()
    detail = f"{listed.peak:.0f} MB at most"
    yield timed(f"  all {listed.sessions} sessions listed", listed.seconds * 1000, 20, beside, detail)
    yield Row("  all counted, against orjson.loads a line", counted.cpu / decoded.cpu, 2, "×", speeds)
    yield Row("  all counted, against reading from the disk", counted.seconds / cold.seconds, 2, "×", "wall time")
    yield Row(
        "  peak memory, counted", counted.peak, 150, "MB", f"without a session: {_did('none', folder).peak:.0f} MB"
    )


def _first_row(folder: Path) -> float:
    """Seconds from the start of the program to the first session on its screen."""
    with screen.tracetui(*(folder / name for name in _ROOTS)) as terminal:
        return terminal.wait_for(_RUN, timeout=120) - terminal.started


def _best(way: str, folder: Path, rounds: int) -> Took:
    return min((_did(way, folder) for _ in range(rounds)), key=lambda took: took.seconds)


def _did(way: str, folder: Path) -> Took:
    command = [sys.executable, "-m", "tests.bench.home", way, str(folder)]
    return Took(*json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout))


# ---- in a process of its own


def _count(folder: Path, *, deep: bool) -> int:
    store = Store()
    roots = [str(folder / name) for name in _ROOTS]
    store.apply(scan(LocalSource(), roots, deep=deep), 0.0)
    return len(store.runs)


def _decode(folder: Path) -> int:
    count = 0
    for path in folder.rglob("*.jsonl"):
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
                count += 1
    return count


def _read(folder: Path, *, cold: bool = False) -> int:
    """Bytes read, as ``cat`` does; `cold`: from the disk."""
    buffer, total = bytearray(_BLOCK), 0
    for path in folder.rglob("*.jsonl"):
        with path.open("rb", buffering=0) as file:
            if cold:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while size := file.readinto(buffer):
                total += size
    return total


WAYS: Final[dict[str, Callable[[Path], Any]]] = {
    "list": lambda folder: _count(folder, deep=False),
    "count": lambda folder: _count(folder, deep=True),
    "decode": _decode,
    "read": _read,
    "cold": lambda folder: _read(folder, cold=True),
    "none": lambda folder: 0,
}


def main(way: str, folder: Path) -> None:
    """Do it, and print what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = WAYS[way](folder)
    took = Took(
        time.perf_counter() - wall,
        time.process_time() - cpu,
        peak(),
        count,
    )
    sys.stdout.write(json.dumps(took))


def peak() -> float:
    """Most memory that this process held, in MB: what its parent held before does not count."""
    match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
