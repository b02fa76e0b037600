"""Pane titles, and the parts of the header that fit."""

from __future__ import annotations

import pytest

from tracetui.text import Clean
from tracetui.ui.commands import COMMANDS, RUNS
from tracetui.ui.widgets.frame import _fitting, _Part, footer
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


@pytest.mark.parametrize("width", range(60, 140, 4))
def test_no_hint_of_the_footer_is_cut(width: int) -> None:
    left, right = footer(COMMANDS, RUNS, width, 0, hidden=4)
    assert width_of(left) <= width - width_of(right) - 3


def test_a_title_is_not_cut_to_a_few_letters() -> None:
    title, tabs = (Piece(Clean("step 11 search")),), (Piece(Clean("error  input  attributes")),)
    for width in (44, 70):
        line = title_line(3, "Detail", title, tabs, width=width, focused=False, glyphs=UNICODE)
        assert ("step 11 search" in words(line)) is (width == 70)
        assert "…" not in words(line)
        assert width_of(line) == width
