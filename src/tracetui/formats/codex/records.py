"""Records of a Codex rollout: one JSON object a line, ``{"timestamp", "type", "payload"}``; no field can be trusted.

Before the envelope (until mid 2025) a line was the payload itself, and the first one ``{"id", "timestamp",
"instructions"}``: `Record` reads both.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from tracetui.formats.scalars import sequence

META: Final = "session_meta"
ITEM: Final = "response_item"
EVENT: Final = "event_msg"
USAGE: Final = "token_usage_record"
KINDS: Final = frozenset({META, ITEM, EVENT, USAGE, "turn_context", "compacted", "world_state"})
"""Kinds of records that tell a rollout from other lines."""
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


def text_in(content: Any) -> str:
    """The text of a message's or an output's content: text itself, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = content.get("content", content.get("text"))
        return content if isinstance(content, str) else text_in(content) if isinstance(content, list) else ""
    texts = [part.get("text") if isinstance(part, dict) else part for part in sequence(content)]
    return "\n".join(text for text in texts if isinstance(text, str))
