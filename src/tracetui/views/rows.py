"""Rows, the content of every pane. A row model depends on data and a width, never on Textual.

A `Line` is cleaned text in pieces, each with a *style name* (``status.error``, ``role.user``, ``dim``), which only
`tracetui.ui.theme` maps to colors. A blank joins two style names: ``dim bold``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from tracetui.redact import ASCII_MASK, MASK, masks
from tracetui.text import Clean, cells, pad, truncate

STYLES: Final = frozenset(
    {
        "text",
        "sec",
        "dim",
        "line",
        "accent",
        "key",
        "onaccent",
        "surface",
        "raised",
        "bold",
        "underline",
        "reverse",
        "strike",
        "status.ok",
        "status.error",
        "status.running",
        "status.paused",
        "status.cancelled",
        "status.unknown",
        "status.warn",
        "role.user",
        "role.assistant",
        "role.system",
        "role.tool",
        "role.reasoning",
        "kind.model",
        "kind.tool",
        "kind.agent",
        "kind.policy",
        "kind.hook",
        "bar.model",
        "bar.tool",
        "bar.agent",
        "bar.policy",
        "bar.error",
        "bar.running",
        "diff.add",
        "diff.rem",
        "diff.chg",
        "diff.add.line",
        "diff.add.word",
        "diff.rem.line",
        "diff.rem.word",
        "diff.gap",
        "hit",
        "hit.current",
        "mask",
        "json.key",
        "json.string",
        "json.number",
        "json.word",
        "json.punct",
    }
)
"""Every style name that a line may use."""


class Piece(NamedTuple):
    """A stretch of text in one style."""

    text: Clean
    style: str = "text"


Line = tuple[Piece, ...]
"""One row of a pane."""


class Rows(Protocol):
    """The rows of one pane, at one state of the data. Cost of every call but the first is that of one row."""

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    def key(self, index: int) -> Hashable:
        """What stays the same when rows are added, removed or moved: the cursor is a key."""
        ...

    def index(self, key: Hashable) -> int | None:
        """Where the row with that key is now, None if it is gone."""
        ...

    def line(self, index: int, width: int) -> Line:
        """The row as it is drawn in `width` cells (longer ones can be scrolled sideways)."""
        ...

    def selectable(self, index: int) -> bool:
        """False for rows that take no cursor: group headings, blank rows."""
        ...

    def mark(self, index: int) -> str | None:
        """Style name of this row's tick in the scroll bar (``status.error``), None for none."""
        ...

    def plain(self, index: int) -> str:
        """The whole text of the row, however long, for search and copy. Not cut, not cleaned."""
        ...


class ListRows:
    """Rows that are all known beforehand: short panes (details of a run, help, states)."""

    def __init__(
        self,
        lines: Iterable[Line],
        *,
        keys: Iterable[Hashable] | None = None,
        marks: dict[int, str] | None = None,
        headings: Iterable[int] = (),
    ) -> None:
        self._lines = list(lines)
        self._keys: list[Hashable] = list(keys) if keys is not None else list(range(len(self._lines)))
        self._index = {key: i for i, key in enumerate(self._keys)}
        self._marks = marks or {}
        self._headings = frozenset(headings)

    def __len__(self) -> int:
        return len(self._lines)

    def key(self, index: int) -> Hashable:
        return self._keys[index]

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def line(self, index: int, width: int) -> Line:
        return self._lines[index]

    def selectable(self, index: int) -> bool:
        return index not in self._headings

    def mark(self, index: int) -> str | None:
        return self._marks.get(index)

    def plain(self, index: int) -> str:
        return "".join(piece.text for piece in self._lines[index])


def width_of(line: Line) -> int:
    """Width of a line in cells."""
    return sum(cells(piece.text) for piece in line)


def fit(line: Iterable[Piece], width: int) -> list[Piece]:
    """Cut a line at its end to at most `width` cells, with ``…`` where something was cut."""
    fitted: list[Piece] = []
    left = width
    for piece in line:
        size = cells(piece.text)
        if size <= left:
            fitted.append(piece)
            left -= size
            continue
        while not left and fitted:  # what is cut begins just here: the mark takes the last cell of what fits
            piece = fitted.pop()
            left = cells(piece.text)
            piece = piece._replace(text=Clean(piece.text + "…"))
        fitted.append(piece._replace(text=truncate(piece.text, left)))
        break
    return fitted


def fill(line: Iterable[Piece], width: int) -> list[Piece]:
    """Cut or pad a line to exactly `width` cells."""
    fitted = fit(line, width)
    missing = width - width_of(tuple(fitted))
    if missing > 0:
        fitted.append(Piece(Clean(" " * missing), "text"))
    return fitted


def column(text: Clean, width: int, style: str, *, right: bool = False) -> Piece:
    """A cell of a table: exactly `width` cells."""
    return Piece(pad(text, width, right=right), style)


class Fold(NamedTuple):
    """A row that opens and folds: the key that says so in a set of toggled keys, and whether it is open now.

    A key in such a set means *the other way than it comes*: toggling is ``keys ^ {fold.key}``.
    """

    key: Hashable
    open: bool


class Jump(NamedTuple):
    """Key of a row that leads somewhere: to spans of the same run, or to another run by its raw id."""

    place: Hashable
    spans: tuple[str, ...] = ()
    run: str | None = None


def style_masks(line: Line) -> Line:
    """A line with its masks in the style ``mask``. Costs next to nothing where there are none."""
    if not any(MASK in piece.text or ASCII_MASK in piece.text for piece in line):
        return line
    return tuple(part for piece in line for part in _mask_pieces(piece))


def _mask_pieces(piece: Piece) -> Iterator[Piece]:
    done = 0
    for start, end in masks(piece.text):
        if start > done:
            yield Piece(Clean(piece.text[done:start]), piece.style)
        yield Piece(Clean(piece.text[start:end]), "mask")
        done = end
    if done < len(piece.text):
        yield Piece(Clean(piece.text[done:]), piece.style)
