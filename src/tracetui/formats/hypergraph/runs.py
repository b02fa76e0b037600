"""What a hypergraph database says about its runs as a whole: headers, causes, lineage."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, Final

import msgspec
import orjson

from tracetui.formats.hypergraph.rows import (
    ERROR_HEAD,
    INPUTS_HEAD,
    RunRow,
    Schema,
    has_steps,
    json_of,
    many,
    runs_by_id,
    text_id,
    timestamp,
)
from tracetui.formats.scalars import number, text
from tracetui.model import PREVIEW, FirstError, Header, Operation, Status, StatusSource, status_of
from tracetui.model.status import WORDS

_ROUTES: Final = ("RouteNode", "IfElseNode", "GateNode")
_GRAPH: Final = "GraphNode"
DEEPEST_CAUSE: Final = 50
"""Levels of nested runs through which the cause of a failure is followed."""
_SAFE_ERROR: Final = re.compile(r"([A-Za-z_][\w.]*) \[HG_[A-Z_]+\]: ")
"""How schema 6 writes an error: type, diagnostic code, and a text without values."""


def header_of(
    run: RunRow, error: FirstError | None, items: Sequence[RunRow], decision: Any = None, writer: str | None = None
) -> Header:
    """The header of a run in a database that `writer` says the schema of.

    `items` are the runs that it mapped over, `decision` is where its last route went (the list stage leaves that out).
    """
    word = text(run.status)
    status = None if word is None else status_of(word)
    started, zoned = timestamp(run.created_at)
    return Header(
        id=run.id,
        name=text(run.graph_name) or run.id,
        status=None if status is Status.RUNNING else status,
        status_word=word,
        status_source=None if status is None or status is Status.RUNNING else StatusSource.EXPLICIT,
        ended=status is not Status.RUNNING and (word is not None or run.completed_at is not None),
        started_at=started,
        time_zone="UTC" if zoned else None,
        duration_ms=duration_of(run),
        tells_calls=False,
        replay_of=text(run.retry_of) or text(run.forked_from),
        relation="retry" if text(run.retry_of) else "fork" if text(run.forked_from) else None,
        parent=text(run.parent),
        error=error,
        prompt=prompt_of(run.inputs),
        outcome=outcome_of(items, None if status is Status.ERROR else decision),
        label=label_of(run),
        writer=writer,
    )


def failed(run: RunRow) -> bool:
    """True if the run's own word says that it failed."""
    word = text(run.status)
    return word is not None and status_of(word) is Status.ERROR


def is_active(run: RunRow) -> bool:
    """True if the run's own word says that it is going on."""
    word = text(run.status)
    return word is not None and status_of(word) is Status.RUNNING


def duration_of(run: RunRow) -> float | None:
    """Milliseconds that a run took: as recorded (schema 2 on), else from its two times."""
    recorded = number(run.duration_ms)
    if recorded is not None:
        return recorded
    (start, _), (end, _) = timestamp(run.created_at), timestamp(run.completed_at)
    return None if start is None or end is None else max(0.0, end - start) * 1000


def item_number(run: RunRow) -> int | None:
    """Which item of a map a run is: its id is then ``<parent>/<i>``."""
    head, slash, last = run.id.rpartition("/")
    return int(last) if slash and head == run.parent and last.isascii() and last.isdigit() and len(last) < 10 else None


def label_of(run: RunRow) -> str | None:
    """``[item 12]`` for an item of a map, None for any other run."""
    item = item_number(run)
    return None if item is None else f"[item {item}]"


def outcome_of(items: Sequence[RunRow], decision: Any) -> str:
    """``7 of 200 failed`` for a map, ``→ account_support`` for a run that routed."""
    if items:
        bad = sum(map(failed, items))
        return f"{bad} of {len(items)} failed" if bad else f"{len(items)} items"
    return "" if decision is None else arrow(decision)


def arrow(decision: Any) -> str:
    """Where a route went, as ``→ account_support``; `decision` is the column's JSON."""
    value = json_of(decision)
    names = value if isinstance(value, list) else [value]
    return ("→ " + ", ".join(name if isinstance(name, str) else str(name) for name in names))[:PREVIEW]


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


def error_type(message: str) -> str | None:
    """The exception's type, where the error is in the form that schema 6 writes."""
    match = _SAFE_ERROR.match(message)
    return match[1] if match else None


def operation_of(node_type: Any, decision: Any, child: Any) -> Operation:
    """What kind of work a step is, by those columns of its row."""
    if node_type in _ROUTES or decision is not None:
        return Operation.ROUTE
    if node_type == _GRAPH or text(child) is not None:
        return Operation.INVOKE_WORKFLOW
    return Operation.NODE


def failing(schema: Schema) -> str:
    """The SQL condition under which a step failed; the same rule as `status_of_step` of the spans."""
    bad = ", ".join(f"'{word}'" for word, status in WORDS.items() if status is Status.ERROR)
    known = ", ".join(f"'{word}'" for word, status in WORDS.items() if status is not Status.UNKNOWN)
    word = f"replace(replace(lower(trim({schema.step('status')})), ' ', '_'), '-', '_')"
    return f"({word} IN ({bad}) OR ({schema.step('error')} > '' AND ifnull({word}, '') NOT IN ({known})))"


def step_counts(connection: Connection, schema: Schema, run_id: str, last: int | None = None) -> tuple[int, int]:
    """(Steps of a run up to superstep `last`, how many of them failed)."""
    upto = "" if last is None else f" AND {schema.step('superstep')} <= {int(last)}"
    sql = (
        f"SELECT {schema.step('status')}, count(*), count(nullif({schema.step('error')}, '')) FROM steps"
        f" WHERE {schema.step('run')} = ? AND {schema.public}{upto} GROUP BY 1"
    )
    steps = bad = 0
    for word, count, with_error in connection.execute(sql, (run_id,)).fetchall():
        steps += count
        status = status_of(word) if isinstance(word, str) else Status.UNKNOWN
        bad += count if status is Status.ERROR else with_error if status is Status.UNKNOWN else 0
    return steps, bad


def first_errors(connection: Connection, schema: Schema, runs: Iterable[RunRow]) -> dict[str, FirstError]:
    """The failing step of each failed run: followed into the nested run or map item in which it really failed.

    Schema 6 leaves the text out of a step's error, so type and text are those of the step's last attempt if that has
    a text. The step's span keeps the error of its row, as each attempt below it does.
    """
    found: dict[str, FirstError] = {}
    places: dict[str, tuple[str, ...]] = {run.id: (run.id,) for run in runs if failed(run)}
    for _ in range(DEEPEST_CAUSE):
        if not places or not has_steps(schema):
            break
        here = {path[-1] for path in places.values()}
        steps = _first_failed_steps(connection, schema, here)
        items = _first_failed_children(connection, schema, here - steps.keys())
        deeper: dict[str, tuple[str, ...]] = {}
        for run_id, path in places.items():
            step = steps.get(path[-1])
            if step is not None:
                found[run_id] = step[0]
            below = step[1] if step is not None else items.get(path[-1])
            if below is not None and below not in path:
                deeper[run_id] = (*path, below)
        places = deeper
    return found


def _first_failed_steps(
    connection: Connection, schema: Schema, runs: Iterable[str]
) -> dict[str, tuple[FirstError, str | None]]:
    """By run: its first failed step, and the nested run that this step started."""
    found: dict[str, tuple[FirstError, str | None]] = {}
    tried: dict[str, Any] = {}
    sql = (
        f"SELECT {schema.step('run')}, {schema.step('superstep')}, {schema.step('node_name')}, rowid,"
        f" substr({schema.step('error')}, 1, {ERROR_HEAD}), {schema.step('child')},"
        f" {schema.step('node_type')}, {schema.step('decision')}, {schema.step('series')} FROM steps"
        f" WHERE {schema.step('run')} IN ({{keys}}) AND {failing(schema)} AND {schema.public}"
        f" ORDER BY {schema.step('index')}, rowid"
    )
    for run, superstep, name, rowid, error, child, kind, decision, series in many(connection, sql, runs):
        if text_id(run) in found:
            continue
        message = text(error) or ""
        span = schema.span_id(run, superstep, name, rowid)
        operation = operation_of(kind, decision, child)
        error_of = FirstError(message, error_type(message), span, text(name), operation)
        found[text_id(run)] = error_of, text(child)
        if series is not None:
            tried[text_id(run)] = series
    causes = _last_attempts(connection, schema, tried.values())
    for run_id, series in tried.items():
        error_of, below = found[run_id]
        type_, cause = causes.get(series, (None, None))
        if cause is not None:
            found[run_id] = msgspec.structs.replace(error_of, message=cause, type=type_ or error_of.type), below
    return found


def _last_attempts(
    connection: Connection, schema: Schema, series: Iterable[Any]
) -> dict[Any, tuple[str | None, str | None]]:
    """By series: type and text of the error of its last attempt, None where it has none."""
    columns = schema.columns.get("attempt_records", ())
    if not {"series_id", "attempt_number", "error_type", "error_message"} <= set(columns):
        return {}
    sql = (
        f"SELECT series_id, error_type, substr(error_message, 1, {ERROR_HEAD}) FROM attempt_records"
        " WHERE series_id IN ({keys}) ORDER BY series_id, attempt_number, rowid"
    )
    return {name: (text(kind), text(message)) for name, kind, message in many(connection, sql, series)}


def _first_failed_children(connection: Connection, schema: Schema, parents: Iterable[str]) -> dict[str, str]:
    """By run: the first failed one of the runs that name it as their parent."""
    found: dict[str, str] = {}
    for run in children_of(connection, schema, parents):
        if failed(run):
            found.setdefault(text_id(run.parent), run.id)
    return found


def children_of(connection: Connection, schema: Schema, parents: Iterable[str]) -> list[RunRow]:
    """The runs that name one of `parents` as their parent, items of a map in their order."""
    if "parent" not in schema.run_names:
        return []
    sql = schema.run_select + f"WHERE {schema.run('parent')} IN ({{keys}})"
    rows = [RunRow(row[0], text_id(row[1]), *row[2:]) for row in many(connection, sql, parents) if row[1] is not None]
    return sorted(rows, key=lambda run: (number_or_end(item_number(run)), run.rowid))


def number_or_end(item: int | None) -> int:
    """A sort key: items by their number, all else after them."""
    return 1 << 40 if item is None else item


Ancestor = tuple[RunRow, int | None]
"""A run whose steps are inherited, and the last superstep that is (None: all)."""


def ancestors_of(connection: Connection, schema: Schema, run: RunRow) -> tuple[list[Ancestor], str | None]:
    """The runs from which a fork or retry inherited steps, oldest first, and the id of the one that is missing."""
    found: list[Ancestor] = []
    seen = {run.id}
    bound: int | None = None
    while (source := text(run.forked_from)) is not None and source not in seen:
        seen.add(source)
        here = run.fork_superstep if isinstance(run.fork_superstep, int) else None
        bound = here if bound is None else bound if here is None else min(bound, here)
        ancestor = runs_by_id(connection, schema, [source]).get(source)
        if ancestor is None:
            return found[::-1], source
        found.append((ancestor, bound))
        run = ancestor
    return found[::-1], None


def items_by_parent(runs: Iterable[RunRow]) -> dict[str, list[RunRow]]:
    """The items of each run that is a map."""
    found: dict[str, list[RunRow]] = {}
    for run in runs:
        if item_number(run) is not None:
            found.setdefault(run.parent, []).append(run)
    return found


def last_routes(connection: Connection, schema: Schema, run_id: str | None = None) -> dict[str, Any]:
    """By run (all, or one): the decision of its last step that made one."""
    if not has_steps(schema) or "decision" not in schema.step_names:
        return {}
    one = run_id is not None
    where = f" AND {schema.step('run')} = ?" if one else ""
    order = (
        f" ORDER BY {schema.step('index')} DESC, rowid DESC LIMIT 1"
        if one
        else f" ORDER BY {schema.step('index')}, rowid"
    )
    sql = (
        f"SELECT {schema.step('run')}, {schema.step('decision')} FROM steps"
        f" WHERE {schema.step('decision')} IS NOT NULL AND {schema.public}{where}{order}"
    )
    rows = connection.execute(sql, (run_id,) if one else ()).fetchall()
    return {text_id(run): decision for run, decision in rows}


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value[:PREVIEW]
    try:
        return orjson.dumps(value).decode()[:PREVIEW]
    except (orjson.JSONEncodeError, TypeError):
        return str(value)[:PREVIEW]


def _unescaped(body: str) -> str:
    try:
        found = orjson.loads(f'"{body}"')
    except orjson.JSONDecodeError:
        return body
    return found if isinstance(found, str) else body
