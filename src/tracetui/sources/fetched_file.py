"""Base of files that are read over a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracetui.sources.base import HEAD_SIZE, SQLITE_MAGIC, Closable, Stat, check_document_size, file_name

if TYPE_CHECKING:
    from sqlite3 import Connection

    from tracetui.sources.sqlite import CopyCache


class FetchedFile(Closable):
    """A file of a remote source; see `tracetui.sources.base.File`. It ends where its `stat` says.

    A subclass finds its stat, reads ranges, and copies a database.
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

    @property
    def tables(self) -> frozenset[str]:
        if self._tables is None:
            from tracetui.sources import sqlite

            is_database = self.head.startswith(SQLITE_MAGIC)
            self._tables = sqlite.tables(*self._copy_arguments()) if is_database else frozenset()
        return self._tables

    @contextmanager
    def database(self) -> Iterator[Connection]:
        from tracetui.sources import sqlite

        with sqlite.connect(*self._copy_arguments()) as connection:
            yield connection

    def _find_stat(self) -> Stat:
        """Return the stat of the current version. Raises `OSError`."""
        raise NotImplementedError

    def _copy_arguments(self) -> tuple[str, CopyCache, str]:
        """Return a local copy of the database as arguments of `sqlite.connect`. Raises `OSError`."""
        raise NotImplementedError
