"""What a trace says to find it by: tags, where it comes from, which task it was. In every format by the same names."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, Final

MOST: Final = 64
"""Tags of a run."""
LENGTH: Final = 120
"""Characters of a tag or source."""
_SOURCES: Final = ("source", "source_uri", "source_type", "origin", "framework")


def folder_of(path: Any) -> str | None:
    """The last part of the path of a folder, on any system: how people call the project that an agent worked in."""
    parts = re.split(r"[/\\]", path) if isinstance(path, str) else []
    return next((part[:LENGTH] for part in reversed(parts) if part), None)


def task_key(name: str, given: str | bytes) -> str | None:
    """`Header.repeats` of a run: of what the task is called, and all that went in. None where nothing did."""
    data = given if isinstance(given, bytes) else given.encode("utf-8", "surrogatepass")
    if not data:
        return None
    return blake2b(data, digest_size=8, key=blake2b(name.encode("utf-8", "surrogatepass")).digest()).hexdigest()


def tags_in(*holders: Any) -> tuple[str, ...]:
    """The texts of the first list called ``tags`` among the objects `holders`."""
    for holder in holders:
        if holder and isinstance(holder, dict) and isinstance(tags := holder.get("tags"), list):
            return tuple([tag[:LENGTH] for tag in tags if isinstance(tag, str) and tag][:MOST])
    return ()


def source_in(*holders: Any) -> str | None:
    """The first text that says where a trace comes from: ``source``, ``origin``, ``framework`` …"""
    for holder in holders:
        for name in _SOURCES if holder and isinstance(holder, dict) else ():
            if isinstance(value := holder.get(name), str) and value:
                return value[:LENGTH]
    return None
