"""Effects of many runs: read each run once, derive its effects, and forget it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracetui.analysis.effects import RunEffects, run_effects
from tracetui.live.load import FileCaches, read_run
from tracetui.model import Problem, RunSummary
from tracetui.sources.base import Source
from tracetui.store.relations import copies_of


def effects_of_runs(
    source: Source, runs: Sequence[RunSummary], problems: list[Problem]
) -> Iterator[tuple[RunSummary, RunEffects]]:
    """Yield the effects of the runs, oldest first; copies of a run are skipped. Adds what can't be read to `problems`.

    Raises `LinkLost`.
    """
    copies, caches = copies_of(runs), FileCaches()
    known = set(problems)
    for summary in sorted(runs, key=lambda run: (run.started_at is None, run.started_at or 0.0, run.ref)):
        if summary.ref in copies:
            continue
        run = read_run(source, summary.ref, caches.for_run(summary.ref))
        problems += [problem for problem in run.problems if problem not in known]
        if run.spans or not run.problems:
            yield summary, run_effects(run)
