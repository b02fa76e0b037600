"""No path is named and there is no default: the real program opens the *today* page over all homes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.judge import leftovers
from tests.sessions import home as sessions
from tests.terminal import TRACETUI, Terminal

pytestmark = pytest.mark.e2e


def test_today_opens_over_the_homes_and_a_run_of_it_is_read(tmp_path: Path) -> None:
    sessions(tmp_path, time.time())
    with Terminal(*TRACETUI, size=(100, 30), env={"HOME": str(tmp_path)}) as terminal:
        terminal.expect("waiting for you")
        terminal.expect("Fix the parser")
        terminal.wait_quiet()
        assert "~/.claude/projects" in terminal.text()
        terminal.type("j", "enter")
        terminal.expect("Story")
        terminal.wait_quiet()
        terminal.type("q")
        terminal.expect("waiting for you")
        terminal.wait_quiet()
        terminal.type("q")
        terminal.expect("5 runs")
        terminal.wait_quiet()
        terminal.type("q")
        assert terminal.wait_exit() == 0
        assert leftovers(terminal) == []


def test_a_setting_comes_first(tmp_path: Path) -> None:
    sessions(tmp_path, time.time())
    (tmp_path / "other").mkdir()
    settings = tmp_path / ".config" / "tracetui" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('traces = "~/other"\n')
    with Terminal(
        *TRACETUI, size=(100, 30), env={"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
    ) as terminal:
        terminal.expect("~/other")
        terminal.type("q")
        assert terminal.wait_exit() == 0
        assert "Today" not in terminal.text()


def test_where_there_is_nothing_it_says_so(tmp_path: Path) -> None:
    with Terminal(*TRACETUI, env={"HOME": str(tmp_path)}) as terminal:
        assert terminal.wait_exit() == 2
        assert "no path given, and ~/.paprika/traces doesn't exist" in " ".join(terminal.text().split())
