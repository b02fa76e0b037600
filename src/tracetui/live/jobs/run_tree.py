"""The job that reads the trials of a task and merges them into a run tree."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from tracetui.analysis.fork_arguments import StepRef, fork_arguments
from tracetui.analysis.run_tree import RunTree, run_tree
from tracetui.analysis.tasks import Trial
from tracetui.live.jobs.aggregate import read_steps
from tracetui.live.jobs.runner import Job, Step, by_file
from tracetui.live.load import FileCaches
from tracetui.model import Run, RunRef
from tracetui.redact import Redactor
from tracetui.sources.base import Source

MAX_TRIALS: Final = 200
"""Trials that a tree reads."""


class TreeResult(msgspec.Struct, frozen=True, eq=False):
    """A run tree and the texts that it needs beside it."""

    tree: RunTree
    arguments: Mapping[StepRef, str]
    """Of the first steps of branches (`tracetui.analysis.fork_arguments`)."""
    texts: bool
    """Whether model answers and messages are steps."""
    left_out: int = 0
    """Trials beyond `MAX_TRIALS`, which were not read."""


def run_tree_job(
    trials: Sequence[Trial],
    *,
    texts: bool = False,
    loaded: Mapping[RunRef, Run] = MappingProxyType({}),
    redactor: Redactor | None = None,
) -> Job:
    """Read these trials, except `loaded` ones, and merge them; `JobProgress.result` is a `TreeResult` at the end.

    `JobProgress.new` has a `Problem` for each unreadable run. Bodies are masked by `redactor`.
    """
    chosen = trials[:MAX_TRIALS]
    made: TreeResult | None = None

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal made
        caches, runs = FileCaches(), dict(loaded)
        for ref in by_file([trial.run.ref for trial in chosen]):
            if ref not in runs:
                run = yield from read_steps(source, ref, caches.for_run(ref), redactor)
                if run is not None:
                    runs[ref] = run
            yield Step(done=1)
        tree = run_tree(chosen, runs.get, texts=texts)
        yield Step()
        made = TreeResult(tree, fork_arguments(tree), texts, len(trials) - len(chosen))

    return Job("run tree", len(chosen), work, lambda: made)
