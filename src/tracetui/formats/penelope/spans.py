"""Turns of a Penelope result as spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tracetui.formats.penelope.fields import as_text, boolean, decoded, milliseconds, moment, whole
from tracetui.formats.penelope.turns import Execution, Turn
from tracetui.formats.scalars import mapping, sequence, string
from tracetui.model import PREVIEW, Error, Operation, Span, Status, StatusSource

_NAMES: Final = ("name", "tool_name")
ARGUMENTS: Final = ("arguments", "args", "input")


class At(msgspec.Struct, frozen=True):
    """Where the body of a span is: a turn, an execution in it, or a call that the target made."""

    turn: Turn
    execution: int | None = None
    target_tool: int | None = None


def timings_of(stats: dict[str, Any]) -> dict[int, float]:
    """Milliseconds by turn number, from ``execution_stats.turn_timings``."""
    found = {}
    for item in map(mapping, sequence(stats.get("turn_timings"))):
        turn, duration = whole(item.get("turn_number")), milliseconds(item.get("duration_seconds"))
        if turn is not None and duration is not None:
            found[turn] = duration
    return found


def spans_of(turn: Turn, timings: dict[int, float]) -> Iterator[Span]:
    """The turn, its executions below it, and below the one that reached the target what the target called itself.

    Penelope stamps a turn and an execution once; that time is where their spans start. What failed is the call: its
    turn, which went on, is only noted, so that no failure is counted twice.
    """
    yield _turn_span(turn, timings)
    for i, call in enumerate(turn.calls):
        span = _call_span(turn, i, call)
        yield span
        if call.to_target:
            yield from _target_spans(turn, span.id)
    if turn.target_call is None:
        yield from _target_spans(turn, turn.id)


def _turn_span(turn: Turn, timings: dict[int, float]) -> Span:
    started, _ = started_at(turn)
    told = boolean(turn.line.get("success"))
    failed_here = told is False and turn.target_call is None
    failed_below = any(_failed(turn, call) for call in turn.calls)
    return Span(
        id=turn.id,
        name=f"turn {turn.number}" if turn.number is not None else "turn",
        operation=Operation.TURN,
        step=turn.number,
        is_step=True,
        status=Status.ERROR if failed_here else Status.OK,
        status_source=StatusSource.EXPLICIT if told is not None and not failed_below else StatusSource.DERIVED,
        started_at=started,
        duration_ms=None if turn.number is None else timings.get(turn.number),
        error=Error(turn.heard or "") if failed_here else None,
        preview=(turn.said or "")[:PREVIEW],
        note="call failed" if failed_below else "",
        at=At(turn),
    )


def started_at(turn: Turn) -> tuple[float | None, str | None]:
    """When the turn was stamped, and in which zone."""
    found = moment(turn.detail.get("timestamp"))
    return found if found[0] is not None else moment(turn.line.get("timestamp"))


def _failed(turn: Turn, call: Execution) -> bool:
    return call.success is False or (call.to_target and turn.line.get("success") is False)


def _call_span(turn: Turn, place: int, call: Execution) -> Span:
    told = call.success if call.success is not None or not call.to_target else boolean(turn.line.get("success"))
    failed = _failed(turn, call)
    answered = call.record.get("tool_message") is not None
    return Span(
        id=f"{turn.id}.{place + 1}",
        name=call.name,
        operation=Operation.EXECUTE_TOOL,
        parent_id=turn.id,
        step=turn.number,
        status=Status.ERROR if failed else Status.OK if answered or told else Status.UNKNOWN,
        status_source=StatusSource.DERIVED if told is None else StatusSource.EXPLICIT,
        started_at=moment(call.record.get("timestamp"))[0],
        error=Error(_error_text(turn, call)) if failed else None,
        preview=_telling(call.arguments),
        at=At(turn, place),
    )


def _error_text(turn: Turn, call: Execution) -> str:
    """The tool's own error, else what the summary gives as the answer, else what the tool answered."""
    own = mapping(call.answer).get("error")
    if own is not None:
        return as_text(own)
    told = string(turn.line.get("target_response")) if call.to_target else None
    return told or call.heard or (as_text(call.output) if call.output else "")


def _telling(arguments: Any) -> str:
    """What tells this call from the next: its message, else its first text."""
    values = mapping(arguments)
    message = string(values.get("message"))
    if message is None:
        message = next((value for value in values.values() if isinstance(value, str)), string(arguments) or "")
    return message[:PREVIEW]


def _target_spans(turn: Turn, parent: str) -> Iterator[Span]:
    for i, item in enumerate(turn.target_tools):
        call, error = mapping(item), mapping(item).get("error")
        failed = error is not None or call.get("success") is False
        explicit = failed or boolean(call.get("success")) is not None
        yield Span(
            id=f"{parent}.t{i + 1}",
            name=_target_name(item),
            operation=Operation.EXECUTE_TOOL,
            parent_id=parent,
            step=turn.number,
            status=Status.ERROR if failed else Status.OK,
            status_source=StatusSource.EXPLICIT if explicit else StatusSource.DERIVED,
            error=Error("" if error is None else as_text(error)) if failed else None,
            preview=_telling(first_of(function_of(call), ARGUMENTS)),
            note="by the target",
            at=At(turn, None, i),
        )


def function_of(call: dict[str, Any]) -> dict[str, Any]:
    """A target's tool call: flat, or with what OpenAI nests under ``function`` beside the rest."""
    return {**mapping(call.get("function")), **call}


def _target_name(item: Any) -> str:
    if isinstance(item, str):
        return item
    call = function_of(mapping(item))
    return next((call[key] for key in _NAMES if isinstance(call.get(key), str) and call[key]), "tool")


def first_of(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these fields that there is, decoded."""
    return next((decoded(record[name]) for name in names if name in record), None)
