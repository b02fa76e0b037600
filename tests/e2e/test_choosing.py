"""No place is named and there is no default: the real program asks at a terminal what is to be opened."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.e2e.terminal import ROOT, TRACETUI, Terminal

pytestmark = pytest.mark.e2e
ASKED = "what is to be opened?"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with sessions of two programs."""
    formats = Path(ROOT) / "tests" / "formats"
    shutil.copytree(formats / "claude_code" / "session" / "input", tmp_path / ".claude" / "projects" / "p")
    shutil.copytree(formats / "codex" / "bare" / "input", tmp_path / ".codex" / "sessions")
    return tmp_path


def asked(home: Path) -> Terminal:
    """The program, when it has asked."""
    terminal = Terminal(*TRACETUI, size=(80, 24), HOME=str(home))
    terminal.expect(ASKED)
    terminal.expect("2 places")
    terminal.rest()
    return terminal


def test_what_is_chosen_opens_and_the_terminal_is_as_before(home: Path) -> None:
    with asked(home) as terminal:
        assert "~/.claude/projects" in terminal.text
        terminal.type("j", "enter")
        terminal.expect("~/.codex/sessions")
        terminal.expect("1 run")
        terminal.rest()
        terminal.type("q")
        assert terminal.end() == 0
        assert terminal.left_behind == []


def test_all_open_together(home: Path) -> None:
    with asked(home) as terminal:
        terminal.type("a")
        terminal.expect("~/.claude/projects +1")
        terminal.rest()
        terminal.send(signal.SIGTERM)
        assert terminal.end() == 128 + signal.SIGTERM
        assert terminal.left_behind == []


@pytest.mark.parametrize("key", ["q", "esc", "ctrl+c"])
def test_who_leaves_has_seen_no_list(home: Path, key: str) -> None:
    with asked(home) as terminal:
        terminal.type(key)
        assert terminal.end() == 0
        assert terminal.left_behind == []
        assert b"Runs" not in terminal.output


def test_a_signal_ends_it(home: Path) -> None:
    with asked(home) as terminal:
        terminal.send(signal.SIGTERM)
        assert terminal.end() == 128 + signal.SIGTERM
        assert terminal.left_behind == []


def test_where_there_is_nothing_it_says_so(tmp_path: Path) -> None:
    with Terminal(*TRACETUI, HOME=str(tmp_path)) as terminal:
        assert terminal.end() == 2
        assert "no PATH was named, and there is no ~/.paprika/traces" in " ".join(terminal.text.split())
