"""Records of a ccpa trace: one JSON object a line, and fields whose types nobody may trust.

Facts: paiml/claude-code-parity-apr. Its ``crates/ccpa-trace/src/lib.rs``, contract and fixtures have the fields that
are on disk, its page "Trace JSON Schema reference" documents others. Both are read.
"""

from __future__ import annotations

from datetime import UTC, datetime
from sys import intern
from typing import Any, Final

import msgspec

KINDS: Final = (
    "session_start",
    "user_prompt",
    "assistant_turn",
    "tool_result",
    "hook_event",
    "skill_invocation",
    "session_end",
)
"""Every kind of record, in both dialects."""

_TIME_LIMIT: Final = 64
_SHARED: Final = 64


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: its line (byte offset and size), the block in it that is a tool call, the line of the result."""

    offset: int
    size: int
    block: int = -1
    answer: int = -1
    answer_size: int = 0


def kind_of(record: dict[str, Any]) -> str:
    """The record's kind as it says itself, ``?`` where it says none."""
    kind = record.get("kind")
    return kind if isinstance(kind, str) and kind else "?"


def shared(value: Any) -> str | None:
    """`value` if it is text; short ones that many spans have (names, reasons) are kept once."""
    if not isinstance(value, str):
        return None
    return intern(value) if len(value) <= _SHARED else value


def first_string(record: dict[str, Any], *names: str) -> str | None:
    """The first of these fields that is text: the real name of a field before the documented one."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str):
            return value
    return None


def whole(value: Any) -> int | None:
    """`value` if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def moment(value: Any) -> tuple[float | None, str | None]:
    """An ISO 8601 time as (seconds since the epoch, zone); the zone is None for a time without one."""
    if not isinstance(value, str) or len(value) > _TIME_LIMIT:
        return None, "UTC"
    try:
        found = datetime.fromisoformat(value.strip())
        if found.tzinfo is None:
            return found.replace(tzinfo=UTC).timestamp(), None
        return found.timestamp(), "UTC"
    except (ValueError, OverflowError):
        return None, "UTC"


def blocks_of(record: dict[str, Any]) -> list[Any]:
    """The blocks of an assistant turn; none where the field is no array."""
    blocks = record.get("blocks")
    return blocks if isinstance(blocks, list) else []


def is_call(block: Any) -> bool:
    """Whether a block of an assistant turn is a tool call."""
    return isinstance(block, dict) and block.get("type") == "tool_use"


def thought_of(block: dict[str, Any]) -> str | None:
    """The text of a thinking block: ``thinking`` on disk, ``text`` in the document."""
    return first_string(block, "thinking", "text")


def content_text(content: Any) -> str:
    """The text of a tool's answer, also where it is a list of text parts."""
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def end_word(record: dict[str, Any]) -> str | None:
    """Why the session ended, in the trace's own word."""
    return first_string(record, "stop_reason", "reason")
