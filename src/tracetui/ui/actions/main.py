"""What the commands do: one method ``do_<action>`` each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from tracetui.model import RunRef, Status, quote_key
from tracetui.ui.actions.common import SIDEWAYS, CommonActions
from tracetui.ui.commands import DETAIL, FACTS, RUNS, STEPS
from tracetui.views import walk
from tracetui.views.arrange import GROUPS, SORTS

if TYPE_CHECKING:
    from tracetui.ui.panes.folding import FoldingView
    from tracetui.ui.screens.main import MainScreen

Kin = Literal["tool", "sibling", "model"]
PANES: tuple[str, ...] = (RUNS, STEPS, DETAIL, FACTS)


class Actions(CommonActions):
    """The commands of the main screen; `argument` is what follows the colon in the table."""

    def __init__(self, screen: MainScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    # ---- moving

    def do_edge(self, argument: str) -> None:
        screen = self._screen
        screen.view.action_edge(argument == "1")
        if argument == "1" and screen.pane == STEPS and screen.steps.run is not None:
            screen.live.entered(screen.steps.run.summary.ref, follow=screen.steps.detached)

    def do_pane(self, argument: str) -> None:
        screen = self._screen
        shown = [name for name in PANES if screen.views[name].is_on_screen]
        if argument in ("next", "previous") and not shown:  # there is no room for any
            return
        if argument in ("next", "previous"):
            here = shown.index(screen.pane) if screen.pane in shown else 0
            screen.focus_pane(shown[(here + (1 if argument == "next" else -1)) % len(shown)])
            return
        name = PANES[int(argument) - 1]
        if name == FACTS and name not in shown:
            name = DETAIL
            screen.detail.choose("run")
        screen.focus_pane(name)

    # ---- in and out

    def do_open(self, argument: str) -> None:
        if self._screen.pane == RUNS:
            if self._screen.runs.ref is not None:
                self.enter(self._screen.runs.ref)
            elif self._screen.runs.problem is not None:
                self._screen.level = 1
                self._screen.arrange_panes()
                self._screen.detail.focus()
        elif self._screen.pane == STEPS:
            if self._screen.has_class("narrow"):
                self._screen.level = 2
                self._screen.arrange_panes()
            self._screen.detail.focus()
        elif not self._folding.toggle():
            self.do_jump("")

    @property
    def _folding(self) -> FoldingView:
        return self._screen.facts if self._screen.pane == FACTS else self._screen.detail

    def enter(self, ref: RunRef, span: str | None = None, *, follow: bool | None = False) -> None:
        """Open a run, at that span; without one it is followed if it is still going (or `follow`; None: never)."""
        self._screen.level = max(1, self._screen.level)
        self._screen.open_ref(ref, span)
        if span is None and follow is not None:
            self._screen.live.entered(ref, follow=follow)
        self._screen.arrange_panes()
        if self._screen.pane == RUNS:
            self._screen.steps.focus()

    def do_back(self, argument: str) -> None:
        if self._screen.selections:
            self._screen.clear_selection()
        elif self._screen.view.needle:
            self._screen.view.search("")
        elif self._screen.zoomed is not None:
            self.do_zoom("")
        elif self._screen.pane == DETAIL and self._screen.level:
            self._screen.level = 1
            self._screen.arrange_panes()
            self._screen.steps.focus()
        elif self._screen.level or self._screen.pane != RUNS:
            self._screen.level = 0
            self._screen.arrange_panes()
            self._screen.runs.focus()
            if self._screen.ref is not None:
                self._screen.runs.move_to_key(self._screen.ref)
            back, self._screen.come_from = self._screen.come_from, None
            if back is not None:
                back()
        elif self._screen.runs.arrangement.words or self._screen.runs.arrangement.failures:
            self._screen.runs.rearrange(words="", failures=False)
            self._screen.refresh_list()

    def do_triage(self, argument: str) -> None:
        from tracetui.ui.screens.triage import TriageScreen

        screen = self._screen
        screen.come_from = None
        screen.app.push_screen(TriageScreen(screen.app.commands, screen.judging.left))

    def do_quit(self, argument: str) -> None:
        if self._screen.level or self._screen.pane != RUNS or self._screen.zoomed is not None:
            self.do_back("")
        else:
            self._screen.app.exit()

    def do_zoom(self, argument: str) -> None:
        self._screen.zoomed = None if self._screen.zoomed is not None else self._screen.pane
        self._screen.arrange_panes()

    # ---- folding

    def do_fold(self, argument: str) -> None:
        if self._screen.pane == STEPS:
            self._fold_span()
        elif self._screen.pane == RUNS or not (self._folding.toggle(open_=False) or self._folding.to_parent()):
            self._screen.view.action_sideways(-SIDEWAYS)

    def _fold_span(self) -> None:
        run, span = self._screen.steps.run, self._screen.steps.span
        if self._screen.steps.toggle_loop(open_=False):
            return
        if run is None or span is None or not (self._screen.steps.as_tree or self._screen.steps.in_branch):
            self._screen.view.action_sideways(-SIDEWAYS)
            return
        position = run.index[span.id]
        if run.sizes[position] > 1 and span.id not in self._screen.steps.folded:
            self.fold_spans(self._screen.steps.folded | {span.id})
        elif (parent := run.parent(position)) is not None:
            self._screen.steps.move_to_key(run.spans[parent].id)

    def do_unfold(self, argument: str) -> None:
        if self._screen.pane in (DETAIL, FACTS):
            if not self._folding.toggle(open_=True):
                self._screen.view.action_sideways(SIDEWAYS)
            return
        run, span = self._screen.steps.run, self._screen.steps.span
        if self._screen.steps.toggle_loop(open_=True):
            return
        if run is None or span is None or not (self._screen.steps.as_tree or self._screen.steps.in_branch):
            self._screen.view.action_sideways(SIDEWAYS)
        elif span.id in self._screen.steps.folded:
            self.fold_spans(self._screen.steps.folded - {span.id})
        elif run.sizes[run.index[span.id]] > 1:
            self._screen.steps.action_move(1)

    def fold_spans(self, folded: frozenset[str]) -> None:
        """Fold exactly these spans."""
        self._screen.steps.set_folded(folded, self._screen.app.clock())

    def do_fold_all(self, argument: str) -> None:
        self._take_back_zoom()
        if self._screen.steps.toggle_loops(open_=False):
            return
        if self._screen.steps.run is not None:
            self.need_tree()
            self.fold_spans(walk.fold_all(self._screen.steps.run))

    def do_unfold_all(self, argument: str) -> None:
        self._take_back_zoom()
        if not self._screen.steps.toggle_loops(open_=True):
            self.fold_spans(frozenset())

    def do_fold_to(self, argument: str) -> None:
        self._take_back_zoom()
        if self._screen.steps.run is not None:
            self.need_tree()
            self.fold_spans(walk.to_depth(self._screen.steps.run, int(argument) - 1))

    def _take_back_zoom(self) -> None:
        """``z`` zoomed at once; it turned out to be the beginning of ``zM``."""
        self.do_zoom("")

    def need_tree(self) -> None:
        """Folding speaks of the tree: show it."""
        if not self._screen.steps.as_tree:
            self.do_tree("")

    def do_tree(self, argument: str) -> None:
        steps = self._screen.steps
        steps.turn()
        if self._screen.ref is not None:
            if isinstance(steps.cursor, str):
                self._screen.wanted = (self._screen.ref, steps.cursor)
            self._screen.show_run(self._screen.ref)

    # ---- finding

    def do_follow(self, argument: str) -> None:
        screen = self._screen
        if screen.pane == RUNS and screen.runs.ref is not None:
            self.enter(screen.runs.ref, follow=True)
        else:
            screen.live.follow(not screen.steps.following)

    def do_state(self, argument: str) -> None:
        self._screen.live.explain()

    def do_error(self, argument: str) -> None:
        step, screen = int(argument), self._screen
        run, span = screen.steps.run, screen.steps.span
        if run is not None and screen.pane != RUNS:
            here = run.index[span.id] if span is not None else -1
            order = walk.errors(run) if step > 0 else walk.errors(run)[::-1]
            found = next((error for error in order if (run.index[error] - here) * step > 0), None)
            if found is not None:
                screen.steps.unfold_to(found, screen.app.clock())
                screen.steps.move_to_key(found)
                self.tell_error()
                return
        self._next_failed_run(step)

    def tell_error(self) -> None:
        """Say which of the run's errors the cursor is on: ``e 3/17``."""
        run, span = self._screen.steps.run, self._screen.steps.span
        errors = walk.errors(run) if run is not None else []
        if span is not None and span.id in errors:
            words = f"  {span.error.words}" if span.error is not None else ""
            self._screen.say(f"e {errors.index(span.id) + 1}/{len(errors)}{words}", "status.error")

    def _next_failed_run(self, step: int) -> None:
        """Go to the next failed run at its first error, or to the one before at its last; pane and tab stay."""
        screen = self._screen
        order = screen.runs.refs()
        here = order.index(screen.ref) if screen.ref in order else -1
        following = order[here + 1 :] if step > 0 else order[: max(here, 0)][::-1]
        if screen.pane == RUNS and not screen.level and screen.ref is not None:
            following.insert(0, screen.ref)  # from the list, the first press enters the failed run under the cursor
        ref = next((one for one in following if self._failed(one)), None)
        if ref is None:
            screen.say("no more errors" if step > 0 else "no earlier errors", "status.warn")
            return
        screen.runs.chosen = True
        screen.runs.move_to_key(ref)
        screen.walking = step
        error = screen.store.runs[ref].first_error
        self.enter(ref, error.span if error is not None else None, follow=None)

    def arrive(self, step: int) -> None:
        """The walk came to another run: go to its first error (`step` 1) or its last, and say which one that is."""
        steps = self._screen.steps
        errors = walk.errors(steps.run) if steps.run is not None else []
        if errors:
            steps.move_to_key(errors[0 if step > 0 else -1])
            self.tell_error()

    def go_to_failed(self) -> None:
        """Move on to the next failed run of the list."""
        screen = self._screen
        order = screen.runs.refs()
        here = order.index(screen.ref) if screen.ref in order else -1
        ref = next((one for one in order[here + 1 :] if self._failed(one)), None)
        if ref is not None:
            screen.runs.move_to_key(ref)

    def _failed(self, ref: RunRef) -> bool:
        summary = self._screen.store.runs.get(ref)
        return summary is not None and summary.status is Status.ERROR

    def do_same(self, argument: str) -> None:
        what, _, step = argument.partition(":")
        run, span = self._screen.steps.run, self._screen.steps.span
        found = (
            walk.next_same(run, span.id, cast("Kin", what), int(step)) if run is not None and span is not None else None
        )
        if found is None or not self._screen.steps.move_to_key(found):
            self._screen.say(f"no {'other' if what == 'sibling' else 'more'} {what} that way")

    def do_jump(self, argument: str) -> None:
        screen, target, run_id = self._screen, self._folding.target, self._folding.target_run
        if target is not None and screen.steps.move_to_key(target):
            screen.steps.focus()
        elif run_id is not None and screen.ref is not None:
            ref = screen.store.relations.named(screen.ref, run_id)
            if ref is None:
                screen.say(f"run {run_id} is not in this directory (or several have this id)", "status.warn")
                return
            screen.runs.move_to_key(ref)
            self.enter(ref)
            screen.steps.focus()

    # ---- the list

    def do_sort(self, argument: str) -> None:
        if self._screen.pane == STEPS:
            self._sort_steps()
            return
        order = SORTS
        self._screen.runs.rearrange(
            sort=order[(order.index(self._screen.runs.arrangement.sort) + 1) % len(order)], reverse=False
        )
        self._screen.refresh_list()

    def _sort_steps(self) -> None:
        steps = self._screen.steps
        if steps.as_tree:
            self.do_tree("")
        longest = steps.sort(self._screen.app.clock(), longest=not steps.longest)
        self._screen.say("longest first  ·  , puts them in order again" if longest else "in order")

    def do_reverse(self, argument: str) -> None:
        self._screen.runs.rearrange(reverse=not self._screen.runs.arrangement.reverse)
        self._screen.refresh_list()

    def do_group(self, argument: str) -> None:
        order = GROUPS
        self._screen.runs.rearrange(group=order[(order.index(self._screen.runs.arrangement.group) + 1) % len(order)])
        self._screen.refresh_list()

    def do_failures(self, argument: str) -> None:
        self._screen.runs.rearrange(failures=not self._screen.runs.arrangement.failures)
        self._screen.refresh_list()

    def do_columns(self, argument: str) -> None:
        self._screen.runs.rearrange(all_columns=not self._screen.runs.arrangement.all_columns)
        self._screen.runs.left = 0
        self._screen.refresh_list()

    # ---- looking

    def do_tab(self, argument: str) -> None:
        if self._screen.pane == RUNS:
            self._screen.runs.action_sideways(SIDEWAYS * int(argument))
        else:
            self._screen.detail.step_tab(int(argument))

    def do_wrap(self, argument: str) -> None:
        self._screen.detail.toggle_wrap()

    def do_raw(self, argument: str) -> None:
        if not self._screen.detail.choose("raw"):
            self._screen.say("there is no source text for this")

    # ---- taking away

    def do_copy(self, argument: str) -> None:
        if argument == "value":
            self.copy_row()
        elif self._screen.summary is not None:
            summary = self._screen.summary
            address = summary.ref.address
            if self._screen.level and self._screen.steps.span is not None:
                address += f"/{quote_key(self._screen.steps.span.id)}"
            self.copy(summary.ref.path if argument == "path" else address, f"the {argument}")

    def do_editor(self, argument: str) -> None:
        rows = self._screen.detail.rows
        self._screen.app.edit("\n".join(rows.plain(i) for i in range(len(rows))))

    # ---- going elsewhere

    def do_reread(self, argument: str) -> None:
        if self._screen.level and self._screen.ref is not None:
            self._screen.store.forget(self._screen.ref)
            self._screen.app.engine.open(self._screen.ref, anew=True)
            self._screen.say("reading the run again")
        else:
            self._screen.app.rescan()
            self._screen.say("reading the directory again")
