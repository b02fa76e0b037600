"""Events of a sample, and the spans that they are.

Each event is a span, but for those that begin and end a span, which are one together. A call of a tool is recorded
twice, as an event and as a span around what it does: that is one span here.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple, get_args

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.bodies import argument
from tracetui.formats.inspect_ai.log import error_type, items_of, joined, prompt_in, score_text, text_in
from tracetui.formats.scalars import between, integer, mapping, moment, sequence, word
from tracetui.formats.schema import (
    NULL,
    Field,
    Finite,
    Integer,
    Loose,
    Schema,
    Unknown,
    count,
    keys_of,
    loosen,
    plain,
    tag_of,
    tagged,
)
from tracetui.model import PREVIEW, Error, Operation, Problem, Span, Status, StatusSource, Usage, excerpt

# ---- records

_FIELDS: Final = (
    "action agent agent_span_id approver arguments cache call changes cmd completed config data decision edit error "
    "event events explanation failed file function id input input_ansi input_refs intermediate internal interrupted "
    "limit message message_id metadata model model_usage modified name options output parent_id pending result retries "
    "role role_usage sample score score_name scorer scorer_args source span_id state style target timestamp "
    "tokens_after tokens_before tool_choice tools traceback traceback_ansi truncated type uuid view "
    "working_start working_time"
)
"""Fields of events in logs of 0.3.41 to 0.3.285, and those that Inspect declares; kinds of events share one list."""


class Failure(msgspec.Struct, gc=False):
    """The error of a call: a type and a message."""

    type: str | None = None
    message: str | None = None


class TokenUsage(msgspec.Struct, gc=False):
    """Tokens as Inspect counts them."""

    input_tokens: Integer | None = None
    output_tokens: Integer | None = None
    total_tokens: Integer | None = None
    input_tokens_cache_read: Integer | None = None
    input_tokens_cache_write: Integer | None = None
    reasoning_tokens: Integer | None = None
    total_cost: Finite | None = None


class RequestedCall(msgspec.Struct, gc=False):
    """A call that the model asks for."""

    function: str | None = None


class Answer(msgspec.Struct, gc=False):
    """A message of the model."""

    content: Any = None
    tool_calls: list[RequestedCall] | None = None


class Choice(msgspec.Struct, gc=False):
    """One of several answers; most have one."""

    message: Answer | Loose = None
    stop_reason: str | None = None


class Output(msgspec.Struct, gc=False):
    """The response of a model call."""

    model: str | None = None
    choices: list[Choice] | None = None
    usage: TokenUsage | Loose = None
    error: Failure | Loose = None


class Change(msgspec.Struct, gc=False):
    """One change of the state, as in a JSON patch; its value stays in the body."""

    path: str | None = None


class Event(msgspec.Struct, tag_field="event", gc=False):
    """An event of any kind, with the used fields. The kinds share their fields."""

    other_fields: ClassVar[str | None] = _FIELDS
    id: str | None = None
    """Of a span, as are `parent_id` and `type`."""
    span_id: str | None = None
    parent_id: str | None = None
    timestamp: str | None = None
    completed: str | None = None
    working_time: Finite | None = None
    pending: bool | None = None
    name: str | None = None
    type: str | None = None
    action: str | None = None
    source: str | None = None
    function: str | None = None
    arguments: Any = None
    agent: str | None = None
    error: Failure | Loose = None
    failed: bool | None = None
    events: msgspec.Raw = NULL
    """Events of a call of a tool or a sub-task, in earlier logs."""
    model: str | None = None
    role: str | None = None
    output: Output | Loose = None
    cache: str | None = None
    """``read``: an answer from Inspect's own cache, which costs nothing."""
    retries: Integer | None = None
    input: Any = None
    sample: Any = None
    changes: list[Change] | None = None
    score: Any = None
    scorer: str | None = None
    intermediate: bool | None = None
    message: Any = None
    data: Any = None
    cmd: str | None = None
    file: str | None = None
    result: Any = None
    decision: str | None = None
    approver: str | None = None
    explanation: str | None = None
    tokens_before: Integer | None = None
    tokens_after: Integer | None = None


class Other(msgspec.Struct, gc=False):
    """An event of an unknown kind, or no event at all."""

    event: str | Loose = None
    span_id: str | None = None
    timestamp: str | None = None
    size: int | None = None
    """Bytes of the event; no field of it."""


def _kind(tag: str, others: str | None = _FIELDS) -> Any:
    return msgspec.defstruct(
        tag, [], bases=(Event,), namespace={"other_fields": others}, tag=tag, tag_field="event", gc=False
    )


_KINDS: Final[Any] = tagged(
    *map(
        _kind,
        (
            *("model", "tool", "subtask", "span_begin", "span_end", "step", "state", "store", "sample_init", "score"),
            *("error", "logger", "info", "input", "sandbox", "approval", "sample_limit", "compaction", "interrupt"),
            "score_edit",
        ),
    ),
    *(_kind(tag, None) for tag in ("branch", "anchor", "checkpoint")),
    other=Other,
)
"""All kinds; the last three don't count unknown fields."""


_EVENT: Final[Schema[Any]] = Schema(_KINDS, Other)
_NAMED: Final[Schema[Any]] = Schema(get_args(_KINDS)[0])
"""Events of the kinds that have a name here."""
_KNOWN: Final = frozenset(_FIELDS.split())
_EVENTS: Final[Field[list[Any]]] = Field(list.__class_getitem__(_KINDS))
_TABLE: Final[Field[dict[str, TokenUsage]]] = Field(dict[str, TokenUsage])


def decode_events(lists: Sequence[Any], unknown: Unknown) -> list[Any]:
    """All events of these lists, each as its Struct. Raises `FormatError`."""
    events: list[Any] = []
    for item in lists:
        if isinstance(item, msgspec.Raw):
            try:
                events += _EVENTS.strict(item)
                continue
            except (ValueError, RecursionError):
                pass
        events += [_decode_event(event, unknown) for event in items_of(item) or ()]
    return events


def _decode_event(item: Any, unknown: Unknown) -> Any:
    if not isinstance(item, msgspec.Raw):
        return _EVENT.convert(item, unknown)
    try:
        event = _NAMED.open(item)
        for name in keys_of(item) if event.other_fields else ():
            if name not in _KNOWN:
                count(unknown, f"{tag_of(event)}.{name}")
    except (ValueError, RecursionError):  # mistyped fields, or an unknown kind
        event = _EVENT.decode(bytes(item), unknown)[0] or Other()
        if isinstance(event, Other):
            event.size = len(memoryview(item))
    return event


# ---- spans

EXCLUSIVE: Final = (0, 3, 184)
"""The version of Inspect since which input never includes cached input."""
MAX_DEPTH: Final = 16
"""Events within events are shown to this depth."""
Version = tuple[int, ...] | None
Resolve = Callable[[str], str]
"""Resolves a reference to an attachment."""
Outcome = tuple[Status, StatusSource, Error | None]
_OK: Final = Status.OK
_ERROR: Final = Status.ERROR
_RUNNING: Final = Status.RUNNING
_EXPLICIT: Final = StatusSource.EXPLICIT
_DERIVED: Final = StatusSource.DERIVED
_CHAT: Final = Operation.CHAT
_META: Final = Operation.META
_OTHER: Final = Operation.OTHER
_WORK: Final = {
    "agent": Operation.INVOKE_AGENT,
    "handoff": Operation.INVOKE_AGENT,
    "tool": Operation.EXECUTE_TOOL,
    **dict.fromkeys(("init", "solvers", "solver", "scorers", "scorer", "subtask", "fork"), Operation.INVOKE_WORKFLOW),
}
"""Operations by the type of a span."""
_FINE: Final[Outcome] = (_OK, _DERIVED, None)
_CALLS: Final = ("tool", "subtask")
_CUT: Final = ("max_tokens", "model_length", "content_filter", "unknown")
"""Stop reasons worth a note."""


class EventRef(msgspec.Struct, frozen=True, gc=False):
    """The events of its sample that a span is made of. Each has a path: its index, and its index in that event …"""

    check: int
    """Checksum of the sample."""
    event: tuple[int, ...] | None
    """None where only a span is recorded, or (with neither beginning nor end) only the failure of an attempt."""
    begin: tuple[int, ...] | None = None
    end: tuple[int, ...] | None = None
    size: int | None = None
    """Bytes of an event of an unknown kind."""


class Slot(NamedTuple):
    """Where a span belongs, and when it started."""

    id: str
    parent_id: str | None
    started_at: float | None
    at: EventRef


class SpanWriter:
    """Makes the spans of one sample."""

    def __init__(self, check: int, resolve: Resolve, version: Version, path: str) -> None:
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self.calls = 0
        """Calls of the model, which are the steps of a sample."""
        self.events: list[Any] = []
        """The events of the sample itself, decoded; not those within events."""
        self.unknown: Unknown = {}
        self.check, self.resolve, self.version, self._path = check, resolve, version, path

    def write(self, lists: Sequence[Any], parent: str | None = None, path: tuple[int, ...] = ()) -> None:
        """Add the spans of all events in `lists`, below span `parent`; `path` is that of the event they are in."""
        events = decode_events(lists, self.unknown)
        if not path:
            self.events = events
        EventTree(self, events, parent, path).write()

    def add(self, event: Any, slot: Slot) -> None:
        """Add the span of one event, and of those within it: earlier logs have those of a call there."""
        tag = tag_of(event)
        if tag == "model":
            self.calls += 1
            self.spans.append(_model(event, slot, self.resolve, self.version, self.calls))
        elif tag in _CALLS:
            self.spans.append(_call(event, slot, self.resolve))
            if len(memoryview(event.events)) > 4:
                self._add_inner(event.events, slot)
        else:
            self.spans.append((_other if tag else _unknown)(event, slot, self.resolve))

    def add_failure(self, error: Error | None) -> None:
        """Add a span for the end of an attempt without an event."""
        at = EventRef(self.check, None)
        self.spans.append(Span(id="error", name="error", status=_ERROR, status_source=_EXPLICIT, error=error, at=at))

    def _add_inner(self, events: msgspec.Raw, slot: Slot) -> None:
        path = slot.at.event or ()
        try:
            items = items_of(events)
        except FormatError:
            return
        if not items:
            return
        if len(path) >= MAX_DEPTH:
            where = "events" + "".join(f"[{index}]" for index in path)
            self.problems.append(Problem(self._path, where, "more deeply nested events are not shown"))
            return
        self.write([events], slot.id, path)


class EventTree:
    """Finds the parents of the events of one list, and which of them are one span together.

    Everything goes by the index of an event in the list. Spans come in the order in which they begin.
    """

    def __init__(self, writer: SpanWriter, events: list[Any], parent: str | None, path: tuple[int, ...]) -> None:
        self._writer, self._events, self._parent, self._path = writer, events, parent, path
        self._tags = [tag_of(event) for event in events]
        self._prefix = "".join(f"{index + 1}." for index in path)
        self._begins: dict[str, int] = {}
        """By Inspect's id of a span: the event that begins it."""
        self._ends: dict[int, int] = {}
        """By the event that begins a span: the one that ends it."""
        self._calls: dict[int, int] = {}
        """By the event that begins the span of a call: the event of that call."""
        self._steps: dict[int, str] = {}
        """By event: the step that it is in."""

    def write(self) -> None:
        """Add the spans of all events."""
        self._find_ends()
        self._find_calls()
        begin_of = {call: begin for begin, call in self._calls.items()}
        ends = set(self._ends.values())
        written: set[int] = set()
        for index, event in enumerate(self._events):
            begin = begin_of.get(index, index)
            if index in ends or begin < index or begin in written:
                continue
            call = self._calls.get(begin)
            if call is not None:
                written.update((begin, call))
                at = self._ref(call, begin, self._ends.get(begin))
                self._writer.add(self._events[call], self._slot(begin, self._events[call], at))
            elif index not in written and not self._write_span(index, event):
                self._writer.add(event, self._slot(index, event, EventRef(self._writer.check, (*self._path, index))))

    def _find_ends(self) -> None:
        open_steps: list[int] = []
        for index, (tag, event) in enumerate(zip(self._tags, self._events, strict=True)):
            if open_steps:
                self._steps[index] = self._id(open_steps[-1])
            if tag == "span_begin":
                if event.id is not None:
                    self._begins.setdefault(event.id, index)
            elif tag == "span_end":
                if event.id in self._begins:
                    self._ends.setdefault(self._begins[event.id], index)
            elif tag == "step" and event.action == "begin":
                open_steps.append(index)
            elif tag == "step" and event.action == "end" and open_steps:
                self._ends[open_steps.pop()] = index

    def _find_calls(self) -> None:
        """Find the event of the call that a span is: mostly the next one, else one of the same span and name."""
        events, waiting = self._events, defaultdict[tuple[str | None, str], deque[int]](deque)
        apart: list[int] = []
        for index, tag in enumerate(self._tags):
            event = events[index]
            if tag == "span_begin" and event.type == "tool":
                after = events[index + 1] if index + 1 < len(events) else None
                if after is not None and tag_of(after) == "tool" and after.function == event.name:
                    self._calls[index] = index + 1
                elif event.name is not None:
                    waiting[event.parent_id, event.name].append(index)
            elif tag == "tool" and index - 1 not in self._calls:
                apart.append(index)
        for index in apart:
            queue = waiting.get((events[index].span_id, events[index].function))
            if queue:
                self._calls[queue.popleft()] = index

    def _write_span(self, begin: int, event: Any) -> bool:
        """Add the span that an event begins; False if it begins none."""
        tag = self._tags[begin]
        if not (tag == "span_begin" or (tag == "step" and event.action == "begin")):
            return False
        end = self._ends.get(begin)
        slot = self._slot(begin, event, self._ref(None, begin, end))
        operation = _WORK.get(event.type, _OTHER)
        label = event.type if event.type and event.type != event.name and operation is _OTHER else ""
        self._writer.spans.append(
            Span(
                id=slot.id,
                name=(event.name or event.type or "span")[:PREVIEW],
                operation=operation,
                parent_id=slot.parent_id,
                status=Status.UNKNOWN if end is None else _OK,
                status_source=_DERIVED,
                started_at=slot.started_at,
                duration_ms=None if end is None else between(slot.started_at, moment(self._events[end].timestamp)),
                note=label[:PREVIEW],
                at=slot.at,
            )
        )
        return True

    def _slot(self, index: int, event: Any, at: EventRef) -> Slot:
        """The slot of the span that begins with the event `index`: in the span that this names, else in its step."""
        first = self._events[index]
        named = self._begins.get((first.parent_id if self._tags[index] == "span_begin" else first.span_id) or "")
        parent = self._steps.get(index, self._parent) if named is None or named == index else self._id(named)
        return Slot(self._id(index), parent, moment(event.timestamp), at)

    def _ref(self, call: int | None, begin: int, end: int | None) -> EventRef:
        path = self._path
        return EventRef(
            self._writer.check,
            None if call is None else (*path, call),
            (*path, begin),
            None if end is None else (*path, end),
        )

    def _id(self, index: int) -> str:
        return f"{self._prefix}{index + 1}"


# ---- the span of one event


def _span(
    event: Event,
    slot: Slot,
    *,
    name: str | None = None,
    operation: Operation = _META,
    outcome: Outcome = _FINE,
    preview: str = "",
    note: str | None = "",
    duration_ms: float | None = None,
    **facts: Any,
) -> Span:
    status, source, error = outcome
    if duration_ms is None and event.completed is not None:
        duration_ms = between(slot.started_at, moment(event.completed))
    return Span(
        id=slot.id,
        name=(name or tag_of(event))[:PREVIEW],
        operation=operation,
        parent_id=slot.parent_id,
        status=_RUNNING if event.pending else status,
        status_source=source,
        started_at=slot.started_at,
        duration_ms=duration_ms,
        error=error,
        preview=preview.strip()[:PREVIEW],
        note=(note or "")[:PREVIEW],
        at=slot.at,
        **facts,
    )


def _model(event: Event, slot: Slot, resolve: Resolve, version: Version, step: int) -> Span:
    """A call of the model."""
    output = event.output if isinstance(event.output, Output) else _NO_OUTPUT
    choice = output.choices[0] if output.choices else _NO_CHOICE
    stop, failure = choice.stop_reason or None, event.error if event.error is not None else output.error
    cached, retries, name, usage = event.cache == "read", event.retries, word(event.model or output.model), output.usage
    notes = (
        "cached" if cached else "",
        stop if stop in _CUT else "",
        f"{retries} {'retry' if retries == 1 else 'retries'}" if retries else "",
        event.role or "",
    )
    return _span(
        event,
        slot,
        name=name or "model",
        operation=_CHAT,
        step=step,
        is_step=True,
        outcome=_FINE if failure is None else _failure(failure, resolve),
        status_word=stop[:PREVIEW] if stop else None,
        duration_ms=_duration(event, slot),
        usage=None if cached or not isinstance(usage, TokenUsage) else convert_usage(usage, version),
        model=name[:PREVIEW] if name else None,
        preview=_answer_text(choice.message, resolve) if isinstance(choice.message, Answer) else "",
        note=joined(notes) if any(notes) else "",
    )


_NO_OUTPUT: Final = Output()
_NO_CHOICE: Final = Choice()


def _answer_text(message: Answer, resolve: Resolve) -> str:
    """The text of the model, else the calls that it asks for."""
    content = message.content
    if isinstance(content, str):
        text = resolve(content)
    else:
        parts = (part for part in sequence(content) if mapping(part).get("type") == "text")
        text = text_in([{**part, "text": resolve(part["text"])} for part in parts if isinstance(part.get("text"), str)])
    if text and (text := text.strip()):
        return text[:PREVIEW]
    return joined((f"{call.function}()" for call in message.tool_calls or () if call.function), " ")


def _call(event: Event, slot: Slot, resolve: Resolve) -> Span:
    """A call of a tool, or a sub-task of earlier logs."""
    is_tool = tag_of(event) == "tool"
    outcome = _FINE if event.error is None else _failure(event.error, resolve)
    if event.failed and outcome[2] is None and is_tool:
        outcome = _ERROR, _EXPLICIT, None
    return _span(
        event,
        slot,
        name=event.function or "tool" if is_tool else event.name or "subtask",
        operation=Operation.EXECUTE_TOOL if is_tool else Operation.INVOKE_WORKFLOW,
        outcome=outcome,
        duration_ms=_duration(event, slot),
        preview=_arguments(event.arguments if is_tool else event.input, resolve),
        note=f"→ {event.agent}" if event.agent and is_tool else "",
    )


def _arguments(given: Any, resolve: Resolve) -> str:
    """The argument that distinguishes this call from the next: the most telling one, or the only one."""
    if isinstance(given, dict):
        if len(given) == 1 and isinstance(value := next(iter(given.values())), str):
            return resolve(value)[:PREVIEW].strip()
        given = {key: resolve(value) if isinstance(value, str) else value for key, value in given.items()}
    return argument(resolve(given) if isinstance(given, str) else given).strip()[:PREVIEW]


def _duration(event: Event, slot: Slot) -> float | None:
    """Milliseconds from the beginning to the end, else the time worked on it."""
    elapsed = between(slot.started_at, moment(event.completed)) if event.completed is not None else None
    worked = event.working_time
    return elapsed if elapsed is not None or worked is None else max(0.0, worked * 1000)


def _failure(error: Any, resolve: Resolve) -> Outcome:
    """The outcome of an error: a text, or a type and a message."""
    if error in ("", [], False) or error == _NO_FAILURE:
        return _FINE
    message = error if isinstance(error, str) else error.message if isinstance(error, Failure) else None
    message = resolve(message) if message is not None else ""
    kind = (error.type if isinstance(error, Failure) else None) or error_type(message)
    return _ERROR, _EXPLICIT, Error(excerpt(message), kind[:PREVIEW] if kind else None)


_NO_FAILURE: Final = Failure()


def limit_outcome(kind: str | None, message: str) -> Outcome:
    """The outcome of a sample that a limit cut off: by the operator's hand, or by a policy."""
    if kind == "operator":
        return Status.CANCELLED, _EXPLICIT, None
    return _ERROR, StatusSource.POLICY, Error(excerpt(message), f"{kind or 'unknown'} limit"[:PREVIEW])


def convert_usage(used: TokenUsage, version: Version) -> Usage | None:
    """The tokens of one call or a whole sample, as `version` of Inspect counts.

    `Usage` counts cached input in, Inspect does not; before `EXCLUSIVE` it did for some providers: those whose total is
    then input and output alone.
    """
    prompt, read, written = used.input_tokens, used.input_tokens_cache_read, used.input_tokens_cache_write
    if prompt is not None and (read or written):
        old = version is not None and version < EXCLUSIVE and used.total_tokens == prompt + (used.output_tokens or 0)
        prompt += 0 if old else (read or 0) + (written or 0)
    completion, total = used.output_tokens, used.total_tokens
    return Usage(prompt, completion, total, read, written, used.reasoning_tokens, used.total_cost) or None


def sum_usage(table: Any, version: Version) -> Usage | None:
    """The tokens of all models together, of a table by model, decoded or not."""
    try:
        used = list(_TABLE.strict(table).values()) if isinstance(table, msgspec.Raw) else []
    except (ValueError, RecursionError):
        table, used = plain(table), []
    used = used or [loosen(model_usage, TokenUsage, {}) for model_usage in mapping(table).values()]
    usages = [usage for model_usage in used if (usage := convert_usage(model_usage, version))]
    return sum(usages[1:], usages[0]) if usages else None


def _unknown(event: Other, slot: Slot, resolve: Resolve) -> Span:
    name = word(event.event) or "?"
    return Span(
        id=slot.id,
        name=name[:PREVIEW],
        operation=Operation.UNKNOWN,
        parent_id=slot.parent_id,
        status=_OK,
        status_source=_DERIVED,
        started_at=slot.started_at,
        at=EventRef(slot.at.check, slot.at.event, slot.at.begin, slot.at.end, event.size),
    )


def _other(event: Event, slot: Slot, resolve: Resolve) -> Span:
    """Any event of a kind in the schema that is no call."""
    return _span(event, slot, **_facts(event, resolve))


def _facts(event: Event, resolve: Resolve) -> dict[str, Any]:
    """The fields of the span of such an event."""

    def text(value: Any) -> str:
        return resolve(value) if isinstance(value, str) else ""

    match tag_of(event):
        case "sample_init":
            given = mapping(event.sample).get("input")
            prompt = prompt_in(resolve(given) if isinstance(given, str) else given)
            return {"operation": Operation.MESSAGE, "preview": resolve(prompt)}
        case "state" | "store":
            paths = [change.path for change in event.changes or () if change.path is not None]
            preview = joined((path[:PREVIEW] for path in paths[:8]), " ")
            return {"preview": preview, "note": f"{len(paths)}" if len(paths) > 1 else ""}
        case "score":
            value, name = (
                score_text(mapping(event.score).get("value")),
                f"score {event.scorer}" if event.scorer else None,
            )
            note = "intermediate" if event.intermediate else ""
            return {"operation": _OTHER, "name": name, "preview": value, "note": note}
        case "error":
            return {"operation": _OTHER, "outcome": _FINE if event.error is None else _failure(event.error, resolve)}
        case "logger":
            record = mapping(event.message)
            return {"preview": text(record.get("message")), "note": word(record.get("level"))}
        case "info":
            preview = resolve(event.data) if isinstance(event.data, str) else argument(event.data)
            return {"preview": preview, "note": event.source}
        case "input":
            return {"operation": Operation.MESSAGE, "preview": text(event.input)}
        case "sandbox":  # a command, or a file that is read or written
            code = integer(event.result)
            outcome = _FINE
            if code is not None:
                outcome = _ERROR if code else _OK, StatusSource.EXIT, Error("", f"exit {code}") if code else None
            preview = resolve(event.cmd or event.file or "")
            facts = {"operation": _OTHER, "name": event.action, "outcome": outcome}
            return {**facts, "preview": preview, "note": "sandbox"}
        case "approval":
            decision, reason = event.decision, text(event.explanation or event.message)
            outcome = _OK, _EXPLICIT, None
            if decision in ("reject", "terminate"):
                outcome = _ERROR, StatusSource.POLICY, Error(excerpt(reason), f"approval: {decision}")
            facts = {"operation": Operation.POLICY, "outcome": outcome, "preview": reason, "note": event.approver}
            return {**facts, "status_word": decision[:PREVIEW] if decision else None}
        case "sample_limit":
            message, kind = text(event.message), event.type or None
            facts = {"operation": Operation.POLICY, "name": f"{kind or 'sample'} limit", "preview": message}
            return {**facts, "outcome": limit_outcome(kind, message)}
        case "compaction":
            before, after = event.tokens_before, event.tokens_after
            counts = f"{before} → {after} tokens" if before is not None and after is not None else ""
            return {"preview": counts, "note": event.type}
        case "interrupt":  # a person stopped the agent
            return {"operation": _OTHER, "outcome": (Status.CANCELLED, _EXPLICIT, None), "note": event.source}
    return {"preview": event.name or event.source or ""}
