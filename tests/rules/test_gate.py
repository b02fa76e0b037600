"""What we rely on in Textual beyond its documentation: an upgrade that changes it fails here, and not at a user's.

That each of them does what it is for is tested where it shows: crashes and exits in tests/e2e, the second wall in
tests/ui/test_hostile.py, markup in tests/rules/test_hygiene.py.
"""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import Monochrome
from textual.pilot import Pilot
from textual.screen import Screen

from tracetui.live.engine import Engine
from tracetui.sources.local import LocalSource
from tracetui.ui.app import TraceApp
from tracetui.ui.terminal.safety import ControlFilter


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("_handle_exception", ["self", "error"]),
        ("_fatal_error", ["self"]),
        ("panic", ["self", "renderables"]),
        ("_display", ["self", "screen", "renderable"]),
        ("get_line_filters", ["self"]),
        ("get_default_screen", ["self"]),
        ("_close_messages_no_wait", ["self"]),
        ("action_command_palette", ["self"]),
    ],
)
def test_the_hooks_that_we_override_or_call_are_there(method: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(App, method)).parameters) == parameters


def test_every_failure_goes_through_the_hooks() -> None:
    """Textual prints an exception with the values of its variables only in these two."""
    printing = [name for name, value in vars(App).items() if callable(value) and _shows_values(value)]
    assert printing == ["_fatal_error"]
    assert ".panic," in inspect.getsource(LinuxDriver._run_input_thread)


def _shows_values(function: object) -> bool:
    return inspect.isfunction(function) and "show_locals" in inspect.getsource(function)


def _app(folder: Path) -> TraceApp:
    return TraceApp(Engine(LocalSource(), [str(folder)]), [str(folder)])


def test_the_attributes_that_we_set_are_textuals_own(tmp_path: Path) -> None:
    plain, ours = App[None](), _app(tmp_path)
    for name, before, after in (
        ("_disable_tooltips", False, True),
        ("_disable_notifications", False, True),
        ("_return_code", None, None),
        ("_exception", None, None),
        ("_exit", False, False),
        ("_loop", None, None),
        ("_driver", None, None),
    ):
        assert getattr(plain, name) is before, name
        assert getattr(ours, name) is after, name


def test_no_rack_of_tooltips_or_notifications_is_mounted(tmp_path: Path) -> None:
    app = _app(tmp_path)
    racks: list[str] = []

    async def look(pilot: Pilot[object]) -> None:
        racks.extend(type(node).__name__ for node in app.screen.walk_children())
        app.exit()

    app.run(headless=True, auto_pilot=look)
    assert "LineBar" in racks
    assert not {"Tooltip", "ToastRack"} & set(racks)
    assert "_disable_tooltips" in inspect.getsource(Screen)


def test_no_color_leaves_no_filter_that_paints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    filters = _app(tmp_path).get_line_filters()
    assert not any(isinstance(line_filter, Monochrome) for line_filter in filters)
    assert isinstance(filters[-1], ControlFilter)
