"""Paprika's older event files (v0), which its runtime still writes: events become steps in the shape of v1.

Facts: vaibhavhariram/paprika, ``events.py`` and ``trace_store.py``. A call is a start and an end event with the same
``step_index``; a call that raises has no end. The run's input stands in ``run_start``, its output, error and status in
``run_end``, the id of the original of a replay in ``metadata``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from tracetui.formats.paprika.fields import Raw, fields_of, value_of, values_of
from tracetui.formats.paprika.record import (
    Agent,
    Execution,
    Facts,
    Items,
    Policy,
    Record,
    Skim,
    Totals,
    Violation,
    facts_of,
    items_of,
    outline,
    places_of,
    skim_of,
)
from tracetui.formats.scalars import mapping, string
from tracetui.model import Problem

_STARTS: Final = ("llm_call_start", "tool_call_start")
_ENDS: Final = ("llm_call_end", "tool_call_end")
_RUN: Final = ("run_start", "run_end")
_STATED: Final = {"run_start": ("input_args",), "run_end": ("output",)}
"""What becomes input and output of the run."""
_FROM_END: Final = ("output_data", "token_usage", "duration_ms", "error")


class _Event(Skim):
    """One event; its other fields are those of steps."""

    event_type: str | None = None
    agent_name: str | None = None
    input_args: Raw = Raw(b"null")
    total_tokens: int | None = None


class _Whole(msgspec.Struct):
    """The typed decode of an event file: what is not named here is skipped."""

    events: list[_Event]
    run_id: str | None = None
    agent_name: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    metadata: Raw = Raw(b"null")
    schema_version: Any = None
    steps: Any = msgspec.UNSET


_WHOLE: Final = msgspec.json.Decoder(_Whole)
_EVENT: Final = msgspec.json.Decoder(_Event)
_EVENTS: Final = msgspec.json.Decoder(list[_Event])
_NO_EVENT: Final = _Event()


def skim(data: bytes) -> Record | None:
    """An event file by one typed decode; None where its types do not fit (or it is none)."""
    try:
        whole = _WHOLE.decode(data)
    except (ValueError, RecursionError):
        return None
    if whole.steps is not msgspec.UNSET:
        return None
    events = whole.events
    groups, frame = _grouped(events)
    steps = [_step([events[i] for i in group]) for group in groups]
    first = next((events[i] for name, i in frame if name == "run_start"), _NO_EVENT)
    last = next((events[i] for name, i in reversed(frame) if name == "run_end"), _NO_EVENT)
    broken = next((step for step in steps if step.step_type == "policy_violation"), None)
    facts = Facts(
        schema_version=whole.schema_version,
        record_id=whole.run_id,
        replay_of=string(mapping(value_of(whole.metadata)).get("replay_of")),
        agent=Agent(whole.agent_name or first.agent_name),
        execution=Execution(whole.started_at, whole.ended_at, None, last.status),
        policy=None if broken is None else Policy(Violation(broken.policy_name, broken.message)),
        totals=Totals(None, None, last.total_tokens),
        input=value_of(first.input_args),
        error=last.error,
        metadata=whole.metadata,
    )
    return Record(facts, steps)


def load(data: bytes, path: str) -> Record:
    """A v0 event file as a record. Raises `FormatError` if it is no JSON object."""
    root, note = outline(data)
    typed = skim(data)
    problems = [Problem(path, "", f"read leniently: {note}")] if note and typed is None else []
    items = items_of(root.get("events"), "events", path, problems)
    attributes = values_of(root, "events")
    events = _events(root.get("events"), items)
    groups, frame = _grouped(events)
    places = places_of(data, items.raws)
    record = Record(
        Facts(),
        [_step([events[i] for i in group]) for group in groups],
        problems,
        {},
        attributes | items.stray,
        [tuple(places[i] for i in group) for group in groups] if places else [],
        [tuple(items.raws[i] for i in group) for group in groups] if note else [],
    )
    record.fields = _fields(attributes, [(name, values_of(fields_of(items.raws[i]))) for name, i in frame], record)
    broken = next((i for i, step in enumerate(record.steps) if step.step_type == "policy_violation"), None)
    if broken is not None:
        record.fields["policy"] = {"violation": values_of(fields_of(items.raws[groups[broken][0]]))}
    record.facts = facts_of(record.fields) if typed is None else typed.facts
    return record


def _events(listed: Any, items: Items) -> list[_Event]:
    """All events by one typed decode, where their types fit; else one by one."""
    try:
        return _EVENTS.decode(listed)
    except (TypeError, ValueError, RecursionError):
        return [_event(raw) for raw in items.raws]


def _event(raw: Any) -> _Event:
    if isinstance(raw, Raw):
        with suppress(ValueError, RecursionError):
            return _EVENT.decode(raw)
    step = skim_of(raw)
    kind = string(value_of(fields_of(raw).get("event_type")))
    return _Event(**{name: getattr(step, name) for name in Skim.__struct_fields__}, event_type=kind)


def _grouped(events: list[_Event]) -> tuple[list[list[int]], list[tuple[str, int]]]:
    """Positions of the events that are one step together, and the events that frame the run."""
    groups: list[list[int]] = []
    frame: list[tuple[str, int]] = []
    waiting: dict[tuple[str, int | None], list[int]] = {}
    for i, event in enumerate(events):
        kind = event.event_type or ""
        called = (kind.removesuffix("_start").removesuffix("_end"), event.step_index)
        if kind in _RUN:
            frame.append((kind, i))
        elif kind in _ENDS and called in waiting:
            waiting.pop(called).append(i)
        else:
            groups.append([i])
            if kind in _STARTS:
                waiting[called] = groups[-1]
    return groups, frame


def _step(events: list[_Event]) -> Skim:
    """One step of a start event and its end event, if it has one."""
    step = events[0]
    kind = step.event_type or "event"
    step.step_type = kind.removesuffix("_start").removesuffix("_end") if kind in (*_STARTS, *_ENDS) else kind
    if len(events) > 1:
        for name in _FROM_END:
            setattr(step, name, getattr(events[1], name))
    return step


def _fields(root: dict[str, Any], frame: list[tuple[str, dict[str, Any]]], record: Record) -> dict[str, Any]:
    """The record's fields in the names of v1; what the events of the run say besides goes to the attributes."""
    first: dict[str, Any] = next((event for name, event in frame if name == "run_start"), {})
    last: dict[str, Any] = next((event for name, event in reversed(frame) if name == "run_end"), {})
    for number, (name, event) in enumerate(frame):
        used = _STATED[name] if event is first or event is last else ()
        key = name if name not in record.attributes else f"{name}[{number}]"
        record.attributes[key] = {field: value for field, value in event.items() if field not in used}
    ends = {"started_at": root.get("started_at"), "ended_at": root.get("ended_at"), "status": last.get("status")}
    return {
        "record_id": root.get("run_id"),
        "agent": {"name": root.get("agent_name") or first.get("agent_name")},
        "execution": ends,
        "totals": {"total_tokens": last.get("total_tokens")} if "total_tokens" in last else {},
        "input": first.get("input_args"),
        "output": last.get("output"),
        "error": last.get("error"),
        "replay_of": mapping(root.get("metadata")).get("replay_of"),
        "metadata": root.get("metadata"),
    }
