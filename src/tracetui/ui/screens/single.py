"""What screens of one list have in common: rows over the whole width, a path above them, and a way back."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from tracetui.model import RunRef
from tracetui.text import Clean
from tracetui.ui.actions.common import SIDEWAYS, CommonActions
from tracetui.ui.commands import Command
from tracetui.ui.screens.framed import FramedScreen
from tracetui.ui.widgets.frame import footer
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.rows import Line, Piece


class SingleScreen(FramedScreen):
    """Whoever inherits says what is listed, and where a row leads."""

    def __init__(self, pane: str, view: LineView, commands: Sequence[Command]) -> None:
        super().__init__(commands, {pane: view})
        self.list = view
        self.commands = commands
        self._actions = SingleActions(self)

    @property
    def doers(self) -> Sequence[object]:
        return (self._actions,)

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield Box(self.list, classes="single")
        yield self._footer

    def on_mount(self) -> None:
        self.list.focus()
        self.call_after_refresh(self.show_rows)

    def on_screen_resume(self) -> None:
        self.show_rows()

    # ---- what whoever inherits says

    def show_rows(self) -> None:
        """Show what is known now."""
        raise NotImplementedError

    def path(self) -> tuple[Line, Line]:
        """Where this is, after the program's name, and what is said at the right of it."""
        raise NotImplementedError

    def summary(self) -> Line:
        """The conclusion, and the next key."""
        raise NotImplementedError

    def opened(self) -> None:
        """A row was opened."""

    def reread(self) -> None:
        """Find out anew what is listed."""

    @property
    def ref(self) -> RunRef | None:
        """The run that the row under the cursor is about."""
        return None

    # ---- the frame

    def refresh_frame(self) -> None:
        left, right = self.path()
        self._header.show((Piece(Clean("tracetui"), "accent bold"), Piece(Clean("  ")), *left), right)
        self._sentence.show(self.said or self.summary())
        self.show_footer(*footer(self.commands, self.pane, self.app.size.width, 1, False))

    def found(self, view: LineView) -> None:
        self._actions.go_to_hit(view, 1, include_here=True)


class SingleActions(CommonActions):
    """`argument` is what follows the colon in the table."""

    def __init__(self, screen: SingleScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    def do_open(self, argument: str) -> None:
        self._screen.opened()

    def do_back(self, argument: str) -> None:
        if self._screen.list.needle:
            self._screen.list.search("")
        else:
            self._screen.leave()

    def do_quit(self, argument: str) -> None:
        self._screen.leave()

    def do_fold(self, argument: str) -> None:
        self._screen.list.action_sideways(-SIDEWAYS)

    def do_unfold(self, argument: str) -> None:
        self._screen.list.action_sideways(SIDEWAYS)

    def do_copy(self, argument: str) -> None:
        ref = self._screen.ref
        if argument == "value" or ref is None:
            self.copy_row()
        else:
            self.copy(ref.path if argument == "path" else ref.address, f"the {argument}")

    def do_reread(self, argument: str) -> None:
        self._screen.reread()
