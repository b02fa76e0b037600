"""Turns of a conversation: a response and its calls, from ``assistant.turn_start`` to ``assistant.turn_end``."""

from __future__ import annotations

from typing import Any

import msgspec

from tracetui.formats.copilot.records import At
from tracetui.formats.copilot.state import DONE, MAIN, RUNNING, Mark, State
from tracetui.formats.scalars import string, word
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource


def open_turn(session: State, mark: Mark, *, implicit: bool = False) -> Span:
    """Begin a turn. One that is open still has no end: nothing more will be heard of it."""
    leave(session, mark.key)
    main = mark.key == MAIN
    if main:
        session.turns += 1
    fields: dict[str, Any] = {"at": At()} if implicit else dict(RUNNING)
    number = session.turns if main else None
    turn = session.new(mark, "turn", Operation.TURN, "t", step=number, is_step=main, **fields)
    session.put(mark.key, session.talk(mark.key), turn=turn, implicit=implicit, told=None)
    return turn


def leave(session: State, key: str) -> None:
    """Nothing more will be heard of what is open in this conversation, but for the sub-agent itself."""
    settle(session, key, Status.UNKNOWN, None)
    talk = session.talk(key)
    if talk.turn is not None and talk.turn.status is Status.RUNNING:
        session.change(talk.turn, status=Status.UNKNOWN, status_source=None)
    session.put(key, talk, turn=None, told=None, implicit=False)


def leave_all(session: State) -> None:
    """The same of everything: the program that wrote it has ended."""
    for key in list(session.open):
        leave(session, key)
        talk = session.talk(key)
        if talk.agent is not None and talk.agent.status is Status.RUNNING:
            agent = session.change(talk.agent, status=Status.UNKNOWN, status_source=None)
            session.put(key, talk, agent=agent)
    for span in session.pairs.values():
        session.change(span, status=Status.UNKNOWN, status_source=None)
    session.pairs = {}


def settle(session: State, key: str, status: Status, source: StatusSource | None) -> None:
    """Calls of this conversation without a result are not running any more."""
    for ident in session.waiting.pop(key, ()):
        call = session.calls.get(ident)
        if call is not None and call.span is not None and call.span.status is Status.RUNNING:
            span = session.change(call.span, status=status, status_source=source)
            session.calls[ident] = msgspec.structs.replace(call, span=span)


def end_turn(session: State, mark: Mark) -> None:
    talk = session.talk(mark.key)
    turn = talk.turn
    if turn is None:
        session.row(mark)
        return
    fields: dict[str, Any] = dict(DONE)
    if talk.stopped is not None:
        fields = {"status": Status.CANCELLED, "status_source": StatusSource.EXPLICIT, "status_word": talk.stopped}
    elif talk.failure is not None:
        fields = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": talk.failure}
    session.over(turn, mark, **fields)
    session.put(mark.key, talk, turn=None, told=None, implicit=False)


def fail(session: State, mark: Mark) -> None:
    """Something went wrong that is no failed call of a tool."""
    error = error_of(mark.event.data)
    fields: dict[str, Any] = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": error}
    span = session.row(mark, Operation.OTHER, preview=error.message[:PREVIEW], **fields)
    if mark.event.kind == "session.error":
        session.put(mark.key, session.talk(mark.key), failure=error, failed=span)


def abort(session: State, mark: Mark) -> None:
    """Somebody stopped the model: what it was about is cancelled."""
    reason = (word(mark.event.data.get("reason")) or "aborted")[:PREVIEW]
    fields = {"status": Status.CANCELLED, "status_source": StatusSource.EXPLICIT}
    settle(session, mark.key, Status.CANCELLED, StatusSource.EXPLICIT)
    session.row(mark, Operation.OTHER, preview=reason, **fields)
    talk = session.talk(mark.key)
    turn = talk.turn and session.change(talk.turn, status_word=reason, **fields)
    session.put(mark.key, talk, turn=turn, stopped=reason, failure=None, failed=None)


def error_of(data: dict[str, Any]) -> Error:
    """What an error says of itself."""
    names = ("errorType", "errorCode", "failureKind", "code")
    kind = next((found for name in names if (found := word(data.get(name)))), None)
    told = (string(data.get("message")) or string(data.get("errorMessage")) or "").strip()
    return Error((told or kind or "error")[:MESSAGE_LIMIT], kind and kind[:PREVIEW])
