"""Sessions that begin with records of another one: which that is, and what of them counts there.

A fork copies the records of its original with their ids. Today's say so: each copy has a ``forkedFrom``, or the first
records of the fork itself are younger than what it copied. Before 2.1 nothing said so. What was copied is told by what
is equal: the first record of the conversation, and then the ids of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from tracetui.formats.claude_code.records import SCHEMA, Envelope, Forked
from tracetui.formats.lines import MAX_LINE, lines, record_on
from tracetui.formats.scalars import moment
from tracetui.sources.base import HEAD_SIZE, SHARED, Entry, File
from tracetui.sources.versions import cacheable

if TYPE_CHECKING:
    from tracetui.formats.claude_code.session import Session

_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_OLD: Final = re.compile(r"(?:[01]\.|2\.0\b)")
"""Versions in which resuming copied the whole session."""
_MOST: Final = 2_000
"""Sessions of a folder among which those that hold the same records are looked for, the latest first."""
_FIRST_RECORDS: Final = "claude-code first records"
"""Key in `SHARED` of the first record of each session by the version of its file: in a folder of old sessions each one
is compared with all others."""
_MOST_FIRST_RECORDS: Final = 20_000


class Holder(NamedTuple):
    """A session that holds the same first record. They are in order: whoever copied came later."""

    begun: float
    """The time of the first record that is its own."""
    last: float
    """Of the last one; where two begin at the same time this was copied from the one that was left earlier."""
    name: str
    path: str


class Elsewhere(msgspec.Struct, frozen=True):
    """What of a session counts in others."""

    before: tuple[Holder, ...] = ()
    """The sessions that were there before it."""
    ids: frozenset[str] = frozenset()
    """All their records and responses, as `ids_of` names them."""
    known: tuple[Holder, ...] = ()
    listed: frozenset[tuple[str, int]] = frozenset()
    """The sessions of the folder that were looked at, each with as much of its size as matters."""


NOWHERE: Final = Elsewhere()


def original_of(session: Session, file: File) -> tuple[str, str | None] | None:
    """Id and path of the session that this one was forked from."""
    if session.forked_from is not None:
        known = _IDENT.fullmatch(session.forked_from)
        return session.forked_from, file.sibling(f"{session.forked_from}.jsonl") if known else None
    if not _may_hold_copies(session):
        return None
    uuid = session.uuid or ""
    if uuid not in session.searched:
        session.searched[uuid] = tuple(_holders(file, session, _sessions(file)))
    first = next(iter(_before(file, session, session.searched[uuid])), None)
    return None if first is None else (first.name.removesuffix(".jsonl"), first.path)


def elsewhere(file: File, session: Session, known: Elsewhere = NOWHERE) -> Elsewhere:
    """What of the session in `file` other sessions tell that were there before; `known` is what was found earlier."""
    if not _may_hold_copies(session):
        return NOWHERE
    sessions = {(_name(entry), _much(entry)): entry for entry in _sessions(file)}
    listed = frozenset(sessions)
    names, new = {name for name, _ in listed}, [sessions[one] for one in listed - known.listed]
    again = {entry.path for entry in new}
    holders = [one for one in known.known if one.name in names and one.path not in again]
    holders += _holders(file, session, new)
    before = tuple(_before(file, session, holders))
    if (listed, before) == (known.listed, known.before):
        return known
    ids = known.ids if before == known.before else frozenset(_ids(file, before))
    return Elsewhere(before, ids, tuple(holders), listed)


def _may_hold_copies(session: Session) -> bool:
    """Whether others may hold the records with which this session begins: whether it is worth while to look."""
    if session.uuid is None or session.agent is not None:
        return False
    return session.is_fork or _OLD.match(session.named.get("version", "")) is not None


def _sessions(file: File) -> list[Entry]:
    """The other sessions of the folder; of very many the latest."""
    found = [one for one in file.folder().entries if one.skipped is None and one.path.endswith(".jsonl")]
    if len(found) > _MOST:
        found.sort(key=lambda one: one.stat.mtime_ns if one.stat is not None else 0, reverse=True)
    own = file.path
    return [one for one in found[:_MOST] if one.path != own]


def _much(entry: Entry) -> int:
    return 0 if entry.stat is None else min(entry.stat.size, HEAD_SIZE)


def _holders(file: File, session: Session, among: Iterable[Entry]) -> Iterator[Holder]:
    """Those of these sessions that hold the first record of this one."""
    uuid = session.uuid or ""
    needle = b'"' + uuid.encode("utf-8", "replace") + b'"'
    cache: dict[tuple[Any, ...], str | None] = file.memo.get(SHARED, {}).setdefault(_FIRST_RECORDS, {})
    for entry in among:
        if not session.is_fork and cache.get(_version(entry), uuid) != uuid:
            continue
        try:
            with file.other(_name(entry)) as other:
                if needle in other.head if session.is_fork else _first_of(other, entry, cache) == uuid:
                    yield _holder(other, entry.path)
        except OSError:
            continue


def _before(file: File, session: Session, holders: Iterable[Holder]) -> list[Holder]:
    """Those that were there before this session, in order."""
    begun = inf if session.first is None else session.first
    there = [one for one in holders if one.begun <= begun]
    if any(one.begun == begun for one in there):
        there = [one for one in there if one < Holder(begun, last_time(file), file.name, "")]
    return sorted(there)


def _holder(file: File, path: str) -> Holder:
    """When a session began on its own, and when it was left."""
    begun = inf
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        record = _record_on(line.data)
        if not isinstance(record.forked_from, Forked) and (when := moment(record.timestamp)) is not None:
            begun = when
            break
    return Holder(begun, last_time(file), file.name, path)


def last_time(file: File) -> float:
    """The last time that a record has, as far as it is at the very end of the file; else 0."""
    start = max(0, file.stat.size - HEAD_SIZE)
    for data in reversed(file.read(start, HEAD_SIZE).split(b"\n")):
        when = moment(_record_on(data).timestamp) if data else None
        if when is not None:
            return when
    return 0.0


def _version(entry: Entry) -> tuple[Any, ...]:
    stat = entry.stat
    return (entry.path,) if stat is None else (entry.path, stat)


def _first_of(file: File, entry: Entry, cache: dict[tuple[Any, ...], str | None]) -> str | None:
    """The id of the first record of a conversation; goes into the `cache` if the file's stat identifies its content."""
    found = next((uuid for data in file.head.split(b"\n") if data and (uuid := _record_on(data).uuid)), None)
    if entry.stat is not None and cacheable(entry.stat):
        if len(cache) >= _MOST_FIRST_RECORDS:
            cache.clear()
        cache[_version(entry)] = found
    return found


def _name(entry: Entry) -> str:
    return re.split(r"[/\\]", entry.path)[-1]


def ids_of(record: Envelope) -> tuple[str | None, str | None]:
    """What is equal of a record and its copy, None for one without an id; and of the response that it is part of."""
    ident = f"{record.kind} {record.uuid} {record.timestamp}" if record.uuid else None
    return ident, record.response or ident


def _ids(file: File, sessions: Iterable[Holder]) -> Iterator[str]:
    """All records and responses of these sessions."""
    for one in sessions:
        try:
            with file.other(one.name) as other:
                for line in lines(other, limit=MAX_LINE, end=other.stat.size):
                    yield from (ident for ident in ids_of(_record_on(line.data)) if ident is not None)
        except OSError:
            continue


def _record_on(data: bytes) -> Envelope:
    """The record on a line; an empty one if there is none."""
    try:
        found: Envelope = SCHEMA.strict(data)
    except (ValueError, RecursionError):
        found = SCHEMA.convert(record_on(data), {})
    return found
