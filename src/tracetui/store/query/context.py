"""Facts about a run beyond its summary, for queries: the user's verdicts, notes and tags, relations to other runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from tracetui.model import RunSummary
from tracetui.store.facts import recorded_running
from tracetui.store.relations import Relations, inherits_task


class Context(Protocol):
    """Answers once per run and query, for the keys of the query only; each answer should take O(1)."""

    def verdict(self, run: RunSummary) -> str | None:
        """The user's verdict, in lower case."""

    def tags(self, run: RunSummary) -> Sequence[str]:
        """The user's own tags, without those of the trace."""

    def note(self, run: RunSummary) -> str | None:
        """The user's note."""

    def cause(self, run: RunSummary) -> Sequence[str]:
        """The title of the cause of its failure and the ids of that, as triage shows them; empty if it did not fail."""

    def relation(self, run: RunSummary) -> str | None:
        """Its relation to its original: the trace's word, ``copy`` or ``repeat``."""

    def replayed(self, run: RunSummary) -> bool:
        """Whether another run replays, forks or retries it."""

    def repeated(self, run: RunSummary) -> bool:
        """Whether it is the first of several runs of its task."""

    def task(self, run: RunSummary) -> str | None:
        """The name of its task, or the key of a derived one; that of its original where it inherits it."""

    def going(self, run: RunSummary) -> bool:
        """Whether it probably still runs."""

    def formats(self) -> Collection[str]:
        """The names of all formats; empty if unknown."""


class TraceContext:
    """A `Context` of what the traces record, without verdicts, notes and tags of the user. Base of the others."""

    def __init__(
        self,
        relations: Callable[[], Relations] | None = None,
        going: Callable[[RunSummary], bool] = recorded_running,
    ) -> None:
        self._relations = relations
        self._going = going

    def verdict(self, run: RunSummary) -> str | None:
        return None

    def tags(self, run: RunSummary) -> Sequence[str]:
        return ()

    def note(self, run: RunSummary) -> str | None:
        return None

    def cause(self, run: RunSummary) -> Sequence[str]:
        return ()

    def relation(self, run: RunSummary) -> str | None:
        if (run.task_key is None and run.identity is None) or self._relations is None:
            return run.relation
        return self._relations().relation(run.ref)

    def replayed(self, run: RunSummary) -> bool:
        return self._relations is not None and bool(self._relations().replays(run.ref))

    def repeated(self, run: RunSummary) -> bool:
        return run.task_key is not None and self._relations is not None and bool(self._relations().repeats(run.ref))

    def task(self, run: RunSummary) -> str | None:
        inherits = self._relations is not None and inherits_task(run)
        key = self._relations().task(run) if self._relations is not None and inherits else run.task_key
        return None if key is None else key.name

    def going(self, run: RunSummary) -> bool:
        return self._going(run)

    def formats(self) -> Collection[str]:
        return ()
