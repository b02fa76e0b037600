"""Entries of pi decoded for counting: what is counted, and nothing of the long texts beside it."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, Final

import msgspec

from tracetui.formats.decode import skippable
from tracetui.formats.fields import Strange, Typed, closed, keys_of
from tracetui.formats.pi.known import ENVELOPE, FIELDS
from tracetui.formats.pi.records import NOTES

NULL: Final = msgspec.Raw(b"null")
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]


class Cost(msgspec.Struct, gc=False):
    """What a response cost."""

    total: Annotated[float, msgspec.Meta(ge=0)] | None = None


class Counts(msgspec.Struct, gc=False, rename="camel"):
    """Usage of a response."""

    input: _Count | None = None
    output: _Count | None = None
    cache_read: _Count | None = None
    cache_write: _Count | None = None
    reasoning: _Count | None = None
    cost: Cost | None = None


class Said(msgspec.Struct, gc=False):
    """A block of a prompt."""

    type: str
    text: str | None = None


class Block(msgspec.Struct, gc=False):
    """A block of a response."""

    type: str
    id: str | None = None
    name: str | None = None


class Details(msgspec.Struct, gc=False, rename="camel"):
    """What a tool tells besides its answer."""

    exit_code: _Count | None = None


class Asked(msgspec.Struct, gc=False, tag_field="role", tag="user"):
    """A prompt."""

    content: str | list[Said]


class Response(msgspec.Struct, gc=False, rename="camel", tag_field="role", tag="assistant"):
    """A response of the model."""

    content: str | list[Block]
    model: str | None = None
    usage: Counts | None = None
    stop_reason: str | None = None
    error_message: str | None = None


class Answer(msgspec.Struct, gc=False, rename="camel", tag_field="role", tag="toolResult"):
    """The answer of a tool."""

    tool_call_id: str | None = None
    is_error: bool | None = None
    details: Details | None = None
    content: msgspec.Raw = NULL
    usage: None = None


class Entry(msgspec.Struct, gc=False, rename="camel", tag_field="type", tag="custom_message"):
    """An entry; by itself what an extension says."""

    id: str | None = None
    parent_id: str | msgspec.UnsetType | None = msgspec.UNSET
    timestamp: str | None = None


class Talk(Entry, tag="message", kw_only=True):
    """A message."""

    message: Asked | Response | Answer


class Note(Entry, tag="label"):
    """What the program notes for itself; by itself a label."""


class Chosen(Note, tag="model_change"):
    """Another model was chosen."""

    model_id: str | None = None


class Summary(Entry, tag="compaction"):
    """A summary of what was said before."""

    usage: Counts | None = None


class Left(Summary, tag="branch_summary"):
    """A summary of what was said in a branch that was left."""


class Spent(Summary, tag="usage"):
    """What was used outside of the conversation."""

    model: str | None = None


_notes: Final = [
    msgspec.defstruct(f"Note{number}", [], bases=(Note,), tag_field="type", tag=kind)
    for number, kind in enumerate(sorted(NOTES - {"label", "model_change"}))
]
_KINDS: Final[list[Any]] = [*_notes, Note, Chosen, Summary, Left, Spent, Entry]


def _closed(kind: Any, **retyped: Any) -> Any:
    known = FIELDS.of(str(kind.__struct_config__.tag))
    return kind if known is None else closed(kind, known, **retyped)


def _count(strange: Strange, entry: Entry, data: bytes) -> None:
    if isinstance(entry, Talk):
        FIELDS.count(strange, str(entry.message.__struct_config__.tag), ENVELOPE.names_on(data))
    else:
        FIELDS.count(strange, str(entry.__struct_config__.tag), keys_of(data))


_messages: Final = reduce(or_, map(_closed, (Asked, Response, Answer)))
_decode: Final = Typed(
    msgspec.json.Decoder(reduce(or_, [*_KINDS, Talk])).decode,
    msgspec.json.Decoder(reduce(or_, [*map(_closed, _KINDS), closed(Talk, ENVELOPE.known, message=_messages)])).decode,
    _count,
)


def lean(line: bytes, strange: Strange) -> Any:
    """The entry on a line; see `Typed`. Raises `ValueError` for any that is not quite as it should be."""
    skippable(line)
    return _decode(line, strange)
