"""What is kept of a session while it is counted: its conversations, its calls, and what they used."""

from __future__ import annotations

from tracetui.formats.copilot import lean
from tracetui.formats.copilot.usage import Stretch
from tracetui.model import Error, Span, Usage

Position = tuple[int, ...]
"""Where a span stands in pre-order: the lines in which those above it began, and it."""


class Open:
    """One conversation, as far as it got."""

    # fmt: off
    __slots__ = (
        "at", "began", "call", "failed", "failure", "made", "model", "name", "named", "over", "place", "recorded",
        "spoke", "stopped", "turn",
    )
    # fmt: on

    def __init__(self, at: Position = (), name: str = "") -> None:
        self.at, self.name = at, name
        """Of the sub-agent."""
        self.over = False
        self.began: float | None = None
        self.model: str | None = None
        self.turn: Position | None = None
        self.failure: Error | None = None
        self.failed: Span | None = None
        self.stopped: str | None = None
        self.leave()

    def leave(self) -> None:
        """The turn is over."""
        self.turn = None
        self.respond(None, None)

    def respond(self, place: Position | None, call: str | None) -> None:
        """Another response; None: there is none."""
        self.place, self.call = place, call
        self.spoke = self.recorded = self.named = False
        self.made: int | None = None

    def is_of(self, call: str | None, *, else_: bool) -> bool:
        """Whether an event is of the latest response."""
        return self.place is not None and (self.call == call if call is not None and self.call is not None else else_)

    @property
    def above(self) -> Position:
        """Of what an event stands in."""
        return self.at if self.turn is None else self.turn


class Call:
    """A tool call; `at` is None until it begins."""

    __slots__ = ("above", "at", "done", "name")

    def __init__(self, above: Position | None) -> None:
        self.above, self.name = above, ""
        self.at: Position | None = None
        self.done = False


class Bill:
    """What was used: by the whole session, and since it was begun or resumed."""

    def __init__(self) -> None:
        self._all: list[int | None] = [None] * 5
        self.begin()

    def begin(self) -> None:
        """The session was begun, resumed or shut down."""
        self._recorded: list[int | None] = [None] * 5
        self._said: int | None = None
        self._cost = self._spent = 0.0
        self.records = 0
        """So many calls had a record since then."""

    def pay(self, told: lean.Usage) -> None:
        """A record tells what a call used."""
        counts = told.input_tokens, told.output_tokens, told.cache_read_tokens, told.cache_write_tokens
        for i, one in enumerate((*counts, told.reasoning_tokens)):
            if one is not None:
                self._all[i] = (self._all[i] or 0) + one
                self._recorded[i] = (self._recorded[i] or 0) + one
        self.records += 1
        self._cost += told.cost or 0.0
        self._spent += told.duration or 0.0

    def say(self, output: int) -> None:
        """A message tells tokens of output that no record tells."""
        self._said = (self._said or 0) + output
        self._all[1] = (self._all[1] or 0) + output

    @property
    def usage(self) -> Usage:
        """Of the whole session."""
        return _usage(self._all)

    @property
    def stretch(self) -> Stretch:
        """Since it was begun or resumed."""
        said = Usage(output_tokens=self._said)
        return Stretch(_usage(self._recorded), self.records, said, self._cost, self._spent)


def _usage(counts: list[int | None]) -> Usage:
    """Tokens in the order in which Copilot tells them."""
    given, made, read, written, thought = counts
    return Usage(given, made, None, read, written, thought)
