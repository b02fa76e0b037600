"""From pieces to strips: drawing, cutting, marking hits and selections. Pure functions of lines and a look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tracetui.text import Clean, cells
from tracetui.ui.theme import Look
from tracetui.views.glyphs import ASCII
from tracetui.views.rows import Piece, fill

_ASCII: Final = str.maketrans("…µ—–−±≠Δ·×→←↑↓›▸▾≥≤„“”’‘", '~u---~!d.x><^v>>v><"""\'\'')


def to_strip(line: Iterable[Piece], width: int, look: Look, ground: str = "bg") -> Strip:
    """Draw a line in exactly `width` cells. With ASCII glyphs, signs that are written for looks become ASCII."""
    style = look.palette.style
    if look.glyphs is not ASCII:
        return Strip([Segment(piece.text, style(piece.style, ground)) for piece in fill(line, width)], width)
    pieces = fill(named_keys(line), width)
    return Strip([Segment(piece.text.translate(_ASCII), style(piece.style, ground)) for piece in pieces], width)


def named_keys(line: Iterable[Piece]) -> list[Piece]:
    """A line with the sign of the Enter key written out, in place of blanks after it where there are any."""
    return [Piece(Clean(text.replace("↵    ", "Enter").replace("↵", "Enter")), style) for text, style in line]


def skip(line: Iterable[Piece], columns: int) -> list[Piece]:
    """Drop the first `columns` cells of a line."""
    rest: list[Piece] = []
    for piece in line:
        size = cells(piece.text)
        if columns >= size:
            columns -= size
        elif columns:
            strip = Strip([Segment(piece.text)], size).crop(columns, size)
            rest.append(Piece(Clean(strip.text), piece.style))
            columns = 0
        else:
            rest.append(piece)
    return rest


def mark(line: Iterable[Piece], needle: str) -> list[Piece]:
    """Give every occurrence of `needle`, also across pieces, the style ``hit``."""
    pieces = list(line)
    text = "".join(piece.text for piece in pieces).lower()
    needle = needle.lower()
    if needle not in text or len(text) != sum(len(piece.text) for piece in pieces):
        return pieces
    marked: list[Piece] = []
    at = text.find(needle)
    position = 0
    for piece in pieces:
        rest, style = str(piece.text), piece.style
        while rest:
            if at < 0 or at >= position + len(rest):
                marked.append(Piece(Clean(rest), style))
                position += len(rest)
                break
            before, inside = rest[: max(0, at - position)], rest[max(0, at - position) : at + len(needle) - position]
            if before:
                marked.append(Piece(Clean(before), style))
            marked.append(Piece(Clean(inside), "hit"))
            position += len(before) + len(inside)
            rest = rest[len(before) + len(inside) :]
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
