"""The order of a trace: its events, its items (given, or derived as upstream does it), and which belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.files import Document
from tracetui.formats.latticeflow.records import EVENTS, ITEMS, Event, Item, Piece, Place, R, ident
from tracetui.formats.scalars import sequence
from tracetui.formats.schema import Schema, Unknown, plain
from tracetui.model import Link, Problem

Order = tuple[int, int, int]
LAST: Final = 1 << 60


class EventAt(msgspec.Struct, gc=False):
    """One event with its number in the file, from 0, and its place."""

    index: int
    kind: str
    record: Event
    place: Place
    role: str = ""
    also: list[tuple[str, Place]] = []
    """Given items that say the same, or the record that ends the span."""
    level: str | None = None
    """Id of the span that it belongs to."""

    def __post_init__(self) -> None:
        self.level = ident(self.record.span_id)


class ItemAt(msgspec.Struct, gc=False):
    """One item of the root conversation."""

    kind: str
    record: Item
    place: Place
    role: str = ""
    index: int = 0
    order: Order | None = None
    """Where among the events it is shown; None where an event shows it."""


class Outline(msgspec.Struct):
    """A trace, sorted out but not yet translated."""

    events: list[EventAt]
    items: list[ItemAt]
    scope: str | None
    """The span whose content is the root conversation; None for what belongs to no span."""
    begins: dict[str, EventAt]
    ends: dict[str, EventAt]
    problems: list[Problem]
    unknown: Unknown
    """How often each unknown field was met."""


def outline(document: Document, path: str) -> Outline:
    """Read all records of a trace and put them in order."""
    problems: list[Problem] = []
    unknown: Unknown = {}
    events = [
        EventAt(index, records.event_kind(record), record, place)
        for index, (record, place) in enumerate(_records(document, "events", EVENTS, path, problems, unknown))
    ]
    begins = _first(event for event in events if event.kind == "span_begin")
    ends = _first(event for event in events if event.kind == "span_end")
    for span, end in ends.items():
        if span in begins:
            begins[span].also = [("span_end", end.place)]
    scope = _scope(events, begins)
    _set_roles(events)
    given = _records(document, "items", ITEMS, path, problems, unknown)
    if given:
        items = _with_roles([ItemAt(records.item_kind(record), record, place) for record, place in given])
    else:
        items = _derived(document, events, scope)
    if given or not any(event.kind == "message_event" for event in events):
        _arrange(items, [event for event in events if event.level == scope], given=bool(given))
    return Outline(events, items, scope, begins, ends, problems, unknown)


def _records(
    document: Document, name: str, kind: Schema[R], path: str, problems: list[Problem], unknown: Unknown
) -> list[tuple[R, Place]]:
    """The elements of a field of the trace as records, with their places."""
    found = []
    for index, (piece, place) in enumerate(document.array(name)):
        try:
            record, reason = records.record(kind, piece, unknown), "not an object"
        except FormatError as error:
            record, reason = None, error.reason
        if record is None:
            problems.append(Problem(path, _where(document, f"{name}[{index}]"), reason))
        found.append((kind.convert({}, unknown) if record is None else record, place))
    return found


def _where(document: Document, inside: str) -> str:
    return f"{document.where}, {inside}" if document.where else inside


def _with_roles(items: list[ItemAt]) -> list[ItemAt]:
    for one, role in zip(items, records.roles([one.record for one in items]), strict=True):
        one.role = role
    return items


def _first(events: Iterable[EventAt]) -> dict[str, EventAt]:
    found: dict[str, EventAt] = {}
    for event in events:
        if event.level is not None:
            found.setdefault(event.level, event)
    return found


def _scope(events: list[EventAt], begins: dict[str, EventAt]) -> str | None:
    """None, or the one span around everything where an importer put all content into it."""
    content = ("message_event", "function_call_event", "model_call_event")
    if any(event.level is None for event in events if event.kind in content):
        return None
    tops = [span for span, begin in begins.items() if ident(begin.record.parent_span_id) not in begins]
    return tops[0] if len(tops) == 1 else None


def _set_roles(events: list[EventAt]) -> None:
    """Roles of the messages that entered, inferred within each span where they are not recorded."""
    levels: dict[str | None, list[tuple[EventAt, Item]]] = defaultdict(list)
    for event in events:
        if event.kind == "message_event":
            levels[event.level].append((event, event.record.said))
    for entered in levels.values():
        for (event, _), role in zip(entered, records.roles([item for _, item in entered]), strict=True):
            event.role = role


def _derived(document: Document, events: list[EventAt], scope: str | None) -> list[ItemAt]:
    """Items as `Trace.from_events` derives them: from what entered and was called, else from the model calls."""
    own = [event for event in events if event.level == scope]
    if not any(event.kind == "message_event" for event in events):
        return _with_roles(_from_model_calls(document, own))
    items = []
    for event in own:
        record = event.record
        if event.kind == "message_event":
            item = record.said
            items.append(ItemAt(records.item_kind(item), item, event.place, event.role))
        elif event.kind == "function_call_event":
            called = Item(call_id=record.call_id, name=record.function, status=record.status)
            items.append(ItemAt("function_call", called, event.place))
    return items


def _from_model_calls(document: Document, events: list[EventAt]) -> list[ItemAt]:
    """The last context and what followed it; what a compaction removed from it comes before."""
    items: list[ItemAt] = []
    last: EventAt | None = None
    trimmed: list[ItemAt] = []
    for event in events:
        if event.kind == "model_call_event":
            if trimmed:
                items.extend(_dropped(trimmed, _context(document, event)))
                trimmed = []
            last = event
        elif event.kind == "compaction" and last is not None:
            before = [*_context(document, last), *_produced(last)]
            if event.record.strategy == "summary":
                items.extend(before)
                last = None
            elif event.record.strategy == "trim":
                trimmed, last = before, None
    return items if last is None else [*items, *_context(document, last), *_produced(last)]


def _context(document: Document, event: EventAt) -> list[ItemAt]:
    within: Piece = event.record.input_context
    found, made = records.elements(within), []
    if found is None:  # lone surrogates in a document that was read leniently
        found = sequence(plain(within))
    for piece, place in document.places(found, within, event.place, "input_context"):
        item = records.as_item(piece)
        made.append(ItemAt(records.item_kind(item), item, place))
    return made


def _produced(event: EventAt) -> list[ItemAt]:
    return [ItemAt(records.item_kind(item), item, event.place) for item in event.record.outputs]


def _dropped(before: list[ItemAt], after: list[ItemAt]) -> list[ItemAt]:
    """What a trim took from the front: all before the first item that survived."""
    if not after:
        return []
    survivor = after[0].record
    same_id = [i for i, item in enumerate(before) if survivor.id is not None and item.record.id == survivor.id]
    same = same_id or [i for i, item in enumerate(before) if item.record == survivor]
    return before[: same[0]] if same else []


def _arrange(items: list[ItemAt], events: list[EventAt], *, given: bool) -> None:
    """Find the event that shows each item; the others get a place among the events."""
    known = _Known(events)
    anchors: list[int | None] = []
    for k, item in enumerate(items):
        item.index = k
        shown, anchor = known.match(item)
        anchors.append(anchor)
        if shown is not None:
            if given:
                shown.also = [*shown.also, (item.kind or "item", item.place)]
        else:
            item.order = (anchor, 1, k) if anchor is not None else (LAST, 0, k)
    following = LAST if any(anchor is not None for anchor in anchors) else -1
    for k in range(len(items) - 1, -1, -1):
        anchor = anchors[k]
        if anchor is not None:
            following = anchor
        elif items[k].order is not None:
            items[k].order = (following, -1, k)


class _Known:
    """What the events of the root conversation say, by what an item has in common with them."""

    def __init__(self, events: list[EventAt]) -> None:
        self._calls: dict[str, EventAt] = {}
        self._asked: dict[str, EventAt] = {}
        self._said: dict[tuple[bool, str], list[tuple[int, EventAt]]] = defaultdict(list)
        self._used: set[int] = set()
        self._number = 0
        for event in events:
            if event.kind == "function_call_event":
                self._calls.setdefault(str(event.record.call_id), event)
            elif event.kind == "message_event":
                self._add(event.record.said, event, event.role)
        for event in events:
            for item in event.record.outputs if event.kind == "model_call_event" else ():
                if records.item_kind(item) == "function_call":
                    self._asked.setdefault(str(item.call_id), event)
                else:
                    self._add(item, event, "assistant")

    def _add(self, item: Item, event: EventAt, role: str) -> None:
        self._number += 1
        for key in _marks(item, role):
            self._said[key].append((self._number, event))

    def match(self, item: ItemAt) -> tuple[EventAt | None, int | None]:
        """The event that shows `item`, and the number of the event that it stands with."""
        if item.kind in ("function_call", "function_call_output"):
            call_id = str(item.record.call_id)
            call, asked = self._calls.get(call_id), self._asked.get(call_id)
            anchor = asked if call is None or (asked is not None and asked.index < call.index) else call
            return call, None if anchor is None else anchor.index
        for key in _marks(item.record, item.role):
            for number, event in self._said.get(key, ()):
                if number not in self._used:
                    self._used.add(number)
                    return event, event.index
        return None, None


def _marks(item: Item, role: str) -> list[tuple[bool, str]]:
    """By what a message is known again: its id where it has one, else the assistant's or another's text."""
    name = ident(item.id)
    text = (role == "assistant", "text " + (records.text_of(item) or str(item.content)[:1000]))
    return [text] if name is None else [(False, "id " + name), text]


# ---- what belongs together


LONGEST: Final = 200
"""Characters of an id that may be part of an address."""


class Names:
    """Ids of spans, unique within the run: the trace's own where they are unique, else numbered ones."""

    def __init__(self, outline: Outline) -> None:
        self._used: set[str] = set()
        begins = {begin.index: self.claim(span, f"event-{begin.index}") for span, begin in outline.begins.items()}
        self.events = [
            begins[event.index] if event.index in begins else self.claim(event.record.id, f"event-{event.index}")
            for event in outline.events
        ]

    def claim(self, own: Any, otherwise: str) -> str:
        """`own` if it is an id that nobody has, else `otherwise`."""
        name = ident(own) or otherwise
        if name in self._used or len(name) > LONGEST:
            name = otherwise
        while name in self._used:
            name += "~"
        self._used.add(name)
        return name


def answers(outline: Outline) -> dict[str, list[ItemAt]]:
    """Outputs that no event shows, by the call that they answer."""
    found: dict[str, list[ItemAt]] = defaultdict(list)
    calls = {str(item.record.call_id) for item in outline.items if item.kind == "function_call" and item.order}
    for item in outline.items:
        call_id = str(item.record.call_id)
        if item.kind == "function_call_output" and item.order is not None and call_id in calls:
            found[call_id].append(item)
    return found


def hand_offs(outline: Outline) -> dict[str, EventAt]:
    """The call that started each sub-agent, by the agent's span."""
    found: dict[str, EventAt] = {}
    for event in outline.events:
        span = ident(event.record.agent_span_id) if event.kind == "function_call_event" else None
        if span is not None and span in outline.begins and span != event.level:
            found.setdefault(span, event)
    return found


def link_up(outline: Outline, ids: list[str], handed: dict[str, EventAt]) -> dict[str, list[Link]]:
    """Jumps in both directions: between a model call and what it asked for or said, a call and its sub-agent."""
    links: dict[str, list[Link]] = defaultdict(list)
    models, by_output = _model_calls(outline, ids)
    for event in outline.events:
        record, own = event.record, ids[event.index]
        if event.kind == "message_event":
            produced, label = record.said.id, "message"
        elif event.kind == "function_call_event":
            produced, label = record.call_id, f"tool call {record.function}"
        else:
            continue
        model = models.get(ident(record.model_call_id) or "") or by_output.get(ident(produced) or "")
        if model is not None:
            links[own].append(Link("model call", model))
            links[model].append(Link(label, own))
    for span, call in handed.items():
        agent, own = ids[outline.begins[span].index], ids[call.index]
        links[own].append(Link("sub-agent", agent))
        links[agent].append(Link("started by", own))
    return links


def _model_calls(outline: Outline, ids: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Spans of the model calls: by their own id, and by the ids of what they produced."""
    models: dict[str, str] = {}
    by_output: dict[str, str] = {}
    for event in outline.events:
        if event.kind != "model_call_event":
            continue
        own = ids[event.index]
        if (name := ident(event.record.id)) is not None:
            models.setdefault(name, own)
        for item in event.record.outputs:
            if (name := ident(item.call_id) or ident(item.id)) is not None:
                by_output.setdefault(name, own)
    return models, by_output
