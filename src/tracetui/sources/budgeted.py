"""Files that the list stage reads: with a byte budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from tracetui.sources.base import BUDGET, HEAD_SIZE, SQLITE_MAGIC, File, Stat, View
from tracetui.sources.budget import PROGRESS_OPS, Budget
from tracetui.sources.packed import Unpacked

if TYPE_CHECKING:
    from sqlite3 import Connection


class BudgetedFile(View):
    """A file whose reads, and those of other files opened through it, come from one budget; heads are free."""

    __slots__ = ("_budget", "_free")

    def __init__(self, file: File, budget: Budget, *, free: int = HEAD_SIZE) -> None:
        """Reads of the first `free` bytes cost nothing either."""
        super().__init__(file)
        self._budget, self._free = budget, free
        file.memo[BUDGET] = budget

    @property
    def stat(self) -> Stat:
        return self._file.stat

    @property
    def head(self) -> bytes:
        return self._file.head

    def read(self, offset: int, size: int) -> bytes:
        if isinstance(self._file, Unpacked):  # it spends what it becomes
            return self._file.read(offset, size)
        there = max(0, min(size, self.stat.size - offset))
        if offset + there > self._free:
            self._budget.spend(there)
        return self._file.read(offset, size)

    def read_all(self) -> bytes:
        if not isinstance(self._file, Unpacked) and self.stat.size > self._free:
            self._budget.spend(self.stat.size)
        return self._file.read_all()

    def other(self, path: str, stat: Stat | None = None) -> File:
        return BudgetedFile(self._file.other(path, stat), self._budget, free=0)

    @property
    def tables(self) -> frozenset[str]:
        self._refuse_copy()
        return self._file.tables

    def database(self) -> AbstractContextManager[Connection]:
        self._refuse_copy()
        return self._limited()

    @contextmanager
    def _limited(self) -> Iterator[Connection]:
        with self._file.database() as connection:
            connection.set_progress_handler(self._budget.spend_ops, PROGRESS_OPS)
            yield connection

    def _refuse_copy(self) -> None:
        """Refuse a large database with a log: to read it takes a copy of all of it."""
        if self.stat.size <= self._budget.left or not self.head.startswith(SQLITE_MAGIC):
            return
        for log in ("-wal", "-journal"):
            if self.sibling(self.name + log) is not None:
                self._budget.spend(self.stat.size)
