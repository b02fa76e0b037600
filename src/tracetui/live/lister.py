"""List the files of the directory, then keep the list up to date. One thread does both, so results arrive in order."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tracetui.formats.base import Format
from tracetui.live.deep_reader import DeepReader, LargeFiles, Task, is_large
from tracetui.live.mailbox import Mailbox, Throttle, WatchState
from tracetui.live.readers import Readers
from tracetui.live.scan import FileRelations, ScannedFile, entries
from tracetui.live.watch import RETRY_SECONDS, Change, RetryQueue, Watch, running_seconds, settle_seconds
from tracetui.sources.base import MOVING_SECONDS, Entry, LinkLost, Source, Stat
from tracetui.sources.file_views import LIST_BUDGET, Budget

if TYPE_CHECKING:
    from tracetui.live.scan_cache import ScanCache

BATCH: Final = 24
"""Results of the walk are delivered in batches of so many, a small screenful."""
FIRST_SECONDS: Final = 0.02
"""The walk goes on for so long before it waits for the first paint: stored results come by the thousand."""
BATCH_SECONDS: Final = 0.1
"""Files are counted in batches that take so long."""
MAX_UNREAD: Final = 4096
"""Undelivered results after which watching pauses: the app may be suspended while an editor runs."""
REST_FACTOR: Final = 2
"""Rest time as a multiple of the time spent on changes."""
MAX_REST_SECONDS: Final = 1.0
LOOK_UP_SECONDS: Final = 0.25
"""How often a thread that waits for changes checks for other requests."""


class Lister:
    """Keeps the list of runs up to date. `run` is the thread's body; `rescan` and `stop` are thread-safe."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        only: Format | None,
        mailbox: Mailbox,
        throttle: Throttle,
        *,
        events: bool = True,
        cache_limit: int = 0,
        readers: Readers | None = None,
    ) -> None:
        """`cache_limit`: bytes that the results of deep passes may take on disk; 0: they are not stored."""
        self._source = source
        self._roots = list(roots)
        self._only = only
        self._mailbox = mailbox
        self._throttle = throttle
        self._rescan = threading.Event()
        self._watch: Watch | None = None
        readers = Readers(source) if readers is None else readers
        self._reader = DeepReader(source, self._roots, only, readers)
        self._large_reader = DeepReader(source, self._roots, only, readers)
        self._large = LargeFiles(self._large_reader, throttle, readers)
        self._cache_limit = cache_limit
        self._cache: ScanCache | None = None
        self._large_listed: set[str] = set()
        """Large files already listed."""
        self._shallow: list[tuple[Entry, str]] = []
        """Files for the deep pass, oldest first, and their formats; empty for a file that may be part of another's run.
        With a cache, files with a final first result are read once more, to store it.
        """
        self._counted = 0
        self._retries = RetryQueue()
        """Files that cannot be read yet, or with runs that may stop."""
        self._unreachable: set[str] = set()
        """Changed files that could not be read: how long they have been unchanged is unknown."""
        self._relations = FileRelations(source)
        self._events = events

    def rescan(self) -> None:
        """Walk everything again."""
        self._rescan.set()
        with self._mailbox.open() as mail:
            mail.listed = False  # that was the previous walk, which says nothing about this one

    def stop(self) -> None:
        """End `run`."""
        self._large.stop()
        if self._watch is not None:
            self._watch.stop()

    def run(self) -> None:
        """Walk, then watch, until stopped."""
        try:
            self._open_cache()
            while not self._throttle.stopped:
                self._rescan.clear()
                try:
                    self._walk()
                except LinkLost as lost:
                    gc.enable()
                    self._post_watch_state(WatchState(lost=str(lost)))
                    self._throttle.wait_for_stop(RETRY_SECONDS)
                else:
                    self._watch_changes()
        finally:
            gc.enable()
            if self._watch is not None:
                self._watch.stop()
            if self._cache is not None:
                self._cache.flush()

    def _open_cache(self) -> None:
        if self._cache_limit:
            from tracetui.live.scan_cache import open_cache  # it loads SQLite

            self._cache = open_cache(self._source, self._roots, self._only, self._cache_limit)
            self._reader.cache, self._large_reader.cache = self._cache, self._cache.for_large_files()

    @property
    def _interrupted(self) -> bool:
        """Whether to stop or start over; waits while the app is busy."""
        self._throttle.wait_until_idle()
        return self._throttle.stopped or self._rescan.is_set()

    # ---- the walk

    def _walk(self) -> None:
        gc.disable()  # summaries are many, small and acyclic: collecting garbage takes half of the time
        batch: list[ScannedFile] = []
        stats: dict[str, Stat] = {}
        self._shallow = []
        self._large.clear()
        if self._cache is not None:
            self._cache.begin()
        due, seen = time.monotonic() + FIRST_SECONDS, 0
        for entry in entries(self._source, self._roots):
            if entry.stat is not None:
                stats[entry.path] = entry.stat
                if is_large(entry):
                    self._large_listed.add(entry.path)
            result = None if self._cache is None else self._cache.find(entry)
            is_stored = result is not None
            if result is None:
                if self._interrupted:
                    return
                result = self._list(entry)
                self._expect_count(result, entry)
            if is_stored and result.runs:  # no stored run is one that may stop
                self._retries.cancel(entry.path)
                is_deferred = False
            else:
                is_deferred = self._defer(result, entry, _age(entry))
            if not is_deferred:
                batch.append(result)
                self._relations.add(result, appeared=False)
            seen += 1
            if len(batch) >= BATCH:
                self._deliver(batch, "list", seen, None)
                batch = []
                if time.monotonic() >= due:
                    self._throttle.wait_for_paint()
                if self._interrupted:
                    return
        self._shallow.sort(key=lambda pair: pair[0].stat.mtime_ns if pair[0].stat else 0)
        self._counted = 0
        self._deliver(batch, "deep" if self._shallow else "", seen, seen, listed=True)
        self._throttle.wait_for_paint()
        if not self._shallow:
            self._end_count()
        self._start_watch(stats)

    def _expect_count(self, result: ScannedFile, entry: Entry) -> None:
        """Note a file that the deep pass has to read: to count its runs, or to store a result that is final."""
        is_final = not result.unread and all(run.deep for run in result.runs)
        is_to_be_stored = self._cache is not None and result.kind != "problem" and not result.skipped
        if not is_final or is_to_be_stored:
            self._shallow.append((entry, "" if result.unread or result.part_of else result.format or ""))

    def _list(self, entry: Entry) -> ScannedFile:
        """Run the list stage on one file."""
        return self._reader.look(entry, deep=False, on_partial=self._deliver_partial, budget=Budget(LIST_BUDGET))

    def _start_watch(self, stats: dict[str, Stat]) -> None:
        if self._watch is None and not self._throttle.stopped:
            self._watch = Watch(self._source, self._roots, seen=stats, events=self._events)

    def _count_batch(self) -> None:
        """Count a batch of the newest uncounted files."""
        batch, due = list[ScannedFile](), time.monotonic() + BATCH_SECONDS
        while self._shallow and time.monotonic() < due and not self._interrupted:
            entry, name = self._shallow[-1]
            if is_large(entry):
                self._large.add(Task(entry, name))
                self._shallow.pop()
                continue
            try:
                result = self._reader.count(entry, name)
            except LinkLost:
                self._throttle.wait_for_stop(RETRY_SECONDS)
                break
            self._shallow.pop()
            batch.append(result)
            if not name or result.part_of:
                self._relations.add(result, appeared=False)
        if not self._shallow:
            self._end_count()
        self._deliver_counted(batch)

    def _end_count(self) -> None:
        """End the deep pass, but for large files."""
        _resume_collection()
        self._throttle.list_complete()
        if self._cache is not None:
            self._cache.flush()
            self._cache.storage.save_use()

    def _deliver_counted(self, batch: list[ScannedFile]) -> None:
        """Deliver files that were counted for the first time."""
        self._counted += len(batch)
        _find_causes(batch)
        missing = len(self._shallow) + self._large.waiting
        self._deliver(batch, "deep" if missing else "", self._counted, self._counted + missing)

    def _deliver_partial(self, result: ScannedFile) -> None:
        """Deliver the first runs of a file with many."""
        with self._mailbox.open() as mail:
            mail.files.append(result)
            mail.stage = "list"
        self._throttle.wait_for_paint()

    def _deliver(
        self, batch: list[ScannedFile], stage: str, seen: int, total: int | None, *, listed: bool = False
    ) -> None:
        with self._mailbox.open(asked=not stage) as mail:  # the complete list is shown at once
            mail.files.extend(batch)
            mail.stage, mail.seen, mail.total = stage, seen, total
            mail.listed |= listed and not self._rescan.is_set()

    # ---- watching

    def _watch_changes(self) -> None:
        posted = WatchState()
        while not self._interrupted and self._watch is not None:
            changes = self._watch.changes(0.0 if self._shallow else self._retries.wait_seconds(LOOK_UP_SECONDS))
            began = time.perf_counter()
            self.recheck(changes)
            self.recheck(self._current(self._retries.pop_due()), MOVING_SECONDS)
            self._deliver_large()
            if self._shallow:
                self._count_batch()
            elif changes:
                self._throttle.wait_for_stop(min(MAX_REST_SECONDS, REST_FACTOR * (time.perf_counter() - began)))
            now = watch_state(self._watch)
            if now != posted:
                posted = now
                self._post_watch_state(now)

    def _deliver_large(self) -> None:
        """Deliver results of large files."""
        results = self._large.take()
        if first := [result for task, result in results if task.format is not None]:
            for result in first:
                self._relations.add(result, appeared=False)
            self._deliver_counted(first)
        for task, result in results:
            if task.format is None and not self._defer(result, task.entry, _age(task.entry)):
                self._deliver_changed([result])
                self.recheck(self._current(dict.fromkeys(self._find_affected(result, gone=False))))

    def _post_watch_state(self, now: WatchState) -> None:
        with self._mailbox.open() as mail:
            mail.watching = now

    def _current(self, paths: Iterable[str]) -> Iterator[Change]:
        """Yield the files with their current entries; schedule unreachable ones for later."""
        for path in paths:
            try:
                yield Change(path, self._entry(path))
            except LinkLost:
                self._retries.reschedule(path, time.monotonic() + RETRY_SECONDS)

    def _entry(self, path: str) -> Entry | None:
        """Return the file's current entry, None if it is gone. Raises `LinkLost`."""
        try:
            return next(iter(self._source.list(path).entries), None)
        except LinkLost:
            raise
        except OSError:
            return None

    def recheck(self, changes: Iterable[Change], still: float = 0.0) -> None:
        """Read files that have been unchanged for `still` seconds again, and the files affected by them.

        Delivers the results in the order of reading, so that an affected file does not stay as it was read before.
        Called by `run`'s thread, or without one.
        """
        results: list[ScannedFile] = []
        while changes:
            affected: list[str] = []
            for change in changes:
                if self._throttle.stopped:
                    return
                try:
                    result = self._read(change, 0.0 if change.path in self._unreachable else still)
                except LinkLost:
                    self._unreachable.add(change.path)
                    self._retries.reschedule(change.path, time.monotonic() + RETRY_SECONDS)
                    continue
                self._unreachable.discard(change.path)
                if result is not None:
                    results.append(result)
                    affected += self._find_affected(result, gone=change.entry is None)
            changes = self._current(dict.fromkeys(affected)) if affected else ()
        self._deliver_changed(results)

    def _find_affected(self, result: ScannedFile, *, gone: bool) -> list[str]:
        """Update the relations of a file; return the other files to read again because of it."""
        affected = self._relations.remove(result.path) if gone else self._relations.add(result)
        for path in affected if not result.part_of else affected[1:]:
            self._reader.forget(path)  # its reader serves a standalone run, or has read a deleted file
        return affected

    def _deliver_changed(self, results: list[ScannedFile]) -> None:
        """Deliver changed files. A file may occur several times, its newest result last."""
        if results:
            with self._mailbox.open() as mail:
                mail.files.extend(results)
                is_full = len(mail.files) > MAX_UNREAD
            while is_full and not self._interrupted and not self._mailbox.wait_taken(LOOK_UP_SECONDS):
                pass

    def _read(self, change: Change, still: float) -> ScannedFile | None:
        path, entry = change.path, change.entry
        if entry is None:
            self._retries.cancel(path)
            self._reader.forget(path)
            self._large.drop(path)
            self._large_listed.discard(path)
            return ScannedFile(path=path, reason="gone", skipped=True)
        if is_large(entry):
            return self._read_large(entry)
        result = self._reader.read_changed(entry)
        return None if self._defer(result, entry, still) else result

    def _read_large(self, entry: Entry) -> ScannedFile | None:
        """Queue a large file. List a new one; return None for one already listed."""
        self._large.add(Task(entry))
        if entry.path in self._large_listed:
            return None
        self._large_listed.add(entry.path)
        return self._list(entry)

    def _defer(self, result: ScannedFile, entry: Entry, still: float) -> bool:
        """Whether to hold a result back; schedules the next check of the file."""
        now = time.monotonic()
        seconds = settle_seconds(entry.stat) - still
        if result.kind == "problem" and seconds > 0:
            self._retries.reschedule(result.path, now + seconds)
            return True
        if any(run.seems_running or run.unfinished for run in result.runs):
            self._retries.reschedule(result.path, now + running_seconds(still))
        else:
            self._retries.cancel(result.path)
        return False


def _age(entry: Entry) -> float:
    """Seconds since the file changed; a file without a time, or with one in the future, is old."""
    age = time.time() - entry.stat.mtime if entry.stat is not None else -1.0
    return age if age >= 0 else MOVING_SECONDS


_YOUNG: Final = 20_000
"""New objects from which Python collects garbage on its own: the app collects before, while nothing is painted."""


def _resume_collection() -> None:
    """Enable garbage collection again, but exempt the results so far, which stay: collecting them takes 40 ms."""
    gc.set_threshold(max(_YOUNG, gc.get_threshold()[0]), 10, 20)
    gc.freeze()
    gc.enable()


def watch_state(watch: Watch) -> WatchState:
    """Return the state of a watch."""
    return WatchState(watch.mode, watch.reason, watch.folders, watch.files, watch.lost)


def _find_causes(batch: Iterable[ScannedFile]) -> None:
    """Find the causes of failed runs here, which caches them: the triage only groups them then."""
    failed = [run for result in batch for run in result.runs if run.failed]
    if failed:
        from tracetui.analysis.cause import failure_of  # which the list itself doesn't need

        for run in failed:
            failure_of(run)
