"""Lines in a given width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracetui.text import cells, exact
from tracetui.views.rows import Piece, break_line, fill, fit, width_of

PIECES = st.lists(st.text("ab é日", max_size=4).map(lambda text: Piece(exact(text))), max_size=5)


@given(PIECES, st.integers(0, 12))
def test_a_line_is_cut_to_its_width_with_an_ellipsis(line: list[Piece], width: int) -> None:
    fitted = tuple(fit(line, width))
    full, fitted_text = ("".join(piece.text for piece in pieces) for pieces in (line, fitted))
    assert width_of(fitted) <= width
    assert fitted_text == full if cells(exact(full)) <= width else width == 0 or fitted_text.endswith("…")
    assert width_of(tuple(fill(line, width))) == width


def test_a_cut_between_two_pieces_has_an_ellipsis() -> None:
    line = [Piece(exact("limit exceeded: ")), Piece(exact("<n>"), "status.warn"), Piece(exact(" > <n>"))]
    assert [piece.text for piece in fit(line, 19)] == ["limit exceeded: ", "<n…"]


@given(PIECES, st.integers(1, 12))
def test_a_broken_line_loses_only_blanks(line: list[Piece], width: int) -> None:
    first, rest = break_line(line, width)
    whole, broken = ("".join(piece.text for piece in pieces).replace(" ", "") for pieces in (line, [*first, *rest]))
    assert broken == whole
    assert width_of(first) <= max(width, 2)
