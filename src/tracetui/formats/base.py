"""The interface of a format: four methods.

``sniff``      does this file look like mine?
``summarize``  the runs in it, from as few bytes as possible (``deep=False``) or with everything counted (``deep=True``)
``open``       a reader of one run: each `Reader.more` returns new spans (loading is tailing from the start)
``body``       everything recorded about one span, for its detail view

A format only translates. It computes no depth, order, totals or display text and starts no thread. The format itself
has no state; a reader has the state of its run. docs/writing-a-format.md shows how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Final, Protocol, TypeGuard, runtime_checkable

import msgspec

from tracetui.model import Body, Header, Problem, Run, RunBody, RunRef, RunSummary, Span
from tracetui.model.context import ContextFacts
from tracetui.sources.base import File

CERTAIN: Final = 100
NO: Final = 0


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one `Reader.more`.

    Span ids are unique within a run: a span with an id seen before replaces the earlier one. A reader
    repeats a span whenever anything about it, its body included, has changed. `header` and `body` are complete and
    replace earlier ones.
    """

    spans: Sequence[Span] = ()
    header: Header | None = None
    body: RunBody | None = None
    problems: Sequence[Problem] = ()
    reset: bool = False
    """The file was rewritten: discard everything read before; this chunk starts again."""
    done: bool = True
    """False: there is more to read; call again."""


@runtime_checkable
class Reader(Protocol):
    """Reads one run and follows it as its file grows. Used by one thread at a time."""

    def more(self, file: File) -> Chunk:
        """Everything of the run that is new since the last call, at most about 50 ms worth.

        `file` is the run's file as it is now. If it was rewritten, cut or replaced, it is read from its start and the
        chunk says ``reset=True``. An unfinished last line waits in the file. A call without news is cheap.
        Raises `FormatError` if nothing can be read, `OSError` if the file cannot be; a later call continues from there.
        """
        ...


@runtime_checkable
class Format(Protocol):
    """A trace format. Instances hold no state."""

    name: str
    """Short name, as in ``--format paprika``."""
    title: str
    """Name that people know it by."""

    def sniff(self, file: File) -> int:
        """How surely `file` is of this format: 0 = no … 100 = certain. May look at `file.head` and `file.tables`.

        Of a file that is larger than its head and that no format is certain of, `head` is then the first records with
        long texts and lists cut (`tracetui.formats.opening`).
        Never depends on the order of JSON keys. May cache decoded values in `file.memo`. Never raises for any bytes.
        """
        ...

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        """List the runs of `file` and its problems.

        ``deep=False`` fills the columns of the list from as few bytes as possible, ``deep=True`` everything. Both, and
        a full read, agree on the fields that they share. Raises `FormatError` if nothing can be read.
        """
        ...

    def open(self, file: File, ref: RunRef) -> Reader:
        """A reader of run `ref` that has read nothing yet."""
        ...

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """Everything about `span` (one that a reader made). Raises `FormatError` if the source changed meanwhile."""
        ...


@runtime_checkable
class Forking(Protocol):
    """Optional protocol: the framework can resume from a step."""

    def fork(self, run: Run, span: Span) -> str | None:
        """Return Python that starts a new run with the state after `span`, or None if `span` can't be resumed.

        Values from the trace appear only as `ascii` literals.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """Optional protocol: people talk with the program, and can continue its sessions: its runs wait for their turn."""

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        """Return the arguments of the command that resumes a session, the program first; None if this run is none.

        `tracetui.formats.programs` checks and quotes them. Nothing runs them.
        """
        ...


@runtime_checkable
class Composed(Protocol):
    """Optional protocol: some runs are in several files.

    A run is listed under its main file, whose reader also reads the other parts (`File.folder`, `File.other`). For a
    part, `whole_of` names the main file.
    """

    def whole_of(self, file: File) -> str | None:
        """Return the path of the main file if `file` is a part of a run, else None."""
        ...

    def parts_in(self, path: str) -> Sequence[str]:
        """Return the folders, relative to that of the main file `path`, that may get parts of its run."""
        ...


def is_composed(fmt: Format) -> TypeGuard[Composed]:
    """Whether runs of that format may be in several files. Asking `isinstance` takes as long as opening a file."""
    return _is_composed(type(fmt))


@cache
def _is_composed(kind: type) -> bool:
    return issubclass(kind, Composed)


@runtime_checkable
class Contextual(Protocol):
    """Optional protocol: records say more about the context of model calls than the messages of their spans."""

    def context(self, span: Span, body: Body) -> ContextFacts | None:
        """Return what `span`, with its `body`, says about the context; None: nothing but its messages."""
        ...


def is_contextual(fmt: Format) -> TypeGuard[Contextual]:
    """Whether a format says more about the context than messages do; `isinstance` is too slow to ask for each span."""
    return callable(getattr(fmt, "context", None))


@runtime_checkable
class Homed(Protocol):
    """Optional protocol: the program that writes the format has standard trace directories."""

    home_variables: Sequence[str]
    """Names of the environment variables that `homes` looks at."""

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        """Return folders and files that the program uses for traces only; they need not exist.

        `environ` is the environment, `home` the user's home folder; no file is read. The start
        screen offers them (`tracetui.formats.programs`).
        """
        ...
