"""What a trace's metadata says to find it by: tags, and where it comes from. Every format looks for the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

MOST: Final = 64
"""Tags of a run."""
LENGTH: Final = 120
"""Characters of a tag or source."""
_SOURCES: Final = ("source", "source_uri", "source_type", "origin", "framework")


def tags_in(*holders: Any) -> tuple[str, ...]:
    """The texts of the first list called ``tags`` among the objects `holders`."""
    found = next((tags for holder in _objects(holders) if isinstance(tags := holder.get("tags"), list)), [])
    return tuple([tag[:LENGTH] for tag in found if isinstance(tag, str) and tag][:MOST])


def source_in(*holders: Any) -> str | None:
    """The first text that says where a trace comes from: ``source``, ``origin``, ``framework`` …"""
    values = (holder.get(name) for holder in _objects(holders) for name in _SOURCES)
    return next((value[:LENGTH] for value in values if isinstance(value, str) and value), None)


def _objects(holders: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    return (holder for holder in holders if isinstance(holder, dict))
