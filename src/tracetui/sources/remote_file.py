"""A file of another machine, read through SFTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from tracetui.sources.base import SQLITE_MAGIC, File, Folder, LinkLost, Stat, resolve_relative
from tracetui.sources.fetched_file import FetchedFile
from tracetui.sources.remote_cache import EDGE
from tracetui.sources.remote_database import MirroredDatabase
from tracetui.sources.sftp import Client
from tracetui.sources.ssh import join, parent, remote_path
from tracetui.sources.zstd import unpacked

if TYPE_CHECKING:
    from tracetui.sources.remote import SshSource
    from tracetui.sources.sqlite import CopyCache


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
