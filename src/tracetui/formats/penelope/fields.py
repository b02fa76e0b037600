"""Fields of a Penelope result, whose types nobody may trust: the value if it is what was asked for, else nothing."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.decode import decode, decode_value
from tracetui.formats.scalars import mapping, string

_TIME_LIMIT: Final = 64


def boolean(value: Any) -> bool | None:
    """`value` if it is true or false."""
    return value if isinstance(value, bool) else None


def whole(value: Any) -> int | None:
    """`value` if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: Any) -> float | int | None:
    """`value` if it is a finite number that fits into a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def milliseconds(seconds: Any) -> float | None:
    """A duration in seconds as milliseconds, if it is one."""
    found = number(seconds)
    return None if found is None or found < 0 else number(found * 1000.0)


def moment(value: Any) -> tuple[float | None, str | None]:
    """An ISO 8601 time as (seconds since the epoch, zone).

    Penelope writes naive local times (zone None, read as if they were UTC); its document shows them with ``Z``.
    """
    text = string(value)
    if text is None or len(text) > _TIME_LIMIT:
        return None, None
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            return found.replace(tzinfo=UTC).timestamp(), None
        return found.timestamp(), "UTC"
    except (ValueError, OverflowError):
        return None, None


def decoded(value: Any) -> Any:
    """The object or array that a text holds as JSON (``NaN`` allowed), else `value` itself: ``"12"`` stays a text."""
    if not isinstance(value, str):
        return value
    found = decode_value(value)
    if isinstance(found, str) and value.lstrip()[:1] in ("{", "["):
        try:
            found, _ = decode(value.encode("utf-8", "surrogatepass"))
        except FormatError:
            return value
    return found if isinstance(found, dict | list) else value


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal; False too where they are nested too deeply to tell."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


def merged(*values: Any) -> dict[str, Any]:
    """Objects as one: what a later one says wins, unless it says null."""
    return {key: item for value in values for key, item in mapping(value).items() if item is not None}


def as_text(value: Any) -> str:
    """Any value as text: a text as it is, an object's ``message``, else JSON."""
    if isinstance(value, str):
        return value
    message = string(mapping(value).get("message"))
    return message if message is not None else rendered(value).decode("utf-8", "surrogatepass")


def rendered(value: Any) -> bytes:
    """A JSON rendering of `value`, empty where it is nested too deeply to be written."""
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b""
