"""The query fields that come from the user: verdicts, notes, tags and ids of causes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from tracetui.analysis.cause import cause_digest, digests_of, short_ids
from tracetui.model import Outcome, RunSummary, Status
from tracetui.store.judgement import NOTHING, Judgement, is_kept_whole
from tracetui.store.query import TraceContext, recorded_running
from tracetui.store.relations import Relations
from tracetui.store.sidecar import Sidecar

_ERROR: Final = Status.ERROR


class QueryContext(TraceContext):
    """A query context over all listed `runs`, which also decide the length of signature ids."""

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
        self._names: dict[str, str] | None = None

    def formats(self) -> Collection[str]:
        return self._formats()

    def verdict(self, run: RunSummary) -> str | None:
        verdict = self._judgement(run).verdict
        return None if verdict is None else verdict.value

    def tags(self, run: RunSummary) -> Sequence[str]:
        return self._judgement(run).tags

    def note(self, run: RunSummary) -> str | None:
        return self._judgement(run).note or None

    def signature(self, run: RunSummary) -> str | None:
        digest = cause_digest(run, self._sidecar)
        if digest is None:
            return None
        if self._names is None:
            found = dict.fromkeys(cause_digest(each, self._sidecar) for each in self._runs())
            digests = [one for one in found if one is not None]
            self._names = dict(zip(digests, short_ids(digests), strict=True))
        return self._names.get(digest)

    def _judgement(self, run: RunSummary) -> Judgement:
        if run.status is not _ERROR and run.outcome is not Outcome.FAILED:  # fast path for nearly all runs
            judged = self._sidecar.runs
            if not judged or (run.id not in judged and is_kept_whole(run.id)):
                return NOTHING
        return self._sidecar.of(run, *digests_of(run, self._sidecar))
