"""The keys of the focused pane, from the table of commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.app import ComposeResult

from tracetui.text import Clean, wrap
from tracetui.ui.commands import COMMANDS, GROUPS, Command, of_pane, shown
from tracetui.ui.screens.overlay import Overlay
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.rows import Line, ListRows, Piece

WIDTH: Final = 100
"""Maximum width of the help, in cells."""
FIRST: Final = 5
"""Commands listed before all groups."""
_BELOW: Final = Piece(Clean(" " * 16))
"""Indentation of continuation lines."""


class HelpView(LineView):
    """The rows of the help screen."""

    pane_name = "Keys"


class HelpScreen(Overlay):
    """Help screen; any key that doesn't scroll closes it."""

    def __init__(self, pane: str, title: str, commands: Sequence[Command] = COMMANDS) -> None:
        """`title`: the pane's name on the screen."""
        super().__init__()
        self._pane = pane
        self._title = title
        self._commands = commands
        self._view = HelpView()

    def compose(self) -> ComposeResult:
        yield self._view

    def on_mount(self) -> None:
        lines = help_lines(self._pane, self._commands, min(WIDTH, self.app.size.width) - 2)
        self._view.show(
            ListRows(lines, headings=[i for i, line in enumerate(lines) if len(line) < 2 or line[0] == _BELOW]),
            title=(Piece(Clean(f"in {self._title}"), "sec"),),
            title_right=(Piece(Clean("Esc closes"), "dim"),),
        )
        self._view.focus()

    async def press(self, key: str, character: str | None) -> None:
        moves = {"down": 1, "j": 1, "up": -1, "k": -1}
        if key in moves:
            self._view.action_move(moves[key])
        elif key in ("pagedown", "pageup", "ctrl+d", "ctrl+u", "space"):
            self._view.action_page(-1 if key in ("pageup", "ctrl+u") else 1)
        elif key in ("g", "home", "G", "end"):
            self._view.action_edge(key in ("G", "end"))
        else:
            self.app.close_screen(self)


def help_lines(pane: str, table: Sequence[Command] = COMMANDS, width: int = WIDTH) -> list[Line]:
    """Every command of a pane, by group, wrapped at `width`; the `FIRST` that matter most lead."""
    commands = of_pane(pane, table)
    hinted = sorted((command for command in commands if command.hint), key=lambda command: command.hint)[:FIRST]
    groups = [("Start here", hinted)]
    groups += [(heading, [one for one in commands if one.group == group]) for group, heading in GROUPS.items()]
    lines: list[Line] = []
    for heading, members in groups:
        if not members:
            continue
        if lines:
            lines.append(())
        lines.append((Piece(Clean(heading), "sec bold"),))
        for command in members:
            keys = " ".join(shown(key) for key in command.keys)
            first, *rest = wrap(Clean(command.help), max(20, width - len(_BELOW.text)))
            lines.append((Piece(Clean(f"  {keys:<14}"), "key bold"), Piece(first, "text")))
            lines += [(_BELOW, Piece(part, "text")) for part in rest]
    return lines
