"""What a format is: four methods.

``sniff``      does this file look like mine?
``summarize``  the runs in it, from as few bytes as possible (``deep=False``) or with everything counted (``deep=True``)
``open``       a reader of one run: each `Reader.more` returns what is new (loading is tailing from the start)
``body``       everything that the source says about one span, when its detail is shown

A format only translates. It computes no depth, order, totals or display text and starts no thread. The format itself
keeps no state; a reader holds that of the one run that it reads. docs/writing-a-format.md shows how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Final, Protocol, TypeGuard, runtime_checkable

import msgspec

from tracetui.model import Body, Header, Problem, Run, RunBody, RunRef, RunSummary, Span
from tracetui.sources.base import File

CERTAIN: Final = 100
NO: Final = 0


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """What one `Reader.more` found.

    Span ids are unique within a run: a span whose id is known already is a newer version of it. One is given again
    whenever anything about it, its body included, has changed. `header` and `body` are complete as of now and replace
    earlier ones.
    """

    spans: Sequence[Span] = ()
    header: Header | None = None
    body: RunBody | None = None
    problems: Sequence[Problem] = ()
    reset: bool = False
    """The file was rewritten: forget what was read before, this chunk is the whole new beginning."""
    done: bool = True
    """False: there is more to read; call again."""


@runtime_checkable
class Reader(Protocol):
    """Reads one run and follows it as its file grows. Used by one thread at a time."""

    def more(self, file: File) -> Chunk:
        """Everything of the run that is new since the last call, at most about 50 ms worth.

        `file` is the run's file as it is now. If it was rewritten, cut or replaced, it is read from its start and the
        chunk says ``reset=True``. An unfinished last line waits in the file. Where nothing is new, the call is cheap.
        Raises `FormatError` if nothing can be read, `OSError` if the file cannot be; a later call goes on from there.
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

        Never depends on the order of JSON keys. May leave what it decoded in `file.memo`. Never raises for any bytes.
        """
        ...

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        """The runs of `file`, and what could not be read in it.

        ``deep=False`` fills what the list shows from as few bytes as will do, ``deep=True`` everything; what the first
        fills equals what the second and a full `read` give. Raises `FormatError` if nothing can be read.
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
    """What a format may have besides: its framework can go on from a step."""

    def fork(self, run: Run, span: Span) -> str | None:
        """Python that begins a new run with the state after `span`; None where there is nothing to go on from.

        What comes from the trace stands in it as `ascii` writes it, and nowhere else.
        """
        ...


@runtime_checkable
class Composed(Protocol):
    """What a format may have besides: some of its runs are in several files.

    A run is listed under one of them, its main file, and the reader of that reads the others (`File.folder`,
    `File.other`) on as well. Whoever meets one of the others asks `whole_of`, and looks at the main file instead.
    """

    def whole_of(self, file: File) -> str | None:
        """Path of the main file of the run that `file` is a part of; None where it stands for itself."""
        ...

    def parts_in(self, path: str) -> Sequence[str]:
        """Folders, relative to that of the main file `path`, in which parts of its run are or may come to be."""
        ...


def is_composed(fmt: Format) -> TypeGuard[Composed]:
    """Whether runs of that format may be in several files. Asking `isinstance` takes as long as opening a file."""
    return _is_composed(type(fmt))


@cache
def _is_composed(kind: type) -> bool:
    return issubclass(kind, Composed)


@runtime_checkable
class Homed(Protocol):
    """What a format may have besides: the program that writes it keeps its traces in places of its own."""

    home_variables: Sequence[str]
    """Names of the environment variables that `homes` looks at."""

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        """Folders, and files, in which that program keeps nothing but traces, whether or not they are there.

        `environ` is the environment, `home` the user's home folder; nothing else is asked or looked at. They are
        offered to somebody who names no place (`tracetui.formats.homes`).
        """
        ...
