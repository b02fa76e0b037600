"""Read files in full: growing ones incrementally, large ones in a separate thread, the smallest first."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from tracetui.formats.base import Format
from tracetui.live.mailbox import Throttle
from tracetui.live.readers import Readers, UntilOpened
from tracetui.live.scan import ScannedFile, Scanner
from tracetui.live.watch import RETRY_SECONDS
from tracetui.sources.base import MOVING_SECONDS, Entry, LinkLost, Source
from tracetui.sources.file_views import Budget

OPEN_SECONDS: Final = 0.1
"""How often to check whether the open run was read."""
LARGE: Final = 32 << 20
"""Bytes that take about half a second to count."""


def is_large(entry: Entry) -> bool:
    """Whether reading the file may take long."""
    return entry.stat is not None and entry.stat.size > LARGE


class DeepReader(Scanner):
    """Reads files in full, and files that change repeatedly only as far as they are new. Used by one thread."""

    def __init__(self, source: Source, roots: Sequence[str], only: Format | None, readers: Readers) -> None:
        super().__init__(source, roots, only)
        self._readers = readers

    def count(self, entry: Entry, name: str, budget: Budget | None = None) -> ScannedFile:
        """Read a file for the first time; `name` is its format, empty if unknown. Raises `LinkLost`."""
        if name and not self._is_to_be_stored(entry) and self._readers.attended(entry.path) is not None:
            result = self._readers.read_new(entry.path)
            if result is not None:
                return result
        result = self.read(entry, budget, name=name)
        if is_large(entry) and not result.unread:
            self._readers.follow(result)
        return result

    def _is_to_be_stored(self, entry: Entry) -> bool:
        """Whether to read a file of the open run for the cache, which only takes its own readings."""
        is_moving = entry.stat is None or time.time() - entry.stat.mtime < MOVING_SECONDS
        return self.cache is not None and not is_moving and not is_large(entry)

    def read_changed(self, entry: Entry, budget: Budget | None = None) -> ScannedFile:
        """Read a file that has changed. Raises `LinkLost`."""
        result = self._readers.read_new(entry.path)
        if result is None:
            result = self.rescan(entry, budget=budget)
            self._readers.follow(result)
        return result

    def forget(self, path: str) -> None:
        """Drop the state of a deleted or replaced file."""
        super().forget(path)
        self._readers.forget(path)


class Task(NamedTuple):
    """A large file to read."""

    entry: Entry
    format: str | None = None
    """The format for a first read with `DeepReader.count`; None for a changed file."""


class LargeFiles:
    """Queue of large files, and their results. Used by the lister's thread; its own thread only reads."""

    def __init__(self, reader: DeepReader, throttle: Throttle, readers: Readers) -> None:
        self._reader, self._throttle, self._readers = reader, throttle, readers
        self._changed = threading.Condition()
        self._tasks: dict[str, Task] = {}
        self._running: Task | None = None
        self._results: list[tuple[Task, ScannedFile]] = []
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def add(self, task: Task) -> None:
        """Queue a file, replacing a task for it that has not started."""
        with self._changed:
            self._tasks[task.entry.path] = task
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="large files", daemon=True)
                self._thread.start()

    def drop(self, path: str) -> None:
        """Cancel the tasks of a deleted file."""
        with self._changed:
            self._tasks.pop(path, None)
            self._results = [(task, result) for task, result in self._results if task.entry.path != path]
            if self._running is not None and self._running.entry.path == path:
                self._running = None

    def clear(self) -> None:
        """Cancel all tasks."""
        with self._changed:
            self._tasks, self._results, self._running = {}, [], None

    def stop(self) -> None:
        """End the thread after the current file."""
        with self._changed:
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """Number of files not yet read or taken."""
        with self._changed:
            return len(self._tasks) + len(self._results) + (self._running is not None)

    def take(self) -> list[tuple[Task, ScannedFile]]:
        """Return the results since the last call."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            results, self._results = self._results, []
        return results

    def _run(self) -> None:
        try:
            while (task := self._next()) is not None:
                self._throttle.wait_until_idle()
                try:
                    result = self._read(task)
                except LinkLost:
                    self._throttle.wait_for_stop(RETRY_SECONDS)
                    result = None
                self._done(task, result)
        except BaseException as bug:  # raised by the lister's thread, which ends the app
            with self._changed:
                self._failure = bug

    def _next(self) -> Task | None:
        with self._changed:
            while not self._tasks and not self._throttle.stopped:
                self._changed.wait()
            if self._throttle.stopped:
                return None
            path = min(self._tasks, key=lambda path: _size(self._tasks[path]))
            self._running = self._tasks.pop(path)
            return self._running

    def _read(self, task: Task) -> ScannedFile | None:
        """Read a file; None if the opener reads it now."""
        while self._readers.is_read(task.entry.path):
            if self._throttle.wait_for_stop(OPEN_SECONDS):
                return None
        budget = UntilOpened(self._readers, task.entry.path)
        if task.format is None:
            result = self._reader.read_changed(task.entry, budget)
        else:
            result = self._reader.count(task.entry, task.format, budget)
        return None if budget.spent else result

    def _done(self, task: Task, result: ScannedFile | None) -> None:
        """Store a result unless its task was canceled; retry a file that was unreachable."""
        with self._changed:
            wanted, self._running = self._running is task, None
            if not wanted:
                self._reader.forget(task.entry.path)
            elif result is None:
                self._tasks.setdefault(task.entry.path, task)
            else:
                self._results.append((task, result))


def _size(task: Task) -> int:
    return 0 if task.entry.stat is None else task.entry.stat.size
