"""From one record of a pi session to its spans; what links records to each other is in `session`.

A message of the assistant is a model call, each ``toolCall`` block of it a tool call below it.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tracetui.formats.calls import argument
from tracetui.formats.pi.records import (
    At,
    Record,
    begun,
    blocks_of,
    kind_of,
    message_of,
    spoken,
    text_in,
    type_of,
    usage_of,
)
from tracetui.formats.scalars import between, mapping, moment, natural, number, text, word
from tracetui.model import COPIED, MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource
from tracetui.model.status import status_of

ABANDONED: Final = "abandoned"
_BY_HAND: Final = "by the user"
_WORDS: Final = {
    "stop": Status.OK,
    "toolUse": Status.OK,
    "length": Status.ERROR,
    "error": Status.ERROR,
    "aborted": Status.CANCELLED,
}
"""How a response ended. One that came to the limit of tokens is cut off."""
_QUIET: Final = frozenset({"stop", "toolUse"})
"""Stop reasons that go without saying."""
ROLES: Final = {
    "user": "user",
    "custom": "custom message",
    "hookMessage": "custom message",
    "branchSummary": "branch summary",
    "compactionSummary": "compaction summary",
    "system": "system",
}
"""Roles of messages that entered the conversation from outside, and what they are called."""
_Outcome = tuple[Status, StatusSource, Error | None]


def message_span(record: Record, ident: str, name: str, at: At) -> Span:
    """A prompt, or what the program or an extension puts into the conversation."""
    message = message_of(record)
    return Span(
        id=ident,
        name=name,
        operation=Operation.MESSAGE,
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        started_at=begun(message, moment(record.get("timestamp"))),
        preview=(spoken(text_in(message.get("content"))) or text(message.get("summary")) or "")[:PREVIEW],
        note=(text(message.get("customType")) or "")[:PREVIEW],
        at=at,
    )


def response_span(record: Record, ident: str, at: At) -> Span:
    """A response of the model."""
    message, written = message_of(record), moment(record.get("timestamp"))
    started, model, reason = begun(message, written), word(message.get("model")), word(message.get("stopReason"))
    status, source, error = stopped(message)
    return Span(
        id=ident,
        name=model or "assistant",
        operation=Operation.CHAT,
        status=status,
        status_word=reason,
        status_source=source,
        started_at=started,
        duration_ms=between(started, written) or None,
        usage=usage_of(message.get("usage")),
        error=error,
        model=model,
        preview=_said(blocks_of(message.get("content"))),
        note="" if reason is None or reason in _QUIET else reason[:PREVIEW],
        at=at,
    )


def stopped(message: Record) -> _Outcome:
    """How a response ended, as its stop reason says."""
    reason = text(message.get("stopReason"))
    if reason is None:
        return Status.OK, StatusSource.DERIVED, None
    status = _WORDS.get(reason) or status_of(reason)
    if status is not Status.ERROR:
        return status, StatusSource.EXPLICIT, None
    told = text(message.get("errorMessage")) or f"stopped: {reason}"
    return status, StatusSource.EXPLICIT, Error(told[:MESSAGE_LIMIT], None if reason == "error" else word(reason))


def call_span(block: Record, parent: Span, written: float | None, ident: str, at: At) -> Span:
    """A tool call that waits for its answer."""
    return Span(
        id=ident,
        name=word(block.get("name")) or "tool",
        operation=Operation.EXECUTE_TOOL,
        parent_id=parent.id,
        step=parent.step,
        status=Status.RUNNING,
        status_source=StatusSource.DERIVED,
        started_at=written,
        preview=argument(block.get("arguments")),
        note=COPIED if COPIED in parent.notes else "",
        at=at,
    )


def answered(call: Span, record: Record, line: tuple[int, int]) -> Span:
    """The call with its answer."""
    message = message_of(record)
    status, source, error = outcome(message)
    told = number(mapping(message.get("details")).get("durationMs"))
    if told is None or told < 0:
        told = between(call.started_at, moment(record.get("timestamp")))
    return replace(
        call,
        status=status,
        status_source=source,
        error=error,
        duration_ms=told,
        usage=usage_of(message.get("usage")),
        at=replace(call.at, answers=(*call.at.answers, line)),
    )


def answer_span(record: Record, ident: str, at: At) -> Span:
    """An answer whose call is not in the trace."""
    message = message_of(record)
    status, source, error = outcome(message)
    return Span(
        id=ident,
        name=word(message.get("toolName")) or "toolResult",
        operation=Operation.EXECUTE_TOOL,
        status=status,
        status_source=source,
        error=error,
        started_at=moment(record.get("timestamp")),
        usage=usage_of(message.get("usage")),
        preview=text_in(message.get("content"))[:PREVIEW],
        at=at,
    )


def outcome(message: Record) -> _Outcome:
    """How a tool call went: ``isError`` says so, else the exit code that some tools tell, else that it answered."""
    failed, code = message.get("isError"), natural(mapping(message.get("details")).get("exitCode"))
    if failed is True:
        return Status.ERROR, StatusSource.EXPLICIT, Error(text_in(message.get("content"))[:MESSAGE_LIMIT] or "failed")
    if code:
        return Status.ERROR, StatusSource.EXIT, _exit(code, text_in(message.get("content")))
    return Status.OK, StatusSource.EXPLICIT if failed is False else StatusSource.DERIVED, None


def command_span(record: Record, ident: str, at: At) -> Span:
    """A command that the user ran by hand, within the session."""
    message, code = message_of(record), message_of(record).get("exitCode")
    status, source, error = Status.UNKNOWN, StatusSource.DERIVED, None
    if message.get("cancelled") is True:
        status, source = Status.CANCELLED, StatusSource.EXPLICIT
    elif isinstance(code, int) and not isinstance(code, bool):
        status, source = (Status.ERROR if code else Status.OK), StatusSource.EXIT
        error = _exit(code, text(message.get("output")) or "") if code else None
    return Span(
        id=ident,
        name="bash",
        operation=Operation.EXECUTE_TOOL,
        status=status,
        status_source=source,
        error=error,
        started_at=moment(record.get("timestamp")),
        preview=(text(message.get("command")) or "")[:PREVIEW],
        note=_BY_HAND,
        at=at,
    )


def _exit(code: int, output: str) -> Error:
    kind = f"exit {code}"[:PREVIEW]
    return Error(output.strip()[:MESSAGE_LIMIT] or kind, kind)


def unsettled(call: Span) -> Span:
    """A call that nothing more will be heard of, as far as the trace tells."""
    return replace(call, status=Status.UNKNOWN, status_source=None)


def compaction_span(record: Record, ident: str, at: At) -> Span:
    """Where the conversation so far was replaced by a summary of it."""
    before = natural(record.get("tokensBefore"))
    return Span(
        id=ident,
        name="compaction",
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        started_at=moment(record.get("timestamp")),
        usage=usage_of(record.get("usage")),
        preview=(text(record.get("summary")) or "")[:PREVIEW],
        note="" if before is None else f"{before} tokens",
        at=at,
    )


def branch_span(record: Record, ident: str, at: At) -> Span:
    """What is told to the model of a branch that was left."""
    return replace(message_span(record, ident, ROLES["branchSummary"], at), usage=usage_of(record.get("usage")))


def usage_span(record: Record, ident: str, at: At) -> Span:
    """Tokens that were used outside of the conversation."""
    return Span(
        id=ident,
        name="usage",
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        started_at=moment(record.get("timestamp")),
        usage=usage_of(record.get("usage")),
        model=word(record.get("model")),
        preview=(text(record.get("kind")) or text(record.get("note")) or "")[:PREVIEW],
        at=at,
    )


def meta_span(record: Record, ident: str, at: At) -> Span:
    """What the program notes about itself."""
    return Span(
        id=ident,
        name="meta",
        operation=Operation.META,
        started_at=moment(record.get("timestamp")),
        preview=label_of(record),
        at=at,
    )


def unknown_span(record: Record, ident: str, name: str, at: At) -> Span:
    """A record of a kind that is not known: kept whole."""
    when = moment(record.get("timestamp"))
    return Span(id=ident, name=name[:PREVIEW], operation=Operation.UNKNOWN, started_at=when, at=at)


def label_of(record: Record) -> str:
    """What a note of the program says, in a few words."""
    kind = kind_of(record)
    field = _TELLING.get(kind)
    told = text(record.get(field)) if field is not None else None
    name = kind.removesuffix("_change").removesuffix("_level").replace("_", " ")
    return (f"{name} {told}" if told else name)[:PREVIEW]


_TELLING: Final = {
    "model_change": "modelId",
    "thinking_level_change": "thinkingLevel",
    "label": "label",
    "session_info": "name",
    "custom": "customType",
    "context_transform": "transformerName",
}
"""The field that tells one note of its kind from the next."""


def _said(blocks: list[Any]) -> str:
    """The first text of a response, else its first thought."""
    thought = ""
    for block in blocks:
        kind = type_of(block)
        if kind == "text" and (said := text(block.get("text"))):
            return said[:PREVIEW]
        if kind == "thinking" and not thought:
            thought = (text(block.get("thinking")) or "")[:PREVIEW]
    return thought
