"""Read fields of untrusted types: the value if it has the requested type, else None or an empty value."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from hashlib import blake2b
from sys import intern
from typing import Any, Final

LENGTH: Final = 120
"""Characters of a version, tag, source or text score."""
_SHARED: Final = 64
_TIME_LIMIT: Final = 64
_EMPTY: Final[dict[str, Any]] = {}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_parse_time: Final = datetime.fromisoformat


# ---- texts


def string(value: Any) -> str | None:
    """`value` if it is text, even empty text."""
    return value if isinstance(value, str) else None


def text(value: Any) -> str | None:
    """`value` if it is nonempty text."""
    return value if isinstance(value, str) and value else None


def word(value: Any) -> str | None:
    """`text`, interned if short, because many spans share names, models and ids."""
    if not isinstance(value, str) or not value:
        return None
    return intern(value) if len(value) <= _SHARED else value


def version(*values: Any) -> str | None:
    """The first of `values` that is a nonempty text, as a version."""
    return next((value[:LENGTH] for value in values if isinstance(value, str) and value), None)


def layout(value: Any) -> str | None:
    """``schema 2``: the version of the record layout, for writers that don't record their own version."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return None
    return f"schema {str(value)[:LENGTH]}"


UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An id that no other program has made."""


# ---- objects and arrays


def mapping(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def child(value: Any, name: str) -> dict[str, Any]:
    """The object in field `name` of `value`, else an empty one, which is not to be changed."""
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else _EMPTY


def sequence(value: Any) -> list[Any]:
    """`value` if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """`record` without the fields of those names."""
    return {key: value for key, value in record.items() if key not in names}


# ---- numbers and flags


def boolean(value: Any) -> bool | None:
    """`value` if it is true or false."""
    return value if isinstance(value, bool) else None


def number(value: Any) -> float | None:
    """`value` as a float if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def integer(value: Any) -> int | None:
    """`value` if it is a whole number of at most 64 bits."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def natural(value: Any) -> int | None:
    """`value` if it is a whole number that can count something: not negative, and small enough for JavaScript (2⁵³)."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def score_value(value: Any) -> float | bool | str | None:
    """`value` if it can be that of a `Score`: a finite number, true or false, or a text, of which at most `LENGTH`."""
    if isinstance(value, str):
        return value[:LENGTH]
    return value if number(value) is not None else boolean(value)


# ---- times


def moment(value: Any) -> float | None:
    """An ISO 8601 time in seconds since the epoch; one without a zone is read as UTC."""
    try:
        if len(value) > _TIME_LIMIT:
            return None
        parsed = _parse_time(value)
        return ((parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)) - _EPOCH).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None


def zoned(value: Any) -> tuple[float | None, str | None]:
    """The same and its zone: "UTC", for any that has one; None for one that has none."""
    seconds = moment(value)
    return seconds, None if seconds is None or datetime.fromisoformat(value).tzinfo is None else "UTC"


def between(start: float | None, end: float | None) -> float | None:
    """Milliseconds from one time in seconds to another, to the microsecond.

    None if one of them is unknown or `end` is before `start`.
    """
    if start is None or end is None or end < start:
        return None
    exact = (end - start) * 1000
    if exact < 1e9 and -0.0004 < exact - (whole := int(exact + 0.5)) < 0.0004:
        return float(whole)  # what `round` returns, in a third of the time
    return round(exact, 3)


# ---- labels of a run

MAX_TAGS: Final = 64
"""Tags of a run."""
_SOURCES: Final = ("source", "source_uri", "source_type", "origin", "framework")


def folder_of(path: Any) -> str | None:
    """The last part of the path of a folder, on any system: how people call the project that an agent worked in."""
    parts = re.split(r"[/\\]", path) if isinstance(path, str) else []
    return next((part[:LENGTH] for part in reversed(parts) if part), None)


def task_key(name: str, given: str | bytes) -> str | None:
    """`Header.repeats` of a run: a hash of its task name and complete input. None without input."""
    data = given if isinstance(given, bytes) else given.encode("utf-8", "surrogatepass")
    if not data:
        return None
    return blake2b(data, digest_size=8, key=blake2b(name.encode("utf-8", "surrogatepass")).digest()).hexdigest()


def tags_in(*holders: Any) -> tuple[str, ...]:
    """The texts of the first list called ``tags`` among the objects `holders`."""
    for holder in holders:
        if holder and isinstance(holder, dict) and isinstance(tags := holder.get("tags"), list):
            return tuple([tag[:LENGTH] for tag in tags if isinstance(tag, str) and tag][:MAX_TAGS])
    return ()


def source_in(*holders: Any) -> str | None:
    """The first source of a trace among ``source``, ``origin``, ``framework`` …"""
    for holder in holders:
        for name in _SOURCES if holder and isinstance(holder, dict) else ():
            if isinstance(value := holder.get(name), str) and value:
                return value[:LENGTH]
    return None
