"""Records of Claude Code decoded for counting: what is counted, and nothing of the long texts beside it."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, Final

import msgspec

from tracetui.formats.claude_code.records import FIELDS, HOUSEKEEPING
from tracetui.formats.fields import Strange, Typed, closed, keys_of

NULL: Final = msgspec.Raw(b"null")
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]


class Counts(msgspec.Struct, gc=False):
    """Usage of a response."""

    input_tokens: _Count
    output_tokens: _Count
    cache_creation_input_tokens: _Count
    cache_read_input_tokens: _Count


class Block(msgspec.Struct, gc=False):
    """A part of a message."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: msgspec.Raw = NULL


class Said(msgspec.Struct, gc=False):
    """A message."""

    content: str | list[Block]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Counts | None = None


class Node(msgspec.Struct, gc=False, rename="camel", tag_field="type", tag="mode"):
    """A record; by itself one of those kinds that are no part of the conversation."""

    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    timestamp: str | None = None
    session_id: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    agent_id: str | None = None
    is_sidechain: bool | None = None
    forked_from: msgspec.Raw = NULL


class User(Node, tag="user", kw_only=True):
    """A prompt, or answers of tools."""

    message: Said
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    tool_use_result: msgspec.Raw = NULL


class Assistant(Node, tag="assistant", kw_only=True):
    """A line of a response."""

    message: Said
    is_api_error_message: bool | None = None
    error: msgspec.Raw = NULL


class Rare(Node, tag="system"):
    """Kinds of which a session has few: decoded again, in full."""


class Attachment(Rare, tag="attachment"):
    """An attachment."""


_others: Final = [
    msgspec.defstruct(f"Kind{number}", [], bases=(Node,), tag_field="type", tag=kind)
    for number, kind in enumerate(sorted(HOUSEKEEPING - {"mode"}))
]
_KINDS: Final[list[Any]] = [*_others, User, Assistant, Rare, Attachment, Node]


def _closed(kind: Any) -> Any:
    known = FIELDS.of(str(kind.__struct_config__.tag))
    return kind if known is None else closed(kind, known)


def _count(strange: Strange, record: Node, data: bytes) -> None:
    kind = str(record.__struct_config__.tag)
    if FIELDS.of(kind) is not None:
        FIELDS.count(strange, kind, keys_of(data))


decode: Final = Typed(
    msgspec.json.Decoder(reduce(or_, _KINDS)).decode,
    msgspec.json.Decoder(reduce(or_, map(_closed, _KINDS))).decode,
    _count,
)
"""The record on a line that is `skippable`. Raises `ValueError` for any that is not quite as it should be."""
