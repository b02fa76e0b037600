"""Runs that are rows of an SQLite database: read in pieces, and followed while rows come and change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from operator import attrgetter
from sqlite3 import Connection, Error
from time import monotonic
from typing import Any, ClassVar, Final, TypeVar

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span, Status, StatusSource
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import SQLITE_MAGIC, File
from tracetui.sources.sqlite import is_passing, version_of

_Row = TypeVar("_Row")
REST_SECONDS: Final = 0.5
"""How often early rows are compared while the database doesn't change."""
BUSY_SECONDS: Final = 2.0
"""How long the next piece of a run waits for a database that is busy; after that it is a failure."""
BUSY_MS: Final = 10
"""How long SQLite itself waits for a lock before it reports a busy database."""
IN_CHUNK: Final = 400
"""Values in one ``IN (…)``: some builds of SQLite take 999 at most."""
PIECE_SECONDS: Final = 0.03
"""How long one read of rows may take."""
STALE_SECONDS: Final = 15 * 60.0
"""A run without an end is over if another one of its database changed so long after its last change."""


class ReadState(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run as far as it was read."""

    spans: Sequence[Span] = ()
    """In order. One that is the same object as before has not changed, nor has its body."""
    problems: Sequence[Problem] = ()
    header: Header | None = None
    body: RunBody | None = None
    done: bool = True
    """False: there is more to read."""
    memory: Any = None
    """Data for the next read; immutable, because a failed read must not change it."""
    given: Sequence[Span] | None = None
    """Those of the spans that are new or have changed, after all siblings; None: `spans` are compared."""
    held: Sequence[Span] | None = None
    """Those of the spans that the next read compares with; None: all. The others stay as they are."""
    compared: bool = True
    """False: rows that were read may have changed. They are compared bit by bit, even without another change."""

    def compact(self) -> ReadState:
        """The same for the next read."""
        return self if self.held is None else replace(self, spans=self.held)


class DatabaseReader:
    """The `Reader` of a run of a database.

    `read` gets a connection (one state of the database for all statements), the path, and the last state; it returns
    None if the run must be read from its start again. While the database has not changed it is not asked.
    """

    def __init__(self, read: Callable[[Connection, str, ReadState | None], ReadState | None]) -> None:
        self._read = read
        self._last_state: ReadState | None = None
        self._version: object = None
        """The version of the database that was read, if its state is of one version."""
        self._read_at = -inf
        self._waits_since = inf

    def more(self, file: File) -> Chunk:
        before = self._last_state
        try:
            with file.database() as connection:
                connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
                connection.execute("BEGIN")  # closing ends it
                version = version_of(connection)
                rests = before is not None and self._version == version is not None
                if before is not None and rests and (before.compared or monotonic() < self._read_at + REST_SECONDS):
                    return Chunk()
                state, chunk = self._advance(connection, file.path)
        except (Error, OSError) as error:
            if before is None or not is_passing(error) or (not before.done and self._has_waited()):
                raise
            return Chunk(done=before.done)  # keep the last state
        self._waits_since = inf
        whole = state.done and (before is None or before.done)  # else its pieces may be of several versions
        self._last_state = state.compact()
        self._version, self._read_at = version if whole else None, monotonic()
        return chunk

    def _has_waited(self) -> bool:
        """Whether a run that is partly read has waited for `BUSY_SECONDS`."""
        self._waits_since = min(self._waits_since, monotonic())
        return monotonic() >= self._waits_since + BUSY_SECONDS

    def _advance(self, connection: Connection, path: str) -> tuple[ReadState, Chunk]:
        """The current state, and what is new in it."""
        before = self._last_state
        state = self._read(connection, path, before)
        if state is not None:
            chunk = chunk_of(before, state)
            if not chunk.reset or before is None or before.held is None:
                return state, chunk
        state = self._read(connection, path, None)  # a reset needs the spans that are not held, too
        if state is None:
            raise FormatError("the run cannot be read from its start")
        return state, replace(chunk_of(None, state), reset=before is not None)


class CountedRun:
    """A run of a database that the list counts again as it grows."""

    def __init__(self, ref: RunRef) -> None:
        self._ref = ref
        self._builder = RunBuilder(ref, lambda span: Body())
        self._state: ReadState | None = None

    def count(
        self, connection: Connection, read: Callable[[Connection, str, ReadState | None], ReadState | None]
    ) -> RunBuilder:
        """Read on to the end; `read` as in `DatabaseReader`. Raises `FormatError`."""
        while True:
            state = read(connection, self._ref.path, self._state)
            chunk = Chunk() if state is None else chunk_of(self._state, state)
            if state is None or chunk.reset:
                self._builder, self._state = RunBuilder(self._ref, lambda span: Body()), None
                continue
            self._builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
            self._state = state.compact()
            if state.done:
                return self._builder

    @property
    def memory(self) -> Any:
        """`ReadState.memory` of the last read."""
        return None if self._state is None else self._state.memory


class KindReader:
    """The `Reader` of a run in a file of one of several kinds: `kind_of` decides, `readers` read each."""

    def __init__(self, kind_of: Callable[[File], Hashable], readers: Mapping[Any, Callable[[], Reader]]) -> None:
        self._kind_of, self._readers = kind_of, readers
        self._kind: Hashable = None
        self._reader: Reader | None = None

    def more(self, file: File) -> Chunk:
        kind = self._kind_of(file)
        if self._reader is not None and kind == self._kind:
            return self._reader.more(file)
        reader = self._readers[kind]()
        chunk = reader.more(file)
        if self._reader is not None:
            chunk = msgspec.structs.replace(chunk, reset=True)
        self._kind, self._reader = kind, reader
        return chunk


def is_database(file: File) -> bool:
    """Whether `file` is an SQLite database."""
    return file.read(0, len(SQLITE_MAGIC)) == SQLITE_MAGIC


def chunk_of(before: ReadState | None, now: ReadState) -> Chunk:
    """The changes from `before` to `now`; all of `now` if a span or problem was removed or a span moved."""
    given = None if before is None else now.given if now.given is not None else changed(before.spans, now.spans)
    reported = () if before is None else before.problems
    reset = before is not None and (given is None or list(now.problems[: len(reported)]) != list(reported))
    if before is None or reset:
        before, given, reported = ReadState(), None, ()
    return Chunk(
        spans=now.spans if given is None else given,
        header=None if now.header == before.header else now.header,
        body=None if now.body == before.body else now.body,
        problems=now.problems[len(reported) :],
        reset=reset,
        done=now.done,
    )


def changed(before: Sequence[Span], now: Sequence[Span]) -> Sequence[Span] | None:
    """The spans of `now` that are not the same object in `before`; None if a span was removed or moved.

    `before` with these spans, new ones after their siblings, equals `now`.
    """
    pairs = enumerate(zip(before, now, strict=False))
    same = next((index for index, (old, new) in pairs if old is not new), min(len(before), len(now)))
    before, now = before[same:], now[same:]
    ranks = {span.id: (rank, span) for rank, span in enumerate(before)}
    given: list[Span] = []
    last: dict[str | None, int] = {}
    remaining = len(ranks)
    for span in now:
        rank, old = ranks.get(span.id, (len(ranks), None))
        if old is not span:
            given.append(span)
        if rank < last.get(span.parent_id, 0) or (old is not None and old.parent_id != span.parent_id):
            return None
        remaining -= old is not None
        last[span.parent_id] = rank
    return None if remaining else given


def as_before(before: Sequence[Span], now: Iterable[Span]) -> list[Span]:
    """The spans of `now`, as the objects of `before` where they are equal, as `ReadState` has them."""
    known = {span.id: span for span in before}
    pairs = ((known.get(span.id), span) for span in now)
    return [old if old is not None and old == span else span for old, span in pairs]


# ---- statements


class Tables:
    """Tables of a database whose columns may be missing. Raises `FormatError` if one of `needed` (by table) is."""

    def __init__(self, connection: Connection, needed: Mapping[str, Collection[str]], *others: str) -> None:
        self.connection = connection
        self.columns = {
            table: [str(row[1]) for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]
            for table in (*needed, *others)
        }
        for table, names in needed.items():
            if missing := {*names}.difference(self.columns[table]):
                raise FormatError(f"the table `{table}` has no columns {', '.join(sorted(missing))}")

    def select(self, table: str, *names: str) -> str:
        """The columns of those names, NULL for missing ones."""
        return ", ".join(name if name in self.columns[table] else "NULL" for name in names)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return self.connection.execute(sql, values).fetchall()

    def count(self, rows: str) -> int:
        """The number of rows, of a statement from the name of the table on."""
        ((count,),) = self.rows(f"SELECT count(*) FROM {rows}")  # noqa: S608
        return int(count)

    def records(self, sql: str, *values: Any) -> Iterator[dict[str, Any]]:
        """The rows of a statement, by column."""
        cursor = self.connection.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)

    def record(self, sql: str, *values: Any) -> dict[str, Any] | None:
        """The first row of a statement, by column; None if there is none."""
        return next(self.records(sql, *values), None)


class Row(msgspec.Struct, frozen=True):
    """A row of a run, or the reason why its `value` is not read; `stamp` differs if the row was changed."""

    stamp: Any
    value: Any
    problem: Problem | None
    size: int
    unknown: dict[str, int] = {}


Loading = tuple[Mapping[int, Any], Callable[[Sequence[int]], Iterable[tuple[int, Any]]]]
"""The stamp of each row of a run in a table, in order, by rowid; what reads rows, which have an attribute `stamp`."""


class RunTables(Tables):
    """Tables with runs, each with a key: the frame of a format that needs no more than these."""

    NEEDED: ClassVar[Mapping[str, Collection[str]]]
    """Columns by table, without which no run can be read."""
    OTHERS: ClassVar[Collection[str]] = ()
    """Tables that may be missing."""
    BATCH: ClassVar[int] = 200
    """Rows that are read at a time."""

    def __init__(self, connection: Connection, key: str | None = None) -> None:
        """Only the run with that `key` is asked for, if there is one."""
        super().__init__(connection, self.NEEDED, *self.OTHERS)
        self.key = key
        self.cache: dict[str, Any] = {}
        """What `loading` keeps between reads of a run."""

    def unlisted(self, path: str) -> Iterable[Problem]:
        """Rows that no run shows, and what is left out of all runs."""
        raise NotImplementedError

    def run_keys(self) -> Iterable[str]:
        """The keys of all runs, in order."""
        raise NotImplementedError

    def header(self, key: str) -> Header:
        """The header of a run for the list stage."""
        raise NotImplementedError

    def loading(self, key: str, path: str) -> Iterable[Loading]:
        """How the rows of a run are read, by table. Raises `FormatError` if there is no run with that key."""
        raise NotImplementedError

    def run(self, key: str, path: str, *rows: dict[int, Any]) -> ReadState:
        """A run, of all of its rows: by table, in the order of `loading`."""
        raise NotImplementedError

    def body(self, span: Span) -> Body:
        """The body of a span. Raises `FormatError` if its rows are not there any more."""
        raise NotImplementedError

    def state(self, key: str, path: str, before: ReadState | None, *, seconds: float | None) -> ReadState:
        """A run now, as far as it is read in so many seconds; rows that were read before are compared by stamps."""
        deadline = inf if seconds is None else monotonic() + seconds
        known, self.cache = ((), {}) if before is None else before.memory
        tables: list[dict[int, Any]] = []
        done = True
        for number, (stamps, load) in enumerate(self.loading(key, path)):
            old = known[number] if known else {}
            rows, is_whole = renewed(old, stamps, attrgetter("stamp"), load, deadline=deadline, batch=self.BATCH)
            tables.append(rows)
            done &= is_whole
        memory = tables, self.cache
        if not done:
            return replace(before or ReadState(header=self.header(key)), done=False, memory=memory)
        state = self.run(key, path, *tables)
        spans = as_before(() if before is None else before.spans, state.spans)
        return replace(state, spans=spans, memory=memory)


class DatabaseFormat:
    """The frame of a format whose runs are in `RunTables`."""

    name: str
    tables: ClassVar[type[RunTables]]
    names: ClassVar[frozenset[str]]
    """Tables that each database has."""

    def sniff(self, file: File) -> int:
        return CERTAIN if file.head.startswith(SQLITE_MAGIC) and file.tables >= self.names else NO

    def summarize(self, file: File, *, deep: bool) -> Iterator[RunSummary | Problem]:
        with file.database() as connection:
            connection.execute("BEGIN")  # one state of it for all statements; closing ends it
            tables = self.tables(connection)
            yield from tables.unlisted(file.path)
            facts: Any = {"modified_at": file.stat.mtime, "moving": file.moving}
            for key in tables.run_keys():
                ref = RunRef(self.name, file.path, key)
                if not deep:
                    yield summary_of(ref, tables.header(key), None, **facts)
                    continue
                state = tables.state(key, file.path, None, seconds=None)
                builder = RunBuilder(ref, lambda span: Body())
                builder.add(state.spans, header=state.header, problems=state.problems)
                yield builder.summary(**facts)

    def open(self, file: File, ref: RunRef) -> Reader:
        return DatabaseReader(partial(self._read, ref.key or ""))

    def _read(self, key: str, connection: Connection, path: str, before: ReadState | None) -> ReadState:
        return self.tables(connection, key).state(key, path, before, seconds=PIECE_SECONDS)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        if span.at is None:
            return Body()
        with file.database() as connection:
            return self.tables(connection, ref.key).body(span)


class Outcome(msgspec.Struct, frozen=True):
    """How a run, or a part of one, ended; no `status`: nothing says that it did."""

    status: Status | None = None
    source: StatusSource | None = None
    word: str | None = None

    def unless_stale(self, changed_at: float | None, latest: float) -> Outcome:
        """The outcome of a run: one without an end is over if it is stale (`is_stale`)."""
        if self.status is not None or not is_stale(changed_at, latest):
            return self
        return replace(self, status=Status.UNKNOWN, source=StatusSource.DERIVED)

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of `Header` that say it."""
        ended = self.status is not None
        return {"status": self.status, "status_word": self.word, "status_source": self.source, "ended": ended}


def is_stale(changed_at: float | None, latest: float) -> bool:
    """Whether another run of the database continued, to `latest` (seconds), for long after the last change of one."""
    return changed_at is not None and changed_at < latest - STALE_SECONDS


def many(connection: Connection, sql: str, keys: Iterable[Any], *more: Any) -> Iterator[tuple[Any, ...]]:
    """Rows of a statement whose ``{keys}`` is filled with up to `IN_CHUNK` keys at a time; `more` are values after."""
    waiting = list(keys)
    for start in range(0, len(waiting), IN_CHUNK):
        part = waiting[start : start + IN_CHUNK]
        yield from connection.execute(sql.format(keys=", ".join("?" * len(part))), [*part, *more]).fetchall()


def renewed(
    known: Mapping[int, _Row],
    stamps: Mapping[int, Any],
    stamp_of: Callable[[_Row], Any],
    load: Callable[[Sequence[int]], Iterable[tuple[int, _Row]]],
    *,
    deadline: float,
    batch: int,
) -> tuple[dict[int, _Row], bool]:
    """Rows by rowid, in the order of `stamps`: `known` ones whose stamp is the same, others loaded until `deadline` (of
    `monotonic`), at least one batch. And whether these are all.
    """
    rows = {rowid: row for rowid, row in known.items() if stamps.get(rowid) == stamp_of(row)}
    wanted, start = [rowid for rowid in stamps if rowid not in rows], 0
    while start < len(wanted) and (not start or monotonic() < deadline):
        rows.update(load(wanted[start : start + batch]))
        start += batch
    return {rowid: rows[rowid] for rowid in stamps if rowid in rows}, start >= len(wanted)


def quoted(name: str) -> str:
    """Quote an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
