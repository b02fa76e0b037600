"""Knows what is in the directory: walks it once, then keeps up with what changes. One thread does both, so that what
is delivered later is what was seen later.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from tracetui.formats import registry
from tracetui.formats.base import Composed, Format
from tracetui.live.agenda import RETRY_SECONDS, Agenda, patience, running_for
from tracetui.live.file_relations import FileRelations
from tracetui.live.hot import Hot
from tracetui.live.mail import Mailbox, Watching
from tracetui.live.scan import Found, entries, look
from tracetui.live.traffic import Traffic
from tracetui.live.watching.watch import Change, Watch
from tracetui.sources.base import MOVING_SECONDS, Entry, LinkLost, Source, Stat

FIRST_BATCH: Final = 24
"""Files summarized before the first rows are shown: a small screenful, so that the first paint waits for no more."""
BATCH: Final = 256
CROWD: Final = 4096
"""Files told and not taken, after which no more changes are looked for: the app may be away while an editor runs."""
SHARE: Final = 2
"""After work of one second on what changed follow so many seconds of rest, if there is more to do."""
LONGEST_REST: Final = 1.0
KEPT_FILES: Final = 8
"""Files of which formats may keep something from one look to the next."""
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
        self._hot = Hot(source)
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        """What formats want to know the next time of files that change again and again and hold many runs."""
        self._shallow: list[tuple[Entry, str]] = []
        """Files of which only the list stage was done, oldest first."""
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
        limit = FIRST_BATCH
        seen = 0
        last: Format | None = None
        for entry in entries(self._source, self._roots):
            if self._over:
                return
            if entry.stat is not None:
                known[entry.path] = entry.stat
            named = entry.path in self._roots
            found, last = look(
                self._source,
                entry,
                deep=False,
                last=last,
                only=self._only,
                tell=self._tell,
                named=named,
                roots=self._roots,
            )
            if not self._wait_for(found, entry, _age(entry)):
                batch.append(found)
                self._take(found, appeared=False)
            seen += 1
            if any(not run.deep for run in found.runs):
                self._shallow.append((entry, found.format or ""))
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

    def _begin_to_watch(self, known: dict[str, Stat]) -> None:
        if self._watch is None and not self._traffic.stopped:
            self._watch = Watch(self._source, self._roots, known=known, events=self._events)

    def _deepen(self) -> None:
        """Count through the newest files that only the list stage has seen."""
        batch: list[Found] = []
        while self._shallow and len(batch) < BATCH and not self._over:
            entry, name = self._shallow[-1]
            try:
                found, _ = look(self._source, entry, deep=True, only=registry.load(name), named=True)
            except LinkLost:
                self._traffic.rest(RETRY_SECONDS)
                break
            self._shallow.pop()
            batch.append(found)
        self._counted += len(batch)
        stage = "deep" if self._shallow else ""
        self._deliver(batch, stage, self._counted, self._counted + len(self._shallow))
        if not stage:
            _collect_again()

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
            if self._shallow:
                self._deepen()
            elif changes:
                self._traffic.rest(min(LONGEST_REST, SHARE * (time.perf_counter() - began)))
            now = watching(self._watch)
            if now != told:
                told = now
                self._tell_how(now)

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
        """Main files of runs of which another file changed, other files of runs whose main file has come or gone, and
        forks of what did."""
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
                again = self._take(one)
                also += again
                for path in again if not one.part_of else ():
                    self._hot.forget(path)  # what it keeps is a run of its own
                if change.entry is None:
                    also += self._relations.forks_near(change.path, ())
                    also += self._relations.remove(change.path)
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
            self._hot.forget(path)
            self._kept.pop(path, None)
            return Found(path=path, reason="gone")
        found = self._hot.look(path)
        if found is None:
            named = path in self._roots
            kept = self._kept.pop(path, {})
            found, _ = look(
                self._source,
                entry,
                deep=True,
                only=self._only,
                kept=kept,
                named=named,
                roots=self._roots,
            )
            if kept:
                self._kept[path] = kept
                if len(self._kept) > KEPT_FILES:
                    self._kept.popitem(last=False)
            self._hot.remember(found)
        return None if self._wait_for(found, entry, still) else found

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


@cache
def _composed(name: str) -> bool:
    """Whether runs of that format may be in several files."""
    return isinstance(registry.load(name), Composed)


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
