"""Read one run from its start, and on as it grows, into an immutable `Run`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import Chunk, Format
from tracetui.formats.base import Reader as FormatReader
from tracetui.formats.guard import problem_of
from tracetui.model import Body, Problem, Run, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.model.masked import masked_bodies, masked_body
from tracetui.redact import Redactor
from tracetui.sources.base import CACHE, SHARED, File, LinkLost, Source, Stat

GROWTH: Final = 1.5
"""A long run is rebuilt each time it has grown by this factor: all builds together cost a few full ones."""


class Reader:
    """Reads one run, and reads on as it grows. Threads may take turns: each piece is read by one of them.

    The attributes are those of the last read, whoever read.
    """

    def __init__(
        self,
        source: Source,
        ref: RunRef,
        *,
        redactor: Redactor | None = None,
        cache: dict[str, Any] | None = None,
    ) -> None:
        """`cache` is a dict shared by all runs of one file that are read in a row.

        Bodies are masked by `redactor` when they are loaded; without one they are exact.
        """
        self._lock = threading.RLock()
        self._source = source
        self._redactor = redactor
        self._format: Format = registry.load(ref.format)
        self._builder = RunBuilder(ref, self._body)
        self._masked: tuple[RunBody, RunBody] | None = None
        """The run's own body, and the same masked."""
        self._reader: FormatReader | None = None
        self._cache: dict[str, Any] = {} if cache is None else cache
        self._is_shared_cache = cache is not None
        self._file: tuple[float, bool] = (0.0, False)
        self._version: Stat | None = None
        """The stat of the last read, where asking for another takes a request to another machine."""
        self.ref = ref
        self.more = True
        """True while the source has unread data (data appended later does not count)."""
        self._has_rest = False
        """The last read that succeeded left data for later ones."""
        self.failure: Problem | None = None
        """Why the last read failed; None after a success. Earlier data stays."""
        self.lost = ""
        """Why the last read could not reach the source; the next read resumes."""
        self.fresh: list[str] = []
        """Ids of the spans that the last read added or changed."""
        self.reset = False
        """True if the last read started over: all earlier data is discarded."""
        self.revision = 0
        """Increases with each read that may have changed the run."""
        self.changed_at = 0.0
        """When it last changed, on the clock of `time.monotonic`."""

    def __len__(self) -> int:
        """Number of spans so far."""
        return len(self._builder)

    def read(self) -> bool:
        """Read new data for about 50 ms at most; return True if the run may have changed.

        May be called any number of times, also after a failure: it resumes after the last successful read.
        """
        with self._lock:
            changed = self._read()
            if changed:
                self.revision, self.changed_at = self.revision + 1, time.monotonic()
            return changed

    def _read(self) -> bool:
        before = self._file, self.more, self.failure
        self.lost = ""
        self.fresh, self.reset = [], False
        try:
            with self._source.open(self.ref.path) as file:
                file.memo[SHARED] = self._cache.setdefault(SHARED, {})
                if self._is_shared_cache:
                    file.memo[CACHE] = self._cache
                try:
                    if self._reader is None:
                        self._reader = guard.open_reader(self._format, file, self.ref)
                    chunk = guard.more(self._format, self._reader, file)
                finally:  # an unreadable file needs its modification time too
                    self._file = file.stat.mtime, file.moving
                    self._version = file.stat if self._source.local_path(self.ref.path) is None else None
            with guard.BOUNDARY:
                changed = self._add(chunk)
        except LinkLost as lost:  # not a fault of the file: earlier data stays
            self.lost = str(lost)
            return False
        except (OSError, FormatError) as error:  # one bad run must not end the program
            self.failure, self.more = problem_of(self.ref.path, error), False
            return before != (self._file, self.more, self.failure)
        self.failure = None
        self.more = self._has_rest = not chunk.done
        return changed or before != (self._file, self.more, self.failure)

    def _add(self, chunk: Chunk) -> bool:
        if chunk.reset:
            self._builder.reset()
        self.reset, self.fresh = chunk.reset, list(dict.fromkeys([span.id for span in chunk.spans]))
        changed = self._builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
        return changed or chunk.reset

    def pieces(self) -> Iterator[None]:
        """Read to the current end; yields after each `read`. Raises `LinkLost`."""
        while True:
            self.read()
            if self.lost:
                raise LinkLost(self.lost)
            yield
            if not self.more:
                return

    def catch_up(self) -> None:
        """Read to the current end. Raises `LinkLost`."""
        for _ in self.pieces():
            pass

    def build(self) -> Run:
        """Build the run from the part that was read. Costs only the new spans where those are at the end."""
        with self._lock:
            modified_at, moving = self._file
            run = self._builder.build(
                modified_at=modified_at,
                moving=moving,
                complete=not (self.more or self._has_rest),
                failure=self.failure,
                revision=self.revision,
            )
            if self._redactor is None:
                return run
            if self._masked is None or self._masked[0] is not run.body:
                self._masked = run.body, masked_body(run.body, self._redactor)
            return masked_bodies(run, self._redactor, self._masked[1])

    def summary(self) -> RunSummary:
        """Return the summary that `build` would give, for less."""
        with self._lock:
            modified_at, moving = self._file
            return self._builder.summary(modified_at=modified_at, moving=moving, failure=self.failure)

    def steps(self, rest: Callable[[], None]) -> Iterator[Run]:
        """Yield the run at growing intervals until the end of its source; first as it is if that was reached before.

        `rest` is called before each `read`.
        """
        built = 0
        while self.more or not built:
            if self.more:
                rest()
                self.read()
            if self.lost or not self.more or len(self._builder) >= built * GROWTH:
                yield self.build()
                built = max(1, len(self._builder))
            if self.lost:
                return

    def _body(self, span: Span) -> Body:
        """Load the body of one span; on failure, an empty body with the reason."""
        if (version := self._version) is not None:
            with suppress(OSError, FormatError), self._source.open(self.ref.path, version) as file:
                return self._body_in(file, span)
        try:
            with self._source.open(self.ref.path) as file:
                if version is not None:  # it was replaced
                    self._version = file.stat
                return self._body_in(file, span)
        except (OSError, FormatError) as error:  # as in `read`
            return _unread(self.ref, error)

    def _body_in(self, file: File, span: Span) -> Body:
        file.memo[CACHE] = self._cache
        return guard.body(self._format, file, self.ref, span)


def _load(fmt: Format, file: File, ref: RunRef, span: Span) -> Body:
    try:
        return guard.body(fmt, file, ref, span)
    except (OSError, FormatError) as error:  # as in `Reader.read`
        return _unread(ref, error)


def _unread(ref: RunRef, error: OSError | FormatError) -> Body:
    return Body(attributes={"problem": problem_of(ref.path, error).reason})


@contextmanager
def kept_open(source: Source, run: Run, cache: dict[str, Any] | None = None) -> Iterator[Run]:
    """The run, whose exact bodies are loaded from a file that stays open meanwhile; `cache` as in `Reader`."""
    ref = run.summary.ref
    with source.open(ref.path) as file:
        file.memo[CACHE] = {} if cache is None else cache
        yield replace(run, load=partial(_load, registry.load(ref.format), file, ref))


class FileCaches:
    """Format caches: of the file read last, and of neighboring files (`SHARED`)."""

    def __init__(self) -> None:
        self._path, self._cache = "", dict[str, Any]()
        self._neighbors: dict[str, Any] = {}

    def for_run(self, ref: RunRef) -> dict[str, Any]:
        """Return the cache of the run's file; the same dict for consecutive runs of one file."""
        if ref.path != self._path:
            self._path, self._cache = ref.path, {SHARED: self._neighbors}
        return self._cache


def read_run(source: Source, ref: RunRef, cache: dict[str, Any] | None = None) -> Run:
    """Read a whole run; `cache` as in `Reader`. Raises `LinkLost`."""
    reader = Reader(source, ref, cache=cache)
    reader.catch_up()
    return reader.build()
