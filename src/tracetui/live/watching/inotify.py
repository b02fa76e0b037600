"""Linux tells at once what happens in a folder, for nothing while nothing happens: inotify, by way of the C library."""

from __future__ import annotations

import contextlib
import os
import select
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ctypes

AVAILABLE: Final = sys.platform == "linux"
_MODIFY: Final = 0x2
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
_ONLY_FOLDERS, _NO_LINK, _NO_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_NAMES: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_ITSELF: Final = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _IGNORED
# Closing and attributes are left out: SQLite opens a log for writing (and as root gives it an owner) only to read it.
_WANTED: Final = _MODIFY | _NAMES | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS | _NO_LINK | _NO_UNLINKED
_EVENT: Final = struct.Struct("iIII")
_BUFFER: Final = 1 << 18
_LONGEST: Final = 0.05


class Inotify:
    """Hints of what happened in some folders; see `notify.Notify`. Raises `OSError` if there is none."""

    def __init__(self, gather: float = 0.0) -> None:
        """After the first hint, `wait` waits `gather` seconds for those that come with it."""
        self._libc = _c_library()
        self._fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._bell, self._rope = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            os.close(self._fd)
            raise
        self._gather = gather
        self._guard = threading.Lock()
        self._closed = False
        self._ids: dict[str, int] = {}
        self._folders: dict[int, set[str]] = {}
        """Paths by which a watched folder is known; after a move, for a while, the old and the new one."""

    def add(self, folder: str, *, follow: bool = False) -> bool:
        """Watch `folder`, a link only with `follow`; false if it cannot be listed."""
        if folder in self._ids:
            return True
        place = os.path.join(folder, ".") if follow else folder
        try:
            watch = self._checked(self._libc.inotify_add_watch(self._fd, os.fsencode(place), _WANTED))
        except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
            return False
        self._ids[folder] = watch
        self._folders.setdefault(watch, set()).add(folder)
        return True

    def remove(self, folder: str) -> None:
        """Watch it no longer."""
        watch = self._ids.pop(folder, None)
        if watch is None:
            return
        paths = self._folders[watch]
        paths.discard(folder)
        if not paths:
            del self._folders[watch]
            self._libc.inotify_rm_watch(self._fd, watch)  # fails if the folder is gone, and its watch with it

    def wait(self, timeout: float) -> dict[str, bool] | None:
        """What happened, at the latest after `timeout` seconds; None if hints were lost."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        ready = poll.poll(max(0.0, timeout) * 1000)
        if any(fd == self._bell for fd, _ in ready):
            os.read(self._bell, _BUFFER)
        elif self._gather and ready:
            poll.unregister(self._fd)
            poll.poll(self._gather * 1000)
        hints: dict[str, bool] = {}
        with contextlib.suppress(BlockingIOError):
            end = time.monotonic() + _LONGEST  # writers may never rest
            while time.monotonic() < end:
                for watch, mask, name in _events(os.read(self._fd, _BUFFER)):
                    if mask & _OVERFLOW:
                        return None
                    self._take(hints, watch, mask, name)
        return hints

    def wake(self) -> None:
        """End `wait`, or the next one, from another thread."""
        with self._guard, contextlib.suppress(BlockingIOError):
            if not self._closed:
                os.write(self._rope, b"!")

    def close(self) -> None:
        """Give everything back."""
        with self._guard:
            if not self._closed:
                self._closed = True
                for fd in (self._fd, self._bell, self._rope):
                    os.close(fd)

    def _take(self, hints: dict[str, bool], watch: int, mask: int, name: str) -> None:
        for folder in self._folders.get(watch, ()):
            path = os.path.join(folder, name) if name else folder
            hints[path] = hints.get(path, False) or bool(mask & (_NAMES | _ITSELF))
        if mask & _IGNORED:
            for folder in self._folders.pop(watch, ()):
                self._ids.pop(folder, None)

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            from ctypes import get_errno

            number = get_errno()
            raise OSError(number, os.strerror(number))
        return result


def _c_library() -> ctypes.CDLL:
    import ctypes  # slow to import, and nothing is watched before the first rows are shown

    return ctypes.CDLL(None, use_errno=True)


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Watch, mask and name of each event."""
    start = 0
    while start + _EVENT.size <= len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, start)
        start += _EVENT.size
        yield watch, mask, os.fsdecode(data[start : start + length].rstrip(b"\0"))
        start += length
