"""What must be remembered of a Codex thread between two reads, however long its file is.

Spans are handed out and forgotten, but for those that later records may say more about: the current turn, the latest
message and response, and the calls.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.codex.copies import Copies
from tracetui.formats.codex.outcome import Outcome
from tracetui.formats.codex.records import At, Record
from tracetui.formats.codex.usage import Meter
from tracetui.formats.codex.words import is_known, row_preview
from tracetui.formats.layers import Layers
from tracetui.formats.scalars import number
from tracetui.model import INHERITED, PREVIEW, Error, Operation, Problem, Span

MOST: Final = 3000
"""Numbers in an `At`: so many records tell of one span; what comes beyond stands for itself."""


class Call(msgspec.Struct, frozen=True):
    """A tool call, and what is known of how it went."""

    span: Span
    outcome: Outcome
    called: bool
    """The model's call is there, not only an event that tells of it."""


class Heard(msgspec.Struct, frozen=True):
    """The latest message of the user, which is told as an item and as an event."""

    span: Span
    text: str
    item: bool
    event: bool


class Told(msgspec.Struct, frozen=True):
    """The response that the model is giving, or gave last."""

    span: Span
    open: bool = True
    ids: tuple[str, ...] = ()
    """Ids and texts of what it said."""
    spoke: bool = False
    """Its preview is what it said, not what it thought."""


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A record and where it is."""

    line: int
    place: tuple[int, ...]
    record: Record
    time: float | None
    """When it was written."""

    @property
    def began(self) -> float | None:
        """When what it tells of began."""
        found = number(self.record.payload.get("started_at_ms"))
        return found / 1000 if found else self.time


class State(msgspec.Struct):
    """What is known of a thread so far."""

    path: str
    file: str | None = None
    """`path`, where that is not the file of the run."""
    prefix: str = ""
    """Before the ids of its spans, where they stand in the run of another thread."""
    note: str = ""
    """`INHERITED` while the history of a fork is read."""
    copies: Copies | None = None
    """What may come that was copied from the original of an old fork."""
    records: int = 0
    strange: dict[str, int] = {}
    """Fields that are not known."""
    meta: Record | None = None
    meta_at: tuple[int, ...] = ()
    model: str | None = None
    """The model that is used now."""
    first_model: str | None = None
    prompt: str | None = None
    """The beginning of the first prompt."""
    last_user: str | None = None
    last_assistant: str | None = None
    turn: Span | None = None
    """The current turn; None between turns."""
    agent: Span | None = None
    """All that an agent did, where its thread is told below that which spawned it."""
    between: dict[str, Span] = {}
    """What came between turns and tells of the next one."""
    turns: int = 0
    implicit: bool = False
    """The current turn has no record of its own."""
    heard: Heard | None = None
    told: Told | None = None
    compaction: Span | None = None
    calls: Layers[Call] = msgspec.field(default_factory=Layers)
    waiting: dict[str, None] = {}
    """Ids of the calls of this turn that have no answer."""
    threads: dict[str, str] = {}
    """Threads that were spawned, each with the id of the span that did it."""
    inherited: dict[str, str] = {}
    """Those of them that the history of a fork began, each with the note that says so."""
    failure: Error | None = None
    """An error after which the model said nothing."""
    end: Record | None = None
    """The last record that began or ended a turn."""
    end_failure: Error | None = None
    meter: Meter = Meter()
    before: int = 0
    """Bytes of that history."""
    spans: dict[str, Span] = {}
    problems: list[Problem] = []

    def problem(self, line: int, reason: str) -> None:
        """Report one line."""
        self.problems.append(Problem(self.path, f"line {line}", reason))

    # ---- spans

    def add(self, span: Span) -> Span:
        """Hand out a new span or a newer version of one. What is inherited was paid for by the one that it is from."""
        self.spans[span.id] = msgspec.structs.replace(span, usage=None) if span.note == INHERITED else span
        if span.id in self.between:
            self.between[span.id] = span
        return span

    def new(
        self, mark: Mark, name: str, operation: Operation = Operation.OTHER, suffix: str = "", **fields: Any
    ) -> Span:
        """A span that begins with this record, within the current turn; `suffix` tells several of one record."""
        turn = self.turn
        fields = {
            "parent_id": turn.id if turn is not None else self.agent.id if self.agent is not None else None,
            "step": turn.step if turn is not None else None,
            "started_at": mark.time,
            "note": self.note,
            "at": At(mark.place, self.file),
            **fields,
        }
        ident = f"{self.prefix}l{mark.line}{suffix}"
        return self.add(Span(id=ident, name=name[:PREVIEW], operation=operation, **fields))

    def also(self, span: Span, mark: Mark, **fields: Any) -> Span | None:
        """The span, of which this record tells too; None, and a row of its own, where too many do."""
        if len(span.at.places) >= MOST or span.at.path != self.file:
            self.row(mark)
            return None
        at = At((*span.at.places, *mark.place), self.file)
        return self.add(msgspec.structs.replace(span, at=at, **fields))

    def early(self, span: Span) -> None:
        """Keep a span that belongs to the next turn, if it is in none."""
        if self.turn is None and len(self.between) < MOST:
            self.between[span.id] = span

    def row(self, mark: Mark, operation: Operation = Operation.META, name: str | None = None, **fields: Any) -> Span:
        """A record that stands for itself, known or not."""
        record = mark.record
        if operation is Operation.META and not is_known(record):
            operation = Operation.UNKNOWN
        return self.new(mark, name or record.name, operation, **({"preview": row_preview(record)} | fields))
