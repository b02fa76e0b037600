"""What hypergraph's databases and dumps say, beyond what every format must keep (test_conformance)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.hypergraph_build import CASES, TO_V3, TO_V4, TO_V6, V1, V2, at, database, insert, v1
from tests.shared import needs_shared, sample
from tracetui import load_all
from tracetui.errors import FormatError
from tracetui.formats.base import Chunk
from tracetui.formats.hypergraph import Hypergraph
from tracetui.formats.hypergraph.rows import value_of
from tracetui.formats.hypergraph.runs import arrow, prompt_of
from tracetui.formats.scalars import zoned
from tracetui.model import Error, FirstError, Operation, Problem, Run, RunRef, RunSummary, Span, Status, StatusSource
from tracetui.model.build import RunBuilder
from tracetui.sources.local import LocalFile
from tracetui.testing.reading import Follower
from tracetui.views.list.result import result_phrase

FORMAT = Hypergraph()
V6 = V2 + TO_V3 + TO_V4 + TO_V6
REDACTED = ("TimeoutError", "TimeoutError [HG_NODE_FAILED]: Node 'get' raised TimeoutError.")


def listed(path: Path, *, deep: bool = True) -> dict[str, RunSummary]:
    with LocalFile(str(path)) as file:
        return {item.id: item for item in FORMAT.summarize(file, deep=deep) if isinstance(item, RunSummary)}


def read(path: Path, key: str | None) -> Run:
    ref = RunRef("hypergraph", str(path), key)
    builder = RunBuilder(ref, lambda span: FORMAT.body(LocalFile(str(path)), ref, span))
    reader, done = reading(path, key), False
    while not done:
        chunk = reader()
        builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
        done = chunk.done
    return builder.build()


def reading(path: Path, key: str | None) -> Callable[[], Chunk]:
    """Reads on each time."""
    reader = FORMAT.open(LocalFile(str(path)), RunRef("hypergraph", str(path), key))
    return lambda: reader.more(LocalFile(str(path)))


def case(name: str) -> Path:
    return CASES / name / "input" / "workflows.db"


def names(run: Run) -> list[str]:
    return [f"{'  ' * depth}{span.name}" for span, depth in zip(run.spans, run.depths, strict=True)]


def states(run: Run) -> list[Any]:
    return [run.load(span).state for span in run.spans]


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A private copy of the schema 6 case, and a writer of it."""
    path = tmp_path / "workflows.db"
    shutil.copy(case("v6"), path)
    writer = sqlite3.connect(path, isolation_level=None)
    yield path, writer
    writer.close()


def test_accumulated_state_is_the_fold_of_the_own_rows_up_to_that_superstep() -> None:
    run = read(case("v6"), "loop-1")
    assert states(run) == [
        {"count": 1},
        {"count": 1, "_again": "inc"},
        {"count": 2, "_again": "inc"},
        {"count": 2, "_again": "END"},
    ]


def test_before_schema_3_the_checkpointer_folds_by_index_and_not_by_time(tmp_path: Path) -> None:
    path = tmp_path / "workflows.db"
    with database(path, V1, None) as db:
        insert(db, "workflows", id="w", status="completed", graph_name="g", created_at=at(1), completed_at=at(3))
        row: dict[str, Any] = {"workflow_id": "w", "status": "completed", "superstep": 0, "input_versions": {}}
        insert(db, "steps", **row, node_name="slow", idx=0, values_data={"x": "slow"}, created_at=at(2))
        insert(db, "steps", **row, node_name="fast", idx=1, values_data={"x": "fast"}, created_at=at(1))
    assert states(read(path, "w")) == [{"x": "fast"}, {"x": "fast"}]


def test_the_output_of_a_run_is_all_that_its_steps_put_out_the_latest_first() -> None:
    output = read(case("v6"), "loop-1").body.output
    assert list(output.items()) == [("_again", "END"), ("count", 2)]
    assert read(case("v3"), "rag-1").body.output is None, "a run that failed has none"
    assert read(case("v6"), "outer-1").body.output is None, "nor has one that is going on"
    batch = read(case("v3"), "batch-1")
    assert [batch.load(span).output for span in batch.spans if span.name.startswith("[item")] == [
        {"answer": "item 0"},
        None,
        {"answer": "item 2"},
    ]


def test_a_step_that_names_a_series_of_attempts_that_is_gone_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "workflows.db"
    shutil.copy(case("v6"), path)
    writer = sqlite3.connect(path)
    with writer:
        writer.execute("DELETE FROM attempt_series")
        writer.execute("DELETE FROM attempt_records")
    writer.close()
    run = read(path, "flaky-1")
    assert run.load(run.spans[0]).output == {"body": "<html>"}


def test_the_hidden_row_of_a_retention_policy_is_no_step_but_the_state_starts_from_it() -> None:
    run = read(case("v6"), "long-1")
    assert names(run) == ["reply", "embed"]
    assert run.summary.steps == 2
    assert states(run)[0] == {"history": ["hi", "hello"], "turn": 8, "text": "All aboard."}
    (hidden,) = run.body.attributes["__retained_state__"]
    assert hidden["values_data"] == {"history": ["hi", "hello"], "turn": 7}


def test_values_that_are_not_json_are_described_and_never_unpickled() -> None:
    embed = read(case("v6"), "long-1").spans[1]
    assert read(case("v6"), "long-1").load(embed).output == {"opaque": "9 bytes"}
    assert value_of(b"\x80\x04\x95\x00") == {"opaque": "4 bytes"}
    assert value_of(b'{"opaque": 1}') == {"opaque": 1}


def test_inputs_are_rebuilt_from_versions_with_the_value_then_current_and_its_writer() -> None:
    run = read(case("v6"), "loop-1")
    bindings = [run.load(span).bindings[0] for span in run.spans]
    assert [(b.name, b.version, b.value, b.writer) for b in bindings] == [
        ("count", 1, 0, None),
        ("count", 2, 1, "loop-1:0:inc"),
        ("count", 2, 1, "loop-1:0:inc"),
        ("count", 3, 2, "loop-1:2:inc"),
    ]
    assert all(b.writer is None or b.writer in run.index for b in bindings)


def test_an_input_that_the_trace_does_not_hold_is_unknown_and_not_null() -> None:
    first = read(case("v1"), "ticket-1")
    (binding,) = first.load(first.spans[0]).bindings
    assert (binding.name, binding.known) == ("mail", False)


def test_a_pause_shows_what_was_asked_and_answered_and_the_answer_is_an_input_later() -> None:
    run = read(case("v6"), "approve-1")
    ask, send = run.spans
    body = run.load(ask)
    assert (ask.status, ask.duration_ms, ask.note) == (Status.PAUSED, None, "paused")
    assert body.input == {"text": "Send this letter?"}
    assert body.output == "yes"
    assert body.attributes["pause_slot"]["options"] == ["yes", "no"]
    verdict = run.load(send).bindings[1]
    assert (verdict.value, verdict.writer) == ("yes", ask.id)
    waiting = read(case("v6"), "approve-2")
    assert waiting.summary.status is Status.PAUSED
    assert waiting.load(waiting.spans[0]).output is None


def test_a_retry_beats_a_fork_and_shows_the_steps_that_it_inherited() -> None:
    run = read(case("v3"), "rag-1-retry-1")
    assert (run.summary.relation, run.summary.replay_of) == ("retry", "rag-1")
    assert [(s.name, s.note) for s in run.spans] == [
        ("retrieve", "inherited"),
        ("generate", "inherited"),
        ("generate", ""),
    ]
    assert run.summary.steps == 3
    body = run.load(run.spans[2])
    assert body.state == {"answer": "42"}, "as get_state returns it: a fork's own rows only"
    assert body.attributes["inherited_state"] == {"docs": ["a", "b"]}
    assert body.input == {"docs": ["a", "b"]}
    assert run.load(run.spans[0]).links[0].run == "rag-1"


def test_a_fork_inherits_up_to_its_superstep_and_says_when_its_source_is_gone() -> None:
    fork = read(case("v3"), "rag-1-fork")
    assert [(s.name, s.note) for s in fork.spans] == [("retrieve", "inherited"), ("generate", "partial")]
    lost = read(case("v3"), "lost-fork")
    assert [p.reason for p in lost.problems] == [
        "it was forked from 'rag-0', which is not in this database: those steps are missing"
    ]


def test_decisions_are_shown_where_they_went() -> None:
    run = read(case("v1"), "ticket-1")
    assert [s.operation for s in run.spans] == [Operation.NODE, Operation.ROUTE, Operation.INVOKE_WORKFLOW]
    assert run.spans[1].note == "→ billing_desk"
    assert run.load(run.spans[1]).attributes["decision"] == "billing_desk"
    assert run.summary.result == "→ billing_desk"
    assert run.load(run.spans[2]).links[0].run == "ticket-1/billing_desk"


def test_the_cause_of_a_failure_is_followed_into_the_nested_run() -> None:
    for deep in (False, True):
        summary = listed(case("v3"), deep=deep)["outer-1"]
        assert summary.first_error is not None
        assert (summary.first_error.name, summary.first_error.message) == ("generate", "context window exceeded")
        assert summary.first_error.span == "outer-1/rag:0:generate"
    run = read(case("v3"), "outer-1")
    assert names(run) == ["rag", "  generate"]
    assert [s.is_step for s in run.spans] == [True, False]
    assert [s.duration_ms for s in run.spans] == [None, None], "the recorded 0.0 ms of a failed step says nothing"


def test_a_map_lists_its_items_and_counts_those_that_failed() -> None:
    runs = listed(case("v3"))
    assert runs["batch-1"].result == "1 of 3 failed"
    assert [(runs[f"batch-1/{i}"].parent, runs[f"batch-1/{i}"].label) for i in (0, 2)] == [
        ("batch-1", "[item 0]"),
        ("batch-1", "[item 2]"),
    ]
    run = read(case("v3"), "batch-1")
    assert names(run) == ["[item 0]", "  generate", "[item 1]", "  generate", "[item 2]", "  generate"]
    assert run.summary.steps == 0
    assert {total.name: (total.declared, total.counted) for total in run.body.totals} == {
        "node_count": (3, 3),
        "error_count": (1, 1),
    }


def test_attempts_hang_below_their_step() -> None:
    run = read(case("v6"), "flaky-1")
    assert names(run) == ["get", "  attempt 1", "  attempt 2"]
    assert [s.status for s in run.spans] == [Status.OK, Status.ERROR, Status.OK]
    error = run.spans[1].error
    assert error is not None
    assert (error.type, error.message, run.spans[1].duration_ms) == ("ConnectionError", "reset by peer", 500.0)


def test_an_active_run_is_running_only_while_its_file_moves_and_shows_what_runs_now() -> None:
    run = read(case("v6"), "outer-1")
    assert (run.summary.status, run.summary.status_word) == (Status.UNKNOWN, "active")
    assert names(run) == ["plan", "rag", "  retrieve", "  generate", "    attempt 1"]
    assert [run.spans[position].name for position in run.unended] == ["rag", "generate", "attempt 1"]
    assert {run.spans[position].status for position in run.unended} == {Status.UNKNOWN}
    assert run.summary.steps == 1


def test_declared_totals_are_recounted() -> None:
    (nodes, errors) = read(case("v6"), "long-1").body.totals
    assert (nodes.declared, nodes.counted, nodes.differs) == (9, 2, True)
    assert not errors.differs


def test_the_documented_columns_are_read() -> None:
    run = read(case("documented"), "batch-2024-01-16")
    assert [(s.name, s.status, s.status_word) for s in run.spans] == [
        ("embed", Status.OK, "COMPLETED"),
        ("approve", Status.PAUSED, "PAUSED"),
        ("llm_call", Status.ERROR, "FAILED"),
    ]
    assert run.summary.time_zone is None
    assert run.body.attributes["graph_hash"] == "h4sh"
    assert run.load(run.spans[0]).output == {"embedding": [0.25, 0.5]}
    asked = run.load(run.spans[1])
    assert asked.attributes["pause"] == asked.input == {"node": "approve", "value": "Go on?"}


def test_rows_that_are_only_in_the_log_are_listed() -> None:
    assert list(listed(case("live"))) == ["now-1"]


def test_the_cause_is_what_the_last_attempt_says_and_the_step_keeps_its_own_error() -> None:
    redacted = "TimeoutError [HG_NODE_FAILED]: Node 'get' raised TimeoutError."
    cause = FirstError("504 Gateway Timeout", "TimeoutError", "flaky-2:0:get", "get", Operation.NODE)
    run = read(case("v6"), "flaky-2")
    assert names(run) == ["get", "  attempt 1", "  attempt 2"]
    assert [span.error and span.error.message for span in run.spans] == [redacted, "reset by peer", cause.message]
    assert run.load(run.spans[0]).attributes["error"] == redacted
    assert run.body.error == Error(cause.message, cause.type)
    summaries = [run.summary, *(listed(case("v6"), deep=deep)["flaky-2"] for deep in (False, True))]
    assert [summary.first_error for summary in summaries] == [cause] * 3


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ("UPDATE attempt_records SET error_message = '' WHERE attempt_number = 2", REDACTED),
        ("UPDATE attempt_records SET error_message = x'ff', error_type = 7 WHERE attempt_number = 2", REDACTED),
        ("UPDATE attempt_records SET error_type = NULL", ("TimeoutError", "504 Gateway Timeout")),
        (
            "UPDATE attempt_records SET attempt_number = 3 WHERE attempt_number = 1",
            ("ConnectionError", "reset by peer"),
        ),
        ("DELETE FROM attempt_records WHERE series_id = 'series-3'", REDACTED),
        ("ALTER TABLE attempt_records RENAME COLUMN error_message TO message", REDACTED),
        ("DROP TABLE attempt_records", REDACTED),
        ("UPDATE steps SET attempt_series_id = NULL", REDACTED),
    ],
)
def test_without_a_text_of_the_last_attempt_the_cause_is_the_steps_own_error(
    copy: tuple[Path, sqlite3.Connection], change: str, cause: tuple[str, str]
) -> None:
    path, writer = copy
    with writer:
        writer.execute(change)
    summaries = [read(path, "flaky-2").summary, *(listed(path, deep=deep)["flaky-2"] for deep in (False, True))]
    assert [
        (summary.first_error.type, summary.first_error.message) for summary in summaries if summary.first_error
    ] == [cause] * 3


def test_the_cause_follows_what_an_attempt_says(copy: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = copy
    more = reading(path, "flaky-2")
    more()
    with writer:
        writer.execute("UPDATE attempt_records SET error_message = '503' WHERE attempt_number = 2")
    header = more().header
    assert header is not None
    assert header.error is not None
    assert header.error.message == "503"


@pytest.mark.parametrize("deep", [False, True])
def test_calls_of_models_and_tools_cannot_be_counted(deep: bool) -> None:
    for path in (case("v6"), CASES / "runlog" / "input" / "outer.runlog.json"):
        for summary in listed(path, deep=deep).values():
            assert (summary.llm_calls, summary.tool_calls) == (None, None)


def test_both_stages_agree_and_the_grouped_counts_equal_reading() -> None:
    for name in ("v1", "v3", "v6", "documented", "live"):
        for run_id, deep in listed(case(name)).items():
            full = read(case(name), run_id).summary
            assert (deep.steps, deep.spans, deep.errors) == (full.steps, full.spans, full.errors), run_id
            assert listed(case(name), deep=False)[run_id].first_error in (None, full.first_error)


def test_only_changed_rows_are_read_again(copy: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = copy
    more = reading(path, "outer-1")
    more()
    assert not more().spans
    insert(writer, "steps", run_id="outer-1", step_index=1, superstep=1, node_name="rag", status="completed",
           created_at="2026-03-02T09:10:00+00:00", child_run_id="outer-1/rag")  # fmt: skip
    second = more()
    spans = {span.id: span for span in second.spans}
    assert spans["outer-1:1:rag"].status is Status.OK, "the step takes the place of what was pending under the same id"
    assert not more().spans


def test_a_run_that_is_gone_is_an_error(copy: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = copy
    run = read(path, "loop-1")
    for table, key in (("steps", "run_id"), ("runs", "id")):
        writer.execute(f"DELETE FROM {table} WHERE {key} = 'loop-1'")
    with pytest.raises(FormatError, match="not in the database"):
        read(path, "loop-1")
    with pytest.raises(FormatError, match="no longer"):
        run.load(run.spans[0])


def chain(path: Path, depth: int) -> None:
    """Runs that are nested in each other, the last of them failed."""
    with database(path, V6, 6) as db:
        db.execute("BEGIN")
        for level in range(depth):
            child = f"r{level + 1}" if level + 1 < depth else None
            insert(db, "runs", id=f"r{level}", status="failed", created_at="2026-03-02T09:00:00+00:00",
                   duration_ms=1, parent_run_id=f"r{level - 1}" if level else None)  # fmt: skip
            insert(db, "steps", run_id=f"r{level}", step_index=0, superstep=0, node_name="n", status="failed",
                   error="x", created_at="2026-03-02T09:00:00+00:00", child_run_id=child)  # fmt: skip
        db.execute("COMMIT")


def test_nesting_has_no_limit(tmp_path: Path) -> None:
    chain(tmp_path / "deep.db", 1100)
    run = read(tmp_path / "deep.db", "r0")
    assert max(run.depths) == 1099  # deeper than Python calls functions
    assert listed(tmp_path / "deep.db")["r0"].spans == 1100


def test_cycles_of_parents_children_and_forks_end(tmp_path: Path) -> None:
    with database(tmp_path / "cycle.db", V6, 6) as db:
        row = {"status": "completed", "created_at": "2026-03-02T09:00:00+00:00", "duration_ms": 1}
        insert(db, "runs", id="a", parent_run_id="b", forked_from="b", **row)
        insert(db, "runs", id="b", parent_run_id="a", forked_from="a", **row)
        insert(db, "runs", id="self", parent_run_id="self", forked_from="self", retry_of="self", **row)
        for run_id, child in (("a", "b"), ("b", "a"), ("self", "self")):
            insert(db, "steps", run_id=run_id, step_index=0, superstep=0, node_name="n", child_run_id=child, **row)
    for run_id, summary in listed(tmp_path / "cycle.db").items():
        run = read(tmp_path / "cycle.db", run_id)
        assert (summary.steps, summary.spans) == (run.summary.steps, run.summary.spans)


RUN_IDS = st.sampled_from(["a", "b", "c", "a/0", "a/1", "a/n", "missing"])
LINK = st.one_of(st.none(), RUN_IDS)
RUNS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["completed", "failed", "partial", "active", "paused", "odd"]),
        "parent_run_id": LINK,
        "forked_from": LINK,
        "fork_superstep": st.sampled_from([None, 0, 1]),
    }
)
STEPS = st.fixed_dictionaries(
    {
        "run_id": RUN_IDS,
        "superstep": st.integers(0, 2),
        "node_name": st.sampled_from(["n", "m", "__retained_state__"]),
        "status": st.sampled_from(["completed", "failed", "paused", "odd"]),
        "error": st.sampled_from([None, "", "boom"]),
        "child_run_id": LINK,
        "decision": st.sampled_from([None, '"n"']),
    }
)


@given(st.dictionaries(RUN_IDS, RUNS), st.lists(STEPS, max_size=8))
def test_counting_all_runs_at_once_equals_reading_each(
    runs: dict[str, dict[str, Any]], steps: list[dict[str, Any]]
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "any.db")
        row = {"created_at": "2026-03-02T09:00:00+00:00", "duration_ms": 1}
        with database(path, V6, 6) as db:
            for run_id, run in runs.items():
                insert(db, "runs", id=run_id, **run, **row)
            unique = {(s["run_id"], s["superstep"], s["node_name"]): s for s in steps}
            for index, step in enumerate(unique.values()):
                insert(db, "steps", step_index=index, **step, **row)
        for run_id, summary in listed(path).items():
            assert summary.replace(modified_at=0.0) == read(path, run_id).summary.replace(
                modified_at=0.0, status=summary.status
            )


def test_a_long_run_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.formats.hypergraph.tree.PIECE_SECONDS", 0.0)
    path = tmp_path / "long.db"
    with database(path, V6, 6) as db:
        db.execute("BEGIN")
        insert(db, "runs", id="r", status="completed", created_at="2026-03-02T09:00:00+00:00")
        for i in range(1200):
            insert(db, "steps", run_id="r", step_index=i, superstep=i, node_name="n", status="completed",
                   created_at="2026-03-02T09:00:00+00:00")  # fmt: skip
        db.execute("COMMIT")
    assert not reading(path, "r")().done
    run = read(path, "r")
    assert [span.step for span in run.spans] == list(range(1200))


def test_a_run_that_no_step_names_is_given_again_when_its_steps_change(copy_of_items: Path) -> None:
    path = copy_of_items
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(path), "batch"))
    follower.read()
    before, spans = follower.given, {span.id for span in read(path, "batch").spans}
    assert {"run:batch/0", "run:batch/1"} <= spans
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE steps SET values_data = ? WHERE run_id = 'batch/1'", (b'{"answer": "quite another"}',))
    follower.read()
    follower.check("after the values of a step changed")
    assert follower.resets == 0
    assert follower.given - before == 2  # the run, whose output the values are, and its step


@pytest.fixture
def copy_of_items(tmp_path: Path) -> Path:
    """A map over two items: runs that name their parent, and that no step of it names."""
    path = tmp_path / "items.db"
    row = {"status": "completed", "created_at": "2026-03-02T09:00:00+00:00", "duration_ms": 1}
    with database(path, V6, 6) as db:
        insert(db, "runs", id="batch", **row)
        for number in range(2):
            insert(db, "runs", id=f"batch/{number}", parent_run_id="batch", **row)
            insert(db, "steps", run_id=f"batch/{number}", step_index=0, superstep=0, node_name="n",
                   values_data={"answer": "yes"}, **row)  # fmt: skip
    return path


def test_rows_without_an_id_or_with_one_twice_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "ids.db"
    with database(
        path, "CREATE TABLE runs (id, status); CREATE TABLE steps (run_id, superstep, node_name)", None
    ) as db:
        db.executescript("INSERT INTO runs VALUES (NULL, 'x'), ('a', 'completed'), ('a', 'failed'), (7, 'completed')")
        db.executescript("INSERT INTO steps VALUES ('a', 0, 'n'), ('a', 0, 'n'), ('a', NULL, NULL), (7, 'x', x'ff')")
    with LocalFile(str(path)) as file:
        items = list(FORMAT.summarize(file, deep=True))
    assert [item.id for item in items if isinstance(item, RunSummary)] == ["a", "7"]
    assert [item.reason for item in items if isinstance(item, Problem)] == ["2 rows have no id or a duplicate id"]
    assert len({span.id for span in read(path, "a").spans}) == 3
    assert read(path, "7").summary.id == "7"


def test_a_run_whose_id_is_not_utf_8_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "ids.db"
    tables = "CREATE TABLE runs (id TEXT, status); CREATE TABLE steps (run_id TEXT, superstep, node_name)"
    with database(path, tables, None) as db:
        broken = "CAST(x'78EDB3BF79' AS TEXT)"
        db.executescript(f"INSERT INTO runs VALUES ('a\ufffd', 'completed'), ({broken}, 'completed')")
        db.executescript(f"INSERT INTO steps VALUES ('a\ufffd', 0, 'n'), ({broken}, 0, 'n')")
    for deep in (False, True):
        with LocalFile(str(path)) as file:
            items = list(FORMAT.summarize(file, deep=deep))
        assert [item.id for item in items if isinstance(item, RunSummary)] == ["a\ufffd"]
        (problem,) = [item for item in items if isinstance(item, Problem)]
        assert problem.reason == "id is not UTF-8"


def test_other_databases_are_not_claimed(tmp_path: Path) -> None:
    with database(tmp_path / "other.db", "CREATE TABLE runs (run_uuid TEXT)", None):
        pass
    assert FORMAT.sniff(LocalFile(str(tmp_path / "other.db"))) == 0


@pytest.mark.parametrize(
    ("inputs", "prompt"),
    [
        (None, ""),
        (b'{"query": "refund policy"}', "refund policy"),
        (b'{"a": 1, "b": ["x"]}', 'a: 1; b: ["x"]'),
        (b"\x80\x04pickle", ""),
        (b'{"query": "' + b"long " * 200, ("long " * 200)[:120]),
        (b"{}", ""),
        (5, ""),
    ],
)
def test_prompts_are_a_short_text_of_the_inputs(inputs: Any, prompt: str) -> None:
    assert prompt_of(inputs[:600] if isinstance(inputs, bytes) else inputs) == prompt


def test_times() -> None:
    assert zoned("2026-03-02T09:00:00+00:00") == (1772442000.0, "UTC")
    assert zoned("2026-03-02T09:00:00Z") == (1772442000.0, "UTC")
    assert zoned("2026-03-02 09:00:00") == (1772442000.0, None)
    assert zoned("soon") == zoned(5) == zoned("2024-13-45T99:99:99Z") == (None, None)


def dump(name: str) -> Run:
    return read(CASES / "runlog" / "input" / name, None)


def test_an_inner_log_hangs_below_its_step() -> None:
    run = dump("outer.runlog.json")
    assert names(run) == ["classify", "rag", "  retrieve", "  generate", "summarize"]
    assert [s.is_step for s in run.spans] == [True, True, False, False, True]
    assert run.spans[4].note == "cached"
    assert run.load(run.spans[1]).attributes["inner_log"]["run_id"] == "run-7f9a1e36470e"
    assert (run.summary.id, run.summary.status, run.summary.status_source) == (
        "run-44e09302bede",
        Status.OK,
        StatusSource.DERIVED,
    )


def test_a_maplog_is_one_run_with_its_items() -> None:
    run = dump("batch.maplog.json")
    assert (run.summary.id, run.summary.result, run.summary.status) == ("batch.maplog", "1 of 4 failed", Status.ERROR)
    assert names(run)[:3] == ["[item 0]", "  embed", "  llm_call"]
    failed = run.summary.first_error
    assert failed is not None
    assert (failed.name, failed.message) == ("llm_call", "504 Gateway Timeout")
    assert not any(total.differs for total in run.body.totals)


def test_keys_of_a_dump_may_come_in_any_order_and_totals_are_recounted() -> None:
    run = dump("router.json")
    assert (run.summary.name, run.summary.result) == ("support_router", "→ account_support")
    assert run.summary.id == "router"
    assert [t.name for t in run.body.totals if t.differs] == ["classify count"]


def test_raw_is_the_exact_text_of_the_record() -> None:
    path = CASES / "runlog" / "input" / "outer.runlog.json"
    run = read(path, None)
    span: Span = run.spans[2]
    raw = run.load(span).raw
    assert raw in path.read_bytes()
    assert json.loads(raw)["node_name"] == "retrieve"


@needs_shared
@pytest.mark.parametrize(("version", "count"), [("v1", 7), ("v3", 13), ("v6", 27), ("v6_live_wal", 27)])
def test_real_databases(version: str, count: int) -> None:
    path = sample("hypergraph", version, "workflows.db")
    runs = listed(path)
    assert len(runs) == count
    for run_id, summary in runs.items():
        run = read(path, run_id)
        assert run.problems == ()
        assert (summary.steps, summary.spans, summary.errors) == (
            run.summary.steps,
            run.summary.spans,
            run.summary.errors,
        )


@needs_shared
def test_the_real_states_are_those_of_the_checkpointer() -> None:
    path = sample("hypergraph", "v6", "workflows.db")
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as db:
        for run_id in listed(path):
            for span in (span for span in read(path, run_id).spans if span.id.startswith(f"{run_id}:")):
                rows = db.execute(
                    "SELECT values_data FROM steps WHERE run_id = ? AND superstep <= ?"
                    " ORDER BY COALESCE(completed_at, created_at), created_at, id",
                    (run_id, span.step),
                )
                expected: dict[str, Any] = {}
                for (data,) in rows:
                    expected.update(json.loads(data) if data is not None else {})
                assert read(path, run_id).load(span).state == expected


def test_a_failed_run_that_routed_shows_why_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "workflows.db"
    v1(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE workflows SET status = 'failed' WHERE id = 'ticket-1'")
        db.execute("UPDATE steps SET status = 'failed', error = 'no such desk' WHERE node_name = 'billing_desk'")
    run = next(run for run in load_all(str(path)) if run.summary.id == "ticket-1")

    assert run.summary.result == ""
    assert "no such desk" in "".join(piece.text for piece in result_phrase(run.summary))
    assert next(span.note for span in run.spans if span.name == "route") == "→ billing_desk"


def test_a_failed_log_that_routed_shows_why_it_failed(tmp_path: Path) -> None:
    steps = [
        {
            "node_name": "route",
            "superstep": 0,
            "duration_ms": 1.0,
            "status": "completed",
            "span_id": "a",
            "decision": "desk",
        },
        {
            "node_name": "desk",
            "superstep": 1,
            "duration_ms": 1.0,
            "status": "failed",
            "span_id": "b",
            "error": "closed",
        },
    ]
    log = {"graph_name": "g", "run_id": "run-0123456789ab", "total_duration_ms": 2.0, "steps": steps, "node_stats": {}}
    (tmp_path / "log.json").write_text(json.dumps(log))
    (run,) = load_all(str(tmp_path / "log.json"))

    assert run.summary.status is Status.ERROR
    assert "closed" in "".join(piece.text for piece in result_phrase(run.summary))


@pytest.mark.parametrize("decision", ["__hg_end__", "END", ["__hg_end__"], {"name": "__hg_end__"}])
def test_the_end_of_a_graph_has_one_name(decision: Any) -> None:
    assert arrow(decision) == "→ END"
