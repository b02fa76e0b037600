"""The causes of the listed failed runs: one grouping for header, sentence and triage, in a thread if there are many."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracetui.model import RunRef, RunSummary
from tracetui.store.facts import OutcomeCounts
from tracetui.store.relations import counted
from tracetui.store.store import Store
from tracetui.ui.services.pacing import rest_seconds

if TYPE_CHECKING:
    from tracetui.analysis.triage import Group
    from tracetui.live.engine import Engine
    from tracetui.store.sidecar import Sidecar
    from tracetui.ui.services.verdicts import Verdicts

MANY: Final = 2_000
"""Runs from which a key must not wait for their grouping."""
REST_SECONDS: Final = 0.5
"""While runs arrive, they are grouped at most this often."""


class Grouping:
    """The causes of some runs at one moment."""

    def __init__(
        self, key: object, listed: Sequence[RunSummary], sidecar: Sidecar, everything: Grouping | None = None
    ) -> None:
        """Any thread may do this. `everything`: the causes of all runs, which know when those of `listed` appeared."""
        from tracetui.analysis.triage import CauseOrder, failure_counts, groups, sections

        self.key, self.everything = key, everything
        self._among: tuple[Sequence[RunRef], list[Group]] | None = None
        causes = groups(listed, sidecar)
        self.groups: Sequence[Group] = causes if everything is None else [*map(everything._dated, causes)]
        """The biggest waste first."""
        self.by_run: dict[RunRef, Group] = {ref: group for group in self.groups for ref in group.runs}
        """The cause of each failed run."""
        self.order = CauseOrder(sections(self.groups))
        """The same, as the queue shows them first."""
        self.failure_counts = failure_counts(self.groups)
        self._others: dict[str, list[Group]] = {}
        """Causes by another digest that may have a verdict: of a task, a merged cause, the one before a split."""
        for group in self.groups:
            for digest in (
                *group.merged,
                group.split_of,
                *group.previous,
                *group.old,
                *(task.digest for task in group.tasks),
            ):
                if digest:
                    self._others.setdefault(digest, []).append(group)
        self._appearances = sorted(group.appeared for group in self.groups if group.appeared is not None)
        top_level = counted(listed)
        children = [run for run in listed if run.parent is not None]
        self.runs, self.failed = len(top_level), sum(run.failed for run in top_level)
        counts = OutcomeCounts.of(top_level)
        self.ungraded, self.passes = counts.ungraded, counts.passes if counts.ungraded else ""
        self.both = counts.both
        self.children, self.failed_children = len(children), sum(run.failed for run in children)

    def _dated(self, group: Group) -> Group:
        """A cause of some of the runs, with the time when it appeared among all."""
        cause = self.by_run.get(group.example)
        return group if cause is None else replace(group, appeared=cause.appeared)

    def among(self, refs: Sequence[RunRef]) -> list[Group]:
        """The causes of these runs, each with only them; the last answer is remembered."""
        if self._among is None or self._among[0] is not refs:
            runs: dict[str, list[RunRef]] = {}
            for ref in refs:
                if (group := self.by_run.get(ref)) is not None:
                    runs.setdefault(group.digest, []).append(ref)
            places, groups = self.order.places, self.groups
            self._among = refs, [replace(groups[places[digest]], runs=tuple(of)) for digest, of in runs.items()]
        return self._among[1]

    def groups_of(self, digests: Collection[str]) -> list[Group]:
        """The causes with one of these digests."""
        places, groups = self.order.places, self.groups
        matches = [groups[places[digest]] for digest in digests if digest in places]
        matches += [group for digest in digests for group in self._others.get(digest, ())]
        return [*{group.digest: group for group in matches}.values()]

    def new_since(self, when: float) -> int:
        """How many causes appeared after this time, in UTC seconds."""
        return len(self._appearances) - bisect_left(self._appearances, when)


class Causes:
    """The causes of all runs, and of those that the filter of the list finds."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        verdicts: Verdicts,
        timer: Callable[[float, Callable[[], None]], object],
        changed: Callable[[], None],
        listing: Callable[[], bool],
    ) -> None:
        """`timer` calls a function after some seconds. `changed` is called if it is worth asking again. `listing`:
        whether runs are still being found, or none is painted yet; they aren't grouped meanwhile.
        """
        self._store, self._engine, self._verdicts, self._timer = store, engine, verdicts, timer
        self._changed, self._listing = changed, listing
        self._groupings: dict[str, Grouping] = {}
        """By query, empty for all runs; of the others only the last."""
        self._after: dict[str, float] = {}
        """When the runs of a query may be grouped again."""
        self._pending = self._waiting = False

    @property
    def settled(self) -> bool:
        """Whether the causes of all runs are up to date, or no run failed."""
        return not self._has_causes or self._is_current("")

    def grouping_of_all(self) -> Grouping | None:
        """The latest grouping of all runs, None before the first; groups them again in a thread if necessary."""
        if self._has_causes and not self._is_current("") and not self._listing():
            self._ask("", lambda: [*self._store.runs.values()])
        return self._groupings.get("")

    @property
    def _has_causes(self) -> bool:
        """Whether any run failed or is ungraded."""
        return bool(self._store.overview.failed or self._store.overview.outcomes.ungraded)

    def group_of(self, ref: RunRef) -> Group | None:
        """The cause of a run; None if it did not fail, or its cause was not found yet."""
        grouping = self.grouping_of_all()
        return None if grouping is None else grouping.by_run.get(ref)

    def grouping(self, query: str, select_runs: Callable[[], Sequence[RunSummary]]) -> Grouping | None:
        """The grouping of the runs that a query finds; of many runs the latest, while a thread groups them again."""
        everything = self.grouping_of_all() if query else None
        if not self._is_current(query):
            if len(self._store.runs) < MANY:
                self._put(query, Grouping(self._key, select_runs(), self._verdicts.sidecar, everything))
            else:
                self._ask(query, select_runs)
        return self._groupings.get(query)

    @property
    def _key(self) -> object:
        """Changes with everything that a grouping depends on."""
        sidecar = self._verdicts.sidecar
        regrouped = sidecar.regrouped or sidecar.has_old_digests
        return self._store.revision, sidecar.revision if regrouped else None

    def _is_current(self, query: str) -> bool:
        latest = self._groupings.get(query)
        everything = self._groupings.get("") if query else None
        return latest is not None and latest.key == self._key and latest.everything is everything

    def _ask(self, query: str, select_runs: Callable[[], Sequence[RunSummary]]) -> None:
        """Group runs in a thread, unless that goes on or was done just now."""
        wait = self._after.get(query, 0.0) - time.monotonic()
        if self._pending or self._waiting:
            return
        if wait > 0:
            self._waiting = True
            self._timer(wait, self._wake)
            return
        self._pending = True
        key, listed, sidecar = self._key, select_runs(), self._verdicts.sidecar
        everything = self._groupings.get("") if query else None

        def work() -> Callable[[], None]:
            began = time.thread_time()
            grouping = Grouping(key, listed, sidecar, everything)
            took = time.thread_time() - began
            return lambda: self._finish_grouping(query, grouping, took)

        self._engine.run_in_background(work)

    def _wake(self) -> None:
        self._waiting = False
        self._changed()

    def _finish_grouping(self, query: str, grouping: Grouping, took: float) -> None:
        self._pending = False
        self._put(query, grouping)
        self._after[query] = time.monotonic() + rest_seconds(took, REST_SECONDS)
        self._changed()

    def _put(self, query: str, grouping: Grouping) -> None:
        everything = self._groupings.get("")
        self._groupings = {query: grouping} if everything is None else {"": everything, query: grouping}
