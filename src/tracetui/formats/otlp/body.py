"""Everything that a record says about one span, read again where it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

import msgspec
import orjson

from tracetui.formats.kept import once
from tracetui.formats.lines import parse
from tracetui.formats.otlp import messages
from tracetui.formats.otlp.messages import Side
from tracetui.formats.otlp.records import (
    Event,
    RecordRef,
    attributes,
    events_at,
    events_of,
    keep,
    named,
    objects_in,
    span_id,
    trace_id,
    without,
)
from tracetui.formats.otlp.trace import thrown_last
from tracetui.formats.otlp.vocabulary import given_to, made_by
from tracetui.formats.places import changed
from tracetui.formats.scalars import sequence
from tracetui.model import Body, Link, Operation, Span
from tracetui.sources.base import File

_ABOVE: Final = (
    *("traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id", "name"),
    *("startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano", "end_time_unix_nano"),
)
"""Fields that the header of a span shows."""


class _Scope(msgspec.Struct):
    spans: list[msgspec.Raw]


class _Resource(msgspec.Struct):
    scopes: list[_Scope] = msgspec.field(name="scopeSpans")


class _Request(msgspec.Struct):
    resources: list[_Resource] = msgspec.field(name="resourceSpans")


_requests: Final = msgspec.json.Decoder(_Request)


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if something else is there now."""
    at = span.at
    if not isinstance(at, RecordRef):
        raise changed()
    told = once(file, (at.offset, at.size, at.check), lambda: _decoded(file, at))
    found = told.get((at.resource, at.scope, at.span))
    raw = bytes(found) if isinstance(found, msgspec.Raw) else _encoded(found)
    record = parse(raw)[0] if isinstance(found, msgspec.Raw) else found
    if not isinstance(record, dict):
        raise changed(f"byte {at.offset}")
    return _body(record, raw, span, events_at(file, at.logs))


def _decoded(file: File, at: RecordRef) -> dict[tuple[int, int, int], Any]:
    """The spans of a line or document: their bytes, or their values where these cannot be told."""
    data = file.read(at.offset, at.size)
    if len(data) != at.size or crc32(data) != at.check:
        raise changed(f"byte {at.offset}")
    return _spans(data)


def _spans(data: bytes) -> dict[tuple[int, int, int], Any]:
    try:
        request = _requests.decode(data)
    except (ValueError, RecursionError):  # snake_case, or what JSON or OTLP does not allow
        return {place: span for place, span, _, _ in objects_in(parse(data)[0])}
    return {
        (i, j, k): span
        for i, resource in enumerate(request.resources)
        for j, scope in enumerate(resource.scopes)
        for k, span in enumerate(scope.spans)
    }


def _encoded(record: Any) -> bytes:
    try:
        return orjson.dumps(record)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, depth, integers over 64 bits
        return b""


def _body(record: dict[str, Any], raw: bytes, span: Span, logged: list[Event]) -> Body:
    kept, events = attributes(record), [*events_of(named(record, "events")), *logged]
    given, made = messages.given(kept, events), messages.made(kept, events)
    fields = {key: value for key, value in kept.items() if key not in given.taken and key not in made.taken}
    asked, answered = _values(fields, span.operation, given, made)
    for side in (given, made):
        for key, value in side.rest.items():
            keep(fields, key, value)
    traceback = _events(record, events, {*given.events, *made.events}, fields)
    _rest(record, span, fields)
    links = tuple(_link(one, record) for one in sequence(named(record, "links")) if isinstance(one, dict))
    return Body(
        input=asked,
        output=answered,
        input_messages=given.messages,
        output_messages=made.messages,
        attributes=fields,
        links=links,
        raw=raw,
        traceback=traceback,
    )


def _values(fields: dict[str, Any], operation: Operation, given: Side, made: Side) -> tuple[Any, Any]:
    """What went in and what came out. Of a call of a model its messages say so; the values stay attributes then."""
    asked = answered = None
    if not (operation is Operation.CHAT and given.messages) and (found := given_to(fields)):
        asked = found[1]
        del fields[found[0]]
    if not (operation is Operation.CHAT and made.messages) and (found := made_by(fields)):
        answered = found[1]
        del fields[found[0]]
    if answered is None:
        answered = made.answer
    return asked, answered


def _events(record: dict[str, Any], events: Sequence[Event], taken: set[int], fields: dict[str, Any]) -> str | None:
    """Put the events that are no messages among the fields; the traceback of the last exception is returned."""
    last = thrown_last(events)
    traceback = None
    shown: list[Any] = [one for one in sequence(named(record, "events")) if not isinstance(one, dict)]
    for place, event in enumerate(events):
        if place in taken:
            continue
        kept = dict(event.kept)
        if place == last and isinstance(kept.get("exception.stacktrace"), str):
            traceback = kept.pop("exception.stacktrace")
        others = without(event.rest, "timeUnixNano", "time_unix_nano") if event.time is not None else event.rest
        when = {} if event.time is None else {"time": event.time / 1e9}
        shown.append({"name": event.name, **when, **others, **kept})
    if shown:
        keep(fields, "events", shown)
    return traceback


def _rest(record: dict[str, Any], span: Span, fields: dict[str, Any]) -> None:
    """All other fields of the record under their own names."""
    name = record.get("name")
    if name is not None and name != span.name:
        keep(fields, "name", name)
    for key, value in record.items():
        if key in _ABOVE and isinstance(value, str | int) and not isinstance(value, bool):
            continue
        if key in ("attributes", "events") and (isinstance(value, list) or (key == "attributes" and value)):
            continue
        if key == "links" and isinstance(value, list):
            value = [
                {**without(one, "attributes"), **attributes(one)} if isinstance(one, dict) else one for one in value
            ]
        if value not in (None, [], {}) and key != "name":
            keep(fields, key, value)


def _link(link: dict[str, Any], record: dict[str, Any]) -> Link:
    other, target = trace_id(link), span_id(link)
    if other == trace_id(record):
        return Link("linked span", span=target)
    return Link("linked trace", run=other)
