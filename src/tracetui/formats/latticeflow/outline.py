"""The order of a trace: its events, its items (given, or derived as upstream does it), and which belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.files import Document
from tracetui.formats.latticeflow.records import NOWHERE, Event, Item, Piece, Place, ident
from tracetui.model import Problem

Order = tuple[int, int, int]
LAST: Final = 1 << 60


class EventAt(msgspec.Struct):
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


class ItemAt(msgspec.Struct):
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


def outline(document: Document, path: str, *, placed: bool = True) -> Outline:
    """Read all records of a trace and put them in order. Without being `placed` their bodies cannot be opened."""
    problems: list[Problem] = []
    events = _events(document, path, problems, placed=placed)
    begins = _first(event for event in events if event.kind == "span_begin")
    ends = _first(event for event in events if event.kind == "span_end")
    for span, end in ends.items():
        if span in begins:
            begins[span].also = [("span_end", end.place)]
    scope = _scope(events, begins)
    _set_roles(events)
    items = _given(document, path, problems, placed=placed)
    given = bool(items)
    if not given:
        items = _derived(document, events, scope)
    if given or not any(event.kind == "message_event" for event in events):
        _arrange(items, [event for event in events if event.level == scope], given=given)
    return Outline(events, items, scope, begins, ends, problems)


def _events(document: Document, path: str, problems: list[Problem], *, placed: bool) -> list[EventAt]:
    at_once = None if placed else records.events(document.fields.get("events"))
    if at_once is not None:
        return [EventAt(i, records.event_kind(record), record, NOWHERE) for i, record in enumerate(at_once)]
    found = []
    for index, (piece, place) in enumerate(document.array("events")):
        try:
            record = records.event(piece)
        except FormatError as error:
            record = Event()
            problems.append(Problem(path, _where(document, f"events[{index}]"), error.reason))
        found.append(EventAt(index, records.event_kind(record), record, place))
    return found


def _given(document: Document, path: str, problems: list[Problem], *, placed: bool) -> list[ItemAt]:
    at_once = None if placed else records.items(document.fields.get("items"))
    if at_once is not None:
        return _with_roles([ItemAt(records.item_kind(record), record, NOWHERE) for record in at_once])
    found = []
    for index, (piece, place) in enumerate(document.array("items")):
        try:
            record = records.item(piece)
        except FormatError as error:
            record = Item()
            problems.append(Problem(path, _where(document, f"items[{index}]"), error.reason))
        found.append(ItemAt(records.item_kind(record), record, place))
    return _with_roles(found)


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
            levels[event.level].append((event, as_item(event.record.item)))
    for entered in levels.values():
        for (event, _), role in zip(entered, records.roles([item for _, item in entered]), strict=True):
            event.role = role


def as_item(found: Any) -> Item:
    """A value as an item, an empty one if it is no object."""
    try:
        return records.item(found)
    except FormatError:
        return Item()


def outputs(event: EventAt) -> list[Item]:
    """What a model call produced."""
    found: Any = event.record.output_items
    return [as_item(one) for one in found] if isinstance(found, list) else []


def _derived(document: Document, events: list[EventAt], scope: str | None) -> list[ItemAt]:
    """Items as `Trace.from_events` derives them: from what entered and was called, else from the model calls."""
    own = [event for event in events if event.level == scope]
    if not any(event.kind == "message_event" for event in events):
        return _with_roles(_from_model_calls(document, own))
    items = []
    for event in own:
        record = event.record
        if event.kind == "message_event":
            item = as_item(record.item)
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
    path = ("events", event.index, "input_context")
    pieces = records.elements(within) or []
    if event.place is NOWHERE:
        found = [(piece, NOWHERE) for piece in pieces]
    else:
        found = document.places(pieces, within, path, event.place.offset)
    made = []
    for piece, place in found:
        item = as_item(piece)
        made.append(ItemAt(records.item_kind(item), item, place))
    return made


def _produced(event: EventAt) -> list[ItemAt]:
    return [ItemAt(records.item_kind(item), item, event.place) for item in outputs(event)]


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
                self._add(as_item(event.record.item), event, event.role)
        for event in events:
            for item in outputs(event) if event.kind == "model_call_event" else ():
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
            return call, min((event.index for event in (call, asked) if event is not None), default=None)
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
