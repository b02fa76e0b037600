"""Helpers for the bodies of spans: nothing of a record is lost, whatever has no place in a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import orjson

_T = TypeVar("_T")


def convert_each(
    name: str, items: Iterable[tuple[int, Any]], convert: Callable[[Any], tuple[_T, Any]], rests: dict[str, Any]
) -> list[_T]:
    """Convert `items`, each after its index, to messages or parts. `convert` returns one and the rest, fields without a
    place in it; each rest is added to `rests` as ``NAME[INDEX]``.
    """
    found = []
    for index, item in items:
        one, rest = convert(item)
        found.append(one)
        if rest:
            rests[f"{name}[{index}]"] = rest
    return found


def add_field(fields: dict[str, Any], name: str, value: Any) -> None:
    """Add a value under `name`, or under ``NAME 2``, ``NAME 3`` … if that is taken."""
    key, times = name, 1
    while key in fields:
        times += 1
        key = f"{name} {times}"
    fields[key] = value


def rendered(value: Any) -> bytes:
    """A value as JSON, where its own bytes are not at hand; empty for one that is nested too deeply."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, depth, integers over 64 bits
        pass
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):
        return b""
