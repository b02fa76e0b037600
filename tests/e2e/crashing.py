"""Run the app with a bug that holds a secret in its text and its locals: ``python crashing.py PLACE DIR``."""

from __future__ import annotations

import sys
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from tracetui.live import deep_reader
from tracetui.ui.app import TraceApp, run_app
from tracetui.ui.screens import base
from tracetui.ui.screens.main import MainScreen
from tracetui.ui.widgets.line_view import LineView

SECRET = "SECRET \x1b]0;SECRET\x07 [/]"


def bug(*args: Any, **kwargs: Any) -> Any:
    """Fail, with a secret in every place from which a traceback could take it."""
    local = SECRET
    raise ValueError(local)


PLACES: dict[str, tuple[Any, str]] = {
    "compose": (MainScreen, "compose"),
    "mount": (TraceApp, "on_mount"),
    "key": (MainScreen, "perform"),
    "paint": (LineView, "strip_at"),
    "frame": (base, "footer"),
    "timer": (TraceApp, "finish_opening"),
    "thread": (deep_reader.DeepReader, "look"),
    "end": (LinuxDriver, "stop_application_mode"),
}

_stop = LinuxDriver.stop_application_mode


def _bug_at_the_end(self: LinuxDriver) -> None:
    _stop(self)
    bug()


if __name__ == "__main__":
    owner, name = PLACES[sys.argv[1]]
    assert hasattr(owner, name), f"nothing calls {name} of {owner}: the bug would not be met"
    setattr(owner, name, _bug_at_the_end if sys.argv[1] == "end" else bug)
    sys.exit(run_app(sys.argv[2:]))
