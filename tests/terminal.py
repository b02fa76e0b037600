"""A program under a pseudo-terminal: spawn it, type, see its screen and every byte it sent, with the time it came.

The tests of the whole program and the benchmarks drive it. Reading never waits for the model of the screen: bytes get
their time when they are read, and are drawn (by pyte, which is slow) when nothing more is to be read.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import warnings
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple

import pyte

KEYS: Final = {
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "delete": "\x1b[3~",
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "space": " ",
    "backspace": "\x7f",
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}
"""What a terminal sends for keys that are no characters."""

_ANSWERS: Final = (
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;2$y"),  # synchronized output: known, off
    (re.compile(rb"\x1b\[\?2048\$p"), b"\x1b[?2048;0$y"),  # sizes in band: not known
    (re.compile(rb"\x1b\[0?c"), b"\x1b[?62;c"),
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
)
_BEGUN: Final = re.compile(rb"\x1b(?:\[(?:\??[0-9]*\$?)?)?\Z")
"""The beginning of a question whose end comes with the next bytes."""
_CONTROLS: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[()][0-9A-Za-z]|[^\[\]PX^_()])",
    re.DOTALL,
)
_UNKNOWN_TO_PYTE: Final = re.compile(
    r"\x1b\[[<=>][0-?]*[ -/]*[@-~]|\x1b\[[0-?]*[ -/]+[@-~]|\x1b[PX^_].*?\x1b\\", re.DOTALL
)
_PART: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_](?:(?!\x1b\\).)*|[()])?\Z", re.DOTALL)
_LULL: Final = 0.015
"""Seconds without a byte after which what came is drawn."""


class Received(NamedTuple):
    """Bytes as they came, and when (`time.perf_counter`)."""

    at: float
    data: bytes


class NotShown(AssertionError):
    """What was waited for did not come about; the message holds the screen."""


class Terminal:
    """A program under a pseudo-terminal of `size` = (columns, rows). A context manager; leaves no process behind."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        size: tuple[int, int] = (120, 40),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        """Start `argv`. `env` is added to this process' own environment; an empty value takes a name away."""
        self.size = size
        self.received: list[Received] = []
        """Everything that the program sent so far."""
        self._screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._question = b""
        self._drawn = 0
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self._set_size()
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads: all it does is one ioctl
            self.started = time.perf_counter()
            self.process = subprocess.Popen(
                argv,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=cwd,
                env={name: value for name, value in environment.items() if value},
                start_new_session=True,
                preexec_fn=_take_terminal,
            )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- to the program

    def send(self, *keys: str) -> float:
        """Type keys (by name as in `KEYS`) or text, and say when."""
        at = time.perf_counter()
        for key in keys:
            self._write(KEYS.get(key, key).encode())
        return at

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal; the program gets a SIGWINCH."""
        self.draw()
        self.size = columns, rows
        self._screen.resize(rows, columns)
        self._set_size()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self.process.send_signal(number)

    # ---- from the program

    @property
    def output(self) -> bytes:
        """Everything that it sent, in one piece."""
        return b"".join(data for _, data in self.received)

    def text(self) -> str:
        """What the screen shows, without blanks at the ends of lines."""
        self.draw()
        return self._text()

    def cells(self, row: int) -> list[pyte.screens.Char]:
        """The characters of a row with their colours and attributes."""
        self.draw()
        return [self._screen.buffer[row][column] for column in range(self.size[0])]

    def wait_for(self, pattern: str, *, timeout: float = 10.0, gone: bool = False) -> float:
        """Wait until the screen shows `pattern` (a regular expression over lines), or no more if `gone`.

        Returns when the bytes came that made it so. Raises `NotShown` with the screen.
        """
        expression = re.compile(pattern, re.MULTILINE)
        return self.wait_until(lambda text: bool(expression.search(text)) is not gone, timeout=timeout, what=pattern)

    def wait_until(self, holds: Callable[[str], bool], *, timeout: float = 10.0, what: str = "the state") -> float:
        """Wait until something holds of the text of the screen; returns when the bytes came that made it so."""
        end = time.perf_counter() + timeout
        at = self._draw_until(holds, check_now=True)
        while at is None:
            if time.perf_counter() > end or not self._read_to_lull():
                raise NotShown(f"not seen: {what}; exit status {self.process.poll()}; the screen:\n{self._text()}")
            at = self._draw_until(holds)
        return at

    def wait_quiet(self, seconds: float = 0.15, *, timeout: float = 10.0) -> float:
        """Wait until nothing came for so long; returns when the last byte came."""
        end = time.perf_counter() + timeout
        quiet_since = time.perf_counter()
        while time.perf_counter() < min(end, quiet_since + seconds):
            if self.read(min(seconds, 0.05)):
                quiet_since = time.perf_counter()
        self.draw()
        return self.received[-1].at if self.received else self.started

    def wait_exit(self, timeout: float = 10.0) -> int:
        """Wait until the program ends, reading what it still sends; its exit status, negative for a signal."""
        end = time.perf_counter() + timeout
        while self.process.poll() is None:
            if time.perf_counter() > end:
                raise NotShown(f"the program did not end; the screen:\n{self.text()}")
            self.read(0.005)
        while self.read(0):
            pass
        return self.process.returncode

    def read(self, wait: float) -> int:
        """Take in what is there, waiting at most so long for its first byte; the number of bytes."""
        got = 0
        while select.select([self._master], [], [], 0 if got else wait)[0]:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:  # the last one that held the other side is gone
                data = b""
            if not data:
                break
            self.received.append(Received(time.perf_counter(), data))
            got += len(data)
            if self._question or b"\x1b" in data:
                self._answer(self._question + data)
        return got

    def forget(self) -> None:
        """Drop what was sent so far, drawn or not; the screen is right again once the program has painted all of it."""
        self.received.clear()
        self._drawn = 0

    def draw(self) -> None:
        """Draw everything that was read."""
        self._draw_until(lambda text: False)

    # ---- the end

    def close(self) -> None:
        """Hang up; a program that stays is killed."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    # ---- inside

    def _set_size(self) -> None:
        columns, rows = self.size
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _write(self, data: bytes) -> None:
        while data:
            select.select([], [self._master], [], 1)
            data = data[os.write(self._master, data) :]

    def _answer(self, data: bytes) -> None:
        for question, answer in _ANSWERS:
            for _ in question.findall(data):
                self._write(answer)
        begun = _BEGUN.search(data)
        self._question = begun.group() if begun else b""

    def _read_to_lull(self) -> bool:
        """Read on until a lull, or long enough; False if there will never be more."""
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            if not self.read(_LULL) and (self.process.poll() is not None or self._drawn < len(self.received)):
                break
        return self.process.poll() is None or self._drawn < len(self.received)

    def _draw_until(self, holds: Callable[[str], bool], *, check_now: bool = False) -> float | None:
        """Draw piece by piece, until something holds of the screen; the time of that piece, None if it never does."""
        if check_now and holds(self._text()):
            return self.received[self._drawn - 1].at if self._drawn else self.started
        while self._drawn < len(self.received):
            at, data = self.received[self._drawn]
            self._drawn += 1
            self._feed(data)
            if holds(self._text()):
                return at
        return None

    def _feed(self, data: bytes) -> None:
        text = self._held + self._decoder.decode(data)
        part = _PART.search(text)
        self._held = part.group() if part else ""
        self._stream.feed(_UNKNOWN_TO_PYTE.sub("", text[: len(text) - len(self._held)]))

    def _text(self) -> str:
        rows = self._screen.buffer
        columns, count = self.size
        return "\n".join("".join(rows[y][x].data for x in range(columns)).rstrip() for y in range(count))


def plain(output: bytes) -> str:
    """What was sent without its control sequences: the characters that were painted."""
    return _CONTROLS.sub("", output.decode("utf-8", "replace"))


def _take_terminal() -> None:
    """In the new process: make its standard input the terminal that controls it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
