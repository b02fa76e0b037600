"""Sessions as runs: turns begin with a prompt, sub-agents are below the call that started them, forks copy messages."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf, isclose
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.formats.opencode.messages import RUNNING, Message, Outcome, SpanRef, seconds, since
from tracetui.formats.opencode.records import Info, Record
from tracetui.formats.scalars import folder_of, task_key
from tracetui.formats.schema import Unknown, unknown_fields
from tracetui.formats.sqlite import changed
from tracetui.model import (
    COPIED,
    PREVIEW,
    Header,
    Operation,
    Problem,
    RunBody,
    Span,
    Status,
    StatusSource,
    Total,
    Usage,
)

REVERTED: Final = "reverted"
FORK: Final = re.compile(r"^(.*) \(fork #(\d{1,6})\)$", re.DOTALL)
"""How opencode names a fork; a fork of a fork has the next number."""


class Session(msgspec.Struct):
    """One session with its messages, in their order."""

    info: Info
    messages: Sequence[Message] = ()
    problems: Sequence[Problem] = ()


class Tree(msgspec.Struct, frozen=True):
    """The sessions of a run: its own first, each other one after the session that started it."""

    sessions: dict[str, Session]
    original: str | None = None
    """The session that this one was forked from."""

    @property
    def root(self) -> Session:
        """The run's own session."""
        return next(iter(self.sessions.values()))

    @property
    def problems(self) -> list[Problem]:
        """Problems of all of them."""
        return [problem for session in self.sessions.values() for problem in session.problems]


class Placement(msgspec.Struct, frozen=True):
    """Parent, step and flags of a message's spans."""

    parent: str | None
    step: int | None = None
    copied: bool = False
    reverted: bool = False
    reverted_from: str = ""
    """The part from which on they were reverted."""
    settled: bool = False
    """A later response follows: no call in it runs any more."""


class Turn(msgspec.Struct):
    """A prompt and its responses."""

    prompt: Message
    placement: Placement
    position: int
    """Of its span in the list."""
    response: Message | None = None
    """The last one."""
    idle: Message | None = None
    """The note of opencode 2 that the turn has ended."""
    settled: bool = False
    """A later response follows, of another turn perhaps."""


KEPT: Final = 32
"""Messages at the end of a run whose effects on its spans can be undone."""


class _Taken(msgspec.Struct):
    """A message that was taken, or the begin of a session; and all that undoes it."""

    session: _SessionSpans
    length: int
    """Spans before it."""
    state: dict[str, Any] | None
    """Of the session; None at its begin."""
    turns: list[tuple[Turn, Turn]] = []
    """Those that it changed, as they were."""
    started: list[str] = []
    """Sub-agents that it started."""


class RunSpans:
    """The spans of a run, in order. Unchanged spans are the same objects as in `before`."""

    def __init__(self, tree: Tree, before: RunSpans | None = None) -> None:
        self.spans: list[Span] = []
        self.sessions: dict[str, _SessionSpans] = {}
        self.started: dict[str, tuple[str, bool, str]] = {}
        """By sub-agent that a call started: id of the call, whether that is a copy, and its session."""
        self.place_spans: dict[str, tuple[Message, Placement, tuple[Span, ...], int]] = {}
        """By first span of a message: its spans, and their position."""
        self.own_spans: dict[str, tuple[Info | None, Span]] = {}
        """Spans of no message, and the session that their body shows."""
        self.taken: deque[_Taken] = deque(maxlen=KEPT)
        """What came last, over all sessions."""
        self._fresh: set[int] = set()
        """Positions of spans that were replaced."""
        self._given = 0
        """Spans that were given."""
        self.before = before
        """Dropped when all is taken."""
        self.take(tree)

    def take(self, tree: Tree) -> None:
        """Take the messages that are new at the end of their sessions, and new sessions."""
        for session in tree.sessions.values():
            ident = session.info.id
            if ident not in self.sessions:
                _SessionSpans(self, session.info, tree)
            self.sessions[ident].take(session)

    def give(self) -> list[Span]:
        """The spans that came or changed since the last call."""
        early = [self.spans[position] for position in sorted(self._fresh) if position < self._given]
        start, self._given = self._given, len(self.spans)
        self._fresh.clear()
        return early + self.spans[start:]

    def can_change(
        self,
        changes: Mapping[tuple[str, int], tuple[Message, Message]],
        grown: Collection[str],
        named: Collection[str],
    ) -> bool:
        """Whether `change` can take these messages (session, index → as it was, as it is) and new ones of `grown`.

        A session that no call names stands after all messages of its turn: more of them go before it, and it moves
        if a call is among the `named` ones, unless all of it is taken a second time.
        """
        late = self._taken_keys()
        first = next((rank for rank, key in enumerate(late) if key in changes), len(late))
        retaken = {taken.session.ident for taken in islice(self.taken, first, None) if taken.state is None}
        turns = {self.sessions[ident].turn for ident in grown}
        loose = {
            ident: session.above
            for ident, session in self.sessions.items()
            if ident not in self.started and not session.is_root
        }
        if not turns.isdisjoint(loose.values()) or not loose.keys() & named <= retaken:
            return False
        return all(key in late or _is_alike(*both) for key, both in changes.items())

    def change(self, tree: Tree, changes: Mapping[tuple[str, int], tuple[Message, Message]]) -> list[Span] | None:
        """Take messages that have changed and new ones, as `give`; None if a span has gone or moved."""
        late = self._taken_keys()
        first = next((rank for rank, key in enumerate(late) if key in changes), None)
        for (ident, index), (old, now) in changes.items():
            if (ident, index) not in late:
                _, placement, _, position = self.place_spans[old.spans[0].id]
                self.put(now, placement, position)
                self.sessions[ident].exchange(old, now)
        start, old_spans = self._given, list[Span]()
        if first is not None:
            start = min(start, self.taken[first].length)
            old_spans = self.spans[start : self._given]
            while len(self.taken) > first:
                self._undo(self.taken.pop())
        self.take(tree)
        given = changed(old_spans, self.spans[start:])
        self._given = start
        early = [self.spans[position] for position in sorted(self._fresh) if position < start]
        self.give()
        return None if given is None else [*early, *given]

    def _taken_keys(self) -> list[tuple[str, int] | None]:
        """(Session, index of the message) of what came last."""
        return [None if taken.state is None else (taken.session.ident, taken.state["_taken"]) for taken in self.taken]

    def _undo(self, taken: _Taken) -> None:
        del self.spans[taken.length :]
        for name in taken.started:
            del self.started[name]
        if taken.state is None:
            del self.sessions[taken.session.ident]
        else:
            taken.session.undo(taken)

    def put(self, message: Message, placement: Placement, position: int | None = None) -> None:
        """Add the spans of a message at the end, or replace those at `position`."""
        key = message.spans[0].id
        caches = [self] if self.before is None else [self, self.before]
        known = [cached for run_spans in caches if (cached := run_spans.place_spans.get(key)) is not None]
        same = next((cached[2] for cached in known if cached[:2] == (message, placement)), None)
        spans = place_spans(message, placement) if same is None else same
        position = len(self.spans) if position is None else position
        self.place_spans[key] = message, placement, spans, position
        self._fresh.update(range(position, position + len(spans)))
        self.spans[position : position + len(spans)] = spans

    def make(self, span: Span, info: Info | None = None, position: int | None = None) -> None:
        """Add a span without a message; its body shows the session `info`."""
        cached = self.own_spans.get(span.id) or (None if self.before is None else self.before.own_spans.get(span.id))
        if cached is not None and cached == (info, span):
            span = cached[1]
        self.own_spans[span.id] = info, span
        position = len(self.spans) if position is None else position
        if position == len(self.spans) or self.spans[position] is not span:
            self._fresh.add(position)
        self.spans[position : position + 1] = [span]


_SHAPE: Final = ("id", "role", "created", "parent", "is_prompt", "end", "ended_at", "tasks", "tells_end", "runs")


def _is_alike(old: Message, now: Message) -> bool:
    """Whether only the spans of a message differ, and these are the same ones."""
    spans = [[(span.id, span.parent_id) for span in message.spans] for message in (old, now)]
    return spans[0] == spans[1] and all(getattr(old, name) == getattr(now, name) for name in _SHAPE)


_STATE: Final = ("_taken", "_steps", "_last", "_ended", "_turn", "_turn_of", "_top", "_reverted")


class _SessionSpans:
    """The spans of one session, taken message after message."""

    def __init__(self, run: RunSpans, info: Info, tree: Tree) -> None:
        self._run, self._info, self.ident = run, info, info.id
        self._entry = _Taken(self, len(run.spans), None)
        run.taken.append(self._entry)
        root = tree.root.info
        self.is_root = info.id == root.id
        self.above, self.copied = self._find_parent(root)
        self._top = None if self.is_root else info.id
        self._position = len(run.spans)
        self._is_made = True
        """The span of the sub-agent is that of its messages."""
        self._taken = self._steps = 0
        self._last: Message | None = None
        self._ended: float | None = None
        self.prompts: list[Message] = []
        self._turn: Turn | None = None
        self._turn_of: dict[str, Turn] = {}
        """By message: its turn."""
        self._unsettled: list[Turn] = []
        """Turns that no later response follows."""
        self._running: list[tuple[int, Message, Placement]] = []
        """Messages with calls that may still run."""
        self._changed: dict[int, Turn] = {}
        self._reverted = False
        named = info.fork is None and FORK.match(info.title) is not None
        forked = self.is_root and (tree.original is not None or named)
        self._forked_at = info.time.created if forked else None
        if not self.is_root:
            run.spans.append(self._agent())
        run.sessions[info.id] = self

    def _find_parent(self, root: Info) -> tuple[str | None, bool]:
        """The span above the session, and whether it is a copy: a fork copies the call of its original's sub-agent.

        A session that no call names is in the last turn of its parent that had begun by then.
        """
        info = self._info
        if self.is_root:
            return None, False
        if (call := self._run.started.get(info.id)) is not None:
            return call[0], call[1] or info.parent != call[2]
        parent = self._run.sessions.get(info.parent or "")
        if parent is None:
            return None, False
        turns = [prompt for prompt in parent.prompts if (prompt.created or 0) <= (info.time.created or 0)]
        top = None if info.parent == root.id else info.parent
        return (turn_id(turns[-1].id) if turns else top), parent.copied

    @property
    def turn(self) -> str | None:
        """The span that holds its next messages."""
        return self._top if self._turn is None else turn_id(self._turn.prompt.id)

    def take(self, session: Session) -> None:
        """Take the messages that were not taken yet."""
        new = session.messages[self._taken :]
        self._is_made &= not new and session.info == self._info
        self._info = session.info
        for message in new:
            self._take(message)
            self._taken += 1
        for turn in self._changed.values():
            self._run.make(self._span(turn), None, turn.position)
        self._changed.clear()
        if not self.is_root and not (self._is_made and self._taken):
            self._run.make(self._agent(), self._info, self._position)
        self._is_made = True

    def undo(self, taken: _Taken) -> None:
        """Be as before a message."""
        state = taken.state or {}
        for name in _STATE:
            setattr(self, name, state[name])
        self._is_made = False
        del self.prompts[state["prompts"] :]
        for turn, before in reversed(taken.turns):
            turn.response, turn.idle, turn.settled = before.response, before.idle, before.settled
            self._changed[turn.position] = turn
        self._changed = {position: turn for position, turn in self._changed.items() if position < taken.length}
        self._unsettled = state["unsettled"]
        for position, message, placement in state["running"] if not self._running else ():
            self._run.put(message, placement, position)
        self._running = state["running"]

    def exchange(self, old: Message, now: Message) -> None:
        """A message was read again."""
        self._running = [(at, now if entry is old else entry, placement) for at, entry, placement in self._running]

    def _change(self, turn: Turn, **fields: Any) -> None:
        self._entry.turns.append((turn, replace(turn)))
        for name, value in fields.items():
            setattr(turn, name, value)
        self._changed[turn.position] = turn

    def _take(self, message: Message) -> None:
        state = {name: getattr(self, name) for name in _STATE} | {"prompts": len(self.prompts)}
        state |= {"running": list(self._running), "unsettled": list(self._unsettled)}
        self._entry = _Taken(self, len(self._run.spans), state, [], [])
        self._run.taken.append(self._entry)
        revert = self._info.revert
        part = revert.partID if message.id == revert.messageID else ""
        if message.id == revert.messageID and not part:
            self._revert()
        is_response, is_end = message.role == "assistant", message.role == "idle"
        if is_response or is_end:
            self._settle()
        old = self._forked_at is not None and message.created is not None and message.created < self._forked_at
        copied = self.copied or old
        if message.is_prompt:
            self._begin_turn(message, copied=copied)
        turn = self._turn_of.get(message.parent or "", self._turn) if is_response else self._turn
        placement = Placement(self._top, None, copied, self._reverted, part)
        if turn is not None:
            placement = replace(placement, parent=turn_id(turn.prompt.id), step=turn.placement.step)
            self._turn_of[message.id] = turn
            if is_end:
                self._change(turn, idle=message, settled=True)
            elif is_response:
                self._change(turn, response=message, idle=None, settled=False)
                self._unsettled.append(turn)
        if message.runs:
            self._running.append((len(self._run.spans), message, placement))
        self._run.put(message, placement)
        for named, call in message.tasks:
            if named not in self._run.started:
                self._run.started[named] = call, copied, self._info.id
                self._entry.started.append(named)
        if message.tells_end:
            self._last = message
        if message.ended_at is not None:
            self._ended = max(message.ended_at, self._ended or 0.0)
        if part:
            self._revert()

    def _settle(self) -> None:
        """A response comes: nothing before it runs any more."""
        for position, message, placement in self._running:
            self._run.put(message, replace(placement, settled=True), position)
        for turn in self._unsettled:
            self._change(turn, settled=True)
        self._running, self._unsettled = [], []

    def _begin_turn(self, prompt: Message, *, copied: bool) -> None:
        """A prompt begins a turn, which is a step of the run unless it was reverted."""
        step = None
        if self.is_root and not self._reverted:
            self._steps += 1
            step = self._steps
        self._turn = Turn(prompt, Placement(self._top, step, copied, self._reverted), len(self._run.spans))
        self.prompts.append(prompt)
        self._unsettled.append(self._turn)
        self._changed[self._turn.position] = self._turn
        self._run.spans.append(Span(id="", name=""))  # until its end is read

    def _revert(self) -> None:
        """From here on everything was reverted: it is below a separate row."""
        info = self._info
        at = SpanRef(info.store_key, shows="revert")
        row = Span(id=f"{info.id}:reverted", name=REVERTED, operation=Operation.META, parent_id=self._top, at=at)
        self._run.make(row, info)
        self._top, self._reverted, self._turn, self._turn_of = row.id, True, None, {}

    def _span(self, turn: Turn) -> Span:
        """A turn, which ended as is noted, else as its last response did."""
        prompt, response, placement = turn.prompt, turn.response, turn.placement
        end = None if response is None else response.end
        ended_at = None if response is None else response.ended_at
        if turn.idle is not None and turn.idle.end is not None:
            error = end.error if end is not None and turn.idle.end.status is Status.ERROR else None
            end, ended_at = turn.idle.end._replace(error=error), turn.idle.ended_at
        runs = not (turn.settled or placement.copied or placement.reverted)
        return Span(
            id=turn_id(prompt.id),
            name="turn",
            operation=Operation.TURN,
            parent_id=placement.parent,
            step=placement.step,
            is_step=placement.step is not None,
            started_at=seconds(prompt.created),
            duration_ms=None if end is None else since(prompt.created, ended_at),
            note=note_of(copied=placement.copied, reverted=placement.reverted),
            at=SpanRef(self._info.store_key),
            **(end or (RUNNING if runs else Outcome()))._asdict(),
        )

    def _agent(self) -> Span:
        """All that a sub-agent did."""
        info, created = self._info, self._info.time.created
        end = (self._last.end if self._last is not None else None) or Outcome()
        return Span(
            id=info.id,
            name=(info.agent or "agent")[:PREVIEW],
            operation=Operation.INVOKE_AGENT,
            parent_id=self.above,
            started_at=seconds(created),
            duration_ms=None if end.status is Status.UNKNOWN else since(created, self._ended),
            preview=info.title[:PREVIEW],
            note=COPIED if self.copied else "",
            at=SpanRef(info.store_key, shows="session"),
            **end._asdict(),
        )


def turn_id(prompt: str) -> str:
    """Id of the turn that a prompt begins."""
    return f"{prompt}:turn"


def note_of(own: str = "", *, copied: bool, reverted: bool) -> str:
    """The note of a span that was copied or reverted."""
    return " · ".join(note for note, holds in ((COPIED, copied), (REVERTED, reverted), (own, own)) if holds)


def place_spans(message: Message, placement: Placement) -> tuple[Span, ...]:
    """The spans of a message with their placement applied."""
    spans = []
    for span in message.spans:
        reverted = placement.reverted or (bool(placement.reverted_from) and span.at.part_id >= placement.reverted_from)
        more: dict[str, Any] = {}
        if placement.copied or reverted:
            more = {"note": note_of(span.note, copied=placement.copied, reverted=reverted)}
        if placement.copied:
            more["usage"] = None
        if placement.settled and span.status is Status.RUNNING:
            more |= {"status": Status.UNKNOWN, "status_source": None}
        parent = placement.parent if span.parent_id is None else span.parent_id
        spans.append(replace(span, parent_id=parent, step=placement.step, **more))
    return tuple(spans)


# ---- headers

LEADING: Final = 8
"""Messages at the beginning of a session that describe it."""
AGENT: Final = "opencode"
_UNTITLED: Final = re.compile(r"(?:New|Child) session - \d")
"""Titles of sessions that have none yet."""
STALE_MS: Final = 15 * 60_000.0
"""A session without an end is stale if other sessions continued for so long (milliseconds) after its last change."""
_COUNTS: Final = ("tokens.input", "tokens.output", "tokens.reasoning", "tokens.cache.read", "tokens.cache.write")


def header_of(
    info: Info, leading: Sequence[Message], last: Message | None, *, stale: bool, original: str | None = None
) -> Header:
    """The header, by the first `LEADING` messages of a session and its last one.

    A database, an export and older files may hold the same session. A fork begins with the same question at the same
    time, wherever it is. A session itself never ends, it can always be continued; but its last turn does.
    """
    end = None if last is None else last.end
    outcome = end or Outcome(Status.UNKNOWN, StatusSource.DERIVED)
    written = info.time.created
    created = leading[0].created if written is None and leading else written
    first = next((message for message in leading if message.is_prompt), None)
    return Header(
        id=info.id,
        is_session=True,
        name=folder_of(info.directory) or AGENT,
        agent=info.agent or next((message.agent for message in leading if message.agent), None) or AGENT,
        model=info.model_name or next((message.model for message in leading if message.model), None),
        status=outcome.status if end or stale else None,
        status_word=outcome.status_word,
        status_source=outcome.status_source if end or stale else None,
        ended=end is not None,
        started_at=seconds(created),
        replay_of=original,
        relation=None if original is None else "fork",
        repeats=None if first is None or first.created is None else task_key(AGENT, f"{first.created}\n{first.text}"),
        identity=None if written is None else task_key(AGENT, f"{info.id}\n{written}"),
        parent=info.parent,
        title=None if not info.title or _UNTITLED.match(info.title) else info.title[:PREVIEW],
        prompt="" if first is None else first.text[:PREVIEW],
        tags=(info.branch[:PREVIEW],) if info.branch else (),
        source=(info.directory or "")[:PREVIEW] or None,
        writer=(info.version or "")[:PREVIEW] or None,
    )


class Facts(msgspec.Struct):
    """What the messages of a session add to its header and body."""

    size: int = 0
    unknown: Unknown = {}
    """Unknown fields."""
    last: Message | None = None
    """The last one that shows how the session ended."""
    last_user: str | None = None
    last_assistant: str | None = None
    usage: Usage = Usage()
    """Of the messages that count; of a fork that opencode 2 made, those that it did not copy."""

    def add(self, info: Info, messages: Iterable[Message]) -> Facts:
        """The same with more messages."""
        facts = replace(self, unknown=dict(self.unknown))
        since_fork = info.time.created if info.fork is not None else None
        for message in messages:
            facts.size += message.size
            for name, count in message.unknown.items():
                facts.unknown[name] = facts.unknown.get(name, 0) + count
            if message.tells_end:
                facts.last = message
            if message.text and message.is_prompt:
                facts.last_user = message.text
            elif message.text and message.role == "assistant":
                facts.last_assistant = message.text
            if since_fork is None or (message.created or inf) >= since_fork:
                facts.usage += message.usage
        return facts


def header_of_tree(tree: Tree, *, stale: bool, facts: Sequence[Facts] | None = None) -> Header:
    """The header of a run all of which was read."""
    own = tree.root
    if facts is None:
        facts = [Facts().add(session.info, session.messages) for session in tree.sessions.values()]
    header = header_of(own.info, own.messages[:LEADING], facts[0].last, stale=stale, original=tree.original)
    fields = unknown_fields(*(session_facts.unknown for session_facts in facts))
    return replace(header, size=sum(session_facts.size for session_facts in facts), fields=fields)


def run_body(tree: Tree, attributes: Record, raw: bytes = b"", facts: Facts | None = None) -> RunBody:
    """The body of the run; `facts` are those of its own session."""
    own = Facts().add(tree.root.info, tree.root.messages) if facts is None else facts
    return RunBody(
        last_user=own.last_user,
        last_assistant=own.last_assistant,
        totals=tuple(totals(tree.root.info, own.usage)),
        attributes=attributes,
        raw=raw,
    )


def totals(info: Info, used: Usage) -> Iterator[Total]:
    """Declared totals of a session, recounted over its own steps: not over sub-agents, but over copied steps of a fork
    unless opencode 2 made it.

    Where the totals include the call that made the title, only a smaller total than that of the steps is a difference.
    Sessions from before opencode counted have zeros everywhere, which are ignored.
    """
    declared, cost = info.tokens.counts(), info.cost
    if not any(declared) and not cost:
        return
    read, written, reasoning = used.cache_read_tokens, used.cache_creation_tokens, used.reasoning_tokens
    fresh = None if used.input_tokens is None else used.input_tokens - (read or 0) - (written or 0)
    text = None if used.output_tokens is None else used.output_tokens - (reasoning or 0)
    for name, stated, actual in zip(_COUNTS, declared, (fresh, text, reasoning, read, written), strict=True):
        if stated is not None:
            yield Total(name, stated, None if info.counts_title and actual is not None and actual <= stated else actual)
    if cost is not None:
        same = used.cost_usd is not None and isclose(cost, used.cost_usd, rel_tol=1e-9, abs_tol=1e-12)
        counted = cost if same else used.cost_usd
        yield Total("cost", cost, None if info.counts_title and counted is not None and counted <= cost else counted)


def runs_of(infos: Sequence[Info]) -> tuple[list[Info], list[Info]]:
    """(The sessions that are runs of their own, those of them that are their own ancestors).

    A sub-agent is part of the run of the session that started it; where that is missing it is a run.
    """
    parents = {info.id: info.parent for info in infos}
    circular: set[str] = set()
    clear: set[str] = set()
    for info in infos:
        way: dict[str, None] = {}
        at: str | None = info.id
        while at is not None and at in parents and at not in way and at not in clear:
            way[at] = None
            at = parents[at]
        if at is not None and at in way:
            names = list(way)
            circular.update(names[names.index(at) :])
        clear.update(way)
    runs = [info for info in infos if info.parent not in parents or info.id in circular]
    return runs, [info for info in runs if info.id in circular]
