"""What a search of all runs found; Enter opens the run at the place, with the words in view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracetui.live.mail import Mail
from tracetui.model import RunRef
from tracetui.text import Clean, grouped
from tracetui.ui.commands import HITS, Command
from tracetui.ui.controllers.surveying import Search
from tracetui.ui.panes.detail import Sought
from tracetui.ui.screens.single import SingleScreen
from tracetui.ui.widgets.line_view import LineView
from tracetui.views import states
from tracetui.views.hits import Hit, HitRows
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, ListRows, Piece

TABS: Final = {
    "error": ("error", "output"),
    "input": ("input", "messages"),
    "output": ("output", "messages"),
    "message": ("messages", "input", "output"),
    "attribute": ("attributes", "run"),
}
"""Where a kind of field is shown, by tabs of the detail."""
MOST_SOUGHT: Final = 80
"""Characters of a match that the detail searches for."""


class Hits(LineView):
    """One row a hit, below its run."""

    number = 1
    pane_name = "Hits"


class HitsScreen(SingleScreen):
    """Shows a `Search`, which goes on whether it is shown or not."""

    def __init__(self, search: Search, commands: Sequence[Command]) -> None:
        super().__init__(HITS, Hits(id="hits"), commands)
        self._search = search
        self.list.position = search.cursor or 0

    def receive(self, mail: Mail) -> None:
        if mail.survey is not None and mail.survey.job is self._search.job:
            self.show_rows()

    def show_rows(self) -> None:
        survey = self._search.survey
        if survey is not None and survey.finished and not self._search.rows.hits:
            lines = states.no_hits(self._search.words, survey.done)
            self.list.show(ListRows(lines, headings=range(len(lines))))
        elif self.list.rows is not self._search.rows:
            self.list.show(self._search.rows, key=self._search.cursor)
        else:
            self.list.show(self._search.rows)
        self.refresh_frame()

    @property
    def _hit(self) -> Hit | None:
        rows = self.list.rows
        return rows.hit(self.list.position) if isinstance(rows, HitRows) else None

    @property
    def ref(self) -> RunRef | None:
        return self._hit.ref if self._hit is not None else None

    def opened(self) -> None:
        hit = self._hit
        if hit is None:
            return
        self._search.cursor = self.list.position
        needle = (hit.match.split("\n", 1)[0] or hit.match)[:MOST_SOUGHT]
        sought = Sought(hit.ref, hit.span, needle, TABS[hit.kind.value], hit.before, hit.after)
        self.app.main.visit(hit.ref, hit.span, sought=sought)

    def again(self) -> HitsScreen:
        return HitsScreen(self._search, self.commands)

    def reread(self) -> None:
        if self.leave():
            self.app.main.surveying.search = None
            self.app.main.surveying.search_for(self._search.words)

    def left(self) -> None:
        self.app.main.surveying.stop()

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("search  "), "text bold"), Piece(one_line(self._search.words, 80), "hit")), ()

    def summary(self) -> Line:
        search, survey = self._search, self._search.survey
        rows = search.rows
        hits = f"{grouped(rows.hits)} hit{'s' if rows.hits != 1 else ''}"
        pieces = [Piece(Clean(f"{hits} in {grouped(rows.runs)} of {grouped(search.runs)} runs"), "text bold")]
        if survey is None or not survey.finished:
            done = f"  ·  searching, {grouped(survey.done if survey else 0)} of {grouped(search.job.total)} files"
            pieces.append(Piece(Clean(done), "status.running"))
        elif survey.lost:
            pieces.append(Piece(Clean(f"  ·  {one_line(survey.lost, 100)}"), "status.warn"))
        elif survey.more:
            pieces.append(Piece(Clean("  ·  there are more; a longer text finds fewer"), "status.warn"))
        if search.problems:
            first = search.problems[0]
            said = f"  ·  {grouped(len(search.problems))} unreadable: {first.reason}"
            pieces.append(Piece(one_line(said, 160), "status.warn"))
        return tuple(pieces)
