"""The records of Paprika files: ExecutionRecord v1, and the event file v0 that came before it.

Facts: vaibhavhariram/paprika, ``execution_record.py`` (v1), ``events.py`` and ``trace_store.py`` (v0, which its runtime
still writes), and its document "Execution Records".
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from tracetui.formats.document import Outline, Record
from tracetui.formats.scalars import mapping, string
from tracetui.formats.schema import NULL, Finite, Schema, Whole, plain
from tracetui.model import Operation

Number = Whole | Finite


class Tokens(msgspec.Struct, gc=False):
    """``token_usage`` of a model call, and the names that other providers use for the same."""

    known: ClassVar[str] = ""
    prompt_tokens: Number | None = None
    completion_tokens: Number | None = None
    total_tokens: Number | None = None
    input_tokens: Number | None = None
    output_tokens: Number | None = None


class Step(msgspec.Struct, gc=False):
    """What any step may have; inputs and outputs stay undecoded."""

    kind: ClassVar[str] = "?"
    operation: ClassVar[Operation] = Operation.UNKNOWN
    step_index: Number | None = None
    timestamp: str | None = None
    model: str | None = None
    provider: str | None = None
    tool_name: str | None = None
    policy_name: str | None = None
    message: str | None = None
    status: str | None = None
    input_hash: str | None = None
    token_usage: Tokens | None = None
    duration_ms: Finite | None = None
    error: Any = None
    input_data: msgspec.Raw = NULL
    args: msgspec.Raw = NULL
    output_data: msgspec.Raw = NULL

    @property
    def type(self) -> str:
        """The type of the step, in the words of v1."""
        return self.kind


class OtherStep(Step, gc=False):
    """A step of a type that is not known (1.x promises new ones)."""

    step_type: str | None = None

    @property
    def type(self) -> str:
        return self.step_type or self.kind


class ModelCall(Step, gc=False, tag_field="step_type", tag="llm_call"):
    known: ClassVar[str] = "event_id side_effect"
    kind: ClassVar[str] = "llm_call"
    operation: ClassVar[Operation] = Operation.CHAT


class ToolCall(Step, gc=False, tag_field="step_type", tag="tool_call"):
    known: ClassVar[str] = "event_id side_effect"
    kind: ClassVar[str] = "tool_call"
    operation: ClassVar[Operation] = Operation.EXECUTE_TOOL


class Violated(Step, gc=False, tag_field="step_type", tag="policy_violation"):
    known: ClassVar[str] = "details event_id"
    kind: ClassVar[str] = "policy_violation"
    operation: ClassVar[Operation] = Operation.POLICY


class Agent(msgspec.Struct, gc=False):
    known: ClassVar[str] = "version"
    name: str | None = None


class Execution(msgspec.Struct, gc=False):
    known: ClassVar[str] = ""
    started_at: str | None = None
    ended_at: str | None = None
    duration_ms: Finite | None = None
    status: str | None = None
    termination_reason: str | None = None


class Violation(msgspec.Struct, gc=False):
    known: ClassVar[str] = "details"
    policy_name: str | None = None
    message: str | None = None


class Policy(msgspec.Struct, gc=False):
    known: ClassVar[str] = "config"
    violation: Violation | None = None


class Totals(msgspec.Struct, gc=False):
    """``totals``, of which the rest is recounted only where a run is opened."""

    known: ClassVar[str] = "llm_calls step_count tool_calls"
    prompt_tokens: Number | None = None
    completion_tokens: Number | None = None
    total_tokens: Number | None = None


class ExecutionRecord(msgspec.Struct, kw_only=True):
    """A v1 record but for its steps and output. `error` and `input` are missing only where a part of it is read."""

    known: ClassVar[str] = "environment output"
    schema_version: Any = None
    record_id: str | None = None
    parent_record_id: str | None = None
    replay_of: str | None = None
    agent: Agent | str | None = None
    execution: Execution | None = None
    policy: Policy | None = None
    totals: Totals | None = None
    input: Any = None
    error: Any = None
    tags: Any = None
    source: Any = None
    extensions: msgspec.Raw = NULL
    metadata: msgspec.Raw = NULL


class Start(msgspec.Struct, gc=False, tag_field="event_type", tag="run_start"):
    known: ClassVar[str] = "event_id run_id step_index timestamp"
    agent_name: str | None = None
    input_args: Any = None


class End(msgspec.Struct, gc=False, tag_field="event_type", tag="run_end"):
    known: ClassVar[str] = "event_id output run_id step_index timestamp"
    status: str | None = None
    error: Any = None
    total_tokens: Number | None = None


class ModelStart(ModelCall, gc=False, tag_field="event_type", tag="llm_call_start"):
    known: ClassVar[str] = "event_id run_id"


class ModelEnd(ModelCall, gc=False, tag_field="event_type", tag="llm_call_end"):
    known: ClassVar[str] = "event_id run_id"


class ToolStart(ToolCall, gc=False, tag_field="event_type", tag="tool_call_start"):
    known: ClassVar[str] = "event_id run_id"


class ToolEnd(ToolCall, gc=False, tag_field="event_type", tag="tool_call_end"):
    known: ClassVar[str] = "event_id run_id"


class ViolatedEvent(Violated, gc=False, tag_field="event_type", tag="policy_violation"):
    known: ClassVar[str] = "details event_id run_id"


class OtherEvent(Step, gc=False):
    kind: ClassVar[str] = "event"
    event_type: str | None = None

    @property
    def type(self) -> str:
        return self.event_type or self.kind


class Events(msgspec.Struct, gc=False):
    """An event file but for its events."""

    known: ClassVar[str] = ""
    run_id: str | None = None
    agent_name: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    metadata: msgspec.Raw = NULL
    schema_version: Any = None


STEP: Final = Schema[Step](ModelCall | ToolCall | Violated, other=OtherStep)
FACTS: Final = Schema[ExecutionRecord](ExecutionRecord)
_EVENT: Final = Schema[Any](Start | End | ModelStart | ModelEnd | ToolStart | ToolEnd | ViolatedEvent, other=OtherEvent)
_EVENTS: Final = Schema[Events](Events)
_FROM_END: Final = ("output_data", "token_usage", "duration_ms", "error")


class Trace(msgspec.Struct):
    """A file of either version as a v1 record."""

    facts: ExecutionRecord
    steps: list[Step]
    records: list[msgspec.Raw]
    """Steps or events in the order of the file, as they are written."""
    groups: list[tuple[int, ...]]
    """Which records each step is: one, or a start and an end event."""
    fields: dict[str, Any]
    """What the *Run* tab shows, by the names of v1."""
    attributes: dict[str, Any]
    """What else the file says about the run, in its own names; what is among the steps and is no step."""


def trace_of(outline: Outline) -> Trace:
    """The trace in a file of either version: a v0 file has events and no steps."""
    return _events(outline) if is_old(outline) else _record(outline)


def is_old(outline: Outline) -> bool:
    """Whether a file is of v0."""
    return "events" in outline.fields and "steps" not in outline.fields


def _record(outline: Outline) -> Trace:
    facts, records = outline.record(FACTS, "steps"), list(outline.records("steps", STEP))
    fields = outline.values("steps")
    attributes = {name: value for name, value in fields.items() if name not in ("input", "output", "error")}
    if isinstance(facts.error, dict | list):  # says more than the error of the run has a place for
        attributes["error"] = facts.error
    steps, raws = [one.value for one in records], [one.raw for one in records]
    return Trace(facts, steps, raws, [(i,) for i in range(len(raws))], fields, attributes | outline.rest)


def _events(outline: Outline) -> Trace:
    """An event file: a call is a start and an end event with the same ``step_index``; one that raises has no end.

    The run's input is in ``run_start``, its output, error and status in ``run_end``, the id of the original of a replay
    in ``metadata``.
    """
    root = outline.record(_EVENTS, "events")
    attributes = outline.values("events")
    records = list(outline.records("events", _EVENT))
    steps: list[Step] = []
    groups: list[tuple[int, ...]] = []
    frame: list[Record] = []
    waiting: dict[tuple[str, Any], int] = {}
    for i, record in enumerate(records):
        event = record.value
        if isinstance(event, Start | End):
            frame.append(record)
            continue
        call = event.kind, event.step_index
        if isinstance(event, ModelEnd | ToolEnd) and call in waiting:
            place = waiting.pop(call)
            for name in _FROM_END:
                setattr(steps[place], name, getattr(event, name))
            groups[place] += (i,)
            continue
        if isinstance(event, ModelStart | ToolStart):
            waiting[call] = len(steps)
        steps.append(event)
        groups.append((i,))
    begun = next((one for one in frame if isinstance(one.value, Start)), None)
    ended = next((one for one in reversed(frame) if isinstance(one.value, End)), None)
    start, end = begun.value if begun else Start(), ended.value if ended else End()
    told: dict[str, Any] = {}
    for number, record in enumerate(frame):
        name, shown = ("run_start", "input_args") if isinstance(record.value, Start) else ("run_end", "output")
        values = mapping(plain(record.raw))
        if record is ended:
            told = values
        used = (shown,) if record in (begun, ended) else ()
        key = name if name not in attributes else f"{name}[{number}]"
        attributes[key] = {field: value for field, value in values.items() if field not in used}
    broken = next((place for place, step in enumerate(steps) if isinstance(step, Violated)), None)
    facts = ExecutionRecord(
        schema_version=root.schema_version,
        record_id=root.run_id,
        replay_of=string(mapping(plain(root.metadata)).get("replay_of")),
        agent=Agent(root.agent_name or start.agent_name),
        execution=Execution(root.started_at, root.ended_at, None, end.status),
        policy=None if broken is None else Policy(Violation(steps[broken].policy_name, steps[broken].message)),
        totals=Totals(None, None, end.total_tokens),
        input=start.input_args,
        error=end.error,
        metadata=root.metadata,
    )
    fields = {
        "totals": {"total_tokens": told["total_tokens"]} if "total_tokens" in told else {},
        "policy": {} if broken is None else {"violation": plain(records[groups[broken][0]].raw)},
        "input": start.input_args,
        "output": told.get("output"),
        "error": end.error,
    }
    return Trace(facts, steps, [one.raw for one in records], groups, fields, attributes | outline.rest)


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where one record of a step is in the file: byte and length."""

    offset: int
    size: int


def places_of(data: bytes, records: list[msgspec.Raw], begin: int = 0) -> list[Place]:
    """Where `records` are in `data`, in that order; its first byte is byte `begin` of the file.

    None for renderings.
    """
    places = []
    position = 0
    for text in map(bytes, records):
        start = data.find(b"{", position)  # between two objects of a list there is no bracket
        if not data.startswith(text, start):
            start = data.find(text, position)
        if start < 0:
            return []
        places.append(Place(begin + start, len(text)))
        position = start + len(text)
    return places
