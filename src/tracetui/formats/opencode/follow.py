"""What came to a session of ``opencode.db`` and its sub-agents since it was read.

opencode writes a part again whenever something about it changes, and the time with it. So the times of the parts of
each message, summed up by the database, tell which messages must be read again. Times are in milliseconds: the last
messages of a session are read again in any case.
"""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

import time
from collections.abc import Iterable
from operator import is_
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.formats.opencode.records import Info
from tracetui.formats.opencode.rows import (
    Schema,
    has_parts,
    message_of,
    message_rows,
    part_rows,
    sessions,
)
from tracetui.formats.opencode.session import Memory, Session, Teller, Tree
from tracetui.formats.opencode.session import changed as changed_spans
from tracetui.formats.opencode.spans import Told, tell
from tracetui.model import Problem, Span

PIECE_SECONDS: Final = 0.03
BATCH: Final = 64
"""Messages that are read together."""
LATEST: Final = 2
"""Messages at the end of a session that are read again whenever anything came."""
MOST: Final = 10_000
"""Sessions of one run."""

Stamp = tuple[Any, ...]


class Held(msgspec.Struct, frozen=True):
    """A message as it was read."""

    stamp: Stamp
    check: int
    """A hash of its rows."""
    told: Told
    problems: tuple[Problem, ...] = ()


class Known(msgspec.Struct, frozen=True):
    """All that is known of a run, and what of it the last read gave."""

    tree: Tree
    held: dict[str, dict[int, Held]]
    """By session, by row of the message."""
    memory: Memory
    spans: list[Span]
    given: list[Span]
    problems: list[Problem]
    """Those that are new."""
    reset: bool = False
    done: bool = True


def read_on(
    connection: Connection,
    schema: Schema,
    path: str,
    info: Info,
    before: Known | None,
    *,
    original: str | None = None,
    pieces: bool = False,
) -> Known:
    """The run of session `info`; in `pieces` of about `PIECE_SECONDS` each, to be followed then."""
    reader = _Reader(connection, schema, path, before, keeps=pieces)
    tree = Tree(reader.sessions(info), original)
    if before is not None and _is_same(tree, before.tree):
        return msgspec.structs.replace(before, held=reader.held, given=[], problems=[], reset=False, done=reader.done)
    teller = Teller(tree, before.memory if before is not None else Memory())
    given: list[Span] | None = teller.spans
    problems = tree.problems
    reset = False
    if before is not None:
        known = before.tree.problems
        given = changed_spans(before.spans, teller.spans)
        reset = given is None or problems[: len(known)] != known
        problems = problems if reset else problems[len(known) :]
    return Known(
        tree=tree,
        held=reader.held,
        memory=teller.memory,
        spans=teller.spans,
        given=teller.spans if reset or given is None else given,
        problems=problems,
        reset=reset,
        done=reader.done,
    )


def _is_same(tree: Tree, before: Tree) -> bool:
    """Whether nothing came: each message is the same object, for its body may be another one where it is but equal."""
    if tree.original != before.original or list(tree.sessions) != list(before.sessions):
        return False
    for now, then in zip(tree.sessions.values(), before.sessions.values(), strict=True):
        if (now.info, now.problems, len(now.told)) != (then.info, then.problems, len(then.told)):
            return False
        if not all(map(is_, now.told, then.told)):
            return False
    return True


class _Reader:
    """Reads sessions, as far as they are not known."""

    def __init__(self, connection: Connection, schema: Schema, path: str, before: Known | None, *, keeps: bool) -> None:
        self._connection, self._schema, self._path = connection, schema, path
        self._before = before.held if before is not None else {}
        self._keeps = keeps
        self._began = time.monotonic()
        self.held: dict[str, dict[int, Held]] = {}
        self.done = True

    def sessions(self, root: Info) -> dict[str, Session]:
        """The sessions of a run, each after the one that started it."""
        above = self._ancestors(root)
        found: dict[str, Session] = {}
        queue = [root]
        for info in queue:
            if info.id in found or len(found) >= MOST:
                continue
            found[info.id] = one = self._session(info)
            tasks = [named for told in one.told for named, _ in told.tasks]
            queue += [child for child in self._below(info, tasks) if child.id not in above]
        return found

    def _ancestors(self, root: Info) -> set[str]:
        above = {root.id}
        parent = root.parent
        while parent is not None and parent not in above:
            above.add(parent)
            rows = sessions(self._connection, self._schema, "WHERE id IN ({keys})", [parent])
            parent = rows[0].parent if rows else None
        return above

    def _below(self, info: Info, tasks: Iterable[str]) -> list[Info]:
        """The sessions that a session started: they name it as their parent, or a call of it names them."""
        found: list[Info] = []
        if self._schema.has("session", "parent_id"):
            found = sessions(self._connection, self._schema, "WHERE parent_id IN ({keys})", [info.id])
        named = dict.fromkeys(tasks).keys() - {one.id for one in found}
        if named:
            found += sessions(self._connection, self._schema, "WHERE id IN ({keys})", sorted(named))
        return found

    def _session(self, info: Info) -> Session:
        """A session with those of its messages for which there was time."""
        stamps = self._stamps(info)
        before = self._before.get(info.id, {})
        latest = set(list(stamps)[-LATEST:])
        wanted = [
            rowid
            for rowid, stamp in stamps.items()
            if rowid in latest or (known := before.get(rowid)) is None or known.stamp != stamp
        ]
        there = {rowid: one for rowid, one in before.items() if rowid in stamps}
        now = time.monotonic()
        deadline = now + max(PIECE_SECONDS, now - self._began)  # what all pieces cost again must not be most of it
        for start in range(0, len(wanted), BATCH):
            if start and self._keeps and time.monotonic() >= deadline:
                self.done = False
                break
            for rowid, one in self._read(wanted[start : start + BATCH], stamps):
                old = before.get(rowid)
                same = old is not None and old.check == one.check
                there[rowid] = msgspec.structs.replace(old, stamp=one.stamp) if old is not None and same else one
        self.held[info.id] = there
        held = [there[rowid] for rowid in stamps if rowid in there]
        return Session(info, tuple(one.told for one in held), tuple(p for one in held for p in one.problems))

    def _stamps(self, info: Info) -> dict[int, Stamp]:
        """By message, in their order: numbers that are others when anything of it has changed, for who keeps them."""
        connection, schema = self._connection, self._schema
        sql = (
            f"SELECT rowid, id, {schema.stamp('message')} FROM message WHERE session_id = ?"
            f" ORDER BY {schema.order('message')}"
        )
        rows = connection.execute(sql, (info.id,)).fetchall()
        if not (self._keeps and has_parts(schema)):
            return {rowid: (stamp,) for rowid, _, stamp in rows}
        stamp = schema.stamp("part")
        sql = (
            f"SELECT message_id, count(*), total(rowid), total({stamp}), max({stamp}) FROM part"
            " WHERE message_id IN (SELECT id FROM message WHERE session_id = ?) GROUP BY message_id"
        )
        sums = {key: tuple(found) for key, *found in connection.execute(sql, (info.id,)).fetchall()}
        return {rowid: (stamp, *sums.get(key, ())) for rowid, key, stamp in rows}

    def _read(self, rowids: list[int], stamps: dict[int, Stamp]) -> list[tuple[int, Held]]:
        rows = message_rows(self._connection, self._schema, "rowid IN ({keys})", rowids)
        parts = part_rows(self._connection, self._schema, [row[1] for row in rows if row[1] is not None])
        found = []
        for row in rows:
            own = parts.get(row[1], [])
            message, wrong = message_of(row, own)
            problems = tuple(Problem(self._path, where, reason) for where, reason in wrong)
            check = hash((row, *own)) if self._keeps else 0
            found.append((row[0], Held(stamps[row[0]], check, tell(message), problems)))
        return found
