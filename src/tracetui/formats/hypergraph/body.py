"""What a hypergraph database says about one span or one run in full: values, rebuilt inputs, accumulated state."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any, Final

import orjson

from tracetui.errors import FormatError
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    JSON_COLUMNS,
    RunRow,
    Schema,
    has_steps,
    integer,
    json_of,
    quoted,
    run_by_id,
    value_of,
)
from tracetui.formats.hypergraph.runs import ancestors_of, children_of, failed, is_active, item_number, step_counts
from tracetui.formats.hypergraph.state import Write, final_values, inputs_of, states
from tracetui.formats.scalars import text
from tracetui.model import INHERITED, Binding, Body, Error, FirstError, Link, RunBody, Span, Total

Row = dict[str, Any]

_TABLES: Final = {"attempt": "attempt_records", "pending": "pending_nodes"}
_RUN_TABLES: Final = {
    "run_updates": "run_id",
    "host_submissions": "workflow_id",
    "host_commands": "run_id",
    "host_batches": "workflow_id",
}
"""Tables with rows about a run, and the column that says which."""


def body_of(connection: Connection, schema: Schema, span: Span, kept: Row) -> Body:
    """Everything about a span. Raises `FormatError` if its row is gone. `kept` is what outlasts the call."""
    kind, key = span.at
    if kind == "step":
        return _step_body(connection, schema, key, span, kept)
    if kind == "run":
        return _child_body(connection, schema, key)
    row = one_row(connection, schema, _TABLES[kind], "rowid", key)
    return Body(attributes=_decoded(row) | _series(connection, schema, row.get("series_id")), raw=_raw(row))


def _step_body(connection: Connection, schema: Schema, rowid: int, span: Span, kept: Row) -> Body:
    row = one_row(connection, schema, "steps", "rowid", rowid)
    data = row.get(schema.values) if schema.values else None
    run = row[schema.step_names["run"]]
    superstep = span.step
    before, after = states(connection, schema, run, superstep, kept)
    bindings = tuple(_bindings(_versions(row), before))
    slot = _node_row(connection, schema, "pause_slots", run, superstep, span.name)
    attributes = {name: value for name, value in _decoded(row).items() if name != schema.values}
    if inherited := {name: write.value for name, write in before.items() if write.inherited}:
        attributes["inherited_state"] = inherited
    if slot:
        attributes["pause_slot"] = slot
    if pending := _node_row(connection, schema, "pending_nodes", run, superstep, span.name):
        attributes["pending_node"] = pending
    attributes |= _series(connection, schema, row.get("attempt_series_id"))
    known = {binding.name: binding.value for binding in bindings if binding.known}
    return Body(
        input=known or slot.get("question", attributes.get("pause")),
        output=slot.get("answer") if data is None and slot else value_of(data),
        attributes=attributes,
        state=after,
        bindings=bindings,
        links=tuple(_links(row, schema, span)),
        raw=_raw(row),
    )


def _series(connection: Connection, schema: Schema, series: Any) -> Row:
    """The row of a series of attempts, as an attribute; nothing where there is none."""
    columns = schema.columns.get("attempt_series", ())
    if series is None or "id" not in columns:
        return {}
    sql = f"SELECT {', '.join(map(quoted, columns))} FROM attempt_series WHERE id = ? LIMIT 1"
    row = connection.execute(sql, (series,)).fetchone()
    return {} if row is None else {"attempt_series": _decoded(dict(zip(columns, row, strict=True)))}


def _child_body(connection: Connection, schema: Schema, run_id: str) -> Body:
    run = run_by_id(connection, schema, run_id)
    if run is None:
        raise FormatError(f"run {run_id!r} is no longer in the database")
    row = one_row(connection, schema, schema.runs, "rowid", run.rowid)
    return Body(
        input=inputs_of(connection, schema, run),
        output=_output(connection, schema, run),
        attributes={name: value for name, value in _decoded(row).items() if name != schema.inputs},
        links=(Link("run", run=run_id),),
        raw=_raw(row),
    )


def run_body(
    connection: Connection, schema: Schema, run: RunRow, error: FirstError | None, counted: tuple[int, int]
) -> RunBody:
    """What the database says about the run as a whole; `counted` are its own steps, and those that failed."""
    row = one_row(connection, schema, schema.runs, "rowid", run.rowid)
    attributes = {name: value for name, value in _decoded(row).items() if name != schema.inputs}
    attributes |= dict(_more_of_run(connection, schema, run.id))
    return RunBody(
        input=inputs_of(connection, schema, run),
        output=_output(connection, schema, run),
        error=None if error is None else Error(error.message, error.type),
        totals=_totals(connection, schema, run, counted),
        attributes=attributes,
        layout="Workflow",
        raw=_raw(row),
    )


def _output(connection: Connection, schema: Schema, run: RunRow) -> Any:
    """What a run put out; a run that failed, or that is going on, has no output."""
    return None if failed(run) or is_active(run) else final_values(connection, schema, run.id)


def _more_of_run(connection: Connection, schema: Schema, run_id: str) -> Iterator[tuple[str, Any]]:
    """What other tables hold about a run, and the hidden rows of its steps."""
    for table, key in _RUN_TABLES.items():
        columns = schema.columns.get(table, ())
        if key in columns:
            sql = f"SELECT {', '.join(map(quoted, columns))} FROM {table} WHERE {key} = ? ORDER BY rowid"
            rows = connection.execute(sql, (run_id,)).fetchall()
            if rows:
                yield table, [_decoded(dict(zip(columns, values, strict=True))) for values in rows]
    names = schema.columns.get("steps", ())
    if has_steps(schema):
        hidden = f"{schema.step('run')} = ? AND {schema.step('node_name')} = '{BASELINE}'"  # an index tells that
        sql = (
            f"SELECT {', '.join(map(quoted, names))} FROM steps"
            f" WHERE rowid IN (SELECT rowid FROM steps WHERE {hidden}) ORDER BY rowid"
        )
        rows = connection.execute(sql, (run_id,)).fetchall()
        if rows:
            yield BASELINE, [_decoded(dict(zip(names, values, strict=True))) for values in rows]
    if "version" in schema.columns.get("_schema_version", ()):
        yield "_schema_version", [version for (version,) in connection.execute("SELECT version FROM _schema_version")]


def more_of_run(connection: Connection, schema: Schema, run_id: str) -> int:
    """A hash of what other tables hold about a run."""
    return hash(repr([*_more_of_run(connection, schema, run_id)]))


def _totals(connection: Connection, schema: Schema, run: RunRow, own: tuple[int, int]) -> tuple[Total, ...]:
    """Declared counts beside our own: of steps (inherited ones too), or of items where the run is a map."""
    items = [child for child in children_of(connection, schema, [run.id]) if item_number(child) is not None]
    if items:
        counted, bad = len(items), sum(map(failed, items))
    elif has_steps(schema):
        ancestors, _ = ancestors_of(connection, schema, run)
        counted, bad = own
        counted += sum(step_counts(connection, schema, ancestor.id, last)[0] for ancestor, last in ancestors)
    else:
        return ()
    declared = {"node_count": (run.node_count, counted), "error_count": (run.error_count, bad)}
    return tuple(
        Total(name, stated, found) for name, (stated, found) in declared.items() if isinstance(stated, int | float)
    )


def _versions(row: Row) -> dict[str, int | None]:
    versions = json_of(row.get("input_versions"))
    return {name: integer(version) for name, version in versions.items()} if isinstance(versions, dict) else {}


def _bindings(versions: dict[str, int | None], before: dict[str, Write]) -> Iterator[Binding]:
    for name, version in versions.items():
        write = before.get(name)
        if write is None:
            yield Binding(name, version, known=False)
        else:
            yield Binding(name, version, write.value, writer=write.writer)


def _node_row(connection: Connection, schema: Schema, table: str, run: Any, superstep: int | None, node: str) -> Row:
    """The row that another table has for a step (when it was begun; what it asked and was told), or an empty one."""
    columns = schema.columns.get(table, ())
    if not {"run_id", "superstep", "node_name"} <= set(columns):
        return {}
    where = "run_id = ? AND superstep = ? AND node_name = ?"
    sql = f"SELECT {', '.join(map(quoted, columns))} FROM {table} WHERE {where}"
    row = connection.execute(sql, (run, superstep, node)).fetchone()
    return {} if row is None else _decoded(dict(zip(columns, row, strict=True)))


def _links(row: Row, schema: Schema, span: Span) -> Iterator[Link]:
    child = text(row.get(schema.step_names.get("child", "")))
    if child is not None:
        yield Link("child run", run=child)
    if INHERITED in span.notes:
        yield Link("inherited from", run=text(row[schema.step_names["run"]]))


def one_row(connection: Connection, schema: Schema, table: str, key: str, value: Any) -> Row:
    """All columns of one row. Raises `FormatError` if it is gone."""
    columns = schema.columns.get(table, ())
    sql = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table)} WHERE {key} = ? LIMIT 1"
    row = connection.execute(sql, (value,)).fetchone()
    if row is None:
        raise FormatError("the row is no longer in the database", f"{table} {key} {value}")
    return dict(zip(columns, row, strict=True))


def _decoded(row: Row) -> Row:
    """A row with the JSON of those columns decoded that are known to hold it."""
    return {
        name: value_of(value) if name in JSON_COLUMNS or isinstance(value, bytes) else value
        for name, value in row.items()
    }


def _raw(row: Row) -> bytes:
    """A row as JSON, bytes as text where they are UTF-8."""
    try:
        return orjson.dumps(row, default=_plain, option=orjson.OPT_INDENT_2)
    except (orjson.JSONEncodeError, TypeError):
        return repr(row).encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    raise TypeError
