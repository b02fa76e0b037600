"""Records of pi sessions: one JSON object a line. The first record is about the session as a whole.

Facts: files of pi 0.74.2 and of the first versions (v1, without ids), and pi's documentation of its session files.
OpenClaw writes the same. A message of the assistant is a model call, each ``toolCall`` block a tool call below it.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from tracetui.formats.agent_log import (
    CANCELLED,
    CHAT,
    DERIVED,
    DONE,
    ERROR,
    EXECUTE_TOOL,
    EXIT,
    EXPLICIT,
    MESSAGE,
    OK,
    UNKNOWN,
    UNKNOWN_KIND,
    Call,
    Outcome,
    claim_of_call,
    row,
    usage_without_cache,
)
from tracetui.formats.bodies import pack_block, preview_of
from tracetui.formats.jsonl import Line
from tracetui.formats.scalars import between, word
from tracetui.formats.schema import NULL, Field, Finite, Loose, Natural, Schema, tag_of, tagged
from tracetui.model import COUNTED_COPY, PREVIEW, Error, Span, Usage, excerpt
from tracetui.model.span import status_of

if TYPE_CHECKING:
    from tracetui.formats.pi import Session

FINAL: Final = frozenset({"stop", "length", "error", "aborted"})
"""Stop reasons after which the agent does nothing more by itself."""
_LATEST: Final = 1e14
"""Milliseconds since the epoch that no clock has shown."""
_STATUSES: Final = {"stop": OK, "toolUse": OK, "length": ERROR, "error": ERROR, "aborted": CANCELLED}
"""How a response ended. One that reached the limit of tokens is cut off."""
_USUAL: Final = frozenset({"stop", "toolUse"})
"""Stop reasons without a note."""
_SKILL: Final = re.compile(r'<skill name="([^"\n]{1,100})" location="')


# ---- parts of records


class Cost(Struct, gc=False):
    total: Finite | None = None


class Tokens(Struct, gc=False, rename="camel"):
    """Usage of a response. pi counts cached input apart from `input`."""

    input: Natural | None = None
    output: Natural | None = None
    cache_read: Natural | None = None
    cache_write: Natural | None = None
    reasoning: Natural | None = None
    cost: Cost | Loose = None


class Block(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: Raw = NULL


class Details(Struct, gc=False, rename="camel"):
    """Details of a tool result; ``durationMs`` is in milliseconds."""

    exit_code: Natural | None = None
    duration_ms: Finite | None = None


Content = str | list[Block] | None
_content: Final[Field[Content]] = Field(Content)


def text_in(content: Content) -> str:
    """The text of a message or of a tool result."""
    if isinstance(content, str) or not content:
        return content if isinstance(content, str) else ""
    if len(content) == 1 and content[0].type == "text":
        return content[0].text or ""
    return "\n".join([part.text for part in content or () if part.type == "text" and part.text is not None])


def as_typed(prompt: str) -> str:
    """A prompt as it was typed: the text of a skill, which pi puts into the prompt, is ``/skill:NAME`` again."""
    prompt = prompt.strip()
    skill = _SKILL.match(prompt)
    if skill is None:
        return prompt
    _, closing, rest = prompt.partition("\n</skill>")
    return f"/skill:{skill[1]} {rest.strip()}".strip() if closing else prompt


def usage_of(tokens: Tokens | Loose) -> Usage | None:
    """Tokens and cost of a response, None if it has neither; cached input is part of the input here."""
    if not isinstance(tokens, Tokens):
        return None
    total = tokens.cost.total if isinstance(tokens.cost, Cost) else None
    total = None if total is not None and total < 0 else total
    return usage_without_cache(
        tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.reasoning, total
    )


# ---- messages, by their role


class Message(Struct, gc=False, rename="camel", tag_field="role"):
    timestamp: Finite | Loose = None
    """Start of the message's activity in milliseconds; the entry has the time of writing."""

    def began(self, written: float | None) -> float | None:
        own = self.timestamp
        if (type(own) is not float and type(own) is not int) or not 0 < own < _LATEST:
            return written
        return written if written is not None and own / 1000 > written else own / 1000

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        raise NotImplementedError


class Outside(Message):
    """A message of the program or an extension."""

    title: ClassVar[str]
    content: Content = None
    summary: str | None = None
    custom_type: str | None = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        session.take_message()
        preview = as_typed(text_in(self.content)) or self.summary or ""
        session.add(_outside(self.title, ident, self.began(when), preview, self.custom_type, line))


class User(Message, tag="user"):
    other_fields: ClassVar = "id parentId type"
    content: Content = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        prompt = as_typed(text_in(self.content))
        if prompt:
            session.user_prompt(prompt)
            session.last_prompt = self.content
        session.take_message()
        session.settle()
        session.add(_outside("user", ident, self.began(when), prompt, None, line))


class Assistant(Message, tag="assistant"):
    other_fields: ClassVar = "api diagnostics id parentId provider responseId responseModel type"
    content: Content = None
    model: str | None = None
    stop_reason: str | None = None
    error_message: str | None = None
    usage: Tokens | Loose = None

    def outcome(self) -> Outcome:
        """From the stop reason."""
        reason = self.stop_reason
        if not reason:
            return OK, DERIVED, None
        status = _STATUSES.get(reason) or status_of(reason)
        if status is not ERROR:
            return status, EXPLICIT, None
        message = self.error_message or f"stopped: {reason}"
        return ERROR, EXPLICIT, Error(excerpt(message), None if reason == "error" else reason)

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        reason, model, content = word(self.stop_reason), word(self.model), self.content
        status, source, error = self.outcome()
        preview, has_text = _preview(content)
        if has_text:
            session.last_answer = content
        if reason not in ("aborted", "error"):
            session.used_model = session.used_model or model
        session.take_message(self if reason in FINAL else None, ident)
        session.settle()
        session.steps += 1
        started = self.began(when)
        span = Span(
            ident,
            model or "assistant",
            CHAT,
            step=session.steps,
            is_step=True,
            status=status,
            status_word=reason,
            status_source=source,
            started_at=started,
            duration_ms=between(started, when) or None,
            usage=usage_of(self.usage),
            error=error,
            model=model,
            preview=preview,
            note="" if reason is None or reason in _USUAL else reason[:PREVIEW],
            at=line.packed(),
        )
        span = session.add(span)
        for number, block in enumerate(content if isinstance(content, list) else ()):
            if block.type == "toolCall":
                self._call(session, span, block, number, when, line)
        if reason in FINAL:  # cut off before anything was called
            session.settle()

    def _call(self, session: Session, span: Span, block: Block, number: int, when: float | None, line: Line) -> None:
        key = block.id or None
        ident = key if key != span.id and session.is_free(key) else f"l{line.number}.{number}"
        note, at = COUNTED_COPY if span.taken_over else "", pack_block(number) + line.packed()
        name, preview = word(block.name) or "tool", preview_of(block.arguments)
        call = Call(ident, name, EXECUTE_TOOL, span.id, span.step, when, at, preview, note)
        call.claim = claim_of_call(span.claim, key)
        session.call(key, call, line)


class ToolResult(Message, tag="toolResult"):
    other_fields: ClassVar = "id parentId type"
    content: Raw = NULL
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool | None = None
    details: Details | Loose = None
    usage: Tokens | Loose = None

    def outcome(self) -> Outcome:
        """From ``isError``, else from the exit code of some tools, else ok."""
        code = self.details.exit_code if isinstance(self.details, Details) else None
        if self.is_error:
            return ERROR, EXPLICIT, Error(excerpt(text_in(_content.value(self.content))) or "failed")
        if code:
            return ERROR, EXIT, _exit(code, text_in(_content.value(self.content)))
        return OK, EXPLICIT if self.is_error is False else DERIVED, None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        session.take_message()
        call = session.call_of(self.tool_call_id or None, line)
        status, source, error = self.outcome()
        if call is None:
            facts = {"operation": EXECUTE_TOOL, "status": status, "status_source": source, "error": error}
            preview = text_in(_content.value(self.content))[:PREVIEW]
            name, usage = self.tool_name or "toolResult", usage_of(self.usage)
            session.add(row(ident, name, when, line, usage=usage, preview=preview, **facts))
            return
        session.notes = None
        stated = self.details.duration_ms if isinstance(self.details, Details) else None
        call.status, call.source, call.error = status, source, error
        call.duration_ms = between(call.started_at, when) if stated is None or stated < 0 else stated
        call.usage = usage_of(self.usage)
        call.add_line(line)
        session.emit(call)


class BashExecution(Message, tag="bashExecution"):
    """A command that the user ran within the session."""

    other_fields: ClassVar = "excludeFromContext fullOutputPath id parentId truncated type"
    command: str | None = None
    output: str | None = None
    exit_code: int | None = None
    cancelled: bool | None = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        code, status, source, error = self.exit_code, UNKNOWN, DERIVED, None
        if self.cancelled:
            status, source = CANCELLED, EXPLICIT
        elif code is not None:
            status, source = (ERROR if code else OK), EXIT
            error = _exit(code, self.output or "") if code else None
        facts = {"operation": EXECUTE_TOOL, "status": status, "status_source": source, "error": error}
        command = (self.command or "")[:PREVIEW]
        session.add(row(ident, "bash", when, line, preview=command, note="by the user", **facts))


class OtherMessage(Struct, gc=False):
    """A message of an unknown role."""

    role: str | Loose = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        session.take_message()
        name = f"message {self.role}" if isinstance(self.role, str) and self.role else "message"
        session.add(row(ident, name[:PREVIEW], when, line, operation=UNKNOWN_KIND))


_OUTSIDE: Final = [
    msgspec.defstruct("Outside", [], bases=(Outside,), namespace={"title": title}, tag=role, gc=False)
    for role, title in {
        "custom": "custom message",
        "hookMessage": "custom message",
        "branchSummary": "branch summary",
        "compactionSummary": "compaction summary",
        "system": "system",
    }.items()
]


# ---- entries, by their type


class Entry(Struct, gc=False, rename="camel", tag_field="type"):
    """Fields of every record. `parent_id` is the preceding entry, None for a new beginning."""

    other_fields: ClassVar[str | None] = "role"
    id: str | None = None
    parent_id: str | UnsetType | None = UNSET
    timestamp: str | None = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        raise NotImplementedError


class Talk(Entry, tag="message"):
    other_fields: ClassVar = ""
    message: (
        tagged(User, Assistant, ToolResult, BashExecution, *_OUTSIDE, other=OtherMessage)  # type: ignore[valid-type]
        | None
    ) = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        (self.message or OtherMessage()).take(session, ident, when, line)


class Begin(Entry, tag="session"):
    """The first record: about the session as a whole. A later one is a note."""

    other_fields: ClassVar = "provider role thinkingLevel"
    cwd: str | None = None
    version: Any = None
    model_id: str | None = None
    parent_session: str | None = None
    branched_from: str | None = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        session.note(f"l{line.number}", "session", when, line)


class Note(Entry):
    """A note of the program."""

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        kind, value = tag_of(self), getattr(self, "value", None)
        if kind == "model_change":
            session.chosen_model = session.chosen_model or value or None
        elif kind == "session_info":
            session.title = value or None
        label = kind.removesuffix("_change").removesuffix("_level").replace("_", " ")
        session.note(f"l{line.number}", (f"{label} {value}" if value else label)[:PREVIEW], when, line)


_NOTES: Final[dict[str, tuple[str, str | None]]] = {
    "model_change": ("modelId", "provider role"),
    "thinking_level_change": ("thinkingLevel", "role"),
    "label": ("label", "role targetId"),
    "session_info": ("name", "role"),
    "custom": ("customType", "data role"),
    "context_edit": ("", None),
    "context_transform": ("transformerName", None),
    "ephemeral": ("", None),
}
"""The field in the label of the note, and `other_fields` (None: the type is poorly understood)."""


def _note(kind: str, name: str, others: str | None) -> Any:
    fields = [("value", str | None, msgspec.field(default=None, name=name))] if name else []
    return msgspec.defstruct("Note", fields, bases=(Note,), namespace={"other_fields": others}, tag=kind, gc=False)


class Compaction(Entry, tag="compaction"):
    """The conversation so far was replaced by a summary of it."""

    other_fields: ClassVar = "details firstKeptEntryId fromHook role"
    summary: str | None = None
    tokens_before: Natural | None = None
    usage: Tokens | Loose = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        before = self.tokens_before
        note = "" if before is None else f"{before} tokens"
        facts = {"usage": usage_of(self.usage), "note": note, **DONE}
        session.add(row(ident, "compaction", when, line, preview=(self.summary or "")[:PREVIEW], **facts))


class CustomMessage(Entry, tag="custom_message"):
    """A message of an extension."""

    other_fields: ClassVar = "details display role"
    content: Content = None
    custom_type: str | None = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        session.take_message()
        preview = as_typed(text_in(self.content))
        session.add(_outside("custom message", ident, when, preview, self.custom_type, line))


class BranchSummary(Entry, tag="branch_summary"):
    """The summary of an abandoned branch for the model."""

    other_fields: ClassVar = "details fromHook fromId role"
    summary: str | None = None
    usage: Tokens | Loose = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        session.take_message()
        session.add(_outside("branch summary", ident, when, self.summary or "", None, line, usage_of(self.usage)))


class Spent(Entry, tag="usage"):
    """Tokens that were used outside of the conversation."""

    other_fields: ClassVar = None
    usage: Tokens | Loose = None
    model: str | None = None
    kind: str | None = None
    remark: str | None = msgspec.field(default=None, name="note")

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        session.notes = None
        facts = {"usage": usage_of(self.usage), **session.below_top(), **DONE}
        facts |= {"model": self.model or None, "preview": (self.kind or self.remark or "")[:PREVIEW]}
        span = row(ident, "usage", when, line, **facts)
        session.emit(session.own(span))


class Other(Struct, gc=False, rename="camel"):
    """A record of an unknown kind, with all its fields."""

    type: str | Loose = None
    id: str | None = None
    parent_id: str | UnsetType | None = UNSET
    timestamp: str | None = None

    def take(self, session: Session, ident: str, when: float | None, line: Line) -> None:
        name = self.type if isinstance(self.type, str) and self.type else "?"
        session.notes = None
        facts = session.below_top()
        session.emit(row(f"l{line.number}", name[:PREVIEW], when, line, operation=UNKNOWN_KIND, **facts))


SCHEMA: Final = Schema[Any](
    reduce(
        or_,
        (_note(kind, *note) for kind, note in _NOTES.items()),
        Talk | Begin | Compaction | CustomMessage | BranchSummary | Spent,
    ),
    Other,
)


# ---- helpers


def _outside(
    title: str, ident: str, when: float | None, preview: str, kind: str | None, line: Line, usage: Usage | None = None
) -> Span:
    """A prompt, or a message of the program or an extension."""
    facts = {"operation": MESSAGE, "usage": usage, "note": (kind or "")[:PREVIEW], **DONE}
    return row(ident, title, when, line, preview=preview[:PREVIEW], **facts)


def _preview(content: Content) -> tuple[str, bool]:
    """The beginning of the first text of a response, else of its first thought; and whether it has text."""
    if isinstance(content, str):
        return content[:PREVIEW], bool(content.strip())
    first = thought = ""
    for block in content or ():
        if block.type == "text" and block.text:
            first = first or block.text[:PREVIEW]
            if not block.text.isspace():
                return first, True
        elif block.type == "thinking" and not thought:
            thought = (block.thinking or "")[:PREVIEW]
    return first or thought, False


def _exit(code: int, output: str) -> Error:
    kind = f"exit {code}"[:PREVIEW]
    return Error(excerpt(output.strip()) or kind, kind)
