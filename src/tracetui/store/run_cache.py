"""A private SQLite file of values made from trace files, so that unchanged files need not be read again.

It stores pages of bytes by folder and knows nothing of their contents: one page holds the results of many files, since
fetching a row for each takes as long as decoding it. A cache may be lost at any time:
every failure of the file (damaged, full disk, no permission, locked) ends in a page that isn't found or isn't stored.
`Storage.trouble` has the reason, for ``tracetui doctor``.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat as modes
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

NAME: Final = "runs.sqlite"
SCHEMA: Final = 2
_APPLICATION: Final = 0x74747569
"""``application_id`` of the file: "ttui"."""
_HEADER: Final = 100
_AT_APPLICATION: Final = 68
"""Bytes of the header of a database, and where that id is; https://sqlite.org/fileformat.html, section 1.3."""
_LEAVE: Final = 0.75
"""Part of the limit that is left when pages are removed."""
_LOCK_SECONDS: Final = 0.25
"""How long to wait for another instance. It may be stopped while it writes."""
_FRESH_SECONDS: Final = 3600
"""Time after which the last use of a folder is written again."""
_MAX_PAGE: Final = 16 << 20
_TABLES: Final = {
    "versions": "id INTEGER PRIMARY KEY, version TEXT NOT NULL UNIQUE)",
    "folders": "id INTEGER PRIMARY KEY, version INTEGER NOT NULL, path TEXT NOT NULL, used INTEGER NOT NULL,"
    " UNIQUE (version, path))",
    "pages": "id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, results INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL, value BLOB NOT NULL)",
    "counts": "name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
}
_INDEX: Final = "CREATE INDEX pages_of_folder ON pages (folder, results)"
_ADD: Final = "INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET number = number + excluded.number"


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/tracetui``, else ``~/.cache/tracetui``."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tracetui"


class Page(NamedTuple):
    """A page to store."""

    folder: str
    value: bytes
    results: int = 1
    """How many results are in it."""
    replaces: Sequence[int] = ()
    """Ids of the pages that it replaces."""


class Usage(NamedTuple):
    """The usage that ``tracetui cache`` prints."""

    path: str
    size: int
    """Bytes on disk, the log included."""
    rows: int
    hits: int
    """Files that were not read again, since the cache was created or cleared."""
    misses: int
    """Files that were read."""


class Storage:
    """Pages by folder, for one version of the readers. Thread-safe; no method raises for the file's sake.

    Opened on first use. Nothing is stored if the file would be below one of the `roots`, which are trace directories.
    The file takes at most `limit` bytes.
    """

    def __init__(self, version: str, roots: Sequence[str] = (), *, limit: int) -> None:
        self.path = cache_folder() / NAME
        self.trouble = ""
        """Why the cache isn't used, or only read; empty if all is well."""
        self.hits = self.misses = 0
        self._version, self._roots, self._limit = version, [*roots], limit
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._is_closed = self._is_full = self._remade = False
        self._version_id: int | None = None
        self._folders: dict[str, int] = {}
        """Ids of the folders used so far."""
        self._stale: list[int] = []
        """Folders with a last use that isn't written yet."""

    # ---- pages

    def pages(self, folder: str, below: int = 1 << 62) -> dict[int, bytes]:
        """Return the pages of a folder with fewer results than `below`, by id, oldest first; empty if there are none,
        or none can be read.

        A damaged file may give pages that belong elsewhere: values should contain their folders.
        """
        with self._lock, self._guard() as connection:
            if connection is not None and (number := self._folder(connection, folder)) is not None:
                query = "SELECT id, value, checksum FROM pages WHERE folder = ? AND results < ? ORDER BY id"
                rows = connection.execute(query, (number, below)).fetchall()
                return {page: value for page, value, checksum in rows if crc32(value) == checksum}
        return {}

    def put(self, pages: Iterable[Page]) -> None:
        """Store pages in one transaction. Folders must be valid UTF-8."""
        with self._lock:
            if self._is_full:
                return
            fitting = [page for page in pages if len(page.value) < _MAX_PAGE]
            with self._guard(writes=True) as connection:
                if connection is None:
                    return
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    self._folders, self._version_id = {}, None  # another instance may have removed them
                    for page in fitting:
                        number = self._new_folder(connection, page.folder)
                        gone = [(number, page_id) for page_id in page.replaces]
                        connection.executemany("DELETE FROM pages WHERE folder = ? AND id = ?", gone)
                        values = (number, page.results, crc32(page.value), page.value)
                        connection.execute(
                            "INSERT INTO pages (folder, results, checksum, value) VALUES (?, ?, ?, ?)", values
                        )
                self._bound(connection)

    # ---- as a whole

    def check(self) -> str:
        """Open the file; return why the cache isn't used, empty if all is well."""
        with self._lock:
            self._connect()
            return self.trouble

    def usage(self) -> Usage:
        """Return size and counts."""
        if not self.path.exists():
            return Usage(str(self.path), 0, 0, 0, 0)
        with self._lock:
            results, counts = 0, dict[str, int]()
            with self._guard() as connection:
                if connection is not None:
                    results = connection.execute("SELECT total(results) FROM pages").fetchone()[0]
                    counts = dict(connection.execute("SELECT name, number FROM counts"))
        size = sum(_size(f"{self.path}{end}") for end in ("", "-wal", "-shm"))
        return Usage(str(self.path), size, int(results), counts.get("hits", 0), counts.get("misses", 0))

    def clear(self) -> bool:
        """Remove everything; return whether that worked. Other instances may go on."""
        with self._lock:
            self._forget_ids()
            self.hits = self.misses = 0
            if not self.path.exists():
                return True
            with self._guard(writes=True) as connection:
                if connection is None:
                    return False
                with connection:
                    for table in _TABLES:
                        connection.execute(f"DELETE FROM {table}")  # noqa: S608
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return True
        return False

    def save_use(self) -> None:
        """Write counts and times of use."""
        with self._lock:
            if self._connection is None or not (self.hits or self.misses or self._stale):
                return
            now, counts = int(time.time()), [("hits", self.hits), ("misses", self.misses)]
            stale, self._stale, self.hits, self.misses = self._stale, [], 0, 0
            with self._guard(writes=True) as connection:
                if connection is not None:
                    with connection:
                        connection.execute("BEGIN IMMEDIATE")
                        connection.executemany(
                            "UPDATE folders SET used = ? WHERE id = ?", [(now, folder_id) for folder_id in stale]
                        )
                        connection.executemany(_ADD, counts)

    def close(self) -> None:
        """Write counts and times of use, and close the file."""
        with self._lock:
            self.save_use()
            self._drop()
            self._is_closed = True

    # ---- folders

    def _folder(self, connection: sqlite3.Connection, path: str) -> int | None:
        number = self._folders.get(path)
        if number is None:
            if self._version_id is None:
                self._version_id = _version_id(connection, self._version)
            query = "SELECT id, used FROM folders WHERE version = ? AND path = ?"
            row = connection.execute(query, (self._version_id, path)).fetchone()
            if row is None:
                return None
            number = self._folders[path] = row[0]
            if not 0 <= time.time() - row[1] < _FRESH_SECONDS:
                self._stale.append(number)
        return number

    def _new_folder(self, connection: sqlite3.Connection, path: str) -> int:
        number = self._folder(connection, path)
        if number is None:
            if self._version_id is None:
                connection.execute("INSERT INTO versions (version) VALUES (?)", (self._version,))
                self._version_id = _version_id(connection, self._version)
            connection.execute(
                "INSERT INTO folders (version, path, used) VALUES (?, ?, ?)",
                (self._version_id, path, int(time.time())),
            )
            number = self._folder(connection, path)
            if number is None:
                raise ValueError("a folder that was stored is not found")  # a damaged index
        return number

    def _bound(self, connection: sqlite3.Connection) -> None:
        """Remove the folders used longest ago if the file has become too large."""
        if _pages(connection) <= self._limit:
            return
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            total, freed = connection.execute("SELECT sum(length(value)) FROM pages").fetchone()[0] or 1, 0
            spare = total * (1 - _LEAVE)
            query = """SELECT folders.id, folders.path, sum(length(value))
                FROM folders JOIN pages ON folder = folders.id
                GROUP BY folders.id ORDER BY used, folders.id"""
            for number, path, size in connection.execute(query).fetchall():
                if freed >= spare:
                    break
                connection.execute("DELETE FROM pages WHERE folder = ?", (number,))
                connection.execute("DELETE FROM folders WHERE id = ?", (number,))
                self._folders.pop(path, None)
                freed += size
        self._is_full = _pages(connection) > self._limit

    # ---- the file

    @contextmanager
    def _guard(self, *, writes: bool = False) -> Iterator[sqlite3.Connection | None]:
        """Yield the connection, None without one. An error ends the block; a damaged file is recreated once."""
        connection = self._connect()
        try:
            yield connection
        except _FAILURES as error:
            self.trouble = _sentence(error)
            if _is_damage(error):
                self._drop()
                self._is_closed = not self._remake()
            else:  # locked, full, read-only
                self._rollback()
                self._is_full |= writes and not _is_busy(error)

    def _forget_ids(self) -> None:
        """Forget ids, which another instance, or a rollback, may have removed."""
        self._folders, self._stale, self._version_id = {}, [], None

    def _rollback(self) -> None:
        self._forget_ids()
        with suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.rollback()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._forget_ids()
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _connect(self) -> sqlite3.Connection | None:
        if self._connection is None and not self._is_closed:
            try:
                self._check_outside()
                self._make_file()
                self._connection = self._opened()
            except _FAILURES as error:
                self.trouble = _sentence(error)
                self._is_closed = not (_is_damage(error) and self._remake())
                return self._connect()
        return self._connection

    def _check_outside(self) -> None:
        folder = Path(os.path.realpath(self.path.parent))
        for root in self._roots:
            if folder.is_relative_to(os.path.realpath(root)):
                raise OSError(f"it would be inside the trace directory {root}")

    def _make_file(self) -> None:
        """Make folder and file, for this user only. Raises `OSError`."""
        folder = self.path.parent
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
        if not modes.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise OSError(f"{folder} is not a folder of this user")
        if modes.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
        with suppress(FileExistsError):  # an existing one is never opened here: closing it would end SQLite's locks
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        status = self.path.lstat()
        if not modes.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise OSError(f"{self.path} is not a file of this user")
        if modes.S_IMODE(status.st_mode) & 0o077:
            self.path.chmod(0o600)

    def _opened(self) -> sqlite3.Connection:
        """Open the file, and make its tables if it is new or older. Raises `sqlite3.Error` or `OSError`."""
        _check_file(self.path)
        connection = sqlite3.connect(self.path, timeout=_LOCK_SECONDS, check_same_thread=False, isolation_level=None)
        try:
            _check_ours(connection)  # before anything is written, also the journal mode
            if self.path.stat().st_size == 0:  # so that the file is known as ours as long as its tables are in the log
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute("PRAGMA synchronous = OFF")  # pages have checksums, and a broken file is made again
            connection.execute("PRAGMA journal_mode = WAL")
            if _pragma(connection, "user_version") != SCHEMA or _pragma(connection, "application_id") != _APPLICATION:
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    _make_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _remake(self) -> bool:
        """Replace a damaged file, unless another instance has done so; return whether the file can be used now."""
        if self._remade:
            return False
        self._remade = True
        try:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return False
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._is_sound():
                for end in ("", "-wal", "-shm", "-journal"):
                    with suppress(FileNotFoundError):
                        os.unlink(f"{self.path}{end}")
        except OSError:
            return False
        finally:
            os.close(folder)
        return True

    def _is_sound(self) -> bool:
        try:
            connection = sqlite3.connect(f"{self.path.as_uri()}?mode=rw", timeout=_LOCK_SECONDS, uri=True)
        except _FAILURES:
            return False
        try:
            for table in _TABLES:
                connection.execute(f"SELECT * FROM {table} LIMIT 1")  # noqa: S608
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))
        except _FAILURES:
            return False
        finally:
            connection.close()


def _check_file(path: Path) -> None:
    """Raise `OSError` if the file is of another program. Nothing is written, not even to a log beside it."""
    size = path.stat().st_size
    has_log = any(_size(f"{path}{end}") > 0 for end in ("-wal", "-journal"))
    application, tables = 0, 0
    if size:
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
                application = _pragma(connection, "application_id")
                tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
        except sqlite3.Error:  # damaged, or no database: nobody has locks on it that closing it here would end
            with path.open("rb") as file:
                header = file.read(_HEADER)
            if header[_AT_APPLICATION : _AT_APPLICATION + 4] != _APPLICATION.to_bytes(4, "big"):
                raise OSError("not a tracetui cache") from None
            return
    if application != _APPLICATION and (tables or has_log):
        raise OSError("not a tracetui cache")


def _check_ours(connection: sqlite3.Connection) -> tuple[int, list[str]]:
    """Return the version and tables of the file. Raises `OSError` for one of another program or a newer version."""
    version, application = _pragma(connection, "user_version"), _pragma(connection, "application_id")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if application == _APPLICATION and version > SCHEMA:
        raise OSError("it is of a newer version of tracetui")
    if application != _APPLICATION and tables:
        raise OSError("not a tracetui cache")
    return version, tables


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of this version, in place of those of an older one. Raises `OSError` for any other file."""
    version, tables = _check_ours(connection)
    if tables and version == SCHEMA:  # another instance was faster
        return
    for name in tables:
        connection.execute(f'DROP TABLE "{name}"')
    for name, columns in _TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns}")
    connection.execute(_INDEX)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _version_id(connection: sqlite3.Connection, version: str) -> int | None:
    row = connection.execute("SELECT id FROM versions WHERE version = ?", (version,)).fetchone()
    return None if row is None else int(row[0])


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _pages(connection: sqlite3.Connection) -> int:
    """Bytes in use, without free pages."""
    used = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return used * _pragma(connection, "page_size")


_FAILURES: Final = (sqlite3.Error, OSError, ValueError, TypeError)
"""Errors of a damaged or unusable file. The last two come of values of the wrong type, or text that is none."""
_DAMAGE: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")
"""Beginnings of the names of errors that don't pass. The last one is a missing table."""
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")


def _is_damage(error: Exception) -> bool:
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorname", "").startswith(_DAMAGE)
    return not isinstance(error, OSError)


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorname", "").startswith(_BUSY)


def _sentence(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
