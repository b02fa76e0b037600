"""Rows of a hypergraph checkpoint database, whichever schema wrote them.

Six schemas are known, and the names of the project's own plan document; a migrated database has its columns in another
order than a new one. So nothing is assumed: the columns that are there are asked for by name, the others are None.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any, Final

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.scalars import layout

RUN_TABLES: Final = ("runs", "workflows")
BASELINE: Final = "__retained_state__"
"""Node name of the hidden row that holds the state of steps that a retention policy deleted."""

RUN_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id",),
    "graph_name": ("graph_name",),
    "status": ("status",),
    "duration_ms": ("duration_ms",),
    "node_count": ("node_count",),
    "error_count": ("error_count",),
    "created_at": ("created_at",),
    "completed_at": ("completed_at",),
    "parent": ("parent_run_id", "parent_workflow_id"),
    "forked_from": ("forked_from",),
    "fork_superstep": ("fork_superstep",),
    "retry_of": ("retry_of",),
}
STEP_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "run": ("run_id", "workflow_id"),
    "index": ("step_index", "idx", "index"),
    "superstep": ("superstep",),
    "node_name": ("node_name",),
    "node_type": ("node_type",),
    "status": ("status",),
    "duration_ms": ("duration_ms",),
    "cached": ("cached",),
    "error": ("error",),
    "decision": ("decision",),
    "partial": ("partial",),
    "created_at": ("created_at",),
    "completed_at": ("completed_at",),
    "child": ("child_run_id", "child_workflow_id"),
    "series": ("attempt_series_id",),
}
INPUTS: Final = ("inputs_data", "inputs")
VALUES: Final = ("values_data", "values")
JSON_COLUMNS: Final = frozenset(
    {
        *("config", "decision", "input_versions", "pause", "inputs", "values"),
        *("payload", "question", "answer_schema", "options", "answer"),
    }
)
"""Text columns that hold JSON, by the names that they have there."""
IN_CHUNK: Final = 400
"""Values in one ``IN (…)``: some builds of SQLite take 999 at most."""


class RunRow(msgspec.Struct, frozen=True, gc=False):
    """What every stage needs of one run. Every field but `rowid` and `id` may hold anything: SQLite has no types."""

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
    decision: Any = None
    partial: Any = None
    created_at: Any = None
    completed_at: Any = None
    child: Any = None
    series: Any = None


INPUTS_HEAD: Final = 600
ERROR_HEAD: Final = 4000
"""Characters of an error that a span carries; its body has all of it."""


class Schema(msgspec.Struct, frozen=True):
    """Which tables and columns one database has."""

    runs: str
    run_names: dict[str, str]
    """Our name of a column → its name there."""
    step_names: dict[str, str]
    columns: dict[str, tuple[str, ...]]
    """All columns of every table that we know of, in their own order."""
    inputs: str | None
    values: str | None
    unique: bool
    """True if (run, superstep, node) tells one step from another, as every known schema promises."""
    version: str | None = None
    """The schema's own number, ``schema 6``; the first one has none."""

    @property
    def run_select(self) -> str:
        """A SELECT of `RunRow`s, to be followed by WHERE."""
        names = [_column(self.run_names, name) for name in RUN_COLUMNS]
        inputs = "NULL" if self.inputs is None else f"substr({quoted(self.inputs)}, 1, {INPUTS_HEAD})"
        return f"SELECT rowid, {', '.join(names)}, {inputs} FROM {quoted(self.runs)} "

    @property
    def step_select(self) -> str:
        """A SELECT of `StepRow`s, to be followed by WHERE."""
        names = {name: _column(self.step_names, name) for name in STEP_COLUMNS}
        names["error"] = f"substr({names['error']}, 1, {ERROR_HEAD})"
        return f"SELECT rowid, {', '.join(names.values())} FROM steps "

    def run(self, name: str) -> str:
        """One column of the table of runs, quoted; ``NULL`` where this schema has none."""
        return _column(self.run_names, name)

    def step(self, name: str) -> str:
        """One column of ``steps``, quoted; ``NULL`` where this schema has none."""
        return _column(self.step_names, name)

    def span_id(self, run: Any, superstep: Any, node: Any, rowid: int) -> str:
        """Id of the span of a step row: ``rag-001:2:generate``, the same before and after the step has a row."""
        if self.unique and isinstance(superstep, int) and isinstance(node, str) and "\ufffd" not in node:
            return f"{text_id(run)}:{superstep}:{node}"
        return f"{text_id(run)}:#{rowid}"

    @property
    def public(self) -> str:
        """The condition that leaves out hidden rows."""
        return f"{self.step('node_name')} IS NOT '{BASELINE}'"


def schema_of(connection: Connection) -> Schema:
    """Look at the tables of a database. Raises `FormatError` if there is no table of runs."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    tables = [name for (name,) in found if isinstance(name, str)]
    columns = {name: _columns_of(connection, name) for name in tables if name in _KNOWN}
    runs = next((name for name in RUN_TABLES if "id" in columns.get(name, ())), None)
    if runs is None:
        raise FormatError("the database has no table `runs` or `workflows` with ids")
    steps = columns.get("steps", ())
    return Schema(
        runs=runs,
        run_names=_present(RUN_COLUMNS, columns[runs]),
        step_names=_present(STEP_COLUMNS, steps),
        columns=columns,
        inputs=next((name for name in INPUTS if name in columns[runs]), None),
        values=next((name for name in VALUES if name in steps), None),
        unique=_is_unique(connection, _present(STEP_COLUMNS, steps)),
        version=_version_of(connection, columns.get("_schema_version", ())),
    )


def _version_of(connection: Connection, columns: tuple[str, ...]) -> str | None:
    if "version" not in columns:
        return None
    (version,) = connection.execute("SELECT max(version) FROM _schema_version").fetchone()
    return layout(version)


_KNOWN: Final = frozenset(
    {
        *(*RUN_TABLES, "steps", "attempt_series", "attempt_records", "pending_nodes", "pause_slots", "run_updates"),
        *("host_submissions", "host_commands", "host_batches", "_schema_version"),
    }
)


def has_steps(schema: Schema) -> bool:
    """False where the table of steps is absent, a view, or names no runs."""
    return "run" in schema.step_names


def run_rows(connection: Connection, schema: Schema, where: str = "", values: Iterable[Any] = ()) -> list[RunRow]:
    """Runs in the order in which they were made; those without an id are left out."""
    rows = connection.execute(f"{schema.run_select} {where} ORDER BY rowid", tuple(values)).fetchall()
    return [RunRow(row[0], text_id(row[1]), *row[2:]) for row in rows if row[1] is not None]


def runs_by_id(connection: Connection, schema: Schema, ids: Iterable[str]) -> dict[str, RunRow]:
    """Those of the runs that exist, by id; of several with one id, the first."""
    found: dict[str, RunRow] = {}
    for row in many(connection, schema.run_select + f"WHERE {schema.run('id')} IN ({{keys}})", ids):
        found.setdefault(text_id(row[1]), RunRow(row[0], text_id(row[1]), *row[2:]))
    return found


def run_by_id(connection: Connection, schema: Schema, run_id: str) -> RunRow | None:
    """The run of that id, or None; also finds an id that is not stored as text."""
    found = runs_by_id(connection, schema, [run_id]).get(run_id)
    if found is not None:
        return found
    return next((row for row in run_rows(connection, schema) if row.id == run_id), None)


def many(connection: Connection, sql: str, keys: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of a statement whose ``{keys}`` is filled with up to `IN_CHUNK` keys at a time."""
    waiting = list(keys)
    for start in range(0, len(waiting), IN_CHUNK):
        part = waiting[start : start + IN_CHUNK]
        yield from connection.execute(sql.format(keys=", ".join("?" * len(part))), part).fetchall()


def quoted(name: str) -> str:
    """An SQL identifier, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def text_id(value: Any) -> str:
    """An id as text, whatever the database holds."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)


def integer(value: Any) -> int | None:
    """A whole number, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def timestamp(value: Any) -> tuple[float | None, bool]:
    """(Seconds since the epoch, True if the text names a time zone) of an ISO 8601 time; (None, True) for no time."""
    if not isinstance(value, str):
        return None, True
    try:
        parsed = datetime.fromisoformat(value)
        zoned = parsed.tzinfo is not None
        return (parsed if zoned else parsed.replace(tzinfo=UTC)).timestamp(), zoned
    except (ValueError, OverflowError):
        return None, True


class Opaque(dict[str, str]):
    """What stands for a value that is not JSON: ``{"opaque": "812 bytes"}``."""


def value_of(data: Any) -> Any:
    """A stored value: decoded where it is JSON, else described. Nothing is ever unpickled."""
    if isinstance(data, bytes):
        try:
            return decode(data)[0]
        except FormatError:
            return Opaque(opaque=f"{len(data)} bytes")
    return json_of(data)


def json_of(data: Any) -> Any:
    """JSON that a text column holds: its value, or the text itself where it is none."""
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


def _columns_of(connection: Connection, table: str) -> tuple[str, ...]:
    rows = connection.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
    return tuple(row[1] for row in rows)


def _is_unique(connection: Connection, names: dict[str, str]) -> bool:
    """True if the database itself keeps (run, superstep, node name) unique."""
    wanted = {names.get("run"), names.get("superstep"), names.get("node_name")}
    for index in connection.execute("PRAGMA index_list(steps)").fetchall():
        is_unique, is_partial = index[2], index[4]
        if is_unique and not is_partial:
            columns = {row[2] for row in connection.execute(f"PRAGMA index_info({quoted(index[1])})").fetchall()}
            if columns <= wanted:
                return True
    return False


def _present(wanted: dict[str, tuple[str, ...]], there: tuple[str, ...]) -> dict[str, str]:
    return {
        ours: name for ours, names in wanted.items() for name in [next((n for n in names if n in there), None)] if name
    }


def _column(names: dict[str, str], name: str) -> str:
    return quoted(names[name]) if name in names else "NULL"
