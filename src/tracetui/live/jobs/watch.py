"""Follow several running runs, reading only the new data of each."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from tracetui.live.jobs.runner import Job, Step
from tracetui.live.load import Reader
from tracetui.model import Run, RunRef
from tracetui.sources.base import LinkLost, Source

MOST: Final = 24
"""Runs that are read on at once."""


class WatchedRuns:
    """The readers of some runs, which stay open from job to job. Jobs of one object must not overlap."""

    def __init__(self) -> None:
        self._readers: dict[RunRef, Reader] = {}

    def job(self, refs: Sequence[RunRef]) -> Job:
        """Return a job that reads these runs to their current end; `JobProgress.new` has each changed `Run`.

        The readers of other runs are dropped. At most `MOST` runs are read.
        """
        wanted = refs[:MOST]

        def work(source: Source) -> Generator[Step, None, None]:
            for ref in self._readers.keys() - {*wanted}:
                del self._readers[ref]
            for ref in wanted:
                reader = self._readers.get(ref)
                changed = reader is None
                if reader is None:
                    reader = self._readers[ref] = Reader(source, ref)
                changed |= reader.read()
                while reader.more and not reader.lost:
                    yield Step()
                    changed |= reader.read()
                if reader.lost:
                    raise LinkLost(reader.lost)
                new: tuple[Run, ...] = (reader.build(),) if changed else ()
                yield Step(new, done=1)

        return Job("watch", len(wanted), work)
