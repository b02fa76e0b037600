"""The query fields that come from the user: verdicts, notes, tags and ids of causes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from tracetui.analysis.cause import digests_of
from tracetui.analysis.triage import groups
from tracetui.model import Outcome, RunSummary, Status
from tracetui.store.judgement import NOTHING, Judgement, is_kept_whole
from tracetui.store.query import TraceContext, recorded_running
from tracetui.store.relations import Relations
from tracetui.store.sidecar import Sidecar

_ERROR: Final = Status.ERROR


class QueryContext(TraceContext):
    """A query context over all listed `runs`, which also decide the ids and titles of causes."""

    def __init__(
        self,
        sidecar: Sidecar,
        runs: Callable[[], Iterable[RunSummary]],
        relations: Callable[[], Relations] | None = None,
        going: Callable[[RunSummary], bool] = recorded_running,
        formats: Callable[[], Collection[str]] = tuple,
    ) -> None:
        super().__init__(relations, going)
        self._formats = formats
        self._sidecar, self._runs = sidecar, runs
        self._causes: dict[str, tuple[str, ...]] | None = None
        """Titles and ids of all causes, by digest."""

    def formats(self) -> Collection[str]:
        return self._formats()

    def verdict(self, run: RunSummary) -> str | None:
        verdict = self._judgement(run).verdict
        return None if verdict is None else verdict.value

    def tags(self, run: RunSummary) -> Sequence[str]:
        return self._judgement(run).tags

    def note(self, run: RunSummary) -> str | None:
        return self._judgement(run).note or None

    def cause(self, run: RunSummary) -> Sequence[str]:
        if not run.failed:
            return ()
        if self._causes is None:
            self._causes = {}
            for group in groups(self._runs(), self._sidecar):
                self._causes[group.digest] = (group.title, group.id)
                self._causes.update((task.digest, (group.title, group.id, task.id)) for task in group.tasks)
        return self._causes.get(digests_of(run, self._sidecar)[0], ())

    def _judgement(self, run: RunSummary) -> Judgement:
        if run.status is not _ERROR and run.outcome is not Outcome.FAILED:  # fast path for nearly all runs
            judged = self._sidecar.runs
            if not judged or (run.id not in judged and is_kept_whole(run.id)):
                return NOTHING
        return self._sidecar.of(run, *digests_of(run, self._sidecar))
