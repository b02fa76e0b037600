"""When to look at a file again though nobody writes to it, and what its standing still means."""

from __future__ import annotations

import time
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from tracetui.sources.base import MOVING_SECONDS, Stat

STILL_SECONDS: Final = 2.0
"""A file that cannot be read may be half written: it counts as broken once it was still for so long."""
RETRY_SECONDS: Final = 1.0
"""Before another attempt where the source could not be reached."""


class Agenda:
    """Paths and moments on the clock of `time.monotonic`. Used by one thread."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        """Also holds moments that count no more; each goes when it comes."""

    def add(self, path: str, when: float) -> None:
        """Look at `path` again at `when`, or before if that was planned already."""
        if when < self._when.get(path, float("inf")):
            self.move(path, when)

    def move(self, path: str, when: float) -> None:
        """Look at `path` again at `when`, and not before."""
        self._when[path] = when
        heappush(self._heap, (when, path))

    def drop(self, path: str) -> None:
        """Nothing is planned for `path` any more."""
        self._when.pop(path, None)

    def wait(self, longest: float) -> float:
        """Seconds until something may be due, at most `longest`."""
        return min(longest, max(0.0, self._heap[0][0] - time.monotonic())) if self._heap else longest

    def due(self) -> Iterator[str]:
        """The paths whose moment has come; each once."""
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, path = heappop(self._heap)
            if self._when.get(path) == when:
                del self._when[path]
                yield path


def patience(stat: Stat | None) -> float:
    """Seconds for which a file that cannot be read must have been still before it counts as broken.

    An empty one is given longer: writers that buffer leave it empty until they have something to write.
    """
    return STILL_SECONDS if stat is None or stat.size else MOVING_SECONDS


def running_for(still: float) -> float:
    """Seconds until a run that counts as running because its file changed lately may do so no more.

    The file has been still for `still` seconds. Where the run goes on to count as running after that, the clock of the
    file is ahead of ours, nobody knows how far: it is looked at seldom.
    """
    left = MOVING_SECONDS - still
    return max(STILL_SECONDS, left) if left > 0 else MOVING_SECONDS
