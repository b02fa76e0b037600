"""LangGraph: threads in the SQLite databases of its checkpointer.

Facts: databases of langgraph 0.2.28 and 1.2.24 (langgraph-checkpoint-sqlite 1.0.4 and 3.1.2): tables ``checkpoints``
and ``writes`` in any file. Values are read as data (`blobs`); pickles are counted and never loaded.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import NO
from tracetui.formats.bodies import as_parts, call_part, changed, message_body, rendered, text_in
from tracetui.formats.langgraph.blobs import PICKLE, TYPE, fields_of, packed, value_of
from tracetui.formats.langgraph.records import (
    SPECIAL,
    START,
    Checkpoint,
    Messages,
    Place,
    Row,
    Write,
    checkpoint_of,
    finish_of,
    metadata_of,
    object_at,
    role_of,
    write_of,
)
from tracetui.formats.langgraph.spans import At, Tree, outcome_of, without_edges
from tracetui.formats.scalars import UUID, integer, layout, mapping, sequence, task_key, text, without
from tracetui.formats.sqlite import DatabaseFormat, Loading, Outcome, ReadState, RunTables, many
from tracetui.model import PREVIEW, Body, Header, Message, Operation, Problem, RunBody, Span, ToolResult
from tracetui.sources.base import File

_TABLES: Final = frozenset({"checkpoints", "writes"})
_LIKELY: Final = 60
"""The tables alone: their columns are in the log of the database only."""
_TURNS: Final = 8
"""Turns that are read to find out how the last one ended (2024)."""
_NEEDED: Final = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint", "metadata"),
    "writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "value"),
}


# ---- threads


class Ends(Struct, frozen=True):
    """The rows at both ends of a thread, which describe it: those of the list stage."""

    thread: str
    first: Checkpoint | None
    last: Checkpoint | None
    outcome: Outcome

    def header(self, *, size: int | None = None, model: str | None = None) -> Header:
        """The header."""
        first = self.first
        name, asked = (first.graph if first is not None else None) or "LangGraph", ""
        if first is not None:
            placed = (message.text for _, pairs in first.messages for _, message in pairs if message.role == "user")
            asked = first.asked or next(placed, "")
        return Header(
            id=self.thread,
            name=name[:PREVIEW],
            model=model,
            started_at=first.time if first is not None else None,
            repeats=task_key(name, asked),
            identity=task_key("langgraph", self.thread) if UUID.fullmatch(self.thread) else None,
            origin=first.checkpoint if first is not None and UUID.fullmatch(first.checkpoint) else None,
            prompt=asked[:PREVIEW],
            writer=layout(first.version) if first is not None else None,
            size=size,
            **self.outcome.facts,
        )


class Database(RunTables):
    """The tables. Raises `FormatError` if no thread can be read in them."""

    NEEDED, BATCH = _NEEDED, 40

    def run_keys(self) -> list[str]:
        """The ids of all threads, the oldest first."""
        sql = (
            "SELECT thread_id FROM checkpoints WHERE typeof(thread_id) = 'text' GROUP BY thread_id ORDER BY min(rowid)"
        )
        return [thread for (thread,) in self.rows(sql) if thread]

    def unlisted(self, path: str) -> Iterator[Problem]:
        strange = "typeof(thread_id) != 'text' OR thread_id = ''"
        lost = f"{strange} OR thread_id NOT IN (SELECT thread_id FROM checkpoints)"
        for table, where, blob in (("checkpoints", strange, "checkpoint"), ("writes", lost, "value")):
            if rows := self.count(f"{table} WHERE {where}"):
                yield Problem(path, table, f"{rows} rows belong to no thread")
            if "type" in self.columns[table] and (pickles := self.count(f"{table} WHERE type = '{PICKLE}'")):
                yield Problem(path, f"{table}.{blob}", f"{pickles} rows: pickle, not loaded")

    def header(self, key: str) -> Header:
        return self.ends(key).header()

    @cached_property
    def latest(self) -> float:
        """When a thread changed last (seconds), 0 if that is not recorded."""
        sql = "SELECT rowid FROM checkpoints ORDER BY checkpoint_id DESC LIMIT 1"
        return next((row.time for row in self.checkpoints(self._rowids(sql), Messages()) if row.time is not None), 0.0)

    def _rowids(self, sql: str, *values: Any) -> list[int]:
        return [rowid for (rowid,) in self.rows(sql, *values)]

    def ends(self, thread: str) -> Ends:
        """The rows at both ends of a thread."""
        messages = Messages()
        checkpoints = "SELECT rowid FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id"
        writes = "SELECT rowid FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
        first, last = (
            next(iter(self.checkpoints(self._rowids(f"{checkpoints} {order} LIMIT 1", thread), messages)), None)
            for order in ("ASC", "DESC")
        )
        if last is None:
            return Ends(thread, first, last, Outcome())
        final = without_edges(self._turns(thread, messages)) if last.undecided else frozenset[str]()
        pending, before = (
            self.writes(self._rowids(writes, thread, checkpoint), messages)
            for checkpoint in (last.checkpoint, last.parent)
        )
        outcome = outcome_of(last, pending, before, final)
        return Ends(thread, first, last, outcome.unless_stale(last.time, self.latest))

    def _turns(self, thread: str, messages: Messages) -> list[Checkpoint]:
        """The newest checkpoints of inputs, and those before them."""
        rows = "FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ''"
        inputs = f'{rows} AND instr(CAST(metadata AS TEXT), \'"source": "input"\') ORDER BY checkpoint_id DESC'
        columns = self.select("checkpoints", "checkpoint_id", "parent_checkpoint_id")
        keys = [key for pair in self.rows(f"SELECT {columns} {inputs} LIMIT {_TURNS}", thread) for key in pair]
        sql = f"SELECT rowid {rows} AND checkpoint_id IN ({', '.join('?' * len(keys))})"
        return self.checkpoints(self._rowids(sql, thread, *keys), messages)

    def checkpoints(self, rowids: Sequence[int], messages: Messages) -> list[Checkpoint]:
        """Rows of ``checkpoints``."""
        names = ("checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata")
        sql = f"SELECT rowid, {self.select('checkpoints', *names)} FROM checkpoints WHERE rowid IN ({{keys}})"
        return [
            checkpoint_of(rowid, ns, text(ident) or f"row {rowid}", *values, messages=messages)
            for rowid, ns, ident, *values in many(self.connection, sql, rowids)
        ]

    def writes(self, rowids: Sequence[int], messages: Messages) -> list[Write]:
        """Rows of ``writes``."""
        names = ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "value")
        sql = f"SELECT rowid, {self.select('writes', *names)} FROM writes WHERE rowid IN ({{keys}})"
        return [write_of(*values, messages=messages) for values in many(self.connection, sql, rowids)]

    def loading(self, key: str, path: str) -> Iterator[Loading]:
        """A replaced row has another rowid, or another size."""
        if not self.rows("SELECT 1 FROM checkpoints WHERE thread_id IS ? LIMIT 1", key):
            raise FormatError("the thread is not in the database", f"thread {key}")
        messages = self.cache.setdefault("messages", Messages())
        tables: tuple[tuple[str, tuple[str, ...], Load], ...] = (
            ("checkpoints", ("checkpoint", "metadata"), self.checkpoints),
            ("writes", ("value",), self.writes),
        )
        for table, columns, load in tables:
            size = " + ".join(f"coalesce(length(CAST({column} AS BLOB)), 0)" for column in columns)
            sizes = dict(self.rows(f"SELECT rowid, {size} FROM {table} WHERE thread_id = ? ORDER BY rowid", key))
            yield sizes, partial(_by_rowid, load, messages)

    def run(self, key: str, path: str, *tables: dict[int, Any]) -> ReadState:
        checkpoints, writes = ([*rows.values()] for rows in tables)
        ends = self.ends(key)
        spans = Tree(checkpoints, writes, outcome=ends.outcome).spans
        model = next((span.model for span in spans if span.operation is Operation.CHAT and span.model), None)
        rows = [*checkpoints, *writes]
        return ReadState(
            spans=spans,
            problems=_problems(path, rows),
            header=ends.header(size=sum(row.size for row in rows), model=model),
            body=self._run_body(key, ends.last),
        )

    def body(self, span: Span) -> Body:
        if not isinstance(span.at, At):
            raise changed()
        return _body(self, span.at)

    def _run_body(self, thread: str, last: Checkpoint | None) -> RunBody:
        """The newest state of the thread."""
        attributes: dict[str, Any] = {"thread_id": thread}
        if last is None:
            return RunBody(attributes=attributes)
        _, state = _checkpoint(self.record("SELECT * FROM checkpoints WHERE rowid = ?", last.rowid) or {})
        texts = {message.role: message.text for _, pairs in last.messages for _, message in pairs if message.text}
        return RunBody(
            output=state or None,
            attributes=attributes,
            last_user=texts.get("user"),
            last_assistant=texts.get("assistant"),
            raw=rendered(attributes),
        )


Load = Callable[[Sequence[int], Messages], Iterable[Row]]


def _by_rowid(load: Load, messages: Messages, rowids: Sequence[int]) -> Iterator[tuple[int, Row]]:
    return ((row.rowid, row) for row in load(rowids, messages))


def _problems(path: str, rows: Iterable[Row]) -> list[Problem]:
    """Values that are not read; of pickles the number."""
    problems: list[Problem] = []
    pickles: list[int] = []
    for row in rows:
        if row.problem is not None and row.problem.startswith(PICKLE):
            pickles.append(row.size)
        elif row.problem is not None:
            problems.append(Problem(path, f"checkpoint {row.checkpoint}"[:PREVIEW], row.problem, row.size))
    if pickles:
        problems.append(Problem(path, "thread", f"{len(pickles)} blobs: pickle, not loaded", sum(pickles)))
    return problems


# ---- bodies


def _body(database: Database, at: At) -> Body:
    """Rows, a message, or a call with its result. Raises `FormatError` if a row is not there any more."""
    rows = [(table, _row(database, table, rowid, ident)) for table, rowid, ident in at.rows]
    if at.channel is not None and at.place is not None:
        return _message(rows, at, at.channel, at.place)
    writes = [row for table, row in rows if table == "writes"]
    checkpoints = [_checkpoint(row) for table, row in rows if table == "checkpoints"]
    attributes, state = checkpoints[0] if checkpoints else ({}, None)
    given = (state or {}).pop(START, None) if not writes else None
    output: dict[str, Any] = {}
    if writes:
        attributes = {"checkpoint": attributes} if checkpoints else {}
        attributes |= {name: writes[0].get(name) for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}
        attributes["writes"] = records = []
        for row in writes:
            value = _value(row)
            record = without(row, "value", *attributes)
            name = text(row["channel"]) or ""
            if name in SPECIAL or name in output:
                record["value"] = value
            else:
                output[name] = value
            records.append(record)
    raw = rendered([attributes, output, state])
    return Body(input=given, output=output or None, attributes=attributes, state=state, raw=raw)


def _row(database: Database, table: str, rowid: int, ident: str) -> dict[str, Any]:
    """A row; of bytes that are no value of LangGraph, the size. Raises `FormatError` if it is not there any more."""
    row = database.record(f"SELECT * FROM {table} WHERE rowid = ?", rowid)
    if row is None:
        raise changed(ident)
    write = f"{text(row.get('task_id')) or ''}:{integer(row.get('idx')) or 0}"
    if ident != (write if table == "writes" else text(row["checkpoint_id"]) or f"row {rowid}"):
        raise changed(ident)
    values = ("checkpoint", "metadata", "value")
    return {
        name: f"{len(cell)} bytes" if isinstance(cell, bytes) and name not in values else cell
        for name, cell in row.items()
    }


def _value(row: dict[str, Any]) -> Any:
    """The value of a write, or why it is not read."""
    try:
        return value_of(packed(row.get("type"), row["value"]))
    except FormatError as error:
        value = row["value"]
        return f"{error.reason} ({len(value)} bytes)" if isinstance(value, bytes | str) else value


def _checkpoint(row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A row of ``checkpoints`` without its state, and the state."""
    record = without(row, "checkpoint", "metadata")
    try:
        record["metadata"] = metadata_of(row.get("metadata"))
    except FormatError as error:
        record["metadata"] = f"not read: {error.reason}"
    try:
        record["checkpoint"] = value = value_of(packed(row.get("type"), row.get("checkpoint")))
    except FormatError as error:
        return record | {"checkpoint": f"not read: {error.reason}"}, None
    state = value.pop("channel_values", None) if isinstance(value, dict) else None
    if state is not None and not isinstance(state, dict):
        return record | {"channel_values": state}, None
    return record, state


def _object(table: str, row: dict[str, Any], channel: str, place: Place) -> dict[str, Any]:
    blob = packed(row.get("type"), row["checkpoint" if table == "checkpoints" else "value"])
    if table == "checkpoints":
        blob = fields_of(fields_of(blob)["channel_values"])[channel]
    value = object_at(blob, place)
    if value is None:
        raise changed(channel)
    return value


def _message(rows: Sequence[tuple[str, dict[str, Any]]], at: At, channel: str, place: Place) -> Body:
    """A message, or one of its calls."""
    table, row = rows[0]
    value = _object(table, row, channel, place)
    where = {name: row[name] for name in ("checkpoint_ns", "checkpoint_id", "task_id") if row.get(name)}
    if at.call < 0:
        return _said(value, where | {"channel": channel})
    calls = sequence(value.get("tool_calls"))
    call = mapping(calls[at.call]) if at.call < len(calls) else {}
    attributes = without(call, "args", "name") | where
    if at.answer is None:
        return Body(input=call.get("args"), attributes=attributes, raw=rendered(call))
    answer = _object(*rows[-1], *at.answer)
    attributes["result"] = without(answer, "content")
    return Body(input=call.get("args"), output=answer["content"], attributes=attributes, raw=rendered([call, answer]))


def _said(value: dict[str, Any], where: dict[str, Any]) -> Body:
    """The body of a message."""
    role, content = role_of(value) or "user", value.get("content")
    calls = sequence(value.get("tool_calls")) if role == "assistant" else []
    parts, rest = as_parts(content)
    attributes = without(value, "content", *(["tool_calls"] if role == "assistant" else [])) | where
    if rest is not None:
        attributes["content"] = rest
    if role == "tool":
        ident, is_error = text(value.get("tool_call_id")), value.get("status") == "error"
        parts = [ToolResult(ident, content, is_error, text(value.get("name")))]
    rests = [without(call, "args", "name", "id") if isinstance(call, dict) and call else call for call in calls]
    if rests := [more for more in rests if more not in ({"type": "tool_call"}, {})]:
        attributes["tool_calls"] = rests
    attributes[TYPE] = value[TYPE]
    name, finish = text(value.get("name")), finish_of(value)
    message = Message(role, (*parts, *map(call_part, calls)), text(value.get("id")), finish, name)
    body = message_body(message, attributes, rendered(value), is_output=role in ("assistant", "tool"))
    return body if role != "tool" else replace(body, output=text_in(content) or None)


class LangGraph(DatabaseFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "langgraph"
    title = "LangGraph thread"
    tables, names = Database, _TABLES

    def sniff(self, file: File) -> int:
        if b"checkpoint_ns" in file.head:
            return super().sniff(file)
        return min(super().sniff(file), NO if b"checkpoints" in file.head else _LIKELY)
