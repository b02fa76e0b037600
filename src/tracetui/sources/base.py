"""Protocols and values of file sources. Only `sources` opens a trace, and nothing ever writes next to one.

A source may be a store that applies conditions before it sends runs. They only narrow: a store may send more, never
less.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

import msgspec

if TYPE_CHECKING:
    from sqlite3 import Connection

    from tracetui.sources.sqlite import CopyCache


HEAD_SIZE: Final = 65_536
"""Bytes of a file that detection may read."""
MAX_DOCUMENT: Final = 192 << 20
"""Largest file or archive member to read at once. Decoded JSON takes 2 to 4 times its size, and 27 times if it is
nothing but empty objects: even that fits into 6 GB.
"""
MOVING_SECONDS: Final = 30.0
"""A file that changed this recently counts as moving: a run in it without an end is `running`."""
SQLITE_MAGIC: Final = b"SQLite format 3\0"
"""First bytes of a SQLite file."""
BUDGET: Final = "budget"
"""Key in the `memo` of a file that is read with a budget (`tracetui.sources.file_views`)."""
CACHE: Final = "cache"
"""Key in the `memo` of a file. When bodies are loaded: a dict shared by all bodies of the run, across threads. When a
file is tailed and counted again, or many of its runs are read: the same dict each time, used by one thread.
"""
SHARED: Final = "shared"
"""Key in the `memo` of a file that is read along with others: a dict shared by all of them, used by one thread at a
time. Formats cache facts about neighboring files there, and bound the cache.
"""
FACTS: Final = "facts"
"""Key in the `memo` of a file: what its source records about it beside its content, as `Facts`."""
LONGEST_NAME: Final = 255
_DATABASE_ENDS: Final = ("-wal", "-shm", "-journal")
_SOURCE_ENDS: Final = (
    *(".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".rb", ".go", ".rs", ".java", ".kt", ".c"),
    *(
        ".h",
        ".cc",
        ".cpp",
        ".cs",
        ".swift",
        ".php",
        ".pl",
        ".lua",
        ".ipynb",
        ".html",
        ".htm",
        ".xhtml",
        ".mhtml",
        ".css",
    ),
)
"""Source code and saved pages: they may contain text like records, but aren't traces."""
SKIPPED_ENDS: Final = (*_DATABASE_ENDS, ".tmp", ".swp", "~", ".part", *_SOURCE_ENDS)
STORE_FOLDERS: Final = frozenset({".adk", ".crush", ".system_generated", ".langgraph_api", ".goose", ".opencode"})
"""Hidden folders in which programs keep traces below a project: they are walked into."""
HIDDEN: Final = "hidden"
HIDDEN_FOLDER: Final = "hidden folder, not walked into"
TICK_NS: Final = 50_000_000
"""Clock resolution of file systems (Linux: 1 to 10 ms) and a margin: two changes within it may leave one stat."""


class LinkLost(OSError):
    """The connection to another machine is down, so the state of its files is unknown.

    Every operation raises it until the connection is restored. That happens by itself; just try again.
    """


class BudgetSpent(BaseException):
    """The list stage has read as much of a file as allowed; the deep pass reads the rest.

    Not an `Exception`, so that no format mistakes it for a fault of the file.
    """


class Stat(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Identifies a version of a file."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    """Time of the last change to data or metadata, which nobody can set back; 0 if the source does not report it."""

    @property
    def mtime(self) -> float:
        """Modification time in seconds since the epoch."""
        return self.mtime_ns / 1e9


class Facts(msgspec.Struct, frozen=True):
    """What a source records about a file: its checkpoint, its commit."""

    tags: tuple[str, ...] = ()
    attributes: dict[str, Any] = {}
    """Under the source's own names."""
    commits: tuple[tuple[str, float], ...] = ()
    """As in `RunBody.commits`."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A name found in a walk: a file to read, or a skipped one with the reason."""

    path: str
    stat: Stat | None = None
    """None if unavailable. The log of a database is skipped, and still has one."""
    skipped: str | None = None
    """Why it is not opened: ``symbolic link``, `HIDDEN`, ``not a regular file`` …; None for a file to read."""
    failed: bool = False
    """True if `skipped` is an error (no permission, vanished) to report as a problem."""
    format: str = ""
    """Name of the format that is asked first whether it reads the file; empty if the source doesn't know."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return file_name(self.path)


class Folder(msgspec.Struct, frozen=True, gc=False):
    """Direct contents of one folder: its files, read or skipped, and the paths of its subfolders."""

    entries: list[Entry] = []
    folders: list[str] = []


def reason_of(error: Exception) -> str:
    """Return a short reason for a failed read; not cleaned."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def settled(stat: Stat) -> bool:
    """Whether any later change must show in the stat; not so for a file that changed just now."""
    return stat.ctime_ns > 0 and time.time_ns() - max(stat.mtime_ns, stat.ctime_ns) > TICK_NS


def resolve_relative(
    path: str, relative: str, parent: Callable[[str], str], join: Callable[[str, str], str]
) -> tuple[str, list[str]]:
    """Resolve `relative` from the folder of the file at `path`; return the path and the folders on the way down to it.

    Raises `OSError` for an impossible file name, which a trace may contain.
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
    """Raise `OSError` for a path that the system cannot represent: with a NUL, or a lone surrogate."""
    try:
        possible = b"\0" not in os.fsencode(path)
    except ValueError:
        possible = False
    if not possible:
        raise OSError(errno.EINVAL, "invalid file name")


def file_name(path: str) -> str:
    """Return the last part of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2]


def is_file_name(name: str) -> bool:
    """Whether a name is a valid file name. Check ids from traces before making a path of them."""
    if not 0 < len(name) <= LONGEST_NAME or name in (os.curdir, os.pardir) or "/" in name or "\\" in name:
        return False
    try:
        check_path(name)
    except OSError:
        return False
    return True


def is_hidden(name: str, *, is_folder: bool) -> bool:
    """Whether a name in a folder is passed over: it begins with a dot, and isn't a folder in `STORE_FOLDERS`."""
    return name.startswith(".") and not (is_folder and name in STORE_FOLDERS)


def skip_reason(name: str) -> str | None:
    """Return why a regular file of that name is skipped; None if it is read."""
    if name.startswith("."):
        return HIDDEN
    if not name.endswith(SKIPPED_ENDS):
        return None
    if name.endswith(_SOURCE_ENDS):
        return "source code or a page"
    return "belongs to a database" if name.endswith(_DATABASE_ENDS) else "temporary file"


def check_document_size(size: int) -> None:
    """Raise `OSError` for a file that is too large to read at once."""
    if size > MAX_DOCUMENT:
        raise OSError(f"not read: one document of {size >> 20} MiB, more than {MAX_DOCUMENT >> 20} MiB")


class Closable:
    """A context manager that is closed at its end."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release all resources."""
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
        """Scratch space of this open file, so that `summarize` can reuse the work of `sniff`."""
        ...

    @property
    def head(self) -> bytes:
        """The first bytes, up to `HEAD_SIZE`, read once."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Read at most `size` bytes from `offset`; fewer only at the end of the file."""
        ...

    def read_all(self) -> bytes:
        """Read the whole file. Raises `OSError` above `MAX_DOCUMENT` bytes."""
        ...

    def next_data(self, offset: int) -> int:
        """Return the first byte from `offset` on that is not in a hole, if the file system knows; else `offset`."""
        ...

    def sibling(self, name: str) -> str | None:
        """Return the path of the regular file `name` in the same folder, None if there is none."""
        ...

    def folder(self, path: str = "") -> Folder:
        """List the folder `path`, relative to the folder of this file; empty if it does not exist.

        No link on the way is followed. For runs in several files.
        """
        ...

    def other(self, path: str, stat: Stat | None = None) -> File:
        """Return another file of the same source, not yet opened; `path` is relative to the folder of this file.

        With its `stat`, this file counts as moving while the other one does: they are one run.
        """
        ...

    @property
    def tables(self) -> frozenset[str]:
        """Names of the tables of a SQLite file (no views); empty for any other file."""
        ...

    def database(self) -> AbstractContextManager[Connection]:
        """Open a read-only connection to a consistent state of a SQLite file. Raises `sqlite3.Error` or `OSError`."""
        ...

    def close(self) -> None:
        """Close the descriptor. The next read opens it again."""
        ...


class FileView(Closable):
    """Wraps a file; a subclass overrides parts of it. See `File`."""

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
    """A provider of files."""

    def walk(self, root: str) -> Iterator[Entry]:
        """Yield every name below `root` (or `root` itself, if it is a file), without following links."""
        ...

    def list(self, path: str) -> Folder:
        """List the direct contents of the folder `path`; a file is listed as itself. Raises `OSError`.

        `walk` lists folder by folder. Watching lists repeatedly and compares.
        """
        ...

    def prefetch(self, paths: Sequence[str]) -> None:
        """Announce that these folders are listed next, in that order, so that they can be requested early. Raises
        `LinkLost`.
        """
        ...

    def is_file(self, path: str) -> bool:
        """True if there is a regular file at `path`."""
        ...

    def is_folder(self, path: str) -> bool:
        """True if there is a folder at `path`."""
        ...

    def local_path(self, path: str) -> str | None:
        """Return the path on this machine, for watching; None if remote."""
        ...

    def open(self, path: str, stat: Stat | None = None) -> File:
        """Return the file at `path`, not yet opened."""
        ...


class BaseFile(Closable):
    """What files of all sources share; see `tracetui.sources.base.File`. By default a file stands alone.

    A subclass finds its stat, reads ranges, and names the database to open.
    """

    __slots__ = ("_head", "_memo", "_stat", "_tables", "path")

    def __init__(self, path: str, stat: Stat | None = None) -> None:
        self.path = path
        self._stat = stat
        self._head: bytes | None = None
        self._memo: dict[str, Any] | None = None
        self._tables: frozenset[str] | None = None

    @property
    def name(self) -> str:
        return file_name(self.path)

    @property
    def memo(self) -> dict[str, Any]:
        if self._memo is None:
            self._memo = {}
        return self._memo

    @property
    def stat(self) -> Stat:
        if self._stat is None:
            self._stat = self._find_stat()
        return self._stat

    @property
    def head(self) -> bytes:
        if self._head is None:
            self._head = self.read(0, HEAD_SIZE)
        return self._head

    def read(self, offset: int, size: int) -> bytes:
        raise NotImplementedError

    def read_all(self) -> bytes:
        check_document_size(self.stat.size)
        return self.read(0, self.stat.size)

    def next_data(self, offset: int) -> int:
        return offset

    def sibling(self, name: str) -> str | None:
        return None

    def folder(self, path: str = "") -> Folder:
        return Folder()

    def other(self, path: str, stat: Stat | None = None) -> File:
        raise FileNotFoundError(f"{self.path} has no other files: {path}")

    @property
    def tables(self) -> frozenset[str]:
        if self._tables is None:
            from tracetui.sources import sqlite

            is_database = self.head.startswith(SQLITE_MAGIC)
            self._tables = sqlite.tables(*self._database_arguments()) if is_database else frozenset()
        return self._tables

    def database(self) -> AbstractContextManager[Connection]:
        from tracetui.sources import sqlite

        return sqlite.connect(*self._database_arguments())

    def close(self) -> None:
        """Do nothing: there is no descriptor."""

    def _find_stat(self) -> Stat:
        """Return the stat of the current version. Raises `OSError`."""
        raise NotImplementedError

    def _database_arguments(self) -> tuple[str] | tuple[str, CopyCache, str]:
        """Return the database, or a local copy of it, as arguments of `sqlite.connect`. Raises `OSError`."""
        raise OSError("not a SQLite database")


class MayFail(msgspec.Struct, frozen=True):
    """A span failed, or records an error or exception."""


class MayBeScored(msgspec.Struct, frozen=True):
    """A span records an evaluation."""


class Mentions(msgspec.Struct, frozen=True):
    """A name or value of a span contains the text, in any case."""

    text: str
    """ASCII letters, digits and ``_`` only: no store writes these in another way."""


class LastsAtLeast(msgspec.Struct, frozen=True):
    """From its first start to its last end."""

    milliseconds: float


class StartsSince(msgspec.Struct, frozen=True):
    """No span starts before that time, but for spans without a start."""

    seconds: float
    """UTC, since the epoch."""


class StartsBefore(msgspec.Struct, frozen=True):
    """A span starts before that time, or none has a start."""

    seconds: float


class All(msgspec.Struct, frozen=True):
    """All of these; without parts, everything."""

    parts: tuple[Condition, ...]


class AnyOne(msgspec.Struct, frozen=True):
    """At least one of these."""

    parts: tuple[Condition, ...]


class EachError(msgspec.Struct, frozen=True):
    """A failed span or an evaluation, and at most so many of the newest runs with the same error text, numbers and ids
    aside.
    """

    most: int


Condition: TypeAlias = (
    EachError | MayFail | MayBeScored | Mentions | LastsAtLeast | StartsSince | StartsBefore | All | AnyOne
)
EVERYTHING = All(())
