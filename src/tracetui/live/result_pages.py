"""Pages of results of deep passes, as `store.run_cache` stores them.

Most files are one run and depend on nothing but themselves: their values are in columns, and what many runs share is
stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

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
        if is_changing(self.newest):
            return False
        return not self.answers or all(ask(question) == answer for question, answer in self.answers)


def is_changing(newest: float) -> bool:
    """Whether files of which the newest changed then count as changing; 0: never."""
    return bool(newest) and time.time() - newest < MOVING_SECONDS


def dependencies_of(seen: Observations, began_ns: int, without: Question | None = None) -> Dependencies | None:
    """Return what a reading that began then depends on, except for one question; None if it must not be stored."""
    stats = [answer for answer in seen.answers.values() if isinstance(answer, Stat)]
    if seen.moving or seen.failed or not stats or not all(settled_at(one, began_ns) for one in stats):
        return None
    newest = max(one.mtime for one in stats) if seen.asked_moving else 0.0
    return Dependencies(newest, tuple(pair for pair in seen.answers.items() if pair[0] != without))


class Kind(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the results of many files have in common."""

    named: bool
    """The file was named by the user, so that it is no part of another file's run."""
    format: str
    shared: SharedFacts


class Run(msgspec.Struct, frozen=True, gc=False):
    """The result of a file that is one run, and depends on nothing else."""

    stat: Stat
    kind: Kind
    newest: float
    """As in `Dependencies`."""
    size: int
    """`Found.size`."""
    packed: bytes
    started_at: float | None
    duration_ms: float | None
    repeats: str | None
    modified_at: float

    def found(self, path: str) -> Found:
        """Return the result as it was."""
        kind = self.kind
        ref = RunRef(kind.format, path)
        run = RunSummary(
            ref, kind.shared, self.packed, self.started_at, self.duration_ms, self.repeats, self.modified_at
        )
        return Found(path=path, format=kind.format, runs=(run,), size=self.size)


class Result(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Any other result."""

    stat: Stat
    named: bool
    dependencies: Dependencies
    """Except for the file itself."""
    value: Found

    def found(self, path: str) -> Found:
        """Return the result as it was."""
        return self.value


class _Page(msgspec.Struct, frozen=True, gc=False, array_like=True):
    folder: str
    kinds: list[Kind]
    names: list[str]
    """Of the files that are one run; the columns are in the same order."""
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


_PAGES: Final = Packing(_Page)
Results = dict[str, Run | Result]
"""Results by the name of the file."""


def pack(folder: str, results: Results) -> Iterator[tuple[bytes, int]]:
    """Yield pages with these results, and how many there are in each. Results that bytes can't hold are left out."""
    data = _PAGES.pack(_page_of(folder, results), folder)
    if data is not None:
        yield data, len(results)
    elif len(results) > 1:  # one of them
        names = [*results]
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            yield from pack(folder, {name: results[name] for name in half})


def unpack(folder: str, pages: Iterable[bytes], prefix: str = "") -> Results:
    """Return the results of pages of this folder by `prefix` and name; later ones replace earlier ones."""
    results: Results = {}
    for data in pages:
        page = _PAGES.unpack(data)
        if page is not None and page.folder == folder:
            kinds = [msgspec.structs.replace(kind, shared=one(kind.shared)) for kind in page.kinds]
            columns: Sequence[Iterable[object]] = (
                page.stats, map(kinds.__getitem__, page.kind), page.newest, page.sizes, page.packed,
                page.started_at, page.duration_ms, page.repeats, page.modified_at,
            )  # fmt: skip
            try:
                results.update(zip(map(prefix.__add__, page.names), map(Run, *columns), strict=True))
            except (IndexError, ValueError):  # damaged, with a matching checksum
                continue
            results.update((prefix + name, result) for name, result in page.results.items())
    return results


def result_of(stat: Stat, found: Found, dependencies: Dependencies, *, named: bool) -> Run | Result:
    """Return the result of a file, as a `Run` if possible."""
    if not dependencies.answers and len(found.runs) == 1 and found.format is not None:
        run = found.runs[0]
        if type(run.packed) is bytes:
            made = Run(
                stat, Kind(named, found.format, run.shared), dependencies.newest, found.size, run.packed,
                run.started_at, run.duration_ms, run.repeats, run.modified_at,
            )  # fmt: skip
            if made.found(found.path) == found:
                return made
    return Result(stat, named, dependencies, found)


def _page_of(folder: str, results: Results) -> _Page:
    runs = {name: result for name, result in results.items() if isinstance(result, Run)}
    kinds: dict[Kind, int] = {}
    for run in runs.values():
        kinds.setdefault(run.kind, len(kinds))
    columns = [*zip(*map(msgspec.structs.astuple, runs.values()), strict=True)] or [()] * len(Run.__struct_fields__)
    _, _, newest, sizes, packed, started, duration, repeats, modified = map(list, columns)
    return _Page(
        folder,
        [*kinds],
        [*runs],
        [run.stat for run in runs.values()],
        [kinds[run.kind] for run in runs.values()],
        newest,
        sizes,
        packed,
        started,
        duration,
        repeats,
        modified,
        {name: result for name, result in results.items() if isinstance(result, Result)},
    )
