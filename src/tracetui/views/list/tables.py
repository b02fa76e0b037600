"""The smaller lists as rows: query facets, search hits, call statistics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from tracetui.analysis.effects.actions import Action
from tracetui.analysis.statistics import Row
from tracetui.masking import clean, mask, one_line
from tracetui.model import RunRef, RunSummary, Span
from tracetui.store.query.complete import Facet
from tracetui.text import Clean, cells, cost, count, duration, grouped, tokens, truncate, truncate_middle
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.labels import StandingOf, prompt_text, run_label, short_id, start_label
from tracetui.views.rows import Line, Piece, Rows, column, fill, fit, width_of
from tracetui.views.timeline.work import step_pieces


class Choice(NamedTuple):
    """A query term, and the number of runs that match it."""

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
            choices: dict[str, Choice] = {}
            for value, runs in facet.values:
                term = facet.term(value if value is None else mask(value))
                same = choices.get(term)
                choices[term] = Choice(facet.key, term, value, runs + (same.runs if same else 0))
            self._items += choices.values()
        self._index = {self.key(i): i for i in range(len(self._items))}
        names = (self._name(item) for item in self._items if isinstance(item, Choice))
        self._longest = max(map(cells, names), default=0)

    def __len__(self) -> int:
        return len(self._items)

    @staticmethod
    def _name(choice: Choice) -> Clean:
        return one_line(choice.value, 200) if choice.value is not None else Clean("none")

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
        is_picked = item.term in self._picked
        sign = Piece(self._glyphs.ok if is_picked else Clean(" "), "accent bold")
        style = "dim" if item.value is None else "accent bold" if is_picked else "text"
        room = min(self._longest, max(10, width - 12))
        spare = width - room - 12
        bar = amount(item.runs, self._total, min(spare, _MAX_BAR), "bar.model", glyphs=self._glyphs)
        name = [Piece(Clean(" ")), sign, Piece(Clean(" ")), *fill([Piece(self._name(item), style)], room)]
        count = column(grouped(item.runs), 7, "sec", right=True)
        return tuple(fit([*name, count, *([Piece(Clean("  ")), *bar] if spare >= _MIN_BAR else [])], width))


def picked_query(picked: Sequence[Choice]) -> str:
    """The query for the picked values: any value per key, all keys."""
    by_key: dict[str, list[str]] = {}
    for choice in picked:
        by_key.setdefault(choice.key, []).append(choice.term)
    parts = [terms[0] if len(terms) == 1 else f"({' or '.join(terms)})" for terms in by_key.values()]
    return " ".join(parts)


_MIN_PATH: Final = 12
"""Minimum cells of a path."""


class Hit(Protocol):
    """A search hit (`tracetui.analysis.search.Hit`)."""

    @property
    def ref(self) -> RunRef: ...
    @property
    def span(self) -> str | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def name(self) -> str: ...
    @property
    def action(self) -> tuple[Span, Action] | None: ...
    @property
    def kind(self) -> StrEnum: ...
    @property
    def path(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def match(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def address(self) -> str: ...


def hit_label(hit: Hit, room: int, glyphs: Glyphs) -> list[Piece]:
    """The step of a hit in `room` cells, as the story has it."""
    if hit.action is None:
        return [Piece(one_line(hit.name, 40) or Clean("run"), "text")]
    return fit(step_pieces(*hit.action, room, glyphs), room)


StartOf = Callable[[RunSummary], Clean]
"""Labels the start of a run: date and age."""


class HitRows(Rows):
    """See `tracetui.views.rows.Rows`. Append-only: the key of a row is its index."""

    def __init__(
        self,
        summary: Callable[[RunRef], RunSummary | None],
        *,
        glyphs: Glyphs = UNICODE,
        start_of: StartOf = start_label,
        standing: StandingOf,
    ) -> None:
        """`start_of` labels the start of a run, `standing` finds its displayed state."""
        self._summary, self._glyphs, self._start_of, self._standing = summary, glyphs, start_of, standing
        self._items: list[Hit | RunRef] = []
        self._headings: list[int] = []
        self.hits = 0

    def extend(self, hits: Iterable[Hit]) -> None:
        """Append hits."""
        for hit in hits:
            last = self._items[-1] if self._items else None
            if (last if isinstance(last, RunRef) or last is None else last.ref) != hit.ref:
                self._headings.append(len(self._items))
                self._items.append(hit.ref)
            self._items.append(hit)
            self.hits += 1

    @property
    def runs(self) -> int:
        """Number of runs with hits."""
        return len(self._headings)

    def above(self, index: int) -> int:
        """Number of hits above this row."""
        return index - bisect_left(self._headings, index)

    def hit(self, index: int) -> Hit | None:
        """The hit of a row; None for a run heading."""
        item = self._items[index] if 0 <= index < len(self._items) else None
        return None if isinstance(item, RunRef) else item

    def __len__(self) -> int:
        return len(self._items)

    def key(self, index: int) -> Hashable:
        return index

    def index(self, key: Hashable) -> int | None:
        return key if isinstance(key, int) and key < len(self._items) else None

    def selectable(self, index: int) -> bool:
        return not isinstance(self._items[index], RunRef)

    def plain(self, index: int) -> str:
        item = self._items[index]
        if isinstance(item, RunRef):
            return item.address
        done = f" {item.action[1].verb} {item.action[1].object}" if item.action is not None else ""
        return f"{item.name}{done} {item.path} {item.before}{item.match}{item.after}"

    def line(self, index: int, width: int) -> Line:
        item = self._items[index]
        if isinstance(item, RunRef):
            return tuple(fit(self._run(item), width))
        above = self._items[index - 1]
        repeats = item.span is not None and not isinstance(above, RunRef) and above.span == item.span
        return tuple(fit(self._hit_line(item, width, repeats=repeats), width))

    def _run(self, ref: RunRef) -> Line:
        run = self._summary(ref)
        if run is None:
            return (Piece(clean(ref.address, 300), "sec"),)
        standing = self._standing(run, self._glyphs)
        return (
            Piece(standing.sign, standing.style),
            Piece(Clean(" ")),
            Piece(truncate(run_label(run), 60), "text bold"),
            Piece(Clean(f" {short_id(run.id)}"), "sec"),
            Piece(Clean(f"  {self._start_of(run)}"), "sec"),
            Piece(Clean(f"  {prompt_text(run, 120)}"), "dim"),
        )

    def _hit_line(self, hit: Hit, width: int, *, repeats: bool) -> Line:
        """The step as a row of the story, if the row above doesn't show it, then where it matches."""
        step = f"{hit.step}" if hit.step is not None and not repeats else ""
        label = [] if repeats else hit_label(hit, width // 3, self._glyphs)
        path = truncate_middle(one_line(hit.path, 120), max(_MIN_PATH, width // 5))  # both ends are distinctive
        head: Line = (
            Piece(Clean(f"{step:>6} "), "dim"),
            *fill(label, width // 3),
            Piece(Clean(f"  {path}  "), "dim"),
        )
        room = max(0, width - width_of(head) - len(hit.match))
        before = one_line(hit.before, 200)
        if len(before) > room // 2:
            before = Clean(f"{self._glyphs.cut}{before[len(before) - room // 2 :]}") if room > 1 else Clean("")
        gap = Clean(" ") if before and hit.before[-1:].isspace() else Clean("")
        lead = Clean(" ") if hit.after[:1].isspace() else Clean("")
        return (
            *head,
            Piece(Clean(before + gap), "sec"),
            Piece(one_line(hit.match, 200), "hit"),
            Piece(Clean(lead + one_line(hit.after, 300)), "sec"),
        )


STATISTIC_SORTS: Final[Mapping[str, Callable[[Row], float | str]]] = {
    "total": lambda row: -(row.total_ms or 0.0),
    "errors": lambda row: -row.errors,
    "calls": lambda row: -row.count,
    "tokens": lambda row: -(row.usage.all_tokens or 0),
    "cost": lambda row: -(row.cost_usd or 0.0),
    "name": lambda row: row.name.lower(),
}
"""Sort orders of statistics after the usual one, by the heading of their column."""


class _Column(NamedTuple):
    """A column of the statistics."""

    name: str
    leaves: int
    """Order in which columns are dropped where not all fit, 1 first; 0: never."""
    cell: Callable[[Row, Glyphs], tuple[Clean, str]]
    """Its text and style."""
    cells: int = 8
    rated: bool = False
    """Only where any run has an outcome."""


_COLUMNS: Final = (
    _Column("calls", 0, lambda row, glyphs: (count(row.count), "text")),
    _Column(
        "errors", 12, lambda row, glyphs: (count(row.errors), "status.error") if row.errors else (glyphs.zero, "dim")
    ),
    _Column("runs", 9, lambda row, glyphs: (count(row.runs), "sec")),
    _Column("passed", 7, lambda row, glyphs: (count(row.passed), "sec"), rated=True),
    _Column("failed", 8, lambda row, glyphs: (count(row.failed), "sec"), rated=True),
    _Column("rate", 10, lambda row, glyphs: (_rate(row), "text"), rated=True),
    _Column("p50", 4, lambda row, glyphs: (duration(row.p50_ms), "sec")),
    _Column("p95", 3, lambda row, glyphs: (duration(row.p95_ms), "sec")),
    _Column("total", 11, lambda row, glyphs: (duration(row.total_ms), "text")),
    _Column("tokens", 5, lambda row, glyphs: (tokens(row.usage.all_tokens), "sec")),
    _Column(
        "cost", 6, lambda row, glyphs: (cost(row.cost_usd, estimated=row.estimated_cost_usd is not None), "sec"),
        cells=11,  # ~$1234.56
    ),
    _Column("cached", 2, lambda row, glyphs: (tokens(row.usage.cache_read_tokens), "dim")),
    _Column("written", 1, lambda row, glyphs: (tokens(row.usage.cache_creation_tokens), "dim")),
)  # fmt: skip


def _rate(row: Row) -> Clean:
    return Clean("—" if row.pass_rate is None else f"{row.pass_rate:.0%}")


_MIN_NAME, _MAX_NAME, _MIN_BAR, _MAX_BAR = 16, 60, 20, 60
"""Cells of a name and of a bar, where there is room for bars."""


class StatisticRows:
    """See `tracetui.views.rows.Rows`. The key of a row is its name."""

    def __init__(
        self, rows: Sequence[Row], *, total: Row | None = None, sorted_by: str = "", glyphs: Glyphs = UNICODE
    ) -> None:
        """`total`: a last row for all of them, without a cursor. `sorted_by`: one of `STATISTIC_SORTS`."""
        self._rows: list[Row] = [*rows, *((total,) if total is not None and len(rows) > 1 else ())]
        self._sorted_by, self._glyphs = sorted_by, glyphs
        self._total = len(rows) if len(self._rows) > len(rows) else None
        self._index = {row.name: i for i, row in enumerate(rows)}
        self.by_tokens = not any(row.total_ms for row in rows)
        """Whether the bars show tokens, because the traces have no times (as for the model calls of coding agents)."""
        self.rated = any(row.passed is not None for row in rows)
        """Whether any run has an outcome."""
        self._columns = [column for column in _COLUMNS if self.rated or not column.rated]
        self._all = sum(self._size(row) or 0.0 for row in rows)
        self._longest = min(_MAX_NAME, max((cells(self._name(row)) for row in rows), default=0)) + 2

    def _name(self, row: Row) -> Clean:
        if self._total is not None and row is self._rows[self._total]:
            return Clean("total")
        return one_line(row.prompt or row.name, 200) or Clean("(not recorded)")

    def _layout(self, width: int) -> tuple[Sequence[_Column], int, int]:
        """The columns that fit, and the cells of the name and of the bar: no bar if the name needs its room."""
        columns = [*self._columns]
        for about in sorted((about for about in columns if about.leaves), key=lambda about: about.leaves):
            if about.name != self._sorted_by and _MIN_NAME + sum(about.cells for about in columns) > width:
                columns.remove(about)
        room = max(8, width - sum(about.cells for about in columns))
        label = max(_MIN_NAME, self._longest)
        bar = room - label - 2
        return (columns, label, bar) if bar >= _MIN_BAR else (columns, room, 0)

    def heading(self, width: int, label: str) -> Line:
        """The column headings, that of the order stands out; the last one describes the bars."""
        columns, room, bar = self._layout(width)
        pieces = fill([Piece(one_line(label, 20), "dim")], room)
        for about in columns:
            style = "accent" if about.name == self._sorted_by else "dim"
            pieces.append(column(Clean(about.name), about.cells, style, right=True))
        if bar:
            pieces.append(Piece(Clean("  share of tokens" if self.by_tokens else "  share of time"), "dim"))
        return tuple(fit(pieces, width))

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> Row | None:
        """The statistics of a row; None for the total."""
        return self._rows[index] if 0 <= index < len(self._rows) and index != self._total else None

    def key(self, index: int) -> Hashable:
        return ("total",) if index == self._total else self._rows[index].name

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key) if isinstance(key, str) else None

    def _size(self, row: Row) -> float | None:
        """The value of the row's bar."""
        return row.usage.all_tokens if self.by_tokens else row.total_ms

    def selectable(self, index: int) -> bool:
        return index != self._total

    def mark(self, index: int) -> str | None:
        return "status.error" if self._rows[index].errors else None

    def plain(self, index: int) -> str:
        return self._rows[index].name

    def line(self, index: int, width: int) -> Line:
        row, (columns, room, bar) = self._rows[index], self._layout(width)
        name = truncate_middle(self._name(row), room - 1)  # versions of a model differ at the end
        pieces = fill([Piece(name, "text bold" if row.errors else "text")], room)
        for about in columns:
            text, style = about.cell(row, self._glyphs)
            pieces.append(column(text, about.cells, style, right=True))
        if bar and self._all and index != self._total and (size := self._size(row)) is not None:
            pieces += (Piece(Clean("  ")), *amount(size, self._all, bar, "bar.agent", glyphs=self._glyphs))
        return tuple(fit(pieces, width))
