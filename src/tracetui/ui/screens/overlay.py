"""Overlays, boxes above another screen, which is dimmed: their base, the column chooser and the command palette.

The palette has commands of the focused pane, themes and runs, best match first.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult, RenderResult
from textual.color import Color
from textual.css.styles import RulesMap
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.visual import RenderOptions, Visual

from tracetui.masking import one_line
from tracetui.model import RunSummary
from tracetui.text import Clean, exact, truncate, wrap
from tracetui.ui.base_app import StackScreen
from tracetui.ui.commands import Command, key_label, keys_of, match_score
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.theme import PALETTES
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box, KeyClicked, LineBar, named_keys
from tracetui.views.glyphs import ASCII, Glyphs
from tracetui.views.labels import prompt_text, run_label, short_id
from tracetui.views.list.columns import COLUMNS, FIXED
from tracetui.views.rows import Line, ListRows, Piece, fill, fit, width_of

if TYPE_CHECKING:
    from tracetui.ui.app import TraceApp


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


class Overlay(StackScreen, ModalScreen[None], inherit_bindings=False):
    """A dialog over another screen, whose keys do nothing meanwhile."""

    def render(self) -> RenderResult:  # type: ignore[override]
        below = super().render()
        return Dimmed(below) if isinstance(below, BackgroundScreen) else below

    @on(KeyClicked)
    async def _key_clicked(self, message: KeyClicked) -> None:
        for key, _ in keys_of(message.key, ()):
            await self.press(key, None)


def hints(keys: Sequence[tuple[str, str]]) -> Line:
    """Keys with what they do; a key without words shares those of the next one."""
    pieces: list[Piece] = []
    for key, label in keys:
        pieces += [Piece(Clean(key_label(key)), "key bold"), Piece(Clean(f" {label}  " if label else " "), "sec")]
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
        self._visible = {*FIXED, *(chosen or self._current)}
        order = [column for column in (chosen or self._current) if column in COLUMNS and column != FIXED[0]]
        self._order = [FIXED[0], *order, *(column for column in COLUMNS if column not in order and column != FIXED[0])]

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
        lines = [_column_row(name, name in self._visible, glyphs, self.size.width) for name in self._order]
        label = "custom" if self._chosen else "automatic, by width"
        self._view.show(ListRows(lines, keys=self._order), key=cursor, title=(Piece(Clean(label), "sec"),))

    def _change(self) -> None:
        """Show the list with the changed columns."""
        self._chosen = tuple(column for column in self._order if column in self._visible)
        self._apply(self._chosen)
        self._draw()

    def _toggle(self) -> None:
        name = self._view.cursor
        if isinstance(name, str) and name not in FIXED:
            self._visible ^= {name}
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


MAX_RUNS: Final = 30
MAX_TEXT: Final = 200
"""Characters of a query."""
SLICE_SECONDS: Final = 0.005
"""Longest stretch of the search for runs: keys wait for nothing."""
_WIDTH: Final = 120
_TITLE: Final = 24
"""Cells of the title of a command."""
_CURSOR_KEYS: Final = {"down": 1, "up": -1, "ctrl+n": 1, "ctrl+j": 1, "ctrl+k": -1}
_HINTS: Final = (("enter", "run"), ("up", ""), ("down", "choose"), ("escape", "close"))


class Entry(NamedTuple):
    """A row of the palette."""

    title: Line
    about: Clean
    key: Clean
    run: Callable[[], object]
    """Executes it; may return an awaitable."""
    rank: int = 0
    """Commands come first, then runs with the words in their title."""


class Palette(Overlay):
    """Runs one entry at most."""

    app: TraceApp

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._view = ChoiceView()
        self._view.pane_name = "Commands and runs"
        self._footer = LineBar(id="palette-footer")
        self._entries: list[Entry] = []
        self._search = 0
        """Number of the current search for runs."""

    def compose(self) -> ComposeResult:
        with Box():
            yield self._view
            yield self._footer

    def on_mount(self) -> None:
        self._view.focus()
        self._find()

    def on_resize(self) -> None:
        hint = (Piece(Clean("runs match as in the filter: words, status:error …"), "dim"),)
        self._footer.show(hints(_HINTS), hint if self.app.size.width >= _WIDTH else ())
        self.call_after_refresh(self._draw, keep=True)

    @property
    def _below(self) -> BaseScreen:
        """The screen that the palette covers."""
        below = self.app.screen_stack[self.app.screen_stack.index(self) - 1]
        return below if isinstance(below, BaseScreen) else self.app.main

    # ---- entries

    def _find(self) -> None:
        """Show the entries that match the text: commands at once, runs as they are found."""
        screen, text = self._below, self._text.strip()
        commands = [item for item in self.app.commands if item.group != "move" and screen.pane in item.panes]
        scored = [(match_score(text, command), command) for command in commands]
        matches = sorted((match for match in scored if match[0]), key=lambda match: (-match[0], match[1].hint or 99))
        self._entries = [self._command(screen, command) for _, command in matches]
        self._entries += [
            Entry((Piece(Clean(f"theme {name}")),), Clean("Change the theme."), Clean(""), partial(self._theme, name))
            for name in PALETTES
            if text.lower() in f"theme {name}"
        ]
        first, _, pattern = text.partition(" ")
        if first == "grep" and pattern:
            label = (Piece(Clean(f"grep all runs for {one_line(pattern, 80)}")),)
            self._entries.insert(0, Entry(label, Clean(""), Clean("&"), partial(self.app.main.search_runs, pattern)))
        self._search += 1
        self._draw(keep=False)
        if text:
            self._search_slice(self._search, self._runs(text))

    def _command(self, screen: BaseScreen, command: Command) -> Entry:
        key = [Piece(Clean(key_label(command.keys[0])))]
        if self.app.look.glyphs is ASCII:  # before the row is fitted: the name is longer than the sign
            key = named_keys(key)
        title, about = Clean(command.title), Clean(command.help)
        return Entry((Piece(title),), about, key[0].text, partial(screen.perform, command))

    def _theme(self, name: str) -> None:
        self.app.use_palette(name)

    def _runs(self, text: str) -> Iterator[RunSummary | None]:
        """The runs that match a query, and None between."""
        from tracetui.store.query import parse_prefix

        query, error = parse_prefix(text, self.app.query_context())
        if error is not None and not error.unfinished:
            return
        for run in list(self.app.store.runs.values()):
            yield run if query.matches(run) else None

    def _search_slice(self, search: int, runs: Iterator[RunSummary | None], count: int = 0) -> None:
        """Search on for a moment, then let keys through."""
        if search != self._search or not self.is_attached:
            return
        end, new, ended = time.monotonic() + SLICE_SECONDS, list[Entry](), True
        for run in runs:
            if run is not None:
                new.append(self._run(run))
            if count + len(new) >= MAX_RUNS:
                break
            if time.monotonic() > end:
                ended = False
                break
        if new:
            self._entries += new
            if not self._view.position:  # else the row under the cursor would change
                self._entries.sort(key=lambda entry: entry.rank)
            self._draw(keep=True)
        if not ended:
            self.set_timer(0.001, lambda: self._search_slice(search, runs, count + len(new)))

    def _run(self, run: RunSummary) -> Entry:
        status = self.app.liveness.status_of(run, self.app.look.glyphs)
        label = (
            Piece(status.sign, status.style),
            Piece(Clean(f" {truncate(run_label(run), 40)}"), "text"),
            Piece(Clean(f" {short_id(run.id, 24)}"), "sec"),
        )
        about = prompt_text(run, 160)
        rank = 1 if all(word in about.lower() for word in self._text.lower().split()) else 2
        return Entry(label, about, Clean(""), partial(self.app.main.enter, run.ref), rank)

    def _draw(self, *, keep: bool) -> None:
        width = min(_WIDTH, self.app.size.width) - 2
        rows = [(i, line) for i, entry in enumerate(self._entries) for line in _lines(entry, width)]
        if len(rows) > self._view.page:  # then titles of runs, which may be long, take a line each
            entries = enumerate(self._entries)
            rows = [(i, line) for i, entry in entries for line in _lines(entry, width, cut=not entry.key)]
        first = {i: at for at, (i, _) in reversed([*enumerate(rows)])}
        keys: list[Hashable] = [i if first[i] == at else (i, at) for at, (i, _) in enumerate(rows)]
        lines = [line for _, line in rows]
        typed: Line = (
            Piece(Clean("› "), "accent bold"),
            Piece(exact(self._text), "text bold"),
            Piece(self.app.look.glyphs.typing, "accent"),
        )
        if not self._text:
            typed = (*typed, Piece(Clean(" type a command, a run or a query"), "dim"))
        if not lines:
            lines, keys = [(Piece(Clean("nothing matches"), "dim"),)], [()]
        self._view.needle = self._text.strip()
        self._view.show(
            ListRows(lines, keys=keys, headings=[at for at, key in enumerate(keys) if not isinstance(key, int)]),
            keep=keep,
            heading=lambda _: [tuple(fit(typed, width)), ()],
        )

    # ---- keys

    async def press(self, key: str, character: str | None) -> None:
        if key in _CURSOR_KEYS:
            self._view.action_move(_CURSOR_KEYS[key])
        elif key in ("pagedown", "pageup"):
            self._view.action_page(1 if key == "pagedown" else -1)
        elif key == "enter":
            await self._choose()
        elif key == "escape":
            self.app.close_screen(self)
        elif key in ("backspace", "ctrl+h"):
            self._type(self._text[:-1])
        elif key == "ctrl+w":
            self._type(self._text.rstrip().rpartition(" ")[0])
        elif key == "ctrl+u":
            self._type("")
        elif character is not None and character.isprintable():
            self._type(self._text + character)

    def _type(self, text: str) -> None:
        text = text[:MAX_TEXT]
        if text != self._text:
            self._text = text
            self._find()

    async def _choose(self) -> None:
        """Close, and execute the entry under the cursor."""
        at = self._view.cursor
        if isinstance(at, int) and self.app.close_screen(self):
            done = self._entries[at].run()
            if inspect.isawaitable(done):
                await done

    async def paste(self, text: str) -> None:
        """Type the first line."""
        self._type(self._text + one_line(text.partition("\n")[0], MAX_TEXT))

    @on(ChoiceView.Chosen)
    async def _row_clicked(self) -> None:
        await self._choose()


def _lines(entry: Entry, width: int, *, cut: bool = False) -> list[Line]:
    """Title and help, with the key at the right; long text continues below, unless `cut`."""
    title: Sequence[Piece] = entry.title
    if entry.key or width_of(title) < _TITLE:
        title = fill(title, _TITLE)
    title_width = width_of(title) + 2
    room = max(1, width - title_width - len(entry.key) - 2)
    first, *rest = [entry.about] if cut else wrap(entry.about, room)
    about = fill([Piece(first, "dim")], room)
    line = (*title, Piece(Clean("  ")), *about, Piece(Clean("  ")), Piece(entry.key, "key bold"))
    return [line, *((Piece(Clean(" " * title_width)), Piece(more, "dim")) for more in rest)]
