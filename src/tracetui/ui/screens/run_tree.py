"""The run tree, its pane and its screen: all trials of a task merged by their steps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from msgspec.structs import replace
from textual import on

from tracetui import masking
from tracetui.analysis.run_tree import Fork, Representative
from tracetui.analysis.tasks import Trial
from tracetui.live.jobs import Job, JobProgress, TreeResult, run_tree_job
from tracetui.live.mailbox import Mail
from tracetui.masking import one_line
from tracetui.model import Problem, Run, RunRef, Span
from tracetui.text import Clean, grouped, quantity
from tracetui.ui import state as states
from tracetui.ui.commands import TREE, Command
from tracetui.ui.screens.lists import PreviewScreen
from tracetui.ui.state import RunTreeState
from tracetui.ui.widgets.line_view import FoldingView, LineView
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.run_tree import (
    Kind,
    Node,
    TreeRows,
    fork_sentence,
    has_rates,
    is_fork,
    tree_sentence,
    trials_sentence,
)

_BELOW: Final = 4
"""Rows below a fork that should be visible: its branches."""


class TreePane(FoldingView):
    """Lanes of runs with their steps; the cursor starts at the first fork."""

    number = 1
    pane_name = "Run tree"

    def __init__(self) -> None:
        super().__init__(id=TREE)
        self.result: TreeResult | None = None
        self._selected: RunRef | None = None

    @property
    def tree_rows(self) -> TreeRows | None:
        """The rows, once there is a tree."""
        return self.rows if isinstance(self.rows, TreeRows) else None

    @property
    def node(self) -> Node | None:
        """The step under the cursor."""
        rows = self.tree_rows
        return rows.node(self.position) if rows is not None else None

    def show_tree(self, result: TreeResult, selected: RunRef | None, cursor: Hashable = None) -> None:
        """Show a tree with the path of the selected run; the cursor goes to `cursor`, else to the first fork."""
        if not result.tree.runs:
            self.show_message(Clean("no readable trials"))
            return
        is_new = result is not self.result
        self.result, self._selected = result, selected
        self.draw_rows(keep=not is_new)
        rows = self.tree_rows
        if not is_new or rows is None:
            return
        forks = rows.forks()
        if not (cursor is not None and self.move_to_key(cursor)) and forks:
            self.move_to(forks[0])
            self.top = 0 if self.position < self.page else self.top
        self.refresh()

    def show_message(self, message: Clean) -> None:
        """Show a message in place of a tree."""
        self.result = None
        self.show(ListRows([(Piece(message, "dim"),)], headings=[0]), heading=lambda width: [], keep=False)

    def draw_rows(self, *, keep: bool) -> None:
        result, before = self.result, self.cursor
        if result is None:
            return
        refs = [run.summary.ref for run in result.tree.runs]
        selected = refs.index(self._selected) if self._selected in refs else None
        rows = TreeRows(
            result.tree,
            result.arguments,
            result.decisive_at,
            numbers=result.numbers,
            selected=selected,
            opened=self.opened,
            glyphs=self.look.glyphs,
        )
        self.show(rows, heading=lambda width: rows.headings(width), title=self._summary(result), keep=keep)
        if self.cursor != before:  # its row was folded
            self.post_moved()

    def _summary(self, result: TreeResult) -> Line:
        keys = (Piece(Clean("  ]d"), "key bold"), Piece(Clean(" goes there"), "sec"))
        return (
            *tree_sentence(result.tree, self.look.glyphs),
            *(keys if any(fork.is_decisive for fork in result.tree.forks) else ()),
        )

    def fold_all(self, *, open_: bool) -> None:
        """Unfold or fold all stretches and forks."""
        rows = self.tree_rows
        if rows is not None:
            self.opened = rows.toggles(open_=open_)
            self.draw_rows(keep=True)

    def step_to_fork(self, step: int, *, decisive: bool) -> bool:
        """Go to the next fork, or the one before; False if there is none. Finds folded forks only if `decisive`."""
        forks = self._forks(step, decisive=decisive)
        if decisive and not forks:
            self.opened = frozenset(key for key in self.opened if not is_fork(key))
            self.draw_rows(keep=True)
            forks = self._forks(step, decisive=True)
        if not forks:
            return False
        fork = forks[0] if step > 0 else forks[-1]
        self.move_to(fork, center=not self.top <= fork < self.top + self.page - _BELOW)
        return True

    def _forks(self, step: int, *, decisive: bool) -> list[int]:
        """The rows of forks below the cursor, or above it."""
        rows = self.tree_rows
        forks = rows.forks(decisive=decisive) if rows is not None else []
        return [i for i in forks if (i - self.position) * step > 0]

    def reveal(self) -> None:
        needle, node = self.needle.lower(), self.node
        if needle and node is not None and node.kind is Kind.BRANCH and self.toggle(open_=True):
            inside = range(self.position, min(len(self.rows), self.position + len(node.branch.steps)))
            self.move_to(next((i for i in inside if needle in self.rows.plain(i).lower()), self.position))


class RunTreeScreen(PreviewScreen):
    """All trials of a task merged into one tree, and the step under the cursor. Renders a `RunTreeState`."""

    state: RunTreeState

    def __init__(
        self,
        trials: Sequence[Trial],
        commands: Sequence[Command],
        state: RunTreeState,
        *,
        title: str,
        result: TreeResult | None = None,
    ) -> None:
        """`title` names the task, not sanitized. `result`: the tree, if the trials were merged before."""
        self.branches = TreePane()
        super().__init__(TREE, self.branches.pane_name, commands, self.branches)
        self.state = state
        self._trials, self._title = list(trials), title
        self._result = result
        self._progress: JobProgress | None = None
        self._job: Job | None = None
        self._problems: list[Problem] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.branches.opened = self.state.opened
        if self._result is None:
            self._read({})

    def _read(self, loaded: dict[RunRef, Run]) -> None:
        job = run_tree_job(self._trials, texts=self.state.texts, loaded=loaded, redactor=masking.current())
        self._job, self._progress, self._problems = job, None, []
        self.app.surveys.ask(job)

    # ---- the state

    def become(self, state: RunTreeState) -> None:
        """Replace the state and render the changes."""
        before, self.state = self.state, state
        if state.selected != before.selected:
            self.show_rows()
        if state.texts != before.texts:
            self.branches.opened = frozenset()
            runs = self._result.tree.runs if self._result is not None else ()
            self._read({run.summary.ref: run for run in runs})

    # ---- data arrives

    def receive(self, mail: Mail) -> None:
        if mail.bodies:
            self._show_preview()
        progress = mail.progress
        if progress is None or progress.job is not self._job:
            return
        self._progress = progress
        self._problems += [item for item in progress.new if isinstance(item, Problem)]
        if progress.finished and isinstance(progress.result, TreeResult):
            self._result = progress.result
        self.show_rows()
        if progress.finished and self._problems:
            self.say(f"{grouped(len(self._problems))} unreadable: {self._problems[0].reason}", "status.warn")

    @property
    def settled(self) -> bool:
        """Whether the tree is complete and shown, and the step below it."""
        complete = self._result is not None and (self._progress is None or self._progress.finished)
        return complete and (not self._preview.display or self._preview.body is not None)

    def show_rows(self) -> None:
        if self._result is None:
            self.branches.show_message(Clean("reading the trials …"))
        else:
            self.branches.show_tree(self._result, self.state.selected, self.state.cursor)
        self._show_preview()
        self.refresh_frame()

    # ---- the preview

    @property
    def _step(self) -> tuple[int, Span] | None:
        """Position of the run and step in the preview: at a fork the step that follows."""
        rows, node = self.branches.tree_rows, self.branches.node
        return rows.step(node) if rows is not None and node is not None else None

    @property
    def _has_preview(self) -> bool:
        return self._step is not None

    def _show_preview(self) -> None:
        """Show the step under the cursor; load its body first if necessary."""
        step, result = self._step, self._result
        self._lay_out()
        if step is None or result is None or not self._preview.display:
            return
        run, span = result.tree.runs[step[0]], step[1]
        opened = self.app.store.opened(run.summary.ref)
        if opened is not None and (same := opened.span(span.id)) is not None:
            run, span = opened, same  # bodies are cached for a span object: another screen may show this one
        body = self.app.store.body(run.summary.ref, span)
        if body is None:
            self.app.engine.load_body(run, span)
        self._preview.pane_name = f"Trial {result.numbers[step[0]]}"
        self._preview.show_span(run, span, body)
        self._lay_out()

    # ---- the cursor

    @property
    def _here(self) -> tuple[RunRef, str] | None:
        """Run and span under the cursor."""
        rows, node = self.branches.tree_rows, self.branches.node
        run_span = rows.span(node) if rows is not None and node is not None else None
        if rows is None or run_span is None:
            return None
        return rows.tree.runs[run_span[0]].summary.ref, run_span[1].id

    @property
    def ref(self) -> RunRef | None:
        return self._here[0] if self._here is not None else self.state.selected

    @on(LineView.Moved, f"#{TREE}")
    def _row_moved(self) -> None:
        self._show_preview()
        self.refresh_frame()

    # ---- commands

    def action_open(self) -> None:
        """Compare two runs at the fork under the cursor, or open the run at the step under the cursor."""
        node, here = self.branches.node, self._here
        if node is None:
            return
        if node.kind is Kind.FORK and node.fork is not None:
            self._compare(node.fork)
        elif here is not None:
            self.app.visit(*here)
        elif self.state.selected is not None:
            self.app.visit(self.state.selected, None)

    def action_diff(self) -> None:
        """Compare the branch under the cursor with the most different one at its fork."""
        node = self.branches.node
        if node is None or node.fork is None:
            self.say("all trials share these steps", "status.warn")
        else:
            self._compare(node.fork, None if node.kind is Kind.FORK else node.side)

    def _compare(self, fork: Fork, side: int | None = None) -> None:
        assert self._result is not None
        tree = self._result.tree
        pair = tree.representatives(fork, side)
        refs = [tree.runs[step.run].summary.ref for step in pair]
        self.app.compare(refs[0], refs[1], (self._span_id(pair[0]), self._span_id(pair[1])))

    def _span_id(self, step: Representative) -> str | None:
        assert self._result is not None
        return None if step.span is None else self._result.tree.runs[step.run].spans[step.span].id

    def action_fork(self, step: int, decisive: bool = False) -> None:
        """Go to the next (decisive) fork, or the one before."""
        if not self.branches.step_to_fork(step, decisive=decisive):
            kind = f"{'later' if step > 0 else 'earlier'}{' decisive' if decisive else ''}"
            self.say(f"no {kind} forks", "status.warn")

    def action_trial(self, step: int) -> None:
        """Select the trial in the next lane, or the one before."""
        rows = self.branches.tree_rows
        if rows is not None:
            order = [rows.tree.runs[run].summary.ref for run in rows.lanes.order]
            following = states.select_next(self.state, order, step)
            if following is not None:
                self.become(following)

    def action_texts(self) -> None:
        """Toggle model answers and messages as steps."""
        self.become(states.toggle_texts(self.state))
        self.say("merging by model texts too" if self.state.texts else "merging by tool calls, nodes and agents")

    def action_fold_all(self, open_: bool) -> None:
        """Unfold or fold everything."""
        self.branches.fold_all(open_=open_)

    def action_reread(self) -> None:
        """Read the trials again."""
        self._read({})
        self.say("re-reading the trials")

    def recreate(self) -> RunTreeScreen:
        state = replace(self.state, cursor=self.branches.cursor, opened=self.branches.opened)
        return RunTreeScreen(self._trials, self.commands, state, title=self._title, result=self._result)

    # ---- the frame

    def path(self) -> tuple[Line, Line]:
        texts = "  with model texts" if self.state.texts else ""
        title = Piece(one_line(self._title, 100), "sec")
        left: Line = (Piece(Clean("run tree  "), "text bold"), title, Piece(Clean(texts), "accent"))
        result = self._result
        return left, () if result is None else trials_sentence(result.tree, result.left_out, self.app.look.glyphs)

    def summary(self) -> Line:
        progress, result, node = self._progress, self._result, self.branches.node
        if progress is None or not progress.finished:
            if result is None:
                done = progress.done if progress is not None else 0
                label = f"reading, {grouped(done)} of {quantity(len(self._trials), 'trial')}"
                return (Piece(Clean(label), "status.running"),)
        elif progress.lost:
            return (Piece(one_line(f"reading stopped: {progress.lost}", 200), "status.error"),)
        if result is None or node is None:
            return ()
        if node.fork is None:
            return tree_sentence(result.tree, by_chance=self.state.by_chance) if result.tree.forks else ()
        return fork_sentence(
            node.fork,
            node.side,
            self.app.size.width - 2,
            rates=has_rates(result.tree),
            glyphs=self.app.look.glyphs,
        )
