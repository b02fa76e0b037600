"""The replays of a run, each with where it first went differently."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult

from tracetui.live.compared import Survey
from tracetui.live.mail import Mail
from tracetui.model import RunRef, RunSummary
from tracetui.text import Clean, clean, grouped
from tracetui.ui.commands import REPLAYS, Command
from tracetui.ui.common import CommonActions
from tracetui.ui.frame import footer
from tracetui.ui.line_view import LineView
from tracetui.ui.lines import Box
from tracetui.ui.screens.framed import FramedScreen
from tracetui.views.diff import name_of
from tracetui.views.replays import ReplayRows
from tracetui.views.rows import Line, Piece


class Replays(LineView):
    """One row a replay."""

    number = 1
    pane_name = "Replays"


class ReplaysScreen(FramedScreen):
    """Enter opens the comparison of a replay with the original."""

    def __init__(self, original: RunSummary, replays: Sequence[RunRef], commands: Sequence[Command]) -> None:
        self.list = Replays(id="replays")
        super().__init__(commands, {REPLAYS: self.list})
        self.commands = commands
        self.original, self._replays = original, list(replays)
        self._actions = _ReplayActions(self)

    @property
    def doers(self) -> tuple[object, ...]:
        return (self._actions,)

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield Box(self.list, id="diff", classes="single")
        yield self._footer

    def on_mount(self) -> None:
        self.list.focus()
        self.show_replays()
        known = self.app.main.comparing.verdicts
        asks = [self._survey(ref) for ref in self._replays if (self.original.ref, ref) not in known]
        self.app.engine.differ.survey(asks)

    def _survey(self, ref: RunRef) -> Survey:
        run = self.app.store.runs.get(ref)
        return Survey(self.original.ref, ref, run.relation if run is not None else None)

    def on_screen_resume(self) -> None:
        self.show_replays()

    def receive(self, mail: Mail) -> None:
        if any(isinstance(ask, Survey) for ask in mail.diffs):
            self.show_replays()

    def show_replays(self) -> None:
        """Show what is known of every replay."""
        store, comparing = self.app.store, self.app.main.comparing
        runs = [store.runs[ref] for ref in self._replays if ref in store.runs]
        verdicts = {one.ref: comparing.verdicts.get((self.original.ref, one.ref)) for one in runs}
        rows = ReplayRows(runs, verdicts, glyphs=self.app.look.glyphs)
        title = (Piece(Clean(f"of {name_of(self.original)} {clean(self.original.name, 60)}"), "sec"),)
        self.list.show(rows, title=title)
        self.refresh_frame()

    def refresh_frame(self) -> None:
        known = [self.app.main.comparing.verdicts.get((self.original.ref, ref)) for ref in self._replays]
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean(f"  {clean(self.original.name, 60)} {name_of(self.original)} "), "sec"),
            Piece(Clean(f"{self.app.look.glyphs.path} "), "dim"),
            Piece(Clean("replays"), "text bold"),
        )
        self._header.show(left)
        diverged = sum(one is not None and not one.same for one in known)
        open_ones = sum(one is None for one in known)
        words = [Piece(Clean(f"{grouped(diverged)} of {grouped(len(known))} replays went differently"), "text bold")]
        if open_ones:
            words.append(Piece(Clean(f"  ·  comparing, {grouped(open_ones)} to go"), "status.running"))
        self._sentence.show(self.said or tuple(words))
        self._footer.show(*footer(self.commands, REPLAYS, self.app.size.width, 1, False))

    def found(self, view: LineView) -> None:
        self._actions.go_to_hit(view, 1, include_here=True)

    @on(LineView.Opened)
    def _row_opened(self) -> None:
        self._actions.do_open("")


class _ReplayActions(CommonActions):
    def __init__(self, screen: ReplaysScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    def do_open(self, argument: str) -> None:
        ref = self._screen.list.cursor
        if isinstance(ref, RunRef):
            self._screen.app.main.comparing.open(self._screen.original.ref, ref)

    def do_back(self, argument: str) -> None:
        if self._screen.list.needle:
            self._screen.list.search("")
        else:
            self.do_quit("")

    def do_quit(self, argument: str) -> None:
        self._screen.app.engine.differ.survey(())
        self._screen.app.pop_screen()

    def do_pane(self, argument: str) -> None:
        """There is one pane."""

    def do_fold(self, argument: str) -> None:
        self._screen.list.action_sideways(-8)

    def do_copy(self, argument: str) -> None:
        ref = self._screen.list.cursor
        if argument == "value" or not isinstance(ref, RunRef):
            self.copy_row()
        else:
            self.copy(ref.address, "the address")

    def do_reread(self, argument: str) -> None:
        self._screen.app.engine.differ.survey([self._screen._survey(ref) for ref in self._screen._replays])
        self._screen.say("comparing all of them again")
