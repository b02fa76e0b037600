"""The Python interface: ``tracetui.load(path)`` gives the typed model of `tracetui.model`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tracetui.errors import NothingReadable, UsageError

if TYPE_CHECKING:
    from tracetui.model import Run


def load(path: str | os.PathLike[str], run: str | None = None) -> Run:
    """The run in the file `path`, read whole.

    `run` is its id where the file holds several. Raises `NothingReadable` if the file holds none, `UsageError` if it
    holds several and `run` does not name one of them. ``run.load(span)`` gives the body of a span.
    """
    runs = load_all(path)
    if not runs:
        raise NothingReadable(f"no run could be read in {os.fspath(path)}")
    if run is None and len(runs) == 1:
        return runs[0]
    named = [one for one in runs if run in (one.summary.id, one.summary.ref.key)]
    if len(named) != 1:
        known = ", ".join(one.summary.id for one in runs[:5])
        raise UsageError(f"{os.fspath(path)} holds {len(runs)} runs ({known} …): name one of them")
    return named[0]


def load_all(path: str | os.PathLike[str]) -> list[Run]:
    """Every run at `path` (a file or a directory), each read whole; what cannot be read is left out."""
    from tracetui.live.load import read_run
    from tracetui.live.scan import scan
    from tracetui.sources.local import LocalSource

    source = LocalSource()
    return [
        read_run(source, summary.ref) for found in scan(source, [os.fspath(path)], deep=False) for summary in found.runs
    ]
