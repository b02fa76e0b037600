"""Streams of ``codex exec --json``: what a turn of a thread prints, one event a line.

Facts: codex 0.169. A stream has no prompt, model, working folder or times. The usage that ends a turn is the total of
the thread, which a resumed stream goes on counting: it is no usage of the turn. Item ids restart with each turn.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec import Raw, Struct

from tracetui.formats.agent_log import Rows, SpanRow
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.bodies import add_field, as_json, kind_of, records_of
from tracetui.formats.decode import record_on
from tracetui.formats.jsonl import Line, LogFormat
from tracetui.formats.scalars import mapping, task_key, text
from tracetui.formats.schema import NULL, Integer, Loose, Natural, Schema, plain, unknown_fields
from tracetui.model import (
    PREVIEW,
    Body,
    Error,
    Header,
    Message,
    Operation,
    Reasoning,
    RunBody,
    RunRef,
    Span,
    Status,
    StatusSource,
    Text,
    Usage,
    excerpt,
)
from tracetui.model.span import status_of
from tracetui.sources.base import File

AGENT: Final = "codex"
_LIKELY: Final = 80
_MOST_LINES: Final = 64
"""Versions of an item that are kept."""
_EXPLICIT: Final = StatusSource.EXPLICIT
_MESSAGES: Final = {"agent_message": ("assistant", Operation.CHAT), "reasoning": ("reasoning", Operation.MESSAGE)}
_NOTES: Final = {"error": "notice", "todo_list": "todo list"}
_CALLS: Final = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})


class Failure(Struct, gc=False):
    """Why a turn or a call failed."""

    other_fields: ClassVar = "codex_error_info additional_details"
    message: str | None = None


class Item(Struct, gc=False):
    """One version of an item: a message, a call or a note."""

    other_fields: ClassVar = "action items message prompt receiver_thread_ids sender_thread_id agents_states"
    id: str | None = None
    type: str | None = None
    text: str | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: Integer | None = None
    status: str | None = None
    server: str | None = None
    tool: str | None = None
    arguments: Raw = NULL
    result: Raw = NULL
    error: Failure | Loose = None
    query: str | None = None
    changes: Raw = NULL


class Tokens(Struct, gc=False):
    """Usage of a thread so far: cached input is part of the input, reasoning of the output."""

    other_fields: ClassVar = ""
    input_tokens: Natural | None = None
    cached_input_tokens: Natural | None = None
    cache_write_input_tokens: Natural | None = None
    output_tokens: Natural | None = None
    reasoning_output_tokens: Natural | None = None


class Record(Struct, gc=False):
    """A line."""

    other_fields: ClassVar = ""
    type: str | None = None
    thread_id: str | None = None
    item: Item | None = None
    usage: Tokens | None = None
    error: Failure | None = None
    message: str | None = None


SCHEMA: Final[Schema[Record]] = Schema(Record)


class Session(Rows):
    """The state of a stream so far; see `tracetui.formats.jsonl.Session`."""

    settled = False
    has_status = False

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.thread: str | None = None
        self.extent: tuple[int, int] | None = None
        self._first = b""
        self._turns = 0
        self._turn: SpanRow | None = None
        self._items: dict[str, SpanRow] = {}
        """Of the current turn, by id."""
        self._usage: Usage | None = None
        self._status: Status | None = None
        self._word: str | None = None
        self._answer: str | None = None

    @property
    def begun(self) -> bool:
        """Whether the thread is known."""
        return self.settled

    def take(self, record: Record, line: Line) -> None:
        self.records += 1
        kind = record.type or "?"
        if kind == "thread.started":
            self._begin(record, line)
        elif kind == "turn.started":
            self._end_turn(None, None, None)
            self._turns += 1
            self._turn = self._row(f"turn {self._turns}", "turn", Operation.TURN, line, step=self._turns)
            self._turn.status, self._turn.source = Status.RUNNING, StatusSource.DERIVED
            self.has_status = True
        elif kind in ("turn.completed", "turn.failed"):
            self._finish(record, kind.partition(".")[2], line)
        elif kind.startswith("item.") and record.item is not None:
            self._item(record.item, line)
        elif kind == "error":
            row = self._row(f"line {line.number}", "error", Operation.META, line)
            row.preview = (record.message or "")[:PREVIEW]
        else:
            self._row(f"line {line.number}", kind, Operation.UNKNOWN, line)

    def _begin(self, record: Record, line: Line) -> None:
        """A thread; its stream may go on in the same file when it is resumed."""
        if self.thread is None:
            self.thread, self.settled = record.thread_id, record.thread_id is not None
            self.extent, self._first = line.byte_range, line.data
            return
        if record.thread_id != self.thread and not self.skipped:
            self.problem(line, "another thread: shown as a part of the first one")
        self._end_turn(None, None, None)
        self._items = {}
        self._row(f"line {line.number}", "thread.started", Operation.META, line)

    def _row(self, ident: str, name: str, operation: Operation, line: Line, step: int | None = None) -> SpanRow:
        turn = None if operation is Operation.TURN else self._turn
        parent = None if turn is None else turn.id
        step = turn.step if turn is not None else step
        row = SpanRow(ident, name[:PREVIEW], operation, parent, step, None, line.packed())
        self.emit(row)
        return row

    def _finish(self, record: Record, word: str, line: Line) -> None:
        error = None
        if word == "failed":
            error = Error(excerpt(record.error.message or "" if record.error is not None else ""))
        if record.usage is not None:
            used = record.usage
            read, written = used.cached_input_tokens, used.cache_write_input_tokens
            self._usage = (
                Usage(used.input_tokens, used.output_tokens, None, read, written, used.reasoning_output_tokens) or None
            )
        if self._turn is None:
            self._turn = self._row(f"line {line.number}", "turn", Operation.TURN, line)
        else:
            self._turn.add_line(line)
        self._end_turn(status_of(word), word, error)

    def _end_turn(self, status: Status | None, word: str | None, error: Error | None) -> None:
        """End the turn; without `status`, another one began before it had an end."""
        self._status, self._word = status, word
        self.has_status = status is not None
        self.stop(self._items.values())
        if self._turn is not None:
            row = self._turn
            row.status, row.source = status or Status.UNKNOWN, None if status is None else _EXPLICIT
            row.status_word, row.error = word, error
            self.emit(row)
        self._turn, self._items = None, {}

    def _item(self, item: Item, line: Line) -> None:
        kind = item.type or "?"
        key = item.id or f"line {line.number}"
        row = self._items.get(key)
        if row is None:
            name, operation = _NOTES.get(kind, kind), Operation.META if kind in _NOTES else Operation.UNKNOWN
            name, operation = _MESSAGES.get(kind, (name, operation))
            operation = Operation.EXECUTE_TOOL if kind in _CALLS else operation
            if kind == "mcp_tool_call" and item.tool:
                name = f"{item.server}.{item.tool}" if item.server else item.tool
            turn = "" if self._turn is None else f"{self._turn.id} "
            row = self._row(f"{turn}{key} at line {line.number}", name, operation, line)
            self._items[key] = row
        elif len(row.at) < _MOST_LINES * len(line.packed()):
            row.add_line(line)
        else:  # the last version counts
            row.at = row.at[: -len(line.packed())] + line.packed()
        self.emit(row)
        if kind in _CALLS:
            row.status, row.source, row.error = _outcome(item)
            row.status_word = item.status
            row.preview = (item.command or item.query or _call_text(item))[:PREVIEW]
        else:
            row.preview = (item.text or text(mapping(mapping(record_on(line.data)).get("item")).get("message")) or "")[
                :PREVIEW
            ]
        if kind == "agent_message":
            row.status, row.source = Status.OK, StatusSource.DERIVED
            self._answer = item.text

    def header(self) -> Header:
        thread = self.thread
        return Header(
            id=thread or self.file.name,
            name=AGENT,
            agent=AGENT,
            status=self._status,
            status_word=self._word,
            status_source=None if self._status is None else _EXPLICIT,
            ended=self._status is not None,
            usage=self._usage,
            identity=None if thread is None else thread_key(thread),
            size=self.file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        attributes = record_on(self._first) or {}
        return RunBody(last_assistant=self._answer, attributes=attributes, extent=self.extent)


def thread_key(thread: str) -> str | None:
    """`Header.identity` of a thread: its rollout and its streams are one run."""
    return task_key(AGENT, thread)


def _call_text(item: Item) -> str:
    return next((as_json(value) for raw in (item.arguments, item.changes) if (value := plain(raw)) is not None), "")


def _outcome(item: Item) -> tuple[Status, StatusSource | None, Error | None]:
    """How a call ended: its status, and for a command its exit code as well."""
    failure = item.error.message if isinstance(item.error, Failure) else None
    status = Status.CANCELLED if item.status == "declined" else status_of(item.status or "")
    if item.exit_code:
        return (
            Status.ERROR,
            StatusSource.EXIT,
            Error(excerpt((item.aggregated_output or "").strip()), f"exit {item.exit_code}"),
        )
    if failure is not None or status is Status.ERROR:
        return Status.ERROR, _EXPLICIT, Error(excerpt((failure or item.aggregated_output or "").strip()))
    source = StatusSource.DERIVED if status is Status.RUNNING else None if status is Status.UNKNOWN else _EXPLICIT
    return status, source, None


# ---- the format


class CodexExec(LogFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "codex-exec"
    title = "Codex exec stream"
    schema, session, signs = SCHEMA, Session, (b'"thread.started"', b'"item.')

    def claim(self, record: dict[str, Any]) -> int:
        kind = kind_of(record)
        if kind == "thread.started" and text(record.get("thread_id")) is not None:
            return CERTAIN
        return _LIKELY if kind.startswith("item.") and text(mapping(record.get("item")).get("type")) else NO

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From all lines of a row; the last version of an item has its values, others what differs in them."""
        records, raw = records_of(file, span.at)
        item = mapping(records[-1].get("item"))
        attributes: dict[str, Any]
        if not item:
            attributes = records[0] if len(records) == 1 else {kind_of(record): record for record in records}
            return Body(attributes=attributes, raw=raw)
        earlier = [mapping(record.get("item")) for record in records[:-1]]
        versions = [{name: value for name, value in version.items() if item.get(name) != value} for version in earlier]
        attributes = {"events": [kind_of(record) for record in records]}
        attributes |= {f"version {n}": version for n, version in enumerate(versions, 1) if version}
        for name, value in (field for record in records for field in record.items()):
            if name not in ("type", "item"):
                add_field(attributes, name, value)
        said = text(item.get("text"))
        if said is not None and span.name in ("assistant", "reasoning"):
            part = Text(said) if span.name == "assistant" else Reasoning(said)
            _add(attributes, item, said)
            return Body(output=said, output_messages=(Message("assistant", (part,)),), attributes=attributes, raw=raw)
        given = next((item[name] for name in ("command", "arguments", "query", "changes") if name in item), None)
        output = next((item[name] for name in ("aggregated_output", "result") if name in item), None)
        _add(attributes, item, given, output)
        return Body(input=given, output=output, attributes=attributes, raw=raw)


def _add(attributes: dict[str, Any], item: dict[str, Any], *excluded: Any) -> None:
    """Add the fields of an item other than the `excluded` values, which are shown elsewhere."""
    for name, value in item.items():
        if not any(value is known for known in excluded):
            add_field(attributes, name, value)
