"""The session that a session was forked from, and what of it counts there.

A fork copies the records of its original with their ids. Since 2.1 each copy has a ``forkedFrom``, or the first own
records of the fork are younger than its copies. Before, nothing marked a copy: then the original is a session with the
same first record, and records with the ids of its records are copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any, Final

from tracetui.formats.claude_code.records import SCHEMA, Envelope, Forked
from tracetui.formats.forks import Copies, Order, sessions_beside
from tracetui.formats.lines import MAX_LINE, lines, record_on
from tracetui.formats.scalars import moment
from tracetui.sources.base import HEAD_SIZE, SHARED, Entry, File, cacheable

if TYPE_CHECKING:
    from tracetui.formats.claude_code.session import Session

_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_OLD: Final = re.compile(r"(?:[01]\.|2\.0\b)")
"""Versions in which resuming copied the whole session."""
_MOST: Final = 2_000
"""Sessions of a folder that are compared, the latest first."""
_FIRST_RECORDS: Final = "claude-code first records"
"""Key in `SHARED` of the id of the first record of each session, by the version of its file: each old session of a
folder is compared with all others."""
_MOST_FIRST_RECORDS: Final = 20_000


class Originals(Copies):
    """The sessions that a session was copied from."""

    def __init__(self) -> None:
        super().__init__(_keys_on)
        self._uuid: str | None = None

    def update(self, session: Session, file: File) -> None:
        """Look for them again; only forks and sessions of old versions can have any."""
        is_old = _OLD.match(session.metadata.get("version", "")) is not None
        if session.uuid is None:  # nothing was read yet
            return
        may_have = session.agent is None and (session.is_fork or is_old)
        if session.uuid != self._uuid or not may_have:
            self._uuid = session.uuid
            self.forget()
        if not may_have:
            return
        others = sessions_beside(file)
        if len(others) > _MOST:
            times = {path: 0 if one.stat is None else -one.stat.mtime_ns for path, one in others.items()}
            others = {path: others[path] for path in sorted(others, key=times.__getitem__)[:_MOST]}
        begun = inf if session.first is None else session.first
        self.look(
            file,
            others,
            lambda path, entry: _order(file, session, path, entry),
            lambda: (begun, _last_time(file), file.name),
        )

    def original(self, session: Session, file: File) -> tuple[str, str | None] | None:
        """Id and path of the session that this one was forked from."""
        if session.forked_from is not None:
            name = f"{session.forked_from}.jsonl"
            return session.forked_from, file.sibling(name) if _IDENT.fullmatch(session.forked_from) else None
        if session.uuid != self._uuid:
            self.update(session, file)
        if session.uuid is None or not self.earlier:
            return None
        path = self.earlier[0][1]
        return path.removesuffix(".jsonl"), file.sibling(path)


def _order(file: File, session: Session, path: str, entry: Entry) -> Order | None:
    """When another session began and ended, if it has the first record of this one."""
    uuid = session.uuid or ""
    version = (entry.path, entry.stat)
    cache: dict[Any, str | None] = file.memo.get(SHARED, {}).setdefault(_FIRST_RECORDS, {})
    if not session.is_fork and cache.get(version, uuid) != uuid:
        return None
    with file.other(path) as other:
        if session.is_fork:
            is_same = b'"' + uuid.encode("utf-8", "replace") + b'"' in other.head
        else:
            first = next((found for data in other.head.split(b"\n") if data and (found := _read(data).uuid)), None)
            is_same = first == uuid
            if entry.stat is not None and cacheable(entry.stat):
                if len(cache) >= _MOST_FIRST_RECORDS:
                    cache.clear()
                cache[version] = first
        if not is_same:
            return None
        records = (_read(line.data) for line in lines(other, limit=MAX_LINE, end=other.stat.size))
        own = (moment(one.timestamp) for one in records if not isinstance(one.forked_from, Forked))
        begun = next((when for when in own if when is not None), inf)
        return begun, _last_time(other), other.name


def _last_time(file: File) -> float:
    """The last time in the last bytes of a file, else 0. Of sessions that begin at the same time, the one that ends
    first was copied.
    """
    start = max(0, file.stat.size - HEAD_SIZE)
    times = (moment(_read(data).timestamp) for data in reversed(file.read(start, HEAD_SIZE).split(b"\n")) if data)
    return next((when for when in times if when is not None), 0.0)


def keys_of(record: Envelope) -> tuple[str | None, str | None]:
    """What a record has in common with its copy, None without an id; and the same for its response."""
    key = f"{record.kind} {record.uuid} {record.timestamp}" if record.uuid else None
    return key, record.response or key


def _keys_on(data: bytes) -> Iterator[str]:
    return (key for key in keys_of(_read(data)) if key is not None)


def _read(data: bytes) -> Envelope:
    """The record on a line; an empty one if there is none."""
    try:
        found: Envelope = SCHEMA.strict(data)
    except (ValueError, RecursionError):
        found = SCHEMA.convert(record_on(data), {})
    return found
