"""How a run went, found out after it was read: what was repeated, how near the limits came, where it was doomed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tracetui.model import Body, Run, Span, Status
from tracetui.store.loops import Candidate, Loop, candidates
from tracetui.store.statistics import Estimate, estimate_of
from tracetui.views.limits import Doomed, Trajectory, doomed, trajectories
from tracetui.views.loops import confirm
from tracetui.views.work import Work, work_of

MOST_CALLS: Final = 5_000
"""Calls whose bodies are compared."""
MOST_BYTES: Final = 64 << 20
"""Source text that is read for that."""


class Assessment(msgspec.Struct, frozen=True, eq=False):
    """What was found out about one state of a run, the one that `run` is: positions are in it."""

    run: Run
    loops: tuple[Loop, ...]
    limits: tuple[Trajectory, ...]
    doomed: Doomed | None
    left_out: int
    """Calls that may repeat others, but were not compared: there were too many."""
    estimate: Estimate | None = None
    """What the run costs by public prices, where its trace does not say it."""
    work: Work | None = None
    """Where its work went."""

    @property
    def told_doom(self) -> Doomed | None:
        """Where the run was doomed, if that tells more than its failure does: before it, or where a limit ended it."""
        violated = any(limit.violated for limit in self.run.body.limits)
        return self.doomed if violated else self.turning_point

    @property
    def turning_point(self) -> Doomed | None:
        """Where the run was doomed, unless that step says so itself: it failed."""
        span = self.run.span(self.doomed.span) if self.doomed is not None else None
        return self.doomed if span is not None and span.status is not Status.ERROR else None


def assess(
    run: Run, body_of: Callable[[Span], Body], *, most_calls: int = MOST_CALLS, most_bytes: int = MOST_BYTES
) -> Assessment:
    """Compare what may be repeated, up to so many calls and bytes. Not for the thread that draws."""
    budget = _Budget(body_of, most_bytes)
    loops: list[Loop] = []
    left_out = 0
    for candidate in candidates(run):
        count = len(candidate.calls)
        room = min(most_calls, count)
        room -= room % candidate.period
        found = _within(run, Candidate(candidate.calls[:room], candidate.period), budget)
        compared = room if found is not None else 0
        most_calls -= compared
        left_out += count - compared
        loops += found or ()
    doom = doomed(run, loops)
    return Assessment(run, tuple(loops), tuple(trajectories(run)), doom, left_out, estimate_of(run), work_of(run))


def _within(run: Run, candidate: Candidate, budget: _Budget) -> list[Loop] | None:
    """The loops in a candidate; None if there is no more room for it."""
    if len(candidate.calls) < 2 * candidate.period:
        return None
    try:
        return confirm(run, candidate, budget.load)
    except _SpentError:
        return None


class _SpentError(Exception):
    """Enough was read."""


class _Budget:
    """Loads bodies as long as they are not too large together."""

    def __init__(self, body_of: Callable[[Span], Body], most_bytes: int) -> None:
        self._body_of, self._left = body_of, most_bytes

    def load(self, span: Span) -> Body:
        if self._left <= 0:
            raise _SpentError
        body = self._body_of(span)
        self._left -= len(body.raw)
        return body
