"""Tool calls: what the model asked for, the event that begins a call and the one with its result are one span."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.copilot.agents import adopt
from tracetui.formats.copilot.state import RUNNING, Call, Mark, State
from tracetui.formats.copilot.talk import use_model
from tracetui.formats.copilot.turns import error_of
from tracetui.formats.copilot.words import call_preview
from tracetui.formats.scalars import child, number, string, word
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource

DECLINED: Final = frozenset({"rejected", "denied"})
"""Error codes of calls that somebody did not allow."""


def begin(session: State, mark: Mark) -> None:
    """A call begins: of the model, or of the user."""
    data = mark.event.data
    ident = word(data.get("toolCallId"))
    name = word(data.get("toolName")) or "tool"
    call = session.calls.get(ident) if ident is not None else None
    if call is not None and call.span is not None and not call.done:  # the user's: asked for, then begun
        session.calls[ident or ""] = msgspec.structs.replace(call, span=session.also(call.span, mark))
        return
    asked = Call(name) if call is None or call.span is not None else call
    span = _new(session, mark, name, call_preview(data) or asked.preview, asked)
    if ident is None:
        session.problem(mark.line, f"a call of {name[:PREVIEW]} has no id: its result cannot be told")
        session.change(span, status=Status.UNKNOWN, status_source=None)
        return
    session.calls[ident] = msgspec.structs.replace(asked, span=span)
    adopt(session, ident, span)
    session.waiting.setdefault(mark.key, {})[ident] = None
    session.open[mark.key] = None


def progress(session: State, mark: Mark) -> None:
    """What a call tells while it goes on."""
    ident = word(mark.event.data.get("toolCallId"))
    call = session.calls.get(ident) if ident is not None else None
    if ident is None or call is None or call.span is None:
        session.row(mark)
        return
    session.calls[ident] = msgspec.structs.replace(call, span=session.also(call.span, mark))


def end(session: State, mark: Mark) -> None:
    """The result of a call."""
    data = mark.event.data
    ident = word(data.get("toolCallId"))
    call = session.calls.get(ident) if ident is not None else None
    use_model(session, mark.key, data.get("model"))
    if call is None or ident is None:
        shown = repr(ident[:PREVIEW]) if ident is not None else "without an id"
        session.problem(mark.line, f"a result, but no call {shown} waits for one")
        preview = (string(child(data, "result").get("content")) or "")[:PREVIEW]
        span = _new(session, mark, word(data.get("toolName")) or "tool", preview, Call(""))
        session.change(span, **outcome(data))
        return
    if call.span is None:  # that it began was not told
        span = _new(session, mark, call.name, call.preview, call, started_at=None)
        span = session.change(span, **outcome(data))
        adopt(session, ident, span)
    else:
        span = session.over(call.span, mark, **outcome(data))
    session.calls[ident] = msgspec.structs.replace(call, span=span, done=True)
    session.waiting.get(mark.key, {}).pop(ident, None)


def _new(session: State, mark: Mark, name: str, preview: str, asked: Call, **fields: Any) -> Span:
    """A call, below the response that asked for it."""
    if asked.above is not None:
        fields |= {"parent_id": asked.above, "step": asked.step}
    return session.new(mark, name, Operation.EXECUTE_TOOL, preview=preview, **(RUNNING | fields))


def outcome(data: dict[str, Any]) -> dict[str, Any]:
    """How a call went: it says so itself; a command that was run well may have failed all the same."""
    success, told = data.get("success"), data.get("error")
    error = error_of(told) if isinstance(told, dict) else None
    if success is False or (success is not True and error is not None):
        if error is not None and error.type in DECLINED:
            return {"status": Status.CANCELLED, "status_source": StatusSource.EXPLICIT, "status_word": error.type}
        said = string(told) or string(child(data, "result").get("content")) or "failed"
        found = error or Error(said[:MESSAGE_LIMIT])
        return {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": found}
    code = exit_code(data)
    if code:
        said = string(child(data, "result").get("content")) or ""
        kind = f"exit {code}"
        found = Error(said.strip()[:MESSAGE_LIMIT] or kind, kind)
        return {"status": Status.ERROR, "status_source": StatusSource.EXIT, "error": found}
    source = StatusSource.EXIT if code == 0 else StatusSource.EXPLICIT if success is True else StatusSource.DERIVED
    return {"status": Status.OK, "status_source": source}


def exit_code(data: dict[str, Any]) -> int | None:
    """The exit code of the command that a call ran."""
    told = child(data, "shellExecution").get("exitCode")
    if told is None:
        told = child(child(data, "toolTelemetry"), "metrics").get("exit_code")
    found = number(told)
    return int(found) if found is not None and found.is_integer() and abs(found) < 1 << 32 else None
