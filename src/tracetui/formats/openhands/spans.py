"""The spans of an OpenHands conversation.

Facts: files of openhands-sdk 1.58. A model call is one response id, which parallel calls share. Its tokens, cost and
latency are only in the state; the state of a parent repeats those of its sub-agents, so every response counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracetui.formats.bodies import argument, text_in
from tracetui.formats.decode import decode_value
from tracetui.formats.openhands.files import Conversation, Event
from tracetui.formats.scalars import between, child, integer, mapping, moment, natural, number, sequence, text, word
from tracetui.formats.schema import Fields, Unknown
from tracetui.model import PREVIEW, Error, Operation, Span, Status, StatusSource, Usage, excerpt

FIELDS: Final = Fields(
    {
        "SystemPromptEvent": "dynamic_context system_prompt tools",
        "MessageEvent": "activated_skills critic_result extended_content llm_message llm_response_id sender",
        "ActionEvent": (
            "action critic_result llm_response_id reasoning_content responses_reasoning_item security_risk summary "
            "thinking_blocks thought tool_call tool_call_id tool_name"
        ),
        "ObservationEvent": "action_id extended_content observation tool_call_id tool_name",
        "UserRejectObservation": "action_id rejection_reason rejection_source tool_call_id tool_name",
        "AgentErrorEvent": "classification error tool_call_id tool_name",
        "ConversationErrorEvent": "classification code detail",
        "Condensation": "forgotten_event_ids llm_response_id summary summary_offset",
    },
    "id kind parent_id source timestamp",
)
_NOTES: Final = frozenset(
    {"CondensationRequest", "CondensationSummaryEvent", "ConversationStateUpdateEvent", "HookExecutionEvent"}
    | {"InterruptEvent", "LLMCompletionLogEvent", "PauseEvent", "StreamingDeltaEvent", "TokenEvent"}
)
STATUSES: Final = {
    "running": None,
    "paused": Status.PAUSED,
    "waiting_for_confirmation": Status.PAUSED,
    "finished": Status.OK,
    "error": Status.ERROR,
    "stuck": Status.ERROR,
}
"""The status of each ``execution_status``; None: no end yet. All others are unknown."""


class At(Struct, frozen=True, gc=False):
    """Where a span's body is: its files with their checksums; the first one is a state for a sub-agent."""

    files: tuple[tuple[str, int], ...]
    shows: str = ""
    """``reply``, ``call``, ``state``, or empty for one event."""
    size: int = 0


class Response(Struct, frozen=True):
    """What a state says about one model call."""

    usage_id: str
    usage: Usage
    model: str | None
    ms: float | None


class ModelCalls:
    """The model calls of a run by response id, each once."""

    def __init__(self, conversation: Conversation) -> None:
        self.responses: dict[str, Response] = {}
        self.complete = True
        """Every cost belongs to a response."""
        for part in conversation.all():
            for usage_id, metrics in usages_of(part.state):
                for ident, response in self._responses(usage_id, metrics):
                    self.responses.setdefault(ident, response)
        self.remaining = dict(self.responses)

    def _responses(self, usage_id: str, metrics: dict[str, Any]) -> Iterator[tuple[str, Response]]:
        tokens, costs = sequence(metrics.get("token_usages")), sequence(metrics.get("costs"))
        joined = len(tokens) == len(costs)
        self.complete = self.complete and (joined or not costs)
        seen: set[str] = set()
        latencies = {
            mapping(call).get("response_id"): number(mapping(call).get("latency"))
            for call in sequence(metrics.get("response_latencies"))
            if isinstance(mapping(call).get("response_id"), str)
        }
        for rank, usage in enumerate(map(mapping, tokens)):
            cost = number(mapping(costs[rank]).get("cost")) if joined else None
            names = ("prompt", "completion", "cache_read", "cache_write", "reasoning")
            prompt, completion, read, written, thought = (natural(usage.get(f"{name}_tokens")) for name in names)
            recorded = text(usage.get("response_id"))
            ident = recorded if recorded is not None and recorded not in seen else f"{usage_id} {rank + 1}"
            seen.add(ident)
            latency = latencies.get(recorded)
            ms = None if latency is None or latency < 0 else round(latency * 1000, 3)
            yield (
                ident,
                Response(
                    usage_id,
                    Usage(prompt, completion, None, read, written, thought, cost),
                    word(usage.get("model")),
                    ms,
                ),
            )

    def take(self, ident: str) -> Response | None:
        """The model call of that id, the first time."""
        return self.remaining.pop(ident, None)


def usages_of(state: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The metrics of a state by the name of their use: ``agent``, ``condenser``, ``task:…``."""
    metrics = child(child(state, "stats"), "usage_to_metrics")
    return [(name, mapping(value)) for name, value in metrics.items()]


def message_of(event: dict[str, Any]) -> str:
    """The text of a message event."""
    return text_in(child(event, "llm_message").get("content"))


def error_of(event: dict[str, Any]) -> Error | None:
    """The error that a conversation error records."""
    if event.get("kind") != "ConversationErrorEvent":
        return None
    return Error(excerpt(text(event.get("detail")) or ""), text(event.get("code")))


class Spans:
    """The spans of a run, in order."""

    def __init__(self, conversation: Conversation) -> None:
        self.spans: list[Span] = []
        self.unknown: Unknown = {}
        self.model_calls = ModelCalls(conversation)
        self._ids: set[str] = set()
        self._steps = 0
        self.tasks: dict[str, str] = {}
        """By task id: the call that began the sub-agent."""
        _Conversation(self, conversation, None, is_root=True)
        for ident, response in list(self.model_calls.remaining.items()):  # calls that no event names
            _, _, task = response.usage_id.partition("task:")
            used = {"usage": response.usage, "model": response.model, "duration_ms": response.ms}
            self.add(f"response:{ident}", "response", response.usage_id, Operation.CHAT, self.tasks.get(task), **used)

    def add(self, ident: Any, path: str, name: str, operation: Operation, parent: str | None, **fields: Any) -> int:
        """Add a span, of the id `ident` unless that is none or another span has it; returns its position."""
        own = ident if isinstance(ident, str) and ident and ident not in self._ids else path
        while own in self._ids:
            own += "'"
        self._ids.add(own)
        self.spans.append(Span(own, name[:PREVIEW], operation, parent, **fields))
        return len(self.spans) - 1

    def next_step(self) -> int:
        """Number of the next step."""
        self._steps += 1
        return self._steps


class _Call(Struct):
    """A call of a tool, which may have begun a sub-agent."""

    position: int
    action: dict[str, Any]
    started: float | None
    agent: str = ""
    has_agent: bool = False


class _Conversation:
    """Adds the spans of one conversation."""

    def __init__(self, run: Spans, conversation: Conversation, parent: str | None, *, is_root: bool = False) -> None:
        self._run, self._parent, self._is_root = run, parent, is_root
        self._replies: dict[str, int] = {}
        """By response id: position of the reply."""
        self._calls: dict[str, _Call] = {}
        """By id of the action."""
        self._named: dict[str, _Call] = {}
        """By id of the tool call."""
        self._open: dict[int, None] = {}
        for event in conversation.events:
            self._take(event, event.record or {})
        self._settle(text(conversation.state.get("execution_status")))
        for agent in conversation.agents:
            self._add_agent(agent)

    def _take(self, event: Event, record: dict[str, Any]) -> None:
        kind = text(record.get("kind")) or "?"
        FIELDS.count(self._run.unknown, kind, record)
        when = moment(record.get("timestamp"))
        ident = record.get("id")
        at = At(((event.path, event.check),))
        facts: dict[str, Any] = {"started_at": when, "at": at}
        if kind == "MessageEvent" and record.get("source") == "agent":
            self._reply(event, record, ident, when, message_of(record), shows="")
        elif kind in ("MessageEvent", "SystemPromptEvent"):
            said = message_of(record) or text(child(record, "system_prompt").get("text")) or ""
            name = "system" if kind == "SystemPromptEvent" else text(record.get("source")) or "user"
            self._run.add(ident, event.path, name, Operation.MESSAGE, self._parent, preview=said[:PREVIEW], **facts)
        elif kind == "ActionEvent":
            self._action(event, record, ident, when)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._result(event, record, ident, when)
        elif kind == "ConversationErrorEvent":
            error = error_of(record)
            name = error.type if error is not None and error.type else kind
            failed = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": error}
            self._run.add(ident, event.path, name, Operation.OTHER, self._parent, **facts, **failed)
        elif kind == "Condensation" and text(record.get("llm_response_id")) is not None:
            used = self._used(record, when)
            self._run.add(ident, event.path, "condensation", Operation.CHAT, self._parent, **(facts | used))
        elif kind == "Condensation" or kind in _NOTES:
            self._run.add(ident, event.path, kind, Operation.META, self._parent, **facts)
        else:
            at = At(((event.path, event.check),), size=event.size)
            self._run.add(ident, event.path, kind, Operation.UNKNOWN, self._parent, started_at=when, at=at)

    def _used(self, record: dict[str, Any], when: float | None) -> dict[str, Any]:
        """What the state says about the model call of an event, which was written when that had ended."""
        response = self._run.model_calls.take(text(record.get("llm_response_id")) or "")
        if response is None:
            return {"started_at": when}
        started = when if when is None or response.ms is None else when - response.ms / 1000
        return {"usage": response.usage, "model": response.model, "duration_ms": response.ms, "started_at": started}

    def _reply(
        self, event: Event, record: dict[str, Any], ident: Any, when: float | None, said: str, *, shows: str
    ) -> int:
        used = self._used(record, when)
        facts: dict[str, Any] = {"preview": said.strip()[:PREVIEW], "at": At(((event.path, event.check),), shows)}
        if self._is_root:
            facts |= {"step": self._run.next_step(), "is_step": True}
        facts |= {"status": Status.OK, "status_source": StatusSource.DERIVED}
        self._open.clear()  # the conversation went on
        path = f"{event.path}:reply" if shows else event.path
        return self._run.add(ident, path, used.get("model") or "reply", Operation.CHAT, self._parent, **facts, **used)

    def _action(self, event: Event, record: dict[str, Any], ident: Any, when: float | None) -> None:
        response = text(record.get("llm_response_id")) or event.path
        if response not in self._replies:
            said = text_in(record.get("thought")) or text(record.get("reasoning_content")) or ""
            self._replies[response] = self._reply(event, record, "", when, said, shows="reply")
        else:
            above = self._run.spans[self._replies[response]]
            files = (*above.at.files, (event.path, event.check))
            self._run.spans[self._replies[response]] = replace(above, at=replace(above.at, files=files))
        reply = self._run.spans[self._replies[response]]
        action = mapping(record.get("action"))
        given: Any = {name: value for name, value in action.items() if name != "kind"}
        if not action:
            given = decode_value(text(child(record, "tool_call").get("arguments")) or "")
        position = self._run.add(
            ident,
            event.path,
            text(record.get("tool_name")) or "call",
            Operation.EXECUTE_TOOL,
            reply.id,
            step=reply.step,
            status=Status.RUNNING,
            started_at=when,
            preview=argument(given),
            at=At(((event.path, event.check),), "call"),
        )
        call = _Call(position, action, when)
        self._open[position] = None
        self._calls[text(ident) or event.path] = call
        if (key := text(record.get("tool_call_id"))) is not None:
            self._named[key] = call

    def _result(self, event: Event, record: dict[str, Any], ident: Any, when: float | None) -> None:
        key, named = text(record.get("action_id")) or "", text(record.get("tool_call_id")) or ""
        call = self._calls.get(key) or self._named.get(named)
        status, source, status_word, error = _outcome(record)
        fields: dict[str, Any] = {"status": status, "status_source": source, "status_word": status_word, "error": error}
        if call is None:
            at = At(((event.path, event.check),), "call")
            name = text(record.get("tool_name")) or "result"
            self._run.add(
                ident, event.path, name, Operation.EXECUTE_TOOL, self._parent, started_at=when, at=at, **fields
            )
            return
        span = self._run.spans[call.position]
        self._open.pop(call.position, None)
        files = (*span.at.files, (event.path, event.check))
        fields |= {"duration_ms": between(call.started, when), "at": replace(span.at, files=files)}
        self._run.spans[call.position] = replace(span, **fields)
        observation = mapping(record.get("observation"))
        call.agent = text(observation.get("subagent")) or ""
        if (task := text(observation.get("task_id"))) is not None:
            self._run.tasks.setdefault(task, span.id)

    def _settle(self, standing: str | None) -> None:
        """Calls without a result wait only if the conversation does."""
        for call in self._calls.values():
            span = self._run.spans[call.position]
            if span.status is not Status.RUNNING:
                continue
            waits = call.position in self._open
            status = STATUSES.get(standing or "", Status.UNKNOWN) if waits else Status.UNKNOWN
            if status is None:
                continue
            paused = status is Status.PAUSED
            source = StatusSource.DERIVED if paused else None
            self._run.spans[call.position] = replace(
                span, status=Status.PAUSED if paused else Status.UNKNOWN, status_source=source
            )

    def _add_agent(self, agent: Conversation) -> None:
        """A sub-agent below its call: the one whose prompt it begins with, else the next one without a sub-agent."""
        asked = next((message_of(event.record or {}) for event in agent.events if _is_prompt(event.record or {})), "")
        free = [
            call for call in self._calls.values() if not call.has_agent and isinstance(call.action.get("prompt"), str)
        ]
        fitting = [call for call in free if call.action["prompt"] == asked] or [call for call in free if call.agent]
        parent, name = self._parent, "agent"
        if fitting:
            call = fitting[0]
            call.has_agent = True
            parent = self._run.spans[call.position].id
            name = call.agent or text(call.action.get("subagent_type")) or name
        standing = text(agent.state.get("execution_status"))
        status, source = standing_of(standing)
        times = [moment(mapping(event.record).get("timestamp")) for event in agent.events] or [None]
        position = self._run.add(
            agent.state.get("id"),
            agent.path,
            name,
            Operation.INVOKE_AGENT,
            parent,
            status=status or Status.RUNNING,
            status_source=source,
            status_word=standing,
            started_at=times[0],
            duration_ms=None if status is None else between(times[0], times[-1]),
            preview=asked[:PREVIEW],
            at=At(((agent.path, -1),), "state"),
        )
        _Conversation(self._run, agent, self._run.spans[position].id)


def _is_prompt(event: dict[str, Any]) -> bool:
    return event.get("kind") == "MessageEvent" and event.get("source") == "user"


def prompts(events: Iterable[Event]) -> Iterator[str]:
    """The texts that the user wrote."""
    for event in events:
        if _is_prompt(event.record or {}) and (said := message_of(event.record or {})):
            yield said


def standing_of(standing: str | None) -> tuple[Status | None, StatusSource | None]:
    """The status for an ``execution_status``; None: no end yet."""
    if standing is None:
        return Status.UNKNOWN, None
    status = STATUSES.get(standing, Status.UNKNOWN)
    return status, None if status is None else StatusSource.EXPLICIT


Outcome = tuple[Status, StatusSource | None, str | None, Error | None]


def _outcome(record: dict[str, Any]) -> Outcome:
    """How a call ended: an error, a rejection, ``is_error``, else the exit code of a command."""
    explicit = StatusSource.EXPLICIT
    if record.get("kind") == "AgentErrorEvent":
        return Status.ERROR, explicit, None, Error(excerpt(text(record.get("error")) or ""))
    if record.get("kind") == "UserRejectObservation":
        return Status.CANCELLED, explicit, "rejected", None
    observation = mapping(record.get("observation"))
    content = observation.get("content")
    said = content if isinstance(content, str) else text_in(content)
    if observation.get("is_error") is True:
        return Status.ERROR, explicit, text(observation.get("status")), Error(excerpt(said))
    code = integer(observation.get("exit_code"))
    if observation.get("timeout") is True:
        return Status.ERROR, explicit, "timeout", Error(excerpt(said), "timeout")
    if code == -1:  # the command goes on
        return Status.UNKNOWN, None, None, None
    if code:
        return Status.ERROR, StatusSource.EXIT, None, Error(excerpt(said), f"exit code {code}")
    if observation.get("is_error") is False:
        return Status.OK, explicit, text(observation.get("status")), None
    return Status.UNKNOWN, None, None, None
