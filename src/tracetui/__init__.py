"""tracetui: a directory of AI-agent traces, in the terminal and as data.

>>> import tracetui
>>> run = tracetui.load("traces/0690e0f0.json")      # doctest: +SKIP
>>> run.summary.status, run.spans[0].name             # doctest: +SKIP
>>> run.load(run.spans[0]).input                      # doctest: +SKIP
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # not imported: see __main__.py
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracetui.model import Run, RunSummary
    from tracetui.sources.base import Source

__all__ = ["__version__", "load", "load_all"]

__version__ = "0.1.0"


def load(path: str | os.PathLike[str], run: str | None = None) -> Run:
    """Read the run in the file `path`.

    `run` selects one by id if the file contains several. Raises `NothingReadable` if the file contains none,
    `UsageError` if it contains several and `run` matches none. ``run.load(span)`` returns the body of a span.
    """
    from tracetui.errors import NothingReadable, UsageError
    from tracetui.live.load import read_run
    from tracetui.sources.local import LocalSource

    source = LocalSource()
    runs = list(_runs_at(source, path))
    if not runs:
        raise NothingReadable(f"no run could be read in {os.fspath(path)}")
    selected = [summary for summary in runs if run in (summary.id, summary.ref.key)]
    if run is None and len(runs) == 1:
        selected = runs
    if len(selected) != 1:
        ids = ", ".join(summary.id for summary in runs[:5])
        raise UsageError(f"{os.fspath(path)} contains {len(runs)} runs ({ids} …); pass the id of one as `run`")
    return read_run(source, selected[0].ref)


def load_all(path: str | os.PathLike[str]) -> list[Run]:
    """Read every run at `path` (a file or a directory); unreadable files are skipped."""
    from tracetui.live.load import read_run
    from tracetui.sources.local import LocalSource

    source = LocalSource()
    return [read_run(source, summary.ref) for summary in _runs_at(source, path)]


def _runs_at(source: Source, path: str | os.PathLike[str]) -> Iterator[RunSummary]:
    from tracetui.live.scan import scan

    for scanned in scan(source, [os.fspath(path)], deep=False):
        yield from scanned.runs
