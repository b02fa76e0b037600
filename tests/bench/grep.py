"""Full-text search beside ``grep -r``: wall-clock time of whole searches over warm files, taking turns."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from tests.bench import data, references
from tests.bench.table import Row, median, say, timed
from tracetui.analysis.search import Hit, Needle
from tracetui.live.search import Outcome, grep
from tracetui.sources.local import LocalSource

PROMISED = 2.0
"""At least half the speed of grep."""
NEEDLE = "needle in no haystack"


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promise about full-text search; sizes are divided by `scale`."""
    if shutil.which("grep") is None:
        say("skipped full-text search: there is no grep here to compare with")
        return
    many = data.paprika_runs(10_000 // scale, size=20_000)
    large = data.paprika_runs(200 // scale, size=2_000_000)
    count = 2_000 // scale
    folders = {
        f"{10_000 // scale} files of 20 kB": many,
        f"{200 // scale} files of 2 MB": large,
        f"{count} files of 20 kB, full of escapes": data.cached_folder(
            f"escapes-{count}", lambda folder: _full_of_escapes(folder, count)
        ),
    }
    for what, folder in folders.items():
        ours, theirs = _compared(folder, rounds)
        detail = f"{ours:.0f} ms; grep -rF: {theirs:.0f} ms"
        yield Row(f"grep {what}", ours / theirs, PROMISED, "×", detail)
    yield _first_hit(many, rounds)


def _full_of_escapes(folder: Path, count: int) -> None:
    """What is scanned twice: quotes and line breaks might hide escaped letters."""
    generator = data.TextGenerator("escapes")
    for number in range(count):
        texts = ["\n".join(f'say "{generator.text(60)}"' for _ in range(20)) for _ in range(14)]
        (folder / f"{number}.json").write_bytes(orjson.dumps({"texts": texts}))


def _compared(folder: Path, rounds: int) -> tuple[float, float]:
    """Median milliseconds of ours and of grep; the first round only warms up."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(rounds + 1):
        for times, search in ((ours, _ours), (theirs, _grep)):
            began = time.perf_counter()
            search(folder)
            if number:
                times.append((time.perf_counter() - began) * 1000)
    return median(ours), median(theirs)


def _ours(folder: Path) -> None:
    assert {*grep(LocalSource(), [str(folder)], Needle(NEEDLE))} == {Outcome.PASSED}


def _grep(folder: Path) -> None:
    subprocess.run(["grep", "-rF", NEEDLE, str(folder)], stdout=subprocess.DEVNULL, check=False)


def _first_hit(folder: Path, rounds: int) -> Row:
    """How long until there is something to see, where every tenth run has it."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        items = grep(LocalSource(), [str(folder)], Needle("search timed out after 30s"))
        next(item for item in items if isinstance(item, Hit))
        times.append((time.perf_counter() - began) * 1000)
    return timed("grep, until the first of many hits", median(times), 50, references.decoding())
