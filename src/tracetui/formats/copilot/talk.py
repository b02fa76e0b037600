"""What was said in a conversation: messages that came from outside, and responses of the model with their tokens."""

from __future__ import annotations

from typing import Any

from tracetui.formats.copilot.records import whole
from tracetui.formats.copilot.state import DONE, MAIN, Call, Mark, State, Talk, Told
from tracetui.formats.copilot.turns import leave, open_turn
from tracetui.formats.copilot.usage import usage_of
from tracetui.formats.copilot.words import CUT, QUIET, call_preview
from tracetui.formats.scalars import child, number, sequence, string, word
from tracetui.model import PREVIEW, Error, Operation, Span, Status, StatusSource, Usage

_TOKENS_ONLY = "(only its tokens were recorded)"


def hear(session: State, mark: Mark) -> None:
    """A message that came from outside: a prompt, or what the program puts into the conversation."""
    data, talk = mark.event.data, session.talk(mark.key)
    said = string(data.get("content")) or ""
    source = word(data.get("source"))
    role = "user" if mark.event.kind == "user.message" else word(data.get("role")) or "system"
    typed = role == "user" and source in (None, "user")
    if role == "user" and talk.implicit:
        leave(session, mark.key)
    if role == "user" and mark.key == MAIN and not typed:
        role = "meta"
    note = (source or "")[:PREVIEW] if mark.key == MAIN else ""
    session.new(mark, role, Operation.MESSAGE, preview=said.strip()[:PREVIEW], note=note, **DONE)
    if role == "system" and mark.key == MAIN and session.system is None:
        session.system = said
    if typed and mark.key == MAIN:
        session.put(mark.key, session.talk(mark.key), failure=None, failed=None, stopped=None)
        session.last_user = said
        if session.prompt is None and said.strip():
            session.prompt = said.strip()[:PREVIEW]


def use_model(session: State, key: str, model: Any) -> str | None:
    """Take note of the model that a conversation uses; ``auto`` is none."""
    found = word(model)
    if found is None or found == "auto":
        return session.talk(key).model
    if key == MAIN and session.model is None:
        session.model = found
    talk = session.talk(key)
    if talk.model != found:
        session.put(key, talk, model=found)
    return found


def say(session: State, mark: Mark) -> None:
    """A response, or a piece of one."""
    data = mark.event.data
    said, thought = string(data.get("content")) or "", string(data.get("reasoningText")) or ""
    call = word(data.get("apiCallId"))
    use_model(session, mark.key, data.get("model"))
    told = session.talk(mark.key).told
    joins = told is not None and (told.call == call if call is not None and told.call is not None else not told.spoke)
    told = _respond(session, mark, call, said.strip() or thought.strip(), joins=joins, spoke=True)
    session.put(mark.key, session.talk(mark.key), failure=None, failed=None, stopped=None)
    talk = session.talk(mark.key)
    if talk.turn is not None and not talk.turn.preview and told.span.preview:
        session.put(mark.key, talk, turn=session.change(talk.turn, preview=told.span.preview))
    if said and mark.key == MAIN:
        session.last_assistant = said
    if not told.recorded:
        told = _count(session, mark, told, whole(data.get("outputTokens")))
    for request in sequence(data.get("toolRequests")):
        if isinstance(request, dict):
            _ask(session, request, told.span)


def _count(session: State, mark: Mark, told: Told, made: int | None) -> Told:
    """The response with the tokens that a piece of it tells: those of all of it, as far as it got."""
    before = told.span.usage.output_tokens if told.span.usage is not None else None
    if made is None or (before is not None and made <= before):
        return told
    session.ledger = session.ledger.say(Usage(output_tokens=made - (before or 0)))
    return _keep(session, mark.key, told, session.change(told.span, usage=Usage(output_tokens=made)))


def think(session: State, mark: Mark) -> None:
    """A thought that has an event of its own; its message comes after it."""
    told = session.talk(mark.key).told
    thought = (string(mark.event.data.get("content")) or "").strip()
    _respond(session, mark, None, thought, joins=told is not None and not told.spoke, spoke=False)


def use(session: State, mark: Mark) -> None:
    """What a call of the model used."""
    data = mark.event.data
    told = child(data, "usage") or data
    call, usage = word(told.get("apiCallId")), usage_of(told)
    use_model(session, mark.key, told.get("model"))
    last = session.talk(mark.key).told
    same = last is not None and (last.call == call if call is not None and last.call is not None else not last.recorded)
    if _is_counted(session, told) or (last is not None and same and last.recorded):
        session.row(mark, preview="counted before")
        return
    session.ledger = session.ledger.record(told, usage)
    if last is not None and same and last.span.usage is not None:
        session.ledger = session.ledger.unsay(last.span.usage)
    compaction = session.pairs.get(f"compaction {mark.key}")
    if compaction is not None and not same and "compaction" in (word(told.get("interactionType")) or ""):
        session.pairs[f"compaction {mark.key}"] = session.also(compaction, mark, usage=usage or None)
        return
    found = _respond(session, mark, call, "", joins=same, spoke=False, recorded=True)
    end = word(told.get("finishReason"))
    took = number(told.get("duration"))
    took = None if took is None or took < 0 else took
    fields: dict[str, Any] = {"usage": usage or None, "duration_ms": took, **_ended(end)}
    if took is not None and mark.time is not None:
        fields["started_at"] = mark.time - took / 1000
    span = session.change(found.span, **fields)
    _keep(session, mark.key, Told(span, found.call, found.spoke, recorded=True), span)


def _ended(end: str | None) -> dict[str, Any]:
    """How a response stands by the reason for which it ended."""
    if end is None:
        return {}
    if end in CUT:
        error = Error(f"stopped: {end}", end)
        return {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "status_word": end, "error": error}
    return {"status_word": end[:PREVIEW], "note": "" if end in QUIET else end[:PREVIEW]}


def _is_counted(session: State, told: dict[str, Any]) -> bool:
    """Whether this record was there before: each has a number in the session that paid for it."""
    account = child(told, "accounting")
    source, place = string(account.get("sourceSessionId")), whole(account.get("sequence"))
    if source is None or place is None:
        return False
    ident = f"{place} {source}"
    if session.counted.get(ident):
        return True
    session.counted[ident] = True
    return False


def _respond(
    session: State, mark: Mark, call: str | None, text: str, *, joins: bool, spoke: bool, recorded: bool = False
) -> Told:
    """The response that this event is part of: the latest one where it `joins` that, else another.

    What the model says outside of a turn begins one; what was `recorded` of it does not.
    """
    talk = session.talk(mark.key)
    told = talk.told
    if told is None or not joins:
        if talk.turn is None and talk.agent is None and not recorded:
            open_turn(session, mark, implicit=True)
            talk = session.talk(mark.key)
        model, shown = talk.model, text[:PREVIEW] if spoke or text else _TOKENS_ONLY
        span = session.new(mark, model or "assistant", Operation.CHAT, model=model, preview=shown, **DONE)
        told = Told(span, call, spoke)
    else:
        fields: dict[str, Any] = {}
        if spoke and not told.spoke:
            fields["preview"] = text[:PREVIEW] or ("" if told.span.preview == _TOKENS_ONLY else told.span.preview)
        if talk.model is not None and told.span.model is None:
            fields |= {"name": talk.model[:PREVIEW], "model": talk.model}
        told = Told(session.also(told.span, mark, **fields), told.call or call, told.spoke or spoke, told.recorded)
    return _keep(session, mark.key, told, told.span)


def _keep(session: State, key: str, told: Told, span: Span) -> Told:
    told = Told(span, told.call, told.spoke, told.recorded)
    talk: Talk = session.talk(key)
    session.put(key, talk, told=told)
    return told


def _ask(session: State, request: dict[str, Any], response: Span) -> None:
    """A call that a response asks for; its span comes when it begins, or came already."""
    ident = word(request.get("toolCallId"))
    if ident is None:
        return
    name = word(request.get("name")) or "tool"
    before = session.calls.get(ident)
    if before is not None and before.span is not None and before.above is None:
        span = session.change(before.span, parent_id=response.id, step=response.step)
        session.calls[ident] = Call(name, before.preview, response.id, response.step, span, before.done)
        return
    session.calls[ident] = Call(name, call_preview(request), response.id, response.step)
