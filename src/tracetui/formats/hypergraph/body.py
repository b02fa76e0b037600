"""What a hypergraph database says about one span or one run in full: values, rebuilt inputs, accumulated state."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any, Final

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    JSON_COLUMNS,
    Opaque,
    RunRow,
    Schema,
    has_steps,
    integer,
    json_of,
    quoted,
    run_by_id,
    text,
    value_of,
)
from tracetui.formats.hypergraph.runs import Ancestor, ancestors_of, children_of, failed, item_number, step_counts
from tracetui.model import Binding, Body, Error, FirstError, Link, RunBody, Span, Total

Row = dict[str, Any]

_TABLES: Final = {"attempt": "attempt_records", "pending": "pending_nodes"}
_RUN_TABLES: Final = {
    "run_updates": "run_id",
    "host_submissions": "workflow_id",
    "host_commands": "run_id",
    "host_batches": "workflow_id",
}
"""Tables with rows about a run, and the column that says which."""


def body_of(connection: Connection, schema: Schema, span: Span) -> Body:
    """Everything about a span. Raises `FormatError` if its row is gone."""
    kind, key = span.at
    if kind == "step":
        return _step_body(connection, schema, key, span)
    if kind == "run":
        return _child_body(connection, schema, key)
    row = one_row(connection, schema, _TABLES[kind], "rowid", key)
    return Body(attributes=_decoded(row) | _series(connection, schema, row.get("series_id")), raw=_raw(row))


def _step_body(connection: Connection, schema: Schema, rowid: int, span: Span) -> Body:
    row = one_row(connection, schema, "steps", "rowid", rowid)
    data = row.get(schema.values) if schema.values else None
    run = row[schema.step_names["run"]]
    superstep = span.step
    before, after = _states(connection, schema, run, superstep)
    bindings = tuple(_bindings(_versions(row, schema), before))
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
        input=known or slot.get("question"),
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
        input=_inputs(row, schema),
        output=last_outputs(connection, schema, run_id),
        attributes={name: value for name, value in _decoded(row).items() if name != schema.inputs},
        links=(Link("run", run=run_id),),
        raw=_raw(row),
    )


def run_body(connection: Connection, schema: Schema, run: RunRow, error: FirstError | None) -> RunBody:
    """What the database says about the run as a whole."""
    row = one_row(connection, schema, schema.runs, "rowid", run.rowid)
    attributes = {name: value for name, value in _decoded(row).items() if name != schema.inputs}
    attributes |= dict(_more_of_run(connection, schema, run.id))
    return RunBody(
        input=_inputs(row, schema),
        output=last_outputs(connection, schema, run.id),
        error=None if error is None else Error(error.message, error.type),
        totals=_totals(connection, schema, run),
        attributes=attributes,
        layout="Workflow",
    )


def _more_of_run(connection: Connection, schema: Schema, run_id: str) -> Iterator[tuple[str, Any]]:
    """What other tables hold about a run, and the hidden rows of its steps."""
    for table, key in _RUN_TABLES.items():
        columns = schema.columns.get(table, ())
        if key in columns:
            sql = f"SELECT {', '.join(map(quoted, columns))} FROM {table} WHERE {key} = ? ORDER BY rowid"
            rows = connection.execute(sql, (run_id,)).fetchall()
            if rows:
                yield table, [_decoded(dict(zip(columns, values, strict=True))) for values in rows]
    names = [name for name in schema.columns.get("steps", ()) if name != schema.values]
    if has_steps(schema):
        hidden = f"{schema.step('run')} = ? AND {schema.step('node_name')} = '{BASELINE}'"
        sql = f"SELECT {', '.join(map(quoted, names))} FROM steps WHERE {hidden}"
        rows = connection.execute(sql, (run_id,)).fetchall()
        if rows:
            yield BASELINE, [_decoded(dict(zip(names, values, strict=True))) for values in rows]
    if "version" in schema.columns.get("_schema_version", ()):
        yield "_schema_version", [version for (version,) in connection.execute("SELECT version FROM _schema_version")]


def last_outputs(connection: Connection, schema: Schema, run_id: str) -> Any:
    """What the steps of the run's last superstep put out, None if nothing."""
    if schema.values is None or not has_steps(schema):
        return None
    run, superstep = schema.step("run"), schema.step("superstep")
    sql = (
        f"SELECT {quoted(schema.values)} FROM steps WHERE {run} = ?1 AND {schema.public} AND {superstep} ="
        f" (SELECT {superstep} FROM steps WHERE {run} = ?1 AND {schema.public} ORDER BY {superstep} DESC LIMIT 1)"
        f" ORDER BY +{schema.step('index')}, rowid"  # + keeps SQLite from walking the whole run in that order
    )
    values = [value_of(data) for (data,) in connection.execute(sql, (run_id,)).fetchall() if data is not None]
    if len(values) == 1:
        return values[0]
    return _merged(values) if all(isinstance(value, dict) for value in values) and values else values or None


def _merged(values: list[Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for value in values:
        merged |= value
    return merged


def _totals(connection: Connection, schema: Schema, run: RunRow) -> tuple[Total, ...]:
    """Declared counts beside our own: of steps (inherited ones too), or of items where the run is a map."""
    items = [child for child in children_of(connection, schema, [run.id]) if item_number(child) is not None]
    if items:
        counted, bad = len(items), sum(map(failed, items))
    elif has_steps(schema):
        ancestors, _ = ancestors_of(connection, schema, run)
        counted, bad = step_counts(connection, schema, run.id)
        counted += sum(step_counts(connection, schema, ancestor.id, last)[0] for ancestor, last in ancestors)
    else:
        return ()
    declared = {"node_count": (run.node_count, counted), "error_count": (run.error_count, bad)}
    return tuple(
        Total(name, stated, found) for name, (stated, found) in declared.items() if isinstance(stated, int | float)
    )


class _Write(msgspec.Struct, frozen=True):
    """The value of a name at some moment, and the span that wrote it (None: an input of the run)."""

    value: Any
    writer: str | None = None
    inherited: bool = False


def _states(
    connection: Connection, schema: Schema, run_id: str, superstep: int | None
) -> tuple[dict[str, _Write], dict[str, Any] | None]:
    """(What every name held when `superstep` began, the accumulated state after it).

    The state is what ``get_state(run, superstep=N)`` of the checkpointer returns: the values of the run's own rows up
    to N, hidden ones included, in the order of their times; neither the run's inputs nor what a fork inherited.
    """
    run = run_by_id(connection, schema, run_id)
    before: dict[str, _Write] = {}
    after: dict[str, Any] = {}
    if schema.values is None:
        return before, None
    given: dict[str, Any] = {}
    for ancestor, last in _lineage(connection, schema, run):
        inherited = run is not None and ancestor.rowid != run.rowid
        inputs = _inputs(one_row(connection, schema, schema.runs, "rowid", ancestor.rowid), schema)
        for name, value in inputs.items() if isinstance(inputs, dict) else ():
            if name not in given or given[name] != value:  # a fork restates the inputs that it did not change
                given[name] = value
                before[name] = _Write(value)
        for step, values, writer in _written(connection, schema, ancestor.id, last if inherited else superstep):
            if not inherited:
                after.update(values)
            if inherited or superstep is None or step is None or step < superstep:
                before.update({name: _Write(value, writer, inherited) for name, value in values.items()})
    for name, write in _answers(connection, schema, run_id, superstep):
        before.setdefault(name, write)  # unless a step put it out as well
    return before, after


def _answers(
    connection: Connection, schema: Schema, run_id: str, superstep: int | None
) -> Iterator[tuple[str, _Write]]:
    """What was answered to the run's questions before `superstep`, under the names that the answers got."""
    needed = {"run_id", "superstep", "node_name", "response_key", "answer", "settled_at"}
    if superstep is None or not needed <= set(schema.columns.get("pause_slots", ())):
        return
    sql = (
        "SELECT response_key, answer, superstep, node_name, rowid FROM pause_slots"
        " WHERE run_id = ? AND superstep < ? AND settled_at IS NOT NULL ORDER BY rowid DESC"
    )
    for name, answer, asked, node, rowid in connection.execute(sql, (run_id, superstep)).fetchall():
        yield str(name), _Write(json_of(answer), schema.span_id(run_id, asked, node, -rowid))


def _lineage(connection: Connection, schema: Schema, run: RunRow | None) -> list[Ancestor]:
    if run is None:
        return []
    return [*ancestors_of(connection, schema, run)[0], (run, None)]


def _written(
    connection: Connection, schema: Schema, run_id: str, last: int | None
) -> Iterator[tuple[int | None, dict[str, Any], str | None]]:
    """(Superstep, values, span) of a run's rows, in the order in which the checkpointer folds them."""
    step = schema.step
    upto = "" if last is None else f" AND {step('superstep')} <= {int(last)}"
    sql = (
        f"SELECT {step('superstep')}, {step('node_name')}, rowid, {quoted(schema.values or '')} FROM steps"
        f" WHERE {step('run')} = ?{upto}"
        f" ORDER BY COALESCE({step('completed_at')}, {step('created_at')}), {step('created_at')}, rowid"
    )
    for superstep, node, rowid, data in connection.execute(sql, (run_id,)):
        values = value_of(data)
        if isinstance(values, dict) and not isinstance(values, Opaque):
            writer = None if node == BASELINE else schema.span_id(run_id, superstep, node, rowid)
            yield integer(superstep), values, writer


def _versions(row: Row, schema: Schema) -> dict[str, int | None]:
    versions = json_of(row.get("input_versions"))
    return {name: integer(version) for name, version in versions.items()} if isinstance(versions, dict) else {}


def _bindings(versions: dict[str, int | None], before: dict[str, _Write]) -> Iterator[Binding]:
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
    if "inherited" in span.note.split(" · "):
        yield Link("inherited from", run=text(row[schema.step_names["run"]]))


def _inputs(row: Row, schema: Schema) -> Any:
    return value_of(row[schema.inputs]) if schema.inputs else None


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
