"""What every app of this program has: its colours, its way to the terminal, keys from the table, and an orderly end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.console import RenderableType
from textual import events, on
from textual.app import App
from textual.binding import Binding
from textual.driver import Driver
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import Screen

from tracetui.text import clean
from tracetui.ui.commands import Command
from tracetui.ui.state import PanesState, describe
from tracetui.ui.terminal.wall import (
    Wall,
    clipboard_sequence,
    endings_to,
    insist,
    let_go,
    pasteable,
    write_crash_log,
)
from tracetui.ui.theme import PALETTES, Look, textual_theme
from tracetui.views.glyphs import UNICODE, Glyphs

TERMINAL_GONE: Final = 129
"""Exit status as after a hang-up."""
BUG: Final = 70
"""Exit status after a crash (EX_SOFTWARE of sysexits.h)."""

NO_COLOR: Final = NoColor()
"""In place of Textual's shades of grey, in which the terminal's own colours all turn black."""


class BaseApp(App[int]):
    """An app of tracetui in a terminal."""

    TITLE = "tracetui"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    BINDINGS: ClassVar = [Binding("ctrl+c", "interrupt", "quit", show=False, priority=True)]

    def __init__(
        self,
        commands: Sequence[Command],
        *,
        palette: str = "dark",
        glyphs: Glyphs = UNICODE,
        zone: tzinfo | None = None,
    ) -> None:
        super().__init__()
        self.look = Look(PALETTES[palette], glyphs, zone or datetime.now().astimezone().tzinfo or UTC)
        self.commands = commands
        self.crash: BaseException | None = None
        self.crash_states: Sequence[str] = ()
        """The states of the screens when the first error was raised, without content of traces."""
        self._wall = Wall()
        self._disable_notifications = self._disable_tooltips = True  # never used, and their racks cost a layout each
        for each in PALETTES.values():
            self.register_theme(textual_theme(each))
        self.theme = textual_theme(self.look.palette).name
        self.animation_level = "none"

    @on(Driver.SignalResume)
    def paint_anew(self) -> None:
        """Paint all: after a suspension the terminal shows nothing of it any more."""
        self.screen.refresh(layout=True)

    def clock(self) -> float:
        """The time of day, in seconds since the epoch."""
        return time.time()

    def get_driver_class(self) -> type[Driver]:
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        from tracetui.ui.terminal.driver import QuickDriver

        return QuickDriver

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*(NO_COLOR if isinstance(one, Monochrome) else one for one in super().get_line_filters()), self._wall]

    # ---- for the screens

    def use_palette(self, name: str) -> None:
        """Change the theme."""
        self.look = self.look._replace(palette=PALETTES[name])
        self.theme = textual_theme(self.look.palette).name
        self.screen.refresh(layout=True)

    def close_screen(self, screen: Screen[Any]) -> bool:
        """Close a screen, the only way to do so; False if it is not the active one, or the last.

        Keys that arrive together are queued at a screen before the first of them closes or covers it.
        """
        if self.screen is not screen or len(self.screen_stack) == 1:
            return False
        self.pop_screen()
        return True

    def redirect_key(self, event: events.Key, screen: Screen[Any]) -> bool:
        """Hand a key to the active screen that reached another one first; False if `screen` is active.

        Keys typed quickly thus mean the same as keys typed slowly. After the end they mean nothing.
        """
        if self.screen is screen and not self._exit:
            return False
        event.stop()
        event.prevent_default()
        if not self._exit:
            (self.focused or self.screen).post_message(events.Key(event.key, event.character))
        return True

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open."""
        from tracetui.ui.screens.palette import Palette

        if self.use_command_palette and not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def show_help(self, pane: str) -> None:
        """Show the keys of a pane."""
        from tracetui.ui.screens.help import HelpScreen

        self.push_screen(HelpScreen(pane, self.commands))

    def send(self, sequence: str) -> None:
        """Write a sequence that draws nothing to the terminal."""
        if self._driver is not None:
            self._driver.write(sequence)

    def copy(self, text: str) -> int:
        """Put text, as it is shown, on the terminal's clipboard; the number of bytes, 0 if it is too long."""
        text = pasteable(text)
        sequence = clipboard_sequence(text)
        if sequence is None:
            return 0
        self.send(sequence)
        return len(text.encode("utf-8", "replace"))

    def copy_to_clipboard(self, text: str) -> None:
        self.copy(text)

    def action_interrupt(self) -> None:
        """Copy what is selected, as terminals do; else end, from wherever the reader is."""
        selected = self.screen.get_selected_text() or getattr(self.focused, "selected_text", "")
        if selected:
            self.copy(selected)
        else:
            self.exit()

    # ---- the end

    def end_by_signal(self, number: int) -> None:
        """Put the terminal back and end with the status that shells report. Any thread or signal handler may call."""
        if self._loop is None:
            raise SystemExit(128 + number)
        with suppress(RuntimeError):  # it has ended, and another app runs
            self._loop.call_soon_threadsafe(lambda: self.exit(128 + number, return_code=128 + number))

    def panic(self, *renderables: RenderableType) -> None:
        """The thread that reads keys failed, most likely because the terminal is gone. Nothing is printed."""
        insist(TERMINAL_GONE)
        self.exit(TERMINAL_GONE, return_code=TERMINAL_GONE)

    def _handle_exception(self, error: Exception) -> None:
        if self.crash is None:
            self.crash, states = error, (getattr(screen, "state", None) for screen in self.screen_stack)
            self.crash_states = [describe(state) for state in states if isinstance(state, PanesState)]
        self._return_code = 1
        self._exception = error
        self._exception_event.set()
        self._close_messages_no_wait()

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()


def drive(app: BaseApp, afterwards: Callable[[], None] = lambda: None) -> int:
    """Run an app until it ends, then do what is to be done `afterwards`; returns the exit status."""
    try:
        with endings_to(app.end_by_signal):
            app.run()
    except Exception as error:  # from the framework itself, while it starts or ends
        app.crash = app.crash or error
    finally:
        afterwards()
        let_go()
    if app.crash is not None:
        path = write_crash_log(app.crash, app.crash_states)
        name = clean(type(app.crash).__name__, 80)
        sys.stderr.write(f"tracetui: a bug ended the program ({name}); where it happened: {clean(path)}\n")
        return BUG
    return app.return_code or 0
