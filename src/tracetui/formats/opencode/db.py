"""``opencode.db``: list its sessions, read one with its sub-agents, look a span up."""

from __future__ import annotations

from sqlite3 import Connection, Error
from typing import Any

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import Chunk
from tracetui.formats.opencode.body import body_of, changed, rendered
from tracetui.formats.opencode.follow import Known, read_on
from tracetui.formats.opencode.forks import Originals, is_suspect, listed
from tracetui.formats.opencode.listing import Openings
from tracetui.formats.opencode.records import At, Info
from tracetui.formats.opencode.rows import (
    Schema,
    attributes_of,
    newest,
    schema_of,
    session,
    sessions,
    stored,
)
from tracetui.formats.opencode.run import STALE_MS, header_of_tree, run_body
from tracetui.model import Body, Link, RunRef, Span
from tracetui.sources.base import File
from tracetui.sources.sqlite import is_passing, version_of


class Reading(msgspec.Struct, frozen=True):
    """A cursor."""

    known: Known
    """What was read of the sessions."""
    about: Any = None
    """What was told of the run as a whole."""
    version: object = None
    """The version of the database all of which was read."""


def read(file: File, ref: RunRef, cursor: Reading | None) -> Chunk:
    """What is new of one session and its sub-agents: what is there already costs a look at its times."""
    try:
        with file.database() as connection:
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
    openings = Openings(connection, schema)
    if not is_suspect(info, openings.of(info).first):
        return None
    runs, _ = listed(sessions(connection, schema))
    return Originals(runs, openings.of).of(info)


def body(file: File, span: Span) -> Body:
    """Everything about one span."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    with file.database() as connection:
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
