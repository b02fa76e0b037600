"""One line to type in: what it asks for is a `Question`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from tracetui.text import clean
from tracetui.ui.widgets.lines import LineBar

_EDITS: Final = {
    key: binding.action for binding in Input.BINDINGS if isinstance(binding, Binding) for key in binding.key.split(",")
}


class Question:
    """What a prompt asks for. By itself it hands the line to `answer` when Enter is pressed; Esc cancels."""

    def __init__(self, label: str, value: str, answer: Callable[[str], None] = lambda text: None) -> None:
        self.label, self.value, self._answer = label, value, answer

    def accepts(self, text: str) -> bool:
        """Whether Enter takes what is typed; else shows what is wrong with it."""
        return True

    def typed(self, text: str) -> None:
        """Another character was typed."""

    def complete(self, text: str, cursor: int, step: int) -> tuple[str, int] | None:
        """The next completion of what is typed, and the cursor in it; None if there is none."""
        return None

    def done(self, text: str, *, taken: bool) -> None:
        """The prompt was closed, and the pane has the focus again."""
        if taken:
            self._answer(text)


class Asker(Protocol):
    """A screen with a prompt."""

    hint: LineBar
    """The line below the prompt."""

    def ask(self, question: Question) -> None: ...


class Prompt(Input):
    """Stands in place of the sentence while something is typed. Enter accepts, Esc cancels."""

    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0 1; background: $panel; }
    Prompt:focus { border: none; background: $panel; }
    Prompt.-textual-compact { padding: 0 1; }
    """

    class Typed(Message):
        """Another character was typed."""

        def __init__(self, question: Question, value: str) -> None:
            self.question, self.value = question, value
            super().__init__()

    class Done(Typed):
        """The line was taken, or given up."""

        def __init__(self, question: Question, value: str, *, taken: bool) -> None:
            self.taken = taken
            super().__init__(question, value)

    def __init__(self) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self.question = Question("", "")
        self._quiet = True

    def ask(self, question: Question) -> None:
        """Begin to ask; the caller focuses it."""
        self.question = question
        self.placeholder = clean(question.label)
        self._quiet = True
        self.value = question.value
        self.cursor_position = len(question.value)
        self.display = True
        self._quiet = False

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not self._quiet and self.display:
            self.post_message(self.Typed(self.question, event.value))

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
            completed = self.question.complete(self.value, self.cursor_position, 1 if event.key == "tab" else -1)
            if completed is not None:
                self.value, self.cursor_position = completed
        elif event.key == "escape":
            self._finish(taken=False)
        elif event.key == "enter":
            if self.question.accepts(self.value):
                self._finish(taken=True)
        elif event.key in _EDITS:
            await self.run_action(_EDITS[event.key])
        else:
            return
        event.stop()
        event.prevent_default()

    def _finish(self, *, taken: bool) -> None:
        self.display = False
        self.post_message(self.Done(self.question, self.value, taken=taken))
