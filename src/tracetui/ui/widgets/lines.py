"""Widgets drawn line by line, in the app's palette: the one-row bars of the frame, and what panes build on."""

from __future__ import annotations

from typing import Final

from textual.containers import Container
from textual.filter import ANSIToTruecolor
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widget import Widget

from tracetui.text import Clean
from tracetui.ui.theme import Look
from tracetui.ui.widgets.drawing import named_keys, to_strip
from tracetui.views.glyphs import ASCII
from tracetui.views.rows import Line, Piece, fill, fit, width_of

DEFAULT_LOOK: Final = Look()


class LineWidget(Widget):
    """Something drawn line by line, in the app's palette, without Textual's box model.

    A palette has true colours only, or leaves all to the terminal: there are no ANSI colours to be translated.
    """

    DEFAULT_CSS = "LineWidget { height: 1fr; background: $background; }"

    virtual_size = Reactive(Size(0, 0), layout=False, repaint=False)  # ours follows the size, and a layout paints it

    @property
    def look(self) -> Look:
        """Colours, glyphs and clock in use."""
        look: Look = getattr(self.app, "look", DEFAULT_LOOK)
        return look

    def strip_at(self, y: int) -> Strip:
        """The finished line `y` of the widget, `size.width` cells wide."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        return self.strip_at(y)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._painted: dict[int, Strip] = {}
        """What the screen shows, by line."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        """The layout paints all of what it has moved or resized: painting that once more would show nothing new."""
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if changed:
            self._exchange_repaint_regions()
        return changed

    def refresh_changed(self) -> None:
        """Paint anew the lines that are other than what is painted."""
        width, height = self.outer_size
        if not self.is_attached:  # the app is ending
            return
        if len(self._painted) != height or any(strip.cell_length != width for strip in self._painted.values()):
            self.refresh()
            return
        for y, painted in self._painted.items():
            if self.strip_at(y) != painted:
                self.refresh(Region(0, y, width, 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        width, height = self.outer_size
        if self._painted and max(self._painted) >= height:
            self._painted.clear()
        filters = [one for one in self.app.get_line_filters() if not isinstance(one, ANSIToTruecolor)]
        ground = self.background_colors[1]
        strips = []
        for y in range(crop.y, crop.bottom):
            strip = self._painted[y] = self.strip_at(y)
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, ground)
            strips.append(strip if crop.width == width else strip.crop(crop.x, crop.right))
        return strips


class Box(Container):
    """Lays out what is in it, and never scrolls."""

    virtual_size = Reactive(Size(0, 0), layout=False, repaint=False)  # as in LineWidget


class LineBar(LineWidget):
    """One row of the frame: header, sentence, footer. Its right part wins when there is too little room."""

    DEFAULT_CSS = "LineBar { height: 1; }"

    def __init__(self, ground: str = "surface", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ground = ground
        self._left: Line = ()
        self._right: Line = ()

    def show(self, left: Line, right: Line = ()) -> None:
        """Show these pieces; repaints only if they changed."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def strip_at(self, y: int) -> Strip:
        width = self.outer_size.width
        written = self._left if self.look.glyphs is not ASCII else named_keys(self._left)
        right = fit(self._right, max(0, width - 2))
        room = width - width_of(tuple(right)) - 2
        left = fill((Piece(Clean(" ")), *written), max(0, room))
        return to_strip([*left, Piece(Clean(" ")), *right, Piece(Clean(" "))], width, self.look, self._ground)
