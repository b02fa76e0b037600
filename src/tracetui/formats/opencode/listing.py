"""The list of the sessions of a database: those that were counted are counted again by their new rows."""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.formats.opencode.database import MESSAGES_2, Database, Originals, is_stale, time_of
from tracetui.formats.opencode.reading import RunReader, read, spans_of
from tracetui.formats.opencode.records import Info
from tracetui.formats.opencode.runs import STALE_MS, header_of, header_of_tree, runs_of
from tracetui.formats.rowlog import RowLog, rows_in
from tracetui.formats.scalars import word
from tracetui.formats.sqlite import CountedRun
from tracetui.model import Body, Problem, RunRef, RunSummary
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import CACHE, File

# ---- the list

Revision = tuple[Any, ...]
"""Changes when a session gets rows, or a session below it."""


class CachedSummary(msgspec.Struct, frozen=True):
    """A run that was counted, with all of its sessions."""

    sessions: tuple[str, ...]
    revision: Revision
    summary: RunSummary


def summarize(file: File, name: str, *, deep: bool) -> Iterator[RunSummary | Problem]:
    """Every session that is no sub-agent of another one."""
    with file.database() as connection:
        connection.execute("BEGIN")  # one state of it for all statements; closing ends it
        database = Database(connection)
        infos = database.sessions()
        cache: dict[str, Any] | None = file.memo.get(CACHE) if deep else None
        counting = Counting() if cache is None else cache.setdefault(_COUNTING, Counting())
        if cache is not None:
            counting.look(database)
        yield from _unlisted(database, file.path, counting, deep=deep)
        runs, circular = runs_of(infos)
        for info in circular:
            yield Problem(file.path, f"session {info.id}", "parents form a cycle; listed as a run")
        latest = max((info.time.updated or 0 for info in infos), default=0)
        originals = Originals(database, runs)
        revisions = {} if cache is None else _revisions(database, infos, counting)
        modified_at, moving = file.stat.mtime, file.moving
        for ident in counting.followed.keys() - {info.id for info in infos if info.id not in revisions}:
            del counting.followed[ident]
        for info in runs:
            stale, original = is_stale(info, latest), originals.find(info)
            cached = cache.get(info.id) if cache is not None else None
            if cached is not None and cached.revision == (*map(revisions.get, cached.sessions), original, stale):
                yield replace(cached.summary, modified_at=modified_at)
                continue
            ref = RunRef(name, file.path, info.id)
            if not deep:
                header = header_of(info, originals.leading(info), originals.last(info), stale=stale, original=original)
                yield summary_of(ref, header, None, modified_at=modified_at, moving=moving)
                continue
            follower = counting.followed.get(info.id)
            has_room = cache is not None and len(counting.followed) < FOLLOWED
            if follower is not None or (has_room and info.id not in revisions):  # it goes on
                follower = follower or CountedRun(ref)
                built = follower.count(connection, partial(read, ref=ref))
                counting.followed[info.id] = follower
                yield built.summary(modified_at=modified_at, moving=moving)
                continue
            run = RunReader(database, file.path).read(info, original)
            builder, header = RunBuilder(ref, lambda span: Body()), header_of_tree(run.tree, stale=stale)
            builder.add(spans_of(run).spans, header=header, problems=run.tree.problems)
            summary = builder.summary(modified_at=modified_at, moving=moving)
            if cache is not None and header.status is not None and run.tree.sessions.keys() <= revisions.keys():
                revision = (*map(revisions.get, run.tree.sessions), original, stale)
                cache[info.id] = CachedSummary(tuple(run.tree.sessions), revision, summary)
            yield summary


_COUNTING: Final = "opencode counting"
FOLLOWED: Final = 16
"""Runs that the list holds to count their new rows."""


class Counting(msgspec.Struct):
    """What the list has counted in a database."""

    log: RowLog = RowLog()
    revisions: dict[Any, int] = {}
    """By session: how often its rows have changed."""
    followed: dict[str, CountedRun] = {}
    """Runs that go on."""
    lost: dict[str, int] = {}
    """By table: rows that belong to nothing."""
    is_recounted: bool = True
    """Early rows may have changed: all are counted again."""

    def look(self, database: Database) -> None:
        """Look for changes of all rows."""
        before = self.log.logs
        self.log, changes = self.log.look(database.connection, database.tables())
        self.is_recounted = before.keys() != self.log.logs.keys()
        for ident, by_table in changes.items():
            self.revisions[ident] = self.revisions.get(ident, 0) + 1
            for name, pages in by_table.items():
                is_early = min(pages) < self.first(name)
                self.is_recounted |= is_early or self.log.logs[name].has_lost(before[name], ident, pages)

    def first(self, table: str) -> int:
        """The first of the latest pages of a table."""
        return self.log.logs[table].tail if table in self.log.logs else 0


def _revisions(database: Database, infos: Sequence[Info], counting: Counting) -> dict[str, Revision]:
    """The revisions of all sessions except recently changed ones, whose parts may change without new rows."""
    old = database.has("message", "time_updated") and database.has("part", "session_id")
    new = database.has_new and database.has(MESSAGES_2, "time_updated")
    if old is not database.has_old or new is not database.has_new:
        return {}
    changed_at: dict[str, float] = {}
    for table in ("message", MESSAGES_2):
        log = counting.log.logs.get(table)
        for (ident, _), sums in log.pages.items() if log is not None else ():
            if ident and database.table_of(ident) == table:
                changed_at[ident] = max(changed_at.get(ident, 0), time_of(sums[3]) or 0)
    below: dict[str | None, list[str]] = {}
    for info in infos:
        below.setdefault(info.parent, []).append(info.id)
    updated = {info.id: max(info.time.updated or 0, changed_at.get(info.id, 0)) for info in infos}
    latest = max(updated.values(), default=0)
    return {
        info.id: (info, counting.revisions.get(info.id, 0), below.get(info.id))
        for info in infos
        if updated[info.id] < latest - STALE_MS
    }


def _unlisted(database: Database, path: str, counting: Counting, *, deep: bool) -> Iterator[Problem]:
    """Rows that no run shows."""
    for table in database.session_tables:
        idents = [ident for (ident,) in database.rows(f"SELECT id FROM {table}")]
        lost = sum(word(ident) is None for ident in idents)
        if lost:
            yield Problem(path, table, f"{lost} rows have no id")
    if database.has_old and not database.has_parts:
        yield Problem(path, "part", "no columns message_id, data: message parts can't be read")
    if not deep:
        return
    for table, key, above in (("part", "message_id", ["message"]), ("message", "session_id", database.session_tables)):
        if database.has(table, key) and (table != "part" or database.has_parts) and database.has_old:
            yield from _lost(database, path, counting, table, key, above)
    if database.has_new:
        yield from _lost(database, path, counting, MESSAGES_2, "session_id", database.session_tables)
    elif database.has(MESSAGES_2, "session_id"):
        sessions = "SELECT session_id FROM message WHERE session_id NOT NULL"
        ((unread,),) = database.rows(f"SELECT count(*) FROM {MESSAGES_2} WHERE session_id NOT IN ({sessions})")
        if unread:
            yield Problem(path, MESSAGES_2, f"{unread} rows are the only ones of their sessions, and not read")


def _lost(
    database: Database, path: str, counting: Counting, table: str, key: str, above: Sequence[str]
) -> Iterator[Problem]:
    """The rows of a table whose `key` is in none of the tables above it."""
    first = 0 if counting.is_recounted or counting.lost.get(table) else rows_in(counting.first(table)).start
    if first > 0:  # of few rows, each is looked for
        known = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {name} WHERE id = {table}.{key})" for name in above)
    else:
        known = " AND ".join(f"{key} NOT IN (SELECT id FROM {name} WHERE id NOT NULL)" for name in above)
    sql = f"SELECT count(*) FROM {table} WHERE ({key} IS NULL OR ({known})) AND rowid >= {first}"
    ((lost,),) = database.rows(sql if first > 0 else sql.removesuffix(f" AND rowid >= {first}"))
    counting.lost[table] = lost
    if lost:
        yield Problem(path, table, f"{lost} rows belong to no {'message' if table == 'part' else 'session'}")
