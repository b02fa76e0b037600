"""Read SQLite databases without writing or locking anything next to them.

* A database without a log (or with an empty one) is read in place, read-only and as *immutable*: SQLite takes no locks
  and creates no files. Its state before and after shows whether it changed meanwhile.
* One with a write-ahead log, or with a rollback journal that may be hot, is read from a private copy: even a read-only
  connection opens ``-wal`` and ``-shm`` for writing, and rolls a hot journal back.

The private copy is one plain file:

* The first time, the database and its log (or journal) are copied, and SQLite merges them. A checkpoint meanwhile does
  no harm: what it writes to the database is in the log as well. The copy is retried only if the log restarted, or if
  something copied is gone.
* After that, only new committed frames of the log are read, checked and written to their pages, even across a restart
  of the log if its old frames are still there to prove that none was missed.
* Otherwise the database is compared block by block with the copy, and only differing blocks are written.

A copy never changes while it is read. A reader of an older state doesn't block others: they get a second copy.

A file may be hostile: no schema is trusted, a statement may take `STATEMENT_OPS` VM steps, a value at most
`VALUE_LIMIT` bytes, and text that is not UTF-8 gets replacement characters. Views are not listed: one named like a
table can be an endless query.
"""

from __future__ import annotations

import errno
import operator
import os
import shutil
import sqlite3
import stat as modes
import sys
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from threading import Lock
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from tracetui.sources.base import Stat, settled
from tracetui.sources.local import is_confined, open_checked

ATTEMPTS: Final = 20
"""How often a copy is retried because the writer was faster."""
MAX_DATABASES: Final = 8
SPARE_COPIES: Final = 2
"""Unused copies to cache of one database: one is updated while the other is read."""
_CHUNK: Final = 1 << 20
_PREFIX: Final = "tracetui-copy-"
_JOURNAL_MAGIC: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_HEADER: Final = 100


class DatabaseChanging(OSError):
    """A database changed while it was read or copied."""


class DatabaseState(msgspec.Struct, frozen=True):
    """Identifies one state of a database on disk; an absent, empty or cold log or journal is None."""

    main: Stat
    header: bytes
    """Contains the change counter, which also changes within one clock tick."""
    wal: Stat | None
    wal_header: bytes
    """Contains the salts, which change whenever the log restarts."""
    journal: Stat | None

    @classmethod
    def of(cls, path: str) -> DatabaseState:
        """Return the current state. Raises `OSError`."""
        main = _regular(path)
        if main is None:
            raise OSError(f"not a regular file: {path}")
        wal = _filled(path + "-wal")
        wal_header = b"" if wal is None else _read(path + "-wal", WAL_HEADER)
        return cls(main, _read(path, _HEADER), wal, wal_header, _hot_journal(path + "-journal"))

    @property
    def settled(self) -> bool:
        """True if any later change must show in it."""
        return all(stat is None or settled(stat) for stat in (self.main, self.wal, self.journal))

    def allows(self, later: DatabaseState) -> bool:
        """Whether a copy made between this state and `later`, the log last, is consistent."""
        if self.identity != later.identity or self.journal != later.journal:
            return False
        if self.wal is None or later.wal is None:
            return self.wal is later.wal and (self.main, self.header) == (later.main, later.header)
        return (self.wal.inode, self.wal_header) == (later.wal.inode, later.wal_header)

    @property
    def identity(self) -> tuple[int, int]:
        """Identifies the file, whatever its contents."""
        return self.main.device, self.main.inode


class DatabaseCopy:
    """A private copy of one database; its folder is deleted with the last reference."""

    def __init__(self) -> None:
        self.path = os.path.join(private_folder(self), "copy.db")
        self.readers = 0
        self._state: DatabaseState | None = None
        self._position: WalPosition | None = None

    def pending(self, path: str, state: DatabaseState) -> list[Frames] | None:
        """Return new log frames, none if the copy is current; None if the database must be compared."""
        if self._state is None:
            return None
        if self._state == state and state.settled:
            return []
        if self._position is None or self._state.identity != state.identity or state.journal or not state.wal:
            return None
        with suppress(FileNotFoundError), os.fdopen(_opened(path + "-wal"), "rb") as wal:
            return new_frames(wal.fileno(), self._position)
        return None

    def version(self, state: DatabaseState) -> object:
        """Identify the contents after `update` to `state`: by the last frame, which is exact within a clock tick."""
        if self._position is not None:
            return state.identity, self._position
        return state if state.settled else None

    def update(self, path: str, state: DatabaseState) -> DatabaseState:
        """Update the copy to `state` or a later one; return which. The copy must have no readers."""
        frames = self.pending(path, state)
        if frames is not None:
            self._apply(frames)
            self._state = state
            return state
        in_log = self._is_in_log(state)
        for _ in range(ATTEMPTS):
            if self._copy(path, state, in_log=in_log):
                self._state = state
                return state
            in_log, state = False, DatabaseState.of(path)
        raise DatabaseChanging("the database keeps changing while it is copied")

    def _apply(self, batches: list[Frames]) -> None:
        """Write new pages to their places."""
        with open(self.path, "r+b", buffering=0) as copy:  # noqa: PTH123
            for frames in batches:
                if frames.page_count:
                    size = frames.end.page_size
                    for number, page in frames.pages.items():
                        if number <= frames.page_count:
                            os.pwrite(copy.fileno(), page, (number - 1) * size)
                    copy.truncate(frames.page_count * size)
                self._position = frames.end

    def _is_in_log(self, state: DatabaseState) -> bool:
        """Whether merging the whole log makes this copy current: it is in the round that was applied last."""
        return (
            (self._state is not None and self._state.identity == state.identity)
            and (self._position is not None and self._position.header == state.wal_header)
            and (state.wal is not None and state.journal is None)
        )

    def _copy(self, path: str, state: DatabaseState, *, in_log: bool) -> bool:
        """Copy differing blocks and the whole log or journal, and merge that; return False if the database changed
        meanwhile.
        """
        self._state = self._position = None
        _check_room(path, self.path)
        if not in_log:
            _copy_differing(path, self.path)
        for suffix, stat in (("-wal", state.wal), ("-journal", state.journal)):
            with suppress(FileNotFoundError):
                os.unlink(self.path + suffix)  # of an earlier attempt
            if stat is not None:
                _copy_differing(path + suffix, self.path + suffix)
        if not state.allows(DatabaseState.of(path)):
            return False
        if state.journal is not None:
            _refuse_super_journal(self.path + "-journal")
        self._fold(state.wal_header)
        return True

    def _fold(self, wal_header: bytes) -> None:
        """Let SQLite roll back the journal, or merge the log, into one plain file."""
        position = WalPosition.start(wal_header)
        with closing(open_private(self.path)) as connection:
            _, count, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if position is not None and count >= 0:
                offset = WAL_HEADER + count * position.frame_size
                end = _read(self.path + "-wal", 8, offset - position.page_size - 8) if count else position.checksum
                self._position = WalPosition(wal_header, offset, end)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()


class _Copies:
    """The copies of one database."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._copies: list[DatabaseCopy] = []

    def acquire(self, path: str) -> tuple[DatabaseCopy, DatabaseState]:
        """Return a copy of the current state, and that state; the copy stays unchanged until released."""
        with self._lock:
            state = DatabaseState.of(path)
            # temporary files may be cleaned up
            self._copies = [other for other in self._copies if os.path.exists(other.path)]
            copy = next((other for other in self._copies if other.pending(path, state) == []), None)
            if copy is None:
                copy = next((other for other in self._copies if not other.readers), None) or DatabaseCopy()
                if copy in self._copies:
                    self._copies.remove(copy)
                try:
                    state = copy.update(path, state)  # a failed copy is dropped
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.EDQUOT):
                        raise _no_room(copy.path) from error
                    raise
                self._copies.insert(0, copy)
            copy.readers += 1
            return copy, state

    def release(self, copy: DatabaseCopy) -> None:
        with self._lock:
            copy.readers -= 1
            for spare in [other for other in self._copies[SPARE_COPIES:] if not other.readers]:
                self._copies.remove(spare)


class CopyCache:
    """Copies of recently read databases, so that reading one again costs only the changes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._databases: dict[str, _Copies] = {}

    @contextmanager
    def current(self, path: str, name: str | None = None) -> Iterator[tuple[DatabaseCopy, DatabaseState]]:
        """Return a copy of the database at `path` as it is now. `name` identifies it, by default its path.

        Raises `OSError` or `sqlite3.Error`.
        """
        name = name or os.path.abspath(path)
        with self._lock:
            copies = self._databases[name] = self._databases.pop(name) if name in self._databases else _Copies()
            while len(self._databases) > MAX_DATABASES:
                self._databases.pop(next(iter(self._databases)))
        copy, state = copies.acquire(path)
        try:
            yield copy, state
        finally:
            copies.release(copy)

    def clear(self) -> None:
        """Drop all copies."""
        with self._lock:
            self._databases.clear()


_COPIES: Final = CopyCache()
_State = TypeVar("_State")


class RemoteCopy(Generic[_State]):
    """A local copy of one state of a remote database; its folder is deleted with the last reference."""

    def __init__(self, state: _State) -> None:
        self.state = state
        self.file = os.path.join(private_folder(self), "remote.db")
        """Path of the database, next to its log and journal. Nothing writes there after copying."""


class RemoteCopies(Generic[_State]):
    """Local copies of the databases of one remote source, deleted by `close` and at exit. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._copies: dict[str, RemoteCopy[_State]] = {}
        self.merged = CopyCache()
        """Copies with their log or journal merged in: plain files, updated incrementally."""

    def take(
        self,
        path: str,
        look: Callable[[], _State],
        make: Callable[[_State, RemoteCopy[_State] | None], RemoteCopy[_State]],
        allows: Callable[[_State, _State], bool] = operator.eq,
    ) -> RemoteCopy[_State]:
        """Return a copy of the database at `path` as it is now.

        `look` returns the current state. `make` copies a state, given the copy of an earlier one; that copy is
        consistent if `allows(state, state afterwards)`. Raises `OSError` as these do, `DatabaseChanging` after
        `ATTEMPTS`.
        """
        with self._lock:
            copy = self._copies.pop(path, None)
            state = look()
            for _ in range(ATTEMPTS):
                if copy is None or copy.state != state:
                    copy = make(state, copy)
                    later = look()
                    if not allows(state, later):
                        copy, state = None, later
                        continue
                self._copies[path] = copy
                while len(self._copies) > MAX_DATABASES:
                    self._copies.pop(next(iter(self._copies)))
                return copy
        raise DatabaseChanging("the database keeps changing while it is copied")

    def close(self) -> None:
        """Drop the copies."""
        self._copies.clear()
        self.merged.clear()


def is_passing(error: Exception) -> bool:
    """True for a temporary failure: a lock, or a writer that is faster than the copy."""
    if isinstance(error, sqlite3.Error):
        return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return isinstance(error, DatabaseChanging)


def tables(path: str, copies: CopyCache = _COPIES, name: str | None = None) -> frozenset[str]:
    """Return the names of the tables (no views or virtual tables) of the database at `path`; empty if unreadable."""
    try:
        with connect(path, copies, name) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    except (sqlite3.Error, OSError):
        return frozenset()
    return frozenset(name for (name,) in rows if isinstance(name, str))


def version_of(connection: sqlite3.Connection) -> object:
    """Return a value that identifies the state `connect` found; None if a later state may look the same."""
    return getattr(connection, "version", None)


@contextmanager
def connect(path: str, copies: CopyCache = _COPIES, name: str | None = None) -> Iterator[sqlite3.Connection]:
    """Open a read-only connection to a consistent state of the database at `path`.

    Copies are cached in `copies`, under `name` if given. Raises `sqlite3.Error` or `OSError`, the latter also if the
    file changed while it was read in place.
    """
    state = DatabaseState.of(path)
    if state.wal is None and state.journal is None:
        with closing(_open_in_place(path)) as connection:
            _refuse_cut(connection, state.main.size)
            connection.version = state if state.settled else None
            yield connection
        later = DatabaseState.of(path)
        if (later.main, later.header) != (state.main, state.header):
            raise DatabaseChanging("the database changed while it was read")
    else:
        with copies.current(path, name) as (copy, state), closing(open_readonly(copy.path)) as connection:
            connection.version = copy.version(state)
            yield connection


def _refuse_cut(connection: sqlite3.Connection, size: int) -> None:
    """Raise `OSError` for a file that ends within a page: SQLite would silently read zeros there."""
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    if size % page_size:
        raise OSError(f"truncated: the database ends within a page, at byte {size}")


_FOLDERS: Final[set[str]] = set()
"""Folders for copies that this process made."""


def _is_own(path: str) -> bool:
    """Whether a file is a private copy."""
    return path.startswith(tuple(_FOLDERS))


def _opened(path: str) -> int:
    """Open a private copy, or another file as `open_checked` does."""
    return os.open(path, _FLAGS) if _is_own(path) else open_checked(path)


def private_folder(owner: object) -> str:
    """Create a folder for copies (mode 0700), deleted with `owner`, at exit, or by the next process after a kill."""
    _sweep()
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
    _FOLDERS.add(os.path.join(folder, ""))
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _regular(path: str) -> Stat | None:
    """Return the stat of a regular file, None for anything else. Links are not followed."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if not modes.S_ISREG(status.st_mode):
        return None
    return Stat(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _filled(path: str) -> Stat | None:
    stat = _regular(path)
    return stat if stat is not None and stat.size else None


def _hot_journal(path: str) -> Stat | None:
    """Return the stat of a rollback journal that may need a rollback: a finished one starts with a zero."""
    stat = _filled(path)
    return stat if stat is not None and _read(path, 1) not in (b"", b"\0") else None


def _read(path: str, size: int, offset: int = 0) -> bytes:
    """Read bytes of a file; empty if it vanished."""
    try:
        descriptor = _opened(path)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)


def _copy_differing(source: str, target: str) -> None:
    """Make `target` equal to `source`, writing only differing blocks.

    A vanished source leaves an empty target, which the comparison of states detects.
    """
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as outgoing:
        try:
            incoming = os.fdopen(_opened(source), "rb", buffering=0)
        except FileNotFoundError:
            outgoing.truncate(0)
            return
        with incoming:
            offset, size = 0, os.fstat(descriptor).st_size
            while block := incoming.read(_CHUNK):
                if offset >= size or os.pread(descriptor, len(block), offset) != block:
                    written = 0
                    while written < len(block):
                        written += os.pwrite(descriptor, block[written:], offset + written)
                offset += len(block)
            outgoing.truncate(offset)


def _check_room(source: str, target: str) -> None:
    """Refuse a copy that doesn't fit, before it fills the temporary folder."""
    have = _regular(target)
    size = sum(stat.size for suffix in ("", "-wal", "-wal", "-journal") if (stat := _regular(source + suffix)))
    if size - (have.size if have is not None else 0) > shutil.disk_usage(os.path.dirname(target)).free:
        raise _no_room(target)


def _no_room(target: str) -> OSError:
    folder = os.path.dirname(os.path.dirname(target))
    return OSError(f"not enough space in {folder} for a copy of a live database; set TMPDIR to another folder")


def _refuse_super_journal(path: str) -> None:
    """Refuse a journal that names a super-journal: its rollback could delete any file it names."""
    with open(path, "rb") as journal:  # noqa: PTH123
        journal.seek(0, os.SEEK_END)
        journal.seek(max(0, journal.tell() - len(_JOURNAL_MAGIC)))
        if journal.read() == _JOURNAL_MAGIC:
            raise OSError("its rollback journal belongs to a transaction over several databases")


@cache
def _sweep() -> None:
    """Delete, once, copies that killed processes left behind: they contain the user's traces."""
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
    if os.getpid() == owner:  # a forked child must not delete what its parent reads
        shutil.rmtree(folder, ignore_errors=True)


# ---- connections


STATEMENT_OPS: Final = 100_000_000
"""About two seconds. Not measured in time, because the caller's own work between two rows must not count."""
VALUE_LIMIT: Final = 1 << 29
_PROGRESS_OPS: Final = 100_000


class LimitedConnection(sqlite3.Connection):
    """Aborts a statement that takes more than `STATEMENT_OPS`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.version: object = None
        """Identifies the state of the database being read; None if a later state may look the same."""
        self.text_factory = _text
        self._ops = 0
        self.set_progress_handler(self._too_long, _PROGRESS_OPS)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._ops = 0
        try:
            return super().execute(sql, parameters)
        except UnicodeEncodeError:  # no text of a database contains a lone surrogate, and bytes equal none
            return super().execute(sql, [_comparable(value) for value in parameters])
        except UnicodeDecodeError as error:  # of an error message that quotes a broken schema
            raise sqlite3.DatabaseError(error.object.decode("utf-8", "replace")) from error

    def _too_long(self) -> bool:
        self._ops += _PROGRESS_OPS
        return self._ops > STATEMENT_OPS


def open_readonly(path: str) -> LimitedConnection:
    """Open a file that no process writes to: SQLite takes no locks, and neither writes nor creates anything."""
    # immutable alone would open the file for writing, and create one that was just deleted
    return _open(path, "mode=ro&immutable=1", "PRAGMA query_only = ON")


def _open_in_place(path: str) -> LimitedConnection:
    """As `open_readonly`; a confined process opens only the file that `open_checked` opens. SQLite goes by its path."""
    if not is_confined() or _is_own(path):
        return open_readonly(path)
    fd = open_checked(path)
    try:
        before = _open_files()
        connection = open_readonly(path)
        checked = os.fstat(fd)
        if all(file != (checked.st_dev, checked.st_ino) for file in (opened[1:] for opened in _open_files() - before)):
            connection.close()
            raise PermissionError(errno.EACCES, "exchanged while it was opened", path)
        return connection
    finally:
        os.close(fd)


def _open_files() -> set[tuple[int, int, int]]:
    """(Descriptor, device, inode) of all open files of this process."""
    files: set[tuple[int, int, int]] = set()
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            status = os.fstat(int(name))
            files.add((int(name), status.st_dev, status.st_ino))
    return files


def open_private(path: str) -> LimitedConnection:
    """Open a private copy for reading and writing. It need not survive a crash."""
    return _open(path, "mode=rw", "PRAGMA synchronous = OFF")


def _open(path: str, mode: str, *pragmas: str) -> LimitedConnection:
    name = quote(os.fsencode(os.path.abspath(path)))  # an unquoted ? in a name would set the mode
    connection = sqlite3.connect(
        f"file:{name}?{mode}", uri=True, isolation_level=None, check_same_thread=False, factory=LimitedConnection
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_LIMIT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for pragma in ("PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", *pragmas):
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


def _comparable(value: Any) -> Any:
    try:
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


_text: Final = partial(str, encoding="utf-8", errors="replace")
"""Called for every text of every row: a Python function would take twice as long."""


# ---- new committed frames of a write-ahead log, verified by their checksums


WAL_HEADER: Final = 32
MAX_FRAME_BYTES: Final = 1 << 20
"""Bytes of new frames to check here; SQLite is faster with more, although it reads the whole log."""
_FRAME_HEADER: Final = 24


class WalPosition(msgspec.Struct, frozen=True):
    """How far a write-ahead log was applied."""

    header: bytes
    offset: int
    """End of the last applied frame."""
    checksum: bytes
    """Checksum up to there, which the next frame's continues."""

    @classmethod
    def start(cls, header: bytes) -> WalPosition | None:
        """Return the position before the first frame; None for an invalid header."""
        size = int.from_bytes(header[8:12], "big")
        if len(header) < WAL_HEADER or not 512 <= size <= 65_536 or size & (size - 1):
            return None
        return cls(header, WAL_HEADER, header[24:32])

    @property
    def page_size(self) -> int:
        return int.from_bytes(self.header[8:12], "big")

    @property
    def frame_size(self) -> int:
        return _FRAME_HEADER + self.page_size

    @property
    def salts(self) -> bytes:
        return self.header[16:24]

    def restarted_as(self, header: bytes) -> bool:
        """True if `header` is the one of the log after one restart: SQLite increments the first salt."""
        following = (int.from_bytes(self.salts[:4], "big") + 1) & 0xFFFF_FFFF
        return header[:4] + header[8:12] == self.header[:4] + self.header[8:12] and (
            int.from_bytes(header[16:20], "big") == following
        )


class Frames(msgspec.Struct, frozen=True):
    """Committed frames of a log beyond a position."""

    pages: dict[int, bytes]
    page_count: int
    """Size of the database after them, in pages; 0 if there are none."""
    end: WalPosition


def new_frames(wal: int, position: WalPosition) -> list[Frames] | None:
    """Return the committed frames beyond `position`, even across a restart; None if some may be missing, or many."""
    frames = _frames_from(wal, position)
    if frames is None:
        return None
    header = os.pread(wal, WAL_HEADER, 0)
    if header == position.header:
        return [frames] if frames.page_count else []
    # The log restarted. Its new frames overwrite the old ones from the start. If the last applied frame is still there,
    # and what follows is not new, then no old frame was missed, and all of them are in the database.
    start = WalPosition.start(header)
    end = frames.end
    if start is None or end.offset == WAL_HEADER or not position.restarted_as(header):
        return None
    last = os.pread(wal, _FRAME_HEADER, end.offset - end.frame_size)
    following = os.pread(wal, _FRAME_HEADER, end.offset)
    if last[8:24] != end.salts + end.checksum or following[8:16] == start.salts or len(following) % _FRAME_HEADER:
        return None
    restarted = _frames_from(wal, start)
    if restarted is None or os.pread(wal, WAL_HEADER, 0) != header:
        return None
    return [frames, restarted]


def _frames_from(wal: int, position: WalPosition) -> Frames | None:
    """Return the committed frames of one round of a log beyond `position`; None if there are too many to check here."""
    size, offset, committed = position.frame_size, position.offset, position.offset
    while len(header := os.pread(wal, _FRAME_HEADER, offset)) == _FRAME_HEADER and header[8:16] == position.salts:
        offset += size
        if any(header[4:8]):
            committed = offset
    if committed - position.offset > MAX_FRAME_BYTES:
        return None
    data = memoryview(os.pread(wal, committed - position.offset, position.offset))
    word_type = "little" if position.header[3] == 0x82 else "big"
    pages: dict[int, bytes] = {}
    committed_pages: dict[int, bytes] = {}
    count, end, checksum = 0, position, position.checksum
    for at in range(0, len(data) - size + 1, size):
        header, page = bytes(data[at : at + _FRAME_HEADER]), bytes(data[at + _FRAME_HEADER : at + size])
        checksum = _checksum(header[:8] + page, checksum, word_type)
        number, after = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big")
        if header[8:16] != position.salts or header[16:24] != checksum or not number:
            break  # still being written
        pages[number] = page
        if after:
            committed_pages |= pages
            pages = {}
            count, end = after, WalPosition(position.header, position.offset + at + size, checksum)
    return Frames(committed_pages, count, end)


def _checksum(data: bytes, before: bytes, byte_order: str) -> bytes:
    """Return the checksum of a log: two sums over pairs of 32-bit words."""
    words = array("I", data)
    if byte_order != sys.byteorder:
        words.byteswap()
    first, second = int.from_bytes(before[:4], "big"), int.from_bytes(before[4:8], "big")
    pairs = iter(words)
    for even, odd in zip(pairs, pairs, strict=True):
        first = (first + even + second) & 0xFFFF_FFFF
        second = (second + odd + first) & 0xFFFF_FFFF
    return first.to_bytes(4, "big") + second.to_bytes(4, "big")
