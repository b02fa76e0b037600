"""Sessions as runs: turns begin with a prompt, sub-agents are below the call that started them, forks copy messages.

All spans are told each time something came. What has not changed is the same object as before, so that it is seen at
once what has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import folder_of, task_key
from tracetui.formats.opencode.messages import At, Info, Record, Told, seconds, since, whole
from tracetui.formats.scalars import child, number, string
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
"""How opencode calls a fork; one of a fork counts on."""


class Session(msgspec.Struct, frozen=True):
    """One session with its messages, in their order."""

    info: Info
    told: tuple[Told, ...] = ()
    problems: tuple[Problem, ...] = ()


class Tree(msgspec.Struct, frozen=True):
    """The sessions of a run: its own first, each other after the one that started it."""

    sessions: dict[str, Session]
    original: str | None = None
    """The session that this one was forked from."""

    @property
    def root(self) -> Session:
        """The run's own session."""
        return next(iter(self.sessions.values()))

    @property
    def size(self) -> int:
        """Bytes of all messages."""
        return sum([told.size for session in self.sessions.values() for told in session.told])

    @property
    def problems(self) -> list[Problem]:
        """What could not be read in any of them."""
        return [problem for session in self.sessions.values() for problem in session.problems]


class Place(msgspec.Struct, frozen=True):
    """Where the spans of a message stand."""

    parent: str | None
    step: int | None = None
    copied: bool = False
    reverted: bool = False
    since: str = ""
    """The part from which on they were reverted."""
    settled: bool = False
    """The conversation went on: nothing in it is running any more."""


class Memory:
    """What was told before, so that the same is told as the same object."""

    def __init__(self) -> None:
        self.placed: dict[str, tuple[Told, Place, tuple[Span, ...]]] = {}
        self.made: dict[str, tuple[Info | None, Span]] = {}
        """Spans that no message tells, and the session whose body is theirs."""


class Turn(msgspec.Struct):
    """A turn while it is told."""

    prompt: Told
    place: Place
    at: int
    """Where in the list its span is to be."""
    settled: bool
    """The conversation went on after it."""
    last: Told | None = None
    """The last response in it."""


class Teller:
    """Tells all spans of a run."""

    def __init__(self, tree: Tree, before: Memory) -> None:
        self.tree, self.memory = tree, Memory()
        self.spans: list[Span] = []
        self._before = before
        self._above: dict[str, tuple[str | None, bool]] = {tree.root.info.id: (None, False)}
        """By session: the span below which it is, and whether it is told as a copy."""
        for session in tree.sessions.values():
            above, copied = self._above.setdefault(session.info.id, self._guess(session.info))
            if session is not tree.root:
                self.make(agent_span(session, above, copied=copied), session.info)
            _Walk(self, session, copied=copied)

    def put(self, told: Told, place: Place) -> None:
        """Tell a message."""
        key = told.spans[0].id
        known = self._before.placed.get(key)
        spans = known[2] if known is not None and known[0] is told and known[1] == place else placed(told, place)
        self.memory.placed[key] = told, place, spans
        self.spans += spans

    def make(self, span: Span, info: Info | None = None, at: int | None = None) -> None:
        """Tell a span that no message tells; its body is that of the session `info`."""
        known = self._before.made.get(span.id)
        if known is not None and known == (info, span):
            span = known[1]
        self.memory.made[span.id] = info, span
        if at is None:
            self.spans.append(span)
        else:
            self.spans[at] = span

    def start(self, named: str, call: str, by: Session, *, copied: bool) -> None:
        """A call started a session. A fork copies the call, and what it names is then the sub-agent of its original."""
        child = self.tree.sessions.get(named)
        if child is not None and named not in self._above:
            self._above[named] = call, copied or child.info.parent != by.info.id

    def _guess(self, info: Info) -> tuple[str | None, bool]:
        """Where a session is that no call names: in the last turn of its parent that had begun by then."""
        parent = self.tree.sessions.get(info.parent or "")
        if parent is None or parent.info.id not in self._above:
            return None, False
        turns = [told for told in parent.told if told.is_prompt and (told.created or 0) <= (info.created or 0)]
        top = None if parent is self.tree.root else parent.info.id
        return (turn_id(turns[-1].id) if turns else top), self._above[parent.info.id][1]


class _Walk:
    """Tells one session, message after message."""

    def __init__(self, teller: Teller, session: Session, *, copied: bool) -> None:
        self._teller, self._session, self._copied = teller, session, copied
        self._is_root = session is teller.tree.root
        self._top = None if self._is_root else session.info.id
        self._turns: list[Turn] = []
        self._of: dict[str, Turn] = {}
        """By message: the turn that it began, or that goes on with it."""
        self._turn: Turn | None = None
        self._steps = 0
        self._reverted = False
        info = session.info
        forked = self._is_root and (teller.tree.original is not None or FORK.match(info.title) is not None)
        self._forked_at = info.created if forked else None
        answers = [place for place, told in enumerate(session.told) if told.role == "assistant"]
        for place, told in enumerate(session.told):
            self._tell(told, settled=bool(answers) and place < answers[-1])
        for turn in self._turns:
            self._close(turn)

    def _tell(self, told: Told, *, settled: bool) -> None:
        revert = self._session.info.revert if told.id == self._session.info.revert.get("messageID") else {}
        part = string(revert.get("partID")) or ""
        if revert and not part:
            self._revert()
        old = self._forked_at is not None and told.created is not None and told.created < self._forked_at
        copied = self._copied or old
        if told.is_prompt:
            self._begin(told, copied=copied, settled=settled)
        turn = self._of.get(told.parent or "", self._turn) if told.role == "assistant" else self._turn
        parent, step = self._top, None
        if turn is not None:
            parent, step = turn_id(turn.prompt.id), turn.place.step
            self._of[told.id] = turn
            if told.role == "assistant":
                turn.last, turn.settled = told, settled
        self._teller.put(told, Place(parent, step, copied, self._reverted, part, settled and told.runs))
        for named, call in told.tasks:
            self._teller.start(named, call, self._session, copied=copied)
        if part:
            self._revert()

    def _begin(self, told: Told, *, copied: bool, settled: bool) -> None:
        """A prompt begins a turn, which is a step of the run unless it was taken back."""
        step = None
        if self._is_root and not self._reverted:
            self._steps += 1
            step = self._steps
        place = Place(self._top, step, copied, self._reverted)
        self._turn = Turn(told, place, len(self._teller.spans), settled)
        self._turns.append(self._turn)
        self._teller.spans.append(Span(id="", name=""))  # until it is known how it ended

    def _revert(self) -> None:
        """From here on everything was taken back: it is below a row of its own."""
        info = self._session.info
        ident = f"{info.id}:reverted"
        at = At(info.place, shows="revert")
        row = Span(id=ident, name=REVERTED, operation=Operation.META, parent_id=self._top, at=at)
        self._teller.make(row, info)
        self._top, self._reverted, self._turn, self._of = ident, True, None, {}

    def _close(self, turn: Turn) -> None:
        """Tell a turn by the last response in it."""
        last, place = turn.last, turn.place
        status, source, name, error = Status.UNKNOWN, None, None, None
        if last is not None and last.end is not None:
            status, source, name, error = last.end
        elif not (turn.settled or place.copied or place.reverted):
            status, source = Status.RUNNING, StatusSource.DERIVED
        span = Span(
            id=turn_id(turn.prompt.id),
            name="turn",
            operation=Operation.TURN,
            parent_id=place.parent,
            step=place.step,
            is_step=place.step is not None,
            status=status,
            status_word=name,
            status_source=source,
            error=error,
            started_at=seconds(turn.prompt.created),
            duration_ms=None if last is None or last.end is None else since(turn.prompt.created, last.ended_at),
            note=note_of(copied=place.copied, reverted=place.reverted),
            at=At(self._session.info.place),
        )
        self._teller.make(span, at=turn.at)


def turn_id(prompt: str) -> str:
    """Id of the turn that a prompt begins."""
    return f"{prompt}:turn"


def agent_span(session: Session, above: str | None, *, copied: bool) -> Span:
    """All that a sub-agent did."""
    info, last = session.info, session.told[-1] if session.told else None
    status, source, name, error = Status.UNKNOWN, None, None, None
    if last is not None and last.end is not None:
        status, source, name, error = last.end
    ends = [told.ended_at for told in session.told if told.ended_at is not None]
    return Span(
        id=info.id,
        name=(info.agent or "agent")[:PREVIEW],
        operation=Operation.INVOKE_AGENT,
        parent_id=above,
        status=status,
        status_word=name,
        status_source=source,
        error=error,
        started_at=seconds(info.created),
        duration_ms=since(info.created, max(ends)) if ends and status is not Status.UNKNOWN else None,
        preview=info.title[:PREVIEW],
        note=COPIED if copied else "",
        at=At(info.place, shows="session"),
    )


def note_of(own: str = "", *, copied: bool, reverted: bool) -> str:
    """The note of a span that was copied, or taken back."""
    return " · ".join(note for note, holds in ((COPIED, copied), (REVERTED, reverted), (own, own)) if holds)


def placed(told: Told, place: Place) -> tuple[Span, ...]:
    """The spans of a message where they stand."""
    spans = []
    for span in told.spans:
        parent = place.parent if span.parent_id is None else span.parent_id
        reverted = place.reverted or (bool(place.since) and span.at.part_id >= place.since)
        more: dict[str, Any] = {}
        if place.copied or reverted:
            more = {"note": note_of(span.note, copied=place.copied, reverted=reverted)}
        if place.copied:
            more["usage"] = None
        if place.settled and span.status is Status.RUNNING:
            more |= {"status": Status.UNKNOWN, "status_source": None}
        spans.append(replace(span, parent_id=parent, step=place.step, **more))
    return tuple(spans)


# ---- headers

LEADING: Final = 8
"""Messages at the beginning of a session that say what it is about."""
AGENT: Final = "opencode"
STALE_MS: Final = 15 * 60_000.0
"""So long after something was heard of a session, while others went on, it isn't running any more for all we know."""
_COUNTS: Final = ("input", "output", "reasoning")


def header_of(
    info: Info, leading: Sequence[Told], last: Told | None, *, stale: bool, original: str | None = None
) -> Header:
    """The header, by the first `LEADING` messages of a session and its last one.

    A database, what was exported of it and older files may tell the same session. A fork begins with the same question
    at the same time, wherever it is told.

    A session never ends, it can always be gone on with; but its last turn does.
    """
    status, source, name = None, None, None
    if last is not None and last.end is not None:
        status, source, name, _ = last.end
    elif stale:
        status, source = Status.UNKNOWN, StatusSource.DERIVED
    created = info.created if info.created is not None or not leading else leading[0].created
    first = next((told for told in leading if told.is_prompt), None)
    return Header(
        id=info.id,
        name=folder_of(info.directory) or AGENT,
        agent=info.agent or next((told.agent for told in leading if told.agent), None) or AGENT,
        model=info.model or next((told.model for told in leading if told.model), None),
        status=status,
        status_word=name,
        status_source=source,
        ended=last is not None and last.end is not None,
        started_at=seconds(created),
        replay_of=original,
        relation=None if original is None else "fork",
        repeats=None if first is None or first.created is None else task_key(AGENT, f"{first.created}\n{first.said}"),
        identity=None if info.created is None else task_key(AGENT, f"{info.id}\n{info.created}"),
        parent=info.parent,
        prompt="" if first is None else first.said[:PREVIEW],
        tags=(info.branch[:PREVIEW],) if info.branch else (),
        source=(info.directory or "")[:PREVIEW] or None,
        writer=info.version and info.version[:PREVIEW],
    )


def header_of_tree(tree: Tree, *, stale: bool) -> Header:
    """The header of a run all of which was read."""
    told = tree.root.told
    last = told[-1] if told else None
    header = header_of(tree.root.info, told[:LEADING], last, stale=stale, original=tree.original)
    fields = unknown_fields(*(told.strange for session in tree.sessions.values() for told in session.told))
    return replace(header, size=tree.size, fields=fields)


def run_body(tree: Tree, attributes: Record, raw: bytes = b"") -> RunBody:
    """Everything that is said about the run as a whole."""
    info, told = tree.root.info, tree.root.told
    asked = [one.said for one in told if one.is_prompt and one.said]
    answered = [one.said for one in told if one.role == "assistant" and one.said]
    used = sum((one.usage for one in told), Usage())
    return RunBody(
        last_user=asked[-1] if asked else None,
        last_assistant=answered[-1] if answered else None,
        totals=tuple(totals(info, used)),
        attributes=attributes,
        raw=raw,
    )


def totals(info: Info, used: Usage) -> Iterator[Total]:
    """What a session declares, recounted over its own steps: those that a fork copied count, those of sub-agents not.

    Sessions from before opencode counted have zeros everywhere, which says nothing.
    """
    tokens, cache = info.tokens, child(info.tokens, "cache")
    declared = [whole(tokens.get(name)) for name in _COUNTS] + [whole(cache.get(name)) for name in ("read", "write")]
    cost = number(info.cost)
    if not any(declared) and not cost:
        return
    fresh = None
    if used.input_tokens is not None:
        fresh = used.input_tokens - (used.cache_read_tokens or 0) - (used.cache_creation_tokens or 0)
    said = None if used.output_tokens is None else used.output_tokens - (used.reasoning_tokens or 0)
    counted = [fresh, said, used.reasoning_tokens, used.cache_read_tokens, used.cache_creation_tokens]
    names = [*(f"tokens.{name}" for name in _COUNTS), "tokens.cache.read", "tokens.cache.write"]
    for name, stated, found in zip(names, declared, counted, strict=True):
        if stated is not None:
            yield Total(name, stated, found)
    if cost is not None:
        same = used.cost_usd is not None and math.isclose(cost, used.cost_usd, rel_tol=1e-9, abs_tol=1e-12)
        yield Total("cost", cost, cost if same else used.cost_usd)


# ---- which session a fork was made from: opencode copies the messages with new ids, and no word of where from


class Opening(NamedTuple):
    """How a session begins."""

    first: float | None
    """When its first message was made, which a copy of it says too."""
    said: Callable[[], str]
    """What was asked first."""


def is_suspect(info: Info, first: float | None) -> bool:
    """Whether a session may be a fork: its title says so, or its first message is older than it is."""
    return FORK.match(info.title) is not None or (
        first is not None and info.created is not None and first < info.created
    )


class Originals:
    """Finds what sessions were forked from: one that began earlier with the same words.

    Its first message was copied with its time, or by its title the fork is one of it.
    """

    def __init__(self, infos: Iterable[Info], opening: Callable[[Info], Opening]) -> None:
        self._opening = opening
        self._alike: dict[float | str, list[Info]] = {}
        """By the time of the first message, and by title."""
        for info in infos:
            self._alike.setdefault(info.title, []).append(info)
            if (first := opening(info).first) is not None:
                self._alike.setdefault(first, []).append(info)

    def of(self, info: Info) -> str | None:
        """Id of the original, None if there is none."""
        opening = self._opening(info)
        if opening.first is None or info.created is None or not is_suspect(info, opening.first):
            return None
        wanted, said = titled(info.title), opening.said()
        found: list[tuple[bool, bool, float, str]] = []
        for other in (*self._alike.get(opening.first, ()), *self._alike.get(wanted or 0.0, ())):
            begins = self._opening(other)
            same = begins.first == opening.first
            if other.created is not None and other.created < info.created and (said or same) and begins.said() == said:
                found.append((other.title != wanted, not same, other.created, other.id))
        return min(found)[-1] if found else None


def titled(title: str) -> str | None:
    """The title of what a session of that title is a fork of; None where it is none by its title."""
    match = FORK.match(title)
    if match is None:
        return None
    number = int(match[2])
    return match[1] if number <= 1 else f"{match[1]} (fork #{number - 1})"


def listed(infos: Sequence[Info]) -> tuple[list[Info], list[Info]]:
    """(The sessions that are runs of their own, those of them whose parents go round in a circle).

    A sub-agent is told below the session that started it; where that is missing it stands for itself.
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
