"""The records of Paprika files: ExecutionRecord v1, and the event file v0 that came before it.

Facts: vaibhavhariram/paprika, ``execution_record.py`` (v1), ``events.py`` and ``trace_store.py`` (v0, which its runtime
still writes), and its document "Execution Records".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from tracetui.formats.document import Outline
from tracetui.formats.scalars import mapping, string, without
from tracetui.formats.schema import NULL, Finite, Integer, Schema, Unknown, keys_of, plain
from tracetui.model import Operation, Problem
from tracetui.sources.base import File

Number = Integer | Finite


class Tokens(msgspec.Struct, gc=False):
    """``token_usage`` of a model call, and the names that other providers use for the same."""

    other_fields: ClassVar[str] = ""
    prompt_tokens: Number | None = None
    completion_tokens: Number | None = None
    total_tokens: Number | None = None
    input_tokens: Number | None = None
    output_tokens: Number | None = None


class Step(msgspec.Struct, gc=False):
    """Fields of all steps; inputs and outputs stay undecoded."""

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

    @property
    def name(self) -> str:
        """Its model, tool or policy, else its type."""
        return self.type


class OtherStep(Step, gc=False):
    """A step of an unknown type (1.x promises new ones)."""

    step_type: str | None = None

    @property
    def type(self) -> str:
        return self.step_type or self.kind


class ModelCall(Step, gc=False, tag_field="step_type", tag="llm_call"):
    other_fields: ClassVar[str] = "event_id side_effect"
    kind: ClassVar[str] = "llm_call"
    operation: ClassVar[Operation] = Operation.CHAT

    @property
    def name(self) -> str:
        return self.model or self.provider or self.kind


class ToolCall(Step, gc=False, tag_field="step_type", tag="tool_call"):
    other_fields: ClassVar[str] = "event_id side_effect"
    kind: ClassVar[str] = "tool_call"
    operation: ClassVar[Operation] = Operation.EXECUTE_TOOL

    @property
    def name(self) -> str:
        return self.tool_name or self.kind


class Violated(Step, gc=False, tag_field="step_type", tag="policy_violation"):
    other_fields: ClassVar[str] = "details event_id"
    kind: ClassVar[str] = "policy_violation"
    operation: ClassVar[Operation] = Operation.POLICY

    @property
    def name(self) -> str:
        return self.policy_name or self.kind


class Agent(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = "version"
    name: str | None = None


class Execution(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = ""
    started_at: str | None = None
    ended_at: str | None = None
    duration_ms: Finite | None = None
    status: str | None = None
    termination_reason: str | None = None


class Violation(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = "details"
    policy_name: str | None = None
    message: str | None = None


class Policy(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = "config"
    violation: Violation | None = None


class Totals(msgspec.Struct, gc=False):
    """``totals``, of which the rest is recounted only where a run is opened."""

    other_fields: ClassVar[str] = "llm_calls step_count tool_calls"
    prompt_tokens: Number | None = None
    completion_tokens: Number | None = None
    total_tokens: Number | None = None


class ExecutionRecord(msgspec.Struct, kw_only=True):
    """A v1 record but for its steps and output. `error` and `input` are missing only where a part of it is read."""

    other_fields: ClassVar[str] = "environment output"
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
    other_fields: ClassVar[str] = "event_id run_id step_index timestamp"
    agent_name: str | None = None
    input_args: Any = None


class End(msgspec.Struct, gc=False, tag_field="event_type", tag="run_end"):
    other_fields: ClassVar[str] = "event_id output run_id step_index timestamp"
    status: str | None = None
    error: Any = None
    total_tokens: Number | None = None


class ModelStart(ModelCall, gc=False, tag_field="event_type", tag="llm_call_start"):
    other_fields: ClassVar[str] = "event_id run_id"


class ModelEnd(ModelCall, gc=False, tag_field="event_type", tag="llm_call_end"):
    other_fields: ClassVar[str] = "event_id run_id"


class ToolStart(ToolCall, gc=False, tag_field="event_type", tag="tool_call_start"):
    other_fields: ClassVar[str] = "event_id run_id"


class ToolEnd(ToolCall, gc=False, tag_field="event_type", tag="tool_call_end"):
    other_fields: ClassVar[str] = "event_id run_id"


class ViolatedEvent(Violated, gc=False, tag_field="event_type", tag="policy_violation"):
    other_fields: ClassVar[str] = "details event_id run_id"


class OtherEvent(Step, gc=False):
    kind: ClassVar[str] = "event"
    event_type: str | None = None

    @property
    def type(self) -> str:
        return self.event_type or self.kind


class Events(msgspec.Struct, gc=False):
    """An event file but for its events."""

    other_fields: ClassVar[str] = ""
    run_id: str | None = None
    agent_name: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    metadata: msgspec.Raw = NULL
    schema_version: Any = None


_Step = ModelCall | ToolCall | Violated
_Event = Start | End | ModelStart | ModelEnd | ToolStart | ToolEnd | ViolatedEvent


class _WholeRecord(ExecutionRecord, kw_only=True):
    steps: list[_Step]


class _WholeEvents(Events, gc=False, kw_only=True):
    events: list[_Event]


STEP: Final = Schema[Step](_Step, other=OtherStep)
_RECORD: Final = Schema[ExecutionRecord](ExecutionRecord)
_WHOLE_RECORD: Final = Schema[_WholeRecord](_WholeRecord)
_EVENT: Final = Schema[Any](_Event, other=OtherEvent)
_EVENTS: Final = Schema[Events](Events)
_WHOLE_EVENTS: Final = Schema[_WholeEvents](_WholeEvents)
_FROM_END: Final = ("output_data", "token_usage", "duration_ms", "error")


class Trace(msgspec.Struct):
    """A file of either version as a v1 record. Only bodies need the fields after `unknown`."""

    facts: ExecutionRecord
    steps: Sequence[Step]
    is_old: bool = False
    """Whether the file is of v0."""
    problems: Sequence[Problem] = ()
    unknown: Unknown = {}
    """Unknown fields."""
    records: list[msgspec.Raw] = []
    """Steps or events in the order of the file, as they are written."""
    groups: list[tuple[int, ...]] = []
    """Which records each step is: one, or a start and an end event."""
    fields: dict[str, Any] = {}
    """Fields for the *Run* tab, by their names in v1."""
    attributes: dict[str, Any] = {}
    """All other fields of the file, in its own names; items of the steps that are no steps."""


def skim(data: bytes) -> Trace | None:
    """Decode a file in which all fields are in the schema and correctly typed in one go; None for any other."""
    try:
        whole = _WHOLE_RECORD.strict(data)
        return Trace(whole, whole.steps)
    except (ValueError, RecursionError):
        pass
    try:
        old = _WHOLE_EVENTS.strict(data)
        return _joined(old, old.events)
    except (ValueError, RecursionError):
        return None


def trace_of(outline: Outline) -> Trace:
    """The trace in a file of either version: a v0 file has events and no steps."""
    if "events" in outline.fields and "steps" not in outline.fields:
        return _events(outline)
    facts, records = outline.record(_RECORD, "steps"), list(outline.records("steps", STEP))
    fields = outline.values("steps")
    attributes = {name: value for name, value in fields.items() if name not in ("input", "output", "error")}
    if isinstance(facts.error, dict | list):  # has more than fits the error of the run
        attributes["error"] = facts.error
    return Trace(
        facts,
        [record.value for record in records],
        records=[record.raw for record in records],
        groups=[(i,) for i in range(len(records))],
        fields=fields,
        attributes=attributes | outline.rest,
        problems=outline.problems,
        unknown=outline.unknown,
    )


def _joined(root: Events, events: Sequence[Any]) -> Trace:
    """Events as a record: a call is a start and an end event with the same ``step_index``; one that raises has no end.

    The run's input is in ``run_start``, its output, error and status in ``run_end``, the id of the original of a replay
    in ``metadata``.
    """
    steps: list[Step] = []
    groups: list[tuple[int, ...]] = []
    waiting: dict[tuple[str, Any], int] = {}
    start, end = None, End()
    for i, event in enumerate(events):
        if isinstance(event, Start):
            start = start or event
        elif isinstance(event, End):
            end = event
        elif isinstance(event, ModelEnd | ToolEnd) and (event.kind, event.step_index) in waiting:
            index = waiting.pop((event.kind, event.step_index))
            for name in _FROM_END:
                setattr(steps[index], name, getattr(event, name))
            groups[index] += (i,)
        else:
            if isinstance(event, ModelStart | ToolStart):
                waiting[event.kind, event.step_index] = len(steps)
            steps.append(event)
            groups.append((i,))
    start = start or Start()
    broken = next((step for step in steps if isinstance(step, Violated)), None)
    facts = ExecutionRecord(
        schema_version=root.schema_version,
        record_id=root.run_id,
        replay_of=string(mapping(plain(root.metadata)).get("replay_of")),
        agent=Agent(root.agent_name or start.agent_name),
        execution=Execution(root.started_at, root.ended_at, None, end.status),
        policy=None if broken is None else Policy(Violation(broken.policy_name, broken.message)),
        totals=Totals(None, None, end.total_tokens),
        input=start.input_args,
        error=end.error,
        metadata=root.metadata,
    )
    return Trace(facts, steps, is_old=True, groups=groups)


def _events(outline: Outline) -> Trace:
    root, records = outline.record(_EVENTS, "events"), list(outline.records("events", _EVENT))
    trace = _joined(root, [record.value for record in records])
    trace.records = [record.raw for record in records]
    attributes = outline.values("events")
    frame = [record for record in records if isinstance(record.value, Start | End)]
    first = next((record for record in frame if isinstance(record.value, Start)), None)
    last = next((record for record in reversed(frame) if isinstance(record.value, End)), None)
    ended: dict[str, Any] = {}
    for number, record in enumerate(frame):
        name, payload = ("run_start", "input_args") if isinstance(record.value, Start) else ("run_end", "output")
        values = mapping(plain(record.raw))
        ended = values if record is last else ended
        key = name if name not in attributes else f"{name}[{number}]"
        attributes[key] = without(values, payload) if record in (first, last) else values
    broken = next((i for i, step in enumerate(trace.steps) if isinstance(step, Violated)), None)
    trace.fields = {
        "totals": {"total_tokens": ended["total_tokens"]} if "total_tokens" in ended else {},
        "policy": {} if broken is None else {"violation": plain(trace.records[trace.groups[broken][0]])},
        "input": trace.facts.input,
        "output": ended.get("output"),
    }
    trace.attributes = attributes | outline.rest
    trace.problems, trace.unknown = outline.problems, outline.unknown
    return trace


class ByteRange(msgspec.Struct, frozen=True, gc=False):
    """Where one record of a step is in the file: byte and length."""

    offset: int
    size: int


def ranges_of(data: bytes, records: list[msgspec.Raw], begin: int = 0) -> list[ByteRange]:
    """Where `records` are in `data`, in that order; its first byte is byte `begin` of the file.

    None for renderings.
    """
    ranges = []
    position = 0
    for text in map(bytes, records):
        start = data.find(b"{", position)  # between two objects of a list there is no bracket
        if not data.startswith(text, start):
            start = data.find(text, position)
        if start < 0:
            return []
        ranges.append(ByteRange(begin + start, len(text)))
        position = start + len(text)
    return ranges


# ---- list stage

_STEPS: Final = b'"steps":'
_ARRAY_END: Final = re.compile(rb"\][ \r\n\t]*(?=[,}])")
_START: Final = 4_096
_NEAR: Final = 1_024
_FAR: Final = 65_536
_FIRST: Final = 2 << 20
_STEP_END: Final = b"\n    },"
_TRIES: Final = 8
_UNSET: Final = msgspec.UNSET


class _Head(ExecutionRecord, kw_only=True):
    """The object up to its steps. All of these must be in it: a name that is not might come later."""

    schema_version: Any
    record_id: str | None
    parent_record_id: str | None
    replay_of: str | None
    agent: Agent | str | None
    execution: Execution | None
    policy: Policy | None
    totals: Totals | None
    input: Any = _UNSET
    error: Any = _UNSET


class _Tail(msgspec.Struct, forbid_unknown_fields=True):
    """The object from the end of its steps on. Nothing else may be in it: it might repeat a field of the head."""

    input: Any = _UNSET
    output: msgspec.Raw = msgspec.Raw(b"")
    error: Any = _UNSET
    environment: msgspec.Raw = msgspec.Raw(b"")
    extensions: msgspec.Raw = msgspec.Raw(b"")


_HEAD: Final = msgspec.json.Decoder(_Head)
_TAIL: Final = msgspec.json.Decoder(_Tail)


class DocumentStart(NamedTuple):
    """The part before the steps, and the byte at which they begin."""

    facts: ExecutionRecord
    cut: int


def start_of(file: File) -> DocumentStart | None:
    """The part of a v1 record before its steps; None if other fields than input and error are missing."""
    data = file.read(0, _START)
    cut = data.find(_STEPS)
    if cut < 0:
        if len(data) < _START or (cut := file.head.find(_STEPS)) < 0:
            return None
        data = file.head
    try:
        return DocumentStart(_HEAD.decode(data[:cut].rstrip(b", \r\n\t") + b"}"), cut)
    except (ValueError, RecursionError):
        return None


def quick_facts(file: File, start: DocumentStart) -> ExecutionRecord | None:
    """The facts of a v1 record, from both ends of the file; None if they are elsewhere.

    Upstream writes the header, then ``steps``, then input, output, error and extensions; its document shows those
    before the steps. Any other layout or name requires reading the whole file. The deep pass corrects one undetected
    case: a key repeated between the steps and another array that ends far from the end of the file.
    """
    tail = _tail(file, start.cut)
    if tail is None:
        return None
    facts = start.facts
    if tail.error is not _UNSET:
        facts.error = tail.error
    elif facts.error is _UNSET:
        return None
    if bytes(tail.extensions):
        facts.extensions = tail.extensions
    if tail.input is not _UNSET:
        facts.input = tail.input
    elif facts.input is _UNSET:
        facts.input = None
    return facts


def first_steps(file: File) -> tuple[Trace, list[ByteRange]] | None:
    """A huge record with only its first steps, and their byte ranges; None if its two ends do not suffice.

    Only for records written with an indent of two, as upstream does: there the end of a step shows.
    """
    start = start_of(file)
    facts = None if start is None else quick_facts(file, start)
    if start is None or facts is None:
        return None
    data = file.read(start.cut, _FIRST)
    begin, end = data.find(b"["), data.rfind(_STEP_END)
    if begin < 0 or end < begin:
        return None
    data = data[begin : end + len(_STEP_END) - 1] + b"]"
    records = list(Outline(b'{"steps":' + data + b"}", file.path).records("steps", STEP))
    raws = [record.raw for record in records]
    trace = Trace(facts, [record.value for record in records], records=raws, groups=[(i,) for i in range(len(raws))])
    return trace, ranges_of(data, raws, start.cut + begin)


def _tail(file: File, cut: int) -> _Tail | None:
    """The part after the steps (which begin at byte `cut`), from the smallest end of the file that has it."""
    size = file.stat.size
    for length in (_NEAR, _FAR):
        start = max(cut, size - length)
        data = file.read(start, length)
        if (tail := _last(data)) is not None or start == cut:
            return tail
    return None


def _last(data: bytes) -> _Tail | None:
    """The rest of the record after the first end of an array from which it decodes as one object.

    A bracket inside a step leaves closing brackets over, and one inside a string leaves a quotation mark over.
    """
    pretty = data.find(b"\n  ],")
    ends = [pretty + 4] if pretty >= 0 else [end.end() for end in islice(_ARRAY_END.finditer(data), _TRIES)]
    for end in ends:
        rest = b"{" + data[end:].removeprefix(b",")
        try:
            return _TAIL.decode(rest)
        except msgspec.ValidationError:
            if _is_object(rest):
                return None
        except (ValueError, RecursionError):
            continue
    return None


def _is_object(data: bytes) -> bool:
    try:
        keys_of(data)
    except (ValueError, RecursionError):
        return False
    return True
