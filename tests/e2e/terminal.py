"""A program under a pseudo-terminal: what tests of the real thing drive it with, and what they judge."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from types import TracebackType
from typing import Final

import pyte

ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACETUI: Final = (sys.executable, "-m", "tracetui")
PATIENCE: Final = 30.0
"""Seconds after which something is not going to happen any more: a limit, never a wait."""
KEYS: Final = {
    "enter": "\r", "esc": "\x1b", "tab": "\t", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
    "pgdn": "\x1b[6~", "pgup": "\x1b[5~", "home": "\x1b[H", "end": "\x1b[F", "ctrl+c": "\x03", "ctrl+p": "\x10",
}  # fmt: skip
_MODE: Final = re.compile(rb"\x1b\[\?([\d;]+)([hl])|\x1b\[([<>])\d*u")
_SEQUENCE: Final = re.compile(
    rb"\x1b\[([<-?]*)([0-9;:]*)([ -/]*)([@-~])|\x1b([]PX^_])(.*?)(?:\x07|\x1b\\)|\x1b([ -/]*[0-~])", re.S
)


class Terminal:
    """A program that believes that it owns a terminal. As a context manager it leaves no process behind."""

    def __init__(
        self, *command: str, size: tuple[int, int] = (120, 40), controlling: bool = True, **environment: str
    ) -> None:
        self.output = bytearray()
        self.status: int | None = None
        self._columns, self._lines = size
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._master, self._slave = pty.openpty()
        self.resize(*size)
        self.modes_before = termios.tcgetattr(self._slave)
        self.pid = os.fork()
        if not self.pid:
            self._become(command, controlling, environment)

    def _become(self, command: tuple[str, ...], controlling: bool, environment: dict[str, str]) -> None:
        try:
            os.setsid()
            if controlling:
                fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)
            for number in range(3):
                os.dup2(self._slave, number)
            os.closerange(3, 256)
            path = os.pathsep.join((os.environ.get("PYTHONPATH", ""), ROOT)).strip(os.pathsep)
            own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "PYTHONPATH": path}
            nowhere = {
                "HOME": "/dev/null/nowhere",
                "XDG_STATE_HOME": "/dev/null/nowhere",
                "XDG_CONFIG_HOME": "/dev/null/nowhere",
            }
            os.execve(command[0], command, {"PATH": os.environ.get("PATH", "")} | own | nowhere | environment)
        finally:
            os._exit(127)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.status is None and not self._has_ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.hang_up()

    # ---- what a user does

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, *keys: str) -> None:
        """Type keys, each when the program has answered to the one before (a lone escape needs a pause after it)."""
        for key in keys:
            os.write(self._master, KEYS.get(key, key).encode())
            self.rest(0.15 if key == "esc" else 0.03)

    def send(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        for fd in (self._slave, self._master):
            try:
                os.close(fd)
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise

    # ---- what a user sees

    def read(self, seconds: float) -> bool:
        """Take in what the program writes within so many seconds; False if it wrote nothing."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.output += data
        self._stream.feed(data)
        return bool(data)

    def stall(self) -> None:
        """Type, without reading, until the program can write no more and has as much again to write."""
        waiting = -1
        while waiting != (waiting := self._unread()):
            self._unheeded(20)
        self._unheeded(60)

    def _unheeded(self, keys: int) -> None:
        for number in range(keys):
            os.write(self._master, b"g" if number % 2 else b"G")
            select.select([], [], [], 0.02)

    def _unread(self) -> int:
        return int(struct.unpack("i", fcntl.ioctl(self._master, termios.FIONREAD, b"\0" * 4))[0])

    def rest(self, seconds: float = 0.3) -> None:
        """Take in everything until nothing came for so many seconds."""
        end = time.monotonic() + PATIENCE
        while self.read(seconds) and time.monotonic() < end:
            pass

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self._screen.display)

    def expect(self, words: str) -> None:
        """Wait until the screen shows these words."""
        end = time.monotonic() + PATIENCE
        while words not in self.text:
            if time.monotonic() > end or self._has_ended():
                raise AssertionError(f"{words!r} did not appear; status {self.status}, screen:\n{self.text}")
            self.read(0.1)

    # ---- how it ends

    def end(self, *, seconds: float = PATIENCE, reading: bool = True) -> int:
        """Wait until the program has ended; its exit status."""
        end = time.monotonic() + seconds
        while not self._has_ended():
            if time.monotonic() > end:
                raise AssertionError(f"still there after {seconds} s; screen:\n{self.text}")
            if reading:
                self.read(0.02)
            else:
                select.select([], [], [], 0.02)
        while reading and self.read(0.05):
            pass
        assert self.status is not None
        return self.status

    def stopped(self) -> None:
        """Wait until the program is suspended."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid:
                assert os.WIFSTOPPED(status), f"ended with {status}"
                return
        raise AssertionError("was not suspended")

    def _has_ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    @property
    def left_behind(self) -> list[str]:
        """What the program changed in the terminal and did not put back."""
        modes, kitty = {"25": True, "7": True}, 0
        for match in _MODE.finditer(bytes(self.output)):
            if match[1]:
                modes |= dict.fromkeys(match[1].decode().split(";"), match[2] == b"h")
            else:
                kitty = kitty + 1 if match[3] == b">" else max(0, kitty - 1)
        changed = [f"mode {name}" for name, on in modes.items() if on != (name in ("25", "7"))]
        if kitty:
            changed.append("kitty keys")
        if termios.tcgetattr(self._slave)[:4] != self.modes_before[:4]:
            changed.append("termios")
        return changed


def sequences(output: bytes) -> set[str]:
    """The kinds of escape sequences in an output: what differs in numbers only is one kind."""
    kinds = set()
    for match in _SEQUENCE.finditer(output):
        if match[4]:
            number = match[2].decode() if match[4] in b"hlnctruq" or match[3] else ""
            kinds.add(f"CSI {match[1].decode()}{match[3].decode()}{match[4].decode()} {number}".strip())
        elif match[5]:
            kinds.add(f"string {match[5].decode()}{match[6][:3].decode('latin-1')}")
        else:
            kinds.add(f"ESC {match[7].decode()}")
    return kinds


def leaked(output: bytes) -> list[str]:
    """Characters in an output, outside of escape sequences, that no terminal should be sent."""
    text = _SEQUENCE.sub(b"", output).decode("utf-8", "surrogateescape")
    unsafe = (
        "[^\t\n\r -~\u00a0-\U000e0fff]|[\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    )
    return sorted({f"U+{ord(character):04X}" for character in re.findall(unsafe, text)})
