"""Overlays, boxes above another screen, which is dimmed: their base, the help and the column chooser."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult, RenderResult
from textual.color import Color
from textual.css.styles import RulesMap
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.visual import RenderOptions, Visual

from tracetui.text import Clean, wrap
from tracetui.ui.base_app import BaseApp
from tracetui.ui.commands import COMMANDS, GROUPS, Command, keys_of, of_pane, shown
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box, KeyClicked, LineBar
from tracetui.views.glyphs import Glyphs
from tracetui.views.list.runs import COLUMNS, FIXED
from tracetui.views.rows import Line, ListRows, Piece, fit

HELP_WIDTH: Final = 100
"""Maximum width of the help, in cells."""
HELP_FIRST: Final = 5
"""Commands that the help lists before all groups."""
_BELOW: Final = Piece(Clean(" " * 16))
"""Indentation of continuation lines."""
Apply = Callable[[tuple[str, ...]], None]
"""Shows the list with these columns; none: chosen by its width."""

_COLUMN_HINTS: Final = (
    ("space", "show"), ("left", ""), ("right", "move"), ("r", "reset"), ("enter", "done"), ("escape", "cancel"),
)  # fmt: skip
_MOVES: Final = {"down": 1, "j": 1, "up": -1, "k": -1}
_SHIFTS: Final = {"left": -1, "h": -1, "right": 1, "l": 1}


class ChoiceView(LineView):
    """Rows to choose from. A click chooses one."""

    class Chosen(LineView.Moved):
        """The row was clicked."""

    def clicked_row(self, index: int) -> None:
        while index and not self.rows.selectable(index):
            index -= 1
        super().clicked_row(index)
        if self.cursor is not None:
            self.post_message(self.Chosen(self, self.cursor))


class Overlay(ModalScreen[None]):
    """Handles each key itself, in the order of typing."""

    app: BaseApp

    def render(self) -> RenderResult:  # type: ignore[override]
        below = super().render()
        return Dimmed(below) if isinstance(below, BackgroundScreen) else below

    async def on_key(self, event: events.Key) -> None:
        if self.app.redirect_key(event, self):
            return
        event.stop()
        event.prevent_default()
        await self.press(event.key, event.character)

    async def press(self, key: str, character: str | None) -> None:
        """Handle a key."""
        raise NotImplementedError

    @on(KeyClicked)
    async def _key_clicked(self, message: KeyClicked) -> None:
        for key, _ in keys_of(message.key, ()):
            await self.press(key, None)


def hints(words: Sequence[tuple[str, str]]) -> Line:
    """Keys with what they do; a key without words shares those of the next one."""
    pieces: list[Piece] = []
    for key, word in words:
        pieces += [Piece(Clean(shown(key)), "key bold"), Piece(Clean(f" {word}  " if word else " "), "sec")]
    return tuple(pieces)


class Dimmed(Visual):
    """A screen in tinted colors. Rich would render it several times slower."""

    def __init__(self, below: BackgroundScreen) -> None:
        self._below = below

    def render_strips(self, width: int, height: int | None, style: VisualStyle, options: RenderOptions) -> list[Strip]:
        color = self._below.color
        return [
            Strip([Segment(text, _tint(style, color)) for text, style, _ in strip], strip.cell_length)
            for strip in self._below.screen._compositor.render_strips()
        ]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return self._below.screen.size.height


@lru_cache(1024)
def _tint(style: Style | None, color: Color) -> Style | None:
    return next(iter(BackgroundScreen.process_segments([Segment("", style)], color))).style


class HelpView(LineView):
    """The rows of the help screen."""

    pane_name = "Keys"


class HelpScreen(Overlay):
    """Help screen; any key that doesn't scroll closes it."""

    def __init__(self, pane: str, title: str, commands: Sequence[Command] = COMMANDS) -> None:
        """`title`: the pane's name on the screen."""
        super().__init__()
        self._pane = pane
        self._title = title
        self._commands = commands
        self._view = HelpView()

    def compose(self) -> ComposeResult:
        yield self._view

    def on_mount(self) -> None:
        lines = help_lines(self._pane, self._commands, min(HELP_WIDTH, self.app.size.width) - 2)
        self._view.show(
            ListRows(lines, headings=[i for i, line in enumerate(lines) if len(line) < 2 or line[0] == _BELOW]),
            title=(Piece(Clean(f"in {self._title}"), "sec"),),
            title_right=(Piece(Clean("Esc closes"), "dim"),),
        )
        self._view.focus()

    async def press(self, key: str, character: str | None) -> None:
        if key in _MOVES:
            self._view.action_move(_MOVES[key])
        elif key in ("pagedown", "pageup", "ctrl+d", "ctrl+u", "space"):
            self._view.action_page(-1 if key in ("pageup", "ctrl+u") else 1)
        elif key in ("g", "home", "G", "end"):
            self._view.action_edge(key in ("G", "end"))
        else:
            self.app.close_screen(self)


def help_lines(pane: str, table: Sequence[Command] = COMMANDS, width: int = HELP_WIDTH) -> list[Line]:
    """Every command of a pane, by group, wrapped at `width`; the `HELP_FIRST` that matter most lead."""
    commands = of_pane(pane, table)
    hinted = sorted((command for command in commands if command.hint), key=lambda command: command.hint)[:HELP_FIRST]
    groups = [("Start here", hinted)]
    groups += [(heading, [one for one in commands if one.group == group]) for group, heading in GROUPS.items()]
    lines: list[Line] = []
    for heading, members in groups:
        if not members:
            continue
        if lines:
            lines.append(())
        lines.append((Piece(Clean(heading), "sec bold"),))
        for command in members:
            keys = " ".join(shown(key) for key in command.keys)
            first, *rest = wrap(Clean(command.help), max(20, width - len(_BELOW.text)))
            lines.append((Piece(Clean(f"  {keys:<14}"), "key bold"), Piece(first, "text")))
            lines += [(_BELOW, Piece(part, "text")) for part in rest]
    return lines


class ColumnsScreen(Overlay):
    """Space shows or hides a column, ← and → move it, ``r`` leaves the choice to the width, Esc takes all back."""

    def __init__(self, chosen: tuple[str, ...], current: Sequence[str], apply: Apply) -> None:
        """`chosen`: the user's columns; `current`: those that the list shows."""
        super().__init__()
        self._before, self._apply = chosen, apply
        self._view = ChoiceView()
        self._view.pane_name = "Columns"
        self._footer = LineBar(id="columns-footer")
        self._current = [*current]
        self._begin(chosen)

    def _begin(self, chosen: Sequence[str]) -> None:
        self._chosen = tuple(chosen)
        self._shown = {*FIXED, *(chosen or self._current)}
        order = [one for one in (chosen or self._current) if one in COLUMNS and one != FIXED[0]]
        self._order = [FIXED[0], *order, *(one for one in COLUMNS if one not in order and one != FIXED[0])]

    def compose(self) -> ComposeResult:
        with Box():
            yield self._view
            yield self._footer

    def on_mount(self) -> None:
        self._footer.show(hints(_COLUMN_HINTS))
        self._view.focus()
        self._draw(FIXED[1])

    def _draw(self, cursor: Hashable = None) -> None:
        glyphs = self.app.look.glyphs
        lines = [_column_row(name, name in self._shown, glyphs, self.size.width) for name in self._order]
        words = "custom" if self._chosen else "automatic, by width"
        self._view.show(ListRows(lines, keys=self._order), key=cursor, title=(Piece(Clean(words), "sec"),))

    def _change(self) -> None:
        """Show the list with the changed columns."""
        self._chosen = tuple(one for one in self._order if one in self._shown)
        self._apply(self._chosen)
        self._draw()

    def _toggle(self) -> None:
        name = self._view.cursor
        if isinstance(name, str) and name not in FIXED:
            self._shown ^= {name}
            self._change()

    def _shift(self, step: int) -> None:
        """Move the column under the cursor past the next one."""
        at = self._view.position
        if at and 0 < at + step < len(self._order):
            self._order[at], self._order[at + step] = self._order[at + step], self._order[at]
            self._change()

    def _reset(self) -> None:
        self._apply(())
        self._begin(())
        self._draw()

    @on(ChoiceView.Chosen)
    def _row_clicked(self) -> None:
        self._toggle()

    async def press(self, key: str, character: str | None) -> None:
        if key in _MOVES:
            self._view.action_move(_MOVES[key])
        elif key in _SHIFTS:
            self._shift(_SHIFTS[key])
        elif key == "space":
            self._toggle()
        elif key == "r":
            self._reset()
        elif key in ("g", "home", "G", "end"):
            self._view.action_edge(key in ("G", "end"))
        elif key in ("enter", "escape", "q"):
            if key != "enter":
                self._apply(self._before)
            self.app.close_screen(self)


def _column_row(name: str, is_shown: bool, glyphs: Glyphs, width: int) -> Line:
    """A check mark, the heading of the column, and what it shows."""
    style = "dim" if name in FIXED else "accent bold"
    note = ", always shown" if name in FIXED else ""
    return tuple(
        fit(
            [
                Piece(glyphs.ok if is_shown else Clean(" "), style),
                Piece(Clean(f" {name:<8} "), "text bold" if is_shown else "sec"),
                Piece(Clean(COLUMNS[name].about + note), "sec" if is_shown else "dim"),
            ],
            width,
        )
    )
