"""What every app of this program has: its colours, its way to the terminal, keys from the table, and an orderly end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

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
from tracetui.ui.terminal.safety import (
    ControlFilter,
    clean_for_paste,
    clipboard_sequence,
    discard_output,
    force_exit_later,
    forward_signals,
    write_crash_log,
)
from tracetui.ui.theme import PALETTES, Look, textual_theme
from tracetui.views.glyphs import UNICODE, Glyphs

if TYPE_CHECKING:
    from tracetui.analysis.query_context import QueryContext
    from tracetui.live.engine import Engine
    from tracetui.model import Run, RunRef, RunSummary
    from tracetui.store.store import Store
    from tracetui.ui.services.exports import Exporter
    from tracetui.ui.services.findings import Assessments, Comparisons, JobService
    from tracetui.ui.services.liveness import LivenessTracker
    from tracetui.ui.services.verdicts import Verdicts
    from tracetui.ui.state import SearchTarget
    from tracetui.ui.terminal.throttle import PaintThrottle
    from tracetui.ui.triage_state import TriageState

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
        self._output_filter = ControlFilter()
        self._disable_notifications = self._disable_tooltips = True  # never used, and their racks cost a layout each
        for each in PALETTES.values():
            self.register_theme(textual_theme(each))
        self.theme = textual_theme(self.look.palette).name
        self.animation_level = "none"

    @on(Driver.SignalResume)
    def repaint(self) -> None:
        """Paint all: after a suspension the terminal shows nothing of it any more."""
        self.screen.refresh(layout=True)

    def clock(self) -> float:
        """The time of day, in seconds since the epoch."""
        return time.time()

    def get_driver_class(self) -> type[Driver]:
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        from tracetui.ui.terminal.driver import TerminalDriver

        return TerminalDriver

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [
            *(NO_COLOR if isinstance(one, Monochrome) else one for one in super().get_line_filters()),
            self._output_filter,
        ]

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
        text = clean_for_paste(text)
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
        force_exit_later(TERMINAL_GONE)
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


class HostApp(BaseApp):
    """The app as its screens know it."""

    engine: Engine
    store: Store
    roots: list[str]
    stage: str
    """``list``, ``deep``, or empty when all runs are known."""
    seen: int
    total: int | None
    listed: bool
    """Whether all runs were listed once."""
    preloaded: bool
    """Whether what the first comparison takes is loaded."""
    throttle: PaintThrottle
    verdicts: Verdicts
    liveness: LivenessTracker
    assessments: Assessments
    comparisons: Comparisons
    surveys: JobService
    exporter: Exporter

    def words(self) -> str:
        """The query that filters the list."""
        raise NotImplementedError

    def query_context(self) -> QueryContext:
        """What queries can ask of runs that no trace holds."""
        raise NotImplementedError

    def found(self) -> list[RunSummary]:
        """The runs that the query of the list finds; all where there is none."""
        raise NotImplementedError

    def pick_query(self, on_pick: Callable[[str], None]) -> None:
        """Show the values to filter by; `take` is called with the query that asks for what was picked."""
        raise NotImplementedError

    def filter_runs(self, key: str, value: str) -> None:
        """Go to the list, and show only the runs that have this value."""
        raise NotImplementedError

    def visit(self, ref: RunRef, span: str | None, target: SearchTarget | None = None) -> None:
        """Open a run from the screens above the main one; leaving it leads back to them."""
        raise NotImplementedError

    def reopen(self, origin: Sequence[Hashable]) -> None:
        """Open again, as they were left, the screens that a run was visited from."""
        raise NotImplementedError

    def runs_changed(self) -> None:
        """Something was found out about runs, or judged, that the list shows."""
        raise NotImplementedError

    def judged(self) -> None:
        """Another instance judged something: every screen shows it."""
        raise NotImplementedError

    def open_screen(self, screen: Screen[Any]) -> None:
        """Show a screen that has nothing to show yet: in whole frames until it has (`opened`), or soon."""
        raise NotImplementedError

    def opened(self) -> None:
        """The screen has something to show."""
        raise NotImplementedError

    def compare(self, a: RunRef, b: RunRef) -> None:
        """Open the comparison of two runs."""
        raise NotImplementedError

    def compare_with_original(self, ref: RunRef) -> str:
        """Compare a run with its original, or with its replays; if there are none, says so."""
        raise NotImplementedError

    def compare_contexts(self, run: Run, a: str, b: str) -> None:
        """Open the comparison of what two model calls of a run were given."""
        raise NotImplementedError

    def search_runs(self, words: str) -> None:
        """Search all runs of the list, and show what is found. Raises `UsageError` for a wrong regular expression."""
        raise NotImplementedError

    def show_statistics(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the statistics of these runs; `of` names them."""
        raise NotImplementedError

    def show_contrast(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the list of what these runs share that others lack; `of` names them."""
        raise NotImplementedError

    def read_ahead(self, ref: RunRef) -> None:
        """Read what a run is most likely compared with, once for each run in a row."""
        raise NotImplementedError

    def save_triage(self, state: TriageState) -> None:
        """The triage was closed in this state."""
        raise NotImplementedError

    def rescan(self) -> None:
        """Read the directory again."""
        raise NotImplementedError

    def edit(self, text: str) -> None:
        """Open a cleaned copy of `text` in $EDITOR."""
        raise NotImplementedError


def run_to_exit(app: BaseApp, cleanup: Callable[[], None] = lambda: None) -> int:
    """Run an app until it ends, then do what is to be done `cleanup`; returns the exit status."""
    try:
        with forward_signals(app.end_by_signal):
            app.run()
    except Exception as error:  # from the framework itself, while it starts or ends
        app.crash = app.crash or error
    finally:
        cleanup()
        discard_output()
    if app.crash is not None:
        path = write_crash_log(app.crash, app.crash_states)
        name = clean(type(app.crash).__name__, 80)
        sys.stderr.write(f"tracetui: a bug ended the program ({name}); where it happened: {clean(path)}\n")
        return BUG
    return app.return_code or 0
