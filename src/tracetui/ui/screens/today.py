"""The pages *today* (waiting, running, failed and recent runs, spending) and *live* (what runs do now)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult

from tracetui import masking
from tracetui.analysis.arrangement import Arrangement, arrange
from tracetui.analysis.liveness import current_state, liveness
from tracetui.live.jobs import WatchedRuns, messages_job
from tracetui.live.mailbox import Mail
from tracetui.masking import prose
from tracetui.model import Run, RunRef, RunSummary
from tracetui.text import Clean, grouped, quantity
from tracetui.ui.commands import LIVE, TODAY, Command
from tracetui.ui.layout import FRAME, NARROW
from tracetui.ui.screens.lists import ArrangedScreen, RunsListScreen
from tracetui.ui.widgets.frame import progress_text, short_path, with_hints
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.labels import arrangement_title, cost_text, spending_text
from tracetui.views.list.columns import COLUMNS
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.today import (
    CHOICES,
    NO_PROJECT,
    STATE,
    LiveRows,
    LiveRun,
    ProjectSpending,
    Sections,
    TodayRows,
    by_day,
    by_project,
    live_headings,
    of_week,
    sections,
)

if TYPE_CHECKING:
    from tracetui.store.query import Context as QueryContext

TICK_SECONDS: Final = 1.0
_DOT: Final = Piece(Clean("  ·  "), "dim")
_NO_POSITION: Final = (Piece(Clean("newest first"), "dim"),)
"""Instead of the scroll position, which would count rows, not runs."""


USUAL: Final = Arrangement(group=STATE)
MAX_READ: Final = 60
"""Runs of the page that are read for their last message."""
MAX_SPANS: Final = 20_000
"""Spans of the largest run that is read for it."""


class TodayView(LineView):
    """The rows of the page."""

    sorts: ClassVar[Mapping[str, str]] = {
        name: column.sort for name, column in COLUMNS.items() if column.sort in CHOICES.sorts
    }


class _Page(RunsListScreen):
    """A page of `sections` of runs, which shows each second what they are now."""

    def __init__(self, pane: str, commands: Sequence[Command], view: LineView | None = None) -> None:
        super().__init__(pane, pane.capitalize(), commands, view)
        self._by_state = Sections([], [], [], [])

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(TICK_SECONDS, self.show_rows)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.show_rows()

    def action_copy_resume(self) -> None:
        """Copy the command that resumes the session; it isn't run."""
        self.copy_resume(self.app.store.summary(self.ref))

    def on_closed(self) -> None:
        self.app.surveys.stop()

    def path(self) -> tuple[Line, Line]:
        roots = self.app.roots
        more = f" +{len(roots) - 1}" if len(roots) > 1 else ""
        place = Clean(short_path(roots[0]) + more) if roots else Clean("")
        return (Piece(Clean(f"{self.pane}  "), "text bold"), Piece(place, "sec")), ()

    def _counts(self, *failed: tuple[int, str, str]) -> list[Piece]:
        """How many runs are waiting and running, and `failed`, if any."""
        by_state = self._by_state
        running = (len(by_state.running), "running", "status.running bold")
        waiting = (len(by_state.waiting), "waiting for you", "status.paused bold")
        counts = [count for count in (waiting, running, *failed) if count[0]]
        pairs = ((Piece(Clean(f"{grouped(number)} {label}"), style), _DOT) for number, label, style in counts)
        return [*chain.from_iterable(pairs)]


class TodayScreen(_Page, ArrangedScreen):
    """Enter reads a run, or filters the list by a project; ``yr`` copies the command that resumes a session."""

    def __init__(
        self, commands: Sequence[Command], arrangement: Arrangement = USUAL, cursor: Hashable | None = None
    ) -> None:
        """`cursor`: the row under it, when the page is reopened."""
        super().__init__(TODAY, commands, TodayView(id=TODAY))
        self.arrangement, self.choices, self._cursor = arrangement, CHOICES, cursor
        self._drawn: tuple[object, ...] | None = None
        """Revision of the store, second, size and arrangement of the page that are shown."""
        self._moved = cursor is not None
        """Whether the user moved the cursor; until then it stays on the first row."""
        self._total = 0
        """Runs of the last days."""
        self._spent: ProjectSpending | None = None
        """What all runs used."""
        self._messages: dict[RunRef, tuple[RunSummary, Clean]] = {}
        """The last message of each run, and the version of the run that was read for it."""

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield Box(self.list, classes="single")
        yield self._footer

    def receive(self, mail: Mail) -> None:
        progress = mail.progress
        if progress is not None and progress.job.name == "messages":
            for ref, message in progress.new:
                if ref in self._messages:
                    self._messages[ref] = self._messages[ref][0], prose(message)
            if progress.new:
                self.list.redraw_rows()
        if self._drawn is None or not self.app.stage:
            self.show_rows()

    def show_rows(self) -> None:
        """Show the runs as they are now, at most once a second."""
        app = self.app
        room, width = app.size.height - FRAME - 2, app.size.width - 2
        inputs = app.store.revision, int(app.clock()), room, width, self.arrangement, app.stage, app.contexts.revision
        if inputs == self._drawn or not self.is_active:
            return
        self._drawn, now, runs = inputs, app.clock(), list(app.store.runs.values())
        state_of, glyphs, arrangement = app.liveness.state_in_list, app.look.glyphs, self.arrangement
        all_sections = sections(runs, now=now, state_of=state_of)
        self._total = sum(map(len, all_sections))
        context = app.query_context() if arrangement.query else None
        self._by_state = Sections(*(self._arrange_runs(part, now, context) for part in all_sections))
        groups = None
        if arrangement.group != STATE:
            recent = [*chain(*self._by_state)]
            groups = arrange(recent, [], arrangement, now=now, state=app.liveness.run_state, context=context)
        spent = by_project(runs, now=now)
        self._spent = spent[-1] if spent else None
        rows = TodayRows(
            self._by_state,
            spent,
            now=now,
            glyphs=glyphs,
            state_of=state_of,
            room=room,
            groups=groups,
            sorted_by=arrangement.sort if arrangement != replace(USUAL, group=arrangement.group) else "",
            days=by_day(runs, now=now),
            message_of=self._message_of,
            context=self._week_line(of_week(runs, now=now)),
            width=width,
        )
        title = arrangement_title(arrangement, arrangement.query, ungrouped=STATE)
        if len(rows):
            first = next((rows.key(i) for i in range(len(rows)) if rows.selectable(i)), None)
            key = self._cursor if self._cursor is not None else None if self._moved else first
            self._cursor = None
            self.list.show(rows, key=key, title=title, heading=rows.heading)
            self._ask(rows.refs)
        else:
            message = "reading …" if app.stage else "no runs in the last week; q shows all runs"
            self.list.show(ListRows([(Piece(Clean(message), "dim"),)], headings=[0]), title=title, heading=lambda _: ())
        self.refresh_frame()

    def _week_line(self, week: Sequence[RunSummary]) -> Clean | None:
        """What filled the contexts of the week; None until that is read, after all runs are counted."""
        contexts, week = self.app.contexts, sorted(week, key=lambda run: run.ref)
        if not self.app.stage:
            contexts.find(week, sums=True)
        sums = contexts.sums(week)
        if sums is None:
            return None
        from tracetui.views.context import week_line

        return week_line(sums, masking.current())

    def _arrange_runs(self, runs: list[RunSummary], now: float, context: QueryContext | None) -> list[RunSummary]:
        """The runs of a section that the filter finds, in the order that was chosen; the usual one is there already."""
        arrangement = replace(self.arrangement, group="none")
        if arrangement == replace(USUAL, group="none"):
            return runs
        items = arrange(runs, [], arrangement, now=now, state=self.app.liveness.run_state, context=context)
        return [item for item in items if isinstance(item, RunSummary)]

    # ---- last messages

    def _message_of(self, ref: RunRef) -> Clean:
        return self._messages.get(ref, (None, Clean("")))[1]

    def _ask(self, refs: Sequence[RunRef]) -> None:
        """Read the last messages of the runs on the page that are new or changed, once they are counted."""
        runs = self.app.store.runs
        wanted = [
            ref
            for ref in refs[:MAX_READ]
            if (run := runs[ref]).deep
            and (run.spans or 0) < MAX_SPANS
            and (ref not in self._messages or self._messages[ref][0] is not run)
        ]
        if wanted and not self.app.stage and not self.app.surveys.is_busy:  # the contexts are read first
            self._messages |= {ref: (runs[ref], self._message_of(ref)) for ref in wanted}
            self.app.surveys.ask(messages_job(wanted))

    # ---- arrangement

    def action_filter(self) -> None:
        """Ask which runs to show."""
        runs = self.app.run_filter()

        def apply(query: str) -> None:
            self.show_arrangement(replace(self.arrangement, query=query))

        count_matches = lambda: (sum(map(len, self._by_state)), self._total, "runs")  # noqa: E731
        filtered = runs._replace(apply=apply, count_matches=count_matches)
        self.ask_filter(self.arrangement.query, filtered)

    @on(LineView.Moved)
    def _row_moved(self) -> None:
        self._moved = True

    @property
    def ref(self) -> RunRef | None:
        """The run under the cursor."""
        rows = self.list.rows
        run = rows.run(self.list.position) if isinstance(rows, TodayRows) and len(rows) else None
        return None if run is None else run.ref

    def step_back(self) -> None:
        if self.arrangement.query:
            self.show_arrangement(replace(self.arrangement, query=""))
        else:
            super().step_back()

    def action_open(self) -> None:
        """Read the run under the cursor, or list the runs of its project."""
        rows = self.list.rows
        if self.ref is not None:
            self.app.visit(self.ref, None)
        elif isinstance(rows, TodayRows) and (project := rows.project(self.list.position)):
            self.app.filter_runs("source", None if project == NO_PROJECT else project)

    def path(self) -> tuple[Line, Line]:
        (left, _), spent = super().path(), self._spent
        if spent is None or self.app.size.width < NARROW:
            return left, ()
        parts = ((spent.today, "today"), (spent.week, "this week"))
        sums = [f"{cost_text(part)} {label}" for part, label in parts if part.usd]
        return left, (Piece(Clean(f" {self.app.look.glyphs.dot} ".join((quantity(self._total, "run"), *sums))), "sec"),)

    def action_projects(self) -> None:
        """Go to the first project, from a project to the first run."""
        rows = self.list.rows
        if isinstance(rows, TodayRows):
            is_wanted = rows.run if rows.project(self.list.position) else rows.project
            self.list.move_to(next((i for i in range(len(rows)) if is_wanted(i)), self.list.position))

    def recreate(self) -> TodayScreen:
        return TodayScreen(self.commands, self.arrangement, self.list.cursor)

    def summary(self) -> Line:
        by_state = self._by_state
        pieces = self._counts((len(by_state.failed), "failed today", "status.error bold"))
        if not pieces:
            pieces = [Piece(Clean("nothing running or waiting"), "text"), _DOT]
        if self.app.stage:
            pieces[-1:] = [_DOT, Piece(Clean(progress_text(self.app)), "status.running"), _DOT]
        live = (("L", "live"),) if by_state.running else ()
        hints = (("↵", "read"), *live, ("yr", "copy resume command"), ("q", "all runs"))
        return with_hints(pieces, hints, self.app.size.width)


class LiveView(LineView):
    """The rows of the dashboard; the cursor covers all rows of a run."""

    def is_at_cursor(self, index: int) -> bool:
        rows = self.rows
        if not isinstance(rows, LiveRows):
            return super().is_at_cursor(index)
        run = rows.run(index)
        return run is not None and run is rows.run(self.position)

    def repaint_row(self, index: int) -> None:
        super().repaint_row(index)
        while self._is_below(index + 1):
            index += 1
            super().repaint_row(index)

    def clicked_row(self, index: int) -> None:
        while self._is_below(index):
            index -= 1
        super().clicked_row(index)

    def _is_below(self, index: int) -> bool:
        """Whether a row belongs to the run of a row above."""
        rows = self.rows
        return isinstance(rows, LiveRows) and rows.run(index) is not None and not rows.selectable(index)


class LiveScreen(_Page):
    """Shows running runs, and sessions that wait for a person. Reads only the new data of each."""

    def __init__(self, commands: Sequence[Command], cursor: RunRef | None = None) -> None:
        super().__init__(LIVE, commands, LiveView(id=LIVE))
        self._watched = WatchedRuns()
        self._busy = False
        """Whether the job reads the runs."""
        self._read: dict[RunRef, tuple[RunSummary, Run | None]] = {}
        """The version of each run that was asked for, and the run as read."""
        self._cursor = cursor

    def on_screen_resume(self) -> None:
        self._busy = False  # another screen's job may have replaced ours
        super().on_screen_resume()

    def receive(self, mail: Mail) -> None:
        progress = mail.progress
        if progress is not None and progress.job.name == "watch":
            for run in progress.new:
                ref = run.summary.ref
                if ref in self._read:
                    self._read[ref] = self._read[ref][0], run
            self._busy = not progress.finished
        if progress is not None or mail.files:
            self.show_rows()

    def show_rows(self) -> None:
        """Show the live runs as they are now, and read on those that changed."""
        app = self.app
        if not self.is_active:
            return
        now, store = app.clock(), app.store
        going = {ref for ref in store.unended if app.liveness.is_going(store.runs[ref])}
        runs = (run for run in store.runs.values() if run.is_session or run.ref in going)
        self._by_state = sections(runs, now=now, state_of=app.liveness.state_in_list)
        waiting, running = ([self._live(run, now) for run in by_start(part)] for part in self._by_state[:2])
        self._ask([run.summary for run in (*waiting, *running)])
        if waiting or running:
            rows = LiveRows(waiting, running, glyphs=app.look.glyphs, room=app.size.height - FRAME - 2)
            self.list.show(rows, key=self._cursor, title_right=_NO_POSITION, heading=live_headings)
            self._cursor = None
        else:
            message = "reading …" if app.stage == "list" else "no live runs; they appear here when they start"
            self.list.show(ListRows([(Piece(Clean(message), "dim"),)], headings=[0]), heading=lambda width: ())
        self.refresh_frame()

    def _live(self, summary: RunSummary, now: float) -> LiveRun:
        app, (_, run) = self.app, self._read.get(summary.ref, (summary, None))
        state, changed = app.liveness.state_in_list(summary), app.store.changed_at(summary)
        session = current_state(summary, state, now=now)
        run_liveness = None
        if run is not None:
            pulse = app.store.pulses.get(summary.ref)
            arrivals = tuple(pulse.arrivals) if pulse is not None else ()
            run_liveness = liveness(run, now=now, arrivals=arrivals, changed_at=changed)
            state = state if session.by_last_event else run_liveness.state
        silent = run_liveness.silent_ms if run_liveness is not None else max(0.0, now - changed) * 1000
        return LiveRun(summary, state, silent, session, run, run_liveness)

    def _ask(self, runs: Sequence[RunSummary]) -> None:
        """Read on the runs that changed since they were read, unless they are being read."""
        changed = [run.ref for run in runs if run.ref not in self._read or self._read[run.ref][0] is not run]
        if self._busy or not changed:
            return
        self._read = {run.ref: (run, self._read.get(run.ref, (run, None))[1]) for run in runs}
        self._busy = True
        self.app.surveys.ask(self._watched.job(self.app.engine.readers, [run.ref for run in runs]))

    @on(LineView.Moved)
    def _row_moved(self) -> None:
        self.refresh_frame()

    @property
    def ref(self) -> RunRef | None:
        """The run under the cursor."""
        return self.list.cursor if isinstance(self.list.cursor, RunRef) else None

    def action_open(self) -> None:
        """Open the run under the cursor, and follow it if it is running."""
        if self.ref is not None:
            self.app.visit(self.ref, None, follow=False)

    def recreate(self) -> LiveScreen:
        return LiveScreen(self.commands, self.ref)

    def summary(self) -> Line:
        from tracetui.analysis import spending

        by_state, pieces = self._by_state, self._counts()
        if spent := spending_text(spending.total((*by_state.running, *by_state.waiting))):
            pieces += [Piece(Clean(f"{spent} so far"), "sec"), _DOT]
        hints = (("↵", "follow"), ("yr", "copy resume command"), ("Esc", "back"))
        return with_hints(pieces, hints, self.app.size.width)


def by_start(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """The runs in the order of their start, newest first: rows don't move while runs go on."""
    return sorted(runs, key=lambda run: (-(run.started_at or run.modified_at), run.ref))
