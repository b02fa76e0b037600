"""The body of one span: its records decoded again, with every value of theirs in its place."""

from __future__ import annotations

from typing import Any

from tracetui.formats.bodies import rendered
from tracetui.formats.decode import decode_value
from tracetui.formats.latticeflow.records import EVENTS, ITEMS, elements, ident, record, roles
from tracetui.formats.latticeflow.spans import At
from tracetui.formats.places import Named, changed
from tracetui.formats.scalars import mapping, sequence, string, without
from tracetui.formats.schema import plain
from tracetui.model import Blob, Body, Message, Part, Reasoning, Text, ToolCall, ToolResult
from tracetui.sources.base import File


def body_of(file: File, at: At) -> Body:
    """Everything about a span. Raises `FormatError` if its bytes are not what they were."""
    if file.stat != at.origin.stat and not at.origin.has_bytes(file):
        raise changed(f"byte {at.origin.offset}")
    value = plain(at.piece)
    more = Named()
    for label, piece in at.more:
        more.add(label, _beyond(plain(piece), mapping(value)))
    shown = _event(value, at.role) if at.is_event else _item(value, at.role, more.fields)
    attributes = shown.pop("attributes", {}) | more.fields
    raw = rendered(value) if at.piece is value else bytes(at.piece)
    return Body(**shown, attributes=attributes, links=at.links, raw=raw)


def _beyond(given: Any, event: dict[str, Any]) -> Any:
    """What a given item says beyond the event that shows it, None if that is nothing."""
    if not isinstance(given, dict):
        return given
    if given == event.get("item") or given in sequence(event.get("output_items")):
        return None
    same = {"arguments": event.get("arguments"), "output": event.get("result")} if "function" in event else {}
    return {key: given[key] for key in given if same.get(key) is None or given[key] != same[key]}


def _event(value: Any, role: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {"output": value}
    rest = dict(value)
    match record(EVENTS, value).kind:
        case "message_event" if isinstance(value.get("item"), dict):
            shown = _item(value["item"], role, {})
            return {**shown, "attributes": rest | {"item": shown["attributes"]}}
        case "function_call_event":
            shown = {"input": decoded(rest.pop("arguments", None)), "output": decoded(rest.pop("result", None))}
        case "model_call_event":
            sent, output = _messages(rest, "input_context"), _messages(rest, "output_items")
            shown = {"input_messages": sent, "output_messages": output}
        case "custom":
            shown = {"output": rest.pop("data", None)}
        case "error" if isinstance(value.get("traceback"), str):
            shown = {"traceback": rest.pop("traceback")}
        case _:
            shown = {}
    return {**shown, "attributes": rest}


def _item(value: Any, role: str, more: dict[str, Any]) -> dict[str, Any]:
    """An item by itself; the output that answers a call is taken out of `more`."""
    if not isinstance(value, dict):
        return {"output": value}
    kind = record(ITEMS, value).kind
    rest = dict(value)
    if kind == "message":
        message, rest = as_message(value, role)
        return {"output_messages" if role == "assistant" else "input_messages": (message,), "attributes": rest}
    if kind == "function_call":
        shown = {"input": decoded(rest.pop("arguments", None)), "attributes": rest}
        answer = more.pop("function_call_output", None)
        if isinstance(answer, dict):
            shown["output"] = decoded(answer.get("output"))
            rest["function_call_output"] = without(answer, "output")
        return shown
    if kind == "function_call_output":
        return {"output": decoded(rest.pop("output", None)), "attributes": rest}
    side = "output" if kind == "custom_task_output_message" else "input"
    return {side: rest.pop("content", None), "attributes": rest}


def _messages(rest: dict[str, Any], name: str) -> tuple[Message, ...]:
    """The items of a field as messages; what they do not show stays in the field."""
    found = elements(rest.get(name))
    if found is None:
        return ()
    named = roles([record(ITEMS, one) for one in found])
    shown = [as_message(one, role) if isinstance(one, dict) else one for one, role in zip(found, named, strict=True)]
    rest[name] = [one[1] if isinstance(one, tuple) else one for one in shown]
    return tuple(one[0] for one in shown if isinstance(one, tuple))


# ---- messages


def as_message(value: dict[str, Any], role: str) -> tuple[Message, dict[str, Any]]:
    """An item as a `Message`, and the rest of it: what the message does not show."""
    item = record(ITEMS, value)
    kind, name = item.kind, string(item.id) or None
    if kind == "function_call":
        call = ToolCall(ident(item.call_id), item.name or "", decoded(item.arguments))
        return Message("assistant", (call,), id=name), without(value, "arguments")
    if kind == "function_call_output":
        answer = ToolResult(ident(item.call_id), decoded(value.get("output")))
        return Message("tool", (answer,), id=name), without(value, "output")
    rest = without(value, "content")
    content = value.get("content")
    if kind != "message":
        role = role or kind.removesuffix("_message").replace("_", " ") or "item"
        return Message(role, (Blob(kind, content),), id=name), rest
    if not isinstance(content, list):
        return Message(role, (Text(content) if isinstance(content, str) else Blob("content", content),), id=name), rest
    parts = [_part(part) for part in content]
    left = [more for _, more in parts]
    return Message(role, tuple(part for part, _ in parts), id=name), rest | ({"content": left} if any(left) else {})


def _part(part: Any) -> tuple[Part, Any]:
    """A part of a message, and what is left of it once its text is shown."""
    if isinstance(part, str):
        return Text(part), {}
    fields = mapping(part)
    kind = string(fields.get("type")) or "part"
    for key in ("text", "refusal"):
        if isinstance(fields.get(key), str):
            shown = Reasoning if kind.startswith(("reasoning", "summary")) else Text
            return shown(fields[key]), without(fields, key)
    return Blob(kind, part), {}


def decoded(value: Any) -> Any:
    """A value, decoded where it is JSON in a string."""
    return decode_value(value) if isinstance(value, str) else value
