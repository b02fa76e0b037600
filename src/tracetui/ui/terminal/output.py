"""Output to the terminal: as short as possible, and by a thread, so that a slow terminal never blocks the program."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate

CHUNK: Final = 2048
"""Bytes per write: the precision of `pending_bytes`."""
GIVE_UP_SECONDS: Final = 2.0
"""At exit: longest wait for a terminal that accepts nothing."""


class OutputWriter:
    """Writes to a file descriptor, in order; `write` never blocks.

    The buffer is unbounded: the painter must check `pending_bytes`. Drops all output once the terminal is gone.
    """

    def __init__(self, fileno: int, drained: Callable[[], None]) -> None:
        """`drained`: called by the thread whenever the buffer is empty."""
        self._fileno = fileno
        self._drained = drained
        self._parts: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._ending = self._lost = False
        self._moved_at = 0.0
        self._thread = threading.Thread(target=self._run, name="tracetui-output", daemon=True)
        self.sent_bytes = 0
        """Total bytes passed to `write`."""
        self.pending_bytes = 0
        """Bytes not yet accepted by the terminal."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue data for writing. Callable from any thread."""
        with self._changed:
            self.sent_bytes += len(data)
            if self._lost or not data:
                return
            if not self._parts:
                self._moved_at = time.monotonic()
            self._parts.append(data)
            self.pending_bytes += len(data)
            self._changed.notify_all()

    @property
    def stuck_seconds(self) -> float:
        """Seconds since the terminal last accepted output; 0 if nothing is pending."""
        with self._changed:
            return time.monotonic() - self._moved_at if self.pending_bytes else 0.0

    def stop(self) -> None:
        """Write the rest and stop; gives up after `GIVE_UP_SECONDS` without progress."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        while self._thread.is_alive() and self.stuck_seconds < GIVE_UP_SECONDS:
            self._thread.join(0.05)

    # ---- the thread

    def _run(self) -> None:
        while (data := self._next()) is not None:
            for at in range(0, len(data), CHUNK):
                self._put(data[at : at + CHUNK])
            if not self.pending_bytes:
                self._drained()

    def _next(self) -> bytes | None:
        """Wait for data; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._parts or self._ending)
            data = b"".join(self._parts)
            self._parts.clear()
            return data or None

    def _put(self, chunk: bytes) -> None:
        while chunk:
            try:
                taken = 0 if self._lost else os.write(self._fileno, chunk)
            except BlockingIOError:  # another process made the terminal non-blocking
                select.select([], [self._fileno], [], 1.0)
                continue
            except OSError:
                taken = 0
                self._lost = True
            if self._lost:
                taken = len(chunk)
            chunk = chunk[taken:]
            with self._changed:
                self.pending_bytes -= taken
                self._moved_at = time.monotonic()


# ---- partial repaints: changed cells only, where Textual starts at the left edge of the widget


class CroppedUpdate(ChopsUpdate):
    """Repaints spans of cells, cropped on both sides."""

    @classmethod
    def of(cls, update: ChopsUpdate) -> CroppedUpdate:
        """The same repaint, cropped."""
        return cls(update.chops, update.spans, update.chop_ends)

    def render_segments(self, console: Console) -> str:
        """Render the spans as terminal output."""
        found: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=True):
                start, stop = max(x, first), min(end, last)
                if strip is not None and start < stop:
                    shown = strip if (start, stop) == (x, end) else strip.crop(start - x, stop - x)
                    found += (Control.move_to(start, y).segment.text, shown.render(console))
        return "".join(found)


# ---- styles: only the difference between consecutive ones
#
# Textual writes each segment with its full style and a reset, some 40 bytes: most of a cursor move in a colorful list.
# Blanks don't show the foreground, and cursor moves show no style at all.


_PARTS: Final = re.compile(r"\x1b\[([0-9;]*)m")
_RESET: Final = "\x1b[0m"
_MOVES: Final = re.compile(r"(?:\r?\n|\x1b\[[0-9;]*H)+")
"""Text that only moves the cursor. Textual never ends the last line, which would scroll the background in."""
_INVISIBLE_IN_BLANKS: Final = frozenset("123")
"""Bold, dim, italic: invisible in blanks."""


class Style(NamedTuple):
    """Style set by SGR codes, as the codes."""

    foreground: str = ""
    background: str = ""
    attributes: frozenset[str] = frozenset()
    """All but colors. Only a reset clears them: Textual never clears a single one."""


PLAIN: Final = Style()


class Shortener:
    """Tracks the terminal's current style. All output must pass through it, in order."""

    def __init__(self) -> None:
        self._style = PLAIN

    def shorten(self, data: str) -> str:
        """Shorten `data` to equivalent output with fewer SGR sequences, ending in the same style."""
        if "\x1b[" not in data:
            return data
        parts = _PARTS.split(data)
        out: list[str] = []
        wanted = self._style
        for at, part in enumerate(parts):
            if at % 2:
                wanted = _after(wanted, part)
            elif part:
                if wanted != self._style and not _looks_alike(part, self._style, wanted):
                    out.append(_change(self._style, wanted))
                    self._style = wanted
                out.append(part)
        if wanted != self._style:
            out.append(_change(self._style, wanted))
            self._style = wanted
        return "".join(out)


def _looks_alike(text: str, one: Style, other: Style) -> bool:
    """Whether text certainly looks the same in both styles."""
    if text[0] not in " \r\n\x1b":
        return False
    if text.strip(" "):
        return _MOVES.fullmatch(text) is not None
    return one.background == other.background and one.attributes | other.attributes <= _INVISIBLE_IN_BLANKS


@lru_cache(4096)
def _after(style: Style, codes: str) -> Style:
    """The style after one sequence."""
    foreground, background, attributes = style
    numbers = (codes or "0").split(";")
    at = 0
    while at < len(numbers):
        code = numbers[at].lstrip("0") or "0"
        if code == "0":
            foreground, background, attributes = PLAIN
        elif code in ("38", "48") and at + 1 < len(numbers):
            length = {"2": 5, "5": 3}.get(numbers[at + 1], 0)
            if not length or at + length > len(numbers):
                return Style(foreground, background, attributes | {";".join(numbers[at:])})
            value = ";".join(numbers[at : at + length])
            foreground, background = (value, background) if code == "38" else (foreground, value)
            at += length - 1
        elif code.isdigit() and (30 <= int(code) <= 37 or 90 <= int(code) <= 97):
            foreground = code
        elif code.isdigit() and (40 <= int(code) <= 47 or 100 <= int(code) <= 107):
            background = code
        elif code == "39":
            foreground = ""
        elif code == "49":
            background = ""
        else:
            attributes |= {code}
        at += 1
    return Style(foreground, background, attributes)


@lru_cache(4096)
def _change(before: Style, after: Style) -> str:
    """The shortest sequence from one style to the other."""
    if after == PLAIN:
        return _RESET
    codes = [*sorted(after.attributes), *filter(None, (after.foreground, after.background))]
    from_reset = f"\x1b[0;{';'.join(codes)}m"
    if before.attributes - after.attributes:
        return from_reset
    codes = sorted(after.attributes - before.attributes)
    if after.foreground != before.foreground:
        codes.append(after.foreground or "39")
    if after.background != before.background:
        codes.append(after.background or "49")
    step = f"\x1b[{';'.join(codes)}m"
    return min(step, from_reset, key=len)
