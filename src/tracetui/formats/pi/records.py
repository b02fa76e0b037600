"""Records of pi sessions: one JSON object a line, and fields whose types nobody may trust.

Facts: files of pi 0.74.2 and of the first versions (v1), and what pi documents of its session files. OpenClaw writes
the same.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from tracetui.formats.scalars import mapping, natural, number, word
from tracetui.model import Usage

Record = dict[str, Any]

_LATEST: Final = 1e14
"""Milliseconds since the epoch that no clock has shown."""
_SKILL: Final = re.compile(r'<skill name="([^"\n]{1,100})" location="')

SESSION: Final = "session"
NOTES: Final = frozenset(
    {
        SESSION,
        "model_change",
        "thinking_level_change",
        "label",
        "session_info",
        "custom",
        "context_edit",
        "context_transform",
        "ephemeral",
    }
)
"""Kinds of records that are no part of what was said and done."""
FINAL: Final = frozenset({"stop", "length", "error", "aborted"})
"""Stop reasons after which the agent does nothing more by itself."""


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: the lines (offset, size) that it comes from, the block that is a call, lines of its answers."""

    lines: tuple[tuple[int, int], ...] = ()
    block: int = -1
    answers: tuple[tuple[int, int], ...] = ()
    facts: tuple[tuple[str, Any], ...] = ()
    """What is known of a span that no record stands for."""

    @property
    def size(self) -> int:
        """Bytes of its lines."""
        return sum(size for _, size in (*self.lines, *self.answers))


def kind_of(record: Record) -> str:
    """The record's kind as it says itself, ``?`` where it says none."""
    return word(record.get("type")) or "?"


# ---- times


def begun(message: Record, written: float | None) -> float | None:
    """When what a message tells of began: its own time, in milliseconds, is before that at which it was written."""
    own = number(message.get("timestamp"))
    if own is None or not 0 < own < _LATEST or (written is not None and own / 1000 > written):
        return written
    return own / 1000


# ---- messages


def message_of(record: Record) -> Record:
    """The message of a record; that of an extension, or about a branch, is the record itself."""
    return record if kind_of(record) in ("custom_message", "branch_summary") else mapping(record.get("message"))


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a message: a text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def type_of(block: Any) -> str:
    """The type of a block, empty where it has none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def text_in(content: Any) -> str:
    """The text of a message or of a tool's answer."""
    if isinstance(content, str):
        return content
    texts = [block.get("text") if type_of(block) == "text" else None for block in blocks_of(content)]
    return "\n".join(one for one in texts if isinstance(one, str))


def spoken(said: str) -> str:
    """A prompt as it was typed: a skill that pi put in its place is ``/skill:NAME`` again, with what followed it."""
    said = said.strip()
    skill = _SKILL.match(said)
    if skill is None:
        return said
    _, found, rest = said.partition("\n</skill>")
    return f"/skill:{skill[1]} {rest.strip()}".strip() if found else said


def usage_of(value: Any) -> Usage | None:
    """Tokens and cost of a response. pi counts cached input apart; here it is part of the input."""
    if not isinstance(value, dict):
        return None
    plain, read, written = (natural(value.get(name)) for name in ("input", "cacheRead", "cacheWrite"))
    known = [count for count in (plain, read, written) if count is not None]
    cost = number(mapping(value.get("cost")).get("total"))
    return (
        Usage(
            input_tokens=sum(known) if known else None,
            output_tokens=natural(value.get("output")),
            cache_read_tokens=read,
            cache_creation_tokens=written,
            reasoning_tokens=natural(value.get("reasoning")),
            cost_usd=cost if cost is not None and cost >= 0 else None,
        )
        or None
    )
