"""The help: the commands of a pane in columns, with a search; letters search, and run nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.strip import Strip

from tracetui.text import Clean, cells, exact, wrap
from tracetui.ui.commands import COMMANDS, GROUPS, Command, key_label, of_pane, pane_names, wrong_pane
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.screens.overlay import Overlay, hints
from tracetui.ui.widgets.line_view import position
from tracetui.ui.widgets.lines import LineBar, LineWidget, to_strip
from tracetui.views.rows import Line, Piece, fill, width_of

if TYPE_CHECKING:
    from tracetui.ui.app import TraceApp

FIRST: Final = 5
"""Commands that lead, before all groups."""
COLUMN: Final = 38
"""Least cells of a column."""
KEY_CELLS: Final = 9
ABOUT_ROWS: Final = 4
"""Rows of the sentence about the selected command, with its title."""
_HINTS: Final = (
    ("a–z", "search"), ("up", ""), ("down", "next"), ("left", ""), ("right", "column"), ("tab", "everywhere"),
    ("enter", "run"), ("escape", "clear, close"),
)  # fmt: skip


class Slot(NamedTuple):
    """A command, or the heading of a group, and its place on the page."""

    column: int
    row: int
    heading: str = ""
    command: Command | None = None


def arrange(pane: str, commands: Sequence[Command], columns: int, *, everywhere: bool = False) -> list[Slot]:
    """The commands of a pane (or all) below their headings, in `columns` of about equal height, column by column."""
    here = [*commands] if everywhere else of_pane(pane, commands)
    hinted = sorted((command for command in here if command.hint), key=lambda command: command.hint)[:FIRST]
    groups = [] if everywhere else [("Start here", hinted)]
    groups += [(heading, [command for command in here if command.group == group]) for group, heading in GROUPS.items()]
    groups = [(heading, members) for heading, members in groups if members]
    height = -(-sum(len(members) + 2 for _, members in groups) // columns)
    slots, column, row = [], 0, 0
    for heading, members in groups:
        if row and column < columns - 1 and row + (len(members) + 1) // 2 > height:
            column, row = column + 1, 0
        slots.append(Slot(column, row, heading))
        slots += [Slot(column, row + i, command=command) for i, command in enumerate(members, 1)]
        row += len(members) + 2
    return slots


class HelpPage(LineWidget):
    """The columns, from row `top`."""

    def __init__(self) -> None:
        super().__init__()
        self.slots: Sequence[Slot] = ()
        self.columns = 1
        self.top = 0
        self.search = ""
        self.selected: Slot | None = None

    def show(self, slots: Sequence[Slot], columns: int, search: str, selected: Slot | None) -> None:
        """Show these, with `selected` in view."""
        self.slots, self.columns, self.search, self.selected = slots, columns, search, selected
        row, height = (selected.row if selected is not None else 0), max(1, self.outer_size.height)
        last = max((slot.row for slot in slots), default=0)
        self.top = max(0, min(self.top, row - 1 if row > 1 else 0, last - height + 1), row - height + 1)
        self.refresh()

    def line(self, y: int) -> Line:
        """The pieces of a row of all columns."""
        width = self.outer_size.width
        cell, pieces = width // self.columns, list[Piece]()
        by_column = {slot.column: slot for slot in self.slots if slot.row == self.top + y}
        for column in range(self.columns):
            slot = by_column.get(column)
            pieces += fill(() if slot is None else tuple(self._cell(slot)), cell)
        return tuple(pieces)

    def _cell(self, slot: Slot) -> Iterator[Piece]:
        if slot.command is None:
            yield Piece(Clean(f" {slot.heading}"), "text bold")
            return
        fits = matches(slot.command, self.search)
        keys = " ".join(key_label(key) for key in slot.command.keys[:2])
        marker = self.look.glyphs.cursor if slot is self.selected else " "
        yield Piece(Clean(f" {marker} "), "accent bold")
        yield Piece(Clean(f"{keys:<{KEY_CELLS}} "), "key bold" if fits else "dim")
        title, word = slot.command.title, self.search.lower()
        at = title.lower().find(word) if word and fits else -1
        style = "dim" if not fits else "text bold" if slot is self.selected else "text"
        if at < 0:
            yield Piece(Clean(title), style)
        else:
            yield Piece(Clean(title[:at]), style)
            yield Piece(Clean(title[at : at + len(word)]), "hit")
            yield Piece(Clean(title[at + len(word) :]), style)

    def strip_at(self, y: int) -> Strip:
        return to_strip(self.line(y), self.outer_size.width, self.look, "bg")

    class Picked(Message):
        """A command was clicked."""

        def __init__(self, slot: Slot) -> None:
            self.slot = slot
            super().__init__()

    def on_click(self, event: events.Click) -> None:
        """Select the command under the mouse."""
        column = event.x // max(1, self.outer_size.width // self.columns)
        for slot in self.slots:
            if (slot.column, slot.row) == (column, self.top + event.y) and slot.command is not None:
                self.post_message(self.Picked(slot))


class About(LineWidget):
    """The sentence about the selected command."""

    DEFAULT_CSS = f"About {{ height: {ABOUT_ROWS}; }}"

    def __init__(self) -> None:
        super().__init__()
        self.command: Command | None = None

    def show(self, command: Command | None) -> None:
        """Show the help of a command."""
        self.command = command
        self.refresh()

    def line(self, y: int) -> Line:
        """The title, or a part of the sentence."""
        command, width = self.command, self.outer_size.width
        if command is None:
            return ()
        if y == 0:
            title = (
                Piece(Clean(f" {key_label(command.keys[0])} "), "key bold"),
                Piece(Clean(command.title), "text bold"),
            )
            name = Clean(f" {command.id} ")
            line = self.look.glyphs.rule * max(0, width - width_of(title) - cells(name) - 1)
            return (*title, Piece(Clean(f" {line}"), "line"), Piece(name, "sec"))
        panes = pane_names(command.panes)
        sentence = command.help + (f" Works in: {panes}." if panes else "")
        parts = wrap(Clean(sentence), max(20, width - 2))
        return (Piece(Clean(f" {parts[y - 1]}"), "text"),) if y <= len(parts) else ()

    def strip_at(self, y: int) -> Strip:
        return to_strip(self.line(y), self.outer_size.width, self.look, "bg")


def matches(command: Command, search: str) -> bool:
    """Whether the search is a key of a command, or all its words are in the title or the help."""
    if search in command.keys:
        return True
    text = f"{command.title} {command.help}".lower()
    return all(word in text for word in search.lower().split())


class HelpScreen(Overlay):
    """Letters search, arrows select, Enter runs the selected command, Esc clears the search and then closes."""

    app: TraceApp

    def __init__(self, pane: str, title: str, commands: Sequence[Command] = COMMANDS) -> None:
        """`title`: the pane's name on the screen."""
        super().__init__()
        self._pane, self._title, self._commands = pane, title, commands
        self._search, self._everywhere = "", False
        self._selected: Command | None = None
        self._bar, self._page, self._about, self._footer = LineBar(), HelpPage(), About(), LineBar()

    def compose(self) -> ComposeResult:
        yield self._bar
        yield self._page
        yield self._about
        yield self._footer

    def on_mount(self) -> None:
        self._footer.show(hints(_HINTS))
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        columns = max(1, min(5, self.size.width // COLUMN))
        slots = arrange(self._pane, self._commands, columns, everywhere=self._everywhere)
        fitting = [slot for slot in slots if slot.command is not None and matches(slot.command, self._search)]
        selected = next((slot for slot in fitting if slot.command is self._selected), fitting[0] if fitting else None)
        self._selected = selected.command if selected is not None else None
        self._page.show(slots, columns, self._search, selected)
        self._about.show(self._selected)
        self._show_bar()

    def _show_bar(self) -> None:
        """The search, how many keys there are, and which rows of a page that doesn't fit are in view."""
        page = self._page
        commands = {slot.command for slot in page.slots if slot.command is not None}
        count, fit_count = len(commands), sum(matches(command, self._search) for command in commands)
        scope = "everywhere" if self._everywhere else f"in {self._title}"
        typed = (Piece(exact(self._search), "text bold"), Piece(self.app.look.glyphs.typing, "accent"))
        note = f"  {fit_count} of {count} keys fit" if self._search else " type to search"
        left = (Piece(Clean("/ "), "accent bold"), *typed, Piece(Clean(note), "dim"))
        right = [Piece(Clean(f"{count} keys {scope}"), "sec")]
        height, rows = page.outer_size.height, max((slot.row for slot in page.slots), default=0) + 1
        if height < rows:
            right += [Piece(Clean("  rows "), "sec"), *position(page.top, height, rows, "–")]
        self._bar.show(left, tuple(right))

    async def press(self, key: str, character: str | None) -> None:
        if key == "escape" and self._search:
            self._type("")
        elif key == "escape" or (character == "?" and not self._search):
            self.app.close_screen(self)
        elif key == "enter":
            await self._run()
        elif key in _MOVES:
            self._move(*_MOVES[key])
        elif key in ("tab", "shift+tab"):
            self._everywhere = not self._everywhere
            self._draw()
        elif key in ("backspace", "ctrl+h"):
            self._type(self._search[:-1])
        elif key == "ctrl+u":
            self._type("")
        elif character is not None and character.isprintable() and cells(exact(self._search)) < COLUMN:
            self._type(self._search + character)

    def _type(self, text: str) -> None:
        self._search, self._selected = text, None
        self._draw()

    def _move(self, columns: int, rows: int) -> None:
        """Select the next fitting command in this direction; none: the selection stays."""
        page = self._page
        here = page.selected
        if here is None:
            return
        fitting = [slot for slot in page.slots if slot.command is not None and matches(slot.command, self._search)]
        if columns:
            side = [slot for slot in fitting if (slot.column - here.column) * columns > 0]
            goal = min(side, key=lambda slot: (abs(slot.column - here.column), abs(slot.row - here.row)), default=here)
        else:
            at = fitting.index(here) + rows
            goal = fitting[max(0, min(len(fitting) - 1, at))]
        self._select(goal)

    def _select(self, slot: Slot) -> None:
        self._page.show(self._page.slots, self._page.columns, self._search, slot)
        self._selected = slot.command
        self._show_bar()
        self._about.show(slot.command)

    @on(HelpPage.Picked)
    def _picked(self, message: HelpPage.Picked) -> None:
        self._select(message.slot)

    async def _run(self) -> None:
        """Close, and run the selected command in the screen below, if its pane has it."""
        command = self._selected
        below = self.app.screen_stack[self.app.screen_stack.index(self) - 1]
        if command is None or not isinstance(below, BaseScreen) or not self.app.close_screen(self):
            return
        if below.pane in command.panes:
            await below.perform(command)
        else:
            below.say(wrong_pane(command.keys[0], command))


_MOVES: Final = {
    "down": (0, 1), "up": (0, -1), "left": (-1, 0), "right": (1, 0), "ctrl+n": (0, 1),
    "pagedown": (0, 10), "pageup": (0, -10), "home": (0, -1000), "end": (0, 1000),
}  # fmt: skip
