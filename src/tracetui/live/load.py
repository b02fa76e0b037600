"""Open one run: read it from its start (and on, as it grows) into an immutable `Run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import Chunk, Format
from tracetui.formats.base import Reader as FormatReader
from tracetui.formats.guard import problem_of
from tracetui.model import Body, Problem, Run, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.model.masked import masked_bodies, masked_run_body
from tracetui.redact import Redactor
from tracetui.sources.base import KEPT, SHARED, LinkLost, Source

GROWTH: Final = 1.5
"""A long run is built anew each time it has grown by so much: all builds together cost a few whole ones."""


class Reader:
    """Reads one run, and reads on for as long as anybody wants to follow it. Used by one thread at a time."""

    def __init__(
        self,
        source: Source,
        ref: RunRef,
        *,
        redactor: Redactor | None = None,
        kept: dict[str, Any] | None = None,
    ) -> None:
        """`kept` is a dict that all runs of one file share that are read one after the other.

        Bodies are masked by `redactor` when they are loaded; without one they are exact.
        """
        self._source = source
        self._redactor = redactor
        self._format: Format = registry.load(ref.format)
        self._builder = RunBuilder(ref, self._body)
        self._masked: tuple[RunBody, RunBody] | None = None
        """What the trace says about the run as a whole, and the same masked."""
        self._reader: FormatReader | None = None
        self._kept: dict[str, Any] = {} if kept is None else kept
        self._shares = kept is not None
        self._file: tuple[float, bool] = (0.0, False)
        self.ref = ref
        self.more = True
        """True while the source holds more than was read (what a writer adds later does not count)."""
        self.failure: Problem | None = None
        """Why the last read failed; None as soon as one succeeds. What was read before stays."""
        self.lost = ""
        """Why the last read could not reach the source; reading goes on where it stopped once it can."""
        self.fresh: list[str] = []
        """Ids of the spans that the last read gave: they are new, or something about them is."""
        self.reset = False
        """True if the last read began anew: what was known before it is forgotten."""

    def __len__(self) -> int:
        """How many spans are known."""
        return len(self._builder)

    def read(self) -> bool:
        """Read what came since the last call, at most about 50 ms worth; True if the run may differ from before.

        May be called for ever, also after a failure: it goes on where the last read that succeeded stopped.
        """
        before = self._file, self.more, self.failure
        self.lost = ""
        self.fresh, self.reset = [], False
        try:
            with self._source.open(self.ref.path) as file:
                file.memo[SHARED] = self._kept.setdefault(SHARED, {})
                if self._shares:
                    file.memo[KEPT] = self._kept
                try:
                    if self._reader is None:
                        self._reader = guard.open_reader(self._format, file, self.ref)
                    chunk = guard.more(self._format, self._reader, file)
                finally:  # also of a file that cannot be read it is to be known whether somebody writes to it
                    self._file = file.stat.mtime, file.moving
            with guard.BOUNDARY:
                changed = self._take(chunk)
        except LinkLost as lost:  # says nothing about the file: what was read stays
            self.lost = str(lost)
            return False
        except (OSError, FormatError) as error:  # one bad run must not end the program
            self.failure, self.more = problem_of(self.ref.path, error), False
            return before != (self._file, self.more, self.failure)
        self.failure = None
        self.more = not chunk.done
        return changed or before != (self._file, self.more, self.failure)

    def _take(self, chunk: Chunk) -> bool:
        if chunk.reset:
            self._builder.reset()
        self.reset, self.fresh = chunk.reset, list(dict.fromkeys(span.id for span in chunk.spans))
        changed = self._builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
        return changed or chunk.reset

    def catch_up(self) -> None:
        """Read everything that is there. Raises `LinkLost`."""
        self.read()
        while self.more and not self.lost:
            self.read()
        if self.lost:
            raise LinkLost(self.lost)

    def build(self) -> Run:
        """The run as far as it was read. Costs what is new since the last build, where that is at the end."""
        modified_at, moving = self._file
        run = self._builder.build(modified_at=modified_at, moving=moving, complete=not self.more, failure=self.failure)
        if self._redactor is None:
            return run
        if self._masked is None or self._masked[0] is not run.body:
            self._masked = run.body, masked_run_body(run.body, self._redactor)
        return masked_bodies(run, self._redactor, self._masked[1])

    def summary(self) -> RunSummary:
        """The summary that `build` would give, for less."""
        modified_at, moving = self._file
        return self._builder.summary(modified_at=modified_at, moving=moving, failure=self.failure)

    def steps(self) -> Iterator[Run]:
        """The run as it becomes known, at growing intervals, until the end of its source."""
        built = 0
        while self.more:
            self.read()
            if self.lost or not self.more or len(self._builder) >= built * GROWTH:
                yield self.build()
                built = max(1, len(self._builder))
            if self.lost:
                return

    def _body(self, span: Span) -> Body:
        """The body of one span; what cannot be read is an empty body that says so."""
        try:
            with self._source.open(self.ref.path) as file:
                file.memo[KEPT] = self._kept
                return guard.body(self._format, file, self.ref, span)
        except (OSError, FormatError) as error:  # as in read()
            return Body(attributes={"problem": problem_of(self.ref.path, error).reason})


class Shared:
    """What formats keep of the file that was read last, and of neighboring files of all that were read (`SHARED`)."""

    def __init__(self) -> None:
        self._path, self._kept = "", dict[str, Any]()
        self._neighbors: dict[str, Any] = {}

    def of(self, ref: RunRef) -> dict[str, Any]:
        """A dict that is the same as long as the runs are of one file."""
        if ref.path != self._path:
            self._path, self._kept = ref.path, {SHARED: self._neighbors}
        return self._kept


def read_run(source: Source, ref: RunRef, kept: dict[str, Any] | None = None) -> Run:
    """The whole run; `kept` as in `Reader`. Raises `LinkLost`."""
    reader = Reader(source, ref, kept=kept)
    reader.catch_up()
    return reader.build()
