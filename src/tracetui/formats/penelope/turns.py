"""The turns of a Penelope result: its two accounts of them, ``history`` and ``conversation_summary``, laid together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from tracetui.formats.document import Outline, Record
from tracetui.formats.penelope.records import (
    TURNS,
    Detail,
    Exchange,
    Line,
    Tool,
    as_text,
    decoded,
    same,
)
from tracetui.formats.scalars import boolean, mapping, moment, sequence, string, zoned
from tracetui.model import PREVIEW, Error, Operation, Span, Status, StatusSource

TARGET_TOOL: Final = "send_message_to_target"
ARGUMENTS: Final = ("arguments", "args", "input")
_UNPARSED: Final = ("Unable to parse message", "Unable to parse response")
"""What Penelope puts into the summary where it could not read the history itself."""
_NAMED: Final = 8
"""At most so many turns are named in one problem."""
_NO_SUMMARY: Final = Line()
_OK: Final = Status.OK
_ERROR: Final = Status.ERROR
_EXPLICIT: Final = StatusSource.EXPLICIT
_DERIVED: Final = StatusSource.DERIVED


class Call(msgspec.Struct, frozen=True):
    """One tool call of Penelope, and the path to it within the turn's record (empty for a flat turn)."""

    path: tuple[str | int, ...]
    to_target: bool
    """The call that the turn's line in the summary is about."""
    name: str
    arguments: Any
    """Decoded."""
    answer: Any
    """What the tool answered, decoded: ``{"success", "output", "error", "metadata"}``, or plain text."""
    answered: bool
    success: bool | None
    """Whether the tool reports success."""
    started_at: float | None

    @property
    def output(self) -> Any:
        """The answer without its wrapping."""
        answer = self.answer
        return answer["output"] if isinstance(answer, dict) and "output" in answer else answer

    @property
    def message(self) -> str | None:
        """The message that was sent."""
        return string(mapping(self.arguments).get("message"))

    @property
    def response(self) -> str | None:
        """The target's answer as one text, worded as in the summary."""
        error = string(mapping(self.answer).get("error"))
        if self.success is False and error is not None:
            return f"Error: {error}"
        output = self.output
        return string(output.get("response")) if isinstance(output, dict) else string(output)


class Turn(msgspec.Struct, frozen=True):
    """One turn: its record in the history, its line in the summary, or both."""

    id: str
    number: int | None
    """The trace's own number."""
    history: Record | None
    summary: Record | None
    line: Line
    calls: tuple[Call, ...]
    target_call: Call | None
    """The call that reached the target."""

    @property
    def message(self) -> str | None:
        """What Penelope sent, by the summary or else the history."""
        return self.line.penelope_message or (self.target_call.message if self.target_call else None)

    @property
    def response(self) -> str | None:
        """What the target answered, by the summary or else the history."""
        return self.line.target_response or (self.target_call.response if self.target_call else None)

    @property
    def target_tools(self) -> list[Any]:
        """Calls that the target itself made: ``tool_calls`` of the summary, else of the answer's metadata."""
        output = mapping(self.target_call.output) if self.target_call else {}
        return self.line.tool_calls or sequence(mapping(output.get("metadata")).get("tool_calls"))

    @property
    def started_at(self) -> tuple[float | None, str | None]:
        """When the turn was stamped, and in which zone."""
        found = zoned(self.history.value.timestamp) if self.history else (None, None)
        return found if found[0] is not None else zoned(self.line.timestamp)

    @property
    def failures(self) -> list[bool]:
        """For each call whether it failed; for a turn without calls, whether the turn did."""
        failed = self.line.success is False
        return [call.success is False or (call.to_target and failed) for call in self.calls] or [failed]


class At(msgspec.Struct, frozen=True):
    """Where the body of a span is: a turn, a call in it, or a call that the target made."""

    turn: Turn
    call: int | None = None
    target_tool: int | None = None


# ---- laying the two accounts together


def turns_of(outline: Outline) -> list[Turn]:
    """Lay both accounts together by turn number (by place where there is none), in the order of the numbers.

    Where they disagree, the summary is what is shown of the turn and the history what is below it; problems say in
    which turns that is so, and what could not be read.
    """
    history, summary = (list(outline.records(name, schema)) for name, schema in TURNS.items())
    lines: dict[int, list[Record]] = {}
    for record in summary:
        lines.setdefault(record.place + 1 if record.value.turn is None else record.value.turn, []).append(record)
    found: list[tuple[int, Record | None, Record | None]] = []
    for record in history:
        for i, item in enumerate(record.value.executions or ()):
            if item is None:  # the body of the turn shows it
                outline.note(f"history[{record.place}].executions[{i}]", "not an object")
        order = record.place + 1 if record.value.turn_number is None else record.value.turn_number
        found.append((order, record, lines[order].pop(0) if lines.get(order) else None))
    found.extend((order, None, record) for order, records in lines.items() for record in records)
    found.sort(key=lambda item: item[0])
    seen: Counter[int] = Counter()
    turns = []
    for order, *accounts in found:
        seen[order] += 1
        turns.append(_turn(f"{order}" if seen[order] == 1 else f"{order}~{seen[order]}", *accounts))
    differing: dict[str, list[str]] = {}
    for turn in turns if history and summary else ():
        for what in _differences(turn):
            differing.setdefault(what, []).append(turn.id)
    for what, which in differing.items():
        more = f" and {len(which) - _NAMED} more" if len(which) > _NAMED else ""
        named = f"turn{'s' if len(which) > 1 else ''} {', '.join(which[:_NAMED])}{more}"
        outline.note("conversation_summary", f"{named}: {what}")
    return turns


def _turn(name: str, history: Record | None, summary: Record | None) -> Turn:
    number = history.value.turn_number if history else None
    line: Line = summary.value if summary else _NO_SUMMARY
    calls = tuple(_calls(history.value)) if history else ()
    target = next((call for call in calls if call.to_target), None)
    return Turn(name, line.turn if number is None else number, history, summary, line, calls, target)


def _differences(turn: Turn) -> Iterator[str]:
    line, call = turn.line, turn.target_call
    if turn.summary is None:
        yield "only in the history"
    elif turn.history is None:
        yield "not in the history"
    elif call is not None:
        if _differ(line.penelope_message, call.message):
            yield "penelope_message differs from the history"
        if _differ(line.target_response, call.response):
            yield "target_response differs from the history"
        if {line.success, call.success} == {True, False}:
            yield "success differs from the history"


def _differ(line: str | None, detail: str | None) -> bool:
    """Whether two accounts differ in more than white space at their ends; what one leaves open is no difference."""
    return bool(line and detail and line not in _UNPARSED and line.strip() != detail.strip())


def _calls(record: Detail) -> Iterator[Call]:
    """The tool calls of a turn. ``target_interaction`` repeats one of ``executions`` and is not counted twice."""
    listed = [(i, item) for i, item in enumerate(record.executions or ()) if item is not None]
    target = record.target_interaction
    if not listed and target is None:
        flat = Exchange(record.assistant_message, record.tool_message)
        if flat != _NOTHING:
            yield _call(flat, (), True)
        return
    reached = _reached([item for _, item in listed], target)
    for place, (i, item) in enumerate(listed):
        yield _call(item, ("executions", i), place == reached)
    if reached is None and target is not None:
        yield _call(target, ("target_interaction",), True)


_NOTHING: Final = Exchange()


def _reached(listed: Sequence[Exchange], target: Exchange | None) -> int | None:
    """Which of the listed executions reached the target: the one repeated as such, else the last by its tool's name."""
    if target is None:
        return max((i for i, item in enumerate(listed) if item.tool_name == TARGET_TOOL), default=None)
    call_id = _call_id(target)
    for place in reversed(range(len(listed))):
        if same(listed[place], target) or (call_id and _call_id(listed[place]) == call_id):
            return place
    return None


def _call_id(record: Exchange) -> str | None:
    return string(record.tool_message.tool_call_id) if isinstance(record.tool_message, Tool) else None


def _call(record: Exchange, path: tuple[str | int, ...], to_target: bool) -> Call:
    message = record.tool_message
    tool = message if isinstance(message, Tool) else Tool(content=message)
    calls = [call for call in (record.assistant_message and record.assistant_message.tool_calls) or () if call]
    call = next((call for call in calls if same(call.id, tool.tool_call_id)), calls[0] if calls else None)
    function = call.function if call else None
    answer = decoded(tool.content)
    return Call(
        path=path,
        to_target=to_target,
        name=record.tool_name or (function and function.name) or tool.name or "tool",
        arguments=decoded(function.arguments) if function else None,
        answer=answer,
        answered=message is not None,
        success=boolean(mapping(answer).get("success")),
        started_at=moment(record.timestamp),
    )


# ---- spans


def spans_of(turn: Turn, timings: Mapping[int | None, float | None]) -> Iterator[Span]:
    """The turn, its calls below it, and below the one that reached the target what the target called itself.

    Penelope stamps a turn and an execution once; that time is where their spans start. What failed is the call: its
    turn, which went on, is only noted, so that no failure is counted twice.
    """
    failures = turn.failures
    yield _turn_span(turn, timings, bool(turn.calls) and any(failures))
    for i, call in enumerate(turn.calls):
        span = _call_span(turn, i, call, failures[i])
        yield span
        if call.to_target:
            yield from _target_spans(turn, span.id)
    if turn.target_call is None:
        yield from _target_spans(turn, turn.id)


def _turn_span(turn: Turn, timings: Mapping[int | None, float | None], failed_below: bool) -> Span:
    success, number = turn.line.success, turn.number
    failed_here = success is False and turn.target_call is None
    return Span(
        id=turn.id,
        name="turn" if number is None else f"turn {number}",
        operation=Operation.TURN,
        step=number,
        is_step=True,
        status=_ERROR if failed_here else _OK,
        status_source=_EXPLICIT if success is not None and not failed_below else _DERIVED,
        started_at=turn.started_at[0],
        duration_ms=timings.get(number) if number is not None else None,
        error=Error(turn.response or "") if failed_here else None,
        preview=(turn.message or "")[:PREVIEW],
        note="call failed" if failed_below else "",
        at=At(turn),
    )


def _call_span(turn: Turn, place: int, call: Call, failed: bool) -> Span:
    success = turn.line.success if call.success is None and call.to_target else call.success
    return Span(
        id=f"{turn.id}.{place + 1}",
        name=call.name,
        operation=Operation.EXECUTE_TOOL,
        parent_id=turn.id,
        step=turn.number,
        status=_ERROR if failed else _OK if call.answered or success else Status.UNKNOWN,
        status_source=_DERIVED if success is None else _EXPLICIT,
        started_at=call.started_at,
        error=Error(_error_text(turn, call)) if failed else None,
        preview=_main_text(call.arguments),
        at=At(turn, place),
    )


def _error_text(turn: Turn, call: Call) -> str:
    """The tool's own error, else what the summary gives as the answer, else what the tool answered."""
    own = mapping(call.answer).get("error")
    if own is not None:
        return as_text(own)
    given = turn.line.target_response if call.to_target else None
    return given or call.response or (as_text(call.output) if call.output else "")


def _main_text(arguments: Any) -> str:
    """What distinguishes this call from the next: its message, else its first text."""
    values = mapping(arguments)
    message = string(values.get("message"))
    if message is None:
        message = next((value for value in values.values() if isinstance(value, str)), string(arguments) or "")
    return message[:PREVIEW]


def _target_spans(turn: Turn, parent: str) -> Iterator[Span]:
    for i, item in enumerate(turn.target_tools):
        call = flattened(item)
        error, success = call.get("error"), boolean(call.get("success"))
        failed = error is not None or success is False
        yield Span(
            id=f"{parent}.t{i + 1}",
            name=string(item) or string(call.get("name")) or string(call.get("tool_name")) or "tool",
            operation=Operation.EXECUTE_TOOL,
            parent_id=parent,
            step=turn.number,
            status=_ERROR if failed else _OK,
            status_source=_EXPLICIT if failed or success is not None else _DERIVED,
            error=Error("" if error is None else as_text(error)) if failed else None,
            preview=_main_text(first_of(call, ARGUMENTS)),
            note="by the target",
            at=At(turn, None, i),
        )


def flattened(call: Any) -> dict[str, Any]:
    """A target's tool call: flat, or with what OpenAI nests under ``function`` beside the rest."""
    fields = mapping(call)
    return {**mapping(fields.get("function")), **fields}


def first_of(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these fields that there is, decoded."""
    return next((decoded(record[name]) for name in names if name in record), None)
