"""Rows of a hypergraph checkpoint database, whichever schema wrote them.

Supports six schemas, and the names of the project's own plan document; a migrated database has its columns in another
order than a new one. So nothing is assumed: the columns that are there are asked for by name, the others are None.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from sqlite3 import Connection
from typing import Any, Final

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.scalars import layout, moment, number, text
from tracetui.formats.sqlite import many, quoted
from tracetui.model import Operation, Status, StatusSource, status_of

BASELINE: Final = "__retained_state__"
"""Node name of the hidden row with the state of steps deleted by a retention policy."""
NO_STEPS: Final = "the database has no table `steps` that names its runs"
INPUTS_HEAD: Final = 600
"""Bytes of a run's inputs that its row carries."""
ERROR_HEAD: Final = 4000
"""Characters of an error that a span carries; its body has all of it."""

_RUNS: Final = ("runs", "workflows")
_TABLES: Final = frozenset(
    {
        *(*_RUNS, "steps", "attempt_series", "attempt_records", "pending_nodes", "pause_slots", "run_updates"),
        *("host_submissions", "host_commands", "host_batches", "_schema_version"),
    }
)
_JSON: Final = frozenset(
    {
        *("config", "decision", "input_versions", "pause", "inputs", "values"),
        *("payload", "question", "answer_schema", "options", "answer"),
    }
)
"""Text columns that hold JSON, by the names that they have there."""
_OTHER_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "parent": ("parent_run_id", "parent_workflow_id"),
    "run": ("run_id", "workflow_id"),
    "index": ("step_index", "idx", "index"),
    "child": ("child_run_id", "child_workflow_id"),
    "series": ("attempt_series_id",),
    "inputs": ("inputs_data", "inputs"),
    "values": ("values_data", "values"),
}
"""Our name of a column → its names in the schemas, where they are not ours."""
_ROUTES: Final = ("RouteNode", "IfElseNode", "GateNode")
_EXPLICIT: Final = StatusSource.EXPLICIT
_NODE, _ROUTE, _WORKFLOW = Operation.NODE, Operation.ROUTE, Operation.INVOKE_WORKFLOW

Row = dict[str, Any]
"""All columns of one row, by their own names."""


class RunRow(msgspec.Struct, frozen=True, gc=False):
    """The fields of one run for every stage. All but `rowid` and `id` may have any type, because SQLite has none."""

    rowid: int
    id: str
    graph_name: Any = None
    status: Any = None
    duration_ms: Any = None
    node_count: Any = None
    error_count: Any = None
    created_at: Any = None
    completed_at: Any = None
    parent: Any = None
    forked_from: Any = None
    fork_superstep: Any = None
    retry_of: Any = None
    inputs: Any = None
    """The first `INPUTS_HEAD` bytes of the run's inputs."""

    @property
    def standing(self) -> Status:
        """The status by the run's own word."""
        return standing(self.status)[0]

    @property
    def failed(self) -> bool:
        """True if the run's own status is failed."""
        return self.standing is Status.ERROR

    @property
    def took(self) -> float | None:
        """Milliseconds that the run took: as recorded (schema 2 on), else from its two times."""
        recorded = number(self.duration_ms)
        return elapsed(self.created_at, self.completed_at) if recorded is None else recorded

    @property
    def item(self) -> int | None:
        """Which item of a map the run is: its id is then ``<parent>/<i>``."""
        head, slash, last = self.id.rpartition("/")
        is_item = slash and head == self.parent and last.isascii() and last.isdigit() and len(last) < 10
        return int(last) if is_item else None

    @property
    def label(self) -> str | None:
        """``[item 12]`` for an item of a map, None for any other run."""
        item = self.item
        return None if item is None else f"[item {item}]"

    @property
    def order(self) -> tuple[int, int]:
        """The order among the runs of one parent: items by their number, all else after them."""
        item = self.item
        return (1 << 40 if item is None else item), self.rowid


class StepRow(msgspec.Struct, frozen=True, gc=False):
    """One step without its values. Every field but `rowid` may hold anything."""

    rowid: int
    run: Any = None
    index: Any = None
    superstep: Any = None
    node_name: Any = None
    node_type: Any = None
    status: Any = None
    duration_ms: Any = None
    cached: Any = None
    error: Any = None
    """Its first `ERROR_HEAD` characters."""
    decision: Any = None
    partial: Any = None
    created_at: Any = None
    completed_at: Any = None
    child: Any = None
    series: Any = None

    @property
    def name(self) -> str:
        """Name of the span."""
        return name_of(self.node_name)

    @property
    def operation(self) -> Operation:
        """The operation of the step."""
        if self.decision is not None or self.node_type in _ROUTES:
            return _ROUTE
        return _WORKFLOW if self.node_type == "GraphNode" or text(self.child) is not None else _NODE

    @property
    def outcome(self) -> tuple[Status, str | None, StatusSource | None]:
        """(Status, the row's own word, where the status comes from)."""
        status, word, source = standing(self.status)
        if status is Status.UNKNOWN and text(self.error):
            return Status.ERROR, word, _EXPLICIT
        return status, word, source


def name_of(node: Any) -> str:
    """Name of the spans of a node."""
    return text(node) or text_id(node or "step")


def elapsed(start: Any, end: Any) -> float | None:
    """Milliseconds between two recorded times, none of them negative."""
    began, ended = moment(start), moment(end)
    return None if began is None or ended is None else max(0.0, ended - began) * 1000


def standing(value: Any) -> tuple[Status, str | None, StatusSource | None]:
    """(Status, its word, status source) of a status column."""
    word = text(value)
    return (Status.UNKNOWN, None, None) if word is None else (status_of(word), word, _EXPLICIT)


Ancestor = tuple[RunRow, int | None]
"""A run whose steps are inherited, and the last inherited superstep (None: all)."""
_RUN_FIELDS: Final = RunRow.__struct_fields__[1:-1]
_STEP_FIELDS: Final = StepRow.__struct_fields__[1:]


class Database:
    """A checkpoint database: which tables and columns it has, and the rows in them."""

    def __init__(self, connection: Connection) -> None:
        """Look at the tables. Raises `FormatError` if there is no table of runs."""
        self.connection = connection
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
        columns = {name: self._columns(name) for (name,) in tables if isinstance(name, str) and name in _TABLES}
        runs = next((name for name in _RUNS if "id" in columns.get(name, ())), None)
        if runs is None:
            raise FormatError("the database has no table `runs` or `workflows` with ids")
        steps = columns.get("steps", ())
        self.columns: dict[str, tuple[str, ...]] = columns
        """All columns of every table that we know of, in their own order."""
        self.runs: str = runs
        """The table of runs."""
        self._run_names = {ours: name for ours in _RUN_FIELDS if (name := _present(ours, columns[runs]))}
        self._step_names = {ours: name for ours in _STEP_FIELDS if (name := _present(ours, steps))}
        self.inputs, self.values = _present("inputs", columns[runs]), _present("values", steps)
        self.has_steps = "run" in self._step_names
        """False where the table of steps is absent, a view, or names no runs."""
        self._unique = self._is_unique()
        self.public = f"{self.step('node_name')} IS NOT '{BASELINE}'"
        """The condition that leaves out hidden rows."""
        inputs = "NULL" if self.inputs is None else f"substr({quoted(self.inputs)}, 1, {INPUTS_HEAD})"
        self._run_select = f"SELECT rowid, {', '.join(map(self.run, _RUN_FIELDS))}, {inputs} FROM {quoted(runs)} "
        fields = {name: self.step(name) for name in _STEP_FIELDS}
        fields["error"] = f"substr({fields['error']}, 1, {ERROR_HEAD})"
        self.step_columns = f"rowid, {', '.join(fields.values())}"
        """The columns of a `StepRow`."""

    # ---- tables

    def run(self, name: str) -> str:
        """One column of the table of runs, quoted; ``NULL`` where this schema has none."""
        return quoted(self._run_names[name]) if name in self._run_names else "NULL"

    def step(self, name: str) -> str:
        """One column of ``steps``, quoted; ``NULL`` where this schema has none."""
        return quoted(self._step_names[name]) if name in self._step_names else "NULL"

    def of_step(self, row: Row, name: str) -> Any:
        """One column of a row of ``steps``; None where this schema has none."""
        return row.get(self._step_names.get(name, ""))

    def has(self, table: str, *names: str) -> bool:
        """Whether a table has all of these columns."""
        return set(names) <= set(self.columns.get(table, ()))

    @cached_property
    def version(self) -> str | None:
        """The schema's own number, ``schema 6``; the first one has none."""
        if not self.has("_schema_version", "version"):
            return None
        (version,) = self.connection.execute("SELECT max(version) FROM _schema_version").fetchone()
        return layout(version)

    @property
    def knows_forks(self) -> bool:
        """Whether the schema is 3 or later."""
        return "forked_from" in self._run_names

    def span_id(self, run: Any, superstep: Any, node: Any, rowid: int) -> str:
        """Id of the span of a step row: ``rag-001:2:generate``, the same before and after the step has a row."""
        if self._unique and isinstance(superstep, int) and isinstance(node, str) and "\ufffd" not in node:
            return f"{text_id(run)}:{superstep}:{node}"
        return f"{text_id(run)}:#{rowid}"

    def _columns(self, table: str) -> tuple[str, ...]:
        return tuple(row[1] for row in self.connection.execute(f"PRAGMA table_info({quoted(table)})").fetchall())

    def _is_unique(self) -> bool:
        """True if a constraint makes (run, superstep, node name) unique, as in every supported schema."""
        wanted = {self._step_names.get(name) for name in ("run", "superstep", "node_name")}
        for index in self.connection.execute("PRAGMA index_list(steps)").fetchall():
            is_unique, is_partial = index[2], index[4]
            if is_unique and not is_partial:
                columns = self.connection.execute(f"PRAGMA index_info({quoted(index[1])})").fetchall()
                if {row[2] for row in columns} <= wanted:
                    return True
        return False

    # ---- runs

    def all_runs(self) -> list[RunRow]:
        """Runs in the order in which they were made; those without an id are left out."""
        return _runs(self.connection.execute(f"{self._run_select} ORDER BY rowid").fetchall())

    def runs_by_id(self, ids: Iterable[str]) -> dict[str, RunRow]:
        """Those of the runs that exist, by id; of several with one id, the first."""
        rows = many(self.connection, self._run_select + f"WHERE {self.run('id')} IN ({{keys}})", ids)
        return {run.id: run for run in reversed(_runs(rows))}

    def run_by_id(self, run_id: str) -> RunRow | None:
        """The run of that id, or None; also finds an id that is not stored as text."""
        run = self.runs_by_id([run_id]).get(run_id)
        return run or next((row for row in self.all_runs() if row.id == run_id), None)

    def children_of(self, parents: Iterable[str]) -> list[RunRow]:
        """The runs that name one of `parents` as their parent, items of a map in their order."""
        if "parent" not in self._run_names:
            return []
        rows = many(self.connection, self._run_select + f"WHERE {self.run('parent')} IN ({{keys}})", parents)
        return sorted(_runs(rows), key=lambda run: run.order)

    def ancestors_of(self, run: RunRow) -> tuple[list[Ancestor], str | None]:
        """The runs from which a fork or retry inherited steps, oldest first, and the id of the one that is missing."""
        ancestors: list[Ancestor] = []
        seen = {run.id}
        bound: int | None = None
        while (source := text(run.forked_from)) is not None and source not in seen:
            seen.add(source)
            here = run.fork_superstep if isinstance(run.fork_superstep, int) else None
            bound = here if bound is None else bound if here is None else min(bound, here)
            ancestor = self.runs_by_id([source]).get(source)
            if ancestor is None:
                return ancestors[::-1], source
            ancestors.append((ancestor, bound))
            run = ancestor
        return ancestors[::-1], None

    # ---- rows of any table

    def rows(self, table: str, where: str, *values: Any) -> list[Row]:
        """All columns of some rows."""
        names = self.columns.get(table, ())
        sql = f"SELECT {', '.join(map(quoted, names))} FROM {quoted(table)} WHERE {where}"
        return [dict(zip(names, row, strict=True)) for row in self.connection.execute(sql, values).fetchall()]

    def row(self, table: str, rowid: int) -> Row:
        """All columns of one row. Raises `FormatError` if it is gone."""
        rows = self.rows(table, "rowid = ?", rowid) if table in self.columns else []
        if not rows:
            raise FormatError("the row is no longer in the database", f"{table} rowid {rowid}")
        return rows[0]

    def attempts(self, series: Iterable[Any]) -> list[Row]:
        """Records of the attempts of some series, by series and number, with their ``rowid``."""
        names = self.columns.get("attempt_records", ())
        if "series_id" not in names:
            return []
        order = ", ".join(name for name in ("series_id", "attempt_number", "rowid") if name in (*names, "rowid"))
        sql = f"SELECT rowid, {', '.join(map(quoted, names))} FROM attempt_records WHERE series_id IN ({{keys}})"
        rows = many(self.connection, f"{sql} ORDER BY {order}", series)
        return [dict(zip(("rowid", *names), row, strict=True)) for row in rows]


def _runs(rows: Iterable[Sequence[Any]]) -> list[RunRow]:
    return [RunRow(row[0], text_id(row[1]), *row[2:]) for row in rows if row[1] is not None]


def _present(ours: str, columns: Sequence[str]) -> str | None:
    """The name that the column of our name has among `columns`, None if there is none."""
    return next((name for name in _OTHER_NAMES.get(ours, (ours,)) if name in columns), None)


def text_id(value: Any) -> str:
    """An id of any type as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)


def sortable(value: Any) -> tuple[int, Any]:
    """A key that sorts values of any type as SQLite does."""
    return (
        0 if value is None else 1 if isinstance(value, int | float) else 2 if isinstance(value, str) else 3
    ), value or 0


class Opaque(dict[str, str]):
    """A placeholder for a value that is not JSON: ``{"opaque": "812 bytes"}``."""


def value_of(data: Any) -> Any:
    """A stored value: decoded where it is JSON, else described. Nothing is ever unpickled."""
    if isinstance(data, bytes):
        try:
            return decode(data)[0]
        except FormatError:
            return Opaque(opaque=f"{len(data)} bytes")
    return json_of(data)


def json_of(data: Any) -> Any:
    """The JSON value of a text column, or the text itself if it is not JSON."""
    if not isinstance(data, str):
        return data
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return decode(data.encode("utf-8", "surrogatepass"))[0]
    except FormatError:
        return data


def decoded(row: Row) -> Row:
    """A row with the JSON of its JSON columns decoded."""
    return {
        name: value_of(value) if name in _JSON or isinstance(value, bytes) else value for name, value in row.items()
    }


class Epoch:
    """Counts the changes of settled rows that the reader of a run has found; its steps share it in `Span.at`.

    A fold of settled rows is valid in later versions of the database while this stays the same.
    """

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0

    def __repr__(self) -> str:
        return "Epoch"  # steps with different ones are compared as text by the conformance suite
