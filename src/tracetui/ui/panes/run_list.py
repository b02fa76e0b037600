"""Pane 1: the runs, and when their list is arranged: at once for a key, seldom while thousands of files arrive."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.message import Message
from textual.timer import Timer

from tracetui.analysis.arrangement import Arrangement, Item, Order, arrange, row_key_of
from tracetui.analysis.histogram import Histogram
from tracetui.model import Problem, RunRef, RunSummary, Status
from tracetui.store.facts import start_of
from tracetui.store.relations import has_end
from tracetui.text import Clean, exact, grouped, quantity
from tracetui.ui.base_app import HostApp
from tracetui.ui.services.pacing import rest_seconds
from tracetui.ui.widgets.line_view import SIDEWAYS, LineView
from tracetui.ui.widgets.prompt import Prompter
from tracetui.views.glyphs import Glyphs
from tracetui.views.labels import arrangement_title, empty, spending_text
from tracetui.views.list import runs
from tracetui.views.list.columns import COLUMNS, fit_columns, heading
from tracetui.views.list.histogram import MIN_BARS, Strip
from tracetui.views.list.result import Relationship
from tracetui.views.rows import Line, ListRows, Piece

if TYPE_CHECKING:
    from tracetui.store.query import Columns, Context
    from tracetui.ui.widgets.prompt import Filter

QUERY_LABEL: Final = "filter: words status:error tool:… dur>5s since:2h (a or b)"
REST_SECONDS: Final = 0.1
"""While files arrive, the list changes no oftener than people read."""
MAX_REST_SECONDS: Final = 1.0
"""Longest rest once all runs are counted: new runs are in their places after it, however long arranging takes."""
MANY: Final = 1_000
"""Runs from which arranging takes so long that a thread does it where no key waits for it."""
MIN_PAGE: Final = 20
"""Rows of the first page before the list has its size."""
BETWEEN_SECONDS: Final = 0.002
"""Pause between two steps of precomputation."""
REUNION_SECONDS: Final = 5.0
"""How long the cursor waits for a run that disappeared, before it selects the run at its position."""


MIN_LIST: Final = 18
"""Rows of a list that shows a histogram."""
TALL_LIST: Final = 30
"""Rows of a list that shows a tall one."""
LOW_BARS, TALL_BARS = 2, 4


class RunList(LineView):
    """The run list. Selecting a row previews the run, opening it enters it."""

    number = 1
    pane_name = "Runs"

    app: HostApp

    sorts: ClassVar[Mapping[str, str]] = {name: column.sort for name, column in COLUMNS.items() if column.sort}

    class Dragged(Message):
        """The right edge of the list was dragged to a column of the screen."""

        def __init__(self, column: int) -> None:
            self.column = column
            super().__init__()

    def __init__(
        self,
        arrangement: Arrangement,
        arranged: Callable[[], None],
        filter_by: Callable[[str], None],
        asker: Prompter,
    ) -> None:
        """`arranged` is called when the rows are other ones, before they are painted; `filter_by` with a query."""
        super().__init__(id="runs")
        self.arrangement = arrangement
        self.mark: Callable[[RunRef], str] = lambda ref: ""
        """How a run is marked."""
        self.chosen = False
        """True once the reader moved the cursor: from then on it stays where it is."""
        self.complete = False
        """True once all runs are listed: those that appear later are new."""
        self._arranged, self._filter_by, self._asker = arranged, filter_by, asker
        self._columns: Columns[RunSummary] | None = None
        self._order = Order()
        """What queries found out about the runs; there from the first query on."""
        self._shown_as: Arrangement | None = None
        """The arrangement of the rows that are shown."""
        self._above: set[RunRef] = set()
        """Runs that appeared above the first row shown, and were not in view since."""
        self._lost: tuple[RunSummary, float] | None = None
        """The run that was under the cursor when its file went: it may come back, or have another name now.
        And since when, as `now`.
        """
        self._revision = self._members = -1
        """Of the store, when the list was arranged."""
        self.filtered: runs.RunRows | None = None
        """The rows, even if there are none, if a filter hides runs."""
        self._timer: Timer | None = None
        """Arranges the list after its rest."""
        self._after = 0.0
        self._places: dict[RunRef, Hashable] = {}
        self._dragging = self._dragged = False
        self._strip: tuple[tuple[Histogram | None, int, int], Strip] | None = None
        """The histogram as drawn, by bars, width and height."""
        self._bar: int | None = None
        """The marked bar."""
        self._late: list[RunSummary] | None = None
        """While a thread arranges: the runs that changed since it was given them."""

    # ---- when it is arranged

    @property
    def due(self) -> bool:
        """Whether the store has changed since the list was arranged."""
        return self._revision != self.app.store.revision or self._revision < 0

    @property
    def settled(self) -> bool:
        """Whether no thread is arranging it."""
        return self._late is None

    @property
    def has_all(self) -> bool:
        """Whether the runs that are shown are those of the store."""
        return self._members == self.app.store.members

    def has_placed(self, ref: RunRef) -> bool:
        """Whether the run has its row, or will have none as things are."""
        return self.has_all or self.rows.index(ref) is not None

    def store_changed(self, *, last: bool) -> None:
        """Show what changed: in the rows that are there at once, in their order at once if that was not done just now,
        else soon. A list that is not on the screen waits until it is.
        """
        store = self.app.store
        if last or self._revision < 0:
            self.rearrange()
        elif self.is_on_screen:
            touched = store.touched()
            self.renew(touched)
            if self._late is not None:
                self._late += touched
            came_or_went = self._members != store.members
            if came_or_went and time.monotonic() >= self._after:
                self.rearrange()
            elif not came_or_went and self._timer is None and not self._has_moved(touched):
                self._revision = store.revision
            else:
                self._schedule()

    def _has_moved(self, touched: Iterable[RunSummary]) -> bool:
        """Whether a run belongs elsewhere now: the places of runs without an end are remembered."""
        place = self._place()
        return any(place(run) != self._places.get(run.ref) for run in touched)

    def _place(self) -> Callable[[RunSummary], Hashable]:
        app = self.app
        return row_key_of(self.arrangement, now=app.clock(), state=app.liveness.run_state, context=self._query_context)

    @property
    def _query_context(self) -> Context | None:
        """What a query can ask; nothing is asked without one."""
        return self.app.query_context() if self.arrangement.query else None

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = self.set_timer(max(REST_SECONDS, self._after - time.monotonic()), self._catch_up)

    def _catch_up(self) -> None:
        self._timer = None
        self.refresh_if_due()

    def refresh_if_due(self) -> None:
        """The list may be on the screen again: refresh it."""
        if self.due and self.is_on_screen:
            self.app.pause_scan()
            with self.app.batch_update():
                self.rearrange()

    def verdicts_changed(self) -> None:
        """Show new verdicts. Only where a query may ask for them, or where causes were merged, is a run elsewhere."""
        if self.arrangement.query or self.arrangement.group == "cause":
            self.rearrange(drop_pending=True)
        else:
            self.redraw_rows()

    def rearrange(self, *, drop_pending: bool = False) -> None:
        """Show the current runs; the cursor stays on its run.

        A thread arranges so many that keys would have to wait. `drop_pending`: what it arranges now is outdated.
        """
        if drop_pending:
            self._late = None
        if len(self.app.store.runs) < MANY or self.arrangement.query:
            began = time.thread_time()
            make = self._begin()
            self._late = None
            self._show(make(), time.thread_time() - began)
        elif self._late is not None:
            self._schedule()
        else:
            make, late = self._begin(), list[RunSummary]()
            self._late = late

            def work() -> Callable[[], None]:
                began = time.thread_time()
                rows = make()
                rows.prepare(self.app.engine.rest)
                took = time.thread_time() - began
                return lambda: self._finish_arranging(rows, late, took)

            self.app.engine.run_in_background(work)

    def _finish_arranging(self, rows: runs.RunRows, late: list[RunSummary], took: float) -> None:
        """Show what a thread arranged, unless that was superseded."""
        if self._late is late:
            self._late = None
            for run in late:
                rows.renew(run)
            self._show(rows, took)

    def _begin(self) -> Callable[[], runs.RunRows]:
        """Return a function that makes rows of the current runs; any thread may call it if there is no query."""
        app, store, arrangement = self.app, self.app.store, self.arrangement
        self._revision, self._members = store.revision, store.members
        store.touched()
        place = self._place()
        self._places = {ref: place(store.runs[ref]) for ref in store.unended}
        summaries, problems = (
            list(store.runs.values()),
            [problem for problems in store.problems.values() for problem in problems[:1]],
        )
        glyphs, order, context, now = self.look.glyphs, self._order, self._query_context, app.clock()
        columns = self._kept_columns() if arrangement.query else None
        run_state, state_of = app.liveness.run_state, app.liveness.state_in_list
        decisions = app.verdicts.sidecar if arrangement.group == "cause" else None

        def make() -> runs.RunRows:
            items = arrange(
                summaries,
                problems,
                arrangement,
                now=now,
                state=run_state,
                context=context,
                columns=columns,
                order=order,
                decisions=decisions,
            )
            return runs.RunRows(
                items,
                now=now,
                glyphs=glyphs,
                chosen=arrangement.columns,
                sorted_by=_heading_sort(arrangement),
                state_of=state_of,
                relationship_of=self.relationship,
            )

        return make

    def relationship(self, run: RunSummary, glyphs: Glyphs) -> Relationship:
        """Facts of a run that its trace doesn't have: mark, relations, verdict."""
        mark = self.mark(run.ref)
        if self.app.stage:  # relating runs as they arrive would delay the list
            return Relationship(mark)
        relationship = self.app.comparisons.relationship(run, mark, glyphs)
        label = self.app.verdicts.label_of(run)
        return relationship._replace(after=(*relationship.after, *label)) if label else relationship

    def _show(self, rows: runs.RunRows, took: float) -> None:
        """Show arranged rows; `took`: seconds of the processor that arranging them took."""
        app, began, arrangement = self.app, time.thread_time(), self.arrangement
        before = self.rows
        self.filtered = rows if arrangement.query or arrangement.failures else None
        key = self._find_lost_run(rows, rows.now) if self.chosen else self._first_run(rows)
        self.show(
            rows,
            key=key,
            title=arrangement_title(arrangement, arrangement.query, ungrouped="day"),
            title_right=self._match_count(rows, len(app.store.runs)),
            heading=self._heading_lines,
        )
        if self._shown_as != arrangement:
            self._shown_as = arrangement
            self._above.clear()
        elif self.complete and isinstance(before, runs.RunRows):
            above = (rows.key(i) for i in range(self.top))
            self._above |= {ref for ref in above if isinstance(ref, RunRef) and before.index(ref) is None}
            self.refresh_line(0)
        if not len(rows):
            self.show_empty(empty(app.roots, app.stage, arrangement.query, bool(app.store.runs)))
        self._arranged()
        longest = inf if app.stage else MAX_REST_SECONDS
        self._after = time.monotonic() + rest_seconds(took + time.thread_time() - began, REST_SECONDS, longest)
        if self._timer is not None:  # it waits for the end of an earlier rest
            self._timer.stop()
            self._timer = None
            self._schedule()

    # ---- size

    @property
    def wanted_height(self) -> int:
        """Rows of the whole list, with title, headings and a blank row."""
        return len(self.rows) + 3

    @property
    def result_width(self) -> int:
        """Cells at which no result on the screen is cut; the most until all are counted, so that nothing moves."""
        rows = self.rows
        if self.app.stage or not isinstance(rows, runs.RunRows):
            return runs.WIDEST
        return rows.wanted_width(self.top, self.page) + 2

    @property
    def least_width(self) -> int:
        """Cells for the columns that it has to show."""
        return self.rows.least_width + 2 if isinstance(self.rows, runs.RunRows) else 0

    # ---- rows

    def _kept_columns(self) -> Columns[RunSummary]:
        if self._columns is None:
            from tracetui.store.query import Columns

            self._columns = Columns()
        return self._columns

    # ---- queries

    def filter(self) -> Filter:
        """What the filter of the list works on."""
        from tracetui.store import query
        from tracetui.ui.widgets.prompt import Filter

        app = self.app

        def offers(text: str, cursor: int) -> Sequence[query.Completion]:
            return query.complete(text, cursor, query.RUN_KEYS, app.store.runs.values(), app.query_context())

        return Filter(
            self._filter_by,
            lambda text: query.parse_prefix(text, app.query_context())[1],
            offers,
            lambda: (len(self.refs()), len(app.store.runs), "runs"),
        )

    def action_filter(self) -> None:
        """Ask which runs to show."""
        from tracetui.ui.widgets.prompt import QueryQuestion

        self._asker.ask(QueryQuestion(QUERY_LABEL, self.arrangement.query, self.filter(), self._asker.hint))
        self.look_ahead()

    def look_ahead(self, steps: Iterator[None] | None = None) -> None:
        """Find out what the first word of a query needs, in small steps between keys, so that it waits for nothing."""
        if steps is None:
            from tracetui.store.query import RUN_KEYS

            order = self._order.of(self.app.store.runs.values(), self.arrangement)
            steps = self._kept_columns().ahead("", RUN_KEYS.hay, order)
        if next(steps, steps) is None:
            self.set_timer(BETWEEN_SECONDS, lambda: self.look_ahead(steps))

    def action_facets(self) -> None:
        """Pick the filter from the values that there are."""
        self.app.pick_query(self._filter_by)

    def action_ledger(self) -> None:
        """Show the parse coverage of the listed runs, and the ignored files that look like traces."""
        from tracetui.views.labels import ledger_text
        from tracetui.views.timeline.header import FRAME

        store, refs = self.app.store, self.refs()
        uncounted = sum(not store.runs[ref].deep for ref in refs)
        more = f" · {grouped(uncounted)} of {grouped(len(refs))} not counted yet" if uncounted else ""
        if store.problems:
            more += f" · {quantity(len(store.problems), 'unreadable file')}"
        if similar := {path: shape for path, shape in store.ignored.items() if shape}:
            path, shape = next(iter(similar.items()))
            others = f" and {grouped(len(similar) - 1)} more" if len(similar) > 1 else ""
            more += f" · ignored, but looks like a trace: {exact(posixpath.basename(path), 40)} ({shape}){others}"
        elif store.ignored:
            more += f" · {quantity(len(store.ignored), 'file')} ignored (tracetui doctor lists them)"
        room = max(0, self.app.size.width - len(more) - FRAME)
        self.say(ledger_text(store.ledger(refs), glyphs=self.look.glyphs, width=room) + more)

    # ---- its runs

    def renew(self, changed: Iterable[RunSummary]) -> None:
        """Show what these runs are now, each in the row that it has."""
        rows = self.rows
        if not isinstance(rows, runs.RunRows):
            return
        for run in changed:
            for index in rows.renew(run):
                self.redraw(index)

    def move_to(self, position: int, *, center: bool = False) -> None:
        self._lost = None
        super().move_to(position, center=center)

    def post_moved(self) -> None:
        """Post `Moved` to the screen itself: the run is read while the row is painted."""
        self._mark_bar()
        if self.cursor is not None:
            self.screen.post_message(self.Moved(self, self.cursor))

    def _find_lost_run(self, rows: runs.RunRows, now: float) -> RunRef | None:
        """The run that the cursor lost, if it is among these: its file was renamed, moved or written again."""
        item = self._item
        if self._lost is not None and self._shown_as == self.arrangement and now - self._lost[1] > REUNION_SECONDS:
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
        label = Piece(Clean(f"{len(self._above)} new above {self.look.glyphs.above} "), "status.running bold")
        return (label, Piece(Clean("g"), "key bold"))

    def tick(self, now: float) -> None:
        """Redraw the duration and the state of runs without an end record, in their new order if time changes it."""
        if self._timer is None and self.is_on_screen and self._has_moved(self.app.liveness.active_runs()):
            self.rearrange()
        rows = self.rows
        if isinstance(rows, runs.RunRows):
            rows.now = now
            for index in range(self.top, min(len(rows), self.top + self.page)):
                item = rows.item(index)
                if isinstance(item, RunSummary) and (item.status is Status.RUNNING or not has_end(item)):
                    self.redraw(index)

    def redraw_run(self, ref: RunRef) -> None:
        """Redraw the row of a run: its state is more precise once it is read."""
        if (index := self.rows.index(ref)) is not None:
            self.redraw(index)

    # ---- its columns and width

    def show_columns(self, columns: tuple[str, ...]) -> None:
        """Show these columns of the same rows."""
        if isinstance(self.rows, runs.RunRows):
            self.rows.choose(columns)
        self._drawn.clear()
        self._heading = None
        self.refresh()

    @property
    def columns(self) -> list[str]:
        """The columns that are shown."""
        width, rows = max(1, self.outer_size.width - 2), self.rows
        columns = rows.columns(width) if isinstance(rows, runs.RunRows) else fit_columns(width)
        return [name for name, _ in columns]

    @property
    def chosen_width(self) -> int:
        """Columns of the screen for every column that the user chose; 0 if none were chosen."""
        rows = self.rows
        return rows.chosen_width + 2 if isinstance(rows, runs.RunRows) and rows.chosen_width else 0

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to drag the right edge."""
        if event.x == self.outer_size.width - 1 and self.outer_size.width < self.screen.size.width:
            self._dragging = True
            self.screen._select_state = None  # a drag of the edge selects no text
            self.capture_mouse()

    async def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self._dragged = True
            await self.report(self.Dragged(event.screen_x + 1))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    async def on_click(self, event: events.Click) -> None:
        if self._dragged:
            event.prevent_default()
        self._dragged = False

    def action_tab(self, step: int) -> None:
        """Scroll sideways: the list has no tabs."""
        self.action_sideways(SIDEWAYS * step)

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
        """The item under the cursor: a run or a problem."""
        rows = self.rows
        return rows.item(self.position) if isinstance(rows, runs.RunRows) and self.position < len(rows) else None

    def refs(self) -> list[RunRef]:
        """The runs in the order in which they are shown."""
        rows = self.rows
        if not isinstance(rows, runs.RunRows):
            return []
        return [item.ref for i in range(len(rows)) if isinstance(item := rows.item(i), RunSummary)]

    @property
    def spent(self) -> str:
        """Total usage of the listed runs; empty if none has a cost."""
        return spending_text(self.rows.spent) if isinstance(self.rows, runs.RunRows) and self.rows.costed else ""

    def show_empty(self, lines: Iterable[Line]) -> None:
        """Say why there is nothing to show."""
        lines = list(lines)
        self.show(ListRows(lines, headings=range(len(lines))), title=(), heading=lambda width: (), title_right=())

    def _first_run(self, rows: runs.RunRows) -> Hashable | None:
        """Where the cursor starts: on the newest run of a session home, else on the newest failed one, both if they are
        on the first page.
        """
        page = (rows.item(i) for i in range(min(len(rows), max(self.page, MIN_PAGE))))
        first = [run for run in page if isinstance(run, RunSummary) and run.parent is None]
        if not first:
            return None
        failed = (run for run in first if run.failed)
        return (first[0] if all(run.is_session for run in first) else next(failed, first[0])).ref

    # ---- the histogram

    def _histogram_strip(self, rows: runs.RunRows, width: int) -> Strip | None:
        """The bars above a list that is longer than its pane; drawn once for these rows."""
        height = self.outer_size.height
        if self.app.stage == "list" or height < MIN_LIST or len(rows) < height:
            return None
        shape = rows.histogram(width), width, TALL_BARS if height >= TALL_LIST else LOW_BARS
        if shape[0] is None or shape[0].used < MIN_BARS:
            return None
        if self._strip is None or self._strip[0] != shape:
            self._strip = shape, Strip(shape[0], *shape[1:], self.look.glyphs)
        return self._strip[1]

    def _bar_of(self, rows: runs.RunRows, histogram: Histogram) -> int | None:
        """The bar of the run under the cursor."""
        item = rows.item(self.position) if self.position < len(rows) else None
        start = start_of(item) if isinstance(item, RunSummary) else None
        return None if start is None else min(histogram.bar_at(start), len(histogram.bars) - 1)

    def _mark_bar(self) -> None:
        """Mark the bar of the run under the cursor."""
        rows, strip = self.rows, self._strip
        if strip is None or len(self.heading) < 2 or not isinstance(rows, runs.RunRows):
            return
        if self._bar_of(rows, strip[1].histogram) != self._bar:
            self._heading = None
            for y in range(1, len(self.heading)):
                self.refresh_line(y)

    def action_bar(self, step: int) -> None:
        """Go to the first run of the next or previous bar."""
        rows = self.rows
        histogram = rows.histogram(max(1, self.outer_size.width - 2)) if isinstance(rows, runs.RunRows) else None
        bar = self._bar_of(rows, histogram) if histogram is not None and isinstance(rows, runs.RunRows) else None
        row = histogram.first_row(bar, step) if histogram is not None and bar is not None else None
        if row is None:
            self.say("no more dated runs in this direction", "status.warn")
        else:
            self.move_to(row)

    def _match_count(self, rows: runs.RunRows, total: int) -> Line:
        if not self.arrangement.query and not self.arrangement.failures:
            return ()
        return (Piece(Clean(f"{rows.runs}"), "sec"), Piece(Clean(f"/{total} shown"), "dim"))

    def _heading_lines(self, width: int) -> list[Line]:
        rows = self.rows
        if isinstance(rows, runs.RunRows):
            strip = self._histogram_strip(rows, width)
            if strip is None:
                return [rows.heading(width)]
            self._bar = self._bar_of(rows, strip.histogram)
            bars = strip.histogram.bars
            lines = strip.lines(self._bar, rows.now, lambda bar: rows.common_error(bars[bar].failed))
            return [*lines, rows.heading(width)]
        return [heading(fit_columns(width, self.arrangement.columns), _heading_sort(self.arrangement))]


def _heading_sort(arrangement: Arrangement) -> str:
    """The order to show in the headings: not the usual one."""
    return arrangement.sort if arrangement.sort != "newest" or arrangement.reverse else ""


def _same_run(run: RunSummary, items: Iterable[Item]) -> RunRef | None:
    """The run that has the same place, or the same id in another file."""
    others = (item for item in items if isinstance(item, RunSummary))
    return next((other.ref for other in others if other.ref == run.ref or _name(other) == _name(run)), None)


def _name(run: RunSummary) -> tuple[str, str]:
    return run.id, run.ref.format
