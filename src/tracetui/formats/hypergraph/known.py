"""What is remembered of a run of a database that was read, to tell later what came and what changed."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.formats.hypergraph.rows import RunRow, Schema, StepRow, has_steps, integer, many, quoted

PAGE_ROWS: Final = 512
"""Numbers of rows that are compared together."""
LATEST: Final = 64
"""Nodes that may be pending at a time; earlier ones are looked at only when rows are gone."""

Page = tuple[Any, ...]
"""Sums over the steps of a run in one page: first what they are (`IDENTITY`), then what they hold."""
IDENTITY: Final = slice(0, 4)
"""How many they are, their numbers, and the names of their nodes, by which spans are called."""
Side = tuple[Any, int | None, int]
"""Of a row of another table that tells of a step: the run, the superstep, and a hash of all of it."""


class Below(msgspec.Struct, frozen=True):
    """A run of the tree as it was, and the span below which its steps are."""

    run: RunRow
    parent: str | None
    hung: bool
    """No step named it."""


class Pending(msgspec.Struct, frozen=True):
    """A node that was shown as running now."""

    run: str
    node: str
    superstep: int | None


class Known(msgspec.Struct):
    """All that is remembered. A cursor holds one that nobody changes any more."""

    main: str
    """Id of the run that is read."""
    last: int = 0
    """No step row with a higher number was read."""
    steps: int = 0
    tree: dict[str, Below] = {}
    inherited: tuple[tuple[str, int | None], ...] = ()
    """The runs whose steps are inherited, and the last superstep of each that is."""
    absent: str | None = None
    pages: dict[str, dict[int, Page]] = {}
    """By run."""
    sides: dict[tuple[str, int], Side] = {}
    pending: dict[int, Side] = {}
    """By number of their rows, which are as many as steps where nobody deletes them."""
    shown: dict[str, Pending] = {}
    """By id of their spans, in order."""
    tried: set[str] = set()
    """Attempts that were shown below these."""
    hung: dict[str | None, tuple[int, int]] = {}
    """Where runs hang that no step names: the order of the last one there."""
    ends: dict[str, tuple[Any, ...]] = {}
    """By run: the order of its last step."""
    compared: bool = False
    """All rows were compared since the last one came."""
    disordered: bool = False
    """The spans stand in another order than if they were read now."""

    def copy(self) -> Known:
        """One that may be changed."""
        return msgspec.structs.replace(
            self,
            tree=dict(self.tree),
            pages=dict(self.pages),
            shown=dict(self.shown),
            tried=set(self.tried),
            hung=dict(self.hung),
            ends=dict(self.ends),
        )


def order_of(row: StepRow) -> tuple[Any, ...]:
    """The order of steps: by index, which a database may hold as anything."""
    number = row.index if isinstance(row.index, int | float) else None
    return (number is not None, number or 0, row.rowid)


def last_row(connection: Connection, schema: Schema) -> int:
    """The highest number of a step row."""
    if not has_steps(schema):
        return 0
    (last,) = connection.execute("SELECT max(rowid) FROM steps").fetchone()
    return last or 0


def pages_of(connection: Connection, schema: Schema, run_id: str, last: int, first: int = 0) -> dict[int, Page]:
    """Sums over the steps of a run up to row `last`, by page, from page `first` on."""
    step = schema.step
    values = "NULL" if schema.values is None else quoted(schema.values)
    only = f"{step('run')} = ?" if not first else f"+{step('run')} = ? AND rowid >= {first * PAGE_ROWS}"
    sql = (
        f"SELECT rowid / {PAGE_ROWS}, count(*), total(rowid), total(unicode({step('node_name')})),"
        f" total(length({step('node_name')})), total({step('duration_ms')}), total(unicode({step('status')})),"
        f" total(length({values})), count({step('completed_at')}), max({step('completed_at')}), count({step('error')}),"
        f" total(length({step('decision')})), count({step('child')}), total({step('index')})"
        f" FROM steps WHERE {only} AND rowid <= {last} GROUP BY 1"
    )
    return {page: tuple(sums) for page, *sums in connection.execute(sql, (run_id,)).fetchall()}


def pending_of(
    connection: Connection, schema: Schema, runs: Iterable[str], before: dict[int, Side]
) -> tuple[dict[int, Side], dict[int, Side]]:
    """The rows of nodes that are or were pending (those that are new or changed, all that there are).

    Of many only the latest are looked at, and all if there are not as many as there should be.
    """
    if not _tells_steps(schema, "pending_nodes"):
        return {}, {}
    runs = list(runs)
    first = max(before, default=0) - LATEST
    sql = _SIDES.format("pending_nodes")
    late = _pending(connection, f"{sql} AND rowid > {first}" if first > 0 else sql, runs)
    new = {rowid: side for rowid, side in late.items() if before.get(rowid) != side}
    now = before | new
    total = "SELECT count(*), total(rowid) FROM pending_nodes WHERE run_id IN ({keys})"
    if [sum(sums) for sums in zip(*many(connection, total, runs), strict=True)] != [len(now), sum(now)]:
        now = _pending(connection, sql, runs)
        new = {rowid: side for rowid, side in now.items() if before.get(rowid) != side}
        new |= {rowid: side for rowid, side in before.items() if rowid not in now}
    return new, now


def _pending(connection: Connection, sql: str, runs: list[str]) -> dict[int, Side]:
    return {
        rowid: (run, integer(superstep), hash(tuple(row)))
        for rowid, run, superstep, *row in many(connection, sql, runs)
    }


def _tells_steps(schema: Schema, table: str) -> bool:
    return {"run_id", "superstep", "node_name"} <= set(schema.columns.get(table, ()))


_SIDES: Final = "SELECT rowid, run_id, superstep, * FROM {} WHERE run_id IN ({{keys}})"


def sides_of(connection: Connection, schema: Schema, runs: Iterable[str]) -> dict[tuple[str, int], Side]:
    """What other tables hold about the steps of some runs: questions and attempts."""
    found: dict[tuple[str, int], Side] = {}
    runs = list(runs)
    if _tells_steps(schema, "pause_slots"):
        for rowid, run, superstep, *row in many(connection, _SIDES.format("pause_slots"), runs):
            found["pause_slots", rowid] = (run, integer(superstep), hash(tuple(row)))
    series = set(schema.columns.get("attempt_series", ()))
    records = set(schema.columns.get("attempt_records", ()))
    if {"id", "run_id", "committed_superstep"} <= series:
        sql = "SELECT rowid, run_id, committed_superstep, * FROM attempt_series WHERE run_id IN ({keys})"
        for rowid, run, superstep, *row in many(connection, sql, runs):
            found["attempt_series", rowid] = (run, integer(superstep), hash(tuple(row)))
        if {"series_id", "scheduled_superstep"} <= records:
            sql = (
                "SELECT r.rowid, s.run_id, r.scheduled_superstep, r.* FROM attempt_series AS s"
                " JOIN attempt_records AS r ON r.series_id = s.id WHERE s.run_id IN ({keys})"
            )
            for rowid, run, superstep, *row in many(connection, sql, runs):
                found["attempt_records", rowid] = (run, integer(superstep), hash(tuple(row)))
    return found
