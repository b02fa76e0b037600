"""The triage: the causes of the failed runs, worst first, each with a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult
from textual.timer import Timer

from tracetui.analysis.tasks import Result, result_of
from tracetui.analysis.triage import (
    CAUSE_CHOICES,
    CAUSES,
    NEW_SECONDS,
    CauseOrder,
    Group,
    Task,
    arrange_causes,
    splits_of,
)
from tracetui.live.mailbox import Mail
from tracetui.masking import clean, one_line
from tracetui.model import RunRef, Status
from tracetui.store.judgement import Judgement
from tracetui.text import Clean, grouped, quantity
from tracetui.ui import layout, triage_state
from tracetui.ui import state as states
from tracetui.ui.commands import CAUSE, FAILURE, QUEUE, Command
from tracetui.ui.panes.triage import Cause, Failure, Queue
from tracetui.ui.screens.base import RunsScreen, Scope
from tracetui.ui.services.verdicts import Subject
from tracetui.ui.triage_state import TriageState, next_undecided, step_failed
from tracetui.ui.widgets.frame import short_path
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.bars import amount
from tracetui.views.rows import Line, Piece, width_of
from tracetui.views.triage import FailedRun, Member, TaskRow, is_reviewed

if TYPE_CHECKING:
    from tracetui.ui.services.causes import Grouping

BAR: Final = 24
_DOT: Final = Piece(Clean("  ·  "), "dim")
_COUNT_STYLES: Final = "status.error bold", "status.warn bold"
"""Styles of the failures and of the ungraded runs."""
GOOD_RESULTS: Final = (Result.PASSED, Result.UNSCORED)
MAX_RUNS: Final = 8
"""Runs of a cause that its pane lists."""
MAX_SPLITS: Final = 4
"""Ways to split a cause that the prompt lists."""
STEP: Final = 4
"""The pane of the cause has a multiple of so many rows: a new layout for each cause would cost more than its rows."""
MAX_LINKS: Final = 4
"""Links of the example in the cause pane."""
REST_SECONDS: Final = 0.15
"""How long the cursor rests on a cause before its runs are read to be compared with others."""
MANY: Final = 2_000
"""Causes that take so long to sort that a thread does it."""
REGROUP_SECONDS: Final = 0.5
"""While runs arrive, the queue changes no oftener."""


class TriageScreen(RunsScreen):
    """Queue, cause, and the steps up to the failure of the run under the cursor. Renders a `TriageState`."""

    AUTO_FOCUS = ""
    state: TriageState

    def __init__(self, commands: Sequence[Command], state: TriageState | None = None) -> None:
        """Begin in a state in which the triage was left."""
        self.queue, self.cause, self.failure = Queue(), Cause(), Failure()
        views: dict[str, LineView] = {QUEUE: self.queue, CAUSE: self.cause, FAILURE: self.failure}
        super().__init__(commands, views, state or TriageState())
        self._body = Box(self.queue, self.cause, self.failure, id="triage")
        self._rows = ""
        """Heights of the panes at the right."""
        self._grouped = -1
        self._grouping: Grouping | None = None
        self._order = CauseOrder()
        self._order_key: object = None
        """Key of the arrangement that `_order` holds; None before the first one."""
        self._reviewed: tuple[object, int, int] = None, 0, 0
        self._group_after = 0.0
        self._rest: Timer | None = None
        self._requested: RunRef | None = None
        """The run that was requested since the screen is on top."""

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield self._body
        yield self._footer

    def on_mount(self) -> None:
        self.regroup()
        self.queue.move_to_key(self.state.cursor)
        self._arrange_panes()
        self.view.focus()
        self.call_after_refresh(self.show_cause)

    def on_screen_resume(self) -> None:
        self._requested = None
        self.regroup()

    # ---- the state

    def become(self, state: TriageState) -> None:
        """Replace the state, and show what changed."""
        before, self.state = self.state, state
        if (state.unfolded, state.marked, state.arrangement) != (before.unfolded, before.marked, before.arrangement):
            self.regroup()
        if (state.pane, state.zoom) != (before.pane, before.zoom):
            self._arrange_panes()
            self.set_focus(self.view)

    # ---- data

    def receive(self, mail: Mail) -> None:
        if self.app.screen is not self:  # what another screen asked for must not be replaced
            return
        now = time.monotonic()
        if self.app.store.revision != self._grouped and now >= self._group_after:
            self._group_after = now + REGROUP_SECONDS
            self.regroup()
        if self.queue.run in mail.runs:
            self.show_failure()
            self._share_height()
        elif self.queue.run in mail.assessments:
            self._fold_loops()
        if mail.progress is not None:
            self._show_facts()
            self._share_height()
            self.refresh_frame()

    def regroup(self) -> None:
        """Group the current failures by cause, and arrange the causes."""
        app, now, arrangement = self.app, self.app.clock(), self.state.arrangement
        self._grouped = app.store.revision
        query = app.filter_query()
        self._grouping = app.causes.grouping(query, app.filtered_runs)
        self.queue.unfolded, self.queue.marked = self.state.unfolded, frozenset(self.state.marked)
        order = self._order_causes(now)
        if order.items:
            hidden = len(self.causes) - len(order.groups)
            self.queue.show_groups(
                order, app.store.runs, self.judgement_of, arrangement=arrangement, hidden=hidden, now=now, query=query
            )
        else:
            self.queue.show_empty([(), *self._nothing(query)])
        self.show_cause()

    def _order_causes(self, now: float) -> CauseOrder:
        """The causes in the view order. A thread sorts very many: until then they stay as they are."""
        grouping, view = self._grouping, self.state.arrangement
        if grouping is None:
            return CauseOrder()
        if (view.sort, view.reverse, view.group, view.new) == (CAUSES.sort, CAUSES.reverse, CAUSES.group, CAUSES.new):
            self._order, self._order_key = grouping.order, None
            return grouping.order
        verdicts = self.app.verdicts.sidecar.revision if view.group == "verdict" else None
        key = grouping, view, verdicts
        if key == self._order_key:
            return self._order

        def arrange() -> CauseOrder:
            return CauseOrder(arrange_causes(grouping.groups, view, now=now, verdict_of=self._verdict_of))

        self._order_key = key
        if len(grouping.groups) < MANY:
            self._order = arrange()
            return self._order

        def work() -> Callable[[], None]:
            order = arrange()
            return lambda: self._finish_sorting(key, order)

        self.app.engine.run_in_background(work)
        return self._order

    def _finish_sorting(self, key: object, order: CauseOrder) -> None:
        """Show what a thread sorted, unless that was superseded."""
        if key == self._order_key:
            self._order = order
            self.regroup()

    @property
    def causes(self) -> Sequence[Group]:
        """All causes, in the order of the time that they cost."""
        return self._grouping.groups if self._grouping is not None else ()

    def _nothing(self, query: str) -> list[Line]:
        """Why the queue is empty."""
        if self._grouping is None:
            return [(Piece(Clean("grouping the failed runs …"), "status.running"),)]
        if self.causes:
            number = len(self.causes)
            return [
                (Piece(Clean("No new causes: no cause has its first run in the last 24 hours."), "text bold"),),
                (),
                (Piece(Clean("!"), "key bold"), Piece(Clean(f" show all {number}"), "sec")),
            ]
        message = f"No failed or ungraded runs match {one_line(query, 60)!r}." if query else "No failed runs."
        return [(Piece(Clean(message), "text bold"),)]

    def _verdict_of(self, group: Group) -> str | None:
        verdict = self.judgement_of(group).verdict
        return verdict.value if verdict is not None else None

    def judgement_of(self, what: Group | Task | RunRef) -> Judgement:
        """The decisions on a row."""
        subject = self.app.store.runs.get(what) if isinstance(what, RunRef) else what
        return self.app.verdicts.judgement(subject) if subject is not None else Judgement()

    def show_cause(self) -> None:
        """Show the cause and the run under the cursor."""
        ref = self.queue.run
        self._show_facts()
        if ref is not None and ref != self._requested:
            self._requested = ref
            self.app.engine.open(ref)
        self.show_failure()
        self._share_height()
        self.refresh_frame()

    def _show_facts(self) -> None:
        """Show the facts of the cause or run under the cursor."""
        group, ref = self.queue.group, self.queue.run
        if group is None or ref is None:
            self.cause.show_empty()
            return
        example, surveys = self.app.store.runs.get(ref), self.app.surveys
        shared, going_on = surveys.contrast_of(group.runs), surveys.progress(group.runs)
        task, now = self.queue.selected_task, self.app.clock()
        judgment = self.judgement_of(task or group)
        runs = self._failures(task.runs if task is not None else group.runs)
        self.cause.show_cause(
            group, example, judgment, shared, going_on, failures=runs, now=now, task=task, links=self._links(ref)
        )
        if not surveys.is_asked(group.runs):
            self._compare_later()

    def _failures(self, refs: Sequence[RunRef]) -> list[FailedRun]:
        """The first of these runs, each with a replay that passed."""
        store = self.app.store
        failures = []
        for ref in refs[:MAX_RUNS]:
            if (run := store.runs.get(ref)) is not None:
                replays = (store.runs.get(replay) for replay in store.relations.variants(ref))
                good = (replay for replay in replays if replay is not None and result_of(replay) in GOOD_RESULTS)
                failures.append(FailedRun(run, next((replay for replay in good if replay.status is Status.OK), None)))
        return failures

    def _links(self, ref: RunRef) -> Sequence[tuple[Clean, str]]:
        """The links of the run under the cursor, once it is read and they are found."""
        run = self.app.store.opened(ref)
        links = self.app.links.links_of(run) if run is not None else ()
        if run is None or not links:
            return ()
        from tracetui.views.links import run_link_lines

        return run_link_lines(run, links, MAX_LINKS)

    def links_changed(self) -> None:
        self._show_facts()
        self._share_height()

    def _share_height(self) -> None:
        """Give the cause and the steps below it the rows that they need."""
        size = self.app.size
        if size.width >= layout.NARROW and self.state.zoom is None:
            cause = -(-self.cause.wanted_height // STEP) * STEP
            shares = layout.share(size.height - layout.FRAME, (self.failure.wanted_height, cause), (0.5, 0.5))
            rows = f"{shares[1]} 1fr"
            if rows != self._rows:
                self._rows = self._body.styles.grid_rows = rows

    def _compare_later(self) -> None:
        """When the cursor has come to rest, find out what the runs of the cause share that others lack."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_SECONDS, self._compare)

    def _compare(self) -> None:
        group, surveys = self.queue.group, self.app.surveys
        if self.app.screen is self and group is not None and not surveys.is_asked(group.runs):
            surveys.contrast(group.runs)

    def show_failure(self) -> None:
        """Show the steps of the run under the cursor, at its failure; if it isn't cached, once it is read."""
        ref = self.queue.run
        run = self.app.store.opened(ref) if ref is not None else None
        if ref is None:
            self.failure.show_empty()
        elif run is not None:
            before, error = self.failure.run, run.summary.first_error
            is_shown = before is not None and before.summary.ref == ref  # the cursor stays where the user put it
            span = error.span if error is not None and not is_shown else None
            self.failure.show_run(run, now=self.app.clock(), span=span)
            self.app.links.links_of(run)
            self._fold_loops()

    def _fold_loops(self) -> None:
        """Fold repeated calls of the shown run if its assessment is cached; else request it."""
        run = self.failure.run
        assessment = self.app.assessments.assessment_of(run) if run is not None else None
        if assessment is not None:
            self.failure.fold_loops(assessment)

    # ---- targets of verdicts

    @property
    def subject(self) -> Subject | None:
        item = self.queue.item
        if isinstance(item, Member):
            return self.app.store.runs.get(item.run)
        return item.task if isinstance(item, TaskRow) else item

    @property
    def subjects(self) -> Sequence[Subject]:
        marked = self._marked
        return marked or super().subjects

    @property
    def _marked(self) -> list[Group | Task]:
        """The marked causes and tasks that are still listed, in the order in which they were marked."""
        order = self.queue.order
        keys = [key for key in self.state.marked if isinstance(key, str)]
        tasks = {task.digest: task for group in order.headings for task in group.tasks} if keys else {}
        rows = [order.groups[order.places[key]] if key in order.places else tasks.get(key) for key in keys]
        return [row for row in rows if row is not None]

    @property
    def place(self) -> tuple[RunRef, str | None] | None:
        ref, span = self.queue.run, self.failure.span
        return None if ref is None else (ref, span.id if span is not None else None)

    def verdicts_changed(self, *, decided: bool) -> None:
        marked = bool(self.state.marked)
        if decided and marked:
            self.become(replace(self.state, marked=()))
        self.regroup()
        if (
            decided
            and not marked
            and (following := next_undecided(self.queue.order, self.queue.item, self.judgement_of)) is not None
        ):
            self.queue.move_to_key(following)

    @property
    def all_reviewed_note(self) -> str:
        return "" if self._review[0] < len(self.causes) else "  ·  all reviewed, x export"

    @property
    def _review(self) -> tuple[int, int]:
        """How many causes are reviewed, and how many runs they have. Reads the judged causes only."""
        grouping, sidecar = self._grouping, self.app.verdicts.sidecar
        if grouping is None:
            return 0, 0
        if self._reviewed[0] != (key := (grouping, sidecar.revision)):
            groups = grouping.groups_of(sidecar.decided_causes)
            done = [group for group in groups if is_reviewed(group, self.judgement_of)]
            self._reviewed = key, len(done), sum(len(group.runs) for group in done)
        return self._reviewed[1:]

    @property
    def ref(self) -> RunRef | None:
        return self.queue.run

    def scope(self, *, contrast: bool) -> Scope | None:
        group = self.queue.group
        return Scope(group.runs, f"{group.id}, {quantity(len(group.runs), 'run')}") if group is not None else None

    def causes_changed(self) -> None:
        if self.app.screen is self:
            self.regroup()

    def go_to(self, ref: RunRef, span: str | None) -> None:
        self.app.visit(ref, span)

    def recreate(self) -> TriageScreen:
        return TriageScreen(self.commands, self._saved_state)

    @property
    def _saved_state(self) -> TriageState:
        return TriageState(unfolded=self.state.unfolded, cursor=self.queue.cursor, arrangement=self.state.arrangement)

    def on_closed(self) -> None:
        self.app.save_triage(self._saved_state)

    # ---- the frame

    def refresh_frame(self) -> None:
        app = self.app
        roots = short_path(app.roots[0]) if app.roots else ""
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean(f"  {clean(roots, 60)} "), "sec"),
            Piece(Clean(f"{app.look.glyphs.path} "), "dim"),
            Piece(Clean("triage"), "text bold"),
        )
        self._header.show(left, (Piece(Clean(self._counts), "sec"),))
        self._sentence.show(self.status_message or self._progress())
        self.refresh_footer()

    def refresh_footer(self) -> None:
        app = self.app
        commands = app.comparisons.available_commands(self.commands, self.queue.run)
        self.show_footer(commands)

    @property
    def _counts(self) -> str:
        """How many runs failed, with the same numbers as the list."""
        grouping = self._grouping
        if grouping is None:
            return ""
        counts = f"{grouped(grouping.failed)} of {quantity(grouping.runs, 'run')} failed"
        if grouping.ungraded:
            counts += f"  {self.app.look.glyphs.ungraded} {grouped(grouping.ungraded)} ungraded"
            counts += f" ({grouped(grouping.both)} failed too)" if grouping.both else ""
        if grouping.children:
            counts += f" + {grouped(grouping.failed_children)} of {grouped(grouping.children)} child runs"
        return counts

    def _progress(self) -> Line:
        """Who failed, how many causes are new, how many are reviewed, and how much is left: the first matter most."""
        grouping = self._grouping
        if grouping is None or not grouping.groups:
            return (Piece(Clean("nothing to review"), "sec"),)
        decided, reviewed = self._review
        causes, width = len(grouping.groups), self.app.size.width
        counts = zip(grouping.failure_counts, _COUNT_STYLES, strict=True)
        facts = [Piece(Clean(label), style) for label, style in counts if label]
        if new := grouping.new_since(self.app.clock() - NEW_SECONDS):
            facts.append(Piece(Clean(f"{grouped(new)} new since yesterday"), "text bold"))
        facts.append(Piece(Clean(f"{grouped(decided)} of {quantity(causes, 'cause')} reviewed"), "text bold"))
        pieces = [piece for fact in facts for piece in (fact, _DOT)][:-1]
        if app_problems := self.app.verdicts.sidecar.problems:
            pieces.append(Piece(Clean(f"  ! {len(app_problems)} unreadable in the verdict file"), "status.warn"))
        if decided == causes:
            after = [Piece(Clean("  all reviewed  ·  "), "status.ok"), Piece(Clean("x"), "key bold")]
            after.append(Piece(Clean(" export"), "sec"))
        else:
            remaining = grouping.order.runs_before[-1] - reviewed
            after = [_DOT, Piece(Clean(f"{quantity(remaining, 'run')} to review"), "sec")]
        bar = [Piece(Clean(" ")), *amount(decided, causes, BAR, "bar.model", glyphs=self.app.look.glyphs)]
        passes = [_DOT, Piece(Clean(grouping.passes), "sec")] if grouping.passes else []
        for more in (after, passes, bar):
            if width_of((*pieces, *more)) <= width - 2:
                pieces += more
        return tuple(pieces)

    # ---- panes

    def _arrange_panes(self) -> None:
        """Lay the panes out for the zoom and the size; a narrow screen has the queue and one below it."""
        size, state = self.app.size, self.state
        narrow = size.width < layout.NARROW
        for name, view in self.views.items():
            below = FAILURE if state.pane == FAILURE else CAUSE
            view.display = name == state.zoom if state.zoom else not narrow or name in (QUEUE, below)
        self.set_class(narrow, "narrow")
        self.set_class(state.zoom is not None, "alone")
        self.call_after_refresh(self.show_cause)

    def on_resize(self, event: events.Resize) -> None:
        self._rows = ""
        self._arrange_panes()

    @on(LineView.Moved, "#queue")
    def _moved(self) -> None:
        self.queue.chosen = True
        self.show_cause()

    def action_filter(self) -> None:
        """Ask which runs to show the causes of: the filter of the run list."""
        self.ask_filter(self.app.filter_query(), self.app.run_filter().then(self.regroup))

    @on(LineView.SortRequested)
    def _sort_requested(self, message: LineView.SortRequested) -> None:
        self.become(replace(self.state, arrangement=states.toggle_sort(self.state.arrangement, message.sort)))

    @on(Queue.Folded)
    def _folded(self, message: Queue.Folded) -> None:
        self.become(triage_state.fold_rows(self.state, message.keys, open_=message.open))

    # ---- commands

    def action_arrange(self, change: str) -> None:
        """Arrange the queue; see `state.rearrange`."""
        arrangement = states.rearrange(self.state.arrangement, change, CAUSE_CHOICES)
        self.become(replace(self.state, arrangement=arrangement))

    def action_sort(self) -> None:
        """Sort the queue by the next order."""
        self.action_arrange("sort")

    def action_open(self) -> None:
        """Unfold the row under the cursor, or open the run."""
        item = self.queue.item
        if self.pane == CAUSE:
            if self.cause.example is not None:
                self.go_to(*self.cause.example)
        elif self.pane == FAILURE:
            if self.place is not None:
                self.go_to(*self.place)
        elif isinstance(item, Group):
            self._fold([item.digest], open_=item.digest not in self.state.unfolded)
        elif isinstance(item, TaskRow):
            self._fold([item.task.digest], open_=item.task.digest not in self.state.unfolded)
        elif isinstance(item, Member):
            run = self.app.store.runs.get(item.run)
            error = run.first_error if run is not None else None
            self.go_to(item.run, error.span if error is not None else None)

    def step_back(self) -> None:
        following = triage_state.go_back(self.state)
        if following is not None:
            self.become(following)
        else:
            self.leave()

    def action_leave(self) -> None:
        """Go back, like Esc."""
        self.action_back()

    def action_triage(self) -> None:
        """It is open."""

    def _fold(self, keys: Iterable[Hashable], *, open_: bool) -> None:
        self.become(triage_state.fold_rows(self.state, keys, open_=open_))

    def action_error(self, step: int) -> None:
        """Go to the next failed run of the queue, whatever is folded."""
        self._step(step, ungraded=False)

    def action_ungraded(self, step: int) -> None:
        """Go to the next ungraded run of the queue, whatever is folded."""
        self._step(step, ungraded=True)

    def _step(self, step: int, *, ungraded: bool) -> None:
        kind, style = ("ungraded", "status.warn") if ungraded else ("failed", "status.error")
        member, number = step_failed(self.queue.order, self.queue.item, step, ungraded=ungraded)
        if member is None:
            self.say(f"no more {kind} runs" if step > 0 else f"no earlier {kind} runs", "status.warn")
            return
        self._fold([member.group.digest, member.parent], open_=True)
        self.queue.move_to_key(member.run)
        runs = self.queue.order.half(ungraded=ungraded).runs_before[-1]
        self.say(f"{kind} run {number + 1} of {runs}", style)

    def action_mark_cause(self) -> None:
        """Mark the cause or task under the cursor for the next verdict or merge, or unmark it."""
        if self.queue.item is None or isinstance(self.queue.item, Member):
            self.say("mark a cause or a task, not a run", "status.warn")
            return
        self.become(triage_state.toggle_mark(self.state, self.queue.cursor))
        count = len(self.state.marked)
        if count:
            self.say(f"{count} marked  ·  v verdict  ·  = merge into the cause under the cursor  ·  Esc unmark")

    def action_diff_original(self) -> None:
        """Compare the run under the cursor, or the first run of its cause that has one, with its original or replay."""
        group, relations = self.queue.group, self.app.store.relations
        runs = [self.queue.run, *group.runs[:MAX_RUNS]] if group is not None else []
        paired = (ref for ref in runs if ref is not None and (relations.original(ref) or relations.variants(ref)))
        if (ref := next(paired, None)) is None:
            hint = "C contrasts them with passed runs  ·  Esc to the list, where Space marks two runs for d"
            self.say(f"No replay of these runs  ·  {hint}", "status.warn")
        elif problem := self.app.compare_with_original(ref):
            self.say(problem, "status.warn")

    def action_merge(self) -> None:
        """Merge the marked causes into the one under the cursor."""
        into = self.queue.group
        causes = [item for item in self._marked if isinstance(item, Group) and item is not into and not item.tasks]
        if into is None or into.tasks or not causes:
            message = "only this cause is marked" if self._marked else "Space marks causes"
            self.say(f"{message}  ·  = merges the others into the one under the cursor", "status.warn")
        elif self._write(lambda: self.app.verdicts.merge(causes, into)):
            self.become(replace(self.state, marked=()))
            self.say(f"{len(causes)} merged into {into.id}  ·  u undo  ·  | splits it again")

    def action_split(self) -> None:
        """Split the cause under the cursor by what varies, or take a merge or split back."""
        group, verdicts = self.queue.group, self.app.verdicts
        if group is None or group.tasks:
            self.say("wrong answers are split by task already" if group else "no cause under the cursor", "status.warn")
        elif group.merged or group.split_of:
            if self._write(lambda: verdicts.take_apart(group)):
                self.say(f"{group.id} {'taken apart' if group.merged else 'joined again'}  ·  u undo")
        else:
            self._ask_split(group)

    def _ask_split(self, group: Group) -> None:
        runs = self.app.store.runs
        choices = splits_of([runs[ref] for ref in group.runs if ref in runs])
        if not choices:
            self.say("Nothing to split: these errors are identical", "status.warn")
            return

        def answer(text: str) -> None:
            chosen = next((choice for choice in choices if choice.by == text.strip()), None)
            if chosen is None:
                self.say(f"no such choice: {one_line(text, 20)}", "status.warn")
            elif self._write(lambda: self.app.verdicts.split(group, chosen.by)):
                self.say(f"{group.id} split into {chosen.parts}  ·  u undo")

        offered = ", ".join(f"{choice.by} {choice.label} ({choice.parts} values)" for choice in choices[:MAX_SPLITS])
        self.ask_for(f"split {group.id} by: {offered}", choices[0].by, answer)

    def action_export(self) -> None:
        """Write the whole triage to a file."""
        self.app.exporter.export_triage(self.app.filtered_runs(), self.app.verdicts, self)

    def action_reread(self) -> None:
        """Read the directory again."""
        self.app.rescan()
        self.say("re-reading the directory")
