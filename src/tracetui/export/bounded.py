"""Cut JSON documents to a size, and list what was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tracetui.export.json import encode

TEXTS: Final = (4_000, 1_000, 200)
"""Longest string in characters; the first with which an item fits."""
ITEMS: Final = 50
"""Longest list inside of an item."""


class Page(msgspec.Struct, frozen=True):
    """A document of bounded size."""

    value: Any
    """The document; strings that were cut end with ``…``."""
    cut: list[str]
    """What was left out, and where."""
    more: int | None = None
    """The offset of the next page; None: this was the last."""


def page(value: Any, pages: Sequence[str], *, offset: int, size: int) -> Page:
    """Cut a document to about `size` bytes.

    `pages` names the lists in it that are divided into pages: `offset` is the number of items to skip of each. Of a
    string, it is the number of characters.
    """
    if isinstance(value, str):
        end = min(len(value), offset + size // 2)
        cut = [f"{len(value) - end} more characters"] if end < len(value) else []
        return Page(value[offset:end], cut, end if cut else None)
    lists = [name for name in pages if isinstance(value, dict) and isinstance(value.get(name), list)]
    for longest in TEXTS:
        cuts: list[str] = []
        rest = {key: one for key, one in value.items() if key not in lists} if isinstance(value, dict) else value
        document = _cut(rest, longest, "", cuts)
        room = size - len(encode(document))
        if room < 0 and longest != TEXTS[-1]:
            continue
        ends = []
        for name in lists:
            items = value[name]
            document[name], used = _fill(items[offset:], longest, f"{name}[…]", cuts, room)
            room -= used
            ends.append(offset + len(document[name]))
            if ends[-1] < len(items):
                cuts.append(f"{name}: items {offset} to {ends[-1] - 1} of {len(items)}")
        left = [end for end, name in zip(ends, lists, strict=True) if end < len(value[name])]
        if longest == TEXTS[-1] or not left or min(left) > offset:
            return Page(document, cuts, min(left) if left else None)
    raise AssertionError("the last of TEXTS always returns")


def _fill(items: list[Any], longest: int, where: str, cuts: list[str], room: int) -> tuple[list[Any], int]:
    """Return the first items that fit into `room` bytes, at least one, and their size."""
    found: list[Any] = []
    used = 0
    for item in items:
        notes: list[str] = []
        short = _cut(item, longest, where, notes)
        used += len(encode(short)) + 1
        if found and used > room:
            break
        found.append(short)
        cuts.extend(note for note in notes if note not in cuts)
    return found, used


def _cut(value: Any, longest: int, where: str, cuts: list[str]) -> Any:
    """Return a copy with shorter strings and lists. Documents are no deeper than JSON that could be decoded."""
    if isinstance(value, str) and len(value) > longest:
        cuts.append(f"{where or 'text'}: {longest} of {len(value)} characters")
        return value[:longest] + "…"
    if isinstance(value, dict):
        return {key: _cut(one, longest, f"{where}.{key}" if where else key, cuts) for key, one in value.items()}
    if isinstance(value, list):
        if len(value) > ITEMS:
            cuts.append(f"{where}: {ITEMS} of {len(value)} items")
        return [_cut(one, longest, f"{where}[{i}]", cuts) for i, one in enumerate(value[:ITEMS])]
    return value
