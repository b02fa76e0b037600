"""How many of our functions a key passes on its way to the rows that it changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tracetui
from tests.ui.conftest import Opener, settle
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.widgets.line_view import LineView

OURS = str(Path(tracetui.__file__).parent)
MOST = 8
"""From the screen, which gets the key, to the call that changes rows, both included."""
MOST_OF_A_FILTER = 9
"""From the message of the prompt, which takes up to three more."""


def chain(frame: FrameType | None) -> list[str]:
    """The functions of ours that are being called, the last one first, up to that of the screen."""
    names: list[str] = []
    while frame is not None and names[-1:] != [BaseScreen.press.__qualname__]:
        if frame.f_code.co_filename.startswith(OURS):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names


@pytest.mark.parametrize(
    ("before", "key", "pane", "change", "most"),
    [
        ("", "b", "runs", "show", MOST),
        ("", "comma", "runs", "show", MOST),
        ("", "space", "runs", "redraw_rows", MOST),
        ("", "enter", "steps", "show", MOST),
        ("", "j", "runs", "repaint_row", MOST),
        ("f", "e", "runs", "show", MOST_OF_A_FILTER),
    ],
)
async def test_a_key_passes_few_functions(
    before: str,
    key: str,
    pane: str,
    change: str,
    most: int,
    opened: Opener,
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chains: list[list[str]] = []
    original: Callable[..., None] = getattr(LineView, change)

    def note(self: LineView, *args: Any, **options: Any) -> None:
        if self.id == pane:
            chains.append([change, *chain(sys._getframe(1))])
        original(self, *args, **options)

    async with opened(samples, size=(160, 45)) as (_, pilot):
        if before:
            await pilot.press(before)
            await settle(pilot)
        monkeypatch.setattr(LineView, change, note)
        await pilot.press(key)
        assert chains
        assert len(chains[0]) <= most, chains[0]
