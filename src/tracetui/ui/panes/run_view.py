"""The panes of one run (steps, facts, detail) and their commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from textual import on
from textual.app import ComposeResult

from tracetui.analysis import navigation
from tracetui.analysis.liveness import GOING
from tracetui.analysis.navigation import next_prompt, with_answer
from tracetui.masking import one_line
from tracetui.model import Body, Operation, Problem, Run, RunRef, Span, Status
from tracetui.redact import masks
from tracetui.sources.base import LinkLost
from tracetui.text import grouped
from tracetui.ui import layout
from tracetui.ui.base_app import HostApp
from tracetui.ui.commands import Command
from tracetui.ui.panes.detail import Detail, Facts
from tracetui.ui.panes.steps import Steps, View
from tracetui.ui.services.exports import Dialog
from tracetui.ui.state import Arrival
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box, LineBar
from tracetui.ui.widgets.prompt import Prompter
from tracetui.views.detail.run import MAX_RUNS, SameFailure
from tracetui.views.detail.tabs import ASSESSMENT_TABS
from tracetui.views.labels import standing_of

if TYPE_CHECKING:
    from tracetui.analysis.audit import Finding
    from tracetui.analysis.links import StepLink
    from tracetui.ui.widgets.prompt import Filter

QUERY_LABEL: Final = "filter: words tool:… status:error dur>5s cached:true"


_NEXT_VIEW: Final[Mapping[View, str]] = {
    "turns": "timeline", "story": "timeline", "timeline": "tree", "tree": "next view",
}  # fmt: skip
"""The title of ``t``; after a tree come turns, a story or a timeline."""


class RunDialog(Dialog, Prompter, Protocol):
    """Prompt and status line of the screen."""

    def say_current(self, make: Callable[[], str]) -> None: ...
    def refresh_frame(self) -> None: ...


class SilenceStrip(LineBar):
    """Time since the last event of the open run, while it may be running."""

    app: HostApp

    def show_run(self, run: Run | None) -> None:
        """Show the strip for a run; None hides it."""
        size, glyphs = self.app.size, self.app.look.glyphs
        line = self.app.liveness.strip(run, size.width, glyphs) if run is not None else None
        if (line is not None) != self.display:
            self.display = line is not None
        if line is not None:
            self.show(*line)


class RunView(Box):
    """Shows the run of the screen's state, and handles the commands of its panes."""

    app: HostApp

    def __init__(self, dialog: RunDialog) -> None:
        super().__init__(id="side")
        self.steps, self.facts, self.detail = Steps(), Facts(), Detail()
        self.steps.liveness_of = lambda run: self.app.liveness.state_of(run)
        self._middle = Box(id="middle")
        self._dialog = dialog
        self.beside = False
        """Whether the detail is beside the steps."""
        self._heights: tuple[layout.Height, layout.Height] = ("1fr", "1fr")
        self._held: tuple[layout.Height, layout.Height] = self._heights
        """The heights that the run may keep."""
        self._wanted_detail: tuple[object, int] = None, 0
        """The most rows that the detail of the run wanted, with the run and the width that they are for."""
        self._shared_for: tuple[RunRef, int, str] | None = None
        """Run, columns and view for which steps and detail have their widths."""
        self._turn: tuple[Body, Body, Body] | None = None
        """Cache of `_with_answer`: (prompt, answer, result)."""
        self._findings: tuple[Run, Mapping[str, Finding]] | None = None
        """A run, and the first finding of the audit of each span that has any."""
        self._level: tuple[int, str | None] = 0, None
        """Level and zoom of the current heights."""

    def compose(self) -> ComposeResult:
        with self._middle:
            yield self.steps
            yield self.facts
        yield self.detail

    # ---- data

    @property
    def run(self) -> Run | None:
        """The shown run."""
        return self.steps.run

    def show_run(self, run: Run, arrival: Arrival, *, headline: bool) -> None:
        """Show the read part of a run at the target of `arrival`."""
        self.steps.headline = headline
        assessment = self.app.assessments.assessment_of(run)
        self.steps.show_run(
            run, now=self.app.clock(), span=arrival.span, uncover=arrival.uncover, assessment=assessment
        )
        self._show_assessment(run)
        if arrival.walk and (errors := navigation.errors(run)):
            self.go_to_error(errors[0 if arrival.walk > 0 else -1])
        self.facts.show_run(run, self._same_failure(run))
        if arrival.follow or (arrival.follow is False and self.app.liveness.state_of(run).state in GOING):
            self.follow(True)
        self.show_detail()

    def show_nothing(self, problem: Problem | None) -> None:
        """Show no run; `problem`: why it is unreadable."""
        self.steps.show_empty(problem)
        self.detail.show_empty()
        self.facts.show_empty()

    def show_detail(self) -> None:
        """Show the span under the cursor of the steps, and share the height; requests its body if it isn't cached."""
        self._show_span()
        self._share_height()
        self._share_width()

    def _show_span(self) -> None:
        run, span = self.steps.run, self.steps.span
        if run is None:
            self.detail.show_empty()
            return
        body = self._body(run, span) if span is not None else None
        if span is not None and body is None and self.detail.run is not None:
            return  # keep the old span until the body arrives: one repaint, no flicker
        before, is_pending = None, body is None and span is not None
        if span is not None and body is not None and (call := navigation.call_before(run, span)) is not None:
            before = self._body(run, call)
            is_pending = before is None
        if body is not None and (answer := self.steps.answer) is not None:
            reply = self._body(run, answer)
            body, is_pending = self._with_answer(body, reply), is_pending or reply is None
        if not is_pending:
            self._load_rows(run)
        self.detail.links = self._links(run, span, body)
        self.detail.show_span(run, span, body, before)

    def _links(self, run: Run, span: Span | None, body: Body | None) -> Sequence[StepLink]:
        """The links of a span of the open run, once found; of a run that didn't fail: of failures and sub-agents.

        A preview has none: it is shown before anything else is loaded.
        """
        if span is None or body is None or not self._level[0]:
            return ()
        from tracetui.analysis.links import is_refused, links_at

        wanted = run.summary.failed or span.status is Status.ERROR
        if not wanted and span.operation in navigation.CALLS:
            wanted = run.sizes[run.index[span.id]] > 1 or is_refused(span, body)
        if not wanted:
            return ()
        return links_at(self.app.links.links_of(run), span.id)

    def show_links(self) -> None:
        """Show the links that were found."""
        detail = self.detail
        if detail.run is None or detail.run is not self.steps.run:
            return
        links = self._links(detail.run, detail.span, detail.body)
        if links != detail.links:
            detail.links = links
            detail.draw_rows(keep=True)
            self._share_height()

    def _load_rows(self, run: Run) -> None:
        """Show the turns and calls on the screen with their bodies; those not cached are requested one by one."""
        while (span := self.steps.missing_body) is not None and (body := self._body(run, span)) is not None:
            self.steps.add_body(span, body)

    def _body(self, run: Run, span: Span) -> Body | None:
        """The body of a span; requested if it isn't cached."""
        body = self.app.store.body(run.summary.ref, span)
        if body is None:
            self.app.engine.load_body(run, span)
        return body

    def _with_answer(self, prompt: Body, answer: Body | None) -> Body:
        """The body of a prompt with the answer of its turn, once that is read; the same object for the same bodies."""
        if answer is None:
            return prompt
        if self._turn is None or self._turn[0] is not prompt or self._turn[1] is not answer:
            self._turn = prompt, answer, with_answer(prompt, answer)
        return self._turn[2]

    @property
    def shown_spans(self) -> list[Span]:
        """The spans with bodies: the one under the cursor, the answer of its turn, the call before it, a row."""
        run, span = self.steps.run, self.steps.span
        before = navigation.call_before(run, span) if run is not None and span is not None else None
        spans = (span, self.steps.answer, before, self.steps.missing_body)
        return [span for span in spans if span is not None]

    @property
    def settled(self) -> bool:
        """Whether the span under the cursor is shown, and the assessment if it is due."""
        run, span, detail_span = self.steps.run, self.steps.span, self.detail.span
        if span is not None and (detail_span is None or detail_span.id != span.id or self.detail.body is None):
            return False
        if self.steps.missing_body is not None:
            return False
        assessment = self.facts.assessment
        if not self.facts.settled or self.app.links.is_busy:
            return False
        return run is None or not run.complete or (assessment is not None and assessment.run is run)

    def show_assessment(self) -> None:
        """Show the new assessment of the run."""
        run = self.steps.run
        if run is not None:
            self._show_assessment(run)
            self.facts.show_run(run, self._same_failure(run))
            if self.detail.run is run and self.detail.tab in ASSESSMENT_TABS:
                self.detail.draw_rows(keep=True)
            self._share_height()

    def _show_assessment(self, run: Run) -> None:
        assessment = self.app.assessments.assessment_of(run)
        if assessment is not None:
            self.steps.fold_loops(assessment)
        self.facts.assessment = self.detail.assessment = assessment

    def _same_failure(self, run: Run) -> SameFailure | None:
        """The cause of a failed run, and the newest runs of it."""
        group = self.app.causes.group_of(run.summary.ref) if run.summary.failed else None
        if group is None:
            return None
        summaries = self.app.store.runs
        return SameFailure(group, [summaries[ref] for ref in group.runs[:MAX_RUNS] if ref in summaries])

    def show_causes(self) -> None:
        """Show the new cause of the run."""
        if self.steps.run is not None:
            self.facts.show_run(self.steps.run, self._same_failure(self.steps.run))

    def hold_heights(self, on: bool) -> None:
        """Let the run to be previewed keep the heights of the run before it, or not."""
        self._held = self._heights if on else ("1fr", "1fr")

    def lay_out(self, level: int, zoom: str | None) -> None:
        """Set level and zoom, and the heights for them."""
        self._level = level, zoom
        self.show_links()
        self._share_height()

    def on_resize(self) -> None:
        self._share_height()
        self._share_width()

    @on(Steps.ViewChanged)
    def _steps_view_changed(self) -> None:
        self._share_height()
        if self.steps.run is not None:
            self._load_rows(self.steps.run)

    def _share_height(self) -> None:
        """Give the steps the rows that the run needs."""
        columns, rows = self.app.size.width, self.outer_size.height or self.app.size.height - layout.FRAME
        level, zoom = self._level
        self.beside = zoom is None and layout.is_beside(columns, level, turns=self.steps.shown_as == "turns")
        self.set_class(self.beside, "beside")
        columns = layout.WIDE if self.beside else columns
        wanted, below = self.steps.wanted_height, self._wanted_below(columns)
        shares = layout.heights(columns, rows, level, zoom, wanted, below, self._held[columns >= layout.WIDE])
        if shares != self._heights:
            self._heights = shares
            self._middle.styles.height, self.steps.styles.height = shares

    def _share_width(self) -> None:
        """Of three panes side by side, give steps and detail the columns that they need.

        That depends on the run and the detail that it opens with: the line between them stays while the cursor moves.
        """
        columns, run, detail = self.outer_size.width, self.steps.run, self.detail
        if not self.beside:
            detail.styles.width = "1fr"
            self._shared_for = None
            return
        ready = detail.run is run and (detail.span is None or detail.body is not None)
        key = (run.summary.ref, columns, self.steps.shown_as) if run is not None else None
        if not ready or not columns or key == self._shared_for:
            return
        self._shared_for = key
        wrapped = self.steps.shown_as == "turns"
        steps = columns * 55 // 100 if wrapped else self.steps.wanted_width(range(columns * 4 // 10, columns, 8))
        detail.styles.width = layout.detail_width(columns, steps, detail.used_width)

    def _wanted_below(self, columns: int) -> layout.Below | None:
        """Rows of the pane below the steps; of the detail, the most that a step of the run wanted so far.

        So the line between them moves seldom, and never back and forth.
        """
        run = self.steps.run
        if columns >= layout.WIDE:
            return layout.Below(self.facts.wanted_height, self.facts.least_height)
        if run is None or self.detail.run is not run:
            return None
        ref = run.summary.ref, self.detail.drawn_width
        before = self._wanted_detail[1] if self._wanted_detail[0] == ref else 0
        self._wanted_detail = ref, max(before, self.detail.wanted_height)
        return layout.Below(self._wanted_detail[1], self._wanted_detail[1])

    # ---- following

    def follow(self, on: bool) -> None:
        """Start or stop following the newest step."""
        if self.steps.run is None:
            return
        if on:
            self.steps.attach()
            self.show_detail()
        else:
            self.steps.detach()

    @on(Steps.FollowChanged)
    def _follow_changed(self) -> None:
        self.app.engine.follow(self.steps.following)

    @on(LineView.Moved, "#steps")
    def _span_moved(self) -> None:
        if self.steps.following and not self.steps.at_newest:
            self.follow(False)
        self.steps.mark_seen(self.steps.position)
        self.show_detail()

    @on(LineView.Moved, "#detail")
    def _detail_moved(self) -> None:
        """Stop following: the user reads this detail."""
        if self.steps.following:
            self.follow(False)

    def with_current_labels(self, commands: Sequence[Command]) -> Sequence[Command]:
        """The commands, with the titles of F and t for the current follow state and view."""
        word = "stop following" if self.steps.following else "follow again" if self.steps.detached else ""
        follow = {"follow": {"title": word, "hint": 2}} if word else {}
        view = {"tree": {"title": _NEXT_VIEW[self.steps.shown_as]}}
        changes: dict[str, dict[str, Any]] = {**follow, **view}
        return [command._replace(**changes[command.id]) if command.id in changes else command for command in commands]

    # ---- commands

    def action_filter(self) -> None:
        """Prompt for a filter of the steps."""
        from tracetui.ui.widgets.prompt import QueryQuestion

        self._dialog.ask(QueryQuestion(QUERY_LABEL, self.steps.filter_text, self.filter(), self._dialog.hint))

    def action_explain(self) -> None:
        """Explain why the run counts as running, quiet or stalled."""

        def explain() -> str:
            if self.steps.run is None:
                return "no open run"
            liveness = self.app.liveness.state_of(self.steps.run)
            status = standing_of(self.steps.run.summary, liveness.state, self.app.clock())
            return f"{status.short_label if status.by_last_event else liveness.state}: {liveness.reason}"

        self._dialog.say_current(explain)

    def filter(self) -> Filter:
        """The filter of the steps."""
        from tracetui.store import query
        from tracetui.ui.widgets.prompt import Filter

        steps = self.steps

        def apply(text: str) -> None:
            steps.filter(text, self.app.clock())
            self.show_detail()

        def offers(text: str, cursor: int) -> Sequence[query.Completion]:
            masked, spans = self.app.masked_facts, () if steps.run is None else steps.run.spans
            return query.complete(text, cursor, query.SPAN_KEYS, spans if masked is None else map(masked.span, spans))

        return Filter(
            apply,
            lambda text: query.parse_span_prefix(text)[1],
            offers,
            lambda: (steps.span_count, len(steps.run.spans) if steps.run else 0, "spans"),
        )

    def go_to_error(self, span: str) -> None:
        """Go to an error of the run, and show its number, ``e 3/17``, and the cause if it made the run fail."""
        run = self.steps.run
        if run is None:
            return
        self.steps.unfold_to(span, self.app.clock())
        self.steps.move_to_key(span)
        here, errors = run.span(span), navigation.errors(run)
        if here is not None and here.id in errors:
            cause = f"  {here.error.text}" if here.error is not None else ""
            first, group = run.summary.first_error, self.app.causes.group_of(run.summary.ref)
            if group is not None and first is not None and first.span == here.id:
                cause = f"  {group.id} {grouped(len(group.runs))}×{cause}"
            self._dialog.say(f"e {errors.index(here.id) + 1}/{len(errors)}{cause}", "status.error")

    def action_fold_all(self, open_: bool) -> None:
        """Unfold or fold all loops of a timeline; else all spans of the tree."""
        steps = self.steps
        if steps.toggle_loops(open_=open_):
            return
        if open_:
            steps.set_folded(frozenset(), self.app.clock())
        elif steps.run is not None:
            self._need_tree()
            steps.set_folded(navigation.fold_all(steps.run), self.app.clock())
        self.show_detail()

    def action_fold_to(self, depth: int) -> None:
        """Show this many levels of the tree."""
        if self.steps.run is not None:
            self._need_tree()
            self.steps.set_folded(navigation.fold_to_depth(self.steps.run, depth - 1), self.app.clock())
            self.show_detail()

    def action_tree(self) -> None:
        """Show the next view: story, timeline, tree."""
        self.steps.next_view(self.app.clock())
        self._view_changed()

    def _view_changed(self) -> None:
        if self.steps.run is not None:
            self._show_assessment(self.steps.run)
        self.show_detail()
        self._dialog.refresh_frame()  # the footer names the next view

    def _need_tree(self) -> None:
        """Switch to the tree, which folding applies to."""
        if not self.steps.as_tree:
            self.steps.prefer("tree", self.app.clock())
            self._view_changed()

    def action_sort(self) -> None:
        """Toggle sorting the timeline by duration or time."""
        if self.steps.as_tree:
            self.steps.prefer("timeline", self.app.clock())
            self._view_changed()
        longest_first = self.steps.sort(self.app.clock(), longest_first=not self.steps.longest_first)
        self._dialog.say("sorted by duration  ·  , restores order" if longest_first else "in order")

    def action_prompt(self, step: int) -> None:
        """Go to the next prompt of the user, or the one before."""
        run, span = self.steps.run, self.steps.span
        prompt = next_prompt(run, span.id, step) if run is not None and span is not None else None
        if prompt is None or not self.steps.move_to_key(prompt):
            self._dialog.say("no more prompts in this direction")

    def action_finding(self, step: int) -> None:
        """Go to the next finding of the audit, or the one before; reads the run first."""
        run, span = self.steps.run, self.steps.span
        if run is None or span is None:
            return
        if self._findings is None or self._findings[0] is not run:
            self._dialog.say("looking for findings …")
            self.app.engine.run_in_background(lambda: self._find(run, step))
            return
        findings = {key: finding for key, finding in self._findings[1].items() if not self.app.verdicts.allows(finding)}
        place = navigation.next_of(run, span.id, findings, step)
        if place is None or not self.steps.move_to_key(place):
            self._dialog.say(
                f"no {'more' if step > 0 else 'earlier'} findings  ·  {grouped(len(findings))} in this run"
            )
            return
        finding = findings[place]
        self._dialog.say(f"{finding.rule.name} ({finding.outcome}): {one_line(finding.what, 100)}")

    def _find(self, run: Run, step: int) -> Callable[[], None]:
        """Find the findings of a run, then go to one. Not for the event loop."""
        from tracetui.analysis.audit import findings_of
        from tracetui.analysis.effects import run_effects

        ref = run.summary.ref
        try:
            findings = [*findings_of(ref, run_effects(self.app.engine.read(ref)))]
        except LinkLost as lost:
            message = str(lost)
            return lambda: self._dialog.say(message, "status.warn")
        first = {
            finding.span: finding
            for finding in reversed(findings)
            if finding.span is not None and not finding.is_folded
        }

        def show() -> None:
            if self.steps.run is run:
                self._findings = run, first
                self.action_finding(step)

        return show

    def action_same(self, what: Literal["tool", "sibling", "model"], step: int) -> None:
        """Go to the next span of the same tool, of the same parent, or to the next model call."""
        run, span = self.steps.run, self.steps.span
        span_id = navigation.next_similar(run, span.id, what, step) if run is not None and span is not None else None
        if span_id is None or not self.steps.move_to_key(span_id):
            self._dialog.say(f"no {'other' if what == 'sibling' else 'more'} {what} in this direction")

    def action_tab(self, step: int) -> None:
        """Show the next tab of the detail, or the one before."""
        self.detail.step_tab(step)

    def action_wrap(self) -> None:
        """Toggle line wrapping of the detail."""
        self.detail.toggle_wrap()

    def action_raw(self) -> None:
        """Show the source text."""
        if not self.detail.choose("raw"):
            self._dialog.say("no source text for this span")

    def action_reveal(self) -> None:
        """Reveal the masked value under the cursor, or mask it again."""
        detail = self.detail
        if detail.revealed is not None:
            detail.hide()
            self._dialog.say("masked again")
        elif not detail.has_focus:
            self._dialog.say("R reveals a masked value: go to its row in the detail pane (3)", "status.warn")
        elif detail.run is not None and detail.span is not None and detail.body is not None:
            self.app.engine.load_body(detail.run, detail.span, unmasked=True)

    def show_exact(self, ref: RunRef, span: Span, exact: Body) -> None:
        """Unmask the value under the cursor from `exact`, the unmasked body of that span."""
        detail = self.detail
        if detail.reveal_value(ref, span, exact) is False:
            row = detail.rows.index(detail.cursor) if detail.cursor is not None else None
            message = "no masked value in this row"
            if row is not None and next(masks(detail.rows.plain(row)), None) is not None:
                message = "R reveals one value: go to its own row, usually in the tab input or output"
            self._dialog.say(message, "status.warn")

    def action_editor(self) -> None:
        """Open a cleaned copy of the detail's tab in $EDITOR."""
        rows = self.detail.rows
        self.app.edit("\n".join(rows.plain(i) for i in range(len(rows))))

    def action_take(self, form: str) -> None:
        """Copy the step as code."""
        if self.steps.run is None or self.steps.span is None:
            self._dialog.say("no step to copy", "status.warn")
        else:
            self.app.exporter.copy_step(self.steps.run.summary.ref, self.steps.span.id, form, self._dialog)

    def action_context(self) -> None:
        """Compare the input of the model call under the cursor with that of the previous call."""
        run, span = self.steps.run, self.steps.span
        if run is None or span is None or span.operation is not Operation.CHAT:
            self._dialog.say("c works on model calls only  ·  ]m jumps to the next", "status.warn")
        elif reason := self.app.compare_inputs(run, span.id):
            self._dialog.say(reason, "status.warn")

    def jump_target(self, view: LineView) -> tuple[str | None, str | None]:
        """Ids of the span and the run (raw) that the row under the cursor refers to."""
        return (view.target, view.target_run) if isinstance(view, Facts | Detail) else (None, None)

    def shows(self, ref: RunRef | None) -> bool:
        """Whether the detail shows a span of this run."""
        return self.detail.run is not None and self.detail.run.summary.ref == ref
