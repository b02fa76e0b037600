"""Traces of MLflow: values are those of `mlflow.search_traces` on the database that mlflow 3.17.2 wrote."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from tests.shared import needs_shared, sample
from tracetui.errors import FormatError
from tracetui.formats.mlflow import MLflow
from tracetui.model import Operation, Problem, Run, RunRef, RunSummary, Span, Status, StatusSource, Usage
from tracetui.sources.local import LocalFile
from tracetui.testing import read_run
from tracetui.testing.reading import DisplayedValues, leaves

FORMAT = MLflow()
STORE, LIVE = (Path(__file__).parent / "mlflow" / name / "input" / "mlflow.db" for name in ("store", "live"))


def listed(path: Path, *, deep: bool = True) -> tuple[list[RunSummary], list[Problem]]:
    with LocalFile(str(path)) as file:
        items = list(FORMAT.summarize(file, deep=deep))
    return [item for item in items if isinstance(item, RunSummary)], [i for i in items if isinstance(i, Problem)]


def read(number: int, path: Path = STORE) -> Run:
    runs, _ = listed(path)
    return read_run(FORMAT, runs[number].ref)


def outline(run: Run) -> list[str]:
    return [f"{'  ' * depth}{span.name}" for span, depth in zip(run.spans, run.depths, strict=True)]


def body_of(path: Path, run: Run, span: Span) -> Any:
    with LocalFile(str(path)) as file:
        return FORMAT.body(file, run.summary.ref, span)


def changed_copy(tmp_path: Path, *statements: str) -> Path:
    path = tmp_path / "mlflow.db"
    copyfile(STORE, path)
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path


def test_the_status_is_that_of_the_trace_whatever_a_span_inside_says() -> None:
    runs, _ = listed(STORE)
    facts = [(run.name, run.status, run.status_word, run.status_source, run.errors) for run in runs]
    explicit = StatusSource.EXPLICIT
    assert facts == [
        ("orchard-agent", Status.OK, "OK", explicit, 0),
        ("orchard-agent", Status.ERROR, "ERROR", explicit, 2),
        ("outer", Status.OK, "OK", explicit, 1),
    ]


def test_the_spans_are_a_tree() -> None:
    assert outline(read(2)) == ["outer", "  inner", "    gpt-4o", "    weigh", "    oak-2"]


def test_usage_counts_once() -> None:
    runs, _ = listed(STORE)
    assert [run.usage for run in runs][:2] == [Usage(100, 10, 110, 40)] * 2
    usage = runs[2].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (150, 15, 165)
    assert usage.cost_usd == pytest.approx(0.0015)


def test_messages_of_a_call_are_messages() -> None:
    run = read(0)
    call = next(span for span in run.spans if span.operation is Operation.CHAT)
    body = body_of(STORE, run, call)
    assert [message.role for message in body.input_messages] == ["system", "user"]
    assert call.preview == "→ weigh"
    assert body.output_messages[0].finish_reason == "tool_calls"


def test_every_attribute_and_event_of_a_span_is_shown() -> None:
    displayed = DisplayedValues(read(number) for number in range(3))
    with closing(sqlite3.connect(f"file:{STORE}?mode=ro&immutable=1", uri=True)) as db:
        contents = [json.loads(content) for (content,) in db.execute("SELECT content FROM spans")]
    assert len(contents) == 13
    for content in contents:
        values = [json.loads(value) for value in content["attributes"].values()]
        for _, value in leaves([values, [event["attributes"] for event in content["events"]]]):
            assert displayed.has(value), value


def test_feedback_is_a_score_until_a_later_one_replaces_it() -> None:
    scores = {(score.name, score.value, score.graded) for score in read(0).summary.scores}
    assert scores == {("correct", True, True), ("tone", 0.5, True), ("tone", 0.9, True), ("broken", None, False)}


def test_tags_and_the_session_are_tags() -> None:
    assert read(0).summary.tags == ("season:autumn", "s-9")


def test_a_trace_in_progress_has_no_end_and_no_missing_parent() -> None:
    run = read(0, LIVE)
    assert run.summary.status in (Status.RUNNING, Status.UNKNOWN)
    assert run.summary.status_word == "IN_PROGRESS"
    assert outline(run) == ["first"]
    assert not run.problems


def test_a_trace_without_an_end_is_over_once_others_began_long_after_it(tmp_path: Path) -> None:
    name = "UPDATE trace_info SET {} WHERE rowid = (SELECT min(rowid) FROM trace_info)"
    path = changed_copy(tmp_path, name.format("status = 'IN_PROGRESS', timestamp_ms = timestamp_ms - 3600000"))
    assert listed(path)[0][0].status is Status.UNKNOWN


def test_records_missing_from_the_database_are_problems(tmp_path: Path) -> None:
    first = "(SELECT request_id FROM trace_info ORDER BY rowid LIMIT 1)"
    path = changed_copy(tmp_path, f"UPDATE spans SET trace_id = 'x' WHERE trace_id = {first}")
    _, problems = listed(path)
    assert [(problem.where, problem.reason[:1]) for problem in problems] == [("spans", "4"), ("trace_info", "1")]


def test_a_span_that_is_no_json_is_a_problem_of_its_trace(tmp_path: Path) -> None:
    path = changed_copy(tmp_path, "UPDATE spans SET content = '{' WHERE name = 'weigh'")
    assert [len(read(number, path).problems) for number in range(3)] == [1, 1, 1]


def test_older_stores_have_names_sessions_and_tokens_beside_the_trace(tmp_path: Path) -> None:
    columns = ("trace_name", "session_id", "input_tokens", "output_tokens", "total_tokens", "cache_read_input_tokens")
    tokens = """INSERT INTO trace_request_metadata (key, value, request_id)
        SELECT 'mlflow.trace.tokenUsage', '{"input_tokens": 7, "output_tokens": 1, "total_tokens": 8}', request_id
        FROM trace_info"""
    named = (
        "INSERT INTO trace_tags (key, value, request_id) SELECT 'mlflow.traceName', 'old', request_id FROM trace_info"
    )
    dropped = [f"UPDATE trace_info SET {column} = NULL" for column in columns]
    run = listed(changed_copy(tmp_path, tokens, named, *dropped))[0][0]
    assert (run.name, run.usage) == ("old", Usage(7, 1, 8, 40))


def test_a_body_of_a_span_that_changed_is_refused(tmp_path: Path) -> None:
    run = read(0)
    path = changed_copy(tmp_path, "UPDATE spans SET content = replace(content, 'weigh', 'wait')")
    span = next(span for span in run.spans if span.name == "weigh")
    with pytest.raises(FormatError):
        body_of(path, run, span)


def test_classic_runs_alone_are_no_traces(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE runs (run_uuid); CREATE TABLE metrics (key); CREATE TABLE trace_info (a);")
    with LocalFile(str(path)) as file:
        assert FORMAT.sniff(file) == 0


@needs_shared
@pytest.mark.shared
def test_the_samples_have_the_values_of_mlflow() -> None:

    path = sample("mlflow", "mlflow.db")
    statuses = {"OK": Status.OK, "ERROR": Status.ERROR}
    for key, facts in json.loads((path.parent / "facts.json").read_text()).items():
        run = read_run(FORMAT, RunRef(FORMAT.name, str(path), key))
        usage, tokens = run.summary.usage or Usage(), facts["token_usage"] or {}
        assert run.summary.status is statuses.get(facts["state"], run.summary.status), key
        assert (usage.input_tokens, usage.output_tokens) == (tokens.get("input_tokens"), tokens.get("output_tokens"))
        assert len(run.spans) == facts["spans"]
        assert sum(span.status is Status.ERROR for span in run.spans) == len(facts["error_spans"])
