"""The body of one turn or call, from its record as it is written."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.bodies import rendered
from tracetui.formats.document import Record
from tracetui.formats.penelope.records import decoded, same
from tracetui.formats.penelope.turns import ARGUMENTS, At, Call, Turn, first_of, flattened
from tracetui.formats.scalars import mapping, sequence, string, without
from tracetui.formats.schema import plain
from tracetui.model import Blob, Body, Message, Part, Reasoning, Text, ToolCall, ToolResult

_RESULTS: Final = ("output", "result", "response")
_FLAT: Final = ("reasoning", "assistant_message", "tool_message")
"""Fields of a flat turn that are one call together."""


def body_of(at: At) -> Body:
    """Everything about the span that is at `at`. Raises `FormatError` if it is not one of ours."""
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    if at.target_tool is not None:
        return _target_body(at.turn, at.target_tool)
    if at.call is not None:
        return _call_body(at.turn, at.turn.calls[at.call])
    return _turn_body(at.turn)


def _fields(record: Record | None) -> dict[str, Any]:
    return {} if record is None else mapping(plain(record.raw))


def _turn_body(turn: Turn) -> Body:
    """The turn as a conversation: Penelope is its user, the target its assistant, as its own metrics have it."""
    line, message, response = _fields(turn.summary), turn.message, turn.response
    thought = string(line.get("penelope_reasoning"))
    parts: list[Part] = [Reasoning(thought)] if thought else []
    parts += [Text(message)] if message else []
    attributes = _rest(turn, _fields(turn.history))
    consumed = [key for key in ("penelope_message", "penelope_reasoning", "target_response") if string(line.get(key))]
    if sequence(line.get("tool_calls")):
        consumed.append("tool_calls")
    if same(line.get("turn"), attributes.get("turn_number")):
        consumed.append("turn")
    for key, value in without(line, *consumed).items():
        known = key in attributes and not same(attributes[key], value)
        attributes[f"conversation_summary.{key}" if known else key] = value
    record = turn.history or turn.summary
    return Body(
        input=message,
        output=response,
        input_messages=(Message("user", tuple(parts), name="penelope"),) if parts else (),
        output_messages=(Message("assistant", (Text(response),), name="target"),) if response else (),
        attributes=attributes,
        raw=b"" if record is None else bytes(record.raw),
    )


def _rest(turn: Turn, record: dict[str, Any]) -> dict[str, Any]:
    """The record of a turn in the history without its calls."""
    if turn.calls and not turn.calls[0].path:
        record = without(record, *_FLAT)
    rest = without(record, "executions", "target_interaction")
    executions, target = record.get("executions"), record.get("target_interaction")
    if "executions" in record and not isinstance(executions, list):
        rest["executions"] = executions
    rest.update((f"executions[{i}]", item) for i, item in enumerate(sequence(executions)) if not isinstance(item, dict))
    if "target_interaction" in record and not any(same(target, _at(record, call.path)) for call in turn.calls):
        rest["target_interaction"] = target
    return rest


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _call_body(turn: Turn, call: Call) -> Body:
    record: dict[str, Any] = _at(_fields(turn.history), call.path)
    if not call.path:
        record = {name: record[name] for name in _FLAT if name in record}
    attributes = without(record, *_FLAT)
    parts: list[Part] = []
    thought = string(record.get("reasoning"))
    if thought is not None:
        parts.append(Reasoning(thought))
    elif record.get("reasoning") is not None:
        attributes["reasoning"] = record["reasoning"]
    asked = _assistant(record.get("assistant_message"), parts, thought, attributes)
    if any(isinstance(part, ToolCall) and part.name == attributes.get("tool_name") for part in parts):
        del attributes["tool_name"]  # the call shows it
    return Body(
        input=call.arguments,
        output=call.output,
        input_messages=asked,
        output_messages=_tool(record.get("tool_message"), call, attributes),
        attributes=attributes,
        raw=_slice(turn.history, call.path, record),
    )


def _assistant(message: Any, parts: list[Part], thought: str | None, attributes: dict[str, Any]) -> tuple[Message, ...]:
    """Penelope's own message: its reasoning, text and calls; what fits no part goes to `attributes`."""
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


def _tool(message: Any, call: Call, attributes: dict[str, Any]) -> tuple[Message, ...]:
    """The tool's answer as a message; what fits no part goes to `attributes`."""
    if message is None:
        return ()
    fields = mapping(message)
    kept = {key: string(fields.get(key)) for key in ("role", "tool_call_id", "name")}
    rest = without(fields, "content", *(key for key, value in kept.items() if value is not None))
    if rest or not call.answered:
        attributes["tool_message"] = rest or message
    failed = None if call.success is None else not call.success
    result = ToolResult(kept["tool_call_id"], call.answer, failed, kept["name"])
    return (Message(kept["role"] or "tool", (result,)),)


def _slice(record: Record | None, path: tuple[str | int, ...], value: Any) -> bytes:
    """The bytes at `path` in a record, exactly as they are there; a rendering of `value` where that cannot be."""
    raw: Any = record.raw if record else msgspec.Raw(b"")
    try:
        for step in path:
            kind: Any = dict[str, msgspec.Raw] if isinstance(step, str) else list[msgspec.Raw]
            raw = msgspec.json.decode(raw, type=kind)[step]
    except (ValueError, RecursionError):  # nested too deeply
        return rendered(value)
    return bytes(raw) or rendered(value)


def _target_body(turn: Turn, place: int) -> Body:
    """A call that the target made; its bytes are in the summary, unless only the text of an answer holds it."""
    item = turn.target_tools[place]
    call = flattened(item)
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
        raw=_slice(turn.summary, ("tool_calls", place), item) if turn.line.tool_calls else rendered(item),
    )
