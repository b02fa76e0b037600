"""The application: owns the engine and the store, takes signals and crashes, and opens the screens."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, ClassVar, Final

from rich.console import RenderableType
from textual._compositor import LayoutUpdate
from textual.binding import Binding
from textual.events import Event, InputEvent
from textual.message import Message
from textual.screen import Screen

from tracetui.live.engine import Engine
from tracetui.sources.base import Source
from tracetui.sources.local import LocalSource
from tracetui.store import address
from tracetui.store.store import Store
from tracetui.text import clean_lines
from tracetui.ui import config
from tracetui.ui.base_app import BaseApp, drive
from tracetui.ui.commands import COMMANDS as TABLE
from tracetui.ui.commands import Command
from tracetui.ui.controllers.judging import Verdicts
from tracetui.ui.screens.framed import FramedScreen
from tracetui.ui.screens.main import MainScreen
from tracetui.ui.terminal.pace import Pace
from tracetui.views import masking
from tracetui.views.arrange import Arrangement
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs

if TYPE_CHECKING:
    from textual.command import Provider


FIRST_MAIL_SECONDS: Final = 0.06
"""How long the first paint waits for something to show."""
OPENING_SECONDS: Final = 0.05
"""After the first layout: until then panes still learn their sizes."""


class MailWaiting(Message):
    """The engine's mailbox turned from empty to full."""


def _command_provider() -> type[Provider]:
    from tracetui.ui.providers import CommandProvider

    return CommandProvider


def _run_provider() -> type[Provider]:
    from tracetui.ui.providers import RunProvider

    return RunProvider


class TraceApp(BaseApp):
    """tracetui in a terminal."""

    COMMANDS: ClassVar = {_command_provider, _run_provider}
    BINDINGS: ClassVar = [Binding("ctrl+p", "command_palette", "palette", show=False)]
    """Textual's own binding would take the key before the keys that were typed before it."""

    def __init__(
        self,
        engine: Engine,
        roots: Sequence[str],
        *,
        palette: str = "dark",
        glyphs: Glyphs = UNICODE,
        zone: tzinfo | None = None,
        commands: Sequence[Command] = TABLE,
        arrangement: Arrangement | None = None,
        slow: bool = False,
    ) -> None:
        super().__init__(commands, palette=palette, glyphs=glyphs, zone=zone)
        self.pace = Pace(slow=slow)
        self._mail_due = False
        self.engine = engine
        self.roots = list(roots)
        self.store = Store()
        self.verdicts = Verdicts(roots)
        self.main = MainScreen(commands, arrangement)
        self.stage = "list"
        self.seen = 0
        self.total: int | None = None
        self._opening = True
        self._held_back = False

    def get_default_screen(self) -> MainScreen:
        return self.main

    def on_mount(self) -> None:
        self.set_timer(OPENING_SECONDS, self._opened)
        self._take_first_mail()
        self.engine.bind(self._ring)

    def _ring(self) -> None:
        self.post_message(MailWaiting())

    def open_screen(self, screen: Screen[None]) -> None:
        """Show a screen of panes that have nothing to show yet: in whole frames until it has (`opened`), or soon."""
        self._opening = True
        self.push_screen(screen)
        self.set_timer(OPENING_SECONDS, self.opened)

    def opened(self) -> None:
        """The screen has something to show."""
        if self._opening:
            self._opened()

    def _opened(self) -> None:
        self._opening = False
        if self._held_back:
            self.screen.refresh()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Paint — but while the screen opens only whole frames: every pane reports its size then, and each report would
        paint most of the screen once more (five times as many bytes, on a slow line a visible stutter).
        """
        if self._opening:
            self._held_back = renderable is not None and not isinstance(renderable, LayoutUpdate)
            if self._held_back:
                return
        super()._display(screen, renderable)

    def _take_first_mail(self) -> None:
        """Let the first paint show the first rows, the run under the cursor and its detail.

        Waits a few hundredths of a second at most: painting an empty frame first would take longer.
        """
        end = time.monotonic() + FIRST_MAIL_SECONDS
        while self.engine.wait(end - time.monotonic()):
            self._take_mail()
            if self.main.presentable:
                break

    async def on_event(self, event: Event) -> None:
        if isinstance(event, InputEvent):
            self.engine.key()
        await super().on_event(event)

    def on_mail_waiting(self) -> None:
        """Take in what the engine left: at once what a key asked for, the rest as often as the terminal bears."""
        lag = self._driver_says("lag_seconds")
        wait = 0.0 if self.engine.urgent else self.pace.delay(time.monotonic(), lag)
        if wait <= 0:
            self._take_mail()
        elif not self._mail_due:
            self._mail_due = True
            self.set_timer(wait, self._take_mail)

    def _driver_says(self, what: str) -> float:
        """What only our own driver knows; 0 under another one."""
        return float(getattr(self._driver, what, 0.0))

    def _take_mail(self) -> None:
        self._mail_due = False
        now, sent = time.monotonic(), self._driver_says("sent_bytes")
        self.pace.painted(now, 0)
        self.call_after_refresh(lambda: self.pace.painted(now, int(self._driver_says("sent_bytes") - sent)))
        mail = self.engine.collect()
        if mail.failure is not None:
            raise mail.failure
        if mail.found or mail.total is not None:
            self.stage, self.seen, self.total = mail.stage, mail.seen, mail.total
        with self.engine.pause(), self.batch_update():
            self.main.receive(mail)

    # ---- for the screens

    def back_to_main(self) -> list[FramedScreen]:
        """Take away what lies over the main screen, and say what that was."""
        above = [screen for screen in self.screen_stack[1:] if isinstance(screen, FramedScreen)]
        for screen in self.screen_stack[:0:-1]:
            self.close_screen(screen)
        return above

    def push_again(self, screens: Sequence[FramedScreen]) -> None:
        """Open screens as they were left, one over the other."""
        for screen in screens:
            if (again := screen.again()) is not None:
                self.push_screen(again)

    def rescan(self) -> None:
        """Read the directory again."""
        self.store.begin_scan()
        self.engine.rescan()

    def edit(self, text: str) -> None:
        """Open a cleaned copy of `text` in $EDITOR, in a private folder; never the trace itself."""
        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.TemporaryDirectory(prefix="tracetui-") as folder:
            path = os.path.join(folder, "detail.txt")
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as copy:
                copy.write("\n".join(clean_lines(text)))
            with self.suspend():
                subprocess.run([*editor, path], check=False)  # noqa: S603 — the user's own editor, no shell
        self.refresh()


def run_app(
    paths: Sequence[str],
    *,
    format: str | None = None,
    theme: str | None = None,
    ascii_glyphs: bool = False,
    target: str | None = None,
    source: Source | None = None,
    follow: bool = False,
    newest: bool = False,
    notify: bool = False,
    slow: bool = False,
    events: bool = True,
) -> int:
    """Run the application on these files and directories until the user quits; returns the exit status.

    `target` is the address to open; `newest` opens the newest run instead; `follow` follows that run, else the newest.
    `events` False polls.
    """
    settings = config.load()
    commands = config.commands(settings)
    place = source or LocalSource()
    with_ascii = ascii_glyphs or settings.ascii
    masking.choose(ascii_glyphs=with_ascii)
    engine = Engine(place, paths, only=format, events=events)
    engine.start()
    app = TraceApp(
        engine,
        paths,
        palette="ansi" if "NO_COLOR" in os.environ else theme or settings.theme,
        glyphs=ASCII if with_ascii else UNICODE,
        zone=UTC if settings.time == "utc" else None,
        commands=commands,
        arrangement=config.arrangement(settings),
        slow=slow,
    )
    app.main.live.newest, app.main.live.notify = newest or (follow and target is None), notify
    app.main.follow_target = follow
    if target is not None:
        app.main.target = address.parse(target, place.is_file)

    def afterwards() -> None:
        engine.stop()
        config.remember(app.main.runs.arrangement, paths)

    return drive(app, afterwards)
