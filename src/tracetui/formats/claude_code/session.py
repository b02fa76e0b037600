"""One file of a Claude Code session while its records come in: its conversation, and those of sub-agents within it.

Since 2.0 sub-agents have files of their own; before, their records (``isSidechain``) stood among the others.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tracetui.formats.claude_code.agents import agent_span
from tracetui.formats.claude_code.conversation import Conversation, Copy
from tracetui.formats.claude_code.facts import Facts
from tracetui.formats.claude_code.originals import ids_in
from tracetui.formats.claude_code.records import Record, content_of, kind_of, spoken
from tracetui.formats.claude_code.spans import BACKGROUND
from tracetui.formats.layers import Layers
from tracetui.formats.lines import Line
from tracetui.formats.scalars import text
from tracetui.formats.tail import object_of
from tracetui.model import Problem, Span, Status


class Session:
    """What is known of one file so far; see `tracetui.formats.tail.Session`."""

    ended = False

    def __init__(
        self, path: str, *, part: str = "", agent: str | None = None, elsewhere: frozenset[str] = frozenset()
    ) -> None:
        """`agent` is the id of the sub-agent whose file this is, read as a part of a run.

        `elsewhere` are the records and responses that sessions before this one hold (`originals.Elsewhere`).
        """
        self.path, self.part, self.agent, self.elsewhere = path, part, agent, elsewhere
        within = {} if agent is None else {"prefix": f"{agent}/", "root": f"agent:{agent}"}
        self.main = Conversation(path, part=part, **within)
        self.within: dict[str, Conversation] = {}
        """Conversations of sub-agents in this file, by agent."""
        self.agents: dict[str, Span] = {}
        """Their spans, before anything was linked."""
        self.linked: dict[str, Span] = {}
        """The same below what started them, as they were handed out last."""
        self.whose: Layers[str] = Layers()
        """Which sub-agent a record belongs to."""
        self.facts = Facts()
        self.ours: set[str] = set()
        """Those of these conversations that no other session has."""
        self.problems: list[Problem] = []
        self.made: dict[str, Span] = {}
        """New and changed spans, but for those of sub-agents that are linked otherwise now."""

    @property
    def spans(self) -> dict[str, Span]:
        """New and changed spans by id since this session was copied, sub-agents below what started them."""
        for key, span in self.agents.items():
            if (linked := self._linked(key, span)) != self.linked.get(key):
                self.linked[key] = self.made[linked.id] = linked
        return self.made

    def copy(self) -> Session:
        made = Session.__new__(Session)
        made.__dict__.update(self.__dict__)
        made.main, made.whose = self.main.copy(), self.whose.copy()
        made.within, made.agents, made.linked = dict(self.within), dict(self.agents), dict(self.linked)
        self.ours, made.ours = set(), set()
        made.facts = self.facts.copy()
        made.problems, made.made = [], {}
        return made

    def take(self, value: Any, line: Line, note: str | None = None) -> None:
        record = object_of(self, value, line, note)
        if record is None:
            return
        self.facts.take(record)
        key = self._sub_agent(record)
        if key is None:
            self.main.take(record, line, self._copy(record))
            self._collect(self.main)
        else:
            self._take_within(key, record, line)

    def problem(self, line: int, reason: str) -> None:
        self.problems.append(Problem(self.path, f"line {line}", reason))

    def _collect(self, conversation: Conversation) -> None:
        """Take over what is new in a conversation, in the order in which it came."""
        self.made |= conversation.spans
        self.problems += conversation.problems
        conversation.spans, conversation.problems = {}, []

    def _copy(self, record: Record) -> Copy | None:
        """What a record is where it was copied from another session."""
        if self.agent is not None or not (self.facts.is_fork or self.elsewhere):
            return None
        ident, response = ids_in(record)
        is_copy = self.facts.is_copy(record) or ident in self.elsewhere
        return Copy(counts=response not in self.elsewhere) if is_copy else None

    # ---- sub-agents among the records of the session

    def _sub_agent(self, record: Record) -> str | None:
        """Which sub-agent within this file a record belongs to, None for the file's own conversation."""
        if record.get("isSidechain") is not True or self.agent is not None:
            return None
        own, agent = self.facts.agent, text(record.get("agentId"))
        if own is not None and agent in (None, own):
            return None
        uuid, parent = text(record.get("uuid")), text(record.get("parentUuid"))
        key = agent or (self.whose.get(parent) if parent is not None else None) or uuid or "sidechain"
        if uuid is not None:
            self.whose[uuid] = key
        return key

    def _take_within(self, key: str, record: Record, line: Line) -> None:
        if key not in self.within:
            task = spoken(content_of(record)) if kind_of(record) == "user" else ""
            self.within[key] = Conversation(self.path, part=self.part, prefix=f"{key}/", root=f"agent:{key}")
            self.agents[key] = self.made[f"agent:{key}"] = agent_span(key, task, record, self.part)
        elif key not in self.ours:
            self.within[key] = self.within[key].copy()
        self.ours.add(key)
        self.within[key].take(record, line, self._copy(record))
        self._collect(self.within[key])

    def _linked(self, key: str, span: Span) -> Span:
        """The span of a sub-agent below the call that started it, if that is known."""
        facts = dict(span.at.facts)
        called = self.main.agents.get(key) or self.main.tasks.get(str(facts.get("task", "")))
        call = None if called is None else self.main.calls.get(called)
        return span if call is None else started_by(span, call)


def started_by(span: Span, call: Span) -> Span:
    """The span of a sub-agent that this call started, as it stands by the answer of the call."""
    name, told = span.name, call.preview.partition(": ")
    known = call.status in (Status.OK, Status.RUNNING) and call.note != BACKGROUND
    return replace(
        span,
        name=told[0] if name == "agent" and told[1] else name,
        parent_id=call.id,
        step=call.step,
        status=call.status if known else Status.UNKNOWN,
        started_at=call.started_at if span.started_at is None else span.started_at,
        duration_ms=call.duration_ms if call.note != BACKGROUND else None,
        preview=span.preview or told[2],
    )
