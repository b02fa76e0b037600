"""How often, how long and how many tokens: by tool, model, node, agent or operation."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on

from tracetui.live.mail import Mail
from tracetui.live.surveying.jobs import Counted
from tracetui.live.surveying.surveyed import Job, Survey
from tracetui.store.statistics import By
from tracetui.text import Clean, grouped
from tracetui.ui.commands import STATISTICS, Command
from tracetui.ui.screens.single import SingleScreen
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.statistics import StatisticRows, heading


class Statistics(LineView):
    """One row a name."""

    number = 1
    pane_name = "Statistics"


class StatisticsScreen(SingleScreen):
    """``<`` and ``>`` choose what the rows are. Enter shows the runs that have the name."""

    def __init__(self, job: Job, of: str, commands: Sequence[Command]) -> None:
        super().__init__(STATISTICS, Statistics(id="statistics"), commands)
        self._job, self._of = job, of
        self._survey: Survey | None = None
        self.by = By.TOOL
        self._chosen = False
        """Whether the reader chose what the rows are."""
        self._moved = False
        """Whether the reader moved the cursor: until then it stays on the first row, whatever that becomes."""

    @property
    def doers(self) -> Sequence[object]:
        return *super().doers, self

    def receive(self, mail: Mail) -> None:
        if mail.survey is not None and mail.survey.job is self._job:
            self._survey = mail.survey
            self.show_rows()

    @property
    def _counted(self) -> Counted | None:
        return self._survey.result if self._survey is not None else None

    def show_rows(self) -> None:
        counted = self._counted
        rows = counted.rows if counted is not None else {}
        if not self._chosen:
            self.by = next((by for by in By if rows.get(by)), self.by)
        by = self.by.value
        if rows.get(self.by):
            shown = StatisticRows(rows[self.by], glyphs=self.app.look.glyphs)
            key = None if self._moved else shown.key(0)
            self.list.show(
                shown, key=key, title_right=self._tabs(), heading=lambda width: [heading(width, by, shown.by_tokens)]
            )
        else:
            words = f"no {by} is told of" if self._survey is not None and self._survey.finished else "counting …"
            line: Line = (Piece(Clean(words), "dim"),)
            self.list.show(ListRows([line], headings=[0]), title_right=self._tabs(), heading=lambda width: [])
        self.refresh_frame()

    def _tabs(self) -> Line:
        pieces = []
        for by in By:
            pieces += [Piece(Clean(by.value), "accent bold underline" if by is self.by else "sec"), Piece(Clean("  "))]
        return tuple(pieces[:-1])

    def do_tab(self, argument: str) -> None:
        """Show the next or previous kind of rows."""
        order = list(By)
        self.by = order[(order.index(self.by) + int(argument)) % len(order)]
        self._chosen, self._moved = True, False
        self.show_rows()

    @on(LineView.Moved)
    def _row_moved(self) -> None:
        self._moved = True

    def opened(self) -> None:
        """Filter the runs by what is under the cursor, where the query language knows it."""
        name = self.list.cursor
        if not name or self.by is By.OPERATION:
            self.say("no filter asks for that: choose a tool, model, node or agent that has a name", "status.warn")
        elif isinstance(name, str) and self.leave():
            self.app.back_to_main()
            self.app.main.filtering.ask_for(self.by.value, name)

    def left(self) -> None:
        self.app.main.surveying.stop()

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("statistics  "), "text bold"), Piece(one_line(f"of {self._of}", 100), "sec")), ()

    def summary(self) -> Line:
        counted, survey = self._counted, self._survey
        done = counted.runs if counted is not None else 0
        pieces = [Piece(Clean(f"{grouped(done)} run{'s' if done != 1 else ''}, by {self.by.value}"), "text bold")]
        if survey is None or not survey.finished:
            pieces.append(
                Piece(Clean(f"  ·  reading, {grouped(done)} of {grouped(self._job.total)}"), "status.running")
            )
        elif survey.lost:
            pieces.append(Piece(Clean(f"  ·  {one_line(survey.lost, 100)}"), "status.warn"))
        pieces += [Piece(Clean("  ·  ")), Piece(Clean("< >"), "key bold"), Piece(Clean(" by something else"), "sec")]
        return tuple(pieces)
