"""What is counted of a rollout so far, and what must be remembered for that: what `State` is for the full read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tracetui.formats.codex.lean import NOTHING, Counts
from tracetui.formats.codex.outcome import Outcome
from tracetui.formats.codex.session import Session
from tracetui.formats.codex.state import MOST
from tracetui.formats.counting import Failures, Irregular
from tracetui.model import PREVIEW, Error, Operation, Usage
from tracetui.model.build import Tally
from tracetui.model.tally import keep, kept

Position = tuple[int, ...]
"""Where a span stands in pre-order."""
_RECORDS: Final = MOST // 3
_IDS: Final = 64
_STAMP: Final = len("2026-03-02T09:15:00.000Z")


class Span:
    """A turn or a response."""

    __slots__ = ("ids", "implicit", "line", "open", "position", "records", "start", "used")

    def __init__(self, position: Position, line: int, start: float) -> None:
        self.position, self.line, self.start, self.records = position, line, start, 1
        self.implicit = self.used = False
        self.open = True
        self.ids: list[str] = []

    def also(self) -> None:
        """A record tells of this too."""
        self.records += 1
        if self.records >= _RECORDS:
            raise Irregular


class Call:
    """A tool call."""

    __slots__ = ("called", "duration", "ident", "name", "outcome", "position", "records", "skipped", "start")

    def __init__(self, position: Position, ident: str, name: str, start: float) -> None:
        self.position, self.ident, self.name, self.start = position, ident, name, start
        self.outcome = Outcome()
        self.duration: float | None = None
        self.records = 1
        self.called = self.skipped = False

    def also(self) -> None:
        """A record tells of this too."""
        self.records += 1
        if self.records >= _RECORDS:
            raise Irregular


class CountState:
    """What is counted so far."""

    def __init__(self, path: str) -> None:
        self.session = Session(path)
        """What the header is made of."""
        self.tally = Tally()
        self.line = self.spans = 0
        self.data = b""
        self.stamp = ""
        self.time = self.end = 0.0
        """When the record was written, when the last span ended."""
        self.turn: Span | None = None
        self.told: Span | None = None
        """The response that the model is giving, or gave last."""
        self.heard: list[Any] | None = None
        """Text of the latest message of the user; told as an item, as an event; whether it is called ``user``."""
        self.calls: dict[str, Call] = {}
        self.failures: Failures[Position] = Failures()
        self.used: list[Counts] = []
        self.total: Counts | None = None
        self.last: Counts | None = None
        self.own = False
        """As in `Meter`."""

    def tallied(self) -> Tally:
        """The numbers, with the first failed span in the order in which they are shown."""
        tally, calls = self.tally, self.calls.values()
        for call in calls:
            outcome = call.outcome
            if (outcome.failed or outcome.code) and outcome.error is not None:
                if call.skipped:
                    raise Irregular
                self.fail(call.position, outcome.error, call.ident, call.name, Operation.EXECUTE_TOOL)
            self.extent(call.start, call.duration)
        tally.spans, tally.tool_calls, tally.last_end = self.spans, len(calls), self.end
        tally.tools = kept({call.name[:PREVIEW] for call in calls})
        self.failures.count(tally)
        if len({one.total_tokens is None for one in self.used}) > 1:
            raise Irregular  # those without a total count with their input and output: `Usage` adds them up
        columns = ([getattr(one, name) for one in self.used] for name in Counts.__struct_fields__)
        told = ([value for value in column if value is not None] for column in columns)
        tally.usage = Usage(*(sum(column) if column else None for column in told))
        return tally

    # ---- what the model said, and its tokens

    def said(self, ids: list[str], began: float | None = None, *, event: bool = False) -> None:
        """A record of the response that is open, or (an event, for what it said already) of the last one."""
        one = self.told
        self.heard = None
        again = one is not None and bool(ids) and not set(ids).isdisjoint(one.ids)
        if one is None or not (one.open or (again and event)):
            start = began / 1000 if began else self.time
            one = self.told = self.open(start)
            self.extent(start, since(start, self.time))
            self.tally.llm_calls += 1
            if self.session.model is not None:
                keep(self.tally.models, self.session.model)
        else:
            one.also()
            if one.open:
                self.extent(one.start, since(one.start, self.time))
        if ids and not again:
            if len(one.ids) > _IDS:
                del one.ids[:-_IDS]
            one.ids += ids

    def use(self, last: Counts | None, total: Counts | None, *, own: bool) -> None:
        """Tokens that are told of the last response, and of the whole thread."""
        used = self._read(None if last == NOTHING else last, None if total == NOTHING else total, own=own)
        told = self.told
        if used is None:
            if told is None:
                self.row()
            else:
                told.also()
            return
        if told is None or told.used:
            self.told = None
            self.said([])
            told = self.told
        else:
            told.also()
        assert told is not None
        told.used, told.open = True, False
        self.used.append(used)

    def _read(self, last: Counts | None, total: Counts | None, *, own: bool) -> Counts | None:
        """The tokens that a record adds; see `Meter`."""
        if (last is None and total is None) or (total is not None and total == self.total):
            return None
        if last is None:
            raise Irregular
        again = self.own and not own and last == self.last
        self.total, self.last, self.own = total or self.total, last, own and not again
        return None if again or not any(msgspec.structs.astuple(last)) else last

    # ---- spans

    def at(self, stamp: str) -> None:
        """The record was written then."""
        when = datetime.fromisoformat(stamp) if len(stamp) == _STAMP else None
        if when is None or when.tzinfo is not UTC or (time := when.timestamp()) < self.time:
            raise Irregular
        self.stamp, self.time = stamp, time

    def number(self) -> int:
        """A new span, in the order in which they come."""
        self.spans += 1
        return self.spans

    def open(self, start: float) -> Span:
        """A response in the turn."""
        above = self.turn.position if self.turn is not None else ()
        return Span((*above, self.number()), self.line, start)

    def row(self) -> Position:
        """A span that stands for itself."""
        self.extent(self.time, None)
        return (*(self.turn.position if self.turn is not None else ()), self.number())

    def close(self) -> None:
        """The response is over."""
        if self.told is not None:
            self.told.open = False

    def extent(self, start: float, duration_ms: float | None) -> None:
        """A span is from `start` on."""
        end = start + max(0.0, duration_ms or 0.0) / 1000
        if end > self.end:
            self.end = end

    def fail(self, position: Position, error: Error, ident: str, name: str, operation: Operation) -> None:
        """A span failed."""
        if not error.message:
            raise Irregular
        self.failures.add(position, error, ident, name, operation)


def since(begin: float, end: float) -> float:
    """Milliseconds from `begin` to `end`; 0 where they are the wrong way round."""
    return (end - begin) * 1000 if end >= begin else 0.0
