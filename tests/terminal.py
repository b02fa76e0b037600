"""A program under a pseudo-terminal: spawn it, type, see its screen and every byte it sent, with the time it came.

The tests of the whole program and the benchmarks drive it. Reading never waits for the model of the screen: bytes get
their time when they are read, and are drawn (by pyte, which is slow) when nothing more is to be read. The program gets
an environment of its own: who runs the tests, and how, makes no difference.
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
import sys
import termios
import time
import warnings
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyte

from tests.shared import PATIENCE, ROOT

TRACETUI: Final = (sys.executable, "-m", "tracetui")
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
    "escape": "\x1b[27u",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "space": " ",
    "backspace": "\x7f",
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}
"""What a terminal sends for keys that are no characters; for escape what one sends that knows the protocol of kitty,
which nobody needs to wait for: a bare ESC may be the beginning of something."""
BARE_ESCAPE: Final = "\x1b"

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
_NOT_DRAWN: Final = re.compile(
    r"\x1b\[[0-9;:]*m|\x1b\[[<=>][0-?]*[ -/]*[@-~]|\x1b\[[0-?]*[ -/]+[@-~]|\x1b[PX^_].*?\x1b\\", re.DOTALL
)
"""Colors and styles, which no text shows and which take pyte most of its time, and sequences unknown to it."""
_PART: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_](?:(?!\x1b\\).)*|[()])?\Z", re.DOTALL)
_NARROW: Final = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u2319\u2500-\u25fc]+")
"""Text of characters that each fill a cell."""
_LULL: Final = 0.015
"""Seconds without a byte after which what came is drawn."""


class _Screen(pyte.Screen):
    """A screen without styles, which draws plain text at once: `pyte` itself makes three objects of each character."""

    def draw(self, data: str) -> None:
        cursor = self.cursor
        end = cursor.x + len(data)
        if end > self.columns or not _NARROW.fullmatch(data):
            super().draw(data)
            return
        self.buffer[cursor.y].update(zip(range(cursor.x, end), map(_cell, data), strict=True))
        self.dirty.add(cursor.y)
        cursor.x = end


@cache
def _cell(character: str) -> pyte.screens.Char:
    return pyte.screens.Char(character)


class Received(NamedTuple):
    """Bytes as they came, and when (`time.perf_counter`)."""

    at: float
    data: bytes


class NotShown(AssertionError):
    """What was waited for did not come about; the message holds the screen."""


class Terminal:
    """A program that believes that it owns a terminal. As a context manager it leaves no process behind."""

    def __init__(
        self,
        *argv: str,
        size: tuple[int, int] = (120, 40),
        env: Mapping[str, str] | None = None,
        controlling: bool = True,
        answers: bool = False,
    ) -> None:
        """Start `argv` in a terminal of `size` = (columns, rows), with `env` added to a bare environment.

        Unless `controlling`, the program gets no signal when the terminal hangs up. A terminal that `answers` tells
        what it is asked; the others know no questions.
        """
        self.size = size
        self.received: list[Received] = []
        """Everything that the program sent so far."""
        self._answers = answers
        self._screen = _Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._lines: list[str] = []
        self._held = ""
        self._question = b""
        self._drawn = 0
        self._master, self._slave = pty.openpty()
        os.set_blocking(self._master, False)
        self._set_size()
        self.modes_before = self.modes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads: all it does is one ioctl
            self.started = time.perf_counter()
            self.process = subprocess.Popen(
                argv,
                stdin=self._slave,
                stdout=self._slave,
                stderr=self._slave,
                env=_bare_environment() | dict(env or {}),
                start_new_session=True,
                preexec_fn=_take_terminal if controlling else None,
            )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- to the program

    def send(self, *keys: str) -> float:
        """Type keys (by name as in `KEYS`) or text, and say when."""
        at = time.perf_counter()
        for key in keys:
            self._write(KEYS.get(key, key).encode())
        return at

    def type(self, *keys: str) -> None:
        """Type keys, each when the program has answered to the one before."""
        for key in keys:
            self.send(key)
            self.wait_quiet(0.03)

    def stall(self) -> None:
        """Type, without reading, until the program can write no more and has as much again to write."""
        waiting = -1
        while waiting != (waiting := _waiting(self._master)):
            self._type_blindly(20)
        self._type_blindly(60)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal; the program gets a SIGWINCH."""
        self.draw()
        self.size = columns, rows
        self._screen.resize(rows, columns)
        self._set_size()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        if self._master >= 0:
            os.close(self._slave)
            os.close(self._master)
            self._master = self._slave = -1

    # ---- from the program

    @property
    def output(self) -> bytes:
        """Everything that it sent, in one piece."""
        return b"".join(data for _, data in self.received)

    def text(self) -> str:
        """What the screen shows, without blanks at the ends of lines."""
        self.draw()
        return self._text()

    @property
    def modes(self) -> list[Any]:
        """The modes of the line (`termios`), as the system has them now."""
        return termios.tcgetattr(self._slave)[:4]

    def left_unread(self) -> int:
        """Bytes of input that nobody has read: whoever reads the terminal next gets them. Changes the modes."""
        modes = termios.tcgetattr(self._slave)
        modes[3] &= ~termios.ICANON
        termios.tcsetattr(self._slave, termios.TCSANOW, modes)
        return _waiting(self._slave)

    def expect(self, expected: str) -> None:
        """Wait until the screen shows these words."""
        self.wait_until(lambda text: expected in text, what=expected)

    def wait_for(self, pattern: str, *, timeout: float = PATIENCE, gone: bool = False) -> float:
        """Wait until the screen shows `pattern` (a regular expression over lines), or no more if `gone`.

        Returns when the bytes came that made it so. Raises `NotShown` with the screen.
        """
        expression = re.compile(pattern, re.MULTILINE)
        return self.wait_until(lambda text: bool(expression.search(text)) is not gone, timeout=timeout, what=pattern)

    def wait_until(self, holds: Callable[[str], bool], *, timeout: float = PATIENCE, what: str = "the state") -> float:
        """Wait until something holds of the text of the screen; returns when the bytes came that made it so."""
        end = time.perf_counter() + timeout
        at = self._draw_until(holds, check_now=True)
        while at is None:
            if time.perf_counter() > end or not self._read_to_lull():
                raise NotShown(f"not seen: {what}; exit status {self.process.poll()}; the screen:\n{self._text()}")
            at = self._draw_until(holds)
        return at

    def wait_quiet(self, seconds: float = 0.3, *, timeout: float = PATIENCE, at_rest: bool = True) -> float:
        """Wait until for so long nothing came, nor (`at_rest`) anything was about to; tells when the last one came."""
        end = time.perf_counter() + timeout
        quiet_since = time.perf_counter()
        while time.perf_counter() < min(end, quiet_since + seconds):
            if self.read(min(seconds, 0.05)) or (at_rest and self._works()):
                quiet_since = time.perf_counter()
        self.draw()
        return self.received[-1].at if self.received else self.started

    def wait_stopped(self) -> None:
        """Wait until the program is suspended."""
        end = time.perf_counter() + PATIENCE
        pid = status = 0
        while not pid:
            if time.perf_counter() > end:
                raise NotShown(f"the program was not suspended; the screen:\n{self.text()}")
            self.read(0.02)
            pid, status = os.waitpid(self.process.pid, os.WNOHANG | os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"it ended with {status}"

    def wait_exit(self, timeout: float = PATIENCE, *, reading: bool = True) -> int:
        """Wait until the program ends, `reading` what it still sends or not; its exit status, negative for a signal."""
        if not reading:
            return self.process.wait(timeout)
        end = time.perf_counter() + timeout
        while self.process.poll() is None:
            if time.perf_counter() > end:
                raise NotShown(f"the program did not end; the screen:\n{self.text()}")
            self.read(0.005)
        self.read(0)
        return self.process.returncode

    def read(self, wait: float) -> int:
        """Take in what is there, waiting at most so long for its first byte; the number of bytes."""
        got = 0
        while select.select([self._master], [], [], 0 if got else wait)[0]:
            try:
                data = os.read(self._master, 1 << 16)
            except BlockingIOError:  # the program took back what it had sent
                break
            self.received.append(Received(time.perf_counter(), data))
            got += len(data)
            if self._answers and (self._question or b"\x1b" in data):
                self._answer(self._question + data)
        return got

    def forget(self) -> None:
        """Drop what was sent so far, drawn or not; the screen is right again once the program has painted all of it."""
        self.received.clear()
        self._drawn = 0

    def draw(self) -> None:
        """Draw everything that was read."""
        while self._drawn < len(self.received):
            self._draw_next()

    def close(self) -> None:
        """Hang up; a program that stays is killed."""
        self.hang_up()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    # ---- inside

    def _works(self) -> bool:
        """Whether a thread of the program works or waits for its turn, where the system tells: it is not quiet yet."""
        for path in Path(f"/proc/{self.process.pid}/task").glob("*/stat"):
            with suppress(OSError):
                if path.read_bytes().rpartition(b") ")[2][:1] in (b"R", b"D"):
                    return True
        return False

    def _set_size(self) -> None:
        columns, rows = self.size
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _write(self, data: bytes) -> None:
        while data:
            select.select([], [self._master], [], 1)
            data = data[os.write(self._master, data) :]

    def _type_blindly(self, count: int) -> None:
        for number in range(count):
            self.send("g" if number % 2 else "G")
            select.select([], [], [], 0.02)

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
            at = self._draw_next()
            if holds(self._text()):
                return at
        return None

    def _draw_next(self) -> float:
        at, data = self.received[self._drawn]
        self._drawn += 1
        text = self._held + self._decoder.decode(data)
        part = _PART.search(text)
        self._held = part.group() if part else ""
        self._stream.feed(_NOT_DRAWN.sub("", text[: len(text) - len(self._held)]))
        return at

    def _text(self) -> str:
        """The screen as text. Only rows that changed since the last call are built."""
        rows, dirty = self._screen.buffer, self._screen.dirty
        columns, count = self.size
        if len(self._lines) != count:
            self._lines = [""] * count
            dirty.update(range(count))
        for y in dirty:
            if y < count:
                self._lines[y] = "".join(rows[y][x].data for x in range(columns)).rstrip()
        dirty.clear()
        return "\n".join(self._lines)


def plain(output: bytes) -> str:
    """What was sent without its control sequences: the characters that were painted."""
    return _CONTROLS.sub("", output.decode("utf-8", "replace"))


def _take_terminal() -> None:
    """In the new process: make its standard input the terminal that controls it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _bare_environment() -> dict[str, str]:
    """Nothing of who runs the tests but where programs and modules are; no home."""
    modules = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))
    own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "PYTHONPATH": modules}
    nowhere = dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), "/dev/null/nowhere")
    return {"PATH": os.environ.get("PATH", "")} | own | nowhere


def _waiting(descriptor: int) -> int:
    """Bytes that can be read."""
    return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0])
