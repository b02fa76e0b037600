"""Textual's driver for Unix, except that the thread that reads keys ends when it is told to.

Textual's own looks up each tenth of a second, and then waits for one more: leaving the program took 0.2 s.
"""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import Any

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver


class QuickDriver(LinuxDriver):
    """Reads keys until a byte comes through a pipe."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bell: int | None = None
        """The end of the pipe to write to, while the thread runs."""

    def disable_input(self) -> None:
        if self._bell is not None:
            os.write(self._bell, b"!")
        super().disable_input()

    def run_input_thread(self) -> None:
        ear, self._bell = os.pipe()
        try:
            self._read_keys(ear)
        finally:
            bell, self._bell = self._bell, None
            os.close(bell)
            os.close(ear)

    def _read_keys(self, ear: int) -> None:
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(ear, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = [key.fd for key, _ in selector.select(0.1)]  # so often a lone Escape is told from a sequence
                if self.fileno in ready and (text := decode(os.read(self.fileno, 4096))):
                    for message in parser.feed(text):
                        self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)
        with suppress(EOFError, ParseError):
            list(parser.feed(""))
