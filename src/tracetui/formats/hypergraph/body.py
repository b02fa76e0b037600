"""Bodies of spans and runs in a hypergraph database: values, rebuilt inputs, accumulated state.

The state equals ``get_state(run, superstep=N)`` of hypergraph's own checkpointer: the values of the run's own
rows up to N, hidden ones included, the later over the earlier; neither the run's inputs nor what a fork inherited.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from operator import itemgetter
from typing import Any, Final

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    Database,
    Epoch,
    Opaque,
    Row,
    RunRow,
    decoded,
    json_of,
    sortable,
    value_of,
)
from tracetui.formats.hypergraph.runs import steps_of
from tracetui.formats.scalars import integer, text
from tracetui.formats.schema import plain
from tracetui.formats.sqlite import quoted
from tracetui.model import INHERITED, Binding, Body, Error, FirstError, Link, RunBody, Span, Status, Total
from tracetui.sources.sqlite import version_of

MAX_FOLDS: Final = 16
"""Folds of a run that are cached, and runs (or versions of one) with folds."""
NEAR: Final = 64
"""Supersteps that are quickly folded."""
UNSETTLED: Final = 8
"""The latest supersteps of a run: rows of earlier ones change so rarely that `Epoch` counts it."""
_FOLDS: Final = "hypergraph folds"
_TABLES: Final = {"attempt": "attempt_records", "pending": "pending_nodes"}
_RUN_TABLES: Final = {
    "run_updates": "run_id",
    "host_submissions": "workflow_id",
    "host_commands": "run_id",
    "host_batches": "workflow_id",
}
"""Tables with rows about a run, and their column with the run id."""


# ---- spans


Settled = tuple[Epoch, int]
"""An epoch, and its number before the database was opened."""


def settled_of(span: Span) -> Settled | None:
    """What `body_of` needs from the time before the database is opened."""
    epoch = span.at[2] if len(span.at) > 2 else None
    return None if epoch is None else (epoch, epoch.number)


def body_of(database: Database, span: Span, cache: dict[str, Any], settled: Settled | None) -> Body:
    """Everything about a span. Raises `FormatError` if its row was deleted. `cache` outlasts the call."""
    kind, key = span.at[:2]
    if kind == "step":
        return _step_body(database, key, span, cache, settled)
    if kind == "run":
        return _child_body(database, key)
    row = database.row(_TABLES[kind], key)
    series = _row_of(database, "attempt_series", id=row.get("series_id"))
    return Body(attributes=decoded(row) | ({"attempt_series": series} if series else {}), raw=_raw(row))


def _step_body(database: Database, rowid: int, span: Span, cache: dict[str, Any], settled: Settled | None) -> Body:
    row = database.row("steps", rowid)
    run, superstep = database.of_step(row, "run"), span.step
    data = row.get(database.values) if database.values else None
    before, after = states(database, run, superstep, cache, settled)
    bindings = tuple(_bindings(row, before))
    node = {"run_id": run, "superstep": superstep, "node_name": span.name}
    slot = _row_of(database, "pause_slots", **node)
    attributes = {name: value for name, value in decoded(row).items() if name != database.values}
    if inherited := {name: write.value for name, write in before.items() if write.inherited}:
        attributes["inherited_state"] = inherited
    rows = {
        "pause_slot": slot,
        "pending_node": _row_of(database, "pending_nodes", **node),
        "attempt_series": _row_of(database, "attempt_series", id=row.get("attempt_series_id")),
    }
    attributes |= {name: other for name, other in rows.items() if other}
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


def _row_of(database: Database, table: str, **keys: Any) -> Row:
    """The first row of a table with those values, decoded; an empty one where there is none."""
    if not database.has(table, *keys):
        return {}
    where = " AND ".join(f"{name} = ?" for name in keys)
    rows = database.rows(table, f"{where} LIMIT 1", *keys.values())
    return decoded(rows[0]) if rows else {}


# ---- runs


def _child_body(database: Database, run_id: str) -> Body:
    run = database.run_by_id(run_id)
    if run is None:
        raise FormatError(f"run {run_id!r} is no longer in the database")
    return Body(**_fields_of(database, run), links=(Link("run", run=run_id),))


def run_body(
    database: Database, run: RunRow, error: FirstError | None, items: Sequence[RunRow], more: dict[str, Any]
) -> RunBody:
    """The body of a run, with rows of other tables (`more`); `items` are the mapped values."""
    fields = _fields_of(database, run)
    fields["attributes"] |= more
    return RunBody(
        **fields,
        error=None if error is None else Error(error.message, error.type),
        totals=_totals(database, run, items),
        layout="Workflow",
    )


def _fields_of(database: Database, run: RunRow) -> dict[str, Any]:
    """The fields that the body of a run has, and that of its span in another run."""
    row = database.row(database.runs, run.rowid)
    return {
        "input": value_of(row.get(database.inputs or "")),
        "output": _output(database, run),
        "attributes": {name: value for name, value in decoded(row).items() if name != database.inputs},
        "raw": _raw(row),
    }


def more_of_run(database: Database, run_id: str, *, hidden: bool = True) -> Iterator[tuple[str, Any]]:
    """Rows of other tables about a run, and the hidden rows of its steps (`hidden`)."""
    for table, key in _RUN_TABLES.items():
        if database.has(table, key) and (rows := database.rows(table, f"{key} = ? ORDER BY rowid", run_id)):
            yield table, list(map(decoded, rows))
    if database.has_steps and hidden:
        baseline = f"{database.step('run')} = ? AND {database.step('node_name')} = '{BASELINE}'"  # an index finds that
        where = f"rowid IN (SELECT rowid FROM steps WHERE {baseline}) ORDER BY rowid"
        if rows := database.rows("steps", where, run_id):
            yield BASELINE, list(map(decoded, rows))
    if database.has("_schema_version", "version"):
        rows = database.rows("_schema_version", "1")
        yield "_schema_version", [row["version"] for row in rows]


def _output(database: Database, run: RunRow) -> Any:
    """The output of a run, the latest value first, as ``values(run)`` of the checkpointer; None without output.

    A run that failed or still runs has no output.
    """
    if database.values is None or not database.has_steps or run.standing in (Status.ERROR, Status.RUNNING):
        return None
    latest: dict[str, Any] = {}
    for _, _, values in _written(database, run.id):
        for name in values:
            latest.pop(name, None)
        latest.update(values)
    return {name: _value(value) for name, value in reversed(latest.items())} or None


def _totals(database: Database, run: RunRow, items: Sequence[RunRow]) -> tuple[Total, ...]:
    """Declared counts of an ended run next to our own: of steps (inherited ones too), or of the items of a map."""
    declared = {
        name: count
        for name, count in (("node_count", run.node_count), ("error_count", run.error_count))
        if isinstance(count, int | float)
    }
    if not declared or run.standing is Status.RUNNING:  # they are written when it ends
        return ()
    if items:
        counted = {"node_count": len(items), "error_count": sum(item.failed for item in items)}
    elif database.has_steps:
        own, ancestors = steps_of(database, run.id)[run.id], database.ancestors_of(run)[0]
        inherited = [steps_of(database, ancestor.id, last)[ancestor.id].steps for ancestor, last in ancestors]
        counted = {"node_count": own.steps + sum(inherited), "error_count": own.failed}
    else:
        return ()
    return tuple(Total(name, count, counted[name]) for name, count in declared.items())


# ---- state


Writer = tuple[Any, Any, Any, int]
"""Run, superstep, node name and rowid of the row that wrote a value. A tuple: a long run has very many."""
Rank = tuple[Any, ...]
"""Position of a row in the checkpointer's order."""


class Write(msgspec.Struct, frozen=True):
    """The value of a name at some moment, and the span that wrote it (None: an input of the run)."""

    value: Any
    writer: str | None = None
    inherited: bool = False


class Fold:
    """The values of a run's names before and after a superstep; advancing costs only the rows in between.

    Rows are given by superstep, and folded in the order of the checkpointer: of two rows that write one name the later
    one in that order wins, whichever is met first.
    """

    def __init__(self, database: Database, run_id: str) -> None:
        self.run_id = run_id
        self.superstep: int | None = None
        """Up to which it was folded; None at the start."""
        self.values: dict[str, Any] = {}
        self.writers: dict[str, Writer | None] = {}
        self.after: dict[str, Any] = {}
        self._before: dict[str, Rank] = {}
        self._upto: dict[str, Rank] = {}
        run = database.run_by_id(run_id)
        if run is not None:
            self._inherit(database, run)

    def _inherit(self, database: Database, run: RunRow) -> None:
        """The initial values: the inputs, and the values that a fork inherited."""
        given: dict[str, Any] = {}
        for ancestor, last in [*database.ancestors_of(run)[0], (run, -1)]:
            inputs = inputs_of(database, ancestor)
            for name, value in inputs.items() if isinstance(inputs, dict) else ():
                if name not in given or given[name] != value:  # a fork restates the inputs that it did not change
                    given[name] = self.values[name] = value
                    self.writers[name] = None
            if ancestor.rowid != run.rowid:
                for writer, _, values in _written(database, ancestor.id, last=last):
                    self.values.update(values)
                    self.writers.update(dict.fromkeys(values, writer))

    def advanced(self, database: Database, superstep: int | None) -> Fold:
        """The fold up to a later superstep. None: to the end, whatever supersteps are."""
        if superstep is not None and superstep == self.superstep:
            return self
        fold = copy(self)
        fold.values, fold.writers, fold.after = dict(self.values), dict(self.writers), dict(self.after)
        fold._before, fold._upto = dict(self._before), dict(self._upto)
        fold._advance(database, superstep)
        return fold

    def _advance(self, database: Database, superstep: int | None) -> None:
        first = self.superstep
        began = None if superstep is None else superstep - 1
        rows = _written(database, self.run_id, None if first is None else first - 1, superstep, ordered=False)
        for writer, rank, values in rows:
            at = writer[1]
            if first is None or at > first:
                for name in _later(self._upto, rank, values):
                    self.after[name] = values[name]
            if began is None or at <= began:
                for name in _later(self._before, rank, values):
                    self.values[name] = values[name]
                    self.writers[name] = writer
        self.superstep = superstep


def _later(ranks: dict[str, Rank], rank: Rank, names: Iterable[str]) -> Iterator[str]:
    """The names that no later row has written yet."""
    for name in names:
        if name not in ranks or ranks[name] <= rank:
            ranks[name] = rank
            yield name


Folds = dict[tuple[str, object], list[Fold]]
"""By run, and the version of the database or (folds of settled rows) the epoch for which they are valid."""


def states(
    database: Database,
    run_id: str,
    superstep: int | None,
    cache: dict[str, Any] | None = None,
    settled: Settled | None = None,
) -> tuple[dict[str, Write], dict[str, Any] | None]:
    """(Value of every name before `superstep`, accumulated state after it: None if the database has no values).

    The folds in `cache` let the next call for a later superstep continue from there, with `settled` also in a later
    version of the database.
    """
    if database.values is None:
        return {}, None
    cache = {} if cache is None else cache
    version = version_of(database.connection)
    folds: Folds = cache.pop(_FOLDS, {})  # another thread that comes meanwhile makes its own
    recent = [] if version is None else folds.pop((run_id, version), [])
    fold = _fold_before(recent, superstep)
    is_near = fold is not None and superstep is not None and superstep - (fold.superstep or 0) <= NEAR
    if settled is not None and superstep is not None and not is_near:
        fold = _settled_fold(database, folds, (run_id, settled), superstep - UNSETTLED)
    fold = (fold or Fold(database, run_id)).advanced(database, superstep)
    folds[run_id, version] = [fold, *(other for other in recent if other is not fold)][:MAX_FOLDS]
    cache[_FOLDS] = dict([*folds.items()][-MAX_FOLDS:])
    before = {name: _write(database, _value(value), fold.writers[name], run_id) for name, value in fold.values.items()}
    for name, write in _answers(database, run_id, superstep):
        before.setdefault(name, write)  # unless a step put it out as well
    return before, {name: _value(value) for name, value in fold.after.items()}


def _settled_fold(database: Database, known: Folds, key: tuple[str, Settled], superstep: int) -> Fold:
    """The fold of settled rows up to a superstep.

    A long way there is divided again and again, and each part's fold is cached: the cursor may move up next.
    """
    folds, run_id = known.pop(key, []), key[0]
    fold = nearest = _fold_before(folds, superstep)
    way = superstep - ((fold.superstep or 0) if fold is not None else 0)
    parts = []
    while (way := way >> 1) >= NEAR:
        parts.append(superstep - way)
    if not parts and nearest is not None:  # it moves on
        folds = [other for other in folds if other is not nearest]
    fold = fold or Fold(database, run_id)
    for part in (*parts, superstep):
        fold = fold.advanced(database, part)
        folds = [*folds, fold]
    known[key] = sorted(folds, key=lambda other: abs(superstep - (other.superstep or 0)))[:MAX_FOLDS]
    return fold


def _fold_before(folds: list[Fold], superstep: int | None) -> Fold | None:
    """The fold that is nearest below a superstep."""
    ends = [(fold.superstep, fold) for fold in folds if fold.superstep is not None]
    below = [(end, fold) for end, fold in ends if superstep is not None and end <= superstep]
    return max(below, key=itemgetter(0), default=(0, None))[1]


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
    """The answers to the run's questions before `superstep`, by the names of the answers."""
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
    *,
    ordered: bool = True,
) -> Iterator[tuple[Writer, Rank, dict[str, Any]]]:
    """The rows of a run after superstep `first` and up to `last` that hold values, as they are written.

    They are in the checkpointer's order if `ordered`: SQLite sorts them with their values.
    """
    step, order = database.step, _order(database)
    bounds = "" if first is None else f" AND {step('superstep')} > {int(first)}"
    bounds += "" if last is None else f" AND {step('superstep')} <= {int(last)}"
    sql = (
        f"SELECT {step('superstep')}, {step('node_name')}, rowid, {quoted(database.values or '')}, {', '.join(order)}"
        f" FROM steps WHERE {step('run')} = ?{bounds}" + (f" ORDER BY {', '.join(order)}" if ordered else "")
    )
    for superstep, node, rowid, data, *ranks in database.connection.execute(sql, (run_id,)):
        values = _undecoded(data)
        if isinstance(values, dict) and not isinstance(values, Opaque):
            yield (run_id, superstep, node, rowid), tuple(map(sortable, ranks)), values


_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _undecoded(data: Any) -> Any:
    """The values of a row as they are written: few of them count."""
    try:
        return _parts(data)
    except (TypeError, ValueError, RecursionError):
        return value_of(data)


def _value(value: Any) -> Any:
    return plain(value) if isinstance(value, msgspec.Raw) else value


def _order(database: Database) -> tuple[str, ...]:
    """Schemas 1 and 2 (and the plan document) fold by index, those since 3, which know forks, by time."""
    step = database.step
    if not database.knows_forks:
        return step("index"), "rowid"
    return f"COALESCE({step('completed_at')}, {step('created_at')})", step("created_at"), "rowid"


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
