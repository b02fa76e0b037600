"""Antigravity: transcripts of the agent of the editor and of its command line.

Facts: public readers and fixtures of 2026, no file of the program itself. A conversation is a folder; its full
transcript is ``.system_generated/logs/transcript_full.jsonl``, ``transcript.jsonl`` a shortened copy of it. A line
is a step, written again when it is done. Calls have no id: the results that follow are theirs, in order. A step that is
``DONE`` may have failed; tokens, cost and the end of a conversation are not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import DONE, Dialog, SpanRow, row
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import (
    SpanRef,
    argument,
    call_part,
    kind_of,
    message_body,
    notes_body,
    pack_block,
    records_of,
)
from tracetui.formats.decode import decode_value
from tracetui.formats.jsonl import Line, LogFormat
from tracetui.formats.scalars import between, mapping, moment, sequence, task_key, text, without
from tracetui.formats.schema import NULL, Integer, Schema, plain
from tracetui.model import (
    PREVIEW,
    Body,
    Error,
    Header,
    Link,
    Message,
    Operation,
    Part,
    Reasoning,
    RunBody,
    RunRef,
    Span,
    Status,
    StatusSource,
    Text,
    excerpt,
)
from tracetui.sources.base import File

AGENT: Final = "antigravity"
FULL: Final = "transcript_full.jsonl"
SHORT: Final = "transcript.jsonl"
_LIKELY: Final = 80
_NOTES: Final = {
    "CONVERSATION_HISTORY": "history",
    "SYSTEM_MESSAGE": "system message",
    "CHECKPOINT": "compaction",
}
_SUB_AGENT: Final = "invoke_subagent"
_REQUEST: Final = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_MODEL: Final = re.compile(r"setting `Model Selection` from .{0,200}? to (.{1,120}?)\. ?(?:No need|\n|<|$)")
_EXIT: Final = re.compile(
    r"\s*(?:Created At: \S+\s+Completed At: \S+\s+)?The command "
    r"(?:completed successfully\.|failed with exit code: (-?\d{1,10}))"
)
"""How the result of a command begins."""
_OF_CALL: Final = re.compile(r"(?i)\btool call\b")
"""In an error that is about the call before it; any other one ends the turn."""
_CHILD: Final = re.compile(r'"conversationId": ?"([^"]{1,120})"')


class Asked(Struct, gc=False):
    """A call that the model asked for; values of `args` are JSON in texts."""

    other_fields: ClassVar = ""
    name: str | None = None
    args: Raw = NULL


class Record(Struct, gc=False):
    """A step."""

    other_fields: ClassVar = "truncated_fields error_code"
    step_index: Integer | None = None
    source: str | None = None
    type: str | None = None
    status: str | None = None
    created_at: str | None = None
    content: str | None = None
    error: str | None = None
    thinking: str | None = None
    tool_calls: list[Asked] | None = None


SCHEMA: Final[Schema[Record]] = Schema(Record)


class Session(Dialog):
    """The state of a transcript so far; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._first: str | None = None
        """The model of the first request."""
        self._model: str | None = None
        self._failure: Error | None = None
        """The error that the last step is."""
        self._running: dict[tuple[int, str], SpanRow] = {}
        """Steps that are not done, by index and type: they are written again."""

    def take(self, record: Record, line: Line) -> None:
        self.records += 1
        when, kind = moment(record.created_at), record.type or "?"
        self.started = when if self.started is None and not self.skipped else self.started
        self._failure = None
        if kind == "USER_INPUT":
            self._request(record, when, line)
        elif kind == "PLANNER_RESPONSE":
            self._reply(record, when, line)
        elif kind == "ERROR_MESSAGE":
            self._error(record, when, line)
        elif record.source == "MODEL":
            self._result(record, when, line)
        elif kind in _NOTES:
            self.note(f"line {line.number}", _NOTES[kind], when, line)
        else:
            self.emit(row(f"line {line.number}", kind[:PREVIEW], when, line, operation=Operation.UNKNOWN))

    def _request(self, record: Record, when: float | None, line: Line) -> None:
        self._give_up()
        content = record.content or ""
        if chosen := _MODEL.search(content):
            self._model = chosen[1]
        if not self.skipped and self.prompt is None:
            self._first = self._model
        self.user_row(request_in(content), when, line)

    def _reply(self, record: Record, when: float | None, line: Line) -> None:
        self._give_up()
        status: dict[str, Any] = DONE
        if record.status == "ERROR":
            status = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": _error_of(record)}
        reply, thought = (record.content or "").strip(), (record.thinking or "").strip()
        ident = self.reply_row(reply, when, line, model=self._model, thought=thought, **status)
        for number, asked in enumerate(record.tool_calls or (), 1):
            name, preview = asked.name or "call", argument(arguments_of(plain(asked.args)))
            kind = Operation.INVOKE_AGENT if name == _SUB_AGENT else Operation.EXECUTE_TOOL
            call = self.call_of_reply(ident, number, name, when, line, preview, kind)
            self.waiting.append(call)
            self.emit(call)

    def _result(self, record: Record, when: float | None, line: Line) -> None:
        """The result of the first call that waits; of no call, the tool alone."""
        key = record.step_index or 0, record.type or ""
        call: SpanRow | None = self._running.pop(key, None)
        if call is None and self.waiting:
            call = self.waiting.pop(0)
        if call is None:
            parent = self.below_top()
            name = (record.type or "tool").lower()[:PREVIEW]
            call = SpanRow(
                f"line {line.number}",
                name,
                Operation.EXECUTE_TOOL,
                parent.get("parent_id"),
                parent.get("step"),
                when,
                pack_block(0) + line.packed(),
            )
        else:
            call.add_line(line)
        call.status, call.source, call.error = outcome_of(record)
        call.status_word = record.status
        call.duration_ms = between(call.started_at, when) if call.status is not Status.RUNNING else None
        if call.status is Status.RUNNING:
            self._running[key] = call
        self.emit(call)

    def _error(self, record: Record, when: float | None, line: Line) -> None:
        """An error is the result of a call that could not be made, or ends the turn."""
        error = _error_of(record)
        is_of_call = _OF_CALL.search(error.message) is not None
        if is_of_call and self.waiting:
            call = self.waiting.pop(0)
            call.add_line(line)
            call.status, call.source, call.error = Status.ERROR, StatusSource.EXPLICIT, error
            call.status_word, call.duration_ms = record.status, between(call.started_at, when)
            self.emit(call)
            return
        self._failure = None if is_of_call else error
        facts: dict[str, Any] = {"status": Status.ERROR, "status_source": StatusSource.EXPLICIT, "error": error}
        self.emit(
            row(f"line {line.number}", "error", when, line, operation=Operation.OTHER, **self.below_top(), **facts)
        )

    def _give_up(self) -> None:
        """Stop waiting for results: the conversation went on."""
        self.settle()
        self.stop(self._running.values())
        self._running.clear()

    def header(self) -> Header:
        failure, ident = self._failure, id_of(self.file)
        return Header(
            id=ident,
            name=AGENT,
            model=self._first,
            status=None if failure is None else Status.ERROR,
            status_source=None if failure is None else StatusSource.DERIVED,
            ended=failure is not None,
            is_session=True,
            identity=task_key(AGENT, ident) if len(ident) > 30 else None,
            **self.described(AGENT),
        )

    def run_body(self) -> RunBody:
        return replace(super().run_body(), error=self._failure)


class Antigravity(LogFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "antigravity"
    title = "Antigravity transcript"
    home_variables = ()
    schema, session, signs = SCHEMA, Session, (b'"step_index"',)

    def claim(self, record: dict[str, Any]) -> int:
        fields = (record.get("step_index"), *(text(record.get(name)) for name in ("source", "type", "status")))
        if None in fields:
            return NO
        is_sure = kind_of(record) in ("USER_INPUT", "PLANNER_RESPONSE") and "created_at" in record
        return CERTAIN if is_sure else _LIKELY

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """A message, a call with its results, or notes."""
        records, raw = records_of(file, span.at)
        block, record = SpanRef.of(span.at).block, records[0]
        if block >= 0:
            return _call(records, block, raw)
        if span.operation in (Operation.CHAT, Operation.MESSAGE):
            return _message(record, raw)
        return notes_body(records, raw) if span.operation is Operation.META else Body(attributes=record, raw=raw)

    def whole_of(self, file: File) -> str | None:
        """The full transcript beside a shortened one."""
        return file.sibling(FULL) if file.name == SHORT else None

    def parts_in(self, path: str) -> Sequence[str]:
        return ("",)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return tuple(home / ".gemini" / f"antigravity{kind}" / "brain" for kind in ("", "-cli", "-ide"))


def id_of(file: File) -> str:
    """The folder of the conversation, else the file."""
    parts = file.path.replace("\\", "/").split("/")
    is_own = len(parts) > 3 and parts[-3:-1] == [".system_generated", "logs"] and parts[-4]
    return parts[-4] if is_own else file.name.removesuffix(".jsonl")


def request_in(content: str) -> str:
    """What the user typed; metadata of the editor is around it."""
    asked = _REQUEST.search(content)
    return (asked[1] if asked else content).strip()


def arguments_of(args: Any) -> Any:
    """The arguments of a call, each of which is JSON in a text."""
    if not isinstance(args, dict):
        return args
    return {name: decode_value(value) if isinstance(value, str) else value for name, value in args.items()}


def outcome_of(record: Record) -> tuple[Status, StatusSource | None, Error | None]:
    """How the tool of a result ended. Only a command says that it succeeded."""
    content = record.content or ""
    if record.status == "RUNNING":
        return Status.RUNNING, StatusSource.EXPLICIT, None
    exited = _EXIT.match(content) if record.type == "RUN_COMMAND" else None
    if exited is not None and exited[1]:
        said = content[exited.end() :].strip().removeprefix("Output:").strip()
        return Status.ERROR, StatusSource.EXIT, Error(excerpt(said), f"exit {exited[1]}")
    if record.status == "ERROR" or record.error:
        return Status.ERROR, StatusSource.EXPLICIT, _error_of(record)
    return (Status.UNKNOWN, None, None) if exited is None else (Status.OK, StatusSource.EXIT, None)


def _error_of(record: Record) -> Error:
    return Error(excerpt((record.error or record.content or "error").strip()))


# ---- bodies


def _message(record: dict[str, Any], raw: bytes) -> Body:
    parts: list[Part] = []
    content, thinking = record.get("content"), record.get("thinking")
    if isinstance(thinking, str):
        parts.append(Reasoning(thinking))
    if isinstance(content, str):
        parts.append(Text(content))
    is_reply = kind_of(record) == "PLANNER_RESPONSE"
    calls = sequence(record.get("tool_calls")) if is_reply else []
    whole = all(isinstance(call, dict) and call.keys() <= {"name", "args"} for call in calls)
    parts += [call_part(mapping(call) | {"args": arguments_of(mapping(call).get("args"))}) for call in calls]
    message_fields = {name for name, value in (("content", content), ("thinking", thinking)) if isinstance(value, str)}
    message_fields |= {"tool_calls"} if calls and whole else set()
    message = Message("assistant" if is_reply else "user", tuple(parts))
    return message_body(message, without(record, *message_fields), raw, is_output=is_reply)


def _call(records: list[dict[str, Any]], block: int, raw: bytes) -> Body:
    calls = sequence(records[0].get("tool_calls")) if block else []
    call = mapping(calls[block - 1]) if block <= len(calls) and block else {}
    results = records[1:] if block else records
    attributes = without(call, "args", "name")
    for rank, record in enumerate(results, 1):
        attributes[f"result {rank}"] = without(record, "content") if rank == len(results) else record
    output = results[-1].get("content") if results else None
    children = _CHILD.findall(output) if isinstance(output, str) and call.get("name") == _SUB_AGENT else []
    links = tuple(Link("sub-agent", run=child) for child in children)
    return Body(input=arguments_of(call.get("args")), output=output, attributes=attributes, links=links, raw=raw)
