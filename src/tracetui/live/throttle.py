"""Throttle the workers before the first paint, after a key press and while the app handles mail.
Also when a file that does not change is checked again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from tracetui.sources.base import MOVING_SECONDS, Stat

PAINT_SECONDS: Final = 0.05
"""Duration of the first paint; scanning on would only slow it down."""
PATIENCE_SECONDS: Final = 0.5
"""Longest wait for an app that does not resume the workers."""
KEY_SECONDS: Final = 0.015
"""Pause after a key press, long enough to paint it. A key held down leaves the workers half of the time."""


class Throttle:
    """Shared by the app and its workers."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._screen_ready = threading.Event()
        self._painted = threading.Event()
        self._listed = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._key_until = 0.0

    @property
    def stopped(self) -> bool:
        """True once the workers must end."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Signal the workers to end, and release all that wait."""
        for event in (self._stopped, self._screen_ready, self._painted, self._listed, self._idle):
            event.set()

    def screen_ready(self) -> None:
        """Report that a screen takes mail."""
        self._screen_ready.set()

    def pause(self) -> None:
        """Suspend the workers until `resume`: two threads that compute take twice as long each."""
        self._idle.clear()

    def resume(self) -> None:
        """Let the workers go on."""
        self._idle.set()

    def yield_to_key(self) -> None:
        """Make the workers pause briefly: a key was pressed, or its answer is ready to paint."""
        self._key_until = time.monotonic() + KEY_SECONDS

    def wait_until_idle(self, bell: threading.Event | None = None) -> None:
        """Wait while the app is busy; after a key press only until `bell` is set. Costs next to nothing otherwise."""
        if not self._idle.is_set():
            self._idle.wait(PATIENCE_SECONDS)
        if (rest := self._key_until - time.monotonic()) > 0:
            (bell or self._stopped).wait(min(rest, KEY_SECONDS))

    def wait_for_paint(self) -> None:
        """Wait until the first rows are painted."""
        if not self._painted.is_set() and self._screen_ready.wait(PATIENCE_SECONDS):
            self._painted.wait(PAINT_SECONDS)
        self._painted.set()

    def list_complete(self) -> None:
        """Report that every run is counted."""
        self._listed.set()

    def wait_for_list(self) -> None:
        """Wait until the complete list is painted. Waits no longer than `PATIENCE_SECONDS`."""
        if self._listed.wait(PATIENCE_SECONDS):
            self._stopped.wait(PAINT_SECONDS)

    def wait_for_stop(self, seconds: float) -> bool:
        """Wait `seconds`, or until the workers must end; return whether they must."""
        return self._stopped.wait(seconds)


STILL_SECONDS: Final = 2.0
"""A file that cannot be read may be half written: it is reported as broken once unchanged for this long."""
RETRY_SECONDS: Final = 1.0
"""Delay before the next attempt to reach a source."""


class RetryQueue:
    """Paths and their due times on the clock of `time.monotonic`. Used by one thread."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        """May contain canceled times, which are dropped when they come up."""

    def schedule(self, path: str, when: float) -> None:
        """Check `path` at `when`, or earlier if already scheduled."""
        if when < self._when.get(path, float("inf")):
            self.reschedule(path, when)

    def reschedule(self, path: str, when: float) -> None:
        """Check `path` at `when`, and not before."""
        self._when[path] = when
        heappush(self._heap, (when, path))

    def cancel(self, path: str) -> None:
        """Remove `path` from the queue."""
        self._when.pop(path, None)

    def wait_seconds(self, longest: float) -> float:
        """Seconds until the next path may be due, at most `longest`."""
        return min(longest, max(0.0, self._heap[0][0] - time.monotonic())) if self._heap else longest

    def pop_due(self) -> Iterator[str]:
        """Remove and yield the paths that are due."""
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, path = heappop(self._heap)
            if self._when.get(path) == when:
                del self._when[path]
                yield path


def settle_seconds(stat: Stat | None) -> float:
    """Seconds for which an unreadable file must be unchanged before it is reported as broken.

    Longer for an empty file: a buffering writer leaves it empty until it has output.
    """
    return STILL_SECONDS if stat is None or stat.size else MOVING_SECONDS


def running_seconds(still: float) -> float:
    """Seconds until a run that seems to be running may stop seeming so.

    Its file has been unchanged for `still` seconds. If the run still seems to be running after that, the file's clock
    is ahead of ours by an unknown amount: it is checked rarely.
    """
    left = MOVING_SECONDS - still
    return max(STILL_SECONDS, left) if left > 0 else MOVING_SECONDS
