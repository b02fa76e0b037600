"""The panes of the triage: the queue of causes, and the facts of the one under the cursor."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from textual.message import Message

from tracetui.analysis.contrast import Contrast
from tracetui.analysis.triage import Group
from tracetui.masking import clean, one_line
from tracetui.model import RunRef, RunSummary
from tracetui.store.judgement import Judgement
from tracetui.text import Clean
from tracetui.ui.panes.steps import Steps, View
from tracetui.ui.widgets.line_view import LineView
from tracetui.views import triage
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.triage import cause_rows, example_of


class Queue(LineView):
    """The causes, the one that cost most first. Each unfolds to its runs, wrong answers to their tasks."""

    number = 1
    pane_name = "Causes"

    class Folded(Message):
        """The reader folded or unfolded causes."""

        def __init__(self, keys: Iterable[Hashable], *, open_: bool) -> None:
            self.keys, self.open = keys, open_
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="queue")
        self.groups: Sequence[Group] = ()
        self.unfolded: frozenset[Hashable] = frozenset()
        """Keys of the unfolded rows, as the screen's state has them."""
        self.marked: frozenset[Hashable] = frozenset()
        """Keys of the marked rows, likewise."""
        self.chosen = False
        """True once the reader moved the cursor: until then the first causes stay in view."""

    def show_groups(
        self,
        groups: Sequence[Group],
        runs: Mapping[RunRef, RunSummary],
        judged: triage.Judged,
        *,
        now: float,
        words: str = "",
    ) -> None:
        """Show these causes, of the runs that the query `words` finds; the cursor stays on its row."""
        self.groups = groups
        rows = triage.QueueRows(
            groups, runs, judged, unfolded=self.unfolded, marked=self.marked, now=now, glyphs=self.look.glyphs
        )
        title = [Piece(Clean("most time lost first"), "sec")]
        if words:
            title += [Piece(Clean(" ")), Piece(Clean(f" f {one_line(words, 30)} "), "hit")]
        self.show(rows, title=tuple(title), heading=lambda w: [triage.heading(w)])
        if not self.chosen and self.position < self.page:
            self.top = 0

    def nothing(self, lines: Sequence[Line]) -> None:
        """Say why there is nothing to review."""
        self.groups = ()
        self.show(ListRows(lines, headings=range(len(lines))), title=(), heading=lambda width: (), title_right=())

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

    def show_cause(
        self,
        group: Group,
        example: RunSummary | None,
        told: Judgement,
        shared: Contrast | None,
        going_on: str,
        *,
        now: float,
    ) -> None:
        """Show the facts of a cause; `going_on` says how far its runs are compared, if that goes on."""
        same, self._subject = group.digest == self._subject, group.digest
        width = max(20, self.outer_size.width - 2)
        zone, glyphs = self.look.zone, self.look.glyphs
        rows = cause_rows(group, example, told, shared, going_on, width=width, now=now, zone=zone, glyphs=glyphs)
        self.show(rows, title=(Piece(clean(group.id), "sec"),), keep=same)

    def nothing(self) -> None:
        """Show nothing."""
        self._subject = None
        self.show(ListRows(()), title=(), keep=False)

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
