"""The records of a LatticeFlow trace (Open Responses): items and events, decoded only as far as a list of spans needs.

Fields are those of `latticeflow-core` 3.17. Upstream's default dump leaves out every defaulted field, which are the
words that tell records apart (`type`, `role`, `FORMAT`): then the kind follows from the keys that are there.
Every field may hold anything.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, TypeVar

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.kept import once
from tracetui.formats.scalars import word
from tracetui.formats.schema import NULL, Loose, Schema, Unknown
from tracetui.sources.base import File

ROLE_UNKNOWN: Final = "unknown"

ITEM_KINDS: Final = frozenset(
    {"message", "function_call", "function_call_output", "custom_task_input_message", "custom_task_output_message"}
)
EVENT_KINDS: Final = frozenset(
    {
        "message_event",
        "function_call_event",
        "model_call_event",
        "span_begin",
        "span_end",
        "compaction",
        "error",
        "custom",
    }
)


CUSTOM_TASK: Final = "custom_task_message"
"""An item of a custom task that does not say whether it is its input or its output."""


class Item(msgspec.Struct, gc=False):
    """One item of a conversation. None: not there, or null."""

    known: ClassVar[str] = "created_by original_call_id"
    type: Any = None
    id: Any = None
    role: Any = None
    status: Any = None
    content: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    output: msgspec.Raw = NULL


class Event(msgspec.Struct, gc=False):
    """One event. What only its body needs stays undecoded: the input context above all, which repeats in every call."""

    known: ClassVar[str] = "metadata tools traceback"
    type: Any = None
    id: Any = None
    span_id: Any = None
    timestamp: Any = None
    item: Item | Loose = None
    model_call_id: Any = None
    call_id: Any = None
    function: Any = None
    arguments: Any = None
    result: msgspec.Raw = NULL
    status: Any = None
    working_time: Any = None
    error: Any = None
    agent: Any = None
    agent_span_id: Any = None
    model: Any = None
    input_context: msgspec.Raw = NULL
    output_items: list[Item | Loose] | bool | int | float | str | None = None
    usage: Any = None
    total_time: Any = None
    parent_span_id: Any = None
    name: Any = None
    span_type: Any = None
    strategy: Any = None
    tokens_before: Any = None
    tokens_after: Any = None
    message: Any = None
    data: msgspec.Raw = NULL

    @property
    def said(self) -> Item:
        """`item`, an empty one where that is none."""
        return self.item if isinstance(self.item, Item) else Item()

    @property
    def outputs(self) -> list[Item]:
        """What a model call produced."""
        found = self.output_items if isinstance(self.output_items, list) else ()
        return [one if isinstance(one, Item) else Item() for one in found]


ITEMS: Final = Schema[Item](Item)
EVENTS: Final = Schema[Event](Event)

Piece = Any
"""A part of a document: `msgspec.Raw` while it is undecoded JSON, else the value itself (leniently read documents)."""

R = TypeVar("R")

_objects: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_arrays: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def fields(piece: Piece) -> dict[str, Piece] | None:
    """The members of an object, undecoded; None if it is none."""
    try:
        return _objects(piece) if isinstance(piece, msgspec.Raw) else piece if isinstance(piece, dict) else None
    except (ValueError, RecursionError):
        return None


def elements(piece: Piece) -> list[Piece] | None:
    """The elements of an array, undecoded; None if it is none."""
    try:
        return _arrays(piece) if isinstance(piece, msgspec.Raw) else piece if isinstance(piece, list) else None
    except (ValueError, RecursionError):
        return None


def record(kind: Schema[R], piece: Piece, unknown: Unknown) -> R | None:
    """A piece as a record of that kind; None if it is no object. Raises `FormatError` if it cannot be read at all."""
    if isinstance(piece, msgspec.Raw):
        return kind.decode(bytes(piece), unknown)[0]
    return kind.convert(piece, unknown) if isinstance(piece, dict) else None


def as_item(piece: Piece) -> Item:
    """A piece as an item, an empty one if it is no object."""
    try:
        return record(ITEMS, piece, {}) or Item()
    except FormatError:
        return Item()


def value(piece: Piece) -> Any:
    """A piece as a value. Raises `FormatError` if it cannot be read even leniently."""
    return decode(bytes(piece))[0] if isinstance(piece, msgspec.Raw) else piece


def missing(raw: msgspec.Raw) -> bool:
    """True for a value that is not there, or null."""
    return raw is NULL or (memoryview(raw).nbytes == 4 and bytes(raw) == b"null")


def item_kind(found: Item) -> str:
    """One of `ITEM_KINDS`, the unknown word of a `type`, ``custom_task_message`` without one, or "" for neither."""
    if isinstance(found.type, str):
        return found.type
    if found.call_id is not None:
        if not missing(found.output):
            return "function_call_output"
        if found.name is not None or found.arguments is not None:
            return "function_call"
    if found.content is None:
        return ""
    return "message" if found.status is not None or found.role is not None else CUSTOM_TASK


def event_kind(found: Event) -> str:
    """One of `EVENT_KINDS`, the unknown word of a `type`, or "" where the keys fit none of them."""
    if isinstance(found.type, str):
        return found.type
    if found.item is not None:
        return "message_event"
    if found.function is not None and found.call_id is not None:
        return "function_call_event"
    if found.model is not None and found.input_context is not NULL:
        return "model_call_event"
    if found.name is not None:
        return "custom" if found.data is not NULL else "span_begin" if found.span_id is not None else ""
    if found.strategy is not None:
        return "compaction"
    if found.message is not None:
        return "error"
    return "span_end" if found.span_id is not None else ""


def roles(items: Sequence[Item]) -> list[str]:
    """The role of each item, "" for those that are no message.

    Without `role` a message is the assistant's if a part of it has `annotations`, else the user's. Several such ones
    before any user's: all but the last may as well be system prompts, their role is `ROLE_UNKNOWN`.
    """
    found = ["" if item_kind(one) != "message" else _own_role(one) or "?" for one in items]
    user_seen = False
    open_one = -1  # a message without a role, before any user's
    for i, role in enumerate(found):
        if not role:
            continue
        if open_one >= 0:
            found[open_one] = ROLE_UNKNOWN if role in ("?", "user") else "user"
            user_seen = user_seen or found[open_one] == "user"
            open_one = -1
        if role == "?" and user_seen:
            found[i] = "user"
        elif role == "?":
            open_one = i
        user_seen = user_seen or role == "user"
    if open_one >= 0:
        found[open_one] = "user"
    return found


def _own_role(message: Item) -> str | None:
    if isinstance(message.role, str):
        return message.role
    parts = message.content if isinstance(message.content, list) else []
    return "assistant" if any(isinstance(part, dict) and "annotations" in part for part in parts) else None


def text_of(message: Item) -> str:
    """The plain text of a message: its text parts joined by newlines."""
    content = message.content
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text", part.get("refusal")) if isinstance(part, dict) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a record is in the file: its bytes and a checksum of their ends.

    With a `path` it is a part of what these bytes hold: a document that strict JSON refuses has no finer places.
    """

    offset: int
    size: int
    check: int
    path: tuple[str | int, ...] = ()


def checksum(piece: bytes | memoryview | msgspec.Raw) -> int:
    """Tells a record from what may lie in its place later: a checksum of its first and last bytes."""
    view = memoryview(piece)
    return zlib.crc32(view) if view.nbytes <= 512 else zlib.crc32(view[-256:], zlib.crc32(view[:256]))


def fetch(file: File, place: Place) -> tuple[Any, bytes]:
    """The value of a record, and its exact bytes. Raises `FormatError` if they are not what they were."""
    if not place.path:
        return _decoded(file, place)
    found = once(file, (place.offset, place.size, place.check), lambda: _decoded(file, place)[0])
    for step in place.path:
        found = found[step]
    return found, json.dumps(found, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _decoded(file: File, place: Place) -> tuple[Any, bytes]:
    data = file.read(place.offset, place.size)
    if len(data) != place.size or checksum(data) != place.check:
        raise FormatError("the file changed since it was read", f"byte {place.offset}")
    return decode(data)[0], data


def seconds(stamp: Any) -> float | None:
    """An ISO 8601 time as UTC seconds since the epoch (a naive one is taken as UTC), None for anything else."""
    moment = _moment(stamp)
    if moment is None:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None


def naive(stamp: Any) -> bool:
    """True for a time that does not say in which zone."""
    moment = _moment(stamp)
    return moment is not None and moment.tzinfo is None


def _moment(stamp: Any) -> datetime | None:
    if not isinstance(stamp, str) or not 10 <= len(stamp) <= 40:
        return None
    try:
        return datetime.fromisoformat(stamp)
    except ValueError:
        return None


def milliseconds(found: Any) -> float | None:
    """A duration in seconds, as milliseconds; None for what is no duration."""
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1e15:
        return None
    return round(float(found) * 1000, 3)


def said(found: Any) -> str:
    """A value as text: itself, or JSON where that can say it."""
    if isinstance(found, str):
        return found
    try:
        return orjson.dumps(found).decode()
    except TypeError:  # what JSON cannot say, or too deep
        return type(found).__name__


def count(found: Any) -> int | None:
    """A whole number that is not negative; None for anything else."""
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def ident(found: Any) -> str | None:
    """An id as text; None where there is none."""
    if type(found) is str:
        return found or None
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else word(found)
