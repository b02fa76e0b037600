"""One trace while its spans come in, in any order: its spans, and what is known of it as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf
from typing import Any, Final

import msgspec

from tracetui.formats.labels import task_key
from tracetui.formats.otlp import messages
from tracetui.formats.otlp.messages import Side
from tracetui.formats.otlp.records import (
    FIELDS,
    LISTS,
    OTHERS,
    REQUEST,
    Event,
    RecordRef,
    SpanFields,
    SpanRecord,
    about_resource,
    about_scope,
    encode,
    event_of,
    events_of,
    identifier,
    named,
    nanoseconds,
    parent_id,
    without,
)
from tracetui.formats.otlp.vocabulary import (
    AGENTS,
    MODELS,
    WORKFLOWS,
    Attributes,
    decoded,
    first,
    given_to,
    made_by,
    name_of,
    operation_of,
    short_json,
    tags_of,
    telling,
    usage_of,
)
from tracetui.formats.scalars import version, word
from tracetui.model import PREVIEW, Error, FirstError, Operation, Problem, Span, Status, StatusSource, Usage
from tracetui.model.tally import CONTAINERS

EXCEPTION: Final = "exception"
_OK: Final = (1, "1", "STATUS_CODE_OK", "OK", "Ok")
_FAILED: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error")
_REASONS: Final = ("gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason")
_USUAL: Final = frozenset({"stop", "end_turn", "tool_calls", "tool_call", "tool_use", "tool-calls", "completed"})
"""Reasons to stop that need not be told."""
MOST: Final = 256
"""So many different resources, scopes and errors of a trace are kept."""
_WRAPPERS: Final = frozenset({Operation.INVOKE_WORKFLOW, Operation.NODE, Operation.OTHER})
"""What may stand between a call of a model and another one that it wraps; a tool or an agent calls for itself."""
_NO_WORK: Final = frozenset({Operation.POLICY, Operation.META})
"""Spans that check or note something: that one of them succeeds does not make up for a failure before it."""
_OUTER: Final = CONTAINERS | {Operation.NODE, Operation.OTHER}
"""Spans whose failure, or success, may be that of the span around them; a tool's is an answer to the model."""
_CHAT: Final = Operation.CHAT
_EMBEDDINGS: Final = Operation.EMBEDDINGS
_AGENT: Final = Operation.INVOKE_AGENT
_WORKFLOW: Final = Operation.INVOKE_WORKFLOW
_ERROR: Final = Status.ERROR
_FINE: Final = Status.OK
_EXPLICIT: Final = StatusSource.EXPLICIT
_DERIVED: Final = StatusSource.DERIVED


class Earliest(msgspec.Struct, frozen=True):
    """What the span says that began first, of all that say it."""

    value: Any = None
    at: float = inf

    def or_this(self, start: int | None, value: Any) -> Earliest:
        """Whichever is earlier; what came first, where both are."""
        at = inf if start is None else start
        return Earliest(value, at) if value is not None and (self.value is None or at < self.at) else self

    def may_be(self, start: int | None) -> bool:
        """Whether something that began then would be the earliest."""
        return self.value is None or (start is not None and start < self.at)


_NOTHING: Final = Earliest()


class Trace(msgspec.Struct):
    """What is known of the trace `key`, and its spans; takes what is of that trace, and nothing else."""

    path: str
    key: str
    summary_only: bool = False
    """Previews and what only a body shows are not wanted."""
    root: Earliest = _NOTHING
    """The span that has none above it: the first, where there are several."""
    final: Earliest = _NOTHING
    """Of those the one that ended last, by the time at which it did, backwards."""
    root_body: tuple[Any, Any] = (None, None)
    """What went into that, and what came of it."""
    task: str | None = None
    """Key of its name and of what went into it."""
    agent: Earliest = _NOTHING
    workflow: Earliest = _NOTHING
    """What the run is called where no agent has a name."""
    model: Earliest = _NOTHING
    prompt: Earliest = _NOTHING
    system: Earliest = _NOTHING
    service: Earliest = _NOTHING
    source: Earliest = _NOTHING
    sdk: str | None = None
    """Version of the library that wrote last."""
    tags: tuple[str, ...] = ()
    answer: Earliest = _NOTHING
    """What was said last, by the time at which it ended, backwards."""
    failures: dict[str, Earliest] = {}
    """Where each error came up first, by the time at which its span ended."""
    chats: dict[str, tuple[Span, str]] = {}
    """Calls of models, and their names if they only wrap others."""
    callers: dict[str, bool] = {}
    """Spans below which a model is called, with nothing between but what wraps."""
    above: dict[str, str | None] = {}
    """What is above the calls of models, and above what wraps them."""
    counted: bool = False
    """A call of a model says what it used."""
    stated: dict[str, Usage] = {}
    """What agents and workflows say that they used: it counts where no call does."""
    parents: dict[str, str | None] = {}
    """What is above each span, as long as no call says what it used."""
    last: dict[str, tuple[int, int, Span]] = {}
    """The child that ended last of each span, after its end and start."""
    answered: dict[str, bool] = {}
    """Spans that have an output and did not fail."""
    seen: dict[str, int] = {}
    """Checksum of each span."""
    known: dict[str, Span] = {}
    """The spans as they came: logs may tell more of them."""
    early: dict[str, tuple[tuple[Event, RecordRef], ...]] = {}
    """Events in logs, of spans that did not come yet."""
    around: dict[bytes, tuple[str, dict[str, Any]]] = {}
    """What stands around spans: kind and fields, each once."""
    latest: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    """What stood around the latest span, and what that means: many spans share it."""
    full: bool = False
    """There was more around them."""
    strange: dict[str, int] = {}
    spans: dict[str, Span] = {}
    problems: list[Problem] = []

    def take_span(self, record: SpanRecord, at: RecordRef, number: int, request: Any) -> None:
        """Take in one span; `number` is that of its line, `request` the decoded request if it may have other fields."""
        if record.names:
            FIELDS.count(self.strange, "span", record.names)
        data = SpanData(record)
        span = span_of(data, at, number, preview=not self.summary_only)
        before = self.seen.get(span.id)
        self.seen[span.id] = record.check
        if before is not None and before != record.check:  # exporters that try again write the same one twice
            reason = f"span {span.id[:PREVIEW]} is told again in other words: the last ones are shown"
            self.problems.append(Problem(self.path, f"line {number}", reason))
        self._learn(data, span)
        self._surround(data, request)
        if before is not None and not self.summary_only and (logs := self.known[span.id].at.logs):
            span = msgspec.structs.replace(span, at=msgspec.structs.replace(span.at, logs=logs))
        self.known[span.id] = span
        self._put(span, data.name[:PREVIEW] or span.name)
        for event, place in self.early.pop(span.id, ()) if self.early else ():
            self._attach(self.known[span.id], event, place)

    def take_log(self, span: str, record: dict[str, Any], at: RecordRef) -> None:
        """Take in an event of a span, from an export of logs."""
        event, known = event_of(record), self.known.get(span)
        if known is None:
            self.early[span] = (*self.early.get(span, ()), (event, at))
        else:
            self._attach(known, event, at)

    def changes(self) -> tuple[list[Span], list[Problem]]:
        """New and changed spans, and new problems, since the last call."""
        found = list(self.spans.values()), self.problems
        self.spans, self.problems = {}, []
        return found

    # ---- spans

    def _attach(self, span: Span, event: Event, at: RecordRef) -> None:
        """Show an event with its span, and learn from it what the span itself does not say."""
        given, made = messages.given({}, [event]), messages.made({}, [event])
        self._overhear(span, given, made)
        if self.summary_only:
            return
        said = messages.said(made)[:PREVIEW] if span.operation is _CHAT else ""
        fields = {"at": msgspec.structs.replace(span.at, logs=(*span.at.logs, at)), "preview": said or span.preview}
        self.known[span.id] = shown = msgspec.structs.replace(span, **fields)
        if span.id in self.chats:
            name = self.chats[span.id][1]
            self.chats[span.id] = shown, name
            shown = _wrapping(shown, name) if self.callers.get(span.id) else shown
        self.spans[span.id] = shown

    def _overhear(self, span: Span, given: Side, made: Side) -> None:
        start = None if span.started_at is None else round(span.started_at * 1e9)
        asked = messages.prompt_of(given)
        if asked is not None and (self.prompt.may_be(start) or start == self.prompt.at):
            self.prompt = Earliest(asked, inf if start is None else start)  # of several it is the latest question
        if self.summary_only:
            return
        self.system = self.system.or_this(start, messages.system_of(given))
        if span.operation is _CHAT and start is not None:
            self.answer = self.answer.or_this(-round(start + (span.duration_ms or 0) * 1e6), made.text)

    def _put(self, span: Span, name: str) -> None:
        """Hand out a span. A call of a model that only wraps another one contains it, and counts nothing itself."""
        called, wraps = span.operation is _CHAT, self.callers.get(span.id)
        if called:
            self.chats[span.id] = span, name
        self.spans[span.id] = _wrapping(span, name) if called and wraps else span
        if called or span.operation in _WRAPPERS:
            self.above[span.id] = span.parent_id
            if wraps or (called and span.usage is not None):
                self._call(span.parent_id if span.parent_id != span.id else None)

    def _call(self, above: str | None) -> None:
        """Tell all spans around a call of a model that they are."""
        while above is not None and not self.callers.get(above):
            self.callers[above] = True
            if above in self.chats:
                self.spans[above] = _wrapping(*self.chats[above])
            above = self.above.get(above)

    # ---- the whole

    def _learn(self, data: SpanData, span: Span) -> None:
        kept, start = data.kept, data.start
        if self.agent.may_be(start):
            self.agent = self.agent.or_this(start, first(kept, AGENTS))
        if self.workflow.may_be(start):
            self.workflow = self.workflow.or_this(start, first(kept, WORKFLOWS))
        self.model = self.model.or_this(start, span.model)
        self._hear(data)
        self._use(span)
        self._finish(data, span)
        if span.parent_id is None:
            self._forget(span.id)
            self.final = self.final.or_this(None if data.end is None else -data.end, span)
            if self.root.may_be(start):
                self._begin(data, span)
        if span.status is _ERROR:
            self._fail(span, data.end)

    def _finish(self, data: SpanData, span: Span) -> None:
        """Note how a span ended, for `failed`."""
        if span.operation in _OUTER and span.status is not _ERROR and messages.has_output(data.kept):
            self.answered[span.id] = True
        if span.parent_id is None or data.end is None or span.operation in _NO_WORK:
            return
        before, when = self.last.get(span.parent_id), (data.end, data.start or 0)
        if before is None or before[:2] <= when:
            self.last[span.parent_id] = *when, span

    def failed(self) -> Span | None:
        """The failed agent, workflow or turn with which the run ended although the span at the top says no error.

        Instrumentation of openai-agents sets the top span OK whatever happened below it. Of each span, from the top
        one down, the child that ended last decides: a failure that something came after was recovered from. A span
        with an output of its own got over what failed below it, and an OK of other spans than an agent's or a
        workflow's is the application's own word.
        """
        span: Span | None = self.final.value
        if span is None or (span.status_source is _EXPLICIT and span.operation not in CONTAINERS):
            return None
        seen: set[str] = set()
        while span is not None and span.id not in seen and span.operation in _OUTER and not self.answered.get(span.id):
            if span.status is _ERROR and span.operation in CONTAINERS:
                return span if seen else None
            seen.add(span.id)
            last = self.last.get(span.id)
            span = last[2] if last is not None else None
        return None

    def _forget(self, told_again: str) -> None:
        """Of a span at the top only the latest version counts."""
        self.root = _NOTHING if self.root.value is not None and self.root.value.id == told_again else self.root
        self.final = _NOTHING if self.final.value is not None and self.final.value.id == told_again else self.final

    def _begin(self, data: SpanData, span: Span) -> None:
        """Take it for the span at the top."""
        self.root = self.root.or_this(data.start, span)
        self.tags = tags_of(data.kept)
        given = given_to(data.kept)
        asked = messages.question_of(data.given) if given is None else given[1]
        self.task = None if asked is None else task_key(span.name, encode(asked))
        self.root_body = (None, None) if self.summary_only else (_asked(data), _answered(data))

    def _use(self, span: Span) -> None:
        """What was used, as those say that contain calls of models: these may not say it themselves."""
        if self.counted:
            return
        if span.operation is _CHAT and span.usage is not None:
            self.counted, self.stated, self.parents = True, {}, {}
            return
        self.parents[span.id] = span.parent_id
        if span.operation in CONTAINERS and span.usage is not None:
            self.stated[span.id] = span.usage

    def _hear(self, data: SpanData) -> None:
        """The prompt, the instructions and the last answer."""
        if self.prompt.may_be(data.start):
            prompt = messages.prompt_of(data.given) if data.has_messages else None
            if prompt is None and data.operation in CONTAINERS:
                prompt = _plain(given_to(data.kept))
            self.prompt = self.prompt.or_this(data.start, prompt)
        if self.summary_only:
            return
        if data.has_messages and self.system.may_be(data.start) and messages.may_instruct(data.kept, data.events):
            self.system = self.system.or_this(data.start, messages.system_of(data.given))
        if data.operation is _CHAT and data.end is not None and self.answer.may_be(-data.end):
            self.answer = self.answer.or_this(-data.end, data.made.text)

    def _fail(self, span: Span, end: int | None) -> None:
        error = span.error
        key = "" if error is None else error.words[:PREVIEW]
        if key in self.failures or len(self.failures) < MOST:
            found = FirstError(
                error.message if error else "", error.type if error else None, span.id, span.name, span.operation
            )
            self.failures[key] = self.failures.get(key, _NOTHING).or_this(end, found)

    def _surround(self, data: SpanData, request: Any) -> None:
        """What stands around it: the program that it ran in, the library that made it."""
        resource = self._once_around("resource", data.record.resource, about_resource)
        self.sdk = version(resource.get("telemetry.sdk.version")) or self.sdk
        if self.service.may_be(data.start):
            service = word(resource.get("service.name"))
            if service is not None and not service.startswith("unknown_service"):
                self.service = self.service.or_this(data.start, service)
        scope = self._once_around("scope", data.record.scope, about_scope)
        if self.source.may_be(data.start):
            self.source = self.source.or_this(data.start, word(scope.get("name")))
        if isinstance(request, dict) and len(request) > 1:
            self._once_around("request", without(request, *REQUEST, *OTHERS), dict)

    def _once_around(
        self, kind: str, record: dict[str, Any], about: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Fields that many spans have in common, kept once."""
        latest = self.latest.get(kind)
        if latest is not None and latest[0] is record:
            return latest[1]
        key = kind.encode() + encode(without(record, *LISTS))
        known = self.around.get(key)
        fields = about(record) if known is None else known[1]
        self.latest[kind] = record, fields
        if known is not None:
            return fields
        if len(self.around) < MOST:
            self.around[key] = kind, fields
        elif not self.full:
            self.full = True
            reason = f"more than {MOST} different resources and scopes: the others are not shown"
            self.problems.append(Problem(self.path, "resources", reason))
        return fields


def _wrapping(span: Span, name: str) -> Span:
    """A call of a model that only wraps others."""
    return msgspec.structs.replace(span, name=name, operation=_WORKFLOW, is_step=False, model=None)


def _asked(data: SpanData) -> Any:
    """What went into a span, by its values or its messages."""
    asked = given_to(data.kept)
    return asked[1] if asked else messages.prompt_of(data.given)


def _answered(data: SpanData) -> Any:
    """What came of it."""
    answered = made_by(data.kept)
    return answered[1] if answered else data.made.answer if data.made.partial else data.made.text


def _plain(found: tuple[str, Any] | None) -> str | None:
    """What went into a span, if it is no more than a text."""
    return (found[1].strip() or None) if found is not None and isinstance(found[1], str) else None


# ---- the header of a span


class SpanData:
    """What a record says: each part once, the messages when they are asked for. Times are in nanoseconds."""

    def __init__(self, record: SpanRecord) -> None:
        span = record.span
        self.record, self.kept, self.id = record, record.kept, identifier(span.id)
        self.events = events_of(span.events) if span.events else []
        self.name = span.name if isinstance(span.name, str) else ""
        self.operation = operation_of(self.kept, self.name)
        self.start, self.end = nanoseconds(span.start), nanoseconds(span.end)
        self.has_messages = messages.may_have_messages(self.kept, self.events)

    @cached_property
    def given(self) -> Side:
        """The messages that went into it."""
        return messages.given(self.kept, self.events) if self.has_messages else messages.NO_MESSAGES

    @cached_property
    def made(self) -> Side:
        """The messages that came of it."""
        return messages.made(self.kept, self.events) if self.has_messages else messages.NO_MESSAGES


def span_of(data: SpanData, at: RecordRef, number: int, *, preview: bool) -> Span:
    """The span of a record; `number` is that of its line or document, for one without an id."""
    record, kept, events, operation = data.record, data.kept, data.events, data.operation
    start, end, span = data.start, data.end, record.span
    status, text, source = _status(span, kept, events, ended=end is not None)
    return Span(
        id=data.id or "l{}.{}.{}.{}".format(number, *record.place),
        name=name_of(kept, operation, data.name),
        operation=operation,
        parent_id=parent_id(span),
        is_step=operation is _CHAT,
        status=status,
        status_word=text,
        status_source=source,
        started_at=None if start is None else start / 1e9,
        duration_ms=None if start is None or end is None or end < start else (end - start) / 1e6,
        usage=usage_of(kept, operation),
        error=error_of(span, kept, events, status),
        model=first(kept, MODELS) if operation in (_CHAT, _EMBEDDINGS) else None,
        preview=_preview(data) if preview else "",
        note=_note(kept, events) if operation is _CHAT else "",
        at=at,
    )


def _status(
    span: SpanFields, kept: Attributes, events: Sequence[Event], *, ended: bool
) -> tuple[Status, str | None, StatusSource | None]:
    """(status, its word, where it is from). Unset says nothing: then the end counts, and what was noted until then."""
    code = named(span.status, "code")
    if code is not None and not isinstance(code, bool | list | dict):
        if code in _FAILED:
            return _ERROR, "ERROR", _EXPLICIT
        if code in _OK:
            return _FINE, "OK", _EXPLICIT
    if word(kept.get("error.type")) is not None:
        return _ERROR, None, _EXPLICIT
    thrown = [event.kept.get("exception.escaped") for event in events if event.name == EXCEPTION]
    if thrown and any(escaped in (True, "true", "True") for escaped in thrown):
        return _ERROR, None, _EXPLICIT
    if thrown or not ended:
        return Status.UNKNOWN, None, None
    return _FINE, None, _DERIVED


def error_of(span: SpanFields, kept: Attributes, events: Sequence[Event], status: Status) -> Error | None:
    """Why a span failed: its last exception, what its status says, or the type alone."""
    if status is _FINE:
        return None
    message, kind = word(named(span.status, "message")), word(kept.get("error.type"))
    place = thrown_last(events)
    if place is not None:
        told = events[place].kept
        message = word(told.get("exception.message")) or message
        kind = word(told.get("exception.type")) or kind
    if status is _ERROR and message is None and place is None:
        message = word(kept.get("error.message")) or _logfire_error(kept)
    if message is not None and kind is not None and message == f"{kind.rpartition('.')[2]}: ":
        message = None  # as the SDK writes the status of an exception without a text
    return None if message is None and kind is None else Error(message or "", kind)


def _logfire_error(kept: Attributes) -> str | None:
    """The error of openai-agents as Logfire has it: a message and data."""
    told = decoded(kept.get("error"))
    message = word(told.get("message")) if isinstance(told, dict) else None
    if message is None:
        return None
    data = told.get("data")
    return f"{message}: {short_json(data)}" if data else message


def thrown_last(events: Sequence[Event]) -> int | None:
    """Which event is the last exception."""
    return next((i for i in reversed(range(len(events))) if events[i].name == EXCEPTION), None)


def _preview(data: SpanData) -> str:
    if data.operation is _CHAT:
        return (messages.said(data.made) or _text(made_by(data.kept)))[:PREVIEW]
    value = given_to(data.kept)
    if value is not None:
        return telling(value[1])
    agent = data.operation in (_AGENT, _WORKFLOW)
    return (messages.prompt_of(data.given) or "")[:PREVIEW] if agent else ""


def _text(value: tuple[str, Any] | None) -> str:
    if value is None:
        return ""
    return value[1].strip() if isinstance(value[1], str) else short_json(value[1])


def _note(kept: Attributes, events: Sequence[Event]) -> str:
    """Why a model stopped, where that is worth a word."""
    reasons = next((told for name in _REASONS if (told := kept.get(name)) is not None), None)
    if reasons is None and any(event.name == "gen_ai.choice" for event in events):
        reasons = [event.kept.get("finish_reason") for event in events]
    found = reasons if isinstance(reasons, list) else [reasons]
    unusual = (one for one in found if isinstance(one, str) and one and one.lower() not in _USUAL)
    return next(unusual, "")[:PREVIEW]
