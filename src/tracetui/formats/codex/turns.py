"""Turns of a Codex thread: from ``task_started`` to its end; old ones begin with a prompt."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.codex.records import ITEM, At, Record
from tracetui.formats.codex.state import Mark, State
from tracetui.formats.codex.words import HEARD
from tracetui.formats.scalars import child, number, string
from tracetui.model import PREVIEW, Error, Operation, Status, StatusSource

_RUNNING: Final = {"status": Status.RUNNING, "status_source": StatusSource.DERIVED}


def open_turn(session: State, mark: Mark, *, implicit: bool) -> None:
    """Begin a turn. One that is open still has no end: nothing more will be heard of it."""
    turn = session.turn
    if turn is not None and session.implicit and session.told is None and not implicit:
        session.turn = session.also(turn, mark, **_RUNNING) or turn
        session.implicit = False
        return
    leave(session)
    session.turns, session.implicit = session.turns + 1, implicit
    own = () if mark.record.kind == ITEM or mark.record.name in HEARD else mark.place
    _agent(session, **_RUNNING, status_word=None, error=None)
    session.turn = session.new(
        mark,
        "turn",
        Operation.TURN,
        "t",
        step=session.turns if session.agent is None else None,
        is_step=session.agent is None,
        at=At(own, session.file),
        **({} if implicit else _RUNNING),
    )
    between, session.between = session.between, {}
    for early in between.values():
        session.add(msgspec.structs.replace(early, parent_id=session.turn.id, step=session.turn.step))


def leave(session: State) -> None:
    """Nothing more will be heard of what is open."""
    settle(session, Status.UNKNOWN, None)
    if session.turn is not None and session.turn.status is Status.RUNNING:
        session.add(msgspec.structs.replace(session.turn, status=Status.UNKNOWN, status_source=None))
    session.turn = session.told = session.heard = None


def _agent(session: State, **fields: Any) -> None:
    """Tell how the agent stands whose thread this is."""
    if session.agent is not None:
        session.agent = session.add(msgspec.structs.replace(session.agent, **fields))


def end_turn(session: State, mark: Mark) -> None:
    payload = mark.record.payload
    session.end, session.end_failure = mark.record, session.failure
    status, name, failure = outcome_of_turn(mark.record, session.failure)
    session.failure = None
    close(session)
    cancelled = status is Status.CANCELLED
    settle(session, status if cancelled else Status.UNKNOWN, StatusSource.EXPLICIT if cancelled else None)
    turn, session.turn = session.turn, None
    if turn is None:
        session.row(mark)
        return
    took = number(payload.get("duration_ms"))
    took = since(turn.started_at, mark.time) if took is None else took
    fields = {"status": status, "status_word": name, "status_source": StatusSource.EXPLICIT, "error": failure}
    session.also(turn, mark, duration_ms=took, **fields)
    if session.agent is not None:
        _agent(session, duration_ms=since(session.agent.started_at, mark.time), **fields)
    session.last_assistant = string(payload.get("last_agent_message")) or session.last_assistant


def outcome_of_turn(record: Record, failure: Error | None) -> tuple[Status, str, Error | None]:
    """How a turn ended, by the record that ended it and the error after which the model said nothing."""
    if record.type == "turn_aborted":
        return Status.CANCELLED, string(record.payload.get("reason")) or "aborted", None
    told = record.payload.get("error")
    if told is not None and told is not False:
        failure = error_of(record.payload["error"] if isinstance(told, dict) else {"message": told})
    return (Status.OK, "task_complete", None) if failure is None else (Status.ERROR, "error", failure)


def error_of(told: dict[str, Any]) -> Error:
    """What an error says of itself."""
    inner = child(told, "error") or told
    info = inner.get("codex_error_info", inner.get("kind"))
    if isinstance(info, dict):
        info = next(iter(info), None)
    kind = string(info)
    return Error((string(inner.get("message")) or kind or "error").strip()[:500], kind and kind[:PREVIEW])


def settle(session: State, status: Status, source: StatusSource | None) -> None:
    """The conversation went on or ended: calls of this turn without an answer are not running any more."""
    for ident in session.waiting:
        call = session.calls.get(ident)
        if call is not None and call.span.status is Status.RUNNING:
            span = msgspec.structs.replace(call.span, status=status, status_source=source)
            session.calls[ident] = msgspec.structs.replace(call, span=session.add(span))
    session.waiting = {}


def close(session: State) -> None:
    """The response is over: what the model says next is another."""
    if session.told is not None and session.told.open:
        session.told = msgspec.structs.replace(session.told, open=False)


def since(begin: float | None, end: float | None) -> float | None:
    """Milliseconds from `begin` to `end`, None where one is not told or they are the wrong way round."""
    return None if begin is None or end is None or end < begin else number((end - begin) * 1000)
