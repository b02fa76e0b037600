"""A byte budget for the list stage: no file, however large, keeps the others from being listed."""

from __future__ import annotations

from typing import Any, Final

from tracetui.sources.base import BUDGET, BudgetSpent, File

LIST_BUDGET: Final = 8 << 20
"""Bytes of one file, and of others that its run is in, that the list stage may read: about 0.1 s of decoding."""
LIST_OPS: Final = 20_000_000
"""Steps of SQLite's machine for all statements of the list stage on one database: about 0.4 s."""
PROGRESS_OPS: Final = 10_000


class Budget:
    """What is left of it. `spent` stays True once something was refused, whoever caught `BudgetSpent`."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.ops = LIST_OPS
        self.spent = False

    def spend(self, size: int) -> None:
        """Take `size` bytes from the budget. Raises `BudgetSpent` if fewer are left."""
        if size > self.left:
            self.spent = True
            raise BudgetSpent
        self.left -= size

    def spend_ops(self) -> bool:
        """Take some steps of SQLite from the budget; True if fewer are left."""
        self.ops -= PROGRESS_OPS
        self.spent = self.spent or self.ops < 0
        return self.ops < 0


def spend(memo: dict[str, Any], size: int) -> None:
    """Take what a packed file becomes from the budget of the file with that `memo`, if it has one."""
    budget: Budget | None = memo.get(BUDGET)
    if budget is not None:
        budget.spend(size)


def left(memo: dict[str, Any], most: int) -> int:
    """Bytes that may still be read of the file with that `memo`, at most `most`."""
    budget: Budget | None = memo.get(BUDGET)
    return most if budget is None else min(most, budget.left)


def is_spent(file: File) -> bool:
    """Whether something that was to be read of `file` was refused."""
    budget: Budget | None = file.memo.get(BUDGET)
    return budget is not None and budget.spent
