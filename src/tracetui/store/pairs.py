"""The pairs of a directory: every run that replays, forks or retries another, or imitates it, with its original."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tracetui.model import RunRef, RunSummary
from tracetui.store.relations import Relations


class Pair(msgspec.Struct, frozen=True):
    """A run and its original. `original` is None where that is not among the runs, or not certain."""

    replay: RunSummary
    original: RunSummary | None

    @property
    def relation(self) -> str:
        """What the replay is to its original: ``replay``, ``fork``, ``retry``, ``student``."""
        return self.replay.relation or "replay"

    @property
    def missing(self) -> str | None:
        """The raw id of an original that is not there."""
        return (self.replay.replay_of or self.replay.replay_of_path) if self.original is None else None


def has_original(run: RunSummary) -> bool:
    """Whether a run says that there is an original of it."""
    return run.replay_of is not None or run.replay_of_path is not None


def pairs_of(runs: Iterable[RunSummary], relations: Relations | None = None) -> list[Pair]:
    """Every pair among `runs`, replays of one original side by side, in the order in which the runs come."""
    known = {run.ref: run for run in runs}
    relations = relations or Relations(known.values())
    by_original: dict[RunRef | None, list[Pair]] = {}
    for run in known.values():
        if has_original(run):
            there = relations.original(run.ref)
            by_original.setdefault(there, []).append(Pair(run, None if there is None else known.get(there)))
    return [pair for there in by_original.values() for pair in there]


def replays_of(original: RunRef, runs: Iterable[RunSummary], relations: Relations) -> list[Pair]:
    """The pairs of one original."""
    known = {run.ref: run for run in runs}
    return [Pair(known[ref], known.get(original)) for ref in relations.replays(original) if ref in known]
