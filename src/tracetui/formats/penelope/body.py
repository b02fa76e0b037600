"""Everything that a Penelope result says about one turn or call."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.penelope.fields import decoded, rendered, same
from tracetui.formats.penelope.spans import ARGUMENTS, At, first_of, function_of
from tracetui.formats.penelope.turns import Execution, Turn, rest_of
from tracetui.formats.scalars import mapping, sequence, string, without
from tracetui.model import Blob, Body, Message, Part, Reasoning, Text, ToolCall, ToolResult

_RESULTS: Final = ("output", "result", "response")


def body_of(at: At) -> Body:
    """Everything about the span that is at `at`. Raises `FormatError` if it is not one of ours."""
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    if at.target_tool is not None:
        return _target_body(at.turn, at.target_tool)
    if at.execution is not None:
        return _call_body(at.turn, at.turn.calls[at.execution])
    return _turn_body(at.turn)


def _turn_body(turn: Turn) -> Body:
    """The turn as a conversation: Penelope is its user, the target its assistant, as its own metrics have it."""
    thought, said, heard = string(turn.line.get("penelope_reasoning")), turn.said, turn.heard
    parts: list[Part] = [Reasoning(thought)] if thought else []
    parts += [Text(said)] if said else []
    attributes = rest_of(turn)
    consumed = [
        key for key in ("penelope_message", "penelope_reasoning", "target_response") if string(turn.line.get(key))
    ]
    if sequence(turn.line.get("tool_calls")):
        consumed.append("tool_calls")
    if same(turn.line.get("turn"), attributes.get("turn_number")):
        consumed.append("turn")
    for key, value in without(turn.line, *consumed).items():
        known = key in attributes and not same(attributes[key], value)
        attributes[f"conversation_summary.{key}" if known else key] = value
    return Body(
        input=said,
        output=heard,
        input_messages=(Message("user", tuple(parts), name="penelope"),) if parts else (),
        output_messages=(Message("assistant", (Text(heard),), name="target"),) if heard else (),
        attributes=attributes,
        raw=_turn_raw(turn),
    )


def _turn_raw(turn: Turn) -> bytes:
    """The record in the history, else the one in the summary."""
    record = turn.history or turn.summary
    return b"" if record is None else record.raw or rendered(record.value)


def _call_body(turn: Turn, call: Execution) -> Body:
    record, attributes = call.record, without(call.record, "reasoning", "assistant_message", "tool_message")
    parts: list[Part] = []
    thought = string(record.get("reasoning"))
    if thought is not None:
        parts.append(Reasoning(thought))
    elif record.get("reasoning") is not None:
        attributes["reasoning"] = record["reasoning"]
    asked = _assistant(record.get("assistant_message"), parts, thought, attributes)
    if any(isinstance(part, ToolCall) and part.name == attributes.get("tool_name") for part in parts):
        del attributes["tool_name"]  # the call says it
    answered = _tool(record.get("tool_message"), call, attributes)
    return Body(
        input=call.arguments,
        output=call.output,
        input_messages=asked,
        output_messages=answered,
        attributes=attributes,
        raw=_call_raw(turn, call),
    )


def _assistant(message: Any, parts: list[Part], thought: str | None, attributes: dict[str, Any]) -> tuple[Message, ...]:
    """Penelope's own message: what it thought, said and called; what fits no part goes to `attributes`."""
    fields = mapping(message)
    content = fields.get("content")
    if isinstance(content, str):
        parts += [Text(content)] if content and content != thought else []  # today's Penelope repeats its reasoning
    elif content is not None:
        parts.append(Blob("content", content))
    rests = [_call_part(item, parts) for item in sequence(fields.get("tool_calls"))]
    rest = without(fields, "role", "content", "tool_calls")
    if fields.get("tool_calls") is not None and not isinstance(fields["tool_calls"], list):
        rest["tool_calls"] = fields["tool_calls"]
    elif any(rests):
        rest["tool_calls"] = rests
    role = string(fields.get("role"))
    if role is None and fields.get("role") is not None:
        rest["role"] = fields["role"]
    if rest or (message is not None and not isinstance(message, dict)):
        attributes["assistant_message"] = rest or message
    return (Message(role or "assistant", tuple(parts)),) if parts or fields else ()


def _call_part(item: Any, parts: list[Part]) -> dict[str, Any]:
    """Add one call to `parts`; returns what the part has no place for."""
    call = mapping(item)
    function, name = mapping(call.get("function")), string(mapping(call.get("function")).get("name"))
    if name is None:
        parts.append(Blob("tool_call", item))
        return {}
    call_id = string(call.get("id"))
    parts.append(ToolCall(call_id, name, decoded(function.get("arguments"))))
    rest = without(call, "function") if call_id is None else without(call, "function", "id")
    more = without(function, "name", "arguments")
    return {**rest, "function": more} if more else rest


def _tool(message: Any, call: Execution, attributes: dict[str, Any]) -> tuple[Message, ...]:
    """The tool's answer as a message; what fits no part goes to `attributes`."""
    if message is None:
        return ()
    fields = mapping(message)
    kept = {key: string(fields.get(key)) for key in ("role", "tool_call_id", "name")}
    rest = without(fields, "content", *(key for key, value in kept.items() if value is not None))
    if rest:
        attributes["tool_message"] = rest
    failed = None if call.success is None else not call.success
    result = ToolResult(kept["tool_call_id"], call.answer, failed, kept["name"])
    return (Message(kept["role"] or "tool", (result,)),)


def _call_raw(turn: Turn, call: Execution) -> bytes:
    """The bytes of the execution within those of its turn; of a flat turn all of it."""
    return _slice(turn.history.raw if turn.history else b"", call.path, call.record)


def _slice(raw: bytes, path: tuple[str | int, ...], value: Any) -> bytes:
    """The bytes at `path` in a JSON value, exactly as they stand there; a rendering of `value` where that cannot be."""
    try:
        for step in path if raw else ():
            if isinstance(step, str):
                raw = bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[step])
            else:
                raw = bytes(msgspec.json.decode(raw, type=list[msgspec.Raw])[step])
    except (ValueError, RecursionError):  # nested too deeply
        raw = b""
    return raw or rendered(value)


def _target_body(turn: Turn, place: int) -> Body:
    """A call that the target made."""
    item = turn.target_tools[place]
    call = function_of(mapping(item))
    shown = (key for names in (ARGUMENTS, _RESULTS) for key in [key for key in names if key in call][:1])
    attributes = without(call, "function", *shown) if isinstance(item, dict) else {"tool_call": item}
    function = mapping(item).get("function")
    hidden = {k: v for k, v in function.items() if k in item} if isinstance(function, dict) else function
    if hidden not in (None, {}):
        attributes["function"] = hidden
    return Body(
        input=first_of(call, ARGUMENTS),
        output=first_of(call, _RESULTS),
        attributes=attributes,
        raw=_target_raw(turn, place),
    )


def _target_raw(turn: Turn, place: int) -> bytes:
    """The bytes in the summary; a rendering where the call is known only from the text of an answer."""
    listed = turn.summary is not None and bool(sequence(turn.line.get("tool_calls")))
    raw = turn.summary.raw if turn.summary and listed else b""
    return _slice(raw, ("tool_calls", place), turn.target_tools[place])
