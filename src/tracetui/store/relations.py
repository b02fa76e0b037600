"""Relations among runs: replays and their originals, repetitions of a task, parents and children.

A trace refers to another run by a raw id, and ids repeat. Candidates are searched in the same file, then in the same
folder, then everywhere; if several match at one level, the reference stays unresolved.

Runs of one task (`RunSummary.task_key`) without a recorded original are repetitions of the earliest of them. Runs with
the same `RunSummary.identity` are one run stored in several files: one counts, the others are copies. The parts of a
trace that was split across files are one run, and each file shows its own spans.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from tracetui.model import RunRef, RunSummary, Status, StatusSource, TaskKey

REPEAT: Final = "repeat"
"""Relation of a run to the earliest run of the same task."""
COPY: Final = "copy"
"""Relation of a run to the same run in another file."""
MAX_REPEATS: Final = 1_000
"""Maximum repetitions of a task to relate, earliest first."""


class Relations:
    """Relations among runs with distinct references. Queries by reference cost O(1), whatever the ids are (cycles,
    duplicates).
    """

    def __init__(self, runs: Iterable[RunSummary]) -> None:
        self._all = list(runs)
        self._tied = {run.ref: run for run in self._all if run.parent is not None or has_original(run)}
        tied = self._tied.values()
        self._by_path: dict[str, list[RunSummary]] = defaultdict(list)
        paths = {run.replay_of_path for run in tied}
        for run in self._all if paths != {None} else ():
            if run.ref.path in paths:
                self._by_path[run.ref.path].append(run)
        self._by_id = _index_ids(self._all, {one for run in tied for one in (run.replay_of, run.parent)})
        self._originals = {run.ref: self._original(run) for run in tied}
        self.inherited_tasks = _inherited_tasks(self._all, self._originals)
        """The tasks of replays, forks and retries without a named one: those of their originals."""
        self._parents = {run.ref: self._named(run.ref, run.parent) for run in tied}
        self._replays = _inverse(self._originals)
        self._copies = copies_of(self._all)
        self._duplicates = _inverse(dict(self._copies))
        self._traces = split_traces(self._all)
        self._parts = {ref: refs for refs in self._traces.values() for ref in refs}
        others = self._copies.keys() | {run.ref for run in tied if has_original(run)}
        self._repeats = _repetitions(run for run in self._all if run.ref not in others)
        self._firsts = {ref: first for first, later in self._repeats.items() for ref in later}
        self._children = _inverse(self._parents)

    def original(self, ref: RunRef) -> RunRef | None:
        """The original of a replay, fork, retry, copy or repetition; None if missing or ambiguous."""
        return self._originals.get(ref) or self._copies.get(ref) or self._firsts.get(ref)

    def relation(self, ref: RunRef) -> str | None:
        """The relation of `ref` to its original: as recorded, `COPY` or `REPEAT`; None without one."""
        run = self._tied.get(ref)
        if run is not None and has_original(run):
            return run.relation or "replay"
        return COPY if ref in self._copies else REPEAT if ref in self._firsts else None

    def replays(self, ref: RunRef) -> list[RunRef]:
        """The recorded replays, forks and retries of `ref`."""
        return self._replays.get(ref, [])

    def repeats(self, ref: RunRef) -> list[RunRef]:
        """The later runs of the task of `ref`, in order; empty unless `ref` is the earliest."""
        return self._repeats.get(ref, [])

    def variants(self, ref: RunRef) -> list[RunRef]:
        """All runs with the original `ref`: replays, copies, repetitions."""
        return self.replays(ref) + self._duplicates.get(ref, []) + self.repeats(ref)

    def task(self, run: RunSummary) -> TaskKey | None:
        """The task that a run did: a replay, fork or retry without a named one did that of its original."""
        return run.task_key if run.task is not None else self.inherited_tasks.get(run.ref) or run.task_key

    def root(self, ref: RunRef) -> RunRef | None:
        """The run that `ref` and its originals go back to, through any number of recorded replays, forks and retries;
        `ref` itself if it has only replays, None if it has neither.
        """
        seen = {ref}
        while (original := self._originals.get(ref)) is not None and original not in seen:
            seen.add(original)
            ref = original
        ref = self._copies.get(ref, ref)
        return ref if len(seen) > 1 or self._replays.get(ref) else None

    def parts(self, ref: RunRef) -> Sequence[RunRef]:
        """All parts of the split trace of `ref`, the counted one first; else empty."""
        return self._parts.get(ref, ())

    def parent(self, ref: RunRef) -> RunRef | None:
        """The parent of `ref`."""
        return self._parents.get(ref)

    def children(self, ref: RunRef) -> list[RunRef]:
        """The child runs of `ref`."""
        return self._children.get(ref, [])

    def named(self, ref: RunRef, wanted: str) -> RunRef | None:
        """Resolve the raw id `wanted` in the context of `ref`; None if missing or ambiguous."""
        if wanted not in self._by_id:
            self._by_id |= _index_ids(self._all, {wanted})
        return self._named(ref, wanted)

    def replay_addresses(self) -> dict[RunRef, str | None]:
        """`replay_of_address` of every run: the address of its recorded original."""
        found = ((run.ref, self._originals.get(run.ref)) for run in self._all)
        return {ref: None if original is None else original.address for ref, original in found}

    def _original(self, run: RunSummary) -> RunRef | None:
        if run.replay_of_path is None:
            return self._named(run.ref, run.replay_of)
        there = [other for other in self._by_path.get(run.replay_of_path, ()) if other.ref != run.ref]
        if len(there) > 1:
            there = [other for other in there if other.id == run.replay_of]
        return there[0].ref if len(there) == 1 else None

    def _named(self, ref: RunRef, wanted: str | None) -> RunRef | None:
        if wanted is None:
            return None
        for place in _search_levels(ref.path):
            there = [other for other in self._by_id[wanted].get(place, ())[:3] if other != ref]
            if there:
                return there[0] if len(there) == 1 else None
        return None


IdIndex = dict[str, dict[tuple[int, str], list[RunRef]]]
"""By id, the runs with that id at each search level."""


def _index_ids(runs: Iterable[RunSummary], ids: Collection[str | None]) -> IdIndex:
    """Index the runs with one of these ids."""
    found: IdIndex = {wanted: defaultdict(list) for wanted in ids if wanted is not None}
    for run in runs if found else ():
        if run.id in found:
            for place in _search_levels(run.ref.path):
                found[run.id][place].append(run.ref)
    return found


def _search_levels(path: str) -> tuple[tuple[int, str], ...]:
    """Search levels of a path, narrowest first: file, folder, everything."""
    return (0, path), (1, os.path.dirname(path)), (2, "")


def has_original(run: RunSummary) -> bool:
    """Whether the run names an original."""
    head = run.head
    return head.replay_of is not None or head.replay_of_path is not None


def inherits_task(run: RunSummary) -> bool:
    """Whether a run did the task of its original: it names an original and no task."""
    return run.task is None and has_original(run)


def _inherited_tasks(runs: Iterable[RunSummary], originals: dict[RunRef, RunRef | None]) -> dict[RunRef, TaskKey]:
    """The tasks of the runs that inherit one, through any number of replays; originals in a circle have none to give.

    Follows every link once.
    """
    named = {ref for ref in originals.values() if ref is not None}
    by_ref = {run.ref: run for run in runs if run.ref in originals or run.ref in named} if named else {}
    found: dict[RunRef, TaskKey | None] = {}
    for start in originals if named else ():
        path, run = dict[RunRef, None](), by_ref[start]
        while run.ref not in found and run.ref not in path and inherits_task(run):
            original = originals.get(run.ref)
            if original is None:
                break
            path[run.ref] = None
            run = by_ref[original]
        task = None if run.ref in path else found.get(run.ref, run.task_key)
        found |= dict.fromkeys(path, task)
    return {ref: task for ref, task in found.items() if task is not None}


def copies_of(runs: Iterable[RunSummary]) -> dict[RunRef, RunRef]:
    """Map copies to the run that counts, independent of the order of `runs`.

    A file of many runs (database, log) takes precedence over a file of one run, then the first by path.
    """
    by_identity: dict[str, list[RunSummary]] = {}
    for run in runs:
        if (identity := run.head.identity) is not None:
            by_identity.setdefault(identity, []).append(run)
    found = (sorted(same, key=_where) for same in by_identity.values() if len(same) > 1)
    return {run.ref: first.ref for first, *others in found for run in others}


def has_end(run: RunSummary) -> bool:
    """Whether the trace records the end of the run. Of a split trace, only the part with the root span does."""
    return run.status_source is not StatusSource.DERIVED or run.status not in (Status.UNKNOWN, Status.RUNNING)


def split_traces(runs: Iterable[RunSummary]) -> dict[str, list[RunRef]]:
    """By id, the parts of every trace that is split across files (by rotation, or by process).

    The ended part comes first and counts; without one, the first by path. Several ended parts are separate runs.
    """
    found: dict[str, list[RunSummary]] = {}
    candidates = [run for run in runs if run.split]
    without_end = {run.id for run in candidates if not has_end(run)}
    for run in candidates if without_end else ():
        if run.id in without_end:
            found.setdefault(run.id, []).append(run)
    several = {key: sorted(same, key=_ended_first) for key, same in found.items() if len(same) > 1}
    return {key: [run.ref for run in same if run is same[0] or not has_end(run)] for key, same in several.items()}


def uncounted_parts(runs: Iterable[RunSummary]) -> set[RunRef]:
    """The parts of split traces that don't count."""
    return {ref for refs in split_traces(runs).values() for ref in refs[1:]}


def counted(runs: Collection[RunSummary]) -> list[RunSummary]:
    """The runs that sentences count: those that no other run started, a split trace once."""
    parts = uncounted_parts(runs)
    return [run for run in runs if run.parent is None and run.ref not in parts]


def _ended_first(run: RunSummary) -> tuple[bool, str]:
    return not has_end(run), run.ref.path


def _where(run: RunSummary) -> tuple[bool, str, str]:
    return run.ref.key is None, run.ref.path, run.ref.key or ""


def _repetitions(runs: Iterable[RunSummary]) -> dict[RunRef, list[RunRef]]:
    """By earliest run, the later ones of the same task among runs that name no original, independent of their order."""
    by_task: dict[TaskKey, list[RunSummary]] = {}
    for run in runs:
        if (task := run.task_key) is not None:
            by_task.setdefault(task, []).append(run)
    found = (sorted(same, key=_when) for same in by_task.values() if len(same) > 1)
    return {first.ref: [run.ref for run in later[:MAX_REPEATS]] for first, *later in found}


def _when(run: RunSummary) -> tuple[bool, float, str, str]:
    """Sort key of repetitions: start time, runs without one last."""
    return run.started_at is None, run.started_at or 0.0, run.ref.path, run.ref.key or ""


def _inverse(links: dict[RunRef, RunRef | None]) -> dict[RunRef, list[RunRef]]:
    found: dict[RunRef, list[RunRef]] = defaultdict(list)
    for ref, target in links.items():
        if target is not None:
            found[target].append(ref)
    return found


class Pair(msgspec.Struct, frozen=True):
    """A run and its original; `original` is None if missing or ambiguous."""

    replay: RunSummary
    original: RunSummary | None

    @property
    def relation(self) -> str:
        """The relation to the original: ``replay``, ``fork``, ``retry``, ``student``, ``copy``, ``repeat``."""
        if has_original(self.replay):
            return self.replay.relation or "replay"
        identity = None if self.original is None else self.original.identity
        return REPEAT if identity is None or identity != self.replay.identity else COPY

    @property
    def missing(self) -> str | None:
        """The raw id of a missing original."""
        return (self.replay.replay_of or self.replay.replay_of_path) if self.original is None else None


def pairs_of(runs: Iterable[RunSummary], *, repeats: bool = False) -> list[Pair]:
    """All pairs among `runs`, in the order of the runs, grouped by original.

    With `repeats`, also repetitions of a task with its earliest run.
    """
    by_ref = {run.ref: run for run in runs}
    relations = Relations(by_ref.values())
    by_original: dict[RunRef | None, list[Pair]] = {}
    for run in by_ref.values():
        original = relations.original(run.ref)
        if has_original(run) or (repeats and original is not None):
            by_original.setdefault(original, []).append(Pair(run, None if original is None else by_ref.get(original)))
    return [pair for original in by_original.values() for pair in original]
