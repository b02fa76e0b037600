"""How the task matrix looks: pictures in ``snapshots/``, approved with ``python3 dev.py snapshots``."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import press, until
from tests.ui.test_snapshots import Looks, looks
from tests.ui.test_tasks import write_set
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.tasks import TasksScreen

__all__ = ["looks"]

AIRLINE = {
    "airline-26": "1010", "airline-30": "0101", "airline-44": "1010", "airline-02": "0010", "airline-34": "1101",
    "airline-00": "0000", "airline-12": "1111", "airline-08": "00E0", "airline-20": "1?11", "airline-48": "1",
}  # fmt: skip


async def right(pilot: Pilot[int]) -> None:
    """Go to the third trial of the second task."""
    await until(pilot, lambda: isinstance(pilot.app.screen, TasksScreen), what="the matrix")
    await press(pilot, "j", "l", "l")
    assert isinstance(pilot.app, TraceApp)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_tasks(looks: Looks, tmp_path: Path, size: tuple[int, int]) -> None:
    assert looks("M", root=str(write_set(tmp_path, AIRLINE)), size=size, drive=right)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_tasks_of_two_models(looks: Looks, tmp_path: Path, size: tuple[int, int]) -> None:
    write_set(tmp_path, AIRLINE, "elm-1")
    write_set(tmp_path, {task: marks[::-1].replace("0", "1", 1) for task, marks in AIRLINE.items()}, "oak-2-20260101")
    assert looks("M", root=str(tmp_path), size=size, drive=right)


def test_tasks_in_ascii_without_colors(looks: Looks, tmp_path: Path) -> None:
    root = str(write_set(tmp_path, AIRLINE))
    assert looks("M", root=root, size=(80, 24), palette="ansi", ascii_glyphs=True, drive=right)


def test_tasks_light(looks: Looks, tmp_path: Path) -> None:
    assert looks("M", root=str(write_set(tmp_path, AIRLINE)), palette="light", drive=right)
