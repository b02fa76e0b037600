"""Consistent copies of databases of another machine, in a private folder of this one.

A database is copied with its journal and its write-ahead log, the log last, until neither their stats nor their headers
changed meanwhile. A checkpoint that runs during the copy does no harm: what it writes into the database is in the log
as well, and a log that starts over has another header. A log that only grew meanwhile may end in half a frame, whose
checksum is wrong, so that SQLite leaves it out. Of a database that changed, the files that did are copied again, whole.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Final

import msgspec

from tracetui.sources.base import Stat
from tracetui.sources.recall import Recall
from tracetui.sources.sftp import Client
from tracetui.sources.sqlite import ATTEMPTS, Changing, private_folder

PARTS: Final = ("", "-journal", "-wal")
"""The files of a database, in the order in which they are copied."""
KEPT_COPIES: Final = 8
_HEADERS: Final = {"": 100, "-journal": 28, "-wal": 32}
_CHUNK: Final = 4 << 20


class _Part(msgspec.Struct, frozen=True):
    """One file of a database that is there and not empty."""

    stat: Stat
    header: bytes


_State = dict[str, _Part]


class Copy:
    """One state of one database; its folder goes when nobody holds it."""

    def __init__(self, state: _State) -> None:
        self.state = state
        self.file = os.path.join(private_folder(self), "remote.db")
        """Where the database lies; its log and its journal lie beside it. Nobody writes there any more."""


class Mirror:
    """The copies of one source; they go with `close`, and at exit."""

    def __init__(self) -> None:
        self._recall = Recall(0)
        self._lock = Lock()
        self._copies: dict[str, Copy] = {}

    def take(self, client: Client, path: str) -> Copy:
        """A copy of the database at `path` as it is now. Raises `OSError`."""
        with self._lock:
            known = self._copies.pop(path, None)
            state = self._state(client, path)
            for _ in range(ATTEMPTS):
                if known is None or known.state != state:
                    known = _copied(client, path, state, known)
                    later = self._state(client, path)
                    if not _allows(state, later):
                        known, state = None, later
                        continue
                self._copies[path] = known
                while len(self._copies) > KEPT_COPIES:
                    self._copies.pop(next(iter(self._copies)))
                return known
        raise Changing("the database keeps changing while it is copied")

    def close(self) -> None:
        """Let go of the copies."""
        self._copies.clear()

    def _state(self, client: Client, path: str) -> _State:
        asked = [(part, client.look(path + part)) for part in PARTS]
        found: dict[str, Stat] = {}
        for part, look in asked:
            try:
                attributes = look()
            except FileNotFoundError:
                continue
            if attributes.is_file and attributes.size:
                found[part] = self._recall.saw(path + part, attributes.size, attributes.mtime, watched=True)
        if "" not in found:
            raise OSError(f"not a regular file: {path}")
        handles = {part: opened() for part, opened in [(part, client.open(path + part)) for part in found]}
        headers = {part: client.read(handle, 0, _HEADERS[part]) for part, handle in handles.items()}
        for handle in handles.values():
            client.close(handle)
        return {part: _Part(found[part], header()) for part, header in headers.items()}


def _allows(before: _State, after: _State) -> bool:
    """True if what was copied between these two states is consistent."""
    if {part: one for part, one in before.items() if part != "-wal"} != {
        part: one for part, one in after.items() if part != "-wal"
    }:
        return False
    first, last = before.get("-wal"), after.get("-wal")
    if first is None or last is None:
        return first is last
    return first.header == last.header and first.stat.size <= last.stat.size


def _copied(client: Client, path: str, state: _State, before: Copy | None) -> Copy:
    """A copy of that state; files that are as they were are taken from the copy before."""
    copy = Copy(state)
    for part, now in ((part, state[part]) for part in PARTS if part in state):
        if before is not None and before.state.get(part) == now:
            os.link(before.file + part, copy.file + part)
        else:
            _fetch(client, path + part, copy.file + part, now.stat.size)
    return copy


def _fetch(client: Client, path: str, target: str, size: int) -> None:
    handle = client.open(path)()
    try:
        with open(target, "wb") as copy:  # noqa: PTH123
            for offset in range(0, size, _CHUNK):
                copy.write(client.read(handle, offset, min(_CHUNK, size - offset))())
    finally:
        if not client.channel.broken:
            client.close(handle)
