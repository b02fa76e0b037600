"""Records of a Codex rollout: one JSON object a line, ``{"timestamp", "type", "payload"}``; no field can be trusted.

Before the envelope (until mid 2025) a line was the payload itself, and the first one ``{"id", "timestamp",
"instructions"}``: `Record` reads both.
"""

from __future__ import annotations

from datetime import UTC, datetime
from sys import intern
from typing import Any, Final, NamedTuple

import msgspec

PREVIEW: Final = 120
"""Characters of a preview, as the model asks for."""
META: Final = "session_meta"
ITEM: Final = "response_item"
EVENT: Final = "event_msg"
USAGE: Final = "token_usage_record"
KINDS: Final = frozenset({META, ITEM, EVENT, USAGE, "turn_context", "compacted", "world_state"})
"""Kinds of records that tell a rollout from other lines."""
_SHARED: Final = 64
_TIME_LIMIT: Final = 64
_EMPTY: Final[dict[str, Any]] = {}


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: offset, size and checksum of each of its lines, one after the other."""

    places: tuple[int, ...]
    path: str | None = None
    """The file, where it is not that of the run."""

    @property
    def size(self) -> int:
        """Bytes of its lines."""
        return sum(self.places[1::3])


class Record(NamedTuple):
    """One record: what kind it is, and what it says."""

    kind: str
    payload: dict[str, Any]
    outer: dict[str, Any]
    """The object that the payload is in, or what a payload without one says besides."""
    type: str
    """The payload's own kind, "" where it has none."""
    name: str
    """What the record is called: the kind of its item, of its payload, else its own."""

    @property
    def envelope(self) -> dict[str, Any]:
        """All but kind and payload."""
        return {key: value for key, value in self.outer.items() if key not in ("type", "payload")}


def record_of(value: dict[str, Any]) -> Record:
    """The record that an object on a line is, in each dialect."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):
        return _record(kind, payload, value)
    if isinstance(kind, str) and kind in KINDS:
        return _record(kind, {}, {key: item for key, item in value.items() if key != "type"})
    if isinstance(value.get("role"), str) or isinstance(kind, str):
        bare = value if isinstance(kind, str) else {"type": "message", **value}
        return _record(ITEM, {key: item for key, item in bare.items() if key != "timestamp"}, _stamp(value))
    if isinstance(value.get("id"), str) and "timestamp" in value:
        return _record(META, value, _stamp(value))
    kind = value.get("record_type")
    name = kind if isinstance(kind, str) and kind else "?"
    return Record(name, value, _EMPTY, "", name)


def _record(kind: str, payload: dict[str, Any], outer: dict[str, Any]) -> Record:
    own = payload.get("type")
    if not isinstance(own, str):
        return Record(kind, payload, outer, "", kind)
    name = own
    if own == "item_completed":
        item = payload.get("item")
        found = item.get("type") if isinstance(item, dict) else None
        name = found if isinstance(found, str) and found else own
    return Record(kind, payload, outer, own, name or kind)


def _stamp(value: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": value["timestamp"]} if "timestamp" in value else {}


def string(value: Any) -> str | None:
    """`value` if it is text, even empty text."""
    return value if isinstance(value, str) else None


def word(value: Any) -> str | None:
    """`value` if it is text with something in it; short ones that many spans have are kept once."""
    if not isinstance(value, str) or not value:
        return None
    return intern(value) if len(value) <= _SHARED else value


def child(value: Any, name: str) -> dict[str, Any]:
    """The object in field `name` of `value`; an empty one for anything else."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else _EMPTY


def items(value: Any) -> list[Any]:
    """`value` if it is an array."""
    return value if isinstance(value, list) else []


def whole(value: Any) -> int | None:
    """`value` if it is a whole number of at most 64 bits."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def moment(value: Any) -> float | None:
    """An ISO 8601 time in seconds since the epoch; one without a zone is UTC, as all that Codex writes is."""
    if not isinstance(value, str) or len(value) > _TIME_LIMIT:
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """`record` without the fields of those names."""
    return {key: value for key, value in record.items() if key not in names}


def text_in(content: Any) -> str:
    """The text of a message's or an output's content: text itself, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = content.get("content", content.get("text"))
        return content if isinstance(content, str) else text_in(content) if isinstance(content, list) else ""
    texts = [part.get("text") if isinstance(part, dict) else part for part in items(content)]
    return "\n".join(text for text in texts if isinstance(text, str))
