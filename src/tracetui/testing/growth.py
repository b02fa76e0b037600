"""Growing files: an incremental reader must always agree with a fresh one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final

from tracetui.formats.base import Format, Reader
from tracetui.formats.sqlite import quoted
from tracetui.model import RunRef, Status, StatusSource
from tracetui.model.run import GOING_ON
from tracetui.sources.local import LocalSource
from tracetui.testing.reading import ALLOWED, Growing, plain, plain_run, read_run, write

LONG_AGO: Final = 1_600_000_000
_TIMES: Final = ("created_at", "started_at", "opened_at")


class Follower:
    """Follows one run as ``tracetui tail`` does: stores spans and bodies by id, clears them on reset."""

    def __init__(self, fmt: Format, ref: RunRef) -> None:
        self._format = fmt
        self._growing = Growing(fmt, ref)
        self._reader: Reader | None = None
        self._spans: dict[str, Any] = {}
        self.ref = ref
        self.resets = 0
        self.given = 0
        """Number of spans returned by all reads."""

    def read(self) -> None:
        """Read everything available; a read error changes nothing."""
        done = False
        while not done:
            with LocalSource().open(self.ref.path) as file:
                try:
                    self._reader = self._reader or self._format.open(file, self.ref)
                    chunk = self._reader.more(file)
                except ALLOWED:
                    return
                if chunk.reset:
                    self.resets += 1
                    self._spans.clear()
                self.given += len(chunk.spans)
                for span in chunk.spans:
                    self._spans[span.id] = {**plain(span), "body": plain(self._format.body(file, self.ref, span))}
            self._growing.take(chunk)
            done = chunk.done

    def check(self, where: str) -> None:
        """Compare with a fresh reader, if it can read the file. Raises `AssertionError`."""
        try:
            fresh = read_run(self._format, self.ref)
            right, going = plain_run(fresh), fresh.summary.status in GOING_ON
        except ALLOWED:
            return
        label = f"{self.ref.address} {where}"
        expected = {span["id"]: span for span in right["spans"]}
        assert sorted(self._spans) == sorted(expected), f"{label}: spans differ from a fresh read"
        for ident, document in expected.items():
            found = {**self._spans[ident], "depth": document["depth"]}
            if found["status"] == Status.RUNNING and not going:
                found |= {"status": Status.UNKNOWN, "status_source": StatusSource.DERIVED}  # as in `RunBuilder`
            assert found == document, f"{label}: {ident} was not returned again: {found}"
        try:
            run = plain_run(self._growing.run())
        except ALLOWED as error:
            raise AssertionError(f"{label}: a span that was not returned again has no body: {error}") from error
        assert run["spans"] == right["spans"], f"{label}: {[s['id'] for s in run['spans']]}: different order"
        assert run == right, f"{label}: {run['summary']} {run['body']} {run['problems']}, expected {right}"


def check_bytes(fmt: Format, path: str, refs: list[RunRef], random: Random) -> None:
    """Check a file that grows to its size in steps, is truncated, and grows again."""
    whole = Path(path).read_bytes()
    followers = [Follower(fmt, ref) for ref in refs]
    ends = {0, whole.find(b"\n") + 1, len(whole) - 1}  # empty, the first line, all but the last byte
    sizes = sorted(ends.union(round(random.random() * len(whole)) for _ in range(8)))
    stops = [*sizes, len(whole), sizes[len(sizes) // 2], len(whole)]
    for number, size in enumerate(stops):
        write(path, whole[:size], LONG_AGO + number, again=0 < number <= len(sizes))
        for follower in followers:
            follower.read()
            follower.check(f"at {size} of {len(whole)} bytes (stop {number})")
    for follower in followers:
        before = follower.given
        follower.read()
        assert follower.given == before, f"{follower.ref.address}: returned again without a change"


def check_rows(fmt: Format, path: str, refs: list[RunRef], random: Random) -> None:
    """Check a database whose rows arrive from an open writer."""
    statements = list(_statements(path, random))
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(name):
            os.unlink(name)
    followers = [Follower(fmt, ref) for ref in refs]
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = OFF")  # durability doesn't matter
        every = 1 + len(statements) // 40
        for number, (sql, values) in enumerate(statements):
            writer.execute(sql, values)
            if number % every == 0 or number == len(statements) - 1:
                for follower in followers:
                    follower.read()
                    follower.check(f"after {number + 1} of {len(statements)} statements: {sql} {values}")


def _statements(path: str, random: Random) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A plausible sequence of statements: runs start active and end after their steps, some steps are written twice."""
    with closing(sqlite3.connect(path)) as db:
        made = db.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%'").fetchall()
        for (sql,) in made:
            if "VIRTUAL" not in sql and "TRIGGER" not in sql and "_fts" not in sql:
                yield sql, ()
        rows: list[tuple[str, int, str, list[str], list[Any]]] = []
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not table.startswith("sqlite_") and "_fts" not in table:
                rows += _rows(db, table)
    rows.sort(key=lambda row: (row[0], row[1]))
    yield from _played(rows, random)


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[str, int, str, list[str], list[Any]]]:
    cursor = db.execute(f"SELECT * FROM {quoted(table)} ORDER BY rowid")  # noqa: S608
    names = [column[0] for column in cursor.description]
    first = {"runs": 0, "workflows": 0, "steps": 2}.get(table, 1)
    for values in cursor.fetchall():
        row = dict(zip(names, values, strict=True))
        when = next((str(row[name]) for name in _TIMES if row.get(name)), "")
        yield when, first, table, names, list(values)


def _played(rows: list[tuple[str, int, str, list[str], list[Any]]], random: Random) -> Iterator[tuple[str, Any]]:
    ends: list[tuple[str, Any]] = []
    for _, _, table, names, values in rows:
        row = dict(zip(names, values, strict=True))
        begun = dict(row)
        if table in ("runs", "workflows"):
            begun |= {name: "active" if name == "status" else None for name in ("status", "completed_at")}
        elif table == "steps" and random.random() < 0.3:
            begun |= {name: value for name, value in _BROKEN.items() if name in row}
        columns, marks = ", ".join(map(quoted, names)), ", ".join("?" * len(names))
        yield f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(begun.values())  # noqa: S608
        if begun != row:
            changed = [name for name in names if begun[name] != row[name]]
            sets = ", ".join(f"{quoted(name)} = ?" for name in changed)
            keys = [name for name in ("id", "run_id", "workflow_id", "superstep", "node_name") if name in names]
            where = " AND ".join(f"{quoted(name)} IS ?" for name in keys)
            update = f"UPDATE {table} SET {sets} WHERE {where}"  # noqa: S608
            statement = (update, (*(row[name] for name in changed), *(row[name] for name in keys)))
            if table == "steps" and random.random() < 0.5:
                yield statement
            else:
                ends.append(statement)
    yield from ends


_BROKEN: Final = {"status": "paused", "values_data": None, "completed_at": None}
