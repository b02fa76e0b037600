"""Built-in sample data: a directory of realistic runs in all five formats, for ``tracetui demo`` and for the tests.

Everything here is invented. The same `now` gives the same files. This package knows formats by name because it plays
the programs that write them; it imports nothing else of tracetui, so that a reader and its samples never share a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tracetui.demo import ccpa, hypergraph, latticeflow, paprika, penelope, strays

__all__ = ["temporary", "write"]


def write(folder: Path, now: datetime) -> None:
    """Write the samples below `folder` (made if missing), as if the last of them had ended just before `now`.

    `now` must know its time zone; Penelope's naive times are written in that zone. About 0.5 MB in 40 files.
    """
    if now.tzinfo is None:
        raise ValueError("now must know its time zone")
    for writer in (paprika, ccpa, hypergraph, penelope, latticeflow, strays):
        writer.write(folder, now)


@contextmanager
def temporary(now: datetime | None = None) -> Iterator[Path]:
    """The samples in a private folder, which is removed at the end."""
    with TemporaryDirectory(prefix="tracetui-demo-") as name:
        folder = Path(name) / "traces"
        write(folder, now or datetime.now(UTC).astimezone())
        yield folder
