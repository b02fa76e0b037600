"""The turns of a Penelope result: its two tellings of them, ``history`` and ``conversation_summary``, laid together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from tracetui.formats.penelope.fields import boolean, decoded, same, whole
from tracetui.formats.scalars import mapping, sequence, string, without
from tracetui.model import Problem

TARGET_TOOL: Final = "send_message_to_target"
FLAT: Final = ("reasoning", "assistant_message", "tool_message")
"""Fields of a flat turn (before executions existed, and in the document) that are one execution together."""
_UNPARSED: Final = ("Unable to parse message", "Unable to parse response")
"""What Penelope puts into the summary where it could not read the history itself."""
_NAMED: Final = 8
"""At most so many turns are named in one problem."""


class Record(msgspec.Struct, frozen=True):
    """One object of the file: its place in its list, decoded, and its bytes (empty: the file is not strict JSON)."""

    place: int
    value: dict[str, Any]
    raw: bytes = b""


class Execution(msgspec.Struct, frozen=True):
    """One tool call of Penelope: its record, and the path to it within the turn's record (empty for a flat turn)."""

    record: dict[str, Any]
    path: tuple[str | int, ...]
    to_target: bool
    """The call that the turn's line in the summary is about."""
    name: str
    arguments: Any
    """Arguments of the call, decoded."""
    answer: Any
    """What the tool answered, decoded: ``{"success", "output", "error", "metadata"}``, or plain text."""
    success: bool | None
    """Whether the tool says that it succeeded."""

    @property
    def output(self) -> Any:
        """The answer without its wrapping."""
        answer = self.answer
        return answer["output"] if isinstance(answer, dict) and "output" in answer else answer

    @property
    def said(self) -> str | None:
        """The message that was sent."""
        return string(mapping(self.arguments).get("message"))

    @property
    def heard(self) -> str | None:
        """The target's answer as one text, worded as in the summary."""
        error = string(mapping(self.answer).get("error"))
        if self.success is False and error is not None:
            return f"Error: {error}"
        output = self.output
        return string(output.get("response")) if isinstance(output, dict) else string(output)


class Turn(msgspec.Struct, frozen=True):
    """One turn: its detail in the history, its line in the summary, or both."""

    id: str
    number: int | None
    """The trace's own number."""
    history: Record | None
    summary: Record | None
    calls: tuple[Execution, ...]
    target_call: Execution | None
    """The call that reached the target."""

    @property
    def line(self) -> dict[str, Any]:
        """The record of the summary, empty if there is none."""
        return self.summary.value if self.summary else {}

    @property
    def detail(self) -> dict[str, Any]:
        """The record of the history, empty if there is none."""
        return self.history.value if self.history else {}

    @property
    def said(self) -> str | None:
        """What Penelope said, by the summary or else the history."""
        call = self.target_call
        return string(self.line.get("penelope_message")) or (call.said if call else None)

    @property
    def heard(self) -> str | None:
        """What the target answered, by the summary or else the history."""
        call = self.target_call
        return string(self.line.get("target_response")) or (call.heard if call else None)

    @property
    def target_tools(self) -> list[Any]:
        """Calls that the target itself made: ``tool_calls`` of the summary, else of the answer's metadata."""
        call = self.target_call
        output = mapping(call.output) if call else {}
        return sequence(self.line.get("tool_calls")) or sequence(mapping(output.get("metadata")).get("tool_calls"))


def turns_of(history: Iterable[Record], summary: Iterable[Record], path: str) -> tuple[list[Turn], list[Problem]]:
    """Lay both tellings together by turn number (by place where there is none), in the order of the numbers.

    Where they disagree, the summary is what is shown of the turn and the history what is below it; problems say in
    which turns that is so, and what could not be read.
    """
    lines: dict[int, list[Record]] = {}
    for record in summary:
        lines.setdefault(_order(record, "turn"), []).append(record)
    found: list[tuple[int, Record | None, Record | None]] = []
    both = bool(lines)
    for record in history:
        order = _order(record, "turn_number")
        matching = lines.get(order)
        found.append((order, record, matching.pop(0) if matching else None))
    both = both and bool(found)
    found.extend((order, None, record) for order, records in lines.items() for record in records)
    found.sort(key=lambda item: item[0])
    turns = _named(found)
    return turns, [*_unreadable(turns, path), *(_disagreements(turns, path) if both else ())]


def rest_of(turn: Turn) -> dict[str, Any]:
    """Everything that the history says about a turn itself, its calls left out."""
    record, calls = turn.detail, turn.calls
    rest = without(record, "executions", "target_interaction")
    executions, target = record.get("executions"), record.get("target_interaction")
    if "executions" in record and not isinstance(executions, list):
        rest["executions"] = executions
    rest.update((f"executions[{i}]", item) for i, item in enumerate(sequence(executions)) if not isinstance(item, dict))
    if "target_interaction" in record and not any(same(target, call.record) for call in calls):
        rest["target_interaction"] = target
    return without(rest, *FLAT) if calls and not calls[0].path else rest


def _order(record: Record, name: str) -> int:
    number = whole(record.value.get(name))
    return record.place + 1 if number is None else number


def _named(found: list[tuple[int, Record | None, Record | None]]) -> list[Turn]:
    """Turns with ids that are unique in the run: the number, ``3~2`` for a second turn 3."""
    seen: dict[int, int] = {}
    turns = []
    for order, history, summary in found:
        seen[order] = seen.get(order, 0) + 1
        name = f"{order}" if seen[order] == 1 else f"{order}~{seen[order]}"
        number = whole(history.value.get("turn_number")) if history else None
        if number is None and summary:
            number = whole(summary.value.get("turn"))
        calls = _executions(history.value) if history else ()
        turns.append(Turn(name, number, history, summary, calls, next((c for c in calls if c.to_target), None)))
    return turns


def _executions(record: dict[str, Any]) -> tuple[Execution, ...]:
    """The tool calls of a turn. ``target_interaction`` repeats one of ``executions`` and is not counted twice."""
    listed = [(i, item) for i, item in enumerate(sequence(record.get("executions"))) if isinstance(item, dict)]
    target = record.get("target_interaction")
    if not listed and not isinstance(target, dict):
        flat: dict[str, Any] = {name: record[name] for name in FLAT if name in record}
        return (_execution(flat, (), True),) if any(flat.get(name) is not None for name in FLAT[1:]) else ()
    reached = _reached([item for _, item in listed], target)
    found = [_execution(item, ("executions", i), place == reached) for place, (i, item) in enumerate(listed)]
    if reached is None and isinstance(target, dict):
        found.append(_execution(target, ("target_interaction",), True))
    return tuple(found)


def _reached(listed: list[dict[str, Any]], target: Any) -> int | None:
    """Which of the listed executions reached the target: the one repeated as such, else the last by its tool's name."""
    if not isinstance(target, dict):
        return max((i for i, item in enumerate(listed) if item.get("tool_name") == TARGET_TOOL), default=None)
    call_id = _call_id(target)
    for place in reversed(range(len(listed))):
        if same(listed[place], target) or (call_id is not None and _call_id(listed[place]) == call_id):
            return place
    return None


def _call_id(execution: dict[str, Any]) -> str | None:
    return string(mapping(execution.get("tool_message")).get("tool_call_id")) or None


def _execution(record: dict[str, Any], path: tuple[str | int, ...], to_target: bool) -> Execution:
    message = record.get("tool_message")
    answered = mapping(message)
    calls = [mapping(call) for call in sequence(mapping(record.get("assistant_message")).get("tool_calls"))]
    call = next((call for call in calls if same(call.get("id"), answered.get("tool_call_id"))), next(iter(calls), {}))
    function = mapping(call.get("function"))
    names = (record.get("tool_name"), function.get("name"), answered.get("name"))
    answer = decoded(message.get("content") if isinstance(message, dict) else message)
    return Execution(
        record=record,
        path=path,
        to_target=to_target,
        name=next((name for name in names if isinstance(name, str) and name), "tool"),
        arguments=decoded(function.get("arguments")),
        answer=answer,
        success=boolean(mapping(answer).get("success")),
    )


def _unreadable(turns: list[Turn], path: str) -> Iterator[Problem]:
    """Executions that are no objects; `rest_of` keeps them."""
    for turn in turns:
        for i, item in enumerate(sequence(turn.detail.get("executions"))):
            if not isinstance(item, dict) and turn.history is not None:
                yield Problem(path, f"history[{turn.history.place}].executions[{i}]", "not an object")


def _disagreements(turns: list[Turn], path: str) -> list[Problem]:
    both = [turn for turn in turns if turn.history and turn.summary]
    found = (
        ("only in the history", [turn for turn in turns if turn.summary is None]),
        ("not in the history", [turn for turn in turns if turn.history is None]),
        ("penelope_message differs from the history", [turn for turn in both if _message_differs(turn)]),
        ("target_response differs from the history", [turn for turn in both if _answer_differs(turn)]),
        ("success differs from the history", [turn for turn in both if _success_differs(turn)]),
    )
    return [Problem(path, "conversation_summary", f"{_list(which)}: {what}") for what, which in found if which]


def _message_differs(turn: Turn) -> bool:
    return _differ(turn.line.get("penelope_message"), turn.target_call.said if turn.target_call else None)


def _answer_differs(turn: Turn) -> bool:
    return _differ(turn.line.get("target_response"), turn.target_call.heard if turn.target_call else None)


def _differ(told: Any, detail: str | None) -> bool:
    """Whether two tellings differ in more than white space at their ends; what one leaves open is no difference."""
    if not isinstance(told, str) or not told or not detail or told in _UNPARSED:
        return False
    return told.strip() != detail.strip()


def _success_differs(turn: Turn) -> bool:
    told = boolean(turn.line.get("success"))
    detail = turn.target_call.success if turn.target_call else None
    return told is not None and detail is not None and told != detail


def _list(turns: list[Turn]) -> str:
    named = ", ".join(turn.id for turn in turns[:_NAMED])
    more = f" and {len(turns) - _NAMED} more" if len(turns) > _NAMED else ""
    return f"turn{'s' if len(turns) > 1 else ''} {named}{more}"
