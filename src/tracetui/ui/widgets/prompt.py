"""One-line prompt; a `Question` defines its label, completion and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec.structs import replace
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input

from tracetui.masking import clean, mask
from tracetui.text import Clean, cells, exact, grouped
from tracetui.ui.widgets.lines import LineBar
from tracetui.views.rows import Line, Piece, fit

if TYPE_CHECKING:
    from tracetui.store.query import Completion, QueryError

_EDITS: Final = {
    key: binding.action for binding in Input.BINDINGS if isinstance(binding, Binding) for key in binding.key.split(",")
}


LABEL_MARGIN: Final = 3
"""Blank cells around the label beside the input."""


class Question:
    """Question of a prompt. By default, Enter calls `answer` with the line, and Esc cancels."""

    def __init__(self, label: str, value: str, answer: Callable[[str], None] = lambda text: None) -> None:
        self.label, self.value, self._answer = label, value, answer

    @property
    def title(self) -> str:
        """The part of the label beside the input."""
        return self.label.partition(": ")[0].removesuffix(":") + ":"

    @property
    def hint(self) -> str:
        """The part of the label below: what may be typed."""
        return self.label.partition(": ")[2]

    def accepts(self, text: str) -> bool:
        """Whether Enter accepts the text; if not, shows the error."""
        return True

    def text_changed(self, text: str) -> None:
        """Handle a change of the text."""

    def complete(self, text: str, cursor: int, step: int) -> tuple[str, int] | None:
        """The completed text and its cursor; None if there is no completion."""
        return None

    def done(self, text: str, *, taken: bool) -> None:
        """Handle the closed prompt; the pane has the focus again."""
        if taken:
            self._answer(text)


class Prompter(Protocol):
    """Screen with a prompt."""

    hint: LineBar
    """The line below the prompt."""

    def ask(self, question: Question) -> None: ...


class Prompt(Input):
    """Input in place of the status line. Enter accepts, Esc cancels."""

    DEFAULT_CSS = """
    Prompt { width: 1fr; height: 1; border: none; padding: 0 1; background: $panel; }
    Prompt:focus { border: none; background: $panel; }
    Prompt.-textual-compact { padding: 0 1; }
    """

    class Typed(Message):
        """The text changed."""

        def __init__(self, question: Question, value: str) -> None:
            self.question, self.value = question, value
            super().__init__()

    class Done(Typed):
        """The line was accepted or canceled."""

        def __init__(self, question: Question, value: str, *, taken: bool) -> None:
            self.taken = taken
            super().__init__(question, value)

    def __init__(self) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self.question = Question("", "")
        self._quiet = True

    def ask(self, question: Question) -> None:
        """Open the prompt; the caller focuses it."""
        self.question = question
        self.placeholder = exact(question.hint)
        self._quiet = True
        self.value = question.value
        self.cursor_position = len(question.value)
        self.display = True
        self._quiet = False

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not self._quiet and self.display:
            self.post_message(self.Typed(self.question, event.value))

    async def press(self, key: str, character: str | None) -> None:
        """Edit the line, or end with it."""
        if key in ("tab", "shift+tab"):
            completed = self.question.complete(self.value, self.cursor_position, 1 if key == "tab" else -1)
            if completed is not None:
                self.value, self.cursor_position = completed
        elif key == "escape" or (key == "enter" and self.question.accepts(self.value)):
            self.display = False
            await self.screen._dispatch_message(self.Done(self.question, self.value, taken=key == "enter"))
        elif key in _EDITS and key != "enter":
            await self.run_action(_EDITS[key])
        else:
            await self._on_key(events.Key(key, character))

    def paste(self, text: str) -> None:
        """Type the first line of a text."""
        self._on_paste(events.Paste(text))


class Filter(NamedTuple):
    """Target of a filter query: the runs, or the steps of a run."""

    apply: Callable[[str], None]
    """Applies a query; of an invalid query, the part before the error."""
    fault: Callable[[str], QueryError | None]
    offers: Callable[[str, int], Sequence[Completion]]
    """Returns the completions of a query at a column."""
    count_matches: Callable[[], tuple[int, int, str]]
    """Returns (matches, total, noun)."""

    def then(self, changed: Callable[[], None]) -> Filter:
        """A filter that calls `changed` after it applied a query."""

        def apply(query: str) -> None:
            self.apply(query)
            changed()

        return self._replace(apply=apply)


class _Cycle(NamedTuple):
    """Completion cycle of Tab: original text, completions and index of the current one."""

    text: str
    offers: Sequence[Completion]
    at: int

    @property
    def completed_text(self) -> str:
        offer = self.offers[self.at]
        return self.text[: offer.start] + offer.text + self.text[offer.end :]


class QueryQuestion(Question):
    """Prompt for a filter query, applied while typing; Esc removes it. `hint`: line for errors and completions."""

    def __init__(self, label: str, value: str, filter: Filter, hint: LineBar) -> None:
        super().__init__(label, value)
        self._filter, self._hint = filter, hint
        self._cycle: _Cycle | None = None
        self._show(value)

    def text_changed(self, text: str) -> None:
        if self._cycle is not None and text != self._cycle.completed_text:
            self._cycle = None
        error = self._filter.fault(text)
        if error is None or error.unfinished:  # else the last valid filter stays
            self._filter.apply(text)
        self._show(text)

    def accepts(self, text: str) -> bool:
        error = self._filter.fault(text)
        if error is not None:
            self._hint.show(self._fault(text, error))
        return error is None

    def done(self, text: str, *, taken: bool) -> None:
        self._hint.display = False
        self._filter.apply(text if taken else "")

    def complete(self, text: str, cursor: int, step: int) -> tuple[str, int] | None:
        cycle = self._cycle
        if cycle is None:
            offers = self._offers(text, cursor)
            cycle = _Cycle(text, offers, 0 if step > 0 else len(offers) - 1)
        else:
            cycle = cycle._replace(at=(cycle.at + step) % len(cycle.offers))
        if not cycle.offers:
            return None
        self._cycle = cycle if len(cycle.offers) > 1 else None  # a single completion: Tab continues after it
        offer = cycle.offers[cycle.at]
        return cycle.completed_text, offer.start + len(offer.text)

    def _offers(self, text: str, cursor: int) -> list[Completion]:
        """Completions at the cursor, whose secrets are masked: a query matches what a mask stands for."""
        return [replace(offer, text=mask(offer.text)) for offer in self._filter.offers(text, cursor)]

    @property
    def _width(self) -> int:
        return self._hint.app.size.width - 2

    def _show(self, text: str) -> None:
        error = self._filter.fault(text)
        if error is not None and not error.unfinished:
            line = self._fault(text, error)
        else:
            line = tuple(fit(self._matches(text), self._width))
        self._hint.show(line)
        self._hint.display = True

    def _fault(self, text: str, error: QueryError) -> Line:
        """Error message of a query, below its position if it fits."""
        message = exact(error.message)  # type: ignore[unmasked]  # what the user typed
        column = cells(exact(text[: error.column])) + cells(exact(self.title)) + LABEL_MARGIN  # type: ignore[unmasked]
        if column + 2 + cells(message) > self._width:
            return tuple(fit((Piece(message, "status.warn"),), self._width))
        return Piece(Clean(f"{' ' * column}^ "), "status.warn bold"), Piece(message, "status.warn")

    def _matches(self, text: str) -> Line:
        """Number of matches, and the possible completions."""
        matches, total, noun = self._filter.count_matches()
        pieces = [
            Piece(Clean(f"{grouped(matches)} of {grouped(total)} {noun}  "), "text bold" if matches else "status.warn")
        ]
        cycle = self._cycle
        offers = cycle.offers if cycle is not None else self._offers(text, len(text))
        first = cycle.at if cycle is not None else 0
        if offers:
            pieces.append(Piece(Clean(" Tab "), "key bold"))
        for i, offer in enumerate(offers[first : first + 12]):
            style = "hit" if cycle is not None and i == 0 else "text"
            pieces += [Piece(Clean(" ")), Piece(clean(offer.text, 40), style)]
            pieces.append(Piece(Clean(f" {exact(offer.hint, 40)} "), "dim"))
        return tuple(pieces)
