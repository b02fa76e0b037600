"""A terminal that is slower than the program: no key is lost, nothing old is painted, and it can always be left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared import PATIENCE, SEARCHES
from tests.terminal import TRACETUI, Terminal
from tracetui.ui.terminal.throttle import MAX_WINDOW_BYTES

pytestmark = pytest.mark.e2e
READY = "first failure"
QUESTION, ANSWER = b"\x1b[?2048$p", "\x1b[?2048;0$y"
TERMINAL_BUFFER = 70_000
"""Bytes that the system takes for a terminal that reads nothing."""
PICTURE = 45_000
"""Bytes of the whole screen, and more."""
PATIENT = """
import sys
from tracetui.ui.app import run_app
from tracetui.ui.terminal import driver
driver.LAST_ANSWER_SECONDS = 60.0
sys.exit(run_app(sys.argv[1:]))
"""
"""The program, waiting longer for the last answer than the machine may be busy."""


@pytest.fixture(scope="module")
def ended(samples: Path) -> Path:
    """Runs that all have an end: of others the screen depends on when they were written."""
    return samples / "paprika"


@pytest.fixture(scope="module")
def unhurried(ended: Path) -> Iterator[Terminal]:
    """The program in a terminal that is not slow."""
    with opened(ended) as terminal:
        yield terminal


def opened(folder: Path) -> Terminal:
    """The program, when the list is there."""
    terminal = Terminal(*TRACETUI, str(folder), size=(120, 40))
    terminal.expect(READY)
    terminal.wait_quiet()
    return terminal


def seen(terminal: Terminal) -> str:
    """What the screen shows."""
    return terminal.text()


def comes_to_the_top(terminal: Terminal, unhurried: Terminal, line: SlowLine | None = None) -> bool:
    """Whether the screen shows before long what it shows at the first row when nothing is slow."""
    end = time.monotonic() + PATIENCE
    unhurried.resize(*terminal.size)
    unhurried.type("G", "g")
    while seen(terminal) != seen(unhurried) and time.monotonic() < end:
        unhurried.read(0.1)
        if line is None:
            terminal.read(0.1)
        else:
            line.run(0.1)
    return seen(terminal) == seen(unhurried)


@pytest.mark.search
def test_keys_that_a_stalled_terminal_could_not_show_are_heeded(ended: Path, unhurried: Terminal) -> None:
    with opened(ended) as terminal:
        before = len(terminal.output)
        for _ in range(3 if SEARCHES else 2):
            terminal.stall()  # each time 60 pictures and more that nobody sees
        terminal.send("g")
        assert comes_to_the_top(terminal, unhurried), terminal.text()
        assert len(terminal.output) - before < TERMINAL_BUFFER + 2 * PICTURE


@pytest.mark.search
@pytest.mark.parametrize("grows_first", [False, True] if SEARCHES else [False])
def test_a_terminal_that_grew_while_it_was_stalled_is_painted_whole(
    ended: Path, unhurried: Terminal, grows_first: bool
) -> None:
    with opened(ended) as terminal:
        if grows_first:
            terminal.resize(140, 44)
        terminal.stall()
        terminal.send("g")
        if not grows_first:
            terminal.resize(140, 44)
        assert comes_to_the_top(terminal, unhurried), terminal.text()


def test_the_app_quits_on_a_stalled_terminal(ended: Path) -> None:
    with opened(ended) as terminal:
        terminal.stall()
        terminal.send("q")
        assert terminal.wait_exit(reading=False) == 0


class SlowLine:
    """What lies between the program and a terminal behind SSH: all is taken at once, and shown bit by bit."""

    def __init__(self, terminal: Terminal, bytes_a_second: int) -> None:
        self.terminal = terminal
        self.rate = bytes_a_second
        self.most = 0
        """The most bytes that were on their way."""
        self._way = bytearray()

    def run(self, seconds: float, *keys: str) -> None:
        """Type a key thirty times a second, for so long; then wait until everything is shown."""
        start = shown_at = busy_at = time.monotonic()
        typed = 0
        while (now := time.monotonic()) < min(start + PATIENCE, max(start + seconds, busy_at) + 0.8):
            if keys and typed < (now - start) * 30 and now < start + seconds:
                self.terminal.send(keys[typed % len(keys)])
                typed += 1
            before = len(self.terminal.received)
            self.terminal.read(0.005)
            self._way += b"".join(data for _, data in self.terminal.received[before:])
            self.most = max(self.most, len(self._way))
            size = int((now - shown_at) * self.rate)
            if size > len(QUESTION):
                self._show(size)
                shown_at = now
            if self._way:
                busy_at = now

    def expect(self, text: str) -> None:
        """Pass on what comes until the screen shows these words."""
        end = time.monotonic() + PATIENCE
        while text not in self.terminal.text():
            assert time.monotonic() < end, text
            self.run(0.1)

    def _show(self, size: int) -> None:
        """Let so many bytes arrive, and the question that begins in them whole."""
        cut = self._way.find(QUESTION, max(0, size - len(QUESTION)))
        part = self._way[: cut + len(QUESTION) if 0 <= cut < size else size]
        del self._way[: len(part)]
        for _ in range(part.count(QUESTION)):
            self.terminal.send(ANSWER)


def test_little_is_on_its_way_to_a_terminal_that_is_far_behind(ended: Path, unhurried: Terminal) -> None:
    with Terminal(*TRACETUI, str(ended)) as terminal:
        SlowLine(terminal, 10_000_000).expect(READY)
        line = SlowLine(terminal, 40_000)
        line.run(2.0, "g", "G")
        terminal.send("g")
        assert comes_to_the_top(terminal, unhurried, line), terminal.text()
        assert line.most < MAX_WINDOW_BYTES + PICTURE


def test_no_answer_of_the_terminal_lands_in_the_shell(ended: Path) -> None:
    with Terminal(sys.executable, "-c", PATIENT, str(ended)) as terminal:
        line = SlowLine(terminal, 10_000_000)
        line.expect(READY)
        terminal.send("Gq")
        line.run(0.5)
        assert terminal.wait_exit() == 0
        assert terminal.output.count(QUESTION) > 1
        assert terminal.left_unread() == 0
