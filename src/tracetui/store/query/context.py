"""What a query asks of a run that its summary does not say: what people said of it, and how it is tied to others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from tracetui.model import RunSummary
from tracetui.store.facts import recorded_running
from tracetui.store.relations import Relations


class Context(Protocol):
    """Asked once a run and query, and only for the keys that the query holds: answers should cost O(1)."""

    def verdict(self, run: RunSummary) -> str | None:
        """The user's verdict, in lower case."""

    def tags(self, run: RunSummary) -> Sequence[str]:
        """The user's own tags, without those of the trace."""

    def note(self, run: RunSummary) -> str | None:
        """The user's note."""

    def signature(self, run: RunSummary) -> str | None:
        """The id of the run's failure signature."""

    def relation(self, run: RunSummary) -> str | None:
        """What it is to its original, in the trace's word, ``copy`` or ``repeat``."""

    def replayed(self, run: RunSummary) -> bool:
        """Whether another run replays, forks or retries it."""

    def repeated(self, run: RunSummary) -> bool:
        """Whether it was the first to do a task that others did again."""

    def going(self, run: RunSummary) -> bool:
        """Whether it goes on, as far as anybody can tell."""

    def formats(self) -> Collection[str]:
        """The names of all formats; empty where they are not known."""


class Told:
    """A `Context` that knows what the traces tell, and nothing that people said. Others inherit from it."""

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

    def signature(self, run: RunSummary) -> str | None:
        return None

    def relation(self, run: RunSummary) -> str | None:
        if (run.repeats is None and run.identity is None) or self._relations is None:
            return run.relation
        return self._relations().relation(run.ref)

    def replayed(self, run: RunSummary) -> bool:
        return self._relations is not None and bool(self._relations().replays(run.ref))

    def repeated(self, run: RunSummary) -> bool:
        return run.repeats is not None and self._relations is not None and bool(self._relations().repeats(run.ref))

    def going(self, run: RunSummary) -> bool:
        return self._going(run)

    def formats(self) -> Collection[str]:
        return ()
