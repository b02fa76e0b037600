"""Test cases on disk: a private copy of one, the files that a format claims, runs read as a file grows, and the normal
form in which runs are compared.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import NO, Chunk, Format, Reader
from tracetui.formats.sqlite import quoted
from tracetui.model import Body, Run, RunRef, RunSummary, Span, Status, StatusSource
from tracetui.model.build import RunBuilder
from tracetui.model.run import GOING_ON
from tracetui.model.summary import FIELDS
from tracetui.sources.base import CACHE
from tracetui.sources.local import LocalSource

MTIME: Final = 1_700_000_000
"""Modification time of every file under test: old, so no run counts as running."""
ALLOWED: Final = (FormatError, OSError, sqlite3.Error)
"""Exceptions that a format may raise for an unreadable file."""


class Growing:
    """Reads one run incrementally, as the program does."""

    def __init__(self, fmt: Format, ref: RunRef) -> None:
        self._format = fmt
        self._ref = ref
        self._builder = RunBuilder(ref, self._load)
        self._reader: Reader | None = None

    def read(self, *, whole: bool = True) -> None:
        """Read everything available. Only a file that is not `whole` may be unreadable."""
        done = False
        while not done:
            with LocalSource().open(self._ref.path) as file:
                try:
                    self._reader = self._reader or self._format.open(file, self._ref)
                    chunk = self._reader.more(file)
                except ALLOWED:
                    if whole:
                        raise
                    return
            self.take(chunk)
            done = chunk.done

    def take(self, chunk: Chunk) -> None:
        """Add a chunk."""
        if chunk.reset:
            self._builder.reset()
        self._builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)

    def run(self) -> Run:
        """The current run."""
        return self._builder.build(modified_at=MTIME, moving=False)

    def _load(self, span: Span) -> Body:
        with LocalSource().open(self._ref.path) as file:
            return self._format.body(file, self._ref, span)


def read_run(fmt: Format, ref: RunRef) -> Run:
    """Read a whole run."""
    growing = Growing(fmt, ref)
    growing.read()
    return growing.run()


@contextmanager
def kept_open(fmt: Format, run: Run) -> Iterator[Run]:
    """Context: the run, whose bodies are loaded from a file that stays open, as for an export."""
    ref = run.summary.ref
    with LocalSource().open(ref.path) as file:
        file.memo[CACHE] = {}
        yield msgspec.structs.replace(run, load=partial(fmt.body, file, ref))


@contextmanager
def copied(case: Path) -> Iterator[Path]:
    """Context: a private copy of the input of a case, with old modification times."""
    with TemporaryDirectory(prefix="tracetui-case-") as folder:
        root = Path(folder).resolve() / "input"
        shutil.copytree(case / "input", root)
        for path in root.rglob("*"):
            os.utime(path, (MTIME, MTIME))
        yield root


def claimed(fmt: Format, root: Path) -> list[str]:
    """Paths of the files below `root` that the format claims."""
    paths = []
    for path in files(root):
        with LocalSource().open(path) as file:
            if fmt.sniff(file) > NO:
                paths.append(path)
    return paths


def files(root: Path) -> list[str]:
    """Paths of the regular files below `root`, without those that the program skips."""
    return sorted(entry.path for entry in LocalSource().walk(str(root)) if entry.skipped is None)


def write(path: str, data: bytes, mtime: int, *, append: bool = False) -> None:
    """Write `data` to the file; `append`: by appending the rest, as a writer does."""
    target = Path(path)
    if not append:
        target.unlink(missing_ok=True)  # truncation would force a write to disk
    with target.open("ab" if append else "wb") as stream:
        stream.write(data[target.stat().st_size :] if append else data)
    os.utime(target, (mtime, mtime))


# ---- normal form

_UNCOMPARED: Final = frozenset({"at", "modified_at", "deep"})
"""Fields excluded from comparison: opaque locations, and values that differ between stages."""


def plain(value: Any) -> Any:
    """`value` as JSON: empty struct fields are dropped, bytes become their length and a digest."""
    if isinstance(value, msgspec.Struct):
        names = FIELDS if isinstance(value, RunSummary) else value.__struct_fields__
        fields = ((name, getattr(value, name)) for name in names if name not in _UNCOMPARED)
        return {name: plain(item) for name, item in fields if not _is_empty(item)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:16]}"
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def plain_run(run: Run) -> dict[str, Any]:
    """A whole run with the bodies of all its spans; problems in a stable order."""
    return {
        "summary": plain(run.summary),
        "body": plain(run.body),
        "spans": [
            {**plain(span), "depth": depth, "body": plain(run.load(span))}
            for span, depth in zip(run.spans, run.depths, strict=True)
        ],
        "problems": sorted((plain(problem) for problem in run.problems), key=repr),
    }


def relative(value: Any, root: str) -> Any:
    """The value with the prefix `root` removed from every path."""
    if isinstance(value, str):
        return value.replace(root + "/", "")
    if isinstance(value, dict):
        return {key: relative(item, root) for key, item in value.items()}
    return [relative(item, root) for item in value] if isinstance(value, list) else value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str | int | float]]:
    """Every string and number in a JSON value with its path (``steps.*.args.query``), without blank strings."""
    todo = [(path, value)]
    while todo:
        where, item = todo.pop()
        if isinstance(item, dict):
            todo.extend((f"{where}.{key}" if where else str(key), below) for key, below in item.items())
        elif isinstance(item, list | tuple):
            todo.extend((f"{where}.*" if where else "*", below) for below in item)
        elif isinstance(item, str):
            if item.strip():
                yield where, item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield where, item


class DisplayedValues:
    """Everything shown of some runs, to check whether it includes a source value."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._values: set[str | int | float] = set()
        for run in runs:
            for part in (run.summary, run.body, *run.spans, *map(run.load, run.spans)):
                self._values.update(value for _, value in leaves(_without_raw(part)))
        self._text = "\0".join(value for value in self._values if isinstance(value, str))

    def has(self, value: str | int | float) -> bool:
        """Whether `value` is shown: unchanged, within a longer text, or (JSON in a string) leaf by leaf."""
        if value != value or value in self._values:
            return True
        if not isinstance(value, str):
            return str(value) in self._text
        if value in self._text or value.strip() in self._text:
            return True
        return value.lstrip()[:1] in ("{", "[") and self._has_all(value)

    def _has_all(self, text: str) -> bool:
        try:
            inner = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return False
        return all(self.has(value) for _, value in leaves(inner))


def _without_raw(value: Any) -> Any:
    document = plain(value)
    document.pop("raw", None)
    return document


def _is_empty(value: Any) -> bool:
    """Whether a field is empty; zero isn't."""
    return value is None or value is False or (isinstance(value, str | tuple | dict | bytes) and not value)


# ---- growing files: an incremental reader must always agree with a fresh one


LONG_AGO: Final = 1_600_000_000
_TIMES: Final = ("created_at", "started_at", "opened_at")


class Follower:
    """Follows one run as ``tracetui tail`` does: stores spans and bodies by id, clears them on reset."""

    def __init__(self, fmt: Format, ref: RunRef) -> None:
        self._format = fmt
        self._growing = Growing(fmt, ref)
        self._reader: Reader | None = None
        self._spans: dict[str, Any] = {}
        self.ref = ref
        self.resets = 0
        self.given = 0
        """Number of spans returned by all reads."""

    def read(self) -> None:
        """Read everything available; a read error changes nothing."""
        done = False
        while not done:
            with LocalSource().open(self.ref.path) as file:
                try:
                    self._reader = self._reader or self._format.open(file, self.ref)
                    chunk = self._reader.more(file)
                except ALLOWED:
                    return
                if chunk.reset:
                    self.resets += 1
                    self._spans.clear()
                self.given += len(chunk.spans)
                for span in chunk.spans:
                    self._spans[span.id] = {**plain(span), "body": plain(self._format.body(file, self.ref, span))}
            self._growing.take(chunk)
            done = chunk.done

    def check(self, where: str) -> None:
        """Compare with a fresh reader, if it can read the file. Raises `AssertionError`."""
        try:
            fresh = read_run(self._format, self.ref)
            with kept_open(self._format, fresh) as loading:
                right, going = plain_run(loading), fresh.summary.status in GOING_ON
        except ALLOWED:
            return
        label = f"{self.ref.address} {where}"
        expected = {span["id"]: span for span in right["spans"]}
        assert sorted(self._spans) == sorted(expected), f"{label}: spans differ from a fresh read"
        for ident, document in expected.items():
            actual = {**self._spans[ident], "depth": document["depth"]}
            if actual["status"] == Status.RUNNING and not going:
                actual |= {"status": Status.UNKNOWN, "status_source": StatusSource.DERIVED}  # as in `RunBuilder`
            assert actual == document, f"{label}: {ident} was not returned again: {actual}"
        try:
            run = plain_run(self._growing.run())
        except ALLOWED as error:
            raise AssertionError(f"{label}: a span that was not returned again has no body: {error}") from error
        assert run["spans"] == right["spans"], f"{label}: {[s['id'] for s in run['spans']]}: different order"
        assert run == right, f"{label}: {run['summary']} {run['body']} {run['problems']}, expected {right}"


def check_bytes(fmt: Format, path: str, refs: list[RunRef], random: Random, count: int) -> None:
    """Check a file that grows to its size in `count` random steps, is truncated, and grows again."""
    whole = Path(path).read_bytes()
    followers = [Follower(fmt, ref) for ref in refs]
    ends = {0, whole.find(b"\n") + 1, len(whole) - 1}  # empty, the first line, all but the last byte
    sizes = sorted(ends.union(round(random.random() * len(whole)) for _ in range(count)))
    stops = [*sizes, len(whole), sizes[len(sizes) // 2], len(whole)]
    for number, size in enumerate(stops):
        write(path, whole[:size], LONG_AGO + number, append=0 < number <= len(sizes))
        for follower in followers:
            follower.read()
            follower.check(f"at {size} of {len(whole)} bytes (stop {number})")
    for follower in followers:
        before = follower.given
        follower.read()
        assert follower.given == before, f"{follower.ref.address}: returned again without a change"


def check_rows(fmt: Format, path: str, refs: list[RunRef], random: Random, stops: int) -> None:
    """Check a database with rows from an open writer, after about `stops` of its statements."""
    statements = list(_statements(path, random))
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(name):
            os.unlink(name)
    followers = [Follower(fmt, ref) for ref in refs]
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = OFF")  # durability doesn't matter
        every = 1 + len(statements) // stops
        for number, (sql, values) in enumerate(statements):
            writer.execute(sql, values)
            if number % every == 0 or number == len(statements) - 1:
                for follower in followers:
                    follower.read()
                    follower.check(f"after {number + 1} of {len(statements)} statements: {sql} {values}")


def _statements(path: str, random: Random) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A plausible sequence of statements: runs start active and end after their steps, some steps are written twice."""
    with closing(sqlite3.connect(path)) as db:
        made = db.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%'").fetchall()
        for (sql,) in made:
            if "VIRTUAL" not in sql and "TRIGGER" not in sql and "_fts" not in sql:
                yield sql, ()
        rows: list[tuple[str, int, str, list[str], list[Any]]] = []
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not table.startswith("sqlite_") and "_fts" not in table:
                rows += _rows(db, table)
    rows.sort(key=lambda row: (row[0], row[1]))
    yield from _played(rows, random)


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[str, int, str, list[str], list[Any]]]:
    names = [column[1] for column in db.execute(f"PRAGMA table_info({quoted(table)})")]  # without generated ones
    columns = ", ".join(map(quoted, names))
    cursor = db.execute(f"SELECT {columns} FROM {quoted(table)} ORDER BY rowid")  # noqa: S608
    first = {"runs": 0, "workflows": 0, "steps": 2}.get(table, 1)
    for values in cursor.fetchall():
        row = dict(zip(names, values, strict=True))
        when = next((str(row[name]) for name in _TIMES if row.get(name)), "")
        yield when, first, table, names, list(values)


def _played(rows: list[tuple[str, int, str, list[str], list[Any]]], random: Random) -> Iterator[tuple[str, Any]]:
    ends: list[tuple[str, Any]] = []
    for _, _, table, names, values in rows:
        row = dict(zip(names, values, strict=True))
        begun = dict(row)
        if table in ("runs", "workflows"):
            begun |= {name: "active" if name == "status" else None for name in ("status", "completed_at")}
        elif table == "steps" and random.random() < 0.3:
            begun |= {name: value for name, value in _BROKEN.items() if name in row}
        columns, marks = ", ".join(map(quoted, names)), ", ".join("?" * len(names))
        yield f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(begun.values())  # noqa: S608
        if begun != row:
            changed = [name for name in names if begun[name] != row[name]]
            sets = ", ".join(f"{quoted(name)} = ?" for name in changed)
            keys = [name for name in ("id", "run_id", "workflow_id", "superstep", "node_name") if name in names]
            where = " AND ".join(f"{quoted(name)} IS ?" for name in keys)
            update = f"UPDATE {table} SET {sets} WHERE {where}"  # noqa: S608
            statement = (update, (*(row[name] for name in changed), *(row[name] for name in keys)))
            if table == "steps" and random.random() < 0.5:
                yield statement
            else:
                ends.append(statement)
    yield from ends


_BROKEN: Final = {"status": "paused", "values_data": None, "completed_at": None}
