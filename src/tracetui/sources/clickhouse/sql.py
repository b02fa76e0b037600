"""Statements. Values are bound by the server; names come from the address, in quotes."""

# ruff: noqa: S608 — only names of tables are part of a statement

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from tracetui.sources.base import (
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
from tracetui.sources.clickhouse import Database

COLUMNS: Final = ("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "SpanAttributes", "Duration")
"""Columns without which a table is none of the exporter's."""
_START: Final = "toUnixTimestamp64Nano(Timestamp)"
_END: Final = f"{_START} + toInt64(Duration)"
_FAILED: Final = "StatusCode IN ('Error', 'STATUS_CODE_ERROR')"
_ROOT: Final = "replaceAll(ParentSpanId, '0', '') = ''"
_FAILED_OR_WRONG: Final = AnyOne((MayFail(), MayBeScored()))
_CONVENTIONS: Final = [
    "ai.operationId",
    "openinference.span.kind",
    "traceloop.span.kind",
    "llm.request.type",
    "span.type",
    "logfire.span_type",
    "logfire.msg_template",
    "sdk_span_type",
]
"""Attributes of other conventions than OpenTelemetry's, which classify a span."""
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


def newest(schema: Schema, limit: int, window: int, condition: Condition = EVERYTHING) -> Statement:
    """The newest traces by their last span: id, spans, first start (0: unknown), last start and end in nanoseconds.

    `window`: only spans that began so many seconds before the last span of all, or up to twice as many; 0: all.
    """
    values: dict[str, Any] = {"limit": limit}
    each = isinstance(condition, EachError)
    if isinstance(condition, EachError):
        values["most"], condition = condition.most, _FAILED_OR_WRONG
    having = _Having(schema, values).text(condition)
    where = ["TraceId != ''"]
    if window:
        values["window"] = window
        last = f"toUnixTimestamp((SELECT max(Timestamp) FROM {schema.table}))"
        begin = f"(intDiv({last}, {{window:Int64}}) - 1) * {{window:Int64}}"
        where.append(_not_before(begin))  # a multiple of the window, so that the numbers of spans rarely change
    if (bound := max([0.0, *_bounds(condition)])) > 0:
        values["bound"] = int(bound)
        where.append(_not_before("{bound:Int64}"))
    if not each:
        return Statement(_traces(schema, where, having, "LIMIT {limit:UInt64}"), values)
    traces = _traces(
        schema, where, having, "", f"{_error(schema)} AS error", f"countIf({_ROOT} AND {_FAILED}) > 0 AS failed"
    )
    return Statement(
        f"SELECT *, countIf(failed) OVER (PARTITION BY error) AS alike FROM ({traces}) "
        "ORDER BY last DESC, TraceId LIMIT {most:UInt64} BY error, failed LIMIT {limit:UInt64}",
        values,
    )


def _error(schema: Schema) -> str:
    """The error of a trace without numbers and ids: that of the failed span that ended first, with its tool.

    A trace without a failed span, such as a wrong answer, is like no other.
    """
    tool = _Attributes(typed=schema.typed).value("gen_ai.tool.name")
    first = f"argMinIf(concat(SpanName, ' ', {tool}, ': ', StatusMessage), ({_END}, SpanId), {_FAILED})"
    error = f"replaceRegexpAll({first}, '[0-9a-fA-F-]{{8,}}|[0-9]+', '#')"
    return f"if(countIf({_FAILED}) = 0, TraceId, {error})"


def changed(schema: Schema, limit: int, bound: int, ended: int, condition: Condition = EVERYTHING) -> Statement:
    """The traces of which a span ended since `ended`, as `newest` has them; `bound` is before all their spans.

    Both in nanoseconds. A span is written when it has ended, so its end is the time of its arrival; its start doesn't.
    """
    values: dict[str, Any] = {"limit": limit, "bound": bound // 10**9, "ended": ended}
    having = _Having(schema, values).text(condition)
    bounded = _not_before("{bound:Int64}")
    recent = (
        f"SELECT TraceId FROM {schema.table} WHERE {bounded} AND {_END} >= {{ended:Int64}} AND TraceId != '' "
        "GROUP BY TraceId ORDER BY max(Timestamp) DESC LIMIT {limit:UInt64}"
    )
    return Statement(
        _traces(schema, [bounded, f"TraceId IN ({recent})"], having, "LIMIT {limit:UInt64}"),
        values,
    )


def _traces(schema: Schema, where: Sequence[str], having: str, end: str, *more: str) -> str:
    fields = (
        "TraceId",
        "count() AS spans",
        f"minIf({_START}, {_START} > 0) AS first",
        f"max({_START}) AS last",
        f"max({_END}) AS end",
        *more,
    )
    return (
        f"SELECT {', '.join(fields)} FROM {schema.table} WHERE {' AND '.join(where)} GROUP BY TraceId"
        f"{f' HAVING {having}' if having else ''} ORDER BY max(Timestamp) DESC, TraceId {end}"
    )


def _not_before(seconds: str) -> str:
    """A condition on the start of a span, which one without a start meets."""
    return f"(Timestamp >= toDateTime64({seconds}, 9, 'UTC') OR Timestamp < toDateTime64(1, 9, 'UTC'))"


def listed(schema: Schema, traces: Sequence[str]) -> Statement:
    """The statement of some traces for the list, as `tracetui.formats.otlp.files` reads it."""
    attributes = _Attributes(typed=schema.typed)
    lookup, begin, end = schema.lookup, "min(Start)", "max(End)"
    if not schema.has_lookup:
        lookup, begin, end = schema.table, "min(Timestamp)", "max(Timestamp)"
    some = "TraceId IN {traces:Array(String)}"
    begin, end = (f"(SELECT {column} FROM {lookup} WHERE {some})" for column in (begin, end))
    where = f"{some} AND Timestamp >= {begin} AND Timestamp <= toDateTime64({end}, 9) + toIntervalSecond(1)"
    return Statement(
        f"SELECT {', '.join(_listed(attributes, typed=schema.typed))} FROM {schema.table} WHERE {where} "
        "GROUP BY TraceId",
        {"traces": [*traces]},
    )


def _listed(attributes: _Attributes, *, typed: bool) -> Iterator[str]:
    """The fields of a trace in the list: counts, its root, and model, tokens and calls if they need no reader.

    They need one if a span follows another convention than OpenTelemetry's, if a call of a model has spans below it, or
    if an agent may have tokens that no call of a model below it has.
    """
    root = _ROOT
    has, value, names = attributes.has, attributes.value, attributes.names
    kind = value("gen_ai.operation.name")
    plain = f"NOT {has('ai.operationId')} AND NOT {has('logfire.span_type')}"
    call = f"({kind} IN ('chat', 'text_completion', 'generate_content') AND {plain})"
    agent = f"({kind} IN ('invoke_agent', 'invoke_workflow') AND {plain})"
    other = f"({kind} IN ('execute_tool', 'create_agent', 'plan', 'retrieval') AND {plain})"
    leaves = (  # no span is below a call
        f"uniqExactIf(SpanId, {call}) + uniqExact(ParentSpanId) = "
        f"uniqExactArray(if({call}, [SpanId, ParentSpanId], [ParentSpanId]))"
    )
    tokens = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
    used = f"arrayFilter(item -> match(item, '(?i)token|usage|cost'), {names})"
    counted_calls, counted_agents = (f"countIf({kind} AND notEmpty({used}))" for kind in (call, agent))
    covered = (  # the only agent with tokens is the root, and a call of a model below it has some
        f"(countIf({root}) = 1 AND countIf({root} AND {agent} AND notEmpty({used})) = {counted_agents} "
        f"AND uniqExactArray([SpanId, ParentSpanId]) = uniqExact(SpanId) + 1 AND {counted_calls} > 0)"
    )
    models = "gen_ai.response.model", "gen_ai.request.model"
    modeled = f"arrayFilter(item -> match(item, '(?i)model'), {names})"
    yield "TraceId"
    yield "count() AS Spans"
    yield "uniqExact(SpanId) AS Ids"
    yield f"toString(minIf({_START}, {_START} > 0)) AS FirstNs"
    yield f"countIf({_may_fail(attributes)}) AS MayFail"
    yield f"countIf({_may_be_scored(attributes)}) AS MayBeScored"
    yield f"countIf({root}) AS Roots"
    begun, timed = f"minIf({_START}, {root})", f"NOT {root} AND {_START} > 0"  # a start of 0 is unknown
    before = f"{begun} > 0 AND (countIf({timed}) = 0 OR {begun} < minIf({_START}, {timed}))"
    yield f"countIf(NOT {root}) = 0 OR ({before}) AS RootFirst"
    yield f"anyIf(tuple({', '.join(column.partition(' AS ')[0] for column in _row(typed=typed))}), {root}) AS Root"
    yield (
        f"countIf(NOT {call} AND NOT {agent} AND notEmpty({used})) "
        f"+ countIf({call} AND (notEmpty(arrayFilter(one -> one NOT IN {tokens}, {used})) "
        + "".join(f"OR ({has(name)} AND NOT match({value(name)}, '^[0-9]{{1,15}}$')) " for name in tokens)
        + f")) = 0 AND {leaves} AND ({counted_agents} = 0 OR {covered}) AS PlainTokens"
    )
    for name, field in zip(tokens, ("Input", "Output"), strict=True):
        counted = f"{call} AND {has(name)}"
        yield f"if(countIf({counted}) = 0, NULL, sumIf(toUInt64OrZero({value(name)}), {counted})) AS {field}"
    yield (
        f"countIf(notEmpty({modeled}) AND NOT {call} AND NOT {agent} AND NOT {other}) "
        f"+ countIf({call} AND notEmpty(arrayFilter(one -> one NOT IN {models}, {modeled}))) = 0 AS PlainModels"
    )
    yield f"PlainModels AND countIf(hasAny({names}, {_CONVENTIONS})) = 0 AND {leaves} AS PlainCalls"
    yield f"countIf({call}) AS Calls"
    model = f"if({value(models[0])} != '', {value(models[0])}, {value(models[1])})"
    yield f"argMinIf({model}, ({_START} = 0, Timestamp, SpanId), {call} AND {model} != '') AS Model"


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


class _Attributes:
    """Expressions on the attributes of a span, in both variants of the schema."""

    def __init__(self, *, typed: bool) -> None:
        self._typed = typed
        self.names = "JSONAllPaths(SpanAttributes)" if typed else "mapKeys(SpanAttributes)"

    def has(self, name: str) -> str:
        """Whether there is one of that name."""
        return f"has({self.names}, '{name}')" if self._typed else f"mapContains(SpanAttributes, '{name}')"

    def value(self, name: str) -> str:
        """Its value as text; empty without one."""
        if self._typed:
            return f"ifNull(toString(getSubcolumn(SpanAttributes, '{name}')), '')"
        return f"SpanAttributes['{name}']"


def _may_fail(attributes: _Attributes) -> str:
    reasons = (
        "ai.response.finishReason",
        "gen_ai.response.finish_reasons",
        "llm.finish_reason",
        "gen_ai.output.messages",
    )
    error_texts = " OR ".join(
        f"positionCaseInsensitive({attributes.value(name)}, 'error') > 0"
        for name in (*reasons, "langfuse.observation.level", "langfuse.observation.output")
    )
    return (
        f"{_FAILED} OR has(Events.Name, 'exception') OR has(Events.Name, 'gen_ai.choice') "
        f"OR {attributes.has('error.type')} OR {error_texts}"
    )


def _may_be_scored(attributes: _Attributes) -> str:
    events = "arrayExists(item -> startsWith(item, 'gen_ai.evaluation.'), Events.Name)"
    parts = " OR ".join(f"position(item, '{part}') > 0" for part in ("evaluation", "annotation"))
    return f"{events} OR arrayExists(item -> {parts}, {attributes.names})"


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
            start = f"minIf({_START}, {_START} > 0)"
            return f"(countIf({_START} > 0) = 0 OR {start} >= {self._bind('Int64', int(condition.seconds * 1e9))})"
        if isinstance(condition, StartsBefore):
            start = f"minIf({_START}, {_START} > 0)"
            return (
                f"(countIf({_START} > 0) = 0 OR {start} < {self._bind('Int64', int(condition.seconds * 1e9) + 1000)})"
            )
        if isinstance(condition, EachError):
            return self.text(_FAILED_OR_WRONG)
        if isinstance(condition, LastsAtLeast):
            first = f"minIf({_START}, {_START} > 0)"
            return f"max({_END}) - {first} >= {self._bind('Int64', int(condition.milliseconds * 1e6) - 1000)}"
        return f"countIf({self._span(condition)}) > 0"

    def _span(self, condition: MayFail | MayBeScored | Mentions) -> str:
        """A condition on one span."""
        attributes = _Attributes(typed=self._schema.typed)
        if isinstance(condition, MayFail):
            return _may_fail(attributes)
        if isinstance(condition, MayBeScored):
            return _may_be_scored(attributes)
        return self._mentions(self._bind("String", condition.text))

    def _mentions(self, text: str) -> str:
        def contains(value: str) -> str:
            return f"positionCaseInsensitiveUTF8({value}, {text}) > 0"

        places = [contains(name) for name in ("SpanName", "ServiceName", "ScopeName", "StatusMessage", "TraceId")]
        if self._schema.typed:
            places += [contains(f"toString({name})") for name in ("SpanAttributes", "ResourceAttributes")]
            places.append(f"arrayExists(item -> {contains('toString(item)')}, Events.Attributes)")
        else:
            places += [
                f"arrayExists(item -> {contains('item')}, mapValues({name}))"
                for name in ("SpanAttributes", "ResourceAttributes")
            ]
            places.append(
                f"arrayExists(each -> arrayExists(item -> {contains('item')}, mapValues(each)), Events.Attributes)"
            )
        return " OR ".join(places)

    def _bind(self, kind: str, value: Any) -> str:
        name = f"value{len(self._values)}"
        self._values[name] = value
        return f"{{{name}:{kind}}}"
