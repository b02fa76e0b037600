"""Paprika steps as spans."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.paprika.fields import Raw, is_null, value_of
from tracetui.formats.paprika.messages import messages_in, messages_out
from tracetui.formats.paprika.record import Place, Record, Skim
from tracetui.formats.paprika.run import (
    POLICY,
    error_of,
    failing_step,
    model_of,
    moment,
    name_of,
    operation_of,
    own_error,
    preview_of,
    span_id,
    usage_of,
)
from tracetui.formats.scalars import number
from tracetui.model import PREVIEW, Error, Span, Status, StatusSource, ToolCall, status_of
from tracetui.model import text_of as message_text
from tracetui.sources.base import Stat


class At(msgspec.Struct, frozen=True, gc=False):
    """Where the records of a step are: places in that version of the file, or their values."""

    version: Stat
    places: tuple[Place, ...]
    values: tuple[dict[str, Any], ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the records, 0 where only their values are known."""
        return sum(place.size for place in self.places)


def spans_of(record: Record, version: Stat, start: int, stop: int) -> list[Span]:
    """The spans of the steps from position `start` up to `stop`."""
    broken = failing_step(record.facts, record.steps)
    found = []
    for place in range(start, min(stop, len(record.steps))):
        at = At(
            version,
            record.places[place] if record.places else (),
            record.values[place] if record.values else (),
        )
        cause = error_of(record.facts.error) if place == broken else None
        found.append(_span(record.steps[place], place, cause, at))
    return found


def _span(step: Skim, place: int, cause: Error | None, at: At) -> Span:
    """One step. `cause`: the run's error, if this is the step that it broke off in."""
    status, source = _verdict(step, cause is not None)
    return Span(
        id=span_id(place),
        name=name_of(step),
        operation=operation_of(step),
        step=step.step_index,
        is_step=step.step_type != POLICY,
        status=status,
        status_word=step.status,
        status_source=source,
        started_at=moment(step.timestamp),
        duration_ms=number(step.duration_ms),
        usage=usage_of(step),
        error=own_error(step) or cause,
        input_hash=step.input_hash,
        model=model_of(step),
        preview=preview(step),
        at=at,
    )


def _verdict(step: Skim, broken: bool) -> tuple[Status, StatusSource | None]:
    if step.step_type == POLICY:
        return Status.ERROR, StatusSource.POLICY
    if step.error is not None:
        return Status.ERROR, StatusSource.EXPLICIT
    if step.status is not None:
        return status_of(step.status), StatusSource.EXPLICIT
    if broken:
        return Status.ERROR, StatusSource.DERIVED
    if step.has_output or step.duration_ms is not None:
        return Status.OK, StatusSource.DERIVED
    return Status.UNKNOWN, None


class _Said(msgspec.Struct, gc=False):
    role: str
    content: Raw = Raw(b"null")


class _Asked(msgspec.Struct, gc=False):
    messages: list[_Said]


_ASKED: Final = msgspec.json.Decoder(_Asked)


def preview(step: Skim) -> str:
    """What a model replied (else the last thing that a user said to it), the main argument of a tool, the words of a
    policy. In an agent's loop the user says the same before each call.
    """
    if step.step_type == POLICY:
        return (step.message or "")[:PREVIEW]
    if not is_null(step.args):
        return preview_of(value_of(step.args))
    if step.has_output and (said := reply(value_of(step.output_data))):
        return said[:PREVIEW]
    return "" if is_null(step.input_data) else last_user(step.input_data)[:PREVIEW]


def reply(output: Any) -> str:
    """The first text that a model replied, else the calls that it asked for: ``→ search {"query": …}``."""
    messages = messages_out(output)
    if said := next((text for one in messages if (text := message_text(one).strip())), ""):
        return said
    calls = (part for one in messages for part in one.parts if isinstance(part, ToolCall))
    return ", ".join(f"→ {call.name} {preview_of(call.arguments)}".rstrip() for call in calls)


def last_user(data: Any) -> str:
    """The last text that a user said in the input of a model call."""
    try:
        said = next((one for one in reversed(_ASKED.decode(data).messages) if one.role == "user"), None)
    except (ValueError, RecursionError, TypeError):
        said = None
    if said is not None and bytes(memoryview(said.content)[:1]) == b'"':
        text = value_of(said.content)
        return text if isinstance(text, str) else ""
    messages = messages_in(value_of(data))
    return next((text for one in reversed(messages) if one.role == "user" and (text := message_text(one))), "")
