"""Records of a Copilot session: tool calls, sub-agents, hooks and permissions, and the schema of all events.

One JSON object per line: ``{"type", "data", "id", "timestamp", "parentId", "agentId"?}``. Facts: see `events`.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Raw, Struct, defstruct, field

from tracetui.formats.agent_log import CANCELLED, DERIVED, ERROR, EXECUTE_TOOL, EXIT, EXPLICIT, HOOK, OK, RUNNING
from tracetui.formats.copilot.events import (
    ABORT,
    OTHER,
    Abort,
    CallFailure,
    Content,
    Data,
    Event,
    Fault,
    Info,
    ModelChange,
    Notification,
    OldUsageRecord,
    Other,
    PermissionsChanged,
    PlainData,
    Response,
    Resume,
    SessionError,
    Shutdown,
    Start,
    SystemMessage,
    Thought,
    Tokens,
    Truncation,
    TurnEnd,
    TurnStart,
    UsageRecord,
    UserMessage,
    arguments_in,
    as_count,
    kind_of,
    token_change,
)
from tracetui.formats.scalars import without, word
from tracetui.formats.schema import NULL, Finite, Loose, Schema, plain
from tracetui.model import PREVIEW, Error, Operation, Status, StatusSource, Usage, excerpt

if TYPE_CHECKING:
    from tracetui.formats.copilot.session import Row, Session


PAUSED: Final = Status.PAUSED
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
_DECLINED: Final = frozenset({"rejected", "denied"})
"""Error codes of calls that the user or a policy did not allow."""
_ENVELOPE: Final = "ephemeral id parentId"
_COMMON: Final = "interactionId turnId"
"""Fields of every event and of all data."""


# ---- calls of tools


class CallData(Data):
    tool_call_id: str | None = None
    tool_name: str | None = None
    arguments: Raw = NULL


class CallStart(CallData):
    kinds: ClassVar = "tool.execution_start"
    other_fields: ClassVar[str | None] = "model rte shellToolInfo toolTitle"

    def take(self, session: Session) -> None:
        session.begin_call(self.tool_call_id or None, word(self.tool_name) or "tool", self.arguments)

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        fields.pop("arguments", None)
        content.input = arguments_in(self.arguments)


class UserCall(CallStart):
    """A call of the user: requested, then begun."""

    kinds: ClassVar = "tool.user_requested"
    other_fields: ClassVar = None


class Progress(CallData):
    """Output of a call that runs."""

    kinds: ClassVar = "tool.execution_progress tool.execution_partial_result"

    def take(self, session: Session) -> None:
        call = session.open_call(self.tool_call_id)
        if call is None or call.row is None:
            session.add_record()
        else:
            session.extend(call.row)


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
    other_fields: ClassVar = "isUserRequested rte"
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
            return ERROR, EXPLICIT, None, error or Error(excerpt(message or self.text or "failed"))
        code = self.exit_code
        if code:
            kind = f"exit {code}"
            return ERROR, EXIT, None, Error(excerpt(self.text.strip()) or kind, kind)
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

    def __post_init__(self) -> None:
        self.parent_tool_call_id = self.parent_tool_call_id or self.tool_call_id

    def take(self, session: Session) -> None:
        agent = session.conversation.agent
        if agent is None:
            session.add_record()
            return
        if agent.at != session.packed:
            session.extend(agent)
        self.update(session, agent)
        session.use_model(self.model)

    def update(self, session: Session, agent: Row) -> None:
        """Update the row of the sub-agent."""


class AgentConfigured(AgentData):
    kinds: ClassVar = "subagent.configured"
    other_fields: ClassVar = "multiTurn"


class AgentStart(AgentData):
    kinds: ClassVar = "subagent.started"
    other_fields: ClassVar = "agentType executionMode modelSelectionSource resumable taskModelSource"

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
    other_fields: ClassVar[str | None] = "firstDispatchedModel modelSelectionSource totalToolCalls"

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
    other_fields: ClassVar = None

    def update(self, session: Session, agent: Row) -> None:
        super().update(session, agent)
        message = self.error if isinstance(self.error, str) else ""
        agent.fail(Error(excerpt(message or "failed")))


# ---- pairs of begin and end events


class Pair(Data):
    """The begin or the end of something that has an event for both."""

    success: bool | None = None
    error: Any = None

    def key(self, session: Session) -> str:
        """The key shared by the begin and the end."""
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
            row.fail(Error(excerpt(message if isinstance(message, str) and message else "failed")))

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
            session.extend(row)
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
    other_fields: ClassVar = "trigger"


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
        call = session.open_call(ident)
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
        row.preview = token_change(self.pre_compaction_tokens, self.post_compaction_tokens)
        row.note = (self.trigger or row.note)[:PREVIEW]
        used = self.compaction_tokens_used
        usage = used.counts() if isinstance(used, Tokens) else None
        if usage and not session.ledger.open.calls:  # else it has a record of its own
            session.ledger.add_message(usage, row.model or session.conversation.model)
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
    others = None
    if data.other_fields is not None:
        namespace = {"other_fields": f"{data.other_fields} {_COMMON}", "counted_as": kind}
        others, data = _ENVELOPE, _struct(data.__name__, [], data, namespace)
    return _struct("Event", [("data", data, field(default_factory=data))], Event, {"other_fields": others}, kind)


def _struct(name: str, fields: list[Any], base: type[Struct], namespace: dict[str, Any], tag: str | None = None) -> Any:
    tag_field = None if tag is None else "type"
    return defstruct(name, fields, bases=(base,), namespace=namespace, tag_field=tag_field, tag=tag, gc=False)


_TYPES: Final = {kind: data for data in _DATA for kind in data.kinds.split()}
SCHEMA: Final = Schema[Any](
    reduce(or_, [_event_of(kind, _TYPES.get(kind, PlainData)) for kind in sorted(KINDS)]), Other
)
