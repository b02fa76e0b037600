"""Broken and hostile variants of a trace file: cut, binary, not UTF-8, wrong types, nulls, depth, giant numbers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

_NEST: Final = "@nest@"
_DIGITS: Final = "@digits@"
_MARKS: Final = ((f'"{_NEST}"', "[" * 20_000 + "]" * 20_000), (f'"{_DIGITS}"', "9" * 5_000))
JUNK: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    3.75,
    10**30,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "x",
    "../../etc/passwd",
    "\ud800",
    "\x1b[31m\u202e",
    "2024-13-45T99:99:99Z",
    "0001-01-01T00:00:00+23:59",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"type": 5, "role": [], "content": {}},
    _NEST,
    _DIGITS,
)
"""What a value is replaced with."""


def variants(path: Path, random: Random, count: int) -> Iterator[tuple[str, bytes]]:
    """About `count` broken variants of the file at `path`, each with a label that names it."""
    data = path.read_bytes()
    yield from _bytes(data, random, count // 4)
    if data.startswith(b"SQLite format 3\0"):
        yield from _databases(path, random, count)
    else:
        yield from _documents(data, random, count)


def parse(data: bytes) -> tuple[list[Any], bool]:
    """The JSON records of a file: (records, True for one document, False for lines); empty if it holds no JSON."""
    try:
        return [json.loads(data)], True
    except (ValueError, RecursionError):
        pass
    records = []
    for line in data.split(b"\n"):
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return records, False


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key or index) of every value within a JSON value."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        item = todo.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            found.append((item, key))
            todo.append(item[key])
    return found


def dumps(records: list[Any], document: bool, *, indent: int | None = None) -> bytes:
    """The records as a file again."""
    if document:
        return json.dumps(records[0], indent=indent).encode()
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _bytes(data: bytes, random: Random, count: int) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "blank", b" \n\n"
    yield "binary", bytes(random.randrange(256) for _ in range(4096))
    yield "byte-order mark", b"\xef\xbb\xbf" + data
    yield "utf-16", data.decode("utf-8", "replace").encode("utf-16")
    yield "nested", b'{"a":' * 50_000
    yield "zeros inside", data[: len(data) // 2] + bytes(512) + data[len(data) // 2 :]
    for _ in range(max(1, count // 2)):
        place = random.randrange(len(data) + 1)
        yield f"cut at {place}", data[:place]
    for _ in range(max(1, count // 2)):
        place = random.randrange(len(data) + 1)
        junk = random.choice((b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80", b'"', b"}", b"\\", b"\n", b"\0"))
        yield f"{junk!r} at {place}", data[:place] + junk + data[place:]


def _documents(data: bytes, random: Random, count: int) -> Iterator[tuple[str, bytes]]:
    records, document = parse(data)
    found = places(records)
    if not found:
        return
    yield "nulls everywhere", _marked(_nulled(data, records), document)
    for _ in range(count):
        where, key = random.choice(found)
        before, junk = where[key], random.choice(JUNK)
        where[key] = junk
        yield f"{key!r} = {str(junk)[:30]!r}", _marked(records, document)
        where[key] = before
    for where, key in random.sample(found, min(len(found), count // 4)):
        if isinstance(where, dict):
            kept = dict(where)
            del where[key]
            yield f"without {key!r}", _marked(records, document)
            where.clear()
            where.update(kept)


def _nulled(data: bytes, records: list[Any]) -> list[Any]:
    """All leaves are null; the records are decoded anew, so that the given ones stay as they are."""
    again, _ = parse(data)
    for where, key in places(again):
        if not isinstance(where[key], dict | list):
            where[key] = None
    return again if again else records


def _marked(records: list[Any], document: bool) -> bytes:
    data = dumps(records, document)
    for mark, text in _MARKS:
        data = data.replace(mark.encode(), text.encode())
    return data


def _databases(path: Path, random: Random, count: int) -> Iterator[tuple[str, bytes]]:
    """The same database with one column of one table overwritten in every row."""
    columns = _columns(path)
    for _ in range(min(count, 4 * len(columns))):
        table, column = random.choice(columns)
        junk = random.choice((None, -1, 9e99, "", "x", "\x1b[31m", b"\xff\xfe\0", b"null", "[[[]]]", '{"a":'))
        with TemporaryDirectory() as folder:
            copy = Path(folder, "copy.db")
            _fold_in(path, copy)
            try:
                with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                    connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ?', (junk,))  # noqa: S608
            except sqlite3.Error:
                continue  # a constraint of the table forbids it
            yield f"{table}.{column} = {junk!r}", copy.read_bytes()


def rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Every value of every row of a database, as (``table.column``, value)."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        _fold_in(path, copy)
        with closing(sqlite3.connect(copy)) as connection:
            for table, column in _columns(copy):
                for (value,) in connection.execute(f'SELECT "{column}" FROM "{table}"'):  # noqa: S608
                    yield f"{table}.{column}", value


def _columns(path: Path) -> list[tuple[str, str]]:
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        _fold_in(path, copy)
        with closing(sqlite3.connect(copy)) as connection:
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'"
                " AND name NOT LIKE '%\\_fts%' ESCAPE '\\'"
            ).fetchall()
            return [
                (table, row[1]) for (table,) in tables for row in connection.execute(f'PRAGMA table_info("{table}")')
            ]


def _fold_in(path: Path, copy: Path) -> None:
    """Copy a database with its write-ahead log folded in, as one file."""
    copy.write_bytes(path.read_bytes())
    log = path.with_name(path.name + "-wal")
    if log.exists():
        copy.with_name(copy.name + "-wal").write_bytes(log.read_bytes())
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
