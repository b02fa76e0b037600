"""What a hypergraph database says about one span or one run in full: values, rebuilt inputs, accumulated state.

The state is what ``get_state(run, superstep=N)`` of hypergraph's own checkpointer returns: the values of the run's own
rows up to N, hidden ones included, the later over the earlier; neither the run's inputs nor what a fork inherited.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    Database,
    Opaque,
    Row,
    RunRow,
    decoded,
    json_of,
    value_of,
)
from tracetui.formats.hypergraph.runs import failed, steps_of
from tracetui.formats.scalars import integer, text
from tracetui.formats.schema import plain
from tracetui.formats.sqlite import quoted
from tracetui.model import INHERITED, Binding, Body, Error, FirstError, Link, RunBody, Span, Status, Total
from tracetui.sources.sqlite import version_of

KEPT_FOLDS: Final = 16
"""Folds that are cached: of the run, of nested ones, and of spans that were shown."""
_FOLDS: Final = "hypergraph folds"
_TABLES: Final = {"attempt": "attempt_records", "pending": "pending_nodes"}
_RUN_TABLES: Final = {
    "run_updates": "run_id",
    "host_submissions": "workflow_id",
    "host_commands": "run_id",
    "host_batches": "workflow_id",
}
"""Tables with rows about a run, and the column that says which."""


# ---- spans


def body_of(database: Database, span: Span, kept: dict[str, Any]) -> Body:
    """Everything about a span. Raises `FormatError` if its row is gone. `kept` is what outlasts the call."""
    kind, key = span.at
    if kind == "step":
        return _step_body(database, key, span, kept)
    if kind == "run":
        return _child_body(database, key)
    row = database.row(_TABLES[kind], key)
    return Body(attributes=decoded(row) | _series(database, row.get("series_id")), raw=_raw(row))


def _step_body(database: Database, rowid: int, span: Span, kept: dict[str, Any]) -> Body:
    row = database.row("steps", rowid)
    run, superstep = database.of_step(row, "run"), span.step
    data = row.get(database.values) if database.values else None
    before, after = states(database, run, superstep, kept)
    bindings = tuple(_bindings(row, before))
    slot = _node_row(database, "pause_slots", run, superstep, span.name)
    attributes = {name: value for name, value in decoded(row).items() if name != database.values}
    if inherited := {name: write.value for name, write in before.items() if write.inherited}:
        attributes["inherited_state"] = inherited
    if slot:
        attributes["pause_slot"] = slot
    if pending := _node_row(database, "pending_nodes", run, superstep, span.name):
        attributes["pending_node"] = pending
    attributes |= _series(database, row.get("attempt_series_id"))
    known = {binding.name: binding.value for binding in bindings if binding.known}
    child = text(database.of_step(row, "child"))
    links = [] if child is None else [Link("child run", run=child)]
    links += [Link("inherited from", run=text(run))] if INHERITED in span.notes else []
    return Body(
        input=known or slot.get("question", attributes.get("pause")),
        output=slot.get("answer") if data is None and slot else value_of(data),
        attributes=attributes,
        state=after,
        bindings=bindings,
        links=tuple(links),
        raw=_raw(row),
    )


def _bindings(row: Row, before: dict[str, Write]) -> Iterator[Binding]:
    versions = json_of(row.get("input_versions"))
    for name, number in versions.items() if isinstance(versions, dict) else ():
        version, write = integer(number), before.get(name)
        if write is None:
            yield Binding(name, version, known=False)
        else:
            yield Binding(name, version, write.value, writer=write.writer)


def _series(database: Database, series: Any) -> Row:
    """The row of a series of attempts, as an attribute; nothing where there is none."""
    if series is None or not database.has("attempt_series", "id"):
        return {}
    rows = database.rows("attempt_series", "id = ? LIMIT 1", series)
    return {"attempt_series": decoded(rows[0])} if rows else {}


def _node_row(database: Database, table: str, run: Any, superstep: int | None, node: str) -> Row:
    """The row that another table has for a step (when it began; its question and the answer), or an empty one."""
    if not database.has(table, "run_id", "superstep", "node_name"):
        return {}
    rows = database.rows(table, "run_id = ? AND superstep = ? AND node_name = ? LIMIT 1", run, superstep, node)
    return decoded(rows[0]) if rows else {}


# ---- runs


def _child_body(database: Database, run_id: str) -> Body:
    run = database.run_by_id(run_id)
    if run is None:
        raise FormatError(f"run {run_id!r} is no longer in the database")
    row = database.row(database.runs, run.rowid)
    return Body(
        input=inputs_of(database, run),
        output=_output(database, run),
        attributes={name: value for name, value in decoded(row).items() if name != database.inputs},
        links=(Link("run", run=run_id),),
        raw=_raw(row),
    )


def run_body(
    database: Database, run: RunRow, error: FirstError | None, items: Sequence[RunRow], more: dict[str, Any]
) -> RunBody:
    """What the database says about the run as a whole, in other tables too (`more`); `items`: what it mapped over."""
    row = database.row(database.runs, run.rowid)
    return RunBody(
        input=inputs_of(database, run),
        output=_output(database, run),
        error=None if error is None else Error(error.message, error.type),
        totals=_totals(database, run, items),
        attributes={name: value for name, value in decoded(row).items() if name != database.inputs} | more,
        layout="Workflow",
        raw=_raw(row),
    )


def more_of_run(database: Database, run_id: str) -> Iterator[tuple[str, Any]]:
    """What other tables hold about a run, and the hidden rows of its steps."""
    for table, key in _RUN_TABLES.items():
        if database.has(table, key) and (rows := database.rows(table, f"{key} = ? ORDER BY rowid", run_id)):
            yield table, list(map(decoded, rows))
    if database.has_steps:
        hidden = f"{database.step('run')} = ? AND {database.step('node_name')} = '{BASELINE}'"  # an index finds that
        where = f"rowid IN (SELECT rowid FROM steps WHERE {hidden}) ORDER BY rowid"
        if rows := database.rows("steps", where, run_id):
            yield BASELINE, list(map(decoded, rows))
    if database.has("_schema_version", "version"):
        rows = database.rows("_schema_version", "1")
        yield "_schema_version", [row["version"] for row in rows]


def _output(database: Database, run: RunRow) -> Any:
    """What a run put out, the latest first: what ``values(run)`` of the checkpointer returns; None if nothing.

    A run that failed or still runs has no output.
    """
    if database.values is None or not database.has_steps or run.standing in (Status.ERROR, Status.RUNNING):
        return None
    found: dict[str, Any] = {}
    for _, values in _written(database, run.id, decode=_undecoded):
        for name in values:
            found.pop(name, None)
        found.update(values)
    latest = reversed(found.items())
    return {name: plain(value) if isinstance(value, msgspec.Raw) else value for name, value in latest} or None


def _totals(database: Database, run: RunRow, items: Sequence[RunRow]) -> tuple[Total, ...]:
    """Declared counts beside our own: of steps (inherited ones too), or of items where the run is a map."""
    if not isinstance(run.node_count, int | float) and not isinstance(run.error_count, int | float):
        return ()
    if items:
        counted, bad = len(items), sum(map(failed, items))
    elif database.has_steps:
        own = steps_of(database, run.id).get(run.id)
        counted, bad = (own.steps, own.failed) if own else (0, 0)
        for ancestor, last in database.ancestors_of(run)[0]:
            inherited = steps_of(database, ancestor.id, last).get(ancestor.id)
            counted += inherited.steps if inherited else 0
    else:
        return ()
    declared = {"node_count": (run.node_count, counted), "error_count": (run.error_count, bad)}
    return tuple(
        Total(name, stated, found) for name, (stated, found) in declared.items() if isinstance(stated, int | float)
    )


# ---- state


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

    def __init__(self, database: Database, run_id: str) -> None:
        self.run_id = run_id
        self.superstep: int | None = None
        """Up to which it was folded; None at the start."""
        self.held: dict[str, Any] = {}
        self.writers: dict[str, Writer | None] = {}
        self.after: dict[str, Any] = {}
        run = database.run_by_id(run_id)
        self._ranks: dict[int, int] = {}
        self._before: dict[str, int] = {}
        self._upto: dict[str, int] = {}
        if run is None:
            return
        self._inherit(database, run)
        sql = f"SELECT rowid FROM steps WHERE {database.step('run')} = ? ORDER BY {_order(database)}"
        self._ranks = {rowid: rank for rank, (rowid,) in enumerate(database.connection.execute(sql, (run_id,)))}

    def _inherit(self, database: Database, run: RunRow) -> None:
        """What all began with: the inputs, and what a fork inherited."""
        given: dict[str, Any] = {}
        for ancestor, last in [*database.ancestors_of(run)[0], (run, -1)]:
            inputs = inputs_of(database, ancestor)
            for name, value in inputs.items() if isinstance(inputs, dict) else ():
                if name not in given or given[name] != value:  # a fork restates the inputs that it did not change
                    given[name] = self.held[name] = value
                    self.writers[name] = None
            if ancestor.rowid != run.rowid:
                for writer, values in _written(database, ancestor.id, last=last):
                    self.held.update(values)
                    self.writers.update(dict.fromkeys(values, writer))

    def advance(self, database: Database, superstep: int | None) -> None:
        """Fold on; never back. None: to the end, whatever supersteps are."""
        if not self._ranks or (superstep is not None and superstep == self.superstep):
            return
        first = self.superstep
        for writer, values in _written(database, self.run_id, first, superstep):
            for name in self._later(self._upto, writer, values):
                self.after[name] = values[name]
        began = None if superstep is None else superstep - 1
        for writer, values in _written(database, self.run_id, None if first is None else first - 1, began):
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
    database: Database, run_id: str, superstep: int | None, kept: dict[str, Any] | None = None
) -> tuple[dict[str, Write], dict[str, Any] | None]:
    """(What every name held when `superstep` began, the accumulated state after it: None where no values are kept).

    The folds in `kept` let the next call for a later superstep fold on from there.
    """
    if database.values is None:
        return {}, None
    kept = {} if kept is None else kept
    version = version_of(database.connection)
    known, folds = kept.pop(_FOLDS, (None, []))  # another thread that comes meanwhile makes its own
    folds = folds if version is not None and known == version else []
    fold = _fold_before(folds, run_id, superstep) or Fold(database, run_id)
    fold.advance(database, superstep)
    kept[_FOLDS] = version, [fold, *(one for one in folds if one is not fold)][:KEPT_FOLDS]
    before = {name: _write(database, value, fold.writers[name], run_id) for name, value in fold.held.items()}
    for name, write in _answers(database, run_id, superstep):
        before.setdefault(name, write)  # unless a step put it out as well
    return before, dict(fold.after)


def _fold_before(folds: list[Fold], run_id: str, superstep: int | None) -> Fold | None:
    """The fold of that run that is nearest below a superstep."""
    there = [(one.superstep, one) for one in folds if one.run_id == run_id]
    below = [(at, one) for at, one in there if superstep is not None and at is not None and at <= superstep]
    return max(below, key=lambda found: found[0], default=(0, None))[1]


def inputs_of(database: Database, run: RunRow) -> Any:
    """The inputs of a run, decoded; None where this schema keeps none."""
    if database.inputs is None:
        return None
    sql = f"SELECT {quoted(database.inputs)} FROM {quoted(database.runs)} WHERE rowid = ?"
    row = database.connection.execute(sql, (run.rowid,)).fetchone()
    return None if row is None else value_of(row[0])


def _write(database: Database, value: Any, writer: Writer | None, run_id: str) -> Write:
    if writer is None:
        return Write(value)
    span = None if writer[2] == BASELINE else database.span_id(*writer)
    return Write(value, span, writer[0] != run_id)


def _answers(database: Database, run_id: str, superstep: int | None) -> Iterator[tuple[str, Write]]:
    """What was answered to the run's questions before `superstep`, under the names that the answers got."""
    needed = ("run_id", "superstep", "node_name", "response_key", "answer", "settled_at")
    if superstep is None or not database.has("pause_slots", *needed):
        return
    sql = (
        "SELECT response_key, answer, superstep, node_name, rowid FROM pause_slots"
        " WHERE run_id = ? AND superstep < ? AND settled_at IS NOT NULL ORDER BY rowid DESC"
    )
    for name, answer, asked, node, rowid in database.connection.execute(sql, (run_id, superstep)).fetchall():
        yield str(name), Write(json_of(answer), database.span_id(run_id, asked, node, -rowid))


def _written(
    database: Database,
    run_id: str,
    first: int | None = None,
    last: int | None = None,
    decode: Callable[[Any], Any] | None = None,
) -> Iterator[tuple[Writer, dict[str, Any]]]:
    """The rows of a run after superstep `first` and up to `last` that hold values, in the checkpointer's order."""
    step = database.step
    bounds = "" if first is None else f" AND {step('superstep')} > {int(first)}"
    bounds += "" if last is None else f" AND {step('superstep')} <= {int(last)}"
    sql = (
        f"SELECT {step('superstep')}, {step('node_name')}, rowid, {quoted(database.values or '')} FROM steps"
        f" WHERE {step('run')} = ?{bounds} ORDER BY {_order(database)}"
    )
    decode = decode or _decoded
    for superstep, node, rowid, data in database.connection.execute(sql, (run_id,)):
        values = decode(data)
        if isinstance(values, dict) and not isinstance(values, Opaque):
            yield (run_id, superstep, node, rowid), values


def _decoded(data: Any) -> Any:
    try:
        return msgspec.json.decode(data)  # nearly always; a long run has very many of these
    except (TypeError, ValueError, RecursionError):
        return value_of(data)


_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _undecoded(data: Any) -> Any:
    """The values of a row as they are written, for those of which few count."""
    try:
        return _parts(data)
    except (TypeError, ValueError, RecursionError):
        return _decoded(data)


def _order(database: Database) -> str:
    """Schemas 1 and 2 (and the plan document) fold by index, those since 3, which know forks, by time."""
    step = database.step
    if not database.knows_forks:
        return f"{step('index')}, rowid"
    return f"COALESCE({step('completed_at')}, {step('created_at')}), {step('created_at')}, rowid"


# ---- raw


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
