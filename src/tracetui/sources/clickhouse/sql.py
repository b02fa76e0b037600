"""Statements. Values are bound by the server; names come from the address, in quotes."""

# ruff: noqa: S608 — only names of tables are part of a statement

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from tracetui.sources.clickhouse.url import Database
from tracetui.sources.conditions import (
    EVERYTHING,
    All,
    AnyOne,
    Condition,
    EachError,
    LastsAtLeast,
    MayBeScored,
    MayFail,
    Mentions,
    StartsBefore,
    StartsSince,
)

COLUMNS: Final = ("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "SpanAttributes", "Duration")
"""Columns without which a table is none of the exporter's."""
_START: Final = "toUnixTimestamp64Nano(Timestamp)"
_END: Final = f"{_START} + toInt64(Duration)"
_FAILED: Final = "StatusCode IN ('Error', 'STATUS_CODE_ERROR')"
_ERROR: Final = f"replaceRegexpAll(argMinIf(StatusMessage, Timestamp, {_FAILED}), '[0-9a-fA-F-]{{8,}}|[0-9]+', '#')"
"""The error text of a trace without numbers and ids: that of its first failed span."""
_LOOKUP: Final = "_trace_id_ts"


Bounds: TypeAlias = tuple[int, int]
"""The first and last start of spans, in seconds."""


class Statement(msgspec.Struct, frozen=True):
    """A statement and the values of its parameters."""

    text: str
    values: dict[str, Any] = {}


class Schema(msgspec.Struct, frozen=True):
    """The tables of a database."""

    database: Database
    typed: bool
    """Attributes are ``JSON``, which has types; else a ``Map`` of texts."""
    has_lookup: bool
    """There is a table of the times of each trace."""

    @property
    def table(self) -> str:
        """The quoted name of the table of spans."""
        return _table(self.database, "")

    @property
    def lookup(self) -> str:
        """The quoted name of the table of times."""
        return _table(self.database, _LOOKUP)


def columns(database: Database) -> Statement:
    """Names and types of the columns of both tables."""
    return Statement(
        "SELECT table, name, type FROM system.columns "
        "WHERE database = {database:String} AND table IN {tables:Array(String)}",
        {"database": database.name, "tables": [database.table, database.table + _LOOKUP]},
    )


def newest(schema: Schema, limit: int, since: float | None, condition: Condition = EVERYTHING) -> Statement:
    """The newest traces by their last span: id, spans, first start and last end in nanoseconds.

    `since` (seconds) bounds the last start.
    """
    values: dict[str, Any] = {"limit": limit}
    spread = ""
    if isinstance(condition, EachError):
        values["most"], condition = condition.most, MayFail()
        spread = f"LIMIT {{most:UInt64}} BY {_ERROR} "
    where, having = "TraceId != ''", _Having(schema, values).text(condition)
    bound = max([since or 0.0, *_bounds(condition)])
    if bound > 0:
        values["bound"] = int(bound)
        where += " AND (Timestamp >= toDateTime64({bound:Int64}, 9, 'UTC') OR Timestamp < toDateTime64(1, 9, 'UTC'))"
    return Statement(
        f"SELECT TraceId, count() AS spans, max({_START}) AS last, max({_END}) AS end "
        f"FROM {schema.table} WHERE {where} GROUP BY TraceId{f' HAVING {having}' if having else ''} "
        f"ORDER BY max(Timestamp) DESC, TraceId {spread}LIMIT {{limit:UInt64}}",
        values,
    )


def last(schema: Schema) -> Statement:
    """The time of the last span in seconds."""
    return Statement(f"SELECT toUnixTimestamp(max(Timestamp)) AS last FROM {schema.table}")


def versions(schema: Schema, traces: Sequence[str]) -> Statement:
    """Of each trace a value that changes whenever spans arrive, and its first and last start in seconds."""
    wanted = "WHERE TraceId IN {traces:Array(String)} GROUP BY TraceId"
    begin, end, table = "Start", "End", schema.lookup
    if not schema.has_lookup:
        begin, end, table = "Timestamp", "Timestamp", schema.table
    return Statement(
        f"SELECT TraceId, count() AS parts, toUnixTimestamp(min({begin})) AS begin, "
        f"toUnixTimestamp(max({end})) AS end FROM {table} {wanted}",
        {"traces": [*traces]},
    )


def spans(schema: Schema, trace: str, limit: int, bounds: Bounds) -> Statement:
    """The ids of the spans of a trace."""
    where, values = _within([trace], bounds)
    return Statement(
        f"SELECT DISTINCT SpanId FROM {schema.table} WHERE {where} LIMIT {{limit:UInt64}}", {**values, "limit": limit}
    )


def rows(schema: Schema, traces: Sequence[str], limit: int, bounds: Bounds, only: Sequence[str] = ()) -> Statement:
    """All spans of some traces, or `only` some of them, as `tracetui.formats.otlp.rows` reads them."""
    where, values = _within(traces, bounds)
    if only:
        where += " AND SpanId IN {only:Array(String)}"
        values["only"] = [*only]
    return Statement(
        f"SELECT {', '.join(_row(typed=schema.typed))} FROM {schema.table} WHERE {where} "
        "ORDER BY TraceId, Timestamp, SpanId LIMIT {limit:UInt64}",
        {**values, "limit": limit},
    )


def _within(traces: Sequence[str], bounds: Bounds) -> tuple[str, dict[str, Any]]:
    where = (
        "TraceId IN {traces:Array(String)} AND Timestamp >= toDateTime64({begin:Int64}, 9, 'UTC') "
        "AND Timestamp <= toDateTime64({end:Int64}, 9, 'UTC')"
    )
    return where, {"traces": [*traces], "begin": bounds[0], "end": bounds[1] + 1}


def _row(*, typed: bool) -> Iterator[str]:
    """The fields of a row. Times are nanoseconds, so that they do not depend on settings."""
    yield "TraceId"
    yield "SpanId"
    yield f"toString({_END}) AS EndNs"
    yield f"toString({_START}) AS StartNs"
    yield f"{'true' if typed else 'false'} AS Typed"
    yield from ("ParentSpanId", "TraceState", "SpanName", "SpanKind", "ResourceAttributes", "ScopeName", "ScopeVersion")
    yield from ("SpanAttributes", "StatusCode", "StatusMessage")
    yield "arrayMap(t -> toString(toUnixTimestamp64Nano(t)), Events.Timestamp) AS EventNs"
    yield "Events.Name AS EventNames"
    yield "Events.Attributes AS EventAttributes"
    yield "Links.TraceId AS LinkTraces"
    yield "Links.SpanId AS LinkSpans"
    yield "Links.TraceState AS LinkStates"
    yield "Links.Attributes AS LinkAttributes"


def _table(database: Database, end: str) -> str:
    return f"{_quoted(database.name)}.{_quoted(database.table + end)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


# ---- conditions


def _bounds(condition: Condition) -> Iterator[float]:
    """Times before which no span of a wanted trace starts."""
    if isinstance(condition, StartsSince):
        yield condition.seconds
    elif isinstance(condition, All):
        for part in condition.parts:
            yield from _bounds(part)


class _Having:
    """Writes a condition as one on the spans of a trace."""

    def __init__(self, schema: Schema, values: dict[str, Any]) -> None:
        self._schema, self._values = schema, values

    def text(self, condition: Condition) -> str:
        """Return the condition; empty if it holds for every trace."""
        if isinstance(condition, All):
            return " AND ".join(filter(None, map(self.text, condition.parts)))
        if isinstance(condition, AnyOne):
            parts = [self.text(part) for part in condition.parts]
            return f"({' OR '.join(f'({part})' for part in parts)})" if parts and all(parts) else ""
        if isinstance(condition, StartsSince):
            known = f"minIf({_START}, {_START} > 0)"
            return f"(countIf({_START} > 0) = 0 OR {known} >= {self._bind('Int64', int(condition.seconds * 1e9))})"
        if isinstance(condition, StartsBefore):
            known = f"minIf({_START}, {_START} > 0)"
            return (
                f"(countIf({_START} > 0) = 0 OR {known} < {self._bind('Int64', int(condition.seconds * 1e9) + 1000)})"
            )
        if isinstance(condition, EachError):
            return self.text(MayFail())
        if isinstance(condition, LastsAtLeast):
            first = f"minIf({_START}, {_START} > 0)"
            return f"max({_END}) - {first} >= {self._bind('Int64', int(condition.milliseconds * 1e6) - 1000)}"
        return f"countIf({self._span(condition)}) > 0"

    def _span(self, condition: MayFail | MayBeScored | Mentions) -> str:
        """A condition on one span."""
        if isinstance(condition, MayFail):
            return f"{_FAILED} OR has(Events.Name, 'exception') OR {self._has('error.type')}"
        if isinstance(condition, MayBeScored):
            events = "arrayExists(one -> startsWith(one, 'gen_ai.evaluation.'), Events.Name)"
            return f"{events} OR {self._any_name(('evaluation', 'annotation'))}"
        return self._mentions(self._bind("String", condition.text))

    def _has(self, name: str) -> str:
        if self._schema.typed:
            return f"has(JSONAllPaths(SpanAttributes), '{name}')"
        return f"mapContains(SpanAttributes, '{name}')"

    def _any_name(self, parts: tuple[str, ...]) -> str:
        names = "JSONAllPaths(SpanAttributes)" if self._schema.typed else "mapKeys(SpanAttributes)"
        found = " OR ".join(f"position(one, '{part}') > 0" for part in parts)
        return f"arrayExists(one -> {found}, {names})"

    def _mentions(self, text: str) -> str:
        def found(value: str) -> str:
            return f"positionCaseInsensitiveUTF8({value}, {text}) > 0"

        places = [found(name) for name in ("SpanName", "ServiceName", "ScopeName", "StatusMessage", "TraceId")]
        if self._schema.typed:
            places += [found(f"toString({name})") for name in ("SpanAttributes", "ResourceAttributes")]
            places.append(f"arrayExists(one -> {found('toString(one)')}, Events.Attributes)")
        else:
            places += [
                f"arrayExists(one -> {found('one')}, mapValues({name}))"
                for name in ("SpanAttributes", "ResourceAttributes")
            ]
            places.append(
                f"arrayExists(each -> arrayExists(one -> {found('one')}, mapValues(each)), Events.Attributes)"
            )
        return " OR ".join(places)

    def _bind(self, kind: str, value: Any) -> str:
        name = f"value{len(self._values)}"
        self._values[name] = value
        return f"{{{name}:{kind}}}"
