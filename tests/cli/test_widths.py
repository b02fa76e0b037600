"""At a terminal no row of a table is wider than it; into a pipe nothing is cut."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.run import Cli
from tests.live.sessions import paprika
from tracetui.export.table import Column, TextTable
from tracetui.text import Clean, cells

TABLES = (
    ("ls", "traces"),
    ("triage", "traces"),
    ("stats", "traces", "--by", "model"),
    ("grep", "e", "traces"),
    ("grep", "-c", "e", "traces"),
    ("diff", "--replays", "traces"),
    ("tasks", "traces"),
    ("gate", "traces", "traces"),
)


class TerminalOutput:
    """Runs commands at a terminal, and returns the lines that they print."""

    def __init__(self, cli: Cli, patch: pytest.MonkeyPatch) -> None:
        self._cli, self._patch = cli, patch
        patch.setenv("NO_COLOR", "1")

    def __call__(self, columns: int, *arguments: str) -> list[str]:
        with self._patch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: True)
            patch.setenv("COLUMNS", str(columns))
            return self._cli(*arguments).text.splitlines()


@pytest.fixture
def print_lines(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> TerminalOutput:
    """The lines that a command prints at a terminal."""
    return TerminalOutput(cli, monkeypatch)


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_no_row_is_wider_than_the_terminal(
    print_lines: TerminalOutput, arguments: tuple[str, ...], columns: int
) -> None:
    lines = print_lines(columns, *arguments)

    assert lines
    assert max(cells(Clean(line)) for line in lines) <= columns


def test_a_narrow_list_has_ids_that_show_takes_as_it_says(cli: Cli, print_lines: TerminalOutput) -> None:
    above, heading, *rows = print_lines(80, "ls", "traces")
    runs = cli("ls", "traces", "--json").data["runs"]

    usage = re.search(r"tracetui show (traces#)ID$", above)
    assert usage
    assert "ADDRESS" not in heading
    column = heading.index("ID")
    idents = [row[column:].split("  ")[0] for row in rows[: len(runs)]]
    assert len(idents) == len(runs) > 5
    for run, ident in zip(runs, idents, strict=True):
        if "…" not in ident and [other["id"] for other in runs].count(run["id"]) == 1:
            assert cli("show", usage[1] + ident, "--json").data["run"]["address"] == run["address"]


def test_a_wide_terminal_shows_the_addresses(print_lines: TerminalOutput) -> None:
    heading, *_ = print_lines(300, "ls", "traces")

    assert "ADDRESS" in heading


def test_unreadable_files_keep_their_reason(print_lines: TerminalOutput) -> None:
    name = "a" * 200
    Path(f"traces/{name}.json").write_bytes(paprika(Path("traces/whole.json"), "whole")[:-30])

    lines = [line for line in print_lines(80, "ls", "traces") if line.startswith("unreadable")]

    assert any(re.search(r"a…a*\.json  byte \d+: cut off", line) for line in lines), lines


@given(st.data(), st.integers(24, 120))
def test_a_table_fits_whatever_is_in_it(data: st.DataObject, width: int) -> None:
    columns = (
        Column("A", 6, right=True),
        Column("B", 40, least=4, middle=True),
        Column("C", 8, leaves=1),
        Column("D", least=6),
    )
    texts = st.text(st.characters(codec="ascii", categories=("L", "N")), max_size=60).map(Clean)
    rows = data.draw(st.lists(st.tuples(texts.map(lambda text: Clean(text[:6])), texts, texts, texts), max_size=5))
    table = TextTable(columns, rows)

    lines = list(table.lines(width))

    assert all(cells(line) <= width for line in lines)
    assert len(lines) == len(rows) + 1
    if width >= table.room:
        assert lines[0].split() == ["A", "B", "C", "D"]
