"""Messages and their parts, in the words of each convention; what has no place in them is handed back."""

from __future__ import annotations

from typing import Any, Final

from tracetui.formats.otlp.records import keep
from tracetui.formats.otlp.words import decoded
from tracetui.formats.scalars import word
from tracetui.model import Blob, Message, Part, Reasoning, Text, ToolCall, ToolResult

Fields = dict[str, Any]

_TEXT: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_THOUGHT: Final = frozenset({"reasoning", "thinking", "thought"})
_CALL: Final = frozenset({"tool_call", "tool_use", "tool-call", "function_call", "function"})
_RESULT: Final = frozenset(
    {"tool_call_response", "tool_result", "tool-result", "tool_response", "function_call_output"}
)
_BLOCKS: Final = {
    "text": "text",
    "toolUse": "tool_use",
    "toolResult": "tool_result",
    "reasoningContent": "reasoning",
}
"""Parts as Bedrock has them: an object of one field, which is their kind."""
_WRAPPERS: Final = ("message_content", "tool_call")


def message_of(value: Any, role: str) -> tuple[Message, Fields]:
    """A message, and what of it has no place there. `role` is whose it is if it does not say."""
    if isinstance(value, str):
        return Message(role, (Text(value),)), {}
    if not isinstance(value, dict):
        return Message(role, (Blob("message", value),)), {}
    rest = _opened(value)
    role = _text(rest, "role") or role
    if role == "tool" or isinstance(rest.get("tool_call_id"), str):
        found = _answer(rest)
        if found is not None:
            return Message(role, (found,), id=_text(rest, "id"), name=found.name), rest
    parts = [*_contents(rest), *_calls(rest)]
    reason = _text(rest, "finish_reason")
    return Message(role, tuple(parts), id=_text(rest, "id"), finish_reason=reason, name=_text(rest, "name")), rest


def _opened(value: Fields) -> Fields:
    """The fields of a message that may be within another object, beside what that says."""
    inner = decoded(value.get("message"))
    if not isinstance(inner, dict):
        if isinstance(inner, list):
            inner = value["message"]  # parts
        if isinstance(inner, str | list) and "content" not in value:
            return {"content": inner, **{key: item for key, item in value.items() if key != "message"}}
        return dict(value)
    fields = dict(inner)
    for key, item in value.items():
        if key != "message":
            keep(fields, key, item)
    return fields


def _answer(rest: Fields) -> ToolResult | None:
    """What a message of a tool answers; None where its parts say so themselves."""
    if "content" not in rest and "contents" not in rest:
        return None
    name = "content" if "content" in rest else "contents"
    content = rest[name]
    if isinstance(content, list) and any(_kind(part) in _RESULT for part in content if isinstance(part, dict)):
        return None
    del rest[name]
    ident = _text(rest, "tool_call_id") or _text(rest, "id")
    return ToolResult(ident, decoded(content), name=_text(rest, "name"))


def _contents(rest: Fields) -> list[Part]:
    parts: list[Part] = []
    for name in ("parts", "contents", "content"):
        value = decoded(rest[name]) if name in rest and name != "content" else rest.get(name)
        if name == "content" and isinstance(value, str) and value.lstrip()[:1] == "[":
            value = _listed(value)
        if isinstance(value, str):
            if value and value not in [part.text for part in parts if isinstance(part, Text)]:
                parts.append(Text(value))
        elif isinstance(value, list):
            for place, one in enumerate(value):
                part, left = part_of(one)
                parts.append(part)
                if left:
                    rest[f"{name}[{place}]"] = left
        elif isinstance(value, dict):
            part, left = part_of(value)
            parts.append(part)
            if left:
                rest[f"{name}[0]"] = left
        elif value is not None:
            continue
        rest.pop(name, None)
    return parts


def _listed(text: str) -> Any:
    """Parts that are written as JSON; a text that only looks like it stays one."""
    found = decoded(text)
    return found if isinstance(found, list) and found and all(_is_part(one) for one in found) else text


def _is_part(value: Any) -> bool:
    return bool(_kind(value)) or (isinstance(value, dict) and len(value) == 1 and not value.keys().isdisjoint(_BLOCKS))


def _calls(rest: Fields) -> list[Part]:
    calls: list[Part] = []
    found = decoded(rest.get("tool_calls"))
    if isinstance(found, list):
        del rest["tool_calls"]
        for place, value in enumerate(found):
            part, left = part_of({"type": "tool_call", **value} if isinstance(value, dict) else value)
            calls.append(part)
            if left:
                rest[f"tool_calls[{place}]"] = left
    single = rest.get("function_call")
    if isinstance(single, dict) and isinstance(single.get("name"), str):
        call, left = _call(dict(rest.pop("function_call")))
        calls.append(call)
        if left:
            rest["function_call"] = left
    if isinstance(rest.get("function_call_name"), str):
        name = rest.pop("function_call_name")
        calls.append(ToolCall(None, name, decoded(rest.pop("function_call_arguments_json", None))))
    return calls


def part_of(value: Any) -> tuple[Part, Fields]:
    """A part of a message, and what of it has no place there."""
    if isinstance(value, str):
        return Text(value), {}
    if not isinstance(value, dict):
        return Blob("part", value), {}
    rest = dict(value)
    for name in _WRAPPERS:
        inner = rest.get(name)
        if isinstance(inner, dict):
            del rest[name]
            outer, rest = rest, dict(inner)
            for key, item in outer.items():
                if key != "type" or "type" not in rest:
                    keep(rest, key, item)
    kind = _kind(rest)
    if len(rest) == 1 and (block := next(iter(rest))) in _BLOCKS:
        kind, rest = _BLOCKS[block], _unblocked(rest, block)
    if kind in _TEXT or (not kind and isinstance(rest.get("text"), str)):
        text = _one(rest, "content", "text", "refusal")
        return (Text(text), _typeless(rest)) if text is not None else (Blob(kind or "text", value), {})
    if kind in _THOUGHT:
        text = _one(rest, "content", "text", "thinking", "reasoning")
        return (Reasoning(text), _typeless(rest)) if text is not None else (Blob(kind, value), {})
    if kind in _CALL:
        return _call(_typeless(rest))
    if kind in _RESULT:
        return _result(_typeless(rest))
    return Blob(kind or "part", value), {}


def _unblocked(rest: Fields, block: str) -> Fields:
    """The fields of such a part: those of the one object in it, if it is one."""
    inner = rest[block]
    thought = inner.get("reasoningText") if block == "reasoningContent" and isinstance(inner, dict) else None
    if isinstance(thought, dict):
        return {**{key: value for key, value in inner.items() if key != "reasoningText"}, **thought}
    return dict(inner) if isinstance(inner, dict) else rest


def _call(rest: Fields) -> tuple[Part, Fields]:
    inner = rest.get("function")
    if isinstance(inner, dict):
        del rest["function"]
        for key, item in inner.items():
            keep(rest, key, item)
    ident = _one(rest, "id", "call_id", "toolCallId", "tool_call_id", "toolUseId")
    name = _one(rest, "name", "toolName") or "call"
    found = next((key for key in ("arguments", "args", "input") if key in rest), None)
    given = decoded(rest.pop(found)) if found is not None else None
    return ToolCall(ident, name, given), rest


def _result(rest: Fields) -> tuple[Part, Fields]:
    ident = _one(rest, "id", "call_id", "toolCallId", "tool_call_id", "tool_use_id", "toolUseId")
    name = _one(rest, "name", "toolName")
    found = next((key for key in ("response", "result", "output", "content") if key in rest), None)
    content = decoded(rest.pop(found)) if found is not None else None
    failed = next((rest.pop(key) for key in ("is_error", "isError") if isinstance(rest.get(key), bool)), None)
    return ToolResult(ident, content, failed, name), rest


def _kind(value: Any) -> str:
    found = value.get("type", value.get("kind")) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _typeless(rest: Fields) -> Fields:
    return {key: value for key, value in rest.items() if key != "type" or not isinstance(value, str)}


def _text(rest: Fields, name: str) -> str | None:
    """Take a field that is text."""
    return word(rest.pop(name)) if isinstance(rest.get(name), str) else None


def _one(rest: Fields, *names: str) -> str | None:
    """Take the first of these fields that is text."""
    return next((rest.pop(name) for name in names if isinstance(rest.get(name), str)), None)
