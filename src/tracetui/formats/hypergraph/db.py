"""Checkpoint databases of hypergraph, schemas 1 to 6 and the plan document's own: list, read, look up."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

import time
from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk, Cursor
from tracetui.formats.hypergraph.body import body_of, run_body
from tracetui.formats.hypergraph.deep import tallies
from tracetui.formats.hypergraph.rows import RunRow, Schema, has_steps, many, run_by_id, run_rows, schema_of
from tracetui.formats.hypergraph.runs import children_of, first_errors, header_of, items_by_parent, last_routes
from tracetui.formats.hypergraph.spans import Position, SpanReader
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import summary_of
from tracetui.sources.base import File, Stat

PIECE_SECONDS: Final = 0.04


class Reading(msgspec.Struct, frozen=True):
    """A cursor: `stat` and `run` are those of the file and the run when reading began."""

    stat: Stat
    run: RunRow
    position: Position
    """What is still to be read."""
    signature: tuple[Any, ...] = ()
    """Counts of the rows that were read, once all were: other counts show that something came."""


def summarize(file: File, name: str, *, deep: bool) -> Iterator[RunSummary | Problem]:
    """Every run of the database, nested ones too. Raises `FormatError` if it has no table of runs."""
    with file.database() as connection:
        schema = schema_of(connection)
        rows = run_rows(connection, schema)
        runs = list({run.id: run for run in reversed(rows)}.values())[::-1]
        yield from _unlisted(connection, schema, file.path, len(runs))
        errors = first_errors(connection, schema, runs)
        items = items_by_parent(runs)
        routes = last_routes(connection, schema) if deep else {}
        headers = {
            run.id: header_of(run, errors.get(run.id), items.get(run.id, ()), routes.get(run.id)) for run in runs
        }
        counted = tallies(connection, schema, file.path, runs, headers) if deep else {}
        modified_at, moving = file.stat.mtime, file.moving
        for run in runs:
            ref = RunRef(name, file.path, run.id)
            yield summary_of(ref, headers[run.id], counted.get(run.id), modified_at=modified_at, moving=moving)


def _unlisted(connection: Connection, schema: Schema, path: str, listed: int) -> Iterator[Problem]:
    (rows,) = connection.execute(f'SELECT count(*) FROM "{schema.runs}"').fetchone()
    if rows > listed:
        yield Problem(path, schema.runs, f"{rows - listed} rows have no id, or one that an earlier row has")


def read(file: File, ref: RunRef, cursor: Cursor) -> Chunk:
    """What is new of one run: everything from the start in pieces, and when its rows have changed, all of it again.

    The first piece has a header, for the rest of it and the body every step is looked at: they come with the last.
    """
    with file.database(follow=cursor is not None) as connection:
        schema = schema_of(connection)
        if isinstance(cursor, Reading) and cursor.position.tasks:
            return _piece(connection, schema, file.path, cursor)
        run = run_by_id(connection, schema, ref.key or "")
        if run is None:
            raise FormatError("the run is not in the database", f"run {ref.key}")
        again = isinstance(cursor, Reading)
        same = again and (file.stat, run) == (cursor.stat, cursor.run)
        if same and _signature(connection, schema, cursor.position.seen) == cursor.signature:
            return Chunk(cursor=cursor)
        first = _piece(connection, schema, file.path, Reading(file.stat, run, Position.start(run)))
        header = first.header or header_of(run, None, ())
        return msgspec.structs.replace(first, header=header, reset=again)


def body(file: File, span: Span) -> Body:
    """Everything about one span."""
    with file.database() as connection:
        return body_of(connection, schema_of(connection), span)


def _piece(connection: Connection, schema: Schema, path: str, reading: Reading) -> Chunk:
    """Read on for about `PIECE_SECONDS`."""
    reader = SpanReader(connection, schema, path, reading.position)
    deadline = time.monotonic() + PIECE_SECONDS
    while not reader.done:
        reader.advance()
        if time.monotonic() >= deadline:
            break
    position = reader.position
    if not reader.done:
        cursor = Reading(reading.stat, reading.run, position)
        return Chunk(spans=reader.spans, problems=reader.problems, cursor=cursor, done=False)
    cursor = Reading(reading.stat, reading.run, position, _signature(connection, schema, position.seen))
    header, body = _whole(connection, schema, reading.run)
    return Chunk(spans=reader.spans, problems=reader.problems, cursor=cursor, header=header, body=body)


def _whole(connection: Connection, schema: Schema, run: RunRow) -> tuple[Header, RunBody]:
    error = first_errors(connection, schema, [run]).get(run.id)
    items = items_by_parent(children_of(connection, schema, [run.id])).get(run.id, ())
    decision = last_routes(connection, schema, run.id).get(run.id)
    return header_of(run, error, items, decision), run_body(connection, schema, run, error)


def _signature(connection: Connection, schema: Schema, seen: frozenset[str]) -> tuple[Any, ...]:
    """Counts that change with the rows of some runs."""
    runs = sorted(seen)
    found: list[tuple[Any, ...]] = []
    if has_steps(schema):
        done, run = schema.step("completed_at"), schema.step("run")
        sql = f"SELECT count(*), count({done}), max(rowid) FROM steps WHERE {run} IN ({{keys}})"
        found += many(connection, sql, runs)
    sql = f'SELECT count(*), count({schema.run("completed_at")}) FROM "{schema.runs}" WHERE'
    found += many(connection, f"{sql} {schema.run('id')} IN ({{keys}})", runs)
    found += many(connection, f"{sql} {schema.run('parent')} IN ({{keys}})", runs)
    for table, column in (("pending_nodes", "rowid"), ("pause_slots", "settled_at"), ("run_updates", "rowid")):
        if "run_id" in schema.columns.get(table, ()):
            found += many(connection, f"SELECT count(*), count({column}) FROM {table} WHERE run_id IN ({{keys}})", runs)
    if "series_id" in schema.columns.get("attempt_records", ()) and "run_id" in schema.columns.get(
        "attempt_series", ()
    ):
        series = "SELECT id FROM attempt_series WHERE run_id IN ({keys})"
        sql = f"SELECT count(*), count(completed_at) FROM attempt_records WHERE series_id IN ({series})"
        found += many(connection, sql, runs)
    return tuple(found)
