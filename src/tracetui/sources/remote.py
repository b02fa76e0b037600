"""A source of the files of another machine, read through SFTP.

Stats and bytes of files are cached. SFTP reports size and modification time (whole seconds), but no inode or ctime. So:

* **Stat.** Device and inode are 0. `ctime_ns` is 0 while the second of the modification time may not be over, because
  a later change may then leave the same stat. It becomes `mtime` plus one second once that is certain: the file was
  unchanged for `SETTLED_SECONDS`, or is older than any clock error. Watchers see this as one more change, and read
  again in case they read too early.
* **Same stat.** Cached bytes are used.
* **Grown.** The file counts as an appended log if `PROBE` bytes before its old end, and `PROBE` bytes of its head
  (different ones each time), are unchanged; then its head and old end stay cached, and the rest is read on demand. A
  rewritten document fails this check, since it continues at its old end. A format's fingerprint may come from cached
  bytes; a rewrite that spares all probed bytes is detected some growths later.
* **Any other change.** All of the file is dropped, as is everything read before its second was over. A file that
  grew like a log before is exempt from that, and from the change of `ctime_ns`: reading all of it again would cost too
  much.
"""

from __future__ import annotations

import os
import shutil
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Final, TypeVar

import msgspec

from tracetui.sources.base import (
    HEAD_SIZE,
    HIDDEN,
    HIDDEN_FOLDER,
    MOVING_SECONDS,
    SQLITE_MAGIC,
    BaseFile,
    Entry,
    File,
    Folder,
    LinkLost,
    Stat,
    is_hidden,
    reason_of,
    resolve_relative,
    skip_reason,
)
from tracetui.sources.file_views import readable
from tracetui.sources.sftp import READ_SIZE, Attributes, Client
from tracetui.sources.sqlite import CopyCache, RemoteCopies, RemoteCopy
from tracetui.sources.ssh import Host, Link, join, parent, remote_path

LIMIT: Final = 32 << 20
"""Bytes cached of all files together."""
SETTLED_SECONDS: Final = 2.0
CLOCKS_APART: Final = 3600.0
"""Seconds by which the other machine's clock may be wrong without harm."""
PROBE: Final = 512
EDGE: Final = HEAD_SIZE
"""Bytes cached of the head and of the old end of a file that grew."""
_SECOND: Final = 1_000_000_000
ByteRange = tuple[int, int]
"""Offset and size."""


class Probe(msgspec.Struct, frozen=True):
    """Ranges to read again before cached bytes of a file may be used; answered with `RemoteCache.resolve`."""

    head: ByteRange
    tail: ByteRange


class _CachedFile:
    """Cached state of one file."""

    __slots__ = ("asked", "changed", "is_log", "over", "pieces", "probe", "probe_offset", "seen", "starts", "stat")

    def __init__(self, stat: Stat, now: float) -> None:
        self.stat = stat
        self.seen = now
        """When this state was first seen."""
        self.asked = 0.0
        """When this state was requested."""
        self.changed: float | None = None
        """When a change was last seen."""
        self.is_log = False
        self.over = False
        """Whether bytes read before the second of its mtime was over have been dropped."""
        self.probe: Probe | None = None
        self.probe_offset = 0
        self.starts: list[int] = []
        self.pieces: dict[int, bytes] = {}

    def forget(self) -> int:
        freed = sum(map(len, self.pieces.values()))
        self.starts, self.pieces, self.probe = [], {}, None
        return freed

    def cached(self, offset: int, size: int) -> list[tuple[int, bytes]]:
        """Return the cached pieces of a range, in order."""
        pieces = []
        first = max(0, bisect_right(self.starts, offset) - 1)
        for start in self.starts[first : bisect_left(self.starts, offset + size)]:
            data = self.pieces[start][max(0, offset - start) : offset + size - start]
            if data:
                pieces.append((max(start, offset), data))
        return pieces

    def put(self, offset: int, data: bytes) -> None:
        if offset not in self.pieces:
            self.starts.insert(bisect_left(self.starts, offset), offset)
        self.pieces[offset] = data


class RemoteCache:
    """Shared by all threads that read from one machine."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = Lock()
        self._files: dict[str, _CachedFile] = {}
        self._lru: OrderedDict[str, _CachedFile] = OrderedDict()
        """Files with cached bytes, least recently used first."""
        self._size = 0
        self._clock_offset = 0.0

    def observe(self, path: str, size: int, mtime: int, *, watched: bool = False, asked: float | None = None) -> Stat:
        """Record a stat `asked` for at that time (monotonic; None: now); return the stat to use.

        Only a watcher sees the change when the second is over.
        """
        now = time.monotonic()
        asked = now if asked is None else asked
        stat = Stat(0, 0, size, mtime * _SECOND)
        with self._lock:
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = _CachedFile(self._with_ctime(stat), now)
                file.asked = asked
                return file.stat
            before = file.stat
            if asked < file.asked:  # a later request was answered first
                return before
            file.asked = asked
            same = (before.size, before.mtime_ns) == (size, mtime * _SECOND)
            if same:
                if not (before.ctime_ns or file.is_log or file.over) and now - file.seen >= SETTLED_SECONDS:
                    self._size -= file.forget()
                    file.over = True
                if file.over and watched:
                    file.stat = _completed(before)
                return file.stat
            file.seen = file.changed = now
            file.over = False
            self._clock_offset = mtime - time.time()  # written since the last look: this is the time over there
            stat = self._with_ctime(stat)
            self._start_probe(file, stat)
            file.stat = stat
            return stat

    def _with_ctime(self, stat: Stat) -> Stat:
        return _completed(stat) if time.time() + self._clock_offset - stat.mtime > CLOCKS_APART else stat

    def _start_probe(self, file: _CachedFile, stat: Stat) -> None:
        """Drop, or prepare to verify, the cached bytes after a change."""
        before = file.stat
        grew = stat.size > before.size and stat.mtime_ns >= before.mtime_ns
        if file.probe is not None or not file.pieces or not grew:
            self._size -= file.forget()
            file.is_log = False
            return
        edge = min(EDGE, before.size)
        pieces = [*file.cached(0, edge), *file.cached(max(edge, before.size - EDGE), EDGE)]
        self._size -= file.forget()
        if not pieces or pieces[0][0] != 0 or pieces[-1][0] + len(pieces[-1][1]) != before.size:
            file.is_log = False
            return
        for offset, data in pieces:
            file.put(offset, data)
            self._size += len(data)
        head = len(pieces[0][1])
        first = file.probe_offset % max(1, head)
        size = min(PROBE, head - first)
        file.probe_offset = first + size
        last = min(PROBE, before.size)
        file.probe = Probe((first, size), (before.size - last, last))

    def probe(self, path: str, stat: Stat) -> Probe | None:
        """Return the ranges to verify before `cached` returns anything of that version of the file."""
        with self._lock:
            file = self._files.get(path)
            return file.probe if file is not None and file.stat == stat else None

    def resolve(self, path: str, stat: Stat, head: bytes, tail: bytes) -> None:
        """Answer the probe with the current bytes."""
        with self._lock:
            file = self._files.get(path)
            if file is None or file.stat != stat or file.probe is None:
                return
            probe, file.probe = file.probe, None
            file.is_log = _joined(file.cached(*probe.head)) == head and _joined(file.cached(*probe.tail)) == tail
            if not file.is_log:
                self._size -= file.forget()

    def cached(self, path: str, stat: Stat, offset: int, size: int) -> list[tuple[int, bytes]]:
        """Return the cached pieces of a range, in order: (offset, bytes)."""
        with self._lock:
            file = self._files.get(path)
            if file is None or file.stat != stat or file.probe is not None:
                return []
            if path in self._lru:
                self._lru.move_to_end(path)
            return file.cached(offset, size)

    def store(self, path: str, stat: Stat, offset: int, data: bytes) -> None:
        """Cache bytes, if still of the current version."""
        with self._lock:
            file = self._files.get(path)
            if file is None or file.stat != stat or file.probe is not None or len(data) * 4 > self._limit:
                return
            if not data or file.cached(offset, len(data)):
                return
            file.put(offset, data)
            self._size += len(data)
            self._lru[path] = file
            self._lru.move_to_end(path)
            while self._size > self._limit:
                _, other = self._lru.popitem(last=False)
                self._size -= other.forget()

    def is_moving(self, path: str, mtime: float) -> bool:
        """Whether the file changed recently: by observation, else by its mtime and the other machine's clock."""
        with self._lock:
            file = self._files.get(path)
            if file is not None and file.changed is not None:
                return time.monotonic() - file.changed < MOVING_SECONDS
            return time.time() + self._clock_offset - mtime < MOVING_SECONDS


def _completed(stat: Stat) -> Stat:
    """Return the stat of a file after its last second is over."""
    return msgspec.structs.replace(stat, ctime_ns=stat.mtime_ns + _SECOND)


def _joined(pieces: list[tuple[int, bytes]]) -> bytes:
    return b"".join(data for _, data in pieces)


# ---- consistent copies of databases in a private local folder


PARTS: Final = ("", "-journal", "-wal")
"""Suffixes of a database's files, in copying order."""
_SHARED: Final = "-shm"
"""Shows each commit, even one that leaves the log's size and second unchanged. It is not copied."""
_HEADERS: Final = {"": 100, "-journal": 28, "-wal": 32, _SHARED: 96}
_FRAME: Final = 24
"""Bytes before each page in a log."""
_CHUNK: Final = 4 << 20


class _Part(msgspec.Struct, frozen=True):
    """One existing, non-empty file of a database."""

    stat: Stat
    header: bytes


_State = dict[str, _Part]


class DatabaseMirror(RemoteCopies[_State]):
    """Copies of one machine's databases."""

    def __init__(self) -> None:
        super().__init__()
        self._cache = RemoteCache(0)

    def copy(self, client: Client, path: str) -> RemoteCopy[_State]:
        """Return a copy of the database at `path` as it is now. Raises `OSError`."""
        return self.take(path, lambda: self._state(client, path), partial(_copy_state, client, path), _allows)

    def _state(self, client: Client, path: str) -> _State:
        asked = [(part, client.look(path + part)) for part in (*PARTS, _SHARED)]
        stats: dict[str, Stat] = {}
        for part, look in asked:
            try:
                attributes = look()
            except FileNotFoundError:
                continue
            if attributes.is_file and attributes.size:
                stats[part] = self._cache.observe(path + part, attributes.size, attributes.mtime, watched=True)
        if "" not in stats:
            raise OSError(f"not a regular file: {path}")
        handles = {part: opened() for part, opened in [(part, client.open(path + part)) for part in stats]}
        headers = {part: client.read(handle, 0, _HEADERS[part]) for part, handle in handles.items()}
        for handle in handles.values():
            client.close(handle)
        return {part: _Part(stats[part], header()) for part, header in headers.items()}


def _allows(before: _State, after: _State) -> bool:
    """Whether a copy made between these two states is consistent."""
    if any(before.get(part) != after.get(part) for part in PARTS if part != "-wal"):
        return False
    first, last = before.get("-wal"), after.get("-wal")
    if first is None or last is None:
        return first is last
    return first.header == last.header and first.stat.size <= last.stat.size


def _copy_state(client: Client, path: str, state: _State, before: RemoteCopy[_State] | None) -> RemoteCopy[_State]:
    """Copy a state, linking unchanged files from the previous copy."""
    copy = RemoteCopy(state)
    for part, now in ((part, state[part]) for part in PARTS if part in state):
        if part == "-wal" and _page_size(now.header):
            _fetch_log(client, path + part, copy.file + part, now, before)
        elif before is not None and before.state.get(part) == now:
            os.link(before.file + part, copy.file + part)
        else:
            _fetch(client, path + part, copy.file + part, now.stat.size)
    return copy


def _fetch(client: Client, path: str, target: str, size: int) -> None:
    free = shutil.disk_usage(os.path.dirname(target)).free
    if size > free:
        raise OSError(f"not enough disk space to copy the database: {size} bytes needed, {free} free")
    handle = client.open(path)()
    try:
        with open(target, "wb") as copy:  # noqa: PTH123
            for offset in range(0, size, _CHUNK):
                data = client.read(handle, offset, min(_CHUNK, size - offset))()
                copy.write(data)
                if not data:  # it shrank meanwhile, or the size was wrong
                    break
    finally:
        if not client.channel.broken:
            client.close(handle)


def _page_size(header: bytes) -> int:
    """Return the page size of a log; 0 if it is not a log."""
    size = int.from_bytes(header[8:12], "big")
    return size if len(header) == _HEADERS["-wal"] and 512 <= size <= 65_536 else 0


def _fetch_log(client: Client, path: str, target: str, log: _Part, before: RemoteCopy[_State] | None) -> None:
    """Copy a log to its current end."""
    frame, salts = _FRAME + _page_size(log.header), log.header[16:24]
    log_before = before.state.get("-wal") if before is not None else None
    handle = client.open(path)()
    try:
        with open(target, "wb") as copy:  # noqa: PTH123
            copy.write(log.header)
            if before is not None and log_before is not None and log_before.header == log.header:
                copy.write(_read_committed(before.file + "-wal", frame))
            frames = max(1, READ_SIZE // frame)
            while data := client.read(handle, copy.tell(), frames * frame)():
                size = _current_frames_size(data, frame, salts)
                copy.write(data[:size])
                if size < frames * frame:
                    return
                frames = min(frames * 2, _CHUNK // frame)
    finally:
        if not client.channel.broken:
            client.close(handle)


def _current_frames_size(data: bytes, frame: int, salts: bytes) -> int:
    """Return the length of the leading whole frames with these salts; the rest is of an earlier round."""
    for start in range(0, len(data), frame):
        if data[start + 8 : start + 16] != salts or start + frame > len(data):
            return start
    return len(data)


def _read_committed(path: str, frame: int) -> bytes:
    """Return the frames of a copied log up to the last commit that is followed by another frame."""
    with open(path, "rb") as copy:  # noqa: PTH123
        frames = copy.read()[_HEADERS["-wal"] :]
    for start in range((len(frames) // frame - 2) * frame, -1, -frame):
        if any(frames[start + 4 : start + 8]):
            return frames[: start + frame]
    return b""


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
        attributes = self.client().look(remote_path(path))()
        if not attributes.is_file:
            raise OSError(f"not a regular file: {path}")
        return self._observe(path, attributes)

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

    def copy(self, path: str) -> RemoteCopy[_State]:
        """Make a consistent local copy of a database."""
        return self._databases.copy(self.client(), remote_path(path))

    def local_path(self, path: str) -> str | None:
        return None

    def open(self, path: str, stat: Stat | None = None) -> File:
        return readable(RemoteFile(self, path, stat))

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
            attributes = asked()
            if attributes.is_folder:
                raise
            self._observe(path, attributes, watched=True)
            return Folder([self._named(path, attributes)], [])
        asked()
        return folder

    def prefetch(self, paths: Sequence[str]) -> None:
        self._folders.prefetch(self.client(), paths)

    def walk(self, root: str) -> Iterator[Entry]:
        try:
            attributes = self.client().look(remote_path(root), follow=True)()
        except LinkLost:
            raise
        except OSError as error:
            yield Entry(root, skipped=reason_of(error), failed=True)
            return
        if not attributes.is_folder:
            yield self._named(root, attributes)
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

    def _observe(self, path: str, attributes: Attributes, *, watched: bool = False) -> Stat:
        return self.cache.observe(path, attributes.size, attributes.mtime, watched=watched)

    def _named(self, path: str, attributes: Attributes) -> Entry:
        if not attributes.is_file:
            return Entry(path, skipped="not a regular file")
        return Entry(path, self._observe(path, attributes))

    def _prefetch_edges(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Prefetch head and end of these files in two round trips, and yield their entries.

        Errors are left to whoever reads the file.
        """
        client = self.client()
        missing = [i for i, entry in enumerate(entries) if self._is_uncached(entry)]
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
            attributes, path = answer(look), entries[i].path
            if attributes is None or not attributes.is_file:
                continue
            stat = self._observe(path, attributes)
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
    budget = BATCH_BYTES
    for entry in entries:
        budget -= sum(length for _, length in _edges(entry))
        if len(batch) >= size or (budget < 0 and batch):
            yield batch
            batch, budget, size = [], BATCH_BYTES, BATCH
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
    attributes = answer(asked)
    return attributes is not None and attributes.is_file


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
        for path in [path for path, listing in self._prefetched.items() if now - listing.when > FRESH_SECONDS]:
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
        for name, attributes in names:
            below = join(path, name)
            if "/" in name or "\0" in name:
                entries.append(Entry(below, skipped="invalid file name", failed=True))
            elif is_hidden(name, is_folder=attributes.is_folder):
                entries.append(Entry(below, skipped=HIDDEN_FOLDER if attributes.is_folder else HIDDEN))
            elif attributes.is_folder:
                folders.append(below)
            elif attributes.is_link:
                links.append((below, client.look(remote_path(below), follow=True)))
            elif not attributes.is_file:
                entries.append(Entry(below, skipped="not a regular file"))
            else:
                stat = self._cache.observe(below, attributes.size, attributes.mtime, watched=watched, asked=asked)
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


def _drain(prefetched: _Prefetched) -> None:
    """Consume answers that are no longer needed."""
    if not isinstance(prefetched.names, OSError):
        with suppress(OSError):
            for _ in prefetched.names:
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


class RemoteFile(BaseFile):
    """A regular file of another machine. Growth after its `stat` is left out."""

    __slots__ = ("_copy", "_handle", "_others", "_source")

    def __init__(self, source: SshSource, path: str, stat: Stat | None = None) -> None:
        super().__init__(path, stat)
        self._source = source
        self._handle: tuple[Client, bytes] | None = None
        self._others: list[tuple[str, float]] = []
        self._copy: RemoteCopy[_State] | None = None
        """Held while the file is open: changes are checked once, and the copy stays."""

    @property
    def name(self) -> str:
        return self.path[len(parent(self.path)) :].lstrip("/")

    def _find_stat(self) -> Stat:
        return self._source.stat(self.path)

    @property
    def moving(self) -> bool:
        cache = self._source.cache
        if cache.is_moving(self.path, self.stat.mtime) or any(cache.is_moving(*other) for other in self._others):
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
        return readable(RemoteFile(self._source, at, stat))

    def _database_arguments(self) -> tuple[str, CopyCache, str]:
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
