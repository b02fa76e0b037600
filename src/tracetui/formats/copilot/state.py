"""What must be remembered of a session between two reads, however long its file is.

Spans are handed out and forgotten, but for those that later events may say more about: what is open in each
conversation (that of the session and those of its sub-agents), and the calls.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.copilot.records import At, Event
from tracetui.formats.copilot.usage import Ledger
from tracetui.formats.copilot.words import KINDS, row_preview
from tracetui.formats.layers import Layers
from tracetui.formats.scalars import between
from tracetui.model import PREVIEW, Error, Operation, Problem, Span, Status, StatusSource

MAIN: Final = ""
"""Key of the conversation of the session itself."""
MOST: Final = 3000
"""Numbers in an `At`: so many events tell of one span; what comes beyond stands for itself."""
RUNNING: Final = {"status": Status.RUNNING, "status_source": StatusSource.DERIVED}
DONE: Final = {"status": Status.OK, "status_source": StatusSource.DERIVED}


class Mark(msgspec.Struct, frozen=True, gc=False):
    """An event and where it is."""

    line: int
    place: tuple[int, ...]
    event: Event
    time: float | None
    key: str = MAIN
    """Of the conversation that it belongs to."""


class Told(msgspec.Struct, frozen=True):
    """The latest response of a model."""

    span: Span
    call: str | None = None
    """Id of the call that it came from."""
    spoke: bool = False
    """Its message is there, not only what was thought or used."""
    recorded: bool = False
    """The record of what it used is there."""


class Talk(msgspec.Struct, frozen=True):
    """One conversation, as far as it got."""

    agent: Span | None = None
    """The sub-agent whose it is."""
    model: str | None = None
    """The model that is used now."""
    turn: Span | None = None
    implicit: bool = False
    """The turn has no event of its own."""
    told: Told | None = None
    failure: Error | None = None
    """An error after which the model said nothing."""
    failed: Span | None = None
    """The span of that error."""
    stopped: str | None = None
    """Why it was aborted, if the model said nothing since."""


class Call(msgspec.Struct, frozen=True):
    """A tool call that the model asked for; its span, once it began."""

    name: str
    preview: str = ""
    above: str | None = None
    """Id of the response that asked for it."""
    step: int | None = None
    span: Span | None = None
    done: bool = False


class State(msgspec.Struct):
    """What is known of a session so far."""

    path: str
    records: int = 0
    strange: dict[str, int] = {}
    """Fields that are not known."""
    start: Event | None = None
    start_at: tuple[int, ...] = ()
    first: float | None = None
    """The first time that is told."""
    model: str | None = None
    """The first model that is told."""
    prompt: str | None = None
    """The beginning of the first prompt."""
    system: str | None = None
    """The first system message."""
    last_user: str | None = None
    last_assistant: str | None = None
    turns: int = 0
    talks: Layers[Talk] = msgspec.field(default_factory=Layers)
    open: dict[str, None] = {}
    """Keys of the conversations in which something is not over."""
    calls: Layers[Call] = msgspec.field(default_factory=Layers)
    waiting: dict[str, dict[str, None]] = {}
    """Ids of the calls that have no result, by conversation."""
    agents: dict[str, str] = {}
    """Keys of sub-agents by the call that began them."""
    pairs: dict[str, Span] = {}
    """What has begun and tells of its end in an event of its own: hooks, permissions, compactions."""
    counted: Layers[bool] = msgspec.field(default_factory=Layers)
    """Records of usage that were counted."""
    ledger: Ledger = Ledger()
    end: Event | None = None
    """The last shutdown, if nothing went on after it."""
    spans: dict[str, Span] = {}
    problems: list[Problem] = []

    def problem(self, line: int, reason: str) -> None:
        """Report one line."""
        self.problems.append(Problem(self.path, f"line {line}", reason))

    # ---- conversations

    def talk(self, key: str) -> Talk:
        """A conversation; one that has not begun is empty."""
        return self.talks.get(key) or Talk()

    def put(self, key: str, talk: Talk, **changes: Any) -> Talk:
        """Keep a conversation as it is now."""
        talk = msgspec.structs.replace(talk, **changes) if changes else talk
        self.talks[key] = talk
        running = talk.agent is not None and talk.agent.status is Status.RUNNING
        if talk.turn is not None or talk.told is not None or running or key in self.waiting:
            self.open[key] = None
        else:
            self.open.pop(key, None)
        return talk

    # ---- spans

    def add(self, span: Span) -> Span:
        """Hand out a new span or a newer version of one."""
        self.spans[span.id] = span
        return span

    def change(self, span: Span, **fields: Any) -> Span:
        """The same for a span of which something else is known now."""
        return self.add(msgspec.structs.replace(span, **fields))

    def new(
        self, mark: Mark, name: str, operation: Operation = Operation.OTHER, suffix: str = "", **fields: Any
    ) -> Span:
        """A span that begins with this event, within the current turn; `suffix` tells several of one event."""
        talk = self.talk(mark.key)
        above = talk.turn or talk.agent
        fields = {
            "parent_id": None if above is None else above.id,
            "step": None if above is None else above.step,
            "started_at": mark.time,
            "at": At(mark.place),
            **fields,
        }
        return self.add(Span(id=f"l{mark.line}{suffix}", name=name[:PREVIEW], operation=operation, **fields))

    def also(self, span: Span, mark: Mark, **fields: Any) -> Span:
        """The span, of which this event tells too; the event has a row of its own where too many do."""
        if len(span.at.places) >= MOST:
            self.row(mark)
            return self.change(span, **fields)
        return self.change(span, at=At((*span.at.places, *mark.place)), **fields)

    def row(self, mark: Mark, operation: Operation = Operation.META, **fields: Any) -> Span:
        """An event that stands for itself."""
        kind = mark.event.kind
        if kind not in KINDS:
            operation = Operation.UNKNOWN
        return self.new(mark, kind, operation, **({"preview": row_preview(mark.event)} | fields))

    def over(self, span: Span, mark: Mark, **fields: Any) -> Span:
        """The span with the event that ends it."""
        return self.also(span, mark, duration_ms=between(span.started_at, mark.time), **fields)
