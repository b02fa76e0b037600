"""Tables of cleaned text: columns at natural width, or fitted to a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tracetui.text import Clean, cells, pad, truncate_middle

_GAP: Final = 2


class Column(NamedTuple):
    """One column of a table."""

    name: str
    most: int = 400
    """Maximum width in cells; longer text overflows unless the table is fitted to a terminal."""
    right: bool = False
    least: int = 0
    """Minimum width when truncating; 0 = never truncate."""
    middle: bool = False
    """Truncate in the middle, for text with significant ends."""
    leaves: int = 0
    """Order in which columns are dropped if truncating isn't enough, 1 first; 0 = never drop."""


class Table:
    """A heading and rows. When space is short, the last column gets twice the share of the others."""

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[Clean]]) -> None:
        self._columns = columns
        self._rows = [tuple(Clean(column.name) for column in columns), *rows]
        self._needed = [
            min(column.most, max(cells(row[i]) for row in self._rows)) for i, column in enumerate(columns)
        ]  # fmt: skip

    @property
    def room(self) -> int:
        """The width at which only the last column is truncated, to its `Column.least`."""
        last = min(self._needed[-1], self._columns[-1].least)
        return sum(self._needed[:-1]) + last + _GAP * (len(self._columns) - 1)

    def lines(self, width: int | None = None) -> Iterator[Clean]:
        """The lines, none wider than `width`; None: natural width, nothing truncated."""
        shown = [*range(len(self._columns))]
        sizes = self._needed
        if width is not None:
            shown = self._visible(width)
            sizes = self._shared(shown, width)
        for row in self._rows:
            line = (self._cell(i, row[i], sizes[i], cut=width is not None) for i in shown)
            yield Clean((" " * _GAP).join(line).rstrip())

    def _cell(self, i: int, text: Clean, size: int, *, cut: bool) -> Clean:
        column = self._columns[i]
        if not cut and cells(text) > size:
            return text
        return pad(truncate_middle(text, size) if column.middle and cut else text, size, right=column.right)

    def _visible(self, width: int) -> list[int]:
        """The columns that fit when all are truncated to their minimum."""
        shown = [*range(len(self._columns))]
        for i in sorted((i for i in shown if self._columns[i].leaves), key=lambda i: self._columns[i].leaves):
            if sum(map(self._least, shown)) + _GAP * (len(shown) - 1) <= width:
                break
            shown.remove(i)
        return shown

    def _least(self, i: int) -> int:
        return min(self._needed[i], self._columns[i].least or self._needed[i])

    def _shared(self, shown: Sequence[int], width: int) -> list[int]:
        """The width of each column: truncatable ones share the remaining space, up to their natural width."""
        sizes = list(map(self._least, range(len(self._columns))))
        left = width - _GAP * (len(shown) - 1) - sum(sizes[i] for i in shown)
        wanting = [i for i in shown if self._needed[i] > sizes[i]]
        while left > 0 and wanting:
            smallest = min(wanting, key=lambda i: sizes[i] / (2 if i == shown[-1] else 1))
            sizes[smallest] += 1
            left -= 1
            wanting = [i for i in wanting if self._needed[i] > sizes[i]]
        sizes[shown[-1]] = max(0, sizes[shown[-1]] + min(left, 0))
        return sizes
