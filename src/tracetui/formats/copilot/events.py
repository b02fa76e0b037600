"""Events of a Copilot session: their common fields, the session as a whole, errors, messages and token usage.

Facts: files of version 1.0.102, public ones of 0.0.420 to 1.0.77, and the schema of events that GitHub's own SDK
publishes. `parentId` is the previous event, not an enclosing one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import UNSET, Raw, Struct, field
from msgspec.structs import replace

from tracetui.formats.agent_log import CANCELLED, DERIVED, EXPLICIT, MESSAGE, OK
from tracetui.formats.bodies import argument, preview_of
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import mapping, without, word
from tracetui.formats.schema import NULL, Finite, Integer, Loose, plain, tag_of
from tracetui.model import PREVIEW, Blob, Error, Operation, Part, Reasoning, Text, ToolCall, Usage, excerpt

if TYPE_CHECKING:
    from tracetui.formats.copilot.session import Session

OTHER: Final = Operation.OTHER
NAMELESS: Final = "?"
"""The kind of an event that has none."""
ABORT: Final = "abort"
_QUIET: Final = frozenset({"stop", "tool_calls", "end_turn", "tool_use", "stop_sequence"})
"""Finish reasons that are not worth a note."""
_CUT: Final = frozenset({"length", "content_filter", "max_tokens", "refusal"})
"""Finish reasons of incomplete responses."""
_TEXTS: Final = ("message", "content", "summary", "intent", "title", "name", "reason", "error", "path")
"""Fields that describe an event in one line."""


_LIMIT: Final = 1 << 53
"""Counts are below it: exact in any program."""
Count = Integer | Finite
"""A number that some versions write as a float."""


class Content(Struct):
    """The content of a body other than its attributes."""

    parts: list[Part] = []
    input: Any = None
    output: Any = None
    role: str = "user"
    finish_reason: str | None = None


# ---- fields of all events


class Data(Struct, gc=False, rename="camel"):
    """The field ``data`` of events: its effect on the session, and the content of its body."""

    kinds: ClassVar = ""
    """Kinds of events that have this data, between blanks."""
    other_fields: ClassVar[str | None] = None
    """Names of fields that are not used; with None, unknown fields are not counted."""

    parent_tool_call_id: str | None = None
    """The call that began the sub-agent of this event: the only link to that in old versions."""

    def preview(self) -> str:
        """The event in one line."""
        texts = (getattr(self, name, None) for name in _TEXTS)
        return next((text.strip()[:PREVIEW] for text in texts if isinstance(text, str) and text), "")

    def take(self, session: Session) -> None:
        """Add the event to the session; most events have a row of their own."""
        session.add_record()

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        """Move the shown fields of the data from `fields` to `content`."""


class Event(Struct, gc=False, rename="camel"):
    """A line. There is a subclass of each kind."""

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
    other_fields: ClassVar = "alreadyInUse contextTier producer reasoningEffort remoteSteerable version"
    session_id: str | None = None
    start_time: str | None = None
    copilot_version: str | None = None
    selected_model: str | None = None
    context: Context | Loose = None
    detached_from_spawning_parent_session_id: str | None = None

    def take(self, session: Session) -> None:
        session.use_model(self.selected_model)
        if session.start is not None or session.conversation is not session.main:
            session.add_record()
            return
        session.start, session.extent, session.head = self, session.line.byte_range, session.line.data


class Resume(Data):
    kinds: ClassVar = "session.resume"
    other_fields: ClassVar = "alreadyInUse context eventCount remoteSteerable resumeTime"
    selected_model: str | None = None

    def take(self, session: Session) -> None:
        session.close_all()
        session.use_model(self.selected_model)
        session.add_record()


class ModelChange(Data):
    kinds: ClassVar = "session.model_change"
    other_fields: ClassVar = "contextTier reasoningEffort source"
    previous_model: str | None = None
    new_model: str | None = None

    def preview(self) -> str:
        before, after = self.previous_model, self.new_model
        return (f"{before} → {after}" if before and after else after or "")[:PREVIEW]

    def take(self, session: Session) -> None:
        session.use_model(self.new_model)
        session.add_record()


class Shutdown(Data):
    """The session ended; it may be resumed."""

    kinds: ClassVar = "session.shutdown"
    other_fields: ClassVar = (
        "agentMetrics codeChanges conversationTokens currentTokens eventsFileSizeBytes providerModelMetrics "
        "sessionStartTime systemTokens toolDefinitionsTokens totalPremiumRequests "
        "usageAccountingWatermarks"
    )
    shutdown_type: str | None = None
    error_reason: str | None = None
    current_model: str | None = None
    total_api_duration_ms: Finite | None = None
    model_metrics: Any = None
    accounting_snapshot: Any = None
    token_details: Any = None
    total_nano_aiu: Finite | None = None

    def preview(self) -> str:
        return (self.shutdown_type or "")[:PREVIEW]

    def take(self, session: Session) -> None:
        session.close_all()
        uncounted = session.ledger.shut_down(
            self.model_metrics,
            self.accounting_snapshot,
            self.token_details,
            self.total_api_duration_ms,
            dollars_of(self.total_nano_aiu),
        )
        for number, (model, usage) in enumerate(uncounted):
            session.add_usage(number, model or self.current_model or session.main.model, usage)
        session.end = self
        session.use_model(self.current_model)
        if self.shutdown_type != "error":
            session.add_record()
            return
        error = Error(excerpt(self.error_reason or "crashed"))
        session.fail(session.main, session.add_record(OTHER), error)


class Info(Data):
    kinds: ClassVar = "session.info"
    other_fields: ClassVar = "infoType"
    message: Any = None


class Notification(Data):
    kinds: ClassVar = "system.notification"
    other_fields: ClassVar = "kind"
    content: Any = None


class Truncation(Data):
    kinds: ClassVar = "session.truncation"
    other_fields: ClassVar = (
        "droppedTokens messagesRemovedDuringTruncation performedBy postTruncationMessagesLength "
        "preTruncationMessagesLength reason tokenLimit tokensRemovedDuringTruncation"
    )
    pre_truncation_tokens_in_messages: Finite | None = None
    post_truncation_tokens_in_messages: Finite | None = None

    def preview(self) -> str:
        return token_change(self.pre_truncation_tokens_in_messages, self.post_truncation_tokens_in_messages)


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
        return Error(excerpt(message or kind or "error"), kind and kind[:PREVIEW])


class SessionError(Fault):
    """Something failed that is no call of a tool."""

    kinds: ClassVar = "session.error"
    other_fields: ClassVar = "providerCallId serviceRequestId stack statusCode"

    def take(self, session: Session) -> None:
        session.fail(session.conversation, session.add_record(OTHER), self.error)


class CallFailure(Fault):
    """A call of the model failed, and may be tried again."""

    kinds: ClassVar = "model.call_failure"

    def take(self, session: Session) -> None:
        row, error = session.add_record(OTHER), self.error
        row.fail(error)
        row.preview = error.message[:PREVIEW]


class Abort(Data):
    """The model was stopped: its open calls and its turn are cancelled."""

    kinds: ClassVar = ABORT
    other_fields: ClassVar = ""
    reason: str | None = None

    def take(self, session: Session) -> None:
        conversation, reason = session.conversation, (self.reason or "aborted")[:PREVIEW]
        session.settle(conversation, CANCELLED, EXPLICIT)
        row = session.add_record(OTHER)
        row.preview, row.status, row.source = reason, CANCELLED, EXPLICIT
        if (turn := conversation.turn) is not None:
            turn.status, turn.source, turn.status_word = CANCELLED, EXPLICIT, reason
            session.emit(turn)
        conversation.resume()
        conversation.stopped = reason
        session.has_outcome = session.has_outcome or conversation is session.main


# ---- messages and responses


class UserMessage(Data):
    """A prompt, or a message of the program in the user's name."""

    kinds: ClassVar = "user.message"
    other_fields: ClassVar = "delivery messageId parentAgentTaskId supportedNativeDocumentMimeTypes transformedContent"
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
            content.parts += [Blob(word(mapping(item).get("type")) or "attachment", item) for item in attached]
        if self.role == content.role:
            del fields["role"]


class SystemMessage(UserMessage):
    """A message of the program to the model."""

    kinds: ClassVar = "system.message"
    other_fields: ClassVar = "metadata"

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
    other_fields: ClassVar = (
        "chunkCount chunkIndex clientRequestId encryptedContent messageId originatingMessageId reasoningOpaque "
        "requestId rte serviceRequestId"
    )
    content: str | None = None
    reasoning_text: str | None = None
    api_call_id: str | None = None
    model: str | None = None
    output_tokens: Count | None = None
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
                added = Usage(output_tokens=output - (before or 0))
                session.ledger.add_message(added, row.model or conversation.model)
                row.usage = Usage(output_tokens=output)
        for request in self.tool_requests or ():
            session.request_call(request.tool_call_id, word(request.name) or "tool", request.arguments, row)

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
    other_fields: ClassVar = "reasoningId"
    content: str | None = None

    def take(self, session: Session) -> None:
        conversation = session.conversation
        joins = conversation.response is not None and not conversation.has_message
        session.respond(None, (self.content or "").strip(), joins=joins)

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        if self.content is not None:
            content.parts.append(Reasoning(fields.pop("content")))


class Tokens(Data):
    """Tokens of one call, or of several."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None

    def counts(self) -> Usage:
        """The usage; input includes cache reads and writes, output includes reasoning."""
        cached, written, thought = self.cache_read_tokens, self.cache_write_tokens, self.reasoning_tokens
        numbers: list[Any] = [
            value if type(value) is int and 0 <= value < _LIMIT else as_count(value)
            for value in (self.input_tokens, self.output_tokens, None, cached, written, thought)
        ]
        return Usage(*numbers)


class Account(Struct, gc=False, rename="camel"):
    """Which session paid for a call, and the number that the call has there."""

    source_session_id: str | None = None
    sequence: Count | None = None


class Billing(Struct, gc=False, rename="camel"):
    """What GitHub bills for a call."""

    total_nano_aiu: Finite | None = None


def dollars_of(nano_credits: float | None) -> float | None:
    """US dollars of billionths of an AI credit, which costs a cent. None for 0: such calls are billed otherwise."""
    return nano_credits * 1e-11 if nano_credits is not None and nano_credits > 0 else None


class CallUsage(Tokens):
    """The usage of one model call."""

    model: str | None = None
    api_call_id: str | None = None
    cost: Finite | None = None
    """Premium requests."""
    duration: Finite | None = None
    """Milliseconds."""
    copilot_usage: Billing | Loose = None
    finish_reason: str | None = None
    interaction_type: str | None = None
    accounting: Account | Loose = None

    @property
    def key(self) -> tuple[str, int] | None:
        """Identifies the record, because a resumed session may repeat it."""
        account = self.accounting
        if not isinstance(account, Account) or account.source_session_id is None:
            return None
        number = as_count(account.sequence)
        return None if number is None else (account.source_session_id, number)


class UsageRecord(CallUsage):
    """The usage of a call. Old versions, in ``assistant.usage``, have its fields instead of `usage`."""

    kinds: ClassVar = "session.usage_record"
    other_fields: ClassVar[str | None] = ""
    usage: CallUsage | Loose = None

    @property
    def call(self) -> CallUsage:
        return self.usage if isinstance(self.usage, CallUsage) else self

    def take(self, session: Session) -> None:
        conversation, call = session.conversation, self.call
        ident, usage, billing = call.api_call_id or None, call.counts(), call.copilot_usage
        if isinstance(billing, Billing) and (cost := dollars_of(billing.total_nano_aiu)) is not None:
            usage = replace(usage, cost_usd=cost)
        session.use_model(call.model)
        joins = conversation.is_of(ident, otherwise=not conversation.has_record)
        if session.is_counted(call) or (joins and conversation.has_record):
            session.add_record().preview = "counted before"
            return
        session.ledger.add_record(call, usage)
        if joins and conversation.response is not None and conversation.response.usage is not None:
            session.ledger.remove_message(conversation.response.usage)
        is_compaction = not joins and "compaction" in (call.interaction_type or "")
        compaction = session.pairs.get(f"compaction {conversation.key}") if is_compaction else None
        if compaction is not None:
            session.extend(compaction)
            compaction.usage = usage or None
            return
        row = session.respond(ident, "", joins=joins, is_record=True)
        conversation.has_record = True
        row.usage, row.duration_ms = usage or None, None
        if call.duration is not None and call.duration >= 0:
            row.duration_ms = call.duration
            if session.time is not None:
                row.started_at = session.time - call.duration / 1000
        if reason := word(call.finish_reason):
            if reason in _CUT:
                row.status_word = reason
                row.fail(Error(f"stopped: {reason}", reason))
            else:
                row.status_word = reason[:PREVIEW]
                row.note = "" if reason in _QUIET else reason[:PREVIEW]

    def show(self, content: Content, fields: dict[str, Any]) -> None:
        content.finish_reason = self.call.finish_reason or content.finish_reason


class OldUsageRecord(UsageRecord):
    kinds: ClassVar = "assistant.usage"
    other_fields: ClassVar = None


class TurnStart(Data):
    """A turn of a conversation: a response and its calls."""

    kinds: ClassVar = "assistant.turn_start"
    other_fields: ClassVar = "model"

    def take(self, session: Session) -> None:
        session.open_turn()


class TurnEnd(Data):
    kinds: ClassVar = "assistant.turn_end"
    other_fields: ClassVar = "model"

    def take(self, session: Session) -> None:
        conversation = session.conversation
        if (turn := conversation.turn) is None:
            session.add_record()
            return
        session.end_row(turn)
        turn.status, turn.source = OK, DERIVED
        if conversation.stopped is not None:
            turn.status, turn.source, turn.status_word = CANCELLED, EXPLICIT, conversation.stopped
        elif conversation.failure is not None:
            turn.fail(conversation.failure)
        conversation.end_turn()


# ---- helpers


def as_count(value: float | None) -> int | None:
    """`value` if it is a whole number of at most 53 bits that counts something."""
    return None if value is None or not 0 <= value < _LIMIT or value % 1 else int(value)


def arguments_in(given: Raw) -> Any:
    """The arguments of a call; some versions write them as JSON inside a text."""
    decoded = plain(given)
    return decode_value(decoded) if isinstance(decoded, str) else decoded


def call_preview(given: Raw) -> str:
    """The most telling argument of a call."""
    return preview_of(given) if memoryview(given)[0] != ord('"') else argument(arguments_in(given))


def token_change(before: float | None, after: float | None) -> str:
    """``150000 → 20000 tokens``, or only the recorded one."""
    counts = [str(count) for count in (as_count(before), as_count(after)) if count is not None]
    return f"{' → '.join(counts)} tokens" if counts else ""
