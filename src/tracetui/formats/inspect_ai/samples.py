"""One sample as a log holds it: its fields, its events, and what these refer to instead of repeating it.

Events share messages (``input_refs``), requests (``call_refs``) and long texts (``attachment://…``); earlier logs
have all in place, or call attachments ``tc://…``. A sample is one record, or many: its events and what they share in
pieces of a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Protocol

from tracetui.errors import FormatError
from tracetui.formats.inspect_ai.fields import Record, field, items_of, record_of, value_of
from tracetui.formats.inspect_ai.messages import Told, message_of
from tracetui.formats.scalars import whole
from tracetui.sources.base import File

MOST: Final = 100_000
"""Messages that one call may be given."""
_ATTACHED: Final = ("attachment://", "tc://")
_SHARED: Final[dict[str, tuple[str, ...]]] = {
    "attachments": (),
    "events_data": ("messages", "calls"),
    "transcript": ("events", "content"),
}
"""Fields that hold what others refer to, and under which names; of attachments every name is such a one."""

Items = list[Any]


class Pieces(Protocol):
    """A sample in pieces: how to get at its parts."""

    def items(self, part: str) -> Items:
        """The items of one of its parts, in order. Raises `FormatError`."""
        ...

    def through(self, file: File) -> None:
        """Go on through `file`, the same one opened again."""
        ...


class Sample:
    """What one sample says. What it refers to is looked up when it is asked for."""

    def __init__(self, record: Record, *, check: int, size: int, pieces: Pieces | None = None) -> None:
        """`check` and `size`: checksum and size of its bytes. `pieces`: how to get at its parts, if it is in pieces."""
        self.record = record
        self.check, self.size = check, size
        self._pieces = pieces
        self._kept: dict[str, Items] = {}
        self._told: dict[int, Told] = {}
        self._attachments: Record | None = None

    def through(self, file: File) -> None:
        """Go on reading through `file`, the same one opened again."""
        if self._pieces is not None:
            self._pieces.through(file)

    def field(self, name: str) -> Any:
        """The value of a field, None where it is missing or cannot be decoded."""
        return field(self.record, name)

    @property
    def fields(self) -> dict[str, Any]:
        """All fields but the events and what these refer to."""
        names = [name for name in self.record if name not in (*_SHARED, "events", "error_retries")]
        found = {name: resolved(self.field(name), self.attached) for name in names}
        for name, known in _SHARED.items():
            value = self.field(name)
            if isinstance(value, dict):
                value = {key: item for key, item in value.items() if key not in known} if known else None
            if value not in (None, {}):
                found[name] = value
        if self._pieces is not None and isinstance(refs := found.get("message_refs"), list):
            try:
                found["messages"] = resolved(self.messages(refs), self.attached)
            except FormatError as fault:
                found["messages"] = f"not read: {fault}"
        return found

    def events(self, attempt: int | None = None) -> Items:
        """The events of the sample, or those of one of its failed attempts."""
        if attempt is not None:
            return self._listed(self.attempt(attempt).get("events"))
        if self._pieces is not None and "events" not in self.record:
            return self._part("events")
        return self._listed(self.record.get("events")) or self._listed(self._transcript().get("events"))

    @property
    def attempts(self) -> Items:
        """The attempts that failed before this one."""
        if "error_retries" not in self._kept:
            self._kept["error_retries"] = self._listed(self.record.get("error_retries"))
        return self._kept["error_retries"]

    def attempt(self, number: int) -> Record:
        """What is said about one of them, the first of which is 1; nothing if there is none."""
        found = self.attempts
        return (record_of(found[number - 1]) or {}) if 0 < number <= len(found) else {}

    def messages(self, refs: Any) -> list[Any]:
        """The messages that `refs` mean: ranges of those that events share."""
        return [value_of(item) for _, item in self._referred("messages", refs)]

    def told(self, refs: Any) -> Iterator[Told]:
        """The same as messages: all calls of a conversation are given the same ones, each decoded once."""
        for place, item in self._referred("messages", refs):
            if place not in self._told:
                self._told[place] = message_of(resolved(value_of(item), self.attached))
            yield self._told[place]

    def calls(self, refs: Any) -> list[Any]:
        """What requests have in common, as `messages` gives it."""
        return [value_of(item) for _, item in self._referred("calls", refs)]

    def attached(self, text: str) -> str:
        """The text that `text` refers to; itself where it refers to nothing that is there."""
        name = next((text[len(how) :] for how in _ATTACHED if text.startswith(how)), None)
        if name is None:
            return text
        try:
            found = self._numbered(int(name)) if name.isdecimal() and len(name) < 10 else None
            found = field(self._named(), name) if found is None else found
        except FormatError:
            return text
        return found if isinstance(found, str) else text

    def _numbered(self, number: int) -> Any:
        """An attachment of a sample in pieces."""
        listed = self._part("attachments") if self._pieces is not None else []
        return value_of(listed[number]) if number < len(listed) else None

    def _named(self) -> Record:
        if self._attachments is None:
            holder = self.record.get("attachments") or self._transcript().get("content")
            self._attachments = (record_of(holder) if holder is not None else None) or {}
        return self._attachments

    def _transcript(self) -> Record:
        told = self.record.get("transcript")
        return (record_of(told) or {}) if told is not None else {}

    def _referred(self, part: str, refs: Any) -> Iterator[tuple[int, Any]]:
        """Items of what events share, each with its place."""
        ranges = [(whole(one[0]), whole(one[1])) for one in refs if isinstance(one, list) and len(one) == 2]
        shared = self._part(part)
        found = (i for a, b in ranges if a is not None and b is not None for i in range(max(0, a), min(b, len(shared))))
        return ((i, shared[i]) for i in islice(found, MOST))

    def _part(self, name: str) -> Items:
        if name not in self._kept:
            if self._pieces is not None:
                self._kept[name] = self._pieces.items(name)
            else:
                shared = self.record.get("events_data")
                self._kept[name] = self._listed((record_of(shared) or {}).get(name)) if shared is not None else []
        return self._kept[name]

    @staticmethod
    def _listed(item: Any) -> Items:
        return (items_of(item) if item is not None else None) or []


def resolved(value: Any, attached: Callable[[str], str]) -> Any:
    """`value` with every text in it replaced by the one that it refers to. Changes `value` itself."""
    if isinstance(value, str):
        return attached(value)
    todo = [value]
    while todo:
        item = todo.pop()
        places: Iterable[Any] = item if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in places:
            below = item[key]
            if isinstance(below, str):
                if below.startswith(_ATTACHED):
                    item[key] = attached(below)
            elif isinstance(below, dict | list):
                todo.append(below)
    return value


def sample_of(record: Record | None, *, check: int, size: int, pieces: Pieces | None = None) -> Sample:
    """The sample of that record. Raises `FormatError` if it is none."""
    if record is None:
        raise FormatError("a sample that is no JSON object")
    return Sample(record, check=check, size=size, pieces=pieces)
