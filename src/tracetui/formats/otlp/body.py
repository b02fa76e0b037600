"""Everything that a record holds about one span, read again from its place."""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.formats.bodies import add_field, rendered
from tracetui.formats.kept import once
from tracetui.formats.lines import parse
from tracetui.formats.otlp.messages import Messages
from tracetui.formats.otlp.records import (
    FIELD_NAMES,
    Place,
    RecordRef,
    attributes_of,
    events_at,
    loose_record,
    named,
    objects_in,
    span_id,
    trace_id,
)
from tracetui.formats.otlp.trace import SpanData, last_exception
from tracetui.formats.otlp.vocabulary import INPUTS, OUTPUTS, find_value
from tracetui.formats.places import changed
from tracetui.formats.scalars import sequence, without
from tracetui.model import Body, Link, Operation, Span
from tracetui.sources.base import File

_SHOWN: Final = {name for key in ("trace", "id", "parent", "name", "start", "end") for name in FIELD_NAMES[key]}
"""Fields that the header of a span shows."""


class _Scope(msgspec.Struct):
    spans: list[msgspec.Raw]


class _Resource(msgspec.Struct):
    scopes: list[_Scope] = msgspec.field(name="scopeSpans")


class _Request(msgspec.Struct):
    resources: list[_Resource] = msgspec.field(name="resourceSpans")


_decode_request: Final = msgspec.json.Decoder(_Request).decode


def body_of(file: File, span: Span) -> Body:
    """The body of a span; `raw` is the span as it is written. Raises `FormatError` if something else is there now."""
    at = span.at
    if not isinstance(at, RecordRef):
        raise changed()
    spans = once(file, (at.offset, at.size), lambda: _spans_on(file.read(at.offset, at.size)))
    record = spans.get(at.place)
    raw = bytes(record) if isinstance(record, msgspec.Raw) else rendered(record)
    record = parse(raw)[0] if isinstance(record, msgspec.Raw) else record
    if not isinstance(record, dict) or at.check not in (crc32(raw), crc32(rendered(record))):
        raise changed(f"byte {at.offset}")
    data = SpanData(loose_record(at.place, record, {}, {}, at.check), events_at(file, at.logs))
    sides = data.inputs, data.outputs
    taken = {name for side in sides for name in side.taken}
    fields = {key: value for key, value in data.attrs.items() if key not in taken}
    given, made = (
        _value(fields, span.operation, side, names) for side, names in zip(sides, (INPUTS, OUTPUTS), strict=True)
    )
    for side in sides:
        for key, value in side.rest.items():
            add_field(fields, key, value)
    traceback = _add_events(record, data, fields)
    _add_others(record, span, fields)
    return Body(
        input=given,
        output=data.outputs.answer if made is None else made,
        input_messages=data.inputs.messages,
        output_messages=data.outputs.messages,
        attributes=fields,
        links=tuple(_link(one, record) for one in sequence(named(record, "links")) if isinstance(one, dict)),
        raw=raw,
        traceback=traceback,
    )


def _spans_on(data: bytes) -> dict[Place, Any]:
    """The spans of a line or document: their bytes, or their values where the line has other names or is not strict."""
    try:
        resources = _decode_request(data).resources
    except (ValueError, RecursionError):
        return {place: span for place, span, _, _ in objects_in(parse(data)[0])}
    return {
        (i, j, k): span
        for i, resource in enumerate(resources)
        for j, scope in enumerate(resource.scopes)
        for k, span in enumerate(scope.spans)
    }


def _value(fields: dict[str, Any], operation: Operation, side: Messages, names: tuple[str, ...]) -> Any:
    """The input or output. A call of a model has messages; where it has them, the value stays among the attributes."""
    found = None if operation is Operation.CHAT and side.messages else find_value(fields, names)
    if found is None:
        return None
    del fields[found[0]]
    return found[1]


def _add_events(record: dict[str, Any], data: SpanData, fields: dict[str, Any]) -> str | None:
    """Add the events that are no messages to the fields; return the traceback of the last exception."""
    last, taken = last_exception(data.events), {*data.inputs.events, *data.outputs.events}
    traceback = None
    shown: list[Any] = [one for one in sequence(named(record, "events")) if not isinstance(one, dict)]
    for place, event in enumerate(data.events):
        if place in taken:
            continue
        attrs = dict(event.attrs)
        if place == last and isinstance(attrs.get("exception.stacktrace"), str):
            traceback = attrs.pop("exception.stacktrace")
        when: dict[str, Any] = {} if event.time is None else {"time": event.time / 1e9}
        times = () if event.time is None else ("timeUnixNano", "time_unix_nano")
        shown.append({"name": event.name, **when, **without(event.rest, *times), **attrs})
    if shown:
        add_field(fields, "events", shown)
    return traceback


def _add_others(record: dict[str, Any], span: Span, fields: dict[str, Any]) -> None:
    """Add all other fields of the record under their own names."""
    for key, value in record.items():
        if key == "name" and value == span.name:
            continue
        if key in _SHOWN and key != "name" and isinstance(value, str | int) and not isinstance(value, bool):
            continue
        if key in ("attributes", "events") and (isinstance(value, list) or (key == "attributes" and value)):
            continue
        if key == "links" and isinstance(value, list):
            value = [without(one, "attributes") | attributes_of(one) if isinstance(one, dict) else one for one in value]
        if value not in (None, [], {}):
            add_field(fields, key, value)


def _link(link: dict[str, Any], record: dict[str, Any]) -> Link:
    other, target = trace_id(link), span_id(link)
    return Link("linked span", span=target) if other == trace_id(record) else Link("linked trace", run=other)
