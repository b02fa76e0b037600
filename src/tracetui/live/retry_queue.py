"""When to check a file again that does not change, and how long a file must be unchanged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from tracetui.sources.base import MOVING_SECONDS, Stat

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
