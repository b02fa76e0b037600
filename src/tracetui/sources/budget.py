"""A byte budget for the list stage, so that no large file keeps others from being listed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from tracetui.sources.base import BUDGET, HEAD_SIZE, SQLITE_MAGIC, BudgetSpent, File, FileView, Stat
from tracetui.sources.zstd import UnpackedFile

if TYPE_CHECKING:
    from sqlite3 import Connection


LIST_BUDGET: Final = 8 << 20
"""Bytes that the list stage may read of one file and of other files of its run: about 0.1 s of decoding."""
LIST_OPS: Final = 20_000_000
"""SQLite VM steps of all statements of the list stage on one database: about 0.4 s."""
PROGRESS_OPS: Final = 10_000


class Budget:
    """The rest of a budget. `spent` stays True after a refusal, whoever caught `BudgetSpent`."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.ops = LIST_OPS
        self.spent = False

    def spend(self, size: int) -> None:
        """Spend `size` bytes. Raises `BudgetSpent` if fewer are left."""
        if size > self.left:
            self.spent = True
            raise BudgetSpent
        self.left -= size

    def spend_ops(self) -> bool:
        """Spend some SQLite steps; return True if fewer are left."""
        self.ops -= PROGRESS_OPS
        self.spent = self.spent or self.ops < 0
        return self.ops < 0


def spend(memo: dict[str, Any], size: int) -> None:
    """Charge decompressed bytes to the budget of the file with that `memo`, if it has one."""
    budget: Budget | None = memo.get(BUDGET)
    if budget is not None:
        budget.spend(size)


def left(memo: dict[str, Any], most: int) -> int:
    """Return the bytes left in the budget of the file with that `memo`, at most `most`."""
    budget: Budget | None = memo.get(BUDGET)
    return most if budget is None else min(most, budget.left)


def is_spent(file: File) -> bool:
    """Whether a read of `file` was refused."""
    budget: Budget | None = file.memo.get(BUDGET)
    return budget is not None and budget.spent


class BudgetedFile(FileView):
    """A file with reads charged to one budget, as are those of files opened through it. Heads are free."""

    __slots__ = ("_budget", "_free")

    def __init__(self, file: File, budget: Budget, *, free: int = HEAD_SIZE) -> None:
        """Reads of the first `free` bytes are free too."""
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
        if isinstance(self._file, UnpackedFile):  # it charges the decompressed size
            return self._file.read(offset, size)
        there = max(0, min(size, self.stat.size - offset))
        if offset + there > self._free:
            self._budget.spend(there)
        return self._file.read(offset, size)

    def read_all(self) -> bytes:
        if not isinstance(self._file, UnpackedFile) and self.stat.size > self._free:
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
        """Refuse a large database with a log: reading it copies all of it."""
        if self.stat.size <= self._budget.left or not self.head.startswith(SQLITE_MAGIC):
            return
        for log in ("-wal", "-journal"):
            if self.sibling(self.name + log) is not None:
                self._budget.spend(self.stat.size)
