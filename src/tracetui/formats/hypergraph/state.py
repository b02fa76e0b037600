"""What the names of a graph held at some moment: the accumulated state, and what a step found when it began.

The state is what ``get_state(run, superstep=N)`` of hypergraph's own checkpointer returns: the values of the run's own
rows up to N, hidden ones included, the later over the earlier; neither the run's inputs nor what a fork inherited.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import Any

import msgspec

from tracetui.formats.hypergraph.rows import (
    BASELINE,
    Opaque,
    RunRow,
    Schema,
    has_steps,
    integer,
    json_of,
    quoted,
    run_by_id,
    value_of,
)
from tracetui.formats.hypergraph.runs import Ancestor, ancestors_of

Writer = tuple[Any, Any, Any, int]
"""Run, superstep, node name and rowid of the row that wrote a value. A tuple: a long run has very many."""


class Write(msgspec.Struct, frozen=True):
    """The value of a name at some moment, and the span that wrote it (None: an input of the run)."""

    value: Any
    writer: str | None = None
    inherited: bool = False


def states(
    connection: Connection, schema: Schema, run_id: str, superstep: int | None
) -> tuple[dict[str, Write], dict[str, Any] | None]:
    """(What every name held when `superstep` began, the accumulated state after it: None where no values are kept)."""
    if schema.values is None:
        return {}, None
    run = run_by_id(connection, schema, run_id)
    given: dict[str, Any] = {}
    held: dict[str, Any] = {}
    writers: dict[str, Writer | None] = {}
    after: dict[str, Any] = {}
    for ancestor, last in _lineage(connection, schema, run):
        own = run is not None and ancestor.rowid == run.rowid
        inputs = inputs_of(connection, schema, ancestor)
        for name, value in inputs.items() if isinstance(inputs, dict) else ():
            if name not in given or given[name] != value:  # a fork restates the inputs that it did not change
                given[name] = held[name] = value
                writers[name] = None
        for writer, values in _written(connection, schema, ancestor.id, superstep if own else last):
            if own:
                after.update(values)
            if not own or superstep is None or integer(writer[1]) is None or writer[1] < superstep:
                held.update(values)
                writers.update(dict.fromkeys(values, writer))
    before = {name: _write(schema, value, writers[name], run_id) for name, value in held.items()}
    for name, write in _answers(connection, schema, run_id, superstep):
        before.setdefault(name, write)  # unless a step put it out as well
    return before, after


def final_values(connection: Connection, schema: Schema, run_id: str) -> dict[str, Any] | None:
    """All that the run put out, the latest first: what ``values(run)`` of the checkpointer returns; None if nothing."""
    if schema.values is None or not has_steps(schema):
        return None
    found: dict[str, Any] = {}
    for _, values in _written(connection, schema, run_id, None):
        for name in values:
            found.pop(name, None)
        found.update(values)
    return dict(reversed(found.items())) or None


def inputs_of(connection: Connection, schema: Schema, run: RunRow) -> Any:
    """The inputs of a run, decoded; None where this schema keeps none."""
    if schema.inputs is None:
        return None
    sql = f"SELECT {quoted(schema.inputs)} FROM {quoted(schema.runs)} WHERE rowid = ?"
    row = connection.execute(sql, (run.rowid,)).fetchone()
    return None if row is None else value_of(row[0])


def _write(schema: Schema, value: Any, writer: Writer | None, run_id: str) -> Write:
    if writer is None:
        return Write(value)
    span = None if writer[2] == BASELINE else schema.span_id(*writer)
    return Write(value, span, writer[0] != run_id)


def _answers(connection: Connection, schema: Schema, run_id: str, superstep: int | None) -> Iterator[tuple[str, Write]]:
    """What was answered to the run's questions before `superstep`, under the names that the answers got."""
    needed = {"run_id", "superstep", "node_name", "response_key", "answer", "settled_at"}
    if superstep is None or not needed <= set(schema.columns.get("pause_slots", ())):
        return
    sql = (
        "SELECT response_key, answer, superstep, node_name, rowid FROM pause_slots"
        " WHERE run_id = ? AND superstep < ? AND settled_at IS NOT NULL ORDER BY rowid DESC"
    )
    for name, answer, asked, node, rowid in connection.execute(sql, (run_id, superstep)).fetchall():
        yield str(name), Write(json_of(answer), schema.span_id(run_id, asked, node, -rowid))


def _lineage(connection: Connection, schema: Schema, run: RunRow | None) -> Sequence[Ancestor]:
    if run is None:
        return ()
    return [*ancestors_of(connection, schema, run)[0], (run, None)]


def _written(
    connection: Connection, schema: Schema, run_id: str, last: int | None
) -> Iterator[tuple[Writer, dict[str, Any]]]:
    """The rows of a run that hold values, in the order in which the checkpointer folds them."""
    step = schema.step
    upto = "" if last is None else f" AND {step('superstep')} <= {int(last)}"
    sql = (
        f"SELECT {step('superstep')}, {step('node_name')}, rowid, {quoted(schema.values or '')} FROM steps"
        f" WHERE {step('run')} = ?{upto} ORDER BY {_order(schema)}"
    )
    for superstep, node, rowid, data in connection.execute(sql, (run_id,)):
        try:
            values = msgspec.json.decode(data)  # nearly always; a long run has very many of these
        except (TypeError, ValueError, RecursionError):
            values = value_of(data)
        if isinstance(values, dict) and not isinstance(values, Opaque):
            yield (run_id, superstep, node, rowid), values


def _order(schema: Schema) -> str:
    """Schemas 1 and 2 (and the plan document) fold by index, those since 3, which know forks, by time."""
    step = schema.step
    if "forked_from" not in schema.run_names:
        return f"{step('index')}, rowid"
    return f"COALESCE({step('completed_at')}, {step('created_at')}), {step('created_at')}, rowid"
