"""The columns of the rows of spans."""

from __future__ import annotations

from typing import Final, NamedTuple

from tracetui.text import Clean, duration, pad, tokens
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Piece

BLANK: Final = Piece(Clean(" "))
_CELLS: Final = 5


class Columns(NamedTuple):
    """Cells of each column of a row; 0 where it is left out. One blank stands before each but the first."""

    number: int
    what: int
    tokens: int
    time: int
    bar: int


def token_cell(number: int | None, glyphs: Glyphs) -> Piece:
    """A number of tokens, ``—`` for None."""
    return Piece(pad(glyphs.unsaid if number is None else tokens(number), _CELLS, right=True), "sec")


def time_cell(elapsed: float | None, style: str, glyphs: Glyphs) -> Piece:
    """How long something took, in ms; ``—`` for None."""
    if elapsed is None:
        return Piece(pad(glyphs.unsaid, _CELLS, right=True), "dim")
    return Piece(pad(duration(elapsed), _CELLS, right=True), style)
