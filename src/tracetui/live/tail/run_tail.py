"""One run that is followed: what was told of it, and so what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from tracetui.live.load import Reader
from tracetui.model import Problem, Run, RunRef, RunSummary, Status
from tracetui.sources.base import Entry, File, Folder, LinkLost, Source, Stat, View

ENDED: Final = frozenset({Status.OK, Status.ERROR, Status.CANCELLED})


class Known(msgspec.Struct):
    """What is kept of every run for ever."""

    summary: RunSummary
    """As last seen; without its file's time, which is not told."""
    told: bool = False
    """False: it was there at the start, and nobody heard of it."""
    replay: str | None = None
    ended: Status | None = None
    """The end that was told."""
    rewritten: bool = False
    """Its file was rewritten: it is to be read as a new one."""


def plain(summary: RunSummary) -> RunSummary:
    """A summary to compare: what is not told of it left out."""
    return msgspec.structs.replace(summary, modified_at=0.0, size=None, unread=None, unfinished=False)


def same_but_for_time(one: RunSummary, other: RunSummary) -> bool:
    """Whether two summaries differ in nothing, or only in that the file has been still for a while now."""
    return _settled(one) == _settled(other)


def _settled(summary: RunSummary) -> RunSummary:
    status = Status.UNKNOWN if summary.seems_running else summary.status
    return msgspec.structs.replace(summary, modified_at=0.0, status=status, size=None, unread=None, unfinished=False)


class Track:
    """Reads one run on and says which of its spans are to be told."""

    def __init__(self, source: Source, ref: RunRef) -> None:
        self._prefix = Prefix(source)
        self.ref = ref
        self.reader = Reader(self._prefix, ref)
        self._depths: dict[str, int] = {}
        """Depth of every span, as told."""
        self._missing: set[str] = set()
        """Parents that were not there when a span was told."""
        self._zone: str | None = None
        self._problems = 0
        """How many problems of the run were looked at."""

    def read(self) -> None:
        """Read what came since. Raises `LinkLost`: nothing was, and it is to be tried again."""
        self.reader.read()
        if self.reader.lost:
            raise LinkLost(self.reader.lost)

    def skip(self, size: int | None) -> Run | None:
        """Read what is there without telling it, of a file up to byte `size`; None if that cannot be read.

        Raises `LinkLost`.
        """
        self._prefix.size = size
        run = None
        self.reader.catch_up()
        if self.reader.failure is None:
            run = self.reader.build()
            self._take(run, range(len(run.spans)))
            self.problems(run)
        else:
            self.reader = Reader(self._prefix, self.ref)
        self._prefix.size = None
        return run

    def news(self, run: Run) -> list[int]:
        """Positions of the spans that the last read brought, or moved."""
        if self.reader.reset:
            self._depths.clear()
            self._missing.clear()
            self._problems = 0
        fresh = self.reader.fresh
        everything = bool(self._depths) and run.summary.time_zone != self._zone
        if everything:
            found = list(range(len(run.spans)))
        else:
            given = {run.index[one] for one in fresh if one in run.index}
            found = sorted(given | self._moved(run, fresh))
        self._take(run, found)
        return found

    def _moved(self, run: Run, fresh: list[str]) -> set[int]:
        """Spans that stand elsewhere now: their parent came, or it went elsewhere itself."""
        if self._missing.isdisjoint(fresh) and not any(self._elsewhere(run, run.index.get(one)) for one in fresh):
            return set()
        return {i for i in range(len(run.spans)) if self._elsewhere(run, i)}

    def _elsewhere(self, run: Run, position: int | None) -> bool:
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
                self._missing.add(span.parent_id)

    def problems(self, run: Run) -> list[Problem]:
        """Problems of the run that were not looked at before; those that may pass not."""
        lasting = [problem for problem in run.problems[self._problems :] if not problem.may_pass]
        self._problems += len(lasting)
        return lasting

    def problems_again(self) -> None:
        """What was told of the file is forgotten: tell the problems of this run again."""
        self._problems = 0


class Prefix:
    """`source`, with files that end at byte `size` while that is not None; see `tracetui.sources.base.Source`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size: int | None = None

    def walk(self, root: str) -> Iterator[Entry]:
        return self._source.walk(root)

    def list(self, path: str) -> Folder:
        return self._source.list(path)

    def expect(self, paths: Sequence[str]) -> None:
        self._source.expect(paths)

    def is_file(self, path: str) -> bool:
        return self._source.is_file(path)

    def is_folder(self, path: str) -> bool:
        return self._source.is_folder(path)

    def local_path(self, path: str) -> str | None:
        return self._source.local_path(path)

    def open(self, path: str, stat: Stat | None = None) -> File:
        file = self._source.open(path, stat)
        return file if self.size is None else _Beginning(file, self.size)


class _Beginning(View):
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
