"""Items as messages that people read, and what is left of an item once its message is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracetui.formats.decode import decode_value
from tracetui.formats.latticeflow import records
from tracetui.model import Blob, Message, Part, Reasoning, Text, ToolCall, ToolResult


def as_message(source: Mapping[str, Any], role: str) -> tuple[Message, dict[str, Any]]:
    """An item as a `Message`, and the rest of it: what the message does not show."""
    rest = dict(source)
    known = records.as_item(rest)
    kind = records.item_kind(known)
    name = known.id if isinstance(known.id, str) and known.id else None
    if kind == "function_call":
        call = ToolCall(_text(known.call_id), _text(known.name) or "", decoded(known.arguments))
        rest.pop("arguments", None)
        return Message("assistant", (call,), id=name), rest
    if kind == "function_call_output":
        answer = ToolResult(_text(known.call_id), decoded(rest.pop("output", None)))
        return Message("tool", (answer,), id=name), rest
    if kind != "message":
        word = kind.removesuffix("_message").replace("_", " ") or "item"
        rest.pop("content", None)
        return Message(role or word, (Blob(kind, known.content),), id=name), rest
    parts, left = _parts(rest.pop("content", None))
    if any(left):
        rest["content"] = left
    return Message(role, parts, id=name), rest


def _parts(content: Any) -> tuple[tuple[Part, ...], list[Any]]:
    """The parts of a message, and what is left of each once its text is shown."""
    if not isinstance(content, list):
        return ((Text(content),) if isinstance(content, str) else (Blob("content", content),)), []
    parts: list[Part] = []
    left: list[Any] = []
    for part in content:
        made, rest = _part(part)
        parts.append(made)
        left.append(rest)
    return tuple(parts), left


def _part(part: Any) -> tuple[Part, Any]:
    if isinstance(part, str):
        return Text(part), {}
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                kind = part.get("type")
                made = Reasoning if isinstance(kind, str) and kind.startswith(("reasoning", "summary")) else Text
                return made(part[key]), {name: part[name] for name in part if name != key}
        return Blob(_text(part.get("type")) or "part", part), {}
    return Blob("part", part), {}


def decoded(found: Any) -> Any:
    """A value, decoded where it is JSON in a string."""
    return decode_value(found) if isinstance(found, str) else found


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None
