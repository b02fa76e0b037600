"""The spans of a trace: turns, messages, model calls, tool calls and nested agents, in the order of what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.outline import (
    LAST,
    EventAt,
    ItemAt,
    Names,
    Order,
    Outline,
    answers,
    hand_offs,
    link_up,
)
from tracetui.formats.latticeflow.records import Place, ident, milliseconds, seconds
from tracetui.formats.scalars import word
from tracetui.model import PREVIEW, Error, Link, Operation, Problem, Span, Status, StatusSource, Usage, status_of

Stand = dict[str, Any]
"""How something stands, as fields of a span: status, the trace's own word for it, and where it comes from."""


def _stand(status: Status, named: str | None, source: StatusSource | None) -> Stand:
    return {"status": status, "status_word": named, "status_source": source}


_CHAT: Final = Operation.CHAT
_DERIVED: Final = StatusSource.DERIVED
_MESSAGE: Final = Operation.MESSAGE
_TOOL: Final = Operation.EXECUTE_TOOL
FINE: Final = _stand(Status.OK, None, _DERIVED)
SILENT: Final = _stand(Status.UNKNOWN, None, None)
FAILED: Final = _stand(Status.ERROR, None, StatusSource.EXPLICIT)
_SPAN_TYPES: Final = {"agent": Operation.INVOKE_AGENT, "function_call": _TOOL}


class At(msgspec.Struct, frozen=True, gc=False):
    """Where the body of a span is: its own record, those that belong to it, and its jumps."""

    place: Place
    is_event: bool
    role: str = ""
    also: tuple[tuple[str, Place], ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its own record; 0 where it has no place of its own."""
        return 0 if self.place.path else self.place.size


class Woven(msgspec.Struct):
    """The spans of a trace, and what they tell about the run."""

    spans: list[Span]
    problems: list[Problem]
    is_open: bool
    """Some span never ended."""
    asks: bool
    """The last model call asked for tool calls."""


def weave(outline: Outline, path: str, where: str, *, moving: bool, ended: bool) -> Woven:
    """Translate a trace. `ended`: the trace says itself that it is over; `moving`: its file changed just now."""
    weaver = _Weaver(outline, path, where)
    weaver.open_status = Status.RUNNING if moving and not ended else Status.UNKNOWN
    weaver.emit()
    weaver.close()
    return Woven(weaver.spans, weaver.problems, weaver.is_open, weaver.asks)


class Stands:
    """How the records of a trace stand."""

    def __init__(self) -> None:
        self._known: dict[str, Stand] = {}

    def outcome(self, error: Any, status: Any) -> dict[str, Any]:
        """Status, its word and source, and error of a record: an error that is not empty says more than a status."""
        named = word(status)
        if error:
            failed = _stand(Status.ERROR, named, StatusSource.EXPLICIT)
            return failed | {"error": Error(records.said(error))}
        if named is None:
            return SILENT
        found = self._known.get(named)
        if found is None:
            found = self._known[named] = _stand(status_of(named), named, StatusSource.EXPLICIT)
        return found


class _Weaver:
    def __init__(self, outline: Outline, path: str, where: str) -> None:
        self.outline = outline
        self.path = path
        self.where = where
        self.spans: list[Span] = []
        self.problems = list(outline.problems)
        self.is_open = self.asks = False
        self.open_status = Status.UNKNOWN
        self._stands = Stands()
        self._turn: str | None = None
        self._turns = 0
        self._containers: set[str] = set()
        self._unended: set[str] = set()
        self._lost: set[str] = set()
        self._names = Names(outline)
        self._ids = self._names.events
        self._results = answers(outline)
        self._handed = hand_offs(outline)
        self._links = link_up(outline, self._ids, self._handed)
        self._wrapped = {event.level for event in outline.events if event.kind == "function_call_event"}

        self._made: dict[str, Callable[[EventAt], dict[str, Any]]] = {
            "message_event": self._message,
            "function_call_event": self._call,
            "model_call_event": self._model,
            "span_begin": self._begin,
            "compaction": self._compaction,
            "error": self._error,
        }

    # -- the spans ------------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """Make a span of every record, in order."""
        places: list[tuple[Order, EventAt | ItemAt]] = [(self._order(event), event) for event in self.outline.events]
        places += [(item.order, item) for item in self.outline.items if item.order is not None]
        places.sort(key=lambda placed: placed[0])
        paired = {id(item) for found in self._results.values() for item in found}
        for _, one in places:
            if isinstance(one, EventAt):
                self._event(one)
            elif id(one) not in paired:
                self._item(one)
        for call_id in sorted(self._results):
            for item in self._results[call_id]:
                self._item(item)

    def _order(self, event: EventAt) -> Order:
        """A call that started a sub-agent comes before the agent, though it is recorded after it."""
        agent = self.outline.begins.get(ident(event.record.agent_span_id) or "")
        if agent is None or self._handed.get(agent.level or "") is not event:
            return (event.index, 0, 0)
        return (min(agent.index, event.index), -1, LAST)

    def _event(self, event: EventAt) -> None:
        kind = event.kind
        if (
            kind == "span_end"
            and self.outline.ends.get(event.level or "") is event
            and event.level in self.outline.begins
        ):
            return
        if kind == "message_event" and event.role == "user" and event.level == self.outline.scope:
            self._open_turn(event)
            return
        made = self._made.get(kind, self._other)(event)
        own = self._ids[event.index]
        self.spans.append(
            Span(
                id=own,
                parent_id=self._parent(event),
                step=self._turns or None,
                started_at=made.pop("started_at", None) or seconds(event.record.timestamp),
                at=self._at(event, own),
                **made,
            )
        )

    def _at(self, event: EventAt, own: str) -> At:
        return At(event.place, True, event.role, tuple(event.also), tuple(self._links.get(own, ())))

    def _parent(self, event: EventAt) -> str | None:
        if event.kind == "span_begin":
            call = self._handed.get(event.level or "")
            if call is not None and self.outline.begins.get(event.level or "") is event:
                return self._ids[call.index]
            return self._inside(ident(event.record.parent_span_id), event)
        return self._turn if event.kind == "span_end" else self._inside(event.level, event)

    def _inside(self, span: str | None, event: EventAt) -> str | None:
        if span == self.outline.scope and self._turn is not None:
            return self._turn
        if span is None:
            return self._turn
        begin = self.outline.begins.get(span)
        if begin is None or begin is event:
            if span not in self._lost:
                self._lost.add(span)
                reason = "is its own parent" if begin is event else "is named, but never begins"
                self._problem(f"events[{event.index}]", f"span {span[:80]!r} {reason}")
            return self._turn
        return self._ids[begin.index]

    def _open_turn(self, one: EventAt | ItemAt, own: str | None = None) -> None:
        self._turns += 1
        if isinstance(one, EventAt):
            own = self._ids[one.index]
            at, started = self._at(one, own), seconds(one.record.timestamp)
        else:
            at, started = At(one.place, False, one.role), None
        message = self._said(one)
        root = self.outline.begins.get(self.outline.scope or "")
        self._turn = own or ""
        self._containers.add(self._turn)
        self.spans.append(
            Span(
                id=self._turn,
                name=f"turn {self._turns}",
                operation=Operation.TURN,
                parent_id=None if root is None else self._ids[root.index],
                step=self._turns,
                is_step=True,
                started_at=started,
                preview=records.text_of(message)[:PREVIEW],
                note=role_note(message, one.role),
                at=at,
            )
        )

    @staticmethod
    def _said(one: EventAt | ItemAt) -> records.Item:
        return one.record.said if isinstance(one, EventAt) else one.record

    def _message(self, event: EventAt) -> dict[str, Any]:
        return of_message(self._said(event), event.role, self._stands)

    def _call(self, event: EventAt) -> dict[str, Any]:
        record = event.record
        agent = word(record.agent)
        began = None
        handed = self.outline.begins.get(ident(record.agent_span_id) or "")
        if handed is not None and self._handed.get(handed.level or "") is event:
            agent = agent or word(handed.record.name) or "sub-agent"
            began = earlier(seconds(handed.record.timestamp), seconds(record.timestamp))
        note = f"hand-off → {agent}" if agent else "no output" if records.missing(record.result) else ""
        return {
            "name": word(record.function) or "function call",
            "operation": _TOOL,
            "started_at": began,
            "duration_ms": milliseconds(record.working_time),
            "preview": preview(record.arguments),
            "note": note,
            **self._stands.outcome(record.error, record.status),
        }

    def _model(self, event: EventAt) -> dict[str, Any]:
        record = event.record
        outputs = record.outputs
        self.asks = any(one.call_id is not None for one in outputs)
        cut = next((word(one.status) for one in outputs if word(one.status) not in (None, "completed")), None)
        made = self._stands.outcome(record.error, cut)
        if made["status_source"] is None:
            made = FINE
        return {
            "name": word(record.model) or "model call",
            "operation": _CHAT,
            "model": word(record.model),
            "duration_ms": milliseconds(record.total_time),
            "usage": usage(record.usage),
            "preview": " · ".join(filter(None, map(produced, outputs)))[:PREVIEW],
            **made,
        }

    def _begin(self, event: EventAt) -> dict[str, Any]:
        span = event.level
        own = self._ids[event.index]
        self._containers.add(own)
        if span is None or self.outline.begins.get(span) is not event:
            how = "begins without an id" if span is None else "begins a second time"
            self._problem(f"events[{event.index}]", f"span {(span or '')[:80]!r} {how}")
        end = self.outline.ends.get(span or "")
        if end is None:
            self._unended.add(own)
            self.is_open = True
        kind = _SPAN_TYPES.get(word(event.record.span_type) or "", Operation.OTHER)
        if kind is _TOOL and span in self._wrapped:
            kind = Operation.OTHER  # the call inside is the tool call, this only wraps it
        return {
            "name": word(event.record.name) or "span",
            "operation": kind,
            "note": "open" if end is None else "",
            "duration_ms": None if end is None else between(event.record.timestamp, end.record.timestamp),
        }

    def _compaction(self, event: EventAt) -> dict[str, Any]:
        record = event.record
        sizes = compaction(record.tokens_before, record.tokens_after)
        preview = ": ".join(filter(None, (word(record.strategy), sizes)))
        return {"name": "compaction", "preview": preview[:PREVIEW], **FINE}

    def _error(self, event: EventAt) -> dict[str, Any]:
        message = "" if event.record.message is None else records.said(event.record.message)
        failed = FAILED
        return {"name": "error", "preview": message[:PREVIEW], "error": Error(message), **failed}

    def _other(self, event: EventAt) -> dict[str, Any]:
        if event.kind == "custom":
            return {"name": word(event.record.name) or "custom", **FINE}
        if event.kind == "span_end":
            how = "ends a second time" if event.level in self.outline.begins else "ends, but never begins"
            self._problem(f"events[{event.index}]", f"span {(event.level or '')[:80]!r} {how}")
            return {"name": "span end", "note": "no begin", **SILENT}
        name = event.kind[:PREVIEW] or "?"
        return {"name": name, "operation": Operation.UNKNOWN, **SILENT}

    def _item(self, item: ItemAt) -> None:
        own = self._names.claim(item.record.id, f"item-{item.index}")
        if item.kind == "message" and item.role == "user":
            self._open_turn(item, own)
            return
        also: tuple[tuple[str, Place], ...] = ()
        if item.kind == "function_call":
            answers = self._results.get(str(item.record.call_id))
            answer = answers.pop(0) if answers else None
            also = () if answer is None else (("function_call_output", answer.place),)
            made = of_call(item.record, answer, self._stands)
        elif item.kind == "function_call_output":
            self._problem(f"items[{item.index}]", f"output of call {str(item.record.call_id)[:80]!r}, but no such call")
            made = {"name": "tool output", "note": "no call", **self._stands.outcome(None, item.record.status)}
        elif item.kind == "message":
            made = of_message(item.record, item.role, self._stands)
        elif item.kind in records.ITEM_KINDS or item.kind == records.CUSTOM_TASK:
            made = of_message(item.record, item.kind.removesuffix("_message").replace("_", " "), self._stands)
        else:
            made = of_message(item.record, item.kind, self._stands) | {"name": item.kind[:PREVIEW] or "?"}
            made["operation"] = Operation.UNKNOWN
        at = At(item.place, False, item.role, also)
        self.spans.append(Span(id=own, parent_id=self._item_parent(), step=self._turns or None, at=at, **made))

    def _item_parent(self) -> str | None:
        root = self.outline.begins.get(self.outline.scope or "")
        return self._turn if self._turn is not None or root is None else self._ids[root.index]

    def _problem(self, inside: str, reason: str) -> None:
        self.problems.append(Problem(self.path, f"{self.where}, {inside}" if self.where else inside, reason))

    # -- afterwards: how turns and nested spans stand --------------------------------------------------------------

    def close(self) -> None:
        """Turns and nested spans have no status of their own: it follows from their end and what came last in them."""
        failed: dict[str | None, bool] = {}
        until: dict[str | None, float] = {}
        for position in range(len(self.spans) - 1, -1, -1):
            span = self.spans[position]
            if span.id in self._containers:
                span = self.spans[position] = self._closed(span, failed.get(span.id), until.get(span.id))
            bad = failed.get(span.id, False) if span.id in self._containers else span.status is Status.ERROR
            failed.setdefault(span.parent_id, bad)
            if span.started_at is not None:
                end = span.started_at + (span.duration_ms or 0.0) / 1000
                until[span.parent_id] = max(end, until.get(span.parent_id, end))

    def _closed(self, span: Span, bad: bool | None, until: float | None) -> Span:
        duration, stand, note = span.duration_ms, FINE, span.note
        if duration is None and until is not None and span.started_at is not None:
            duration = length(span.started_at, until)
        if span.id in self._unended:
            stand, duration = _stand(self.open_status, None, _DERIVED), span.duration_ms
        elif bad is None and span.operation is Operation.TURN:
            stand, note = SILENT, note or "no answer"
        elif bad:
            stand, note = _stand(Status.UNKNOWN, None, _DERIVED), note or "ended in an error"
        return msgspec.structs.replace(span, note=note, duration_ms=duration, **stand)


# ---- what one record says


def of_message(message: records.Item, role: str, stands: Stands) -> dict[str, Any]:
    """A message, or the payload of a custom task; `role` is its name."""
    text = records.text_of(message) or ("" if isinstance(message.content, list) else preview(message.content))
    return {
        "name": role or "message",
        "operation": _MESSAGE,
        "preview": text[:PREVIEW],
        "note": role_note(message, role),
        **stands.outcome(None, message.status),
    }


def role_note(message: records.Item, role: str) -> str:
    """Says where the trace does not hold the role of a message."""
    if isinstance(message.role, str) or records.item_kind(message) != "message":
        return ""
    return "role unknown" if role == records.ROLE_UNKNOWN else "role inferred"


def of_call(call: records.Item, answer: ItemAt | None, stands: Stands) -> dict[str, Any]:
    """A call that only the items hold, with the output that answers it."""
    status = call.status
    if answer is not None and word(answer.record.status) is not None:
        status = answer.record.status
    return {
        "name": word(call.name) or "function call",
        "operation": _TOOL,
        "preview": preview(call.arguments),
        "note": "no output" if answer is None else "",
        **stands.outcome(None, status),
    }


def produced(item: records.Item) -> str:
    """What a model call made, in short: a text, or a call that it asked for."""
    if item.call_id is not None:
        return f"→ {item.name} {preview(item.arguments)}"
    return records.text_of(item)[:PREVIEW]


def usage(found: Any) -> Usage | None:
    """Tokens of one call; the total is their sum where the trace has none."""
    if not isinstance(found, dict):
        return None
    given, made = records.count(found.get("num_prompt_tokens")), records.count(found.get("num_completion_tokens"))
    total = records.count(found.get("total_tokens"))
    if total is None and given is not None and made is not None:
        total = given + made
    return Usage(input_tokens=given, output_tokens=made, total_tokens=total) or None


def compaction(before: Any, after: Any) -> str:
    """How much a compaction removed: ``9000 → 1200 tokens``; "" where the trace does not say."""
    sizes = [records.count(before), records.count(after)]
    if sizes == [None, None]:
        return ""
    return " → ".join("?" if size is None else str(size) for size in sizes) + " tokens"


def preview(found: Any) -> str:
    """The beginning of a value."""
    return "" if found is None else records.said(found)[:PREVIEW]


def earlier(a: float | None, b: float | None) -> float | None:
    """The earlier of two times, or the one that is known."""
    return b if a is None else a if b is None else min(a, b)


def between(begin: Any, end: Any) -> float | None:
    """Milliseconds from one time stamp to another, None unless both are known."""
    first, last = seconds(begin), seconds(end)
    return None if first is None or last is None else length(first, last)


def length(first: float, last: float) -> float:
    """Milliseconds between two times, to the microsecond (their floats hold no more)."""
    return round(max(0.0, last - first) * 1000, 3)
