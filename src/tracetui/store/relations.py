"""How runs belong together: a replay and its original, a run and those that it started.

A trace names another run by a raw id, and ids repeat. The run meant is looked for where it is likeliest: in the same
file, then in the same folder, then anywhere. Where several runs of one such place have the id, none is named.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable

from tracetui.model import RunRef, RunSummary


class Relations:
    """Relations among the given runs. Every answer costs O(1), whatever the ids are (cycles, repeated, their own)."""

    def __init__(self, runs: Iterable[RunSummary]) -> None:
        self._runs = {run.ref: run for run in runs}
        self._by_path: dict[str, list[RunSummary]] = defaultdict(list)
        self._by_id: dict[str, dict[tuple[int, str], list[RunRef]]] = defaultdict(lambda: defaultdict(list))
        for run in self._runs.values():
            self._by_path[run.ref.path].append(run)
            for place in _places(run.ref.path):
                self._by_id[run.id][place].append(run.ref)
        self._originals = {run.ref: self._original(run) for run in self._runs.values()}
        self._parents = {run.ref: self._named(run, run.parent) for run in self._runs.values()}
        self._replays = _inverse(self._originals)
        self._children = _inverse(self._parents)

    def original(self, ref: RunRef) -> RunRef | None:
        """The run that `ref` replays, forks or retries; None if it is not among the runs, or not certain."""
        return self._originals.get(ref)

    def replays(self, ref: RunRef) -> list[RunRef]:
        """The runs that replay, fork or retry `ref`."""
        return self._replays.get(ref, [])

    def parent(self, ref: RunRef) -> RunRef | None:
        """The run that started `ref`."""
        return self._parents.get(ref)

    def children(self, ref: RunRef) -> list[RunRef]:
        """The runs that `ref` started."""
        return self._children.get(ref, [])

    def named(self, ref: RunRef, wanted: str) -> RunRef | None:
        """The run that `ref` means by the raw id `wanted`, None if there is none or it is not certain."""
        run = self._runs.get(ref)
        return None if run is None else self._named(run, wanted)

    def replay_addresses(self) -> dict[RunRef, str | None]:
        """`replay_of_address` of every run."""
        return {ref: None if found is None else found.address for ref, found in self._originals.items()}

    def _original(self, run: RunSummary) -> RunRef | None:
        if run.replay_of_path is None:
            return self._named(run, run.replay_of)
        there = [other for other in self._by_path.get(run.replay_of_path, ()) if other.ref != run.ref]
        if len(there) > 1:
            there = [other for other in there if other.id == run.replay_of]
        return there[0].ref if len(there) == 1 else None

    def _named(self, run: RunSummary, wanted: str | None) -> RunRef | None:
        if wanted is None or wanted not in self._by_id:
            return None
        for place in _places(run.ref.path):
            there = [ref for ref in self._by_id[wanted].get(place, ())[:3] if ref != run.ref]
            if there:
                return there[0] if len(there) == 1 else None
        return None


def _places(path: str) -> tuple[tuple[int, str], ...]:
    """Where a run is, from the nearest to the widest: its file, its folder, anywhere."""
    return (0, path), (1, os.path.dirname(path)), (2, "")


def _inverse(links: dict[RunRef, RunRef | None]) -> dict[RunRef, list[RunRef]]:
    found: dict[RunRef, list[RunRef]] = defaultdict(list)
    for ref, target in links.items():
        if target is not None:
            found[target].append(ref)
    return found
