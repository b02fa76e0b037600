"""The records of a LatticeFlow trace (Open Responses): items and events.

Fields are those of `latticeflow-core` 3.17. Upstream's default dump leaves out every defaulted field, which are the
words that tell records apart (`type`, `role`, `FORMAT`): then the kind follows from the keys that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeVar

import msgspec
import orjson
from msgspec import Raw, Struct

from tracetui.errors import FormatError
from tracetui.formats.scalars import mapping
from tracetui.formats.schema import NULL, Finite, Loose, Natural, Schema, plain
from tracetui.model import Usage

ROLE_UNKNOWN: Final = "unknown"
CUSTOM_TASK: Final = "custom_task_message"
"""An item of a custom task that does not say whether it is its input or its output."""
ITEM_KINDS: Final = frozenset(
    ["message", "function_call", "function_call_output", "custom_task_input_message", "custom_task_output_message"]
)
EVENT_KINDS: Final = frozenset(
    [
        "message_event",
        "function_call_event",
        "model_call_event",
        "span_begin",
        "span_end",
        "compaction",
        "error",
        "custom",
    ]
)

Id = str | int | None


class Part(Struct, gc=False):
    """A part of a message; only those of an answer have `annotations`, even in a dump without defaults."""

    text: str | None = None
    refusal: str | None = None
    annotations: Raw = NULL
    image_url: Any = None
    file_id: Any = None
    filename: Any = None


class Item(Struct, gc=False):
    """One item of a conversation. None: not there, or null."""

    known: ClassVar[str] = "created_by original_call_id"
    type: str | None = None
    id: Id = None
    role: str | None = None
    status: str | None = None
    content: list[Part | Loose] | dict[str, Any] | bool | int | float | str | None = None
    """Of a message its text or parts, of a custom task any value."""
    call_id: Id = None
    name: str | None = None
    arguments: Any = None
    output: Raw = NULL

    @property
    def kind(self) -> str:
        """One of `ITEM_KINDS`, the unknown word of a `type`, `CUSTOM_TASK` without one, or "" for none of them."""
        if self.type is not None:
            return self.type
        if self.call_id is not None:
            if not is_missing(self.output):
                return "function_call_output"
            if self.name is not None or self.arguments is not None:
                return "function_call"
        if self.content is None:
            return ""
        return "message" if self.status is not None or self.role is not None else CUSTOM_TASK

    @property
    def text(self) -> str:
        """The plain text of a message: its text parts joined by newlines."""
        content = self.content
        if isinstance(content, list):
            texts = [
                one if isinstance(one, str) else one.refusal if one.text is None else one.text
                for one in content
                if isinstance(one, Part | str)
            ]
            return "\n".join([text for text in texts if text is not None])
        return content if isinstance(content, str) else ""


class TokenUsage(Struct, gc=False):
    num_prompt_tokens: Natural | None = None
    num_completion_tokens: Natural | None = None
    total_tokens: Natural | None = None

    @property
    def usage(self) -> Usage | None:
        """Tokens of one call; the total is their sum where the trace has none."""
        given, made, total = self.num_prompt_tokens, self.num_completion_tokens, self.total_tokens
        if total is None and given is not None and made is not None:
            total = given + made
        return Usage(input_tokens=given, output_tokens=made, total_tokens=total) or None


class Event(Struct, gc=False):
    """One event. What only its body needs stays undecoded: the input context above all, which repeats in every call."""

    known: ClassVar[str] = "metadata tools traceback"
    type: str | None = None
    id: Id = None
    span_id: Id = None
    timestamp: str | None = None
    item: Item | Loose = None
    model_call_id: Id = None
    call_id: Id = None
    function: str | None = None
    arguments: Any = None
    result: Raw = NULL
    status: str | None = None
    working_time: Finite | None = None
    """Seconds."""
    error: Any = None
    agent: str | None = None
    agent_span_id: Id = None
    model: str | None = None
    input_context: Raw = NULL
    output_items: list[Item | Loose] | None = None
    usage: TokenUsage | Loose = None
    total_time: Finite | None = None
    """Seconds."""
    parent_span_id: Id = None
    name: str | None = None
    span_type: str | None = None
    strategy: str | None = None
    tokens_before: Natural | None = None
    tokens_after: Natural | None = None
    message: Any = None
    data: Raw = NULL

    @property
    def kind(self) -> str:
        """One of `EVENT_KINDS`, the unknown word of a `type`, or "" where the keys fit none of them."""
        if self.type is not None:
            return self.type
        if self.item is not None:
            return "message_event"
        if self.function is not None and self.call_id is not None:
            return "function_call_event"
        if self.model is not None and self.input_context is not NULL:
            return "model_call_event"
        if self.name is not None:
            return "custom" if self.data is not NULL else "span_begin" if self.span_id is not None else ""
        if self.strategy is not None:
            return "compaction"
        if self.message is not None:
            return "error"
        return "span_end" if self.span_id is not None else ""

    @property
    def message_item(self) -> Item:
        """`item`, an empty one where that is none."""
        return self.item if isinstance(self.item, Item) else Item()

    @property
    def outputs(self) -> list[Item]:
        """What a model call produced."""
        return [one if isinstance(one, Item) else Item() for one in self.output_items or ()]


ITEMS: Final = Schema[Item](Item)
EVENTS: Final = Schema[Event](Event)

Piece = Any
"""A part of a document: `msgspec.Raw` while it is undecoded JSON, else the value itself (leniently read documents)."""

R = TypeVar("R")

_objects: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_arrays: Final = msgspec.json.Decoder(list[Raw]).decode


def fields(piece: Piece) -> dict[str, Piece] | None:
    """The members of an object, undecoded; None if it is none."""
    found = _opened(piece, _objects)
    return found if isinstance(found, dict) else None


def elements(piece: Piece) -> list[Piece] | None:
    """The elements of an array, undecoded; None if it is none."""
    found = _opened(piece, _arrays)
    return found if isinstance(found, list) else None


def _opened(piece: Piece, decode: Callable[[Raw], Any]) -> Any:
    try:
        return decode(piece) if isinstance(piece, Raw) else piece
    except (ValueError, RecursionError):
        return None


def record(kind: Schema[R], piece: Piece) -> R:
    """A piece as a record of that kind; an empty one if it is no object, or cannot be read."""
    if not isinstance(piece, Raw):
        return kind.convert(piece, {})
    try:
        found = kind.decode(bytes(piece), {})[0]
    except FormatError:
        found = None
    return kind.convert({}, {}) if found is None else found


def content_of(piece: Piece) -> Any:
    """The `content` of an item, or of the item of an event, with all that is in it."""
    value = mapping(plain(piece))
    return mapping(value.get("item", value)).get("content")


def is_missing(raw: Raw) -> bool:
    """True for a value that is not there, or null."""
    return raw is NULL or raw == NULL


def roles(items: Sequence[Item]) -> list[str]:
    """The role of each item, "" for those that are no message.

    Without `role` a message is the assistant's if a part of it has `annotations`, else the user's. Several such ones
    before any user's: all but the last may as well be system prompts, their role is `ROLE_UNKNOWN`.
    """
    found = ["" if one.kind != "message" else one.role or _inferred_role(one) for one in items]
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


def _inferred_role(message: Item) -> str:
    parts = message.content if isinstance(message.content, list) else []
    answered = any(isinstance(part, Part) and part.annotations is not NULL for part in parts)
    return "assistant" if answered else "?"


def milliseconds(seconds: Any) -> float | None:
    """A duration in seconds, as milliseconds; None for what is no duration."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e15:
        return None
    return round(float(seconds) * 1000, 3)


def as_text(value: Any) -> str:
    """A value as text: itself, or JSON where that can say it."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # what JSON cannot say, or too deep
        return type(value).__name__


def ident(value: Id) -> str | None:
    """An id as text; None where there is none."""
    return value or None if isinstance(value, str) else None if value is None else str(value)
