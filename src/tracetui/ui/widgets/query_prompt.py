"""Asks for a query: it is applied while it is typed, completed with Tab, and refused while it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tracetui.store.query import Completion, QueryError
from tracetui.text import Clean, cells, clean, grouped, one_line
from tracetui.ui.widgets.lines import LineBar
from tracetui.ui.widgets.prompt import Question
from tracetui.views.rows import Line, Piece, fit


class Filter(NamedTuple):
    """What a query filters: the runs, or the steps of one."""

    apply: Callable[[str], None]
    """Show only what a query finds; of one that is wrong counts what stands before its fault."""
    fault: Callable[[str], QueryError | None]
    offers: Callable[[str, int], Sequence[Completion]]
    """How a query may go on at a column."""
    found: Callable[[], tuple[int, int, str]]
    """(How many it finds, of how many, of what)."""


class _Cycle(NamedTuple):
    """What Tab goes through: the text before, what may stand in it, and which one does."""

    text: str
    offers: Sequence[Completion]
    at: int

    @property
    def completed(self) -> str:
        offer = self.offers[self.at]
        return self.text[: offer.start] + offer.text + self.text[offer.end :]


class QueryQuestion(Question):
    """Esc removes the filter. `hint` is the line below: what is wrong and where, or how the query may go on."""

    def __init__(self, label: str, value: str, filter: Filter, hint: LineBar) -> None:
        super().__init__(label, value)
        self._filter, self._hint = filter, hint
        self._cycle: _Cycle | None = None
        self._show(value)

    def typed(self, text: str) -> None:
        if self._cycle is not None and text != self._cycle.completed:
            self._cycle = None
        self._filter.apply(text)
        self._show(text)

    def accepts(self, text: str) -> bool:
        error = self._filter.fault(text)
        if error is not None:
            self._hint.show(self._fault(text, error))
        return error is None

    def done(self, text: str, *, taken: bool) -> None:
        self._hint.display = False
        self._filter.apply(text if taken else "")

    def complete(self, text: str, cursor: int, step: int) -> tuple[str, int] | None:
        cycle = self._cycle
        if cycle is None:
            offers = self._filter.offers(text, cursor)
            cycle = _Cycle(text, offers, 0 if step > 0 else len(offers) - 1)
        else:
            cycle = cycle._replace(at=(cycle.at + step) % len(cycle.offers))
        if not cycle.offers:
            return None
        self._cycle = cycle if len(cycle.offers) > 1 else None  # nothing to choose from: Tab goes on behind it
        offer = cycle.offers[cycle.at]
        return cycle.completed, offer.start + len(offer.text)

    @property
    def _width(self) -> int:
        return self._hint.app.size.width - 2

    def _show(self, text: str) -> None:
        error = self._filter.fault(text)
        if error is not None and not error.unfinished:
            line = self._fault(text, error)
        else:
            line = tuple(fit(self._going_on(text), self._width))
        self._hint.show(line)
        self._hint.display = True

    def _fault(self, text: str, error: QueryError) -> Line:
        """What is wrong with a query, below the place where it is; before it where there is no room behind."""
        words = clean(error.message)
        place = cells(clean(text[: error.column]))
        if place + 2 + cells(words) > self._width:
            return tuple(fit((Piece(words, "status.warn"),), self._width))
        return Piece(Clean(f"{' ' * place}^ "), "status.warn bold"), Piece(words, "status.warn")

    def _going_on(self, text: str) -> Line:
        """How many there are, and how the query may go on."""
        found, whole, word = self._filter.found()
        pieces = [
            Piece(Clean(f"{grouped(found)} of {grouped(whole)} {word}  "), "text bold" if found else "status.warn")
        ]
        cycle = self._cycle
        offers = cycle.offers if cycle is not None else self._filter.offers(text, len(text))
        first = cycle.at if cycle is not None else 0
        if offers:
            pieces.append(Piece(Clean(" Tab "), "key bold"))
        for i, offer in enumerate(offers[first : first + 12]):
            style = "hit" if cycle is not None and i == 0 else "text"
            pieces += [Piece(Clean(" ")), Piece(one_line(offer.text, 40), style)]
            pieces.append(Piece(Clean(f" {one_line(offer.hint, 40)} "), "dim"))
        return tuple(pieces)
