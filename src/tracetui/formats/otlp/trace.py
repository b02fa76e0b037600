"""One trace while its spans come in, in any order: what is known of it as a whole."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final
from zlib import crc32

import msgspec
import orjson

from tracetui.formats.counting import Irregular
from tracetui.formats.labels import task_key
from tracetui.formats.layers import Layers
from tracetui.formats.lines import Line
from tracetui.formats.otlp import messages
from tracetui.formats.otlp.documents import Part
from tracetui.formats.otlp.lean import Lean
from tracetui.formats.otlp.logs import event_of, whose
from tracetui.formats.otlp.messages import Event, Side
from tracetui.formats.otlp.records import (
    FIELDS,
    LISTS,
    OTHERS,
    REQUEST,
    At,
    Told,
    about_resource,
    about_scope,
    logs_in,
    told_in,
    trace_id,
    without,
)
from tracetui.formats.otlp.spans import Read, span_of
from tracetui.formats.otlp.words import AGENTS, WORKFLOWS, first, given_to, made_by, tags_of
from tracetui.formats.scalars import version, word
from tracetui.model import PREVIEW, FirstError, Operation, Problem, Span, Status, StatusSource, Usage
from tracetui.model.tally import CONTAINERS

MOST: Final = 256
"""So many different resources, scopes and errors of a trace are kept."""
_WRAPPERS: Final = frozenset({Operation.INVOKE_WORKFLOW, Operation.NODE, Operation.OTHER})
"""What may stand between a call of a model and another one that it wraps; a tool or an agent calls for itself."""
_NO_WORK: Final = frozenset({Operation.POLICY, Operation.META})
"""Spans that check or note something: that one of them succeeds does not make up for a failure before it."""
_OUTER: Final = CONTAINERS | {Operation.NODE, Operation.OTHER}
"""Spans whose failure, or success, may be that of the span around them; a tool's is an answer to the model."""


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
    """A trace as `formats.tail` reads it: a `Session` that takes what is of the trace `key`, and nothing else."""

    path: str
    key: str
    lean: bool = False
    """Only what a summary shows is wanted: no previews, nothing of the body."""
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
    chats: Layers[Span] = msgspec.field(default_factory=Layers)
    """Calls of models, as they are if they only wrap others."""
    callers: Layers[bool] = msgspec.field(default_factory=Layers)
    """Spans below which a model is called, with nothing between but what wraps."""
    above: Layers[str | None] = msgspec.field(default_factory=Layers)
    """What is above the calls of models, and above what wraps them."""
    counted: bool = False
    """A call of a model says what it used."""
    stated: dict[str, Usage] = {}
    """What agents and workflows say that they used: it counts where no call does."""
    parents: Layers[str | None] = msgspec.field(default_factory=Layers)
    """What is above each span, as long as no call says what it used."""
    last: Layers[tuple[int, int, Span]] = msgspec.field(default_factory=Layers)
    """The child that ended last of each span, after its end and start."""
    answered: Layers[bool] = msgspec.field(default_factory=Layers)
    """Spans that have an output and did not fail."""
    seen: Layers[int] = msgspec.field(default_factory=Layers)
    """Checksum of each span."""
    known: Layers[Span] = msgspec.field(default_factory=Layers)
    """The spans as they came, to show with them what logs tell of them; none where nothing is to be shown."""
    early: dict[str, tuple[tuple[Event, At], ...]] = {}
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

    @property
    def ended(self) -> bool:
        """Never for good: spans may come after the one at the top."""
        return False

    def copy(self) -> Trace:
        """A trace that goes on from here without changing this one; nothing is left to collect in it."""
        return msgspec.structs.replace(
            self,
            failures=dict(self.failures),
            chats=self.chats.copy(),
            callers=self.callers.copy(),
            above=self.above.copy(),
            stated=dict(self.stated),
            parents=self.parents.copy(),
            last=self.last.copy(),
            answered=self.answered.copy(),
            seen=self.seen.copy(),
            known=self.known.copy(),
            early=dict(self.early),
            around=dict(self.around),
            latest={},
            strange=dict(self.strange),
            spans={},
            problems=[],
        )

    def problem(self, line: int, reason: str) -> None:
        """Nothing: a line that cannot be read is told of the file, since nobody knows which traces it is of."""

    def take(self, record: Any, line: Line, note: str | None = None) -> None:
        """Take in all spans of this trace on a line."""
        check = None
        for place, log in logs_in(record):
            if (of := whose(log)) is not None and of[0] == self.key:
                check = crc32(line.data) if check is None else check
                self.take_log(of[1], log, At(line.offset, len(line.data), check, *place))
        for told in told_in(record):
            if trace_id(told.span) == self.key:
                check = crc32(line.data) if check is None else check
                self.take_span(told, At(line.offset, len(line.data), check, *told.place), line.number, record)

    def take_part(self, part: Part) -> None:
        """Take in what a document tells of this trace."""
        line = part.line
        for place, span, log in part.logs:
            self.take_log(span, log, At(line.offset, len(line.data), part.check, *place))
        for told in part.spans:
            at = At(line.offset, len(line.data), part.check, *told.place)
            self.take_span(told, at, line.number, part.request)

    def take_span(self, told: Told, at: At, number: int, request: Any) -> None:
        """Take in one span; `number` is that of its line."""
        FIELDS.count(self.strange, "span", told.span)
        read = Read(told.span)
        span = span_of(read, told, at, number, lean=self.lean)
        if self._is_other(span, crc32(_bytes(told.span))):
            reason = f"span {span.id[:PREVIEW]} is told again in other words: the last ones are shown"
            self.problems.append(Problem(self.path, f"line {number}", reason))
        self._take(read, span, told, request)

    def take_lean(self, lean: Lean, at: At, number: int) -> None:
        """Take in one span of which only what counts was decoded. Raises `Irregular` where that does not do."""
        read = Read(lean.told.span, lean.kept)
        span = span_of(read, lean.told, at, number, lean=True)
        if self._is_other(span, lean.check):
            raise Irregular
        self._take(read, span, lean.told, None)

    def _take(self, read: Read, span: Span, told: Told, request: Any) -> None:
        self._learn(read, span)
        self._surround(read, told, request)
        if not self.lean:
            before = self.known.get(span.id)
            if before is not None and before.at.logs:  # it is told again: what logs told of it holds
                span = msgspec.structs.replace(span, at=msgspec.structs.replace(span.at, logs=before.at.logs))
            self.known[span.id] = span
        self._put(span, read.name[:PREVIEW] or span.name)
        for event, place in self.early.pop(span.id, ()):
            self._attach(self.known.get(span.id) or span, event, place)

    def take_log(self, span: str, record: dict[str, Any], at: At) -> None:
        """Take in an event of a span, told in a log."""
        told = event_of(record), at
        known = self.spans.get(span) if self.lean else self.known.get(span)
        if known is None:
            self.early[span] = (*self.early.get(span, ()), told)
        else:
            self._attach(known, *told)

    # ---- spans

    def _attach(self, span: Span, event: Event, at: At) -> None:
        """Show an event with its span, and learn from it what the span itself does not say."""
        given, made = messages.given({}, [event]), messages.made({}, [event])
        self._overhear(span, given, made)
        if self.lean:
            return
        said = messages.said(made)[:PREVIEW] if span.operation is Operation.CHAT else ""
        fields = {"at": msgspec.structs.replace(span.at, logs=(*span.at.logs, at)), "preview": said or span.preview}
        self.known[span.id] = shown = msgspec.structs.replace(span, **fields)
        if (outer := self.chats.get(span.id)) is not None:
            self.chats[span.id] = outer = msgspec.structs.replace(outer, **fields)
        self.spans[span.id] = outer if outer is not None and self.callers.get(span.id) else shown

    def _overhear(self, span: Span, given: Side, made: Side) -> None:
        start = None if span.started_at is None else round(span.started_at * 1e9)
        asked = messages.prompt_of(given)
        if asked is not None and (self.prompt.may_be(start) or start == self.prompt.at):
            self.prompt = Earliest(asked, inf if start is None else start)  # of several it is the latest question
        if self.lean:
            return
        self.system = self.system.or_this(start, messages.system_of(given))
        if span.operation is Operation.CHAT and start is not None:
            self.answer = self.answer.or_this(-round(start + (span.duration_ms or 0) * 1e6), made.text)

    def _is_other(self, span: Span, check: int) -> bool:
        """Whether there was another span of that id before; exporters that try again write the same one twice."""
        before = self.seen.get(span.id)
        self.seen[span.id] = check
        return before is not None and before != check

    def _put(self, span: Span, name: str) -> None:
        """Hand out a span. A call of a model that only wraps another one contains it, and counts nothing itself."""
        called = span.operation is Operation.CHAT
        if called:
            wrapping = msgspec.structs.replace(
                span, name=name, operation=Operation.INVOKE_WORKFLOW, is_step=False, model=None
            )
            self.chats[span.id] = wrapping
            self.spans[span.id] = wrapping if self.callers.get(span.id) else span
        else:
            self.spans[span.id] = span
        if called or span.operation in _WRAPPERS:
            self.above[span.id] = span.parent_id
            if (called and span.usage is not None) or self.callers.get(span.id):
                self._call(span.parent_id if span.parent_id != span.id else None)

    def _call(self, above: str | None) -> None:
        """Tell all spans around a call of a model that they are."""
        while above is not None and not self.callers.get(above):
            self.callers[above] = True
            outer = self.chats.get(above)
            if outer is not None:
                self.spans[above] = outer
            above = self.above.get(above)

    # ---- the whole

    def _learn(self, read: Read, span: Span) -> None:
        kept, start = read.kept, read.start
        if self.agent.may_be(start):
            self.agent = self.agent.or_this(start, first(kept, AGENTS))
        if self.workflow.may_be(start):
            self.workflow = self.workflow.or_this(start, first(kept, WORKFLOWS))
        self.model = self.model.or_this(start, span.model)
        self._hear(read)
        self._use(span)
        self._finish(read, span)
        if span.parent_id is None:
            self._forget(span.id)
            self.final = self.final.or_this(None if read.end is None else -read.end, span)
            if self.root.may_be(start):
                self._begin(read, span)
        if span.status is Status.ERROR:
            self._fail(span, read.end)

    def _finish(self, read: Read, span: Span) -> None:
        """Note how a span ended, for `failed`."""
        if span.operation in _OUTER and span.status is not Status.ERROR and messages.has_output(read.kept):
            self.answered[span.id] = True
        if span.parent_id is None or read.end is None or span.operation in _NO_WORK:
            return
        before, when = self.last.get(span.parent_id), (read.end, read.start or 0)
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
        if span is None or (span.status_source is StatusSource.EXPLICIT and span.operation not in CONTAINERS):
            return None
        seen: set[str] = set()
        while span is not None and span.id not in seen and span.operation in _OUTER and not self.answered.get(span.id):
            if span.status is Status.ERROR and span.operation in CONTAINERS:
                return span if seen else None
            seen.add(span.id)
            last = self.last.get(span.id)
            span = last[2] if last is not None else None
        return None

    def _forget(self, told_again: str) -> None:
        """Of a span at the top only the latest version counts."""
        self.root = _NOTHING if self.root.value is not None and self.root.value.id == told_again else self.root
        self.final = _NOTHING if self.final.value is not None and self.final.value.id == told_again else self.final

    def _begin(self, read: Read, span: Span) -> None:
        """Take it for the span at the top."""
        self.root = self.root.or_this(read.start, span)
        self.tags = tags_of(read.kept)
        given = given_to(read.kept)
        asked = messages.question_of(read.given) if given is None else given[1]
        self.task = None if asked is None else task_key(span.name, _bytes(asked))
        self.root_body = (None, None) if self.lean else (_asked(read), _answered(read))

    def _use(self, span: Span) -> None:
        """What was used, as those say that contain calls of models: these may not say it themselves."""
        if self.counted:
            return
        if span.operation is Operation.CHAT and span.usage is not None:
            self.counted, self.stated, self.parents = True, {}, Layers()
            return
        self.parents[span.id] = span.parent_id
        if span.operation in CONTAINERS and span.usage is not None:
            self.stated[span.id] = span.usage

    def _hear(self, read: Read) -> None:
        """The prompt, the instructions and the last answer."""
        if self.prompt.may_be(read.start):
            prompt = messages.prompt_of(read.given)
            if prompt is None and read.operation in CONTAINERS:
                prompt = _plain(given_to(read.kept))
            self.prompt = self.prompt.or_this(read.start, prompt)
        if self.lean:
            return
        if self.system.may_be(read.start) and messages.may_instruct(read.kept, read.events):
            self.system = self.system.or_this(read.start, messages.system_of(read.given))
        if read.operation is Operation.CHAT and read.end is not None and self.answer.may_be(-read.end):
            self.answer = self.answer.or_this(-read.end, read.made.text)

    def _fail(self, span: Span, end: int | None) -> None:
        error = span.error
        key = "" if error is None else error.words[:PREVIEW]
        if key in self.failures or len(self.failures) < MOST:
            found = FirstError(
                error.message if error else "", error.type if error else None, span.id, span.name, span.operation
            )
            self.failures[key] = self.failures.get(key, _NOTHING).or_this(end, found)

    def _surround(self, read: Read, told: Told, request: Any) -> None:
        """What stands around it: the program that it ran in, the library that made it."""
        resource = self._once_around("resource", told.resource, about_resource)
        self.sdk = version(resource.get("telemetry.sdk.version")) or self.sdk
        if self.service.may_be(read.start):
            service = word(resource.get("service.name"))
            if service is not None and not service.startswith("unknown_service"):
                self.service = self.service.or_this(read.start, service)
        scope = self._once_around("scope", told.scope, about_scope)
        if self.source.may_be(read.start):
            self.source = self.source.or_this(read.start, word(scope.get("name")))
        if isinstance(request, dict) and len(request) > 1:
            self._once_around("request", without(request, *REQUEST, *OTHERS), dict)

    def _once_around(
        self, kind: str, record: dict[str, Any], about: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Fields that many spans have in common, kept once."""
        latest = self.latest.get(kind)
        if latest is not None and latest[0] is record:
            return latest[1]
        key = kind.encode() + _bytes(without(record, *LISTS))
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


def _asked(read: Read) -> Any:
    """What went into a span, by its values or its messages."""
    asked = given_to(read.kept)
    return asked[1] if asked else messages.prompt_of(read.given)


def _answered(read: Read) -> Any:
    """What came of it."""
    answered = made_by(read.kept)
    return answered[1] if answered else read.made.answer if read.made.partial else read.made.text


def _plain(found: tuple[str, Any] | None) -> str | None:
    """What went into a span, if it is no more than a text."""
    return (found[1].strip() or None) if found is not None and isinstance(found[1], str) else None


def _bytes(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, depth, integers over 64 bits
        try:
            return repr(value).encode("utf-8", "replace")
        except RecursionError:
            return b"too deep"
