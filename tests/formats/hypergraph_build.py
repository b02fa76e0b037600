"""Makes the checkpoint databases of the hypergraph cases: ``python -m tests.formats.hypergraph_build``.

Each schema is written as hypergraph wrote it then; the runs are small stories about a support desk.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "hypergraph"

V1 = """
CREATE TABLE workflows (id TEXT PRIMARY KEY, status TEXT NOT NULL DEFAULT 'active', graph_name TEXT,
  created_at TEXT NOT NULL, completed_at TEXT);
CREATE TABLE steps (workflow_id TEXT NOT NULL, superstep INTEGER NOT NULL, node_name TEXT NOT NULL,
  idx INTEGER NOT NULL, status TEXT NOT NULL, input_versions TEXT, values_data BLOB,
  duration_ms REAL NOT NULL DEFAULT 0.0, cached INTEGER NOT NULL DEFAULT 0, decision TEXT, error TEXT,
  created_at TEXT NOT NULL, completed_at TEXT, child_workflow_id TEXT, UNIQUE(workflow_id, superstep, node_name));
"""
V2 = """
CREATE TABLE runs (id TEXT PRIMARY KEY, graph_name TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'active',
  duration_ms REAL, node_count INTEGER DEFAULT 0, error_count INTEGER DEFAULT 0, created_at TEXT NOT NULL,
  completed_at TEXT, parent_run_id TEXT REFERENCES runs(id), config TEXT);
CREATE TABLE steps (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL REFERENCES runs(id),
  step_index INTEGER NOT NULL, superstep INTEGER NOT NULL, node_name TEXT NOT NULL, node_type TEXT,
  status TEXT NOT NULL, duration_ms REAL NOT NULL DEFAULT 0.0, cached INTEGER NOT NULL DEFAULT 0, error TEXT,
  decision TEXT, input_versions TEXT, values_data BLOB, child_run_id TEXT REFERENCES runs(id),
  created_at TEXT NOT NULL, completed_at TEXT, UNIQUE(run_id, superstep, node_name));
CREATE INDEX idx_steps_run ON steps(run_id, step_index);
CREATE TABLE _schema_version (version INTEGER NOT NULL);
"""
TO_V3 = """
ALTER TABLE runs ADD COLUMN forked_from TEXT REFERENCES runs(id);
ALTER TABLE runs ADD COLUMN fork_superstep INTEGER;
ALTER TABLE runs ADD COLUMN retry_of TEXT REFERENCES runs(id);
ALTER TABLE runs ADD COLUMN retry_index INTEGER;
ALTER TABLE steps ADD COLUMN partial INTEGER NOT NULL DEFAULT 0;
"""
TO_V4 = """
CREATE TABLE attempt_series (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, node_name TEXT NOT NULL,
  policy_fingerprint TEXT NOT NULL, max_attempts INTEGER NOT NULL, opened_at TEXT NOT NULL, deadline_at TEXT,
  committed_superstep INTEGER, closed_at TEXT);
CREATE TABLE attempt_records (series_id TEXT NOT NULL, attempt_number INTEGER NOT NULL,
  scheduled_superstep INTEGER NOT NULL, status TEXT NOT NULL, started_at TEXT NOT NULL, completed_at TEXT,
  error_type TEXT, error_message TEXT, retry_not_before TEXT, sampled_delay REAL,
  deadline_elapsed INTEGER NOT NULL DEFAULT 0, cancellation_requested INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (series_id, attempt_number));
ALTER TABLE steps ADD COLUMN attempt_series_id TEXT;
"""
TO_V6 = """
ALTER TABLE runs ADD COLUMN inputs_data BLOB;
CREATE TABLE pending_nodes (run_id TEXT NOT NULL, superstep INTEGER NOT NULL, node_name TEXT NOT NULL, node_type TEXT,
  created_at TEXT NOT NULL, dispatched_at TEXT, PRIMARY KEY (run_id, superstep, node_name));
CREATE TABLE pause_slots (pause_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, superstep INTEGER NOT NULL,
  node_name TEXT NOT NULL, node_path TEXT, response_key TEXT NOT NULL, question TEXT NOT NULL DEFAULT '{}',
  answer_schema TEXT NOT NULL DEFAULT '{}', options TEXT, created_at TEXT NOT NULL, settled_at TEXT, answer TEXT);
CREATE TABLE run_updates (run_id TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
  payload TEXT NOT NULL DEFAULT '{}', created_at TEXT NOT NULL, PRIMARY KEY (run_id, seq));
"""
DOCUMENTED = """
CREATE TABLE workflows (id TEXT PRIMARY KEY, status TEXT, graph_hash TEXT, created_at TEXT, completed_at TEXT);
CREATE TABLE steps (workflow_id TEXT, superstep INTEGER, node_name TEXT, "index" INTEGER, status TEXT,
  input_versions TEXT, "values" TEXT, error TEXT, pause TEXT, duration_ms REAL, cached INTEGER, decision TEXT,
  partial INTEGER, created_at TEXT, completed_at TEXT, child_workflow_id TEXT,
  UNIQUE(workflow_id, superstep, node_name));
"""


def at(seconds: float) -> str:
    """A moment after nine o'clock, as hypergraph writes it."""
    return f"2026-03-02T09:{int(seconds) // 60:02d}:{seconds % 60:09.6f}+00:00"


def insert(db: sqlite3.Connection, table: str, **values: Any) -> None:
    """One row; dicts and lists become JSON (bytes in the columns of values and inputs)."""
    for name, value in values.items():
        if isinstance(value, dict | list):
            data = json.dumps(value)
            values[name] = data.encode() if name in ("values_data", "inputs_data") else data
    names = ", ".join(f'"{name}"' for name in values)
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))


@contextmanager
def database(path: Path, schema: str, version: int | None, *, page_size: int = 512) -> Iterator[sqlite3.Connection]:
    """A new database in WAL mode, closed cleanly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(f"PRAGMA page_size = {page_size}; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;")
    db.executescript(schema)
    if version is not None:
        db.execute("INSERT INTO _schema_version VALUES (?)", (version,))
    yield db
    db.close()


def v1(path: Path) -> None:
    """Workflows with a route, a failure with its raw message, and a nested graph whose child was not kept."""
    with database(path, V1, None) as db:
        insert(
            db,
            "workflows",
            id="ticket-1",
            status="completed",
            graph_name="triage",
            created_at=at(1),
            completed_at=at(4),
        )
        row: dict[str, Any] = {"workflow_id": "ticket-1", "status": "completed"}
        insert(db, "steps", **row, superstep=0, node_name="classify", idx=0, input_versions={"mail": 1},
               values_data={"kind": "billing"}, duration_ms=120.5, created_at=at(1.2),
               completed_at=at(1.2))  # fmt: skip
        insert(db, "steps", **row, superstep=1, node_name="route", idx=1, input_versions={"kind": 1}, values_data={},
               duration_ms=0.25, decision='"billing_desk"', created_at=at(1.3), completed_at=at(1.3))  # fmt: skip
        insert(db, "steps", **row, superstep=2, node_name="billing_desk", idx=2, input_versions={"kind": 1, "mail": 1},
               values_data={"reply": "We refund you."}, duration_ms=2400.0, created_at=at(3.9), completed_at=at(3.9),
               child_workflow_id="ticket-1/billing_desk")  # fmt: skip
        insert(
            db, "workflows", id="ticket-2", status="failed", graph_name="triage", created_at=at(60), completed_at=at(61)
        )
        insert(db, "steps", workflow_id="ticket-2", status="failed", superstep=0, node_name="classify", idx=0,
               input_versions={}, error="504 Gateway Timeout", created_at=at(60.5))  # fmt: skip


def v3(path: Path) -> None:
    """Migrated columns; a retry, a fork at a superstep, a fork whose source is gone, a nested failure, a map."""
    with database(path, V2 + TO_V3, 3) as db:
        config = {"graph_struct_hash": "a67a582b", "graph_code_hash": "b6bdeabf"}

        def run(run_id: str, status: str, second: float, nodes: int, errors: int = 0, **more: Any) -> None:
            insert(db, "runs", id=run_id, graph_name="rag", status=status, duration_ms=900.25, node_count=nodes,
                   error_count=errors, created_at=at(second), completed_at=at(second + 0.9), config=config,
                   **more)  # fmt: skip

        def step(run_id: str, index: int, node: str, second: float, values: Any, **more: Any) -> None:
            superstep = more.pop("superstep", index)
            insert(db, "steps", run_id=run_id, step_index=index, superstep=superstep, node_name=node,
                   node_type=more.pop("node_type", "FunctionNode"), status="completed", duration_ms=180.125,
                   values_data=values, created_at=at(second), completed_at=at(second), **more)  # fmt: skip

        def fail(run_id: str, index: int, node: str, second: float, **more: Any) -> None:
            insert(db, "steps", run_id=run_id, step_index=index, superstep=index, node_name=node, status="failed",
                   node_type=more.pop("node_type", "FunctionNode"), error="context window exceeded",
                   input_versions={}, created_at=at(second), **more)  # fmt: skip

        run("rag-1", "failed", 1, 2, 1)
        step("rag-1", 0, "retrieve", 1.2, {"docs": ["a", "b"]}, input_versions={"query": 1})
        fail("rag-1", 1, "generate", 1.5)
        run("rag-1-retry-1", "completed", 10, 3, forked_from="rag-1", retry_of="rag-1", retry_index=1)
        step("rag-1-retry-1", 2, "generate", 10.5, {"answer": "42"}, input_versions={"docs": 1})
        run("rag-1-fork", "completed", 20, 2, forked_from="rag-1", fork_superstep=0)
        step("rag-1-fork", 1, "generate", 20.5, {"answer": "43"}, input_versions={"docs": 1}, partial=1)
        run("lost-fork", "completed", 30, 1, forked_from="rag-0")
        step("lost-fork", 3, "generate", 30.5, {"answer": "44"}, input_versions={"docs": 1}, cached=1)
        run("outer-1", "failed", 40, 1, 1)
        fail("outer-1", 0, "rag", 40.8, node_type="GraphNode", child_run_id="outer-1/rag")
        run("outer-1/rag", "failed", 40.1, 1, 1, parent_run_id="outer-1")
        fail("outer-1/rag", 0, "generate", 40.7)
        run("batch-1", "completed", 50, 3, 1)
        for item in (0, 1, 2):
            name = f"batch-1/{item}"
            run(name, "failed" if item == 1 else "completed", 50 + item / 10, 1, item == 1, parent_run_id="batch-1")
            if item == 1:
                fail(name, 0, "generate", 50.6)
            else:
                step(name, 0, "generate", 50.5, {"answer": f"item {item}"}, input_versions={"query": 1})


def v6(path: Path) -> None:
    """Inputs kept; a loop with a route, an answered pause and an open one, attempts, retention, opaque values."""
    with database(path, V2 + TO_V3 + TO_V4 + TO_V6, 6) as db:
        stories(db)


def stories(db: sqlite3.Connection) -> None:
    """The runs of schema 6."""
    route = "RouteNode"

    def run(run_id: str, graph: str, status: str, second: float, nodes: int, inputs: Any, **more: Any) -> None:
        ended = {} if status in ("active", "paused") else {"completed_at": at(second + 2), "duration_ms": 2000.5}
        insert(db, "runs", id=run_id, graph_name=graph, status=status, node_count=nodes, created_at=at(second),
               inputs_data=inputs, **ended, **more)  # fmt: skip

    def step(run_id: str, index: int, node: str, second: float, values: Any, **more: Any) -> None:
        insert(db, "pending_nodes", run_id=run_id, superstep=index, node_name=node, created_at=at(second - 0.5),
               node_type=more.get("node_type", "FunctionNode"))  # fmt: skip
        row = {"node_type": "FunctionNode", "status": "completed", "completed_at": at(second), "duration_ms": 250.75}
        insert(db, "steps", run_id=run_id, step_index=index, superstep=index, node_name=node, values_data=values,
               created_at=at(second), **row | more)  # fmt: skip

    run("loop-1", "counter", "completed", 1, 4, {"count": 0})
    step("loop-1", 0, "inc", 1.3, {"count": 1}, input_versions={"count": 1})
    step("loop-1", 1, "again", 1.4, {"_again": "inc"}, input_versions={"count": 2}, node_type=route, decision='"inc"')
    step("loop-1", 2, "inc", 1.7, {"count": 2}, input_versions={"count": 2})
    step("loop-1", 3, "again", 1.8, {"_again": "END"}, input_versions={"count": 3}, node_type=route, decision='"END"')

    run("approve-1", "approval", "completed", 100, 2, {"draft": "Dear Ms Müller"}, config={"retry_policies": []})
    paused = {"node_type": "InterruptNode", "status": "paused", "completed_at": None, "duration_ms": 0.0}
    step("approve-1", 0, "ask", 101, None, input_versions={}, **paused)
    slot = {"node_name": "ask", "node_path": "ask", "response_key": "verdict", "superstep": 0}
    insert(db, "pause_slots", pause_id="approve-1:ask:0", run_id="approve-1", **slot, created_at=at(101),
           question={"text": "Send this letter?"}, answer_schema={"type": "string"}, options=["yes", "no"],
           settled_at=at(160), answer='"yes"')  # fmt: skip
    step("approve-1", 1, "send", 161, {"sent": True}, input_versions={"draft": 1, "verdict": 1})
    insert(
        db, "run_updates", run_id="approve-1", seq=1, kind="pause_settled", payload={"by": "anna"}, created_at=at(160)
    )
    run("approve-2", "approval", "paused", 200, 1, {"draft": "Dear Mr Ito"})
    step("approve-2", 0, "ask", 201, None, input_versions={}, **paused)
    insert(db, "pause_slots", pause_id="approve-2:ask:0", run_id="approve-2", **slot, created_at=at(201),
           question={"text": "Send this one?"})  # fmt: skip

    run("flaky-1", "fetch", "completed", 300, 1, {"url": "https://example.org", "tries": 3})
    insert(db, "attempt_series", id="series-1", run_id="flaky-1", node_name="get", policy_fingerprint="p1",
           max_attempts=3, opened_at=at(300.1), committed_superstep=0, closed_at=at(301.9))  # fmt: skip
    insert(db, "attempt_records", series_id="series-1", attempt_number=1, scheduled_superstep=0, status="failed",
           started_at=at(300.1), completed_at=at(300.6), error_type="ConnectionError", error_message="reset by peer",
           retry_not_before=at(301), sampled_delay=0.4)  # fmt: skip
    insert(db, "attempt_records", series_id="series-1", attempt_number=2, scheduled_superstep=0, status="succeeded",
           started_at=at(301), completed_at=at(301.9))  # fmt: skip
    step("flaky-1", 0, "get", 302, {"body": "<html>"}, input_versions={"url": 1}, attempt_series_id="series-1")

    run("long-1", "chat", "completed", 400, 9, {"topic": "rails"})
    insert(db, "steps", run_id="long-1", step_index=0, superstep=6, node_name="__retained_state__", status="completed",
           node_type="RetentionBaseline", input_versions={}, values_data={"history": ["hi", "hello"], "turn": 7},
           created_at=at(400.9), completed_at=at(400.9))  # fmt: skip
    step("long-1", 7, "reply", 401, {"turn": 8, "text": "All aboard."}, input_versions={"history": 7, "topic": 1})
    step("long-1", 8, "embed", 402, b"\x80\x04\x95opaque", input_versions={"text": 8}, cached=1, duration_ms=0.0)

    run("outer-1", "outer", "active", 500, 0, {"query": "tariffs"})
    step("outer-1", 0, "plan", 501, {"plan": "look it up"}, input_versions={"query": 1})
    insert(
        db, "pending_nodes", run_id="outer-1", superstep=1, node_name="rag", node_type="GraphNode", created_at=at(501.1)
    )
    run("outer-1/rag", "rag", "active", 501.2, 0, {"query": "tariffs"}, parent_run_id="outer-1")
    step("outer-1/rag", 0, "retrieve", 502, {"docs": ["t1"]}, input_versions={"query": 1})
    insert(db, "pending_nodes", run_id="outer-1/rag", superstep=1, node_name="generate", node_type="FunctionNode",
           created_at=at(502.1))  # fmt: skip
    insert(db, "attempt_series", id="series-2", run_id="outer-1/rag", node_name="generate", policy_fingerprint="p2",
           max_attempts=2, opened_at=at(502.2))  # fmt: skip
    insert(db, "attempt_records", series_id="series-2", attempt_number=1, scheduled_superstep=1, status="started",
           started_at=at(502.2))  # fmt: skip

    run("flaky-2", "fetch", "failed", 600, 1, {"url": "https://example.org/gone"}, error_count=1)
    insert(db, "attempt_series", id="series-3", run_id="flaky-2", node_name="get", policy_fingerprint="p1",
           max_attempts=2, opened_at=at(600.1), committed_superstep=0, closed_at=at(601.9))  # fmt: skip
    tried = {"series_id": "series-3", "scheduled_superstep": 0}
    insert(db, "attempt_records", **tried, attempt_number=1, status="failed", started_at=at(600.1),
           completed_at=at(600.6), error_type="ConnectionError", error_message="reset by peer")  # fmt: skip
    insert(db, "attempt_records", **tried, attempt_number=2, status="timed_out", started_at=at(601),
           completed_at=at(601.9), error_type="TimeoutError", error_message="504 Gateway Timeout")  # fmt: skip
    step("flaky-2", 0, "get", 602, None, status="failed", completed_at=None, duration_ms=0.0, input_versions={},
         error="TimeoutError [HG_NODE_FAILED]: Node 'get' raised TimeoutError.",
         attempt_series_id="series-3")  # fmt: skip


def live(path: Path) -> None:
    """Schema 6 while its writer is there: the table is in the file, all runs are only in the log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.with_name("work.db")
    with database(work, V2 + TO_V3 + TO_V4 + TO_V6, 6):
        pass
    db = sqlite3.connect(work, isolation_level=None)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("BEGIN")
    insert(db, "runs", id="now-1", graph_name="rag", status="active", created_at=at(1), inputs_data={"query": "log"})
    insert(db, "pending_nodes", run_id="now-1", superstep=0, node_name="retrieve", created_at=at(1.1))
    insert(db, "steps", run_id="now-1", step_index=0, superstep=0, node_name="retrieve", status="completed",
           duration_ms=12.5, values_data={"docs": ["d"]}, input_versions={"query": 1}, created_at=at(1.5),
           completed_at=at(1.5))  # fmt: skip
    db.execute("COMMIT")
    shutil.copy(work, path)
    shutil.copy(f"{work}-wal", f"{path}-wal")
    db.close()
    work.unlink()


def documented(path: Path) -> None:
    """The columns that the plan document names."""
    with database(path, DOCUMENTED, None) as db:
        insert(db, "workflows", id="batch-2024-01-16", status="FAILED", graph_hash="h4sh",
               created_at="2024-01-16 09:00:00", completed_at="2024-01-16 09:02:10")  # fmt: skip
        row = {"workflow_id": "batch-2024-01-16", "created_at": "2024-01-16 09:00:01"}
        insert(db, "steps", **row, superstep=0, node_name="embed", index=0, status="COMPLETED", duration_ms=180,
               input_versions={"query": 1}, values={"embedding": [0.25, 0.5]},
               completed_at="2024-01-16 09:00:01")  # fmt: skip
        insert(db, "steps", **row, superstep=1, node_name="approve", index=1, status="PAUSED",
               pause={"node": "approve", "value": "Go on?"})  # fmt: skip
        insert(db, "steps", **row, superstep=2, node_name="llm_call", index=2, status="FAILED",
               error="503 Service Unavailable")  # fmt: skip


def main() -> None:
    """Write the databases of all cases."""
    for make in (v1, v3, v6, live, documented):
        make(CASES / make.__name__ / "input" / "workflows.db")


if __name__ == "__main__":
    main()
