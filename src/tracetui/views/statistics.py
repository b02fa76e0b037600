"""Statistics of calls as rows: how many, how many failed, how long they took, what they used."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from tracetui.store.statistics import Row
from tracetui.text import Clean, cost, count, duration, tokens, truncate_middle
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, Piece, column, fill, fit

_NAMES: Final = ("calls", "errors", "runs", "p50", "p95", "total", "tokens", "cost")
_CELL: Final = 8
_COST: Final = 11
"""Cells of the last column: ``~$1234.56``."""
_BAR_FROM: Final = 110
_BAR: Final = 20


class StatisticRows:
    """See `tracetui.views.rows.Rows`. The key of a row is the name of what is counted."""

    def __init__(self, rows: Sequence[Row], *, glyphs: Glyphs = UNICODE) -> None:
        self._rows, self._glyphs = rows, glyphs
        self._index = {row.name: i for i, row in enumerate(rows)}
        self.by_tokens = not any(row.total_ms for row in rows)
        """Whether the bars are tokens: where the trace tells no times, as that of a coding agent's model calls."""
        self._all = sum(self._size(row) or 0.0 for row in rows)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> Row | None:
        """What a row is about."""
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def key(self, index: int) -> Hashable:
        return self._rows[index].name

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key) if isinstance(key, str) else None

    def _size(self, row: Row) -> float | None:
        """What the bar of a row is a share of all of."""
        return row.usage.all_tokens if self.by_tokens else row.total_ms

    def selectable(self, index: int) -> bool:
        return True

    def mark(self, index: int) -> str | None:
        return "status.error" if self._rows[index].errors else None

    def plain(self, index: int) -> str:
        return self._rows[index].name

    def line(self, index: int, width: int) -> Line:
        row = self._rows[index]
        cells = (
            (count(row.count), "text"),
            (count(row.errors) if row.errors else self._glyphs.zero, "status.error" if row.errors else "dim"),
            (count(row.runs), "sec"),
            (duration(row.p50_ms), "sec"),
            (duration(row.p95_ms), "sec"),
            (duration(row.total_ms), "text"),
            (tokens(row.usage.all_tokens), "sec"),
            (cost(row.cost_usd, estimated=row.estimated_cost_usd is not None), "sec"),
        )
        name = one_line(row.name, 200) if row.name else Clean("(not said)")
        name = truncate_middle(name, _room(width) - 1)  # versions of a model differ at its end
        pieces = fill([Piece(name, "text bold" if row.errors else "text")], _room(width))
        pieces += [
            column(text, _size_of(i), style, right=True) for i, (text, style) in enumerate(cells[: _shown(width)])
        ]
        if width >= _BAR_FROM and self._all and (size := self._size(row)) is not None:
            pieces += (Piece(Clean("  ")), *amount(size, self._all, _BAR, "bar.agent", glyphs=self._glyphs))
        return tuple(fit(pieces, width))


def heading(width: int, what: str, by_tokens: bool = False) -> Line:
    """The names of the columns; the last is what the bars are."""
    pieces = fill([Piece(one_line(what, 20), "dim")], _room(width))
    pieces += [column(Clean(name), _size_of(i), "dim", right=True) for i, name in enumerate(_NAMES[: _shown(width)])]
    if width >= _BAR_FROM:
        pieces.append(Piece(Clean("  share of the tokens" if by_tokens else "  share of the time"), "dim"))
    return tuple(fit(pieces, width))


def _size_of(column: int) -> int:
    return _COST if column == len(_NAMES) - 1 else _CELL


def _shown(width: int) -> int:
    """How many columns there is room for."""
    return max(2, min(len(_NAMES), (width - 16 - _COST + _CELL) // _CELL))


def _room(width: int) -> int:
    """Cells of the name."""
    bar = _BAR + 2 if width >= _BAR_FROM else 0
    return max(8, width - sum(map(_size_of, range(_shown(width)))) - bar)
