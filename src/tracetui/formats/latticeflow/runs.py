"""A trace as a whole: its header, and what its *Run* tab shows."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import source_in, tags_in
from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.files import Document
from tracetui.formats.latticeflow.outline import ItemAt, Outline
from tracetui.formats.latticeflow.records import Item, milliseconds, seconds
from tracetui.formats.latticeflow.spans import Woven
from tracetui.formats.scalars import word
from tracetui.model import (
    PREVIEW,
    Error,
    FirstError,
    Header,
    Operation,
    RunBody,
    Span,
    Status,
    StatusSource,
    Total,
    Usage,
)
from tracetui.model.build import CONTAINERS

_ASKING: Final = frozenset({"user", "system", "custom task input"})
"""Names of messages that want an answer."""
_FEW: Final = 16
"""Events that are looked at in the list stage."""


class About(msgspec.Struct):
    """What a trace says about itself before its records are looked at: `metadata`, and its id."""

    id: str
    metadata: dict[str, Any]
    columns: dict[str, Any]
    """``tags`` and ``source`` of the row around it."""

    @property
    def error(self) -> str | None:
        """`metadata.error` as text."""
        found = self.metadata.get("error")
        return None if found is None or found == "" else records.said(found)

    @property
    def ended(self) -> bool:
        """True where the trace says that it is over."""
        return self.error is not None or milliseconds(self.metadata.get("total_time")) is not None


def about(document: Document, path: str) -> About:
    """The id is `metadata.trace_id`, else the file's stem (with the number of the line where there are several)."""
    stem = os.path.splitext(os.path.basename(path))[0] or path
    otherwise = f"{stem}#{document.number}" if document.number else stem
    named = [name for name in ("tags", "source") if name in document.columns]
    columns: dict[str, Any] = {name: _value(document.columns[name]) for name in named}
    return About(document.trace_id or otherwise, document.metadata, columns)


def quick_header(document: Document, known: About) -> Header | None:
    """The header without looking at every record; None where that does not suffice."""
    prompt = _first_prompt(document)
    if prompt is None:
        return None
    agent, model = word(known.metadata.get("agent")), word(known.metadata.get("model"))
    started = None
    if document.has_events:
        if agent is None or model is None:
            return None
        if seconds(known.metadata.get("created_at")) is None and (started := _first_stamp(document)) is None:
            return None
    return _header(known, document, prompt, agent=agent, model=model, started=started)


def _first_stamp(document: Document) -> Any:
    """The first time that an event has, None where the first few have none."""
    for piece in (records.elements(document.fields.get("events")) or ())[:_FEW]:
        with suppress(FormatError):
            found = records.record(records.EVENTS, piece, {})
            if found is not None and seconds(found.timestamp) is not None:
                return found.timestamp
    return None


def _first_prompt(document: Document) -> str | None:
    """The first user's text from the given items, "" if none is there; None if there are no items."""
    found = records.elements(document.fields.get("items"))
    if not found:
        return None
    for upto in (3, 64, len(found)):
        items = [records.as_item(piece) for piece in found[:upto]]
        named = records.roles(items)
        sure = len(items) if upto >= len(found) else len(items) - 1
        for one, role in zip(items[:sure], named, strict=False):
            if role == "user" or records.item_kind(one) == "custom_task_input_message":
                return _prompt(one)
    return ""


def _prompt(asked: Item) -> str:
    """The beginning of what was asked: a user's text, or the payload of a custom task."""
    return (records.text_of(asked) or records.said(asked.content))[:PREVIEW]


def header(known: About, sorted_out: Outline, woven: Woven, document: Document) -> Header:
    """The whole header."""
    asked = (item for item in sorted_out.items if item.role == "user" or item.kind == "custom_task_input_message")
    prompt = next((_prompt(item.record) for item in asked), "")
    handed = {records.ident(one.record.agent_span_id) for one in sorted_out.events}
    agents = [one for one in sorted_out.begins.values() if one.record.span_type == "agent" and one.level not in handed]
    tops = [one for one in agents if records.ident(one.record.parent_span_id) is None]
    model = next((word(one.record.model) for one in sorted_out.events if one.kind == "model_call_event"), None)
    stamps = [one.record.timestamp for one in sorted_out.events]
    made = _header(
        known,
        document,
        prompt,
        agent=word(tops[0].record.name) if tops else None,
        model=model,
        started=next((stamp for stamp in stamps if seconds(stamp) is not None), None),
    )
    if made.error is not None:
        made = msgspec.structs.replace(made, error=_located(made.error, woven.spans))
    if made.status is None:
        made = msgspec.structs.replace(made, **_ending(sorted_out, woven, known))
    declared = records.count(known.metadata.get("total_tokens"))
    if declared is not None and not any(span.usage for span in woven.spans):
        made = msgspec.structs.replace(made, usage=Usage(total_tokens=declared))
    return msgspec.structs.replace(made, fields=unknown_fields(sorted_out.unknown))


def _located(error: FirstError, spans: list[Span]) -> FirstError:
    """The run's error with the last span that failed with the same words."""
    for span in reversed(spans):
        message = span.error.message if span.error is not None else ""
        if message and (message in error.message or error.message in message):
            return FirstError(error.message, error.type, span.id, span.name, span.operation)
    return error


def _header(
    known: About, document: Document, prompt: str, *, agent: str | None, model: str | None, started: Any
) -> Header:
    meta = known.metadata
    agent = word(meta.get("agent")) or agent
    stamp = meta.get("created_at")
    at = seconds(stamp)
    if at is None:
        stamp, at = started, seconds(started)
    failed = known.error
    return Header(
        id=known.id,
        name=agent or "trace",
        agent=agent,
        model=word(meta.get("model")) or model,
        status=None if failed is None else Status.ERROR,
        status_source=None if failed is None else StatusSource.EXPLICIT,
        started_at=at,
        time_zone=None if records.naive(stamp) else "UTC",
        duration_ms=milliseconds(meta.get("total_time")),
        error=None if failed is None else FirstError(failed),
        prompt=prompt,
        tags=tags_in(meta, known.columns),
        source=source_in(meta, known.columns),
        size=document.place.size,
    )


def _ending(outline: Outline, woven: Woven, known: About) -> dict[str, Any]:
    """How a trace ended that names no error.

    Open spans, a question without an answer and a call without a response mean that it didn't; a last record that is
    incomplete says so itself.
    """
    last = next((span for span in reversed(woven.spans) if span.operation not in CONTAINERS), None)
    going_on = woven.is_open or (last is not None and last.status is Status.RUNNING)
    cut = last is not None and last.status is Status.UNKNOWN and last.status_word is not None
    if not known.ended and (going_on or not (cut or _is_over(outline, woven))):
        return {"ended": False}
    if last is not None and cut:
        return {"status": Status.UNKNOWN, "status_word": last.status_word, "status_source": StatusSource.EXPLICIT}
    return {}


def _is_over(outline: Outline, woven: Woven) -> bool:
    """Whether the last record ends a trace: an answer, a failure, or the end of the agent itself."""
    tops = [begin for begin in outline.begins.values() if records.ident(begin.record.parent_span_id) is None]
    if any(begin.record.span_type == "agent" and begin.level in outline.ends for begin in tops):
        return True
    for span in reversed(woven.spans):
        if span.status is Status.ERROR:
            return True
        if span.operation is Operation.TURN:  # nothing came after the question
            return False
        if span.operation is Operation.MESSAGE:
            return span.name not in _ASKING
        if span.operation is Operation.CHAT:
            return not woven.asks
        if span.operation is Operation.EXECUTE_TOOL:
            return False
    return False


def run_body(document: Document, known: About, sorted_out: Outline, woven: Woven) -> RunBody:
    """The *Run* tab: everything but the records themselves, and what upstream's helpers extract from the items."""
    items = sorted_out.items
    first_user = next((i for i, item in enumerate(items) if item.role == "user"), len(items))
    system = [item for item in items[:first_user] if item.role == "system"]
    assistant = [item for item in items[first_user:] if item.role == "assistant"]
    users = [item for item in items if item.role == "user"]
    return RunBody(
        input=_payload(items, "custom_task_input_message"),
        output=_payload(items[::-1], "custom_task_output_message"),
        error=None if known.error is None else Error(known.error),
        totals=_totals(known.metadata, items, woven.spans),
        extent=None if document.key is None else (document.place.offset, document.place.size),
        system_prompt=_text(system[:1]),
        last_user=_text(users[-1:]),
        last_assistant=_text(assistant[-1:]),
        attributes=_attributes(document),
    )


def _payload(items: list[ItemAt], kind: str) -> Any:
    return next((item.record.content for item in items if item.kind == kind), None)


def _text(items: list[ItemAt]) -> str | None:
    return records.text_of(items[0].record) if items else None


def _attributes(document: Document) -> dict[str, Any]:
    """The columns beside the trace, and the fields of the trace that are no records, under their own names."""
    found: dict[str, Any] = {}
    for name, piece in document.columns.items():
        found[name] = _value(piece)
    for name, piece in document.fields.items():
        if name not in ("items", "events") or records.elements(piece) is None:
            found[f"trace.{name}" if name in found else name] = _value(piece)
    return found


def _value(piece: records.Piece) -> Any:
    try:
        return records.value(piece)
    except FormatError as error:
        return f"cannot be read: {error.reason}"


def _totals(meta: dict[str, Any], items: list[ItemAt], spans: list[Span]) -> tuple[Total, ...]:
    messages = sum(item.kind == "message" for item in items)
    used = [span.usage.total_tokens for span in spans if span.usage is not None and span.operation is Operation.CHAT]
    tokens = [count for count in used if count is not None]
    counted = (
        ("message_count", records.count(meta.get("message_count")), messages),
        ("total_tokens", records.count(meta.get("total_tokens")), sum(tokens) if tokens else None),
        ("total_time", _seconds(meta.get("total_time")), _elapsed(meta.get("total_time"), spans)),
    )
    return tuple(Total(name, declared, count) for name, declared, count in counted if declared is not None)


def _seconds(found: Any) -> float | None:
    return None if milliseconds(found) is None else float(found)


def _elapsed(declared: Any, spans: list[Span]) -> float | None:
    """Seconds from the first start to the last end; the declared time where that agrees within a tenth of a second."""
    starts = [span.started_at for span in spans if span.started_at is not None]
    if not starts:
        return None
    ends = [(span.started_at or 0.0) + (span.duration_ms or 0.0) / 1000 for span in spans if span.started_at]
    elapsed = round(max(ends, default=starts[0]) - min(starts), 3)
    stated = _seconds(declared)
    return stated if stated is not None and abs(stated - elapsed) <= 0.1 else elapsed
