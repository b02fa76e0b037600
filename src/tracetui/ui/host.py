"""What the screens of runs ask of the app: shared services, and the ways from one screen to another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from tracetui.ui.base_app import BaseApp

if TYPE_CHECKING:
    from tracetui.analysis.query_context import QueryContext
    from tracetui.live.engine import Engine
    from tracetui.model import Run, RunRef, RunSummary
    from tracetui.store.store import Store
    from tracetui.ui.services.exports import Exporter
    from tracetui.ui.services.findings import Assessments, Comparisons, Surveys
    from tracetui.ui.services.liveness import LivenessTracker
    from tracetui.ui.services.verdicts import Verdicts
    from tracetui.ui.state import Sought
    from tracetui.ui.terminal.pace import Pace
    from tracetui.ui.triage_state import TriageState


class HostApp(BaseApp):
    """The app as its screens know it."""

    engine: Engine
    store: Store
    roots: list[str]
    stage: str
    """``list``, ``deep``, or empty when all runs are known."""
    seen: int
    total: int | None
    listed: bool
    """Whether all runs were listed once."""
    preloaded: bool
    """Whether what the first comparison takes is loaded."""
    pace: Pace
    verdicts: Verdicts
    liveness: LivenessTracker
    assessments: Assessments
    comparisons: Comparisons
    surveys: Surveys
    exporter: Exporter

    def words(self) -> str:
        """The query that filters the list."""
        raise NotImplementedError

    def query_context(self) -> QueryContext:
        """What queries can ask of runs that no trace holds."""
        raise NotImplementedError

    def found(self) -> list[RunSummary]:
        """The runs that the query of the list finds; all where there is none."""
        raise NotImplementedError

    def pick_query(self, take: Callable[[str], None]) -> None:
        """Show the values to filter by; `take` is called with the query that asks for what was picked."""
        raise NotImplementedError

    def filter_runs(self, key: str, value: str) -> None:
        """Go to the list, and show only the runs that have this value."""
        raise NotImplementedError

    def visit(self, ref: RunRef, span: str | None, sought: Sought | None = None) -> None:
        """Open a run from the screens above the main one; leaving it leads back to them."""
        raise NotImplementedError

    def reopen(self, origin: Sequence[Hashable]) -> None:
        """Open again, as they were left, the screens that a run was visited from."""
        raise NotImplementedError

    def runs_changed(self) -> None:
        """Something was found out about runs, or judged, that the list shows."""
        raise NotImplementedError

    def judged(self) -> None:
        """Another instance judged something: every screen shows it."""
        raise NotImplementedError

    def open_screen(self, screen: Screen[Any]) -> None:
        """Show a screen that has nothing to show yet: in whole frames until it has (`opened`), or soon."""
        raise NotImplementedError

    def opened(self) -> None:
        """The screen has something to show."""
        raise NotImplementedError

    def compare(self, a: RunRef, b: RunRef) -> None:
        """Open the comparison of two runs."""
        raise NotImplementedError

    def compare_with_original(self, ref: RunRef) -> str:
        """Compare a run with its original, or with its replays; if there are none, says so."""
        raise NotImplementedError

    def compare_contexts(self, run: Run, a: str, b: str) -> None:
        """Open the comparison of what two model calls of a run were given."""
        raise NotImplementedError

    def search_runs(self, words: str) -> None:
        """Search all runs of the list, and show what is found. Raises `UsageError` for a wrong regular expression."""
        raise NotImplementedError

    def show_statistics(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the statistics of these runs; `of` names them."""
        raise NotImplementedError

    def show_contrast(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the list of what these runs share that others lack; `of` names them."""
        raise NotImplementedError

    def read_ahead(self, ref: RunRef) -> None:
        """Read what a run is most likely compared with, once for each run in a row."""
        raise NotImplementedError

    def triage_left(self, state: TriageState) -> None:
        """The triage was closed in this state."""
        raise NotImplementedError

    def rescan(self) -> None:
        """Read the directory again."""
        raise NotImplementedError

    def edit(self, text: str) -> None:
        """Open a cleaned copy of `text` in $EDITOR."""
        raise NotImplementedError
