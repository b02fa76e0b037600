"""The triage: what made the runs fail, one row a cause, worst first; each is judged, and the next one comes."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.timer import Timer

from tracetui.live.mail import Mail
from tracetui.model import RunRef
from tracetui.store.judgement import Judgement
from tracetui.store.triage import Group, groups
from tracetui.text import Clean, grouped
from tracetui.ui import layout
from tracetui.ui.actions.triage import TriageActions
from tracetui.ui.commands import CAUSE, FAILURE, QUEUE, Command
from tracetui.ui.controllers.judging import Judging, JudgingScreen, Subject
from tracetui.ui.panes.triage import Cause, Failure, Queue
from tracetui.ui.widgets.frame import footer, short_path
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.bars import amount
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, Piece
from tracetui.views.triage import Member

BAR: Final = 24
REST_SECONDS: Final = 0.15
"""How long the cursor rests on a signature before its runs are read to be compared with others."""
REGROUP_SECONDS: Final = 0.5
"""While runs arrive, the queue changes no oftener."""


class TriageScreen(JudgingScreen):
    """Queue, cause, and the steps up to the failure of the run under the cursor."""

    AUTO_FOCUS = ""

    def __init__(self, commands: Sequence[Command], before: TriageScreen | None = None) -> None:
        """Begin where `before` was left."""
        self.queue, self.cause, self.failure = Queue(), Cause(), Failure()
        super().__init__(commands, {QUEUE: self.queue, CAUSE: self.cause, FAILURE: self.failure})
        self.commands = commands
        self.actions, self.judging = TriageActions(self), Judging(self)
        self.front = QUEUE
        self._grouped = -1
        self._total = self._started = 0
        self._group_after = 0.0
        self._cursor: Hashable = None
        self._rest: Timer | None = None
        if before is not None:
            self.queue.unfolded, self._cursor = before.queue.unfolded, before.queue.cursor

    @property
    def doers(self) -> tuple[object, ...]:
        return self.actions, self.judging

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        with Box(id="triage"):
            yield self.queue
            yield self.cause
            yield self.failure
        yield self._footer

    def on_mount(self) -> None:
        self.regroup()
        self.queue.move_to_key(self._cursor)
        self.focus_pane(QUEUE)
        self.call_after_refresh(self.show_cause)

    def on_screen_resume(self) -> None:
        self.regroup()

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
        elif self.queue.run in mail.assessments:
            self._fold_loops()
        if mail.survey is not None:
            self.show_cause()

    def regroup(self) -> None:
        """Group the failures as they are known now."""
        app = self.app
        self._grouped = app.store.revision
        runs, words = app.main.filtering.found(), app.main.runs.arrangement.words
        self._total, self._started = len(runs), sum(run.parent is not None for run in runs)
        found = groups(runs)
        if found:
            self.queue.show_groups(found, app.store.runs, self.told, now=app.clock(), words=words)
        else:
            here = f"No run that {one_line(words, 60)!r} finds failed." if words else "No run failed here."
            self.queue.nothing([(), (Piece(Clean(here), "text bold"),)])
        self.show_cause()

    def told(self, what: Group | RunRef) -> Judgement:
        verdicts = self.app.verdicts
        if isinstance(what, Group):
            return verdicts.of(what)
        run = self.app.store.runs.get(what)
        return verdicts.of(run) if run is not None else Judgement()

    @staticmethod
    def of_runs(group: Group) -> str:
        """How many runs a signature has, in words."""
        return f"{grouped(len(group.runs))} run{'s' if len(group.runs) != 1 else ''}"

    def show_cause(self) -> None:
        """Show what is known of what is under the cursor."""
        group, ref = self.queue.group, self.queue.run
        if group is None or ref is None:
            self.cause.nothing()
            self.failure.nothing()
        else:
            example, surveying = self.app.store.runs.get(ref), self.app.main.surveying
            shared, going_on = surveying.contrasts.get(group.runs), surveying.comparing(group.runs)
            self.cause.show_cause(group, example, self.told(group), shared, going_on, now=self.app.clock())
            if not surveying.is_asked(group.runs):
                self._compare_later()
            self.app.engine.open(ref)
            self.show_failure()
        self.refresh_frame()

    def _compare_later(self) -> None:
        """When the cursor has come to rest, find out what the runs of the signature share that others lack."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_SECONDS, self._compare)

    def _compare(self) -> None:
        group, surveying = self.queue.group, self.app.main.surveying
        if self.app.screen is self and group is not None and not surveying.is_asked(group.runs):
            surveying.contrast(group.runs)

    def show_failure(self) -> None:
        """Show the steps of the run under the cursor, at first its failure; now if it is kept, else when it is read."""
        ref = self.queue.run
        run = self.app.store.opened(ref) if ref is not None else None
        if run is not None:
            before, error = self.failure.run, run.summary.first_error
            there = before is not None and before.summary.ref == ref  # the cursor stays where somebody put it
            span = error.span if error is not None and not there else None
            self.failure.show_run(run, now=self.app.clock(), span=span)
            self._fold_loops()

    def _fold_loops(self) -> None:
        """Fold repeated calls of the run that is shown, as far as they are known; else ask for them."""
        run = self.failure.run
        known = self.app.main.assessing.of(run) if run is not None else None
        if known is not None:
            self.failure.fold_loops(known)

    # ---- what is judged

    @property
    def subject(self) -> Subject | None:
        item = self.queue.item
        return self.app.store.runs.get(item.run) if isinstance(item, Member) else item

    @property
    def place(self) -> tuple[RunRef, str | None] | None:
        ref, span = self.queue.run, self.failure.span
        return None if ref is None else (ref, span.id if span is not None else None)

    def judged(self, *, decided: bool) -> None:
        self.regroup()
        if decided:
            self.actions.go_to_undecided()

    @property
    def ended(self) -> str:
        left = any(self.told(group).verdict is None for group in self.queue.groups)
        return "" if left else "  ·  all decided, x writes it down"

    def go_to(self, ref: RunRef, span: str | None) -> None:
        self.app.main.visit(ref, span)

    def again(self) -> TriageScreen:
        return TriageScreen(self.commands, self)

    def left(self) -> None:
        self.app.main.judging.left = self
        self.app.main.refresh_list()

    # ---- the frame

    def refresh_frame(self) -> None:
        app, width = self.app, self.app.size.width
        roots = short_path(app.roots[0]) if app.roots else ""
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean(f"  {clean(roots, 60)} "), "sec"),
            Piece(Clean(f"{app.look.glyphs.path} "), "dim"),
            Piece(Clean("triage"), "text bold"),
        )
        failed = sum(len(group.runs) for group in self.queue.groups)  # whoever started them
        told = f"{grouped(failed)} failed of {grouped(self._total)} runs"
        told += f" ({grouped(self._started)} started by others)" if self._started else ""
        right = (Piece(Clean(told), "sec"),)
        self._header.show(left, right)
        self._sentence.show(self.said or self._progress())
        commands = app.main.comparing.offered(self.commands, self.queue.run)
        self.show_footer(*footer(commands, self.pane, width, 1, False))

    def _progress(self) -> Line:
        found = self.queue.groups
        if not found:
            return (Piece(Clean("nothing to judge"), "sec"),)
        left = [group for group in found if self.told(group).verdict is None]
        decided = len(found) - len(left)
        pieces = [
            Piece(Clean(f"{grouped(decided)} of {grouped(len(found))} decided "), "text bold"),
            *amount(decided, len(found), BAR, "bar.model", glyphs=self.app.look.glyphs),
        ]
        if left:
            runs = sum(len(group.runs) for group in left)
            words = f"  left: {grouped(runs)} run{'s' if runs != 1 else ''} in {grouped(len(left))}"
            pieces.append(Piece(Clean(f"{words} signature{'s' if len(left) != 1 else ''}"), "sec"))
        else:
            pieces += [Piece(Clean("  all decided  ·  "), "status.ok"), Piece(Clean("x"), "key bold")]
            pieces.append(Piece(Clean(" writes it down"), "sec"))
        if app_problems := self.app.verdicts.sidecar.problems:
            pieces.append(Piece(Clean(f"  ! {len(app_problems)} unreadable in the file of verdicts"), "status.warn"))
        return tuple(pieces)

    # ---- panes

    def focus_pane(self, name: str) -> None:
        """Focus a pane, and bring it on the screen if it is not."""
        self.front = name
        self.zoomed = name if self.zoomed is not None else None
        self.arrange_panes()
        self.views[name].focus()

    def arrange_panes(self) -> None:
        """Lay the panes out for the zoom and the size; a narrow screen has the queue and one below it."""
        size = self.app.size
        narrow = size.width < layout.NARROW
        for name, view in self.views.items():
            below = FAILURE if self.front == FAILURE else CAUSE
            view.display = name == self.zoomed if self.zoomed else not narrow or name in (QUEUE, below)
        self.set_class(narrow, "narrow")
        self.set_class(self.zoomed is not None, "alone")
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        self.show_cause()

    def on_resize(self, event: events.Resize) -> None:
        self.arrange_panes()

    def on_descendant_focus(self) -> None:
        if self.focused in self.views.values():
            self.front = self.pane
        self.refresh_frame()

    @on(LineView.Moved, "#queue")
    def _moved(self) -> None:
        self.queue.chosen = True
        self.show_cause()

    def found(self, view: LineView) -> None:
        self.actions.go_to_hit(view, 1, include_here=True)
