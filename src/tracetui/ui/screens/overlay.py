"""Overlay: base of the boxes above another screen, which is dimmed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import RenderResult
from textual.color import Color
from textual.css.styles import RulesMap
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.visual import RenderOptions, Visual

from tracetui.text import Clean
from tracetui.ui.base_app import BaseApp
from tracetui.ui.commands import keys_of, shown
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import KeyClicked
from tracetui.views.rows import Line, Piece


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
