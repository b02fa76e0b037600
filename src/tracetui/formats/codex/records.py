"""Records of a Codex rollout: what each kind holds, and what it means.

A line is ``{"timestamp", "type", "payload"}``. Before that envelope (until mid 2025) it was the payload itself, and the
first one ``{"id", "timestamp", "instructions"}``: `in_envelope` turns one into the other. Almost everything is recorded
twice, as an item of the conversation with the model (``response_item``) and as an event for the screen (``event_msg``):
both are one span here. Facts: files of codex 0.169.0, and public ones of 0.50 to 0.149.
"""

from __future__ import annotations

import re
import struct
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct

from tracetui.formats.agent_log import CANCELLED, ERROR, OK
from tracetui.formats.calls import as_json
from tracetui.formats.decode import decode_value
from tracetui.formats.schema import NULL, Finite, Loose, Schema, Whole, plain, tagged
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, Status, Usage
from tracetui.model.status import plain_word, status_of

if TYPE_CHECKING:
    from tracetui.formats.codex.session import Session

CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Items that are calls with an output to come."""
DONE_CALLS: Final = frozenset({"web_search_call", "image_generation_call"})
"""Items that are calls of tools on the model's side: no output comes."""
SAID: Final = frozenset(
    {"AgentMessage", "Reasoning", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"}
)
"""Events that repeat what the model said."""
KINDS: Final = frozenset(
    {"session_meta", "response_item", "event_msg", "token_usage_record", "turn_context", "compacted", "world_state"}
)
"""Kinds of records that distinguish a rollout from other lines."""
_NAMES: Final = """
    EnteredReviewMode ExitedReviewMode ContextCompaction HookPrompt Plan Sleep SubAgentActivity UserMessage
    additional_tools agent_message background_event compacted compaction compaction_summary compaction_trigger
    context_compacted deprecation_notice entered_review_mode error exited_review_mode ghost_snapshot
    guardian_assessment guardian_warning inter_agent_communication_metadata item_started message model_reroute other
    plan_delta plan_update reasoning session_configured session_meta shutdown_complete state stream_error
    sub_agent_activity task_complete task_started thread_goal_updated thread_name_updated thread_rolled_back
    thread_settings_applied token_count token_usage_record turn_aborted turn_context turn_diff undo_completed
    undo_started user_message warning world_state
"""
_KNOWN: Final = frozenset(_NAMES.split()) | SAID | CALLS | DONE_CALLS
"""Records that stand for themselves: shown as they are, and nothing to report."""
_STEMS: Final = {
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
}
"""Tools by the items and events about them."""
_SUFFIX: Final = re.compile(r"_(?:begin|end|request|response|output_delta)$")
_GOING: Final = ("_begin", "_request", "_delta")
_CONTEXT: Final = re.compile(r"<([A-Za-z_][\w-]{0,60})>")
_AGENTS: Final = "# AGENTS.md instructions"
_FILE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_TELLING: Final = "cmd command query path file_path pattern url message prompt input task_name"
_ARGUMENTS: Final = tuple(_TELLING.split())
"""Arguments that tell one call from the next, the most telling first."""
_HEADER_LIMIT: Final = 1000
_CODE: Final = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})$", re.MULTILINE)
_OUTPUT: Final = re.compile(r"^Output:$\n?", re.MULTILINE)
_WRITTEN: Final = ("Chunk ID: ", "Exit code: ", "Wall time: ", "Process exited with code ")
"""How what Codex writes before the output of a command begins."""
_COMMON: Final = "id internal_chat_message_metadata_passthrough metadata "
"""Fields that any payload may have."""


_PLACE: Final = struct.Struct("<QII")
pack: Final = _PLACE.pack


class At(Struct, frozen=True, gc=False):
    """Where a span is: offset, size and checksum (CRC-32) of each of its lines, one after the other."""

    lines: bytes
    path: str | None = None
    """The file, where it is not that of the run."""

    @property
    def places(self) -> list[int]:
        """The numbers."""
        return [number for place in _PLACE.iter_unpack(self.lines) for number in place]

    @property
    def size(self) -> int:
        """Bytes of its lines."""
        return sum(self.places[1::3])


# ---- parts of records


class Part(Struct, gc=False):
    text: str | None = None


Texts = str | list[Part | str] | None


class Held(Struct, gc=False, rename={"is_error": "isError"}):
    """A content, output, error or result that is an object."""

    content: Texts = None
    text: Texts = None
    message: str | None = None
    success: bool | None = None
    is_error: bool | None = None


Content = str | list[Part | str] | Held | None
Problem = str | list[Part | str] | Held | bool | int | float | None


class Result(Held, gc=False, rename={"is_error": "isError", "ok": "Ok", "err": "Err"}):
    """What a tool gave back; ``Ok`` or ``Err`` where it is a `Result` of Rust."""

    ok: Held | Loose = None
    err: Problem = None


class Counts(Struct, gc=False, frozen=True):
    """Tokens, in the order of the fields of `Usage`. Cached input is within the input, reasoning within the output."""

    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    total_tokens: Whole | None = None
    cached_input_tokens: Whole | None = None
    cache_write_input_tokens: Whole | None = None
    reasoning_output_tokens: Whole | None = None

    def usage(self) -> Usage | None:
        """None if there are no tokens."""
        found = Usage(
            self.input_tokens,
            self.output_tokens,
            self.total_tokens,
            self.cached_input_tokens,
            self.cache_write_input_tokens,
            self.reasoning_output_tokens,
        )
        return found if self.input_tokens or any(msgspec.structs.astuple(self)) else None

    def less(self, before: Counts | None) -> Counts:
        """What came since; a total that became smaller began again."""
        now, then = msgspec.structs.astuple(self), () if before is None else msgspec.structs.astuple(before)
        if not then or any((a or 0) < (b or 0) for a, b in zip(now, then, strict=True)):
            return self
        return Counts(*(None if a is None else a - (b or 0) for a, b in zip(now, then, strict=True)))


_NOTHING: Final = Counts()


def counts(value: Counts | Loose) -> Counts | None:
    """None for what is no object, or has no count."""
    return value if isinstance(value, Counts) and value != _NOTHING else None


def text_in(content: Any) -> str:
    """The text of a message's or an output's content: text itself, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        if len(content) == 1 and isinstance(content[0], Part):
            return content[0].text or ""
        texts = [part.text if isinstance(part, Part) else part for part in content]
        return "\n".join([text for text in texts if text is not None])
    if isinstance(content, Held):
        return text_in(content.text if content.content is None else content.content)
    return ""


def call_preview(value: Any) -> str:
    """What tells a call from the next one."""
    if isinstance(value, str):
        touched = _FILE.search(value[:4096])
        return (touched[1] if touched else value.lstrip().partition("\n")[0])[:PREVIEW]
    if not isinstance(value, dict):
        return "" if value is None else as_json(value)
    for name in _ARGUMENTS:
        found = value.get(name)
        if isinstance(found, list) and found and all(isinstance(part, str) for part in found):
            shell = len(found) == 3 and found[1] in ("-lc", "-c")
            return (found[2] if shell else " ".join(part[:PREVIEW] for part in found[:PREVIEW]))[:PREVIEW]
        if isinstance(found, str) and found:
            return found[:PREVIEW]
    return as_json(value) if value else ""


def since(begin: float | None, end: float | None) -> float | None:
    """Milliseconds between two times in seconds; None where one is not known or they are the wrong way round."""
    return None if begin is None or end is None or end < begin else (end - begin) * 1000


# ---- payloads


class Payload(Struct, gc=False):
    """What a record says. A kind without a meaning of its own stands for itself as a row."""

    counted_as: ClassVar[str] = ""
    """What it is called where its tag does not say it."""

    def kind(self) -> str:
        """What the record is called."""
        return str(self.__struct_config__.tag or self.counted_as)

    def shown(self) -> str:
        """What a row of it says."""
        return ""

    def threads(self) -> list[str]:
        """The threads that it says were spawned."""
        return []

    def take(self, session: Session) -> None:
        """Interpret the record."""
        session.alone()


def _kinds(base: Any, **known: str | None) -> list[Any]:
    """Kinds of payloads that `base` stands for, by their tags, with further fields that are known of them."""
    return [
        msgspec.defstruct(
            tag, [], bases=(base,), tag=tag, namespace={} if names is None else {"known": _COMMON + names}, gc=False
        )
        for tag, names in known.items()
    ]


def is_known(name: str) -> bool:
    """Whether this version knows records of that kind."""
    return name in _KNOWN or name in _ITEMS or name.endswith("_output") or _SUFFIX.sub("", name) in _STEMS


# ---- the thread as a whole


class Base(Struct, gc=False):
    """The history that a fork goes on from, and where in that thread's file it ends."""

    thread_id: str | None = None
    end_byte_offset: Whole | None = None
    end_ordinal_exclusive: Whole | None = None


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
    """What the first record says of the thread."""

    known: ClassVar = _COMMON + (
        "account_scoped agent_path agent_role base_instructions context_window dynamic_tools "
        "forked_from_ordinal_exclusive history_mode instructions memory_mode model_provider multi_agent_version "
        "originator runtime_workspace_roots session_id thread_source type"
    )
    counted_as: ClassVar[str] = "session_meta"
    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    agent_nickname: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    history_base: Base | Loose = None
    source: Source | Loose = None
    git: Git | Loose = None

    @property
    def spawn(self) -> Spawn | None:
        """How the thread of an agent was spawned."""
        within = self.source.subagent if isinstance(self.source, Source) else None
        found = within.thread_spawn if isinstance(within, Subagent) else None
        return found if isinstance(found, Spawn) else None

    @property
    def parent(self) -> str | None:
        """The thread that spawned this one."""
        spawn = self.spawn
        return self.parent_thread_id or (None if spawn is None else spawn.parent_thread_id) or None

    @property
    def nickname(self) -> str | None:
        """How the agent is called."""
        spawn = self.spawn
        return self.agent_nickname or (spawn.agent_nickname if spawn is not None else None) or None

    @property
    def base(self) -> Base | None:
        """The history that it goes on from; None where it begins by itself."""
        base = self.history_base
        return base if isinstance(base, Base) and base.thread_id is not None else None

    @property
    def original(self) -> str | None:
        """The thread that it was forked from."""
        base = self.base
        return self.forked_from_id or (None if base is None else base.thread_id)

    def take(self, session: Session) -> None:
        if session.meta is None:
            session.begin(self)
        else:
            super().take(session)


class Context(Payload):
    """What a turn begins with."""

    known: ClassVar = _COMMON + (
        "active_permission_profile approval_policy approvals_reviewer base_instructions collaboration_mode comp_hash "
        "current_date cwd developer_instructions disabled_plugin_ids effort file_system_sandbox_policy "
        "final_output_json_schema multi_agent_mode multi_agent_version network permission_profile personality "
        "realtime_active root_turn_id sandbox_policy summary timezone truncation_policy turn_id type "
        "user_instructions workspace_roots"
    )
    counted_as: ClassVar[str] = "turn_context"
    model: str | None = None

    def shown(self) -> str:
        return self.model or ""

    def take(self, session: Session) -> None:
        session.uses(self.model)
        if session.turn is None:
            session.open_turn(implicit=True)
        else:
            session.beside()


class World(Payload):
    """What surrounds the agent."""

    known: ClassVar = _COMMON + "full state type"
    counted_as: ClassVar[str] = "world_state"

    def take(self, session: Session) -> None:
        session.beside()


class Compacted(Payload):
    """The conversation so far was replaced by a summary of it."""

    known: ClassVar = _COMMON + "first_window_id previous_window_id replacement_history type window_id window_number"
    counted_as: ClassVar[str] = "compacted"
    message: str | None = None

    def take(self, session: Session) -> None:
        session.compact(self.message or "")


class Used(Payload):
    """What a response cost, and all of the thread so far."""

    known: ClassVar = _COMMON + "response_id root_turn_id session_id thread_id turn_id turn_token_usage type"
    counted_as: ClassVar[str] = "token_usage_record"
    usage: Counts | Loose = None
    thread_token_usage: Counts | Loose = None

    def take(self, session: Session) -> None:
        session.use(counts(self.usage), counts(self.thread_token_usage), own=True)


# ---- items of the conversation with the model


class Passed(Struct, gc=False):
    content_item_kinds: list[Any] | None = None


class Item(Payload, tag_field="type"):
    """An item of the conversation."""


def context_of(text: str, passed: Passed | Loose, kind: str | None = None) -> str | None:
    """What a message of role user is that no user wrote (``environment_context``, ``AGENTS.md``); None for a prompt."""
    named = (passed.content_item_kinds or ()) if isinstance(passed, Passed) else ()
    kinds = [one for one in named if isinstance(one, str)]
    if any(one.startswith("user.") for one in kinds):
        return None
    if text.startswith(_AGENTS):
        return "AGENTS.md"
    begin = _CONTEXT.match(text.lstrip()[:PREVIEW])
    if begin is not None and text.rstrip().endswith(f"</{begin[1]}>"):
        return begin[1]
    if kind not in (None, "plain", ""):
        return kind
    return "context" if kinds and kinds != ["unknown"] else None


class Message(Item, tag="message"):
    """What somebody said: the model, the user, or the program in the name of one of them. An early version has the
    text of a prompt in ``message``.
    """

    known: ClassVar = _COMMON + "end_turn phase status"
    role: str | None = None
    content: Content = None
    message: str | None = None
    id: str | None = None
    passed: Passed | Loose = msgspec.field(default=None, name="internal_chat_message_metadata_passthrough")

    def take(self, session: Session) -> None:
        text, role = text_in(self.content), self.role or "message"
        if role == "assistant":
            session.say(text, self.id)
        else:
            text = text or self.message or ""
            name = context_of(text, self.passed) or role if role == "user" else role
            session.hear(role, name, text)


class Thought(Struct, gc=False):
    """What the model thought, as an item and as an event."""

    id: str | None = None
    summary: Content = None
    summary_text: Content = None
    content: Content = None
    raw_content: Content = None

    def said(self) -> str:
        """The text."""
        texts = text_in(self.summary) or text_in(self.summary_text) or text_in(self.content)
        return texts or text_in(self.raw_content)


class Reasoning(Thought, Item, tag="reasoning"):
    known: ClassVar = _COMMON + "encrypted_content"

    def take(self, session: Session) -> None:
        session.say(self.said(), self.id, thought=True)


class Call(Item):
    """A call of a tool."""

    given: Any = None
    call_id: str | None = None
    id: str | None = None
    called: str | None = msgspec.field(default=None, name="name")
    status: str | None = None
    done: ClassVar[bool] = False

    def arguments(self) -> Any:
        """What it was called with."""
        return self.given

    def preview(self) -> str:
        """What tells it from the next one."""
        return call_preview(self.arguments())

    def take(self, session: Session) -> None:
        session.called(
            self.call_id or self.id or None,
            self.called or self.kind().removesuffix("_call"),
            self.preview(),
            self.status or None,
            done=self.done,
        )


class Command(Struct, gc=False):
    """The arguments of most calls."""

    cmd: str = ""


_command: Final = msgspec.json.Decoder(Command).decode


class FunctionCall(Call):
    given: Any = msgspec.field(default=None, name="arguments")

    def arguments(self) -> Any:
        return decode_value(self.given) if isinstance(self.given, str) else self.given

    def preview(self) -> str:
        try:
            return _command(self.given).cmd[:PREVIEW] or super().preview()
        except (ValueError, TypeError, RecursionError):
            return super().preview()


class CustomCall(Call):
    given: Any = msgspec.field(default=None, name="input")


class ShellCall(Call):
    given: Any = msgspec.field(default=None, name="action")


class DoneCall(ShellCall):
    """A call of a tool on the model's side: no output comes."""

    done: ClassVar[bool] = True


_CALLS: Final = (
    *_kinds(FunctionCall, function_call="namespace", tool_search_call="execution"),
    *_kinds(CustomCall, custom_tool_call=""),
    *_kinds(ShellCall, local_shell_call=""),
    *_kinds(DoneCall, web_search_call="", image_generation_call="result revised_prompt"),
)


class Answer(Item):
    """What a tool gave back to the model."""

    call_id: str | None = None
    output: Content = None
    success: bool | None = None
    receiver_thread_ids: Any = None
    new_thread_id: Any = None

    def threads(self) -> list[str]:
        return threads_in(self.receiver_thread_ids, self.new_thread_id, self.output)

    def take(self, session: Session) -> None:
        """Its ``success``, or the exit code that stands before the text, says how it went."""
        output, success = self.output, self.success
        if isinstance(output, Held):
            success = output.success
        text = text_in(output)
        code, message = _exit(text)
        failed = None if success is None else not success
        outcome = Outcome(True, failed, code, None, False, message[-MESSAGE_LIMIT * 4 :])
        session.answered(self, self.call_id or None, text, outcome)


_ANSWERS: Final = _kinds(
    Answer,
    function_call_output="",
    custom_tool_call_output="name",
    tool_search_output="execution status tools",
)


class Ended(Struct, gc=False):
    exit_code: Whole | None = None


class Old(Struct, gc=False):
    """The output of a command as JSON in a text, which early versions wrote; and what a spawned agent is."""

    metadata: Ended | Loose = None
    output: Content = None
    agent_id: str | Loose = None


_old: Final = Schema[Old](Old)


def _exit(text: str) -> tuple[int | None, str]:
    """The exit code that stands before an output, and the output."""
    if text[:1] == "{":
        old = _in_json(text, 1 << 20)
        code = old.metadata.exit_code if old is not None and isinstance(old.metadata, Ended) else None
        return (None, text) if old is None or code is None else (code, text_in(old.output))
    if not text.startswith(_WRITTEN):
        return None, text
    head = text[:_HEADER_LIMIT]
    begin = _OUTPUT.search(head)
    found = _CODE.search(head, 0, begin.start() if begin else len(head))
    return (int(found[1]) if found else None), text[begin.end() :] if begin else text


def _in_json(text: str, limit: int) -> Old | None:
    value = decode_value(text) if text[:1] == "{" and len(text) < limit else None
    return _old.convert(value, {}) if isinstance(value, dict) else None


def threads_in(receivers: Any, new: Any, output: Any) -> list[str]:
    """The threads that a call began, by its output or its event."""
    old = _in_json(output, 1 << 16) if isinstance(output, str) else None
    found = [*(receivers if isinstance(receivers, list) else ()), new, None if old is None else old.agent_id]
    return [thread for thread in found if isinstance(thread, str) and thread]


# ---- how calls went


class Outcome(Struct, gc=False):
    """What a record says of how a call went; each field None where it does not."""

    answered: bool = False
    failed: bool | None = None
    """A status or error field says so."""
    code: int | None = None
    """Exit code of the command."""
    word: str | None = None
    declined: bool = False
    message: str = ""
    started_at: float | None = None
    duration_ms: float | None = None


class Took(Struct, gc=False):
    secs: Finite | None = None
    nanos: Finite | None = None


class Invocation(Struct, gc=False):
    server: str | None = None
    tool: str | None = None
    kind: str | None = None
    arguments: Any = None


class Deed(Struct, gc=False):
    """What an event says of something that a tool did."""

    status: str | None = None
    exit_code: Whole | None = None
    success: bool | None = None
    stderr: str | None = None
    aggregated_output: str | None = None
    stdout: str | None = None
    error: Problem = None
    result: Result | str | list[Part | str] | bool | int | float | None = None
    duration: Took | Loose = None
    command: Any = None

    def failed(self) -> bool | None:
        """Whether a field says that it failed; None where none says anything."""
        meant = OK if self.status == "completed" else None if not self.status else status_of(self.status)
        success, problem, result = self.success, self.problem(), self.result
        inner = result.ok if isinstance(result, Result) else None
        if (
            success is False
            or meant is ERROR
            or (problem is not None and problem is not False)
            or (isinstance(result, Result) and result.is_error)
            or (isinstance(inner, Held) and inner.is_error)
        ):
            return True
        return False if success is True or meant is OK else None

    def problem(self) -> Any:
        """What it says went wrong."""
        result = self.result
        return self.error if not isinstance(result, Result) or result.err is None else result.err

    def outcome(self, begin: float | None, end: float | None, *, going: bool = False) -> Outcome:
        """`begin` and `end` in milliseconds since the epoch, where the event says them."""
        status = self.status or None
        failed = self.failed()
        message = self.stderr or self.aggregated_output or self.stdout or ""
        if failed and not message:
            message = text_in(self.problem()) or self._stated() or self._given_back()
        took = end - begin if begin and end and end >= begin else None
        if took is None and isinstance(self.duration, Took) and self.duration.secs is not None:
            took = self.duration.secs * 1000 + (self.duration.nanos or 0) / 1e6
        ends = status is None or status == "completed" or status_of(status) is not Status.RUNNING
        return Outcome(
            ends and not going,
            failed,
            self.exit_code,
            status,
            status is not None and status != "completed" and plain_word(status) in ("declined", "denied"),
            message[-MESSAGE_LIMIT * 4 :],
            begin / 1000 if begin else None,
            took,
        )

    def _stated(self) -> str:
        return (self.error.message or "") if isinstance(self.error, Held) else ""

    def _given_back(self) -> str:
        result = self.result
        inner = result.ok if isinstance(result, Result) and isinstance(result.ok, Held) else result
        return text_in(inner.content if isinstance(inner, Held) else inner)

    def preview(self) -> str:
        """What tells it from the next one."""
        return call_preview({"command": self.command})

    def tool(self, kind: str) -> str:
        """What it was done with."""
        return _STEMS.get(kind) or kind[:PREVIEW]

    def threads(self) -> list[str]:
        return []


_Arguments: Final[Any] = msgspec.defstruct(
    "Arguments", [(name, Any, None) for name in _ARGUMENTS if name != "command"], bases=(Deed,), gc=False
)


class AnyDeed(_Arguments):  # type: ignore[misc]
    """A deed of any kind."""

    server: str | None = None
    tool_name: str | None = msgspec.field(default=None, name="tool")
    deed_kind: str | None = msgspec.field(default=None, name="kind")
    invocation: Invocation | Loose = None
    arguments: Any = None
    changes: Raw = NULL
    receiver_thread_ids: Any = None
    new_thread_id: Any = None
    output: Content = None

    def preview(self) -> str:
        within = self.invocation.arguments if isinstance(self.invocation, Invocation) else None
        within = self.arguments if within is None else within
        if within is not None:
            return call_preview(within)
        changes = plain(self.changes)
        if isinstance(changes, dict) and changes:
            return str(next(iter(changes)))[:PREVIEW]
        named = ((name, getattr(self, name)) for name in _ARGUMENTS)
        return call_preview({name: value for name, value in named if isinstance(value, str | list)})

    def tool(self, kind: str) -> str:
        """``server.tool`` of a call through MCP, the tool where one is named, else what the kind stands for."""
        named = self.invocation
        if isinstance(named, Invocation):
            server, tool, own = named.server, named.tool, named.kind
        else:
            server, tool, own = self.server, self.tool_name, self.deed_kind
        if tool:
            return (f"{server}.{tool}" if server else tool)[:PREVIEW]
        return _STEMS.get(kind) or (own or kind)[:PREVIEW]

    def threads(self) -> list[str]:
        return threads_in(self.receiver_thread_ids, self.new_thread_id, self.output)


# ---- events


class Event(Payload, tag_field="type"):
    """An event for the screen."""


class Talk(Event):
    """An event that repeats what the model said."""

    thought: ClassVar[bool] = True
    text: str | None = None
    message: str | None = None

    def said(self) -> str:
        """The text."""
        return self.message or self.text or ""

    def take(self, session: Session) -> None:
        session.say(self.said(), None, thought=self.thought, event=True)


class Spoken(Talk, tag="agent_message"):
    known: ClassVar = _COMMON + "author content memory_citation phase recipient"
    thought: ClassVar[bool] = False


class Prompt(Event, tag="user_message"):
    """An event that repeats what the user said."""

    known: ClassVar = _COMMON + "audio client_id images local_audio local_images text_elements"
    message: str | None = None
    content: Content = None
    own_kind: str | None = msgspec.field(default=None, name="kind")
    passed: Passed | Loose = msgspec.field(default=None, name="internal_chat_message_metadata_passthrough")

    def take(self, session: Session) -> None:
        text = text_in(self.content) or self.message or ""
        session.hear("user", context_of(text, self.passed, self.own_kind) or "user", text, event=True)


class Info(Struct, gc=False):
    last_token_usage: Counts | Loose = None
    total_token_usage: Counts | Loose = None


class TokenCount(Event, tag="token_count"):
    """The tokens of the last response, and those of the whole thread."""

    known: ClassVar = _COMMON + "rate_limits"
    info: Info | Loose = None

    def take(self, session: Session) -> None:
        info = self.info
        if isinstance(info, Info):
            session.use(counts(info.last_token_usage), counts(info.total_token_usage), own=False)
        else:
            session.use(None, None, own=False)


class TaskStarted(Event, tag="task_started"):
    known: ClassVar = _COMMON + (
        "collaboration_mode_kind model_context_window root_turn_id started_at turn_attribution turn_id"
    )

    def take(self, session: Session) -> None:
        session.going()
        session.open_turn(implicit=False)


class Fault(Struct, gc=False):
    """An error; its kind is a word, or an object whose only field is one."""

    message: str | Loose = None
    codex_error_info: Any = None
    own_kind: Any = msgspec.field(default=None, name="kind")


class Failure(Fault):
    """An error, itself or within the field ``error``."""

    error: Fault | Loose = None

    def as_error(self) -> Error:
        """What it says of itself."""
        inner = self.error if isinstance(self.error, Fault) else self
        info = inner.own_kind if inner.codex_error_info is None else inner.codex_error_info
        info = next(iter(info), None) if isinstance(info, dict) else info
        kind = info if isinstance(info, str) else None
        said = inner.message if isinstance(inner.message, str) else None
        return Error((said or kind or "error").strip()[:MESSAGE_LIMIT], kind and kind[:PREVIEW])


class TaskComplete(Event, tag="task_complete"):
    """The turn ended; a failure is in its ``error``, or in an event before it after which the model said nothing."""

    known: ClassVar = _COMMON + "completed_at root_turn_id started_at time_to_first_token_ms turn_id"
    duration_ms: Finite | None = None
    error: Failure | Loose = None
    last_agent_message: str | None = None

    def take(self, session: Session) -> None:
        failure, found = session.failure, self.error
        if isinstance(found, Failure):
            failure = found.as_error()
        elif found is not None and found is not False:
            failure = Failure(message=found).as_error()
        status, word = (OK, "task_complete") if failure is None else (ERROR, "error")
        session.end_turn(status, word, failure, self.duration_ms)
        session.last_assistant = self.last_agent_message or session.last_assistant


class TurnAborted(Event, tag="turn_aborted"):
    known: ClassVar = _COMMON + "completed_at root_turn_id started_at turn_id"
    duration_ms: Finite | None = None
    reason: str | None = None

    def shown(self) -> str:
        return self.reason or ""

    def take(self, session: Session) -> None:
        session.end_turn(CANCELLED, self.reason or "aborted", None, self.duration_ms)


class Failed(Failure, Event, tag="error"):
    known: ClassVar = _COMMON

    def take(self, session: Session) -> None:
        session.fail(self.as_error())


class ContextCompacted(Event, tag="context_compacted"):
    known: ClassVar = _COMMON

    def take(self, session: Session) -> None:
        session.compacted()


class Settings(Struct, gc=False):
    model: str | Loose = None


class SettingsApplied(Event, tag="thread_settings_applied"):
    known: ClassVar = _COMMON + "thread_id"
    thread_settings: Settings | Loose = None

    def shown(self) -> str:
        model = self.thread_settings.model if isinstance(self.thread_settings, Settings) else None
        return model if isinstance(model, str) else ""

    def take(self, session: Session) -> None:
        session.uses(self.shown())
        session.beside()


class OfCall(AnyDeed):
    """What an event says of a call, by the id of that."""

    call_id: str | None = None
    old_call_id: str | None = msgspec.field(default=None, name="callId")
    started_at_ms: Finite | None = None
    completed_at_ms: Finite | None = None

    def did(self, session: Session, kind: str) -> bool:
        """Take it, if it is about a call."""
        ident, stem, begin = self.call_id or self.old_call_id, _SUFFIX.sub("", kind), self.started_at_ms
        if not ident or stem not in _STEMS:
            return False
        session.did(ident, stem, self, self.outcome(begin, self.completed_at_ms, going=kind.endswith(_GOING)), begin)
        return True


class ToolEvent(OfCall, Event):
    def shown(self) -> str:
        return next((one for one in (self.message, self.status) if isinstance(one, str) and one), "")

    def take(self, session: Session) -> None:
        if not self.did(session, self.kind()):
            session.alone()


_TOOL_EVENTS: Final = _kinds(
    ToolEvent,
    exec_command_end="cwd formatted_output interaction_input parsed_cmd process_id source turn_id",
    mcp_tool_call_end="action_name app_name connector_id link_id plugin_id read_only_hint",
    patch_apply_end="turn_id",
    web_search_end="action results",
    view_image_tool_call="",
)


class Goal(Struct, gc=False):
    objective: str | Loose = None


class Other(OfCall, Payload):
    """A payload of another kind; the fields of which one says what it is about. It may be about a call."""

    type: Any = None
    reason: Any = None
    thread_name: Any = None
    text: Any = None
    user_facing_hint: Any = None
    model: Any = None
    thread_settings: Settings | Loose = None
    goal: Goal | Loose = None
    content: Content = None

    def kind(self) -> str:
        return self.type if isinstance(self.type, str) else ""

    def shown(self) -> str:
        names = self.message, self.reason, self.thread_name, self.text, self.user_facing_hint, self.model, self.status
        model = self.thread_settings.model if isinstance(self.thread_settings, Settings) else None
        objective = self.goal.objective if isinstance(self.goal, Goal) else None
        found = (one for one in (*names, model, objective) if isinstance(one, str) and one)
        return next(found, None) or text_in(self.content)

    def take(self, session: Session) -> None:
        kind, within = self.kind(), session.record.__struct_config__.tag
        if within == "response_item" and kind.endswith("_output"):
            answer = Answer(self.call_id, self.output, self.success, self.receiver_thread_ids, self.new_thread_id)
            answer.take(session)
        elif within != "event_msg" or not self.did(session, kind):
            session.alone()


# ---- events about an item that was completed


class UserMessage(Struct, gc=False, tag_field="type", tag="UserMessage"):
    content: Content = None

    def take(self, session: Session, event: Completed) -> None:
        text = text_in(self.content)
        session.hear("user", context_of(text, event.passed) or "user", text, event=True, completed=True)


class AgentMessage(Struct, gc=False, tag_field="type", tag="AgentMessage"):
    id: str | None = None
    content: Content = None

    def said(self) -> str:
        """The text."""
        return text_in(self.content)

    def take(self, session: Session, event: Completed) -> None:
        session.say(text_in(self.content), self.id, event=True, began=event.started_at_ms)


class ThoughtItem(Thought, tag_field="type", tag="Reasoning"):
    def take(self, session: Session, event: Completed) -> None:
        session.say(self.said(), self.id, thought=True, event=True, began=event.started_at_ms)


class CommandExecution(Deed, tag_field="type", tag="CommandExecution"):
    id: str | None = None

    def take(self, session: Session, event: Completed) -> None:
        begin, kind = event.started_at_ms, str(self.__struct_config__.tag)
        if self.id:
            session.did(self.id, kind, self, self.outcome(begin, event.completed_at_ms), begin)
        else:
            session.alone()


class DeedItem(AnyDeed, tag_field="type"):  # type: ignore[call-arg]
    id: str | None = None
    take = CommandExecution.take


_ITEMS: Final = frozenset(
    {"CommandExecution", "McpToolCall", "FileChange", "WebSearch", "CollabAgentToolCall", "ImageView"}
    | {"ImageGeneration", "DynamicToolCall", "Extension"}
)
_DEEDS: Final = _kinds(DeedItem, **dict.fromkeys(sorted(_ITEMS - {"CommandExecution"})))


class Completed(Event, tag="item_completed"):
    known: ClassVar = _COMMON + "thread_id turn_id"
    item: tagged(UserMessage, AgentMessage, ThoughtItem, CommandExecution, *_DEEDS, other=Other) | None = None  # type: ignore[valid-type]
    started_at_ms: Finite | None = None
    completed_at_ms: Finite | None = None
    passed: Passed | Loose = msgspec.field(default=None, name="internal_chat_message_metadata_passthrough")

    def kind(self) -> str:
        item = self.item
        name = item.kind() if isinstance(item, Other) else "" if item is None else str(item.__struct_config__.tag)
        return name or "item_completed"

    def shown(self) -> str:
        return self.item.shown() if isinstance(self.item, Other) else getattr(self.item, "status", None) or ""

    def said(self) -> str:
        """The text of what the model said."""
        return self.item.said() if isinstance(self.item, AgentMessage | Thought) else ""

    def threads(self) -> list[str]:
        return self.item.threads() if isinstance(self.item, Deed) else []

    def take(self, session: Session) -> None:
        item = self.item
        if isinstance(item, Other) and item.type == "ContextCompaction":
            session.compacted()
        elif item is None or isinstance(item, Other):
            session.alone()
        else:
            item.take(session, self)


# ---- lines


class Line(Struct, gc=False, kw_only=True, tag_field="type"):
    """A record: its kind, and what it says."""

    known: ClassVar = ""
    timestamp: str | None = None
    ordinal: Any = None
    payload: Any

    def kind(self) -> str:
        """What the record is called."""
        return str(self.payload.kind() or self.__struct_config__.tag)


def _line(kind: str, payload: Any) -> Any:
    return msgspec.defstruct(kind, [("payload", payload)], bases=(Line,), tag=kind, kw_only=True, gc=False)


class OtherLine(Struct, gc=False):
    """A record of an unknown kind."""

    type: str | Loose = None
    timestamp: str | None = None
    ordinal: Any = None
    payload: Other = msgspec.field(default_factory=Other)

    def kind(self) -> str:
        """What the record is called."""
        return self.payload.kind() or (self.type if isinstance(self.type, str) and self.type else "?")


def in_envelope(value: dict[str, Any]) -> dict[str, Any]:
    """A record as it is written today."""
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


_ITEM: Final = tagged(Message, Reasoning, *_CALLS, *_ANSWERS, *_kinds(Item, ghost_snapshot="ghost_commit"), other=Other)
_EVENT: Final = tagged(
    *(Completed, TokenCount, Spoken, Prompt, TaskStarted, TaskComplete, TurnAborted, Failed),
    *_kinds(Talk, agent_reasoning="", agent_reasoning_raw_content=""),
    *(ContextCompacted, SettingsApplied, *_TOOL_EVENTS),
    other=Other,
)
_LINES: Final = {
    "response_item": _ITEM,
    "event_msg": _EVENT,
    "token_usage_record": Used,
    "session_meta": Meta,
    "turn_context": Context,
    "world_state": World,
    "compacted": Compacted,
    "compaction": Compacted,
}
SCHEMA: Final = Schema[Any](
    reduce(or_, (_line(kind, payload) for kind, payload in _LINES.items())), OtherLine, older=in_envelope
)
