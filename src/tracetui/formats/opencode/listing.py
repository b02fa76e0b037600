"""What sessions there are in ``opencode.db``, and what all of them amount to.

While a database is followed, only the sessions are counted again of which rows came: a cheap look at all rows tells.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from sqlite3 import Connection
from typing import Any

import msgspec

from tracetui.formats.opencode.follow import read_on
from tracetui.formats.opencode.forks import Opening, Originals, listed
from tracetui.formats.opencode.records import Info, moment
from tracetui.formats.opencode.rows import (
    Schema,
    has_parts,
    message_of,
    message_rows,
    part_rows,
    schema_of,
    sessions,
)
from tracetui.formats.opencode.run import LEADING, STALE_MS, header_of, header_of_tree
from tracetui.formats.opencode.spans import Told, tell
from tracetui.model import Body, Problem, RunRef, RunSummary
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import KEPT, File

Mark = tuple[Any, ...]
"""What is another one when rows of a session came, or a session below it."""


class Counted(msgspec.Struct, frozen=True):
    """A run as it was counted, with all of its sessions."""

    sessions: tuple[str, ...]
    mark: Mark
    summary: RunSummary


def summarize(file: File, name: str, *, deep: bool) -> Iterator[RunSummary | Problem]:
    """Every session that is no sub-agent of another one."""
    with file.database() as connection:
        connection.execute("BEGIN")  # one state of it for all statements; closing ends it
        schema = schema_of(connection)
        infos = sessions(connection, schema)
        yield from _unlisted(connection, schema, file.path, len(infos), deep=deep)
        runs, circular = listed(infos)
        for info in circular:
            yield Problem(file.path, f"session {info.id}", "its parents go round in a circle: it stands for itself")
        latest = max((info.updated or 0 for info in infos), default=0)
        openings = Openings(connection, schema)
        originals = Originals(runs, openings.of)
        kept: dict[str, Counted] | None = file.memo.get(KEPT) if deep else None
        marks = {} if kept is None else _marks(connection, schema, infos)
        modified_at, moving = file.stat.mtime, file.moving
        for info in runs:
            stale = info.updated is not None and info.updated < latest - STALE_MS
            original = originals.of(info)
            known = kept.get(info.id) if kept is not None else None
            if known is not None and known.mark == (*map(marks.get, known.sessions), original, stale):
                yield msgspec.structs.replace(known.summary, modified_at=modified_at)
                continue
            ref = RunRef(name, file.path, info.id)
            if deep:
                found = read_on(connection, schema, file.path, info, None, original=original)
                tree = found.tree
                builder = RunBuilder(ref, lambda span: Body())
                header = header_of_tree(tree, stale=stale)
                builder.add(found.spans, header=header, problems=tree.problems)
                summary = builder.summary(modified_at=modified_at, moving=moving)
                if kept is not None and header.status is not None and tree.sessions.keys() <= marks.keys():
                    mark = (*map(marks.get, tree.sessions), original, stale)
                    kept[info.id] = Counted(tuple(tree.sessions), mark, summary)
            else:
                header = header_of(info, openings.leading(info), openings.last(info), stale=stale, original=original)
                summary = summary_of(ref, header, None, modified_at=modified_at, moving=moving)
            yield summary


def _marks(connection: Connection, schema: Schema, infos: Sequence[Info]) -> dict[str, Mark]:
    """The marks of all sessions but those that were heard of lately: parts of them may change where no row comes."""
    if not (schema.has("message", "time_updated") and schema.has("part", "session_id")):
        return {}
    sql = "SELECT session_id, count(*), total(time_updated), max(time_updated) FROM message GROUP BY session_id"
    messages = {ident: tuple(found) for ident, *found in connection.execute(sql).fetchall()}
    sql = "SELECT session_id, count(*), max(rowid) FROM part GROUP BY session_id"
    parts = {ident: tuple(found) for ident, *found in connection.execute(sql).fetchall()}
    below: dict[str | None, list[str]] = {}
    for info in infos:
        below.setdefault(info.parent, []).append(info.id)
    heard = {info.id: max(info.updated or 0, moment(messages.get(info.id, (None,))[-1]) or 0) for info in infos}
    latest = max(heard.values(), default=0)
    return {
        info.id: (info, messages.get(info.id), parts.get(info.id), below.get(info.id))
        for info in infos
        if heard[info.id] < latest - STALE_MS
    }


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
    if deep and schema.has("session_message", "session_id"):
        told = "SELECT session_id FROM message WHERE session_id NOT NULL"
        sql = f"SELECT count(*) FROM session_message WHERE session_id NOT IN ({told})"
        (unread,) = connection.execute(sql).fetchone()
        if unread:
            yield Problem(path, "session_message", f"{unread} rows are the only ones of their sessions, and not read")


def _lost(connection: Connection, table: str, key: str, above: str) -> int:
    """How many rows of a table name no row of the one above."""
    sql = f"SELECT count(*) FROM {table} WHERE {key} IS NULL OR {key} NOT IN (SELECT id FROM {above} WHERE id NOT NULL)"
    (count,) = connection.execute(sql).fetchone()
    return int(count)


class Openings:
    """How sessions begin and end, looked up when it is asked for."""

    def __init__(self, connection: Connection, schema: Schema) -> None:
        self._connection, self._schema = connection, schema
        self._order = schema.order("message")
        self._found: dict[str, Opening] = {}

    def of(self, info: Info) -> Opening:
        """How a session begins."""
        if info.id not in self._found:
            self._found[info.id] = Opening(self._first(info), cache(lambda: self._said(info)))
        return self._found[info.id]

    def _first(self, info: Info) -> float | None:
        if not self._schema.has("message", "time_created"):
            return None
        sql = "SELECT min(time_created) FROM message WHERE session_id = ?"
        return moment(self._connection.execute(sql, (info.id,)).fetchone()[0])

    def _said(self, info: Info) -> str:
        return next((told.said for told in self.leading(info) if told.is_prompt), "")

    def leading(self, info: Info) -> list[Told]:
        """The first messages of a session, up to `LEADING`, as far as they say more than the session itself."""
        found: list[Told] = []
        prompted = False
        for row in self._rows(info, f"{self._order} LIMIT {LEADING}"):
            if prompted and info.agent and info.model:
                break
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
