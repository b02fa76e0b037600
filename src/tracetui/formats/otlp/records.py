"""Records of OTLP JSON: requests of resources of scopes of spans, and values of any kind. No field can be trusted.

JSON of OTLP has lowerCamelCase names, ids in hex and 64-bit numbers as text. The default JSON of a protobuf library
has snake_case names or ids in base64: both are read.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Undecodable
from collections.abc import Callable, Iterator, Sequence
from sys import intern
from typing import Any, ClassVar, Final, NamedTuple
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.bodies import add_field, changed, rendered
from tracetui.formats.decode import decode_value, parse, strict
from tracetui.formats.scalars import sequence, without
from tracetui.formats.schema import Field, Fields, plain
from tracetui.sources.base import File

NO_TRACE: Final = "no trace id"
"""Key of the run of all spans without a trace id."""
REQUEST: Final = ("resourceSpans", "resource_spans")
"""Names of the list of spans in a request."""
OTHERS: Final = ("resourceLogs", "resource_logs", "resourceMetrics", "resource_metrics")
"""Names of the lists of other exports."""
_LOGS: Final = (("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records"))
"""Names of the three lists in which log records are."""
SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_SPANS: Final = (REQUEST, SCOPES, ("spans",))
LISTS: Final = (*SCOPES, "spans")
"""Names of lists around spans."""
_ABOUT: Final = ("resource", "scope", "instrumentationLibrary")
Attributes = dict[str, Any]
"""Values by key. Those of `CONTENT` may be undecoded."""
INPUTS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "ai.toolCall.args",
    "input.value",
    "traceloop.entity.input",
    "ai.prompt",
    "user_prompt",
    "langfuse.observation.input",
    "langfuse.trace.input",
    "mlflow.spanInputs",
    "input",
)
OUTPUTS: Final = (
    "gen_ai.tool.call.result",
    "tool_response",
    "ai.toolCall.result",
    "final_result",
    "output.value",
    "traceloop.entity.output",
    "ai.response.text",
    "langfuse.observation.output",
    "langfuse.trace.output",
    "mlflow.spanOutputs",
    "output",
)
MESSAGES_IN: Final = ("gen_ai.input.messages", "ai.prompt.messages", "langfuse.observation.input", "mlflow.spanInputs")
MESSAGES_OUT: Final = ("gen_ai.output.messages", "langfuse.observation.output", "mlflow.spanOutputs")
CONVERSATIONS: Final = ("pydantic_ai.all_messages", "all_messages_events")
EVENTS: Final = ("events",)
"""Events as JSON in an attribute of the span."""
INPUTS_FLAT: Final = ("llm.input_messages.", "gen_ai.prompt.", "llm.prompts.")
OUTPUTS_FLAT: Final = ("llm.output_messages.", "gen_ai.completion.", "llm.completions.")
FLAT: Final = (*INPUTS_FLAT, *OUTPUTS_FLAT)
"""How the names of attributes begin that are parts of messages."""
SYSTEM: Final = "gen_ai.system_instructions"
HOLDERS: Final = frozenset(
    (*MESSAGES_IN, *MESSAGES_OUT, *CONVERSATIONS, *EVENTS, SYSTEM, "ai.response.text", "ai.response.toolCalls")
)
"""Attributes that hold messages."""
CONTENT: Final = frozenset((*INPUTS, *OUTPUTS, *HOLDERS))
"""Attributes with long values, which stay undecoded until they are used: see `content`."""
_LOWER_HEX: Final = "0123456789abcdef"
_HEX: Final = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{16}){1,2})")
_DIGITS: Final = re.compile(r"-?\d{1,19}")
_PLAIN: Final = frozenset(
    f"{kind}{end}" for kind in ("string", "bool", "double", "bytes") for end in ("Value", "_value")
)
"""Kinds of values that need no conversion."""
_LIMIT: Final = 1 << 63
_DEPTH: Final = 48
"""Depth to which values within values are decoded."""


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
    """An attribute with a key and a value, as the protocol has it."""

    key: str
    value: msgspec.Raw


RecordPath = tuple[int, int, int]
"""Index of a record in each of the three lists of its request."""


class RecordRef(msgspec.Struct, frozen=True, gc=False):
    """A span or log record: offset and size of its line or document, its checksum and its path in that."""

    offset: int
    size: int
    check: int
    resource: int
    scope: int
    index: int
    logs: tuple[RecordRef, ...] = ()
    """Log records that are events of it."""

    @property
    def path(self) -> RecordPath:
        """Its index in the three lists."""
        return self.resource, self.scope, self.index


class SpanFields(msgspec.Struct, gc=False, rename=_NAMES, forbid_unknown_fields=True):
    """Fields of a span in the protocol. All are decoded, so that damage in them is found."""

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


FIELD_NAMES: Final = {
    field.name: (field.encode_name, re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", field.encode_name))
    for field in msgspec.structs.fields(SpanFields)
}
"""Names of the fields of a span in both spellings."""
FIELDS: Final = Fields({"span": " ".join(name for names in FIELD_NAMES.values() for name in names)})
"""Fields of a span. Attributes may have any name."""


class SpanRecord(msgspec.Struct, gc=False):
    """A span with its scope and resource."""

    path: RecordPath
    trace: str
    """The id of its trace in lower hex, or `NO_TRACE`."""
    span: SpanFields
    attrs: Attributes
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


class _Scope(msgspec.Struct, gc=False, rename="camel"):
    other_fields: ClassVar = ""
    spans: list[msgspec.Raw]
    scope: msgspec.Raw = _NONE
    schema_url: msgspec.Raw = _NONE


class _Resource(msgspec.Struct, gc=False, rename="camel"):
    other_fields: ClassVar = ""
    scope_spans: list[_Scope]
    resource: msgspec.Raw = _NONE
    schema_url: msgspec.Raw = _NONE


class _Request(msgspec.Struct, gc=False, rename="camel"):
    other_fields: ClassVar = ""
    resource_spans: list[_Resource]


_decode_request: Final = msgspec.json.Decoder(_Request).decode
_STRICT: Final[Field[_Request]] = Field(_Request)
_decode_span: Final = msgspec.json.Decoder(SpanFields).decode
_decode_value: Final = msgspec.json.Decoder(dict[str, Any]).decode


def request_spans(
    data: bytes, surroundings: Surroundings, wanted: Callable[[msgspec.Raw], bool] | None = None
) -> list[SpanRecord]:
    """The spans of a request of spans and nothing else that is as the protocol has it, in camel case.

    Only those that are `wanted`. Raises `ValueError` or `RecursionError` for any other request. Skips the checks of
    `tracetui.formats.decode.skippable` checks.
    """
    spans = []
    for i, resource in enumerate(_STRICT.strict(data).resource_spans):
        above = _decode_once(surroundings, "resource", resource.resource, resource.schema_url)
        for j, scope in enumerate(resource.scope_spans):
            within = _decode_once(surroundings, "scope", scope.scope, scope.schema_url)
            for k, raw in enumerate(scope.spans):
                if wanted is None or wanted(raw):
                    spans.append(_strict_record((i, j, k), raw, within, above))
    return spans


def span_values(data: bytes) -> dict[RecordPath, Any]:
    """The spans of a line or document: their bytes, or their values where it has other names or is not strict JSON."""
    try:
        resources = _decode_request(data).resource_spans
    except (ValueError, RecursionError):
        return {path: span for path, span, _, _ in objects_in(parse(data)[0])}
    return {
        (i, j, k): span
        for i, resource in enumerate(resources)
        for j, scope in enumerate(resource.scope_spans)
        for k, span in enumerate(scope.spans)
    }


def objects_in(
    request: Any, lists: tuple[tuple[str, ...], ...] = _SPANS
) -> Iterator[tuple[RecordPath, dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """All spans, or log records, of any request as objects: path, record, scope, resource."""
    for i, resource in enumerate(sequence(named(request, *lists[0]))):
        for j, scope in enumerate(sequence(named(resource, *lists[1]))):
            for k, record in enumerate(sequence(named(scope, *lists[2]))):
                if isinstance(record, dict):
                    yield (i, j, k), record, scope, resource


def _strict_record(path: RecordPath, raw: msgspec.Raw, scope: dict[str, Any], resource: dict[str, Any]) -> SpanRecord:
    try:
        span = _decode_span(raw)
        attrs: dict[str, Any] = {}
        for attribute in span.attributes:
            key = intern(attribute.key)
            if key in CONTENT:
                attrs[key] = attribute.value
            else:
                value = _decode_value(attribute.value)
                is_text = len(value) == 1 and "stringValue" in value  # as most are
                attrs[key] = value["stringValue"] if is_text else value_of(value)
        if len(attrs) == len(span.attributes):
            return SpanRecord(path, identifier(span.trace) or NO_TRACE, span, attrs, scope, resource, crc32(raw))
    except (ValueError, RecursionError):
        pass
    try:
        value = parse(bytes(raw))[0]
    except FormatError as error:
        raise ValueError(error.reason) from error
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return loose_record(path, value, scope, resource, crc32(raw))


def loose_record(
    path: RecordPath, value: dict[str, Any], scope: dict[str, Any], resource: dict[str, Any], check: int
) -> SpanRecord:
    """The record of a span with any names and types of fields."""
    span = SpanFields(**{key: named(value, *names) for key, names in FIELD_NAMES.items() if key != "attributes"})
    return SpanRecord(path, trace_id(value), span, attributes_of(value), scope, resource, check, tuple(value))


def _decode_once(surroundings: Surroundings, kind: str, raw: msgspec.Raw, schema: msgspec.Raw) -> dict[str, Any]:
    key = kind, bytes(raw), bytes(schema)
    if key not in surroundings:
        surroundings[key] = {name: strict(data) for name, data in ((kind, key[1]), ("schemaUrl", key[2])) if data}
    return surroundings[key]


class LogRecord(NamedTuple):
    """A record in an export of logs."""

    path: RecordPath
    fields: dict[str, Any]
    trace: str | None = None
    """The trace that it is an event of; None for any other record."""
    span: str | None = None
    """The span that it is an event of; None for an evaluation that names none."""


def logs_in(request: Any) -> Iterator[LogRecord]:
    """All log records of a request. The GenAI conventions have messages there, by trace and span."""
    for path, fields, _, _ in objects_in(request, _LOGS):
        trace, span = trace_id(fields), span_id(fields)
        kinds = "gen_ai." if span is not None else "gen_ai.evaluation."
        is_event = trace != NO_TRACE and _name(fields).startswith(kinds)
        yield LogRecord(path, fields, trace, span) if is_event else LogRecord(path, fields)


class Export(NamedTuple):
    """The records on one line, or in one document."""

    spans: Sequence[SpanRecord] = ()
    logs: Sequence[LogRecord] = ()
    value: Any = msgspec.UNSET
    """The decoded JSON; unset for a request of spans and nothing else, as the protocol has it."""


def export_of(value: Any) -> Export:
    """The records of decoded JSON."""
    spans = [loose_record(*span, crc32(rendered(span[1]))) for span in objects_in(value)]
    return Export(spans, list(logs_in(value)), value)


def evaluated_trace(record: SpanRecord) -> str:
    """The trace that the evaluations of a span describe: its own, but for an evaluator the one that it is linked to."""
    if record.span.links and record.attrs.get("openinference.span.kind") == "EVALUATOR":
        linked = {trace_id(link) for link in sequence(record.span.links)}
        if len(linked) == 1 and NO_TRACE not in linked:
            return linked.pop()
    return record.trace


def by_trace(export: Export) -> dict[str, Export]:
    """The export divided by trace; the span of an evaluator is also with the trace that it evaluates."""
    spans, logs = dict[str, list[SpanRecord]](), dict[str, list[LogRecord]]()
    for log in export.logs:
        if log.trace is not None:
            logs.setdefault(log.trace, []).append(log)
    for span in export.spans:
        for trace in {span.trace: None, evaluated_trace(span): None}:
            spans.setdefault(trace, []).append(span)
    return {key: Export(spans.get(key, ()), logs.get(key, ()), export.value) for key in {**logs, **spans}}


def damage_in(request: Any) -> Iterator[str]:
    """Problems of a request: values that are not a list of spans, an object with one, or a span."""
    for name, below in ((REQUEST, SCOPES), (SCOPES, ("spans",))):
        requests = [request] if name is REQUEST else sequence(named(request, *REQUEST))
        for holder in requests:
            parts = named(holder, *name)
            if parts is not None and not isinstance(parts, list):
                yield f"{name[0]} isn't a list"
            for i, part in enumerate(sequence(parts)):
                if not isinstance(part, dict):
                    yield f"{name[0]}[{i}] isn't an object"
                elif not isinstance(spans := named(part, *below), list | None):
                    yield f"{below[0]} isn't a list"
                elif below == ("spans",):
                    wrong = [j for j, span in enumerate(sequence(spans)) if not isinstance(span, dict)]
                    others = f", nor are {len(wrong) - 1} others" if len(wrong) > 1 else ""
                    yield from (f"spans[{j}] isn't an object{others}" for j in wrong[:1])


# ---- fields


def named(record: Any, *names: str) -> Any:
    """The first of these fields that is there and not null."""
    if type(record) is dict:
        for name in names:
            value = record.get(name)
            if value is not None:
                return value
    return None


def parse_int(value: Any) -> int | None:
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
    """A time in nanoseconds since the epoch; 0 means unknown."""
    time = parse_int(value)
    return time if time is not None and time > 0 else None


def trace_id(record: Any) -> str:
    """The trace that a span or link names, in lower hex."""
    return identifier(named(record, "traceId", "trace_id")) or NO_TRACE


def span_id(record: Any) -> str | None:
    """The id of a span, in lower hex."""
    return identifier(named(record, "spanId", "span_id"))


def parent_id(span: SpanFields) -> str | None:
    """The id of the span above; None at the top."""
    ident = identifier(span.parent) if span.parent else None
    return None if ident is None or not ident.strip("0") else ident


def normal_id(text: str) -> str:
    """An id in lower hex, whether it is written in hex or in base64; any other value stays."""
    if len(text) in (16, 32) and not text.strip(_LOWER_HEX):  # as most are
        return text
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
    """An id in lower hex; None for a value that is not text."""
    return normal_id(value) if isinstance(value, str) and value else None


# ---- values


def attributes_of(record: Any) -> dict[str, Any]:
    """The attributes of a record by key, with anything there that is no attribute under a name of its own."""
    attributes = named(record, "attributes")
    if isinstance(attributes, dict):
        return {key: value_of(value) for key, value in attributes.items()}
    attrs: dict[str, Any] = {}
    if attributes is not None and not isinstance(attributes, list):
        attrs["attributes"] = attributes
    for item in sequence(attributes):
        _attribute(item, attrs, 0)
    return attrs


def _attribute(item: Any, attrs: dict[str, Any], depth: int) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("key"), str):
        add_field(attrs, "attribute", item)
        return
    key = intern(item["key"])
    add_field(attrs, key, value_of(item.get("value"), depth))
    if len(item) > 2 and (rest := without(item, "key", "value")):
        add_field(attrs, f"{key} (also)", rest)


def value_of(value: Any, depth: int = 0) -> Any:
    """The value of an ``AnyValue``; itself if it is of an unknown kind."""
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEPTH:
        return value
    ((kind, inner),) = value.items()
    if kind in _PLAIN:
        return inner
    if kind in ("intValue", "int_value"):
        number = parse_int(inner)
        return inner if number is None else number
    if kind in ("arrayValue", "array_value") and _lists(inner):
        return [value_of(item, depth + 1) for item in sequence(inner.get("values"))]
    if kind in ("kvlistValue", "kvlist_value") and _lists(inner):
        attrs: dict[str, Any] = {}
        for item in sequence(inner.get("values")):
            _attribute(item, attrs, depth + 1)
        return attrs
    return value


def content(attrs: Attributes, name: str) -> Any:
    """The value of an attribute, which is decoded once; None if it is not there."""
    value = attrs.get(name)
    if type(value) is msgspec.Raw:
        value = attrs[name] = value_of(plain(value))
    return value


def decoded(value: Any) -> Any:
    """The value of a text that is a JSON object or array, else the value itself."""
    return decode_value(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value


def bytes_of(value: Any) -> bytes:
    """The bytes of an attribute that may be undecoded, to search for something before it is decoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return bytes(value) if isinstance(value, msgspec.Raw) else rendered(value) if value is not None else b""


def _lists(inner: Any) -> bool:
    """Whether it is an object with a list of values and nothing else."""
    return isinstance(inner, dict) and set(inner) <= {"values"} and isinstance(inner.get("values"), list | None)


# ---- resources and scopes


def fields_around(record: dict[str, Any], lists: Sequence[str]) -> dict[str, Any]:
    """The fields and attributes of a scope (the library that made spans) or a resource (the program it ran in), without
    its `lists`.
    """
    attrs: dict[str, Any] = {}
    for name in _ABOUT:
        inner = record.get(name)
        if isinstance(inner, dict):
            fields = {**without(inner, "attributes"), **attributes_of(inner)}
            for key, value in fields.items():
                add_field(attrs, key, value)
        elif inner is not None:
            add_field(attrs, name, inner)
    for key, value in record.items():
        if key not in _ABOUT and (key not in lists or not isinstance(value, list)):
            add_field(attrs, key, value)
    return attrs


# ---- events, of spans and in exports of logs

_EVENT_NAMES: Final = ("eventName", "event_name")
_TIMES: Final = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano")


class Event(NamedTuple):
    """An event of a span."""

    name: str
    time: int | None
    """Nanoseconds since the epoch."""
    attrs: dict[str, Any]
    rest: dict[str, Any]
    """All other fields."""


def events_of(events: Any) -> list[Event]:
    """The events of a span that are objects."""
    return [
        Event(
            name if isinstance(name := event.get("name"), str) else "",
            nanoseconds(named(event, "timeUnixNano", "time_unix_nano")),
            attributes_of(event),
            without(event, "attributes", *(("name",) if isinstance(name, str) else ())),
        )
        for event in sequence(events)
        if isinstance(event, dict)
    ]


def event_of(record: dict[str, Any]) -> Event:
    """A log record as the event that it is."""
    name, attrs = _name(record), attributes_of(record)
    if attrs.get("event.name") == name:
        del attrs["event.name"]
    body = value_of(record.get("body"))
    for key, value in (body if isinstance(body, dict) else {} if body is None else {"body": body}).items():
        add_field(attrs, key, value)
    excluded = ("traceId", "trace_id", "spanId", "span_id", "attributes", "body")
    names = _EVENT_NAMES if named(record, *_EVENT_NAMES) == name else ()
    return Event(name, nanoseconds(named(record, *_TIMES)), attrs, without(record, *excluded, *names))


def events_at(file: File, refs: Sequence[RecordRef]) -> list[Event]:
    """The events of these log records. Raises `FormatError` if something else is there now."""
    lines: dict[int, dict[RecordPath, dict[str, Any]]] = {}
    events = []
    for at in refs:
        if at.offset not in lines:
            lines[at.offset] = {log.path: log.fields for log in logs_in(parse(file.read(at.offset, at.size))[0])}
        record = lines[at.offset].get(at.path, {})
        if crc32(rendered(record)) != at.check:
            raise changed(f"byte {at.offset}")
        events.append(event_of(record))
    return events


def _name(record: dict[str, Any]) -> str:
    name = named(record, *_EVENT_NAMES)
    if name is None:
        name = attributes_of(record).get("event.name")
    return name if isinstance(name, str) else ""
