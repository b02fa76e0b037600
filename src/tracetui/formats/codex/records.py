"""Records of a Codex rollout: tool calls, events, and the lines that hold all payloads.

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

from tracetui.formats.agent_log import CANCELLED, ERROR, OK, RUNNING
from tracetui.formats.codex.payloads import (
    ARGUMENTS,
    COMMON,
    MESSAGE_EVENTS,
    MESSAGE_ITEMS,
    MESSAGES,
    Arguments,
    Compacted,
    Content,
    Contents,
    Context,
    Counts,
    Item,
    Message,
    Meta,
    Part,
    Result,
    Scalar,
    TokenUsage,
    World,
    call_preview,
    object_in,
    text_in,
    threads_in,
    variants_of,
)
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import child, integer, mapping, string, word
from tracetui.formats.schema import NULL, Finite, Integer, Loose, Schema, plain, tag_of, tagged
from tracetui.model import (
    PREVIEW,
    Error,
    excerpt,
)
from tracetui.model.span import plain_word, status_of

if TYPE_CHECKING:
    from tracetui.formats.codex.session import Session


KINDS: Final = frozenset(
    {"session_meta", "response_item", "event_msg", "token_usage_record", "turn_context", "compacted", "world_state"}
)
"""Kinds of records that distinguish a rollout from other lines."""
_OTHERS: Final = """
    EnteredReviewMode ExitedReviewMode HookPrompt Plan Sleep SubAgentActivity
    additional_tools background_event compaction_summary compaction_trigger deprecation_notice entered_review_mode
    exited_review_mode guardian_assessment guardian_warning inter_agent_communication_metadata item_started
    model_reroute other plan_delta plan_update session_configured shutdown_complete state stream_error
    sub_agent_activity thread_goal_updated thread_name_updated thread_rolled_back turn_diff undo_completed undo_started
    warning
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
_PHASE: Final = re.compile(r"_(?:begin|end|request|response|output_delta)$")
_UNFINISHED: Final = ("_begin", "_request", "_delta")
_HEADER_LIMIT: Final = 1000
_CODE: Final = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})$", re.MULTILINE)
_OUTPUT: Final = "\nOutput:\n"
_HEADERS: Final = ("Chunk ID: ", "Exit code: ", "Wall time: ", "Process exited with code ")
"""Beginnings of the lines that Codex writes before the output of a command."""


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
        return next((one for one in (self.arguments, self.input, self.action) if one is not None), None)

    def tool(self) -> str:
        """The name of the tool."""
        return self.called or self.kind().removesuffix("_call")

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
        self.message = self.message or later.message
        if later.started_at is not None:
            self.started_at = later.started_at
        if later.duration_ms is not None:
            self.duration_ms = later.duration_ms


class ToolOutput(Item):
    """The output of a tool, as the model gets it."""

    call_id: str | None = None
    output: Contents = None
    success: bool | None = None
    receiver_thread_ids: Any = None
    new_thread_id: Any = None

    def threads(self) -> list[str]:
        return threads_in(self.receiver_thread_ids, self.new_thread_id, self.output)

    def take(self, session: Session) -> None:
        """The outcome from ``success``, or from the exit code before the text."""
        output, success = self.output, self.success
        if isinstance(output, Content):
            success = output.success
        text = output if isinstance(output, str) else text_in(output)
        code, message = _exit_code(text)
        outcome = Outcome(True, None if success is None else not success, code, message=excerpt(message.strip()))
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
    found = _CODE.search(head, 0, end if end >= 0 else len(head))
    return (int(found[1]) if found else None), text[end + len(_OUTPUT) :] if end >= 0 else text


# ---- events about tool calls, and all other events


class Took(Struct, gc=False):
    secs: Finite | None = None
    nanos: Finite | None = None


class Invocation(Struct, gc=False):
    server: str | None = None
    tool: str | None = None
    kind: str | None = None
    arguments: Any = None


class Event(Arguments):
    """An event of any kind; where it has the id of a call, it is about that."""

    started_at_ms: Finite | None = None
    completed_at_ms: Finite | None = None
    call_id: str | None = None
    old_call_id: str | None = msgspec.field(default=None, name="callId")
    status: str | None = None
    exit_code: Integer | None = None
    success: bool | None = None
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
    receiver_thread_ids: Any = None
    new_thread_id: Any = None
    output: Contents = None

    def take(self, session: Session) -> None:
        kind, key = self.kind(), self.call_id or self.old_call_id
        tool = kind if kind in _TOOLS else _PHASE.sub("", kind)
        if key and tool in _TOOLS and tag_of(session.record) == "event_msg":
            session.add_tool_event(key, tool, self, self.outcome(unfinished=kind.endswith(_UNFINISHED)))
        else:
            session.add_record()

    def threads(self) -> list[str]:
        return threads_in(self.receiver_thread_ids, self.new_thread_id, self.output)

    def outcome(self, *, unfinished: bool) -> Outcome:
        """The outcome of the call, as recorded."""
        status, error, success = self.status or None, self.error, self.success
        meant = None if status is None else OK if status == "completed" else status_of(status)
        returned: Any = self.result
        is_error: Any = False
        if isinstance(returned, Result):
            is_error = returned.is_error or getattr(returned.ok, "is_error", False)
            error = error if returned.err is None else returned.err
            returned = returned.ok if isinstance(returned.ok, Content) else returned
        failed = True if success is False or meant is ERROR or error not in (None, False) or is_error else None
        if failed is None and (success or meant is OK):
            failed = False
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
            excerpt(message.strip()),
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


class TaskStarted(Item, tag="task_started"):
    other_fields: ClassVar = COMMON + (
        "collaboration_mode_kind model_context_window root_turn_id started_at turn_attribution turn_id"
    )

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
        failure, found = session.failure, self.error
        if self.kind() == "turn_aborted":
            session.end_turn(CANCELLED, self.reason or "aborted", None, self.duration_ms)
            return
        if found is not None and found is not False:
            failure = (found if isinstance(found, Failure) else Failure(message=found)).as_error()
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
        session.add_to_turn()


# ---- lines


class Line(Struct, gc=False, kw_only=True, tag_field="type"):
    """A record: its kind and its payload."""

    other_fields: ClassVar = ""
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
_EVENTS: Final = (
    *(*MESSAGE_EVENTS, *_TOOL_EVENTS, Completed, TokenCount, TaskStarted, SettingsApplied),
    *variants_of(
        TurnEnd,
        {
            "task_complete": "completed_at root_turn_id started_at time_to_first_token_ms turn_id",
            "turn_aborted": "completed_at root_turn_id started_at turn_id",
        },
    ),
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
