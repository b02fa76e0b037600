"""A source of the files of another machine, read through SFTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from tracetui.sources.base import (
    HEAD_SIZE,
    HIDDEN,
    HIDDEN_FOLDER,
    SQLITE_MAGIC,
    Entry,
    FetchedFile,
    File,
    Folder,
    LinkLost,
    Stat,
    reason_of,
    resolve_relative,
    skip_reason,
)
from tracetui.sources.file_views import unpacked
from tracetui.sources.remote_cache import EDGE, DatabaseMirror, MirroredDatabase, RemoteCache
from tracetui.sources.sftp import Attributes, Client
from tracetui.sources.ssh import Host, Link, join, parent, remote_path

if TYPE_CHECKING:
    from tracetui.sources.sqlite import CopyCache

FIRST_BATCH: Final = 16
"""Files with heads and ends fetched together before the first is yielded; then twice as many."""
BATCH: Final = 64
BATCH_BYTES: Final = 2 << 20
"""Bytes in flight before another thread's request."""
FRESH_SECONDS: Final = 3.0
"""Lifetime of a prefetched stat or listing."""
PREFETCH: Final = 32
"""Folders requested at once."""
_Names = Iterator[tuple[str, Attributes]]
_T = TypeVar("_T")


class SshSource:
    """Files of one machine; see `tracetui.sources.base.Source`. Paths are written like the user's.

    Raises `LinkLost` while the connection is down; just try again later. Close it at the end.
    """

    def __init__(self, host: Host) -> None:
        self._link = Link(host)
        self._databases = DatabaseMirror()
        self._fresh: dict[str, tuple[Stat, float]] = {}
        self.cache = RemoteCache()
        self._folders = Folders(self.cache)

    @property
    def received(self) -> int:
        """Bytes received."""
        return self._link.received

    def client(self) -> Client:
        """Return the connection. Raises `LinkLost`."""
        return self._link.client()

    def connect(self) -> None:
        """Connect, unless connected. Raises `LinkLost`."""
        self.client()

    def close(self) -> None:
        """Close the connection, and delete database copies."""
        self._link.close()
        self._databases.close()

    def stat(self, path: str) -> Stat:
        """Return the stat of a regular file. Raises `OSError` if there is none."""
        stat, when = self._fresh.pop(path, (None, 0.0))
        if stat is not None and time.monotonic() - when < FRESH_SECONDS:
            return stat
        found = self.client().look(remote_path(path))()
        if not found.is_file:
            raise OSError(f"not a regular file: {path}")
        return self._observe(path, found)

    def is_folder(self, path: str) -> bool:
        """True if there is a folder at `path`, or a link to one. Raises `LinkLost`."""
        try:
            return self.client().look(remote_path(path), follow=True)().is_folder
        except FileNotFoundError:
            return False

    def is_file(self, path: str) -> bool:
        """True if there is a regular file at `path`. Raises `LinkLost`."""
        try:
            return self.client().look(remote_path(path), follow=True)().is_file
        except LinkLost:
            raise
        except OSError:
            return False

    @property
    def copies(self) -> CopyCache:
        """Database copies with their logs merged in."""
        return self._databases.merged

    def copy(self, path: str) -> MirroredDatabase:
        """Make a consistent local copy of a database."""
        return self._databases.take(self.client(), remote_path(path))

    def local_path(self, path: str) -> str | None:
        return None

    def open(self, path: str, stat: Stat | None = None) -> File:
        return unpacked(RemoteFile(self, path, stat))

    def list(self, path: str) -> Folder:
        client = self.client()
        if self._folders.is_prefetched(path):
            return self._folders.list(client, path, watched=True)
        asked = client.look(remote_path(path), follow=True)
        try:
            folder = self._folders.list(client, path, watched=True)
        except LinkLost:
            raise
        except OSError:
            found = asked()
            if found.is_folder:
                raise
            self._observe(path, found, watched=True)
            return Folder([self._named(path, found)], [])
        asked()
        return folder

    def prefetch(self, paths: Sequence[str]) -> None:
        self._folders.prefetch(self.client(), paths)

    def walk(self, root: str) -> Iterator[Entry]:
        try:
            found = self.client().look(remote_path(root), follow=True)()
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
            group, folders = folders[: -PREFETCH - 1 : -1], folders[:-PREFETCH]
            entries: list[Entry] = []
            below: list[str] = []
            self.prefetch(group)
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
                yield from self._prefetch_edges(batch)
                size = BATCH
            folders.extend(reversed(below))

    def _observe(self, path: str, found: Attributes, *, watched: bool = False) -> Stat:
        return self.cache.observe(path, found.size, found.mtime, watched=watched)

    def _named(self, path: str, found: Attributes) -> Entry:
        return Entry(path, self._observe(path, found)) if found.is_file else Entry(path, skipped="not a regular file")

    def _prefetch_edges(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Prefetch head and end of these files in two round trips, and yield their entries.

        Errors are left to whoever reads the file.
        """
        client = self.client()
        missing = [i for i, one in enumerate(entries) if self._is_uncached(one)]
        asked = []
        for i, opened in [(i, client.open(remote_path(entries[i].path))) for i in missing]:
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
            stat = self._observe(path, found)
            for offset, read in edges:
                self.cache.store(path, stat, offset, answer(read) or b"")
            ready[i] = Entry(path, stat)
            self._fresh[path] = stat, time.monotonic()
        yield from ready.values()

    def _is_uncached(self, entry: Entry) -> bool:
        """Whether a file to read has no cached bytes."""
        if entry.skipped is not None or entry.stat is None or not entry.stat.size:
            return False
        return not self.cache.cached(entry.path, entry.stat, 0, 1)


def _batches(entries: list[Entry], size: int) -> Iterator[list[Entry]]:
    """Split entries into batches with at most `BATCH_BYTES` to fetch each."""
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
    """Return the ranges of head and end of a file to read."""
    if entry.skipped is not None or entry.stat is None:
        return []
    size = entry.stat.size
    end = max(HEAD_SIZE, size - EDGE)
    return [(0, min(size, HEAD_SIZE)), *([(end, size - end)] if size > end else [])]


def _leads_to_file(asked: Callable[[], Attributes]) -> bool:
    found = answer(asked)
    return found is not None and found.is_file


class Folders:
    """Lists the folders of one machine, with prefetching. Thread-safe."""

    def __init__(self, cache: RemoteCache) -> None:
        self._cache = cache
        self._prefetched: dict[str, _Prefetched] = {}

    def prefetch(self, client: Client, paths: Sequence[str]) -> None:
        """Request folders that are listed next, in that order, unless already requested. Raises `LinkLost`."""
        if not paths or paths[0] in self._prefetched:
            return
        now = time.monotonic()
        for path in [path for path, one in self._prefetched.items() if now - one.when > FRESH_SECONDS]:
            _drain(self._prefetched.pop(path))
        missing = [path for path in paths[:PREFETCH] if path not in self._prefetched]
        for path, opened in [(path, client.folder(remote_path(path))) for path in missing]:
            self._prefetched[path] = _Prefetched(client, now, _names(client, remote_path(path), opened))

    def list(self, client: Client, path: str, *, watched: bool = False) -> Folder:
        """List a folder. Raises `OSError`."""
        now = time.monotonic()
        ahead = self._prefetched.pop(path, None)
        if ahead is not None and (ahead.client is not client or now - ahead.when > FRESH_SECONDS):
            _drain(ahead)
            ahead = None
        if ahead is None:
            ahead = _Prefetched(client, now, _names(client, remote_path(path), client.folder(remote_path(path))))
        if isinstance(ahead.names, OSError):
            raise ahead.names
        return self._sorted(client, path, ahead.names, asked=ahead.when, watched=watched)

    def is_prefetched(self, path: str) -> bool:
        """True if the folder was prefetched."""
        return path in self._prefetched

    def _sorted(self, client: Client, path: str, names: _Names, *, asked: float, watched: bool) -> Folder:
        entries: list[Entry] = []
        folders: list[str] = []
        links = []
        for name, found in names:
            below = join(path, name)
            if "/" in name or "\0" in name:
                entries.append(Entry(below, skipped="invalid file name", failed=True))
            elif name.startswith("."):
                entries.append(Entry(below, skipped=HIDDEN_FOLDER if found.is_folder else HIDDEN))
            elif found.is_folder:
                folders.append(below)
            elif found.is_link:
                links.append((below, client.look(remote_path(below), follow=True)))
            elif not found.is_file:
                entries.append(Entry(below, skipped="not a regular file"))
            else:
                stat = self._cache.observe(below, found.size, found.mtime, watched=watched, asked=asked)
                entries.append(Entry(below, stat, skip_reason(name)))
        for below, look in links:
            entries.append(Entry(below, skipped="symbolic link, not followed", failed=_leads_to_file(look)))
        return Folder(entries, folders)


class _Prefetched(msgspec.Struct, frozen=True):
    """One prefetched folder."""

    client: Client
    when: float
    names: _Names | OSError


def _names(client: Client, there: str, opened: Callable[[], bytes]) -> _Names | OSError:
    """Return the names in a folder that is being opened, or the error. Raises `LinkLost`."""
    try:
        return client.names(opened(), there)
    except LinkLost:
        raise
    except OSError as error:
        return error


def _drain(one: _Prefetched) -> None:
    """Consume answers that are no longer needed."""
    if not isinstance(one.names, OSError):
        with suppress(OSError):
            for _ in one.names:
                pass


def answer(asked: Callable[[], _T]) -> _T | None:
    """Wait for an answer; return None if the request was refused. Raises `LinkLost`."""
    try:
        return asked()
    except LinkLost:
        raise
    except OSError:
        return None


# ---- files


class RemoteFile(FetchedFile):
    """A regular file of another machine. Growth after its `stat` is left out."""

    __slots__ = ("_copy", "_handle", "_others", "_source")

    def __init__(self, source: SshSource, path: str, stat: Stat | None = None) -> None:
        super().__init__(path, stat)
        self._source = source
        self._handle: tuple[Client, bytes] | None = None
        self._others: list[tuple[str, float]] = []
        self._copy: MirroredDatabase | None = None
        """Held while the file is open: changes are checked once, and the copy stays."""

    @property
    def name(self) -> str:
        return self.path[len(parent(self.path)) :].lstrip("/")

    def _find_stat(self) -> Stat:
        return self._source.stat(self.path)

    @property
    def moving(self) -> bool:
        cache = self._source.cache
        if cache.is_moving(self.path, self.stat.mtime) or any(cache.is_moving(*one) for one in self._others):
            return True
        if not self.head.startswith(SQLITE_MAGIC):
            return False
        with suppress(FileNotFoundError):  # a live database grows in its log
            return cache.is_moving(self.path + "-wal", self._source.stat(self.path + "-wal").mtime)
        return False

    def read(self, offset: int, size: int) -> bytes:
        stat, cache = self.stat, self._source.cache
        size = min(size, stat.size - offset)
        if size <= 0:
            return b""
        self._verify_cache()
        pieces = cache.cached(self.path, stat, offset, size)
        if not pieces:
            return self._fetch([(offset, size)])[0]
        gaps = list(_gaps(pieces, offset, size))
        new = self._fetch(gaps) if gaps else []
        parts = sorted([*pieces, *((start, data) for (start, _), data in zip(gaps, new, strict=True))])
        return b"".join(_contiguous(parts, offset))

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
            at, ways = resolve_relative(self.path, path, parent, join)
            real = all(self._source.client().look(remote_path(way))().is_folder for way in ways)
            return self._source.list(at) if real else Folder()
        except LinkLost:
            raise
        except (OSError, ValueError):
            return Folder()

    def other(self, path: str, stat: Stat | None = None) -> File:
        at = resolve_relative(self.path, path, parent, join)[0]
        if stat is not None:
            self._others.append((at, stat.mtime))
        return unpacked(RemoteFile(self._source, at, stat))

    def _copy_arguments(self) -> tuple[str, CopyCache, str]:
        """Return a copy of the database as arguments of `sqlite.connect`."""
        if self._copy is None:
            self._copy = self._source.copy(self.path)
        return self._copy.file, self._source.copies, self.path

    def close(self) -> None:
        self._copy = None
        if self._handle is not None:
            (client, handle), self._handle = self._handle, None
            with suppress(LinkLost):
                client.close(handle)

    def _fetch(self, spans: list[tuple[int, int]]) -> list[bytes]:
        """Read several ranges at once, and cache them."""
        client, handle = self._opened()
        asked = [client.read(handle, *span) for span in spans]
        data = [answer() for answer in asked]
        for (offset, _), piece in zip(spans, data, strict=True):
            self._source.cache.store(self.path, self.stat, offset, piece)
        return data

    def _opened(self) -> tuple[Client, bytes]:
        if self._handle is None or self._handle[0].channel.broken:
            self.stat  # noqa: B018 — a FIFO must not be opened: the other side would wait for ever
            client = self._source.client()
            self._handle = client, client.open(remote_path(self.path))()
        return self._handle

    def _verify_cache(self) -> None:
        """If the file grew, verify its cached bytes; new data comes in the same round trip."""
        cache, stat = self._source.cache, self.stat
        doubt = cache.probe(self.path, stat)
        if doubt is None:
            return
        client, handle = self._opened()
        start, size = doubt.tail
        new = min(stat.size - start - size, EDGE)
        first, last = client.read(handle, *doubt.head), client.read(handle, start, size + new)
        head, tail = first(), last()
        cache.resolve(self.path, stat, head, tail[:size])
        cache.store(self.path, stat, start + size, tail[size:])


def _gaps(pieces: list[tuple[int, bytes]], offset: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range that the pieces don't cover."""
    at = offset
    for start, data in pieces:
        if start > at:
            yield at, start - at
        at = start + len(data)
    if at < offset + size:
        yield at, offset + size - at


def _contiguous(parts: list[tuple[int, bytes]], offset: int) -> Iterator[bytes]:
    """Yield the pieces up to the first gap: the file was truncated there."""
    for start, data in parts:
        if start != offset:
            return
        yield data
        offset += len(data)
