"""OTLP JSON: evaluations as events of spans, as log records, as attributes, and of evaluators in other traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.test_otlp import CHAT, FORMAT, TRACE, Record, request, span
from tests.formats.test_otlp_logs import log, logs, value
from tests.shared import examples
from tracetui.formats.otlp.records import Event
from tracetui.formats.otlp.vocabulary import scores_of_span
from tracetui.model import Run, RunRef, RunSummary, Score
from tracetui.sources.base import CACHE
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing, read_run

OTHER = "b" * 32
RESULT = "gen_ai.evaluation.result"
LABEL_RULE = "label pass, passed or correct; fail, failed or incorrect"


def attributes(fields: dict[str, Any]) -> list[Record]:
    doubles = {key: {"doubleValue": value} for key, value in fields.items() if isinstance(value, float)}
    return [{"key": key, "value": doubles.get(key) or value(field)} for key, field in fields.items()]


def event(name: str, /, **fields: Any) -> Record:
    """An event ``gen_ai.evaluation.NAME``; of the fields ``score_label`` is ``gen_ai.evaluation.score.label``."""
    names = {f"gen_ai.evaluation.{key.replace('_', '.')}": value for key, value in fields.items()}
    return {"name": name, "timeUnixNano": "1772442900000000000", "attributes": attributes(names)}


def written(folder: Path, *requests: Record, indent: int | None = None) -> Path:
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps(request, indent=indent) + "\n" for request in requests))
    return path


def both(path: Path, key: str = TRACE) -> tuple[RunSummary, Run]:
    """One trace in the list, and opened."""
    with LocalSource().open(str(path)) as file:
        runs = [run for run in FORMAT.summarize(file, deep=False) if isinstance(run, RunSummary)]
    return next(run for run in runs if run.ref.key == key), read_run(FORMAT, RunRef("otlp", str(path), key))


def scores(path: Path, key: str = TRACE) -> tuple[Score, ...]:
    summary, run = both(path, key)
    assert summary.scores == run.summary.scores
    assert summary.outcome == run.summary.outcome
    return summary.scores


def top(**fields: Any) -> Record:
    return span(1, None, 0, 90, **fields)


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        (
            event(RESULT, name="kindness", score_value=0.25, score_label="Fail", explanation="It was curt."),
            Score("kindness", 0.25, False, f"span {1:016x}: {RESULT}", LABEL_RULE, "It was curt."),
        ),
        (
            event(RESULT, name="kindness", score_label="correct"),
            Score("kindness", "correct", True, f"span {1:016x}: {RESULT}", LABEL_RULE),
        ),
        (
            event(RESULT, name="kindness", score_value=1, score_label="curt"),
            Score("kindness", 1, None, f"span {1:016x}: {RESULT}"),
        ),
        (
            event("gen_ai.evaluation.kindness", score=4),
            Score("kindness", 4, None, f"span {1:016x}: gen_ai.evaluation.kindness"),
        ),
    ],
)
def test_events_of_a_span_are_scores(tmp_path: Path, fields: Record, score: Score) -> None:
    assert scores(written(tmp_path, request(top(events=[fields])))) == (score,)


def test_an_evaluator_that_failed_says_why(tmp_path: Path) -> None:
    evaluation = event(RESULT, name="kindness")
    evaluation["attributes"] += attributes({"error.type": "TimeoutError"})
    (score,) = scores(written(tmp_path, request(top(events=[evaluation]))))
    assert (score.value, score.passed, score.reason) == (None, None, "TimeoutError")


@pytest.mark.parametrize(
    ("fields", "error", "outcome", "who"),
    [
        ({"name": "kindness", "explanation": "no answer"}, "TimeoutError", "ungraded", "grader"),
        ({"name": "kindness", "score_label": "fail"}, "TimeoutError", "failed", "agent"),  # it gave a score
        ({"name": "kindness"}, None, None, None),
    ],
)
def test_an_evaluation_with_an_error_and_no_score_is_ungraded(
    tmp_path: Path, fields: dict[str, Any], error: str | None, outcome: str | None, who: str | None
) -> None:
    evaluation = event(RESULT, **fields)
    evaluation["attributes"] += attributes({} if error is None else {"error.type": error})
    (run, *_) = both(written(tmp_path, request(top(events=[evaluation]))))
    assert (run.outcome, run.who) == (outcome, who)
    if outcome == "ungraded":
        assert run.evidence is not None
        assert run.evidence.text == "TimeoutError: no answer"
        assert run.evidence.place.endswith("gen_ai.evaluation.result error.type")


def test_all_evaluations_of_a_trace_decide_its_outcome(tmp_path: Path) -> None:
    good, bad = (event(RESULT, name=name, score_label=name) for name in ("pass", "fail"))
    record = span(2, 1, 1, 80, attributes=CHAT, events=[good])
    path = written(tmp_path, request(record), request(top(events=[good, bad])))
    assert [score.passed for score in scores(path)] == [True, True, False]
    assert both(path)[0].outcome == "failed"


def test_a_span_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    bad, good = (top(events=[event(RESULT, name="kindness", score_label=label)]) for label in ("fail", "pass"))
    assert [score.passed for score in scores(written(tmp_path, request(bad), request(bad), request(good)))] == [True]


@pytest.mark.parametrize("before", [True, False])
def test_log_records_are_scores_of_their_span_or_trace(tmp_path: Path, before: bool) -> None:
    fields = {"gen_ai.evaluation.name": "kindness", "gen_ai.evaluation.score.label": "pass"}
    of_span = log(RESULT, None, 1, attributes=attributes(fields))
    of_trace = log(RESULT, None, 1, attributes=attributes(fields))
    del of_trace["spanId"]
    lines = [logs(of_span, of_trace, of_span), request(top())]
    assert [score.source for score in scores(written(tmp_path, *(lines if before else lines[::-1])))] == [
        f"span {1:016x}: {RESULT}",
        RESULT,
    ]


FEEDBACK = {
    "annotations.0.annotation.name": "kindness",
    "annotations.0.annotation.score": 0.5,
    "annotations.0.annotation.explanation": "It was curt.",
    "evaluations.0.evaluation.name": "kindness",
    "evaluations.0.evaluation.score": 0.5,
    "evaluations.0.evaluation.explanation": "It was curt.",
    "trace.evaluations.0.evaluation.name": "goal",
    "trace.evaluations.0.evaluation.label": "incorrect",
    "trace.evaluations.1.evaluation.name": "pace",
    "trace.evaluations.1.evaluation.label": "slow",
    "session.annotations.0.annotation.name": "session",
    "session.annotations.0.annotation.label": "fail",
}


def test_feedback_of_open_inference_counts_once_and_that_on_a_session_not_at_all(tmp_path: Path) -> None:
    where = f"span {1:016x}: "
    assert scores(written(tmp_path, request(top() | {"attributes": attributes(FEEDBACK)}))) == (
        Score("kindness", 0.5, None, f"{where}annotations.0.annotation", reason="It was curt."),
        Score("goal", "incorrect", False, f"{where}trace.evaluations.0.evaluation", LABEL_RULE),
        Score("pace", "slow", None, f"{where}trace.evaluations.1.evaluation"),
    )


def test_an_evaluation_may_be_a_span(tmp_path: Path) -> None:
    fields = {"gen_ai.evaluation.name": "kindness", "gen_ai.evaluation.score.value": 2}
    (score,) = scores(written(tmp_path, request(top(), span(2, 1, 1, 2, attributes=fields))))
    assert (score.name, score.value) == ("kindness", 2)


def evaluator(*targets: str) -> Record:
    links = [{"traceId": target, "spanId": f"{1:016x}"} for target in targets]
    kind = {"openinference.span.kind": "EVALUATOR"}
    named = {"evaluations.0.evaluation.name": "kindness", "evaluations.0.evaluation.label": "fail"}
    return span(9, None, 100, 110, attributes=kind | named) | {"traceId": OTHER, "links": links}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("before", [True, False])
def test_an_evaluator_in_another_trace_scores_the_one_that_it_is_linked_to(
    tmp_path: Path, before: bool, indent: int | None
) -> None:
    lines = [request(evaluator(TRACE)), request(top())]
    path = written(tmp_path, *(lines if before else lines[::-1]), indent=indent)
    assert [score.passed for score in scores(path)] == [False]
    assert scores(path, OTHER) == ()


@pytest.mark.parametrize("targets", [(), (TRACE, "c" * 32), (OTHER,)])
def test_an_evaluator_without_one_target_scores_its_own_trace(tmp_path: Path, targets: tuple[str, ...]) -> None:
    path = written(tmp_path, request(top()), request(evaluator(*targets)))
    assert scores(path) == ()
    assert [score.passed for score in scores(path, OTHER)] == [False]


def test_a_target_that_is_not_in_the_file_is_no_run(tmp_path: Path) -> None:
    path = written(tmp_path, request(evaluator(TRACE)))
    with LocalSource().open(str(path)) as file:
        (summary,) = FORMAT.summarize(file, deep=False)
    assert isinstance(summary, RunSummary)
    assert (summary.ref.key, summary.scores) == (OTHER, ())


def test_an_evaluation_that_comes_long_after_its_trace_is_seen(tmp_path: Path) -> None:
    """The list keeps no more than the summary of a trace that ended, and reads the file again."""
    path = written(tmp_path, request(top()))
    memo: dict[Any, Any] = {}
    growing = Growing(FORMAT, RunRef("otlp", str(path), TRACE))
    growing.read()

    def summaries() -> dict[str | None, RunSummary]:
        with LocalSource().open(str(path)) as file:
            file.memo[CACHE] = memo
            return {run.ref.key: run for run in FORMAT.summarize(file, deep=False) if isinstance(run, RunSummary)}

    for ident in (2, 3):
        with path.open("a") as stream:
            stream.write(json.dumps(request(span(ident, None, 0, 9) | {"traceId": f"{ident:032x}"})) + "\n")
        assert summaries()[TRACE].outcome is None
    with path.open("a") as stream:
        stream.write(json.dumps(request(evaluator(TRACE))) + "\n")
    assert summaries()[TRACE].outcome == "failed"
    growing.read()
    assert growing.run().summary.outcome == "failed"


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.lists(st.integers())
KEYS = st.sampled_from([*FEEDBACK, "gen_ai.evaluation.name", "gen_ai.evaluation.score.value", "error.type"])


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(KEYS, VALUES), st.sampled_from([RESULT, "gen_ai.evaluation.", "gen_ai.choice", ""]))
def test_any_attributes_give_scores_that_can_be_printed(fields: dict[str, Any], name: str) -> None:
    for score in scores_of_span("1", fields, [Event(name, None, fields, {})]):
        assert isinstance(score.name, str)
        assert score.value is None or isinstance(score.value, bool | int | float | str)
        assert score.value == score.value
        assert score.passed is None or score.rule == LABEL_RULE
