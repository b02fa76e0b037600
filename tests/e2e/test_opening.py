"""How much the program writes before anybody has typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import TRACETUI, Terminal

pytestmark = pytest.mark.e2e


def test_it_opens_with_at_most_two_whole_frames(samples: Path) -> None:
    with Terminal(*TRACETUI, str(samples)) as terminal:
        terminal.expect("first error")
        terminal.wait_quiet()
        opening = len(terminal.output)
        terminal.resize(119, 40)
        terminal.wait_quiet()
        before = len(terminal.output)
        terminal.resize(120, 40)
        terminal.wait_quiet()
        frame = len(terminal.output) - before
        assert opening < 2.5 * frame


def test_an_idle_program_writes_nothing(samples: Path) -> None:
    with Terminal(*TRACETUI, str(samples)) as terminal:
        terminal.expect("first error")
        terminal.wait_quiet(1.0)
        written = len(terminal.output)
        terminal.read(1.5)
        assert len(terminal.output) == written
