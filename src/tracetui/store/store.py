"""What is known of a directory: every run's summary, every file's fate, and the few runs that are open."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

from tracetui.model import Body, Ledger, Problem, Run, RunRef, RunSummary, Span, Status
from tracetui.model.ledger import total
from tracetui.store.pulse import Pulse
from tracetui.store.relations import Relations, has_end, uncounted_parts

OPEN_RUNS: Final = 8
"""Whole runs kept after they were looked at."""
OPEN_BODIES: Final = 32
"""Bodies of spans kept after they were looked at."""


class Looked(Protocol):
    """What one file turned out to be (`tracetui.live.scan.Found`)."""

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
    """What is said of the whole directory. Counts are of top-level runs: those that no other run started."""

    runs: int = 0
    by_status: dict[Status, int] = {}
    by_format: dict[str, int] = {}
    causes: dict[str, int] = {}
    """Failed runs by the type of their first error."""

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return self.by_status.get(Status.ERROR, 0)


class Store:
    """Used by one thread (the UI loop). `revision` grows with every change of the list."""

    def __init__(self) -> None:
        self.runs: dict[RunRef, RunSummary] = {}
        self.problems: dict[str, tuple[Problem, ...]] = {}
        """Problems of files, by path; those of a run are in the run."""
        self.ignored: dict[str, str] = {}
        """Files that no format claims, by path: what a near miss looks like, empty for the others."""
        self.pulses: dict[RunRef, Pulse] = {}
        """Runs that were seen to change."""
        self._from_future: dict[RunRef, float] = {}
        """Runs whose file's time was yet to come when they were first seen, and when that was."""
        self.unended: set[RunRef] = set()
        """Runs of which the trace tells no end."""
        self._failed: list[RunRef] = []
        self._touched: set[RunRef] = set()
        self.revision = 0
        self.members = 0
        """Grows whenever a run or an unreadable file comes or goes."""
        self._counts = _Counts()
        self._refs: dict[str, RunRef | tuple[RunRef, ...]] = {}
        """The runs of each file: most hold one, and that one alone takes half the room."""
        self._unseen: set[str] = set()
        self._relations: Relations | None = None
        self._open: OrderedDict[RunRef, Run] = OrderedDict()
        self._bodies: OrderedDict[tuple[RunRef, str], tuple[Span, Body]] = OrderedDict()

    def begin_scan(self) -> None:
        """Everything is about to be read anew: what is not seen until `end_scan` is gone."""
        self._unseen = {*self._refs, *self.problems, *self.ignored}

    def end_scan(self) -> None:
        """Drop what the scan did not find."""
        for path in self._unseen:
            for ref in self._known(path):
                self._drop(ref)
            self._refs.pop(path, None)
            self.problems.pop(path, None)
            self.ignored.pop(path, None)
        self._unseen = set()
        self.revision += 1

    def apply(self, looked: Iterable[Looked], now: float) -> None:
        """Take in what files turned out to be; what was known of the same file before is replaced (by a whole one)."""
        for found in looked:
            self._unseen.discard(found.path)
            if found.whole:
                self._settle(found)
            for run in found.runs:
                self._put(run, now)
        self.revision += 1

    def put(self, run: RunSummary, now: float) -> None:
        """Take in what an open run turned out to be; one that is not listed any more stays so."""
        if run.ref in self.runs and run != self.runs[run.ref]:
            self._put(run, now)
            self.revision += 1

    def _settle(self, found: Looked) -> None:
        """Forget what a file holds no more, and remember what it does."""
        refs = tuple(run.ref for run in found.runs)
        before = self._known(found.path)
        if before != refs:
            for ref in {*before}.difference(refs):
                self._drop(ref)
        if refs:
            self._refs[found.path] = refs[0] if len(refs) == 1 else refs
        else:
            self._refs.pop(found.path, None)
        if found.problems != self.problems.get(found.path, ()):
            self.members += 1
        if found.problems:
            self.problems[found.path] = found.problems
        else:
            self.problems.pop(found.path, None)
        if found.unclaimed:
            self.ignored[found.path] = found.near_miss
        else:
            self.ignored.pop(found.path, None)

    def _known(self, path: str) -> tuple[RunRef, ...]:
        refs = self._refs.get(path, ())
        return refs if isinstance(refs, tuple) else (refs,)

    def _put(self, run: RunSummary, now: float) -> None:
        before = self.runs.get(run.ref)
        if before is not None:
            self._counts.add(before, -1)
            if before.deep and _changed(before, run):
                self._pulse(before).beat(now, run.spans)
        if run.status is Status.ERROR and (before is None or before.status is not Status.ERROR):
            self._failed.append(run.ref)
        if run.status is Status.RUNNING or (run.status is Status.UNKNOWN and run.status_source is not None):
            self.unended.add(run.ref)
        elif before is not None:
            self.unended.discard(run.ref)
        if before is None or _ties(before) != _ties(run):
            self._relations = None
        self.members += before is None
        if before is not None:
            self._touched.add(run.ref)
        elif run.modified_at > now:
            self._from_future[run.ref] = now
        self.runs[run.ref] = run
        self._counts.add(run, 1)

    def touched(self) -> list[RunSummary]:
        """Runs that are other than they were at the last call, as they are now."""
        touched, self._touched = self._touched, set()
        return [self.runs[ref] for ref in touched if ref in self.runs]

    def newly_failed(self) -> list[RunRef]:
        """Runs that were found to have failed since the last call."""
        failed, self._failed = self._failed, []
        return failed

    def _drop(self, ref: RunRef) -> None:
        run = self.runs.pop(ref, None)
        if run is not None:
            self._counts.add(run, -1)
        self.pulses.pop(ref, None)
        self._from_future.pop(ref, None)
        self.unended.discard(ref)
        self._relations = None
        self.members += 1

    def _pulse(self, run: RunSummary) -> Pulse:
        pulse = self.pulses.get(run.ref)
        if pulse is None:
            pulse = self.pulses[run.ref] = Pulse(run.spans, run.modified_at)
        return pulse

    def changed_at(self, run: RunSummary) -> float:
        """When the run was last written to as far as is known, in seconds since the epoch.

        The time of a file that holds several runs tells nothing of one of them: until it is seen to change, it is known
        by its start. Where a clock is ahead, the run has not changed since it was first seen.
        """
        pulse = self.pulses.get(run.ref)
        if pulse is not None:
            return pulse.changed_at
        told = run.modified_at if run.ref.key is None or run.started_at is None else run.started_at
        return min(told, self._from_future.get(run.ref, told))

    @property
    def overview(self) -> Overview:
        """As of now; costs nothing."""
        return self._counts.overview()

    def ledger(self, refs: Iterable[RunRef]) -> Ledger:
        """How much of these runs was understood, of those that were counted; with them, what is torn in their files."""
        runs = [run for ref in refs if (run := self.runs.get(ref)) is not None and run.deep]
        paths = {run.ref.path for run in runs} if self.problems else set()
        torn = sum(problem.torn for path in paths & self.problems.keys() for problem in self.problems[path])
        return total((*(run.ledger for run in runs), Ledger(torn=torn)))

    @property
    def relations(self) -> Relations:
        """Found out when first asked for, and anew once a run came, went or tells another original."""
        if self._relations is None:
            self._relations = Relations(self.runs.values())
        return self._relations

    def keep(self, run: Run) -> None:
        """Keep a run that was opened, and its summary, which knows more than the list does."""
        self._open[run.summary.ref] = run
        self._open.move_to_end(run.summary.ref)
        while len(self._open) > OPEN_RUNS:
            self._open.popitem(last=False)

    def opened(self, ref: RunRef) -> Run | None:
        """The whole run, if it is still kept."""
        return self._open.get(ref)

    def summary(self, ref: RunRef | None) -> RunSummary | None:
        """A run as the list knows it, or better, as its whole does."""
        if ref is None:
            return None
        run = self._open.get(ref)
        return run.summary if run is not None else self.runs.get(ref)

    def keep_body(self, ref: RunRef, span: Span, body: Body) -> None:
        """Keep the body of a span that was looked at."""
        self._bodies[ref, span.id] = span, body
        self._bodies.move_to_end((ref, span.id))
        while len(self._bodies) > OPEN_BODIES:
            self._bodies.popitem(last=False)

    def body(self, ref: RunRef, span: Span) -> Body | None:
        """The body of that very state of a span, if it is still kept: a span that changed is another object."""
        kept = self._bodies.get((ref, span.id))
        return kept[1] if kept is not None and kept[0] is span else None

    def forget(self, ref: RunRef) -> None:
        """Drop what is kept of an open run: it is to be read again."""
        self._open.pop(ref, None)
        for key in [key for key in self._bodies if key[0] == ref]:
            del self._bodies[key]


def _ties(run: RunSummary) -> tuple[object, ...]:
    """What ties a run to others."""
    when = None if run.repeats is None else run.started_at
    part = run.split and has_end(run)
    return run.id, run.replay_of, run.replay_of_path, run.relation, run.parent, run.repeats, run.identity, when, part


def _changed(before: RunSummary, after: RunSummary) -> bool:
    """Whether the run itself changed: a file of many runs is written to for each of them.

    A run that no longer counts as running, because its file is still, did not change by that.
    """
    if before.seems_running and after.status is Status.UNKNOWN and before.modified_at == after.modified_at:
        after = msgspec.structs.replace(
            after, status=before.status, unread=before.unread, unfinished=before.unfinished, problems=before.problems
        )
    if before.ref.key is None or before.modified_at == after.modified_at:
        return before != after
    return before != msgspec.structs.replace(after, modified_at=before.modified_at)


class _Counts:
    """Counts of top-level runs, kept up run by run: while thousands arrive, counting them all each time adds up."""

    def __init__(self) -> None:
        self._by_status: Counter[Status] = Counter()
        self._by_format: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._parts: dict[str, tuple[RunSummary, ...]] = {}
        """Runs that may be parts of a trace in several files, by its id."""

    def add(self, run: RunSummary, by: int) -> None:
        """Count a run in (1) or out (-1). Parts of one trace count once."""
        if run.parent is not None:
            return
        if not run.split:
            self._add(run, by)
            return
        before = self._parts.get(run.id, ())
        after = (*before, run) if by > 0 else tuple(one for one in before if one.ref != run.ref)
        for runs, sign in ((before, -1), (after, 1)):
            uncounted = uncounted_parts(runs)
            for one in runs:
                if one.ref not in uncounted:
                    self._add(one, sign)
        if after:
            self._parts[run.id] = after
        else:
            del self._parts[run.id]

    def _add(self, run: RunSummary, by: int) -> None:
        self._by_status[run.status] += by
        self._by_format[run.ref.format] += by
        if run.status is Status.ERROR and run.first_error is not None and run.first_error.type:
            self._causes[run.first_error.type] += by

    def overview(self) -> Overview:
        """The counts, without those that are zero."""
        return Overview(self._by_status.total(), +self._by_status, +self._by_format, +self._causes)
