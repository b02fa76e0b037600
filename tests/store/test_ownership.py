"""Each span counts once: to the run that owns it, by the rows of the databases and the records of the files."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.formats import hypergraph_build
from tests.views.build import make_run, make_span
from tracetui.analysis.contrast import Kind, features
from tracetui.analysis.search import Hit, Needle
from tracetui.analysis.statistics import By, Row, Statistics
from tracetui.live.jobs import statistics_job
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.live.search import grep
from tracetui.model import Operation, Run, RunRef, RunSummary, Span
from tracetui.model.build import Ownership, own_spans, ownership
from tracetui.sources.local import LocalSource
from tracetui.store.claims import Claims

CASES = Path(__file__).parents[1] / "formats"
SAMPLES = Path(__file__).parents[2].parent / "shared/samples/hypergraph"
BUILT: list[Callable[[Path], None]] = [
    *(hypergraph_build.v1, hypergraph_build.v3, hypergraph_build.v6, hypergraph_build.live, hypergraph_build.documented)
]
SOURCE = LocalSource()


def listed(*paths: Path) -> list[RunSummary]:
    return [run for file in scan(SOURCE, [*map(str, paths)], deep=True) for run in file.runs]


def rows_by(by: By, refs: list[RunRef]) -> dict[str, Row]:
    statistics = Statistics(by, {*refs})
    for ref in refs:
        statistics.add(read_run(SOURCE, ref))
    return {row.name: row for row in statistics.rows()}


def node_rows(path: Path) -> Iterator[tuple[str, str, float | None]]:
    """Run, node and milliseconds of each node execution that a database has a row of, by plain SQL."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        columns = {name for _, name, *_ in db.execute("PRAGMA table_info(steps)")}
        run = "run_id" if "run_id" in columns else "workflow_id"
        for owner, node, duration in db.execute(f"SELECT {run}, node_name, duration_ms FROM steps"):
            if node != "__retained_state__":
                yield owner, node, duration
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'pending_nodes'").fetchone():
            yield from db.execute(
                "SELECT p.run_id, p.node_name, NULL FROM pending_nodes p JOIN runs r ON r.id = p.run_id"
                " WHERE r.status = 'active' AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_id = p.run_id"
                " AND s.superstep = p.superstep AND s.node_name = p.node_name)"
            )


def databases() -> list[Path]:
    return sorted(SAMPLES.rglob("*.db")) if SAMPLES.is_dir() else []


@pytest.fixture(params=[*BUILT, *databases()], ids=lambda param: getattr(param, "__name__", None) or param.parent.name)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if isinstance(request.param, Path):
        return request.param
    request.param(tmp_path / "workflows.db")
    return tmp_path / "workflows.db"


def test_nodes_are_counted_as_often_as_the_database_has_rows_of_them(database: Path) -> None:
    runs = listed(database)
    raw = [*node_rows(database)]

    rows = rows_by(By.NODE, [run.ref for run in runs])

    assert {name: row.count for name, row in rows.items()} == Counter(node for _, node, _ in raw)
    assert {name: row.runs for name, row in rows.items()} == Counter(node for _, node in {node[:2] for node in raw})
    times = dict.fromkeys(rows, 0.0)
    for _, node, duration in raw:
        times[node] += duration or 0.0
    assert {name: row.total_ms or 0.0 for name, row in rows.items()} == pytest.approx(times)
    by_operation = rows_by(By.OPERATION, [run.ref for run in runs])
    nodes = sum(row.count for name, row in by_operation.items() if name in ("node", "route"))
    graphs = by_operation["invoke_workflow"].count if "invoke_workflow" in by_operation else 0
    loose = sum(span.id.startswith("run:") for run in runs for span in own_of(run, runs))
    assert nodes + graphs - loose == len(raw)


def own_of(run: RunSummary, runs: list[RunSummary]) -> list[Span]:
    return own_spans(read_run(SOURCE, run.ref), {run.ref for run in runs})


def test_the_app_counts_what_the_command_counts(database: Path) -> None:
    refs = [run.ref for run in listed(database)]
    job = statistics_job(refs)
    for _ in job.work(SOURCE):
        pass

    assert job.result is not None
    assert {row.name: row for row in job.result().rows[By.NODE]} == rows_by(By.NODE, refs)


def test_nodes_of_a_run_are_those_of_its_tree_nested_graphs_too(database: Path) -> None:
    own: dict[str, set[str]] = {}
    for owner, node, _ in node_rows(database):
        own.setdefault(owner, set()).add(node)
    for run in listed(database):
        assert set(run.nodes or ()) >= own.get(run.id, set())
        assert {span.name for span in read_run(SOURCE, run.ref).spans if span.is_node} == set(run.nodes or ())


def test_a_hit_is_reported_once_at_the_run_that_owns_its_row(database: Path) -> None:
    owners = {(owner, node) for owner, node, _ in node_rows(database)}
    spans = {run.ref: read_run(SOURCE, run.ref).index for run in listed(database)}
    for word in ("a", "query", "retrieve"):
        hits = [hit for hit in grep(SOURCE, [str(database)], Needle(word)) if isinstance(hit, Hit)]
        places = Counter((hit.span, hit.keys, hit.line, hit.before) for hit in hits if hit.span is not None)
        assert all(count == 1 for count in places.values())
        for hit in hits:
            if hit.span is not None and ":attempt:" not in hit.span and not hit.span.startswith("run:"):
                assert (hit.ref.key, hit.name) in owners
            if hit.span is not None:
                assert hit.span in spans[hit.ref]


def test_spans_that_no_other_listed_run_counts_stay_with_their_run(tmp_path: Path) -> None:
    hypergraph_build.v6(tmp_path / "w.db")
    outer, inner = (next(run.ref for run in listed(tmp_path) if run.id == name) for name in ("outer-1", "outer-1/rag"))

    alone = rows_by(By.NODE, [outer])
    both = rows_by(By.NODE, [outer, inner])

    assert {name: row.count for name, row in alone.items()} == {name: row.count for name, row in both.items()}
    assert {row.runs for row in alone.values()} == {1}
    hits = [hit for hit in grep(SOURCE, [str(tmp_path)], Needle("a")) if isinstance(hit, Hit)]
    assert {hit.ref.key for hit in hits} >= {"outer-1", "outer-1/rag"}


def test_features_are_those_of_own_spans(tmp_path: Path) -> None:
    hypergraph_build.v6(tmp_path / "w.db")
    outer, inner = (next(run.ref for run in listed(tmp_path) if run.id == name) for name in ("outer-1", "outer-1/rag"))
    nested = {span.name for span in read_run(SOURCE, inner).spans if span.is_node}

    def nodes(*refs: RunRef) -> set[str]:
        runs = [read_run(SOURCE, ref) for ref in refs]
        names = [
            {feature.label for feature in features(run, run.load, refs) if feature.kind is Kind.NODE} for run in runs
        ]
        return set.intersection(*names)

    assert nodes(outer) >= {f"node {name}" for name in nested}
    assert nodes(outer, inner) == set()  # no node is of both
    assert nodes(outer) >= {f"node {name}" for name in nested}


@pytest.mark.parametrize("case", ["opencode/database", "codex/old", "codex/threads", "claude_code/fork", "pi/fork"])
def test_a_call_that_a_fork_copied_counts_in_its_original(case: str) -> None:
    read = [read_run(SOURCE, run.ref) for run in listed(CASES / case / "input")]
    claims = Claims(run.summary for run in read)
    runs = [claims.mark(run) for run in read]
    assert any(span.taken_over for run in runs for span in run.spans) or case == "codex/old"
    refs = {run.summary.ref for run in runs}
    holders: dict[bytes, set[RunRef]] = {}
    for run in runs:
        for span in own_spans(run, refs):
            if span.operation in (Operation.CHAT, Operation.EXECUTE_TOOL) and (raw := run.load(span).raw):
                holders.setdefault(raw, set()).add(run.summary.ref)
    assert holders
    assert [runs for runs in holders.values() if len(runs) > 1] == []


def test_time_of_a_nested_call_counts_once_across_runs() -> None:
    """As in one run: a call within a call of that name adds nothing to the time of the row."""
    outer = make_span("o", "plan", Operation.INVOKE_WORKFLOW, 0, 100.0)
    inner = msgspec.structs.replace(make_span("i", "plan", Operation.INVOKE_WORKFLOW, 0, 60.0), parent_id="o")
    whole = with_key(make_run([outer, msgspec.structs.replace(inner, owner="child")]), "parent")
    child = with_key(make_run([msgspec.structs.replace(inner, parent_id=None)]), "child")
    refs = {whole.summary.ref, child.summary.ref}
    for order in ((whole, child), (child, whole)):
        statistics = Statistics(By.OPERATION, refs)
        for run in order:
            statistics.add(run)
        (row,) = statistics.rows()
        assert (row.count, row.total_ms, row.runs) == (2, 100.0, 2)


def test_below_an_inherited_step_nothing_is_own() -> None:
    step = msgspec.structs.replace(make_span("s", "ask", Operation.NODE), note="inherited", owner="first")
    below = msgspec.structs.replace(make_span("t", "ask", Operation.NODE), parent_id="s", owner="nested")
    own = make_span("u", "ask", Operation.NODE)
    run = with_key(make_run([step, below, own]), "fork")
    ref = run.summary.ref

    assert ownership(run) == [Ownership.TAKEN_OVER, Ownership.TAKEN_OVER, Ownership.OWN]
    nested = ownership(run, {msgspec.structs.replace(ref, key="nested")})
    assert nested == [Ownership.TAKEN_OVER, Ownership.LISTED, Ownership.OWN]
    first = ownership(run, {msgspec.structs.replace(ref, key="first")})
    assert first == [Ownership.LISTED, Ownership.LISTED, Ownership.OWN]


def with_key(run: Run, key: str) -> Run:
    ref = msgspec.structs.replace(run.summary.ref, key=key)
    return msgspec.structs.replace(run, summary=msgspec.structs.replace(run.summary, ref=ref))
