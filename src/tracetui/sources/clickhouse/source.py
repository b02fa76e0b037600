"""A database as a source: a folder with the newest traces, each of them a file of its rows.

The connection to the server is read only, within limits. Only this module imports ``clickhouse_connect``.
"""

from __future__ import annotations

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from math import inf
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from tracetui.errors import NothingReadable
from tracetui.sources.base import (
    EVERYTHING,
    HEAD_SIZE,
    MOVING_SECONDS,
    BaseFile,
    Closable,
    Condition,
    EachError,
    Entry,
    File,
    Folder,
    LinkLost,
    Stat,
    reason_of,
)
from tracetui.sources.clickhouse import PASSWORD, Database, credentials, parse, sql
from tracetui.sources.clickhouse.sql import Bounds, Schema, Statement
from tracetui.sources.clickhouse.transport import AnswerTooLarge, BoundedPool, Redirected

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client as HttpClient


CONNECT_SECONDS: Final = 5
QUERY_SECONDS: Final = 30
"""The server ends a longer query."""
MAX_ROWS: Final = 500_000
"""Rows of an answer; the server refuses a larger one."""
MAX_BYTES: Final = 512 << 20
"""Bytes of an answer; the server refuses a larger one, and no more of it is read."""
LIMITS: Final = {
    "readonly": 2,
    "max_execution_time": QUERY_SECONDS,
    "max_result_rows": MAX_ROWS,
    "max_result_bytes": MAX_BYTES,
    "result_overflow_mode": "throw",
    "output_format_json_quote_64bit_integers": 0,
    "wait_end_of_query": 1,  # else an error that comes late would follow rows, with status 200
}
_CODE: Final = re.compile(r"\b[Cc]ode: (\d+)")
_STATUS: Final = re.compile(r"\bstatus[ :=]+(\d{3})\b")
_REFUSED: Final = {
    47: "its table has other columns than the OpenTelemetry exporter writes",
    60: "there is no such table; is it the database of the OpenTelemetry exporter?",
    81: "there is no such database; `SHOW DATABASES` lists them",
    158: "too many rows to read; narrow it with since: or a smaller --limit",
    159: f"the query took more than {QUERY_SECONDS} s; narrow it with since: or a smaller --limit",
    160: f"the query would take more than {QUERY_SECONDS} s; narrow it with since: or a smaller --limit",
    164: "its user may not set limits (readonly=1); give it readonly=2",
    241: "the server is out of memory for this query; narrow it with since: or a smaller --limit",
    396: f"the answer is larger than {MAX_ROWS:,} rows or {MAX_BYTES >> 20} MiB; narrow it with since:",
    497: "its user may not read the table; `GRANT SELECT` on it and on its _trace_id_ts",
}
"""Error codes of the server, in one sentence each."""
_TOO_LARGE: Final = 396
_NO_LOGIN: Final = frozenset({192, 193, 194, 516})
_TRANSIENT: Final = frozenset({159, 202, 209, 210, 241, 425})
"""Errors that may pass: too slow, too many queries, network, out of memory."""


class Refused(OSError):
    """The server refuses a query; the message says why, and the next step."""


class Client:
    """Sends queries to one server, from any thread. Connects on first use."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._client: HttpClient | None = None
        self._pool: BoundedPool | None = None
        self.received = 0
        """Bytes received."""

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
            pool, self._pool = self._pool, None
        if client is not None:
            client.close()
        if pool is not None:
            pool.clear()

    def query(self, statement: Statement) -> bytes:
        """Return the answer as lines of JSON. Raises `LinkLost` if trying again may help, else `Refused`."""
        client = self._connected()
        try:
            data: bytes = client.raw_query(
                statement.text, parameters=statement.values, settings=dict(LIMITS), fmt="JSONEachRow"
            )
        except Exception as error:  # of the client, of urllib3 below it, or of the socket
            raise self._explained(error) from None
        if data and not data.endswith(b"}\n"):
            raise self._explained(OSError(data[-4096:].decode(errors="replace")))
        self.received += len(data)
        return data

    def _connected(self) -> HttpClient:
        with self._lock:
            if self._client is None:
                try:
                    from clickhouse_connect import common, get_client
                except ImportError:
                    message = "reading ClickHouse needs a package; run `pip install 'tracetui[clickhouse]'`"
                    raise NothingReadable(message) from None
                common.set_setting("invalid_setting_action", "send")
                for name in ("clickhouse_connect", "urllib3"):  # they would write over the screen
                    logging.getLogger(name).addHandler(logging.NullHandler())
                    logging.getLogger(name).propagate = False
                database = self._database
                user, password = credentials(database)
                try:
                    self._pool = BoundedPool(
                        database.host,
                        database.port,
                        secure=database.secure,
                        most_bytes=MAX_BYTES,
                        seconds=QUERY_SECONDS + CONNECT_SECONDS,
                    )
                    self._client = get_client(
                        host=database.host,
                        port=database.port,
                        username=user,
                        password=password,
                        database="system",  # which every server has; statements name theirs
                        secure=database.secure,
                        verify=True,
                        compress="gzip",  # which is unpacked piece by piece
                        pool_mgr=self._pool,
                        connect_timeout=CONNECT_SECONDS,
                        send_receive_timeout=QUERY_SECONDS + CONNECT_SECONDS,
                        client_name="tracetui",
                        query_retries=0,
                        autogenerate_session_id=False,
                        form_encode_query_params=True,  # many ids are longer than the URLs that proxies accept
                    )
                except Exception as error:
                    raise self._explained(error) from None
            return self._client

    def _explained(self, error: Exception) -> OSError:
        """Return the error as a sentence. The client's own texts may quote the query and the login."""
        database, text = self._database, f"{error} {error.__cause__ or ''} {error.__context__ or ''}"
        if isinstance(error, Redirected):
            return Refused(f"{database.server} redirects to another address; name that one")
        if isinstance(error, AnswerTooLarge):
            return Refused(f"{database.server}/{database.name}: {_REFUSED[_TOO_LARGE]}")
        match = _CODE.search(text)
        code = int(match[1]) if match is not None else 0
        if code in _NO_LOGIN:
            user = credentials(database)[0]
            return Refused(
                f"{database.server} refuses the user {user!r}; set {PASSWORD}, or name another: "
                f"clickhouse://USER@{database.host}/{database.name}"
            )
        if code:
            reason = _REFUSED.get(code, f"ClickHouse error {code}; see the server's log")
            made = LinkLost if code in _TRANSIENT else Refused
            return made(f"{database.server}/{database.name}: {reason}")
        if "certificate" in text.lower():
            return Refused(f"{database.server} has no valid certificate; set SSL_CERT_FILE to that of its authority")
        if "SSLError" in text:
            return Refused(f"{database.server} doesn't speak TLS as expected; is it the HTTPS port of ClickHouse?")
        if (status := _STATUS.search(text)) is not None:
            return LinkLost(
                f"{database.server} answers with HTTP status {status[1]}; is it the HTTP port of ClickHouse?"
            )
        if "IncompleteRead" in text:
            return LinkLost(f"{database.server} sent half an answer")
        if isinstance(error, TimeoutError) or "timed out" in text.lower():
            return LinkLost(f"{database.server} doesn't answer in time")
        if "refused" in text.lower() or "NewConnection" in text or "NameResolution" in text:
            return LinkLost(f"can't reach {database.server}; is it the HTTP port of ClickHouse?")
        return LinkLost(f"{database.server} broke the connection ({type(error).__name__})")


FRESH_SECONDS: Final = 1.0
"""For so long a trace is not asked for again,"""
LIST_FRESH_SECONDS: Final = 2.0
"""nor the list; a list that takes long is rested from"""
LIST_REST: Final = 10
"""for this multiple of its duration. In between only traces of which spans ended lately are asked for: since"""
OVERLAP_NS: Final = 300 * 10**9
"""before the last end that was seen. What arrives later than that after its end is found when"""
WHOLE_LIST_SECONDS: Final = 60.0
"""the whole list is read again."""
LONGEST_NS: Final = 86_400 * 10**9
"""A span that is new lasts no longer than that, unless its trace is listed."""
WINDOWS: Final = (3600, 86_400, 30 * 86_400)
"""Seconds before the last span that are searched for the newest traces, one after the other, before all are."""
FIRST_BATCH: Final = 24
"""Traces that are read together first: a screenful,"""
BATCH: Final = 256
"""and then,"""
BATCH_SPANS: Final = 20_000
"""unless they have more spans."""
AHEAD_SECONDS: Final = 60.0
"""For so long a trace that was read along with others needs not be asked for again, nor does one"""
SETTLED_SECONDS: Final = 900.0
"""that ended so long ago, unless the list counts more spans."""
NEW_SPANS: Final = 1000
"""New spans that are read at once: their ids are parameters."""
MAX_SPANS: Final = 200_000
"""Spans of a trace that is read."""
SPAN_BYTES: Final = 1024
"""Estimated size of a row, for the size of a trace that was not read."""


_T = TypeVar("_T")


class _Column(msgspec.Struct):
    table: str
    name: str
    type: str


class _Trace(msgspec.Struct):
    trace: str = msgspec.field(name="TraceId")
    spans: int
    first: int
    last: int
    end: int
    error: str = ""
    """Of triage: the error,"""
    failed: bool = False
    """whether the root failed,"""
    alike: int = 0
    """and of how many traces with that error it did."""

    def merge(self, before: _Trace | None) -> _Trace:
        """These counts, or those of an earlier list where that saw more: each sees some time only."""
        if before is None:
            return self
        spans, end, last = (max(getattr(self, name), getattr(before, name)) for name in ("spans", "end", "last"))
        first = min(filter(None, (self.first, before.first)), default=0)
        return msgspec.structs.replace(self, spans=spans, first=first, last=last, end=end)


class _Id(msgspec.Struct):
    trace: str = msgspec.field(name="TraceId")


class _List:
    """The newest traces that may meet a condition."""

    def __init__(self) -> None:
        self.traces: dict[str, _Trace] = {}
        """Newest first."""
        self.read = -inf
        """When (monotonic) all of it was read."""


class _Span(msgspec.Struct):
    span: str = msgspec.field(name="SpanId")


class _Version(msgspec.Struct, frozen=True):
    trace: str = msgspec.field(name="TraceId")
    parts: int
    begin: int
    end: int


class ClickHouseSource(Closable):
    """Traces of one database; see `tracetui.sources.base.Source`. Used by several threads.

    Raises `LinkLost` while the server can't be reached or is too slow; just try again later.
    """

    def __init__(self, database: Database, *, limit: int) -> None:
        """`limit`: how many traces are listed."""
        self._database = database
        self._client = Client(database)
        self._limit = limit
        self._lock, self._listing, self._checking, self._showing = Lock(), Lock(), Lock(), Lock()
        self._schema: Schema | None = None
        self._wanted: tuple[Condition, ...] = (EVERYTHING,)
        """Conditions of the lists that are shown as one."""
        self._lists: dict[Condition, _List] = {}
        self._cache = RowCache()
        self._rows_listed: dict[str, tuple[int, bytes]] = {}
        """A trace as the list shows it, with the spans that it had then."""
        self._traces: Sequence[_Trace] = ()
        """The list, newest first."""
        self._counts: dict[str, int] = {}
        """Spans of the listed traces."""
        self._listed: tuple[tuple[Condition, ...], float] | None = None
        """The conditions of the list, and when (monotonic) it is outdated."""
        self._prefetched = False
        self._flights: dict[str, Event] = {}
        """Traces that are being read, and the event that is set afterwards."""

    @property
    def received(self) -> int:
        """Bytes received."""
        return self._client.received

    def connect(self) -> None:
        """Connect, and check the tables. Raises `NothingReadable` or `LinkLost`, one sentence each."""
        try:
            self._checked()
        except Refused as error:
            raise NothingReadable(str(error)) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def narrow(self, condition: Condition, *, beside: bool) -> None:
        """List the newest traces that may meet a condition, from the next list on; `beside` the newest of all."""
        self._wanted = tuple(dict.fromkeys((EVERYTHING, condition) if beside else (condition,)))

    def cost(self) -> tuple[int, int]:
        """Return how many runs are listed, and how many spans they have."""
        traces = self._newest()
        return len(traces), sum(trace.spans for trace in traces)

    def unlisted(self) -> dict[str, int]:
        """Return how many more runs failed with the error of a listed trace, by the path of its newest trace."""
        more: dict[str, int] = {}
        newest: dict[str, str] = {}
        for trace in self._traces:
            if trace.failed:
                path = newest.setdefault(trace.error, self._database.path(trace.trace))
                more[path] = more.get(path, trace.alike) - 1
        return {path: number for path, number in more.items() if number > 0}

    # ---- files

    def is_file(self, path: str) -> bool:
        """True if there is a trace at `path`."""
        below = parse(path)[1]
        return len(below) == 1 and (self._cache.has(below[0]) or bool(self._versions(below)))

    def is_folder(self, path: str) -> bool:
        """True for the database itself."""
        return "#" not in path and not parse(path)[1]

    def local_path(self, path: str) -> str | None:
        return None

    def prefetch(self, paths: Sequence[str]) -> None:
        """Begin to read the list and its first traces, once, while the caller does something else."""
        if not self._prefetched:
            self._prefetched = True
            Thread(target=self._prefetch, daemon=True).start()

    def _prefetch(self) -> None:
        with suppress(OSError, NothingReadable):  # whoever asks for it gets the error
            for first in self._newest()[:1]:
                self._listed_row(first.trace)

    def walk(self, root: str) -> Iterator[Entry]:
        try:
            yield from self.list(root).entries
        except LinkLost:
            raise
        except OSError as error:
            yield Entry(root, skipped=reason_of(error), failed=True)

    def list(self, path: str) -> Folder:
        below = parse(path)[1]
        traces = self._newest() if not below else [trace for trace in self._traces if [trace.trace] == below]
        if below and not traces:
            rows = self._rows(below[0])
            if not rows.data:
                raise FileNotFoundError(f"no trace {below[0]} in {self._database.folder}")
            traces = [_Trace(below[0], len(rows.spans), 0, 0, rows.ended_ns)]
        return Folder([self._entry(trace) for trace in traces], [])

    def open(self, path: str, stat: Stat | None = None) -> File:
        below = parse(path)[1]
        if not below:
            raise IsADirectoryError(f"not a trace: {path}")
        trace = below[0]
        listed = self._listed_row if stat is not None and trace in self._counts else None
        return RowsFile(path, trace, self._rows, stat if listed else None, listed)

    def _entry(self, trace: _Trace) -> Entry:
        stat = Stat(0, 0, trace.spans * SPAN_BYTES, max(0, trace.end))
        return Entry(self._database.path(trace.trace), stat, format="otlp")

    # ---- queries

    def _query(self, statement: Statement) -> bytes:
        return self._client.query(statement)

    def _checked(self) -> Schema:
        """Return the tables. Raises `Refused` if they are not the exporter's."""
        with self._checking:
            if self._schema is None:
                columns = _decoded(self._query(sql.columns(self._database)), _Column)
                types = {column.name: column.type for column in columns if column.table == self._database.table}
                if missing := [name for name in sql.COLUMNS if name not in types]:
                    table = f"{self._database.name}.{self._database.table}"
                    reason = f"has no column {missing[0]}" if types else "doesn't exist, or your user may not read it"
                    raise Refused(
                        f"table {table} {reason}; expected the table of the OpenTelemetry ClickHouse exporter "
                        f"(another name: clickhouse://{self._database.host}/DATABASE.TABLE)"
                    )
                typed = types["SpanAttributes"].startswith("JSON")
                self._schema = Schema(
                    self._database, typed, any(column.table != self._database.table for column in columns)
                )
            return self._schema

    def _newest(self) -> Sequence[_Trace]:
        """Return the newest traces that may meet one of the conditions, newest first."""
        with self._listing:
            wanted, began = self._wanted, time.monotonic()
            if self._listed is not None and self._listed[0] == wanted and began < self._listed[1]:
                return self._traces
            self._lists = {condition: self._lists.get(condition) or _List() for condition in wanted}
            by_id = {trace.trace: trace for condition in wanted for trace in self._search(condition)}
            ended = time.monotonic()
            self._traces = (
                sorted(by_id.values(), key=lambda trace: -trace.last) if len(wanted) > 1 else [*by_id.values()]
            )
            self._counts = {trace.trace: trace.spans for trace in self._traces}
            for name in [name for name in self._rows_listed if name not in self._counts]:
                self._rows_listed.pop(name, None)  # in place: another thread may be adding to it
            self._listed = wanted, ended + max(LIST_FRESH_SECONDS, LIST_REST * (ended - began))
            return self._traces

    def _search(self, condition: Condition) -> Sequence[_Trace]:
        """Return the newest traces that may meet a condition: all from the database, or only those that changed."""
        schema, known, began = self._checked(), self._lists[condition], time.monotonic()
        whole = isinstance(condition, EachError) or began - known.read >= WHOLE_LIST_SECONDS
        if whole or not known.traces:
            new = self._read_list(schema, condition)
            traces = [trace.merge(known.traces.get(trace.trace)) for trace in new]
            known.read = began
        else:
            last = min(time.time_ns(), max(trace.end for trace in known.traces.values()))  # a clock may be ahead
            ended = last - OVERLAP_NS
            active = (trace.first for trace in known.traces.values() if trace.end >= ended and trace.first)
            bound = max(0, min([ended - LONGEST_NS, *active]))
            new = _decoded(self._query(sql.changed(schema, self._limit, bound, ended, condition)), _Trace)
            traces = [trace.merge(known.traces.pop(trace.trace, None)) for trace in new]
            traces = sorted([*traces, *known.traces.values()], key=lambda trace: (-trace.last, trace.trace))
        known.traces = {trace.trace: trace for trace in traces[: self._limit]}
        return traces[: self._limit]

    def _read_list(self, schema: Schema, condition: Condition) -> Sequence[_Trace]:
        traces: Sequence[_Trace] = ()
        # with a condition, what meets it may be older than the window
        for window in (*WINDOWS, 0) if condition == EVERYTHING else (0,):
            traces = _decoded(self._query(sql.newest(schema, self._limit, window, condition)), _Trace)
            if len(traces) >= self._limit:
                break
        return traces

    def _listed_row(self, trace: str) -> bytes:
        """Return a trace as the list shows it; read along with the next ones."""
        spans = self._counts.get(trace, 0)
        _check_count(spans)
        row = self._rows_listed.get(trace)
        if row is None or row[0] != spans:
            with self._showing:
                row = self._rows_listed.get(trace)
                if row is None or row[0] != spans:
                    self._read_listed(trace)
                    row = self._rows_listed.get(trace)
        if row is None:
            raise FileNotFoundError(f"no trace {trace} in {self._database.folder}")
        return row[1]

    def _read_listed(self, trace: str) -> None:
        traces, before = self._traces, self._rows_listed
        at = next((i for i, listed in enumerate(traces) if listed.trace == trace), len(traces))
        counts = {
            listed.trace: listed.spans
            for listed in traces[at : at + (FIRST_BATCH if at < FIRST_BATCH else BATCH)]
            if listed.spans <= MAX_SPANS and before.get(listed.trace, (0, b""))[0] != listed.spans
        } or {trace: self._counts.get(trace, 0)}
        for line in filter(None, self._query(sql.listed(self._checked(), [*counts])).split(b"\n")):
            name = _decoded(line, _Id)[0].trace
            if name in counts:
                before[name] = counts[name], b'{"Listed":' + line + b"}"

    def _versions(self, traces: Sequence[str]) -> dict[str, _Version]:
        """Return the state of each existing trace."""
        versions = _decoded(self._query(sql.versions(self._checked(), traces)), _Version)
        return {version.trace: version for version in versions}

    def _rows(self, trace: str, *, ahead: bool = False) -> Rows:
        """Return the rows of a trace, with those that arrived since it was read. `ahead`: prefetch it."""
        rows = self._cache.of(trace)
        if not rows.data:
            self._read(trace)
            rows = self._cache.of(trace)
            rows.ahead &= ahead
            return rows
        with rows.lock:
            settled = time.time() - rows.ended_ns / 1e9 > SETTLED_SECONDS
            has_all = self._counts.get(trace, 0) <= len(rows.spans)
            fresh = AHEAD_SECONDS if has_all and (rows.ahead or settled) else FRESH_SECONDS
            if time.monotonic() - rows.checked >= fresh:
                self._read_new(trace, rows)
            rows.ahead &= ahead
        return rows

    def _read(self, trace: str) -> None:
        """Read a trace, along with the next ones of the list; wait if another thread is reading it."""
        with self._lock:
            flight = self._flights.get(trace)
        if flight is not None:
            flight.wait()
            if self._cache.has(trace):
                return
        wanted, done = self._batch(trace), Event()
        with self._lock:
            self._flights.update(dict.fromkeys(wanted, done))
        try:
            versions = self._versions(wanted)
            for name, lines in by_trace(self._fetched(wanted, versions.values())):
                rows = self._cache.of(name)
                if not rows.data:
                    rows.add(lines)
                    rows.version, rows.checked = versions.get(name), time.monotonic()
                    self._cache.keep(name, rows)
        finally:
            with self._lock:
                for name in wanted:
                    self._flights.pop(name, None)
            done.set()

    def _batch(self, trace: str) -> Sequence[str]:
        traces = self._traces
        at = next((i for i, listed in enumerate(traces) if listed.trace == trace), None)
        if at is None:
            return [trace]
        _check_count(traces[at].spans)
        most = FIRST_BATCH if at < FIRST_BATCH else BATCH
        missing = [
            (listed.trace, listed.spans) for listed in traces[at : at + most] if not self._cache.has(listed.trace)
        ]
        return batches(missing, BATCH_SPANS)

    def _fetched(self, traces: Sequence[str], versions: Collection[_Version]) -> bytes:
        """Return all rows of some traces."""
        if not versions:
            return b""
        limit = MAX_SPANS + 1 if len(traces) == 1 else MAX_ROWS
        data = self._query(sql.rows(self._checked(), traces, limit, _bounds(versions)))
        if len(traces) == 1:
            _check_count(data.count(b"\n"))
        return data

    def _read_new(self, trace: str, rows: Rows) -> None:
        """Read the spans that came since the last time, however early they began."""
        schema, version = self._checked(), self._versions([trace]).get(trace)
        if version is not None and version != rows.version:
            bounds = _bounds([version])
            spans = _decoded(self._query(sql.spans(schema, trace, MAX_SPANS + 1, bounds)), _Span)
            _check_count(len(spans))
            new = sorted({span.span for span in spans} - rows.spans)
            for at in range(0, len(new), NEW_SPANS):
                rows.add(self._query(sql.rows(schema, [trace], MAX_ROWS, bounds, new[at : at + NEW_SPANS])))
                self._cache.keep(trace, rows)
            rows.version = version
        rows.checked = time.monotonic()


def _bounds(versions: Collection[_Version]) -> Bounds:
    return min(version.begin for version in versions), max(version.end for version in versions)


def _check_count(spans: int) -> None:
    if spans > MAX_SPANS:
        raise OSError(f"not read: a trace of more than {MAX_SPANS:,} spans")


_NO_ANSWER: Final = "the server answers something else than was asked for; is it ClickHouse?"


def _decoded(data: bytes, kind: type[_T]) -> list[_T]:
    """Return the rows of an answer. Raises `LinkLost` if it is none."""
    try:
        return msgspec.json.Decoder(kind, strict=False).decode_lines(data)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise LinkLost(_NO_ANSWER) from None


# ---- rows of traces, as files that only grow


CACHE_BYTES: Final = 64 << 20
"""Rows in memory, but for those of the traces that are being read."""
_LINE: Final = re.compile(
    rb'^\{"TraceId":"((?:[^"\\]|\\.)*)","SpanId":"((?:[^"\\]|\\.)*)","EndNs":"(-?\d{1,19})"', re.M
)


class Rows:
    """The rows of one trace as lines of JSON, in order of arrival."""

    __slots__ = ("ahead", "arrived", "checked", "data", "ended_ns", "generation", "lock", "moving", "spans", "version")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        """Another one than before if the rows were dropped in between: then their order may differ."""
        self.data = b""
        self.spans: set[str] = set()
        """Ids of the spans."""
        self.version: Any = None
        """The state of the trace in the store when it was read."""
        self.ahead = True
        """It was prefetched with other traces, and isn't used yet."""
        self.checked = 0.0
        """When (monotonic) the store was asked last for new spans."""
        self.arrived = 0
        """When the last spans came, in nanoseconds since the epoch."""
        self.ended_ns = 0
        """The last end of a span."""
        self.moving = False
        """Spans came while it was watched."""
        self.lock = Lock()

    def add(self, data: bytes) -> None:
        """Append rows."""
        self.moving = bool(self.data)
        self.data += data
        self.arrived = time.time_ns()
        for match in _LINE.finditer(data):
            self.spans.add(text_of(match[2]))
            self.ended_ns = max(self.ended_ns, int(match[3]))

    @property
    def stat(self) -> Stat:
        """The version of the file. Its time is the last end of a span."""
        return Stat(0, self.generation, len(self.data), self.ended_ns, self.arrived)


def text_of(escaped: bytes) -> str:
    """Decode the inside of a JSON string. Raises `LinkLost` if it is none."""
    try:
        text: str = msgspec.json.decode(b'"' + escaped + b'"')
    except (ValueError, msgspec.MsgspecError):
        raise LinkLost(_NO_ANSWER) from None
    return text


def by_trace(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the rows of each trace; those of one trace must follow each other."""
    begin, trace = 0, b""
    for match in _LINE.finditer(data):
        if match[1] != trace:
            if match.start() > begin:
                yield text_of(trace), data[begin : match.start()]
            begin, trace = match.start(), match[1]
    if begin < len(data):
        yield text_of(trace), data[begin:]


class RowCache:
    """Rows of the traces that were read last."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._lock = Lock()
        self._rows: OrderedDict[str, Rows] = OrderedDict()
        self._generation = 0

    def of(self, trace: str) -> Rows:
        """Return the rows of a trace; empty ones that are not in the cache yet if it has none."""
        with self._lock:
            rows = self._rows.get(trace)
            if rows is not None:
                self._rows.move_to_end(trace)
                return rows
            self._generation += 1
            return Rows(self._generation)

    def has(self, trace: str) -> bool:
        """Whether rows of a trace are cached."""
        with self._lock:
            return trace in self._rows

    def keep(self, trace: str, rows: Rows) -> None:
        """Cache rows that were read, or have grown."""
        with self._lock:
            self._rows[trace] = rows
            self._rows.move_to_end(trace)
            size = sum(len(cached.data) for cached in self._rows.values())
            while size > self._limit and len(self._rows) > 1:
                size -= len(self._rows.popitem(last=False)[1].data)


class RowsFile(BaseFile):
    """One trace; see `tracetui.sources.base.File`. It is as it was when it was opened.

    If it was opened to be listed, its head is the row of the trace in the list: ``{"Listed": …}``.
    """

    __slots__ = ("_data", "_listed", "_moving", "_rows", "_trace")

    def __init__(
        self,
        path: str,
        trace: str,
        rows: Callable[[str], Rows],
        stat: Stat | None = None,
        listed: Callable[[str], bytes] | None = None,
    ) -> None:
        """`rows` returns the current rows of a trace, `listed` its row in the list, `stat` is that of the list.

        Both functions raise `OSError`.
        """
        super().__init__(path, stat)
        self._trace = trace
        self._rows = rows
        self._listed = listed
        self._data: bytes | None = None
        self._moving = False

    @property
    def name(self) -> str:
        return self._trace

    def _loaded(self) -> bytes:
        if self._data is None:
            rows = self._rows(self.name)
            self._data, self._stat, self._moving = rows.data, rows.stat, rows.moving
        return self._data

    def _find_stat(self) -> Stat:
        self._loaded()
        assert self._stat is not None
        return self._stat

    @property
    def moving(self) -> bool:
        changed = self.stat.mtime
        if self._moving:
            changed = max(changed, self.stat.ctime_ns / 1e9)
        return time.time() - changed < MOVING_SECONDS

    @property
    def head(self) -> bytes:
        if self._listed is not None:
            return self._listed(self.name)
        return self._loaded()[:HEAD_SIZE]

    def read(self, offset: int, size: int) -> bytes:
        return self._loaded()[offset : offset + size]

    def read_all(self) -> bytes:
        return self._loaded()

    @property
    def tables(self) -> frozenset[str]:
        return frozenset()


def batches(traces: Sequence[tuple[str, int]], most_spans: int) -> list[str]:
    """Return the first of some traces (id, spans), at least one, that have so many spans together."""
    chosen: list[str] = []
    remaining = most_spans
    for trace, spans in traces:
        remaining -= spans
        if chosen and remaining < 0:
            break
        chosen.append(trace)
    return chosen
