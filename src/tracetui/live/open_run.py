"""The file of the open run: its reader also serves the run list, so that the file isn't read twice."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from tracetui.live.scan import Found
from tracetui.sources.base import BudgetSpent, Entry, Stat
from tracetui.sources.budget import Budget

if TYPE_CHECKING:
    from tracetui.live.load import Reader

CATCH_UP_SECONDS: Final = 0.25
"""How long the list waits until the reader of the open run has read a change."""


class Cancelation(Budget):
    """An unlimited budget that ends as soon as another thread cancels it."""

    def __init__(self) -> None:
        super().__init__(1 << 62)

    def cancel(self) -> None:
        """Make the next read raise `BudgetSpent`."""
        self.left = -1

    def spend(self, size: int) -> None:
        if self.left < 0:
            self.spent = True
            raise BudgetSpent

    def spend_ops(self) -> bool:
        self.spent = self.left < 0
        return self.spent


class OpenRun:
    """What the opener has read of the open run, if its file contains no other run. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._path: str | None = None
        self._reading = False
        self._result: tuple[Found, Stat] | None = None
        self._counting: tuple[str, Cancelation] | None = None

    # ---- for the opener

    def begin(self, reader: Reader) -> None:
        """A run is read to its end now: cancels counting the same file."""
        with self._changed:
            self._path = reader.ref.path if reader.ref.key is None else None
            self._reading, self._result = True, None
            if self._counting is not None and self._counting[0] == self._path:
                self._counting[1].cancel()
            self._changed.notify_all()

    def publish(self, reader: Reader) -> None:
        """The run was read to the current end of its file."""
        with self._changed:
            self._reading, self._result = False, None
            if reader.ref.path == self._path and reader.failure is None and not reader.lost and reader.stat is not None:
                found = Found(path=reader.ref.path, format=reader.ref.format, runs=(reader.summary(),))
                self._result = found, reader.stat
            self._changed.notify_all()

    def end(self) -> None:
        """The run is not read on."""
        with self._changed:
            self._path, self._reading, self._result = None, False, None
            self._changed.notify_all()

    # ---- for the list

    def look(self, entry: Entry) -> Found | None:
        """The run of a file as the opener read it; None if the file must be read.

        Waits `CATCH_UP_SECONDS` for the opener to read the version of `entry`.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._path != entry.path or self._is_current(entry), CATCH_UP_SECONDS)
            return self._result[0] if self._result is not None and self._is_current(entry) else None

    def is_reading(self, path: str) -> bool:
        """Whether the opener reads this file to its end now."""
        with self._changed:
            return self._reading and self._path == path

    def counting(self, path: str) -> Cancelation:
        """The list begins to count this file, until it is canceled."""
        with self._changed:
            budget = Cancelation()
            self._counting = path, budget
            if self._reading and self._path == path:
                budget.cancel()
            return budget

    def forget(self, path: str) -> None:
        """The file may contain another run now: the list reads it."""
        with self._changed:
            if self._path == path:
                self._path, self._result = None, None

    def _is_current(self, entry: Entry) -> bool:
        if self._result is None or self._path != entry.path or entry.stat is None:
            return False
        stat = self._result[1]
        return (stat.device, stat.inode) == (entry.stat.device, entry.stat.inode) and (
            entry.stat.size <= stat.size and entry.stat.mtime_ns <= stat.mtime_ns
        )
