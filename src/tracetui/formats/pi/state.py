"""What must be remembered of a pi session between two reads, however long its file is.

Spans are handed out and forgotten, but for those that may still change: calls, and what may be abandoned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Self

from msgspec.structs import replace

from tracetui.formats.layers import Layers
from tracetui.formats.lines import Line
from tracetui.formats.pi.branches import Tree
from tracetui.formats.pi.facts import Facts
from tracetui.formats.pi.originals import Copies
from tracetui.formats.pi.records import Record
from tracetui.formats.pi.spans import unsettled
from tracetui.formats.scalars import word
from tracetui.model import COPIED, COUNTED_COPY, Problem, Span, Status

BRANCH: Final = "branch:"
"""Before the id of the first entry of an abandoned branch: the id of its span."""
OURS: Final = ("l", BRANCH)
"""How ids begin that are made here, of the number of a line or of an entry."""


class Branch(NamedTuple):
    """An abandoned branch: its span, how many spans are in it, how many of them are responses."""

    span: Span
    spans: int = 0
    responses: int = 0


class State:
    """What is known of one file so far."""

    ended = False
    """Never for good: a session can always be gone on with."""

    def __init__(self, path: str, copies: Callable[[Facts], Copies]) -> None:
        """`copies` finds out what counts elsewhere when the first record was read."""
        self.path = path
        self.facts = Facts()
        self.copies = Copies()
        self.find_copies = copies
        self.tree = Tree()
        self.spans: dict[str, Span] = {}
        self.problems: list[Problem] = []
        self.records = 0
        self.steps = 0
        self.top: str | None = None
        """The latest span of the conversation: what is no part of that hangs below it."""
        self.own: str | None = None
        """The span of the conversation that the current record made."""
        self.group: Span | None = None
        """The row of notes that goes on."""
        self.waiting: tuple[str, ...] = ()
        """Calls without an answer, by id of the call."""
        self.tops: Layers[Span] = Layers()
        """Spans of the conversation by their ids."""
        self.calls: Layers[Span] = Layers()
        """Every call by its own id."""
        self.below: Layers[tuple[str, ...]] = Layers()
        """Ids of the calls of a response."""
        self.branches: Layers[Branch] = Layers()
        """Abandoned branches by the ids of their spans."""
        self.forks: Layers[tuple[str, ...]] = Layers()
        """Ids of those that left after an entry."""

    def copy(self) -> Self:
        made = self.__class__.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        for name in ("facts", "tree", "tops", "calls", "below", "branches", "forks"):
            setattr(made, name, getattr(self, name).copy())
        made.spans, made.problems = {}, []
        return made

    def problem(self, line: int, reason: str) -> None:
        self.problems.append(Problem(self.path, f"line {line}", reason))

    def put(self, span: Span) -> Span:
        """Hand out a span of the conversation itself."""
        span = self.paid(span)
        self.top = self.own = span.id
        self.group = None
        self.tops[span.id] = self.spans[span.id] = span
        return span

    def hang(self, span: Span) -> Span:
        """Hand out a span below the latest one of the conversation."""
        self.group = None
        above = self.tops.get(self.top) if self.top is not None else None
        if above is not None:
            span = replace(span, parent_id=above.id, step=above.step)
        self.spans[span.id] = span
        return span

    def paid(self, span: Span) -> Span:
        """The span; what was copied from another session counts there, if that is known to have it."""
        if not self.facts.copying:
            return span
        if span.usage is None or self.copies.count_elsewhere(span.id):
            return replace(span, note=span.note or COPIED, usage=None)
        return replace(span, note=span.note or COUNTED_COPY)

    def settle(self) -> None:
        """The conversation went on: calls without an answer are not running any more."""
        for ident in self.waiting:
            call = self.calls.get(ident)
            if call is not None and call.status is Status.RUNNING:
                self.calls[ident] = self.spans[call.id] = unsettled(call)
        self.waiting = ()

    def ident_of(self, record: Record, line: Line) -> str:
        """The id of the record's span: its own, where no other span has it."""
        ident = word(record.get("id"))
        return f"l{line.number}" if ident is None or self.is_taken(ident) else ident

    def is_taken(self, ident: str) -> bool:
        """Whether a span has that id, or may come to have it."""
        return ident.startswith(OURS) or self.tree.get(ident) is not None or self.calls.get(ident) is not None
