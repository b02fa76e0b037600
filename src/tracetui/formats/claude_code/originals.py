"""Sessions that begin with records of another one: which that is, and what of them counts there.

A fork copies the records of its original with their ids. Today's say so: each copy has a ``forkedFrom``, or the first
records of the fork itself are younger than what it copied. Before 2.1 nothing said so. What was copied is told by what
is equal: the first record of the conversation, and then the ids of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.formats.claude_code.facts import Facts
from tracetui.formats.claude_code.records import Record
from tracetui.formats.lines import lines
from tracetui.formats.scalars import mapping, moment, text
from tracetui.formats.tail import MAX_LINE, record_on
from tracetui.sources.base import HEAD_SIZE, Entry, File

_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_OLD: Final = re.compile(r"(?:[01]\.|2\.0\b)")
"""Versions in which resuming copied the whole session."""
_MOST: Final = 2_000
"""Sessions of a folder among which those that hold the same records are looked for, the latest first."""
_REMEMBERED: Final = 20_000


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


class _Message(msgspec.Struct, gc=False):
    id: str | None = None


class _Record(msgspec.Struct, gc=False):
    type: str | None = None
    uuid: str | None = None
    timestamp: str | None = None
    message: _Message | None = None


_decode: Final = msgspec.json.Decoder(_Record).decode


def original_of(facts: Facts, file: File) -> tuple[str, str | None] | None:
    """Id and path of the session that this one was forked from."""
    if facts.forked_from is not None:
        known = _IDENT.fullmatch(facts.forked_from)
        return facts.forked_from, file.sibling(f"{facts.forked_from}.jsonl") if known else None
    if not _may_hold_copies(facts):
        return None
    uuid = facts.uuid or ""
    if uuid not in facts.searched:
        facts.searched[uuid] = tuple(_holders(file, facts, _sessions(file)))
    first = next(iter(_before(file, facts, facts.searched[uuid])), None)
    return None if first is None else (first.name.removesuffix(".jsonl"), first.path)


def elsewhere(file: File, facts: Facts, known: Elsewhere = NOWHERE) -> Elsewhere:
    """What of the session in `file` other sessions tell that were there before; `known` is what was found earlier."""
    if not _may_hold_copies(facts):
        return NOWHERE
    sessions = {(_name(entry), _much(entry)): entry for entry in _sessions(file)}
    listed = frozenset(sessions)
    names, new = {name for name, _ in listed}, [sessions[one] for one in listed - known.listed]
    again = {entry.path for entry in new}
    holders = [one for one in known.known if one.name in names and one.path not in again]
    holders += _holders(file, facts, new)
    before = tuple(_before(file, facts, holders))
    if (listed, before) == (known.listed, known.before):
        return known
    ids = known.ids if before == known.before else frozenset(_ids(file, before))
    return Elsewhere(before, ids, tuple(holders), listed)


def _may_hold_copies(facts: Facts) -> bool:
    """Whether others may hold the records with which this session begins: whether it is worth while to look."""
    if facts.uuid is None or facts.agent is not None:
        return False
    return facts.is_fork or _OLD.match(facts.named.get("version", "")) is not None


def _sessions(file: File) -> list[Entry]:
    """The other sessions of the folder; of very many the latest."""
    found = [one for one in file.folder().entries if one.skipped is None and one.path.endswith(".jsonl")]
    if len(found) > _MOST:
        found.sort(key=lambda one: one.stat.mtime_ns if one.stat is not None else 0, reverse=True)
    own = file.path
    return [one for one in found[:_MOST] if one.path != own]


def _much(entry: Entry) -> int:
    return 0 if entry.stat is None else min(entry.stat.size, HEAD_SIZE)


def _holders(file: File, facts: Facts, among: Iterable[Entry]) -> Iterator[Holder]:
    """Those of these sessions that hold the first record of this one."""
    uuid = facts.uuid or ""
    needle = b'"' + uuid.encode("utf-8", "replace") + b'"'
    for entry in among:
        if not facts.is_fork and _FIRST.get(_version(entry), uuid) != uuid:
            continue
        try:
            with file.other(_name(entry)) as other:
                if needle in other.head if facts.is_fork else _first_of(other, entry) == uuid:
                    yield _holder(other, entry.path)
        except OSError:
            continue


def _before(file: File, facts: Facts, holders: Iterable[Holder]) -> list[Holder]:
    """Those that were there before this session, in order."""
    begun = inf if facts.first is None else facts.first
    there = [one for one in holders if one.begun <= begun]
    if any(one.begun == begun for one in there):
        there = [one for one in there if one < Holder(begun, last_time(file), file.name, "")]
    return sorted(there)


def _holder(file: File, path: str) -> Holder:
    """When a session began on its own, and when it was left."""
    begun = inf
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        record = record_on(line.data) or {}
        if not isinstance(record.get("forkedFrom"), dict) and (when := moment(record.get("timestamp"))) is not None:
            begun = when
            break
    return Holder(begun, last_time(file), file.name, path)


def last_time(file: File) -> float:
    """The last time that a record has, as far as it is at the very end of the file; else 0."""
    start = max(0, file.stat.size - HEAD_SIZE)
    for data in reversed(file.read(start, HEAD_SIZE).split(b"\n")):
        when = moment((record_on(data) or {}).get("timestamp")) if data else None
        if when is not None:
            return when
    return 0.0


_FIRST: Final[dict[tuple[Any, ...], str | None]] = {}
"""The first record of sessions, by the version of the file: in a folder of old ones each is asked by all others."""


def _version(entry: Entry) -> tuple[Any, ...]:
    stat = entry.stat
    return (entry.path,) if stat is None else (entry.path, stat.inode, stat.size, stat.mtime_ns)


def _first_of(file: File, entry: Entry) -> str | None:
    """The id of the first record of a conversation."""
    records = (record_on(data) or {} for data in file.head.split(b"\n") if data)
    found = next((uuid for record in records if (uuid := text(record.get("uuid"))) is not None), None)
    if entry.stat is not None:
        if len(_FIRST) >= _REMEMBERED:
            _FIRST.clear()
        _FIRST[_version(entry)] = found
    return found


def _name(entry: Entry) -> str:
    return re.split(r"[/\\]", entry.path)[-1]


def ids_of(kind: str | None, uuid: str | None, time: str | None, response: str | None) -> tuple[str | None, str | None]:
    """What is equal of a record and its copy, None for one without an id; and of the response that it is part of."""
    record = None if uuid is None else f"{kind} {uuid} {time}"
    return record, response or record


def _ids(file: File, sessions: Iterable[Holder]) -> Iterator[str]:
    """All records and responses of these sessions."""
    for one in sessions:
        try:
            with file.other(one.name) as other:
                for line in lines(other, limit=MAX_LINE, end=other.stat.size):
                    yield from (ident for ident in _ids_on(line.data) if ident is not None)
        except OSError:
            continue


def _ids_on(data: bytes) -> Iterable[str | None]:
    try:
        record = _decode(data)
    except ValueError:
        return ids_in(record_on(data) or {})
    response = None if record.message is None else record.message.id
    return ids_of(record.type, record.uuid, record.timestamp, response)


def ids_in(record: Record) -> tuple[str | None, str | None]:
    """`ids_of` a decoded record."""
    kind, uuid, time = (text(record.get(name)) for name in ("type", "uuid", "timestamp"))
    return ids_of(kind, uuid, time, text(mapping(record.get("message")).get("id")))
