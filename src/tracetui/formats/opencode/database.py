"""``opencode.db``: sessions, messages and parts are columns that are indexed, and JSON for all the rest.

Columns come and go with the versions of opencode, so those that are there are asked for by name, the others are None.
The tables of accounts and credentials are never read.

opencode writes a part again whenever something about it changes, and the time with it. So the times of the parts of
each message, summed up by the database, tell which messages must be read again. Times are in milliseconds: the last
messages of a session are read again in any case. While the list is kept, only the sessions are counted again of which
rows came: a cheap look at all rows tells.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import is_
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.opencode.messages import (
    At,
    Info,
    Message,
    Record,
    Told,
    body_of,
    changed,
    model_of,
    moment,
    part_with,
    record_of,
    rendered,
    size_of,
    tell,
)
from tracetui.formats.opencode.runs import (
    LEADING,
    STALE_MS,
    Memory,
    Opening,
    Originals,
    Session,
    Teller,
    Tree,
    header_of,
    header_of_tree,
    is_suspect,
    listed,
    run_body,
)
from tracetui.formats.scalars import string, word
from tracetui.formats.sqlite import Found, many
from tracetui.model import Body, Link, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import KEPT, File

TABLES: Final = frozenset({"session", "message", "part"})
_SESSION: Final = (
    *("id", "parent_id", "title", "directory", "version", "agent", "model", "time_created", "time_updated", "revert"),
    *("cost", "tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write"),
    "workspace_id",
)
_JSON: Final = frozenset(
    {"data", "model", "revert", "permission", "metadata", "summary_diffs", "sandboxes", "commands"}
)
"""Text columns that hold JSON."""


class Schema(msgspec.Struct, frozen=True):
    """The columns that are there, by table."""

    columns: dict[str, frozenset[str]]

    def select(self, table: str, names: Sequence[str]) -> str:
        """These columns of a table, NULL for those that it does not have."""
        there = self.columns.get(table, frozenset())
        return ", ".join(name if name in there else "NULL" for name in names)

    def has(self, table: str, *names: str) -> bool:
        """Whether a table has all of these columns."""
        return self.columns.get(table, frozenset()).issuperset(names)

    def order(self, table: str) -> str:
        """The order of its rows, which is that in which opencode shows them."""
        names = ("message_id", "id") if table == "part" else ("time_created", "id")
        return ", ".join([*(name for name in names if self.has(table, name)), "rowid"])

    def stamp(self, table: str) -> str:
        """A number that is another one when a row was changed."""
        return "time_updated" if self.has(table, "time_updated") else "length(data)"


def schema_of(connection: Connection) -> Schema:
    """What tables and columns there are. Raises `FormatError` if nothing can be read with them."""
    columns: dict[str, frozenset[str]] = {}
    for table in (*sorted(TABLES), "project", "workspace", "todo", "session_message"):
        rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
        if rows:
            columns[table] = frozenset(str(row[1]) for row in rows)
    schema = Schema(columns)
    for table, needed in (("session", ("id",)), ("message", ("id", "session_id", "data"))):
        if not schema.has(table, *needed):
            raise FormatError(f"the table `{table}` has no columns {', '.join(needed)}")
    return schema


def has_parts(schema: Schema) -> bool:
    """Whether parts can be told which message they belong to."""
    return schema.has("part", "message_id", "data")


# ---- sessions


def sessions(connection: Connection, schema: Schema, where: str = "", keys: Iterable[Any] | None = None) -> list[Info]:
    """The sessions, in the order in which they began; `where` has ``{keys}`` for some of `keys`."""
    sql = f"SELECT rowid, {schema.select('session', _SESSION)} FROM session {where}"
    rows = connection.execute(sql).fetchall() if keys is None else many(connection, sql, keys)
    found = [_info(row) for row in rows if word(row[1]) is not None]
    branches = _branches(connection, schema) if any(info.branch for info in found) else {}
    found = [msgspec.structs.replace(info, branch=branches.get(info.branch or "")) for info in found]
    return sorted(found, key=lambda info: (info.created or 0, info.id))


def _info(row: tuple[Any, ...]) -> Info:
    told: Record = dict(zip(("rowid", *_SESSION), row, strict=True))
    cache = {"read": told["tokens_cache_read"], "write": told["tokens_cache_write"]}
    tokens = {name: told[f"tokens_{name}"] for name in ("input", "output", "reasoning")}
    model = record_of(told["model"])[0]
    return Info(
        id=str(told["id"]),
        parent=word(told["parent_id"]),
        title=string(told["title"]) or "",
        directory=word(told["directory"]),
        version=word(told["version"]),
        agent=word(told["agent"]),
        model=model_of({"model": model}) if model else None,
        created=moment(told["time_created"]),
        updated=moment(told["time_updated"]),
        revert=record_of(told["revert"])[0],
        tokens=tokens | {"cache": cache},
        cost=told["cost"],
        branch=word(told["workspace_id"]),
        place=(told["rowid"],),
    )


def _branches(connection: Connection, schema: Schema) -> dict[str, str | None]:
    """The branch of each workspace."""
    if not schema.has("workspace", "id", "branch"):
        return {}
    return {ident: word(branch) for ident, branch in connection.execute("SELECT id, branch FROM workspace").fetchall()}


def session(connection: Connection, schema: Schema, ident: str) -> Info | None:
    """The session of that id, or None; also finds an id that is stored as no text, or as text that is no UTF-8."""
    found = sessions(connection, schema, "WHERE id IN ({keys})", [ident])
    return next((one for one in found or sessions(connection, schema) if one.id == ident), None)


def newest(connection: Connection, schema: Schema) -> float | None:
    """When something was last heard of any session, in milliseconds."""
    if not schema.has("session", "time_updated"):
        return None
    return moment(connection.execute("SELECT max(time_updated) FROM session").fetchone()[0])


def attributes_of(connection: Connection, schema: Schema, info: Info, *, whole: bool = True) -> Record:
    """All that the database says of a session; with `whole` also of its project, its workspace and its tasks to do."""
    own = _row(connection, "SELECT * FROM session WHERE rowid = ?", info.place[0])
    if whole:
        for table in ("project", "workspace"):
            key = own.get(f"{table}_id")
            if key is not None and schema.has(table, "id"):
                own |= {table: _row(connection, f"SELECT * FROM {table} WHERE id = ?", key)}
        if schema.has("todo", "session_id"):
            todos = _rows(connection, "SELECT * FROM todo WHERE session_id = ? ORDER BY rowid", info.id)
            own |= {"todo": todos} if todos else {}
    return own


def _row(connection: Connection, sql: str, key: Any) -> Record:
    rows = _rows(connection, sql, key)
    return rows[0] if rows else {}


def _rows(connection: Connection, sql: str, key: Any) -> list[Record]:
    cursor = connection.execute(sql, (key,))
    names = [column[0] for column in cursor.description]
    return [{name: value_of(name, value) for name, value in zip(names, row, strict=True)} for row in cursor.fetchall()]


def value_of(name: str, value: Any) -> Any:
    """The value of a column: decoded where it holds JSON, text where it holds bytes."""
    if name in _JSON and isinstance(value, str):
        told, other, _ = record_of(value)
        return other["data"] if other else told
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


# ---- messages

_DATA: Final = "CAST(data AS BLOB)"
"""Bytes are decoded as JSON at once, and not as text before."""
MessageRow = tuple[Any, ...]
"""rowid, id, time_created, data."""


def message_rows(connection: Connection, schema: Schema, where: str, keys: Iterable[Any]) -> list[MessageRow]:
    """Rows of messages, in no order."""
    columns = schema.select("message", ("id", "time_created"))
    return list(many(connection, f"SELECT rowid, {columns}, {_DATA} FROM message WHERE {where}", keys))


def part_rows(connection: Connection, schema: Schema, messages: Iterable[Any]) -> dict[Any, list[tuple[Any, ...]]]:
    """Rows of the parts of messages, by message: rowid, id, message, time_created, data."""
    if not has_parts(schema):
        return {}
    columns, order = schema.select("part", ("id", "message_id", "time_created")), schema.order("part")
    found: dict[Any, list[tuple[Any, ...]]] = {}
    sql = f"SELECT rowid, {columns}, {_DATA} FROM part WHERE message_id IN ({{keys}}) ORDER BY {order}"
    for row in many(connection, sql, messages):
        found.setdefault(row[2], []).append(row)
    return found


def message_of(row: MessageRow, parts: Iterable[tuple[Any, ...]]) -> tuple[Message, list[tuple[str, str]]]:
    """A message with its parts, and (where, why) of what of it cannot be read."""
    wrong: list[tuple[str, str]] = []
    ident = word(row[1]) or f"message row {row[0]}"
    data, other, problem = record_of(row[-1])
    if problem is not None:
        wrong.append((f"message {ident}", problem))
    made = []
    for rowid, key, _, created, value in parts:
        told, rest, problem = record_of(value)
        name = key if isinstance(key, str) and key else f"part row {rowid}"
        if problem is not None:
            wrong.append((f"part {name}", problem))
        made.append(part_with(name, told, {"time_created": created, **rest}, (rowid,), size_of(value)))
    own = {"time_created": row[2], **other}
    return Message(ident, data, tuple(made), own, (row[0],), size_of(row[-1])), wrong


def stored(connection: Connection, schema: Schema, message: Any, only: Any = None) -> tuple[Message, Record] | None:
    """The message in that row, with its part in that row or all of them, and the rows as they are; None if gone.

    Columns that this version does not know are among what they say.
    """
    row = _row_of(connection, "message", message)
    if row is None:
        return None
    if only is not None:
        found = [one for one in [_row_of(connection, "part", only)] if one is not None]
    else:
        rows = part_rows(connection, schema, [row["id"]]).get(row["id"], [])
        found = [one for one in (_row_of(connection, "part", each[0]) for each in rows) if one is not None]
    raw = {"message": _plain(row), "parts": [_plain(one) for one in found]}
    parts = []
    for one in found:
        told, rest, _ = record_of(one.get("data"))
        name = word(one["id"]) or f"part row {one['rowid']}"
        parts.append(part_with(name, told, _known(one) | rest, (one["rowid"],)))
    data, other, _ = record_of(row.get("data"))
    ident = word(row["id"]) or f"message row {message}"
    return Message(ident, data, tuple(parts), _known(row) | other, (message,)), raw


def _row_of(connection: Connection, table: str, rowid: Any) -> Record | None:
    cursor = connection.execute(f"SELECT rowid AS rowid, * FROM {table} WHERE rowid = ?", (rowid,))
    names = [column[0] for column in cursor.description]
    row = cursor.fetchone()
    return None if row is None else {"id": None} | dict(zip(names, row, strict=True))


def _known(row: Record) -> Record:
    return {name: value_of(name, value) for name, value in row.items()
            if name not in ("rowid", "id", "data") and value is not None}  # fmt: skip


def _plain(row: Record) -> Record:
    return {name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for name, value in row.items() if name != "rowid"}  # fmt: skip


# ---- a run, as far as there is time

PIECE_SECONDS: Final = 0.03
BATCH: Final = 64
"""Messages that are read together."""
LATEST: Final = 2
"""Messages at the end of a session that are read again whenever anything came."""
MOST: Final = 10_000
"""Sessions of one run."""

Stamp = tuple[Any, ...]


class Held(msgspec.Struct, frozen=True):
    """A message as it was read."""

    stamp: Stamp
    check: int
    """A hash of its rows."""
    told: Told
    problems: tuple[Problem, ...] = ()


class Known(msgspec.Struct, frozen=True):
    """All that is known of a run."""

    tree: Tree
    held: dict[str, dict[int, Held]]
    """By session, by row of the message."""
    stamps: dict[str, dict[int, Stamp]]
    """Of all messages of the sessions, those that are not read yet too."""
    memory: Memory
    spans: list[Span]
    done: bool = True


def read_on(
    connection: Connection,
    schema: Schema,
    path: str,
    info: Info,
    before: Known | None,
    *,
    original: str | None = None,
    pieces: bool = False,
) -> Known:
    """The run of session `info`; in `pieces` of about `PIECE_SECONDS` each, to be followed then."""
    reader = _Reader(connection, schema, path, before, keeps=pieces)
    tree = Tree(reader.sessions(info), original)
    if before is not None and _is_same(tree, before.tree):
        return msgspec.structs.replace(before, held=reader.held, stamps=reader.stamps, done=reader.done)
    teller = Teller(tree, before.memory if before is not None else Memory())
    return Known(tree, reader.held, reader.stamps, teller.memory, teller.spans, reader.done)


def _is_same(tree: Tree, before: Tree) -> bool:
    """Whether nothing came: each message is the same object, for its body may be another one where it is but equal."""
    if tree.original != before.original or list(tree.sessions) != list(before.sessions):
        return False
    for now, then in zip(tree.sessions.values(), before.sessions.values(), strict=True):
        if (now.info, now.problems, len(now.told)) != (then.info, then.problems, len(then.told)):
            return False
        if not all(map(is_, now.told, then.told)):
            return False
    return True


class _Reader:
    """Reads sessions, as far as they are not known."""

    def __init__(self, connection: Connection, schema: Schema, path: str, before: Known | None, *, keeps: bool) -> None:
        self._connection, self._schema, self._path = connection, schema, path
        self._before = before.held if before is not None else {}
        self._stamped = before.stamps if before is not None and not before.done else {}
        self._keeps = keeps
        self._began = time.monotonic()
        self.held: dict[str, dict[int, Held]] = {}
        self.stamps: dict[str, dict[int, Stamp]] = {}
        self.done = True

    def sessions(self, root: Info) -> dict[str, Session]:
        """The sessions of a run, each after the one that started it."""
        above = self._ancestors(root)
        found: dict[str, Session] = {}
        queue = [root]
        for info in queue:
            if info.id in found or len(found) >= MOST:
                continue
            found[info.id] = one = self._session(info)
            tasks = [named for told in one.told for named, _ in told.tasks]
            queue += [child for child in self._below(info, tasks) if child.id not in above]
        return found

    def _ancestors(self, root: Info) -> set[str]:
        above = {root.id}
        parent = root.parent
        while parent is not None and parent not in above:
            above.add(parent)
            rows = sessions(self._connection, self._schema, "WHERE id IN ({keys})", [parent])
            parent = rows[0].parent if rows else None
        return above

    def _below(self, info: Info, tasks: Iterable[str]) -> list[Info]:
        """The sessions that a session started: they name it as their parent, or a call of it names them."""
        found: list[Info] = []
        if self._schema.has("session", "parent_id"):
            found = sessions(self._connection, self._schema, "WHERE parent_id IN ({keys})", [info.id])
        named = dict.fromkeys(tasks).keys() - {one.id for one in found}
        if named:
            found += sessions(self._connection, self._schema, "WHERE id IN ({keys})", sorted(named))
        return found

    def _session(self, info: Info) -> Session:
        """A session with those of its messages for which there was time."""
        stamps = self._stamped.get(info.id)  # while it is read on, nothing is compared
        latest = set[int]()
        if stamps is None:
            stamps = self._stamps(info)
            latest = set(list(stamps)[-LATEST:])
        self.stamps[info.id] = stamps
        before = self._before.get(info.id, {})
        wanted = [
            rowid
            for rowid, stamp in stamps.items()
            if rowid in latest or (known := before.get(rowid)) is None or known.stamp != stamp
        ]
        there = {rowid: one for rowid, one in before.items() if rowid in stamps}
        now = time.monotonic()
        deadline = now + max(PIECE_SECONDS, now - self._began)  # what all pieces cost again must not be most of it
        for start in range(0, len(wanted), BATCH):
            if start and self._keeps and time.monotonic() >= deadline:
                self.done = False
                break
            for rowid, one in self._messages(wanted[start : start + BATCH], stamps):
                old = before.get(rowid)
                same = old is not None and old.check == one.check
                there[rowid] = msgspec.structs.replace(old, stamp=one.stamp) if old is not None and same else one
        self.held[info.id] = there
        held = [there[rowid] for rowid in stamps if rowid in there]
        return Session(info, tuple(one.told for one in held), tuple(p for one in held for p in one.problems))

    def _stamps(self, info: Info) -> dict[int, Stamp]:
        """By message, in their order: numbers that are others when anything of it has changed, for who keeps them."""
        connection, schema = self._connection, self._schema
        sql = (
            f"SELECT rowid, id, {schema.stamp('message')} FROM message WHERE session_id = ?"
            f" ORDER BY {schema.order('message')}"
        )
        rows = connection.execute(sql, (info.id,)).fetchall()
        if not (self._keeps and has_parts(schema)):
            return {rowid: (stamp,) for rowid, _, stamp in rows}
        stamp = schema.stamp("part")
        sql = (
            f"SELECT message_id, count(*), total(rowid), total({stamp}), max({stamp}) FROM part"
            " WHERE message_id IN (SELECT id FROM message WHERE session_id = ?) GROUP BY message_id"
        )
        sums = {key: tuple(found) for key, *found in connection.execute(sql, (info.id,)).fetchall()}
        return {rowid: (stamp, *sums.get(key, ())) for rowid, key, stamp in rows}

    def _messages(self, rowids: list[int], stamps: dict[int, Stamp]) -> list[tuple[int, Held]]:
        rows = message_rows(self._connection, self._schema, "rowid IN ({keys})", rowids)
        parts = part_rows(self._connection, self._schema, [row[1] for row in rows if row[1] is not None])
        found = []
        for row in rows:
            own = parts.get(row[1], [])
            message, wrong = message_of(row, own)
            problems = tuple(Problem(self._path, where, reason) for where, reason in wrong)
            check = hash((row, *own)) if self._keeps else 0
            found.append((row[0], Held(stamps[row[0]], check, tell(message), problems)))
        return found


def read(connection: Connection, path: str, before: Found | None, *, ref: RunRef) -> Found:
    """One session and its sub-agents as they are now: what is known already costs a look at its times."""
    schema = schema_of(connection)
    info = session(connection, schema, ref.key or "")
    if info is None:
        raise FormatError("the session is not in the database", f"session {ref.key}")
    original = _original(connection, schema, info)
    then: Known | None = before.memory if before is not None else None
    known = read_on(connection, schema, path, info, then, original=original, pieces=True)
    header, body = (before.header, before.body) if before is not None else (None, None)
    if known.done or header is None:
        latest = newest(connection, schema)
        stale = info.updated is not None and latest is not None and info.updated < latest - STALE_MS
        header = header_of_tree(known.tree, stale=stale)
    if known.done or body is None:
        attributes = attributes_of(connection, schema, info)
        body = run_body(known.tree, attributes, rendered(attributes))
    problems = known.tree.problems
    return Found(spans=known.spans, problems=problems, header=header, body=body, done=known.done, memory=known)


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


# ---- the list

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
