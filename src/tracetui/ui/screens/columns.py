"""The column chooser: which columns the run list has, and in which order; applied while choosing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from textual import on
from textual.app import ComposeResult

from tracetui.text import Clean
from tracetui.ui.screens.overlay import ChoiceView, Overlay, hints
from tracetui.ui.widgets.lines import Box, LineBar
from tracetui.views.glyphs import Glyphs
from tracetui.views.list.runs import COLUMNS, FIXED
from tracetui.views.rows import Line, ListRows, Piece, fit

Apply = Callable[[tuple[str, ...]], None]
"""Shows the list with these columns; none: chosen by its width."""

_HINTS: Final = (
    ("space", "show"), ("left", ""), ("right", "move"), ("r", "reset"), ("enter", "done"), ("escape", "cancel"),
)  # fmt: skip
_MOVES: Final = {"down": 1, "j": 1, "up": -1, "k": -1}
_SHIFTS: Final = {"left": -1, "h": -1, "right": 1, "l": 1}


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
        self._footer.show(hints(_HINTS))
        self._view.focus()
        self._draw(FIXED[1])

    def _draw(self, cursor: Hashable = None) -> None:
        glyphs = self.app.look.glyphs
        lines = [_row(name, name in self._shown, glyphs, self.size.width) for name in self._order]
        words = "chosen by you" if self._chosen else "chosen by the width"
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


def _row(name: str, is_shown: bool, glyphs: Glyphs, width: int) -> Line:
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
