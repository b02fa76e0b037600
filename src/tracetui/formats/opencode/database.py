"""``opencode.db``: sessions, messages and parts are columns that are indexed, and JSON for all the rest.

opencode 2 has its sessions in ``session_v2`` and their messages in ``session_message``. It moves old sessions there,
and leaves the tables of before as they were: those are read only for sessions that are not in the new ones, which were
not moved yet, or written later by an old opencode. A pre-release had ``session`` and ``session_message``.

Columns come and go with the versions of opencode, so those that are there are selected by name, the others are None.
The tables of accounts and credentials are never read.

opencode writes a part again whenever something about it changes, and its time with it. So the times of rows, summed up
by page (`RowLog`), show which messages must be read again. Times are in milliseconds: the last messages of a session,
and those that have not ended, are read again in any case.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache as cached
from sqlite3 import Connection
from typing import Any, Final

from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.bodies import rendered
from tracetui.formats.decode import decode
from tracetui.formats.opencode.messages import Message, SpanRef, body_of, interpret
from tracetui.formats.opencode.records import (
    MESSAGES,
    PARTS,
    Info,
    Part,
    Record,
    SourceMessage,
    changed,
    decode_record,
    info_of,
)
from tracetui.formats.opencode.runs import FORK, LEADING, STALE_MS, runs_of
from tracetui.formats.opencode.version2 import converted
from tracetui.formats.rowlog import Table, rows_in
from tracetui.formats.scalars import word
from tracetui.formats.schema import Unknown
from tracetui.formats.sqlite import Tables, many
from tracetui.model import Body, Link, Span
from tracetui.sources.base import File

TABLES: Final = (
    frozenset({"session", "message", "part"}),
    frozenset({"session_v2", "session_message"}),
    frozenset({"session", "session_message"}),
)
"""The tables of each version of opencode: a database has at least those of one."""
SESSIONS: Final = ("session_v2", "session")
MESSAGES_2: Final = "session_message"
_SESSION: Final = (
    *("id", "parent_id", "title", "directory", "version", "agent", "model", "time_created", "time_updated", "revert"),
    *("cost", "tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write"),
    *("workspace_id", "fork_session_id"),
)
_JSON: Final = frozenset(
    {"data", "model", "revert", "permission", "metadata", "summary_diffs", "sandboxes", "commands", "fork_boundary"}
)
"""Text columns that hold JSON."""


class Database(Tables):
    """The tables and columns that are there. Raises `FormatError` if no session can be read with them.

    A row of the tables of opencode 2 has the negative of its ``rowid`` as its key.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, {}, *SESSIONS, "message", "part", MESSAGES_2, "project", "workspace", "todo")
        self.session_tables = [table for table in SESSIONS if self.has(table, "id")]
        self.has_old = self.has("message", "id", "session_id", "data")
        self.has_parts = self.has("part", "message_id", "data")
        self.has_new = self.has(MESSAGES_2, "id", "session_id", "type", "data")
        if not self.session_tables:
            raise FormatError("the table `session` has no columns id")
        if not (self.has_old or self.has_new):
            raise FormatError("the table `message` has no columns id, session_id, data")
        self.moved: frozenset[str] = frozenset()
        """Ids of the sessions in the table of opencode 2."""
        if self.has_new and self.has("session_v2", "id"):
            self.moved = frozenset(ident for (ident,) in self.rows("SELECT id FROM session_v2"))
        self.table_of = cached(self._find_table)

    def _find_table(self, ident: str) -> str:
        """The table with the messages of a session."""
        if not self.has_new or ident in self.moved or not self.has_old:
            return MESSAGES_2 if self.has_new else "message"
        sql = "SELECT EXISTS(SELECT 1 FROM {} WHERE session_id = ?)"
        is_new = not self.rows(sql.format("message"), ident)[0][0] and self.rows(sql.format(MESSAGES_2), ident)[0][0]
        return MESSAGES_2 if is_new else "message"

    def has(self, table: str, *names: str) -> bool:
        """Whether a table has all of these columns."""
        return {*names}.issubset(self.columns[table])

    def order(self, table: str, *, reverse: bool = False) -> str:
        """The order of its rows, which is that in which opencode shows them, or its reverse."""
        names = ["message_id", "id"] if table == "part" else ["time_created", "id"]
        if table == MESSAGES_2 and self.has(table, "seq"):
            names = ["seq"]
        columns = [*(name for name in names if self.has(table, name)), "rowid"]
        return ", ".join(f"{name} DESC" if reverse else name for name in columns)

    def stamp(self, table: str) -> str:
        """A number that differs when a row has changed."""
        return "time_updated" if self.has(table, "time_updated") else "length(data)"

    def attributes(self, table: str, where: str, value: Any) -> list[Record]:
        """Rows with all of their columns, as they are shown."""
        return [_readable(row) for row in self.records(f"SELECT * FROM {table} WHERE {where}", value)]

    def row(self, table: str, rowid: int) -> Record:
        """One row with all of its columns."""
        return next(self.records(f"SELECT * FROM {table} WHERE rowid = ?", rowid))

    # ---- sessions

    def sessions(self, where: str = "", keys: Iterable[Any] | None = None) -> list[Info]:
        """The sessions, in the order in which they began; `where` has ``{keys}`` for some of `keys`."""
        branches: dict[Any, Any] = {}
        if self.has("workspace", "id", "branch"):
            branches = dict(self.rows("SELECT id, branch FROM workspace"))
        sessions: list[Info] = []
        wanted = None if keys is None else list(keys)
        for table in self.session_tables:
            if "parent_id" in where and not self.has(table, "parent_id"):
                continue
            key = key_of(table)
            sql = f"SELECT {key}, {self.select(table, *_SESSION)} FROM {table} {where.replace('rowid', key)}"
            rows = self.rows(sql) if wanted is None else many(self.connection, sql, wanted)
            infos = [_info(row, branches) for row in rows if word(row[1]) is not None]
            sessions += infos if table == "session_v2" else [info for info in infos if info.id not in self.moved]
        return sorted(sessions, key=lambda info: (info.time.created or 0, info.id))

    def session(self, ident: str) -> Info | None:
        """The session of that id, or None; also finds an id that is stored as no text, or as text that is no UTF-8."""
        matches = self.sessions("WHERE id IN ({keys})", [ident])
        return next((info for info in matches or self.sessions() if info.id == ident), None)

    def children(self, info: Info, tasks: Iterable[str]) -> list[Info]:
        """The sessions that a session started: they name it as their parent, or a call of it names them."""
        children = self.sessions("WHERE parent_id IN ({keys})", [info.id])
        named = dict.fromkeys(tasks).keys() - {child.id for child in children}
        return children + (self.sessions("WHERE id IN ({keys})", sorted(named)) if named else [])

    def ancestors(self, root: Info) -> set[str]:
        """Ids of a session and of those above it."""
        idents, parent = {root.id}, root.parent
        while parent is not None and parent not in idents:
            idents.add(parent)
            rows = self.sessions("WHERE id IN ({keys})", [parent])
            parent = rows[0].parent if rows else None
        return idents

    # ---- messages

    def messages(self, keys: Iterable[Any]) -> list[Row]:
        """Rows of messages: key, id, time, data, type (None in the old table)."""
        wanted = list(keys)
        by_table = {"message": [key for key in wanted if key >= 0], MESSAGES_2: [-key for key in wanted if key < 0]}
        return [
            row
            for table, rowids in by_table.items()
            if rowids
            for row in many(self.connection, f"{self._select(table)} WHERE rowid IN ({{keys}})", rowids)
        ]

    def messages_of(self, ident: str, limit: int, *, last: bool = False) -> list[Row]:
        """The first rows of a session, or the `last` ones, from the end on; all of them for the limit -1."""
        table = self.table_of(ident)
        order = self.order(table, reverse=last)
        return self.rows(f"{self._select(table)} WHERE session_id = ? ORDER BY {order} LIMIT {limit}", ident)

    def keys_of(self, ident: str, last: int | None = None) -> list[int]:
        """The keys of the messages of a session in their order, or of the `last` ones."""
        table = self.table_of(ident)
        sql = f"SELECT {key_of(table)} FROM {table} WHERE session_id = ? ORDER BY "
        if last is None:
            return [key for (key,) in self.rows(sql + self.order(table), ident)]
        sql += f"{self.order(table, reverse=True)} LIMIT {last}"
        return [key for (key,) in self.rows(sql, ident)][::-1]

    def tables(self) -> dict[str, Table]:
        """The tables with rows of sessions, as they are summed up."""
        tables: dict[str, Table] = {}
        for name, there in (("message", self.has_old), (MESSAGES_2, self.has_new), ("part", self.has_parts)):
            if there:
                in_message = "(SELECT session_id FROM message WHERE id = message_id)"
                run = "session_id" if self.has(name, "session_id") else in_message
                sums = f"count(*), max(rowid), total({self.stamp(name)}), max({self.stamp(name)})"
                if self.has(name, "seq"):
                    sums += ", total(seq)"
                if name != "part" or self.has_old:
                    tables[name] = Table(name, run, sums)
        return tables

    def keys_in(self, table: str, ident: str, pages: Iterable[int]) -> set[int]:
        """The keys of the messages of a session that have rows in some pages of a table."""
        own = self.table_of(ident)
        keys: set[int] = set()
        for page in pages:
            rows = "rowid >= {0.start} AND rowid < {0.stop}".format(rows_in(page))
            if table == own:
                keys |= {
                    key
                    for (key,) in self.rows(f"SELECT {key_of(own)} FROM {own} WHERE {rows} AND +session_id = ?", ident)
                }
            elif table == "part" and own == "message":
                ids = f"SELECT message_id FROM part WHERE {rows}"
                sql = f"SELECT rowid FROM message WHERE id IN ({ids}) AND +session_id = ?"
                keys |= {key for (key,) in self.rows(sql, ident)}
        return keys

    def _select(self, table: str) -> str:
        kind = "type" if table == MESSAGES_2 else "NULL"
        return f"SELECT {key_of(table)}, {self.select(table, 'id', 'time_created')}, {_DATA}, {kind} FROM {table}"

    def parts(self, where: str, keys: Iterable[Any]) -> dict[Any, list[Row]]:
        """Rows of parts, by message: rowid, id, message, time, data."""
        parts: dict[Any, list[Row]] = {}
        columns, order = self.select("part", "id", "message_id", "time_created"), self.order("part")
        sql = f"SELECT rowid, {columns}, {_DATA} FROM part WHERE {where} ORDER BY {order}"
        for row in many(self.connection, sql, keys) if self.has_parts else ():
            parts.setdefault(row[2], []).append(row)
        return parts


def key_of(table: str) -> str:
    """The key of a row, in SQL."""
    return "-rowid" if table in ("session_v2", MESSAGES_2) else "rowid"


Row = tuple[Any, ...]
_DATA: Final = "CAST(data AS BLOB)"
"""Bytes are decoded as JSON at once, and not as text before."""


def _info(row: tuple[Any, ...], branches: dict[Any, Any]) -> Info:
    columns: Record = dict(zip(("rowid", *_SESSION), row, strict=True))
    cache = {"read": columns["tokens_cache_read"], "write": columns["tokens_cache_write"]}
    tokens = {name: columns[f"tokens_{name}"] for name in ("input", "output", "reasoning")}
    record = {name: columns[name] for name in ("title", "directory", "version", "agent", "cost")}
    record |= {name: _value(name, columns[name]) for name in ("model", "revert")}
    record |= {"parentID": columns["parent_id"], "tokens": tokens | {"cache": cache}}
    record |= {"fork_session_id": columns["fork_session_id"] or None, "generation of its tables": row[0] < 0}
    record |= {"time": {"created": columns["time_created"], "updated": columns["time_updated"]}}
    branch = word(branches.get(columns["workspace_id"]))
    return info_of({name: value for name, value in record.items() if value is not None}, columns["id"], row[0], branch)


def _value(name: str, value: Any) -> Any:
    """The value of a column: decoded JSON, and text for bytes."""
    if name in _JSON and isinstance(value, str):
        try:
            return decode(value.encode("utf-8", "surrogatepass"))[0]
        except FormatError:
            return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _readable(row: Record) -> Record:
    return {name: _value(name, value) for name, value in row.items()}


def source_of(row: Row, parts: Iterable[Row]) -> tuple[SourceMessage, list[tuple[str, str]]]:
    """A message with its parts, and (where, why) of unreadable parts."""
    wrong: list[tuple[str, str]] = []
    unknown: Unknown = {}
    key, ident, created, value, kind = row
    message = word(ident) or f"message row {abs(key)}"
    if kind is not None:
        source, problem = _source_2(row, message)
        return source, [] if problem is None else [(f"message {message}", problem)]
    data, beside, problem = decode_record(MESSAGES, value, unknown)
    if problem is not None:
        wrong.append((f"message {message}", problem))
    items: list[Part] = []
    for store_key, name, _, written, content in parts:
        ident = name if isinstance(name, str) and name else f"part row {store_key}"
        part, other, problem = decode_record(PARTS, content, unknown)
        if problem is not None:
            wrong.append((f"part {ident}", problem))
        items.append(Part(ident, part, store_key, content or b"", other, time_of(written)))
    return SourceMessage(message, data, key, value or b"", beside, time_of(created), tuple(items), unknown), wrong


def _record_of(content: Any) -> tuple[Record, str | None]:
    """The JSON object in a column, and its problem."""
    if not isinstance(content, bytes):
        return {}, "not JSON"
    try:
        value, note = decode(content)
    except FormatError as error:
        return {}, error.reason
    return (value, note and f"read leniently: {note}") if isinstance(value, dict) else ({}, "not a JSON object")


def _source_2(row: Row, message: str, *, whole: bool = False) -> tuple[SourceMessage, str | None]:
    """A message of opencode 2, and its problem. Only a `whole` one has its records, which bodies show."""
    key, _, created, content, kind = row
    unknown: Unknown = {}
    record, problem = _record_of(content)
    data, items = converted(kind if isinstance(kind, str) else "", record)
    parts = [
        Part(f"{message}:{rank}", PARTS.convert(item, unknown), rank, rendered(item) if whole else b"")
        for rank, item in enumerate(items)
    ]
    raw = rendered(data) if whole else content or b""
    beside = {"data": content.decode("utf-8", "replace")} if problem and not record and content else {}
    read = MESSAGES.convert(data, unknown)
    return SourceMessage(message, read, key, raw, beside, time_of(created), tuple(parts), unknown), problem


def time_of(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value < 1e14 else None


def _stored(database: Database, at: SpanRef) -> tuple[SourceMessage, Record]:
    """The message at `at`, with the part there or all parts, and the raw rows.

    Columns that this version does not know are among its fields. Raises `FormatError` if it is gone.
    """
    rows = database.messages([at.message])
    if not rows:
        raise changed("row deleted")
    if at.message < 0:
        row = database.row(MESSAGES_2, -at.message)
        source, _ = _source_2(rows[0], word(rows[0][1]) or f"message row {-at.message}", whole=True)
        return replace(source, own=_beside(row) | source.own), _plain(row)
    where, key = ("message_id IN ({keys})", rows[0][1]) if at.part is None else ("rowid IN ({keys})", at.part)
    source, _ = source_of(rows[0], [row for part_rows in database.parts(where, [key]).values() for row in part_rows])
    row = database.row("message", at.message)
    below = [database.row("part", part.store_key) for part in source.parts]
    parts = [replace(part, own=_beside(row) | part.own) for part, row in zip(source.parts, below, strict=True)]
    source = replace(source, parts=tuple(parts), own=_beside(row) | source.own)
    return source, {"message": _plain(row), "parts": list(map(_plain, below))}


def _beside(row: Record) -> Record:
    """The columns other than the record."""
    return {name: value for name, value in _readable(row).items() if name not in ("id", "data") and value is not None}


def _plain(row: Record) -> Record:
    return {name: _value("", value) for name, value in row.items()}


def is_stale(info: Info, latest: float | None) -> bool:
    """Whether other sessions continued for long after the last change of this one."""
    return info.time.updated is not None and latest is not None and info.time.updated < latest - STALE_MS


def session_attributes(database: Database, info: Info, *, whole: bool) -> Record:
    """The row of a session; with `whole` also those of its project, its workspace and its tasks to do."""
    table = "session_v2" if info.store_key < 0 else "session"
    own = next(iter(database.attributes(table, "rowid = ?", abs(info.store_key))), {})
    if whole:
        for table in ("project", "workspace"):
            key = own.get(f"{table}_id")
            if key is not None and database.has(table, "id"):
                own |= {table: next(iter(database.attributes(table, "id = ?", key)), {})}
        if database.has("todo", "session_id"):
            todos = database.attributes("todo", "session_id = ? ORDER BY rowid", info.id)
            own |= {"todo": todos} if todos else {}
    return own


def body(file: File, span: Span) -> Body:
    """Everything about one span."""
    at: SpanRef = span.at
    with file.database() as connection:
        connection.execute("BEGIN")
        database = Database(connection)
        if at.message is not None:
            source, raw = _stored(database, at)
            if at.part is None and not at.step and source.id != span.id:
                raise changed(f"message {span.id}")
            return body_of(span, source, rendered(raw))
        if not at.shows:
            return Body()
        infos = database.sessions("WHERE rowid IN ({keys})", [at.session])
        if not infos:
            raise changed(f"session {span.id}")
        attributes = session_attributes(database, infos[0], whole=False)
        if at.shows == "revert":
            return Body(attributes=attributes["revert"])
        links = (Link("started by", span=span.parent_id),) if span.parent_id else ()
        return Body(attributes=attributes, links=links, raw=rendered(attributes))


# ---- forks


class Originals:
    """How sessions begin and end, and which one each was forked from.

    opencode copies the messages of a fork with new ids. Only opencode 2 records from where; else the original is a
    session that began earlier with the same words: its first message has the same time, or its title is that of the
    fork.
    """

    def __init__(self, database: Database, infos: Sequence[Info] | None = None) -> None:
        """`infos` are the sessions that are runs; they are looked up when they are needed if they are not given."""
        self._database, self._infos = database, infos
        self._alike: dict[float | str, list[Info]] | None = None
        """By the time of the first message, and by title."""
        self._first, self._prompt = cached(self._find_first), cached(self._find_prompt)

    def find(self, info: Info) -> str | None:
        """Id of the original, None if there is none."""
        if info.fork is not None:
            return info.fork if self._database.sessions("WHERE id IN ({keys})", [info.fork]) else None
        created, first = info.time.created, self._first(info.id)
        if first is None or created is None or not (first < created or FORK.match(info.title)):
            return None
        wanted, prompt = _original_title(info.title), self._prompt(info.id)
        candidates: list[tuple[bool, bool, float, str]] = []
        alike = self._find_alike()
        for other in (*alike.get(first, ()), *alike.get(wanted or 0.0, ())):
            began, same = other.time.created, self._first(other.id) == first
            if began is not None and began < created and (prompt or same) and self._prompt(other.id) == prompt:
                candidates.append((other.title != wanted, not same, began, other.id))
        return min(candidates)[-1] if candidates else None

    def _find_alike(self) -> dict[float | str, list[Info]]:
        if self._alike is None:
            self._alike = {}
            for info in runs_of(self._database.sessions())[0] if self._infos is None else self._infos:
                self._alike.setdefault(info.title, []).append(info)
                if (first := self._first(info.id)) is not None:
                    self._alike.setdefault(first, []).append(info)
        return self._alike

    def _find_first(self, ident: str) -> float | None:
        """When the first message of a session was created, which a copy of it has too."""
        table = self._database.table_of(ident)
        if not self._database.has(table, "time_created"):
            return None
        return time_of(self._database.rows(f"SELECT min(time_created) FROM {table} WHERE session_id = ?", ident)[0][0])

    def _find_prompt(self, ident: str) -> str:
        """The first prompt of a session."""
        return next((message.text for message in self._leading(ident) if message.is_prompt), "")

    def leading(self, info: Info) -> list[Message]:
        """The first messages of a session, up to `LEADING`, if they add to the session itself."""
        messages: list[Message] = []
        for message in self._leading(info.id):
            messages.append(message)
            if any(message.is_prompt for message in messages) and info.agent and info.model_name:
                break
        return messages

    def _leading(self, ident: str) -> Iterator[Message]:
        """The first messages of a session, those after the first prompt without their parts."""
        prompted = False
        for row in self._database.messages_of(ident, LEADING):
            parts = {} if prompted or row[0] < 0 else self._database.parts("message_id IN ({keys})", [row[1]])
            message = interpret(source_of(row, parts.get(row[1], ()))[0])
            prompted = prompted or message.is_prompt
            yield message

    def last(self, info: Info) -> Message | None:
        """The last message of a session that shows how it ended, without its parts."""
        for limit in (1, 64, -1):
            rows = self._database.messages_of(info.id, limit, last=True)
            for row in rows:
                message = interpret(source_of(row, ())[0])
                if message.tells_end:
                    return message
            if len(rows) < limit:
                break
        return None


def _original_title(title: str) -> str | None:
    """The title of the session of which one of this title is a fork; None if its title is not that of a fork."""
    match = FORK.match(title)
    if match is None:
        return None
    count = int(match[2])
    return match[1] if count <= 1 else f"{match[1]} (fork #{count - 1})"
