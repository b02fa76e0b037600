"""What begins in one event and ends in another: hooks, permissions that are asked for, compactions."""

from __future__ import annotations

from typing import Any

from tracetui.formats.copilot.state import DONE, RUNNING, Mark, State
from tracetui.formats.copilot.usage import usage_of
from tracetui.formats.copilot.words import fewer, permission_preview
from tracetui.formats.scalars import child, string, word
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource

_OPERATIONS = {"hook": Operation.HOOK, "permission": Operation.POLICY}


def begin(session: State, mark: Mark) -> None:
    """It begins; or goes on, where it has begun."""
    key = _key(mark)
    before = session.pairs.get(key)
    if before is not None:
        session.pairs[key] = session.also(before, mark)
        return
    session.pairs[key] = _new(session, mark, **_begun(mark))


def end(session: State, mark: Mark) -> None:
    """It ends; an end of which no beginning is known stands for all of it."""
    span = session.pairs.pop(_key(mark), None)
    fields = _ended(session, mark)
    if span is None:
        _new(session, mark, **fields)
        return
    session.over(span, mark, **fields | {"preview": fields.get("preview") or span.preview})


def _kind(mark: Mark) -> str:
    kind = mark.event.kind
    return "compaction" if "compaction" in kind else kind.partition(".")[0]


def _key(mark: Mark) -> str:
    """What tells one from another: its id; of compactions there is one at a time in each conversation."""
    kind, data = _kind(mark), mark.event.data
    ident = {"hook": data.get("hookInvocationId"), "permission": data.get("requestId")}.get(kind, mark.key)
    return f"{kind} {word(ident) or ''}"


def _new(session: State, mark: Mark, **fields: Any) -> Span:
    kind, data = _kind(mark), mark.event.data
    name = (word(data.get("hookType")) or "hook") if kind == "hook" else kind
    ident = word(child(data, "permissionRequest").get("toolCallId")) or word(data.get("toolCallId"))
    call = session.calls.get(ident) if ident is not None and kind == "permission" else None
    if call is not None and call.span is not None:
        fields |= {"parent_id": call.span.id, "step": call.span.step}
    return session.new(mark, name, _OPERATIONS.get(kind, Operation.OTHER), **fields)


def _begun(mark: Mark) -> dict[str, Any]:
    kind, data = _kind(mark), mark.event.data
    if kind == "permission":
        waits = {"status": Status.PAUSED, "status_source": StatusSource.DERIVED}
        return {"preview": permission_preview(data), **waits}
    if kind == "hook":
        return {"preview": (string(child(data, "input").get("toolName")) or "")[:PREVIEW], **RUNNING}
    return {"note": (word(data.get("trigger")) or "")[:PREVIEW], **RUNNING}


def _ended(session: State, mark: Mark) -> dict[str, Any]:
    kind, data = _kind(mark), mark.event.data
    if kind == "permission":
        return _decided(data)
    fields: dict[str, Any] = dict(DONE)
    if data.get("success") is True:
        fields["status_source"] = StatusSource.EXPLICIT
    if (error := failure_of(data)) is not None:
        fields = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": error}
    if kind == "compaction":
        fields["preview"] = fewer(data.get("preCompactionTokens"), data.get("postCompactionTokens"))
        if trigger := word(data.get("trigger")):
            fields["note"] = trigger[:PREVIEW]
        usage = usage_of(child(data, "compactionTokensUsed"))
        if usage and not session.ledger.open.calls:  # else it has a record of its own
            session.ledger = session.ledger.say(usage)
            fields["usage"] = usage
    return fields


def failure_of(data: dict[str, Any]) -> Error | None:
    """Why a hook or a compaction failed, None if it did not."""
    told = data.get("error")
    if data.get("success") is not False and not told:
        return None
    said = string(told) or string(child(data, "error").get("message")) or "failed"
    return Error(said[:MESSAGE_LIMIT])


def _decided(data: dict[str, Any]) -> dict[str, Any]:
    """What was decided; a refusal is no failure."""
    word_ = word(child(data, "result").get("kind"))
    if word_ is None:
        return dict(DONE)
    refused = word_.startswith(("denied", "cancelled", "rejected"))
    status = Status.CANCELLED if refused else Status.OK
    return {"status": status, "status_source": StatusSource.EXPLICIT, "status_word": word_, "note": word_[:PREVIEW]}
