"""The replays of a run, each with where it first went differently."""

from __future__ import annotations

from collections.abc import Sequence

from tracetui.live.comparing.compared import Survey
from tracetui.live.mail import Mail
from tracetui.model import RunRef, RunSummary
from tracetui.text import Clean, grouped
from tracetui.ui.commands import REPLAYS, Command
from tracetui.ui.screens.single import SingleScreen
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.diff import name_of
from tracetui.views.masking import clean
from tracetui.views.replays import ReplayRows
from tracetui.views.rows import Line, Piece


class Replays(LineView):
    """One row a replay."""

    number = 1
    pane_name = "Replays"


class ReplaysScreen(SingleScreen):
    """Enter opens the comparison of a replay with the original."""

    def __init__(self, original: RunSummary, replays: Sequence[RunRef], commands: Sequence[Command]) -> None:
        super().__init__(REPLAYS, Replays(id="replays"), commands)
        self.original, self._replays = original, list(replays)

    def on_mount(self) -> None:
        super().on_mount()
        known = self.app.main.comparing.verdicts
        self._compare([ref for ref in self._replays if (self.original.ref, ref) not in known])

    def _compare(self, refs: Sequence[RunRef]) -> None:
        relation = self.app.store.relations.relation
        self.app.engine.differ.survey([Survey(self.original.ref, ref, relation(ref)) for ref in refs])

    def receive(self, mail: Mail) -> None:
        if any(isinstance(ask, Survey) for ask in mail.diffs):
            self.show_rows()

    def show_rows(self) -> None:
        store, comparing = self.app.store, self.app.main.comparing
        runs = [store.runs[ref] for ref in self._replays if ref in store.runs]
        verdicts = {one.ref: comparing.verdicts.get((self.original.ref, one.ref)) for one in runs}
        rows = ReplayRows(runs, verdicts, store.relations.relation, glyphs=self.app.look.glyphs)
        title = (Piece(Clean(f"of {name_of(self.original)} {clean(self.original.name, 60)}"), "sec"),)
        self.list.show(rows, title=title, heading=lambda width: rows.heading(self.original, width))
        self.refresh_frame()

    def path(self) -> tuple[Line, Line]:
        where: Line = (
            Piece(Clean(f"{clean(self.original.name, 60)} {name_of(self.original)} "), "sec"),
            Piece(Clean(f"{self.app.look.glyphs.path} "), "dim"),
            Piece(Clean("replays"), "text bold"),
        )
        return where, ()

    def summary(self) -> Line:
        known = [self.app.main.comparing.verdicts.get((self.original.ref, ref)) for ref in self._replays]
        diverged = sum(one is not None and not one.same for one in known)
        open_ones = sum(one is None for one in known)
        words = [Piece(Clean(f"{grouped(diverged)} of {grouped(len(known))} replays went differently"), "text bold")]
        if open_ones:
            words.append(Piece(Clean(f"  ·  comparing, {grouped(open_ones)} to go"), "status.running"))
        return tuple(words)

    @property
    def ref(self) -> RunRef | None:
        ref = self.list.cursor
        return ref if isinstance(ref, RunRef) else None

    def opened(self) -> None:
        if self.ref is not None:
            self.app.main.comparing.open(self.original.ref, self.ref)

    def reread(self) -> None:
        self._compare(self._replays)
        self.say("comparing all of them again")

    def left(self) -> None:
        self.app.engine.differ.survey(())
