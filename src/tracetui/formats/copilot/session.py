"""A Copilot session while its events come in: its rows, header, usage and bodies.

Rows are mutable and become spans when they are collected: most of them have several events. There is a conversation of
the session itself and one of each sub-agent: its events are among those of the session, its rows below the call that
began it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson
from msgspec import Raw, Struct

from tracetui.formats.agent_log import (
    CANCELLED,
    CHAT,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXPLICIT,
    INVOKE_AGENT,
    MESSAGE,
    META,
    OK,
    RUNNING,
    UNKNOWN,
    UNKNOWN_KIND,
    PackedRows,
    SpanRow,
    unmatched,
)
from tracetui.formats.bodies import Named, pack_range, records_at
from tracetui.formats.copilot.events import (
    OTHER,
    CallUsage,
    Content,
    Context,
    Event,
    Shutdown,
    Start,
    Tokens,
    as_count,
    call_preview,
    kind_of,
)
from tracetui.formats.copilot.records import CONTINUES, KINDS, SCHEMA, AgentData
from tracetui.formats.decode import record_on
from tracetui.formats.jsonl import Line
from tracetui.formats.scalars import between, child, folder_of, mapping, moment, number, version
from tracetui.formats.schema import loosen, unknown_fields
from tracetui.model import (
    PREVIEW,
    Body,
    Error,
    FirstError,
    Header,
    Message,
    Operation,
    RunBody,
    Span,
    Status,
    Text,
    Total,
    Usage,
)
from tracetui.model.tally import NO_USAGE
from tracetui.sources.base import File, LinkLost

AGENT: Final = "copilot"
TURN: Final = Operation.TURN
_FEW: Final = 256
"""Events among which the list stage looks for the prompt and the model."""
_TOKENS_ONLY: Final = "(only its tokens were recorded)"
_EVENTS: Final = "events.jsonl"
_WORKSPACE: Final = "workspace.yaml"
_MOST_BYTES: Final = 8192
_MOST_LINES: Final = 64


class Row(SpanRow, gc=False):
    """A row that later events may change."""

    key: str = ""
    """The id of the call."""

    def fail(self, error: Error) -> None:
        """Set the status to failed."""
        self.status, self.source, self.error = ERROR, EXPLICIT, error


class Call(Struct, gc=False):
    """A call that the model requested; it has a row once it began."""

    name: str
    arguments: Raw | None = None
    response: Row | None = None
    """The response that requested it, until it has a row."""
    requested: bool = False
    row: Row | None = None
    done: bool = False


class Conversation:
    """One conversation so far; that of the session itself has no agent."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.agent: Row | None = None
        """The sub-agent of the conversation."""
        self.model: str | None = None
        """The model that is used now."""
        self.turn: Row | None = None
        self.implicit = False
        """The turn has no event."""
        self.response: Row | None = None
        """The latest response."""
        self.api_call: str | None = None
        """Id of the model call of that."""
        self.has_message = self.has_record = False
        """It has a message, not only thoughts or usage; it has a usage record."""
        self.failure: Error | None = None
        """An error without a message of the model after it."""
        self.failed: Row | None = None
        """The row of that error."""
        self.stopped: str | None = None
        """Why it was aborted, if no message of the model came after that."""
        self.waiting: dict[str, Call] = {}
        """Calls without a result by id."""

    def resume(self) -> None:
        """Forget failures and aborts: the conversation continued after them."""
        self.failure = self.failed = self.stopped = None

    def end_turn(self) -> None:
        """Close the turn."""
        self.turn = self.response = None
        self.implicit = False

    def is_of(self, call: str | None, *, otherwise: bool) -> bool:
        """Whether an event is of the latest response: by the ids of their model calls, else `otherwise`."""
        if self.response is None:
            return False
        return self.api_call == call if call is not None and self.api_call is not None else otherwise


class Session(PackedRows):
    """One session so far; see `tracetui.formats.jsonl.Session`. It can be resumed at any time."""

    event: Event
    """The event that is taken,"""
    time: float | None
    conversation: Conversation
    """and the conversation that it belongs to."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.start: Start | None = None
        self.head = b""
        """The line of the first event,"""
        self.extent: tuple[int, int] | None = None
        """and where it is."""
        self.end: Shutdown | None = None
        """The last shutdown, if the session did not continue after it."""
        self.first: float | None = None
        """The first time."""
        self.model: str | None = None
        """The first model."""
        self.prompt: str | None = None
        self.system_prompt: str | None = None
        self.last_user: str | None = None
        self.last_assistant: str | None = None
        self.turns = 0
        self.main = self.conversation = Conversation()
        self.conversations: dict[str, Conversation] = {}
        """Those of sub-agents, by their keys."""
        self.active: dict[str, Conversation] = {}
        """Those with events since the program was started."""
        self.agents: dict[str, str] = {}
        """Keys of sub-agents by the call that began them."""
        self.calls: dict[str, Call | Span] = {}
        """Calls by id; the span of one that is done and was collected."""
        self.pairs: dict[str, Row] = {}
        """Hooks, permissions and compactions without an end."""
        self.counted: dict[str, set[int]] = {}
        """Numbers of the usage records that were counted, by session."""
        self.ledger = Ledger()
        self.has_outcome = self._continued = True

    def take(self, record: Any, line: Line) -> None:
        event: Event = record
        self.records += 1
        self.event, self.line, self.time = event, line, moment(event.timestamp)
        self.packed = pack_range(line.offset, len(line.data), line.check)
        if self.first is None and not self.skipped:
            self.first = self.time
        data, self.conversation = event.data, self.main
        agent, call = event.agent_id, data.parent_tool_call_id
        if (agent or call) and agent != "main":
            self._find_conversation(agent or None, call or "")
        if (self.end is not None or self.skipped) and CONTINUES.fullmatch(kind_of(event)):
            self.end, self._continued = None, True
        data.take(self)

    # ---- conversations

    def _find_conversation(self, agent: str | None, call: str) -> None:
        """Find the conversation of a sub-agent by its id or by its call; begin it if it is new."""
        key = agent if agent is not None else self.agents.get(call, call)
        conversation = self.conversations.get(key)
        if conversation is None:
            conversation = Conversation(key)
            row = self.new("sub-agent", INVOKE_AGENT, "a")
            row.status, row.source = RUNNING, DERIVED
            row.at = self.packed if isinstance(self.event.data, AgentData) else b""
            self.conversations[key], conversation.agent, self.conversation = conversation, row, conversation
            self.put_below_call(row, call)
        self.conversation = self.active[key] = conversation

    def put_below_call(self, agent: Row, call: str | None) -> None:
        """Put the sub-agent of the conversation below the call that began it."""
        if not call:
            return
        self.agents[call] = self.conversation.key
        caller = self.open_call(call)
        if caller is not None and caller.row is not None:
            agent.parent_id, agent.step = caller.row.id, caller.row.step

    def _adopt(self, key: str, call: Row) -> None:
        """Put a sub-agent below its call where it came before it."""
        conversation = self.conversations.get(self.agents.get(key, ""))
        if conversation is not None and conversation.agent is not None and conversation.agent.parent_id != call.id:
            conversation.agent.parent_id, conversation.agent.step = call.id, call.step
            self.emit(conversation.agent)

    def use_model(self, model: str | None) -> None:
        """Note the model of the conversation; ``auto`` is none."""
        if model and model != "auto" and model != self.conversation.model:
            self.conversation.model = model
            if self.model is None and self.conversation is self.main and not self.skipped:
                self.model = model

    def prompted(self, text: str) -> None:
        """Take a prompt."""
        self.last_user, self.has_outcome = text, True
        if self.prompt is None and not self.skipped:
            self.prompt = text.strip()[:PREVIEW] or None

    def fail(self, conversation: Conversation, row: Row, error: Error) -> None:
        """The session or a sub-agent failed, unless a message of the model follows."""
        row.fail(error)
        row.preview = error.message[:PREVIEW]
        conversation.failure, conversation.failed = error, row
        self.has_outcome = self.has_outcome or conversation is self.main

    # ---- rows

    def new(self, name: str, operation: Operation, suffix: str = "") -> Row:
        """A row that begins with this event, within the current turn; `suffix` distinguishes rows of one event."""
        above = self.conversation.turn or self.conversation.agent
        parent, step = (None, None) if above is None else (above.id, above.step)
        ident = f"l{self.line.number}{suffix}"
        row = self._changed[ident] = Row(ident, name[:PREVIEW], operation, parent, step, self.time, self.packed)
        return row

    def add_record(self, operation: Operation = META) -> Row:
        kind = kind_of(self.event)
        row = self.new(kind, operation if kind in KINDS else UNKNOWN_KIND)
        row.preview = self.event.data.preview()
        return row

    def add_usage(self, number: int, model: str | None, usage: Usage) -> None:
        """Add usage that no call has, by the totals of this event."""
        row = self.new("usage of other calls", OTHER, f"u{number}")
        row.model, row.usage, row.preview = model, usage, (model or "")[:PREVIEW]
        row.status, row.source = OK, DERIVED

    def end_row(self, row: Row) -> None:
        """End a row with this event."""
        self.extend(row)
        row.duration_ms = between(row.started_at, self.time)
        self._changed[row.id] = row

    # ---- turns

    def open_turn(self, *, implicit: bool = False) -> None:
        """Begin a turn; one that is open has no end."""
        conversation = self.conversation
        self.close(conversation)
        turn = self.new("turn", TURN, "t")
        turn.step = None
        if conversation is self.main:
            self.turns += 1
            turn.step = self.turns
        if implicit:
            turn.at = b""
        else:
            turn.status, turn.source = RUNNING, DERIVED
        conversation.turn, conversation.implicit = turn, implicit

    def settle(self, conversation: Conversation, *outcome: Any) -> None:
        """Stop timing calls without a result."""
        self.stop([call.row for call in conversation.waiting.values() if call.row is not None], *outcome)
        conversation.waiting.clear()

    def close(self, conversation: Conversation) -> None:
        """End the open rows of a conversation, but not the sub-agent itself: its end is not in the trace."""
        if conversation.waiting:
            self.settle(conversation)
        if conversation.turn is not None:
            self.stop((conversation.turn,))
        conversation.end_turn()

    def close_all(self) -> None:
        """End everything that is open: the program has ended."""
        for conversation in (self.main, *self.active.values()):
            self.close(conversation)
            if conversation.agent is not None:
                self.stop((conversation.agent,))
        self.active.clear()
        for row in self.pairs.values():  # running, or paused
            row.status, row.source = UNKNOWN, None
            self.emit(row)
        self.pairs.clear()

    # ---- responses

    def respond(
        self, api_call: str | None, text: str, *, joins: bool, is_message: bool = False, is_record: bool = False
    ) -> Row:
        """The response that this event is part of: the latest one where it `joins` that, else another.

        Messages and thoughts outside of a turn begin one; usage records do not.
        """
        conversation, row = self.conversation, self.conversation.response
        if row is None or not joins:
            if conversation.turn is None and conversation.agent is None and not is_record:
                self.open_turn(implicit=True)
            row = self.new(conversation.model or "assistant", CHAT)
            row.model, row.preview = conversation.model, text[:PREVIEW] if is_message or text else _TOKENS_ONLY
            row.status, row.source = OK, DERIVED
            conversation.response, conversation.api_call = row, api_call
            conversation.has_message, conversation.has_record = is_message, False
            return row
        self.extend(row)
        if is_message and not conversation.has_message:
            row.preview = text[:PREVIEW] or ("" if row.preview == _TOKENS_ONLY else row.preview)
        if conversation.model is not None and row.model is None:
            row.name, row.model = conversation.model[:PREVIEW], conversation.model
        conversation.api_call = conversation.api_call or api_call
        conversation.has_message = conversation.has_message or is_message
        return row

    def is_counted(self, call: CallUsage) -> bool:
        """Whether the same record was counted before; note that it is now."""
        if call.key is None:
            return False
        session, number = call.key
        numbers = self.counted.get(session)
        if numbers is None:
            numbers = self.counted[session] = set()
        if number in numbers:
            return True
        numbers.add(number)
        return False

    # ---- calls

    def request_call(self, key: str | None, name: str, arguments: Raw, response: Row) -> None:
        """Take a call that a response requests; its row comes when it begins, or came already."""
        if not key:
            return
        before = self.open_call(key)
        if before is None or before.row is None or before.requested:
            self.calls[key] = Call(name, arguments, response, requested=True)
            return
        before.name, before.requested = name, True
        before.row.parent_id, before.row.step = response.id, response.step
        self.emit(before.row)

    def begin_call(self, key: str | None, name: str, arguments: Raw) -> None:
        """Begin a call of the model or of the user."""
        call = self.open_call(key)
        if call is not None and call.row is not None:
            if not call.done:  # the user's: requested, then begun
                self.extend(call.row)
                return
            call = None
        call = call or Call(name)
        row = self._call_row(name, call, call_preview(arguments))
        row.status, row.source = RUNNING, DERIVED
        if key is None:
            self.add_keyless(row, self.line)
            return
        row.key = key
        self.calls[key] = self.conversation.waiting[key] = call
        if self.agents:
            self._adopt(key, row)

    def end_call(self, key: str | None) -> Row | None:
        """The row of the call that this event has the result of; None, and a problem, where there is no such call."""
        call = self.open_call(key)
        if call is None or key is None:
            self.problem(self.line, unmatched(key))
            return None
        row = call.row
        if row is None:  # its start is not in the trace
            row = self._call_row(call.name, call, "")
            row.started_at = None
            self._adopt(key, row)
        else:
            self.end_row(row)
        row.key, call.done = key, True
        self.conversation.waiting.pop(key, None)
        return row

    def _call_row(self, name: str, call: Call, preview: str) -> Row:
        """The row of a call, below the response that requested it."""
        row = call.row = self.new(name, EXECUTE_TOOL)
        row.preview = preview or ("" if call.arguments is None else call_preview(call.arguments))
        call.arguments = None
        if call.response is not None:
            row.parent_id, row.step = call.response.id, call.response.step
            call.response = None
        return row

    def open_call(self, key: str | None) -> Call | None:
        """The call of that id, to be changed."""
        if key is None:
            return None
        call = self.calls.get(key)
        if isinstance(call, Span):
            row = Row.from_span(call)
            row.key = key
            call = self.calls[key] = Call(call.name, row=row, requested=True, done=True)
        return call

    def release(self, row: Any, span: Span) -> None:
        key: str = row.key
        call = self.calls.get(key) if key else None
        if isinstance(call, Call) and call.row is row and call.done and call.requested:
            self.calls[key] = span

    # ---- the list stage

    @property
    def begun(self) -> bool:
        return self.start is not None

    @property
    def settled(self) -> bool:
        """No later event changes the list-stage result of the beginning."""
        is_named = self.prompt is not None and self.model is not None
        return self.start is not None and (is_named or self.records >= _FEW)

    @property
    def has_status(self) -> bool:
        """The events taken since `skip` decide the status."""
        return self.has_outcome or (self._continued and self.end is None)

    def skip(self, left_out: bytes) -> None:
        super().skip(left_out)
        self.has_outcome = self._continued = False

    # ---- the session as a whole

    def header(self) -> Header:
        """The header so far."""
        file, start = self.file, self.start or Start()
        context, space = start.context if isinstance(start.context, Context) else Context(), workspace(file)
        ident = start.session_id or space.get("id") or _stem(file)
        folder = context.cwd or space.get("cwd")
        branch = context.branch or space.get("branch")
        status, name, error = self._outcome()
        began = moment(start.start_time)
        return Header(
            id=ident,
            name=folder_of(folder) or ident,
            agent=AGENT,
            is_session=True,
            model=self.model,
            status=status,
            status_word=name,
            status_source=None if status is None else EXPLICIT,
            ended=status is not None,
            started_at=self.first if began is None else began,
            usage=None if self.skipped else self.ledger.cost,
            parent=start.detached_from_spawning_parent_session_id,
            error=error,
            prompt=self.prompt or "",
            title=(space.get("name") or "")[:PREVIEW] or None,
            label=(space.get("name") or "")[:PREVIEW] or None if space.get("user_named") == "true" else None,
            tags=(branch[:PREVIEW],) if branch else (),
            source=(folder or "")[:PREVIEW] or None,
            writer=version(start.copilot_version),
            size=file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def _outcome(self) -> tuple[Status | None, str | None, FirstError | None]:
        """(status, its word, the cause): all None while there is no shutdown, or the session continued after it.

        A session with a usual shutdown failed if no message of the model came after an error, and was cancelled if
        none came after an abort.
        """
        if self.end is None:
            return None, None, None
        name = (self.end.shutdown_type or "shutdown")[:PREVIEW]
        failure, row = self.main.failure, self.main.failed
        if failure is not None:
            if row is None or self.skipped:
                return ERROR, name, FirstError(failure.message, failure.type)
            return ERROR, name, FirstError(failure.message, failure.type, row.id, row.name, row.operation)
        return (OK, name, None) if self.main.stopped is None else (CANCELLED, self.main.stopped, None)

    def run_body(self) -> RunBody:
        """The last messages, the declared totals, the first event and the workspace."""
        head = record_on(self.head) or {}
        attributes = attributes_of(head, mapping(head.get("data")))
        if space := workspace(self.file):
            attributes = attributes | {_WORKSPACE: space}
        return RunBody(
            last_user=self.last_user,
            last_assistant=self.last_assistant,
            totals=self.ledger.totals(),
            system_prompt=self.system_prompt,
            attributes=attributes,
            extent=self.extent,
        )


def workspace(file: File) -> dict[str, str]:
    """The plain lines of ``workspace.yaml`` in the folder of a session, read once while the file is open."""
    if file.name != _EVENTS:
        return {}
    cached = file.memo.get(_WORKSPACE)
    if not isinstance(cached, dict):
        cached = file.memo[_WORKSPACE] = _read(file)
    return cached


def _read(file: File) -> dict[str, str]:
    try:
        with file.other(_WORKSPACE) as other:
            data = other.read(0, _MOST_BYTES)
    except LinkLost:
        raise
    except OSError:  # there is none, or it is no file
        return {}
    fields: dict[str, str] = {}
    last = ""
    for line in data.decode("utf-8", "replace").split("\n")[:_MOST_LINES]:
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t"):  # a text of several lines: its first one
            if last and not fields[last]:
                fields[last] = line.strip()
        elif colon and name.strip():
            last = name.strip()
            fields[last] = _plain(value.strip())
    return {name: value for name, value in fields.items() if value}


def _plain(value: str) -> str:
    """A value of one line, without its quotes."""
    if value[:1] in ("|", ">") or value == "null":
        return ""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(orjson.loads(value))
        except orjson.JSONDecodeError:
            return value[1:-1]
    return value


def _stem(file: File) -> str:
    """Id of a session without one: the folder of its ``events.jsonl``, else the name of the file."""
    if file.name == _EVENTS:
        return folder_of(file.path[: -len(_EVENTS)]) or file.name
    return file.name.removesuffix(".jsonl") or file.name


# ---- usage

_NAMES: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")


class Period:
    """Usage between a start of the program and its shutdown."""

    def __init__(self) -> None:
        self.by_records = self.by_messages = NO_USAGE
        """By the records of the calls; and by the messages of calls without a record."""
        self.models: dict[str, Usage] = {}
        """That by messages, by model."""
        self.calls = 0
        """Records."""
        self.cost = self.duration = 0.0
        """Premium requests; milliseconds."""

    def add(self, other: Period) -> None:
        """Add another period."""
        self.by_records, self.calls = self.by_records + other.by_records, self.calls + other.calls
        self.by_messages += other.by_messages
        self.cost, self.duration = self.cost + other.cost, self.duration + other.duration

    @property
    def usage(self) -> Usage:
        """The sum."""
        return self.by_records + self.by_messages


class Ledger:
    """Usage so far, counted once however often it is recorded.

    Current versions have a ``session.usage_record`` per model call. Older messages had their output, and
    ``session.shutdown`` the sums since the session began or resumed: such a period counts by these sums only.
    """

    def __init__(self) -> None:
        self.open, self.before, self.ended = Period(), Period(), Period()
        """Since the last shutdown; before it; and the period that it ended."""
        self._models: dict[str, Any] | None = None
        """Usage per model declared by the last shutdown,"""
        self._declared = NO_USAGE
        """the sum of that,"""
        self._duration: float | None = None
        """and the time that it declares (milliseconds)."""
        self._billed: float | None = None
        """Cost in US dollars that shutdowns declare beyond that of the records."""

    def add_record(self, call: CallUsage, usage: Usage) -> None:
        """Count one call by its record."""
        period = self.open
        period.by_records += usage
        period.calls += 1
        period.cost += call.cost or 0.0
        period.duration += call.duration or 0.0

    def add_message(self, usage: Usage, model: str | None) -> None:
        """Count one call by its message."""
        self.open.by_messages += usage
        self.open.models[model or ""] = self.open.models.get(model or "", NO_USAGE) + usage

    def remove_message(self, usage: Usage) -> None:
        """Subtract a message whose call has a usage record after all."""
        self.open.by_messages = self.open.by_messages.minus(usage)

    def shut_down(
        self, models: Any, snapshot: Any, details: Any, duration: float | None, cost: float | None
    ) -> list[tuple[str | None, Usage]]:
        """End the period; the shutdown declares tokens by model, or by kind, the time of all calls (milliseconds), and
        their cost in US dollars.

        Returns the usage, by model, that no call of the period has; model None: of any.
        """
        metrics = models if isinstance(models, dict) and models else child(snapshot, "modelMetrics")
        by_model: dict[str | None, Usage] = {
            model: loosen(child(metric, "usage"), Tokens, {}).counts() for model, metric in metrics.items()
        }
        declared = sum(by_model.values(), NO_USAGE)
        period = self.open
        uncounted: list[tuple[str | None, Usage]] = []
        if not declared:
            declared = _by_kind(details)
            by_model = {None: declared}
            counted: dict[str | None, Usage] = {None: period.by_messages}
        else:
            counted = _messages_by_model(period.models, by_model)
        if not period.calls:
            uncounted = [(model, used.minus(counted.get(model, NO_USAGE))) for model, used in by_model.items()]
        if cost is not None:
            self._billed = (self._billed or 0.0) + max(0.0, cost - (period.usage.cost_usd or 0.0))
        self.before.add(period)
        self._models, self._declared, self._duration = metrics, declared, duration
        self.ended, self.open = period, Period()
        return [(model, used) for model, used in uncounted if used]

    @property
    def cost(self) -> Usage | None:
        """The billed cost of the run; None if its records have all of it."""
        if self._billed is None:
            return None
        recorded = (self.before.usage.cost_usd or 0.0) + (self.open.usage.cost_usd or 0.0)
        return Usage(cost_usd=self._billed + recorded)

    def totals(self) -> tuple[Total, ...]:
        """The totals declared by the last shutdown, next to the counted ones.

        It is about the whole session or about its last period, as the version has it: either is right.
        """
        if self._models is None:
            return ()
        periods = (self.ended, self.before)
        totals = [
            _total(name, getattr(self._declared, name), [getattr(reading.usage, name) for reading in periods])
            for name in _NAMES
        ]
        requests = [child(reading, "requests") for reading in self._models.values()]
        count = _sum(as_count(number(request.get("count"))) for request in requests)
        cost = _sum(number(request.get("cost")) for request in requests)
        for name, declared, field in (
            ("requests", count, "calls"),
            ("premium requests", cost, "cost"),
            ("API duration in ms", self._duration, "duration"),
        ):
            counted = [getattr(reading, field) if self.ended.calls else None for reading in periods]
            totals.append(_total(name, declared, counted))
        return tuple([total for total in totals if total.declared is not None])


def _messages_by_model(counted: dict[str, Usage], declared: dict[str | None, Usage]) -> dict[str | None, Usage]:
    """The usage of messages by declared model; that of other models belongs to the first, mostly the only one."""
    usage: dict[str | None, Usage] = {}
    for model, used in counted.items():
        key = model if model in declared else next(iter(declared), None)
        usage[key] = usage.get(key, NO_USAGE) + used
    return usage


def _by_kind(details: Any) -> Usage:
    """Tokens by kind, where input is uncached input only."""
    plain, completion, read, written = (
        as_count(number(child(mapping(details), name).get("tokenCount")))
        for name in ("input", "output", "cache_read", "cache_write")
    )
    prompt = _sum((plain, read, written))
    return Usage(input_tokens=prompt, output_tokens=completion, cache_read_tokens=read, cache_creation_tokens=written)


def _total(name: str, declared: float | int | None, readings: list[Any]) -> Total:
    """A declared number with the counted one: the matching reading, else the first."""
    counted = [round(reading, 6) if isinstance(reading, float) else reading for reading in readings]
    return Total(name, declared, next((reading for reading in counted if reading == declared), counted[0]))


def _sum(values: Iterable[Any]) -> Any:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


# ---- bodies

_ENCRYPTED: Final = ("encryptedContent", "reasoningOpaque")


def body_of(file: File, span: Span) -> Body:
    """The body of a span; calls and responses have their attributes by kind of event.

    Raises `FormatError` if something else is there now.
    """
    lines = records_at(file, span.at)
    operation, content, attributes = span.operation, Content(), Named()
    is_flat = operation is MESSAGE or (len(lines) == 1 and operation not in (CHAT, EXECUTE_TOOL))
    for record, _ in lines:
        event, fields = SCHEMA.convert(record, {}), dict(mapping(record.get("data")))
        if operation in (CHAT, MESSAGE, EXECUTE_TOOL):
            event.data.show(content, fields)
        rest = attributes_of(record, fields)
        if is_flat:
            attributes.flat(rest)
        else:
            attributes.add(kind_of(event), rest)
    parts, raw = tuple(content.parts), b"\n".join(data for _, data in lines)
    if operation is MESSAGE:
        message = Message(content.role, parts)
        return Body(input=content.input, input_messages=(message,), attributes=attributes.fields, raw=raw)
    if operation is CHAT:
        text = "\n".join(part.text for part in parts if isinstance(part, Text) and part.text)
        messages = (Message("assistant", parts, finish_reason=content.finish_reason),) if parts else ()
        return Body(output=text or None, output_messages=messages, attributes=attributes.fields, raw=raw)
    return Body(input=content.input, output=content.output, attributes=attributes.fields, raw=raw)


def attributes_of(record: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """`fields` of the data of an event, and all of its envelope; ``event.id`` where the data has an `id`."""
    data, kind = record.get("data"), record.get("type")
    around = {
        name: value
        for name, value in record.items()
        if not (name == "data" and isinstance(data, dict)) and not (name == "type" and kind and isinstance(kind, str))
    }
    merged = fields | {f"event.{name}" if name in fields else name: value for name, value in around.items()}
    return {name: _masked(value) if name in _ENCRYPTED else value for name, value in merged.items()}


def _masked(value: Any) -> Any:
    """The length of an encrypted text."""
    return f"encrypted, {len(value)} characters" if isinstance(value, str) and value else value
