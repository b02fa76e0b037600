"""``opencode.db``: sessions, messages and parts are columns that are indexed, and JSON for all the rest.

opencode 2 has its sessions in ``session_v2`` and their messages in ``session_message``. It moves old sessions there,
and leaves the tables of before as they were: those are read only for sessions that are not in the new ones, which were
not moved yet, or written later by an old opencode. A pre-release had ``session`` and ``session_message``.

Columns come and go with the versions of opencode, so those that are there are selected by name, the others are None.
The tables of accounts and credentials are never read.

opencode writes a part again whenever something about it changes, and its time with it. So the times of the parts of
each message, summed up by the database, show which messages must be read again. Times are in milliseconds: the last
messages of a session are read again in any case. With a cached list, a session is counted again only if it got new
rows, which a cheap look at all rows shows.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache as cached
from functools import partial
from math import inf
from sqlite3 import Connection
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.opencode.messages import Message, SpanRef, body_of, interpret
from tracetui.formats.opencode.records import (
    MESSAGES,
    PARTS,
    Info,
    Part,
    Record,
    Revert,
    SourceMessage,
    changed,
    decode_record,
    info_of,
    rendered,
)
from tracetui.formats.opencode.runs import (
    FORK,
    LEADING,
    STALE_MS,
    Facts,
    RunSpans,
    Session,
    Tree,
    header_of,
    header_of_tree,
    run_body,
    runs_of,
)
from tracetui.formats.opencode.version2 import converted
from tracetui.formats.rowlog import LATEST as LATEST_PAGES
from tracetui.formats.rowlog import PAGE_BITS, Pages, RowLog, Table
from tracetui.formats.scalars import word
from tracetui.formats.schema import Unknown
from tracetui.formats.sqlite import CountedRun, ReadState, many
from tracetui.model import Body, Link, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import CACHE, File

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


class Database:
    """The tables and columns that are there. Raises `FormatError` if no session can be read with them.

    A row of the tables of opencode 2 has the negative of its ``rowid`` as its key.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.columns: dict[str, frozenset[str]] = {}
        for table in (*SESSIONS, "message", "part", MESSAGES_2, "project", "workspace", "todo"):
            rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
            if rows:
                self.columns[table] = frozenset(str(row[1]) for row in rows)
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
        self._table_of = cached(self._find_table)

    def table_of(self, ident: str) -> str:
        """The table with the messages of a session."""
        return self._table_of(ident)

    def _find_table(self, ident: str) -> str:
        if not self.has_new or ident in self.moved or not self.has_old:
            return MESSAGES_2 if self.has_new else "message"
        sql = "SELECT EXISTS(SELECT 1 FROM {} WHERE session_id = ?)"
        is_new = not self.rows(sql.format("message"), ident)[0][0] and self.rows(sql.format(MESSAGES_2), ident)[0][0]
        return MESSAGES_2 if is_new else "message"

    def has(self, table: str, *names: str) -> bool:
        """Whether a table has all of these columns."""
        return self.columns.get(table, frozenset()).issuperset(names)

    def select(self, table: str, names: Sequence[str]) -> str:
        """These columns of a table, NULL for those that it does not have."""
        return ", ".join(name if self.has(table, name) else "NULL" for name in names)

    def order(self, table: str) -> str:
        """The order of its rows, which is that in which opencode shows them."""
        if table == MESSAGES_2 and self.has(table, "seq"):
            return "seq, rowid"
        names = ("message_id", "id") if table == "part" else ("time_created", "id")
        return ", ".join([*(name for name in names if self.has(table, name)), "rowid"])

    def stamp(self, table: str) -> str:
        """A number that differs when a row has changed."""
        return "time_updated" if self.has(table, "time_updated") else "length(data)"

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return self.connection.execute(sql, values).fetchall()

    def records(self, table: str, where: str, value: Any) -> list[Record]:
        """Rows with all of their columns and their ``rowid``."""
        cursor = self.connection.execute(f"SELECT rowid AS rowid, * FROM {table} WHERE {where}", (value,))
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def attributes(self, table: str, where: str, value: Any) -> list[Record]:
        """The same, as they are shown."""
        return [_shown(row) for row in self.records(table, where, value)]

    # ---- sessions

    def sessions(self, where: str = "", keys: Iterable[Any] | None = None) -> list[Info]:
        """The sessions, in the order in which they began; `where` has ``{keys}`` for some of `keys`."""
        branches: dict[Any, Any] = {}
        if self.has("workspace", "id", "branch"):
            branches = dict(self.rows("SELECT id, branch FROM workspace"))
        found: list[Info] = []
        wanted = None if keys is None else list(keys)
        for table in self.session_tables:
            if "parent_id" in where and not self.has(table, "parent_id"):
                continue
            key = _key(table)
            sql = f"SELECT {key}, {self.select(table, _SESSION)} FROM {table} {where.replace('rowid', key)}"
            rows = self.rows(sql) if wanted is None else many(self.connection, sql, wanted)
            infos = [_info(row, branches) for row in rows if word(row[1]) is not None]
            found += infos if table == "session_v2" else [info for info in infos if info.id not in self.moved]
        return sorted(found, key=lambda info: (info.time.created or 0, info.id))

    def session(self, ident: str) -> Info | None:
        """The session of that id, or None; also finds an id that is stored as no text, or as text that is no UTF-8."""
        found = self.sessions("WHERE id IN ({keys})", [ident])
        return next((one for one in found or self.sessions() if one.id == ident), None)

    def below(self, info: Info, tasks: Iterable[str]) -> list[Info]:
        """The sessions that a session started: they name it as their parent, or a call of it names them."""
        found = self.sessions("WHERE parent_id IN ({keys})", [info.id])
        named = dict.fromkeys(tasks).keys() - {one.id for one in found}
        return found + (self.sessions("WHERE id IN ({keys})", sorted(named)) if named else [])

    def ancestors(self, root: Info) -> set[str]:
        """Ids of a session and of those above it."""
        found, parent = {root.id}, root.parent
        while parent is not None and parent not in found:
            found.add(parent)
            rows = self.sessions("WHERE id IN ({keys})", [parent])
            parent = rows[0].parent if rows else None
        return found

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
        order = self.order(table)
        if last:
            order = ", ".join(f"{name} DESC" for name in order.split(", "))
        return self.rows(f"{self._select(table)} WHERE session_id = ? ORDER BY {order} LIMIT {limit}", ident)

    def keys_of(self, ident: str, last: int | None = None) -> list[int]:
        """The keys of the messages of a session in their order, or of the `last` ones."""
        table = self.table_of(ident)
        sql, order = f"SELECT {_key(table)} FROM {table} WHERE session_id = ? ORDER BY ", self.order(table)
        if last is None:
            return [key for (key,) in self.rows(sql + order, ident)]
        order = ", ".join(f"{name} DESC" for name in order.split(", "))
        return [key for (key,) in self.rows(f"{sql}{order} LIMIT {last}", ident)][::-1]

    def tables(self) -> dict[str, Table]:
        """The tables with rows of sessions, as they are summed up."""
        found: dict[str, Table] = {}
        for name, there in (("message", self.has_old), (MESSAGES_2, self.has_new), ("part", self.has_parts)):
            if there:
                in_message = "(SELECT session_id FROM message WHERE id = message_id)"
                run = "session_id" if self.has(name, "session_id") else in_message
                sums = f"count(*), max(rowid), total({self.stamp(name)}), max({self.stamp(name)})"
                if self.has(name, "seq"):
                    sums += ", total(seq)"
                if name != "part" or self.has_old:
                    found[name] = Table(name, run, sums)
        return found

    def keys_in(self, table: str, ident: str, pages: Iterable[int]) -> set[int]:
        """The keys of the messages of a session that have rows in some pages of a table."""
        own = self.table_of(ident)
        found: set[int] = set()
        for page in pages:
            rows = f"rowid >= {page << PAGE_BITS} AND rowid < {(page + 1) << PAGE_BITS}"
            if table == own:
                found |= {
                    key
                    for (key,) in self.rows(f"SELECT {_key(own)} FROM {own} WHERE {rows} AND +session_id = ?", ident)
                }
            elif table == "part" and own == "message":
                ids = f"SELECT message_id FROM part WHERE {rows}"
                sql = f"SELECT rowid FROM message WHERE id IN ({ids}) AND +session_id = ?"
                found |= {key for (key,) in self.rows(sql, ident)}
        return found

    def _select(self, table: str) -> str:
        kind = "type" if table == MESSAGES_2 else "NULL"
        return f"SELECT {_key(table)}, {self.select(table, ('id', 'time_created'))}, {_DATA}, {kind} FROM {table}"

    def parts(self, where: str, keys: Iterable[Any]) -> dict[Any, list[Row]]:
        """Rows of parts, by message: rowid, id, message, time, data."""
        found: dict[Any, list[Row]] = {}
        columns, order = self.select("part", ("id", "message_id", "time_created")), self.order("part")
        sql = f"SELECT rowid, {columns}, {_DATA} FROM part WHERE {where} ORDER BY {order}"
        for row in many(self.connection, sql, keys) if self.has_parts else ():
            found.setdefault(row[2], []).append(row)
        return found


def _key(table: str) -> str:
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
    return info_of({name: one for name, one in record.items() if one is not None}, columns["id"], row[0], branch)


def _value(name: str, value: Any) -> Any:
    """The value of a column: decoded JSON, and text for bytes."""
    if name in _JSON and isinstance(value, str):
        try:
            return decode(value.encode("utf-8", "surrogatepass"))[0]
        except FormatError:
            return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _shown(row: Record) -> Record:
    return {name: _value(name, value) for name, value in row.items() if name != "rowid"}


def _source(row: Row, parts: Iterable[Row]) -> tuple[SourceMessage, list[tuple[str, str]]]:
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
    found: list[Part] = []
    for store_key, name, _, written, content in parts:
        ident = name if isinstance(name, str) and name else f"part row {store_key}"
        part, other, problem = decode_record(PARTS, content, unknown)
        if problem is not None:
            wrong.append((f"part {ident}", problem))
        found.append(Part(ident, part, store_key, content or b"", other, _time(written)))
    return SourceMessage(message, data, key, value or b"", beside, _time(created), tuple(found), unknown), wrong


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
    return SourceMessage(message, read, key, raw, beside, _time(created), tuple(parts), unknown), problem


def _time(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value < 1e14 else None


def _stored(database: Database, at: SpanRef) -> tuple[SourceMessage, Record]:
    """The message at `at`, with the part there or all parts, and the raw rows.

    Columns that this version does not know are among its fields. Raises `FormatError` if it is gone.
    """
    rows = database.messages([at.message])
    if not rows:
        raise changed("row deleted")
    if at.message < 0:
        (row,) = database.records(MESSAGES_2, "rowid = ?", -at.message)
        source, _ = _source_2(rows[0], word(rows[0][1]) or f"message row {-at.message}", whole=True)
        return replace(source, own=_beside(row) | source.own), _plain(row)
    where, key = ("message_id IN ({keys})", rows[0][1]) if at.part is None else ("rowid IN ({keys})", at.part)
    source, _ = _source(rows[0], [row for found in database.parts(where, [key]).values() for row in found])
    (row,) = database.records("message", "rowid = ?", at.message)
    below = [database.records("part", "rowid = ?", part.store_key)[0] for part in source.parts]
    parts = [replace(part, own=_beside(one) | part.own) for part, one in zip(source.parts, below, strict=True)]
    source = replace(source, parts=tuple(parts), own=_beside(row) | source.own)
    return source, {"message": _plain(row), "parts": list(map(_plain, below))}


def _beside(row: Record) -> Record:
    """The columns other than the record."""
    return {name: value for name, value in _shown(row).items() if name not in ("id", "data") and value is not None}


def _plain(row: Record) -> Record:
    return {name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for name, value in row.items() if name != "rowid"}  # fmt: skip


# ---- a run, as far as there is time

PIECE_SECONDS: Final = 0.03
BATCH: Final = 64
"""Messages that are read together."""
LATEST: Final = 2
"""Messages at the end of a session that are read again at each look."""
MOST: Final = 10_000
"""Sessions of one run."""
KEPT: Final = 64
"""Messages at the end of a session whose facts are added up again at each look."""


class ReadMessage(msgspec.Struct, frozen=True):
    """A message that was read."""

    place: tuple[Any, ...]
    """Its id and time, which decide its place in the session."""
    check: int
    """A hash of its rows."""
    message: Message
    problems: tuple[Problem, ...]


class ReadSession(Session, kw_only=True):
    """A session as far as it was read; it grows."""

    messages: list[Message] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)
    read: list[ReadMessage] = msgspec.field(default_factory=list)
    keys: list[int] = msgspec.field(default_factory=list)
    """Of all of its messages, in their order."""
    at: dict[int, int] = msgspec.field(default_factory=dict)
    """By key: the index of a message that was read."""
    runs: set[int] = msgspec.field(default_factory=set)
    """Keys of messages that have not ended."""
    is_searched: bool = False
    """The sessions below it were looked for."""
    facts: Facts = msgspec.field(default_factory=Facts)
    """Of the first messages."""
    counted: int = 0
    """How many these are."""

    def put(self, key: int, one: ReadMessage) -> None:
        """Take in a message: the next one, or one that has changed."""
        index = self.at.setdefault(key, len(self.read))
        if index == len(self.read):
            self.read.append(one)
            self.messages.append(one.message)
            self.problems += one.problems
        else:
            self.read[index], self.messages[index] = one, one.message
            if index < self.counted:
                self.facts, self.counted = Facts(), 0
        (self.runs.add if one.message.runs else self.runs.discard)(key)

    def all_facts(self) -> Facts:
        """Those of all of its messages."""
        if len(self.messages) > self.counted + 2 * KEPT:
            last = len(self.messages) - KEPT
            self.facts = self.facts.add(self.info, self.messages[self.counted : last])
            self.counted = last
        return self.facts.add(self.info, self.messages[self.counted :])


class ReadRun(msgspec.Struct):
    """A run as far as it was read; it grows."""

    tree: Tree
    queue: list[Info]
    """Sessions of the run that were found."""
    above: set[str]
    """The run's own session and those above it."""
    log: RowLog = RowLog()
    spans: RunSpans | None = None
    done: bool = False

    @property
    def sessions(self) -> dict[str, Any]:
        """Those that were read."""
        return self.tree.sessions


class _RunReader:
    """Reads the sessions of a run, in pieces of about `PIECE_SECONDS` if it `keeps` them to follow the run."""

    def __init__(self, database: Database, path: str, *, keeps: bool = False) -> None:
        self._database, self._path, self._keeps = database, path, keeps
        self._tables = database.tables() if keeps else {}
        self._deadline = time.monotonic() + PIECE_SECONDS if keeps else inf

    def read(self, root: Info, original: str | None) -> ReadRun:
        """The run of a session, as far as there is time."""
        run = ReadRun(Tree({}, original), [root], self._database.ancestors(root))
        self.read_on(run)
        return run

    def read_on(self, run: ReadRun) -> None:
        """Read the next piece."""
        self._read_queue(run)
        if run.spans is None:
            run.spans = RunSpans(run.tree)
        else:
            run.spans.take(run.tree)

    def _read_queue(self, run: ReadRun, earlier: Mapping[str, ReadSession] = MappingProxyType({})) -> None:
        """Read the sessions of its queue, without the messages that are known from `earlier`."""
        database, sessions = self._database, run.sessions
        run.done = True
        for info in run.queue:
            if len(sessions) >= MOST and info.id not in sessions:
                continue
            one = sessions.get(info.id)
            if one is None:
                if self._keeps:
                    run.log = run.log.add(database.connection, self._tables, [info.id])
                one = sessions[info.id] = ReadSession(info, keys=database.keys_of(info.id))
                known = earlier.get(info.id)
                self._read(one, {} if known is None else {key: known.read[index] for key, index in known.at.items()})
            else:
                self._read(one, {})
            if len(one.read) < len(one.keys):
                run.done = False
                break
            if not one.is_searched:
                tasks = [named for message in one.messages for named, _ in message.tasks]
                run.queue += [child for child in database.below(info, tasks) if child.id not in run.above]
                one.is_searched = True

    def _read(self, session: ReadSession, known: Mapping[int, ReadMessage]) -> None:
        """Read the messages of a session for which there is time."""
        start = count = len(session.read)
        while count < len(session.keys) and (count == start or time.monotonic() < self._deadline):
            batch = session.keys[count : count + BATCH]
            count += len(batch)
            fresh = dict(self.messages([key for key in batch if key not in known]))
            there = [(key, one) for key in batch if (one := known.get(key) or fresh.get(key)) is not None]
            if len(there) < len(batch):  # rows that went meanwhile
                gone = set(batch) - {key for key, _ in there}
                session.keys = [key for key in session.keys if key not in gone]
                count -= len(gone)
            for key, one in there:
                session.put(key, one)

    def messages(self, keys: Collection[int]) -> Iterator[tuple[int, ReadMessage]]:
        """Messages and their keys, in any order."""
        database = self._database
        rows = database.messages(keys)
        old = [row[1] for row in rows if row[0] >= 0 and row[1] is not None]
        below = database.parts("message_id IN ({keys})", old)
        for row in rows:
            parts = below.get(row[1], []) if row[0] >= 0 else []
            source, wrong = _source(row, parts)
            problems = tuple([Problem(self._path, where, reason) for where, reason in wrong])
            check = hash((row, *parts)) if self._keeps else 0
            yield row[0], ReadMessage(row[1:3], check, interpret(source), problems)

    # ---- a run that was read to its end

    def follow(self, run: ReadRun, root: Info, original: str | None) -> tuple[ReadRun, list[Span] | None] | None:
        """The run as it is now, and the spans that came or changed; None for these if they are to be compared.

        None if the run must be read from its start.
        """
        database, sessions = self._database, run.sessions
        log, changes = run.log.look(database.connection, self._tables, sessions.keys())
        infos = {root.id: root} | {info.id: info for info in database.sessions("WHERE id IN ({keys})", sessions)}
        dirty = {
            ident: self._dirty(session, changes.get(ident, {}), run.log, log) for ident, session in sessions.items()
        }
        read: dict[str, dict[int, ReadMessage]] = {}
        for ident, keys in dirty.items():
            session, found = sessions[ident], dict(self.messages(keys or ()))
            for key, one in found.items():
                index = session.at.get(key)
                if index is None or session.read[index].check != one.check:
                    read.setdefault(ident, {})[key] = one
        below = database.sessions("WHERE parent_id IN ({keys})", sessions)
        named = {task for keys in read.values() for one in keys.values() for task, _ in one.message.tasks}
        if named - sessions.keys():
            below += database.sessions("WHERE id IN ({keys})", named)
        new = {child.id: child for child in below if child.id not in sessions and child.id not in run.above}
        is_same = infos.keys() >= sessions.keys() and original == run.tree.original and None not in dirty.values()
        is_same = is_same and all(_is_like(one.info, infos[ident]) for ident, one in sessions.items())
        is_same = is_same and all(_is_in_place(sessions, ident, keys) for ident, keys in read.items())
        added = {ident: self._added(sessions[ident], keys) for ident, keys in read.items()}
        is_same = is_same and None not in added.values()
        changed = {
            (ident, index): (sessions[ident].messages[index], one.message)
            for ident, keys in read.items()
            for key, one in keys.items()
            if (index := sessions[ident].at.get(key)) is not None
        }
        grown = {ident for ident, keys in added.items() if keys}
        if not is_same or not _spans_of(run).can_change(changed, grown):
            return self._again(run, root, original, dirty), None
        run.log = log
        for ident, session in sessions.items():
            session.info = infos[ident]
            fresh, order = read.get(ident, {}), added.get(ident) or []
            session.keys += order
            for key in [*(key for key in fresh if key in session.at), *order]:
                session.put(key, fresh[key])
        if new:
            self._deadline = inf
            run.queue += new.values()
            self._read_queue(run)
        given = _spans_of(run).change(run.tree, changed)
        return None if given is None else (run, given)

    def _dirty(
        self, session: ReadSession, changes: Mapping[str, set[int]], before: RowLog, now: RowLog
    ) -> set[int] | None:
        """The keys of messages that may have come or changed; None if that is unknown, or if any has gone."""
        database, ident = self._database, session.info.id
        keys = {*session.runs, *session.keys[-LATEST:]}
        for name, pages in changes.items():
            if _has_lost(before.logs[name].pages, now.logs[name].pages, ident, pages):
                return None
            found = database.keys_in(name, ident, pages)
            keys |= found
            if name != "part":
                sign = -1 if name == MESSAGES_2 else 1
                here = {sign * (page << PAGE_BITS | low) for page in pages for low in range(1 << PAGE_BITS)}
                if any(key in session.at and key not in found for key in here):
                    return None
        return keys

    def _added(self, session: ReadSession, keys: Mapping[int, ReadMessage]) -> list[int] | None:
        """The keys of new messages in their order; None if these are not the last of the session."""
        new = {key for key in keys if key not in session.at}
        last = self._database.keys_of(session.info.id, len(new)) if new else []
        return last if set(last) == new else None

    def _again(self, run: ReadRun, root: Info, original: str | None, dirty: Mapping[str, set[int] | None]) -> ReadRun:
        """The run, put together again; only messages that may have changed are read."""
        earlier: dict[str, ReadSession] = {}
        for ident, session in run.sessions.items():
            keys = dirty[ident]
            again = set(session.keys) if keys is None else keys & session.at.keys()
            found = dict(self.messages(again))
            read = {key: session.read[index] for key, index in session.at.items() if key not in again or key in found}
            read |= {key: one for key, one in found.items() if one.check != read[key].check}
            earlier[ident] = ReadSession(
                session.info, read=list(read.values()), at={key: at for at, key in enumerate(read)}
            )
        self._deadline = inf
        later = ReadRun(Tree({}, original), [root], self._database.ancestors(root))
        before = run.spans
        self._read_queue(later, earlier)
        if (later.tree, list(later.sessions)) == (run.tree, list(run.sessions)):
            run.log = later.log
            return run
        later.spans = RunSpans(later.tree, before)
        later.spans.give()
        return later


def _is_in_place(sessions: Mapping[str, ReadSession], ident: str, keys: Mapping[int, ReadMessage]) -> bool:
    """Whether changed messages of a session have their place and no problems, and start no session that was read."""
    session = sessions[ident]
    known = [(session.read[session.at[key]], one) for key, one in keys.items() if key in session.at]
    tasks = [task for one in keys.values() for task, _ in one.message.tasks]
    return all(old.place == one.place and not (old.problems or one.problems) for old, one in known) and all(
        sessions[task].info.parent == ident for task in tasks if task in sessions
    )


def _has_lost(before: Pages, now: Pages, ident: str, pages: Iterable[int]) -> bool:
    """Whether rows have gone: there are fewer than before and the new ones."""
    for page in pages:
        old, new = before.get((ident, page), (0, -1)), now.get((ident, page), (0, -1))
        if new[0] < old[0] or (old[0] and new[1] < old[1]):
            return True
    return False


def _is_like(old: Info, now: Info) -> bool:
    """Whether the session has the same place and the same parts as before."""
    names = ("parent", "revert", "fork", "store_key")
    if old.time.created != now.time.created or (old.revert != Revert() and old != now):
        return False
    forks = FORK.match(old.title) is None, FORK.match(now.title) is None
    return forks[0] == forks[1] and all(getattr(old, name) == getattr(now, name) for name in names)


def read(connection: Connection, path: str, before: ReadState | None, *, ref: RunRef) -> ReadState | None:
    """One session and its sub-agents now; of those that were read before, only rows that may have changed."""
    database = Database(connection)
    info = database.session(ref.key or "")
    if info is None:
        raise FormatError("the session is not in the database", f"session {ref.key}")
    run: ReadRun | None = before.memory if before is not None else None
    reader = _RunReader(database, path, keeps=True)
    given: list[Span] | None = None
    if run is None:
        run = reader.read(info, Originals(database).of(info))
        _spans_of(run).give()
    elif not run.done:
        reader.read_on(run)
        given = _spans_of(run).give()
    else:
        followed = reader.follow(run, info, Originals(database).of(info))
        if followed is None:
            return None
        run, given = followed
    header, body = (before.header, before.body) if before is not None else (None, None)
    if run.done or header is None or body is None:
        facts = [session.all_facts() for session in run.sessions.values()]
        if run.done or header is None:
            tables = [table for table in database.session_tables if database.has(table, "time_updated")]
            times = [_time(database.rows(f"SELECT max(time_updated) FROM {table}")[0][0]) for table in tables]
            latest = max((time for time in times if time is not None), default=None)
            header = header_of_tree(run.tree, stale=_is_stale(info, latest), facts=facts)
        attributes = _session_attributes(database, info, whole=True)
        body = run_body(run.tree, attributes, rendered(attributes), facts[0])
    return ReadState(
        spans=_spans_of(run).spans,
        given=given,
        problems=run.tree.problems,
        header=header,
        body=body,
        done=run.done,
        memory=run,
        compared=run.log.behind == 0,
    )


def _spans_of(run: ReadRun) -> RunSpans:
    run.spans = run.spans or RunSpans(run.tree)
    return run.spans


def _is_stale(info: Info, latest: float | None) -> bool:
    """Whether other sessions continued for long after the last change of this one."""
    return info.time.updated is not None and latest is not None and info.time.updated < latest - STALE_MS


def _session_attributes(database: Database, info: Info, *, whole: bool) -> Record:
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
    at = span.at
    if not isinstance(at, SpanRef):
        raise FormatError("this span comes from another format")
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
        attributes = _session_attributes(database, infos[0], whole=False)
        if at.shows == "revert":
            return Body(attributes=attributes["revert"])
        links = (Link("started by", span=span.parent_id),) if span.parent_id else ()
        return Body(attributes=attributes, links=links, raw=rendered(attributes))


# ---- the list

Revision = tuple[Any, ...]
"""Changes when a session gets rows, or a session below it."""


class CachedSummary(msgspec.Struct, frozen=True):
    """A run that was counted, with all of its sessions."""

    sessions: tuple[str, ...]
    revision: Revision
    summary: RunSummary


def summarize(file: File, name: str, *, deep: bool) -> Iterator[RunSummary | Problem]:
    """Every session that is no sub-agent of another one."""
    with file.database() as connection:
        connection.execute("BEGIN")  # one state of it for all statements; closing ends it
        database = Database(connection)
        infos = database.sessions()
        cache: dict[str, Any] | None = file.memo.get(CACHE) if deep else None
        counting = Counting() if cache is None else cache.setdefault(_COUNTING, Counting())
        if cache is not None:
            counting.look(database)
        yield from _unlisted(database, file.path, counting, deep=deep)
        runs, circular = runs_of(infos)
        for info in circular:
            yield Problem(file.path, f"session {info.id}", "parents form a cycle; listed as a run")
        latest = max((info.time.updated or 0 for info in infos), default=0)
        originals = Originals(database, runs)
        revisions = {} if cache is None else _revisions(database, infos, counting)
        modified_at, moving = file.stat.mtime, file.moving
        for ident in counting.followed.keys() - {info.id for info in infos if info.id not in revisions}:
            del counting.followed[ident]
        for info in runs:
            stale, original = _is_stale(info, latest), originals.of(info)
            cached = cache.get(info.id) if cache is not None else None
            if cached is not None and cached.revision == (*map(revisions.get, cached.sessions), original, stale):
                yield replace(cached.summary, modified_at=modified_at)
                continue
            ref = RunRef(name, file.path, info.id)
            if not deep:
                header = header_of(info, originals.leading(info), originals.last(info), stale=stale, original=original)
                yield summary_of(ref, header, None, modified_at=modified_at, moving=moving)
                continue
            follower = counting.followed.get(info.id)
            has_room = cache is not None and len(counting.followed) < FOLLOWED
            if follower is not None or (has_room and info.id not in revisions):  # it goes on
                follower = follower or CountedRun(ref)
                built = follower.count(connection, partial(read, ref=ref))
                counting.followed[info.id] = follower
                yield built.summary(modified_at=modified_at, moving=moving)
                continue
            run = _RunReader(database, file.path).read(info, original)
            builder, header = RunBuilder(ref, lambda span: Body()), header_of_tree(run.tree, stale=stale)
            builder.add(_spans_of(run).spans, header=header, problems=run.tree.problems)
            summary = builder.summary(modified_at=modified_at, moving=moving)
            if cache is not None and header.status is not None and run.tree.sessions.keys() <= revisions.keys():
                revision = (*map(revisions.get, run.tree.sessions), original, stale)
                cache[info.id] = CachedSummary(tuple(run.tree.sessions), revision, summary)
            yield summary


_COUNTING: Final = "opencode counting"
FOLLOWED: Final = 16
"""Runs that the list holds to count their new rows."""


class Counting(msgspec.Struct):
    """What the list has counted in a database."""

    log: RowLog = RowLog()
    revisions: dict[Any, int] = {}
    """By session: how often its rows have changed."""
    followed: dict[str, CountedRun] = {}
    """Runs that go on."""
    lost: dict[str, int] = {}
    """By table: rows that belong to nothing."""
    is_recounted: bool = True
    """Early rows may have changed: all are counted again."""

    def look(self, database: Database) -> None:
        """Look for changes of all rows."""
        before = self.log.logs
        self.log, changes = self.log.look(database.connection, database.tables())
        self.is_recounted = before.keys() != self.log.logs.keys()
        for ident, by_table in changes.items():
            self.revisions[ident] = self.revisions.get(ident, 0) + 1
            for name, pages in by_table.items():
                is_early = min(pages) < self.first(name)
                lost = _has_lost(before[name].pages, self.log.logs[name].pages, ident, pages)
                self.is_recounted |= is_early or lost

    def first(self, table: str) -> int:
        """The first of the latest pages of a table."""
        return self.log.logs[table].end - LATEST_PAGES + 1 if table in self.log.logs else 0


def _revisions(database: Database, infos: Sequence[Info], counting: Counting) -> dict[str, Revision]:
    """The revisions of all sessions except recently changed ones, whose parts may change without new rows."""
    old = database.has("message", "time_updated") and database.has("part", "session_id")
    new = database.has_new and database.has(MESSAGES_2, "time_updated")
    if old is not database.has_old or new is not database.has_new:
        return {}
    changed_at: dict[str, float] = {}
    for table in ("message", MESSAGES_2):
        log = counting.log.logs.get(table)
        for (ident, _), sums in log.pages.items() if log is not None else ():
            if ident and database.table_of(ident) == table:
                changed_at[ident] = max(changed_at.get(ident, 0), _time(sums[3]) or 0)
    below: dict[str | None, list[str]] = {}
    for info in infos:
        below.setdefault(info.parent, []).append(info.id)
    updated = {info.id: max(info.time.updated or 0, changed_at.get(info.id, 0)) for info in infos}
    latest = max(updated.values(), default=0)
    return {
        info.id: (info, counting.revisions.get(info.id, 0), below.get(info.id))
        for info in infos
        if updated[info.id] < latest - STALE_MS
    }


def _unlisted(database: Database, path: str, counting: Counting, *, deep: bool) -> Iterator[Problem]:
    """Rows that no run shows."""
    for table in database.session_tables:
        idents = [ident for (ident,) in database.rows(f"SELECT id FROM {table}")]
        lost = sum(word(ident) is None for ident in idents)
        if lost:
            yield Problem(path, table, f"{lost} rows have no id")
    if database.has_old and not database.has_parts:
        yield Problem(path, "part", "no columns message_id, data: message parts can't be read")
    if not deep:
        return
    for table, key, above in (("part", "message_id", ["message"]), ("message", "session_id", database.session_tables)):
        if database.has(table, key) and (table != "part" or database.has_parts) and database.has_old:
            yield from _lost(database, path, counting, table, key, above)
    if database.has_new:
        yield from _lost(database, path, counting, MESSAGES_2, "session_id", database.session_tables)
    elif database.has(MESSAGES_2, "session_id"):
        sessions = "SELECT session_id FROM message WHERE session_id NOT NULL"
        ((unread,),) = database.rows(f"SELECT count(*) FROM {MESSAGES_2} WHERE session_id NOT IN ({sessions})")
        if unread:
            yield Problem(path, MESSAGES_2, f"{unread} rows are the only ones of their sessions, and not read")


def _lost(
    database: Database, path: str, counting: Counting, table: str, key: str, above: Sequence[str]
) -> Iterator[Problem]:
    """The rows of a table whose `key` is in none of the tables above it."""
    first = 0 if counting.is_recounted or counting.lost.get(table) else counting.first(table) << PAGE_BITS
    if first > 0:  # of few rows, each is looked for
        known = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {name} WHERE id = {table}.{key})" for name in above)
    else:
        known = " AND ".join(f"{key} NOT IN (SELECT id FROM {name} WHERE id NOT NULL)" for name in above)
    sql = f"SELECT count(*) FROM {table} WHERE ({key} IS NULL OR ({known})) AND rowid >= {first}"
    ((lost,),) = database.rows(sql if first > 0 else sql.removesuffix(f" AND rowid >= {first}"))
    counting.lost[table] = lost
    if lost:
        yield Problem(path, table, f"{lost} rows belong to no {'message' if table == 'part' else 'session'}")


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

    def of(self, info: Info) -> str | None:
        """Id of the original, None if there is none."""
        if info.fork is not None:
            return info.fork if self._database.sessions("WHERE id IN ({keys})", [info.fork]) else None
        created, first = info.time.created, self._first(info.id)
        if first is None or created is None or not (first < created or FORK.match(info.title)):
            return None
        wanted, prompt = _original_title(info.title), self._prompt(info.id)
        found: list[tuple[bool, bool, float, str]] = []
        alike = self._find_alike()
        for other in (*alike.get(first, ()), *alike.get(wanted or 0.0, ())):
            began, same = other.time.created, self._first(other.id) == first
            if began is not None and began < created and (prompt or same) and self._prompt(other.id) == prompt:
                found.append((other.title != wanted, not same, began, other.id))
        return min(found)[-1] if found else None

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
        return _time(self._database.rows(f"SELECT min(time_created) FROM {table} WHERE session_id = ?", ident)[0][0])

    def _find_prompt(self, ident: str) -> str:
        """The first prompt of a session."""
        return next((message.text for message in self._leading(ident) if message.is_prompt), "")

    def leading(self, info: Info) -> list[Message]:
        """The first messages of a session, up to `LEADING`, if they add to the session itself."""
        found: list[Message] = []
        for message in self._leading(info.id):
            found.append(message)
            if any(one.is_prompt for one in found) and info.agent and info.model_name:
                break
        return found

    def _leading(self, ident: str) -> Iterator[Message]:
        """The first messages of a session, those after the first prompt without their parts."""
        prompted = False
        for row in self._database.messages_of(ident, LEADING):
            parts = {} if prompted or row[0] < 0 else self._database.parts("message_id IN ({keys})", [row[1]])
            message = interpret(_source(row, parts.get(row[1], ()))[0])
            prompted = prompted or message.is_prompt
            yield message

    def last(self, info: Info) -> Message | None:
        """The last message of a session that tells how it ended, without its parts."""
        for limit in (1, 64, -1):
            rows = self._database.messages_of(info.id, limit, last=True)
            for row in rows:
                message = interpret(_source(row, ())[0])
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
