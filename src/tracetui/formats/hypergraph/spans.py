"""The span of a row of a hypergraph database: a step, a run, an attempt, a node that runs right now."""

from __future__ import annotations

from typing import Final

from tracetui.formats.hypergraph.body import Epoch
from tracetui.formats.hypergraph.rows import Database, Row, RunRow, StepRow, json_of, standing, text_id
from tracetui.formats.hypergraph.runs import arrow, error_type
from tracetui.formats.scalars import integer, moment, number, text
from tracetui.model import INHERITED, Error, Operation, Span, Status, StatusSource

_ERROR, _PAUSED, _RUNNING = Status.ERROR, Status.PAUSED, Status.RUNNING
_NO_DURATION: Final = (_ERROR, _PAUSED, _RUNNING)
_WORKFLOW: Final = Operation.INVOKE_WORKFLOW


def step_span(
    database: Database,
    row: StepRow,
    superstep: int | None,
    parent: str | None,
    at: tuple[str, int, Epoch],
    *,
    inherited: bool,
    owner: str | None,
) -> Span:
    """The span of one step row; a step of a nested run (one with a parent) is no step of the run that is shown."""
    status, word, source = row.outcome
    duration = number(row.duration_ms)
    if duration == 0 and status in _NO_DURATION:
        duration = None  # schema default: such a step has none recorded
    end = moment(row.completed_at)
    start = moment(row.created_at) if end is None else end - (duration or 0.0) / 1000
    error, facts, operation = None, list[str](), row.operation
    if status is _ERROR:
        message = text(row.error) or ""
        error = Error(message, error_type(message))
    if row.decision is not None:
        facts.append(arrow(json_of(row.decision)))
    if row.cached:
        facts.append("cached")
    if status is _PAUSED:
        facts.append("paused")
    if row.partial:
        facts.append("partial")
    if inherited:
        facts.append(INHERITED)
    return Span(
        database.span_id(row.run, row.superstep, row.node_name, row.rowid),
        row.name,
        operation,
        owner=owner,
        nested_graph=operation is _WORKFLOW,
        parent_id=parent,
        step=superstep,
        is_step=parent is None,
        status=status,
        status_word=word,
        status_source=source,
        started_at=start,
        duration_ms=duration,
        error=error,
        note=" · ".join(filter(None, facts)) if facts else "",
        at=at,
    )


def run_span(run: RunRow, ident: str, parent: str | None, owner: str | None) -> Span:
    """The span of a run below another (`owner`) without a step: an item of a map."""
    status, word, source = standing(run.status)
    return Span(
        id=ident,
        name=run.label or text(run.graph_name) or run.id,
        operation=_WORKFLOW,
        owner=owner,
        parent_id=parent,
        step=run.item,
        status=status,
        status_word=word,
        status_source=source,
        started_at=moment(run.created_at),
        duration_ms=run.took,
        at=("run", run.id),
    )


def attempt_span(record: Row, parent: str, superstep: int | None, owner: str | None) -> Span:
    """The span of one attempt of a node that was tried more than once."""
    status, word, source = standing(record.get("status"))
    start, end = moment(record.get("started_at")), moment(record.get("completed_at"))
    message, kind = text(record.get("error_message")), text(record.get("error_type"))
    return Span(
        id=f"{parent}:attempt:{record['rowid']}",
        name=f"attempt {record.get('attempt_number', '?')}",
        owner=owner,
        parent_id=parent,
        step=superstep,
        status=status,
        status_word=word,
        status_source=source,
        started_at=start,
        duration_ms=None if start is None or end is None else max(0.0, end - start) * 1000,
        error=Error(message or kind or "", kind) if status is _ERROR else None,
        at=("attempt", record["rowid"]),
    )


def pending_span(database: Database, rowid: int, row: Row, parent: str | None, owner: str | None) -> Span:
    """The span of a node that runs right now: schema 6 notes each before it is begun."""
    is_graph = row.get("node_type") == "GraphNode"
    return Span(
        id=database.span_id(row["run_id"], row["superstep"], row["node_name"], -rowid),
        name=text(row["node_name"]) or text_id(row["node_name"]),
        operation=_WORKFLOW if is_graph else Operation.NODE,
        owner=owner,
        nested_graph=is_graph,
        parent_id=parent,
        step=integer(row["superstep"]),
        status=_RUNNING,
        status_source=StatusSource.DERIVED,
        started_at=moment(row.get("created_at")),
        note="pending",
        at=("pending", rowid),
    )
