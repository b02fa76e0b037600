"""The runs that are followed: what was told of each, and readers of those that changed last."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from tracetui.live.retry_queue import Agenda, patience, running_for
from tracetui.live.tail.run_tail import ENDED, Known, Track, plain, same_but_for_time
from tracetui.model import Problem, Run, RunRef, RunSummary, Status
from tracetui.model.event import Event, ProblemMet, RunChanged, RunEnded, RunReset, SpanChanged
from tracetui.sources.base import Entry, Source, Stat
from tracetui.store.relations import Relations

READERS: Final = 256
"""Runs whose readers are kept; those of runs that have ended go first."""
PASSING_PROBLEMS: Final = 16
"""So many problems at the end of those of a run may pass."""


class FollowedFile(msgspec.Struct):
    """What is known of one file."""

    entry: Entry
    seen: Stat | None = None
    """What the file was when its runs were last read."""
    refs: tuple[RunRef, ...] = ()
    changed: float = 0.0
    """When it last changed, on the clock of `time.monotonic`."""
    not_before: float = 0.0
    """Finding out what is in it takes time: when to do so again."""
    told: set[Problem] | None = None
    """Problems that were told."""
    broken: bool = False
    """It was told that the file, or a part of it that is no run, cannot be read."""

    @property
    def several(self) -> bool:
        """Whether it is a file that may hold several runs."""
        return any(ref.key is not None for ref in self.refs)

    @property
    def still_at(self) -> float:
        """From when on (monotonic) what is wrong with it is told, if it does not change before."""
        return self.changed + patience(self.entry.stat)

    @property
    def still(self) -> bool:
        """Whether it has not changed for so long that what is wrong with it is told."""
        return time.monotonic() >= self.still_at

    @property
    def untouched(self) -> bool:
        """Whether it is what it was when its runs were last read. A database may have changed in its log alone."""
        return self.seen is not None and self.seen == self.entry.stat

    @property
    def grown(self) -> int | None:
        """How large it was then, if it did nothing but grow as far as its stat tells; else None."""
        stat, seen = self.entry.stat, self.seen
        if stat is None or seen is None or (stat.device, stat.inode) != (seen.device, seen.inode):
            return None
        return seen.size if stat.size > seen.size else None

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Tell a problem, once."""
        if self.told is None:
            self.told = set()
        if problem not in self.told:
            self.told.add(problem)
            yield ProblemMet(problem)


class Followed:
    """Makes events of what readers read. Used by one thread."""

    def __init__(self, source: Source, agenda: Agenda) -> None:
        self._source = source
        self._agenda = agenda
        self._known: dict[RunRef, Known] = {}
        self._tracks: OrderedDict[RunRef, Track] = OrderedDict()
        self._related = True

    @property
    def full(self) -> bool:
        """Whether one more reader would end another."""
        return len(self._tracks) >= READERS

    def track(self, ref: RunRef) -> Track | None:
        """What reads a run, if it is still kept."""
        return self._tracks.get(ref)

    def has_ended(self, ref: RunRef) -> bool:
        """Whether a run is known to have come to its end."""
        known = self._known.get(ref)
        return known is not None and known.ended is not None

    def ids(self, refs: Iterable[RunRef]) -> set[str | None]:
        """The ids of these runs."""
        return {self._known[ref].summary.id for ref in refs if ref in self._known}

    def remember(self, run: RunSummary) -> None:
        """A run that was there at the start: it is not told."""
        self._known[run.ref] = Known(summary=plain(run), ended=_end(run))
        self._related = False

    def read_quietly(self, ref: RunRef) -> None:
        """Read what is there at the start, so that later only what is new is told."""
        track = Track(self._source, ref)
        run = track.skip(None)
        if run is not None:
            self.remember(run.summary)
            self._keep(track)

    def forget(self, refs: Iterable[RunRef]) -> Iterator[Event]:
        """These runs are gone."""
        for ref in refs:
            known = self._known.pop(ref, None)
            self._tracks.pop(ref, None)
            self._related = False
            if known is not None and known.told:
                yield RunReset(ref.address)

    def drop(self, refs: Iterable[RunRef]) -> None:
        """The file of these runs was rewritten: they are read as new ones."""
        for ref in refs:
            self._tracks.pop(ref, None)
            if ref in self._known:
                self._known[ref].rewritten = True

    def failures(self, refs: Iterable[RunRef]) -> Iterator[Problem]:
        """Why runs could not be read when that was last tried."""
        for ref in refs:
            track = self._tracks.get(ref)
            if track is not None and track.reader.failure is not None:
                yield track.reader.failure

    # ---- reading

    def read(self, file: FollowedFile, run: RunSummary) -> Iterator[Event]:
        """What is new of a run that was just found in its file."""
        known, track = self._known.get(run.ref), self._tracks.get(run.ref)
        if known is not None and file.several and (track is None or not file.still):  # noqa: SIM102
            if same_but_for_time(known.summary, run):
                return
        if track is None and known is not None:
            track = self._resume(file, known, run)
        if track is None:
            if known is not None and known.told:
                known.told = False
                yield from self._reset(file, run.ref)
            track = Track(self._source, run.ref)
        track.read()
        self._keep(track)
        yield from self.read_on(file, track)

    def read_on(self, file: FollowedFile, track: Track) -> Iterator[Event]:
        """Tell what a reader has just read; what more there is comes after the other files had their turn."""
        if track.reader.failure is None:
            yield from self._tell(file, track)
            if track.reader.more:
                self._agenda.add(file.entry.path, time.monotonic())

    def _resume(self, file: FollowedFile, known: Known, run: RunSummary) -> Track | None:
        """A reader that has skipped what is known already; None if the run must be read as a new one.

        Only of a file that was not touched it is known that what was told of it still holds.
        """
        grown = None if known.told else file.grown
        if file.several or known.rewritten or not (file.untouched or grown is not None):
            return None
        track = Track(self._source, run.ref)
        found = track.skip(grown)
        if found is None:
            return None
        if known.told:
            return track if same_but_for_time(known.summary, found.summary) else None
        return track if _begins_alike(known.summary, found.summary) else None

    def _reset(self, file: FollowedFile, ref: RunRef) -> Iterator[Event]:
        """Nothing holds that was told of a run or of its file; what still does is told again."""
        file.told = None
        for other in file.refs:
            if (track := self._tracks.get(other)) is not None and other != ref:
                track.problems_again()
        yield RunReset(ref.address)

    def _tell(self, file: FollowedFile, track: Track) -> Iterator[Event]:
        run = track.reader.build()
        known = self._known.get(track.ref)
        spans = track.news(run)
        summary = plain(run.summary)
        if known is None:
            known = self._known[track.ref] = Known(summary=summary)
            self._related, differs = False, True
        else:
            if track.reader.reset and known.told:
                known.told = False
                yield from self._reset(file, track.ref)
            differs = summary != known.summary if known.told else not same_but_for_time(summary, known.summary)
            self._related = self._related and _relation(summary) == _relation(known.summary)
            known.summary, known.rewritten = summary, False
        if spans or differs:
            if differs or not known.told:
                known.told = True
                yield RunChanged(summary, known.replay)
            for position in spans:
                yield SpanChanged(run, position)
        if known.told:
            yield from self._problems(file, track, run)
        if not track.reader.more:
            yield from self._ending(file, known, run)

    def _problems(self, file: FollowedFile, track: Track, run: Run) -> Iterator[Event]:
        passing = [problem for problem in run.problems[-PASSING_PROBLEMS:] if problem.may_pass]
        for problem in (*track.problems(run), *(passing if file.still else ())):
            yield from file.problem(problem)
        if passing and not file.still:
            self._agenda.add(file.entry.path, file.still_at)

    def _ending(self, file: FollowedFile, known: Known, run: Run) -> Iterator[Event]:
        summary = run.summary
        ended = _end(summary)
        if ended is not None and ended is not known.ended:
            yield RunEnded(known.summary)
        known.ended = ended
        if summary.seems_running or summary.unfinished:
            now = time.monotonic()
            self._agenda.add(file.entry.path, now + running_for(now - file.changed))

    def _keep(self, track: Track) -> None:
        self._tracks[track.ref] = track
        self._tracks.move_to_end(track.ref)
        if len(self._tracks) > READERS:
            ended = (ref for ref in self._tracks if ref in self._known and self._known[ref].ended is not None)
            del self._tracks[next(ended, next(iter(self._tracks)))]

    # ---- among runs

    def relations(self) -> Iterator[Event]:
        """Runs of which it is known only now which other run they replay."""
        if self._related:
            return
        self._related = True
        runs = [known.summary for known in self._known.values()]
        if not any(run.replay_of or run.replay_of_path for run in runs):
            return
        for ref, address in Relations(runs).replay_addresses().items():
            known = self._known[ref]
            if known.replay != address:
                known.replay = address
                if known.told:
                    yield RunChanged(known.summary, address)


def _end(summary: RunSummary) -> Status | None:
    return summary.status if summary.status in ENDED else None


def _relation(summary: RunSummary) -> tuple[str | None, ...]:
    return summary.id, summary.replay_of, summary.replay_of_path


def _begins_alike(one: RunSummary, other: RunSummary) -> bool:
    return (one.id, one.name, one.started_at, one.prompt) == (other.id, other.name, other.started_at, other.prompt)
