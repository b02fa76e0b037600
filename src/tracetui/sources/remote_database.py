"""Consistent copies of remote databases in a private local folder.

A database is copied with its journal and its write-ahead log, the log last, until neither their stats nor their headers
changed meanwhile. A checkpoint during the copy does no harm: what it writes to the database is in the log as well, and
a restarted log has another header. A log that only grew may end in half a frame, which SQLite drops because of its
checksum. After a change only the changed files are copied again: of a log only the new frames since the last copy, up
to frames of an earlier round. Committed frames stay unchanged until the log restarts. The last frame of a copy may be
half written, and is always read again.
"""

from __future__ import annotations

import os
import shutil
from threading import Lock
from typing import Final

import msgspec

from tracetui.sources.base import Stat
from tracetui.sources.remote_cache import RemoteCache
from tracetui.sources.sftp import READ_SIZE, Client
from tracetui.sources.sqlite import ATTEMPTS, CopyCache, DatabaseChanging, private_folder

PARTS: Final = ("", "-journal", "-wal")
"""Suffixes of a database's files, in copying order."""
MAX_COPIES: Final = 8
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


class MirroredDatabase:
    """One state of one database; its folder is deleted with the last reference."""

    def __init__(self, state: _State) -> None:
        self.state = state
        self.file = os.path.join(private_folder(self), "remote.db")
        """Path of the database, next to its log and journal. Nothing writes there any more."""


class DatabaseMirror:
    """Copies of one source's databases, deleted by `close` and at exit."""

    def __init__(self) -> None:
        self._cache = RemoteCache(0)
        self._lock = Lock()
        self._copies: dict[str, MirroredDatabase] = {}
        self.merged = CopyCache()
        """Copies with their log or journal merged in: plain files, updated incrementally."""

    def take(self, client: Client, path: str) -> MirroredDatabase:
        """Return a copy of the database at `path` as it is now. Raises `OSError`."""
        with self._lock:
            copy = self._copies.pop(path, None)
            state = self._state(client, path)
            for _ in range(ATTEMPTS):
                if copy is None or copy.state != state:
                    copy = _copy_state(client, path, state, copy)
                    later = self._state(client, path)
                    if not _allows(state, later):
                        copy, state = None, later
                        continue
                self._copies[path] = copy
                while len(self._copies) > MAX_COPIES:
                    self._copies.pop(next(iter(self._copies)))
                return copy
        raise DatabaseChanging("the database keeps changing while it is copied")

    def close(self) -> None:
        """Drop the copies."""
        self._copies.clear()
        self.merged.clear()

    def _state(self, client: Client, path: str) -> _State:
        asked = [(part, client.look(path + part)) for part in (*PARTS, _SHARED)]
        found: dict[str, Stat] = {}
        for part, look in asked:
            try:
                attributes = look()
            except FileNotFoundError:
                continue
            if attributes.is_file and attributes.size:
                found[part] = self._cache.observe(path + part, attributes.size, attributes.mtime, watched=True)
        if "" not in found:
            raise OSError(f"not a regular file: {path}")
        handles = {part: opened() for part, opened in [(part, client.open(path + part)) for part in found]}
        headers = {part: client.read(handle, 0, _HEADERS[part]) for part, handle in handles.items()}
        for handle in handles.values():
            client.close(handle)
        return {part: _Part(found[part], header()) for part, header in headers.items()}


def _allows(before: _State, after: _State) -> bool:
    """Whether a copy made between these two states is consistent."""
    if any(before.get(part) != after.get(part) for part in PARTS if part != "-wal"):
        return False
    first, last = before.get("-wal"), after.get("-wal")
    if first is None or last is None:
        return first is last
    return first.header == last.header and first.stat.size <= last.stat.size


def _copy_state(client: Client, path: str, state: _State, before: MirroredDatabase | None) -> MirroredDatabase:
    """Copy a state, linking unchanged files from the previous copy."""
    copy = MirroredDatabase(state)
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


def _fetch_log(client: Client, path: str, target: str, log: _Part, before: MirroredDatabase | None) -> None:
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
                whole = _current_frames_size(data, frame, salts)
                copy.write(data[:whole])
                if whole < frames * frame:
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
