"""The state of a trace directory: the summary of every run, the problems of files, and a cache of open runs."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from time import time
from typing import Final, Protocol

import msgspec

from tracetui.model import Body, Ledger, Outcome, PassRule, Problem, Run, RunRef, RunSummary, Span, Status, TaskKey
from tracetui.model.ledger import total
from tracetui.store.claims import Claims
from tracetui.store.facts import OutcomeCounts, changed_at
from tracetui.store.relations import Relations, relation_key, task_of, uncounted_parts

OPEN_RUNS: Final = 8
"""Capacity of the cache of whole runs."""
OPEN_BODIES: Final = 32
"""Capacity of the cache of span bodies."""
BEATS: Final = 600
"""Maximum arrivals per run."""


class Pulse:
    """Recent arrivals of one run, in seconds since the epoch by the local clock."""

    __slots__ = ("arrivals", "changed_at", "spans")

    def __init__(self, spans: int | None, changed_at: float) -> None:
        self.arrivals: deque[float] = deque(maxlen=BEATS)
        """Arrival times of spans, one per batch."""
        self.changed_at = changed_at
        """Time of the last observed write; before that, the modification time of the file."""
        self.spans = spans

    def beat(self, now: float, spans: int | None) -> None:
        """Record a change of the run, which now has so many spans (None: not counted)."""
        self.changed_at = now  # not the file's time: its machine's clock may be ahead
        if spans is not None and self.spans is not None and spans > self.spans:
            self.arrivals.append(now)
        self.spans = spans if spans is not None else self.spans


class ScannedFile(Protocol):
    """The result of reading one file (`tracetui.live.scan.ScannedFile`)."""

    @property
    def path(self) -> str: ...
    @property
    def runs(self) -> tuple[RunSummary, ...]: ...
    @property
    def problems(self) -> tuple[Problem, ...]: ...
    @property
    def whole(self) -> bool: ...
    @property
    def unclaimed(self) -> bool: ...
    @property
    def near_miss(self) -> str: ...


class Overview(msgspec.Struct, frozen=True):
    """Counts of a directory, or of some of its runs: of top-level runs only (no child runs)."""

    runs: int = 0
    by_status: dict[Status, int] = {}
    by_format: dict[str, int] = {}
    outcomes: OutcomeCounts = msgspec.field(default_factory=OutcomeCounts)
    repeated_tasks: int = 0
    """Tasks with more than one run."""

    @property
    def failed(self) -> int:
        """How many runs failed: with an error or a wrong answer."""
        return self.outcomes.failed


class Store:
    """The runs of a directory. Not thread-safe (UI loop only). `revision` increases with every change of the list."""

    def __init__(self, rule: PassRule | None = None) -> None:
        """`rule`: the user's own, applied to every run that comes in."""
        self.rule = rule
        self.runs: dict[RunRef, RunSummary] = {}
        self.problems: dict[str, tuple[Problem, ...]] = {}
        """Problems of files, by path; those of a run are in the run."""
        self.ignored: dict[str, str] = {}
        """Files that no format claims, by path: the shape of a near miss, empty for the others."""
        self.pulses: dict[RunRef, Pulse] = {}
        """Runs that changed since they were first seen."""
        self._from_future: dict[RunRef, float] = {}
        """Runs with a future modification time when first seen, with the time of that."""
        self.unended: set[RunRef] = set()
        """Runs without a recorded end."""
        self._failed: list[RunRef] = []
        self._touched: set[RunRef] = set()
        self.revision = 0
        self.members = 0
        """Increases whenever a run or an unreadable file is added or removed."""
        self._counts = _Counts()
        self.claims = Claims()
        """Which run counts what several have. `runs` has net summaries."""
        self._formats: dict[str, None] = {}
        """Formats of the runs."""
        self._keyed: dict[str, tuple[RunRef, ...]] = {}
        """The runs of each file, except for files that are one run: most are, and `runs` has those."""
        self._unseen: set[str] = set()
        self._relations: Relations | None = None
        self._open: OrderedDict[RunRef, tuple[Run, Run]] = OrderedDict()
        """Cached runs, gross and net."""
        self._recounted: list[Run] = []
        self._bodies: OrderedDict[tuple[RunRef, str], tuple[Span, Body]] = OrderedDict()

    def begin_scan(self) -> None:
        """Begin a full scan: files not seen until `end_scan` are removed."""
        keyed = {ref for refs in self._keyed.values() for ref in refs}
        paths = {ref.path for ref in self.runs if ref not in keyed}
        self._unseen = {*paths, *self._keyed, *self.problems, *self.ignored}

    def end_scan(self) -> None:
        """Remove files that the scan did not find."""
        for path in self._unseen:
            for ref in self._refs_of(path):
                self._drop(ref)
            self._keyed.pop(path, None)
            self.problems.pop(path, None)
            self.ignored.pop(path, None)
        self._unseen = set()
        self._settle_claims(time())
        self.revision += 1

    def apply(self, files: Iterable[ScannedFile], now: float) -> None:
        """Add scanned files; a complete one replaces the earlier state of the same file."""
        for file in files:
            self._unseen.discard(file.path)
            if file.whole:
                self._replace(file)
            for run in file.runs:
                self._put(run, now)
        self._settle_claims(now)
        self.revision += 1

    def put(self, run: RunSummary, now: float) -> None:
        """Update the summary of an open run, if it is still listed."""
        before = self.claims.gross(run.ref) or self.runs.get(run.ref)
        if run.ref in self.runs and run.with_rule(self.rule) != before:
            self._put(run, now)
            self._settle_claims(now)
            self.revision += 1

    def _settle_claims(self, now: float) -> None:
        """Update the runs that count more or less now because of others."""
        for run in self.claims.take_changed():
            if run.ref in self.runs and (net := self.claims.net(run)) != self.runs[run.ref]:
                self._enter(net, now, has_changed=False)
            if run.ref in self._open:
                self._recounted.append(self._mark(run.ref))

    def recounted(self) -> list[Run]:
        """Cached runs of which other runs count more or less since the last call."""
        recounted, self._recounted = self._recounted, []
        return recounted

    def _replace(self, file: ScannedFile) -> None:
        """Replace the runs and problems of a file."""
        path, runs = file.path, file.runs
        refs = (runs[0].ref,) if len(runs) == 1 else tuple([run.ref for run in runs])
        before = self._refs_of(path)
        if before and before != refs:
            for ref in {*before}.difference(refs):
                self._drop(ref)
        if refs and (len(refs) > 1 or refs[0].key is not None or refs[0].path != path):
            self._keyed[path] = refs
        else:
            self._keyed.pop(path, None)
        if file.problems or path in self.problems:
            self.members += file.problems != self.problems.pop(path, ())
            if file.problems:
                self.problems[path] = file.problems
        if not runs and file.unclaimed:
            self.ignored[path] = file.near_miss
        else:
            self.ignored.pop(path, None)

    def _refs_of(self, path: str) -> tuple[RunRef, ...]:
        if (refs := self._keyed.get(path)) is not None:
            return refs
        return tuple([ref for name in self._formats if (ref := RunRef(name, path)) in self.runs])

    def _put(self, run: RunSummary, now: float) -> None:
        run = run if self.rule is None else run.with_rule(self.rule)
        before = self.claims.gross(run.ref) or self.runs.get(run.ref)
        self.claims.add(run)
        self._enter(self.claims.net(run), now, has_changed=before is None or _changed(before, run))

    def _enter(self, run: RunSummary, now: float, *, has_changed: bool) -> None:
        """List a net summary; `has_changed`: the run itself changed."""
        ref = run.ref
        before, shared = self.runs.get(ref), run.shared
        relations = self._relations
        if before is not None and relations is not None:
            if relation_key(before) == relation_key(run):
                relations = None  # they don't change
            else:
                relations.remove(ref)
        if run.failed and (before is None or not before.failed):
            self._failed.append(ref)
        if shared.status is Status.RUNNING or (shared.status is Status.UNKNOWN and shared.status_source is not None):
            self.unended.add(ref)
        elif before is not None:
            self.unended.discard(ref)
        if before is None:
            self.members += 1
            self._formats[ref.format] = None
            if run.modified_at > now:
                self._from_future[ref] = now
        else:
            if before.deep and has_changed:
                self._pulse(before).beat(now, run.spans)
            self._touched.add(ref)
            self._counts.add(before, -1)
        self.runs[ref] = run
        self._counts.add(run, 1)
        if relations is not None:
            relations.add(ref)

    def touched(self) -> list[RunSummary]:
        """Runs that changed since the last call."""
        touched, self._touched = self._touched, set()
        return [self.runs[ref] for ref in touched if ref in self.runs]

    def newly_failed(self) -> list[RunRef]:
        """Runs that became failed since the last call."""
        failed, self._failed = self._failed, []
        return failed

    def _drop(self, ref: RunRef) -> None:
        if (run := self.runs.get(ref)) is not None:
            if self._relations is not None:
                self._relations.remove(ref)
            del self.runs[ref]
            self._counts.add(run, -1)
            self.claims.remove(ref)
        self.pulses.pop(ref, None)
        self._from_future.pop(ref, None)
        self.unended.discard(ref)
        self.members += 1

    def _pulse(self, run: RunSummary) -> Pulse:
        pulse = self.pulses.get(run.ref)
        if pulse is None:
            pulse = self.pulses[run.ref] = Pulse(run.spans, run.modified_at)
        return pulse

    def changed_at(self, run: RunSummary) -> float:
        """Time of the last observed change of a run, in seconds since the epoch.

        Until it is seen to change, `changed_at` of its summary counts. For a modification time in the future, the time
        the run was first seen counts.
        """
        pulse = self.pulses.get(run.ref)
        if pulse is not None:
            return pulse.changed_at
        changed = changed_at(run)
        return min(changed, self._from_future.get(run.ref, changed))

    @property
    def overview(self) -> Overview:
        """Current counts, in constant time."""
        return self._counts.overview()

    def ledger(self, refs: Iterable[RunRef]) -> Ledger:
        """The combined ledger of those runs that have one, with the torn lines of their files."""
        runs = [run for ref in refs if (run := self.runs.get(ref)) is not None and run.deep]
        paths = {run.ref.path for run in runs} if self.problems else set()
        torn = sum(problem.torn for path in paths & self.problems.keys() for problem in self.problems[path])
        return total((*(run.ledger for run in runs), Ledger(torn=torn)))

    @property
    def relations(self) -> Relations:
        """Relations of the listed runs. They follow changes."""
        if self._relations is None:
            self._relations = Relations(self.runs)
        return self._relations

    def cache(self, run: Run) -> None:
        """Cache an open run; its summary is more complete than that of the list. What other runs count is marked."""
        ref, run = run.summary.ref, run.with_rule(self.rule)
        self._open[ref] = run, run
        self._mark(ref)
        self._open.move_to_end(ref)
        while len(self._open) > OPEN_RUNS:
            self._open.popitem(last=False)

    def _mark(self, ref: RunRef) -> Run:
        gross, _ = self._open[ref]
        net = self.claims.mark(gross)
        self._open[ref] = gross, net
        return net

    def opened(self, ref: RunRef) -> Run | None:
        """The whole run, if cached."""
        return self._open[ref][1] if ref in self._open else None

    def summary(self, ref: RunRef | None) -> RunSummary | None:
        """The most complete summary of a run: that of the cached run, else that of the list."""
        if ref is None:
            return None
        run = self.opened(ref)
        return run.summary if run is not None else self.runs.get(ref)

    def cache_body(self, ref: RunRef, span: Span, body: Body) -> None:
        """Cache the body of a span."""
        self._bodies[ref, span.id] = span, body
        self._bodies.move_to_end((ref, span.id))
        while len(self._bodies) > OPEN_BODIES:
            self._bodies.popitem(last=False)

    def body(self, ref: RunRef, span: Span) -> Body | None:
        """The cached body of exactly this span object; a changed span is a new object."""
        cached = self._bodies.get((ref, span.id))
        return cached[1] if cached is not None and cached[0] is span else None

    def forget(self, ref: RunRef) -> None:
        """Drop a run and its bodies from the cache."""
        self._open.pop(ref, None)
        for key in [key for key in self._bodies if key[0] == ref]:
            del self._bodies[key]


def _changed(before: RunSummary, after: RunSummary) -> bool:
    """Whether the run itself changed, and not only another run of its file.

    A run that stops counting as running because its file is quiet did not change.
    """
    if before.seems_running and after.status is Status.UNKNOWN and before.modified_at == after.modified_at:
        after = after.replace(
            status=before.status, unread=before.unread, unfinished=before.unfinished, problems=before.problems
        )
    if before.ref.key is None or before.modified_at == after.modified_at:
        return before != after
    return before != msgspec.structs.replace(after, modified_at=before.modified_at)


def overview_of(runs: Iterable[RunSummary]) -> Overview:
    """The counts of these runs."""
    counts = _Counts()
    for run in runs:
        counts.add(run, 1)
    return counts.overview()


class _Counts:
    """Counts of top-level runs, updated per run: recounting thousands of runs at each change is too slow."""

    def __init__(self) -> None:
        self._alike: dict[tuple[Status, Outcome | None, str], tuple[RunSummary, int]] = {}
        """Number of runs of each status, outcome and format, and one of them."""
        self._by_task: dict[TaskKey | str, int] = {}
        """Number of runs by `task_of`."""
        self._repeated_tasks = 0
        self._parts: dict[str, tuple[RunSummary, ...]] = {}
        """Runs that may be parts of a trace split over files, by run id."""

    def add(self, run: RunSummary, by: int) -> None:
        """Add (1) or remove (-1) a run. Parts of one trace count once."""
        shared = run.shared
        if shared.parent is not None:
            return
        if not shared.split:
            self._add(run, by)
            return
        before = self._parts.get(run.id, ())
        after = (*before, run) if by > 0 else tuple(part for part in before if part.ref != run.ref)
        for runs, sign in ((before, -1), (after, 1)):
            uncounted = uncounted_parts(runs)
            for part in runs:
                if part.ref not in uncounted:
                    self._add(part, sign)
        if after:
            self._parts[run.id] = after
        else:
            del self._parts[run.id]

    def _add(self, run: RunSummary, by: int) -> None:
        shared = run.shared
        kind = shared.status, shared.outcome, run.ref.format
        first, count = self._alike.get(kind, (run, 0))
        self._alike[kind] = first, count + by
        if (task := task_of(run)) is not None:
            before = self._by_task.get(task, 0)
            self._by_task[task] = before + by
            if before > 1 or before + by > 1:
                self._repeated_tasks += (before + by > 1) - (before > 1)

    def overview(self) -> Overview:
        """The nonzero counts."""
        by_status, by_format, outcomes = Counter[Status](), Counter[str](), OutcomeCounts()
        for run, count in self._alike.values():
            by_status[run.status] += count
            by_format[run.ref.format] += count
            outcomes.add(run, count)
        return Overview(by_status.total(), +by_status, +by_format, outcomes, self._repeated_tasks)
