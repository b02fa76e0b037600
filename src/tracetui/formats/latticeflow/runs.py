"""A trace as a run: its header, and its body for the *Run* tab."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tracetui.formats.latticeflow.files import Document
from tracetui.formats.latticeflow.records import (
    EVENTS,
    ITEMS,
    Item,
    ItemEntry,
    Piece,
    Records,
    as_text,
    content_of,
    elements,
    ident,
    milliseconds,
    record,
    roles,
)
from tracetui.formats.latticeflow.spans import Spans
from tracetui.formats.scalars import (
    boolean,
    integer,
    mapping,
    moment,
    natural,
    score_value,
    sequence,
    source_in,
    tags_in,
    word,
    zoned,
)
from tracetui.formats.schema import plain, unknown_fields
from tracetui.model import (
    PREVIEW,
    Error,
    FirstError,
    Header,
    Operation,
    RunBody,
    Score,
    Span,
    Status,
    StatusSource,
    Total,
    Usage,
    excerpt,
)
from tracetui.model.build import CONTAINERS

_ASKING: Final = frozenset({"user", "system", "custom task input"})
"""Names of messages that want an answer."""
_TASKS: Final = ("sample_id", "task_id")
"""Columns that name the sample of a data set."""
_STATED: Final = ("is_correct", "all_required_calls_made", "no_disallowed_calls_made")
"""Values of LatticeFlow's own scorers that are true where the sample passed."""
_ROW: Final[tuple[str, ...]] = ("tags", "source", "scores", "trial", *_TASKS)
_FEW: Final = 16
"""Events that are looked at in the list stage."""


def error_of(document: Document) -> str | None:
    """`metadata.error` as text."""
    found = document.metadata.get("error")
    return None if found is None or found == "" else as_text(found)


def has_ended(document: Document) -> bool:
    """True where the trace records its end."""
    return error_of(document) is not None or milliseconds(document.metadata.get("total_time")) is not None


def quick_header(document: Document) -> Header | None:
    """The header without looking at every record; None where that does not suffice."""
    prompt = _first_prompt(document)
    if prompt is None:
        return None
    metadata, started = document.metadata, None
    if document.has_events:
        if word(metadata.get("agent")) is None or word(metadata.get("model")) is None:
            return None
        if moment(metadata.get("created_at")) is None and (started := _first_timestamp(document)) is None:
            return None
    return _header(document, prompt, started=started)


def _first_timestamp(document: Document) -> str | None:
    """The first time that an event has, None where the first few have none."""
    found = (record(EVENTS, one).timestamp for one in (elements(document.trace.fields.get("events")) or ())[:_FEW])
    return next((timestamp for timestamp in found if moment(timestamp) is not None), None)


def _first_prompt(document: Document) -> str | None:
    """The first user's text from the given items, "" if none is there; None if there are no items."""
    found = elements(document.trace.fields.get("items"))
    if not found:
        return None
    for upto in (3, 64, len(found)):
        items = [record(ITEMS, piece) for piece in found[:upto]]
        sure = len(items) if upto >= len(found) else len(items) - 1
        for one, role, piece in zip(items[:sure], roles(items), found, strict=False):
            if _is_prompt(one, role):
                return _prompt(one, piece)
    return ""


def _is_prompt(item: Item, role: str) -> bool:
    return role == "user" or item.kind == "custom_task_input_message"


def _prompt(item: Item, piece: Piece) -> str:
    """The beginning of the request: a user's text, or the payload of a custom task."""
    return (item.text or as_text(content_of(piece)))[:PREVIEW]


def header(document: Document, records: Records, spans: Spans) -> Header:
    """The whole header."""
    prompt = next((_prompt(one.record, one.piece) for one in records.items if _is_prompt(one.record, one.role)), "")
    handed = {ident(one.record.agent_span_id) for one in records.events}
    agents = (one for one in _tops(records) if one.record.span_type == "agent" and one.span not in handed)
    timestamps = (one.record.timestamp for one in records.events)
    found = _header(
        document,
        prompt,
        agent=next((word(one.record.name) for one in agents), None),
        model=next((word(one.record.model) for one in records.events if one.kind == "model_call_event"), None),
        started=next((one for one in timestamps if moment(one) is not None), None),
    )
    more: dict[str, Any] = {"fields": unknown_fields(document.trace.unknown)}
    if found.error is not None:
        more["error"] = _located(found.error, spans.spans)
    if found.status is None:
        more |= _ending(document, records, spans)
    declared = natural(document.metadata.get("total_tokens"))
    if declared is not None and not any(span.usage for span in spans.spans):
        more["usage"] = Usage(total_tokens=declared)
    return msgspec.structs.replace(found, **more)


def _header(
    document: Document, prompt: str, *, agent: str | None = None, model: str | None = None, started: str | None = None
) -> Header:
    metadata, error = document.metadata, error_of(document)
    agent = word(metadata.get("agent")) or agent
    at, zone = zoned(metadata.get("created_at"))
    if at is None:
        at, zone = zoned(started)
    columns = {name: plain(document.columns[name]) for name in _ROW if name in document.columns}
    return Header(
        id=document.id,
        name=agent or "trace",
        agent=agent,
        model=word(metadata.get("model")) or model,
        status=None if error is None else Status.ERROR,
        status_source=None if error is None else StatusSource.EXPLICIT,
        started_at=at,
        time_zone="UTC" if at is None else zone,
        duration_ms=milliseconds(metadata.get("total_time")),
        error=None if error is None else FirstError(error),
        prompt=prompt,
        scores=tuple(_scores(columns.get("scores"))),
        task=next(filter(None, (_name_in(columns, name) for name in _TASKS)), None),
        trial=_name_in(columns, "trial"),
        tags=tags_in(metadata, columns),
        source=source_in(metadata, columns),
        size=document.origin.size,
    )


def _located(error: FirstError, spans: list[Span]) -> FirstError:
    """The run's error with the last span that failed with the same words."""
    for span in reversed(spans):
        message = span.error.message if span.error is not None else ""
        if message and (message in error.message or error.message in message):
            return FirstError(error.message, error.type, span.id, span.name, span.operation)
    return error


def _name_in(columns: dict[str, Any], name: str) -> str | None:
    """A text or a whole number in a column, as a text."""
    found = columns.get(name)
    text = word(found if integer(found) is None else str(found))
    return text and excerpt(text)


def _scores(recorded: Any) -> Iterator[Score]:
    """The scores in a row; none of a scorer that checks the sample instead of the answer (purpose ``qa``).

    Facts: `ScoresData` and the scorers of `latticeflow-core` 3.17, which has no other rule for passing.
    """
    for index, one in enumerate(map(mapping, sequence(recorded))):
        scorer = word(one.get("scorer_name")) or word(one.get("scorer_key")) or "score"
        for name, value in mapping(one.get("values")).items() if one.get("scorer_purpose") != "qa" else ():
            passed = boolean(value) if name in _STATED else None
            source = f"scores[{index}].values.{name}"[:PREVIEW]
            yield Score(f"{scorer} {name}"[:PREVIEW], score_value(value), passed, source)


def _ending(document: Document, records: Records, spans: Spans) -> dict[str, Any]:
    """How a trace ended that names no error.

    Open spans, a question without an answer and a call without a response mean that it didn't; a last record that is
    incomplete is its status.
    """
    last = next((span for span in reversed(spans.spans) if span.operation not in CONTAINERS), None)
    running = spans.is_open or (last is not None and last.status is Status.RUNNING)
    cut = last is not None and last.status is Status.UNKNOWN and last.status_word is not None
    if not has_ended(document) and (running or not (cut or _is_over(records, spans))):
        return {"ended": False}
    if last is not None and cut:
        return {"status": Status.UNKNOWN, "status_word": last.status_word, "status_source": StatusSource.EXPLICIT}
    return {}


def _tops(records: Records) -> list[Any]:
    """The begins of the spans that are in no other."""
    return [begin for begin in records.begins.values() if ident(begin.record.parent_span_id) is None]


def _is_over(records: Records, spans: Spans) -> bool:
    """Whether the last record ends a trace: an answer, a failure, or the end of the agent itself."""
    if any(begin.record.span_type == "agent" and begin.span in records.ends for begin in _tops(records)):
        return True
    for span in reversed(spans.spans):
        if span.status is Status.ERROR:
            return True
        if span.operation is Operation.TURN:  # nothing came after the question
            return False
        if span.operation is Operation.MESSAGE:
            return span.name not in _ASKING
        if span.operation is Operation.CHAT:
            return not spans.asks
        if span.operation is Operation.EXECUTE_TOOL:
            return False
    return False


def run_body(document: Document, records: Records, spans: Spans) -> RunBody:
    """The *Run* tab: everything except the records, and the values that upstream's helpers extract from items."""
    items, error = records.items, error_of(document)
    first_user = next((i for i, item in enumerate(items) if item.role == "user"), len(items))
    system = (item for item in items[:first_user] if item.role == "system")
    answers = (item for item in reversed(items[first_user:]) if item.role == "assistant")
    users = (item for item in reversed(items) if item.role == "user")
    attributes = {name: plain(value) for name, value in document.columns.items()}
    for name, value in (document.trace.values("items", "events") | document.trace.rest).items():
        attributes[f"trace.{name}" if name in attributes else name] = value
    return RunBody(
        input=_payload(items, "custom_task_input_message"),
        output=_payload(items[::-1], "custom_task_output_message"),
        error=None if error is None else Error(error),
        totals=_totals(document.metadata, items, spans.spans),
        extent=None if document.key is None else (document.origin.offset, document.origin.size),
        system_prompt=next((one.record.text for one in system), None),
        last_user=next((one.record.text for one in users), None),
        last_assistant=next((one.record.text for one in answers), None),
        attributes=attributes,
    )


def _payload(items: list[ItemEntry], kind: str) -> Any:
    return next((content_of(item.piece) for item in items if item.kind == kind), None)


def _totals(metadata: dict[str, Any], items: list[ItemEntry], spans: list[Span]) -> tuple[Total, ...]:
    used = [span.usage.total_tokens for span in spans if span.usage is not None and span.operation is Operation.CHAT]
    tokens = [count for count in used if count is not None]
    seconds = milliseconds(metadata.get("total_time"))
    counted = (
        ("message_count", natural(metadata.get("message_count")), sum(item.kind == "message" for item in items)),
        ("total_tokens", natural(metadata.get("total_tokens")), sum(tokens) if tokens else None),
        ("total_time", None if seconds is None else seconds / 1000, _elapsed(seconds, spans)),
    )
    return tuple(Total(name, declared, count) for name, declared, count in counted if declared is not None)


def _elapsed(declared_ms: float | None, spans: list[Span]) -> float | None:
    """Seconds from the first start to the last end; the declared time where that agrees within a tenth of a second."""
    starts = [span.started_at for span in spans if span.started_at is not None]
    if not starts:
        return None
    ends = [span.started_at + (span.duration_ms or 0.0) / 1000 for span in spans if span.started_at is not None]
    elapsed = round(max(ends) - min(starts), 3)
    declared = None if declared_ms is None else declared_ms / 1000
    return declared if declared is not None and abs(declared - elapsed) <= 0.1 else elapsed
