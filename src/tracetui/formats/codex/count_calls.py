"""Tool calls of a rollout, counted: what `tools` is for the full read."""

from __future__ import annotations

import msgspec

from tracetui.formats.codex import lean
from tracetui.formats.codex.count_state import Call, CountState, Position
from tracetui.formats.codex.lean import went_well
from tracetui.formats.codex.outcome import Outcome, of_event, of_output
from tracetui.formats.codex.records import Record, record_of
from tracetui.formats.codex.tools import spawned
from tracetui.formats.codex.words import DONE_CALLS, tool_of
from tracetui.formats.counting import Irregular
from tracetui.formats.decode import strict
from tracetui.formats.scalars import number, word
from tracetui.model import PREVIEW, Status


def called(count: CountState, told: lean.Call) -> None:
    """Count a call that the model asked for."""
    kind = str(told.__struct_config__.tag)
    count.session.failure = None
    count.said([], told.started_at_ms)
    response, ident = count.told, told.call_id or told.id
    before = count.calls.get(ident) if ident else None
    if not ident or response is None or (before is not None and before.called):
        raise Irregular
    name = (told.name or kind.removesuffix("_call"))[:PREVIEW]
    if before is not None:
        call, call.name = before, name
        call.also()
    else:
        call = _new(count, ident, name, count.time, response.position, "c")
        call.outcome = Outcome(answered=kind in DONE_CALLS, word=word(told.status))
    call.called = True
    _went(call, call.outcome)


def answered(count: CountState, told: lean.Output) -> None:
    """Count what a tool answered. Only what did not go well is decoded."""
    count.close()
    call = count.calls.get(told.call_id) if told.call_id else None
    if call is None:
        raise Irregular
    call.also()
    before = call.outcome
    took = None
    if before.duration_ms is None and count.time >= call.start:
        took = number((count.time - call.start) * 1000)
    well, code = (False, None) if before.failed or before.code else went_well(told.output)
    if well:
        call.skipped = call.skipped or not before.message
        if took is None and before.answered and (code is None or before.code is not None):
            return
        outcome = Outcome(answered=True, code=code, duration_ms=took)
    else:
        payload = strict(count.data)["payload"]
        if spawned(payload):
            raise Irregular
        outcome = of_output(payload)
        outcome = outcome if took is None else msgspec.structs.replace(outcome, duration_ms=took)
    _went(call, before.and_then(outcome))


def ran(count: CountState, told: lean.Completed, item: lean.CommandExecution) -> None:
    """Count what an event says of a command."""
    if item.status != "completed" or item.exit_code or not item.id:
        event_of_call(count, record_of(strict(count.data)))
        return
    began, ended = told.started_at_ms, told.completed_at_ms
    took = ended - began if began and ended and ended >= began else None
    start = began / 1000 if began else None
    outcome = Outcome(True, False, item.exit_code, "completed", started_at=start, duration_ms=took)
    call = _told_of(count, item.id, "exec_command", start or count.time)
    call.skipped = call.skipped or not call.outcome.message
    _went(call, call.outcome.and_then(outcome))


def event_of_call(count: CountState, record: Record) -> bool:
    """Count an event that tells of a call; False for any other event."""
    tool = tool_of(record)
    if tool is None:
        return False
    if spawned(record.payload):
        raise Irregular
    began = number(record.payload.get("started_at_ms"))
    call = _told_of(count, *tool, began / 1000 if began else count.time)
    _went(call, call.outcome.and_then(of_event(record.payload)))
    return True


def _told_of(count: CountState, ident: str, name: str, began: float) -> Call:
    """The call of which an event tells, a new one if the model's call is not there yet."""
    call = count.calls.get(ident)
    if call is not None:
        call.also()
        return call
    told, turn = count.told, count.turn
    above = turn.position if turn is not None else ()
    if told is not None and turn is not None and told.position[:-1] == turn.position:
        above = told.position
    return _new(count, ident, name, began, above)


def _new(count: CountState, ident: str, name: str, began: float, above: Position, suffix: str = "") -> Call:
    call = Call((*above, count.number()), f"l{count.line}{suffix}", name[:PREVIEW], began)
    count.calls[ident] = call
    return call


def _went(call: Call, outcome: Outcome) -> None:
    call.outcome = outcome
    if outcome.status[0] is not Status.RUNNING:
        call.duration = outcome.duration_ms
        if outcome.started_at is not None:
            call.start = outcome.started_at
