"""The panes of the triage: the queue of causes, and the facts of the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from textual.message import Message

from tracetui.analysis.arrangement import Arrangement
from tracetui.analysis.contrast import Contrast
from tracetui.analysis.triage import CauseOrder, Group, Task
from tracetui.masking import clean
from tracetui.model import RunRef, RunSummary
from tracetui.store.judgement import Judgement
from tracetui.text import Clean
from tracetui.ui.panes.steps import Steps, View
from tracetui.ui.widgets.line_view import LineView
from tracetui.views import triage
from tracetui.views.labels import arrangement_title
from tracetui.views.rows import Line, ListRows, Piece, Rows
from tracetui.views.triage import FailedRun, cause_rows, example_of

TWO_ROWS_WIDTH: Final = 56
"""Minimum cells of a queue with two rows a cause."""
_SORTED: Final = {
    "lost": "most time lost first",
    "runs": "most runs first",
    "newest": "latest run first",
    "first seen": "newest causes first",
    "tokens": "most tokens lost first",
}
"""Sort orders in words; any other is called by its name: ``by name``."""


class Queue(LineView):
    """The causes. Each unfolds to its runs, wrong answers to their tasks."""

    number = 1
    pane_name = "Causes"

    class Folded(Message):
        """The reader folded or unfolded causes."""

        def __init__(self, keys: Iterable[Hashable], *, open_: bool) -> None:
            self.keys, self.open = keys, open_
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="queue")
        self.order = CauseOrder()
        """The causes in their order on the screen."""
        self.unfolded: frozenset[Hashable] = frozenset()
        """Keys of the unfolded rows, as the screen's state has them."""
        self.marked: frozenset[Hashable] = frozenset()
        """Keys of the marked rows, likewise."""
        self.chosen = False
        """True once the reader moved the cursor: until then the first causes stay in view."""
        self._make_rows: Callable[[int, int], triage.QueueRows] | None = None
        self._details = 0, 0
        """How many causes have a second row, and the cells of a row."""
        self._number = 0
        """Rows of the folded causes with one row each, and of the headings of their groups."""

    def show_groups(
        self,
        order: CauseOrder,
        runs: Mapping[RunRef, RunSummary],
        judgement_of: triage.JudgementOf,
        *,
        arrangement: Arrangement,
        hidden: int,
        now: float,
        query: str = "",
    ) -> None:
        """Show these causes, of the runs that `query` matches; the cursor stays on its row.

        `hidden` is the number of causes that the arrangement filters out.
        """
        self.order = order
        self._number = len(order.items)
        unfolded, marked, glyphs = self.unfolded, self.marked, self.look.glyphs

        def make(details: int, width: int) -> triage.QueueRows:
            return triage.QueueRows(
                order, runs, judgement_of,
                unfolded=unfolded, marked=marked, details=details, width=width, now=now, glyphs=glyphs,
            )  # fmt: skip

        self._make_rows = make
        sort = _SORTED.get(arrangement.sort, f"by {arrangement.sort}")
        self.title = arrangement_title(arrangement, query, ungrouped="none", sort=sort)
        count = len(self.groups)
        total = f"/{count + hidden}" if hidden else ""
        self.title_right = (Piece(Clean(str(count)), "sec"), Piece(Clean(total), "dim"))
        self._draw_rows()

    def _draw_rows(self) -> None:
        if self._make_rows is None:
            return
        self._details = self._free_rows
        self.show(self._make_rows(*self._details), heading=self._headings)
        if not self.chosen and self.position < self.page:
            self.top = 0

    def _headings(self, width: int) -> Sequence[Line]:
        details = triage.details_heading(width, self.order) if self._details[0] else ()
        return [triage.heading(width, self.order), *([details] if details else [])]

    @property
    def _free_rows(self) -> tuple[int, int]:
        """How many causes fit with a second row, if all have their first, and the cells of a row."""
        size = self.outer_size
        above = 2 + bool(triage.details_heading(size.width - 2, self.order))
        free = max(0, min(len(self.groups), size.height - above - self._number)) if size.width >= TWO_ROWS_WIDTH else 0
        return free, size.width - 2

    def on_resize(self) -> None:
        if self._details != self._free_rows:
            self._draw_rows()

    def is_at_cursor(self, index: int) -> bool:
        rows = self.rows
        if not isinstance(rows, triage.QueueRows):
            return super().is_at_cursor(index)
        return index < len(rows) and rows.owner(index) == self.position and rows.selectable(self.position)

    def repaint_row(self, index: int) -> None:
        super().repaint_row(index)
        if self._details[0]:
            super().repaint_row(index + 1)

    sorts: ClassVar[Mapping[str, str]] = {
        "cause": "name",
        "runs": "runs",
        "time": "lost",
        "lost": "lost",
        "last": "newest",
    }

    def clicked_row(self, index: int) -> None:
        rows = self.rows
        second = isinstance(rows, triage.QueueRows) and not rows.selectable(index) and rows.item(index) is not None
        super().clicked_row(index - second)

    def show_empty(self, lines: Sequence[Line]) -> None:
        """Say why there is nothing to review."""
        self.order, self._make_rows = CauseOrder(), None
        self.show(ListRows(lines, headings=range(len(lines))), title=(), heading=lambda width: (), title_right=())

    @property
    def groups(self) -> Sequence[Group]:
        """The causes in their order on the screen."""
        return self.order.groups

    async def action_fold(self) -> None:
        """Fold the row under the cursor, or go to the one that it is below."""
        item = self.item
        if isinstance(item, triage.Member):
            self.move_to_key(item.parent)
        elif isinstance(item, triage.TaskRow) and self.cursor not in self.unfolded:
            self.move_to_key(item.group.digest)
        elif item is not None:
            await self.report(self.Folded([self.cursor], open_=False))
        else:
            await super().action_fold()

    @property
    def unfolds(self) -> bool:
        item = self.item
        return item is not None and not isinstance(item, triage.Member) and self.cursor not in self.unfolded

    async def action_unfold(self) -> None:
        """Show what is below the row under the cursor."""
        item = self.item
        if item is not None and not isinstance(item, triage.Member):
            await self.report(self.Folded([self.cursor], open_=True))

    async def action_fold_all(self, open_: bool) -> None:
        """Unfold all causes, or fold everything."""
        keys = [group.digest for group in self.groups] if open_ else self.unfolded
        await self.report(self.Folded(keys, open_=open_))

    @property
    def item(self) -> triage.Item | None:
        """The cause, task or run under the cursor."""
        rows = self.rows
        return rows.item(self.position) if isinstance(rows, triage.QueueRows) else None

    @property
    def group(self) -> Group | None:
        """The cause under the cursor, or that of the row under it."""
        item = self.item
        return item if item is None or isinstance(item, Group) else item.group

    @property
    def selected_task(self) -> Task | None:
        """The task under the cursor, or that of the run under it."""
        item = self.item
        if isinstance(item, triage.TaskRow):
            return item.task
        return item.task if isinstance(item, triage.Member) else None

    @property
    def run(self) -> RunRef | None:
        """The run under the cursor; of a cause or task its newest."""
        item = self.item
        if isinstance(item, triage.Member):
            return item.run
        return item.task.runs[0] if isinstance(item, triage.TaskRow) else item.example if item is not None else None


class Cause(LineView):
    """The cause, its noise, its cost, and what its runs share."""

    number = 2
    pane_name = "Cause"

    def __init__(self) -> None:
        super().__init__(id="cause")
        self._subject: Hashable = None
        self._make_rows: Callable[[int], Rows] | None = None
        self._drawn_width = 0

    def show_cause(
        self,
        group: Group,
        example: RunSummary | None,
        judgement: Judgement,
        shared: Contrast | None,
        going_on: str,
        *,
        failures: Sequence[FailedRun],
        now: float,
        task: Task | None = None,
        links: Sequence[tuple[Clean, str]] = (),
    ) -> None:
        """Show the facts of a cause, and of one `task` of it; `going_on`: how far its runs are compared.

        `failures` are its first runs, `links` those of the example.
        """
        subject = group.digest if task is None else task.digest
        same_subject, self._subject = subject == self._subject, subject
        zone, glyphs = self.look.zone, self.look.glyphs

        def make(width: int) -> Rows:
            return cause_rows(
                group, example, judgement, shared, going_on, failures=failures, width=width, now=now, zone=zone,
                glyphs=glyphs, task=task, links=links,
            )  # fmt: skip

        self._make_rows = make
        self.title = (Piece(clean(group.id), "sec"),)
        self._draw_rows(keep=same_subject)

    def _draw_rows(self, *, keep: bool) -> None:
        self._drawn_width = self._width
        if self._make_rows is not None:
            self.show(self._make_rows(self._drawn_width), keep=keep)

    @property
    def _width(self) -> int:
        return max(20, self.outer_size.width - 2)

    def on_resize(self) -> None:
        super().on_resize()
        if self._drawn_width != self._width:
            self._draw_rows(keep=True)

    def show_empty(self) -> None:
        """Show nothing."""
        self._subject = self._make_rows = None
        self.show(ListRows(()), title=(), keep=False)

    @property
    def wanted_height(self) -> int:
        """Rows of the full content, with the title and a blank row."""
        return len(self.rows) + 2

    @property
    def example(self) -> tuple[RunRef, str | None] | None:
        """Where the row under the cursor leads."""
        return example_of(self.cursor)


class Failure(Steps):
    """What a failed run did, with the cursor where it failed."""

    number = 3
    names: Mapping[View, str] = {"timeline": "Failure", "tree": "Failure"}
    has_story = False

    def __init__(self) -> None:
        super().__init__("failure")
        self.headline = False

    def action_fold_all(self, open_: bool) -> None:
        """Unfold or fold all loops."""
        self.toggle_loops(open_=open_)
