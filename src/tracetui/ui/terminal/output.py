"""The way out to the terminal: a thread of its own, so that a slow terminal never stops the program."""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

CHUNK: Final = 2048
"""Bytes offered at a time: what is pending is known so precisely."""
GIVE_UP_SECONDS: Final = 2.0
"""At the end: a terminal that took nothing for so long gets no more."""


class OutputWriter:
    """Writes to a file descriptor in the order of `write`, which never waits.

    What the terminal did not take yet is kept, however much it is: whoever paints looks at `pending_bytes` and waits.
    Once the terminal is gone everything is dropped.
    """

    def __init__(self, fileno: int, drained: Callable[[], None]) -> None:
        """`drained` is called, by the thread, whenever the terminal has taken everything."""
        self._fileno = fileno
        self._drained = drained
        self._parts: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._ending = self._lost = False
        self._moved_at = 0.0
        self._thread = threading.Thread(target=self._run, name="tracetui-output", daemon=True)
        self.sent_bytes = 0
        """Everything that was handed over."""
        self.pending_bytes = 0
        """What the terminal did not take yet."""

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Hand over what is to be written. Any thread may call."""
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
        """For how long the terminal has taken nothing, although there was something to take; 0 if all is taken."""
        with self._changed:
            return time.monotonic() - self._moved_at if self.pending_bytes else 0.0

    def stop(self) -> None:
        """Write the rest and end; a terminal that takes nothing for `GIVE_UP_SECONDS` is left as it is."""
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
        """Everything that waits; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._parts or self._ending)
            data = b"".join(self._parts)
            self._parts.clear()
            return data or None

    def _put(self, chunk: bytes) -> None:
        while chunk:
            try:
                taken = 0 if self._lost else os.write(self._fileno, chunk)
            except BlockingIOError:  # somebody else made the terminal non-blocking
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
