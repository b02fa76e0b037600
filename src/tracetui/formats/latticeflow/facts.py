"""What one record says, as fields of a span: how it stands, what tells it from the next one, what it used."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.outline import ItemAt
from tracetui.formats.latticeflow.records import seconds
from tracetui.formats.scalars import word
from tracetui.model import PREVIEW, Error, Operation, Status, StatusSource, Usage, status_of

Stand = tuple[Status, str | None, StatusSource | None]
"""Status, the trace's own word for it, and where it comes from."""
FINE: Final[Stand] = (Status.OK, None, StatusSource.DERIVED)
SILENT: Final[Stand] = (Status.UNKNOWN, None, None)


def of_message(message: records.Item, role: str) -> dict[str, Any]:
    """A message, or the payload of a custom task; `role` is its name."""
    text = records.text_of(message) or ("" if isinstance(message.content, list) else preview(message.content))
    return {
        "name": role or "message",
        "operation": Operation.MESSAGE,
        "preview": text[:PREVIEW],
        "note": role_note(message, role),
        **outcome(None, message.status),
    }


def role_note(message: records.Item, role: str) -> str:
    """Says where the trace does not hold the role of a message."""
    if isinstance(message.role, str) or records.item_kind(message) != "message":
        return ""
    return "role unknown" if role == records.ROLE_UNKNOWN else "role inferred"


def of_call(call: records.Item, answer: ItemAt | None) -> dict[str, Any]:
    """A call that only the items hold, with the output that answers it."""
    status = call.status
    if answer is not None and word(answer.record.status) is not None:
        status = answer.record.status
    return {
        "name": word(call.name) or "function call",
        "operation": Operation.EXECUTE_TOOL,
        "preview": preview(call.arguments),
        "note": "no output" if answer is None else "",
        **outcome(None, status),
    }


def outcome(error: Any, status: Any) -> dict[str, Any]:
    """Status, its word and source, and error of a record: an error that is not empty says more than a status."""
    named = word(status)
    if error:
        return {**standing((Status.ERROR, named, StatusSource.EXPLICIT)), "error": Error(records.said(error))}
    return standing(SILENT if named is None else (status_of(named), named, StatusSource.EXPLICIT))


def standing(stand: Stand) -> dict[str, Any]:
    """How something stands, as fields of a span."""
    return dict(zip(("status", "status_word", "status_source"), stand, strict=True))


def produced(item: records.Item) -> str:
    """What a model call made, in short: a text, or a call that it asked for."""
    if item.call_id is not None:
        return f"→ {item.name} {preview(item.arguments)}"
    return records.text_of(item)[:PREVIEW]


def usage(found: Any) -> Usage | None:
    """Tokens of one call; the total is their sum where the trace has none."""
    if not isinstance(found, dict):
        return None
    given, made = records.count(found.get("num_prompt_tokens")), records.count(found.get("num_completion_tokens"))
    total = records.count(found.get("total_tokens"))
    if total is None and given is not None and made is not None:
        total = given + made
    return Usage(input_tokens=given, output_tokens=made, total_tokens=total) or None


def compaction(before: Any, after: Any) -> str:
    """How much a compaction removed: ``9000 → 1200 tokens``; "" where the trace does not say."""
    sizes = [records.count(before), records.count(after)]
    if sizes == [None, None]:
        return ""
    return " → ".join("?" if size is None else str(size) for size in sizes) + " tokens"


def preview(found: Any) -> str:
    """The beginning of a value."""
    return "" if found is None else records.said(found)[:PREVIEW]


def missing(result: Any) -> bool:
    """True for a result that is not there, or null."""
    return result is None or (isinstance(result, msgspec.Raw) and bytes(result) == b"null")


def earlier(a: float | None, b: float | None) -> float | None:
    """The earlier of two times, or the one that is known."""
    return b if a is None else a if b is None else min(a, b)


def between(begin: Any, end: Any) -> float | None:
    """Milliseconds from one time stamp to another, None unless both are known."""
    first, last = seconds(begin), seconds(end)
    return None if first is None or last is None else length(first, last)


def length(first: float, last: float) -> float:
    """Milliseconds between two times, to the microsecond (their floats hold no more)."""
    return round(max(0.0, last - first) * 1000, 3)
