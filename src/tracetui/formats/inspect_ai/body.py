"""Everything that the events of a span say, and what they refer to, read again from its sample."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.inspect_ai.document_log import open_log
from tracetui.formats.inspect_ai.fields import items_of, record_of, text_in, value_of
from tracetui.formats.inspect_ai.log import find
from tracetui.formats.inspect_ai.messages import message_of, messages_of, together
from tracetui.formats.inspect_ai.samples import Items, Sample, resolved
from tracetui.formats.inspect_ai.spans import At
from tracetui.formats.scalars import mapping, sequence, without, word
from tracetui.model import Body, Message, Span
from tracetui.sources.base import KEPT, File, Stat

_LATEST: Final = "inspect"
_INNER: Final = ("tool", "subtask")


class Opened(NamedTuple):
    """The sample of a run that is looked at."""

    version: tuple[Stat, str | None]
    attempt: int | None
    sample: Sample
    events: Items


def body_of(file: File, key: str | None, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if the log says something else there now."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    opened = _opened(file, key)
    if opened.sample.check != at.check:
        raise FormatError("the file changed: the sample was written anew", key or "")
    if at.event is None and at.begin is None:
        return _failed(opened)
    around = {
        name: resolved(value_of(_event(opened.events, place)), opened.sample.attached)
        for name, place in (("span_begin", at.begin), ("span_end", at.end))
        if place is not None
    }
    if at.event is None:
        return Body(attributes=_spread(around), raw=_raw(_event(opened.events, at.begin or ())))
    item = _event(opened.events, at.event)
    raw, said = _raw(item), _said(item)
    if not isinstance(said, dict):
        return Body(output=said, raw=raw)
    body = _model(said, opened.sample) if said.get("event") == "model" else _plain(said, opened.sample)
    return msgspec.structs.replace(body, attributes={**body.attributes, **around}, raw=raw)


def _failed(opened: Opened) -> Body:
    """What is said of a failed attempt."""
    record = opened.sample.attempt(opened.attempt or 0)
    said = {name: value_of(value) for name, value in record.items() if name != "events"}
    return _plain({"error": said}, opened.sample)


def _opened(file: File, key: str | None) -> Opened:
    """The sample of a run. The latest is kept while a run is looked at."""
    shared = file.memo.get(KEPT, {})
    version = (file.stat, key)
    kept = shared.get(_LATEST)
    if isinstance(kept, Opened) and kept.version == version:
        kept.sample.through(file)
        return kept
    log = open_log(file)
    entry = find(log, key or "")
    if entry is None:
        raise FormatError("the file changed: the sample is not in the log any more", key or "")
    sample = log.sample(entry.sample)
    made = Opened(version, entry.attempt, sample, sample.events(entry.attempt))
    shared[_LATEST] = made
    return made


def _event(items: Items, path: tuple[int, ...]) -> Any:
    """The event at a place, undecoded where it can be."""
    for depth, place in enumerate(path):
        if place >= len(items):
            raise FormatError("the file changed: another event is there now", f"events[{place}]")
        if depth == len(path) - 1:
            return items[place]
        items = items_of((record_of(items[place]) or {}).get("events")) or []
    raise FormatError("this span comes from another format")


def _said(item: Any) -> Any:
    """What an event says, but for the events within it: these are spans of their own."""
    record = record_of(item)
    if record is None:
        return value_of(item)
    inner = value_of(record.get("event")) in _INNER and items_of(record.get("events")) is not None
    return {name: value_of(value) for name, value in record.items() if not (inner and name == "events")}


def _raw(item: Any) -> bytes:
    if isinstance(item, msgspec.Raw):
        return bytes(memoryview(item))
    try:
        return orjson.dumps(item)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, depth, integers over 64 bits
        return b""


def _spread(around: dict[str, Any]) -> dict[str, Any]:
    """What begins a span says all about it; what ends it only when."""
    begin = around.pop("span_begin", None)
    return {**(begin if isinstance(begin, dict) else {}), **around}


def _plain(said: dict[str, Any], sample: Sample) -> Body:
    """Any event but a call of the model."""
    said = resolved(said, sample.attached)
    kind = said.get("event")
    given, made_ = _SIDES.get(kind, (None, None)) if isinstance(kind, str) else (None, None)
    error = mapping(said.get("error"))
    traceback = word(error.get("traceback"))
    attributes = without(said, *(name for name in (given, made_) if name is not None))
    if traceback is not None:
        attributes["error"] = without(error, "traceback")
    if kind == "sample_init":
        return _begun(said)
    return Body(
        input=said.get(given) if given else None,
        output=said.get(made_) if made_ else None,
        attributes=attributes,
        traceback=traceback,
    )


def _begun(said: dict[str, Any]) -> Body:
    """What a sample was given."""
    told = said.get("sample")
    given = mapping(told).get("input")
    if not isinstance(given, list):
        return Body(input=given, attributes={**said, "sample": without(told, "input")} if told and given else said)
    messages, rest = messages_of(given)
    return Body(input_messages=messages, attributes={**said, "sample": {**mapping(told), "input": rest}})


_SIDES: Final[dict[str, tuple[str | None, str | None]]] = {
    "tool": ("arguments", "result"),
    "subtask": ("input", "result"),
    "sandbox": ("cmd", "output"),
    "info": (None, "data"),
    "input": (None, "input"),
    "score": ("target", "score"),
}
"""By kind of event: what goes in, and what comes out."""


def _model(said: dict[str, Any], sample: Sample) -> Body:
    """A call of the model, with all that it was given."""
    attributes = without(said, "input", "input_refs", "output", "traceback")
    call = said.get("call")
    if isinstance(call, dict):
        attributes["call"] = _call(call, sample)
    resolved(attributes, sample.attached)
    refs = said.get("input_refs")
    given = said.get("input")
    if isinstance(given, list):
        shared = sample.told(refs) if isinstance(refs, list) and not given else ()
        messages, rest = together((*map(message_of, resolved(given, sample.attached)), *shared))
    else:
        messages, rest = (), {}
        if given is not None:
            attributes["input"] = resolved(given, sample.attached)
    if refs is not None and (given or not isinstance(refs, list)):
        attributes["input_refs"] = refs
    if rest:
        attributes["input"] = {**mapping(attributes.get("input")), **rest}
    output = resolved(said.get("output"), sample.attached)
    answers, left = _answers(output)
    if left not in (None, {}):
        attributes["output"] = left
    traceback = said.get("traceback")
    if traceback is not None and not isinstance(traceback, str):
        attributes["traceback"] = traceback
    return Body(
        output=_text(output, answers),
        input_messages=messages,
        output_messages=answers,
        attributes=attributes,
        traceback=sample.attached(traceback) if isinstance(traceback, str) and traceback else None,
    )


def _text(output: Any, answers: tuple[Message, ...]) -> Any:
    """What the model said."""
    completion = mapping(output).get("completion")
    if isinstance(completion, str) and completion:
        return completion
    choice = mapping(next(iter(sequence(mapping(output).get("choices"))), None))
    return text_in(mapping(choice.get("message")).get("content")) or (None if answers else output)


def _answers(output: Any) -> tuple[tuple[Message, ...], Any]:
    """What the model answered, as messages, and what of the output has no place in them."""
    if not isinstance(output, dict):
        return (), output
    rest = without(output, "completion") if isinstance(output.get("completion"), str) else dict(output)
    choices = output.get("choices")
    if not isinstance(choices, list):
        return (), rest
    found, left = [], []
    for choice in choices:
        said = mapping(choice)
        if not isinstance(said.get("message"), dict):
            left.append(choice)
            continue
        stop = word(said.get("stop_reason"))
        message, more = message_of(said["message"], stop)
        found.append(message)
        others = without(said, "message", *(("stop_reason",) if stop else ()))
        if more is not None:
            others["message"] = more
        if others := {key: value for key, value in others.items() if value is not None}:
            left.append(others)
    rest = {**without(rest, "choices"), **({"choices": left} if left else {})}
    return tuple(found), {key: value for key, value in rest.items() if value is not None}


def _call(call: dict[str, Any], sample: Sample) -> dict[str, Any]:
    """A request as it was sent: what requests share is put where it was taken from."""
    refs, key, request = call.get("call_refs"), call.get("call_key"), call.get("request")
    if not isinstance(refs, list) or not isinstance(key, str) or not isinstance(request, dict) or key in request:
        return call
    return {**without(call, "call_refs", "call_key"), "request": {**request, key: sample.calls(refs)}}
