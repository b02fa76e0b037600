"""LangGraph: threads in the SQLite databases of its checkpointer.

Facts: databases of langgraph 0.2.28 and 1.2.24 (langgraph-checkpoint-sqlite 1.0.4 and 3.1.2): tables ``checkpoints``
and ``writes`` in any file. Values are read as data (`blobs`); pickles are counted and never loaded.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import NO
from tracetui.formats.bodies import call_part, changed, message_body, parts_in, rendered, text_in
from tracetui.formats.decode import decode
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
    object_at,
    role_of,
    write_of,
)
from tracetui.formats.langgraph.spans import At, Outcome, Tree, outcome_of, without_edges
from tracetui.formats.scalars import integer, layout, mapping, sequence, task_key, text, without
from tracetui.formats.sqlite import (
    DatabaseFormat,
    Loading,
    ReadState,
    RunTables,
    is_stale,
    many,
)
from tracetui.model import (
    PREVIEW,
    Body,
    Header,
    Message,
    Operation,
    Part,
    Problem,
    RunBody,
    Span,
    Status,
    StatusSource,
    ToolResult,
)
from tracetui.sources.base import File

_TABLES: Final = frozenset({"checkpoints", "writes"})
_LIKELY: Final = 60
"""The tables alone: their columns are in the log of the database only."""
_TURNS: Final = 8
"""Turns that are read to find out how the last one ended (2024)."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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
    pending: Sequence[Write]
    before: Sequence[Write]
    """The writes that made the last checkpoint."""
    final: frozenset[str] = frozenset()
    """As `without_edges` has it, if it matters."""

    def outcome(self, latest: float) -> Outcome:
        """How it ended; a thread without an end is over if others of its database changed long after it."""
        outcome = outcome_of(self.last, self.pending, self.before, self.final)
        is_over = outcome.status is None and self.last is not None and is_stale(self.last.time, latest)
        return Outcome(Status.UNKNOWN, StatusSource.DERIVED) if is_over else outcome

    @property
    def asked(self) -> str:
        """The first input."""
        if self.first is None:
            return ""
        placed = (message for _, pairs in self.first.messages for _, message in pairs if message.role == "user")
        return self.first.asked or next((message.text for message in placed), "")

    def header(self, latest: float, *, size: int | None = None, model: str | None = None) -> Header:
        """The header; `latest` is when any thread changed last (seconds)."""
        outcome, first = self.outcome(latest), self.first
        name = (first.graph if first is not None else None) or "LangGraph"
        return Header(
            id=self.thread,
            name=name[:PREVIEW],
            model=model,
            status=outcome.status,
            status_word=outcome.word,
            status_source=outcome.source,
            ended=outcome.status is not None,
            started_at=first.time if first is not None else None,
            repeats=task_key(name, self.asked),
            identity=task_key("langgraph", self.thread) if _UUID.fullmatch(self.thread) else None,
            origin=first.checkpoint if first is not None and _UUID.fullmatch(first.checkpoint) else None,
            prompt=self.asked[:PREVIEW],
            writer=layout(first.version) if first is not None else None,
            size=size,
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
        for table, blob in (("checkpoints", "checkpoint"), ("writes", "value")):
            strange = "typeof(thread_id) != 'text' OR thread_id = ''"
            lost = f"({strange} OR thread_id NOT IN (SELECT thread_id FROM checkpoints))"
            ((rows,),) = self.rows(f"SELECT count(*) FROM {table} WHERE {lost if table == 'writes' else strange}")
            if rows:
                yield Problem(path, table, f"{rows} rows belong to no thread")
            if "type" in self.columns[table]:
                ((pickles,),) = self.rows(f"SELECT count(*) FROM {table} WHERE type = '{PICKLE}'")
                if pickles:
                    yield Problem(path, f"{table}.{blob}", f"{pickles} rows: pickle, not loaded")

    def header(self, key: str) -> Header:
        return self.ends(key).header(self.latest)

    @cached_property
    def latest(self) -> float:
        """When a thread changed last (seconds), 0 if that is not recorded."""
        sql = "SELECT rowid FROM checkpoints ORDER BY checkpoint_id DESC LIMIT 1"
        rows = self.checkpoints([rowid for (rowid,) in self.rows(sql)], Messages())
        return next((row.time for row in rows if row.time is not None), 0.0)

    def ends(self, thread: str) -> Ends:
        """The rows at both ends of a thread."""
        sql = "SELECT rowid FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id"
        messages = Messages()
        first, last = (
            next(
                iter(self.checkpoints([rowid for (rowid,) in self.rows(f"{sql} {order} LIMIT 1", thread)], messages)),
                None,
            )
            for order in ("ASC", "DESC")
        )

        def started(checkpoint: str | None) -> list[Write]:
            where = "thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
            rows = self.rows(f"SELECT rowid FROM writes WHERE {where}", thread, checkpoint)
            return self.writes([rowid for (rowid,) in rows], messages)

        if last is None:
            return Ends(thread, first, last, (), ())
        final = without_edges(self._turns(thread, messages)) if last.undecided else frozenset[str]()
        return Ends(thread, first, last, started(last.checkpoint), started(last.parent), final)

    def _turns(self, thread: str, messages: Messages) -> list[Checkpoint]:
        """The newest checkpoints of inputs, and those before them."""
        rows = "FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ''"
        inputs = f'{rows} AND instr(CAST(metadata AS TEXT), \'"source": "input"\') ORDER BY checkpoint_id DESC'
        columns = self.select("checkpoints", "checkpoint_id", "parent_checkpoint_id")
        keys = [key for pair in self.rows(f"SELECT {columns} {inputs} LIMIT {_TURNS}", thread) for key in pair]
        sql = f"SELECT rowid {rows} AND checkpoint_id IN ({', '.join('?' * len(keys))})"
        return self.checkpoints([rowid for (rowid,) in self.rows(sql, thread, *keys)], messages)

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
        size = "coalesce(length(CAST({} AS BLOB)), 0)"
        sizes = {
            "checkpoints": f"{size.format('checkpoint')} + {size.format('metadata')}",
            "writes": size.format("value"),
        }
        loads: dict[str, Callable[[Sequence[int], Messages], Iterable[Row]]]
        loads = {"checkpoints": self.checkpoints, "writes": self.writes}
        for table, column in sizes.items():
            sql = f"SELECT rowid, {column} FROM {table} WHERE thread_id = ? ORDER BY rowid"
            yield dict(self.rows(sql, key)), partial(_by_rowid, loads[table], messages)

    def run(self, key: str, path: str, *tables: dict[int, Any]) -> ReadState:
        checkpoints, writes = ([*rows.values()] for rows in tables)
        ends = self.ends(key)
        tree = Tree(checkpoints, writes, outcome=ends.outcome(self.latest))
        model = next((span.model for span in tree.spans if span.operation is Operation.CHAT and span.model), None)
        header = ends.header(self.latest, size=sum(row.size for row in (*checkpoints, *writes)), model=model)
        problems, body = _problems(path, checkpoints, writes), self._run_body(key, ends.last)
        return ReadState(spans=tree.spans, problems=problems, header=header, body=body)

    def body(self, span: Span) -> Body:
        if not isinstance(span.at, At):
            raise changed()
        return _body(self, span.at)

    def _run_body(self, thread: str, last: Checkpoint | None) -> RunBody:
        """The newest state of the thread."""
        attributes: dict[str, Any] = {"thread_id": thread}
        if last is None:
            return RunBody(attributes=attributes)
        row = self.record("SELECT * FROM checkpoints WHERE rowid = ?", last.rowid) or {}
        said = [message for _, placed in last.messages for _, message in placed if message.text]
        asked = [message.text for message in said if message.role == "user"]
        answered = [message.text for message in said if message.role == "assistant"]
        _, state = _checkpoint(row)
        return RunBody(
            output=state or None,
            attributes=attributes,
            last_user=asked[-1] if asked else None,
            last_assistant=answered[-1] if answered else None,
            raw=rendered(attributes),
        )


def _by_rowid(
    load: Callable[[Sequence[int], Messages], Iterable[Row]], messages: Messages, rowids: Sequence[int]
) -> Iterator[tuple[int, Row]]:
    return ((row.rowid, row) for row in load(rowids, messages))


def _problems(path: str, checkpoints: Sequence[Checkpoint], writes: Sequence[Write]) -> list[Problem]:
    """Values that are not read; of pickles the number."""
    rows: list[Row] = [row for row in (*checkpoints, *writes) if row.problem is not None]
    pickles = [row for row in rows if (row.problem or "").startswith(PICKLE)]
    problems = [
        Problem(path, f"checkpoint {row.checkpoint}"[:PREVIEW], row.problem or "", row.size)
        for row in rows
        if row not in pickles
    ]
    if pickles:
        lost = sum(row.size for row in pickles)
        problems.append(Problem(path, "thread", f"{len(pickles)} blobs: pickle, not loaded", lost))
    return problems


# ---- bodies


def _body(database: Database, at: At) -> Body:
    """Rows, a message, or a call with its result. Raises `FormatError` if a row is not there any more."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for table, rowid, ident in at.rows:
        row = database.record(f"SELECT * FROM {table} WHERE rowid = ?", rowid)
        current = row and (
            (text(row["checkpoint_id"]) or f"row {rowid}")
            if table == "checkpoints"
            else f"{text(row['task_id']) or ''}:{integer(row['idx']) or 0}"
        )
        if row is None or current != ident:
            raise changed(ident)
        strange = {name: f"{len(cell)} bytes" for name, cell in row.items() if isinstance(cell, bytes)}
        rows.append((table, row | without(strange, "checkpoint", "metadata", "value")))
    if at.channel is not None and at.place is not None:
        return _message(rows, at)
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
        data = row.get("metadata") or b"{}"
        record["metadata"] = decode(data if isinstance(data, bytes) else str(data).encode("utf-8", "surrogatepass"))[0]
    except FormatError as error:
        record["metadata"] = f"not read: {error.reason}"
    try:
        value = value_of(packed(row.get("type"), row.get("checkpoint")))
    except FormatError as error:
        return record | {"checkpoint": f"not read: {error.reason}"}, None
    if not isinstance(value, dict):
        return record | {"checkpoint": value}, None
    state = value.pop("channel_values", None)
    record["checkpoint"] = value
    if isinstance(state, dict):
        return record, state
    return record | ({"channel_values": state} if state is not None else {}), None


def _object(table: str, row: dict[str, Any], channel: str, place: Place) -> dict[str, Any]:
    blob = packed(row.get("type"), row["checkpoint" if table == "checkpoints" else "value"])
    if table == "checkpoints":
        blob = fields_of(fields_of(blob)["channel_values"])[channel]
    value = object_at(blob, place)
    if value is None:
        raise changed(channel)
    return value


def _message(rows: Sequence[tuple[str, dict[str, Any]]], at: At) -> Body:
    """A message, or one of its calls."""
    table, row = rows[0]
    value = _object(table, row, at.channel or "", at.place or Place(b"", 0))
    where = {name: row[name] for name in ("checkpoint_ns", "checkpoint_id", "task_id") if row.get(name)}
    if at.call < 0:
        return _said(value, where | {"channel": at.channel})
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
    role, facts = role_of(value) or "user", mapping(value.get("response_metadata"))
    said, rest = parts_in(value.get("content"))
    attributes = without(value, "content", *(["tool_calls"] if role == "assistant" else [])) | where
    if rest is not None:
        attributes["content"] = rest
    parts: list[Part] = [*said]
    rests = []
    if role == "tool":
        ident, is_error = text(value.get("tool_call_id")), value.get("status") == "error"
        parts = [ToolResult(ident, value.get("content"), is_error, text(value.get("name")))]
    for call in sequence(value.get("tool_calls")) if role == "assistant" else []:
        fields = mapping(call)
        parts.append(call_part(call))
        more = without(fields, "args", "name", "id") if fields else call
        rests += [more] if more not in ({"type": "tool_call"}, {}) else []
    if rests:
        attributes["tool_calls"] = rests
    finish = text(facts.get("finish_reason")) or text(facts.get("stop_reason"))
    message = Message(role, tuple(parts), text(value.get("id")), finish, text(value.get("name")))
    attributes[TYPE] = value[TYPE]
    body = message_body(message, attributes, rendered(value), is_output=role in ("assistant", "tool"))
    return body if role != "tool" else replace(body, output=text_in(value.get("content")) or None)


class LangGraph(DatabaseFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "langgraph"
    title = "LangGraph thread"
    tables, names = Database, _TABLES

    def sniff(self, file: File) -> int:
        if b"checkpoint_ns" in file.head:
            return super().sniff(file)
        return min(super().sniff(file), NO if b"checkpoints" in file.head else _LIKELY)
