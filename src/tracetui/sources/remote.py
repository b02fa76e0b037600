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
    Entry,
    File,
    Folder,
    LinkLost,
    Stat,
    left_out,
    reason_of,
)
from tracetui.sources.remote_cache import EDGE, Recall
from tracetui.sources.remote_database import Copy, Mirror
from tracetui.sources.remote_file import RemoteFile
from tracetui.sources.sftp import Attributes, Client
from tracetui.sources.ssh import Host, Link, join, path_there
from tracetui.sources.zstd import unpacked

if TYPE_CHECKING:
    from tracetui.sources.sqlite import CopyCache


FIRST_BATCH: Final = 16
"""Files of which head and end are fetched at once, before the first of them is handed out; then twice as many."""
BATCH: Final = 64
BATCH_BYTES: Final = 2 << 20
"""So much may be on the way before what another thread asks for."""
FRESH_SECONDS: Final = 3.0
"""How long the stat that came with such a batch is good for the one who opens the file next."""
AT_ONCE: Final = 32
"""Folders that are asked for at once."""
_Names = Iterator[tuple[str, Attributes]]
_T = TypeVar("_T")


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


def _leads_to_file(asked: Callable[[], Attributes]) -> bool:
    found = answer(asked)
    return found is not None and found.is_file


class Folders:
    """Lists the folders of one machine. Used by any thread."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall
        self._expected: dict[str, _Expected] = {}

    def expect(self, client: Client, paths: Sequence[str]) -> None:
        """These folders are listed next, in that order: ask for them, unless that was done. Raises `LinkLost`."""
        if not paths or paths[0] in self._expected:
            return
        now = time.monotonic()
        for path in [path for path, one in self._expected.items() if now - one.when > FRESH_SECONDS]:
            _take_rest(self._expected.pop(path))
        missing = [path for path in paths[:AT_ONCE] if path not in self._expected]
        for path, opened in [(path, client.folder(path_there(path))) for path in missing]:
            self._expected[path] = _Expected(client, now, _names(client, path_there(path), opened))

    def list(self, client: Client, path: str, *, watched: bool = False) -> Folder:
        """What is directly below a folder. Raises `OSError`."""
        now = time.monotonic()
        ahead = self._expected.pop(path, None)
        if ahead is not None and (ahead.client is not client or now - ahead.when > FRESH_SECONDS):
            _take_rest(ahead)
            ahead = None
        if ahead is None:
            ahead = _Expected(client, now, _names(client, path_there(path), client.folder(path_there(path))))
        if isinstance(ahead.names, OSError):
            raise ahead.names
        return self._sorted(client, path, ahead.names, asked=ahead.when, watched=watched)

    def is_expected(self, path: str) -> bool:
        """True if the folder was asked for ahead."""
        return path in self._expected

    def _sorted(self, client: Client, path: str, names: _Names, *, asked: float, watched: bool) -> Folder:
        entries: list[Entry] = []
        folders: list[str] = []
        links = []
        for name, found in names:
            below = join(path, name)
            if "/" in name or "\0" in name:
                entries.append(Entry(below, skipped="a name that cannot be", failed=True))
            elif name.startswith("."):
                entries.append(Entry(below, skipped=HIDDEN_FOLDER if found.is_folder else HIDDEN))
            elif found.is_folder:
                folders.append(below)
            elif found.is_link:
                links.append((below, client.look(path_there(below), follow=True)))
            elif not found.is_file:
                entries.append(Entry(below, skipped="not a regular file"))
            else:
                stat = self._recall.saw(below, found.size, found.mtime, watched=watched, asked=asked)
                entries.append(Entry(below, stat, left_out(name)))
        for below, look in links:
            entries.append(Entry(below, skipped="symbolic link, not followed", failed=_leads_to_file(look)))
        return Folder(entries, folders)


class _Expected(msgspec.Struct, frozen=True):
    """One folder that was asked for ahead."""

    client: Client
    when: float
    names: _Names | OSError


def _names(client: Client, there: str, opened: Callable[[], bytes]) -> _Names | OSError:
    """The names in a folder that is being opened, or why there are none. Raises `LinkLost`."""
    try:
        return client.names(opened(), there)
    except LinkLost:
        raise
    except OSError as error:
        return error


def _take_rest(one: _Expected) -> None:
    """Take the answers that nobody wants any more."""
    if not isinstance(one.names, OSError):
        with suppress(OSError):
            for _ in one.names:
                pass


def answer(asked: Callable[[], _T]) -> _T | None:
    """What was asked for; None if it is refused. Raises `LinkLost`."""
    try:
        return asked()
    except LinkLost:
        raise
    except OSError:
        return None
