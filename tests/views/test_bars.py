"""Bars, axes, amounts and glyph sets."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import make_span, text_of_line
from tracetui.model import Operation, Status
from tracetui.text import cells
from tracetui.views.bars import Bar, amount, axis, bar, container, gap_axis, on_grid, sparkline
from tracetui.views.glyphs import ASCII, UNICODE, kind, status_glyph


def test_bars_start_and_end_within_cells() -> None:
    assert bar(0, 10, 10, 10) == Bar(0, "█" * 10)
    assert bar(0, 5.25, 10, 10) == Bar(0, "█████▎")
    assert bar(2.5, 5, 10, 10) == Bar(2, "▐██")
    assert bar(2.9, 5, 10, 10) == Bar(2, "▕██")


def test_a_bar_is_never_thinner_than_two_eighths() -> None:
    assert bar(0, 0, 10, 10) == Bar(0, "▎")
    assert bar(10, 10, 10, 10).at == 9


def test_containers_are_thin() -> None:
    assert container(0, 10, 10, 5) == Bar(0, "━━━━━")
    assert container(1, 9, 10, 5) == Bar(0, "╺━━━╸")


def test_the_grid_shows_outside_the_bar() -> None:
    assert text_of_line(tuple(on_grid(Bar(2, "██"), "bar.tool", (1, 3, 5), 7))) == " ┊██ ┊ "


def test_the_longest_gap_says_that_it_was_idle_time() -> None:
    gaps = [(40.0, 3600.0), (60.0, 60.0)]
    labels = {width: text_of_line(gap_axis(gaps, 100, width).heading).split("┊")[1:] for width in (60, 12)}
    assert [label.strip() for label in labels[60]] == ["idle 1h00m", "1m00s"]
    assert [label.strip() for label in labels[12]] == ["1h00m"], "a label without room is left out"


def test_ticks_of_months_are_days() -> None:
    """A run that somebody left open since winter."""
    heading = "".join(piece.text for piece in axis(265 * 86_400_000.0, 60).heading)
    assert heading.split() == ["0", "53d", "106d", "159d", "212d", "265d"]


def test_ticks_are_round_and_keep_away_from_the_total() -> None:
    assert text_of_line(axis(42_900, 28).heading) == "0     10s    20s       42.9s"
    assert text_of_line(axis(157, 26).heading) == "0       50ms         157ms", "no label touches the total"
    assert text_of_line(axis(84_000, 50).heading).split() == ["0", "20s", "40s", "1m", "1m24s"]
    assert text_of_line(axis(100_000, 60).heading).split() == ["0", "20s", "40s", "1m", "1m20s", "1m40s"]
    assert text_of_line(axis(3_000_000, 60).heading).split() == ["0", "10m", "20m", "30m", "40m", "50m00"]


def test_amounts() -> None:
    assert text_of_line(tuple(amount(5, 10, 10))) == "━━━━━─────"
    assert text_of_line(tuple(amount(0, 10, 10))) == "──────────"
    assert text_of_line(tuple(amount(None, 10, 10))) == "──────────"
    assert text_of_line(tuple(amount(0.33, 1, 10, threshold=0.7))) == "━━━────┃──"
    assert text_of_line(tuple(amount(99, 10, 4))) == "━━━━"


def test_sparkline() -> None:
    assert sparkline([0, None, 4, 8]) == "▁·▅█"
    assert sparkline([]) == ""


def test_every_sign_is_one_cell_and_the_plain_set_is_ascii() -> None:
    for name, sign in msgspec.structs.asdict(UNICODE).items():
        if name not in ("ends", "spark", "mask"):
            assert cells(sign) == 1, name
    for name, sign in msgspec.structs.asdict(ASCII).items():
        assert sign, name
        assert sign.isascii(), name


def test_status_swaps_the_kind() -> None:
    assert kind(make_span("1", "a", Operation.CHAT)) == ("◆", "kind.model")
    assert kind(make_span("1", "a", Operation.CHAT, status=Status.ERROR)) == ("✗", "status.error")
    for status in Status:
        assert status_glyph(status)[1] == f"status.{status.value}"


@given(st.floats(0, 1e7), st.floats(0, 1e7), st.floats(0.001, 1e7), st.integers(1, 120))
def test_bars_stay_on_the_axis(start: float, length: float, total: float, width: int) -> None:
    for draw in (bar, container):
        drawn = draw(start, start + length, total, width)
        assert drawn.at >= 0
        assert drawn.text
        assert drawn.at + len(drawn.text) <= width
        assert len(text_of_line(tuple(on_grid(drawn, "bar.tool", axis(total, width).ticks, width)))) == width
    assert len(text_of_line(axis(total, width).heading)) == width
