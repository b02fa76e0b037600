"""What stands between the program and the terminal: a last filter, the clipboard, signals, and the log of a crash."""

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

from tracetui.text import Clean, clean

CLIPBOARD_LIMIT: Final = 74_000
"""Bytes that terminals take by OSC 52 without dropping the sequence."""

ENDING_SIGNALS: Final = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
"""Signals after which the terminal is put back and the program ends."""
PATIENCE_SECONDS: Final = 2.5
"""How long an orderly end may take once the terminal or a signal asked for it."""

_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


class ControlFilter(LineFilter):
    """The second wall: whatever reached a screen without passing the gate loses its control characters and links."""

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
    """Foreign text that may be pasted anywhere, a shell included: only line feeds and tabs are left of its controls."""
    return "\n".join("\t".join(clean(part) for part in line.rstrip("\r").split("\t")) for line in text.split("\n"))


def clipboard_sequence(text: str) -> str | None:
    """The OSC 52 sequence that puts `text` on the clipboard, wrapped for tmux; None if it is too long."""
    data = text.encode("utf-8", "replace")
    if len(data) > CLIPBOARD_LIMIT:
        return None
    return _through_tmux(f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07")


def notification(words: Clean) -> str:
    """The bell, and the sequence (OSC 9) by which many terminals show a desktop notification with these words."""
    return "\x07" + _through_tmux(f"\x1b]9;{words.replace(';', ',')}\x07")


def _through_tmux(sequence: str) -> str:
    if not os.environ.get("TMUX"):
        return sequence
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def write_crash_log(error: BaseException, states: Sequence[str] = ()) -> str:
    """Write where an error happened and the states of the screens into a private file; returns its path.

    Values of variables and the text of the exception may hold trace content, and stay out; `states` must have none.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    handle, path = tempfile.mkstemp(prefix="tracetui-crash-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(f"tracetui ended with {type(error).__name__}\n\n{frames}")
        log.writelines(f"\n{state}" for state in states)
    return path


@contextmanager
def forward_signals(end: Callable[[int], None]) -> Iterator[None]:
    """Hand the number of every signal that ends a program to `end`, also while it waits for something.

    A terminal that hangs up counts as SIGHUP, which not every process of a session is sent.
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
    """End the process with `status` if it is still there after `PATIENCE_SECONDS`.

    Whoever writes to a terminal that reads nothing any more (a lost connection, a hang-up) waits for ever.
    """
    timer = threading.Timer(PATIENCE_SECONDS, os._exit, (status,))
    timer.daemon = True
    timer.start()


def discard_output() -> None:
    """Drop what a terminal that is gone did not take, lest Python fail over it as it ends."""
    for stream in (stream for stream in (sys.__stdout__, sys.__stderr__) if stream is not None):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
