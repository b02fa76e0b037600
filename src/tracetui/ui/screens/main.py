"""The main screen: the run list, the previewed or open run, and the frame."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Size

from tracetui.analysis import navigation
from tracetui.analysis.arrangement import RUN_CHOICES
from tracetui.analysis.liveness import State
from tracetui.live.mailbox import Mail
from tracetui.masking import one_line
from tracetui.model import RunRef, quote_key
from tracetui.store.relations import counted
from tracetui.text import Clean, grouped, quantity
from tracetui.ui import layout
from tracetui.ui import state as states
from tracetui.ui.commands import COMMANDS, DETAIL, FACTS, RUNS, STEPS, Command
from tracetui.ui.panes.run_list import RunList
from tracetui.ui.panes.run_view import RunView, SilenceStrip
from tracetui.ui.panes.steps import Steps
from tracetui.ui.screens.base import RunsScreen, Scope
from tracetui.ui.state import MainState, SearchTarget
from tracetui.ui.widgets.frame import ListedRuns, header, idle, sentence
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.list.columns import hidden_columns

if TYPE_CHECKING:
    from tracetui.analysis.links import End, Origin

TICK_SECONDS: Final = 1.0
SLOW_TICKS: Final = 5
"""On a slow line, redraw what changes with time once in this many ticks."""
AGE_TICKS: Final = 30
"""Ticks between redraws of the ages."""
PAIR: Final = 2


class Trail:
    """The appearances of a value in a run, and the current one."""

    def __init__(self, ref: RunRef, origin: Origin) -> None:
        self.ref, self.origin = ref, origin
        self.at = -1


class MainScreen(RunsScreen):
    """Renders a `MainState`."""

    state: MainState

    def __init__(self, commands: Sequence[Command] = COMMANDS, state: MainState | None = None) -> None:
        state = state or MainState()
        self.runs = RunList(state.arrangement, self._listed, self.filter_runs, self)
        self.run_view = RunView(self)
        self.steps, self.detail, self.facts = self.run_view.steps, self.run_view.detail, self.run_view.facts
        views: dict[str, LineView] = {RUNS: self.runs, STEPS: self.steps, DETAIL: self.detail, FACTS: self.facts}
        super().__init__(commands, views, state)
        self.runs.mark = lambda ref: states.mark_label(self.state, ref)
        self._strip = SilenceStrip("raised", id="strip")
        self._strip.display = False
        self._missing = False
        """Whether the open run is no longer listed."""
        self._trail: Trail | None = None
        """The value whose origin was looked for last."""
        self._came_from: tuple[RunRef, str, str, Hashable | None] | None = None
        """Run, span, tab and row of the detail that `O` or a jump left last."""
        self._ticks = 0
        self._laid_out_for = Size(0, 0)
        self._list_shape: tuple[bool, layout.Height, layout.Height] = False, "", ""
        """Whether the list is above the run, and its width and height."""
        self._wanted_width = 0
        """Cells at which no result on the first page of the unfiltered list is cut."""

    def compose(self) -> ComposeResult:
        size, state = self.app.size, self.state
        self.apply_classes(layout.classes(size.width, size.height, state.level, state.zoom, self.views))
        yield self._header
        yield self._sentence
        with Box(id="body"):
            yield self.runs
            yield self.run_view
        yield self._strip
        yield self._footer

    def on_mount(self) -> None:
        self.view.focus()
        self.set_interval(TICK_SECONDS, self.tick)
        self._laid_out_for = self.app.size

    def on_screen_resume(self) -> None:
        self.refresh_frame()

    # ---- the state

    def become(self, state: MainState) -> None:
        """Replace the state and render the changes."""
        before, self.state = self.state, state
        self.runs.arrangement = state.arrangement
        if states.row_order(state) != states.row_order(before):
            self.runs.rearrange(drop_pending=True)
        elif state.arrangement.columns != before.arrangement.columns:
            self.runs.show_columns(state.arrangement.columns)
        elif state.marked != before.marked:
            self.runs.redraw_rows()
        if states.list_layout(state) != states.list_layout(before):
            self._shape_list()
        if (state.ref, state.goal) != (before.ref, before.goal) and state.ref is not None:
            self._show_run()
            self.app.engine.open(state.ref)
            if state.level:
                self.app.engine.enter(state.ref)
                self.refresh_frame()
        if (state.level, state.zoom, state.pane) != (before.level, before.zoom, before.pane):
            self._lay_out()
            self.set_focus(self.view)
        if before.level and not state.level and state.pane == RUNS and state.ref is not None:
            self.runs.move_to_key(state.ref)
        if before.origin and not state.level and not state.origin:
            self.app.reopen(before.origin)

    def enter(self, ref: RunRef, span: str | None = None, *, follow: bool | None = False, walk: int = 0) -> None:
        """Open a run; see `state.enter_run`."""
        self.become(states.enter_run(self.state, ref, span, follow=follow, walk=walk))

    # ---- data arrives

    def receive(self, mail: Mail) -> None:
        self.refresh_status()
        missing = bool(self.state.level) and self.state.ref is not None and self.state.ref not in self.app.store.runs
        if missing and not self._missing:
            self.status_message = ()  # an older message must not hide it
        self._missing = missing
        if mail.unmasked is not None:
            self.run_view.show_exact(*mail.unmasked)
        ref, problem = self.state.ref, self.runs.problem
        if ref is not None and ref in mail.runs:
            self._show_run()
        elif problem is not None and problem.path in mail.excerpts:
            self.detail.show_excerpt(mail.excerpts[problem.path])
        elif ref is not None and any((ref, span.id) in mail.bodies for span in self.run_view.shown_spans):
            self.run_view.show_detail()
        if self.runs.due:
            self.runs.store_changed(last=mail.total is not None and not mail.stage)
        self.refresh_frame()

    def _listed(self) -> None:
        """Pursue the goal after the list was arranged, and preview the run under the cursor."""
        goal = self.state.goal
        ref = states.find_goal_run(goal, self.app.store.runs, listing=self.app.stage == "list") if goal else None
        if ref is not None and self.runs.has_placed(ref):
            self.runs.chosen = True
            self.runs.move_to_key(ref)
            self.become(states.enter_listed(self.state, ref))
        complete = self.app.listed and self.runs.has_all
        if complete and ref is None and goal is not None and goal.sole:
            self.become(replace(self.state, goal=None))
        self.runs.chosen |= complete
        self.runs.complete |= complete
        self._shape_list()
        self._preview()
        self.refresh_status()
        self.refresh_frame()
        if self.app.waiting_search and self.app.stage != "list" and self.runs.has_all:
            text, self.app.waiting_search = self.app.waiting_search, ""
            self.search_runs(text)

    def _preview(self, *, moved: bool = False) -> None:
        """Preview the run or file under the cursor of the list, unless a run is open. `moved`: by the user."""
        ref, problem = self.runs.ref, self.runs.problem
        if self.state.level:
            return
        if ref is not None and ref != self.state.ref:
            self.run_view.hold_heights(moved)
            self.become(states.preview_run(self.state, ref))
        elif ref is None:
            self.become(states.preview_run(self.state, None))
            self.run_view.show_nothing(problem)
            if problem is not None:
                self.app.engine.load_excerpt(problem)

    def _show_run(self) -> None:
        """Show the read part of the run and pursue the goal in it."""
        run = self.app.store.opened(self.state.ref) if self.state.ref is not None else None
        if run is not None:
            self.state, arrival = states.pursue_goal(self.state, run)
            if arrival.warning:
                self.say(arrival.warning, "status.warn")
            headline = layout.needs_headline(self.app.size.width, self.state.level)
            self.run_view.show_run(run, arrival, headline=headline)
            self._strip.show_run(self.steps.run if self.state.level else None)
            self.runs.redraw_run(run.summary.ref)

    @property
    def ready_to_paint(self) -> bool:
        """Whether every pane has content for the first paint."""
        return bool(self.runs.rows) if self.state.ref is None else self.run_view.shows(self.state.ref)

    @property
    def settled(self) -> bool:
        """Whether everything requested is shown."""
        lists_settled = self.ready_to_paint and self.runs.settled and self.app.causes.settled
        return lists_settled and (self.state.ref is None or self.run_view.settled)

    # ---- the cursor

    @property
    def ref(self) -> RunRef | None:
        """The open run; in the list, the run under the cursor, which may not be shown yet."""
        return self.state.ref if self.state.level else self.runs.ref

    @property
    def place(self) -> tuple[RunRef, str | None] | None:
        span = self.steps.span if self.state.level else None
        return None if self.state.ref is None else (self.state.ref, span.id if span is not None else None)

    def copyable(self, what: str) -> str | None:
        summary = self.app.store.summary(self.state.ref)
        if summary is None or what == "path":
            return summary.ref.path if summary is not None else ""
        span = self.steps.span if self.state.level else None
        return summary.ref.address + (f"/{quote_key(span.id)}" if span is not None else "")

    def action_copy_resume(self) -> None:
        """Copy the command that resumes the session; it isn't run."""
        self.copy_resume(self.app.store.summary(self.ref))

    def scope(self, *, contrast: bool) -> Scope | None:
        store, ref, refs = self.app.store, self.state.ref, self.runs.refs()
        marked = [ref for ref in self.state.marked if ref in store.runs]
        if not contrast and self.state.level and ref is not None:
            return Scope([ref], f"run {store.runs[ref].id}" if ref in store.runs else "this run")
        if self.app.stage == "list":
            still = "list still loading; wait until it is complete"
            self.say_current(lambda: still if self.app.stage == "list" else "")
            return None
        if not contrast:
            return Scope(refs, "the filtered runs" if self.state.arrangement.query else "all runs")
        if marked:
            return Scope(marked, quantity(len(marked), "marked run"))
        failed = [run for ref in refs if (run := store.runs[ref]).failed]
        if failed:  # the runs inside a run that failed are part of it
            chosen = [run.ref for run in counted(failed) or failed]
            return Scope(chosen, "the failed run" if len(chosen) == 1 else f"the {grouped(len(chosen))} failed runs")
        self.say("no failed or marked runs  ·  Space marks runs", "status.warn")
        return None

    def verdicts_changed(self, *, decided: bool) -> None:
        self.runs.verdicts_changed()
        if decided and not self.state.level and self.pane == RUNS:
            ref = states.next_failed(self.state, self.runs.refs(), self.app.store.runs, 1)
            if ref is not None:
                self.runs.move_to_key(ref)

    def causes_changed(self) -> None:
        self.run_view.show_causes()
        self.refresh_frame()

    def links_changed(self) -> None:
        self.run_view.show_links()

    def go_to(
        self,
        ref: RunRef,
        span: str | None,
        origin: Sequence[Hashable] = (),
        target: SearchTarget | None = None,
        *,
        follow: bool | None = None,
    ) -> None:
        self.detail.search_target = target
        self.runs.chosen = True
        self.runs.move_to_key(ref)
        uncover = span is not None
        self.become(states.enter_run(self.state, ref, span, follow=follow, uncover=uncover, origin=origin))

    def action_context_page(self) -> None:
        """Show what fills the context of the run."""
        run = self.run_view.run
        if self.state.ref is None:
            self.say_no_run()
        elif run is None:
            loading = "run still loading; wait until it is shown"
            self.say_current(lambda: loading if self.run_view.run is None else "")
        else:
            span = self.steps.span if self.state.level else None
            self.app.show_context(run, span.id if span is not None else None)

    # ---- the frame

    def refresh_frame(self) -> None:
        if not self._header.is_shown:
            return
        app, width, glyphs = self.app, self.size.width or self.app.size.width, self.app.look.glyphs
        run, open_ = (self.app.store.summary(self.state.ref), self.steps.run) if self.state.level else (None, None)
        rows = self.runs.filtered
        listed = ListedRuns(rows.overview, rows.failed, rows.runs) if rows is not None else None
        vitals = app.liveness.vitals(
            self.app.store.summary(self.state.ref), self.steps.run, rows.unended if rows is not None else None
        )
        spent = self.runs.spent
        self._header.show(*header(app.roots, self.app.store, glyphs, vitals, run, width, spent=spent, listed=listed))
        message = self.status_message or app.liveness.alert(open_, width, glyphs)
        causes = app.causes.grouping_of_all() if app.stage != "list" else None
        self._sentence.show(message or sentence(self.app.store, app, vitals, run, self.steps, causes, width, listed))
        self.refresh_footer()

    @property
    def idle_commands(self) -> frozenset[str]:
        empty = self.state.ref is None and self.runs.problem is None
        run = self.app.store.summary(self.state.ref)
        return super().idle_commands | idle(self.app.store, run, self.pane, empty=empty)

    def refresh_footer(self) -> None:
        app = self.app
        commands = app.comparisons.available_commands(
            app.commands if self.pane == RUNS else self.run_view.with_current_labels(app.commands), self.state.ref
        )
        self.show_footer(commands, level=self.state.level, hidden=self._hidden_columns)

    @property
    def _hidden_columns(self) -> int:
        """Number of columns for which the list has no room; 0 without runs."""
        width, chosen = self.runs.outer_size.width - 2, self.state.arrangement.columns
        if self.state.level or width <= 0 or not self.app.store.runs:
            return 0
        return len({*chosen}.difference(self.runs.columns)) if chosen else hidden_columns(width)

    def _lay_out(self) -> None:
        """Lay out the panes for the level, the zoom and the size."""
        size, state = self.app.size, self.state
        self.apply_classes(layout.classes(size.width, size.height, state.level, state.zoom, self.views))
        self._shape_list()
        self.run_view.lay_out(self.state.level, self.state.zoom)
        if self.state.ref is not None and self.steps.headline is not layout.needs_headline(
            size.width, self.state.level
        ):
            self._show_run()
        self._strip.show_run(self.steps.run if self.state.level else None)
        self.runs.refresh_if_due()
        self.call_after_refresh(self.refresh_frame)

    def _shape_list(self) -> None:
        """Give the list the room that its runs need: a short one is above the run.

        A filter doesn't change that, so that nothing moves while it is typed.
        """
        size, rows, arrangement = self.app.size, self.runs.wanted_height, self.state.arrangement
        (short, *_), wanted = self._list_shape, self._wanted_width
        if not (wanted and (self.app.stage == "list" or arrangement.query or arrangement.failures)):
            short = layout.is_short(size.height, rows) and self.runs.ref is not None and self.app.stage != "list"
            wanted = self._wanted_width = self.runs.result_width
        above = short and self.state.zoom is None and (not self.state.level or size.width >= layout.WIDE)
        chosen = self.runs.chosen_width if arrangement.columns else 0
        width = layout.list_width(size.width, arrangement.share, chosen, wanted, self.runs.least_width)
        shape = (short, "1fr", rows) if above else (short, "1fr" if self.state.zoom else width, "1fr")
        if shape != self._list_shape:
            self._list_shape = shape
            self.set_class(above, "stacked")
            self.runs.styles.width, self.runs.styles.height = shape[1:]

    def on_resize(self, event: events.Resize) -> None:
        if event.size != self._laid_out_for:  # the first event repeats the size that compose() used
            self._laid_out_for = event.size
            self._lay_out()
            self.call_after_refresh(self._show_run)

    def tick(self) -> None:
        """Redraw what changes with time: durations, liveness, ages."""
        self._ticks += 1
        if self.state.ref is not None:
            self.app.read_ahead(self.state.ref)
        if self._ticks % SLOW_TICKS and self.app.throttle.is_slow(time.monotonic()):
            return
        now, run = self.app.clock(), self.steps.run
        self.refresh_status()
        if self.app.verdicts.refresh():
            self.app.verdicts_changed()
        aged = self._ticks % AGE_TICKS == 0
        if aged:
            self.runs.rearrange()
        else:
            self.runs.tick(now)
        going = run is not None and self.app.liveness.state_of(run).state is not State.ENDED
        if going or aged:
            self.steps.tick(now, aged=aged)
        if going:
            self._strip.show_run(self.steps.run if self.state.level else None)
        if self.app.liveness.counts_changed() or going:
            self.refresh_frame()

    # ---- messages of the panes

    def focus_pane(self, name: str) -> None:
        self.become(states.focus_pane(self.state, name, layout.width_of(self.app.size.width)))

    def pane_focused(self, name: str) -> None:
        self.state = states.focus(self.state, name)
        if name != RUNS and self.state.ref is not None:
            self.app.engine.enter(self.state.ref)

    @on(LineView.Moved, "#runs")
    def _run_moved(self) -> None:
        self.runs.chosen = True
        before = self.state.ref
        self._preview(moved=True)
        if self.state.ref in (before, None):  # else the frame follows with the preview
            self.refresh_frame()

    @on(LineView.Moved, "#steps")
    @on(Steps.FollowChanged)
    def _steps_moved(self) -> None:
        self.state = states.release_span(self.state)
        self.refresh_frame()

    @on(Steps.EndReached)
    def _end_reached(self, message: Steps.EndReached) -> None:
        if self.steps.position == message.position and self.state.ref is not None:
            self.state = states.follow_run(self.state, always=self.steps.detached)
            self._show_run()
            self.refresh_frame()

    @on(LineView.SortRequested)
    def _sort_requested(self, message: LineView.SortRequested) -> None:
        arrangement = states.toggle_sort(self.state.arrangement, message.sort)
        self.become(replace(self.state, arrangement=arrangement))

    @on(RunList.Dragged)
    def _dragged(self, message: RunList.Dragged) -> None:
        share = round(100 * message.column / max(1, self.app.size.width))
        self.become(states.arrange_runs(self.state, share=max(1, min(share, 99))))

    # ---- commands

    def action_open(self) -> None:
        """Open the run under the cursor, then its detail; unfold a folded row or follow its link."""
        width = layout.width_of(self.app.size.width)
        if self.pane == STEPS:
            self.become(states.read_detail(self.state, width))
        elif self.pane != RUNS:
            if not (self.facts if self.pane == FACTS else self.detail).toggle():
                self.action_jump()
        elif self.runs.ref is not None:
            self.become(states.enter_run(self.state, self.runs.ref))
        elif self.runs.problem is not None:
            self.become(states.enter_problem(self.state))

    def action_arrange(self, change: str) -> None:
        """Arrange the list; see `state.rearrange`."""
        arrangement = states.rearrange(self.state.arrangement, change, RUN_CHOICES)
        self.become(replace(self.state, arrangement=arrangement))

    def action_sort(self) -> None:
        """Sort the list by the next column."""
        self.action_arrange("sort")

    def action_mark(self) -> None:
        """Mark or unmark the run under the cursor of the list."""
        if self.runs.ref is None:
            return
        self.become(states.toggle_mark(self.state, self.runs.ref))
        count = len(self.state.marked)
        if count > PAIR:
            self.say(f"{count} runs marked  ·  d opens their tree  ·  C contrasts them with the others")
        elif count == PAIR:
            self.say("A and B marked  ·  d compares them  ·  C contrasts them with the others")
        elif count:
            self.say("marked as A  ·  Space marks another  ·  d compares with the run under the cursor")

    def action_columns(self) -> None:
        """Choose the columns of the list; it widens for them, or fills the screen."""
        from tracetui.ui.screens.overlay import ColumnsScreen

        def apply(columns: tuple[str, ...]) -> None:
            state = states.arrange_runs(self.state, columns=columns, share=0)
            room = self.app.size.width - layout.MIN_SIDE
            self.become(state)
            single = RUNS if columns and self.runs.chosen_width > room else None
            self.become(replace(self.state, zoom=single))

        self.app.push_screen(ColumnsScreen(self.state.arrangement.columns, self.runs.columns, apply))

    def action_jump(self) -> None:
        """Go to the span or the run that the row under the cursor refers to."""
        span, run_id = self.run_view.jump_target(self.view)
        if span is not None or run_id is not None:
            self._remember_row()
        trials = (end for link in self.detail.links for end in link.targets if end.run is not None)
        trial = next((end for end in trials if end.span == span and end.run and end.run.address == run_id), None)
        if trial is not None and trial.run is not None:
            self.go_to(trial.run, trial.span, target=_target(trial.run, trial))
            self.say("step of a passed trial  ·  ^o back")
        elif span is not None and self.steps.move_to_key(span):
            self.focus_pane(STEPS)
        elif run_id is not None and self.state.ref is not None:
            ref = self.app.store.relations.named(self.state.ref, run_id)
            if ref is None:
                self.say(f"run {run_id} not found in this directory (or the id isn't unique)", "status.warn")
                return
            self.runs.move_to_key(ref)
            self.enter(ref)
            self.focus_pane(STEPS)

    def _remember_row(self) -> None:
        run, span = self.detail.run, self.detail.span
        if self.pane == DETAIL and run is not None and span is not None:
            self._came_from = run.summary.ref, span.id, self.detail.tab, self.detail.cursor

    def action_origin(self) -> None:
        """Go to the first appearance of the value under the cursor, or of the selected text, in the run.

        In a row that refers to a step, go there.
        """
        from tracetui.analysis.writings import value_in

        run, span, selected = self.detail.run, self.detail.span, value_in(self.get_selected_text() or "")
        if selected is None and self.detail.target is not None:
            self.action_jump()
            return
        value = selected or self.detail.value()
        if run is None or span is None or value is None:
            self.say(
                "no value in this row  ·  select a text, or go to a row with a number, a date or an id", "status.warn"
            )
            return
        self.clear_selection()
        self._remember_row()

        def show(origin: Origin) -> None:
            if self.detail.run is not None and self.detail.run.summary.ref == run.summary.ref:
                self._trail = Trail(run.summary.ref, origin)
                self._show_appearance(origin.first.targets[0] if origin.first.targets else None)

        self.app.links.find_origin(run, span.id, value, show)

    def action_appearance(self, step: int) -> None:
        """Go to the next appearance of the value of the last origin, or the one before."""
        trail = self._trail
        if trail is None or trail.ref != self.state.ref:
            self.say("O on a value looks for its appearances first", "status.warn")
            return
        following = trail.at + step
        if following in range(len(trail.origin.places)):
            self._show_appearance(trail.origin.places[following])
        else:
            self.say(f"no more appearances of {one_line(trail.origin.value, 60)} in this direction")

    def action_origin_back(self) -> None:
        """Return to the row that `O` or a jump left last."""
        if self._came_from is None or self._came_from[0] not in self.app.store.runs:
            self.say("O on a value goes to its origin; ^o returns from there", "status.warn")
            return
        ref, span, tab, row = self._came_from
        if ref != self.state.ref:
            self.go_to(ref, span)
        if self.steps.run is not None and self.steps.run.summary.ref == ref:
            self._go_to_step(span)
            self.detail.choose(tab)
            self.detail.search("")
            if row is not None:
                self.detail.move_to_key(row)

    def _show_appearance(self, end: End | None) -> None:
        """Go to an appearance of the value of the trail, and say which it is; None: no earlier text has it."""
        from tracetui.views.links import origin_text

        trail, run = self._trail, self.detail.run
        if trail is None or run is None:
            return
        message = origin_text(run, trail.origin)
        if end is None:
            self.say(message, "status.warn")
            return
        places = trail.origin.places
        at = next((i for i, place in enumerate(places) if place == end), None)
        if at is not None:  # a summand isn't an appearance of the value
            trail.at, message = at, Clean(f"{at + 1}/{len(places)}  {message}")
        self.detail.search_target = _target(run.summary.ref, end)
        self._go_to_step(end.span)
        self.say(f"{message}  ·  ]v next  ·  ^o back")

    def _go_to_step(self, span: str) -> None:
        self.steps.unfold_to(span, self.app.clock())
        self.steps.move_to_key(span)
        self.run_view.show_detail()
        self.focus_pane(DETAIL)

    def step_back(self) -> None:
        following = states.go_back(self.state)
        if following is not None:
            self.become(following)

    def action_leave(self) -> None:
        """Go back; from the list, quit."""
        if self.state.level or self.pane != RUNS or self.state.zoom is not None:
            self.action_back()
        else:
            self.app.exit()

    def reachable(self) -> Sequence[str]:
        return [name for name, view in self.views.items() if view.is_on_screen]

    def action_pane(self, number: int) -> None:
        """Focus a pane by its number; without room for the facts, show the run tab."""
        name = [*self.views][number - 1]
        if name == FACTS and not self.facts.is_on_screen:
            name = DETAIL
            self.detail.choose("run")
        self.focus_pane(name)

    def action_follow(self) -> None:
        """Open and follow the run under the cursor; in a run, toggle follow."""
        if self.pane == RUNS and self.runs.ref is not None:
            self.enter(self.runs.ref, follow=True)
        else:
            self.run_view.follow(not self.steps.following)
            self.refresh_frame()

    def action_error(self, step: int) -> None:
        """Go to the next or previous error; past the last one, to the next failed run."""
        run, span = self.steps.run, self.steps.last_span if step > 0 else self.steps.span
        in_run = run is not None and self.pane != RUNS
        span_id = states.next_error(run, span.id if span is not None else None, step) if run and in_run else None
        if span_id is not None:
            self.run_view.go_to_error(span_id)
            return
        here = self.pane == RUNS and not self.state.level
        ref = states.next_failed(self.state, self.runs.refs(), self.app.store.runs, step, here=here)
        if ref is None:
            walked = in_run and run is not None and bool(navigation.errors(run))
            message = states.no_error(self.state, self.runs.refs(), self.app.store.runs, step, walked=walked)
            self.say(message, "status.warn")
            return
        self.runs.chosen = True
        self.runs.move_to_key(ref)
        error = self.app.store.runs[ref].first_error
        self.enter(ref, error.span if error is not None else None, follow=None, walk=step)

    def action_ungraded(self, step: int) -> None:
        """Go to the next or previous ungraded run of the list."""
        ref = states.next_ungraded(self.state, self.runs.refs(), self.app.store.runs, step)
        if ref is None:
            self.say("no more ungraded runs" if step > 0 else "no earlier ungraded runs", "status.warn")
            return
        self.runs.chosen = True
        self.runs.move_to_key(ref)
        if self.state.level:
            self.enter(ref, None, follow=None)

    def action_diff(self) -> None:
        """Compare the marked runs."""
        pair, here = [ref for ref in self.state.marked if ref in self.app.store.runs], self.ref
        if len(pair) == 1 and here is not None and here != pair[0]:
            pair.append(here)
        if len(pair) == PAIR:
            self.app.compare(pair[0], pair[1])
        elif len(pair) > PAIR:
            self._show_tree(pair)
        else:
            self.say("two runs needed  ·  Space marks them  ·  D compares with the original", "status.warn")

    def _show_tree(self, refs: Sequence[RunRef]) -> None:
        """Open the run tree of marked runs."""
        from tracetui.analysis.tasks import as_trials

        chosen = [self.app.store.runs[ref] for ref in refs]
        here = self.ref if self.ref in refs else refs[0]
        self.app.show_run_tree(as_trials(chosen), title=f"{len(refs)} marked runs", selected=here)

    def filter_runs(self, query: str) -> None:
        """Filter the list by a query, which databases are asked too."""
        unhandled = self.app.engine.narrow(query)
        self.become(states.filter_runs(self.state, query))
        if unhandled:
            self.say(
                f"the database can't filter by {' '.join(unhandled)}: only the listed runs were searched", "status.warn"
            )

    def action_reread(self) -> None:
        """Reload the open run, or rescan the directory."""
        ref = self.state.ref
        if self.state.level and ref is not None:
            self.app.store.forget(ref)
            self.app.engine.open(ref, reload=True)
            self.say("re-reading the run")
        else:
            self.app.rescan()
            self.say("re-reading the directory")


def _target(ref: RunRef, end: End) -> SearchTarget:
    """Where the detail shows the quote of an end."""
    return SearchTarget(ref, end.span, end.quote, (end.part.value, "messages"))
