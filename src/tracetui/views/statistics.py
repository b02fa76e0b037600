"""Statistics of calls as rows: how many, how many failed, how long they took, what they used."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from tracetui.store.statistics import Row
from tracetui.text import Clean, cost, count, duration, tokens
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, Piece, column, fill, fit

_NAMES: Final = ("calls", "errors", "runs", "p50", "p95", "total", "tokens", "cost")
_CELL: Final = 8
_BAR_FROM: Final = 110
_BAR: Final = 20


class StatisticRows:
    """See `tracetui.views.rows.Rows`. The key of a row is the name of what is counted."""

    def __init__(self, rows: Sequence[Row], *, glyphs: Glyphs = UNICODE) -> None:
        self._rows, self._glyphs = rows, glyphs
        self._index = {row.name: i for i, row in enumerate(rows)}
        self._most = max((row.total_ms or 0.0 for row in rows), default=0.0)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> Row | None:
        """What a row is about."""
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def key(self, index: int) -> Hashable:
        return self._rows[index].name

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key) if isinstance(key, str) else None

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
        name = one_line(row.name, 200) if row.name else Clean("(the trace does not say)")
        pieces = fill([Piece(name, "text bold" if row.errors else "text")], _room(width))
        pieces += [column(text, _CELL, style, right=True) for text, style in cells[: _shown(width)]]
        if width >= _BAR_FROM and self._most and row.total_ms is not None:
            pieces += (Piece(Clean("  ")), *amount(row.total_ms, self._most, _BAR, "bar.model", glyphs=self._glyphs))
        return tuple(fit(pieces, width))


def heading(width: int, what: str) -> Line:
    """The names of the columns."""
    pieces = fill([Piece(one_line(what, 20), "dim")], _room(width))
    pieces += [column(Clean(name), _CELL, "dim", right=True) for name in _NAMES[: _shown(width)]]
    return tuple(fit(pieces, width))


def _shown(width: int) -> int:
    """How many columns there is room for."""
    return max(2, min(len(_NAMES), (width - 16) // _CELL))


def _room(width: int) -> int:
    """Cells of the name."""
    bar = _BAR + 2 if width >= _BAR_FROM else 0
    return max(8, width - _CELL * _shown(width) - bar)
