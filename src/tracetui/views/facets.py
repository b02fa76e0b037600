"""What there is to be picked instead of typed: the values of each key of the query language, and how many have them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

from tracetui.store.query.complete import Facet
from tracetui.text import Clean, grouped
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, Piece, column, fill, fit


class Choice(NamedTuple):
    """A term of the query language that asks for a value, and how many have it."""

    key: str
    term: str
    value: str | None
    runs: int


class FacetRows:
    """See `tracetui.views.rows.Rows`. The key of a row is its term, that of a heading ``(key,)``."""

    def __init__(
        self, facets: Sequence[Facet], picked: Collection[str], total: int, *, glyphs: Glyphs = UNICODE
    ) -> None:
        self._picked, self._total, self._glyphs = picked, total, glyphs
        self._items: list[Choice | str] = []
        for facet in facets:
            self._items.append(facet.key)
            self._items += [Choice(facet.key, facet.term(value), value, count) for value, count in facet.values]
        self._index = {self.key(i): i for i in range(len(self._items))}

    def __len__(self) -> int:
        return len(self._items)

    def choice(self, index: int) -> Choice | None:
        """The value of a row, None for a heading."""
        item = self._items[index] if 0 <= index < len(self._items) else ""
        return item if isinstance(item, Choice) else None

    def key(self, index: int) -> Hashable:
        item = self._items[index]
        return item.term if isinstance(item, Choice) else (item,)

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def selectable(self, index: int) -> bool:
        return isinstance(self._items[index], Choice)

    def mark(self, index: int) -> str | None:
        item = self._items[index]
        return "accent" if isinstance(item, Choice) and item.term in self._picked else None

    def plain(self, index: int) -> str:
        item = self._items[index]
        return item.term if isinstance(item, Choice) else item

    def line(self, index: int, width: int) -> Line:
        item = self._items[index]
        if not isinstance(item, Choice):
            rule = self._glyphs.rule * max(0, width - len(item) - 1)
            return (Piece(one_line(item, 40), "sec bold"), Piece(Clean(f" {rule}"), "line"))
        picked = item.term in self._picked
        sign = Piece(self._glyphs.ok if picked else Clean(" "), "accent bold")
        name = one_line(item.value, 200) if item.value is not None else Clean("none")
        style = "dim" if item.value is None else "accent bold" if picked else "text"
        room = max(10, min(60, width - 40))
        bar = amount(item.runs, self._total, max(0, min(24, width - room - 12)), "bar.model", glyphs=self._glyphs)
        cells = [Piece(Clean(" ")), sign, Piece(Clean(" ")), *fill([Piece(name, style)], room)]
        return tuple(fit([*cells, column(grouped(item.runs), 7, "sec", right=True), Piece(Clean("  ")), *bar], width))


def picked_query(picked: Sequence[Choice]) -> str:
    """The query that asks for what was picked: of one key any, of several keys all."""
    by_key: dict[str, list[str]] = {}
    for choice in picked:
        by_key.setdefault(choice.key, []).append(choice.term)
    parts = [terms[0] if len(terms) == 1 else f"({' or '.join(terms)})" for terms in by_key.values()]
    return " ".join(parts)
