"""The pages *today* (running, waiting, failed and recent runs, spending) and *live* (what runs do now) as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final, NamedTuple

from tracetui import text
from tracetui.analysis import spending
from tracetui.analysis.arrangement import Item
from tracetui.analysis.effects.actions import action_of
from tracetui.analysis.liveness import CurrentState, Liveness, State, current_state, recorded_liveness, seconds
from tracetui.masking import clean, one_line
from tracetui.model import RUNNING_STATES, Run, RunRef, RunState, RunSummary, Span, Status
from tracetui.store.facts import run_time, total_tokens
from tracetui.text import Clean, tokens, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs, kind_of
from tracetui.views.labels import StateOf, run_label
from tracetui.views.list.runs import RunRows, cost_text
from tracetui.views.rows import Line, Piece, column, fill, fit, width_of
from tracetui.views.timeline.story import is_record
from tracetui.views.timeline.work import step_pieces

RECENT_SECONDS: Final = 8 * 86_400.0
"""Age of the oldest runs on the page: a week and a day."""
MOST: Final = 8
"""Rows of a section, except of recent runs, if the page has no room for all."""
MOST_RECENT: Final = 30
MOST_PROJECTS: Final = 8
_SPENT_CELL: Final = 10
_LIVE_NUMBERS: Final = (("silent", 7), ("step", 5), ("tok", 6), ("cost", 9))
"""Columns of numbers and their cells, each with a blank before it."""
_LOOK_BACK: Final = 50
"""Spans searched for the last lines."""
_MOST_LINES: Final = 8
"""Last lines of a run, if the page has room for as many of all."""
_LINE_CELLS: Final = 400
_CALL_CELLS: Final = 40
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


class Sections(NamedTuple):
    """The runs of the page, newest first, each in one section."""

    running: list[RunSummary]
    waiting: list[RunSummary]
    failed: list[RunSummary]
    """Since midnight."""
    recent: list[RunSummary]


def sections(runs: Iterable[RunSummary], *, now: float, state_of: StateOf = recorded_liveness) -> Sections:
    """Sort the top-level runs of the last days into sections."""
    found = Sections([], [], [], [])
    midnight = _midnight(now)
    top = [run for run in runs if run.parent is None and now - _changed(run) < RECENT_SECONDS]
    for run in sorted(top, key=lambda run: (-_changed(run), run.ref)):
        current = current_state(run, state_of(run), now=now).state
        if current is RunState.WAITING:
            found.waiting.append(run)
        elif current in RUNNING_STATES:
            found.running.append(run)
        elif run.failed and _changed(run) >= midnight:
            found.failed.append(run)
        else:
            found.recent.append(run)
    return found


def of_week(runs: Iterable[RunSummary], *, now: float) -> list[RunSummary]:
    """The runs with usage that began since Monday."""
    midnight = datetime.fromtimestamp(_midnight(now))
    monday = (midnight - timedelta(days=midnight.weekday())).timestamp()
    return [run for run in runs if run.usage is not None and run_time(run) >= monday]


def by_project(runs: Iterable[RunSummary], *, now: float) -> list[ProjectSpending]:
    """Spending today and since Monday, most this week first, the total last; empty if there was none."""
    midnight = _midnight(now)
    week: dict[str, list[RunSummary]] = defaultdict(list)
    for run in of_week(runs, now=now):
        week[run.source or "no project"].append(run)
    made = [
        ProjectSpending(
            project, spending.total(run for run in found if run_time(run) >= midnight), spending.total(found)
        )
        for project, found in week.items()
    ]
    made.sort(key=lambda one: (-(one.week.usd or 0.0), -(one.week.tokens or 0), one.project))
    if not made:
        return []
    every = [run for found in week.values() for run in found]
    today = spending.total(run for run in every if run_time(run) >= midnight)
    return [*made[:MOST_PROJECTS], ProjectSpending("", today, spending.total(every))]


def _changed(run: RunSummary) -> float:
    """The recorded end of a run; without one, the last change of its file, which may hold other runs too."""
    if run.started_at is not None and run.duration_ms is not None and run.status is not Status.RUNNING:
        return run_time(run) + run.duration_ms / 1000
    return max(run_time(run), run.modified_at)


def _midnight(now: float) -> float:
    return datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


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


class TodayRows:
    """See `tracetui.views.rows.Rows`. The key of a row is its run, or its project."""

    def __init__(
        self,
        found: Sections,
        spent: Sequence[ProjectSpending],
        *,
        now: float,
        glyphs: Glyphs = UNICODE,
        state_of: StateOf = recorded_liveness,
        room: int = 0,
        context: Clean | None = None,
    ) -> None:
        """`room`: rows of the page; sections have more rows than their maximum where they fit. `context`: what filled
        the contexts of the week, a line below the spending.
        """
        heading = ProjectSpending("spent", spending.NOTHING, spending.NOTHING)
        self._spent: list[ProjectSpending | Clean] = [heading, *spent] if spent else []
        if spent and context:
            self._spent.append(context)
        listed = ((found.running, MOST), (found.waiting, MOST), (found.failed, MOST), (found.recent, MOST_RECENT))
        sections = [
            _section(label, runs, count)
            for label, (runs, _), count in zip(
                ("running", "waiting for you", "failed today", "recent"),
                listed,
                _counts(listed, room - len(self._spent)),
                strict=True,
            )
        ]
        self._runs = RunRows([*chain(*sections)], now=now, glyphs=glyphs, state_of=state_of)
        self._first_spent = sum(map(len, sections[:-1]))
        self._glyphs = glyphs

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
        return row.project if isinstance(row, ProjectSpending) and row is not self._spent[0] else ""

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
            return self._runs.line(row, width)
        if not isinstance(row, ProjectSpending):
            return tuple(fit([Piece(Clean("  this week "), "dim"), Piece(row, "sec")], width))
        return self._spent_heading(width) if row is self._spent[0] else _spent_line(row, width)

    def _spent_heading(self, width: int) -> Line:
        label = Clean("spent by project ")
        rule = self._glyphs.rule * max(0, width - len(label) - 3 * _SPENT_CELL - 1)
        names = [column(Clean(name), _SPENT_CELL, "dim", right=True) for name in ("today", "this week", "tokens")]
        return tuple(fit([Piece(label, "dim"), Piece(Clean(f"{rule} "), "line"), *names], width))


def _spent_line(row: ProjectSpending, width: int) -> Line:
    room = max(8, width - 3 * _SPENT_CELL)
    name = truncate_middle(clean(row.project or "all", 200), room - 3)
    style = "text" if row.project else "sec"
    return tuple(
        fit(
            [
                column(Clean(f"  {name}"), room, style),
                column(cost_text(row.today), _SPENT_CELL, style, right=True),
                column(cost_text(row.week), _SPENT_CELL, style, right=True),
                column(tokens(row.week.tokens), _SPENT_CELL, "dim", right=True),
            ],
            width,
        )
    )


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
        self, running: Sequence[LiveRun], waiting: Sequence[LiveRun], *, glyphs: Glyphs = UNICODE, room: int = 0
    ) -> None:
        """`room`: rows of the page, shared by the last lines of all runs; each has at least one."""
        self._glyphs = glyphs
        self._rows: list[tuple[LiveRun, int] | str] = []
        self._lines: dict[RunRef, list[Span]] = {}
        """The last lines of each run, newest first."""
        count = max(1, len(running) + len(waiting))
        most = min(_MOST_LINES, max(1, (room - 2) // count - 1))
        for label, runs in (("running", running), ("waiting for you", waiting)):
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
        return tuple(fit(self._below(*row) if row[1] else self._first(row[0], width), width))

    def _first(self, one: LiveRun, width: int) -> list[Piece]:
        run = one.run.summary if one.run is not None else one.summary
        sign = self._glyphs.paused if one.waits else self._glyphs.running
        silent = seconds(one.silent_ms) if one.silent_ms is not None else self._glyphs.missing
        numbers = {
            "silent": (silent, "text bold" if one.state is State.STALLED else "sec"),
            "step": (text.count(run.steps), "sec"),
            "tok": (text.tokens(total_tokens(run)), "sec"),
            "cost": (cost_text(spending.of_run(run)), "sec"),
        }
        cells = [column(numbers[name][0], size, numbers[name][1], right=True) for name, size in _LIVE_NUMBERS]
        name = [
            Piece(sign, one.style),
            Piece(Clean(f" {text.truncate(run_label(run), 40)}"), "text bold"),
            Piece(Clean(f" {one.word}"), one.style),
            Piece(Clean(f"  {one_line(run.title or run.prompt, 200)}"), "text"),
        ]
        return [*fill(name, max(0, width - width_of(cells))), *cells]

    def _below(self, one: LiveRun, part: int) -> Line:
        """The open call and the last line; then the lines before."""
        call = self._open_call(one) if part == 1 else []
        lines = self._lines[one.summary.ref]
        pieces = [Piece(Clean("    ")), *call]
        if not lines:
            return tuple(pieces) if call else (*pieces, Piece(Clean("reading …"), "dim"))
        last = lines[part - 1]
        gap = f"  {self._glyphs.dot}  " if call else ""
        return (*pieces, Piece(Clean(gap), "dim"), *step_pieces(last, action_of(last), _LINE_CELLS, self._glyphs))

    def _open_call(self, one: LiveRun) -> list[Piece]:
        """The open call and how long it has been open."""
        if one.waits:
            return []
        found, session = (one.liveness.open if one.liveness is not None else None), one.session
        if found is None:
            if session is None or not session.call or one.run is not None:
                return []
            since = f" {seconds(session.ms)}" if session.ms is not None else ""
            return [Piece(Clean(f"{one_line(session.call, _CALL_CELLS)}{since}"), one.style)]
        sign, _ = kind_of(found.operation, self._glyphs)
        least = self._glyphs.at_least if found.at_least else ""
        since = f" {least}{seconds(found.ms)}" if found.ms is not None else ""
        given = one.run.span(found.span) if one.run is not None else None
        more = f" +{found.others}" if found.others else ""
        pieces = [
            Piece(sign, one.style),
            Piece(Clean(f" {one_line(found.name, _CALL_CELLS)}{since}{more}"), f"{one.style} bold"),
        ]
        if given is not None and given.preview:
            pieces.append(Piece(Clean(f"  {one_line(given.preview, 60)}"), "sec"))
        return pieces


def _last_lines(run: Run | None, most: int) -> list[Span]:
    """The last finished calls and messages with a text, newest first; without records of the program."""
    if run is None:
        return []
    last, still_open = len(run.spans), {*islice(reversed(run.unended), _LOOK_BACK)}
    found = (i for i in range(last - 1, max(-1, last - 1 - _LOOK_BACK), -1) if i not in still_open)
    spans = (run.spans[i] for i in found)
    return [*islice((span for span in spans if span.preview and not is_record(span)), most)]


def live_headings(width: int) -> list[Line]:
    """The column headings of the live runs."""
    cells = [column(Clean(name), size, "dim", right=True) for name, size in _LIVE_NUMBERS]
    name = fill([Piece(Clean("  run"), "dim")], max(0, width - width_of(cells)))
    return [tuple(fit([*name, *cells], width))]
