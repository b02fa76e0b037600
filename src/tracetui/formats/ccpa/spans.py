"""From one record of a ccpa trace to its spans; what links records to each other is in `ccpa_session`.

A turn is a model call, each of its ``tool_use`` blocks a tool call below it. No record has a time of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tracetui.formats.calls import argument
from tracetui.formats.ccpa.records import (
    KINDS,
    At,
    blocks_of,
    content_text,
    first_string,
    is_call,
    kind_of,
    shared,
    thought_of,
    whole,
)
from tracetui.formats.scalars import string
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Span, Status, StatusSource
from tracetui.model.status import plain_word, status_of

_QUIET: Final = frozenset({"end_turn", "tool_use"})
"""Stop reasons that go without saying."""


def prompt_span(record: dict[str, Any], line: int, at: At) -> Span:
    """What the user said."""
    return Span(
        id=f"l{line}",
        name="user",
        operation=Operation.MESSAGE,
        step=whole(record.get("turn")),
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        preview=content_text(record.get("text"))[:PREVIEW],
        at=at,
    )


def turn_span(record: dict[str, Any], line: int, at: At, model: str | None) -> Span:
    """One answer of the model. Its stop reason says how it stands: one cut off at its token limit failed."""
    word = shared(record.get("stop_reason"))
    status, source, error = Status.OK, StatusSource.DERIVED, None
    if word is not None:
        status, source = status_of(word), StatusSource.EXPLICIT
        error = stopped(word) if status is Status.ERROR else None
    return Span(
        id=f"l{line}",
        name=model or "assistant",
        operation=Operation.CHAT,
        step=whole(record.get("turn")),
        is_step=True,
        status=status,
        status_word=word,
        status_source=source,
        error=error,
        model=model,
        preview=_said(blocks_of(record)),
        note="" if word is None or plain_word(word) in _QUIET else word[:PREVIEW],
        at=at,
    )


def stopped(word: str) -> Error:
    """The error of a turn that its stop reason calls failed."""
    return Error(f"stopped: {word}", word)


def call_spans(record: dict[str, Any], line: int, at: At) -> Iterator[tuple[str | None, Span]]:
    """The tool calls of a turn with their ids, each still without an answer."""
    step, parent = whole(record.get("turn")), f"l{line}"
    for place, block in enumerate(blocks_of(record)):
        if is_call(block):
            yield string(block.get("id")), call_span(block, parent, place, at, step)


def call_span(block: dict[str, Any], parent: str, place: int, at: At, step: int | None) -> Span:
    """A tool call of the turn `parent` that waits for its answer."""
    return Span(
        id=f"{parent}.{place}",
        name=shared(block.get("name")) or "tool",
        operation=Operation.EXECUTE_TOOL,
        parent_id=parent,
        step=step,
        status=Status.RUNNING,
        status_source=StatusSource.DERIVED,
        preview=argument(block.get("input"), tasks=("prompt",)),
        at=At(at.offset, at.size, place),
    )


def answered(call: Span, record: dict[str, Any], at: At) -> Span:
    """The call with its answer."""
    status, source, word, error = outcome(record)
    return msgspec.structs.replace(
        call,
        status=status,
        status_word=word,
        status_source=source,
        error=error,
        at=At(call.at.offset, call.at.size, call.at.block, at.offset, at.size),
    )


def result_span(record: dict[str, Any], line: int, at: At) -> Span:
    """An answer whose call is not in the trace."""
    status, source, word, error = outcome(record)
    return Span(
        id=f"l{line}",
        name="tool_result",
        operation=Operation.EXECUTE_TOOL,
        step=whole(record.get("turn")),
        status=status,
        status_word=word,
        status_source=source,
        error=error,
        preview=content_text(record.get("content"))[:PREVIEW],
        at=at,
    )


def outcome(record: dict[str, Any]) -> tuple[Status, StatusSource, str | None, Error | None]:
    """How a tool call went: ``ok`` or ``is_error`` says so, else its exit code, else that it answered."""
    ok, is_error = record.get("ok"), record.get("is_error")
    code = exit_code(record)
    word = f"exit {code}" if code else None
    failed = ok is False or is_error is True
    if failed or code:
        message = _cut(content_text(record.get("content")))
        source = StatusSource.EXPLICIT if failed else StatusSource.EXIT
        return Status.ERROR, source, word, Error(message or word or "failed", word)
    said = isinstance(ok, bool) or isinstance(is_error, bool)
    source = StatusSource.EXPLICIT if said else StatusSource.EXIT if code == 0 else StatusSource.DERIVED
    return Status.OK, source, word, None


def _cut(message: str) -> str:
    message = message.strip()
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"


def exit_code(record: dict[str, Any]) -> int | None:
    """The exit code among the side effects of a tool result."""
    effects = record.get("side_effects")
    return whole(effects.get("exit_code")) if isinstance(effects, dict) else None


def hook_span(record: dict[str, Any], line: int, at: At) -> Span:
    """A hook that fired, with what it decided."""
    decision, code = string(record.get("decision")), whole(record.get("exit_code"))
    status, source = Status.OK, StatusSource.DERIVED
    if decision is not None:
        status, source = status_of(decision), StatusSource.EXPLICIT
    elif code is not None:
        status, source = (Status.ERROR if code else Status.OK), StatusSource.EXIT
    output = content_text(record.get("output"))
    error = None
    if status is Status.ERROR:
        error = Error(_cut(output) or decision or f"exit {code}", decision)
    return Span(
        id=f"l{line}",
        name=first_string(record, "event", "trigger", "hook_name") or "hook",
        operation=Operation.HOOK,
        step=whole(record.get("turn")),
        status=status,
        status_word=decision,
        status_source=source,
        error=error,
        preview=(first_string(record, "matcher", "hook_name") or "")[:PREVIEW],
        note=decision[:PREVIEW] if decision is not None and plain_word(decision) != "allow" else "",
        at=at,
    )


def skill_span(record: dict[str, Any], line: int, at: At) -> Span:
    """A skill that was called for, by the user or by the model."""
    arguments = record.get("args")
    return Span(
        id=f"l{line}",
        name=f"skill {(first_string(record, 'name', 'skill_name') or '?')[:PREVIEW]}",
        step=whole(record.get("turn")),
        status=Status.OK,
        status_source=StatusSource.DERIVED,
        preview=argument(arguments, tasks=("prompt",)) if arguments else "",
        note=(string(record.get("source")) or "")[:PREVIEW],
        at=at,
    )


def other_span(record: dict[str, Any], line: int, at: At) -> Span:
    """A record of a kind that is not known, or that is out of place: kept whole."""
    kind = kind_of(record)
    operation = Operation.OTHER if kind in KINDS else Operation.UNKNOWN
    return Span(id=f"l{line}", name=kind[:PREVIEW], operation=operation, step=whole(record.get("turn")), at=at)


def _said(blocks: list[Any]) -> str:
    """The first text of a turn, else its first thought."""
    thought = ""
    for block in blocks:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text":
            text = string(block.get("text"))
            if text:
                return text[:PREVIEW]
        elif block.get("type") == "thinking" and not thought:
            thought = (thought_of(block) or "")[:PREVIEW]
    return thought
