"""Messages as people read them: a role and parts, in the words of the OpenTelemetry GenAI conventions."""

from __future__ import annotations

from typing import Any

import msgspec


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text of a message."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """What the model thought before it answered (`gen_ai` part type ``reasoning``)."""

    text: str


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A call that the model asked for. `arguments` is decoded JSON where it was JSON, else the text itself."""

    id: str | None
    name: str
    arguments: Any = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_call_response"):
    """What a tool answered. `is_error` is None where the trace does not say."""

    id: str | None
    content: Any = None
    is_error: bool | None = None
    name: str | None = None


class Blob(msgspec.Struct, frozen=True, tag="blob"):
    """Content that is not text (image, file, unknown part): shown by kind, kept as `data`."""

    kind: str
    data: Any = None


Part = Text | Reasoning | ToolCall | ToolResult | Blob


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation: `role` is the trace's own word (system, user, assistant, tool, developer …)."""

    role: str
    parts: tuple[Part, ...] = ()
    id: str | None = None
    finish_reason: str | None = None
    name: str | None = None


def text_of(message: Message) -> str:
    """The plain text of a message: its text parts joined by newlines."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))
