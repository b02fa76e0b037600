"""Events of a Copilot session: what each kind says, and what it means. One JSON object a line,
``{"type", "data", "id", "timestamp", "parentId", "agentId"?}``.

Facts: files of version 1.0.102, public ones of 0.0.420 to 1.0.77, and the schema of events that GitHub's own SDK
publishes. `parentId` is the event before, not what an event is within.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct, field

from tracetui.formats.agent_log import (
    CANCELLED,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXIT,
    EXPLICIT,
    MESSAGE,
    OK,
    RUNNING,
)
from tracetui.formats.calls import argument, preview_of
from tracetui.formats.copilot.usage import Spent, Tokens, whole
from tracetui.formats.decode import decode_value
from tracetui.formats.schema import NULL, Finite, Loose, Schema, plain, tag_of
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Operation, Status, StatusSource, Usage

if TYPE_CHECKING:
    from tracetui.formats.copilot.session import Mark, Row, Session

PAUSED: Final = Status.PAUSED
OTHER: Final = Operation.OTHER
NAMELESS: Final = "?"
"""The kind of an event that does not say any."""
ABORT: Final = "abort"
GOES_ON: Final = re.compile(r"session\.resume|(?:user|assistant|tool|subagent)\..+")
"""Events after which a session that was shut down goes on."""
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
"""Kinds of events that are known, of those that are written and those that are not said to be."""
_QUIET: Final = frozenset({"stop", "tool_calls", "end_turn", "tool_use", "stop_sequence"})
"""Why a response ended, where that goes without saying."""
_CUT: Final = frozenset({"length", "content_filter", "max_tokens", "refusal"})
"""Why a response ended before it was whole."""
_DECLINED: Final = frozenset({"rejected", "denied"})
"""Error codes of calls that somebody did not allow."""
_TEXTS: Final = ("message", "content", "summary", "intent", "title", "name", "reason", "error", "new_model", "path")
"""Fields that say in one line what an event is about."""


# ---- what any event may hold


class Data(Struct, gc=False, rename="camel"):
    """What an event says. Fields of data that have `known` are counted under the kind `counted_as`."""

    parent_tool_call_id: str | None = None
    """Events of sub-agents of old versions have nothing else that tells whose they are."""


class AnyEvent(Struct, gc=False, rename="camel"):
    """What every event has."""

    timestamp: str | None = None
    agent_id: str | None = None
    data: Data = field(default_factory=Data)

    @property
    def call_id(self) -> str | None:
        """Id of the call that began the sub-agent that the event belongs to, where the event says it."""
        return self.data.parent_tool_call_id or None

    def preview(self) -> str:
        """The event in one line."""
        texts = (getattr(self.data, name, None) for name in _TEXTS)
        return next((text.strip()[:PREVIEW] for text in texts if isinstance(text, str) and text), "")

    def take(self, session: Session, mark: Mark) -> None:
        """Add what the event means to the session; most events stand for themselves."""
        session.row(mark)


class Event(AnyEvent, tag_field="type"):
    """An event of a kind of which all fields are known: others are counted."""

    known: ClassVar[str | None] = "ephemeral id parentId"


class PlainData(Data):
    """What is shown in one line of events that stand for themselves."""

    message: Any = None
    content: Any = None
    summary: Any = None
    intent: Any = None
    title: Any = None
    name: Any = None
    reason: Any = None
    error: Any = None
    path: Any = None


class Plain(Event):
    """An event that stands for itself, of a kind of which too little is known."""

    known: ClassVar = None
    data: PlainData = field(default_factory=PlainData)


class Other(AnyEvent):
    """An event of an unknown kind."""

    type: str | Loose = None
    data: PlainData = field(default_factory=PlainData)


# ---- the session as a whole


class Context(Struct, gc=False):
    cwd: str | None = None
    branch: str | None = None


class StartData(Data):
    counted_as: ClassVar = "session.start"
    known: ClassVar = "alreadyInUse contextTier interactionId producer reasoningEffort remoteSteerable turnId version"
    session_id: str | None = None
    start_time: str | None = None
    copilot_version: str | None = None
    selected_model: str | None = None
    context: Context | Loose = None
    detached_from_spawning_parent_session_id: str | None = None


class Start(Event, tag="session.start"):
    data: StartData = field(default_factory=StartData)

    def take(self, session: Session, mark: Mark) -> None:
        session.use_model(mark.talk, self.data.selected_model)
        if session.start is not None or mark.talk is not session.main:
            session.row(mark)
            return
        session.start, session.extent, session.head = self.data, mark.line.place, mark.line.data


class ResumeData(Data):
    counted_as: ClassVar = "session.resume"
    known: ClassVar = "alreadyInUse context eventCount interactionId remoteSteerable resumeTime turnId"
    selected_model: str | None = None


class Resume(Event, tag="session.resume"):
    data: ResumeData = field(default_factory=ResumeData)

    def take(self, session: Session, mark: Mark) -> None:
        session.leave_all()
        session.use_model(mark.talk, self.data.selected_model)
        session.row(mark)


class ModelData(Data):
    counted_as: ClassVar = "session.model_change"
    known: ClassVar = "contextTier interactionId reasoningEffort source turnId"
    previous_model: str | None = None
    new_model: str | None = None


class ModelChange(Event, tag="session.model_change"):
    data: ModelData = field(default_factory=ModelData)

    def preview(self) -> str:
        before, after = self.data.previous_model, self.data.new_model
        return (f"{before} → {after}" if before and after else after or "")[:PREVIEW]

    def take(self, session: Session, mark: Mark) -> None:
        session.use_model(mark.talk, self.data.new_model)
        session.row(mark)


class ShutdownData(Data):
    counted_as: ClassVar = "session.shutdown"
    known: ClassVar = (
        "agentMetrics codeChanges conversationTokens currentTokens eventsFileSizeBytes interactionId "
        "providerModelMetrics sessionStartTime systemTokens toolDefinitionsTokens totalNanoAiu totalPremiumRequests "
        "turnId usageAccountingWatermarks"
    )
    shutdown_type: str | None = None
    error_reason: str | None = None
    current_model: str | None = None
    total_api_duration_ms: Finite | None = None
    model_metrics: Any = None
    accounting_snapshot: Any = None
    token_details: Any = None


class Shutdown(Event, tag="session.shutdown"):
    """The session ended; it may be resumed."""

    data: ShutdownData = field(default_factory=ShutdownData)

    def preview(self) -> str:
        return (self.data.shutdown_type or "")[:PREVIEW]

    def take(self, session: Session, mark: Mark) -> None:
        data = self.data
        session.leave_all()
        session.ledger.shut(
            data.model_metrics, data.accounting_snapshot, data.token_details, data.total_api_duration_ms
        )
        session.end = data
        session.use_model(mark.talk, data.current_model)
        if data.shutdown_type != "error":
            session.row(mark)
            return
        error = Error((data.error_reason or "crashed")[:MESSAGE_LIMIT])
        session.failed(session.main, session.row(mark, OTHER), error)


class InfoData(Data):
    counted_as: ClassVar = "session.info"
    known: ClassVar = "infoType interactionId turnId"
    message: Any = None


class Info(Event, tag="session.info"):
    data: InfoData = field(default_factory=InfoData)


class NotificationData(Data):
    counted_as: ClassVar = "system.notification"
    known: ClassVar = "interactionId kind turnId"
    content: Any = None


class Notification(Event, tag="system.notification"):
    data: NotificationData = field(default_factory=NotificationData)


class TruncationData(Data):
    counted_as: ClassVar = "session.truncation"
    known: ClassVar = (
        "droppedTokens interactionId messagesRemovedDuringTruncation performedBy postTruncationMessagesLength "
        "preTruncationMessagesLength reason tokenLimit tokensRemovedDuringTruncation turnId"
    )
    pre_truncation_tokens_in_messages: Finite | None = None
    post_truncation_tokens_in_messages: Finite | None = None


class Truncation(Event, tag="session.truncation"):
    data: TruncationData = field(default_factory=TruncationData)

    def preview(self) -> str:
        return _fewer(self.data.pre_truncation_tokens_in_messages, self.data.post_truncation_tokens_in_messages)


class PermissionsData(Data):
    mode: Any = None
    allow_all_permission_mode: Any = msgspec.UNSET


class PermissionsChanged(Event, tag="session.permissions_changed"):
    known: ClassVar = None
    data: PermissionsData = field(default_factory=PermissionsData)

    def preview(self) -> str:
        given = self.data.allow_all_permission_mode
        mode = self.data.mode if given is msgspec.UNSET else given
        return f"allow all: {mode}"[:PREVIEW] if isinstance(mode, str) else ""


# ---- what went wrong


class Fault(Data):
    """What an error says about itself."""

    error_type: str | None = None
    error_code: str | None = None
    failure_kind: str | None = None
    code: str | None = None
    message: str | None = None
    error_message: str | None = None

    @property
    def error(self) -> Error:
        """The error, by its first name."""
        kind = self.error_type or self.error_code or self.failure_kind or self.code or None
        said = (self.message or self.error_message or "").strip()
        return Error((said or kind or "error")[:MESSAGE_LIMIT], kind and kind[:PREVIEW])


class ErrorData(Fault):
    counted_as: ClassVar = "session.error"
    known: ClassVar = "interactionId providerCallId serviceRequestId stack statusCode turnId"


class SessionError(Event, tag="session.error"):
    """Something went wrong that is no failed call of a tool."""

    data: ErrorData = field(default_factory=ErrorData)

    def take(self, session: Session, mark: Mark) -> None:
        session.failed(mark.talk, session.row(mark, OTHER), self.data.error)


class CallFailure(Event, tag="model.call_failure"):
    """A call of the model failed, and may be tried again."""

    known: ClassVar = None
    data: Fault = field(default_factory=Fault)

    def take(self, session: Session, mark: Mark) -> None:
        row, error = session.row(mark, OTHER), self.data.error
        row.fail(error)
        row.preview = error.message[:PREVIEW]


class AbortData(Data):
    counted_as: ClassVar = ABORT
    known: ClassVar = "interactionId turnId"
    reason: str | None = None


class Abort(Event, tag=ABORT):
    """Somebody stopped the model: what it was about is cancelled."""

    data: AbortData = field(default_factory=AbortData)

    def take(self, session: Session, mark: Mark) -> None:
        talk, reason = mark.talk, (self.data.reason or "aborted")[:PREVIEW]
        session.settle(talk, CANCELLED, EXPLICIT)
        row = session.row(mark, OTHER)
        row.preview, row.status, row.status_source = reason, CANCELLED, EXPLICIT
        if (turn := talk.turn) is not None:
            turn.status, turn.status_source, turn.status_word = CANCELLED, EXPLICIT, reason
            session.emit(turn)
        talk.went_on()
        talk.stopped = reason
        session.sure = session.sure or talk is session.main


# ---- messages and responses


class MessageData(Data):
    content: str | None = None
    source: str | None = None
    role: str | None = None


class UserData(MessageData):
    counted_as: ClassVar = "user.message"
    known: ClassVar = (
        "attachments delivery interactionId messageId parentAgentTaskId supportedNativeDocumentMimeTypes "
        "transformedContent turnId"
    )


class SystemData(MessageData):
    counted_as: ClassVar = "system.message"
    known: ClassVar = "interactionId metadata turnId"


class Heard(Event):
    """A message that came from outside: a prompt, or what the program puts into the conversation."""

    data: MessageData = field(default_factory=MessageData)

    @property
    def role(self) -> str:
        """Who speaks."""
        return "user"

    def take(self, session: Session, mark: Mark) -> None:
        data, talk, role = self.data, mark.talk, self.role
        said, source, is_main = data.content or "", data.source or None, talk is session.main
        typed = role == "user" and source in (None, "user")
        if role == "user" and talk.implicit:
            session.leave(talk)
        row = session.new(mark, "meta" if role == "user" and is_main and not typed else role, MESSAGE)
        row.status, row.status_source, row.preview = OK, DERIVED, said.strip()[:PREVIEW]
        if not is_main:
            return
        row.note = (source or "")[:PREVIEW]
        if role == "system" and session.system is None:
            session.system = said
        if typed:
            talk.went_on()
            session.asked(said)


class UserMessage(Heard, tag="user.message"):
    data: UserData = field(default_factory=UserData)


class SystemMessage(Heard, tag="system.message"):
    data: SystemData = field(default_factory=SystemData)

    @property
    def role(self) -> str:
        return self.data.role or "system"


class Request(Struct, gc=False, rename="camel"):
    """A call that a response asks for."""

    tool_call_id: str | None = None
    name: str | None = None
    arguments: Raw = NULL


class SaidData(Data):
    counted_as: ClassVar = "assistant.message"
    known: ClassVar = (
        "chunkCount chunkIndex clientRequestId encryptedContent interactionId messageId originatingMessageId "
        "reasoningOpaque requestId rte serviceRequestId turnId"
    )
    content: str | None = None
    reasoning_text: str | None = None
    api_call_id: str | None = None
    model: str | None = None
    output_tokens: Finite | None = None
    tool_requests: list[Request] | None = None


class Said(Event, tag="assistant.message"):
    """A response, or a piece of one."""

    data: SaidData = field(default_factory=SaidData)

    def take(self, session: Session, mark: Mark) -> None:
        data, talk = self.data, mark.talk
        said, call = data.content or "", data.api_call_id or None
        session.use_model(talk, data.model)
        shown = said.strip() or (data.reasoning_text or "").strip()
        row = session.respond(mark, call, shown, joins=talk.is_of(call, otherwise=not talk.spoke), spoke=True)
        talk.went_on()
        if (turn := talk.turn) is not None and not turn.preview and row.preview:
            turn.preview = row.preview
            session.emit(turn)
        if talk is session.main:
            session.sure = True
            session.last_assistant = said or session.last_assistant
        made = whole(data.output_tokens)
        if not talk.recorded and made is not None:
            before = row.usage.output_tokens if row.usage is not None else None
            if before is None or made > before:
                session.ledger.say(Usage(output_tokens=made - (before or 0)))
                row.usage = Usage(output_tokens=made)
        for request in data.tool_requests or ():
            session.ask(request.tool_call_id, request.name or "tool", request.arguments, row)


class ThoughtData(Data):
    counted_as: ClassVar = "assistant.reasoning"
    known: ClassVar = "interactionId reasoningId turnId"
    content: str | None = None


class Thought(Event, tag="assistant.reasoning"):
    """A thought that has an event of its own; its message comes after it."""

    data: ThoughtData = field(default_factory=ThoughtData)

    def take(self, session: Session, mark: Mark) -> None:
        talk, thought = mark.talk, (self.data.content or "").strip()
        session.respond(mark, None, thought, joins=talk.told is not None and not talk.spoke, spoke=False)


class RecordData(Spent):
    """Old versions have the fields of `usage` beside it, in ``assistant.usage``."""

    counted_as: ClassVar = "session.usage_record"
    known: ClassVar[str | None] = "interactionId turnId"
    parent_tool_call_id: str | None = None
    usage: Spent | Loose = None


class OldRecordData(RecordData):
    known: ClassVar = None


class Used(Event, tag="session.usage_record"):
    """What a call of the model used."""

    data: RecordData = field(default_factory=RecordData)  # type: ignore[assignment]

    def take(self, session: Session, mark: Mark) -> None:
        data, talk = self.data, mark.talk
        told = data.usage if isinstance(data.usage, Spent) else data
        call, usage = told.api_call_id or None, told.counts()
        session.use_model(talk, told.model)
        same = talk.is_of(call, otherwise=not talk.recorded)
        if session.is_counted(told) or (same and talk.recorded):
            session.row(mark).preview = "counted before"
            return
        session.ledger.record(told, usage)
        if same and talk.told is not None and talk.told.usage is not None:
            session.ledger.unsay(talk.told.usage)
        compaction = session.pairs.get(f"compaction {talk.key}")
        if compaction is not None and not same and "compaction" in (told.interaction_type or ""):
            session.also(compaction, mark)
            compaction.usage = usage or None
            return
        row = session.respond(mark, call, "", joins=same, spoke=False, recorded=True)
        talk.recorded = True
        took, end = told.duration, told.finish_reason or None
        row.usage, row.duration_ms = usage or None, None
        if took is not None and took >= 0:
            row.duration_ms = took
            if mark.time is not None:
                row.started_at = mark.time - took / 1000
        if end is not None:
            row.status_word = end
            if end in _CUT:
                row.fail(Error(f"stopped: {end}", end))
            else:
                row.status_word = end[:PREVIEW]
                row.note = "" if end in _QUIET else end[:PREVIEW]


class OldUsed(Used, tag="assistant.usage"):
    known: ClassVar = None
    data: OldRecordData = field(default_factory=OldRecordData)


class TurnData(Data):
    counted_as: ClassVar = "assistant.turn_start"
    known: ClassVar = "interactionId model turnId"


class TurnStart(Event, tag="assistant.turn_start"):
    """A turn of a conversation: a response and its calls."""

    data: TurnData = field(default_factory=TurnData)

    def take(self, session: Session, mark: Mark) -> None:
        session.open_turn(mark)


class TurnEndData(Data):
    counted_as: ClassVar = "assistant.turn_end"
    known: ClassVar = "interactionId model turnId"


class TurnEnd(Event, tag="assistant.turn_end"):
    data: TurnEndData = field(default_factory=TurnEndData)

    def take(self, session: Session, mark: Mark) -> None:
        talk = mark.talk
        if (turn := talk.turn) is None:
            session.row(mark)
            return
        session.over(turn, mark)
        turn.status, turn.status_source = OK, DERIVED
        if talk.stopped is not None:
            turn.status, turn.status_source, turn.status_word = CANCELLED, EXPLICIT, talk.stopped
        elif talk.failure is not None:
            turn.fail(talk.failure)
        talk.end_turn()


# ---- calls of tools


class CallData(Data):
    tool_call_id: str | None = None
    tool_name: str | None = None
    arguments: Raw = NULL


class BegunData(CallData):
    counted_as: ClassVar = "tool.execution_start"
    known: ClassVar = "interactionId model rte shellToolInfo toolTitle turnId"


class Begins(Event):
    """A call begins."""

    data: CallData = field(default_factory=CallData)

    def take(self, session: Session, mark: Mark) -> None:
        data = self.data
        session.begin_call(mark, data.tool_call_id or None, data.tool_name or "tool", data.arguments)


class Begun(Begins, tag="tool.execution_start"):
    data: BegunData = field(default_factory=BegunData)


class UserCall(Begins, tag="tool.user_requested"):
    """A call of the user: asked for, then begun."""

    known: ClassVar = None


class Progress(Event, tag="tool.execution_progress"):
    """What a call says while it goes on."""

    known: ClassVar = None
    data: CallData = field(default_factory=CallData)

    def take(self, session: Session, mark: Mark) -> None:
        call = session.calls.get(self.data.tool_call_id or "")
        if call is None or call.row is None:
            session.row(mark)
        else:
            session.also(call.row, mark)


class PartialResult(Progress, tag="tool.execution_partial_result"):
    pass


class Result(Struct, gc=False):
    content: Raw = NULL


class Shell(Struct, gc=False, rename="camel"):
    exit_code: Finite | None = None


class Metrics(Struct, gc=False):
    exit_code: Finite | None = None


class Telemetry(Struct, gc=False):
    metrics: Metrics | Loose = None


class EndedData(Data):
    counted_as: ClassVar = "tool.execution_complete"
    known: ClassVar = "interactionId isUserRequested rte turnId"
    tool_call_id: str | None = None
    tool_name: str | None = None
    model: str | None = None
    success: bool | None = None
    error: Fault | Loose = None
    result: Result | Loose = None
    shell_execution: Shell | Loose = None
    tool_telemetry: Telemetry | Loose = None

    @property
    def said(self) -> str:
        """What the tool answered."""
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
        """How the call went: it says so itself; a command that was run well may have failed all the same."""
        error = self.error.error if isinstance(self.error, Fault) else None
        if self.success is False or (self.success is not True and error is not None):
            if error is not None and error.type in _DECLINED:
                return CANCELLED, EXPLICIT, error.type, None
            said = self.error if isinstance(self.error, str) else ""
            return ERROR, EXPLICIT, None, error or Error((said or self.said or "failed")[:MESSAGE_LIMIT])
        code = self.exit_code
        if code:
            kind = f"exit {code}"
            return ERROR, EXIT, None, Error(self.said.strip()[:MESSAGE_LIMIT] or kind, kind)
        return OK, EXIT if code == 0 else EXPLICIT if self.success is True else DERIVED, None, None


class Ended(Event, tag="tool.execution_complete"):
    """The result of a call."""

    data: EndedData = field(default_factory=EndedData)

    def take(self, session: Session, mark: Mark) -> None:
        data = self.data
        key = data.tool_call_id or None
        call = None if key is None else session.calls.get(key)
        session.use_model(mark.talk, data.model)
        if call is None or key is None:
            shown = "without an id" if key is None else repr(key[:PREVIEW])
            session.problem(mark.line, f"a result, but no call {shown} waits for one")
            row = session.new(mark, data.tool_name or "tool", EXECUTE_TOOL)
            row.preview = data.said[:PREVIEW]
        else:
            row = session.end_call(mark, key, call)
        row.status, row.status_source, row.status_word, row.error = data.outcome()


# ---- sub-agents


class AgentData(Data):
    tool_call_id: str | None = None
    agent_name: str | None = None
    agent_display_name: str | None = None
    agent_description: str | None = None
    model: str | None = None
    cancelled: bool | None = None
    duration_ms: Finite | None = None
    total_tokens: Finite | None = None
    error: str | Loose = None


class StartedData(AgentData):
    counted_as: ClassVar = "subagent.started"
    known: ClassVar = "agentType executionMode interactionId modelSelectionSource resumable taskModelSource turnId"


class ConfiguredData(AgentData):
    counted_as: ClassVar = "subagent.configured"
    known: ClassVar = "interactionId multiTurn turnId"


class CompletedData(AgentData):
    counted_as: ClassVar = "subagent.completed"
    known: ClassVar = "firstDispatchedModel interactionId modelSelectionSource totalToolCalls turnId"


class OfAgent(Event):
    """What is said of a sub-agent itself."""

    data: AgentData = field(default_factory=AgentData)

    @property
    def call_id(self) -> str | None:
        return self.data.parent_tool_call_id or self.data.tool_call_id or None

    def take(self, session: Session, mark: Mark) -> None:
        agent = mark.talk.agent
        if agent is None:
            session.row(mark)
            return
        if agent.places != [*mark.place]:
            session.also(agent, mark)
        self.say(session, mark, agent)
        session.use_model(mark.talk, self.data.model)

    def say(self, session: Session, mark: Mark, agent: Row) -> None:
        """Add what the event says to the row of the agent."""


class Configured(OfAgent, tag="subagent.configured"):
    data: ConfiguredData = field(default_factory=ConfiguredData)


class Started(OfAgent, tag="subagent.started"):
    data: StartedData = field(default_factory=StartedData)

    def say(self, session: Session, mark: Mark, agent: Row) -> None:
        data, called = self.data, self.data.agent_display_name or ""
        name = data.agent_name or called or agent.name
        agent.name, agent.note = name[:PREVIEW], called[:PREVIEW] if called != name else ""
        agent.preview = (data.agent_description or called)[:PREVIEW]
        agent.status, agent.status_source, agent.status_word = RUNNING, DERIVED, None
        agent.error = agent.duration_ms = None
        session.put_below(agent, data.tool_call_id or None, mark.talk)


class Over(OfAgent):
    """A sub-agent ended."""

    def say(self, session: Session, mark: Mark, agent: Row) -> None:
        data, tokens = self.data, whole(self.data.total_tokens)
        session.leave(mark.talk)
        agent.status, agent.status_source, agent.error = CANCELLED if data.cancelled else OK, EXPLICIT, None
        if data.duration_ms is not None and data.duration_ms >= 0:
            agent.duration_ms = data.duration_ms
        if tokens is not None:
            agent.usage = Usage(total_tokens=tokens)


class Completed(Over, tag="subagent.completed"):
    data: CompletedData = field(default_factory=CompletedData)


class Failed(Over, tag="subagent.failed"):
    known: ClassVar = None

    def say(self, session: Session, mark: Mark, agent: Row) -> None:
        super().say(session, mark, agent)
        said = self.data.error if isinstance(self.data.error, str) else ""
        agent.fail(Error((said or "failed")[:MESSAGE_LIMIT]))


# ---- what begins in one event and ends in another


class PairData(Data):
    """What hooks and compactions say of their end."""

    success: bool | None = None
    error: Any = None
    trigger: str | None = None

    def end(self, row: Row) -> None:
        """Let the row stand as it ended."""
        row.status, row.status_source = OK, EXPLICIT if self.success else DERIVED
        error = self.error
        if self.success is False or error:
            said = error.get("message") if isinstance(error, dict) else error
            row.fail(Error((said if isinstance(said, str) and said else "failed")[:MESSAGE_LIMIT]))


class Pair(Event):
    """The beginning, or the end, of what has an event for both."""

    known: ClassVar[str | None] = None
    is_end: ClassVar = False

    def key(self, mark: Mark) -> str:
        """What tells one from another."""
        raise NotImplementedError

    def new(self, session: Session, mark: Mark) -> Row:
        """The row, in which nothing but its name is known."""
        raise NotImplementedError

    def begin(self, row: Row) -> None:
        """Let the row stand as it began."""
        raise NotImplementedError

    def end(self, session: Session, row: Row) -> None:
        """Let the row stand as it ended."""
        raise NotImplementedError

    def take(self, session: Session, mark: Mark) -> None:
        """It begins, or goes on where it has begun; an end of which no beginning is known stands for all of it."""
        key = self.key(mark)
        if self.is_end:
            row = session.pairs.pop(key, None)
            if row is None:
                row = self.new(session, mark)
            else:
                session.over(row, mark)
            self.end(session, row)
        elif (row := session.pairs.get(key)) is not None:
            session.also(row, mark)
        else:
            session.pairs[key] = row = self.new(session, mark)
            self.begin(row)


class HookInput(Struct, gc=False, rename="camel"):
    tool_name: str | None = None


class HookData(PairData):
    hook_invocation_id: str | None = None
    hook_type: str | None = None
    input: HookInput | Loose = None


class HookStartData(HookData):
    counted_as: ClassVar = "hook.start"
    known: ClassVar = "interactionId turnId"


class HookProgress(Pair, tag="hook.progress"):
    data: HookData = field(default_factory=HookData)

    def key(self, mark: Mark) -> str:
        return f"hook {self.data.hook_invocation_id or ''}"

    def new(self, session: Session, mark: Mark) -> Row:
        return session.new(mark, self.data.hook_type or "hook", Operation.HOOK)

    def begin(self, row: Row) -> None:
        given = self.data.input
        row.preview = ((given.tool_name or "") if isinstance(given, HookInput) else "")[:PREVIEW]
        row.status, row.status_source = RUNNING, DERIVED

    def end(self, session: Session, row: Row) -> None:
        self.data.end(row)


class HookStart(HookProgress, tag="hook.start"):
    known: ClassVar = Event.known
    data: HookData = field(default_factory=HookStartData)


class HookEnd(HookProgress, tag="hook.end"):
    is_end = True


class Asked(Struct, gc=False, rename="camel"):
    """What a permission is asked for."""

    full_command_text: str | None = None
    path: str | None = None
    file_name: str | None = None
    url: str | None = None
    tool_name: str | None = None
    intention: str | None = None
    kind: str | None = None
    tool_call_id: str | None = None

    @property
    def shown(self) -> str:
        """It in one line."""
        first = self.full_command_text or self.path or self.file_name or self.url
        return (first or self.tool_name or self.intention or self.kind or "")[:PREVIEW]


class Decision(Struct, gc=False):
    kind: str | None = None


class PermissionData(Data):
    request_id: str | None = None
    tool_call_id: str | None = None
    permission_request: Asked | Loose = None
    result: Decision | Loose = None


class Permission(Pair, tag="permission.requested"):
    data: PermissionData = field(default_factory=PermissionData)

    def key(self, mark: Mark) -> str:
        return f"permission {self.data.request_id or ''}"

    def new(self, session: Session, mark: Mark) -> Row:
        row, asked = session.new(mark, "permission", Operation.POLICY), self.data.permission_request
        ident = (asked.tool_call_id if isinstance(asked, Asked) else None) or self.data.tool_call_id
        call = session.calls.get(ident or "")
        if call is not None and call.row is not None:
            row.parent_id, row.step = call.row.id, call.row.step
        return row

    def begin(self, row: Row) -> None:
        asked = self.data.permission_request
        row.preview = asked.shown if isinstance(asked, Asked) else ""
        row.status, row.status_source = PAUSED, DERIVED

    def end(self, session: Session, row: Row) -> None:
        """A refusal is no failure."""
        result = self.data.result
        word = (result.kind or None) if isinstance(result, Decision) else None
        row.status, row.status_source = OK, DERIVED
        if word is not None:
            refused = word.startswith(("denied", "cancelled", "rejected"))
            row.status, row.status_source = CANCELLED if refused else OK, EXPLICIT
            row.status_word, row.note = word, word[:PREVIEW]


class PermissionEnd(Permission, tag="permission.completed"):
    is_end = True


class CompactionData(PairData):
    pre_compaction_tokens: Finite | None = None
    post_compaction_tokens: Finite | None = None
    compaction_tokens_used: Tokens | Loose = None


class Compaction(Pair, tag="session.compaction_start"):
    """The conversation so far is replaced by a summary of it: one at a time in each conversation."""

    data: CompactionData = field(default_factory=CompactionData)

    def key(self, mark: Mark) -> str:
        return f"compaction {mark.talk.key}"

    def new(self, session: Session, mark: Mark) -> Row:
        row = session.new(mark, "compaction")
        row.note = (self.data.trigger or "")[:PREVIEW]
        return row

    def begin(self, row: Row) -> None:
        row.status, row.status_source = RUNNING, DERIVED

    def end(self, session: Session, row: Row) -> None:
        data, used = self.data, self.data.compaction_tokens_used
        data.end(row)
        row.preview = _fewer(data.pre_compaction_tokens, data.post_compaction_tokens)
        row.note = (data.trigger or row.note)[:PREVIEW]
        usage = used.counts() if isinstance(used, Tokens) else None
        if usage and not session.ledger.open.calls:  # else it has a record of its own
            session.ledger.say(usage)
            row.usage = usage


class CompactionEnd(Compaction, tag="session.compaction_complete"):
    is_end = True


_TAKEN: Final = (
    Start, Resume, ModelChange, Shutdown, Info, Notification, Truncation, PermissionsChanged, SessionError, CallFailure,
    Abort, UserMessage, SystemMessage, Said, Thought, Used, OldUsed, TurnStart, TurnEnd, Begun, UserCall, Progress,
    PartialResult, Ended, Configured, Started, Completed, Failed, HookProgress, HookStart, HookEnd, Permission,
    PermissionEnd, Compaction, CompactionEnd,
)  # fmt: skip
_PLAIN: Final = [
    msgspec.defstruct(f"Plain{number}", [], bases=(Plain,), tag_field="type", tag=kind, gc=False)
    for number, kind in enumerate(sorted(KINDS - {str(one.__struct_config__.tag) for one in _TAKEN}))
]
SCHEMA: Final = Schema[Any](reduce(or_, (*_TAKEN, *_PLAIN)), Other)


# ---- helpers


def kind_of(event: AnyEvent) -> str:
    """The kind as the event says it, ``?`` where it says none."""
    kind = event.type if isinstance(event, Other) else tag_of(event)
    return kind if isinstance(kind, str) and kind else NAMELESS


def call_preview(given: Raw) -> str:
    """What tells a call from the next one; some versions write the arguments as JSON inside a text."""
    if memoryview(given)[0] != ord('"'):
        return preview_of(given)
    said = plain(given)
    return argument(decode_value(said) if isinstance(said, str) else said)


def _fewer(before: float | None, after: float | None) -> str:
    """``150000 → 20000 tokens``, as far as it is known."""
    counts = [str(count) for count in (whole(before), whole(after)) if count is not None]
    return f"{' → '.join(counts)} tokens" if counts else ""
