"""Broken and hostile variants of a trace file: truncated, binary, not UTF-8, wrong types, nulls, deep nesting."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

_NEST: Final = "@nest@"
_DIGITS: Final = "@digits@"
_GONE: Final = "@gone@"
_MARKS: Final = ((f'"{_NEST}"', "[" * 2_000 + "]" * 2_000), (f'"{_DIGITS}"', "9" * 5_000))
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
"""Replacement values."""


def variants(paths: Sequence[str], random: Random, count: int) -> Iterator[tuple[str, str, bytes]]:
    """Yield (path, label, content) of broken variants of the files of a case; each file ends with its original.

    About `count` variants replace one value, spread over the kinds of positions in all files.
    """
    for path in paths:
        _merge_log(path)
    sources = {path: Path(path).read_bytes() for path in paths}
    cuts = max(2, count // (6 * max(1, len(paths))))
    values = dict(_values({path: parse(data) for path, data in sources.items()}, random, count))
    for path, data in sources.items():
        for label, broken in _bytes(data, random, cuts):
            yield path, label, broken
        for label, broken in _databases(data, random, count) if is_database(data) else values.get(path, ()):
            yield path, label, broken
        yield path, "original", data


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
    members: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        item = todo.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            members.append((item, key))
            todo.append(item[key])
    return members


def dumps(records: list[Any], document: bool, *, indent: int | None = None) -> bytes:
    """Encode records as a file."""
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
    for _ in range(count):
        place = random.randrange(len(data) + 1)
        yield f"cut at {place}", data[:place]
    for _ in range(count):
        place = random.randrange(len(data) + 1)
        junk = random.choice((b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80", b'"', b"}", b"\\", b"\n", b"\0"))
        yield f"{junk!r} at {place}", data[:place] + junk + data[place:]


Parsed = tuple[list[Any], bool]


def _values(
    sources: dict[str, Parsed], random: Random, count: int
) -> Iterator[tuple[str, Iterator[tuple[str, bytes]]]]:
    """For each JSON file, its variants with replaced values."""
    members = [(path, *place) for path, (records, _) in sources.items() for place in _kinds(records)]
    random.shuffle(members)
    first = {kind: number for number, (*_, kind) in reversed(list(enumerate(members)))}
    order = sorted(range(len(members)), key=lambda number: first[members[number][-1]] != number)
    junk = [*JUNK, *[_GONE] * 4]
    random.shuffle(junk)
    chosen: dict[str, list[tuple[Any, Any, Any]]] = {}
    for number, (path, where, key, _) in zip(range(count), map(members.__getitem__, cycle(order)), strict=False):
        chosen.setdefault(path, []).append((where, key, junk[number % len(junk)]))
    for path, parsed in sources.items():
        yield path, _replaced(parsed, chosen.get(path, []))


def _replaced(parsed: Parsed, chosen: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[str, bytes]]:
    records, document = parsed
    if records:
        yield "nulls everywhere", _marked(_nulled(records), document)
    for where, key, junk in chosen:
        original = where.copy()
        if junk == _GONE:
            del where[key]
        else:
            where[key] = junk
        yield f"{key!r} = {str(junk)[:30]!r}", _marked(records, document)
        where.clear()
        where.update(original) if isinstance(where, dict) else where.extend(original)


def _kinds(records: list[Any]) -> Iterator[tuple[Any, Any, int]]:
    """Yield (container, key or index, kind) of every value; a kind is the path of field names to it."""
    todo = [(record, 0) for record in records]
    while todo:
        item, above = todo.pop()
        names = frozenset(item) if isinstance(item, dict) else None
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            kind = hash((above, names, names and key))
            yield item, key, kind
            todo.append((item[key], kind))


def _nulled(records: list[Any]) -> list[Any]:
    """The records with null for every leaf."""
    nulled: list[Any] = json.loads(json.dumps(records))
    for where, key in places(nulled):
        if not isinstance(where[key], dict | list):
            where[key] = None
    return nulled


def _marked(records: list[Any], document: bool) -> bytes:
    data = dumps(records, document)
    for mark, text in _MARKS:
        data = data.replace(mark.encode(), text.encode())
    return data


def _databases(data: bytes, random: Random, count: int) -> Iterator[tuple[str, bytes]]:
    """The same database with one column of one table overwritten in every row."""
    columns = _columns(data)
    random.shuffle(columns)
    junk = (None, -1, 9e99, "", "x", "\x1b[31m", b"\xff\xfe\0", b"null", "[[[]]]", '{"a":', "{}")
    for number, (table, column) in enumerate(islice(cycle(columns), min(count, 2 * len(columns)))):
        value = junk[number % len(junk)]
        with closing(_opened(data)) as connection:
            try:
                connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ?', (value,))  # noqa: S608
            except sqlite3.Error:
                continue  # forbidden by a constraint
            yield f"{table}.{column} = {value!r}", connection.serialize()


def rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Every value of every row of a database, as (``table.column``, value)."""
    with TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        if Path(f"{path}-wal").exists():
            shutil.copy(f"{path}-wal", folder)
        _merge_log(copy)
        data = Path(copy).read_bytes()
    with closing(_opened(data)) as connection:
        for table, column in _columns(data):
            for (value,) in connection.execute(f'SELECT "{column}" FROM "{table}"'):  # noqa: S608
                yield f"{table}.{column}", value


def _columns(data: bytes) -> list[tuple[str, str]]:
    with closing(_opened(data)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'"
            " AND name NOT LIKE '%\\_fts%' ESCAPE '\\'"
        ).fetchall()
        return [(table, row[1]) for (table,) in tables for row in connection.execute(f'PRAGMA table_info("{table}")')]


def _opened(data: bytes) -> sqlite3.Connection:
    """Open an in-memory database from its bytes."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(data)
    return connection


def is_database(data: bytes) -> bool:
    """Whether the bytes are an SQLite database."""
    return data.startswith(b"SQLite format 3\0")


def _merge_log(path: str) -> None:
    """Merge the write-ahead log of a database into its file; other files stay unchanged."""
    if is_database(Path(path).read_bytes()):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # durability doesn't matter
            connection.execute("PRAGMA journal_mode = DELETE")
