"""A small hypergraph checkpointer: writes runs and steps as schema 6 has them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

SCHEMA = """
CREATE TABLE _schema_version (version INTEGER NOT NULL);
INSERT INTO _schema_version VALUES (6);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, graph_name TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'active', duration_ms REAL,
    node_count INTEGER DEFAULT 0, error_count INTEGER DEFAULT 0, created_at TEXT NOT NULL, completed_at TEXT,
    parent_run_id TEXT, forked_from TEXT, fork_superstep INTEGER, retry_of TEXT, retry_index INTEGER, config TEXT,
    inputs_data BLOB
);
CREATE TABLE steps (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, step_index INTEGER NOT NULL,
    superstep INTEGER NOT NULL, node_name TEXT NOT NULL, node_type TEXT, status TEXT NOT NULL,
    duration_ms REAL NOT NULL DEFAULT 0.0, cached INTEGER NOT NULL DEFAULT 0, error TEXT, decision TEXT,
    input_versions TEXT, values_data BLOB, child_run_id TEXT, partial INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL, completed_at TEXT, attempt_series_id TEXT, UNIQUE (run_id, superstep, node_name)
);
CREATE TABLE attempt_series (
    id TEXT PRIMARY KEY, run_id TEXT NOT NULL, node_name TEXT NOT NULL, policy_fingerprint TEXT NOT NULL,
    max_attempts INTEGER NOT NULL, opened_at TEXT NOT NULL, deadline_at TEXT, committed_superstep INTEGER,
    closed_at TEXT
);
CREATE TABLE attempt_records (
    series_id TEXT NOT NULL, attempt_number INTEGER NOT NULL, scheduled_superstep INTEGER NOT NULL,
    status TEXT NOT NULL, started_at TEXT NOT NULL, completed_at TEXT, error_type TEXT, error_message TEXT,
    retry_not_before TEXT, sampled_delay REAL, deadline_elapsed INTEGER NOT NULL DEFAULT 0,
    cancellation_requested INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (series_id, attempt_number)
);
CREATE TABLE pending_nodes (
    run_id TEXT NOT NULL, superstep INTEGER NOT NULL, node_name TEXT NOT NULL, node_type TEXT,
    created_at TEXT NOT NULL, dispatched_at TEXT, PRIMARY KEY (run_id, superstep, node_name)
);
CREATE TABLE pause_slots (
    pause_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, superstep INTEGER NOT NULL, node_name TEXT NOT NULL,
    node_path TEXT, response_key TEXT NOT NULL, question TEXT NOT NULL DEFAULT '{}',
    answer_schema TEXT NOT NULL DEFAULT '{}', options TEXT, created_at TEXT NOT NULL, settled_at TEXT, answer TEXT
);
CREATE INDEX idx_runs_parent ON runs (parent_run_id);
CREATE INDEX idx_steps_run ON steps (run_id, step_index);
"""

Tries = Sequence[tuple[str, str]]
"""Status and error type of every try that a retry policy made."""


class Store:
    """A database that is being written; closed with its journal merged, as a clean exit leaves it."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(f"BEGIN;{SCHEMA}")

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.execute("COMMIT")
        self._connection.close()

    def insert(self, table: str, **values: Any) -> None:
        """Insert one row."""
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values()))  # noqa: S608

    def update(self, run: str, **values: Any) -> None:
        """Change the row of a run."""
        names = ", ".join(f"{name} = ?" for name in values)
        self._connection.execute(f"UPDATE runs SET {names} WHERE id = ?", [*values.values(), run])  # noqa: S608

    def run(
        self,
        ident: str,
        graph: str,
        started: datetime,
        inputs: Any,
        *,
        parent: str | None = None,
        inherited: int = 0,
        forked_from: str | None = None,
        fork_superstep: int | None = None,
        retry_of: str | None = None,
    ) -> GraphRun:
        """Begin a run; `inherited` steps of the run that it was forked from count as its own."""
        digest = hashlib.sha256(graph.encode()).hexdigest()
        config = {"graph_struct_hash": digest, "graph_code_hash": digest[::-1], "retry_policies": {}}
        self.insert(
            "runs",
            id=ident,
            graph_name=graph,
            status="active",
            created_at=stamp(started),
            parent_run_id=parent,
            forked_from=forked_from,
            fork_superstep=fork_superstep,
            retry_of=retry_of,
            retry_index=1 if retry_of else None,
            config=json.dumps(config),
            inputs_data=None if inputs is None else encode(inputs),
        )
        return GraphRun(self, ident, started, inherited)


class GraphRun:
    """One run; every step comes after the one before it, in a superstep of its own."""

    def __init__(self, store: Store, ident: str, started: datetime, inherited: int) -> None:
        self._store = store
        self.ident = ident
        self.started = started
        self._clock = started
        self._next = inherited
        self._errors = 0

    def step(
        self,
        node: str,
        ms: float,
        values: Any,
        *,
        reads: dict[str, int],
        kind: str = "FunctionNode",
        decision: str | None = None,
        cached: bool = False,
        child: str | None = None,
    ) -> GraphRun:
        """A node that ran and wrote `values`."""
        self.begins(node, kind)
        self._clock += timedelta(milliseconds=ms + 1)
        self._row(
            node,
            kind,
            "completed",
            duration_ms=float(ms),
            cached=int(cached),
            completed_at=stamp(self._clock),
            decision=None if decision is None else json.dumps(decision),
            input_versions=json.dumps(reads),
            values_data=encode(values),
            child_run_id=child,
        )
        return self

    def breaks(self, node: str, ms: float, error: str, *, tries: Tries = (), message: str = "") -> GraphRun:
        """A node that failed: it leaves no time, no versions and no values, but what the retry policy recorded."""
        self.begins(node)
        self._clock += timedelta(milliseconds=ms)
        self._errors += 1
        series = f"{self.ident}:{node}" if tries else None
        if series is not None:
            self._attempts(series, node, tries, message)
        self._row(node, "FunctionNode", "failed", error=error, input_versions="{}", attempt_series_id=series)
        return self

    def _attempts(self, series: str, node: str, tries: Tries, message: str) -> None:
        self._store.insert(
            "attempt_series",
            id=series,
            run_id=self.ident,
            node_name=node,
            policy_fingerprint="exp-2",
            max_attempts=len(tries),
            opened_at=stamp(self._clock - timedelta(seconds=18)),
            committed_superstep=self._next,
            closed_at=stamp(self._clock),
        )
        for number, (status, kind) in enumerate(tries, 1):
            began = self._clock - timedelta(seconds=27 - 9 * number)
            self._store.insert(
                "attempt_records",
                series_id=series,
                attempt_number=number,
                scheduled_superstep=self._next,
                status=status,
                started_at=stamp(began),
                completed_at=stamp(began + timedelta(seconds=8)),
                error_type=kind,
                error_message=message,
                sampled_delay=0.8 * number,
            )

    def asks(self, node: str, key: str, question: Any, answer: str | None = None) -> GraphRun:
        """A node that asks a person: paused until there is an `answer`."""
        self.begins(node, "InterruptNode")
        asked = stamp(self._clock)
        self._clock += timedelta(seconds=40 if answer else 0)
        self._store.insert(
            "pause_slots",
            pause_id=f"{self.ident}:{node}",
            run_id=self.ident,
            superstep=self._next,
            node_name=node,
            response_key=key,
            question=json.dumps(question, ensure_ascii=False),
            options='["approve", "reject"]',
            created_at=asked,
            settled_at=stamp(self._clock) if answer else None,
            answer=None if answer is None else json.dumps(answer),
        )
        if answer is None:
            self._row(node, "InterruptNode", "paused", input_versions="{}")
        else:
            self._row(
                node,
                "InterruptNode",
                "completed",
                duration_ms=40_000.0,
                completed_at=stamp(self._clock),
                input_versions="{}",
                values_data=encode({key: answer}),
            )
        return self

    def begins(self, node: str, kind: str = "FunctionNode") -> None:
        """The node is announced: pending until its step row is there."""
        self._store.insert(
            "pending_nodes",
            run_id=self.ident,
            superstep=self._next,
            node_name=node,
            node_type=kind,
            created_at=stamp(self._clock),
        )

    def ends(
        self, status: str = "completed", *, nodes: int | None = None, errors: int | None = None, ms: float | None = None
    ) -> GraphRun:
        """The run ends, or pauses; a map tells its `nodes`, `errors` and time, since it has no steps."""
        took = (self._clock - self.started).total_seconds() * 1000 if ms is None else ms
        ended = None if status == "paused" else stamp(self.started + timedelta(milliseconds=took))
        self._store.update(
            self.ident,
            status=status,
            duration_ms=took,
            completed_at=ended,
            node_count=self._next if nodes is None else nodes,
            error_count=self._errors if errors is None else errors,
        )
        return self

    def _row(self, node: str, kind: str, status: str, **values: Any) -> None:
        self._store.insert(
            "steps",
            run_id=self.ident,
            step_index=self._next,
            superstep=self._next,
            node_name=node,
            node_type=kind,
            status=status,
            created_at=stamp(self._clock),
            **values,
        )
        self._next += 1


def stamp(time: datetime) -> str:
    """``2026-03-01T09:00:00.123456+00:00``."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def encode(value: Any) -> bytes:
    """Values as the default serializer stores them."""
    return json.dumps(value, ensure_ascii=False).encode()
