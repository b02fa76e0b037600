"""Pane 2 of a comparison: what differs in the pair under the cursor, to the last word."""

from __future__ import annotations

from typing import Final

from textual.strip import Strip

from tracetui.diff.context import ContextDiff, Fate
from tracetui.text import Clean, tokens
from tracetui.ui.panes.folding import FoldingView
from tracetui.views.diff_look import Look
from tracetui.views.diff_text import ComparedRows, Folds, unified
from tracetui.views.glyphs import Glyphs
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, ListRows, Piece

SIDE_BY_SIDE: Final = 98
"""Cells from which texts stand side by side, unless the reader wants it otherwise: panes of screens of 120 columns and
more have them.
"""
MOST_FOLDS: Final = 50


class Change(FoldingView):
    """A `Look`. Other folds and another layout are other rows of the same look."""

    number = 2
    pane_name = "Change"

    def __init__(self) -> None:
        super().__init__(id="change")
        self.compared: Look | None = None
        self.tab = "changes"
        """The tab that the reader wants; kept from step to step where there is one."""
        self.wrap = True
        self.side: bool | None = None
        """Side by side, as the reader wants it; None: where there is room."""
        self.everything: bool | None = None
        self._subject: Line = ()
        self._drawn_width = 0

    # ---- data

    def show_look(self, look: Look, subject: Line, *, path: str = "", last: bool = False) -> None:
        """Show a look from its first difference at `path` on (or its last one); `subject` says what it is of."""
        self.opened, self.everything = frozenset(), None
        self.compared, self._subject = look, subject
        self.draw_rows(keep=False)
        rows = self._rows
        if rows is not None and rows.differences:
            at = rows.differences[-1] if last else rows.first_at(path)
            self._go(at or 0)

    def nothing(self, line: Line) -> None:
        """Say why there is nothing to show."""
        self.compared = None
        self.show(ListRows([line], headings=[0]), title=(), title_right=(), keep=False)

    @property
    def _rows(self) -> ComparedRows | None:
        return self.rows if isinstance(self.rows, ComparedRows) else None

    def draw_rows(self, *, keep: bool) -> None:
        if self.compared is None:
            return
        self._drawn_width = width = max(24, self.outer_size.width - 2)
        side = width >= SIDE_BY_SIDE if self.side is None else self.side
        rows = ComparedRows(
            self.compared,
            width=width,
            side_by_side=side,
            wrap=self.wrap,
            folds=Folds(self.opened, self.everything),
            glyphs=self.look.glyphs,
        )
        notes = self._notes(self.compared)
        self.show(rows, title=(), title_right=self._tabs(), heading=lambda width: notes, keep=keep)
        self._tell()

    def _notes(self, look: Look) -> list[Line]:
        lines: list[Line] = [
            (Piece(Clean(f"{self.look.glyphs.note} "), "status.warn bold"), Piece(one_line(note, 200), "status.warn"))
            for note in look.notes
        ]
        if look.bounded:
            words = "too large to compare in the best way: more may be shown as changed than was"
            lines.append((Piece(Clean(f"{self.look.glyphs.note} {words}"), "status.warn"),))
        if not look.sections:
            lines.append((Piece(Clean("the trace holds nothing here to compare"), "dim"),))
        elif not any(one.differs for one in look.sections):
            lines.append((Piece(Clean(f"{self.look.glyphs.same} nothing differs here"), "status.ok"),))
        return lines

    # ---- the title

    def _tell(self) -> None:
        """Say in the title what this is, and at which difference the cursor is."""
        look = self.compared
        if look is None:
            return
        pieces = list(self._subject)
        if look.about:
            pieces.append(Piece(Clean(f"  {one_line(look.about, 80)}"), "sec"))
        if look.context is not None:
            pieces += [Piece(Clean("  ")), *context_words(look.context, self.look.glyphs)]
        number, count = self._where()
        if count:
            of = " of " if self._drawn_width >= SIDE_BY_SIDE else "/"
            where = f"  change {number}{of}{count}" if number else f"  {count} change{'s' if count != 1 else ''}"
            pieces.append(Piece(Clean(where), "sec"))
        self.title, self.title_right = tuple(pieces), self._tabs()
        self.redraw_title()

    def _where(self) -> tuple[int, int]:
        rows = self._rows
        if rows is None:
            return 0, 0
        passed = sum(row <= self.position for row in rows.differences)
        return passed, len(rows.differences)

    def _title_strip(self, width: int) -> Strip:
        self.title_right = self._tabs()
        return super()._title_strip(width)

    def _tabs(self) -> Line:
        """The tabs, and which rows are in view."""
        look = self.compared
        if look is None or len(look.tabs) < 2:
            return ()
        pieces: list[Piece] = []
        for tab in look.tabs:
            pieces += [Piece(Clean(tab), "accent bold underline" if tab == look.tab else "sec"), Piece(Clean("  "))]
        return (*pieces, *self._position())

    # ---- moving

    def move_to(self, position: int, *, center: bool = False) -> None:
        super().move_to(position, center=center)
        self._tell()

    def _go(self, position: int) -> None:
        """Put the cursor on a row and what is around it in view."""
        self.position = -1
        self.move_to(position)
        rows = self._rows
        if rows is not None:
            heading = position
            while heading > 0 and rows.section(heading - 1) is rows.section(position) and position - heading < 4:
                heading -= 1
            self.top = max(0, min(heading, len(rows) - self.page))
            self.refresh()

    def step_to(self, step: int) -> bool:
        """Go to the next difference; False at the last one."""
        rows = self._rows
        if rows is None:
            return False
        here = self.position
        found = next((row for row in rows.differences if row > here), None)
        if step < 0:
            found = next((row for row in reversed(rows.differences) if row < here), None)
        if found is None:
            return False
        if self.top <= found < self.top + self.page - 2:
            self.move_to(found)
        else:
            self._go(found)
        return True

    # ---- how it is shown

    def toggle_side(self) -> bool:
        """Side by side, or unified; True if side by side now."""
        shown = self._drawn_width >= SIDE_BY_SIDE if self.side is None else self.side
        self.side, self.wrap, self.left = not shown, True, 0
        self.draw_rows(keep=True)
        return self.side

    def toggle_wrap(self) -> None:
        """Wrap long lines at the edge of the pane, or let them run on beyond it (unified)."""
        self.wrap, self.left = not self.wrap, 0
        self.draw_rows(keep=True)

    def fold_all(self, *, open_: bool) -> None:
        """Open or fold everything."""
        self.opened, self.everything = frozenset(), open_
        self.draw_rows(keep=True)

    @property
    def text(self) -> str:
        """All of it, one side below the other, nothing folded; not cleaned."""
        return "" if self.compared is None else "\n".join(unified(self.compared))

    def reveal(self) -> None:
        """Unfold the row under the cursor until the needle itself is in view."""
        needle = self.needle.lower()
        for _ in range(MOST_FOLDS):
            here = self.position
            fold = getattr(self.rows, "fold", lambda _: None)(here)
            if fold is None or fold.open or not self.toggle(open_=True):
                return
            inside = (i for i in range(here + 1, len(self.rows)) if needle in self.rows.plain(i).lower())
            found = next(inside, None)
            if found is None:
                return
            self.move_to(found)

    def on_resize(self) -> None:
        super().on_resize()
        if self.compared is not None and self._drawn_width != max(24, self.outer_size.width - 2):
            self.draw_rows(keep=True)

    @property
    def place(self) -> str:
        """The path of the value under the cursor."""
        rows = self._rows
        section = rows.section(self.position) if rows is not None else None
        return section.path if section is not None else ""


def context_words(found: ContextDiff, glyphs: Glyphs) -> Line:
    """How the messages differ: ``kept 41 · +2 new · −6 dropped · ~1 edited  −1.9k tok``."""
    counts = found.counts
    pieces = [Piece(Clean(f"kept {counts[Fate.KEPT]}"), "sec")]
    for fate, sign, style in (
        (Fate.NEW, glyphs.only_b, "diff.add"),
        (Fate.DROPPED, glyphs.only_a, "diff.rem"),
        (Fate.EDITED, glyphs.edited, "diff.chg"),
        (Fate.MOVED, glyphs.edited, "accent"),
    ):
        if counts[fate]:
            pieces += [Piece(Clean(" · "), "dim"), Piece(Clean(f"{sign}{counts[fate]} {fate.value}"), style)]
    if found.tokens is not None:
        more = "−" if found.tokens < 0 else "+"
        pieces.append(Piece(Clean(f"  {more}{tokens(abs(found.tokens))} tok"), "sec"))
    return tuple(pieces)
