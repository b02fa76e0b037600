"""How many runs started when, and how many of them failed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

UNITS: Final = (60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000, 31_536_000)
"""Seconds that a bar can stand for."""
_COVERED: Final = 0.75
"""Share of the runs that the bars tell apart; the first bar has all older ones."""


class Start(NamedTuple):
    """The start of a run."""

    at: float
    """UTC seconds."""
    row: int
    failed: bool


class Bar(NamedTuple):
    """The runs that started in one unit of time."""

    rows: Sequence[int]
    """Ascending; empty: no runs."""
    failed: Sequence[int]
    """The rows of the failed ones."""


class Histogram:
    """Bars of equal time, oldest first."""

    def __init__(self, starts: Sequence[Start], most: int) -> None:
        """`starts`: not empty, in the order of their rows; at most `most` bars."""
        times = sorted(start.at for start in starts)
        self.offset = (
            datetime.fromtimestamp(times[-1]).astimezone().utcoffset() or datetime.min - datetime.min
        ).total_seconds()
        oldest = times[int(len(times) * (1 - _COVERED))]
        self.unit = next(
            (unit for unit in UNITS if self._number(times[-1], unit) - self._number(oldest, unit) < most), UNITS[-1]
        )
        last = self._number(times[-1], self.unit)
        self._first = max(self._number(times[0], self.unit), last - most + 1)
        bars: list[tuple[list[int], list[int]]] = [([], []) for _ in range(self._first, last + 1)]
        for start in starts:
            rows, failed = bars[self.bar_at(start.at)]
            rows.append(start.row)
            if start.failed:
                failed.append(start.row)
        self.bars = [Bar(*bar) for bar in bars]
        self.has_older = self._number(times[0], self.unit) < self._first
        """Whether the first bar has runs of earlier units too."""
        self._firsts = sorted((bar.rows[0], i) for i, bar in enumerate(self.bars) if bar.rows)

    def _number(self, at: float, unit: int) -> int:
        return int((at + self.offset) // unit)

    def bar_at(self, at: float) -> int:
        """The bar of a time in UTC seconds."""
        return max(0, self._number(at, self.unit) - self._first)

    def begin(self, bar: int) -> float:
        """The begin of a bar in UTC seconds."""
        return (self._first + bar) * self.unit - self.offset

    @property
    def used(self) -> int:
        """Number of bars with runs."""
        return len(self._firsts)

    def first_row(self, bar: int, step: int) -> int | None:
        """The first row of the bar that follows this one in the list, or precedes it (-1); None at the end."""
        rows = self.bars[bar].rows
        current = bisect_right(self._firsts, (rows[0], bar)) - 1 if rows else -1
        following = current + step
        return self._firsts[following][0] if 0 <= following < len(self._firsts) else None
