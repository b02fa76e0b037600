"""Penelope: the result of one multi-turn test as one JSON object, today's and the documented dialect.

The object is built in memory and written once; no file name is prescribed and no id is in it (the document's
``test_id`` is read where it is there). Times are naive local ones. `tracetui.formats.penelope.records` has the sources.

As a run it has a header, a run body, and its totals recounted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, Final, TypeVar

import msgspec

from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.decode import top_names
from tracetui.formats.document import DocumentReader, Outline, summary
from tracetui.formats.penelope.records import (
    RESULT,
    TURNS,
    Configuration,
    CriterionEvaluation,
    Evaluation,
    Findings,
    Model,
    Spent,
    Stats,
    Target,
    milliseconds,
    same,
)
from tracetui.formats.penelope.turns import Turn, body_of, spans_of, turns_of
from tracetui.formats.scalars import boolean, mapping, number, sequence, source_in, string, tags_in, without, zoned
from tracetui.formats.schema import unknown_fields
from tracetui.model import (
    MESSAGE_LIMIT,
    PREVIEW,
    REASON_LIMIT,
    Body,
    Criterion,
    Error,
    FirstError,
    Header,
    Limit,
    Metric,
    Problem,
    RunBody,
    RunRef,
    RunSummary,
    Score,
    Span,
    Status,
    StatusSource,
    Total,
    Usage,
    status_of,
)
from tracetui.model.run import EVIDENCE_LIMIT, Evidence, Who
from tracetui.model.span import plain_word
from tracetui.sources.base import HEAD_SIZE, File

GENERIC: Final = ("test_result", "trace", "execution_trace")
"""File stems that name no run: the folder does."""
TURN_LIMIT: Final = ("max_turns", "max_iterations")
"""Words of a test that used all its turns, today's and the early one."""
_REPEATED: Final = re.compile(r"[✓✗] Test \w+$|(Test c|C)ompleted in \d+ turn\(s\)$|Confidence: |Failed criteria: ")
"""Findings of Penelope's own making that only repeat other fields: the status, the number of turns …"""
_GOAL: Final = "goal"
_DIGITS: Final = re.compile(r"\d{1,9}")
_T = TypeVar("_T", bound=msgspec.Struct)
_LABELS: Final = ("tags", "source", "source_uri", "source_type", "origin", "framework")


class Test:
    """A result's fields under one name each, whichever dialect wrote it. `turns` is None while they were not read."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.turns: Sequence[Turn] | None = None
        self.result = result = outline.record(RESULT, *TURNS)
        self.config = merged(Configuration, result.test_configuration, result.config)
        self.stats = merged(Stats, result.execution_stats, result.stats)
        self.model = (result.model_info or Model()).model_name or self.config.model_name or None
        self.word = result.status or None
        evaluation = result.goal_evaluation or Evaluation()
        self.evaluation = merged(Findings, evaluation, evaluation.details)  # early ones keep most of it there
        self.criteria: list[CriterionEvaluation] = []
        for i, item in enumerate(self.evaluation.criteria_evaluations or ()):
            if item is None or item.criterion is None:
                outline.note(f"goal_evaluation.criteria_evaluations[{i}]", "not a criterion")
            else:
                self.criteria.append(item)
        verdicts = {
            "goal_achieved": result.goal_achieved,
            "goal_evaluation.is_successful": self.evaluation.is_successful,
            "goal_evaluation.all_criteria_met": self.evaluation.all_criteria_met,
        }
        self.verdict = next(((name, verdict) for name, verdict in verdicts.items() if verdict is not None), None)
        """Whether the goal was achieved, and the source field."""
        self.judge_error = _raised("goal_evaluation", self.evaluation.error, self.evaluation.exception_type)
        """Why the judge gave no verdict: that the goal is not achieved is no finding then."""
        self.metrics = [_metric(name, value) for name, value in mapping(result.metrics).items()]

    @property
    def status(self) -> Status | None:
        """By its word, else by whether the goal was achieved; None: still running, or not recorded."""
        if self.word is not None:
            status = status_of(self.word)
            return None if status is Status.RUNNING else status
        return None if self.verdict is None else Status.OK if self.verdict[1] else Status.ERROR

    @property
    def ended(self) -> bool:
        """False: the result was written in the middle of the test."""
        return self.word is None or status_of(self.word) is not Status.RUNNING

    @property
    def is_evaluated(self) -> bool:
        """False for a test that broke down before anything was judged: that its goal is not met is no finding then."""
        if plain_word(self.word or "") != "error":
            return True
        return self.evaluation != Findings() and self.has_turns

    @property
    def has_turns(self) -> bool:
        """Whether there is any turn, readable or not."""
        return any(self.outline.items(name) for name in TURNS)

    @property
    def met(self) -> tuple[int | float | None, int | float | None]:
        """Criteria met and in all: counted, else as the evaluation declares them."""
        if self.criteria:
            return sum(item.met is True for item in self.criteria), len(self.criteria)
        return self.evaluation.criteria_met, self.evaluation.criteria_total

    @property
    def times(self) -> tuple[float | None, str | None, float | None]:
        """Start, zone and milliseconds. The documented dialect has no start: it is that of the first turn."""
        start, zone = zoned(self.result.start_time)
        end, _ = zoned(self.result.end_time)
        if start is not None and end is not None and end >= start:
            return start, zone, round((end - start) * 1000, 3)  # times have microseconds
        if start is None:
            starts = [time for turn in self.turns or () if (time := turn.started_at)[0] is not None]
            start, zone = min(starts, key=lambda time: time[0] or 0.0, default=(None, None))
        return start, zone, milliseconds(self.stats.execution_time_seconds)


def merged(kind: type[_T], *records: msgspec.Struct | None) -> _T:
    """Records as one: each field from the first that has it."""
    combined = kind()
    for record in reversed(records):
        for name in kind.__struct_fields__ if record is not None else ():
            if (value := getattr(record, name)) is not None:
                setattr(combined, name, value)
    return combined


# ---- the header


def header_of(test: Test, path: str) -> Header:
    """The header, as far as the turns were read."""
    result, status = test.result, test.status
    started, zone, duration = test.times
    labels = {name: getattr(result, name) for name in _LABELS}
    return Header(
        id=_id(result.test_id, PurePath(path)),
        name=(result.target_info or Target()).target_id or test.model or "penelope",
        agent="penelope",
        model=test.model,
        status=status,
        status_word=test.word,
        status_source=None if status is None else StatusSource.DERIVED if test.word is None else StatusSource.EXPLICIT,
        ended=test.ended,
        started_at=started,
        time_zone=zone,
        duration_ms=duration,
        usage=_usage(test),
        error=_cause(test),
        prompt=(test.config.goal or "")[:PREVIEW],
        result=_result(test),
        scores=tuple(_scores(test)),
        headline=_GOAL,
        excused=test.judge_error is not None and plain_word(test.word or "failure") in ("failure", *TURN_LIMIT),
        task=(_test_id(result.test_id) or "")[:MESSAGE_LIMIT] or None,
        tags=tags_in(labels, result.metadata),
        source=source_in(labels, result.metadata),
        fields=() if test.turns is None else unknown_fields(test.outline.unknown),
    )


def _id(own: Any, path: PurePath) -> str:
    """``test_id``; today's results have none: the file's stem, or its folder where the stem is a generic one."""
    return _test_id(own) or (path.parent.name if path.stem in GENERIC else "") or path.stem


def _test_id(own: Any) -> str | None:
    return str(own) if (isinstance(own, str) and own) or number(own) is not None else None


def _usage(test: Test) -> Usage | None:
    spent = merged(Spent, test.stats, test.stats.token_usage)
    prompt = spent.prompt_tokens if spent.input_tokens is None else spent.input_tokens
    completion = spent.completion_tokens if spent.output_tokens is None else spent.output_tokens
    return Usage(prompt, completion, spent.total_tokens) or None


def _scores(test: Test) -> Iterator[Score]:
    """Whether the goal was met, and every metric; none while the test runs, or if it broke down unjudged."""
    if not test.ended or not test.is_evaluated:
        return
    if test.judge_error is not None:
        source, value = test.verdict or (test.judge_error.place, None)
        yield Score.ungraded(
            _GOAL, test.judge_error, value=test.evaluation.score if value is None else value, source=source
        )
    elif test.verdict is not None:
        source, passed = test.verdict
        reason = (test.evaluation.reason or "")[:REASON_LIMIT]
        yield Score(_GOAL, test.evaluation.score, passed, source, reason=reason)
    for metric in test.metrics:
        source, fields = f"metrics.{metric.name}"[:PREVIEW], mapping(mapping(test.result.metrics).get(metric.name))
        fault = _raised(source, string(fields.get("error")), string(fields.get("exception_type")))
        if fault is not None:
            yield Score.ungraded(metric.name[:PREVIEW], fault, value=metric.score, source=source)
            continue
        reason = metric.reason[:REASON_LIMIT]
        yield Score(
            metric.name[:PREVIEW], metric.score, metric.passed, f"metrics.{metric.name}"[:PREVIEW], reason=reason
        )


def _raised(place: str, error: str | None, kind: str | None) -> Evidence | None:
    """What a judge or metric raised, as Rhesis records it in place of its findings; None if it raised nothing."""
    name = "error" if error else "exception_type"
    message = error or kind
    if not message:
        return None
    return Evidence(message[:EVIDENCE_LIMIT], f"{place}.{name}"[:PREVIEW], Who.GRADER, type=kind and kind[:PREVIEW])


def _result(test: Test) -> str:
    if test.verdict is None or test.judge_error is not None or not test.ended or not test.is_evaluated:
        return ""
    (met, total), score = test.met, test.evaluation.score
    verdict = "goal met" if test.verdict[1] else "goal not met"
    counts = f" {met}/{total}" if isinstance(met, int) and isinstance(total, int) else ""
    return verdict + counts + (f" · {score:.2f}" if score is not None and abs(score) < 1e6 else "")


def _cause(test: Test) -> FirstError | None:
    """Why the run failed, where the result itself records it; None leaves it to the first failed call.

    A judged failure is the criterion that was not met, whatever calls failed on the way. An error is the call that
    failed. A timeout or a turn limit is the call only if the run ended on it.
    """
    if test.status is not Status.ERROR:
        return None
    word, unmet = plain_word(test.word or "failure"), _unmet(test)
    if word == "failure" and unmet is not None:
        return unmet
    failures = None if test.turns is None else [failed for turn in test.turns for failed in turn.failures]
    failed = failures is None or any(failures)
    if not test.is_evaluated and (not failed or not test.has_turns):
        return _end(test)
    if word in ("timeout", *TURN_LIMIT):
        failed = failures is None or (bool(failures) and failures[-1])
    return None if failed else unmet or _end(test)


def _unmet(test: Test) -> FirstError | None:
    item = next((item for item in test.criteria if item.met is False), None)
    if item is None:
        return None
    return FirstError(f"{item.criterion}: {item.evidence}" if item.evidence else str(item.criterion), "goal not met")


def _end(test: Test) -> FirstError:
    """The end reason: of the evaluation, else of the findings, else the number of turns."""
    if test.evaluation.reason and test.is_evaluated:
        return FirstError(test.evaluation.reason, "goal not met")
    findings = [item for item in test.result.findings or () if isinstance(item, str) and item]
    specific = [item for item in findings if not _REPEATED.match(item)]
    word = (test.word or "goal not met") if test.is_evaluated else None  # an error is shown as one anyway
    used, limit = test.result.turns_used, test.config.max_turns
    if specific:
        return FirstError("; ".join(specific), word)
    if test.evaluation.reason:
        return FirstError(test.evaluation.reason, word)
    if isinstance(used, int) and isinstance(limit, int):
        return FirstError(f"ended after {used} of {limit} turns", word)
    return FirstError(findings[0] if findings else test.word or "goal not met", word)


# ---- the run as a whole


def run_body(test: Test, error: FirstError | None) -> RunBody:
    """The body of the run, with values that are not readable as turns."""
    fields = test.outline.values(*TURNS) | test.outline.rest
    turns, findings, metrics = test.turns or (), fields.get("findings"), fields.get("metrics")
    texts = isinstance(findings, list) and all(isinstance(item, str) for item in findings)
    attributes = without(fields, *(["findings"] if texts else []), *(["metrics"] if isinstance(metrics, dict) else []))
    criteria = tuple(map(_criterion, test.criteria))
    evaluation = attributes.pop("goal_evaluation", {})
    if isinstance(evaluation, dict):  # fields not shown below
        excluded = ["reason"] if isinstance(evaluation.get("reason"), str) else []
        listed = evaluation.get("criteria_evaluations")
        if isinstance(listed, list) and len(listed) == len(criteria) and all(map(_shows_all, criteria, listed)):
            excluded.append("criteria_evaluations")
        evaluation = without(evaluation, *excluded)
    if evaluation != {}:
        attributes["goal_evaluation"] = evaluation
    used = len(turns) if test.result.turns_used is None else test.result.turns_used
    limit = Limit("turns", test.config.max_turns, used, plain_word(test.word or "") in TURN_LIMIT)
    return RunBody(
        error=None if error is None else Error(error.message, error.type),
        goal=test.config.goal,
        reason=test.evaluation.reason,
        criteria=criteria,
        metrics=tuple(test.metrics),
        findings=tuple(item for item in sequence(findings) if isinstance(item, str)),
        limits=() if test.config.max_turns is None else (limit,),
        totals=tuple(_totals(test, turns, mapping(metrics))),
        last_user=next((turn.message for turn in reversed(turns) if turn.message), None),
        last_assistant=next((turn.response for turn in reversed(turns) if turn.response), None),
        attributes=attributes,
    )


def _criterion(item: CriterionEvaluation) -> Criterion:
    turns = (
        int(turn) if isinstance(turn, str) and _DIGITS.fullmatch(turn) else turn for turn in item.relevant_turns or ()
    )
    steps = tuple(turn for turn in turns if isinstance(turn, int) and not isinstance(turn, bool))
    return Criterion(item.criterion or "", item.met, item.evidence or "", steps)


def _shows_all(criterion: Criterion, item: Any) -> bool:
    """Whether the criterion has all fields of `item`."""
    parsed_fields = {
        "criterion": criterion.text,
        "met": criterion.met,
        "evidence": criterion.evidence,
        "relevant_turns": [*criterion.steps],
    }
    return isinstance(item, dict) and all(
        name in parsed_fields and same(parsed_fields[name], item[name]) for name in item
    )


def _metric(name: str, value: Any) -> Metric:
    if not isinstance(value, dict):
        score = _number(value)
        return Metric(name, score, details=value if score is None else None)
    score, threshold = _number(value.get("score")), _number(value.get("threshold"))
    passed, reason = boolean(value.get("is_successful")), string(value.get("reason"))
    typed = {"score": score, "threshold": threshold, "is_successful": passed, "reason": reason}
    details = without(value, *(key for key, typed_value in typed.items() if typed_value is not None))
    return Metric(name, score, threshold, passed, reason or "", details or None)


def _number(value: Any) -> Any:
    """`value` if it is a finite number, whole if it was."""
    return value if number(value) is not None else None


def _totals(test: Test, turns: Sequence[Turn], metrics: dict[str, Any]) -> Iterator[Total]:
    """Declared totals, recounted: turns, criteria, interactions and the calls of each tool."""
    yield from _total("turns_used", test.result.turns_used, len(turns))
    yield from _total("total_turns", test.stats.total_turns, len(turns))
    yield from _total("successful_interactions", test.stats.successful_interactions, sum(map(_succeeded, turns)))
    if test.criteria:
        met = dict(zip(("criteria_met", "criteria_total"), test.met, strict=True))
        for name, counted in met.items():
            yield from _total(name, getattr(test.evaluation, name), counted)
        for metric, value in metrics.items():
            for name, counted in met.items():
                yield from _total(f"{metric} {name}", mapping(value).get(name), counted)
    calls = Counter((call.name, call.success) for turn in turns for call in turn.calls)
    for tool, declared in mapping(test.stats.tool_usage).items():
        good, bad, open_ = (calls[tool, success] for success in (True, False, None))
        counts = {"total_calls": good + bad + open_, "successful_calls": good, "failed_calls": bad}
        for name, counted in counts.items():
            yield from _total(f"{tool} {name}", mapping(declared).get(name), counted)


def _total(name: str, declared: Any, counted: Any) -> Iterator[Total]:
    if _number(declared) is not None:
        yield Total(name, declared, counted)


def _succeeded(turn: Turn) -> bool:
    if turn.target_call is not None and turn.target_call.success is not None:
        return turn.target_call.success
    return turn.line.success is True


LIKELY: Final = 70
_REQUIRED: Final = (b"goal_achieved", b"turns_used")
_TYPICAL: Final = frozenset(
    {b"goal_evaluation", b"conversation_summary", b"test_configuration", b"execution_stats", b"target_info", *_REQUIRED}
)
"""Top-level names of a result; two of them claim a file whose head is incomplete."""


class Penelope:
    """The format; see `tracetui.formats.base.Format`."""

    name = "penelope"
    title = "Penelope test result"

    def sniff(self, file: File) -> int:
        head = file.head
        if not any(name in head for name in _TYPICAL):
            return NO
        names: set[bytes] = set()
        for name in top_names(head):
            names.add(name)
            if name in _REQUIRED and names.issuperset(_REQUIRED):
                return CERTAIN
        return LIKELY if len(head) >= HEAD_SIZE and len(names & _TYPICAL) > 1 else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        data = file.read_all()
        test = Test(Outline(data, file.path))
        header = None if deep or test.outline.problems else header_of(test, file.path)
        deep = header is None or header.started_at is None  # the start may be that of the first turn
        chunk = _chunk(test, file.path, len(data)) if deep else Chunk(header=header)
        yield summary(RunRef(self.name, file.path), file, chunk, deep=deep)

    def open(self, file: File, ref: RunRef) -> Reader:
        return DocumentReader(_read)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From data of the reader; `raw` has the exact bytes, or a rendering if the file is not strict JSON."""
        return body_of(span.at)


def _read(file: File, data: bytes) -> Chunk:
    test = Test(Outline(data, file.path))
    chunk = _chunk(test, file.path, len(data))
    return msgspec.structs.replace(chunk, body=run_body(test, chunk.header.error if chunk.header else None))


def _chunk(test: Test, path: str, size: int) -> Chunk:
    """The whole run, but for its body."""
    test.turns = turns_of(test.outline)
    timings = {
        timing.turn_number: milliseconds(timing.duration_seconds) for timing in test.stats.turn_timings or () if timing
    }
    spans = [span for turn in test.turns for span in spans_of(turn, timings)]
    header = msgspec.structs.replace(header_of(test, path), size=size)
    return Chunk(spans=spans, header=header, problems=test.outline.problems)
