"""The events of a span in full, and what they refer to, read again from its sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.bodies import rendered
from tracetui.formats.inspect_ai.events import EventRef
from tracetui.formats.inspect_ai.log import (
    Sample,
    completion_of,
    items_of,
    open_log,
    record_of,
    resolved,
    text_in,
    value_of,
)
from tracetui.formats.scalars import mapping, without, word
from tracetui.model import Blob, Body, Message, Part, Reasoning, Span, Text, ToolCall, ToolResult
from tracetui.sources.base import CACHE, File, Stat

_LATEST: Final = "inspect"
_INNER: Final = ("tool", "subtask")

Converted = tuple[Message, Any]
"""A message and its other fields; None for no others."""


class OpenSample(NamedTuple):
    """The sample of the run that was looked at last."""

    version: tuple[Stat, str | None]
    attempt: int | None
    sample: Sample
    events: list[Any]
    messages: dict[int, Converted]
    """Messages that events share, by index: all calls of a conversation have the same ones."""


def body_of(file: File, key: str | None, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if the log says something else there now."""
    at = span.at
    if not isinstance(at, EventRef):
        raise FormatError("this span comes from another format")
    opened = _open_sample(file, key)
    sample = opened.sample
    if sample.check != at.check:
        raise FormatError("the file changed: the sample was replaced", key or "")
    if at.event is None and at.begin is None:
        record = sample.attempt(opened.attempt or 0)
        return _plain({"error": {name: value_of(value) for name, value in record.items() if name != "events"}}, sample)
    around = {
        name: resolved(value_of(_event(opened.events, path)), sample.resolve)
        for name, path in (("span_begin", at.begin), ("span_end", at.end))
        if path is not None
    }
    if at.event is None:
        begin = around.pop("span_begin", None)
        attributes = {**(begin if isinstance(begin, dict) else {}), **around}
        return Body(attributes=attributes, raw=_bytes_of(_event(opened.events, at.begin or ())))
    item = _event(opened.events, at.event)
    raw, event = _bytes_of(item), _fields(item)
    if not isinstance(event, dict):
        return Body(output=event, raw=raw)
    body = _model(event, opened) if event.get("event") == "model" else _plain(event, sample)
    return msgspec.structs.replace(body, attributes={**body.attributes, **around}, raw=raw)


def _open_sample(file: File, key: str | None) -> OpenSample:
    """The sample of a run. The latest is cached while a run is looked at."""
    shared = file.memo.get(CACHE, {})
    version = (file.stat, key)
    cached = shared.get(_LATEST)
    if isinstance(cached, OpenSample) and cached.version == version:
        cached.sample.through(file)
        return cached
    log = open_log(file)
    entry = log.find(key or "")
    if entry is None:
        raise FormatError("the file changed: the sample is no longer in the log", key or "")
    sample = log.sample(entry.sample)
    events = [item for items in sample.events(entry.attempt) for item in items_of(items) or ()]
    opened = shared[_LATEST] = OpenSample(version, entry.attempt, sample, events, {})
    return opened


def _event(items: list[Any], path: tuple[int, ...]) -> Any:
    """The event at a place, undecoded where it can be."""
    for depth, index in enumerate(path):
        if index >= len(items):
            raise FormatError("the file changed: the event was replaced", f"events[{index}]")
        if depth == len(path) - 1:
            return items[index]
        items = items_of((record_of(items[index]) or {}).get("events")) or []
    raise FormatError("this span comes from another format")


def _fields(item: Any) -> Any:
    """What an event says, but for the events within it: these are spans of their own."""
    record = record_of(item)
    if record is None:
        return value_of(item)
    inner = value_of(record.get("event")) in _INNER and items_of(record.get("events")) is not None
    return {name: value_of(value) for name, value in record.items() if not (inner and name == "events")}


def _bytes_of(item: Any) -> bytes:
    return bytes(memoryview(item)) if isinstance(item, msgspec.Raw) else rendered(item)


_SIDES: Final[dict[str, tuple[str, str]]] = {
    "tool": ("arguments", "result"),
    "subtask": ("input", "result"),
    "sandbox": ("cmd", "output"),
    "info": ("", "data"),
    "input": ("", "input"),
    "score": ("target", "score"),
}
"""By kind of event: what goes in, and what comes out."""


def _plain(event: dict[str, Any], sample: Sample) -> Body:
    """The body of any event but a call of the model."""
    event = resolved(event, sample.resolve)
    kind = event.get("event")
    if kind == "sample_init":
        return _sample_init(event)
    names = _SIDES.get(kind, ("", "")) if isinstance(kind, str) else ("", "")
    attributes, error = without(event, *filter(None, names)), mapping(event.get("error"))
    traceback = word(error.get("traceback"))
    if traceback is not None:
        attributes["error"] = without(error, "traceback")
    return Body(input=event.get(names[0]), output=event.get(names[1]), attributes=attributes, traceback=traceback)


def _sample_init(event: dict[str, Any]) -> Body:
    sample = mapping(event.get("sample"))
    given = sample.get("input")
    if isinstance(given, list):
        messages, rest = together(map(message_of, given))
        return Body(input_messages=messages, attributes={**event, "sample": {**sample, "input": rest}})
    return Body(input=given, attributes={**event, "sample": without(sample, "input")} if given else event)


def _model(event: dict[str, Any], opened: OpenSample) -> Body:
    """A call of the model, with its whole input."""
    resolve = opened.sample.resolve
    attributes = without(event, "input", "input_refs", "output", "traceback")
    if isinstance(event.get("call"), dict):
        attributes["call"] = _call(event["call"], opened.sample)
    resolved(attributes, resolve)
    refs, given = event.get("input_refs"), resolved(event.get("input"), resolve)
    messages: tuple[Message, ...] = ()
    if isinstance(given, list):
        shared = _shared_messages(opened, refs) if isinstance(refs, list) and not given else ()
        messages, rest = together((*map(message_of, given), *shared))
        if rest:
            attributes["input"] = rest
    elif given is not None:
        attributes["input"] = given
    if refs is not None and (given or not isinstance(refs, list)):
        attributes["input_refs"] = refs
    output = resolved(event.get("output"), resolve)
    answers, left = _answers(output)
    if left not in (None, {}):
        attributes["output"] = left
    traceback = event.get("traceback")
    if traceback is not None and not isinstance(traceback, str):
        attributes["traceback"] = traceback
    return Body(
        output=completion_of(output) or (None if answers else output),
        input_messages=messages,
        output_messages=answers,
        attributes=attributes,
        traceback=resolve(traceback) if isinstance(traceback, str) and traceback else None,
    )


def _shared_messages(opened: OpenSample, refs: list[Any]) -> Iterator[Converted]:
    for index, item in opened.sample.shared("messages", refs):
        if index not in opened.messages:
            opened.messages[index] = message_of(resolved(value_of(item), opened.sample.resolve))
        yield opened.messages[index]


def _answers(output: Any) -> tuple[tuple[Message, ...], Any]:
    """The output of the model as messages, and its other fields."""
    if not isinstance(output, dict):
        return (), output
    rest = without(output, "completion") if isinstance(output.get("completion"), str) else dict(output)
    if not isinstance(output.get("choices"), list):
        return (), rest
    found, left = [], []
    for choice in rest.pop("choices"):
        if not isinstance(mapping(choice).get("message"), dict):
            left.append(choice)
            continue
        stop = word(choice.get("stop_reason"))
        message, more = message_of(choice["message"], stop)
        found.append(message)
        others = without(choice, "message", *(("stop_reason",) if stop else ())) | {"message": more}
        if others := {key: value for key, value in others.items() if value is not None}:
            left.append(others)
    rest |= {"choices": left or None}
    return tuple(found), {key: value for key, value in rest.items() if value is not None}


def _call(call: dict[str, Any], sample: Sample) -> dict[str, Any]:
    """A request as it was sent: what requests share is put where it was taken from."""
    refs, key, request = call.get("call_refs"), call.get("call_key"), call.get("request")
    if not isinstance(refs, list) or not isinstance(key, str) or not isinstance(request, dict) or key in request:
        return call
    return {
        **without(call, "call_refs", "call_key"),
        "request": {**request, key: [value_of(item) for _, item in sample.shared("calls", refs)]},
    }


# ---- messages

_PLAIN: Final = frozenset({"source", "model"})
"""What says nothing more where it is all that is left of a message."""


def message_of(fields: Any, finish: str | None = None) -> Converted:
    """A message, and what of it has no place in one; None where nothing is left."""
    if not isinstance(fields, dict):
        return Message("message", (Blob("message", fields),)), None
    role = word(fields.get("role")) or "message"
    rest = without(fields, "role", "id", "content")
    if not isinstance(fields.get("role"), str) and fields.get("role") is not None:
        rest["role"] = fields["role"]
    ident = word(fields.get("id"))
    if ident is None and fields.get("id") is not None:
        rest["id"] = fields["id"]
    parts = _answer(fields, rest) if role == "tool" else [*_parts(fields.get("content")), *_calls(rest)]
    rest = {name: value for name, value in rest.items() if value not in (None, [], {})}
    return Message(role, tuple(parts), ident, finish), rest if rest.keys() - _PLAIN else None


def together(converted: Iterable[Converted]) -> tuple[tuple[Message, ...], dict[str, Any]]:
    """The messages, and by their number (from 1) the other fields of each."""
    pairs = list(converted)
    return tuple(message for message, _ in pairs), {
        str(number): rest for number, (_, rest) in enumerate(pairs, 1) if rest is not None
    }


def _parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    if not isinstance(content, list):
        return [] if content is None else [Blob("content", content)]
    return [_part(item) for item in content]


def _part(item: Any) -> Part:
    fields = mapping(item)
    kind, text, thought = fields.get("type"), fields.get("text"), fields.get("reasoning")
    if kind == "text" and isinstance(text, str) and fields.keys() <= {"type", "text"}:
        return Text(text)
    if kind == "reasoning" and isinstance(thought, str) and fields.keys() <= {"type", "reasoning", "redacted"}:
        return Reasoning(thought)
    return Blob(word(kind) or "part", item)


def _calls(rest: dict[str, Any]) -> list[Part]:
    """The calls that a message asks for; what else is told of one stays in the rest."""
    calls = rest.get("tool_calls")
    if not isinstance(calls, list):
        return []
    found: list[Part] = []
    left = []
    for call in calls:
        fields = mapping(call)
        name = word(fields.get("function"))
        if name is None:
            left.append(call)
            continue
        found.append(ToolCall(word(fields.get("id")), name, fields.get("arguments")))
        ident = () if fields.get("id") is None or word(fields.get("id")) else ("id",)
        more = {
            key: value for key, value in fields.items() if key in ident or key not in ("id", "function", "arguments")
        }
        if more.pop("type", "function") != "function":
            more["type"] = fields["type"]
        if more := {key: value for key, value in more.items() if value not in (None, [], {})}:
            left.append({"function": name, **more})
    rest["tool_calls"] = left
    return found


def _answer(fields: dict[str, Any], rest: dict[str, Any]) -> list[Part]:
    """What a tool answered."""
    ident, name, error = word(fields.get("tool_call_id")), word(fields.get("function")), fields.get("error")
    for key, value in (("tool_call_id", ident), ("function", name)):
        if value is not None:
            del rest[key]
    content = fields.get("content")
    plain = text_in(content) if isinstance(content, list) and all(_is_text(part) for part in content) else content
    if plain in ("", None, []):
        plain = mapping(error).get("message", plain)  # in its place a call that failed has why
    return [ToolResult(ident, plain, error not in (None, {}, ""), name)]


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() <= {"type", "text"} and isinstance(part.get("text"), str)
