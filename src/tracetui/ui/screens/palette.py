"""The command palette: Textual's, safe against keys that arrive together, and its providers of commands and runs.

Providers yield `Content` only, never markup.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from textual import events
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape
from textual.message import Message
from textual.widgets import Input, OptionList

from tracetui.masking import one_line
from tracetui.text import Clean
from tracetui.ui.commands import shown
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.theme import PALETTES

if TYPE_CHECKING:
    from tracetui.ui.app import TraceApp
    from tracetui.ui.base_app import BaseApp

MAX_RUNS: Final = 30


class CommandProvider(Provider):
    """The commands of the focused pane, and the themes."""

    @property
    def _entries(self) -> list[tuple[Clean, Clean, Callable[[], object]]]:
        app: TraceApp = self.app  # type: ignore[assignment]
        screen = self.screen if isinstance(self.screen, BaseScreen) else app.main
        entries: list[tuple[Clean, Clean, Callable[[], object]]] = [
            (
                Clean(f"{command.title}  {shown(command.keys[0])}"),
                Clean(command.help),
                partial(screen.perform, command),
            )
            for command in app.commands
            if command.group not in ("move",) and screen.pane in command.panes
        ]
        entries += [
            (Clean(f"theme {name}"), Clean("Change the theme."), partial(app.use_palette, name)) for name in PALETTES
        ]
        return entries

    async def discover(self) -> Hits:
        for name, words, run in self._entries:
            yield DiscoveryHit(Content(name), run, help=escape(words))

    async def search(self, query: str) -> Hits:
        app: TraceApp = self.app  # type: ignore[assignment]
        command, _, words = query.partition(" ")
        if command == "grep" and words:
            search = partial(app.main.search_runs, words)
            yield Hit(1.0, Content(f"grep all runs for {one_line(words, 80)}"), search)
        matcher = self.matcher(query)
        for name, words, run in self._entries:
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, Content(name), run, help=escape(words))


class RunProvider(Provider):
    """Runs that match a query in the syntax of the list's filter: words, ``status:error`` …"""

    async def search(self, query: str) -> Hits:
        from tracetui.store.query import begun

        app: TraceApp = self.app  # type: ignore[assignment]
        wanted, error = begun(query, app.query_context())
        if error is not None and not error.unfinished:
            return
        for run in wanted.select(app.store.runs.values())[:MAX_RUNS]:
            label = one_line(f"{run.status.value:<9} {run.name}  {run.id}  {run.prompt}", 160)
            yield Hit(0.5, Content(label), partial(app.main.enter, run.ref))


class Palette(CommandPalette):
    """Command palette that runs one command at most and closes once."""

    app: BaseApp

    def on_key(self, event: events.Key) -> None:
        """Handle keys that the input did not."""
        if self.app.redirect_key(event, self):
            return
        if event.key == "escape":
            self._action_escape()
        elif event.is_printable and self.focused is not None:  # it arrived before the input was focused
            self.focused.post_message(events.Key(event.key, event.character))
        else:
            return
        event.stop()
        event.prevent_default()

    def dismiss(self, result: object = None) -> AwaitComplete:
        self.app.close_screen(self)
        return AwaitComplete()

    async def _on_message(self, message: Message) -> None:
        if self.is_active or not isinstance(message, Input.Submitted | OptionList.OptionSelected):
            await super()._on_message(message)
