"""The body of one span: its records decoded again, with every value of theirs in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracetui.formats.decode import decode_value
from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.spans import At
from tracetui.model import Blob, Body, Message, Part, Reasoning, Text, ToolCall, ToolResult
from tracetui.sources.base import File


def body_of(file: File, at: At) -> Body:
    """Everything about a span. Raises `FormatError` if its bytes are not what they were."""
    found, raw = records.fetch(file, at.place)
    also: dict[str, Any] = {}
    known = found if isinstance(found, dict) else {}
    for label, place in at.also:
        value = _unsaid(records.fetch(file, place)[0], known)
        if value is not None:
            _add(also, label, value)
    made = _event(found, at.role) if at.is_event else _item(found, at.role, also)
    attributes = {**made.pop("attributes", {}), **also}
    return Body(**made, attributes=attributes, links=at.links, raw=raw)


def _unsaid(given: Any, event: dict[str, Any]) -> Any:
    """What a given item says beyond the event that shows it, None if that is nothing."""
    if not isinstance(given, dict):
        return given
    if given == event.get("item") or given in _list(event.get("output_items")):
        return None
    same = {"arguments": event.get("arguments"), "output": event.get("result")} if "function" in event else {}
    return {key: given[key] for key in given if same.get(key) is None or given[key] != same[key]}


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _add(attributes: dict[str, Any], name: str, value: Any) -> None:
    """Set an attribute, under a further name where there is one of that name."""
    key, number = name, 1
    while key in attributes:
        number += 1
        key = f"{name} {number}"
    attributes[key] = value


def _event(found: Any, role: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        return {"output": found}
    rest = dict(found)
    kind = records.event_kind(records.EVENTS.convert(found, {}))
    if kind == "message_event":
        return _message_event(rest, role)
    if kind == "function_call_event":
        made = {"input": decoded(rest.pop("arguments", None)), "output": decoded(rest.pop("result", None))}
        return {**made, "attributes": rest}
    if kind == "model_call_event":
        given, answered = _messages(rest, "input_context"), _messages(rest, "output_items")
        return {"input_messages": given, "output_messages": answered, "attributes": rest}
    if kind == "custom":
        return {"output": rest.pop("data", None), "attributes": rest}
    if kind == "error":
        trace = rest.pop("traceback") if isinstance(rest.get("traceback"), str) else None
        return {"traceback": trace, "attributes": rest}
    return {"attributes": rest}


def _message_event(rest: dict[str, Any], role: str) -> dict[str, Any]:
    item = rest.get("item")
    if not isinstance(item, dict):
        return {"attributes": rest}
    made = _item(item, role, {})
    rest["item"] = made.pop("attributes")
    return {**made, "attributes": rest}


def _item(found: Any, role: str, also: dict[str, Any]) -> dict[str, Any]:
    """An item by itself; the output that answers a call is taken out of `also`."""
    if not isinstance(found, dict):
        return {"output": found}
    kind = records.item_kind(records.as_item(found))
    rest = dict(found)
    if kind == "message":
        message, rest = as_message(found, role)
        return {"output_messages" if role == "assistant" else "input_messages": (message,), "attributes": rest}
    if kind == "function_call":
        answer = also.pop("function_call_output", None)
        made = {"input": decoded(rest.pop("arguments", None)), "attributes": rest}
        if isinstance(answer, dict):
            made["output"] = decoded(answer.get("output"))
            rest["function_call_output"] = {key: answer[key] for key in answer if key != "output"}
        return made
    if kind == "function_call_output":
        return {"output": decoded(rest.pop("output", None)), "attributes": rest}
    side = "output" if kind == "custom_task_output_message" else "input"
    return {side: rest.pop("content", None), "attributes": rest}


def _messages(rest: dict[str, Any], name: str) -> tuple[Message, ...]:
    """The items of a field as messages; what they do not show stays in the field."""
    found = rest.get(name)
    if not isinstance(found, list):
        return ()
    named = records.roles([records.as_item(one) for one in found])
    messages, left = [], []
    for one, role in zip(found, named, strict=True):
        if isinstance(one, dict):
            message, more = as_message(one, role)
            messages.append(message)
            left.append(more)
        else:
            left.append(one)
    rest[name] = left
    return tuple(messages)


# ---- messages


def as_message(source: Mapping[str, Any], role: str) -> tuple[Message, dict[str, Any]]:
    """An item as a `Message`, and the rest of it: what the message does not show."""
    rest = dict(source)
    known = records.as_item(rest)
    kind = records.item_kind(known)
    name = known.id if isinstance(known.id, str) and known.id else None
    if kind == "function_call":
        call = ToolCall(_text(known.call_id), _text(known.name) or "", decoded(known.arguments))
        rest.pop("arguments", None)
        return Message("assistant", (call,), id=name), rest
    if kind == "function_call_output":
        answer = ToolResult(_text(known.call_id), decoded(rest.pop("output", None)))
        return Message("tool", (answer,), id=name), rest
    if kind != "message":
        word = kind.removesuffix("_message").replace("_", " ") or "item"
        rest.pop("content", None)
        return Message(role or word, (Blob(kind, known.content),), id=name), rest
    parts, left = _parts(rest.pop("content", None))
    if any(left):
        rest["content"] = left
    return Message(role, parts, id=name), rest


def _parts(content: Any) -> tuple[tuple[Part, ...], list[Any]]:
    """The parts of a message, and what is left of each once its text is shown."""
    if not isinstance(content, list):
        return ((Text(content),) if isinstance(content, str) else (Blob("content", content),)), []
    parts: list[Part] = []
    left: list[Any] = []
    for part in content:
        made, rest = _part(part)
        parts.append(made)
        left.append(rest)
    return tuple(parts), left


def _part(part: Any) -> tuple[Part, Any]:
    if isinstance(part, str):
        return Text(part), {}
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                kind = part.get("type")
                made = Reasoning if isinstance(kind, str) and kind.startswith(("reasoning", "summary")) else Text
                return made(part[key]), {name: part[name] for name in part if name != key}
        return Blob(_text(part.get("type")) or "part", part), {}
    return Blob("part", part), {}


def decoded(found: Any) -> Any:
    """A value, decoded where it is JSON in a string."""
    return decode_value(found) if isinstance(found, str) else found


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None
