"""Everything that a session says about one span, read again from the lines that it came from."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from tracetui.formats.copilot.records import NAMELESS
from tracetui.formats.decode import decode_value
from tracetui.formats.places import Named, changed, records_at
from tracetui.formats.scalars import child, sequence, string, word
from tracetui.model import Blob, Body, Message, Operation, Part, Reasoning, Span, Text, ToolCall
from tracetui.sources.base import File


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: offset, size and checksum of each of its lines, one after the other."""

    places: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its lines."""
        return sum(self.places[1::3])


class Event(NamedTuple):
    """One event as it is written: what kind it is, and what it says."""

    kind: str
    data: dict[str, Any]
    outer: dict[str, Any]
    """The whole object on the line."""

    @property
    def rest(self) -> dict[str, Any]:
        """What the line says besides kind and data."""
        told = isinstance(self.outer.get("data"), dict)
        left_out = {"data"} if told else set()
        if self.kind != NAMELESS:
            left_out.add("type")
        return {key: value for key, value in self.outer.items() if key not in left_out}

    def fields(self, *names: str) -> dict[str, Any]:
        """All that it says but its kind and these fields of its data; ``event.id`` is what surrounds a field `id`."""
        found = {key: value for key, value in self.data.items() if key not in names}
        found |= {f"event.{key}" if key in found else key: value for key, value in self.rest.items()}
        return {key: _opaque(key, value) for key, value in found.items()}


def _opaque(key: str, value: Any) -> Any:
    """What is encrypted is told and not shown."""
    if key in ("encryptedContent", "reasoningOpaque") and isinstance(value, str) and value:
        return f"encrypted, {len(value)} characters"
    return value


def event_of(value: dict[str, Any]) -> Event:
    """The event that an object on a line is."""
    kind, data = value.get("type"), value.get("data")
    return Event(kind if isinstance(kind, str) and kind else NAMELESS, data if isinstance(data, dict) else {}, value)


def arguments(told: dict[str, Any]) -> Any:
    """What a tool is called with; some versions write it as JSON inside a text."""
    given = told.get("arguments")
    return decode_value(given) if isinstance(given, str) else given


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
        rest = {key: value for key, value in request.items() if key != "arguments"}
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
