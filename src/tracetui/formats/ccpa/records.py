"""Records of a ccpa trace: the fields of each kind, and its interpretation. One JSON object per line.

Facts: paiml/claude-code-parity-apr. Its ``crates/ccpa-trace/src/lib.rs``, contract and fixtures have the fields that
are on disk, its page "Trace JSON Schema reference" documents others. Both are read: the real name of a field before
the documented one. A turn is a model call, each of its ``tool_use`` blocks a tool call below it. No record but the
first has a time.
"""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

from msgspec import Raw, Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import (
    CHAT,
    DERIVED,
    ERROR,
    EXECUTE_TOOL,
    EXIT,
    EXPLICIT,
    MESSAGE,
    OK,
    UNKNOWN_KIND,
    Call,
    span_ref,
    unmatched,
)
from tracetui.formats.bodies import argument, pack_block, preview_of
from tracetui.formats.jsonl import Line
from tracetui.formats.schema import NULL, Finite, Integer, Loose, Schema, plain, tag_of
from tracetui.model import PREVIEW, Error, Operation, Span, Status, StatusSource, Usage, excerpt
from tracetui.model.span import plain_word, status_of

if TYPE_CHECKING:
    from tracetui.formats.ccpa import Session

HOOK: Final = Operation.HOOK
OTHER: Final = Operation.OTHER
_QUIET: Final = frozenset({"end_turn", "tool_use"})
"""Stop reasons that go without saying."""
_TASKS: Final = ("prompt",)
"""Arguments with the task of an agent."""


# ---- parts of records


class Block(Struct, gc=False):
    """A part of a turn; a thought is in ``thinking`` on disk, in ``text`` in the document."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NULL

    def call(self, parent: str, at: bytes, index: int, step: int | None) -> Call:
        """The tool call that the block is, of the turn `parent`; it waits for its answer."""
        name = intern(self.name) if self.name else "tool"
        preview = preview_of(self.input, tasks=_TASKS)
        return Call(f"{parent}.{index}", name, EXECUTE_TOOL, parent, step, None, at, preview)


class Effects(Struct, gc=False):
    """Side effects of a call."""

    exit_code: Integer | None = None


def content_text(content: Any) -> str:
    """The text of a prompt or of a tool's answer, also where it is a list of text parts."""
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


# ---- records


class Base(Struct, gc=False):
    """Fields of every record."""

    turn: Integer | None = None

    def row(self, ident: str, at: bytes, model: str | None = None) -> Span:
        """The row that the record is by itself; `model` is the model of the session."""
        kind = kind_of(self)
        operation = OTHER if kind in KINDS else UNKNOWN_KIND
        return Span(id=ident, name=kind[:PREVIEW], operation=operation, step=self.turn, at=span_ref(at, operation))

    def take(self, session: Session, line: Line) -> None:
        """Add the record to the session."""
        session.add(self.row(f"l{line.number}", line.packed()))


class Other(Base):
    """A record of an unknown kind."""

    kind: str | Loose = None


class Record(Base, tag_field="kind"):
    """A record of a kind in the schema."""

    other_fields: ClassVar = "v"


class Start(Record, tag="session_start"):
    """The first record; a second one is a problem."""

    other_fields: ClassVar = "cwd cwd_sha256 git_commit"
    v: Any = None
    session_id: str | None = None
    ts: str | None = None
    actor: str | None = None
    model: str | None = None

    def take(self, session: Session, line: Line) -> None:
        if session.start is not None:
            session.problem(line, "a second session_start")
            super().take(session, line)
            return
        if session.records > 1:
            session.problem(line, "session_start is not the first record")
        session.start, session.head, session.model = self, line.data, self.model


class Prompt(Record, tag="user_prompt"):
    """A prompt."""

    other_fields: ClassVar = "attachments v"
    text: Any = None

    def row(self, ident: str, at: bytes, model: str | None = None) -> Span:
        return Span(
            id=ident,
            name="user",
            operation=MESSAGE,
            step=self.turn,
            status=OK,
            status_source=DERIVED,
            preview=content_text(self.text)[:PREVIEW],
            at=at,
        )

    def take(self, session: Session, line: Line) -> None:
        session.settle()
        prompt = content_text(self.text)
        if session.prompt is None and not session.skipped:
            session.prompt = prompt[:PREVIEW]
        session.last_user = prompt
        super().take(session, line)


class Turn(Record, tag="assistant_turn"):
    """One answer of the model. Its stop reason decides its status: one cut off at its token limit failed."""

    blocks: list[Block] = []
    stop_reason: str | None = None

    def row(self, ident: str, at: bytes, model: str | None = None) -> Span:
        word, status, source, note, error = self.stop_reason, OK, DERIVED, "", None
        if word is not None:
            source = EXPLICIT
            if word not in _QUIET:
                status = status_of(word)
                note = "" if plain_word(word) in _QUIET else word[:PREVIEW]
                error = Error(f"stopped: {word}", word) if status is ERROR else None
        return Span(
            id=ident,
            name=model or "assistant",
            operation=CHAT,
            step=self.turn,
            is_step=True,
            status=status,
            status_word=word,
            status_source=source,
            error=error,
            model=model,
            preview=_preview(self.blocks),
            note=note,
            at=at,
        )

    def take(self, session: Session, line: Line) -> None:
        session.settle()
        packed = line.packed()
        span = self.row(f"l{line.number}", packed, session.model)
        session.turn, session.recent = span, {}
        session.add(span)
        texts = []
        for index, block in enumerate(self.blocks):
            if block.type == "tool_use":
                session.add_call(block.id, block.call(span.id, pack_block(index) + packed, index, self.turn), line)
            elif block.type == "text" and block.text is not None:
                texts.append(block.text)
        session.last_assistant = "\n".join(texts) or session.last_assistant


class Result(Record, tag="tool_result"):
    """The answer of a tool. ``is_error`` of the documents is the opposite of ``ok`` on disk."""

    tool_use_id: str | None = None
    ok: bool | None = None
    is_error: bool | None = None
    content: Raw = NULL
    side_effects: Effects | Loose = None

    def outcome(self) -> tuple[Status, StatusSource, str | None, Error | None]:
        """How the call ended: by ``ok`` or ``is_error``, else by its exit code, else by having an answer."""
        code = self.side_effects.exit_code if isinstance(self.side_effects, Effects) else None
        failed = self.ok is False or self.is_error is True
        if failed or code:
            word = f"exit {code}" if code else None
            message = excerpt(content_text(plain(self.content)).strip())
            return ERROR, EXPLICIT if failed else EXIT, word, Error(message or word or "failed", word)
        is_explicit = self.ok is not None or self.is_error is not None
        return OK, EXPLICIT if is_explicit else EXIT if code == 0 else DERIVED, None, None

    def row(self, ident: str, at: bytes, model: str | None = None) -> Span:
        """A result without a call in the trace."""
        status, source, word, error = self.outcome()
        return Span(
            id=ident,
            name="tool_result",
            operation=EXECUTE_TOOL,
            step=self.turn,
            status=status,
            status_word=word,
            status_source=source,
            error=error,
            preview=content_text(plain(self.content))[:PREVIEW],
            at=at,
        )

    def take(self, session: Session, line: Line) -> None:
        key = self.tool_use_id
        call = session.open_call(key)
        if call is None or call.has_result:
            session.problem(line, unmatched(key))
            super().take(session, line)
            return
        call.status, call.source, call.status_word, call.error = self.outcome()
        call.add_line(line)
        session.failed = session.failed or call.status is ERROR
        session.emit(call)


class Hook(Record, tag="hook_event"):
    """A hook that fired, with its decision."""

    event: str | None = None
    trigger: str | None = None
    hook_name: str | None = None
    matcher: str | None = None
    tool_use_id: str | None = None
    decision: str | None = None
    exit_code: Integer | None = None
    output: Any = None

    def row(self, ident: str, at: bytes, model: str | None = None) -> Span:
        decision, code = self.decision, self.exit_code
        status, source, error = OK, DERIVED, None
        if decision is not None:
            status, source = status_of(decision), EXPLICIT
        elif code is not None:
            status, source = (ERROR if code else OK), EXIT
        if status is ERROR:
            error = Error(excerpt(content_text(self.output).strip()) or decision or f"exit {code}", decision)
        return Span(
            id=ident,
            name=_first(self.event, self.trigger, self.hook_name) or "hook",
            operation=HOOK,
            step=self.turn,
            status=status,
            status_word=decision,
            status_source=source,
            error=error,
            preview=(_first(self.matcher, self.hook_name) or "")[:PREVIEW],
            note=decision[:PREVIEW] if decision is not None and plain_word(decision) != "allow" else "",
            at=at,
        )

    def take(self, session: Session, line: Line) -> None:
        """Put the hook below the call that it names, or that its turn and matcher fit, else below its turn."""
        span, turn = self.row(f"l{line.number}", line.packed()), session.turn
        is_here = turn is not None and self.turn is not None and turn.step == self.turn
        key = self.tool_use_id
        if key is None and is_here:
            names = (self.matcher or "").split("|")
            fitting = [call_id for call_id, call in session.recent.items() if call.name in names]
            key = fitting[0] if len(fitting) == 1 else None
        if (call := session.open_call(key)) is not None:
            session.add_hook(span, call)
            return
        if key is not None:  # a hook may fire before the turn is written
            session.early.setdefault(key, []).append(span)
        elif is_here and turn is not None:
            span = replace(span, parent_id=turn.id)
        session.add(span)


class Skill(Record, tag="skill_invocation"):
    """A skill that was called for, by the user or by the model."""

    other_fields: ClassVar = "instructions_injected v"
    name: str | None = None
    skill_name: str | None = None
    source: str | None = None
    args: Any = None

    def row(self, ident: str, at: bytes, model: str | None = None) -> Span:
        return Span(
            id=ident,
            name=f"skill {(_first(self.name, self.skill_name) or '?')[:PREVIEW]}",
            step=self.turn,
            status=OK,
            status_source=DERIVED,
            preview=argument(self.args, tasks=_TASKS) if self.args else "",
            note=(self.source or "")[:PREVIEW],
            at=at,
        )


class End(Record, tag="session_end"):
    """The last record; earlier ones are a problem."""

    stop_reason: str | None = None
    reason: str | None = None
    elapsed_ms: Finite | None = None
    tokens_in: Integer | None = None
    tokens_out: Integer | None = None

    @property
    def word(self) -> str | None:
        """Why the session ended, in the trace's own word."""
        return _first(self.stop_reason, self.reason)

    @property
    def usage(self) -> Usage | None:
        """Tokens of the whole session; there are no others."""
        taken, given = self.tokens_in, self.tokens_out
        return Usage(taken, given, taken + given if taken is not None and given is not None else None) or None

    def take(self, session: Session, line: Line) -> None:
        if session.end is not None:
            session.problem(line, "a second session_end")
            session.add(session.end.row(f"l{session.tail.number}", session.tail.packed()))
        session.end, session.tail = self, Line(line.offset, line.number, line.data, line.check)
        session.ended = session.closed = True
        session.settle()


_RECORDS: Final = Start | Prompt | Turn | Result | Hook | Skill | End
KINDS: Final = frozenset(map(tag_of, get_args(_RECORDS)))
"""Every kind of record, in both dialects."""
SCHEMA: Final = Schema[Any](_RECORDS, Other)


# ---- helpers


def kind_of(record: Base) -> str:
    """The kind of a record, ``?`` where it has none."""
    kind = record.kind if isinstance(record, Other) else tag_of(record)
    return kind if isinstance(kind, str) and kind else "?"


def _first(*values: str | None) -> str | None:
    """The first of these values that is there: the real field before the documented one."""
    return next((value for value in values if value is not None), None)


def _preview(blocks: list[Block]) -> str:
    """The first text of a turn, else its first thought."""
    thought = ""
    for block in blocks:
        if block.type == "text":
            if block.text:
                return block.text[:PREVIEW]
        elif block.type == "thinking" and not thought:
            thought = (_first(block.thinking, block.text) or "")[:PREVIEW]
    return thought
