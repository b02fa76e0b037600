"""However it ends: the terminal is as it was before, and the exit status tells how it ended."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.crashing import PLACES
from tests.e2e.judge import leftovers
from tests.shared import SEARCHES
from tests.terminal import TRACETUI, Terminal, plain

pytestmark = pytest.mark.e2e
HERE = Path(__file__).parent
READY = "first failure"


@pytest.fixture
def runs(samples: Path) -> Path:
    """A few runs: however it ends, it ends the same with many."""
    return samples / "paprika"


def opened(folder: Path, *, controlling: bool = True) -> Terminal:
    """The program, when the list is there."""
    terminal = Terminal(*TRACETUI, str(folder), controlling=controlling)
    terminal.expect(READY)
    terminal.wait_quiet()
    return terminal


@pytest.mark.search
@pytest.mark.parametrize("key", ["q", "ctrl+c", "\x11"] if SEARCHES else ["ctrl+c", "\x11"])
def test_a_key(runs: Path, key: str) -> None:
    with opened(runs) as terminal:
        terminal.type(key)
        assert terminal.wait_exit() == 0
        assert leftovers(terminal) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal(runs: Path, number: signal.Signals) -> None:
    with opened(runs) as terminal:
        terminal.signal(number)
        assert terminal.wait_exit() == 128 + number
        assert leftovers(terminal) == []
        assert b"Traceback" not in terminal.output


def test_suspending_gives_the_terminal_back_and_continuing_takes_it_again(runs: Path) -> None:
    with opened(runs) as terminal:
        terminal.signal(signal.SIGTSTP)
        terminal.wait_stopped()
        terminal.wait_quiet()
        assert leftovers(terminal) == []
        terminal.forget()
        terminal.signal(signal.SIGCONT)
        terminal.wait_until(lambda _: {"mode 1049", "termios"} <= set(leftovers(terminal)), what="it takes it again")
        terminal.wait_until(lambda _: READY in plain(terminal.output), what="it paints all of it")
        terminal.type("q")
        assert terminal.wait_exit() == 0
        assert leftovers(terminal) == []


@pytest.mark.parametrize("controlling", [True, False], ids=["hang-up signal", "no signal"])
def test_a_terminal_that_goes_away(runs: Path, controlling: bool) -> None:
    with opened(runs, controlling=controlling) as terminal:
        terminal.hang_up()
        assert terminal.wait_exit(reading=False) == 129


def test_a_terminal_that_takes_nothing_any_more_does_not_hold_it(runs: Path) -> None:
    with opened(runs) as terminal:
        terminal.stall()
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_exit(reading=False) == 143


@pytest.mark.parametrize("place", PLACES)
def test_a_crash(runs: Path, tmp_path: Path, place: str) -> None:
    command = (sys.executable, str(HERE / "crashing.py"), place, str(runs))
    with Terminal(*command, env={"TMPDIR": str(tmp_path)}) as terminal:
        if place in ("key", "end"):
            terminal.expect(READY)
            terminal.type("q")
        assert terminal.wait_exit() == 70
        assert leftovers(terminal) == []
        assert b"Traceback" not in terminal.output
        assert b"SECRET" not in terminal.output
        last = terminal.output.decode().split("\x1b")[-1]
    match = re.search(r"tracetui: internal error \(ValueError\); crash log: (.+)\r\n$", last)
    assert match, last
    log = Path(match[1])
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "crashing.py" in log.read_text()
    if place in ("key", "timer"):
        assert "\nMainState(pane=runs, " in log.read_text()
    assert "SECRET" not in log.read_text()


def test_quitting_while_a_scan_waits_for_ever() -> None:
    with Terminal(sys.executable, str(HERE / "endless.py")) as terminal:
        terminal.expect("scanning 24 files")
        terminal.type("q")
        assert terminal.wait_exit() == 0
        assert leftovers(terminal) == []


def test_a_pipe_among_the_traces_holds_nothing_up(samples: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "samples").symlink_to(samples)
    with Terminal(*TRACETUI, str(tmp_path), str(samples)) as terminal:
        terminal.expect(READY)
        terminal.type("q")
        assert terminal.wait_exit() == 0


def test_a_dumb_terminal_is_refused_with_a_hint(samples: Path) -> None:
    with Terminal(*TRACETUI, str(samples), env={"TERM": "dumb"}) as terminal:
        assert terminal.wait_exit() == 2
        assert b"tracetui ls" in terminal.output
        assert b"\x1b" not in terminal.output


def test_without_a_screen_it_lists(samples: Path) -> None:
    done = subprocess.run([*TRACETUI, str(samples)], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert b"latticeflow" in done.stdout
    assert b"\x1b" not in done.stdout + done.stderr
