"""Tail every run below some roots without a screen: turns file changes into events.

Runs that change have a cached reader, so that only new data is read; other runs only a summary. An unreadable file is
reported once it has been unchanged for a while: until then its writer may be in the middle of it.

`RunEvents` turns what readers read into events: it has the reported state of each tailed run, and readers of the most
recent.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from tracetui.formats.base import Format
from tracetui.live.load import Reader
from tracetui.live.scan import FileRelations, ScannedFile, Scanner, entries
from tracetui.live.watch import RETRY_SECONDS, Change, RetryQueue, Watch, running_seconds, settle_seconds
from tracetui.model import Outcome, Problem, Run, RunRef, RunSummary, Score, Status, TaskKey
from tracetui.model.claims import key_of
from tracetui.model.run import Event, ProblemMet, RunChanged, RunEnded, RunReset, SpanChanged
from tracetui.sources.base import Entry, LinkLost, Source, Stat
from tracetui.sources.file_views import PrefixSource
from tracetui.store.claims import Claims
from tracetui.store.relations import Relations

# ---- one run


ENDED: Final = frozenset({Status.OK, Status.ERROR, Status.CANCELLED})


class Ending(NamedTuple):
    """How a run ended and was evaluated."""

    status: Status
    outcome: Outcome | None
    scores: tuple[Score, ...]


class RunRecord(msgspec.Struct):
    """The last reported state of a run."""

    summary: RunSummary
    """As last seen, without the file's modification time, which is not reported."""
    reported: bool = False
    """False: it existed at the start and was not reported."""
    replay: str | None = None
    """Address of its original, if found."""
    task: TaskKey | None = None
    """Task of its original, if inherited."""
    ended: Ending | None = None
    """The end that was reported."""
    rewritten: bool = False
    """Its file was rewritten: it is read as a new run."""
    net: RunSummary | None = None
    """The summary as it was reported."""
    copied: Collection[int] = ()
    """Keys of its claims that other runs counted when its spans were reported."""


def comparable(summary: RunSummary) -> RunSummary:
    """Return a summary without the fields that are not reported, for comparison."""
    return summary.replace(modified_at=0.0, size=None, unread=None, unfinished=False)


def equal_but_for_time(run: RunSummary, other: RunSummary) -> bool:
    """Whether two summaries are equal apart from the time since the last change."""
    return _without_time(run) == _without_time(other)


def _without_time(summary: RunSummary) -> RunSummary:
    status = Status.UNKNOWN if summary.seems_running else summary.status
    return summary.replace(modified_at=0.0, status=status, size=None, unread=None, unfinished=False)


class RunTail:
    """Reads one run on and determines which spans to report."""

    def __init__(self, source: Source, ref: RunRef) -> None:
        self._source = PrefixSource(source)
        self.ref = ref
        self.reader = Reader(self._source, ref)
        self._depths: dict[str, int] = {}
        """Reported depth of every span."""
        self._missing_parents: set[str] = set()
        """Parents that did not exist when a span was reported."""
        self._zone: str | None = None
        self._problems = 0
        """Number of problems already handled."""

    def read(self) -> None:
        """Read new data. Raises `LinkLost` if nothing could be read; try again."""
        self.reader.read()
        if self.reader.lost:
            raise LinkLost(self.reader.lost)

    def skip(self, size: int | None) -> Run | None:
        """Read a file, up to byte `size` if given, without reporting it; return None if that fails.

        Raises `LinkLost`.
        """
        self._source.size = size
        run = None
        self.reader.catch_up()
        if self.reader.failure is None:
            run = self.reader.build()
            self._take(run, range(len(run.spans)))
            self.problems(run)
        else:
            self.reader = Reader(self._source, self.ref)
        self._source.size = None
        return run

    def changed_spans(self, run: Run) -> list[int]:
        """Return the positions of the spans that the last read added, changed or moved."""
        if self.reader.reset:
            self._depths.clear()
            self._missing_parents.clear()
            self._problems = 0
        fresh = self.reader.fresh
        everything = bool(self._depths) and run.summary.time_zone != self._zone
        if everything:
            positions = list(range(len(run.spans)))
        else:
            fresh_positions = {run.index[span_id] for span_id in fresh if span_id in run.index}
            positions = sorted(fresh_positions | self._moved_spans(run, fresh))
        self._take(run, positions)
        return positions

    def _moved_spans(self, run: Run, fresh: list[str]) -> set[int]:
        """Return spans with a new depth: their parent arrived, or moved."""
        if self._missing_parents.isdisjoint(fresh) and not any(
            self._has_moved(run, run.index.get(span_id)) for span_id in fresh
        ):
            return set()
        return {i for i in range(len(run.spans)) if self._has_moved(run, i)}

    def _has_moved(self, run: Run, position: int | None) -> bool:
        if position is None:
            return False
        depth = run.depths[position]
        return self._depths.get(run.spans[position].id, depth) != depth

    def _take(self, run: Run, positions: list[int] | range) -> None:
        self._zone = run.summary.time_zone
        for position in positions:
            span = run.spans[position]
            self._depths[span.id] = run.depths[position]
            if span.parent_id is not None and not run.depths[position]:
                self._missing_parents.add(span.parent_id)

    def problems(self, run: Run) -> list[Problem]:
        """Return new lasting problems of the run."""
        lasting = [problem for problem in run.problems[self._problems :] if not problem.may_pass]
        self._problems += len(lasting)
        return lasting

    def reset_problems(self) -> None:
        """Report all problems of this run again."""
        self._problems = 0


READERS: Final = 256
"""Cached readers; those of finished runs go first."""
PASSING_PROBLEMS: Final = 16
"""Trailing problems of a run that may still go away."""


# ---- the events of all runs


class TailedFile(msgspec.Struct):
    """State of one tailed file."""

    entry: Entry
    seen: Stat | None = None
    """Stat at the last read of its runs."""
    refs: tuple[RunRef, ...] = ()
    changed: float = 0.0
    """Last change, on the clock of `time.monotonic`."""
    not_before: float = 0.0
    """Earliest time of the next scan, since scans are costly."""
    reported: set[Problem] | None = None
    """Problems already reported."""
    broken: bool = False
    """Whether the file, or a part without a run, was reported as unreadable."""

    @property
    def holds_several(self) -> bool:
        """Whether the file may contain several runs."""
        return any(ref.key is not None for ref in self.refs)

    @property
    def settle_time(self) -> float:
        """When (monotonic) its problems are reported, if it does not change before."""
        return self.changed + settle_seconds(self.entry.stat)

    @property
    def is_still(self) -> bool:
        """Whether it has been unchanged long enough to report its problems."""
        return time.monotonic() >= self.settle_time

    @property
    def is_untouched(self) -> bool:
        """Whether it is the same as at the last read of its runs. A database may have changed in its log alone."""
        return self.seen is not None and self.seen == self.entry.stat

    @property
    def size_before_growth(self) -> int | None:
        """Its size at the last read if it has only grown since, judging by its stat; else None."""
        stat, seen = self.entry.stat, self.seen
        if stat is None or seen is None or (stat.device, stat.inode) != (seen.device, seen.inode):
            return None
        return seen.size if stat.size > seen.size else None

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Report a problem once."""
        if self.reported is None:
            self.reported = set()
        if problem not in self.reported:
            self.reported.add(problem)
            yield ProblemMet(problem)


class RunEvents:
    """Makes events from reader output. Used by one thread."""

    def __init__(self, source: Source, retries: RetryQueue) -> None:
        self._source = source
        self._retries = retries
        self._records: dict[RunRef, RunRecord] = {}
        self._tails: OrderedDict[RunRef, RunTail] = OrderedDict()
        self._relations_current = True
        self._claims = Claims()
        """Of the gross summaries in the records; what is reported is net."""
        self._compared: set[RunRef] = set()
        """Runs with the beginning of another that were read for their claims."""

    @property
    def full(self) -> bool:
        """Whether another reader would evict one."""
        return len(self._tails) >= READERS

    def tail(self, ref: RunRef) -> RunTail | None:
        """Return the reader of a run, if cached."""
        return self._tails.get(ref)

    def has_ended(self, ref: RunRef) -> bool:
        """Whether the last summary of a run had an end."""
        record = self._records.get(ref)
        return record is not None and record.ended is not None

    def ids(self, refs: Iterable[RunRef]) -> set[str | None]:
        """Return the ids of these runs."""
        return {self._records[ref].summary.id for ref in refs if ref in self._records}

    def remember(self, run: RunSummary) -> None:
        """Record a run that existed at the start, without reporting it."""
        self._records[run.ref] = RunRecord(summary=comparable(run), ended=_ending(run))
        self._claims.add(run)
        self._relations_current = False

    def read_silently(self, ref: RunRef) -> None:
        """Read a run that existed at the start, so that later only changes are reported."""
        tail = RunTail(self._source, ref)
        run = tail.skip(None)
        if run is not None:
            self.remember(run.summary)
            self._store(tail)

    def forget(self, refs: Iterable[RunRef]) -> Iterator[Event]:
        """Forget deleted runs, and report that."""
        for ref in refs:
            record = self._records.pop(ref, None)
            self._tails.pop(ref, None)
            self._claims.remove(ref)
            self._relations_current = False
            if record is not None and record.reported:
                yield RunReset(ref.address)

    def drop(self, refs: Iterable[RunRef]) -> None:
        """Drop the readers of rewritten files: their runs are read as new ones."""
        for ref in refs:
            self._tails.pop(ref, None)
            if ref in self._records:
                self._records[ref].rewritten = True

    def failures(self, refs: Iterable[RunRef]) -> Iterator[Problem]:
        """Yield the failures of the last reads."""
        for ref in refs:
            tail = self._tails.get(ref)
            if tail is not None and tail.reader.failure is not None:
                yield tail.reader.failure

    # ---- reading

    def read(self, file: TailedFile, run: RunSummary) -> Iterator[Event]:
        """Report the changes of a run that was just found in its file."""
        record, tail = self._records.get(run.ref), self._tails.get(run.ref)
        if record is not None and file.holds_several and (tail is None or not file.is_still):  # noqa: SIM102
            if equal_but_for_time(record.summary, run):
                return
        if tail is None and record is not None:
            tail = self._resume(file, record, run)
        if tail is None:
            if record is not None and record.reported:
                record.reported, record.ended = False, None
                yield from self._reset(file, run.ref)
            tail = RunTail(self._source, run.ref)
        tail.read()
        self._store(tail)
        yield from self.report_read(file, tail)

    def report_read(self, file: TailedFile, tail: RunTail) -> Iterator[Event]:
        """Report a reader's last read; the rest is read after the other files had their turn."""
        if tail.reader.failure is None:
            yield from self._report(file, tail)
            if tail.reader.more:
                self._retries.schedule(file.entry.path, time.monotonic())

    def _resume(self, file: TailedFile, record: RunRecord, run: RunSummary) -> RunTail | None:
        """Return a reader past the data already recorded; None if the run must be read as a new one.

        Earlier reports are surely current only for an untouched file.
        """
        size_before_growth = None if record.reported else file.size_before_growth
        if file.holds_several or record.rewritten or not (file.is_untouched or size_before_growth is not None):
            return None
        tail = RunTail(self._source, run.ref)
        earlier_run = tail.skip(size_before_growth)
        if earlier_run is None:
            return None
        if record.reported:
            return tail if equal_but_for_time(record.summary, earlier_run.summary) else None
        return tail if _same_beginning(record.summary, earlier_run.summary) else None

    def _reset(self, file: TailedFile, ref: RunRef) -> Iterator[Event]:
        """Retract all reports on a run and its file; those still true are repeated."""
        file.reported = None
        for other in file.refs:
            if (tail := self._tails.get(other)) is not None and other != ref:
                tail.reset_problems()
        yield RunReset(ref.address)

    def _report(self, file: TailedFile, tail: RunTail) -> Iterator[Event]:
        run = tail.reader.build()
        record = self._records.get(tail.ref)
        spans = tail.changed_spans(run)
        self._take_claims(run.summary)
        summary, run = comparable(run.summary), self._claims.mark(run)
        if record is None:
            record = self._records[tail.ref] = RunRecord(summary=summary)
            self._relations_current, differs = False, True
        else:
            if tail.reader.reset and record.reported:
                record.reported, record.ended = False, None
                yield from self._reset(file, tail.ref)
            differs = summary != record.summary if record.reported else not equal_but_for_time(summary, record.summary)
            self._relations_current = self._relations_current and _relation(summary) == _relation(record.summary)
            record.summary, record.rewritten = summary, False
        if spans or differs:
            if differs or not record.reported:
                record.reported = True
                yield self._changed(record)
            for position in spans:
                yield SpanChanged(run, position)
        if record.reported:
            yield from self._problems(file, tail, run)
        if not tail.reader.more:
            yield from self._ending(file, record, run)

    def _problems(self, file: TailedFile, tail: RunTail, run: Run) -> Iterator[Event]:
        passing = [problem for problem in run.problems[-PASSING_PROBLEMS:] if problem.may_pass]
        for problem in (*tail.problems(run), *(passing if file.is_still else ())):
            yield from file.problem(problem)
        if passing and not file.is_still:
            self._retries.schedule(file.entry.path, file.settle_time)

    def _ending(self, file: TailedFile, record: RunRecord, run: Run) -> Iterator[Event]:
        summary = run.summary
        ended = _ending(summary)
        if ended is not None and ended != record.ended:
            yield RunEnded(comparable(self._claims.net(record.summary)))
        record.ended = ended
        if summary.seems_running or summary.unfinished:
            now = time.monotonic()
            self._retries.schedule(file.entry.path, now + running_seconds(now - file.changed))

    def _store(self, tail: RunTail) -> None:
        self._tails[tail.ref] = tail
        self._tails.move_to_end(tail.ref)
        if len(self._tails) > READERS:
            ended = (ref for ref in self._tails if ref in self._records and self._records[ref].ended is not None)
            del self._tails[next(ended, next(iter(self._tails)))]

    # ---- among runs

    def _take_claims(self, run: RunSummary) -> None:
        """Compare a run with all that began with the same record, which are read once for that."""
        self._claims.add(run)
        for ref in self._claims.relatives(run.ref) - self._compared - {run.ref}:
            self._compared.add(ref)
            if (record := self._records.get(ref)) is not None and not record.summary.deep:
                self.read_silently(ref)

    def _report_claims(self, ref: RunRef, record: RunRecord) -> Iterator[Event]:
        """Report the spans that another run counts now, or no longer."""
        before, record.copied = record.copied, self._claims.share(ref).copied
        changed, tail = {*before} ^ {*record.copied}, self._tails.get(ref)
        if changed and tail is not None:
            gross = tail.reader.build()
            run = self._claims.mark(gross)
            yield from (SpanChanged(run, place) for place, span in enumerate(gross.spans) if key_of(span) in changed)

    def _changed(self, record: RunRecord) -> RunChanged:
        record.net = comparable(self._claims.net(record.summary))
        return RunChanged(record.net, record.replay, record.task)

    def relations(self) -> Iterator[Event]:
        """Report runs with an original that was found only now, and those that count less or more because of others."""
        for run in self._claims.take_changed():
            record = self._records.get(run.ref)
            if record is not None and record.reported:
                if record.net != comparable(self._claims.net(record.summary)):
                    yield self._changed(record)
                yield from self._report_claims(run.ref, record)
        if self._relations_current:
            return
        self._relations_current = True
        runs = [self._claims.net(record.summary) for record in self._records.values()]
        if not any(run.replay_of or run.replay_of_path or self._records[run.ref].replay for run in runs):
            return
        relations = Relations(runs)
        for ref, address in relations.replay_addresses().items():
            record, task = self._records[ref], relations.inherited_tasks.get(ref)
            if (record.replay, record.task) != (address, task):
                record.replay, record.task = address, task
                if record.reported:
                    yield self._changed(record)


def _ending(summary: RunSummary) -> Ending | None:
    return Ending(summary.status, summary.outcome, summary.scores) if summary.status in ENDED else None


def _relation(summary: RunSummary) -> tuple[str | None, ...]:
    return summary.id, summary.replay_of, summary.replay_of_path, summary.relation, summary.task, summary.repeats


def _same_beginning(run: RunSummary, other: RunSummary) -> bool:
    return (run.id, run.name, run.started_at, run.prompt) == (other.id, other.name, other.started_at, other.prompt)


READ_AHEAD: Final = 64 << 20
"""Bytes of files read at the start, to learn which spans they already contain."""
READ_AHEAD_SECONDS: Final = 2.0
"""Time limit for that: a file with thousands of runs may have to be read for each of them."""
MAX_REST_SECONDS: Final = 0.25
RESCAN_FACTOR: Final = 4
"""Time between scans of a file, as a multiple of the time the last scan took."""


def _accept_all(ref: RunRef) -> bool:
    return True


class Tail:
    """Events of the runs below `roots`. Used by one thread."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        *,
        only: Format | None = None,
        from_start: bool = False,
        events: bool = True,
        wanted: Callable[[RunRef], bool] = _accept_all,
    ) -> None:
        """Without `from_start`, existing data is not reported. `wanted` filters the runs."""
        self._source = source
        self._scanner = Scanner(source, roots, only)
        self._wanted = wanted
        self._files: dict[str, TailedFile] = {}
        self._retries = RetryQueue()
        self._run_events = RunEvents(source, self._retries)
        self._relations = FileRelations(source)
        self._rest_seconds = 0.0
        self._closed = threading.Event()
        if not from_start:
            self._scan_all(roots)
        stats = {path: file.entry.stat for path, file in self._files.items() if file.entry.stat is not None}
        self.watch = Watch(source, roots, seen=stats, events=events)
        self._read_ahead()

    def events(self, timeout: float) -> Iterator[Event]:
        """Yield the events since the last call; waits up to `timeout` seconds for one.

        Under heavy load half of the time goes to waiting, so that changes are batched.
        """
        self._closed.wait(self._rest_seconds)
        changes = self.watch.changes(self._retries.wait_seconds(timeout))
        began = time.monotonic()
        for change in sorted(changes, key=_time_of):
            yield from self._retry_if_lost(change.path, self._handle_change(change))
        for path in self._retries.pop_due():
            yield from self._retry_if_lost(path, self._read(path))
        yield from self._run_events.relations()
        late = self._retries.wait_seconds(1.0) == 0.0
        self._rest_seconds = 0.0 if late else min(time.monotonic() - began, MAX_REST_SECONDS)

    def _retry_if_lost(self, path: str, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the `events` of a file; schedule the rest for later if the connection is lost."""
        try:
            yield from events
        except LinkLost:
            self._retries.schedule(path, time.monotonic() + RETRY_SECONDS)

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        self.watch.stop()

    # ---- the start

    def _scan_all(self, roots: Sequence[str]) -> None:
        for entry in entries(self._source, roots):
            file = self._files[entry.path] = TailedFile(entry=entry, seen=entry.stat)
            self._record_file(file, deep=False)
            if file.holds_several:
                self._record_file(file, deep=True)

    def _record_file(self, file: TailedFile, *, deep: bool) -> None:
        scanned = self._scanner.look(file.entry, deep=deep)
        self._relations.add(scanned, appeared=False)
        runs = [run for run in scanned.runs if self._wanted(run.ref)]
        file.refs = tuple(run.ref for run in runs)
        for run in runs:
            self._run_events.remember(run)

    def _read_ahead(self) -> None:
        """Read the runs of the most recently changed files, which are likely to change again; unfinished runs first."""
        room, until = READ_AHEAD, time.monotonic() + READ_AHEAD_SECONDS
        for file in sorted(self._files.values(), key=lambda file: _mtime(file.entry), reverse=True):
            room -= file.entry.stat.size if file.refs and file.entry.stat is not None else 0
            for ref in sorted(file.refs, key=self._run_events.has_ended):
                if room < 0 or self._run_events.full or time.monotonic() > until:
                    return
                self._run_events.read_silently(ref)

    # ---- files

    def _handle_change(self, change: Change) -> Iterator[Event]:
        file, entry = self._files.get(change.path), change.entry
        if entry is None:
            if file is not None:
                yield from self._handle_removal(file)
            return
        if file is None:
            file = self._files[change.path] = TailedFile(entry=entry, changed=_changed_at(entry))
        else:  # by our clock: a remote clock may be wrong, and for a database only the log may have changed
            file.changed = time.monotonic()
        file.entry = entry
        yield from self._read(change.path)

    def _handle_removal(self, file: TailedFile) -> Iterator[Event]:
        del self._files[file.entry.path]
        self._scanner.forget(file.entry.path)
        yield from self._reset_file(file)
        yield from self._rescan_all(self._relations.remove(file.entry.path))

    def _rescan_all(self, paths: Iterable[str]) -> Iterator[Event]:
        """Scan files again that became or were parts of another file's run, or are its forks."""
        for file in [self._files[path] for path in paths if path in self._files]:
            yield from self._rescan(file, rewritten=True)

    def _reset_file(self, file: TailedFile) -> Iterator[Event]:
        """Retract all reports on a file and its runs."""
        resets = list(self._run_events.forget(file.refs))
        yield from resets
        if file.reported and RunReset(file.entry.path) not in resets:
            yield RunReset(file.entry.path)
        file.refs, file.reported, file.broken = (), None, False

    def _read(self, path: str) -> Iterator[Event]:
        """Read all new data in a file."""
        file = self._files.get(path)
        if file is None:
            return
        now = time.monotonic()
        tail = None if len(file.refs) != 1 or file.holds_several else self._run_events.tail(file.refs[0])
        if tail is not None:
            tail.read()
            if tail.reader.failure is None and not tail.reader.reset and not file.broken:
                file.seen = file.entry.stat
                yield from self._run_events.report_read(file, tail)
                forks = self._relations.identify(path, self._run_events.ids(file.refs))
                yield from self._rescan_all([*self._relations.joining(path), *forks])
                return
        elif now < file.not_before:
            self._retries.schedule(path, file.not_before)
            return
        yield from self._rescan(file, rewritten=tail is not None and tail.reader.reset)
        file.seen = file.entry.stat
        file.not_before = now + (1 + RESCAN_FACTOR) * (time.monotonic() - now)

    def _rescan(self, file: TailedFile, *, rewritten: bool) -> Iterator[Event]:
        """Scan a file again and read its runs."""
        scanned = self._scanner.rescan(file.entry, deep=file.holds_several)
        runs = [run for run in scanned.runs if self._wanted(run.ref)]
        refs = tuple(run.ref for run in runs)
        nothing = rewritten or scanned.part_of or (file.is_still and not scanned.problems)
        if (file.broken and not scanned.problems) or (not runs and nothing):
            yield from self._reset_file(file)
        elif rewritten:
            self._run_events.drop(file.refs)
        if runs:
            yield from self._run_events.forget(ref for ref in file.refs if ref not in refs)
            file.refs = refs
        for run in runs:
            yield from self._run_events.read(file, run)
        yield from self._report_broken(file, scanned)
        also = self._relations.add(scanned)
        main = self._files.get(scanned.part_of)
        if main is not None and main is not file:
            main.changed = time.monotonic()
            yield from self._read(scanned.part_of)
        yield from self._rescan_all(path for path in also if path != scanned.part_of)

    def _report_broken(self, file: TailedFile, scanned: ScannedFile) -> Iterator[Event]:
        """Report the problems of a file once it has been unchanged for a while."""
        problems: list[Problem] = [*scanned.problems, *self._run_events.failures(file.refs)]
        if file.is_still:
            for problem in problems:
                file.broken = True
                yield from file.problem(problem)
        elif problems or file.holds_several or (file.refs and not scanned.runs):
            self._retries.schedule(file.entry.path, file.settle_time)


def _mtime(entry: Entry | None) -> float:
    return entry.stat.mtime if entry is not None and entry.stat is not None else 0.0


def _time_of(change: Change) -> float:
    return _mtime(change.entry)


def _changed_at(entry: Entry) -> float:
    """Return when a file changed on the clock of `time.monotonic`; now if its own times are implausible."""
    now = time.monotonic()
    if entry.stat is None:
        return now
    ago = time.time() - max(entry.stat.mtime_ns, entry.stat.ctime_ns) / 1e9
    return now - ago if ago > 0 else now
