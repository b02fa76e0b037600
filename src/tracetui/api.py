"""The Python interface: ``tracetui.load(path)`` gives the typed model of `tracetui.model`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracetui.errors import NothingReadable, UsageError

if TYPE_CHECKING:
    from tracetui.model import Run, RunSummary
    from tracetui.sources.base import Source


def load(path: str | os.PathLike[str], run: str | None = None) -> Run:
    """The run in the file `path`, read whole.

    `run` is its id where the file holds several. Raises `NothingReadable` if the file holds none, `UsageError` if it
    holds several and `run` does not name one of them. ``run.load(span)`` gives the body of a span.
    """
    from tracetui.live.load import read_run
    from tracetui.sources.local import LocalSource

    source = LocalSource()
    runs = list(_runs_at(source, path))
    if not runs:
        raise NothingReadable(f"no run could be read in {os.fspath(path)}")
    named = [one for one in runs if run in (one.id, one.ref.key)]
    if run is None and len(runs) == 1:
        named = runs
    if len(named) != 1:
        known = ", ".join(one.id for one in runs[:5])
        raise UsageError(f"{os.fspath(path)} holds {len(runs)} runs ({known} …): name one of them")
    return read_run(source, named[0].ref)


def load_all(path: str | os.PathLike[str]) -> list[Run]:
    """Every run at `path` (a file or a directory), each read whole; what cannot be read is left out."""
    from tracetui.live.load import read_run
    from tracetui.sources.local import LocalSource

    source = LocalSource()
    return [read_run(source, summary.ref) for summary in _runs_at(source, path)]


def _runs_at(source: Source, path: str | os.PathLike[str]) -> Iterator[RunSummary]:
    from tracetui.live.scan import scan

    for found in scan(source, [os.fspath(path)], deep=False):
        yield from found.runs
