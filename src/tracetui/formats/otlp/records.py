"""Records of OTLP JSON: requests of resources of scopes of spans, and values of any kind. No field can be trusted.

JSON of OTLP has lowerCamelCase names, ids in hex and 64-bit numbers as text. What a protobuf library writes by itself
has snake_case names or ids in base64: both are read.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Undecodable
from collections.abc import Callable, Iterator, Sequence
from sys import intern
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.decode import skippable, strict
from tracetui.formats.fields import Fields
from tracetui.formats.lines import parse
from tracetui.formats.scalars import sequence
from tracetui.sources.base import File

NO_TRACE: Final = "no trace id"
"""Key of the run of spans that name no trace."""
REQUEST: Final = ("resourceSpans", "resource_spans")
"""Names under which a request has its spans."""
OTHERS: Final = ("resourceLogs", "resource_logs", "resourceMetrics", "resource_metrics")
"""Names of what else is exported, which is no trace."""
_LOGS: Final = (("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records"))
"""Names of the three lists in which log records are."""
_SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
LISTS: Final = (*_SCOPES, "spans")
"""Names of lists that hold spans, in the end."""
_SCOPE: Final = ("scope", "instrumentationLibrary")
_HEX: Final = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{16}){1,2})")
_DIGITS: Final = re.compile(r"-?\d{1,19}")
_PLAIN: Final = frozenset(
    f"{kind}{end}" for kind in ("string", "bool", "double", "bytes") for end in ("Value", "_value")
)
"""Kinds of values that are what they hold."""
FIELDS: Final = Fields(
    {
        "span": (
            "attributes droppedAttributesCount droppedEventsCount droppedLinksCount dropped_attributes_count "
            "dropped_events_count dropped_links_count endTimeUnixNano end_time_unix_nano events flags kind links name "
            "parentSpanId parent_span_id spanId span_id startTimeUnixNano start_time_unix_nano status traceId "
            "traceState trace_id trace_state"
        )
    }
)
"""What the protocol knows of a span. Attributes may be called as anybody likes."""
_LIMIT: Final = 1 << 63
_DEPTH: Final = 48
"""Values within values are read so far; what is deeper stays as it is written."""


_NAMES: Final = {
    "trace": "traceId",
    "id": "spanId",
    "parent": "parentSpanId",
    "start": "startTimeUnixNano",
    "end": "endTimeUnixNano",
    "state": "traceState",
    "dropped_attributes": "droppedAttributesCount",
    "dropped_events": "droppedEventsCount",
    "dropped_links": "droppedLinksCount",
}
_NONE: Final = msgspec.Raw()


class Attribute(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An attribute as most are."""

    key: str
    value: dict[str, Any]


class RecordRef(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: offset, size and checksum of its line or document, and its place in the three lists of that."""

    offset: int
    size: int
    check: int
    resource: int
    scope: int
    span: int
    logs: tuple[RecordRef, ...] = ()
    """Where log records are that tell events of it."""


class SpanFields(msgspec.Struct, gc=False, rename=_NAMES, forbid_unknown_fields=True):
    """All that the protocol knows of a span. Whatever is in one is decoded, so that damage in it is found."""

    trace: Any = None
    id: Any = None
    parent: Any = None
    name: Any = None
    start: Any = None
    end: Any = None
    status: Any = None
    events: Any = None
    attributes: list[Attribute] = []
    kind: Any = None
    flags: Any = None
    state: Any = None
    links: Any = None
    dropped_attributes: Any = None
    dropped_events: Any = None
    dropped_links: Any = None


class SpanRecord(NamedTuple):
    """A span, and what surrounds it."""

    place: tuple[int, int, int]
    """Its index in the three lists of its request."""
    trace: str
    """The trace that it is of: its id in lower hex, or `NO_TRACE`."""
    span: SpanFields
    kept: dict[str, Any]
    """Its attributes."""
    scope: dict[str, Any]
    """The object with the list that the span is in."""
    resource: dict[str, Any]
    """The object with the list that `scope` is in."""
    check: int
    """Checksum of the span."""
    names: tuple[str, ...] = ()
    """Its fields, where some of them may be unknown."""


Surroundings = dict[tuple[str, bytes, bytes], dict[str, Any]]
"""Resources and scopes, by their bytes: each is decoded once."""


class _Scope(msgspec.Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    spans: list[msgspec.Raw]
    scope: msgspec.Raw = _NONE
    schema_url: msgspec.Raw = _NONE


class _Resource(msgspec.Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    scope_spans: list[_Scope]
    resource: msgspec.Raw = _NONE
    schema_url: msgspec.Raw = _NONE


class _Request(msgspec.Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    resource_spans: list[_Resource]


_decode_request: Final = msgspec.json.Decoder(_Request).decode
_decode_span: Final = msgspec.json.Decoder(SpanFields).decode


def spans_on(
    data: bytes, surroundings: Surroundings, wanted: Callable[[msgspec.Raw], bool] | None = None
) -> list[SpanRecord]:
    """The spans of a request of spans and nothing else that is as the protocol has it, in camel case.

    Only those that are `wanted`. Raises `ValueError` or `RecursionError` for any other request.
    """
    skippable(data)
    found = []
    for i, resource in enumerate(_decode_request(data).resource_spans):
        above = _decode_once(surroundings, "resource", resource.resource, resource.schema_url)
        for j, scope in enumerate(resource.scope_spans):
            within = _decode_once(surroundings, "scope", scope.scope, scope.schema_url)
            for k, raw in enumerate(scope.spans):
                if wanted is None or wanted(raw):
                    found.append(_strict_record((i, j, k), raw, within, above))
    return found


def spans_in(request: Any) -> Iterator[SpanRecord]:
    """All spans of any request, decoded."""
    for place, span, scope, resource in objects_in(request):
        yield _loose_record(place, span, scope, resource, crc32(encode(span)))


def objects_in(request: Any) -> Iterator[tuple[tuple[int, int, int], dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """All spans of any request as objects: place, span, scope, resource."""
    for i, resource in enumerate(sequence(named(request, *REQUEST))):
        for j, scope in enumerate(sequence(named(resource, *_SCOPES))):
            for k, span in enumerate(sequence(named(scope, "spans"))):
                if isinstance(span, dict):
                    yield (i, j, k), span, scope, resource


def _strict_record(
    place: tuple[int, int, int], raw: msgspec.Raw, scope: dict[str, Any], resource: dict[str, Any]
) -> SpanRecord:
    try:
        span = _decode_span(raw)
        kept: dict[str, Any] = {}
        for one in span.attributes:
            value = one.value
            plain = len(value) == 1 and "stringValue" in value
            kept[intern(one.key)] = value["stringValue"] if plain else value_of(value)
        if len(kept) == len(span.attributes):
            return SpanRecord(place, identifier(span.trace) or NO_TRACE, span, kept, scope, resource, crc32(raw))
    except (ValueError, RecursionError):
        pass
    try:
        value = parse(bytes(raw))[0]
    except FormatError as error:
        raise ValueError(error.reason) from error
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return _loose_record(place, value, scope, resource, crc32(raw))


def _loose_record(
    place: tuple[int, int, int], value: dict[str, Any], scope: dict[str, Any], resource: dict[str, Any], check: int
) -> SpanRecord:
    """The record of a span whose fields may have any names and types."""
    span = SpanFields(
        trace=named(value, "traceId", "trace_id"),
        id=named(value, "spanId", "span_id"),
        parent=named(value, "parentSpanId", "parent_span_id"),
        name=value.get("name"),
        start=named(value, "startTimeUnixNano", "start_time_unix_nano"),
        end=named(value, "endTimeUnixNano", "end_time_unix_nano"),
        status=named(value, "status"),
        events=named(value, "events"),
    )
    return SpanRecord(place, trace_id(value), span, attributes(value), scope, resource, check, tuple(value))


def _decode_once(surroundings: Surroundings, kind: str, raw: msgspec.Raw, schema: msgspec.Raw) -> dict[str, Any]:
    key = kind, bytes(raw), bytes(schema)
    found = surroundings.get(key)
    if found is None:
        fields = (kind, key[1]), ("schemaUrl", key[2])
        found = surroundings[key] = {name: strict(data) for name, data in fields if data}
    return found


def encode(value: Any) -> bytes:
    """The value as JSON, or something else that is the same for the same value."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, depth, integers over 64 bits
        try:
            return repr(value).encode("utf-8", "replace")
        except RecursionError:
            return b"too deep"


def logs_in(request: Any) -> Iterator[tuple[tuple[int, int, int], dict[str, Any]]]:
    """All log records of a request, with their places."""
    for i, resource in enumerate(sequence(named(request, *_LOGS[0]))):
        for j, scope in enumerate(sequence(named(resource, *_LOGS[1]))):
            for k, record in enumerate(sequence(named(scope, *_LOGS[2]))):
                if isinstance(record, dict):
                    yield (i, j, k), record


def damage_in(request: Any) -> Iterator[str]:
    """What of a request is no span, no list of spans or no object with one."""
    for name, below in ((REQUEST, _SCOPES), (_SCOPES, ("spans",))):
        requests = [request] if name is REQUEST else sequence(named(request, *REQUEST))
        for one in requests:
            found = named(one, *name)
            if found is not None and not isinstance(found, list):
                yield f"{name[0]} is no list"
            for part in sequence(found):
                if not isinstance(part, dict):
                    yield f"something in {name[0]} is no object"
                elif not isinstance(spans := named(part, *below), list | None):
                    yield f"{below[0]} is no list"
                elif below == ("spans",) and not all(isinstance(span, dict) for span in sequence(spans)):
                    yield "something in spans is no object"


# ---- fields


def named(record: Any, *names: str) -> Any:
    """The first of these fields that is there and not null."""
    if type(record) is dict:
        for name in names:
            value = record.get(name)
            if value is not None:
                return value
    return None


def without(record: Any, *names: str) -> dict[str, Any]:
    """`record` without the fields of those names."""
    return {key: value for key, value in record.items() if key not in names} if isinstance(record, dict) else {}


def whole(value: Any) -> int | None:
    """`value` as a whole number of at most 64 bits, also where it is written as text."""
    if isinstance(value, str):
        if not (len(value) < 20 and value.isdecimal()) and not _DIGITS.fullmatch(value):
            return None
        value = int(value)
        return value if -_LIMIT < value < _LIMIT else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LIMIT else None


def nanoseconds(value: Any) -> int | None:
    """A time in nanoseconds since the epoch; 0 means that it is not known."""
    found = whole(value)
    return found if found is not None and found > 0 else None


def trace_id(record: Any) -> str:
    """The trace that a span or link names, in lower hex."""
    return identifier(named(record, "traceId", "trace_id")) or NO_TRACE


def span_id(record: Any) -> str | None:
    """The id of a span, in lower hex."""
    return identifier(named(record, "spanId", "span_id"))


def parent_id(span: SpanFields) -> str | None:
    """The id of the span above; None at the top."""
    found = identifier(span.parent)
    return None if found is None or not found.strip("0") else found


def normal_id(text: str) -> str:
    """An id in lower hex, whether it is written in hex or in base64; what is neither stays as it is."""
    if match := _HEX.fullmatch(text):
        return match[1].lower()
    if len(text) in (12, 24) and text.endswith("="):
        try:
            data = b64decode(text, validate=True)
        except (Undecodable, ValueError):
            return text
        return data.hex() if len(data) in (8, 16) else text
    return text


def identifier(value: Any) -> str | None:
    """An id in lower hex; None for what is no text."""
    return normal_id(value) if isinstance(value, str) and value else None


# ---- values


def attributes(record: Any) -> dict[str, Any]:
    """The attributes of a record by their keys; whatever is no attribute is there too, under a name of its own."""
    found = named(record, "attributes")
    if isinstance(found, dict):
        return {key: value_of(value) for key, value in found.items()}
    kept: dict[str, Any] = {}
    if found is not None and not isinstance(found, list):
        kept["attributes"] = found
    for item in sequence(found):
        try:
            ((kind, value),) = item["value"].items()
            if kind == "stringValue" and len(item) == 2 and item["key"] not in kept:  # most are
                kept[intern(item["key"])] = value
                continue
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        _attribute(item, kept, 0)
    return kept


def _attribute(item: Any, kept: dict[str, Any], depth: int) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("key"), str):
        keep(kept, "attribute", item)
        return
    key = intern(item["key"])
    keep(kept, key, value_of(item.get("value"), depth))
    if len(item) > 2 and (rest := without(item, "key", "value")):
        keep(kept, f"{key} (also)", rest)


def keep(kept: dict[str, Any], name: str, value: Any) -> None:
    """Put a value under a name, or under ``name 2`` where that is taken."""
    key, times = name, 1
    while key in kept:
        times += 1
        key = f"{name} {times}"
    kept[key] = value


def value_of(value: Any, depth: int = 0) -> Any:
    """What an ``AnyValue`` holds; one that is of no known kind as it is written."""
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEPTH:
        return value
    ((kind, held),) = value.items()
    if kind in _PLAIN:
        return held
    if kind in ("intValue", "int_value"):
        found = whole(held)
        return held if found is None else found
    if kind in ("arrayValue", "array_value") and _lists(held):
        return [value_of(one, depth + 1) for one in sequence(held.get("values"))]
    if kind in ("kvlistValue", "kvlist_value") and _lists(held):
        kept: dict[str, Any] = {}
        for one in sequence(held.get("values")):
            _attribute(one, kept, depth + 1)
        return kept
    return value


def _lists(held: Any) -> bool:
    """Whether it is an object with a list of values and nothing else."""
    return isinstance(held, dict) and set(held) <= {"values"} and isinstance(held.get("values"), list | None)


# ---- what stands around spans


def about_scope(scope: dict[str, Any]) -> dict[str, Any]:
    """What a group of spans says about the library that made them."""
    return _about(scope, _SCOPE, LISTS)


def about_resource(resource: dict[str, Any]) -> dict[str, Any]:
    """What a group of scopes says about the program that they ran in."""
    return _about(resource, ("resource",), _SCOPES)


def _about(record: dict[str, Any], within: tuple[str, ...], lists: tuple[str, ...]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in within:
        inner = record.get(name)
        if isinstance(inner, dict):
            fields = {**without(inner, "attributes"), **attributes(inner)}
            for key, value in fields.items():
                keep(kept, key, value)
        elif inner is not None:
            keep(kept, name, inner)
    for key, value in record.items():
        if key not in within and (key not in lists or not isinstance(value, list)):
            keep(kept, key, value)
    return kept


# ---- events, of spans and in exports of logs: there the GenAI conventions have messages, by trace and span

_OWN: Final = "gen_ai."
_PLACED: Final = ("traceId", "trace_id", "spanId", "span_id", "attributes", "body")
_EVENT_NAMES: Final = ("eventName", "event_name")
_TIMES: Final = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano")


class Event(NamedTuple):
    """An event of a span."""

    name: str
    time: int | None
    """Nanoseconds since the epoch."""
    kept: dict[str, Any]
    rest: dict[str, Any]
    """All else that it says."""


def events_of(events: Any) -> list[Event]:
    """The events of a span that are objects."""
    return [
        Event(
            name if isinstance(name := event.get("name"), str) else "",
            nanoseconds(named(event, "timeUnixNano", "time_unix_nano")),
            attributes(event),
            without(event, "attributes", *(("name",) if isinstance(name, str) else ())),
        )
        for event in sequence(events)
        if isinstance(event, dict)
    ]


def target_of(record: dict[str, Any]) -> tuple[str, str] | None:
    """The trace and the span that a log record tells an event of; None for any other log."""
    trace, span = trace_id(record), span_id(record)
    return (trace, span) if span is not None and trace != NO_TRACE and _name(record).startswith(_OWN) else None


def event_of(record: dict[str, Any]) -> Event:
    """A log record as the event that it is."""
    name, kept = _name(record), attributes(record)
    if kept.get("event.name") == name:
        del kept["event.name"]
    said = value_of(record.get("body"))
    for key, value in (said if isinstance(said, dict) else {} if said is None else {"body": said}).items():
        keep(kept, key, value)
    told = _EVENT_NAMES if named(record, *_EVENT_NAMES) == name else ()
    return Event(name, nanoseconds(named(record, *_TIMES)), kept, without(record, *_PLACED, *told))


def events_at(file: File, places: Sequence[RecordRef]) -> list[Event]:
    """The events at these places. Raises `FormatError` if something else is there now."""
    lines: dict[int, dict[tuple[int, int, int], dict[str, Any]]] = {}
    found = []
    for at in places:
        if at.offset not in lines:
            data = file.read(at.offset, at.size)
            if crc32(data) != at.check:
                raise FormatError("the file changed: another record is there now", f"byte {at.offset}")
            lines[at.offset] = dict(logs_in(parse(data)[0]))
        found.append(event_of(lines[at.offset][at.resource, at.scope, at.span]))
    return found


def _name(record: dict[str, Any]) -> str:
    told = named(record, *_EVENT_NAMES)
    if told is None:
        told = attributes(record).get("event.name")
    return told if isinstance(told, str) else ""
