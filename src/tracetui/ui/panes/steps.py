"""Pane 2: the spans of a run, as turns, a story, a timeline or a tree with a shared cursor."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from textual.message import Message

from tracetui.analysis import navigation
from tracetui.analysis.effects.actions import Action, action_of
from tracetui.analysis.liveness import GOING, Liveness, State
from tracetui.analysis.navigation import is_prompt, is_session
from tracetui.model import Body, Problem, Run, Span, Status
from tracetui.text import Clean, grouped, quantity
from tracetui.ui import layout
from tracetui.ui.base_app import HostApp
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.glyphs import status_glyph
from tracetui.views.goal import TurnRows, first_turn, has_turns
from tracetui.views.labels import broken, filter_badge, short_id
from tracetui.views.rows import Fold, Line, ListRows, Piece, Rows
from tracetui.views.timeline import header, spans
from tracetui.views.timeline.chart import Keep
from tracetui.views.timeline.story import StoryRows, initially_open

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment


View = Literal["turns", "story", "timeline", "tree"]
"""How the spans of a run are shown, in the order of the command ``tree``."""
SpanView = spans.SpanRows | StoryRows | TurnRows


class Steps(LineView):
    """The spans of the open or previewed run."""

    app: HostApp
    number = 2
    pane_name = "Steps"

    class FollowChanged(Message):
        """Following started or stopped."""

    class EndReached(Message):
        """The user went to the last row."""

        def __init__(self, position: int) -> None:
            self.position = position
            super().__init__()

    class ViewChanged(Message):
        """The pane has another size, or the wheel scrolled it: other rows are in view."""

    names: Mapping[View, str] = {"turns": "Turns", "story": "Story", "timeline": "Steps", "tree": "Spans"}
    """Names of the pane by view."""
    has_story = True
    """Whether conversations with a goal open as turns, and sessions of coding agents as a story."""

    def __init__(self, id: str = "steps") -> None:
        super().__init__(id=id)
        self.run: Run | None = None
        self.liveness_of: Callable[[Run], Liveness] | None = None
        """Computes the liveness of a run without an end record."""
        self._state = State.ENDED
        self._current: tuple[Run, bool, Run] | None = None
        """Cache of `_current_run`: (run, whether it is going, result)."""
        self.assessment: Assessment | None = None
        self.shown_as: View = "timeline"
        self.preferred: View | None = None
        """View chosen by the user, for the runs that have it; None: the one that suits the run."""
        self._temporary_tree = False
        """Whether the tree shows a span without a timeline row, until another run is shown."""
        self.opened: frozenset[str] = frozenset()
        """Ids of the unfolded rows of the story."""
        self.bodies: dict[str, Body] = {}
        """Bodies of the turns, as far as they are loaded."""
        self.actions: dict[str, tuple[Span, Action]] = {}
        """The calls of the story whose bodies were read."""
        self.headline = True
        """Whether to show the outcome of the run above the steps."""
        self.folded: frozenset[str] = frozenset()
        self.unfolded: frozenset[str] = frozenset()
        """Ids of the first calls of the unfolded loops of the timeline."""
        self.filter_text, self.longest_first = "", False
        """Filter query (docs/query.md), and whether rows are sorted by duration."""
        self._predicate: Keep | None = None
        self.following = False
        """Whether the cursor follows the newest step."""
        self._newest: str | None = None
        """Id of the span that arrived last; with parallel agents, not always that of the last row."""
        self._unseen: int | None = None
        """Unseen rows since following stopped; None if it never started."""

    # ---- following

    def attach(self) -> None:
        """Go to the newest step and follow."""
        self._set_following(True, None)
        self.move_to_key(self._newest)
        self._update_title()

    def detach(self) -> None:
        """Stop following, and count new steps."""
        self._set_following(False, 0)
        self._update_title()

    def _set_following(self, on: bool, came: int | None) -> None:
        if on != self.following:
            self.post_message(self.FollowChanged())
        self.following, self._unseen = on, came

    @property
    def detached(self) -> bool:
        """Whether following stopped because the user moved away."""
        return self._unseen is not None

    @property
    def at_newest(self) -> bool:
        """Whether the cursor is on the newest step, or the fold that contains it."""
        return self.position == self.rows.index(self._newest)

    def mark_seen(self, position: int) -> None:
        """Mark the rows up to `position` as seen."""
        below = _count(self.rows) - 1 - position
        if self._unseen is not None and below < self._unseen:
            self._unseen = max(0, below)
            self._update_title()

    def move_to(self, position: int, *, center: bool = False) -> None:
        super().move_to(position, center=center)
        if self.following and not self.at_newest:  # now: a step that arrives meanwhile must not move the cursor back
            self.detach()

    def action_page(self, pages: float) -> None:
        super().action_page(pages)
        if self.following and not self.at_newest:
            self.detach()

    def action_edge(self, end: bool) -> None:
        super().action_edge(end)
        if end and self.run is not None:
            self.post_message(self.EndReached(self.position))

    def _clamp(self, prefer_down: bool = True) -> None:
        """Clamp as usual; with the last step, also show the outcome row; while following, show the last rows."""
        super()._clamp(prefer_down)
        if isinstance(self.rows, spans.SpanRows) and self.rows.follow_cursor(self.position):
            self.redraw_rows()
        if self.following and not self._cursor_off_screen:
            self.top = max(0, min(self.position, len(self.rows) - self.page))
            return
        last = len(self.rows) - 1
        if isinstance(self.rows, TurnRows) and len(self.rows) and not self._cursor_off_screen:
            self.top = max(self.top, min(self.position, self.rows.block(self.position).stop - self.page))
        if 0 < last == self.position + 1 and self.outer_size.height and self.page > 1 and not self._cursor_off_screen:
            self.top = max(self.top, last + 1 - self.page)

    def on_resize(self) -> None:
        super().on_resize()
        if isinstance(self.rows, TurnRows):
            rows = self._turn_rows(self.rows.run)
            self.show(rows)
            if len(rows) and rows.block(self.position).stop <= self.page:
                self.top = 0
        self.post_message(self.ViewChanged())

    def _wheel(self, rows: int) -> None:
        super()._wheel(rows)
        self.post_message(self.ViewChanged())
        if self.following and self.top + self.page < len(self.rows):
            self.detach()
        elif rows > 0:
            self.mark_seen(self.top + self.page - 1)

    def tick(self, now: float, *, aged: bool = False) -> None:
        """Redraw the durations of open spans; if `aged`, also the age of the run."""
        rows = self.rows
        if not isinstance(rows, SpanView) or self.run is None:
            return
        before, self._state = self._state, self._state_of(self.run)
        if aged or self._state is not before or self._has_open_span(rows):
            self.show(
                rows.with_run(self._current_run(self.run), now=now), heading=self._heading_of(self.run, rows, now)
            )

    def _has_open_span(self, rows: SpanView) -> bool:
        """Whether an open span is visible; each turn of a story may contain one."""
        if isinstance(rows, StoryRows | TurnRows):
            return self._state in GOING
        return any(
            (span := rows.span(index)) is not None and span.status is Status.RUNNING and span.started_at is not None
            for index in range(self.top, min(len(rows), self.top + self.page))
        )

    def _state_of(self, run: Run) -> State:
        return self.liveness_of(run).state if self.liveness_of is not None else State.ENDED

    def _current_run(self, run: Run) -> Run:
        """The run with the current status of its open spans; its own dates from when it was read."""
        if self._state is State.ENDED:
            return run
        if self._current is None or self._current[:2] != (run, self._state in GOING):
            self._current = run, self._state in GOING, run.standing(going=self._state in GOING)
        return self._current[2]

    def _update_title(self) -> None:
        if self.run is not None:
            self.title = self._title(self.run, self.rows)
            self.redraw_title()

    def _position(self) -> Sequence[Piece]:
        """Number of unseen steps below; without any, the scroll position."""
        if not self._unseen:
            return super()._position()
        sign = self.look.glyphs.unfolded
        return (
            Piece(Clean(f"{grouped(self._unseen)} new below {sign} "), "status.running bold"),
            Piece(Clean("G" if self.has_focus else "F"), "key bold"),
            Piece(Clean(" follows again"), "sec"),
        )

    # ---- data

    def show_run(
        self,
        run: Run,
        *,
        now: float,
        span: str | None = None,
        uncover: bool = False,
        assessment: Assessment | None = None,
    ) -> None:
        """Show a run, or a newer state of it; the cursor goes to `span`, else stays, else goes to the starting span.

        `uncover` shows the row of a hidden span; without it, the cursor goes to the row that contains it. With an
        `assessment`, loops are folded as by `fold_loops`.
        """
        same_run = self.run is not None and self.run.summary.ref == run.summary.ref
        if not same_run:
            self._temporary_tree = False
            self.folded, self.unfolded = navigation.initial_folds(run), frozenset()
            self.filter_text, self.longest_first, self._predicate = "", False, None
            self._set_following(False, None)
            self._newest, self.bodies, self.actions = None, {}, {}
        before, self.run = self.run if same_run else None, run
        if before is None or not before.complete:
            self._choose_view(run)
        if before is not None and not before.complete:
            self.folded |= navigation.initial_folds(run)
        self._state = self._state_of(run)
        self._newest = _find_newest(before, run) or self._newest
        if self._newest not in run.index:  # the run was restarted, and is shorter now
            self._newest = run.spans[-1].id if run.spans else None
        rows = self._rows_of(run, now)
        if assessment is not None:
            self.assessment, rows = assessment, self._with_loops(rows, assessment)
        if self._unseen is not None and before is not run:
            self._unseen = max(0, self._unseen + _count(rows) - _count(self.rows))
        key: Hashable = span or (None if same_run and self.cursor is not None else navigation.starting_span(run))
        if self.shown_as == "turns" and key is not None and key != span:
            key = first_turn(run)
        if self.following and span is None:
            key = self._newest
        if not isinstance(rows, StoryRows) or self.following or run.summary.status in _UNFOLDED:
            rows = rows.reveal(key)
        if uncover and span is not None and span in run.index:
            rows = self._ensure_row(span, rows, now)
        rows = self._save_folds(rows)
        self.pane_name = self.names[self.shown_as]
        self.show(
            rows,
            key=key,
            title=self._title(run, rows),
            heading=self._heading_of(run, rows, now),
            keep=same_run,
        )

    def _choose_view(self, run: Run) -> None:
        """Show a new run in the view chosen by the user, else in the view that suits it."""
        if self._temporary_tree:
            return
        story = self.has_story
        views: list[View] = ["turns"] if story and has_turns(run) else ["story"] if story and is_session(run) else []
        views += ["timeline", "tree"]
        self.shown_as = self.preferred if self.preferred in views else views[0]
        size = self.app.size
        room = layout.most_steps(size.width, size.height - layout.FRAME) - 1 - len(self.heading)
        self.opened = initially_open(run, room) if self.shown_as == "story" else frozenset()

    @property
    def as_tree(self) -> bool:
        """Whether the spans are shown as a tree."""
        return self.shown_as == "tree"

    def _rows_of(self, run: Run, now: float) -> SpanView:
        """The rows of a run; reuses the measurements of the shown rows of the same run."""
        current_rows, run = self.rows, self._current_run(run)
        if self.shown_as == "turns":
            return self._turn_rows(run)
        if self.shown_as == "story":
            if isinstance(current_rows, StoryRows) and current_rows.run.summary.ref == run.summary.ref:
                newer = current_rows if current_rows.run is run else current_rows.with_run(run, now=now)
                return newer if newer.opened == self.opened else newer.refold(self.opened)
            return StoryRows(run, opened=self.opened, glyphs=self.look.glyphs, now=now, actions=self.actions)
        return self._span_rows(run, now)

    def _turn_rows(self, run: Run) -> TurnRows:
        """The rows of the turns, for the size of the pane."""
        width = max(20, self.outer_size.width - 2)
        return TurnRows(run, self.bodies, width=width, height=self._room, glyphs=self.look.glyphs)

    @property
    def _room(self) -> int:
        """Rows of the pane below its title and headings."""
        return max(1, self.outer_size.height - 1 - len(self.heading))

    @property
    def missing_body(self) -> Span | None:
        """A turn or a call of a story on the screen whose body isn't loaded yet."""
        rows, run = self.rows, self.run
        visible = range(self.top, min(len(rows), self.top + self.page))
        if isinstance(rows, TurnRows):
            turns = (rows.turns[number] for number in dict.fromkeys(map(rows.turn, visible)))
            return next((turn for turn in turns if turn.id not in self.bodies), None)
        if not isinstance(rows, StoryRows) or run is None:
            return None
        calls = (run.span(call.id) for row in visible if (call := rows.call_without_body(row)) is not None)
        return next((call for call in calls if call is not None), None)

    def add_body(self, span: Span, body: Body) -> None:
        """Show the prompt and the answer of a turn, or what a call did."""
        if isinstance(self.rows, TurnRows):
            self.bodies[span.id] = body
            self.show(self._turn_rows(self.rows.run))
        elif isinstance(self.rows, StoryRows):
            current_span = self.rows.run.span(span.id) or span  # an open call may be shown with another status
            self.actions[span.id] = current_span, action_of(current_span, body)
            if (row := self.rows.index(span.id)) is not None:
                self.redraw(row)

    def is_at_cursor(self, index: int) -> bool:
        """Whether a row belongs to the turn under the cursor, or is under it."""
        rows = self.rows
        if isinstance(rows, TurnRows) and self.position < len(rows):
            return index in rows.block(self.position)
        return super().is_at_cursor(index)

    def repaint_row(self, index: int) -> None:
        """Repaint a row, of a turn all of its rows."""
        rows = self.rows
        for row in rows.block(index) if isinstance(rows, TurnRows) and index < len(rows) else (index,):
            super().repaint_row(row)

    def clicked_row(self, index: int) -> None:
        rows = self.rows
        super().clicked_row(rows.block(index).start if isinstance(rows, TurnRows) else index)

    def _span_rows(self, run: Run, now: float) -> spans.SpanRows:
        """The rows of the timeline or the tree."""
        previous = self.rows
        if isinstance(previous, spans.SpanRows) and previous.tree == self.as_tree:
            if previous.run is run:
                return previous.refold(self.folded)
            if previous.run.summary.ref == run.summary.ref:
                return previous.with_run(run, now=now)
        glyphs, as_story = self.look.glyphs, not self.has_story
        rows = spans.SpanRows(run, tree=self.as_tree, folded=self.folded, glyphs=glyphs, now=now, as_story=as_story)
        arranged = self._predicate is not None or self.longest_first
        return rows.with_filter(self._predicate, longest_first=self.longest_first) if arranged else rows

    def _ensure_row(self, span: str, rows: SpanView, now: float) -> SpanView:
        """Make the row of a span visible: drops the filter, unfolds, shows the tree, as necessary."""
        if isinstance(rows, StoryRows | TurnRows):
            rows = rows.reveal(span, records=True) if isinstance(rows, StoryRows) else rows
            if _has_row(rows, span):
                return rows
            self.shown_as = "timeline"
            rows = self._span_rows(rows.run, now)
        if not _has_row(rows, span) and self._predicate is not None:
            self.filter_text, self._predicate = "", None
            rows = rows.with_filter(None, longest_first=self.longest_first)
        if not _has_row(rows, span):
            self.folded -= navigation.above(span, rows.run)
            rows = rows.refold(self.folded)
        if not _has_row(rows, span) and not self.as_tree:
            self.shown_as, self._temporary_tree = "tree", True
            return self._rows_of(rows.run, now)
        return rows

    def next_view(self, now: float) -> None:
        """Show the next view of those that the run has; the cursor stays on its span."""
        views: list[View] = ["timeline", "tree"]
        if self.has_story and self.run is not None and has_turns(self.run):
            views.insert(0, "turns")
        elif self.has_story and self.run is not None and any(map(is_prompt, self.run.spans)):
            views.insert(0, "story")
        self.prefer(views[(views.index(self.shown_as) + 1) % len(views)], now)

    def prefer(self, view: View, now: float) -> None:
        """Show this and further runs in a view."""
        self.preferred = view
        self._show_as(view, now)

    def _show_as(self, view: View, now: float) -> None:
        """Show the run in a view; the cursor stays on its span."""
        self.shown_as, self._temporary_tree = view, False
        if self.run is not None:
            self.show_run(self.run, now=now, span=self.cursor if isinstance(self.cursor, str) else None)

    def filter(self, text: str, now: float) -> None:
        """Filter the spans by a query; of an invalid query, only the part before the error applies."""
        from tracetui.store.query import parse_span_prefix

        masked = self.app.masked_facts
        query = parse_span_prefix(text, None if masked is None else masked.span)[0] if text.strip() else None
        self.filter_text, self._predicate = text, query.matches if query is not None else None
        if query is not None and self.shown_as in _UNSORTABLE_VIEWS:
            self._show_as("timeline", now)
        self._rearrange(now)

    def sort(self, now: float, *, longest_first: bool) -> bool:
        """Sort the timeline by duration or time; returns True if by duration. A tree isn't sorted."""
        if self.shown_as in _UNSORTABLE_VIEWS:
            self._show_as("timeline", now)
        self.longest_first = longest_first and not self.as_tree
        self._rearrange(now)
        return self.longest_first

    @property
    def span_count(self) -> int:
        """Number of spans with a row."""
        return _count(self.rows)

    def _rearrange(self, now: float) -> None:
        if self.run is not None and isinstance(self.rows, spans.SpanRows):
            rows = self.rows.with_filter(self._predicate, longest_first=self.longest_first)
            self.show(rows, title=self._title(self.run, rows), heading=self._heading_of(self.run, rows, now))

    def show_empty(self, problem: Problem | None = None) -> None:
        """Show no run; `problem`: why it is unreadable."""
        self.run = None
        self._set_following(False, None)
        self.pane_name = self.names["timeline"]

        def heading(width: int) -> Sequence[Line]:
            return broken(problem, width, self.look.glyphs.note) if problem is not None else ()

        self.show(ListRows(()), title=(), heading=heading, title_right=(), keep=False)

    @property
    def span(self) -> Span | None:
        """The span under the cursor."""
        key = self.cursor
        return self.run.span(key) if self.run is not None and isinstance(key, str) else None

    @property
    def last_span(self) -> Span | None:
        """The span under the cursor; of a turn, its last span."""
        run, span = self.run, self.span
        if run is None or span is None or not isinstance(self.rows, TurnRows):
            return span
        position = run.index[span.id]
        return run.spans[position + run.sizes[position] - 1]

    @property
    def answer(self) -> Span | None:
        """The last model call of the turn under the cursor of a story."""
        return self.rows.answer(self.position) if isinstance(self.rows, StoryRows) else None

    @property
    def in_branch(self) -> bool:
        """Whether the cursor is on or in an abandoned branch."""
        return self.run is not None and self.span is not None and navigation.in_abandoned_branch(self.run, self.span)

    def set_folded(self, folded: frozenset[str], now: float) -> None:
        """Fold exactly these spans."""
        if self.run is not None:
            self.folded = folded
            self.show_run(self.run, now=now, span=self.cursor if isinstance(self.cursor, str) else None)

    def unfold_to(self, span_id: str, now: float) -> None:
        """Unfold the ancestors of a span."""
        if self.run is not None and self.folded & (above := navigation.above(span_id, self.run)):
            self.set_folded(self.folded - above, now)

    async def action_fold(self) -> None:
        """Fold the loop or the span under the cursor, or go to its parent."""
        run, span = self.run, self.span
        if self.toggle_loop(open_=False):
            return
        if isinstance(self.rows, StoryRows) and (above := self.rows.parent(self.position)) is not None:
            self.move_to(above)
            return
        if run is None or span is None or not (self.as_tree or self.in_branch):
            return
        position = run.index[span.id]
        if run.sizes[position] > 1 and span.id not in self.folded:
            self._fold(self.folded | {span.id})
        elif (parent := run.parent(position)) is not None:
            self.move_to_key(run.spans[parent].id)

    async def action_unfold(self) -> None:
        """Unfold the loop or the span under the cursor, or go into it; nothing else: the rows fit the pane."""
        run, span = self.run, self.span
        if self.toggle_loop(open_=True):
            return
        if isinstance(self.rows, StoryRows) and self.rows.fold(self.position) is not None:
            self.action_move(1)
            return
        if run is None or span is None or not (self.as_tree or self.in_branch):
            return
        if span.id in self.folded:
            self._fold(self.folded - {span.id})
        elif run.sizes[run.index[span.id]] > 1:
            self.action_move(1)

    def _fold(self, folded: frozenset[str]) -> None:
        self.set_folded(folded, self.app.clock())

    # ---- loops

    def fold_loops(self, assessment: Assessment) -> None:
        """Fold repeated calls, except those at the cursor."""
        self.assessment, rows = assessment, self.rows
        if isinstance(rows, SpanView) and (folded := self._with_loops(rows, assessment)) is not rows:
            self._show_folds(folded.reveal(self.cursor))

    def _with_loops(self, rows: SpanView, assessment: Assessment) -> SpanView:
        """The rows with the loops of an assessment; the same object if it has these."""
        from tracetui.views.timeline.spans import Folds

        if not isinstance(rows, spans.SpanRows):
            return rows
        folds = Folds.of(assessment, rows.run, going=self._state in GOING).with_unfolded(self.unfolded)
        return rows if rows.folds is not None and folds.state == rows.folds.state else rows.fold_loops(folds)

    @property
    def _loop(self) -> Fold | None:
        """The fold of the loop or the row of the story under the cursor."""
        rows = self.rows
        if isinstance(rows, StoryRows):
            return rows.fold(self.position)
        if self.as_tree or not isinstance(rows, spans.SpanRows) or rows.folds is None:
            return None
        fold = rows.fold(self.position)
        return fold if fold is not None and fold.key in rows.folds.keys else None

    @property
    def unfolds(self) -> bool:
        fold, span = self._loop, self.span
        if fold is not None:
            return not fold.open
        return span is not None and span.id in self.folded and (self.as_tree or self.in_branch)

    def toggle_loop(self, *, open_: bool) -> bool:
        """Unfold or fold the loop or the row of the story under the cursor; False if that changes nothing."""
        rows, fold = self.rows, self._loop
        if fold is None or fold.open == open_:
            return False
        if isinstance(rows, StoryRows):
            self._show_folds(rows.refold(rows.opened ^ {str(fold.key)}))
        elif isinstance(rows, spans.SpanRows) and rows.folds is not None:
            self._show_folds(rows.fold_loops(rows.folds.with_unfolded(rows.folds.unfolded ^ {str(fold.key)})))
        return True

    def toggle_loops(self, *, open_: bool) -> bool:
        """Unfold or fold all loops of the timeline, or the whole story; False if there is nothing to fold."""
        rows = self.rows
        if isinstance(rows, StoryRows):
            self._show_folds(rows.refold(rows.all_folds if open_ else frozenset()))
            return True
        if self.as_tree or not isinstance(rows, spans.SpanRows) or rows.folds is None or not rows.folds.loops:
            return False
        self._show_folds(rows.fold_loops(rows.folds.with_unfolded(rows.folds.keys if open_ else frozenset())))
        return True

    def _show_folds(self, rows: SpanView) -> None:
        before = self.cursor
        self.show(self._save_folds(rows))
        unfolded = isinstance(rows, StoryRows)  # which may give the pane more rows
        if unfolded or self.cursor != before:  # its row was folded
            self.post_moved()

    def _save_folds(self, rows: SpanView) -> SpanView:
        if isinstance(rows, StoryRows):
            self.opened = rows.opened
            return rows
        if isinstance(rows, TurnRows):
            return rows
        if rows.folds is not None:
            self.unfolded = rows.folds.unfolded
        if not rows.tree and isinstance(self.rows, spans.SpanRows):
            self.folded -= self.rows.folded - rows.folded
        return rows

    def move_to_key(self, key: Hashable, *, center: bool = False) -> bool:
        """Move as usual; unfolds a loop or branch that hides the span."""
        rows = self.rows
        if isinstance(rows, SpanView) and (unfolded := rows.reveal(key)) is not rows:
            self.show(self._save_folds(unfolded))
        return super().move_to_key(key, center=center)

    def reveal(self) -> None:
        """Unfold a loop if the hit is in a call that its row doesn't show."""
        rows, needle = self.rows, self.needle.lower()
        if isinstance(rows, StoryRows):
            hidden = next((span for span in rows.hidden(self.position) if needle in spans.plain(span).lower()), None)
            if hidden is not None:
                self.show(self._save_folds(rows.reveal(hidden.id, records=True)))
                self.move_to_key(hidden.id)
            return
        calls = rows.folded_calls(self.position) if isinstance(rows, spans.SpanRows) else []
        drawn = "".join(piece.text for piece in rows.line(self.position, self.outer_size.width - 2)) if calls else ""
        hit = next((call for call in calls if needle in spans.plain(call).lower()), None)
        if hit is not None and needle not in drawn.lower():
            self.toggle_loop(open_=True)
            self.move_to_key(hit.id)

    @property
    def wanted_height(self) -> int:
        """Rows of the full run, with title and heading."""
        return len(self.rows) + 1 + len(self.heading)

    def _title(self, run: Run, rows: Rows) -> Line:
        pieces = [Piece(short_id(run.summary.id), "sec")]
        if self.following:
            pieces = [Piece(Clean(" FOLLOW "), "onaccent bold"), Piece(Clean(" ")), *pieces]
            if run.summary.status in _END_STATES:
                pieces.append(Piece(Clean(" ended"), status_glyph(run.summary.status, self.look.glyphs)[1]))
        if self.as_tree:
            pieces.append(Piece(Clean(" tree"), "dim"))
        if self.filter_text:
            pieces += filter_badge(self.filter_text)
        if self.longest_first:
            pieces.append(Piece(Clean(" by duration"), "accent"))
        if isinstance(rows, spans.SpanRows) and not self.filter_text and rows.hidden > len(rows):
            pieces.append(Piece(Clean(f"  {quantity(rows.hidden, 'span')} hidden"), "dim"))
        if run.problems:
            pieces.append(Piece(Clean(f"  ! {quantity(len(run.problems), 'note')}"), "status.warn"))
        if not run.complete:
            pieces.append(Piece(Clean(f"  reading … {quantity(len(run.spans), 'span')} so far"), "status.running"))
        return tuple(pieces)

    def _heading_of(self, run: Run, rows: SpanView, now: float) -> Callable[[int], list[Line]]:
        look = self.look

        def lines(width: int) -> list[Line]:
            above: list[Line] = []
            if self.headline:
                state, assessment = self._state, self.assessment
                above = [
                    *header.run_heading(
                        run, width, now=now, zone=look.zone, glyphs=look.glyphs, state=state, assessment=assessment
                    ),
                    (),
                ]
                if width > 90 and (overview := rows.overview(width)):
                    above += [overview, ()]
            return [*above, rows.header(width)] if len(rows) else above

        return lines


_UNSORTABLE_VIEWS: Final = ("turns", "story")
"""Views without filter and sort order."""
_UNFOLDED: Final = frozenset({Status.ERROR, Status.RUNNING})
"""Runs whose story opens at the call that failed or runs; others open at a turn."""
_END_STATES: Final = frozenset({Status.OK, Status.ERROR, Status.CANCELLED})


def _find_newest(before: Run | None, run: Run) -> str | None:
    """Id of the last span that `before` didn't have; None if there is none."""
    if before is not None and len(before.spans) == len(run.spans):
        return None
    old = before.index if before is not None else {}
    return next((span.id for span in reversed(run.spans) if span.id not in old), None)


def _has_row(rows: SpanView, span: str) -> bool:
    """Whether a span has a row."""
    row = rows.index(span)
    return row is not None and rows.key(row) == span


def _count(rows: Rows) -> int:
    """Number of rows that are spans."""
    if isinstance(rows, TurnRows):
        return len(rows.turns)
    count = len(rows)
    return count if not count or rows.selectable(count - 1) else count - 1
