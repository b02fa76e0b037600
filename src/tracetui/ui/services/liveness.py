"""Liveness of runs without an end record (running, quiet, stalled), and of the connection to the directory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from tracetui.analysis.liveness import (
    UNKNOWN_MS,
    UNKNOWN_PACE,
    Liveness,
    State,
    UsualDuration,
    current_state,
    has_ended,
    liveness,
    summary_state,
)
from tracetui.live.mailbox import WatchState
from tracetui.masking import one_line
from tracetui.model import RUNNING_STATES, Run, RunRef, RunState, RunSummary
from tracetui.store.store import Store
from tracetui.text import Clean
from tracetui.ui.services.pacing import rest_seconds
from tracetui.ui.widgets.frame import Vitals
from tracetui.views.glyphs import Glyphs
from tracetui.views.labels import Standing, standing_of
from tracetui.views.rows import Line, Piece
from tracetui.views.timeline.header import arrival_counts, liveness_sentence, liveness_strip

_STALE_NOTE: Final = "; showing cached data"


class LivenessTracker:
    """Computes the liveness of runs, at most once a second each."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self.watching = WatchState()
        """State of the watcher."""
        self._cached: tuple[tuple[Run, int, float], Liveness] | None = None
        self._paces: dict[RunRef, UsualDuration] = {}
        """The pace of each run without an end that was read."""
        self._counted = (-1, 0)
        self._count_after = 0.0
        self._state_counts: Counter[RunState | None] = Counter()
        self._listed_counts: tuple[Sequence[RunSummary], int, Counter[RunState | None]] | None = None
        """States of the runs that a filter shows, by the second."""

    def state_of(self, run: Run) -> Liveness:
        """Liveness of an open run, from all of its spans; cached for a second."""
        now, changed_at = self._clock(), self._store.changed_at(run.summary)
        key = (run, int(now), changed_at)
        if self._cached is None or self._cached[0] != key:
            pulse = self._store.pulses.get(run.summary.ref)
            arrivals = tuple(pulse.arrivals) if pulse is not None else ()
            run_liveness = liveness(run, now=now, arrivals=arrivals, changed_at=changed_at)
            self._cached = key, run_liveness
            if run_liveness.state is not State.ENDED:
                self._paces[run.summary.ref] = run_liveness.usual
        return self._cached[1]

    def state_in_list(self, run: RunSummary) -> State:
        """State of a run of the list, from its summary; that of the open run as elsewhere on the screen."""
        if has_ended(run):
            return State.ENDED  # most runs
        changed_at, seen = self._store.changed_at(run), run.ref in self._store.pulses
        usual = self._paces.get(run.ref, UNKNOWN_PACE)
        state = summary_state(run, now=self._clock(), changed_at=changed_at, seen=seen, usual=usual)[0]
        opened = self._cached[0][0] if self._cached is not None and state is not State.ENDED else None
        return state if opened is None or opened.summary.ref != run.ref else self.state_of(opened).state

    def status_of(self, run: RunSummary, glyphs: Glyphs) -> Standing:
        """The displayed state of a run of the list."""
        return standing_of(run, self.state_in_list(run), self._clock(), glyphs)

    def is_going(self, run: RunSummary) -> bool:
        """Whether a run of the list is running, quiet or stalled."""
        return self._may_be_active(run) and self.run_state(run) in RUNNING_STATES

    def run_state(self, run: RunSummary) -> RunState | None:
        """What a run of the list does now, as queries and counts have it."""
        return current_state(run, self.state_in_list(run), now=self._clock()).state

    def _may_be_active(self, run: RunSummary) -> bool:
        """Cheap check: False for a run that has been silent for too long to be active."""
        return run.modified_at > self._clock() - UNKNOWN_MS / 1000 or run.ref in self._store.pulses

    def active_runs(self) -> list[RunSummary]:
        """The runs without an end that may be active: those whose state changes with time."""
        runs = map(self._store.runs.__getitem__, self._store.unended)
        return [run for run in runs if self._may_be_active(run)]

    def count_states(self) -> Counter[RunState | None]:
        """Count the top-level runs without an end by state.

        Recounts once a second and when the store changes, as often as `rest_seconds` allows.
        """
        store, now = self._store, int(self._clock())
        if self._counted != (store.revision, now) and time.monotonic() >= self._count_after:
            began = time.thread_time()
            self._counted = store.revision, now
            self._state_counts = Counter(self.run_state(run) for run in self.active_runs() if run.parent is None)
            self._count_after = time.monotonic() + rest_seconds(time.thread_time() - began)
        return self._state_counts

    def counts_changed(self) -> bool:
        """Whether `count_states` changed since the last call."""
        return self._state_counts != self.count_states()

    def _states_of(self, runs: Sequence[RunSummary]) -> Counter[RunState | None]:
        """Count these runs without an end by state, once a second and for other ones."""
        now = int(self._clock())
        if self._listed_counts is None or self._listed_counts[0] is not runs or self._listed_counts[1] != now:
            counts = Counter(self.run_state(run) for run in runs if self._may_be_active(run))
            self._listed_counts = runs, now, counts
        return self._listed_counts[2]

    def vitals(self, summary: RunSummary | None, run: Run | None, listed: Sequence[RunSummary] | None = None) -> Vitals:
        """Watcher state, run counts and state of the open run, given its summary and its read part.

        `listed`: the listed runs without an end, if a filter hides others.
        """
        state = self.state_in_list(summary) if summary is not None else State.ENDED
        if run is not None and state is not State.ENDED:
            state = self.state_of(run).state  # it may be read further than the list has it
        counts = self.count_states() if listed is None else self._states_of(listed)
        return Vitals(self.watching, counts, state, self._clock())

    # ---- text

    def strip(self, run: Run, width: int, glyphs: Glyphs) -> tuple[Line, Line] | None:
        """Silence strip of an open run; None if it ended, waits for people or the connection is lost."""
        run_liveness = self.state_of(run)
        going = current_state(run.summary, run_liveness.state, now=self._clock()).state in RUNNING_STATES
        if not going or self.watching.lost:
            return None
        pulse = self._store.pulses.get(run.summary.ref)
        counts = arrival_counts(pulse.arrivals if pulse else (), self._clock())
        return liveness_strip(run_liveness, width, glyphs, per_minute=counts)

    def alert(self, run: Run | None, width: int, glyphs: Glyphs) -> Line:
        """Alert for the status line: connection lost, open run missing or waiting too long."""
        if self.watching.lost:
            return (
                Piece(Clean("connection lost  "), "status.error bold"),
                Piece(one_line(self.watching.lost, 120), "text"),
                Piece(Clean("  ·  showing cached data; reconnecting"), "sec"),
            )
        if run is None:
            return ()
        if run.summary.ref not in self._store.runs:
            return (Piece(self._missing(run.summary.ref), "status.warn bold"), Piece(Clean(_STALE_NOTE), "sec"))
        return liveness_sentence(self.state_of(run), run, width, glyphs, now=self._clock())

    def _missing(self, ref: RunRef) -> Clean:
        """Reason why an open run is no longer listed."""
        problems = self._store.problems
        if ref.path in problems:
            return one_line(f"file no longer readable: {problems[ref.path][0].reason}", 200)
        others = any(other.path == ref.path for other in self._store.runs)
        return Clean("run no longer in its file" if others else "file deleted")
