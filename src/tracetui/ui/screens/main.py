"""The screen: header, sentence, panes, footer. It wires panes to the engine; what they show they know themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Size

from tracetui.live.mail import Mail
from tracetui.model import RunRef, RunSummary
from tracetui.store.address import Address
from tracetui.store.store import Store
from tracetui.ui import destination, layout
from tracetui.ui.actions.main import Actions
from tracetui.ui.commands import COMMANDS, DETAIL, FACTS, RUNS, STEPS, Command
from tracetui.ui.controllers.arranging import Arranging
from tracetui.ui.controllers.assessing import Assessing
from tracetui.ui.controllers.comparing import Comparing
from tracetui.ui.controllers.judging import Judging, JudgingScreen, Subject
from tracetui.ui.controllers.live import Live
from tracetui.ui.controllers.surveying import Surveying
from tracetui.ui.controllers.taking import Taking
from tracetui.ui.panes.detail import Detail, Sought
from tracetui.ui.panes.facts import Facts
from tracetui.ui.panes.run_list import RunList
from tracetui.ui.panes.steps import Steps
from tracetui.ui.widgets.frame import footer, header, idle, sentence
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box, LineBar
from tracetui.ui.widgets.prompt import FILTER
from tracetui.views.arrange import Arrangement
from tracetui.views.glyphs import Glyphs
from tracetui.views.runs import Tied

if TYPE_CHECKING:
    from tracetui.ui.controllers.filtering import Filtering


class MainScreen(JudgingScreen):
    """Runs, steps and detail. `level` says how far in the reader is: the list, a run, or its detail."""

    def __init__(self, commands: Sequence[Command] = COMMANDS, arrangement: Arrangement | None = None) -> None:
        self.runs = RunList(arrangement or Arrangement())
        self.steps = Steps()
        self.detail = Detail()
        self.facts = Facts()
        views = {RUNS: self.runs, STEPS: self.steps, DETAIL: self.detail, FACTS: self.facts}
        super().__init__(commands, views)
        self.actions = Actions(self)
        self.live = Live(self)
        self.comparing = Comparing(self)
        self.arranging = Arranging(self)
        self.assessing = Assessing(self)
        self.judging = Judging(self)
        self.hint = LineBar("bg", id="hint")
        """Below the prompt of the filter: what is wrong and where, or how the query may go on."""
        self.hint.display = False
        self.surveying = Surveying(self)
        self.taking = Taking(self)
        self.walking = 0
        """Which way the error walk goes on in the run that is being opened: 1, -1, or 0 when nobody walks."""
        self.come_from: Callable[[], object] | None = None
        """Opens the screen again from which the open run was visited."""
        self.level = 0
        self.ref: RunRef | None = None
        """The run shown in steps and detail (previewed or open)."""
        self.wanted: tuple[RunRef, str | None] | None = None
        """A run that was asked for, and the span to go to in it: the error walk waits for it."""
        self._uncovers = False
        """Whether that span gets a row if it has none as things are."""
        self.target: Address | None = None
        """Where the command line asked to go; None once there."""
        self.follow_target = False
        """Whether the run that the command line named is followed."""
        self._laid_out_for = Size(0, 0)
        self._heights: tuple[float | str, float | str] = ("1fr", "1fr")
        self._middle = Box(id="middle")

    @property
    def doers(self) -> Iterator[object]:
        yield from (self.actions, self.comparing, self.judging, self.surveying, self.taking)
        yield self.filtering  # the last: to ask for it is to load it

    @cached_property
    def filtering(self) -> Filtering:
        """The filter; what it takes is loaded when it is first asked for."""
        from tracetui.ui.controllers.filtering import Filtering

        return Filtering(self)

    @property
    def store(self) -> Store:
        """What is known of the directory."""
        return self.app.store

    def compose(self) -> ComposeResult:
        self._classify()
        yield self._header
        yield self._sentence
        yield self.hint
        with Box(id="body"):
            yield self.runs
            with Box(id="side"):
                with self._middle:
                    yield self.steps
                    yield self.facts
                yield self.detail
        self.live.strip.display = False
        yield self.live.strip
        yield self._footer

    def on_mount(self) -> None:
        (self.steps if self.level else self.runs).focus()
        self.live.start()
        self._laid_out_for = self.app.size

    # ---- data arrives

    def receive(self, mail: Mail) -> None:
        """Take in what the engine left."""
        self.live.take(mail)
        self.surveying.take(mail)
        self.taking.take(mail)
        self.comparing.take(mail)
        self.assessing.take(mail)
        problem = self.runs.problem
        if self.ref in mail.runs:
            self.show_run(self.ref)
        elif problem is not None and problem.path in mail.excerpts:
            self.detail.show_excerpt(mail.excerpts[problem.path])
        elif self.steps.span is not None and (self.ref, self.steps.span.id) in mail.bodies:
            self.show_detail()
        if self.arranging.due:
            self.arranging.changed(last=mail.total is not None and not mail.stage)
        else:
            self.refresh_frame()

    def refresh_list(self) -> None:
        """Show the runs as they are known now."""
        self.arranging.now()

    def listed(self) -> None:
        """The list was arranged anew: go where somebody asked to go, and show what is under the cursor."""
        self._go_to_target()
        self.live.listed()
        self.preview()

    def _go_to_target(self) -> None:
        """Open the run that the command line named, as soon as it is listed."""
        ref = destination.run_at(self.target, self.store.runs) if self.target is not None else None
        if ref is not None and not self.level and self.arranging.has_come_to(ref):
            self.runs.chosen = True
            self.runs.move_to_key(ref)
            self.actions.enter(ref, follow=destination.follows(self.target, self.follow_target))

    def preview(self) -> None:
        """Show what is under the cursor of the list."""
        if self.level:
            return
        ref = self.runs.ref
        if ref is None:
            self.ref = None
            problem = self.runs.problem
            self.steps.nothing(problem)
            self.detail.nothing()
            if problem is not None:
                self.app.engine.load_excerpt(problem)
            self.facts.nothing()
        elif ref != self.ref:
            self.open_ref(ref)

    def open_ref(self, ref: RunRef, span: str | None = None) -> None:
        """Show that run, now if it is kept, else as soon as it is read."""
        self.ref = ref
        self.wanted = (ref, span) if span is not None else None
        if self.store.opened(ref) is not None:
            self.show_run(ref)
        self.app.engine.open(ref)
        if self.level:
            self.app.engine.enter(ref)

    def show_run(self, ref: RunRef) -> None:
        """Show the kept state of the run."""
        run = self.store.opened(ref)
        if run is None:
            return
        span, uncover = None, self._uncovers
        if self.wanted is not None and self.wanted[0] == ref:
            span = self.wanted[1] if self.wanted[1] in run.index else None
            if span is not None or run.complete:
                self.wanted, self._uncovers = None, False
        if self.target is not None and self.level:
            (span, wrong), uncover = destination.span_at(self.target, run), True
            if not wrong or run.complete:
                self.target = None
            if wrong and run.complete:
                self.say(wrong, "status.warn")
        self.steps.headline = self._needs_headline
        self.steps.show_run(run, now=self.app.clock(), span=span, uncover=uncover)
        self.assessing.shown(run)
        if self.walking and run.complete:
            step, self.walking = self.walking, 0
            self.actions.arrive(step)
        self.facts.show_run(run)
        self._share_height()
        self.live.shown(run)
        self.show_detail()
        self.live.show_strip()
        self.refresh_frame()

    @property
    def _needs_headline(self) -> bool:
        """Whether the steps say how the run ended: where no other part of the screen does."""
        return not self.has_class("narrow") and (not self.level or self.has_class("wide"))

    def show_detail(self) -> None:
        """Show the span under the cursor of the steps; ask for its body where it is not there yet."""
        run = self.steps.run
        if run is None:
            self.detail.nothing()
            return
        span = self.steps.span
        body = self.store.body(run.summary.ref, span) if span is not None else None
        if span is not None and body is None:
            self.app.engine.load_body(run, span)
            if self.detail.run is not None:
                return  # the old one stays until the new one is there: one repaint, no flicker
        self.detail.show_span(run, span, body)

    @property
    def summary(self) -> RunSummary | None:
        """The run that is shown, as the list knows it (or better, as the open run does)."""
        if self.ref is None:
            return None
        run = self.store.opened(self.ref)
        return run.summary if run is not None else self.store.runs.get(self.ref)

    @property
    def presentable(self) -> bool:
        """True if there is something in every pane: worth the first paint."""
        if self.ref is None:
            return bool(self.runs.rows)
        return self.detail.run is not None and self.detail.run.summary.ref == self.ref

    @property
    def settled(self) -> bool:
        """True if nothing that is shown is still on its way."""
        return self.presentable and self.arranging.settled and (self.ref is None or self.assessing.settled)

    # ---- what is judged

    def ties(self, run: RunSummary, glyphs: Glyphs) -> Tied:
        """What the list says of a run besides what its trace says: how it is tied to others, and its verdict."""
        tied = self.comparing.ties(run, glyphs)
        told = self.judging.said_of(run)
        return tied._replace(after=(*tied.after, *told)) if told else tied

    @property
    def subject(self) -> Subject | None:
        return self.store.runs.get(self.ref) if self.ref is not None else None

    @property
    def place(self) -> tuple[RunRef, str | None] | None:
        span = self.steps.span if self.level else None
        return None if self.ref is None else (self.ref, span.id if span is not None else None)

    def judged(self, *, decided: bool) -> None:
        self.refresh_list()
        if decided and not self.level and self.pane == RUNS:
            self.actions.go_to_failed()

    def judged_elsewhere(self) -> None:
        """Another instance judged something: every screen that shows it does so anew."""
        for screen in self.app.screen_stack:
            if isinstance(screen, JudgingScreen):
                screen.judged(decided=False)

    def go_to(self, ref: RunRef, span: str | None) -> None:
        self.runs.chosen = True
        self.runs.move_to_key(ref)
        self._uncovers = span is not None
        self.actions.enter(ref, span, follow=None)

    def visit(self, ref: RunRef, span: str | None, *, sought: Sought | None = None) -> None:
        """Open a run on the way from the screens above, to which leaving it leads back; find in it what is sought."""
        above = self.app.back_to_main()
        self.detail.sought = sought
        self.go_to(ref, span)
        self.come_from = lambda: self.app.push_again(above)

    # ---- the frame

    def refresh_frame(self) -> None:
        """Header, sentence and footer as of now."""
        app, width = self.app, self.size.width or self.app.size.width
        run, vitals = self.summary if self.level else None, self.live.vitals()
        self._header.show(*header(app.roots, self.store, app.look.glyphs, vitals, run, width))
        said = self.said or self.live.sentence(width)
        self._sentence.show(said or sentence(self.store, app, vitals, run, self.steps, width))
        commands = self.comparing.offered(self.live.worded(app.commands), self.ref)
        columns, nowhere = bool(self.runs.arrangement.all_columns), idle(self.store, self.summary)
        self.show_footer(*footer(commands, self.pane, width, self.level, columns, nowhere))

    def _classify(self) -> None:
        size = self.app.size
        for name, holds in layout.classes(size.width, size.height, self.level, self.zoomed, self.views).items():
            self.set_class(holds, name)

    def arrange_panes(self) -> None:
        """Lay the panes out for the level, the zoom and the size."""
        self._classify()
        if self.ref is not None and self.steps.headline is not self._needs_headline:
            self.show_run(self.ref)
        self._share_height()
        self.live.show_strip()
        self.arranging.shown()
        self.call_after_refresh(self.refresh_frame)

    def _share_height(self) -> None:
        size = self.app.size
        shares = layout.heights(size.width, size.height, self.level, self.zoomed, self.steps.wanted_height)
        if shares != self._heights:
            self._heights = shares
            self._middle.styles.height, self.steps.styles.height = shares

    def on_resize(self, event: events.Resize) -> None:
        if event.size != self._laid_out_for:  # the first one tells what compose() knew already
            self._laid_out_for = event.size
            self.arrange_panes()
            self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        if self.ref is not None:
            self.show_run(self.ref)
        self.refresh_frame()

    def focus_pane(self, name: str) -> None:
        """Focus a pane, and bring it on the screen if it is not."""
        if self.zoomed is not None:
            self.zoomed = name
        if name == RUNS and not self.has_class("wide") and self.level:
            self.level = 0
        elif name != RUNS and self.has_class("narrow") and not self.level:
            self.level = 1
        if self.has_class("narrow") and self.level:
            self.level = 2 if name == DETAIL and self.level == 2 else 1
        self.arrange_panes()
        self.views[name].focus()

    # ---- events

    @on(LineView.Moved, "#runs")
    def _run_moved(self) -> None:
        self.runs.chosen = True
        self.preview()
        self.refresh_frame()

    @on(LineView.Moved, "#steps")
    def _span_moved(self) -> None:
        self.wanted = None
        self.live.moved()
        self.show_detail()
        self.refresh_frame()

    @on(LineView.Moved, "#detail")
    def _detail_moved(self) -> None:
        self.live.reading()

    def on_descendant_focus(self) -> None:
        if self.pane != RUNS and self.ref is not None:
            self.app.engine.enter(self.ref)
        self.refresh_frame()

    # ---- prompt

    def completed(self, purpose: str, value: str, cursor: int, step: int) -> tuple[str, int] | None:
        return self.filtering.complete(purpose, value, cursor, step) if purpose.startswith(FILTER) else None

    def accepts(self, purpose: str, value: str) -> bool:
        return not purpose.startswith(FILTER) or self.filtering.accepts(purpose, value)

    def typed(self, purpose: str, value: str) -> None:
        if purpose.startswith(FILTER):
            self.filtering.typed(purpose, value)
        else:
            super().typed(purpose, value)

    def answered(self, purpose: str, value: str) -> None:
        if purpose.startswith(FILTER):
            self.filtering.answered(purpose, value)
        else:
            super().answered(purpose, value)

    def found(self, view: LineView) -> None:
        self.actions.go_to_hit(view, 1, include_here=True)
