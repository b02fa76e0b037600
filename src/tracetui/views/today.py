"""The *today* page as rows: running, waiting, failed and recent sessions, and spending."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from tracetui.analysis import spending
from tracetui.analysis.arrangement import Item
from tracetui.analysis.liveness import GOING, Turn, session_state
from tracetui.masking import clean
from tracetui.model import RunSummary
from tracetui.store.facts import recorded_running, run_time
from tracetui.text import Clean, tokens, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.list.runs import RunRows, cost_text
from tracetui.views.rows import Line, Piece, column, fit
from tracetui.views.standing import StateOf, recorded_state

RECENT_SECONDS: Final = 8 * 86_400.0
"""Age of the oldest runs on the page: a week and a day."""
MOST: Final = 8
"""Rows of a section, except of recent runs, if the page has no room for all."""
MOST_RECENT: Final = 30
MOST_PROJECTS: Final = 8
_CELL: Final = 10


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


def sections(runs: Iterable[RunSummary], *, now: float, state_of: StateOf = recorded_state) -> Sections:
    """Sort the top-level runs of the last days into sections."""
    found = Sections([], [], [], [])
    midnight = _midnight(now)
    top = [run for run in runs if run.parent is None and now - _changed(run) < RECENT_SECONDS]
    for run in sorted(top, key=lambda run: (-_changed(run), run.ref)):
        state = state_of(run)
        session = session_state(run, state, now=now)
        if session is not None and session.turn is Turn.WAITING:
            found.waiting.append(run)
        elif state in GOING:
            found.running.append(run)
        elif run.failed and _changed(run) >= midnight:
            found.failed.append(run)
        else:
            found.recent.append(run)
    return found


def by_project(runs: Iterable[RunSummary], *, now: float) -> list[ProjectSpending]:
    """Spending today and since Monday, most this week first, the total last; empty if there was none."""
    midnight = _midnight(now)
    monday = (datetime.fromtimestamp(midnight) - timedelta(days=datetime.fromtimestamp(midnight).weekday())).timestamp()
    week: dict[str, list[RunSummary]] = defaultdict(list)
    for run in runs:
        if run_time(run) >= monday and run.usage is not None:
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
    if run.started_at is not None and run.duration_ms is not None and not recorded_running(run):
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
        state_of: StateOf = recorded_state,
        room: int = 0,
    ) -> None:
        """`room`: rows of the page; sections have more rows than their maximum where they fit."""
        self._spent = [ProjectSpending("spent", spending.NOTHING, spending.NOTHING), *spent] if spent else []
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

    def _row(self, index: int) -> int | ProjectSpending:
        """The position among the runs, or the spending of a project."""
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
        return "" if isinstance(row, int) or row is self._spent[0] else row.project

    def key(self, index: int) -> Hashable:
        row = self._row(index)
        return self._runs.key(row) if isinstance(row, int) else (row.project,)

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
        return self._runs.plain(row) if isinstance(row, int) else row.project

    def line(self, index: int, width: int) -> Line:
        row = self._row(index)
        if isinstance(row, int):
            return self._runs.line(row, width)
        return self._spent_heading(width) if row is self._spent[0] else _spent_line(row, width)

    def _spent_heading(self, width: int) -> Line:
        label = Clean("spent by project ")
        rule = self._glyphs.rule * max(0, width - len(label) - 3 * _CELL - 1)
        names = [column(Clean(name), _CELL, "dim", right=True) for name in ("today", "this week", "tokens")]
        return tuple(fit([Piece(label, "dim"), Piece(Clean(f"{rule} "), "line"), *names], width))


def _spent_line(row: ProjectSpending, width: int) -> Line:
    room = max(8, width - 3 * _CELL)
    name = truncate_middle(clean(row.project or "all", 200), room - 3)
    style = "text" if row.project else "sec"
    return tuple(
        fit(
            [
                column(Clean(f"  {name}"), room, style),
                column(cost_text(row.today), _CELL, style, right=True),
                column(cost_text(row.week), _CELL, style, right=True),
                column(tokens(row.week.tokens), _CELL, "dim", right=True),
            ],
            width,
        )
    )
