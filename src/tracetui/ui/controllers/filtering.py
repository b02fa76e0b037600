"""The filter of the runs and of the steps: a query that is applied while it is typed, completed, or picked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui.formats import registry
from tracetui.model import RunSummary
from tracetui.store import query
from tracetui.store.known import Known
from tracetui.store.query import Completion, QueryError
from tracetui.text import Clean, cells, clean, grouped, one_line
from tracetui.ui.commands import RUNS, STEPS
from tracetui.ui.widgets.prompt import FILTER
from tracetui.views.rows import Line, Piece, fit

if TYPE_CHECKING:
    from tracetui.ui.screens.main import MainScreen

RUNS_ASK: Final = "filter: words status:error tool:… dur>5s since:2h (a or b)"
SPANS_ASK: Final = "filter: words tool:… status:error dur>5s cached:true"
BETWEEN_SECONDS: Final = 0.002
FILTER_STEPS: Final = f"{FILTER} steps"


class _Cycle(NamedTuple):
    """What Tab goes through: the text before, what may stand in it, and which one does."""

    text: str
    offers: Sequence[Completion]
    at: int


class Filtering:
    """Belongs to the main screen, as its actions do."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._hint = screen.hint
        self._cycle: _Cycle | None = None

    @property
    def context(self) -> Known:
        """What queries can ask of runs."""
        screen, store = self._screen, self._screen.store
        return Known(
            screen.app.verdicts.sidecar,
            lambda: store.runs.values(),
            lambda: store.relations,
            screen.live.is_going,
            registry.names,
        )

    def found(self) -> list[RunSummary]:
        """The runs that the filter of the list leaves; all where there is none."""
        screen = self._screen
        words = screen.runs.arrangement.words
        runs = screen.store.runs.values()
        return query.begun(words, self.context)[0].select(runs) if words else list(runs)

    # ---- commands

    def do_filter(self, argument: str) -> None:
        screen = self._screen
        if screen.pane == STEPS:
            screen.ask(SPANS_ASK, screen.steps.filtered_by, FILTER_STEPS)
            self._show(FILTER_STEPS, screen.steps.filtered_by)
        else:
            screen.ask(RUNS_ASK, screen.runs.arrangement.words, FILTER)
            self._show(FILTER, screen.runs.arrangement.words)
            self._look_ahead(screen.runs.look_ahead(screen.store.runs.values()))

    def _look_ahead(self, steps: Iterator[None]) -> None:
        """Take one step, and the others between keys: the first word that is typed then waits for nothing."""
        if next(steps, steps) is None:
            self._screen.set_timer(BETWEEN_SECONDS, lambda: self._look_ahead(steps))

    def do_facets(self, argument: str) -> None:
        """Pick the filter from the values that there are."""
        from tracetui.ui.screens.facets import FacetsScreen

        screen = self._screen
        runs = list(screen.store.runs.values())
        found = query.facets(query.RUN_KEYS, runs, self.context)
        screen.app.push_screen(FacetsScreen(found, len(runs), self.filter, screen.app.commands))

    def filter(self, text: str) -> None:
        """Show only the runs that this query finds."""
        self._screen.runs.rearrange(words=text)
        self._screen.refresh_list()
        self._screen.refresh_frame()

    def ask_for(self, key: str, value: str) -> None:
        """Show only the runs that have this value; what is shown of the open run goes."""
        screen = self._screen
        if screen.level:
            screen.focus_pane(RUNS)
        self.filter(f"{key}:{query.quoted(value)}")

    # ---- the prompt

    def typed(self, purpose: str, text: str) -> None:
        """Another character was typed: what the query finds now is shown at once."""
        if self._cycle is not None and text != self._completed(self._cycle):
            self._cycle = None
        self._apply(purpose, text)
        self._show(purpose, text)

    def accepts(self, purpose: str, text: str) -> bool:
        """Whether a query can be taken as it is; shows what is wrong with it."""
        error = self._error(purpose, text)
        if error is not None:
            self._hint.show(self._fault(text, error))
            self._hint.display = True
        return error is None

    def answered(self, purpose: str, text: str) -> None:
        """The query was taken, or given up."""
        self._hint.display = False
        self._cycle = None
        self._apply(purpose, text)
        (self._screen.steps if purpose == FILTER_STEPS else self._screen.runs).focus()

    def complete(self, purpose: str, text: str, cursor: int, step: int) -> tuple[str, int] | None:
        """The text, and the place of the cursor, with the next completion in it."""
        cycle = self._cycle
        if cycle is None:
            offers = self._offers(purpose, text, cursor)
            cycle = _Cycle(text, offers, 0 if step > 0 else len(offers) - 1)
        else:
            cycle = cycle._replace(at=(cycle.at + step) % len(cycle.offers))
        if not cycle.offers:
            return None
        self._cycle = cycle if len(cycle.offers) > 1 else None  # nothing to choose from: Tab goes on behind it
        offer = cycle.offers[cycle.at]
        return self._completed(cycle), offer.start + len(offer.text)

    @staticmethod
    def _completed(cycle: _Cycle) -> str:
        offer = cycle.offers[cycle.at]
        return cycle.text[: offer.start] + offer.text + cycle.text[offer.end :]

    def _offers(self, purpose: str, text: str, cursor: int) -> Sequence[Completion]:
        run = self._screen.steps.run
        if purpose == FILTER_STEPS:
            return query.complete(text, cursor, query.SPAN_KEYS, run.spans) if run is not None else ()
        return query.complete(text, cursor, query.RUN_KEYS, self._screen.store.runs.values(), self.context)

    def _apply(self, purpose: str, text: str) -> None:
        screen = self._screen
        if purpose == FILTER_STEPS:
            screen.steps.filter(text, screen.app.clock())
            screen.show_detail()
        else:
            self.filter(text)

    def _error(self, purpose: str, text: str) -> QueryError | None:
        return query.begun_for_spans(text)[1] if purpose == FILTER_STEPS else query.begun(text, self.context)[1]

    def _show(self, purpose: str, text: str) -> None:
        error = self._error(purpose, text)
        if error is not None and not error.unfinished:
            line = self._fault(text, error)
        else:
            line = tuple(fit(self._going_on(purpose, text), self._screen.size.width - 2))
        self._hint.show(line)
        self._hint.display = True

    def _fault(self, text: str, error: QueryError) -> Line:
        """What is wrong with a query, below the place where it is; before it where there is no room behind."""
        width, words = self._screen.size.width - 2, clean(error.message)
        place = cells(clean(text[: error.column]))
        if place + 2 + cells(words) > width:
            return tuple(fit((Piece(words, "status.warn"),), width))
        return Piece(Clean(f"{' ' * place}^ "), "status.warn bold"), Piece(words, "status.warn")

    def _going_on(self, purpose: str, text: str) -> Line:
        """How many there are, and how the query may go on."""
        screen = self._screen
        if purpose == FILTER_STEPS:
            found, whole, word = screen.steps.found, len(screen.steps.run.spans) if screen.steps.run else 0, "spans"
        else:
            found, whole, word = len(screen.runs.refs()), len(screen.store.runs), "runs"
        pieces = [
            Piece(Clean(f"{grouped(found)} of {grouped(whole)} {word}  "), "text bold" if found else "status.warn")
        ]
        cycle = self._cycle
        offers = cycle.offers if cycle is not None else self._offers(purpose, text, len(text))
        first = cycle.at if cycle is not None else 0
        if offers:
            pieces.append(Piece(Clean(" Tab "), "key bold"))
        for i, offer in enumerate(offers[first : first + 12]):
            style = "hit" if cycle is not None and i == 0 else "text"
            pieces += [Piece(Clean(" ")), Piece(one_line(offer.text, 40), style)]
            pieces.append(Piece(Clean(f" {one_line(offer.hint, 40)} "), "dim"))
        return tuple(pieces)
