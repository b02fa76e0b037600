"""Events of a session decoded for counting: what is counted, and nothing of the long texts beside it."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, Final

import msgspec

from tracetui.formats.copilot.known import ENVELOPE, FIELDS
from tracetui.formats.copilot.words import KINDS
from tracetui.formats.decode import skippable
from tracetui.formats.fields import Strange, Typed, closed

NULL: Final = msgspec.Raw(b"null")
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
_Number = Annotated[float, msgspec.Meta(gt=-1e300, lt=1e300)]

# A field that is `None` says something that is not counted here: where it is there, the session is read in full.


class _Told(msgspec.Struct, gc=False, rename="camel"):
    """What an event says."""


class _OfAgent(_Told):
    """What an event says that old versions have of a sub-agent without telling whose it is."""

    parent_tool_call_id: str | None = None


class Account(_Told):
    """Who paid for a call, and the number that it has there."""

    source_session_id: str
    sequence: _Count


class Usage(_Told, kw_only=True):
    """What a call used."""

    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    model: str | None = None
    api_call_id: str
    cost: _Number | None = None
    duration: _Number | None = None
    finish_reason: str | None = None
    interaction_type: str | None = None
    accounting: Account


class _Used(_OfAgent, kw_only=True):
    usage: Usage


class Asked(_Told):
    """A call that a response asks for."""

    tool_call_id: str
    name: str


class _Said(_OfAgent, kw_only=True):
    content: str
    tool_requests: list[Asked] = []
    api_call_id: str | None = None
    model: str | None = None
    output_tokens: _Count | None = None


class _Heard(_OfAgent):
    content: str = ""
    source: str | None = None


class _Begun(_OfAgent, kw_only=True):
    tool_call_id: str
    tool_name: str


class _Code(_Told):
    exit_code: _Number | None = None


class _Metrics(msgspec.Struct, gc=False):
    exit_code: _Number | None = None


class _Telemetry(msgspec.Struct, gc=False):
    metrics: _Metrics | None = None


class _Ended(_OfAgent, kw_only=True):
    tool_call_id: str
    success: bool
    model: str | None = None
    shell_execution: _Code | None = None
    tool_telemetry: _Telemetry | None = None


class _Agent(_OfAgent):
    tool_call_id: str | None = None
    agent_name: str | None = None
    model: str | None = None
    duration_ms: _Number | None = None


class _Pair(_OfAgent):
    hook_type: str | None = None
    hook_invocation_id: str | None = None
    request_id: str | None = None
    success: bool | None = None
    error: msgspec.Raw = NULL


class Event(msgspec.Struct, gc=False, rename={"agent": "agentId"}, tag_field="type", kw_only=True):
    """An event that stands for itself."""

    timestamp: str
    agent: str | None = None
    data: _OfAgent


class TurnStart(Event, tag="assistant.turn_start"):
    """A turn begins."""


class TurnEnd(Event, tag="assistant.turn_end"):
    """A turn ends."""


class Used(Event, tag="session.usage_record", kw_only=True):
    """What a call used."""

    data: _Used


class Said(Event, tag="assistant.message", kw_only=True):
    """A response."""

    data: _Said


class Heard(Event, tag="user.message", kw_only=True):
    """A prompt, or what the program says in the user's name."""

    data: _Heard


class Begun(Event, tag="tool.execution_start", kw_only=True):
    """A call begins."""

    data: _Begun


class Ended(Event, tag="tool.execution_complete", kw_only=True):
    """The result of a call."""

    data: _Ended


class Agent(Event, tag=False, kw_only=True):
    """What is told of a sub-agent itself."""

    data: _Agent


class Pair(Event, tag=False, kw_only=True):
    """The beginning or the end of a hook, a permission or a compaction."""

    data: _Pair


class Rare(Event, tag=False):
    """An event that is decoded again, in full: a session has few of its kind."""


# fmt: off
_KNOWN: Final = {
    "assistant.turn_start", "assistant.turn_end", "session.usage_record", "assistant.message", "user.message",
    "tool.execution_start", "tool.execution_complete",
}
_AGENTS: Final = ("subagent.started", "subagent.configured", "subagent.completed", "subagent.failed")
_PAIRS: Final = (
    "session.compaction_start", "session.compaction_complete", "hook.start", "hook.end", "permission.requested",
    "permission.completed",
)
_RARE: Final = (
    "session.start", "session.shutdown", "session.resume", "session.model_change", "session.error",
    "model.call_failure", "abort",
)
# fmt: on
IRREGULAR: Final = frozenset(
    {"assistant.usage", "assistant.reasoning", "tool.user_requested", "tool.execution_partial_result"}
    | {"tool.execution_progress", "hook.progress"}
)
"""Kinds that are seldom written: a session with one of them is read in full."""


def _kinds(base: type[Event], tags: Any) -> list[Any]:
    name = base.__name__
    return [msgspec.defstruct(f"{name}{i}", [], bases=(base,), tag_field="type", tag=tag) for i, tag in enumerate(tags)]


_PLAIN: Final = sorted(KINDS - _KNOWN - IRREGULAR - {*_AGENTS, *_PAIRS, *_RARE})
_ALL: Final = [
    *(TurnStart, TurnEnd, Used, Said, Heard, Begun, Ended),
    *_kinds(Agent, _AGENTS),
    *_kinds(Pair, _PAIRS),
    *_kinds(Rare, _RARE),
    *_kinds(Event, _PLAIN),
]
CLOSED: Final[dict[type, type]] = {}
"""Classes of events of which each field is known, and those of the same events whatever they hold."""


def kind_of(event: Event) -> str:
    """Its kind."""
    return str(event.__struct_config__.tag)


def _closed(event: Any) -> Any:
    known = FIELDS.of(str(event.__struct_config__.tag))
    if known is None:
        return event
    (data,) = (one.type for one in msgspec.structs.fields(event) if one.name == "data")
    made = closed(event, ENVELOPE.known, data=closed(data, known))
    CLOSED[made] = event
    return made


def _count(strange: Strange, event: Event, data: bytes) -> None:
    if FIELDS.of(kind_of(event)) is not None:
        FIELDS.count(strange, kind_of(event), ENVELOPE.names_on(data))


_decode: Final = Typed(
    msgspec.json.Decoder(reduce(or_, _ALL)).decode,
    msgspec.json.Decoder(reduce(or_, map(_closed, _ALL))).decode,
    _count,
)


def lean(line: bytes, strange: Strange) -> Any:
    """The event on a line; see `Typed`. Raises `ValueError` for any that is not quite as it should be."""
    skippable(line)
    return _decode(line, strange)
