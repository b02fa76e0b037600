"""Pane 1: the runs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import msgspec

from tracetui.model import Problem, RunRef, RunSummary, Status
from tracetui.text import Clean, one_line
from tracetui.ui.line_view import LineView
from tracetui.views import runs
from tracetui.views.arrange import Arrangement, arrange
from tracetui.views.rows import Line, ListRows, Piece


class RunList(LineView):
    """The run list. Selecting a row previews the run, opening it enters it."""

    number = 1
    pane_name = "Runs"

    def __init__(self, arrangement: Arrangement) -> None:
        super().__init__(id="runs")
        self.arrangement = arrangement
        self.chosen = False
        """True once the reader moved the cursor: from then on it stays where it is."""

    def list_runs(
        self,
        summaries: Iterable[RunSummary],
        problems: Iterable[Problem],
        *,
        now: float,
        total: int,
        stands: runs.Stands = runs.as_told,
        ties: runs.Ties = runs.no_ties,
    ) -> None:
        """Show these runs in the current arrangement; `stands` tells how one stands that did not end, `ties` how one is
        tied to others.
        """
        items = arrange(summaries, problems, self.arrangement, now=now)
        everything = self.arrangement.all_columns
        rows = runs.RunRows(items, now=now, glyphs=self.look.glyphs, all_columns=everything, stands=stands, ties=ties)
        key = None if self.chosen else self._newest_failed(rows)
        self.show(rows, key=key, title=self._title(), title_right=self._shown(rows, total), heading=self._heading_for)

    def tick(self, now: float) -> None:
        """Draw anew how long runs have lasted that are still going."""
        rows = self.rows
        if isinstance(rows, runs.RunRows):
            rows.now = now
            for index in range(self.top, min(len(rows), self.top + self.page)):
                item = rows.item(index)
                if isinstance(item, RunSummary) and item.status is Status.RUNNING:
                    self.redraw(index)

    def rearrange(self, **changes: object) -> None:
        """Change the arrangement; the caller shows the rows anew."""
        self.arrangement = msgspec.structs.replace(self.arrangement, **changes)

    @property
    def ref(self) -> RunRef | None:
        """The run under the cursor."""
        key = self.cursor
        return key if isinstance(key, RunRef) else None

    @property
    def problem(self) -> Problem | None:
        """The unreadable file under the cursor."""
        if isinstance(self.rows, runs.RunRows) and self.position < len(self.rows):
            item = self.rows.item(self.position)
            return item if isinstance(item, Problem) else None
        return None

    def refs(self) -> list[RunRef]:
        """The runs in the order in which they are shown."""
        rows = self.rows
        if not isinstance(rows, runs.RunRows):
            return []
        return [item.ref for i in range(len(rows)) if isinstance(item := rows.item(i), RunSummary)]

    def nothing(self, lines: Iterable[Line]) -> None:
        """Say why there is nothing to show."""
        lines = list(lines)
        self.show(ListRows(lines, headings=range(len(lines))), title=(), heading=lambda width: (), title_right=())

    def _newest_failed(self, rows: runs.RunRows) -> Hashable | None:
        first: Hashable | None = None
        for i in range(len(rows)):
            item = rows.item(i)
            if not isinstance(item, RunSummary):
                continue
            if rows.mark(i) and item.parent is None:
                return item.ref
            first = first or item.ref
        return first

    def _title(self) -> Line:
        arrangement = self.arrangement
        words = [arrangement.sort + (" reversed" if arrangement.reverse else "")]
        if arrangement.group not in ("day", "none"):
            words.append(f"by {arrangement.group}")
        if arrangement.failures:
            words.append("failures only")
        pieces = [Piece(Clean(" · ".join(words)), "sec")]
        if arrangement.words:
            pieces += [Piece(Clean(" ")), Piece(Clean(f" f {one_line(arrangement.words, 30)} "), "hit")]
        return tuple(pieces)

    def _shown(self, rows: runs.RunRows, total: int) -> Line:
        if not self.arrangement.words and not self.arrangement.failures:
            return ()
        shown = sum(1 for i in range(len(rows)) if rows.selectable(i))
        return (Piece(Clean(f"{shown}"), "sec"), Piece(Clean(f"/{total} shown"), "dim"))

    def _heading_for(self, width: int) -> list[Line]:
        return [runs.heading(width, self.arrangement.all_columns)]
