"""Fields of logs, whose types nobody may trust: the value if it is what was asked for, else nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode, strict
from tracetui.formats.scalars import mapping, number, sequence, whole, word
from tracetui.model import PREVIEW, Usage

EXCLUSIVE: Final = (0, 3, 184)
"""The version of Inspect since which input never includes what came from a cache."""
_EXCEPTION: Final = re.compile(r"([A-Za-z_][\w.]{0,99})(?:\(|:|$)")

Record = dict[str, Any]
"""An object whose values are decoded when they are asked for: `msgspec.Raw`, or the value itself."""


def value_of(item: Any) -> Any:
    """The value that `item` is, or holds undecoded. Raises `FormatError`."""
    if not isinstance(item, msgspec.Raw):
        return item
    data = bytes(memoryview(item))
    try:
        return strict(data)
    except (ValueError, RecursionError):
        return decode(data)[0]


def record_of(item: Any) -> Record | None:
    """The fields of the object that `item` is, None if it is none. Raises `FormatError`."""
    if isinstance(item, msgspec.Raw):
        try:
            return msgspec.json.decode(item, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            item = value_of(item)
    return item if isinstance(item, dict) else None


def items_of(item: Any) -> list[Any] | None:
    """The elements of the list that `item` is, each as it stands; None if it is none. Raises `FormatError`."""
    if isinstance(item, msgspec.Raw):
        try:
            return msgspec.json.decode(item, type=list[msgspec.Raw])
        except (ValueError, RecursionError):
            item = value_of(item)
    return item if isinstance(item, list) else None


def field(record: Record, name: str) -> Any:
    """The value of a field, None where it is missing or cannot be decoded."""
    try:
        return value_of(record.get(name))
    except FormatError:
        return None


def text_in(content: Any) -> str:
    """The text of a message: itself, or that of its parts; what is no text is called by its kind, as in summaries."""
    if isinstance(content, str):
        return content
    texts = []
    for part in sequence(content):
        kind, text = mapping(part).get("type"), mapping(part).get("text")
        if isinstance(text, str):
            texts.append(text)
        elif isinstance(kind, str) and kind != "text":
            texts.append(f"({kind[:PREVIEW].capitalize()})")
    return "\n".join(texts)


def prompt_in(given: Any) -> str:
    """What a sample asks: its input, or of a conversation the first message of the user."""
    if isinstance(given, str):
        return given.strip()
    said = ((mapping(message).get("role"), text_in(mapping(message).get("content"))) for message in sequence(given))
    found = [(role, text.strip()) for role, text in said if text.strip()]
    return next((text for role, text in found if role == "user"), found[0][1] if found else "")


def usage_of(said: Any, version: tuple[int, ...] | None = None) -> Usage | None:
    """What one call or a whole sample used, as `version` of Inspect counts.

    `Usage` counts cached input in, Inspect does not; before `EXCLUSIVE` it did for some providers: those whose total is
    then input and output alone.
    """
    if not isinstance(said, dict) or not said:
        return None
    counts = [whole(said.get(name)) for name in ("input_tokens", "output_tokens", "total_tokens")]
    given, made, total = counts
    read, written = whole(said.get("input_tokens_cache_read")), whole(said.get("input_tokens_cache_write"))
    cached = (read or 0) + (written or 0)
    old = version is not None and version < EXCLUSIVE and total == (given or 0) + (made or 0)
    if given is not None and not old:
        given += cached
    thought = whole(said.get("reasoning_tokens"))
    return Usage(given, made, total, read, written, thought, number(said.get("total_cost"))) or None


def used_by(models: Any, version: tuple[int, ...] | None) -> Usage | None:
    """What all models used together, of a table by model."""
    used = [found for said in mapping(models).values() if (found := usage_of(said, version)) is not None]
    return sum(used[1:], used[0]) if used else None


def version_of(packages: Any) -> tuple[str | None, tuple[int, ...] | None]:
    """The version of Inspect that wrote a log, as it says it and as numbers: ``0.3.95.dev16+g6527d`` is (0, 3, 95)."""
    told = word(mapping(packages).get("inspect_ai"))
    if told is None:
        return None, None
    numbers = re.match(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", told)
    return told[:PREVIEW], tuple(int(part or 0) for part in numbers.groups()) if numbers else None


def error_type(message: str) -> str | None:
    """The type of an exception, which messages begin with: ``RuntimeError('…')``, ``ValueError: …``."""
    found = _EXCEPTION.match(message)
    return found[1] if found and (found[1].endswith(("Error", "Exception", "Group", "Exit", "Interrupt"))) else None


def joined(texts: Iterable[str], between_: str = " · ") -> str:
    """The texts that there are, as one of at most `PREVIEW` characters."""
    return between_.join(text for text in texts if text)[:PREVIEW]
