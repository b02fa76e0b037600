"""Turns what readers read into events: the reported state of each tailed run, and readers of the most recent."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from tracetui.live.retry_queue import RetryQueue, running_seconds, settle_seconds
from tracetui.live.tail.run_tail import ENDED, Ending, RunRecord, RunTail, comparable, equal_but_for_time
from tracetui.model import Problem, Run, RunRef, RunSummary
from tracetui.model.event import Event, ProblemMet, RunChanged, RunEnded, RunReset, SpanChanged
from tracetui.sources.base import Entry, Source, Stat
from tracetui.store.relations import Relations

READERS: Final = 256
"""Cached readers; those of finished runs go first."""
PASSING_PROBLEMS: Final = 16
"""Trailing problems of a run that may still go away."""


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
    def still_at(self) -> float:
        """When (monotonic) its problems are reported, if it does not change before."""
        return self.changed + settle_seconds(self.entry.stat)

    @property
    def is_still(self) -> bool:
        """Whether it has been unchanged long enough to report its problems."""
        return time.monotonic() >= self.still_at

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
            self._relations_current = False
            if record is not None and record.reported:
                yield RunReset(ref.address)

    def drop(self, refs: Iterable[RunRef]) -> None:
        """Drop the readers of runs whose file was rewritten: they are read as new ones."""
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
        yield from self.read_on(file, tail)

    def read_on(self, file: TailedFile, tail: RunTail) -> Iterator[Event]:
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
        found = tail.skip(size_before_growth)
        if found is None:
            return None
        if record.reported:
            return tail if equal_but_for_time(record.summary, found.summary) else None
        return tail if _same_beginning(record.summary, found.summary) else None

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
        summary = comparable(run.summary)
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
                yield RunChanged(summary, record.replay, record.task)
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
            self._retries.schedule(file.entry.path, file.still_at)

    def _ending(self, file: TailedFile, record: RunRecord, run: Run) -> Iterator[Event]:
        summary = run.summary
        ended = _ending(summary)
        if ended is not None and ended != record.ended:
            yield RunEnded(record.summary)
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

    def relations(self) -> Iterator[Event]:
        """Report runs whose original was found only now."""
        if self._relations_current:
            return
        self._relations_current = True
        runs = [record.summary for record in self._records.values()]
        if not any(run.replay_of or run.replay_of_path for run in runs):
            return
        relations = Relations(runs)
        for ref, address in relations.replay_addresses().items():
            record, task = self._records[ref], relations.inherited_tasks.get(ref)
            if (record.replay, record.task) != (address, task):
                record.replay, record.task = address, task
                if record.reported:
                    yield RunChanged(record.summary, address, task)


def _ending(summary: RunSummary) -> Ending | None:
    return Ending(summary.status, summary.outcome, summary.scores) if summary.status in ENDED else None


def _relation(summary: RunSummary) -> tuple[str | None, ...]:
    return summary.id, summary.replay_of, summary.replay_of_path, summary.relation, summary.task, summary.repeats


def _same_beginning(one: RunSummary, other: RunSummary) -> bool:
    return (one.id, one.name, one.started_at, one.prompt) == (other.id, other.name, other.started_at, other.prompt)
