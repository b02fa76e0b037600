"""ccpa traces: coding sessions as JSON lines, of a teacher (Claude Code) and of the student that repeats them.

Facts: paiml/claude-code-parity-apr. The recorder truncates the file, writes it through a buffer of 8 KiB and flushes it
at the end: a session in progress grows by blocks that cut lines and characters. A session without ``session_end`` is in
progress, or its recorder was killed.

A session matches results and hooks to calls while its records come in. It also has the header, with the session of the
teacher that it replays, and bodies.
"""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.agent_log import CANCELLED, ERROR, EXPLICIT, RUNNING, Call, Conversation
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import SpanRef, records_at
from tracetui.formats.ccpa.records import KINDS, SCHEMA, End, Start, kind_of
from tracetui.formats.decode import record_on
from tracetui.formats.jsonl import Line, LogFormat
from tracetui.formats.scalars import child, layout, sequence, string, without, word
from tracetui.formats.schema import unknown_fields
from tracetui.model import (
    PREVIEW,
    Blob,
    Body,
    Error,
    FirstError,
    Header,
    Message,
    Part,
    Reasoning,
    RunBody,
    RunRef,
    Span,
    Text,
    ToolCall,
)
from tracetui.model.span import plain_word, status_of
from tracetui.sources.base import File, LinkLost

STUDENT_ACTOR: Final = "apr-code"
_FEW: Final = 64
"""Records searched for the prompt in the list stage; the deep pass searches all."""
_LOOK_BACK: Final = 4 << 20
"""Bytes in which the list stage looks for an end: no session has more after its end."""
_LARGEST_META: Final = 1 << 16
_TIME_LIMIT: Final = 64
_STEM: Final = re.compile(r"(\.ccpa-trace)?(\.jsonl|\.ndjson|\.json)?$")
_STUDENT: Final = re.compile(r"(^|-)student(?![a-z])")
_TEACHER: Final = re.compile(r"(^|-)teacher(?![a-z])")


class Session(Conversation):
    """State of one session; see `tracetui.formats.jsonl.Session`. `calls` has the latest call of each id."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.start: Start | None = None
        self.model: str | None = None
        """The model of the first record."""
        self.head = b""
        """The line of the first record."""
        self.end: End | None = None
        self.tail = Line()
        """The line of the last record."""
        self.closed = False
        """The latest record ended the session."""
        self.prompt: str | None = None
        """The beginning of the first prompt."""
        self.last_user: str | None = None
        self.last_assistant: str | None = None
        self.failed = False
        """A span has failed."""
        self.turn: Span | None = None
        """The latest turn of the assistant."""
        self.recent: dict[str, Call] = {}
        """The calls of the latest turn by id, answered or not."""
        self.early: dict[str, list[Span]] = {}
        """Hooks by the id of a call that has not come yet."""

    # ---- records

    def take(self, record: Any, line: Line) -> None:
        if self.closed and not isinstance(record, End):
            self.problem(line, f"{kind_of(record)} after session_end")
            self.closed = False
        if self.records == 0 and not isinstance(record, Start):
            self.problem(line, f"the first record is {kind_of(record)}, not session_start")
        self.records += 1
        record.take(self, line)

    def add(self, span: Span) -> None:
        """Give out a new span or a newer version of one."""
        if span.status is ERROR:
            self.failed = True
        self._changed[span.id] = span

    def add_call(self, key: str | None, call: Call, line: Line) -> None:
        """Add a call to the latest turn; `key` is its id."""
        if key is None:
            self.call(None, call, line)
            return
        before = self.open_call(key) if key in self.calls else None
        if before is not None and not before.has_result:
            self.problem(line, f"call id {key[:PREVIEW]!r} is reused before its result")
            self.stop((before,))
        self.recent[key] = call
        self.call(key, call, line)
        if key in self.early:
            for hook in self.early.pop(key):
                self.add_hook(hook, call)

    def add_hook(self, hook: Span, call: Call) -> None:
        """Put a hook below its call; one that blocks a call which has not run means that it never will."""
        self.add(replace(hook, parent_id=call.id))
        if hook.status is ERROR and call.status is RUNNING:
            call.status, call.source, call.status_word = CANCELLED, hook.status_source, hook.status_word
            call.note = "blocked"
            self.emit(call)

    # ---- the list stage

    @property
    def begun(self) -> bool:
        return self.start is not None and (self.end is None or self.end.word is not None)

    @property
    def settled(self) -> bool:
        """No later record changes what the list stage reads at the beginning."""
        return self.start is not None and (self.prompt is not None or self.records >= _FEW)

    @property
    def has_status(self) -> bool:
        """The end was read, or the session has none."""
        if self.end is not None:
            return True
        file, size = self.file, self.file.stat.size
        start = max(0, size - _LOOK_BACK)
        return b"session_end" not in (file.head if size <= len(file.head) else file.read(start, _LOOK_BACK))

    # ---- the session as a whole

    @cached_property
    def fixture(self) -> str | None:
        """Id of the fixture that was worked on, as the ``meta.toml`` in the same folder records it."""
        try:
            with self.file.other("meta.toml") as other:
                data = other.read_all() if other.stat.size <= _LARGEST_META else b""
            meta = tomllib.loads(data.decode())
        except LinkLost:
            raise
        except (OSError, ValueError, RecursionError, FormatError):  # there is none, or it is something else
            return None
        fixture = word(child(meta, "fixture").get("id"))
        return fixture and fixture[:PREVIEW]

    def header(self) -> Header:
        """The header so far."""
        file, start, end = self.file, self.start or Start(), self.end or End()
        name = file.name
        stem = name[: _STEM.search(name).start()] or name  # type: ignore[union-attr]  # matches anything
        started_at, zone = _moment(start.ts)
        relation, original = _original(file, name, stem, start.actor)
        word = end.word
        return Header(
            id=start.session_id or stem,
            name=start.actor or stem,
            agent=start.actor,
            model=start.model,
            status=None if word is None else status_of(word),
            status_word=word,
            status_source=None if word is None else EXPLICIT,
            ended=self.ended,
            started_at=started_at,
            time_zone=zone,
            duration_ms=end.elapsed_ms,
            usage=end.usage,
            replay_of=(start.session_id or stem) if relation else None,
            replay_of_path=original,
            relation=relation,
            task=self.fixture,
            error=_cause(word, None if self.skipped else self.failed),
            prompt=self.prompt or "",
            writer=layout(start.v),
            size=file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        """The last messages, the fields of the first record, and the last record."""
        attributes: dict[str, Any] = dict(record_on(self.head) or {})
        word = None
        if self.end is not None:
            word = self.end.word
            attributes["session_end" if "session_end" not in attributes else "session_end record"] = record_on(
                self.tail.data
            )
        failed = word and status_of(word) is ERROR
        return RunBody(
            error=Error(_ended(word), word) if word and failed else None,
            last_user=self.last_user,
            last_assistant=self.last_assistant,
            attributes=attributes,
        )


def _moment(value: str | None) -> tuple[float | None, str | None]:
    """An ISO 8601 time as (seconds since the epoch, zone); the zone is None for a time without one."""
    if value is None or len(value) > _TIME_LIMIT:
        return None, "UTC"
    try:
        parsed = datetime.fromisoformat(value.strip())
        if parsed.tzinfo is None:
            return parsed.replace(tzinfo=UTC).timestamp(), None
        return parsed.timestamp(), "UTC"
    except (ValueError, OverflowError):
        return None, "UTC"


def _cause(word: str | None, failed: bool | None) -> FirstError | None:
    """The end reason as the cause of a failed run; `failed` is whether a span failed, None if unknown.

    ``error`` names no cause: where a call failed, that call is it. A limit that was reached is the cause itself, since
    the run continued after its failed calls.
    """
    if word is None or status_of(word) is not ERROR:
        return None
    if plain_word(word) in ("error", "failed", "failure") and failed is not False:
        return None
    return FirstError(_ended(word), word)


def _ended(word: str) -> str:
    return f"session ended: {word}"


def _original(file: File, name: str, stem: str, actor: str | None) -> tuple[str | None, str | None]:
    """(``student``, path of the teacher's file) where this session replays one.

    No field has this: upstream keeps both in one folder, as ``teacher`` and ``student``, or ``NAME-teacher`` and
    ``NAME-student-HOW``; they share the session id.
    """
    named = _STUDENT.search(stem)
    if named is None and (actor != STUDENT_ACTOR or _TEACHER.search(stem)):
        return None, None
    prefix = stem[: named.start()] + named.group(1) if named else ""
    path = file.sibling(f"{prefix}teacher{name[len(stem) :]}")
    return ("student" if named or path else None), path


# ---- bodies

Record = dict[str, Any]


def body_of(file: File, span: Span) -> Body:
    """The body of a span; raises `FormatError` if the record was replaced."""
    ref, records = SpanRef.of(span.at), records_at(file, span.at)
    if ref.block >= 0:
        return _call_body(ref, records)
    record, data = records[0]
    kind = record.get("kind")
    if kind == "user_prompt":
        return _prompt_body(record, data)
    if kind == "assistant_turn":
        return _turn_body(record, data)
    if kind == "tool_result":
        return Body(output=record.get("content"), attributes=_answer(record), raw=data)
    if kind == "hook_event":
        return Body(output=record.get("output"), attributes=without(record, "output"), raw=data)
    if kind == "skill_invocation":
        return Body(input=record.get("args"), attributes=without(record, "args"), raw=data)
    return Body(attributes=record, raw=data)


def _prompt_body(record: Record, data: bytes) -> Body:
    text, attached = record.get("text"), record.get("attachments")
    parts: list[Part] = [Text(text)] if isinstance(text, str) else []
    parts += [Blob("attachment", attachment) for attachment in attached] if isinstance(attached, list) else []
    messages = (Message("user", tuple(parts)),) if parts else ()
    return Body(input=text, input_messages=messages, attributes=without(record, "text"), raw=data)


def _turn_body(record: Record, data: bytes) -> Body:
    """The turn as a message; `output` is its text, or all its blocks where they are not only text."""
    blocks, attributes = sequence(record.get("blocks")), without(record, "blocks")
    if not blocks:
        attributes["blocks"] = record.get("blocks")
    parts = []
    for index, block in enumerate(blocks):
        part, rest = _part(block)
        parts.append(part)
        if rest:
            attributes[f"blocks[{index}]"] = rest
    texts = [part.text for part in parts if isinstance(part, Text)]
    return Body(
        output=("\n".join(texts) if len(texts) == len(parts) else blocks) if parts else None,
        output_messages=(Message("assistant", tuple(parts), finish_reason=string(record.get("stop_reason"))),)
        if parts
        else (),
        attributes=attributes,
        raw=data,
    )


def _part(block: Any) -> tuple[Part, Record]:
    """A block as part of a message, and the fields that don't fit it."""
    if not isinstance(block, dict):
        return Blob("block", block), {}
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"]), without(block, "type", "text")
    if kind == "thinking":
        name = "thinking" if isinstance(block.get("thinking"), str) else "text"
        if isinstance(block.get(name), str):
            return Reasoning(block[name]), without(block, "type", name)
    if kind == "tool_use" and isinstance(block.get("name"), str):
        ident = string(block.get("id"))
        call_fields = ("type", "name", "input") if ident is None else ("type", "name", "input", "id")
        return ToolCall(ident, block["name"], block.get("input")), without(block, *call_fields)
    return Blob(kind if isinstance(kind, str) else "block", block), {}


def _call_body(ref: SpanRef, records: list[tuple[Record, bytes]]) -> Body:
    """The call's block and its result's record as one; where both have a field, the result's is ``result.FIELD``."""
    block: Record = records[0][0]["blocks"][ref.block]
    attributes, raw = without(block, "input"), b"\n".join(data for _, data in records)
    if len(records) == 1:
        return Body(input=block.get("input"), attributes=attributes, raw=raw)
    answer = records[1][0]
    for key, value in _answer(answer).items():
        attributes[f"result.{key}" if key in attributes else key] = value
    return Body(input=block.get("input"), output=answer.get("content"), attributes=attributes, raw=raw)


def _answer(record: Record) -> Record:
    """The fields of a result but its content, with its side effects."""
    effects = record.get("side_effects")
    if not isinstance(effects, dict):
        return without(record, "content")
    attributes = without(record, "content", "side_effects")
    for key, value in effects.items():
        attributes[f"side_effects.{key}" if key in attributes else key] = value
    return attributes


LIKELY: Final = 40
_START: Final = re.compile(rb'"kind"\s*:\s*"session_start"')


class Ccpa(LogFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "ccpa"
    title = "ccpa trace"
    schema, session = SCHEMA, Session

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"kind"' not in head:
            return NO
        for data in head.split(b"\n"):
            record = record_on(data) if b'"kind"' in data else None
            if record is not None and string(record.get("kind")) in KINDS:
                return CERTAIN
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins in (b"{", b"[") and _START.search(head) else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from; a call's `raw` is its turn's line and its result's line."""
        return body_of(file, span)
