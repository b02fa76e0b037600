"""A source of the objects of a bucket: prefixes are folders, objects are files.

Nothing is downloaded as a whole but databases: formats read ranges, which are cached by blocks. When the first file of
a batch is read, head and end of all files of the batch are requested at once.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Final

from tracetui.sources.base import (
    HEAD_SIZE,
    HIDDEN_FOLDER,
    MOVING_SECONDS,
    SQLITE_MAGIC,
    BaseFile,
    Entry,
    File,
    Folder,
    LinkLost,
    Stat,
    is_file_name,
    is_hidden,
    reason_of,
    resolve_relative,
    skip_reason,
)
from tracetui.sources.bucket import Bucket, Object, join, parent
from tracetui.sources.bucket_process import BucketProcess
from tracetui.sources.file_views import readable
from tracetui.sources.sqlite import CopyCache, RemoteCopies, RemoteCopy

BLOCK: Final = HEAD_SIZE
"""Bytes of a cached block."""
CACHED_BLOCKS: Final = 1024
"""Blocks cached of one bucket: at most 64 MB."""
BATCH: Final = 64
"""Files with heads and ends requested together."""
REQUESTS: Final = 16
"""Requests in flight for a batch."""
_DIRECT: Final = 8 << 20
"""Longest range to cache."""
MAX_DATABASE: Final = 4 << 30
"""Bytes of a database that is copied, with its log."""
_PARTS: Final = ("", "-journal", "-wal")
"""Suffixes of the files of a database."""
_State = dict[str, Stat]
"""State of a database: the stats of its files, by suffix."""
_INVALID_KEYS: Final = "some keys below aren't paths (a//b, ./a); their siblings are not listed"


class ObjectSource:
    """The objects of one bucket; see `tracetui.sources.base.Source`. Paths are ``scheme://bucket/key``.

    Raises `LinkLost` while the store is unreachable; just try again later. Close it at the end.
    """

    def __init__(self, bucket: Bucket) -> None:
        """Raises `UsageError` if obstore is not installed or not configured."""
        self.bucket = bucket
        self._client = BucketProcess(bucket)
        self._blocks = BlockCache()
        self._batches: dict[str, Sequence[Entry]] = {}
        """The batch of each listed file that was not read yet."""
        self._listed: dict[str, Folder] = {}
        """Folders listed ahead by `prefetch`."""
        self._copies = RemoteCopies[_State]()

    @property
    def received(self) -> int:
        """Bytes received of objects."""
        return self._client.received

    def connect(self) -> None:
        """Check that the bucket can be listed. Raises `OSError`, also as `LinkLost`."""
        with suppress(ValueError):
            next(self._client.pages(""), None)

    def close(self) -> None:
        """Delete copies of databases, and end the process that reads the bucket."""
        self._copies.close()
        self._client.close()

    def is_file(self, path: str) -> bool:
        """True if there is an object at `path`. Raises `LinkLost`."""
        try:
            return self.stat(path) is not None
        except LinkLost:
            raise
        except (OSError, ValueError):
            return False

    def is_folder(self, path: str) -> bool:
        """True if there are objects below `path`. Raises `OSError`."""
        key = self.bucket.key(path)
        try:
            return not key or next(self._client.pages(key), None) is not None
        except ValueError:
            return True

    def local_path(self, path: str) -> str | None:
        return None

    def open(self, path: str, stat: Stat | None = None) -> File:
        return readable(ObjectFile(self, path, stat))

    def stat(self, path: str) -> Stat:
        """Return the stat of an object. Raises `OSError`."""
        key = self.bucket.key(path)
        if not key:
            raise IsADirectoryError(f"not an object: {path}")
        return self._client.head(key)

    def list(self, path: str) -> Folder:
        ahead = self._listed.pop(path.rstrip("/"), None)
        return ahead if ahead is not None else self.list_now(path)

    def list_now(self, path: str) -> Folder:
        """List a folder as it is now. Raises `OSError`."""
        key = self.bucket.key(path)
        try:
            objects, prefixes = self._client.folder(key)
        except ValueError:
            return Folder([Entry(path, skipped=_INVALID_KEYS, failed=True)], [])
        if not objects and not prefixes and key:
            return Folder([Entry(path, self.stat(path))], [])
        folders = [self.bucket.path(prefix) for prefix in prefixes]
        hidden = [Entry(path, skipped=HIDDEN_FOLDER) for path in folders if _is_hidden(path)]
        entries = [self._entry(item) for item in objects if item.key != key or item.stat.size]
        return Folder([*hidden, *entries], [path for path in folders if not _is_hidden(path)])

    def prefetch(self, paths: Sequence[str]) -> None:
        """List everything below the first path, unless it is listed ahead: folder by folder takes more requests."""
        if not paths or paths[0].rstrip("/") in self._listed:
            return
        root = paths[0].rstrip("/")
        listed: dict[str, Folder] = {root: Folder()}
        try:
            for entry in self._below(root):
                _file_into(listed, root, entry)
        except LinkLost:
            raise
        except (OSError, ValueError):
            return  # listing each folder reports the error
        if listed[root].entries or listed[root].folders:
            self._listed = listed

    def walk(self, root: str) -> Iterator[Entry]:
        top, is_prefix = root.rstrip("/"), False
        try:
            for entry in self._below(top):
                is_prefix = True
                yield entry
            if not is_prefix and self.bucket.key(top):
                yield Entry(root, self.stat(top))
        except LinkLost:
            raise
        except ValueError:
            yield from self._walk_folders(root)
        except OSError as error:
            yield Entry(root, skipped=reason_of(error), failed=True)

    def fetch(self, path: str, stat: Stat, blocks: Iterable[int]) -> dict[int, bytes]:
        """Return these blocks of a version of an object, cached or read now.

        Raises `OSError` if the object has changed, or the answer was cut off.
        """
        wanted = list(blocks)
        if wanted and wanted[0] == 0:
            self._fetch_batch(self._batches.pop(path, ()))
        contents = {i: data for i in wanted if (data := self._blocks.get(path, stat, i)) is not None}
        for first, last in _stretches([i for i in wanted if i not in contents]):
            data = self.fetch_range(path, stat, first * BLOCK, min(stat.size, (last + 1) * BLOCK))
            for i in range(first, last + 1):
                contents[i] = data[(i - first) * BLOCK : (i - first + 1) * BLOCK]
                self._blocks.put(path, stat, i, contents[i])
        return contents

    def fetch_range(self, path: str, stat: Stat, start: int, end: int) -> bytes:
        """Read a range of a version of an object, which is not cached. Raises `OSError` as `fetch` does."""
        data, version = self._client.get(self.bucket.key(path), start, end)
        if version != stat:
            raise OSError("it was replaced while it was read")
        if len(data) != end - start:
            raise OSError(f"the answer ended after {len(data)} of {end - start} bytes")
        return data

    def copy(self, path: str) -> str:
        """Return the path of a local copy of a database and its log. Raises `OSError`."""
        return self._copies.take(
            path, lambda: _database_state(self, path), lambda state, _: _copy_database(self, path, state)
        ).file

    @property
    def copies(self) -> CopyCache:
        """Database copies with their logs merged in."""
        return self._copies.merged

    def _below(self, root: str) -> Iterator[Entry]:
        """Yield the entries of all objects below a prefix, ordered by key; hidden folders once. Raises `ValueError`."""
        hidden: set[str] = set()
        for page in self._client.pages(self.bucket.key(root)):
            entries = []
            folders = {parent(self.bucket.path(item.key)) for item in page}
            for item in page:
                path = self.bucket.path(item.key)
                folder = _hidden_folder(root, path)
                if folder and folder not in hidden:
                    hidden.add(folder)
                    entries.append(Entry(folder, skipped=HIDDEN_FOLDER))
                elif not folder and not (item.stat.size == 0 and path in folders):  # some tools mark folders so
                    entries.append(self._entry(item))
            self._plan_batches(entries)
            yield from entries

    def _walk_folders(self, root: str) -> Iterator[Entry]:
        """Walk folder by folder, so that an invalid key hides no more than its siblings."""
        todo = [root]
        while todo:
            path = todo.pop()
            try:
                folder = self.list_now(path)
            except LinkLost:
                raise
            except OSError as error:
                yield Entry(path, skipped=reason_of(error), failed=True)
                continue
            self._plan_batches(folder.entries)
            yield from folder.entries
            todo.extend(sorted(folder.folders, reverse=True))

    def _entry(self, item: Object) -> Entry:
        path = self.bucket.path(item.key)
        name = item.key.rpartition("/")[2]
        if not is_file_name(name):
            return Entry(path, skipped="invalid file name", failed=True)
        return Entry(path, item.stat, skip_reason(name))

    def _plan_batches(self, entries: Sequence[Entry]) -> None:
        files = [entry for entry in entries if entry.skipped is None and entry.stat is not None and entry.stat.size]
        for i in range(0, len(files), BATCH):
            batch = files[i : i + BATCH]
            self._batches.update((entry.path, batch) for entry in batch)

    def _fetch_batch(self, batch: Sequence[Entry]) -> None:
        """Read head and end of the files of a batch. Errors are left to whoever reads the file."""
        files = [entry for entry in batch if self._batches.pop(entry.path, None) is not None or entry is batch[0]]
        if len(files) < 2:
            return
        with ThreadPoolExecutor(REQUESTS, "objects") as pool:
            list(pool.map(self._fetch_edges, files))

    def _fetch_edges(self, entry: Entry) -> None:
        stat = entry.stat
        if stat is None:
            return
        last = (stat.size - 1) // BLOCK
        with suppress(OSError, ValueError):
            self.fetch(entry.path, stat, sorted({0, max(0, last - 1), last}))


class ObjectFile(BaseFile):
    """One version of an object: reading fails once another has replaced it."""

    __slots__ = ("_changed_at", "_source")

    def __init__(self, source: ObjectSource, path: str, stat: Stat | None = None) -> None:
        super().__init__(path, stat)
        self._source = source
        self._changed_at = 0.0

    @property
    def moving(self) -> bool:
        changed = max(self.stat.mtime, self._changed_at)
        if self.head.startswith(SQLITE_MAGIC):
            with suppress(FileNotFoundError):
                changed = max(changed, self._source.stat(self.path + "-wal").mtime)
        return time.time() - changed < MOVING_SECONDS

    def read(self, offset: int, size: int) -> bytes:
        stat = self.stat
        end = min(offset + size, stat.size)
        if end <= offset:
            return b""
        if end - offset > _DIRECT:
            return self._source.fetch_range(self.path, stat, offset, end)
        blocks = range(offset // BLOCK, (end - 1) // BLOCK + 1)
        contents = self._source.fetch(self.path, stat, blocks)
        data = contents[blocks[0]] if len(blocks) == 1 else b"".join(contents[i] for i in blocks)
        return data[offset - blocks[0] * BLOCK :][: end - offset]

    def sibling(self, name: str) -> str | None:
        path = join(parent(self.path), name)
        return path if "/" not in name and self._source.is_file(path) else None

    def folder(self, path: str = "") -> Folder:
        try:
            return self._source.list_now(resolve_relative(self.path, path, parent, join)[0])
        except LinkLost:
            raise
        except (OSError, ValueError):
            return Folder()

    def other(self, path: str, stat: Stat | None = None) -> File:
        if stat is not None:
            self._changed_at = max(self._changed_at, stat.mtime)
        return readable(ObjectFile(self._source, resolve_relative(self.path, path, parent, join)[0], stat))

    def _find_stat(self) -> Stat:
        return self._source.stat(self.path)

    def _database_arguments(self) -> tuple[str, CopyCache, str]:
        return self._source.copy(self.path), self._source.copies, self.path


class BlockCache:
    """Recently read blocks. Thread-safe."""

    def __init__(self, limit: int = CACHED_BLOCKS) -> None:
        self._limit = limit
        self._lock = Lock()
        self._blocks: OrderedDict[tuple[str, Stat, int], bytes] = OrderedDict()

    def get(self, path: str, stat: Stat, i: int) -> bytes | None:
        """Return block `i` of a version of an object, None if not cached."""
        with self._lock:
            data = self._blocks.get((path, stat, i))
            if data is not None:
                self._blocks.move_to_end((path, stat, i))
            return data

    def put(self, path: str, stat: Stat, i: int, data: bytes) -> None:
        """Cache a block; the least recently used one goes."""
        with self._lock:
            self._blocks[path, stat, i] = data
            self._blocks.move_to_end((path, stat, i))
            if len(self._blocks) > self._limit:
                self._blocks.popitem(last=False)


def _database_state(source: ObjectSource, path: str) -> _State:
    state = {"": source.stat(path)}
    for part in _PARTS[1:]:
        with suppress(FileNotFoundError):
            state[part] = source.stat(path + part)
    return state


def _copy_database(source: ObjectSource, path: str, state: _State) -> RemoteCopy[_State]:
    if sum(stat.size for stat in state.values()) > MAX_DATABASE:
        raise OSError(f"a database of more than {MAX_DATABASE >> 30} GiB isn't downloaded")
    copy = RemoteCopy(state)
    for part, stat in state.items():
        with open(copy.file + part, "wb") as target:  # noqa: PTH123
            for start in range(0, stat.size, _DIRECT):
                target.write(source.fetch_range(path + part, stat, start, min(stat.size, start + _DIRECT)))
    return copy


def _stretches(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each stretch of consecutive numbers."""
    first = 0
    for i in range(1, len(blocks) + 1):
        if i == len(blocks) or blocks[i] != blocks[i - 1] + 1:
            yield blocks[first], blocks[i - 1]
            first = i


def _is_hidden(path: str) -> bool:
    return is_hidden(path.rpartition("/")[2], is_folder=True)


def _hidden_folder(root: str, path: str) -> str:
    """Return the topmost hidden folder between a root and a path below it; empty if there is none."""
    below = path.find("/.", len(root))
    end = path.find("/", below + 1) if below >= 0 else -1
    while end >= 0 and not is_hidden(path[below + 1 : end], is_folder=True):
        below = path.find("/.", end)
        end = path.find("/", below + 1) if below >= 0 else -1
    return path[:end] if end >= 0 else ""


def _file_into(listed: dict[str, Folder], root: str, entry: Entry) -> None:
    """Add an entry to its folder, and that folder to those above it."""
    folder = parent(entry.path)
    missing = []
    at = folder
    while at not in listed and len(at) > len(root):
        missing.append(at)
        at = parent(at)
    for path in reversed(missing):
        listed[path] = Folder()
        listed[parent(path)].folders.append(path)
    listed[folder].entries.append(entry)
