"""A trace as a run: its header, its body, and its spans (turns, messages, calls, agents) in the order of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.formats.bodies import Named, changed, rendered
from tracetui.formats.decode import decode_value
from tracetui.formats.latticeflow.files import Document, Origin
from tracetui.formats.latticeflow.records import (
    CUSTOM_TASK,
    EVENTS,
    ITEM_KINDS,
    ITEMS,
    LAST,
    ROLE_UNKNOWN,
    Event,
    EventEntry,
    Item,
    ItemEntry,
    Order,
    Piece,
    Records,
    TokenUsage,
    as_text,
    content_of,
    elements,
    ident,
    is_missing,
    milliseconds,
    record,
    roles,
)
from tracetui.formats.scalars import (
    between,
    boolean,
    integer,
    mapping,
    moment,
    natural,
    score_value,
    sequence,
    source_in,
    string,
    tags_in,
    without,
    word,
    zoned,
)
from tracetui.formats.schema import NULL, plain, unknown_fields
from tracetui.model import (
    PREVIEW,
    Blob,
    Body,
    Error,
    FirstError,
    Header,
    Link,
    Message,
    Operation,
    Part,
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
from tracetui.model.build import CONTAINERS
from tracetui.sources.base import File


class Outcome(NamedTuple):
    """How a record ended: status, the trace's own word for it, where it comes from, and the error."""

    status: Status
    word: str | None = None
    source: StatusSource | None = None
    error: Error | None = None


OK: Final = Outcome(Status.OK, None, StatusSource.DERIVED)
NO_OUTCOME: Final = Outcome(Status.UNKNOWN)
_SPAN_TYPES: Final = {"agent": Operation.INVOKE_AGENT, "function_call": Operation.EXECUTE_TOOL}


class SpanRef(msgspec.Struct, frozen=True, gc=False):
    """Sources of a span's body: its own record, related ones, and its links."""

    origin: Origin
    piece: Piece
    is_event: bool
    role: str = ""
    more: tuple[tuple[str, Piece], ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its own record; 0 in a document that strict JSON refuses."""
        return memoryview(self.piece).nbytes if isinstance(self.piece, msgspec.Raw) else 0


class Spans:
    """The spans of a trace, and facts about the run."""

    def __init__(self, document: Document, records: Records, *, moving: bool, ended: bool) -> None:
        """`ended`: the trace records its end; `moving`: its file changed just now."""
        self.spans: list[Span] = []
        self.is_open = False
        """Some span never ended."""
        self.asks = False
        """The last model call asked for tool calls."""
        self._records, self._origin, self._note = records, document.origin, document.trace.note
        self._open_status = Status.RUNNING if moving and not ended else Status.UNKNOWN
        self._outcomes: dict[str, Outcome] = {}
        root = records.begins.get(records.scope or "")
        self._root = None if root is None else root.id
        self._turn: str | None = None
        self._turns = 0
        self._containers: set[str] = set()
        self._unended: set[str] = set()
        self._missing: set[str] = set()
        self._outputs = records.outputs_of_calls()
        self._handed = records.hand_offs()
        self._wrapped = {event.span for event in records.events if event.kind == "function_call_event"}
        records.link(self._handed)
        self._take_all()
        self._close_containers()

    def _take_all(self) -> None:
        """Make a span of every record, in order."""
        ordered: list[tuple[Order, EventEntry | ItemEntry]] = [
            (self._order(event), event) for event in self._records.events
        ]
        ordered += [(item.order, item) for item in self._records.items if item.order is not None]
        ordered.sort(key=lambda pair: pair[0])
        paired = {id(item) for outputs in self._outputs.values() for item in outputs}
        for _, entry in ordered:
            if isinstance(entry, EventEntry):
                self._event(entry)
            elif id(entry) not in paired:
                self._item(entry)
        for call_id in sorted(self._outputs):
            for item in self._outputs[call_id]:
                self._item(item)

    def _order(self, event: EventEntry) -> Order:
        """A call that started a sub-agent comes before the agent, though it is recorded after it."""
        agent = self._agent_of(event)
        return (event.index, 0, 0) if agent is None else (min(agent.index, event.index), -1, LAST)

    def _agent_of(self, call: EventEntry) -> EventEntry | None:
        """The begin of the sub-agent that a call started."""
        agent = self._records.begins.get(ident(call.record.agent_span_id) or "")
        return agent if agent is not None and self._handed.get(agent.span or "") is call else None

    def _add(
        self,
        own: str,
        parent: str | None,
        at: SpanRef,
        name: str,
        operation: Operation = Operation.OTHER,
        outcome: Outcome = NO_OUTCOME,
        *,
        started_at: float | None = None,
        duration_ms: float | None = None,
        usage: Usage | None = None,
        model: str | None = None,
        preview: str = "",
        note: str = "",
    ) -> None:
        self.spans.append(
            Span(
                own,
                name,
                operation,
                parent,
                step=self._turns or None,
                is_step=operation is Operation.TURN,
                status=outcome.status,
                status_word=outcome.word,
                status_source=outcome.source,
                started_at=started_at,
                duration_ms=duration_ms,
                usage=usage,
                error=outcome.error,
                model=model,
                preview=preview[:PREVIEW],
                note=note,
                at=at,
            )
        )

    def _outcome(self, error: Any, status: str | None) -> Outcome:
        """An error that is not empty outranks a status."""
        if error:
            return Outcome(Status.ERROR, status or None, StatusSource.EXPLICIT, Error(as_text(error)))
        if not status:
            return NO_OUTCOME
        outcome = self._outcomes.get(status)
        if outcome is None:
            outcome = self._outcomes[status] = Outcome(status_of(status), word(status), StatusSource.EXPLICIT)
        return outcome

    # -- events

    def _event(self, event: EventEntry) -> None:
        record, kind = event.record, event.kind
        ends = self._records.ends.get(event.span or "") is event
        if ends and event.span in self._records.begins:
            return  # the begin shows it
        if kind == "message_event" and event.role == "user" and event.span == self._records.scope:
            self._open_turn(event.id, record.message_item, self._at(event), moment(record.timestamp))
            return
        started = moment(record.timestamp)
        add = partial(self._add, event.id, self._parent(event), self._at(event), started_at=started)
        match kind:
            case "message_event":
                self._message(add, record.message_item, event.role)
            case "function_call_event":
                agent, begin = word(record.agent), self._agent_of(event)
                if begin is not None:
                    agent = agent or word(begin.record.name) or "sub-agent"
                    started = min(filter(None, (moment(begin.record.timestamp), started)), default=None)
                add(
                    word(record.function) or "function call",
                    Operation.EXECUTE_TOOL,
                    self._outcome(record.error, record.status),
                    started_at=started,
                    duration_ms=milliseconds(record.working_time),
                    preview=preview_of(record.arguments),
                    note=f"hand-off → {agent}" if agent else "no output" if is_missing(record.result) else "",
                )
            case "model_call_event":
                model = word(record.model)
                add(
                    model or "model call",
                    Operation.CHAT,
                    self._model_outcome(record),
                    duration_ms=milliseconds(record.total_time),
                    usage=record.usage.usage if isinstance(record.usage, TokenUsage) else None,
                    model=model,
                    preview=" · ".join(filter(None, map(_output_preview, record.outputs))),
                )
            case "span_begin":
                self._begin(add, event)
            case "compaction":
                add("compaction", outcome=OK, preview=_compaction(record))
            case "error":
                message = "" if record.message is None else as_text(record.message)
                outcome = Outcome(Status.ERROR, None, StatusSource.EXPLICIT, Error(message))
                add("error", outcome=outcome, preview=message)
            case "custom":
                add(word(record.name) or "custom", outcome=OK)
            case "span_end":
                how = "ends a second time" if event.span in self._records.begins else "ends, but never begins"
                self._note(f"events[{event.index}]", f"span {(event.span or '')[:80]!r} {how}")
                add("span end", note="no begin")
            case _:
                add(kind[:PREVIEW] or "?", Operation.UNKNOWN)

    def _at(self, event: EventEntry) -> SpanRef:
        return SpanRef(self._origin, event.piece, True, event.role, event.more, tuple(event.links))

    def _parent(self, event: EventEntry) -> str | None:
        if event.kind == "span_begin":
            call = self._handed.get(event.span or "")
            if call is not None and self._records.begins.get(event.span or "") is event:
                return call.id
            return self._inside(ident(event.record.parent_span_id), event)
        return self._turn if event.kind == "span_end" else self._inside(event.span, event)

    def _inside(self, span: str | None, event: EventEntry) -> str | None:
        if span is None or (span == self._records.scope and self._turn is not None):
            return self._turn
        begin = self._records.begins.get(span)
        if begin is not None and begin is not event:
            return begin.id
        if span not in self._missing:
            self._missing.add(span)
            reason = "is its own parent" if begin is event else "is named, but never begins"
            self._note(f"events[{event.index}]", f"span {span[:80]!r} {reason}")
        return self._turn

    def _begin(self, add: Callable[..., None], event: EventEntry) -> None:
        """A nested span."""
        span, record = event.span, event.record
        self._containers.add(event.id)
        if span is None or self._records.begins.get(span) is not event:
            how = "begins without an id" if span is None else "begins a second time"
            self._note(f"events[{event.index}]", f"span {(span or '')[:80]!r} {how}")
        end = self._records.ends.get(span or "")
        if end is None:
            self._unended.add(event.id)
            self.is_open = True
        operation = _SPAN_TYPES.get(record.span_type or "", Operation.OTHER)
        if operation is Operation.EXECUTE_TOOL and span in self._wrapped:
            operation = Operation.OTHER  # the call inside is the tool call, this only wraps it
        duration = None if end is None else _elapsed(moment(record.timestamp), moment(end.record.timestamp))
        add(word(record.name) or "span", operation, duration_ms=duration, note="open" if end is None else "")

    def _model_outcome(self, record: Event) -> Outcome:
        outputs = record.outputs
        self.asks = any(output.call_id is not None for output in outputs)
        cut = next((output.status for output in outputs if output.status and output.status != "completed"), None)
        outcome = self._outcome(record.error, cut)
        return OK if outcome is NO_OUTCOME else outcome

    # -- messages and items

    def _open_turn(self, own: str, message: Item, at: SpanRef, started_at: float | None) -> None:
        self._turns += 1
        self._turn = own
        self._containers.add(own)
        name, note = f"turn {self._turns}", _role_note(message, at.role)
        self._add(own, self._root, at, name, Operation.TURN, started_at=started_at, preview=message.text, note=note)

    def _message(
        self, add: Callable[..., None], item: Item, name: str, operation: Operation = Operation.MESSAGE
    ) -> None:
        """A message, or the payload of a custom task."""
        preview = item.text or ("" if isinstance(item.content, list) else preview_of(item.content))
        note = _role_note(item, name)
        add(name or "message", operation, self._outcome(None, item.status), preview=preview, note=note)

    def _item(self, entry: ItemEntry) -> None:
        """An item that no event shows."""
        item, kind = entry.record, entry.kind
        own = self._records.claim_id(item.id, f"item-{entry.index}")
        at = SpanRef(self._origin, entry.piece, False, entry.role)
        add = partial(self._add, own, self._root if self._turn is None else self._turn)
        if kind == "message" and entry.role == "user":
            self._open_turn(own, item, at, None)
        elif kind == "message":
            self._message(partial(add, at), item, entry.role)
        elif kind == "function_call":
            answers, status, note = self._outputs.get(str(item.call_id)), item.status, "no output"
            if answers:
                answer = answers.pop(0)
                at = SpanRef(self._origin, entry.piece, False, entry.role, ((answer.kind, answer.piece),))
                status, note = answer.record.status or status, ""
            outcome, preview = self._outcome(None, status), preview_of(item.arguments)
            add(at, word(item.name) or "function call", Operation.EXECUTE_TOOL, outcome, preview=preview, note=note)
        elif kind == "function_call_output":
            self._note(f"items[{entry.index}]", f"output of call {str(item.call_id)[:80]!r}, but no such call")
            add(at, "tool output", outcome=self._outcome(None, item.status), note="no call")
        elif kind in ITEM_KINDS or kind == CUSTOM_TASK:
            self._message(partial(add, at), item, kind.removesuffix("_message").replace("_", " "))
        else:
            self._message(partial(add, at), item, kind[:PREVIEW] or "?", Operation.UNKNOWN)

    # -- the status of turns and nested spans

    def _close_containers(self) -> None:
        """Set the status of turns and nested spans by their end and their last events."""
        failed: dict[str | None, bool] = {}
        until: dict[str | None, float] = {}
        spans, containers = self.spans, self._containers
        for position in range(len(spans) - 1, -1, -1):
            span = spans[position]
            bad = span.status is Status.ERROR
            if span.id in containers:
                last_failed = failed.get(span.id)
                span = spans[position] = self._closed(span, last_failed, until.get(span.id))
                bad = bool(last_failed)
            failed.setdefault(span.parent_id, bad)
            if span.started_at is not None:
                end = span.started_at + (span.duration_ms or 0.0) / 1000
                until[span.parent_id] = max(end, until.get(span.parent_id, end))

    def _closed(self, span: Span, failed: bool | None, until: float | None) -> Span:
        duration, outcome, note = span.duration_ms, OK, span.note
        if span.id in self._unended:
            outcome = Outcome(self._open_status, None, StatusSource.DERIVED)
        else:
            duration = _elapsed(span.started_at, until) if duration is None else duration
            if failed is None and span.operation is Operation.TURN:
                outcome, note = NO_OUTCOME, note or "no answer"
            elif failed:
                outcome, note = Outcome(Status.UNKNOWN, None, StatusSource.DERIVED), note or "ended in an error"
        status, named, source, _ = outcome
        return msgspec.structs.replace(
            span, note=note, duration_ms=duration, status=status, status_word=named, status_source=source
        )


def _role_note(message: Item, role: str) -> str:
    """Says where the trace does not hold the role of a message."""
    if message.role is not None or message.kind != "message":
        return ""
    return "role unknown" if role == ROLE_UNKNOWN else "role inferred"


def _output_preview(item: Item) -> str:
    """The preview of a model call: its text, or a requested call."""
    return item.text[:PREVIEW] if item.call_id is None else f"→ {item.name} {preview_of(item.arguments)}"


def _compaction(record: Event) -> str:
    """How much a compaction removed: ``trim: 9000 → 1200 tokens``; no numbers where the trace has none."""
    sizes = (record.tokens_before, record.tokens_after)
    numbers = (
        "" if sizes == (None, None) else " → ".join("?" if size is None else str(size) for size in sizes) + " tokens"
    )
    return ": ".join(filter(None, (record.strategy, numbers)))


def preview_of(value: Any) -> str:
    """The beginning of a value."""
    return "" if value is None else as_text(value)[:PREVIEW]


def _elapsed(start: float | None, end: float | None) -> float | None:
    """Milliseconds between two times, none of them negative."""
    return None if start is None or end is None else between(start, max(start, end))


# ---- bodies


def body_of(file: File, at: SpanRef) -> Body:
    """Everything about a span. Raises `FormatError` if its bytes changed."""
    if file.stat != at.origin.stat and not at.origin.has_bytes(file):
        raise changed(f"byte {at.origin.offset}")
    value = plain(at.piece)
    more = Named()
    for label, piece in at.more:
        more.add(label, _beyond(plain(piece), mapping(value)))
    fields = _event(value, at.role) if at.is_event else _item(value, at.role, more.fields)
    attributes = fields.pop("attributes", {}) | more.fields
    raw = rendered(value) if at.piece is value else bytes(at.piece)
    return Body(**fields, attributes=attributes, links=at.links, raw=raw)


def _beyond(given: Any, event: dict[str, Any]) -> Any:
    """The additional fields of a given item over its event, None without any."""
    if not isinstance(given, dict):
        return given
    if given == event.get("item") or given in sequence(event.get("output_items")):
        return None
    same = {"arguments": event.get("arguments"), "output": event.get("result")} if "function" in event else {}
    return {key: given[key] for key in given if same.get(key) is None or given[key] != same[key]}


def _event(value: Any, role: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {"output": value}
    rest = dict(value)
    match record(EVENTS, value).kind:
        case "message_event" if isinstance(value.get("item"), dict):
            fields = _item(value["item"], role, {})
            return {**fields, "attributes": rest | {"item": fields["attributes"]}}
        case "function_call_event":
            fields = {"input": decoded(rest.pop("arguments", None)), "output": decoded(rest.pop("result", None))}
        case "model_call_event":
            sent, output = _messages(rest, "input_context"), _messages(rest, "output_items")
            fields = {"input_messages": sent, "output_messages": output}
        case "custom":
            fields = {"output": rest.pop("data", None)}
        case "error" if isinstance(value.get("traceback"), str):
            fields = {"traceback": rest.pop("traceback")}
        case _:
            fields = {}
    return {**fields, "attributes": rest}


def _item(value: Any, role: str, more: dict[str, Any]) -> dict[str, Any]:
    """An item by itself; the output that answers a call is taken out of `more`."""
    if not isinstance(value, dict):
        return {"output": value}
    kind = record(ITEMS, value).kind
    rest = dict(value)
    if kind == "message":
        message, rest = as_message(value, role)
        return {"output_messages" if role == "assistant" else "input_messages": (message,), "attributes": rest}
    if kind == "function_call":
        fields = {"input": decoded(rest.pop("arguments", None)), "attributes": rest}
        answer = more.pop("function_call_output", None)
        if isinstance(answer, dict):
            fields["output"] = decoded(answer.get("output"))
            rest["function_call_output"] = without(answer, "output")
        return fields
    if kind == "function_call_output":
        return {"output": decoded(rest.pop("output", None)), "attributes": rest}
    side = "output" if kind == "custom_task_output_message" else "input"
    return {side: rest.pop("content", None), "attributes": rest}


def _messages(rest: dict[str, Any], name: str) -> tuple[Message, ...]:
    """The items of a field as messages; other values stay in the field."""
    pieces = elements(rest.get(name))
    if pieces is None:
        return ()
    named = roles([record(ITEMS, piece) for piece in pieces])
    messages = [
        as_message(piece, role) if isinstance(piece, dict) else piece for piece, role in zip(pieces, named, strict=True)
    ]
    rest[name] = [converted[1] if isinstance(converted, tuple) else converted for converted in messages]
    return tuple(converted[0] for converted in messages if isinstance(converted, tuple))


# ---- messages


def as_message(value: dict[str, Any], role: str) -> tuple[Message, dict[str, Any]]:
    """An item as a `Message`, and the fields that the message does not show."""
    item = record(ITEMS, value)
    kind, name = item.kind, string(item.id) or None
    if name is not None:
        value = without(value, "id")
    if kind == "function_call":
        call = ToolCall(ident(item.call_id), item.name or "", decoded(item.arguments))
        return Message("assistant", (call,), id=name), without(value, "arguments")
    if kind == "function_call_output":
        answer = ToolResult(ident(item.call_id), decoded(value.get("output")))
        return Message("tool", (answer,), id=name), without(value, "output")
    rest = without(value, "content")
    content = value.get("content")
    if kind != "message":
        role = role or kind.removesuffix("_message").replace("_", " ") or "item"
        return Message(role, (Blob(kind, content),), id=name), rest
    if not isinstance(content, list):
        return Message(role, (Text(content) if isinstance(content, str) else Blob("content", content),), id=name), rest
    parts = [_part(part) for part in content]
    extras = [more for _, more in parts]
    return Message(role, tuple(part for part, _ in parts), id=name), rest | ({"content": extras} if any(extras) else {})


def _part(part: Any) -> tuple[Part, Any]:
    """A part of a message, and its fields other than the text."""
    if isinstance(part, str):
        return Text(part), {}
    fields = mapping(part)
    kind = string(fields.get("type")) or "part"
    for key in ("text", "refusal"):
        if isinstance(fields.get(key), str):
            part_type = Reasoning if kind.startswith(("reasoning", "summary")) else Text
            return part_type(fields[key]), without(fields, key)
    return Blob(kind, part), {}


def decoded(value: Any) -> Any:
    """A value, decoded where it is JSON in a string."""
    return decode_value(value) if isinstance(value, str) else value


_ASKING: Final = frozenset({"user", "system", "custom task input"})
"""Names of messages that want an answer."""
_TASKS: Final = ("sample_id", "task_id")
"""Columns that name the sample of a data set."""
_STATED: Final = ("is_correct", "all_required_calls_made", "no_disallowed_calls_made")
"""Values of LatticeFlow's own scorers that are true where the sample passed."""
_ROW: Final[tuple[str, ...]] = ("tags", "source", "scores", "trial", *_TASKS)
_FEW: Final = 16
"""Events that are looked at in the list stage."""


def error_of(document: Document) -> str | None:
    """`metadata.error` as text."""
    error = document.metadata.get("error")
    return None if error is None or error == "" else as_text(error)


def has_ended(document: Document) -> bool:
    """True where the trace records its end."""
    return error_of(document) is not None or milliseconds(document.metadata.get("total_time")) is not None


def quick_header(document: Document) -> Header | None:
    """The header without looking at every record; None where that does not suffice."""
    prompt = _first_prompt(document)
    if prompt is None:
        return None
    metadata, started = document.metadata, None
    if document.has_events:
        if word(metadata.get("agent")) is None or word(metadata.get("model")) is None:
            return None
        if moment(metadata.get("created_at")) is None and (started := _first_timestamp(document)) is None:
            return None
    return _header(document, prompt, started=started)


def _first_timestamp(document: Document) -> str | None:
    """The first time that an event has, None where the first few have none."""
    timestamps = (
        record(EVENTS, piece).timestamp for piece in (elements(document.trace.fields.get("events")) or ())[:_FEW]
    )
    return next((timestamp for timestamp in timestamps if moment(timestamp) is not None), None)


def _first_prompt(document: Document) -> str | None:
    """The first user's text from the given items, "" if none is there; None if there are no items."""
    pieces = elements(document.trace.fields.get("items"))
    if not pieces:
        return None
    for upto in (3, 64, len(pieces)):
        items = [record(ITEMS, piece) for piece in pieces[:upto]]
        sure = len(items) if upto >= len(pieces) else len(items) - 1
        for item, role, piece in zip(items[:sure], roles(items), pieces, strict=False):
            if _is_prompt(item, role):
                return _prompt(item, piece)
    return ""


def _is_prompt(item: Item, role: str) -> bool:
    return role == "user" or item.kind == "custom_task_input_message"


def _prompt(item: Item, piece: Piece) -> str:
    """The beginning of the request: a user's text, or the payload of a custom task."""
    return (item.text or as_text(content_of(piece)))[:PREVIEW]


def header(document: Document, records: Records, spans: Spans) -> Header:
    """The whole header."""
    prompt = next(
        (_prompt(entry.record, entry.piece) for entry in records.items if _is_prompt(entry.record, entry.role)), ""
    )
    handed = {ident(event.record.agent_span_id) for event in records.events}
    agents = (event for event in _tops(records) if event.record.span_type == "agent" and event.span not in handed)
    timestamps = (event.record.timestamp for event in records.events)
    known = _header(
        document,
        prompt,
        agent=next((word(agent.record.name) for agent in agents), None),
        model=next((word(event.record.model) for event in records.events if event.kind == "model_call_event"), None),
        started=next((timestamp for timestamp in timestamps if moment(timestamp) is not None), None),
    )
    more: dict[str, Any] = {"fields": unknown_fields(document.trace.unknown)}
    if known.error is not None:
        more["error"] = _located(known.error, spans.spans)
    if known.status is None:
        more |= _ending(document, records, spans)
    declared = natural(document.metadata.get("total_tokens"))
    if declared is not None and not any(span.usage for span in spans.spans):
        more["usage"] = Usage(total_tokens=declared)
    return msgspec.structs.replace(known, **more)


def _header(
    document: Document, prompt: str, *, agent: str | None = None, model: str | None = None, started: str | None = None
) -> Header:
    metadata, error = document.metadata, error_of(document)
    agent = word(metadata.get("agent")) or agent
    own_name = word(plain(document.trace.fields.get("span_name", NULL)))
    at, zone = zoned(metadata.get("created_at"))
    if at is None:
        at, zone = zoned(started)
    columns = {name: plain(document.columns[name]) for name in _ROW if name in document.columns}
    return Header(
        id=document.id,
        name=own_name or agent or "trace",
        agent=agent,
        model=word(metadata.get("model")) or model,
        status=None if error is None else Status.ERROR,
        status_source=None if error is None else StatusSource.EXPLICIT,
        started_at=at,
        time_zone="UTC" if at is None else zone,
        duration_ms=milliseconds(metadata.get("total_time")),
        error=None if error is None else FirstError(error),
        prompt=prompt,
        scores=tuple(_scores(columns.get("scores"))),
        task=next(filter(None, (_name_in(columns, name) for name in _TASKS)), None),
        trial=_name_in(columns, "trial"),
        tags=tags_in(metadata, columns),
        source=source_in(metadata, columns),
        size=document.origin.size,
    )


def _located(error: FirstError, spans: list[Span]) -> FirstError:
    """The run's error with the last span that failed with the same words."""
    for span in reversed(spans):
        message = span.error.message if span.error is not None else ""
        if message and (message in error.message or error.message in message):
            return FirstError(error.message, error.type, span.id, span.name, span.operation)
    return error


def _name_in(columns: dict[str, Any], name: str) -> str | None:
    """A text or a whole number in a column, as a text."""
    value = columns.get(name)
    text = word(value if integer(value) is None else str(value))
    return text and excerpt(text)


def _scores(recorded: Any) -> Iterator[Score]:
    """The scores in a row; none of a scorer that checks the sample instead of the answer (purpose ``qa``).

    Facts: `ScoresData` and the scorers of `latticeflow-core` 3.17, which has no other rule for passing.
    """
    for index, row in enumerate(map(mapping, sequence(recorded))):
        scorer = word(row.get("scorer_name")) or word(row.get("scorer_key")) or "score"
        for name, value in mapping(row.get("values")).items() if row.get("scorer_purpose") != "qa" else ():
            passed = boolean(value) if name in _STATED else None
            source = f"scores[{index}].values.{name}"[:PREVIEW]
            yield Score(f"{scorer} {name}"[:PREVIEW], score_value(value), passed, source)


def _ending(document: Document, records: Records, spans: Spans) -> dict[str, Any]:
    """How a trace ended that names no error.

    Open spans, a question without an answer and a call without a response mean that it didn't; a last record that is
    incomplete is its status.
    """
    last = next((span for span in reversed(spans.spans) if span.operation not in CONTAINERS), None)
    running = spans.is_open or (last is not None and last.status is Status.RUNNING)
    cut = last is not None and last.status is Status.UNKNOWN and last.status_word is not None
    if not has_ended(document) and (running or not (cut or _is_over(records, spans))):
        return {"ended": False}
    if last is not None and cut:
        return {"status": Status.UNKNOWN, "status_word": last.status_word, "status_source": StatusSource.EXPLICIT}
    return {}


def _tops(records: Records) -> list[Any]:
    """The begins of the spans that are in no other."""
    return [begin for begin in records.begins.values() if ident(begin.record.parent_span_id) is None]


def _is_over(records: Records, spans: Spans) -> bool:
    """Whether the last record ends a trace: an answer, a failure, or the end of the agent itself."""
    if any(begin.record.span_type == "agent" and begin.span in records.ends for begin in _tops(records)):
        return True
    for span in reversed(spans.spans):
        if span.status is Status.ERROR:
            return True
        if span.operation is Operation.TURN:  # nothing came after the question
            return False
        if span.operation is Operation.MESSAGE:
            return span.name not in _ASKING
        if span.operation is Operation.CHAT:
            return not spans.asks
        if span.operation is Operation.EXECUTE_TOOL:
            return False
    return False


def run_body(document: Document, records: Records, spans: Spans) -> RunBody:
    """The *Run* tab: everything except the records, and the values that upstream's helpers extract from items."""
    items, error = records.items, error_of(document)
    first_user = next((i for i, item in enumerate(items) if item.role == "user"), len(items))
    system = (item for item in items[:first_user] if item.role == "system")
    answers = (item for item in reversed(items[first_user:]) if item.role == "assistant")
    users = (item for item in reversed(items) if item.role == "user")
    attributes = {name: plain(value) for name, value in document.columns.items()}
    for name, value in (document.trace.values("items", "events") | document.trace.rest).items():
        attributes[f"trace.{name}" if name in attributes else name] = value
    return RunBody(
        input=_payload(items, "custom_task_input_message"),
        output=_payload(items[::-1], "custom_task_output_message"),
        error=None if error is None else Error(error),
        totals=_totals(document.metadata, items, spans.spans),
        extent=None if document.key is None else (document.origin.offset, document.origin.size),
        system_prompt=next((message.record.text for message in system), None),
        last_user=next((message.record.text for message in users), None),
        last_assistant=next((message.record.text for message in answers), None),
        attributes=attributes,
    )


def _payload(items: list[ItemEntry], kind: str) -> Any:
    return next((content_of(item.piece) for item in items if item.kind == kind), None)


def _totals(metadata: dict[str, Any], items: list[ItemEntry], spans: list[Span]) -> tuple[Total, ...]:
    used = [span.usage.total_tokens for span in spans if span.usage is not None and span.operation is Operation.CHAT]
    tokens = [count for count in used if count is not None]
    seconds = milliseconds(metadata.get("total_time"))
    counted = (
        ("message_count", natural(metadata.get("message_count")), sum(item.kind == "message" for item in items)),
        ("total_tokens", natural(metadata.get("total_tokens")), sum(tokens) if tokens else None),
        ("total_time", None if seconds is None else seconds / 1000, _elapsed_seconds(seconds, spans)),
    )
    return tuple(Total(name, declared, count) for name, declared, count in counted if declared is not None)


def _elapsed_seconds(declared_ms: float | None, spans: list[Span]) -> float | None:
    """Seconds from the first start to the last end; the declared time where that agrees within a tenth of a second."""
    starts = [span.started_at for span in spans if span.started_at is not None]
    if not starts:
        return None
    ends = [span.started_at + (span.duration_ms or 0.0) / 1000 for span in spans if span.started_at is not None]
    elapsed = round(max(ends) - min(starts), 3)
    declared = None if declared_ms is None else declared_ms / 1000
    return declared if declared is not None and abs(declared - elapsed) <= 0.1 else elapsed
