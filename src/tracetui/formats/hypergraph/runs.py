"""Runs of a hypergraph database: headers, causes of failures, counts, and the spans of single rows."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from tracetui.formats.bodies import as_json
from tracetui.formats.hypergraph.rows import (
    ERROR_HEAD,
    INPUTS_HEAD,
    Database,
    Epoch,
    Row,
    RunRow,
    StepRow,
    elapsed,
    json_of,
    name_of,
    sortable,
    standing,
    text_id,
)
from tracetui.formats.scalars import integer, mapping, moment, number, text, zoned
from tracetui.formats.sqlite import many
from tracetui.model import INHERITED, PREVIEW, Error, FirstError, Header, Operation, Span, Status, StatusSource
from tracetui.model.span import STATUS_BY_WORD

DEEPEST_CAUSE: Final = 50
"""Levels of nested runs through which the cause of a failure is followed."""
_SAFE_ERROR: Final = re.compile(r"([A-Za-z_][\w.]*) \[HG_[A-Z_]+\]: ")
"""How schema 6 writes an error: type, diagnostic code, and a text without values."""
_WELL: Final = ", ".join(
    f"'{word}'" for word, status in STATUS_BY_WORD.items() if status not in (Status.ERROR, Status.UNKNOWN)
)

# ---- headers


def header_of(
    database: Database,
    run: RunRow,
    error: FirstError | None = None,
    items: Sequence[RunRow] = (),
    route: Route | None = None,
) -> Header:
    """The header of a run.

    `items` are the runs that it mapped over, `route` is its last one (the list stage leaves that out).
    """
    word = text(run.status)
    status = None if word is None else run.standing
    is_recorded = status is not None and status is not Status.RUNNING
    is_paused = _is_paused(database, run)
    started, zone = zoned(run.created_at)
    return Header(
        id=run.id,
        name=text(run.graph_name) or run.id,
        status=Status.PAUSED if is_paused else status if is_recorded else None,
        status_word=word,
        status_source=StatusSource.DERIVED if is_paused else StatusSource.EXPLICIT if is_recorded else None,
        ended=status is not Status.RUNNING and (word is not None or run.completed_at is not None),
        started_at=started,
        time_zone="UTC" if started is None else zone,
        duration_ms=run.took,
        tells_calls=False,
        replay_of=text(run.retry_of) or text(run.forked_from),
        relation="retry" if text(run.retry_of) else "fork" if text(run.forked_from) else None,
        parent=text(run.parent),
        error=error,
        prompt=prompt_of(run.inputs),
        result=_result(items, None if route is None or status is Status.ERROR else route.decision),
        label=run.label,
        writer=database.version,
    )


def _result(items: Sequence[RunRow], decision: Any) -> str:
    """``7 of 200 failed`` for a map, ``→ account_support`` for a run that routed."""
    if items:
        return items_failed(len(items), sum(item.failed for item in items))
    return "" if decision is None else arrow(json_of(decision))


_END_NAME: Final = "END"
_ENDS: Final = ("END", "__hg_end__", "__end__")
"""The end of the graph as a decision: in a database, and as the sentinel of a dumped RunLog."""


def items_failed(count: int, bad: int) -> str:
    """How the items of a map went."""
    return f"{bad} of {count} failed" if bad else f"{count} items"


def arrow(decision: Any) -> str:
    """Where a route went, as ``→ account_support``."""
    names = decision if isinstance(decision, list) else [decision]
    return ("→ " + ", ".join(_target(name) for name in names))[:PREVIEW]


def _target(name: Any) -> str:
    """The name of a node that a route went to; both sources write the end in their own way."""
    stated = mapping(name)
    name = stated.get("name") or stated.get("node_name") or stated.get("target") or name
    return _END_NAME if name in _ENDS else name if isinstance(name, str) else str(name)


def error_type(message: str) -> str | None:
    """The exception's type, where the error is in the form that schema 6 writes."""
    match = _SAFE_ERROR.match(message)
    return match[1] if match else None


def prompt_of(inputs: Any) -> str:
    """A short text of a run's inputs: that of the only one, else ``name: value`` of each; `inputs` may be cut."""
    if not isinstance(inputs, bytes | str):
        return ""
    head = inputs.decode("utf-8", "replace") if isinstance(inputs, bytes) else inputs
    try:
        value = orjson.loads(head)
    except orjson.JSONDecodeError:
        cut = re.match(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*"((?:[^"\\]|\\.)*)', head)
        value = {"": _unescaped(cut[1])} if cut and len(head) >= INPUTS_HEAD - 8 else None
    if not isinstance(value, dict):
        return ""
    if len(value) == 1:
        (only,) = value.values()
        return _short(only)
    return "; ".join(f"{name}: {_short(item)}" for name, item in value.items())[:PREVIEW]


def _short(value: Any) -> str:
    return value[:PREVIEW] if isinstance(value, str) else as_json(value)


def _unescaped(body: str) -> str:
    try:
        return str(orjson.loads(f'"{body}"'))
    except orjson.JSONDecodeError:
        return body


_PAUSED_WORDS: Final = tuple(word for word, status in STATUS_BY_WORD.items() if status is Status.PAUSED)


def _is_paused(database: Database, run: RunRow) -> bool:
    """Whether a step of the last superstep of a running run is paused: it waits for an answer to go on."""
    step = database.step
    if not database.has_steps or run.standing is not Status.RUNNING or step("status") == "NULL":
        return False
    marks = ", ".join("?" * len(_PAUSED_WORDS))
    of_run = f"FROM steps WHERE {step('run')} = ?"
    sql = (
        f"SELECT 1 {of_run} AND lower({step('status')}) IN ({marks}) "
        f"AND {step('superstep')} = (SELECT max({step('superstep')}) {of_run}) LIMIT 1"
    )
    return database.connection.execute(sql, (run.id, *_PAUSED_WORDS, run.id)).fetchone() is not None


class Route(NamedTuple):
    """The decision of a step, and where the step is."""

    order: tuple[int, Any, int]
    """By index, then by row."""
    decision: Any


def last_routes(database: Database, run_id: str | None = None, first: int = 0) -> dict[str, Route]:
    """By run (all, or one): the decision of its last step that made one, among the rows from `first` on."""
    if not database.has_steps or database.step("decision") == "NULL":
        return {}
    step = database.step
    of_run = "" if run_id is None else f" AND {step('run')} = ?"
    if first:
        of_run = f" AND +{step('run')} = ? AND rowid >= {first}"
    sql = (
        f"SELECT {step('run')}, {step('index')}, rowid, {step('decision')} FROM steps"
        f" WHERE {step('decision')} IS NOT NULL AND {database.public}{of_run} ORDER BY {step('index')}, rowid"
    )
    rows = database.connection.execute(sql, () if run_id is None else (run_id,)).fetchall()
    return {text_id(run): Route((*sortable(index), row), decision) for run, index, row, decision in rows}


def latest_route(database: Database, run_id: str, before: Route | None, first: int) -> Route | None:
    """The last route of a run whose last one was `before`; only rows from `first` on have changed since."""
    latest = last_routes(database, run_id, first).get(run_id)
    if before is None or (latest is not None and latest.order >= before.order):
        return latest
    return before if before.order[-1] < first else last_routes(database, run_id).get(run_id)


# ---- causes


def first_errors(database: Database, runs: Iterable[RunRow]) -> dict[str, FirstError]:
    """The failing step of each failed run: followed into the nested run or map item in which it really failed.

    Schema 6 leaves the text out of a step's error, so type and text are those of the step's last attempt if that has
    a text. The step's span keeps the error of its row, as each attempt below it does.
    """
    errors: dict[str, FirstError] = {}
    places: dict[str, tuple[str, ...]] = {run.id: (run.id,) for run in runs if run.failed}
    for _ in range(DEEPEST_CAUSE):
        if not places or not database.has_steps:
            break
        here = {path[-1] for path in places.values()}
        steps = _first_failed_steps(database, here)
        items: dict[str, str] = {}
        for run in database.children_of(here - steps.keys()):
            if run.failed:
                items.setdefault(text_id(run.parent), run.id)
        deeper: dict[str, tuple[str, ...]] = {}
        for run_id, path in places.items():
            step = steps.get(path[-1])
            if step is not None:
                errors[run_id] = step[0]
            below = step[1] if step is not None else items.get(path[-1])
            if below is not None and below not in path:
                deeper[run_id] = (*path, below)
        places = deeper
    return errors


def _first_failed_steps(database: Database, runs: Iterable[str]) -> dict[str, tuple[FirstError, str | None]]:
    """By run: its first failed step, and the nested run that this step started."""
    rows: dict[str, StepRow] = {}
    step = database.step
    well = f"replace(replace(lower(trim({step('status')})), ' ', '_'), '-', '_') IN ({_WELL})"
    sql = (
        f"SELECT {database.step_columns} FROM steps WHERE {step('run')} IN ({{keys}}) AND {database.public}"
        f" AND ({well}) IS NOT 1 ORDER BY {step('index')}, rowid"  # the others are looked at
    )
    for row in (StepRow(*values) for values in many(database.connection, sql, runs)):
        if row.outcome[0] is Status.ERROR:
            rows.setdefault(text_id(row.run), row)
    causes = {
        record["series_id"]: (text(record.get("error_message")), text(record.get("error_type")))
        for record in database.attempts({row.series for row in rows.values() if row.series is not None})
    }
    errors: dict[str, tuple[FirstError, str | None]] = {}
    for run_id, row in rows.items():
        message = text(row.error) or ""
        kind = error_type(message)
        cause, cause_type = causes.get(row.series, (None, None))
        if cause is not None:
            message, kind = cause[:ERROR_HEAD], cause_type or kind
        span = database.span_id(row.run, row.superstep, row.node_name, row.rowid)
        errors[run_id] = FirstError(message, kind, span, text(row.node_name), row.operation), text(row.child)
    return errors


# ---- counts


class Steps(msgspec.Struct):
    """Sums over the rows of a run."""

    steps: int = 0
    failed: int = 0
    retried: int = 0
    nodes: set[str] = set()
    """Names of their nodes."""


def steps_of(database: Database, run_id: str | None = None, last: int | None = None) -> defaultdict[str, Steps]:
    """Sums over the steps of all runs, or of one up to superstep `last`, by run."""
    step = database.step
    where = "" if run_id is None else f" AND {step('run')} = ?"
    where += "" if last is None else f" AND {step('superstep')} <= {int(last)}"
    sql = (
        f"SELECT {step('run')}, {step('node_name')}, {step('status')}, count(*),"
        f" total(typeof({step('error')}) = 'text' AND {step('error')} > ''), count({step('series')})"
        f" FROM steps WHERE {database.public}{where} GROUP BY 1, 2, 3"
    )
    sums = defaultdict[str, Steps](Steps)
    outcomes: dict[Any, tuple[Status, Status]] = {}
    for run, node, word, count, errors, series in database.connection.execute(sql, () if run_id is None else (run_id,)):
        if word not in outcomes:
            rows = StepRow(0, status=word), StepRow(0, status=word, error="an error")
            outcomes[word] = rows[0].outcome[0], rows[1].outcome[0]
        without, with_error = outcomes[word]
        bad = int((count - errors) * (without is Status.ERROR) + errors * (with_error is Status.ERROR))
        of_run = sums[text_id(run)]
        of_run.steps, of_run.failed, of_run.retried = of_run.steps + count, of_run.failed + bad, of_run.retried + series
        of_run.nodes.add(name_of(node))
    return sums


# ---- the span of a row: a step, a run, an attempt, a node that runs right now

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
    message, operation = text(row.error) or "", row.operation
    facts = (
        "" if row.decision is None else arrow(json_of(row.decision)),
        "cached" if row.cached else "",
        "paused" if status is _PAUSED else "",
        "partial" if row.partial else "",
        INHERITED if inherited else "",
    )
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
        error=Error(message, error_type(message)) if status is _ERROR else None,
        note=" · ".join(filter(None, facts)),
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
        started_at=moment(record.get("started_at")),
        duration_ms=elapsed(record.get("started_at"), record.get("completed_at")),
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
