"""Tokens as the trace itself tells them, beside the normalised ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

_LOOKED_AT: Final = 500
_MOST: Final = 8
"""So many values of the attributes are looked at, and so many found."""
_SIGNS: Final = ("usage", "token")


def as_told(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What attributes hold under names that speak of usage or tokens, by path; what is told twice, once.

    A trace may tell a number in any place and under any name: this finds the usual ones, and the attributes hold all.
    """
    found: dict[str, Any] = {}
    todo: list[tuple[str, Any]] = [("", attributes)]
    for path, value in todo:
        if not isinstance(value, Mapping) or len(todo) > _LOOKED_AT:
            continue
        for key, below in value.items():
            name = f"{path}.{key}" if path else str(key)
            if not any(sign in str(key).lower() for sign in _SIGNS):
                todo.append((name, below))
            elif len(found) < _MOST and below not in (None, "") and not _is_among(below, found.values()):
                found[name] = below
    return found


def _is_among(value: Any, others: Iterable[Any]) -> bool:
    try:
        return value in others
    except RecursionError:  # nested too deep to be compared
        return False
