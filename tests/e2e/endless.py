"""Run the app on a directory whose scan never ends: ``python endless.py``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

from tracetui.live import lister
from tracetui.sources.base import Entry
from tracetui.ui.app import run_app


def entries(*args: object) -> Iterator[Entry]:
    """Some names, and then a file system that does not answer any more."""
    for number in range(30):
        yield Entry(f"/nowhere/{number}", skipped="not there")
    threading.Event().wait()


if __name__ == "__main__":
    setattr(lister, "entries", entries)  # noqa: B010
    sys.exit(run_app(["/nowhere"]))
