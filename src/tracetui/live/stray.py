"""Files that no format claims: broken, which is a problem, or simply something else, which is ignored.

Only files with the ending of a trace are looked into. What cannot be read to its end, or holds nothing at all, was
probably meant to be a trace; a readable file of another kind (a configuration, a data set) is none of our business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.near_miss import shape_of, shape_of_tables
from tracetui.sources.base import HEAD_SIZE, SQLITE_MAGIC, File

PROBE_LIMIT: Final = 64 << 20
"""Bytes of a JSON document up to which it is decoded to tell whether it is broken."""
PROBE_LINES: Final = 20


class Unclaimed(NamedTuple):
    """A file that no format claims."""

    reason: str
    shape: str = ""
    """What it looks like if it looks like a trace all the same: ``chat messages``."""


def look_at(file: File) -> Unclaimed:
    """Why nobody claims `file`, if it is something else. Raises `FormatError` if it is broken or empty."""
    probe = _PROBES.get(file.name.lower().rpartition(".")[2])
    if probe is not None and not file.head:
        raise FormatError("empty file", "byte 0")
    shape = (probe or _text)(file)
    if shape:
        return Unclaimed(f"holds {shape}, but no format claims it", shape)
    return Unclaimed("no format claims it" if probe is None else "readable, but no format claims it")


def _text(file: File) -> str:
    """The shape of a file that need not be a trace: of its first lines that are JSON objects."""
    found = []
    for line in file.head.split(b"\n", PROBE_LINES)[:PROBE_LINES]:
        if line.lstrip()[:1] == b"{":
            try:
                found.append(decode(line)[0])
            except FormatError:
                continue
    return shape_of(found)


def _document(file: File) -> str:
    if file.stat.size > PROBE_LIMIT:
        raise FormatError("no format claims it, and it is too large to tell why")
    value, note = decode(file.read_all())
    if note is not None:
        raise FormatError(f"no format claims it, and it is odd: {note}")
    if not isinstance(value, dict | list):
        raise FormatError(f"holds no object, but {_kind(value)}")
    if not value:
        raise FormatError(
            "holds nothing: an empty object" if isinstance(value, dict) else "holds nothing: an empty list"
        )
    if isinstance(value, dict) and "__proto__" in value:
        raise FormatError("holds the name __proto__, which attacks careless readers and is in no trace")
    return shape_of([value])


def _kind(value: Any) -> str:
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _lines(file: File) -> str:
    """The shape of the first line that is JSON: there must be one."""
    *whole, last = file.head.split(b"\n")
    if len(file.head) < HEAD_SIZE:
        whole.append(last)
    elif not whole:
        raise FormatError("no format claims it, and its first line is too long to tell why", "line 1")
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
    from sqlite3 import Error as SqliteError  # slow to import, and seldom needed

    try:
        with file.database() as connection:
            count = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except SqliteError as error:
        raise FormatError(f"cannot be read as a SQLite database ({error})") from error
    if not count:
        raise FormatError("a SQLite database without tables")
    return shape_of_tables(file.tables)


_PROBES: Final[dict[str, Callable[[File], str]]] = {
    "json": _document,
    "jsonl": _lines,
    "ndjson": _lines,
    "db": _database,
    "sqlite": _database,
    "sqlite3": _database,
}
"""How to look into a file, by its ending. Under any other ending it is no trace of ours."""
