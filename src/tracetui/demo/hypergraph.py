"""hypergraph: a database of workflow runs (schema 6), and logs that somebody dumped as JSON."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tracetui.demo.files import pretty, put, touch
from tracetui.demo.hypergraph_store import GraphRun, Store, Tries

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
