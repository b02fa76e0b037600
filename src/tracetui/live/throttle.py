"""When the workers may work: not before the first rows are painted, not while the app takes in what they made."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PAINT_SECONDS: Final = 0.05
"""What the first paint takes: until then scanning on would only slow it down."""
PATIENCE_SECONDS: Final = 0.5
"""How long a worker waits for an app that does not say that it goes on."""
KEY_SECONDS: Final = 0.015
"""How long workers rest after a key: by then it is on the screen. A key held down leaves them half of the time."""


class Traffic:
    """Shared by the app and its workers."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._bound = threading.Event()
        self._painted = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._key_until = 0.0

    @property
    def stopped(self) -> bool:
        """True once everything is to end."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Everything is to end, and nobody is to wait for anything."""
        for event in (self._stopped, self._bound, self._painted, self._idle):
            event.set()

    def bound(self) -> None:
        """There is a screen that takes mail."""
        self._bound.set()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hold the workers back while the app takes mail in: two that compute at once take twice as long each."""
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()

    def make_way(self) -> None:
        """A key was pressed, or its answer is to be painted: the workers rest for a moment."""
        self._key_until = time.monotonic() + KEY_SECONDS

    def give_way(self, bell: threading.Event | None = None) -> None:
        """Wait while the app is busy, after a key only until the `bell` rings. Else it costs next to nothing."""
        if not self._idle.is_set():
            self._idle.wait(PATIENCE_SECONDS)
        if (rest := self._key_until - time.monotonic()) > 0:
            (bell or self._stopped).wait(min(rest, KEY_SECONDS))

    def let_it_paint(self) -> None:
        """Wait, after the first rows, until they are on the screen."""
        if not self._painted.is_set() and self._bound.wait(PATIENCE_SECONDS):
            self._painted.wait(PAINT_SECONDS)
        self._painted.set()

    def rest(self, seconds: float) -> bool:
        """Do nothing for so long; True if everything is to end."""
        return self._stopped.wait(seconds)
