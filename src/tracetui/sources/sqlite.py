"""SQLite files, read without changing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from sqlite3 import Connection


def tables(path: str) -> frozenset[str]:
    """Names of the tables (no views) of the database at `path`; empty if it cannot be read."""
    raise NotImplementedError(path)


@contextmanager
def connect(path: str, *, follow: bool = False) -> Iterator[Connection]:
    """A read-only connection to a consistent state of the database at `path`."""
    raise NotImplementedError(path)
