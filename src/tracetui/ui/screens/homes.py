"""Somebody named no place, and there is no default: which of the trace directories on this machine is to be opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tracetui.formats.homes import Home
from tracetui.text import Clean, clean, one_line
from tracetui.ui.commands import Command
from tracetui.ui.screens.single import SingleScreen
from tracetui.ui.widgets.frame import short_path
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.homes import ALL, HomeRows, heading
from tracetui.views.rows import Line, Piece

HOMES: Final = "places"
_HERE: Final = frozenset({HOMES})
_TAKEN: Final = {
    "open": (1, "Open the place under the cursor, or those that are picked."),
    "pick-value": (2, "Pick the place, or no longer; several can be picked."),
    "quit": (4, "Quit."),
    "help": (5, ""),
    **dict.fromkeys(("back", "down", "up", "page-down", "page-up", "top", "end"), (0, "")),
    **dict.fromkeys(("interrupt", "end-now", "suspend"), (0, "")),
}
"""What this screen has of the table of commands: priority in the footer, and what it means here where it differs."""


def commands_for(homes: Sequence[Home], table: Sequence[Command]) -> tuple[Command, ...]:
    """The commands of this screen: those of the table that make sense here, and one for each place."""
    return (*_from(table), *_own(homes))


def _from(table: Sequence[Command]) -> Iterator[Command]:
    for command in table:
        if command.id in _TAKEN:
            hint, words = _TAKEN[command.id]
            yield command._replace(panes=_HERE, hint=hint, help=words or command.help)


def _own(homes: Sequence[Home]) -> Iterator[Command]:
    for number, home in enumerate(homes[:9], start=1):
        words = clean(f"Open {short_path(home.path)}.")
        yield Command(f"open-{number}", (str(number),), f"open {number}", words, f"nth:{number}", _HERE, group="go")
    yield Command("open-all", ("a",), "open all", "Open all of them together.", "all", _HERE, hint=3, group="go")


class Homes(LineView):
    """One row a place."""

    number = 1
    pane_name = "Traces on this machine"


class HomesScreen(SingleScreen):
    """Enter opens what is picked (or the place under the cursor), a digit that place, ``a`` all."""

    def __init__(
        self, homes: Sequence[Home], missing: str, take: Callable[[list[str]], None], commands: Sequence[Command]
    ) -> None:
        """`missing` names what is not there; `take` is called with the paths of the places to open, none to end."""
        super().__init__(HOMES, Homes(id="homes"), commands)
        self._homes, self._missing, self._take = homes, missing, take
        self._picked: list[str] = []
        self._choosing = _Choosing(self)

    @property
    def doers(self) -> Sequence[object]:
        return self._choosing, *super().doers

    def show_rows(self) -> None:
        names = [short_path(home.path) for home in self._homes]
        look, now = self.app.look, self.app.clock()
        rows = HomeRows(self._homes, names, self._picked, now=now, glyphs=look.glyphs)
        self.list.show(rows, heading=lambda width: [heading(width)])
        self.refresh_frame()

    def pick(self) -> None:
        """Pick the place under the cursor, or not any more; the last row picks all."""
        here, every = str(self.list.cursor), [home.path for home in self._homes]
        if here == ALL:
            self._picked = [] if len(self._picked) == len(every) else every
        else:
            self._picked = [path for path in every if (path in self._picked) is not (path == here)]
        self.show_rows()

    def choose(self, number: int) -> None:
        """Open one place; all for 0."""
        self._take([home.path for home in self._homes[number - 1 : number] or self._homes])

    def opened(self) -> None:
        if self._picked:
            self._take(self._picked)
        else:
            self.choose(0 if self.list.cursor == ALL else self.list.position + 1)

    def leave(self) -> bool:
        self._take([])
        return True

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("what is to be opened?"), "text bold"),), ()

    def summary(self) -> Line:
        return (Piece(one_line(f"no PATH was named, and there is no {self._missing}"), "sec"),)


class _Choosing:
    def __init__(self, screen: HomesScreen) -> None:
        self._screen = screen

    def do_pick(self, argument: str) -> None:
        self._screen.pick()

    def do_nth(self, argument: str) -> None:
        self._screen.choose(int(argument))

    def do_all(self, argument: str) -> None:
        self._screen.choose(0)
