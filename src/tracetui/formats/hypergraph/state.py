"""What the names of a graph held at some moment: the accumulated state, and what a step found when it began.

The state is what ``get_state(run, superstep=N)`` of hypergraph's own checkpointer returns: the values of the run's own
rows up to N, hidden ones included, the later over the earlier; neither the run's inputs nor what a fork inherited.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.formats.hypergraph.rows import (
    BASELINE,
    Opaque,
    RunRow,
    Schema,
    has_steps,
    json_of,
    quoted,
    run_by_id,
    value_of,
)
from tracetui.formats.hypergraph.runs import ancestors_of
from tracetui.sources.sqlite import version_of

KEPT_FOLDS: Final = 16
"""Folds that are kept: of the run, of nested ones, and where somebody looked."""
_FOLDS: Final = "hypergraph folds"

Writer = tuple[Any, Any, Any, int]
"""Run, superstep, node name and rowid of the row that wrote a value. A tuple: a long run has very many."""


class Write(msgspec.Struct, frozen=True):
    """The value of a name at some moment, and the span that wrote it (None: an input of the run)."""

    value: Any
    writer: str | None = None
    inherited: bool = False


class Fold:
    """What the names of a run held before a superstep and after it; folding on costs what lies between.

    Rows are given by superstep, and folded in the order of the checkpointer: of two rows that write one name the later
    one in that order wins, whichever is met first.
    """

    def __init__(self, connection: Connection, schema: Schema, run_id: str) -> None:
        self.run_id = run_id
        self.superstep: int | None = None
        """Up to which it was folded; None at the start."""
        self.held: dict[str, Any] = {}
        self.writers: dict[str, Writer | None] = {}
        self.after: dict[str, Any] = {}
        run = run_by_id(connection, schema, run_id)
        self._ranks: dict[int, int] = {}
        self._before: dict[str, int] = {}
        self._upto: dict[str, int] = {}
        if run is None:
            return
        self._inherit(connection, schema, run)
        sql = f"SELECT rowid FROM steps WHERE {schema.step('run')} = ? ORDER BY {_order(schema)}"
        self._ranks = {rowid: rank for rank, (rowid,) in enumerate(connection.execute(sql, (run_id,)))}

    def _inherit(self, connection: Connection, schema: Schema, run: RunRow) -> None:
        """What all began with: the inputs, and what a fork inherited."""
        given: dict[str, Any] = {}
        for ancestor, last in [*ancestors_of(connection, schema, run)[0], (run, -1)]:
            inputs = inputs_of(connection, schema, ancestor)
            for name, value in inputs.items() if isinstance(inputs, dict) else ():
                if name not in given or given[name] != value:  # a fork restates the inputs that it did not change
                    given[name] = self.held[name] = value
                    self.writers[name] = None
            if ancestor.rowid != run.rowid:
                for writer, values in _written(connection, schema, ancestor.id, last=last):
                    self.held.update(values)
                    self.writers.update(dict.fromkeys(values, writer))

    def advance(self, connection: Connection, schema: Schema, superstep: int | None) -> None:
        """Fold on; never back. None: to the end, whatever supersteps are."""
        if not self._ranks or (superstep is not None and superstep == self.superstep):
            return
        first = self.superstep
        for writer, values in _written(connection, schema, self.run_id, first, superstep):
            for name in self._later(self._upto, writer, values):
                self.after[name] = values[name]
        began = None if superstep is None else superstep - 1
        for writer, values in _written(connection, schema, self.run_id, None if first is None else first - 1, began):
            for name in self._later(self._before, writer, values):
                self.held[name] = values[name]
                self.writers[name] = writer
        self.superstep = superstep

    def _later(self, ranks: dict[str, int], writer: Writer, names: Iterable[str]) -> Iterator[str]:
        """The names that no later row has written yet."""
        rank = self._ranks.get(writer[3], 0)
        for name in names:
            if ranks.get(name, -1) <= rank:
                ranks[name] = rank
                yield name


def states(
    connection: Connection, schema: Schema, run_id: str, superstep: int | None, kept: dict[str, Any] | None = None
) -> tuple[dict[str, Write], dict[str, Any] | None]:
    """(What every name held when `superstep` began, the accumulated state after it: None where no values are kept).

    What is put in `kept` spares the next call for a later superstep to fold anew.
    """
    if schema.values is None:
        return {}, None
    kept = {} if kept is None else kept
    version = version_of(connection)
    known, folds = kept.pop(_FOLDS, (None, []))  # another thread that comes meanwhile makes its own
    folds = folds if version is not None and known == version else []
    fold = _fold_before(folds, run_id, superstep) or Fold(connection, schema, run_id)
    fold.advance(connection, schema, superstep)
    kept[_FOLDS] = version, [fold, *(one for one in folds if one is not fold)][:KEPT_FOLDS]
    before = {name: _write(schema, value, fold.writers[name], run_id) for name, value in fold.held.items()}
    for name, write in _answers(connection, schema, run_id, superstep):
        before.setdefault(name, write)  # unless a step put it out as well
    return before, dict(fold.after)


def _fold_before(folds: list[Fold], run_id: str, superstep: int | None) -> Fold | None:
    """The fold of that run that is nearest below a superstep."""
    there = [(one.superstep, one) for one in folds if one.run_id == run_id]
    below = [(at, one) for at, one in there if superstep is not None and at is not None and at <= superstep]
    return max(below, key=lambda found: found[0], default=(0, None))[1]


def final_values(connection: Connection, schema: Schema, run_id: str) -> dict[str, Any] | None:
    """All that the run put out, the latest first: what ``values(run)`` of the checkpointer returns; None if nothing."""
    if schema.values is None or not has_steps(schema):
        return None
    found: dict[str, Any] = {}
    for _, values in _written(connection, schema, run_id):
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


def _written(
    connection: Connection, schema: Schema, run_id: str, first: int | None = None, last: int | None = None
) -> Iterator[tuple[Writer, dict[str, Any]]]:
    """The rows of a run after superstep `first` and up to `last` that hold values, in the checkpointer's order."""
    step = schema.step
    bounds = "" if first is None else f" AND {step('superstep')} > {int(first)}"
    bounds += "" if last is None else f" AND {step('superstep')} <= {int(last)}"
    sql = (
        f"SELECT {step('superstep')}, {step('node_name')}, rowid, {quoted(schema.values or '')} FROM steps"
        f" WHERE {step('run')} = ?{bounds} ORDER BY {_order(schema)}"
    )
    for superstep, node, rowid, data in connection.execute(sql, (run_id,)):
        values = _decoded(data)
        if isinstance(values, dict) and not isinstance(values, Opaque):
            yield (run_id, superstep, node, rowid), values


def _decoded(data: Any) -> Any:
    try:
        return msgspec.json.decode(data)  # nearly always; a long run has very many of these
    except (TypeError, ValueError, RecursionError):
        return value_of(data)


def _order(schema: Schema) -> str:
    """Schemas 1 and 2 (and the plan document) fold by index, those since 3, which know forks, by time."""
    step = schema.step
    if "forked_from" not in schema.run_names:
        return f"{step('index')}, rowid"
    return f"COALESCE({step('completed_at')}, {step('created_at')}), {step('created_at')}, rowid"
