"""Record all that a reading depends on besides the bytes of its file, so that its result may be reused.

A run may depend on other files, on its folder, and on the time. `ObservedFile` records each answer that
the source gave; the result may be reused as long as the source would give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tracetui.sources.base import (
    MOVING_SECONDS,
    SQLITE_MAGIC,
    TICK_NS,
    Entry,
    File,
    FileView,
    Folder,
    LinkLost,
    Source,
    Stat,
)

if TYPE_CHECKING:
    from sqlite3 import Connection

FILE, SIBLING, FOLDER = "file", "sibling", "folder"
"""Kinds of questions: the stat of a file (None: it can't be opened), whether a sibling exists, the digest of a folder.
"""
_OBSERVED: Final = "observed"
"""Key in the `memo` of an observed file: its `Observations`."""
_LOGS: Final = ("-wal", "-journal")
_T = TypeVar("_T")

Answer = bool | bytes | Stat | None
Question = tuple[str, str, str]
"""Kind (`FILE`, `SIBLING`, `FOLDER` or one of the caller's own), path of a file, and a path relative to its folder."""


class Observations:
    """The answers of a source to one reading. Used by one thread."""

    def __init__(self) -> None:
        self.answers: dict[Question, Answer] = {}
        self.asked_moving = False
        """Whether the reading asked if a file is changing."""
        self.moving = False
        """Whether one was, so that the result depends on the time."""
        self.failed = False
        """Whether the reading failed for a reason that may pass, such as a lack of memory or of permission."""

    def add(self, kind: str, path: str, relative: str, answer: Answer) -> None:
        """Record an answer. A different answer to the same question means that something changed meanwhile."""
        question = (kind, path, relative)
        self.failed |= self.answers.setdefault(question, answer) != answer

    @contextmanager
    def part(self) -> Iterator[Observations]:
        """Record into other `Observations` meanwhile, and add those at the end."""
        outer, inner = vars(self).copy(), Observations()
        vars(self).update(vars(inner))
        try:
            yield inner
        finally:
            vars(inner).update(vars(self))
            vars(self).update(outer)
            self.repeat(inner)

    def repeat(self, earlier: Observations) -> None:
        """Add the answers that an earlier reading got."""
        for question, answer in earlier.answers.items():
            self.add(*question, answer)
        self.asked_moving |= earlier.asked_moving
        self.moving |= earlier.moving
        self.failed |= earlier.failed


def observations_of(file: File) -> Observations | None:
    """Return the observations of the reading that `file` is part of; None if it isn't observed."""
    found: Observations | None = file.memo.get(_OBSERVED)
    return found


def observe(file: File, observations: Observations | None) -> File:
    """Return the file with all answers recorded; as is without `observations`."""
    if observations is None:
        return file
    observations.add(FILE, file.path, "", stat_of(file))
    return ObservedFile(file, observations)


def shared(file: File, cache: dict[Any, Any], key: Hashable, make: Callable[[], _T]) -> _T:
    """Return ``cache[key]``, a value that several readings share; `make` it if it isn't there.

    Each reading that uses the value depends on what it was made from.
    """
    observations = observations_of(file)
    found: tuple[_T, Observations | None] | None = cache.get(key)
    if found is not None and observations is None:
        return found[0]
    if found is not None and observations is not None and found[1] is not None:
        observations.repeat(found[1])
        return found[0]
    if observations is None:
        value, inner = make(), None
    else:
        with observations.part() as inner:
            value = make()
    cache[key] = value, inner
    return value


def settled_at(stat: Stat, began_ns: int) -> bool:
    """Whether a change after `began_ns` must show in the stat of a file that was read then.

    A file that changed in the same tick of the clock as it was read may have changed after that. Without a ctime, only
    files that had not changed for long are trusted (`base.cacheable`).
    """
    if stat.ctime_ns:
        return began_ns - max(stat.mtime_ns, stat.ctime_ns) > TICK_NS
    return began_ns / 1e9 - stat.mtime > MOVING_SECONDS


class ObservedFile(FileView):
    """A file that records every question to it and to the files opened through it. See `File`."""

    __slots__ = ("_logs_seen", "_observations")

    def __init__(self, file: File, observations: Observations) -> None:
        super().__init__(file)
        self._observations = observations
        self._logs_seen = False
        file.memo[_OBSERVED] = observations

    @property
    def stat(self) -> Stat:
        return self._file.stat

    @property
    def moving(self) -> bool:
        moving = self._file.moving
        self._observations.asked_moving = True
        self._observations.moving |= moving
        return moving

    @property
    def head(self) -> bytes:
        try:
            return self._file.head
        except OSError:
            self._failed()
            raise

    def read(self, offset: int, size: int) -> bytes:
        try:
            return self._file.read(offset, size)
        except OSError:
            self._failed()
            raise

    def read_all(self) -> bytes:
        try:
            return self._file.read_all()
        except OSError:
            self._failed()
            raise

    @property
    def tables(self) -> frozenset[str]:
        self._see_logs()
        try:
            return self._file.tables
        except OSError:
            self._failed()
            raise

    def database(self) -> AbstractContextManager[Connection]:
        self._see_logs()
        return self._file.database()

    def sibling(self, name: str) -> str | None:
        found = self._file.sibling(name)
        self._observations.add(SIBLING, self.path, name, found is not None)
        return found

    def folder(self, path: str = "") -> Folder:
        found = self._file.folder(path)
        self._observations.add(FOLDER, self.path, path, digest(found))
        return found

    def other(self, path: str, stat: Stat | None = None) -> File:
        other = self._file.other(path, stat)
        if stat is None:
            return observe(other, self._observations)
        self._observations.add(FILE, other.path, "", stat)
        return ObservedFile(other, self._observations)

    def _see_logs(self) -> None:
        """Record the logs of a database, which its contents depend on."""
        if not self._logs_seen and self.head.startswith(SQLITE_MAGIC):
            self._logs_seen = True
            for log in _LOGS:
                self.other(self._file.name + log)

    def _failed(self) -> None:
        """Record a failure, unless the file was found to be missing."""
        self._observations.failed |= self._observations.answers.get((FILE, self.path, ""), True) is not None


class ObservedSource:
    """A source that records every question to its files; see `tracetui.sources.base.Source`."""

    def __init__(self, source: Source, observations: Observations) -> None:
        self._source, self._observations = source, observations

    def open(self, path: str, stat: Stat | None = None) -> File:
        return observe(self._source.open(path, stat), self._observations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def stat_of(file: File) -> Stat | None:
    """Return the stat of the file itself, not of what it unpacks to; None if it can't be opened. Raises `LinkLost`."""
    while isinstance(file, FileView):
        file = file._file
    try:
        return file.stat
    except LinkLost:
        raise
    except OSError:
        return None


def digest(folder: Folder) -> bytes:
    """Return a fingerprint of a listing: names, kinds and stats."""
    rows = sorted((one.path, one.skipped or "", _numbers(one)) for one in folder.entries)
    return blake2b(repr((rows, sorted(folder.folders))).encode(), digest_size=12).digest()


def _numbers(entry: Entry) -> tuple[int, ...]:
    stat = entry.stat
    return () if stat is None else (stat.device, stat.inode, stat.size, stat.mtime_ns, stat.ctime_ns)


def ask(source: Source, question: Question) -> Answer:
    """Return the current answer of `source` to a question of one of the kinds here. Raises `LinkLost` or `OSError`."""
    kind, path, relative = question
    with source.open(path) as file:
        if kind == FILE:
            return stat_of(file)
        return file.sibling(relative) is not None if kind == SIBLING else digest(file.folder(relative))
