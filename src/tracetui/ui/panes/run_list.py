"""Pane 1: the runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from tracetui.model import Problem, RunRef, RunSummary, Status
from tracetui.text import Clean, one_line
from tracetui.ui.widgets.line_view import LineView
from tracetui.views import runs
from tracetui.views.arrange import Arrangement, Going, Item, Order, arrange, told_going
from tracetui.views.rows import Line, ListRows, Piece

if TYPE_CHECKING:
    from tracetui.store.query import Columns, Context

REUNION_SECONDS: Final = 5.0
"""For how long a run that went is waited for, before the cursor belongs to the run that it stands on."""


class RunList(LineView):
    """The run list. Selecting a row previews the run, opening it enters it."""

    number = 1
    pane_name = "Runs"

    def __init__(self, arrangement: Arrangement) -> None:
        super().__init__(id="runs")
        self.arrangement = arrangement
        self.chosen = False
        """True once the reader moved the cursor: from then on it stays where it is."""
        self.complete = False
        """True once all runs are listed: those that appear later are new."""
        self._columns: Columns[RunSummary] | None = None
        self._order = Order()
        """What queries found out about the runs; there from the first query on."""
        self._arranged: Arrangement | None = None
        """The arrangement of the rows that are shown."""
        self._above: set[RunRef] = set()
        """Runs that appeared above the first row shown, and were not in view since."""
        self._lost: tuple[RunSummary, float] | None = None
        """The run that was under the cursor when its file went: it may come back, or have another name now.
        And since when, as `now`.
        """

    def arranger(
        self,
        summaries: Iterable[RunSummary],
        problems: Iterable[Problem],
        *,
        now: float,
        stands: runs.Stands = runs.as_told,
        going: Going = told_going,
        ties: runs.Ties = runs.no_ties,
        context: Context | None = None,
    ) -> Callable[[], runs.RunRows]:
        """What makes rows of these runs in the current arrangement; any thread may call it where nothing is asked for.

        `stands` tells how a run stands that did not end, `going` whether it goes on, `ties` how one is tied to others,
        `context` what a query can ask that no trace tells.
        """
        summaries, problems = list(summaries), list(problems)
        arrangement, glyphs, order = self.arrangement, self.look.glyphs, self._order
        columns = self._kept_columns() if arrangement.words else None
        everything = arrangement.all_columns

        def make() -> runs.RunRows:
            items = arrange(
                summaries, problems, arrangement, now=now, going=going, context=context, columns=columns, order=order
            )
            return runs.RunRows(items, now=now, glyphs=glyphs, all_columns=everything, stands=stands, ties=ties)

        return make

    def show_runs(self, rows: runs.RunRows, total: int) -> None:
        """Show these rows of so many runs in all."""
        before = self.rows
        key = self._found_again(rows, rows.now) if self.chosen else self._newest_failed(rows)
        self.show(rows, key=key, title=self._title(), title_right=self._shown(rows, total), heading=self._heading_for)
        if self._arranged != self.arrangement:
            self._arranged = self.arrangement
            self._above.clear()
        elif self.complete and isinstance(before, runs.RunRows):
            above = (rows.key(i) for i in range(self.top))
            self._above |= {ref for ref in above if isinstance(ref, RunRef) and before.index(ref) is None}

    def _kept_columns(self) -> Columns[RunSummary]:
        if self._columns is None:
            from tracetui.store.query import Columns

            self._columns = Columns()
        return self._columns

    def look_ahead(self, summaries: Iterable[RunSummary]) -> Iterator[None]:
        """Find out, in small steps, what the first word of a query over these runs needs."""
        from tracetui.store.query import RUN_KEYS

        return self._kept_columns().ahead("", RUN_KEYS.hay, self._order.of(summaries, self.arrangement))

    def renew(self, changed: Iterable[RunSummary]) -> None:
        """Show what these runs are now, each in the row that it has."""
        rows = self.rows
        if not isinstance(rows, runs.RunRows):
            return
        for run in changed:
            index = rows.renew(run)
            if index is not None:
                self.redraw(index)

    def move_to(self, position: int, *, center: bool = False) -> None:
        self._lost = None
        super().move_to(position, center=center)

    def _found_again(self, rows: runs.RunRows, now: float) -> RunRef | None:
        """The run that the cursor lost, if it is among these: its file was renamed, moved or made anew."""
        item = self._item
        if self._lost is not None and self._arranged == self.arrangement and now - self._lost[1] > REUNION_SECONDS:
            self._lost = None
        elif self._lost is None and isinstance(item, RunSummary) and rows.index(item.ref) is None:
            self._lost = item, now
        if self._lost is None:
            return None
        back = _same_run(self._lost[0], (rows.item(i) for i in range(len(rows))))
        self._lost = self._lost if back is None else None
        return back

    def _position(self) -> Sequence[Piece]:
        """How many runs appeared above, instead of which rows are shown."""
        rows = self.rows
        if self._above:
            self._above = {ref for ref in self._above if (at := rows.index(ref)) is not None and at < self.top}
        if not self._above:
            return super()._position()
        words = Piece(Clean(f"{len(self._above)} new above {self.look.glyphs.above} "), "status.running bold")
        return (words, Piece(Clean("g"), "key bold"))

    def _in_view(self) -> tuple[int, int, int]:
        """Runs: headings of groups are none."""
        rows = self.rows
        if not isinstance(rows, runs.RunRows):
            return super()._in_view()
        first, last = rows.above(self.top), rows.above(min(len(rows), self.top + self.page))
        return first, last - first, rows.above(len(rows))

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
        item = self._item
        return item if isinstance(item, Problem) else None

    @property
    def _item(self) -> Item | None:
        """What is under the cursor."""
        rows = self.rows
        return rows.item(self.position) if isinstance(rows, runs.RunRows) and self.position < len(rows) else None

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
        shown = sum(1 for i in range(len(rows)) if isinstance(rows.item(i), RunSummary))
        return (Piece(Clean(f"{shown}"), "sec"), Piece(Clean(f"/{total} shown"), "dim"))

    def _heading_for(self, width: int) -> list[Line]:
        name = self.rows.longest_name if isinstance(self.rows, runs.RunRows) else 0
        return [runs.heading(width, self.arrangement.all_columns, name=name)]


def _same_run(run: RunSummary, items: Iterable[Item]) -> RunRef | None:
    """The run that has the same place, or the same id in another file."""
    others = (item for item in items if isinstance(item, RunSummary))
    return next((one.ref for one in others if one.ref == run.ref or _name(one) == _name(run)), None)


def _name(run: RunSummary) -> tuple[str, str]:
    return run.id, run.ref.format
