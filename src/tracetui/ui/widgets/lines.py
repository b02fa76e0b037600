"""Line-drawn widgets in the app's palette: conversion of pieces to strips, and the frame's bars."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.containers import Container
from textual.filter import ANSIToTruecolor
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widget import Widget

from tracetui.text import Clean, cells
from tracetui.ui.layout import MIN_SIZE
from tracetui.ui.theme import Look
from tracetui.views.glyphs import ASCII
from tracetui.views.rows import Line, Piece, fill, fit, width_of

_ASCII: Final = {
    **str.maketrans("…µ—–−±≈≠Δ·×→←↑↓›▸▾≥≤„“”’‘", '~u---~~!d.x><^v>>v><"""\'\''),
    **dict.fromkeys(range(0x2400, 0x2422), ord("?")),  # the pictures of control characters
}


def to_strip(line: Iterable[Piece], width: int, look: Look, background: str = "bg") -> Strip:
    """Draw a line in exactly `width` cells. With ASCII glyphs, also replaces typographic characters."""
    return Strip(to_segments(line, width, look, background), width)


def to_segments(line: Iterable[Piece], width: int, look: Look, background: str = "bg") -> list[Segment]:
    """The segments of `to_strip`."""
    style = look.palette.style
    if look.glyphs is not ASCII:
        return [Segment(text, style(name, background)) for text, name in fill(line, width)]
    return [Segment(text.translate(_ASCII), style(name, background)) for text, name in fill(named_keys(line), width)]


def named_keys(line: Iterable[Piece]) -> list[Piece]:
    """Spell out the Enter key's sign in a line, in place of following blanks if there are any."""
    return [Piece(Clean(text.replace("↵    ", "Enter").replace("↵", "Enter")), style) for text, style in line]


def key_at(line: Iterable[Piece], x: int) -> str:
    """The key named at cell `x` of a line: by a piece in the style ``key``, or the words after it; else empty.

    Only our own words have that style, never text of a trace.
    """
    key = ""
    for piece in line:
        size = cells(piece.text)
        is_key = "key" in piece.style.split()
        label = piece.text.strip()
        if is_key:
            key = label
        elif not label or not label[0].isalnum():  # a gap, a dot, a rule
            key = ""
        if x < size:
            blank = not piece.text[: x + 1].strip() or not piece.text[x:].strip()
            return "" if blank and (is_key or x > 0) else key
        x -= size
        if not is_key:
            key = ""
    return ""


def word_at(line: Iterable[Piece], x: int) -> str:
    """The word at cell `x` of a line of headings, else the nearest one within `_NEAR` cells; empty without one."""
    text = "".join(piece.text for piece in line)
    words = [(match.start(), match.end(), match.group()) for match in re.finditer(r"\S+", text)]
    distance, word = min(((max(start - x, x - end + 1, 0), word) for start, end, word in words), default=(_NEAR, ""))
    return word if distance < _NEAR else ""


def skip(line: Iterable[Piece], columns: int) -> list[Piece]:
    """Drop the first `columns` cells of a line."""
    remaining: list[Piece] = []
    for piece in line:
        size = cells(piece.text)
        if columns >= size:
            columns -= size
        elif columns:
            strip = Strip([Segment(piece.text)], size).crop(columns, size)
            remaining.append(Piece(Clean(strip.text), piece.style))
            columns = 0
        else:
            remaining.append(piece)
    return remaining


def mark(line: Iterable[Piece], needle: str) -> list[Piece]:
    """Style every occurrence of `needle`, also across pieces, as ``hit``."""
    pieces = list(line)
    text = "".join(piece.text for piece in pieces).lower()
    needle = needle.lower()
    if needle not in text or len(text) != sum(len(piece.text) for piece in pieces):
        return pieces
    marked: list[Piece] = []
    at = text.find(needle)
    position = 0
    for piece in pieces:
        tail, style = str(piece.text), piece.style
        while tail:
            if at < 0 or at >= position + len(tail):
                marked.append(Piece(Clean(tail), style))
                position += len(tail)
                break
            before, inside = tail[: max(0, at - position)], tail[max(0, at - position) : at + len(needle) - position]
            if before:
                marked.append(Piece(Clean(before), style))
            marked.append(Piece(Clean(inside), "hit"))
            position += len(before) + len(inside)
            tail = tail[len(before) + len(inside) :]
            if position >= at + len(needle):
                at = text.find(needle, position)
    return marked


def invert(strip: Strip, start: int, end: int) -> Strip:
    """Show the characters from `start` to `end` (-1: to the end) of a strip as selected."""
    reverse = Style(reverse=True)
    inverted: list[Segment] = []
    position = 0
    for text, style, _ in strip:
        low = max(0, min(len(text), start - position))
        high = len(text) if end == -1 else max(0, min(len(text), end - position))
        position += len(text)
        if low >= high:
            inverted.append(Segment(text, style))
            continue
        for part, part_style in (
            (text[:low], style),
            (text[low:high], (style or Style()) + reverse),
            (text[high:], style),
        ):
            if part:
                inverted.append(Segment(part, part_style))
    return Strip(inverted, strip.cell_length)


def differing_cells(before: Strip, after: Strip) -> list[tuple[int, int]]:
    """The ranges of cells in which two strips of one width look different; ranges close to each other are one."""
    ranges: list[tuple[int, int]] = []
    codes: dict[object, str] = {}
    old, new = _encode(before, codes), _encode(after, codes)
    if old is None or new is None:
        return [(0, after.cell_length)]
    (text, styles), (new_text, new_styles) = old, new
    for at in range(0, len(new_text), _NEAR):
        end = at + _NEAR
        if text[at:end] == new_text[at:end] and styles[at:end] == new_styles[at:end]:
            continue
        cells = range(at, min(end, len(new_text)))
        first = next(i for i in cells if text[i] != new_text[i] or styles[i] != new_styles[i])
        last = next(i for i in reversed(cells) if text[i] != new_text[i] or styles[i] != new_styles[i])
        if ranges and first - ranges[-1][1] <= _NEAR:
            ranges[-1] = ranges[-1][0], last + 1
        else:
            ranges.append((first, last + 1))
    return ranges


_NEAR: Final = 10
"""Equal cells that cost fewer bytes than a move of the terminal's cursor past them."""


def _encode(strip: Strip, codes: dict[object, str]) -> tuple[str, str] | None:
    """The text of a strip and its styles, a character for each cell. None with combining characters.

    `codes` are the characters of styles. The foreground of blanks doesn't show.
    """
    texts, styles = "", ""
    for text, style, _ in strip:
        look: object = _blank_look(style) if text.isspace() else style
        if not text.isascii():
            sizes = _cell_sizes(text)
            if 0 in sizes:
                return None
            if 2 in sizes:  # painted with all of their segment, also where it moved by less than its width
                look, text = (text, len(texts), style), " " * cell_len(text)
        texts += text
        styles += codes.setdefault(look, chr(len(codes))) * len(text)
    return texts, styles


@lru_cache(maxsize=512)
def _blank_look(style: Style | None) -> object:
    return (style.bgcolor, style.underline, style.reverse, style.strike) if style is not None else None


@lru_cache(maxsize=4096)
def _cell_sizes(text: str) -> frozenset[int]:
    return frozenset(map(cell_len, text))


DEFAULT_LOOK: Final = Look()


class LineWidget(Widget):
    """Widget drawn line by line, in the app's palette, without Textual's box model.

    Palettes have true colors only, or only the terminal's own: no ANSI colors need translation.
    """

    DEFAULT_CSS = "LineWidget { height: 1fr; background: $background; }"

    virtual_size = Reactive(Size(0, 0), layout=False, repaint=False)  # ours follows the size, and a layout paints it

    @property
    def look(self) -> Look:
        """Current display settings."""
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
        """Painted strips by line."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        """Drop own repaints after a move or resize, which the layout paints completely."""
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if changed:
            self._exchange_repaint_regions()
        return changed

    @property
    def is_shown(self) -> bool:
        """Whether no other screen hides all of this one. What was hidden is painted completely when it is shown."""
        stack = self.app.screen_stack
        if not stack or not self.is_attached:  # the app is ending
            return False
        return stack[-1] is self.screen or stack[-1].styles.background.a < 1

    def refresh_changed(self) -> None:
        """Repaint only the changed lines."""
        if not self.is_shown:
            return
        width, height = self.outer_size
        if len(self._painted) != height or any(strip.cell_length != width for strip in self._painted.values()):
            self.refresh()
            return
        for y in self._painted:
            self.refresh_line(y)

    def refresh_line(self, y: int) -> None:
        """Repaint the changed cells of a line, all of them if it was not painted in the current width."""
        if not self.is_shown:
            return
        width, painted = self.outer_size.width, self._painted.get(y)
        if painted is None or painted.cell_length != width:
            self.refresh(Region(0, y, width, 1))
            return
        strip = self.strip_at(y)
        if strip != painted and (ranges := differing_cells(painted, strip)):
            self.refresh(*[Region(start, y, end - start, 1) for start, end in ranges])

    def render_lines(self, crop: Region) -> list[Strip]:
        width, height = self.outer_size
        if self._painted and max(self._painted) >= height:
            self._painted.clear()
        filters = [f for f in self.app.get_line_filters() if not isinstance(f, ANSIToTruecolor)]
        background = self.background_colors[1]
        strips = []
        for y in range(crop.y, crop.bottom):
            strip = self._painted[y] = self.strip_at(y)
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            strips.append(strip if crop.width == width else strip.crop(crop.x, crop.right))
        return strips


class KeyClicked(Message):
    """A key named on the screen was clicked: the screen acts as if it was typed."""

    def __init__(self, key: str) -> None:
        """`key`: as shown (`commands.key_label`)."""
        self.key = key
        super().__init__()


class Box(Container):
    """Container that never scrolls."""

    virtual_size = Reactive(Size(0, 0), layout=False, repaint=False)  # as in LineWidget

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blanks without the box model where nothing is drawn around the panes, which cover a box completely."""
        if self.gutter:
            return super().render_lines(crop)
        return [Strip.blank(crop.width, self.rich_style)] * crop.height


class LineBar(LineWidget):
    """One row of the frame: header, status line or footer. The right part has priority over the left."""

    DEFAULT_CSS = "LineBar { height: 1; }"
    min_left: ClassVar = 18
    """Cells of the left part that the right one doesn't take: the program and the screen in the header."""

    def __init__(self, background: str = "surface", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._background = background
        self._left: Line = ()
        self._right: Line = ()

    def show(self, left: Line, right: Line = ()) -> None:
        """Show these pieces; repaints only if they changed."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh_changed()

    def _line(self) -> list[Piece]:
        """The whole row in pieces."""
        width = self.outer_size.width
        left, right = self._left, self._right
        if self.look.glyphs is ASCII:
            left, right = tuple(named_keys(left)), tuple(named_keys(right))
        right = tuple(fit(right, max(0, width - 2 - min(width_of(left), self.min_left))))
        left = tuple(fill((Piece(Clean(" ")), *left), max(0, width - width_of(right) - 2)))
        return [*left, Piece(Clean(" ")), *right, Piece(Clean(" "))]

    def strip_at(self, y: int) -> Strip:
        return to_strip(self._line(), self.outer_size.width, self.look, self._background)

    def on_click(self, event: events.Click) -> None:
        """Act on the key that is named here."""
        if key := key_at(self._line(), event.x):
            self.post_message(KeyClicked(key))


class TooSmall(LineWidget):
    """Notice over a too small screen: required and actual size."""

    DEFAULT_CSS = "TooSmall { layer: over; width: 100%; height: 100%; }"

    def strip_at(self, y: int) -> Strip:
        width, (columns, rows), times = self.outer_size.width, MIN_SIZE, self.look.glyphs.times
        size = self.app.size
        message = f"{columns}{times}{rows} needed, {size.width}{times}{size.height} here"
        message = f"too small: {message}" if len(message) + len(" too small: ") <= width else message
        line = [Piece(Clean(f" {message}"), "status.warn")] if y == 0 else []
        return to_strip(fill(line, width), width, self.look, "bg")
