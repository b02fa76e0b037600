"""What the benchmarks may report."""

from __future__ import annotations

import math

import pytest

from tests.bench.__main__ import _ROW
from tests.bench.table import Reference, Row, timed

KEY = Reference("a key", 2.0)


def test_a_time_is_a_ratio_to_its_reference() -> None:
    row = timed("open", 9.0, 5, KEY, "median")
    assert (row.value, row.unit, row.met) == (4.5, "×", True)
    assert row.detail == "9.0 ms; a key 2.0 ms; median"
    assert not timed("open", 11.0, 5, KEY).met


def test_a_row_says_why_its_limit_is_missed() -> None:
    met, missed = (timed("open", ms, 5, KEY, why="all of it is masked") for ms in (9.0, 11.0))
    assert "masked" not in str(met)
    assert str(missed).endswith("; all of it is masked")


@pytest.mark.parametrize("ms", [-328.0, math.nan])
def test_an_impossible_time_breaks_the_benchmark(ms: float) -> None:
    for row in (timed("open", ms, 5, KEY), Row("bytes", ms, 5, "B"), timed("open", 1.0, 5, Reference("none", 0.0))):
        assert (row.possible, row.met) == (False, False)
        assert str(row).startswith("BROKEN")


def test_printed_rows_are_read_again() -> None:
    rows = [Row("list of runs", 1_234.0, 9, "B"), timed("  open", 9.0, 5, KEY), timed("lost", -1.0, 5, KEY)]
    printed = "\n".join(map(str, rows))
    parsed = [(match[1].strip(), match[2].strip(), match[3]) for match in _ROW.finditer(printed)]
    assert parsed == [("list of runs", "1 234 B", None), ("open", "4.50 ×", "9.0 ms"), ("lost", "nan ×", "-1.0 ms")]
