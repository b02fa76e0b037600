"""Knows what is in the directory: walks it once, then keeps up with what changes. One thread does both, so that what
is delivered later is what was seen later.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from tracetui.formats import registry
from tracetui.formats.base import Composed, Format
from tracetui.live.agenda import RETRY_SECONDS, Agenda, patience, running_for
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
        self._alone: set[str] = set()
        """Files that are listed, of formats whose runs may be in several files."""
        self._forks: dict[str, tuple[str | None, str | None]] = {}
        """Those of them that hold forks, and the original that each names: id and path."""
        self._parts: dict[str, str] = {}
        """Files that are parts of another file's run, and that file."""
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
                self._is_main(found)
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
                is_main = self._is_main(one)
                also += [one.part_of] if one.part_of else self._parts_of(one) if is_main else ()
                also += self._forks_near(one) if is_main or change.entry is None else ()
                if change.entry is None:
                    also += [part for part, main in self._parts.items() if main == change.path]
        if also:
            self._look_again((Change(path, self._entry(path)) for path in dict.fromkeys(also)), still)
        if found:
            with self._mailbox.open() as mail:
                mail.found.extend(found)
                crowded = len(mail.found) > CROWD
            while crowded and not self._over and not self._mailbox.wait_taken(LOOK_UP_SECONDS):
                pass

    def _is_main(self, found: Found) -> bool:
        """Whether this file is newly known as one whose run may be in other files as well."""
        is_main = bool(found.runs) and found.format is not None and _composed(found.format)
        is_new = is_main and found.path not in self._alone
        (self._alone.add if is_main else self._alone.discard)(found.path)
        self._forks.pop(found.path, None)
        self._parts.pop(found.path, None)
        if found.part_of:
            self._parts[found.path] = found.part_of
        for run in found.runs if is_main else ():
            if run.relation == "fork":
                self._forks[found.path] = run.replay_of, run.replay_of_path
        return is_new

    def _forks_near(self, found: Found) -> list[str]:
        """Forks that may count otherwise now that this file has come or gone: who has copies of what tells who pays."""
        folder, ids = os.path.dirname(found.path), {run.id for run in found.runs}
        return [
            path
            for path, (original, at) in self._forks.items()
            if path != found.path and (original in ids or at == found.path or os.path.dirname(path) == folder)
        ]

    def _parts_of(self, main: Found) -> list[str]:
        """Files that stand for themselves in the list, though they are parts of the run of `main`."""
        fmt, parts = registry.load(main.format or ""), list[str]()
        assert isinstance(fmt, Composed)
        for folder in fmt.parts_in(main.path):
            try:
                beside = self._source.list(os.path.normpath(os.path.join(os.path.dirname(main.path), folder))).entries
                for path in self._alone.intersection(entry.path for entry in beside) - {main.path}:
                    with self._source.open(path) as file:
                        parts += [path] if fmt.whole_of(file) == main.path else []
            except OSError:
                continue  # gone or out of reach: that is told as a change of its own
        return parts

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
        if any(run.seems_running for run in found.runs):
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
