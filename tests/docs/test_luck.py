"""docs/luck.md: its commands print what the page says. TRACETUI_GOLDEN=1 writes their output to the page."""

from __future__ import annotations

import os
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.docs.conftest import ROOT
from tracetui import demo
from tracetui.analysis import prices

PAGE = ROOT / "docs" / "luck.md"
EXAMPLE = re.compile(r"(```console\n\$ tracetui ([^\n|]+)(?: \| head -(\d+))?\n)(.*?)(```)", re.DOTALL)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(prices.SWITCH, "off")
    return Cli(capsysbinary)


def test_the_examples_print_what_the_page_says(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(match: re.Match[str]) -> str:
        result = cli(*shlex.split(match[2]))
        lines = result.text.splitlines(keepends=True)[: int(match[3]) if match[3] else None]
        return f"{match[1]}{''.join(lines)}{result.err}{match[5]}"

    text = PAGE.read_text("utf-8")
    fresh = EXAMPLE.sub(printed, text)
    if os.environ.get("TRACETUI_GOLDEN"):
        PAGE.write_text(fresh, "utf-8")
    else:
        assert fresh == text


def test_the_numbers_of_the_page_are_those_of_the_trials(cli: Cli) -> None:
    demo.SETS["trials"](Path("trials"), datetime(2026, 3, 4, 12, tzinfo=UTC))
    forks = {task["task"]: task["first_fork"] for task in cli("tasks", "trials", "--json").data["tasks"]}
    decisive, chance = forks["refund-late"], forks["swap-size"]
    assert [(len(branch["runs"]), branch["passed"]) for branch in decisive["branches"]] == [(6, 6), (6, 0)]
    assert [(len(branch["runs"]), branch["passed"]) for branch in chance["branches"]] == [(7, 4), (5, 2)]
    assert (decisive["decisive"], round(decisive["p"], 3)) == (True, 0.002)
    assert (chance["decisive"], chance["p"], chance["trials_to_decide"]) == (False, 1, 204)
    statuses = {
        ("oak-2", "oak-3"): 1,
        ("oak-2", "oak-2"): 4,
        ("oak-2", "oak-2", "--min-effect", "20"): 0,
        ("oak-2", "none"): 2,
    }
    for (base, candidate, *options), status in statuses.items():
        assert cli("gate", f"trials/{base}", f"trials/{candidate}", *options).status == status


def test_the_page_is_short() -> None:
    prose = EXAMPLE.sub("", PAGE.read_text("utf-8"))
    assert len(prose.split()) <= 900
