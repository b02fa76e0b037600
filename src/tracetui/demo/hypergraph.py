"""hypergraph: a database of workflow runs (schema 6), and run logs dumped as JSON."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from tracetui.demo.files import pretty, put, touch

# ---- a small checkpointer

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
        """A failed node: it records no time, versions or values, only the attempts of its retry policy."""
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


# ---- the runs

Json = dict[str, Any]

FAILED = "RuntimeError [HG_NODE_FAILED]: Node 'generate' raised RuntimeError."
DOCS = [
    {"title": "Refunds", "content": "Refunds are paid within five working days to the card that was used."},
    {"title": "Exceptions", "content": "Downloads and opened software are not refunded, except where they are faulty."},
]


def write(folder: Path, now: datetime) -> None:
    """``graphs/workflows.db`` with its runs, and three logs beside it."""
    place = folder / "graphs" / "workflows.db"
    place.parent.mkdir(parents=True, exist_ok=True)
    with Store(place) as store:
        for story in (_pipeline, _routers, _failure, _nested, _maps, _loops, _people, _running):
            story(store, now)
    touch(place, now)
    for name, log in (("rag.runlog", _run_log()), ("support.runlog", _busy_log()), ("batch.maplog", _map_log())):
        put(folder / "graphs" / f"{name}.json", pretty(log), now - timedelta(hours=13))


def _rag(
    run: GraphRun, query: str, *, cached: bool = False, at: int = 0, fails: bool = False, tries: Tries = ()
) -> GraphRun:
    """The three nodes of rag_pipeline from superstep `at` on; `fails` at the last, after several `tries`."""
    version = 2 if at else 1
    run.step("retrieve", 0 if cached else 420, {"docs": DOCS}, reads={"query": version}, cached=cached)
    prompt = "Answer from these documents:\n" + "\n".join(f"- {doc['title']}: {doc['content']}" for doc in DOCS)
    reads = {"query": version, "docs": version}
    run.step("build_prompt", 12, {"prompt": f"{prompt}\n\nQuestion: {query}"}, reads=reads)
    if fails:
        return run.breaks("generate", 18_400, FAILED, tries=tries, message="504 Gateway Timeout")
    answer = f"{query.rstrip('?')}: within five working days, to the card that was used."
    return run.step("generate", 8_600, {"answer": answer}, reads={"prompt": version})


def _pipeline(store: Store, now: datetime) -> None:
    query = "How long does a refund take?"
    _rag(store.run("rag-001", "rag_pipeline", now - timedelta(hours=9, minutes=30), {"query": query}), query).ends()
    warm = store.run("rag-002", "rag_pipeline", now - timedelta(hours=9, minutes=20), {"query": query})
    _rag(warm, query, cached=True).ends()
    again = "How long does a refund take for downloads?"
    fork = store.run(
        "rag-001-fork", "rag_pipeline", now - timedelta(hours=2), {"query": again}, forked_from="rag-001", inherited=3
    )
    _rag(fork, again, at=3).ends()


def _failure(store: Store, now: datetime) -> None:
    query = {"query": "Can I return opened software?"}
    first = store.run("rag-f-001", "rag_pipeline", now - timedelta(minutes=48), query)
    tries = [("timed_out", "TimeoutError"), ("failed", "RuntimeError")]
    _rag(first, query["query"], fails=True, tries=tries).ends("failed")
    retry = store.run(
        "rag-f-001-r1",
        "rag_pipeline",
        now - timedelta(minutes=46),
        query,
        forked_from="rag-f-001",
        retry_of="rag-f-001",
        inherited=3,
    )
    retry.step("generate", 15_000, {"answer": "Only where it is faulty."}, reads={"prompt": 1}).ends()


def _routers(store: Store, now: datetime) -> None:
    query = "How do I reset my password?"
    run = store.run("router-001", "support_router", now - timedelta(minutes=52), {"query": query})
    run.step("classify", 1_900, {"category": "account"}, reads={"query": 1})
    run.step(
        "pick", 0.1, {"_pick": "account_support"}, kind="RouteNode", decision="account_support", reads={"category": 1}
    )
    reply = "Open Settings → Security → Reset. The mail arrives within a minute."
    run.step("account_support", 10_900, {"reply": reply}, reads={"query": 1})
    run.step("format_response", 45, {"final": f"Hi! {reply}"}, reads={"reply": 1}).ends()
    fork = store.run(
        "router-001-ck",
        "support_router",
        now - timedelta(minutes=30),
        {"query": query},
        forked_from="router-001",
        fork_superstep=1,
        inherited=2,
    )
    fork.step("account_support", 7_400, {"reply": "Use the link on the sign-in page."}, reads={"query": 1})
    fork.step("format_response", 40, {"final": "Hi! Use the link on the sign-in page."}, reads={"reply": 1}).ends()


def _nested(store: Store, now: datetime) -> None:
    """A graph in a graph in a graph."""
    query, began = "What changed in the returns policy?", now - timedelta(hours=3, minutes=20)
    top = store.run("report-001", "weekly_report", began, {"query": query})
    middle = store.run("report-001/section", "report_section", began, {"query": query}, parent="report-001")
    inner = store.run("report-001/section/rag", "rag_pipeline", began, {"query": query}, parent="report-001/section")
    _rag(inner, query).ends()
    middle.step("rag", 9_040, {"answer": "see inner"}, kind="GraphNode", child=inner.ident, reads={"query": 1})
    middle.step("summarize", 2_300, {"section": "Returns are now free for 60 days."}, reads={"answer": 1}).ends()
    top.step("section", 11_400, {"section": "Returns …"}, kind="GraphNode", child=middle.ident, reads={"query": 1})
    top.step("publish", 320, {"url": "https://example.org/reports/47"}, reads={"section": 1}).ends()


def _maps(store: Store, now: datetime) -> None:
    """A batch of four of which one failed, and a node that maps over two items."""
    began = now - timedelta(hours=5, minutes=10)
    batch = store.run("batch-001", "rag_pipeline", began, None)
    queries = ("Where is my parcel?", "Can I pay later?", "Is there a student discount?", "Do you ship to Malmö?")
    for number, query in enumerate(queries):
        item = store.run(f"batch-001/{number}", "rag_pipeline", began, {"query": query}, parent="batch-001")
        _rag(item, query, fails=number == 2).ends("failed" if number == 2 else "completed")
    batch.ends("partial", nodes=4, errors=1, ms=54_900)
    mapper = store.run("mapper-001", "translator", began - timedelta(minutes=5), {"texts": ["Grüezi", "こんにちは"]})
    inner = store.run("mapper-001/translate", "translate", mapper.started, None, parent=mapper.ident)
    for number, text in enumerate(("Hello (Swiss)", "Good day")):
        item = store.run(f"{inner.ident}/{number}", "translate", mapper.started, {"text": text}, parent=inner.ident)
        item.step("llm", 3_100 + 400 * number, {"english": text}, reads={"text": 1}).ends()
    inner.ends(nodes=2, ms=3_520)
    both = {"english": ["Hello (Swiss)", "Good day"]}
    mapper.step("translate", 3_540, both, kind="GraphNode", child=inner.ident, reads={"texts": 1}).ends()


def _loops(store: Store, now: datetime) -> None:
    """A cycle that ended by itself, and one that its user stopped."""
    run = store.run("draft-007", "draft_and_review", now - timedelta(hours=6), {"topic": "Release notes 4.2"})
    for turn, verdict in enumerate(("too long", "no dates", "good"), 1):
        reads = {"topic": 1, "review": turn - 1} if turn > 1 else {"topic": 1}
        run.step("draft", 6_200 - 900 * turn, {"text": f"Release 4.2, draft {turn}"}, reads=reads)
        run.step("review", 2_100, {"review": verdict}, reads={"text": turn})
        on = "END" if verdict == "good" else "draft"
        run.step("again", 0.1, {"_again": on}, kind="RouteNode", decision=on, reads={"review": turn})
    run.ends()
    stopped = store.run("refactor-19", "refactorer", now - timedelta(hours=1, minutes=5), {"module": "billing.tax"})
    for turn in range(1, 5):
        stopped.step(
            "edit", 41_000, {"diff": f"@@ {turn} @@\n-rate = 0.19\n+rate = RATES[country]"}, reads={"module": 1}
        )
        stopped.step("test", 28_500, {"passed": turn > 2}, reads={"diff": turn})
    stopped.ends("stopped")


def _people(store: Store, now: datetime) -> None:
    """Two runs that ask a person: one waits, one was answered."""
    question = {"text": "Refund €1,240 to Ana Lima?", "order": "A-77123"}
    waiting = store.run("approve-12", "approver", now - timedelta(hours=5), {"order": "A-77123"})
    waiting.step("check", 2_200, {"amount": 1240, "risk": "medium"}, reads={"order": 1})
    waiting.asks("ask_human", "approval", question).ends("paused")
    done = store.run("approve-11", "approver", now - timedelta(hours=6, minutes=30), {"order": "A-76990"})
    done.step("check", 1_800, {"amount": 90, "risk": "low"}, reads={"order": 1})
    done.asks("ask_human", "approval", {**question, "order": "A-76990"}, answer="approve")
    done.step("pay", 640, {"paid": True}, reads={"approval": 1}).ends()


def _running(store: Store, now: datetime) -> None:
    """Written a moment ago and still at it: the last node has begun and not ended."""
    run = store.run("rag-live-001", "rag_pipeline", now - timedelta(seconds=9), {"query": "Who pays the return?"})
    run.step("retrieve", 410, {"docs": DOCS}, reads={"query": 1})
    run.step("build_prompt", 11, {"prompt": "Answer from these documents: …"}, reads={"query": 1, "docs": 1})
    run.begins("generate")


def _log_step(node: str, superstep: int, ms: float, **more: Any) -> Json:
    step = {"node_name": node, "superstep": superstep, "duration_ms": ms, "status": "completed"}
    blank = {"span_id": f"{superstep:016x}", "error": None, "cached": False, "decision": None, "inner_log": None}
    return {**step, **blank, **more}


def _log(graph: str, ident: str, ms: float, steps: list[Json]) -> Json:
    stats: dict[str, Json] = {}
    for step in steps:
        one = stats.setdefault(
            step["node_name"], {"count": 0, "total_ms": 0.0, "avg_ms": 0.0, "errors": 0, "cached": 0}
        )
        one["count"] += 1
        one["total_ms"] = round(one["total_ms"] + step["duration_ms"], 3)
        one["avg_ms"] = round(one["total_ms"] / one["count"], 3)
        one["errors"] += step["status"] == "failed"
        one["cached"] += step["cached"]
    return {"graph_name": graph, "run_id": ident, "total_duration_ms": ms, "steps": steps, "node_stats": stats}


def _run_log() -> Json:
    steps = [
        _log_step("retrieve", 0, 218.4),
        _log_step("build_prompt", 1, 11.9),
        _log_step("generate", 2, 1_804.0),
        _log_step("pick", 3, 0.1, decision="format"),
        _log_step("format", 4, 44.2),
    ]
    return _log("rag_pipeline", "run-5e0c1fb2a9d4", 2_098.6, steps)


def _busy_log() -> Json:
    """Nodes that ran many times: the log is read per node."""
    steps = [
        _log_step(node, 3 * n + place, ms + n % 7, cached=node == "embed" and n % 5 == 0)
        for n in range(24)
        for place, (node, ms) in enumerate((("embed", 180.0), ("llm_call", 2_360.0), ("validate", 14.0)))
    ]
    steps[-2].update(status="failed", error="504 Gateway Timeout")
    return _log("support_batch", "run-c40d8e77a012", 61_900.0, steps[:-1])


def _map_log() -> Json:
    items = []
    for number in range(5):
        steps = [_log_step("embed", 0, 171.0 + number), _log_step("llm_call", 1, 2_210.0 + 90 * number)]
        if number == 3:
            steps[-1].update(status="failed", error="504 Gateway Timeout", duration_ms=0.0)
        items.append(_log("classifier", f"run-0000000000{number:02x}", 2_400.0 + 90 * number, steps))
    return {"graph_name": "classifier", "total_duration_ms": 3_020.5, "restored_count": 0, "items": items}
