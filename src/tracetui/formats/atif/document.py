"""A trajectory as a file holds it: its steps and the trajectories of its sub-agents, with their places in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.atif.fields import Record
from tracetui.formats.atif.lean import lean_steps
from tracetui.formats.decode import decode, strict
from tracetui.formats.scalars import mapping, sequence, word

STEPS: Final = "steps"
AGENTS: Final = "subagent_trajectories"
DEPTH: Final = 16
"""Trajectories within trajectories are read so far; deeper ones stay among what their parent says of itself."""
_Fields = dict[str, msgspec.Raw]
_NO_STEPS: Final = msgspec.Raw(b"null")


class Document(msgspec.Struct, frozen=True):
    """One trajectory."""

    root: dict[str, Any]
    """What it says of itself: without steps and sub-agents, but for what is none."""
    steps: list[Record]
    agents: list[Document]
    whole: Record
    """All of it. Its value is left out where it has a place."""

    @property
    def ids(self) -> tuple[str | None, str | None]:
        """Its own id, and that of the session that it is part of."""
        return word(self.root.get("trajectory_id")), word(self.root.get("session_id"))


def document(data: bytes, *, placed: bool = True) -> tuple[Document, str | None]:
    """The trajectory that a file holds, and a note where it had to be read leniently. Raises `FormatError`.

    `placed`: with where everything is in the file, so far as it is strict JSON; that takes three times as long.
    """
    try:
        if placed:
            return _strict(data, memoryview(data), 0, DEPTH), None
        if (found := _lean(data)) is not None:
            return found, None
        value, note = strict(data), None
    except (ValueError, RecursionError):  # not strict JSON, or types that are not those of a trajectory
        value, note = decode(data)
    if not isinstance(value, dict):
        raise FormatError("not a JSON object")
    return _plain(value, DEPTH), note


def beginning(data: bytes) -> tuple[dict[str, Any], Iterator[Any]] | None:
    """What a trajectory says of itself, and its steps, decoded one by one; None where that takes more."""
    try:
        fields = msgspec.json.decode(data, type=_Fields)
        steps = msgspec.json.decode(fields.get(STEPS, b"[]"), type=list[msgspec.Raw])
        root = {name: _value(raw) for name, raw in fields.items() if name not in (STEPS, AGENTS)}
    except (ValueError, RecursionError):
        return None
    return root, map(_value, steps)


def root_of(data: bytes) -> dict[str, Any]:
    """What the trajectory that `data` is says of itself."""
    found = beginning(data)
    return found[0] if found is not None else document(data)[0].root


def _value(raw: msgspec.Raw) -> Any:
    return strict(bytes(memoryview(raw)))


def _strict(data: bytes, part: memoryview, start: int, depth: int) -> Document:
    """The trajectory that `part` of the file's `data` is; it begins at byte `start`."""
    fields = msgspec.json.decode(part, type=_Fields)
    steps = list(_elements(data, fields.get(STEPS), start))
    agents, kept = [], {STEPS: fields.get(STEPS) is not None and not _is_list(fields[STEPS])}
    if depth and AGENTS in fields and _is_list(fields[AGENTS]):
        raws = list(_elements(data, fields[AGENTS], start))
        kept[AGENTS] = not all(isinstance(raw.value, dict) for raw in raws)
        if not kept[AGENTS]:
            agents = [_strict(data, memoryview(data)[a : a + n], a, depth - 1) for a, n, _ in _places(raws)]
    elif AGENTS in fields:
        kept[AGENTS] = True
    root = {name: _value(raw) for name, raw in fields.items() if kept.get(name, True)}
    return Document(root, steps, agents, Record(None, (start, len(part), crc32(part))))


def _lean(data: bytes) -> Document | None:
    """The trajectory with what counts of its steps; None where it takes more to decode it."""
    try:
        fields = msgspec.json.decode(data, type=_Fields)
        if AGENTS in fields or not _is_list(fields.get(STEPS, _NO_STEPS)):
            return None
        steps = lean_steps(data, fields.pop(STEPS))
    except (ValueError, RecursionError):
        return None
    root = {name: _value(raw) for name, raw in fields.items()}
    return Document(root, list(map(Record, steps)), [], Record(root))


def _is_list(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["


def _places(records: list[Record]) -> Iterator[tuple[int, int, int]]:
    return (record.place for record in records if record.place is not None)


def _elements(data: bytes, raw: msgspec.Raw | None, start: int) -> Iterator[Record]:
    """The elements of the list that `raw` is, somewhere after byte `start`."""
    if raw is None or not _is_list(raw):
        return
    position = data.find(memoryview(raw), start) + 1
    for element in msgspec.json.decode(raw, type=list[msgspec.Raw]):
        view = memoryview(element)
        position = data.find(view, position)
        yield Record(_value(element), (position, len(view), crc32(view)))
        position += len(view)


def _plain(value: dict[str, Any], depth: int) -> Document:
    steps, agents = value.get(STEPS), value.get(AGENTS)
    root = {name: item for name, item in value.items() if name not in (STEPS, AGENTS)}
    if not isinstance(steps, list | None):
        root[STEPS] = steps
    readable = bool(depth) and isinstance(agents, list) and all(isinstance(item, dict) for item in agents)
    if agents is not None and not readable:
        root[AGENTS] = agents
    return Document(
        root,
        [Record(step) for step in sequence(steps)],
        [_plain(mapping(item), depth - 1) for item in sequence(agents)] if readable else [],
        Record(root),
    )
