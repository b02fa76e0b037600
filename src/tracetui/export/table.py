"""Tables of cleaned text: columns as wide as what is in them, or in the cells that a terminal has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tracetui.text import Clean, cells, pad, truncate_middle

_GAP: Final = 2


class Column(NamedTuple):
    """One column of a table."""

    name: str
    most: int = 400
    """Cells that it takes at most; a text with more runs over, unless there is a terminal to fit."""
    right: bool = False
    least: int = 0
    """To so many cells it is cut where a terminal has no room for more; 0: never."""
    middle: bool = False
    """It is cut in its middle, because both ends tell something."""
    leaves: int = 0
    """Where there is still no room, columns are left out, 1 first; 0: never."""


class Table:
    """A heading and rows. The last column is what is read: where room is short it gets twice as much as others."""

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[Clean]]) -> None:
        self._columns = columns
        self._rows = [tuple(Clean(column.name) for column in columns), *rows]
        self._needed = [
            min(column.most, max(cells(row[i]) for row in self._rows)) for i, column in enumerate(columns)
        ]  # fmt: skip

    @property
    def room(self) -> int:
        """Cells in which nothing is cut but the last column, to its `Column.least`."""
        last = min(self._needed[-1], self._columns[-1].least)
        return sum(self._needed[:-1]) + last + _GAP * (len(self._columns) - 1)

    def lines(self, width: int | None = None) -> Iterator[Clean]:
        """The lines, none wider than `width`; for None they are as wide as they are, and no cell is cut."""
        shown = [*range(len(self._columns))]
        sizes = self._needed
        if width is not None:
            shown = self._kept(width)
            sizes = self._shared(shown, width)
        for row in self._rows:
            line = (self._cell(i, row[i], sizes[i], cut=width is not None) for i in shown)
            yield Clean((" " * _GAP).join(line).rstrip())

    def _cell(self, i: int, text: Clean, size: int, *, cut: bool) -> Clean:
        column = self._columns[i]
        if not cut and cells(text) > size:
            return text
        return pad(truncate_middle(text, size) if column.middle and cut else text, size, right=column.right)

    def _kept(self, width: int) -> list[int]:
        """The columns for which there is room when everything is cut that may be."""
        shown = [*range(len(self._columns))]
        for i in sorted((i for i in shown if self._columns[i].leaves), key=lambda i: self._columns[i].leaves):
            if sum(map(self._least, shown)) + _GAP * (len(shown) - 1) <= width:
                break
            shown.remove(i)
        return shown

    def _least(self, i: int) -> int:
        return min(self._needed[i], self._columns[i].least or self._needed[i])

    def _shared(self, shown: Sequence[int], width: int) -> list[int]:
        """So many cells for each column: those that may be cut share what is left, and none gets more than it needs."""
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
