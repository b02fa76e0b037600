"""Where bytes come from. Only `sources` opens a trace; nothing here or elsewhere writes beside one."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import msgspec

if TYPE_CHECKING:
    from sqlite3 import Connection


HEAD_SIZE: Final = 65_536
"""Bytes of a file that detection may look at."""
MAX_DOCUMENT: Final = 192 << 20
"""Bytes of a file, or of a member of an archive, that is read at once. Decoded, JSON takes 2 to 4 times its size, and
27 times where it is nothing but empty objects: even that fits into 6 GB."""
MOVING_SECONDS: Final = 30.0
"""A file that changed so recently counts as moving: a run in it without an end is `running`."""
SQLITE_MAGIC: Final = b"SQLite format 3\0"
"""How a SQLite file begins."""
BUDGET: Final = "budget"
"""In the `memo` of a file that is read with a budget (`tracetui.sources.budget`)."""
KEPT: Final = "kept"
"""In the `memo` of a file that is opened for a body: a dict that all bodies of the run share, from several threads. In
that of one that is followed and counted again, or of which many runs are read: a dict that is the same each time, used
by one thread."""
SHARED: Final = "shared"
"""In the `memo` of a file that is looked at together with others: a dict that is the same for all of them, used by one
thread at a time. Formats cache there what they know of neighboring files, and bound it."""
LONGEST_NAME: Final = 255
HIDDEN: Final = "hidden"
HIDDEN_FOLDER: Final = "hidden folder, not walked into"
TICK_NS: Final = 50_000_000
"""File systems count time in ticks (of 1 to 10 ms on Linux): two changes within one may leave the same stat behind."""


class LinkLost(OSError):
    """The link to another machine is down: nothing is known of what is there, neither that it is gone.

    Every operation raises it until the link is back, which it is by itself: trying again is enough.
    """


class BudgetSpent(BaseException):
    """The list stage has read as much of a file as it may; the deep pass reads the rest.

    No `Exception`, so that no format takes it for a fault of the file.
    """


class Stat(msgspec.Struct, frozen=True, gc=False):
    """What tells one version of a file from the next."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    """When anything about it changed, which nobody can set back; 0 where the source does not tell."""

    @property
    def mtime(self) -> float:
        """Modification time in seconds since the epoch."""
        return self.mtime_ns / 1e9


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One name found while walking: a file to look at, or the reason why it is left out."""

    path: str
    stat: Stat | None = None
    """None where it could not be had; the log of a database is left out, and still has one."""
    skipped: str | None = None
    """Why it is not opened: ``symbolic link``, `HIDDEN`, ``not a regular file`` …; None for a file to read."""
    failed: bool = False
    """True where `skipped` is a fault (no permission, vanished), to be reported as a problem."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return file_name(self.path)


class Folder(msgspec.Struct, frozen=True, gc=False):
    """What one folder holds itself: its files (and what is left out), and the paths of the folders to go on to."""

    entries: list[Entry] = []
    folders: list[str] = []


def reason_of(error: Exception) -> str:
    """Why something could not be read, in a few words; not cleaned."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def settled(stat: Stat) -> bool:
    """True if any later change must show in the stat; of a file that changed just now it need not."""
    return stat.ctime_ns > 0 and time.time_ns() - max(stat.mtime_ns, stat.ctime_ns) > TICK_NS


def cacheable(stat: Stat) -> bool:
    """True if what was read of the file may be reused for as long as its stat stays the same.

    Where the source has no time of change, a file that has not changed for a while is trusted.
    """
    return settled(stat) or (stat.ctime_ns == 0 and time.time() - stat.mtime > MOVING_SECONDS)


def beside(
    path: str, relative: str, parent: Callable[[str], str], join: Callable[[str, str], str]
) -> tuple[str, list[str]]:
    """The path that `relative` means from the folder of the file at `path`, and the folders on the way down to it.

    Raises `OSError` for what no file can be called: a trace may have named it.
    """
    check_path(relative)
    at = parent(path)
    ways: list[str] = []
    for name in relative.split("/"):
        if name == "..":
            at = parent(at)
        elif name:
            at = join(at, name)
            ways.append(at)
    return at, ways


def check_path(path: str) -> None:
    """Raise `OSError` for a path that the system takes for no path at all: with a NUL, or a lone surrogate."""
    try:
        possible = b"\0" not in os.fsencode(path)
    except ValueError:
        possible = False
    if not possible:
        raise OSError(errno.EINVAL, "a name that no file can have")


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2]


def is_file_name(name: str) -> bool:
    """Whether a file may be called so. What a trace calls a run is asked before a path is made of it."""
    if not 0 < len(name) <= LONGEST_NAME or name in (os.curdir, os.pardir) or "/" in name or "\\" in name:
        return False
    try:
        check_path(name)
    except OSError:
        return False
    return True


def left_out(name: str) -> str | None:
    """Why a regular file of that name is not read; None if it is."""
    if name.startswith("."):
        return HIDDEN
    if name.endswith(("-wal", "-shm", "-journal")):
        return "belongs to a database"
    return "temporary file" if name.endswith((".tmp", ".swp", "~", ".part")) else None


def refuse_large(size: int) -> None:
    """Raise `OSError` for a file that is too large to be read at once."""
    if size > MAX_DOCUMENT:
        raise OSError(f"not read: one document of {size >> 20} MiB, more than {MAX_DOCUMENT >> 20} MiB")


class Closing:
    """To be used in a ``with``, at the end of which it is closed."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back."""
        raise NotImplementedError


class File(AbstractContextManager["File"], Protocol):
    """One file of a source, opened on first use. A context manager; every read may raise `OSError`."""

    @property
    def path(self) -> str:
        """Its path as the user would write it."""
        ...

    @property
    def name(self) -> str:
        """The last part of the path."""
        ...

    @property
    def stat(self) -> Stat:
        """Size, time and identity when it was opened (or found)."""
        ...

    @property
    def moving(self) -> bool:
        """True if it changed within the last `MOVING_SECONDS`."""
        ...

    @property
    def memo(self) -> dict[str, Any]:
        """Scratch space of this open file, so that `sniff` need not be repeated by `summarize`."""
        ...

    @property
    def head(self) -> bytes:
        """Up to `HEAD_SIZE` first bytes, read once."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`; fewer only at the end of the file."""
        ...

    def read_all(self) -> bytes:
        """The whole file, of at most `MAX_DOCUMENT` bytes. Raises `OSError` for a larger one."""
        ...

    def next_data(self, offset: int) -> int:
        """The first byte from `offset` on that is not in a hole, where the file system knows; else `offset` itself."""
        ...

    def sibling(self, name: str) -> str | None:
        """Path of the regular file `name` in the same folder, None if there is none."""
        ...

    def folder(self, path: str = "") -> Folder:
        """What is directly in the folder `path`, relative to the folder of this file; nothing if there is none.

        No link is followed on the way there. For runs that are in several files.
        """
        ...

    def other(self, path: str, stat: Stat | None = None) -> File:
        """Another file of the same place, not yet opened: `path` is relative to the folder of this one.

        Given its `stat`, this file counts as moving while the other one does: they make one run.
        """
        ...

    @property
    def tables(self) -> frozenset[str]:
        """Names of the tables of a SQLite file (views left out); empty for any other file."""
        ...

    def database(self) -> AbstractContextManager[Connection]:
        """A read-only connection to a consistent state of a SQLite file. Raises `sqlite3.Error` or `OSError`."""
        ...

    def close(self) -> None:
        """Close the descriptor. Reading again opens it anew."""
        ...


class View(Closing):
    """Another view of a file: whatever a subclass does not say is as the file itself has it. See `File`."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def name(self) -> str:
        return self._file.name

    @property
    def moving(self) -> bool:
        return self._file.moving

    @property
    def memo(self) -> dict[str, Any]:
        return self._file.memo

    def next_data(self, offset: int) -> int:
        return self._file.next_data(offset)

    def sibling(self, name: str) -> str | None:
        return self._file.sibling(name)

    def folder(self, path: str = "") -> Folder:
        return self._file.folder(path)

    def other(self, path: str, stat: Stat | None = None) -> File:
        return self._file.other(path, stat)

    @property
    def tables(self) -> frozenset[str]:
        return self._file.tables

    def database(self) -> AbstractContextManager[Connection]:
        return self._file.database()

    def close(self) -> None:
        self._file.close()


class Source(Protocol):
    """A place that holds files."""

    def walk(self, root: str) -> Iterator[Entry]:
        """Every name below `root` (or `root` itself, if it is a file), folders first come, links not followed."""
        ...

    def list(self, path: str) -> Folder:
        """What is directly below the folder `path`; a file there is listed as itself. Raises `OSError`.

        `walk` is this, folder by folder. Watching lists again and again and compares.
        """
        ...

    def expect(self, paths: Sequence[str]) -> None:
        """These folders are listed next, in that order: they may be asked for ahead. Raises `LinkLost`."""
        ...

    def is_file(self, path: str) -> bool:
        """True if there is a regular file at `path`."""
        ...

    def is_folder(self, path: str) -> bool:
        """True if there is a folder at `path`."""
        ...

    def local_path(self, path: str) -> str | None:
        """Where the file or folder lies on this machine, so that its changes can be waited for; None if elsewhere."""
        ...

    def open(self, path: str, stat: Stat | None = None) -> File:
        """The file at `path`, not yet opened."""
        ...
