"""Checkpoint databases of hypergraph, schemas 1 to 6 and the plan document's own: list, read, look up."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

import time
from collections.abc import Iterator
from sqlite3 import Connection, Error
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk, Cursor
from tracetui.formats.hypergraph.body import body_of, more_of_run, run_body
from tracetui.formats.hypergraph.deep import tallies
from tracetui.formats.hypergraph.follow import Follower
from tracetui.formats.hypergraph.known import pending_of, sides_of
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    RunRow,
    Schema,
    StepRow,
    has_steps,
    run_by_id,
    run_rows,
    schema_of,
)
from tracetui.formats.hypergraph.runs import (
    children_of,
    first_errors,
    header_of,
    items_by_parent,
    last_routes,
    step_counts,
)
from tracetui.formats.hypergraph.spans import Anew, Position, SpanReader, status_of_step
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span, Status
from tracetui.model.build import summary_of
from tracetui.sources.base import KEPT, File
from tracetui.sources.sqlite import is_passing, version_of

PIECE_SECONDS: Final = 0.04


class Counts(msgspec.Struct, frozen=True):
    """What is summed up over all steps of a run: how many there are, how many failed, the last decision."""

    steps: int
    failed: int
    decision: Any = None

    def plus(self, rows: list[StepRow]) -> Counts:
        """With some steps more, in their order."""
        bad = sum(status_of_step(row)[0] is Status.ERROR for row in rows)
        decisions = [row.decision for row in rows if row.decision is not None]
        return Counts(self.steps + len(rows), self.failed + bad, decisions[-1] if decisions else self.decision)


class Reading(msgspec.Struct, frozen=True):
    """A cursor: `run` is the run when reading began."""

    run: RunRow
    position: Position
    """What is still to be read, and what is known of what was."""
    counts: Counts | None = None
    """None while there is something left to read."""
    more: int = 0
    """Hash of the rows about the run in other tables."""
    version: object = None
    """The version of the database all of which was read."""


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
            run.id: header_of(run, errors.get(run.id), items.get(run.id, ()), routes.get(run.id), schema.version)
            for run in runs
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
    try:
        with file.database() as connection:
            connection.execute("BEGIN")  # one state of it for all statements; closing ends it
            return _read(connection, file.path, ref, cursor)
    except (Error, OSError) as error:
        if cursor is None or not is_passing(error):
            raise
        return Chunk(cursor=cursor)  # what was read before stays


def _read(connection: Connection, path: str, ref: RunRef, cursor: Reading | None) -> Chunk:
    version = version_of(connection)
    if cursor is not None and cursor.version == version is not None:
        return Chunk(cursor=cursor)
    chunk = _read_on(connection, path, ref, cursor)
    done = chunk.cursor.counts is not None and (cursor is None or cursor.counts is not None)
    return (
        msgspec.structs.replace(chunk, cursor=msgspec.structs.replace(chunk.cursor, version=version)) if done else chunk
    )


def _read_on(connection: Connection, path: str, ref: RunRef, cursor: Reading | None) -> Chunk:
    schema = schema_of(connection)
    if cursor is not None and cursor.counts is None:
        return _piece(connection, schema, path, cursor)
    run = run_by_id(connection, schema, ref.key or "")
    if run is None:
        raise FormatError("the run is not in the database", f"run {ref.key}")
    if cursor is not None:
        try:
            return _more(connection, schema, path, cursor, run)
        except Anew:
            pass
    first = _piece(connection, schema, path, Reading(run, Position.start(run)))
    header = first.header or header_of(run, None, (), writer=schema.version)
    return msgspec.structs.replace(first, header=header, reset=cursor is not None)


def _more(connection: Connection, schema: Schema, path: str, cursor: Reading, run: RunRow) -> Chunk:
    """What came since everything was read. Raises `Anew`."""
    assert cursor.counts is not None
    follower = Follower(connection, schema, path, cursor.position)
    came, more = follower.advance(run), more_of_run(connection, schema, run.id)
    reader = follower.reader
    if not came and more == cursor.more:
        return Chunk(cursor=Reading(run, reader.position, cursor.counts, more))
    if follower.changed or reader.known.disordered or run.id not in reader.known.tree:
        counts = _counts(connection, schema, run)
    else:
        counts = cursor.counts.plus([row for row in follower.new if row.run == run.id and row.node_name != BASELINE])
    header, body = _whole(connection, schema, run, counts)
    return Chunk(
        spans=reader.spans,
        problems=reader.problems,
        cursor=Reading(run, reader.position, counts, more),
        header=header,
        body=body,
    )


def body(file: File, span: Span) -> Body:
    """Everything about one span."""
    with file.database() as connection:
        return body_of(connection, schema_of(connection), span, file.memo.get(KEPT, {}))


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
        cursor = Reading(reading.run, position)
        return Chunk(spans=reader.spans, problems=reader.problems, cursor=cursor, done=False)
    known = position.known
    known.sides = sides_of(connection, schema, known.tree)
    _, known.pending = pending_of(connection, schema, known.tree, {})
    counts = _counts(connection, schema, reading.run)
    cursor = Reading(reading.run, position, counts, more_of_run(connection, schema, reading.run.id))
    header, body = _whole(connection, schema, reading.run, counts)
    return Chunk(spans=reader.spans, problems=reader.problems, cursor=cursor, header=header, body=body)


def _counts(connection: Connection, schema: Schema, run: RunRow) -> Counts:
    steps, bad = step_counts(connection, schema, run.id) if has_steps(schema) else (0, 0)
    return Counts(steps, bad, last_routes(connection, schema, run.id).get(run.id))


def _whole(connection: Connection, schema: Schema, run: RunRow, counts: Counts) -> tuple[Header, RunBody]:
    error = first_errors(connection, schema, [run]).get(run.id)
    items = items_by_parent(children_of(connection, schema, [run.id])).get(run.id, ())
    body = run_body(connection, schema, run, error, (counts.steps, counts.failed))
    return header_of(run, error, items, counts.decision, schema.version), body
