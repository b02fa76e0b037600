"""Comparison screens: two runs step by step, or the inputs of two model calls of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult

from tracetui.analysis.diff_description import DiffDescription
from tracetui.analysis.step_diff import CHANGES, Look, step_label
from tracetui.diff.comparison import Diff
from tracetui.diff.step import previous_call
from tracetui.live.mailbox import Calls, Compare, Describe, LookAt, Mail, ReadFailure
from tracetui.masking import clean, one_line
from tracetui.model import Operation, Run, RunRef, quote_key
from tracetui.text import Clean
from tracetui.ui import diff_state, layout
from tracetui.ui import state as states
from tracetui.ui.base_app import HostApp
from tracetui.ui.commands import CHANGE, PAIRS, PHRASES, SIDES, Command
from tracetui.ui.diff_state import DiffState
from tracetui.ui.panes.diff import Change, Pairs, Phrases, Sides, context_summary
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.widgets.frame import short_path
from tracetui.ui.widgets.line_view import FoldingView, LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.diff.steps import name_of, sentence
from tracetui.views.glyphs import status_glyph
from tracetui.views.rows import Line, Piece

LOW: Final = 30
"""Below this many rows, the pane of both runs is shown only when focused."""

_OF_DIFFERENCES: Final = frozenset({"next-difference", "next-divergent"})
_OF_CHANGE: Final = frozenset({"side", "diff-raw"})
"""Commands of which nothing is seen without the pane `Change`."""


class BaseDiffScreen(BaseScreen):
    """Screen with a `Change` pane. A subclass defines the comparison and renders a `DiffState`."""

    AUTO_FOCUS = ""  # it would focus the first pane
    app: HostApp
    state: DiffState
    end_messages: tuple[str, str] = "no later differing step", "no earlier differing step"
    """Messages at the last and the first difference."""

    def __init__(
        self, commands: Sequence[Command], views: dict[str, LineView], change: Change, state: DiffState
    ) -> None:
        super().__init__(commands, views, state)
        self.change = change

    # ---- hooks of subclasses

    def walk(self, step: int) -> bool:
        """Go to the next difference outside the change; False if there is none."""
        raise NotImplementedError

    def request_look(self) -> None:
        """Request the change that the state shows, unless it is shown already."""

    def share_height(self) -> None:
        """Distribute the height among the panes."""

    @property
    def has_differences(self) -> bool:
        """Whether ``n`` or ``]d`` may have somewhere to go."""
        return True

    # ---- the state

    @property
    def narrow(self) -> bool:
        """Whether only one pane fits."""
        return self.app.size.width < layout.NARROW

    def become(self, state: DiffState) -> None:
        """Replace the state and render the changes."""
        before, self.state = self.state, state
        if (state.pane, state.zoom) != (before.pane, before.zoom):
            self.arrange_panes()
            self.set_focus(self.view)
        if (state.ask, state.tab, state.raw) != (before.ask, before.tab, before.raw):
            self.request_look()

    def arrange_panes(self) -> None:
        """Lay out the panes for the zoom and the size."""
        state = self.state
        single = state.zoom or (state.pane if self.narrow else None)
        for name, view in self.views.items():
            view.display = single is None or name == single
        self.apply_classes({"alone": single is not None})
        self.share_height()
        self.call_after_refresh(self.refresh_frame)

    @property
    def idle_commands(self) -> frozenset[str]:
        command_ids, change = super().idle_commands, self.change
        tabs = change.compared.tabs if change.compared is not None else ()
        if not self.has_differences:
            command_ids |= _OF_DIFFERENCES
        if not change.display:
            command_ids |= _OF_CHANGE
        if not change.differs:
            command_ids |= {"side"}
        if len(tabs) < 2:
            command_ids |= {"next-tab"}
        if diff_state.next_context(self.state, tabs, open_tab=change.tab) is None:
            command_ids |= {"context-of"}
        return command_ids

    def on_resize(self, event: events.Resize) -> None:
        self.arrange_panes()

    def step_back(self) -> None:
        following = diff_state.go_back(self.state, narrow=self.narrow)
        if following is not None:
            self.become(following)
        else:
            self.leave()

    # ---- commands

    def action_open(self) -> None:
        """Unfold the row under the cursor, or go to the change."""
        view = self.view
        if not (isinstance(view, FoldingView) and view.toggle()) and not self.follow_row(view):
            self.focus_pane(CHANGE)

    def follow_row(self, view: LineView) -> bool:
        """Follow the link of the row under the cursor; False if it has none."""
        return False

    def action_difference(self, step: int) -> None:
        """Go to the next difference, across steps; during a search, to its next hit."""
        searched = next((view for view in self.views.values() if view.needle), None)
        if searched is not None:
            self.go_to_hit(self.view if self.view.needle else searched, step)
        elif not self.change.step_to(step) and not self.walk(step):
            self.say("no later differences" if step > 0 else "no earlier differences", "status.warn")

    def action_divergent(self, step: int) -> None:
        """Go to the next step that differs, or the one before."""
        if not self.walk(step):
            self.say(self.end_messages[step < 0], "status.warn")

    def action_fold_all(self, open_: bool) -> None:
        """Unfold or fold all of the change."""
        self.change.fold_all(open_=open_)

    def action_side(self) -> None:
        """Toggle side-by-side and unified view."""
        self.say("side by side" if self.change.toggle_side() else "unified: A above B")

    def action_wrap(self) -> None:
        """Toggle line wrapping of the change."""
        self.change.toggle_wrap()

    def action_context(self) -> None:
        """Cycle the inputs of both calls, the input of the previous call, and the step."""
        look = self.change.compared
        following = diff_state.next_context(self.state, look.tabs if look is not None else (), open_tab=self.change.tab)
        if following is None:
            self.say("c works on steps that are model calls in both runs", "status.warn")
        else:
            self.become(following)

    def action_tab(self, step: int) -> None:
        """Show the next tab of the change, or the one before."""
        look = self.change.compared
        if look is not None:
            self.become(diff_state.next_tab(self.state, look.tabs, step, open_tab=look.tab))

    def show_tab(self, tab: str) -> None:
        look = self.change.compared
        if look is not None and tab in look.tabs:
            self.become(replace(self.state, tab=tab))

    def action_ignored(self) -> None:
        """Toggle ignoring ids, times and counters."""

    def action_raw(self) -> None:
        """Toggle messages and the values as recorded."""
        self.become(replace(self.state, raw=not self.state.raw, tab=CHANGES))
        self.say("values as recorded  ·  r messages" if self.state.raw else "as messages  ·  r JSON")

    def action_export(self) -> None:
        """Export the comparison to a file."""
        self.say("contexts can't be exported  ·  Esc returns to the diff, x exports it", "status.warn")

    def action_editor(self) -> None:
        """Open a cleaned copy of the change in $EDITOR."""
        self.app.edit(self.change.text)

    def action_reread(self) -> None:
        """Reload the compared runs."""


class DiffScreen(BaseDiffScreen):
    """Comparison of two runs: paired steps, change of the step under the cursor, both runs."""

    def __init__(
        self,
        ask: Compare,
        loaded: Iterable[Run],
        commands: Sequence[Command],
        spans: tuple[str | None, str | None] | None = None,
    ) -> None:
        """`spans`: ids of the steps of A and B to begin at, instead of at the first difference."""
        self.phrases, self.pairs, self.sides = Phrases(), Pairs(), Sides()
        self.description = DiffDescription()
        change = Change()
        views: dict[str, LineView] = {PHRASES: self.phrases, PAIRS: self.pairs, CHANGE: change, SIDES: self.sides}
        super().__init__(commands, views, change, DiffState(ask=ask))
        self._loaded = list(loaded)
        self._spans = spans
        self._asked: LookAt | None = None
        self._answered: LookAt | None = None
        self._failure = ""
        self._wanted_change = 0
        """The most rows that a change wanted so far: the lines between the panes don't move back and forth."""
        self._steps = Box(self.phrases, self.pairs, id="diff-steps")
        self._body = Box(self._steps, change, self.sides, id="diff")

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield self._body
        yield self._footer

    @property
    def request(self) -> Compare:
        """The comparison request."""
        assert isinstance(self.state.ask, Compare)
        return self.state.ask

    def on_mount(self) -> None:
        self.state = states.focus(self.state, CHANGE if self.narrow else PAIRS)
        self.arrange_panes()
        self.view.focus()
        self._compare(self._loaded)
        self._loaded = []

    def _compare(self, loaded: Iterable[Run] = (), *, reload: bool = False) -> None:
        shares = self.app.store.claims.shares((self.request.a, self.request.b))
        self.app.engine.differ.compare(self.request, loaded, shares, reload=reload)

    def on_closed(self) -> None:
        self.app.engine.differ.compare(None)

    # ---- data arrives

    @property
    def diff(self) -> Diff | None:
        """The comparison, maybe incomplete."""
        return self.pairs.diff

    @property
    def settled(self) -> bool:
        """Whether everything requested is shown."""
        diff = self.diff
        done = diff is not None and diff.complete and diff.strict == self.request.strict
        return bool(self._failure) or (done and self._answered == self._asked)

    def receive(self, mail: Mail) -> None:
        answer = mail.diffs.get(self.request)
        if isinstance(answer, Diff):
            self._take(answer, mail)
        elif isinstance(answer, ReadFailure):
            self._failure = answer.why
            self.refresh_frame()
        if self._asked is not None and isinstance(look := mail.diffs.get(self._asked), Look):
            self._answered = self._asked
            self._show_look(look)

    def _take(self, diff: Diff, mail: Mail) -> None:
        if self.diff is None or self.diff.strict != diff.strict:
            self._asked = self._answered = None
        self.pairs.show_diff(diff)
        self._go_to_spans(diff)
        description = mail.diffs.get(Describe(self.request))
        if isinstance(description, DiffDescription):
            self.description = description
            self.phrases.show_description(diff, description)
        self.sides.show_diff(diff, self.description)
        if diff.complete:
            self.status_message = ()
            if not diff.strict:
                self.app.comparisons.record(diff, self.description)
                self.app.runs_changed()
        self.share_height()
        self._look(mail)
        self.refresh_frame()

    def _go_to_spans(self, diff: Diff) -> None:
        """Go to the step where the comparison should begin, once."""
        wanted, self._spans = self._spans, None
        if wanted is None:
            return
        ids = (
            (span.id if span is not None else None for span in (diff.span_a(row), diff.span_b(row)))
            for row in diff.rows
        )
        row = next(
            (
                i
                for i, (a, b) in enumerate(ids)
                if (a is not None and a == wanted[0]) or (b is not None and b == wanted[1])
            ),
            None,
        )
        if row is not None:
            self.pairs.go_to(row)

    def _look(self, mail: Mail | None = None) -> None:
        """Request the change of the row under the cursor, unless `mail` contains it."""
        row = self.pairs.row
        if row is None:
            return
        asked = LookAt(self.request, row.a, row.b, self.state.tab, self.state.raw)
        if asked != self._asked:
            self._asked = asked
            if mail is None or asked not in mail.diffs:
                self.app.engine.differ.look(asked)

    def _show_look(self, look: Look) -> None:
        diff, row = self.diff, self.pairs.row
        if diff is None or row is None:
            return
        first = diff.first
        path = first.path if first is not None and first.row == self.pairs.pair_index else row.path
        subject: Line = (Piece(Clean(step_label(diff, row)), "sec"),)
        if look.context is not None:
            subject = (*subject, Piece(Clean("  ")), *context_summary(look.context, self.app.look.glyphs))
        self.change.show_look(look, subject, path=path, last=self.state.backwards)
        self.state = replace(self.state, backwards=False)
        self.share_height()
        self.refresh_frame()
        self.app.finish_opening()

    def request_look(self) -> None:
        self.change.tab = self.state.tab
        self._look()

    # ---- commands

    @property
    def has_differences(self) -> bool:
        return any(view.needle for view in self.views.values()) or self.pairs.differs or self.change.differs

    def walk(self, step: int) -> bool:
        self.state = replace(self.state, backwards=step < 0)
        return self.pairs.step_to(step)

    def show_tab(self, tab: str) -> None:
        look = self.change.compared
        if look is not None and tab in look.tabs:
            self.become(replace(self.state, tab=tab))

    def action_ignored(self) -> None:
        self.pairs.user_moved = True  # keep this row
        self.state = diff_state.toggle_ignored(self.state)
        self._compare()
        self.say("comparing everything" if self.request.strict else "comparing; ids, times and counters ignored")

    def action_export(self) -> None:
        self.app.exporter.export_diff(self.request, self)

    def action_reread(self) -> None:
        self._asked = self._answered = None
        self._compare(reload=True)
        self.say("re-reading both runs")

    def follow_row(self, view: LineView) -> bool:
        target = self.sides.target if view is self.sides else None
        diff = self.diff
        if target is None or diff is None:
            return False
        row = next((i for i in range(len(diff.rows)) if target in _ids(diff, i)), None)
        if row is not None:
            self.pairs.go_to(row)
        return row is not None

    def copyable(self, what: str) -> str:
        if what == "path":
            return self.change.value_path
        diff, row = self.diff, self.pairs.row
        if diff is None or row is None:
            return self.request.b.address
        span, run = diff.span_b(row), diff.b
        if span is None:
            span, run = diff.span_a(row), diff.a
        return f"{run.summary.ref.address}/{quote_key(span.id)}" if span is not None else run.summary.ref.address

    @on(LineView.Moved, "#phrases")
    def _phrase_moved(self) -> None:
        pair = self.phrases.pair_index
        if self.state.pane == PHRASES and pair is not None and pair != self.pairs.pair_index:
            self.pairs.go_to(pair)

    @on(LineView.Moved, "#pairs")
    def _pair_moved(self) -> None:
        self.pairs.user_moved |= self.pairs.cursor != self.pairs.auto_key
        self._look()
        self.refresh_frame()

    # ---- the frame

    def share_height(self) -> None:
        size = self.app.size
        if self.state.zoom is not None or self.narrow:
            self._steps.display = self.phrases.display or self.pairs.display
            self.phrases.styles.height = "1fr"
            return
        self._steps.display = True
        self.phrases.display = bool(self.phrases.rows) or self.state.pane == PHRASES
        self.sides.display = size.height >= LOW or self.state.pane == SIDES
        above = self.phrases.wanted_height if self.phrases.display else 0
        room, steps = size.height - layout.FRAME, self.pairs.wanted_height
        below = self.sides.wanted_height if self.sides.display else 0
        self._wanted_change = max(self._wanted_change, self.change.wanted_height)
        wanted = (above, steps + 1, self._wanted_change, below)
        above, steps, _, below = layout.share(room, wanted, (0.2, 0.25, 0.35, 0.2))
        heights = f"{above + steps} 1fr {below}" if below else f"{above + steps} 1fr"
        self.phrases.styles.height = above
        self._body.styles.grid_rows = heights

    def refresh_frame(self) -> None:
        width, look, diff = self.app.size.width, self.app.look, self.diff
        root = clean(short_path(self.app.roots[0]) if self.app.roots else "", 200)
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean(f"  {root}" if width >= layout.NARROW else ""), "sec"),
            Piece(Clean(f" {look.glyphs.path} "), "dim"),
            Piece(Clean("diff"), "text bold"),
        )
        right = (*self._run_header("A", self.request.a), Piece(Clean(f" {look.glyphs.arrow} "), "dim"))
        self._header.show(left, (*right, *self._run_header("B", self.request.b)))
        status: Line = (Piece(Clean("reading both runs"), "status.running"),)
        if self._failure:
            status = (Piece(clean(f"comparison failed: {self._failure}", 400), "status.error"),)
        elif diff is not None:
            status = sentence(diff, look.glyphs, width, self.description)
        self._sentence.show(self.status_message or status)
        self.refresh_footer()

    def _run_header(self, letter: str, ref: RunRef) -> Line:
        """Header text of a run: letter, id, relation and status."""
        run = self.app.store.runs.get(ref)
        style = "diff.rem bold" if letter == "A" else "diff.add bold"
        if run is None:
            return (Piece(Clean(letter), style),)
        sign, status = status_glyph(run.status, self.app.look.glyphs)
        relation = self.request.relation or "" if letter == "B" else "original" if self.request.relation else ""
        return (
            Piece(Clean(f"{letter} "), style),
            Piece(name_of(run), "text"),
            Piece(clean(f" {relation}" if relation else "", 20), "sec"),
            Piece(Clean(f" {sign}"), status),
        )


def _ids(diff: Diff, index: int) -> tuple[str, ...]:
    row = diff.rows[index]
    return tuple(span.id for span in (diff.span_a(row), diff.span_b(row)) if span is not None)


class ContextScreen(BaseDiffScreen):
    """Comparison of two contexts of a run; ``]d`` and ``[d`` go to other calls of the same agent."""

    end_messages = "no later model call of this agent", "no earlier model call of this agent"

    def __init__(self, ask: Calls, run: Run, commands: Sequence[Command]) -> None:
        change = Change()
        super().__init__(commands, {CHANGE: change}, change, DiffState(ask=ask, pane=CHANGE))
        self._run = run
        self._answered: Calls | None = None

    @property
    def request(self) -> Calls:
        """The comparison request."""
        assert isinstance(self.state.ask, Calls)
        return self.state.ask

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield Box(self.change, id="diff", classes="single")
        yield self._footer

    def on_mount(self) -> None:
        self.arrange_panes()
        self.view.focus()
        self.request_look()

    def request_look(self) -> None:
        self.app.engine.differ.calls(self.request, self._run)
        self.refresh_frame()

    @property
    def settled(self) -> bool:
        """Whether the requested comparison is shown."""
        return self._answered == self.request

    def receive(self, mail: Mail) -> None:
        look = mail.diffs.get(self.request)
        if isinstance(look, Look):
            self._answered = self.request
            a, b = (one_line(side, 60) for side in look.sides)
            self.change.show_look(look, (Piece(Clean(f"{a} {self.app.look.glyphs.arrow} {b}"), "sec"),))
            self.refresh_frame()

    def walk(self, step: int) -> bool:
        run = self._run
        if step < 0:
            b = run.index[self.request.a]
        else:
            here = run.index[self.request.b]
            later = range(here + 1, len(run.spans))
            calls = (i for i in later if run.spans[i].operation is Operation.CHAT and previous_call(run, i) == here)
            b = next(calls, -1)
        a = previous_call(run, b) if b >= 0 else None
        if a is None:
            return False
        self.become(replace(self.state, ask=Calls(run.summary.ref, run.spans[a].id, run.spans[b].id)))
        return True

    def copyable(self, what: str) -> str:
        return (
            self.change.value_path if what == "path" else f"{self._run.summary.ref.address}/{quote_key(self.request.b)}"
        )

    def refresh_frame(self) -> None:
        run, glyphs = self._run.summary, self.app.look.glyphs
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean("  "), "sec"),
            Piece(clean(run.name, 60), "text bold"),
            Piece(Clean(f" {name_of(run)} {glyphs.path} "), "sec"),
            Piece(Clean("context"), "text bold"),
        )
        self._header.show(left)
        look = self.change.compared
        status: Line = (Piece(Clean("reading both calls"), "status.running"),)
        if look is not None and look.context is not None:
            status = (Piece(Clean("since the previous call: "), "sec"), *context_summary(look.context, glyphs))
        self._sentence.show(self.status_message or status)
        self.refresh_footer()
