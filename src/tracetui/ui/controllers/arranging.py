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

REST_SECONDS: Final = 0.1
"""While files arrive, the list changes no oftener than people read."""
SHARE: Final = 12
"""Arranging takes at most one part in so many of the loop: the rest is for keys."""


class Arranging:
    """Keeps the run list of the main screen at the state of the store."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._arranged = self._members = -1
        self._behind = False
        self._after = 0.0
        self._places: dict[RunRef, Hashable] = {}

    @property
    def due(self) -> bool:
        """Whether the store has changed since the list was arranged."""
        return self._arranged != self._screen.store.revision or self._arranged < 0

    def changed(self, *, last: bool) -> None:
        """Show the list and what is said of it anew: the rows that are there at once, where they belong now if that was
        not found out just now, else soon. A list that is not on the screen waits until it is.
        """
        screen, store = self._screen, self._screen.store
        wait = max(0.0, self._after - time.monotonic())
        if last or self._arranged < 0:
            self.now()
        elif screen.runs.is_on_screen:
            touched = store.touched()
            screen.runs.renew(touched)
            came_or_went = self._members != store.members
            if came_or_went and not wait:
                self.now()
            elif not came_or_went and not self._behind and not self._moved(touched):
                self._arranged = store.revision
            elif not self._behind:
                self._behind = True
                screen.set_timer(max(wait, REST_SECONDS), self._catch_up)
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

    def _catch_up(self) -> None:
        self._behind = False
        self.shown()

    def shown(self) -> None:
        """The list is on the screen, perhaps again: show it as it is now."""
        if self.due and self._screen.runs.is_on_screen:
            with self._screen.app.engine.pause(), self._screen.app.batch_update():
                self.now()
                self._screen.refresh_frame()

    def now(self) -> None:
        """Show the runs as they are known now; the cursor stays on its run."""
        screen, store = self._screen, self._screen.store
        began = time.monotonic()
        self._arranged, self._members = store.revision, store.members
        store.touched()
        problems = [one for several in store.problems.values() for one in several[:1]]
        screen.runs.list_runs(
            store.runs.values(),
            problems,
            now=screen.app.clock(),
            total=len(store.runs),
            stands=screen.live.state_in_list,
            going=screen.live.is_going,
            ties=screen.ties,
            context=self._context,
        )
        if not len(screen.runs.rows):
            words = screen.runs.arrangement.words
            screen.runs.nothing(states.empty(screen.app.roots, screen.app.stage, words, bool(store.runs)))
        place = self._place()
        self._places = {ref: place(store.runs[ref]) for ref in store.unended}
        screen.listed()
        now = time.monotonic()
        self._after = now + max(REST_SECONDS, SHARE * (now - began))
