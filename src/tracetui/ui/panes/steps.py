"""Pane 2: what a run did — as a timeline or as a tree, two views of the same spans that share the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracetui.model import Problem, Run, Span
from tracetui.text import Clean, clean, grouped, one_line, wrap
from tracetui.ui.line_view import LineView
from tracetui.views import headline, spans, walk
from tracetui.views.rows import Line, ListRows, Piece


class Steps(LineView):
    """The spans of the run that is open or previewed."""

    number = 2
    pane_name = "Steps"

    def __init__(self) -> None:
        super().__init__(id="steps")
        self.run: Run | None = None
        self.as_tree = False
        self.headline = True
        """Whether two lines above the steps say how the run ended (where no other part of the screen does)."""
        self.folded: frozenset[str] = frozenset()

    def show_run(self, run: Run, *, now: float, span: str | None = None) -> None:
        """Show a run, or a newer state of it; the cursor goes to `span`, else stays, else goes to what matters."""
        same = self.run is not None and self.run.summary.ref == run.summary.ref
        if not same:
            self.folded = frozenset()
        self.run = run
        rows = self._rows_of(run)
        key = span or (None if same and self.cursor is not None else walk.starting_span(run))
        self.pane_name = "Spans" if self.as_tree else "Steps"
        self.show(
            rows,
            key=key,
            title=self._title(run),
            title_right=(),
            heading=self._heading_of(run, rows, now),
            keep=same,
        )

    def _rows_of(self, run: Run) -> spans.SpanRows:
        """The rows of a run; one that is shown already is not measured again."""
        shown = self.rows
        if isinstance(shown, spans.SpanRows) and shown.run is run and shown.tree == self.as_tree:
            return shown.refold(self.folded)
        return spans.SpanRows(run, tree=self.as_tree, folded=self.folded, glyphs=self.look.glyphs)

    def nothing(self, lines: Sequence[Line]) -> None:
        """Say why there is no run to show."""
        self.run = None
        self.pane_name = "Steps"
        self.show(
            ListRows(lines, headings=range(len(lines))), title=(), heading=lambda width: (), title_right=(), keep=False
        )

    @property
    def span(self) -> Span | None:
        """The span under the cursor."""
        key = self.cursor
        return self.run.span(key) if self.run is not None and isinstance(key, str) else None

    def set_folded(self, folded: frozenset[str], now: float) -> None:
        """Fold exactly these spans."""
        if self.run is not None:
            self.folded = folded
            self.show_run(self.run, now=now, span=self.cursor if isinstance(self.cursor, str) else None)

    @property
    def wanted_height(self) -> int:
        """Rows that the whole run would take, with title and heading."""
        return len(self.rows) + 1 + len(self.heading)

    def _title(self, run: Run) -> Line:
        ident = clean(run.summary.id, 60)
        pieces = [Piece(Clean(ident[:8] if len(ident) == 36 else ident), "sec")]
        if self.as_tree:
            pieces.append(Piece(Clean(" as a tree"), "dim"))
        if run.problems:
            word = "note" if len(run.problems) == 1 else "notes"
            pieces.append(Piece(Clean(f"  ! {len(run.problems)} {word}"), "status.warn"))
        if not run.complete:
            pieces.append(Piece(Clean(f"  reading … {grouped(len(run.spans))} spans so far"), "status.running"))
        return tuple(pieces)

    def _heading_of(self, run: Run, rows: spans.SpanRows, now: float) -> Callable[[int], list[Line]]:
        look = self.look

        def lines(width: int) -> list[Line]:
            above: list[Line] = []
            if self.headline:
                above = [*headline.heading(run, width, now=now, zone=look.zone, glyphs=look.glyphs), ()]
                if width > 90 and (whole := rows.overview(width)):
                    above += [whole, ()]
            return [*above, rows.header(width)] if len(rows) else above

        return lines


def broken(problem: Problem, width: int, note: Clean) -> list[Line]:
    """What is shown in place of a run that cannot be read."""
    where = f"{problem.reason}, {problem.where}" if problem.where else problem.reason
    lines: list[Line] = [
        (),
        (Piece(note, "status.warn bold"), Piece(Clean(" ")), Piece(one_line(where, 300), "status.warn")),
    ]
    lines += [(Piece(part, "sec"),) for part in wrap(clean(problem.path), max(10, width - 4))]
    hint = (Piece(Clean("tracetui doctor"), "key bold"), Piece(Clean(" says what each format made of it"), "sec"))
    return [*lines, (), hint]
