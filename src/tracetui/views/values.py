"""JSON values in pieces: in one row, in a few, or cut to a room. Never more is looked at than is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tracetui.text import Clean, cells, clean, grouped, one_line, size, truncate
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Piece, fit, width_of

_DEEPEST: Final = 8


def is_container(value: object) -> bool:
    """True for what has values in it."""
    return isinstance(value, Mapping) or (
        isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))
    )


def scalar(value: object, glyphs: Glyphs = UNICODE) -> Piece:
    """A value that is neither text nor a container; the `repr` of what is no JSON."""
    if value is None or isinstance(value, bool):
        return Piece(Clean({None: "null", True: "true", False: "false"}[value]), "json.word")
    if isinstance(value, int):
        return Piece(Clean(str(value) if value.bit_length() < 10_000 else hex(value)), "json.number")
    if isinstance(value, float):
        return Piece(Clean(repr(value) if math.isfinite(value) else str(value)), "json.number")
    if isinstance(value, (bytes, bytearray)):
        shown = clean(repr(bytes(value[:200])))
        return Piece(shown if len(value) <= 200 else Clean(f"{shown} {glyphs.cut} {size(len(value))}"), "json.word")
    return Piece(one_line(repr(value), 500), "json.word")


def string(value: str, room: int, glyphs: Glyphs = UNICODE) -> list[Piece]:
    """A text in quotes on one row; what does not fit is cut and its size named."""
    head = clean(value[: max(1, room) + 1])
    if len(value) <= room and cells(head) + 2 <= room:
        return [Piece(Clean(f'"{head}"'), "json.string")]
    lines = value.count("\n") + 1 if len(value) < 1 << 20 else 1
    what = Clean(f" {grouped(lines)} lines" if lines > 1 else f" {size(len(value))}")
    left = max(4, room - cells(what) - 1)
    first = clean(value[: left + 1].split("\n", 1)[0])
    cut = truncate(Clean(first + glyphs.cut), left) if cells(first) < left else truncate(first, left)
    return fit([Piece(Clean(f'"{cut}'), "json.string"), Piece(what, "dim")], room)


def summary(value: Any, glyphs: Glyphs = UNICODE) -> Clean:
    """A container that is folded: ``{… 12 keys}`` or ``[… 300 items]``."""
    number = len(value)
    if isinstance(value, Mapping):
        return Clean(f"{{{glyphs.cut} {grouped(number)} key{'' if number == 1 else 's'}}}" if number else "{}")
    return Clean(f"[{glyphs.cut} {grouped(number)} item{'' if number == 1 else 's'}]" if number else "[]")


def compact(value: Any, room: int, glyphs: Glyphs = UNICODE, depth: int = 0) -> list[Piece] | None:
    """The whole value in one row, or None where it takes more than `room` cells."""
    if isinstance(value, str):
        if len(value) > room or "\n" in value:
            return None
        pieces = [Piece(Clean(f'"{clean(value)}"'), "json.string")]
    elif not is_container(value):
        pieces = [scalar(value, glyphs)]
    elif not value:
        pieces = [Piece(summary(value), "json.punct")]
    elif len(value) * 2 > room or depth >= _DEEPEST:
        return None
    else:
        return _compact_container(value, room, glyphs, depth)
    return pieces if width_of(tuple(pieces)) <= room else None


def _compact_container(value: Any, room: int, glyphs: Glyphs, depth: int) -> list[Piece] | None:
    mapping = isinstance(value, Mapping)
    pieces = [Piece(Clean("{ " if mapping else "["), "json.punct")]
    left = room - (4 if mapping else 2)
    for i, item in enumerate(value.items() if mapping else value):
        name = [*key(item[0], room), Piece(Clean(": "), "json.punct")] if mapping else []
        comma = [Piece(Clean(", "), "json.punct")] if i else []
        left -= width_of((*comma, *name))
        inner = compact(item[1] if mapping else item, left, glyphs, depth + 1) if left > 0 else None
        if inner is None:
            return None
        left -= width_of(tuple(inner))
        pieces += [*comma, *name, *inner]
    return [*pieces, Piece(Clean(" }" if mapping else "]"), "json.punct")] if left >= 0 else None


def key(name: object, room: int = 200) -> list[Piece]:
    """A key of a mapping."""
    return [Piece(one_line(str(name), max(8, room)) or Clean('""'), "json.key")]


def short(value: Any, room: int, glyphs: Glyphs = UNICODE) -> list[Piece]:
    """A value in one row of at most `room` cells: all of it where it fits, else how much there is."""
    whole = compact(value, room, glyphs)
    if whole is not None:
        return whole
    if isinstance(value, str):
        return string(value, room, glyphs)
    return fit([Piece(summary(value, glyphs), "dim") if is_container(value) else scalar(value, glyphs)], room)


def several(value: Any, width: int, most: int, glyphs: Glyphs = UNICODE) -> list[list[Piece]]:
    """A mapping in at most `most` rows, as many entries in a row as fit; any other value in one row."""
    whole = compact(value, width, glyphs)
    if whole is not None or not isinstance(value, Mapping):
        return [whole if whole is not None else short(value, width, glyphs)]
    rows: list[list[Piece]] = [[Piece(Clean("{ "), "json.punct")]]
    for i, (name, item) in enumerate(value.items()):
        label = [*key(name, width // 2), Piece(Clean(": "), "json.punct")]
        room = max(8, width - 4 - width_of(tuple(label)))
        entry = [*label, *short(item, room, glyphs), Piece(Clean("," if i < len(value) - 1 else " }"), "json.punct")]
        if i and width_of(tuple(rows[-1])) + 1 + width_of(tuple(entry)) > width:
            if len(rows) == most:
                rows.append([Piece(Clean(f"  {glyphs.cut} {grouped(len(value) - i)} more"), "dim")])
                break
            rows.append([Piece(Clean("  "))])
        elif i:
            rows[-1].append(Piece(Clean(" ")))
        rows[-1] += entry
    return [fit(row, width) for row in rows]


def whole_text(value: Any) -> str:
    """A value as text, all of it: what search and copy see."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, ValueError, TypeError):
        return " ".join(leaves(value))


def leaves(value: Any) -> Iterator[str]:
    """Every key and every scalar of a value as text, however deep."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            yield from map(str, item)
            stack.extend(reversed(list(item.values())))
        elif is_container(item):
            stack.extend(reversed(item))
        else:
            yield item if isinstance(item, str) else scalar(item).text
