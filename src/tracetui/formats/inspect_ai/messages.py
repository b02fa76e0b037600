"""Messages of a conversation as Inspect writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tracetui.formats.inspect_ai.fields import text_in
from tracetui.formats.scalars import mapping, without, word
from tracetui.model import Blob, Message, Part, Reasoning, Text, ToolCall, ToolResult

_PLAIN: Final = frozenset({"source", "model"})
"""What says nothing more where it is all that is left of a message."""


def message_of(said: Any, finish: str | None = None) -> Told:
    """A message, and what of it has no place in one (None where that is nothing to be told)."""
    if not isinstance(said, dict):
        return Message("message", (Blob("message", said),)), None
    role = word(said.get("role")) or "message"
    rest = without(said, "role", "id", "content")
    if not isinstance(said.get("role"), str) and said.get("role") is not None:
        rest["role"] = said["role"]
    ident = word(said.get("id"))
    if ident is None and said.get("id") is not None:
        rest["id"] = said["id"]
    parts = _answer(said, rest) if role == "tool" else [*_parts(said.get("content")), *_calls(rest)]
    rest = {name: value for name, value in rest.items() if value not in (None, [], {})}
    return Message(role, tuple(parts), ident, finish), rest if rest.keys() - _PLAIN else None


Told = tuple[Message, Any]
"""A message, and what of it has no place in one."""


def messages_of(said: list[Any]) -> tuple[tuple[Message, ...], dict[str, Any]]:
    """Messages, and by their number (from 1) what of them has no place in one."""
    return together(map(message_of, said))


def together(told: Iterable[Told]) -> tuple[tuple[Message, ...], dict[str, Any]]:
    """The same of what was told of each."""
    pairs = list(told)
    return tuple(message for message, _ in pairs), {
        str(number): rest for number, (_, rest) in enumerate(pairs, 1) if rest is not None
    }


def _parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    if not isinstance(content, list):
        return [] if content is None else [Blob("content", content)]
    return [_part(item) for item in content]


def _part(item: Any) -> Part:
    said = mapping(item)
    kind, text, thought = said.get("type"), said.get("text"), said.get("reasoning")
    if kind == "text" and isinstance(text, str) and said.keys() <= {"type", "text"}:
        return Text(text)
    if kind == "reasoning" and isinstance(thought, str) and said.keys() <= {"type", "reasoning", "redacted"}:
        return Reasoning(thought)
    return Blob(word(kind) or "part", item)


def _calls(rest: dict[str, Any]) -> list[Part]:
    """The calls that a message asks for; what else is told of one stays in the rest."""
    calls = rest.get("tool_calls")
    if not isinstance(calls, list):
        return []
    found: list[Part] = []
    left = []
    for call in calls:
        said = mapping(call)
        name = word(said.get("function"))
        if name is None:
            left.append(call)
            continue
        found.append(ToolCall(word(said.get("id")), name, said.get("arguments")))
        ident = () if said.get("id") is None or word(said.get("id")) else ("id",)
        more = {key: value for key, value in said.items() if key in ident or key not in ("id", "function", "arguments")}
        if more.pop("type", "function") != "function":
            more["type"] = said["type"]
        if more := {key: value for key, value in more.items() if value not in (None, [], {})}:
            left.append({"function": name, **more})
    rest["tool_calls"] = left
    return found


def _answer(said: dict[str, Any], rest: dict[str, Any]) -> list[Part]:
    """What a tool answered."""
    ident, name, error = word(said.get("tool_call_id")), word(said.get("function")), said.get("error")
    for key, value in (("tool_call_id", ident), ("function", name)):
        if value is not None:
            del rest[key]
    content = said.get("content")
    plain = text_in(content) if isinstance(content, list) and all(_is_text(part) for part in content) else content
    if plain in ("", None, []):
        plain = mapping(error).get("message", plain)  # in its place a call that failed has why
    return [ToolResult(ident, plain, error not in (None, {}, ""), name)]


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() <= {"type", "text"} and isinstance(part.get("text"), str)
