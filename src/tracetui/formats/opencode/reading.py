"""A session of a database and its sub-agents: read in pieces, and followed by the pages of their rows."""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf
from sqlite3 import Connection
from types import MappingProxyType
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.opencode.database import (
    MESSAGES_2,
    Database,
    Originals,
    is_stale,
    session_attributes,
    source_of,
    time_of,
)
from tracetui.formats.opencode.messages import Message, interpret
from tracetui.formats.opencode.records import (
    Info,
    Revert,
    rendered,
)
from tracetui.formats.opencode.runs import (
    FORK,
    Facts,
    RunSpans,
    Session,
    Tree,
    header_of_tree,
    run_body,
)
from tracetui.formats.rowlog import PAGE_BITS, Pages, RowLog
from tracetui.formats.sqlite import ReadState
from tracetui.model import Problem, RunRef, Span

# ---- a run, as far as there is time

PIECE_SECONDS: Final = 0.03
BATCH: Final = 64
"""Messages that are read together."""
LATEST: Final = 2
"""Messages at the end of a session that are read again at each look."""
MOST: Final = 10_000
"""Sessions of one run."""
KEPT: Final = 64
"""Messages at the end of a session whose facts are added up again at each look."""


class ReadMessage(msgspec.Struct, frozen=True):
    """A message that was read."""

    place: tuple[Any, ...]
    """Its id and time, which decide its place in the session."""
    check: int
    """A hash of its rows."""
    message: Message
    problems: tuple[Problem, ...]


class ReadSession(Session, kw_only=True):
    """A session as far as it was read; it grows."""

    messages: list[Message] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)
    read: list[ReadMessage] = msgspec.field(default_factory=list)
    keys: list[int] = msgspec.field(default_factory=list)
    """Of all of its messages, in their order."""
    at: dict[int, int] = msgspec.field(default_factory=dict)
    """By key: the index of a message that was read."""
    runs: set[int] = msgspec.field(default_factory=set)
    """Keys of messages that have not ended."""
    is_searched: bool = False
    """The sessions below it were looked for."""
    facts: Facts = msgspec.field(default_factory=Facts)
    """Of the first messages."""
    counted: int = 0
    """How many these are."""

    def put(self, key: int, one: ReadMessage) -> None:
        """Take in a message: the next one, or one that has changed."""
        index = self.at.setdefault(key, len(self.read))
        if index == len(self.read):
            self.read.append(one)
            self.messages.append(one.message)
            self.problems += one.problems
        else:
            self.read[index], self.messages[index] = one, one.message
            if index < self.counted:
                self.facts, self.counted = Facts(), 0
        (self.runs.add if one.message.runs else self.runs.discard)(key)

    def all_facts(self) -> Facts:
        """Those of all of its messages."""
        if len(self.messages) > self.counted + 2 * KEPT:
            last = len(self.messages) - KEPT
            self.facts = self.facts.add(self.info, self.messages[self.counted : last])
            self.counted = last
        return self.facts.add(self.info, self.messages[self.counted :])


class ReadRun(msgspec.Struct):
    """A run as far as it was read; it grows."""

    tree: Tree
    queue: list[Info]
    """Sessions of the run that were found."""
    above: set[str]
    """The run's own session and those above it."""
    log: RowLog = RowLog()
    spans: RunSpans | None = None
    done: bool = False

    @property
    def sessions(self) -> dict[str, Any]:
        """Those that were read."""
        return self.tree.sessions


class RunReader:
    """Reads the sessions of a run, in pieces of about `PIECE_SECONDS` if it `keeps` them to follow the run."""

    def __init__(self, database: Database, path: str, *, keeps: bool = False) -> None:
        self._database, self._path, self._keeps = database, path, keeps
        self._tables = database.tables() if keeps else {}
        self._deadline = time.monotonic() + PIECE_SECONDS if keeps else inf

    def read(self, root: Info, original: str | None) -> ReadRun:
        """The run of a session, as far as there is time."""
        run = ReadRun(Tree({}, original), [root], self._database.ancestors(root))
        self.read_on(run)
        return run

    def read_on(self, run: ReadRun) -> None:
        """Read the next piece."""
        self._read_queue(run)
        if run.spans is None:
            run.spans = RunSpans(run.tree)
        else:
            run.spans.take(run.tree)

    def _read_queue(self, run: ReadRun, earlier: Mapping[str, ReadSession] = MappingProxyType({})) -> None:
        """Read the sessions of its queue, without the messages that are known from `earlier`."""
        database, sessions = self._database, run.sessions
        run.done = True
        for info in run.queue:
            if len(sessions) >= MOST and info.id not in sessions:
                continue
            one = sessions.get(info.id)
            if one is None:
                if self._keeps:
                    run.log = run.log.add(database.connection, self._tables, [info.id])
                one = sessions[info.id] = ReadSession(info, keys=database.keys_of(info.id))
                known = earlier.get(info.id)
                self._read(one, {} if known is None else {key: known.read[index] for key, index in known.at.items()})
            else:
                self._read(one, {})
            if len(one.read) < len(one.keys):
                run.done = False
                break
            if not one.is_searched:
                tasks = [named for message in one.messages for named, _ in message.tasks]
                run.queue += [child for child in database.below(info, tasks) if child.id not in run.above]
                one.is_searched = True

    def _read(self, session: ReadSession, known: Mapping[int, ReadMessage]) -> None:
        """Read the messages of a session for which there is time."""
        start = count = len(session.read)
        while count < len(session.keys) and (count == start or time.monotonic() < self._deadline):
            batch = session.keys[count : count + BATCH]
            count += len(batch)
            fresh = dict(self.messages([key for key in batch if key not in known]))
            there = [(key, one) for key in batch if (one := known.get(key) or fresh.get(key)) is not None]
            if len(there) < len(batch):  # rows that went meanwhile
                gone = set(batch) - {key for key, _ in there}
                session.keys = [key for key in session.keys if key not in gone]
                count -= len(gone)
            for key, one in there:
                session.put(key, one)

    def messages(self, keys: Collection[int]) -> Iterator[tuple[int, ReadMessage]]:
        """Messages and their keys, in any order."""
        database = self._database
        rows = database.messages(keys)
        old = [row[1] for row in rows if row[0] >= 0 and row[1] is not None]
        below = database.parts("message_id IN ({keys})", old)
        for row in rows:
            parts = below.get(row[1], []) if row[0] >= 0 else []
            source, wrong = source_of(row, parts)
            problems = tuple([Problem(self._path, where, reason) for where, reason in wrong])
            check = hash((row, *parts)) if self._keeps else 0
            yield row[0], ReadMessage(row[1:3], check, interpret(source), problems)

    # ---- a run that was read to its end

    def follow(self, run: ReadRun, root: Info, original: str | None) -> tuple[ReadRun, list[Span] | None] | None:
        """The run as it is now, and the spans that came or changed; None for these if they are to be compared.

        None if the run must be read from its start.
        """
        database, sessions = self._database, run.sessions
        log, changes = run.log.look(database.connection, self._tables, sessions.keys())
        infos = {root.id: root} | {info.id: info for info in database.sessions("WHERE id IN ({keys})", sessions)}
        dirty = {
            ident: self._dirty(session, changes.get(ident, {}), run.log, log) for ident, session in sessions.items()
        }
        read: dict[str, dict[int, ReadMessage]] = {}
        for ident, keys in dirty.items():
            session, found = sessions[ident], dict(self.messages(keys or ()))
            for key, one in found.items():
                index = session.at.get(key)
                if index is None or session.read[index].check != one.check:
                    read.setdefault(ident, {})[key] = one
        below = database.sessions("WHERE parent_id IN ({keys})", sessions)
        named = {task for keys in read.values() for one in keys.values() for task, _ in one.message.tasks}
        if named - sessions.keys():
            below += database.sessions("WHERE id IN ({keys})", named)
        new = {child.id: child for child in below if child.id not in sessions and child.id not in run.above}
        is_same = infos.keys() >= sessions.keys() and original == run.tree.original and None not in dirty.values()
        is_same = is_same and all(_is_like(one.info, infos[ident]) for ident, one in sessions.items())
        is_same = is_same and all(_is_in_place(sessions, ident, keys) for ident, keys in read.items())
        added = {ident: self._added(sessions[ident], keys) for ident, keys in read.items()}
        is_same = is_same and None not in added.values()
        changed = {
            (ident, index): (sessions[ident].messages[index], one.message)
            for ident, keys in read.items()
            for key, one in keys.items()
            if (index := sessions[ident].at.get(key)) is not None
        }
        grown = {ident for ident, keys in added.items() if keys}
        if not is_same or not spans_of(run).can_change(changed, grown):
            return self._again(run, root, original, dirty), None
        run.log = log
        for ident, session in sessions.items():
            session.info = infos[ident]
            fresh, order = read.get(ident, {}), added.get(ident) or []
            session.keys += order
            for key in [*(key for key in fresh if key in session.at), *order]:
                session.put(key, fresh[key])
        if new:
            self._deadline = inf
            run.queue += new.values()
            self._read_queue(run)
        given = spans_of(run).change(run.tree, changed)
        return None if given is None else (run, given)

    def _dirty(
        self, session: ReadSession, changes: Mapping[str, set[int]], before: RowLog, now: RowLog
    ) -> set[int] | None:
        """The keys of messages that may have come or changed; None if that is unknown, or if any has gone."""
        database, ident = self._database, session.info.id
        keys = {*session.runs, *session.keys[-LATEST:]}
        for name, pages in changes.items():
            if has_lost(before.logs[name].pages, now.logs[name].pages, ident, pages):
                return None
            found = database.keys_in(name, ident, pages)
            keys |= found
            if name != "part":
                sign = -1 if name == MESSAGES_2 else 1
                here = {sign * (page << PAGE_BITS | low) for page in pages for low in range(1 << PAGE_BITS)}
                if any(key in session.at and key not in found for key in here):
                    return None
        return keys

    def _added(self, session: ReadSession, keys: Mapping[int, ReadMessage]) -> list[int] | None:
        """The keys of new messages in their order; None if these are not the last of the session."""
        new = {key for key in keys if key not in session.at}
        last = self._database.keys_of(session.info.id, len(new)) if new else []
        return last if set(last) == new else None

    def _again(self, run: ReadRun, root: Info, original: str | None, dirty: Mapping[str, set[int] | None]) -> ReadRun:
        """The run, put together again; only messages that may have changed are read."""
        earlier: dict[str, ReadSession] = {}
        for ident, session in run.sessions.items():
            keys = dirty[ident]
            again = set(session.keys) if keys is None else keys & session.at.keys()
            found = dict(self.messages(again))
            read = {key: session.read[index] for key, index in session.at.items() if key not in again or key in found}
            read |= {key: one for key, one in found.items() if one.check != read[key].check}
            earlier[ident] = ReadSession(
                session.info, read=list(read.values()), at={key: at for at, key in enumerate(read)}
            )
        self._deadline = inf
        later = ReadRun(Tree({}, original), [root], self._database.ancestors(root))
        before = run.spans
        self._read_queue(later, earlier)
        if (later.tree, list(later.sessions)) == (run.tree, list(run.sessions)):
            run.log = later.log
            return run
        later.spans = RunSpans(later.tree, before)
        later.spans.give()
        return later


def _is_in_place(sessions: Mapping[str, ReadSession], ident: str, keys: Mapping[int, ReadMessage]) -> bool:
    """Whether changed messages of a session have their place and no problems, and start no session that was read."""
    session = sessions[ident]
    known = [(session.read[session.at[key]], one) for key, one in keys.items() if key in session.at]
    tasks = [task for one in keys.values() for task, _ in one.message.tasks]
    return all(old.place == one.place and not (old.problems or one.problems) for old, one in known) and all(
        sessions[task].info.parent == ident for task in tasks if task in sessions
    )


def has_lost(before: Pages, now: Pages, ident: str, pages: Iterable[int]) -> bool:
    """Whether rows have gone: there are fewer than before and the new ones."""
    for page in pages:
        old, new = before.get((ident, page), (0, -1)), now.get((ident, page), (0, -1))
        if new[0] < old[0] or (old[0] and new[1] < old[1]):
            return True
    return False


def _is_like(old: Info, now: Info) -> bool:
    """Whether the session has the same place and the same parts as before."""
    names = ("parent", "revert", "fork", "store_key")
    if old.time.created != now.time.created or (old.revert != Revert() and old != now):
        return False
    forks = FORK.match(old.title) is None, FORK.match(now.title) is None
    return forks[0] == forks[1] and all(getattr(old, name) == getattr(now, name) for name in names)


def read(connection: Connection, path: str, before: ReadState | None, *, ref: RunRef) -> ReadState | None:
    """One session and its sub-agents now; of those that were read before, only rows that may have changed."""
    database = Database(connection)
    info = database.session(ref.key or "")
    if info is None:
        raise FormatError("the session is not in the database", f"session {ref.key}")
    run: ReadRun | None = before.memory if before is not None else None
    reader = RunReader(database, path, keeps=True)
    given: list[Span] | None = None
    if run is None:
        run = reader.read(info, Originals(database).of(info))
        spans_of(run).give()
    elif not run.done:
        reader.read_on(run)
        given = spans_of(run).give()
    else:
        followed = reader.follow(run, info, Originals(database).of(info))
        if followed is None:
            return None
        run, given = followed
    header, body = (before.header, before.body) if before is not None else (None, None)
    if run.done or header is None or body is None:
        facts = [session.all_facts() for session in run.sessions.values()]
        if run.done or header is None:
            tables = [table for table in database.session_tables if database.has(table, "time_updated")]
            times = [time_of(database.rows(f"SELECT max(time_updated) FROM {table}")[0][0]) for table in tables]
            latest = max((time for time in times if time is not None), default=None)
            header = header_of_tree(run.tree, stale=is_stale(info, latest), facts=facts)
        attributes = session_attributes(database, info, whole=True)
        body = run_body(run.tree, attributes, rendered(attributes), facts[0])
    return ReadState(
        spans=spans_of(run).spans,
        given=given,
        problems=run.tree.problems,
        header=header,
        body=body,
        done=run.done,
        memory=run,
        compared=run.log.behind == 0,
    )


def spans_of(run: ReadRun) -> RunSpans:
    run.spans = run.spans or RunSpans(run.tree)
    return run.spans
