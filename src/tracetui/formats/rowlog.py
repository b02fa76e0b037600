"""Changes of the rows of a growing SQLite database, for the same cost however many rows there are.

Rows are summed up by page of row numbers. A look compares the pages to which rows come: the latest ones of the runs
that are followed, and all from the end of the table at the last look on. Of earlier pages it compares a few, over and
over.
"""

# ruff: noqa: S608 - every name in a statement comes from a format, which writes its own

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.formats.sqlite import many
from tracetui.sources.sqlite import version_of

PAGE_BITS: Final = 7
"""Bits of a row number below its page: a page is compared as a unit."""
LATEST: Final = 2
"""Pages at the end that are compared at each look."""
FEW: Final = 8
"""Earlier pages that are all compared at each look. Of more:"""
SWEPT: Final = 1
"""Earlier pages that are compared at each look when the database has changed."""
SWEPT_AT_REST: Final = 16
"""The same when it has not changed again."""

Pages = dict[tuple[Any, int], tuple[Any, ...]]
"""By run and page: sums over their rows."""
Changes = dict[Any, dict[str, set[int]]]
"""By run and table: the pages with other sums than before."""


class Table(msgspec.Struct, frozen=True):
    """A table with rows of runs, in SQL."""

    source: str
    run: str
    """The id of the run of a row."""
    sums: str
    """Aggregates that differ when a row has come, changed or gone."""
    rowid: str = "rowid"

    def select(self, *, indexed: bool = False) -> str:
        """The sums, by the index of runs or else by the numbers of rows; the condition is to be added."""
        run = self.run if indexed else f"+{self.run}"
        return f"SELECT {run}, {self.rowid} >> {PAGE_BITS}, {self.sums} FROM {self.source}"


class Log(msgspec.Struct, frozen=True):
    """The sums of one table."""

    pages: Pages
    end: int
    """The last page of the table."""
    swept: int = 0
    """The page up to which earlier ones were compared last; they are compared from the end to the start."""

    @property
    def tail(self) -> int:
        """The first of the latest pages of the table."""
        return self.end - LATEST + 1

    def has_lost(self, before: Log, run: Any, pages: Iterable[int]) -> bool:
        """Whether rows of a run in some pages have gone: there are fewer than `before` and the new ones.

        The first sums of the table are the number of rows and the largest row number.
        """
        for page in pages:
            old, new = before.pages.get((run, page), (0, -1)), self.pages.get((run, page), (0, -1))
            if new[0] < old[0] or (old[0] and new[1] < old[1]):
                return True
        return False

    @property
    def latest(self) -> int:
        """The first of the latest pages with rows of the runs."""
        return max((page for _, page in self.pages), default=0) - LATEST + 1


class RowLog(msgspec.Struct, frozen=True):
    """The rows of some runs as they were at the last look. A look makes a new one: it may fail."""

    logs: Mapping[str, Log] = {}
    version: object = None
    """Of the database."""
    behind: int = 0
    """Earlier pages that are not compared since the database changed."""

    def look(
        self, connection: Connection, tables: Mapping[str, Table], runs: Collection[Any] | None = None
    ) -> tuple[RowLog, Changes]:
        """The log as it is now, and the changes; of `runs` or of all. The first look at a table finds no changes."""
        version = version_of(connection)
        rests = version is not None and version == self.version
        number = SWEPT_AT_REST if rests else SWEPT
        logs: dict[str, Log] = {}
        changes: Changes = {}
        behind = 0
        for name, table in tables.items():
            log = self.logs.get(name)
            if log is None:
                logs[name] = Log(_all(connection, table, runs), _end(connection, table))
                continue
            logs[name], early = _look(connection, table, runs, log, number, changes, name)
            behind = max(behind, early)
        remaining = max(0, (self.behind if rests else behind) - number)
        return RowLog(logs, version, remaining), changes

    def add(self, connection: Connection, tables: Mapping[str, Table], runs: Collection[Any]) -> RowLog:
        """The log with more runs."""
        logs = dict(self.logs)
        for name, table in tables.items():
            log = logs.get(name) or Log({}, _end(connection, table))
            logs[name] = msgspec.structs.replace(log, pages=log.pages | _all(connection, table, runs))
        return msgspec.structs.replace(self, logs=logs)


def rows_in(page: int) -> range:
    """The row numbers of a page."""
    return range(page << PAGE_BITS, (page + 1) << PAGE_BITS)


def _end(connection: Connection, table: Table) -> int:
    """The last page of a table."""
    (last,) = connection.execute(f"SELECT max({table.rowid}) FROM {table.source}").fetchone()
    return (last or 0) >> PAGE_BITS


def _all(connection: Connection, table: Table, runs: Collection[Any] | None) -> Pages:
    if runs is None:
        rows: Iterator[tuple[Any, ...]] = connection.execute(f"{table.select()} GROUP BY 1, 2")
    else:
        rows = many(connection, f"{table.select(indexed=True)} WHERE {table.run} IN ({{keys}}) GROUP BY 1, 2", runs)
    return {(run, page): tuple(sums) for run, page, *sums in rows}


def _look(
    connection: Connection,
    table: Table,
    runs: Collection[Any] | None,
    log: Log,
    number: int,
    changes: Changes,
    name: str,
) -> tuple[Log, int]:
    """The log of a table as it is now, and the number of its early pages."""
    known = sorted({page for _, page in log.pages})
    early = max(0, len(known) - LATEST)
    top = min(early, bisect_left(known, log.swept)) or early
    bottom = max(0, top - number)
    if early <= FEW:
        top, bottom = early, 0
    pages = {*known[bottom:top], *known[early:]}
    now = dict[tuple[Any, int], tuple[Any, ...]]()
    end = log.tail
    for low, high in (*_ranges(sorted(page for page in pages if page < end)), (end, None)):
        rows = _between(connection, table, runs, low, high)
        now |= {(run, page): tuple(sums) for run, page, *sums in rows}
    pages.update(known[bisect_left(known, end) :])
    before = log.pages
    later = before | now
    if pages:
        for key in [key for key in before if key[1] in pages and key not in now]:
            del later[key]
            changes.setdefault(key[0], {}).setdefault(name, set()).add(key[1])
    for key, sums in now.items():
        if before.get(key) != sums:
            changes.setdefault(key[0], {}).setdefault(name, set()).add(key[1])
    return Log(later, _end(connection, table), known[bottom] if known and bottom else 0), 0 if early <= FEW else early


def _ranges(pages: Iterable[int]) -> list[tuple[int, int]]:
    """The pages, in order, as ranges without their ends."""
    ranges: list[tuple[int, int]] = []
    for page in pages:
        first = ranges.pop()[0] if ranges and ranges[-1][1] == page else page
        ranges.append((first, page + 1))
    return ranges


def _between(
    connection: Connection, table: Table, runs: Collection[Any] | None, low: int, high: int | None
) -> Iterator[tuple[Any, ...]]:
    """Sums of the rows in a range of pages."""
    until = "" if high is None else f" AND {table.rowid} < {high << PAGE_BITS}"
    sql = f"{table.select()} WHERE {table.rowid} >= {low << PAGE_BITS}{until}"
    if runs is None:
        yield from connection.execute(f"{sql} GROUP BY 1, 2")
    else:
        yield from many(connection, f"{sql} AND +{table.run} IN ({{keys}}) GROUP BY 1, 2", runs)
