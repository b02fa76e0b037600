"""Tail every run below some roots without a screen: turns file changes into events.

Runs that change have a cached reader, so that only new data is read; other runs only a summary. An unreadable file is
reported once it has been unchanged for a while: until then its writer may be in the middle of it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from tracetui.formats.base import Format
from tracetui.live.file_relations import FileRelations
from tracetui.live.retry_queue import RETRY_SECONDS, RetryQueue
from tracetui.live.run_events import RunEvents, TailedFile
from tracetui.live.scan import Found, entries, look
from tracetui.live.watch import Change, Watch
from tracetui.model import Problem, RunRef
from tracetui.model.run import Event, RunReset
from tracetui.sources.base import Entry, LinkLost, Source

READ_AHEAD: Final = 64 << 20
"""Bytes of files read at the start, to learn which spans they already contain."""
READ_AHEAD_SECONDS: Final = 2.0
"""Time limit for that: a file with thousands of runs may have to be read for each of them."""
CACHED_FILES: Final = 8
"""Changing files with a format cache."""
MAX_REST_SECONDS: Final = 0.25
RESCAN_FACTOR: Final = 4
"""Time between scans of a file, as a multiple of the time the last scan took."""


def _accept_all(ref: RunRef) -> bool:
    return True


class Tail:
    """Events of the runs below `roots`. Used by one thread."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        *,
        only: Format | None = None,
        from_start: bool = False,
        events: bool = True,
        wanted: Callable[[RunRef], bool] = _accept_all,
    ) -> None:
        """Without `from_start`, existing data is not reported. `wanted` filters the runs."""
        self._source = source
        self._only = only
        self._wanted = wanted
        self._roots = frozenset(roots)
        self._last: Format | None = None
        self._shared: dict[str, Any] = {}
        self._files: dict[str, TailedFile] = {}
        self._caches: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._retries = RetryQueue()
        self._run_events = RunEvents(source, self._retries)
        self._relations = FileRelations(source)
        self._rest_seconds = 0.0
        self._closed = threading.Event()
        if not from_start:
            self._scan_all(roots)
        stats = {path: file.entry.stat for path, file in self._files.items() if file.entry.stat is not None}
        self.watch = Watch(source, roots, seen=stats, events=events)
        self._read_ahead()

    def events(self, timeout: float) -> Iterator[Event]:
        """Yield the events since the last call; waits up to `timeout` seconds for one.

        Under heavy load half of the time goes to waiting, so that changes are batched.
        """
        self._closed.wait(self._rest_seconds)
        changes = self.watch.changes(self._retries.wait_seconds(timeout))
        began = time.monotonic()
        for change in sorted(changes, key=_time_of):
            yield from self._retry_if_lost(change.path, self._handle_change(change))
        for path in self._retries.pop_due():
            yield from self._retry_if_lost(path, self._read(path))
        yield from self._run_events.relations()
        late = self._retries.wait_seconds(1.0) == 0.0
        self._rest_seconds = 0.0 if late else min(time.monotonic() - began, MAX_REST_SECONDS)

    def _retry_if_lost(self, path: str, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the `events` of a file; schedule the rest for later if the connection is lost."""
        try:
            yield from events
        except LinkLost:
            self._retries.schedule(path, time.monotonic() + RETRY_SECONDS)

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        self.watch.stop()

    # ---- the start

    def _scan_all(self, roots: Sequence[str]) -> None:
        for entry in entries(self._source, roots):
            file = self._files[entry.path] = TailedFile(entry=entry, seen=entry.stat)
            self._record_file(file, deep=False)
            if file.holds_several:
                self._record_file(file, deep=True)

    def _record_file(self, file: TailedFile, *, deep: bool) -> None:
        found = self._scan(file.entry, deep=deep)
        self._relations.add(found, appeared=False)
        runs = [run for run in found.runs if self._wanted(run.ref)]
        file.refs = tuple(run.ref for run in runs)
        for run in runs:
            self._run_events.remember(run)

    def _read_ahead(self) -> None:
        """Read the runs of the most recently changed files, which are likely to change again; unfinished runs first."""
        room, until = READ_AHEAD, time.monotonic() + READ_AHEAD_SECONDS
        for file in sorted(self._files.values(), key=lambda one: _mtime(one.entry), reverse=True):
            room -= file.entry.stat.size if file.refs and file.entry.stat is not None else 0
            for ref in sorted(file.refs, key=self._run_events.has_ended):
                if room < 0 or self._run_events.full or time.monotonic() > until:
                    return
                self._run_events.read_silently(ref)

    # ---- files

    def _handle_change(self, change: Change) -> Iterator[Event]:
        file, entry = self._files.get(change.path), change.entry
        if entry is None:
            if file is not None:
                yield from self._handle_removal(file)
            return
        if file is None:
            file = self._files[change.path] = TailedFile(entry=entry, changed=_changed_at(entry))
        else:  # by our clock: a remote clock may be wrong, and for a database only the log may have changed
            file.changed = time.monotonic()
        file.entry = entry
        yield from self._read(change.path)

    def _handle_removal(self, file: TailedFile) -> Iterator[Event]:
        del self._files[file.entry.path]
        self._caches.pop(file.entry.path, None)
        ids = self._run_events.ids(file.refs)
        yield from self._reset_file(file)
        path = file.entry.path
        yield from self._rescan_all([*self._relations.forks(path, ids), *self._relations.remove(path)])

    def _rescan_all(self, paths: Iterable[str]) -> Iterator[Event]:
        """Scan files again that became or were parts of another file's run, or are its forks."""
        for file in [self._files[path] for path in paths if path in self._files]:
            yield from self._rescan(file, rewritten=True)

    def _reset_file(self, file: TailedFile) -> Iterator[Event]:
        """Retract all reports on a file and its runs."""
        resets = list(self._run_events.forget(file.refs))
        yield from resets
        if file.reported and RunReset(file.entry.path) not in resets:
            yield RunReset(file.entry.path)
        file.refs, file.reported, file.broken = (), None, False

    def _read(self, path: str) -> Iterator[Event]:
        """Read all new data in a file."""
        file = self._files.get(path)
        if file is None:
            return
        now = time.monotonic()
        tail = None if len(file.refs) != 1 or file.holds_several else self._run_events.tail(file.refs[0])
        if tail is not None:
            tail.read()
            if tail.reader.failure is None and not tail.reader.reset and not file.broken:
                file.seen = file.entry.stat
                yield from self._run_events.read_on(file, tail)
                forks = self._relations.identify(path, self._run_events.ids(file.refs))
                yield from self._rescan_all([*self._relations.joining(path), *forks])
                return
        elif now < file.not_before:
            self._retries.schedule(path, file.not_before)
            return
        yield from self._rescan(file, rewritten=tail is not None and tail.reader.reset)
        file.seen = file.entry.stat
        file.not_before = now + (1 + RESCAN_FACTOR) * (time.monotonic() - now)

    def _rescan(self, file: TailedFile, *, rewritten: bool) -> Iterator[Event]:
        """Scan a file again and read its runs."""
        cache = self._caches.pop(file.entry.path, {})
        found = self._scan(file.entry, deep=file.holds_several, cache=cache)
        if cache:
            self._caches[file.entry.path] = cache
            if len(self._caches) > CACHED_FILES:
                self._caches.popitem(last=False)
        runs = [run for run in found.runs if self._wanted(run.ref)]
        refs = tuple(run.ref for run in runs)
        nothing = rewritten or found.part_of or (file.is_still and not found.problems)
        if (file.broken and not found.problems) or (not runs and nothing):
            yield from self._reset_file(file)
        elif rewritten:
            self._run_events.drop(file.refs)
        if runs:
            yield from self._run_events.forget(ref for ref in file.refs if ref not in refs)
            file.refs = refs
        for run in runs:
            yield from self._run_events.read(file, run)
        yield from self._report_broken(file, found)
        also = self._relations.add(found)
        main = self._files.get(found.part_of)
        if main is not None and main is not file:
            main.changed = time.monotonic()
            yield from self._read(found.part_of)
        yield from self._rescan_all(path for path in also if path != found.part_of)

    def _report_broken(self, file: TailedFile, found: Found) -> Iterator[Event]:
        """Report the problems of a file once it has been unchanged for a while."""
        problems: list[Problem] = [*found.problems, *self._run_events.failures(file.refs)]
        if file.is_still:
            for problem in problems:
                file.broken = True
                yield from file.problem(problem)
        elif problems or file.holds_several or (file.refs and not found.runs):
            self._retries.schedule(file.entry.path, file.still_at)

    def _scan(self, entry: Entry, *, deep: bool, cache: dict[str, Any] | None = None) -> Found:
        named = entry.path in self._roots
        found, self._last = look(
            self._source,
            entry,
            deep=deep,
            last=self._last,
            only=self._only,
            cache=cache,
            named=named,
            roots=self._roots,
            shared=self._shared,
        )
        return found


def _mtime(entry: Entry | None) -> float:
    return entry.stat.mtime if entry is not None and entry.stat is not None else 0.0


def _time_of(change: Change) -> float:
    return _mtime(change.entry)


def _changed_at(entry: Entry) -> float:
    """Return when a file changed on the clock of `time.monotonic`; now if its own times are implausible."""
    now = time.monotonic()
    if entry.stat is None:
        return now
    ago = time.time() - max(entry.stat.mtime_ns, entry.stat.ctime_ns) / 1e9
    return now - ago if ago > 0 else now
