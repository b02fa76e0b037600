"""Spans as rows of the ClickHouse exporter: each row becomes the span of the protocol that the exporter wrote it from.

Facts: the exporter of opentelemetry-collector-contrib. Its ``Map`` columns hold every value as text: a whole number, a
double and a truth as JSON has them, lists and maps as JSON, bytes as base64. The kind of a value is not stored, so it
is inferred here. Its ``JSON`` columns hold values with types, in which names with dots became objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.formats.decode import decode_value, strict
from tracetui.formats.otlp.records import INPUTS, NO_TRACE, OUTPUTS, SpanFields, SpanRecord, Surroundings, identifier
from tracetui.formats.otlp.vocabulary import NUMBERS

_BEGIN: Final = b'{"TraceId":"'
_KINDS: Final = {
    name: number
    for number, names in enumerate(("Internal", "Server", "Client", "Producer", "Consumer"), 1)
    for name in (names, f"SPAN_KIND_{names.upper()}")
}
"""`Unspecified` is that of a span without a kind."""
_CODES: Final = {"Ok": 1, "STATUS_CODE_OK": 1, "Error": 2, "STATUS_CODE_ERROR": 2}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?(?:e[+-]\d{1,3})?")
_LISTS: Final = frozenset(
    [
        "gen_ai.response.finish_reasons",
        "gen_ai.request.stop_sequences",
        "gen_ai.request.encoding_formats",
        "tag.tags",
        "logfire.tags",
        "langsmith.tags",
        "tags",
    ]
)
"""Attributes that are lists of texts."""
_TEXT_NAMES: Final = frozenset(
    [
        "answer",
        "args",
        "arguments",
        "body",
        "completion",
        "content",
        "description",
        "error",
        "explanation",
        "hash",
        "id",
        "input",
        "key",
        "label",
        "message",
        "model",
        "name",
        "output",
        "prompt",
        "query",
        "question",
        "reason",
        "response",
        "result",
        "role",
        "stacktrace",
        "text",
        "title",
        "type",
        "value",
        "version",
    ]
)
"""Last parts of the names of attributes that hold text, even where it looks like a number."""
_LAST: Final = re.compile(r"[A-Za-z]*$")
_OBJECTS: Final = frozenset({"message"})
"""Attributes that are maps; of any other one the parts are attributes, with the names of all maps around them."""
_MAX_DEPTH: Final = 48


class Row(msgspec.Struct, gc=False, rename="pascal"):
    """The columns of a span."""

    trace_id: str
    span_id: str
    end_ns: str
    start_ns: str
    typed: bool
    parent_span_id: str
    trace_state: str
    span_name: str
    span_kind: str
    resource_attributes: msgspec.Raw
    scope_name: str
    scope_version: str
    span_attributes: dict[str, Any]
    status_code: str
    status_message: str
    event_ns: list[str]
    event_names: list[str]
    event_attributes: list[dict[str, Any]]
    link_traces: list[str]
    link_spans: list[str]
    link_states: list[str]
    link_attributes: list[dict[str, Any]]


_decode: Final = msgspec.json.Decoder(Row).decode


def is_row(data: bytes) -> bool:
    """Whether a line, or the beginning of one, is a row."""
    return data.startswith(_BEGIN)


def record_of(data: bytes, surroundings: Surroundings) -> SpanRecord:
    """The span on a line that is a row. Raises `ValueError` or `RecursionError` for any other line."""
    return record_of_row(_decode(data), surroundings, crc32(data))


def record_of_row(row: Row, surroundings: Surroundings, check: int) -> SpanRecord:
    """The span of a row; `check` is the checksum of its line. Raises `ValueError` or `RecursionError`."""
    span = SpanFields(
        trace=row.trace_id,
        id=row.span_id or None,
        parent=row.parent_span_id or None,
        name=row.span_name,
        start=row.start_ns,
        end=row.end_ns,
        status=_status(row),
        events=_events(row),
        kind=_KINDS.get(row.span_kind),
        state=row.trace_state or None,
        links=_links(row),
    )
    key = "resource", bytes(row.resource_attributes), b"typed" if row.typed else b""
    if key not in surroundings:
        attributes = _attributes(strict(key[1]), row.typed)
        surroundings[key] = {"resource": {"attributes": attributes}}
    scope = "scope", row.scope_name.encode(), row.scope_version.encode()
    if scope not in surroundings:
        fields = {"name": row.scope_name, "version": row.scope_version}
        surroundings[scope] = {"scope": {name: value for name, value in fields.items() if value}}
    return SpanRecord(
        (0, 0, 0),
        identifier(row.trace_id) or NO_TRACE,
        span,
        _attributes(row.span_attributes, row.typed),
        surroundings[scope],
        surroundings[key],
        check,
    )


def span_of(data: bytes) -> dict[str, Any]:
    """The span on a line that is a row, as the protocol writes one. Raises `ValueError` for any other line."""
    record = record_of(data, {})
    fields = {name: value for name, value in msgspec.to_builtins(record.span).items() if value is not None}
    return {**fields, "attributes": record.attrs}


# ---- parts of a row


def _status(row: Row) -> dict[str, Any] | None:
    code = _CODES.get(row.status_code)
    fields = {"code": code, "message": row.status_message or None}
    return {name: value for name, value in fields.items() if value is not None} or None


def _events(row: Row) -> list[dict[str, Any]] | None:
    return [
        {"timeUnixNano": time, "name": name, "attributes": _attributes(attributes, row.typed)}
        for time, name, attributes in zip(row.event_ns, row.event_names, row.event_attributes, strict=False)
    ] or None


def _links(row: Row) -> list[dict[str, Any]] | None:
    columns = zip(row.link_traces, row.link_spans, row.link_states, row.link_attributes, strict=False)
    return [
        {
            "traceId": trace,
            "spanId": span,
            **({"traceState": state} if state else {}),
            **({"attributes": _attributes(attributes, row.typed)} if attributes else {}),
        }
        for trace, span, state, attributes in columns
    ] or None


# ---- attributes


def _attributes(stored: dict[str, Any], typed: bool) -> dict[str, Any]:
    if typed:
        return dict(_flat(stored, "", 0))
    return {name: value_of(name, text) for name, text in stored.items()}


def _flat(stored: dict[str, Any], prefix: str, depth: int) -> Iterable[tuple[str, Any]]:
    """Names with dots, which a ``JSON`` column divides."""
    for name, value in stored.items():
        if isinstance(value, dict) and value and depth < _MAX_DEPTH and (depth or name not in _OBJECTS):
            yield from _flat(value, f"{prefix}{name}.", depth + 1)
        else:
            yield f"{prefix}{name}", value


def value_of(name: str, text: Any) -> Any:
    """The value of an attribute that is stored as text.

    A number or truth is one unless the name is that of a text. Lists, but for those of the conventions, and maps stay
    text: more often than not they were one, and they are decoded where they have a meaning.
    """
    if not isinstance(text, str) or not text:
        return text
    first = text[0]
    if first == "[":
        return decode_value(text) if name in _LISTS else text
    if first in "tf":
        return text == "true" if text in ("true", "false") and not _is_text(name) else text
    if (first == "-" or first.isdecimal()) and len(text) < 32 and _NUMBER.fullmatch(text) and not _is_text(name):
        return strict(text.encode())
    return text


def _is_text(name: str) -> bool:
    if name in NUMBERS:
        return False
    ending = _LAST.search(name)
    return name in INPUTS or name in OUTPUTS or (ending is not None and ending[0].lower() in _TEXT_NAMES)
