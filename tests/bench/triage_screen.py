"""The triage and the filter as people meet them: from `T` to the queue, from a character typed to the list."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench import data, references, screen
from tests.bench.screen import press
from tests.bench.table import Reference, Row, median, timed
from tests.bench.triage import comprehension, measured, summaries
from tests.night import CAUSES, Night
from tracetui.analysis.cause import digests_of
from tracetui.analysis.triage import QueryContext
from tracetui.model import RunSummary
from tracetui.store import query
from tracetui.store.judgement import CauseRef, Verdict
from tracetui.store.sidecar import Sidecar

FAILED: Final = 10
"""One run in so many."""
_NOW: Final = 1_790_000_000.0


def night(count: int) -> Path:
    """A folder of so many small runs, of which one in ten failed, of twelve causes."""

    def write(folder: Path) -> None:
        Night(folder).fill(count // FAILED, count - count // FAILED)

    return data.cached_folder(f"night-{count}", write)


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about the triage; the number of runs is divided by `scale`."""
    yield from _opened(10_000 // scale, rounds)
    yield from _asked(100_000 // scale, rounds)


def _opened(count: int, rounds: int) -> Iterator[Row]:
    """From `T` to the painted queue, all counted before; then from one cause to the next."""
    folder, times, downs = night(count), [], []
    pattern = rf"0 of {len(CAUSES)} causes reviewed(?:.*\n)+.*\bruns +lost"
    for _ in range(rounds):
        with screen.tracetui(folder) as terminal:
            terminal.wait_for(screen.A_RUN, timeout=60)
            terminal.wait_for(screen.LOADING, gone=True, timeout=180)
            terminal.wait_quiet(0.5)
            at = terminal.send("T")
            times.append((terminal.wait_for(pattern) - at) * 1000)
            terminal.wait_quiet(0.8)
            downs += [press(terminal, "down", quiet=0.1) for _ in range(4)]
    what = f"T on {count} runs, {count // FAILED} failed: the queue"
    yield timed(what, median(times), 120, references.key(), "median, from the key")
    yield screen.p95_row("  down in the queue, cause and failure following", downs, 24)


def _asked(count: int, rounds: int) -> Iterator[Row]:
    """Queries about verdicts with a file that holds some, and what typing takes."""
    runs = summaries(count)
    floor = comprehension(runs, rounds)
    with tempfile.TemporaryDirectory() as folder:
        sidecar = Sidecar(Path(folder))
        digests = [digest for run in runs[:2_000] for digest in digests_of(run)]
        for number, digest in enumerate(dict.fromkeys(digests)):
            if number < 20:
                sidecar.judge(CauseRef(digest, f"F-{digest[:4]}", "one of the night"), Verdict.KNOWN)
        for run in runs[3:203:10]:
            sidecar.judge(run, Verdict.REAL)
        known = QueryContext(sidecar, lambda: runs)
        columns: query.Columns[RunSummary] = query.Columns()
        for text in ("verdict:none", "verdict:known", "status:error verdict:none timed"):
            grouping = query.for_runs(text, known, now=_NOW)
            first = measured(lambda grouping=grouping: grouping.select(runs), rounds)  # type: ignore[misc]
            grouping.select(runs, columns)
            ms = measured(lambda grouping=grouping: grouping.select(runs, columns), rounds)  # type: ignore[misc]
            yield timed(f"{count} runs: {text}", ms, 16, floor, f"{first:.0f} ms when nothing is known yet")
        yield _first_word(runs, rounds, floor)
        for text in ("agent:res", "verdict:", "tool:", "res"):
            ms = measured(
                lambda text=text: query.complete(text, len(text), query.RUN_KEYS, runs, known),  # type: ignore[misc]
                rounds,
            )
            yield timed(f"{count} runs: completions of `{text}`", ms, 16, floor)


def _first_word(runs: list[RunSummary], rounds: int, floor: Reference) -> Row:
    """The first word after `f`, and the longest step of what is found out ahead while nobody types yet."""
    word, longest, times = query.for_runs("timed", now=_NOW), 0.0, []
    for _ in range(rounds):
        columns: query.Columns[RunSummary] = query.Columns()
        ahead, gone = columns.ahead("", query.RUN_KEYS.hay, runs), False
        while not gone:
            began = time.process_time()
            gone = next(ahead, ahead) is not None
            longest = max(longest, (time.process_time() - began) * 1000)
        began = time.process_time()
        word.select(runs, columns)
        times.append((time.process_time() - began) * 1000)
    detail = f"steps ahead of it {longest:.0f} ms at most"
    return timed(f"{len(runs)} runs: the first word after f", median(times), 16, floor, detail)
