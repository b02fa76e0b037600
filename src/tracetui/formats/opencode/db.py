"""``opencode.db``: list its sessions, read one with its sub-agents, look a span up."""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection, Error
from typing import Any

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk
from tracetui.formats.opencode.body import body_of, changed, rendered
from tracetui.formats.opencode.follow import Known, read_on
from tracetui.formats.opencode.forks import Opening, is_suspect, listed, original_of
from tracetui.formats.opencode.records import At, Info, moment
from tracetui.formats.opencode.rows import (
    Schema,
    attributes_of,
    has_parts,
    message_of,
    message_rows,
    newest,
    part_rows,
    schema_of,
    session,
    sessions,
    stored,
)
from tracetui.formats.opencode.run import LEADING, STALE_MS, header_of, header_of_tree, run_body
from tracetui.formats.opencode.spans import Told, tell
from tracetui.model import Body, Link, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import FOLLOWED, File
from tracetui.sources.sqlite import is_passing, version_of


class Reading(msgspec.Struct, frozen=True):
    """A cursor."""

    known: Known
    """What was read of the sessions."""
    about: Any = None
    """What was told of the run as a whole."""
    version: object = None
    """The version of the database all of which was read."""


def summarize(file: File, name: str, *, deep: bool) -> Iterator[RunSummary | Problem]:
    """Every session that is no sub-agent of another one."""
    with file.database(follow=FOLLOWED in file.memo) as connection:
        connection.execute("BEGIN")  # one state of it for all statements; closing ends it
        schema = schema_of(connection)
        infos = sessions(connection, schema)
        yield from _unlisted(connection, schema, file.path, len(infos), deep=deep)
        runs, circular = listed(infos)
        for info in circular:
            yield Problem(file.path, f"session {info.id}", "its parents go round in a circle: it stands for itself")
        latest = max((info.updated or 0 for info in infos), default=0)
        openings = _Openings(connection, schema)
        modified_at, moving = file.stat.mtime, file.moving
        for info in runs:
            ref = RunRef(name, file.path, info.id)
            stale = info.updated is not None and info.updated < latest - STALE_MS
            original = original_of(info, openings.of(info), ((one, openings.of(one)) for one in runs))
            if deep:
                known = read_on(connection, schema, file.path, info, None, original=original)
                builder = RunBuilder(ref, lambda span: Body())
                header = header_of_tree(known.tree, stale=stale)
                builder.add(known.spans, header=header, problems=known.tree.problems)
                yield builder.summary(modified_at=modified_at, moving=moving)
            else:
                header = header_of(info, openings.leading(info), openings.last(info), stale=stale, original=original)
                yield summary_of(ref, header, None, modified_at=modified_at, moving=moving)


def _unlisted(connection: Connection, schema: Schema, path: str, found: int, *, deep: bool) -> Iterator[Problem]:
    """What no run shows."""
    (rows,) = connection.execute("SELECT count(*) FROM session").fetchone()
    if rows > found:
        yield Problem(path, "session", f"{rows - found} rows have no id")
    if not has_parts(schema):
        yield Problem(path, "part", "the table has no columns message_id, data: no part of any message can be read")
    elif deep and (lost := _lost(connection, "part", "message_id", "message")):
        yield Problem(path, "part", f"{lost} rows belong to no message")
    if deep and (lost := _lost(connection, "message", "session_id", "session")):
        yield Problem(path, "message", f"{lost} rows belong to no session")


def _lost(connection: Connection, table: str, key: str, above: str) -> int:
    """How many rows of a table name no row of the one above."""
    sql = f"SELECT count(*) FROM {table} WHERE {key} IS NULL OR {key} NOT IN (SELECT id FROM {above} WHERE id NOT NULL)"
    (count,) = connection.execute(sql).fetchone()
    return int(count)


class _Openings:
    """How sessions begin and end, looked up when it is asked for."""

    def __init__(self, connection: Connection, schema: Schema) -> None:
        self._connection, self._schema = connection, schema
        self._order = schema.order("message")
        self._found: dict[str, Opening] = {}

    def of(self, info: Info) -> Opening:
        """How a session begins."""
        if info.id not in self._found:
            first = self._first(info)
            self._found[info.id] = Opening(first, lambda: self._said(info))
        return self._found[info.id]

    def _first(self, info: Info) -> float | None:
        if not self._schema.has("message", "time_created"):
            return None
        sql = "SELECT min(time_created) FROM message WHERE session_id = ?"
        return moment(self._connection.execute(sql, (info.id,)).fetchone()[0])

    def _said(self, info: Info) -> str:
        return next((told.said for told in self.leading(info) if told.is_prompt), "")

    def leading(self, info: Info) -> list[Told]:
        """The first messages of a session, up to `LEADING`; parts only up to the first prompt."""
        found: list[Told] = []
        prompted = False
        for row in self._rows(info, f"{self._order} LIMIT {LEADING}"):
            parts = () if prompted else part_rows(self._connection, self._schema, [row[1]]).get(row[1], ())
            found.append(tell(message_of(row, parts)[0]))
            prompted = prompted or found[-1].is_prompt
        return found

    def last(self, info: Info) -> Told | None:
        """The last message of a session, without its parts."""
        backwards = ", ".join(f"{name} DESC" for name in self._order.split(", "))
        rows = self._rows(info, f"{backwards} LIMIT 1")
        return tell(message_of(rows[0], ())[0]) if rows else None

    def _rows(self, info: Info, order: str) -> list[tuple[Any, ...]]:
        return message_rows(self._connection, self._schema, f"session_id IN ({{keys}}) ORDER BY {order}", [info.id])


def read(file: File, ref: RunRef, cursor: Reading | None) -> Chunk:
    """What is new of one session and its sub-agents: what is there already costs a look at its times."""
    try:
        with file.database(follow=cursor is not None or FOLLOWED in file.memo) as connection:
            connection.execute("BEGIN")
            return _read(connection, file.path, ref, cursor)
    except (Error, OSError) as error:
        if cursor is None or not is_passing(error):
            raise
        return Chunk(cursor=cursor)  # what was read before stays


def _read(connection: Connection, path: str, ref: RunRef, cursor: Reading | None) -> Chunk:
    version = version_of(connection)
    if cursor is not None and cursor.version == version is not None:
        return Chunk(cursor=cursor)
    schema = schema_of(connection)
    info = session(connection, schema, ref.key or "")
    if info is None:
        raise FormatError("the session is not in the database", f"session {ref.key}")
    before = None if cursor is None else cursor.known
    known = read_on(connection, schema, path, info, before, original=_original(connection, schema, info), pieces=True)
    latest = newest(connection, schema)
    stale = info.updated is not None and latest is not None and info.updated < latest - STALE_MS
    attributes = attributes_of(connection, schema, info)
    header, body = header_of_tree(known.tree, stale=stale), run_body(known.tree, attributes, rendered(attributes))
    about = header, body
    is_new = cursor is None or known.reset or about != cursor.about
    return Chunk(
        spans=known.given,
        header=header if is_new else None,
        body=body if is_new else None,
        problems=known.problems,
        cursor=Reading(known, about, version if known.done else None),
        reset=known.reset,
        done=known.done,
    )


def _original(connection: Connection, schema: Schema, info: Info) -> str | None:
    """The session that this one was forked from; looked for only where it may be a fork."""
    openings = _Openings(connection, schema)
    if not is_suspect(info, openings.of(info).first):
        return None
    runs, _ = listed(sessions(connection, schema))
    return original_of(info, openings.of(info), ((one, openings.of(one)) for one in runs))


def body(file: File, span: Span) -> Body:
    """Everything about one span."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    with file.database(follow=FOLLOWED in file.memo) as connection:
        connection.execute("BEGIN")
        schema = schema_of(connection)
        if at.message is None:
            return _made_up(connection, schema, span)
        found = stored(connection, schema, at.message[0], at.part[0] if at.part else None)
        if found is None:
            raise changed("its row is gone")
        message, raw = found
        if at.part is None and not at.step and message.id != span.id:
            raise changed(f"message {span.id}")
        return body_of(span, message, rendered(raw))


def _made_up(connection: Connection, schema: Schema, span: Span) -> Body:
    """A span that no message tells: a sub-agent, what was reverted."""
    at: At = span.at
    if not at.shows:
        return Body()
    rows = sessions(connection, schema, "WHERE rowid IN ({keys})", at.session)
    if not rows:
        raise changed(f"session {span.id}")
    attributes = attributes_of(connection, schema, rows[0], whole=False)
    if at.shows == "revert":
        return Body(attributes=rows[0].revert)
    links = (Link("started by", span=span.parent_id),) if span.parent_id else ()
    return Body(attributes=attributes, links=links, raw=rendered(attributes))
