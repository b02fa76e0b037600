"""Pages of results of deep passes, as `store.run_cache` stores them.

Most files are one run and depend on nothing but themselves: their values are in columns, and what many runs share is
stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, Generic, TypeVar, cast

import msgspec

from tracetui.live.scan import Found
from tracetui.model import RunRef, RunSummary
from tracetui.model.summary import SharedFacts, one
from tracetui.sources.base import MOVING_SECONDS, Stat
from tracetui.sources.observed import Answer, Observations, Question, settled_at

_T = TypeVar("_T")


class Packing(Generic[_T]):
    """Converts values to bytes and back."""

    def __init__(self, kind: type[_T]) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def pack(self, value: _T, *names: str) -> bytes | None:
        """Return the bytes; None if they would not give exactly that value, or the names beside it are no text."""
        try:
            data = self._encode(value)
            for name in names:
                name.encode()
            return data if self._encode(self._decode(data)) == data else None
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
            return None

    def unpack(self, data: bytes | None) -> _T | None:
        """Return the value; None if it can't be read."""
        try:
            return None if data is None else self._decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None


class Dependencies(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a stored result depends on."""

    newest: float
    """Modification time of the newest file involved, if the result is valid only while none is changing; else 0."""
    answers: tuple[tuple[Question, Answer], ...]
    """What the source answered."""

    def hold(self, ask: Callable[[Question], Answer]) -> bool:
        """Whether reading again would give the same result. Raises what `ask` does."""
        if self.newest and time.time() - self.newest < MOVING_SECONDS:
            return False
        return not self.answers or all(ask(question) == answer for question, answer in self.answers)


def dependencies_of(seen: Observations, began_ns: int, without: Question | None = None) -> Dependencies | None:
    """Return what a reading that began then depends on, except for one question; None if it must not be stored."""
    stats = [answer for answer in seen.answers.values() if isinstance(answer, Stat)]
    if seen.moving or seen.failed or not stats or not all(settled_at(one, began_ns) for one in stats):
        return None
    newest = max(one.mtime for one in stats) if seen.asked_moving else 0.0
    return Dependencies(newest, tuple(pair for pair in seen.answers.items() if pair[0] != without))


class Result(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a deep pass found in a file."""

    stat: Stat
    named: bool
    """The file was named by the user, so that it is no part of another file's run."""
    dependencies: Dependencies
    """Except for the file itself."""
    value: Found


Results = dict[str, Result]
"""Results by path."""


class _Kind(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the results of many files have in common."""

    named: bool
    format: str
    shared: SharedFacts


class _Page(msgspec.Struct, frozen=True, gc=False, array_like=True):
    folder: str
    kinds: list[_Kind]
    names: list[str]
    """Of the files that are one run and depend on nothing else; the columns are in the same order."""
    stats: list[Stat]
    kind: list[int]
    newest: list[float]
    sizes: list[int]
    packed: list[bytes]
    started_at: list[float | None]
    duration_ms: list[float | None]
    repeats: list[str | None]
    modified_at: list[float]
    results: dict[str, Result]
    """All others, by name."""


_PAGES: Final = Packing(_Page)
_INDEPENDENT: Final = Dependencies(0.0, ())


def pack(folder: str, prefix: str, results: Results) -> Iterator[tuple[bytes, int]]:
    """Yield pages with these results, whose paths begin with `prefix`, and how many there are in each. Results that
    bytes can't hold are left out.
    """
    data = _PAGES.pack(_page_of(folder, prefix, results), folder)
    if data is not None:
        yield data, len(results)
    elif len(results) > 1:  # one of them
        paths = [*results]
        for half in (paths[: len(paths) // 2], paths[len(paths) // 2 :]):
            yield from pack(folder, prefix, {path: results[path] for path in half})


def unpack(folder: str, prefix: str, pages: Iterable[bytes]) -> Results:
    """Return the results of pages of this folder, whose paths begin with `prefix`; later ones replace earlier ones."""
    results: Results = {}
    for data in pages:
        page = _PAGES.unpack(data)
        if page is not None and page.folder == folder:
            with suppress(IndexError, ValueError):  # damaged, with a matching checksum
                results |= _runs(page, prefix)
            results |= {prefix + name: result for name, result in page.results.items()}
    return results


def _runs(page: _Page, prefix: str) -> Results:
    """The results in columns."""
    kinds = [(kind.named, kind.format, one(kind.shared)) for kind in page.kinds]
    results: Results = {}
    for name, stat, (named, reader, shared), newest, size, packed, started, duration, repeats, modified in zip(
        page.names, page.stats, map(kinds.__getitem__, page.kind), page.newest, page.sizes, page.packed,
        page.started_at, page.duration_ms, page.repeats, page.modified_at, strict=True,
    ):  # fmt: skip
        path = prefix + name
        run = RunSummary(RunRef(reader, path), shared, packed, started, duration, repeats, modified)
        dependencies = Dependencies(newest, ()) if newest else _INDEPENDENT
        results[path] = Result(stat, named, dependencies, Found(path=path, format=reader, runs=(run,), size=size))
    return results


def _is_run(result: Result) -> bool:
    """Whether the columns have all of it: a file that is one run, and depends on nothing else."""
    found = result.value
    if result.dependencies.answers or len(found.runs) != 1 or found.format is None:
        return False
    run = found.runs[0]
    plain = Found(path=found.path, format=found.format, runs=found.runs, size=found.size)
    return type(run.packed) is bytes and run.ref == RunRef(found.format, found.path) and found == plain


def _page_of(folder: str, prefix: str, results: Results) -> _Page:
    runs = [result for result in results.values() if _is_run(result)]
    found = [result.value.runs[0] for result in runs]
    kinds: dict[_Kind, int] = {}
    kind = [_Kind(result.named, run.ref.format, run.shared) for result, run in zip(runs, found, strict=True)]
    for each in kind:
        kinds.setdefault(each, len(kinds))
    return _Page(
        folder,
        [*kinds],
        [run.ref.path.removeprefix(prefix) for run in found],
        [result.stat for result in runs],
        [kinds[each] for each in kind],
        [result.dependencies.newest for result in runs],
        [result.value.size for result in runs],
        [cast("bytes", run.packed) for run in found],
        [run.started_at for run in found],
        [run.duration_ms for run in found],
        [run.repeats for run in found],
        [run.modified_at for run in found],
        {path.removeprefix(prefix): result for path, result in results.items() if not _is_run(result)},
    )
