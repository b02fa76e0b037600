"""What the commands of a comparison do: one method ``do_<action>`` each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetui.ui.actions.common import SIDEWAYS, CommonActions
from tracetui.ui.commands import CHANGE
from tracetui.ui.panes.folding import FoldingView
from tracetui.views.diff_look import CHANGES, CONTEXT, PREVIOUS

if TYPE_CHECKING:
    from tracetui.ui.screens.compared import ComparedScreen


class DiffActions(CommonActions):
    """The commands of a screen with a `Change` pane; `argument` is what follows the colon in the table."""

    def __init__(self, screen: ComparedScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    # ---- walking

    def do_difference(self, argument: str) -> None:
        screen, step = self._screen, int(argument)
        searched = next((view for view in screen.views.values() if view.needle), None)
        if searched is not None:
            self.go_to_hit(screen.view if screen.view.needle else searched, step)
        elif not screen.change.step_to(step) and not screen.walk(step):
            screen.say("no more differences" if step > 0 else "no earlier differences", "status.warn")

    def do_divergent(self, argument: str) -> None:
        step = int(argument)
        if not self._screen.walk(step):
            self._screen.say(self._screen.walked_out[step < 0], "status.warn")

    # ---- in and out

    def do_pane(self, argument: str) -> None:
        screen = self._screen
        names = list(screen.views)
        if argument in ("next", "previous"):
            here = names.index(screen.pane)
            screen.focus_pane(names[(here + (1 if argument == "next" else -1)) % len(names)])
        elif int(argument) <= len(names):
            screen.focus_pane(names[int(argument) - 1])

    def do_open(self, argument: str) -> None:
        screen = self._screen
        view = screen.view
        if isinstance(view, FoldingView) and view.toggle():
            return
        if not screen.opened(view):
            screen.focus_pane(CHANGE)

    def do_back(self, argument: str) -> None:
        screen = self._screen
        if screen.selections:
            screen.clear_selection()
        elif screen.view.needle:
            screen.view.search("")
        elif screen.zoomed is not None:
            self.do_zoom("")
        elif not screen.step_out():
            screen.leave()

    def do_quit(self, argument: str) -> None:
        self._screen.leave()

    def do_zoom(self, argument: str) -> None:
        screen = self._screen
        screen.zoomed = None if screen.zoomed is not None else screen.pane
        screen.arrange_panes()

    # ---- folding

    def do_fold(self, argument: str) -> None:
        view = self._screen.view
        if not (isinstance(view, FoldingView) and (view.toggle(open_=False) or view.to_parent())):
            view.action_sideways(-SIDEWAYS)

    def do_unfold(self, argument: str) -> None:
        view = self._screen.view
        if not (isinstance(view, FoldingView) and view.toggle(open_=True)):
            view.action_sideways(SIDEWAYS)

    def do_fold_all(self, argument: str) -> None:
        self.do_zoom("")  # ``z`` zoomed at once; it turned out to be the beginning of ``zM``
        self._screen.change.fold_all(open_=False)

    def do_unfold_all(self, argument: str) -> None:
        self.do_zoom("")
        self._screen.change.fold_all(open_=True)

    # ---- looking

    def do_side(self, argument: str) -> None:
        beside = self._screen.change.toggle_side()
        self._screen.say("side by side" if beside else "unified: A above B")

    def do_wrap(self, argument: str) -> None:
        self._screen.change.toggle_wrap()

    def do_context(self, argument: str) -> None:
        change = self._screen.change
        look = change.compared
        order = [tab for tab in (CONTEXT, PREVIOUS) if look is not None and tab in look.tabs]
        if not order:
            self._screen.say("c compares what models were given: this step is no model call of both", "status.warn")
            return
        here = order.index(change.tab) if change.tab in order else -1
        self._screen.choose(order[here + 1] if here + 1 < len(order) else CHANGES)

    def do_tab(self, argument: str) -> None:
        look = self._screen.change.compared
        if look is not None and len(look.tabs) > 1:
            self._screen.choose(look.tabs[(look.tabs.index(look.tab) + int(argument)) % len(look.tabs)])

    def do_ignored(self, argument: str) -> None:
        self._screen.toggle_ignored()

    # ---- taking away

    def do_export(self, argument: str) -> None:
        self._screen.export()

    def do_copy(self, argument: str) -> None:
        screen = self._screen
        if argument == "value":
            self.copy_row()
        elif argument == "path":
            self.copy(screen.change.place, "the path")
        else:
            self.copy(screen.address, "the address")

    def do_editor(self, argument: str) -> None:
        self._screen.app.edit(self._screen.change.text)

    def do_reread(self, argument: str) -> None:
        self._screen.reread()
