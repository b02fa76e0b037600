"""The panes of the context page: the river of contents, the breaks, the contents, and the call under the cursor."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from textual.message import Message

from tracetui import masking
from tracetui.analysis.context import Call, Ledger
from tracetui.text import Clean, grouped, tokens
from tracetui.ui.commands import BREAKS, CALL, CONTENTS, RIVER
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.context import no_breaks
from tracetui.views.context_page import (
    Band,
    ContentColumns,
    ContentRow,
    break_heading,
    break_line,
    break_total,
    call_lines,
    content_rows,
    explanation_lines,
    footnote,
    full_bar,
    hour_lines,
    river_lines,
)
from tracetui.views.rows import Line, ListRows, Piece


class DrawnPane(LineView):
    """A pane whose rows are drawn for its size."""

    def draw_rows(self) -> None:
        """Draw the rows, if there is something to show and room for it."""
        raise NotImplementedError

    def on_resize(self) -> None:
        super().on_resize()
        self.draw_rows()


class River(DrawnPane):
    """The input of every call of one conversation by content. Moving goes from call to call."""

    number = 1
    pane_name = "Context by call"

    class Stepped(Message):
        """Go so many calls on, or back."""

        def __init__(self, step: int) -> None:
            self.step = step
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id=RIVER)
        self._calls: Sequence[Call] = ()
        self._bands: Sequence[Band] = ()
        self._selected: int | None = None

    def show_calls(self, calls: Sequence[Call], bands: Sequence[Band], selected: int | None) -> None:
        """Show the calls of one conversation."""
        self._calls, self._bands, self._selected = calls, bands, selected
        peak = max(call.input for call in calls)
        label = f"most {tokens(peak)} {self.look.glyphs.dot} now {tokens(calls[-1].input)}"
        self.title_right = (Piece(Clean(label), "sec"),)
        self.draw_rows()

    def show_message(self, message: Clean) -> None:
        """Show a message in place of a river."""
        self._calls = ()
        self.title_right = ()
        self.show(ListRows([(), (Piece(message, "text bold"),)], headings=range(2)), keep=False)

    def draw_rows(self) -> None:
        width, height = self.outer_size.width - 2, self.outer_size.height - 1
        if not self._calls or width <= 0:
            return
        glyphs = self.look.glyphs
        lines = river_lines(self._calls, self._bands, width, height, self._selected, glyphs)
        self.show(ListRows(lines, headings=range(len(lines))))

    def action_move(self, rows: int) -> None:
        """Go to the call before, or after."""
        self.post_message(self.Stepped(rows))

    def action_page(self, pages: float) -> None:
        """Go on by a tenth of the calls."""
        self.post_message(self.Stepped(round(pages * max(2, len(self._calls) // 5))))

    def action_edge(self, end: bool) -> None:
        """Go to the first call, or the last."""
        self.post_message(self.Stepped(len(self._calls) if end else -len(self._calls)))


class Breaks(DrawnPane):
    """The cache breaks; below them, why the selected call broke."""

    number = 2
    pane_name = "Cache breaks"

    def __init__(self) -> None:
        super().__init__(id=BREAKS)
        self._ledger: Ledger | None = None
        self._selected: int | None = None

    def show_breaks(self, ledger: Ledger, selected: int | None) -> None:
        """Show the breaks of a run; the cursor goes to that of the selected call."""
        self._ledger, self._selected = ledger, selected
        self.draw_rows()

    def draw_rows(self) -> None:
        ledger, width = self._ledger, self.outer_size.width - 2
        if ledger is None or width <= 0:
            return
        breaks = ledger.breaks
        if not breaks:
            line: Line = (Piece(no_breaks(ledger) if ledger.calls else Clean(""), "sec"),)
            self.show(ListRows([line], headings=[0]), title_right=(), heading=lambda width: [])
            return
        lines = [break_line(cache_break, width) for cache_break in breaks]
        keys: list[Hashable] = [cache_break.call for cache_break in breaks]
        selected = next((cache_break for cache_break in breaks if cache_break.call == self._selected), None)
        tail: list[Line] = [break_total(ledger, width)] if len(breaks) > 1 else []
        if selected is not None:
            tail += [(), *explanation_lines(selected, width)]
        count = len(lines)
        room = self.outer_size.height - 2 - count - len(tail)
        others = [explanation_lines(other, width) for other in breaks if other is not selected]
        for block in filter(None, (hour_lines(ledger, width), *others)):
            if len(block) >= room:
                break
            tail += [(), *block]
            room -= len(block) + 1
        keys += [("tail", i) for i in range(len(tail))]
        rows = ListRows([*lines, *tail], keys=keys, headings=range(count, count + len(tail)))
        number = (Piece(Clean(grouped(count)), "sec"),)
        key = selected.call if selected is not None else None
        self.show(rows, key=key, title_right=number, heading=lambda width: [break_heading(width)])

    def is_at_cursor(self, index: int) -> bool:
        return super().is_at_cursor(index) and self.cursor == self._selected


class Contents(DrawnPane):
    """The contents of all calls, and the files of the unfolded ones."""

    number = 3
    pane_name = "Contents"

    def __init__(self) -> None:
        super().__init__(id=CONTENTS)
        self._ledger: Ledger | None = None
        self._bands: Sequence[Band] = ()
        self._sort = ""
        self.content_rows: Sequence[ContentRow] = ()

    def show_contents(self, ledger: Ledger, bands: Sequence[Band], *, unfolded: frozenset[Hashable], sort: str) -> None:
        """Show the contents in this order."""
        self._ledger, self._bands, self._sort = ledger, bands, sort
        self.content_rows = (
            content_rows(ledger, bands, masking.current(), opened=unfolded, sort=sort) if ledger.calls else ()
        )
        self.draw_rows()

    @property
    def row(self) -> ContentRow | None:
        """The content under the cursor."""
        return self.content_rows[self.position] if self.position < len(self.content_rows) else None

    @property
    def wanted_height(self) -> int:
        """Rows of all contents, with title, heading and sum."""
        return len(self.content_rows) + 3

    def draw_rows(self) -> None:
        ledger, width = self._ledger, self.outer_size.width - 2
        if ledger is None or width <= 0:
            return
        if not ledger.calls:
            self.show(ListRows(()), title=(), title_right=(), heading=lambda width: [])
            return
        rows = self.content_rows
        columns = ContentColumns(ledger, width, self._sort, self.look.glyphs)
        full = full_bar(rows, ledger.totals)
        lines = [columns.line(row, full) for row in rows]
        lines.append(columns.sum_line(row.account for row in rows if not row.depth))
        keys: list[Hashable] = [*(row.key for row in rows), "all"]
        order = self._sort if ledger.totals.usd is not None or self._sort != "cost" else "carried tokens"
        self.show(
            ListRows(lines, keys=keys, headings=[len(rows)]),
            title=(Piece(Clean(f"by {order}"), "sec"),),
            title_right=(Piece(Clean("≈ split of each call is estimated"), "dim"),),
            heading=lambda width: [columns.heading()],
        )


class OneCall(DrawnPane):
    """The input of the selected call and what it brought in."""

    number = 4
    pane_name = "Call"

    def __init__(self) -> None:
        super().__init__(id=CALL)
        self._call: Call | None = None
        self._bands: Sequence[Band] = ()

    def show_call(self, call: Call | None, bands: Sequence[Band], title: Clean, count: int) -> None:
        """Show a call, of so many."""
        self._call, self._bands = call, bands
        if call is None:
            self.show(ListRows(()), title=(), title_right=())
            return
        self.title = (Piece(Clean(f"{grouped(call.number)} "), "text bold"), Piece(title, "sec"))
        self.title_right = (Piece(Clean(f"{grouped(call.number)} of {grouped(count)}"), "sec"),)
        self.draw_rows()

    def draw_rows(self) -> None:
        size = self.outer_size
        width = size.width - 2
        if self._call is None or width <= 0:
            return
        is_list = size.height > _LIST_HEIGHT
        lines = call_lines(self._call, self._bands, width, masking.current(), glyphs=self.look.glyphs, is_list=is_list)
        lines += [(), *footnote(width)] if is_list else footnote(width)
        self.show(ListRows(lines))

    def is_at_cursor(self, index: int) -> bool:
        return self.has_focus and super().is_at_cursor(index)


_LIST_HEIGHT = 8
"""From more rows than this, each text that entered has its own."""
