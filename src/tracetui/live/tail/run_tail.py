"""Reads one run on and finds the changed spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.live.load import Reader
from tracetui.model import Outcome, Problem, Run, RunRef, RunSummary, Score, Status, TaskKey
from tracetui.sources.base import Entry, File, FileView, Folder, LinkLost, Source, Stat

ENDED: Final = frozenset({Status.OK, Status.ERROR, Status.CANCELLED})


class Ending(NamedTuple):
    """How a run ended and was evaluated."""

    status: Status
    outcome: Outcome | None
    scores: tuple[Score, ...]


class RunRecord(msgspec.Struct):
    """State kept for every run."""

    summary: RunSummary
    """As last seen, without the file's modification time, which is not reported."""
    reported: bool = False
    """False: it existed at the start and was not reported."""
    replay: str | None = None
    """Address of its original, if known."""
    task: TaskKey | None = None
    """Task of its original, if inherited."""
    ended: Ending | None = None
    """The end that was reported."""
    rewritten: bool = False
    """Its file was rewritten: it is read as a new run."""


def comparable(summary: RunSummary) -> RunSummary:
    """Return a summary without the fields that are not reported, for comparison."""
    return summary.replace(modified_at=0.0, size=None, unread=None, unfinished=False)


def equal_but_for_time(one: RunSummary, other: RunSummary) -> bool:
    """Whether two summaries are equal apart from the time since the last change."""
    return _without_time(one) == _without_time(other)


def _without_time(summary: RunSummary) -> RunSummary:
    status = Status.UNKNOWN if summary.seems_running else summary.status
    return summary.replace(modified_at=0.0, status=status, size=None, unread=None, unfinished=False)


class RunTail:
    """Reads one run on and determines which spans to report."""

    def __init__(self, source: Source, ref: RunRef) -> None:
        self._source = PrefixSource(source)
        self.ref = ref
        self.reader = Reader(self._source, ref)
        self._depths: dict[str, int] = {}
        """Reported depth of every span."""
        self._missing_parents: set[str] = set()
        """Parents that did not exist when a span was reported."""
        self._zone: str | None = None
        self._problems = 0
        """Number of problems already handled."""

    def read(self) -> None:
        """Read new data. Raises `LinkLost` if nothing could be read; try again."""
        self.reader.read()
        if self.reader.lost:
            raise LinkLost(self.reader.lost)

    def skip(self, size: int | None) -> Run | None:
        """Read a file, up to byte `size` if given, without reporting it; return None if that fails.

        Raises `LinkLost`.
        """
        self._source.size = size
        run = None
        self.reader.catch_up()
        if self.reader.failure is None:
            run = self.reader.build()
            self._take(run, range(len(run.spans)))
            self.problems(run)
        else:
            self.reader = Reader(self._source, self.ref)
        self._source.size = None
        return run

    def changed_spans(self, run: Run) -> list[int]:
        """Return the positions of the spans that the last read added, changed or moved."""
        if self.reader.reset:
            self._depths.clear()
            self._missing_parents.clear()
            self._problems = 0
        fresh = self.reader.fresh
        everything = bool(self._depths) and run.summary.time_zone != self._zone
        if everything:
            found = list(range(len(run.spans)))
        else:
            given = {run.index[one] for one in fresh if one in run.index}
            found = sorted(given | self._moved_spans(run, fresh))
        self._take(run, found)
        return found

    def _moved_spans(self, run: Run, fresh: list[str]) -> set[int]:
        """Return spans whose depth changed: their parent arrived, or moved."""
        if self._missing_parents.isdisjoint(fresh) and not any(
            self._has_moved(run, run.index.get(one)) for one in fresh
        ):
            return set()
        return {i for i in range(len(run.spans)) if self._has_moved(run, i)}

    def _has_moved(self, run: Run, position: int | None) -> bool:
        if position is None:
            return False
        depth = run.depths[position]
        return self._depths.get(run.spans[position].id, depth) != depth

    def _take(self, run: Run, positions: list[int] | range) -> None:
        self._zone = run.summary.time_zone
        for position in positions:
            span = run.spans[position]
            self._depths[span.id] = run.depths[position]
            if span.parent_id is not None and not run.depths[position]:
                self._missing_parents.add(span.parent_id)

    def problems(self, run: Run) -> list[Problem]:
        """Return new lasting problems of the run."""
        lasting = [problem for problem in run.problems[self._problems :] if not problem.may_pass]
        self._problems += len(lasting)
        return lasting

    def reset_problems(self) -> None:
        """Report all problems of this run again."""
        self._problems = 0


class PrefixSource:
    """Wraps `source` so that files end at byte `size`, unless None; see `tracetui.sources.base.Source`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size: int | None = None

    def walk(self, root: str) -> Iterator[Entry]:
        return self._source.walk(root)

    def list(self, path: str) -> Folder:
        return self._source.list(path)

    def prefetch(self, paths: Sequence[str]) -> None:
        self._source.prefetch(paths)

    def is_file(self, path: str) -> bool:
        return self._source.is_file(path)

    def is_folder(self, path: str) -> bool:
        return self._source.is_folder(path)

    def local_path(self, path: str) -> str | None:
        return self._source.local_path(path)

    def open(self, path: str, stat: Stat | None = None) -> File:
        file = self._source.open(path, stat)
        return file if self.size is None else _PrefixFile(file, self.size)


class _PrefixFile(FileView):
    """The first bytes of a file; see `tracetui.sources.base.File`."""

    __slots__ = ("_memo", "_size")

    def __init__(self, file: File, size: int) -> None:
        super().__init__(file)
        self._size = size
        self._memo: dict[str, Any] = {}

    @property
    def memo(self) -> dict[str, Any]:
        return self._memo

    @property
    def stat(self) -> Stat:
        found = self._file.stat
        return msgspec.structs.replace(found, size=min(found.size, self._size))

    @property
    def head(self) -> bytes:
        return self._file.head[: self._size]

    def read(self, offset: int, size: int) -> bytes:
        return self._file.read(offset, min(size, max(0, self._size - offset)))

    def read_all(self) -> bytes:
        return self.read(0, self._size)
