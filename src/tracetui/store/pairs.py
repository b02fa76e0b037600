"""The pairs of a directory: every run that replays, forks, retries, imitates or repeats another, with that one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tracetui.model import RunRef, RunSummary
from tracetui.store.relations import COPY, REPEAT, Relations, has_original


class Pair(msgspec.Struct, frozen=True):
    """A run and its original. `original` is None where that is not among the runs, or not certain."""

    replay: RunSummary
    original: RunSummary | None

    @property
    def relation(self) -> str:
        """What the replay is to its original: ``replay``, ``fork``, ``retry``, ``student``, ``copy``, ``repeat``."""
        if has_original(self.replay):
            return self.replay.relation or "replay"
        told = None if self.original is None else self.original.identity
        return REPEAT if told is None or told != self.replay.identity else COPY

    @property
    def missing(self) -> str | None:
        """The raw id of an original that is not there."""
        return (self.replay.replay_of or self.replay.replay_of_path) if self.original is None else None


def pairs_of(runs: Iterable[RunSummary], *, repeats: bool = False) -> list[Pair]:
    """Every pair among `runs`, replays of one original side by side, in the order in which the runs come.

    With `repeats` also the repetitions of a task, each with the earliest run of it.
    """
    known = {run.ref: run for run in runs}
    relations = Relations(known.values())
    by_original: dict[RunRef | None, list[Pair]] = {}
    for run in known.values():
        there = relations.original(run.ref)
        if has_original(run) or (repeats and there is not None):
            by_original.setdefault(there, []).append(Pair(run, None if there is None else known.get(there)))
    return [pair for there in by_original.values() for pair in there]
