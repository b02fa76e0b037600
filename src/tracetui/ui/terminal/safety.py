"""Safety of the terminal: control-character filter, clipboard, signals and crash logs."""

from __future__ import annotations

import base64
import os
import re
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tracetui.text import Clean, exact

CLIPBOARD_LIMIT: Final = 74_000
"""Maximum bytes that terminals accept by OSC 52."""

ENDING_SIGNALS: Final = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
"""Signals that restore the terminal and exit."""
EXIT_TIMEOUT_SECONDS: Final = 2.5
"""Timeout of an orderly exit after a signal or a hang-up."""

_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


class ControlFilter(LineFilter):
    """Second line of defense: removes control characters and links that passed the text gate."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Clean the segments of one line."""
        if all(text.isprintable() and (style is None or not style.link) for text, style, _ in segments):
            return segments
        return [
            Segment(
                _UNSAFE.sub("\ufffd", text) if not text.isprintable() else text,
                style.update_link(None) if style is not None and style.link else style,
                control,
            )
            for text, style, control in segments
        ]


def clean_for_paste(text: str) -> str:
    """Clean foreign text for pasting anywhere, shells included; keeps line feeds and tabs."""
    return "\n".join("\t".join(exact(part) for part in line.rstrip("\r").split("\t")) for line in text.split("\n"))


def clipboard_sequence(text: str) -> str | None:
    """The OSC 52 sequence that puts `text` on the clipboard, wrapped for tmux; None if it is too long."""
    data = text.encode("utf-8", "replace")
    if len(data) > CLIPBOARD_LIMIT:
        return None
    return _through_tmux(f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07")


def notification(text: Clean) -> str:
    """Bell, and OSC 9 sequence for a desktop notification."""
    return "\x07" + _through_tmux(f"\x1b]9;{text.replace(';', ',')}\x07")


def _through_tmux(sequence: str) -> str:
    if not os.environ.get("TMUX"):
        return sequence
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def write_crash_log(error: BaseException, states: Sequence[str] = ()) -> str:
    """Write the traceback of an error and the screen states to a private file; returns its path.

    Omits variables and the text of the exception, which may contain trace content; `states` must have none.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    handle, path = tempfile.mkstemp(prefix="tracetui-crash-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(f"tracetui ended with {type(error).__name__}\n\n{frames}")
        log.writelines(f"\n{state}" for state in states)
    return path


@contextmanager
def forward_signals(end: Callable[[int], None]) -> Iterator[None]:
    """Call `end` with the number of every signal of `ENDING_SIGNALS`.

    Treats a hung-up terminal as SIGHUP, because not every process of a session receives that signal.
    """

    def handle(number: int, frame: FrameType | None = None) -> None:
        force_exit_later(128 + number)
        end(number)

    numbers = [getattr(signal, name) for name in ENDING_SIGNALS if hasattr(signal, name)]
    before = [(number, signal.signal(number, handle)) for number in numbers]
    if hasattr(select, "poll") and sys.__stdin__ is not None:
        threading.Thread(target=_wait_for_hangup, args=(sys.__stdin__.fileno(), handle), daemon=True).start()
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _wait_for_hangup(terminal: int, handle: Callable[[int], None]) -> None:
    poll = select.poll()
    poll.register(terminal, 0)
    if any(event & select.POLLHUP for _, event in poll.poll()):
        handle(signal.SIGHUP)


def force_exit_later(status: int) -> None:
    """Exit with `status` if the process still runs after `EXIT_TIMEOUT_SECONDS`.

    A write to a terminal that no longer reads (lost connection, hang-up) may block forever.
    """
    timer = threading.Timer(EXIT_TIMEOUT_SECONDS, os._exit, (status,))
    timer.daemon = True
    timer.start()


def discard_output() -> None:
    """Discard output that a lost terminal did not accept, so that Python's exit doesn't fail on it."""
    for stream in (stream for stream in (sys.__stdout__, sys.__stderr__) if stream is not None):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
