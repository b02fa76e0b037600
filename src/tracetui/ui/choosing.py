"""The small app before the app: asks what is to be opened where nobody says it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from textual.screen import Screen

from tracetui.formats.homes import Home
from tracetui.ui import config
from tracetui.ui.base_app import BaseApp, drive
from tracetui.ui.commands import COMMANDS as TABLE
from tracetui.ui.commands import Command
from tracetui.ui.screens.homes import HomesScreen, commands_for
from tracetui.views import masking
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs


class ChoosingApp(BaseApp):
    """Ends when something was chosen, which is in `chosen` then; nothing is there if somebody left."""

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
        self.chosen: list[str] = []
        self._first = HomesScreen(homes, missing, self._take, commands)

    def get_default_screen(self) -> Screen[None]:
        return self._first

    def _take(self, paths: list[str]) -> None:
        if not self._exit:  # the first answer counts
            self.chosen = paths
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
    app = ChoosingApp(
        homes,
        missing,
        palette="ansi" if "NO_COLOR" in os.environ else theme or settings.theme,
        glyphs=ASCII if with_ascii else UNICODE,
        table=config.commands(settings),
    )
    return drive(app), app.chosen
