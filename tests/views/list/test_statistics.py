"""Statistics as rows: the columns of outcomes."""

from __future__ import annotations

import pytest

from tests.views.build import text_of_line
from tracetui.analysis.statistics import Row
from tracetui.model import Usage
from tracetui.views.list.tables import StatisticRows
from tracetui.views.rows import width_of


def counted(passed: int | None, failed: int | None, rate: float | None) -> StatisticRows:
    """Four runs, each with a call of one tool."""
    return StatisticRows([Row("search", 4, 0, 4, 1.0, 2.0, 4.0, Usage(), None, passed, failed, rate)])


@pytest.mark.parametrize("width", [79, 119, 198])
def test_outcomes_have_columns_if_any_run_is_scored(width: int) -> None:
    rows = counted(1, 2, 1 / 3)
    head, line = rows.heading(width, "tool"), rows.line(0, width)
    assert width_of(head) <= width
    assert width_of(line) <= width
    cells = dict(zip(text_of_line(head).split()[1:7], text_of_line(line).split()[1:7], strict=True))
    assert cells == {"calls": "4", "errors": "·", "runs": "4", "passed": "1", "failed": "2", "rate": "33%"}
    ends = [text_of_line(head).index(name) + len(name) for name in ("passed", "failed", "rate")]
    assert [text_of_line(line)[:end].split()[-1] for end in ends] == ["1", "2", "33%"]


def test_outcomes_have_no_columns_without_scores() -> None:
    rows = counted(None, None, None)
    assert not rows.rated
    assert "passed" not in text_of_line(rows.heading(198, "tool"))
    assert "%" not in text_of_line(rows.line(0, 198))


@pytest.mark.parametrize("name", ["cost", "total", "errors"])
def test_the_sorted_column_stays_at_any_width(name: str) -> None:
    rows = StatisticRows([Row("search", 4, 3, 4, 1.0, 2.0, 5000.0, Usage(cost_usd=1.5), None)], sorted_by=name)
    for width in (40, 58, 78, 198):
        head, line = text_of_line(rows.heading(width, "tool")), text_of_line(rows.line(0, width))
        assert max(len(head), len(line)) <= width
        end = head.index(name) + len(name)
        assert line[:end].split()[-1] == {"cost": "$1.50", "total": "5.0s", "errors": "3"}[name]


def test_the_last_row_is_the_total() -> None:
    used = Usage(100, 10, cache_read_tokens=60, cache_creation_tokens=20)
    calls = [Row(name, 2, 1, 1, 1.0, 2.0, 4.0, used) for name in ("search", "fetch")]
    rows = StatisticRows(calls, total=Row("", 4, 2, 1, 1.0, 2.0, 8.0, used + used))
    line = text_of_line(rows.line(2, 198)).split()
    assert line[:4] == ["total", "4", "2", "1"]
    assert line[-2:] == ["120", "40"]
    assert [rows.selectable(i) for i in range(3)] == [True, True, False]
    assert text_of_line(rows.heading(198, "tool")).split()[9:11] == ["cached", "written"]


def test_narrow_statistics_keep_the_total_that_orders_them() -> None:
    assert text_of_line(counted(1, 2, 1 / 3).heading(78, "tool")).split()[-1] == "total"
