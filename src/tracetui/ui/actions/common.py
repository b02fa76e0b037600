"""What the commands do that mean the same on every screen: one method ``do_<action>`` each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetui.text import size

if TYPE_CHECKING:
    from tracetui.ui.screens.framed import FramedScreen
    from tracetui.ui.widgets.line_view import LineView

SIDEWAYS = 8
"""Columns that a key scrolls."""


class CommonActions:
    """`argument` is what follows the colon in the table."""

    def __init__(self, screen: FramedScreen) -> None:
        self._framed = screen

    def do_move(self, argument: str) -> None:
        self._framed.view.action_move(int(argument))

    def do_page(self, argument: str) -> None:
        self._framed.view.action_page(float(argument))

    def do_edge(self, argument: str) -> None:
        self._framed.view.action_edge(argument == "1")

    def do_search(self, argument: str) -> None:
        self._framed.ask("search in this pane", self._framed.view.needle, self._framed.pane)

    def do_hit(self, argument: str) -> None:
        self.go_to_hit(self._framed.view, int(argument))

    def go_to_hit(self, view: LineView, step: int, *, include_here: bool = False) -> None:
        """Move to the next hit of the view's search, around the end; say which of how many it is."""
        screen = self._framed
        if not view.needle:
            screen.say("nothing is searched for: / begins a search")
            return
        hits = view.hits()
        if not hits:
            screen.say(f"no hit for {view.needle!r} in this pane", "status.warn")
            return
        here = view.position
        if step > 0:
            at = next((i for i, hit in enumerate(hits) if hit > here or (include_here and hit == here)), 0)
        else:
            at = next((i for i in reversed(range(len(hits))) if hits[i] < here), len(hits) - 1)
        view.move_to(hits[at])
        view.reveal()
        screen.say(f"/{view.needle}   hit {at + 1} of {len(hits)}   n next  N previous  Esc clears")

    def copy(self, text: str, what: str) -> None:
        """Put text on the clipboard, and say what happened."""
        copied = self._framed.app.copy(text)
        if copied:
            self._framed.say(f"copied {what}, {size(copied)}, through the terminal (OSC 52)")
        else:
            self._framed.say(f"{what} is too long for the terminal's clipboard ({size(len(text))})", "status.warn")

    def copy_row(self) -> None:
        """Copy what is selected, else the row under the cursor."""
        view = self._framed.view
        if selected := self._framed.get_selected_text():
            self.copy(selected, "the selection")
        elif view.position < len(view.rows):
            self.copy(view.rows.plain(view.position), "the row")

    def do_palette(self, argument: str) -> None:
        self._framed.app.action_command_palette()

    def do_help(self, argument: str) -> None:
        self._framed.app.show_help(self._framed.pane)

    def do_interrupt(self, argument: str) -> None:
        self._framed.app.action_interrupt()

    def do_end(self, argument: str) -> None:
        self._framed.app.exit()

    def do_suspend(self, argument: str) -> None:
        self._framed.app.action_suspend_process()
