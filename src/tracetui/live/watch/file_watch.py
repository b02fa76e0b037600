"""Wait for writes to one file, or to the other files of its run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from typing import Final

from tracetui.live.watch.notify import AVAILABLE, Inotify, why_polling

POLL_SECONDS: Final = 0.025
"""Polling interval without file events."""
REMOTE_SECONDS: Final = 0.25
"""Polling interval of a remote file."""
CHECK_SECONDS: Final = 0.5
"""How often to verify that the watched folder is still the one at its path."""
_Identity = tuple[int, int]


class FileWatch:
    """Waits for one file, and for the log of a database. Used by one thread; any may call `wake`."""

    def __init__(self, path: str, *, local: bool = True, parts: Sequence[str] = ()) -> None:
        """The file need not exist, nor need `parts`, folders whose files are all watched too.

        Without `local` the file is remote: `wait` only paces the caller.
        """
        places = (path, os.path.realpath(path)) if local else (path,)
        self._paths = frozenset(place + end for place in places for end in ("", "-wal"))
        self._folders: dict[str, _Identity | None] = {os.path.dirname(place) or os.curdir: None for place in places}
        """Watched folders and their identities; None: not watched."""
        self._parts: dict[str, _Identity | None] = dict.fromkeys(parts if local else ())
        """The same for folders of parts."""
        self._local = local
        self._inotify: Inotify | None = None
        self._woken = threading.Event()
        if AVAILABLE and local and not why_polling([path]):
            with contextlib.suppress(OSError):  # out of watches: it polls
                self._inotify = Inotify()
                self._update_watches(self._inotify)
        self._last_state = self._state()

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds; return True if something may have changed since the last call.

        For a remote file, return True after `REMOTE_SECONDS`.
        """
        deadline = time.monotonic() + timeout
        while not self._woken.is_set():
            left = max(0.0, deadline - time.monotonic())
            if self._listen(self._inotify, left) if self._inotify is not None else self._poll(left):
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

    def _listen(self, inotify: Inotify, left: float) -> bool:
        try:
            if None in self._folders.values():
                return self._poll(left) | self._update_watches(inotify)
            hints = inotify.wait(min(left, CHECK_SECONDS))
            if hints is None:
                return True
            if lost := hints.keys() & self._folders.keys():
                self._folders.update(dict.fromkeys(lost))
            hit = not self._paths.isdisjoint(hints) or any(os.path.dirname(one) in self._parts for one in hints)
            return (self._update_watches(inotify) or hit) if lost or not hints or self._parts else hit
        except OSError:
            inotify.close()
            self._inotify = None
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

    def _poll(self, left: float) -> bool:
        if not self._local:
            self._woken.wait(min(left, REMOTE_SECONDS))
            return left >= REMOTE_SECONDS and not self._woken.is_set()
        self._woken.wait(min(left, POLL_SECONDS))
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
        found = os.stat(folder)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _times(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    changed = 0 if path.endswith("-wal") else found.st_ctime_ns  # SQLite changes it when it only reads
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, changed
