"""Recognizes content that looks like a trace, in files that no format claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tracetui.formats.scalars import mapping, sequence

_SHAPES: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("OpenTelemetry spans", frozenset({"resourceSpans"})),
    ("OpenTelemetry spans", frozenset({"resource_spans"})),
    ("spans", frozenset({"trace_id", "span_id"})),
    ("spans", frozenset({"traceId", "spanId"})),
    ("agent steps", frozenset({"action", "observation"})),
    ("chat messages", frozenset({"role", "content"})),
    ("chat messages", frozenset({"role", "parts"})),
    ("chat messages", frozenset({"role", "tool_calls"})),
)
"""What objects with all of these fields look like."""
_EVENTS: Final = re.compile(r"(?:thread|turn|item|session|message|tool|step|response|assistant|user)[._].+")
"""Types of events that programs print about an agent: ``thread.started``, ``tool_use``."""
_TABLES: Final = re.compile(r"(?:.*_)?(?:events?|generations?|messages?|runs?|sessions?|spans?|steps?|traces?)")
_DEPTH: Final = 4
_ITEMS: Final = 4
"""Items of a list that are looked at."""
_FIELDS: Final = 64


def shape_of(values: Iterable[Any]) -> str:
    """What decoded JSON values look like, as in ``chat messages``; empty if they look like no trace."""
    for item in (item for value in values for item in _objects(value, _DEPTH)):
        for shape, names in _SHAPES:
            if names <= item.keys():
                return shape
        kind = item.get("type")
        if isinstance(kind, str) and _EVENTS.fullmatch(kind):
            return "agent events"
    return ""


def shape_of_tables(names: Iterable[str]) -> str:
    """The same of the tables of a database: two of them must be called like parts of a trace."""
    found = sorted(name for name in names if _TABLES.fullmatch(name.lower()))
    return f"tables {', '.join(found[:_ITEMS])}" if len(found) > 1 else ""


def _objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The objects in a value: the first items of lists, and fields that hold lists or objects."""
    if isinstance(value, dict):
        yield value
    below = sequence(value)[:_ITEMS] or list(mapping(value).values())[:_FIELDS]
    for item in below if depth else ():
        if isinstance(item, dict | list):
            yield from _objects(item, depth - 1)
