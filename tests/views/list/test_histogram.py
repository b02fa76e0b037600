"""The histogram as lines: width, colors and the marked bar."""

from __future__ import annotations

import re

import pytest

from tests.views.build import text_of_line
from tracetui.analysis.histogram import Histogram, Start
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.list.histogram import Strip
from tracetui.views.rows import width_of

NOON = 1_763_726_400.0
RUNS = Histogram([Start(NOON - row * 1000.0, row, row % 5 == 0) for row in range(60)], 40)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("height", [2, 4])
def test_every_line_fits(height: int, glyphs: Glyphs) -> None:
    for width in (40, 53, 90):
        lines = Strip(RUNS, width, height, glyphs).lines(0, NOON, lambda bar: "most TimeoutError ×3")
        assert len(lines) == (height if height == 2 else height + 2)
        assert all(width_of(line) <= width for line in lines)
        if glyphs is ASCII:
            assert all(text_of_line(line).replace("×", "x").replace("·", "-").isascii() for line in lines)


def test_failed_parts_are_red() -> None:
    lines = Strip(RUNS, 40, 4, UNICODE).lines(None, NOON, lambda bar: "")
    styles = {piece.style for line in lines for piece in line}
    assert {"bar.error", "bar.error.part"} & styles
    good = Histogram([Start(NOON - row * 1000.0, row, False) for row in range(60)], 40)
    lines = Strip(good, 40, 4, UNICODE).lines(None, NOON, lambda bar: "")
    assert not {"bar.error", "bar.error.part"} & {piece.style for line in lines for piece in line}


def test_the_marked_bar_is_described() -> None:
    bar = len(RUNS.bars) - 1
    *_, axis, sentence = Strip(RUNS, 60, 4, UNICODE).lines(bar, NOON, lambda bar: "most TimeoutError ×3")
    assert UNICODE.above in text_of_line(axis)
    assert f"{len(RUNS.bars[bar].rows)} run" in text_of_line(sentence)
    assert "failed · most TimeoutError ×3" in text_of_line(sentence)
    assert "]h [h" in text_of_line(sentence)


@pytest.mark.parametrize("hours", [6, 18, 24])
@pytest.mark.parametrize("days", [0, 400])
def test_times_of_several_days_have_a_date(hours: int, days: int) -> None:
    histogram = Histogram([Start(NOON - row * hours * 3600.0, row, False) for row in range(40)], 40)
    axis = text_of_line(Strip(histogram, 90, 4, UNICODE).lines(None, NOON + days * 86_400, lambda bar: "")[-2])
    labels = re.findall(r"(?:(?:\d{4}-)?\d\d-\d\d ?)?(?:\d\d:\d\d)?", axis)
    labels = [label for label in labels if label]
    assert len(labels) > 2
    assert len(set(labels)) == len(labels), axis


@pytest.mark.parametrize("width", [40, 60, 120])
def test_the_sign_of_the_marked_bar_cuts_no_time(width: int) -> None:
    strip = Strip(RUNS, width, 4, UNICODE)
    times = {*text_of_line(strip.lines(None, NOON, lambda bar: "")[-2]).split()}
    for bar in range(len(RUNS.bars)):
        *_, axis, _ = strip.lines(bar, NOON, lambda bar: "")
        assert {*text_of_line(axis).replace(UNICODE.above, " ").split()} <= times
