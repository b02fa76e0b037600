"""Samples and failed attempts as runs, and the eval if its samples don't show its status. Also the bodies of spans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk
from tracetui.formats.bodies import rendered
from tracetui.formats.grading import first_failure
from tracetui.formats.inspect_ai.events import EventRef, SpanWriter, limit_outcome, sum_usage
from tracetui.formats.inspect_ai.grading import ended_ungraded, without_tests
from tracetui.formats.inspect_ai.log import (
    Entry,
    Log,
    Sample,
    SampleRecord,
    attempt_suffix,
    completion_of,
    error_type,
    field,
    is_nan,
    items_of,
    joined,
    open_log,
    prompt_in,
    record_of,
    resolved,
    score_text,
    text_in,
    value_of,
)
from tracetui.formats.scalars import (
    between,
    folder_of,
    integer,
    mapping,
    moment,
    number,
    score_value,
    sequence,
    tags_in,
    task_key,
    without,
    word,
)
from tracetui.formats.schema import NULL, plain, unknown_fields
from tracetui.model import (
    MESSAGE_LIMIT,
    PREVIEW,
    REASON_LIMIT,
    Blob,
    Body,
    Error,
    FirstError,
    Header,
    Limit,
    Message,
    Metric,
    Operation,
    Part,
    Problem,
    Reasoning,
    RunBody,
    Score,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    ToolResult,
    Total,
    Usage,
    excerpt,
    status_of,
)
from tracetui.sources.base import CACHE, File, Stat

RETRY: Final = "retry"
EVAL: Final = "eval"
"""Key and name of the run of an eval itself."""
_GIVEN: Final = 1_000
"""Characters of the input that distinguish one task from another: summaries have 5,120 of them."""
_CANCELLED: Final = "CancelledError"
"""The error of a sample that Inspect stopped, because another one failed or somebody ended the eval."""
_FAILED: Final = frozenset({Status.ERROR, Status.CANCELLED})
_GRADES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Texts that Inspect's `value_to_float` counts as a number: correct, incorrect, partial, no answer …"""
_PASSED: Final[dict[float | None, bool]] = {1.0: True, 0.0: False}
_GRADE_RULE: Final = "C, yes and true passed; I, N, no and false failed; P is partial"
_NUMBER_RULE: Final = "the scorer's metric is accuracy: 1 passed, 0 failed"
_NAME_LENGTH: Final = 24
"""Characters of the name of a scorer in a phrase."""


class Task:
    """Data shared by all runs of a log."""

    def __init__(self, log: Log) -> None:
        spec = mapping(field(log.header, "eval"))
        self.name = (word(spec.get("task")) or word(spec.get("task_display_name")) or "eval")[:PREVIEW]
        ids = (word(spec.get(name)) for name in ("eval_id", "run_id", "task_id"))
        self.id = next(filter(None, ids), folder_of(log.path) or "log")[:PREVIEW]
        writer = word(mapping(spec.get("packages")).get("inspect_ai"))
        numbers = re.match(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", writer or "")
        self.version = tuple(int(part or 0) for part in numbers.groups()) if numbers else None
        """The version of Inspect that wrote the log: ``0.3.95.dev16+g6527d`` is (0, 3, 95)."""
        self.config = mapping(spec.get("config"))
        self.epochs = integer(self.config.get("epochs")) or 1
        self.dataset = mapping(spec.get("dataset"))
        source = word(self.dataset.get("name")) or word(self.dataset.get("location")) or ""
        self.created = moment(spec.get("created"))
        self.binary = _binary_scores(spec) or _measured_scores(log)
        """Names of the scores that are 1 or 0: their accuracy is measured. ``NAME *`` for all values of a scorer."""
        self.common: dict[str, Any] = {
            "name": self.name,
            "agent": (word(spec.get("solver")) or "")[:PREVIEW] or None,
            "model": (word(spec.get("model")) or "")[:PREVIEW] or None,
            "tags": tags_in({"tags": field(log.header, "tags") or None}, spec),
            "source": source[:PREVIEW] or None,
            "writer": writer[:PREVIEW] if writer else None,
        }
        """Fields that the headers of all its runs share."""

    def run_id(self, key: str) -> str:
        """The id of the run of that key, the same in whatever folder its log is."""
        return f"{self.id}/{key}"


# ---- samples


def header_of(task: Task, entry: Entry, record: SampleRecord) -> Header:
    """The header of a sample or an attempt. `record`: its summary; the sample where there is none."""
    given = prompt_in(plain(record.input))
    epoch = integer(record.epoch)
    label = f"{record.id!s}"[: PREVIEW // 2] + (f" #{epoch}" if task.epochs > 1 or (epoch or 1) > 1 else "")
    previous = entry.attempts if entry.attempt is None else entry.attempt - 1
    identity = None
    if record.uuid and record.started_at:  # a log that continues another one copies its samples
        identity = task_key(task.name, "\n".join((record.uuid, record.started_at, entry.key)))
    header = Header(
        id=task.run_id(entry.key),
        **task.common,
        prompt=" ".join(given[:_GIVEN].split())[:PREVIEW],
        label=label,
        replay_of=task.run_id(entry.sample + attempt_suffix(previous)) if previous else None,
        relation=RETRY if previous else None,
        repeats=task_key(task.name, f"{record.id!s}\n{given[:_GIVEN]}"),
        identity=identity,
        task=f"{task.name}/{record.id!s}"[:MESSAGE_LIMIT],
        trial=None if epoch is None else str(epoch),
        size=entry.size,
    )
    if entry.attempt is None:
        return _completed(header, task, record)
    label = f"{label} try {entry.attempt}"
    return replace(header, label=label, status=Status.ERROR, status_source=StatusSource.EXPLICIT, size=None)


def _completed(header: Header, task: Task, record: SampleRecord) -> Header:
    """A log has complete samples only: they succeeded unless a field says otherwise."""
    if record == SampleRecord(record.id, record.epoch):  # it cannot be read, and has no summary
        return replace(header, status=Status.UNKNOWN, status_source=StatusSource.DERIVED)
    error, limit = plain(record.error), plain(record.limit)
    started, took = moment(record.started_at), record.total_time
    recorded = plain(record.scores), plain(record.score)
    scored = score_phrase(scores_of(*recorded))
    header = replace(
        header,
        started_at=started,
        duration_ms=between(started, moment(record.completed_at)) if took is None else max(0.0, took * 1000),
        usage=sum_usage(record.model_usage, task.version) if record.model_usage is not NULL else None,
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        result=scored,
        scores=tuple(score for score, _ in graded(*recorded, task.binary)),
    )
    if error not in (None, "", {}):
        cause = first_error(error)
        status = Status.CANCELLED if cause.type == _CANCELLED else Status.ERROR
        return replace(header, status=status, status_source=StatusSource.EXPLICIT, error=cause, result="")
    kind = word(limit) or word(mapping(limit).get("type"))
    if kind is None:
        return header
    status, source, limit_error = limit_outcome(kind, "")
    cut = f"{kind} limit"
    return replace(
        header,
        status=status,
        status_word=cut[:PREVIEW],
        status_source=source,
        error=None if limit_error is None else FirstError(limit_error.message, limit_error.type),
        result=joined((cut, scored)),
    )


def first_error(error: Any) -> FirstError:
    """The cause that a sample or an eval states: a text, or a message with a traceback."""
    fields = error if isinstance(error, str) else mapping(error).get("message")
    message = fields if isinstance(fields, str) else ""
    return FirstError(excerpt(message), error_type(message))


class SampleRun:
    """One run of a log, read as a whole."""

    def __init__(self, log: Log, entry: Entry, task: Task) -> None:
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self._log, self._entry, self._task = log, entry, task
        self._sample: Sample | None = None
        self.header: Header
        try:
            self._sample = log.sample(entry.sample)
            self._read(self._sample)
        except FormatError as fault:
            self.header = header_of(task, entry, entry.record)
            self._add_problem(fault.reason, fault.where, torn=True)

    def chunk(self) -> Chunk:
        """Everything about the run."""
        return Chunk(spans=self.spans, header=self.header, body=self._body(), problems=self.problems)

    def _read(self, sample: Sample) -> None:
        entry, writer = self._entry, SpanWriter(sample.check, sample.resolve, self._task.version, self._log.path)
        writer.write(sample.events(entry.attempt))
        # the summary first: the list stage sees nothing else, and a sample may call itself by another id
        header = header_of(self._task, entry, entry.record.or_else(sample.record))
        self.spans, self.problems = writer.spans, writer.problems
        error = header.error
        if entry.attempt is not None:
            error = first_error(field(sample.attempt(entry.attempt), "message"))
            header = replace(header, error=error)
            if not any(_is_cause(span.error, error) for span in self.spans):
                writer.add_failure(Error(error.message, error.type))
        if error is not None:  # the last span: errors that were caught came before
            span = next((span for span in reversed(self.spans) if _is_cause(span.error, error)), None)
            if span is not None:
                error = FirstError(error.message, error.type, span.id, span.name, span.operation)
        self.header = replace(_regraded(header, writer.events), error=error, fields=unknown_fields(writer.unknown))
        missed = len(sample.attempts) - entry.attempts
        if entry.attempt is None and missed > 0:
            self._add_problem(f"{missed} failed attempts are not listed: the summary of the sample does not count them")
        elif entry.attempt is not None and entry.attempt > len(sample.attempts):
            self._add_problem("the summary of the sample counts more failed attempts than it has")

    def _add_problem(self, reason: str, where: str = "", *, torn: bool = False) -> None:
        lost = self._entry.size if torn else None
        self.problems.append(Problem(self._log.path, where or self._entry.key, reason, lost=lost, torn=torn))

    def _body(self) -> RunBody:
        """The body of the run, with the fields of its eval."""
        sample, entry, about = self._sample, self._entry, {"eval": self._log.fields}
        if sample is None:
            record = record_of(entry.item) or {"id": entry.record.id, "epoch": entry.record.epoch}
            return RunBody(attributes={**{name: field(record, name) for name in record}, **about})
        fields = sample.fields
        given = fields.pop("input", None)
        if entry.attempt is not None:
            record = sample.attempt(entry.attempt)
            failed = {name: field(record, name) for name in record if name != "events"}
            return RunBody(input=given, error=error_of(failed), attributes={**failed, **about})
        conversation = sequence(fields.get("messages"))
        return RunBody(
            input=given,
            output=completion_of(fields.get("output")),
            error=error_of(fields.get("error")),
            metrics=tuple(metric for _, metric in graded(fields.get("scores"), fields.get("score"), self._task.binary)),
            limits=tuple(_limits(self._task.config, fields.get("limit"))),
            totals=_totals(self.header.usage, self.spans),
            system_prompt=_last(conversation[:1], "system"),
            last_user=_last(conversation, "user"),
            last_assistant=_last(conversation, "assistant"),
            attributes={**fields, **about},
        )


def _regraded(header: Header, events: list[Any]) -> Header:
    """The header, with the scores that its events say were not given by a scorer."""
    error, scores = header.error, list(header.scores)
    if header.status is Status.ERROR and error is not None:
        broken = ended_ungraded(events, None if header.status_source is StatusSource.POLICY else error.message)
        if broken is not None and not any(score.name == broken.scorer for score in scores):
            scores.append(Score.ungraded(broken.scorer, broken.evidence))
            return replace(header, scores=tuple(scores), excused=True)
    if any(score.passed is False for score in scores):
        reasons = without_tests(events)
        for index, score in enumerate(scores):
            reason = reasons.get(score.name)
            if reason is not None and score.passed is False:
                scores[index] = Score.ungraded(score.name, reason, value=score.value, source=score.source)
    return replace(header, scores=tuple(scores))


def _is_cause(error: Error | None, stated: FirstError | None) -> bool:
    if error is None or stated is None:
        return False
    if stated.type is not None and stated.type.endswith(" limit"):
        return error.type == stated.type
    return error.message == stated.message


def error_of(fields: Any) -> Error | None:
    if fields in (None, "", {}):
        return None
    cause = first_error(fields)
    return Error(cause.message, cause.type)


def _last(messages: list[Any], role: str) -> str | None:
    fields = (
        text_in(mapping(message).get("content"))
        for message in reversed(messages)
        if mapping(message).get("role") == role
    )
    return next((text for text in fields if text), None)


def _limits(config: dict[str, Any], cut: Any) -> list[Limit]:
    """The limits of a sample, and which of them cut it off."""
    fields = mapping(cut)
    kind = word(fields.get("type")) or word(cut)
    names = [name for name in config if name.endswith("_limit") and number(config[name]) is not None]
    limits = [Limit(name, number(config[name]), violated=name == f"{kind}_limit") for name in names]
    if kind is not None and not any(limit.violated for limit in limits):
        limits.append(Limit(f"{kind} limit"[:PREVIEW], number(fields.get("limit")), violated=True))
    return limits


def _totals(declared: Usage | None, spans: list[Span]) -> tuple[Total, ...]:
    """The declared usage of a sample, next to the sum of its calls."""
    counted = Usage()
    for span in spans:
        if span.usage is not None and span.operation is Operation.CHAT:
            counted = counted + span.usage
    if declared is None:
        return ()
    names = ("input_tokens", "output_tokens", "total_tokens")
    totals = (Total(name, getattr(declared, name), getattr(counted, name)) for name in names)
    return tuple(total for total in totals if total.declared is not None)


# ---- the eval itself


def is_shown(log: Log) -> bool:
    """Whether the eval is a run of its own: it has no samples, is running, or failed although none of them did."""
    if not log.samples or not log.ended:
        return True
    status = status_of(word(field(log.header, "status")) or "")
    return status in _FAILED and not any(plain(entry.record.error) for entry in log.samples.values())


def eval_header(log: Log, task: Task) -> Header:
    """The header of the eval itself. Usage belongs to its samples, if the log has them."""
    stats, results = mapping(field(log.header, "stats")), mapping(field(log.header, "results"))
    stated, error = word(field(log.header, "status")), field(log.header, "error")
    started = moment(stats.get("started_at")) or task.created
    status = status_of(stated or "")
    is_recorded = log.ended and status is not Status.UNKNOWN
    wanted = _wanted(task)
    done = f"{len(log.samples)}/{wanted} samples" if wanted else f"{len(log.samples)} samples"
    if log.ended:
        done = "" if log.samples else "no samples in the log"
    scored = joined(
        f"{metric.name} {metric.score:.4g}" for metric in results_of(results)[:3] if metric.score is not None
    )
    return Header(
        id=task.id,
        **task.common,
        label=EVAL,
        status=status if is_recorded else None,
        status_word=stated[:PREVIEW] if stated else None,
        status_source=StatusSource.EXPLICIT if is_recorded else None,
        ended=log.ended,
        started_at=started,
        duration_ms=between(started, moment(stats.get("completed_at"))),
        usage=sum_usage(stats.get("model_usage"), task.version) if log.ended and not log.samples else None,
        error=first_error(error) if error not in (None, "", {}) else None,
        result="" if error else joined((done, scored)),
        tells_calls=False,
    )


def eval_body(log: Log) -> RunBody:
    """The body of the eval."""
    listed = [entry.key for entry in log.runs()]
    return RunBody(
        error=error_of(log.fields.get("error")),
        metrics=results_of(log.fields.get("results")),
        attributes={**log.fields, **({"runs": listed} if listed else {})},
    )


def _wanted(task: Task) -> int | None:
    """How many samples there are to be: those of the data set that are wanted, in each epoch."""
    listed = sequence(task.dataset.get("sample_ids"))
    count = len(listed) if listed else integer(task.dataset.get("samples"))
    return None if count is None else count * max(1, task.epochs)


# ---- scores


def scores_of(scores: Any, single: Any) -> dict[str, Any]:
    """The scores of a sample by scorer; early logs have one, without a name."""
    return mapping(scores) or ({"score": single} if isinstance(single, dict) else {})


def score_phrase(scores: dict[str, Any]) -> str:
    """``includes C · f1 0.75``."""
    values = ((name, score_text(mapping(score).get("value"))) for name, score in list(scores.items())[:8])
    return joined(f"{name[:_NAME_LENGTH]} {value}" for name, value in values if value)


def graded(scores: Any, single: Any, binary: frozenset[str]) -> Iterator[tuple[Score, Metric]]:
    """Each score of a sample, and the same as a metric with all that is recorded of it.

    A score of several values is several, by their names. `binary`: `Task.binary`. Facts: `Score` and `value_to_float`
    of Inspect; a NaN is a sample that the scorer left unscored (`Score.unscored`), which is no outcome.
    """
    parent = "scores." if mapping(scores) else ""
    for name, recorded in scores_of(scores, single).items():
        fields = mapping(recorded)
        value, reason = fields.get("value"), word(fields.get("explanation")) or ""
        details = recorded if not fields else without(fields, "explanation") if reason else fields
        values = value.items() if isinstance(value, dict) and value else ((None, value),)
        for index, (key, item) in enumerate(values):
            label, source = (name, "value") if key is None else (f"{name} {key}", f"value.{key}")
            passed, rule = _passed_by_rule(item, label in binary or (key is not None and f"{name} *" in binary))
            metric = Metric(label, _number_of(item), None, passed, *(("", item) if index else (reason, details)))
            place = f"{parent}{name}.{source}"[:PREVIEW]
            explained = f"{parent}{name}.explanation"[:PREVIEW]
            yield (
                Score(
                    label[:PREVIEW],
                    (score_text(item) or None) if isinstance(item, list) or is_nan(item) else score_value(item),
                    passed,
                    place,
                    rule,
                    reason[:REASON_LIMIT],
                    evidence=first_failure(reason, explained) if passed is False else None,
                ),
                metric,
            )


def _passed_by_rule(value: Any, is_binary: bool) -> tuple[bool | None, str]:
    """Whether a score passed, and the rule by which it did, failed or is partial."""
    if isinstance(value, bool):
        return value, ""
    counted = _number_of(value) if isinstance(value, str) or is_binary else None
    rule = "" if counted is None else _GRADE_RULE if isinstance(value, str) else _NUMBER_RULE
    return _PASSED.get(counted), rule


def _number_of(value: Any) -> float | None:
    """A score as the number that Inspect counts it as; None for any other text."""
    if isinstance(value, str):
        return _GRADES.get(value, _GRADES.get(value.lower()))
    return float(value) if isinstance(value, bool) else number(value)


def _binary_scores(spec: dict[str, Any]) -> frozenset[str]:
    """`Task.binary` by the scorers that an eval declares."""
    binary = set()
    for scorer in map(mapping, sequence(spec.get("scorers"))):
        todo = [(word(scorer.get("name")) or "", scorer.get("metrics"))]
        while todo:
            name, metrics = todo.pop()
            if isinstance(metrics, list):
                todo += [(name, metric) for metric in metrics]
            elif (metric := word(mapping(metrics).get("name"))) is None:
                todo += [(f"{name} {key}", below) for key, below in mapping(metrics).items()]
            elif metric.rpartition("/")[2] == "accuracy":
                binary.add(name)
    return frozenset(binary)


def _measured_scores(log: Log) -> frozenset[str]:
    """`Task.binary` by the results of an eval: early logs declare no scorers."""
    scores = (mapping(score) for score in sequence(mapping(field(log.header, "results")).get("scores")))
    names = [
        (score.get("name"), score.get("scorer")) for score in scores if "accuracy" in mapping(score.get("metrics"))
    ]
    return frozenset(text for name, scorer in names for text in (f"{name}", f"{scorer} {name}"))


def results_of(results: Any) -> tuple[Metric, ...]:
    """The metrics of an eval as a whole: ``includes accuracy``."""
    metrics = []
    for score in sequence(mapping(results).get("scores")):
        name = word(mapping(score).get("name")) or word(mapping(score).get("scorer")) or "score"
        for key, metric in mapping(mapping(score).get("metrics")).items():
            metrics.append(Metric(f"{name} {key}", number(mapping(metric).get("value")), details=metric))
    return tuple(metrics)


_LATEST: Final = "inspect"
_INNER: Final = ("tool", "subtask")

Converted = tuple[Message, Any]
"""A message and its other fields; None for no others."""


class OpenSample(NamedTuple):
    """The sample of the run that was looked at last."""

    version: tuple[Stat, str | None]
    attempt: int | None
    sample: Sample
    events: list[Any]
    messages: dict[int, Converted]
    """Messages that events share, by index: all calls of a conversation have the same ones."""


def body_of(file: File, key: str | None, span: Span) -> Body:
    """The body of a span. Raises `FormatError` if the log changed there."""
    at = span.at
    if not isinstance(at, EventRef):
        raise FormatError("this span comes from another format")
    opened = _open_sample(file, key)
    sample = opened.sample
    if sample.check != at.check:
        raise FormatError("the file changed: the sample was replaced", key or "")
    if at.event is None and at.begin is None:
        record = sample.attempt(opened.attempt or 0)
        return _plain({"error": {name: value_of(value) for name, value in record.items() if name != "events"}}, sample)
    around = {
        name: resolved(value_of(_event(opened.events, path)), sample.resolve)
        for name, path in (("span_begin", at.begin), ("span_end", at.end))
        if path is not None
    }
    if at.event is None:
        begin = around.pop("span_begin", None)
        attributes = {**(begin if isinstance(begin, dict) else {}), **around}
        return Body(attributes=attributes, raw=_bytes_of(_event(opened.events, at.begin or ())))
    item = _event(opened.events, at.event)
    raw, event = _bytes_of(item), _fields(item)
    if not isinstance(event, dict):
        return Body(output=event, raw=raw)
    body = _model(event, opened) if event.get("event") == "model" else _plain(event, sample)
    return msgspec.structs.replace(body, attributes={**body.attributes, **around}, raw=raw)


def _open_sample(file: File, key: str | None) -> OpenSample:
    """The sample of a run. The latest is cached while a run is looked at."""
    shared = file.memo.get(CACHE, {})
    version = (file.stat, key)
    cached = shared.get(_LATEST)
    if isinstance(cached, OpenSample) and cached.version == version:
        cached.sample.through(file)
        return cached
    log = open_log(file)
    entry = log.find(key or "")
    if entry is None:
        raise FormatError("the file changed: the sample is no longer in the log", key or "")
    sample = log.sample(entry.sample)
    events = [item for items in sample.events(entry.attempt) for item in items_of(items) or ()]
    opened = shared[_LATEST] = OpenSample(version, entry.attempt, sample, events, {})
    return opened


def _event(items: list[Any], path: tuple[int, ...]) -> Any:
    """The event at `path`, undecoded if possible."""
    for depth, index in enumerate(path):
        if index >= len(items):
            raise FormatError("the file changed: the event was replaced", f"events[{index}]")
        if depth == len(path) - 1:
            return items[index]
        items = items_of((record_of(items[index]) or {}).get("events")) or []
    raise FormatError("this span comes from another format")


def _fields(item: Any) -> Any:
    """The fields of an event, except nested events, which are spans of their own."""
    record = record_of(item)
    if record is None:
        return value_of(item)
    inner = value_of(record.get("event")) in _INNER and items_of(record.get("events")) is not None
    return {name: value_of(value) for name, value in record.items() if not (inner and name == "events")}


def _bytes_of(item: Any) -> bytes:
    return bytes(memoryview(item)) if isinstance(item, msgspec.Raw) else rendered(item)


_SIDES: Final[dict[str, tuple[str, str]]] = {
    "tool": ("arguments", "result"),
    "subtask": ("input", "result"),
    "sandbox": ("cmd", "output"),
    "info": ("", "data"),
    "input": ("", "input"),
    "score": ("target", "score"),
}
"""The fields of input and output by kind of event."""


def _plain(event: dict[str, Any], sample: Sample) -> Body:
    """The body of any event but a call of the model."""
    event = resolved(event, sample.resolve)
    kind = event.get("event")
    if kind == "sample_init":
        return _sample_init(event)
    names = _SIDES.get(kind, ("", "")) if isinstance(kind, str) else ("", "")
    attributes, error = without(event, *filter(None, names)), mapping(event.get("error"))
    traceback = word(error.get("traceback"))
    if traceback is not None:
        attributes["error"] = without(error, "traceback")
    return Body(input=event.get(names[0]), output=event.get(names[1]), attributes=attributes, traceback=traceback)


def _sample_init(event: dict[str, Any]) -> Body:
    sample = mapping(event.get("sample"))
    given = sample.get("input")
    if isinstance(given, list):
        messages, rest = together(map(message_of, given))
        return Body(input_messages=messages, attributes={**event, "sample": {**sample, "input": rest}})
    return Body(input=given, attributes={**event, "sample": without(sample, "input")} if given else event)


def _model(event: dict[str, Any], opened: OpenSample) -> Body:
    """A call of the model, with its whole input."""
    resolve = opened.sample.resolve
    attributes = without(event, "input", "input_refs", "output", "traceback")
    if isinstance(event.get("call"), dict):
        attributes["call"] = _call(event["call"], opened.sample)
    resolved(attributes, resolve)
    refs, given = event.get("input_refs"), resolved(event.get("input"), resolve)
    messages: tuple[Message, ...] = ()
    if isinstance(given, list):
        shared = _shared_messages(opened, refs) if isinstance(refs, list) and not given else ()
        messages, rest = together((*map(message_of, given), *shared))
        if rest:
            attributes["input"] = rest
    elif given is not None:
        attributes["input"] = given
    if refs is not None and (given or not isinstance(refs, list)):
        attributes["input_refs"] = refs
    output = resolved(event.get("output"), resolve)
    answers, unknown = _answers(output)
    if unknown not in (None, {}):
        attributes["output"] = unknown
    traceback = event.get("traceback")
    if traceback is not None and not isinstance(traceback, str):
        attributes["traceback"] = traceback
    return Body(
        output=completion_of(output) or (None if answers else output),
        input_messages=messages,
        output_messages=answers,
        attributes=attributes,
        traceback=resolve(traceback) if isinstance(traceback, str) and traceback else None,
    )


def _shared_messages(opened: OpenSample, refs: list[Any]) -> Iterator[Converted]:
    for index, item in opened.sample.shared("messages", refs):
        if index not in opened.messages:
            opened.messages[index] = message_of(resolved(value_of(item), opened.sample.resolve))
        yield opened.messages[index]


def _answers(output: Any) -> tuple[tuple[Message, ...], Any]:
    """The output of the model as messages, and its other fields."""
    if not isinstance(output, dict):
        return (), output
    rest = without(output, "completion") if isinstance(output.get("completion"), str) else dict(output)
    if not isinstance(output.get("choices"), list):
        return (), rest
    messages, remaining = [], []
    for choice in rest.pop("choices"):
        if not isinstance(mapping(choice).get("message"), dict):
            remaining.append(choice)
            continue
        stop = word(choice.get("stop_reason"))
        message, more = message_of(choice["message"], stop)
        messages.append(message)
        others = without(choice, "message", *(("stop_reason",) if stop else ())) | {"message": more}
        if others := {key: value for key, value in others.items() if value is not None}:
            remaining.append(others)
    rest |= {"choices": remaining or None}
    return tuple(messages), {key: value for key, value in rest.items() if value is not None}


def _call(call: dict[str, Any], sample: Sample) -> dict[str, Any]:
    """A request as it was sent, with shared parts back in place."""
    refs, key, request = call.get("call_refs"), call.get("call_key"), call.get("request")
    if not isinstance(refs, list) or not isinstance(key, str) or not isinstance(request, dict) or key in request:
        return call
    return {
        **without(call, "call_refs", "call_key"),
        "request": {**request, key: [value_of(item) for _, item in sample.shared("calls", refs)]},
    }


# ---- messages

_PLAIN: Final = frozenset({"source", "model"})
"""Message fields that are redundant if no others are left."""


def message_of(fields: Any, finish: str | None = None) -> Converted:
    """A message, and the fields that don't fit it; None if all do."""
    if not isinstance(fields, dict):
        return Message("message", (Blob("message", fields),)), None
    role = word(fields.get("role")) or "message"
    rest = without(fields, "role", "id", "content")
    if not isinstance(fields.get("role"), str) and fields.get("role") is not None:
        rest["role"] = fields["role"]
    ident = word(fields.get("id"))
    if ident is None and fields.get("id") is not None:
        rest["id"] = fields["id"]
    parts = _answer(fields, rest) if role == "tool" else [*_parts(fields.get("content")), *_calls(rest)]
    rest = {name: value for name, value in rest.items() if value not in (None, [], {})}
    return Message(role, tuple(parts), ident, finish), rest if rest.keys() - _PLAIN else None


def together(converted: Iterable[Converted]) -> tuple[tuple[Message, ...], dict[str, Any]]:
    """The messages, and by their number (from 1) the other fields of each."""
    pairs = list(converted)
    return tuple(message for message, _ in pairs), {
        str(number): rest for number, (_, rest) in enumerate(pairs, 1) if rest is not None
    }


def _parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    if not isinstance(content, list):
        return [] if content is None else [Blob("content", content)]
    return [_part(item) for item in content]


def _part(item: Any) -> Part:
    fields = mapping(item)
    kind, text, thought = fields.get("type"), fields.get("text"), fields.get("reasoning")
    if kind == "text" and isinstance(text, str) and fields.keys() <= {"type", "text"}:
        return Text(text)
    if kind == "reasoning" and isinstance(thought, str) and fields.keys() <= {"type", "reasoning", "redacted"}:
        return Reasoning(thought)
    return Blob(word(kind) or "part", item)


def _calls(rest: dict[str, Any]) -> list[Part]:
    """The calls that a message requests; their other fields stay in the rest."""
    calls = rest.get("tool_calls")
    if not isinstance(calls, list):
        return []
    parts: list[Part] = []
    remaining = []
    for call in calls:
        fields = mapping(call)
        name = word(fields.get("function"))
        if name is None:
            remaining.append(call)
            continue
        parts.append(ToolCall(word(fields.get("id")), name, fields.get("arguments")))
        ident = () if fields.get("id") is None or word(fields.get("id")) else ("id",)
        more = {
            key: value for key, value in fields.items() if key in ident or key not in ("id", "function", "arguments")
        }
        if more.pop("type", "function") != "function":
            more["type"] = fields["type"]
        if more := {key: value for key, value in more.items() if value not in (None, [], {})}:
            remaining.append({"function": name, **more})
    rest["tool_calls"] = remaining
    return parts


def _answer(fields: dict[str, Any], rest: dict[str, Any]) -> list[Part]:
    """The result of a tool."""
    ident, name, error = word(fields.get("tool_call_id")), word(fields.get("function")), fields.get("error")
    for key, value in (("tool_call_id", ident), ("function", name)):
        if value is not None:
            del rest[key]
    content = fields.get("content")
    plain = text_in(content) if isinstance(content, list) and all(_is_text(part) for part in content) else content
    if plain in ("", None, []):
        plain = mapping(error).get("message", plain)  # a failed call has the reason instead
    return [ToolResult(ident, plain, error not in (None, {}, ""), name)]


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() <= {"type", "text"} and isinstance(part.get("text"), str)
