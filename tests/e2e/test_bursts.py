"""Keys that reach the program in one write, as a hand on two keys or a slow connection sends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import KEYS, TRACETUI, Terminal

pytestmark = pytest.mark.e2e
SCREENS = {
    "T": "runs failed",
    "P": "pick a filter",
    "?": "keys in Runs",
}
"""What opens a screen, a choice and a sheet from the list, and what that shows."""


def test_leaving_twice_in_one_write_leaves_the_screen_and_then_the_program(samples: Path) -> None:
    with Terminal(*TRACETUI, str(samples)) as terminal:
        terminal.expect("first failure")
        terminal.wait_quiet()
        for key in SCREENS:
            terminal.send(key)
            terminal.expect(SCREENS[key])
            terminal.send(KEYS["escape"] * 2)
            terminal.wait_for(SCREENS[key], gone=True)
            terminal.send(key + KEYS["escape"] + key)
            terminal.expect(SCREENS[key])
            terminal.send(KEYS["escape"] + key + KEYS["escape"])
            terminal.wait_for(SCREENS[key], gone=True)
        terminal.send("T")
        terminal.expect(SCREENS["T"])
        terminal.send("qq")
        assert terminal.wait_exit() == 0


def test_enter_twice_in_the_palette(samples: Path) -> None:
    with Terminal(*TRACETUI, str(samples)) as terminal:
        terminal.expect("first failure")
        for _ in range(2):
            terminal.send("ctrl+p", "triage")
            terminal.expect("Open triage")
            terminal.wait_quiet()
            terminal.send(KEYS["enter"] * 2)
            terminal.expect("runs failed")
            terminal.wait_quiet()
            terminal.send(KEYS["escape"])
            terminal.wait_for("runs failed", gone=True)
        assert terminal.process.poll() is None
