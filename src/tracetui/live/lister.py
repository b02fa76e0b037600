"""Knows what is in the directory: walks it once, then keeps up with what changes. One thread does both, so that what
is delivered later is what was seen later.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tracetui.formats.base import Format
from tracetui.live.agenda import RETRY_SECONDS, Agenda, patience, running_for
from tracetui.live.file_relations import FileRelations
from tracetui.live.large import DeepReader, LargeFiles, Task, is_large
from tracetui.live.mail import Mailbox, Watching
from tracetui.live.scan import Found, entries, look
from tracetui.live.traffic import Traffic
from tracetui.live.watching.watch import Change, Watch
from tracetui.sources.base import MOVING_SECONDS, Entry, LinkLost, Source, Stat
from tracetui.sources.budget import LIST_BUDGET, Budget

FIRST_BATCH: Final = 24
"""Files summarized before the first rows are shown: a small screenful, so that the first paint waits for no more."""
BATCH: Final = 256
CROWD: Final = 4096
"""Files told and not taken, after which no more changes are looked for: the app may be away while an editor runs."""
SHARE: Final = 2
"""After work of one second on what changed follow so many seconds of rest, if there is more to do."""
LONGEST_REST: Final = 1.0
LOOK_UP_SECONDS: Final = 0.25
"""How often a thread that waits for changes looks up to see whether something else is wanted."""


class Lister:
    """Keeps the list of runs true. `run` is the body of a thread; the other methods may be called from any."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        only: Format | None,
        mailbox: Mailbox,
        traffic: Traffic,
        *,
        events: bool = True,
    ) -> None:
        self._source = source
        self._roots = list(roots)
        self._only = only
        self._mailbox = mailbox
        self._traffic = traffic
        self._again = threading.Event()
        self._watch: Watch | None = None
        self._reader = DeepReader(source, self._roots, only)
        self._large = LargeFiles(DeepReader(source, self._roots, only), traffic)
        self._large_listed: set[str] = set()
        """Large files of which the list stage was done."""
        self._shallow: list[tuple[Entry, str]] = []
        """Files of which only the list stage was done, oldest first, and their formats; none where it may be another
        file's part."""
        self._counted = 0
        self._agenda = Agenda()
        """Files that cannot be read yet, or may be found to stand still."""
        self._unreached: set[str] = set()
        """Files that changed and could not be looked at: how long they have been still is not known."""
        self._relations = FileRelations(source)
        self._events = events

    def rescan(self) -> None:
        """Walk everything again."""
        self._again.set()
        with self._mailbox.open() as mail:
            mail.listed = False  # the end of the walk before: it says nothing about what this one will find

    def stop(self) -> None:
        """End `run`."""
        self._large.stop()
        if self._watch is not None:
            self._watch.stop()

    def run(self) -> None:
        """Walk, then watch, until everything is to end."""
        try:
            while not self._traffic.stopped:
                self._again.clear()
                try:
                    self._walk()
                except LinkLost as lost:
                    gc.enable()
                    self._tell_how(Watching(lost=str(lost)))
                    self._traffic.rest(RETRY_SECONDS)
                else:
                    self._keep_up()
        finally:
            gc.enable()
            if self._watch is not None:
                self._watch.stop()

    @property
    def _over(self) -> bool:
        """Whether to leave off; waits while the app is busy."""
        self._traffic.give_way()
        return self._traffic.stopped or self._again.is_set()

    # ---- the walk

    def _walk(self) -> None:
        gc.disable()  # summaries are many, small and acyclic: collecting them over and over is half the time
        batch: list[Found] = []
        known: dict[str, Stat] = {}
        self._shallow = []
        self._large.clear()
        limit = FIRST_BATCH
        seen = 0
        last: Format | None = None
        for entry in entries(self._source, self._roots):
            if self._over:
                return
            if entry.stat is not None:
                known[entry.path] = entry.stat
            if is_large(entry):
                self._large_listed.add(entry.path)
            found, last = self._list(entry, last)
            if not self._wait_for(found, entry, _age(entry)):
                batch.append(found)
                self._take(found, appeared=False)
            seen += 1
            if found.unread or any(not run.deep for run in found.runs):
                self._shallow.append((entry, "" if found.unread else found.format or ""))
            if len(batch) >= limit:
                self._deliver(batch, "list", seen, None)
                self._traffic.let_it_paint()
                batch, limit = [], BATCH
        self._shallow.sort(key=lambda pair: pair[0].stat.mtime_ns if pair[0].stat else 0)
        self._counted = 0
        self._deliver(batch, "deep" if self._shallow else "", seen, seen, listed=True)
        self._traffic.let_it_paint()
        if not self._shallow:
            _collect_again()
        self._begin_to_watch(known)

    def _list(self, entry: Entry, last: Format | None) -> tuple[Found, Format | None]:
        """The list stage of one file; see `look`."""
        return look(
            self._source,
            entry,
            deep=False,
            last=last,
            only=self._only,
            tell=self._tell,
            named=entry.path in self._roots,
            roots=self._roots,
            shared=self._reader.shared,
            budget=Budget(LIST_BUDGET),
        )

    def _begin_to_watch(self, known: dict[str, Stat]) -> None:
        if self._watch is None and not self._traffic.stopped:
            self._watch = Watch(self._source, self._roots, known=known, events=self._events)

    def _deepen(self) -> None:
        """Count through the newest files that only the list stage has seen."""
        batch: list[Found] = []
        while self._shallow and len(batch) < BATCH and not self._over:
            entry, name = self._shallow[-1]
            if is_large(entry):
                self._large.add(Task(entry, name))
                self._shallow.pop()
                continue
            try:
                found = self._reader.count(entry, name)
            except LinkLost:
                self._traffic.rest(RETRY_SECONDS)
                break
            self._shallow.pop()
            batch.append(found)
            if not name:
                self._take(found, appeared=False)
        self._count(batch)
        if not self._shallow:
            _collect_again()

    def _count(self, batch: list[Found]) -> None:
        """Deliver files that were counted for the first time."""
        self._counted += len(batch)
        missing = len(self._shallow) + self._large.waiting
        self._deliver(batch, "deep" if missing else "", self._counted, self._counted + missing)

    def _tell(self, found: Found) -> None:
        """The first runs of a file that holds many."""
        with self._mailbox.open() as mail:
            mail.found.append(found)
            mail.stage = "list"
        self._traffic.let_it_paint()

    def _deliver(self, batch: list[Found], stage: str, seen: int, total: int | None, *, listed: bool = False) -> None:
        with self._mailbox.open() as mail:
            mail.found.extend(batch)
            mail.stage, mail.seen, mail.total = stage, seen, total
            mail.listed |= listed and not self._again.is_set()

    # ---- watching

    def _keep_up(self) -> None:
        told = Watching()
        while not self._over and self._watch is not None:
            changes = self._watch.changes(0.0 if self._shallow else self._agenda.wait(LOOK_UP_SECONDS))
            began = time.perf_counter()
            self._look_again(changes, 0.0)
            self._look_again(self._fallen_due(), MOVING_SECONDS)
            self._take_large()
            if self._shallow:
                self._deepen()
            elif changes:
                self._traffic.rest(min(LONGEST_REST, SHARE * (time.perf_counter() - began)))
            now = watching(self._watch)
            if now != told:
                told = now
                self._tell_how(now)

    def _take_large(self) -> None:
        """Deliver what large files turned out to be."""
        results = self._large.take()
        if first := [found for task, found in results if task.format is not None]:
            for found in first:
                self._take(found, appeared=False)
            self._count(first)
        for task, found in results:
            if task.format is None and not self._wait_for(found, task.entry, _age(task.entry)):
                self._deliver_changed([found], self._affected_by(found, gone=False), 0.0)

    def _tell_how(self, now: Watching) -> None:
        with self._mailbox.open() as mail:
            mail.watching = now

    def _fallen_due(self) -> Iterator[Change]:
        for path in self._agenda.due():
            try:
                yield Change(path, self._entry(path))
            except LinkLost:
                self._agenda.move(path, time.monotonic() + RETRY_SECONDS)

    def _entry(self, path: str) -> Entry | None:
        """The file as it is now, None if it is gone. Raises `LinkLost`."""
        try:
            return next(iter(self._source.list(path).entries), None)
        except LinkLost:
            raise
        except OSError:
            return None

    def _look_again(self, changes: Iterable[Change], still: float) -> None:
        """Deliver what these files are now; they have not changed for `still` seconds."""
        found: list[Found] = []
        also: list[str] = []
        for change in changes:
            if self._traffic.stopped:
                return
            try:
                one = self._look(change, 0.0 if change.path in self._unreached else still)
            except LinkLost:
                self._unreached.add(change.path)
                self._agenda.move(change.path, time.monotonic() + RETRY_SECONDS)
                continue
            self._unreached.discard(change.path)
            if one is not None:
                found.append(one)
                also += self._affected_by(one, gone=change.entry is None)
        self._deliver_changed(found, also, still)

    def _affected_by(self, found: Found, *, gone: bool) -> list[str]:
        """Take in what a file is now; returns other files to be looked at again because of it."""
        also = self._take(found)
        for path in also if not found.part_of else also[1:]:
            self._reader.forget(path)  # what it keeps is a run of its own
        if gone:
            also += self._relations.forks_near(found.path, ())
            also += self._relations.remove(found.path)
        return also

    def _deliver_changed(self, found: list[Found], also: list[str], still: float) -> None:
        """Deliver files that changed, and what others are now that are affected by it."""
        if also:
            self._look_again((Change(path, self._entry(path)) for path in dict.fromkeys(also)), still)
        if found:
            with self._mailbox.open() as mail:
                mail.found.extend(found)
                crowded = len(mail.found) > CROWD
            while crowded and not self._over and not self._mailbox.wait_taken(LOOK_UP_SECONDS):
                pass

    def _take(self, found: Found, *, appeared: bool = True) -> list[str]:
        """Remember what a file is; returns others that are to be looked at again because of it."""
        is_new = found.path not in self._relations
        also = self._relations.add(found, appeared=appeared)
        if appeared and is_new and found.path in self._relations:
            also += self._relations.forks_near(found.path, {run.id for run in found.runs})
        return also

    def _look(self, change: Change, still: float) -> Found | None:
        path, entry = change.path, change.entry
        if entry is None:
            self._agenda.drop(path)
            self._reader.forget(path)
            self._large.drop(path)
            self._large_listed.discard(path)
            return Found(path=path, reason="gone", skipped=True)
        if is_large(entry):
            return self._look_at_large(entry)
        found = self._reader.read_changed(entry)
        return None if self._wait_for(found, entry, still) else found

    def _look_at_large(self, entry: Entry) -> Found | None:
        """Have a large file read; the list stage of one that is new, None where it is listed already."""
        self._large.add(Task(entry))
        if entry.path in self._large_listed:
            return None
        self._large_listed.add(entry.path)
        return self._list(entry, None)[0]

    def _wait_for(self, found: Found, entry: Entry, still: float) -> bool:
        """Whether nothing is to be said of this file yet; it is looked at again when there will be."""
        now = time.monotonic()
        left = patience(entry.stat) - still
        if found.kind == "problem" and left > 0:
            self._agenda.move(found.path, now + left)
            return True
        if any(run.seems_running or run.unfinished for run in found.runs):
            self._agenda.move(found.path, now + running_for(still))
        else:
            self._agenda.drop(found.path)
        return False


def _age(entry: Entry) -> float:
    """For how many seconds the file has not changed; one without a time, or from the future, is old."""
    age = time.time() - entry.stat.mtime if entry.stat is not None else -1.0
    return age if age >= 0 else MOVING_SECONDS


def _collect_again() -> None:
    """Everything is known: collect garbage again, but leave out what was found, which stays."""
    gc.enable()
    gc.freeze()


def watching(watch: Watch) -> Watching:
    """What is said of a watch."""
    return Watching(watch.how, watch.why, watch.folders, watch.files, watch.lost)
