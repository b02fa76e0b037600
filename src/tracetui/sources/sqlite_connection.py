"""Connections to possibly hostile SQLite files.

No schema is trusted, a statement may take `STATEMENT_OPS` VM steps, a value at most `VALUE_LIMIT` bytes, and text that
is not UTF-8 gets replacement characters.
"""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from typing import Any, Final
from urllib.parse import quote

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
