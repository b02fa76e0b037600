"""Open one run: read it from its start (and on, as it grows) into an immutable `Run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tracetui.errors import FormatError
from tracetui.formats import registry
from tracetui.formats.base import START, Format
from tracetui.model import Body, Problem, Run, RunRef, Span
from tracetui.model.build import RunBuilder
from tracetui.sources.base import Source

GROWTH: Final = 1.5
"""A long run is built anew each time it has grown by so much: all builds together cost a few whole ones."""


class Reader:
    """Reads one run; `steps` reads on and gives the run as known so far. Used by one thread at a time."""

    def __init__(self, source: Source, ref: RunRef) -> None:
        self._source = source
        self._format: Format = registry.load(ref.format)
        self._builder = RunBuilder(ref, self._body)
        self._cursor = START
        self._file: tuple[float, bool] = (0.0, False)
        self.ref = ref
        self.more = True
        """True while the source holds more than was read (what a writer adds later does not count)."""

    def read(self) -> None:
        """Read at most about 50 ms worth. What cannot be read becomes a problem of the run."""
        try:
            with self._source.open(self.ref.path) as file:
                chunk = self._format.read(file, self.ref, self._cursor)
                self._file = file.stat.mtime, file.moving
        except Exception as error:  # a format may be a plug-in: one bad run must not end the program
            self._builder.add((), problems=[problem_of(self.ref.path, error)])
            self.more = False
            return
        if chunk.reset:
            self._builder.reset()
        self._builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
        self._cursor, self.more = chunk.cursor, not chunk.done

    def build(self) -> Run:
        """The run as far as it was read."""
        modified_at, moving = self._file
        return self._builder.build(modified_at=modified_at, moving=moving, complete=not self.more)

    def steps(self) -> Iterator[Run]:
        """The run as it becomes known, at growing intervals, until the end of its source."""
        built = 0
        while self.more:
            self.read()
            if not self.more or len(self._builder) >= built * GROWTH:
                yield self.build()
                built = max(1, len(self._builder))

    def _body(self, span: Span) -> Body:
        """The body of one span; what cannot be read is an empty body that says so."""
        try:
            with self._source.open(self.ref.path) as file:
                return self._format.body(file, self.ref, span)
        except Exception as error:  # as in read()
            return Body(attributes={"problem": problem_of(self.ref.path, error).reason})


def read_run(source: Source, ref: RunRef) -> Run:
    """The whole run."""
    reader = Reader(source, ref)
    while reader.more:
        reader.read()
    return reader.build()


def problem_of(path: str, error: Exception) -> Problem:
    """An exception from reading, as a value."""
    if isinstance(error, FormatError):
        return Problem(path, error.where, error.reason)
    if isinstance(error, OSError):
        return Problem(path, "", error.strerror or str(error) or type(error).__name__)
    return Problem(path, "", f"{type(error).__name__}: {error}")
