"""Files that no format claims: broken (a problem) or something else (ignored)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.opening import opening
from tracetui.formats.registry import shape_of, shape_of_tables
from tracetui.formats.stores import STORE_TABLES, companion_of, store_of, store_of_tables
from tracetui.sources.base import HEAD_SIZE, SQLITE_MAGIC, File

if TYPE_CHECKING:
    from sqlite3 import Connection

PROBE_LIMIT: Final = 64 << 20
"""Bytes up to which a JSON document is decoded to check whether it is broken."""
PROBE_LINES: Final = 20


class Unclaimed(NamedTuple):
    """A file that no format claims."""

    reason: str
    shape: str = ""
    """The kind of trace that it resembles (``chat messages``), if any."""
    store: str = ""
    """The folder of the store that it belongs to, if that has more files."""


def explain_unclaimed(file: File) -> Unclaimed:
    """Return the reason to ignore `file`. Raises `FormatError` if it is broken or empty."""
    if (description := companion_of(file.path)) is not None:
        return Unclaimed(description)
    store = store_of(file.path)
    if store is not None:
        return Unclaimed(f"holds {store.holds}, which no format reads", store.holds, store.path)
    probe = _PROBES.get(file.name.lower().rpartition(".")[2])
    if probe is not None and not file.head:
        raise FormatError("empty file", "byte 0")
    shape = (probe or _text)(file)
    if shape:
        return Unclaimed(f"holds {shape}, but no format claims it", shape)
    return Unclaimed("no format claims it" if probe is None else "readable, but no format claims it")


def _text(file: File) -> str:
    """The shape of a file that need not be a trace: of its first lines that are JSON objects."""
    records = []
    for line in opening(file).head.split(b"\n", PROBE_LINES)[:PROBE_LINES]:
        if line.lstrip()[:1] == b"{":
            try:
                records.append(decode(line)[0])
            except FormatError:
                continue
    return shape_of(records)


def _document(file: File) -> str:
    if file.stat.size > PROBE_LIMIT:
        raise FormatError("no format claims it; too large to check why")
    value, note = decode(file.read_all())
    if note is not None:
        raise FormatError(f"no format claims it; {note}")
    if not isinstance(value, dict | list):
        raise FormatError(f"expected an object or list, found {_kind(value)}")
    if not value:
        raise FormatError("empty object" if isinstance(value, dict) else "empty list")
    if isinstance(value, dict) and "__proto__" in value:
        raise FormatError("contains the key __proto__, which no trace uses (prototype pollution)")
    return shape_of([value])


def _kind(value: Any) -> str:
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _lines(file: File) -> str:
    """Return the shape of the first line that is JSON; at least one must be."""
    head = opening(file).head
    *whole, last = head.split(b"\n")
    if len(head) < HEAD_SIZE:
        whole.append(last)
    elif not whole:
        raise FormatError("no format claims it; first line too long to check why", "line 1")
    failure = FormatError("nothing but white space")
    for number, line in enumerate(whole[:PROBE_LINES], 1):
        if not line.strip():
            continue
        try:
            return shape_of([decode(line)[0]])
        except FormatError as error:
            failure = failure if failure.where else FormatError(error.reason, f"line {number}")
    raise failure


def _database(file: File) -> str:
    if not file.head.startswith(SQLITE_MAGIC):
        raise FormatError("not a SQLite database", "byte 0")
    from sqlite3 import Error as SqliteError  # slow to import, and rarely needed

    try:
        with file.database() as connection:
            count = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            columns = {name: _columns(connection, name) for name in file.tables & STORE_TABLES}
    except SqliteError as error:
        raise FormatError(f"cannot be read as a SQLite database ({error})") from error
    if not count:
        raise FormatError("a SQLite database without tables")
    store = store_of_tables(columns)
    return shape_of_tables(file.tables) if store is None else store.holds


def _columns(connection: Connection, table: str) -> set[str]:
    """The columns of a table whose name is one of ours."""
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


_PROBES: Final[dict[str, Callable[[File], str]]] = {
    "json": _document,
    "jsonl": _lines,
    "ndjson": _lines,
    "db": _database,
    "sqlite": _database,
    "sqlite3": _database,
}
"""Probe by file extension. A file with any other extension is not a trace."""
