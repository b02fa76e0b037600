"""Facets: a filter that is picked instead of typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracetui.store.query.complete import Facet
from tracetui.text import Clean, grouped
from tracetui.ui.commands import FACETS, Command, shown
from tracetui.ui.screens.single import SingleScreen
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.facets import Choice, FacetRows, picked_query
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, Piece


class Facets(LineView):
    """One row a value."""

    number = 1
    pane_name = "Pick"


class FacetsScreen(SingleScreen):
    """Space picks several, Enter takes what is picked (or the value under the cursor)."""

    def __init__(
        self, facets: Sequence[Facet], total: int, take: Callable[[str], None], commands: Sequence[Command]
    ) -> None:
        """`take` is called with the query that asks for what was picked; `total` is of how many runs."""
        super().__init__(FACETS, Facets(id="facets"), commands)
        self._facets, self._total, self._take = facets, total, take
        self._chosen: list[Choice] = []
        self._picking = _Picking(self)

    @property
    def doers(self) -> Sequence[object]:
        return self._picking, *super().doers

    def show_rows(self) -> None:
        terms = [choice.term for choice in self._chosen]
        self.list.show(FacetRows(self._facets, terms, self._total, glyphs=self.app.look.glyphs))
        self.refresh_frame()

    @property
    def _here(self) -> Choice | None:
        rows = self.list.rows
        return rows.choice(self.list.position) if isinstance(rows, FacetRows) else None

    def pick(self) -> None:
        """Pick the value under the cursor, or not any more."""
        here = self._here
        if here is not None:
            self._chosen = (
                [one for one in self._chosen if one != here] if here in self._chosen else [*self._chosen, here]
            )
            self.show_rows()

    def opened(self) -> None:
        chosen = self._chosen or ([self._here] if self._here is not None else [])
        if self.leave() and chosen:
            self._take(picked_query(chosen))

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("pick a filter"), "text bold"),), ()

    def summary(self) -> Line:
        if not self._chosen:
            words = f"{grouped(self._total)} runs  ·  "
            return (
                Piece(Clean(words), "sec"),
                Piece(Clean(shown("enter")), "key bold"),
                Piece(Clean(" shows those with this value   "), "sec"),
                Piece(Clean("Space"), "key bold"),
                Piece(Clean(" picks several"), "sec"),
            )
        return (Piece(Clean("filter  "), "sec"), Piece(one_line(picked_query(self._chosen), 200), "hit"))


class _Picking:
    def __init__(self, screen: FacetsScreen) -> None:
        self._screen = screen

    def do_pick(self, argument: str) -> None:
        self._screen.pick()
