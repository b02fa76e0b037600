"""The file of the open run: its reader also serves the run list, so that the file isn't read twice."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from tracetui.live.load import database_state
from tracetui.live.scan import Found
from tracetui.model import RunSummary
from tracetui.sources.base import BudgetSpent, Entry, Source, Stat
from tracetui.sources.budget import Budget

if TYPE_CHECKING:
    from tracetui.live.load import Reader

LISTED: Final = 8
"""Databases whose last result in the list is cached."""
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


class Version(NamedTuple):
    """The version of a database: of its files, and of the runs beside the open one."""

    state: tuple[int, ...] | None
    others: Any


class OpenRun:
    """What the opener has read of the open run. Thread-safe.

    If its file is a database with other runs, the list's last result has those, as long as they stay as they are.
    """

    def __init__(self, source: Source | None = None) -> None:
        """With a `source`, it also serves runs of databases."""
        self._source = source
        self._changed = threading.Condition()
        self._path: str | None = None
        """A file with no other run."""
        self._reader: Reader | None = None
        """Of a run of a database."""
        self._state: tuple[int, ...] | None = None
        """The version of the database that it has read."""
        self._others: Any = None
        self._row: RunSummary | None = None
        self._listed: tuple[Any, Found] | None = None
        """The last result of the list, and the state of the other runs then."""
        self._seen: dict[str, tuple[tuple[int, ...] | None, Found]] = {}
        """Results of the list for databases, and the version of each."""
        self._reading = False
        self._result: tuple[Found, Stat] | None = None
        self._counting: tuple[str, Cancelation] | None = None

    # ---- for the opener

    def begin(self, reader: Reader) -> None:
        """A run is read to its end now: cancels counting the same file."""
        with self._changed:
            self._path = reader.ref.path if reader.ref.key is None else None
            if reader is not self._reader:
                self._reader = reader if self._path is None else None
                self._state = self._others = self._row = self._listed = None
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
            elif reader is self._reader:
                self._publish_row(reader)
            self._changed.notify_all()

    def _publish_row(self, reader: Reader) -> None:
        self._state = self._others = self._row = None
        if reader.failure is None and not reader.lost and not reader.more:
            self._state, self._others, self._row = reader.state, reader.others, reader.summary()
        if self._listed is not None and self._listed[0] != self._others:
            self._listed = None
        seen = self._seen.get(reader.ref.path)
        if (
            self._listed is None
            and self._others is not None
            and seen is not None
            and seen[0] == self._state is not None
        ):
            self._listed = self._others, seen[1]

    def end(self) -> None:
        """The run is not read on."""
        with self._changed:
            self._path, self._reading, self._result = None, False, None
            self._reader = self._state = self._others = self._row = self._listed = None
            self._changed.notify_all()

    # ---- for the list

    def look(self, entry: Entry) -> Found | None:
        """The run of a file as the opener read it; None if the file must be read.

        Waits `CATCH_UP_SECONDS` for the opener to read the version of `entry`.
        """
        with self._changed:
            if self._reader is not None and self._reader.ref.path == entry.path and self._source is not None:
                state = database_state(self._source, entry.path)
                self._changed.wait_for(lambda: self._state == state or self._listed is None, CATCH_UP_SECONDS)
                if self._listed is None or self._row is None or self._state != state:
                    return None
                found, row = self._listed[1], self._row
                return structs.replace(found, runs=tuple([row if run.ref == row.ref else run for run in found.runs]))
            self._changed.wait_for(lambda: self._path != entry.path or self._is_current(entry), CATCH_UP_SECONDS)
            return self._result[0] if self._result is not None and self._is_current(entry) else None

    def version(self, path: str) -> Version:
        """The current version of a database, for `listed`."""
        with self._changed:
            is_open = self._reader is not None and self._reader.ref.path == path
            state = None if self._source is None else database_state(self._source, path)
            return Version(state, self._others if is_open else None)

    def listed(self, found: Found, version: Version) -> None:
        """The list has read a file; `version` was its version before."""
        if found.unread or not found.runs or found.runs[0].ref.key is None:
            return
        with self._changed:
            self._seen[found.path] = version.state, found
            if len(self._seen) > LISTED:
                self._seen.pop(next(iter(self._seen)))
            is_open = self._reader is not None and self._reader.ref.path == found.path
            if is_open and version.others is not None and self._others == version.others:
                self._listed = version.others, found

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
            if self._reader is not None and self._reader.ref.path == path:
                self._listed = None

    def _is_current(self, entry: Entry) -> bool:
        if self._result is None or self._path != entry.path or entry.stat is None:
            return False
        stat = self._result[1]
        return (stat.device, stat.inode) == (entry.stat.device, entry.stat.inode) and (
            entry.stat.size <= stat.size and entry.stat.mtime_ns <= stat.mtime_ns
        )
