"""One line to type in: search and filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from tracetui.text import clean

FILTER: Final = "filter"
"""How the purpose of a prompt begins that filters: what is given up filters no more."""
_EDITS: Final = {
    key: binding.action for binding in Input.BINDINGS if isinstance(binding, Binding) for key in binding.key.split(",")
}


class Prompt(Input):
    """Stands in place of the sentence while something is typed. Enter takes it, Esc gives it up."""

    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0 1; background: $panel; }
    Prompt:focus { border: none; background: $panel; }
    Prompt.-textual-compact { padding: 0 1; }
    """

    class Typed(Message):
        """Another character was typed."""

        def __init__(self, purpose: str, value: str) -> None:
            self.purpose, self.value = purpose, value
            super().__init__()

    class Done(Typed):
        """The line was taken (or given up: then `value` is what stood there before)."""

        def __init__(self, purpose: str, value: str, *, taken: bool) -> None:
            self.taken = taken
            super().__init__(purpose, value)

    class Complete(Message):
        """Tab was pressed (`step` 1), or Shift+Tab (-1): the text may go on by itself."""

        def __init__(self, prompt: Prompt, purpose: str, step: int) -> None:
            self.prompt, self.purpose, self.step = prompt, purpose, step
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self._purpose = ""
        self._before = ""
        self._accepts: Callable[[str, str], bool] = lambda purpose, value: True
        self._quiet = True

    def ask(self, label: str, value: str, purpose: str, accepts: Callable[[str, str], bool]) -> None:
        """Begin to ask; the caller focuses it. It stays open while `accepts` refuses what Enter gives."""
        self._purpose, self._before, self._accepts = purpose, value, accepts
        self.placeholder = clean(label)
        self._quiet = True
        self.value = value
        self.cursor_position = len(value)
        self.display = True
        self._quiet = False

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not self._quiet and self.display:
            self.post_message(self.Typed(self._purpose, event.value))

    @staticmethod
    def takes(event: events.Key) -> bool:
        """Whether it does something with that key."""
        return event.is_printable or event.key in _EDITS or event.key in ("tab", "shift+tab", "escape")

    async def on_key(self, event: events.Key) -> None:
        """Textual would edit later than it types: after a key that edits, typed text may be here already."""
        if not self.display:  # answered: this key was on its way here
            event.prevent_default()
            return
        if event.key in ("tab", "shift+tab"):
            self.post_message(self.Complete(self, self._purpose, 1 if event.key == "tab" else -1))
        elif event.key == "escape":
            self._finish("" if self._purpose.startswith(FILTER) else self._before, taken=False)
        elif event.key == "enter":
            if self._accepts(self._purpose, self.value):
                self._finish(self.value, taken=True)
        elif event.key in _EDITS:
            await self.run_action(_EDITS[event.key])
        else:
            return
        event.stop()
        event.prevent_default()

    def put(self, text: str, cursor: int) -> None:
        """Put text in place of what was typed, as if it was typed."""
        self.value = text
        self.cursor_position = cursor

    def _finish(self, value: str, *, taken: bool) -> None:
        self.display = False
        self.post_message(self.Done(self._purpose, value, taken=taken))
