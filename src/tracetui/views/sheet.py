"""A sheet of facts: labels on the left, values beside them. The detail tabs use it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from tracetui.analysis.values import value_text
from tracetui.masking import clean
from tracetui.text import Clean, pad, wrap
from tracetui.views.document import document, json_rows
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Jump, Line, ListRows, Piece, Rows, fit, width_of
from tracetui.views.stack import Margin, Stack, StyledRows, TextRows

LABEL: Final = 9
"""Cells of the label column, including a blank."""

_BAR: Final = 20


class Cut(ListRows):
    """Precomputed lines, truncated to the width."""

    def line(self, index: int, width: int) -> Line:
        return tuple(fit(super().line(index, width), width))


class Each(Rows):
    """Lines built on demand: `make(i)` for each of `count` items."""

    def __init__(self, name: Hashable, count: int, make: Callable[[int], Line]) -> None:
        self._name, self._count, self._make = name, count, make

    def __len__(self) -> int:
        return self._count

    def key(self, index: int) -> Hashable:
        return (self._name, index)

    def index(self, key: Hashable) -> int | None:
        if isinstance(key, tuple) and len(key) == 2 and key[0] == self._name and key[1] in range(self._count):
            return int(key[1])
        return None

    def line(self, index: int, width: int) -> Line:
        return tuple(fit(self._make(index), width))

    def plain(self, index: int) -> str:
        return "".join(piece.text for piece in self._make(index))


class Sheet:
    """Collects facts from top to bottom; `rows` returns them as rows."""

    def __init__(
        self, name: str, width: int, *, opened: frozenset[Hashable] = frozenset(), glyphs: Glyphs = UNICODE
    ) -> None:
        self.width, self.glyphs = width, glyphs
        self.label = LABEL if width >= 30 else 0
        self._name, self._opened = name, opened
        self._parts: list[Rows] = []
        self._lines: list[Line] = []
        self._keys: list[Hashable] = []
        self._headings: list[int] = []
        self._count = 0

    @property
    def room(self) -> int:
        """Cells of a value beside its label."""
        return max(8, self.width - self.label)

    @property
    def bar(self) -> int:
        """Cells of a bar."""
        return max(4, min(_BAR, self.width // 4))

    def line(self, *pieces: Piece, spans: Sequence[str] = (), run: str | None = None, heading: bool = False) -> None:
        """Add a line, which leads to `spans` or another `run` if given."""
        self._count += 1
        place = (self._name, self._count)
        self._keys.append(Jump(place, tuple(spans), run) if spans or run is not None else place)
        if heading:
            self._headings.append(len(self._lines))
        self._lines.append(pieces)

    def blank(self) -> None:
        """Add an empty line, unless the previous line is empty or this is the first."""
        if (self._lines and self._lines[-1]) or (not self._lines and self._parts):
            self.line(heading=True)

    def title(self, text: str, note: str = "") -> None:
        """Add a section heading."""
        self.blank()
        head = [Piece(clean(text), "sec bold"), Piece(clean(f" {note} " if note else " "), "sec")]
        used = width_of(head)
        self.line(*head, Piece(Clean(self.glyphs.rule * max(0, self.width - used)), "line"), heading=True)

    def fact(self, label: str, *pieces: Piece, spans: Sequence[str] = (), run: str | None = None) -> None:
        """Add a labeled value. Long lines break at double blanks."""
        first = self._labeled_line(label)
        for i, row in enumerate(_flow(pieces, max(8, self.width - width_of(first)))):
            self.line(*(self._labeled_line("") if i else first), *row, spans=spans, run=run)

    def value(self, label: str, value: Any, most: int = 4) -> None:
        """Add a labeled value, folded after `most` rows: prose as text, other values compact."""
        if isinstance(value, str) and value:
            self.prose(label, value, most=most)
            return
        if value is None:
            self.fact(label, Piece(self.glyphs.missing, "dim"))
            return
        self._count += 1
        lines = [tuple(row) for row in json_rows(value, self.room, self.glyphs)]
        source = "" if len(lines) <= most else value_text(value)
        name = (self._name, self._count)
        rows = StyledRows(lines, source, name=name, most=most, opened=self._opened, glyphs=self.glyphs)
        first, rest = self._labeled_line(label), self._labeled_line("")
        self.add(Margin(rows, first, rest) if first else rows)

    def prose(self, label: str | None, text: str, style: str = "text", most: int | None = None) -> None:
        """Add a wrapped text beside its label (None: no margin), folded after `most` rows."""
        if label is None:
            self._text((), (), text, style, most)
        else:
            self._text(self._labeled_line(label), self._labeled_line(""), text, style, most)

    def bullet(self, text: str, style: str = "text", most: int | None = None, *, sign: Piece | None = None) -> None:
        """Add a text as a list item, after a dot or another sign of one cell."""
        first = sign or Piece(self.glyphs.dot, "dim")
        self._text((first, Piece(Clean(" "))), (Piece(Clean("  ")),), text, style, most)

    def _text(self, first: Line, rest: Line, text: str, style: str, most: int | None) -> None:
        self._count += 1
        width = max(8, self.width - width_of(first))
        name = (self._name, self._count)
        rows = TextRows(text, width, name=name, style=style, most=most, opened=self._opened, glyphs=self.glyphs)
        self.add(Margin(rows, first, rest) if first else rows)

    def tree(self, value: Any, indent: int = 0) -> None:
        """Add a value as a foldable tree."""
        self._count += 1
        name, width = (self._name, self._count), max(8, self.width - indent)
        rows = document(value, width=width, name=name, opened=self._opened, glyphs=self.glyphs)
        blank = Piece(Clean(" " * indent))
        self.add(Margin(rows, (blank,), (blank,)) if indent else rows)

    def add(self, rows: Rows) -> None:
        """Add any other rows."""
        self._flush()
        self._parts.append(rows)

    def rows(self) -> Stack:
        """Everything collected."""
        self._flush()
        return Stack(self._parts)

    def _labeled_line(self, label: str) -> Line:
        if not self.label:
            return ()
        text = clean(label)
        return (Piece(pad(text, self.label) if len(text) < self.label else Clean(f"{text} "), "dim"),)

    def _flush(self) -> None:
        if self._lines:
            self._parts.append(Cut(self._lines, keys=self._keys, headings=self._headings))
            self._lines, self._keys, self._headings = [], [], []


def _flow(pieces: Line, room: int) -> list[Line]:
    """Wrap pieces, breaking at double blanks; single words break only if necessary."""
    rows: list[list[Piece]] = [[]]
    for clump in _clumps(pieces):
        if rows[-1] and width_of((*rows[-1], *_strip(clump))) > room:
            rows.append([])
            clump[0] = clump[0]._replace(text=Clean(clump[0].text.lstrip()))
        if len(clump) == 1 and not rows[-1] and width_of(_strip(clump)) > room:
            rows[-1:] = [[clump[0]._replace(text=part)] for part in wrap(clump[0].text, room)]
        else:
            rows[-1] += clump
    return [_strip(row) for row in rows]


def _clumps(pieces: Line) -> list[list[Piece]]:
    clumps: list[list[Piece]] = []
    ended = True
    for piece in pieces:
        if ended or piece.text.startswith("  "):
            clumps.append([])
        clumps[-1].append(piece)
        ended = piece.text.endswith("  ")
    return clumps


def _strip(row: Sequence[Piece]) -> Line:
    """Strip trailing blanks."""
    return (*row[:-1], row[-1]._replace(text=Clean(row[-1].text.rstrip()))) if row else ()
