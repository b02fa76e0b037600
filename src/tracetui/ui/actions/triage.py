"""What the commands do in the triage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetui.store.triage import Group
from tracetui.ui.actions.common import SIDEWAYS, CommonActions
from tracetui.ui.commands import CAUSE, FAILURE, QUEUE
from tracetui.views.triage import Member

if TYPE_CHECKING:
    from tracetui.ui.screens.triage import TriageScreen

PANES = (QUEUE, CAUSE, FAILURE)


class TriageActions(CommonActions):
    """`argument` is what follows the colon in the table."""

    def __init__(self, screen: TriageScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    # ---- in and out

    def do_open(self, argument: str) -> None:
        screen = self._screen
        item = screen.queue.item
        if screen.pane == CAUSE:
            if screen.cause.example is not None:
                screen.go_to(*screen.cause.example)
        elif screen.pane == FAILURE and screen.place is not None:
            screen.go_to(*screen.place)
        elif isinstance(item, Group):
            self._fold(item, unfold=item.signature.key not in screen.queue.unfolded)
        elif isinstance(item, Member):
            run = screen.app.store.runs.get(item.run)
            error = run.first_error if run is not None else None
            screen.go_to(item.run, error.span if error is not None else None)

    def do_back(self, argument: str) -> None:
        screen = self._screen
        if screen.view.needle:
            screen.view.search("")
        elif screen.zoomed is not None:
            self.do_zoom("")
        elif screen.pane != QUEUE:
            screen.focus_pane(QUEUE)
        else:
            screen.leave()

    def do_quit(self, argument: str) -> None:
        self.do_back(argument)

    def do_triage(self, argument: str) -> None:
        """It is open."""

    def do_zoom(self, argument: str) -> None:
        screen = self._screen
        screen.zoomed = None if screen.zoomed is not None else screen.pane
        screen.arrange_panes()

    def do_pane(self, argument: str) -> None:
        screen = self._screen
        if argument in ("next", "previous"):
            here = PANES.index(screen.pane)
            screen.focus_pane(PANES[(here + (1 if argument == "next" else -1)) % len(PANES)])
        else:
            screen.focus_pane(PANES[int(argument) - 1])

    # ---- the queue

    def _fold(self, group: Group, *, unfold: bool) -> None:
        queue, key = self._screen.queue, group.signature.key
        queue.unfolded = queue.unfolded | {key} if unfold else queue.unfolded - {key}
        self._screen.regroup()

    def do_fold(self, argument: str) -> None:
        screen = self._screen
        item = screen.queue.item
        if screen.pane == FAILURE and screen.failure.toggle_loop(open_=False):
            return
        if screen.pane != QUEUE or item is None:
            screen.view.action_sideways(-SIDEWAYS)
        elif isinstance(item, Member):
            screen.queue.move_to_key(item.group.signature.key)
        else:
            self._fold(item, unfold=False)

    def do_unfold(self, argument: str) -> None:
        screen = self._screen
        item = screen.queue.item
        if screen.pane == FAILURE and screen.failure.toggle_loop(open_=True):
            return
        if screen.pane != QUEUE:
            screen.view.action_sideways(SIDEWAYS)
        elif isinstance(item, Group):
            self._fold(item, unfold=True)

    def do_fold_all(self, argument: str) -> None:
        if self._screen.pane == FAILURE:
            self._screen.failure.toggle_loops(open_=False)
            return
        self._screen.queue.unfolded = frozenset()
        self._screen.regroup()

    def do_unfold_all(self, argument: str) -> None:
        if self._screen.pane == FAILURE:
            self._screen.failure.toggle_loops(open_=True)
            return
        queue = self._screen.queue
        queue.unfolded = frozenset(group.signature.key for group in queue.groups)
        self._screen.regroup()

    def do_error(self, argument: str) -> None:
        """Go to the next failed run of the queue, whatever is folded."""
        screen = self._screen
        order = [(group, ref) for group in screen.queue.groups for ref in group.runs]
        item, step = screen.queue.item, int(argument)
        here = -1 if step > 0 else len(order)
        for i, (group, ref) in enumerate(order):
            if isinstance(item, Member) and ref == item.run:
                here = i
            elif isinstance(item, Group) and group is item and ref == group.runs[0]:
                here = i - 1 if step > 0 else i
        if not 0 <= here + step < len(order):
            screen.say("no more failed runs" if step > 0 else "no earlier failed runs", "status.warn")
            return
        group, ref = order[here + step]
        self._fold(group, unfold=True)
        screen.queue.move_to_key(ref)
        screen.say(f"failed run {here + step + 1} of {len(order)}", "status.error")

    def go_to_undecided(self) -> None:
        """Go on to the next one that has no verdict: the next run of the signature, else the next signature."""
        queue, told = self._screen.queue, self._screen.told
        item = queue.item
        if isinstance(item, Member):
            runs = item.group.runs
            after = runs[runs.index(item.run) + 1 :] if item.run in runs else ()
            following = next((ref for ref in after if told(ref).verdict is None), None)
            if following is not None:
                queue.move_to_key(following)
                return
        keys = [group.signature.key for group in queue.groups]
        group = queue.group
        here = keys.index(group.signature.key) if group is not None else -1
        order = [*queue.groups[here + 1 :], *queue.groups[: here + 1]]
        undecided = next((one for one in order if told(one).verdict is None), None)
        if undecided is not None:
            queue.move_to_key(undecided.signature.key)

    # ---- of all its runs

    def do_statistics(self, argument: str) -> None:
        screen, group = self._screen, self._screen.queue.group
        if group is not None:
            screen.app.main.surveying.count(group.runs, f"{group.id}, {screen.of_runs(group)}")

    def do_contrast(self, argument: str) -> None:
        screen, group = self._screen, self._screen.queue.group
        if group is not None:
            screen.app.main.surveying.tell_apart(group.runs, f"{group.id}, {screen.of_runs(group)}")

    def do_diff_original(self, argument: str) -> None:
        screen, ref = self._screen, self._screen.queue.run
        if ref in screen.app.store.runs and (said := screen.app.main.comparing.compare_with_original(ref)):
            screen.say(said, "status.warn")

    def do_export(self, argument: str) -> None:
        self._screen.app.main.taking.export_triage(self._screen)

    def do_copy(self, argument: str) -> None:
        screen = self._screen
        if argument == "value" or screen.queue.run is None:
            self.copy_row()
        else:
            ref = screen.queue.run
            self.copy(ref.path if argument == "path" else ref.address, f"the {argument}")

    def do_reread(self, argument: str) -> None:
        self._screen.app.rescan()
        self._screen.say("reading the directory again")
