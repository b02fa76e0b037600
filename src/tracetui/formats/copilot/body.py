"""Everything that a session says about one span, read again from the lines that it came from."""

from __future__ import annotations

from typing import Any

from tracetui.formats.copilot.records import NAMELESS, At, Event, event_of
from tracetui.formats.copilot.words import arguments
from tracetui.formats.places import Named, changed, records_at
from tracetui.formats.scalars import child, sequence, string, word
from tracetui.model import Blob, Body, Message, Operation, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if something else is there now."""
    if not isinstance(span.at, At):
        raise changed()
    found = records_at(file, span.at.places)
    events, joined = [event_of(record) for record, _ in found], b"\n".join(data for _, data in found)
    if span.operation is Operation.CHAT:
        return _response(events, joined)
    if span.operation is Operation.MESSAGE:
        return _message(events[0], joined)
    if span.operation is Operation.EXECUTE_TOOL:
        return _call(events, joined)
    if len(events) == 1:
        return Body(attributes=_alone(events[0]), raw=joined)
    kept = Named()
    for event in events:
        kept.add(event.kind, event.fields())
    return Body(attributes=kept.fields, raw=joined)


def _alone(event: Event) -> dict[str, Any]:
    """All that an event says that stands for itself."""
    odd = {} if event.kind != NAMELESS else {"type": event.outer.get("type")} if "type" in event.outer else {}
    return odd | event.fields()


def _message(event: Event, raw: bytes) -> Body:
    """A message that came from outside, with what was attached to it."""
    data = event.data
    said = string(data.get("content"))
    parts: list[Part] = [] if said is None else [Text(said)]
    attached = data.get("attachments")
    parts += [Blob(word(child({"": one}, "").get("type")) or "attachment", one) for one in sequence(attached)]
    taken = ["content"] if said is not None else []
    taken += ["attachments"] if isinstance(attached, list) else []
    role = "user" if event.kind == "user.message" else string(data.get("role"))
    if role == data.get("role"):
        taken.append("role")
    message = Message(role or "system", tuple(parts))
    return Body(input=said or None, input_messages=(message,), attributes=event.fields(*taken), raw=raw)


def _response(events: list[Event], raw: bytes) -> Body:
    """A response as one message: what the model thought and said, and the calls that it asked for."""
    parts: list[Part] = []
    kept = Named()
    reason = None
    for event in events:
        rests: dict[str, Any] = {}
        if event.kind == "assistant.message":
            taken, rests = _said(event.data, parts)
        elif event.kind == "assistant.reasoning":
            taken = [name for name in ("content",) if string(event.data.get(name)) is not None]
            parts += [Reasoning(event.data[name]) for name in taken]
        else:
            taken = []
            told = child(event.data, "usage") or event.data
            reason = word(told.get("finishReason")) or reason
        kept.add(event.kind, event.fields(*taken) | rests)
    texts = [part.text for part in parts if isinstance(part, Text) and part.text]
    message = (Message("assistant", tuple(parts), finish_reason=reason),) if parts else ()
    return Body(output="\n".join(texts) or None, output_messages=message, attributes=kept.fields, raw=raw)


def _said(data: dict[str, Any], parts: list[Part]) -> tuple[list[str], dict[str, Any]]:
    """Put what a message says among the parts; the fields that are there in full, and what others say besides."""
    taken = []
    if (thought := string(data.get("reasoningText"))) is not None:
        taken.append("reasoningText")
        parts += [Reasoning(thought)] if thought else []
    if (said := string(data.get("content"))) is not None:
        taken.append("content")
        parts += [Text(said)] if said else []
    asked, rests = data.get("toolRequests"), {}
    for place, request in enumerate(sequence(asked)):
        if not isinstance(request, dict):
            rests[f"toolRequests[{place}]"] = request
            continue
        ident, name = word(request.get("toolCallId")), word(request.get("name"))
        parts.append(ToolCall(ident, name or "", arguments(request)))
        told = {"toolCallId": ident, "name": name, "arguments": request.get("arguments")}
        rest = {key: value for key, value in request.items() if key not in told or told[key] is not value}
        if rest:
            rests[f"toolRequests[{place}]"] = rest
    return taken + (["toolRequests"] if isinstance(asked, list) else []), rests


def _call(events: list[Event], raw: bytes) -> Body:
    """A call with its result; what else the events tell of it stands under their kinds."""
    kept = Named()
    given = output = None
    for event in events:
        data = event.data
        taken = []
        if event.kind in ("tool.execution_start", "tool.user_requested"):
            given, taken = arguments(data), ["arguments"]
        elif event.kind == "tool.execution_complete":
            result = data.get("result")
            output = child(data, "result").get("content", result)
            taken = ["result"] if output is result else []
            if not taken and isinstance(result, dict):
                rest = {key: value for key, value in result.items() if key != "content"}
                event = event._replace(data={key: value for key, value in data.items() if key != "result"})
                event = event._replace(data=event.data | ({"result": rest} if rest else {}))
        kept.add(event.kind, event.fields(*taken))
    return Body(input=given, output=output, attributes=kept.fields, raw=raw)
