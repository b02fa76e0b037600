"""What the main screen knows of how runs went: the loops in the timeline, limits, and the step that doomed a run."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from tracetui.live.mail import Mail
from tracetui.model import Run, RunRef
from tracetui.store.store import OPEN_RUNS

if TYPE_CHECKING:
    from tracetui.ui.screens.main import MainScreen
    from tracetui.views.assessment import Assessment

TELLING: Final = frozenset({"run", "error", "overview"})
"""Tabs of the detail that tell of it."""


class Assessing:
    """Belongs to the main screen, as its actions do."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._known: OrderedDict[RunRef, Assessment] = OrderedDict()
        self._asked: Run | None = None

    @property
    def settled(self) -> bool:
        """Whether it is known how the run went that is shown."""
        run = self._screen.steps.run
        known = self._known.get(run.summary.ref) if run is not None else None
        return run is None or not run.complete or (known is not None and known.run is run)

    def shown(self, run: Run) -> None:
        """A state of a run is shown: show what is known of it, and ask for what is not."""
        screen, known = self._screen, self.of(run)
        if known is not None:
            screen.steps.fold_loops(known)
        screen.facts.assessment = screen.detail.assessment = known

    def of(self, run: Run) -> Assessment | None:
        """What is known of how a run went, from this or an earlier state of it; what is not is asked for."""
        known = self._known.get(run.summary.ref)
        if (known is None or known.run is not run) and run.complete and self._asked is not run:
            self._asked = run
            self._screen.app.engine.assessor.assess(run)
        return known

    def take(self, mail: Mail) -> None:
        """Take in what was found out."""
        screen = self._screen
        for ref, found in mail.assessments.items():
            self._known[ref] = found
            self._known.move_to_end(ref)
        run = screen.steps.run
        while len(self._known) > OPEN_RUNS:  # other screens open runs too: what is shown here stays known
            del self._known[next(ref for ref in self._known if run is None or ref != run.summary.ref)]
        if run is None or run.summary.ref not in mail.assessments:
            if run is not None and self._asked is not None and self._asked.summary.ref in mail.assessments:
                self.of(run)  # another screen asked for its run before this one was done
            return
        self.shown(run)
        screen.facts.show_run(run)
        if screen.detail.run is run and screen.detail.tab in TELLING:
            screen.detail.draw_rows(keep=True)
