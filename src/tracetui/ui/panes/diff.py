"""Panes of a comparison: the paired steps, the change of one step, and both runs."""

from __future__ import annotations

from typing import Final

from tracetui.analysis.diff_description import DiffDescription
from tracetui.analysis.step_diff import Look
from tracetui.diff.comparison import Diff, Row
from tracetui.diff.step import ContextDiff, Kind, MessageChange
from tracetui.masking import one_line
from tracetui.text import Clean, quantity, tokens
from tracetui.ui.widgets.line_view import FoldingView, LineView
from tracetui.views.diff.description import PhraseRows
from tracetui.views.diff.steps import PREFIX, PairKey, PairRows, caveats, run_rows, summary
from tracetui.views.diff.text import ComparedRows, Folds, unified
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Line, Piece


class Phrases(LineView):
    """The changes in words; the cursor selects the steps of a change."""

    number = 1
    pane_name = "What changed"

    def __init__(self) -> None:
        super().__init__(id="phrases")

    def show_description(self, diff: Diff, description: DiffDescription) -> None:
        """Show the changes of a comparison."""
        rows = PhraseRows(diff, description, glyphs=self.look.glyphs)
        number = len(description.phrases)
        title = (Piece(Clean(f"in words · {quantity(number, 'change')}"), "sec"),)
        self.show(rows, title=title, keep=bool(self.rows))

    @property
    def pair_index(self) -> int | None:
        """The first row of the comparison that has the change under the cursor."""
        rows = self.rows
        if not isinstance(rows, PhraseRows) or self.position >= len(rows.phrases):
            return None
        return next(iter(rows.phrases[self.position].rows), None)

    @property
    def wanted_height(self) -> int:
        """Rows of the full content, with title and a blank row."""
        return len(self.rows) + 2


class Pairs(FoldingView):
    """Paired steps; the cursor starts at the first difference, unless the user moved it.

    The common prefix is folded, unless the cursor is in it.
    """

    number = 2
    pane_name = "Steps"

    def __init__(self) -> None:
        super().__init__(id="pairs")
        self.user_moved = False
        """Whether the user moved the cursor."""
        self.auto_key: PairKey | None = None
        """Row of the first difference found so far, where the cursor was put."""

    @property
    def diff(self) -> Diff | None:
        """The shown comparison."""
        return self.rows.diff if isinstance(self.rows, PairRows) else None

    @property
    def row(self) -> Row | None:
        """The pair under the cursor."""
        diff, index = self.diff, self.pair_index
        return diff.rows[index] if diff is not None and index is not None else None

    @property
    def pair_index(self) -> int | None:
        """Index of the pair under the cursor."""
        rows = self.rows
        return rows.pair(self.position) if isinstance(rows, PairRows) and self.position < len(rows) else None

    def go_to(self, pair: int) -> None:
        """Move the cursor to a pair; unfolds the prefix if necessary."""
        rows = self.rows
        if not isinstance(rows, PairRows):
            return
        self.user_moved = True
        if rows.pair(rows.row_of(pair)) != pair:
            self.opened |= {PREFIX}
            self.draw_rows(keep=True)
            rows = self.rows
            assert isinstance(rows, PairRows)
        self.move_to(rows.row_of(pair))

    def draw_rows(self, *, keep: bool) -> None:
        if (diff := self.diff) is not None:
            self.show(self._rows_of(diff), keep=keep)

    def reveal(self) -> None:
        needle = self.needle.lower()
        if needle and self.toggle(open_=True):
            self.move_to(next((i for i in range(1, len(self.rows)) if needle in self.rows.plain(i).lower()), 0))

    def _rows_of(self, diff: Diff) -> PairRows:
        return PairRows(diff, glyphs=self.look.glyphs, unfolded=PREFIX in self.opened)

    def show_diff(self, diff: Diff) -> None:
        """Show a comparison, or a later state of it."""
        before = self.diff
        if before is not None and _is_continuation(before, diff):
            self._extend(before, diff)
            return
        rows, index = self._rows_of(diff), self.pair_index
        if self.user_moved and index is not None and rows.pair(rows.row_of(index)) != index:
            self.opened |= {PREFIX}
            rows = self._rows_of(diff)
        key = None
        if not self.user_moved and diff.first is not None:
            first = diff.rows[diff.first.row]
            key = PairKey(first.a, first.b)
        is_new = before is None
        self.show(
            rows,
            title=(Piece(Clean(f"paired by {one_line(diff.by, 80)}"), "sec"),),
            heading=lambda width: (summary(diff, self.look.glyphs),),
            keep=not is_new,
        )
        if key is not None and (is_new or key != self.auto_key):
            self.auto_key, self.position = key, -1
            self.move_to_key(key, center=True)
        self._show_fold()

    def on_resize(self) -> None:
        super().on_resize()
        self._show_fold()

    def _show_fold(self) -> None:
        """Scroll to the top if the folded prefix and the first difference fit on one page."""
        if self.rows and self.cursor == self.auto_key and self.rows.key(0) == PREFIX and self.position < self.page:
            self.top = 0
            self.refresh()

    def _extend(self, before: Diff, diff: Diff) -> None:
        """Redraw only the newly compared rows, which are rarely visible."""
        assert isinstance(self.rows, PairRows)
        self.rows.diff = diff
        first, last = self.rows.row_of(before.compared), self.rows.row_of(diff.compared)
        for index in list(self._drawn.keys()):
            if first <= index < last:
                self._drawn.discard(index)
        cell = max(1, len(diff.rows) // self.page)
        if diff.complete or before.compared // cell != diff.compared // cell:
            self._minimap.forget()
        self._heading = None
        self._make_heading = lambda width: (summary(diff, self.look.glyphs),)
        self.refresh_changed()

    @property
    def differs(self) -> bool:
        """Whether any row differs."""
        return self.diff is not None and any(row.kind is not Kind.SAME for row in self.diff.rows)

    def step_to(self, step: int) -> bool:
        """Go to the next differing row; False if there is none."""
        rows = self.rows
        if not isinstance(rows, PairRows):
            return False
        here = self.position
        differing = rows.differing()
        target = next((i for i in differing if i > here), None)
        if step < 0:
            target = next((i for i in reversed(differing) if i < here), None)
        if target is None:
            return False
        self.user_moved = True
        self.move_to(target)
        return True

    @property
    def wanted_height(self) -> int:
        """Rows of the full content, with title and heading."""
        return len(self.rows) + 2


def _is_continuation(before: Diff, diff: Diff) -> bool:
    """Whether `diff` is a later state of `before` with the same pairs and the same first difference."""
    is_same = before.a is diff.a and before.b is diff.b and before.strict == diff.strict and before.first is diff.first
    return is_same and len(before.rows) == len(diff.rows) and 0 < before.compared <= diff.compared


SIDE_BY_SIDE: Final = 98
"""Width from which texts are side by side by default: a pane of a screen of 120 columns."""
MAX_FOLDS: Final = 50


class Change(FoldingView):
    """Change of one step: renders a `Look` with folds, side by side or unified."""

    number = 3
    pane_name = "Change"

    def __init__(self) -> None:
        super().__init__(id="change")
        self.compared: Look | None = None
        self.tab = "changes"
        """Preferred tab, for every step that has it."""
        self.wrap = True
        self.side: bool | None = None
        """Side by side or unified, by the user's choice; None: side by side if there is room."""
        self.all_open: bool | None = None
        self._subject: Line = ()
        self._drawn_width = 0

    # ---- data

    def show_look(self, look: Look, subject: Line, *, path: str = "", last: bool = False) -> None:
        """Show a look at its first difference at `path`, or its last one; `subject`: title."""
        self.opened, self.all_open = frozenset(), None
        self.compared, self._subject = look, subject
        self.draw_rows(keep=False)
        rows = self._rows
        if rows is not None and rows.differences:
            at = rows.differences[-1] if last else rows.first_at(path)
            self._go(at or 0)

    @property
    def _rows(self) -> ComparedRows | None:
        return self.rows if isinstance(self.rows, ComparedRows) else None

    def draw_rows(self, *, keep: bool) -> None:
        if self.compared is None:
            return
        self._drawn_width = width = max(24, self.outer_size.width - 2)
        rows = ComparedRows(
            self.compared,
            width=width,
            side_by_side=self.side_by_side,
            wrap=self.wrap,
            folds=Folds(self.opened, self.all_open),
            glyphs=self.look.glyphs,
        )
        notes = self._notes(self.compared)
        self.show(rows, title=(), title_right=self._tabs(), heading=lambda width: notes, keep=keep)
        self._update_title()

    def _notes(self, look: Look) -> list[Line]:
        lines: list[Line] = [
            (Piece(Clean(f"{self.look.glyphs.note} "), "status.warn bold"), Piece(one_line(note, 200), "status.warn"))
            for note in look.notes
        ]
        if look.bounded:
            warning = "too large for an exact diff: some unchanged lines may show as changed"
            lines.append((Piece(Clean(f"{self.look.glyphs.note} {warning}"), "status.warn"),))
        if not look.sections:
            lines.append((Piece(Clean("nothing recorded for this step"), "dim"),))
        elif not any(section.differs for section in look.sections):
            lines.append((Piece(Clean(f"{self.look.glyphs.same} no differences"), "status.ok"),))
        return lines

    # ---- the title

    def _update_title(self) -> None:
        """Show the subject and the number of the current difference in the title."""
        look = self.compared
        if look is None:
            return
        pieces = list(self._subject)
        if look.about:
            pieces.append(Piece(Clean(f"  {one_line(look.about, 80)}"), "sec"))
        number, count = self._change_number()
        if count:
            of = " of " if self._drawn_width >= SIDE_BY_SIDE else "/"
            position = f"  change {number}{of}{count}" if number else f"  {quantity(count, 'change')}"
            pieces.append(Piece(Clean(position), "sec"))
        self.title, self.title_right = tuple(pieces), self._tabs()
        self.redraw_title()

    def _change_number(self) -> tuple[int, int]:
        rows = self._rows
        if rows is None:
            return 0, 0
        passed = sum(row <= self.position for row in rows.differences)
        return passed, len(rows.differences)

    def _title_line(self, width: int) -> Line:
        self.title_right = self._tabs()
        return super()._title_line(width)

    def _tabs(self) -> Line:
        """The tabs and the scroll position."""
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
        self._update_title()

    def _go(self, position: int) -> None:
        """Move the cursor to a row and scroll to the start of its section."""
        self.position = -1
        self.move_to(position)
        rows = self._rows
        if rows is not None:
            heading = position
            while heading > 0 and rows.section(heading - 1) is rows.section(position) and position - heading < 4:
                heading -= 1
            self.top = max(0, min(heading, len(rows) - self.page))
            self.refresh()

    @property
    def differs(self) -> bool:
        """Whether the shown step differs."""
        return self._rows is not None and bool(self._rows.differences)

    def step_to(self, step: int) -> bool:
        """Go to the next difference; False at the last one."""
        rows = self._rows
        if rows is None:
            return False
        here = self.position
        target = next((row for row in rows.differences if row > here), None)
        if step < 0:
            target = next((row for row in reversed(rows.differences) if row < here), None)
        if target is None:
            return False
        if self.top <= target < self.top + self.page - 2:
            self.move_to(target)
        else:
            self._go(target)
        return True

    # ---- how it is shown

    @property
    def side_by_side(self) -> bool:
        """Whether texts that both runs have are side by side: A on the left, B on the right."""
        return self._drawn_width >= SIDE_BY_SIDE if self.side is None else self.side

    def toggle_side(self) -> bool:
        """Toggle side by side and unified; returns True if side by side now."""
        self.side, self.wrap, self.left = not self.side_by_side, True, 0
        self.draw_rows(keep=True)
        return self.side

    def toggle_wrap(self) -> None:
        """Toggle line wrapping (unified)."""
        self.wrap, self.left = not self.wrap, 0
        self.draw_rows(keep=True)

    def fold_all(self, *, open_: bool) -> None:
        """Unfold or fold all sections."""
        self.opened, self.all_open = frozenset(), open_
        self.draw_rows(keep=True)

    @property
    def text(self) -> str:
        """Full text, unified and unfolded; not cleaned."""
        return "" if self.compared is None else "\n".join(unified(self.compared))

    def reveal(self) -> None:
        """Unfold the row under the cursor until the needle is visible."""
        needle = self.needle.lower()
        for _ in range(MAX_FOLDS):
            here = self.position
            fold = getattr(self.rows, "fold", lambda _: None)(here)
            if fold is None or fold.open or not self.toggle(open_=True):
                return
            inside = (i for i in range(here + 1, len(self.rows)) if needle in self.rows.plain(i).lower())
            target = next(inside, None)
            if target is None:
                return
            self.move_to(target)

    def on_resize(self) -> None:
        super().on_resize()
        if self.compared is not None and self._drawn_width != max(24, self.outer_size.width - 2):
            self.draw_rows(keep=True)

    @property
    def wanted_height(self) -> int:
        """Rows of the full content, with title, notes and a blank row."""
        return len(self.rows) + len(self.heading) + 2

    @property
    def value_path(self) -> str:
        """Path of the value under the cursor."""
        rows = self._rows
        section = rows.section(self.position) if rows is not None else None
        return section.path if section is not None else ""


def context_summary(diff: ContextDiff, glyphs: Glyphs) -> Line:
    """Summary of the message changes: ``kept 41 · +2 new · −6 dropped · ~1 edited  −1.9k tok``."""
    counts = diff.counts
    pieces = [Piece(Clean(f"kept {counts[MessageChange.KEPT]}"), "sec")]
    for change, sign, style in (
        (MessageChange.NEW, glyphs.only_b, "diff.add"),
        (MessageChange.DROPPED, glyphs.only_a, "diff.rem"),
        (MessageChange.EDITED, glyphs.edited, "diff.chg"),
        (MessageChange.MOVED, glyphs.edited, "accent"),
    ):
        if counts[change]:
            pieces += [Piece(Clean(" · "), "dim"), Piece(Clean(f"{sign}{counts[change]} {change.value}"), style)]
    if diff.tokens is not None:
        more = "−" if diff.tokens < 0 else "+"
        pieces.append(Piece(Clean(f"  {more}{tokens(abs(diff.tokens))} tok"), "sec"))
    return tuple(pieces)


class Sides(FoldingView):
    """Outcome, cost and verdicts of both runs, and the ignored differences."""

    number = 4
    pane_name = "Both runs"

    def __init__(self) -> None:
        super().__init__(id="sides")
        self._diff: Diff | None = None
        self._description = DiffDescription()
        self._drawn_width = 0

    def show_diff(self, diff: Diff, description: DiffDescription) -> None:
        """Show both runs."""
        is_new, self._diff, self._description = self._diff is None, diff, description
        self.draw_rows(keep=not is_new)

    def draw_rows(self, *, keep: bool) -> None:
        if self._diff is None:
            return
        self._drawn_width = width = max(24, self.outer_size.width - 2)
        diff, glyphs = self._diff, self.look.glyphs
        rows = run_rows(diff, self._description, width=width, opened=self.opened, glyphs=glyphs)
        self.show(rows, heading=lambda width: caveats(diff, glyphs), keep=keep)

    @property
    def wanted_height(self) -> int:
        """Rows of the full content, with title and heading."""
        return len(self.rows) + len(self.heading) + 1

    def on_resize(self) -> None:
        super().on_resize()
        if self._drawn_width != max(24, self.outer_size.width - 2):
            self.draw_rows(keep=True)
