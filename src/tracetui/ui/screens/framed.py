"""What all screens of panes have in common: header, sentence and footer; keys that become commands; a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.geometry import Size
from textual.reactive import Reactive
from textual.screen import Screen

from tracetui.live.mail import Mail
from tracetui.text import Clean
from tracetui.ui import layout
from tracetui.ui.commands import Command, Keys, shown, typed
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import LineBar
from tracetui.ui.widgets.prompt import Prompt
from tracetui.ui.widgets.too_small import TooSmall
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, Piece

if TYPE_CHECKING:
    from tracetui.ui.app import TraceApp


ANSWER: Final = "answer"
"""Purpose of a prompt that somebody waits for."""
_ENDS: Final = (("enter", "takes it"), ("escape", "gives it up"))


class FramedScreen(Screen[None], inherit_bindings=False):
    """A screen of panes. Whoever inherits composes header, sentence, panes and footer, and says who does what.

    It has no keys but those of the table of commands.
    """

    CSS = "FramedScreen.tiny { layers: default over; }"

    app: TraceApp
    virtual_size = Reactive(Size(0, 0), layout=False)  # as in LineWidget

    def __init__(self, commands: Sequence[Command], views: dict[str, LineView]) -> None:
        super().__init__()
        self.views = views
        """The panes by name, in the order of their numbers."""
        self.keys = Keys(commands)
        self.zoomed: str | None = None
        self.said: Line = ()
        self._prompt: Prompt | None = None
        self._too_small: TooSmall | None = None
        self._asking = ""
        """What the prompt asks for, in words."""
        self._awaits_answer = False
        """Whether the prompt was opened, and its answer has not come."""
        self._after_answer: list[events.Key] = []
        """Keys that were typed after the answer but arrived before it."""
        self._answer: tuple[Callable[[str], None], LineView] | None = None
        """Who waits for what is typed into the prompt, and which pane had the focus."""
        self._header = LineBar(id="header")
        self._sentence = LineBar("bg", id="sentence")
        self._footer = LineBar(id="footer")

    @property
    def doers(self) -> Iterable[object]:
        """Who has the methods ``do_<action>`` of the commands."""
        raise NotImplementedError

    def receive(self, mail: Mail) -> None:
        """Take in what the engine left."""

    def again(self) -> FramedScreen | None:
        """The same screen anew, as it was left, for somebody who comes back to it; None where nobody does."""
        return None

    def leave(self) -> bool:
        """Go back to the screen before; False if this one is not active: it was left already, or another covers it."""
        if not self.app.close_screen(self):
            return False
        self.left()
        return True

    def left(self) -> None:
        """Stop what only this screen needs: it was closed."""

    def refresh_frame(self) -> None:
        """Header, sentence and footer as of now."""
        raise NotImplementedError

    def say(self, text: str, style: str = "sec") -> None:
        """Say something in the sentence row until the next key."""
        self.said = (Piece(one_line(text, 400), style),)
        self.refresh_frame()

    @property
    def pane(self) -> str:
        """Name of the focused pane."""
        return next((name for name, view in self.views.items() if view is self.focused), next(iter(self.views)))

    @property
    def view(self) -> LineView:
        """The focused pane."""
        return self.views[self.pane]

    def on_resize(self, event: events.Resize) -> None:
        """Where nothing useful fits, say so in place of everything."""
        tiny = layout.is_tiny(*event.size)
        if tiny and self._too_small is None:
            self._too_small = TooSmall()
            self.mount(self._too_small)
        if self._too_small is not None:
            self._too_small.display = tiny
        self.set_class(tiny, "tiny")

    # ---- keys

    def on_key(self, event: events.Key) -> None:
        """Every key that no prompt took: look it up in the table of commands."""
        if self.app.redirect_key(event, self):
            return
        prompt = self._prompt
        if prompt is not None and self._awaits_answer and not prompt.display:  # the answer is on its way to this screen
            self._after_answer.append(event)
            event.stop()
            event.prevent_default()
            return
        if prompt is not None and prompt.display and self.focused is prompt:
            if prompt.takes(event):  # it was on its way here before there was something to type in
                event.stop()
                prompt.post_message(events.Key(event.key, event.character))
            return
        before = self.keys.pending
        command = self.keys.press(typed(event.key, event.character), self.pane)
        if command is not None or self.keys.pending or before:
            event.stop()
            event.prevent_default()
        if command is not None:
            self.perform(command)
        elif self.keys.pending or before:
            self.said = self._continuations()
            self.refresh_frame()

    def _continuations(self) -> Line:
        """What the next key may be, after the first one of a sequence."""
        words = [Piece(clean(f" {self.keys.pending} "), "onaccent bold"), Piece(Clean(" then"), "sec")]
        continuing = self.keys.continuing(self.pane)
        for key, command in continuing:
            title = command.title.rpartition(": ")[2].removeprefix("copy ")
            words += [Piece(clean(f"   {shown(key)}"), "key bold"), Piece(clean(f" {title}"), "text")]
        return tuple(words) if continuing else ()

    def perform(self, command: Command) -> None:
        """Do what a command says."""
        if self.said and self.is_active:
            self.said = ()
            self.refresh_frame()
        self.act(command.action)

    def act(self, action: str) -> None:
        """Do what an action of the table says; nothing while another screen is active."""
        if self.is_active:
            name, _, argument = action.partition(":")
            do = next(do for doer in self.doers if (do := getattr(doer, f"do_{name}", None)) is not None)
            do(argument)

    @on(LineView.Opened)
    def _row_opened(self) -> None:
        self.act("open")

    # ---- prompt

    def ask(self, label: str, value: str, purpose: str) -> None:
        """Ask for a line of text in place of the sentence; `purpose` is a pane to search in, or what else it is for."""
        if self._prompt is None:
            self._prompt = Prompt()
            self.mount(self._prompt, after=self._sentence)
        self._prompt.ask(label, value, purpose, self.accepts)
        self.set_focus(self._prompt)  # at once, unlike `focus`: the next key may be here already
        self._sentence.display = False
        self._asking = label
        self._awaits_answer = True
        self.refresh_frame()

    def show_footer(self, left: Line, right: Line) -> None:
        """The keys that are of use here; while something is asked for, what that is."""
        if self._prompt is not None and self._prompt.display:
            keys = ((Piece(Clean(shown(key)), "key bold"), Piece(Clean(f" {word}  "), "sec")) for key, word in _ENDS)
            left, right = (Piece(one_line(self._asking, 200), "text"),), tuple(chain.from_iterable(keys))
        self._footer.show(left, right)

    @on(Prompt.Typed)
    def _prompt_changed(self, message: Prompt.Typed) -> None:
        if self._prompt is not None and self._prompt.display:  # else it was answered meanwhile
            self.typed(message.purpose, message.value)

    @on(Prompt.Done)
    def _prompt_done(self, message: Prompt.Done) -> None:
        self._sentence.display = True
        self._awaits_answer = False
        if message.purpose == ANSWER:
            self._give_answer(message.value if message.taken else None)
        else:
            self.answered(message.purpose, message.value)
        self.refresh_frame()
        waiting, self._after_answer = self._after_answer, []
        for event in waiting:
            self.on_key(event)

    def _give_answer(self, value: str | None) -> None:
        if self._answer is not None:
            (answer, view), self._answer = self._answer, None
            view.focus()
            if value is not None:
                answer(value)

    def ask_for(self, label: str, value: str, answer: Callable[[str], None]) -> None:
        """Ask for a line of text, and call `answer` with it, unless it is given up."""
        self._answer = answer, self.view
        self.ask(label, value, ANSWER)

    @on(Prompt.Complete)
    def _prompt_completes(self, message: Prompt.Complete) -> None:
        prompt = message.prompt
        completed = self.completed(message.purpose, prompt.value, prompt.cursor_position, message.step)
        if completed is not None:
            prompt.put(*completed)

    def completed(self, purpose: str, value: str, cursor: int, step: int) -> tuple[str, int] | None:
        """How what is typed may go on, and where the cursor is then; None if nobody knows."""
        return None

    def accepts(self, purpose: str, value: str) -> bool:
        """Whether Enter takes what is typed; else what is wrong with it is shown."""
        return True

    def typed(self, purpose: str, value: str) -> None:
        """Another character was typed into the prompt."""
        if purpose != ANSWER:
            self.views[purpose].search(value)

    def answered(self, purpose: str, value: str) -> None:
        """The prompt was answered, or given up."""
        view = self.views[purpose]
        view.focus()
        view.search(value)
        if value:
            self.found(view)

    def found(self, view: LineView) -> None:
        """Something is searched for in a pane: go to its first hit from here on."""
        raise NotImplementedError
