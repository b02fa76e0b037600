"""Reading a session on: its own file, and those of its sub-agents, which come and grow meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

import msgspec
from msgspec.structs import replace

from tracetui.formats import tail
from tracetui.formats.base import Chunk
from tracetui.formats.claude_code.agents import Meta, Part, agent_span, beside, meta_of, parts_of
from tracetui.formats.claude_code.originals import NOWHERE, Elsewhere, elsewhere, original_of
from tracetui.formats.claude_code.run import header_of, run_body
from tracetui.formats.claude_code.session import Session, started_by
from tracetui.formats.fields import unknown_fields
from tracetui.model import COPIED, Header, Operation, Problem, RunBody, Span
from tracetui.sources.base import File, reason_of


class Held(msgspec.Struct, frozen=True):
    """What was read of one sub-agent's file."""

    part: Part
    meta: Meta
    place: tail.Place | None
    """None: nothing of it was read yet."""
    span: Span
    """As it was given last."""
    failed: bool = False
    """It was told that it cannot be read."""
    more: bool = True
    """Not all of it was read."""

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to read: known without opening it."""
        place = self.place
        return place is not None and not self.more and place.current and place.stat == self.part.stat


class Mark(msgspec.Struct, frozen=True):
    """Where a read stopped, in all files of the run."""

    main: tail.Place
    header: Header
    """As the session itself told it last."""
    held: tuple[Held, ...] = ()
    elsewhere: Elsewhere = NOWHERE
    """What of it other sessions tell."""


def read_on(file: File, mark: Mark | None) -> Chunk:
    """What came since `mark` (None: all); anew if any of the files is another one, or what it copies is elsewhere."""
    known = NOWHERE if mark is None else mark.elsewhere
    chunk = _read_on(file, mark, known)
    while (now := elsewhere(file, chunk.cursor.main.session.facts, known)).before != known.before:
        chunk = replace(_read_on(file, None, now), reset=chunk.reset or mark is not None)
        known = now
        if not chunk.done:  # the next call finds out again: half of a file may not tell yet when its own records begin
            break
    return chunk if now is known else replace(chunk, cursor=replace(chunk.cursor, elsewhere=now))


def _read_on(file: File, mark: Mark | None, known: Elsewhere) -> Chunk:
    deadline = perf_counter() + tail.BUDGET
    reader = tail.Reader(lambda file: Session(file.path, elsewhere=known.ids), _told)
    chunk = tail.read_on(reader, file, None if mark is None else mark.main)
    before = None if chunk.reset else mark
    session = chunk.cursor.session
    reading = _Parts(file, session, () if before is None else before.held)
    if before is not None and not chunk.done:
        mark = replace(before, main=chunk.cursor, header=chunk.header or before.header)
        return replace(chunk, spans=[*chunk.spans, *reading.along(chunk.spans)], cursor=mark)
    if not reading.meet() or (chunk.done and not reading.read(chunk.spans, deadline)):
        return replace(_read_on(file, None, known), reset=True)
    told = chunk.header or (_told(session, file)[0] if before is None else before.header)
    first, second = (reading.met, chunk.spans) if before is None else (chunk.spans, reading.met)
    return replace(
        chunk,
        spans=[*first, *second, *reading.spans],
        header=reading.header(chunk, told) if chunk.header is not None or reading.moved else None,
        problems=[*chunk.problems, *reading.problems],
        cursor=Mark(chunk.cursor, told, tuple(reading.held.values()), known),
        done=chunk.done and reading.done,
    )


class _Parts:
    """The files of sub-agents, read on."""

    def __init__(self, file: File, session: Session, held: Sequence[Held]) -> None:
        self.file, self.session = file, session
        original = original_of(session.facts, file)
        self.original = original[0] if original is not None and original[1] is not None else ""
        self.held = {one.part.path: one for one in held}
        self.met: list[Span] = []
        """Sub-agents that are new. Those that no call is known of come first in their run."""
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self.done = True
        self.moved = False
        """Something of them was read."""

    def meet(self) -> bool:
        """See which sub-agents there are; False if one is gone."""
        parts = parts_of(self.file)
        missing = set(self.session.main.started).difference(part.agent for part in parts)
        if self.original and missing:
            parts += (part for part in parts_of(self.file, self.original) if part.agent in missing)
            missing.difference_update(part.agent for part in parts)
        parts += beside(self.file, sorted(missing))
        for part in parts:
            before = self.held.get(part.path)
            if before is None:
                meta = meta_of(self.file, part)[0]
                span = agent_span(part.agent, "", {}, part.path, meta)
                self.met.append(span)
                self.held[part.path] = Held(part, meta, None, span)
            elif before.part != part:
                same = (before.part.meta, before.part.plan) == (part.meta, part.plan)
                meta = before.meta if same else meta_of(self.file, part)[0]
                self.held[part.path] = replace(before, part=part, meta=meta)
        return self.held.keys() <= {part.path for part in parts}

    def read(self, said: Sequence[Span], deadline: float) -> bool:
        """Read what is new of all of them; False if one was rewritten. `said` is new in the session itself."""
        self.spans += self.along(said)
        deadline = max(deadline, perf_counter() + tail.BUDGET * tail.FIRST)  # however long it took to see what is there
        begun = False
        for held in list(self.held.values()):
            if held.is_current:
                continue
            if held.more and begun and perf_counter() > deadline:  # what was read before is asked whatever that takes
                self.done = False
                continue
            begun = begun or held.more
            if not self._read(held):
                return False
        self._link()
        return True

    def _read(self, held: Held) -> bool:
        part = held.part
        reader = tail.Reader(lambda file: Session(file.path, part=part.path, agent=part.agent), _nothing)
        try:
            with self.file.other(part.path, part.stat) as other:
                chunk = tail.read_on(reader, other, held.place)
        except OSError as error:
            if not held.failed:
                self.problems.append(Problem(self.file.path, part.path, reason_of(error)))
            self.held[part.path] = replace(held, failed=True, more=False)
            return True
        if chunk.reset:
            return False
        self.done &= chunk.done
        self.moved = self.moved or chunk.cursor is not held.place
        self.held[part.path] = replace(held, place=chunk.cursor, more=not chunk.done)
        theirs = self._is_of_another(part, chunk.cursor.session)
        self.spans += (self._once(span, elsewhere=theirs) for span in chunk.spans)
        self.problems += chunk.problems
        return True

    def _is_of_another(self, part: Part, session: Session) -> bool:
        """Whether a sub-agent that was copied with the call that started it is, and counts, with another session."""
        if "/" in part.path:
            return bool(self.original) and part.path.startswith(f"{self.original}/")
        told = session.facts.named.get("sessionId")
        return told is not None and told != self.session.facts.named.get("sessionId")

    def along(self, said: Sequence[Span]) -> Iterator[Span]:
        """Copies of these responses that were read before in files of sub-agents, which were given them along."""
        for span in said:
            for held in self.held.values() if span.operation is Operation.CHAT else ():
                made = None if held.place is None else held.place.session.main.tops.get(f"{held.part.agent}/{span.id}")
                if made is not None and made.operation is Operation.CHAT:
                    yield self._once(made, elsewhere=True)

    def _once(self, span: Span, *, elsewhere: bool) -> Span:
        """A response that the sub-agent was given along, or that is in the original of a fork, counts there."""
        if span.operation is Operation.CHAT and span.usage is not None:
            made = self.session.main.tops.get(span.id.partition("/")[2])
            if elsewhere or (made is not None and made.operation is Operation.CHAT):
                return replace(span, usage=None, note=COPIED)
        return span

    def header(self, chunk: Chunk, told: Header) -> Header:
        """The header of the run, by that of the session itself and all files."""
        places = [chunk.cursor, *(held.place for held in self.held.values() if held.place is not None)]
        size, cut = sum(place.stat.size for place in places), tail.unfinished(*(place.ahead for place in places))
        fields = unknown_fields(*(place.session.facts.strange for place in places))
        return replace(told, size=size, unfinished=cut, fields=fields)

    # ---- what started them

    def _link(self) -> None:
        """Put sub-agents below the calls that started them, as far as these are known now."""
        sessions = [self.session, *(held.place.session for held in self.held.values() if held.place is not None)]
        starting = [session for session in sessions if session.main.starts]
        for path, held in self.held.items():
            span = _linked(held, sessions if held.meta.call is not None else starting)
            if span != held.span:
                self.held[path] = replace(held, span=span)
                self.spans.append(span)


def _linked(held: Held, sessions: Sequence[Session]) -> Span:
    """The span of a sub-agent below the call that one of these sessions, but for its own, started it by."""
    span = agent_span(held.part.agent, "", {}, held.part.path, held.meta)
    if held.place is not None:
        facts = held.place.session.facts
        span = replace(span, started_at=facts.first, preview=span.preview or facts.prompt or "")
    for session in sessions:
        if held.place is not None and session is held.place.session:
            continue
        main = session.main
        told = held.meta.call or main.agents.get(held.part.agent) or main.agents.get(held.part.workflow or "")
        call = None if told is None else main.calls.get(told)
        if call is not None:
            return started_by(span, call)
    return span


def _told(session: Session, file: File) -> tuple[Header, RunBody]:
    return header_of(session.facts, file), run_body(session.facts)


def _nothing(session: Session, file: File) -> tuple[Header, RunBody]:
    return Header(id="", name=""), RunBody()
