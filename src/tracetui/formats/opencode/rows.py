"""Rows of ``opencode.db``: sessions, messages and parts are columns that are indexed, and JSON for all the rest.

Columns come and go with the versions of opencode, so those that are there are asked for by name, the others are None.
The tables of accounts and credentials are never read.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.opencode.records import Info, Message, Record, model_of, moment, part_with, record_of, size_of
from tracetui.formats.scalars import string, word

TABLES: Final = frozenset({"session", "message", "part"})
IN_CHUNK: Final = 400
"""Values in one ``IN (…)``: some builds of SQLite take 999 at most."""
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


def many(connection: Connection, sql: str, keys: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of `sql`, in which ``{keys}`` stands for some of `keys` at a time."""
    listed = list(keys)
    for start in range(0, len(listed), IN_CHUNK):
        some = listed[start : start + IN_CHUNK]
        yield from connection.execute(sql.format(keys=", ".join("?" * len(some))), some).fetchall()


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
