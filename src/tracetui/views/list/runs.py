"""The run list as rows: one line per run, group heading or unreadable file."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from os.path import basename
from typing import Final, Literal, NamedTuple

from tracetui import text
from tracetui.analysis import spending
from tracetui.analysis.arrangement import Item, parents
from tracetui.analysis.histogram import Histogram, Start
from tracetui.analysis.liveness import State, recorded_liveness
from tracetui.masking import clean, one_line
from tracetui.model import Problem, RunRef, RunSummary, Status, StatusSource
from tracetui.store.facts import haystack, run_time, start_of, total_tokens
from tracetui.store.relations import has_end
from tracetui.store.store import Overview, overview_of
from tracetui.text import Clean
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.labels import (
    UNGRADED,
    WRONG_ANSWER,
    WRONG_STYLE,
    Standing,
    StateOf,
    deciding_words,
    outcome_sign,
    score_cell,
    short_id,
    short_model,
    standing_of,
)
from tracetui.views.rows import Line, Piece, column, fill, fit, width_of


class Relationship(NamedTuple):
    """Relations of a run to others: its letter if marked, and text before and after its result."""

    mark: str = ""
    before: Line = ()
    after: Line = ()


RelationshipOf = Callable[[RunSummary, Glyphs], Relationship]


def no_relationship(run: RunSummary, glyphs: Glyphs) -> Relationship:
    """No relations."""
    return Relationship()


MessageOf = Callable[[RunRef], Clean]


def no_message(ref: RunRef) -> Clean:
    """No message."""
    return Clean("")


def _silence_word(run: RunSummary, state: State) -> Line:
    """The word for a silent run."""
    if state in (State.QUIET, State.STALLED):
        return (Piece(Clean(state), "status.warn" if state is State.STALLED else "status.running"), Piece(Clean(" ")))
    if state is State.UNKNOWN and run.status is Status.RUNNING:
        return (Piece(one_line(f"{run.status_word or 'no end'}, silent", 60), "status.unknown"), Piece(Clean(" ")))
    return ()


def _elapsed(run: RunSummary, now: float) -> float | None:
    """Milliseconds since the start; None if unknown."""
    if run.started_at is None or run.time_zone is None or run.started_at > now:
        return None
    return (now - run.started_at) * 1000


_STATE_AND_TITLE: Final = 26
"""Least cells of a state in words beside a title."""
_NAMED_RELATIONS: Final = ("fork", "retry")
"""Relations shown as a word."""
_MIN_PROMPT: Final = 12
"""Minimum cells for a prompt."""
_MIN_TASK: Final = 7
"""Minimum cells for the name of a task."""


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
        state_words: bool = True,
        time_of: Callable[[RunSummary], float] = run_time,
    ) -> None:
        """`message_of`: the last message of a run. `state_words`: the result begins with the state, unless the sign
        has all of it. `time_of`: the time since which the age counts.
        """
        self._items = items
        self._state_of = state_of
        self._relationship_of = relationship_of
        self._message_of, self._state_words, self._time_of = message_of, state_words, time_of
        self.now = now
        self._glyphs = glyphs
        self._chosen, self._sorted_by = tuple(chosen), sorted_by
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
        self._below, self.runs  # noqa: B018
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
            self._index = {one.ref if isinstance(one, RunSummary) else self.key(i): i for i, one in enumerate(items)}
        return self._index.get(key)

    def renew(self, run: RunSummary) -> int | None:
        """Replace a run in its row; return the row, or None if it has none."""
        index = self.index(run.ref)
        if index is not None:
            before, self._items[index] = self._items[index], run
            if isinstance(before, RunSummary) and _counts_differ(before, run):
                self._histogram = None
                for name in ("overview", "failed", "unended", "starts"):
                    self.__dict__.pop(name, None)
        return index

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
        """(column, cells) of these rows; see `columns_for`."""
        if self._columns is None or self._columns[0] != width:
            found = columns_for(width, self._chosen, name=self.longest_name, facts=self._facts)
            self._columns = width, found
        return self._columns[1]

    def choose(self, columns: Sequence[str]) -> None:
        """Show these columns, or (none) those that the width suggests."""
        self._chosen, self._columns = tuple(columns), None

    @property
    def least_width(self) -> int:
        """Cells of a list beside a run: the list of a home shows cost, time and steps."""
        return HOME_WIDTH if "title" in self._facts and self.costed else NARROWEST

    @property
    def chosen_width(self) -> int:
        """Cells in which every chosen column fits, and a result can be read; 0 if none were chosen."""
        return chosen_width(self._chosen, self.longest_name) if self._chosen else 0

    def wanted_width(self, first: int, count: int) -> int:
        """Cells at which the results of these rows are not cut, a multiple of 8; at most `WIDEST`."""
        shown = [item for item in self._items[first : first + count] if not isinstance(item, tuple)]
        if any(isinstance(item, Problem) for item in shown):
            return WIDEST
        result = max(
            (
                width_of(cell)
                for run in shown
                if isinstance(run, RunSummary)
                for cell in self._cells(run, [("result", WIDEST)])
            ),
            default=0,
        )
        widths = range(NARROWEST, WIDEST, 8)
        return next((width for width in widths if dict(self.columns(width)).get("result", result) >= result), WIDEST)

    def heading(self, width: int) -> Line:
        """The column headings."""
        return heading(self.columns(width), self._sorted_by)

    @cached_property
    def _facts(self) -> Collection[Fact]:
        """What any run has; time and tokens: any of the first ones."""

        def runs(most: int | None = None) -> Iterator[RunSummary]:
            return islice((item for item in self._items if isinstance(item, RunSummary)), most)

        found: dict[Fact, bool] = {
            "title": any(run.title for run in runs()),
            "score": any(run.scores for run in runs()),
            "cost": self.costed,
            "time": any(run.duration_ms is not None or run.status is Status.RUNNING for run in runs(_SAMPLE)),
            "tok": any(run.usage or not run.deep for run in runs(_SAMPLE)),
        }
        return {name for name, has in found.items() if has}

    @cached_property
    def longest_name(self) -> int:
        """The 90th percentile of the name length of the first rows, in characters; the longest one if all are short."""
        runs = (item for item in islice(self._items, _SAMPLE) if isinstance(item, RunSummary))
        lengths = sorted(map(self._name_length, runs))
        return max(lengths[len(lengths) * 9 // 10], min(lengths[-1], _USUAL_NAME)) if lengths else 0

    @property
    def spent(self) -> spending.Spending:
        """What all runs of the list used together; nothing for a long list that wasn't prepared."""
        return self._sum(0, len(self._items))

    @cached_property
    def costed(self) -> bool:
        """Whether any of the first runs has a cost, recorded or estimated."""
        runs = (item for item in islice(self._items, _SAMPLE) if isinstance(item, RunSummary))
        return any(spending.of_run(run).usd is not None for run in runs)

    def _group_sum(self, index: int) -> spending.Spending:
        """What the runs of a group used, by the row of its heading."""
        following = bisect_left(self._headings, index) + 1
        end = self._headings[following] if following < len(self._headings) else len(self._items)
        return self._sum(index, end)

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
        return len(run.label) + (2 if run.ref in self._below else len(run.name) + bool(run.name))

    @cached_property
    def _below(self) -> Collection[RunRef]:
        """Runs nested below their parent."""
        return parents([item for item in self._items if isinstance(item, RunSummary)])

    def _message(self, run: RunSummary, room: int) -> Line:
        """The last message, where it can be read."""
        message = self._message_of(run.ref) if room >= _MIN_PROMPT + 4 else Clean("")
        if not message:
            return ()
        first, last = '""' if self._glyphs is ASCII else "“”"
        return Piece(Clean("  ")), Piece(Clean(f"{first}{text.truncate(message, room - 4)}{last}"), "dim")

    def _cells(self, run: RunSummary, columns: Iterable[tuple[str, int]]) -> Iterator[list[Piece]]:
        """The cells of a run in these columns."""
        state = self._state_of(run)
        stands, ties = standing_of(run, state, self.now, self._glyphs), self._relationship_of(run, self._glyphs)
        for name, size in columns:
            yield self._cell(run, name, size, state, stands, ties)

    def _cell(
        self, run: RunSummary, name: str, size: int, state: State, stands: Standing, ties: Relationship
    ) -> list[Piece]:
        bold = " bold" if stands.status in (Status.ERROR, Status.RUNNING) else ""
        if name == "status":
            return [Piece(stands.sign, stands.style)]
        if name == "name":
            chip = [Piece(Clean(f" {ties.mark} "), "onaccent bold"), Piece(Clean(" "))] if ties.mark else []
            return [*chip, *_name(run, size - 4 * bool(ties.mark), bold, below=run.ref in self._below)]
        if name == "score":
            return [_score(run, size, self._glyphs)]
        if name == "result":
            room = size - width_of(ties.after)
            asked = one_line(run.title or run.prompt, 200)
            wordless = not self._state_words or room < _STATE_AND_TITLE
            if stands.by_last_event and asked and wordless and stands.status is not Status.RUNNING:  # the sign has it
                shown = (*ties.before, Piece(asked, "text"))
                return [*fit((*shown, *self._message(run, room - width_of(shown))), room), *ties.after]
            if stands.by_last_event:
                words = Piece(stands.words, stands.style)
                shown = (words, *((Piece(Clean(" ")), *ties.before) if ties.before else ()))
                shown = (*shown, *_prompt(run, shown, room))
                return [*fit((*shown, *self._message(run, room - width_of(shown))), max(8, room)), *ties.after]
            before = (*_silence_word(run, state), *ties.before)
            shown = (*before, *result_phrase(run, self._glyphs))
            if run.relation in _NAMED_RELATIONS and room - width_of(shown) < _MIN_PROMPT:
                shown = (*before, *result_phrase(run, self._glyphs, named=False))  # the prompt says more than an id
            shown = (*shown, *_prompt(run, shown, room))
            return [*fit((*shown, *self._message(run, room - width_of(shown))), max(8, room)), *ties.after]
        if name == "time":
            going = stands.status is Status.RUNNING
            elapsed = _elapsed(run, self.now) if going and run.duration_ms is None else run.duration_ms
            return [column(text.duration(elapsed), size, "status.running" if going else "sec", right=True)]
        if name == "age":
            age = text.age(max(0.0, self.now - self._time_of(run)), estimated=run.started_at is None)
            return [column(age, size, "dim", right=True)]
        return [_CELLS[name](run, size)]


def _counts_differ(before: RunSummary, run: RunSummary) -> bool:
    return (before.status, before.outcome, before.failed) != (run.status, run.outcome, run.failed)


NARROWEST, WIDEST = 48, 96
"""Cells of a list beside a run."""
_MIN_NAME, _MIN_RESULT = 8, 12
"""Minimum useful cells of a column."""
_TITLES_FIRST: Final = 60
"""Cells of a list with lengths beside titles."""
_TITLES_ONLY: Final = 100
"""Cells of a list with ids beside titles."""
_SAMPLE: Final = 2_000
"""Maximum rows to measure names of."""
_NAMES: Final = (16, 18, 20, 24, 28, 32)
"""Widths of the name column: few, so that it rarely changes while runs arrive."""
_SHORT_NAMES: Final = (8, 11)
"""Widths of a column of short names."""
_USUAL_NAME: Final = 14
"""Cells of the name in a list beside a run."""
_TITLE: Final = 18
"""Cells of a title beside cost, time and steps in the list of a home."""
HOME_WIDTH: Final = 60
"""Cells of the list of a home that has them."""
_RESULT_FIRST: Final = 16
"""Cells of the result before the name column grows."""
_FAIR_RESULT: Final = 30
"""Cells of the result before columns are added that not every list has."""


class Column(NamedTuple):
    """A column of the list."""

    cells: int
    """Width of its values, which are never cut; 0: it takes the room that is left."""
    about: str
    """What it shows, for the column chooser."""
    sort: str = ""
    """Its sort order in `arrangement.SORTS`; empty: none."""
    right: bool = False


COLUMNS: Final = {
    "status": Column(1, "sign of the status", "outcome"),
    "name": Column(0, "agent, program or task", "name"),
    "result": Column(0, "state, cause of failure, title or prompt", "outcome"),
    "time": Column(5, "duration", "time", right=True),
    "age": Column(4, "time since the start", "newest", right=True),
    "step": Column(4, "number of steps", "steps", right=True),
    "cost": Column(8, "recorded or estimated (~) cost", "cost", right=True),
    "tok": Column(5, "tokens, input and output", "tokens", right=True),
    "score": Column(8, "outcome and score", "score"),
    "err": Column(4, "failed calls inside the run", "errors", right=True),
    "id": Column(9, "start of the id", "id"),
    "model": Column(14, "model", "model"),
    "format": Column(11, "format of the trace", "format"),
    "project": Column(18, "recorded source: folder, repository"),
}
"""Columns by name, in order of survival: a list without room for all of them drops the last ones first."""
_WORDS: Final = ("id", "model", "format", "project")
"""Columns that say less than a name and a result that can be read."""
FIXED: Final = ("status", "name")
"""Columns that every list has."""
_ORDER: Final = (
    "status",
    "name",
    "score",
    "result",
    "id",
    "tok",
    "cost",
    "model",
    "format",
    "time",
    "err",
    "step",
    "age",
)
"""Columns from left to right, unless the user chose them."""


Fact = Literal["score", "cost", "time", "tok", "title"]
"""What runs of some formats have: a list has no column for what no run has. A title says more than an id."""


def columns_for(
    width: int, chosen: Sequence[str] = (), *, name: int = 0, facts: Collection[Fact] = ("time", "tok")
) -> list[tuple[str, int]]:
    """(column, cells) for a list of `width` cells, in order. Less important columns are dropped first.

    `chosen` names the columns of the user, in order. `name` is the desired width of the name column, granted if the
    result has enough room. `facts` are those that any run has.
    """
    if chosen:
        return _fitting(width, chosen, name)
    titled, costed = "title" in facts, "cost" in facts
    usual = _USUAL_NAME if width < 70 else _USUAL_NAME + 1
    least = next((one for one in _SHORT_NAMES if name and one >= name), usual)
    narrow = titled and width < _TITLES_FIRST
    shown = {
        "score": "score" in facts and width >= 60,
        "id": width >= (_TITLES_ONLY if titled else 66),
        "tok": "tok" in facts and (width >= 100 or (68 <= width < 76 and not costed)),
        "model": width >= 112,
        "format": width >= 124,
        "time": "time" in facts and not narrow,
        "err": width >= 131,
        "step": width >= 39 and not narrow,
    }
    fixed = [one for one in _ORDER if shown.get(one, True)]
    roomy = width - _cells(fixed) - least >= _TITLE
    if not costed or (width < 66 and not (titled and roomy)):
        fixed.remove("cost")
    wanted = next((one for one in (least, *_NAMES) if one >= name), _NAMES[-1])
    for optional in _optional():
        if optional == "cost" and titled and roomy:
            continue
        taken = wanted if optional in _WORDS else least
        if width - _cells(fixed) - taken < _FAIR_RESULT and optional in fixed:
            fixed.remove(optional)
    room = width - _cells(fixed) - least
    size = max(least, min(wanted, least + max(0, room - _RESULT_FIRST)))
    size = max(_MIN_NAME, size - max(0, _MIN_RESULT - room))
    sizes = {"name": size, "result": max(_MIN_RESULT, room + least - size)}
    return [(key, sizes.get(key, COLUMNS[key].cells)) for key in fixed]


def _optional() -> list[str]:
    """Columns that a result with little room is worth more than, those that survive longest last."""
    names = [*COLUMNS]
    return [
        one for one in names[: names.index("step") : -1] if one != "score"
    ]  # it tells wrong answers from passed runs


def _cells(names: Collection[str]) -> int:
    """Cells of these columns and the blanks between them, without the flexible ones."""
    return sum(COLUMNS[one].cells for one in names) + len(names) - 1


def _fitting(width: int, chosen: Sequence[str], name: int) -> list[tuple[str, int]]:
    """The chosen columns that fit: whole columns are dropped before a name is cut."""
    shown = [*(one for one in FIXED if one not in chosen), *(one for one in chosen if one in COLUMNS)]
    wanted = max(_MIN_NAME, min(name, _NAMES[-1]))
    least = {"name": wanted, "result": _MIN_RESULT}
    for dropped in reversed([*COLUMNS]):
        if _cells(shown) + sum(least[one] for one in least if one in shown) <= width:
            break
        if dropped in shown and dropped not in FIXED:
            shown.remove(dropped)
    room = max(_MIN_NAME, width - _cells(shown))
    if "result" not in shown:
        return [(one, COLUMNS[one].cells or room) for one in shown]
    size = max(_MIN_NAME, min(wanted, room - _MIN_RESULT))
    sizes = {"name": size, "result": room - size}
    return [(one, COLUMNS[one].cells or sizes[one]) for one in shown]


_GOOD_RESULT: Final = 30
"""Cells of a result that can be read."""


def chosen_width(chosen: Sequence[str], name: int) -> int:
    """Cells of a list that shows all of these columns."""
    flexible = max(_MIN_NAME, min(name, _NAMES[-1])) + (_GOOD_RESULT if "result" in chosen else 0)
    return _cells({*FIXED, *chosen}) + flexible


def hidden_columns(width: int) -> int:
    """Number of columns dropped at that width, of those that a wide list has."""
    return len(columns_for(1000)) - len(columns_for(width))


def heading(columns: list[tuple[str, int]], sorted_by: str = "") -> Line:
    """The headings of these columns; the one that the list is sorted by stands out."""
    cells = []
    for key, size in columns:
        about = COLUMNS[key]
        style = "accent" if sorted_by and about.sort == sorted_by and key != "status" else "dim"
        cells.append(column(Clean("" if key == "status" else key), size, style, right=about.right))
        cells.append(Piece(Clean(" ")))
    return tuple(cells[:-1])


_SUMS_FROM: Final = 40
"""Cells of a list with the cost of each group on its heading; with `_TITLES_FIRST`, tokens too."""


def _name(run: RunSummary, size: int, bold: str, *, below: bool) -> list[Piece]:
    label = clean(run.label or run.name or run.id, 200)
    if below:
        return [column(Clean("  " + label), size, "text" + bold if bold else "sec")]
    if run.label and run.name:  # keep the label visible
        room = max(size // 3, size - text.cells(label) - 1)
        label = Clean(f"{text.truncate(clean(run.name, 200), room)} {label}")
    return [column(label, size, "text" + bold)]


def _model(run: RunSummary) -> Clean:
    return short_model(run.model) if run.model else Clean("—" if run.deep else "·")


def _id(run: RunSummary, size: int) -> Piece:
    return column(short_id(run.id, size), size, "dim")


_CELLS: Final[dict[str, Callable[[RunSummary, int], Piece]]] = {
    "id": _id,
    "step": lambda run, size: column(
        text.count(run.steps) if run.deep or run.steps is not None else Clean("·"), size, "sec", right=True
    ),
    "tok": lambda run, size: column(
        text.tokens(total_tokens(run), at_least=run.usage is not None and run.usage.output_at_least)
        if run.deep or run.usage
        else Clean("·"),
        size,
        "sec",
        right=True,
    ),
    "cost": lambda run, size: column(_cost_cell(spending.of_run(run), size), size, "sec", right=True),
    "project": lambda run, size: column(text.truncate_middle(clean(run.source or "—", 200), size), size, "dim"),
    "model": lambda run, size: column(text.truncate_middle(_model(run), size), size, "sec"),
    "format": lambda run, size: column(Clean(run.ref.format), size, "dim"),
    "err": lambda run, size: column(
        text.count(run.errors) if run.errors else Clean("·"), size, "status.error" if run.errors else "dim", right=True
    ),
}


def cost_text(spent: spending.Spending) -> Clean:
    """The cost: ``~$0.12`` if estimated; empty where nothing was used, ``—`` if no price is known."""
    if spent.usd is None and not spent.tokens:
        return Clean("")
    return text.cost(spent.usd, estimated=spent.estimated)


def _cost_cell(spent: spending.Spending, size: int) -> Clean:
    """The cost, rounded to dollars or thousands if it doesn't fit: a number is never cut."""
    words = cost_text(spent)
    if len(words) <= size or spent.usd is None:
        return words
    sign = "~$" if spent.estimated else "$"
    whole = f"{sign}{spent.usd:.0f}"
    return Clean(whole if len(whole) <= size else f"{sign}{text.tokens(int(spent.usd))}")


def spent_words(spent: spending.Spending) -> str:
    """Tokens and cost of many runs: ``1.2M tok  ~$3.40``."""
    words = [f"{text.tokens(spent.tokens)} tok"] if spent.tokens else []
    return "  ".join([*words, *([cost_text(spent)] if spent.usd else [])])


def _score(run: RunSummary, size: int, glyphs: Glyphs) -> Piece:
    return column(text.truncate(score_cell(run, glyphs), size), size, outcome_sign(run, glyphs)[1])


def result_phrase(run: RunSummary, glyphs: Glyphs = UNICODE, *, named: bool = True) -> Line:
    """The result of a run in one phrase: cause of failure, relation to its original (with its id if `named`), or
    prompt.
    """
    pieces: list[Piece] = []
    if run.is_ungraded and not run.failed:
        evidence = run.evidence
        pieces = [Piece(one_line(UNGRADED if evidence is None else f"{UNGRADED}: {evidence.text}", 200), WRONG_STYLE)]
    elif run.status is Status.ERROR:
        pieces = _cause(run)
    elif run.status is Status.RUNNING:
        pieces = [Piece(one_line(run.result or run.title or run.prompt or "running", 200), "status.running")]
    elif run.status is Status.PAUSED:
        pieces = [Piece(one_line(run.result or "waiting for a human", 200), "status.paused")]
    elif run.status is Status.CANCELLED:
        pieces = [Piece(one_line(run.result or run.status_word or "cancelled", 200), "sec")]
    elif run.is_wrong:
        pieces = [Piece(one_line(run.result or WRONG_ANSWER, 200), WRONG_STYLE)]
    relation = _relation(run, named=named)
    if pieces and relation:  # show that it is a replay even if only the error fits
        return (Piece(Clean(f"{glyphs.replay} "), "accent"), *pieces, Piece(Clean(" ")), *relation)
    if pieces:
        return tuple(pieces)
    if relation:
        return (Piece(Clean(f"{glyphs.replay} "), "accent"), *relation)
    if run.result:
        style = "status.ok" if run.status is Status.OK else "sec"
        return (Piece(one_line(run.result, 200), style),)
    if run.status is Status.UNKNOWN and run.deep:
        word = run.status_word if run.status_source is StatusSource.EXPLICIT else None
        if not run.prompt and not run.title:
            return (Piece(one_line(word or "no end record", 60), "sec"),)
        asked = Piece(one_line(run.title or run.prompt, 200), "text")
        return (asked,) if word is None else (asked, Piece(Clean(" · "), "dim"), Piece(one_line(word, 60), "sec"))
    return (Piece(one_line(run.prompt, 200) if run.prompt or run.deep else Clean("·"), "dim"),)


def _prompt(run: RunSummary, shown: Line, size: int) -> Line:
    """The task and the prompt of a run after its result, if they fit."""
    pieces: list[Piece] = []
    room = size - width_of(shown) - 2
    if run.task and not run.title and not run.task.startswith(run.name) and room >= _MIN_TASK:
        task = text.truncate_middle(one_line(run.task, 200), max(_MIN_TASK, min(room, _NAMES[-1])))
        pieces += [Piece(Clean("  ")), Piece(task, "sec")]
        room -= width_of(pieces)
    prompt = one_line(run.title or run.prompt, 200)
    if prompt and room + 2 >= _MIN_PROMPT and all(piece.text != prompt for piece in shown):
        pieces += [Piece(Clean("  ")), Piece(prompt, "dim")]
    return tuple(pieces)


def _cause(run: RunSummary) -> list[Piece]:
    error = run.first_error
    if error is None:
        return [Piece(one_line(run.result or run.status_word or "failed", 200), "status.error")]
    if run.result:
        return [Piece(one_line(run.result, 200), "status.error")]
    pieces = [Piece(deciding_words(error.words or run.status_word or "failed"), "status.error")]
    if error.message in ("", error.type) and error.name and error.name != error.type:
        pieces.append(Piece(Clean(f" {one_line(error.name, 200)}"), "sec"))
    return pieces


def _relation(run: RunSummary, *, named: bool) -> list[Piece]:
    if run.relation is None:
        return []
    name = Clean("teacher") if run.relation == "student" else short_id(run.replay_of or "?")
    if not named:
        return [Piece(one_line(run.relation, 20), "sec")]
    word = Clean(f" {run.relation}") if run.relation in _NAMED_RELATIONS else Clean("")
    return [Piece(name, "accent"), Piece(word, "sec")]


def group_line(item: tuple[str, int], width: int, glyphs: Glyphs, spent: spending.Spending | None = None) -> Line:
    """The heading of a group: label, rule, what its runs spent where there is room, and their number."""
    words = ""
    if spent is not None:
        words = spent_words(spent) if width >= _TITLES_FIRST else cost_text(spent) if spent.usd else ""
    right = f"{words}  {item[1]}" if words and width >= _SUMS_FROM else str(item[1])
    label = text.truncate_middle(clean(item[0], 200), max(8, width - len(right) - 4))  # keep both ends of a path
    rule = glyphs.rule * max(0, width - text.cells(label) - len(right) - 3)
    return (Piece(label, "dim"), Piece(Clean(f" {rule} "), "line"), Piece(Clean(right), "dim"))


def _problem_line(problem: Problem, columns: list[tuple[str, int]], width: int, glyphs: Glyphs) -> Line:
    name = column(clean(basename(problem.path), 200), columns[1][1], "status.warn")
    place = f"{problem.reason}, {problem.where}" if problem.where else problem.reason
    what = Piece(one_line(f"unreadable: {place}", 300), "status.warn")
    return tuple(fit([Piece(glyphs.note, "status.warn bold"), Piece(Clean(" ")), name, Piece(Clean(" ")), what], width))
