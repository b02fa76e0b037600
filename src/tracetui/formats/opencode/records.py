"""Sessions, messages and parts of opencode, as each of its stores holds them; no field can be trusted.

A message is a record of who spoke, and its parts are what was said and done: texts, thoughts, calls, steps, patches.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.scalars import child, number, string, word
from tracetui.model import Usage

_MOST: Final = 1 << 53
"""What JavaScript, which counted, holds exactly."""
_LATEST: Final = 1e14
"""Milliseconds since the epoch of times that are believed: up to the year 5138."""

Record = dict[str, Any]


class Part(msgspec.Struct, frozen=True):
    """One part of a message."""

    id: str
    data: Record
    own: Record = {}
    """What its row says besides, under the names of the columns; and data that is no object."""
    place: tuple[Any, ...] = ()
    """Where it is in its store."""
    kind: str = "part"
    """What kind of part it is, as it says itself."""
    size: int = 0
    """Bytes of it; 0 where they are within those of the message."""


class Message(msgspec.Struct, frozen=True):
    """One message with its parts, in their order."""

    id: str
    data: Record
    parts: tuple[Part, ...] = ()
    own: Record = {}
    place: tuple[Any, ...] = ()
    size: int = 0
    """Bytes of it, those of parts that have their own left out."""


class Info(msgspec.Struct, frozen=True):
    """What a store says of a session itself."""

    id: str
    parent: str | None = None
    title: str = ""
    directory: str | None = None
    version: str | None = None
    agent: str | None = None
    model: str | None = None
    created: float | None = None
    """Milliseconds since the epoch, as all times of opencode are."""
    updated: float | None = None
    revert: Record = {}
    tokens: Record = {}
    """Totals that it declares, as a step declares its tokens."""
    cost: Any = None
    branch: str | None = None
    place: tuple[Any, ...] = ()


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: the session, its message, the part of it; and what of that it shows."""

    session: tuple[Any, ...] = ()
    message: tuple[Any, ...] | None = None
    """None: the span is made of the session itself, or of nothing."""
    part: tuple[Any, ...] | None = None
    part_id: str = ""
    step: int = 0
    """Which of the steps of a message."""
    shows: str = ""
    """``session`` or ``revert``, of the session itself."""
    size: int = 0
    """Bytes of a record of an unknown kind."""


def info_of(told: Record, ident: str, place: tuple[Any, ...] = ()) -> Info:
    """What the object that opencode itself calls the info of a session says."""
    times = child(told, "time")
    return Info(
        id=ident,
        parent=word(told.get("parentID")),
        title=string(told.get("title")) or "",
        directory=word(told.get("directory")),
        version=word(told.get("version")),
        agent=word(told.get("agent")),
        model=model_of(told),
        created=moment(times.get("created")),
        updated=moment(times.get("updated")),
        revert=child(told, "revert"),
        tokens=child(told, "tokens"),
        cost=told.get("cost"),
        place=place,
    )


def part_with(ident: str, data: Record, own: Record, place: tuple[Any, ...], size: int = 0) -> Part:
    """A part of the kind that its data says."""
    kind = data.get("type")
    return Part(ident, data, own, place, kind if isinstance(kind, str) and kind else "part", size)


def size_of(value: Any) -> int:
    """Bytes of a text, or of bytes."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, bytes) else 0


def model_of(told: Record) -> str | None:
    """The model that a message or a session names, in each of the ways in which they do."""
    named = told.get("model")
    if isinstance(named, dict):
        return word(named.get("modelID")) or word(named.get("id"))
    return word(told.get("modelID")) or word(named)


def record_of(value: Any) -> tuple[Record, Record, str | None]:
    """(The object that a column or file holds, what it holds if that is none, what is wrong with it)."""
    try:
        found = msgspec.json.decode(value)
        note = None
    except (TypeError, ValueError, RecursionError):
        if not isinstance(value, str | bytes):
            return {}, {} if value is None else {"data": value}, "it holds no JSON"
        try:
            data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
            found, note = decode(data)
        except FormatError as error:
            shown = value if isinstance(value, str) else value.decode("utf-8", "replace")
            return {}, {"data": shown}, error.reason
    if not isinstance(found, dict):
        return {}, {"data": found}, "it is no JSON object"
    return found, {}, None if note is None else f"read leniently: {note}"


def usage_of(tokens: Record, cost: Any) -> Usage | None:
    """The tokens of a step: opencode leaves cached tokens out of the input, and thoughts out of the output."""
    cache = child(tokens, "cache")
    fresh, said, thought = (whole(tokens.get(name)) for name in ("input", "output", "reasoning"))
    read, written = whole(cache.get("read")), whole(cache.get("write"))
    used = Usage(
        input_tokens=None if fresh is read is written is None else (fresh or 0) + (read or 0) + (written or 0),
        output_tokens=None if said is thought is None else (said or 0) + (thought or 0),
        cache_read_tokens=read,
        cache_creation_tokens=written,
        reasoning_tokens=thought,
        cost_usd=number(cost),
    )
    return used or None


def whole(value: Any) -> int | None:
    """`value` if it is a whole number that JavaScript holds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST:
        return None
    return int(value) if value == int(value) else None


def moment(value: Any) -> float | None:
    """A time in milliseconds since the epoch."""
    found = number(value)
    return found if found is not None and 0 < found < _LATEST else None


def seconds(milliseconds: float | None) -> float | None:
    """The same in seconds."""
    return None if milliseconds is None else milliseconds / 1000


def since(begin: float | None, end: float | None) -> float | None:
    """Milliseconds from `begin` to `end`, None where one is not told or they are the wrong way round."""
    return None if begin is None or end is None or end < begin else end - begin
