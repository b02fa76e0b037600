"""Rows, the content of every pane. A row model depends on data and a width, never on Textual.

A `Line` is cleaned text in pieces, each with a *style name* (``status.error``, ``role.user``, ``dim``), which only
`tracetui.ui.theme` maps to colors. A blank joins two style names: ``dim bold``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from tracetui.redact import ASCII_MASK, MASK, masks
from tracetui.text import Clean, cells, pad, truncate, wrap

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
        "bar.error.part",
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
        *(f"{ground}tint.{number}" for ground in ("", "on.") for number in range(8)),
        "json.key",
        "json.string",
        "json.number",
        "json.word",
        "json.punct",
    }
)
"""All style names."""


class Piece(NamedTuple):
    """A piece of text in one style."""

    text: Clean
    style: str = "text"


Line = tuple[Piece, ...]
"""One row of a pane."""


class Rows(Protocol):
    """The rows of a pane at one state of the data. Each call costs the work of one row, except the first."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def key(self, index: int) -> Hashable:
        """The stable identity of a row, while rows are added, removed or moved. Cursors are keys."""
        ...

    def index(self, key: Hashable) -> int | None:
        """The row with that key, None if there is none."""
        ...

    def line(self, index: int, width: int) -> Line:
        """The row drawn in `width` cells (longer rows scroll sideways)."""
        ...

    def selectable(self, index: int) -> bool:
        """False for rows without a cursor: group headings, blank rows."""
        return True

    def mark(self, index: int) -> str | None:
        """Style name of the row's tick in the scroll bar (``status.error``), None for none."""
        return None

    def plain(self, index: int) -> str:
        """The full text of the row for search and copy, neither truncated nor cleaned."""
        ...


@runtime_checkable
class WithHeadings(Protocol):
    """Rows with headings that don't count."""

    def above(self, index: int) -> int:
        """Number of rows above this one, without headings."""
        ...


@runtime_checkable
class WithMarks(Protocol):
    """Rows that know which of them have a mark, so that a scroll bar need not ask each."""

    @property
    def marked(self) -> Sequence[int]:
        """The rows for which `Rows.mark` isn't None, ascending."""
        ...


class ListRows:
    """Precomputed rows, for short panes."""

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


def width_of(line: Iterable[Piece]) -> int:
    """Width of a line in cells."""
    return sum([cells(text) for text, _ in line])


def fit(line: Iterable[Piece], width: int) -> list[Piece]:
    """Truncate a line to `width` cells, with ``…`` at the cut."""
    fitted: list[Piece] = []
    remaining = width
    for piece in line:
        size = cells(piece.text)
        if size <= remaining:
            fitted.append(piece)
            remaining -= size
            continue
        while not remaining and fitted:  # the line ends exactly here: the ellipsis replaces its last cell
            piece = fitted.pop()
            remaining = cells(piece.text)
            piece = piece._replace(text=Clean(piece.text + "…"))
        fitted.append(piece._replace(text=truncate(piece.text, remaining)))
        break
    return fitted


def fill(line: Iterable[Piece], width: int) -> list[Piece]:
    """Truncate or pad a line to exactly `width` cells."""
    filled = list(line)
    missing = width - width_of(filled)
    if missing < 0:
        filled = fit(filled, width)
        missing = width - width_of(filled)
    if missing > 0:
        filled.append(Piece(Clean(" " * missing), "text"))
    return filled


def break_line(line: Iterable[Piece], width: int) -> tuple[list[Piece], list[Piece]]:
    """The pieces that fit in a row of `width` cells, broken at a blank if possible, and those after them."""
    pieces = list(line)
    stop = len(wrap(Clean("".join(piece.text for piece in pieces)), width)[0])
    first: list[Piece] = []
    rest: list[Piece] = []
    for piece in pieces:
        before, after = piece.text[:stop], piece.text[stop:]
        stop = max(0, stop - len(piece.text))
        if before:
            first.append(piece._replace(text=Clean(before)))
        if after := after if rest else after.lstrip(" "):
            rest.append(piece._replace(text=Clean(after)))
    return first, rest


def column(text: Clean, width: int, style: str, *, right: bool = False) -> Piece:
    """A cell of a table: exactly `width` cells."""
    return Piece(pad(text, width, right=right), style)


class Fold(NamedTuple):
    """A foldable row: its key in the set of toggled keys, and whether it is open.

    A key in the set inverts the row's default. Toggle with ``keys ^ {fold.key}``.
    """

    key: Hashable
    open: bool


class Jump(NamedTuple):
    """Key of a row with a target: spans of the same run, or another run by its raw id."""

    place: Hashable
    spans: tuple[str, ...] = ()
    run: str | None = None


def style_masks(line: Line) -> Line:
    """Apply the style ``mask`` to the masks of a line. Cheap without masks."""
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
