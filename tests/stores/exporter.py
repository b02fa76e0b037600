"""The ClickHouse exporter of the OpenTelemetry collector: its tables, and the rows that it writes of OTLP JSON.

The tables are those of its templates, in both variants: attributes as ``Map`` and as ``JSON``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tracetui.formats.otlp.records import normal_id

_MAP = "Map(LowCardinality(String), String)"
_TABLE = """
CREATE TABLE {database}.otel_traces (
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)), TraceId String CODEC(ZSTD(1)), SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)), TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)), ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes {attributes} CODEC(ZSTD(1)), ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes {attributes} CODEC(ZSTD(1)), Duration UInt64 CODEC(ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)), StatusMessage String CODEC(ZSTD(1)),
    Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes {attributes}) CODEC(ZSTD(1)),
    Links Nested (TraceId String, SpanId String, TraceState String, Attributes {attributes}) CODEC(ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_duration Duration TYPE minmax GRANULARITY 1
) ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))
SETTINGS index_granularity=8192, ttl_only_drop_parts = 1"""
_LOOKUP = """
CREATE TABLE {database}.otel_traces_trace_id_ts (
    TraceId String CODEC(ZSTD(1)), Start DateTime CODEC(Delta, ZSTD(1)), End DateTime CODEC(Delta, ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = MergeTree PARTITION BY toDate(Start) ORDER BY (TraceId, Start)
SETTINGS index_granularity=8192, ttl_only_drop_parts = 1"""
_VIEW = """
CREATE MATERIALIZED VIEW {database}.otel_traces_trace_id_ts_mv TO {database}.otel_traces_trace_id_ts AS
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End FROM {database}.otel_traces
WHERE TraceId != '' GROUP BY TraceId"""
_KINDS = ["Unspecified", "Internal", "Server", "Client", "Producer", "Consumer"]
_CODES = ["Unset", "Ok", "Error"]


def tables(database: str, *, typed: bool = False) -> list[str]:
    """The statements that create a database and its tables; `typed`: the variant with ``JSON``."""
    names = {"database": database, "attributes": "JSON" if typed else _MAP}
    return [f"CREATE DATABASE {database}", *(statement.format(**names) for statement in (_TABLE, _LOOKUP, _VIEW))]


def insert(database: str, rows: Iterable[dict[str, Any]]) -> str:
    """The statement that inserts rows."""
    lines = "\n".join(json.dumps(row) for row in rows)
    return f"INSERT INTO {database}.otel_traces SETTINGS input_format_import_nested_json=0 FORMAT JSONEachRow\n{lines}"


def rows(request: dict[str, Any], *, typed: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of a request of OTLP JSON."""
    for resource in request.get("resourceSpans", ()):
        around = _attributes(resource.get("resource", {}), typed)
        for scope in resource.get("scopeSpans", ()):
            library = scope.get("scope", {})
            for span in scope.get("spans", ()):
                yield {
                    **_span(span, typed),
                    "ServiceName": str(around.get("service.name", "")),
                    "ResourceAttributes": around,
                    "ScopeName": library.get("name", ""),
                    "ScopeVersion": library.get("version", ""),
                }


def _span(span: dict[str, Any], typed: bool) -> dict[str, Any]:
    begin, end = int(span.get("startTimeUnixNano", 0)), int(span.get("endTimeUnixNano", 0))
    status, events, links = span.get("status") or {}, span.get("events") or [], span.get("links") or []
    return {
        "Timestamp": _time(begin),
        "TraceId": _id(span.get("traceId")),
        "SpanId": _id(span.get("spanId")),
        "ParentSpanId": _id(span.get("parentSpanId")),
        "TraceState": span.get("traceState", ""),
        "SpanName": span.get("name", ""),
        "SpanKind": _named(span.get("kind"), _KINDS, "SPAN_KIND_"),
        "SpanAttributes": _attributes(span, typed),
        "Duration": (end - begin) % (1 << 64),
        "StatusCode": _named(status.get("code"), _CODES, "STATUS_CODE_"),
        "StatusMessage": status.get("message", ""),
        "Events.Timestamp": [_time(int(event.get("timeUnixNano", 0))) for event in events],
        "Events.Name": [event.get("name", "") for event in events],
        "Events.Attributes": [_attributes(event, typed) for event in events],
        "Links.TraceId": [_id(link.get("traceId")) for link in links],
        "Links.SpanId": [_id(link.get("spanId")) for link in links],
        "Links.TraceState": [link.get("traceState", "") for link in links],
        "Links.Attributes": [_attributes(link, typed) for link in links],
    }


def _named(value: int | str | None, names: list[str], prefix: str) -> str:
    """The name of a value of an enum, which JSON may have as a number, as text or by its name."""
    if isinstance(value, str) and value.startswith(prefix):
        return value.removeprefix(prefix).capitalize()
    return names[int(value or 0)]


def _time(nanoseconds: int) -> str:
    return f"{datetime.fromtimestamp(nanoseconds // 10**9, UTC):%Y-%m-%d %H:%M:%S}.{nanoseconds % 10**9:09}"


def _id(value: str | None) -> str:
    return normal_id(value or "").strip("\0")


def _attributes(record: dict[str, Any], typed: bool) -> dict[str, Any]:
    values = {attribute["key"]: raw(attribute.get("value", {})) for attribute in record.get("attributes", ())}
    return values if typed else {key: as_text(value) for key, value in values.items()}


def raw(value: dict[str, Any]) -> Any:
    """The plain value of an ``AnyValue``."""
    for kind, inner in value.items():
        if kind == "intValue":
            return int(inner)
        if kind == "arrayValue":
            return [raw(item) for item in inner.get("values", ())]
        if kind == "kvlistValue":
            return {attribute["key"]: raw(attribute.get("value", {})) for attribute in inner.get("values", ())}
        return inner
    return None


def as_text(value: Any) -> str:
    """A value as text: that of a text is itself, that of any other is its JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
