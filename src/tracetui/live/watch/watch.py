"""Which files changed: hints of the system say where to look at once; looking everywhere now and then finds the rest.

A hint is never believed: its folder is listed again and compared. Where there are no hints, or not for everything
(another machine, a network file system, no watches left), looking everywhere is all there is, and is done more often.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from tracetui.live.watch.notify import Notify, open_notify, reason, why_not
from tracetui.live.watch.tree import Change, Tree
from tracetui.sources.base import LinkLost, Source, Stat

__all__ = ["Change", "Watch"]

GLANCE_SECONDS: Final = 0.75
"""How often names, and files that changed lately, are looked at, at most."""
SWEEP_SECONDS: Final = 3.5
"""How often everything is compared, at most."""
LATELY_SECONDS: Final = 600.0
_LATELY_FILES: Final = 200
_REMOTE_FILES_A_SECOND: Final = 400
"""Another machine is asked for all names more often if they are few: some 50 KB a second in any case."""
_AT_ONCE: Final = 32
"""Folders of another machine that are asked for at once."""
_SLICE_SECONDS: Final = 0.02
"""How long one part of comparing everything may take before hints are heard again."""
_REST_HINTED: Final = 250
"""After looking everywhere for one second follow so many seconds of rest, if hints tell what is urgent …"""
_REST_POLLING: Final = 20
"""… if they don't …"""
_REST_REMOTE: Final = 2
"""… and if most of that second was waiting."""


class Watch:
    """The changes below some roots. One thread calls `changes` and `sweep`; the rest may be used by any."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        *,
        known: Mapping[str, Stat] = {},
        events: bool = True,
        notify: Callable[[], Notify] = open_notify,
    ) -> None:
        """Nothing is looked at yet. `known` is what the caller has seen; `notify` opens what gives hints."""
        self._lost: dict[str, str] = {}
        """Roots that cannot be reached, and why; what is known is kept meanwhile."""
        self.how = "polling"
        """``events`` or ``polling``."""
        self.why = ""
        """Why it polls."""
        self._source = source
        self._tree = Tree(source, roots, known)
        self._local = all(self._tree.local_path(root) is not None for root in self._tree.roots)
        self._notify: Notify | None = None
        self._stop = threading.Event()
        self._busy = threading.Lock()
        self._todo: list[str] = []
        """Folders of the sweep that goes on, those to come first last."""
        self._hinted: dict[str, bool] = {}
        """Folders to list because of hints; True: they may be others under the same name."""
        self._late: dict[str, float] = {}
        """Files and when (monotonic) they changed last, oldest first."""
        self._sweeping = False
        self._again = False
        """Hints were lost while it went on: it is to be done again."""
        self._swept = 0.0
        """Seconds that it took so far."""
        self._sweep_at = 0.0
        self._glance_at = 0.0
        self._begin(events, notify)

    @property
    def lost(self) -> str:
        """Why a root cannot be reached, be it one of several; empty while all can."""
        return "; ".join(dict.fromkeys(self._lost.values()))

    @property
    def folders(self) -> int:
        """How many folders are known."""
        return self._tree.folders

    @property
    def files(self) -> int:
        """How many files to read are known."""
        return self._tree.files

    def changes(self, timeout: float) -> list[Change]:
        """Every file that changed since it was last reported (or since `known`), once; waits at most `timeout` seconds
        for one (0: does not wait).

        A root or folder that cannot be listed is an entry that says why, as in walking. A file may be reported without
        having changed. Empty after the time, and as soon as `stop` is called.
        """
        with self._busy:
            self._wait(time.monotonic() + timeout)
            changes = self._take()
        self._release()
        return changes

    def sweep(self) -> list[Change]:
        """Compare everything now; what changed, as in `changes`."""
        with self._busy:
            self._begin_sweep()
            while self._sweeping and not self._stop.is_set():
                self._guard(lambda: self._go_on(float("inf")))
            changes = self._take()
        self._release()
        return changes

    def stop(self) -> None:
        """End `changes` now and from now on. Everything is given back once it has ended."""
        self._stop.set()
        notify = self._notify
        if notify is not None:
            notify.wake()
        self._release()

    def _begin(self, events: bool, notify: Callable[[], Notify]) -> None:
        self.why = (
            "another machine"
            if not self._local
            else "switched off"
            if not events
            else why_not(path for root in self._tree.roots if (path := self._tree.local_path(root)) is not None)
        )
        if self.why:
            return
        try:
            self._notify = self._tree.notify = notify()
            self.how = "events"
        except OSError as error:
            self._poll(error)

    def _release(self) -> None:
        """Give everything back after `stop`, whoever notices first."""
        if self._stop.is_set() and self._busy.acquire(blocking=False):
            try:
                if self._notify is not None:
                    self._notify.close()
            finally:
                self._busy.release()

    def _poll(self, error: OSError) -> None:
        """No hints from now on."""
        if self._notify is not None:
            self._notify.close()
        self._notify = self._tree.notify = None
        self.how, self.why = "polling", reason(error)

    # ---- waiting

    def _wait(self, deadline: float) -> None:
        seconds = 0.0
        while not self._stop.is_set():
            self._hear(seconds)
            self._guard(self._work)
            now = time.monotonic()
            if self._tree.found or now >= deadline:
                return
            seconds = 0.0 if self._todo else min(deadline, self._due()) - now

    def _due(self) -> float:
        """When there is something to do without a hint."""
        hinted = min((self._tree.rested(folder) for folder in self._hinted), default=self._sweep_at)
        return min(self._glance_at, self._sweep_at, hinted)

    def _hear(self, seconds: float) -> None:
        """Wait for hints."""
        if self._notify is None:
            self._stop.wait(max(0.0, seconds))
            return
        try:
            hints = self._notify.wait(max(0.0, seconds))
        except OSError as error:
            self._poll(error)
            return
        if hints is None:
            self._sweep_at, self._again = 0.0, self._sweeping
        for path, named in (hints or {}).items():
            self._hint(path, named)

    def _hint(self, path: str, named: bool) -> None:
        folder, itself = self._tree.owner_of(path)
        if folder is None or (not named and self._tree.skips(path)) or self._tree.look(path):
            return
        self._hinted[folder] = self._hinted.get(folder, False) or (named and itself)

    # ---- looking

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:  # no watch for one more folder; every other failure is an entry
            self._poll(error)
            self._begin_sweep()

    def _work(self) -> None:
        """What is due: hinted folders first, then names and late files, then a part of comparing everything."""
        self._list_hinted()
        began = time.monotonic()
        if began >= self._glance_at:
            self._glance()
            now = time.monotonic()
            self._glance_at = now + max(GLANCE_SECONDS, self._rest * (now - began))
        if began >= self._sweep_at and not self._sweeping:
            self._begin_sweep()
        self._go_on(time.monotonic() + _SLICE_SECONDS)

    @property
    def _rest(self) -> int:
        return _REST_HINTED if self._notify is not None else _REST_POLLING if self._local else _REST_REMOTE

    def _list_hinted(self) -> None:
        now = time.monotonic()
        for folder in [folder for folder in self._hinted if self._tree.rested(folder) <= now]:
            other = self._hinted.pop(folder)
            if other and self._notify is not None:
                for below in self._tree.below(folder):
                    self._notify.remove(below)
            self._visit(folder, deep=other)

    def _visit(self, folder: str, *, deep: bool = False) -> None:
        pending = [folder]
        while pending and not self._stop.is_set():
            pending.extend(self._list(pending.pop(), deep=deep))

    def _list(self, folder: str, *, deep: bool) -> list[str]:
        """Compare a folder; those below it that are to be compared as well.

        Of a machine that cannot be reached nothing changes. Comparing everything once it is back makes up for that.
        """
        root = self._tree.root_of(folder) or folder
        try:
            below = self._tree.visit(folder, deep=deep)
        except LinkLost as error:
            self._lost[root] = str(error) or "the connection is lost"
            return []
        if self._lost.pop(root, None) is not None:
            self._sweep_at, self._again = 0.0, self._sweeping
        return below[::-1]

    def _glance(self) -> None:
        """What is cheap to see: names that came or went, files that changed lately."""
        for folder in self._tree.paths() if self._local else self._tree.roots:
            stale = self._tree.stale(folder)
            if stale is not None:
                self._hinted[folder] = stale
        for path in self._late:
            self._hint(path, named=False)
        self._list_hinted()

    def _begin_sweep(self) -> None:
        self._todo, self._sweeping, self._again, self._swept = [*self._tree.roots][::-1], True, False, 0.0

    def _go_on(self, until: float) -> None:
        """A part of the sweep, as far as the time goes."""
        began = time.monotonic()
        while self._todo and not self._stop.is_set() and time.monotonic() < until:
            with suppress(LinkLost):  # listing them finds out for each
                self._source.expect(self._todo[: -_AT_ONCE - 1 : -1])
            self._todo.extend(self._list(self._todo.pop(), deep=True))
        if not self._sweeping:
            return
        now = time.monotonic()
        self._swept += now - began
        if not self._todo and not self._stop.is_set():
            self._sweeping = False
            if not self._lost:
                self._tree.forget_known()
            self._sweep_at = 0.0 if self._again else now + max(self._sweep_seconds, self._rest * self._swept)

    @property
    def _sweep_seconds(self) -> float:
        if self._local:
            return SWEEP_SECONDS
        return min(SWEEP_SECONDS, max(GLANCE_SECONDS, self._tree.files / _REMOTE_FILES_A_SECOND))

    def _take(self) -> list[Change]:
        found, self._tree.found = self._tree.found, {}
        now = time.monotonic()
        for path in found:
            self._late.pop(path, None)
            self._late[path] = now
        for path in list(self._late):
            if len(self._late) <= _LATELY_FILES and now - self._late[path] < LATELY_SECONDS:
                break
            del self._late[path]
        return list(found.values())
