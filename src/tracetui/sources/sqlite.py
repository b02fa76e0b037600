"""SQLite files, read without opening anything beside them for writing.

* A database without a log (or with an empty one) is read in place, read-only and as *immutable*: SQLite takes no locks
  and makes no files. Its state before and after shows whether it changed meanwhile.
* One with a write-ahead log, or with a rollback journal that may be hot, is read from a private copy, of which only
  what changed is copied again (`tracetui.sources.sqlite_copy`).

A file may be hostile (`tracetui.sources.sqlite_connection`), and views are not listed: one named like a table can be an
endless query.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from tracetui.sources.sqlite_connection import open_readonly
from tracetui.sources.sqlite_copy import Changing, CopyCache, DatabaseState

_COPIES: Final = CopyCache()


def is_passing(error: Exception) -> bool:
    """True for what stands in the way just now, and will not soon: a lock, or a writer that is faster than a copy."""
    if isinstance(error, sqlite3.Error):
        return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return isinstance(error, Changing)


def tables(path: str, copies: CopyCache = _COPIES, name: str | None = None) -> frozenset[str]:
    """Names of the tables (no views, no virtual tables) of the database at `path`; empty if it cannot be read."""
    try:
        with connect(path, copies, name) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    except (sqlite3.Error, OSError):
        return frozenset()
    return frozenset(name for (name,) in rows if isinstance(name, str))


def version_of(connection: sqlite3.Connection) -> object:
    """What tells the state that `connect` found from any later one; None where that cannot be told (yet)."""
    return getattr(connection, "version", None)


@contextmanager
def connect(path: str, copies: CopyCache = _COPIES, name: str | None = None) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a consistent state of the database at `path`.

    A copy is kept in `copies`, under `name` if given. Raises `sqlite3.Error` or `OSError`, the latter also if the file
    changed while it was read in place.
    """
    state = DatabaseState.of(path)
    if state.wal is None and state.journal is None:
        with closing(open_readonly(path)) as connection:
            _refuse_cut(connection, state.main.size)
            connection.version = state if state.settled else None
            yield connection
        later = DatabaseState.of(path)
        if (later.main, later.header) != (state.main, state.header):
            raise Changing("the database changed while it was read")
    else:
        with copies.current(path, name) as (copy, state), closing(open_readonly(copy.path)) as connection:
            connection.version = state if state.settled else None
            yield connection


def _refuse_cut(connection: sqlite3.Connection, size: int) -> None:
    """Raise `OSError` for a file that ends within a page: SQLite would read zeros there, and say nothing."""
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    if size % page_size:
        raise OSError(f"cut off: the database ends within a page, at byte {size}")
