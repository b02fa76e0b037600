"""Calls of the tools of Claude Code, as it and what is built on it record them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import orjson

from tracetui.formats.schema import plain
from tracetui.model import PREVIEW

_ARGUMENTS: Final = (
    "command",
    "pattern",
    "file_path",
    "path",
    "notebook_path",
    "url",
    "query",
    "subagent_type",
    "skill",
    "description",
    "prompt",
)
"""Arguments that tell one call of a tool from the next, the most telling first."""


def argument(given: Any, *, tasks: Sequence[str] = ("description", "prompt")) -> str:
    """What tells a call from the next one: its most telling argument, the kind of agent before its task, which is the
    first of `tasks` that is told.
    """
    if not isinstance(given, dict):
        return given[:PREVIEW] if isinstance(given, str) else "" if given is None else as_json(given)
    for name in _ARGUMENTS:
        value = given.get(name)
        if isinstance(value, str):
            if name == "subagent_type":
                task = next((found for task in tasks if isinstance(found := given.get(task), str) and found), "")
                value = f"{value[:PREVIEW]}: {task[:PREVIEW]}"
            return value[:PREVIEW]
    return as_json(given) if given else ""


class _Telling(msgspec.Struct, gc=False):
    """The arguments that tell one call from the next, in the order of `_ARGUMENTS`."""

    command: str | None = None
    pattern: str | None = None
    file_path: str | None = None
    path: str | None = None
    notebook_path: str | None = None
    url: str | None = None
    query: str | None = None
    subagent_type: str | None = None
    skill: str | None = None
    description: str | None = None
    prompt: str | None = None


_telling: Final = msgspec.json.Decoder(_Telling).decode


def preview_of(raw: msgspec.Raw, *, tasks: Sequence[str] = ("description", "prompt")) -> str:
    """What `argument` returns for arguments that are kept as they are written, most of which are not decoded."""
    try:
        told = _telling(raw)
    except (ValueError, RecursionError):
        return argument(plain(raw), tasks=tasks)
    if told.command is not None:
        return told.command[:PREVIEW]
    for name in _ARGUMENTS:
        value = getattr(told, name)
        if value is not None:
            return value[:PREVIEW] if name != "subagent_type" else argument(plain(raw), tasks=tasks)
    return argument(plain(raw), tasks=tasks)


def as_json(value: Any) -> str:
    """The beginning of a value as JSON."""
    try:
        return orjson.dumps(value)[: PREVIEW * 4].decode("utf-8", "ignore")[:PREVIEW]
    except orjson.JSONEncodeError:  # lone surrogates, depth, integers over 64 bits
        return repr(value)[:PREVIEW] if isinstance(value, int) else "…"
