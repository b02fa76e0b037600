"""From one record of a Claude Code session to its spans; what links records to each other is in `conversation`.

A response is a model call, whatever the number of its lines; each of its ``tool_use`` blocks a tool call below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from tracetui.formats.calls import argument, as_json
from tracetui.formats.claude_code.records import (
    SYNTHETIC,
    At,
    Record,
    blocks_of,
    command_in,
    content_of,
    kind_of,
    text_in,
    type_of,
    usage_of,
)
from tracetui.formats.scalars import between, mapping, moment, natural, number, text, word
from tracetui.model import COPIED, COUNTS_HERE, MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource
from tracetui.model.status import plain_word, status_of

ABANDONED: Final = "abandoned"
BACKGROUND: Final = "in the background"
FAILED: Final = "Error: "
"""How the result of a call begins that failed, where it is a text: else it is an object."""
_TEXT: Final = 0
"""`At.block` of a response whose preview is a text of it, not a thought."""
_QUIET: Final = frozenset({"end_turn", "tool_use", "stop_sequence"})
"""Stop reasons that go without saying."""
_Outcome = tuple[Status, StatusSource, str | None, Error | None]


def message_span(record: Record, ident: str, role: str, said: str, at: At) -> Span:
    """What stands in the user's name: a prompt, or what the program says there."""
    return Span(
        id=ident,
        name=role,
        operation=Operation.MESSAGE,
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        started_at=moment(record.get("timestamp")),
        preview=(command_in(said) if role == "command" else said or text_in(content_of(record)))[:PREVIEW],
        at=at,
    )


def response_span(record: Record, ident: str, at: At) -> Span:
    """A response of the model, by its first line."""
    model = word(mapping(record.get("message")).get("model"))
    return _told(
        Span(
            id=ident,
            name=("API" if record.get("isApiErrorMessage") is True else (model or "").strip("<>")) or "assistant",
            operation=Operation.CHAT,
            started_at=moment(record.get("timestamp")),
            model=None if model == SYNTHETIC else model,
            at=at,
        ),
        record,
    )


def response_goes_on(span: Span, record: Record, line: tuple[int, int]) -> Span:
    """The response with one more of its lines."""
    length = between(span.started_at, moment(record.get("timestamp")))
    at = replace(span.at, lines=(*span.at.lines, line))
    return _told(replace(span, at=at, duration_ms=length or span.duration_ms), record)


def _told(span: Span, record: Record) -> Span:
    """The span with what this line says: usage and stop reason grow, the last word holds."""
    message = mapping(record.get("message"))
    reason = word(message.get("stop_reason"))
    status, source, error = Status.OK, StatusSource.DERIVED, None
    if record.get("isApiErrorMessage") is True:
        kind = word(record.get("error"))
        status, source = Status.ERROR, StatusSource.EXPLICIT
        error = Error(text_in(message.get("content"))[:MESSAGE_LIMIT] or kind or "API error", kind)
    elif reason is not None:
        status, source = status_of(reason), StatusSource.EXPLICIT
        error = Error(f"stopped: {reason}"[:MESSAGE_LIMIT], reason) if status is Status.ERROR else None
    elif span.status_word is not None:
        reason, status, source, error = span.status_word, span.status, span.status_source or source, span.error
    preview, at = span.preview, span.at
    if at.block < _TEXT and (said := _said(blocks_of(message.get("content")))):
        is_text, begun = said
        if is_text or not preview:
            preview, at = begun, replace(at, block=_TEXT if is_text else at.block)
    return replace(
        span,
        status=status,
        status_word=reason,
        status_source=source,
        error=error,
        usage=usage_of(message.get("usage")) or span.usage,
        preview=preview,
        at=at,
        note="" if reason is None or plain_word(reason) in _QUIET else reason[:PREVIEW],
    )


def call_span(block: Record, record: Record, parent: Span, ident: str, at: At) -> Span:
    """A tool call that waits for its answer."""
    return Span(
        id=ident,
        name=word(block.get("name")) or "tool",
        operation=Operation.EXECUTE_TOOL,
        parent_id=parent.id,
        step=parent.step,
        status=Status.RUNNING,
        status_source=StatusSource.DERIVED,
        started_at=moment(record.get("timestamp")),
        preview=argument(block.get("input")),
        note=" · ".join(note for note in parent.notes if note in (COPIED, COUNTS_HERE)),
        at=at,
    )


def answered(call: Span, block: Record, record: Record, line: tuple[int, int]) -> Span:
    """The call with its answer."""
    status, source, how, error = outcome(block, record)
    result = mapping(record.get("toolUseResult"))
    told = number(result.get("totalDurationMs"))
    told = number(result.get("durationMs")) if told is None else told
    if told is None:
        told = between(call.started_at, moment(record.get("timestamp")))
    return replace(
        call,
        status=status,
        status_word=how,
        status_source=source,
        error=error,
        duration_ms=None if told is None or told < 0 else told,
        note=call.note or (BACKGROUND if result.get("isAsync") is True else ""),
        at=replace(call.at, answers=(*call.at.answers, line)),
    )


def outcome(block: Record, record: Record) -> _Outcome:
    """How a tool call went: ``is_error`` says so, else a result that is only an error, else that it answered."""
    failed, result = block.get("is_error"), record.get("toolUseResult")
    if failed is None and isinstance(result, str) and result.startswith(FAILED):
        return Status.ERROR, StatusSource.DERIVED, None, Error(_cut(text_in(block.get("content")) or result))
    if failed is True:
        return Status.ERROR, StatusSource.EXPLICIT, None, Error(_cut(text_in(block.get("content"))) or "failed")
    if isinstance(result, dict) and result.get("interrupted") is True:
        return Status.CANCELLED, StatusSource.EXPLICIT, "interrupted", None
    return Status.OK, StatusSource.EXPLICIT if failed is False else StatusSource.DERIVED, None, None


def answer_span(block: Record, record: Record, ident: str, at: At) -> Span:
    """An answer whose call is not in the trace."""
    status, source, how, error = outcome(block, record)
    return Span(
        id=ident,
        name=type_of(block) or "tool_result",
        operation=Operation.EXECUTE_TOOL,
        status=status,
        status_word=how,
        status_source=source,
        error=error,
        started_at=moment(record.get("timestamp")),
        preview=text_in(block.get("content"))[:PREVIEW],
        at=at,
    )


def unsettled(call: Span) -> Span:
    """A call that nothing more will be heard of, as far as the trace tells."""
    return replace(call, status=Status.UNKNOWN, status_source=None)


def compaction_span(record: Record, ident: str, at: At) -> Span:
    """Where the conversation so far was replaced by a summary of it."""
    told = mapping(record.get("compactMetadata"))
    before, after = natural(told.get("preTokens")), natural(told.get("postTokens"))
    words = [] if before is None else [f"{before} tokens"] if after is None else [f"{before} → {after} tokens"]
    return Span(
        id=ident,
        name="compaction",
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        started_at=moment(record.get("timestamp")),
        duration_ms=_length(told.get("durationMs")),
        preview=" ".join(words),
        note=(text(told.get("trigger")) or "")[:PREVIEW],
        at=at,
    )


def failure_span(record: Record, ident: str, at: At) -> Span:
    """A call of the API that failed and was mostly made again."""
    attempt, most = natural(record.get("retryAttempt")), natural(record.get("maxRetries"))
    cause = record.get("error")
    said = text(cause) or text(mapping(cause).get("message")) or (as_json(cause) if cause else "")
    kind = word(mapping(cause).get("type"))
    return Span(
        id=ident,
        name="API error",
        status=Status.ERROR,
        status_source=StatusSource.EXPLICIT,
        started_at=moment(record.get("timestamp")),
        error=Error(_cut(said or text_in(record.get("content"))) or "API error", kind),
        note="" if attempt is None else f"attempt {attempt}" if most is None else f"attempt {attempt} of {most}",
        at=at,
    )


def hook_span(record: Record, ident: str, at: At) -> Span:
    """A hook that ran, or the summary of those that ran at the end of a turn."""
    told = mapping(record.get("attachment")) if kind_of(record) == "attachment" else record
    kind = text(told.get("type")) or ""
    errors, code = told.get("hookErrors"), told.get("exitCode")
    failed = ("error" in kind and kind.startswith("hook_")) or bool(errors and isinstance(errors, list))
    status, source, error = Status.OK, StatusSource.DERIVED, None
    if failed:
        said = text(told.get("stderr")) or text_in(told.get("blockingError")) or (as_json(errors) if errors else "")
        status, source = Status.ERROR, StatusSource.EXPLICIT
        error = Error(_cut(said) or kind, word(kind))
    elif natural(code) is not None:
        status, source = (Status.ERROR if code else Status.OK), StatusSource.EXIT
        error = Error(_cut(text(told.get("stderr")) or f"exit {code}"), f"exit {code}") if code else None
    return Span(
        id=ident,
        name=word(told.get("hookEvent")) or word(told.get("subtype")) or "hook",
        operation=Operation.HOOK,
        status=status,
        status_source=source,
        error=error,
        started_at=moment(record.get("timestamp")),
        duration_ms=_length(told.get("durationMs")),
        preview=(text(told.get("hookName")) or text(told.get("command")) or "")[:PREVIEW],
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


def unknown_span(record: Record, ident: str, at: At) -> Span:
    """A record of a kind that is not known: kept whole."""
    name, when = kind_of(record)[:PREVIEW], moment(record.get("timestamp"))
    return Span(id=ident, name=name, operation=Operation.UNKNOWN, started_at=when, at=at)


def label_of(record: Record) -> str:
    """What a record is, in its own words."""
    kind = kind_of(record)
    inner = record.get("subtype") if kind == "system" else mapping(record.get(kind)).get("type")
    if kind == "progress":
        inner = mapping(record.get("data")).get("type")
    return (f"{kind} {inner}" if isinstance(inner, str) and inner else kind)[:PREVIEW]


def _said(blocks: list[Any]) -> tuple[bool, str] | None:
    """The first text (True), else the first thought (False)."""
    thought = None
    for block in blocks:
        kind = type_of(block)
        if kind == "text" and (said := text(block.get("text"))):
            return True, said[:PREVIEW]
        if kind == "thinking" and thought is None and (said := text(block.get("thinking"))):
            thought = False, said[:PREVIEW]
    return thought


def _cut(said: str) -> str:
    return said[:MESSAGE_LIMIT]


def _length(value: Any) -> float | None:
    found = number(value)
    return None if found is None or found < 0 else found


SYSTEM: Final[dict[str, Callable[[Record, str, At], Span]]] = {
    "compact_boundary": compaction_span,
    "api_error": failure_span,
    "stop_hook_summary": hook_span,
}
"""What records of the system are spans of the conversation, by their subtype."""
