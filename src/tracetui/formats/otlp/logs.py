"""Events of spans that are told in exports of logs: there the GenAI conventions have messages, by trace and span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

from tracetui.errors import FormatError
from tracetui.formats.otlp.messages import Event
from tracetui.formats.otlp.records import (
    NO_TRACE,
    At,
    attributes,
    keep,
    logs_in,
    named,
    nanoseconds,
    span_id,
    trace_id,
    value_of,
    without,
)
from tracetui.formats.tail import parse
from tracetui.sources.base import File

_OWN: Final = "gen_ai."
_PLACED: Final = ("traceId", "trace_id", "spanId", "span_id", "attributes", "body")
_NAMES: Final = ("eventName", "event_name")
_TIMES: Final = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano")


def whose(record: dict[str, Any]) -> tuple[str, str] | None:
    """The trace and the span that a log record tells an event of; None for any other log."""
    trace, span = trace_id(record), span_id(record)
    return (trace, span) if span is not None and trace != NO_TRACE and _name(record).startswith(_OWN) else None


def event_of(record: dict[str, Any]) -> Event:
    """A log record as the event that it is."""
    name, kept = _name(record), attributes(record)
    if kept.get("event.name") == name:
        del kept["event.name"]
    said = value_of(record.get("body"))
    for key, value in (said if isinstance(said, dict) else {} if said is None else {"body": said}).items():
        keep(kept, key, value)
    told = _NAMES if named(record, *_NAMES) == name else ()
    return Event(name, nanoseconds(record, *_TIMES), kept, without(record, *_PLACED, *told))


def events_at(file: File, places: Sequence[At]) -> list[Event]:
    """The events at these places. Raises `FormatError` if something else is there now."""
    lines: dict[int, dict[tuple[int, int, int], dict[str, Any]]] = {}
    found = []
    for at in places:
        if at.offset not in lines:
            data = file.read(at.offset, at.size)
            if crc32(data) != at.check:
                raise FormatError("the file changed: another record is there now", f"byte {at.offset}")
            lines[at.offset] = dict(logs_in(parse(data)[0]))
        found.append(event_of(lines[at.offset][at.resource, at.scope, at.span]))
    return found


def _name(record: dict[str, Any]) -> str:
    told = named(record, *_NAMES)
    if told is None:
        told = attributes(record).get("event.name")
    return told if isinstance(told, str) else ""
