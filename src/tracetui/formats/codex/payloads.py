"""Payloads of Codex records that are not tool calls: their common fields, the thread, and its messages.

Facts: files of codex 0.169.0, and public ones of 0.50 to 0.149.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from tracetui.formats.bodies import as_json
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import mapping
from tracetui.formats.schema import Finite, Integer, Loose, tag_of
from tracetui.model import PREVIEW, Usage

if TYPE_CHECKING:
    from tracetui.formats.codex.session import Session

_CONTEXT: Final = re.compile(r"<([A-Za-z_][\w-]{0,60})>")
_INSTRUCTIONS: Final = "# AGENTS.md instructions"
_LABELS: Final = ("message", "reason", "thread_name", "text", "user_facing_hint", "model", "status")
"""Fields that may be the preview of a record."""
_FILE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
COMMON: Final = "id internal_chat_message_metadata_passthrough metadata "
"""Fields that any payload may have."""


# ---- parts of records


class Part(Struct, gc=False):
    text: str | None = None


Texts = str | list[Part | str] | None


class Content(Struct, gc=False, rename={"is_error": "isError"}):
    """A content, output, error or result that is an object."""

    content: Texts = None
    text: Texts = None
    message: str | None = None
    success: bool | None = None
    is_error: bool | None = None


Contents = str | list[Part | str] | Content | None
Scalar = bool | int | float


class Result(Content, gc=False, rename={"is_error": "isError", "ok": "Ok", "err": "Err"}):
    """The result of a tool; ``Ok`` or ``Err`` where it is a `Result` of Rust."""

    ok: Content | Loose = None
    err: Contents | Scalar = None


class Counts(Struct, gc=False, frozen=True):
    """Tokens, in the order of the fields of `Usage`. Cached input is within the input, reasoning within the output."""

    input_tokens: Integer | None = None
    output_tokens: Integer | None = None
    total_tokens: Integer | None = None
    cached_input_tokens: Integer | None = None
    cache_write_input_tokens: Integer | None = None
    reasoning_output_tokens: Integer | None = None

    def usage(self) -> Usage | None:
        """None if there are no tokens."""
        numbers = astuple(self)
        return Usage(*numbers) if any(numbers) else None

    def minus(self, before: Counts | None) -> Counts:
        """The difference to an earlier total; a total that became smaller started again."""
        now, then = astuple(self), () if before is None else astuple(before)
        if not then or any((a or 0) < (b or 0) for a, b in zip(now, then, strict=True)):
            return self
        return Counts(*(None if a is None else a - (b or 0) for a, b in zip(now, then, strict=True)))


def text_in(content: Any) -> str:
    """The text of a message's or an output's content: text itself, or the texts of its parts."""
    if type(content) is str:
        return content
    if type(content) is list:
        if len(content) == 1 and type(content[0]) is Part:
            return content[0].text or ""
        texts = [part.text if isinstance(part, Part) else part for part in content]
        return "\n".join([text for text in texts if text is not None])
    if isinstance(content, Content):
        return text_in(content.text if content.content is None else content.content)
    return ""


def object_in(text: str, limit: int) -> dict[str, Any]:
    """The JSON object that a text is; an empty one for any other text, and for one of more than `limit` characters."""
    return mapping(decode_value(text)) if text[:1] == "{" and len(text) < limit else {}


def call_preview(value: Any) -> str:
    """The argument that distinguishes a call from the next one."""
    if isinstance(value, str):
        touched = _FILE.search(value[:4096])
        return (touched[1] if touched else value.lstrip().partition("\n")[0])[:PREVIEW]
    if not isinstance(value, dict):
        return "" if value is None else as_json(value)
    for name in ARGUMENTS:
        found = value.get(name)
        if isinstance(found, list) and found and all(isinstance(part, str) for part in found):
            shell = len(found) == 3 and found[1] in ("-lc", "-c")
            return (found[2] if shell else " ".join(part[:PREVIEW] for part in found[:PREVIEW]))[:PREVIEW]
        if isinstance(found, str) and found:
            return found[:PREVIEW]
    return as_json(value) if value else ""


# ---- payloads


class Payload(Struct, gc=False):
    """The payload of a record. A kind that is not interpreted is a separate row."""

    counted_as: ClassVar[str] = ""
    """The kind of a record without a tag."""

    def kind(self) -> str:
        """The kind of the record."""
        return tag_of(self) or self.counted_as

    def label(self) -> str:
        """The preview of a separate row."""
        found = (getattr(self, name, None) for name in _LABELS)
        return next((one for one in found if isinstance(one, str) and one), "")

    def threads(self) -> list[str]:
        """The threads of agents that a call began."""
        return []

    def take(self, session: Session) -> None:
        """Interpret the record."""
        session.add_record()


def threads_in(receivers: Any, new: Any, output: Any) -> list[str]:
    """The threads of agents that a call began, by its output or its event."""
    found = [*receivers] if isinstance(receivers, list) else []
    if new is not None:
        found.append(new)
    if isinstance(output, str) and output[:1] == "{":
        found.append(object_in(output, 1 << 16).get("agent_id"))
    return [thread for thread in found if isinstance(thread, str) and thread] if found else found


def variants_of(base: Any, tags: Mapping[str, str | None], **attributes: Any) -> list[Any]:
    """Kinds of payloads that differ from `base` in their tag only, each with its `other_fields`; None: any."""
    return [
        msgspec.defstruct(
            tag,
            [],
            bases=(base,),
            tag=tag,
            namespace=attributes if names is None else attributes | {"other_fields": COMMON + names},
            gc=False,
        )
        for tag, names in tags.items()
    ]


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
        "originator runtime_workspace_roots session_id thread_source type"
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
        found = within.thread_spawn if isinstance(within, Subagent) else None
        return found if isinstance(found, Spawn) else None

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

    other_fields: ClassVar = (
        COMMON + "first_window_id previous_window_id replacement_history type window_id window_number"
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
        kinds = [one for one in named if isinstance(one, str)]
        if any(one.startswith("user.") for one in kinds):
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


# ---- events about tool calls, and all other events


class Arguments(Item):
    """Arguments that distinguish one call from the next, the most specific first."""

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


ARGUMENTS: Final = Arguments.__struct_fields__[len(Item.__struct_fields__) :]
