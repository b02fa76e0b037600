"""Record screenshots/demo.gif: the real app under a pseudo-terminal, from the list to a live run, in 20 seconds.

Each scene presses keys and waits until the screen shows what it names and rests; how long it is shown is written here.
The app runs at the moment of the samples, so the same program makes the same recording, on slow machines too.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyte
from painting import Color, Painter, Piece

if TYPE_CHECKING:
    from PIL.Image import Image

SIZE: Final = (120, 34)
MOST_BYTES: Final = 3_000_000
REST: Final = 0.7
"""Seconds without a change after which a screen is complete."""
PATIENCE: Final = 40.0
CLOCK: Final = "clock"
"""File with the seconds since the moment of the samples, which the app reads."""
AGENT: Final = "traces/agents"
_INK: Final[Color] = (220, 225, 234)
_GROUND: Final[Color] = (16, 19, 26)
_UNKNOWN_TO_PYTE: Final = re.compile(
    rb"\x1b\[[<=>][0-?]*[ -/]*[@-~]|\x1b\[[0-?]*[ -/]+[@-~]|\x1b[PX^_].*?\x1b\\", re.DOTALL
)
_KEYS: Final = {"enter": b"\r", "escape": b"\x1b[27u", "space": b" "}


class Scene(NamedTuple):
    """Keys, what the screen shows then (a regular expression), and for how long it is shown, in seconds."""

    keys: tuple[str, ...]
    shows: str
    seconds: float


SCENES: Final = (
    Scene((), r"\d+ runs", 2.4),
    Scene(("e",), r"(?i)error", 0.8),
    Scene(("enter",), r"(?i)error", 2.2),
    Scene(("escape", "T"), r"(?i)cause", 2.2),
    Scene(("j",), r"(?i)cause", 1.2),
    Scene(("v",), r"(?i)verdict", 1.0),
    Scene(("r",), r"(?i)real", 1.8),
    Scene(("escape", "escape", "g", "j", "j", "j", "j"), r"\d+ runs", 0.8),
    Scene(("D",), r"First difference", 3.0),
    Scene(("escape", "L"), r"(?i)live", 0.6),
)
GROWTH_SECONDS: Final = 0.4
"""How long each step of the live agent is shown."""
GROWTH: Final = 9
"""How many steps of it are recorded."""
LAST_SECONDS: Final = 0.8


class Recorder:
    """The app under a pseudo-terminal, and the frames so far."""

    def __init__(self, paint: Painter, *command: str) -> None:
        self._paint = paint
        self._screen = pyte.Screen(*SIZE)
        self._stream = pyte.ByteStream(self._screen)
        self._controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
        self._app = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
        os.close(terminal)
        self.frames: list[tuple[Image, float]] = []

    def press(self, keys: tuple[str, ...]) -> None:
        """Type keys, each when the screen rests after the one before."""
        for key in keys:
            os.write(self._controller, _KEYS.get(key) or key.encode())
            self._rest()

    def show(self, what: str, seconds: float) -> None:
        """Wait until the screen shows `what`, a regular expression, and rests; add it as a frame."""
        end = time.monotonic() + PATIENCE
        while self._rest() or not re.search(what, "\n".join(self._screen.display)):
            if time.monotonic() > end:
                raise TimeoutError(f"{what!r} isn't shown:\n" + "\n".join(self._screen.display))
        self.frames.append((self._paint(rows(self._screen), SIZE), seconds))

    def _rest(self) -> bool:
        """Read until the screen hasn't changed for a while; whether it changed."""
        before, is_new, end = list(rows(self._screen)), False, time.monotonic() + REST
        while (remaining := end - time.monotonic()) > 0:
            if select.select([self._controller], [], [], remaining)[0]:
                data = os.read(self._controller, 1 << 16)
                self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data))
                if (now := list(rows(self._screen))) != before:
                    before, is_new, end = now, True, time.monotonic() + REST
        return is_new

    def close(self) -> None:
        """End the app."""
        self._app.kill()
        self._app.wait()
        os.close(self._controller)


def rows(screen: pyte.Screen) -> Iterator[list[Piece]]:
    """The cells of a screen."""
    for y in range(screen.lines):
        line = screen.buffer[y]
        pieces = []
        for x in range(screen.columns):
            cell = line[x]
            ink, ground = color(cell.fg, _INK), color(cell.bg, _GROUND)
            if cell.reverse:
                ink, ground = ground, ink
            if cell.data:  # empty: the second half of a wide character
                pieces.append(Piece(cell.data[0], ink, ground, cell.bold))
        yield pieces


def color(name: str, default: Color) -> Color:
    """A color of pyte: ``rrggbb``, or a name, which the app doesn't use with true colors."""
    return (int(name[:2], 16), int(name[2:4], 16), int(name[4:], 16)) if re.fullmatch("[0-9a-f]{6}", name) else default


def record(paint: Painter, states: list[tuple[Path, bytes, float]], target: Path) -> None:
    """Record the scenes in the current folder, which holds the samples, and then the agent that writes `states`."""
    Path(CLOCK).write_text("0")
    environment = {
        "COLORTERM": "truecolor",
        "TERM": "xterm-256color",
        "XDG_STATE_HOME": tempfile.mkdtemp(dir=Path.cwd()),
    }
    os.environ.update(environment)
    recorder = Recorder(paint, sys.executable, str(Path(__file__).with_name("screenshots.py")), "--app", "traces")
    try:
        for scene in SCENES:
            recorder.press(scene.keys)
            recorder.show(scene.shows, scene.seconds)
        for path, data, seconds in states[:GROWTH]:
            Path(CLOCK).write_text(str(seconds))
            with path.open("ab") as file:
                file.write(data[path.stat().st_size :])
            recorder.show(r"(?i)live", GROWTH_SECONDS)
        image, _ = recorder.frames.pop()
        recorder.frames.append((image, LAST_SECONDS))
    finally:
        recorder.close()
    save(recorder.frames, target)


def save(frames: list[tuple[Image, float]], target: Path) -> None:
    """Write the frames as an animated GIF with one palette."""
    from PIL import Image

    width, height = frames[0][0].size
    sheet = Image.new("RGB", (width, height * len(frames)))
    for place, (image, _) in enumerate(frames):
        sheet.paste(image, (0, place * height))
    palette = sheet.quantize(64, dither=Image.Dither.NONE)
    first, *rest = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image, _ in frames)
    durations = [round(seconds * 1000) for _, seconds in frames]
    first.save(target, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True, disposal=1)
    size = target.stat().st_size
    print(f"screenshots/{target.name}: {len(frames)} frames, {sum(durations) / 1000:.1f} s, {size:,} bytes")
    if size > MOST_BYTES:
        raise ValueError(f"{target.name} has more than {MOST_BYTES:,} bytes")
