"""Pane 3: everything about one span, by tabs. Pane 4, on wide screens: the tab of the run, beside it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from tracetui.live.mailbox import Excerpt
from tracetui.masking import clean
from tracetui.model import Body, Operation, Run, RunRef, Span, Status
from tracetui.store.span_names import span_label
from tracetui.text import Clean, one_line
from tracetui.ui.state import SearchTarget
from tracetui.ui.widgets.line_view import FoldingView
from tracetui.views.detail.tabs import tab_names, tab_rows
from tracetui.views.glyphs import kind
from tracetui.views.placeholders import excerpt_rows
from tracetui.views.rows import Line, ListRows, Piece, width_of

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment

MESSAGE_OPERATIONS: Final = frozenset({Operation.CHAT, Operation.MESSAGE, Operation.TURN})
"""What is best read as messages."""
MAX_FOLDS: Final = 200
"""Folds that a search opens to show one hit."""
_TITLE_WIDTH: Final = 15
"""Cells of the title rule that are left for what is not a tab."""
UNWRAPPED_WIDTH: Final = 4000
"""Columns of a pane whose lines run on."""


class Detail(FoldingView):
    """The detail of the span under the cursor of the steps."""

    number = 3
    pane_name = "Detail"

    def __init__(self) -> None:
        super().__init__(id="detail")
        self.run: Run | None = None
        self.span: Span | None = None
        self.body: Body | None = None
        self.tabs: list[str] = []
        self.tab = ""
        self.preferred = ""
        """The tab that the reader chose; kept from span to span where there is one."""
        self.wrap = True
        self.revealed: Body | None = None
        """The body with one masked value shown, in place of `body`."""
        self.search_target: SearchTarget | None = None
        """What is to be searched for as soon as its span is shown with its body."""
        self._search_hit: tuple[SearchTarget, Hashable] | None = None
        """What was wanted and found, and the row that it was in: with another width it is in another."""
        self.assessment: Assessment | None = None
        """How the run went, as far as that is known."""
        self._drawn_width = 0
        self._excerpt: Excerpt | None = None
        """In place of a span: the text of a file that cannot be read."""

    def show_span(self, run: Run, span: Span | None, body: Body | None) -> None:
        """Show a span with its body; a body that is still on its way leaves what can be shown without."""
        same = (self.run is not None and self.run.summary.ref == run.summary.ref) and (
            (self.span.id if self.span else None) == (span.id if span else None)
        )
        fresh = not same or (self.body is None and body is not None)  # only a body tells which tabs there are
        if not same:
            self.opened = frozenset()
        if not same or body is not self.body:
            self.revealed = None
        self.run, self.span, self.body, self._excerpt = run, span, body, None
        self.tabs = tab_names(run, span, body)
        if self.preferred in self.tabs:
            self.tab = self.preferred
        elif fresh or self.tab not in self.tabs:
            self.tab = self._default_tab(run)
        self.draw_rows(keep=same)
        if self.search_target is not None and self._shows(self.search_target):
            wanted, self.search_target = self.search_target, None
            self._find(wanted)

    def _shows(self, wanted: SearchTarget) -> bool:
        """Whether what is shown is what something is wanted in, with its body."""
        if self.run is None or self.run.summary.ref != wanted.ref:
            return False
        if wanted.span is None or self.span is None:
            return wanted.span is None
        return self.span.id == wanted.span and self.body is not None

    def _find(self, wanted: SearchTarget) -> None:
        """Search in the tabs, one after the other, and show the hit that fits best; without any, the first tab."""
        tabs = [tab for tab in (*wanted.tabs, *self.tabs) if tab in self.tabs]
        for tab in (*tabs, tabs[0]):
            self.tab = tab
            self.draw_rows(keep=False)
            self.search(wanted.needle)
            if self.hits():
                self._go_to(wanted)
                return

    def _go_to(self, wanted: SearchTarget) -> None:
        """Go to the row that fits best, and remember that it was for this that the cursor is there."""
        self.move_to(max(self.hits(), default=0, key=lambda i: wanted.score(self.rows.plain(i))))
        self.reveal(wanted)
        self._search_hit = wanted, self.cursor

    def toggle(self, *, open_: bool | None = None) -> bool:
        """As in every pane that folds; what is unfolded is read."""
        done = super().toggle(open_=open_)
        if done:
            self._report_reading()
        return done

    def _wheel(self, rows: int) -> None:
        top = self.top
        super()._wheel(rows)
        if self.top != top:
            self._report_reading()

    def _report_reading(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Moved(self, self.cursor))

    # ---- one masked value

    def reveal_value(self, ref: RunRef, span: Span, exact: Body) -> bool | None:
        """Show the value under the cursor as `exact`, the body of that span, has it.

        False if nothing is masked there; None if the span is not shown any more.
        """
        from tracetui.views.detail.reveal import reveal_value

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
        """Mask again what was shown."""
        self.revealed = None
        self.draw_rows(keep=True)

    def nothing(self) -> None:
        """Show no span."""
        self.run = self.span = self.body = self.revealed = self._excerpt = None
        self.tabs = []
        self.show(ListRows(()), title=(), title_right=(), keep=False)

    def _default_tab(self, run: Run) -> str:
        """Where to begin: what the run says of its failure if no span failed, the messages of a model call, else the
        first tab.
        """
        span = self.span
        if run.summary.status is Status.ERROR and not run.summary.errors:
            return next(tab for tab in ("goal", "nodes", "run") if tab in self.tabs)
        speaks = span is not None and span.operation in MESSAGE_OPERATIONS and span.status is not Status.ERROR
        return "messages" if speaks and "messages" in self.tabs else self.tabs[0]

    def toggle_wrap(self) -> None:
        """Wrap long lines at the edge of the pane, or let them run on beyond it."""
        self.wrap, self.left = not self.wrap, 0
        if self.run is not None:
            self.draw_rows(keep=True)

    def show_excerpt(self, excerpt: Excerpt) -> None:
        """Show the text of a file that cannot be read, at the place where reading stopped."""
        self.nothing()
        self._excerpt, self._drawn_width = excerpt, max(20, self.outer_size.width - 2)
        rows, marked = excerpt_rows(
            excerpt.data, excerpt.offset, excerpt.at, excerpt.size, width=self._drawn_width, glyphs=self.look.glyphs
        )
        self.show(rows, title=(Piece(Clean("the file's own text"), "sec"),), keep=False)
        self.move_to(marked, center=True)

    def choose(self, tab: str) -> bool:
        """Show that tab; False if this span has none of that name."""
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
        """Unfold the row under the cursor until the needle itself is in view; of several, what fits `wanted` best."""
        needle = self.needle.lower()
        for _ in range(MAX_FOLDS):
            here, count = self.position, len(self.rows)
            shown = "".join(piece.text for piece in self.rows.line(here, self._drawn_width)).lower()
            if needle in shown or not self.toggle(open_=True):
                return
            unfolded = range(here + 1, here + 1 + len(self.rows) - count)
            inside = [i for i in unfolded if needle in self.rows.plain(i).lower()]
            if not inside:
                return
            self.move_to(max(inside, key=lambda i: wanted.score(self.rows.plain(i))) if wanted else inside[0])

    def draw_rows(self, *, keep: bool) -> None:
        """Show the chosen tab."""
        assert self.run is not None
        before, self._drawn_width = self._drawn_width, max(20, self.outer_size.width - 2)
        width, found, cursor = self._drawn_width, self._search_hit, self.cursor
        look = self.look
        rows = tab_rows(
            self.run,
            self.span,
            self.revealed or self.body,
            self.tab,
            width=width if self.wrap else UNWRAPPED_WIDTH,
            opened=self.opened,
            glyphs=look.glyphs,
            zone=look.zone,
            assessment=self.assessment,
        )
        self.show(rows, title=self._title(), title_right=self._tab_line(), keep=keep)
        if keep and width != before and found is not None and (found[0].needle, found[1]) == (self.needle, cursor):
            self._go_to(found[0])

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
        """The tabs, around the chosen one where there is no room for all: which span it is, the steps show too."""
        room, chosen = max(10, self.outer_size.width - _TITLE_WIDTH), self.tabs.index(self.tab)
        first, stop = 0, len(self.tabs)
        while width_of(line := self._tabs(first, stop)) > room and stop - first > 1:
            first, stop = (first, stop - 1) if stop - 1 > chosen else (first + 1, stop)
        return line

    def _tabs(self, first: int, stop: int) -> Line:
        """The tabs from one up to another, with a sign where others are."""
        cut = Piece(self.look.glyphs.cut, "dim")
        names = [
            Piece(Clean(tab), "accent bold underline" if tab == self.tab else "sec") for tab in self.tabs[first:stop]
        ]
        shown = [*([cut] if first else []), *names, *([cut] if stop < len(self.tabs) else [])]
        return tuple(piece for name in shown for piece in (name, Piece(Clean("  "))))[:-1]

    def clicked_title(self, x: int) -> None:
        """A click on a tab chooses it."""
        right = self.outer_size.width - 2
        for piece in reversed(self.title_right):
            right -= len(piece.text)
            if right <= x < right + len(piece.text) and piece.text in self.tabs:
                self.choose(piece.text)

    def on_resize(self) -> None:
        super().on_resize()
        if self._drawn_width == max(20, self.outer_size.width - 2):
            return
        if self.run is not None:
            self.draw_rows(keep=True)
        elif self._excerpt is not None:
            self.show_excerpt(self._excerpt)


class Facts(FoldingView):
    """The *run* tab of the detail, beside it."""

    number = 4
    pane_name = "Run"

    def __init__(self) -> None:
        super().__init__(id="facts")
        self._shown: Run | None = None
        self.assessment: Assessment | None = None
        """How the run went, as far as that is known."""

    def show_run(self, run: Run) -> None:
        """Show what is known of a run."""
        same = self._shown is not None and self._shown.summary.ref == run.summary.ref
        if not same:
            self.opened = frozenset()
        self._shown = run
        if self.display:
            self.draw_rows(keep=same)

    def nothing(self) -> None:
        """Show no run."""
        self._shown = None
        self.show(ListRows(()), keep=False)

    def on_resize(self) -> None:
        super().on_resize()
        if self._shown is not None:
            self.draw_rows(keep=True)

    def draw_rows(self, *, keep: bool) -> None:
        """Show what is known of the run."""
        assert self._shown is not None
        width = max(20, self.outer_size.width - 2)
        look = self.look
        rows = tab_rows(
            self._shown,
            None,
            None,
            "run",
            width=width,
            opened=self.opened,
            glyphs=look.glyphs,
            zone=look.zone,
            assessment=self.assessment,
        )
        self.show(rows, keep=keep)
