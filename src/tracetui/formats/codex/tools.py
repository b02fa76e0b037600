"""Tool calls of a Codex thread: the model's call, its output and the events beside them are one span."""

from __future__ import annotations

from typing import Any

import msgspec

from tracetui.formats.codex.outcome import Outcome, of_event, of_output
from tracetui.formats.codex.records import text_in
from tracetui.formats.codex.state import Call, Mark, State
from tracetui.formats.codex.talk import respond
from tracetui.formats.codex.turns import close
from tracetui.formats.codex.words import CALLS, DONE_CALLS, arguments, call_preview, event_preview, tool_of
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import child, number, sequence, word
from tracetui.model import PREVIEW, Operation, Span, Status, StatusSource


def take_item(session: State, mark: Mark) -> bool:
    """Take in a call or an output; False for any other item."""
    name = mark.record.name
    if name in CALLS or name in DONE_CALLS:
        _called(session, mark)
    elif name.endswith("_output"):
        _answered(session, mark)
    else:
        return False
    return True


def take_event(session: State, mark: Mark) -> bool:
    """Take in an event that tells of a call; False for any other event."""
    tool = tool_of(mark.record)
    if tool is None:
        return False
    ident, name = tool
    call = session.calls.get(ident)
    outcome = of_event(mark.record.payload)
    if call is None:
        span = _new(session, mark, name, event_preview(mark.record), mark.began)
        call = Call(span, Outcome(), called=False)
    else:
        span = session.also(call.span, mark) or call.span
        call = msgspec.structs.replace(call, span=span)
    for thread in spawned(mark.record.payload):
        session.threads.setdefault(thread, call.span.id)
    _went(session, ident, call, call.outcome.and_then(outcome))
    return True


def _called(session: State, mark: Mark) -> None:
    payload = mark.record.payload
    session.failure = None
    told = respond(session, mark, (), "")
    ident = word(payload.get("call_id")) or word(payload.get("id"))
    name = word(payload.get("name")) or mark.record.name.removesuffix("_call")
    shown = call_preview(arguments(payload))
    over = Outcome(answered=mark.record.name in DONE_CALLS, word=word(payload.get("status")))
    before = session.calls.get(ident) if ident is not None else None
    if before is not None and not before.called:
        span = session.also(before.span, mark, name=name[:PREVIEW], preview=shown) or before.span
        call = Call(span, before.outcome, called=True)
    else:
        if before is not None and ident is not None and ident in session.waiting:
            session.problem(mark.line, f"call id {ident[:PREVIEW]!r} is used again before its answer came")
        call = Call(_new(session, mark, name, shown, mark.time, above=told.span), over, called=True)
    if ident is None:
        session.problem(mark.line, f"a call of {name[:PREVIEW]} has no id: its answer cannot be told")
        session.add(msgspec.structs.replace(call.span, status=Status.UNKNOWN, status_source=None))
        return
    _went(session, ident, call, call.outcome)


def _answered(session: State, mark: Mark) -> None:
    payload = mark.record.payload
    close(session)
    ident = word(payload.get("call_id"))
    call = session.calls.get(ident) if ident is not None else None
    outcome = of_output(payload)
    if call is None or ident is None:
        shown = repr(ident[:PREVIEW]) if ident is not None else "without an id"
        session.problem(mark.line, f"an output, but no call {shown} waits for one")
        span = _new(session, mark, mark.record.name, text_in(payload.get("output"))[:PREVIEW], mark.time)
        session.add(_shown(span, outcome))
        return
    for thread in spawned(payload):
        session.threads.setdefault(thread, call.span.id)
    span = session.also(call.span, mark) or call.span
    begin, end = span.started_at, mark.time
    if call.outcome.duration_ms is None and begin is not None and end is not None and end >= begin:
        outcome = msgspec.structs.replace(outcome, duration_ms=number((end - begin) * 1000))
    _went(session, ident, msgspec.structs.replace(call, span=span), call.outcome.and_then(outcome))


def _new(session: State, mark: Mark, name: str, preview: str, began: float | None, above: Span | None = None) -> Span:
    """A call that waits for its answer, below the response that asked for it."""
    told = session.told
    if above is None and told is not None and session.turn is not None and told.span.parent_id == session.turn.id:
        above = told.span
    fields: dict[str, Any] = {} if above is None else {"parent_id": above.id}
    suffix = "c" if mark.record.name in CALLS or mark.record.name in DONE_CALLS else ""  # the response has it too
    fields |= {"status": Status.RUNNING, "status_source": StatusSource.DERIVED}
    return session.new(mark, name, Operation.EXECUTE_TOOL, suffix, preview=preview, started_at=began, **fields)


def _went(session: State, ident: str, call: Call, outcome: Outcome) -> None:
    """Keep a call with what is known of how it went."""
    span = session.add(_shown(call.span, outcome))
    session.calls[ident] = Call(span, outcome, call.called)
    if outcome.answered:
        session.waiting.pop(ident, None)
    else:
        session.waiting[ident] = None


def _shown(span: Span, outcome: Outcome) -> Span:
    status, source = outcome.status
    if status is Status.RUNNING:
        return span
    return msgspec.structs.replace(
        span,
        status=status,
        status_source=source,
        status_word=outcome.word if outcome.answered else None,
        error=outcome.error,
        started_at=span.started_at if outcome.started_at is None else outcome.started_at,
        duration_ms=outcome.duration_ms,
    )


def spawned(payload: dict[str, Any]) -> list[str]:
    """The threads that a call began, by its output or its event."""
    told = child(payload, "item") or payload
    found = [*sequence(told.get("receiver_thread_ids")), told.get("new_thread_id")]
    output = told.get("output")
    if isinstance(output, str) and output[:1] == "{" and len(output) < 1 << 16:
        found.append(child({"output": decode_value(output)}, "output").get("agent_id"))
    return [thread for thread in found if isinstance(thread, str) and thread]
