"""Events of ADK sessions: their fields, and the spans that they become.

Facts: databases of google-adk 2.13.0. An event has one time, that of its end; an invocation is a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tracetui.formats.bodies import preview_of
from tracetui.formats.scalars import between, text
from tracetui.formats.schema import NULL, Loose, Natural, Schema, Unknown, plain
from tracetui.model import PREVIEW, Error, Operation, Problem, Span, Status, StatusSource, Usage, excerpt
from tracetui.model.span import status_of

REWOUND: Final = "rewound"
"""`Span.note` of everything that a later rewind withdrew."""
USER: Final = "user"
_BLOCKED: Final = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "NO_IMAGE"}
    | {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"}
)
"""Finish reasons of answers that are not whole."""


# ---- records


class FunctionCall(Struct, gc=False):
    """A call that the model asked for."""

    other_fields: ClassVar = "partial_args will_continue"
    id: str | None = None
    name: str | None = None
    args: Raw = NULL


class FunctionResponse(Struct, gc=False):
    """The result of a call."""

    other_fields: ClassVar = "parts scheduling will_continue"
    id: str | None = None
    name: str | None = None
    response: Raw = NULL


class Part(Struct, gc=False):
    """A part of a message: one of its fields has a value."""

    other_fields: ClassVar = (
        "thought_signature inline_data file_data executable_code code_execution_result video_metadata media_resolution"
    )
    text: str | None = None
    thought: bool | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(Struct, gc=False):
    """A message."""

    other_fields: ClassVar = "role"
    parts: list[Part] | None = None


class Tokens(Struct, gc=False):
    """Usage of a model call: cached input is part of the prompt, thoughts are no part of the candidates."""

    other_fields: ClassVar = (
        "cache_tokens_details candidates_tokens_details prompt_tokens_details tool_use_prompt_tokens_details "
        "traffic_type"
    )
    prompt_token_count: Natural | None = None
    candidates_token_count: Natural | None = None
    cached_content_token_count: Natural | None = None
    thoughts_token_count: Natural | None = None
    tool_use_prompt_token_count: Natural | None = None
    total_token_count: Natural | None = None

    def usage(self) -> Usage | None:
        """Usage with thoughts in the output and input of tools in the input; None without any count."""
        given = _sum(self.prompt_token_count, self.tool_use_prompt_token_count)
        made = _sum(self.candidates_token_count, self.thoughts_token_count)
        cached, thoughts = self.cached_content_token_count, self.thoughts_token_count
        return Usage(given, made, self.total_token_count, cached, None, thoughts) or None


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


class NodeInfo(Struct, gc=False):
    """Where an agent is: ``coordinator@1/pipeline@1``, empty below a Sequential, Loop or Parallel agent as root."""

    other_fields: ClassVar = "message_as_output parent_run_id run_id"
    path: str | None = None
    output_for: list[str] | None = None
    """Paths of a workflow's node, and of the workflows around it that end with its output."""


class Actions(Struct, gc=False):
    """What else an event does."""

    other_fields: ClassVar = (
        "artifact_delta requested_auth_configs requested_tool_confirmations transfer_reason render_ui_widgets "
        "set_model_response route"
    )
    state_delta: Raw = NULL
    transfer_to_agent: str | None = None
    escalate: bool | None = None
    skip_summarization: bool | None = None
    rewind_before_invocation_id: str | None = None
    compaction: Raw = NULL
    agent_state: Raw = NULL
    end_of_agent: bool | None = None


class Record(Struct, gc=False):
    """An event, as JSON."""

    other_fields: ClassVar = (
        "id timestamp grounding_metadata citation_metadata custom_metadata partial turn_complete interrupted "
        "input_transcription output_transcription live_session_resumption_update logprobs_result avg_logprobs "
        "cache_metadata interaction_id isolation_scope output"
    )
    invocation_id: str | None = None
    author: str | None = None
    branch: str | None = None
    node_info: NodeInfo | None = None
    content: Content | None = None
    model_version: str | None = None
    finish_reason: str | None = None
    usage_metadata: Tokens | None = None
    error_code: str | Loose = None
    error_message: str | Loose = None
    actions: Actions | None = None
    long_running_tool_ids: list[str] | None = None


_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OBJECTS: Final = frozenset(
    {"node_info", "content", "parts", "usage_metadata", "actions", "function_call", "function_response"}
)


def snake(record: dict[str, Any]) -> dict[str, Any]:
    """A record with its fields in snake case: some stores have them in camel case."""
    current: dict[str, Any] = {}
    for name, value in record.items():
        key = _HUMP.sub("_", name).lower()
        if key in _OBJECTS and isinstance(value, dict):
            value = snake(value)
        elif key in _OBJECTS and isinstance(value, list):
            value = [snake(item) if isinstance(item, dict) else item for item in value]
        current[name if key in record else key] = value
    return record if current == record else current


SCHEMA: Final[Schema[Record]] = Schema(Record, older=snake)


class Event(Struct, frozen=True):
    """A row that was read."""

    rowid: int
    id: str
    """Unique in its session."""
    invocation: str
    time: float | None
    record: Record

    @property
    def parts(self) -> list[Part]:
        """The parts of its message."""
        content = self.record.content
        return (content.parts or []) if content is not None else []

    @property
    def actions(self) -> Actions:
        """Its actions, perhaps none."""
        return self.record.actions or _NO_ACTIONS

    @property
    def author(self) -> str:
        """The agent, or ``user``."""
        return text(self.record.author) or "agent"

    @property
    def path(self) -> str:
        """Path of its agent, empty if it is not recorded."""
        info = self.record.node_info
        return (info.path or "") if info is not None else ""

    @property
    def ends_workflow(self) -> bool | None:
        """Whether its output is that of the whole workflow; None outside of workflows."""
        info = self.record.node_info
        return self.path.partition("/")[0] in info.output_for if info is not None and info.output_for else None

    @property
    def calls(self) -> list[tuple[int, FunctionCall]]:
        """The calls that it asks for, by the number of their part."""
        return [(rank, part.function_call) for rank, part in enumerate(self.parts) if part.function_call is not None]

    @property
    def results(self) -> list[tuple[int, FunctionResponse]]:
        """The results in it, by the number of their part."""
        pairs = [(rank, part.function_response) for rank, part in enumerate(self.parts)]
        return [(rank, response) for rank, response in pairs if response is not None]

    @property
    def text(self) -> str:
        """Its text, without thoughts."""
        return "\n".join(part.text for part in self.parts if part.text and not part.thought)

    @property
    def error(self) -> Error | None:
        """The error that it records."""
        code, message = self.record.error_code, self.record.error_message
        if code in (None, "") and message in (None, ""):
            return None
        return Error(excerpt("" if message is None else str(message)), None if code in (None, "") else str(code))

    @property
    def is_compaction(self) -> bool:
        """Whether it is the summary of earlier events, which a model wrote."""
        return plain(self.actions.compaction) is not None

    @property
    def is_reply(self) -> bool:
        """Whether a model answered or failed to."""
        record = self.record
        return self.author != USER and (record.model_version is not None or record.usage_metadata is not None)

    @property
    def belongs_to_turn(self) -> bool:
        """False for compactions and rewinds: their invocations are no turns."""
        return not self.is_compaction and self.actions.rewind_before_invocation_id is None


_NO_ACTIONS: Final = Actions()


def event_of(rowid: int, ident: Any, invocation: Any, when: float | None, data: bytes, unknown: Unknown) -> Event:
    """The event of a row. Raises `FormatError` if its JSON is none."""
    record, _, _ = SCHEMA.decode(data, unknown)
    record = record or Record()
    name = text(invocation) or text(record.invocation_id) or f"row {rowid}"
    return Event(rowid, text(ident) or f"row {rowid}", name, when, record)


# ---- outcomes


class Outcome(Struct, frozen=True):
    """How a run, turn or agent ended; no `status`: nothing says that it did."""

    status: Status | None = None
    source: StatusSource | None = None
    word: str | None = None
    error: Error | None = None


NO_END: Final = Outcome()
_UNTOLD: Final = Outcome(Status.UNKNOWN, StatusSource.DERIVED)


def outcome_of(events: Sequence[Event], *, is_agent: bool = False) -> Outcome:
    """The outcome by the last events.

    A reply without calls ends an agent. It also ends the turn if the path of the agent is recorded: a Sequential, Loop
    or Parallel agent as root would go on, and the failure of one leaves no record. A workflow ends with the output of a
    node that is its own. Long-running calls without a response wait for the user.
    """
    for event in reversed(events):
        if event.actions.rewind_before_invocation_id is not None:
            return Outcome(Status.UNKNOWN, StatusSource.DERIVED, REWOUND)
        if event.is_compaction:
            continue
        if (error := event.error) is not None:
            return Outcome(Status.ERROR, StatusSource.EXPLICIT, error.type and error.type[:PREVIEW], error)
        if event.actions.end_of_agent and (is_agent or event.author == _root_of(events)):
            return Outcome(Status.OK, StatusSource.EXPLICIT, "end_of_agent")
        if not is_agent and event.ends_workflow is not None:
            return Outcome(Status.OK, _DERIVED) if event.ends_workflow else NO_END
        waiting = {*(event.record.long_running_tool_ids or ())}
        if asks := [call.name for _, call in event.calls if call.id in waiting]:
            return Outcome(Status.PAUSED, _DERIVED, asks[0])
        if event.author == USER or event.calls:
            return NO_END
        if event.results and not event.actions.skip_summarization:
            return NO_END
        if event.parts or event.is_reply:
            status = _finished(event.record.finish_reason)
            if status is Status.OK and not (is_agent or event.path):
                return _UNTOLD
            return Outcome(status, StatusSource.DERIVED, event.record.finish_reason)
    return NO_END if any(not event.is_compaction for event in events) else _UNTOLD


def _root_of(events: Sequence[Event]) -> str | None:
    """The first agent of the last invocation."""
    last = events[-1].invocation if events else ""
    return next((event.author for event in events if event.invocation == last and event.author != USER), None)


def _finished(reason: str | None) -> Status:
    if reason is None or reason == "STOP":
        return Status.OK
    return Status.ERROR if reason in _BLOCKED else status_of(reason)


# ---- spans


class At(Struct, frozen=True, gc=False):
    """Where a span's body is: rows of events with their ids, and the part of the first one that it is."""

    rows: tuple[tuple[int, str], ...]
    part: int = -1
    size: int = 0


class _Agent(Struct):
    """An agent in a turn; the first one has no span of its own."""

    span: int | None
    """Position of its span."""
    events: list[Event]


class Spans:
    """The spans of a session, in order."""

    def __init__(self, events: Iterable[Event], path: str) -> None:
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self._path = path
        self._steps = 0
        self._turns: dict[str, tuple[int, list[Event]]] = {}
        self._agents: dict[tuple[str, str], _Agent] = {}
        self._roots: dict[str, str] = {}
        """By turn: its first agent."""
        self._calls: dict[str, tuple[int, Event]] = {}
        """By id: position of the call, and its event."""
        self._open: dict[int, Event] = {}
        """Calls without a result, by position."""
        self._starts: dict[str, int] = {}
        """By invocation: position of its first span."""
        for event in events:
            self._take(event)
        self._end_turns()

    def _take(self, event: Event) -> None:
        self._starts.setdefault(event.invocation, len(self.spans))
        parent = self._parent(event) if event.belongs_to_turn else None
        error = event.error
        if error is not None and not event.is_reply and not event.parts and self._fail_call(event, error):
            return
        if event.is_compaction:
            self._add(event, "compaction", Operation.CHAT, None, Status.OK)
        elif (first := event.actions.rewind_before_invocation_id) is not None:
            self._withdraw(first)
            self._add(event, "rewind", Operation.META, None, Status.UNKNOWN)
        elif event.is_reply:
            self._reply(event, parent)
        elif event.text or error is not None or (event.parts and not event.results):
            operation = Operation.OTHER if error is not None and not event.parts else Operation.MESSAGE
            self._add(event, event.author, operation, parent, Status.UNKNOWN)
        for rank, response in event.results:
            self._result(event, rank, response, parent)
        for rank, call in () if event.is_reply else event.calls:
            self._call(event, rank, call, parent)
        if not event.parts and not event.is_reply and error is None and event.belongs_to_turn:
            names = [name for name in ("end_of_agent", "agent_state", "escalate", "transfer_to_agent", "state_delta")
                     if plain(getattr(event.actions, name)) or getattr(event.actions, name) is True]  # fmt: skip
            self._add(event, "event", Operation.META, parent, Status.UNKNOWN, preview=", ".join(names))

    def _parent(self, event: Event) -> str:
        """The span above those of an event: the turn, or the span of its agent in the turn."""
        turn = f"turn:{event.invocation}"
        if event.invocation not in self._turns:
            self._turns[event.invocation] = len(self.spans), []
            self.spans.append(Span(turn, "turn", Operation.TURN, started_at=event.time))
        self._turns[event.invocation][1].append(event)
        if event.author == USER:
            return turn
        names = [name.partition("@")[0] for name in event.path.split("/") if name]
        if not names or names[-1] != event.author:
            names.append(event.author)
        root = self._roots.setdefault(event.invocation, names[0])
        above = turn
        for depth, name in enumerate(names):
            if name == root and depth == 0:
                agent = self._agents.setdefault((event.invocation, ""), _Agent(None, []))
            else:
                route = "/".join(names[: depth + 1])
                agent = self._agents.get((event.invocation, route)) or self._begin(event, route, name, above)
                above = f"{turn}/{route}"
        agent.events.append(event)
        return above

    def _begin(self, event: Event, route: str, name: str, above: str) -> _Agent:
        agent = self._agents[event.invocation, route] = _Agent(len(self.spans), [])
        ident = f"turn:{event.invocation}/{route}"
        self.spans.append(
            Span(ident, name[:PREVIEW], Operation.INVOKE_AGENT, above, started_at=event.time,
                 note=(event.record.branch or "")[:PREVIEW] if name == event.author else "")
        )  # fmt: skip
        return agent

    def _add(
        self, event: Event, name: str, operation: Operation, parent: str | None, status: Status, **more: Any
    ) -> None:
        error = event.error
        source = StatusSource.EXPLICIT if error is not None else None if status is Status.UNKNOWN else _DERIVED
        tokens = event.record.usage_metadata
        fields: dict[str, Any] = {
            "status": Status.ERROR if error is not None else status,
            "status_source": source,
            "started_at": event.time,
            "usage": None if tokens is None else tokens.usage(),
            "error": error,
            "model": event.record.model_version,
            "preview": event.text[:PREVIEW],
            "at": At(((event.rowid, event.id),)),
        }
        self.spans.append(Span(event.id, name[:PREVIEW], operation, parent, **(fields | more)))

    def _reply(self, event: Event, parent: str | None) -> None:
        """A reply and the calls that it asks for, which are below its agent."""
        self._steps += 1
        reason = event.record.finish_reason
        name, status = event.record.model_version or event.author, _finished(reason)
        source = None if reason is None or status is Status.UNKNOWN else StatusSource.EXPLICIT
        more: dict[str, Any] = {"step": self._steps, "is_step": True, "status_word": reason}
        more["note"] = reason if status is Status.ERROR and reason is not None else ""
        if event.error is None:
            more["status_source"] = source or (None if status is Status.UNKNOWN else _DERIVED)
        if not event.text and (thought := next((part.text for part in event.parts if part.thought), None)):
            more["preview"] = thought[:PREVIEW]
        self._add(event, name, Operation.CHAT, parent, status, **more)
        for rank, call in event.calls:
            self._call(event, rank, call, parent, self._steps)

    def _call(self, event: Event, rank: int, call: FunctionCall, parent: str | None, step: int | None = None) -> None:
        position = len(self.spans)
        if call.id:
            self._calls[call.id] = position, event
        self._open[position] = event
        self.spans.append(
            Span(f"{event.id}:{rank}", (call.name or "call")[:PREVIEW], Operation.EXECUTE_TOOL, parent, step,
                 status=Status.RUNNING, started_at=event.time, preview=preview_of(call.args),
                 at=At(((event.rowid, event.id),), rank))
        )  # fmt: skip

    def _result(self, event: Event, rank: int, response: FunctionResponse, parent: str | None) -> None:
        """A result ends its call; one that comes later replaces it (the answer to a long-running call)."""
        position, asked = self._calls.get(response.id or "", (-1, event))
        if position < 0:
            self.problems.append(
                Problem(self._path, f"event {event.id}", "result of a call that is not in the session")
            )
            at = At(((event.rowid, event.id),), rank)
            name = (response.name or "result")[:PREVIEW]
            self.spans.append(Span(f"{event.id}:{rank}", name, Operation.OTHER, parent, started_at=event.time, at=at))
            return
        self._finish(position, asked, event, Status.OK, _DERIVED)

    def _finish(
        self, position: int, asked: Event, event: Event, status: Status, source: StatusSource, error: Any = None
    ) -> None:
        """End a call, which `asked` asked for, with `event`."""
        span = self.spans[position]
        self._open.pop(position, None)
        self.spans[position] = replace(
            span,
            status=status,
            status_source=source,
            error=error,
            duration_ms=between(asked.time, event.time) if span.duration_ms is None else span.duration_ms,
            at=replace(span.at, rows=(*span.at.rows, (event.rowid, event.id))),
        )

    def _fail_call(self, event: Event, error: Error) -> bool:
        """Give the error to the call that raised it: the only one of the agent without a result."""
        waiting = [
            (position, asked)
            for position, asked in self._open.items()
            if (asked.invocation, asked.author) == (event.invocation, event.author)
        ]
        if len(waiting) != 1:
            return False
        ((position, asked),) = waiting
        self._finish(position, asked, event, Status.ERROR, StatusSource.EXPLICIT, error)
        return True

    def _withdraw(self, invocation: str) -> None:
        """Mark all spans since an invocation began."""
        start = self._starts.get(invocation, len(self.spans))
        for position in range(start, len(self.spans)):
            span = self.spans[position]
            if REWOUND not in span.notes:
                note = f"{span.note} · {REWOUND}" if span.note else REWOUND
                self.spans[position] = replace(span, note=note)
                self._settle(position)

    def _settle(self, position: int, status: Status | None = None) -> None:
        """A call that nothing runs any more; `status` if it waits for the user."""
        if self._open.pop(position, None) is not None:
            source = None if status is None else _DERIVED
            self.spans[position] = replace(self.spans[position], status=status or Status.UNKNOWN, status_source=source)

    def _end_turns(self) -> None:
        """Give turns and agents their outcome; calls wait only in the last turn, if no reply came after them."""
        last = next(reversed(self._turns), None)
        for invocation, (position, events) in self._turns.items():
            outcome = outcome_of(events)
            if outcome.status is Status.PAUSED and invocation != last:
                outcome = NO_END
            runs = invocation == last and outcome.status is None and REWOUND not in self.spans[position].notes
            asked = [event for event in events if event.is_reply or event.calls][-1:]
            for place, event in list(self._open.items()):
                if event.invocation == invocation and not (runs and event in asked):
                    self._settle(place, Status.PAUSED if outcome.status is Status.PAUSED and event in asked else None)
            self._end(position, events, outcome, runs=runs)
            prompt = next((event.text for event in events if event.author == USER and event.text), "")
            self.spans[position] = replace(self.spans[position], preview=prompt[:PREVIEW])
        for (invocation, _), agent in self._agents.items():
            if agent.span is not None and agent.events:
                outcome = outcome_of(agent.events, is_agent=True)
                running = self.spans[self._turns[invocation][0]].status is Status.RUNNING
                self._end(agent.span, agent.events, outcome, runs=running)

    def _end(self, position: int, events: Sequence[Event], outcome: Outcome, *, runs: bool) -> None:
        status = outcome.status or (Status.RUNNING if runs else Status.UNKNOWN)
        self.spans[position] = replace(
            self.spans[position],
            status=status,
            status_source=None if outcome.status is None else outcome.source,
            status_word=outcome.word,
            duration_ms=None if outcome.status is None else between(events[0].time, events[-1].time) or None,
        )


_DERIVED: Final = StatusSource.DERIVED
