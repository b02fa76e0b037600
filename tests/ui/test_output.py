"""The way out to the terminal: it never waits, it keeps the order, and it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from tests.shared import PATIENCE
from tracetui.ui.terminal.driver import OutputWriter


class Pipe:
    """An outlet into a pipe, which takes 64 KB that nobody reads."""

    def __init__(self) -> None:
        self.end, self.start = os.pipe()
        self.drained = threading.Event()
        self.outlet = OutputWriter(self.start, self.drained.set)
        self.outlet.start()

    def until_all_is_taken(self) -> None:
        """Wait until nothing waits any more: what was read is counted a moment later."""
        while self.outlet.pending_bytes:
            assert self.drained.wait(PATIENCE)
            self.drained.clear()

    def read(self, size: int) -> bytes:
        received = b""
        while len(received) < size and (data := os.read(self.end, size - len(received))):
            received += data
        return received


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.end)
    made.outlet.stop()
    os.close(made.start)


def test_everything_comes_in_order(pipe: Pipe) -> None:
    parts = [f"<{number}>".encode() * 50 for number in range(500)]
    for part in parts:
        pipe.outlet.write(part)
    whole = b"".join(parts)
    assert pipe.read(len(whole)) == whole
    pipe.until_all_is_taken()
    assert pipe.outlet.sent_bytes == len(whole)


def test_writing_never_blocks_and_pending_bytes_are_counted(pipe: Pipe) -> None:
    part = b"x" * 10_000
    for _ in range(100):  # if it waited, it would for ever
        pipe.outlet.write(part)
    assert 1_000_000 - 80_000 <= pipe.outlet.pending_bytes <= 1_000_000
    assert pipe.outlet.stuck_seconds > 0
    assert len(pipe.read(1_000_000)) == 1_000_000
    pipe.until_all_is_taken()
    assert pipe.outlet.stuck_seconds == 0


def test_once_the_terminal_is_gone_all_is_dropped() -> None:
    pipe = Pipe()
    os.close(pipe.end)
    pipe.outlet.write(b"x" * 100_000)
    assert pipe.drained.wait(PATIENCE)
    pipe.outlet.write(b"more")
    pipe.outlet.stop()
    assert pipe.outlet.pending_bytes == 0
    os.close(pipe.start)


def test_the_end_writes_the_rest(pipe: Pipe) -> None:
    pipe.outlet.write(b"y" * 60_000)
    pipe.outlet.stop()
    assert len(pipe.read(60_000)) == 60_000
    assert pipe.outlet.pending_bytes == 0


def test_closing_gives_up_on_a_stuck_terminal(pipe: Pipe) -> None:
    pipe.outlet.write(b"z" * 200_000)
    pipe.outlet.stop()  # if it did not give up, it would wait for ever
    assert pipe.outlet.pending_bytes > 0


def test_a_non_blocking_descriptor_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.start, False)
    pipe.outlet.write(b"n" * 300_000)
    assert len(pipe.read(300_000)) == 300_000
    assert pipe.drained.wait(PATIENCE)
