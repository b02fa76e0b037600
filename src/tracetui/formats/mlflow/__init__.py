"""MLflow: traces in the SQLite database of a tracking store.

Facts: databases of mlflow 3.17. ``trace_info`` has a row per trace, ``spans`` one per span that has ended, whose
``content`` is nearly that of OpenTelemetry: values of attributes are JSON in a text, ids are base64. Earlier versions
keep the spans in artifacts, which are files elsewhere.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.bodies import changed, rendered
from tracetui.formats.decode import decode, decode_value
from tracetui.formats.jsonl import Line
from tracetui.formats.otlp.records import RecordRef, decoded, loose_record
from tracetui.formats.otlp.trace import Trace, body_of_record
from tracetui.formats.otlp.vocabulary import preview_of
from tracetui.formats.scalars import LENGTH, MAX_TAGS, mapping, natural, number, score_value, task_key, text, word
from tracetui.formats.sqlite import DatabaseFormat, Loading, Outcome, ReadState, Row, RunTables, many, quoted
from tracetui.model import (
    PREVIEW,
    REASON_LIMIT,
    Body,
    Header,
    Problem,
    RunBody,
    Score,
    Span,
    Status,
    StatusSource,
    Usage,
)
from tracetui.model.run import EVIDENCE_LIMIT, Evidence, Who
from tracetui.model.span import status_of

_TABLES: Final = frozenset({"trace_info", "trace_tags", "trace_request_metadata", "spans"})
_NEEDED: Final = {
    "trace_info": ("request_id", "timestamp_ms", "status"),
    "spans": ("trace_id", "span_id", "content"),
    "trace_tags": ("key", "value", "request_id"),
    "trace_request_metadata": ("key", "value", "request_id"),
}
_ASSESSMENT: Final = ("assessment_id", "trace_id", "name", "assessment_type", "value", "error", "valid", "rationale")
_ID: Final = re.compile(r"tr-[0-9a-f]{32}")
_WHOLE: Final = 1000
"""Characters of a preview from which on it may be cut off."""
_OWN: Final = "mlflow."
"""How the names of MLflow's own tags begin."""
_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class Facts(Struct, frozen=True):
    """What is recorded of a trace beside its spans."""

    info: dict[str, Any]
    """Its row of ``trace_info``."""
    tags: dict[str, Any]
    metadata: dict[str, Any]
    assessments: Sequence[dict[str, Any]]
    experiment: str | None

    @property
    def name(self) -> str:
        """The name of its root, else of its experiment."""
        return (
            text(self.info.get("trace_name")) or text(self.tags.get("mlflow.traceName")) or self.experiment or "trace"
        )

    @property
    def started_at(self) -> float | None:
        """Seconds since the epoch."""
        started = number(self.info.get("timestamp_ms"))
        return None if started is None else started / 1000

    @property
    def usage(self) -> Usage | None:
        """The usage that MLflow counted; its totals leave out what is within another span with a usage."""
        counts, cost = (mapping(decoded(self.metadata.get(f"mlflow.trace.{name}"))) for name in ("tokenUsage", "cost"))
        counts, cost = ({**given, **_there(self.info)} for given in (counts, cost))
        above = natural(counts.get("cache_creation_input_tokens_above_1hr"))
        prompt, completion, total, read, written = (natural(counts.get(name)) for name in _COUNTS)
        return Usage(prompt, completion, total, read, written, None, number(cost.get("total_cost")), above) or None

    @property
    def labels(self) -> tuple[str, ...]:
        """Tags that are not MLflow's own, then the session."""
        own = (f"{key}:{value}"[:LENGTH] for key, value in self.tags.items() if not str(key).startswith(_OWN))
        session = text(self.info.get("session_id")) or text(self.metadata.get("mlflow.trace.session"))
        return (*sorted(own)[:MAX_TAGS], *(() if session is None else (session[:LENGTH],)))

    def header(self, latest: float) -> Header:
        """The header; a trace without an end is over if others began long after it, at `latest` (seconds)."""
        ident, state = self.info["request_id"], word(self.info.get("status")) or ""
        outcome = Outcome(status_of(state), StatusSource.EXPLICIT, state or None)
        if outcome.status is Status.RUNNING:
            outcome = Outcome(word=outcome.word).unless_stale(self.started_at, latest)
        given = text(self.info.get("request_preview")) or text(self.metadata.get("mlflow.traceInputs")) or ""
        return Header(
            id=ident,
            name=self.name[:PREVIEW],
            by_start=True,
            started_at=self.started_at,
            duration_ms=None if outcome.status is None else number(self.info.get("execution_time_ms")),
            usage=self.usage,
            repeats=task_key(self.name, given) if given and len(given) < _WHOLE else None,
            identity=task_key("mlflow", ident) if _ID.fullmatch(ident) else None,
            prompt=preview_of(decoded(given))[:PREVIEW],
            scores=tuple(_scores(self.assessments)),
            tags=self.labels,
            source=(self.experiment or "")[:PREVIEW] or None,
            **outcome.facts,
        )

    def body(self, trace: Trace) -> RunBody:
        """All of it, and what the spans have of the whole."""
        attributes: dict[str, Any] = {"trace_info": _there(self.info), "experiment": self.experiment}
        attributes |= {"tags": _objects(_there(self.tags)), "metadata": _objects(_there(self.metadata))}
        attributes["assessments"] = [_objects(_there(assessment)) for assessment in self.assessments]
        attributes = {name: value for name, value in attributes.items() if value}
        return replace(trace.run_body(), attributes=attributes, raw=rendered(attributes))


class Database(RunTables):
    """The tables. Raises `FormatError` if no trace can be read in them."""

    NEEDED, OTHERS = _NEEDED, ("assessments", "experiments")

    def run_keys(self) -> list[str]:
        return list(self._infos)

    def unlisted(self, path: str) -> Iterator[Problem]:
        has_none = "trace_id NOT IN (SELECT request_id FROM trace_info WHERE request_id IS NOT NULL)"
        if lost := self.count(f"spans WHERE {has_none}"):
            yield Problem(path, "spans", f"{lost} rows belong to no trace")
        elsewhere = "status != 'IN_PROGRESS' AND request_id NOT IN (SELECT trace_id FROM spans)"
        if empty := self.count(f"trace_info WHERE {elsewhere}"):
            yield Problem(path, "trace_info", f"{empty} traces have no spans in the database (artifacts are not read)")

    def header(self, key: str) -> Header:
        return self.facts(key).header(self._latest)

    def loading(self, key: str, path: str) -> Iterator[Loading]:
        ends = self.select("spans", "status", "end_time_unix_nano")
        sql = f"SELECT rowid, span_id, {ends}, length(content) FROM spans WHERE trace_id = ? ORDER BY rowid"
        stamps = {rowid: tuple(stamp) for rowid, *stamp in self.rows(sql, key)}
        yield stamps, partial(self._spans, stamps=stamps, path=path, key=key)

    def run(self, key: str, path: str, *tables: dict[int, Row]) -> ReadState:
        facts, trace, (rows,) = self.facts(key), Trace(path, key), tables
        for rowid, row in rows.items():
            if row.value is not None:
                trace.take_span(row.value, Line(rowid, rowid, b""), None)
        read, header = trace.header(), facts.header(self._latest)
        header = replace(
            header,
            agent=read.agent,
            model=read.model,
            is_part=read.is_part,
            error=read.error,
            scores=(*header.scores, *read.scores),
            size=sum(row.size for row in rows.values()),
            fields=read.fields,
        )
        problems = [row.problem for row in rows.values() if row.problem is not None]
        return ReadState(
            spans=trace.collect(),
            problems=[*problems, *trace.take_conflicts()],
            header=header,
            body=facts.body(trace),
        )

    def body(self, span: Span) -> Body:
        at = span.at
        if not isinstance(at, RecordRef):
            raise changed()
        columns = self.record("SELECT * FROM spans WHERE rowid = ?", at.offset) or {}
        content = _bytes(columns.pop("content", None))
        if crc32(content) != at.check:
            raise changed(f"span {span.id}")
        body = body_of_record(span, _record(content), content)
        return replace(body, attributes=body.attributes | {"spans": _there(columns)})

    def facts(self, key: str) -> Facts:
        """What is recorded of a trace beside its spans. Raises `FormatError` if there is no such trace."""
        info = self._infos.get(key)
        if info is None:
            raise FormatError("the trace is not in the database", f"trace {key}")
        tags, metadata = self._named("trace_tags"), self._named("trace_request_metadata")
        experiment = self._experiments.get(info.get("experiment_id"))
        return Facts(info, tags.get(key, {}), metadata.get(key, {}), self._assessments.get(key, ()), experiment)

    # ---- tables beside the spans, by the id of the trace

    def _all(self, table: str, ident: str) -> list[dict[str, Any]]:
        """The rows of all traces, or of the one that is asked for."""
        where, values = ("1", ()) if self.key is None else (f"{ident} = ?", (self.key,))
        columns = ", ".join(map(quoted, self.columns[table]))
        rows = self.rows(
            f"SELECT {columns} FROM {table} WHERE typeof({ident}) = 'text' AND {where} ORDER BY rowid", *values
        )
        return [dict(zip(self.columns[table], row, strict=False)) for row in rows]

    @cached_property
    def _infos(self) -> dict[str, dict[str, Any]]:
        rows = self._all("trace_info", "request_id")
        rows.sort(key=lambda row: number(row["timestamp_ms"]) or 0)
        return {row["request_id"]: row for row in rows if row["request_id"]}

    @cached_property
    def _latest(self) -> float:
        ((latest,),) = self.rows("SELECT max(timestamp_ms) FROM trace_info")
        return (number(latest) or 0.0) / 1000

    @cached_property
    def _pairs(self) -> dict[str, dict[str, dict[str, Any]]]:
        return {}

    def _named(self, table: str) -> dict[str, dict[str, Any]]:
        """Values by name."""
        if table not in self._pairs:
            by_request = self._pairs[table] = {}
            for row in self._all(table, "request_id"):
                by_request.setdefault(row["request_id"], {})[str(row["key"])] = row["value"]
        return self._pairs[table]

    @cached_property
    def _assessments(self) -> dict[str, list[dict[str, Any]]]:
        by_trace: dict[str, list[dict[str, Any]]] = {}
        if {*_ASSESSMENT}.issubset(self.columns["assessments"]):
            for row in self._all("assessments", "trace_id"):
                by_trace.setdefault(row["trace_id"], []).append(row)
        return by_trace

    @cached_property
    def _experiments(self) -> dict[Any, str]:
        if not {"experiment_id", "name"}.issubset(self.columns["experiments"]):
            return {}
        return {ident: name for ident, name in self.rows("SELECT experiment_id, name FROM experiments") if text(name)}

    # ---- spans

    def _spans(
        self, rowids: Sequence[int], *, stamps: dict[int, tuple[Any, ...]], path: str, key: str
    ) -> Iterator[tuple[int, Row]]:
        sql = "SELECT rowid, span_id, content FROM spans WHERE rowid IN ({keys})"
        for rowid, ident, value in many(self.connection, sql, rowids):
            content, record, problem = _bytes(value), None, None
            try:
                record = loose_record((0, 0, 0), _record(content), {}, {}, crc32(content))
                record.trace = key
            except FormatError as error:
                problem = Problem(path, f"span {ident}"[:PREVIEW], error.reason, len(content))
            yield rowid, Row(stamps[rowid], record, problem, len(content))


def _bytes(value: Any) -> bytes:
    """The value of a column as it is stored."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def _record(content: bytes) -> dict[str, Any]:
    """The span in ``spans.content``, as OpenTelemetry has it. Raises `FormatError`."""
    record = decode(content)[0]
    if not isinstance(record, dict):
        raise FormatError("not a JSON object")
    attributes = record.get("attributes")
    return record | {"attributes": _decoded(attributes)} if isinstance(attributes, dict) else record


def _decoded(values: dict[str, Any]) -> dict[str, Any]:
    """Values that are JSON in a text, decoded; any other text stays."""
    return {name: decode_value(value) if isinstance(value, str) else value for name, value in values.items()}


def _objects(values: dict[str, Any]) -> dict[str, Any]:
    """Values, decoded where they are an object or list as JSON in a text."""
    return {name: decoded(value) for name, value in values.items()}


def _there(row: dict[str, Any]) -> dict[str, Any]:
    """The values of a row; of bytes, which no column of MLflow has, the size."""
    values = ((name, value) for name, value in row.items() if value is not None)
    return {name: f"{len(value)} bytes" if isinstance(value, bytes) else value for name, value in values}


def _scores(assessments: Iterable[dict[str, Any]]) -> Iterator[Score]:
    """Feedback that no later one replaced; expectations are no evaluations. Nothing says which values pass."""
    for row in assessments:
        if row["assessment_type"] != "feedback" or not row["valid"]:
            continue
        name, place = (text(row["name"]) or "feedback")[:PREVIEW], f"assessments {row['assessment_id']}"[:PREVIEW]
        failure = mapping(decoded(row["error"]))
        value = score_value(decode_value(row["value"]) if isinstance(row["value"], str) else None)
        if failure:
            kind = word(failure.get("error_code"))
            why = word(failure.get("error_message")) or kind or "error"
            evidence = Evidence(why[:EVIDENCE_LIMIT], place, Who.GRADER, type=kind and kind[:PREVIEW])
            yield Score.ungraded(name, evidence, value=value, source=place)
            continue
        yield Score(name, value, None, place, "", (text(row["rationale"]) or "")[:REASON_LIMIT])


class MLflow(DatabaseFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "mlflow"
    title = "MLflow trace"

    tables, names = Database, _TABLES
