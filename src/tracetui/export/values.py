"""Values and messages as cleaned lines of text, uncut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from tracetui.export.json import encode, plain
from tracetui.model import Blob, Message, Part, Reasoning, Text, ToolCall, ToolResult
from tracetui.text import Clean, clean_lines, one_line


def value_lines(value: Any) -> list[Clean]:
    """Text as it is, everything else as indented JSON."""
    return clean_lines(value if isinstance(value, str) else pretty(value))


def pretty(value: Any) -> str:
    """Indented JSON; on one line where a value is so deep or odd that only `encode` takes it. Not cleaned."""
    try:
        return orjson.dumps(value, default=plain, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return encode(value).decode()


def messages_lines(messages: Iterable[Message]) -> Iterator[Clean]:
    """A conversation: each message under its role."""
    for message in messages:
        name = f" ({one_line(message.name, 60)})" if message.name else ""
        yield Clean(f"[{one_line(message.role, 40)}{name}]")
        for part in message.parts:
            yield from clean_lines(part_text(part, pretty))


def one_of_messages(messages: Iterable[Message]) -> str:
    """Messages as one text, in short; not cleaned."""
    return " ".join(part_text(part, compact) for message in messages for part in message.parts)


def compact(value: Any) -> str:
    """A value as one line of text; not cleaned."""
    return value if isinstance(value, str) else encode(value).decode()


def part_text(part: Part, show: Any) -> str:
    """One part of a message as text; `show` writes values. Not cleaned."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Reasoning):
        return f"(thinking) {part.text}"
    if isinstance(part, ToolCall):
        return f"→ {part.name}({show(part.arguments) if part.arguments is not None else ''})"
    if isinstance(part, ToolResult):
        failed = " (error)" if part.is_error else ""
        content: Any = part.content
        return f"←{failed} {content if isinstance(content, str) else show(content)}"
    assert isinstance(part, Blob)
    return f"[{part.kind}] {show(part.data)}"
