"""What a model call was given compared with what the call of the same agent before it was given."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from tracetui.diff.context import previous_call
from tracetui.live.comparing.compared import Calls
from tracetui.live.mail import Mail
from tracetui.model import Operation, Run, quote_key
from tracetui.text import Clean
from tracetui.ui.commands import CHANGE, Command
from tracetui.ui.panes.diff_change import Change, context_words
from tracetui.ui.screens.compared import ComparedScreen
from tracetui.ui.widgets.lines import Box
from tracetui.views.diff import name_of
from tracetui.views.diff_look import Look
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, Piece


class ContextScreen(ComparedScreen):
    """Two contexts of one run; ``]d`` and ``[d`` go to other calls of the same agent."""

    walked_out = "no later call of this agent", "no earlier call of this agent"

    def __init__(self, ask: Calls, run: Run, commands: Sequence[Command]) -> None:
        change = Change()
        super().__init__(commands, {CHANGE: change}, change)
        self.ask_of, self._run = ask, run

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield Box(self.change, id="diff", classes="single")
        yield self._footer

    def on_mount(self) -> None:
        self.focus_pane(CHANGE)
        self._ask()

    def _ask(self) -> None:
        self.app.engine.differ.calls(self.ask_of, self._run)
        self.refresh_frame()

    @property
    def settled(self) -> bool:
        """True if what is asked for is shown."""
        return self._shown == self.ask_of

    _shown: Calls | None = None

    def receive(self, mail: Mail) -> None:
        look = mail.diffs.get(self.ask_of)
        if isinstance(look, Look):
            self._shown = self.ask_of
            a, b = (one_line(side, 60) for side in look.sides)
            self.change.show_look(look, (Piece(Clean(f"{a} {self.app.look.glyphs.arrow} {b}"), "sec"),))
            self.refresh_frame()

    def walk(self, step: int) -> bool:
        run = self._run
        if step < 0:
            b = run.index[self.ask_of.a]
        else:
            here = run.index[self.ask_of.b]
            later = range(here + 1, len(run.spans))
            found = (i for i in later if run.spans[i].operation is Operation.CHAT and previous_call(run, i) == here)
            b = next(found, -1)
        a = previous_call(run, b) if b >= 0 else None
        if a is None:
            return False
        self.ask_of = Calls(run.summary.ref, run.spans[a].id, run.spans[b].id)
        self._ask()
        return True

    @property
    def address(self) -> str:
        return f"{self._run.summary.ref.address}/{quote_key(self.ask_of.b)}"

    def refresh_frame(self) -> None:
        run, glyphs = self._run.summary, self.app.look.glyphs
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean("  "), "sec"),
            Piece(clean(run.name, 60), "text bold"),
            Piece(Clean(f" {name_of(run)} {glyphs.path} "), "sec"),
            Piece(Clean("context"), "text bold"),
        )
        self._header.show(left)
        look = self.change.compared
        words: Line = (Piece(Clean("reading both calls"), "status.running"),)
        if look is not None and look.context is not None:
            words = (Piece(Clean("since the call before: "), "sec"), *context_words(look.context, glyphs))
        self._sentence.show(self.said or words)
        self.refresh_footer()
