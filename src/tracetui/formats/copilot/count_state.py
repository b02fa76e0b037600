"""What is kept of a session while it is counted: its conversations and its calls."""

from __future__ import annotations

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


def usage_of(counts: list[int | None]) -> Usage:
    """Tokens in the order in which Copilot tells them."""
    given, made, read, written, thought = counts
    return Usage(given, made, None, read, written, thought)
