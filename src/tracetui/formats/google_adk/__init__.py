"""Google ADK: sessions in the databases of its session services.

Facts: databases of google-adk 2.13.0. ``SqliteSessionService`` (``.adk/session.db``) and schema 1 of
``DatabaseSessionService`` keep each event as JSON. Schema 0 has columns, and the actions of an event as a pickle, which
is never loaded.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from sqlite3 import Connection
from typing import Any, ClassVar, Final

from msgspec import Struct

from tracetui.errors import FormatError
from tracetui.formats.bodies import changed, message_body, rendered
from tracetui.formats.decode import decode
from tracetui.formats.google_adk.events import USER, At, Event, Spans, event_of, outcome_of, snake
from tracetui.formats.scalars import UUID, mapping, moment, number, sequence, task_key, text, without
from tracetui.formats.schema import Unknown, unknown_fields
from tracetui.formats.sqlite import DatabaseFormat, Loading, ReadState, Row, RunTables, many, quoted
from tracetui.model import (
    PREVIEW,
    Blob,
    Body,
    Header,
    Message,
    Part,
    Problem,
    Reasoning,
    RunBody,
    Span,
    Text,
    ToolCall,
    ToolResult,
)

_TABLES: Final = frozenset({"sessions", "events", "app_states", "user_states"})
_LEADING: Final = 12
_TRAILING: Final = 16
"""Events at both ends of a session that describe it: the list stage reads only these."""
_PICKLE: Final = "pickle, not loaded"


# ---- sessions


class Session(Struct, frozen=True):
    """A row of ``sessions``. `key` is its id; of several with one id, all but the first have user and app in it."""

    key: str
    rowid: int
    id: str
    app: Any
    user: Any
    created: float | None
    updated: float | None


class Database(RunTables):
    """The tables. Raises `FormatError` if no session can be read in them."""

    NEEDED: ClassVar = {"sessions": {"id", "app_name", "user_id"}, "events": {"id", "session_id", "timestamp"}}
    OTHERS = ("app_states", "user_states")

    def __init__(self, connection: Connection, key: str | None = None) -> None:
        super().__init__(connection, key)
        self.is_json = "event_data" in self.columns["events"]
        if not self.is_json and "content" not in self.columns["events"]:
            raise FormatError("the table `events` has neither a column event_data nor content")

    def run_keys(self) -> list[str]:
        return list(self.sessions)

    @cached_property
    def sessions(self) -> dict[str, Session]:
        """All sessions that have an id, by key."""
        columns = self.select("sessions", "id", "app_name", "user_id", "create_time", "update_time")
        sessions: dict[str, Session] = {}
        for rowid, ident, app, user, created, updated in self.rows(
            f"SELECT rowid, {columns} FROM sessions ORDER BY rowid"
        ):
            if text(ident) is not None:
                key = ident if ident not in sessions else f"{ident}@{user}@{app}"
                sessions.setdefault(key, Session(key, rowid, ident, app, user, _seconds(created), _seconds(updated)))
        return sessions

    def session(self, key: str) -> Session:
        """The session of that key. Raises `FormatError` if there is none."""
        session = self.sessions.get(key)
        if session is None:
            raise FormatError("the session is not in the database", f"session {key}")
        return session

    @cached_property
    def latest(self) -> float:
        """When a session changed last (seconds), 0 if that is not recorded."""
        times = self.rows(f"SELECT max({self.select('sessions', 'update_time')}) FROM sessions")
        return _seconds(times[0][0]) or 0.0

    def unlisted(self, path: str) -> Iterator[Problem]:
        if rows := self.count("sessions") - len(self.sessions):
            yield Problem(path, "sessions", f"{rows} rows have no id of their own")
        owners = "SELECT 1 FROM sessions s WHERE s.id = e.session_id"
        owners += "".join(
            f" AND s.{name} IS e.{name}" for name in ("app_name", "user_id") if name in self.columns["events"]
        )
        if lost := self.count(f"events e WHERE NOT EXISTS ({owners})"):
            yield Problem(path, "events", f"{lost} rows belong to no session")
        has_pickles = not self.is_json and "actions" in self.columns["events"]
        if has_pickles and (pickles := self.count("events WHERE typeof(actions) = 'blob'")):
            yield Problem(path, "events.actions", f"{pickles} rows: {_PICKLE} (state changes, transfers, rewinds)")

    # ---- events

    def _where(self, session: Session) -> tuple[str, list[Any]]:
        values = {"session_id": session.id, "app_name": session.app, "user_id": session.user}
        there = {name: value for name, value in values.items() if name in self.columns["events"]}
        return " AND ".join(f"{name} IS ?" for name in there), list(there.values())

    def ends(self, session: Session) -> list[Event]:
        """The events at both ends of a session; all if they are few."""
        where, values = self._where(session)
        size = f"SELECT rowid FROM events WHERE {where} ORDER BY timestamp"
        first = [row[0] for row in self.rows(f"{size}, rowid LIMIT {_LEADING}", *values)]
        last = [row[0] for row in self.rows(f"{size} DESC, rowid DESC LIMIT {_TRAILING}", *values)]
        order = [*first, *(rowid for rowid in reversed(last) if rowid not in set(first))]
        rows = dict(self._events(order, ""))
        return [event for rowid in order if rowid in rows and (event := rows[rowid].value) is not None]

    def header(self, key: str) -> Header:
        session = self.session(key)
        return self._header(session, self.ends(session))

    def loading(self, key: str, path: str) -> Iterator[Loading]:
        where, values = self._where(self.session(key))
        data = "event_data" if self.is_json else "content"
        sql = f"SELECT rowid, id, timestamp, length({data}) FROM events WHERE {where} ORDER BY timestamp, rowid"
        yield {row[0]: row[1:] for row in self.rows(sql, *values)}, partial(self._events, path=path)

    def run(self, key: str, path: str, *tables: dict[int, Row]) -> ReadState:
        session, rows = self.session(key), [*tables[0].values()]
        events: list[Event] = [row.value for row in rows if row.value is not None]
        spans, fields = Spans(events, path), unknown_fields(*(row.unknown for row in rows))
        return ReadState(
            spans=spans.spans,
            problems=[*(row.problem for row in rows if row.problem is not None), *spans.problems],
            header=self._header(session, events, size=sum(row.size for row in rows), fields=fields),
            body=self._run_body(session, events),
        )

    def _header(self, session: Session, events: Sequence[Event], **facts: Any) -> Header:
        """The header, by the events at both ends of a session: `events` has at least these."""
        leading = events[:_LEADING]
        outcome = outcome_of(events[-_TRAILING:]).unless_stale(session.updated, self.latest)
        app = text(session.app) or "ADK"
        prompt = next((event.text for event in leading if event.author == USER and event.text), "")
        is_global = UUID.fullmatch(session.id) is not None
        return Header(
            id=session.id,
            name=app,
            agent=next((event.author for event in leading if event.author != USER), None),
            model=next((event.record.model_version for event in leading if event.record.model_version), None),
            started_at=session.created,
            repeats=task_key(app, prompt),
            identity=task_key("google-adk", f"{app}\0{session.user}\0{session.id}") if is_global else None,
            prompt=prompt[:PREVIEW],
            source=text(session.user),
            **outcome.facts,
            **facts,
        )

    def body(self, span: Span) -> Body:
        """A message, a call with its results, or a note."""
        if not isinstance(span.at, At):
            raise changed()
        rows = [self._row(*place) for place in span.at.rows]
        raw, records = rendered(rows[0] if len(rows) == 1 else rows), [_whole(row) for row in rows]
        return _message(records[0], raw) if span.at.part < 0 else _call(records, span.at.part, raw)

    def _row(self, rowid: int, ident: str) -> dict[str, Any]:
        """The row of an event. Raises `FormatError` if it is not there any more."""
        row = self.record("SELECT * FROM events WHERE rowid = ?", rowid)
        if row is None or (text(row.get("id")) or f"row {rowid}") != ident:
            raise changed(f"event {ident}")
        return _values(row)

    def _events(self, rowids: Sequence[int], path: str) -> Iterator[tuple[int, Row]]:
        names = ("event_data",) if self.is_json else tuple(self.columns["events"])
        columns = self.select("events", "id", "invocation_id", "timestamp")
        data = "CAST(event_data AS BLOB)" if self.is_json else ", ".join(map(quoted, names))
        length = "length(event_data)" if self.is_json else "length(content)"
        sql = f"SELECT rowid, {columns}, {length}, {data} FROM events WHERE rowid IN ({{keys}})"
        for rowid, ident, invocation, when, size, *values in many(self.connection, sql, rowids):
            unknown: Unknown = {}
            event, problem, content = None, None, values[0] or b""
            try:
                if not self.is_json:
                    record = _plain_columns(dict(zip(names, values, strict=True)))
                    content = rendered(record)
                event = event_of(rowid, ident, invocation, _seconds(when), content, unknown)
            except FormatError as error:
                problem = Problem(path, f"event {ident or rowid}", error.reason, len(content))
            yield rowid, Row((ident, when, size), event, problem, len(content), unknown)

    def _run_body(self, session: Session, events: Sequence[Event]) -> RunBody:
        """The row of the session, and the states of its app and user, which it shares with others."""
        own = _values(self.record("SELECT * FROM sessions WHERE rowid = ?", session.rowid))
        owners = {"app_name": session.app, "user_id": session.user}
        for table, names in (("app_states", ("app_name",)), ("user_states", ("app_name", "user_id"))):
            if {"state", *names}.issubset(self.columns[table]):
                where = " AND ".join(f"{name} IS ?" for name in names)
                shared = self.record(f"SELECT * FROM {table} WHERE {where}", *(owners[name] for name in names))
                own[table] = without(_values(shared), *owners)
        prompts = [event.text for event in events if event.text and event.author == USER]
        answers = [event.text for event in events if event.text and event.author != USER]
        last_user, last_assistant = (texts[-1] if texts else None for texts in (prompts, answers))
        return RunBody(attributes=own, last_user=last_user, last_assistant=last_assistant, raw=rendered(own))


def _seconds(value: Any) -> float | None:
    """A time in seconds since the epoch: a number, or a text without a zone, which is UTC."""
    return number(value) if not isinstance(value, str) else moment(value)


def _value(value: Any) -> Any:
    """The value of a column: JSON decoded, bytes as their size (they may be a pickle)."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes: {_PICKLE}"
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value.encode("utf-8", "surrogatepass"))[0]
        except FormatError:
            return value
    return value


def _values(row: dict[str, Any] | None) -> dict[str, Any]:
    """A row with the values of its columns; empty for none."""
    return {name: _value(value) for name, value in (row or {}).items()}


def _plain_columns(row: dict[str, Any]) -> dict[str, Any]:
    """An event of schema 0 as a record of schema 1."""
    row = without(row, "session_id", "app_name", "user_id", "actions")
    record = {name: _value(value) for name, value in row.items() if value is not None}
    if (waiting := record.pop("long_running_tool_ids_json", None)) is not None:
        record["long_running_tool_ids"] = waiting
    return record


# ---- bodies


def _call(records: list[dict[str, Any]], number: int, raw: bytes) -> Body:
    """The part of that number of the first record: a call with its results in the others, or a result alone."""
    first = sequence(mapping(records[0].get("content")).get("parts"))
    part = mapping(first[number]) if number < len(first) else {}
    call = mapping(part.get("function_call"))
    answers = records[1:] if call else records
    results = [
        response.get("response")
        for record in answers
        for item in sequence(mapping(record.get("content")).get("parts"))
        if (response := mapping(mapping(item).get("function_response")))
        and (not call or response.get("id") == call.get("id"))
    ]
    attributes = without(call, "args", "name")
    attributes |= {f"result {count}": _without_content(record) for count, record in enumerate(answers, 1)}
    if len(results) > 1:
        attributes["earlier results"] = results[:-1]
    return Body(input=call.get("args"), output=results[-1] if results else None, attributes=attributes, raw=raw)


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """A record of an event with the columns beside it."""
    data = row.pop("event_data", None)
    if isinstance(data, dict):
        beside = {name: value for name, value in row.items() if data.get(name) != value}
        current = snake(data)
        return current | {f"row.{name}" if name in current else name: value for name, value in beside.items()}
    return row if data is None else row | {"event_data": data}


def _without_content(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "content" and value not in (None, {}, [])}


def _message(record: dict[str, Any], raw: bytes) -> Body:
    attributes = _without_content(record)
    content = record.get("content")
    if not isinstance(content, dict):
        return Body(attributes=attributes if content is None else attributes | {"content": content}, raw=raw)
    pairs = [_part(item) for item in sequence(content.get("parts"))]
    if rests := [rest for _, rest in pairs if rest]:
        attributes["parts"] = rests
    role = text(content.get("role")) or text(record.get("author")) or "agent"
    role = "assistant" if role == "model" else role
    message_fields = ("parts",) if isinstance(content.get("parts"), list | None) else ()
    if other := {name: value for name, value in content.items() if name not in message_fields and value != role}:
        attributes["content"] = other
    message = Message(role, tuple(part for part, _ in pairs), finish_reason=text(record.get("finish_reason")))
    return message_body(message, attributes, raw, is_output=record.get("author") != USER)


def _part(item: Any) -> tuple[Part, dict[str, Any]]:
    """A part of a message, and its fields that don't fit."""
    fields = {name: value for name, value in mapping(item).items() if value is not None}
    if isinstance(content := fields.get("text"), str):
        return (Reasoning if fields.get("thought") is True else Text)(content), without(fields, "text", "thought")
    call, response = fields.get("function_call"), fields.get("function_response")
    if isinstance(call, dict) and isinstance(call.get("name"), str):
        rest = without(fields, "function_call") | without(call, "id", "name", "args")
        return ToolCall(text(call.get("id")), call["name"], call.get("args")), rest
    if isinstance(response, dict):
        rest = without(fields, "function_response") | without(response, "id", "name", "response")
        name = text(response.get("name"))
        return ToolResult(text(response.get("id")), response.get("response"), None, name), rest
    return Blob("part", item), {}


class GoogleAdk(DatabaseFormat):
    """The format; see `tracetui.formats.base.Format`."""

    name = "google-adk"
    title = "Google ADK session"
    tables, names = Database, _TABLES
