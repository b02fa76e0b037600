"""Events of ADK sessions: their fields, and the spans that they become.

Facts: databases of google-adk 2.13.0. An event has one time, that of its end; an invocation is a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from tracetui.formats.agent_log import DERIVED, EXPLICIT, RUNNING, UNKNOWN, SpanRow
from tracetui.formats.bodies import preview_of
from tracetui.formats.scalars import between, text
from tracetui.formats.schema import NULL, Loose, Natural, Schema, Unknown, plain
from tracetui.formats.sqlite import Outcome
from tracetui.model import PREVIEW, Error, Operation, Problem, Status, StatusSource, Usage, excerpt
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
        prompt = _sum(self.prompt_token_count, self.tool_use_prompt_token_count)
        completion = _sum(self.candidates_token_count, self.thoughts_token_count)
        cached, thoughts = self.cached_content_token_count, self.thoughts_token_count
        return Usage(prompt, completion, self.total_token_count, cached, None, thoughts) or None


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
    actions: Actions
    author: str
    """The agent, or ``user``."""
    path: str
    """Path of its agent, empty if it is not recorded."""
    ends_workflow: bool | None
    """Whether its output is that of the whole workflow; None outside of workflows."""
    parts: list[Part]
    calls: list[tuple[int, FunctionCall]]
    """The calls that it asks for, by the number of their part."""
    results: list[tuple[int, FunctionResponse]]
    """The results in it, by the number of their part."""
    text: str
    """Its text, without thoughts."""
    error: Error | None
    is_reply: bool
    """Whether a model answered or failed to."""

    @property
    def is_compaction(self) -> bool:
        """Whether it is the summary of earlier events, which a model wrote."""
        return self.actions.compaction is not NULL and plain(self.actions.compaction) is not None

    @property
    def belongs_to_turn(self) -> bool:
        """False for compactions and rewinds: their invocations are no turns."""
        return not self.is_compaction and self.actions.rewind_before_invocation_id is None


def event_of(rowid: int, ident: Any, invocation: Any, when: float | None, data: bytes, unknown: Unknown) -> Event:
    """The event of a row. Raises `FormatError` if its JSON is none."""
    record = SCHEMA.decode(data, unknown)[0] or Record()
    actions, info = record.actions or _NO_ACTIONS, record.node_info
    path = (info.path if info is not None else None) or ""
    parts = (record.content.parts if record.content is not None else None) or []
    author = text(record.author) or "agent"
    has_answer = record.model_version is not None or record.usage_metadata is not None
    return Event(
        rowid,
        text(ident) or f"row {rowid}",
        text(invocation) or text(record.invocation_id) or f"row {rowid}",
        when,
        record,
        actions,
        author,
        path,
        path.partition("/")[0] in info.output_for if info is not None and info.output_for else None,
        parts,
        [(rank, part.function_call) for rank, part in enumerate(parts) if part.function_call is not None],
        [(rank, part.function_response) for rank, part in enumerate(parts) if part.function_response is not None],
        "\n".join([part.text for part in parts if part.text and not part.thought]),
        _error(record.error_code, record.error_message),
        author != USER and has_answer,
    )


_NO_ACTIONS: Final = Actions()


def _error(code: Any, message: Any) -> Error | None:
    if code in (None, "") and message in (None, ""):
        return None
    return Error(excerpt("" if message is None else str(message)), None if code in (None, "") else str(code))


# ---- outcomes

NO_END: Final = Outcome()
_UNTOLD: Final = Outcome(UNKNOWN, DERIVED)


def outcome_of(events: Sequence[Event], *, is_agent: bool = False) -> Outcome:
    """The outcome by the last events.

    A reply without calls ends an agent. It also ends the turn if the path of the agent is recorded: a Sequential, Loop
    or Parallel agent as root would go on, and the failure of one leaves no record. A workflow ends with the output of a
    node that is its own. Long-running calls without a response wait for the user.
    """
    for event in reversed(events):
        if event.actions.rewind_before_invocation_id is not None:
            return Outcome(UNKNOWN, DERIVED, REWOUND)
        if event.is_compaction:
            continue
        if (error := event.error) is not None:
            return Outcome(Status.ERROR, EXPLICIT, error.type and error.type[:PREVIEW])
        if event.actions.end_of_agent and (is_agent or event.author == _root_of(events)):
            return Outcome(Status.OK, EXPLICIT, "end_of_agent")
        if not is_agent and event.ends_workflow is not None:
            return Outcome(Status.OK, DERIVED) if event.ends_workflow else NO_END
        waiting = {*(event.record.long_running_tool_ids or ())}
        if asks := [call.name for _, call in event.calls if call.id in waiting]:
            return Outcome(Status.PAUSED, DERIVED, asks[0])
        if event.author == USER or event.calls:
            return NO_END
        if event.results and not event.actions.skip_summarization:
            return NO_END
        if event.parts or event.is_reply:
            status = _finished(event.record.finish_reason)
            if status is Status.OK and not (is_agent or event.path):
                return _UNTOLD
            return Outcome(status, DERIVED, event.record.finish_reason)
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


class Row(SpanRow):
    """A span that later events may change."""

    STEPS: ClassVar[Operation] = Operation.CHAT
    events: list[Event] = field(default_factory=list)
    """Those of a turn or an agent; the one that asks for a call."""

    def end(self, outcome: Outcome, *, runs: bool) -> None:
        """Give a turn or an agent its outcome."""
        self.status = outcome.status or (RUNNING if runs else UNKNOWN)
        self.source, self.status_word = outcome.source, outcome.word
        if outcome.status is not None:
            self.duration_ms = between(self.events[0].time, self.events[-1].time) or None


class Spans:
    """The spans of a session, in order."""

    def __init__(self, events: Iterable[Event], path: str) -> None:
        self.problems: list[Problem] = []
        self._path = path
        self._rows: list[Row] = []
        self._steps = 0
        self._turns: dict[str, Row] = {}
        """By invocation."""
        self._agents: dict[str, Row] = {}
        """By id: the agents of a turn, except its first one, which has no span of its own."""
        self._roots: dict[str, str] = {}
        """By invocation: its first agent."""
        self._calls: dict[str, Row] = {}
        """By the id that the result names."""
        self._open: list[Row] = []
        """Calls that had no result when this was last asked."""
        self._starts: dict[str, int] = {}
        """By invocation: position of its first span."""
        for event in events:
            self._take(event)
        self._end_turns()
        self.spans = [row.span() for row in self._rows]

    def _take(self, event: Event) -> None:
        self._starts.setdefault(event.invocation, len(self._rows))
        parent = self._parent(event) if event.belongs_to_turn else None
        has_failed = event.error is not None
        if has_failed and not event.is_reply and not event.parts and self._fail_call(event):
            return
        if event.is_compaction:
            self._add(event, "compaction", Operation.CHAT, None, Status.OK)
        elif (first := event.actions.rewind_before_invocation_id) is not None:
            self._withdraw(first)
            self._add(event, "rewind", Operation.META, None)
        elif event.is_reply:
            self._reply(event, parent)
        elif event.text or has_failed or (event.parts and not event.results):
            self._add(
                event, event.author, Operation.OTHER if has_failed and not event.parts else Operation.MESSAGE, parent
            )
        elif not event.parts:
            names = [name for name in ("end_of_agent", "agent_state", "escalate", "transfer_to_agent", "state_delta")
                     if plain(getattr(event.actions, name))]  # fmt: skip
            self._add(event, "event", Operation.META, parent).preview = ", ".join(names)
        for rank, call in event.calls:
            self._call(event, rank, call, parent)
        for rank, response in event.results:
            self._result(event, rank, response, parent)

    def _parent(self, event: Event) -> str:
        """The span above those of an event: the turn, or the span of its agent in the turn."""
        turn = self._turns.get(event.invocation)
        if turn is None:
            turn = Row(f"turn:{event.invocation}", "turn", Operation.TURN, None, None, event.time, None)
            self._turns[event.invocation] = turn
            self._rows.append(turn)
        turn.events.append(event)
        if event.author == USER:
            return turn.id
        names = [name.partition("@")[0] for name in event.path.split("/") if name]
        if not names or names[-1] != event.author:
            names.append(event.author)
        root = self._roots.setdefault(event.invocation, names[0])
        agent = turn
        for depth, name in enumerate(names):
            if depth or name != root:
                ident = f"{turn.id}/{'/'.join(names[: depth + 1])}"
                agent = self._agents.get(ident) or self._begin(event, ident, name, agent.id)
        if agent is not turn:
            agent.events.append(event)
        return agent.id

    def _begin(self, event: Event, ident: str, name: str, above: str) -> Row:
        agent = self._agents[ident] = Row(ident, name[:PREVIEW], Operation.INVOKE_AGENT, above, None, event.time, None)
        if name == event.author:
            agent.note = (event.record.branch or "")[:PREVIEW]
        self._rows.append(agent)
        return agent

    def _add(self, event: Event, name: str, operation: Operation, parent: str | None, status: Status = UNKNOWN) -> Row:
        at, tokens = At(((event.rowid, event.id),)), event.record.usage_metadata
        row = Row(event.id, name[:PREVIEW], operation, parent, None, event.time, at, event.text[:PREVIEW])
        row.status, row.source = status, None if status is UNKNOWN else DERIVED
        if event.error is not None:
            row.status, row.source, row.error = Status.ERROR, EXPLICIT, event.error
        row.usage = None if tokens is None else tokens.usage()
        row.model = event.record.model_version
        self._rows.append(row)
        return row

    def _reply(self, event: Event, parent: str | None) -> None:
        """A reply, which is a step. The calls that it asks for are below its agent."""
        self._steps += 1
        reason = event.record.finish_reason
        status = _finished(reason)
        row = self._add(event, event.record.model_version or event.author, Operation.CHAT, parent, status)
        row.step, row.status_word = self._steps, reason
        if reason is not None and row.source is not None:
            row.source = EXPLICIT
        if reason is not None and status is Status.ERROR:
            row.note = reason
        if not event.text and (thought := next((part.text for part in event.parts if part.thought), None)):
            row.preview = thought[:PREVIEW]

    def _call(self, event: Event, rank: int, call: FunctionCall, parent: str | None) -> None:
        step = self._steps if event.is_reply else None
        name, at = (call.name or "call")[:PREVIEW], At(((event.rowid, event.id),), rank)
        row = Row(
            f"{event.id}:{rank}", name, Operation.EXECUTE_TOOL, parent, step, event.time, at, preview_of(call.args)
        )
        row.status, row.events = RUNNING, [event]
        if call.id:
            self._calls[call.id] = row
        self._open.append(row)
        self._rows.append(row)

    def _result(self, event: Event, rank: int, response: FunctionResponse, parent: str | None) -> None:
        """A result ends its call; one that comes later replaces it (the answer to a long-running call)."""
        call = self._calls.get(response.id or "")
        if call is not None:
            self._finish(call, event, Status.OK, DERIVED)
            return
        self.problems.append(Problem(self._path, f"event {event.id}", "result of a call that is not in the session"))
        name, at = (response.name or "result")[:PREVIEW], At(((event.rowid, event.id),), rank)
        self._rows.append(Row(f"{event.id}:{rank}", name, Operation.OTHER, parent, None, event.time, at))

    def _finish(self, call: Row, event: Event, status: Status, source: StatusSource) -> None:
        """End a call with `event`."""
        call.status, call.source, call.error = status, source, event.error if status is Status.ERROR else None
        if call.duration_ms is None:
            call.duration_ms = between(call.started_at, event.time)
        call.at = replace(call.at, rows=(*call.at.rows, (event.rowid, event.id)))

    def _fail_call(self, event: Event) -> bool:
        """Give the error of an event to the call that raised it: the only one of the agent without a result."""
        self._open = [call for call in self._open if call.status is RUNNING]
        agent = event.invocation, event.author
        waiting = [call for call in self._open if (call.events[0].invocation, call.events[0].author) == agent]
        if len(waiting) != 1:
            return False
        self._finish(waiting[0], event, Status.ERROR, EXPLICIT)
        return True

    def _withdraw(self, invocation: str) -> None:
        """Mark all spans since an invocation began; nothing runs their calls any more."""
        for row in self._rows[self._starts.get(invocation, len(self._rows)) :]:
            if REWOUND not in row.note.split(" · "):
                row.note = f"{row.note} · {REWOUND}" if row.note else REWOUND
            row.settle()

    def _end_turns(self) -> None:
        """Give turns and agents their outcome; calls wait only in the last turn, if no reply came after them."""
        self._open = [call for call in self._open if call.status is RUNNING]
        last = next(reversed(self._turns.values()), None)
        for invocation, turn in self._turns.items():
            outcome = outcome_of(turn.events)
            if outcome.status is Status.PAUSED and turn is not last:
                outcome = NO_END
            runs = turn is last and outcome.status is None and turn.note != REWOUND
            asking = next((event for event in reversed(turn.events) if event.is_reply or event.calls), None)
            for call in self._open:
                asked = call.events[0]
                if asked.invocation == invocation and not (runs and asked is asking):
                    waits = outcome.status is Status.PAUSED and asked is asking
                    call.settle(Status.PAUSED if waits else UNKNOWN, DERIVED if waits else None)
            turn.end(outcome, runs=runs)
            prompt = next((event.text for event in turn.events if event.author == USER and event.text), "")
            turn.preview = prompt[:PREVIEW]
        for agent in self._agents.values():
            if agent.events:
                turn = self._turns[agent.events[0].invocation]
                agent.end(outcome_of(agent.events, is_agent=True), runs=turn.status is RUNNING)
