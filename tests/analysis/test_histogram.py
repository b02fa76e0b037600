"""The histogram of starts: its bars, and the way from bar to bar."""

from __future__ import annotations

from tracetui.analysis.histogram import Histogram, Start

HOUR = 3600.0
NOON = 1_763_726_400.0


def starts(*hours_ago: float, failed: tuple[int, ...] = ()) -> list[Start]:
    return [Start(NOON - ago * HOUR, row, row in failed) for row, ago in enumerate(hours_ago)]


def test_every_run_is_in_one_bar() -> None:
    histogram = Histogram(starts(0, 0.1, 1, 5, 5, 30, failed=(1, 5)), 10)
    assert sorted(row for bar in histogram.bars for row in bar.rows) == [*range(6)]
    assert sorted(row for bar in histogram.bars for row in bar.failed) == [1, 5]


def test_bars_fit_the_width() -> None:
    for most in (3, 10, 60):
        assert len(Histogram(starts(*range(50)), most).bars) <= most


def test_old_runs_share_the_first_bar() -> None:
    histogram = Histogram(starts(*(number / 10 for number in range(40)), 90_000), 10)
    assert histogram.has_older
    assert 40 in histogram.bars[0].rows
    assert histogram.unit <= HOUR


def test_bars_follow_in_the_order_of_the_list() -> None:
    histogram = Histogram(starts(0, 0, 5, 5, 9), 10)
    rows, bar = [], histogram.bar_at(NOON)
    while (row := histogram.first_row(bar, 1)) is not None:
        rows.append(row)
        bar = next(i for i, other in enumerate(histogram.bars) if row in other.rows)
    assert rows == [2, 4]
    assert histogram.first_row(bar, -1) == 2


def test_a_bar_begins_at_or_before_its_runs() -> None:
    histogram = Histogram(starts(0, 3, 7, 20), 8)
    for ago in (0, 3, 7):
        at = NOON - ago * HOUR
        assert histogram.begin(histogram.bar_at(at)) <= at < histogram.begin(histogram.bar_at(at) + 1)
