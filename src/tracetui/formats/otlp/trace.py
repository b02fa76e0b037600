"""One trace whose spans arrive in any order: its spans, header, body, and the bodies of spans."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Sequence
from functools import cached_property
from math import inf
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
from msgspec.structs import replace

from tracetui.formats.agent_log import Rows
from tracetui.formats.bodies import add_field, as_json, cached, changed, rendered
from tracetui.formats.decode import parse
from tracetui.formats.jsonl import Line
from tracetui.formats.otlp import messages
from tracetui.formats.otlp.messages import Messages
from tracetui.formats.otlp.records import (
    FIELD_NAMES,
    FIELDS,
    INPUTS,
    LISTS,
    MESSAGES_OUT,
    OTHERS,
    OUTPUTS,
    REQUEST,
    SCOPES,
    Attributes,
    Event,
    Export,
    LogRecord,
    RecordPath,
    RecordRef,
    SpanRecord,
    attributes_of,
    bytes_of,
    content,
    decoded,
    evaluated_trace,
    event_of,
    events_at,
    events_of,
    fields_around,
    identifier,
    loose_record,
    named,
    nanoseconds,
    parent_id,
    parse_int,
    span_id,
    span_values,
    trace_id,
)
from tracetui.formats.otlp.rows import is_row, span_of
from tracetui.formats.otlp.vocabulary import (
    NAMES,
    find_value,
    first,
    name_of,
    operation_of,
    preview_of,
    scores_of_event,
    scores_of_span,
    tags_of,
    usage_of,
)
from tracetui.formats.scalars import mapping, sequence, task_key, version, without, word
from tracetui.formats.schema import Unknown, unknown_fields
from tracetui.model import (
    PREVIEW,
    Body,
    Error,
    FirstError,
    Header,
    Link,
    Operation,
    Problem,
    RunBody,
    Score,
    Span,
    Status,
    StatusSource,
    Usage,
)
from tracetui.model.tally import CONTAINERS
from tracetui.sources.base import File

_ID_LENGTH: Final = 32
"""Hex digits of a trace id (16 bytes, by OTLP's ``trace.proto``), which is unique: rotation, or a file for each
process, spreads such a trace over several files."""
EXCEPTION: Final = "exception"
_OK: Final = (1, "1", "STATUS_CODE_OK", "OK", "Ok")
_FAILED: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error")
_ERROR_REASON: Final = "error"
"""The finish reason of a failed call, by the GenAI conventions and the AI SDK."""
_ERROR_MESSAGES: Final = ("error.message", "langfuse.observation.status_message")
_MAY_FAIL: Final = re.compile(rb'"finish_reason\\?": ?\\?"error', re.IGNORECASE)
"""In messages, as JSON or as JSON in a text."""
_REASONS: Final = ("gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason")
_USUAL: Final = frozenset({"stop", "end_turn", "tool_calls", "tool_call", "tool_use", "tool-calls", "completed"})
"""Finish reasons that are not shown."""
_WORDS: Final = re.compile(r"\w+")
_SAME_TEXT: Final = 4096
"""Characters of an error that are compared with others."""
_IS_REMOTE: Final = 0x300
"""Flags of a span whose parent is remote: it is known, and it is so."""
MOST: Final = 256
"""Most resources, scopes and errors of a trace that are kept."""
_WRAPPERS: Final = frozenset({Operation.INVOKE_WORKFLOW, Operation.NODE, Operation.OTHER})
"""Spans that may be between a call of a model and another one that it wraps; a tool or an agent makes its own calls."""
_NO_WORK: Final = frozenset({Operation.POLICY, Operation.META})
"""Spans that check or note something: that one of them succeeds does not make up for a failure before it."""
_OUTER: Final = CONTAINERS | {Operation.NODE, Operation.OTHER}
"""Spans that may pass their failure or success on to their parent; that of a tool is an answer to the model."""
_ANSWERING: Final = frozenset({Operation.CHAT, Operation.INVOKE_WORKFLOW, Operation.INVOKE_AGENT})
"""Spans with the finish reason of a model."""
_CHAT: Final = Operation.CHAT
_EMBEDDINGS: Final = Operation.EMBEDDINGS
_AGENT: Final = Operation.INVOKE_AGENT
_WORKFLOW: Final = Operation.INVOKE_WORKFLOW
_ERROR: Final = Status.ERROR
_FINE: Final = Status.OK
_EXPLICIT: Final = StatusSource.EXPLICIT
_DERIVED: Final = StatusSource.DERIVED


class Earliest:
    """A value of the span that began first, of all spans that have one; the first such span on a tie."""

    __slots__ = ("at", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.at: float = inf

    def may_be(self, start: int | None) -> bool:
        """Whether something that began then would be the earliest."""
        return self.value is None or (start is not None and start < self.at)

    def offer(self, start: int | None, value: Any) -> None:
        """Take the value if it is the earliest one."""
        at = inf if start is None else start
        if value is not None and (self.value is None or at < self.at):
            self.value, self.at = value, at


class RootFacts(NamedTuple):
    """Facts of the root that are those of the run."""

    tags: tuple[str, ...] = ()
    task: str | None = None
    """Key of its name and input."""
    input: Any = None
    output: Any = None


NO_FACTS: Final = RootFacts()


class Failure(NamedTuple):
    """A failed span, and its end in nanoseconds, infinite if unknown."""

    end: float
    span: Span

    @property
    def order(self) -> tuple[float, float]:
        """The first to end comes first; of several, the last to start, which is inside the others."""
        return self.end, -(self.span.started_at or 0.0)

    @property
    def key(self) -> str:
        """The beginning of its error."""
        return "" if self.span.error is None else self.span.error.text[:PREVIEW]

    @property
    def error(self) -> FirstError:
        """Its error, with the span."""
        span, error = self.span, self.span.error or Error("")
        return FirstError(error.message, error.type, span.id, span.name, span.operation)


class Ends(NamedTuple):
    """The first and the last span at the top of a trace."""

    root: Span | None = None
    final: Span | None = None
    """The one that ended last; None if none has ended."""
    is_over: bool = False
    """Nothing can come above them: their parents are none, or remote."""
    facts: RootFacts = NO_FACTS


class Trace(Rows):
    """One trace: its spans, in any order, and the facts that they add to the run."""

    settled = has_status = False

    def __init__(self, path: str, key: str, *, summary_only: bool = False) -> None:
        """With `summary_only`, skips previews and data for bodies."""
        self.part, self.records = "", 0
        self.unknown: Unknown = {}
        self.problems: list[Problem] = []
        """Problems of lines, which are those of the file."""
        self.path, self.key, self.summary_only = path, key, summary_only
        self.spans: dict[str, Span] = {}
        """New and changed ones."""
        self.conflicts: list[Problem] = []
        self.root = Earliest()
        """The span without a parent: the first, if there are several."""
        self.final = Earliest()
        """Of those the one that ended last, by its end, negative."""
        self.root_facts = NO_FACTS
        self.agent, self.workflow, self.model, self.service, self.source = (Earliest() for _ in range(5))
        self.prompt, self.system, self.answer = Earliest(), Earliest(), Earliest()
        """`answer` is the last output of a model, by its end, negative."""
        self.sdk: str | None = None
        """Version of the library that wrote last."""
        self.failures: dict[str, dict[str, Failure]] = {}
        """The failed spans by the beginning of their error, and by id."""
        self.chats: dict[str, tuple[Span, str]] = {}
        """Calls of models, and their names if they only wrap others."""
        self.callers: dict[str, bool] = {}
        """Spans below which a model is called, with nothing between but wrappers."""
        self.above: dict[str, str | None] = {}
        """Parents of calls of models and of wrappers."""
        self.orphans: dict[str, dict[str, tuple[Span, SpanData | None]]] = {}
        """Spans whose parent did not come yet, by its id and theirs."""
        self.orphan_facts: tuple[int, RootFacts] | None = None
        """Of the orphan that is the root so far, with the checksum of its record."""
        self.stated: dict[str, Usage] = {}
        """Usage of agents and workflows, which counts where no call of theirs has one."""
        self.covered: set[str] = set()
        """Spans with a call of a model below them that has a usage."""
        self.last: dict[str, tuple[int, int, Span]] = {}
        """The child of each span that ended last, after its end and start."""
        self.answered: set[str] = set()
        """Spans that have an output and did not fail."""
        self.by_id: dict[str, Span] = {}
        """The spans as they came: logs may add to them."""
        self.early: dict[str, list[tuple[Event, RecordRef]]] = {}
        """Events in logs of spans that did not come yet."""
        self.scores: dict[tuple[str | None, int | None], tuple[Score, ...]] = {}
        """Evaluations by span id, and by the checksum of a log record or of a span without an id."""
        self.around: dict[bytes, tuple[str, dict[str, Any]]] = {}
        """Different resources, scopes and requests: kind and fields."""
        self.latest: tuple[Any, Any, str | None, str | None] = None, None, None, None
        """Resource and scope of the latest span, the service that the resource names, and the name of the scope."""

    def take(self, export: Export, line: Line) -> None:
        """Take the records of this trace on one line or in one document."""
        for log in export.logs:
            if log.trace == self.key:
                self.take_log(log, line)
        for span in export.spans:
            if span.trace == self.key:
                self.take_span(span, line, export.value)
            elif evaluated_trace(span) == self.key:
                self.take_evaluations(span)

    def take_evaluations(self, record: SpanRecord) -> None:
        """Take the evaluations that an evaluator in another trace records of this one."""
        self._take_scores(identifier(record.span.id), record, events_of(record.span.events))

    def _take_scores(self, span_id: str | None, record: SpanRecord, events: Sequence[Event]) -> None:
        key = span_id, record.check if span_id is None else None
        scores = scores_of_span(span_id, record.attrs, events)
        if scores or key in self.scores:
            self.scores[key] = scores

    def take_span(self, record: SpanRecord, line: Line, request: Any) -> None:
        """Take one span; `request` is the decoded request if it may have other fields."""
        if record.names:
            FIELDS.count(self.unknown, "span", record.names)
        data = SpanData(record)
        span = data.span(line, preview=not self.summary_only)
        before = self.by_id.get(span.id)
        if before is not None and before.at.check != record.check:  # exporters that try again write the same one twice
            reason = f"span {span.id[:PREVIEW]} is recorded twice with different content; the last one is shown"
            self.conflicts.append(Problem(self.path, f"line {line.number}", reason))
        self._take_facts(data, span)
        may_score = data.events or data.names.has_scores or self.scores
        if may_score and evaluated_trace(record) == self.key:
            self._take_scores(data.id, record, data.events)
        self._take_surroundings(data, request)
        if before is not None and before.at.logs:
            span = replace(span, at=replace(span.at, logs=before.at.logs))
        self.by_id[span.id] = span
        self._emit(span, data.name[:PREVIEW] or span.name)
        for event, at in self.early.pop(span.id, ()) if self.early else ():
            self._attach(self.by_id[span.id], event, at)

    def take_log(self, log: LogRecord, line: Line) -> None:
        """Take an event of a span, or an evaluation of the trace, from an export of logs."""
        at = RecordRef(line.offset, len(line.data), crc32(rendered(log.fields)), *log.path)
        event = event_of(log.fields)
        if scores := tuple(scores_of_event(log.span, event)):
            self.scores[log.span, at.check] = scores
        if log.span is None:
            return
        span = self.by_id.get(log.span)
        if span is None:
            self.early.setdefault(log.span, []).append((event, at))
        else:
            self._attach(span, event, at)

    def collect(self) -> list[Span]:
        spans = list(self.spans.values())
        self.spans.clear()
        return spans

    def take_conflicts(self) -> list[Problem]:
        """Problems of the trace itself since the last call."""
        conflicts, self.conflicts = self.conflicts, []
        return conflicts

    # ---- spans

    def _attach(self, span: Span, event: Event, at: RecordRef) -> None:
        """Show an event with its span, and take the messages in it."""
        given, outputs = messages.inputs_of({}, [event]), messages.outputs_of({}, [event])
        start = None if span.started_at is None else round(span.started_at * 1e9)
        prompt = given.prompt
        if prompt is not None and (self.prompt.may_be(start) or start == self.prompt.at):
            self.prompt.value = prompt  # the latest question of several
            self.prompt.at = inf if start is None else start
        if self.summary_only:
            return
        self.system.offer(start, given.system)
        if span.operation is _CHAT and start is not None:
            self.answer.offer(-round(start + (span.duration_ms or 0) * 1e6), outputs.text)
        text = outputs.preview[:PREVIEW] if span.operation is _CHAT else ""
        span_with_log = replace(span, at=replace(span.at, logs=(*span.at.logs, at)), preview=text or span.preview)
        self.by_id[span.id] = span_with_log
        if span.id in self.chats:
            name = self.chats[span.id][1]
            self.chats[span.id] = span_with_log, name
            span_with_log = _wrapping(span_with_log, name) if self.callers.get(span.id) else span_with_log
        self.spans[span.id] = span_with_log

    def _emit(self, span: Span, name: str) -> None:
        """Give out a span. A call of a model that only wraps another one contains it, and has no usage of its own."""
        called, wraps = span.operation is _CHAT, self.callers.get(span.id)
        if called:
            self.chats[span.id] = span, name
        self.spans[span.id] = _wrapping(span, name) if called and wraps else span
        if called or span.operation in _WRAPPERS:
            self.above[span.id] = span.parent_id
            if wraps or (called and span.usage is not None):
                self._mark_callers(span.parent_id if span.parent_id != span.id else None)

    def _mark_callers(self, above: str | None) -> None:
        """Mark all spans around a call of a model."""
        while above is not None and not self.callers.get(above):
            self.callers[above] = True
            if above in self.chats:
                self.spans[above] = _wrapping(*self.chats[above])
            above = self.above.get(above)

    # ---- the whole

    def _take_facts(self, data: SpanData, span: Span) -> None:
        attrs, start = data.attrs, data.start
        if data.names.agents:
            self.agent.offer(start, first(attrs, data.names.agents))
        if data.names.workflows:
            self.workflow.offer(start, first(attrs, data.names.workflows))
        if span.model is not None:
            self.model.offer(start, span.model)
        self._take_messages(data)
        self._take_usage(span)
        self._take_end(data, span)
        if span.parent_id is None:
            if self.root.value is not None and self.root.value.id == span.id:  # only the latest version counts
                self.root = Earliest()
            if self.final.value is not None and self.final.value.id == span.id:
                self.final = Earliest()
            self.final.offer(None if data.end is None else -data.end, span)
            if self.root.may_be(start):
                self.root.offer(start, span)
                self.root_facts = self._facts_of(data, span)
        self._take_orphan(data, span)
        self._take_failure(Failure(inf if data.end is None else data.end, span))

    def _take_end(self, data: SpanData, span: Span) -> None:
        """Note how a span ended, for `failed`."""
        if span.operation in _OUTER and span.status is not _ERROR and data.names.has_output:
            self.answered.add(span.id)
        if span.parent_id is None or data.end is None or span.operation in _NO_WORK:
            return
        before, when = self.last.get(span.parent_id), (data.end, data.start or 0)
        if before is None or before[:2] <= when:
            self.last[span.parent_id] = *when, span

    def failed(self, final: Span | None) -> Span | None:
        """The failed agent, workflow or turn that ended the run although the root has no error.

        Instrumentation of openai-agents sets the top span OK whatever happened below it. Of each span, from the top
        one down, the child that ended last decides: a failure that something came after was recovered from. A span
        with an output of its own got over what failed below it, and an OK of other spans than an agent's or a
        workflow's is the application's own word. A call of a model whose finish reason alone says that it failed has no
        status that anything above it could repeat: it counts as a failure of what it ended.
        """
        span = final
        if span is None or (span.status_source is _EXPLICIT and span.operation not in CONTAINERS):
            return None
        seen: set[str] = set()
        while span is not None and span.id not in seen and span.id not in self.answered:
            is_silent = span.operation is _CHAT and span.status_source is _DERIVED
            if span.status is _ERROR and (span.operation in CONTAINERS or is_silent):
                return span if seen else None
            if span.operation not in _OUTER:
                return None
            seen.add(span.id)
            last = self.last.get(span.id)
            span = last[2] if last is not None else None
        return None

    def _facts_of(self, data: SpanData, span: Span) -> RootFacts:
        value = data.input
        given = data.inputs.question if value is None else value
        task = None if given is None else task_key(span.name, rendered(given))
        if self.summary_only:
            return RootFacts(tags_of(data.attrs), task)
        outputs, output = data.outputs, data.output
        output = (outputs.answer if outputs.partial else outputs.text) if output is None else output
        return RootFacts(tags_of(data.attrs), task, data.inputs.prompt if value is None else value, output)

    def _take_orphan(self, data: SpanData, span: Span) -> None:
        self.orphans.pop(span.id, None)
        parent = span.parent_id
        if parent is not None and parent != span.id and parent not in self.by_id:
            siblings = self.orphans.setdefault(parent, {})
            siblings[span.id] = span, data if len(self.orphans) + len(siblings) < MOST else None

    def _ends(self) -> Ends:
        """The spans at the top: those without a parent, else with a remote one that did not come, else all orphans.

        A parent is remote by the flags of OTLP's ``trace.proto``. The parent of another orphan is in a program that
        does not export to the file, or it still comes.
        """
        if self.root.value is not None:
            return Ends(self.root.value, self.final.value if self.final.at < inf else None, True, self.root_facts)
        orphans = [orphan for siblings in self.orphans.values() for orphan in siblings.values()]
        remote = [orphan for orphan in orphans if orphan[1] is not None and orphan[1].has_remote_parent]
        tops = remote or orphans
        if not tops:
            return Ends()
        root, data = min(tops, key=lambda orphan: inf if orphan[0].started_at is None else orphan[0].started_at)
        final = max((orphan[0] for orphan in tops), key=_end_of)
        if isinstance(root.at, RecordRef) and (self.orphan_facts is None or self.orphan_facts[0] != root.at.check):
            self.orphan_facts = root.at.check, NO_FACTS if data is None else self._facts_of(data, root)
        facts = NO_FACTS if self.orphan_facts is None else self.orphan_facts[1]
        return Ends(root, final if _end_of(final) > -inf else None, bool(remote), facts)

    def _take_usage(self, span: Span) -> None:
        """Note the usage of a span around calls of models, and the spans around a call with one."""
        if span.operation in CONTAINERS and span.usage is not None:
            self.stated[span.id] = span.usage
        if span.id in self.covered or (span.operation is _CHAT and span.usage is not None):
            above = span.parent_id
            while above is not None and above not in self.covered:
                self.covered.add(above)
                parent = self.by_id.get(above)
                above = None if parent is None else parent.parent_id

    def _take_messages(self, data: SpanData) -> None:
        """The prompt, the instructions and the last answer."""
        if self.prompt.may_be(data.start):
            prompt = data.inputs.prompt if data.has_messages else None
            if prompt is None and data.operation in CONTAINERS and isinstance(value := data.input, str):
                prompt = value.strip() or None
            self.prompt.offer(data.start, prompt)
        if self.summary_only:
            return
        if data.has_messages and self.system.may_be(data.start) and messages.may_have_system(data.attrs, data.events):
            self.system.offer(data.start, data.inputs.system)
        if data.operation is _CHAT and data.end is not None and self.answer.may_be(-data.end):
            self.answer.offer(-data.end, data.outputs.text)

    def _take_failure(self, failure: Failure) -> None:
        span = failure.span
        before = self.by_id.get(span.id)
        if before is not None and before.status is _ERROR:  # only the latest version counts
            self.failures.get(Failure(inf, before).key, {}).pop(span.id, None)
        if span.status is _ERROR and (failure.key in self.failures or len(self.failures) < MOST):
            self.failures.setdefault(failure.key, {})[span.id] = failure

    def _take_surroundings(self, data: SpanData, request: Any) -> None:
        """Take the resource (the program it ran in) and the scope (the library that made it)."""
        resource, scope = data.record.resource, data.record.scope
        if resource is not self.latest[0] or scope is not self.latest[1]:  # many spans share them
            fields = self._shared_fields("resource", resource, SCOPES)
            self.sdk = version(fields.get("telemetry.sdk.version")) or self.sdk
            service = word(fields.get("service.name"))
            if service is not None and service.startswith("unknown_service"):
                service = None
            source = word(self._shared_fields("scope", scope, LISTS).get("name"))
            self.latest = resource, scope, service, source
        self.service.offer(data.start, self.latest[2])
        self.source.offer(data.start, self.latest[3])
        if isinstance(request, dict) and len(request) > 1:
            self._shared_fields("request", without(request, *REQUEST, *OTHERS), ())

    def _shared_fields(self, kind: str, record: dict[str, Any], lists: Sequence[str]) -> dict[str, Any]:
        """Fields shared by many spans, stored once."""
        key = kind.encode() + rendered(without(record, *LISTS))
        if key in self.around:
            return self.around[key][1]
        fields = fields_around(record, lists)
        if len(self.around) < MOST:
            self.around[key] = kind, fields
        elif len(self.around) == MOST:
            self.around[b""] = "", {}
            reason = f"more than {MOST} different resources and scopes; the others are not shown"
            self.conflicts.append(Problem(self.path, "resources", reason))
        return fields

    # ---- header and body of the run

    def header(self) -> Header:
        """The header so far."""
        root, final, is_over, facts = self._ends()
        agent = self.agent.value or self.workflow.value or self.service.value
        is_named = root is not None and (is_over or root.operation in _OUTER)
        name = root.name if root is not None and is_named else agent or f"trace {self.key[:8]}"
        failed = self.failed(final)
        status, status_word, source = None, None, None
        if failed is not None:
            status, source = _ERROR, _DERIVED
        elif final is not None:
            status, status_word, source = final.status, final.status_word, final.status_source or _DERIVED
        has_ended = final is not None and is_over
        return Header(
            id=self.key,
            name=name,
            agent=agent[:PREVIEW] if agent else None,
            model=self.model.value,
            status=status if has_ended else None,
            status_word=status_word if has_ended else None,
            status_source=source if has_ended else None,
            ended=has_ended,
            settled_status=status,
            is_part=self.root.value is None,
            by_start=True,
            duration_ms=root.duration_ms if root is not None and final is not None and root.id == final.id else None,
            usage=self._usage(),
            repeats=facts.task,
            split=len(self.key) == _ID_LENGTH,
            error=self._cause(failed or final),
            prompt=(self.prompt.value or "")[:PREVIEW],
            scores=tuple(score for scores in self.scores.values() for score in scores),
            tags=facts.tags,
            source=(self.source.value or self.service.value or "")[:PREVIEW] or None,
            writer=self.sdk,
            fields=unknown_fields(self.unknown),
        )

    def _usage(self) -> Usage | None:
        """The usage of the run if calls of models don't have all of it; else None.

        An agent or workflow counts if no call of its own has a usage: the outermost of several, and none that is beside
        a call which ran within its time, since some libraries don't put the calls of an agent below it.
        """
        alone = {ident for ident in self.stated if ident not in self.covered}
        if not alone:
            return None
        beside = self._calls_by_parent()
        counts = {ident for ident in alone if not self._is_below(ident, alone) and not self._has_call(ident, beside)}
        if not counts:
            return None
        usage = sum((self.stated[ident] for ident in self.stated if ident in counts), Usage())
        for span in self.by_id.values():
            wraps = span.operation in CONTAINERS or (span.operation is _CHAT and self.callers.get(span.id))
            if span.usage is not None and not wraps and not self._is_below(span.id, counts):
                usage += span.usage
        return usage or None

    def _calls_by_parent(self) -> dict[str | None, list[tuple[float, float]]]:
        """Start and end, in seconds, of calls with a usage, in order."""
        calls: dict[str | None, list[tuple[float, float]]] = {}
        for span, _ in self.chats.values():
            if span.usage is not None and span.started_at is not None:
                calls.setdefault(span.parent_id, []).append((span.started_at, _end_of(span)))
        for times in calls.values():
            times.sort()
        return calls

    def _has_call(self, ident: str, calls: dict[str | None, list[tuple[float, float]]]) -> bool:
        """Whether a call beside this span ran within its time."""
        span = self.by_id[ident]
        times = calls.get(span.parent_id, [])
        index = bisect_left(times, (span.started_at or 0.0, -inf))
        return index < len(times) and times[index][1] <= _end_of(span)

    def _is_below(self, ident: str, others: Container[str]) -> bool:
        """Whether one of the other spans is above this one."""
        seen = {ident}
        span = self.by_id.get(ident)
        while span is not None and span.parent_id is not None and span.parent_id not in seen:
            if span.parent_id in others:
                return True
            seen.add(span.parent_id)
            span = self.by_id.get(span.parent_id)
        return False

    def _cause(self, final: Span | None) -> FirstError | None:
        """Where the error came up that ended the run, else the first error of all.

        Spans pass on an error of a span below them, with its text alone or in their own words. A span that says nothing
        has the error of its last child. Of several, the first counts: later ones are attempts to do it again.
        """
        final = self._last_failed(final)
        if final is not None and final.error is not None:
            same = list(self.failures.get(final.error.text[:PREVIEW], {}).values())
            if passed_on := self._innermost([*same, *self._contained(final)]):
                return passed_on.error
        failures = (failure for failures in self.failures.values() for failure in failures.values())
        first_failure = min(failures, key=lambda failure: failure.order, default=None)
        return None if first_failure is None else first_failure.error

    def _last_failed(self, span: Span | None) -> Span | None:
        """This failed span, or the one below that ended last, if only that says why."""
        seen: set[str] = set()
        while span is not None and span.status is _ERROR and span.error is None and span.id not in seen:
            seen.add(span.id)
            last = self.last.get(span.id)
            span = None if last is None else last[2]
        return None if span is None or span.status is not _ERROR else span

    def _contained(self, final: Span) -> list[Failure]:
        """The failed spans below that one whose error is a part of its error."""
        whole = _spaced("" if final.error is None else final.error.text)
        return [
            failure
            for failures in self.failures.values()
            if failures and _text_of(next(iter(failures.values()))) in whole
            for failure in failures.values()
            if self._is_below(failure.span.id, (final.id,))
        ]

    def _innermost(self, failures: Sequence[Failure]) -> Failure | None:
        """The first of the failed spans that have none of the others below them."""
        above: set[str] = set()
        for failure in failures:
            ident = failure.span.parent_id
            while ident is not None and ident not in above:
                above.add(ident)
                span = self.by_id.get(ident)
                ident = None if span is None else span.parent_id
        inner = [failure for failure in failures if failure.span.id not in above]
        return min(inner or failures, key=lambda failure: failure.order, default=None)

    def run_body(self) -> RunBody:
        """Resources and scopes, and input and output of the whole trace."""
        _, final, _, facts = self._ends()
        failed = self.failed(final)
        findings: tuple[str, ...] = ()
        if final is not None and failed is not None and final.status_word is not None:
            ended = f"{failed.operation} span {failed.name} ended in an error"
            findings = (f"Top span reports {final.status_word}, but {ended}",)
        around: dict[str, Any] = {}
        for kind, fields in self.around.values():
            if fields:
                add_field(around, kind, fields)
        return RunBody(
            input=facts.input,
            output=facts.output,
            error=None if final is None else (failed or final).error,
            findings=findings,
            system_prompt=self.system.value,
            last_user=self.prompt.value,
            last_assistant=self.answer.value,
            attributes=around,
        )


def _end_of(span: Span) -> float:
    """The end of a span in seconds since the epoch; minus infinity if it is unknown."""
    if span.started_at is None or span.duration_ms is None:
        return -inf
    return span.started_at + span.duration_ms / 1000


def _spaced(text: str) -> str:
    """The words of a text with a blank around each, at most `_SAME_TEXT` characters of it."""
    return f" {' '.join(_WORDS.findall(text[:_SAME_TEXT].lower()))} "


def _text_of(failure: Failure) -> str:
    """The words of the message of a failed span, else of its type, as `_spaced`; a line feed if there are none."""
    error = failure.span.error
    text = "" if error is None else error.message or error.type or ""
    message = _spaced(text)
    return message if message.strip() else "\n"


def _wrapping(span: Span, name: str) -> Span:
    """A call of a model that only wraps others."""
    return replace(span, name=name, operation=_WORKFLOW, is_step=False, model=None)


# ---- the header of a span


class SpanData:
    """The contents of a record: each decoded once, messages where they are used. Times are in nanoseconds."""

    def __init__(self, record: SpanRecord, logged: Sequence[Event] = ()) -> None:
        """`logged`: events of it in exports of logs."""
        span = record.span
        self.record, self.attrs = record, record.attrs
        self.id, self.parent = identifier(span.id), parent_id(span)
        self.events = [*events_of(span.events), *logged] if span.events or logged else []
        self.name = span.name if isinstance(span.name, str) else ""
        self.operation = operation_of(self.attrs, self.name)
        self.start, self.end = nanoseconds(span.start), nanoseconds(span.end)
        self.names = NAMES.get(self.attrs)
        self.has_messages = bool(self.events) or self.names.has_messages

    @property
    def has_remote_parent(self) -> bool:
        """Whether the flags of the span say that its parent is in another process."""
        flags = parse_int(self.record.span.flags)
        return flags is not None and flags & _IS_REMOTE == _IS_REMOTE

    @cached_property
    def inputs(self) -> Messages:
        """The input messages."""
        return messages.inputs_of(self.attrs, self.events) if self.has_messages else messages.NO_MESSAGES

    @cached_property
    def outputs(self) -> Messages:
        """The output messages."""
        return messages.outputs_of(self.attrs, self.events) if self.has_messages else messages.NO_MESSAGES

    @property
    def input(self) -> Any:
        """The input in an attribute, None if there is none."""
        entry = find_value(self.attrs, self.names.inputs)
        return None if entry is None else entry[1]

    @property
    def output(self) -> Any:
        """The same of the output."""
        entry = find_value(self.attrs, self.names.outputs)
        return None if entry is None else entry[1]

    def span(self, line: Line, *, preview: bool) -> Span:
        """The span, on that line or in that document."""
        record, attrs, operation, start, end = self.record, self.attrs, self.operation, self.start, self.end
        status, text, source = self._status()
        return Span(
            self.id or "l{}.{}.{}.{}".format(line.number, *record.path),
            name_of(attrs, operation, self.name),
            operation,
            self.parent,
            is_step=operation is _CHAT,
            status=status,
            status_word=text,
            status_source=source,
            started_at=None if start is None else start / 1e9,
            duration_ms=None if start is None or end is None or end < start else (end - start) / 1e6,
            usage=usage_of(attrs, self.names, operation),
            error=None if status is _FINE else self._error(status),
            model=first(attrs, self.names.models) if operation in (_CHAT, _EMBEDDINGS) else None,
            preview=self._preview() if preview else "",
            note=self._finish_reason() if operation is _CHAT else "",
            at=RecordRef(line.offset, len(line.data), record.check, *record.path),
        )

    def _status(self) -> tuple[Status, str | None, StatusSource | None]:
        """Status, word and source. With an unset status, errors and exceptions count, then whether the span ended."""
        code = named(self.record.span.status, "code")
        if code is not None and not isinstance(code, bool | list | dict):
            if code in _FAILED:
                return _ERROR, "ERROR", _EXPLICIT
            if code in _OK:
                return _FINE, "OK", _EXPLICIT
        if self.attrs.get("langfuse.observation.level") == "ERROR":
            return _ERROR, "ERROR", _EXPLICIT
        if self.operation in _ANSWERING and self._has_failed():
            return _ERROR, None, _DERIVED
        if "error.type" in self.attrs and word(self.attrs["error.type"]) is not None:
            return _ERROR, None, _EXPLICIT
        if self.events:
            thrown = [event.attrs.get("exception.escaped") for event in self.events if event.name == EXCEPTION]
            if any(escaped in (True, "true", "True") for escaped in thrown):
                return _ERROR, None, _EXPLICIT
            if thrown:
                return Status.UNKNOWN, None, None
        return (Status.UNKNOWN, None, None) if self.end is None else (_FINE, None, _DERIVED)

    def _error(self, status: Status) -> Error | None:
        """The error of a span: its last exception, the message of its status, or the type alone."""
        message, kind = word(named(self.record.span.status, "message")), word(self.attrs.get("error.type"))
        index = last_exception(self.events)
        if index is not None:
            exception = self.events[index].attrs
            message = word(exception.get("exception.message")) or message
            kind = word(exception.get("exception.type")) or kind
        elif status is _ERROR and message is None:
            message = first(self.attrs, _ERROR_MESSAGES) or _logfire_error(self.attrs)
        if message is not None and kind is not None and message == f"{kind.rpartition('.')[2]}: ":
            message = None  # the SDK's status of an exception without a text
        return None if message is None and kind is None else Error(message or "", kind)

    def _preview(self) -> str:
        if self.operation is _CHAT:
            if not (text := self.outputs.preview) and (output := self.output) is not None:
                text = output.strip() if isinstance(output, str) else as_json(output)
            return text[:PREVIEW]
        if (given := self.input) is not None:
            return preview_of(given)
        return (self.inputs.prompt or "")[:PREVIEW] if self.operation in (_AGENT, _WORKFLOW) else ""

    def _finish_reasons(self) -> list[str]:
        """The reasons for which the model stopped."""
        reasons = next((value for name in _REASONS if (value := self.attrs.get(name)) is not None), None)
        if reasons is None and any(event.name == "gen_ai.choice" for event in self.events):
            reasons = [event.attrs.get("finish_reason") for event in self.events]
        reasons = decoded(reasons)
        return [reason for reason in (reasons if isinstance(reasons, list) else [reasons]) if isinstance(reason, str)]

    def _has_failed(self) -> bool:
        """Whether the model stopped because of an error, by its span or its last message."""
        reasons = self._finish_reasons()
        for name in () if reasons else MESSAGES_OUT:
            if name in self.attrs and _MAY_FAIL.search(bytes_of(self.attrs[name])):
                answers = sequence(decoded(content(self.attrs, name)))
                reasons += [reason for answer in answers if (reason := word(mapping(answer).get("finish_reason")))]
        return any(answer.lower() == _ERROR_REASON for answer in reasons)

    def _finish_reason(self) -> str:
        """The first unusual reason for which the model stopped."""
        return next((reason for reason in self._finish_reasons() if reason and reason.lower() not in _USUAL), "")[
            :PREVIEW
        ]


def _logfire_error(attrs: Attributes) -> str | None:
    """The error of openai-agents in Logfire: a message and data."""
    error = decoded(attrs.get("error"))
    message = word(error.get("message")) if isinstance(error, dict) else None
    if message is None:
        return None
    return f"{message}: {as_json(error['data'])}" if error.get("data") else message


def last_exception(events: Sequence[Event]) -> int | None:
    """Index of the last event that is an exception."""
    return next((i for i in reversed(range(len(events))) if events[i].name == EXCEPTION), None)


# ---- bodies

_HEADER_FIELDS: Final = {name for key in ("trace", "id", "parent", "name", "start", "end") for name in FIELD_NAMES[key]}
"""Fields that the header of a span shows."""


def body_of(file: File, span: Span) -> Body:
    """The body of a span; `raw` is the span as it is written. Raises `FormatError` if something else is there now."""
    at = span.at
    if not isinstance(at, RecordRef):
        raise changed()
    record, raw = _record_at(file, at)
    if not isinstance(record, dict) or at.check not in (crc32(raw), crc32(rendered(record))):
        raise changed(f"byte {at.offset}")
    return body_of_record(span, record, raw, events_at(file, at.logs))


def body_of_record(span: Span, record: dict[str, Any], raw: bytes, logged: Sequence[Event] = ()) -> Body:
    """The body of a span of that record; `logged`: events of it in exports of logs."""
    data = SpanData(loose_record((0, 0, 0), record, {}, {}, 0), logged)
    sides = data.inputs, data.outputs
    taken = {name for side in sides for name in side.taken}
    fields = {key: value for key, value in data.attrs.items() if key not in taken}
    input_value, output_value = (
        _value(fields, span.operation, side, names) for side, names in zip(sides, (INPUTS, OUTPUTS), strict=True)
    )
    for side in sides:
        for key, value in side.rest.items():
            add_field(fields, key, value)
    traceback = _add_events(record, data, fields)
    _add_others(record, span, fields)
    return Body(
        input=input_value,
        output=data.outputs.answer if output_value is None else output_value,
        input_messages=data.inputs.messages,
        output_messages=data.outputs.messages,
        attributes=fields,
        links=tuple(_link(link, record) for link in sequence(named(record, "links")) if isinstance(link, dict)),
        raw=raw,
        traceback=traceback,
    )


def _record_at(file: File, at: RecordRef) -> tuple[Any, bytes]:
    """The span at a place, decoded, and its bytes: the row of a store, else its part of the request."""
    spans = cached(file, (at.offset, at.size), lambda: _raw_spans(file.read(at.offset, at.size)))
    record = spans.get(at.path)
    if isinstance(record, bytes):
        return span_of(record) if crc32(record) == at.check else None, record
    raw = bytes(record) if isinstance(record, msgspec.Raw) else rendered(record)
    return parse(raw)[0] if isinstance(record, msgspec.Raw) else record, raw


def _raw_spans(data: bytes) -> dict[RecordPath, Any]:
    """The spans of a line or document, undecoded if possible; that of a row is the row, as bytes."""
    return {(0, 0, 0): data} if is_row(data) else span_values(data)


def _value(fields: dict[str, Any], operation: Operation, side: Messages, names: tuple[str, ...]) -> Any:
    """The input or output. A call of a model has messages; where it has them, the value stays among the attributes."""
    entry = None if operation is Operation.CHAT and side.messages else find_value(fields, names)
    if entry is None:
        return None
    del fields[entry[0]]
    return entry[1]


def _add_events(record: dict[str, Any], data: SpanData, fields: dict[str, Any]) -> str | None:
    """Add the events that are no messages to the fields; return the traceback of the last exception."""
    last, taken = last_exception(data.events), {*data.inputs.events, *data.outputs.events}
    traceback = None
    events: list[Any] = [event for event in sequence(named(record, "events")) if not isinstance(event, dict)]
    for index, event in enumerate(data.events):
        if index in taken:
            continue
        attrs = dict(event.attrs)
        if index == last and isinstance(attrs.get("exception.stacktrace"), str):
            traceback = attrs.pop("exception.stacktrace")
        when: dict[str, Any] = {} if event.time is None else {"time": event.time / 1e9}
        times = () if event.time is None else ("timeUnixNano", "time_unix_nano")
        events.append({"name": event.name, **when, **without(event.rest, *times), **attrs})
    if events:
        add_field(fields, "events", events)
    return traceback


def _add_others(record: dict[str, Any], span: Span, fields: dict[str, Any]) -> None:
    """Add all other fields of the record under their own names."""
    for key, value in record.items():
        if key == "name" and value == span.name:
            continue
        if key in _HEADER_FIELDS and key != "name" and isinstance(value, str | int) and not isinstance(value, bool):
            continue
        if key in ("attributes", "events") and (isinstance(value, list) or (key == "attributes" and value)):
            continue
        if key == "links" and isinstance(value, list):
            value = [
                without(link, "attributes") | attributes_of(link) if isinstance(link, dict) else link for link in value
            ]
        if value not in (None, [], {}):
            add_field(fields, key, value)


def _link(link: dict[str, Any], record: dict[str, Any]) -> Link:
    other, target = trace_id(link), span_id(link)
    return Link("linked span", span=target) if other == trace_id(record) else Link("linked trace", run=other)
