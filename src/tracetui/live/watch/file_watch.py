"""Wakes as soon as one file is written to, or those that make one run with it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from typing import Final

from tracetui.live.watch.notify import AVAILABLE, Inotify, why_not

POLL_SECONDS: Final = 0.025
"""How often the file is looked at where nobody tells."""
REMOTE_SECONDS: Final = 0.25
"""How long to wait between two looks at a file on another machine."""
CHECK_SECONDS: Final = 0.5
"""How often to make sure that the folder which is watched is still the one at that path."""
_Identity = tuple[int, int]


class FileWatch:
    """Waits for one file, and for the log beside it if it is a database. One thread uses it; any may call `wake`."""

    def __init__(self, path: str, *, local: bool = True, parts: Sequence[str] = ()) -> None:
        """The file need not be there, nor need `parts`, folders all of whose files are watched too.

        Without `local` it is on another machine: `wait` just paces who looks.
        """
        places = (path, os.path.realpath(path)) if local else (path,)
        self._paths = frozenset(place + end for place in places for end in ("", "-wal"))
        self._folders: dict[str, _Identity | None] = {os.path.dirname(place) or os.curdir: None for place in places}
        """The folders to watch, and which ones these were when that began; None: not watched."""
        self._parts: dict[str, _Identity | None] = dict.fromkeys(parts if local else ())
        """The same of the folders of parts."""
        self._local = local
        self._inotify: Inotify | None = None
        self._woken = threading.Event()
        if AVAILABLE and local and not why_not([path]):
            with contextlib.suppress(OSError):  # used up: then it polls
                self._inotify = Inotify()
                self._settle(self._inotify)
        self._seen = self._look()

    def wait(self, timeout: float) -> bool:
        """True if something may have changed since the last call; waits at most `timeout` seconds for that.

        Of a file on another machine nothing is known: True after `REMOTE_SECONDS`.
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
        inotify = self._inotify  # the other thread may let go of it meanwhile
        if inotify is not None:
            inotify.wake()

    def close(self) -> None:
        """Give everything back."""
        if self._inotify is not None:
            self._inotify.close()

    def _listen(self, inotify: Inotify, left: float) -> bool:
        try:
            if None in self._folders.values():
                return self._poll(left) | self._settle(inotify)
            hints = inotify.wait(min(left, CHECK_SECONDS))
            if hints is None:
                return True
            if lost := hints.keys() & self._folders.keys():
                self._folders.update(dict.fromkeys(lost))
            told = not self._paths.isdisjoint(hints) or any(os.path.dirname(one) in self._parts for one in hints)
            return (self._settle(inotify) or told) if lost or not hints or self._parts else told
        except OSError:
            inotify.close()
            self._inotify = None
            return True

    def _settle(self, inotify: Inotify) -> bool:
        """Watch the folders that are at these paths now; True if one is another than before."""
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
        before, self._seen = self._seen, self._look()
        return self._seen != before

    def _look(self) -> list[tuple[int, ...]]:
        """What tells one state of the files from the next."""
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
