"""When the run list is arranged anew: at once where somebody waits for it, seldom while thousands of files arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Final

from tracetui.model import RunRef, RunSummary
from tracetui.views import states
from tracetui.views.arrange import place_of

if TYPE_CHECKING:
    from tracetui.store.known import Known
    from tracetui.ui.screens.main import MainScreen
    from tracetui.views.runs import RunRows

REST_SECONDS: Final = 0.1
"""While files arrive, the list changes no oftener than people read."""
SHARE: Final = 12
"""Arranging takes at most one part in so many of the time: the rest is for keys."""
MANY: Final = 1_000
"""Runs from which arranging them holds the loop for too long: then a thread does it, where nobody waits for it."""


class Arranging:
    """Keeps the run list of the main screen at the state of the store."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._arranged = self._members = -1
        self._behind = False
        self._after = 0.0
        self._places: dict[RunRef, Hashable] = {}
        self._apart: list[RunSummary] | None = None
        """While a thread arranges: the runs that changed since it was given them."""

    @property
    def due(self) -> bool:
        """Whether the store has changed since the list was arranged."""
        return self._arranged != self._screen.store.revision or self._arranged < 0

    @property
    def settled(self) -> bool:
        """Whether no thread is at it."""
        return self._apart is None

    @property
    def whole(self) -> bool:
        """Whether the runs that are shown are those of the store."""
        return self._members == self._screen.store.members

    def has_come_to(self, ref: RunRef) -> bool:
        """Whether the run has its row, or will have none as things are."""
        return self.whole or self._screen.runs.rows.index(ref) is not None

    def changed(self, *, last: bool) -> None:
        """Show the list and what is said of it anew: the rows that are there at once, where they belong now if that was
        not found out just now, else soon. A list that is not on the screen waits until it is.
        """
        screen, store = self._screen, self._screen.store
        if last or self._arranged < 0:
            self.soon()
        elif screen.runs.is_on_screen:
            touched = store.touched()
            screen.runs.renew(touched)
            if self._apart is not None:
                self._apart += touched
            came_or_went = self._members != store.members
            if came_or_went and time.monotonic() >= self._after:
                self.soon()
            elif not came_or_went and not self._behind and not self._moved(touched):
                self._arranged = store.revision
            else:
                self._later()
        screen.refresh_frame()

    def _moved(self, touched: Iterable[RunSummary]) -> bool:
        """Whether a run belongs elsewhere now: only of those that go on it is remembered where they stood."""
        place = self._place()
        return any(place(run) != self._places.get(run.ref) for run in touched)

    def _place(self) -> Callable[[RunSummary], Hashable]:
        screen = self._screen
        arrangement = screen.runs.arrangement
        return place_of(arrangement, now=screen.app.clock(), going=screen.live.is_going, context=self._context)

    @property
    def _context(self) -> Known | None:
        """What a query can ask; nobody asks while there is none."""
        return self._screen.filtering.context if self._screen.runs.arrangement.words else None

    def _later(self) -> None:
        if not self._behind:
            self._behind = True
            self._screen.set_timer(max(REST_SECONDS, self._after - time.monotonic()), self._catch_up)

    def _catch_up(self) -> None:
        self._behind = False
        if self.due and self._screen.runs.is_on_screen:
            with self._screen.app.engine.pause(), self._screen.app.batch_update():
                self.soon()
                self._screen.refresh_frame()

    def shown(self) -> None:
        """The list is on the screen, perhaps again: show it as it is now."""
        if self.due and self._screen.runs.is_on_screen:
            with self._screen.app.engine.pause(), self._screen.app.batch_update():
                self.now()
                self._screen.refresh_frame()

    def now(self) -> None:
        """Show the runs as they are known now; the cursor stays on its run."""
        began = time.monotonic()
        make = self._begin()
        self._apart = None
        self._show(make(), time.monotonic() - began)

    def soon(self) -> None:
        """The same, apart from the loop if there are so many that keys would have to wait."""
        screen = self._screen
        if len(screen.store.runs) < MANY or screen.runs.arrangement.words:
            self.now()
        elif self._apart is not None:
            self._later()
        else:
            make, late = self._begin(), list[RunSummary]()
            self._apart = late

            def work() -> Callable[[], None]:
                began = time.thread_time()
                rows = make()
                rows.prepare()
                took = time.thread_time() - began
                return lambda: self._arrived(rows, late, took)

            screen.app.engine.apart(work)

    def _arrived(self, rows: RunRows, late: list[RunSummary], took: float) -> None:
        """A thread has arranged the runs; it was for nothing if somebody could not wait."""
        if self._apart is late:
            self._apart = None
            for run in late:
                rows.renew(run)
            self._show(rows, took)

    def _begin(self) -> Callable[[], RunRows]:
        """What arranges the runs as they are known at this moment."""
        screen, store = self._screen, self._screen.store
        self._arranged, self._members = store.revision, store.members
        store.touched()
        place = self._place()
        self._places = {ref: place(store.runs[ref]) for ref in store.unended}
        return screen.runs.arranger(
            store.runs.values(),
            (one for several in store.problems.values() for one in several[:1]),
            now=screen.app.clock(),
            stands=screen.live.state_in_list,
            going=screen.live.is_going,
            ties=screen.ties,
            context=self._context,
        )

    def _show(self, rows: RunRows, took: float) -> None:
        """Show what was arranged; `took` is for how many seconds others had to wait for it."""
        screen, began = self._screen, time.monotonic()
        screen.runs.show_runs(rows, len(screen.store.runs))
        if not len(rows):
            words = screen.runs.arrangement.words
            screen.runs.nothing(states.empty(screen.app.roots, screen.app.stage, words, bool(screen.store.runs)))
        screen.listed()
        now = time.monotonic()
        self._after = now + max(REST_SECONDS, SHARE * (took + now - began))
