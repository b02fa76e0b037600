"""The records of a LatticeFlow trace (Open Responses): items and events, their order and links.

Fields are those of `latticeflow-core` 3.17. Upstream's default dump leaves out every defaulted field, which are the
words that distinguish records (`type`, `role`, `FORMAT`): then the kind follows from the keys that are there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, ClassVar, Final, TypeVar

import msgspec
import orjson
from msgspec import Raw, Struct

from tracetui.errors import FormatError
from tracetui.formats.document import Outline
from tracetui.formats.scalars import mapping, moment, sequence
from tracetui.formats.schema import NULL, Finite, Loose, Natural, Schema, plain
from tracetui.model import Link, Usage

ROLE_UNKNOWN: Final = "unknown"
CUSTOM_TASK: Final = "custom_task_message"
"""An item of a custom task, either input or output."""
ITEM_KINDS: Final = frozenset(
    ["message", "function_call", "function_call_output", "custom_task_input_message", "custom_task_output_message"]
)
EVENT_KINDS: Final = frozenset(
    [
        "message_event",
        "function_call_event",
        "model_call_event",
        "span_begin",
        "span_end",
        "compaction",
        "error",
        "custom",
    ]
)

Id = str | int | None


class Part(Struct, gc=False):
    """A part of a message; only those of an answer have `annotations`, even in a dump without defaults."""

    text: str | None = None
    refusal: str | None = None
    annotations: Raw = NULL
    image_url: Any = None
    file_id: Any = None
    filename: Any = None


class Item(Struct, gc=False):
    """One item of a conversation. None: not there, or null."""

    other_fields: ClassVar[str] = "created_by original_call_id"
    type: str | None = None
    id: Id = None
    role: str | None = None
    status: str | None = None
    content: list[Part | Loose] | dict[str, Any] | bool | int | float | str | None = None
    """Of a message its text or parts, of a custom task any value."""
    call_id: Id = None
    name: str | None = None
    arguments: Any = None
    output: Raw = NULL

    @property
    def kind(self) -> str:
        """One of `ITEM_KINDS`, the unknown word of a `type`, `CUSTOM_TASK` without one, or "" for none of them."""
        if self.type is not None:
            return self.type
        if self.call_id is not None:
            if not is_missing(self.output):
                return "function_call_output"
            if self.name is not None or self.arguments is not None:
                return "function_call"
        if self.content is None:
            return ""
        return "message" if self.status is not None or self.role is not None else CUSTOM_TASK

    @property
    def text(self) -> str:
        """The plain text of a message: its text parts joined by newlines."""
        content = self.content
        if isinstance(content, list):
            texts = [
                part if isinstance(part, str) else part.refusal if part.text is None else part.text
                for part in content
                if isinstance(part, Part | str)
            ]
            return "\n".join([text for text in texts if text is not None])
        return content if isinstance(content, str) else ""


class TokenUsage(Struct, gc=False):
    num_prompt_tokens: Natural | None = None
    num_completion_tokens: Natural | None = None
    total_tokens: Natural | None = None

    @property
    def usage(self) -> Usage | None:
        """Tokens of one call; the total is their sum where the trace has none."""
        prompt, completion, total = self.num_prompt_tokens, self.num_completion_tokens, self.total_tokens
        if total is None and prompt is not None and completion is not None:
            total = prompt + completion
        return Usage(input_tokens=prompt, output_tokens=completion, total_tokens=total) or None


class Event(Struct, gc=False):
    """One event. Fields that only its body needs stay undecoded, such as the input context, repeated in every call."""

    other_fields: ClassVar[str] = "metadata tools traceback"
    type: str | None = None
    id: Id = None
    span_id: Id = None
    timestamp: str | None = None
    item: Item | Loose = None
    model_call_id: Id = None
    call_id: Id = None
    function: str | None = None
    arguments: Any = None
    result: Raw = NULL
    status: str | None = None
    working_time: Finite | None = None
    """Seconds."""
    error: Any = None
    agent: str | None = None
    agent_span_id: Id = None
    model: str | None = None
    input_context: Raw = NULL
    output_items: list[Item | Loose] | None = None
    usage: TokenUsage | Loose = None
    total_time: Finite | None = None
    """Seconds."""
    parent_span_id: Id = None
    name: str | None = None
    span_type: str | None = None
    strategy: str | None = None
    tokens_before: Natural | None = None
    tokens_after: Natural | None = None
    message: Any = None
    data: Raw = NULL

    @property
    def kind(self) -> str:
        """One of `EVENT_KINDS`, the unknown word of a `type`, or "" where the keys fit none of them."""
        if self.type is not None:
            return self.type
        if self.item is not None:
            return "message_event"
        if self.function is not None and self.call_id is not None:
            return "function_call_event"
        if self.model is not None and self.input_context is not NULL:
            return "model_call_event"
        if self.name is not None:
            return "custom" if self.data is not NULL else "span_begin" if self.span_id is not None else ""
        if self.strategy is not None:
            return "compaction"
        if self.message is not None:
            return "error"
        return "span_end" if self.span_id is not None else ""

    @property
    def message_item(self) -> Item:
        """`item`, an empty one where that is none."""
        return self.item if isinstance(self.item, Item) else Item()

    @property
    def outputs(self) -> list[Item]:
        """The output of a model call."""
        return [output if isinstance(output, Item) else Item() for output in self.output_items or ()]


ITEMS: Final = Schema[Item](Item)
EVENTS: Final = Schema[Event](Event)

Piece = Any
"""A part of a document: `msgspec.Raw` while it is undecoded JSON, else the value itself (leniently read documents)."""

R = TypeVar("R")

_objects: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_arrays: Final = msgspec.json.Decoder(list[Raw]).decode


def fields(piece: Piece) -> dict[str, Piece] | None:
    """The members of an object, undecoded; None if it is none."""
    members = _opened(piece, _objects)
    return members if isinstance(members, dict) else None


def elements(piece: Piece) -> list[Piece] | None:
    """The elements of an array, undecoded; None if it is none."""
    items = _opened(piece, _arrays)
    return items if isinstance(items, list) else None


def _opened(piece: Piece, decode: Callable[[Raw], Any]) -> Any:
    try:
        return decode(piece) if isinstance(piece, Raw) else piece
    except (ValueError, RecursionError):
        return None


def record(kind: Schema[R], piece: Piece) -> R:
    """A piece as a record of that kind; an empty one if it is no object, or cannot be read."""
    if not isinstance(piece, Raw):
        return kind.convert(piece, {})
    try:
        decoded = kind.decode(bytes(piece), {})[0]
    except FormatError:
        decoded = None
    return kind.convert({}, {}) if decoded is None else decoded


def content_of(piece: Piece) -> Any:
    """The `content` of an item, or of the item of an event, with all that is in it."""
    value = mapping(plain(piece))
    return mapping(value.get("item", value)).get("content")


def is_missing(raw: Raw) -> bool:
    """True for a value that is not there, or null."""
    return raw is NULL or raw == NULL


def roles(items: Sequence[Item]) -> list[str]:
    """The role of each item, "" for those that are no message.

    Without `role` a message is the assistant's if a part of it has `annotations`, else the user's. Several such ones
    before any user's: all but the last may as well be system prompts, their role is `ROLE_UNKNOWN`.
    """
    named = ["" if item.kind != "message" else item.role or _inferred_role(item) for item in items]
    user_seen = False
    undecided = -1  # a message without a role, before any user's
    for i, role in enumerate(named):
        if not role:
            continue
        if undecided >= 0:
            named[undecided] = ROLE_UNKNOWN if role in ("?", "user") else "user"
            user_seen = user_seen or named[undecided] == "user"
            undecided = -1
        if role == "?" and user_seen:
            named[i] = "user"
        elif role == "?":
            undecided = i
        user_seen = user_seen or role == "user"
    if undecided >= 0:
        named[undecided] = "user"
    return named


def _inferred_role(message: Item) -> str:
    parts = message.content if isinstance(message.content, list) else []
    answered = any(isinstance(part, Part) and part.annotations is not NULL for part in parts)
    return "assistant" if answered else "?"


def milliseconds(seconds: Any) -> float | None:
    """A duration in seconds, as milliseconds; None for other values."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e15:
        return None
    return round(float(seconds) * 1000, 3)


def as_text(value: Any) -> str:
    """A value as text: itself, or JSON if possible."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # not JSON, or too deep
        return type(value).__name__


def ident(value: Id) -> str | None:
    """An id as text; None where there is none."""
    return value or None if isinstance(value, str) else None if value is None else str(value)


# ---- order of records

Order = tuple[int, int, int]
LAST: Final = 1 << 60
LONGEST_ID: Final = 200
"""Characters of an id that may be part of an address."""


class EventEntry(msgspec.Struct, gc=False):
    """One event with its number in the file, from 0."""

    index: int
    record: Event
    piece: Piece
    kind: str
    span: str | None
    """Id of the span that it belongs to."""
    role: str = ""
    more: tuple[tuple[str, Piece], ...] = ()
    """Given items that repeat it, or the record that ends the span."""
    id: str = ""
    links: list[Link] = []


class ItemEntry(msgspec.Struct, gc=False):
    """One item of the root conversation."""

    record: Item
    piece: Piece
    kind: str
    role: str = ""
    index: int = 0
    order: Order | None = None
    """Where among the events it is shown; None where an event shows it."""


def _by_time(events: list[EventEntry]) -> list[EventEntry]:
    """Events in the order of their times; one without a time stays behind the one before it."""
    times, latest = list[float](), -inf
    for event in events:
        time = moment(event.record.timestamp)
        latest = latest if time is None else time
        times.append(latest)
    return [event for _, event in sorted(zip(times, events, strict=True), key=lambda pair: pair[0])]


class Records:
    """All records of a trace, in order."""

    def __init__(self, trace: Outline) -> None:
        self.events = [
            EventEntry(entry.index, entry.value, entry.raw, entry.value.kind, ident(entry.value.span_id))
            for entry in trace.records("events", EVENTS)
        ]
        self.events = _by_time(self.events)
        self.own_span = ident(plain(trace.fields.get("span_id", NULL)))
        """The span that a trace is, which was taken out of another one: it begins there."""
        self.begins, self.ends = self._first("span_begin"), self._first("span_end")
        for span, end in self.ends.items():
            if span in self.begins:
                self.begins[span].more = (("span_end", end.piece),)
        self.scope = self._find_scope()
        """The span of the root conversation; None for events without a span."""
        self._root = [event for event in self.events if event.span == self.scope]
        self._has_messages = any(event.kind == "message_event" for event in self.events)
        self._set_event_roles()
        given = [_entry(item.value, item.raw) for item in trace.records("items", ITEMS)]
        self.items = given or self._derived_items()
        if given or not self._has_messages:
            _set_item_roles(self.items)
            self._arrange(given=bool(given))
        self._ids: set[str] = set()
        for span, begin in self.begins.items():
            begin.id = self.claim_id(span, f"event-{begin.index}")
        for event in self.events:
            event.id = event.id or self.claim_id(event.record.id, f"event-{event.index}")

    def _first(self, kind: str) -> dict[str, EventEntry]:
        entries: dict[str, EventEntry] = {}
        for event in self.events:
            if event.kind == kind and event.span is not None:
                entries.setdefault(event.span, event)
        return entries

    def _find_scope(self) -> str | None:
        """None, or the one span around everything: that of a child trace, or where an importer put all content."""
        if self.own_span is not None and self.own_span not in self.begins:
            return self.own_span
        content = ("message_event", "function_call_event", "model_call_event")
        if any(event.span is None for event in self.events if event.kind in content):
            return None
        tops = [span for span, begin in self.begins.items() if ident(begin.record.parent_span_id) not in self.begins]
        return tops[0] if len(tops) == 1 else None

    def _set_event_roles(self) -> None:
        """Roles of the messages that entered, inferred within each span where they are not recorded."""
        spans: dict[str | None, list[EventEntry]] = defaultdict(list)
        for event in self.events if self._has_messages else ():
            if event.kind == "message_event":
                spans[event.span].append(event)
        for entered in spans.values():
            for event, role in zip(entered, roles([message.record.message_item for message in entered]), strict=True):
                event.role = role

    def _derived_items(self) -> list[ItemEntry]:
        """Items as `Trace.from_events` derives them: from messages and calls, else from the model calls."""
        if not self._has_messages:
            return self._items_of_model_calls()
        items = []
        for event in self._root:
            record = event.record
            if event.kind == "message_event":
                item = record.message_item
                items.append(ItemEntry(item, event.piece, item.kind, event.role))
            elif event.kind == "function_call_event":
                call = Item(call_id=record.call_id, name=record.function, status=record.status)
                items.append(ItemEntry(call, event.piece, "function_call"))
        return items

    def _items_of_model_calls(self) -> list[ItemEntry]:
        """The last context and the items after it; items that a compaction removed from it come first."""
        items: list[ItemEntry] = []
        last: EventEntry | None = None
        trimmed: list[ItemEntry] = []
        for event in self._root:
            if event.kind == "model_call_event":
                if trimmed:
                    items.extend(_removed(trimmed, _context(event)))
                    trimmed = []
                last = event
            elif event.kind == "compaction" and last is not None:
                before = [*_context(last), *_outputs(last)]
                if event.record.strategy == "summary":
                    items.extend(before)
                    last = None
                elif event.record.strategy == "trim":
                    trimmed, last = before, None
        return items if last is None else [*items, *_context(last), *_outputs(last)]

    def _arrange(self, *, given: bool) -> None:
        """Find the event that shows each item; insert the others between the events."""
        index = _EventIndex(self._root)
        anchors: list[int | None] = []
        for k, item in enumerate(self.items):
            item.index = k
            event, anchor = index.match(item) if self._root else (None, None)
            anchors.append(anchor)
            if event is None:
                item.order = (anchor, 1, k) if anchor is not None else (LAST, 0, k)
            elif given:
                event.more = (*event.more, (item.kind or "item", item.piece))
        following = LAST if any(anchor is not None for anchor in anchors) else -1
        for item, anchor in zip(reversed(self.items), reversed(anchors), strict=True):
            if anchor is not None:
                following = anchor
            elif item.order is not None:
                item.order = (following, -1, item.index)

    # -- links

    def claim_id(self, own: Id, otherwise: str) -> str:
        """`own` if it is an id that no other span of the run has, else `otherwise`."""
        name = ident(own) or otherwise
        if name in self._ids or len(name) > LONGEST_ID:
            name = otherwise
        while name in self._ids:
            name += "~"
        self._ids.add(name)
        return name

    def outputs_of_calls(self) -> dict[str, list[ItemEntry]]:
        """Outputs that no event shows, by the call that they answer."""
        outputs: dict[str, list[ItemEntry]] = defaultdict(list)
        calls = {str(item.record.call_id) for item in self.items if item.kind == "function_call" and item.order}
        for item in self.items:
            if item.kind == "function_call_output" and item.order and (call_id := str(item.record.call_id)) in calls:
                outputs[call_id].append(item)
        return outputs

    def hand_offs(self) -> dict[str, EventEntry]:
        """The call that started each sub-agent, by the agent's span."""
        calls: dict[str, EventEntry] = {}
        for event in self.events:
            span = ident(event.record.agent_span_id) if event.kind == "function_call_event" else None
            if span is not None and span in self.begins and span != event.span:
                calls.setdefault(span, event)
        return calls

    def link(self, handed: dict[str, EventEntry]) -> None:
        """Links in both directions: between a model call and its output, a call and its sub-agent."""
        by_id: dict[str, EventEntry] = {}
        by_output: dict[str, EventEntry] = {}
        for event in self.events:
            if event.kind == "model_call_event":
                if (name := ident(event.record.id)) is not None:
                    by_id.setdefault(name, event)
                for item in event.record.outputs:
                    if (name := ident(item.call_id) or ident(item.id)) is not None:
                        by_output.setdefault(name, event)
        for event in self.events:
            record = event.record
            if event.kind == "message_event":
                produced, label = record.message_item.id, "message"
            elif event.kind == "function_call_event":
                produced, label = record.call_id, f"tool call {record.function}"
            else:
                continue
            model = by_id.get(ident(record.model_call_id) or "") or by_output.get(ident(produced) or "")
            if model is not None:
                _link(event, "model call", model, label)
        for span, call in handed.items():
            _link(call, "sub-agent", self.begins[span], "started by")


def _link(from_event: EventEntry, label: str, to_event: EventEntry, back: str) -> None:
    from_event.links.append(Link(label, to_event.id))
    to_event.links.append(Link(back, from_event.id))


def _entry(item: Item, piece: Piece) -> ItemEntry:
    return ItemEntry(item, piece, item.kind)


def _set_item_roles(items: list[ItemEntry]) -> None:
    for item, role in zip(items, roles([item.record for item in items]), strict=True):
        item.role = role


def _context(event: EventEntry) -> list[ItemEntry]:
    within = event.record.input_context
    pieces = elements(within)
    if pieces is None:  # lone surrogates
        pieces = sequence(plain(within))
    return [_entry(record(ITEMS, piece), piece) for piece in pieces]


def _outputs(event: EventEntry) -> list[ItemEntry]:
    return [_entry(item, event.piece) for item in event.record.outputs]


def _removed(before: list[ItemEntry], after: list[ItemEntry]) -> list[ItemEntry]:
    """The items that a trim removed from the front: all before the first that survived."""
    if not after:
        return []
    survivor = after[0].record
    same_id = [i for i, item in enumerate(before) if survivor.id is not None and item.record.id == survivor.id]
    same = same_id or [i for i, item in enumerate(before) if item.record == survivor]
    return before[: same[0]] if same else []


class _EventIndex:
    """Events of the root conversation, by keys that they share with items."""

    def __init__(self, events: list[EventEntry]) -> None:
        self._calls: dict[str, EventEntry] = {}
        self._asked: dict[str, EventEntry] = {}
        self._messages: dict[tuple[bool | None, str], list[tuple[int, EventEntry]]] = defaultdict(list)
        self._used: set[int] = set()
        self._number = 0
        for event in events:
            if event.kind == "function_call_event":
                self._calls.setdefault(str(event.record.call_id), event)
            elif event.kind == "message_event":
                self._add(event.record.message_item, event, event.role)
        for event in events:
            for item in event.record.outputs if event.kind == "model_call_event" else ():
                if item.kind == "function_call":
                    self._asked.setdefault(str(item.call_id), event)
                else:
                    self._add(item, event, "assistant")

    def _add(self, item: Item, event: EventEntry, role: str) -> None:
        self._number += 1
        for key in _keys(item, role):
            self._messages[key].append((self._number, event))

    def match(self, item: ItemEntry) -> tuple[EventEntry | None, int | None]:
        """The event that shows `item`, and the number of its neighbor event."""
        if item.kind in ("function_call", "function_call_output"):
            call_id = str(item.record.call_id)
            call, asked = self._calls.get(call_id), self._asked.get(call_id)
            anchor = asked if call is None or (asked is not None and asked.index < call.index) else call
            return call, None if anchor is None else anchor.index
        for key in _keys(item.record, item.role):
            for number, event in self._messages.get(key, ()):
                if number not in self._used:
                    self._used.add(number)
                    return event, event.index
        return None, None


def _keys(item: Item, role: str) -> Iterator[tuple[bool | None, str]]:
    """The key of a message: its id, else its author (assistant or not) and text."""
    if (name := ident(item.id)) is not None:
        yield None, name
    yield role == "assistant", item.text or str(item.content)[:1000]
