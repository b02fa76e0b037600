"""The task matrix, pane and screen: one row per task, one glyph per trial, pass rates; Enter opens a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult

from tracetui import masking
from tracetui.analysis.run_tree import decisive_by_chance
from tracetui.analysis.tasks import SORTS, Matrix, Task, Trial, arrange, compared_directories, matrix, sortable
from tracetui.live.jobs import Job, TreeResult, run_tree_job
from tracetui.live.mailbox import Mail
from tracetui.masking import clean, one_line
from tracetui.model import RunRef
from tracetui.text import Clean
from tracetui.ui import state as states
from tracetui.ui.base_app import HostApp
from tracetui.ui.commands import TASKS, Command
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.state import TasksState
from tracetui.ui.widgets.frame import progress_text, short_path
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box, LineBar
from tracetui.views.labels import StateOf, filter_badge
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.tasks import TaskRows, conclusion, note_lines, outcome_signs, trial_line

MANY: Final = 1_000
"""Runs from which a thread computes the matrix, so that no key waits for it."""
REGROUP_SECONDS: Final = 0.5
"""While runs arrive, the matrix changes no oftener."""
REST_SECONDS: Final = 0.2
"""The cursor rests on a task after this long."""
_ORDERS: Final = {
    "instability": "least stable first",
    "failures": "most failures first",
    "cost": "most expensive first",
    "tokens": "most tokens first",
    "time": "slowest first",
}
"""Sort orders in words; any other is called by its name: ``by name``."""


class TaskMatrix(LineView):
    """Tasks and trials. The cell cursor keeps its column; in a row without a trial there it shows at the nearest."""

    number = 1
    pane_name = "Tasks"
    sorts: ClassVar[Mapping[str, str]] = {"task": "name", "rate": "failures", **{name: name for name in SORTS}}

    def __init__(self) -> None:
        super().__init__(id="tasks")
        self.column = 0
        """The column of the cell cursor, over all column groups."""
        self.chosen = False
        """True once the user moved the cursor: until then it stays on the first task."""
        self._page = 0

    def show_tasks(
        self, matrix: Matrix, tasks: Sequence[Task], state_of: StateOf, *, order: str, query: str, unreadable: int
    ) -> None:
        """Show tasks of a matrix in this order, named `order`; `query` selects the runs."""
        rows = TaskRows(matrix, tasks, cursor=lambda: self._cell, glyphs=self.look.glyphs, state_of=state_of)
        title = [Piece(Clean(order), "sec")]
        if query:
            title += filter_badge(query)

        def heading(width: int) -> Sequence[Line]:
            return [*note_lines(matrix, unreadable, width), *rows.heading(width)]

        first = rows.key(0) if tasks and not self.chosen else None
        self.show(rows, key=first, title=tuple(title), title_right=(), heading=heading)

    def show_empty(self, lines: Sequence[Line]) -> None:
        """Say why there are no tasks."""
        self.show(ListRows(lines, headings=range(len(lines))), title=(), title_right=(), heading=lambda width: ())

    @property
    def _cell(self) -> tuple[int, int]:
        """Row and column of the cell cursor."""
        rows, at = self.rows, self.column
        if not isinstance(rows, TaskRows) or self.position >= len(rows):
            return self.position, 0
        return self.position, min(rows.cells(self.position), key=lambda column: (abs(column - at), column), default=0)

    @property
    def current_task(self) -> Task | None:
        """The task under the cursor."""
        rows = self.rows
        return rows.tasks[self.position] if isinstance(rows, TaskRows) and self.position < len(rows) else None

    @property
    def trial(self) -> Trial | None:
        """The trial under the cell cursor."""
        rows, (row, column) = self.rows, self._cell
        return rows.cells(row).get(column) if isinstance(rows, TaskRows) and row < len(rows) else None

    @property
    def label(self) -> str:
        """Name of the column group under the cell cursor; empty without groups."""
        trial, rows = self.trial, self.rows
        return rows.labels.get(trial.group, "") if trial is not None and isinstance(rows, TaskRows) else ""

    async def action_fold(self) -> None:
        """Go to the previous trial of the task."""
        self._to_trial(-1)

    async def action_unfold(self) -> None:
        """Go to the next trial of the task."""
        self._to_trial(1)

    def _to_trial(self, step: int) -> None:
        rows, (row, here) = self.rows, self._cell
        if not isinstance(rows, TaskRows) or row >= len(rows):
            return
        beyond = [column for column in rows.cells(row) if (column - here) * step > 0]
        if beyond:
            self.column = min(beyond, key=lambda column: abs(column - here))
            self._drawn.clear()
            self.repaint_row(row)
            self.post_message(self.Moved(self, rows.key(row)))

    @on(LineView.Moved)
    def _turn_page(self) -> None:
        """Show the page of cells that has the cell cursor."""
        rows, width = self.rows, max(1, self.outer_size.width - 2)
        if isinstance(rows, TaskRows) and (page := rows.page(width)) != self._page:
            self._page, self._heading = page, None
            self._drawn.clear()
            self.refresh()


class TasksScreen(BaseScreen):
    """The matrix of the runs that match the filter of the list, and the outcome of the run under the cell cursor."""

    AUTO_FOCUS = ""
    app: HostApp
    state: TasksState

    def __init__(self, commands: Sequence[Command], state: TasksState | None = None) -> None:
        """Begin in a state in which the screen was left."""
        self.tasks = TaskMatrix()
        super().__init__(commands, {TASKS: self.tasks}, state or TasksState())
        self.tasks.column = self.state.column
        self._cell = LineBar("raised", id="cell")
        self._matrix: Matrix | None = None
        self._ended: Line = ()
        self._signs: Line = ()
        """How tasks and trials of the matrix ended, in words and in numbers."""
        self._revision, self._query = -1, ""
        """Revision of the store and filter that the matrix is computed of."""
        self._computing = self._waiting = False
        """Whether a thread computes the matrix; whether a timer will."""
        self._not_before = 0.0
        self._ahead: Task | None = None
        """Task whose run tree is being prefetched, or was."""
        self._ahead_job: Job | None = None
        self._ahead_tree: TreeResult | None = None

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield Box(self.tasks, classes="single")
        yield self._cell
        yield self._footer

    def on_mount(self) -> None:
        self.tasks.focus()
        self.compute(at_once=True)
        if self.tasks.move_to_key(self.state.cursor):
            self.tasks.chosen = True
        self.set_timer(REST_SECONDS, self._read_ahead)
        self.call_after_refresh(self.refresh_frame)

    def on_screen_resume(self) -> None:
        if self._is_stale:
            self.compute()

    # ---- the state

    def become(self, state: TasksState) -> None:
        """Replace the state, and show what changed."""
        before, self.state = self.state, state
        if (state.sort, state.reverse) != (before.sort, before.reverse):
            self._show()

    @property
    def _saved_state(self) -> TasksState:
        task = self.tasks.current_task
        return TasksState(
            sort=self.state.sort,
            reverse=self.state.reverse,
            cursor=None if task is None else task.key,
            column=self.tasks.column,
        )

    def recreate(self) -> TasksScreen:
        return TasksScreen(self.commands, self._saved_state)

    def on_closed(self) -> None:
        self.app.surveys.stop()
        self.app.save_tasks(self._saved_state)

    # ---- data

    def receive(self, mail: Mail) -> None:
        if self.app.screen is not self:
            return
        progress = mail.progress
        if progress is not None and progress.job is self._ahead_job and isinstance(progress.result, TreeResult):
            self._ahead_tree = progress.result
        if self._is_stale:
            self._compute_later()
        self.refresh_frame()

    @property
    def _is_stale(self) -> bool:
        return (self._revision, self._query) != (self.app.store.revision, self.app.filter_query())

    def _compute_later(self) -> None:
        """Compute the matrix now, or as soon as the last time is long enough ago."""
        wait = self._not_before - time.monotonic()
        if wait <= 0 and not self._computing:
            self.compute()
        elif not self._waiting:
            self._waiting = True
            self.set_timer(max(0.01, wait), self._catch_up)

    def _catch_up(self) -> None:
        self._waiting = False
        if self.app.screen is self and self._is_stale:
            self._compute_later()

    def compute(self, *, at_once: bool = False) -> None:
        """Compute the matrix of the runs as they are now and show it; of many runs in a thread, unless `at_once`."""
        app, store = self.app, self.app.store
        self._revision, self._query = store.revision, app.filter_query()
        runs, everything = app.filtered_runs(), list(store.runs.values())

        def work() -> Callable[[], None]:
            result = matrix(runs, among=everything, directories=compared_directories(app.roots))
            return lambda: self._finish_computing(result)

        if at_once or len(runs) < MANY:
            work()()
        else:
            self._computing = True
            app.engine.run_in_background(work)

    def _finish_computing(self, result: Matrix) -> None:
        self._computing = False
        self._not_before = time.monotonic() + REGROUP_SECONDS
        self._matrix = result
        self._ended, self._signs = conclusion(result), outcome_signs(result, self.app.look.glyphs)
        if self.is_attached:
            self._show()

    def _show(self) -> None:
        result, state = self._matrix, self.state
        if result is not None and result.tasks:
            self.tasks.show_tasks(
                result,
                arrange(result.tasks, state.sort, reverse=state.reverse),
                self.app.liveness.state_in_list,
                order=_ORDERS.get(state.sort, f"by {state.sort}") + (", reversed" if state.reverse else ""),
                query=self._query,
                unreadable=len(self.app.store.problems),
            )
        else:
            self.tasks.show_empty(self._empty())
        self.refresh_frame()

    def _empty(self) -> list[Line]:
        """Why there are no tasks."""
        if self._query:
            message = f"No tasks match {one_line(self._query, 60)!r}."
        elif self.app.store.runs:
            message = "No run names a task or an input."
        else:
            message = "No runs."
        return [(), (Piece(Clean(message), "text bold"),)]

    # ---- the cursor

    @property
    def ref(self) -> RunRef | None:
        trial = self.tasks.trial
        return None if trial is None else trial.run.ref

    @on(LineView.Moved, "#tasks")
    def _moved(self) -> None:
        self.tasks.chosen = True
        self.refresh_frame()
        self.set_timer(REST_SECONDS, self._read_ahead)

    @property
    def merged_ahead(self) -> TreeResult | None:
        """The tree of the task under the cursor, if it was merged ahead."""
        return self._ahead_tree if self.tasks.current_task is self._ahead else None

    def _read_ahead(self) -> None:
        """Merge the trials of the task on which the cursor rests, so that Enter shows their tree at once."""
        task = self.tasks.current_task
        if task is None or task is self._ahead or self.app.screen is not self or self.app.stage:
            return
        self._ahead, self._ahead_tree = task, None
        self._ahead_job = run_tree_job(task.trials, redactor=masking.current())
        self.app.surveys.ask(self._ahead_job)

    # ---- the frame

    def refresh_frame(self) -> None:
        app, width, glyphs = self.app, self.app.size.width, self.app.look.glyphs
        roots = " + ".join(short_path(root) for root in app.roots[:2]) + (" …" if len(app.roots) > 2 else "")
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean(f"  {clean(roots, 60)} "), "sec"),
            Piece(Clean(f"{glyphs.path} "), "dim"),
            Piece(Clean("tasks"), "text bold"),
        )
        self._header.show(left, self._signs)
        self._sentence.show(self.status_message or self._conclusion())
        task, trial = self.tasks.current_task, self.tasks.trial
        if task is not None and trial is not None:
            label = self.tasks.label or trial.run.model or ""
            self._cell.show(*trial_line(task, trial, label, width, glyphs, app.liveness.state_in_list))
        self._cell.display = trial is not None
        self.refresh_footer()

    def _conclusion(self) -> Line:
        """How the tasks ended, and how far the scan is."""
        if not self.app.stage:
            return self._ended
        return (*self._ended, Piece(Clean(f"   {progress_text(self.app)}"), "status.running"))

    # ---- commands

    def action_open(self) -> None:
        """Open the run tree of the task, with the run under the cell cursor selected."""
        task, matrix = self.tasks.current_task, self._matrix
        if task is not None and matrix is not None:
            self.app.show_run_tree(
                task.trials,
                title=task.name,
                selected=self.ref,
                by_chance=decisive_by_chance(matrix.tasks),
                merged=self.merged_ahead,
            )

    def action_open_run(self) -> None:
        """Open the run under the cell cursor."""
        trial = self.tasks.trial
        if trial is not None:
            error = trial.run.first_error if trial.run.failed else None
            self.app.visit(trial.run.ref, error.span if error is not None else None)

    def action_filter(self) -> None:
        """Ask which runs to show: the filter of the run list."""
        self.ask_filter(self.app.filter_query(), self.app.run_filter().then(self._filter_changed))

    def _filter_changed(self) -> None:
        if self._is_stale:
            self._compute_later()

    def action_sort(self) -> None:
        """Sort by the next column."""
        if self._matrix is not None:
            self.become(states.sort_by_next(self.state, sortable(self._matrix.tasks)))

    @on(LineView.SortRequested)
    def _sort_requested(self, message: LineView.SortRequested) -> None:
        if self._matrix is not None and message.sort in sortable(self._matrix.tasks):
            self.become(states.toggle_sort(self.state, message.sort))

    def action_arrange(self, change: str) -> None:
        """Reverse the order; the other arrangements are of the run list."""
        if change == "reverse":
            self.become(states.reverse_order(self.state))

    def action_tasks(self) -> None:
        """It is open."""

    def action_reread(self) -> None:
        """Read the directory again."""
        self.app.rescan()
        self.say("re-reading the directory")

    def copyable(self, what: str) -> str | None:
        return super().copyable(what) or ""
