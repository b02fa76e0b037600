"""What a format is: four verbs, and nothing else.

``sniff``      does this file look like mine?
``summarize``  the runs in it, as few bytes as will do (``deep=False``) or with everything counted (``deep=True``)
``read``       the spans of one run, everything new since a cursor (loading is tailing from the start)
``body``       everything that the source says about one span, when somebody looks at it

A format only translates. It computes no depth, order, totals or display text, starts no thread and keeps no state
between calls (what it must remember while following a file is in its cursor). docs/writing-a-format.md shows how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

import msgspec

from tracetui.model import Body, Header, Problem, Run, RunBody, RunRef, RunSummary, Span
from tracetui.sources.base import File

Cursor = Any
"""Where a format left off reading. Opaque to everybody else; must be immutable."""
START: Final[Cursor] = None

CERTAIN: Final = 100
NO: Final = 0


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """What one `Format.read` found.

    Span ids are unique within a run: a span whose id is known already is a newer version of it. One is given again
    whenever anything about it, its body included, has changed. `header` and `body` are complete as of now and replace
    earlier ones.
    """

    spans: Sequence[Span] = ()
    header: Header | None = None
    body: RunBody | None = None
    problems: Sequence[Problem] = ()
    cursor: Cursor = None
    reset: bool = False
    """The file was rewritten: forget what was read before, this chunk is the whole new beginning."""
    done: bool = True
    """False: there is more to read at once; call again with `cursor`."""


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

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """Everything of run `ref` that is new since `cursor`, at most about 50 ms worth.

        A rewritten, shrunk or replaced file is read from its start with ``reset=True``. A trailing half line waits in
        the file. Asking again where nothing came is cheap. Raises `FormatError` if nothing can be read.
        """
        ...

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """Everything about `span` (one that `read` made). Raises `FormatError` if the source changed meanwhile."""
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

    A run is listed under one of them, its main file, and `Format.read` of that reads the others (`File.folder`,
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
