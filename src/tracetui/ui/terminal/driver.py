"""Textual's Unix driver, made non-blocking for input and output.

Textual's own driver polls for the end of its input, which delays exit by 0.2 s, and its writer queues 30 writes: with a
slow terminal, the 31st blocks the program.

This driver buffers the output, and pauses painting while more than `PAUSE_BYTES` are pending. When the terminal has
caught up, it paints the current state once: a slow line shows fewer frames, none of them stale.

A hung-up terminal is reported by a signal or by the end of input; pending output is dropped. A terminal that stops
reading (dead TCP connection, ctrl+s) looks like a very slow one: painting pauses with at most one frame in the buffer,
and exit waits `GIVE_UP_SECONDS` for it, then restores the terminal's modes.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import Any, Final, TextIO

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import InBandWindowResize

from tracetui.ui.terminal.output import OutputWriter, Shortener
from tracetui.ui.terminal.throttle import LagProbe

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
            self._paused_size = self._app.size
            self._app._begin_batch()
            self._loop.call_later(POLL_SECONDS, self._poll_terminal)

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
            if self._app.size != self._paused_size:
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
