"""Reuse what an earlier deep pass found in files that have not changed (`tracetui.store.run_cache`).

A result is reused only if reading the file again would give the same: same version of the readers, same stat, same
answers to all that the reading asked of its surroundings (`tracetui.sources.observed`). Results that depend on the
time, or whose file may have changed in the same tick of the clock as it was read, are not stored.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import tracetui
from tracetui.formats import registry
from tracetui.formats.base import Format
from tracetui.live.result_pages import Result, Results, dependencies_of, pack, unpack
from tracetui.live.scan import WITHIN, Found, is_within, look
from tracetui.sources.base import Entry, LinkLost, Source, Stat
from tracetui.sources.budget import Budget
from tracetui.sources.local import STDIN
from tracetui.sources.locations import DATABASES
from tracetui.sources.observed import FILE, FOLDER, Answer, Observations, Question, ask
from tracetui.store.run_cache import Page, Storage

BATCH: Final = 1024
"""Results that are stored at once …"""
_FLUSH_SECONDS: Final = 1.0
"""… or those of this time."""
_PLUGINS: Final = "plug-ins"
"""Kind of `Observations`: the version of all plug-ins."""
_READERS: Final = ("formats", "model", "sources", "live", "errors.py", "text.py", "redact.py")
"""Parts of this package that decide what a reading finds."""


def is_transient(path: str) -> bool:
    """Whether a path has no stat that identifies a version: standard input, a trace in a database."""
    return path == STDIN or path.startswith(DATABASES)


_SMALL: Final = BATCH // 2
"""A page with fewer results is small …"""
_MOST_SMALL: Final = 8
"""… and so many of them in one folder are merged."""


class ScanCache:
    """Results of one walk and its deep pass. Used by one thread at a time, except for its storage.

    Call `begin` before each walk. `twin` returns one for another thread.
    """

    def __init__(
        self, storage: Storage, source: Source, roots: Collection[str], only: Format | None, *, batch: int = BATCH
    ) -> None:
        """`storage` must be of the `version` of these readers. `batch`: how many results are stored at once."""
        self.storage, self._batch = storage, batch
        self._source, self._roots, self._only = source, roots, only
        self._new: dict[str, Results] = {}
        """By folder, with the slash at its end."""
        self._waiting = 0
        """How many there are."""
        self._flushed = time.monotonic()
        self.begin()

    def twin(self) -> ScanCache:
        """Return another one with the same storage, for files that each take long."""
        return ScanCache(self.storage, self._source, self._roots, self._only, batch=1)

    def begin(self) -> None:
        """Forget what the source answered before."""
        self._folder: str | None = None
        self._results: Results = {}
        """Of that folder."""
        self._answers: dict[Question, Answer] = {}

    def find(self, entry: Entry) -> Found | None:
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

    def look(
        self,
        entry: Entry,
        *,
        last: Format | None,
        named: bool,
        shared: dict[str, Any] | None,
        budget: Budget | None = None,
    ) -> tuple[Found, Format | None]:
        """Read a file in full (`scan.look`), and store the result unless the `budget` was spent. Raises `LinkLost`."""
        began, seen = time.time_ns(), Observations()
        found, last = look(
            self._source, entry, deep=True, last=last, only=self._only, named=named, roots=self._roots, shared=shared,
            budget=budget, observations=seen,
        )  # fmt: skip
        if not found.unread:
            self._store(found, seen, began, named=named)
        return found, last

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

    def _store(self, found: Found, seen: Observations, began: int, *, named: bool) -> None:
        if found.format not in registry.BUILT_IN:  # all plug-ins were asked
            seen.add(_PLUGINS, "", "", plugin_version())
        itself = FILE, found.path, ""
        stat, dependencies = seen.answers.get(itself), dependencies_of(seen, began, itself)
        if not is_transient(found.path) and isinstance(stat, Stat) and dependencies is not None:
            results = self._new.setdefault(_folder_of(found.path), {})
            self._waiting += found.path not in results
            results[found.path] = Result(stat, named, dependencies, found)
        if self._waiting >= self._batch or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()


def _folder_of(path: str) -> str:
    """The folder of a path, with the slash at its end."""
    return path[: path.rfind("/") + 1]


def folder_key(source: Source, path: str) -> str:
    """The folder of a path, with the working folder if it is relative to that."""
    is_relative = source.local_path(path) is not None and not os.path.isabs(path)
    return f"{_folder_of(path)}\n{os.getcwd()}" if is_relative else _folder_of(path)


def open_cache(source: Source, roots: Sequence[str], only: Format | None, limit: int) -> ScanCache:
    """Return the user's cache of at most `limit` bytes, for these roots; empty if it can't be used."""
    return ScanCache(Storage(version(only), roots, limit=limit), source, roots, only)


def version(only: Format | None) -> str:
    """Return the version of the readers; results of another version are not reused."""
    return f"{_readers()} {'' if only is None else only.name}"


@cache
def _readers() -> str:
    """A fingerprint of the code that reads, and of the places that plug-ins are installed in."""
    found = blake2b(f"{tracetui.__version__} {sys.version}".encode(), digest_size=12)
    package = Path(tracetui.__file__).parent
    for path in sorted(file for part in _READERS for file in _modules(str(package / part))):
        found.update(path.encode("utf-8", "surrogateescape"))
    for place in sys.path:
        if os.path.isabs(place) and place != os.getcwd():
            found.update(" ".join((place, *_installed(place))).encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _installed(place: str) -> Sequence[str]:
    """Names and versions of the packages installed in a folder. Its time says less: compiling a module changes it."""
    try:
        return sorted(name for name in os.listdir(place) if name.endswith((".dist-info", ".egg-info", ".pth")))
    except OSError:
        return [_changed(place)]


@cache
def plugin_version() -> bytes:
    """A fingerprint of the code of all plug-ins; finding them takes a while."""
    found = blake2b(digest_size=12)
    for name in registry.names()[len(registry.BUILT_IN) :]:
        origin = registry.origin(name)
        try:
            spec = find_spec(origin.rpartition(" ")[2].partition(":")[0].partition(".")[0])
        except (ImportError, ValueError):
            spec = None
        places = () if spec is None else spec.submodule_search_locations or (spec.origin or "",)
        for place in sorted((name, origin, *(one for path in places for one in _modules(path)))):
            found.update(place.encode("utf-8", "surrogateescape"))
    return found.digest()


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
        one
        for item in below
        if item.is_dir() or item.name.endswith(".py")
        for one in (_modules(item.path) if item.is_dir() else (f"{item.path} {_stamp(item.stat())}",))
    ]


def _changed(path: str) -> str:
    try:
        return _stamp(os.stat(path))
    except OSError:
        return ""


def _stamp(found: os.stat_result) -> str:
    return f"{found.st_size} {found.st_mtime_ns}"
