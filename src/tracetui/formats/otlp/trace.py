"""One trace while its spans come in, in any order: its spans, and what is known of it as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec.structs import replace

from tracetui.formats.agent_log import Rows
from tracetui.formats.bodies import add_field, rendered
from tracetui.formats.calls import as_json
from tracetui.formats.fields import unknown_fields
from tracetui.formats.jsonl import Line
from tracetui.formats.labels import task_key
from tracetui.formats.otlp import messages
from tracetui.formats.otlp.messages import Messages
from tracetui.formats.otlp.records import (
    FIELDS,
    LISTS,
    OTHERS,
    REQUEST,
    SCOPES,
    Event,
    Export,
    LogRecord,
    RecordRef,
    SpanFields,
    SpanRecord,
    event_of,
    events_of,
    fields_around,
    identifier,
    named,
    nanoseconds,
    parent_id,
)
from tracetui.formats.otlp.vocabulary import (
    AGENTS,
    INPUTS,
    MODELS,
    OUTPUTS,
    WORKFLOWS,
    Attributes,
    decoded,
    find_value,
    first,
    name_of,
    operation_of,
    tags_of,
    telling,
    usage_of,
)
from tracetui.formats.scalars import version, without, word
from tracetui.formats.schema import Unknown
from tracetui.model import (
    PREVIEW,
    Error,
    FirstError,
    Header,
    Operation,
    Problem,
    RunBody,
    Span,
    Status,
    StatusSource,
    Usage,
)
from tracetui.model.tally import CONTAINERS

_ID_LENGTH: Final = 32
"""Hex digits of a trace id (16 bytes, as OTLP's ``trace.proto`` says), which is unique: rotation, or a file for each
process, spreads such a trace over several files."""
EXCEPTION: Final = "exception"
_OK: Final = (1, "1", "STATUS_CODE_OK", "OK", "Ok")
_FAILED: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error")
_REASONS: Final = ("gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason")
_USUAL: Final = frozenset({"stop", "end_turn", "tool_calls", "tool_call", "tool_use", "tool-calls", "completed"})
"""Reasons to stop that need not be told."""
MOST: Final = 256
"""So many different resources, scopes and errors of a trace are attrs."""
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


class Trace(Rows):
    """One trace: its spans, in any order, and what they say of it as a whole."""

    settled = stands = False

    def __init__(self, path: str, key: str, *, summary_only: bool = False) -> None:
        """With `summary_only`, previews and what only a body shows are left out."""
        self.part, self.records = "", 0
        self.unknown: Unknown = {}
        self.problems: list[Problem] = []
        """Problems of lines, which are those of the file."""
        self.path, self.key, self.summary_only = path, key, summary_only
        self.spans: dict[str, Span] = {}
        """New and changed ones."""
        self.conflicts: list[Problem] = []
        self.root = _NOTHING
        """The span without a parent: the first, if there are several."""
        self.final = _NOTHING
        """Of those the one that ended last, by its end, negative."""
        self.root_body: tuple[Any, Any] = (None, None)
        """Input and output of the root."""
        self.task: str | None = None
        """Key of the name and input of the root."""
        self.agent = self.workflow = self.model = self.prompt = self.system = self.service = self.source = _NOTHING
        self.answer = _NOTHING
        """The last output of a model, by its end, negative."""
        self.sdk: str | None = None
        """Version of the library that wrote last."""
        self.tags: tuple[str, ...] = ()
        self.failures: dict[str, Earliest] = {}
        """The first span with each error, by its end."""
        self.chats: dict[str, tuple[Span, str]] = {}
        """Calls of models, and their names if they only wrap others."""
        self.callers: dict[str, bool] = {}
        """Spans below which a model is called, with nothing between but wrappers."""
        self.above: dict[str, str | None] = {}
        """Parents of calls of models and of wrappers."""
        self.counted = False
        """A call of a model has a usage."""
        self.stated: dict[str, Usage] = {}
        """Usage of agents and workflows, which counts where no call has one."""
        self.parents: dict[str, str | None] = {}
        """Parents of all spans, as long as no call has a usage."""
        self.last: dict[str, tuple[int, int, Span]] = {}
        """The child of each span that ended last, after its end and start."""
        self.answered: set[str] = set()
        """Spans that have an output and did not fail."""
        self.seen: dict[str, int] = {}
        """Checksum of each span."""
        self.known: dict[str, Span] = {}
        """The spans as they came: logs may add to them."""
        self.early: dict[str, list[tuple[Event, RecordRef]]] = {}
        """Events in logs of spans that did not come yet."""
        self.around: dict[bytes, tuple[str, dict[str, Any]]] = {}
        """Different resources, scopes and requests: kind and fields."""
        self.latest: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        """The scope and resource of the latest span, and their fields: many spans share them."""

    def take(self, export: Export, line: Line) -> None:
        """Take the records of this trace on one line or in one document."""
        for log in export.logs:
            if log.trace == self.key:
                self.take_log(log, line)
        for span in export.spans:
            if span.trace == self.key:
                self.take_span(span, line, export.value)

    def take_span(self, record: SpanRecord, line: Line, request: Any) -> None:
        """Take one span; `request` is the decoded request if it may have other fields."""
        if record.names:
            FIELDS.count(self.unknown, "span", record.names)
        data = SpanData(record)
        span = span_of(data, line, preview=not self.summary_only)
        before = self.seen.get(span.id)
        self.seen[span.id] = record.check
        if before is not None and before != record.check:  # exporters that try again write the same one twice
            reason = f"span {span.id[:PREVIEW]} is there twice with different content: the last one is shown"
            self.conflicts.append(Problem(self.path, f"line {line.number}", reason))
        self._learn(data, span)
        self._take_surroundings(data, request)
        if before is not None and (logs := self.known[span.id].at.logs):
            span = replace(span, at=replace(span.at, logs=logs))
        self.known[span.id] = span
        self._put(span, data.name[:PREVIEW] or span.name)
        for event, at in self.early.pop(span.id, ()) if self.early else ():
            self._attach(self.known[span.id], event, at)

    def take_log(self, log: LogRecord, line: Line) -> None:
        """Take an event of a span, from an export of logs."""
        assert log.span is not None
        at = RecordRef(line.offset, len(line.data), crc32(rendered(log.fields)), *log.place)
        event, known = event_of(log.fields), self.known.get(log.span)
        if known is None:
            self.early.setdefault(log.span, []).append((event, at))
        else:
            self._attach(known, event, at)

    def collect(self) -> list[Span]:
        found = list(self.spans.values())
        self.spans.clear()
        return found

    def take_conflicts(self) -> list[Problem]:
        """Problems of the trace itself since the last call."""
        found, self.conflicts = self.conflicts, []
        return found

    # ---- spans

    def _attach(self, span: Span, event: Event, at: RecordRef) -> None:
        """Show an event with its span, and learn from it what the span itself does not say."""
        given, made = messages.inputs_of({}, [event]), messages.outputs_of({}, [event])
        self._overhear(span, given, made)
        if self.summary_only:
            return
        text = made.preview[:PREVIEW] if span.operation is _CHAT else ""
        shown = replace(span, at=replace(span.at, logs=(*span.at.logs, at)), preview=text or span.preview)
        self.known[span.id] = shown
        if span.id in self.chats:
            name = self.chats[span.id][1]
            self.chats[span.id] = shown, name
            shown = _wrapping(shown, name) if self.callers.get(span.id) else shown
        self.spans[span.id] = shown

    def _overhear(self, span: Span, given: Messages, made: Messages) -> None:
        start = None if span.started_at is None else round(span.started_at * 1e9)
        asked = given.prompt
        if asked is not None and (self.prompt.may_be(start) or start == self.prompt.at):
            self.prompt = Earliest(asked, inf if start is None else start)  # of several it is the latest question
        if self.summary_only:
            return
        self.system = self.system.or_this(start, given.system)
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
        attrs, start = data.attrs, data.start
        if self.agent.may_be(start):
            self.agent = self.agent.or_this(start, first(attrs, AGENTS))
        if self.workflow.may_be(start):
            self.workflow = self.workflow.or_this(start, first(attrs, WORKFLOWS))
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
        if span.operation in _OUTER and span.status is not _ERROR and messages.has_output(data.attrs):
            self.answered.add(span.id)
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
        while span is not None and span.id not in seen and span.operation in _OUTER and span.id not in self.answered:
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
        self.tags = tags_of(data.attrs)
        given = find_value(data.attrs, INPUTS)
        asked = data.inputs.question if given is None else given[1]
        self.task = None if asked is None else task_key(span.name, rendered(asked))
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
            prompt = data.inputs.prompt if data.has_messages else None
            if prompt is None and data.operation in CONTAINERS:
                prompt = _plain(find_value(data.attrs, INPUTS))
            self.prompt = self.prompt.or_this(data.start, prompt)
        if self.summary_only:
            return
        if data.has_messages and self.system.may_be(data.start) and messages.may_have_system(data.attrs, data.events):
            self.system = self.system.or_this(data.start, data.inputs.system)
        if data.operation is _CHAT and data.end is not None and self.answer.may_be(-data.end):
            self.answer = self.answer.or_this(-data.end, data.outputs.text)

    def _fail(self, span: Span, end: int | None) -> None:
        error = span.error
        key = "" if error is None else error.words[:PREVIEW]
        if key in self.failures or len(self.failures) < MOST:
            found = FirstError(
                error.message if error else "", error.type if error else None, span.id, span.name, span.operation
            )
            self.failures[key] = self.failures.get(key, _NOTHING).or_this(end, found)

    def _take_surroundings(self, data: SpanData, request: Any) -> None:
        """Take the resource (the program it ran in) and the scope (the library that made it)."""
        resource = self._shared_fields("resource", data.record.resource, SCOPES)
        self.sdk = version(resource.get("telemetry.sdk.version")) or self.sdk
        if self.service.may_be(data.start):
            service = word(resource.get("service.name"))
            if service is not None and not service.startswith("unknown_service"):
                self.service = self.service.or_this(data.start, service)
        scope = self._shared_fields("scope", data.record.scope, LISTS)
        if self.source.may_be(data.start):
            self.source = self.source.or_this(data.start, word(scope.get("name")))
        if isinstance(request, dict) and len(request) > 1:
            self._shared_fields("request", without(request, *REQUEST, *OTHERS), ())

    def _shared_fields(self, kind: str, record: dict[str, Any], lists: Sequence[str]) -> dict[str, Any]:
        """Fields that many spans have in common, kept once."""
        latest = self.latest.get(kind)
        if latest is not None and latest[0] is record:
            return latest[1]
        key = kind.encode() + rendered(without(record, *LISTS))
        known = self.around.get(key)
        fields = fields_around(record, lists) if known is None else known[1]
        self.latest[kind] = record, fields
        if known is None and len(self.around) < MOST:
            self.around[key] = kind, fields
        elif known is None and len(self.around) == MOST:
            self.around[b""] = "", {}
            reason = f"more than {MOST} different resources and scopes: the others are not shown"
            self.conflicts.append(Problem(self.path, "resources", reason))
        return fields

    # ---- header and body of the run

    def header(self) -> Header:
        """The header as far as it is known."""
        root: Span | None = self.root.value
        final: Span | None = self.final.value
        agent = self.agent.value or self.workflow.value or self.service.value
        name = root.name if root is not None else agent or f"trace {self.key[:8]}"
        failed = self.failed()
        status, status_word, source = None, None, None
        if failed is not None:
            status, source = _ERROR, _DERIVED
        elif final is not None and (final.status is _ERROR or final.status_word is not None):
            status, status_word, source = final.status, final.status_word, final.status_source
        return Header(
            id=self.key,
            name=name,
            agent=agent[:PREVIEW] if agent else None,
            model=self.model.value,
            status=status,
            status_word=status_word,
            status_source=source,
            ended=self.final.at < inf,
            by_start=True,
            duration_ms=root.duration_ms if root is not None and final is not None and root.id == final.id else None,
            usage=self._outermost_usage(),
            repeats=self.task,
            split=len(self.key) == _ID_LENGTH,
            error=self._cause(failed or final),
            prompt=(self.prompt.value or "")[:PREVIEW],
            tags=self.tags,
            source=(self.source.value or self.service.value or "")[:PREVIEW] or None,
            writer=self.sdk,
            fields=unknown_fields(self.unknown),
        )

    def _outermost_usage(self) -> Usage | None:
        """The usage of the outermost spans that have one; None where calls of models have it."""
        found = Usage()
        for span_id, usage in self.stated.items():
            above, seen = self.parents.get(span_id), {span_id}
            while above is not None and above not in seen and above not in self.stated:
                seen.add(above)
                above = self.parents.get(above)
            if above is None or above in seen:
                found += usage
        return found or None

    def _cause(self, final: Span | None) -> FirstError | None:
        """The first span with the error that ended the run, else the first error of all."""
        found = None
        if final is not None and final.error is not None:
            found = self.failures.get(final.error.words[:PREVIEW])
        found = found or min(self.failures.values(), key=lambda one: one.at, default=_NOTHING)
        first_error: FirstError | None = found.value
        return first_error

    def run_body(self) -> RunBody:
        """Resources and scopes, and what the trace says as a whole."""
        final: Span | None = self.final.value
        failed = self.failed()
        findings: tuple[str, ...] = ()
        if final is not None and failed is not None and final.status_word is not None:
            ended = f"{failed.operation} span {failed.name} ended in an error"
            findings = (f"Top span says {final.status_word}, but {ended}",)
        around: dict[str, Any] = {}
        for kind, fields in self.around.values():
            if fields:
                add_field(around, kind, fields)
        return RunBody(
            input=self.root_body[0],
            output=self.root_body[1],
            error=None if final is None else (failed or final).error,
            findings=findings,
            system_prompt=self.system.value,
            last_user=self.prompt.value,
            last_assistant=self.answer.value,
            attributes=around,
        )


def _wrapping(span: Span, name: str) -> Span:
    """A call of a model that only wraps others."""
    return replace(span, name=name, operation=_WORKFLOW, is_step=False, model=None)


def _asked(data: SpanData) -> Any:
    """What went into a span, by its values or its messages."""
    asked = find_value(data.attrs, INPUTS)
    return asked[1] if asked else data.inputs.prompt


def _answered(data: SpanData) -> Any:
    """What came of it."""
    answered = find_value(data.attrs, OUTPUTS)
    return answered[1] if answered else data.outputs.answer if data.outputs.partial else data.outputs.text


def _plain(found: tuple[str, Any] | None) -> str | None:
    """What went into a span, if it is no more than a text."""
    return (found[1].strip() or None) if found is not None and isinstance(found[1], str) else None


# ---- the header of a span


class SpanData:
    """What a record says: each part once, the messages when they are asked for. Times are in nanoseconds."""

    def __init__(self, record: SpanRecord, logged: Sequence[Event] = ()) -> None:
        """`logged`: events of it in exports of logs."""
        span = record.span
        self.record, self.attrs, self.id = record, record.attrs, identifier(span.id)
        self.events = [*events_of(span.events), *logged] if span.events or logged else []
        self.name = span.name if isinstance(span.name, str) else ""
        self.operation = operation_of(self.attrs, self.name)
        self.start, self.end = nanoseconds(span.start), nanoseconds(span.end)
        self.has_messages = messages.may_have_messages(self.attrs, self.events)

    @cached_property
    def inputs(self) -> Messages:
        """The messages that went into it."""
        return messages.inputs_of(self.attrs, self.events) if self.has_messages else messages.NO_MESSAGES

    @cached_property
    def outputs(self) -> Messages:
        """The messages that came of it."""
        return messages.outputs_of(self.attrs, self.events) if self.has_messages else messages.NO_MESSAGES


def span_of(data: SpanData, line: Line, *, preview: bool) -> Span:
    """The span of a record on a line or in a document."""
    record, attrs, events, operation = data.record, data.attrs, data.events, data.operation
    start, end, span = data.start, data.end, record.span
    status, text, source = _status(span, attrs, events, ended=end is not None)
    return Span(
        id=data.id or "l{}.{}.{}.{}".format(line.number, *record.place),
        name=name_of(attrs, operation, data.name),
        operation=operation,
        parent_id=parent_id(span),
        is_step=operation is _CHAT,
        status=status,
        status_word=text,
        status_source=source,
        started_at=None if start is None else start / 1e9,
        duration_ms=None if start is None or end is None or end < start else (end - start) / 1e6,
        usage=usage_of(attrs, operation),
        error=error_of(span, attrs, events, status),
        model=first(attrs, MODELS) if operation in (_CHAT, _EMBEDDINGS) else None,
        preview=_preview(data) if preview else "",
        note=_note(attrs, events) if operation is _CHAT else "",
        at=RecordRef(line.offset, len(line.data), record.check, *record.place),
    )


def _status(
    span: SpanFields, attrs: Attributes, events: Sequence[Event], *, ended: bool
) -> tuple[Status, str | None, StatusSource | None]:
    """(status, its word, where it is from). Unset says nothing: then the end counts, and what was noted until then."""
    code = named(span.status, "code")
    if code is not None and not isinstance(code, bool | list | dict):
        if code in _FAILED:
            return _ERROR, "ERROR", _EXPLICIT
        if code in _OK:
            return _FINE, "OK", _EXPLICIT
    if word(attrs.get("error.type")) is not None:
        return _ERROR, None, _EXPLICIT
    thrown = [event.attrs.get("exception.escaped") for event in events if event.name == EXCEPTION]
    if thrown and any(escaped in (True, "true", "True") for escaped in thrown):
        return _ERROR, None, _EXPLICIT
    if thrown or not ended:
        return Status.UNKNOWN, None, None
    return _FINE, None, _DERIVED


def error_of(span: SpanFields, attrs: Attributes, events: Sequence[Event], status: Status) -> Error | None:
    """Why a span failed: its last exception, what its status says, or the type alone."""
    if status is _FINE:
        return None
    message, kind = word(named(span.status, "message")), word(attrs.get("error.type"))
    place = last_exception(events)
    if place is not None:
        told = events[place].attrs
        message = word(told.get("exception.message")) or message
        kind = word(told.get("exception.type")) or kind
    if status is _ERROR and message is None and place is None:
        message = word(attrs.get("error.message")) or _logfire_error(attrs)
    if message is not None and kind is not None and message == f"{kind.rpartition('.')[2]}: ":
        message = None  # as the SDK writes the status of an exception without a text
    return None if message is None and kind is None else Error(message or "", kind)


def _logfire_error(attrs: Attributes) -> str | None:
    """The error of openai-agents as Logfire has it: a message and data."""
    told = decoded(attrs.get("error"))
    message = word(told.get("message")) if isinstance(told, dict) else None
    if message is None:
        return None
    data = told.get("data")
    return f"{message}: {as_json(data)}" if data else message


def last_exception(events: Sequence[Event]) -> int | None:
    """Which event is the last exception."""
    return next((i for i in reversed(range(len(events))) if events[i].name == EXCEPTION), None)


def _preview(data: SpanData) -> str:
    if data.operation is _CHAT:
        return (data.outputs.preview or _text(find_value(data.attrs, OUTPUTS)))[:PREVIEW]
    value = find_value(data.attrs, INPUTS)
    if value is not None:
        return telling(value[1])
    agent = data.operation in (_AGENT, _WORKFLOW)
    return (data.inputs.prompt or "")[:PREVIEW] if agent else ""


def _text(value: tuple[str, Any] | None) -> str:
    if value is None:
        return ""
    return value[1].strip() if isinstance(value[1], str) else as_json(value[1])


def _note(attrs: Attributes, events: Sequence[Event]) -> str:
    """Why a model stopped, where that is worth a word."""
    reasons = next((told for name in _REASONS if (told := attrs.get(name)) is not None), None)
    if reasons is None and any(event.name == "gen_ai.choice" for event in events):
        reasons = [event.attrs.get("finish_reason") for event in events]
    found = reasons if isinstance(reasons, list) else [reasons]
    unusual = (one for one in found if isinstance(one, str) and one and one.lower() not in _USUAL)
    return next(unusual, "")[:PREVIEW]
