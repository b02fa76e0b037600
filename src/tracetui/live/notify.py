"""Change hints from the operating system: inotify on Linux, watchfiles elsewhere. Hints are never trusted."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tracetui.sources.base import reason_of

if TYPE_CHECKING:
    import ctypes

    from watchfiles._rust_notify import RustNotify

GATHER_SECONDS: Final = 0.01
"""Hints this close together are delivered at once."""
_STEP_MS: Final = 10
_LONGEST_MS: Final = 40
_MODIFIED: Final = 2
_MOUNTS: Final = "/proc/mounts"
_REMOTE: Final = re.compile(
    r"nfs4?|cifs|smb3|smbfs|ncpfs|9p|afs|ceph|coda|gfs2|glusterfs|lustre|ocfs2|beegfs|davfs"
    r"|virtiofs|vboxsf|vmhgfs|prl_fs|drvfs|fuse(\..*)?"
)
"""File systems where other machines may write unnoticed by our kernel."""
AVAILABLE: Final = sys.platform == "linux"
_MODIFY: Final = 0x2

_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200

_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000

_ONLY_FOLDERS, _NO_LINK, _NO_UNLINKED = 0x1000000, 0x2000000, 0x4000000

_NAMES: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_ITSELF: Final = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _IGNORED

# No close or attribute events: SQLite opens a log for writing (and as root sets its owner) only to read it.
_WANTED: Final = _MODIFY | _NAMES | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS | _NO_LINK | _NO_UNLINKED
_EVENT: Final = struct.Struct("iIII")
_BUFFER: Final = 1 << 18
_LONGEST: Final = 0.05


class Notify(Protocol):
    """Delivers changes directly in some folders. `wake` is thread-safe; the other methods belong to one thread."""

    def add(self, folder: str, *, follow: bool = False) -> bool:
        """Watch `folder`, a link only with `follow`; return False if it cannot be listed.

        Raises `OSError` if no more can be watched.
        """
        ...

    def remove(self, folder: str) -> None:
        """Stop watching it."""
        ...

    def wait(self, timeout: float) -> dict[str, bool] | None:
        """Wait up to `timeout` seconds and return the paths that changed.

        True: a name was added, removed or replaced; False: a file was written to. None: hints may have been lost, so
        everything must be compared.
        """
        ...

    def wake(self) -> None:
        """End `wait`, or the next one."""
        ...

    def close(self) -> None:
        """Release all watches."""
        ...


def open_notify() -> Notify:
    """Open the system's notifier. Raises `OSError` if none is available."""
    return Inotify(GATHER_SECONDS) if AVAILABLE else WatchfilesNotify()


class Inotify:
    """`Notify` through inotify and the C library. Raises `OSError` if none is available."""

    def __init__(self, gather: float = 0.0) -> None:
        """After the first hint, `wait` waits another `gather` seconds for more."""
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
        """Paths of each watched folder; after a move, for a while, both the old and the new one."""

    def add(self, folder: str, *, follow: bool = False) -> bool:
        """Watch `folder`, a link only with `follow`; return False if it cannot be listed."""
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
        """Stop watching it."""
        watch = self._ids.pop(folder, None)
        if watch is None:
            return
        paths = self._folders[watch]
        paths.discard(folder)
        if not paths:
            del self._folders[watch]
            self._libc.inotify_rm_watch(self._fd, watch)  # fails if the folder is gone along with its watch

    def wait(self, timeout: float) -> dict[str, bool] | None:
        """Wait up to `timeout` seconds and return the hints; None if some were lost."""
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
            end = time.monotonic() + _LONGEST  # writers may never pause
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
        """Release all watches."""
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
    """Yield watch, mask and name of each event."""
    start = 0
    while start + _EVENT.size <= len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, start)
        start += _EVENT.size
        yield watch, mask, os.fsdecode(data[start : start + length].rstrip(b"\0"))
        start += length


class WatchfilesNotify:
    """`Notify` on every system, through watchfiles. Its set of folders is fixed: a new folder needs a new instance."""

    def __init__(self) -> None:
        self._rust: RustNotify | None = None
        self._folders: dict[str, str] = {}
        self._changed = False
        self._stop = threading.Event()

    def add(self, folder: str, *, follow: bool = False) -> bool:
        real = os.path.realpath(folder)
        if os.path.islink(folder) and not follow:
            return False
        if self._folders.get(real) != folder:
            self._folders[real] = self._folders[folder.rstrip(os.sep) or folder] = folder
            self._changed = True
        return True

    def remove(self, folder: str) -> None:
        before = len(self._folders)
        self._folders = {place: path for place, path in self._folders.items() if path != folder}
        self._changed |= len(self._folders) != before

    def wait(self, timeout: float) -> dict[str, bool] | None:
        if self._changed:
            self._renew()
            return None
        if self._rust is None:
            events: set[tuple[int, str]] | str = "stop" if self._stop.wait(max(0.0, timeout)) else "timeout"
        else:
            events = self._rust.watch(_LONGEST_MS, _STEP_MS, max(1, int(timeout * 1000)), self._stop)
        if isinstance(events, str):
            if events == "stop":
                self._stop.clear()
            return {}
        hints: dict[str, bool] = {}
        for kind, path in events:
            place = self._given_path(path)
            hints[place] = hints.get(place, False) or kind != _MODIFIED
        return hints

    def wake(self) -> None:
        self._stop.set()

    def close(self) -> None:
        if self._rust is not None:
            self._rust.close()
            self._rust = None

    def _given_path(self, path: str) -> str:
        """Return the path under its folder as given; the system may report the real one."""
        if path in self._folders:
            return self._folders[path]
        head, name = os.path.split(path)
        return os.path.join(self._folders.get(head, head), name)

    def _renew(self) -> None:
        from watchfiles._rust_notify import RustNotify  # slow to import, and not needed everywhere

        self.close()
        self._changed = False
        folders = [path for path in set(self._folders.values()) if os.path.isdir(path)]
        try:
            self._rust = RustNotify(folders, False, False, 0, False, True) if folders else None
        except FileNotFoundError:  # gone meanwhile, as listing it will show
            self._changed = True
        except (OSError, RuntimeError) as error:
            raise OSError(errno.ENOSPC, str(error)) from error


def why_polling(paths: Iterable[str]) -> str:
    """Return why hints are incomplete for these files and folders; empty if they are complete."""
    try:
        mounts = Path(_MOUNTS).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    return f"network file system ({kind})" if (kind := remote(paths, mounts)) else ""


def remote(paths: Iterable[str], mounts: str) -> str:
    """Return the type of a network file system at or below one of `paths`; empty if none.

    `mounts` is the text of ``/proc/mounts``.
    """
    table = [fields for line in mounts.split("\n") if len(fields := line.split(" ")) > 2]
    kinds = {re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[1]): fields[2] for fields in table}
    for path in paths:
        real = os.path.realpath(path)
        holding = max((at for at in kinds if _contains(at, real)), key=len, default="")
        for at in (holding, *(at for at in kinds if _contains(real, at))):
            kind = kinds.get(at, "")
            if _REMOTE.fullmatch(kind):
                return kind
    return ""


def _contains(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def explain_error(error: OSError) -> str:
    """Return why hints are unavailable."""
    if error.errno == errno.ENOSPC:
        return "no watches left (ENOSPC)"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"no descriptors or inotify instances left ({errno.errorcode[error.errno]})"
    return reason_of(error)
