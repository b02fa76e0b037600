"""Relations among runs: replays and their originals, repetitions of a task, parents and children.

A trace refers to another run by a raw id, and ids repeat. Candidates are searched in the same file, then in the same
folder, then everywhere; if several match at one level, the reference stays unresolved.

Runs of one task (`RunSummary.task_key`) without a recorded original are repetitions of the earliest of them. Runs with
the same `RunSummary.identity` are one run stored in several files: one counts, the others are copies. The parts of a
trace that was split across files are one run, and each file shows its own spans.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from math import isnan
from typing import Any, Final, Generic, TypeVar

import msgspec

from tracetui.model import RunRef, RunSummary, Status, StatusSource, TaskKey

REPEAT: Final = "repeat"
"""Relation of a run to the earliest run of the same task."""
STUDENT: Final = "student"
"""Relation of a session to that of its teacher, which it imitates: no replay of a recording."""
COPY: Final = "copy"
"""Relation of a run to the same run in another file."""
MAX_REPEATS: Final = 1_000
"""Maximum repetitions of a task to relate, earliest first."""


_Key = TypeVar("_Key", bound=Hashable)


class _Groups(Generic[_Key]):
    """References by key, in order. Most keys have one, which takes no list."""

    def __init__(self, order: Callable[[RunRef], Any]) -> None:
        self._order = order
        self._groups: dict[_Key, RunRef | list[RunRef]] = {}
        self._is_sorted = False

    def __contains__(self, key: _Key) -> bool:
        return key in self._groups

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._groups)

    def get(self, key: _Key) -> Sequence[RunRef]:
        """The references of a key. Don't change or keep them."""
        group = self._groups.get(key)
        return group if group.__class__ is list else () if group is None else (group,)  # type: ignore[return-value]

    def position(self, key: _Key, ref: RunRef) -> int | None:
        """The position of a reference; None if the key doesn't have it."""
        group = self.get(key)
        at = bisect_left(group, self._order(ref), key=self._order) if len(group) > 1 else 0
        return at if at < len(group) and group[at] == ref else None

    def add(self, key: _Key, ref: RunRef) -> None:
        """Add a reference. The order counts from the first `sort` on."""
        group = self._groups.setdefault(key, ref)
        if group is ref:
            return
        if not isinstance(group, list):
            group = self._groups[key] = [group]
        if self._is_sorted:
            insort(group, ref, key=self._order)
        else:
            group.append(ref)

    def remove(self, key: _Key, ref: RunRef) -> None:
        """Remove a reference from a list in which its place in the order has not changed."""
        if (at := self.position(key, ref)) is None:
            return
        group = self._groups[key]
        if isinstance(group, list):
            del group[at]
        if group is ref or group == ref or not group:
            del self._groups[key]

    def sort(self) -> None:
        """Sort all, and keep them sorted."""
        self._is_sorted = True
        for group in self._groups.values():
            if isinstance(group, list):
                group.sort(key=self._order)


class Relations:
    """Relations among runs with distinct references. Queries by reference cost the same for any number of runs,
    whatever the ids are (cycles, duplicates).

    A change costs as much as the runs that it affects: those that refer to the id of the run. Not thread-safe.
    """

    def __init__(self, runs: Iterable[RunSummary] | dict[RunRef, RunSummary]) -> None:
        """`runs`: a dict may change later, with `remove` before and `add` after each change of `relation_key`."""
        self._runs = runs if isinstance(runs, dict) else {run.ref: run for run in runs}
        self._formats: dict[str, None] = {}
        self._keyed = _Groups[str](place_of)
        """By path, the runs of files with several; others are found by path and format."""
        self._ids: _Groups[int] | None = None
        """Runs by the hash of their id; made when a new run refers to another."""
        self._named_ids: set[str] = set()
        """Ids that runs refer to."""
        self._new_ids: set[str] = set()
        """Those of them that `_candidates` doesn't have yet."""
        self._candidates = _Groups[tuple[str, int, str]](place_of)
        """Runs with an id that runs refer to, by the id and each search level."""
        self._referring = _Groups[str](place_of)
        """Runs that refer to another, by its id."""
        self._referring_by_path = _Groups[str](place_of)
        """Runs that refer to another, by its path."""
        self._unsettled: dict[RunRef, None] = {}
        """Referring runs that may have another original or parent now."""
        self._originals: dict[RunRef, RunRef | None] = {}
        """Of all runs that name one."""
        self._parents: dict[RunRef, RunRef | None] = {}
        """Of all runs that name one."""
        self._replays = _Groups[RunRef](self._when)
        self._children = _Groups[RunRef](self._when)
        self._same = _Groups[str](place_of)
        """By identity; the first one counts, the others are its copies."""
        self._split = _Groups[str](place_of)
        """Runs that may be parts of a trace, by its id."""
        self._tasks = _Groups[TaskKey | str](self._when)
        """Runs that name no original and are no copies, by task."""
        self._inherited_tasks: dict[RunRef, TaskKey] | None = None
        for run in self._runs.values():
            self._insert(run)
        self._index(self._runs.values())
        self._settle()
        for groups in (
            self._keyed, self._candidates, self._referring, self._referring_by_path, self._replays, self._children,
            self._same, self._split, self._tasks,
        ):  # fmt: skip
            groups.sort()
        for identity in self._same:
            self._enter_task(self._same.get(identity)[0])

    # ---- changes

    def add(self, ref: RunRef) -> None:
        """Add a run that the dict has now."""
        run = self._runs[ref]
        head = run.head
        self._inherited_tasks = None
        if self._ids is not None:
            self._ids.add(hash(head.id), ref)
        if head.id in self._named_ids:
            self._add_candidate(head.id, ref)
        self._unsettle(head.id, ref.path)
        self._insert(run)
        if head.identity is not None:
            first, *others = self._same.get(head.identity)
            if first == ref:
                self._enter_task(ref)
                if others:
                    self._leave_task(others[0])

    def remove(self, ref: RunRef) -> None:
        """Remove a run that the dict still has."""
        run = self._runs[ref]
        head, shared = run.head, run.shared
        self._inherited_tasks = None
        if ref.key is not None or ref.span is not None:
            self._keyed.remove(ref.path, ref)
        if self._ids is not None:
            self._ids.remove(hash(head.id), ref)
        if head.id in self._named_ids:
            for level, place in _search_levels(ref.path):
                self._candidates.remove((head.id, level, place), ref)
        self._unsettle(head.id, ref.path)
        if shared.split:
            self._split.remove(head.id, ref)
        if head.identity is None:
            self._leave_task(ref)
        else:
            was_first = self._same.get(head.identity)[0] == ref
            self._same.remove(head.identity, ref)
            if was_first:
                self._leave_task(ref)
                for first in self._same.get(head.identity)[:1]:
                    self._enter_task(first)
        for links, inverse in ((self._originals, self._replays), (self._parents, self._children)):
            if (target := links.pop(ref, None)) is not None:
                inverse.remove(target, ref)
        for wanted in _referred_ids(run):
            self._referring.remove(wanted, ref)
        if head.replay_of_path is not None:
            self._referring_by_path.remove(head.replay_of_path, ref)
        self._unsettled.pop(ref, None)

    def _insert(self, run: RunSummary) -> None:
        """Add a run, but not to the candidates, and not to its task if it has an identity."""
        ref, head, shared = run.ref, run.head, run.shared
        self._formats[ref.format] = None
        if ref.key is not None or ref.span is not None:
            self._keyed.add(ref.path, ref)
        names_original = head.replay_of is not None or head.replay_of_path is not None
        if names_original or shared.parent is not None:
            self._refer(run, names_original)
        if shared.split:
            self._split.add(head.id, ref)
        if head.identity is not None:
            self._same.add(head.identity, ref)
        elif not names_original and (key := task_of(run)) is not None:
            self._tasks.add(key, ref)

    def _refer(self, run: RunSummary, names_original: bool) -> None:
        """Add a run that refers to another."""
        ref, path = run.ref, run.head.replay_of_path
        if names_original:
            self._originals[ref] = None
        if run.shared.parent is not None:
            self._parents[ref] = None
        for wanted in _referred_ids(run):
            self._referring.add(wanted, ref)
            self._add_reference(wanted)
        if path is not None:
            self._referring_by_path.add(path, ref)
        self._unsettled[ref] = None

    def _enter_task(self, ref: RunRef) -> None:
        if ref not in self._originals and (key := task_of(self._runs[ref])) is not None:
            self._tasks.add(key, ref)

    def _leave_task(self, ref: RunRef) -> None:
        if ref not in self._originals and (key := task_of(self._runs[ref])) is not None:
            self._tasks.remove(key, ref)

    def _unsettle(self, ident: str, path: str) -> None:
        """Note that runs which refer to this id or path may have another original or parent."""
        if ident in self._referring:
            self._unsettled |= dict.fromkeys(self._referring.get(ident))
        if path in self._referring_by_path:
            self._unsettled |= dict.fromkeys(self._referring_by_path.get(path))

    def _add_reference(self, wanted: str) -> None:
        if wanted not in self._named_ids:
            self._new_ids.add(wanted)

    def _index(self, runs: Iterable[RunSummary]) -> None:
        """Add the runs with new ids to the candidates."""
        wanted, self._new_ids = self._new_ids, set()
        self._named_ids |= wanted
        for run in runs if wanted else ():
            if (ident := run.head.id) in wanted:
                self._add_candidate(ident, run.ref)

    def _add_candidate(self, ident: str, ref: RunRef) -> None:
        for level, place in _search_levels(ref.path):
            self._candidates.add((ident, level, place), ref)

    def _settle(self) -> None:
        """Find the originals and parents that may have changed."""
        if self._new_ids:
            if self._ids is None:
                self._ids = _Groups[int](place_of)
                for run in self._runs.values():
                    self._ids.add(hash(run.head.id), run.ref)
                self._ids.sort()
            refs = {ref: None for wanted in self._new_ids for ref in self._ids.get(hash(wanted))}
            self._index([self._runs[ref] for ref in refs])
        unsettled, self._unsettled = self._unsettled, {}
        for ref in unsettled:
            run = self._runs[ref]
            if ref in self._originals:
                _link(self._originals, self._replays, ref, self._find_original(run))
            if ref in self._parents:
                _link(self._parents, self._children, ref, self._named(ref, run.parent))

    # ---- queries

    def original(self, ref: RunRef) -> RunRef | None:
        """The original of a replay, fork, retry, copy or repetition; None if missing or ambiguous."""
        self._settle()
        return self._originals.get(ref) or self._copied(ref) or self._first_of_task(ref)

    def relation(self, ref: RunRef) -> str | None:
        """The relation of `ref` to its original: as recorded, `COPY` or `REPEAT`; None without one."""
        if ref in self._originals:
            return self._runs[ref].relation or "replay"
        return COPY if self._copied(ref) is not None else REPEAT if self._first_of_task(ref) is not None else None

    def replays(self, ref: RunRef) -> list[RunRef]:
        """The recorded replays, forks and retries of `ref`, in the order of their start."""
        self._settle()
        return [*self._replays.get(ref)]

    def repeats(self, ref: RunRef) -> list[RunRef]:
        """The later runs of the task of `ref`, in order; empty unless `ref` is the earliest."""
        group = self._repetitions(ref)
        return [*group[1 : MAX_REPEATS + 1]] if group and group[0] == ref else []

    def variants(self, ref: RunRef) -> list[RunRef]:
        """All runs with the original `ref`: replays, copies, repetitions."""
        same = self._same_as(ref)
        copies = same[1:] if same and same[0] == ref else ()
        return [*self.replays(ref), *copies, *self.repeats(ref)]

    def task(self, run: RunSummary) -> TaskKey | None:
        """The task that a run did: a replay, fork or retry without a named one did that of its original."""
        return run.task_key if run.task is not None else self.inherited_tasks.get(run.ref) or run.task_key

    @property
    def inherited_tasks(self) -> dict[RunRef, TaskKey]:
        """The tasks of replays, forks and retries without a named one: those of their originals."""
        self._settle()
        if self._inherited_tasks is None:
            self._inherited_tasks = _inherited_tasks(self._runs, self._originals)
        return self._inherited_tasks

    def root(self, ref: RunRef) -> RunRef | None:
        """The run that `ref` and its originals go back to, through any number of recorded replays, forks and retries;
        `ref` itself if it has only replays, None if it has neither.
        """
        self._settle()
        seen = {ref}
        while (original := self._originals.get(ref)) is not None and original not in seen:
            seen.add(original)
            ref = original
        ref = self._copied(ref) or ref
        return ref if len(seen) > 1 or ref in self._replays else None

    def parts(self, ref: RunRef) -> Sequence[RunRef]:
        """All parts of the split trace of `ref`, the counted one first; else empty."""
        run = self._runs.get(ref)
        if run is None or not run.shared.split or len(group := self._split.get(run.id)) < 2:
            return ()
        parts = split_traces(self._runs[part] for part in group).get(run.id, ())
        return parts if ref in parts else ()

    def parent(self, ref: RunRef) -> RunRef | None:
        """The parent of `ref`."""
        self._settle()
        return self._parents.get(ref)

    def children(self, ref: RunRef) -> list[RunRef]:
        """The child runs of `ref`, in the order of their start."""
        self._settle()
        return [*self._children.get(ref)]

    def named(self, ref: RunRef, wanted: str) -> RunRef | None:
        """Resolve the raw id `wanted` in the context of `ref`; None if missing or ambiguous."""
        self._add_reference(wanted)
        self._settle()
        return self._named(ref, wanted)

    def replay_addresses(self) -> dict[RunRef, str | None]:
        """`replay_of_address` of every run: the address of its recorded original."""
        self._settle()
        originals = ((ref, self._originals.get(ref)) for ref in self._runs)
        return {ref: None if original is None else original.address for ref, original in originals}

    def _find_original(self, run: RunSummary) -> RunRef | None:
        head, ref = run.head, run.ref
        if head.replay_of_path is None:
            return self._named(ref, head.replay_of)
        alone = (RunRef(name, head.replay_of_path) for name in self._formats)
        there = [
            candidate
            for candidate in (*alone, *self._keyed.get(head.replay_of_path))
            if candidate in self._runs and candidate != ref
        ]
        if len(there) > 1:
            there = [candidate for candidate in there if self._runs[candidate].id == head.replay_of]
        return there[0] if len(there) == 1 else None

    def _named(self, ref: RunRef, wanted: str | None) -> RunRef | None:
        if wanted is None:
            return None
        for level, place in _search_levels(ref.path):
            there = [other for other in self._candidates.get((wanted, level, place))[:3] if other != ref]
            if there:
                return there[0] if len(there) == 1 else None
        return None

    def _same_as(self, ref: RunRef) -> Sequence[RunRef]:
        """The runs with the identity of `ref`; empty if there is no other."""
        run = self._runs.get(ref) if self._same else None
        identity = None if run is None else run.head.identity
        group = () if identity is None else self._same.get(identity)
        return group if len(group) > 1 else ()

    def _copied(self, ref: RunRef) -> RunRef | None:
        """The run of which `ref` is a copy."""
        same = self._same_as(ref)
        return same[0] if same and same[0] != ref else None

    def _repetitions(self, ref: RunRef) -> Sequence[RunRef]:
        """The runs of the task of `ref`, earliest first; empty if there is no other, or it is none of them."""
        run = None if ref in self._originals else self._runs.get(ref)
        if run is None or (key := task_of(run)) is None:
            return ()
        group = self._tasks.get(key)
        return group if len(group) > 1 and self._copied(ref) is None else ()

    def _first_of_task(self, ref: RunRef) -> RunRef | None:
        """The run that `ref` repeats."""
        group = self._repetitions(ref)
        if not group or group[0] == ref:
            return None
        last = group[min(len(group) - 1, MAX_REPEATS)]
        return group[0] if self._when(ref) <= self._when(last) else None

    def _when(self, ref: RunRef) -> tuple[bool, float, tuple[Any, ...]]:
        """Sort key: start time, runs without one last."""
        start = self._runs[ref].started_at
        if start is None or isnan(start):
            return True, 0.0, place_of(ref)
        return False, start, place_of(ref)


def relation_key(run: RunSummary) -> tuple[object, ...]:
    """The fields of a run that decide its relations to others."""
    head, shared = run.head, run.shared
    own = head.id, head.replay_of, head.replay_of_path, head.identity
    return *own, shared.parent, shared.task, shared.split, run.repeats, run.started_at


def _link(links: dict[RunRef, RunRef | None], inverse: _Groups[RunRef], ref: RunRef, target: RunRef | None) -> None:
    before = links[ref]
    if before != target:
        if before is not None:
            inverse.remove(before, ref)
        if target is not None:
            inverse.add(target, ref)
        links[ref] = target


def task_of(run: RunSummary) -> TaskKey | str | None:
    """The key of its task: that of a derived one without an object around it, since most runs have one of their own."""
    task = run.shared.task
    return run.repeats if task is None else TaskKey(task)


def _referred_ids(run: RunSummary) -> set[str]:
    """The ids of other runs that a run refers to; an original with a path is found by that."""
    head, parent = run.head, run.shared.parent
    original = head.replay_of if head.replay_of_path is None else None
    return {run_id for run_id in (original, parent) if run_id is not None}


def _search_levels(path: str) -> tuple[tuple[int, str], ...]:
    """Search levels of a path, narrowest first: file, folder, everything."""
    return (0, path), (1, os.path.dirname(path)), (2, "")


def has_original(run: RunSummary) -> bool:
    """Whether the run names an original."""
    head = run.head
    return head.replay_of is not None or head.replay_of_path is not None


def _inherited_tasks(runs: dict[RunRef, RunSummary], originals: dict[RunRef, RunRef | None]) -> dict[RunRef, TaskKey]:
    """The tasks of the runs that inherit one, through any number of replays; originals in a circle have none to give.

    Follows every link once.
    """
    tasks: dict[RunRef, TaskKey | None] = {}
    for start in originals:
        path, run = dict[RunRef, None](), runs[start]
        while run.ref not in tasks and run.ref not in path and run.task is None and run.ref in originals:
            original = originals[run.ref]
            if original is None:
                break
            path[run.ref] = None
            run = runs[original]
        task = None if run.ref in path else tasks.get(run.ref, run.task_key)
        tasks |= dict.fromkeys(path, task)
    return {ref: task for ref, task in tasks.items() if task is not None}


def copies_of(runs: Iterable[RunSummary]) -> dict[RunRef, RunRef]:
    """Map copies to the run that counts, independent of the order of `runs`.

    A file of many runs (database, log) takes precedence over a file of one run, then the first by path.
    """
    by_identity: dict[str, list[RunSummary]] = {}
    for run in runs:
        if (identity := run.head.identity) is not None:
            by_identity.setdefault(identity, []).append(run)
    groups = (sorted((run.ref for run in same), key=place_of) for same in by_identity.values() if len(same) > 1)
    return {ref: first for first, *others in groups for ref in others}


def has_end(run: RunSummary) -> bool:
    """Whether the trace records the end of the run. Of a split trace, only the part with the root span does."""
    is_settled = run.status not in (Status.UNKNOWN, Status.RUNNING) and not run.is_part
    return run.status_source is not StatusSource.DERIVED or is_settled


def split_traces(runs: Iterable[RunSummary]) -> dict[str, list[RunRef]]:
    """By id, the parts of every trace that is split across files (by rotation, or by process).

    The ended part comes first and counts; without one, the first by path. Several ended parts are separate runs.
    """
    parts: dict[str, list[RunSummary]] = {}
    candidates = [run for run in runs if run.split]
    without_end = {run.id for run in candidates if not has_end(run)}
    for run in candidates if without_end else ():
        if run.id in without_end:
            parts.setdefault(run.id, []).append(run)
    several = {key: sorted(same, key=_ended_first) for key, same in parts.items() if len(same) > 1}
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


def place_of(ref: RunRef) -> tuple[bool, str, str, str, str]:
    """Sort key of references, all different: files of many runs first, then by path."""
    return ref.key is None, ref.path, ref.key or "", ref.format, ref.span or ""


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
