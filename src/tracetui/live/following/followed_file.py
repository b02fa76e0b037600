"""One file that is followed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from tracetui.live.agenda import patience
from tracetui.model import Problem, RunRef
from tracetui.model.event import Event, ProblemMet
from tracetui.sources.base import Entry, Stat


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
