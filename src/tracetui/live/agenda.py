"""Which files to look at again, and when, though nobody writes to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from heapq import heappop, heappush


class Agenda:
    """Paths and moments on the clock of `time.monotonic`; of several moments of a path the first one counts."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def add(self, path: str, when: float) -> None:
        """Look at `path` again at `when`, or before if that was planned already."""
        if when < self._when.get(path, float("inf")):
            self._when[path] = when
            heappush(self._heap, (when, path))

    def wait(self, longest: float) -> float:
        """Seconds until something is due, at most `longest`."""
        return min(longest, max(0.0, self._heap[0][0] - time.monotonic())) if self._heap else longest

    def due(self) -> Iterator[str]:
        """The paths whose moment has come; each once."""
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, path = heappop(self._heap)
            if self._when.get(path) == when:
                del self._when[path]
                yield path
