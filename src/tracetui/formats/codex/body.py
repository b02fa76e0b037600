"""Everything that a rollout says about one span, read again from the lines that it came from."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tracetui.formats.codex.records import CALLS, DONE_CALLS, SAID, SCHEMA, At, Call, Talk, Thought, in_envelope
from tracetui.formats.lines import record_on
from tracetui.formats.places import Named, changed, records_at
from tracetui.formats.scalars import child, mapping, string, without, word
from tracetui.model import Blob, Body, Link, Message, Operation, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File

ITEM: Final = "response_item"
EVENT: Final = "event_msg"
_TEXTS: Final = frozenset({"text", "Text", "input_text", "output_text", "summary_text", "reasoning_text"})


class Record(NamedTuple):
    """One record: its kind, what it is called, what it says, and all besides that."""

    kind: str
    name: str
    payload: dict[str, Any]
    envelope: dict[str, Any]
    read: Any
    """The payload as `records` reads it."""


def record_of(value: dict[str, Any]) -> Record:
    """The record that an object on a line is, in each layout."""
    found, read = in_envelope(value), SCHEMA.convert(value, {})
    payload = found.get("payload")
    envelope = without(found, "type", *(["payload"] if isinstance(payload, dict) else []))
    return Record(found["type"], read.kind(), mapping(payload), envelope, read.payload)


def about(data: bytes) -> tuple[str | None, dict[str, Any]]:
    """What the first record of a thread, on the line `data`, says: the system prompt, and all the rest."""
    value = record_on(data)
    if value is None:
        return None, {}
    record = record_of(value)
    attributes = _whole(record, "base_instructions")
    instructions = record.payload.get("base_instructions")
    prompt = instructions if isinstance(instructions, str) else string(mapping(instructions).get("text"))
    rest = without(instructions, "text") if isinstance(instructions, dict) and prompt is not None else instructions
    if rest is not None and not isinstance(rest, str) and rest != {}:
        attributes["base_instructions"] = rest
    return prompt, attributes


def body_of(file: File, span: Span) -> Body:
    """The body of a span; `file` is the one that it came from. Raises `FormatError` if something else is there now."""
    if not isinstance(span.at, At):
        raise changed()
    found = records_at(file, span.at.places)
    records, joined = [record_of(record) for record, _ in found], b"\n".join(data for _, data in found)
    if span.operation is Operation.CHAT:
        return _response(records, joined)
    if span.operation is Operation.MESSAGE:
        return _message(records, joined)
    if span.operation is Operation.EXECUTE_TOOL:
        return _call(records, joined)
    if len(records) == 1:
        return Body(attributes=_whole(records[0]), raw=joined)
    kept = Named()
    for record in records:
        kept.add(record.name, _whole(record))
    done = next(
        (record.payload["last_agent_message"] for record in records if "last_agent_message" in record.payload), None
    )
    return Body(output=done, attributes=kept.fields, raw=joined)


def _whole(record: Record, *names: str) -> dict[str, Any]:
    """All fields of a record but these of its payload."""
    fields = without(record.payload, *names)
    fields |= {f"record.{key}" if key in fields else key: value for key, value in record.envelope.items()}
    return _opaque(fields)


def _opaque(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with what is encrypted told and not shown."""
    hidden = fields.get("encrypted_content")
    return fields | {"encrypted_content": f"encrypted, {len(hidden)} characters"} if isinstance(hidden, str) else fields


# ---- what was said


def _response(records: list[Record], raw: bytes) -> Body:
    """A response as one message: what the model thought and said, and the calls that it asked for."""
    parts: list[Part] = []
    kept = Named()
    status = None
    for record in records:
        if record.kind == ITEM and record.name in CALLS | DONE_CALLS:
            parts.append(_tool_call(record))
        elif record.kind == ITEM:
            status = string(record.payload.get("status")) or status
            _said(record, parts, kept)
        elif record.name not in SAID:
            kept.add(record.name, _whole(record))
    shown = {part.text for part in parts if isinstance(part, Text | Reasoning)}
    for record in records:
        if record.kind == EVENT and record.name in SAID:
            text, one = record.read.said(), getattr(record.read, "item", record.read)
            if text and not _is_shown(text, shown):
                thought = isinstance(one, Thought) or (isinstance(one, Talk) and one.thought)
                parts.append(Reasoning(text) if thought else Text(text))
                shown.add(text)
            kept.add(record.name, _whole(record))
    texts = [part.text for part in parts if isinstance(part, Text)]
    message = (Message("assistant", tuple(parts), finish_reason=status),) if parts else ()
    return Body(output="\n".join(texts) if texts else None, output_messages=message, attributes=kept.fields, raw=raw)


def _is_shown(text: str, shown: set[str]) -> bool:
    return text in shown or all(line in shown for line in text.split("\n") if line) or text in "\n".join(shown)


def _said(record: Record, parts: list[Part], kept: Named) -> None:
    payload = record.payload
    rests: dict[str, Any] = {}
    thought = record.name == "reasoning"
    for name in ("summary", "content"):
        found, rest = _parts(payload.get(name), name, thought=thought)
        parts += found
        rests |= rest
    taken = [name for name in ("summary", "content") if isinstance(payload.get(name), str | list)]
    kept.add(record.name, _whole(record, "type", "role", "status", *taken) | rests)


def _parts(content: Any, name: str, *, thought: bool = False) -> tuple[list[Part], dict[str, Any]]:
    """The parts of a content, and what they have no place for under ``name[0]``."""
    if isinstance(content, str):
        return [Reasoning(content) if thought else Text(content)], {}
    parts: list[Part] = []
    rests: dict[str, Any] = {}
    for place, part in enumerate(content if isinstance(content, list) else ()):
        kind = string(part.get("type")) if isinstance(part, dict) else None
        text = part if isinstance(part, str) else string(part.get("text")) if kind in _TEXTS else None
        if text is None:
            shown = _opaque(part) if isinstance(part, dict) else part
            parts.append(Blob(kind or "part", shown))
            continue
        parts.append(Reasoning(text) if thought else Text(text))
        rest = without(part, "type", "text") if isinstance(part, dict) else None
        if rest:
            rests[f"{name}[{place}]"] = rest
    return parts, rests


def _tool_call(record: Record) -> ToolCall:
    payload = record.payload
    name = word(payload.get("name")) or (word(payload.get("type")) or "call").removesuffix("_call")
    return ToolCall(word(payload.get("call_id")) or word(payload.get("id")), name, _arguments(record))


def _arguments(record: Record) -> Any:
    """What a call was made with, decoded."""
    return record.read.arguments() if isinstance(record.read, Call) else None


def _message(records: list[Record], raw: bytes) -> Body:
    """A message that came from outside, as an item, as an event, or as both."""
    kept = Named()
    message: Message | None = None
    for record in sorted(records, key=lambda record: record.kind == EVENT):
        told = child(record.payload, "item") or record.payload
        content = told.get("content") if "content" in told else told.get("message")
        if message is not None or not isinstance(content, str | list):
            kept.add(record.name, _whole(record))
            continue
        parts, rests = _parts(content, "content")
        role = string(record.payload.get("role")) or "user"
        message = Message(role, tuple(parts), id=word(told.get("id")))
        taken = () if told is not record.payload else ("type", "role", "content" if "content" in told else "message")
        kept.flat(_whole(record, *taken) | rests)
    texts = [part.text for part in message.parts if isinstance(part, Text)] if message is not None else []
    return Body(
        input="\n".join(texts) if texts else None,
        input_messages=() if message is None else (message,),
        attributes=kept.fields,
        raw=raw,
    )


# ---- what was done


def _call(records: list[Record], raw: bytes) -> Body:
    """A call with its output, and the events that tell of it under their names."""
    kept = Named()
    given = output = None
    agents: dict[str, str] = {}
    called = answered = False
    for record in records:
        payload = record.payload
        agents |= {thread: _nickname(payload, thread) or agents.get(thread, thread) for thread in record.read.threads()}
        if (
            record.kind == EVENT
            or (called and not record.name.endswith("_output"))
            or (answered and "output" in payload)
        ):
            kept.add(record.name, _whole(record))
        elif record.name.endswith("_output"):
            answered, output = True, payload.get("output")
            kept.add("result", _whole(record, "type", "output"))
        else:
            called, given = True, _arguments(record)
            taken = next((name for name in ("arguments", "input", "action") if payload.get(name) is not None), "type")
            kept.flat(_whole(record, "type", taken))
    if not answered:
        output = next((found for record in records if (found := _told_output(record)) is not None), None)
    links = tuple(Link(f"sub-agent {name[:120]}", run=thread) for thread, name in agents.items())
    return Body(input=given, output=output, attributes=kept.fields, links=links, raw=raw)


def _told_output(record: Record) -> Any:
    """What came out, by an event."""
    told = child(record.payload, "item") or record.payload
    found = (told.get(name) for name in ("aggregated_output", "stdout", "result", "results", "content_items"))
    return next((value for value in found if value not in (None, "")), None)


def _nickname(payload: dict[str, Any], thread: str) -> str | None:
    """What a spawned agent is called."""
    told = child(payload, "item") or payload
    agents = told.get("receiver_agents")
    for agent in agents if isinstance(agents, list) else ():
        if isinstance(agent, dict) and agent.get("thread_id") == thread:
            return word(agent.get("agent_nickname"))
    return word(told.get("new_agent_nickname"))
