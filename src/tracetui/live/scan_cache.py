"""Reuse what an earlier deep pass found in files that have not changed (`tracetui.store.run_cache`).

A result is reused only if reading the file again would give the same: same version of the readers, same stat, same
answers to all that the reading asked of its surroundings (`tracetui.sources.observed`). Results that depend on the
time, or whose file may have changed in the same tick of the clock as it was read, are not stored.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

import tracetui
from tracetui.formats.base import Format
from tracetui.live.scan import WITHIN, Found, is_within, look
from tracetui.sources.base import MOVING_SECONDS, Entry, LinkLost, Source, Stat
from tracetui.sources.local import STDIN
from tracetui.sources.observed import FILE, FOLDER, Answer, Observations, Question, ask, settled_at
from tracetui.store.run_cache import Storage

BATCH: Final = 256
"""Results that are stored at once …"""
_FLUSH_SECONDS: Final = 1.0
"""… or those of this time."""
_READERS: Final = ("formats", "model", "sources", "live", "errors.py", "text.py", "redact.py")
"""Parts of this package that decide what a reading finds."""


class _Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A stored result and what it depends on."""

    stat: Stat
    named: bool
    """The file was named by the user, so that it is no part of another file's run."""
    newest: float
    """Modification time of the newest file involved, if the result is valid only while none is changing; else 0."""
    answers: tuple[tuple[Question, Answer], ...]
    """What the source answered about other files."""
    found: Found


class ScanCache:
    """Results of one walk and its deep pass. Used by one thread at a time, except for its storage.

    Call `begin` before each walk. `twin` returns one for another thread.
    """

    def __init__(self, storage: Storage, source: Source, roots: Collection[str], only: Format | None) -> None:
        """`storage` must be of the `version` of these readers."""
        self.storage = storage
        self._source, self._roots, self._only = source, roots, only
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(_Row).decode
        self._new: list[tuple[str, str, bytes]] = []
        self._flushed = time.monotonic()
        self.begin()

    def twin(self) -> ScanCache:
        """Return another one with the same storage."""
        return ScanCache(self.storage, self._source, self._roots, self._only)

    def begin(self) -> None:
        """Forget what the source answered before."""
        self._folder: str | None = None
        self._rows: dict[str, bytes] = {}
        self._answers: dict[Question, Answer] = {}

    def find(self, entry: Entry) -> Found | None:
        """Return the stored result of a file that is as it was; None if it must be read. Raises `LinkLost`."""
        stat, path = entry.stat, entry.path
        if stat is None or entry.skipped is not None or path == STDIN:
            return None
        folder, _, name = path.rpartition("/")
        if folder != self._folder:
            self._folder, self._rows = folder, self.storage.rows(self._key(path, folder))
        data = self._rows.pop(name, None)
        if data is not None:
            try:
                row = self._decode(data)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                row = None
            if row is not None and row.stat == stat and self._is_current(row, path):
                self.storage.hits += 1
                return row.found
        self.storage.misses += 1
        return None

    def look(
        self, entry: Entry, *, last: Format | None, named: bool, shared: dict[str, Any] | None
    ) -> tuple[Found, Format | None]:
        """Read a file in full (`scan.look`), and store the result. Raises `LinkLost`."""
        began, seen = time.time_ns(), Observations()
        found, last = look(
            self._source, entry, deep=True, last=last, only=self._only, named=named, roots=self._roots, shared=shared,
            observations=seen,
        )  # fmt: skip
        self._store(found, seen, began, named=named)
        return found, last

    def flush(self) -> None:
        """Write the new results."""
        self._flushed = time.monotonic()
        if self._new:
            self.storage.put(self._new)
            self._new = []

    def close(self) -> None:
        """Write the new results, and close the storage."""
        self.flush()
        self.storage.close()

    def _is_current(self, row: _Row, path: str) -> bool:
        if row.named is not (path in self._roots) or (row.newest and time.time() - row.newest < MOVING_SECONDS):
            return False
        try:
            return all(self._ask(question) == answer for question, answer in row.answers)
        except LinkLost:
            raise
        except OSError:
            return False

    def _ask(self, question: Question) -> Answer:
        """Return the current answer to a question, the same throughout a walk."""
        kind, path, relative = question
        if kind == WITHIN:
            return is_within(path, self._roots)
        if kind == FOLDER:
            question = kind, os.path.dirname(path) + "/.", relative
        if question not in self._answers:
            self._answers[question] = ask(self._source, (kind, path, relative))
        return self._answers[question]

    def _store(self, found: Found, seen: Observations, began: int, *, named: bool) -> None:
        stat: Stat | None = None
        stats, answers = list[Stat](), list[tuple[Question, Answer]]()
        for question, answer in seen.answers.items():
            if isinstance(answer, Stat):
                stats.append(answer)
            if question == (FILE, found.path, ""):
                stat = answer if isinstance(answer, Stat) else None
            else:
                answers.append((question, answer))
        changing = seen.moving or seen.failed or not all(settled_at(one, began) for one in stats)
        if found.skipped or found.path == STDIN or stat is None or changing:
            return
        newest = max(one.mtime for one in stats) if seen.asked_moving else 0.0
        folder, _, name = found.path.rpartition("/")
        row = _Row(stat, named, newest, tuple(answers), found)
        try:
            data = self._encode(row)
            if self._encode(self._decode(data)) == data:
                key = self._key(found.path, folder)
                f"{key}{name}".encode()  # raises if the path is no text
                self._new.append((key, name, data))
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
            return  # a value that the stored form can't represent
        if len(self._new) >= BATCH or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def _key(self, path: str, folder: str) -> str:
        """The folder, with the working folder if it is relative to that."""
        is_relative = self._source.local_path(path) is not None and not os.path.isabs(path)
        return f"{folder}\n{os.getcwd()}" if is_relative else folder


def open_cache(source: Source, roots: Sequence[str], only: Format | None, limit: int) -> ScanCache:
    """Return the user's cache of at most `limit` bytes, for these roots; empty if it can't be used."""
    return ScanCache(Storage(version(only), roots, limit=limit), source, roots, only)


def version(only: Format | None) -> str:
    """Return the version of the readers: of a result read by another one nothing is known."""
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
            found.update(f"{place} {_changed(place)}".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _modules(path: str) -> Sequence[str]:
    """Path, size and time of a module, or of all below a folder."""
    if path.endswith(".py"):
        return (f"{path} {_changed(path)}",)
    with os.scandir(path) as names:
        below = [item for item in names if not item.name.startswith("__") or item.name == "__init__.py"]
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
