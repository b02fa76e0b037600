"""Pane 3: the tabs of one span. Pane 4, on wide screens: the run tab beside it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from tracetui.live.mailbox import Excerpt
from tracetui.masking import clean, one_line
from tracetui.model import Body, Operation, Run, RunRef, Span, Status
from tracetui.store.address import span_label
from tracetui.text import Clean
from tracetui.ui.base_app import HostApp
from tracetui.ui.state import SearchTarget
from tracetui.ui.widgets.line_view import FoldingView
from tracetui.views.detail.run import SameFailure, panel_rows
from tracetui.views.detail.tabs import RUN_TABS, tab_names, tab_rows
from tracetui.views.detail.transcript import earlier_messages
from tracetui.views.glyphs import kind
from tracetui.views.goal import has_turns
from tracetui.views.labels import excerpt_rows
from tracetui.views.rows import Line, ListRows, Piece, Rows, width_of
from tracetui.views.stack import fill_rows, hidden_rows

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.context_feed import RunContext
    from tracetui.analysis.links import StepLink

MESSAGE_OPERATIONS: Final = frozenset({Operation.CHAT, Operation.MESSAGE, Operation.TURN})
"""Operations that open at the messages tab."""
MAX_FOLDS: Final = 200
"""Maximum folds that a search opens to show one hit."""
_TITLE_WIDTH: Final = 15
"""Cells of the title rule reserved for the name of the pane."""
UNWRAPPED_WIDTH: Final = 4000
"""Columns available to unwrapped lines."""


class Detail(FoldingView):
    """The detail of the span under the cursor of the steps."""

    app: HostApp
    number = 3
    pane_name = "Detail"

    def __init__(self) -> None:
        super().__init__(id="detail")
        self.run: Run | None = None
        self.span: Span | None = None
        self.body: Body | None = None
        self.before: Body | None = None
        """Body of the model call before a failed call."""
        self.tabs: list[str] = []
        self.tab = ""
        self.preferred = ""
        """Tab chosen by the user, for every span that has it."""
        self.wrap = True
        self.revealed: Body | None = None
        """Body with one value unmasked, shown instead of `body`."""
        self.search_target: SearchTarget | None = None
        """Search to start as soon as its span is shown with its body."""
        self._search_hit: tuple[SearchTarget, Hashable] | None = None
        """Last search hit and the key of its row, to find it again at another width."""
        self.assessment: Assessment | None = None
        """Assessment of the run, if available."""
        self.links: Sequence[StepLink] = ()
        """Links of the span."""
        self.drawn_width = self._drawn_height = 0
        """Columns and rows for which the tab is drawn."""
        self.wanted_height = 0
        """Rows of the tab with all its texts unfolded, the title and a blank row."""
        self._excerpt: Excerpt | None = None
        """Text of an unreadable file, shown instead of a span."""

    def show_span(self, run: Run, span: Span | None, body: Body | None, before: Body | None = None) -> None:
        """Show a span; without its body, only the tabs that don't need one. `before`: see `tab_rows`."""
        same_run = (self.run is not None and self.run.summary.ref == run.summary.ref) and (
            (self.span.id if self.span else None) == (span.id if span else None)
        )
        is_new = not same_run or (self.body is None and body is not None)  # the tabs depend on the body
        if not same_run:
            self.opened = frozenset()
        if not same_run or body is not self.body:
            self.revealed = None
        self.run, self.span, self.body, self.before, self._excerpt = run, span, body, before, None
        self.tabs = tab_names(run, span, body)
        if self.preferred in self.tabs:
            self.tab = self.preferred
        elif is_new or self.tab not in self.tabs:
            self.tab = self._default_tab(run)
        self.draw_rows(keep=same_run)
        if self.search_target is not None and self._shows(self.search_target):
            wanted, self.search_target = self.search_target, None
            self._find(wanted)

    def _shows(self, wanted: SearchTarget) -> bool:
        """Whether the span of the search is shown with its body."""
        if self.run is None or self.run.summary.ref != wanted.ref:
            return False
        if wanted.span is None or self.span is None:
            return wanted.span is None
        return self.span.id == wanted.span and self.body is not None

    def _find(self, wanted: SearchTarget) -> None:
        """Search the tabs in order and show the best hit; without one, show the first tab."""
        tabs = [tab for tab in (*wanted.tabs, *self.tabs) if tab in self.tabs]
        for tab in (*tabs, tabs[0]):
            self.tab = tab
            self.draw_rows(keep=False)
            self.search(wanted.needle)
            if self.hits():
                self._go_to(wanted)
                return

    def _go_to(self, wanted: SearchTarget) -> None:
        """Go to the row of the best hit."""
        self.move_to(max(self.hits(), default=0, key=lambda i: wanted.score(self.rows.plain(i))))
        self.reveal(wanted)
        self._search_hit = wanted, self.cursor

    def toggle(self, *, open_: bool | None = None) -> bool:
        """Fold or unfold the row; counts as reading."""
        done = super().toggle(open_=open_)
        if done:
            self.post_moved()
        return done

    def _wheel(self, rows: int) -> None:
        top = self.top
        super()._wheel(rows)
        if self.top != top:
            self.post_moved()

    # ---- one masked value

    def reveal_value(self, ref: RunRef, span: Span, exact: Body) -> bool | None:
        """Unmask the value under the cursor from `exact`, the unmasked body of that span.

        False if nothing is masked there; None if the span is no longer shown.
        """
        from tracetui.views.detail.tabs import reveal_value

        if self.run is None or self.span is None or self.body is None:
            return None
        if (self.run.summary.ref, self.span.id) != (ref, span.id):
            return None
        self.revealed = reveal_value(self.body, exact, self.cursor)
        if self.revealed is None:
            return False
        self.draw_rows(keep=True)
        return True

    def hide(self) -> None:
        """Mask the revealed value again."""
        self.revealed = None
        self.draw_rows(keep=True)

    def show_empty(self) -> None:
        """Show no span."""
        self.run = self.span = self.body = self.before = self.revealed = self._excerpt = None
        self.tabs = []
        self.show(ListRows(()), title=(), title_right=(), keep=False)

    def _default_tab(self, run: Run) -> str:
        """Beside turns the goal, of a run that failed without a failed span its facts, of a model call the messages."""
        span = self.span
        if has_turns(run):
            return "goal"
        if run.summary.status is Status.ERROR and not run.summary.errors:
            return next(tab for tab in self.tabs if tab in RUN_TABS)
        is_message = span is not None and span.operation in MESSAGE_OPERATIONS and span.status is not Status.ERROR
        return "messages" if is_message and "messages" in self.tabs else self.tabs[0]

    def toggle_wrap(self) -> None:
        """Toggle line wrapping."""
        self.wrap, self.left = not self.wrap, 0
        if self.run is not None:
            self.draw_rows(keep=True)

    def show_excerpt(self, excerpt: Excerpt) -> None:
        """Show the text of an unreadable file, at the position of the error."""
        self.show_empty()
        self._excerpt, self.drawn_width = excerpt, max(20, self.outer_size.width - 2)
        rows, marked = excerpt_rows(
            excerpt.data, excerpt.offset, excerpt.at, excerpt.size, width=self.drawn_width, glyphs=self.look.glyphs
        )
        self.show(rows, title=(Piece(Clean("source text"), "sec"),), keep=False)
        self.move_to(marked, center=True)

    def choose(self, tab: str) -> bool:
        """Show a tab; False if this span doesn't have it."""
        if tab not in self.tabs:
            return False
        self.tab = self.preferred = tab
        self.draw_rows(keep=False)
        return True

    def step_tab(self, step: int) -> None:
        """Show the next or previous tab."""
        if self.tabs:
            self.choose(self.tabs[(self.tabs.index(self.tab) + step) % len(self.tabs)])

    def reveal(self, wanted: SearchTarget | None = None) -> None:
        """Unfold the row under the cursor until the needle is visible; of several matches, the best for `wanted`."""
        needle = self.needle.lower()
        for _ in range(MAX_FOLDS):
            here, count = self.position, len(self.rows)
            line = "".join(piece.text for piece in self.rows.line(here, self.drawn_width)).lower()
            if needle in line or not self.toggle(open_=True):
                return
            unfolded = range(here + 1, here + 1 + len(self.rows) - count)
            inside = [i for i in unfolded if needle in self.rows.plain(i).lower()]
            if not inside:
                return
            self.move_to(max(inside, key=lambda i: wanted.score(self.rows.plain(i))) if wanted else inside[0])

    def draw_rows(self, *, keep: bool) -> None:
        """Show the chosen tab."""
        assert self.run is not None
        before, self.drawn_width = self.drawn_width, max(20, self.outer_size.width - 2)
        width, hit, cursor = self.drawn_width, self._search_hit, self.cursor
        rows, self._drawn_height = self._rows_of_tab(width, self.opened), self._room
        if len(rows) < self._drawn_height and (fold := earlier_messages(rows)) is not None:
            unfolded = self._rows_of_tab(width, self.opened ^ {fold})
            rows = unfolded if len(unfolded) <= self._drawn_height else rows
        self.wanted_height = len(rows) + hidden_rows(rows) + 2
        fill_rows(rows, self._drawn_height)
        self.show(rows, title=self._title(), title_right=self._tab_line(), keep=keep)
        if keep and width != before and hit is not None and (hit[0].needle, hit[1]) == (self.needle, cursor):
            self._go_to(hit[0])

    def _rows_of_tab(self, width: int, opened: frozenset[Hashable]) -> Rows:
        """The rows of the chosen tab with these folds toggled."""
        assert self.run is not None
        look = self.look
        return tab_rows(
            self.run,
            self.span,
            self.revealed or self.body,
            self.tab,
            width=width if self.wrap else UNWRAPPED_WIDTH,
            opened=opened,
            glyphs=look.glyphs,
            zone=look.zone,
            assessment=self.assessment,
            before=self.before,
            links=self.links,
            standing=self.app.liveness.status_of(self.run.summary, look.glyphs),
        )

    def value(self) -> str | None:
        """The value in the row under the cursor: of a JSON row its scalar, else the first number, date or id in it."""
        from tracetui.analysis.writings import value_in
        from tracetui.views.detail.tabs import value_at

        if self.position >= len(self.rows):
            return None
        value = None if self.body is None or self.cursor is None else value_at(self.body, self.cursor)
        return value_in(self.rows.plain(self.position) if value is None else value)

    def _title(self) -> Line:
        span = self.span
        if span is None:
            return (Piece(Clean("run"), "sec"),)
        label = span_label(self.run, span) if self.run is not None else ""
        step = f"{one_line(label, 60)} " if label else ""
        glyph, style = kind(span, self.look.glyphs)
        return (
            Piece(Clean(step), "sec"),
            Piece(glyph, style),
            Piece(Clean(" " + clean(span.name, 40)), "sec"),
        )

    def _tab_line(self) -> Line:
        """All tabs, or those around the chosen one that fit."""
        room, chosen = max(10, self.outer_size.width - _TITLE_WIDTH), self.tabs.index(self.tab)
        count = len(self.tabs)
        windows = [(first, stop) for first in range(chosen + 1) for stop in range(chosen + 1, count + 1)]
        windows.sort(key=lambda window: (window[0] - window[1], window[0] > 0 and window[1] < count, window))
        lines = (self._tabs(*window) for window in windows)
        return next((line for line in lines if width_of(line) <= room), self._tabs(chosen, chosen + 1))

    @property
    def used_width(self) -> int:
        """The cells of the rows on the screen, or those of all tabs."""
        return max(super().used_width, width_of(self._tabs(0, len(self.tabs))) + _TITLE_WIDTH)

    def _tabs(self, first: int, stop: int) -> Line:
        """The tabs from `first` to before `stop`, with an ellipsis on a side with hidden tabs."""
        cut = Piece(self.look.glyphs.cut, "dim")
        names = [
            Piece(Clean(tab), "accent bold underline" if tab == self.tab else "sec") for tab in self.tabs[first:stop]
        ]
        pieces = [*([cut] if first else []), *names, *([cut] if stop < len(self.tabs) else [])]
        return tuple(piece for name in pieces for piece in (name, Piece(Clean("  "))))[:-1]

    async def clicked_tab(self, tab: str) -> None:
        self.choose(tab)

    @property
    def _room(self) -> int:
        """Rows below the title."""
        return self.outer_size.height - 1

    def on_resize(self) -> None:
        super().on_resize()
        same_width = self.drawn_width == max(20, self.outer_size.width - 2)
        unfolded = len(self.rows) + 2 == self.wanted_height and earlier_messages(self.rows) is None
        if same_width and (self._drawn_height == self._room or unfolded):
            return
        if self.run is not None:
            self.draw_rows(keep=True)
        elif self._excerpt is not None and not same_width:
            self.show_excerpt(self._excerpt)


class Facts(FoldingView):
    """The facts of the run in panels."""

    app: HostApp
    number = 4
    pane_name = "Run"

    def __init__(self) -> None:
        super().__init__(id="facts")
        self._run: Run | None = None
        self.assessment: Assessment | None = None
        """Assessment of the run, if available."""
        self.context: RunContext | None = None
        """Context of the run, as far as it is read. Requested only where it is shown."""
        self.same: SameFailure | None = None
        """The cause that made the run fail."""
        self._first: Hashable = None
        """Key of the first row when the facts were drawn last, where the cursor is until the user moves it."""
        self.wanted_height = self.least_height = 0
        """Rows of the facts with folded texts, and the title; those without the facts that the tab *run* has too."""

    @property
    def settled(self) -> bool:
        """Whether the context is shown if the pane is."""
        context, run = self.context, self._run
        if not self.display or run is None or not run.complete:
            return True
        return context is not None and context.is_complete and context.run is run

    def show_run(self, run: Run, same: SameFailure | None) -> None:
        """Show the facts of a run; `same` is the cause that made it fail."""
        keep = self._run is not None and self._run.summary.ref == run.summary.ref
        if not keep:
            self.opened = frozenset()
        self._run, self.same = run, same
        if self.display:
            self.draw_rows(keep=keep)

    def show_empty(self) -> None:
        """Show no run."""
        self._run = None
        self.show(ListRows(()), keep=False)

    def on_resize(self) -> None:
        super().on_resize()
        if self._run is not None:
            self.draw_rows(keep=True)

    def draw_rows(self, *, keep: bool) -> None:
        """Draw the facts of the run."""
        assert self._run is not None
        width = max(20, self.outer_size.width - 2)
        look = self.look
        self.context = self.app.assessments.context_of(self._run)
        rows, panels = panel_rows(
            self._run,
            width=width,
            opened=self.opened,
            glyphs=look.glyphs,
            now=self.app.clock(),
            zone=look.zone,
            assessment=self.assessment,
            ledger=self.context.ledger if self.context is not None else None,
            same=self.same,
            standing=self.app.liveness.status_of(self._run.summary, look.glyphs),
        )
        self.wanted_height, self.least_height = len(rows) + 1, panels + 2
        fill_rows(rows, self.outer_size.height - 1)
        is_unread = not self.has_focus and self.top == 0 and self.cursor == self._first
        self.show(rows, key=rows.key(0) if is_unread else None, keep=keep)  # panels come above the first row
        if is_unread or not keep:
            self._first = self.cursor
