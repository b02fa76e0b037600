"""Find changed files: hints show where to look at once, and periodic sweeps find the rest.

A hint is never trusted: its folder is listed again and compared. Without hints, or without complete ones (remote
machines, network file systems, no watches left), sweeps run more often.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from typing import Final

from tracetui.live.folders import Change, Tree
from tracetui.live.notify import AVAILABLE, Inotify, Notify, explain_error, open_notify, why_polling
from tracetui.sources.base import MOVING_SECONDS, LinkLost, Source, Stat

__all__ = ["Change", "Watch"]

GLANCE_SECONDS: Final = 0.75
"""Shortest interval between checks of names and recently changed files."""
SWEEP_SECONDS: Final = 3.5
"""Shortest interval between sweeps."""
RECENT_SECONDS: Final = 600.0
_MAX_RECENT: Final = 200
_REMOTE_FILES_A_SECOND: Final = 400
"""A small remote tree is swept more often: about 50 KB a second in any case."""
_PREFETCH: Final = 32
"""Remote folders requested at once."""
_SLICE_SECONDS: Final = 0.02
"""Longest slice of a sweep before hints are handled again."""
_REST_HINTED: Final = 250
"""Rest after a sweep, as a multiple of its duration, with hints …"""
_REST_POLLING: Final = 20
"""… without hints …"""
_REST_REMOTE: Final = 2
"""… and for a remote tree, where most of the duration is waiting."""


class Watch:
    """Changes below some roots. One thread calls `changes` and `sweep`; the rest is thread-safe."""

    def __init__(
        self,
        source: Source,
        roots: Sequence[str],
        *,
        seen: Mapping[str, Stat] = {},
        events: bool = True,
        notify: Callable[[], Notify] = open_notify,
    ) -> None:
        """Reads nothing yet. `seen` is the state that the caller has read; `notify` opens the notifier."""
        self._lost: dict[str, str] = {}
        """Unreachable roots, and why; their last state stays."""
        self.mode = "polling"
        """``events`` or ``polling``."""
        self.reason = ""
        """Why it polls."""
        self._source = source
        self._tree = Tree(source, roots, seen)
        self._local = all(self._tree.local_path(root) is not None for root in self._tree.roots)
        self._notify: Notify | None = None
        self._stop = threading.Event()
        self._busy = threading.Lock()
        self._todo: list[str] = []
        """Folders left in the sweep, the next one last."""
        self._hinted: dict[str, bool] = {}
        """Folders to list because of hints; True: the folder may have been replaced."""
        self._recent: dict[str, float] = {}
        """Recently changed files and when (monotonic), oldest first."""
        self._sweeping = False
        self._sweep_pending = False
        """Hints were lost during the sweep, so it must run again."""
        self._swept = 0.0
        """Seconds spent on the sweep so far."""
        self._sweep_at = 0.0
        self._glance_at = 0.0
        self._begin(events, notify)

    @property
    def lost(self) -> str:
        """Why roots are unreachable; empty if all are reachable."""
        return "; ".join(dict.fromkeys(self._lost.values()))

    @property
    def folders(self) -> int:
        """Number of folders."""
        return self._tree.folders

    @property
    def files(self) -> int:
        """Number of files to read."""
        return self._tree.files

    def changes(self, timeout: float) -> list[Change]:
        """Return files that changed since they were last reported (or since `seen`), each once; wait up to `timeout`
        seconds for one (0: do not wait).

        An unlistable root or folder is an entry with the reason, as in walking. A file may be reported without having
        changed. Empty after the timeout, and once `stop` is called.
        """
        with self._busy:
            self._wait(time.monotonic() + timeout)
            changes = self._take()
        self._release()
        return changes

    def sweep(self) -> list[Change]:
        """Compare everything now; return the changes as `changes` does."""
        with self._busy:
            self._begin_sweep()
            while self._sweeping and not self._stop.is_set():
                self._guard(lambda: self._sweep_slice(float("inf")))
            changes = self._take()
        self._release()
        return changes

    def stop(self) -> None:
        """End `changes` now and in the future, and release all watches."""
        self._stop.set()
        notify = self._notify
        if notify is not None:
            notify.wake()
        self._release()

    def _begin(self, events: bool, notify: Callable[[], Notify]) -> None:
        self.reason = (
            "remote machine"
            if not self._local
            else "events are off"
            if not events
            else why_polling(path for root in self._tree.roots if (path := self._tree.local_path(root)) is not None)
        )
        if self.reason:
            return
        try:
            self._notify = self._tree.notify = notify()
            self.mode = "events"
        except OSError as error:
            self._poll(error)

    def _release(self) -> None:
        """Release all watches after `stop`, in whichever thread notices first."""
        if self._stop.is_set() and self._busy.acquire(blocking=False):
            try:
                if self._notify is not None:
                    self._notify.close()
            finally:
                self._busy.release()

    def _poll(self, error: OSError) -> None:
        """Fall back to polling."""
        if self._notify is not None:
            self._notify.close()
        self._notify = self._tree.notify = None
        self.mode, self.reason = "polling", explain_error(error)

    # ---- waiting

    def _wait(self, deadline: float) -> None:
        seconds = 0.0
        while not self._stop.is_set():
            self._wait_for_hints(seconds)
            self._guard(self._work)
            now = time.monotonic()
            if self._tree.changes or now >= deadline:
                return
            seconds = 0.0 if self._todo else min(deadline, self._due()) - now

    def _due(self) -> float:
        """Return when the next work is due without a hint."""
        hinted = min((self._tree.listable_at(folder) for folder in self._hinted), default=self._sweep_at)
        return min(self._glance_at, self._sweep_at, hinted)

    def _wait_for_hints(self, seconds: float) -> None:
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
            self._sweep_at, self._sweep_pending = 0.0, self._sweeping
        for path, named in (hints or {}).items():
            self._hint(path, named)

    def _hint(self, path: str, named: bool) -> None:
        folder, itself = self._tree.owner_of(path)
        if folder is None or (not named and self._tree.skips(path)) or self._tree.check_file(path):
            return
        self._hinted[folder] = self._hinted.get(folder, False) or (named and itself)

    # ---- looking

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:  # no watch left for a new folder; every other failure is an entry
            self._poll(error)
            self._begin_sweep()

    def _work(self) -> None:
        """Do the work that is due: hinted folders first, then names and recent files, then a slice of the sweep."""
        self._list_hinted()
        began = time.monotonic()
        if began >= self._glance_at:
            self._glance()
            now = time.monotonic()
            self._glance_at = now + max(GLANCE_SECONDS, self._rest * (now - began))
        if began >= self._sweep_at and not self._sweeping:
            self._begin_sweep()
        self._sweep_slice(time.monotonic() + _SLICE_SECONDS)

    @property
    def _rest(self) -> int:
        return _REST_HINTED if self._notify is not None else _REST_POLLING if self._local else _REST_REMOTE

    def _list_hinted(self) -> None:
        now = time.monotonic()
        for folder in [folder for folder in self._hinted if self._tree.listable_at(folder) <= now]:
            other = self._hinted.pop(folder)
            if other and self._notify is not None:
                for below in self._tree.descendants(folder):
                    self._notify.remove(below)
            self._visit(folder, deep=other)

    def _visit(self, folder: str, *, deep: bool = False) -> None:
        pending = [folder]
        while pending and not self._stop.is_set():
            pending.extend(self._list(pending.pop(), deep=deep))

    def _list(self, folder: str, *, deep: bool) -> list[str]:
        """Compare a folder; return the folders below it to compare as well.

        For an unreachable machine nothing changes; the sweep after reconnecting makes up for that.
        """
        root = self._tree.root_of(folder) or folder
        try:
            below = self._tree.visit(folder, deep=deep)
        except LinkLost as error:
            self._lost[root] = str(error) or "the connection is lost"
            return []
        if self._lost.pop(root, None) is not None:
            self._sweep_at, self._sweep_pending = 0.0, self._sweeping
        return below[::-1]

    def _glance(self) -> None:
        """Do the cheap checks: names and recently changed files."""
        for folder in self._tree.paths() if self._local else self._tree.roots:
            stale = self._tree.stale(folder)
            if stale is not None:
                self._hinted[folder] = stale
        for path in self._recent:
            self._hint(path, named=False)
        self._list_hinted()

    def _begin_sweep(self) -> None:
        self._todo, self._sweeping, self._sweep_pending, self._swept = [*self._tree.roots][::-1], True, False, 0.0

    def _sweep_slice(self, until: float) -> None:
        """Do a slice of the sweep until that time."""
        began = time.monotonic()
        while self._todo and not self._stop.is_set() and time.monotonic() < until:
            with suppress(LinkLost):  # listing reports it for each
                self._source.prefetch(self._todo[: -_PREFETCH - 1 : -1])
            self._todo.extend(self._list(self._todo.pop(), deep=True))
        if not self._sweeping:
            return
        now = time.monotonic()
        self._swept += now - began
        if not self._todo and not self._stop.is_set():
            self._sweeping = False
            if not self._lost:
                self._tree.report_missing()
            self._sweep_at = 0.0 if self._sweep_pending else now + max(self._sweep_seconds, self._rest * self._swept)

    @property
    def _sweep_seconds(self) -> float:
        if self._local:
            return SWEEP_SECONDS
        return min(SWEEP_SECONDS, max(GLANCE_SECONDS, self._tree.files / _REMOTE_FILES_A_SECOND))

    def _take(self) -> list[Change]:
        changes, self._tree.changes = self._tree.changes, {}
        now = time.monotonic()
        for path in changes:
            self._recent.pop(path, None)
            self._recent[path] = now
        for path in list(self._recent):
            if len(self._recent) <= _MAX_RECENT and now - self._recent[path] < RECENT_SECONDS:
                break
            del self._recent[path]
        return list(changes.values())


# ---- writes to one file, or to the other files of its run


POLL_SECONDS: Final = 0.025
"""Polling interval without file events."""
REMOTE_SECONDS: Final = 0.25
"""Polling interval of a remote file."""
CHECK_SECONDS: Final = 0.5
"""How often to verify that the watched folder is still the one at its path."""
_Identity = tuple[int, int]


class FileWatch:
    """Waits for one file after the other, and for the log of a database. Used by one thread; any may call `wake`.

    Closing a kernel watch takes about 10 ms, so one watch serves all files.
    """

    def __init__(self) -> None:
        self._paths: frozenset[str] = frozenset()
        self._folders: dict[str, _Identity | None] = {}
        """Watched folders and their identities; None: not watched."""
        self._parts: dict[str, _Identity | None] = {}
        """The same for folders of parts."""
        self._local = True
        self._inotify: Inotify | None = None
        self._has_events = False
        """Whether the file's folders are watched; else it is polled."""
        self._woken = threading.Event()

    def follow(self, path: str, *, local: bool = True, parts: Sequence[str] = ()) -> None:
        """Wait for this file from now on, and no longer for the one before.

        The file need not exist, nor need `parts`, folders with files that are all watched too. Without `local` the
        file is remote: `wait` only paces the caller.
        """
        places = (path, os.path.realpath(path)) if local else (path,)
        watched = {**self._folders, **self._parts} if self._inotify is not None else {}
        self._paths = frozenset(place + end for place in places for end in ("", "-wal"))
        self._folders = {
            folder: watched.get(folder) for folder in (os.path.dirname(place) or os.curdir for place in places)
        }
        self._parts = {folder: watched.get(folder) for folder in parts} if local else {}
        self._local = local
        is_watched = self._has_events and None not in self._folders.values()
        self._has_events = AVAILABLE and local and (is_watched or not why_polling([path]))
        if self._inotify is not None:
            for folder in watched.keys() - self._folders.keys() - self._parts.keys():
                self._inotify.remove(folder)
        if self._has_events:
            try:
                self._inotify = self._inotify or Inotify()
                self._update_watches(self._inotify)
            except OSError:  # out of watches
                self._has_events = False
        self._last_state = self._state()

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds; return True if something may have changed since the last call.

        For a remote file, return True after `REMOTE_SECONDS`.
        """
        deadline = time.monotonic() + timeout
        while not self._woken.is_set():
            remaining = max(0.0, deadline - time.monotonic())
            if self._listen(self._inotify, remaining) if self._inotify and self._has_events else self._poll(remaining):
                return True
            if time.monotonic() >= deadline:
                return False
        self._woken.clear()
        return False

    def wake(self) -> None:
        """End `wait` now, or the next one, from another thread."""
        self._woken.set()
        inotify = self._inotify  # the other thread may drop it meanwhile
        if inotify is not None:
            inotify.wake()

    def close(self) -> None:
        """Release all watches."""
        if self._inotify is not None:
            self._inotify.close()

    def _listen(self, inotify: Inotify, seconds: float) -> bool:
        try:
            if None in self._folders.values():
                return self._poll(seconds) | self._update_watches(inotify)
            hints = inotify.wait(min(seconds, CHECK_SECONDS))
            if hints is None:
                return True
            if lost := hints.keys() & self._folders.keys():
                self._folders.update(dict.fromkeys(lost))
            hit = not self._paths.isdisjoint(hints) or any(os.path.dirname(path) in self._parts for path in hints)
            return (self._update_watches(inotify) or hit) if lost or not hints or self._parts else hit
        except OSError:
            inotify.close()
            self._inotify, self._has_events = None, False
            return True

    def _update_watches(self, inotify: Inotify) -> bool:
        """Watch the folders now at these paths; return True if one was replaced."""
        changed = False
        for folder, before in self._folders.items():
            now = _identity(folder)
            if now != before:
                inotify.remove(folder)
                watched = now is not None and inotify.add(folder, follow=True)
                self._folders[folder] = now if watched else None
                changed |= watched or before is not None
        for folder, before in self._parts.items():
            now = _identity(folder)
            if now != before:
                inotify.remove(folder)
                watched = now is not None and inotify.add(folder)
                self._parts[folder] = now if watched else None
                changed |= watched
        return changed

    def _poll(self, seconds: float) -> bool:
        if not self._local:
            self._woken.wait(min(seconds, REMOTE_SECONDS))
            return seconds >= REMOTE_SECONDS and not self._woken.is_set()
        self._woken.wait(min(seconds, POLL_SECONDS))
        before, self._last_state = self._last_state, self._state()
        return self._last_state != before

    def _state(self) -> list[tuple[int, ...]]:
        """Return a fingerprint of the files."""
        paths = sorted(self._paths)
        for folder in self._parts:
            with contextlib.suppress(OSError, ValueError):
                paths += sorted(entry.path for entry in os.scandir(folder))
        return [_times(path) for path in paths] if self._local else []


def _identity(folder: str) -> _Identity | None:
    try:
        stat = os.stat(folder)
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino


def _times(path: str) -> tuple[int, ...]:
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return ()
    changed = 0 if path.endswith("-wal") else stat.st_ctime_ns  # SQLite changes it when it only reads
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, changed


# ---- checking again later

STILL_SECONDS: Final = 2.0
"""A file that cannot be read may be half written: it is reported as broken once unchanged for this long."""
RETRY_SECONDS: Final = 1.0
"""Delay before the next attempt to reach a source."""


class RetryQueue:
    """Paths and their due times on the clock of `time.monotonic`. Used by one thread."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        """May contain canceled times, which are dropped when they come up."""

    def schedule(self, path: str, when: float) -> None:
        """Check `path` at `when`, or earlier if already scheduled."""
        if when < self._when.get(path, float("inf")):
            self.reschedule(path, when)

    def reschedule(self, path: str, when: float) -> None:
        """Check `path` at `when`, and not before."""
        self._when[path] = when
        heappush(self._heap, (when, path))

    def cancel(self, path: str) -> None:
        """Remove `path` from the queue."""
        self._when.pop(path, None)

    def wait_seconds(self, longest: float) -> float:
        """Seconds until the next path may be due, at most `longest`."""
        return min(longest, max(0.0, self._heap[0][0] - time.monotonic())) if self._heap else longest

    def pop_due(self) -> Iterator[str]:
        """Remove and yield the paths that are due."""
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, path = heappop(self._heap)
            if self._when.get(path) == when:
                del self._when[path]
                yield path


def settle_seconds(stat: Stat | None) -> float:
    """Seconds for which an unreadable file must be unchanged before it is reported as broken.

    Longer for an empty file: a buffering writer leaves it empty until it has output.
    """
    return STILL_SECONDS if stat is None or stat.size else MOVING_SECONDS


def running_seconds(still: float) -> float:
    """Seconds until a run that seems to be running may stop seeming so.

    Its file has been unchanged for `still` seconds. If the run still seems to be running after that, the file's clock
    is ahead of ours by an unknown amount: it is checked rarely.
    """
    remaining = MOVING_SECONDS - still
    return max(STILL_SECONDS, remaining) if remaining > 0 else MOVING_SECONDS
