"""Follow every run below some roots without a screen: what changes in files becomes events.

Of runs that change a reader is kept, so that only what is new is read; of all others only their summary. A file that
cannot be read is told of when it has been still for a while: until then its writer may be in the middle of it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from tracetui.formats.base import Format
from tracetui.live.file_relations import FileRelations
from tracetui.live.retry_queue import RETRY_SECONDS, Agenda
from tracetui.live.scan import Found, entries, look
from tracetui.live.tail.run_events import Followed, FollowedFile
from tracetui.live.watch.watch import Change, Watch
from tracetui.model import Problem, RunRef
from tracetui.model.event import Event, RunReset
from tracetui.sources.base import Entry, LinkLost, Source

READ_AHEAD: Final = 64 << 20
"""Bytes of files that are read at the start, so that it is known which spans they hold already."""
READ_AHEAD_SECONDS: Final = 2.0
"""So long at most: a file of thousands of runs may have to be read for each of them."""
KEPT_FILES: Final = 8
"""Files that change of which formats may keep what they need to read on."""
LONGEST_REST: Final = 0.25
LOOK_SHARE: Final = 4
"""A file is not looked into again before so many times as long as that took last have gone by."""


def _every(ref: RunRef) -> bool:
    return True


class Tail:
    """What happens to the runs below `roots`. Used by one thread."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        *,
        only: Format | None = None,
        from_start: bool = False,
        events: bool = True,
        wanted: Callable[[RunRef], bool] = _every,
    ) -> None:
        """Without `from_start`, what is there now is not told. `wanted` says which runs are followed."""
        self._source = source
        self._only = only
        self._wanted = wanted
        self._roots = frozenset(roots)
        self._last: Format | None = None
        self._shared: dict[str, Any] = {}
        self._files: dict[str, FollowedFile] = {}
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._agenda = Agenda()
        self._followed = Followed(source, self._agenda)
        self._relations = FileRelations(source)
        self._rest = 0.0
        self._closed = threading.Event()
        if not from_start:
            self._look_around(roots)
        stats = {path: file.entry.stat for path, file in self._files.items() if file.entry.stat is not None}
        self.watch = Watch(source, roots, known=stats, events=events)
        self._read_ahead()

    def events(self, timeout: float) -> Iterator[Event]:
        """What happened since the last call; waits at most so many seconds for it.

        Under a flood half the time goes to waiting: what comes meanwhile is told together, for less.
        """
        self._closed.wait(self._rest)
        changes = self.watch.changes(self._agenda.wait(timeout))
        began = time.monotonic()
        for change in sorted(changes, key=_time_of):
            yield from self._if_linked(change.path, self._changed(change))
        for path in self._agenda.due():
            yield from self._if_linked(path, self._read(path))
        yield from self._followed.relations()
        late = self._agenda.wait(1.0) == 0.0
        self._rest = 0.0 if late else min(time.monotonic() - began, LONGEST_REST)

    def _if_linked(self, path: str, events: Iterator[Event]) -> Iterator[Event]:
        """`events` of a file; if its machine cannot be reached the rest of them later."""
        try:
            yield from events
        except LinkLost:
            self._agenda.add(path, time.monotonic() + RETRY_SECONDS)

    def close(self) -> None:
        """End watching."""
        self._closed.set()
        self.watch.stop()

    # ---- the start

    def _look_around(self, roots: Sequence[str]) -> None:
        for entry in entries(self._source, roots):
            file = self._files[entry.path] = FollowedFile(entry=entry, seen=entry.stat)
            self._remember(file, deep=False)
            if file.several:
                self._remember(file, deep=True)

    def _remember(self, file: FollowedFile, *, deep: bool) -> None:
        found = self._look(file.entry, deep=deep)
        self._relations.add(found, appeared=False)
        runs = [run for run in found.runs if self._wanted(run.ref)]
        file.refs = tuple(run.ref for run in runs)
        for run in runs:
            self._followed.remember(run)

    def _read_ahead(self) -> None:
        """Read the runs of the files that changed last: it is they that will go on, those first that have not ended."""
        room, until = READ_AHEAD, time.monotonic() + READ_AHEAD_SECONDS
        for file in sorted(self._files.values(), key=lambda one: _mtime(one.entry), reverse=True):
            room -= file.entry.stat.size if file.refs and file.entry.stat is not None else 0
            for ref in sorted(file.refs, key=self._followed.has_ended):
                if room < 0 or self._followed.full or time.monotonic() > until:
                    return
                self._followed.read_quietly(ref)

    # ---- files

    def _changed(self, change: Change) -> Iterator[Event]:
        file, entry = self._files.get(change.path), change.entry
        if entry is None:
            if file is not None:
                yield from self._gone(file)
            return
        if file is None:
            file = self._files[change.path] = FollowedFile(entry=entry, changed=_changed_at(entry))
        else:  # by our clock: that of another machine may be wrong, and of a database only the log may have changed
            file.changed = time.monotonic()
        file.entry = entry
        yield from self._read(change.path)

    def _gone(self, file: FollowedFile) -> Iterator[Event]:
        del self._files[file.entry.path]
        self._kept.pop(file.entry.path, None)
        ids = self._followed.ids(file.refs)
        yield from self._empty(file)
        path = file.entry.path
        yield from self._look_at([*self._relations.forks(path, ids), *self._relations.remove(path)])

    def _look_at(self, paths: Iterable[str]) -> Iterator[Event]:
        """Look into these files again: they became or were parts of another file's run, or are forks of it."""
        for file in [self._files[path] for path in paths if path in self._files]:
            yield from self._look_again(file, rewritten=True)

    def _empty(self, file: FollowedFile) -> Iterator[Event]:
        """Nothing holds that was told of a file and its runs."""
        resets = list(self._followed.forget(file.refs))
        yield from resets
        if file.told and RunReset(file.entry.path) not in resets:
            yield RunReset(file.entry.path)
        file.refs, file.told, file.broken = (), None, False

    def _read(self, path: str) -> Iterator[Event]:
        """Everything that is new in a file."""
        file = self._files.get(path)
        if file is None:
            return
        now = time.monotonic()
        track = None if len(file.refs) != 1 or file.several else self._followed.track(file.refs[0])
        if track is not None:
            track.read()
            if track.reader.failure is None and not track.reader.reset and not file.broken:
                file.seen = file.entry.stat
                yield from self._followed.read_on(file, track)
                forks = self._relations.identify(path, self._followed.ids(file.refs))
                yield from self._look_at([*self._relations.joining(path), *forks])
                return
        elif now < file.not_before:
            self._agenda.add(path, file.not_before)
            return
        yield from self._look_again(file, rewritten=track is not None and track.reader.reset)
        file.seen = file.entry.stat
        file.not_before = now + (1 + LOOK_SHARE) * (time.monotonic() - now)

    def _look_again(self, file: FollowedFile, *, rewritten: bool) -> Iterator[Event]:
        """Find out which runs a file holds now, and read them."""
        kept = self._kept.pop(file.entry.path, {})
        found = self._look(file.entry, deep=file.several, kept=kept)
        if kept:
            self._kept[file.entry.path] = kept
            if len(self._kept) > KEPT_FILES:
                self._kept.popitem(last=False)
        runs = [run for run in found.runs if self._wanted(run.ref)]
        refs = tuple(run.ref for run in runs)
        nothing = rewritten or found.part_of or (file.still and not found.problems)
        if (file.broken and not found.problems) or (not runs and nothing):
            yield from self._empty(file)
        elif rewritten:
            self._followed.drop(file.refs)
        if runs:
            yield from self._followed.forget(ref for ref in file.refs if ref not in refs)
            file.refs = refs
        for run in runs:
            yield from self._followed.read(file, run)
        yield from self._broken(file, found)
        also = self._relations.add(found)
        main = self._files.get(found.part_of)
        if main is None:
            yield from self._look_at(also)
        elif main is not file:
            main.changed = time.monotonic()
            yield from self._read(found.part_of)

    def _broken(self, file: FollowedFile, found: Found) -> Iterator[Event]:
        """What is wrong with a file, once it has been still for a while."""
        problems: list[Problem] = [*found.problems, *self._followed.failures(file.refs)]
        if file.still:
            for problem in problems:
                file.broken = True
                yield from file.problem(problem)
        elif problems or file.several or (file.refs and not found.runs):
            self._agenda.add(file.entry.path, file.still_at)

    def _look(self, entry: Entry, *, deep: bool, kept: dict[str, Any] | None = None) -> Found:
        named = entry.path in self._roots
        found, self._last = look(
            self._source,
            entry,
            deep=deep,
            last=self._last,
            only=self._only,
            kept=kept,
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
    """When a file changed, on the clock of `time.monotonic`; now if its own times make no sense."""
    now = time.monotonic()
    if entry.stat is None:
        return now
    ago = time.time() - max(entry.stat.mtime_ns, entry.stat.ctime_ns) / 1e9
    return now - ago if ago > 0 else now
