"""JSON values as rows: a foldable tree of any size, and values on one line or a few. Rendered on demand."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tracetui.analysis.values import is_container, scalar_text, value_leaves, value_text
from tracetui.masking import clean, clean_lines, one_line
from tracetui.text import Clean, cells, grouped, quantity, size, truncate, wrap
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Fold, Line, Piece, Rows, fit, width_of
from tracetui.views.stack import Block, TextRows

_DEEPEST: Final = 8


def json_scalar(value: object, glyphs: Glyphs = UNICODE) -> Piece:
    """A value that is neither text nor a container."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Piece(scalar_text(value), "json.number")
    if isinstance(value, bytes | bytearray):
        excerpt = clean(repr(bytes(value[:200])))
        return Piece(excerpt if len(value) <= 200 else Clean(f"{excerpt} {glyphs.cut} {size(len(value))}"), "json.word")
    return Piece(scalar_text(value), "json.word")


def json_string(value: str, room: int, glyphs: Glyphs = UNICODE) -> list[Piece]:
    """A quoted text on one row, truncated with its size."""
    head = clean(value[: max(1, room) + 1])
    if len(value) <= room and cells(head) + 2 <= room:
        return [Piece(Clean(f'"{head}"'), "json.string")]
    lines = value.count("\n") + 1 if len(value) < 1 << 20 else 1
    extent = Clean(f" {quantity(lines, 'line')}" if lines > 1 else f" {size(len(value))}")
    remaining = max(4, room - cells(extent) - 1)
    first = clean(value[: remaining + 1].split("\n", 1)[0])
    cut = truncate(Clean(first + glyphs.cut), remaining) if cells(first) < remaining else truncate(first, remaining)
    return fit([Piece(Clean(f'"{cut}'), "json.string"), Piece(extent, "dim")], room)


def json_summary(value: Any, glyphs: Glyphs = UNICODE) -> Clean:
    """A folded container: ``{… 12 keys}`` or ``[… 300 items]``."""
    number = len(value)
    if isinstance(value, Mapping):
        return Clean(f"{{{glyphs.cut} {quantity(number, 'key')}}}" if number else "{}")
    return Clean(f"[{glyphs.cut} {quantity(number, 'item')}]" if number else "[]")


def json_compact(value: Any, room: int, glyphs: Glyphs = UNICODE, depth: int = 0) -> list[Piece] | None:
    """The whole value on one row, or None if it needs more than `room` cells."""
    if isinstance(value, str):
        if len(value) > room or "\n" in value:
            return None
        pieces = [Piece(Clean(f'"{clean(value)}"'), "json.string")]
    elif not is_container(value):
        pieces = [json_scalar(value, glyphs)]
    elif not value:
        pieces = [Piece(json_summary(value), "json.punct")]
    elif len(value) * 2 > room or depth >= _DEEPEST:
        return None
    else:
        return _compact_container(value, room, glyphs, depth)
    return pieces if width_of(pieces) <= room else None


def _compact_container(value: Any, room: int, glyphs: Glyphs, depth: int) -> list[Piece] | None:
    mapping = isinstance(value, Mapping)
    pieces = [Piece(Clean("{ " if mapping else "["), "json.punct")]
    remaining = room - (4 if mapping else 2)
    for i, item in enumerate(value.items() if mapping else value):
        name = [*json_key(item[0], room), Piece(Clean(": "), "json.punct")] if mapping else []
        comma = [Piece(Clean(", "), "json.punct")] if i else []
        remaining -= width_of((*comma, *name))
        inner = json_compact(item[1] if mapping else item, remaining, glyphs, depth + 1) if remaining > 0 else None
        if inner is None:
            return None
        remaining -= width_of(inner)
        pieces += [*comma, *name, *inner]
    return [*pieces, Piece(Clean(" }" if mapping else "]"), "json.punct")] if remaining >= 0 else None


def json_key(name: object, room: int = 200) -> list[Piece]:
    """A key of a mapping."""
    return [Piece(one_line(str(name), max(8, room)) or Clean('""'), "json.key")]


def json_short(value: Any, room: int, glyphs: Glyphs = UNICODE) -> list[Piece]:
    """A value on one row of at most `room` cells: complete if it fits, else its extent."""
    compact = json_compact(value, room, glyphs)
    if compact is not None:
        return compact
    if isinstance(value, str):
        return json_string(value, room, glyphs)
    return fit([Piece(json_summary(value, glyphs), "dim") if is_container(value) else json_scalar(value, glyphs)], room)


def json_rows(value: Any, width: int, glyphs: Glyphs = UNICODE) -> list[list[Piece]]:
    """A mapping on several rows, several entries per row, and long texts wrapped; any other value on one row."""
    compact = json_compact(value, width, glyphs)
    if compact is not None or not isinstance(value, Mapping):
        return [compact if compact is not None else json_short(value, width, glyphs)]
    rows: list[list[Piece]] = [[Piece(Clean("{ "), "json.punct")]]
    for i, (name, item) in enumerate(value.items()):
        label = [*json_key(name, width // 2), Piece(Clean(": "), "json.punct")]
        comma = Piece(Clean("," if i < len(value) - 1 else " }"), "json.punct")
        room = max(8, width - 4 - width_of(label))
        if isinstance(item, str) and len(item) <= _WRAPPED and json_compact(item, room, glyphs) is None:
            first, *rest = [row for line in clean_lines(item) for row in wrap(line, room)]
            entry = [*label, Piece(Clean(f'"{first}'), "json.string")]
        else:
            rest, entry = [], [*label, *json_short(item, room, glyphs), comma]
        if i and width_of(rows[-1]) + 1 + width_of(entry) > width:
            if len(rows) >= _MAX_ROWS:
                rows.append([Piece(Clean(f"  {glyphs.cut} {grouped(len(value) - i)} more"), "dim")])
                break
            rows.append([Piece(Clean("  "))])
        elif i:
            rows[-1].append(Piece(Clean(" ")))
        rows[-1] += entry
        if isinstance(item, str) and entry[-1] is not comma:
            indent = Piece(Clean(" " * (width - room - 1)))
            rows += [[indent, Piece(row, "json.string")] for row in rest]
            rows[-1] += [Piece(Clean('"'), "json.string"), comma]
    return [fit(row, width) for row in rows]


Path = tuple[Hashable, ...]

_MAX_ROWS: Final = 200
"""Rows of the entries of a value that isn't shown as a tree."""
_WRAPPED: Final = 4000
"""Characters of a text that is wrapped among the entries of a value."""
_SMALL: Final = 60
"""Maximum entries of a container with nested containers open by default."""
_FEW: Final = 20
_OPEN_DEPTH: Final = 2
_ONE_ROW: Final = 64
"""Maximum cells of a container on one row."""
_MAX_INDENT: Final = 40


class ValueKey(NamedTuple):
    """Key of a document row: the path of a value in the document `name`; `row` ≥ 0 within an open text."""

    name: Hashable
    path: Path
    row: int = -1


class _Entries(NamedTuple):
    """Consecutive entries of a container, one row each. Only the last one may be open."""

    container: Any
    keys: Sequence[Any]
    first: int
    stop: int
    path: Path
    depth: int
    bare: bool = False


class _Text(NamedTuple):
    """An opened text."""

    block: Block
    path: Path
    depth: int


class DocumentRows(Rows):
    """Rows of a JSON value; see `tracetui.views.rows.Rows`.

    By default, short texts and small containers that need several rows are open. `opened` holds the keys of toggled
    rows. `plain` of a folded row includes the folded content, so a search reaches everything.
    """

    def __init__(
        self,
        value: Any,
        *,
        width: int,
        name: Hashable = "value",
        opened: frozenset[Hashable] = frozenset(),
        glyphs: Glyphs = UNICODE,
    ) -> None:
        self._width, self._name, self._glyphs = width, name, glyphs
        self._toggled: dict[Path, set[Hashable]] = {}
        for place in opened:
            if isinstance(place, ValueKey) and place.name == name and place.path:
                self._toggled.setdefault(place.path[:-1], set()).add(place.path[-1])
        self._segments: list[_Entries | _Text] = []
        self._starts: list[int] = [0]
        self._open: set[Path] = set()
        if is_container(value) and value:
            self._add_container(value, (), 0)
        else:
            self._add(_Entries([value], range(1), 0, 1, (), 0, bare=True), 1)

    # ---- building: segments only, never a row

    def _add(self, segment: _Entries | _Text, rows: int) -> None:
        if rows:
            self._segments.append(segment)
            self._starts.append(self._starts[-1] + rows)

    def _add_container(self, container: Any, path: Path, depth: int) -> None:
        keys: Sequence[Any] = list(container) if isinstance(container, Mapping) else range(len(container))
        first = 0
        for i in self._may_open(keys, path):
            inner = container[keys[i]]
            below = (*path, keys[i])
            comes_open = len(keys) <= _SMALL and self._is_open_by_default(inner, depth)
            if comes_open == (keys[i] in self._toggled.get(path, ())):
                continue
            self._add(_Entries(container, keys, first, i + 1, path, depth), i + 1 - first)
            first = i + 1
            self._open.add(below)
            if isinstance(inner, str):
                block = Block(inner, max(8, self._width - self._indent(depth + 1) - 2))
                self._add(_Text(block, below, depth + 1), len(block))
            elif is_container(inner):
                self._add_container(inner, below, depth + 1)
        self._add(_Entries(container, keys, first, len(keys), path, depth), len(keys) - first)

    def _may_open(self, keys: Sequence[Any], path: Path) -> Sequence[int]:
        """Entries that may be open: all of a small container, only toggled ones of a large container."""
        if len(keys) <= _SMALL:
            return range(len(keys))
        return sorted(keys.index(name) for name in self._toggled.get(path, ()) if name in keys)

    def _is_open_by_default(self, value: Any, depth: int) -> bool:
        """Open by default: short multi-line texts, and small containers that need several rows."""
        if isinstance(value, str):
            return len(value) <= 4000 and 0 < value.count("\n") < _FEW
        if depth >= _OPEN_DEPTH or not is_container(value) or not 0 < len(value) <= _FEW:
            return False
        return json_compact(value, min(_ONE_ROW, self._width - self._indent(depth) - 16)) is None

    def _indent(self, depth: int) -> int:
        return min(depth * 2, _MAX_INDENT)

    # ---- the rows

    def _locate(self, index: int) -> tuple[_Entries | _Text, int]:
        number = bisect_right(self._starts, index) - 1
        return self._segments[number], index - self._starts[number]

    def __len__(self) -> int:
        return self._starts[-1]

    def key(self, index: int) -> Hashable:
        segment, i = self._locate(index)
        if isinstance(segment, _Text):
            return ValueKey(self._name, segment.path, i)
        return ValueKey(self._name, (*segment.path, segment.keys[segment.first + i]))

    def index(self, key: Hashable) -> int | None:
        """The row of a value, or the folded row that contains it."""
        if not isinstance(key, ValueKey) or key.name != self._name:
            return None
        while key.path and (row := self._row_of(key)) is None:
            key = ValueKey(self._name, key.path if key.row >= 0 else key.path[:-1])
        return row if key.path else None

    def _row_of(self, key: ValueKey) -> int | None:
        for segment, start in zip(self._segments, self._starts, strict=False):
            if isinstance(segment, _Text):
                if segment.path == key.path and 0 <= key.row < len(segment.block):
                    return start + key.row
            elif key.row < 0 and segment.path == key.path[:-1] and key.path[-1] in segment.keys:
                position = segment.keys.index(key.path[-1])
                if segment.first <= position < segment.stop:
                    return start + position - segment.first
        return None

    def line(self, index: int, width: int) -> Line:
        segment, i = self._locate(index)
        indent = Clean(" " * self._indent(segment.depth))
        if isinstance(segment, _Text):
            return tuple(fit([Piece(Clean(f"{indent}  "), "line"), Piece(segment.block.row(i), "json.string")], width))
        name = segment.keys[segment.first + i]
        value = segment.container[name]
        if segment.bare:
            return tuple(self._bare_value(value, width))
        fold = self.fold(index)
        mark = "  " if fold is None else f"{self._glyphs.unfolded if fold.open else self._glyphs.folded} "
        style = "json.key" if isinstance(segment.container, Mapping) else "dim"
        label = json_key(name, max(8, width // 2))[0].text
        pieces = [Piece(Clean(indent + mark), "dim"), Piece(label, style), Piece(Clean(": "), "json.punct")]
        room = max(0, width - width_of(pieces))
        if fold is not None and fold.open:
            pieces.append(Piece(self._extent(value), "dim"))
        else:
            pieces += json_short(value, room, self._glyphs)
        return tuple(fit(pieces, width))

    def _bare_value(self, value: Any, width: int) -> list[Piece]:
        if value is None:
            return fit([Piece(self._glyphs.missing, "dim")], width)
        return json_short(value, width, self._glyphs)

    def _extent(self, value: Any) -> Clean:
        if isinstance(value, str):
            lines = value.count("\n") + 1
            return quantity(lines, "line")
        unit = "key" if isinstance(value, Mapping) else "item"
        return quantity(len(value), unit)

    def plain(self, index: int) -> str:
        segment, i = self._locate(index)
        if isinstance(segment, _Text):
            return segment.block.row(i)
        name = segment.keys[segment.first + i]
        if segment.bare:
            return value_text(segment.container[name])
        if (*segment.path, name) in self._open:
            return str(name)
        return f"{name}: {value_text(segment.container[name])}"

    def fold(self, index: int) -> Fold | None:
        """The fold of a row; None for short scalars."""
        segment, i = self._locate(index)
        if isinstance(segment, _Text):
            return Fold(ValueKey(self._name, segment.path), True)
        if segment.bare:
            return None
        name = segment.keys[segment.first + i]
        value = segment.container[name]
        path = (*segment.path, name)
        if isinstance(value, str):
            room = self._width - self._indent(segment.depth) - len(str(name)) - 6
            foldable = len(value) > room or "\n" in value
        else:
            foldable = is_container(value) and len(value) > 0
        return Fold(ValueKey(self._name, path), path in self._open) if foldable else None

    def parent(self, index: int) -> int | None:
        """The row of the container or text that this row is in."""
        segment, _ = self._locate(index)
        return self.index(ValueKey(self._name, segment.path)) if segment.path else None

    def find(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """Matching rows, in order. A folded row matches if its content does. Lazy."""
        for index in range(len(self)):
            segment, i = self._locate(index)
            if isinstance(segment, _Text):
                is_match = pattern.search(segment.block.row(i)) is not None
            else:
                name = segment.keys[segment.first + i]
                is_match = not segment.bare and pattern.search(str(name)) is not None
                if not is_match and (*segment.path, name) not in self._open:
                    is_match = any(pattern.search(leaf) for leaf in value_leaves(segment.container[name]))
            if is_match:
                yield index


def document(
    value: Any,
    *,
    width: int,
    name: Hashable = "value",
    opened: frozenset[Hashable] = frozenset(),
    glyphs: Glyphs = UNICODE,
) -> DocumentRows | TextRows:
    """The rows of any value: text as text, everything else as a tree."""
    if isinstance(value, str) and value:
        return TextRows(value, width, name=name, glyphs=glyphs)
    return DocumentRows(value, width=width, name=name, opened=opened, glyphs=glyphs)
