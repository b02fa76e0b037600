"""Views of files: decompressed (``.jsonl.zst``), up to a byte, with reads charged to a budget, or with a record of all
that a reading depends on.

A run may depend on other files, on its folder, and on the time. `ObservedFile` records each answer that
the source gave; the result may be reused as long as the source would give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from tracetui.errors import FormatError
from tracetui.sources.base import (
    BUDGET,
    CACHE,
    HEAD_SIZE,
    MOVING_SECONDS,
    SQLITE_MAGIC,
    TICK_NS,
    BudgetSpent,
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


_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SUFFIX: Final = ".zst"
_NAME: Final = ".jsonl" + _SUFFIX
_WINDOW: Final = 128 << 20
"""Largest window of a Zstandard frame in bytes."""
_PIECE: Final = 4 << 20
_BEGIN: Final = 1 << 20
"""Compressed bytes read for the head."""
MAX_UNPACKED: Final = 256 << 20
"""Largest decompressed size. The file contains lines, decoded one by one: reading it takes twice as much."""
MAX_RATIO: Final = 1_000
"""Largest compression ratio: text never exceeds it."""
_LEAST: Final = 4 << 20
"""Decompressed size that any file may have, whatever its ratio."""
_CACHE_KEY: Final = "unpacked"
_MAX_CACHED: Final = 16 << 20
"""Largest decompressed file to cache between bodies of its run."""


def unpacked(file: File) -> File:
    """Return the contents of a compressed file, with its path, and its name without ``.zst``; any other file as is."""
    return UnpackedFile(file) if is_packed(file) else file


def is_packed(file: File) -> bool:
    """Whether a file is compressed: its head is cheap, and more of it costs all of it."""
    return file.path.endswith(_NAME)


def readable(file: File, begin: Callable[[], bytes] | None = None) -> File:
    """`unpacked`, and JSON lines in UTF-16 as UTF-8: PowerShell writes text so by default.

    `begin` reads the first four bytes; without it they are those of the head.
    """
    if file.path.endswith(".jsonl"):
        try:
            if encoding := utf16_of(file.head if begin is None else begin()):
                return Utf8File(file, encoding)
        except OSError:  # whoever reads it gets the error
            pass
        return file
    return unpacked(file)


def utf16_of(head: bytes) -> str | None:
    """The codec of a text in UTF-16, None for other texts: by its byte-order mark, else by the zero bytes of its first
    two characters, which are ASCII in JSON (RFC 4627 §3).
    """
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = [byte == 0 for byte in head[:4]]
    return "utf-16-le" if zeros == [False, True] * 2 else "utf-16-be" if zeros == [True, False] * 2 else None


class UnpackedFile(FileView):
    """See `tracetui.sources.base.File`. Decompressed as a whole on first use; raises `OSError` if that fails.

    The size in its `stat` is the decompressed one.
    """

    __slots__ = ("_data", "_head")

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._data: bytes | None = None
        self._head: bytes | None = None

    @property
    def name(self) -> str:
        return self._file.name.removesuffix(_SUFFIX)

    @property
    def stat(self) -> Stat:
        return msgspec.structs.replace(self._file.stat, size=len(self._all()))

    @property
    def head(self) -> bytes:
        if self._data is None and self._head is None:  # most files are only checked, and are not traces
            packed = self._file.read(0, _BEGIN)
            self._head = _unpacked(packed, HEAD_SIZE)
        return self._head if self._data is None and self._head is not None else self._all()[:HEAD_SIZE]

    def read(self, offset: int, size: int) -> bytes:
        data = self.head if offset + size <= len(self.head) else self._all()
        return data[offset : offset + size]

    def read_all(self) -> bytes:
        return self._all()

    def next_data(self, offset: int) -> int:
        return offset

    @property
    def tables(self) -> frozenset[str]:
        return frozenset()

    def database(self) -> AbstractContextManager[Connection]:
        raise OSError("a compressed file is not a database")

    def close(self) -> None:
        self._data = self._head = None
        super().close()

    def _all(self) -> bytes:
        if self._data is None:
            shared, stat = self.memo.get(CACHE, {}), self._file.stat
            cached = shared.get(_CACHE_KEY)
            if cached is not None and cached[:2] == (self.path, stat):
                self._data = cached[2]
            else:
                self._data = _unpack(self._file)
                if len(self._data) <= _MAX_CACHED:
                    shared[_CACHE_KEY] = (self.path, stat, self._data)
        return self._data


class Utf8File(UnpackedFile):
    """A text file in UTF-16, as UTF-8."""

    __slots__ = ("_encoding",)

    def __init__(self, file: File, encoding: str) -> None:
        super().__init__(file)
        self._encoding = encoding

    @property
    def name(self) -> str:
        return self._file.name

    @property
    def head(self) -> bytes:
        return self._all()[:HEAD_SIZE]

    def _all(self) -> bytes:
        if self._data is None:
            size = self._file.stat.size
            if size > MAX_UNPACKED:
                raise OSError(f"not read: {size} bytes in UTF-16, more than {MAX_UNPACKED >> 20} MiB")
            spend(self._file.memo, size)
            self._data = self._file.read_all().decode(self._encoding, "replace").encode()
        return self._data


def _unpack(file: File) -> bytes:
    size = file.stat.size
    most = min(MAX_UNPACKED, max(_LEAST, MAX_RATIO * size))
    if size > most:
        raise OSError(f"not read: {size} bytes, more than {most >> 20} MiB")
    spend(file.memo, size)
    affordable = remaining_budget(file.memo, most)
    data = _unpacked(file.read(0, size), affordable + 1)
    spend(file.memo, len(data))
    if len(data) > most:
        raise OSError(f"not read: decompresses to more than {most >> 20} MiB, too much for a file of {size} bytes")
    return data


def _unpacked(packed: bytes, most: int) -> bytes:
    if packed and not packed.startswith(_MAGIC):
        raise OSError("broken: not a Zstandard file despite its name")
    try:
        return unpack_zstandard(packed, most)
    except FormatError as fault:
        raise OSError(fault.reason) from fault


def unpack_zstandard(packed: bytes, most: int) -> bytes:
    """Decompress the first `most` bytes of one frame or several. Raises `FormatError`."""
    from zstandard import ZstdDecompressor, ZstdError  # 10 ms, and most archives use another method

    try:
        with ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed, read_across_frames=True) as stream:
            return b"".join(_pieces(stream.read, most))
    except ZstdError as fault:
        raise FormatError(f"broken: cannot be decompressed ({fault})") from fault


def _pieces(read: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    """Read at most `most` bytes in pieces, allocated as they come."""
    while most > 0 and (data := read(min(most, _PIECE))):
        yield data
        most -= len(data)


# ---- a byte budget for the list stage, so that no large file keeps others from being listed


LIST_BUDGET: Final = 8 << 20
"""Bytes that the list stage may read of one file and of other files of its run: about 0.1 s of decoding."""
LIST_OPS: Final = 20_000_000
"""SQLite VM steps of all statements of the list stage on one database: about 0.4 s."""
PROGRESS_OPS: Final = 10_000


class Budget:
    """The rest of a budget. `spent` stays True after a refusal, whoever caught `BudgetSpent`."""

    def __init__(self, size: int) -> None:
        self.remaining = size
        self.ops = LIST_OPS
        self.spent = False

    def spend(self, size: int) -> None:
        """Spend `size` bytes. Raises `BudgetSpent` if fewer remain."""
        if size > self.remaining:
            self.spent = True
            raise BudgetSpent
        self.remaining -= size

    def spend_ops(self) -> bool:
        """Spend some SQLite steps; return True if fewer remain."""
        self.ops -= PROGRESS_OPS
        self.spent = self.spent or self.ops < 0
        return self.ops < 0


def spend(memo: dict[str, Any], size: int) -> None:
    """Charge decompressed bytes to the budget of the file with that `memo`, if it has one."""
    budget: Budget | None = memo.get(BUDGET)
    if budget is not None:
        budget.spend(size)


def remaining_budget(memo: dict[str, Any], most: int) -> int:
    """Return the bytes that remain in the budget of the file with that `memo`, at most `most`."""
    budget: Budget | None = memo.get(BUDGET)
    return most if budget is None else min(most, budget.remaining)


def is_spent(file: File) -> bool:
    """Whether a read of `file` was refused."""
    budget: Budget | None = file.memo.get(BUDGET)
    return budget is not None and budget.spent


class BudgetedFile(FileView):
    """A file with reads charged to one budget, as are those of files opened through it. Heads are free."""

    __slots__ = ("_budget", "_free")

    def __init__(self, file: File, budget: Budget, *, free: int = HEAD_SIZE) -> None:
        """Reads of the first `free` bytes are free too."""
        super().__init__(file)
        self._budget, self._free = budget, free
        file.memo[BUDGET] = budget

    @property
    def stat(self) -> Stat:
        return self._file.stat

    @property
    def head(self) -> bytes:
        return self._file.head

    def read(self, offset: int, size: int) -> bytes:
        if isinstance(self._file, UnpackedFile):  # it charges the decompressed size
            return self._file.read(offset, size)
        there = max(0, min(size, self.stat.size - offset))
        if offset + there > self._free:
            self._budget.spend(there)
        return self._file.read(offset, size)

    def read_all(self) -> bytes:
        if not isinstance(self._file, UnpackedFile) and self.stat.size > self._free:
            self._budget.spend(self.stat.size)
        return self._file.read_all()

    def other(self, path: str, stat: Stat | None = None) -> File:
        return BudgetedFile(self._file.other(path, stat), self._budget, free=0)

    @property
    def tables(self) -> frozenset[str]:
        self._refuse_copy()
        return self._file.tables

    def database(self) -> AbstractContextManager[Connection]:
        self._refuse_copy()
        return self._limited()

    @contextmanager
    def _limited(self) -> Iterator[Connection]:
        with self._file.database() as connection:
            connection.set_progress_handler(self._budget.spend_ops, PROGRESS_OPS)
            yield connection

    def _refuse_copy(self) -> None:
        """Refuse a large database with a log: reading it copies all of it."""
        if self.stat.size <= self._budget.remaining or not self.head.startswith(SQLITE_MAGIC):
            return
        for log in ("-wal", "-journal"):
            if self.sibling(self.name + log) is not None:
                self._budget.spend(self.stat.size)


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
    observations: Observations | None = file.memo.get(_OBSERVED)
    return observations


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
    cached: tuple[_T, Observations | None] | None = cache.get(key)
    if cached is not None and observations is None:
        return cached[0]
    if cached is not None and observations is not None and cached[1] is not None:
        observations.repeat(cached[1])
        return cached[0]
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
    files that had not changed for long are trusted.
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
        sibling = self._file.sibling(name)
        self._observations.add(SIBLING, self.path, name, sibling is not None)
        return sibling

    def folder(self, path: str = "") -> Folder:
        folder = self._file.folder(path)
        self._observations.add(FOLDER, self.path, path, digest(folder))
        return folder

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


class PrefixSource:
    """A source with files that end at byte `size`, unless None; see `tracetui.sources.base.Source`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size: int | None = None

    def open(self, path: str, stat: Stat | None = None) -> File:
        file = self._source.open(path, stat)
        return file if self.size is None else _PrefixFile(file, self.size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class _PrefixFile(FileView):
    """The first bytes of a file; see `tracetui.sources.base.File`."""

    __slots__ = ("_memo", "_size")

    def __init__(self, file: File, size: int) -> None:
        super().__init__(file)
        self._size = size
        self._memo: dict[str, Any] = {}

    @property
    def memo(self) -> dict[str, Any]:
        return self._memo

    @property
    def stat(self) -> Stat:
        stat = self._file.stat
        return msgspec.structs.replace(stat, size=min(stat.size, self._size))

    @property
    def head(self) -> bytes:
        return self._file.head[: self._size]

    def read(self, offset: int, size: int) -> bytes:
        return self._file.read(offset, min(size, max(0, self._size - offset)))

    def read_all(self) -> bytes:
        return self.read(0, self._size)


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
    rows = sorted((entry.path, entry.skipped or "", _numbers(entry)) for entry in folder.entries)
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
