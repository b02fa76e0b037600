"""The diff of two steps as rows: side by side or unified, wrapped at blanks, equal stretches folded.

Unfolded, it has every line of both texts. Folded parts are never laid out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from rich.cells import chop_cells

from tracetui.analysis.step_diff import Look, Section, Sign
from tracetui.diff.align import Hunk
from tracetui.diff.align import Line as ChangedLine
from tracetui.masking import clean, one_line
from tracetui.text import Clean, cells, count, grouped, pad
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Fold, Line, Piece, Rows, fill, fit, width_of

_LONG: Final = 1 << 14
"""Maximum characters of a line to wrap at blanks; longer lines wrap at the width."""
_NUMBER: Final = 4
_UNWRAPPED: Final = 1 << 30


class Paper(NamedTuple):
    """Layout options: side by side or unified, wrapped or not, width."""

    width: int
    side: bool
    wrap: bool
    glyphs: Glyphs

    @property
    def half(self) -> int:
        """Cells of the column of A."""
        return (self.width - 3) // 2

    @property
    def room(self) -> int:
        """Cells of the text of a line."""
        if not self.wrap:
            return _UNWRAPPED
        return max(4, self.half - _NUMBER - 2 if self.side else self.width - 2 * _NUMBER - 3)

    def pieces(self, lines: Lines, unit: int, row: int) -> Iterator[Piece]:
        """A row of a unit."""
        return (self._side_by_side if self.side else self._unified)(lines, *lines.lines(unit), row)

    def _side_by_side(self, lines: Lines, a: int | None, b: int | None, row: int) -> Iterator[Piece]:
        yield from fill(self._cell(lines, a, row, in_b=False), self.half)
        sign = self.glyphs.changed if not lines.of.same and a is not None and b is not None else Clean(" ")
        if not lines.of.same and (a is None or b is None):
            sign = self.glyphs.only_b if a is None else self.glyphs.only_a
        style = "diff.chg" if a is not None and b is not None else "diff.add" if a is None else "diff.rem"
        yield Piece(Clean(f" {sign if row == 0 else ' '} "), style)
        yield from fill(self._cell(lines, b, row, in_b=True), self.width - self.half - 3)

    def _cell(self, lines: Lines, number: int | None, row: int, *, in_b: bool) -> list[Piece]:
        if number is None:
            return [Piece(Clean(" " * self.half), "diff.gap")]
        line = (lines.of.b if in_b else lines.of.a)[number]
        at = (lines.of.at_b if in_b else lines.of.at_a) + number + 1
        line_number = pad(count(at) if row == 0 else Clean(""), _NUMBER, right=True)
        base = "" if lines.of.same else "diff.add" if in_b else "diff.rem"
        sign = Clean(" ") if lines.of.same or row else self.glyphs.only_b if in_b else self.glyphs.only_a
        text = wrapped_line(line, self.room).row(row, base)
        pieces = [Piece(sign, base or "dim"), Piece(Clean(f"{line_number} "), "dim"), *text]
        if not base:
            return pieces
        size = self.width - self.half - 3 if in_b else self.half
        missing = size - width_of(pieces)
        return [*pieces, Piece(Clean(" " * max(0, missing)), f"{base}.line")]

    def _unified(self, lines: Lines, a: int | None, b: int | None, row: int) -> Iterator[Piece]:
        hunk = lines.of
        if hunk.same:
            base, sign, line = "", Clean(" "), hunk.a[a if a is not None else 0]
        elif a is not None:
            base, sign, line = "diff.rem", self.glyphs.only_a, hunk.a[a]
        else:
            assert b is not None
            base, sign, line = "diff.add", self.glyphs.only_b, hunk.b[b]
        shown_a = count(hunk.at_a + a + 1) if a is not None and row == 0 else Clean("")
        shown_b = count(hunk.at_b + b + 1) if b is not None and row == 0 else Clean("")
        yield Piece(sign if row == 0 else Clean(" "), base or "dim")
        numbers = f"{pad(shown_a, _NUMBER, right=True)} {pad(shown_b, _NUMBER, right=True)} "
        yield Piece(Clean(numbers), "dim")
        text = wrapped_line(line, self.room).row(row, base)
        yield from text
        if base:
            missing = self.width - (2 * _NUMBER + 3) - width_of(text)
            yield Piece(Clean(" " * max(0, missing)), f"{base}.line")


class Lines:
    """Lines of a hunk: units `first` to `stop`, each a line of A, of B, or both."""

    def __init__(self, section: int, hunk: int, of: Hunk, first: int, stop: int, paper: Paper) -> None:
        self.section, self.hunk, self.of, self.first = section, hunk, of, first
        self.paper = paper
        heights = (self._height(*self.lines(unit)) for unit in range(first, stop))
        self.starts = list(accumulate(heights, initial=0))

    def _height(self, a: int | None, b: int | None) -> int:
        rows_a = 0 if a is None else len(wrapped_line(self.of.a[a], self.paper.room).starts)
        if b is None or (self.of.same and a is not None):
            return rows_a
        return max(rows_a, len(wrapped_line(self.of.b[b], self.paper.room).starts))

    def lines(self, unit: int) -> tuple[int | None, int | None]:
        """The lines of A and B in that unit."""
        size_a, size_b = len(self.of.a), len(self.of.b)
        if self.of.same or self.paper.side:
            return (unit if unit < size_a else None), (unit if unit < size_b else None)
        return (unit, None) if unit < size_a else (None, unit - size_a)

    def at(self, row: int) -> tuple[int, int]:
        """Unit, and row in it."""
        number = bisect_right(self.starts, row) - 1
        return self.first + number, row - self.starts[number]


class WrappedLine(NamedTuple):
    """A cleaned line, and the starts of its rows."""

    pieces: tuple[tuple[Clean, bool], ...]
    starts: Sequence[int]
    size: int

    def row(self, number: int, base: str) -> list[Piece]:
        """One row; `base` is ``diff.add``, ``diff.rem`` or empty. Empty beyond the end."""
        if number >= len(self.starts):
            return []
        start = self.starts[number]
        stop = self.starts[number + 1] if number + 1 < len(self.starts) else self.size
        partly = not all(changed for _, changed in self.pieces)
        pieces: list[Piece] = []
        at = 0
        for text, changed in self.pieces:
            part = text[max(0, start - at) : max(0, stop - at)]
            at += len(text)
            if part:
                style = "sec" if not base else f"{base}.word bold" if changed and partly else f"{base}.line"
                pieces.append(Piece(Clean(part), style))
        return pieces


@lru_cache(2048)
def wrapped_line(line: ChangedLine, room: int) -> WrappedLine:
    """A line wrapped to rows of at most `room` cells."""
    pieces = tuple((clean(piece.text), piece.changed) for piece in line)
    text = Clean("".join(piece for piece, _ in pieces))
    return WrappedLine(pieces, breaks(text, room), len(text))


def breaks(text: Clean, width: int) -> Sequence[int]:
    """The starts of the rows of a text in `width` cells."""
    if cells(text) <= width:
        return (0,)
    if len(text) > _LONG:
        return range(0, len(text), width if text.isascii() else max(1, width // 2))
    starts, at = [0], 0
    ascii_only = text.isascii()
    while len(text) - at > (width if ascii_only else 0):
        stop = at + width if ascii_only else at + _fitting(text, at, width)
        if stop >= len(text):
            break
        blank = text.rfind(" ", at + (stop - at) // 3, stop)
        at = blank + 1 if blank > 0 else stop
        starts.append(at)
    return starts


def _fitting(text: Clean, at: int, width: int) -> int:
    """Number of characters from `at` on that fit."""
    part = text[at : at + 4 * width + 8]
    if cells(Clean(part)) <= width:
        return len(part)
    return max(1, len(chop_cells(part, width)[0]))


AROUND: Final = 3
"""Context lines around a change."""
_WORTH: Final = 3
"""Minimum lines of a fold."""
_STYLES: Final = {
    Sign.SAME: "dim",
    Sign.EDITED: "diff.chg",
    Sign.ADDED: "diff.add",
    Sign.REMOVED: "diff.rem",
    Sign.MOVED: "accent",
}
_SIDES: Final = {Sign.ADDED: "only B", Sign.REMOVED: "only A", Sign.MOVED: "moved"}
_SINCE: Final = {Sign.ADDED: "new", Sign.REMOVED: "dropped", Sign.MOVED: "moved", Sign.EDITED: "edited"}
_TICKS: Final = {Sign.EDITED: "diff.chg", Sign.ADDED: "diff.add", Sign.REMOVED: "diff.rem", Sign.MOVED: "diff.chg"}


class Folds(NamedTuple):
    """The open folds: by default, all or none; `toggled` contains the exceptions."""

    toggled: frozenset[Hashable] = frozenset()
    everything: bool | None = None

    def is_open(self, key: Hashable, comes_open: bool) -> bool:
        """Whether a fold is open."""
        return (comes_open if self.everything is None else self.everything) != (key in self.toggled)


AS_THEY_COME: Final = Folds()


class LineKey(NamedTuple):
    """Key of a row: heading (`hunk` -1), fold, or line of a hunk, and the row in it."""

    section: int
    hunk: int = -1
    unit: int = -1
    row: int = 0


class _Group(NamedTuple):
    """Consecutive equal sections, folded into one row."""

    first: int
    stop: int
    open: bool


class _Head(NamedTuple):
    section: int
    open: bool


class _Hidden(NamedTuple):
    """Equal lines, folded into one row."""

    section: int
    hunk: int
    first: int
    size: int
    open: bool


_Segment = _Group | _Head | _Hidden | Lines


class ComparedRows(Rows):
    """Rows of a `Look`; see `tracetui.views.rows.Rows`."""

    def __init__(
        self,
        look: Look,
        *,
        width: int,
        side_by_side: bool,
        wrap: bool = True,
        folds: Folds = AS_THEY_COME,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        self.look = look
        self._glyphs, self._folds = glyphs, folds
        self._paper = Paper(max(24, width), side_by_side and wrap, wrap, glyphs)
        self._side, self._width = self._paper.side, self._paper.width
        self._segments: list[_Segment] = []
        self._starts = [0]
        self.differences: list[int] = []
        """Rows at which a difference begins."""
        self._build()

    # ---- building

    def _build(self) -> None:
        sections, i = self.look.sections, 0
        while i < len(sections):
            stop = i + 1
            while not sections[i].differs and stop < len(sections) and not sections[stop].differs:
                stop += 1
            if stop - i > 1:
                opened = self._folds.is_open(LineKey(i, -2), False)
                self._add(_Group(i, stop, opened), 1)
            if stop - i == 1 or opened:
                for number in range(i, stop):
                    self._add_section(number, sections[number])
            i = stop

    def _add(self, segment: _Segment, rows: int) -> None:
        if rows:
            self._segments.append(segment)
            self._starts.append(self._starts[-1] + rows)

    def _add_section(self, number: int, section: Section) -> None:
        comes_open = section.sign not in (Sign.SAME, Sign.MOVED)
        opened = self._folds.is_open(LineKey(number), comes_open)
        if section.differs and not (opened and section.compared.changed):
            self.differences.append(self._starts[-1])
        self._add(_Head(number, opened), 1)
        if opened:
            hunks, paper = section.compared.hunks, self._paper_of(section)
            for place, hunk in enumerate(hunks):
                if hunk.same:
                    self._add_same(number, place, hunk, len(hunks), paper)
                else:
                    if section.differs:  # else it has only ignored differences
                        self.differences.append(self._starts[-1])
                    units = max(len(hunk.a), len(hunk.b)) if paper.side else len(hunk.a) + len(hunk.b)
                    self._add_lines(number, place, hunk, 0, units, paper)

    def _paper_of(self, section: Section) -> Paper:
        """A text that only one side has, or that is equal on both, takes the whole width."""
        has_sides = section.compared.changed and section.sign not in _SIDES
        return self._paper if has_sides else self._paper._replace(side=False)

    def _add_same(self, number: int, place: int, hunk: Hunk, hunks: int, paper: Paper) -> None:
        size = len(hunk.a)
        head, tail = (AROUND if place else 0), (AROUND if place < hunks - 1 else 0)
        if hunks == 1 or size - head - tail < _WORTH:
            self._add_lines(number, place, hunk, 0, size, paper)
            return
        hidden = size - head - tail
        opened = self._folds.is_open(LineKey(number, place), False)
        self._add_lines(number, place, hunk, 0, head, paper)
        self._add(_Hidden(number, place, head, hidden, opened), 1)
        if opened:
            self._add_lines(number, place, hunk, head, head + hidden, paper)
        self._add_lines(number, place, hunk, head + hidden, size, paper)

    def _add_lines(self, number: int, place: int, hunk: Hunk, first: int, stop: int, paper: Paper) -> None:
        if first < stop:
            lines = Lines(number, place, hunk, first, stop, paper)
            self._add(lines, lines.starts[-1])

    # ---- the rows

    def _locate(self, index: int) -> tuple[_Segment, int]:
        number = bisect_right(self._starts, index) - 1
        return self._segments[number], index - self._starts[number]

    def __len__(self) -> int:
        return self._starts[-1]

    def key(self, index: int) -> Hashable:
        segment, i = self._locate(index)
        if isinstance(segment, _Group):
            return LineKey(segment.first, -2)
        if isinstance(segment, Lines):
            return LineKey(segment.section, segment.hunk, *segment.at(i))
        return LineKey(segment.section, segment.hunk if isinstance(segment, _Hidden) else -1)

    def index(self, key: Hashable) -> int | None:
        if not isinstance(key, LineKey):
            return None
        for segment, start in zip(self._segments, self._starts, strict=False):
            if isinstance(segment, Lines):
                number = key.unit - segment.first
                inside = 0 <= number < len(segment.starts) - 1
                if (segment.section, segment.hunk) == key[:2] and inside:
                    last = segment.starts[number + 1] - segment.starts[number] - 1
                    return start + segment.starts[number] + key.row if key.row <= last else None
            elif key == self.key(start):
                return start
        return None

    def mark(self, index: int) -> str | None:
        segment, i = self._locate(index)
        if isinstance(segment, Lines):
            if segment.of.same:
                return None
            a, b = segment.lines(segment.at(i)[0])
            return "diff.chg" if a is not None and b is not None else "diff.rem" if b is None else "diff.add"
        return _TICKS.get(self.look.sections[segment.section].sign) if isinstance(segment, _Head) else None

    def section(self, index: int) -> Section | None:
        """The section of a row."""
        if index >= len(self):
            return None
        segment, _ = self._locate(index)
        return self.look.sections[segment.first if isinstance(segment, _Group) else segment.section]

    def first_at(self, path: str) -> int | None:
        """The first difference at, in or around a path; else the first of all."""
        for row in self.differences:
            section = self.section(row)
            if section is not None and path and path.startswith((section.path, section.label)):
                return row
        return self.differences[0] if self.differences else None

    # ---- folds

    def fold(self, index: int) -> Fold | None:
        """The fold of a row."""
        segment, _ = self._locate(index)
        if isinstance(segment, Lines):
            return None
        key = self.key(index)
        return Fold(key, segment.open)

    def parent(self, index: int) -> int | None:
        """The row that a row folds into: fold or heading of a line, group of a heading."""
        segment, _ = self._locate(index)
        if isinstance(segment, Lines):
            fold = self.index(LineKey(segment.section, segment.hunk))
            return fold if fold is not None and fold < index else self.index(LineKey(segment.section))
        if isinstance(segment, _Hidden):
            return self.index(LineKey(segment.section))
        if isinstance(segment, _Head):
            groups = (entry for entry in self._segments if isinstance(entry, _Group))
            group = next((group for group in groups if group.first <= segment.section < group.stop), None)
            return None if group is None else self.index(LineKey(group.first, -2))
        return None

    # ---- drawing

    def line(self, index: int, width: int) -> Line:
        segment, i = self._locate(index)
        if isinstance(segment, Lines):
            return tuple(fit(segment.paper.pieces(segment, *segment.at(i)), width))
        if isinstance(segment, _Head):
            return tuple(fit(self._heading(segment), width))
        return tuple(fit(self._fold_line(segment), width))

    def _heading(self, head: _Head) -> Iterator[Piece]:
        section = self.look.sections[head.section]
        style = _STYLES[section.sign]
        mark = self._glyphs.unfolded if head.open else self._glyphs.folded
        label = [
            Piece(self._sign(section.sign), f"{style} bold"),
            Piece(Clean(f" {mark} "), "dim"),
            Piece(one_line(section.label, 200), "text bold" if section.differs else "sec"),
        ]
        suffix = (_SINCE if self.look.context is not None else _SIDES).get(section.sign, "")
        if suffix:
            label.append(Piece(Clean(f"  {suffix}"), style))
        if section.note:
            label.append(
                Piece(Clean(f"  {one_line(section.note, 200)}"), "status.warn" if "cache" in section.note else "sec")
            )
        if not head.open:
            label.append(Piece(Clean(f"  {self._preview(section)}"), "dim"))
        side = one_line(section.side, 40)
        room = self._width - len(side) - 2
        yield from fit(label, max(8, room))
        rest = room - width_of(label)
        if rest > 0:
            yield Piece(Clean(f" {self._glyphs.rule * (rest - 1)}"), "line")
        yield Piece(Clean(f" {side}"), "dim")

    def _preview(self, section: Section) -> Clean:
        a, b = section.texts()
        return one_line(b if b is not None else a or "", 120)

    def _sign(self, sign: Sign) -> Clean:
        glyphs = self._glyphs
        return {
            Sign.SAME: glyphs.same,
            Sign.EDITED: glyphs.edited,
            Sign.ADDED: glyphs.only_b,
            Sign.REMOVED: glyphs.only_a,
            Sign.MOVED: glyphs.edited,
        }[sign]

    def _fold_line(self, segment: _Group | _Hidden) -> Iterator[Piece]:
        mark = self._glyphs.unfolded if segment.open else self._glyphs.folded
        if isinstance(segment, _Hidden):
            label = f"{mark} {grouped(segment.size)} unchanged lines"
        else:
            number = segment.stop - segment.first
            sections = self.look.sections[segment.first : segment.stop]
            is_messages = all(section.path.startswith("messages[") for section in sections)
            label = f"{mark} {grouped(number)} unchanged {'messages' if is_messages else 'values'}"
        rule = self._glyphs.rule
        before = 2 if not self._side else max(2, (self._width - len(label)) // 2 - 1)
        yield Piece(Clean(rule * before), "line")
        yield Piece(Clean(f" {label} "), "dim")
        yield Piece(Clean(rule * max(0, self._width - before - len(label) - 2)), "line")

    # ---- search and copy

    def plain(self, index: int) -> str:
        segment, i = self._locate(index)
        sections = self.look.sections
        if isinstance(segment, Lines):
            a, b = segment.lines(segment.at(i)[0])
            label = [] if a is None else [_plain(segment.of.a[a])]
            return "\n".join(label if b is None or segment.of.same else [*label, _plain(segment.of.b[b])])
        if isinstance(segment, _Hidden):
            if segment.open:
                return ""
            hunk = sections[segment.section].compared.hunks[segment.hunk]
            return "\n".join(map(_plain, hunk.a[segment.first : segment.first + segment.size]))
        if isinstance(segment, _Group):
            return "" if segment.open else "\n".join(map(_section_text, sections[segment.first : segment.stop]))
        section = sections[segment.section]
        return f"{section.label} {section.note}".strip() if segment.open else _section_text(section)


def unified(look: Look) -> Iterator[str]:
    """All lines of a look as a unified diff: ``-`` only in A, ``+`` only in B; not cleaned."""
    for section in look.sections:
        sign = {Sign.SAME: "=", Sign.ADDED: "+", Sign.REMOVED: "-"}.get(section.sign, "~")
        yield f"{sign} {section.label}  {' · '.join(filter(None, (section.side, section.note)))}".rstrip()
        for hunk in section.compared.hunks:
            yield from (f"{' ' if hunk.same else '-'} {_plain(line)}" for line in hunk.a)
            if not hunk.same:
                yield from (f"+ {_plain(line)}" for line in hunk.b)
        yield ""


def _plain(line: ChangedLine) -> str:
    return "".join(piece.text for piece in line)


def _section_text(section: Section) -> str:
    return "\n".join([section.label, *dict.fromkeys(text for text in section.texts() if text is not None)])
