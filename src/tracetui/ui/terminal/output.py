"""Buffered output to the terminal by a thread, so that a slow terminal never blocks the program."""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

CHUNK: Final = 2048
"""Bytes per write: the precision of `pending_bytes`."""
GIVE_UP_SECONDS: Final = 2.0
"""At exit: longest wait for a terminal that accepts nothing."""


class OutputWriter:
    """Writes to a file descriptor, in order; `write` never blocks.

    The buffer is unbounded: the painter must check `pending_bytes`. Drops all output once the terminal is gone.
    """

    def __init__(self, fileno: int, drained: Callable[[], None]) -> None:
        """`drained`: called by the thread whenever the buffer is empty."""
        self._fileno = fileno
        self._drained = drained
        self._parts: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._ending = self._lost = False
        self._moved_at = 0.0
        self._thread = threading.Thread(target=self._run, name="tracetui-output", daemon=True)
        self.sent_bytes = 0
        """Total bytes passed to `write`."""
        self.pending_bytes = 0
        """Bytes not yet accepted by the terminal."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue data for writing. Callable from any thread."""
        with self._changed:
            self.sent_bytes += len(data)
            if self._lost or not data:
                return
            if not self._parts:
                self._moved_at = time.monotonic()
            self._parts.append(data)
            self.pending_bytes += len(data)
            self._changed.notify_all()

    @property
    def stuck_seconds(self) -> float:
        """Seconds since the terminal last accepted output; 0 if nothing is pending."""
        with self._changed:
            return time.monotonic() - self._moved_at if self.pending_bytes else 0.0

    def stop(self) -> None:
        """Write the rest and stop; gives up after `GIVE_UP_SECONDS` without progress."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        while self._thread.is_alive() and self.stuck_seconds < GIVE_UP_SECONDS:
            self._thread.join(0.05)

    # ---- the thread

    def _run(self) -> None:
        while (data := self._next()) is not None:
            for at in range(0, len(data), CHUNK):
                self._put(data[at : at + CHUNK])
            if not self.pending_bytes:
                self._drained()

    def _next(self) -> bytes | None:
        """Wait for data; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._parts or self._ending)
            data = b"".join(self._parts)
            self._parts.clear()
            return data or None

    def _put(self, chunk: bytes) -> None:
        while chunk:
            try:
                taken = 0 if self._lost else os.write(self._fileno, chunk)
            except BlockingIOError:  # another process made the terminal non-blocking
                select.select([], [self._fileno], [], 1.0)
                continue
            except OSError:
                taken = 0
                self._lost = True
            if self._lost:
                taken = len(chunk)
            chunk = chunk[taken:]
            with self._changed:
                self.pending_bytes -= taken
                self._moved_at = time.monotonic()
