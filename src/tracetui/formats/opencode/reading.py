"""A session of a database and its sub-agents: read in pieces, and followed by the pages of their rows."""

# ruff: noqa: S608 - every name in a statement is one of our own

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from sqlite3 import Connection
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.bodies import rendered
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
from tracetui.formats.opencode.records import Info, Revert
from tracetui.formats.opencode.runs import FORK, Facts, RunSpans, Session, Tree, header_of_tree, run_body
from tracetui.formats.rowlog import RowLog, rows_in
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

    def put(self, key: int, read: ReadMessage) -> None:
        """Take in a message: the next one, or one that has changed."""
        index = self.at.setdefault(key, len(self.read))
        if index == len(self.read):
            self.read.append(read)
            self.messages.append(read.message)
            self.problems += read.problems
        else:
            self.read[index], self.messages[index] = read, read.message
            if index < self.counted:
                self.facts, self.counted = Facts(), 0
        (self.runs.add if read.message.runs else self.runs.discard)(key)

    def differs(self, key: int, message: ReadMessage) -> bool:
        """Whether a message is new or has changed."""
        index = self.at.get(key)
        return index is None or self.read[index].check != message.check

    def take(self, messages: Mapping[int, ReadMessage], order: Sequence[int]) -> None:
        """Take in messages that have changed, and the new ones of `order` at the end."""
        self.keys += order
        for key in [*(key for key in messages if key in self.at), *order]:
            self.put(key, messages[key])

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
    earlier: Mapping[str, ReadSession] = {}
    """Its sessions when it was read last: messages that have not changed are the same objects."""
    later: ReadRun | None = None
    """The run as it is read from its start once more, because it has changed in a way that cannot be followed."""

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

    def read(self, root: Info, original: str | None, before: ReadRun | None = None) -> ReadRun:
        """The run of a session, as far as there is time; `before` is the run when it was read last."""
        run = ReadRun(Tree({}, original), [root], self._database.ancestors(root))
        if before is not None:
            run.earlier = before.sessions
        run.spans = RunSpans(run.tree, None if before is None else before.spans)
        self.read_next(run)
        return run

    def read_next(self, run: ReadRun) -> None:
        """Read the next piece."""
        self._read_queue(run)
        spans_of(run).take(run.tree)

    def _read_queue(self, run: ReadRun) -> None:
        """Read the sessions of its queue."""
        database, sessions = self._database, run.sessions
        run.done = True
        for info in run.queue:
            if len(sessions) >= MOST and info.id not in sessions:
                continue
            session = sessions.get(info.id)
            if session is None:
                if self._keeps:
                    run.log = run.log.add(database.connection, self._tables, [info.id])
                session = sessions[info.id] = ReadSession(info, keys=database.keys_of(info.id))
            self._read(session, run.earlier.get(info.id))
            if len(session.read) < len(session.keys):
                run.done = False
                break
            if not session.is_searched:
                tasks = [named for message in session.messages for named, _ in message.tasks]
                run.queue += [child for child in database.children(info, tasks) if child.id not in run.above]
                session.is_searched = True

    def _read(self, session: ReadSession, before: ReadSession | None) -> None:
        """Read the messages of a session for which there is time."""
        start = count = len(session.read)
        while count < len(session.keys) and (count == start or time.monotonic() < self._deadline):
            batch = session.keys[count : count + BATCH]
            messages = dict(self.messages(batch))
            if gone := set(batch) - messages.keys():  # rows that went meanwhile
                session.keys = [key for key in session.keys if key not in gone]
            count += len(messages)
            for key in batch:
                if key in messages:
                    is_same = before is not None and not before.differs(key, messages[key])
                    session.put(key, before.read[before.at[key]] if before and is_same else messages[key])

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

    def follow(self, run: ReadRun, root: Info, original: str | None) -> list[Span] | None:
        """Take in what has come or changed, and return these spans; None if the run must be read from its start."""
        database, sessions = self._database, run.sessions
        log, changes = run.log.look(database.connection, self._tables, sessions.keys())
        infos = {root.id: root} | {info.id: info for info in database.sessions("WHERE id IN ({keys})", sessions)}
        if infos.keys() < sessions.keys() or original != run.tree.original:
            return None
        fresh: dict[str, dict[int, ReadMessage]] = {}
        order: dict[str, list[int]] = {}
        for ident, session in sessions.items():
            keys = self._dirty(session, changes.get(ident, {}), run.log, log)
            if keys is None or not _is_like(session.info, infos[ident]):
                return None
            messages = {key: message for key, message in self.messages(keys) if session.differs(key, message)}
            last = self._added(session, messages)
            if last is None or not _is_in_place(sessions, ident, messages):
                return None
            if messages:
                fresh[ident], order[ident] = messages, last
        changed = {
            (ident, index): (sessions[ident].messages[index], read.message)
            for ident, messages in fresh.items()
            for key, read in messages.items()
            if (index := sessions[ident].at.get(key)) is not None
        }
        named = {task for messages in fresh.values() for read in messages.values() for task, _ in read.message.tasks}
        if not spans_of(run).can_change(changed, {ident for ident, keys in order.items() if keys}, named):
            return None
        new = self._new_sessions(run, named)
        run.log = log
        for ident, session in sessions.items():
            session.info = infos[ident]
            session.take(fresh.get(ident, {}), order.get(ident, []))
        if new:
            self._deadline = inf
            run.queue += new
            self._read_queue(run)
        given = spans_of(run).change(run.tree, changed)
        if given is None:
            run.spans = None  # neither as they were nor as they are
        return given

    def _new_sessions(self, run: ReadRun, named: Collection[str]) -> list[Info]:
        """Sessions below those of the run that it does not have yet, also the `named` ones."""
        database, sessions = self._database, run.sessions
        below = database.sessions("WHERE parent_id IN ({keys})", sessions)
        if {*named} - sessions.keys():
            below += database.sessions("WHERE id IN ({keys})", named)
        new = {info.id: info for info in below if info.id not in sessions and info.id not in run.above}
        return list(new.values())

    def _dirty(
        self, session: ReadSession, changes: Mapping[str, set[int]], before: RowLog, now: RowLog
    ) -> set[int] | None:
        """The keys of messages that may have come or changed; None if that is unknown, or if any has gone."""
        database, ident = self._database, session.info.id
        keys = {*session.runs, *session.keys[-LATEST:]}
        for name, pages in changes.items():
            if now.logs[name].has_lost(before.logs[name], ident, pages):
                return None
            changed_keys = database.keys_in(name, ident, pages)
            keys |= changed_keys
            if name != "part":
                sign = -1 if name == MESSAGES_2 else 1
                here = {sign * row for page in pages for row in rows_in(page)}
                if any(key in session.at and key not in changed_keys for key in here):
                    return None
        return keys

    def _added(self, session: ReadSession, keys: Mapping[int, ReadMessage]) -> list[int] | None:
        """The keys of new messages in their order; None if these are not the last of the session."""
        new = {key for key in keys if key not in session.at}
        last = self._database.keys_of(session.info.id, len(new)) if new else []
        return last if set(last) == new else None


def _is_in_place(sessions: Mapping[str, ReadSession], ident: str, keys: Mapping[int, ReadMessage]) -> bool:
    """Whether changed messages of a session have their place and no problems, and start no session that was read."""
    session = sessions[ident]
    known = [(session.read[session.at[key]], new) for key, new in keys.items() if key in session.at]
    tasks = [task for new in keys.values() for task, _ in new.message.tasks]
    return all(old.place == new.place and not (old.problems or new.problems) for old, new in known) and all(
        sessions[task].info.parent == ident for task in tasks if task in sessions
    )


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
        run = reader.read(info, Originals(database).find(info))
        spans_of(run).give()
    elif not run.done:
        reader.read_next(run)
        given = spans_of(run).give()
    elif run.later is not None:
        reader.read_next(run.later)
    else:
        original = Originals(database).find(info)
        given = reader.follow(run, info, original)
        if given is None and run.spans is None:
            return None
        if given is None:
            run.later = reader.read(info, original, run)
    if run.later is not None and before is not None:
        if not run.later.done:  # the run stays as it was until then
            return replace(before, given=(), done=False)
        run = run.later
        spans_of(run).before, run.earlier = None, {}
        spans_of(run).give()
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
