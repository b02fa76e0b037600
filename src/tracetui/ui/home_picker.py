"""The small app before the app: asks which trace directory to open where no path was given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

from textual.screen import Screen

from tracetui import masking
from tracetui.formats.homes import Home
from tracetui.text import Clean, clean, one_line
from tracetui.ui import config
from tracetui.ui.base_app import BaseApp, run_to_exit
from tracetui.ui.commands import COMMANDS as TABLE
from tracetui.ui.commands import Command
from tracetui.ui.screens.base import BaseListScreen
from tracetui.ui.widgets.frame import short_path
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.list.tables import ALL, HomeRows, homes_heading
from tracetui.views.rows import Line, Piece

HOMES: Final = "places"
_PANES: Final = frozenset({HOMES})
_COMMANDS: Final = {
    "open": (1, "Open the directory under the cursor, or the picked ones."),
    "pick-value": (2, "Pick or unpick the directory."),
    "quit": (4, "Quit."),
    "help": (5, ""),
    **dict.fromkeys(("back", "down", "up", "page-down", "page-up", "top", "end"), (0, "")),
    **dict.fromkeys(("interrupt", "end-now", "suspend"), (0, "")),
}
"""What this screen has of the table of commands: priority in the footer, and what it means here where it differs."""


def commands_for(homes: Sequence[Home], table: Sequence[Command]) -> tuple[Command, ...]:
    """The commands of this screen: those of the table that make sense here, and one for each place."""
    return (*_adapted(table), *_open_commands(homes))


def _adapted(table: Sequence[Command]) -> Iterator[Command]:
    for command in table:
        if command.id in _COMMANDS:
            hint, words = _COMMANDS[command.id]
            yield command._replace(panes=_PANES, hint=hint, help=words or command.help)


def _open_commands(homes: Sequence[Home]) -> Iterator[Command]:
    for number, home in enumerate(homes[:9], start=1):
        words = clean(f"Open {short_path(home.path)}.")
        yield Command(f"open-{number}", (str(number),), f"open {number}", words, f"nth({number})", _PANES, group="go")
    yield Command("open-all", ("a",), "open all", "Open all of them together.", "nth(0)", _PANES, hint=3, group="go")


class HomesScreen(BaseListScreen):
    """Enter opens what is picked (or the place under the cursor), a digit that place, ``a`` all."""

    def __init__(
        self, homes: Sequence[Home], missing: str, take: Callable[[list[str]], None], commands: Sequence[Command]
    ) -> None:
        """`missing` names what is not there; `take` is called with the paths of the places to open, none to end."""
        super().__init__(HOMES, "Traces on this machine", commands)
        self._homes, self._missing, self._take = homes, missing, take
        self._picked: list[str] = []

    def show_rows(self) -> None:
        names = [short_path(home.path) for home in self._homes]
        look, now = self.app.look, self.app.clock()
        rows = HomeRows(self._homes, names, self._picked, now=now, glyphs=look.glyphs)
        self.list.show(rows, heading=lambda width: [homes_heading(width)])
        self.refresh_frame()

    def action_pick(self) -> None:
        """Pick the place under the cursor, or not any more; the last row picks all."""
        here, every = str(self.list.cursor), [home.path for home in self._homes]
        if here == ALL:
            self._picked = [] if len(self._picked) == len(every) else every
        else:
            self._picked = [path for path in every if (path in self._picked) is not (path == here)]
        self.show_rows()

    def action_nth(self, number: int) -> None:
        """Open one place; all for 0."""
        self._take([home.path for home in self._homes[number - 1 : number] or self._homes])

    def action_open(self) -> None:
        if self._picked:
            self._take(self._picked)
        else:
            self.action_nth(0 if self.list.cursor == ALL else self.list.position + 1)

    def leave(self) -> bool:
        self._take([])
        return True

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("Choose a trace directory"), "text bold"),), ()

    def summary(self) -> Line:
        return (Piece(one_line(f"No path given, and {self._missing} doesn't exist"), "sec"),)


class HomePickerApp(BaseApp):
    """Ends when something was chosen: `chosen` has it, and is empty if the reader left."""

    COMMANDS: ClassVar = set()
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        homes: Sequence[Home],
        missing: str,
        *,
        palette: str = "dark",
        glyphs: Glyphs = UNICODE,
        table: Sequence[Command] = TABLE,
    ) -> None:
        commands = commands_for(homes, table)
        super().__init__(commands, palette=palette, glyphs=glyphs)
        self.paths: list[str] = []
        self._first = HomesScreen(homes, missing, self._take, commands)

    def get_default_screen(self) -> Screen[None]:
        return self._first

    def _take(self, paths: list[str]) -> None:
        if not self._exit:  # the first answer counts
            self.paths = paths
            self.exit()


def choose(
    homes: Sequence[Home], missing: str, *, theme: str | None = None, ascii_glyphs: bool = False
) -> tuple[int, list[str]]:
    """Ask which of these places are to be opened, on the terminal; returns the exit status, and the paths chosen.

    `missing` names what was looked for, and is not there.
    """
    settings = config.load()
    with_ascii = ascii_glyphs or settings.ascii
    masking.choose(ascii_glyphs=with_ascii)
    app = HomePickerApp(
        homes,
        missing,
        palette="ansi" if "NO_COLOR" in os.environ else theme or settings.theme,
        glyphs=ASCII if with_ascii else UNICODE,
        table=config.bind_keys(settings),
    )
    return run_to_exit(app), app.paths
