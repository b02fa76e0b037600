"""Base classes of the screens: header, status line, footer, keys and prompt.

The main screen and the triage share how runs are judged, compared and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from textual import actions, events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.reactive import Reactive

from tracetui.errors import TracetuiError, UsageError
from tracetui.live.mailbox import Mail
from tracetui.masking import clean, mask, one_line
from tracetui.model import RunRef, RunSummary
from tracetui.text import Clean, cells, size
from tracetui.ui import layout
from tracetui.ui.base_app import HostApp, StackScreen
from tracetui.ui.commands import AUDIT, FILES, Command, Keys, key_label, key_name, keys_of, of_pane, unbound_reason
from tracetui.ui.panes.run_list import QUERY_LABEL
from tracetui.ui.services.verdicts import Subject, subject_label
from tracetui.ui.state import PanesState, focus, toggle_zoom
from tracetui.ui.widgets.frame import footer
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box, KeyClicked, LineBar, TooSmall
from tracetui.ui.widgets.prompt import LABEL_MARGIN, Filter, Prompt, QueryQuestion, Question
from tracetui.views.rows import Line, Piece

if TYPE_CHECKING:
    from tracetui.store.judgement import Verdict


HINT: Final = "  ·  "
"""Separates the hints of a status message."""
_ACCEPT: Final = ("enter", "accept")
_CANCEL: Final = ("escape", "cancel")
_UNFOLD: Final = frozenset({"unfold", "tree-unfold"})


class BaseScreen(StackScreen, inherit_bindings=False):
    """Screen of panes. A subclass composes header, status line, panes and footer, and renders its state.

    Keys are dispatched here, one at a time: Textual has no key sequences (``]t``), and keys typed together must not
    overtake each other in the queues of several widgets.
    """

    state: PanesState
    virtual_size = Reactive(Size(0, 0), layout=False)  # as in LineWidget

    def __init__(self, commands: Sequence[Command], views: dict[str, LineView], state: PanesState) -> None:
        super().__init__()
        self.commands = commands
        self.views = views
        """Panes by name, in the order of their numbers."""
        for name, view in views.items():
            view.bind_commands(of_pane(name, commands))
        self.state = state
        self.keys = Keys()
        self._unbound: set[str] = set()
        """Keys without a command that were reported, each once."""
        self.status_message: Line = ()
        self._current: tuple[Callable[[], str], str] | None = None
        """Computes the current status message, if it changes with time; and its style."""
        self._prompt: Prompt | None = None
        self._too_small: TooSmall | None = None
        self._header = LineBar(id="header")
        self._sentence = LineBar("bg", id="sentence")
        self._footer = LineBar(id="footer")
        self._label, self._ask_bar = LineBar("raised"), Box(classes="prompt")
        self.hint = LineBar("bg", id="hint")
        """Errors and completions of a query."""
        self._idle = frozenset[str]()
        """The commands that the footer leaves out."""
        self.hint.display = False

    # ---- hooks of subclasses

    def receive(self, mail: Mail) -> None:
        """Handle mail from the engine."""

    def become(self, state: Any) -> None:
        """Replace the state and render the changes."""
        self.state = state

    def step_back(self) -> None:
        """Go back within the screen; at its top, leave it."""
        self.leave()

    def recreate(self) -> BaseScreen | None:
        """Return a new screen in this state, to reopen it later; None if it can't be reopened."""
        return None

    def on_closed(self) -> None:
        """Clean up after the screen was closed."""

    def refresh_frame(self) -> None:
        """Redraw header, status line and footer."""
        raise NotImplementedError

    @property
    def ref(self) -> RunRef | None:
        """Run of the row under the cursor."""
        return None

    def copyable(self, what: str) -> str | None:
        """Path or address of the row under the cursor; None copies the row instead, an empty string nothing."""
        return None if self.ref is None else self.ref.path if what == "path" else self.ref.address

    # ---- the frame

    def leave(self) -> bool:
        """Close the screen; False if it isn't active."""
        if not self.app.close_screen(self):
            return False
        self.on_closed()
        return True

    def say(self, text: str, style: str = "sec") -> None:
        """Show a status message until the next key.

        After `HINT`, which cleaned text can't contain, comes a key of the focused pane and what it does.
        """
        first, *hints = text.split(HINT)
        pieces = [Piece(one_line(first, 400), style)]
        keys = {key_label(key) for key in self.view.bound}
        for hint in hints:
            key, _, label = hint.partition(" ")
            pieces.append(Piece(Clean(" · "), "dim"))
            if key in keys:
                pieces += [Piece(clean(key), "key bold"), Piece(Clean(f" {one_line(label, 200)}"), "sec")]
            else:
                pieces.append(Piece(one_line(hint, 400), style))
        self.status_message, self._current = tuple(pieces) if text else (), None
        self.refresh_frame()

    def say_current(self, make: Callable[[], str], style: str = "sec") -> None:
        """Show a status message that is recomputed over time, until it is empty or the next key."""
        self.say(make(), style)
        self._current = make, style

    def refresh_status(self) -> None:
        """Recompute a status message that changes with time."""
        if self.status_message and self._current is not None:
            self.say_current(*self._current)

    def apply_classes(self, classes: Mapping[str, bool]) -> None:
        """Set or remove each CSS class."""
        for name, on_ in classes.items():
            self.set_class(on_, name)

    @on(LineView.StatusMessage)
    def _pane_message_shown(self, message: LineView.StatusMessage) -> None:
        self.say(message.text, message.style)

    @on(KeyClicked)
    async def _key_clicked(self, message: KeyClicked) -> None:
        """Act as if a key that the screen names was typed."""
        for key, character in keys_of(message.key, self.view.bound):
            await self.press(key, character)

    @on(LineView.TabClicked)
    def _tab_clicked(self, message: LineView.TabClicked) -> None:
        self.show_tab(message.tab)

    def show_tab(self, tab: str) -> None:
        """Show a tab that was clicked."""

    @property
    def pane(self) -> str:
        """Name of the focused pane."""
        return self.state.pane

    @property
    def view(self) -> LineView:
        """The focused pane."""
        return self.views[self.state.pane]

    def focus_pane(self, name: str) -> None:
        """Focus a pane, and show it if it is hidden."""
        self.become(focus(self.state, name))

    def on_descendant_focus(self) -> None:
        """Follow a focus change by click or by Textual."""
        name = next((name for name, view in self.views.items() if view is self.focused), self.state.pane)
        if name != self.state.pane:
            self.pane_focused(name)
        self.refresh_frame()

    def pane_focused(self, name: str) -> None:
        """Update the state after a visible pane got the focus."""
        self.state = focus(self.state, name)

    def on_resize(self, event: events.Resize) -> None:
        """Fit the frame to the size; cover the screen with a notice if it is too small."""
        tiny = layout.is_tiny(*event.size)
        if tiny and self._too_small is None:
            self._too_small = TooSmall()
            self.mount(self._too_small)
        if self._too_small is not None:
            self._too_small.display = tiny
        self.set_class(tiny, "tiny")
        self.refresh_frame()

    @property
    def idle_commands(self) -> frozenset[str]:
        """Ids of commands without effect now, which the footer leaves out. A subclass adds its own."""
        return frozenset() if self.view.unfolds else _UNFOLD

    @on(LineView.Moved)
    def _cursor_moved(self) -> None:
        self.refresh_footer()

    def refresh_footer(self) -> None:
        """Show the keys of the focused pane."""
        self.show_footer(self.commands)

    def show_footer(self, commands: Sequence[Command], *, level: int = 1, hidden: int = 0) -> None:
        """Show the keys of the focused pane (see `footer`), of an open prompt, or of an incomplete sequence."""
        prompt, app = self._prompt, self.app
        self._idle = self.idle_commands
        if prompt is not None and prompt.display:
            left: Line = (Piece(one_line(prompt.question.hint, 200), "sec"),)
            right = _keys((_ACCEPT, _CANCEL))
        elif continuations := self._continuations():
            left, right = continuations, _keys((_CANCEL,))
        else:
            look, width = app.look, app.size.width
            left, right = footer(commands, self.pane, width, level, self._idle, hidden=hidden, glyphs=look.glyphs)
        self._footer.show(left, right)

    # ---- keys

    async def press(self, key: str, character: str | None) -> None:
        """Give a key to the open prompt, else run the command that it is bound to."""
        prompt = self._prompt
        if prompt is not None and prompt.display:
            self.set_focus(prompt)  # a click may have moved it
            await prompt.press(key, character)
            return
        prefix, bound = self.keys.pending, self.view.bound
        name = key_name(key, character)
        sequence, letter = self.keys.press(name, bound)
        if sequence:
            if (
                prefix in bound and len(sequence) > len(prefix) and sequence[0] == prefix
            ):  # ``z`` zoomed at once but begins ``zM``
                await self.perform(bound[prefix][0])
            await self.perform(bound[sequence][0], letter)
        elif self.keys.pending or prefix:
            self.status_message = ()
            self.refresh_frame()
        elif character is not None and character.isprintable() and key not in self._unbound:
            self._unbound.add(key)
            self.say(f"{unbound_reason(name, self.app.commands)}  ·  ? all keys")

    async def paste(self, text: str) -> None:
        """Paste into the open prompt."""
        if self._prompt is not None and self._prompt.display:
            self._prompt.paste(text)

    def _continuations(self) -> Line:
        """The possible next keys of a sequence; empty if none was begun, or if its first key had an effect already."""
        prefix, bound = self.keys.pending, self.view.bound
        pieces = [Piece(clean(f" {prefix} "), "onaccent bold"), Piece(Clean(" then"), "sec")]
        continuing = [] if prefix in bound else self.keys.continuing(bound)
        for key, sequence in continuing:
            title = bound[sequence][0].description.rpartition(": ")[2].removeprefix("copy ")
            pieces += [Piece(clean(f"   {key_label(key)}"), "key bold"), Piece(clean(f" {title}"), "text")]
        return tuple(pieces) if continuing else ()

    async def perform(self, command: Command | Binding, letter: str = "") -> None:
        """Run the action of a command; see `Command.action`. Does nothing while another screen is active."""
        if not self.is_active:
            return
        if self.status_message:
            self.status_message = ()
            self.refresh_frame()
        destination, name, arguments = actions.parse(command.action)
        node = next(node for node in self.view.ancestors_with_self if hasattr(node, f"action_{name}"))
        await self.app.run_action((destination, name, (*arguments, *letter)), node)
        if self.idle_commands != self._idle:
            self.refresh_footer()

    @on(LineView.Opened)
    def _row_opened(self) -> None:
        if self.is_active:
            self.action_open()
            self.refresh_footer()

    # ---- commands

    def action_open(self) -> None:
        """Open the row under the cursor."""

    def action_back(self) -> None:
        """Clear the selection, else the search, else go back."""
        if self.selections:
            self.clear_selection()
        elif self.view.needle:
            self.view.search("")
        else:
            self.step_back()

    def action_leave(self) -> None:
        """Leave the screen."""
        self.leave()

    def action_zoom(self) -> None:
        """Zoom the focused pane."""
        self.become(toggle_zoom(self.state))

    def reachable(self) -> Sequence[str]:
        """The panes that Tab cycles through."""
        return [*self.views]

    def action_next_pane(self, step: int) -> None:
        """Focus the next pane, or the one before."""
        names = self.reachable()
        if names:
            here = names.index(self.pane) if self.pane in names else 0
            self.focus_pane(names[(here + step) % len(names)])

    def action_pane(self, number: int) -> None:
        """Focus a pane by its number."""
        if number <= len(self.views):
            self.focus_pane([*self.views][number - 1])

    def action_search(self) -> None:
        """Search in the focused pane."""
        self.ask(_Search(self.view, lambda view: self.go_to_hit(view, 1, include_here=True)))

    def action_hit(self, step: int) -> None:
        """Go to the next hit of the focused pane, or the one before."""
        self.go_to_hit(self.view, step)

    def go_to_hit(self, view: LineView, step: int, *, include_here: bool = False) -> None:
        """Move to the next hit of the view's search, cyclically, and show its number."""
        if not view.needle:
            self.say("no search yet  ·  / searches")
            return
        hits = view.hits()
        if not hits:
            self.say(f"no matches for {view.needle!r} in this pane", "status.warn")
            return
        here = view.position
        if step > 0:
            at = next((i for i, hit in enumerate(hits) if hit > here or (include_here and hit == here)), 0)
        else:
            at = next((i for i in reversed(range(len(hits))) if hits[i] < here), len(hits) - 1)
        view.move_to(hits[at])
        view.reveal()
        self.say(f"/{view.needle}   hit {at + 1} of {len(hits)}  ·  n next  ·  N previous  ·  Esc clears")

    def action_copy(self, what: str) -> None:
        """Copy the selection or the row, or its path or address."""
        text = self.copyable(what) if what != "value" else None
        if text is not None:
            if text:
                self.copy(text, f"the {what}")
        elif selected := self.get_selected_text():
            self.copy(selected, "the selection")
        elif self.view.position < len(self.view.rows):
            row = self.view.rows.plain(self.view.position)
            self.copy(row if getattr(self.view, "revealed", None) is not None else mask(row), "the row")

    def copy(self, text: str, what: str) -> None:
        """Copy text to the clipboard and show the result."""
        copied = self.app.copy(text)
        if copied:
            self.say(f"copied {what}, {size(copied)} (OSC 52)")
        else:
            self.say(f"{what} is too long for the terminal's clipboard ({size(len(text))})", "status.warn")

    def copy_resume(self, run: RunSummary | None) -> None:
        """Copy the command that resumes a session, or say that there is none."""
        from tracetui.formats.programs import resume_command

        text = None if run is None else resume_command(run)
        if text is None:
            self.say("no command resumes this run", "status.warn")
        else:
            masked = mask(text)
            self.copy(masked, f"`{masked}`")

    def action_help(self) -> None:
        """Show the keys of the focused pane."""
        self.app.show_help(self.pane, self.view.pane_name)

    # ---- prompt

    def ask(self, question: Question) -> None:
        """Open the prompt in place of the status line."""
        if self._prompt is None:
            self._prompt = Prompt()
            self.mount(self._ask_bar, self.hint, after=self._sentence)
            self._ask_bar.mount(self._label, self._prompt)
        self._prompt.ask(question)
        label = one_line(question.title, max(12, self.app.size.width // 2))
        self._label.show((Piece(label, "key bold"),))
        self._label.styles.width = cells(label) + LABEL_MARGIN
        self._ask_bar.display = True
        self.set_focus(self._prompt)
        self._sentence.display = False
        self.refresh_frame()

    def ask_filter(self, query: str, target: Filter) -> None:
        """Ask for another query of the filter of runs or rows."""
        self.ask(QueryQuestion(QUERY_LABEL, query, target, self.hint))

    def ask_for(self, label: str, value: str, answer: Callable[[str], None]) -> None:
        """Prompt for a line of text; calls `answer` with it unless it is canceled."""
        self.ask(Question(label, value, answer))

    @on(Prompt.Typed)
    def _prompt_typed(self, message: Prompt.Typed) -> None:
        prompt, question = self._prompt, message.question
        if prompt is not None and prompt.display and prompt.question is question:  # else it was answered already
            question.text_changed(message.value)

    @on(Prompt.Done)
    def _prompt_done(self, message: Prompt.Done) -> None:
        self._ask_bar.display = False
        self._sentence.display = True
        self.set_focus(self.view)
        message.question.done(message.value, taken=message.taken)
        self.refresh_frame()


class _Search(Question):
    """Prompt for a search in a pane; calls `on_submit` on Enter."""

    def __init__(self, view: LineView, on_submit: Callable[[LineView], None]) -> None:
        super().__init__("search in this pane", view.needle)
        self._view, self._on_submit = view, on_submit

    def text_changed(self, text: str) -> None:
        self._view.search(text)

    def done(self, text: str, *, taken: bool) -> None:
        text = text if taken else self.value
        self._view.search(text)
        if text:
            self._on_submit(self._view)


def _keys(keys: Iterable[tuple[str, str]]) -> Line:
    """Keys and what they do."""
    pieces = ((Piece(Clean(key_label(key)), "key bold"), Piece(Clean(f" {word}  "), "sec")) for key, word in keys)
    return tuple(chain.from_iterable(pieces))


class BaseListScreen(BaseScreen):
    """Screen of a single list."""

    def __init__(self, pane: str, title: str, commands: Sequence[Command], view: LineView | None = None) -> None:
        """`view` replaces the default list; its id is `pane`."""
        self.list = view or LineView(id=pane)
        self.list.number, self.list.pane_name = 1, title
        super().__init__(commands, {pane: self.list}, PanesState(pane))

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield Box(self.list, classes="single")
        yield self._footer

    def on_mount(self) -> None:
        self.list.focus()
        self.call_after_refresh(self.show_rows)

    def on_screen_resume(self) -> None:
        self.show_rows()

    # ---- hooks of subclasses

    def show_rows(self) -> None:
        """Show the current rows."""
        raise NotImplementedError

    def path(self) -> tuple[Line, Line]:
        """Left part, after the program's name, and right part of the header."""
        raise NotImplementedError

    def summary(self) -> Line:
        """Content of the status line: the result and the next key."""
        raise NotImplementedError

    def action_reread(self) -> None:
        """Recompute the list."""

    # ---- the frame

    def refresh_frame(self) -> None:
        left, right = self.path()
        self._header.show((Piece(Clean("tracetui"), "accent bold"), Piece(Clean("  ")), *left), right)
        self._sentence.show(self.status_message or self.summary())
        self.refresh_footer()


GREP_ASK = "search all listed runs{}: text or /regex/, case-insensitive unless you type a capital"


class Scope(NamedTuple):
    """The runs that a question about many runs is about."""

    refs: Sequence[RunRef]
    of: str
    """Which runs they are, in words."""


class RunsScreen(BaseScreen):
    """A screen with runs under its cursor, as subclasses define."""

    app: HostApp

    @property
    def subject(self) -> Subject | None:
        """What a verdict is given to: the run under the cursor."""
        return self.app.store.runs.get(self.place[0]) if self.place is not None else None

    @property
    def subjects(self) -> Sequence[Subject]:
        """The targets of a verdict."""
        return [self.subject] if self.subject is not None else []

    @property
    def place(self) -> tuple[RunRef, str | None] | None:
        """The run and the span under the cursor."""
        raise NotImplementedError

    @property
    def idle_commands(self) -> frozenset[str]:
        return super().idle_commands | (frozenset() if self.app.verdicts.can_undo else {"undo"})

    @property
    def all_reviewed_note(self) -> str:
        """Addition to the message that all is reviewed."""
        return ""

    def scope(self, *, contrast: bool) -> Scope | None:
        """The runs of the statistics or, with `contrast`, those to compare with all others; None if there are none."""
        raise NotImplementedError

    def verdicts_changed(self, *, decided: bool) -> None:
        """Refresh after a decision; `decided`: it was a verdict, so move to the next row."""
        raise NotImplementedError

    def links_changed(self) -> None:
        """Show the new links of the shown run, on screens that show links."""

    def causes_changed(self) -> None:
        """Show the new causes of the failed runs."""
        raise NotImplementedError

    def go_to(self, ref: RunRef, span: str | None) -> None:
        """Go to a run, and to a span in it."""
        raise NotImplementedError

    def say_no_run(self) -> None:
        """Say that there is no run under the cursor, as long as that is so."""

        def message() -> str:
            is_run = self.place is not None and self.place[0] in self.app.store.runs
            return "" if is_run else "no run under the cursor"

        self.say_current(message, "status.warn")

    # ---- verdicts, notes, tags and marks

    def action_verdict(self, name: str) -> None:
        """Give a verdict to the marked rows, else to the one under the cursor."""
        from tracetui.store.judgement import Verdict

        subjects, verdict = self.subjects, Verdict(name)
        tasks = self.app.verdicts.unjudged_tasks(subjects)
        if not subjects:
            self.say_no_run()
        elif tasks > 1:
            self.ask_for(f"Mark {tasks} tasks {verdict.value}?", "", lambda _: self._judge(subjects, verdict))
        else:
            self._judge(subjects, verdict)

    def _judge(self, subjects: Sequence[Subject], verdict: Verdict) -> None:
        names: list[str] = []
        if self._write(lambda: names.append(self.app.verdicts.judge(subjects, verdict)), decided=True):
            self.say(f"{names[0]} marked {verdict.value}  ·  u undo  ·  . repeat{self.all_reviewed_note}")

    def action_verdict_again(self) -> None:
        """Give the last verdict again."""
        last = self.app.verdicts.last
        if last is None:
            self.say("no verdict to repeat  ·  v sets one", "status.warn")
        else:
            self.action_verdict(last.value)

    def action_note(self) -> None:
        """Prompt for a note on the run or cause under the cursor."""
        subject = self.subject
        if subject is None:
            self.say_no_run()
            return
        before = self.app.verdicts.judgement(subject).note or ""

        def answer(text: str) -> None:
            note = text.strip()
            if note != before and self._write(lambda: self.app.verdicts.note(subject, note)):
                name = subject_label(subject)
                self.say(f"note saved for {name}  ·  u undo" if note else f"note removed from {name}")

        self.ask_for(f"note for {subject_label(subject)}", before, answer)

    def action_tag(self) -> None:
        """Prompt for the tags of the run or cause under the cursor."""
        subject = self.subject
        if subject is None:
            self.say_no_run()
            return
        before = self.app.verdicts.judgement(subject).tags

        def answer(text: str) -> None:
            self._write(lambda: self.app.verdicts.tag(subject, text.split()))
            if (tags := self.app.verdicts.judgement(subject).tags) != before:
                self.say(f"tags of {subject_label(subject)}: {' '.join(tags) or 'none'}  ·  u undo last")

        self.ask_for(f"tags of {subject_label(subject)}", " ".join(sorted(before)), answer)

    def action_undo(self) -> None:
        """Undo the last verdict, note, tag or mark."""
        changes: list[str | None] = []
        if self._write(lambda: changes.append(self.app.verdicts.sidecar.undo())):
            self.say(changes[0] or "nothing to undo")

    def action_set_mark(self, letter: str) -> None:
        """Mark the place under the cursor with a letter."""
        place = self.place
        run = self.app.store.runs.get(place[0]) if place is not None else None
        if place is None or run is None:
            self.say_no_run()
        elif self._write(lambda: self.app.verdicts.sidecar.mark(letter, run, place[1])):
            self.say(f"marked with {letter}  ·  '{letter} returns here")

    def action_go_to_mark(self, letter: str) -> None:
        """Go to the place that is marked with a letter."""
        target = self.app.verdicts.marked(letter, self.app.store.runs.values())
        if target is None:
            self.say(f"no mark {letter}", "status.warn")
        else:
            self.go_to(*target)

    def _write(self, change: Callable[[], object], *, decided: bool = False) -> bool:
        """Run a change of the verdict file; show an error if it fails."""
        try:
            change()
        except TracetuiError as error:
            self.say(str(error), "status.error")
            return False
        self.verdicts_changed(decided=decided)
        return True

    # ---- questions about runs

    def action_diff_original(self) -> None:
        """Compare a replay with its original, or an original with its replays."""
        ref = self.ref
        if ref in self.app.store.runs and ref is not None and (problem := self.app.compare_with_original(ref)):
            self.say(problem, "status.warn")

    def action_statistics(self) -> None:
        """How often, how long, how many tokens."""
        scope = self.scope(contrast=False)
        if scope is not None:
            self.app.show_statistics(scope.refs, scope.of)

    def action_files(self) -> None:
        """Show the files that runs changed."""
        self._show_effects(FILES)

    def action_audit(self) -> None:
        """Show the risky effects of runs."""
        self._show_effects(AUDIT)

    def action_blame(self) -> None:
        """Show who wrote the lines of the file of this step."""
        place = self.place
        if place is None or place[1] is None:
            self.say("no step under the cursor", "status.warn")
        else:
            self.app.show_blame(place[0], place[1])

    def _show_effects(self, pane: str) -> None:
        scope = self.scope(contrast=False)
        if scope is not None:
            self.app.show_effects(pane, scope.refs, scope.of)

    def action_contrast(self) -> None:
        """What runs share that others lack."""
        scope = self.scope(contrast=True)
        if scope is not None:
            self.app.show_contrast(scope.refs, scope.of)

    def action_export(self) -> None:
        """Write the run under the cursor to a file."""
        subject = self.subject
        if isinstance(subject, RunSummary):
            self.app.exporter.export_run(subject, self)
        else:
            self.say_no_run()

    def action_grep(self) -> None:
        """Ask what to search for in all runs."""
        search = self.app.surveys.search
        last = f"; empty repeats {search.text}" if search is not None else ""
        self.ask_for(GREP_ASK.format(self.app.search_cost()) + last, "", self.search_runs)

    def search_runs(self, text: str) -> None:
        """Search all runs and show the hits, or the error of a regular expression."""
        try:
            self.app.search_runs(text)
        except UsageError as error:
            self.say(str(error), "status.warn")
