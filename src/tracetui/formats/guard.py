"""The boundary around formats: every call into one ends in a value of the right type, a `FormatError` or an `OSError`.

A format may be a plug-in that raises anything, and a trace may be larger than memory or deeper than the stack. Nothing
but this module calls the methods of `tracetui.formats.base` (tests/cli/test_guard.py checks the source), so a
caller that handles these two exceptions handles everything; `problem_of` makes a `Problem` of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, TypeVar

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk, Contextual, Forking, Format, Homed, Reader, Resumable, is_composed
from tracetui.formats.decode import STRUCTS
from tracetui.formats.harbor.files import in_trial, trial_folders
from tracetui.formats.recorded import chunk_with_facts, summary_with_facts
from tracetui.model import Body, Header, Problem, Run, RunBody, RunRef, RunSummary, Span
from tracetui.model.context import ContextFacts
from tracetui.sources.base import BudgetSpent, File, reason_of

_OWN: Final = "tracetui.formats."
_T = TypeVar("_T")
_PASSED: Final = (FormatError, OSError, BudgetSpent, KeyboardInterrupt, GeneratorExit)


class _Boundary:
    """A context manager that turns every other exception into `FormatError`; Ctrl-C and a spent budget pass."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, _PASSED):
            raise FormatError(_describe(error)) from error


BOUNDARY: Final = _Boundary()


# ---- the methods of a format


def sniff(fmt: Format, file: File) -> int:
    """`Format.sniff`."""
    with BOUNDARY:
        return _expect(int, fmt.sniff(file), "sniff")


def summarize(fmt: Format, file: File, *, deep: bool, alone: bool = False) -> Iterator[RunSummary | Problem]:
    """`Format.summarize`; items yielded before a failure count. `alone`: without the trial that a run is of."""
    with BOUNDARY:
        reading = fmt if alone else in_trial(fmt, file)
        for item in reading.summarize(file, deep=deep):
            _check_fields(fmt, _expect((RunSummary, Problem), item, "summarize"))
            if isinstance(item, RunSummary) and item.ref.format != fmt.name:
                raise TypeError(f"summarize returned a run of the format {item.ref.format!r}")
            yield summary_with_facts(item, file) if isinstance(item, RunSummary) else item


def open_reader(fmt: Format, file: File, ref: RunRef) -> Reader:
    """`Format.open`."""
    with BOUNDARY:
        reader = in_trial(fmt, file).open(file, ref)
        if not isinstance(reader, Reader):
            raise TypeError(f"open returned {type(reader).__name__}")
        return reader


def more(fmt: Format, reader: Reader, file: File) -> Chunk:
    """`Reader.more`."""
    with BOUNDARY:
        chunk = _expect(Chunk, reader.more(file), "more")
        if not _is_built_in(type(fmt)):
            _check_chunk(fmt, chunk)
        return chunk_with_facts(chunk, file)


def body(fmt: Format, file: File, ref: RunRef, span: Span) -> Body:
    """`Format.body`."""
    with BOUNDARY:
        return _check_fields(fmt, _expect(Body, in_trial(fmt, file).body(file, ref, span), "body"))


def fork(fmt: Format, run: Run, span: Span) -> str | None:
    """`Forking.fork`; None for a format without it."""
    with BOUNDARY:
        return _expect((str, type(None)), fmt.fork(run, span), "fork") if isinstance(fmt, Forking) else None


def context(fmt: Contextual, span: Span, body: Body) -> ContextFacts | None:
    """`Contextual.context`."""
    with BOUNDARY:
        return _expect((ContextFacts, type(None)), fmt.context(span, body), "context")


def main_file(fmt: Format, file: File) -> str | None:
    """`Composed.whole_of`: path of the main file of the run that `file` is a part of; None where there is no other."""
    if not is_composed(fmt):
        return None
    with BOUNDARY:
        return _expect((str, type(None)), fmt.whole_of(file), "whole_of")


def part_folders(fmt: Format, path: str) -> Sequence[str]:
    """`Composed.parts_in`, and the folders of the trial that the run is of."""
    trial = trial_folders(fmt, path)
    if not is_composed(fmt):
        return trial
    with BOUNDARY:
        return [*_expect_each(str, fmt.parts_in(path), "parts_in"), *trial]


def home_variables(fmt: Format) -> Sequence[str]:
    """`Homed.home_variables`; none for a format without it."""
    with BOUNDARY:
        return _expect_each(str, fmt.home_variables, "home_variables") if isinstance(fmt, Homed) else ()


def homes(fmt: Format, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
    """`Homed.homes`; none for a format without it."""
    with BOUNDARY:
        return _expect_each(PurePath, fmt.homes(environ, home), "homes") if isinstance(fmt, Homed) else ()


def resume(fmt: Format, run: RunSummary) -> Sequence[str] | None:
    """`Resumable.resume`; None for a format without it."""
    if not isinstance(fmt, Resumable):
        return None
    with BOUNDARY:
        command = fmt.resume(run)
        return None if command is None else _expect_each(str, command, "resume")


# ---- exceptions as values


def problem_of(path: str, error: BaseException) -> Problem:
    """An exception from reading the file at `path`, as a value."""
    if isinstance(error, FormatError):
        return Problem(path, str(error.where), str(error.reason))
    return Problem(path, "", _describe(error))


def _describe(error: BaseException) -> str:
    """Describe an exception in one sentence, even if its own text fails."""
    if isinstance(error, MemoryError):
        return "out of memory"
    try:
        return str(reason_of(error)) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    except Exception:  # its text is made by the plug-in as well
        return type(error).__name__


# ---- types


def _expect(kind: type[Any] | tuple[type[Any], ...], value: _T, method: str) -> _T:
    if not isinstance(value, kind):
        raise TypeError(f"{method} returned {type(value).__name__}")
    return value


def _expect_each(kind: type[_T], values: Iterable[_T], method: str) -> Sequence[_T]:
    if isinstance(values, str):
        raise TypeError(f"{method} returned one text")
    return [_expect(kind, value, method) for value in values]


def _check_chunk(fmt: Format, chunk: Chunk) -> None:
    for span in chunk.spans:
        _check_fields(fmt, _expect(Span, span, "more"))
    for problem in chunk.problems:
        _check_fields(fmt, _expect(Problem, problem, "more"))
    for value, kind in ((chunk.header, Header), (chunk.body, RunBody)):
        if value is not None:
            _check_fields(fmt, _expect(kind, value, "more"))


_S = TypeVar("_S", bound=msgspec.Struct)


def _check_fields(fmt: Format, item: _S) -> _S:
    """The item itself; of a plug-in its fields are checked (the conformance suite does that for the built-in ones)."""
    if not _is_built_in(type(fmt)):
        check_fields(item)
    return item


def check_fields(item: msgspec.Struct) -> None:
    """Raise `TypeError` or `ValueError` unless each field has the type that the struct declares for it."""
    if isinstance(item, Span):
        item = msgspec.structs.replace(item, at=None)  # opaque
    try:
        builtin = msgspec.to_builtins(item)
    except RecursionError:  # a deep value, in a field that may hold anything
        return
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{type(item).__name__} contains a value that is not JSON: {error}") from error
    with STRUCTS:
        msgspec.convert(builtin, type(item))


@cache
def _is_built_in(kind: type) -> bool:
    return kind.__module__.startswith(_OWN)
