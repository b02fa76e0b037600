"""Pane titles, and the parts of the header that fit."""

from __future__ import annotations

from tracetui.text import Clean
from tracetui.ui.widgets.frame import _fitting, _Part
from tracetui.ui.widgets.line_view import title_line
from tracetui.views.glyphs import UNICODE
from tracetui.views.rows import Piece, width_of


def words(line: tuple[Piece, ...]) -> str:
    return "".join(piece.text for piece in line)


def test_the_least_important_part_of_the_header_is_dropped_first() -> None:
    parts = [
        _Part((Piece(Clean(text)),), drop) for text, drop in (("61 runs", 0), (" + 9 child", 3), (" 17 folders", 6))
    ]
    assert [words(_fitting(parts, room)) for room in (40, 20, 10, 2)] == [
        "61 runs + 9 child 17 folders",
        "61 runs + 9 child",
        "61 runs",
        "61 runs",
    ]


def test_a_title_is_not_cut_to_a_few_letters() -> None:
    title, tabs = (Piece(Clean("step 11 search")),), (Piece(Clean("error  input  attributes")),)
    for width in (44, 70):
        line = title_line(3, "Detail", title, tabs, width=width, focused=False, glyphs=UNICODE)
        assert ("step 11 search" in words(line)) is (width == 70)
        assert "…" not in words(line)
        assert width_of(line) == width
