"""Hugging Face session traces (STS), the simple format to which agents of any kind can convert their sessions.

Facts: the specification of the hub. The first line is the session, all others are messages. A trace has no tokens, no
errors and no end; times are in milliseconds, and optional.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import Dialog, row
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import SpanRef, argument, as_parts, call_part, kind_of, message_body, records_of, text_in
from tracetui.formats.decode import decode_value, record_on, records_in
from tracetui.formats.jsonl import Line, LogFormat
from tracetui.formats.scalars import between, folder_of, mapping, sequence, text, without
from tracetui.formats.schema import NULL, Finite, Loose, Schema, plain
from tracetui.model import (
    PREVIEW,
    Body,
    Header,
    Message,
    Operation,
    Part,
    Reasoning,
    RunBody,
    RunRef,
    Span,
    Status,
    ToolResult,
)
from tracetui.sources.base import File

_FEW: Final = 3
"""Lines that are looked at to recognize a trace."""
_OTHERS: Final = frozenset({"version", "timestamp", "parentId", "parentUuid"})
"""Fields of session records of other programs."""


class Function(Struct, gc=False):
    """What a call names; `arguments` are JSON in a text."""

    other_fields: ClassVar = ""
    name: str | None = None
    arguments: Raw = NULL


class Asked(Struct, gc=False):
    """A call that the model asked for."""

    other_fields: ClassVar = "type"
    id: str | None = None
    function: Function | None = None


class Said(Struct, gc=False, rename="camel"):
    """A message."""

    other_fields: ClassVar = ""
    role: str | None = None
    content: Raw = NULL
    reasoning_content: str | None = None
    tool_calls: list[Asked] | None = None
    tool_call_id: str | None = None
    timestamp: Finite | None = None
    """Milliseconds since the epoch."""
    model: str | None = None


class Record(Struct, gc=False):
    """A line: the session, or a message."""

    other_fields: ClassVar = ""
    type: str | None = None
    harness: str | None = None
    id: str | None = None
    name: str | None = None
    model: str | None = None
    cwd: str | None = None
    message: Said | Loose = None


SCHEMA: Final[Schema[Record]] = Schema(Record)


class Session(Dialog):
    """The state of a trace so far; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.begin: Record | None = None
        self.extent: tuple[int, int] | None = None
        self._first = b""
        self._model: str | None = None
        self._system: str | None = None

    @property
    def begun(self) -> bool:
        """Whether the first record is there."""
        return self.begin is not None

    @property
    def settled(self) -> bool:
        """Whether the beginning describes the trace."""
        return self.begin is not None and self.prompt is not None and self._model is not None

    def take(self, record: Record, line: Line) -> None:
        self.records += 1
        said = record.message
        if record.type == "session" and self.begin is None:
            self.begin, self.extent, self._first = record, line.byte_range, line.data
            self._model = record.model
        elif record.type == "message" and isinstance(said, Said):
            self._message(said, line)
        else:
            facts = {"operation": Operation.UNKNOWN}
            self.put(row(f"line {line.number}", (record.type or "?")[:PREVIEW], None, line, **facts))

    def _message(self, said: Said, line: Line) -> None:
        when = None if said.timestamp is None else said.timestamp / 1000
        self.started = when if self.started is None and not self.skipped else self.started
        content = text_in(plain(said.content)).strip()
        if said.role == "assistant":
            self._reply(said, content, when, line)
            return
        if said.role == "tool":
            self._result(said, when, line)
            return
        if said.role == "user":
            self.settle()
            self.user_row(content, when, line)
            return
        if said.role == "system":
            self._system = self._system or content
        facts = {"operation": Operation.MESSAGE, "preview": content[:PREVIEW]}
        self.put(row(f"line {line.number}", (said.role or "message")[:PREVIEW], when, line, **facts))

    def _reply(self, said: Said, content: str, when: float | None, line: Line) -> None:
        self.settle()
        if not self.skipped:
            self._model = self._model or said.model
        ident = self.reply_row(content, when, line, model=said.model, thought=(said.reasoning_content or "").strip())
        for number, asked in enumerate(said.tool_calls or (), 1):
            function = asked.function or Function()
            given = plain(function.arguments)
            preview = argument(decode_value(given) if isinstance(given, str) else given)
            call = self.call_of_reply(ident, number, function.name or "call", when, line, preview)
            self.call(asked.id, call, line)

    def _result(self, said: Said, when: float | None, line: Line) -> None:
        """A result ends its call; nothing says whether the call succeeded."""
        call = self.call_of(said.tool_call_id, line)
        if call is None:
            facts = {"operation": Operation.OTHER, "preview": text_in(plain(said.content))[:PREVIEW]}
            self.put(row(f"line {line.number}", "result", when, line, **facts))
            return
        call.add_line(line)
        call.status, call.source = Status.UNKNOWN, None
        call.duration_ms = between(call.started_at, when)
        self.emit(call)

    def header(self) -> Header:
        begin = self.begin or Record()
        harness = begin.harness or "agent"
        return Header(
            id=begin.id or self.file.name.removesuffix(".jsonl"),
            name=folder_of(begin.cwd) or harness[:PREVIEW],
            model=self._model,
            title=begin.name,
            ended=False,
            source=(begin.cwd or "")[:PREVIEW] or None,
            **self.described(harness),
        )

    def run_body(self) -> RunBody:
        attributes = record_on(self._first) or {}
        return replace(super().run_body(), system_prompt=self._system, attributes=attributes, extent=self.extent)


class HfSts(LogFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "hf-sts"
    title = "Hugging Face session trace"
    schema, session = SCHEMA, Session

    def sniff(self, file: File) -> int:
        if b'"harness"' not in file.head:
            return NO
        records = list(records_in(file.head, _FEW))
        if any(not _OTHERS.isdisjoint(record) for record in records):
            return NO
        first = records[0] if records else {}
        return CERTAIN if kind_of(first) == "session" and text(first.get("harness")) is not None else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """A message, or a call with its results."""
        records, raw = records_of(file, span.at)
        block = SpanRef.of(span.at).block
        if block > 0:
            return _call(records, block - 1, raw)
        record = records[0]
        said = record.get("message")
        if not isinstance(said, dict):
            return Body(attributes=record, raw=raw)
        return _message(record, said, raw)


def _message(record: dict[str, Any], said: dict[str, Any], raw: bytes) -> Body:
    content, rest = as_parts(said.get("content"))
    thought = said.get("reasoningContent")
    message_fields = [
        *(["content"] if rest is None else []),
        *(["reasoningContent"] if isinstance(thought, str) else []),
    ]
    parts: list[Part] = [Reasoning(thought)] if isinstance(thought, str) else []
    parts += [*(content if rest is None else []), *map(call_part, sequence(said.get("toolCalls")))]
    message = Message(text(said.get("role")) or "message", tuple(parts))
    attributes = record | {"message": without(said, *message_fields)}
    return message_body(message, attributes, raw, is_output=message.role == "assistant")


def _call(records: list[dict[str, Any]], number: int, raw: bytes) -> Body:
    calls = sequence(mapping(records[0].get("message")).get("toolCalls"))
    asked = mapping(calls[number]) if number < len(calls) else {}
    attributes: dict[str, Any] = asked | {"function": without(mapping(asked.get("function")), "arguments")}
    results = [mapping(record.get("message")) for record in records[1:]]
    for rank, (record, said) in enumerate(zip(records[1:], results, strict=True), 1):
        attributes[f"result {rank}"] = record | {"message": without(said, "content")}
    call = call_part(asked)
    messages = [Message("tool", (ToolResult(call.id, said.get("content")),)) for said in results]
    output = results[-1].get("content") if results else None
    return Body(input=call.arguments, output=output, output_messages=tuple(messages), attributes=attributes, raw=raw)
