"""Base classes of the apps: theme, terminal driver, keys from the command table, signals and crashes."""

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
from textual.message import Message
from textual.screen import Screen

from tracetui.text import exact
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
    from tracetui.analysis.tasks import Trial
    from tracetui.live.engine import Engine
    from tracetui.live.jobs import TreeResult
    from tracetui.model import Run, RunRef, RunSummary
    from tracetui.store.query import Context, MaskedFacts
    from tracetui.store.store import Store
    from tracetui.ui.services.causes import Causes
    from tracetui.ui.services.contexts import ContextService
    from tracetui.ui.services.exports import Exporter
    from tracetui.ui.services.findings import Assessments, Comparisons, JobService
    from tracetui.ui.services.links import LinkService
    from tracetui.ui.services.liveness import LivenessTracker
    from tracetui.ui.services.verdicts import Verdicts
    from tracetui.ui.state import SearchTarget, TasksState
    from tracetui.ui.terminal.throttle import PaintThrottle
    from tracetui.ui.triage_state import TriageState
    from tracetui.ui.widgets.prompt import Filter

TERMINAL_GONE: Final = 129
"""Exit status after a hang-up (128 + SIGHUP)."""
BUG: Final = 70
"""Exit status after a crash (EX_SOFTWARE of sysexits.h)."""

NO_COLOR: Final = NoColor()
"""Replaces Textual's grayscale filter, which turns the terminal's own colors black."""


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
        """Screen states at the first error, without trace content."""
        self._output_filter = ControlFilter()
        self._disable_notifications = self._disable_tooltips = True  # unused, and each costs a layout
        for choice in PALETTES.values():
            self.register_theme(textual_theme(choice))
        self.theme = textual_theme(self.look.palette).name
        self.animation_level = "none"

    @on(Driver.SignalResume)
    def repaint(self) -> None:
        """Repaint everything: the terminal lost the screen while the app was suspended."""
        self.screen.refresh(layout=True)

    def clock(self) -> float:
        """Current time, in seconds since the epoch."""
        return time.time()

    async def on_event(self, event: events.Event) -> None:
        """Have the active screen handle each key, and pasted text, before the next: typing quickly is no different.

        Textual queues a key at the focused widget, then at each widget around it. Keys of which the first opens or
        closes a prompt or a screen would arrive in another order.
        """
        screen = self.screen if self.screen_stack else None
        if (
            not isinstance(event, events.Key | events.Paste)
            or event.is_forwarded
            or not isinstance(screen, StackScreen)
        ):
            await super().on_event(event)
        elif not self._exit:
            self.app_focus = True
            with screen._context():
                if isinstance(event, events.Paste):
                    await screen.paste(event.text)
                elif not await self._check_bindings(event.key, priority=True):
                    await screen.press(event.key, event.character)

    def get_driver_class(self) -> type[Driver]:
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        from tracetui.ui.terminal.driver import TerminalDriver

        return TerminalDriver

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [
            *(NO_COLOR if isinstance(f, Monochrome) else f for f in super().get_line_filters()),
            self._output_filter,
        ]

    # ---- services for the screens

    def use_palette(self, name: str) -> None:
        """Change the theme."""
        self.look = self.look._replace(palette=PALETTES[name])
        self.theme = textual_theme(self.look.palette).name
        self.screen.refresh(layout=True)

    def close_screen(self, screen: Screen[Any]) -> bool:
        """Close a screen; False if it is not the active one, or the last. Screens close only this way."""
        if self.screen is not screen or len(self.screen_stack) == 1:
            return False
        self.pop_screen()
        return True

    def action_command_palette(self) -> None:
        """Open the palette, unless a dialog is open."""
        from tracetui.ui.screens.overlay import Overlay, Palette

        if not isinstance(self.screen, Overlay):
            self.push_screen(Palette())

    def show_help(self, pane: str, title: str) -> None:
        """Show the keys of a pane with that title."""
        from tracetui.ui.screens.help import HelpScreen

        self.push_screen(HelpScreen(pane, title, self.commands))

    def send(self, sequence: str) -> None:
        """Write a non-drawing escape sequence to the terminal."""
        if self._driver is not None:
            self._driver.write(sequence)

    def copy(self, text: str) -> int:
        """Copy text to the terminal's clipboard; returns the number of bytes, 0 if it is too long."""
        text = clean_for_paste(text)
        sequence = clipboard_sequence(text)
        if sequence is None:
            return 0
        self.send(sequence)
        return len(text.encode("utf-8", "replace"))

    def copy_to_clipboard(self, text: str) -> None:
        self.copy(text)

    def action_interrupt(self) -> None:
        """Copy the selection, as terminals do; without one, quit."""
        selected = self.screen.get_selected_text() or getattr(self.focused, "selected_text", "")
        if selected:
            self.copy(selected)
        else:
            self.exit()

    # ---- exit

    def end_by_signal(self, number: int) -> None:
        """Restore the terminal and exit with status 128 + `number`. Callable from any thread or signal handler."""
        if self._loop is None:
            raise SystemExit(128 + number)
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(lambda: self.exit(128 + number, return_code=128 + number))

    def panic(self, *renderables: RenderableType) -> None:
        """Exit silently: the input thread failed, most likely because the terminal is gone."""
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


class StackScreen(Screen[None], inherit_bindings=False):
    """A screen that does nothing once it is closed: what its queue still holds then was meant for what is gone."""

    app: BaseApp

    async def press(self, key: str, character: str | None) -> None:
        """Handle a key."""
        raise NotImplementedError

    async def paste(self, text: str) -> None:
        """Handle pasted text."""

    async def _get_message(self) -> Message:
        message = await super()._get_message()
        return events.Idle() if _is_for_user(message) and self not in self.app.screen_stack else message


_USER_EVENTS: Final = (events.InputEvent, events.Resize, events.AppFocus, events.AppBlur)


def _is_for_user(message: Message) -> bool:
    """Whether a message stems from the user or is one of ours: Textual's others end the screen in an orderly way."""
    return isinstance(message, _USER_EVENTS) or type(message).__module__.startswith("tracetui.")


class HostApp(BaseApp):
    """Interface of the app for its screens: shared services and navigation."""

    engine: Engine
    store: Store
    roots: list[str]
    stage: str
    """Stage of the scan: ``list``, ``deep``, or empty when it is complete."""
    seen: int
    total: int | None
    listed: bool
    """Whether all runs were listed once."""
    waiting_search: str
    """The words of a search that starts when the list is read; else empty."""
    preloaded: bool
    """Whether the modules of the comparison are imported."""
    throttle: PaintThrottle
    verdicts: Verdicts
    causes: Causes
    liveness: LivenessTracker
    assessments: Assessments
    links: LinkService
    comparisons: Comparisons
    surveys: JobService
    contexts: ContextService
    exporter: Exporter
    masked_facts: MaskedFacts | None = None
    """What queries match if the reader is not the owner of the traces; None: the exact facts."""

    def pause_scan(self) -> None:
        """Suspend the scan until the next frame is painted."""
        self.engine.pause()
        self.call_after_refresh(self.engine.resume)

    def filter_query(self) -> str:
        """The filter query of the list."""
        raise NotImplementedError

    def query_context(self) -> Context:
        """Query inputs that are not in a trace: verdicts, relations, liveness."""
        raise NotImplementedError

    def filtered_runs(self) -> list[RunSummary]:
        """The runs that match the filter of the list; all without a filter."""
        raise NotImplementedError

    def pick_query(self, on_pick: Callable[[str], None]) -> None:
        """Show the values to filter by; calls `on_pick` with the query for the picked ones."""
        raise NotImplementedError

    def filter_runs(self, key: str, value: str | None) -> None:
        """Go to the list and filter it by this value; None: by having none."""
        raise NotImplementedError

    def visit(
        self, ref: RunRef, span: str | None, target: SearchTarget | None = None, *, follow: bool | None = None
    ) -> None:
        """Open a run from the screens above the main screen; leaving the run reopens them.

        `follow`: as `Goal.follow`.
        """
        raise NotImplementedError

    def reopen(self, origin: Sequence[Hashable]) -> None:
        """Reopen, in their last state, the screens from which a run was visited."""
        raise NotImplementedError

    def runs_changed(self) -> None:
        """Redraw the list: verdicts or comparison results changed."""
        raise NotImplementedError

    def verdicts_changed(self) -> None:
        """Redraw all screens: another instance changed verdicts."""
        raise NotImplementedError

    def open_screen(self, screen: Screen[Any]) -> None:
        """Push a screen without content yet; paints only full frames until `finish_opening` or a short timeout."""
        raise NotImplementedError

    def finish_opening(self) -> None:
        """End the opening phase: the screen has content."""
        raise NotImplementedError

    def compare(self, a: RunRef, b: RunRef, spans: tuple[str | None, str | None] | None = None) -> None:
        """Open the comparison of two runs, at these spans of A and B if given, else at the first difference."""
        raise NotImplementedError

    def show_run_tree(
        self,
        trials: Sequence[Trial],
        *,
        title: str,
        selected: RunRef | None = None,
        by_chance: float = 0.0,
        merged: TreeResult | None = None,
    ) -> None:
        """Show where the trials of a task fork, with one of them selected.

        `by_chance`: decisive forks that chance alone gives over all tasks shown; `merged`: their tree, if computed.
        """
        raise NotImplementedError

    def compare_with_original(self, ref: RunRef) -> str:
        """Compare a run with its original or its replays; returns why not, else an empty string."""
        raise NotImplementedError

    def compare_inputs(self, run: Run, span: str) -> str:
        """Compare the input of a model call with that of the call before; returns why not, else an empty string."""
        raise NotImplementedError

    def show_context(self, run: Run, span: str | None = None) -> None:
        """Show what fills the context of a run, first that of the model call `span`."""
        raise NotImplementedError

    def search_cost(self) -> str:
        """What a search of the listed runs has a database read, as `` (5,000 spans of the database)``; else empty."""
        raise NotImplementedError

    def search_runs(self, text: str) -> None:
        """Search all listed runs and show the hits; waits until the list is read.

        Raises `UsageError` for an invalid regular expression.
        """
        raise NotImplementedError

    def show_statistics(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the statistics of these runs; `of` names them."""
        raise NotImplementedError

    def show_contrast(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the contrast of these runs with the others; `of` names them."""
        raise NotImplementedError

    def show_effects(self, pane: str, refs: Sequence[RunRef], of: str) -> None:
        """Open the files or the audit (`pane`) of these runs; `of` names them."""
        raise NotImplementedError

    def show_blame(self, ref: RunRef, span: str, path: str | None = None) -> None:
        """Open the lines of a file (`path` as in the trace, else the first file of the step) with their sessions."""
        raise NotImplementedError

    def read_main_run(self) -> None:
        """Read the run of the main screen on, after another screen read a run."""
        raise NotImplementedError

    def read_ahead(self, ref: RunRef) -> None:
        """Read the likely comparison partner of a run into the cache."""
        raise NotImplementedError

    def save_triage(self, state: TriageState) -> None:
        """Save the state of the closed triage."""
        raise NotImplementedError

    def save_tasks(self, state: TasksState) -> None:
        """Save the state of the closed task matrix."""
        raise NotImplementedError

    def run_filter(self) -> Filter:
        """The filter of the list, for a prompt."""
        raise NotImplementedError

    def rescan(self) -> None:
        """Read the directory again."""
        raise NotImplementedError

    def edit(self, text: str) -> None:
        """Open a cleaned copy of `text` in $EDITOR."""
        raise NotImplementedError


def run_to_exit(app: BaseApp, cleanup: Callable[[], None] = lambda: None) -> int:
    """Run an app until it exits, then call `cleanup`; returns the exit status."""
    try:
        with forward_signals(app.end_by_signal):
            app.run()
    except Exception as error:  # from Textual itself, at startup or exit
        app.crash = app.crash or error
    finally:
        cleanup()
        discard_output()
    if app.crash is not None:
        path = write_crash_log(app.crash, app.crash_states)
        name = exact(type(app.crash).__name__, 80)
        sys.stderr.write(f"tracetui: internal error ({name}); crash log: {exact(path)}\n")
        return BUG
    return app.return_code or 0
