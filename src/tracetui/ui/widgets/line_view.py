"""LineView: the widget of every pane, with scrolling, cursor, search, selection and a strip cache.

A pane has a title rule, heading lines, rows, and a minimap as its last column. It draws only the visible rows of a
`Rows` model, so the cost of a key doesn't depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

from rich.segment import Segment
from textual import events, on
from textual.binding import Binding, BindingsMap
from textual.cache import LRUCache
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tracetui.text import Clean, cells
from tracetui.ui.commands import Command
from tracetui.ui.widgets.lines import KeyClicked, LineWidget, invert, key_at, mark, skip, to_segments, to_strip, word_at
from tracetui.views import stack
from tracetui.views.glyphs import ASCII, Glyphs
from tracetui.views.rows import Fold, Line, ListRows, Piece, Rows, WithHeadings, WithMarks, fit, style_masks, width_of

MIN_TITLE: Final = 8
"""Minimum cells for a title that is cut."""


def title_line(
    number: int, name: str, title: Line, right: Sequence[Piece], *, width: int, focused: bool, glyphs: Glyphs
) -> Line:
    """Title rule of a pane, `width` cells wide; the right part has priority over the title."""
    glyph = glyphs.rule_focused if focused else glyphs.rule
    rule = Piece(glyph, "accent" if focused else "line")
    left = [
        rule,
        Piece(Clean(f" {number} "), "accent" if focused else "dim") if number else Piece(Clean(" ")),
        Piece(Clean(f"{name} "), "text bold" if focused else "sec bold"),
        *title,
    ]
    right_width = width_of(right)
    min_width = width_of(left[:3]) + MIN_TITLE + right_width + 4
    if min_width > width < width_of(left) + right_width + 4:
        left = left[:3]  # a few letters and an ellipsis say nothing
    left = fit(left, max(0, width - right_width - 4))
    if left and not left[-1].text.endswith(" "):
        left.append(Piece(Clean(" ")))
    gap = width - width_of(left) - right_width - (3 if right else 0)
    line = [*left, Piece(Clean(glyph * max(0, gap)), rule.style)]
    if right:
        line += [Piece(Clean(" ")), *right, Piece(Clean(" ")), rule]
    return tuple(line)


def position(first: int, page: int, count: int, dash: str) -> list[Piece]:
    """Scroll position: visible rows and total."""
    return [Piece(Clean(f"{first + 1}{dash}{min(count, first + page)}"), "sec"), Piece(Clean(f"/{count}"), "dim")]


MAX_TICKS: Final = 20_000
"""Maximum rows with minimap marks: scanning more would be noticeable."""
NO_MARK: Final = Piece(Clean(" "))


class Minimap:
    """Minimap column; caches the marks of its cells until the rows or the page change."""

    def __init__(self) -> None:
        self._size = 0, 0
        self._ticks: dict[int, str | None] = {}

    def forget(self) -> None:
        """Clear the cache."""
        self._size = 0, 0

    def cell(self, rows: Rows, index: int, top: int, page: int, glyphs: Glyphs) -> Piece:
        """Cell beside row `index`, with `page` visible rows from `top`."""
        count = len(rows)
        if count <= page:
            mark = rows.mark(index)
            return Piece(glyphs.tick, mark) if mark else NO_MARK
        if self._size != (count, page):
            self._size, self._ticks = (count, page), _ticks(rows, page) if count <= MAX_TICKS else {}
        y = index - top
        mark = self._ticks.get(y)
        if mark:
            return Piece(glyphs.tick, mark)
        start = y * count // page
        inside = top <= start < top + page or (y == page - 1 and top + page >= count)
        return Piece(glyphs.thumb, "dim") if inside else Piece(glyphs.track, "line")


def _ticks(rows: Rows, page: int) -> dict[int, str | None]:
    """Mark of the last marked row that each of `page` cells represents."""
    count = len(rows)
    marked = rows.marked if isinstance(rows, WithMarks) else filter(rows.mark, range(count))
    last = {row * page // count: row for row in marked}
    return {y: rows.mark(row) for y, row in last.items()}


SIDEWAYS: Final = 8
"""Columns scrolled by a key."""
CACHED_ROWS: Final = 512
"""Cached drawn rows; a screen shows about 100 at most."""


class DrawnRow(NamedTuple):
    """A row drawn in some cells."""

    width: int
    left: int
    """Cells scrolled sideways."""
    line: Sequence[Piece]
    strips: dict[tuple[str, Piece], Strip]
    """By background and scroll bar."""


_ENDLESS: Final = 1000
"""Cells in which no row is cut that people read."""


def _ellipses(line: Line) -> int:
    return sum(piece.text.count("…") for piece in line)


def _no_lines(width: int) -> Sequence[Line]:
    return ()


class LineView(LineWidget, can_focus=True):
    """Pane of rows. The cursor is a *key*: it stays on its row when rows are added, removed or moved."""

    ALLOW_SELECT = True
    number: int = 0
    pane_name: str = ""
    sorts: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Sort order of each column heading that a click sorts by."""

    class Moved(Message):
        """The cursor moved to another row."""

        def __init__(self, view: LineView, key: Hashable) -> None:
            self.view, self.key = view, key
            super().__init__()

        @property
        def control(self) -> LineView:
            return self.view

    class Opened(Moved):
        """The row was double-clicked."""

    class SortRequested(Message):
        """The heading of a column was clicked: sort by it, or reverse if the list is already sorted by it."""

        def __init__(self, sort: str) -> None:
            self.sort = sort
            super().__init__()

    class TabClicked(Message):
        """The name of a tab was clicked."""

        def __init__(self, tab: str) -> None:
            self.tab = tab
            super().__init__()

    class StatusMessage(Message):
        """Request to show a message in the status line until the next key."""

        def __init__(self, text: str, style: str = "sec") -> None:
            self.text, self.style = text, style
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Rows = ListRows(())
        self.position = 0
        """Row under the cursor."""
        self.top = 0
        """First row shown."""
        self.left = 0
        """Columns hidden at the left by scrolling."""
        self._cursor_off_screen = False
        """Whether the wheel scrolled the cursor out of view; the top row is then preserved."""
        self.title: Line = ()
        """Text after the name in the title rule."""
        self.title_right: Line = ()
        """Right end of the title rule; replaces the scroll position."""
        self._make_heading: Callable[[int], Sequence[Line]] = _no_lines
        self._heading: tuple[int, Sequence[Line]] | None = None
        self._minimap = Minimap()
        self.needle = ""
        """Search text, highlighted in every row."""
        self._drawn: LRUCache[int, DrawnRow] = LRUCache(CACHED_ROWS)
        self._blank: Strip | None = None
        """Cache of the line below the last row."""
        self._selection: Selection | None = None
        """What of the text is selected by mouse."""

    def bind_commands(self, commands: Iterable[Command]) -> None:
        """Bind the keys of these commands. A sequence (``]t``) is bound like a key; the screen recognizes it."""
        self._bindings = BindingsMap.from_keys({})
        for command in commands:
            for key in command.keys:
                binding = Binding(key, command.action, command.title, show=bool(command.hint), id=command.id)
                self._bindings.key_to_bindings.setdefault(key, [binding])

    @property
    def bound(self) -> Mapping[str, Sequence[Binding]]:
        """The bindings by key or sequence."""
        return self._bindings.key_to_bindings

    async def report(self, message: Message) -> None:
        """Have the screen handle a message before the next key; a posted one would queue behind typed keys."""
        await self.screen._dispatch_message(message)

    def say(self, text: str, style: str = "sec") -> None:
        """Show a message in the status line until the next key."""
        self.post_message(self.StatusMessage(text, style))

    # ---- data

    def show(
        self,
        rows: Rows,
        *,
        key: Hashable | None = None,
        title: Line | None = None,
        title_right: Line | None = None,
        heading: Callable[[int], Sequence[Line]] | None = None,
        keep: bool = True,
    ) -> None:
        """Replace the rows. The cursor goes to `key`, else stays on its key (`keep`), else goes to the first row.

        `heading` returns the lines between title and rows for a width.
        """
        self._cursor_off_screen &= keep and key is None and self.top < len(self.rows)
        first = self.rows.key(self.top) if self._cursor_off_screen else None
        anchor, top = key, self.top
        if anchor is None and keep:
            anchor = self.cursor
            top = -1  # keep the screen position of the row
        offset = self.position - self.top
        self.rows = rows
        self._drawn.clear()
        self._heading = None
        self._minimap.forget()
        row = rows.index(anchor) if anchor is not None else None
        if row is not None:
            self.position, self.top = row, top if top >= 0 else max(0, row - offset)
        elif not keep:
            self.position = self.top = self.left = 0
        if first is not None and (at := rows.index(first)) is not None:
            self.top = at
        if title is not None:
            self.title = title
        if title_right is not None:
            self.title_right = title_right
        if heading is not None:
            self._make_heading, self._heading = heading, None
        self._clamp()
        if keep:
            self.refresh_changed()
        else:  # most cells of other contents differ, and finding those that don't takes longer
            self.refresh()

    @property
    def heading(self) -> Sequence[Line]:
        """Lines between the title and the rows."""
        width = self.outer_size.width - 2
        if self._heading is None or self._heading[0] != width:
            self._heading = width, self._make_heading(max(1, width))
        return self._heading[1]

    @property
    def cursor(self) -> Hashable | None:
        """Key of the row under the cursor; None without rows."""
        return self.rows.key(self.position) if self.position < len(self.rows) else None

    @property
    def is_on_screen(self) -> bool:
        """Whether neither the pane nor a container of it is hidden."""
        return all(node.display for node in self.ancestors_with_self if isinstance(node, Widget))

    @property
    def page(self) -> int:
        """Number of rows that fit."""
        return max(1, self.outer_size.height - 1 - len(self.heading))

    def wanted_width(self, widths: Iterable[int]) -> int:
        """The first of these widths at which no row on the screen is cut, else the last."""
        wanted, visible = 0, range(self.top, min(len(self.rows), self.top + self.page))
        for wanted in widths:
            if not any(self._is_cut(index, wanted - 2) for index in visible):
                break
        return wanted

    def _is_cut(self, index: int, width: int) -> bool:
        """Whether a row has an ellipsis at this width that it doesn't have in a line of any length."""
        return _ellipses(self.rows.line(index, width)) > _ellipses(self.rows.line(index, _ENDLESS))

    @property
    def used_width(self) -> int:
        """Cells of the longest row on the screen, and the two beside the rows."""
        visible = range(self.top, min(len(self.rows), self.top + self.page))
        return max((width_of(self.rows.line(i, self.outer_size.width - 2)) for i in visible), default=0) + 2

    @property
    def unfolds(self) -> bool:
        """Whether there is something to unfold in the row under the cursor."""
        return False

    # ---- moving

    def move_to(self, position: int, *, center: bool = False) -> None:
        """Move the cursor to a row, or the nearest selectable one, and scroll minimally."""
        old, old_top, self._cursor_off_screen = self.position, self.top, False
        self.position = position
        if center:
            self.top = position - self.page // 2
        self._clamp(prefer_down=position >= old)
        if self.position == old and self.top == old_top:
            return
        if self.top == old_top:
            self.repaint_row(old)
            self.repaint_row(self.position)
        else:
            self.refresh()
        if self.position != old:
            self.post_moved()

    def post_moved(self) -> None:
        """Post `Moved`, if the cursor is on a row."""
        if self.cursor is not None:
            self.post_message(self.Moved(self, self.cursor))

    def move_to_key(self, key: Hashable, *, center: bool = False) -> bool:
        """Move the cursor to the row with this key; False if there is none."""
        row = self.rows.index(key)
        if row is None:
            return False
        self.move_to(row, center=center)
        return True

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self.move_to(self.position + rows)

    def action_page(self, pages: float) -> None:
        """Move the view and the cursor by (parts of) pages."""
        step = max(1, int(abs(pages) * (self.page - 1))) * (1 if pages > 0 else -1)
        if self._cursor_off_screen:
            self._cursor_off_screen, self.position = False, max(self.top, min(self.position, self.top + self.page - 1))
        old_top = self.top
        self.top = max(0, min(self.top + step, len(self.rows) - self.page))
        moved = self.position + step
        if old_top == self.top:
            self.move_to(moved)
            return
        old = self.position
        self.position = moved
        self._clamp(prefer_down=step > 0)
        self.refresh()
        if self.position != old:
            self.post_moved()

    def action_edge(self, end: bool) -> None:
        """Go to the first or last row."""
        self.move_to(len(self.rows) - 1 if end else 0)

    def action_sideways(self, columns: int) -> None:
        """Scroll sideways."""
        self.left = max(0, self.left + columns)
        self.refresh()

    async def action_fold(self) -> None:
        """Scroll left; panes that fold do that first."""
        self.action_sideways(-SIDEWAYS)

    async def action_unfold(self) -> None:
        """Scroll right; panes that fold unfold first."""
        self.action_sideways(SIDEWAYS)

    def _clamp(self, prefer_down: bool = True) -> None:
        """Clamp cursor and view to the rows, and move the cursor to a selectable row."""
        count = len(self.rows)
        if not count:
            self.position = self.top = 0
            return
        position = max(0, min(self.position, count - 1))
        if not self.rows.selectable(position):
            position = self._nearest(position, 1 if prefer_down else -1)
        self.position = position
        page = self.page
        if self.outer_size.height:
            self.top = max(0, min(self.top, count - page))
            if self._cursor_off_screen:
                return
            if position < self.top:
                self.top = position
                if self.top and not self.rows.selectable(self.top - 1) and self.top == 1:
                    self.top = 0  # also show a heading above the first row
            elif position >= self.top + page:
                self.top = position - page + 1

    def _nearest(self, position: int, step: int) -> int:
        for direction in (step, -step):
            i = position
            while 0 <= i < len(self.rows):
                if self.rows.selectable(i):
                    return i
                i += direction
        return position

    # ---- searching

    def hits(self) -> list[int]:
        """Rows that contain the needle, ignoring case."""
        if not self.needle:
            return []
        needle = self.needle.lower()
        return [i for i in range(len(self.rows)) if needle in self.rows.plain(i).lower()]

    def reveal(self) -> None:
        """Make the hit in the row under the cursor visible; panes that fold override this."""

    def search(self, needle: str) -> None:
        """Highlight every occurrence of `needle`; empty for none."""
        self.needle = needle
        self._drawn.clear()
        self.refresh()

    # ---- drawing

    def notify_style_update(self) -> None:
        self._drawn.clear()
        self._blank = None
        super().notify_style_update()

    def strip_at(self, y: int) -> Strip:
        width = self.outer_size.width
        if y == 0:
            return to_strip(self._title_line(width), width, self.look)
        if y <= len(self.heading):
            line = (Piece(Clean(" ")), *self.heading[y - 1])
            return to_strip(line, width, self.look)
        index = self.top + y - 1 - len(self.heading)
        return self._row_strip(index, width)

    def render_line(self, y: int) -> Strip:
        """A line with offsets for mouse selection; painting doesn't need them."""
        index = self.top + y - 1 - len(self.heading)
        strip = self.strip_at(y)
        return strip.apply_offsets(0, index) if index >= 0 and y > len(self.heading) else strip

    def _title_line(self, width: int) -> Line:
        right = self.title_right or self._position()
        glyphs, focused = self.look.glyphs, self.has_focus
        return title_line(self.number, self.pane_name, self.title, right, width=width, focused=focused, glyphs=glyphs)

    def _position(self) -> Sequence[Piece]:
        if not len(self.rows) or not self.rows.selectable(self.position):  # empty, or only a notice
            return ()
        return position(*self._in_view(), "-" if self.look.glyphs is ASCII else "–")

    def _in_view(self) -> tuple[int, int, int]:
        """(First visible row, rows that fit, total), without headings where the rows tell them apart."""
        rows = self.rows
        if not isinstance(rows, WithHeadings):
            return self.top, self.page, len(rows)
        first, last = rows.above(self.top), rows.above(min(len(rows), self.top + self.page))
        return first, last - first, rows.above(len(rows))

    def _row_strip(self, index: int, width: int) -> Strip:
        if index >= len(self.rows):
            if self._blank is None or self._blank.cell_length != width:
                self._blank = to_strip((), width, self.look)
            return self._blank
        at_cursor = self.is_at_cursor(index)
        background = ("sel" if self.has_focus else "selq") if at_cursor else "bg"
        bar = self._minimap.cell(self.rows, index, self.top, self.page, self.look.glyphs)
        drawn = self._drawn.get(index)
        if drawn is None or (drawn.width, drawn.left) != (width, self.left):
            drawn = self._drawn[index] = DrawnRow(width, self.left, self._line(index, width - 2), {})
        if self._selection is not None:
            return self._draw(drawn, background, at_cursor, bar, self._selection.get_span(index))
        strip = drawn.strips.get((background, bar))
        if strip is None:
            strip = drawn.strips[background, bar] = self._draw(drawn, background, at_cursor, bar)
        return strip

    def is_at_cursor(self, index: int) -> bool:
        """Whether a row is drawn as that under the cursor."""
        return index == self.position and self.rows.selectable(index)

    def _line(self, index: int, width: int) -> Sequence[Piece]:
        """The visible part of a row, with the hits of the search."""
        line: Sequence[Piece] = style_masks(self.rows.line(index, width + self.left))
        if self.left:
            line = skip(line, self.left)
        return mark(line, self.needle) if self.needle else line

    def _draw(
        self, row: DrawnRow, background: str, at_cursor: bool, bar: Piece, selected: tuple[int, int] | None = None
    ) -> Strip:
        """The row with its cursor sign and its cell of the scroll bar."""
        cursor = self.look.glyphs.cursor if at_cursor else Clean(" ")
        first = Piece(cursor, "accent" if self.has_focus else "dim")
        segments = to_segments([first, *row.line], row.width - 1, self.look, background)
        if selected is not None:
            segments = [*invert(Strip(segments, row.width - 1), *selected)]
        segments.append(Segment(bar.text, self.look.palette.style(bar.style)))
        return Strip(segments, row.width)

    def redraw(self, index: int) -> None:
        """Redraw a row whose content changed in the same `Rows`."""
        self._drawn.discard(index)
        self.repaint_row(index)

    def redraw_rows(self) -> None:
        """Redraw all rows on the screen: something beside the same `Rows` changed."""
        self._drawn.clear()
        self.refresh_changed()

    def redraw_title(self) -> None:
        """Redraw the title rule."""
        self.refresh_line(0)

    def repaint_row(self, index: int) -> None:
        """Repaint the changed cells of a row where it is on the screen."""
        y = index - self.top + 1 + len(self.heading)
        if 0 <= y < self.outer_size.height:
            self.refresh_line(y)

    # ---- events

    def on_resize(self) -> None:
        self._heading = None
        self._clamp()
        self.refresh_changed()

    @on(events.Focus)
    @on(events.Blur)
    def _refocused(self) -> None:
        self._drawn.clear()
        self.redraw_title()
        self.repaint_row(self.position)

    async def on_click(self, event: events.Click) -> None:
        index = self.top + event.y - 1 - len(self.heading)
        if event.y == 0:
            await self._clicked_title(event.x)
        elif event.y <= len(self.heading):
            line = self.heading[event.y - 1]
            if key := key_at(line, event.x - 1):
                await self.report(KeyClicked(key))
            elif sort := self.sorts.get(word_at(line, event.x - 1)):
                await self.report(self.SortRequested(sort))
        elif 0 <= index < len(self.rows):
            if not self.rows.selectable(index):
                line = self.rows.line(index, self.outer_size.width - 2 + self.left)
                if key := key_at(line, event.x - 1 + self.left):
                    await self.report(KeyClicked(key))
                    return
            self.clicked_row(index)
            if event.chain == 2 and self.cursor is not None:
                self.post_message(self.Opened(self, self.cursor))

    def clicked_row(self, index: int) -> None:
        """Handle a click on a row."""
        self.move_to(index)

    async def _clicked_title(self, x: int) -> None:
        """Handle a click on the title rule: on a key, or on a tab at its right end."""
        line = self._title_line(self.outer_size.width)
        if key := key_at(line, x):
            await self.report(KeyClicked(key))
            return
        right = self.outer_size.width - 2
        for piece in reversed(self.title_right):
            right -= cells(piece.text)
            if right <= x < right + cells(piece.text) and piece.text.strip():
                await self.clicked_tab(piece.text)

    async def clicked_tab(self, tab: str) -> None:
        """Handle a click on the name of a tab."""
        await self.report(self.TabClicked(tab))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._wheel(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._wheel(-3)

    def _wheel(self, rows: int) -> None:
        top = max(0, min(self.top + rows, len(self.rows) - self.page))
        if top != self.top:
            self.top = top
            self._cursor_off_screen = not top <= self.position < top + self.page
            self.refresh()

    def selection_updated(self, selection: Selection | None) -> None:
        self._selection = selection
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, including the visible part of unpainted rows."""
        count, width = len(self.rows), self.outer_size.width
        first = selection.start.y if selection.start else 0
        last = min(count - 1, selection.end.y if selection.end else count - 1)
        parts = []
        for index in range(max(0, first), last + 1):
            line = (Piece(Clean(" ")), *self._line(index, width - 2))
            span, text = selection.get_span(index), to_strip(line, width - 1, self.look).text
            if span is not None:
                text = text[span[0] : None if span[1] == -1 else span[1]]
            parts.append(text.rstrip())
        return ("\n".join(parts), "\n") if parts else None


class FoldingView(LineView):
    """Pane with foldable rows; a subclass draws its rows by `opened`."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.opened: frozenset[Hashable] = frozenset()
        """Folds toggled from their default."""

    def draw_rows(self, *, keep: bool) -> None:
        """Redraw the rows; the cursor stays on its row if `keep`."""
        raise NotImplementedError

    @property
    def _fold(self) -> Fold | None:
        return stack.fold(self.rows, self.position) if self.position < len(self.rows) else None

    @property
    def unfolds(self) -> bool:
        return self._fold is not None and not self._fold.open

    def toggle(self, *, open_: bool | None = None) -> bool:
        """Unfold or fold the row under the cursor; False if nothing changes."""
        fold = self._fold
        if fold is None or fold.open == open_:
            return False
        self.opened = self.opened ^ {fold.key}
        self.draw_rows(keep=True)
        return True

    def to_parent(self) -> bool:
        """Go to the parent row; False at the top level."""
        parent = stack.parent(self.rows, self.position) if self.position < len(self.rows) else None
        if parent is None or parent == self.position:
            return False
        self.move_to(parent)
        return True

    async def action_fold(self) -> None:
        """Fold the row under the cursor, else go to its parent, else scroll."""
        if not self.toggle(open_=False) and not self.to_parent():
            await super().action_fold()

    async def action_unfold(self) -> None:
        """Unfold the row under the cursor, else scroll."""
        if not self.toggle(open_=True):
            await super().action_unfold()

    @property
    def target(self) -> str | None:
        """Id of the span that the row under the cursor refers to."""
        return stack.target(self.rows, self.position) if self.position < len(self.rows) else None

    @property
    def target_run(self) -> str | None:
        """Raw id of the run that the row under the cursor refers to."""
        return stack.target_run(self.rows, self.position) if self.position < len(self.rows) else None
