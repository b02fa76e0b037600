"""The bodies of spans: all fields of the lines that a span came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tracetui.formats.bodies import Named, records_at
from tracetui.formats.codex.records import SCHEMA, Message, ToolCall, in_envelope
from tracetui.formats.decode import record_on
from tracetui.formats.scalars import child, mapping, string, without, word
from tracetui.model import Blob, Body, Link, Operation, Part, Reasoning, Span, Text
from tracetui.model import Message as ModelMessage
from tracetui.model import ToolCall as CallPart
from tracetui.sources.base import File

_TEXTS: Final = frozenset({"text", "Text", "input_text", "output_text", "summary_text", "reasoning_text"})


class Record:
    """One record as it is written, and as `records` reads it."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.is_event, self.payload, self._envelope = _split(value)
        read = SCHEMA.convert(value, {})
        self.name: str = read.kind()
        self.read = read.payload
        self.item = getattr(read.payload, "item", None) or read.payload
        """Its subject: itself, or the item that an event completes."""
        self.fields = child(self.payload, "item") or self.payload
        """The fields of `item`."""

    def rest(self, *used: str) -> dict[str, Any]:
        """All fields but those of the payload that are `used` elsewhere."""
        return _rest(self.payload, self._envelope, used)


def _split(value: dict[str, Any]) -> tuple[bool, dict[str, Any], dict[str, Any]]:
    """Whether a record is an event, its payload, and all of its other fields but the type."""
    envelope = in_envelope(value)
    payload = envelope.get("payload")
    is_object = isinstance(payload, dict)
    return (
        envelope["type"] == "event_msg",
        mapping(payload),
        without(envelope, "type", *(["payload"] if is_object else [])),
    )


def _rest(payload: dict[str, Any], envelope: dict[str, Any], used: Sequence[str]) -> dict[str, Any]:
    fields = without(payload, *used)
    fields |= {f"record.{key}" if key in fields else key: value for key, value in envelope.items()}
    return _seal(fields)


def _seal(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with the size of encrypted content for the content."""
    hidden = fields.get("encrypted_content")
    return fields | {"encrypted_content": f"encrypted, {len(hidden)} characters"} if isinstance(hidden, str) else fields


def about(data: bytes) -> tuple[str | None, dict[str, Any]]:
    """The system prompt and all other fields of the first record of a thread, on the line `data`."""
    value = record_on(data)
    if value is None:
        return None, {}
    _, payload, envelope = _split(value)
    attributes = _rest(payload, envelope, ["base_instructions"])
    instructions = payload.get("base_instructions")
    prompt = instructions if isinstance(instructions, str) else string(mapping(instructions).get("text"))
    rest = without(instructions, "text") if isinstance(instructions, dict) and prompt is not None else instructions
    if rest is not None and not isinstance(rest, str) and rest != {}:
        attributes["base_instructions"] = rest
    return prompt, attributes


def body_of(file: File, span: Span) -> Body:
    """The body of a span; `raw` is all lines that it came from. Raises `FormatError` if the file changed."""
    lines = records_at(file, span.at)
    records, raw = [Record(value) for value, _ in lines], b"\n".join(data for _, data in lines)
    if span.operation is Operation.CHAT:
        return _response(records, raw)
    if span.operation is Operation.MESSAGE:
        return _message(records, raw)
    if span.operation is Operation.EXECUTE_TOOL:
        return _call(records, raw)
    if len(records) == 1:
        return Body(attributes=records[0].rest(), raw=raw)
    named = Named()
    for record in records:
        named.add(record.name, record.rest())
    done = next(
        (record.payload["last_agent_message"] for record in records if "last_agent_message" in record.payload), None
    )
    return Body(output=done, attributes=named.fields, raw=raw)


# ---- messages and responses


def _response(records: list[Record], raw: bytes) -> Body:
    """A response as one message: reasoning, text, and the calls that it asked for."""
    parts: list[Part] = []
    repeated: list[Record] = []
    named = Named()
    status = None
    for record in records:
        item = record.item
        if isinstance(item, ToolCall):
            parts.append(CallPart(item.call_id or item.id or None, item.tool(), item.given()))
        elif not isinstance(item, Message):
            named.add(record.name, record.rest())
        elif item.event:
            repeated.append(record)
        else:
            status = string(record.payload.get("status")) or status
            rests: dict[str, Any] = {}
            used = [name for name in ("summary", "content") if isinstance(record.payload.get(name), str | list)]
            for name in used:
                content_parts, rest = _parts(record.payload[name], name, reasoning=item.reasoning)
                parts += content_parts
                rests |= rest
            named.add(record.name, record.rest("type", "role", "status", *used) | rests)
    content = {part.text for part in parts if isinstance(part, Text | Reasoning)}
    for record in repeated:
        text = record.item.texts()
        lines = [line for line in text.split("\n") if line]
        if (
            text
            and text not in content
            and not all(line in content for line in lines)
            and text not in "\n".join(content)
        ):
            parts.append(Reasoning(text) if record.item.reasoning else Text(text))
            content.add(text)
        named.add(record.name, record.rest())
    texts = [part.text for part in parts if isinstance(part, Text)]
    messages = (ModelMessage("assistant", tuple(parts), finish_reason=status),) if parts else ()
    return Body(output="\n".join(texts) if texts else None, output_messages=messages, attributes=named.fields, raw=raw)


def _parts(content: Any, name: str, *, reasoning: bool = False) -> tuple[list[Part], dict[str, Any]]:
    """The parts of a content, and all other fields of each under ``name[0]``."""
    parts: list[Part] = []
    rests: dict[str, Any] = {}
    for index, part in enumerate(content if isinstance(content, list) else [content]):
        kind = string(part.get("type")) if isinstance(part, dict) else None
        text = part if isinstance(part, str) else string(part.get("text")) if kind in _TEXTS else None
        if text is None:
            parts.append(Blob(kind or "part", _seal(part) if isinstance(part, dict) else part))
            continue
        parts.append(Reasoning(text) if reasoning else Text(text))
        rest = without(part, "type", "text") if isinstance(part, dict) else None
        if rest:
            rests[f"{name}[{index}]"] = rest
    return parts, rests


def _message(records: list[Record], raw: bytes) -> Body:
    """A message from outside, as an item, as an event, or as both."""
    named = Named()
    messages: tuple[ModelMessage, ...] = ()
    for record in sorted(records, key=lambda record: record.is_event):
        field = "content" if "content" in record.fields else "message"
        content = record.fields.get(field)
        if messages or not isinstance(content, str | list):
            named.add(record.name, record.rest())
            continue
        parts, rests = _parts(content, "content")
        role = string(record.payload.get("role")) or "user"
        messages = (ModelMessage(role, tuple(parts), id=word(record.fields.get("id"))),)
        used = ("type", "role", field) if record.fields is record.payload else ()
        named.flat(record.rest(*used) | rests)
    texts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    return Body(input="\n".join(texts) if texts else None, input_messages=messages, attributes=named.fields, raw=raw)


# ---- tool calls


def _call(records: list[Record], raw: bytes) -> Body:
    """A call with its output, and the events about it under their names."""
    named = Named()
    given = output = None
    agents: dict[str, str] = {}
    called = answered = False
    for record in records:
        payload = record.payload
        agents |= {thread: _nickname(record, thread) or agents.get(thread, thread) for thread in record.read.threads()}
        is_output = record.name.endswith("_output")
        if record.is_event or (called and not is_output) or (answered and "output" in payload):
            named.add(record.name, record.rest())
        elif is_output:
            answered, output = True, payload.get("output")
            named.add("result", record.rest("type", "output"))
        else:
            called, given = True, record.item.given() if isinstance(record.item, ToolCall) else None
            used = next((name for name in ("arguments", "input", "action") if payload.get(name) is not None), "type")
            named.flat(record.rest("type", used))
    if not answered:
        outputs = ("aggregated_output", "stdout", "result", "results", "content_items")
        values = (record.fields.get(name) for record in records for name in outputs)
        output = next((value for value in values if value not in (None, "")), None)
    links = tuple(Link(f"sub-agent {name[:120]}", run=thread) for thread, name in agents.items())
    return Body(input=given, output=output, attributes=named.fields, links=links, raw=raw)


def _nickname(record: Record, thread: str) -> str | None:
    """The name of a spawned agent."""
    agents = record.fields.get("receiver_agents")
    for agent in agents if isinstance(agents, list) else ():
        if isinstance(agent, dict) and agent.get("thread_id") == thread:
            return word(agent.get("agent_nickname"))
    return word(record.fields.get("new_agent_nickname"))
