"""The directories to choose from, as rows."""

from __future__ import annotations

import pytest

from tests.views.build import check_rows, texts
from tracetui.formats.homes import Home
from tracetui.views.glyphs import ASCII
from tracetui.views.list.tables import ALL, HomeRows, homes_heading

HOMES = [
    Home("Claude Code session", "/h/.claude/projects", 5213, False, 900.0),
    *(Home("plugin \x1b[31m\u202e", f"/very/long/{'path/' * 30}{i}", 1, True, 5000.0) for i in range(12)),
]


@pytest.mark.parametrize("width", [8, 20, 40, 65, 66, 80, 120, 300])
def test_rows_fit_and_lead_back(width: int) -> None:
    names = [home.path for home in HOMES]
    check_rows(HomeRows(HOMES, names, {names[0]}, now=1000.0, glyphs=ASCII), width)
    assert sum(len(piece.text) for piece in homes_heading(width)) <= width


def test_columns_stand_below_their_names() -> None:
    rows = texts(HomeRows(HOMES[:2], ["~/.claude/projects", "x"], {ALL}, now=1000.0), width=80)
    head = "".join(piece.text for piece in homes_heading(80))
    assert rows[0].split() == ["1", "~/.claude/projects", "Claude", "Code", "session", "5", "213", "1m"]
    assert rows[2].split() == ["a", "✓", "all", "2", "directories", "5", "214+", "now"]
    assert head.index("directory") == rows[0].index("~/.claude")
    assert head.index("traces") == rows[0].index("Claude")
    assert head.index("files") + 5 == rows[0].index("213") + 3


def test_a_long_path_does_not_run_into_the_next_column() -> None:
    row = texts(HomeRows(HOMES[:1], ["~/" + "x" * 60], (), now=1000.0), width=80)[0]
    assert "x Claude Code" in row


def test_only_nine_directories_have_a_digit() -> None:
    rows = texts(HomeRows(HOMES, [home.path for home in HOMES], (), now=1000.0), width=80)
    assert [row[:3].strip() for row in rows] == [*"123456789", "", "", "", "", "a"]
