"""No place is named and there is no default: the real program asks at a terminal what is to be opened."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.e2e.judge import left_behind
from tests.shared import ROOT
from tests.terminal import BARE_ESCAPE, TRACETUI, Terminal

pytestmark = pytest.mark.e2e
ASKED = "Choose a trace directory"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with sessions of two programs."""
    formats = ROOT / "tests" / "formats"
    shutil.copytree(formats / "claude_code" / "session" / "input", tmp_path / ".claude" / "projects" / "p")
    shutil.copytree(formats / "codex" / "bare" / "input", tmp_path / ".codex" / "sessions")
    return tmp_path


def asked(home: Path) -> Terminal:
    """The program, when it has asked."""
    terminal = Terminal(*TRACETUI, size=(80, 24), env={"HOME": str(home)})
    terminal.expect(ASKED)
    terminal.expect("2 directories")
    terminal.wait_quiet()
    return terminal


def test_what_is_chosen_opens_and_the_terminal_is_as_before(home: Path) -> None:
    with asked(home) as terminal:
        assert "~/.claude/projects" in terminal.text()
        terminal.type("j", "enter")
        terminal.expect("~/.codex/sessions")
        terminal.expect("1 run")
        terminal.wait_quiet()
        terminal.type("q")
        assert terminal.wait_exit() == 0
        assert left_behind(terminal) == []


def test_all_open_together(home: Path) -> None:
    with asked(home) as terminal:
        terminal.type("a")
        terminal.expect("~/.claude/projects +1")
        terminal.wait_quiet()
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_exit() == 128 + signal.SIGTERM
        assert left_behind(terminal) == []


@pytest.mark.parametrize("key", ["q", "escape", BARE_ESCAPE, "ctrl+c"])
def test_who_leaves_has_seen_no_list(home: Path, key: str) -> None:
    with asked(home) as terminal:
        terminal.type(key)
        assert terminal.wait_exit() == 0
        assert left_behind(terminal) == []
        assert b"Runs" not in terminal.output


def test_a_signal_ends_it(home: Path) -> None:
    with asked(home) as terminal:
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_exit() == 128 + signal.SIGTERM
        assert left_behind(terminal) == []


def test_where_there_is_nothing_it_says_so(tmp_path: Path) -> None:
    with Terminal(*TRACETUI, env={"HOME": str(tmp_path)}) as terminal:
        assert terminal.wait_exit() == 2
        assert "no path given, and ~/.paprika/traces doesn't exist" in " ".join(terminal.text().split())
