"""How much the program writes before anybody has typed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.shared import PATIENCE
from tests.terminal import TRACETUI, Terminal

pytestmark = pytest.mark.e2e
BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"
"""What is around a picture, for terminals that say that they know it."""
WATCHES = r"● live|polling"
IDLE_SECONDS = 2.5
"""Longer than from one tick of the program to the next."""


def test_the_app_opens_with_at_most_two_full_frames(samples: Path) -> None:
    with Terminal(*TRACETUI, str(samples), answers=True) as terminal:
        terminal.expect("first failure")
        terminal.wait_for(WATCHES)
        terminal.wait_quiet()
        opening = frames(terminal)
        terminal.resize(119, 40)
        terminal.wait_quiet()
        terminal.forget()
        terminal.resize(120, 40)
        terminal.wait_quiet()
        full = max(frames(terminal))
        assert len([size for size in opening if size > 0.8 * full]) <= 2


def frames(terminal: Terminal) -> list[int]:
    """The bytes of every picture that was painted, in the order in which they came."""
    return [len(part.partition(END)[0]) for part in terminal.output.split(BEGIN)[1:]]


def test_an_idle_program_writes_nothing(samples: Path) -> None:
    with Terminal(*TRACETUI, str(samples)) as terminal:
        terminal.expect("first failure")
        terminal.wait_for(WATCHES)
        end = time.perf_counter() + PATIENCE
        while terminal.read(IDLE_SECONDS):
            assert time.perf_counter() < end, "it never rests"
