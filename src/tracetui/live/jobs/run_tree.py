"""The job that reads the trials of a task and merges them into a run tree."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from tracetui.analysis.fork_arguments import StepRef, fork_arguments
from tracetui.analysis.run_tree import RunTree, run_tree
from tracetui.analysis.tasks import Trial
from tracetui.live.jobs.aggregate import read_steps
from tracetui.live.jobs.runner import Job, Step, by_file
from tracetui.live.load import FileCaches
from tracetui.model import Run, RunRef
from tracetui.model.masked import masked_bodies
from tracetui.redact import Redactor
from tracetui.sources.base import Source

MAX_TRIALS: Final = 200
"""Trials that a tree reads."""


class TreeResult(msgspec.Struct, frozen=True, eq=False):
    """A run tree and the texts that it needs beside it."""

    tree: RunTree
    arguments: Mapping[StepRef, str]
    """Of the first steps of branches (`tracetui.analysis.fork_arguments`)."""
    decisive_at: tuple[int | None, ...]
    """For each fork, how many trials would be decisive (`RunTree.trials_to_decide`)."""
    numbers: tuple[int, ...]
    """For each run of the tree, the number of its trial among all trials, from 1."""
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

    `JobProgress.new` has a `Problem` for each unreadable run. The steps are compared exactly; `redactor` masks the
    arguments that are shown.
    """
    chosen = trials[:MAX_TRIALS]
    made: TreeResult | None = None

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal made
        caches, runs = FileCaches(), dict(loaded)
        for ref in by_file([trial.run.ref for trial in chosen]):
            if ref not in runs:
                run = yield from read_steps(source, ref, caches.for_run(ref))
                if run is not None:
                    runs[ref] = run
            yield Step(done=1)
        tree = run_tree(chosen, runs.get, texts=texts)
        yield Step()
        decisive_at = []
        for fork in tree.forks:
            decisive_at.append(tree.trials_to_decide(fork))
            yield Step()
        arguments = fork_arguments(_masked(tree, redactor))
        numbers = tuple(i for i, trial in enumerate(chosen, 1) if trial.run.ref in runs)
        made = TreeResult(tree, arguments, tuple(decisive_at), numbers, texts, len(trials) - len(chosen))

    return Job("run tree", len(chosen), work, lambda: made)


def _masked(tree: RunTree, redactor: Redactor | None) -> RunTree:
    """The tree with masked bodies."""
    if redactor is None:
        return tree
    return replace(tree, runs=tuple(masked_bodies(run, redactor, run.body) for run in tree.runs))
