"""Files of another machine, read through SFTP."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from tracetui.sources.base import (
    HEAD_SIZE,
    SQLITE_MAGIC,
    Closing,
    Entry,
    File,
    Folder,
    LinkLost,
    Stat,
    beside,
    reason_of,
    refuse_large,
)
from tracetui.sources.folders import AT_ONCE, Folders, answer
from tracetui.sources.mirror import Copy, Mirror
from tracetui.sources.packed import unpacked
from tracetui.sources.recall import EDGE, Recall
from tracetui.sources.sftp import Attributes, Client
from tracetui.sources.ssh import Host, Link, join, parent, path_there

if TYPE_CHECKING:
    from sqlite3 import Connection

    from tracetui.sources.sqlite_copy import CopyCache

FIRST_BATCH: Final = 16
"""Files of which head and end are fetched at once, before the first of them is handed out; then twice as many."""
BATCH: Final = 64
BATCH_BYTES: Final = 2 << 20
"""So much may be on the way before what another thread asks for."""
FRESH_SECONDS: Final = 3.0
"""How long the stat that came with such a batch is good for the one who opens the file next."""


class RemoteFile(Closing):
    """A regular file; see `tracetui.sources.base.File`. It ends where its `stat` says: what grows later is left out."""

    __slots__ = ("_copy", "_handle", "_head", "_memo", "_others", "_source", "_stat", "_tables", "path")

    def __init__(self, source: SshSource, path: str, stat: Stat | None = None) -> None:
        self.path = path
        self._source = source
        self._stat = stat
        self._handle: tuple[Client, bytes] | None = None
        self._head: bytes | None = None
        self._memo: dict[str, Any] | None = None
        self._tables: frozenset[str] | None = None
        self._others: list[tuple[str, float]] = []
        self._copy: Copy | None = None
        """Held for as long as the file is open: whether it changed is asked once, and it is not removed meanwhile."""

    @property
    def name(self) -> str:
        return self.path[len(parent(self.path)) :].lstrip("/")

    @property
    def memo(self) -> dict[str, Any]:
        if self._memo is None:
            self._memo = {}
        return self._memo

    @property
    def stat(self) -> Stat:
        if self._stat is None:
            self._stat = self._source.stat(self.path)
        return self._stat

    @property
    def moving(self) -> bool:
        recall = self._source.recall
        if recall.is_moving(self.path, self.stat.mtime) or any(recall.is_moving(*one) for one in self._others):
            return True
        if not self.head.startswith(SQLITE_MAGIC):
            return False
        with suppress(FileNotFoundError):  # a live database grows in its log
            return recall.is_moving(self.path + "-wal", self._source.stat(self.path + "-wal").mtime)
        return False

    @property
    def head(self) -> bytes:
        if self._head is None:
            self._head = self.read(0, HEAD_SIZE)
        return self._head

    def read(self, offset: int, size: int) -> bytes:
        stat, recall = self.stat, self._source.recall
        size = min(size, stat.size - offset)
        if size <= 0:
            return b""
        self._check()
        known = recall.kept(self.path, stat, offset, size)
        if not known:
            return self._fetched([(offset, size)])[0]
        gaps = list(_gaps(known, offset, size))
        new = self._fetched(gaps) if gaps else []
        parts = sorted([*known, *((start, data) for (start, _), data in zip(gaps, new, strict=True))])
        return b"".join(_unbroken(parts, offset))

    def read_all(self) -> bytes:
        refuse_large(self.stat.size)
        return self.read(0, self.stat.size)

    def next_data(self, offset: int) -> int:
        return offset

    def sibling(self, name: str) -> str | None:
        path = join(parent(self.path), name)
        try:
            return path if "/" not in name and self._source.stat(path) is not None else None
        except LinkLost:
            raise
        except (OSError, ValueError):
            return None

    def folder(self, path: str = "") -> Folder:
        try:
            at, ways = beside(self.path, path, parent, join)
            real = all(self._source.client().look(path_there(way))().is_folder for way in ways)
            return self._source.list(at) if real else Folder()
        except LinkLost:
            raise
        except (OSError, ValueError):
            return Folder()

    def other(self, path: str, stat: Stat | None = None) -> File:
        at = beside(self.path, path, parent, join)[0]
        if stat is not None:
            self._others.append((at, stat.mtime))
        return unpacked(RemoteFile(self._source, at, stat))

    @property
    def tables(self) -> frozenset[str]:
        if self._tables is None:
            from tracetui.sources import sqlite

            is_database = self.head.startswith(SQLITE_MAGIC)
            self._tables = frozenset()
            if is_database:
                self._tables = sqlite.tables(*self._copied())
        return self._tables

    @contextmanager
    def database(self) -> Iterator[Connection]:
        from tracetui.sources import sqlite

        with sqlite.connect(*self._copied()) as connection:
            yield connection

    def _copied(self) -> tuple[str, CopyCache, str]:
        """A copy of the database, for `sqlite.connect`."""
        if self._copy is None:
            self._copy = self._source.copy(self.path)
        return self._copy.file, self._source.copies, self.path

    def close(self) -> None:
        self._copy = None
        if self._handle is not None:
            (client, handle), self._handle = self._handle, None
            with suppress(LinkLost):
                client.close(handle)

    def _fetched(self, spans: list[tuple[int, int]]) -> list[bytes]:
        """Read ranges at once, and keep what came."""
        client, handle = self._opened()
        asked = [client.read(handle, *span) for span in spans]
        data = [answer() for answer in asked]
        for (offset, _), piece in zip(spans, data, strict=True):
            self._source.recall.keep(self.path, self.stat, offset, piece)
        return data

    def _opened(self) -> tuple[Client, bytes]:
        if self._handle is None or self._handle[0].channel.broken:
            self.stat  # noqa: B018 — a FIFO must not be opened: the other side would wait for ever
            client = self._source.client()
            self._handle = client, client.open(path_there(self.path))()
        return self._handle

    def _check(self) -> None:
        """If the file grew, see whether it is still the same; what is new comes in the same round trip."""
        recall, stat = self._source.recall, self.stat
        doubt = recall.doubt(self.path, stat)
        if doubt is None:
            return
        client, handle = self._opened()
        start, size = doubt.tail
        new = min(stat.size - start - size, EDGE)
        first, last = client.read(handle, *doubt.head), client.read(handle, start, size + new)
        head, tail = first(), last()
        recall.settle(self.path, stat, head, tail[:size])
        recall.keep(self.path, stat, start + size, tail[size:])


class SshSource:
    """The files of one machine; see `tracetui.sources.base.Source`. Paths are written as the user wrote the place.

    `LinkLost` is raised while the link is down; trying again later is all that is needed. Close it at the end.
    """

    def __init__(self, host: Host) -> None:
        self._link = Link(host)
        self._mirror = Mirror()
        self._fresh: dict[str, tuple[Stat, float]] = {}
        self.recall = Recall()
        self._folders = Folders(self.recall)

    @property
    def received(self) -> int:
        """Bytes that came from the other side."""
        return self._link.received

    def client(self) -> Client:
        """The connection. Raises `LinkLost`."""
        return self._link.client()

    def close(self) -> None:
        """End the connection, and remove the copies of databases."""
        self._link.close()
        self._mirror.close()

    def stat(self, path: str) -> Stat:
        """The stat of a regular file. Raises `OSError` if there is none."""
        stat, when = self._fresh.pop(path, (None, 0.0))
        if stat is not None and time.monotonic() - when < FRESH_SECONDS:
            return stat
        found = self.client().look(path_there(path))()
        if not found.is_file:
            raise OSError(f"not a regular file: {path}")
        return self._saw(path, found)

    def is_folder(self, path: str) -> bool:
        """True if there is a folder at `path`; a link to one counts. Raises `LinkLost`."""
        try:
            return self.client().look(path_there(path), follow=True)().is_folder
        except FileNotFoundError:
            return False

    def is_file(self, path: str) -> bool:
        """True if there is a regular file at `path`. Raises `LinkLost`."""
        try:
            return self.client().look(path_there(path), follow=True)().is_file
        except LinkLost:
            raise
        except OSError:
            return False

    @property
    def copies(self) -> CopyCache:
        """The mirrored databases with their logs folded in."""
        return self._mirror.folded

    def copy(self, path: str) -> Copy:
        """A consistent copy of a database on this machine."""
        return self._mirror.take(self.client(), path_there(path))

    def local_path(self, path: str) -> str | None:
        return None

    def open(self, path: str, stat: Stat | None = None) -> File:
        return unpacked(RemoteFile(self, path, stat))

    def list(self, path: str) -> Folder:
        client = self.client()
        if self._folders.is_expected(path):
            return self._folders.list(client, path, watched=True)
        asked = client.look(path_there(path), follow=True)
        try:
            folder = self._folders.list(client, path, watched=True)
        except LinkLost:
            raise
        except OSError:
            found = asked()
            if found.is_folder:
                raise
            self._saw(path, found, watched=True)
            return Folder([self._named(path, found)], [])
        asked()
        return folder

    def expect(self, paths: Sequence[str]) -> None:
        self._folders.expect(self.client(), paths)

    def walk(self, root: str) -> Iterator[Entry]:
        try:
            found = self.client().look(path_there(root), follow=True)()
        except LinkLost:
            raise
        except OSError as error:
            yield Entry(root, skipped=reason_of(error), failed=True)
            return
        if not found.is_folder:
            yield self._named(root, found)
            return
        folders = [root]
        size = FIRST_BATCH
        while folders:
            group, folders = folders[: -AT_ONCE - 1 : -1], folders[:-AT_ONCE]
            entries: list[Entry] = []
            below: list[str] = []
            self.expect(group)
            for path in group:
                try:
                    folder = self._folders.list(self.client(), path)
                except LinkLost:
                    raise
                except OSError as error:
                    yield Entry(path, skipped=reason_of(error), failed=True)
                    continue
                entries.extend(folder.entries)
                below.extend(sorted(folder.folders))
            for batch in _batches(entries, size):
                yield from self._ready(batch)
                size = BATCH
            folders.extend(reversed(below))

    def _saw(self, path: str, found: Attributes, *, watched: bool = False) -> Stat:
        return self.recall.saw(path, found.size, found.mtime, watched=watched)

    def _named(self, path: str, found: Attributes) -> Entry:
        return Entry(path, self._saw(path, found)) if found.is_file else Entry(path, skipped="not a regular file")

    def _ready(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """The same entries, with head and end of these files at hand: two round trips for all of them.

        What cannot be had is left to the one who reads the file, and finds out why.
        """
        client = self.client()
        asked = []
        for i, opened in [(i, client.open(path_there(one.path))) for i, one in enumerate(entries) if self._lacks(one)]:
            handle = answer(opened)
            if handle is not None:
                edges = [(offset, client.read(handle, offset, size)) for offset, size in _edges(entries[i])]
                asked.append((i, client.look_at(handle), edges))
                client.close(handle)
        self._fresh.clear()
        ready = dict(enumerate(entries))
        for i, look, edges in asked:
            found, path = answer(look), entries[i].path
            if found is None or not found.is_file:
                continue
            stat = self._saw(path, found)
            for offset, read in edges:
                self.recall.keep(path, stat, offset, answer(read) or b"")
            ready[i] = Entry(path, stat)
            self._fresh[path] = stat, time.monotonic()
        yield from ready.values()

    def _lacks(self, entry: Entry) -> bool:
        """True if nothing is kept of a file that will be read."""
        if entry.skipped is not None or entry.stat is None or not entry.stat.size:
            return False
        return not self.recall.kept(entry.path, entry.stat, 0, 1)


def _batches(entries: list[Entry], size: int) -> Iterator[list[Entry]]:
    """Entries in batches, none of them with more than `BATCH_BYTES` to fetch."""
    batch: list[Entry] = []
    left = BATCH_BYTES
    for entry in entries:
        left -= sum(length for _, length in _edges(entry))
        if len(batch) >= size or (left < 0 and batch):
            yield batch
            batch, left, size = [], BATCH_BYTES, BATCH
        batch.append(entry)
    if batch:
        yield batch


def _edges(entry: Entry) -> list[tuple[int, int]]:
    """Head and end of a file that will be read, as (offset, size)."""
    if entry.skipped is not None or entry.stat is None:
        return []
    size = entry.stat.size
    end = max(HEAD_SIZE, size - EDGE)
    return [(0, min(size, HEAD_SIZE)), *([(end, size - end)] if size > end else [])]


def _gaps(known: list[tuple[int, bytes]], offset: int, size: int) -> Iterator[tuple[int, int]]:
    """What the pieces leave out of a range, as (offset, size)."""
    at = offset
    for start, data in known:
        if start > at:
            yield at, start - at
        at = start + len(data)
    if at < offset + size:
        yield at, offset + size - at


def _unbroken(parts: list[tuple[int, bytes]], offset: int) -> Iterator[bytes]:
    """The pieces up to the first that is missing: the file was cut off there."""
    for start, data in parts:
        if start != offset:
            return
        yield data
        offset += len(data)
