"""Events as spans: each event is one, but for those that begin and end a span, which are one together.

A call of a tool is told twice, as an event and as a span around what it does: that is one span here.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.fields import Strange
from tracetui.formats.inspect_ai.events import Light, lights
from tracetui.formats.inspect_ai.fields import items_of
from tracetui.formats.inspect_ai.kinds import made, span_kind
from tracetui.formats.inspect_ai.known import FIELDS
from tracetui.formats.scalars import between, moment, word
from tracetui.model import PREVIEW, Error, FirstError, Operation, Problem, Span, Status, StatusSource

DEPTH: Final = 16
"""Events within events are told so far."""
_TOOL: Final = "tool"


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is told: by which events of its sample."""

    check: int
    """Checksum of the sample."""
    event: tuple[int, ...] | None
    """The event: its place among those of the sample, and in that event …; None where only a span tells it, or (with
    neither beginning nor end) what is said of a failed attempt."""
    begin: tuple[int, ...] | None = None
    """The event that begins the span."""
    end: tuple[int, ...] | None = None
    size: int | None = None
    """Bytes of the event."""


class Scope(NamedTuple):
    """What holds for all events of one list."""

    parent: str | None = None
    path: tuple[int, ...] = ()


_TOP: Final = Scope()


class Weaver:
    """Makes spans of the events of one sample."""

    def __init__(self, check: int, attached: Callable[[str], str], version: tuple[int, ...] | None, path: str) -> None:
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self.calls = 0
        """Calls of the model, which are the steps of a sample."""
        self.strange: Strange = {}
        """Fields that are not known."""
        self._check, self._attached, self._version, self._path = check, attached, version, path

    def weave(self, events: Sequence[Any], scope: Scope = _TOP) -> None:
        """Take in all events of a sample, and those within them."""
        found = lights(list(events))
        for light in found:
            if light.names:
                FIELDS.count(self.strange, word(light.event) or "", light.names)
        Strand(self, found, scope).weave()

    def add(self, light: Light, ident: str, parent: str | None, at: At) -> None:
        """One event."""
        step = None
        if light.event == "model":
            self.calls += 1
            step = self.calls
        span = made(light, self._attached, self._version)
        known = span.operation is not Operation.UNKNOWN
        at = at if known else replace(at, size=light.size)
        self.spans.append(
            replace(
                span, id=ident, parent_id=parent, step=step, is_step=step is not None, started_at=_start(light), at=at
            )
        )
        self._within(light, ident, at)

    def failure(self, error: FirstError | None) -> Span:
        """What ended an attempt, where no event tells it."""
        return Span(
            id="error",
            name="error",
            status=Status.ERROR,
            status_source=StatusSource.EXPLICIT,
            error=None if error is None else Error(error.message, error.type),
            at=At(self._check, None),
        )

    def at(self, *, event: tuple[int, ...] | None = None, begin: Any = None, end: Any = None) -> At:
        """A place in the sample."""
        return At(self._check, event, begin, end)

    def _within(self, light: Light, ident: str, at: At) -> None:
        """Events within an event: earlier logs have those of a call there."""
        if light.event not in (_TOOL, "subtask") or at.event is None:
            return
        try:
            items = items_of(light.events)
        except FormatError:
            items = None
        if not items:
            return
        if len(at.event) >= DEPTH:
            where = "events" + "".join(f"[{place}]" for place in at.event)
            self.problems.append(Problem(self._path, where, "events within its events are shown no deeper"))
            return
        self.weave(items, Scope(ident, at.event))


class Strand:
    """Makes spans of one list of events."""

    def __init__(self, weaver: Weaver, found: list[Light], scope: Scope) -> None:
        self._weaver, self._found, self._scope = weaver, found, scope
        self._opened: dict[str, int] = {}
        """By Inspect's id of a span: the event that begins it."""
        self._begins: set[int] = set()
        """Events that begin spans."""
        self._told: set[int] = set()
        """Events of which there is a span."""
        self._ended: dict[int, int] = {}
        """By the event that begins a span: the one that ends it."""
        self._calls: dict[int, int] = {}
        """By the event that begins the span of a call: the event of that call."""
        self._above: dict[int, str | None] = {}
        """By event: the span that it is in by the order of steps."""

    def weave(self) -> None:
        """Tell the spans in the order in which they begin."""
        self._pair()
        self._match()
        spans = {call: begin for begin, call in self._calls.items()}
        ends = set(self._ended.values())
        for place, light in enumerate(self._found):
            if place in ends or spans.get(place, place) < place:
                continue
            begin = spans.get(place, place)
            if begin in self._begins:
                self._span(begin, self._calls.get(begin))
            elif place not in self._told:
                self._weaver.add(light, self._ident(place), self._parent(place), self._at(place))

    def _pair(self) -> None:
        """Which events end which spans, and what earlier logs' steps, which are told by order alone, are around."""
        open_steps: list[int] = []
        for place, light in enumerate(self._found):
            self._above[place] = self._ident(open_steps[-1]) if open_steps else self._scope.parent
            ident = light.id if isinstance(light.id, str) else None
            if light.event == "span_begin":
                self._begins.add(place)
                if ident is not None:
                    self._opened.setdefault(ident, place)
            elif light.event == "span_end" and ident in self._opened:
                self._ended.setdefault(self._opened[ident], place)
            elif light.event == "step" and light.action == "begin":
                self._begins.add(place)
                open_steps.append(place)
            elif light.event == "step" and light.action == "end" and open_steps:
                self._ended[open_steps.pop()] = place

    def _match(self) -> None:
        """Which event tells the call that a span is: mostly the next one, else one of the same span and name."""
        waiting: dict[tuple[Any, Any], deque[int]] = defaultdict(deque)
        loose: list[int] = []
        for place, light in enumerate(self._found):
            if place in self._begins and light.event == "span_begin" and light.type == _TOOL:
                after = self._found[place + 1] if place + 1 < len(self._found) else None
                if after is not None and after.event == _TOOL and after.function == light.name:
                    self._calls[place] = place + 1
                elif isinstance(light.name, str):
                    waiting[_key(light.parent_id), light.name].append(place)
            elif light.event == _TOOL and place - 1 not in self._calls:
                loose.append(place)
        for place in loose:
            light = self._found[place]
            queue = waiting.get((_key(light.span_id), light.function)) if isinstance(light.function, str) else None
            if queue:
                self._calls[queue.popleft()] = place

    def _span(self, begin: int, call: int | None) -> None:
        """A span, or a call that has one. It is where the first event of it is."""
        if begin in self._told:
            return
        self._told.add(begin)
        light, end = self._found[begin], self._ended.get(begin)
        ident, parent = self._ident(begin), self._parent(begin)
        last = None if end is None else self._path(end)
        if call is not None:
            self._told.add(call)
            at = self._weaver.at(event=self._path(call), begin=self._path(begin), end=last)
            self._weaver.add(self._found[call], ident, parent, at)
            return
        operation = span_kind(light.type)
        name = word(light.name) or word(light.type) or "span"
        duration = between(moment(light.timestamp), moment(self._found[end].timestamp)) if end is not None else None
        self._weaver.spans.append(
            Span(
                id=ident,
                name=name[:PREVIEW],
                operation=operation,
                parent_id=parent,
                status=Status.UNKNOWN if end is None else Status.OK,
                status_source=StatusSource.DERIVED,
                started_at=_start(light),
                duration_ms=duration,
                note=(word(light.type) or "")[:PREVIEW]
                if light.type != light.name and operation is Operation.OTHER
                else "",
                at=self._weaver.at(begin=self._path(begin), end=last),
            )
        )

    def _parent(self, place: int) -> str | None:
        """The span that an event is in, or a span is below: as it says, else by the order of steps."""
        light = self._found[place]
        named = light.parent_id if light.event == "span_begin" else light.span_id
        if isinstance(named, str) and (above := self._opened.get(named)) is not None and above != place:
            return self._ident(above)
        return self._above[place]

    def _path(self, place: int) -> tuple[int, ...]:
        return (*self._scope.path, place)

    def _at(self, place: int) -> At:
        return self._weaver.at(event=self._path(place))

    def _ident(self, place: int) -> str:
        return ".".join(str(number + 1) for number in self._path(place))


def _key(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _start(light: Light) -> float | None:
    return moment(light.timestamp)
