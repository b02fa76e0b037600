"""Sub-agents: their events are among those of the session, and stand below the call that began them.

Events of a sub-agent have its `agentId`; those of old versions only the id of that call.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tracetui.formats.copilot.records import At, Event, whole
from tracetui.formats.copilot.state import MAIN, RUNNING, Mark, State, Talk
from tracetui.formats.copilot.talk import use_model
from tracetui.formats.copilot.turns import leave
from tracetui.formats.scalars import number, string, word
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource, Usage

LIFE = frozenset({"subagent.started", "subagent.configured", "subagent.completed", "subagent.failed"})
"""Events that tell of a sub-agent itself."""


def whose(session: State, event: Event) -> str:
    """Key of the conversation that an event belongs to."""
    agent = word(event.outer.get("agentId"))
    call = word(event.data.get("parentToolCallId"))
    if call is None and event.kind in LIFE:
        call = word(event.data.get("toolCallId"))
    if agent is not None:
        return MAIN if agent == "main" else agent
    return MAIN if call is None else session.agents.get(call, call)


def live(session: State, mark: Mark) -> None:
    """What is told of a sub-agent itself."""
    if mark.key == MAIN:
        session.row(mark)
        return
    kind, data = mark.event.kind, mark.event.data
    agent = session.talk(mark.key).agent
    if agent is None:
        return
    if agent.at.places != mark.place:
        agent = session.also(agent, mark)
    if kind == "subagent.started":
        agent = _started(session, mark, agent)
    elif kind != "subagent.configured":
        leave(session, mark.key)
        agent = session.change(agent, **_ended(kind, data))
    session.put(mark.key, session.talk(mark.key), agent=agent)
    use_model(session, mark.key, data.get("model"))


def join(session: State, mark: Mark) -> None:
    """Have a place for the sub-agent that an event belongs to."""
    if mark.key == MAIN or session.talk(mark.key).agent is not None:
        return
    data, own = mark.event.data, mark.event.kind in LIFE
    call = word(data.get("parentToolCallId")) or (word(data.get("toolCallId")) if own else None)
    place = {"at": At(mark.place if own else ())}
    span = session.new(
        msgspec.structs.replace(mark, key=MAIN), "sub-agent", Operation.INVOKE_AGENT, "a", **RUNNING, **place
    )
    session.put(mark.key, session.talk(mark.key), agent=_below(session, span, call, mark.key))


def _below(session: State, span: Span, call: str | None, key: str) -> Span:
    """The sub-agent below the call that began it."""
    if call is None:
        return span
    session.agents[call] = key
    known = session.calls.get(call)
    if known is None or known.span is None:
        return span
    return session.change(span, parent_id=known.span.id, step=known.span.step)


def adopt(session: State, ident: str, call: Span) -> None:
    """A call begins of which the sub-agent is known already."""
    key = session.agents.get(ident)
    talk = session.talk(key) if key is not None else Talk()
    if key is not None and talk.agent is not None and talk.agent.parent_id != call.id:
        session.put(key, talk, agent=session.change(talk.agent, parent_id=call.id, step=call.step))


def _started(session: State, mark: Mark, agent: Span) -> Span:
    data = mark.event.data
    name = word(data.get("agentName")) or word(data.get("agentDisplayName")) or agent.name
    called = string(data.get("agentDisplayName")) or ""
    agent = session.change(
        agent,
        name=name[:PREVIEW],
        preview=(string(data.get("agentDescription")) or called)[:PREVIEW],
        note=called[:PREVIEW] if called != name else "",
        status_word=None,
        error=None,
        duration_ms=None,
        **RUNNING,
    )
    return _below(session, agent, word(data.get("toolCallId")), mark.key)


def _ended(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    status, error = Status.OK, None
    if kind == "subagent.failed":
        status = Status.ERROR
        error = Error((string(data.get("error")) or "failed")[:MESSAGE_LIMIT])
    elif data.get("cancelled") is True:
        status = Status.CANCELLED
    took, tokens = number(data.get("durationMs")), whole(data.get("totalTokens"))
    fields: dict[str, Any] = {"status": status, "status_source": StatusSource.EXPLICIT, "error": error}
    if took is not None and took >= 0:
        fields["duration_ms"] = took
    return fields | ({"usage": Usage(total_tokens=tokens)} if tokens is not None else {})
