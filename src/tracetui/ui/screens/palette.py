"""Textual's command palette, made safe against keys that arrive together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.message import Message
from textual.widgets import Input, OptionList

if TYPE_CHECKING:
    from tracetui.ui.base_app import BaseApp


class Palette(CommandPalette):
    """Finds commands and runs by name. Runs one command at most, and closes once."""

    app: BaseApp

    def on_key(self, event: events.Key) -> None:
        """Take the keys that the line to type in did not."""
        if self.app.redirect_key(event, self):
            return
        if event.key == "escape":
            self._action_escape()
        elif event.is_printable and self.focused is not None:  # it came before there was something to type in
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
