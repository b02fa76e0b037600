"""Textual's Unix driver, made non-blocking for input and output.

Textual's own driver polls for the end of its input, which delays exit by 0.2 s, and its writer queues 30 writes: with a
slow terminal, the 31st blocks the program.

This driver buffers the output, and pauses painting while more than `PAUSE_BYTES` are pending. When the terminal has
caught up, it paints the current state once: a slow line shows fewer frames, none of them stale.

A hung-up terminal is reported by a signal or by the end of input; pending output is dropped. A terminal that stops
reading (dead TCP connection, ctrl+s) looks like a very slow one: painting pauses with at most one frame in the buffer,
and exit waits `GIVE_UP_SECONDS` for it, then restores the terminal's modes.

Output is as short as possible, and written by a thread.
"""

from __future__ import annotations

import os
import re
import select
import selectors
import threading
import time
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple, TextIO

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message
from textual.messages import InBandWindowResize

from tracetui.ui.terminal.throttle import LagProbe

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
    def from_update(cls, update: ChopsUpdate) -> CroppedUpdate:
        """The same repaint, cropped."""
        return cls(update.chops, update.spans, update.chop_ends)

    def render_segments(self, console: Console) -> str:
        """Render the spans as terminal output."""
        parts: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=True):
                start, stop = max(x, first), min(end, last)
                if strip is not None and start < stop:
                    visible = strip if (start, stop) == (x, end) else strip.crop(start - x, stop - x)
                    parts += (Control.move_to(start, y).segment.text, visible.render(console))
        return "".join(parts)


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
        output: list[str] = []
        wanted = self._style
        for at, part in enumerate(parts):
            if at % 2:
                wanted = _apply_codes(wanted, part)
            elif part:
                if wanted != self._style and not _looks_alike(part, self._style, wanted):
                    output.append(_change(self._style, wanted))
                    self._style = wanted
                output.append(part)
        if wanted != self._style:
            output.append(_change(self._style, wanted))
            self._style = wanted
        return "".join(output)


def _looks_alike(text: str, style: Style, other: Style) -> bool:
    """Whether text certainly looks the same in both styles."""
    if text[0] not in " \r\n\x1b":
        return False
    if text.strip(" "):
        return _MOVES.fullmatch(text) is not None
    return style.background == other.background and style.attributes | other.attributes <= _INVISIBLE_IN_BLANKS


@lru_cache(4096)
def _apply_codes(style: Style, codes: str) -> Style:
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


PAUSE_BYTES: Final = 4096
"""Painting pauses while more bytes than this are pending."""
POLL_SECONDS: Final = 0.5
"""Interval of checks of a slow terminal, in addition to those at its answers."""
LAST_ANSWER_SECONDS: Final = 1.0
"""At exit: longest wait for the answer to a query, which would otherwise land in the shell."""
_SIZE_QUERY: Final = "\x1b[?2048$p"
"""DECRQM query for in-band size reports. Textual sends it at start; a terminal that answers is used as a lag probe."""


class TerminalDriver(LinuxDriver):
    """Reads keys until a byte arrives in a pipe; writes through an `OutputWriter`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._wake_fd: int | None = None
        """Write end of the pipe, while the input thread runs."""
        self._output: OutputWriter | None = None
        self._shortener = Shortener()
        self._probe = LagProbe()
        self._answered = threading.Event()
        self._can_query = False
        self._painting_paused = False
        """Whether painting waits for the terminal."""

    # ---- lag of the terminal

    @property
    def sent_bytes(self) -> int:
        """Bytes written so far."""
        return self._output.sent_bytes if self._output is not None else 0

    @property
    def pending_bytes(self) -> int:
        """Bytes not yet accepted by the terminal."""
        return self._output.pending_bytes if self._output is not None else 0

    @property
    def lag_seconds(self) -> float:
        """Measured lag of the terminal, in seconds; 0 if it keeps up."""
        stuck = self._output.stuck_seconds if self._output is not None else 0.0
        return max(stuck, self._probe.lag(time.monotonic()))

    @property
    def _is_full(self) -> bool:
        """Whether painting must wait; once paused, until everything is accepted."""
        if self._output is None:
            return False
        limit = 0 if self._painting_paused else PAUSE_BYTES
        return self._output.pending_bytes > limit or self._probe.is_full(time.monotonic(), self._output.sent_bytes)

    def flush(self) -> None:
        """After painting: probe the terminal, and pause painting if it lags."""
        if self._output is None or not self._can_query:
            return
        now = time.monotonic()
        if self._probe.due(now, self._output.sent_bytes):
            self._query()
        if not self._painting_paused and self._is_full:
            self._loop.call_soon(self._pause_painting)  # later: the current frame may have more parts

    def _query(self) -> None:
        self._answered.clear()
        self.write(_SIZE_QUERY)
        self._probe.record_query(time.monotonic(), self.sent_bytes)

    def _pause_painting(self) -> None:
        if not self._painting_paused and self._is_full:
            self._painting_paused = True
            self._paused_size = self._laid_out_size
            self._app._begin_batch()
            self._loop.call_later(POLL_SECONDS, self._poll_terminal)

    @property
    def _laid_out_size(self) -> Size | None:
        """The size that the screen was laid out for: after a resize, that of the app is ahead of it."""
        return self._app.screen._compositor.size if self._app.screen_stack else None

    def _poll_terminal(self) -> None:
        """Check periodically whether the terminal has caught up."""
        self._check()
        if self._painting_paused:
            self._loop.call_later(POLL_SECONDS, self._poll_terminal)

    def _check(self) -> None:
        """Resume painting if the terminal has caught up."""
        if not self._painting_paused:
            return
        if self._can_query and self._probe.due(time.monotonic(), self.sent_bytes):
            self._query()  # probe the bytes sent since the last query
        if not self._is_full:
            self._resume_painting()

    def _resume_painting(self) -> None:
        self._painting_paused = False
        self._app._end_batch()
        if self._app._running and self._app.screen_stack:
            if self._laid_out_size != self._paused_size:
                self._app.screen.refresh()  # the batch dropped the repaint of the new layout
            self._app.screen.check_idle()

    def _check_soon(self) -> None:
        """Schedule a check after the terminal accepted output or answered. Callable from any thread."""
        if self._painting_paused:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._check)

    # ---- writing

    @property
    def _screen_file(self) -> TextIO:
        assert self._file is not None, "there is no standard error to paint on"
        return self._file

    def start_application_mode(self) -> None:
        self._screen_file.flush()
        self._output = OutputWriter(self._screen_file.fileno(), self._check_soon)
        self._output.start()
        self._can_query = True
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def write(self, data: str) -> None:
        assert self._output is not None, "the driver must be in application mode"
        short = self._shortener.shorten(data)
        self._output.write(short.encode(self._screen_file.encoding, "backslashreplace"))

    def _query_in_band_window_resize(self) -> None:
        self._query()

    def process_message(self, message: Message) -> None:
        if isinstance(message, InBandWindowResize):
            repeated = self._probe.answering
            answered = self._probe.record_answer(time.monotonic())
            self._answered.set()
            self._check_soon()
            if answered and repeated:
                return
        super().process_message(message)

    def close(self) -> None:
        super().close()
        if self._output is not None:
            self._output.stop()
            self._output = None
        if self._painting_paused:
            self._resume_painting()

    # ---- reading

    def disable_input(self) -> None:
        self._can_query = False
        if self._wake_fd is not None:
            if self._probe.open and self._probe.answering:
                self._answered.wait(LAST_ANSWER_SECONDS)
            os.write(self._wake_fd, b"!")
        super().disable_input()

    def run_input_thread(self) -> None:
        wake_read, self._wake_fd = os.pipe()
        try:
            self._read_keys(wake_read)
        finally:
            wake_write, self._wake_fd = self._wake_fd, None
            os.close(wake_write)
            os.close(wake_read)

    def _read_keys(self, wake_read: int) -> None:
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(wake_read, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = [key.fd for key, _ in selector.select(0.1)]  # interval to tell a lone Escape from a sequence
                if self.fileno in ready and (text := decode(os.read(self.fileno, 4096))):
                    for message in parser.feed(text):
                        self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)
        with suppress(EOFError, ParseError):
            list(parser.feed(""))
