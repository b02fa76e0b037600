"""Bodies: the records of a span, read again."""

from __future__ import annotations

from typing import Any

from tracetui.formats.gemini.records import Source, Spot
from tracetui.formats.record_cache import changed, record_at
from tracetui.formats.scalars import mapping, sequence, text, without
from tracetui.formats.schema import plain, raw_of
from tracetui.model import Blob, Body, Message, Operation, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File

Item = dict[str, Any]


def body_of(file: File, span: Span) -> Body:
    """The body of a span; raises `FormatError` if the file holds other records there now."""
    at = span.at
    if not isinstance(at, Spot):
        raise changed()
    found = _merged([_record(file, one) for one in at.sources])
    (*earlier, record), raw = [one for one, _ in found], b"\n".join(data for _, data in found)
    if at.call >= 0:
        answers = [_record(file, one)[0] for one in at.answers]
        return _call(record, at.call, [*earlier, *answers], raw)
    if span.operation in (Operation.UNKNOWN, Operation.OTHER) or "id" not in record or "type" not in record:
        many = {str(number): one for number, one in enumerate([*earlier, record], 1)}
        return Body(attributes=many if earlier else record, raw=raw)
    return _message(
        record, [_difference(one, record) for one in earlier], raw, is_output=span.operation is Operation.CHAT
    )


def _message(record: Item, earlier: list[Item], raw: bytes, *, is_output: bool) -> Body:
    """A message or response; all that its parts do not show is among the attributes."""
    fields, content, calls = dict(record), record.get("content"), sequence(record.get("toolCalls"))
    fields.pop("content", None)
    parts: list[Part] = _thoughts(fields.get("thoughts"))
    if not fields.get("thoughts"):
        fields.pop("thoughts", None)
    parts += map(_part, content if isinstance(content, list) else [] if content is None else [content])
    shown = "\n".join(one.text for one in parts if isinstance(one, Text)) or None
    requests = [one for one in calls if isinstance(one, dict)]
    if requests:
        fields.pop("toolCalls")
    if others := [one for one in calls if not isinstance(one, dict)]:
        fields["toolCalls"] = others
    parts += [ToolCall(text(one.get("id")), text(one.get("name")) or "tool", one.get("args")) for one in requests]
    message = (Message(text(record.get("type")) or "?", tuple(parts), text(record.get("id"))),)
    attributes = _and(fields, earlier)
    if is_output:
        return Body(output=shown, output_messages=message, attributes=attributes, raw=raw)
    return Body(input=shown, input_messages=message, attributes=attributes, raw=raw)


def _merged(found: list[tuple[Item, bytes]]) -> list[tuple[Item, bytes]]:
    """Records of Qwen Code that are pieces of one message, as one of Gemini CLI; any others as they are."""
    if not all("uuid" in one and isinstance(mapping(one.get("message")).get("parts"), list) for one, _ in found):
        return found
    content, rest = [], dict[str, Any]()
    for number, (one, _) in enumerate(found, 1):
        message = mapping(one.get("message"))
        content += message["parts"]
        fields = {**without(one, "message"), "message": without(message, "parts")}
        changed_fields = {key: value for key, value in fields.items() if key not in rest or rest[key] != value}
        if number == 1:
            rest = fields
        elif changed_fields:
            rest[f"piece {number}"] = changed_fields
    return [({"id": rest.get("uuid"), **rest, "content": content}, b"\n".join(data for _, data in found))]


def _record(file: File, source: Source) -> tuple[Item, bytes]:
    """The record at a place, and its bytes: a rendering for an item of a list."""
    if source.raw is not None:
        value, data = plain(source.raw), bytes(source.raw)
    else:
        value, data = record_at(file, source.offset, source.length, many=source.item >= 0)
        if source.item >= 0:
            items = sequence(mapping(value.get("$set")).get("messages"))
            value = items[source.item] if source.item < len(items) else None
            data = bytes(raw_of(value)) if value is not None else b""
    if not isinstance(value, dict):
        raise changed(f"byte {source.offset}")
    return value, data


def _call(record: Item, number: int, others: list[Item], raw: bytes) -> Body:
    """A call with its result. Other messages about it are below ``message``."""
    calls = [one for one in sequence(record.get("toolCalls")) if isinstance(one, dict)]
    if not record.get("toolCalls"):
        content = record.get("content")
        blocks = content if isinstance(content, list) else [content]
        asked = [mapping(one).get("functionCall") for one in blocks]
        calls = [one for one in asked if isinstance(one, dict)]
    if number >= len(calls):
        raise changed()
    call = calls[number]
    result = call.get("result")
    attributes = without(call, "args", "result")
    mine = [one for one in others if one.get("type") in ("user", "tool_result")]
    return Body(input=call.get("args"), output=_output(result), attributes=_and(attributes, mine), raw=raw)


def _output(result: Any) -> Any:
    """What the model was given: its text, where that is all of it."""
    if isinstance(result, list) and len(result) == 1:
        response = mapping(mapping(mapping(result[0]).get("functionResponse")).get("response"))
        if len(response) == 1 and isinstance(response.get("output"), str):
            return response["output"]
    return result


def _thoughts(value: Any) -> list[Part]:
    """Thoughts as parts of a message."""
    texts = [[mapping(one).get(name) for name in ("subject", "description")] for one in sequence(value)]
    thoughts = ["\n".join(one for one in pair if isinstance(one, str) and one) for pair in texts]
    return [Reasoning(one) for one in thoughts if one]


def _part(block: Any) -> Part:
    if isinstance(block, str):
        return Text(block)
    if isinstance(block, dict):
        shown, call, thought = block.get("text"), mapping(block.get("functionCall")), block.get("thought", False)
        if isinstance(shown, str) and block.keys() <= {"text", "thought"} and isinstance(thought, bool):
            return Reasoning(shown) if thought else Text(shown)
        if isinstance(call.get("name"), str) and len(block) == 1 and call.keys() <= {"id", "name", "args"}:
            return ToolCall(text(call.get("id")), call["name"], call.get("args"))
    return Blob(next(iter(block), "part") if isinstance(block, dict) else "part", block)


def _difference(record: Item, last: Item) -> Item:
    """The fields in which an earlier version of a message differs from the last one."""
    return {key: value for key, value in record.items() if key not in last or last[key] != value}


def _and(attributes: Item, others: list[Item]) -> Item:
    """The attributes, and other records that belong to them."""
    found = dict(attributes)
    for number, one in enumerate((one for one in others if one), 1):
        name = f"message {number}"
        while name in found:
            name += "+"
        found[name] = one
    return found
