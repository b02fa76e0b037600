"""Worklog: the log of an agent, as JSON lines: messages, tool calls and their results, sub-agents."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tracetui.plugin import (
    CERTAIN,
    NO,
    NULL,
    PREVIEW,
    Body,
    Error,
    File,
    Header,
    Line,
    LogFormat,
    Message,
    Natural,
    Operation,
    Rows,
    RunBody,
    RunRef,
    Schema,
    Span,
    Status,
    StatusSource,
    Text,
    Usage,
    kind_of,
    message_body,
    moment,
    record_on,
    records_at,
    row,
    status_of,
    task_key,
)

AGENT_TOOL: Final = "agent"
"""The tool that starts a sub-agent: what has the id of its call in `agent` happened in the sub-agent."""


class Record(Struct, tag_field="type", gc=False):
    """What all kinds of records have. The tag in ``type`` chooses the class."""

    other_fields: ClassVar = ""
    time: str | None = None


class Begin(Record, tag="begin"):
    id: str | None = None
    task: str | None = None
    model: str | None = None


class Tokens(Struct, gc=False):
    other_fields: ClassVar = ""
    input: Natural | None = None
    output: Natural | None = None


class Said(Record, tag="message"):
    role: str | None = None
    text: str | None = None
    agent: str | None = None
    tokens: Tokens | None = None


class Called(Record, tag="call"):
    id: str | None = None
    tool: str | None = None
    input: Raw = NULL
    agent: str | None = None


class Answered(Record, tag="result"):
    call: str | None = None
    output: Raw = NULL
    error: str | None = None


class End(Record, tag="end"):
    status: str | None = None


class Other(Struct, gc=False):
    """A record of an unknown kind."""


SCHEMA: Final[Schema[Any]] = Schema(Begin | Said | Called | Answered | End, Other)


class Session(Rows):
    """The state of a run so far."""

    settled = has_status = False

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.begin = Begin()
        self.first = self.last = b""
        self.end: End | None = None
        self.steps = 0
        self.latest: dict[str | None, str] = {}
        """Id of the latest response, by sub-agent (None: the main agent)."""
        self.calls: dict[str, Span] = {}
        """By the id that a result names."""

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        match record:
            case Begin():
                self.begin, self.first = record, line.data
            case Said():
                self.message(record, line)
            case Called():
                self.call(record, line)
            case Answered():
                self.result(record, line)
            case End():
                self.end, self.last = record, line.data
            case _:
                kind = kind_of(record_on(line.data) or {})
                self.emit(row(str(line.number), kind[:PREVIEW], None, line, operation=Operation.UNKNOWN))

    def parent_of(self, agent: str | None) -> str | None:
        """The id of the call that started a sub-agent."""
        call = None if agent is None else self.calls.get(agent)
        return None if call is None else call.id

    def message(self, record: Said, line: Line) -> None:
        is_response = record.role == "assistant"
        is_step = is_response and record.agent is None
        self.steps += is_step
        tokens = record.tokens or Tokens()
        span = Span(
            id=str(line.number),
            name=record.role or "message",
            operation=Operation.CHAT if is_response else Operation.MESSAGE,
            parent_id=self.parent_of(record.agent),
            step=self.steps if is_step else None,
            is_step=is_step,
            status=Status.OK,
            status_source=StatusSource.DERIVED,
            started_at=moment(record.time),
            usage=Usage(tokens.input, tokens.output) if record.tokens is not None else None,
            preview=(record.text or "")[:PREVIEW],
            at=line.packed(),
        )
        if is_response:
            self.latest[record.agent] = span.id
        self.emit(span)

    def call(self, record: Called, line: Line) -> None:
        span = Span(
            id=str(line.number),
            name=record.tool or "tool",
            operation=Operation.INVOKE_AGENT if record.tool == AGENT_TOOL else Operation.EXECUTE_TOOL,
            parent_id=self.latest.get(record.agent) or self.parent_of(record.agent),
            status=Status.RUNNING,
            status_source=StatusSource.DERIVED,
            started_at=moment(record.time),
            at=line.packed(),
        )
        if record.id is not None:
            self.calls[record.id] = span
        self.emit(span)

    def result(self, record: Answered, line: Line) -> None:
        call = self.calls.get(record.call or "")
        if call is None:
            self.problem(line, "the result of no call")
            return
        ended = moment(record.time)
        timed = ended is not None and call.started_at is not None and ended >= call.started_at
        span = replace(
            call,
            status=Status.OK if record.error is None else Status.ERROR,
            status_source=StatusSource.DERIVED if record.error is None else StatusSource.EXPLICIT,
            duration_ms=(ended - call.started_at) * 1000 if timed else None,  # type: ignore[operator]
            error=None if record.error is None else Error(record.error),
            at=call.at + line.packed(),
        )
        self.calls[record.call or ""] = span
        self.emit(span)

    def header(self) -> Header:
        begin, end = self.begin, self.end
        ident = begin.id or PurePath(self.file.path).stem
        task = begin.task or ""
        header = Header(
            id=ident,
            name="worklog",
            model=begin.model,
            prompt=task[:PREVIEW],
            started_at=moment(begin.time),
            repeats=task_key("worklog", task) if task else None,
            ended=end is not None,
        )
        if end is None or end.status is None:
            return header
        return replace(
            header, status=status_of(end.status), status_word=end.status, status_source=StatusSource.EXPLICIT
        )

    def run_body(self) -> RunBody:
        attributes = {"begin": record_on(self.first), "end": record_on(self.last)}
        return RunBody(goal=self.begin.task, attributes={name: value for name, value in attributes.items() if value})


class Worklog(LogFormat):
    """The format; see `tracetui.plugin.Format`."""

    name = "worklog"
    title = "Worklog of an agent"
    schema, session, signs = SCHEMA, Session, (b'"begin"',)

    def claim(self, record: dict[str, Any]) -> int:
        return CERTAIN if record.get("type") == "begin" and "task" in record else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        (record, raw), *results = records_at(file, span.at)
        if span.operation in (Operation.CHAT, Operation.MESSAGE):
            message = Message(span.name, (Text(str(record.pop("text", ""))),))
            return message_body(message, record, raw, is_output=span.operation is Operation.CHAT)
        answers = [answer for answer, _ in results]
        output = answers[-1].pop("output", None) if answers else None
        attributes = record if not answers else record | {"results": answers}
        raw = b"\n".join([raw, *(data for _, data in results)])
        if span.operation is Operation.UNKNOWN:
            return Body(attributes=attributes, raw=raw)
        return Body(input=record.pop("input", None), output=output, attributes=attributes, raw=raw)
