"""The pages *today* (running, waiting, failed and recent runs, spending) and *live* (what runs do now) as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis import spending
from tracetui.analysis.arrangement import Choices, Item
from tracetui.analysis.effects.actions import action_of, open_text
from tracetui.analysis.liveness import CurrentState, Liveness, State, current_state, recorded_liveness, seconds
from tracetui.masking import clean, one_line, prose
from tracetui.model import RUNNING_STATES, Operation, Run, RunRef, RunState, RunSummary, Span, Status, Usage
from tracetui.store.facts import run_time, total_tokens
from tracetui.text import Clean, tokens, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs, kind_of
from tracetui.views.labels import StateOf, cost_text, prompt_text, run_cost, run_label
from tracetui.views.list.result import MessageOf, no_message
from tracetui.views.list.runs import RunRows
from tracetui.views.rows import Line, Piece, column, fill, fit, width_of
from tracetui.views.timeline.story import is_record
from tracetui.views.timeline.work import step_pieces

RECENT_SECONDS: Final = 8 * 86_400.0
"""Age of the oldest runs on the page: a week and a day."""
MOST: Final = 8
"""Rows of a section, except of recent runs, if the page has no room for all."""
MOST_RECENT: Final = 30
MOST_PROJECTS: Final = 8
DAYS: Final = 14
_SPENT_CELL: Final = 10
_TOKENS: Final = (("input", 8), ("cached", 8), ("written", 8), ("output", 8))
"""Columns of tokens of the week: new input, read from the cache, written to it; with their cells."""
_CHART: Final = 3 * DAYS + 8
"""Cells of the cost per day: a scale and three for each day."""
_WITH_CHART: Final = 98
"""Cells of a page with the chart beside the projects, below the runs."""
_WITH_MODEL: Final = 98
_LEAST_RECENT: Final = 5
"""Recent runs above the spending of a page with the chart."""
_SECTION_STYLES: Final = {
    "waiting for you": "status.paused",
    "running": "status.running",
    "failed today": "status.error",
}
"""Styles of the labels of sections."""
_PROJECT: Final = 14
"""Least cells of the name of a project."""
_PATH: Final = 28
"""Least cells of the path of one; in less, its last part."""
_LIVE_NUMBERS: Final = (("silent", 7), ("step", 5), ("tok", 6), ("cost", 9))
"""Columns of numbers and their cells, each with a blank before it."""
_LOOK_BACK: Final = 50
"""Spans searched for the last lines."""
_MOST_LINES: Final = 8
"""Last lines of a run, if the page has room for as many of all."""
_LINE_CELLS: Final = 400
_CALL_CELLS: Final = 60
_STYLES: Final = {
    State.RUNNING: "status.running",
    State.QUIET: "status.running",
    State.STALLED: "status.warn",
}


class ProjectSpending(NamedTuple):
    """What the runs of one project used today and this week, by the start of the run."""

    project: str
    """The recorded source of its runs; empty for the total."""
    today: spending.Spending
    week: spending.Spending
    usage: Usage = Usage()
    """Tokens of the week."""
    copies: int = 0
    """Runs of the week that count wholly in other runs."""


class DaySpending(NamedTuple):
    """What the runs of one day used."""

    day: int
    """Day of the month."""
    spent: spending.Spending


class Sections(NamedTuple):
    """The runs of the page, newest first, each in one section."""

    waiting: list[RunSummary]
    running: list[RunSummary]
    failed: list[RunSummary]
    """Since midnight."""
    recent: list[RunSummary]


def sections(runs: Iterable[RunSummary], *, now: float, state_of: StateOf = recorded_liveness) -> Sections:
    """Sort the top-level runs of the last days into sections."""
    result = Sections([], [], [], [])
    midnight = _midnight(now)
    top = [run for run in runs if run.parent is None and now - last_activity(run) < RECENT_SECONDS]
    for run in sorted(top, key=lambda run: (-last_activity(run), run.ref)):
        current = current_state(run, state_of(run), now=now).state
        if current is RunState.WAITING:
            result.waiting.append(run)
        elif current in RUNNING_STATES:
            result.running.append(run)
        elif run.failed and last_activity(run) >= midnight:
            result.failed.append(run)
        else:
            result.recent.append(run)
    return result


def of_week(runs: Iterable[RunSummary], *, now: float) -> list[RunSummary]:
    """The runs with usage that began since Monday."""
    monday = _monday(now)
    return [run for run in runs if run.usage is not None and run_time(run) >= monday]


NO_PROJECT: Final = "no project"
"""The name of the runs without one."""


def by_project(runs: Iterable[RunSummary], *, now: float) -> list[ProjectSpending]:
    """Spending today and since Monday, most this week first, the total last; empty without runs that have usage or
    count in others.
    """
    midnight, monday = _midnight(now), _monday(now)
    week: dict[str, list[RunSummary]] = defaultdict(list)
    for run in runs:
        if (run.usage is not None or run.counts_in is not None) and run_time(run) >= monday:
            week[run.source or NO_PROJECT].append(run)
    projects = [
        ProjectSpending(
            project,
            spending.total(run for run in project_runs if run_time(run) >= midnight),
            spending.total(project_runs),
            _usage(project_runs),
        )
        for project, project_runs in week.items()
        if any(run.usage is not None for run in project_runs)
    ]
    projects.sort(key=lambda entry: (-(entry.week.usd or 0.0), -(entry.week.tokens or 0), entry.project))
    if not week:
        return []
    every = [run for project_runs in week.values() for run in project_runs]
    today = spending.total(run for run in every if run_time(run) >= midnight)
    copies = sum(run.usage is None for run in every)
    return [*projects[:MOST_PROJECTS], ProjectSpending("", today, spending.total(every), _usage(every), copies)]


def _usage(runs: Iterable[RunSummary]) -> Usage:
    return sum((run.usage for run in runs if run.usage is not None), Usage())


def by_day(runs: Iterable[RunSummary], *, now: float) -> list[DaySpending]:
    """Spending on each of the last `DAYS` days, today last, by the start of the run."""
    today = datetime.fromtimestamp(now).date()
    spent: dict[int, list[RunSummary]] = defaultdict(list)
    first = datetime.combine(today - timedelta(days=DAYS - 1), datetime.min.time()).timestamp()
    for run in runs:
        if run.usage is not None and (at := run_time(run)) >= first:
            spent[(today - datetime.fromtimestamp(at).date()).days].append(run)
    return [DaySpending((today - timedelta(days=ago)).day, spending.total(spent[ago])) for ago in reversed(range(DAYS))]


def last_activity(run: RunSummary) -> float:
    """The recorded end of a run; without one, the last change of its file, which may hold other runs too."""
    if run.started_at is not None and run.duration_ms is not None and run.status is not Status.RUNNING:
        return run_time(run) + run.duration_ms / 1000
    return max(run_time(run), run.modified_at)


def _midnight(now: float) -> float:
    return datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _monday(now: float) -> float:
    midnight = datetime.fromtimestamp(_midnight(now))
    return (midnight - timedelta(days=midnight.weekday())).timestamp()


def _section(label: str, runs: Sequence[RunSummary], count: int) -> list[Item]:
    """The heading and rows of a section; no heading without rows."""
    if not runs:
        return []
    label = f"{label} · the newest of {len(runs)}" if len(runs) > count else label
    return [(label, count), *runs[:count]]


def _counts(listed: Sequence[tuple[Sequence[RunSummary], int]], room: int) -> list[int]:
    """Rows of each section of (runs, maximum): more than the maximum if all sections fit in `room` with headings."""
    counts = [min(len(runs), most) for runs, most in listed]
    room -= sum(count + 1 for count in counts if count)
    for i, (runs, _) in enumerate(listed):
        more = max(0, min(len(runs) - counts[i], room))
        counts[i] += more
        room -= more
    return counts


STATE: Final = "state"
"""The usual grouping of the page, by `Sections`."""
CHOICES: Final = Choices(
    ("newest", "name", "model", "cost", "time", "steps", "tokens"), (STATE, "source", "model", "day", "status", "none")
)
"""How the page can be sorted and grouped."""


class TodayRows:
    """See `tracetui.views.rows.Rows`. The key of a row is its run, or its project."""

    def __init__(
        self,
        listed: Sections,
        spent: Sequence[ProjectSpending],
        *,
        now: float,
        glyphs: Glyphs = UNICODE,
        state_of: StateOf = recorded_liveness,
        room: int = 0,
        context: Clean | None = None,
        groups: list[Item] | None = None,
        sorted_by: str = "",
        days: Sequence[DaySpending] = (),
        message_of: MessageOf = no_message,
        width: int = 120,
    ) -> None:
        """`room`: rows of the page; sections have more rows than their maximum where they fit. `groups`: the runs in
        other groups than sections. `width`: cells of the page. `context`: what filled the contexts of the week, a line
        below the spending.
        """
        self._heading = ProjectSpending("spent", spending.NOTHING, spending.NOTHING)
        self._spent: list[ProjectSpending | Clean] = [self._heading, *spent] if spent else []
        if spent and context:
            self._spent.append(context)
        self._days = days if any(day.spent.usd for day in days) else ()
        is_below = width >= _WITH_CHART and groups is None
        above = sum(min(len(runs), MOST) + 1 for runs in listed[:3] if runs) + len(self._spent) + 1
        most_recent = min(MOST_RECENT, max(_LEAST_RECENT, room - above)) if is_below and spent else MOST_RECENT
        limits = ((listed.waiting, MOST), (listed.running, MOST), (listed.failed, MOST), (listed.recent, most_recent))
        sections = [
            _section(label, runs, count)
            for label, (runs, _), count in zip(
                ("waiting for you", "running", "failed today", "recent"),
                limits,
                _counts(limits, room - len(self._spent)),
                strict=True,
            )
        ]
        chosen = (
            "status",
            "name",
            "result",
            *(("model",) if width >= _WITH_MODEL else ()),
            "cost",
            "time",
            "step",
            "age",
        )
        self._runs = RunRows(
            [*chain(*sections)] if groups is None else groups,
            now=now,
            glyphs=glyphs,
            chosen=chosen,
            sorted_by=sorted_by,
            state_of=state_of,
            message_of=message_of,
            shows_state=groups is not None,
            time_of=last_activity,
        )
        self._first_spent = len(self._runs) if is_below or groups is not None else sum(map(len, sections[:-1]))
        self._is_grouped = groups is not None
        if is_below and spent:  # at the bottom of the page
            self._spent[:0] = [Clean("")] * (room - len(self))
        self._glyphs = glyphs

    def heading(self, width: int) -> list[Line]:
        """The column headings."""
        return [self._runs.heading(width)]

    @property
    def refs(self) -> list[RunRef]:
        """The listed runs, from top to bottom."""
        return [run.ref for i in range(len(self)) if (run := self.run(i)) is not None]

    def __len__(self) -> int:
        return len(self._runs) + len(self._spent)

    def _row(self, index: int) -> int | ProjectSpending | Clean:
        """The position among the runs, the spending of a project, or the line about contexts."""
        if index < self._first_spent:
            return index
        index -= self._first_spent
        return self._spent[index] if index < len(self._spent) else index - len(self._spent) + self._first_spent

    def run(self, index: int) -> RunSummary | None:
        """The run of a row."""
        row = self._row(index)
        item = self._runs.item(row) if isinstance(row, int) else None
        return item if isinstance(item, RunSummary) else None

    def project(self, index: int) -> str:
        """The project of a row of spendings, else empty."""
        row = self._row(index)
        return row.project if isinstance(row, ProjectSpending) and row is not self._heading else ""

    def key(self, index: int) -> Hashable:
        row = self._row(index)
        if isinstance(row, int):
            return self._runs.key(row)
        return (row.project,) if isinstance(row, ProjectSpending) else "context"

    def index(self, key: Hashable) -> int | None:
        return next((i for i in range(len(self)) if self.key(i) == key), None)

    def selectable(self, index: int) -> bool:
        return self.run(index) is not None or bool(self.project(index))

    def above(self, index: int) -> int:
        """Number of rows above this one, without headings and the total."""
        return sum(map(self.selectable, range(index)))

    def mark(self, index: int) -> str | None:
        row = self._row(index)
        return self._runs.mark(row) if isinstance(row, int) else None

    def plain(self, index: int) -> str:
        row = self._row(index)
        if isinstance(row, int):
            return self._runs.plain(row)
        return row.project if isinstance(row, ProjectSpending) else row

    def line(self, index: int, width: int) -> Line:
        row = self._row(index)
        if isinstance(row, int):
            line, item = self._runs.line(row, width), self._runs.item(row)
            if self._is_grouped or not isinstance(item, tuple):
                return line
            return (Piece(line[0].text, _SECTION_STYLES.get(item[0].partition(" · ")[0], "dim")), *line[1:])
        if not row:
            return ()
        if not isinstance(row, ProjectSpending):
            return tuple(fit([Piece(Clean("  this week "), "dim"), Piece(row, "sec")], width))
        place = self._spent.index(row) - self._spent.index(self._heading)
        chart = self._chart_line(place) if width >= _WITH_CHART and self._has_chart else []
        return (*chart, *self._spent_line(row, width - width_of(chart), heading=not place))

    def _spent_line(self, row: ProjectSpending, width: int, *, heading: bool) -> Line:
        """Today's and this week's cost of a project, and the tokens of the week where there is room."""
        tokens_shown = _TOKENS if width >= _SPENT_CELL * 2 + _PROJECT + sum(cells for _, cells in _TOKENS) else ()
        sizes = (_SPENT_CELL, _SPENT_CELL, *(cells for _, cells in tokens_shown or (("tokens", _SPENT_CELL),)))
        room = max(8, width - sum(sizes))
        if heading:
            names = ("today", "this week", *(name for name, _ in tokens_shown or (("tokens", 0),)))
            is_beside_chart = self._has_chart and width + _CHART >= _WITH_CHART
            total = "" if is_beside_chart or not self._days else self._sparkline()
            if len(total) + 6 > room:  # else the headings would not be above their numbers
                total = ""
            label = Clean("Spent by project " if room > 17 + len(total) else "Spent ")
            rule = self._glyphs.rule * max(0, room - len(label) - len(total) - 1)
            start = [Piece(label, "text bold"), Piece(Clean(total), "bar.agent"), Piece(Clean(f"{rule} "), "line")]
            cells = [column(Clean(head), size, "dim", right=True) for head, size in zip(names, sizes, strict=True)]
            return tuple(fit([*start, *cells], width))
        style = "text" if row.project else "text bold"
        values = [*map(tokens, _token_parts(row.usage))] if tokens_shown else [tokens(row.week.tokens)]
        unused = Clean("") if row.project else self._glyphs.missing
        numbers = [cost_text(row.today) or unused, cost_text(row.week) or unused, *values]
        project = row.project if room >= _PATH else row.project.rstrip("/\\").rpartition("/")[2]
        copies = f" but {row.copies} cop{'ies' if row.copies > 1 else 'y'}" if row.copies else ""
        total = f"all{copies}" if row.week else f"{copies.removeprefix(' but ')}, counted in other runs"
        label = Clean(total if len(total) + 3 <= room else "all")
        name = Clean(f"  {truncate_middle(clean(project, 200) or label, room - 3)}")
        styles = (style, style, *("dim" if row.project else "sec" for _ in values))
        cells = [
            column(number, size, style, right=True) for number, size, style in zip(numbers, sizes, styles, strict=True)
        ]
        return tuple(fit([column(name, room, style), *cells], width))

    @property
    def _has_chart(self) -> bool:
        """Whether the costs per day have bars of two rows or more: beside the heading, a project and the total."""
        return len(self._days) > 0 and sum(isinstance(row, ProjectSpending) for row in self._spent) > 2

    def _sparkline(self) -> str:
        """The cost of each day in one row, for pages without room for the chart."""
        costs, spark = [day.spent.usd or 0.0 for day in self._days], self._glyphs.spark
        most = max(costs)
        bars = "".join(spark[round(cost / most * (len(spark) - 1))] if cost else self._glyphs.zero for cost in costs)
        return f"{DAYS} days {bars} " if most else ""

    def _chart_line(self, row: int) -> list[Piece]:
        """A row of the cost per day, beside the row of the projects: heading, bars, days."""
        height, costs = (
            sum(isinstance(row, ProjectSpending) for row in self._spent) - 2,
            [day.spent.usd or 0.0 for day in self._days],
        )
        most = max(costs)
        if not row:
            total = cost_text(spending.sum_of(day.spent for day in self._days))
            days, right = f"{DAYS} days ", f" {total}"
            rule = self._glyphs.rule * max(0, _CHART - 13 - len(days) - len(right) - 2)
            title = [Piece(Clean("Cost per day "), "text bold"), Piece(Clean(days), "sec"), Piece(Clean(rule), "line")]
            return [*title, Piece(Clean(f"{right}  "), "sec")]
        if row > height:
            days = "".join(f"{day.day:>3}" for day in self._days)
            return [Piece(Clean(f"{'':5}{days[:-2]}"), "dim"), Piece(Clean(days[-2:]), "accent"), Piece(Clean("   "))]
        scale = cost_text(spending.Spending(0, most)) if row == 1 and most else ""
        pieces = [Piece(Clean(f"{scale:>5.5} "), "dim")]
        for i, cost in enumerate(costs):
            level = round(cost / most * height * 8) if most else 0
            part = min(8, level - (height - row) * 8)
            spark = self._glyphs.spark
            sign = spark[max(0, part * len(spark) // 8 - 1)] if part > 0 else " "
            if row == height and part <= 0:
                sign = self._glyphs.zero if not cost else spark[0]
            style = "accent" if i == DAYS - 1 else "bar.agent"
            pieces.append(Piece(Clean(f"{sign * 2 if sign != self._glyphs.zero else f' {sign}'} "), style))
        return [*pieces, Piece(Clean(" " * (_CHART - width_of(pieces))))]


def _token_parts(used: Usage) -> tuple[int | None, int | None, int | None, int | None]:
    """Tokens of new input, read from the cache, written to it, and of output."""
    read, written = used.cache_read_tokens, used.cache_creation_tokens
    new = None if used.input_tokens is None else max(0, used.input_tokens - (read or 0) - (written or 0))
    return new, read, written, used.output_tokens


class LiveRun(NamedTuple):
    """A run of the dashboard."""

    summary: RunSummary
    state: State
    silent_ms: float | None
    session: CurrentState | None = None
    run: Run | None = None
    """The part of it that was read."""
    liveness: Liveness | None = None
    """Of `run`."""

    @property
    def waits(self) -> bool:
        """Whether it waits for a person."""
        return self.session is not None and self.session.state is RunState.WAITING

    @property
    def word(self) -> str:
        """Its state: ``running``, ``quiet``, ``stalled?`` or ``waiting``."""
        return "waiting" if self.waits else self.state.value

    @property
    def style(self) -> str:
        """Style of the word."""
        return "status.paused" if self.waits else _STYLES.get(self.state, "sec")


class LiveRows:
    """See `tracetui.views.rows.Rows`. The key of a run's first row is its reference, the others take no cursor."""

    def __init__(
        self, waiting: Sequence[LiveRun], running: Sequence[LiveRun], *, glyphs: Glyphs = UNICODE, room: int = 0
    ) -> None:
        """`room`: rows of the page, shared by the last lines of all runs; each has at least one."""
        self._glyphs = glyphs
        self._rows: list[tuple[LiveRun, int] | str] = []
        self._lines: dict[RunRef, list[Span]] = {}
        """The last lines of each run, newest first."""
        count = max(1, len(running) + len(waiting))
        most = min(_MOST_LINES, max(1, (room - 2) // count - 1))
        for label, runs in (("waiting for you", waiting), ("running", running)):
            if runs:
                self._rows.append(f"{label} {len(runs)}")
            for run in runs:
                lines = self._lines[run.summary.ref] = _last_lines(run.run, most)
                self._rows += [(run, part) for part in range(1 + max(1, len(lines)))]
        self._index = {self.key(i): i for i in range(len(self._rows))}

    def __len__(self) -> int:
        return len(self._rows)

    def run(self, index: int) -> LiveRun | None:
        """The run of a row; None for a heading."""
        row = self._rows[index] if 0 <= index < len(self._rows) else ""
        return None if isinstance(row, str) else row[0]

    def key(self, index: int) -> Hashable:
        row = self._rows[index]
        if isinstance(row, str):
            return (row.partition(" ")[0],)
        return row[0].summary.ref if not row[1] else (row[0].summary.ref, row[1])

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def selectable(self, index: int) -> bool:
        return isinstance(self.key(index), RunRef)

    def mark(self, index: int) -> str | None:
        run = self.run(index)
        return "status.warn" if run is not None and self.selectable(index) and run.state is State.STALLED else None

    def plain(self, index: int) -> str:
        return "".join(piece.text for piece in self.line(index, 400)).strip()

    def line(self, index: int, width: int) -> Line:
        row = self._rows[index]
        if isinstance(row, str):
            rule = self._glyphs.rule * max(0, width - len(row) - 1)
            return (Piece(Clean(row), "dim"), Piece(Clean(f" {rule}"), "line"))
        return tuple(fit(self._detail_line(*row) if row[1] else self._first(row[0], width), width))

    def _first(self, live: LiveRun, width: int) -> list[Piece]:
        run = live.run.summary if live.run is not None else live.summary
        counted = live.summary if live.summary.counts_in is not None else run
        sign = self._glyphs.paused if live.waits else self._glyphs.running
        silent = seconds(live.silent_ms) if live.silent_ms is not None else self._glyphs.missing
        numbers = {
            "silent": (silent, "text bold" if live.state is State.STALLED else "sec"),
            "step": (text.count(run.steps), "sec"),
            "tok": (text.tokens(total_tokens(counted)), "sec"),
            "cost": (run_cost(counted) or self._glyphs.missing, "sec"),
        }
        cells = [column(numbers[name][0], size, numbers[name][1], right=True) for name, size in _LIVE_NUMBERS]
        name = [
            Piece(sign, live.style),
            Piece(Clean(f" {text.truncate(run_label(run), 40)}"), "text bold"),
            Piece(Clean(f" {live.word}"), live.style),
            Piece(Clean(f"  {prompt_text(run)}"), "text"),
        ]
        return [*fill(name, max(0, width - width_of(cells))), *cells]

    def _detail_line(self, live: LiveRun, part: int) -> Line:
        """The open call and the last line; then the lines before."""
        call = self._open_call(live) if part == 1 else []
        lines = self._lines[live.summary.ref]
        pieces = [Piece(Clean("    ")), *call]
        if not lines:
            return tuple(pieces) if call else (*pieces, Piece(Clean("reading …"), "dim"))
        last = lines[part - 1]
        gap = Piece(Clean(f"  {self._glyphs.dot}  " if call else ""), "dim")
        message = live.run.body.last_assistant if live.run is not None and last.operation is Operation.CHAT else None
        if message and message.startswith(last.preview):  # the whole of it; the others are stored as previews
            sign, style = kind_of(last.operation, self._glyphs)
            return (*pieces, gap, Piece(Clean(f"{sign} "), style), Piece(prose(message, _LINE_CELLS), "text"))
        return (*pieces, gap, *step_pieces(last, action_of(last), _LINE_CELLS, self._glyphs))

    def _open_call(self, live: LiveRun) -> list[Piece]:
        """The open call and how long it has been open."""
        if live.waits:
            return []
        call, session = (live.liveness.open if live.liveness is not None else None), live.session
        if call is None:
            if session is None or not session.call or live.run is not None:
                return []
            since = f" {seconds(session.ms)}" if session.ms is not None else ""
            return [Piece(Clean(f"{one_line(session.call, _CALL_CELLS)}{since}"), live.style)]
        sign, _ = kind_of(call.operation, self._glyphs)
        least = self._glyphs.at_least if call.at_least else ""
        since = f" {least}{seconds(call.ms)}" if call.ms is not None and (call.ms >= 1000 or not least) else ""
        span = live.run.span(call.span) if live.run is not None else None
        label = one_line(call.name if span is None else open_text(span), _CALL_CELLS)
        more = f" +{call.others}" if call.others else ""
        return [Piece(sign, live.style), Piece(Clean(f" {label}{since}{more}"), f"{live.style} bold")]


def _last_lines(run: Run | None, most: int) -> list[Span]:
    """The last finished calls and messages with a text, newest first; without records of the program."""
    if run is None:
        return []
    last, still_open = len(run.spans), {*islice(reversed(run.unended), _LOOK_BACK)}
    positions = (i for i in range(last - 1, max(-1, last - 1 - _LOOK_BACK), -1) if i not in still_open)
    spans = (run.spans[i] for i in positions)
    return [*islice((span for span in spans if span.preview and not is_record(span)), most)]


def live_headings(width: int) -> list[Line]:
    """The column headings of the live runs."""
    cells = [column(Clean(name), size, "dim", right=True) for name, size in _LIVE_NUMBERS]
    name = fill([Piece(Clean("  run"), "dim")], max(0, width - width_of(cells)))
    return [tuple(fit([*name, *cells], width))]
