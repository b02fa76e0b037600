"""Events of a Copilot session: the fields of each kind, and what it means. One JSON object a line,
``{"type", "data", "id", "timestamp", "parentId", "agentId"?}``.

Facts: files of version 1.0.102, public ones of 0.0.420 to 1.0.77, and the schema of events that GitHub's own SDK
publishes. `parentId` is the event before, not what an event is within.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import UNSET, Raw, Struct, defstruct, field

from tracetui.formats.agent_log import (
    CANCELLED,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXIT,
    EXPLICIT,
    HOOK,
    MESSAGE,
    OK,
    RUNNING,
)
from tracetui.formats.bodies import argument, preview_of
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import mapping, without, word
from tracetui.formats.schema import NULL, Finite, Loose, Schema, plain, tag_of
from tracetui.model import (
    MESSAGE_LIMIT,
    PREVIEW,
    Blob,
    Error,
    Operation,
    Part,
    Reasoning,
    Status,
    StatusSource,
    Text,
    ToolCall,
    Usage,
)

if TYPE_CHECKING:
    from tracetui.formats.copilot.session import Row, Session

PAUSED: Final = Status.PAUSED
OTHER: Final = Operation.OTHER
NAMELESS: Final = "?"
"""The kind of an event that has none."""
ABORT: Final = "abort"
CONTINUES: Final = re.compile(r"session\.resume|(?:user|assistant|tool|subagent)\..+")
"""Events after which a session that was shut down is active again."""
_SESSION: Final = (
    "start resume remote_steerable_changed error idle title_changed schedule_created schedule_cancelled "
    "schedule_rearmed autopilot_objective_changed info warning model_change mode_changed mode_notice_delivered "
    "session_limits_changed permissions_changed plan_changed todos_changed workspace_file_changed handoff truncation "
    "snapshot_rewind shutdown usage_checkpoint usage_record usage_info context_changed context_cleared "
    "compaction_start compaction_complete task_complete auto_mode_resolved managed_settings_resolved "
    "managed_settings_enforced tools_updated background_tasks_changed skills_loaded custom_agents_updated "
    "custom_notification mcp_servers_loaded mcp_server_status_changed extensions_loaded binary_asset canvas.opened "
    "canvas.closed canvas.recorded canvas.removed canvas.unavailable canvas.registry_changed "
    "extensions.attachments_pushed fusion_route_started fusion_route_failed fusion_resolved fusion_completed"
)
_OTHERS: Final = {
    "assistant": "turn_start turn_end message message_start message_delta streaming_delta tool_call_delta intent "
    "reasoning reasoning_delta usage idle server_tool_progress fusion_phase_started fusion_phase_completed "
    "fusion_phase_failed",
    "tool": "user_requested execution_start execution_partial_result execution_progress execution_complete",
    "subagent": "started configured completed failed selected deselected",
    "hook": "start end progress",
    "system": "message notification",
    "user": "message",
    "model": "call_failure call_finished model_call_failure",
    "permission": "requested completed",
    "user_input": "requested completed",
    "elicitation": "requested completed",
    "sampling": "requested completed",
    "external_tool": "requested completed",
    "exit_plan_mode": "requested completed",
    "auto_mode_switch": "requested completed",
    "session_limits_exhausted": "requested completed",
    "mcp": "oauth_required oauth_completed headers_refresh_required headers_refresh_completed tools.list_changed "
    "resources.list_changed prompts.list_changed",
    "command": "queued execute completed",
    "factory": "run_updated run_started run_settled",
    "skill": "invoked",
    "tool_search": "activated",
    "commands": "changed",
    "capabilities": "changed",
    "pending_messages": "modified",
    "ui": "ephemeral_query",
    "mcp_app": "tool_call_complete",
}
KINDS: Final = frozenset(
    {f"{group}.{name}" for group, names in {"session": _SESSION, **_OTHERS}.items() for name in names.split()} | {ABORT}
)
"""All kinds of the published schema, whether or not they are written to the file."""
_QUIET: Final = frozenset({"stop", "tool_calls", "end_turn", "tool_use", "stop_sequence"})
"""Finish reasons that are not worth a note."""
_CUT: Final = frozenset({"length", "content_filter", "max_tokens", "refusal"})
"""Finish reasons of incomplete responses."""
_DECLINED: Final = frozenset({"rejected", "denied"})
"""Error codes of calls that the user or a policy did not allow."""
_TEXTS: Final = ("message", "content", "summary", "intent", "title", "name", "reason", "error", "path")
"""Fields that describe an event in one line."""
_ENVELOPE: Final = "ephemeral id parentId"
_COMMON: Final = "interactionId turnId"
"""Known fields of every event and of all data."""


class Content(Struct):
    """What a body shows apart from the attributes."""

    parts: list[Part] = []
    input: Any = None
    output: Any = None
    role: str = "user"
    finish_reason: str | None = None


# ---- what any event may hold


class Data(Struct, gc=False, rename="camel"):
    """The field ``data`` of events: how it changes the session, and what the body of its row shows."""

    kinds: ClassVar = ""
    """Kinds of events that have this data, between blanks."""
    known: ClassVar[str | None] = None
    """Further fields, where all are known: others are counted."""

    parent_tool_call_id: str | None = None
    """The only link of an event to its sub-agent in old versions."""

    def agent_call_id(self) -> str | None:
        """Id of the call that began the sub-agent of this event."""
        return self.parent_tool_call_id

    def preview(self) -> str:
        """The event in one line."""
        texts = (getattr(self, name, None) for name in _TEXTS)
        return next((text.strip()[:PREVIEW] for text in texts if isinstance(text, str) and text), "")

    def take(self, session: Session) -> None:
        """Add the event to the session; most events have a row of their own."""
        session.row()

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        """Move from `fields`, which are those of the data, to `content` what it shows."""


class Event(Struct, gc=False, rename="camel"):
    """A line. There is a subclass of each known kind."""

    timestamp: str | None = None
    agent_id: str | None = None
    data: Data = field(default_factory=Data)


class PlainData(Data):
    """Data of all other kinds."""

    message: Any = None
    content: Any = None
    summary: Any = None
    intent: Any = None
    title: Any = None
    name: Any = None
    reason: Any = None
    error: Any = None
    path: Any = None


class Other(Event):
    """An event of an unknown kind."""

    type: str | Loose = None
    data: PlainData = field(default_factory=PlainData)


def kind_of(event: Event) -> str:
    """The kind of an event, ``?`` where it has none."""
    kind = event.type if isinstance(event, Other) else tag_of(event)
    return kind if isinstance(kind, str) and kind else NAMELESS


# ---- the session as a whole


class Context(Struct, gc=False):
    cwd: str | None = None
    branch: str | None = None


class Start(Data):
    kinds: ClassVar = "session.start"
    known: ClassVar = "alreadyInUse contextTier producer reasoningEffort remoteSteerable version"
    session_id: str | None = None
    start_time: str | None = None
    copilot_version: str | None = None
    selected_model: str | None = None
    context: Context | Loose = None
    detached_from_spawning_parent_session_id: str | None = None

    def take(self, session: Session) -> None:
        session.use_model(self.selected_model)
        if session.start is not None or session.conversation is not session.main:
            session.row()
            return
        session.start, session.extent, session.head = self, session.line.byte_range, session.line.data


class Resume(Data):
    kinds: ClassVar = "session.resume"
    known: ClassVar = "alreadyInUse context eventCount remoteSteerable resumeTime"
    selected_model: str | None = None

    def take(self, session: Session) -> None:
        session.close_all()
        session.use_model(self.selected_model)
        session.row()


class ModelChange(Data):
    kinds: ClassVar = "session.model_change"
    known: ClassVar = "contextTier reasoningEffort source"
    previous_model: str | None = None
    new_model: str | None = None

    def preview(self) -> str:
        before, after = self.previous_model, self.new_model
        return (f"{before} → {after}" if before and after else after or "")[:PREVIEW]

    def take(self, session: Session) -> None:
        session.use_model(self.new_model)
        session.row()


class Shutdown(Data):
    """The session ended; it may be resumed."""

    kinds: ClassVar = "session.shutdown"
    known: ClassVar = (
        "agentMetrics codeChanges conversationTokens currentTokens eventsFileSizeBytes providerModelMetrics "
        "sessionStartTime systemTokens toolDefinitionsTokens totalNanoAiu totalPremiumRequests "
        "usageAccountingWatermarks"
    )
    shutdown_type: str | None = None
    error_reason: str | None = None
    current_model: str | None = None
    total_api_duration_ms: Finite | None = None
    model_metrics: Any = None
    accounting_snapshot: Any = None
    token_details: Any = None

    def preview(self) -> str:
        return (self.shutdown_type or "")[:PREVIEW]

    def take(self, session: Session) -> None:
        session.close_all()
        session.ledger.shut_down(
            self.model_metrics, self.accounting_snapshot, self.token_details, self.total_api_duration_ms
        )
        session.end = self
        session.use_model(self.current_model)
        if self.shutdown_type != "error":
            session.row()
            return
        error = Error((self.error_reason or "crashed")[:MESSAGE_LIMIT])
        session.fail(session.main, session.row(OTHER), error)


class Info(Data):
    kinds: ClassVar = "session.info"
    known: ClassVar = "infoType"
    message: Any = None


class Notification(Data):
    kinds: ClassVar = "system.notification"
    known: ClassVar = "kind"
    content: Any = None


class Truncation(Data):
    kinds: ClassVar = "session.truncation"
    known: ClassVar = (
        "droppedTokens messagesRemovedDuringTruncation performedBy postTruncationMessagesLength "
        "preTruncationMessagesLength reason tokenLimit tokensRemovedDuringTruncation"
    )
    pre_truncation_tokens_in_messages: Finite | None = None
    post_truncation_tokens_in_messages: Finite | None = None

    def preview(self) -> str:
        return _change_of_tokens(self.pre_truncation_tokens_in_messages, self.post_truncation_tokens_in_messages)


class PermissionsChanged(Data):
    kinds: ClassVar = "session.permissions_changed"
    mode: Any = None
    allow_all_permission_mode: Any = UNSET

    def preview(self) -> str:
        given = self.allow_all_permission_mode
        mode = self.mode if given is UNSET else given
        return f"allow all: {mode}"[:PREVIEW] if isinstance(mode, str) else ""


# ---- errors


class Fault(Data):
    """An error; versions differ in the names of its fields."""

    error_type: str | None = None
    error_code: str | None = None
    failure_kind: str | None = None
    code: str | None = None
    message: str | None = None
    error_message: str | None = None

    @property
    def error(self) -> Error:
        kind = self.error_type or self.error_code or self.failure_kind or self.code or None
        message = (self.message or self.error_message or "").strip()
        return Error((message or kind or "error")[:MESSAGE_LIMIT], kind and kind[:PREVIEW])


class SessionError(Fault):
    """Something failed that is no call of a tool."""

    kinds: ClassVar = "session.error"
    known: ClassVar = "providerCallId serviceRequestId stack statusCode"

    def take(self, session: Session) -> None:
        session.fail(session.conversation, session.row(OTHER), self.error)


class CallFailure(Fault):
    """A call of the model failed, and may be tried again."""

    kinds: ClassVar = "model.call_failure"

    def take(self, session: Session) -> None:
        row, error = session.row(OTHER), self.error
        row.fail(error)
        row.preview = error.message[:PREVIEW]


class Abort(Data):
    """The model was stopped: its open calls and its turn are cancelled."""

    kinds: ClassVar = ABORT
    known: ClassVar = ""
    reason: str | None = None

    def take(self, session: Session) -> None:
        conversation, reason = session.conversation, (self.reason or "aborted")[:PREVIEW]
        session.settle(conversation, CANCELLED, EXPLICIT)
        row = session.row(OTHER)
        row.preview, row.status, row.source = reason, CANCELLED, EXPLICIT
        if (turn := conversation.turn) is not None:
            turn.status, turn.source, turn.status_word = CANCELLED, EXPLICIT, reason
            session.emit(turn)
        conversation.resume()
        conversation.stopped = reason
        session.has_outcome = session.has_outcome or conversation is session.main


# ---- messages and responses


class UserMessage(Data):
    """A prompt, or what the program adds to the conversation."""

    kinds: ClassVar = "user.message"
    known: ClassVar = "delivery messageId parentAgentTaskId supportedNativeDocumentMimeTypes transformedContent"
    content: str | None = None
    source: str | None = None
    role: str | None = None
    attachments: Raw = NULL

    @property
    def author(self) -> str:
        """The role of the message."""
        return "user"

    def take(self, session: Session) -> None:
        conversation, text, author = session.conversation, self.content or "", self.author
        is_main = conversation is session.main
        is_prompt = author == "user" and self.source in (None, "", "user")
        if author == "user" and conversation.implicit:
            session.close(conversation)
        row = session.new("meta" if author == "user" and is_main and not is_prompt else author, MESSAGE)
        row.status, row.source, row.preview = OK, DERIVED, text.strip()[:PREVIEW]
        if not is_main:
            return
        row.note = (self.source or "")[:PREVIEW]
        if author == "system" and session.system_prompt is None:
            session.system_prompt = text
        if is_prompt:
            conversation.resume()
            session.prompted(text)

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        content.role = self.author
        if self.content is not None:
            content.input = fields.pop("content") or None
            content.parts.append(Text(self.content))
        if isinstance(attached := plain(self.attachments), list):
            del fields["attachments"]
            content.parts += [Blob(word(mapping(one).get("type")) or "attachment", one) for one in attached]
        if self.role == content.role:
            del fields["role"]


class SystemMessage(UserMessage):
    """A message of the program to the model."""

    kinds: ClassVar = "system.message"
    known: ClassVar = "metadata"

    @property
    def author(self) -> str:
        return self.role or "system"


class Request(Struct, gc=False, rename="camel"):
    """A call that a response asks for."""

    tool_call_id: str | None = None
    name: str | None = None
    arguments: Raw = NULL


class Response(Data):
    """A response, or a piece of one."""

    kinds: ClassVar = "assistant.message"
    known: ClassVar = (
        "chunkCount chunkIndex clientRequestId encryptedContent messageId originatingMessageId reasoningOpaque "
        "requestId rte serviceRequestId"
    )
    content: str | None = None
    reasoning_text: str | None = None
    api_call_id: str | None = None
    model: str | None = None
    output_tokens: Finite | None = None
    tool_requests: list[Request] | None = None

    def take(self, session: Session) -> None:
        conversation, text, call = session.conversation, self.content or "", self.api_call_id or None
        session.use_model(self.model)
        joins = conversation.is_of(call, otherwise=not conversation.has_message)
        row = session.respond(call, text.strip() or (self.reasoning_text or "").strip(), joins=joins, is_message=True)
        conversation.resume()
        turn = conversation.turn
        if turn is not None and not turn.preview and row.preview:
            turn.preview = row.preview
            session.emit(turn)
        if conversation is session.main:
            session.has_outcome = True
            session.last_assistant = text or session.last_assistant
        output = as_count(self.output_tokens)
        if output is not None and not conversation.has_record:
            before = None if row.usage is None else row.usage.output_tokens
            if before is None or output > before:
                session.ledger.add_message(Usage(output_tokens=output - (before or 0)))
                row.usage = Usage(output_tokens=output)
        for request in self.tool_requests or ():
            session.request_call(request.tool_call_id, request.name or "tool", request.arguments, row)

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        if self.reasoning_text is not None:
            del fields["reasoningText"]
            content.parts += [Reasoning(self.reasoning_text)] if self.reasoning_text else []
        if self.content is not None:
            del fields["content"]
            content.parts += [Text(self.content)] if self.content else []
        if self.tool_requests is None:
            return
        for index, (request, given) in enumerate(zip(self.tool_requests, fields.pop("toolRequests"), strict=True)):
            if isinstance(given, dict):
                call = ToolCall(request.tool_call_id or None, request.name or "", arguments_in(request.arguments))
                content.parts.append(call)
                given = without(given, "arguments")
            if given != {}:
                fields[f"toolRequests[{index}]"] = given


class Thought(Data):
    """Reasoning with an event of its own; its message comes after it."""

    kinds: ClassVar = "assistant.reasoning"
    known: ClassVar = "reasoningId"
    content: str | None = None

    def take(self, session: Session) -> None:
        conversation = session.conversation
        joins = conversation.response is not None and not conversation.has_message
        session.respond(None, (self.content or "").strip(), joins=joins)

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        if self.content is not None:
            content.parts.append(Reasoning(fields.pop("content")))


class Tokens(Data):
    """Tokens of one call, or of several; some versions write them as floats."""

    input_tokens: Finite | None = None
    output_tokens: Finite | None = None
    cache_read_tokens: Finite | None = None
    cache_write_tokens: Finite | None = None
    reasoning_tokens: Finite | None = None

    def counts(self) -> Usage:
        """Input includes what was read from and written to the cache, output includes reasoning."""
        return Usage(
            as_count(self.input_tokens),
            as_count(self.output_tokens),
            None,
            as_count(self.cache_read_tokens),
            as_count(self.cache_write_tokens),
            as_count(self.reasoning_tokens),
        )


class Account(Struct, gc=False, rename="camel"):
    """Which session paid for a call, and the number that the call has there."""

    source_session_id: str | None = None
    sequence: Finite | None = None


class CallUsage(Tokens):
    """What a call of the model used."""

    model: str | None = None
    api_call_id: str | None = None
    cost: Finite | None = None
    """Premium requests."""
    duration: Finite | None = None
    """Milliseconds."""
    finish_reason: str | None = None
    interaction_type: str | None = None
    accounting: Account | Loose = None

    @property
    def key(self) -> tuple[str, int] | None:
        """What identifies the record: a resumed session may repeat it."""
        account = self.accounting
        if not isinstance(account, Account) or account.source_session_id is None:
            return None
        number = as_count(account.sequence)
        return None if number is None else (account.source_session_id, number)


class UsageRecord(CallUsage):
    """The usage of a call. Old versions, in ``assistant.usage``, have its fields in place of `usage`."""

    kinds: ClassVar = "session.usage_record"
    known: ClassVar[str | None] = ""
    usage: CallUsage | Loose = None

    @property
    def call(self) -> CallUsage:
        return self.usage if isinstance(self.usage, CallUsage) else self

    def take(self, session: Session) -> None:
        conversation, call = session.conversation, self.call
        ident, usage = call.api_call_id or None, call.counts()
        session.use_model(call.model)
        joins = conversation.is_of(ident, otherwise=not conversation.has_record)
        if session.is_counted(call) or (joins and conversation.has_record):
            session.row().preview = "counted before"
            return
        session.ledger.add_record(call, usage)
        if joins and conversation.response is not None and conversation.response.usage is not None:
            session.ledger.remove_message(conversation.response.usage)
        is_compaction = not joins and "compaction" in (call.interaction_type or "")
        compaction = session.pairs.get(f"compaction {conversation.key}") if is_compaction else None
        if compaction is not None:
            session.join(compaction)
            compaction.usage = usage or None
            return
        row = session.respond(ident, "", joins=joins, is_record=True)
        conversation.has_record = True
        row.usage, row.duration_ms = usage or None, None
        if call.duration is not None and call.duration >= 0:
            row.duration_ms = call.duration
            if session.time is not None:
                row.started_at = session.time - call.duration / 1000
        if reason := call.finish_reason:
            row.status_word = reason
            if reason in _CUT:
                row.fail(Error(f"stopped: {reason}", reason))
            else:
                row.status_word = reason[:PREVIEW]
                row.note = "" if reason in _QUIET else reason[:PREVIEW]

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        content.finish_reason = self.call.finish_reason or content.finish_reason


class OldUsageRecord(UsageRecord):
    kinds: ClassVar = "assistant.usage"
    known: ClassVar = None


class TurnStart(Data):
    """A turn of a conversation: a response and its calls."""

    kinds: ClassVar = "assistant.turn_start"
    known: ClassVar = "model"

    def take(self, session: Session) -> None:
        session.open_turn()


class TurnEnd(Data):
    kinds: ClassVar = "assistant.turn_end"
    known: ClassVar = "model"

    def take(self, session: Session) -> None:
        conversation = session.conversation
        if (turn := conversation.turn) is None:
            session.row()
            return
        session.end_row(turn)
        turn.status, turn.source = OK, DERIVED
        if conversation.stopped is not None:
            turn.status, turn.source, turn.status_word = CANCELLED, EXPLICIT, conversation.stopped
        elif conversation.failure is not None:
            turn.fail(conversation.failure)
        conversation.end_turn()


# ---- calls of tools


class CallData(Data):
    tool_call_id: str | None = None
    tool_name: str | None = None
    arguments: Raw = NULL


class CallStart(CallData):
    kinds: ClassVar = "tool.execution_start"
    known: ClassVar[str | None] = "model rte shellToolInfo toolTitle"

    def take(self, session: Session) -> None:
        session.begin_call(self.tool_call_id or None, self.tool_name or "tool", self.arguments)

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        fields.pop("arguments", None)
        content.input = arguments_in(self.arguments)


class UserCall(CallStart):
    """A call of the user: requested, then begun."""

    kinds: ClassVar = "tool.user_requested"
    known: ClassVar = None


class Progress(CallData):
    """Output of a call that runs."""

    kinds: ClassVar = "tool.execution_progress tool.execution_partial_result"

    def take(self, session: Session) -> None:
        call = session.calls.get(self.tool_call_id or "")
        if call is None or call.row is None:
            session.row()
        else:
            session.join(call.row)


class Result(Struct, gc=False):
    content: Raw = NULL


class Shell(Struct, gc=False, rename="camel"):
    exit_code: Finite | None = None


class Metrics(Struct, gc=False):
    exit_code: Finite | None = None


class Telemetry(Struct, gc=False):
    metrics: Metrics | Loose = None


class CallEnd(Data):
    """The result of a call."""

    kinds: ClassVar = "tool.execution_complete"
    known: ClassVar = "isUserRequested rte"
    tool_call_id: str | None = None
    tool_name: str | None = None
    model: str | None = None
    success: bool | None = None
    error: Fault | Loose = None
    result: Result | Loose = None
    shell_execution: Shell | Loose = None
    tool_telemetry: Telemetry | Loose = None

    @property
    def text(self) -> str:
        """The answer of the tool."""
        content = plain(self.result.content) if isinstance(self.result, Result) else None
        return content if isinstance(content, str) else ""

    @property
    def exit_code(self) -> int | None:
        """The exit code of the command that the call ran."""
        code = self.shell_execution.exit_code if isinstance(self.shell_execution, Shell) else None
        if code is None and isinstance(self.tool_telemetry, Telemetry):
            metrics = self.tool_telemetry.metrics
            code = metrics.exit_code if isinstance(metrics, Metrics) else None
        return int(code) if code is not None and code.is_integer() and abs(code) < 1 << 32 else None

    def outcome(self) -> tuple[Status, StatusSource, str | None, Error | None]:
        """How the call ended: `success` decides, but the command of a successful call may have failed."""
        error = self.error.error if isinstance(self.error, Fault) else None
        if self.success is False or (self.success is not True and error is not None):
            if error is not None and error.type in _DECLINED:
                return CANCELLED, EXPLICIT, error.type, None
            message = self.error if isinstance(self.error, str) else ""
            return ERROR, EXPLICIT, None, error or Error((message or self.text or "failed")[:MESSAGE_LIMIT])
        code = self.exit_code
        if code:
            kind = f"exit {code}"
            return ERROR, EXIT, None, Error(self.text.strip()[:MESSAGE_LIMIT] or kind, kind)
        return OK, EXIT if code == 0 else EXPLICIT if self.success is True else DERIVED, None, None

    def take(self, session: Session) -> None:
        session.use_model(self.model)
        row = session.end_call(self.tool_call_id or None)
        if row is None:
            row = session.new(self.tool_name or "tool", EXECUTE_TOOL)
            row.preview = self.text[:PREVIEW]
        row.status, row.source, row.status_word, row.error = self.outcome()

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        content.output = result = fields.pop("result", None)
        if isinstance(result, dict) and "content" in result:
            content.output = result["content"]
            if rest := without(result, "content"):
                fields["result"] = rest


# ---- sub-agents


class AgentData(Data):
    """Data of an event about a sub-agent itself."""

    tool_call_id: str | None = None
    agent_name: str | None = None
    agent_display_name: str | None = None
    agent_description: str | None = None
    model: str | None = None
    cancelled: bool | None = None
    duration_ms: Finite | None = None
    total_tokens: Finite | None = None
    error: str | Loose = None

    def agent_call_id(self) -> str | None:
        return self.parent_tool_call_id or self.tool_call_id

    def take(self, session: Session) -> None:
        agent = session.conversation.agent
        if agent is None:
            session.row()
            return
        if agent.at.lines != session.packed:
            session.join(agent)
        self.update(session, agent)
        session.use_model(self.model)

    def update(self, session: Session, agent: Row) -> None:
        """Update the row of the sub-agent."""


class AgentConfigured(AgentData):
    kinds: ClassVar = "subagent.configured"
    known: ClassVar = "multiTurn"


class AgentStart(AgentData):
    kinds: ClassVar = "subagent.started"
    known: ClassVar = "agentType executionMode modelSelectionSource resumable taskModelSource"

    def update(self, session: Session, agent: Row) -> None:
        display_name = self.agent_display_name or ""
        name = self.agent_name or display_name or agent.name
        agent.name, agent.note = name[:PREVIEW], display_name[:PREVIEW] if display_name != name else ""
        agent.preview = (self.agent_description or display_name)[:PREVIEW]
        agent.status, agent.source, agent.status_word = RUNNING, DERIVED, None
        agent.error = agent.duration_ms = None
        session.put_below_call(agent, self.tool_call_id)


class AgentEnd(AgentData):
    kinds: ClassVar = "subagent.completed"
    known: ClassVar[str | None] = "firstDispatchedModel modelSelectionSource totalToolCalls"

    def update(self, session: Session, agent: Row) -> None:
        tokens = as_count(self.total_tokens)
        session.close(session.conversation)
        agent.status, agent.source, agent.error = CANCELLED if self.cancelled else OK, EXPLICIT, None
        if self.duration_ms is not None and self.duration_ms >= 0:
            agent.duration_ms = self.duration_ms
        if tokens is not None:
            agent.usage = Usage(total_tokens=tokens)


class AgentFailure(AgentEnd):
    kinds: ClassVar = "subagent.failed"
    known: ClassVar = None

    def update(self, session: Session, agent: Row) -> None:
        super().update(session, agent)
        message = self.error if isinstance(self.error, str) else ""
        agent.fail(Error((message or "failed")[:MESSAGE_LIMIT]))


# ---- what begins in one event and ends in another


class Pair(Data):
    """The begin or the end of something that has an event for both."""

    success: bool | None = None
    error: Any = None

    def key(self, session: Session) -> str:
        """What the begin and the end have in common."""
        raise NotImplementedError

    def new(self, session: Session) -> Row:
        """A row without a status."""
        raise NotImplementedError

    def begin(self, row: Row) -> None:
        """Update the row with the begin."""
        row.status, row.source = RUNNING, DERIVED

    def end(self, session: Session, row: Row) -> None:
        """Update the row with the end."""
        row.status, row.source = OK, EXPLICIT if self.success else DERIVED
        error = self.error
        if self.success is False or error:
            message = error.get("message") if isinstance(error, dict) else error
            row.fail(Error((message if isinstance(message, str) and message else "failed")[:MESSAGE_LIMIT]))

    def take(self, session: Session) -> None:
        """Begin a row, join the one that was begun, or end it; an end without a begin has a row of its own."""
        key = self.key(session)
        row = session.pairs.get(key)
        if kind_of(session.event).endswith((".end", "completed", "complete")):
            session.pairs.pop(key, None)
            if row is None:
                row = self.new(session)
            else:
                session.end_row(row)
            self.end(session, row)
        elif row is not None:
            session.join(row)
        else:
            session.pairs[key] = row = self.new(session)
            self.begin(row)


class HookInput(Struct, gc=False, rename="camel"):
    tool_name: str | None = None


class Hook(Pair):
    kinds: ClassVar = "hook.progress hook.end"
    hook_invocation_id: str | None = None
    hook_type: str | None = None
    input: HookInput | Loose = None

    def key(self, session: Session) -> str:
        return f"hook {self.hook_invocation_id or ''}"

    def new(self, session: Session) -> Row:
        return session.new(self.hook_type or "hook", HOOK)

    def begin(self, row: Row) -> None:
        super().begin(row)
        row.preview = ((self.input.tool_name or "") if isinstance(self.input, HookInput) else "")[:PREVIEW]


class HookStart(Hook):
    kinds: ClassVar = "hook.start"
    known: ClassVar = "trigger"


class PermissionRequest(Struct, gc=False, rename="camel"):
    full_command_text: str | None = None
    path: str | None = None
    file_name: str | None = None
    url: str | None = None
    tool_name: str | None = None
    intention: str | None = None
    kind: str | None = None
    tool_call_id: str | None = None

    def preview(self) -> str:
        """The request in one line."""
        first = self.full_command_text or self.path or self.file_name or self.url
        return (first or self.tool_name or self.intention or self.kind or "")[:PREVIEW]


class Decision(Struct, gc=False):
    kind: str | None = None


class Permission(Pair):
    kinds: ClassVar = "permission.requested permission.completed"
    request_id: str | None = None
    tool_call_id: str | None = None
    permission_request: PermissionRequest | Loose = None
    result: Decision | Loose = None

    def key(self, session: Session) -> str:
        return f"permission {self.request_id or ''}"

    def new(self, session: Session) -> Row:
        row, request = session.new("permission", Operation.POLICY), self.permission_request
        ident = (request.tool_call_id if isinstance(request, PermissionRequest) else None) or self.tool_call_id
        call = session.calls.get(ident or "")
        if call is not None and call.row is not None:
            row.parent_id, row.step = call.row.id, call.row.step
        return row

    def begin(self, row: Row) -> None:
        request = self.permission_request
        row.preview = request.preview() if isinstance(request, PermissionRequest) else ""
        row.status, row.source = PAUSED, DERIVED

    def end(self, session: Session, row: Row) -> None:
        """Set the status; a refusal is no failure."""
        decision = self.result.kind if isinstance(self.result, Decision) else None
        row.status, row.source = OK, DERIVED
        if decision:
            refused = decision.startswith(("denied", "cancelled", "rejected"))
            row.status, row.source = CANCELLED if refused else OK, EXPLICIT
            row.status_word, row.note = decision, decision[:PREVIEW]


class Compaction(Pair):
    """The conversation so far is replaced by a summary of it: one at a time in each conversation."""

    kinds: ClassVar = "session.compaction_start session.compaction_complete"
    trigger: str | None = None
    pre_compaction_tokens: Finite | None = None
    post_compaction_tokens: Finite | None = None
    compaction_tokens_used: Tokens | Loose = None

    def key(self, session: Session) -> str:
        return f"compaction {session.conversation.key}"

    def new(self, session: Session) -> Row:
        row = session.new("compaction", OTHER)
        row.note = (self.trigger or "")[:PREVIEW]
        return row

    def end(self, session: Session, row: Row) -> None:
        super().end(session, row)
        row.preview = _change_of_tokens(self.pre_compaction_tokens, self.post_compaction_tokens)
        row.note = (self.trigger or row.note)[:PREVIEW]
        used = self.compaction_tokens_used
        usage = used.counts() if isinstance(used, Tokens) else None
        if usage and not session.ledger.open.calls:  # else it has a record of its own
            session.ledger.add_message(usage)
            row.usage = usage


# ---- the schema


_DATA: Final = (
    Start, Resume, ModelChange, Shutdown, Info, Notification, Truncation, PermissionsChanged, SessionError, CallFailure,
    Abort, UserMessage, SystemMessage, Response, Thought, UsageRecord, OldUsageRecord, TurnStart, TurnEnd, CallStart,
    UserCall, Progress, CallEnd, AgentConfigured, AgentStart, AgentEnd, AgentFailure, Hook, HookStart, Permission,
    Compaction,
)  # fmt: skip


def _event_of(kind: str, data: type[Data]) -> Any:
    """The Struct of events of one kind."""
    known = None
    if data.known is not None:
        namespace = {"known": f"{data.known} {_COMMON}", "counted_as": kind}
        known, data = _ENVELOPE, _struct(data.__name__, [], data, namespace)
    return _struct("Event", [("data", data, field(default_factory=data))], Event, {"known": known}, kind)


def _struct(name: str, fields: list[Any], base: type[Struct], namespace: dict[str, Any], tag: str | None = None) -> Any:
    tag_field = None if tag is None else "type"
    return defstruct(name, fields, bases=(base,), namespace=namespace, tag_field=tag_field, tag=tag, gc=False)


_TYPES: Final = {kind: data for data in _DATA for kind in data.kinds.split()}
SCHEMA: Final = Schema[Any](
    reduce(or_, [_event_of(kind, _TYPES.get(kind, PlainData)) for kind in sorted(KINDS)]), Other
)


# ---- helpers


def as_count(value: float | None) -> int | None:
    """`value` if it is a whole number of at most 53 bits that counts something."""
    return int(value) if value is not None and 0 <= value < 1 << 53 and value == int(value) else None


def arguments_in(given: Raw) -> Any:
    """The arguments of a call; some versions write them as JSON inside a text."""
    found = plain(given)
    return decode_value(found) if isinstance(found, str) else found


def call_preview(given: Raw) -> str:
    """The most telling argument of a call."""
    return preview_of(given) if memoryview(given)[0] != ord('"') else argument(arguments_in(given))


def _change_of_tokens(before: float | None, after: float | None) -> str:
    """``150000 → 20000 tokens``, as far as it is known."""
    counts = [str(count) for count in (as_count(before), as_count(after)) if count is not None]
    return f"{' → '.join(counts)} tokens" if counts else ""
