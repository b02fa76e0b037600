"""The rows of traces, as files that only grow: a late span comes at the end, wherever it belongs in time."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, Final

import msgspec

from tracetui.sources.base import HEAD_SIZE, MOVING_SECONDS, Closable, File, Folder, Stat

CACHE_BYTES: Final = 64 << 20
"""Rows in memory, but for those of the traces that are being read."""
_LINE: Final = re.compile(rb'^\{"TraceId":"((?:[^"\\]|\\.)*)","SpanId":"((?:[^"\\]|\\.)*)","EndNs":"(-?\d+)"', re.M)


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
    """Decode the inside of a JSON string."""
    text: str = msgspec.json.decode(b'"' + escaped + b'"')
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
        self._size = 0
        self._generation = 0

    def of(self, trace: str) -> Rows:
        """Return the rows of a trace; empty ones that are not in the cache yet if it has none."""
        with self._lock:
            found = self._rows.get(trace)
            if found is not None:
                self._rows.move_to_end(trace)
                return found
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
            size = sum(len(one.data) for one in self._rows.values())
            while size > self._limit and len(self._rows) > 1:
                size -= len(self._rows.popitem(last=False)[1].data)


class RowsFile(Closable):
    """One trace; see `tracetui.sources.base.File`. It is as it was when it was opened.

    If it was opened to be listed, its head is the row of the trace in the list: ``{"Listed": …}``.
    """

    __slots__ = ("_data", "_listed", "_moving", "_rows", "_stat", "memo", "name", "path")

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
        self.path, self.name = path, trace
        self.memo: dict[str, Any] = {}
        self._rows = rows
        self._listed = listed
        self._data: bytes | None = None
        self._stat = stat
        self._moving = False

    def _loaded(self) -> bytes:
        if self._data is None:
            rows = self._rows(self.name)
            self._data, self._stat, self._moving = rows.data, rows.stat, rows.moving
        return self._data

    @property
    def stat(self) -> Stat:
        if self._stat is None:
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

    def next_data(self, offset: int) -> int:
        return offset

    def sibling(self, name: str) -> str | None:
        return None

    def folder(self, path: str = "") -> Folder:
        return Folder()

    def other(self, path: str, stat: Stat | None = None) -> File:
        raise FileNotFoundError(f"a trace in ClickHouse has no other files: {path}")

    @property
    def tables(self) -> frozenset[str]:
        return frozenset()

    def database(self) -> Any:
        raise OSError("not a SQLite database")

    def close(self) -> None:
        return


def batches(traces: Sequence[tuple[str, int]], most_spans: int) -> list[str]:
    """Return the first of some traces (id, spans), at least one, that have so many spans together."""
    chosen: list[str] = []
    left = most_spans
    for trace, spans in traces:
        left -= spans
        if chosen and left < 0:
            break
        chosen.append(trace)
    return chosen
