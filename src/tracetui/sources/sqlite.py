"""SQLite files, read without changing anything beside them.

Three ways to the same rows, in the order in which they are tried:

* *following* a live database (``follow=True``, only where its ``-wal`` and ``-shm`` are there already): in place and
  read-only. The lock page inside ``-shm`` is the one thing on disk that changes; nothing is created or deleted.
* a write-ahead log or a rollback journal that holds something: a private copy (folder 0700, removed at exit), taken
  again until the originals did not change meanwhile, so that it holds the rows that are not yet checkpointed.
* otherwise the file itself as *immutable*: SQLite then takes no locks and makes no files. A stat afterwards tells
  whether it changed meanwhile.

A file may be hostile: no schema is trusted, views are not listed (one named like a table can be an endless query), a
statement may take `STATEMENT_OPS` steps of SQLite's machine, a value be at most `VALUE_LIMIT` bytes, and text that is
not UTF-8 gets replacement characters.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat as modes
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tracetui.sources.base import Stat
from tracetui.sources.versions import settled

STATEMENT_OPS: Final = 100_000_000
"""About two seconds. Not counted in time, because the caller's own work between two rows must not count."""
VALUE_LIMIT: Final = 1 << 29
ATTEMPTS: Final = 20
"""How often a copy is begun anew because the writer was faster."""
KEPT_COPIES: Final = 8
BUSY_SECONDS: Final = 0.1
"""How long to wait for a writer that holds a lock."""

_CHUNK: Final = 1 << 20
_PREFIX: Final = "tracetui-copy-"
_PROGRESS_OPS: Final = 100_000
_JOURNAL_MAGIC: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def is_passing(error: Exception) -> bool:
    """True for what stands in the way just now, and will not soon: a lock, or a writer that is faster than a copy."""
    if isinstance(error, sqlite3.Error):
        return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return isinstance(error, Changing)


class Changing(OSError):
    """A database that was written to while it was read, or copied."""


def tables(path: str, *, follow: bool = False) -> frozenset[str]:
    """Names of the tables (no views, no virtual tables) of the database at `path`; empty if it cannot be read."""
    try:
        with connect(path, follow=follow) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    except (sqlite3.Error, OSError):
        return frozenset()
    return frozenset(name for (name,) in rows if isinstance(name, str))


def version_of(connection: sqlite3.Connection) -> object:
    """What tells the state that `connect` found from any later one; None where that cannot be told (yet)."""
    return getattr(connection, "version", None)


@contextmanager
def connect(path: str, *, follow: bool = False) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a consistent state of the database at `path`.

    Raises `sqlite3.Error` or `OSError`, the latter also if the file changed while it was read in place.
    """
    state = _State.of(path)
    if follow and state.wal is not None and _regular(path + "-shm") is not None:
        with closing(_open(path, "mode=ro")) as connection:
            connection.version = state if state.settled else None
            yield connection
    elif state.wal is None and state.journal is None:
        with closing(_open(path, "immutable=1")) as connection:
            _refuse_cut(connection, state.main.size)
            connection.version = state if state.settled else None
            yield connection
        if _State.of(path).main != state.main:
            raise Changing("the database changed while it was read")
    else:
        copy = _copy_of(path, state)  # held here, so that it is not removed meanwhile
        with closing(_open(copy.path, "immutable=1")) as connection:
            connection.version = state if state.settled else None
            yield connection


def _refuse_cut(connection: sqlite3.Connection, size: int) -> None:
    """Raise `OSError` for a file that ends within a page: SQLite would read zeros there, and say nothing."""
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    if size % page_size:
        raise OSError(f"cut off: the database ends within a page, at byte {size}")


def private_folder(owner: object) -> str:
    """A new folder for copies (mode 0700), removed when `owner` goes, at exit, or by the next process after a kill."""
    _sweep()
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


class _State(msgspec.Struct, frozen=True):
    """What tells one state of a database from the next; sidecars that are absent or empty are None."""

    main: Stat
    wal: Stat | None
    wal_header: bytes
    """Holds the salt, which is new whenever the log starts over."""
    journal: Stat | None

    @classmethod
    def of(cls, path: str) -> _State:
        main = _regular(path)
        if main is None:
            raise OSError(f"not a regular file: {path}")
        wal = _filled(path + "-wal")
        return cls(main, wal, b"" if wal is None else _read(path + "-wal", 32), _filled(path + "-journal"))

    @property
    def settled(self) -> bool:
        """True if any later change must show in it."""
        return all(stat is None or settled(stat) for stat in (self.main, self.wal, self.journal))

    def allows(self, later: _State) -> bool:
        """True if a copy taken between `self` and `later` is consistent.

        A log that only grew may be copied meanwhile: its checksums make SQLite ignore an unfinished end.
        """
        if (self.main, self.journal, self.wal_header) != (later.main, later.journal, later.wal_header):
            return False
        if self.wal is None or later.wal is None:
            return self.wal is later.wal
        return self.wal.inode == later.wal.inode and self.wal.size <= later.wal.size


class _Copy:
    """A private copy of a database with its log or journal folded in; its folder goes when nobody holds the copy."""

    def __init__(self) -> None:
        self.path = os.path.join(private_folder(self), "copy.db")

    def take(self, path: str, state: _State) -> None:
        """Copy the files of `state`, the log after the database."""
        _copy_file(path, self.path)
        if state.wal is not None:
            _copy_file(path + "-wal", self.path + "-wal")
        if state.journal is not None:
            _copy_file(path + "-journal", self.path + "-journal")
            _refuse_super_journal(self.path + "-journal")

    def settle(self) -> None:
        """Let SQLite itself roll the journal back, or the log in: afterwards there is one plain file."""
        with closing(_open(self.path, "mode=rw", query_only=False)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()


_copies: dict[str, tuple[_State, _Copy]] = {}
_copies_lock = Lock()


def _copy_of(path: str, state: _State) -> _Copy:
    """The copy of that state: the one at hand if there is one, so that many reads in a row copy once."""
    key = os.path.abspath(path)
    with _copies_lock:
        known = _copies.pop(key, None)
    if known is None or known[0] != state or not os.path.exists(known[1].path):  # something may tidy up the folder
        known = _taken(path, state)
    with _copies_lock:
        _copies[key] = known  # at the end: the oldest goes first
        while len(_copies) > KEPT_COPIES:
            del _copies[next(iter(_copies))]
    return known[1]


def _taken(path: str, state: _State) -> tuple[_State, _Copy]:
    for _ in range(ATTEMPTS):
        copy = _Copy()
        copy.take(path, state)
        later = _State.of(path)
        if state.allows(later):
            copy.settle()
            return state, copy
        state = later
    raise Changing("the database keeps changing while it is copied")


def _open(path: str, mode: str, *, query_only: bool = True) -> _Connection:
    name = quote(os.fsencode(os.path.abspath(path)))  # an unquoted ? in a name would set the mode
    connection = sqlite3.connect(
        f"file:{name}?{mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
        timeout=BUSY_SECONDS,
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_LIMIT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


class _Connection(sqlite3.Connection):
    """Ends a statement that takes more than `STATEMENT_OPS`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.version: _State | None = None
        self.text_factory = _text
        self._ops = 0
        self.set_progress_handler(self._too_long, _PROGRESS_OPS)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._ops = 0
        try:
            return super().execute(sql, parameters)
        except UnicodeDecodeError as error:  # of the text of an error, which names what is in a broken schema
            raise sqlite3.DatabaseError(error.object.decode("utf-8", "replace")) from error

    def _too_long(self) -> bool:
        self._ops += _PROGRESS_OPS
        return self._ops > STATEMENT_OPS


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _regular(path: str) -> Stat | None:
    """The stat of a regular file, None for anything else: no link leads out."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not modes.S_ISREG(found.st_mode):
        return None
    return Stat(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _filled(path: str) -> Stat | None:
    found = _regular(path)
    return found if found is not None and found.size else None


def _read(path: str, size: int) -> bytes:
    try:
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            return file.read(size)
    except FileNotFoundError:
        return b""


def _copy_file(source: str, target: str) -> None:
    """Copy a file; one that vanished meanwhile leaves nothing, which the comparison of states notices."""
    try:
        descriptor = os.open(source, _FLAGS)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as incoming, open(target, "wb") as outgoing:  # noqa: PTH123
        shutil.copyfileobj(incoming, outgoing, _CHUNK)


def _refuse_super_journal(path: str) -> None:
    """Refuse a journal that names a super-journal: rolling it back could delete whatever file it names."""
    with open(path, "rb") as journal:  # noqa: PTH123
        journal.seek(0, os.SEEK_END)
        journal.seek(max(0, journal.tell() - len(_JOURNAL_MAGIC)))
        if journal.read() == _JOURNAL_MAGIC:
            raise OSError("its rollback journal belongs to a transaction over several databases")


@cache
def _sweep() -> None:
    """Remove, once, what processes left behind that were killed: a copy of somebody's traces must not lie about."""
    for entry in os.scandir(tempfile.gettempdir()):
        pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
        if entry.name.startswith(_PREFIX) and pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(entry.path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not remove what its parent reads
        shutil.rmtree(folder, ignore_errors=True)
