"""Reads large files in a thread of its own, the smallest first, so that they delay no other file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tracetui.formats import registry
from tracetui.formats.base import Format
from tracetui.live.load import Reader
from tracetui.live.retry_queue import RETRY_SECONDS
from tracetui.live.scan import Found, look
from tracetui.live.throttle import Traffic
from tracetui.model import RunRef
from tracetui.sources.base import Entry, LinkLost, Source

LARGE: Final = 32 << 20
"""Bytes of a file that takes about half a second to count."""
KEPT_FILES: Final = 8
"""Files of which formats may keep something from one look to the next."""
READERS: Final = 128
SPANS: Final = 400_000
"""Spans that all readers together may hold: the one that was used least goes first."""


def is_large(entry: Entry) -> bool:
    """Whether reading the file may take long."""
    return entry.stat is not None and entry.stat.size > LARGE


class Hot:
    """Keeps a reader for each file that holds one run and has changed more than once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._readers: OrderedDict[str, Reader | RunRef] = OrderedDict()

    def remember(self, found: Found) -> None:
        """The file has changed, and this is what all of it turned out to be."""
        self._readers.pop(found.path, None)
        if len(found.runs) == 1 and not found.problems and found.runs[0].ref.key is None:
            self._readers[found.path] = found.runs[0].ref
            self._tidy_up()

    def forget(self, path: str) -> None:
        """The file is gone, or another one has its name."""
        self._readers.pop(path, None)

    def look(self, path: str) -> Found | None:
        """What the file is now; None if it must be looked at as if for the first time. Raises `LinkLost`."""
        known = self._readers.get(path)
        if known is None:
            return None
        reader = known if isinstance(known, Reader) else Reader(self._source, known)
        self._readers[path] = reader
        self._readers.move_to_end(path)
        reader.catch_up()
        if reader.failure is not None:
            del self._readers[path]
            return None
        self._tidy_up()
        return Found(path=path, format=reader.ref.format, runs=(reader.summary(),))

    def _tidy_up(self) -> None:
        sizes = {path: len(one) for path, one in self._readers.items() if isinstance(one, Reader)}
        spans = sum(sizes.values())
        while len(self._readers) > READERS or (spans > SPANS and len(self._readers) > 1):
            path, _ = self._readers.popitem(last=False)
            spans -= sizes.get(path, 0)


class DeepReader:
    """Reads files in full; those that change again and again for what is new of them. Used by one thread."""

    def __init__(self, source: Source, roots: Sequence[str], only: Format | None) -> None:
        self._source, self._roots, self._only = source, roots, only
        self._hot = Hot(source)
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        """What formats want to know the next time of files that change again and again and hold many runs."""
        self.shared: dict[str, Any] = {}
        """What formats cache of neighboring files (`SHARED`)."""

    def count(self, entry: Entry, name: str) -> Found:
        """Read a file of the format `name` for the first time, of any format if that is empty. Raises `LinkLost`."""
        only = registry.load(name) if name else self._only
        named = bool(name) or entry.path in self._roots
        found, _ = look(self._source, entry, deep=True, only=only, named=named, roots=self._roots, shared=self.shared)
        return found

    def read_changed(self, entry: Entry) -> Found:
        """Read a file that has changed. Raises `LinkLost`."""
        path = entry.path
        found = self._hot.look(path)
        if found is None:
            kept = self._kept.pop(path, {})
            found, _ = look(
                self._source,
                entry,
                deep=True,
                only=self._only,
                kept=kept,
                named=path in self._roots,
                roots=self._roots,
                shared=self.shared,
            )
            if kept:
                self._kept[path] = kept
                if len(self._kept) > KEPT_FILES:
                    self._kept.popitem(last=False)
            self._hot.remember(found)
        return found

    def forget(self, path: str) -> None:
        """The file is gone, or another one has its name."""
        self._hot.forget(path)
        self._kept.pop(path, None)


class Task(NamedTuple):
    """A large file to read."""

    entry: Entry
    format: str | None = None
    """To count it for the first time as `DeepReader.count` does; None: it has changed."""


class LargeFiles:
    """Files to read, and what they turned out to be. Used by the thread of the lister; its own thread only reads."""

    def __init__(self, reader: DeepReader, traffic: Traffic) -> None:
        self._reader, self._traffic = reader, traffic
        self._changed = threading.Condition()
        self._tasks: dict[str, Task] = {}
        self._running: Task | None = None
        self._results: list[tuple[Task, Found]] = []
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def add(self, task: Task) -> None:
        """Read a file, in place of an earlier task for it that has not begun."""
        with self._changed:
            self._tasks[task.entry.path] = task
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="large files", daemon=True)
                self._thread.start()

    def drop(self, path: str) -> None:
        """The file is gone: nothing about it is of interest."""
        with self._changed:
            self._tasks.pop(path, None)
            self._results = [one for one in self._results if one[0].entry.path != path]
            if self._running is not None and self._running.entry.path == path:
                self._running = None

    def clear(self) -> None:
        """Everything is walked again."""
        with self._changed:
            self._tasks, self._results, self._running = {}, [], None

    def stop(self) -> None:
        """End the thread, once what it reads now is read."""
        with self._changed:
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """How many files are still to be read, or to be taken."""
        with self._changed:
            return len(self._tasks) + len(self._results) + (self._running is not None)

    def take(self) -> list[tuple[Task, Found]]:
        """What was read since the last call."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            results, self._results = self._results, []
        return results

    def _run(self) -> None:
        try:
            while (task := self._next()) is not None:
                self._traffic.give_way()
                try:
                    found = self._read(task)
                except LinkLost:
                    self._traffic.rest(RETRY_SECONDS)
                    found = None
                self._done(task, found)
        except BaseException as bug:  # the thread of the lister raises it, and the app ends with it
            with self._changed:
                self._failure = bug

    def _next(self) -> Task | None:
        with self._changed:
            while not self._tasks and not self._traffic.stopped:
                self._changed.wait()
            if self._traffic.stopped:
                return None
            path = min(self._tasks, key=lambda one: _size(self._tasks[one]))
            self._running = self._tasks.pop(path)
            return self._running

    def _read(self, task: Task) -> Found:
        if task.format is None:
            return self._reader.read_changed(task.entry)
        return self._reader.count(task.entry, task.format)

    def _done(self, task: Task, found: Found | None) -> None:
        """Hand over what was read, unless it was dropped meanwhile; what could not be reached is read again."""
        with self._changed:
            wanted, self._running = self._running is task, None
            if not wanted:
                self._reader.forget(task.entry.path)
            elif found is None:
                self._tasks.setdefault(task.entry.path, task)
            else:
                self._results.append((task, found))


def _size(task: Task) -> int:
    return 0 if task.entry.stat is None else task.entry.stat.size
