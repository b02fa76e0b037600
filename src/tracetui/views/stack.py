"""Rows built from rows: wrapped text, margins, stacks. Each part has its own key namespace.

A `Block` wraps text of any length on demand.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Protocol, runtime_checkable

from tracetui.masking import clean, clean_lines
from tracetui.text import TAB_SIZE, Clean, grouped, size, wrap
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Fold, Jump, Line, Piece, Rows, fit, width_of

_WRAPPED: Final = 1 << 17
"""Maximum characters to wrap at blanks."""
_LONG_LINE: Final = 1 << 14
_UNEVEN: Final = re.compile("[^\x00-\x7f\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u0590\u2010-\u2027\u2030-\u205e€]")
"""Characters that may not be one cell wide."""


class Block:
    """A text wrapped to rows of at most `width` cells.

    In a long text, rows with escaped characters may be wider.
    """

    def __init__(self, text: str, width: int) -> None:
        self._width = max(1, width)
        self._rows: list[Clean] | None = None
        self._lines: Sequence[str] = ()
        self._starts: Sequence[int] = (0,)
        if len(text) <= _WRAPPED and (lines := clean_lines(text)) and max(map(len, lines)) <= _LONG_LINE:
            self._rows = [row for line in lines for row in wrap(line, self._width)]
        else:
            self._measure(text)

    def _measure(self, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\t", " " * TAB_SIZE)
        self._lines = text.split("\n")
        width = self._width
        if text.isascii():
            counts = [-(-size // width) or 1 for size in map(len, self._lines)]
        else:
            counts = [-(-len(line) // self._step(line)) or 1 for line in self._lines]
        self._starts = array("Q", accumulate(counts, initial=0))

    def _step(self, line: str) -> int:
        """Characters of a line that always fit into one row."""
        return self._width if line.isascii() or not _UNEVEN.search(line) else max(1, self._width // 2)

    def __len__(self) -> int:
        return len(self._rows) if self._rows is not None else self._starts[-1]

    def row(self, index: int) -> Clean:
        """The text of one row."""
        if self._rows is not None:
            return self._rows[index]
        number = bisect_right(self._starts, index) - 1
        line = self._lines[number]
        step = self._step(line)
        start = (index - self._starts[number]) * step
        return clean(line[start : start + step])


_HEAD: Final = 1 << 14
"""Characters of a folded long text to wrap, unless its rows need more."""


@runtime_checkable
class Folding(Protocol):
    """Rows that fold."""

    def fold(self, index: int) -> Fold | None:
        """The fold of a row; None for none."""
        ...

    def parent(self, index: int) -> int | None:
        """The row that this one folds into; None at the top."""
        ...


def fold(rows: Rows, index: int) -> Fold | None:
    """The fold of a row; None for none. Toggle with ``opened ^ {fold.key}``."""
    return rows.fold(index) if isinstance(rows, Folding) else None


def parent(rows: Rows, index: int) -> int | None:
    """The row that a row folds into."""
    return rows.parent(index) if isinstance(rows, Folding) else None


def target(rows: Rows, index: int) -> str | None:
    """Id of the (first) span that a row leads to."""
    key = rows.key(index)
    return key.spans[0] if isinstance(key, Jump) and key.spans else None


def target_run(rows: Rows, index: int) -> str | None:
    """Raw id of the run that a row leads to."""
    key = rows.key(index)
    return key.run if isinstance(key, Jump) else None


class TextKey(NamedTuple):
    """Key of a text row: the n-th row of the text `name`; -1 for the row that unfolds the rest."""

    name: Hashable
    row: int


class _FoldedRows(Rows):
    """The rows of one text; the last one may stand for hidden rows."""

    def __init__(self, name: Hashable, count: int, source: str, glyphs: Glyphs) -> None:
        """`count`: all rows. `source`: the text for search and copy."""
        self._name, self._count, self._source, self._glyphs = name, count, source, glyphs
        self._visible = count
        self._foldable = False
        self._size = ""
        """Size of a text of which only the head is in rows."""

    def _row(self, index: int) -> Line:
        raise NotImplementedError

    @property
    def hidden(self) -> int:
        """Rows that the fold hides, of a long text those of its head."""
        return self._count - self._visible

    @property
    def rest(self) -> int:
        """Rows to add to show these: without a longer text, the row of the fold becomes free."""
        return self.hidden - (not self._size)

    def extend(self, rows: int) -> None:
        """Show this many more rows; without hidden rows, nothing folds."""
        self._visible += rows
        self._foldable = self._more

    @property
    def _more(self) -> bool:
        """Whether the last row represents hidden ones."""
        return bool(self._size) or self._visible < self._count

    def __len__(self) -> int:
        return self._visible + self._more

    def key(self, index: int) -> Hashable:
        return TextKey(self._name, -1 if index >= self._visible else index)

    def index(self, key: Hashable) -> int | None:
        if not isinstance(key, TextKey) or key.name != self._name:
            return None
        if key.row < 0:
            return len(self) - 1 if self._foldable else None
        return key.row if key.row < self._visible else None

    def line(self, index: int, width: int) -> Line:
        if index < self._visible:
            return tuple(fit(self._row(index), width))
        label = f"all of {self._size}" if self._size else f"{grouped(self.hidden)} more lines"
        return tuple(fit([Piece(Clean(f"{self._glyphs.folded} {label}"), "dim")], width))

    def plain(self, index: int) -> str:
        """The text of a row; of the last one the whole text, so that search finds what is folded."""
        return self._source if index >= self._visible else "".join(piece.text for piece in self._row(index))

    def fold(self, index: int) -> Fold | None:
        return Fold(TextKey(self._name, -1), not self._more) if self._foldable else None

    def parent(self, index: int) -> int | None:
        return None


class TextRows(_FoldedRows):
    """A text as rows. With `most`, longer text is folded after that many rows."""

    def __init__(
        self,
        text: str,
        width: int,
        *,
        name: Hashable = "text",
        style: str = "text",
        most: int | None = None,
        opened: frozenset[Hashable] = frozenset(),
        glyphs: Glyphs = UNICODE,
    ) -> None:
        unfolded = most is None or TextKey(name, -1) in opened
        head = text if most is None or unfolded else text[: max(_HEAD, most * width)]
        self._block, self._style = Block(head, width), style
        super().__init__(name, len(self._block), text, glyphs)
        if most is None:
            return
        self._size = size(len(text)) if len(head) < len(text) else ""
        self._foldable = bool(self._size) or self._count > most + 1
        if self._foldable and not unfolded:
            self._visible = min(self._count, most)

    def _row(self, index: int) -> Line:
        return (Piece(self._block.row(index), self._style),)


class StyledRows(_FoldedRows):
    """Lines of any number. With `most`, they fold after that many rows; `source` is their text for search and copy."""

    def __init__(
        self,
        lines: Sequence[Line],
        source: str,
        *,
        name: Hashable,
        most: int | None = None,
        opened: frozenset[Hashable] = frozenset(),
        glyphs: Glyphs = UNICODE,
    ) -> None:
        super().__init__(name, len(lines), source, glyphs)
        self._lines = lines
        self._foldable = most is not None and len(lines) > most + 1
        if self._foldable and most is not None and TextKey(name, -1) not in opened:
            self._visible = most

    def _row(self, index: int) -> Line:
        return self._lines[index]


class Margin:
    """Rows with a left margin: `first` before the first row, `rest` before the others, equally wide."""

    def __init__(self, rows: Rows, first: Line, rest: Line) -> None:
        self._rows, self._first, self._rest = rows, first, rest
        self._width = width_of(first)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def inner(self) -> Rows:
        """The rows beside the margin."""
        return self._rows

    def key(self, index: int) -> Hashable:
        return self._rows.key(index)

    def index(self, key: Hashable) -> int | None:
        return self._rows.index(key)

    def line(self, index: int, width: int) -> Line:
        margin = self._rest if index else self._first
        if width <= self._width:
            return tuple(fit(margin, width))
        return (*margin, *self._rows.line(index, width - self._width))

    def selectable(self, index: int) -> bool:
        return self._rows.selectable(index)

    def mark(self, index: int) -> str | None:
        return self._rows.mark(index)

    def plain(self, index: int) -> str:
        margin = "" if index else "".join(piece.text for piece in self._first).strip()
        return f"{margin} {self._rows.plain(index)}".lstrip()

    def fold(self, index: int) -> Fold | None:
        return fold(self._rows, index)

    def parent(self, index: int) -> int | None:
        return parent(self._rows, index)


class Stack:
    """Concatenated rows. Their keys must differ: each part puts its own name into its keys."""

    def __init__(self, parts: Iterable[Rows]) -> None:
        self.parts = [part for part in parts if len(part)]
        self.measure()

    def measure(self) -> None:
        """Number the rows, again after a part got more of them."""
        self._starts: Sequence[int] = list(accumulate(map(len, self.parts), initial=0))

    def _locate(self, index: int) -> tuple[Rows, int]:
        number = bisect_right(self._starts, index) - 1
        return self.parts[number], index - self._starts[number]

    def __len__(self) -> int:
        return self._starts[-1]

    def key(self, index: int) -> Hashable:
        part, i = self._locate(index)
        return part.key(i)

    def index(self, key: Hashable) -> int | None:
        for part, start in zip(self.parts, self._starts, strict=False):
            if (row := part.index(key)) is not None:
                return start + row
        return None

    def line(self, index: int, width: int) -> Line:
        part, i = self._locate(index)
        return part.line(i, width)

    def selectable(self, index: int) -> bool:
        part, i = self._locate(index)
        return part.selectable(i)

    def mark(self, index: int) -> str | None:
        part, i = self._locate(index)
        return part.mark(i)

    def plain(self, index: int) -> str:
        part, i = self._locate(index)
        return part.plain(i)

    def fold(self, index: int) -> Fold | None:
        part, i = self._locate(index)
        return fold(part, i)

    def parent(self, index: int) -> int | None:
        part, i = self._locate(index)
        above = parent(part, i)
        return None if above is None else index - i + above


def hidden_rows(rows: Rows) -> int:
    """Number of rows that texts folded for their length hide."""
    return sum(text.hidden for text in _texts(rows))


def fill_rows(rows: Rows, height: int) -> None:
    """Unfold texts that are folded for their length, evenly, as far as all rows fit in `height`."""
    texts, spare = [text for text in _texts(rows) if text.hidden], height - len(rows)
    if spare <= 0 or not texts:
        return
    for i, text in enumerate(sorted(texts, key=lambda text: text.hidden)):
        before, share = len(text), spare // (len(texts) - i)
        text.extend(text.hidden if text.rest <= share else share)
        spare -= len(text) - before
    _measure(rows)


def _texts(rows: Rows) -> Iterator[_FoldedRows]:
    """The texts of a stack."""
    if isinstance(rows, Stack):
        for part in rows.parts:
            yield from _texts(part)
    elif isinstance(rows, Margin):
        yield from _texts(rows.inner)
    elif isinstance(rows, _FoldedRows):
        yield rows


def _measure(rows: Rows) -> None:
    if isinstance(rows, Margin):
        _measure(rows.inner)
    elif isinstance(rows, Stack):
        for part in rows.parts:
            _measure(part)
        rows.measure()
