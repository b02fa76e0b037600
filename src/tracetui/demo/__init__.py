"""Sample data for ``tracetui demo`` and the tests: a directory of realistic runs in five formats, and repeated trials.

All data is invented, and a function of `now`. The package imitates the programs that write the formats and imports
nothing else of tracetui, so a reader and its samples can't share a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tracetui.demo import ccpa, hypergraph, latticeflow, paprika, penelope, trials
from tracetui.demo.files import pretty, put, uid, zulu

__all__ = ["SETS", "temporary", "write"]

NOTES = """\
Nightly runs write here. Ask on #agents before deleting anything: the replays need their originals.
"""


def write(folder: Path, now: datetime) -> None:
    """Write the samples to `folder` (created if missing), with the newest run ending just before `now`.

    `now` must be timezone-aware; Penelope's naive times are in its zone. About 0.5 MB in 40 files.
    """
    if now.tzinfo is None:
        raise ValueError("now must be timezone-aware")
    for writer in (paprika, ccpa, hypergraph, penelope, latticeflow):
        writer.write(folder, now)
    _write_other_files(folder, now)


def _write_other_files(folder: Path, now: datetime) -> None:
    """Write other files found in real directories: a truncated trace (disk full), and two that aren't traces."""
    cut = now - timedelta(minutes=25)
    ident = uid("cut", "77aa31")
    record = {
        "schema_version": "1.0",
        "record_id": ident,
        "parent_record_id": None,
        "replay_of": None,
        "agent": {"name": "researcher", "version": "2.3.0"},
        "execution": {"started_at": zulu(cut), "ended_at": zulu(cut), "duration_ms": 4810.2, "status": "success"},
        "input": {"args": [], "kwargs": {"question": "Which EU states tax company cars by emissions?"}},
    }
    put(folder / "paprika" / f"{ident}.json", pretty(record)[:-96], cut)
    put(folder / "NOTES.txt", NOTES.encode(), now - timedelta(days=12))
    put(folder / "nightly.json", pretty({"cron": "0 2 * * *", "agents": ["researcher", "fixer"]}), now)


SETS: Final[Mapping[str, Callable[[Path, datetime], None]]] = {"night": write, "trials": trials.write}
"""Writers of the sets of samples: a night of runs, and many runs of the same tasks (`tracetui.demo.trials`)."""


@contextmanager
def temporary(now: datetime | None = None, name: str = "night") -> Iterator[Path]:
    """Context: a set of samples in a private directory, deleted at exit."""
    with TemporaryDirectory(prefix="tracetui-demo-") as place:
        folder = Path(place) / "traces"
        SETS[name](folder, now or datetime.now(UTC).astimezone())
        yield folder
