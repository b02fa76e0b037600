"""The header of a span, from one record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from tracetui.formats.otlp import messages
from tracetui.formats.otlp.messages import Event, Side, events_of
from tracetui.formats.otlp.records import At, Told, attributes, named, nanoseconds, parent_id, span_id
from tracetui.formats.otlp.words import (
    MODELS,
    Attributes,
    decoded,
    first,
    given_to,
    made_by,
    name_of,
    operation_of,
    short_json,
    telling,
    usage_of,
)
from tracetui.formats.scalars import word
from tracetui.model import PREVIEW, Error, Operation, Span, Status, StatusSource

EXCEPTION: Final = "exception"
_OK: Final = (1, "1", "STATUS_CODE_OK", "OK", "Ok")
_FAILED: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error")
_REASONS: Final = ("gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason")
_USUAL: Final = frozenset({"stop", "end_turn", "tool_calls", "tool_call", "tool_use", "tool-calls", "completed"})
"""Reasons to stop that need not be told."""


class Read:
    """What was read of a record: each part once, the messages when they are asked for. Times are in nanoseconds."""

    def __init__(self, record: dict[str, Any], kept: Attributes | None = None) -> None:
        """`kept`: its attributes, where they are known."""
        self.record = record
        self.kept = attributes(record) if kept is None else kept
        self.events = events_of(record)
        self.name = record["name"] if isinstance(record.get("name"), str) else ""
        self.operation = operation_of(self.kept, self.name)
        self.start = nanoseconds(record, "startTimeUnixNano", "start_time_unix_nano")
        self.end = nanoseconds(record, "endTimeUnixNano", "end_time_unix_nano")

    @cached_property
    def given(self) -> Side:
        """The messages that went into it."""
        return messages.given(self.kept, self.events)

    @cached_property
    def made(self) -> Side:
        """The messages that came of it."""
        return messages.made(self.kept, self.events)


def span_of(read: Read, told: Told, at: At, number: int, *, lean: bool = False) -> Span:
    """The span of a record; `number` is that of its line or document, for one without an id. `lean`: no preview."""
    record, kept, events, operation = read.record, read.kept, read.events, read.operation
    start, end = read.start, read.end
    status, text, source = _status(record, kept, events, ended=end is not None)
    return Span(
        id=span_id(record) or f"l{number}.{told.place[0]}.{told.place[1]}.{told.place[2]}",
        name=name_of(kept, operation, read.name),
        operation=operation,
        parent_id=parent_id(record),
        is_step=operation is Operation.CHAT,
        status=status,
        status_word=text,
        status_source=source,
        started_at=None if start is None else start / 1e9,
        duration_ms=None if start is None or end is None or end < start else (end - start) / 1e6,
        usage=usage_of(kept, operation),
        error=error_of(record, kept, events, status),
        model=first(kept, MODELS) if operation in (Operation.CHAT, Operation.EMBEDDINGS) else None,
        preview="" if lean else _preview(read),
        note=_note(kept, events) if operation is Operation.CHAT else "",
        at=at,
    )


def _status(
    record: dict[str, Any], kept: Attributes, events: Sequence[Event], *, ended: bool
) -> tuple[Status, str | None, StatusSource | None]:
    """(status, its word, where it is from). Unset says nothing: then the end counts, and what was noted until then."""
    code = named(named(record, "status"), "code")
    if code is not None and not isinstance(code, bool | list | dict):
        if code in _FAILED:
            return Status.ERROR, "ERROR", StatusSource.EXPLICIT
        if code in _OK:
            return Status.OK, "OK", StatusSource.EXPLICIT
    if word(kept.get("error.type")) is not None:
        return Status.ERROR, None, StatusSource.EXPLICIT
    thrown = [event.kept.get("exception.escaped") for event in events if event.name == EXCEPTION]
    if thrown and any(escaped in (True, "true", "True") for escaped in thrown):
        return Status.ERROR, None, StatusSource.EXPLICIT
    if thrown or not ended:
        return Status.UNKNOWN, None, None
    return Status.OK, None, StatusSource.DERIVED


def error_of(record: dict[str, Any], kept: Attributes, events: Sequence[Event], status: Status) -> Error | None:
    """Why a span failed: its last exception, what its status says, or the type alone."""
    if status is Status.OK:
        return None
    message, kind = word(named(named(record, "status"), "message")), word(kept.get("error.type"))
    place = thrown_last(events)
    if place is not None:
        told = events[place].kept
        message = word(told.get("exception.message")) or message
        kind = word(told.get("exception.type")) or kind
    if status is Status.ERROR and message is None and place is None:
        message = word(kept.get("error.message")) or _logfire_error(kept)
    if message is not None and kind is not None and message == f"{kind.rpartition('.')[2]}: ":
        message = None  # as the SDK writes the status of an exception without a text
    return None if message is None and kind is None else Error(message or "", kind)


def _logfire_error(kept: Attributes) -> str | None:
    """The error of openai-agents as Logfire has it: a message and data."""
    told = decoded(kept.get("error"))
    message = word(told.get("message")) if isinstance(told, dict) else None
    if message is None:
        return None
    data = told.get("data")
    return f"{message}: {short_json(data)}" if data else message


def thrown_last(events: Sequence[Event]) -> int | None:
    """Which event is the last exception."""
    return next((i for i in reversed(range(len(events))) if events[i].name == EXCEPTION), None)


def _preview(read: Read) -> str:
    if read.operation is Operation.CHAT:
        return (messages.said(read.made) or _text(made_by(read.kept)))[:PREVIEW]
    value = given_to(read.kept)
    if value is not None:
        return telling(value[1])
    agent = read.operation in (Operation.INVOKE_AGENT, Operation.INVOKE_WORKFLOW)
    return (messages.prompt_of(read.given) or "")[:PREVIEW] if agent else ""


def _text(value: tuple[str, Any] | None) -> str:
    if value is None:
        return ""
    return value[1].strip() if isinstance(value[1], str) else short_json(value[1])


def _note(kept: Attributes, events: Sequence[Event]) -> str:
    """Why a model stopped, where that is worth a word."""
    reasons = next((told for name in _REASONS if (told := kept.get(name)) is not None), None)
    if reasons is None and any(event.name == "gen_ai.choice" for event in events):
        reasons = [event.kept.get("finish_reason") for event in events]
    found = reasons if isinstance(reasons, list) else [reasons]
    unusual = (one for one in found if isinstance(one, str) and one and one.lower() not in _USUAL)
    return next(unusual, "")[:PREVIEW]
