"""A sample as a run, a failed attempt at one as a run of its own, and the eval where no sample tells how it stands."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.fields import unknown_fields
from tracetui.formats.inspect_ai.fields import (
    Record,
    error_type,
    field,
    joined,
    prompt_in,
    text_in,
    used_by,
    version_of,
)
from tracetui.formats.inspect_ai.kinds import outcome_of_limit
from tracetui.formats.inspect_ai.log import Entry, Log, attempt_suffix, entries_of
from tracetui.formats.inspect_ai.samples import Sample
from tracetui.formats.inspect_ai.scores import metrics_of, outcome_of, results_of, scores_of
from tracetui.formats.inspect_ai.spans import Weaver
from tracetui.formats.labels import folder_of, tags_in, task_key
from tracetui.formats.scalars import between, mapping, moment, number, sequence, whole, word
from tracetui.model import (
    MESSAGE_LIMIT,
    PREVIEW,
    Error,
    FirstError,
    Header,
    Limit,
    Operation,
    Problem,
    RunBody,
    Span,
    Status,
    StatusSource,
    Total,
    Usage,
    status_of,
)

RETRY: Final = "retry"
EVAL: Final = "eval"
"""Key of the run of an eval itself, and how it is called beside those of its samples."""
_GIVEN: Final = 1_000
"""Characters of what went in that tell one task from another: summaries have 5,120 of them."""
_NAMED: Final = frozenset({"id", "epoch"})
_FAILED: Final = frozenset({Status.ERROR, Status.CANCELLED})


class Task:
    """What all runs of a log have in common."""

    def __init__(self, log: Log) -> None:
        told = mapping(field(log.header, "eval"))
        self.name = (word(told.get("task")) or word(told.get("task_display_name")) or "eval")[:PREVIEW]
        idents = (word(told.get(name)) for name in ("eval_id", "run_id", "task_id"))
        stem = folder_of(log.path) or "log"
        self.ident = next(filter(None, idents), stem)[:PREVIEW]
        self.writer, self.version = version_of(told.get("packages"))
        self.model = (word(told.get("model")) or "")[:PREVIEW] or None
        self.agent = (word(told.get("solver")) or "")[:PREVIEW] or None
        dataset = mapping(told.get("dataset"))
        self.source = (word(dataset.get("name")) or word(dataset.get("location")) or "")[:PREVIEW] or None
        self.tags = tags_in({"tags": field(log.header, "tags") or None}, told)
        self.epochs = whole(mapping(told.get("config")).get("epochs")) or 1
        self.limits = mapping(told.get("config"))

    def ident_of(self, key: str) -> str:
        """The id of the run of that key, the same in whatever folder its log is."""
        return f"{self.ident}/{key}"

    def common(self) -> dict[str, Any]:
        """Fields that the headers of all its runs share."""
        return {
            "name": self.name,
            "agent": self.agent,
            "model": self.model,
            "tags": self.tags,
            "source": self.source,
            "writer": self.writer,
        }


# ---- samples


def header_of(task: Task, entry: Entry, told: Record) -> Header:
    """The header of a sample or an attempt, of its summary or its own fields, which tell the same but for texts."""
    given = prompt_in(field(told, "input"))
    ident, epoch = field(told, "id"), whole(field(told, "epoch"))
    label = f"{ident!s}"[: PREVIEW // 2] + (f" #{epoch}" if task.epochs > 1 or (epoch or 1) > 1 else "")
    previous = entry.attempts if entry.attempt is None else entry.attempt - 1
    header = Header(
        id=task.ident_of(entry.key),
        **task.common(),
        prompt=" ".join(given[:_GIVEN].split())[:PREVIEW],
        label=label,
        replay_of=task.ident_of(entry.sample + attempt_suffix(previous)) if previous else None,
        relation=RETRY if previous else None,
        repeats=task_key(task.name, f"{ident!s}\n{given[:_GIVEN]}"),
        identity=_identity(task, entry, told),
        size=entry.size,
    )
    return _attempted(header, entry) if entry.attempt is not None else _completed(header, task, told)


def _identity(task: Task, entry: Entry, told: Record) -> str | None:
    """What tells a sample from all others; a log that goes on with another one copies those that it need not repeat."""
    uuid, started = word(field(told, "uuid")), word(field(told, "started_at"))
    if uuid is None or started is None:
        return None
    return task_key(task.name, "\n".join((uuid, started, entry.key)))


def _attempted(header: Header, entry: Entry) -> Header:
    label = f"{header.label} try {entry.attempt}"
    return replace(header, label=label, status=Status.ERROR, status_source=StatusSource.EXPLICIT, size=None)


def _completed(header: Header, task: Task, told: Record) -> Header:
    """A log holds samples that are complete: they went well unless a field says something else."""
    if told.keys() <= _NAMED:  # nobody says how it went: it cannot be read, and its summary is not there
        return replace(header, status=Status.UNKNOWN, status_source=StatusSource.DERIVED)
    error, limit = field(told, "error"), field(told, "limit")
    fields = {name: field(told, name) for name in ("scores", "score")}
    started, took = moment(field(told, "started_at")), number(field(told, "total_time"))
    outcome = outcome_of(scores_of(fields))
    header = replace(
        header,
        started_at=started,
        duration_ms=max(0.0, took * 1000)
        if took is not None
        else between(started, moment(field(told, "completed_at"))),
        usage=used_by(field(told, "model_usage"), task.version),
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        outcome=outcome,
    )
    if error not in (None, "", {}):
        return replace(
            header,
            status=Status.ERROR,
            status_source=StatusSource.EXPLICIT,
            error=first_error(error),
            outcome="",
        )
    kind = word(limit) or word(mapping(limit).get("type"))
    if kind is None:
        return header
    status, source, cause = outcome_of_limit(kind, "")
    cut = f"{kind} limit"
    return replace(
        header,
        status=status,
        status_word=cut[:PREVIEW],
        status_source=source,
        error=None if cause is None else FirstError(cause.message, cause.type),
        outcome=joined((cut, outcome)),
    )


def first_error(error: Any) -> FirstError:
    """The cause that a sample or an eval states: a text, or a message with a traceback."""
    said = error if isinstance(error, str) else mapping(error).get("message")
    message = said if isinstance(said, str) else ""
    return FirstError(message[:MESSAGE_LIMIT], error_type(message))


class Told:
    """One run: everything that `Format.read` gives of it."""

    def __init__(self, log: Log, entry: Entry) -> None:
        self.task = Task(log)
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self.sample: Sample | None = None
        self.entry = entry
        self._log = log
        self.header = header_of(self.task, entry, entry.told)
        try:
            self.sample = log.sample(entry.sample)
            self._weave(self.sample)
        except FormatError as fault:
            self._problem(fault.reason, fault.where, torn=True)

    def _weave(self, sample: Sample) -> None:
        entry = self.entry
        weaver = Weaver(sample.check, sample.attached, self.task.version, self._log.path)
        weaver.weave(sample.events(entry.attempt))
        self.header = _stated(header_of(self.task, entry, {**entry.told, **sample.record}), sample, entry)
        self.spans = weaver.spans
        self.problems += weaver.problems
        if entry.attempt is not None and not any(_is_cause(one.error, self.header.error) for one in self.spans):
            self.spans.append(weaver.failure(self.header.error))
        self.header = replace(self._located(self.header), fields=unknown_fields(weaver.strange))
        missed = len(sample.attempts) - entry.attempts
        if entry.attempt is None and missed > 0:
            self._problem(f"{missed} failed attempts are not listed: the summary of the sample does not count them")
        elif entry.attempt is not None and entry.attempt > len(sample.attempts):
            self._problem("the summary of the sample counts more failed attempts than it has")

    def _located(self, header: Header) -> Header:
        """The header with the span that tells its cause: the last one, where errors that were caught came before."""
        error = header.error
        if error is None:
            return header
        same = (span for span in reversed(self.spans) if _is_cause(span.error, error))
        span = next(same, None)
        if span is None:
            return header
        return replace(header, error=FirstError(error.message, error.type, span.id, span.name, span.operation))

    def _problem(self, reason: str, where: str = "", *, torn: bool = False) -> None:
        lost = self.entry.size if torn else None
        self.problems.append(Problem(self._log.path, where or self.entry.key, reason, lost=lost, torn=torn))

    def body(self) -> RunBody:
        """What is said about the run as a whole, and about the eval that it is of."""
        sample, entry = self.sample, self.entry
        about = {"eval": eval_fields(self._log)}
        if sample is None:
            return RunBody(attributes={**{name: field(entry.told, name) for name in entry.told}, **about})
        fields = sample.fields
        given = fields.pop("input", None)
        metrics, conversation = metrics_of(scores_of(fields)), sequence(fields.get("messages"))
        if entry.attempt is not None:
            failed = _attempt_fields(sample, entry.attempt)
            return RunBody(input=given, error=_error(failed), attributes={**failed, **about})
        return RunBody(
            input=given,
            output=_completion(fields.get("output")),
            error=_error(fields.get("error")),
            metrics=metrics,
            limits=tuple(_limits(self.task.limits, fields.get("limit"))),
            totals=_totals(self.header.usage, self.spans),
            system_prompt=_last(conversation[:1], "system"),
            last_user=_last(conversation, "user"),
            last_assistant=_last(conversation, "assistant"),
            attributes={**fields, **about},
        )


def _stated(header: Header, sample: Sample, entry: Entry) -> Header:
    """The header of an attempt with what only the sample says: why it failed."""
    if entry.attempt is None:
        return header
    return replace(header, error=first_error(field(sample.attempt(entry.attempt), "message")))


def _is_cause(error: Error | None, stated: FirstError | None) -> bool:
    if error is None or stated is None:
        return False
    if stated.type is not None and stated.type.endswith(" limit"):
        return error.type == stated.type
    return error.message == stated.message


def _attempt_fields(sample: Sample, attempt: int) -> dict[str, Any]:
    record = sample.attempt(attempt)
    return {name: field(record, name) for name in record if name != "events"}


def _error(said: Any) -> Error | None:
    if said in (None, "", {}):
        return None
    cause = first_error(said)
    return Error(cause.message, cause.type)


def _completion(output: Any) -> Any:
    """What the sample came to: the text of its last answer."""
    said = mapping(output).get("completion")
    if isinstance(said, str) and said:
        return said
    choice = mapping(next(iter(sequence(mapping(output).get("choices"))), None))
    return text_in(mapping(choice.get("message")).get("content")) or None


def _last(messages: list[Any], role: str) -> str | None:
    said = (text_in(mapping(one).get("content")) for one in reversed(messages) if mapping(one).get("role") == role)
    return next((text for text in said if text), None)


def _limits(config: dict[str, Any], cut: Any) -> list[Limit]:
    """The limits of a sample, and which of them cut it off."""
    said = mapping(cut)
    kind = word(said.get("type")) or word(cut)
    names = [name for name in config if name.endswith("_limit") and number(config[name]) is not None]
    found = [Limit(name, number(config[name]), violated=name == f"{kind}_limit") for name in names]
    if kind is not None and not any(limit.violated for limit in found):
        found.append(Limit(f"{kind} limit"[:PREVIEW], number(said.get("limit")), violated=True))
    return found


def _totals(declared: Usage | None, spans: list[Span]) -> tuple[Total, ...]:
    """What a sample says that it used, beside the sum of its calls."""
    counted = Usage()
    for span in spans:
        if span.usage is not None and span.operation is Operation.CHAT:
            counted = counted + span.usage
    if declared is None:
        return ()
    names = ("input_tokens", "output_tokens", "total_tokens")
    found = (Total(name, getattr(declared, name), getattr(counted, name)) for name in names)
    return tuple(total for total in found if total.declared is not None)


# ---- the eval itself


def is_shown(log: Log) -> bool:
    """Whether the eval is a run of its own: where it has no samples, goes on, or failed though none of them did."""
    if not log.samples or not log.ended:
        return True
    status = status_of(word(field(log.header, "status")) or "")
    return status in _FAILED and all(not field(entry.told, "error") for entry in log.samples.values())


def eval_header(log: Log) -> Header:
    """The header of the eval itself. What its samples used is theirs, where the log has them."""
    task, stats = Task(log), mapping(field(log.header, "stats"))
    results = mapping(field(log.header, "results"))
    said = word(field(log.header, "status"))
    started = moment(stats.get("started_at")) or moment(mapping(field(log.header, "eval")).get("created"))
    error = field(log.header, "error")
    known = status_of(said or "")
    wanted = _wanted(log)
    done = f"{len(log.samples)}/{wanted} samples" if wanted else f"{len(log.samples)} samples"
    if log.ended:
        done = "" if log.samples else "no samples in the log"
    scored = joined(
        f"{metric.name} {metric.score:.4g}" for metric in results_of(results)[:3] if metric.score is not None
    )
    return Header(
        id=task.ident,
        **task.common(),
        label=EVAL,
        status=known if log.ended and known is not Status.UNKNOWN else None,
        status_word=said[:PREVIEW] if said else None,
        status_source=StatusSource.EXPLICIT if log.ended and known is not Status.UNKNOWN else None,
        ended=log.ended,
        started_at=started,
        duration_ms=between(started, moment(stats.get("completed_at"))),
        usage=used_by(stats.get("model_usage"), task.version) if log.ended and not log.samples else None,
        error=first_error(error) if error not in (None, "", {}) else None,
        outcome="" if error else joined((done, scored)),
        tells_calls=False,
    )


def eval_body(log: Log) -> RunBody:
    """Everything that a log says of the eval."""
    fields = eval_fields(log)
    listed = [entry.key for entry in entries_of(log)]
    return RunBody(
        error=_error(fields.get("error")),
        metrics=results_of(fields.get("results")),
        attributes={**fields, **({"runs": listed} if listed else {})},
    )


def eval_fields(log: Log) -> dict[str, Any]:
    """All that a log says of the eval, under its own names."""
    return {**{name: field(log.header, name) for name in log.header}, **log.more()}


def _wanted(log: Log) -> int | None:
    """How many samples there are to be: those of the data set that are wanted, in each epoch."""
    told = mapping(field(log.header, "eval"))
    dataset, config = mapping(told.get("dataset")), mapping(told.get("config"))
    listed = sequence(dataset.get("sample_ids"))
    count = len(listed) if listed else whole(dataset.get("samples"))
    return None if count is None else count * max(1, whole(config.get("epochs")) or 1)
