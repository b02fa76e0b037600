"""The title rule of a pane: number, name, what follows it, and where in it the reader is."""

from __future__ import annotations

from collections.abc import Sequence

from tracetui.text import Clean
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Line, Piece, fit, width_of


def title_line(
    number: int, name: str, title: Line, right: Sequence[Piece], *, width: int, focused: bool, glyphs: Glyphs
) -> Line:
    """The rule of a pane of `width` cells; the right part wins where there is too little room."""
    glyph = glyphs.rule_focused if focused else glyphs.rule
    rule = Piece(glyph, "accent" if focused else "line")
    left = [
        rule,
        Piece(Clean(f" {number} "), "accent" if focused else "dim") if number else Piece(Clean(" ")),
        Piece(Clean(f"{name} "), "text bold" if focused else "sec bold"),
        *title,
    ]
    right_width = width_of(tuple(right))
    left = fit(left, max(0, width - right_width - 4))
    if left and not left[-1].text.endswith(" "):
        left.append(Piece(Clean(" ")))
    gap = width - width_of(tuple(left)) - right_width - (3 if right else 0)
    line = [*left, Piece(Clean(glyph * max(0, gap)), rule.style)]
    if right:
        line += [Piece(Clean(" ")), *right, Piece(Clean(" ")), rule]
    return tuple(line)


def position(first: int, page: int, count: int, dash: str) -> list[Piece]:
    """Which rows are shown, of how many."""
    return [Piece(Clean(f"{first + 1}{dash}{min(count, first + page)}"), "sec"), Piece(Clean(f"/{count}"), "dim")]
