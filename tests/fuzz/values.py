"""The JSON values in trace files of any kind (documents, lines, archives, packed files, databases), to be changed."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple

import zstandard

from tracetui.testing import hostile
from tracetui.testing.reading import MTIME

DATABASE_ROWS: Final = 400
_NAMES_AN_ID: Final = re.compile(
    r"(?:^|[a-z_.])(?:ids?|uuid|key|name|path|file|filename|ref|parent|thread|session|trace|span|agent|call|base|from|"
    r"original|replay_of|retry_of|forked_from|epoch|folder|cwd|transcript)$",
    re.IGNORECASE,
)


class Value(NamedTuple):
    """One value of a trace, and the name of the field that holds it."""

    name: str
    value: Any
    replace: Callable[[Any], None]
    delete: Callable[[], None]

    @property
    def names_an_id(self) -> bool:
        """Whether the field is one of those that relate records, runs and files."""
        return _NAMES_AN_ID.search(self.name) is not None


class TraceFile:
    """A file whose values can be changed; `save` writes it. It has none if it holds no JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members: dict[str, tuple[list[Any], bool]] = {}
        self._raw: dict[str, bytes] = {}
        self._rows: list[_Row] = []
        data = path.read_bytes()
        self._kind = _kind(data)
        if self._kind == "database":
            with suppress(sqlite3.Error):  # damaged: it is changed no further
                self._rows = list(_rows(path))
        elif self._kind == "archive":
            self._raw = _members(path)
        elif self._kind == "packed":
            self._raw = {"": zstandard.ZstdDecompressor().decompressobj().decompress(data)}
        else:
            self._raw = {"": data}
        for name, content in self._raw.items():
            parsed = hostile.parse(content)
            if parsed[0]:
                self._members[name] = parsed

    @property
    def records(self) -> Iterator[list[Any]]:
        """The lists of records: one a member of an archive, and one value each where it is a document."""
        return (records for records, document in self._members.values() if not document)

    def values(self) -> list[Value]:
        """Every value in the file that can be changed."""
        values = [value for records, _ in self._members.values() for value in _values(records)]
        for row in self._rows:
            values += row.values()
        return values

    def save(self) -> None:
        """Write the file, as old as the files of the conformance suite."""
        if self._kind == "database":
            _update(self.path, self._rows)
        else:
            changed = {name: hostile.dumps(*parsed) for name, parsed in self._members.items()}
            contents = {name: changed.get(name, data) for name, data in self._raw.items()}
            if self._kind == "archive" and contents:
                with zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED) as archive:
                    for name, data in contents.items():
                        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # without today's date
            elif self._kind == "packed":
                self.path.write_bytes(zstandard.ZstdCompressor().compress(contents[""]))
            elif contents and changed:
                self.path.write_bytes(contents[""])
        os.utime(self.path, (MTIME, MTIME))


def _kind(data: bytes) -> str:
    if hostile.is_database(data):
        return "database"
    return "archive" if data.startswith(b"PK\3\4") else "packed" if data.startswith(b"\x28\xb5\x2f\xfd") else "text"


def _values(records: list[Any], name: str = "") -> Iterator[Value]:
    todo: list[tuple[Any, str]] = [(records, name)]
    while todo:
        item, above = todo.pop()
        keys: Any = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            named = key if isinstance(key, str) else above
            if item is not records:
                yield _value_at(item, key, named)
            todo.append((item[key], named))


def _value_at(where: Any, key: Any, name: str) -> Value:
    def replace(value: Any) -> None:
        value = deepcopy(value)  # else a value within itself, or one that is changed in two places
        if isinstance(where, dict) or key < len(where):
            where[key] = value

    def delete() -> None:
        if isinstance(where, dict):
            where.pop(key, None)
        elif key < len(where):
            del where[key]

    return Value(name, where[key], replace, delete)


# ---- archives and databases


def _members(path: Path) -> dict[str, bytes]:
    """The members that the standard library can unpack; none at all if there is another one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (NotImplementedError, zipfile.BadZipFile):
        return {}


class _Row:
    """The value in one column of one row; JSON in it is decoded."""

    def __init__(self, table: str, column: str, rowid: int, value: Any) -> None:
        self.table, self.column, self.rowid = table, column, rowid
        self._holder = {column: value}
        self._inner, self._document = hostile.parse(value.encode()) if _may_be_json(value) else ([], False)
        self.changed = False

    def values(self) -> Iterator[Value]:
        """The value, and those of JSON in it."""
        own = [_value_at(self._holder, self.column, self.column)] if self._holder else []  # it may have been deleted
        for value in (*own, *_values(self._inner, self.column)):
            yield value._replace(replace=self._noting(value.replace), delete=self._noting(value.delete))

    def _noting(self, change: Callable[..., None]) -> Callable[..., None]:
        def do(*values: Any) -> None:
            self.changed = True
            change(*values)

        return do

    def stored(self) -> Any:
        """The value to store, as SQLite takes it."""
        value = self._holder.get(self.column)
        if self._inner and isinstance(value, str):
            return hostile.dumps(self._inner, self._document).decode()
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass")
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            return str(value)
        return value if value is None or isinstance(value, int | float | bytes) else json.dumps(value)


def _may_be_json(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in ("{", "[") and "\ud800" not in value


def _rows(path: Path) -> Iterator[_Row]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = DELETE")
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'"
        for (table,) in connection.execute(tables).fetchall():
            try:
                rows = connection.execute(f'SELECT rowid, * FROM "{table}" LIMIT {DATABASE_ROWS}')
                columns = [column[0] for column in rows.description][1:]
                for rowid, *values in rows.fetchall():
                    yield from (_Row(table, name, rowid, value) for name, value in zip(columns, values, strict=True))
            except sqlite3.Error:
                continue  # a table without rowids, or with text that is no UTF-8


def _update(path: Path, rows: list[_Row]) -> None:
    if not rows:
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for row in rows:
            if row.changed:
                value = row.stored()
                cast = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
                try:
                    update = f'UPDATE OR IGNORE "{row.table}" SET "{row.column}" = {cast} WHERE rowid = ?'
                    connection.execute(update, (value, row.rowid))
                except (sqlite3.Error, OverflowError):
                    continue  # a constraint of the table forbids it
