"""The contexts of many runs, for queries and for the page *today*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tracetui.live.mailbox import Mail
from tracetui.model import RunRef, RunSummary
from tracetui.store.facts import NO_CONTEXT, ContextUse
from tracetui.store.store import Store

if TYPE_CHECKING:
    from tracetui.analysis.context_totals import ContextSums, ContextTotals
    from tracetui.live.engine import Engine
    from tracetui.live.jobs import Job
    from tracetui.ui.services.findings import JobService

REFRESH_SECONDS: Final = 60.0
"""How often runs that grow are read again."""


class ContextService:
    """Reads the contexts of runs by a job, and keeps them."""

    def __init__(
        self, store: Store, engine: Engine, jobs: JobService, roots: Sequence[str], clock: Callable[[], float]
    ) -> None:
        self._store, self._engine, self._jobs, self._roots, self._clock = store, engine, jobs, roots, clock
        self._known: dict[RunRef, tuple[float, ContextTotals | None]] = {}
        """Time of the version that was read, and its sums; None if nothing of it is readable."""
        self._asked: tuple[Job, Sequence[RunSummary]] | None = None
        self._sums: tuple[list[RunRef], ContextSums] | None = None
        """The sums of the last runs."""
        self._ended_at = float("-inf")
        self.revision = 0
        """Rises with each job that ended."""

    def receive(self, mail: Mail) -> bool:
        """Keep what the job read; return whether it ended."""
        progress = mail.progress
        if self._asked is None or progress is None or progress.job is not self._asked[0]:
            return False
        from tracetui.live.contexts import RunTotals

        for new in progress.new:
            if isinstance(new, RunTotals):
                self._known[new.run.ref] = new.run.modified_at, new.totals
        if not progress.finished:
            return False
        if not progress.lost:
            for run in self._asked[1]:
                self._known.setdefault(run.ref, (run.modified_at, None))
            self._sums = [run.ref for run in self._asked[1]], progress.result
        self._asked, self._ended_at = None, self._clock()
        self.revision += 1
        return True

    def use(self, run: RunSummary) -> tuple[ContextUse, bool]:
        """(What queries ask, empty if the run wasn't read; whether the run is to be read)."""
        at, totals = self._known.get(run.ref, (None, None))
        return NO_CONTEXT if totals is None else totals.use, at != run.modified_at

    def sums(self, runs: Sequence[RunSummary]) -> ContextSums | None:
        """The sums of these runs, which `find` computes; those of an earlier version while it is at it."""
        return self._sums[1] if self._sums is not None and self._sums[0] == [run.ref for run in runs] else None

    def find(self, runs: Sequence[RunSummary], *, sums: bool = False) -> bool:
        """Read the runs that were never read, and once a minute those that changed; return whether new ones are. Waits
        for the job that is under way. `sums`: sum them up.
        """
        stale = {run.ref: run for run in runs if self.use(run)[1]}
        is_new = any(ref not in self._known for ref in stale)
        is_due = self._clock() - self._ended_at >= REFRESH_SECONDS
        lacks_sums = sums and self.sums(runs) is None
        if self._jobs.is_busy or not (is_new or lacks_sums or (stale and is_due)):
            return False
        from tracetui.live.contexts import contexts_job

        wanted = [*runs] if sums else [*stale.values()]
        shares = self._store.claims.shares(stale)
        known = {ref: read[1] for ref, read in self._known.items() if ref not in stale and read[1] is not None}
        job = contexts_job(wanted, shares, self._roots, self._engine.cache_limit, known)
        self._asked = job, wanted
        self._jobs.ask(job)
        return is_new
