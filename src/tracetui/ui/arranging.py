"""When the run list is arranged anew: at once where somebody waits for it, seldom while thousands of files arrive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from tracetui.views import states

if TYPE_CHECKING:
    from tracetui.ui.screens.main import MainScreen

REST_SECONDS: Final = 0.1
"""While files arrive, the list changes no oftener than people read."""


class Arranging:
    """Keeps the run list of the main screen at the state of the store."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._arranged = -1
        self._behind = False
        self._after = 0.0

    @property
    def due(self) -> bool:
        """Whether the store has changed since the list was arranged."""
        return self._arranged != self._screen.store.revision or self._arranged < 0

    def changed(self, *, last: bool) -> None:
        """Show the list and what is said of it anew — now if it was not just now, else soon: while thousands of files
        arrive, ten times as much of the loop is left for the reader as is spent on arranging.
        """
        wait = 0.0 if last or self._arranged < 0 else self._after - time.monotonic()
        if wait <= 0:
            self.now()
            self._screen.refresh_frame()
        elif not self._behind:
            self._behind = True
            self._screen.set_timer(wait, self._catch_up)

    def _catch_up(self) -> None:
        self._behind = False
        if self.due:
            with self._screen.app.engine.pause(), self._screen.app.batch_update():
                self.now()
                self._screen.refresh_frame()

    def now(self) -> None:
        """Show the runs as they are known now; the cursor stays on its run."""
        screen, store = self._screen, self._screen.store
        began = time.monotonic()
        self._arranged = store.revision
        problems = [one for several in store.problems.values() for one in several[:1]]
        screen.runs.list_runs(
            store.runs.values(),
            problems,
            now=screen.app.clock(),
            total=len(store.runs),
            stands=screen.live.state_in_list,
            going=screen.live.is_going,
            ties=screen.comparing.ties,
        )
        if not len(screen.runs.rows):
            words = screen.runs.arrangement.words
            screen.runs.nothing(states.empty(screen.app.roots, screen.app.stage, words, bool(store.runs)))
        screen.listed()
        now = time.monotonic()
        self._after = now + max(REST_SECONDS, 10 * (now - began))
