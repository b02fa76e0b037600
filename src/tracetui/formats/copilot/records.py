"""Events of a Copilot session: one JSON object a line, ``{"type", "data", "id", "timestamp", "parentId", "agentId"?}``.

`parentId` is the event before, not what an event is within; no field can be trusted.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

NAMELESS: Final = "?"
"""The kind of an event that does not say any."""
_EMPTY: Final[dict[str, Any]] = {}


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: offset, size and checksum of each of its lines, one after the other."""

    places: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its lines."""
        return sum(self.places[1::3])


class Event(NamedTuple):
    """One event: what kind it is, and what it says."""

    kind: str
    data: dict[str, Any]
    outer: dict[str, Any]
    """The whole object on the line."""

    @property
    def rest(self) -> dict[str, Any]:
        """What the line says besides kind and data."""
        told = isinstance(self.outer.get("data"), dict)
        left_out = {"data"} if told else set()
        if self.kind != NAMELESS:
            left_out.add("type")
        return {key: value for key, value in self.outer.items() if key not in left_out}

    def fields(self, *names: str) -> dict[str, Any]:
        """All that it says but its kind and these fields of its data; ``event.id`` is what surrounds a field `id`."""
        found = {key: value for key, value in self.data.items() if key not in names}
        found |= {f"event.{key}" if key in found else key: value for key, value in self.rest.items()}
        return {key: _opaque(key, value) for key, value in found.items()}


def _opaque(key: str, value: Any) -> Any:
    """What is encrypted is told and not shown."""
    if key in ("encryptedContent", "reasoningOpaque") and isinstance(value, str) and value:
        return f"encrypted, {len(value)} characters"
    return value


def event_of(value: dict[str, Any]) -> Event:
    """The event that an object on a line is."""
    kind, data = value.get("type"), value.get("data")
    return Event(
        kind if isinstance(kind, str) and kind else NAMELESS, data if isinstance(data, dict) else _EMPTY, value
    )


def whole(value: Any) -> int | None:
    """`value` if it is a whole number of at most 53 bits that counts something, also one written with a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None
