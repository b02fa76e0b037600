"""Sample data for ``tracetui demo`` and the tests: a directory of realistic runs in five formats, and repeated trials.

All data is invented, and a function of `now`. The package imitates the programs that write the formats and imports
nothing else of tracetui, so a reader and its samples can't share a bug.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tracetui.demo import trials
from tracetui.demo.files import put, touch

__all__ = ["SETS", "temporary", "write"]

NIGHT: Final = datetime(2025, 6, 3, 14, 30, tzinfo=UTC)
"""The moment at which the files in ``night/`` were written; their times are shifted from it."""
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)?")
"""A time in UTC; without a zone: local time."""


def write(folder: Path, now: datetime) -> None:
    """Write the samples to `folder` (created if missing), with the newest run ending just before `now`.

    They are the files in ``night/``, with each time shifted by whole seconds; ``ages.json`` there has their ages in
    seconds. A ``.sql`` file becomes the database that it creates. `now` must be timezone-aware; Penelope's naive times
    are in its zone. About 0.5 MB in 51 files. Raises `ValueError` if `now` is naive, `OSError` if a file can't be
    written.
    """
    if now.tzinfo is None:
        raise ValueError("now must be timezone-aware")
    now = now.replace(microsecond=0)
    templates = resources.files("tracetui.demo") / "night"
    for name, age in json.loads((templates / "ages.json").read_bytes()).items():
        text = _shift((templates / name).read_text("utf-8"), now)
        modified = now - timedelta(seconds=age)
        if name.endswith(".sql"):
            _write_database(folder / name.removesuffix(".sql"), text, modified)
        else:
            put(folder / name, text.encode(), modified)


def _shift(text: str, now: datetime) -> str:
    """Shift the times in `text` by the seconds from `NIGHT` to `now`; their fractions and zones stay as written."""

    def shifted(match: re.Match[str]) -> str:
        time = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) + (now - NIGHT)
        zone = UTC if match[3] else now.tzinfo
        return f"{time.astimezone(zone):%Y-%m-%dT%H:%M:%S}{match[2] or ''}{match[3] or ''}"

    return _TIME.sub(shifted, text)


def _write_database(path: Path, script: str, modified: datetime) -> None:
    """Write a SQLite database, closed with its journal merged as a clean exit leaves it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)
    touch(path, modified)


SETS: Final[Mapping[str, Callable[[Path, datetime], None]]] = {"night": write, "trials": trials.write}
"""Writers of the sets of samples: a night of runs, and many runs of the same tasks (`tracetui.demo.trials`)."""


@contextmanager
def temporary(now: datetime | None = None, name: str = "night") -> Iterator[Path]:
    """Context: a set of samples in a private directory, deleted at exit."""
    with TemporaryDirectory(prefix="tracetui-demo-") as place:
        folder = Path(place) / "traces"
        SETS[name](folder, now or datetime.now(UTC).astimezone())
        yield folder
