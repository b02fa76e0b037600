"""Garbage collection while nothing is painted: in the response to a key, it would add 1 to 10 ms to one key in ten."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Final

PAUSE_SECONDS: Final = 0.025
"""Pause after a frame: the response to a key has two, and a held key comes 30 times a second."""
REST_SECONDS: Final = 1.5
"""Pause after a key before a full collection, which can take 50 ms."""
YOUNG: Final = 500
"""New objects that are worth a collection."""
MIDDLE, FULL = 10, 20
"""Collections of a generation after which the next one is collected too, as Python does."""


class GarbageCollector:
    """Collects garbage after frames. Python's own collections remain, with a high threshold, for a busy app."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._due = self._key_at = 0.0

    def key(self) -> None:
        """A key was pressed."""
        self._key_at = time.monotonic()

    def painted(self) -> None:
        """A frame was painted: collect after a pause. Needs a running event loop."""
        self._due = time.monotonic() + PAUSE_SECONDS
        if self._timer is None:
            self._wait(PAUSE_SECONDS)

    @property
    def rests(self) -> bool:
        """Whether no collection is due."""
        return self._timer is None

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._collect)

    def _collect(self) -> None:
        self._timer, now = None, time.monotonic()
        if now < self._due:
            self._wait(self._due - now)
        elif gc.isenabled():  # not while the list is read
            young, middle, full = gc.get_count()
            if full >= FULL and now - self._key_at >= REST_SECONDS:
                gc.collect()
            elif young >= YOUNG:
                gc.collect(1 if middle >= MIDDLE else 0)
