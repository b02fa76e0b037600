"""The body of one step: its messages, its input hash, and the rest.

`input_hash` is the fingerprint by which Paprika notices a replay that diverges and calls that repeat. The document
says: SHA-256 over the sorted, compact JSON of the input, 16 hex digits. The runtime (``adapters/llm.py``,
``adapters/tools.py``) hashes the input *wrapped* together with the provider and model, or the tool's name. Both are
tried. Written with `json.dumps`, which escapes what is not ASCII: another JSON writer gives other digits.

Messages are those of whatever library the agent's provider has: read are the shapes of OpenAI (chat and responses),
Anthropic and plain text. What has none of them is no message, and stays in the input or output of the span, where
everything is anyway.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from msgspec import Raw

from tracetui.errors import FormatError
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import mapping, string
from tracetui.formats.schema import plain
from tracetui.model import Blob, Body, Check, Message, Part, Reasoning, Text, ToolCall, ToolResult

_INPUTS: Final = ("input_data", "args")
_OUTPUT: Final = "output_data"
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")
DOCUMENTED: Final = "documented"
RUNTIME: Final = "runtime"


def body_of(records: list[Raw], *, exact: bool = True) -> Body:
    """The body of a step from its record, or from its start and end event.

    `exact`: they are as they are written. Raises `FormatError` for what cannot be decoded.
    """
    values = [plain(record) for record in records]
    if not all(isinstance(value, dict) for value in values):
        raise FormatError("the step can't be decoded", "")
    merged = {name: item for value in reversed(values) for name, item in value.items()}  # the start event wins
    sent = next((name for name in _INPUTS if name in merged), None)
    got = next((value[_OUTPUT] for value in reversed(values) if _OUTPUT in value), None)
    chat = "model" in merged or sent == "input_data"
    verdict = check(merged)
    return Body(
        input=None if sent is None else merged[sent],
        output=got,
        input_messages=messages_in(merged.get(sent)) if chat and sent else (),
        output_messages=messages_out(got) if chat else (),
        attributes=_rest(values, sent),
        checks=() if verdict is None else (verdict,),
        raw=b"\n".join(map(bytes, records) if exact else map(_rendered, values)),
    )


def _rendered(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")


def _rest(values: list[dict[str, Any]], sent: str | None) -> dict[str, Any]:
    """All that is neither the input nor the output; what differs in the end event is shown beside the start's."""
    rest: dict[str, Any] = {}
    for number, value in enumerate(values):
        for name, item in value.items():
            if (name == sent and number == 0) or (name == _OUTPUT and number == len(values) - 1):
                continue
            if name not in rest:
                rest[name] = item
            elif rest[name] != item:
                rest[f"{name} (end)"] = item
    return rest


# ---- the input hash


def input_hash(value: Any) -> str:
    """The first 16 hex digits of the hash of `value`; empty for what is nested too deeply to be written."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    except RecursionError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check(record: dict[str, Any]) -> Check | None:
    """The stored hash of a call compared with both recipes; None where the call holds none."""
    stored = record.get("input_hash")
    if not isinstance(stored, str):
        return None
    if "input_data" in record:
        bare = record["input_data"]
        wrapped = {"provider": record.get("provider"), "model": record.get("model"), "input": bare}
    elif "args" in record:
        bare = record["args"]
        wrapped = {"name": record.get("tool_name"), "args": bare}
    else:
        return None
    expected = ((RUNTIME, input_hash(wrapped)), (DOCUMENTED, input_hash(bare)))
    return Check("input_hash", stored, next((name for name, value in expected if value == stored), None), expected)


# ---- messages


def messages_in(data: Any) -> tuple[Message, ...]:
    """The conversation that was sent: ``messages`` after ``system``, ``input`` after ``instructions``, or a prompt."""
    if not isinstance(data, dict):
        return (_message("user", data),) if isinstance(data, str) and data else ()
    found = [_message("system", data[name]) for name in ("system", "instructions") if data.get(name)]
    for name in ("messages", "input", "prompt"):
        value = data.get(name)
        if isinstance(value, list):
            found.extend(_messages(value, "user"))
        elif isinstance(value, str) and value:
            found.append(_message("user", value))
    return tuple(found)


def messages_out(data: Any) -> tuple[Message, ...]:
    """What came back: ``choices[].message``, ``output`` items, a message with ``content``, or plain text."""
    if isinstance(data, str):
        return (_message("assistant", data),) if data else ()
    if not isinstance(data, dict):
        return ()
    choices = data.get("choices")
    if isinstance(choices, list):
        return tuple(_choice(choice) for choice in choices if isinstance(choice, dict))
    if isinstance(data.get("output"), list):
        return tuple(_messages(data["output"], "assistant"))
    if isinstance(data.get("message"), dict):
        return (_of(data["message"], "assistant", data),)
    if "content" in data:
        return (_of(data, "assistant", data),)
    text = next((data[name] for name in ("output_text", "text", "completion", "response") if name in data), None)
    return (_message("assistant", text),) if isinstance(text, str) else ()


def _choice(choice: dict[str, Any]) -> Message:
    message = choice.get("message")
    if isinstance(message, dict):
        return _of(message, "assistant", choice)
    return _message("assistant", choice.get("text"))


def _messages(values: list[Any], role: str) -> list[Message]:
    return [_of(value, role, value) if isinstance(value, dict) else _message(role, value) for value in values]


def _message(role: str, content: Any) -> Message:
    return Message(role, tuple(_parts(content)))


def _of(value: dict[str, Any], role: str, holder: dict[str, Any]) -> Message:
    """One message object; an item of the responses interface (a call, an output, reasoning) counts as one."""
    role = string(value.get("role")) or role
    parts: list[Part] = [Reasoning(value[name]) for name in _REASONING if isinstance(value.get(name), str)]
    content = value.get("content")
    if role == "tool" and "tool_call_id" in value:
        parts.append(ToolResult(string(value["tool_call_id"]), content, name=string(value.get("name"))))
    elif "content" in value:
        parts.extend(_parts(content))
    elif "type" in value:
        parts.append(_part(value))
    calls = value.get("tool_calls")
    parts.extend(_call(call) for call in calls if isinstance(call, dict)) if isinstance(calls, list) else None
    if isinstance(value.get("function_call"), dict):
        parts.append(_call({"function": value["function_call"]}))
    return Message(
        role,
        tuple(parts),
        id=string(value.get("id")),
        finish_reason=string(holder.get("finish_reason")) or string(holder.get("stop_reason")),
        name=string(value.get("name")),
    )


def _parts(content: Any) -> list[Part]:
    if isinstance(content, list):
        return [_part(item) if isinstance(item, dict) else _other(item) for item in content]
    return [] if content is None else [_other(content)]


def _other(content: Any) -> Part:
    return Text(content) if isinstance(content, str) else Blob("value", content)


def _part(value: dict[str, Any]) -> Part:
    """One content part, of whichever provider."""
    kind = string(value.get("type")) or ""
    text = string(value.get("text"))
    thought = string(value.get("thinking"))
    if kind in ("thinking", "reasoning") and (thought or text) is not None:
        return Reasoning(thought or text or "")
    if text is not None:
        return Text(text)
    if kind in ("tool_use", "function_call"):
        return _call(value)
    if kind in ("tool_result", "function_call_output"):
        ident = string(value.get("tool_use_id")) or string(value.get("call_id"))
        error = value.get("is_error")
        return ToolResult(ident, value.get("content", value.get("output")), error if isinstance(error, bool) else None)
    return Blob(kind or "part", value)


def _call(value: dict[str, Any]) -> ToolCall:
    function = mapping(value.get("function")) or value
    arguments = function.get("arguments", function.get("input"))
    if isinstance(arguments, str):
        arguments = decode_value(arguments)
    ident = string(value.get("call_id")) or string(value.get("id"))
    return ToolCall(ident, string(function.get("name")) or "tool", arguments)
