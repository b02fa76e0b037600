"""The state of a run has one word, whatever prints it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.sessions import OPEN, TOOL, session

HOUR = 3600.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Sessions in several states."""
    now = time.time()
    session("aaaa", title="Waiting").write(tmp_path, now, HOUR)
    session("bbbb", title="Done").write(tmp_path, now, 40 * HOUR)
    session("cccc", TOOL).write(tmp_path, now, 40 * HOUR)
    session("dddd", OPEN).write(tmp_path, now, 5)
    session("eeee").fail().write(tmp_path, now, 40 * HOUR)
    return tmp_path / ".claude" / "projects"


def test_the_table_show_and_exports_print_the_state_of_the_json(cli: Cli, home: Path) -> None:
    runs = cli("ls", str(home), "--json").data["runs"]
    assert {run["state"] for run in runs} == {"waiting", "done", "interrupted", "running", "ended"}
    table = cli("ls", str(home)).text.splitlines()
    for run in runs:
        word = run["status"] if run["state"] == "ended" else run["state"]
        row = next(line for line in table if run["address"] in line)
        assert row.split()[0] == word
        output = cli("show", run["address"]).text
        assert "unknown" not in output.partition("counts")[0]
        assert f"{word} (" in output
        exported = cli("export", run["address"]).text
        assert f"{word} (" in exported


def test_the_counts_of_a_copy_say_that_errors_count_in_the_original(cli: Cli, home: Path) -> None:
    other = home.parent / "projects" / "copy"
    other.mkdir()
    original = next(home.rglob("eeee.jsonl"))
    (other / original.name).write_bytes(original.read_bytes())
    address = next(run["address"] for run in cli("ls", str(home), "--json").data["runs"] if run["counts_in"])
    assert "copied calls count in the original" in cli("show", address, "--trace-dir", str(home)).text
