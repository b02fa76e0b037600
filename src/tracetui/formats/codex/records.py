"""Records of a Codex rollout: the thread, its messages, tool calls and events, and the lines that hold all payloads.

A line is ``{"timestamp", "type", "payload"}``. Until mid 2025 a line was the payload itself, and the first one
``{"id", "timestamp", "instructions"}``; `in_envelope` converts it. Almost everything is recorded twice, as an item of
the conversation with the model (``response_item``) and as an event for the screen (``event_msg``): both are one span.
Facts: files of codex 0.169.0, and public ones of 0.50 to 0.149.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct

from tracetui.formats.agent_log import CANCELLED, DERIVED, ERROR, EXIT, EXPLICIT, OK, RUNNING
from tracetui.formats.codex.payloads import (
    ARGUMENTS,
    COMMON,
    Content,
    Contents,
    Counts,
    Part,
    Payload,
    Result,
    Scalar,
    call_preview,
    object_in,
    text_in,
    variants_of,
)
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import child, integer, mapping, string, word
from tracetui.formats.schema import NULL, Finite, Integer, Loose, Schema, plain, tag_of, tagged
from tracetui.model import PREVIEW, Error, Status, StatusSource, excerpt
from tracetui.model.span import plain_word, status_of

if TYPE_CHECKING:
    from tracetui.formats.codex.session import Session

KINDS: Final = frozenset(
    {"session_meta", "response_item", "event_msg", "token_usage_record", "turn_context", "compacted", "world_state"}
)
"""Kinds of records that distinguish a rollout from other lines."""
_OTHERS: Final = """
    EnteredReviewMode ExitedReviewMode FunctionCallOutput HookPrompt Plan Sleep SubAgentActivity UserAgentControl
    additional_tools agent_message_content_delta agent_message_delta agent_reasoning_delta
    agent_reasoning_raw_content_delta agent_reasoning_section_break apply_patch_approval_request
    auth_recovery_completed auth_recovery_started background_event compaction_summary compaction_trigger
    configuration_update context_compaction conversation_path deprecation_notice elicitation_request
    entered_review_mode environment_connected environment_disconnected exec_approval_request exited_review_mode
    get_history_entry_response guardian_assessment guardian_warning hook_completed hook_started
    inter_agent_communication inter_agent_communication_metadata item_started list_custom_prompts_response
    list_remote_skills_response list_skills_response mcp_list_tools_response mcp_startup_complete mcp_startup_update
    mcp_tool_call_progress model_reroute model_verification other patch_apply_updated plan_delta plan_update
    raw_response_completed raw_response_item realtime_conversation_closed realtime_conversation_list_voices_response
    realtime_conversation_realtime realtime_conversation_sdp realtime_conversation_started realtime_item
    reasoning_content_delta reasoning_raw_content_delta remote_skill_downloaded request_permissions request_user_input
    retained_context safety_buffering security_risk_score session_configured shutdown_complete skills_update_available
    state stream_error sub_agent_activity terminal_interaction thread_goal_updated thread_name_updated
    thread_queue_changed thread_rolled_back turn_diff turn_moderation_metadata undo_completed undo_started warning
"""
"""Records without a Struct: each is a row of its own."""
_TOOLS: Final = {
    "CommandExecution": "exec_command",
    "exec_command": "exec_command",
    "FileChange": "apply_patch",
    "patch_apply": "apply_patch",
    "WebSearch": "web_search",
    "web_search": "web_search",
    "ImageView": "view_image",
    "view_image_tool_call": "view_image",
    "ImageGeneration": "image_generation",
    "image_generation": "image_generation",
    "mcp_tool_call": "mcp_tool_call",
    "dynamic_tool_call": "dynamic_tool_call",
    "collab_agent_spawn": "spawn_agent",
    "collab_agent_interaction": "send_input",
    "collab_waiting": "wait",
    "collab_close": "close_agent",
    "collab_resume": "resume_agent",
    **dict.fromkeys(("McpToolCall", "CollabAgentToolCall", "DynamicToolCall", "Extension"), ""),
}
"""Tools by the completed items (capitalized) and events about their calls; empty where a field names the tool."""
_TIERS: Final = {"fast": "priority", "priority": "priority", "flex": "flex"}
"""`Span.tier` by the service tier that a thread asks for; fast mode asks for the priority tier."""
_PHASE: Final = re.compile(r"_(?:begin|end|request|response|output_delta)$")
_UNFINISHED: Final = ("_begin", "_request", "_delta")
_HEADER_LIMIT: Final = 1000
_CODE: Final = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})$", re.MULTILINE)
_OUTPUT: Final = "\nOutput:\n"
_HEADERS: Final = ("Chunk ID: ", "Exit code: ", "Wall time: ", "Process exited with code ")
"""Beginnings of the lines that Codex writes before the output of a command."""
_CONTEXT: Final = re.compile(r"<([A-Za-z_][\w-]{0,60})>")
_INSTRUCTIONS: Final = "# AGENTS.md instructions"


# ---- the thread as a whole


class Base(Struct, gc=False):
    """The history that a fork continues, and where in that thread's file it ends."""

    thread_id: str | None = None
    end_byte_offset: Integer | None = None
    end_ordinal_exclusive: Integer | None = None


class Spawn(Struct, gc=False):
    parent_thread_id: str | None = None
    agent_nickname: str | None = None


class Subagent(Struct, gc=False):
    thread_spawn: Spawn | Loose = None


class Source(Struct, gc=False):
    subagent: Subagent | Loose = None


class Git(Struct, gc=False):
    branch: str | None = None


class Meta(Payload):
    """The first record: the thread as a whole."""

    other_fields: ClassVar = COMMON + (
        "account_scoped agent_path agent_role base_instructions context_window dynamic_tools "
        "forked_from_ordinal_exclusive history_mode instructions memory_mode model_provider multi_agent_version "
        "originator runtime_workspace_roots selected_capability_roots session_id thread_source type"
    )
    counted_as: ClassVar[str] = "session_meta"
    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    agent_nickname: str | None = None
    forked_from_id: str | None = None
    """The original of a fork, also of one that only names its history."""
    parent_thread_id: str | None = None
    """The thread that spawned this one."""
    history_base: Base | Loose = None
    subagent_history_start_ordinal: Integer | None = None
    """The first record that the thread of an agent does not repeat from its parent's."""
    source: Source | Loose = None
    git: Git | Loose = None

    def __post_init__(self) -> None:
        base, spawn = self.history_base, self.spawn or Spawn()
        self.forked_from_id = self.forked_from_id or (base.thread_id if isinstance(base, Base) else None)
        self.parent_thread_id = self.parent_thread_id or spawn.parent_thread_id or None
        self.agent_nickname = self.agent_nickname or spawn.agent_nickname or None

    @property
    def spawn(self) -> Spawn | None:
        """How the thread of an agent was spawned."""
        within = self.source.subagent if isinstance(self.source, Source) else None
        spawn = within.thread_spawn if isinstance(within, Subagent) else None
        return spawn if isinstance(spawn, Spawn) else None

    def take(self, session: Session) -> None:
        session.begin(self)


class Context(Payload):
    """The settings that a turn begins with."""

    other_fields: ClassVar = COMMON + (
        "active_permission_profile approval_policy approvals_reviewer base_instructions collaboration_mode comp_hash "
        "current_date cwd developer_instructions disabled_plugin_ids effort file_system_sandbox_policy "
        "final_output_json_schema multi_agent_mode multi_agent_version network permission_profile personality "
        "realtime_active root_turn_id sandbox_policy summary timezone truncation_policy turn_id type "
        "user_instructions workspace_roots"
    )
    counted_as: ClassVar[str] = "turn_context"
    model: str | None = None

    def take(self, session: Session) -> None:
        session.use_model(self.model)
        if session.turn is None:
            session.open_turn(implicit=True)
        else:
            session.extend(session.turn)


class World(Payload):
    """The environment of the agent."""

    other_fields: ClassVar = COMMON + "full state type"
    counted_as: ClassVar[str] = "world_state"

    def take(self, session: Session) -> None:
        session.add_to_turn()


class Compacted(Payload):
    """The conversation so far was replaced by a summary of it."""

    other_fields: ClassVar = COMMON + (
        "compaction_response_id first_window_id guardian_history latest_token_usage_record mcp_resource_origins "
        "previous_window_id replacement_history replacement_history_metadata resume_metadata retained_context type "
        "window_id window_number"
    )
    counted_as: ClassVar[str] = "compacted"
    message: str | None = None

    def take(self, session: Session) -> None:
        session.compact(self.message or "")


class TokenUsage(Payload):
    """The tokens of a response, and those of the thread so far."""

    other_fields: ClassVar = COMMON + "response_id root_turn_id session_id thread_id turn_id turn_token_usage type"
    counted_as: ClassVar[str] = "token_usage_record"
    usage: Counts | Loose = None
    thread_token_usage: Counts | Loose = None

    def take(self, session: Session) -> None:
        session.count_tokens(self.usage, self.thread_token_usage, own=True)


# ---- messages, as items of the conversation and as events


class Metadata(Struct, gc=False):
    content_item_kinds: list[Any] | None = None


class Item(Payload):
    """An item of the conversation, or an event."""

    id: str | None = None
    metadata: Metadata | Loose = msgspec.field(default=None, name="internal_chat_message_metadata_passthrough")


class Message(Item):
    """A message of the user or the model, or one that Codex wrote in the name of one of them. An early version has the
    text of a prompt in ``message``.
    """

    author: ClassVar[str] = ""
    """The role of a message without such a field."""
    reasoning: ClassVar[bool] = False
    event: ClassVar[bool] = False
    """It repeats an item."""
    confirmed: ClassVar[bool] = False
    """Only a message of the user is recorded in this way."""
    role: str | None = None
    content: Contents = None
    message: str | None = None
    text: str | None = None
    summary: Contents = None
    summary_text: Contents = None
    raw_content: Contents = None
    context: str | None = msgspec.field(default=None, name="kind")
    started_at_ms: Finite | None = None

    def texts(self) -> str:
        """Its text: of reasoning, the summary if there is one."""
        contents = (self.summary, self.summary_text, self.content, self.raw_content, self.message, self.text)
        for content in contents:
            if content and (text := text_in(content)):
                return text
        return ""

    def name(self, text: str) -> str:
        """Its role; a message of role user that no user wrote has the name of what it is (``environment_context``,
        ``AGENTS.md``).
        """
        role = self.author or self.role or "message"
        if role != "user":
            return role
        named = (self.metadata.content_item_kinds or ()) if isinstance(self.metadata, Metadata) else ()
        kinds = [kind for kind in named if isinstance(kind, str)]
        if any(kind.startswith("user.") for kind in kinds):
            return role
        if text.startswith(_INSTRUCTIONS):
            return "AGENTS.md"
        begin = _CONTEXT.match(text.lstrip()[:PREVIEW])
        if begin is not None and text.rstrip().endswith(f"</{begin[1]}>"):
            return begin[1]
        if self.context not in (None, "plain", ""):
            return self.context
        return "context" if kinds and kinds != ["unknown"] else role

    def take(self, session: Session) -> None:
        role, text = self.author or self.role, self.texts()
        if self.reasoning or role == "assistant":
            session.add_output(self, text)
        else:
            session.add_message(self, text, self.name(text), from_user=role == "user")


MESSAGES: Final = (
    *variants_of(Message, {"message": "end_turn phase status"}),
    *variants_of(Message, {"reasoning": "encrypted_content"}, reasoning=True),
)
MESSAGE_EVENTS: Final = (
    *variants_of(Message, {"agent_message": "author memory_citation phase recipient"}, author="assistant", event=True),
    *variants_of(Message, {"agent_reasoning": "", "agent_reasoning_raw_content": ""}, reasoning=True, event=True),
    *variants_of(
        Message,
        {"user_message": "audio client_id images local_audio local_images text_elements"},
        author="user",
        event=True,
    ),
)
MESSAGE_ITEMS: Final = (
    *variants_of(Message, {"UserMessage": None}, author="user", event=True, confirmed=True),
    *variants_of(Message, {"AgentMessage": None}, author="assistant", event=True),
    *variants_of(Message, {"Reasoning": None}, reasoning=True, event=True),
)


# ---- tool calls


class Command(Struct, gc=False):
    """The arguments of most calls."""

    cmd: str = ""


_command: Final = msgspec.json.Decoder(Command).decode


class ToolCall(Item):
    """A call of a tool, with the arguments in one of three fields."""

    arguments: Any = None
    input: Any = None
    action: Any = None
    call_id: str | None = None
    called: str | None = msgspec.field(default=None, name="name")
    status: str | None = None
    hosted: ClassVar[bool] = False
    """The tool runs on the model's side: no output follows."""

    def given(self) -> Any:
        """The arguments."""
        if isinstance(self.arguments, str):
            return decode_value(self.arguments)
        return next((value for value in (self.arguments, self.input, self.action) if value is not None), None)

    def tool(self) -> str:
        """The name of the tool."""
        return word(self.called) or self.kind().removesuffix("_call")

    def take(self, session: Session) -> None:
        try:
            preview = _command(self.arguments).cmd[:PREVIEW]
        except (ValueError, TypeError, RecursionError):
            preview = ""
        session.add_call(self, preview or call_preview(self.given()))


_CALLS: Final = (
    *variants_of(
        ToolCall,
        {
            "function_call": "namespace",
            "custom_tool_call": "",
            "local_shell_call": "",
            "tool_search_call": "execution",
        },
    ),
    *variants_of(ToolCall, {"web_search_call": "", "image_generation_call": "result revised_prompt"}, hosted=True),
)


class Outcome(Struct, gc=False):
    """The recorded outcome of a call; None for fields not recorded."""

    finished: bool = False
    failed: bool | None = None
    """From a status or error field."""
    code: int | None = None
    """Exit code of the command."""
    word: str | None = None
    declined: bool = False
    message: str = ""
    """All of the output or of the error; once it is of a call, an excerpt."""
    started_at: float | None = None
    duration_ms: float | None = None

    def add(self, later: Outcome) -> None:
        """Add the outcome in one more record."""
        self.finished = self.finished or later.finished
        if later.failed is not None:
            self.failed = self.failed or later.failed
        if self.code is None:
            self.code = later.code
        self.word = later.word or self.word
        self.declined = self.declined or later.declined
        self.message = self.message or excerpt(later.message.strip())
        if later.started_at is not None:
            self.started_at = later.started_at
        if later.duration_ms is not None:
            self.duration_ms = later.duration_ms

    @property
    def status(self) -> tuple[Status, StatusSource] | None:
        """Status and source, None until the call finished. Status and error fields outrank the exit code."""
        if self.declined:
            return CANCELLED, EXPLICIT
        if self.failed:
            return ERROR, EXPLICIT
        if self.code:
            return ERROR, EXIT
        if not self.finished:
            return None
        if self.failed is False:
            return OK, EXPLICIT
        return OK, DERIVED if self.code is None else EXIT

    @property
    def error(self) -> Error | None:
        """The error of a call that failed."""
        if self.status is None or self.status[0] is not ERROR:
            return None
        kind = f"exit {self.code}" if self.code else None
        return Error(self.message or kind or self.word or "failed", kind)


def _has_failed(success: bool | None, status: Status | None = None, *, has_error: bool = False) -> bool | None:
    """Whether a call failed by the fields of one record; None if they don't say."""
    if success is False or status is ERROR or has_error:
        return True
    return False if success or status is OK else None


class Answer(Item):
    """An output of a call, or an event about it."""

    call_id: str | None = None
    output: Contents = None
    success: bool | None = None
    receiver_thread_ids: Any = None
    new_thread_id: Any = None
    agent_thread_id: Any = None
    event_id: str | None = None

    def threads(self) -> list[str]:
        receivers, output = self.receiver_thread_ids, self.output
        new = self.new_thread_id if self.agent_thread_id is None else self.agent_thread_id
        named = object_in(output, 1 << 16).get("agent_id") if type(output) is str and output[:1] == "{" else None
        if receivers is None and new is None and named is None:
            return []
        listed = [*(receivers if isinstance(receivers, list) else ()), new, named]
        return [thread for thread in listed if isinstance(thread, str) and thread]


class ToolOutput(Answer):
    """The output of a tool, as the model gets it."""

    def take(self, session: Session) -> None:
        """The outcome from ``success``, or from the exit code before the text."""
        output, success = self.output, self.success
        if isinstance(output, Content):
            success = output.success
        text = output if isinstance(output, str) else text_in(output)
        code, message = _exit_code(text)
        outcome = Outcome(True, _has_failed(success), code, message=message)
        session.add_tool_output(self, text, outcome)


_OUTPUTS: Final = variants_of(
    ToolOutput,
    {"function_call_output": "", "custom_tool_call_output": "name", "tool_search_output": "execution status tools"},
)


def _exit_code(text: str) -> tuple[int | None, str]:
    """The exit code before an output, and the output. In early versions that was JSON in a text."""
    if text[:1] == "{":
        old = object_in(text, 1 << 20)
        code = integer(child(old, "metadata").get("exit_code"))
        return (None, text) if code is None else (code, string(old.get("output")) or "")
    if not text.startswith(_HEADERS):
        return None, text
    head = text[:_HEADER_LIMIT]
    end = head.find(_OUTPUT)
    if end < 0 and head.endswith(_OUTPUT[:-1]):
        end = len(head) - len(_OUTPUT) + 1
    stated = _CODE.search(head, 0, end if end >= 0 else len(head))
    return (int(stated[1]) if stated else None), text[end + len(_OUTPUT) :] if end >= 0 else text


# ---- events about tool calls, and all other events


class Took(Struct, gc=False):
    secs: Finite | None = None
    nanos: Finite | None = None


class Invocation(Struct, gc=False):
    server: str | None = None
    tool: str | None = None
    kind: str | None = None
    arguments: Any = None


class Event(Answer):
    """An event of any kind; where it has the id of a call, it is about that."""

    cmd: Any = None
    command: Any = None
    query: Any = None
    path: Any = None
    file_path: Any = None
    pattern: Any = None
    url: Any = None
    message: Any = None
    prompt: Any = None
    input: Any = None
    task_name: Any = None
    started_at_ms: Finite | None = None
    completed_at_ms: Finite | None = None
    old_call_id: str | None = msgspec.field(default=None, name="callId")
    status: str | None = None
    exit_code: Integer | None = None
    stderr: str | None = None
    aggregated_output: str | None = None
    stdout: str | None = None
    error: Contents | Scalar = None
    result: Result | str | list[Part | str] | Scalar | None = None
    duration: Took | Loose = None
    server: str | None = None
    called: str | None = msgspec.field(default=None, name="tool")
    tool_kind: str | None = msgspec.field(default=None, name="kind")
    invocation: Invocation | Loose = None
    arguments: Any = None
    changes: Raw = NULL

    def take(self, session: Session) -> None:
        kind, key = self.kind(), self.call_id or self.old_call_id
        tool = kind if kind in _TOOLS else _PHASE.sub("", kind)
        if key and tool in _TOOLS and tag_of(session.record) == "event_msg":
            session.add_tool_event(key, tool, self, self.outcome(unfinished=kind.endswith(_UNFINISHED)))
        else:
            for thread in self.threads() if self.agent_thread_id is not None else ():
                session.link_thread(thread, self.event_id)
            session.add_record()

    def outcome(self, *, unfinished: bool) -> Outcome:
        """The outcome of the call, as recorded."""
        status, error = word(self.status), self.error
        meant = None if status is None else OK if status == "completed" else status_of(status)
        returned: Any = self.result
        is_error: Any = False
        if isinstance(returned, Result):
            is_error = returned.is_error or getattr(returned.ok, "is_error", False)
            error = error if returned.err is None else returned.err
            returned = returned.ok if isinstance(returned.ok, Content) else returned
        failed = _has_failed(self.success, meant, has_error=error not in (None, False) or bool(is_error))
        message = self.stderr or self.aggregated_output or self.stdout or ""
        if failed and not message:
            message = text_in(error) or (self.error.message if isinstance(self.error, Content) else None) or ""
            message = message or text_in(returned.content if isinstance(returned, Content) else returned)
        begin, end, took = self.started_at_ms, self.completed_at_ms, self.duration
        duration = end - begin if begin and end and end >= begin else None
        if duration is None and isinstance(took, Took) and took.secs is not None:
            duration = took.secs * 1000 + (took.nanos or 0) / 1e6
        return Outcome(
            meant is not RUNNING and not unfinished,
            failed,
            self.exit_code,
            status,
            status is not None and meant is not OK and plain_word(status) in ("declined", "denied"),
            message,
            begin / 1000 if begin else None,
            duration,
        )

    def preview(self) -> str:
        """The argument that distinguishes the call from the next one."""
        within = self.invocation.arguments if isinstance(self.invocation, Invocation) else None
        within = self.arguments if within is None else within
        if within is not None:
            return call_preview(within)
        changes = plain(self.changes)
        if isinstance(changes, dict) and changes:
            return str(next(iter(changes)))[:PREVIEW]
        named = ((name, getattr(self, name)) for name in ARGUMENTS)
        return call_preview({name: value for name, value in named if isinstance(value, str | list)})

    def tool(self, kind: str) -> str:
        """``server.tool`` of a call through MCP, the tool where one is named, else that of the kind of event."""
        named = self.invocation
        if isinstance(named, Invocation):
            server, tool, own = named.server, named.tool, named.kind
        else:
            server, tool, own = self.server, self.called, self.tool_kind
        if tool:
            return f"{server}.{tool}" if server else tool
        return _TOOLS.get(kind) or own or kind


_TOOL_EVENTS: Final = variants_of(
    Event,
    {
        "exec_command_end": "cwd formatted_output interaction_input parsed_cmd process_id source turn_id",
        "mcp_tool_call_end": "action_name app_name connector_id link_id plugin_id read_only_hint",
        "patch_apply_end": "turn_id",
        "web_search_end": "action results",
        "view_image_tool_call": "",
    },
)
_TOOL_ITEMS: Final = variants_of(Event, {kind: None for kind in _TOOLS if kind[0].isupper()})


class Other(Event):
    """A payload of an unknown kind. It may be about a call."""

    type: Any = None
    reason: Any = None
    thread_name: Any = None
    text: Any = None
    user_facing_hint: Any = None
    model: Any = None
    thread_settings: Any = None
    goal: Any = None
    content: Contents = None

    def kind(self) -> str:
        return self.type if isinstance(self.type, str) else ""

    def label(self) -> str:
        named = word(mapping(self.thread_settings).get("model")) or word(mapping(self.goal).get("objective"))
        return super().label() or named or text_in(self.content)

    def take(self, session: Session) -> None:
        if tag_of(session.record) == "response_item" and self.kind().endswith("_output"):
            output = {name: getattr(self, name) for name in ToolOutput.__struct_fields__}
            ToolOutput(**output).take(session)
        else:
            super().take(session)


class ContextCompacted(Item):
    """Repeats `Compacted`."""

    def take(self, session: Session) -> None:
        session.confirm_compaction()


_COMPLETED: Final = (*MESSAGE_ITEMS, *_TOOL_ITEMS, *variants_of(ContextCompacted, {"ContextCompaction": None}))


class Completed(Item, tag="item_completed"):
    """An item of the conversation is complete, or a tool finished."""

    other_fields: ClassVar = COMMON + "thread_id turn_id"
    item: tagged(*_COMPLETED, other=Other) | None = None  # type: ignore[valid-type]
    started_at_ms: Finite | None = None
    completed_at_ms: Finite | None = None

    def kind(self) -> str:
        return (self.item.kind() if self.item is not None else "") or "item_completed"

    def label(self) -> str:
        return self.item.label() if self.item is not None else ""

    def threads(self) -> list[str]:
        return self.item.threads() if self.item is not None else []

    def take(self, session: Session) -> None:
        item = self.item
        if item is None:
            session.add_record()
            return
        if isinstance(item, Message):
            item.metadata, item.started_at_ms = self.metadata, self.started_at_ms
        elif isinstance(item, Event):
            item.call_id, item.started_at_ms, item.completed_at_ms = item.id, self.started_at_ms, self.completed_at_ms
        item.take(session)


# ---- other events


class Info(Struct, gc=False):
    last_token_usage: Counts | Loose = None
    total_token_usage: Counts | Loose = None


class TokenCount(Item, tag="token_count"):
    """The tokens of the last response, and those of the whole thread."""

    other_fields: ClassVar = COMMON + "rate_limits"
    info: Info | Loose = None

    def take(self, session: Session) -> None:
        info = self.info if isinstance(self.info, Info) else Info()
        session.count_tokens(info.last_token_usage, info.total_token_usage, own=False)


class TaskStarted(Item):
    def take(self, session: Session) -> None:
        session.start_turn()


class Fault(Item):
    """An error; its kind is a word, or an object with a word as its only field."""

    message: str | Loose = None
    codex_error_info: Any = None
    fault_kind: Any = msgspec.field(default=None, name="kind")


class Failure(Fault):
    """An error, itself or within the field ``error``."""

    error: Fault | Loose = None

    def as_error(self) -> Error:
        """Its kind and message."""
        inner = self.error if isinstance(self.error, Fault) else self
        info = inner.fault_kind if inner.codex_error_info is None else inner.codex_error_info
        info = next(iter(info), None) if isinstance(info, dict) else info
        kind = info if isinstance(info, str) else None
        message = inner.message if isinstance(inner.message, str) else None
        return Error(excerpt((message or kind or "error").strip()), kind and kind[:PREVIEW])

    def take(self, session: Session) -> None:
        session.fail(self.as_error())


class TurnEnd(Item):
    """The turn ended; a failure is in its ``error``, or in an event before it with no output of the model after it."""

    duration_ms: Finite | None = None
    error: Failure | Loose = None
    last_agent_message: str | None = None
    reason: str | None = None

    def take(self, session: Session) -> None:
        failure, error = session.failure, self.error
        if self.kind() == "turn_aborted":
            session.end_turn(CANCELLED, self.reason or "aborted", None, self.duration_ms)
            return
        if error is not None and error is not False:
            failure = (error if isinstance(error, Failure) else Failure(message=error)).as_error()
        status, word = (OK, "task_complete") if failure is None else (ERROR, "error")
        session.end_turn(status, word, failure, self.duration_ms)
        session.last_assistant = self.last_agent_message or session.last_assistant


class SettingsApplied(Item, tag="thread_settings_applied"):
    other_fields: ClassVar = COMMON + "thread_id"
    thread_settings: Any = None

    def label(self) -> str:
        return word(mapping(self.thread_settings).get("model")) or ""

    def take(self, session: Session) -> None:
        session.use_model(self.label())
        tier = word(mapping(self.thread_settings).get("service_tier"))
        session.tier = _TIERS.get(tier or "")
        session.add_to_turn()


# ---- lines


class Line(Struct, gc=False, kw_only=True, tag_field="type"):
    """A record: its kind and its payload."""

    other_fields: ClassVar = "metadata"
    timestamp: str | None = None
    ordinal: Any = None
    payload: Any

    def kind(self) -> str:
        """The kind of the payload, else that of the line."""
        return str(self.payload.kind() or self.__struct_config__.tag)


class OtherLine(Struct, gc=False):
    """A record of an unknown kind."""

    type: str | Loose = None
    timestamp: str | None = None
    ordinal: Any = None
    payload: Other = msgspec.field(default_factory=Other)

    def kind(self) -> str:
        """The kind of the payload, else that of the line."""
        return self.payload.kind() or (self.type if isinstance(self.type, str) and self.type else "?")


def in_envelope(value: dict[str, Any]) -> dict[str, Any]:
    """A record in today's layout."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and (isinstance(payload, dict) or kind in KINDS):
        return value
    stamp = {"timestamp": value["timestamp"]} if "timestamp" in value else {}
    if isinstance(value.get("role"), str) or isinstance(kind, str):
        bare = {key: item for key, item in value.items() if key != "timestamp"}
        return {
            "type": "response_item",
            "payload": bare if isinstance(kind, str) else {**bare, "type": "message"},
        } | stamp
    if isinstance(value.get("id"), str) and stamp:
        return {"type": "session_meta", "payload": value} | stamp
    kind = value.get("record_type")
    return {"type": kind if isinstance(kind, str) and kind else "?", "payload": value}


_ITEMS: Final = (*MESSAGES, *_CALLS, *_OUTPUTS, *variants_of(Item, {"ghost_snapshot": "ghost_commit"}))
_TURN_START: Final = (
    "collaboration_mode_kind model_context_window root_turn_id started_at trace_id turn_attribution turn_id"
)
_TURN_END: Final = "completed_at root_turn_id started_at time_to_first_token_ms turn_id"
_EVENTS: Final = (
    *(*MESSAGE_EVENTS, *_TOOL_EVENTS, Completed, TokenCount, SettingsApplied),
    *variants_of(TaskStarted, dict.fromkeys(("task_started", "turn_started"), _TURN_START)),
    *variants_of(TurnEnd, dict.fromkeys(("task_complete", "turn_complete", "turn_aborted"), _TURN_END)),
    *(*variants_of(Failure, {"error": ""}), *variants_of(ContextCompacted, {"context_compacted": ""})),
)
_LINES: Final = {
    "response_item": tagged(*_ITEMS, other=Other),
    "event_msg": tagged(*_EVENTS, other=Other),
    "token_usage_record": TokenUsage,
    "session_meta": Meta,
    "turn_context": Context,
    "world_state": World,
    "compacted": Compacted,
    "compaction": Compacted,
}
SCHEMA: Final = Schema[Any](
    reduce(
        or_,
        [
            msgspec.defstruct(kind, [("payload", payload)], bases=(Line,), tag=kind, kw_only=True, gc=False)
            for kind, payload in _LINES.items()
        ],
    ),
    OtherLine,
    older=in_envelope,
)
_KNOWN: Final = frozenset((*_OTHERS.split(), *map(tag_of, (*_ITEMS, *_EVENTS, *_COMPLETED)), *_LINES)) - {
    *("response_item", "event_msg", "item_completed"),
}


def is_documented(name: str) -> bool:
    """Whether records of that kind are documented."""
    return name in _KNOWN or name.endswith("_output") or _PHASE.sub("", name) in _TOOLS
