"""The run list as rows: one line per run, group heading or unreadable file."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from os.path import basename
from typing import Final

from tracetui import text
from tracetui.analysis import spending
from tracetui.analysis.arrangement import Item, parents
from tracetui.analysis.histogram import Histogram, Start
from tracetui.analysis.liveness import recorded_liveness
from tracetui.masking import clean, one_line
from tracetui.model import Problem, RunRef, RunSummary
from tracetui.store.facts import haystack, run_time, start_of
from tracetui.store.relations import has_end
from tracetui.store.store import Overview, overview_of
from tracetui.text import Clean
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.labels import StateOf, cost_text, spending_text, standing_of
from tracetui.views.list.columns import (
    COLUMNS,
    TITLE,
    TITLES_FIRST,
    USUAL_FACTS,
    USUAL_NAME,
    Column,
    Facts,
    chosen_width,
    fit_columns,
    heading,
)
from tracetui.views.list.result import MessageOf, RelationshipOf, RunRow, no_message, no_relationship
from tracetui.views.rows import Line, Piece, column, fill, fit, width_of


class RunRows:
    """Rows of the run list at one moment; see `tracetui.views.rows.Rows`."""

    def __init__(
        self,
        items: list[Item],
        *,
        now: float,
        glyphs: Glyphs = UNICODE,
        chosen: Sequence[str] = (),
        sorted_by: str = "",
        state_of: StateOf = recorded_liveness,
        relationship_of: RelationshipOf = no_relationship,
        message_of: MessageOf = no_message,
        shows_state: bool = True,
        time_of: Callable[[RunSummary], float] = run_time,
    ) -> None:
        """`message_of`: the last message of a run. `shows_state`: the result begins with the state, unless the sign
        has all of it. `time_of`: the time since which the age counts.
        """
        self._items = items
        self._state_of = state_of
        self._relationship_of = relationship_of
        self._message_of, self._shows_state, self._time_of = message_of, shows_state, time_of
        self.now = now
        self._glyphs = glyphs
        self._chosen, self._heading_sort = tuple(chosen), sorted_by
        self._columns: tuple[int, list[tuple[str, int]]] | None = None
        """Cache of `columns`, by the width."""
        self._index: dict[Hashable, int] | None = None
        self._histogram: tuple[int, Histogram | None] | None = None
        """By the number of bars."""
        self._sums: dict[tuple[int, int], spending.Spending] = {}
        """By the first and last row."""

    def prepare(self, rest: Callable[[], None] = lambda: None) -> None:
        """Compute everything that reads all rows. Calls `rest` between runs: their prices take 0.1 ms each."""
        self.index("")
        self.longest_name, self._headings, self.costed, self._facts, self.starts  # noqa: B018 - they are remembered
        self._refs_with_parent, self.runs  # noqa: B018
        if self.costed:
            for start, end in ((0, len(self._items)), *pairwise([*self._headings, len(self._items)])):
                self._sums[start, end] = self._add_up(start, end, rest)

    def __len__(self) -> int:
        return len(self._items)

    def above(self, index: int) -> int:
        """Number of rows above this one, without group headings."""
        return index - bisect_left(self._headings, index)

    @cached_property
    def runs(self) -> int:
        """Number of runs."""
        return sum(isinstance(item, RunSummary) for item in self._items)

    @cached_property
    def starts(self) -> Sequence[Start]:
        """The starts of the dated top-level runs."""
        return [
            Start(at, row, item.failed)
            for row, item in enumerate(self._items)
            if isinstance(item, RunSummary) and item.shared.parent is None and (at := start_of(item)) is not None
        ]

    def histogram(self, most: int) -> Histogram | None:
        """When the runs started, in at most so many bars; None without dated runs. Made once for each width."""
        if self._histogram is None or self._histogram[0] != most:
            self._histogram = most, Histogram(self.starts, most) if self.starts else None
        return self._histogram[1]

    def common_error(self, rows: Sequence[int]) -> str:
        """``most TimeoutError ×8``: the most frequent error type of the first of these runs; empty if all differ."""
        items = (self._items[row] for row in rows[:_SAMPLE])
        types = Counter(
            item.first_error.type for item in items if isinstance(item, RunSummary) and item.first_error is not None
        )
        name, count = next(iter(types.most_common(1)), (None, 0))
        return f"most {one_line(name, 60)} {self._glyphs.times}{count}" if name and count > 1 else ""

    @cached_property
    def overview(self) -> Overview:
        """Counts of these runs."""
        return overview_of(item for item in self._items if isinstance(item, RunSummary))

    @cached_property
    def failed(self) -> Sequence[RunRef]:
        """The failed runs, in their order."""
        return [item.ref for item in self._items if isinstance(item, RunSummary) and item.failed]

    @cached_property
    def unended(self) -> Sequence[RunSummary]:
        """The top-level runs without a recorded end."""
        runs = (item for item in self._items if isinstance(item, RunSummary))
        return [run for run in runs if run.parent is None and not has_end(run)]

    @cached_property
    def _headings(self) -> list[int]:
        return [i for i, item in enumerate(self._items) if isinstance(item, tuple)]

    def item(self, index: int) -> Item:
        """The run, the problem, or the (label, count) of a group heading."""
        return self._items[index]

    def key(self, index: int) -> Hashable:
        item = self._items[index]
        return item.ref if isinstance(item, RunSummary) else item.path if isinstance(item, Problem) else item[0]

    def index(self, key: Hashable) -> int | None:
        if self._index is None:
            items = self._items
            self._index = {item.ref if isinstance(item, RunSummary) else self.key(i): i for i, item in enumerate(items)}
        return self._index.get(key)

    def renew(self, run: RunSummary) -> Sequence[int]:
        """Replace a run in its row; return the rows that changed: its own, if it has one, and that with its sum."""
        index = self.index(run.ref)
        before = self._items[index] if index is not None else None
        if index is None or not isinstance(before, RunSummary):
            return ()
        self._items[index] = run
        if _counts_differ(before, run):
            self._histogram = None
            for name in ("overview", "failed", "unended", "starts"):
                self.__dict__.pop(name, None)
        if before.usage == run.usage:
            return (index,)
        earlier, spent = spending.of_run(before), spending.of_run(run)
        if (earlier.usd is None) != (spent.usd is None):
            self.__dict__.pop("costed", None)
        heading = bisect_left(self._headings, index) - 1
        headings = self._headings[heading : heading + 1] if heading >= 0 else []
        for place in {(0, len(self._items)), *map(self._group, headings)}:
            if place in self._sums:
                self._sums[place] = self._sums[place].changed(earlier, spent)
        return (index, *headings)

    def selectable(self, index: int) -> bool:
        return not isinstance(self._items[index], tuple)

    def mark(self, index: int) -> str | None:
        item = self._items[index]
        return "status.error" if isinstance(item, RunSummary) and item.failed else None

    def plain(self, index: int) -> str:
        item = self._items[index]
        if isinstance(item, RunSummary):
            return " ".join(haystack(item))
        return f"{item.path} {item.reason}" if isinstance(item, Problem) else item[0]

    def line(self, index: int, width: int) -> Line:
        item = self._items[index]
        if isinstance(item, tuple):
            return group_line(item, width, self._glyphs, self._group_sum(index))
        columns = self.columns(width)
        if isinstance(item, Problem):
            return _problem_line(item, columns, width, self._glyphs)
        pieces: list[Piece] = []
        for cell, (_, size) in zip(self._cells(item, columns), columns, strict=True):
            pieces.extend(fill(cell, size))
            pieces.append(Piece(Clean(" ")))
        return tuple(pieces[:-1])

    def columns(self, width: int) -> list[tuple[str, int]]:
        """(column, cells) of these rows; see `fit_columns`."""
        if self._columns is None or self._columns[0] != width:
            columns = fit_columns(width, self._chosen, name=self.longest_name, facts=self._facts)
            self._columns = width, columns
        return self._columns[1]

    def choose(self, columns: Sequence[str]) -> None:
        """Show these columns, or (none) those that the width suggests."""
        self._chosen, self._columns = tuple(columns), None

    @property
    def least_width(self) -> int:
        """Cells of a list beside a run: the list of a home shows time and steps beside its titles."""
        return HOME_WIDTH if TITLE in self._facts else NARROWEST

    @property
    def chosen_width(self) -> int:
        """Cells in which every chosen column fits, and a result can be read; 0 if none were chosen."""
        return chosen_width(self._chosen, self.longest_name) if self._chosen else 0

    def wanted_width(self, first: int, count: int) -> int:
        """Cells at which the results of these rows are not cut, a multiple of 8; at most `WIDEST`."""
        visible = [item for item in self._items[first : first + count] if not isinstance(item, tuple)]
        if any(isinstance(item, Problem) for item in visible):
            return WIDEST
        result = max(
            (
                width_of(cell)
                for run in visible
                if isinstance(run, RunSummary)
                for cell in self._cells(run, [("result", WIDEST)])
            ),
            default=0,
        )
        widths = range(NARROWEST, WIDEST, 8)
        return next((width for width in widths if dict(self.columns(width)).get("result", result) >= result), WIDEST)

    def heading(self, width: int) -> Line:
        """The column headings."""
        return heading(self.columns(width), self._heading_sort)

    @cached_property
    def _facts(self) -> Facts:
        """What the runs have. A column that is sorted by stays."""
        if not any(self._first_runs()):
            return USUAL_FACTS
        has_title = any(isinstance(item, RunSummary) and item.title for item in self._items)
        columns = {
            name
            for name, column in COLUMNS.items()
            if self._heading_sort == column.sort != "" or self._is_filled(column)
        }
        return columns | {TITLE} if has_title else columns

    def _is_filled(self, column: Column) -> bool:
        """Whether enough of the first runs fill a column: one, but costs take room that only many are worth."""
        if column.name != "cost" or not self.costed:
            return any(map(column.has_value, self._first_runs()))
        runs = [bool(column.has_value(run)) for run in self._first_runs()]
        return sum(runs) >= len(runs) * _COSTED_SHARE

    @cached_property
    def longest_name(self) -> int:
        """The 90th percentile of the name length of the first rows, in characters; the longest one if all are short."""
        runs = (item for item in islice(self._items, _SAMPLE) if isinstance(item, RunSummary))
        lengths = sorted(map(self._name_length, runs))
        return max(lengths[len(lengths) * 9 // 10], min(lengths[-1], USUAL_NAME)) if lengths else 0

    @property
    def spent(self) -> spending.Spending:
        """What all runs of the list used together; nothing for a long list that wasn't prepared."""
        return self._sum(0, len(self._items))

    @cached_property
    def costed(self) -> bool:
        """Whether any of the first runs has a cost, recorded or estimated."""
        return any(spending.of_run(run).usd is not None for run in self._first_runs())

    def _first_runs(self) -> Iterator[RunSummary]:
        return (item for item in islice(self._items, _SAMPLE) if isinstance(item, RunSummary))

    def _group_sum(self, index: int) -> spending.Spending:
        """What the runs of a group used, by the row of its heading."""
        return self._sum(*self._group(index))

    def _group(self, index: int) -> tuple[int, int]:
        """The rows of a group, by that of its heading."""
        following = bisect_left(self._headings, index) + 1
        return index, self._headings[following] if following < len(self._headings) else len(self._items)

    def _sum(self, start: int, end: int) -> spending.Spending:
        """The sum of these rows. Long stretches are summed by `prepare` only: keys wait for nothing."""
        if (start, end) not in self._sums:
            if end - start > _SAMPLE:
                return spending.NOTHING
            self._sums[start, end] = self._add_up(start, end)
        return self._sums[start, end]

    def _add_up(self, start: int, end: int, rest: Callable[[], None] = lambda: None) -> spending.Spending:
        def runs() -> Iterator[RunSummary]:
            for item in self._items[start:end]:
                if isinstance(item, RunSummary):
                    yield item
                    rest()

        return spending.total(runs())

    def _name_length(self, run: RunSummary) -> int:
        if not run.label:
            return len(run.name or run.id)
        return len(run.label) + (2 if run.ref in self._refs_with_parent else len(run.name) + bool(run.name))

    @cached_property
    def _refs_with_parent(self) -> Collection[RunRef]:
        """Runs nested below their parent."""
        return parents([item for item in self._items if isinstance(item, RunSummary)])

    def _cells(self, run: RunSummary, columns: Iterable[tuple[str, int]]) -> Iterator[Sequence[Piece]]:
        """The cells of a run in these columns."""
        state, glyphs = self._state_of(run), self._glyphs
        row = RunRow(
            run,
            state,
            standing_of(run, state, self.now, glyphs),
            self._relationship_of(run, glyphs),
            run.ref in self._refs_with_parent,
            self.now,
            self._time_of(run),
            glyphs,
            self._shows_state,
            self._message_of,
        )
        for name, size in columns:
            yield COLUMNS[name].draw(row, size)


def _counts_differ(before: RunSummary, run: RunSummary) -> bool:
    return (before.status, before.outcome, before.failed) != (run.status, run.outcome, run.failed)


NARROWEST, WIDEST = 48, 96
"""Cells of a list beside a run."""
_SAMPLE: Final = 2_000
"""Maximum rows to measure names of."""
_COSTED_SHARE: Final = 0.1
"""Least share of runs with a cost for its column: those of a home may all be copied but for a few."""
HOME_WIDTH: Final = 60
"""Cells of the list of a home that has them."""
_SUMS_FROM: Final = 40
"""Cells of a list with the cost of each group on its heading; with `TITLES_FIRST`, tokens too."""


def group_line(item: tuple[str, int], width: int, glyphs: Glyphs, spent: spending.Spending | None = None) -> Line:
    """The heading of a group: label, rule, what its runs spent where there is room, and their number."""
    amount = ""
    if spent is not None:
        amount = spending_text(spent) if width >= TITLES_FIRST else cost_text(spent) if spent.usd else ""
    right = f"{amount}  {item[1]}" if amount and width >= _SUMS_FROM else str(item[1])
    label = text.truncate_middle(clean(item[0], 200), max(8, width - len(right) - 4))  # keep both ends of a path
    rule = glyphs.rule * max(0, width - text.cells(label) - len(right) - 3)
    return (Piece(label, "dim"), Piece(Clean(f" {rule} "), "line"), Piece(Clean(right), "dim"))


def _problem_line(problem: Problem, columns: list[tuple[str, int]], width: int, glyphs: Glyphs) -> Line:
    name = column(clean(basename(problem.path), 200), columns[1][1], "status.warn")
    place = f"{problem.reason}, {problem.where}" if problem.where else problem.reason
    note = Piece(one_line(f"unreadable: {place}", 300), "status.warn")
    return tuple(fit([Piece(glyphs.note, "status.warn bold"), Piece(Clean(" ")), name, Piece(Clean(" ")), note], width))
