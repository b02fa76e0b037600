"""Reuse the results of earlier deep passes over files that have not changed (`tracetui.store.run_cache`).

A result is reused only if reading the file again would give the same: same version of the readers, same stat, same
answers to all that the reading asked of its surroundings (`tracetui.sources.file_views`). Results that depend on the
time, or on a file that may have changed in the same tick of the clock as it was read, are not stored.

Outlines of runs, what statistics count, are reused in the same way.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar, cast

import msgspec

import tracetui
from tracetui.formats import registry
from tracetui.formats.base import Format
from tracetui.live.load import FileCaches, read_run
from tracetui.live.scan import WITHIN, ScannedFile, is_within
from tracetui.model import Body, Operation, Problem, Run, RunBody, RunRef, RunSummary, Span, Status, Usage
from tracetui.model.blocks import Blocks
from tracetui.model.claims import key_of
from tracetui.model.summary import SharedFacts, intern_facts
from tracetui.sources.base import MOVING_SECONDS, Entry, LinkLost, Source, Stat
from tracetui.sources.file_views import FILE, FOLDER, Answer, Observations, ObservedSource, Question, ask, settled_at
from tracetui.sources.local import STDIN
from tracetui.sources.locations import DATABASES
from tracetui.store.run_cache import Page, Storage

# ---- pages of results: columns of values, and once what many runs share


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
    """The dependencies of a stored result."""

    newest: float
    """Modification time of the newest file involved, if the result is valid only while none is changing; else 0."""
    answers: tuple[tuple[Question, Answer], ...]
    """The answers of the source."""

    def hold(self, ask: Callable[[Question], Answer]) -> bool:
        """Whether reading again would give the same result. Raises what `ask` does."""
        if self.newest and time.time() - self.newest < MOVING_SECONDS:
            return False
        return not self.answers or all(ask(question) == answer for question, answer in self.answers)


def dependencies_of(seen: Observations, began_ns: int, without: Question | None = None) -> Dependencies | None:
    """Return the dependencies of a reading that began then, except for one question; None if it must not be stored."""
    stats = [answer for answer in seen.answers.values() if isinstance(answer, Stat)]
    if seen.moving or seen.failed or not stats or not all(settled_at(stat, began_ns) for stat in stats):
        return None
    newest = max(stat.mtime for stat in stats) if seen.asked_moving else 0.0
    return Dependencies(newest, tuple(pair for pair in seen.answers.items() if pair[0] != without))


class Result(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The result of a deep pass over a file."""

    stat: Stat
    named: bool
    """The file was named by the user, so that it is no part of another file's run."""
    dependencies: Dependencies
    """Except for the file itself."""
    value: ScannedFile


Results = dict[str, Result]
"""Results by path."""


class _Kind(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The part that the results of many files have in common."""

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
    claims: list[bytes]
    results: dict[str, Result]
    """All others, by name."""


_PAGES: Final = Packing(_Page)
_INDEPENDENT: Final = Dependencies(0.0, ())


def pack(folder: str, prefix: str, results: Results) -> Iterator[tuple[bytes, int]]:
    """Yield pages with these results, and the number in each. Their paths begin with `prefix`. Results that
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
    """Return the results in pages of this folder, of paths that begin with `prefix`; later pages win."""
    results: Results = {}
    for data in pages:
        page = _PAGES.unpack(data)
        if page is not None and page.folder == folder:
            with suppress(IndexError, ValueError):  # damaged, with a matching checksum
                runs = _runs(page, prefix)
                results = results | runs if results else runs
            results.update((prefix + name, result) for name, result in page.results.items())
    return results


def _runs(page: _Page, prefix: str) -> Results:
    """The results in columns."""
    kinds = [(kind.named, kind.format, intern_facts(kind.shared)) for kind in page.kinds]
    results: Results = {}
    for name, stat, kind, newest, size, packed, started, duration, repeats, modified, claims in zip(
        page.names, page.stats, page.kind, page.newest, page.sizes, page.packed,
        page.started_at, page.duration_ms, page.repeats, page.modified_at, page.claims, strict=True,
    ):  # fmt: skip
        named, reader, shared = kinds[kind]
        path = prefix + name
        run = RunSummary(RunRef(reader, path), shared, packed, started, duration, repeats, modified, claims)
        dependencies = Dependencies(newest, ()) if newest else _INDEPENDENT
        results[path] = Result(stat, named, dependencies, ScannedFile(path=path, format=reader, runs=(run,), size=size))
    return results


def _is_run(result: Result) -> bool:
    """Whether the columns have all of it: a file that is one run, and depends on nothing else."""
    scanned = result.value
    if result.dependencies.answers or len(scanned.runs) != 1 or scanned.format is None:
        return False
    run = scanned.runs[0]
    plain = ScannedFile(path=scanned.path, format=scanned.format, runs=scanned.runs, size=scanned.size)
    return type(run.packed) is bytes and run.ref == RunRef(scanned.format, scanned.path) and scanned == plain


def _page_of(folder: str, prefix: str, results: Results) -> _Page:
    runs = [result for result in results.values() if _is_run(result)]
    listed = [result.value.runs[0] for result in runs]
    kinds: dict[_Kind, int] = {}
    kind = [_Kind(result.named, run.ref.format, run.shared) for result, run in zip(runs, listed, strict=True)]
    for each in kind:
        kinds.setdefault(each, len(kinds))
    return _Page(
        folder,
        [*kinds],
        [run.ref.path.removeprefix(prefix) for run in listed],
        [result.stat for result in runs],
        [kinds[each] for each in kind],
        [result.dependencies.newest for result in runs],
        [result.value.size for result in runs],
        [cast("bytes", run.packed) for run in listed],
        [run.started_at for run in listed],
        [run.duration_ms for run in listed],
        [run.repeats for run in listed],
        [run.modified_at for run in listed],
        [run.claims for run in listed],
        {path.removeprefix(prefix): result for path, result in results.items() if not _is_run(result)},
    )


BATCH: Final = 1024
"""Results that are stored at once …"""
_FLUSH_SECONDS: Final = 1.0
"""… or those of this time."""
_PLUGINS: Final = "plug-ins"
"""Kind of `Observations`: the version of all plug-ins."""
_READERS: Final = ("formats", "model", "sources", "live", "errors.py", "text.py", "redact.py")
"""Parts of this package that decide the result of a reading."""


def is_transient(path: str) -> bool:
    """Whether a path has no stat that identifies a version: standard input, a trace in a database."""
    return path == STDIN or path.startswith(DATABASES)


_SMALL: Final = BATCH // 2
"""A page with fewer results is small …"""
_MOST_SMALL: Final = 8
"""… and so many of them in one folder are merged."""


class ScanCache:
    """Results of one walk and its deep pass. Used by one thread at a time, except for its storage.

    Call `begin` before each walk. `for_large_files` returns one for another thread.
    """

    def __init__(self, storage: Storage, source: Source, roots: Collection[str], *, batch: int = BATCH) -> None:
        """`storage` must be of the `version` of these readers. `batch`: how many results are stored at once."""
        self.storage, self._batch = storage, batch
        self._source, self._roots = source, roots
        self._new: dict[str, Results] = {}
        """By folder, with the slash at its end."""
        self._waiting = 0
        """Number of them."""
        self._flushed = time.monotonic()
        self.begin()

    def for_large_files(self) -> ScanCache:
        """Return another one with the same storage, for files that each take long."""
        return ScanCache(self.storage, self._source, self._roots, batch=1)

    def begin(self) -> None:
        """Forget earlier answers of the source."""
        self._folder: str | None = None
        self._results: Results = {}
        """Of that folder."""
        self._answers: dict[Question, Answer] = {}

    def find(self, entry: Entry) -> ScannedFile | None:
        """Return the stored result of a file that is as it was; None if it must be read. Raises `LinkLost`."""
        stat, path = entry.stat, entry.path
        if stat is None or entry.skipped is not None:
            return None
        result = self._results.pop(path, None)
        if result is None:
            if is_transient(path):
                return None
            self._enter(path)
            result = self._results.pop(path, None)
        if result is not None and result.stat == stat and self._is_current(result, path):
            self.storage.hits += 1
            return result.value
        self.storage.misses += 1
        return None

    def _enter(self, path: str) -> None:
        """Read the results of the folder of a file, unless they were read before."""
        folder = _folder_of(path)
        if folder != self._folder:
            key = folder_key(self._source, path)
            self._folder, self._results = folder, unpack(key, folder, self.storage.pages(key).values())

    def store(self, result: ScannedFile, seen: Observations, began: int) -> None:
        """Store the result of a reading that began then (`time.time_ns`) and depends on what was `seen`."""
        if result.format not in registry.BUILT_IN:  # all plug-ins were asked
            seen.add(_PLUGINS, "", "", plugin_version())
        itself = FILE, result.path, ""
        stat, dependencies = seen.answers.get(itself), dependencies_of(seen, began, itself)
        if not is_transient(result.path) and isinstance(stat, Stat) and dependencies is not None:
            results = self._new.setdefault(_folder_of(result.path), {})
            self._waiting += result.path not in results
            results[result.path] = Result(stat, result.path in self._roots, dependencies, result)
        if self._waiting >= self._batch or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the new results."""
        self._flushed = time.monotonic()
        if self._new:
            self.storage.put(page for folder, new in self._new.items() for page in self._pages_of(folder, new))
            self._new, self._waiting = {}, 0

    def close(self) -> None:
        """Write the new results, and close the storage."""
        self.flush()
        self.storage.close()

    def _pages_of(self, folder: str, results: Results) -> Iterator[Page]:
        """Yield the pages to store, in place of small ones if the folder has many."""
        key = folder_key(self._source, next(iter(results)))
        small = self.storage.pages(key, below=_SMALL)
        if len(small) < _MOST_SMALL:
            small = {}
        else:
            results = unpack(key, folder, small.values()) | results
        gone = [*small]
        for value, count in pack(key, folder, results):
            yield Page(key, value, count, gone)
            gone = []

    def _is_current(self, result: Result, path: str) -> bool:
        if result.value.path != path or result.named is not (path in self._roots):
            return False
        if result.dependencies is _INDEPENDENT:
            return True
        try:
            return result.dependencies.hold(self._ask)
        except LinkLost:
            raise
        except OSError:
            return False

    def _ask(self, question: Question) -> Answer:
        """Return the current answer to a question, the same throughout a walk."""
        kind, path, relative = question
        if kind == _PLUGINS:
            return plugin_version()
        if kind == WITHIN:
            return is_within(path, self._roots)
        if kind == FOLDER:
            question = kind, os.path.dirname(path) + "/.", relative
        if question not in self._answers:
            self._answers[question] = ask(self._source, (kind, path, relative))
        return self._answers[question]


def _folder_of(path: str) -> str:
    """The folder of a path, with the slash at its end."""
    return path[: path.rfind("/") + 1]


def folder_key(source: Source, path: str) -> str:
    """The folder of a path, with the working folder if it is relative to that."""
    is_relative = source.local_path(path) is not None and not os.path.isabs(path)
    return f"{_folder_of(path)}\n{os.getcwd()}" if is_relative else _folder_of(path)


def open_cache(source: Source, roots: Sequence[str], only: Format | None, limit: int) -> ScanCache:
    """Return the user's cache of at most `limit` bytes, for these roots; empty if it can't be used."""
    return ScanCache(Storage(version(only), roots, limit=limit), source, roots)


def version(only: Format | None, *more: str) -> str:
    """Return the version of the readers, and of `more` parts of this package; results of another one aren't reused."""
    return f"{_readers(*more)} {'' if only is None else only.name}"


@cache
def _readers(*more: str) -> str:
    """A fingerprint of the code that reads, of `more` parts, and of the places that plug-ins are installed in."""
    digest = blake2b(f"{tracetui.__version__} {sys.version}".encode(), digest_size=12)
    package = Path(tracetui.__file__).parent
    for path in sorted(file for part in (*_READERS, *more) for file in _modules(str(package / part))):
        digest.update(path.encode("utf-8", "surrogateescape"))
    for place in sys.path:
        if os.path.isabs(place) and place != os.getcwd():
            digest.update(" ".join((place, *_installed(place))).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _installed(place: str) -> Sequence[str]:
    """Names and versions of the packages installed in a folder. Its time says less: compiling a module changes it."""
    try:
        return sorted(name for name in os.listdir(place) if name.endswith((".dist-info", ".egg-info", ".pth")))
    except OSError:
        return [_changed(place)]


@cache
def plugin_version() -> bytes:
    """A fingerprint of the code of all plug-ins; finding them takes a while."""
    digest = blake2b(digest_size=12)
    for name in registry.names()[len(registry.BUILT_IN) :]:
        origin = registry.origin(name)
        try:
            spec = find_spec(origin.rpartition(" ")[2].partition(":")[0].partition(".")[0])
        except (ImportError, ValueError):
            spec = None
        places = () if spec is None else spec.submodule_search_locations or (spec.origin or "",)
        for place in sorted((name, origin, *(part for path in places for part in _modules(path)))):
            digest.update(place.encode("utf-8", "surrogateescape"))
    return digest.digest()


def _modules(path: str) -> Sequence[str]:
    """Path, size and time of a module, or of all below a folder."""
    if path.endswith(".py"):
        return (f"{path} {_changed(path)}",)
    try:
        with os.scandir(path) as names:
            below = [item for item in names if not item.name.startswith("__") or item.name == "__init__.py"]
    except OSError:
        return ()
    return [
        line
        for item in below
        if item.is_dir() or item.name.endswith(".py")
        for line in (_modules(item.path) if item.is_dir() else (f"{item.path} {_stamp(item.stat())}",))
    ]


def _changed(path: str) -> str:
    try:
        return _stamp(os.stat(path))
    except OSError:
        return ""


def _stamp(stat: os.stat_result) -> str:
    return f"{stat.st_size} {stat.st_mtime_ns}"


MOST_SPANS = 50_000
"""Longer runs are read again: reading them back from the cache takes as long."""


class _SpanOutline(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The fields of a span that statistics use."""

    name: str
    operation: Operation
    status: Status
    status_word: str | None
    started_at: float | None
    duration_ms: float | None
    usage: Usage | None
    owner: str | None
    nested_graph: bool
    model: str | None
    note: str
    tier: str | None
    claim: int | None
    """The key, see `tracetui.model.claims`."""


class _Outline(msgspec.Struct, frozen=True, gc=False, array_like=True):
    summary: RunSummary
    spans: tuple[_SpanOutline, ...]
    sizes: tuple[int, ...]
    problems: tuple[Problem, ...]


class _Stored(msgspec.Struct, Generic[_T], frozen=True, gc=False, array_like=True):
    ref: RunRef
    dependencies: Dependencies
    variant: bytes
    value: _T


class _Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A page: the value of one run, which is decoded only if it is asked for."""

    name: str
    stored: msgspec.Raw


class Reading(NamedTuple):
    """How to read a run whose value isn't stored."""

    source: Source
    cache: dict[str, Any]
    """See `tracetui.live.load.Reader`."""
    store: Callable[[Any], None]
    """Takes the value of the run."""


class RunValues(Generic[_T]):
    """Stores a value of each run in the user's cache. A context manager. Used by one thread."""

    def __init__(self, kind: type[_T], source: Source, roots: Sequence[str], limit: int, version: str) -> None:
        """The cache takes at most `limit` bytes; 0: nothing is stored. `version`: of all that decides the values."""
        self._source, self._file_caches = source, FileCaches()
        self.storage = Storage(version, roots, limit=limit) if limit else None
        self._rows, self._values = Packing(_Row), Packing(_Stored[kind])  # type: ignore[valid-type]
        self._folder: str | None = None
        self._stored: dict[str, tuple[int, msgspec.Raw]] = {}
        """Page and value, by name."""
        self._answers: dict[Question, Answer] = {}
        self._new: list[Page] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.storage is not None:
            self._flush()
            self.storage.close()

    def find(self, ref: RunRef, variant: bytes = b"") -> _T | Reading:
        """Return the stored value of a run that is as it was, else how to read the run. Raises `LinkLost`.

        `variant`: of what the value depends on beside the run; a value of another one isn't reused.
        """
        cache = self._file_caches.for_run(ref)
        if self.storage is None or is_transient(ref.path) or ref.format not in registry.BUILT_IN:
            return Reading(self._source, cache, lambda value: None)
        folder = folder_key(self._source, ref.path)
        name = "\n".join((ref.path.rpartition("/")[2], ref.format, ref.key or ""))
        if folder != self._folder:
            self._flush()
            pages = self.storage.pages(folder).items()
            rows = ((page, row) for page, data in pages if (row := self._rows.unpack(data)) is not None)
            self._folder, self._stored = folder, {row.name: (page, row.stored) for page, row in rows}
        page, data = self._stored.get(name, (None, None))
        entry = None if data is None else self._values.unpack(bytes(data))
        if entry is not None and entry.ref == ref and entry.variant == variant and entry.dependencies.hold(self._ask):
            return cast("_T", entry.value)
        began, seen = time.time_ns(), Observations()

        def store(value: _T) -> None:
            dependencies = dependencies_of(seen, began)
            packed = None if dependencies is None else self._values.pack(_Stored(ref, dependencies, variant, value))
            data = None if packed is None else self._rows.pack(_Row(name, msgspec.Raw(packed)), folder)
            if data is not None:
                self._new.append(Page(folder, data, replaces=() if page is None else (page,)))

        return Reading(ObservedSource(self._source, seen), cache, store)

    def _flush(self) -> None:
        if self._new and self.storage is not None:
            self.storage.put(self._new)
        self._new = []

    def _ask(self, question: Question) -> Answer:
        if question not in self._answers:
            try:
                self._answers[question] = ask(self._source, question)
            except LinkLost:
                raise
            except OSError:
                return None
        return self._answers[question]


class Outlines(RunValues[_Outline]):
    """Reads outlines, and stores those that it had to read."""

    def __init__(self, source: Source, roots: Sequence[str], limit: int) -> None:
        """Use the user's cache, of at most `limit` bytes; 0: none."""
        super().__init__(_Outline, source, roots, limit, f"{version(None)} outlines")

    def read(self, ref: RunRef) -> Run:
        """Return summary, problems and spans of a run, as far as statistics need them: the spans may have no ids and
        texts, the run no bodies. Raises `LinkLost`.
        """
        outline = self.find(ref)
        if not isinstance(outline, Reading):
            return _run_of(outline)
        run = read_run(outline.source, ref, outline.cache)
        if len(run.spans) <= MOST_SPANS:
            outline.store(_outline_of(run))
        return run


def _outline_of(run: Run) -> _Outline:
    fields = _SpanOutline.__struct_fields__[:-1]
    spans = tuple(
        _SpanOutline(**{name: getattr(span, name) for name in fields}, claim=key_of(span)) for span in run.spans
    )
    return _Outline(run.summary, spans, tuple(run.sizes), run.problems)


def _run_of(outline: _Outline) -> Run:
    fields = _SpanOutline.__struct_fields__
    spans = Blocks(Span(id="", **dict(zip(fields, _values(columns), strict=True))) for columns in outline.spans)
    return Run(
        summary=outline.summary,
        body=RunBody(),
        spans=spans,
        depths=Blocks((0,) * len(spans)),
        sizes=Blocks(outline.sizes),
        steps=Blocks(),
        problems=outline.problems,
        index={},
        load=_no_body,
    )


def _values(span: _SpanOutline) -> tuple[Any, ...]:
    return msgspec.structs.astuple(span)


def _no_body(span: Span) -> Body:
    raise AssertionError("an outline has no bodies")
