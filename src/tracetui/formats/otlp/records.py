"""Records of OTLP JSON: requests of resources of scopes of spans, and values of any kind. No field can be trusted.

JSON of OTLP has lowerCamelCase names, ids in hex and 64-bit numbers as text. What a protobuf library writes by itself
has snake_case names or ids in base64: both are read.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Undecodable
from collections.abc import Iterator
from sys import intern
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.formats.fields import Fields
from tracetui.formats.scalars import sequence

NO_TRACE: Final = "no trace id"
"""Key of the run of spans that name no trace."""
REQUEST: Final = ("resourceSpans", "resource_spans")
"""Names under which a request has its spans."""
OTHERS: Final = ("resourceLogs", "resource_logs", "resourceMetrics", "resource_metrics")
"""Names of what else is exported, which is no trace."""
_LOGS: Final = (("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records"))
"""Names of the three lists in which log records are."""
_SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
LISTS: Final = (*_SCOPES, "spans")
"""Names of lists that hold spans, in the end."""
_SCOPE: Final = ("scope", "instrumentationLibrary")
_HEX: Final = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{16}){1,2})")
_DIGITS: Final = re.compile(r"-?\d{1,19}")
_PLAIN: Final = frozenset(
    f"{kind}{end}" for kind in ("string", "bool", "double", "bytes") for end in ("Value", "_value")
)
"""Kinds of values that are what they hold."""
FIELDS: Final = Fields(
    {
        "span": (
            "attributes droppedAttributesCount droppedEventsCount droppedLinksCount dropped_attributes_count "
            "dropped_events_count dropped_links_count endTimeUnixNano end_time_unix_nano events flags kind links name "
            "parentSpanId parent_span_id spanId span_id startTimeUnixNano start_time_unix_nano status traceId "
            "traceState trace_id trace_state"
        )
    }
)
"""What the protocol knows of a span. Attributes may be called as anybody likes."""
_DEPTH: Final = 48
"""Values within values are read so far; what is deeper stays as it is written."""


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is: offset, size and checksum of its line or document, and its place in the three lists of that."""

    offset: int
    size: int
    check: int
    resource: int
    scope: int
    span: int
    logs: tuple[At, ...] = ()
    """Where log records are that tell events of it."""


class Told(NamedTuple):
    """A span, and what stands around it."""

    place: tuple[int, int, int]
    span: dict[str, Any]
    scope: dict[str, Any]
    """The object with the list that the span is in."""
    resource: dict[str, Any]
    """The object with the list that `scope` is in."""


def told_in(request: Any) -> Iterator[Told]:
    """All spans of a request."""
    for i, resource in enumerate(sequence(named(request, *REQUEST))):
        for j, scope in enumerate(sequence(named(resource, *_SCOPES))):
            for k, span in enumerate(sequence(named(scope, "spans"))):
                if isinstance(span, dict):
                    yield Told((i, j, k), span, scope, resource)


def logs_in(request: Any) -> Iterator[tuple[tuple[int, int, int], dict[str, Any]]]:
    """All log records of a request, with their places."""
    for i, resource in enumerate(sequence(named(request, *_LOGS[0]))):
        for j, scope in enumerate(sequence(named(resource, *_LOGS[1]))):
            for k, record in enumerate(sequence(named(scope, *_LOGS[2]))):
                if isinstance(record, dict):
                    yield (i, j, k), record


def is_sound(request: Any) -> bool:
    """Whether a request is as the protocol has it, down to its spans: then there is no damage to look for."""
    try:
        lists = [scope["spans"] for resource in request["resourceSpans"] for scope in resource["scopeSpans"]]
        return all(type(spans) is list and all(type(span) is dict for span in spans) for spans in lists)
    except (KeyError, TypeError):
        return False


def damage_in(request: Any) -> Iterator[str]:
    """What of a request is no span, no list of spans or no object with one."""
    for name, below in ((REQUEST, _SCOPES), (_SCOPES, ("spans",))):
        requests = [request] if name is REQUEST else sequence(named(request, *REQUEST))
        for one in requests:
            found = named(one, *name)
            if found is not None and not isinstance(found, list):
                yield f"{name[0]} is no list"
            for part in sequence(found):
                if not isinstance(part, dict):
                    yield f"something in {name[0]} is no object"
                elif not isinstance(spans := named(part, *below), list | None):
                    yield f"{below[0]} is no list"
                elif below == ("spans",) and not all(isinstance(span, dict) for span in sequence(spans)):
                    yield "something in spans is no object"


# ---- fields


def named(record: Any, *names: str) -> Any:
    """The first of these fields that is there and not null."""
    if type(record) is dict:
        for name in names:
            value = record.get(name)
            if value is not None:
                return value
    return None


def without(record: Any, *names: str) -> dict[str, Any]:
    """`record` without the fields of those names."""
    return {key: value for key, value in record.items() if key not in names} if isinstance(record, dict) else {}


def whole(value: Any) -> int | None:
    """`value` as a whole number of at most 64 bits, also where it is written as text."""
    if isinstance(value, str):
        if not (value.isdecimal() and len(value) < 20) and not _DIGITS.fullmatch(value):
            return None
        value = int(value)
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def nanoseconds(record: dict[str, Any], *names: str) -> int | None:
    """A time in nanoseconds since the epoch; 0 means that it is not known."""
    found = whole(named(record, *names))
    return found if found is not None and found > 0 else None


def trace_id(record: Any) -> str:
    """The trace that a span or link names, in lower hex."""
    return _ident(named(record, "traceId", "trace_id")) or NO_TRACE


def span_id(record: Any) -> str | None:
    """The id of a span, in lower hex."""
    return _ident(named(record, "spanId", "span_id"))


def parent_id(record: Any) -> str | None:
    """The id of the span above; None at the top."""
    found = _ident(named(record, "parentSpanId", "parent_span_id"))
    return None if found is None or not found.strip("0") else found


def normal_id(text: str) -> str:
    """An id in lower hex, whether it is written in hex or in base64; what is neither stays as it is."""
    if match := _HEX.fullmatch(text):
        return match[1].lower()
    if len(text) in (12, 24) and text.endswith("="):
        try:
            data = b64decode(text, validate=True)
        except (Undecodable, ValueError):
            return text
        return data.hex() if len(data) in (8, 16) else text
    return text


def _ident(value: Any) -> str | None:
    return normal_id(value) if isinstance(value, str) and value else None


# ---- values


def attributes(record: Any) -> dict[str, Any]:
    """The attributes of a record by their keys; whatever is no attribute is there too, under a name of its own."""
    found = named(record, "attributes")
    if isinstance(found, dict):
        return {key: value_of(value) for key, value in found.items()}
    kept: dict[str, Any] = {}
    if found is not None and not isinstance(found, list):
        kept["attributes"] = found
    for item in sequence(found):
        try:
            ((kind, value),) = item["value"].items()
            if kind == "stringValue" and len(item) == 2 and item["key"] not in kept:  # most are
                kept[intern(item["key"])] = value
                continue
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        _attribute(item, kept, 0)
    return kept


def _attribute(item: Any, kept: dict[str, Any], depth: int) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("key"), str):
        keep(kept, "attribute", item)
        return
    key = intern(item["key"])
    keep(kept, key, value_of(item.get("value"), depth))
    if len(item) > 2 and (rest := without(item, "key", "value")):
        keep(kept, f"{key} (also)", rest)


def keep(kept: dict[str, Any], name: str, value: Any) -> None:
    """Put a value under a name, or under ``name 2`` where that is taken."""
    key, times = name, 1
    while key in kept:
        times += 1
        key = f"{name} {times}"
    kept[key] = value


def value_of(value: Any, depth: int = 0) -> Any:
    """What an ``AnyValue`` holds; one that is of no known kind as it is written."""
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEPTH:
        return value
    ((kind, held),) = value.items()
    if kind in _PLAIN:
        return held
    if kind in ("intValue", "int_value"):
        found = whole(held)
        return held if found is None else found
    if kind in ("arrayValue", "array_value") and _lists(held):
        return [value_of(one, depth + 1) for one in sequence(held.get("values"))]
    if kind in ("kvlistValue", "kvlist_value") and _lists(held):
        kept: dict[str, Any] = {}
        for one in sequence(held.get("values")):
            _attribute(one, kept, depth + 1)
        return kept
    return value


def _lists(held: Any) -> bool:
    """Whether it is an object with a list of values and nothing else."""
    return isinstance(held, dict) and set(held) <= {"values"} and isinstance(held.get("values"), list | None)


# ---- what stands around spans


def about_scope(scope: dict[str, Any]) -> dict[str, Any]:
    """What a group of spans says about the library that made them."""
    return _about(scope, _SCOPE, LISTS)


def about_resource(resource: dict[str, Any]) -> dict[str, Any]:
    """What a group of scopes says about the program that they ran in."""
    return _about(resource, ("resource",), _SCOPES)


def _about(record: dict[str, Any], within: tuple[str, ...], lists: tuple[str, ...]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in within:
        inner = record.get(name)
        if isinstance(inner, dict):
            fields = {**without(inner, "attributes"), **attributes(inner)}
            for key, value in fields.items():
                keep(kept, key, value)
        elif inner is not None:
            keep(kept, name, inner)
    for key, value in record.items():
        if key not in within and (key not in lists or not isinstance(value, list)):
            keep(kept, key, value)
    return kept
