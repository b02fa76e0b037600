"""The panes of the triage: the queue of signatures, and what is said of the one under the cursor."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from textual.message import Message

from tracetui.analysis.triage import Group
from tracetui.model import RunRef, RunSummary
from tracetui.store.contrast import Contrast
from tracetui.store.judgement import Judgement
from tracetui.text import Clean
from tracetui.ui.panes.steps import Steps
from tracetui.ui.widgets.line_view import LineView
from tracetui.views import triage
from tracetui.views.cause import cause_rows, example_of
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, ListRows, Piece


class Queue(LineView):
    """The signatures, the one that cost most first. Each unfolds to its runs."""

    number = 1
    pane_name = "Signatures"

    class Folded(Message):
        """The reader folded or unfolded signatures."""

        def __init__(self, keys: Iterable[Hashable], *, open_: bool) -> None:
            self.keys, self.open = keys, open_
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="queue")
        self.groups: Sequence[Group] = ()
        self.unfolded: frozenset[Hashable] = frozenset()
        """Keys of the signatures that show their runs, as the screen's state has them."""
        self.chosen = False
        """True once the reader moved the cursor: until then the first signatures stay in view."""

    def show_groups(
        self,
        groups: Sequence[Group],
        runs: Mapping[RunRef, RunSummary],
        judged: triage.Judged,
        *,
        now: float,
        words: str = "",
    ) -> None:
        """Show these signatures, of the runs that the query `words` finds; the cursor stays on its signature or run."""
        self.groups = groups
        rows = triage.QueueRows(groups, runs, judged, unfolded=self.unfolded, now=now, glyphs=self.look.glyphs)
        title = [Piece(Clean("most time lost first"), "sec")]
        if words:
            title += [Piece(Clean(" ")), Piece(Clean(f" f {one_line(words, 30)} "), "hit")]
        self.show(rows, title=tuple(title), heading=lambda w: [triage.heading(w)])
        if not self.chosen and self.position < self.page:
            self.top = 0

    def nothing(self, lines: Sequence[Line]) -> None:
        """Say why there is nothing to judge."""
        self.groups = ()
        self.show(ListRows(lines, headings=range(len(lines))), title=(), heading=lambda width: (), title_right=())

    async def action_fold(self) -> None:
        """Fold the signature under the cursor, or go to that of the run under it."""
        item = self.item
        if isinstance(item, triage.Member):
            self.move_to_key(item.group.digest)
        elif item is not None:
            await self.report(self.Folded([item.digest], open_=False))
        else:
            await super().action_fold()

    async def action_unfold(self) -> None:
        """Show the runs of the signature under the cursor."""
        item = self.item
        if isinstance(item, Group):
            await self.report(self.Folded([item.digest], open_=True))

    async def action_fold_all(self, open_: bool) -> None:
        """Show the runs of all signatures, or of none."""
        keys = [group.digest for group in self.groups] if open_ else self.unfolded
        await self.report(self.Folded(keys, open_=open_))

    @property
    def item(self) -> Group | triage.Member | None:
        """What is under the cursor."""
        rows = self.rows
        return rows.item(self.position) if isinstance(rows, triage.QueueRows) else None

    @property
    def group(self) -> Group | None:
        """The signature under the cursor, or that of the run under it."""
        item = self.item
        return item.group if isinstance(item, triage.Member) else item

    @property
    def run(self) -> RunRef | None:
        """The run under the cursor; of a signature its example."""
        item = self.item
        return item.run if isinstance(item, triage.Member) else item.example if item is not None else None


class Cause(LineView):
    """What failed, what was normalised, what it cost, and what its runs share."""

    number = 2
    pane_name = "Signature"

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
        """Show what is known of a signature; `going_on` says how far its runs are compared, if that goes on."""
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
    names = ("Failure", "Failure")

    def __init__(self) -> None:
        super().__init__("failure")
        self.headline = False

    def action_fold_all(self, open_: bool) -> None:
        """Unfold or fold all loops."""
        self.toggle_loops(open_=open_)
