"""The turns of a Penelope result: its two accounts of them, ``history`` and ``conversation_summary``, merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.bodies import rendered
from tracetui.formats.document import Outline, Record
from tracetui.formats.penelope.records import TURNS, Asked, Detail, Exchange, Line, Tool, as_text, decoded, same
from tracetui.formats.scalars import boolean, mapping, moment, sequence, string, without, zoned
from tracetui.formats.schema import plain
from tracetui.model import (
    PREVIEW,
    Blob,
    Body,
    Error,
    Message,
    Operation,
    Part,
    Reasoning,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    ToolResult,
)

TARGET_TOOL: Final = "send_message_to_target"
ARGUMENTS: Final = ("arguments", "args", "input")
_UNPARSED: Final = ("Unable to parse message", "Unable to parse response")
"""Penelope's placeholder in the summary for a history that it could not read."""
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
    """The decoded result of the tool: ``{"success", "output", "error", "metadata"}``, or plain text."""
    answered: bool
    success: bool | None
    """Whether the tool reports success."""
    started_at: float | None
    unanswered: int | None = None
    """Index of the call among the tool calls of its message, if the tool's message answers another one."""

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
        """Penelope's message, from the summary or else the history."""
        return self.line.penelope_message or (self.target_call.message if self.target_call else None)

    @property
    def response(self) -> str | None:
        """The target's answer, from the summary or else the history."""
        return self.line.target_response or (self.target_call.response if self.target_call else None)

    @property
    def target_tools(self) -> list[Any]:
        """Calls that the target itself made: ``tool_calls`` of the summary, else of the answer's metadata."""
        output = mapping(self.target_call.output) if self.target_call else {}
        return self.line.tool_calls or sequence(mapping(output.get("metadata")).get("tool_calls"))

    @property
    def started_at(self) -> tuple[float | None, str | None]:
        """When the turn was stamped, and in which zone."""
        stamp = zoned(self.history.value.timestamp) if self.history else (None, None)
        return stamp if stamp[0] is not None else zoned(self.line.timestamp)

    @property
    def failures(self) -> list[bool]:
        """For each call whether it failed; for a turn without calls, whether the turn did."""
        failed = self.line.success is False
        return [call.success is False or (call.to_target and failed) for call in self.calls] or [failed]


class SpanRef(msgspec.Struct, frozen=True):
    """Where the body of a span is: a turn, a call in it, or a call that the target made."""

    turn: Turn
    call: int | None = None
    target_tool: int | None = None


# ---- laying the two accounts together


def turns_of(outline: Outline) -> list[Turn]:
    """Merge both accounts by turn number (by position without one), in the order of the numbers.

    If they disagree, the turn shows the summary and its calls the history. Problems list these turns, and values that
    can't be read.
    """
    history, summary = (list(outline.records(name, schema)) for name, schema in TURNS.items())
    lines: dict[int, list[Record]] = {}
    for record in summary:
        lines.setdefault(record.index + 1 if record.value.turn is None else record.value.turn, []).append(record)
    merged: list[tuple[int, Record | None, Record | None]] = []
    for record in history:
        for i, item in enumerate(record.value.executions or ()):
            if item is None:  # the body of the turn shows it
                outline.note(f"history[{record.index}].executions[{i}]", "not an object")
        order = record.index + 1 if record.value.turn_number is None else record.value.turn_number
        merged.append((order, record, lines[order].pop(0) if lines.get(order) else None))
    merged.extend((order, None, record) for order, records in lines.items() for record in records)
    merged.sort(key=lambda item: item[0])
    seen: Counter[int] = Counter()
    turns = []
    for order, *accounts in merged:
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
    calls = tuple(_with_unanswered(history.value, list(_calls(history.value)))) if history else ()
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
    """Whether two accounts differ other than in surrounding white space or missing values."""
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
    for index, (i, item) in enumerate(listed):
        yield _call(item, ("executions", i), index == reached)
    if reached is None and target is not None:
        yield _call(target, ("target_interaction",), True)


def _with_unanswered(record: Detail, calls: Sequence[Call]) -> Iterator[Call]:
    """The calls of a turn, and those of the same messages that no message of a tool answers, in their order."""
    exchanges = [_exchange_of(record, call) for call in calls]
    seen = {ident for exchange in exchanges if (ident := _call_id(exchange)) is not None}
    for call, exchange in zip(calls, exchanges, strict=True):
        asked = _tool_calls(exchange)
        answered = _answered(exchange, asked)
        is_given = False
        for i, asked_call in asked:
            if i == answered:
                is_given = True
                yield call
            elif asked_call.function and asked_call.function.name and (ident := string(asked_call.id)) not in seen:
                seen |= {ident} if ident is not None else set()
                yield _unanswered(call, i, asked_call)
        if not is_given:
            yield call


def _exchange_of(record: Detail, call: Call) -> Exchange:
    if not call.path:
        return Exchange(record.assistant_message, record.tool_message)
    if call.path[0] == "target_interaction":
        return record.target_interaction or _NOTHING
    return (record.executions or ())[int(call.path[1])] or _NOTHING


def _unanswered(call: Call, index: int, asked: Asked) -> Call:
    function = asked.function
    name, arguments = (function and function.name) or "tool", decoded(function.arguments) if function else None
    return Call(call.path, False, name, arguments, None, False, None, call.started_at, index)


def _tool_calls(record: Exchange) -> list[tuple[int, Asked]]:
    """The tool calls of a message, with their index."""
    calls = (record.assistant_message and record.assistant_message.tool_calls) or ()
    return [(i, call) for i, call in enumerate(calls) if call]


def _answered(record: Exchange, asked: Sequence[tuple[int, Asked]]) -> int | None:
    """Index of the tool call that the tool's message answers: the one of its id, else the first."""
    ident = _call_id(record)
    first = asked[0][0] if asked else None
    return next((i for i, call in asked if same(call.id, ident)), first)


_NOTHING: Final = Exchange()


def _reached(listed: Sequence[Exchange], target: Exchange | None) -> int | None:
    """Which of the listed executions reached the target: the one repeated as such, else the last by its tool's name."""
    if target is None:
        return max((i for i, item in enumerate(listed) if item.tool_name == TARGET_TOOL), default=None)
    call_id = _call_id(target)
    for index in reversed(range(len(listed))):
        if same(listed[index], target) or (call_id and _call_id(listed[index]) == call_id):
            return index
    return None


def _call_id(record: Exchange) -> str | None:
    return string(record.tool_message.tool_call_id) if isinstance(record.tool_message, Tool) else None


def _call(record: Exchange, path: tuple[str | int, ...], to_target: bool) -> Call:
    message = record.tool_message
    tool = message if isinstance(message, Tool) else Tool(content=message)
    asked = _tool_calls(record)
    answered = _answered(record, asked)
    call = None if answered is None else dict(asked).get(answered)
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
    """The turn, its calls below it, and the target's own calls below the call that reached the target.

    Penelope stamps a turn and an execution once; that time is the start of their spans. A failure belongs to the
    call: its turn, which continued, only gets a note, so no failure is counted twice.
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
        at=SpanRef(turn),
    )


def _call_span(turn: Turn, index: int, call: Call, failed: bool) -> Span:
    success = turn.line.success if call.success is None and call.to_target else call.success
    return Span(
        id=f"{turn.id}.{index + 1}",
        name=call.name,
        operation=Operation.EXECUTE_TOOL,
        parent_id=turn.id,
        step=turn.number,
        status=_ERROR if failed else _OK if call.answered or success else Status.UNKNOWN,
        status_source=_DERIVED if success is None else _EXPLICIT,
        started_at=call.started_at,
        error=Error(_error_text(turn, call)) if failed else None,
        preview=_main_text(call.arguments),
        at=SpanRef(turn, index),
    )


def _error_text(turn: Turn, call: Call) -> str:
    """The tool's own error, else the answer in the summary, else the tool's result."""
    own = mapping(call.answer).get("error")
    if own is not None:
        return as_text(own)
    given = turn.line.target_response if call.to_target else None
    return given or call.response or (as_text(call.output) if call.output else "")


def _main_text(arguments: Any) -> str:
    """The preview of a call: its message, else its first text."""
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
            at=SpanRef(turn, None, i),
        )


def flattened(call: Any) -> dict[str, Any]:
    """A target's tool call: flat, or with OpenAI's nested ``function``."""
    fields = mapping(call)
    return {**mapping(fields.get("function")), **fields}


def first_of(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these fields that there is, decoded."""
    return next((decoded(record[name]) for name in names if name in record), None)


# ---- bodies

_RESULTS: Final = ("output", "result", "response")
_FLAT: Final = ("reasoning", "assistant_message", "tool_message")
"""Fields of a flat turn that are one call together."""


def body_of(at: SpanRef) -> Body:
    """Everything about the span that is at `at`. Raises `FormatError` if it is not one of ours."""
    if not isinstance(at, SpanRef):
        raise FormatError("this span comes from another format")
    if at.target_tool is not None:
        return _target_body(at.turn, at.target_tool)
    if at.call is not None:
        return _call_body(at.turn, at.turn.calls[at.call])
    return _turn_body(at.turn)


def _fields(record: Record | None) -> dict[str, Any]:
    return {} if record is None else mapping(plain(record.raw))


def _turn_body(turn: Turn) -> Body:
    """The turn as a conversation: Penelope is its user, the target its assistant, as its own metrics have it."""
    line, message, response = _fields(turn.summary), turn.message, turn.response
    thought = string(line.get("penelope_reasoning"))
    parts: list[Part] = [Reasoning(thought)] if thought else []
    parts += [Text(message)] if message else []
    attributes = _rest(turn, _fields(turn.history))
    consumed = [key for key in ("penelope_message", "penelope_reasoning", "target_response") if string(line.get(key))]
    if sequence(line.get("tool_calls")):
        consumed.append("tool_calls")
    if same(line.get("turn"), attributes.get("turn_number")):
        consumed.append("turn")
    for key, value in without(line, *consumed).items():
        is_taken = key in attributes and not same(attributes[key], value)
        attributes[f"conversation_summary.{key}" if is_taken else key] = value
    record = turn.history or turn.summary
    return Body(
        input=message,
        output=response,
        input_messages=(Message("user", tuple(parts), name="penelope"),) if parts else (),
        output_messages=(Message("assistant", (Text(response),), name="target"),) if response else (),
        attributes=attributes,
        raw=b"" if record is None else bytes(record.raw),
    )


def _rest(turn: Turn, record: dict[str, Any]) -> dict[str, Any]:
    """The record of a turn in the history without its calls."""
    if turn.calls and not turn.calls[0].path:
        record = without(record, *_FLAT)
    rest = without(record, "executions", "target_interaction")
    executions, target = record.get("executions"), record.get("target_interaction")
    if "executions" in record and not isinstance(executions, list):
        rest["executions"] = executions
    rest.update((f"executions[{i}]", item) for i, item in enumerate(sequence(executions)) if not isinstance(item, dict))
    if "target_interaction" in record and not any(same(target, _at(record, call.path)) for call in turn.calls):
        rest["target_interaction"] = target
    return rest


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _call_body(turn: Turn, call: Call) -> Body:
    record: dict[str, Any] = _at(_fields(turn.history), call.path)
    if call.unanswered is not None:
        place = ("assistant_message", "tool_calls", call.unanswered)
        item = _at(record, place)
        parts_of_call: list[Part] = []
        rest = _call_part(item, parts_of_call)
        raw = _slice(turn.history, (*call.path, *place), item)
        return Body(input=call.arguments, attributes=rest, raw=raw)
    if not call.path:
        record = {name: record[name] for name in _FLAT if name in record}
    attributes = without(record, *_FLAT)
    parts: list[Part] = []
    thought = string(record.get("reasoning"))
    if thought is not None:
        parts.append(Reasoning(thought))
    elif record.get("reasoning") is not None:
        attributes["reasoning"] = record["reasoning"]
    asked = _assistant(record.get("assistant_message"), parts, thought, attributes)
    if any(isinstance(part, ToolCall) and part.name == attributes.get("tool_name") for part in parts):
        del attributes["tool_name"]  # the call shows it
    return Body(
        input=call.arguments,
        output=call.output,
        input_messages=asked,
        output_messages=_tool(record.get("tool_message"), call, attributes),
        attributes=attributes,
        raw=_slice(turn.history, call.path, record),
    )


def _assistant(message: Any, parts: list[Part], thought: str | None, attributes: dict[str, Any]) -> tuple[Message, ...]:
    """Penelope's own message: its reasoning, text and calls; other fields go to `attributes`."""
    fields = mapping(message)
    content = fields.get("content")
    if isinstance(content, str):
        parts += [Text(content)] if content and content != thought else []  # today's Penelope repeats its reasoning
    elif content is not None:
        parts.append(Blob("content", content))
    rests = [_call_part(item, parts) for item in sequence(fields.get("tool_calls"))]
    rest = without(fields, "role", "content", "tool_calls")
    if fields.get("tool_calls") is not None and not isinstance(fields["tool_calls"], list):
        rest["tool_calls"] = fields["tool_calls"]
    elif any(rests):
        rest["tool_calls"] = rests
    role = string(fields.get("role"))
    if role is None and fields.get("role") is not None:
        rest["role"] = fields["role"]
    if rest or (message is not None and not isinstance(message, dict)):
        attributes["assistant_message"] = rest or message
    return (Message(role or "assistant", tuple(parts)),) if parts or fields else ()


def _call_part(item: Any, parts: list[Part]) -> dict[str, Any]:
    """Add one call to `parts`; returns the fields that don't fit it."""
    call = mapping(item)
    function, name = mapping(call.get("function")), string(mapping(call.get("function")).get("name"))
    if name is None:
        parts.append(Blob("tool_call", item))
        return {}
    call_id = string(call.get("id"))
    parts.append(ToolCall(call_id, name, decoded(function.get("arguments"))))
    rest = without(call, "function") if call_id is None else without(call, "function", "id")
    more = without(function, "name", "arguments")
    return {**rest, "function": more} if more else rest


def _tool(message: Any, call: Call, attributes: dict[str, Any]) -> tuple[Message, ...]:
    """The tool's result as a message; other fields go to `attributes`."""
    if message is None:
        return ()
    fields = mapping(message)
    texts = {key: string(fields.get(key)) for key in ("role", "tool_call_id", "name")}
    rest = without(fields, "content", *(key for key, value in texts.items() if value is not None))
    if rest or not call.answered:
        attributes["tool_message"] = rest or message
    failed = None if call.success is None else not call.success
    result = ToolResult(texts["tool_call_id"], call.answer, failed, texts["name"])
    return (Message(texts["role"] or "tool", (result,)),)


def _slice(record: Record | None, path: tuple[str | int, ...], value: Any) -> bytes:
    """The bytes at `path` in a record, exactly as they are there; a rendering of `value` where that cannot be."""
    raw: Any = record.raw if record else msgspec.Raw(b"")
    try:
        for step in path:
            kind: Any = dict[str, msgspec.Raw] if isinstance(step, str) else list[msgspec.Raw]
            raw = msgspec.json.decode(raw, type=kind)[step]
    except (ValueError, RecursionError):  # nested too deeply
        return rendered(value)
    return bytes(raw) or rendered(value)


def _target_body(turn: Turn, index: int) -> Body:
    """A call of the target; its bytes are in the summary, unless it is only in the text of an answer."""
    item = turn.target_tools[index]
    call = flattened(item)
    excluded = (key for names in (ARGUMENTS, _RESULTS) for key in [key for key in names if key in call][:1])
    attributes = without(call, "function", *excluded) if isinstance(item, dict) else {"tool_call": item}
    function = mapping(item).get("function")
    hidden = {k: v for k, v in function.items() if k in item} if isinstance(function, dict) else function
    if hidden not in (None, {}):
        attributes["function"] = hidden
    return Body(
        input=first_of(call, ARGUMENTS),
        output=first_of(call, _RESULTS),
        attributes=attributes,
        raw=_slice(turn.summary, ("tool_calls", index), item) if turn.line.tool_calls else rendered(item),
    )
