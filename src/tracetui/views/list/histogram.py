"""The histogram above the run list: when its runs started, and how many of them failed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import groupby
from typing import Final

from tracetui.analysis.histogram import Histogram
from tracetui.text import Clean, grouped, quantity
from tracetui.views.glyphs import ASCII, Glyphs
from tracetui.views.rows import Line, Piece, fit, width_of

MIN_BARS: Final = 3
"""Fewer bars tell nothing."""
_DAY: Final = 86_400
_PARTS: Final = 8
"""Heights of a cell."""
_LABEL: Final = 12
"""Least cells from label to label."""


class Strip:
    """The bars, drawn once; the marked one is drawn over them."""

    def __init__(self, histogram: Histogram, width: int, height: int, glyphs: Glyphs) -> None:
        """`height`: rows of the bars."""
        self.histogram, self._glyphs, self._height = histogram, glyphs, height
        count = len(histogram.bars)
        self._cells = max(1, min(4, width // count))
        self._width = width
        self._margin = max(0, width - self._cells * count)
        tallest = max(len(bar.rows) for bar in histogram.bars[histogram.has_older :])  # a bar of all older runs is cut
        columns = [self._column(len(bar.rows), len(bar.failed), tallest) for bar in histogram.bars]
        self._rows = [[column[row] for column in columns] for row in range(height)]

    def _column(self, runs: int, failed: int, tallest: int) -> list[Piece]:
        """The cells of a bar, from top to bottom."""
        glyphs, full = self._glyphs, self._height * _PARTS
        total = min(full, -(-runs * full // tallest))
        red = -(-failed * total // runs) if runs else 0
        if 0 < red < total < _PARTS:
            total = _PARTS  # a cell shows two colors only if it is full
        cells = []
        for row in reversed(range(self._height)):
            filled, part = (max(0, min(_PARTS, number - row * _PARTS)) for number in (total, red))
            if not filled:
                cells.append(Piece(glyphs.zero if not runs and not row else Clean(" "), "line"))
            elif glyphs is ASCII:
                cells.append(
                    Piece(
                        Clean(glyphs.error if part * 2 >= filled or (part and not row) else "#"),
                        "bar.error" if part else "bar.agent",
                    )
                )
            elif filled == _PARTS and 0 < part < _PARTS:
                cells.append(Piece(Clean(glyphs.spark[part - 1]), "bar.error.part"))
            else:
                cells.append(Piece(Clean(glyphs.spark[filled - 1]), "bar.error" if part * 2 >= filled else "bar.agent"))
        return cells

    def lines(self, marked: int | None, now: float, cause: Callable[[int], str]) -> list[Line]:
        """The bars; with more than two rows also their times, and the marked bar in words."""
        lines = [self._bars(row, marked) for row in self._rows]
        if self._height > 2:
            lines.append(self._axis(marked, now))
            lines.append(self._sentence(marked, now, cause) if marked is not None else ())
        return lines

    def _bars(self, row: list[Piece], marked: int | None) -> Line:
        styled = (
            Piece(piece.text, "accent" if i == marked and piece.style == "bar.agent" else piece.style)
            for i, piece in enumerate(row)
        )
        pieces = [Piece(Clean(" " * self._margin))]
        for style, alike in groupby(styled, key=lambda piece: piece.style):
            pieces.append(Piece(Clean("".join(piece.text * self._cells for piece in alike)), style))
        return tuple(pieces)

    def _axis(self, marked: int | None, now: float) -> Line:
        """The times below the bars, and a sign at the marked one; a time that the sign would cover makes way."""
        histogram, cells = self.histogram, [" "] * self._width
        last = len(histogram.bars) - 1
        dated = _LABEL / self._cells * histogram.unit > _DAY / 2  # else several labels a day tell when the next begins
        every = -(-max(_LABEL, len(self._time(0, now, dated=dated)) + 1) // self._cells)
        begin = self._width if marked is None else self._margin + marked * self._cells
        end = begin + self._cells
        right = "now" if now - histogram.begin(last) < 2 * histogram.unit else self._time(last, now, dated=dated)
        edge = begin if begin < self._width < end + len(right) else self._width
        cells[edge - len(right) : edge] = right
        for bar in range(0, last + 1, every):
            label = "older" if histogram.has_older and not bar else self._time(bar, now, dated=dated)
            at = self._margin + bar * self._cells
            if at + len(label) + 1 < edge - len(right) and not (at < end and begin < at + len(label)):
                cells[at : at + len(label)] = label
        axis = Clean("".join(cells[: self._width]))
        if marked is None:
            return (Piece(axis, "dim"),)
        sign = Clean(self._glyphs.above * self._cells)
        return Piece(Clean(axis[:begin]), "dim"), Piece(sign, "accent"), Piece(Clean(axis[end:]), "dim")

    def _time(self, bar: int, now: float, *, dated: bool = False) -> str:
        begin, unit = self.histogram.begin(bar), self.histogram.unit
        when = datetime.fromtimestamp(begin)
        day = when.strftime("%Y-%m-%d" if now - begin > 300 * _DAY else "%m-%d")
        if unit >= _DAY:
            return day
        today = datetime.fromtimestamp(now).date() == when.date()
        return f"{day} {when:%H:%M}" if dated and not today else f"{when:%H:%M}"

    def _sentence(self, marked: int, now: float, cause: Callable[[int], str]) -> Line:
        histogram = self.histogram
        bar, begin = histogram.bars[marked], self._time(marked, now, dated=True)
        dash = "-" if self._glyphs is ASCII else "–"
        if histogram.has_older and not marked:
            when = f"until {self._time(marked + 1, now, dated=True)}"
        elif histogram.unit >= _DAY:
            when = begin if histogram.unit == _DAY else f"{begin}{dash}{self._time(marked + 1, now)}"
        else:
            when = f"{begin}{dash}{datetime.fromtimestamp(histogram.begin(marked + 1)):%H:%M}"
        runs = f"  {quantity(len(bar.rows), 'run')}"
        pieces = [Piece(Clean(when), "text bold"), Piece(Clean(runs), "text")]
        if bar.failed:
            pieces += [
                Piece(Clean(" · "), "dim"),
                Piece(Clean(f"{grouped(len(bar.failed))} failed"), "status.error bold"),
            ]
            if common := cause(marked):
                pieces += [Piece(Clean(" · "), "dim"), Piece(Clean(common), "sec")]
        keys = [Piece(Clean(" ")), Piece(Clean("]h"), "key bold"), Piece(Clean(" ")), Piece(Clean("[h"), "key bold")]
        room = self._width - width_of(keys)
        pieces = [*fit(pieces, room)]
        return (*pieces, Piece(Clean(" " * max(0, room - width_of(pieces)))), *keys)
