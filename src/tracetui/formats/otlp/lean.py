"""Requests decoded for counting: each span as it is written, what stands around spans once."""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from tracetui.formats.decode import strict
from tracetui.formats.otlp.records import Told, value_of

_NAMES: Final = {
    "trace": "traceId",
    "ident": "spanId",
    "parent": "parentSpanId",
    "start": "startTimeUnixNano",
    "end": "endTimeUnixNano",
    "state": "traceState",
    "dropped_attributes": "droppedAttributesCount",
    "dropped_events": "droppedEventsCount",
    "dropped_links": "droppedLinksCount",
}
_NONE: Final = msgspec.Raw()

Around = dict[tuple[str, bytes, bytes], dict[str, Any]]
"""What stands around spans, by how it is written."""


class Lean(NamedTuple):
    """A span, and what need not be found out again."""

    told: Told
    kept: dict[str, Any]
    """Its attributes."""
    check: int
    """Checksum of it as it is written."""


class _Attribute(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    key: str
    value: dict[str, Any]


class _Span(msgspec.Struct, gc=False, rename=_NAMES, forbid_unknown_fields=True):
    """All that the protocol knows: whatever is in a span is decoded, so that damage in it is found."""

    trace: str
    ident: str
    parent: str | None = None
    name: Any = None
    start: Any = None
    end: Any = None
    status: Any = None
    events: Any = None
    attributes: list[_Attribute] = []
    kind: Any = None
    flags: Any = None
    state: Any = None
    links: Any = None
    dropped_attributes: Any = None
    dropped_events: Any = None
    dropped_links: Any = None


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


_request: Final = msgspec.json.Decoder(_Request).decode
_span: Final = msgspec.json.Decoder(_Span).decode


def spans_on(line: bytes, around: Around) -> Iterator[Lean]:
    """The spans on a line. `around` keeps what stands around them from one line to the next.

    Raises `ValueError` for a line that is not as the protocol has it, in camel case.
    """
    for i, resource in enumerate(_request(line).resource_spans):
        above = _once(around, "resource", resource.resource, resource.schema_url)
        for j, scope in enumerate(resource.scope_spans):
            within = _once(around, "scope", scope.scope, scope.schema_url)
            for k, raw in enumerate(scope.spans):
                span = _span(raw)
                record = {
                    "traceId": span.trace,
                    "spanId": span.ident,
                    "parentSpanId": span.parent,
                    "name": span.name,
                    "startTimeUnixNano": span.start,
                    "endTimeUnixNano": span.end,
                    "status": span.status,
                    "events": span.events,
                }
                yield Lean(Told((i, j, k), record, within, above), _kept(span.attributes), crc32(raw))


def _kept(attributes: list[_Attribute]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for one in attributes:
        value = one.value
        kept[intern(one.key)] = value["stringValue"] if len(value) == 1 and "stringValue" in value else value_of(value)
    if len(kept) < len(attributes):
        raise ValueError("an attribute is there twice")
    return kept


def _once(around: Around, kind: str, raw: msgspec.Raw, schema: msgspec.Raw) -> dict[str, Any]:
    """These fields decoded: one object for all spans that have the same around them."""
    key = kind, bytes(raw), bytes(schema)
    found = around.get(key)
    if found is None:
        fields = (kind, key[1]), ("schemaUrl", key[2])
        found = around[key] = {name: strict(data) for name, data in fields if data}
    return found
