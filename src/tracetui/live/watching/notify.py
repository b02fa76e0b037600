"""Who tells that something happened in a folder, and where nobody does. Whatever is told is a hint, never a fact."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tracetui.live.watching import inotify
from tracetui.sources.base import reason_of

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

GATHER_SECONDS: Final = 0.01
"""Hints that come so close together are told at once."""
_STEP_MS: Final = 10
_LONGEST_MS: Final = 40
_MODIFIED: Final = 2
_MOUNTS: Final = "/proc/mounts"
_REMOTE: Final = re.compile(
    r"nfs4?|cifs|smb3|smbfs|ncpfs|9p|afs|ceph|coda|gfs2|glusterfs|lustre|ocfs2|beegfs|davfs"
    r"|virtiofs|vboxsf|vmhgfs|prl_fs|drvfs|fuse(\..*)?"
)
"""File systems where others may write without our kernel knowing."""


class Notify(Protocol):
    """Tells what happens directly in some folders. `wake` may be called from any thread, the others from one."""

    def add(self, folder: str, *, follow: bool = False) -> bool:
        """Watch `folder`, a link only with `follow`; false if it cannot be listed.

        Raises `OSError` where no more can be watched.
        """
        ...

    def remove(self, folder: str) -> None:
        """Watch it no longer."""
        ...

    def wait(self, timeout: float) -> dict[str, bool] | None:
        """The paths where something happened, at the latest after `timeout` seconds.

        True: a name came, went or was replaced; False: a file was written to. None: hints may have been lost, so that
        everything is to be compared.
        """
        ...

    def wake(self) -> None:
        """End `wait`, or the next one."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


def open_notify() -> Notify:
    """What this system has. Raises `OSError` if that is used up."""
    return inotify.Inotify(GATHER_SECONDS) if inotify.AVAILABLE else WatchfilesNotify()


class WatchfilesNotify:
    """`Notify` on every system, by watchfiles: its set of folders is fixed, so that a new one needs a new instance."""

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
            found: set[tuple[int, str]] | str = "stop" if self._stop.wait(max(0.0, timeout)) else "timeout"
        else:
            found = self._rust.watch(_LONGEST_MS, _STEP_MS, max(1, int(timeout * 1000)), self._stop)
        if isinstance(found, str):
            if found == "stop":
                self._stop.clear()
            return {}
        hints: dict[str, bool] = {}
        for kind, path in found:
            place = self._place(path)
            hints[place] = hints.get(place, False) or kind != _MODIFIED
        return hints

    def wake(self) -> None:
        self._stop.set()

    def close(self) -> None:
        if self._rust is not None:
            self._rust.close()
            self._rust = None

    def _place(self, path: str) -> str:
        """The path as its folder was given; the system may tell the real one."""
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
        except FileNotFoundError:  # gone meanwhile: whoever lists it will find out, too
            self._changed = True
        except (OSError, RuntimeError) as error:
            raise OSError(errno.ENOSPC, str(error)) from error


def why_not(paths: Iterable[str]) -> str:
    """Why hints don't tell everything about these files and folders; empty if they do."""
    try:
        mounts = Path(_MOUNTS).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    return f"network file system ({kind})" if (kind := remote(paths, mounts)) else ""


def remote(paths: Iterable[str], mounts: str) -> str:
    """The type of the file system of another machine that one of `paths` is on, or that lies below; empty if none.

    `mounts` is the text of ``/proc/mounts``.
    """
    table = [fields for line in mounts.split("\n") if len(fields := line.split(" ")) > 2]
    kinds = {re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[1]): fields[2] for fields in table}
    for path in paths:
        real = os.path.realpath(path)
        holding = max((at for at in kinds if _holds(at, real)), key=len, default="")
        for at in (holding, *(at for at in kinds if _holds(real, at))):
            kind = kinds.get(at, "")
            if _REMOTE.fullmatch(kind):
                return kind
    return ""


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def reason(error: OSError) -> str:
    """Why hints cannot be had (any more)."""
    if error.errno == errno.ENOSPC:
        return "no watches left (ENOSPC)"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"no descriptors or inotify instances left ({errno.errorcode[error.errno]})"
    return reason_of(error)
