"""Run the app with a bug that holds a secret in its text and its locals: ``python crashing.py PLACE DIR``."""

from __future__ import annotations

import sys
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from tracetui.live import deep_reader
from tracetui.ui.app import TraceApp, run_app
from tracetui.ui.screens import main
from tracetui.ui.widgets.frame import footer
from tracetui.ui.widgets.line_view import LineView

SECRET = "SECRET \x1b]0;SECRET\x07 [/]"


def bug(*args: Any, **kwargs: Any) -> Any:
    """Fail, with a secret in every place from which a traceback could take it."""
    local = SECRET
    raise ValueError(local)


PLACES = {
    "compose": lambda: setattr(main.MainScreen, "compose", bug),
    "mount": lambda: setattr(TraceApp, "on_mount", bug),
    "key": lambda: setattr(main.MainScreen, "perform", bug),
    "paint": lambda: setattr(LineView, "strip_at", bug),
    "frame": lambda: setattr(main, footer.__name__, bug),
    "timer": lambda: setattr(TraceApp, "finish_opening", bug),
    "thread": lambda: setattr(deep_reader.DeepReader, "look", bug),
    "end": lambda: setattr(LinuxDriver, "stop_application_mode", _bug_at_the_end),
}

_stop = LinuxDriver.stop_application_mode


def _bug_at_the_end(self: LinuxDriver) -> None:
    _stop(self)
    bug()


if __name__ == "__main__":
    PLACES[sys.argv[1]]()
    sys.exit(run_app(sys.argv[2:]))
