"""The pane of the task matrix: a row per task, and a cell cursor among its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on

from tracetui.analysis.tasks import SORTS, Matrix, Task, Trial
from tracetui.text import Clean
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.labels import filter_badge
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.standing import StateOf
from tracetui.views.tasks import TaskRows, note_lines


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
        self, matrix: Matrix, tasks: Sequence[Task], state_of: StateOf, *, order: str, words: str, unreadable: int
    ) -> None:
        """Show tasks of a matrix in this order, named `order`; `words`: the query that selects the runs."""
        rows = TaskRows(matrix, tasks, cursor=lambda: self._cell, glyphs=self.look.glyphs, state_of=state_of)
        title = [Piece(Clean(order), "sec")]
        if words:
            title += filter_badge(words)

        def heading(width: int) -> Sequence[Line]:
            return [*note_lines(matrix, unreadable, width), *rows.heading(width)]

        first = rows.key(0) if tasks and not self.chosen else None
        self.show(rows, key=first, title=tuple(title), title_right=(), heading=heading)

    def nothing(self, lines: Sequence[Line]) -> None:
        """Say why there are no tasks."""
        self.show(ListRows(lines, headings=range(len(lines))), title=(), title_right=(), heading=lambda width: ())

    @property
    def _cell(self) -> tuple[int, int]:
        """Row and column of the cell cursor."""
        rows, at = self.rows, self.column
        if not isinstance(rows, TaskRows) or self.position >= len(rows):
            return self.position, 0
        return self.position, min(rows.cells(self.position), key=lambda one: (abs(one - at), one), default=0)

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
        beyond = [one for one in rows.cells(row) if (one - here) * step > 0]
        if beyond:
            self.column = min(beyond, key=lambda one: abs(one - here))
            self._strips.clear()
            self.repaint_row(row)
            self.post_message(self.Moved(self, rows.key(row)))

    @on(LineView.Moved)
    def _turn_page(self) -> None:
        """Show the page of cells that has the cell cursor."""
        rows, width = self.rows, max(1, self.outer_size.width - 2)
        if isinstance(rows, TaskRows) and (page := rows.page(width)) != self._page:
            self._page, self._heading = page, None
            self._strips.clear()
            self.refresh()
