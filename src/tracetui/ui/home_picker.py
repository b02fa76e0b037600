"""App that lists the trace directories of this machine, for a start without a path."""

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
"""Commands reused from the table, by id: (priority in the footer, help text if it differs here)."""


def commands_for(homes: Sequence[Home], table: Sequence[Command]) -> tuple[Command, ...]:
    """The commands of this screen: the applicable ones of the table, and one for each directory."""
    return (*_adapted(table), *_open_commands(homes))


def _adapted(table: Sequence[Command]) -> Iterator[Command]:
    for command in table:
        if command.id in _COMMANDS:
            hint, text = _COMMANDS[command.id]
            yield command._replace(panes=_PANES, hint=hint, help=text or command.help)


def _open_commands(homes: Sequence[Home]) -> Iterator[Command]:
    for number, home in enumerate(homes[:9], start=1):
        text = clean(f"Open {short_path(home.path)}.")
        yield Command(f"open-{number}", (str(number),), f"open {number}", text, f"nth({number})", _PANES, group="go")
    yield Command("open-all", ("a",), "open all", "Open all of them together.", "nth(0)", _PANES, hint=3, group="go")


class HomesScreen(BaseListScreen):
    """Trace directories: Enter opens the picked ones or the one under the cursor, a digit opens one, ``a`` all."""

    def __init__(
        self, homes: Sequence[Home], missing: str, on_pick: Callable[[list[str]], None], commands: Sequence[Command]
    ) -> None:
        """`missing`: absent default directory. `on_pick`: called with the paths to open, empty to quit."""
        super().__init__(HOMES, "Traces on this machine", commands)
        self._homes, self._missing, self._on_pick = homes, missing, on_pick
        self._picked: list[str] = []

    def show_rows(self) -> None:
        names = [short_path(home.path) for home in self._homes]
        look, now = self.app.look, self.app.clock()
        rows = HomeRows(self._homes, names, self._picked, now=now, glyphs=look.glyphs)
        self.list.show(rows, heading=lambda width: [homes_heading(width)])
        self.refresh_frame()

    def action_pick(self) -> None:
        """Pick or unpick the directory under the cursor; the last row picks all."""
        here, every = str(self.list.cursor), [home.path for home in self._homes]
        if here == ALL:
            self._picked = [] if len(self._picked) == len(every) else every
        else:
            self._picked = [path for path in every if (path in self._picked) is not (path == here)]
        self.show_rows()

    def action_nth(self, number: int) -> None:
        """Open one directory; 0 opens all."""
        self._on_pick([home.path for home in self._homes[number - 1 : number] or self._homes])

    def action_open(self) -> None:
        if self._picked:
            self._on_pick(self._picked)
        else:
            self.action_nth(0 if self.list.cursor == ALL else self.list.position + 1)

    def leave(self) -> bool:
        self._on_pick([])
        return True

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("Choose a trace directory"), "text bold"),), ()

    def summary(self) -> Line:
        return (Piece(one_line(f"No path given, and {self._missing} doesn't exist"), "sec"),)


class HomePickerApp(BaseApp):
    """Exits with the picked directories in `paths`, which is empty if the user quit."""

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
        self._first = HomesScreen(homes, missing, self._finish, commands)

    def get_default_screen(self) -> Screen[None]:
        return self._first

    def _finish(self, paths: list[str]) -> None:
        if not self._exit:  # the first answer counts
            self.paths = paths
            self.exit()


def choose(
    homes: Sequence[Home], missing: str, *, theme: str | None = None, ascii_glyphs: bool = False
) -> tuple[int, list[str]]:
    """Let the user pick directories; returns the exit status and the paths.

    `missing`: the default directory, which doesn't exist.
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
